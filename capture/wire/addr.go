package wire

import (
	"net/netip"
	"strconv"
)

// Addr is an IP address in 16 bytes; IPv4 is held as IPv4-mapped IPv6 (RFC 4291 section 2.5.5.2). It is comparable,
// holds no pointer and needs no family beside it: two captures' addresses can be compared as they are, and a flow
// table of them costs the garbage collector nothing. The zero value is "no address".
type Addr [16]byte

// AddrFrom4 returns the Addr of an IPv4 address in network byte order.
func AddrFrom4(b [4]byte) Addr {
	return Addr{10: 0xff, 11: 0xff, 12: b[0], 13: b[1], 14: b[2], 15: b[3]}
}

// AddrFrom returns the Addr of a netip address; zones are dropped, the zero netip.Addr gives the zero Addr.
func AddrFrom(a netip.Addr) Addr {
	if !a.IsValid() {
		return Addr{}
	}
	return Addr(a.As16())
}

// MustAddr parses an address and panics where it does not parse: for tests and tables.
func MustAddr(s string) Addr { return AddrFrom(netip.MustParseAddr(s)) }

// Is4 tells whether the address is an IPv4 address.
func (a Addr) Is4() bool {
	return a[10] == 0xff && a[11] == 0xff && [10]byte(a[:10]) == [10]byte{}
}

// IsValid tells whether the address is set. The unspecified IPv6 address :: cannot be told from "no address" and is
// reported as not valid: no packet that this tool judges is sent to or kept by it.
func (a Addr) IsValid() bool { return a != Addr{} }

// Netip returns the address as netip.Addr, IPv4 unmapped. The zero Addr gives ::.
func (a Addr) Netip() netip.Addr { return netip.AddrFrom16(a).Unmap() }

// IsMulticast tells whether the address is a multicast address (224.0.0.0/4, ff00::/8) or the IPv4 limited broadcast.
func (a Addr) IsMulticast() bool {
	if a.Is4() {
		return a[12]&0xf0 == 0xe0 || [4]byte(a[12:]) == [4]byte{255, 255, 255, 255}
	}
	return a[0] == 0xff
}

// IsLinkLocal tells whether the address never passes a router: 169.254.0.0/16 (RFC 3927), fe80::/10 and link-scope
// multicast (RFC 4291), and the unspecified addresses.
func (a Addr) IsLinkLocal() bool {
	if a.Is4() {
		return a[12] == 169 && a[13] == 254 || a[12] == 224 && a[13] == 0 && a[14] == 0 || [4]byte(a[12:]) == [4]byte{}
	}
	return a == Addr{} || a[0] == 0xfe && a[1]&0xc0 == 0x80 || a[0] == 0xff && a[1]&0x0f <= 2
}

// IsLoopback tells whether the address is in 127.0.0.0/8 or is ::1.
func (a Addr) IsLoopback() bool {
	if a.Is4() {
		return a[12] == 127
	}
	return a == Addr{15: 1}
}

// String returns the usual text form (RFC 5952 for IPv6), or the name that stands in the address's place.
func (a Addr) String() string {
	if name := a.Name(); name != "" {
		return name
	}
	return a.Netip().String()
}

// withPort returns "10.0.0.1:80", "[2001:db8::1]:80" or "host.example:80".
func (a Addr) withPort(port uint16) string {
	if name := a.Name(); name != "" {
		return name + ":" + strconv.Itoa(int(port))
	}
	return netip.AddrPortFrom(a.Netip(), port).String()
}

// Compare orders addresses by their 16 bytes.
func (a Addr) Compare(b Addr) int {
	for i := range a {
		if a[i] != b[i] {
			return int(a[i]) - int(b[i])
		}
	}
	return 0
}
