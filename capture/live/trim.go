package live

import "encoding/binary"

// KeptPayload is how many bytes of payload Trim keeps behind the headers: what joins a datagram with its translation.
const KeptPayload = 16

// What Trim keeps of frames, or of layers, that it does not follow.
const (
	keptUnknown = 64  // not IP
	keptTunnel  = 160 // a tunnel that is not followed: two headers of IPv6 and one of TCP with options
	keptError   = 128 // an ICMP error quotes the packet that it is about, headers first
	maxLayers   = 6
)

// Trim returns how many bytes of a frame hold its headers and KeptPayload bytes behind them. Tunnels (VXLAN, Geneve, GRE,
// IPIP, 6in4) are followed: the packet inside has headers, too. What is not understood is kept up to a fixed length.
func Trim(linkType uint32, b []byte) int {
	at, kind := 0, uint16(0)
	switch {
	case linkType == LinkSLL2 && len(b) >= 20:
		at, kind = 20, binary.BigEndian.Uint16(b)
	case linkType == LinkEthernet && len(b) >= 14:
		at, kind = 14, binary.BigEndian.Uint16(b[12:])
	case linkType == LinkRaw && len(b) >= 1:
		kind = etherOfIP(b[0])
	}
	n := trimEther(b, at, kind, 0)
	return min(n, len(b))
}

func etherOfIP(first byte) uint16 {
	switch first >> 4 {
	case 4:
		return 0x0800
	case 6:
		return 0x86dd
	}
	return 0
}

// trimEther keeps what an EtherType begins at b[at:].
func trimEther(b []byte, at int, kind uint16, layers int) int {
	for (kind == 0x8100 || kind == 0x88a8) && at+4 <= len(b) { // VLAN tags
		kind = binary.BigEndian.Uint16(b[at+2:])
		at += 4
	}
	switch kind {
	case 0x8847, 0x8848, 0x8864: // MPLS, PPPoE sessions
		return at + keptTunnel
	}
	switch {
	case layers > maxLayers:
		return at + keptTunnel
	case kind == 0x0800 && at+20 <= len(b) && b[at]>>4 == 4:
		header := int(b[at]&15) * 4
		if binary.BigEndian.Uint16(b[at+6:])&0x1fff != 0 {
			return at + header + KeptPayload // a later fragment has no transport header
		}
		return trimTransport(b, at+header, b[at+9], layers)
	case kind == 0x86dd && at+40 <= len(b) && b[at]>>4 == 6:
		return trimIP6(b, at+40, b[at+6], layers)
	}
	return at + keptUnknown
}

// trimIP6 skips extension headers (RFC 8200 section 4).
func trimIP6(b []byte, at int, next byte, layers int) int {
	for range maxLayers {
		switch next {
		case 0, 43, 60: // hop by hop, routing, destination options
			if at+8 > len(b) {
				return at + keptUnknown
			}
			next, at = b[at], at+8+int(b[at+1])*8
		case 44: // fragment
			if at+8 > len(b) {
				return at + keptUnknown
			}
			if binary.BigEndian.Uint16(b[at+2:])&^7 != 0 {
				return at + 8 + KeptPayload
			}
			next, at = b[at], at+8
		default:
			return trimTransport(b, at, next, layers)
		}
	}
	return at + keptUnknown
}

func trimTransport(b []byte, at int, proto byte, layers int) int {
	rest := len(b) - at
	switch proto {
	case 6:
		if rest < 20 {
			return len(b)
		}
		return at + max(int(b[at+12]>>4)*4, 20) + KeptPayload
	case 17, 136:
		if rest < 8 {
			return len(b)
		}
		switch binary.BigEndian.Uint16(b[at+2:]) {
		case 4789, 8472: // VXLAN (RFC 7348), and the port that Linux had for it first
			if rest >= 8+8+14 {
				return trimEther(b, at+8+8+14, binary.BigEndian.Uint16(b[at+8+8+12:]), layers+1)
			}
		case 6081: // Geneve (RFC 8926)
			if rest >= 8+8 {
				inner := at + 8 + 8 + int(b[at+8]&0x3f)*4
				kind := binary.BigEndian.Uint16(b[at+8+2:])
				if kind == 0x6558 && inner+14 <= len(b) {
					return trimEther(b, inner+14, binary.BigEndian.Uint16(b[inner+12:]), layers+1)
				}
				return trimEther(b, inner, kind, layers+1)
			}
		}
		if isTunnelPort(binary.BigEndian.Uint16(b[at:])) || isTunnelPort(binary.BigEndian.Uint16(b[at+2:])) {
			return at + 8 + keptTunnel
		}
		return at + 8 + KeptPayload
	case 1, 58:
		if rest < 8 {
			return len(b)
		}
		if proto == 1 && (b[at] == 3 || b[at] == 4 || b[at] == 5 || b[at] == 11 || b[at] == 12) || proto == 58 && b[at] < 128 {
			return at + 8 + keptError
		}
		if proto == 58 && b[at] > 129 { // neighbour discovery: no payload
			return at + keptUnknown
		}
		return at + 8 + KeptPayload
	case 132: // SCTP: the common header, and as much as the first chunks that open or acknowledge take
		return at + 12 + keptTunnel
	case 47: // GRE (RFC 2784, 2890): the fields that its flags announce
		if rest < 4 {
			return len(b)
		}
		inner := at + 4
		for _, flag := range []byte{0x80, 0x20, 0x10} {
			if b[at]&flag != 0 {
				inner += 4
			}
		}
		kind := binary.BigEndian.Uint16(b[at+2:])
		if kind == 0x6558 && inner+14 <= len(b) {
			return trimEther(b, inner+14, binary.BigEndian.Uint16(b[inner+12:]), layers+1)
		}
		if kind != 0x0800 && kind != 0x86dd {
			return inner + keptTunnel
		}
		return trimEther(b, inner, kind, layers+1)
	case 4:
		return trimEther(b, at, 0x0800, layers+1)
	case 41:
		return trimEther(b, at, 0x86dd, layers+1)
	}
	return at + keptUnknown
}

// isTunnelPort tells whether a UDP port is of a tunnel that is not followed: GTP-U, Teredo, AYIYA, GRE in UDP, VXLAN-GPE.
func isTunnelPort(port uint16) bool {
	switch port {
	case 2152, 3544, 5072, 4754, 4790:
		return true
	}
	return false
}
