package capture

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// unhex reads bytes as people write them: blanks and line breaks are nothing, # begins a comment.
func unhex(s string) []byte {
	var digits strings.Builder
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		panic(err)
	}
	return b
}

func cat(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func u16(v int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(v)) }
func u32(v int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// eth is an Ethernet frame.
func eth(etherType int, payload []byte) []byte {
	return cat(unhex("02 00 00 00 00 01  02 00 00 00 00 02"), u16(etherType), payload)
}

// vlan is a tag and what is behind it; its own EtherType stands before it.
func vlan(id, etherType int, payload []byte) []byte { return cat(u16(id), u16(etherType), payload) }

// ip4 is an IPv4 packet of TTL 63 and identification 0x1234.
func ip4(proto int, src, dst string, payload []byte) []byte {
	s, d := netip.MustParseAddr(src).As4(), netip.MustParseAddr(dst).As4()
	return cat(unhex("45 00"), u16(20+len(payload)), unhex("1234 4000 3f"), []byte{byte(proto)}, u16(0), s[:], d[:], payload)
}

// ip6 is an IPv6 packet of hop limit 63.
func ip6(next int, src, dst string, payload []byte) []byte {
	s, d := netip.MustParseAddr(src).As16(), netip.MustParseAddr(dst).As16()
	return cat(unhex("6000 0000"), u16(len(payload)), []byte{byte(next), 63}, s[:], d[:], payload)
}

func udp(src, dst int, payload []byte) []byte {
	return cat(u16(src), u16(dst), u16(8+len(payload)), u16(0), payload)
}

// tcp is a segment without options, of sequence number 1000, acknowledgement 2000 and window 500.
func tcp(src, dst int, flags wire.TCPFlags, payload []byte) []byte {
	return cat(u16(src), u16(dst), u32(1000), u32(2000), []byte{0x50, byte(flags)}, u16(500), u16(0), u16(0), payload)
}

// syn is a SYN with the options that Linux sends.
func syn(src, dst int) []byte {
	return cat(u16(src), u16(dst), u32(1000), u32(0), []byte{0xa0, byte(wire.SYN)}, u16(64240), u16(0), u16(0),
		unhex("0204 05b4  0402  080a 0000 0007 0000 0000  01  0303 07"))
}

func echo(kind, id, seq int, data []byte) []byte {
	return cat([]byte{byte(kind), 0}, u16(0), u16(id), u16(seq), data)
}

// inner is the packet that most tunnels in the tests carry.
func inner() []byte { return ip4(6, "10.4.0.7", "192.0.2.9", syn(41000, 443)) }

func inner6() []byte { return ip6(6, "fd00::7", "2001:db8::9", syn(41000, 443)) }

const (
	innerTuple  = "tcp 10.4.0.7:41000 > 192.0.2.9:443"
	inner6Tuple = "tcp [fd00::7]:41000 > [2001:db8::9]:443"
)
