package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"testing/iotest"

	"github.com/srcproof/srcproof/capture/wire"
)

var fuzzLinks = []uint32{
	linkEthernet, linkSLL, linkSLL2, linkNull, linkLoop, linkRaw, linkIPv4, linkIPv6, linkPPP, linkPPPHDLC, linkPPPoE, linkCHDLC,
	linkPPPDir, linkWLAN, linkRadiotap, linkPPI, linkNFLOG, 9999,
}

// checkPacket returns what is wrong with a packet by wire's own rules.
func checkPacket(p *wire.Packet) string {
	hasPorts := p.Tuple.SrcPortOrEchoID|p.Tuple.DstPortOrEchoID != 0
	switch {
	case p.Is(wire.IsLaterFrag) && (hasPorts || !p.Is(wire.IsFragment)):
		return "a later fragment with ports, or that is no fragment"
	case p.Known&(wire.KnowDigest16|wire.KnowDigest64|wire.KnowDigestAll) != 0 && (!p.Has(wire.KnowPayload) || p.PayloadLen == 0):
		return "a digest of no payload"
	case p.Has(wire.KnowDigestAll) && (p.Tuple.Proto == wire.ProtoTCP || !p.Has(wire.KnowDigest16|wire.KnowDigest64)):
		return "a digest of all without its prefixes', or of a segment"
	case p.Has(wire.KnowDigest64) && !p.Has(wire.KnowDigest16):
		return "a long digest without the short one"
	case p.Is(wire.IsError) && !p.ErrorTo.IsValid() && !p.ErrorFrom.IsValid():
		return "" // :: to :: can be sent
	case !p.Is(wire.IsError) && (p.ErrorFrom.IsValid() || p.ErrorTo.IsValid() || p.MTU != 0):
		return "an error's fields on a packet that is none"
	case p.Is(wire.IsCarrier) && p.Tunnel == wire.TunnelNone, p.Tunnel != wire.TunnelNone && p.Attr&(wire.IsCarrier|wire.IsOpaque) == 0:
		return "a carrier without its kind, or a kind without a carrier"
	case !p.Has(wire.KnowTTL):
		return "no TTL"
	case p.Flags != 0 && !(p.Tuple.Proto == wire.ProtoTCP && p.Has(wire.KnowTransport)):
		return "flags that are not valid"
	case !p.Tuple.Proto.HasPorts() && !p.Tuple.Proto.IsICMP() && hasPorts:
		return "ports of a protocol without ports"
	}
	return ""
}

func FuzzDecode(f *testing.F) {
	links, frames := twinFrames()
	for i := range frames {
		for j, l := range fuzzLinks {
			if l == links[i] {
				f.Add(byte(j), uint16(0), frames[i])
			}
		}
	}
	for _, c := range tunnelCases() {
		f.Add(byte(0), uint16(0), c.frame)
		f.Add(byte(0), uint16(100), c.frame[:len(c.frame)*2/3])
	}
	f.Fuzz(func(t *testing.T, link byte, more uint16, frame []byte) {
		l := fuzzLinks[int(link)%len(fuzzLinks)]
		var d Decoder
		meta := FrameMeta{Time: 7, Frame: 9, WireLen: uint32(len(frame)) + uint32(more)}
		input := bytes.Clone(frame)
		got := d.Decode(make([]wire.Packet, 1, 2), meta, l, frame)[1:]
		if !bytes.Equal(input, frame) {
			t.Fatal("the frame was changed")
		}
		if len(got) > MaxPerFrame {
			t.Fatalf("%d packets", len(got))
		}
		for i := range got {
			p := &got[i]
			if s := checkPacket(p); s != "" {
				t.Fatalf("packet %d: %s: %+v", i, s, *p)
			}
			if p.Time != 7 || p.Frame != 9 || p.WireLen != meta.WireLen || int(p.Depth) >= MaxPerFrame {
				t.Fatalf("packet %d: %+v", i, *p)
			}
			if i > 0 && p.Depth > got[i-1].Depth+1 || i == 0 && p.Depth != 0 {
				t.Fatalf("packet %d at depth %d", i, p.Depth)
			}
		}
		if len(got) == 0 {
			sum := uint64(0)
			for _, n := range d.Skipped {
				sum += n
			}
			if sum == 0 {
				t.Fatal("no packets, and nothing counted")
			}
		}
		// The bytes that the frame lies in are reused: nothing may point into them.
		keep := append([]wire.Packet(nil), got...)
		clear(frame)
		for i := range keep {
			if keep[i] != got[i] {
				t.Fatal("a packet changed with the buffer")
			}
		}
		if more == 0 {
			for _, twin := range []uint32{linkEthernet, linkSLL, linkNull, linkPPP, linkIPv4, linkIPv6} {
				if twin != l {
					continue
				}
				if diff := sameAsSlow(l, input); diff != "" {
					t.Fatal(diff)
				}
			}
		}
	})
}

// fuzzReader reads an input to its end, twice, the second time a byte at a time: the same must come out.
func fuzzReader(t *testing.T, file []byte) {
	packets, sum, err := readAll(t, bytes.NewReader(file), Options{})
	var damage *DamageError
	if err != nil && !errors.Is(err, ErrNotCapture) && !errors.As(err, &damage) {
		t.Fatalf("%T: %v", err, err)
	}
	if (err == nil) != sum.Complete {
		t.Fatalf("complete %v with error %v", sum.Complete, err)
	}
	if damage != nil && (damage.Frame == 0 || damage.Offset < 0 || damage.Offset > int64(len(file)) && sum.Format != "" && !bytes.Contains([]byte(sum.Format), []byte("("))) {
		t.Fatalf("%+v", damage)
	}
	last := uint64(0)
	for i := range packets {
		p := &packets[i]
		if p.Frame < last || p.Frame == 0 {
			t.Fatalf("frame %d after %d", p.Frame, last)
		}
		last = p.Frame
		if int(p.Iface) >= len(sum.Interfaces) {
			t.Fatalf("interface %d of %d", p.Iface, len(sum.Interfaces))
		}
		if p.Time != wire.NoTime && (p.Time < sum.First || p.Time > sum.Last) {
			t.Fatalf("time %d outside %d to %d", p.Time, sum.First, sum.Last)
		}
	}
	again, sum2, err2 := readAll(t, iotest.OneByteReader(bytes.NewReader(file)), Options{})
	if len(again) != len(packets) || (err2 == nil) != (err == nil) || err != nil && err.Error() != err2.Error() || sum2.Frames != sum.Frames {
		t.Fatalf("a byte at a time: %d packets and %v, else %d and %v", len(again), err2, len(packets), err)
	}
	for i := range again {
		if again[i] != packets[i] {
			t.Fatalf("a byte at a time, packet %d: %+v, else %+v", i, again[i], packets[i])
		}
	}
}

func FuzzPcap(f *testing.F) {
	for _, o := range []order{binary.LittleEndian, binary.BigEndian} {
		for _, magic := range []uint32{0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34} {
			f.Add(pcapFile(o, magic, linkEthernet, 65535, records()...))
		}
		sll2 := cat(unhex("0800 0000 00000003 0001 04 06 0200000000020000"), inner())
		f.Add(pcapFile(o, 0xa1b2c3d4, linkSLL2, 0, record{1, 1, sll2, 1000}, record{2, 2, nil, 0}, record{0, 0, nil, 0}))
		f.Add(gz(pcapFile(o, 0xa1b2c3d4, linkRaw, 0, record{1, 1, inner(), 0})))
	}
	f.Fuzz(func(t *testing.T, file []byte) { fuzzReader(t, file) })
}

func FuzzPcapng(f *testing.F) {
	for _, o := range []order{binary.LittleEndian, binary.BigEndian} {
		f.Add(ngFile(o))
		f.Add(cat(shb(o), idb(o, linkSLL2, 0, option(o, 9, []byte{0x80 | 20})), epb(o, 0, 1, cat(unhex("0800 0000 00000003 0001 04 06 0200000000020000"), inner())), ngFile(o)))
	}
	f.Fuzz(func(t *testing.T, file []byte) { fuzzReader(t, file) })
}
