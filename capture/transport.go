package capture

import "github.com/srcproof/srcproof/capture/wire"

// transport decodes behind an IP header. n is the payload's length by the IP header, which may be more than the frame
// held.
func (d *Decoder) transport(p *wire.Packet, proto byte, b []byte, n int) {
	p.Tuple.Proto = wire.Proto(proto)
	if p.Attr&wire.IsLaterFrag != 0 {
		return
	}
	switch wire.Proto(proto) {
	case wire.ProtoTCP:
		d.tcp(p, b, n)
	case wire.ProtoUDP:
		d.udp(p, b, n)
	case wire.ProtoICMP:
		d.icmp4(p, b, n)
	case wire.ProtoICMP6:
		d.icmp6(p, b, n)
	case wire.ProtoSCTP:
		d.sctp(p, b, n)
	default:
		d.otherProto(p, b, n)
	}
}

// ports reads the first four bytes, or drops the packet.
func (d *Decoder) ports(p *wire.Packet, b []byte, n int) bool {
	if len(b) < 4 {
		d.drop(d.missing(4, n))
		return false
	}
	p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = be16(b), be16(b[2:])
	return true
}

// tcp decodes a TCP header (RFC 9293 section 3.1).
func (d *Decoder) tcp(p *wire.Packet, b []byte, n int) {
	if !d.ports(p, b, n) {
		return
	}
	if len(b) < 16 { // flags and window end there
		d.partial(p, 16, n)
		return
	}
	p.Seq, p.Ack = be32(b[4:]), be32(b[8:])
	p.Flags = wire.TCPFlags(b[13])
	p.Window = be16(b[14:])
	p.Known |= wire.KnowTransport
	header := int(b[12]>>4) * 4
	if header < 20 || header > n {
		// The flags are what the segment says; where its data begin is not known.
		d.Skipped[wire.SkipMalformed]++
		return
	}
	if len(b) < header {
		d.partial(p, header, n)
		if len(b) > 20 {
			d.tcpOptions(p, b[20:])
		}
		payload(p, nil, n-header, false)
		return
	}
	switch {
	case header == 20:
		p.Known |= wire.KnowOptions
	case header == 32 && be32(b[20:]) == 0x0101080a: // nop, nop, timestamps: nearly every segment (RFC 7323 appendix A)
		p.TSVal, p.TSEcr = be32(b[24:]), be32(b[28:])
		p.Known |= wire.KnowOptions | wire.KnowTS
	default:
		if d.tcpOptions(p, b[20:header]) {
			p.Known |= wire.KnowOptions
		}
	}
	payload(p, b[header:], n-header, false)
}

// tcpOptions reads options, and tells whether all of the bytes given made sense.
func (d *Decoder) tcpOptions(p *wire.Packet, b []byte) bool {
	for len(b) > 0 {
		switch b[0] {
		case 0: // end of the list
			return true
		case 1:
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return false
		}
		switch {
		case b[0] == 2 && b[1] == 4 && p.Flags&wire.SYN != 0:
			p.MSS = be16(b[2:])
		case b[0] == 8 && b[1] == 10:
			p.TSVal, p.TSEcr = be32(b[2:]), be32(b[6:])
			p.Known |= wire.KnowTS
		}
		b = b[b[1]:]
	}
	return true
}

// udp decodes UDP (RFC 768) and what it carries, if it is a tunnel.
func (d *Decoder) udp(p *wire.Packet, b []byte, n int) {
	if !d.ports(p, b, n) {
		return
	}
	if len(b) < 8 {
		d.partial(p, 8, n)
		if kind := tunnelAt(p.Tuple.DstPortOrEchoID); kind != wire.TunnelNone && p.Attr&wire.IsCut != 0 {
			p.Attr |= wire.IsCarrier | wire.IsOpaque // cut before what it carries
			p.Tunnel = kind
		}
		return
	}
	p.Known |= wire.KnowTransport
	length := int(be16(b[4:]))
	switch {
	case length == 0: // jumbogram (RFC 2675), offload
		length = n
	case length < 8:
		d.Skipped[wire.SkipMalformed]++
		return
	case length > n && p.Attr&wire.IsFragment == 0: // a first fragment's length is the whole datagram's
		length = n
	}
	b, n = b[8:], length-8
	if len(b) > n {
		b = b[:n]
	}
	if d.udpTunnel(p, b, n) {
		return
	}
	payload(p, b, n, true)
}

// sctp decodes an SCTP common header and its chunks (RFC 9260 section 3): Chunk is the first one's type, payload and TSN
// are those of the first DATA chunk wherever it stands.
func (d *Decoder) sctp(p *wire.Packet, b []byte, n int) {
	if !d.ports(p, b, n) {
		return
	}
	if len(b) < 16 {
		d.partial(p, 16, n)
		return
	}
	kind := b[12]
	p.Ack = be32(b[4:])
	if kind == wire.ChunkInit || kind == wire.ChunkInitAck || kind == wire.ChunkData {
		if len(b) < 20 {
			d.partial(p, 20, n)
			return
		}
		p.Seq = be32(b[16:])
	}
	p.Chunk = kind
	p.Known |= wire.KnowTransport
	for b, n = b[12:], n-12; len(b) >= 4; {
		kind, size := b[0], int(be16(b[2:]))
		if size < 4 || size > n {
			return
		}
		const dataHeader = 16 // type, flags, length, TSN, stream, sequence, protocol identifier
		if kind == wire.ChunkData && size >= dataHeader {
			if len(b) >= 8 {
				p.Seq = be32(b[4:])
			}
			payload(p, b[min(dataHeader, len(b)):], size-dataHeader, true)
			return
		}
		padded := (size + 3) &^ 3
		if len(b) < padded {
			return
		}
		b, n = b[padded:], n-padded
	}
	if n <= 0 {
		p.Known |= wire.KnowPayload // chunks without user data
	}
}
