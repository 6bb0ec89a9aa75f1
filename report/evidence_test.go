package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// What evidence takes of a request is the same from a record as it was in the analysis, saved in between or not.
func TestRestore(t *testing.T) {
	restored := 0
	for name, res := range map[string]*analyze.Result{
		"before": before(t), "after": after(t), "inside": inside(t), "long": long(t), "far": far(t), "stopped": stopped(t), "tunnels": tunnels(t),
	} {
		rec := New(res, Tool{})
		var b bytes.Buffer
		if err := WriteJSON(&b, rec); err != nil {
			t.Fatal(err)
		}
		saved, err := Decode(&b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range res.Requests {
			in := &res.Requests[i]
			for _, r := range []*Request{&rec.Requests[i], &saved.Requests[i]} {
				out, err := r.restore()
				if err != nil {
					t.Errorf("%s, request %d: %v", name, i, err)
					continue
				}
				if d := cmp.Diff(in, out,
					cmpopts.IgnoreUnexported(analyze.Request{}),
					cmpopts.IgnoreFields(analyze.Request{}, "Reasons", "Joins", "Findings", "Opening", "Handshake"),
					cmpopts.IgnoreFields(analyze.Leg{}, "Points", "Tuple", "TTL"),
					cmpopts.IgnoreFields(analyze.FrameRef{}, "Iface", "Direction"),
					cmpopts.IgnoreFields(analyze.ICMPAnswer{}, "About", "FromRole", "MTU"),
					cmpopts.EquateEmpty(),
					cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Tuple" }, cmp.Comparer(func(a, b wire.Tuple) bool { return a.String() == b.String() })),
				); d != "" {
					t.Errorf("%s, request %d:\n%s", name, i, d)
				}
				restored++
			}
		}
	}
	if restored < 20 {
		t.Fatalf("%d requests restored", restored)
	}
}

// What no record has is refused.
func TestRestoreRefuses(t *testing.T) {
	for _, tt := range []struct {
		field string
		edit  func(r *Request)
	}{
		{"proto", func(r *Request) { r.Proto = "quic" }},
		{"source", func(r *Request) { r.Source = "pod" }},
		{"source_basis", func(r *Request) { r.SourceBasis = "" }},
		{"outcome", func(r *Request) { r.Outcome = "done" }},
		{"stopped_at", func(r *Request) { r.StoppedAt = "there" }},
		{"direction", func(r *Request) { r.Direction = "out" }},
		{"client", func(r *Request) { r.Client.Addr = "pod-1" }},
		{"server", func(r *Request) { r.Server.Addr = "fe80::1%eth0" }},
		{"egress", func(r *Request) { r.Egress.Addr = "" }},
		{"role", func(r *Request) { r.Client.Role = "Pod" }},
		{"leg", func(r *Request) { r.Frames[0].Leg = "far-side" }},
		{"icmp.from", func(r *Request) { r.ICMP = &ICMP{From: "a router"} }},
	} {
		r := New(after(t), Tool{}).Requests[0]
		r.Frames = append([]Frame{}, r.Frames...)
		tt.edit(&r)
		if _, err := r.restore(); err == nil || !strings.Contains(err.Error(), tt.field) {
			t.Errorf("%s: %v", tt.field, err)
		}
	}
}

// proved is the evidence of two moments made from results, as a record.
func proved(t *testing.T, before, after *analyze.Result, opt EvidenceOptions) *Record {
	t.Helper()
	for i, res := range []*analyze.Result{before, after} {
		for k := range res.Captures {
			res.Captures[k].SHA256 = strings.Repeat(fmt.Sprintf("%x%x", i+1, k), 32)
		}
	}
	for i := range after.Requests { // the capture of after is an hour younger
		shift(&after.Requests[i])
	}
	for i := range after.Captures {
		after.Captures[i].Summary.First += int64(time.Hour)
		after.Captures[i].Summary.Last += int64(time.Hour)
	}
	rec, _, err := NewEvidence([]Moment{{Records: []*Record{New(before, Tool{})}}, {Records: []*Record{New(after, Tool{})}}}, opt, Tool{Version: "0.3.0"})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func shift(r *analyze.Request) {
	r.First += int64(time.Hour)
	r.Last += int64(time.Hour)
	for i := range r.Frames {
		r.Frames[i].Time += int64(time.Hour)
	}
}

func webSelector(t *testing.T) analyze.Selector {
	t.Helper()
	s, err := analyze.ParseSelector("tcp 172.16.0.0/16 > 10.20.0.10:80")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Nothing that the captures, the cluster or the command line hold passes for something else: not in the line, not in the
// documents.
func TestEvidenceHostile(t *testing.T) {
	const evil = "x | changed-as-intended\n## heading\x1b[31m `code` <b> [l](http://e) | \u202e"
	was, now := before(t), after(t)
	for _, res := range []*analyze.Result{was, now} {
		for i := range res.Captures {
			res.Captures[i].File, res.Captures[i].Label = "/tmp/"+evil, evil
		}
		for i := range res.Requests {
			r := &res.Requests[i]
			r.Client.Role = cluster.NewRole(r.Client.Role.Kind, evil, evil, r.Client.Role.Fact())
			if e := r.Egress; e != nil {
				e.Role = cluster.NewRole(e.Role.Kind, evil, e.Role.Node(), e.Role.Fact())
			}
		}
	}
	rec := proved(t, was, now, EvidenceOptions{
		Which: webSelector(t), ChangeID: evil, Note: evil, Facts: facts(t),
		Rules: &RulesChange{Before: RulesFile{File: evil, Saved: evil}, After: RulesFile{File: evil}, Removed: []string{"-A X ```` " + evil}, Added: []string{evil}},
	})
	var line, text, markdown bytes.Buffer
	if err := WriteEvidenceLine(&line, rec); err != nil {
		t.Fatal(err)
	}
	if err := WriteEvidenceText(&text, rec, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := WriteEvidenceMarkdown(&markdown, rec); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(line.String(), "\n"); n != 1 {
		t.Errorf("the line has %d line ends: %q", n, line.String())
	}
	if got := strings.Split(strings.TrimSpace(line.String()), " | "); got[1] != rec.Evidence.Verdict || got[1] != "changed" {
		t.Errorf("the second part is %q", got[1])
	}
	for name, s := range map[string]string{"line": line.String(), "text": text.String(), "markdown": markdown.String()} {
		if strings.ContainsAny(s, "\x1b\u202e") {
			t.Errorf("%s holds a control character: %q", name, s)
		}
	}
	link := regexp.MustCompile(`[^\\]\]\(`)
	fences := 0
	for l := range strings.Lines(markdown.String()) {
		l = strings.TrimSuffix(l, "\n")
		if regexp.MustCompile("^`{3,}").MatchString(l) {
			fences++
			continue
		}
		if fences%2 == 1 { // inside the code block nothing is markup
			continue
		}
		if strings.HasPrefix(l, "## ") && !strings.HasPrefix(l, "## x ") || strings.Contains(l, "<b>") || link.MatchString(l) {
			t.Errorf("markup out of the input: %q", l)
		}
		if strings.HasPrefix(l, "|") && len(regexp.MustCompile(`(^|[^\\])\|`).FindAllString(l, -1)) > 8 {
			t.Errorf("a cell out of the input: %q", l)
		}
	}
	if fences != 2 {
		t.Errorf("%d fences: a rule ends its block\n%s", fences, markdown.String())
	}
}

// A redacted record keeps the verdict and holds no address and no name.
func TestRedact(t *testing.T) {
	was, now := before(t), after(t)
	for i, res := range []*analyze.Result{was, now} {
		res.Captures[0].File = "/captures/gke-prod-pool-1-abcd/node.pcap"
		res.Captures[0].Label = "a"
		for k := range res.Requests {
			r := &res.Requests[k]
			if r.Client.Role.Kind == cluster.RolePod {
				r.Client.Role = cluster.NewRole(cluster.RolePod, fmt.Sprintf("shop/web-%d", 7), "gke-prod-pool-1-abcd", "status.podIP of shop/web-7")
				r.Client.Role.Exact = true
			}
			r.Reasons = append(r.Reasons, "status.podIP of kube-system/secret-agent, which is on the host's network", "came from fd00:10:1::d via 10.10.0.1.")
			_ = i
		}
	}
	opt := EvidenceOptions{
		Which: webSelector(t), Intent: analyze.IntentSNAT, Facts: facts(t), Note: "Pod shop/web-7 (172.16.0.13) on gke-prod-pool-1-abcd",
		Rules: &RulesChange{Removed: []string{"-A IP-MASQ -d 10.0.0.0/8 -j RETURN", "-A X -s 172.16.0.13/32 -j ACCEPT"}, Added: []string{}},
	}
	plain := proved(t, was, now, opt)
	verdict := plain.Evidence.Verdict
	original := Redact(plain)
	var b bytes.Buffer
	if err := WriteJSON(&b, plain); err != nil {
		t.Fatal(err)
	}
	if err := WriteEvidenceMarkdown(&b, plain); err != nil {
		t.Fatal(err)
	}
	if err := WriteEvidenceText(&b, plain, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`[0-9]{1,3}(\.[0-9]{1,3}){3}|fd00:|web-7|shop|gke-prod|secret-agent|"a"|node a\b`).FindAllString(b.String(), -1); m != nil {
		t.Errorf("left in the record: %q", m)
	}
	if plain.Evidence.Verdict != verdict || verdict != "changed-as-intended" || !plain.Evidence.Redacted {
		t.Errorf("verdict %s, before redacting %s", plain.Evidence.Verdict, verdict)
	}
	// One pseudonym for one original, and the Pod's is the same before and after.
	seen := map[string]string{}
	for p, o := range original {
		if other, ok := seen[o]; ok {
			t.Errorf("%s is %s and %s", o, p, other)
		}
		seen[o] = p
		if got := Unredact("<"+p+">", original); got != "<"+o+">" {
			t.Errorf("%s turned back is %s", p, got)
		}
	}
	if e := plain.Evidence; e.Before.Client != "pod-1" || e.After.Client != "pod-1" || original["pod-1"] != "172.16.0.13" {
		t.Errorf("the Pod is %s before and %s after", e.Before.Client, e.After.Client)
	}
	// The record is one, and is made alike again.
	if _, err := Decode(bytes.NewReader(b.Bytes()[:bytes.Index(b.Bytes(), []byte("\n}\n"))+3])); err != nil {
		t.Error(err)
	}
	again := proved(t, redactedSource(t, before(t), was), redactedSource(t, after(t), now), opt)
	Redact(again)
	if differ := CheckEvidence(plain, again); differ != nil {
		t.Errorf("made again it differs: %q", differ)
	}
}

// Labels that are words of the record, filters, and comments of rules: nothing of them stays, and nothing else is touched.
func TestRedactAwkward(t *testing.T) {
	for _, label := range []string{"alpha", "node", "pod", "tcp", "a", "10.10.0.3", "name"} {
		was, now := before(t), after(t)
		for _, res := range []*analyze.Result{was, now} {
			res.Captures[0].File, res.Captures[0].Label = "/home/alice/"+label+".pcap", label
			res.Captures[0].StatedFilter, res.Captures[0].HasStated = "net 172.16 or ether host 02:00:00:00:00:01", true
		}
		rec := proved(t, was, now, EvidenceOptions{
			Which: webSelector(t), Intent: analyze.IntentSNAT, Facts: facts(t),
			Rules: &RulesChange{Removed: []string{`-A X -m comment --comment "default/web:http \"x\"" -j Y`, "-A X -m comment --comment shop/db -j Z"}, Added: []string{}},
		})
		rec.Tool.Args = []string{"evidence", "--before", label + "=/home/alice/" + label + ".pcap", "--near-filter", "net 172.16 or ether host 02:00:00:00:00:01"}
		Redact(rec)
		var b bytes.Buffer
		if err := WriteJSON(&b, rec); err != nil {
			t.Fatal(err)
		}
		if err := WriteEvidenceMarkdown(&b, rec); err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`alice|alpha|172\.16|02:00|default/web|shop/db|`+regexp.QuoteMeta(label)+`\.pcap|"label": "`+regexp.QuoteMeta(label)+`"`).FindAllString(b.String(), -1); m != nil {
			t.Errorf("label %s: left in the record: %q", label, regexp.MustCompile(".{30}"+regexp.QuoteMeta(m[0])).FindAllString(b.String(), 3))
		}
		r := &rec.Requests[0]
		if r.Client.Role != "pod" || r.Proto != "tcp" || rec.Captures[0].Side != "near" || rec.Evidence.Verdict != "changed-as-intended" {
			t.Errorf("label %s: role %s, protocol %s, side %s, verdict %s", label, r.Client.Role, r.Proto, rec.Captures[0].Side, rec.Evidence.Verdict)
		}
		if !strings.Contains(rec.Evidence.Line, "| tcp Pod pod-1 > address-1:80 |") || !strings.Contains(rec.Evidence.Line, " before 2026-") {
			t.Errorf("label %s: %s", label, rec.Evidence.Line)
		}
	}
}

// redactedSource gives a fresh result what TestRedact gave the first.
func redactedSource(t *testing.T, fresh, like *analyze.Result) *analyze.Result {
	t.Helper()
	for i := range fresh.Captures {
		fresh.Captures[i].File, fresh.Captures[i].Label = like.Captures[i].File, like.Captures[i].Label
	}
	for i := range fresh.Requests {
		fresh.Requests[i].Client.Role, fresh.Requests[i].Reasons = like.Requests[i].Client.Role, like.Requests[i].Reasons
	}
	return fresh
}

// A check sees what was edited: each edit alone gives a difference.
func TestCheckEvidence(t *testing.T) {
	make := func() *Record {
		rules := &RulesChange{Removed: []string{"-A X"}, Added: []string{}}
		return proved(t, before(t), after(t), EvidenceOptions{Which: webSelector(t), Intent: analyze.IntentSNAT, Facts: facts(t), Rules: rules})
	}
	if d := CheckEvidence(make(), make()); d != nil {
		t.Fatalf("the same differs: %q", d)
	}
	for name, edit := range map[string]func(r *Record){
		"the digest of a capture": func(r *Record) { r.Captures[1].SHA256 = "00" + r.Captures[1].SHA256[2:] },
		"no digest":               func(r *Record) { r.Captures[0].SHA256 = "" },
		"the verdict":             func(r *Record) { r.Evidence.Verdict = "changed" },
		"the node's verdict":      func(r *Record) { r.Evidence.Nodes[0].Verdict = "changed" },
		"the source after":        func(r *Record) { r.Evidence.Nodes[0].After.SourceAddr = "10.10.0.4" },
		"the frame":               func(r *Record) { r.Evidence.Nodes[0].Before.Frame.Frame++ },
		"what was observed":       func(r *Record) { r.Evidence.Nodes[0].Observed[0] += " and more" },
		"how it reads":            func(r *Record) { r.Evidence.Reading[0] += ", for all destinations" },
		"what is not covered":     func(r *Record) { r.Evidence.NotCovered = []string{"nothing"} },
		"a request's address":     func(r *Record) { r.Requests[1].Egress.Addr = "10.10.0.99" },
		"a capture's window":      func(r *Record) { r.Captures[0].Window.To = r.Captures[1].Window.To },
		"the name of the node":    func(r *Record) { r.Evidence.Nodes[0].Node = "other" },
		"a capture less":          func(r *Record) { r.Captures = r.Captures[:1] },
		"the request":             func(r *Record) { r.Evidence.Request = "tcp any > any" },
		"the intention":           func(r *Record) { r.Evidence.Intent = "keep" },
		"a rule":                  func(r *Record) { r.Evidence.Rules.Removed[0] = "-A Y" },
		"what else changed":       func(r *Record) { r.Evidence.AlsoChanged = append(r.Evidence.AlsoChanged, AlsoChanged{}) },
		"the line":                func(r *Record) { r.Evidence.Line = strings.Replace(r.Evidence.Line, "10.10.0.3", "10.10.0.4", 1) },
		"a node":                  func(r *Record) { r.Evidence.Nodes = append(r.Evidence.Nodes, EvidenceNode{}) },
		"the rollback":            func(r *Record) { r.Evidence.RolledBack = "yes" },
	} {
		recorded := make()
		edit(recorded)
		if name != "the line" { // a careful forger
			recorded.Evidence.Line = evidenceLine(recorded)
		}
		if d := CheckEvidence(recorded, make()); len(d) == 0 {
			t.Errorf("%s was edited, and the check says nothing", name)
		}
	}
}

// The record's JSON is that of DESIGN section 9, and it can be read again.
func TestEvidenceJSON(t *testing.T) {
	rec := proved(t, before(t), after(t), EvidenceOptions{Which: webSelector(t), Facts: facts(t)})
	var b bytes.Buffer
	if err := WriteJSON(&b, rec); err != nil {
		t.Fatal(err)
	}
	var fields struct {
		Evidence map[string]json.RawMessage `json:"evidence"`
	}
	if err := json.Unmarshal(b.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"request", "before", "after", "rollback", "verdict", "also_changed", "line"} {
		if _, ok := fields.Evidence[name]; !ok {
			t.Errorf("evidence has no %s", name)
		}
	}
	got, err := Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if d := CheckEvidence(rec, got); d != nil {
		t.Errorf("read again it differs: %q", d)
	}
}
