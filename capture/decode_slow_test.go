package capture

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/srcproof/srcproof/capture/wire"
)

// slowDecode is the decoder's slow twin: the outermost IP packet as gopacket's layers see it. ok is false where gopacket
// gives up, or decodes something that the twins are not compared for: it follows other tunnels and other protocols.
//
// NewPacket, not DecodingLayerParser: the latter leaves the previous packet's values in layers that a packet lacks. The
// link type goes through a uint8, so that there is no twin for SLL2.
func slowDecode(link uint32, frame []byte) (p wire.Packet, ok bool) {
	first := map[uint32]gopacket.Decoder{
		linkEthernet: layers.LayerTypeEthernet, linkSLL: layers.LayerTypeLinuxSLL, linkNull: layers.LayerTypeLoopback,
		linkPPP: layers.LayerTypePPP, linkIPv4: layers.LayerTypeIPv4, linkIPv6: layers.LayerTypeIPv6,
	}[link]
	packet := gopacket.NewPacket(frame, first, gopacket.DecodeOptions{})
	ip, v4 := false, false // v4: gopacket takes IPv6's extension headers for such behind IPv4 too
	for _, layer := range packet.Layers() {
		if len(layer.LayerContents()) == 0 && (layer.LayerType() != layers.LayerTypeICMPv6Echo || packet.ErrorLayer() != nil) {
			return p, false // a layer whose decoding failed is there all the same, half filled; ICMPv6Echo sets no contents
		}
		switch l := layer.(type) {
		case *layers.Ethernet:
			if ip {
				return p, ip
			}
			copy(p.SrcMAC[:], l.SrcMAC)
		case *layers.LinuxSLL:
			if l.AddrLen == 6 {
				copy(p.SrcMAC[:], l.Addr)
			}
			switch {
			case l.PacketType <= 3:
				p.Dir = wire.DirIn
			case l.PacketType == 4:
				p.Dir = wire.DirOut
			}
		case *layers.Dot1Q:
			if l.VLANIdentifier != 0 {
				p.VLAN = p.VLAN<<12 | uint32(l.VLANIdentifier)
			}
		case *layers.IPv4:
			if ip {
				return p, true
			}
			ip, v4 = true, true
			p.Tuple = wire.Tuple{Src: wire.AddrFrom4([4]byte(l.SrcIP)), Dst: wire.AddrFrom4([4]byte(l.DstIP)), Proto: wire.Proto(l.Protocol)}
			p.IPID, p.TTL = l.Id, l.TTL
			p.Known |= wire.KnowIPID | wire.KnowTTL
			if l.FragOffset != 0 || l.Flags&layers.IPv4MoreFragments != 0 {
				p.Attr |= wire.IsFragment
			}
			if l.FragOffset != 0 {
				p.Attr |= wire.IsLaterFrag
				return p, true
			}
		case *layers.IPv6:
			if ip {
				return p, true
			}
			ip = true
			p.Tuple = wire.Tuple{Src: wire.Addr(l.SrcIP), Dst: wire.Addr(l.DstIP), Proto: wire.Proto(l.NextHeader)}
			p.TTL = l.HopLimit
			p.Known |= wire.KnowTTL
		case *layers.IPv6HopByHop:
			p.Tuple.Proto = wire.Proto(l.NextHeader)
		case *layers.IPv6Routing:
			if v4 {
				return p, false
			}
			p.Tuple.Proto = wire.Proto(l.NextHeader)
		case *layers.IPv6Destination:
			if v4 {
				return p, false
			}
			p.Tuple.Proto = wire.Proto(l.NextHeader)
		case *layers.IPv6Fragment:
			if v4 {
				return p, false
			}
			p.Tuple.Proto = wire.Proto(l.NextHeader)
			p.IPID = uint16(l.Identification)
			p.Known |= wire.KnowIPID
			if l.FragmentOffset != 0 || l.MoreFragments {
				p.Attr |= wire.IsFragment
			}
			if l.FragmentOffset != 0 {
				p.Attr |= wire.IsLaterFrag
				return p, true
			}
			// gopacket follows no fragment further.
			return p, false
		case *layers.IPSecAH:
			p.Tuple.Proto = wire.Proto(l.NextHeader)
		case *layers.TCP:
			p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = uint16(l.SrcPort), uint16(l.DstPort)
			p.Seq, p.Ack, p.Window = l.Seq, l.Ack, l.Window
			p.Flags = wire.TCPFlags(l.Contents[13])
			p.Known |= wire.KnowTransport
			for _, o := range l.Options {
				switch {
				case o.OptionType == layers.TCPOptionKindTimestamps && len(o.OptionData) == 8:
					p.TSVal, p.TSEcr = binary.BigEndian.Uint32(o.OptionData), binary.BigEndian.Uint32(o.OptionData[4:])
					p.Known |= wire.KnowTS
				case o.OptionType == layers.TCPOptionKindMSS && len(o.OptionData) == 2 && l.SYN:
					p.MSS = binary.BigEndian.Uint16(o.OptionData)
				}
			}
			return p, true
		case *layers.UDP:
			p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = uint16(l.SrcPort), uint16(l.DstPort)
			p.Known |= wire.KnowTransport
			return p, true
		case *layers.SCTP:
			p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = uint16(l.SrcPort), uint16(l.DstPort)
			return p, true
		case *layers.ICMPv4:
			p.ICMPType, p.ICMPCode = l.TypeCode.Type(), l.TypeCode.Code()
			if isError := map[byte]bool{3: true, 4: true, 5: true, 11: true, 12: true}[p.ICMPType]; isError {
				p.Attr |= wire.IsError
				p.ErrorFrom, p.ErrorTo = p.Tuple.Src, p.Tuple.Dst
				return p, true
			}
			if p.ICMPType == layers.ICMPv4TypeEchoRequest || p.ICMPType == layers.ICMPv4TypeEchoReply {
				p.Tuple.Query = 8
				p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = l.Id, l.Id
				p.Seq = uint32(l.Seq)
			}
			return p, true
		case *layers.ICMPv6:
			p.ICMPType, p.ICMPCode = l.TypeCode.Type(), l.TypeCode.Code()
			if p.ICMPType >= 1 && p.ICMPType <= 4 {
				p.Attr |= wire.IsError
				p.ErrorFrom, p.ErrorTo = p.Tuple.Src, p.Tuple.Dst
				return p, true
			}
		case *layers.ICMPv6Echo:
			p.Tuple.Query = 128
			p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = l.Identifier, l.Identifier
			p.Seq = uint32(l.SeqNumber)
			return p, true
		case *layers.MPLS, *layers.PPPoE, *layers.LLC, *layers.SNAP, *layers.PPP, *layers.Loopback:
		default:
			return p, false
		}
	}
	return p, false
}

// sameAsSlow compares a frame's outermost packet with its slow twin's, field by field where both know it. It returns ""
// or the difference.
func sameAsSlow(link uint32, frame []byte) string {
	slow, ok := slowDecode(link, frame)
	if !ok {
		return ""
	}
	var d Decoder
	packets := d.Decode(nil, FrameMeta{WireLen: uint32(len(frame))}, link, frame)
	if len(packets) == 0 {
		return "" // stricter about lengths than gopacket, which decodes headers that lie outside their packet
	}
	fast := packets[0]
	var diff string
	check := func(what string, f, s any) {
		if f != s {
			diff += fmt.Sprintf("%s: fast %v, slow %v\n", what, f, s)
		}
	}
	const marks = wire.IsError | wire.IsFragment | wire.IsLaterFrag
	check("TTL", fast.TTL, slow.TTL)
	check("direction", fast.Dir, slow.Dir)
	check("MAC", fast.SrcMAC, slow.SrcMAC)
	if fast.VLAN < 1<<24 && slow.VLAN < 1<<24 {
		check("VLAN", fast.VLAN, slow.VLAN)
	}
	check("error", fast.Attr&wire.IsError, slow.Attr&wire.IsError)
	if slow.Is(wire.IsError) {
		check("error from", fast.ErrorFrom, slow.ErrorFrom)
		check("error to", fast.ErrorTo, slow.ErrorTo)
		check("ICMP type", [2]byte{fast.ICMPType, fast.ICMPCode}, [2]byte{slow.ICMPType, slow.ICMPCode})
		return diff // the tuple is the quoted packet's
	}
	check("marks", fast.Attr&marks, slow.Attr&marks)
	check("IPID", fast.IPID, slow.IPID)
	check("knows IPID", fast.Known&wire.KnowIPID, slow.Known&wire.KnowIPID)
	if slow.Tuple.Query == 0 {
		fast.Tuple.Query = 0
		if slow.Tuple.Proto.IsICMP() {
			slow.Tuple.SrcPortOrEchoID, slow.Tuple.DstPortOrEchoID = fast.Tuple.SrcPortOrEchoID, fast.Tuple.DstPortOrEchoID
			slow.Seq = fast.Seq
		}
	}
	check("tuple", fast.Tuple, slow.Tuple)
	if fast.Has(wire.KnowTransport) && slow.Has(wire.KnowTransport) {
		check("sequence number", fast.Seq, slow.Seq)
		check("acknowledgement", fast.Ack, slow.Ack)
		check("flags", fast.Flags, slow.Flags)
		check("window", fast.Window, slow.Window)
	}
	if fast.Has(wire.KnowOptions) {
		check("timestamps", fast.Known&wire.KnowTS, slow.Known&wire.KnowTS)
		check("timestamp value", [2]uint32{fast.TSVal, fast.TSEcr}, [2]uint32{slow.TSVal, slow.TSEcr})
		check("MSS", fast.MSS, slow.MSS)
	}
	return diff
}

// twinFrames are frames of the link types that have a twin.
func twinFrames() (links []uint32, frames [][]byte) {
	add := func(link uint32, f []byte) { links, frames = append(links, link), append(frames, f) }
	packets4 := [][]byte{
		inner(),
		ip4(6, "10.4.0.7", "192.0.2.9", tcp(41000, 443, wire.ACK|wire.PSH, []byte("GET / HTTP/1.0\r\n"))),
		ip4(17, "10.4.0.7", "192.0.2.9", udp(5000, 53, []byte("query"))),
		ip4(1, "10.4.0.7", "192.0.2.9", echo(8, 17, 3, make([]byte, 56))),
		ip4(1, "192.0.2.9", "10.4.0.7", echo(0, 17, 3, make([]byte, 56))),
		ip4(1, "192.0.2.1", "10.4.0.7", cat([]byte{3, 1, 0, 0, 0, 0, 0, 0}, inner())),
		ip4(132, "10.4.0.7", "192.0.2.9", cat(u16(1), u16(2), u32(3), u32(0), unhex("0003 0014 00000009 00000000 00000000 61626364"))),
		ip4(51, "10.4.0.7", "192.0.2.9", cat(unhex("06 04 0000 00000001 00000002"), make([]byte, 12), syn(1, 2))),
		cat(unhex("46 00 0034 0001 2000 40 06 0000 0a040007 c0000209 94040000"), tcp(1, 2, wire.SYN, make([]byte, 8))),
		cat(unhex("45 00 0028 0001 0010 40 06 0000 0a040007 c0000209"), tcp(1, 2, wire.SYN, nil)),
	}
	packets6 := [][]byte{
		inner6(),
		ip6(17, "fd00::7", "2001:db8::9", udp(5000, 53, []byte("query"))),
		ip6(58, "fd00::7", "2001:db8::9", echo(128, 17, 3, make([]byte, 8))),
		ip6(58, "fd00::1", "fd00::7", cat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, inner6())),
		ip6(0, "fd00::7", "2001:db8::9", cat(unhex("3c00 010400000000 0600 010400000000"), syn(1, 2))),
		ip6(43, "fd00::7", "2001:db8::9", cat(unhex("0602 0001 00000000 20010db8000000000000000000000001"), syn(1, 2))),
		ip6(44, "fd00::7", "2001:db8::9", cat(unhex("0600 0011 00001234"), syn(1, 2))),
	}
	for _, p := range packets4 {
		add(linkIPv4, p)
		add(linkEthernet, eth(etherIPv4, p))
		add(linkEthernet, eth(etherVLAN, vlan(5, etherVLAN, vlan(6, etherIPv4, p))))
		add(linkEthernet, eth(etherMPLS, cat(unhex("00064140"), p)))
		add(linkEthernet, eth(8+len(p), cat(unhex("aaaa03 000000 0800"), p)))
		add(linkSLL, cat(unhex("0004 0001 0006 0200000000020000 0800"), p))
		add(linkNull, cat(unhex("02000000"), p))
		add(linkPPP, cat(unhex("0021"), p))
	}
	for _, p := range packets6 {
		add(linkIPv6, p)
		add(linkEthernet, eth(etherIPv6, p))
		add(linkEthernet, eth(etherQinQ, vlan(5, etherIPv6, p)))
		add(linkSLL, cat(unhex("0000 0001 0006 0200000000020000 86dd"), p))
		add(linkPPP, cat(unhex("0057"), p))
	}
	return links, frames
}

func TestSameAsSlowTwin(t *testing.T) {
	links, frames := twinFrames()
	compared := 0
	for i, f := range frames {
		if _, ok := slowDecode(links[i], f); ok {
			compared++
		}
		if diff := sameAsSlow(links[i], f); diff != "" {
			t.Errorf("link type %d, %x:\n%s", links[i], f, diff)
		}
	}
	if compared < len(frames)*9/10 {
		t.Errorf("only %d of %d frames have a twin", compared, len(frames))
	}
	// And with bytes changed at random, by a seed that is always the same.
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		for i, f := range frames {
			g := append([]byte(nil), f...)
			for range 1 + rnd.IntN(3) {
				g[rnd.IntN(len(g))] = byte(rnd.IntN(256))
			}
			if diff := sameAsSlow(links[i], g); diff != "" {
				t.Fatalf("link type %d, %x:\n%s", links[i], g, diff)
			}
		}
	}
}
