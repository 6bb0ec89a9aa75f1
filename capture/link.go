package capture

import (
	"encoding/binary"

	"github.com/srcproof/srcproof/capture/wire"
)

func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// otherLink decodes the link types off the hot path.
func (d *Decoder) otherLink(t uint32, b []byte, n int) verdict {
	switch t {
	case linkNull, linkLoop:
		return d.null(t, b, n)
	case linkSLL:
		return d.sll(b, n)
	case linkPPP:
		return d.ppp(b, n)
	case linkPPPHDLC, linkCHDLC:
		return d.hdlc(b, n)
	case linkPPPoE:
		return d.pppoe(b, n)
	case linkPPPDir:
		if len(b) < 1 {
			return d.missing(1, n)
		}
		if b[0] == 0 {
			d.packetType(0)
		} else {
			d.packetType(4)
		}
		return d.ppp(b[1:], n-1)
	case linkWLAN:
		return d.wlan(b, n)
	case linkRadiotap:
		return d.radiotap(b, n)
	case linkPPI:
		return d.ppi(b, n)
	case linkNFLOG:
		return d.nflog(b, n)
	case linkEthernet:
		return d.ethernet(b, n)
	case linkRaw, linkRaw12, linkRaw14:
		return d.raw(b, n)
	case linkIPv4:
		return d.ip4(b, n)
	case linkIPv6:
		return d.ip6(b, n)
	}
	d.Skipped[wire.SkipLinkType]++
	return good
}

// null decodes BSD loopback headers: an address family in the byte order of the host that captured (NULL) or of the
// network (LOOP).
func (d *Decoder) null(t uint32, b []byte, n int) verdict {
	if len(b) < 4 {
		return d.missing(4, n)
	}
	family := be32(b)
	if t == linkNull && family > 0xffff {
		family = le32(b)
	}
	switch family {
	case 2:
		return d.ip4(b[4:], n-4)
	case 10, 23, 24, 28, 30: // AF_INET6 of Linux, Windows, NetBSD and OpenBSD, FreeBSD, Darwin
		return d.ip6(b[4:], n-4)
	}
	return notIP
}

// sll decodes a Linux cooked header of version 1: packet type, hardware type, address length, address, protocol.
func (d *Decoder) sll(b []byte, n int) verdict {
	if len(b) < 16 {
		return d.missing(16, n)
	}
	hardware := be16(b[2:])
	if hardware == arphrdLoopback {
		d.attr = wire.IsLoopbackIf
	}
	d.packetType(be16(b))
	if be16(b[4:]) == 6 {
		d.mac = [6]byte(b[6:12])
	}
	return d.cooked(hardware, be16(b[14:]), b[16:], n-16)
}

// PPP protocol numbers (IANA "PPP Numbers").
const (
	pppIPv4      = 0x0021
	pppIPv6      = 0x0057
	pppEncrypted = 0x0053
	pppLinkComp  = 0x00fb
	pppComp      = 0x00fd // compressed, or encrypted by MPPE (RFC 3078)
	pppMPLS      = 0x0281
	pppMPLSMult  = 0x0283
)

// ppp decodes PPP (RFC 1661), with or without address and control (RFC 1662), and with a compressed protocol field.
func (d *Decoder) ppp(b []byte, n int) verdict {
	if len(b) >= 2 && b[0] == 0xff && b[1] == 3 {
		b, n = b[2:], n-2
	}
	if len(b) < 1 {
		return d.missing(1, n)
	}
	proto, size := uint16(b[0]), 1
	if proto&1 == 0 {
		if len(b) < 2 {
			return d.missing(2, n)
		}
		proto, size = be16(b), 2
	}
	b, n = b[size:], n-size
	switch proto {
	case pppIPv4:
		return d.ip4(b, n)
	case pppIPv6:
		return d.ip6(b, n)
	case pppMPLS, pppMPLSMult:
		return d.mpls(b, n)
	case pppEncrypted, pppLinkComp, pppComp:
		return sealed
	}
	return notIP
}

// hdlc decodes PPP in HDLC framing, and Cisco's HDLC, whose address byte is another.
func (d *Decoder) hdlc(b []byte, n int) verdict {
	if len(b) < 4 {
		return d.missing(4, n)
	}
	if b[0] == 0x0f || b[0] == 0x8f {
		if t := be16(b[2:]); t >= 1536 {
			return d.etherType(t, b[4:], n-4)
		}
		return notIP
	}
	return d.ppp(b, n)
}

// pppoe decodes a PPPoE session packet (RFC 2516 section 4).
func (d *Decoder) pppoe(b []byte, n int) verdict {
	if len(b) < 6 {
		return d.missing(6, n)
	}
	if b[0] != 0x11 || b[1] != 0 {
		return notIP
	}
	length := int(be16(b[4:]))
	if b, n = b[6:], n-6; length < n {
		n = length
		b = b[:min(len(b), n)]
	}
	return d.ppp(b, n)
}

// mpls passes over a label stack (RFC 3032). Nothing says what is behind it: IP by its first four bits, if the lengths
// fit, else an Ethernet pseudowire with or without a control word (RFC 4448), if it looks like one.
func (d *Decoder) mpls(b []byte, n int) verdict {
	for bottom := false; !bottom; b, n = b[4:], n-4 {
		if len(b) < 4 {
			return d.missing(4, n)
		}
		bottom = b[2]&1 != 0
	}
	switch {
	case plausibleIP(b, n):
		return d.innerIP(b, n)
	case len(b) > 4 && be32(b) == 0 && plausibleEthernet(b[4:]): // the usual control word: nobody's address begins so
		return d.innerEthernet(b[4:], n-4)
	case plausibleEthernet(b):
		return d.innerEthernet(b, n)
	case len(b) > 4 && b[0]>>4 == 0 && plausibleEthernet(b[4:]): // a control word with flags or a sequence number
		return d.innerEthernet(b[4:], n-4)
	case len(b) == 0:
		return d.missing(1, n)
	case b[0]>>4 == 4 || b[0]>>4 == 6:
		return d.innerIP(b, n) // its lengths do not fit: say so
	}
	return unknown
}

// plausibleIP tells whether version, header length and total length fit, as far as they were captured.
func plausibleIP(b []byte, n int) bool {
	if len(b) == 0 {
		return false
	}
	switch b[0] >> 4 {
	case 4:
		header := int(b[0]&0x0f) * 4
		if header < 20 || header > n {
			return false
		}
		total := 0
		if len(b) >= 4 {
			total = int(be16(b[2:]))
		}
		return total == 0 || total >= header && total <= n
	case 6:
		return n >= 40 && (len(b) < 6 || int(be16(b[4:]))+40 <= n)
	}
	return false
}

// plausibleEthernet tells whether a frame of a known type begins here.
func plausibleEthernet(b []byte) bool {
	if len(b) < 15 {
		return false
	}
	switch t := be16(b[12:]); t {
	case etherIPv4:
		return b[14]>>4 == 4
	case etherIPv6:
		return b[14]>>4 == 6
	case etherVLAN, etherQinQ, etherMPLS:
		return true
	default:
		return knownEtherType(t)
	}
}

// knownEtherType tells whether a type that is not IP is one that links carry: the last check on what a tunnel holds.
func knownEtherType(t uint16) bool {
	switch t {
	case etherARP, etherRARP, etherPPPoED, etherEAPOL, etherLLDP, etherPTP, etherMACsec, etherLoop,
		0x809b, // AppleTalk
		0x8137, // IPX
		0x8808, // pause
		0x8809, // LACP and others
		0x8899, // Realtek
		0x88ca, // TIPC
		0x8902, // connectivity fault management
		0x8906, // FCoE
		0x8914: // FCoE initialisation
		return true
	}
	return false
}

// radiotap passes over a radiotap header (radiotap.org).
func (d *Decoder) radiotap(b []byte, n int) verdict {
	if len(b) < 8 {
		return d.missing(8, n)
	}
	size := int(le16(b[2:]))
	if b[0] != 0 || size < 8 {
		return bad
	}
	if len(b) < size {
		return d.missing(size, n)
	}
	return d.wlan(b[size:], n-size)
}

// wlan decodes an IEEE 802.11 data frame (IEEE 802.11-2020 section 9.3.2), aggregated ones included.
func (d *Decoder) wlan(b []byte, n int) verdict {
	if len(b) < 2 {
		return d.missing(2, n)
	}
	const data, nullData, qos = 0x08, 0x40, 0x80 // type and subtype bits of the first byte
	const toDS, fromDS, protected, order = 1, 2, 0x40, 0x80
	kind, flags := b[0], b[1]
	if kind&0x0f != data || kind&nullData != 0 {
		return notIP
	}
	if flags&protected != 0 {
		return sealed
	}
	size := 24
	if flags&(toDS|fromDS) == toDS|fromDS {
		size += 6
	}
	control := size
	if kind&qos != 0 {
		size += 2
		if flags&order != 0 {
			size += 4 // HT control
		}
	}
	if len(b) < size {
		return d.missing(size, n)
	}
	switch flags & (toDS | fromDS) {
	case 0, toDS:
		d.mac = [6]byte(b[10:16])
	case fromDS:
		d.mac = [6]byte(b[16:22])
	default:
		d.mac = [6]byte(b[24:30])
	}
	aggregated := kind&qos != 0 && b[control]&0x80 != 0
	b, n = b[size:], n-size
	if !aggregated {
		return d.llc(b, n)
	}
	return d.amsdu(b, n)
}

// amsdu decodes aggregated subframes: destination, source, length, then LLC, padded to four bytes but for the last.
func (d *Decoder) amsdu(b []byte, n int) verdict {
	result, depth := notIP, d.depth
	for len(b) > 0 {
		if len(b) < 14 {
			break
		}
		size := int(be16(b[12:]))
		if size == 0 || size > n-14 {
			break
		}
		d.mac = [6]byte(b[6:12])
		d.depth = depth
		switch v := d.llc(b[14:min(14+size, len(b))], size); {
		case v == good:
			result = good
		case result != good:
			result = v
		default:
			d.skip(v)
		}
		padded := (14 + size + 3) &^ 3
		if padded > len(b) {
			break
		}
		b, n = b[padded:], n-padded
	}
	return result
}

// ppi passes over a PPI header, which names the link type behind it (CACE PPI specification).
func (d *Decoder) ppi(b []byte, n int) verdict {
	if len(b) < 8 {
		return d.missing(8, n)
	}
	size, t := int(le16(b[2:])), le32(b[4:])
	if b[0] != 0 || size < 8 {
		return bad
	}
	if len(b) < size {
		return d.missing(size, n)
	}
	if d.links++; d.links > maxLinks {
		return tooDeep
	}
	if t == linkSLL2 { // its interface table is the outermost header's
		return notIP
	}
	return d.otherLink(t, b[size:], n-size)
}

// nflog decodes netfilter's log: family, version, group, then values, each with length and type in the order of the
// host that captured (linktypes/LINKTYPE_NFLOG; include/uapi/linux/netfilter/nfnetlink_log.h).
func (d *Decoder) nflog(b []byte, n int) verdict {
	if len(b) < 4 {
		return d.missing(4, n)
	}
	const packetHeader, hwaddr, packet = 1, 8, 9
	family := b[0]
	b, n = b[4:], n-4
	for len(b) >= 4 {
		size, kind := int(le16(b)), le16(b[2:])
		if kind > 0xff { // no type is that large: the host was big-endian
			size, kind = int(be16(b)), be16(b[2:])
		}
		if size < 4 || size > n {
			return bad
		}
		v := b[4:min(size, len(b))]
		switch kind & 0x7fff {
		case packetHeader: // protocol, hook: prerouting, input, forward, output, postrouting
			if len(v) >= 3 && v[2] <= 1 {
				d.packetType(0)
			} else if len(v) >= 3 && (v[2] == 3 || v[2] == 4) {
				d.packetType(4)
			}
		case hwaddr: // length, padding, address
			if len(v) >= 10 && be16(v) == 6 {
				d.mac = [6]byte(v[4:10])
			}
		case packet:
			switch family {
			case 2, 10: // AF_INET, AF_INET6
				return d.raw(v, size-4)
			}
			return notIP
		}
		padded := (size + 3) &^ 3
		if padded > len(b) {
			return d.missing(padded+4, n)
		}
		b, n = b[padded:], n-padded
	}
	if len(b) > 0 {
		return d.missing(4, n)
	}
	return notIP
}
