package capture

import "github.com/srcproof/srcproof/capture/wire"

// icmp4 decodes ICMP (RFC 792).
func (d *Decoder) icmp4(p *wire.Packet, b []byte, n int) {
	if len(b) < 2 {
		d.drop(d.missing(2, n))
		return
	}
	switch b[0] {
	case 3, 4, 5, 11, 12:
		if b[0] == 3 && b[1] == 4 && len(b) >= 8 {
			p.MTU = uint32(be16(b[6:])) // RFC 1191
		}
		d.icmpError(p, b, n)
	default:
		d.icmpQuery(p, b, n)
	}
}

// icmp6 decodes ICMPv6 (RFC 4443, RFC 4861, RFC 2710).
func (d *Decoder) icmp6(p *wire.Packet, b []byte, n int) {
	if len(b) < 2 {
		d.drop(d.missing(2, n))
		return
	}
	switch b[0] {
	case 1, 2, 3, 4:
		if b[0] == 2 && len(b) >= 8 {
			p.MTU = be32(b[4:])
		}
		d.icmpError(p, b, n)
	default:
		d.icmpQuery(p, b, n)
	}
}

// queryOf returns the type of the request that an ICMP message belongs to, whether the message is its answer, and whether
// it has an identifier and a sequence number behind its checksum. Errors belong to no request: 0.
func queryOf(proto wire.Proto, kind byte) (query byte, reply, identified bool) {
	if proto == wire.ProtoICMP {
		switch kind {
		case 0:
			return wire.ICMPEchoRequest, true, true
		case 14, 16, 18: // timestamp, information and mask reply
			return kind - 1, true, true
		case 8, 13, 15, 17:
			return kind, false, true
		case 3, 4, 5, 11, 12:
			return 0, false, false
		}
		return kind, false, false
	}
	switch kind {
	case wire.ICMP6EchoRequest:
		return kind, false, true
	case wire.ICMP6EchoReply:
		return wire.ICMP6EchoRequest, true, true
	case 131, 132: // a listener's report and its end, to query 130
		return 130, true, false
	case 134, 136: // router and neighbour advertisement
		return kind - 1, true, false
	case 1, 2, 3, 4:
		return 0, false, false
	}
	return kind, false, false
}

// icmpQuery books a query or its answer.
func (d *Decoder) icmpQuery(p *wire.Packet, b []byte, n int) {
	query, reply, identified := queryOf(p.Tuple.Proto, b[0])
	if identified && len(b) < 8 {
		d.drop(d.missing(8, n))
		return
	}
	p.Tuple.Query = query
	if reply {
		p.Attr |= wire.IsReply
	}
	p.ICMPType, p.ICMPCode = b[0], b[1]
	p.Known |= wire.KnowTransport
	if identified {
		id := be16(b[4:])
		p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = id, id
		p.Seq = uint32(be16(b[6:]))
	}
	if len(b) >= 8 {
		payload(p, b[8:], n-8, p.Tuple.IsEcho() && p.Attr&wire.IsFragment == 0)
	}
}

// icmpError books an error. The packet that it quotes begins behind eight bytes, and is usually cut to its IP header and
// eight bytes; what is not there stays unknown.
func (d *Decoder) icmpError(p *wire.Packet, b []byte, n int) {
	p.Attr |= wire.IsError
	p.ICMPType, p.ICMPCode = b[0], b[1]
	p.ErrorFrom, p.ErrorTo = p.Tuple.Src, p.Tuple.Dst
	// From here on IPID is the quoted packet's.
	p.IPID = 0
	p.Known &^= wire.KnowIPID
	const before = 8
	if len(b) <= before {
		d.quoteCut(p, before+20, n)
		return
	}
	q, n := b[before:], n-before
	switch q[0] >> 4 {
	case 4:
		d.quote4(p, q, n)
	case 6:
		d.quote6(p, q, n)
	default:
		d.Skipped[wire.SkipMalformed]++
	}
}

// quoteCut books a quoted packet that ends before need bytes: cut by the snap length, or not quoted that far.
func (d *Decoder) quoteCut(p *wire.Packet, need, n int) {
	if d.missing(need, n) == short {
		d.partial(p, need, n)
	}
}

func (d *Decoder) quote4(p *wire.Packet, q []byte, n int) {
	header := int(q[0]&0x0f) * 4
	if header < 20 {
		d.Skipped[wire.SkipMalformed]++
		return
	}
	if len(q) < 20 {
		d.quoteCut(p, 20, n)
		return
	}
	p.Tuple = wire.Tuple{Src: wire.AddrFrom4([4]byte(q[12:16])), Dst: wire.AddrFrom4([4]byte(q[16:20])), Proto: wire.Proto(q[9])}
	p.IPID = be16(q[4:])
	p.Known |= wire.KnowIPID
	if be16(q[6:])&0x1fff != 0 {
		p.Attr |= wire.IsFragment | wire.IsLaterFrag
		return
	}
	if len(q) < header {
		d.quoteCut(p, header, n)
		return
	}
	d.quoteTransport(p, q[header:], n-header)
}

func (d *Decoder) quote6(p *wire.Packet, q []byte, n int) {
	if len(q) < 40 {
		d.quoteCut(p, 40, n)
		return
	}
	p.Tuple = wire.Tuple{Src: wire.Addr(q[8:24]), Dst: wire.Addr(q[24:40]), Proto: wire.Proto(q[6])}
	next := q[6]
	q, n = q[40:], n-40
	for {
		size := 0
		switch next {
		case ip6HopByHop, ip6Routing, ip6Destination, ip6Mobility, ip6HIP, ip6Shim6:
			if len(q) >= 2 {
				size = int(q[1])*8 + 8
			}
		case byte(wire.ProtoAH):
			if len(q) >= 2 {
				size = int(q[1])*4 + 8
			}
		case ip6Fragment:
			size = 8
		default:
			p.Tuple.Proto = wire.Proto(next)
			d.quoteTransport(p, q, n)
			return
		}
		if size == 0 || len(q) < size {
			d.quoteCut(p, max(size, 2), n)
			return
		}
		if next == ip6Fragment {
			p.IPID = be16(q[6:])
			p.Known |= wire.KnowIPID
			if be16(q[2:])&0xfff8 != 0 {
				p.Tuple.Proto = wire.Proto(q[0])
				p.Attr |= wire.IsFragment | wire.IsLaterFrag
				return
			}
		}
		next, q, n = q[0], q[size:], n-size
	}
}

// quoteTransport reads what there is of the quoted packet's transport header. KnowTransport says that ports and
// sequence number are there; flags, acknowledgement and window are zero where they are not quoted.
func (d *Decoder) quoteTransport(p *wire.Packet, q []byte, n int) {
	switch proto := p.Tuple.Proto; proto {
	case wire.ProtoTCP, wire.ProtoUDP, wire.ProtoSCTP, wire.ProtoUDPLite:
		if len(q) < 4 {
			d.quoteCut(p, 4, n)
			return
		}
		p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = be16(q), be16(q[2:])
		if len(q) < 8 {
			d.quoteCut(p, 8, n)
			return
		}
		switch proto {
		case wire.ProtoTCP:
			p.Seq = be32(q[4:])
			if len(q) >= 16 {
				p.Ack, p.Flags, p.Window = be32(q[8:]), wire.TCPFlags(q[13]), be16(q[14:])
			}
		case wire.ProtoSCTP:
			p.Ack = be32(q[4:])
			if len(q) >= 20 {
				p.Chunk = q[12]
				if p.Chunk == wire.ChunkInit || p.Chunk == wire.ChunkInitAck || p.Chunk == wire.ChunkData {
					p.Seq = be32(q[16:])
				}
			}
		}
		p.Known |= wire.KnowTransport
	case wire.ProtoICMP, wire.ProtoICMP6:
		if len(q) < 1 {
			d.quoteCut(p, 8, n)
			return
		}
		query, reply, identified := queryOf(proto, q[0])
		p.Tuple.Query = query
		if reply {
			p.Attr |= wire.IsReply
		}
		if !identified {
			return
		}
		if len(q) < 8 {
			d.quoteCut(p, 8, n)
			return
		}
		id := be16(q[4:])
		p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = id, id
		p.Seq = uint32(be16(q[6:]))
		p.Known |= wire.KnowTransport
	}
}
