package capture

import "github.com/srcproof/srcproof/capture/wire"

// IPv6 extension headers that are walked (RFC 8200 section 4; RFC 6275; RFC 7401; RFC 5533).
const (
	ip6HopByHop    = 0
	ip6Routing     = 43
	ip6Fragment    = 44
	ip6NoNext      = 59
	ip6Destination = 60
	ip6Mobility    = 135
	ip6HIP         = 139
	ip6Shim6       = 140
)

// begin appends a packet for an IP header, and returns it; nil where there are too many.
func (d *Decoder) begin() *wire.Packet {
	if d.depth >= MaxPerFrame || len(d.out)-d.base >= MaxPerFrame {
		return nil
	}
	d.out = append(d.out, wire.Packet{
		Time: d.meta.Time, Frame: d.meta.Frame, WireLen: d.meta.WireLen, Iface: d.meta.Iface, Dir: d.meta.Dir,
		VLAN: d.vlan, SrcMAC: d.mac, Attr: d.attr, Depth: d.depth,
	})
	d.depth++
	return &d.out[len(d.out)-1]
}

// drop takes back the packet that begin appended: its headers do not reach the ports. v says why.
func (d *Decoder) drop(v verdict) {
	d.out = d.out[:len(d.out)-1]
	d.skip(v)
}

// partial books a packet whose headers end before need bytes, of which n are left by the headers around them.
func (d *Decoder) partial(p *wire.Packet, need, n int) {
	if d.missing(need, n) == short {
		p.Attr |= wire.IsCut
		d.cut = true
	} else {
		d.Skipped[wire.SkipMalformed]++
	}
}

// ip4 decodes an IPv4 packet (RFC 791). Inside a tunnel its lengths must fit, for they decide whether it is one.
func (d *Decoder) ip4(b []byte, n int) verdict {
	if len(b) < 20 {
		if len(b) > 0 && b[0]>>4 != 4 {
			return bad
		}
		return d.missing(20, n)
	}
	header := int(b[0]&0x0f) * 4
	if b[0]>>4 != 4 || header < 20 {
		return bad
	}
	total := int(be16(b[2:]))
	switch {
	case total == 0:
		total = n // offload, BIG TCP (Linux net/ipv4/ip_output.c, iph_set_totlen)
		if total < header {
			return bad
		}
	case total < header, d.depth > 0 && total > n:
		return bad
	}
	if len(b) > total {
		b = b[:total] // the rest is padding or a trailer
	}
	if len(b) < header {
		return d.missing(header, n)
	}
	p := d.begin()
	if p == nil {
		return tooDeep
	}
	p.Tuple.Src[10], p.Tuple.Src[11] = 0xff, 0xff
	copy(p.Tuple.Src[12:], b[12:16])
	p.Tuple.Dst[10], p.Tuple.Dst[11] = 0xff, 0xff
	copy(p.Tuple.Dst[12:], b[16:20])
	p.IPID = be16(b[4:])
	p.TTL = b[8]
	p.Known = wire.KnowIPID | wire.KnowTTL
	if frag := be16(b[6:]); frag&0x3fff != 0 {
		p.Attr |= wire.IsFragment
		if frag&0x1fff != 0 {
			p.Attr |= wire.IsLaterFrag
		}
	}
	d.transport(p, b[9], b[header:], total-header)
	return good
}

// ip6 decodes an IPv6 packet and its extension headers (RFC 8200).
func (d *Decoder) ip6(b []byte, n int) verdict {
	if len(b) < 40 {
		if len(b) > 0 && b[0]>>4 != 6 {
			return bad
		}
		return d.missing(40, n)
	}
	if b[0]>>4 != 6 {
		return bad
	}
	total := int(be16(b[4:])) + 40
	if total == 40 && b[6] != ip6NoNext {
		total = n // jumbogram (RFC 2675), offload, BIG TCP
	}
	if d.depth > 0 && total > n {
		return bad
	}
	if len(b) > total {
		b = b[:total]
	}
	p := d.begin()
	if p == nil {
		return tooDeep
	}
	p.Tuple.Src = wire.Addr(b[8:24])
	p.Tuple.Dst = wire.Addr(b[24:40])
	p.TTL = b[7]
	p.Known = wire.KnowTTL
	d.extensions(p, b[6], b[40:], total-40)
	return good
}

// extensions walks IPv6 extension headers, and decodes the transport behind them.
func (d *Decoder) extensions(p *wire.Packet, next byte, b []byte, n int) {
	for {
		var size int
		switch next {
		case ip6HopByHop, ip6Routing, ip6Destination, ip6Mobility, ip6HIP, ip6Shim6:
			if len(b) < 2 {
				d.drop(d.missing(2, n))
				return
			}
			size = int(b[1])*8 + 8
		case byte(wire.ProtoAH): // RFC 4302: its length counts words of four bytes, less two
			if len(b) < 2 {
				d.drop(d.missing(2, n))
				return
			}
			size = int(b[1])*4 + 8
		case ip6Fragment:
			if len(b) < 8 {
				d.drop(d.missing(8, n))
				return
			}
			p.IPID = be16(b[6:])
			p.Known |= wire.KnowIPID
			// Offset and more-fragments both zero: an atomic fragment, which is whole (RFC 6946).
			if frag := be16(b[2:]); frag&0xfff9 != 0 {
				p.Attr |= wire.IsFragment
				if frag&0xfff8 != 0 {
					p.Attr |= wire.IsLaterFrag
					d.transport(p, b[0], b[8:], n-8)
					return
				}
			}
			size = 8
		default:
			d.transport(p, next, b, n)
			return
		}
		if len(b) < size {
			d.drop(d.missing(size, n))
			return
		}
		next, b, n = b[0], b[size:], n-size
	}
}
