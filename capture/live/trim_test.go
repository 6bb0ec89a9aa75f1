package live

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/wire"
)

// Trim keeps the headers and KeptPayload bytes: the lengths are counted by hand.
func TestTrim(t *testing.T) {
	eth4 := "020000000001 020000000002 0800 "
	ip := func(proto string) string { return "4500 0400 0001 4000 40 " + proto + " 0000 ac10000d 0a14000a " }
	tcp := "a000 0050 00000001 00000000 8018 faf0 0000 0000 0101080a0000000100000002 " // 32 bytes
	udp := "a000 0035 0300 0000 "
	rest := strings.Repeat("61", 800)
	for _, tt := range []struct {
		name, frame string
		want        int
	}{
		{"TCP with timestamps", eth4 + ip("06") + tcp + rest, 14 + 20 + 32 + 16},
		{"TCP, shorter than what is kept", eth4 + ip("06") + tcp + "6162", 14 + 20 + 32 + 2},
		{"TCP, cut in its header", eth4 + ip("06") + "a000 0050 0000", 14 + 20 + 6},
		{"UDP", eth4 + ip("11") + udp + rest, 14 + 20 + 8 + 16},
		{"a VLAN tag", "020000000001 020000000002 8100 0064 0800 " + ip("11") + udp + rest, 14 + 4 + 20 + 8 + 16},
		{"IP options", eth4 + "4600 0400 0001 4000 40 11 0000 ac10000d 0a14000a 01010101 " + udp + rest, 14 + 24 + 8 + 16},
		{"a later fragment", eth4 + "4500 0400 0001 2010 40 11 0000 ac10000d 0a14000a " + rest, 14 + 20 + 16},
		{"ping", eth4 + ip("01") + "0800 0000 0007 0001 " + rest, 14 + 20 + 8 + 16},
		{"an ICMP error", eth4 + ip("01") + "0301 0000 0000 0000 " + rest, 14 + 20 + 8 + 128},
		{"IPv6 with a hop by hop header", "020000000001 020000000002 86dd 60000000 0300 00 40 fd000010000100000000000000000000d fd00001000200000000000000000000a " + rest, 0},
		{"VXLAN", eth4 + ip("11") + "a000 12b5 0300 0000 0800000000006400 " + eth4 + ip("06") + tcp + rest, 14 + 20 + 8 + 8 + 14 + 20 + 32 + 16},
		{"GRE with a key", eth4 + ip("2f") + "2000 0800 00000007 " + ip("11") + udp + rest, 14 + 20 + 8 + 20 + 8 + 16},
		{"IPIP", eth4 + ip("04") + ip("11") + udp + rest, 14 + 20 + 20 + 8 + 16},
		{"ARP", "020000000001 020000000002 0806 " + rest, 14 + 64},
		{"nothing", "", 0},
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(tt.frame, " ", ""))
		if tt.want == 0 && tt.name != "nothing" {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := Trim(LinkEthernet, b); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}

// What the analysis reads of a frame is in what Trim keeps: of every frame of the stored captures and of the corpus, whole and
// trimmed are decoded alike, but for payload behind what is kept.
func TestTrimKeepsWhatIsRead(t *testing.T) {
	files, _ := filepath.Glob("../../testdata/captures/*/*.pcap")
	corpus, _ := filepath.Glob("../../../shared/corpora/*/*.pcap")
	if len(corpus) == 0 {
		t.Log("not checked: the captures of the shared corpora (../shared is not there)")
	}
	frames := 0
	for _, name := range append(files, corpus...) {
		if strings.Contains(name, "teredo") || strings.Contains(name, "amsdu") {
			continue // between peers Teredo takes any port, and an A-MSDU holds several packets: Trim does not look for either
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var whole, cut capture.Decoder
		r, err := capture.NewReader(f, name, capture.Options{Filter: each(func(linkType uint32, frame []byte, wireLen int) {
			if linkType != LinkEthernet && linkType != LinkSLL2 && linkType != LinkRaw {
				return
			}
			if len(whole.Interfaces) == 0 {
				whole.AddInterface(wire.Interface{LinkType: linkType})
				cut.AddInterface(wire.Interface{LinkType: linkType})
			}
			meta := capture.FrameMeta{Frame: 1, WireLen: uint32(wireLen)}
			x := whole.Decode(nil, meta, linkType, frame)
			y := cut.Decode(nil, meta, linkType, frame[:Trim(linkType, frame)])
			for _, packets := range [][]wire.Packet{x, y} {
				for i := range packets {
					p := &packets[i]
					p.Digest64, p.DigestAll = 0, 0
					p.Known &^= wire.KnowDigest64 | wire.KnowDigestAll | wire.KnowDigest16
					p.Digest16 = 0
				}
			}
			if frames++; !slices.Equal(x, y) {
				t.Errorf("%s: a frame of %d bytes, %d kept:\n%+v\n%+v", name, len(frame), Trim(linkType, frame), x, y)
			}
		})})
		if err == nil {
			batch := make([]wire.Packet, 64)
			for err == nil {
				_, err = r.Read(batch)
			}
		}
		_ = f.Close()
	}
	if frames < 1500 {
		t.Errorf("%d frames compared", frames)
	}
	t.Logf("%d frames compared", frames)
}

// each is a filter that looks at every frame.
type each func(linkType uint32, frame []byte, wireLen int)

func (f each) Check(uint32) error { return nil }

func (f each) Match(linkType uint32, frame []byte, wireLen int) bool {
	f(linkType, frame, wireLen)
	return true
}

func writeFile(name string, b []byte) error { return os.WriteFile(name, b, 0o600) }
