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
		{"neighbours", neighbourly(before(t), 3), TextOptions{}},
		{"neighbours-80", neighbourly(before(t), 3), TextOptions{Width: 80}},
		{"neighbours-all", neighbourly(before(t), 3), TextOptions{ShowAll: true}},
		{"neighbours-only", neighbourly(empty(wire.Summary{Complete: true, Frames: 9}), 3), TextOptions{}},
		{"far", far(t), TextOptions{}},
		{"far-80", far(t), TextOptions{Width: 80}},
		{"stopped", stopped(t), TextOptions{}},
		{"none-matches", noneMatches(t), TextOptions{}},
		{"filtered-all", empty(wire.Summary{Complete: true, Frames: 22, FilteredOut: 22, Notes: []string{"--filter tcp port 81 kept 0 of 22 packets"}}), TextOptions{}},
		{"filtered-arp", empty(wire.Summary{Complete: true, Frames: 9, FilteredOut: 2, Skipped: skipped(wire.SkipNotIP, 7)}), TextOptions{}},
		{"tunnels", tunnels(t), TextOptions{}},
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
		"damaged": damaged(t), "variants": variants(100), "neighbours": neighbourly(before(t), 3), "far": far(t), "stopped": stopped(t),
		"none matches": noneMatches(t), "tunnels": tunnels(t), "by address": byAddress(100),
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
		{analyze.NodeOwn, node, node, "10.10.0.3:1, the node's own, seen after any translation"},
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

// TestNeighbours: what is folded, and what is not.
func TestNeighbours(t *testing.T) {
	for _, tc := range []struct {
		what           string
		client, server string
		want           bool
	}{
		{"router solicitation", "fe80::1", "ff02::2", true},
		{"duplicate address detection", "::", "ff02::1:ff70:f323", true},
		{"mDNS", "172.16.0.13", "224.0.0.251", true},
		{"DHCP", "0.0.0.0", "255.255.255.255", true},
		{"neighbours on a link", "fe80::1", "fe80::2", true},
		{"a metadata server is asked by a Pod", "172.16.0.13", "169.254.169.254", false},
		{"a link-local client of a server", "fe80::1", "2001:db8::1", false},
		{"Pods on one node", "172.16.0.13", "172.16.0.14", false},
		{"no address", "pod", "server", false},
	} {
		r := Request{Client: Endpoint{Addr: tc.client}, Server: Endpoint{Addr: tc.server}}
		if got := betweenTwoNeighbours(&r); got != tc.want {
			t.Errorf("%s, %s > %s: %v", tc.what, tc.client, tc.server, got)
		}
	}
	res := neighbourly(before(t), 3)
	rec := New(res, tool)
	if main, near := apart(rec, false); len(main.Requests) != 3 || near != (neighbours{3, "local"}) || len(rec.Requests) != 6 {
		t.Errorf("%d requests and %v", len(main.Requests), near)
	}
	if main, near := apart(rec, true); main != rec || near.count != 0 {
		t.Errorf("with --all %v are folded", near)
	}
	res.Requests[5].Source = analyze.SourceUnknown
	if _, near := apart(New(res, tool), false); near != (neighbours{3, "..."}) {
		t.Errorf("of two sources: %v", near)
	}
	// What a finding calls trouble, and what was asked for, is not folded.
	res.Requests[5].Findings = []string{res.Findings[0].Code}
	if _, near := apart(New(res, tool), false); near.count != 2 {
		t.Errorf("one with a finding: %v", near)
	}
	res = neighbourly(empty(wire.Summary{Complete: true, Frames: 9}), 3)
	res.Asked, res.LeftOut = "icmp6 any > ff02::2", 1
	if main, near := apart(New(res, tool), false); len(main.Requests) != 3 || near.count != 0 {
		t.Errorf("asked for: %d requests and %v", len(main.Requests), near)
	}
}

// TestOneLineRows: a row with a place and IPv4 addresses of a usual length is one line.
func TestOneLineRows(t *testing.T) {
	for _, res := range []*analyze.Result{stopped(t), far(t)} {
		var got []string
		for line := range strings.Lines(string(text(t, New(res, tool), TextOptions{}))) {
			if strings.HasPrefix(line, "  node-snated ") || strings.HasPrefix(line, "  pod-sourced ") {
				got = append(got, line)
			}
		}
		if len(got) == 0 {
			t.Error("no row")
		}
		for _, line := range got {
			if !strings.Contains(line, "172.16.0.13") || !strings.Contains(line, "10.20.0.10:80") {
				t.Errorf("not on one line: %q", line)
			}
		}
	}
}

// TestPortsAreCounted: rows that differ only in the port are one where there are too many.
func TestPortsAreCounted(t *testing.T) {
	res := before(t)
	one := res.Requests[0]
	res.Requests = nil
	for i := range maxRows + 1 {
		r := one
		r.Server.Port = uint16(8000 + i)
		res.Requests = append(res.Requests, r)
	}
	got := string(text(t, New(res, tool), TextOptions{}))
	if want := "172.16.0.13 (pod)  172.16.0.13       10.20.0.10, 21 ports tcp\n"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	for i := range maxRows + 1 {
		r := res.Requests[i]
		r.Client.Addr = wire.MustAddr("172.16.0.14")
		res.Requests = append(res.Requests, r)
	}
	got = string(text(t, New(res, tool), TextOptions{}))
	if want := "172.16.0.14 (pod)  172.16.0.13       10.20.0.10, 21 ports tcp\n"; !strings.Contains(got, want) {
		t.Errorf("clients are not counted where ports can be: no %q in\n%s", want, got)
	}
	res.Requests = res.Requests[:12]
	got = string(text(t, New(res, tool), TextOptions{}))
	if want := "10.20.0.10:8011 tcp\n"; !strings.Contains(got, want) {
		t.Errorf("12 rows have room: no %q in\n%s", want, got)
	}
}

// TestTheirOwn: many Pods, each with its own address, are not a list of as many addresses.
func TestTheirOwn(t *testing.T) {
	res := before(t)
	one := res.Requests[0]
	res.Requests, res.Findings = nil, nil
	for i := range 904 {
		r := one
		a := wire.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)})
		r.Client.Addr, r.Egress = a, endp(a, 1, podRole)
		res.Requests = append(res.Requests, r)
	}
	got := string(text(t, New(res, tool), TextOptions{}))
	if want := "904 pods  their own         10.20.0.10:80 tcp\n"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	if strings.Contains(got, "\n  LEFT THE NODE AS") {
		t.Errorf("their own addresses are listed\n%s", got)
	}
	res.Requests[17].Egress = endp(node, 1, nodeRole)
	got = string(text(t, New(res, tool), TextOptions{}))
	if want := "904 pods  904 addresses     10.20.0.10:80 tcp\n"; !strings.Contains(got, want) {
		t.Errorf("one left with another: no %q in\n%s", want, got)
	}
}

// TestSourcesTable: only where it tells what the table of requests does not.
func TestSourcesTable(t *testing.T) {
	const head = "\n  LEFT THE NODE AS   REQUESTS  PACKETS\n"
	res := before(t)
	if got := string(text(t, New(res, tool), TextOptions{})); strings.Contains(got, head) {
		t.Errorf("Pods left with one address, and it is told twice\n%s", got)
	}
	res.Requests[1].Egress = &analyze.Endpoint{Addr: node, Role: nodeRole}
	got := string(text(t, New(res, tool), TextOptions{}))
	if !strings.Contains(got, head) {
		t.Errorf("Pods left with two addresses, and it is not told\n%s", got)
	}
	if strings.Index(got, head) < strings.Index(got, "\n  observed") {
		t.Errorf("before the findings\n%s", got)
	}
}

// TestBehind: a client of which only the node's address is in the capture is not called the client.
func TestBehind(t *testing.T) {
	res := before(t)
	r := &res.Requests[2]
	r.Source = analyze.NodeSNATed
	got := string(text(t, New(res, tool), TextOptions{}))
	if want := "  behind 10.10.0.3   10.10.0.3 "; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	got = string(text(t, New(res, tool), TextOptions{ShowAll: true}))
	if want := "  behind 10.10.0.3:50112 "; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

// TestUnknownIsNamed: the request if it is one, the addresses if texts differ in nothing else, and no step twice.
func TestUnknownIsNamed(t *testing.T) {
	res := before(t)
	res.Requests[1].Unknown = nil
	got := string(text(t, New(res, tool), TextOptions{}))
	if want := "  not known stopped_at: no far capture (tcp 172.16.0.13:43076 > 10.20.0.10:80)\n"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	if n := strings.Count(got, "srcproof compare"); n != 1 {
		t.Errorf("the step is told %d times\n%s", n, got)
	}
	res.Findings = nil
	got = string(text(t, New(res, tool), TextOptions{}))
	if n := strings.Count(got, "srcproof compare"); n != 1 {
		t.Errorf("without the finding, the step is told %d times\n%s", n, got)
	}

	res.Requests[1].Unknown = []analyze.Unknown{{Field: "outcome", Reason: "capture-ended", Text: "too short", Settle: res.Requests[0].Unknown[0].Settle}}
	got = string(text(t, New(res, tool), TextOptions{}))
	if n := strings.Count(got, "srcproof compare"); n != 1 {
		t.Errorf("for two unknowns, the step is told %d times\n%s", n, got)
	}

	for _, tc := range []struct {
		n    int
		want string
	}{
		{2, "whether 172.16.0.0 is a Pod's address (both requests, likewise 172.16.0.1)"},
		{3, "whether 172.16.0.0 is a Pod's address (all 3 requests, likewise 172.16.0.1 and 172.16.0.2)"},
		{100, "whether 172.16.0.0 is a Pod's address (all 100 requests, likewise 172.16.0.1, 172.16.0.2 and 97 more)"},
	} {
		got := strings.Join(strings.Fields(string(text(t, New(byAddress(tc.n), tool), TextOptions{}))), " ")
		if !strings.Contains(got, tc.want) || strings.Count(got, "not known") != 1 {
			t.Errorf("%d addresses: no %q in\n%s", tc.n, tc.want, got)
		}
	}
}

func TestAddressIn(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"10.20.0.10", "10.20.0.10"},
		{"10.20.0.10:80", "10.20.0.10:80"},
		{"'10.20.0.10,", "10.20.0.10"},
		{"(10.20.0.10).", "10.20.0.10"},
		{"fe80::1:", "fe80::1"},
		{"fe80::", "fe80::"},
		{"::", "::"},
		{"[2001:db8::1]:80", "[2001:db8::1]:80"},
		{"answer:", ""},
		{"...", ""},
		{"10.20.0", ""},
		{"", ""},
	} {
		if got, ok := addressIn(tc.in); got != tc.want || ok != (tc.want != "") {
			t.Errorf("%q: %q and %v, want %q", tc.in, got, ok, tc.want)
		}
	}
}

// TestMore: a finding leads to its explanation, unless its code could be something else in a shell.
func TestMore(t *testing.T) {
	res := before(t)
	if got := string(text(t, New(res, tool), TextOptions{})); !strings.Contains(got, "\n  more      srcproof explain pod-source-unanswered\n") {
		t.Errorf("nothing leads on\n%s", got)
	}
	for _, code := range []string{"x; curl evil", "$(id)", "-h", "a'b", "", "Code"} {
		res.Findings[0].Code = code
		if got := string(text(t, New(res, tool), TextOptions{})); strings.Contains(got, "srcproof explain") {
			t.Errorf("%q is a command\n%s", code, got)
		}
	}
}

// TestToldOnce: neither damage nor a note is told twice.
func TestToldOnce(t *testing.T) {
	res := damaged(t)
	c := &res.Captures[0]
	c.Summary.Notes, c.Notes = []string{"a note", "another note"}, []string{"a note"}
	res.Limits = append(res.Limits, "cut.pcap does not record drops", "cut.pcap does not record drops")
	got := string(text(t, New(res, tool), TextOptions{}))
	for _, s := range []string{"damaged", "a note", "does not record drops"} {
		if n := strings.Count(got, s); n != 1 {
			t.Errorf("%q is told %d times\n%s", s, n, got)
		}
	}
}

// TestNumberedInterfaces: one hint where interfaces have numbers for names.
func TestNumberedInterfaces(t *testing.T) {
	const hint = "\n  names     --links FILE (ip -o link on the node) names if2, if6, if7\n"
	res := before(t)
	res.Captures = append(res.Captures, res.Captures[0])
	res.Captures[0].Summary.Interfaces = slices.Clone(res.Captures[0].Summary.Interfaces)
	slices.Reverse(res.Captures[0].Summary.Interfaces)
	got := string(text(t, New(res, tool), TextOptions{}))
	if strings.Count(got, hint) != 1 {
		t.Errorf("not once %q in\n%s", hint, got)
	}
	for i := range res.Captures {
		res.Captures[i].InterfaceNames = []string{"eth0", "cni0", "veth7"}
	}
	if got := string(text(t, New(res, tool), TextOptions{})); strings.Contains(got, "--links") {
		t.Errorf("all have names\n%s", got)
	}
}

func TestLinkWords(t *testing.T) {
	for n, want := range map[uint32]string{1: "Ethernet", 104: "C_HDLC", 192: "PPI", 239: "NFLOG", 276: "SLL2", 147: "USER0", 162: "USER15", 9999: "link type 9999"} {
		if got := linkWord(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
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
	if err := WriteExplain(&one, docs[i:i+1], analyze.Words(), TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if err := WriteExplainList(&list, docs, analyze.Words(), TextOptions{Width: 80}); err != nil {
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
		if !strings.Contains(list.String(), "\n  "+d.Code+" ") {
			t.Errorf("%s is not listed", d.Code)
		}
	}
	for _, d := range analyze.Words() {
		if !strings.Contains(list.String(), "\n  "+d.Word+" ") {
			t.Errorf("%s is not listed", d.Word)
		}
		if g := groupWords(d.Group); !strings.Contains(one.String(), "\n"+d.Word+"\n"+g+"\n") || g == string(d.Group) {
			t.Errorf("%s of %s is not explained as %q", d.Word, d.Group, g)
		}
	}
}
