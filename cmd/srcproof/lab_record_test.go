package main

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recordCaptures names the cases to make: "" for none, "true" for all (the flag without a value), else one or more.
var recordCaptures = func() *string {
	names := new(string)
	flag.BoolFunc("record", "make the captures in testdata/captures again, in the lab; -record=CASE,CASE makes these alone", func(s string) error {
		*names = s
		return nil
	})
	return names
}()

// capturesDir is where the stored captures are: one folder for a case.
const capturesDir = "../../testdata/captures"

// storedCase is a scenario whose captures are kept in testdata, for tests and demonstrations without root.
type storedCase struct {
	dir, scenario string
	files         []storedFile
	note          string // what the choice of captures adds to the scenario's sentence
}

// storedFile is one of the scenario's captures under the name that it has in the folder.
type storedFile struct{ name, capture string }

// storedCases says what is kept, and as what.
func storedCases() []storedCase {
	near := []storedFile{{"node.pcap", "any"}}
	both := []storedFile{{"node.pcap", "any"}, {"far.pcap", "far"}}
	return []storedCase{
		{dir: "before", scenario: "before", files: both},
		{dir: "after", scenario: "after", files: both},
		{dir: "kept", scenario: "kept", files: near},
		{dir: "snat-random-fully", scenario: "snat-random-fully", files: near},
		{
			dir: "inside-pod-only", scenario: "snat-random-fully", files: []storedFile{{"pod.pcap", "inside"}},
			note: "Only the capture inside the Pod is kept: it shows the Pod's address whatever left the node.",
		},
		{
			dir: "uplink-only", scenario: "snat-random-fully", files: []storedFile{{"uplink.pcap", "uplink"}},
			note: "Only the capture of the node's uplink is kept: the TTL tells that the request was forwarded.",
		},
		{dir: "node-own", scenario: "node-own", files: near},
		{dir: "refused", scenario: "refused", files: near},
		{dir: "rejected-by-router", scenario: "rejected-by-router", files: near},
		{dir: "not-sent", scenario: "not-sent", files: near},
		{dir: "node-in", scenario: "node-in", files: near},
		{dir: "dropped-between", scenario: "dropped-between", files: both},
		{dir: "dropped-at-far", scenario: "dropped-at-far", files: both},
		{dir: "snat-twice", scenario: "snat-twice", files: both},
		{dir: "proxy", scenario: "proxy", files: both},
		{dir: "reset-between", scenario: "reset-between", files: both},
		{
			dir: "reply-at-other-node", scenario: "reply-at-other-node", files: append(slices.Clip(both), storedFile{"node2.pcap", "node2"}),
			note: "node2.pcap is the other node's capture.",
		},
		{dir: "ping", scenario: "ping-snat", files: near},
		{dir: "udp", scenario: "udp", files: near},
		{dir: "udp-closed", scenario: "udp-closed", files: near},
		{dir: "ipv6-kept", scenario: "ipv6-kept", files: near},
		{dir: "ipv6-snat", scenario: "ipv6-snat", files: near},
		{dir: "service", scenario: "service-snat", files: near},
		{dir: "two-chains", scenario: "two-chains", files: near},
		{dir: "stray-masquerade", scenario: "stray-masquerade", files: near},
		{dir: "midstream", scenario: "midstream", files: near},
		{dir: "old-mapping", scenario: "old-mapping", files: near},
		{dir: "first-syn-lost", scenario: "first-syn-lost", files: near},
		{dir: "pod-to-pod", scenario: "pod-to-pod", files: near},
	}
}

// wants are the scenario's verdicts that the kept captures can carry, with the captures' names in the folder.
func (c storedCase) wants(sc scenario) []labWant {
	kept := map[string]string{"": ""}
	for _, f := range c.files {
		kept[f.capture] = f.name
	}
	var all []labWant
	for _, w := range sc.want {
		near, ok := kept[w.near]
		far, ok2 := kept[w.far]
		if ok && ok2 {
			w.near, w.far = near, far
			all = append(all, w)
		}
	}
	return all
}

// mostBytes is how large a stored capture may be.
const mostBytes = 20_000

// TestLabRecord makes the stored captures again: go test ./cmd/srcproof -run TestLabRecord -record
// With -record=CASE it makes one alone: a new case must not change what others' goldens rest on.
func TestLabRecord(t *testing.T) {
	if *recordCaptures == "" || *recordCaptures == "false" {
		t.Skip("writes testdata/captures only with -record")
	}
	cases := storedCases()
	if *recordCaptures != "true" {
		asked := strings.Split(*recordCaptures, ",")
		cases = slices.DeleteFunc(cases, func(c storedCase) bool { return !slices.Contains(asked, c.dir) })
		if len(cases) != len(asked) {
			t.Fatalf("-record=%s: not all of these are cases in storedCases", *recordCaptures)
		}
	}
	var names []string
	for _, c := range cases {
		names = append(names, c.scenario)
	}
	results := labCaptures(t, names...)
	if t.Failed() {
		t.FailNow() // a case is written whole or not at all
	}
	for _, c := range cases {
		r := results[c.scenario]
		if r == nil {
			t.Fatalf("case %s: this kernel cannot make scenario %s", c.dir, c.scenario)
		}
		dir := filepath.Join(capturesDir, c.dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		write := func(name, content string) {
			t.Helper()
			if len(content) > mostBytes {
				t.Fatalf("%s/%s: %d bytes, want at most %d", c.dir, name, len(content), mostBytes)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range c.files {
			write(f.name, string(r.captures[f.capture].pcap))
		}
		write("links.txt", r.links)
		write("iptables-save.txt", r.rules)
		write("README.md", caseReadme(c, r))
	}
}

// caseReadme says what a stored case shows and how it was made.
func caseReadme(c storedCase, r *scenarioResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", c.dir, wrapText(strings.TrimSpace(r.about+" "+c.note), 110))
	fmt.Fprintf(&b, "Facts: `%s`\n\n", strings.Join(r.facts, " "))
	b.WriteString("| file | captured | sha256 |\n|---|---|---|\n")
	for _, f := range c.files {
		c := r.captures[f.capture]
		fmt.Fprintf(&b, "| %s | %s: `%s` | %x |\n", f.name, placeOf(f.capture), strings.Replace(c.command, f.capture+".pcap", f.name, 1), sha256.Sum256(c.pcap))
	}
	b.WriteString("| links.txt | on the node: `ip -o link` | |\n| iptables-save.txt | on the node: `iptables-save; ip6tables-save` | |\n\n")
	addrs := []any{podIP, nodeIP, routerIP, routerFar, farIP}
	if slices.Contains(r.facts, podCIDR6) {
		addrs = []any{podIP6, nodeIP6, routerIP6, routerFar6, farIP6}
	}
	fmt.Fprintf(&b, "    Pod %s -- veth0 cbr0 [node] eth0 %s -- %s [router] %s -- ens4 %s [far host]\n\n", addrs...)
	b.WriteString("| captures | request | direction | source | outcome | stopped at | completed |\n|---|---|---|---|---|---|---|\n")
	for _, w := range c.wants(r.scenario) {
		captures := strings.Trim(strings.Join([]string{w.near, w.far}, ", "), ", ")
		if len(w.flags) > 0 {
			captures += fmt.Sprintf(" `%s '%s'`", w.flags[0], strings.Join(w.flags[1:], " "))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", captures, w.request, w.direction,
			strings.Join(w.source, " or "), w.outcome, cmp.Or(strings.Join(w.stoppedAt, " or "), "-"), cmp.Or(w.completed, "-"))
	}
	b.WriteByte('\n')
	fmt.Fprintf(&b, "Made by scenario `%s` of cmd/srcproof/lab_*_test.go: real translation by the kernel, in network\n"+
		"namespaces on one host, so the clocks of all captures are one. To make it again, as root:\n\n"+
		"    go test ./cmd/srcproof -run TestLabRecord -record=%s\n", c.scenario, c.dir)
	return b.String()
}

// wrapText breaks a text into lines of at most width bytes, where its words allow it.
func wrapText(text string, width int) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// placeOf says in words where a capture is taken.
func placeOf(capture string) string {
	switch capture {
	case "any", "all":
		return "node, all interfaces"
	case "uplink":
		return "node, uplink only"
	case "inside":
		return "inside the Pod"
	case "far":
		return "far host"
	case "rtr":
		return "router between"
	case "node2":
		return "the other node, all interfaces"
	}
	return capture
}

// TestStoredCaptures checks that the captures in testdata still show what their scenarios say. It needs no root.
func TestStoredCaptures(t *testing.T) {
	scenarios := map[string]scenario{}
	for _, sc := range labScenarios() {
		scenarios[sc.name] = sc
	}
	for _, c := range storedCases() {
		t.Run(c.dir, func(t *testing.T) {
			r := &scenarioResult{scenario: scenarios[c.scenario], captures: map[string]labCapture{}}
			read := func(name string) []byte {
				t.Helper()
				b, err := os.ReadFile(filepath.Join(capturesDir, c.dir, name))
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			readme := string(read("README.md"))
			for _, f := range c.files {
				pcap := read(f.name)
				r.captures[f.capture] = labCapture{pcap: pcap}
				if sum := fmt.Sprintf("%x", sha256.Sum256(pcap)); !strings.Contains(readme, sum) {
					t.Errorf("README.md does not have the digest of %s, %s: were they made together?", f.name, sum)
				}
			}
			names := linkNames(string(read("links.txt")))
			err := r.verify(t, map[string]map[uint32]string{"any": names, "all": names})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
