package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/srcproof/srcproof/report"
)

// A change is a situation in several phases of one lab: each phase has captures of its own, taken by processes of their own,
// as a person takes them before and after a change of the rules.
type change struct {
	name, about string
	run         func(p *phases)
}

// phases is a lab in which a change happens, and what was captured of it.
type phases struct {
	*lab
	files []phaseFile
}

type phaseFile struct {
	name    string // before.pcap
	content []byte
	command string
}

// labChanges are the changes that the tests of evidence rest on.
func labChanges() []change {
	const held = farIP + ":http" // the same server as server, under a name of its own: the agent keeps one connection a name
	return []change{
		{
			name: "change", about: "The agent's list is narrowed: the Pod's address, without a way back, becomes the node's, and the request completes. A rollback gives the first state back; then the change is made again.",
			run: func(p *phases) {
				p.masq(true, keepDefault...)
				p.far.serveTCP(server, server2)
				tries := func() {
					p.pod.tcp(server, 2*time.Second)
					p.pod.ping(farIP, waitBrief)
				}
				p.phase("before", tries)
				p.masq(true, keepNarrowed...)
				p.phase("after", tries)
				p.masq(true, keepDefault...)
				p.phase("rollback", tries)
				p.masq(true, keepNarrowed...)
				p.phase("again", tries)
			},
		},
		{
			name: "change-open", about: "A connection is open when the list is narrowed, and goes on after it with the Pod's address; a new one to the same server is translated.",
			run: func(p *phases) {
				p.masq(true, keepDefault...)
				p.routeBack()
				p.far.serveTCP(server)
				p.phase("before", func() {
					p.expect(p.pod.open(held, waitBrief), endCompleted, "the opening under the old rules")
					p.expect(p.pod.send(held, 100, waitBrief), endCompleted, "data under the old rules")
				})
				p.masq(true, keepNarrowed...)
				p.phase("after", func() {
					p.expect(p.pod.send(held, 100, waitBrief), endCompleted, "data on the old connection")
					p.expect(p.pod.tcp(server, waitBrief), endCompleted, "the new request")
					p.expect(p.pod.send(held, 100, waitBrief), endCompleted, "more data on the old connection")
				})
			},
		},
		{
			name: "change-dropped", about: "The list is narrowed, and the far side's firewall takes neither the Pod's address nor the node's.",
			run: func(p *phases) {
				p.masq(true, keepDefault...)
				p.far.serveTCP(server)
				p.far.iptables("-A INPUT" + toServer + "-j DROP")
				p.phase("before", func() { p.expect(p.pod.tcp(server, 2*time.Second), endTimeout, "the Pod's request") })
				p.masq(true, keepNarrowed...)
				p.phase("after", func() { p.expect(p.pod.tcp(server, 2*time.Second), endTimeout, "the Pod's request") })
			},
		},
		{
			name: "change-missed", about: "The second node of the change: its agent did not take the new list, and the Pod's address stays.",
			run: func(p *phases) {
				p.masq(true, keepDefault...)
				p.far.serveTCP(server)
				try := func() { p.expect(p.pod.tcp(server, 2*time.Second), endTimeout, "the Pod's request") }
				p.phase("before", try)
				p.phase("after", try)
			},
		},
		{
			name: "change-spanning", about: "One capture runs through the change: a request before it, a connection that goes on through it, and a request after it.",
			run: func(p *phases) {
				p.masq(true, keepDefault...)
				p.routeBack()
				p.far.serveTCP(server)
				p.phase("spanning", func() {
					p.expect(p.pod.tcp(server, waitBrief), endCompleted, "the request before")
					p.expect(p.pod.open(held, waitBrief), endCompleted, "the connection that stays open")
					p.expect(p.pod.send(held, 100, waitBrief), endCompleted, "its data before")
					p.masq(true, keepNarrowed...)
					p.files = append(p.files, phaseFile{"changed-at.txt", []byte(time.Now().UTC().Format(time.RFC3339Nano) + "\n"), "date, once the rules were in force"})
					p.expect(p.pod.send(held, 100, waitBrief), endCompleted, "its data after")
					p.expect(p.pod.tcp(server, waitBrief), endCompleted, "the request after")
				})
			},
		},
		{
			name: "change-repeated", about: "A request whose SYN is repeated goes on through the change: what the after capture has of it is a connection of before.",
			run: func(p *phases) {
				p.masq(true, keepDefault...)
				p.far.serveTCP(server)
				var dial sync.WaitGroup
				p.phase("before", func() {
					dial.Go(func() { p.pod.tcp(server, 6*time.Second) })
					time.Sleep(1500 * time.Millisecond)
				})
				p.masq(true, keepNarrowed...)
				p.phase("after", dial.Wait)
			},
		},
	}
}

// phase makes traffic while tcpdump runs on the node and at the far host, and keeps the captures and the node's rules. A ping of
// the node's own comes first: it shows since when the capture runs, and so that no SYN of the Pod's repeats an older one.
func (p *phases) phase(name string, traffic func()) {
	p.t.Helper()
	var dumps []*labTcpdump
	for _, tap := range []labTap{
		{name, "any", hostFilter, func(l *lab) *labHost { return l.node }},
		{name + "-far", "ens4", "", func(l *lab) *labHost { return l.far }},
	} {
		dumps = append(dumps, p.startTcpdump(tap))
	}
	p.expect(p.node.ping(farIP, time.Second), endCompleted, "the node's ping")
	time.Sleep(1700 * time.Millisecond) // one and a half of the pause between two SYNs, and a little
	traffic()
	time.Sleep(1200 * time.Millisecond) // an answer would have come by then, and a packet shows that the capture still ran
	p.expect(p.node.ping(farIP, time.Second), endCompleted, "the node's ping")
	labSettle(dumps)
	for _, d := range dumps {
		c := d.stop()
		if c.missed > 0 {
			p.t.Fatalf("%s.pcap lacks %d packets", d.name, c.missed)
		}
		p.files = append(p.files, phaseFile{d.name + ".pcap", c.pcap, c.command})
	}
	p.files = append(p.files, phaseFile{name + "-iptables.txt", []byte(p.node.run("iptables-save", "-t", "nat")), "iptables-save -t nat"})
}

// changed makes a change in a lab and returns the folder with its files.
func changed(t *testing.T, name string) string {
	t.Helper()
	requireLab(t)
	i := slices.IndexFunc(labChanges(), func(c change) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no change %q", name)
	}
	dir := t.TempDir()
	for _, f := range makeChange(t, labChanges()[i]) {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// labChangeCount tells labs of one change apart.
var labChangeCount atomic.Int32

func makeChange(t *testing.T, c change) []phaseFile {
	t.Helper()
	p := &phases{lab: newLab(t, fmt.Sprintf("%s%d", c.name, labChangeCount.Add(1)), bridged)}
	c.run(p)
	return p.files
}

// srcproofRun is the program run in this process.
func srcproofRun(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs, func(string) string { return "" })
	return out.String(), errs.String(), code
}

// prove runs srcproof evidence on a change's files and returns its record.
func prove(t *testing.T, wantCode int, args ...string) *report.Record {
	t.Helper()
	out, errs, code := srcproofRun(t, append([]string{"evidence", "-o", "json"}, args...)...)
	if code != wantCode {
		t.Fatalf("exit code %d, want %d\n%s%s", code, wantCode, errs, out)
	}
	rec, err := report.Decode(strings.NewReader(out))
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	return rec
}

func momentFlags(dir string, moments ...string) []string {
	args := slices.Clone(nodeFacts)
	for _, m := range moments {
		args = append(args, "--"+m, filepath.Join(dir, m+".pcap"))
	}
	return args
}

const podRequest = "tcp " + podCIDR + " > " + server

// TestLabEvidence proves real changes: the kernel translates, tcpdump captures, in phases before and after new rules.
func TestLabEvidence(t *testing.T) {
	t.Parallel()
	requireLab(t)
	t.Run("as intended, and rolled back", func(t *testing.T) {
		t.Parallel()
		dir := changed(t, "change")
		args := append(momentFlags(dir, "before", "before-far", "after", "after-far"), "--request", podRequest, "--intent", "snat")
		rec := prove(t, 0, append(slices.Clone(args), "--before-iptables", filepath.Join(dir, "before-iptables.txt"), "--after-iptables", filepath.Join(dir, "after-iptables.txt"))...)
		e := rec.Evidence
		if e.Verdict != "changed-as-intended" || e.Before.SourceAddr != podIP || e.After.SourceAddr != nodeIP || *e.Before.Completed || !*e.After.Completed {
			t.Errorf("verdict %s: before %+v, after %+v", e.Verdict, e.Before, e.After)
		}
		if e.Before.StoppedAt != "return" || e.After.StoppedAt != "none" {
			t.Errorf("stopped at %s before, %s after", e.Before.StoppedAt, e.After.StoppedAt)
		}
		if len(e.AlsoChanged) != 1 || e.AlsoChanged[0].Proto != "icmp" || e.AlsoChanged[0].Before["pod-sourced"] != 1 || e.AlsoChanged[0].After["node-snated"] != 1 {
			t.Errorf("also changed: %+v", e.AlsoChanged)
		}
		if e.Rules == nil || e.Rules.Same || len(e.Rules.Removed) == 0 || len(e.Rules.Added) == 0 {
			t.Errorf("rules: %+v", e.Rules)
		}
		for intent, want := range map[string]string{"keep": "changed-unexpectedly", "": "changed"} {
			code := 1
			args := append(momentFlags(dir, "before", "after"), "--request", podRequest)
			if intent != "" {
				args = append(args, "--intent", intent)
			} else {
				code = 0
			}
			if e := prove(t, code, args...).Evidence; e.Verdict != want {
				t.Errorf("intent %q: %s, want %s", intent, e.Verdict, want)
			}
		}
		e = prove(t, 0, append(momentFlags(dir, "before", "after", "rollback"), "--request", podRequest)...).Evidence
		if e.Verdict != "changed" || e.RolledBack != "yes" || e.Rollback.SourceAddr != podIP {
			t.Errorf("rollback: %s, %s, %+v", e.Verdict, e.RolledBack, e.Rollback)
		}
		// A rollback that gives back nothing.
		e = prove(t, 1, append(slices.Clone(nodeFacts), "--before", dir+"/before.pcap", "--after", dir+"/after.pcap", "--rollback", dir+"/again.pcap", "--request", podRequest)...).Evidence
		if e.RolledBack != "no" {
			t.Errorf("a rollback that shows the node's address: %s", e.RolledBack)
		}
	})
	t.Run("a connection that was open", func(t *testing.T) {
		t.Parallel()
		dir := changed(t, "change-open")
		e := prove(t, 0, append(momentFlags(dir, "before", "after"), "--request", podRequest, "--intent", "snat")...).Evidence
		if e.Verdict != "changed-as-intended" || len(e.After.Open) != 1 || len(e.After.Requests) != 1 {
			t.Errorf("verdict %s, after %+v", e.Verdict, e.After)
		}
		if !slices.ContainsFunc(e.NotCovered, func(s string) bool { return strings.Contains(s, "older translation") && strings.Contains(s, podIP) }) {
			t.Errorf("the connection that was left out is not named: %q", e.NotCovered)
		}
		// What it would have said: the old connection alone shows the Pod's address, as before. That is no verdict.
		out, _, _ := srcproofRun(t, append([]string{"analyze", "-o", "json", dir + "/after.pcap"}, nodeFacts...)...)
		rec, err := report.Decode(strings.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(rec.Requests, func(r report.Request) bool { return r.Outcome == "midstream" })
		if i < 0 || rec.Requests[i].Source != "pod-sourced" || rec.Requests[i].Client.Port == nil {
			t.Fatalf("the old connection is not there, or does not mislead: %+v", rec.Requests)
		}
		old := fmt.Sprintf("tcp %s:%d > %s", podIP, *rec.Requests[i].Client.Port, server)
		e = prove(t, 3, append(momentFlags(dir, "before", "after"), "--request", old)...).Evidence
		if e.Verdict != "inconclusive" || e.Nodes[0].Reason != "opening-not-in-capture" {
			t.Errorf("the old connection alone: %s, %s", e.Verdict, e.Nodes[0].Reason)
		}
	})
	t.Run("not completed", func(t *testing.T) {
		t.Parallel()
		dir := changed(t, "change-dropped")
		for _, far := range []bool{false, true} {
			moments := []string{"before", "after"}
			if far {
				moments = append(moments, "before-far", "after-far")
			}
			args := append(momentFlags(dir, moments...), "--request", podRequest, "--intent", "snat")
			if far {
				args = append(args, "--far-filter", "")
			}
			e := prove(t, 1, args...).Evidence
			if e.Verdict != "changed-not-completed" || e.After.SourceAddr != nodeIP || far && e.After.StoppedAt != "far" {
				t.Errorf("far %v: verdict %s, after %+v", far, e.Verdict, e.After)
			}
		}
	})
	t.Run("two nodes", func(t *testing.T) {
		t.Parallel()
		a, b := changed(t, "change"), changed(t, "change-missed")
		args := append(slices.Clone(nodeFacts), "--before", "gke-a-1="+a+"/before.pcap", "--after", "gke-a-1="+a+"/after.pcap",
			"--before", "gke-a-2="+b+"/before.pcap", "--after", "gke-a-2="+b+"/after.pcap", "--request", podRequest, "--intent", "snat")
		e := prove(t, 1, args...).Evidence
		if e.Verdict != "unchanged" || len(e.Nodes) != 2 || e.Nodes[0].Verdict != "changed-as-intended" || e.Nodes[1].Verdict != "unchanged" {
			t.Fatalf("%s: %+v", e.Verdict, e.Nodes)
		}
		if lines := strings.Split(e.Line, "\n"); len(lines) != 3 || !strings.Contains(lines[2], "unchanged on 1 of 2: node gke-a-2") {
			t.Errorf("the node that did not change is not named: %s", e.Line)
		}
	})
	t.Run("one capture of before and after", func(t *testing.T) {
		t.Parallel()
		dir := changed(t, "change-spanning")
		at, err := os.ReadFile(dir + "/changed-at.txt")
		if err != nil {
			t.Fatal(err)
		}
		args := append(slices.Clone(nodeFacts), "--before", dir+"/spanning.pcap", "--changed-at", strings.TrimSpace(string(at)), "--request", podRequest, "--intent", "snat")
		rec := prove(t, 0, args...)
		e := rec.Evidence
		if e.Verdict != "changed-as-intended" || len(e.After.Open) != 1 || len(e.After.Requests) != 1 || rec.Captures[0].SHA256 != rec.Captures[1].SHA256 {
			t.Errorf("%s: before %+v, after %+v", e.Verdict, e.Before, e.After)
		}
		if e.Before.To.Known() && e.After.From.Known() && e.Before.To.Sub(e.After.From) >= 0 {
			t.Errorf("before ends at %v, after begins at %v", e.Before.To, e.After.From)
		}
	})
	t.Run("a SYN repeated through the change", func(t *testing.T) {
		t.Parallel()
		dir := changed(t, "change-repeated")
		e := prove(t, 3, append(momentFlags(dir, "before", "after"), "--request", podRequest, "--intent", "snat")...).Evidence
		if e.Verdict != "inconclusive" || len(e.After.Open) != 1 {
			t.Errorf("%s: %+v", e.Verdict, e.After)
		}
	})
}

// TestLabEvidenceRecord makes the stored changes again: go test ./cmd/srcproof -run TestLabEvidenceRecord -record=change
func TestLabEvidenceRecord(t *testing.T) {
	if *recordCaptures == "" || *recordCaptures == "false" {
		t.Skip("writes testdata/captures only with -record")
	}
	requireLab(t)
	for _, c := range labChanges() {
		if *recordCaptures != "true" && !slices.Contains(strings.Split(*recordCaptures, ","), c.name) {
			continue
		}
		dir := filepath.Join(capturesDir, c.name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "# %s\n\n%s\n\nFacts: `%s`\n\n| file | made by | sha256 |\n|---|---|---|\n", c.name, wrapText(c.about, 110), strings.Join(nodeFacts, " "))
		for _, f := range makeChange(t, c) {
			if len(f.content) > mostBytes {
				t.Fatalf("%s/%s: %d bytes, want at most %d", c.name, f.name, len(f.content), mostBytes)
			}
			if err := os.WriteFile(filepath.Join(dir, f.name), f.content, 0o644); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "| %s | `%s` | %x |\n", f.name, f.command, sha256.Sum256(f.content))
		}
		fmt.Fprintf(&b, "\nMade by change `%s` of cmd/srcproof/lab_evidence_test.go: real translation by the kernel, in network\n"+
			"namespaces on one host. To make it again, as root:\n\n    go test ./cmd/srcproof -run TestLabEvidenceRecord -record=%s\n", c.name, c.name)
		if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
