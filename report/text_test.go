package report

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// checkText holds what is true of every text, whatever the record says.
func checkText(t testing.TB, rec *Record, opt TextOptions) {
	t.Helper()
	width := min(max(opt.Width, minWidth), maxWidth)
	if opt.Width == 0 {
		width = maxWidth
	}
	// What a record gives as a step may be a command, which is not broken.
	commands := make(map[string]bool)
	step := func(s string) {
		_, command := splitCommand(s)
		commands[Escape(command)] = true
	}
	for i := range rec.Findings {
		for _, s := range rec.Findings[i].Next {
			step(s)
		}
	}
	for i := range rec.Requests {
		for _, u := range rec.Requests[i].Unknown {
			step(string(u.Settle))
		}
	}
	got := string(text(t, rec, opt))
	for line := range strings.Lines(got) {
		line = strings.TrimSuffix(line, "\n")
		if i := strings.IndexFunc(line, hidden); i >= 0 {
			t.Errorf("%q holds %q at byte %d", line, line[i:], i)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("%q ends in blanks", line)
		}
		if columns(line) > width && !commands[line] {
			t.Errorf("%d columns of %d: %q", columns(line), width, line)
		}
	}
	opt.Colour = true
	coloured := string(text(t, rec, opt))
	if stripped := sgr.ReplaceAllString(coloured, ""); stripped != got {
		t.Errorf("with colour, escapes stripped, it differs\n%s", cmp.Diff(got, stripped))
	}
}

// sgr is a colour, and nothing else that a terminal obeys.
var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func TestTextOfRandomRecords(t *testing.T) {
	for seed := range uint64(80) {
		rec := randomRecord(seed)
		for _, opt := range []TextOptions{{}, {Width: 80}, {Width: 90, Verbose: true}, {ShowAll: true}} {
			checkText(t, rec, opt)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestTextOfCases(t *testing.T) {
	for name, res := range map[string]*analyze.Result{
		"before": before(t), "after": after(t), "inside": inside(t), "busy": busy(3000), "long": long(t), "hostile": hostile(t),
		"damaged": damaged(t), "variants": variants(100),
	} {
		t.Run(name, func(t *testing.T) {
			for _, opt := range []TextOptions{{}, {Width: 1}, {Width: 80}, {Width: 99}, {Width: 1000}, {Verbose: true}, {ShowAll: true}} {
				checkText(t, New(res, tool), opt)
			}
		})
	}
}

// TestColourIsPerWriter: two writers at one time may differ, and neither asks the environment.
func TestColourIsPerWriter(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	rec := New(before(t), tool)
	if !bytes.Contains(text(t, rec, TextOptions{Colour: true}), []byte("\x1b[")) {
		t.Error("colour was asked for, and there is none")
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("CLICOLOR_FORCE", "1")
	if bytes.Contains(text(t, rec, TextOptions{}), []byte("\x1b")) {
		t.Error("colour was not asked for, and there is some")
	}
}

func TestRows(t *testing.T) {
	short := func(rs []row) []string {
		var out []string
		for _, r := range rs {
			out = append(out, fmt.Sprintf("%s %s %d", r.source, r.outcome, r.count))
		}
		return out
	}
	flood := func(n int) *analyze.Result {
		res := busy(n)
		for i := range res.Requests {
			r := &res.Requests[i]
			r.Source, r.Outcome, r.StoppedAt, r.Findings = analyze.PodSourced, analyze.RequestOnly, analyze.StopUnknown, nil
			r.Client.Addr = wire.AddrFrom4([4]byte{172, byte(i >> 16), byte(i >> 8), byte(i)})
			r.Server.Port = uint16(i)
		}
		return res
	}
	for _, tc := range []struct {
		what string
		res  *analyze.Result
		want []string
	}{
		{"the odd ones come first, however few", busy(10_000), []string{
			"pod-sourced request-only 1", "node-snated refused 100", "node-snated handshake-completed 9899",
		}},
		{"a flood from everywhere to everywhere is one row", flood(30_000), []string{"pod-sourced request-only 30000"}},
	} {
		rs, left, _ := rows(New(tc.res, tool), maxRows, false)
		if got := short(rs); !slices.Equal(got, tc.want) || left != 0 {
			t.Errorf("%s: %q and %d left, want %q", tc.what, got, left, tc.want)
		}
	}
	rs, left, _ := rows(New(busy(500), tool), maxRows, true)
	if len(rs) != 500 || left != 0 {
		t.Errorf("all of 500 are %d rows and %d left", len(rs), left)
	}
	var sum uint64
	rec := randomRecord(5)
	rs, left, requests := rows(rec, 3, false)
	for _, r := range rs {
		sum += r.count
	}
	if len(rs) != 3 || left == 0 || sum+requests != uint64(len(rec.Requests)) {
		t.Errorf("%d rows with %d requests, %d rows with %d requests left, of %d", len(rs), sum, left, requests, len(rec.Requests))
	}
}

// TestFindingsAlike: what holds of many destinations is told once.
func TestFindingsAlike(t *testing.T) {
	res := before(t)
	one := res.Findings[0]
	res.Findings = nil
	for i := range 7 {
		f := one
		f.Observed = []string{fmt.Sprintf("3 SYN to 10.20.0.%d, no reply.", i), "The node's own request completed."}
		f.Requests = []int{i % 2}
		res.Findings = append(res.Findings, f)
	}
	golden(t, "findings-alike.txt", text(t, New(res, tool), TextOptions{}))
}

// TestEgressLine: what is said of the address must not contradict the verdict beside it.
func TestEgressLine(t *testing.T) {
	for _, tc := range []struct {
		source         analyze.Source
		client, egress wire.Addr
		want           string
	}{
		{analyze.PodSourced, pod, pod, "172.16.0.13:1, untranslated"},
		{analyze.NodeOwn, node, node, "10.10.0.3:1, untranslated"},
		{analyze.NodeSNATed, pod, node, "10.10.0.3:1, translated on the node"},
		{analyze.NodeSNATed, node, node, "10.10.0.3:1, translated on the node; the source before it is not in the capture"},
		{analyze.SourceUnknown, node, node, "10.10.0.3:1"},
	} {
		r := Request{Source: tc.source.String()}
		port := uint16(1)
		r.Client = Endpoint{Addr: tc.client.String(), Port: &port}
		r.Egress = &Endpoint{Addr: tc.egress.String(), Port: &port}
		if got := egressLine(&r); got != tc.want {
			t.Errorf("%v, %v as %v: %q, want %q", tc.source, tc.client, tc.egress, got, tc.want)
		}
	}
}

func TestExplain(t *testing.T) {
	docs := analyze.Codes()
	i := slices.IndexFunc(docs, func(d analyze.CodeDoc) bool { return d.Code == "pod-source-unanswered" })
	if i < 0 {
		t.Fatal("no such code")
	}
	var one, list bytes.Buffer
	if err := WriteExplain(&one, docs[i], TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if err := WriteExplainList(&list, docs, TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	// The sentences are analyze's and may change: what is held here is their form.
	for line := range strings.Lines(one.String() + list.String()) {
		if columns(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("wider than 80: %q", line)
		}
	}
	for _, want := range []string{"pod-source-unanswered\n", "\n  means     ", "\n  do        "} {
		if !strings.Contains(one.String(), want) {
			t.Errorf("no %q in\n%s", want, one.String())
		}
	}
	for _, d := range docs {
		if !strings.Contains("\n"+list.String(), "\n"+d.Code+" ") {
			t.Errorf("%s is not listed", d.Code)
		}
	}
}
