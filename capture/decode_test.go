package capture

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srcproof/srcproof/capture/wire"
)

// decode decodes one frame that was not cut.
func decode(linkType uint32, frame []byte) ([]wire.Packet, *Decoder) {
	var d Decoder
	return d.Decode(nil, FrameMeta{Time: 1, Frame: 1, WireLen: uint32(len(frame))}, linkType, frame), &d
}

// plain removes what differs from process to process.
func plain(p wire.Packet) wire.Packet {
	p.Digest16, p.Digest64, p.DigestAll = 0, 0, 0
	return p
}

var addr = wire.MustAddr

func TestDecodeBytes(t *testing.T) {
	for _, c := range []struct {
		name  string
		link  uint32
		frame []byte
		want  wire.Packet
	}{
		{
			"a SYN with timestamps, on Ethernet", linkEthernet, unhex(`
			0200 0000 0001  0200 0000 0002  0800                       # Ethernet
			45 00 003c  abcd 4000  3f 06 0000  0a04 0007  c000 0209    # IPv4, TTL 63
			a028 01bb  0000 03e8  0000 0000  a0 02 faf0  0000 0000     # TCP, SYN
			0204 05b4  0402  080a 0000 0007 0000 0000  01  0303 07     # MSS, SACK, timestamps, NOP, window scale
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("10.4.0.7"), Dst: addr("192.0.2.9"), SrcPortOrEchoID: 41000, DstPortOrEchoID: 443, Proto: 6},
				Seq:   1000, TSVal: 7, IPID: 0xabcd, Window: 64240, MSS: 1460, TTL: 63, Flags: wire.SYN,
				SrcMAC: [6]byte{2, 0, 0, 0, 0, 2},
				Known:  wire.KnowIPID | wire.KnowTTL | wire.KnowTransport | wire.KnowOptions | wire.KnowTS | wire.KnowPayload,
			},
		},
		{
			"data behind IP options and the timestamps that every segment has, padding left out", linkEthernet, unhex(`
			0200 0000 0001  0200 0000 0002  0800                       # Ethernet
			46 00 003b  abcd 0000  40 06 0000  0a04 0007  c000 0209    # IPv4, six words
			9404 0000                                                  # router alert
			a028 01bb  0000 03e9  0000 07d1  80 18 01f6  0000 0000     # TCP, PSH ACK
			0101 080a 0000 0008 0000 0009                              # NOP, NOP, timestamps
			68 69 0a                                                   # "hi\n"
			00 00 00                                                   # Ethernet padding
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("10.4.0.7"), Dst: addr("192.0.2.9"), SrcPortOrEchoID: 41000, DstPortOrEchoID: 443, Proto: 6},
				Seq:   1001, Ack: 2001, TSVal: 8, TSEcr: 9, IPID: 0xabcd, Window: 502, TTL: 64, Flags: wire.PSH | wire.ACK, PayloadLen: 3,
				SrcMAC: [6]byte{2, 0, 0, 0, 0, 2},
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport | wire.KnowOptions | wire.KnowTS | wire.KnowPayload |
					wire.KnowDigest16 | wire.KnowDigest64,
			},
		},
		{
			"UDP over IPv6 behind hop-by-hop options, sent on an interface of an any capture", linkSLL2, unhex(`
			86dd 0000  0000 0003  0001 04 06  0200 0000 0002 0000      # SLL2: interface 3, Ethernet, sent
			6000 0000  0013 00 40  20010db8000000000000000000000001    # IPv6, hop-by-hop
			20010db8000000000000000000000002
			11 00 0502 0000 0100                                       # options: router alert, PadN; then UDP
			1388 0035  000b 0000                                       # UDP
			61 62 63                                                   # "abc"
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("2001:db8::1"), Dst: addr("2001:db8::2"), SrcPortOrEchoID: 5000, DstPortOrEchoID: 53, Proto: 17},
				TTL:   64, PayloadLen: 3, Dir: wire.DirOut, SrcMAC: [6]byte{2, 0, 0, 0, 0, 2},
				Known: wire.KnowTTL | wire.KnowTransport | wire.KnowPayload | wire.KnowDigest16 | wire.KnowDigest64 | wire.KnowDigestAll,
			},
		},
		{
			"an echo reply received on loopback, in the first cooked format", linkSLL, unhex(`
			0000 0304 0006  0000 0000 0000 0000  0800                  # SLL: to us, ARPHRD_LOOPBACK
			45 00 0020  0001 0000  40 01 0000  7f00 0001  7f00 0001    # IPv4
			00 00 0000  1234 0005                                      # echo reply, identifier, sequence number
			61 62 63 64                                                # data
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("127.0.0.1"), Dst: addr("127.0.0.1"), SrcPortOrEchoID: 0x1234, DstPortOrEchoID: 0x1234, Proto: 1, Query: 8},
				Seq:   5, IPID: 1, TTL: 64, PayloadLen: 4, Dir: wire.DirIn, Attr: wire.IsReply | wire.IsLoopbackIf,
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport | wire.KnowPayload | wire.KnowDigest16 | wire.KnowDigest64 | wire.KnowDigestAll,
			},
		},
		{
			"a port unreachable that quotes eight bytes of a SYN", linkRaw, unhex(`
			45 00 0038  0002 0000  40 01 0000  c000 0209  0a04 0007    # IPv4
			03 0d 0000  0000 0000                                      # administratively prohibited
			45 00 003c  abcd 4000  3e 06 0000  0a04 0007  c000 0209    # the quoted IPv4 header
			a028 01bb  0000 03e8                                       # ports and sequence number
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("10.4.0.7"), Dst: addr("192.0.2.9"), SrcPortOrEchoID: 41000, DstPortOrEchoID: 443, Proto: 6},
				Seq:   1000, IPID: 0xabcd, TTL: 64, ICMPType: 3, ICMPCode: 13, Attr: wire.IsError,
				ErrorFrom: addr("192.0.2.9"), ErrorTo: addr("10.4.0.7"),
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport,
			},
		},
		{
			"fragmentation needed, with the next hop's MTU", linkRaw12, unhex(`
			45 00 0038  0002 0000  40 01 0000  c000 0201  0a04 0007    # IPv4
			03 04 0000  0000 0514                                      # MTU 1300
			45 00 05dc  abcd 4000  3e 11 0000  0a04 0007  c000 0209    # the quoted IPv4 header
			a028 0035  05c8 0000                                       # ports, length
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("10.4.0.7"), Dst: addr("192.0.2.9"), SrcPortOrEchoID: 41000, DstPortOrEchoID: 53, Proto: 17},
				IPID:  0xabcd, TTL: 64, ICMPType: 3, ICMPCode: 4, MTU: 1300, Attr: wire.IsError,
				ErrorFrom: addr("192.0.2.1"), ErrorTo: addr("10.4.0.7"),
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport,
			},
		},
		{
			"packet too big that quotes an echo behind a fragment header", linkIPv6, unhex(`
			6000 0000  0040 3a 40  20010db8000000000000000000000001    # IPv6
			20010db8000000000000000000000002
			02 00 0000  0000 0500                                      # packet too big, MTU 1280
			6000 0000  0010 2c 3f  20010db8000000000000000000000002    # the quoted IPv6 header
			20010db8000000000000000000000009
			3a 00 0001  dead beef                                      # first fragment, more to come
			80 00 0000  1234 0005                                      # echo request
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("2001:db8::2"), Dst: addr("2001:db8::9"), SrcPortOrEchoID: 0x1234, DstPortOrEchoID: 0x1234, Proto: 58, Query: 128},
				Seq:   5, IPID: 0xbeef, TTL: 64, ICMPType: 2, MTU: 1280, Attr: wire.IsError,
				ErrorFrom: addr("2001:db8::1"), ErrorTo: addr("2001:db8::2"),
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport,
			},
		},
		{
			"an SCTP INIT", linkRaw, unhex(`
			45 00 0034  0003 0000  40 84 0000  0a04 0007  c000 0209    # IPv4
			a028 0b59  0000 0000  0000 0000                            # SCTP: ports, tag, checksum
			01 00 0014  1122 3344  0000 ffff  000a 000a  0000 0001     # INIT: initiate tag
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("10.4.0.7"), Dst: addr("192.0.2.9"), SrcPortOrEchoID: 41000, DstPortOrEchoID: 2905, Proto: 132},
				Seq:   0x11223344, IPID: 3, TTL: 64, Chunk: wire.ChunkInit,
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport | wire.KnowPayload,
			},
		},
		{
			"an SCTP acknowledgement bundled with data: the TSN and the payload are the data's", linkRaw, unhex(`
			45 00 0044  0003 0000  40 84 0000  0a04 0007  c000 0209    # IPv4
			a028 0b59  5566 7788  0000 0000                            # SCTP: ports, tag, checksum
			03 00 0010  0000 0001  0000 ffff  0000 0000                # SACK
			00 03 0014  0000 0009  0000 0000  0000 0000  61 62 63 64   # DATA: TSN 9, "abcd"
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("10.4.0.7"), Dst: addr("192.0.2.9"), SrcPortOrEchoID: 41000, DstPortOrEchoID: 2905, Proto: 132},
				Seq:   9, Ack: 0x55667788, IPID: 3, TTL: 64, Chunk: wire.ChunkSack, PayloadLen: 4,
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport | wire.KnowPayload | wire.KnowDigest16 | wire.KnowDigest64 | wire.KnowDigestAll,
			},
		},
		{
			"a later fragment has addresses and no ports", linkRaw14, unhex(`
			45 00 001c  0003 2001  40 11 0000  0a04 0007  c000 0209    # IPv4, offset 8, more to come
			dead beef dead beef
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("10.4.0.7"), Dst: addr("192.0.2.9"), Proto: 17},
				IPID:  3, TTL: 64, Attr: wire.IsFragment | wire.IsLaterFrag,
				Known: wire.KnowIPID | wire.KnowTTL,
			},
		},
		{
			"a first fragment has ports and the whole datagram's length", linkIPv4, unhex(`
			45 00 0024  0003 2000  40 11 0000  0a04 0007  c000 0209    # IPv4, more to come
			a028 0035  0810 0000                                       # UDP, 2064 bytes
			6162 6364 6566 6768
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("10.4.0.7"), Dst: addr("192.0.2.9"), SrcPortOrEchoID: 41000, DstPortOrEchoID: 53, Proto: 17},
				IPID:  3, TTL: 64, Attr: wire.IsFragment, PayloadLen: 2056,
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport | wire.KnowPayload,
			},
		},
		{
			"an atomic IPv6 fragment is whole", linkRaw, unhex(`
			6000 0000  0010 2c 40  20010db8000000000000000000000001    # IPv6
			20010db8000000000000000000000002
			11 00 0000  dead beef                                      # offset 0, no more
			1388 0035  0008 0000                                       # UDP
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("2001:db8::1"), Dst: addr("2001:db8::2"), SrcPortOrEchoID: 5000, DstPortOrEchoID: 53, Proto: 17},
				TTL:   64, IPID: 0xbeef,
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport | wire.KnowPayload,
			},
		},
		{
			"a first IPv6 fragment has ports", linkRaw, unhex(`
			6000 0000  0010 2c 40  20010db8000000000000000000000001    # IPv6
			20010db8000000000000000000000002
			11 00 0001  dead beef                                      # offset 0, more to come
			1388 0035  0808 0000                                       # UDP, 2056 bytes
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("2001:db8::1"), Dst: addr("2001:db8::2"), SrcPortOrEchoID: 5000, DstPortOrEchoID: 53, Proto: 17},
				TTL:   64, IPID: 0xbeef, Attr: wire.IsFragment, PayloadLen: 2048,
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport | wire.KnowPayload,
			},
		},
		{
			"a later IPv6 fragment has none", linkRaw, unhex(`
			6000 0000  0010 2c 40  20010db8000000000000000000000001    # IPv6
			20010db8000000000000000000000002
			11 00 0008  dead beef                                      # offset 8, the last
			1388 0035  0808 0000
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("2001:db8::1"), Dst: addr("2001:db8::2"), Proto: 17},
				TTL:   64, IPID: 0xbeef, Attr: wire.IsFragment | wire.IsLaterFrag,
				Known: wire.KnowIPID | wire.KnowTTL,
			},
		},
		{
			"a BSD loopback frame in the capturing host's byte order", linkNull, unhex(`
			0200 0000                                                  # AF_INET, little endian
			45 00 001c  0003 0000  40 11 0000  7f00 0001  7f00 0001    # IPv4
			1388 0035  0008 0000                                       # UDP
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("127.0.0.1"), Dst: addr("127.0.0.1"), SrcPortOrEchoID: 5000, DstPortOrEchoID: 53, Proto: 17},
				TTL:   64, IPID: 3,
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport | wire.KnowPayload,
			},
		},
		{
			"total length zero means all that is there", linkRaw, unhex(`
			45 00 0000  0003 0000  40 06 0000  0a04 0007  c000 0209    # IPv4, offload's length
			a028 01bb  0000 03e9  0000 07d1  50 10 01f6  0000 0000     # TCP
			61 62 63 64 65                                             # data
			`),
			wire.Packet{
				Tuple: wire.Tuple{Src: addr("10.4.0.7"), Dst: addr("192.0.2.9"), SrcPortOrEchoID: 41000, DstPortOrEchoID: 443, Proto: 6},
				Seq:   1001, Ack: 2001, IPID: 3, Window: 502, TTL: 64, Flags: wire.ACK, PayloadLen: 5,
				Known: wire.KnowIPID | wire.KnowTTL | wire.KnowTransport | wire.KnowOptions | wire.KnowPayload | wire.KnowDigest16 | wire.KnowDigest64,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, d := decode(c.link, c.frame)
			if len(got) != 1 {
				t.Fatalf("%d packets, skipped %v", len(got), d.Skipped)
			}
			c.want.Time, c.want.Frame, c.want.WireLen = 1, 1, uint32(len(c.frame))
			if diff := cmp.Diff(c.want, plain(got[0])); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// summary of what decoding gave, one line a packet: depth, tuple, marks.
func lines(packets []wire.Packet) string {
	var b strings.Builder
	for i := range packets {
		p := &packets[i]
		b.WriteString(strings.Repeat("  ", int(p.Depth)))
		b.WriteString(p.Tuple.String())
		if p.Is(wire.IsCarrier) {
			b.WriteString(" carrier")
		}
		if p.Is(wire.IsOpaque) {
			b.WriteString(" opaque")
		}
		if p.Attr&(wire.IsCarrier|wire.IsOpaque) != 0 {
			b.WriteString(" " + p.Tunnel.String())
		}
		if p.Is(wire.IsCut) {
			b.WriteString(" cut")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// tunnelCase is a frame and what it gives, in the form of lines.
type tunnelCase struct {
	name  string
	frame []byte
	want  string
}

func tunnelCases() []tunnelCase {
	outer := func(proto int, payload []byte) []byte {
		return eth(etherIPv4, ip4(proto, "198.51.100.1", "198.51.100.2", payload))
	}
	over := func(dst int, payload []byte) []byte { return outer(17, udp(50000, dst, payload)) }
	const from = " 198.51.100.1 > 198.51.100.2"
	const udpFrom = "udp 198.51.100.1:50000 > 198.51.100.2:"
	vxlan := unhex("08 000000 000001 00")
	arp := eth(etherARP, unhex("0001 0800 06 04 0001 020000000002 0a040007 000000000000 0a040001"))
	nested := inner()
	for range 20 {
		nested = ip4(4, "198.51.100.1", "198.51.100.2", nested)
	}
	return []tunnelCase{
		{"VXLAN on the assigned port", over(4789, cat(vxlan, eth(etherIPv4, inner()))), udpFrom + "4789 carrier vxlan\n  " + innerTuple + "\n"},
		{"VXLAN on Linux's port, VLAN inside", over(8472, cat(vxlan, eth(etherVLAN, vlan(7, etherIPv6, inner6())))), udpFrom + "8472 carrier vxlan\n  " + inner6Tuple + "\n"},
		{"VXLAN with a group policy", over(4789, cat(unhex("88 000007 000001 00"), eth(etherIPv4, inner()))), udpFrom + "4789 carrier vxlan\n  " + innerTuple + "\n"},
		{"VXLAN that carries ARP is a carrier of no request", over(4789, cat(vxlan, arp)), udpFrom + "4789 carrier vxlan\n"},
		{"DNS to VXLAN's port is no tunnel", over(4789, unhex("0800 0100 0001 0000 0000 0000 03777777 0765786d 706c6500 0001 0001")), udpFrom + "4789\n"},
		{"an inner IP header whose length does not fit is no tunnel", over(4789, cat(vxlan, eth(etherIPv4, append(inner()[:2:2], cat(u16(2000), inner()[4:])...)))), udpFrom + "4789\n"},
		{"an inner header of another version is no tunnel", over(8472, cat(vxlan, eth(etherIPv4, inner6()))), udpFrom + "8472\n"},
		{"an inner type that nobody knows is no tunnel", over(8472, cat(vxlan, eth(0x4242, inner()))), udpFrom + "8472\n"},
		{"VXLAN-GPE with IPv4", over(4790, cat(unhex("0c 0000 01 000001 00"), inner())), udpFrom + "4790 carrier vxlan\n  " + innerTuple + "\n"},
		{"VXLAN-GPE with NSH and Ethernet", over(4790, cat(unhex("0c 0000 04 000001 00  0006 01 03 000001ff 00000000 00000000 00000000 00000000"), eth(etherIPv4, inner()))), udpFrom + "4790 carrier vxlan\n  " + innerTuple + "\n"},
		{"Geneve with an option", over(6081, cat(unhex("01 00 6558 000001 00  0102 03 00"), eth(etherIPv4, inner()))), udpFrom + "6081 carrier geneve\n  " + innerTuple + "\n"},
		{"Geneve with IPv6 and no Ethernet", over(6081, cat(unhex("00 00 86dd 000001 00"), inner6())), udpFrom + "6081 carrier geneve\n  " + inner6Tuple + "\n"},
		{"GTP-U", over(2152, cat(unhex("30 ff"), u16(len(inner())), u32(1), inner())), udpFrom + "2152 carrier gtp-u\n  " + innerTuple + "\n"},
		{"GTP-U with a sequence number and an extension header", over(2152, cat(unhex("36 ff"), u16(len(inner())+8), u32(1), unhex("0001 00 85  01 1000 00"), inner())), udpFrom + "2152 carrier gtp-u\n  " + innerTuple + "\n"},
		{"GTP-U from its port to another", outer(17, udp(2152, 50000, cat(unhex("30 ff"), u16(len(inner())), u32(1), inner()))), "udp 198.51.100.1:2152 > 198.51.100.2:50000 carrier gtp-u\n  " + innerTuple + "\n"},
		{"GTP-U's echo is an ordinary packet", over(2152, unhex("32 01 0004 00000000 0001 0000")), udpFrom + "2152\n"},
		{"Teredo behind origin and authentication", over(3544, cat(unhex("0001 00 00 0102030405060708 00  0000 1234 01020304"), inner6())), udpFrom + "3544 carrier teredo\n  " + inner6Tuple + "\n"},
		{"Teredo between peers", over(3797, ip6(6, "2001:0:4137::1", "2001:db8::9", syn(41000, 443))), udpFrom + "3797 carrier teredo\n  tcp [2001:0:4137::1]:41000 > [2001:db8::9]:443\n"},
		{"IPv6 on any port, not of Teredo's prefix", over(3797, inner6()), udpFrom + "3797\n"},
		{"AYIYA", over(5072, cat(unhex("42 52 11 29 00000000"), make([]byte, 16+20), inner6())), udpFrom + "5072 carrier ayiya\n  " + inner6Tuple + "\n"},
		{"GRE in UDP", over(4754, cat(unhex("0000 0800"), inner())), udpFrom + "4754 carrier gre\n  " + innerTuple + "\n"},
		{"MPLS in UDP", over(6635, cat(unhex("00064 1 40"), inner())), udpFrom + "6635 carrier other\n  " + innerTuple + "\n"},
		{"ESP in UDP", over(4500, cat(u32(0x1000), u32(1), make([]byte, 40))), udpFrom + "4500 opaque esp\n"},
		{"a length that no ESP has", over(4500, cat(u32(0x1000), u32(1), make([]byte, 41))), udpFrom + "4500\n"},
		{"IKE on the same port", over(4500, cat(u32(0), make([]byte, 40))), udpFrom + "4500\n"},
		{"WireGuard's handshake", over(51820, cat(unhex("01000000"), make([]byte, 144))), udpFrom + "51820 opaque wireguard\n"},
		{"another length on WireGuard's port", over(51820, cat(unhex("01000000"), make([]byte, 145))), udpFrom + "51820\n"},
		{"IP in IP", outer(4, inner()), "ipip" + from + " carrier ipip\n  " + innerTuple + "\n"},
		{"IPv6 in IPv4", outer(41, inner6()), "6in4" + from + " carrier 6in4\n  " + inner6Tuple + "\n"},
		{"IPv4 in IPv6", eth(etherIPv6, ip6(4, "2001:db8::1", "2001:db8::2", inner())), "ipip 2001:db8::1 > 2001:db8::2 carrier ipip\n  " + innerTuple + "\n"},
		{"GRE", outer(47, cat(unhex("0000 0800"), inner())), "gre" + from + " carrier gre\n  " + innerTuple + "\n"},
		{"GRE with checksum, key and sequence number", outer(47, cat(unhex("b000 86dd 00000000 00000001 00000002"), inner6())), "gre" + from + " carrier gre\n  " + inner6Tuple + "\n"},
		{"GRE with a source route", outer(47, cat(unhex("4000 0800 00000000  0800 00 04 0a040001  0000 00 00"), inner())), "gre" + from + " carrier gre\n  " + innerTuple + "\n"},
		{"GRE with Ethernet", outer(47, cat(unhex("2000 6558 00000001"), eth(etherIPv4, inner()))), "gre" + from + " carrier gre\n  " + innerTuple + "\n"},
		{"GRE with an MPLS label", outer(47, cat(unhex("0000 8847 00064140"), inner())), "gre" + from + " carrier gre\n  " + innerTuple + "\n"},
		{"ERSPAN type I", outer(47, cat(unhex("0000 88be"), eth(etherIPv4, inner()))), "gre" + from + " carrier gre\n  " + innerTuple + "\n"},
		{"ERSPAN type II", outer(47, cat(unhex("1000 88be 00000001 1001 0001 00000000"), eth(etherIPv4, inner()))), "gre" + from + " carrier gre\n  " + innerTuple + "\n"},
		{"ERSPAN type III with its subheader", outer(47, cat(unhex("1000 22eb 00000001 2001 0001 00000000 0000 0001 0000000000000000"), eth(etherIPv4, inner()))), "gre" + from + " carrier gre\n  " + innerTuple + "\n"},
		{"WCCP's redirect header", outer(47, cat(unhex("0000 883e 01020304"), inner())), "gre" + from + " carrier gre\n  " + innerTuple + "\n"},
		{"PPTP", outer(47, cat(unhex("3001 880b"), u16(len(inner())+4), u16(1), u32(1), unhex("ff03 0021"), inner())), "gre" + from + " carrier gre\n  " + innerTuple + "\n"},
		{"PPTP, encrypted", outer(47, cat(unhex("3001 880b 0020 0001 00000001  00fd"), make([]byte, 30))), "gre" + from + " carrier opaque gre\n"},
		{"PPTP's acknowledgement carries no request", outer(47, unhex("2081 880b 0000 0001 00000001")), "gre" + from + " carrier gre\n"},
		{"GRE's keepalive carries no request", outer(47, unhex("0000 0000")), "gre" + from + " carrier gre\n"},
		{"GRE with garbage inside may hide anything", outer(47, unhex("0000 0800 ffff ffff")), "gre" + from + " carrier opaque gre\n"},
		{"Ethernet in IP", outer(97, cat(unhex("3000"), eth(etherIPv4, inner()))), "ip-97" + from + " carrier other\n  " + innerTuple + "\n"},
		{"an authentication header is no tunnel", outer(51, cat(unhex("06 04 0000 00000001 00000002"), make([]byte, 12), syn(1, 2))), "tcp 198.51.100.1:1 > 198.51.100.2:2\n"},
		{"an authentication header between IPv6 extension headers", eth(etherIPv6, ip6(51, "fd00::7", "2001:db8::9", cat(unhex("3c 04 0000 00000001 00000002"), make([]byte, 12), unhex("0600 010400000000"), syn(1, 2)))), "tcp [fd00::7]:1 > [2001:db8::9]:2\n"},
		{"ESP", outer(50, make([]byte, 40)), "esp" + from + " opaque esp\n"},
		{"a protocol that nobody knows", outer(253, make([]byte, 40)), "ip-253" + from + " opaque other\n"},
		{"OSPF hides nothing", outer(89, make([]byte, 40)), "ip-89" + from + "\n"},
		{"two tunnels", outer(4, ip4(17, "203.0.113.1", "203.0.113.2", udp(50000, 4789, cat(vxlan, eth(etherIPv4, inner()))))), "ipip" + from + " carrier ipip\n  udp 203.0.113.1:50000 > 203.0.113.2:4789 carrier vxlan\n    " + innerTuple + "\n"},
		{"twenty tunnels are followed to the eighth header", eth(etherIPv4, nested), func() string {
			var b strings.Builder
			for i := range 8 {
				b.WriteString(strings.Repeat("  ", i) + "ipip" + from + " carrier ipip\n")
			}
			return strings.TrimSuffix(b.String(), "ipip\n") + "opaque ipip\n"
		}()},
		{"BIG TCP: inner total length zero", over(4789, cat(vxlan, eth(etherIPv4, append(inner()[:2:2], cat(u16(0), inner()[4:])...)))), udpFrom + "4789 carrier vxlan\n  " + innerTuple + "\n"},
	}
}

func TestTunnels(t *testing.T) {
	for _, c := range tunnelCases() {
		t.Run(c.name, func(t *testing.T) {
			got, d := decode(linkEthernet, c.frame)
			if diff := cmp.Diff(c.want, lines(got)); diff != "" {
				t.Errorf("skipped %v, -want +got:\n%s", d.Skipped, diff)
			}
		})
	}
}

func TestTooDeepIsCounted(t *testing.T) {
	for _, c := range tunnelCases() {
		_, d := decode(linkEthernet, c.frame)
		want := uint64(0)
		if strings.HasPrefix(c.name, "twenty") {
			want = 1
		}
		if d.Skipped[wire.SkipDepth] != want {
			t.Errorf("%s: %d too deep, want %d", c.name, d.Skipped[wire.SkipDepth], want)
		}
	}
}

func TestLinks(t *testing.T) {
	hdlc := cat(unhex("0f00 0800"), inner())
	amsduSub := func(payload []byte) []byte {
		b := cat(unhex("020000000001 020000000002"), u16(8+len(payload)), unhex("aaaa03 000000 0800"), payload)
		return append(b, make([]byte, (4-len(b)%4)%4)...)
	}
	le := func(v int) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(v)) }
	nflog := cat([]byte{2, 0, 0, 5}, le(8), le(1), unhex("0800 03 00"), le(4+len(inner())), le(9), inner())
	for _, c := range []struct {
		name  string
		link  uint32
		frame []byte
		want  string
		vlan  uint32
	}{
		{"one VLAN tag", linkEthernet, eth(etherVLAN, vlan(7, etherIPv4, inner())), innerTuple + "\n", 7},
		{"a priority tag is no VLAN", linkEthernet, eth(etherVLAN, vlan(0xe000, etherIPv4, inner())), innerTuple + "\n", 0},
		{"a priority tag inside a VLAN", linkEthernet, eth(etherQinQ, vlan(0x10, etherVLAN, vlan(0, etherIPv4, inner()))), innerTuple + "\n", 0x10},
		{"service tag and customer tag", linkEthernet, eth(etherQinQ, vlan(0x10, etherVLAN, vlan(0x20, etherIPv4, inner()))), innerTuple + "\n", 0x10<<12 | 0x20},
		{"three tags", linkEthernet, eth(etherQinQ1, vlan(1, etherVLAN, vlan(2, etherVLAN, vlan(3, etherIPv6, inner6())))), inner6Tuple + "\n", 1<<24 | 2<<12 | 3},
		{"VN-Tag around a VLAN tag", linkEthernet, eth(etherVNTag, cat(u32(0), u16(etherVLAN), vlan(9, etherIPv4, inner()))), innerTuple + "\n", 9},
		{"MPLS", linkEthernet, eth(etherMPLS, cat(unhex("00064040 00065140"), inner())), innerTuple + "\n", 0},
		{"MPLS pseudowire with a control word", linkEthernet, eth(etherMPLS, cat(unhex("00065140 00000000"), eth(etherIPv4, inner()))), innerTuple + "\n", 0},
		{"MPLS pseudowire without one", linkEthernet, eth(etherMPLS, cat(unhex("00065140"), eth(etherVLAN, vlan(5, etherIPv6, inner6())))), inner6Tuple + "\n", 5},
		{"PPPoE", linkEthernet, eth(etherPPPoE, cat(unhex("1100 0001"), u16(len(inner())+2), unhex("0021"), inner())), innerTuple + "\n", 0},
		{"SNAP", linkEthernet, eth(8+len(inner()), cat(unhex("aaaa03 000000 0800"), inner())), innerTuple + "\n", 0},
		{"backbone bridging", linkEthernet, eth(etherPBB, cat(u32(1), eth(etherIPv4, inner()))), innerTuple + "\n", 0},
		{"spanning tree is not IP", linkEthernet, eth(38, unhex("424203 0000000000")), "", 0},
		{"ARP is not IP", linkEthernet, eth(etherARP, make([]byte, 28)), "", 0},
		{"PPP with address and control", linkPPP, cat(unhex("ff03 0057"), inner6()), inner6Tuple + "\n", 0},
		{"PPP with a compressed protocol", linkPPP, cat(unhex("21"), inner()), innerTuple + "\n", 0},
		{"PPP in HDLC framing", linkPPPHDLC, cat(unhex("ff03 0021"), inner()), innerTuple + "\n", 0},
		{"Cisco HDLC as PPP", linkPPPHDLC, hdlc, innerTuple + "\n", 0},
		{"Cisco HDLC", linkCHDLC, hdlc, innerTuple + "\n", 0},
		{"PPP with direction", linkPPPDir, cat(unhex("01 0021"), inner()), innerTuple + "\n", 0},
		{"LOOP", linkLoop, cat(u32(24), inner6()), inner6Tuple + "\n", 0},
		{"NULL in network order", linkNull, cat(u32(2), inner()), innerTuple + "\n", 0},
		{"802.11 data", linkWLAN, cat(unhex("0802 0000 020000000001 020000000002 020000000003 0000 aaaa03 000000 0800"), inner()), innerTuple + "\n", 0},
		{"802.11, encrypted", linkWLAN, cat(unhex("0842 0000 020000000001 020000000002 020000000003 0000"), make([]byte, 60)), "", 0},
		{"802.11 aggregate", linkWLAN, cat(unhex("8802 0000 020000000001 020000000002 020000000003 0000 8000"), amsduSub(inner()), amsduSub(inner())), innerTuple + "\n" + innerTuple + "\n", 0},
		{"radiotap", linkRadiotap, cat(unhex("00 00 0900 00000000 00  0802 0000 020000000001 020000000002 020000000003 0000 aaaa03 000000 0800"), inner()), innerTuple + "\n", 0},
		{"PPI with Ethernet", linkPPI, cat(unhex("00 00 0800 01000000"), eth(etherIPv4, inner())), innerTuple + "\n", 0},
		{"NFLOG", linkNFLOG, nflog, innerTuple + "\n", 0},
		{"SLL with a VLAN tag", linkSLL, cat(unhex("0004 0001 0006 0200000000020000 8100"), vlan(6, etherIPv4, inner())), innerTuple + "\n", 6},
		{"SLL of a netlink socket is not IP", linkSLL, cat(unhex("0004 0338 0000 0000000000000000 0800"), inner()), "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, d := decode(c.link, c.frame)
			if diff := cmp.Diff(c.want, lines(got)); diff != "" {
				t.Fatalf("skipped %v, -want +got:\n%s", d.Skipped, diff)
			}
			if len(got) > 0 && got[0].VLAN != c.vlan {
				t.Errorf("VLAN %#x, want %#x", got[0].VLAN, c.vlan)
			}
			if want := uint64(1); c.want == "" && d.Skipped[wire.SkipNotIP] != want {
				t.Errorf("skipped %v, want one not IP", d.Skipped)
			}
		})
	}
}

// A VLAN tag more or less, or in another place, is another point.
func TestVLANStacksDiffer(t *testing.T) {
	seen := map[uint32][]int{}
	for _, stack := range [][]int{{}, {1}, {2}, {1, 2}, {2, 1}, {1, 1}, {1, 1, 2}, {1, 2, 1}, {2, 1, 1}, {1, 1, 1}, {1, 2, 1, 1}} {
		payload, t0 := inner(), etherIPv4
		for _, id := range slices.Backward(stack) {
			payload, t0 = vlan(id, t0, payload), etherVLAN
		}
		got, _ := decode(linkEthernet, eth(t0, payload))
		if other, ok := seen[got[0].VLAN]; ok {
			t.Errorf("stacks %v and %v are both %#x", stack, other, got[0].VLAN)
		}
		seen[got[0].VLAN] = stack
	}
}

func TestICMPQueries(t *testing.T) {
	for _, c := range []struct {
		proto, kind, query byte
		reply, id          bool
	}{
		{1, 8, 8, false, true},
		{1, 0, 8, true, true},
		{1, 13, 13, false, true},
		{1, 14, 13, true, true},
		{1, 15, 15, false, true},
		{1, 16, 15, true, true},
		{1, 17, 17, false, true},
		{1, 18, 17, true, true},
		{1, 9, 9, false, false},
		{1, 10, 10, false, false},
		{58, 128, 128, false, true},
		{58, 129, 128, true, true},
		{58, 130, 130, false, false},
		{58, 131, 130, true, false},
		{58, 132, 130, true, false},
		{58, 133, 133, false, false},
		{58, 134, 133, true, false},
		{58, 135, 135, false, false},
		{58, 136, 135, true, false},
		{58, 143, 143, false, false},
	} {
		message := echo(int(c.kind), 0x4242, 7, make([]byte, 16))
		frame := ip4(1, "10.4.0.7", "192.0.2.9", message)
		if c.proto == 58 {
			frame = ip6(58, "fd00::7", "2001:db8::9", message)
		}
		got, _ := decode(linkRaw, frame)
		if len(got) != 1 {
			t.Errorf("%d/%d: %d packets", c.proto, c.kind, len(got))
			continue
		}
		p, id := got[0], uint16(0)
		if c.id {
			id = 0x4242
		}
		if p.Tuple.Query != c.query || p.Is(wire.IsReply) != c.reply || p.Tuple.SrcPortOrEchoID != id || p.Tuple.DstPortOrEchoID != id ||
			p.ICMPType != c.kind || p.Is(wire.IsError) || !p.Has(wire.KnowTransport) {
			t.Errorf("%d/%d: %+v", c.proto, c.kind, p)
		}
	}
}

func TestICMPErrors(t *testing.T) {
	quoteTCP := ip4(6, "10.4.0.7", "192.0.2.9", syn(41000, 443))
	for _, c := range []struct {
		name  string
		quote []byte
		want  string
		known wire.Known
	}{
		{"a whole segment quoted", quoteTCP, innerTuple, wire.KnowTransport | wire.KnowIPID},
		{"eight bytes quoted", quoteTCP[:28], innerTuple, wire.KnowTransport | wire.KnowIPID},
		{"only ports quoted", quoteTCP[:24], innerTuple, wire.KnowIPID},
		{"only the header quoted", quoteTCP[:20], "tcp 10.4.0.7:0 > 192.0.2.9:0", wire.KnowIPID},
		{"half a header quoted", quoteTCP[:12], "icmp 192.0.2.1 > 10.4.0.7", 0},
		{"nothing quoted", nil, "icmp 192.0.2.1 > 10.4.0.7", 0},
		{"garbage quoted", unhex("ffff ffff ffff ffff"), "icmp 192.0.2.1 > 10.4.0.7", 0},
		{"an echo reply quoted", ip4(1, "10.4.0.7", "192.0.2.9", echo(0, 0x4242, 7, nil)), "icmp 10.4.0.7 > 192.0.2.9 id 16962", wire.KnowTransport | wire.KnowIPID},
		{"IPv6 quoted, extension headers first", ip6(0, "fd00::7", "2001:db8::9", cat(unhex("3c00 010400000000 0600 010400000000"), syn(41000, 443))), inner6Tuple, wire.KnowTransport},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := decode(linkRaw, ip4(1, "192.0.2.1", "10.4.0.7", cat([]byte{11, 0}, make([]byte, 6), c.quote)))
			if len(got) != 1 {
				t.Fatalf("%d packets", len(got))
			}
			p := got[0]
			if s := p.Tuple.String(); s != c.want || !p.Is(wire.IsError) || p.ErrorFrom != addr("192.0.2.1") || p.ErrorTo != addr("10.4.0.7") {
				t.Errorf("%s from %v to %v, want %s", s, p.ErrorFrom, p.ErrorTo, c.want)
			}
			if p.Known&^wire.KnowTTL != c.known {
				t.Errorf("known %b, want %b", p.Known, c.known)
			}
		})
	}
}

// Cutting a frame may hide facts, and never changes one.
func TestCutFramesKeepTheirFacts(t *testing.T) {
	frames := map[string][]byte{
		"TCP data":  eth(etherIPv4, ip4(6, "10.4.0.7", "192.0.2.9", tcp(41000, 443, wire.ACK|wire.PSH, bytes.Repeat([]byte("abcdefgh"), 12)))),
		"SYN":       eth(etherVLAN, vlan(5, etherIPv4, inner())),
		"UDP":       eth(etherIPv6, ip6(17, "fd00::7", "2001:db8::9", udp(5000, 53, bytes.Repeat([]byte("abcdefgh"), 12)))),
		"ICMP":      eth(etherIPv4, ip4(1, "10.4.0.7", "192.0.2.9", echo(8, 5, 6, make([]byte, 56)))),
		"ICMP err.": eth(etherIPv4, ip4(1, "192.0.2.1", "10.4.0.7", cat(make([]byte, 0), []byte{3, 1, 0, 0, 0, 0, 0, 0}, inner()))),
		"SCTP":      eth(etherIPv4, ip4(132, "10.4.0.7", "192.0.2.9", cat(u16(1), u16(2), u32(3), u32(0), unhex("0003 0014 00000009 00000000 00000000 61626364")))),
	}
	for _, c := range tunnelCases() {
		frames[c.name] = c.frame
	}
	for name, frame := range frames {
		whole, _ := decode(linkEthernet, frame)
		for n := range len(frame) {
			var d Decoder
			cut := d.Decode(nil, FrameMeta{Time: 1, Frame: 1, WireLen: uint32(len(frame))}, linkEthernet, frame[:n])
			if len(cut) > len(whole) {
				t.Errorf("%s cut to %d bytes: %d packets, whole it gives %d", name, n, len(cut), len(whole))
				continue
			}
			for i := range cut {
				c, w := cut[i], whole[i]
				// An error whose quote is cut is known to be an error, and no more.
				if c.Tuple != w.Tuple && !(c.Is(wire.IsError) && c.Is(wire.IsCut)) {
					t.Errorf("%s cut to %d bytes: %v, was %v", name, n, c.Tuple, w.Tuple)
				}
				// A tunnel that cannot be looked into is a datagram with a payload.
				if c.Known&^w.Known != 0 && w.Attr&wire.IsCarrier == 0 {
					t.Errorf("%s cut to %d bytes: knows %b, whole %b", name, n, c.Known, w.Known)
				}
				for _, f := range []struct {
					bit  wire.Known
					c, w any
				}{
					{wire.KnowDigest16, c.Digest16, w.Digest16},
					{wire.KnowDigest64, c.Digest64, w.Digest64},
					{wire.KnowDigestAll, c.DigestAll, w.DigestAll},
					{wire.KnowPayload, c.PayloadLen, w.PayloadLen},
					{wire.KnowTS, [2]uint32{c.TSVal, c.TSEcr}, [2]uint32{w.TSVal, w.TSEcr}},
					{wire.KnowIPID, c.IPID, w.IPID},
					{wire.KnowTTL, c.TTL, w.TTL},
				} {
					if c.Has(f.bit) && w.Has(f.bit) && f.c != f.w {
						t.Errorf("%s cut to %d bytes: fact %b is %v, was %v", name, n, f.bit, f.c, f.w)
					}
				}
				if c.Has(wire.KnowTransport) && !c.Is(wire.IsError) && (c.Seq != w.Seq || c.Ack != w.Ack || c.Flags != w.Flags || c.Window != w.Window) {
					t.Errorf("%s cut to %d bytes: transport differs", name, n)
				}
			}
		}
	}
}

// Cut inside the TCP header: ports where they are there, flags and options only where they are.
func TestCutInsideTCP(t *testing.T) {
	frame := eth(etherIPv4, inner())
	for n := 34; n < len(frame); n++ {
		var d Decoder
		got := d.Decode(nil, FrameMeta{WireLen: uint32(len(frame))}, linkEthernet, frame[:n])
		if d.CutFrames != 1 {
			t.Errorf("%d bytes: %d cut frames, want 1", n, d.CutFrames)
		}
		if n < 38 {
			if len(got) != 0 || d.Skipped[wire.SkipTooShort] != 1 {
				t.Errorf("%d bytes: %d packets, skipped %v", n, len(got), d.Skipped)
			}
			continue
		}
		if len(got) != 1 || !got[0].Is(wire.IsCut) || got[0].Tuple.String() != innerTuple {
			t.Fatalf("%d bytes: %s", n, lines(got))
		}
		if got[0].Has(wire.KnowTransport) != (n >= 50) || got[0].Has(wire.KnowOptions) {
			t.Errorf("%d bytes: knows %b", n, got[0].Known)
		}
	}
}

func TestMalformedHeadersAreCounted(t *testing.T) {
	short := inner()
	short[3] = 30 // total length: ten bytes of TCP
	noOptions := inner()
	noOptions[20+12] = 0xf0 // data offset behind the segment's end
	badOption := inner()
	badOption[40] = 2
	badOption[41] = 0 // an option of length zero
	for _, c := range []struct {
		name    string
		packet  []byte
		want    string
		known   wire.Known
		skipped uint64
	}{
		{"an IP header of four words", cat([]byte{0x44}, inner()[1:]), "", 0, 1},
		{"a TCP header that ends inside the IP packet", short, innerTuple + "\n", wire.KnowTTL | wire.KnowIPID, 1},
		{"a data offset behind the end keeps the flags", noOptions, innerTuple + "\n", wire.KnowTTL | wire.KnowIPID | wire.KnowTransport, 1},
		{"an option of length zero keeps the rest", badOption, innerTuple + "\n", wire.KnowTTL | wire.KnowIPID | wire.KnowTransport | wire.KnowPayload, 0},
	} {
		got, d := decode(linkIPv4, c.packet)
		if lines(got) != c.want || d.Skipped[wire.SkipMalformed] != c.skipped || d.CutFrames != 0 {
			t.Errorf("%s: %q, skipped %v, cut %d", c.name, lines(got), d.Skipped, d.CutFrames)
		}
		if len(got) > 0 && got[0].Known != c.known {
			t.Errorf("%s: knows %b, want %b", c.name, got[0].Known, c.known)
		}
	}
}

func TestDigests(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 8)
	segment := func(payload []byte) wire.Packet {
		got, _ := decode(linkRaw, ip4(6, "10.4.0.7", "192.0.2.9", tcp(1, 2, wire.ACK, payload)))
		return got[0]
	}
	long, other := segment(data), segment(data[:100])
	if long.Digest16 != other.Digest16 || long.Digest64 != other.Digest64 {
		t.Error("segments that begin alike have other digests")
	}
	if changed := segment(append([]byte("X"), data[1:]...)); changed.Digest16 == long.Digest16 || changed.Digest64 == long.Digest64 {
		t.Error("segments that differ have the same digest")
	}
	if changed := segment(append(append([]byte{}, data[:20]...), 'X')); changed.Digest16 != long.Digest16 {
		t.Error("the first sixteen bytes are the same, and their digest is not")
	}
	if long.Has(wire.KnowDigestAll) {
		t.Error("a segment has a digest of all of it")
	}
	if empty := segment(nil); empty.Known&(wire.KnowDigest16|wire.KnowDigest64) != 0 || !empty.Has(wire.KnowPayload) {
		t.Errorf("an empty segment knows %b", empty.Known)
	}
	datagram, _ := decode(linkRaw, ip4(17, "10.4.0.7", "192.0.2.9", udp(1, 2, data)))
	if !datagram[0].Has(wire.KnowDigestAll) {
		t.Error("a datagram has no digest of all of it")
	}
	// Across captures that cut differently: 16 bytes of payload are enough for the first digest.
	frame := ip4(6, "10.4.0.7", "192.0.2.9", tcp(1, 2, wire.ACK, data))
	var d Decoder
	cut := d.Decode(nil, FrameMeta{WireLen: uint32(len(frame))}, linkRaw, frame[:40+16])
	if !cut[0].Has(wire.KnowDigest16) || cut[0].Has(wire.KnowDigest64) || cut[0].Digest16 != long.Digest16 || cut[0].PayloadLen != 128 || d.CutFrames != 0 {
		t.Errorf("cut in its payload: %+v", cut[0])
	}
}

func TestSLL2InterfacesAreBounded(t *testing.T) {
	var d Decoder
	frame := func(index int) []byte {
		return cat(unhex("0800 0000"), u32(index), unhex("0001 00 06 0200000000020000"), inner())
	}
	for range 2 {
		for i := range 6000 {
			got := d.Decode(nil, FrameMeta{}, linkSLL2, frame(i))
			iface := d.Interfaces[got[0].Iface]
			if i < maxLinkIfaces && iface.Index != uint32(i) || i >= maxLinkIfaces && iface.Name != "other" {
				t.Fatalf("index %d is %+v", i, iface)
			}
		}
	}
	if len(d.Interfaces) != maxLinkIfaces+1 {
		t.Errorf("%d interfaces", len(d.Interfaces))
	}
	if n := d.Interfaces[maxLinkIfaces].Packets; n != 2*(6000-maxLinkIfaces) {
		t.Errorf("%d packets on the shared interface", n)
	}
	if n := d.Interfaces[17].Packets; n != 2 {
		t.Errorf("%d packets on interface 17", n)
	}
}

// Link-layer headers nested to the end of a 16 MiB frame must neither recurse without bound nor take long.
func TestNestedLinkLayers(t *testing.T) {
	for _, c := range []struct {
		name  string
		start int
		unit  []byte
		want  wire.Skip
	}{
		{"backbone bridging", etherPBB, cat(u32(1), eth(etherPBB, nil)), wire.SkipDepth},
		{"SNAP", 100, cat(unhex("aaaa03 000000 8100"), vlan(1, 50, nil)), wire.SkipDepth},
		{"VLAN tags", etherVLAN, vlan(1, etherVLAN, nil), wire.SkipMalformed},
		{"MPLS labels", etherMPLS, unhex("00064040"), wire.SkipMalformed},
		{"pseudowires", etherMPLS, cat(unhex("00065140 00000000"), eth(etherMPLS, nil)), wire.SkipDepth},
		{"service headers", etherNSH, unhex("0002 01 04 00000100"), wire.SkipDepth},
	} {
		got, d := decode(linkEthernet, eth(c.start, bytes.Repeat(c.unit, 1<<20/len(c.unit))))
		var want [wire.NumSkips]uint64
		want[c.want] = 1
		if len(got) != 0 || d.Skipped != want {
			t.Errorf("%s: %d packets, skipped %v, want one %v", c.name, len(got), d.Skipped, c.want)
		}
	}
}

// A carrier whose inside is cut may hide a request, and says so; so does the frame.
func TestCutCarriersAreOpaque(t *testing.T) {
	const outer = "udp 198.51.100.1:50000 > 198.51.100.2:4789 carrier "
	frame := eth(etherIPv4, ip4(17, "198.51.100.1", "198.51.100.2", udp(50000, 4789, cat(unhex("08 000000 000001 00"), eth(etherIPv4, inner())))))
	const vxlan = 14 + 20 + 8
	for n, want := range map[int]string{
		vxlan:                    outer + "opaque vxlan cut\n",
		vxlan + 7:                outer + "opaque vxlan cut\n",
		vxlan + 8 + 14 + 19:      outer + "opaque vxlan cut\n",
		vxlan + 8 + 14 + 20 + 3:  outer + "opaque vxlan cut\n",
		vxlan + 8 + 14 + 20 + 4:  outer + "vxlan\n  " + innerTuple + " cut\n",
		vxlan + 8 + 14 + 20 + 39: outer + "vxlan\n  " + innerTuple + " cut\n",
		vxlan + 8 + 14 + 20 + 40: outer + "vxlan\n  " + innerTuple + "\n",
	} {
		var d Decoder
		got := d.Decode(nil, FrameMeta{WireLen: uint32(len(frame))}, linkEthernet, frame[:n])
		if lines(got) != want || (d.CutFrames == 1) != strings.Contains(want, "cut") {
			t.Errorf("%d bytes, %d cut frames:\n%swant\n%s", n, d.CutFrames, lines(got), want)
		}
	}
}

func benchFrames() (links []uint32, frames [][]byte) {
	add := func(link uint32, frame []byte) {
		links, frames = append(links, link), append(frames, frame)
	}
	data := bytes.Repeat([]byte("payload "), 100)
	ts := func(payload []byte) []byte {
		return cat(u16(41000), u16(443), u32(1000), u32(2000), []byte{0x80, 0x10}, u16(500), u16(0), u16(0), unhex("0101 080a 00000001 00000002"), payload)
	}
	add(linkEthernet, eth(etherIPv4, ip4(6, "10.4.0.7", "192.0.2.9", ts(data))))
	add(linkEthernet, eth(etherIPv4, ip4(6, "192.0.2.9", "10.4.0.7", ts(nil))))
	add(linkSLL2, cat(unhex("0800 0000 00000003 0001 04 06 0200000000020000"), ip4(6, "10.4.0.7", "192.0.2.9", ts(data))))
	add(linkSLL2, cat(unhex("0800 0000 00000004 0001 00 06 0200000000020000"), inner()))
	add(linkEthernet, eth(etherIPv6, ip6(17, "fd00::7", "2001:db8::9", udp(5000, 53, data[:60]))))
	return links, frames
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	links, frames := benchFrames()
	for _, c := range tunnelCases() {
		links, frames = append(links, linkEthernet), append(frames, c.frame)
	}
	var d Decoder
	dst := make([]wire.Packet, 0, MaxPerFrame)
	if n := testing.AllocsPerRun(100, func() {
		for i, f := range frames {
			d.Decode(dst, FrameMeta{WireLen: uint32(len(f))}, links[i], f)
		}
	}); n != 0 {
		t.Errorf("%v allocations for %d frames", n, len(frames))
	}
}

func BenchmarkDecode(b *testing.B) {
	links, frames := benchFrames()
	var d Decoder
	dst := make([]wire.Packet, 0, MaxPerFrame)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f := frames[i]
		d.Decode(dst, FrameMeta{WireLen: uint32(len(f))}, links[i], f)
		if i++; i == len(frames) {
			i = 0
		}
	}
}
