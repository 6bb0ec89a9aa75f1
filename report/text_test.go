package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture/wire"
)

var update = flag.Bool("update", false, "write the goldens instead of comparing with them")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (-want +got); go test ./report -update, then git diff\n%s", path, d)
	}
}

func text(t testing.TB, rec *Record, opt TextOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteText(&b, rec, opt); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var tool = Tool{Version: "0.1.0", Args: []string{"analyze", "before.pcap", "--pod-cidr", "172.16.0.0/16", "--node-ip", "10.10.0.3"}}

func TestGoldenText(t *testing.T) {
	skipped := func(k wire.Skip, n uint64) [wire.NumSkips]uint64 {
		var s [wire.NumSkips]uint64
		s[k] = n
		return s
	}
	for _, tc := range []struct {
		name string
		res  *analyze.Result
		opt  TextOptions
	}{
		{"before", before(t), TextOptions{}},
		{"before-80", before(t), TextOptions{Width: 80}},
		{"before-verbose", before(t), TextOptions{Verbose: true}},
		{"before-all", before(t), TextOptions{ShowAll: true}},
		{"before-colour", before(t), TextOptions{Colour: true}},
		{"after", after(t), TextOptions{}},
		{"after-80", after(t), TextOptions{Width: 80}},
		{"inside-pod", inside(t), TextOptions{}},
		{"busy", busy(100_000), TextOptions{}},
		{"busy-80", busy(100_000), TextOptions{Width: 80}},
		{"long", long(t), TextOptions{}},
		{"long-80", long(t), TextOptions{Width: 80}},
		{"hostile", hostile(t), TextOptions{Verbose: true}},
		{"damaged", damaged(t), TextOptions{}},
		{"unknown-variants", variants(1000), TextOptions{}},
		{"empty", empty(wire.Summary{Complete: true}), TextOptions{}},
		{"empty-cut", empty(wire.Summary{}), TextOptions{}},
		{"empty-arp", empty(wire.Summary{Complete: true, Frames: 7, Skipped: skipped(wire.SkipNotIP, 7)}), TextOptions{}},
		{"empty-snaplen", empty(wire.Summary{Complete: true, Frames: 7, SnapLen: 20, Skipped: skipped(wire.SkipTooShort, 7)}), TextOptions{}},
		{"empty-link-type", empty(wire.Summary{Complete: true, Frames: 1, Skipped: skipped(wire.SkipLinkType, 1)}), TextOptions{}},
		{"empty-malformed", empty(wire.Summary{Complete: true, Frames: 7, Skipped: skipped(wire.SkipMalformed, 7)}), TextOptions{}},
		{"empty-no-request", empty(wire.Summary{Complete: true, Frames: 7}), TextOptions{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			golden(t, tc.name+".txt", text(t, New(tc.res, tool), tc.opt))
		})
	}
}
