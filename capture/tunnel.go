package capture

import "github.com/srcproof/srcproof/capture/wire"

// IP protocols beside those that have a word in wire (IANA "Assigned Internet Protocol Numbers").
const (
	protoIGMP     = 2
	protoRSVP     = 46
	protoEIGRP    = 88
	protoOSPF     = 89
	protoEtherIP  = 97
	protoPIM      = 103
	protoVRRP     = 112
	protoISIS     = 124
	protoMPLS     = 137
	protoEthernet = 143
)

// otherProto decodes the IP protocols off the hot path: tunnels, authentication headers, UDP-Lite. What it does not know
// may hide anything, and is marked opaque.
func (d *Decoder) otherProto(p *wire.Packet, b []byte, n int) {
	i, inner := len(d.out)-1, n
	if p.Attr&wire.IsFragment != 0 {
		// The first fragment of a tunnel's packet: the inner lengths speak of more than is here. Its headers are here.
		inner = 0xffff
	}
	switch p.Tuple.Proto {
	case wire.ProtoUDPLite: // RFC 3828: UDP's header, with a checksum's coverage in place of the length
		if !d.ports(p, b, n) {
			return
		}
		if len(b) < 8 {
			d.partial(p, 8, n)
			return
		}
		p.Known |= wire.KnowTransport
		if p.Attr&wire.IsFragment == 0 {
			payload(p, b[8:], n-8, true)
		}
	case wire.ProtoAH: // RFC 4302: next header, length in words less two
		if len(b) < 12 {
			d.drop(d.missing(12, n))
			return
		}
		size := int(b[1])*4 + 8
		if len(b) < size {
			d.drop(d.missing(size, n))
			return
		}
		if d.links++; d.links > maxLinks {
			d.drop(tooDeep)
			return
		}
		d.transport(p, b[0], b[size:], n-size)
	case wire.ProtoIPIP:
		d.carried(i, wire.TunnelIPIP, d.ip4(b, inner))
	case wire.ProtoIPv6:
		d.carried(i, wire.Tunnel6in4, d.ip6(b, inner))
	case wire.ProtoGRE:
		d.carried(i, wire.TunnelGRE, d.gre(b, inner))
	case protoEtherIP: // RFC 3378: version 3, twelve bits reserved
		if len(b) < 2 {
			d.carried(i, wire.TunnelOther, d.missing(2, inner))
			return
		}
		d.carried(i, wire.TunnelOther, d.innerEthernet(b[2:], inner-2))
	case protoEthernet: // RFC 8986
		d.carried(i, wire.TunnelOther, d.innerEthernet(b, inner))
	case protoMPLS: // RFC 4023
		d.carried(i, wire.TunnelOther, d.mpls(b, inner))
	case wire.ProtoESP:
		p.Attr |= wire.IsOpaque
		p.Tunnel = wire.TunnelESP
	case protoIGMP, protoRSVP, protoEIGRP, protoOSPF, protoPIM, protoVRRP, protoISIS, ip6NoNext:
		// Routers' own talk; no request is inside.
	default:
		p.Attr |= wire.IsOpaque
		p.Tunnel = wire.TunnelOther
	}
}

// carried books the carrier d.out[i] whose inside was decoded with verdict v. An inside that gave no packet though it
// may hold one makes the carrier opaque as well.
func (d *Decoder) carried(i int, kind wire.Tunnel, v verdict) {
	p := &d.out[i]
	p.Attr |= wire.IsCarrier
	p.Tunnel = kind
	switch v {
	case good:
		if len(d.out) == i+1 { // its headers did not reach the ports
			p.Attr |= wire.IsOpaque
			if d.cut {
				p.Attr |= wire.IsCut
			}
		}
	case notIP, unknown:
		d.skip(notIP)
	case short:
		p.Attr |= wire.IsOpaque | wire.IsCut
		d.skip(v)
	case sealed:
		p.Attr |= wire.IsOpaque
	case bad, tooDeep:
		p.Attr |= wire.IsOpaque
		d.skip(v)
	}
}

// UDP ports of tunnels (IANA "Service Name and Transport Protocol Port Number Registry"; 8472 is Linux's VXLAN port,
// which flannel and Cilium use).
const (
	portGTPU      = 2152
	portTeredo    = 3544
	portIPsecNAT  = 4500
	portGREUDP    = 4754
	portVXLAN     = 4789
	portVXLANGPE  = 4790
	portAYIYA     = 5072
	portGeneve    = 6081
	portMPLSUDP   = 6635
	portVXLANLnx  = 8472
	portWireGuard = 51820 // and 51821 (Calico's for IPv6), 51871 (Cilium)
)

// tunnelAt returns the tunnel that a UDP port is for, as far as nothing but the port is captured.
func tunnelAt(dst uint16) wire.Tunnel {
	switch dst {
	case portVXLAN, portVXLANLnx, portVXLANGPE:
		return wire.TunnelVXLAN
	case portGeneve:
		return wire.TunnelGeneve
	}
	return wire.TunnelNone
}

// udpTunnel decodes a UDP payload that is a tunnel's, and tells whether it was one. A port alone decides nothing: what
// is inside must be an IP header whose lengths fit, or a protocol that is known, or the packet is an ordinary one.
func (d *Decoder) udpTunnel(p *wire.Packet, b []byte, n int) bool {
	var (
		i    = len(d.out) - 1
		src  = p.Tuple.SrcPortOrEchoID
		dst  = p.Tuple.DstPortOrEchoID
		kind wire.Tunnel
		v    verdict
	)
	switch {
	case dst == portVXLAN || dst == portVXLANLnx:
		kind, v = wire.TunnelVXLAN, d.vxlan(b, n)
	case dst == portVXLANGPE:
		kind, v = wire.TunnelVXLAN, d.vxlanGPE(b, n)
	case dst == portGeneve:
		kind, v = wire.TunnelGeneve, d.geneve(b, n)
	case dst == portGTPU || src == portGTPU:
		kind, v = wire.TunnelGTPU, d.gtpu(b, n)
	case dst == portAYIYA || src == portAYIYA:
		kind, v = wire.TunnelAYIYA, d.ayiya(b, n)
	case dst == portGREUDP:
		kind, v = wire.TunnelGRE, d.gre(b, n)
	case dst == portMPLSUDP:
		kind, v = wire.TunnelOther, d.mpls(b, n)
	case dst == portIPsecNAT || src == portIPsecNAT:
		// RFC 3948: four zero bytes mark IKE, one 0xff byte a keepalive. SPIs to 255 are reserved, and ESP pads to four
		// bytes (RFC 4303 sections 2.1 and 2.4).
		if len(b) >= 4 && be32(b) > 255 && n >= 20 && n%4 == 0 {
			p.Attr |= wire.IsOpaque
			p.Tunnel = wire.TunnelESP
		}
		return false
	case isWireGuardPort(dst) || isWireGuardPort(src):
		if isWireGuard(b, n) {
			p.Attr |= wire.IsOpaque
			p.Tunnel = wire.TunnelWireGuard
		}
		return false
	case dst == portTeredo || src == portTeredo || isTeredo(b, n):
		kind, v = wire.TunnelTeredo, d.teredo(b, n)
	default:
		return false
	}
	if v == bad || v == unknown {
		return false
	}
	d.carried(i, kind, v)
	return true
}

// vxlan decodes VXLAN (RFC 7348 section 5), with the group policy extension's bits.
func (d *Decoder) vxlan(b []byte, n int) verdict {
	if len(b) < 8 {
		return d.missing(8+14, n)
	}
	if b[0]&^0x80 != 0x08 {
		return bad
	}
	return d.innerEthernet(b[8:], n-8)
}

// vxlanGPE decodes VXLAN's generic protocol extension (draft-ietf-nvo3-vxlan-gpe).
func (d *Decoder) vxlanGPE(b []byte, n int) verdict {
	if len(b) < 8 {
		return d.missing(8+14, n)
	}
	if b[0]&0x38 != 0x08 { // version 0, instance flag
		return bad
	}
	if b[0]&0x04 == 0 {
		return d.innerEthernet(b[8:], n-8)
	}
	return d.nextProtocol(b[3], b[8:], n-8)
}

// nextProtocol decodes behind VXLAN-GPE and NSH, which number their protocols alike.
func (d *Decoder) nextProtocol(t byte, b []byte, n int) verdict {
	switch t {
	case 1:
		return d.ip4(b, n)
	case 2:
		return d.ip6(b, n)
	case 3:
		return d.innerEthernet(b, n)
	case 4:
		return d.nsh(b, n)
	case 5:
		return d.mpls(b, n)
	}
	return unknown
}

// nsh decodes a network service header (RFC 8300 section 2.2).
func (d *Decoder) nsh(b []byte, n int) verdict {
	if d.links++; d.links > maxLinks {
		return tooDeep
	}
	if len(b) < 8 {
		return d.missing(8, n)
	}
	size := int(b[1]&0x3f) * 4
	if b[0]>>6 != 0 || size < 8 {
		return bad
	}
	if len(b) < size {
		return d.missing(size, n)
	}
	return d.nextProtocol(b[3], b[size:], n-size)
}

// geneve decodes Geneve and passes over its options (RFC 8926 section 3.4).
func (d *Decoder) geneve(b []byte, n int) verdict {
	if len(b) < 8 {
		return d.missing(8+20, n)
	}
	size := 8 + int(b[0]&0x3f)*4
	if b[0]>>6 != 0 || size > n {
		return bad
	}
	if len(b) < size {
		return d.missing(size, n)
	}
	t := be16(b[2:])
	b, n = b[size:], n-size
	switch t {
	case etherTEB:
		return d.innerEthernet(b, n)
	case etherIPv4, etherIPv6, etherMPLS, etherMPLSMult, etherNSH:
		return d.etherType(t, b, n)
	}
	return unknown
}

// gtpu decodes GTP-U version 1 (3GPP TS 29.281 section 5): user data only; the tunnel's own messages are ordinary.
func (d *Decoder) gtpu(b []byte, n int) verdict {
	if len(b) < 8 {
		return d.missing(8+20, n)
	}
	length := int(be16(b[2:]))
	if b[0]&0xf0 != 0x30 || b[1] != 255 || 8+length > n {
		return bad
	}
	flags := b[0]
	if b = b[8:]; len(b) > length {
		b = b[:length]
	}
	n = length
	if flags&7 != 0 { // sequence number, N-PDU number, type of the first extension header
		if len(b) < 4 {
			return d.missing(4, n)
		}
		next := b[3]
		if flags&4 == 0 {
			next = 0
		}
		for b, n = b[4:], n-4; next != 0; {
			if len(b) < 1 {
				return d.missing(1, n)
			}
			size := int(b[0]) * 4
			if size == 0 {
				return bad
			}
			if len(b) < size {
				return d.missing(size, n)
			}
			next, b, n = b[size-1], b[size:], n-size
		}
	}
	return d.innerIP(b, n)
}

// innerIP decodes what must be an IP packet, of either version.
func (d *Decoder) innerIP(b []byte, n int) verdict {
	if len(b) < 1 {
		return d.missing(1, n)
	}
	switch b[0] >> 4 {
	case 4:
		return d.ip4(b, n)
	case 6:
		return d.ip6(b, n)
	}
	return bad
}

// isTeredo recognises Teredo between two peers, whose ports are anything: an IPv6 packet that fills the datagram, or a
// bubble with something behind it, from or to the Teredo prefix 2001::/32 (RFC 4380 sections 2.6 and 2.8).
func isTeredo(b []byte, n int) bool {
	if len(b) < 40 || b[0]>>4 != 6 || be32(b[8:]) != 0x20010000 && be32(b[24:]) != 0x20010000 {
		return false
	}
	total := int(be16(b[4:])) + 40
	return total == n || total < n && b[6] == ip6NoNext
}

// teredo decodes Teredo (RFC 4380 section 5.1.1): authentication, origin, packet; trailers (RFC 6081) may follow.
func (d *Decoder) teredo(b []byte, n int) verdict {
	if len(b) >= 4 && be16(b) == 1 { // authentication: lengths of client identifier and value, nonce, confirmation
		size := 4 + int(b[2]) + int(b[3]) + 9
		if len(b) < size {
			return d.missing(size, n)
		}
		b, n = b[size:], n-size
	}
	if len(b) >= 8 && be16(b) == 0 { // origin: port and address
		b, n = b[8:], n-8
	}
	return d.ip6(b, n)
}

// ayiya decodes AYIYA (draft-massar-v6ops-ayiya-02 section 3).
func (d *Decoder) ayiya(b []byte, n int) verdict {
	if len(b) < 8 {
		return d.missing(8+20, n)
	}
	size := 8 + 1<<(b[0]>>4) + int(b[1]>>4)*4
	if size > n || b[2]&0x0f != 1 { // operation 1: forward
		return bad
	}
	next := wire.Proto(b[3])
	if len(b) < size {
		return d.missing(size, n)
	}
	switch next {
	case wire.ProtoIPIP:
		return d.ip4(b[size:], n-size)
	case wire.ProtoIPv6:
		return d.ip6(b[size:], n-size)
	}
	return unknown
}

func isWireGuardPort(p uint16) bool { return p == portWireGuard || p == portWireGuard+1 || p == 51871 }

// isWireGuard recognises WireGuard's four messages by type, reserved bytes and length (WireGuard paper, section 5.4).
func isWireGuard(b []byte, n int) bool {
	if len(b) < 4 || b[1]|b[2]|b[3] != 0 {
		return false
	}
	switch b[0] {
	case 1:
		return n == 148
	case 2:
		return n == 92
	case 3:
		return n == 64
	case 4:
		return n >= 32 && n%16 == 0
	}
	return false
}

// GRE protocol types that are no EtherTypes.
const (
	greERSPAN  = 0x88be // type I and II
	greERSPAN3 = 0x22eb
	greWCCP    = 0x883e
	greAruba   = 0x82 // upper byte: a wireless controller's 802.11 frames
)

// gre decodes GRE version 0 (RFC 1701, 2784, 2890) and PPTP's version 1 (RFC 2637 section 4.1).
func (d *Decoder) gre(b []byte, n int) verdict {
	if len(b) < 4 {
		return d.missing(4, n)
	}
	const checksum, routing, key, sequence, ack = 0x8000, 0x4000, 0x2000, 0x1000, 0x0080
	flags, proto := be16(b), be16(b[2:])
	size := 4
	switch flags & 7 {
	case 0:
		if flags&(checksum|routing) != 0 {
			size += 4
		}
		if flags&key != 0 {
			size += 4
		}
	case 1:
		if proto != etherPPP || flags&key == 0 {
			return bad
		}
		size += 4
		if flags&ack != 0 {
			size += 4
		}
	default:
		return bad
	}
	if flags&sequence != 0 {
		size += 4
	}
	if len(b) < size {
		return d.missing(size, n)
	}
	b, n = b[size:], n-size
	if flags&routing != 0 && flags&7 == 0 { // source route entries, until one of family and length zero
		for {
			if len(b) < 4 {
				return d.missing(4, n)
			}
			family, size := be16(b), 4+int(b[3])
			if len(b) < size {
				return d.missing(size, n)
			}
			b, n = b[size:], n-size
			if family == 0 && size == 4 {
				break
			}
		}
	}
	switch {
	case flags&7 == 1:
		if n == 0 { // an acknowledgement of its own
			return notIP
		}
		return d.ppp(b, n)
	case proto == etherTEB:
		return d.innerEthernet(b, n)
	case proto == greERSPAN: // type I has no header and no sequence number (draft-foschiano-erspan section 4.1)
		if size = 0; flags&sequence != 0 {
			size = 8
		}
		if len(b) < size {
			return d.missing(size, n)
		}
		return d.innerEthernet(b[size:], n-size)
	case proto == greERSPAN3: // an optional subheader of eight bytes
		if len(b) < 12 {
			return d.missing(12, n)
		}
		if size = 12; b[11]&1 != 0 {
			size = 20
		}
		if len(b) < size {
			return d.missing(size, n)
		}
		return d.innerEthernet(b[size:], n-size)
	case proto == greWCCP: // version 2 has a redirect header of four bytes
		if len(b) >= 4 && b[0]>>4 != 4 {
			b, n = b[4:], n-4
		}
		return d.innerIP(b, n)
	case proto>>8 == greAruba:
		return d.wlan(b, n)
	case proto == etherPPP:
		return d.ppp(b, n)
	case proto < 1536: // 0 is a keepalive
		return notIP
	}
	if d.links++; d.links > maxLinks {
		return tooDeep
	}
	return d.etherType(proto, b, n)
}
