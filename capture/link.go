package capture

import "encoding/binary"

// otherLink decodes the link types off the hot path.
func (d *Decoder) otherLink(t uint32, b []byte, n int) verdict {
	switch t {
	case linkNull, linkLoop:
		return d.null(t, b, n)
	case linkSLL:
		return d.sll(b, n)
	}
	return notIP
}

// null decodes BSD loopback headers: an address family in the byte order of the host that captured (NULL) or of the
// network (LOOP).
func (d *Decoder) null(t uint32, b []byte, n int) verdict {
	if len(b) < 4 {
		return d.missing(4, n)
	}
	family := be32(b)
	if t == linkNull && family > 0xffff {
		family = binary.LittleEndian.Uint32(b)
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
	d.packetType(be16(b))
	if be16(b[4:]) == 6 {
		d.mac = [6]byte(b[6:12])
	}
	return d.cooked(be16(b[2:]), be16(b[14:]), b[16:], n-16)
}
