package main

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/tcpdump"
	"github.com/srcproof/srcproof/capture/wire"
)

// textForm is a way to print a capture as people paste it.
type textForm struct {
	options string
	names   bool // TCP flags and numbers are in it: what a connection is told by
}

func textForms() []textForm {
	return []textForm{
		{"-n", true},
		{"-nn -tttt", true},
		{"-nn -e -v", true},
		{"-nn -S", true},
		{"-nn -ttt", true},
		{"-n -t", true},
		{"-nn -tt -vvv -#", true},
		{"-nn -ttttt -x", true},
		{"-nn -q", false},
	}
}

// printed is a capture as tcpdump prints it: the text alone, as "tcpdump -r F > text.txt" leaves it.
func printed(t *testing.T, pcap []byte, options string) string {
	t.Helper()
	cmd := exec.Command("tcpdump", append(strings.Fields(options), "-r", "-")...)
	cmd.Stdin = bytes.NewReader(pcap)
	cmd.Env = append(cmd.Environ(), "TZ=UTC")
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("tcpdump %s: %v", options, err)
	}
	return string(text)
}

// pasted is that text as a ticket has it: of a live tcpdump of one interface at the far host, from the prompt to the counters.
func pasted(text, options string, packets int) string {
	return fmt.Sprintf("Far side, during the test:\n\nops@onprem-vm:~$ sudo tcpdump -i ens4 %s\n"+
		"tcpdump: verbose output suppressed, use -v[v]... for full protocol decode\nlistening on ens4, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n"+
		"%s^C\n%d packets captured\n%d packets received by filter\n0 packets dropped by kernel\nops@onprem-vm:~$ \n", options, text, packets, packets)
}

// compareText holds a near capture against the far side's text.
func compareText(t *testing.T, near []byte, far string, facts *cluster.Facts, opt tcpdump.Options) *analyze.Result {
	t.Helper()
	n, err := capture.NewReader(bytes.NewReader(near), "near", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := capture.NewReader(strings.NewReader(far), "far.txt", capture.Options{Text: opt})
	if err != nil {
		t.Fatalf("%v\n%s", err, far)
	}
	res, err := analyze.Run([]analyze.Input{{File: "near", Side: wire.SideNear, Source: n}, {File: "far.txt", Side: wire.SideFar, Source: f}}, facts, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestLabText: the far side's capture as pasted text joins with the node's capture in every situation of the lab. What it gives is
// what the capture gives, or unknown, and never a third value; a whole paste with a day and numbers gives all of it.
func TestLabText(t *testing.T) {
	if _, err := exec.LookPath("tcpdump"); err != nil {
		t.Skip("not checked: the far side's text (no tcpdump to print it)")
	}
	results := labCaptures(t)
	type tally struct{ same, unknown int }
	tallies := map[string]*tally{}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		near, far := r.captures["any"].pcap, r.captures["far"].pcap
		if near == nil || far == nil || len(r.want) > 0 && r.want[0].direction == "local" {
			continue
		}
		facts := factsOf(t, r.facts)
		whole := comparePair(t, near, far, facts, analyze.PairOptions{}, true)
		_, frames := classicFrames(t, far)
		if len(frames) == 0 {
			continue
		}
		at := recordTime(frames[0]).UTC()
		dated := tcpdump.Options{Zone: time.UTC, Day: time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)}
		for _, form := range textForms() {
			text := printed(t, far, form.options)
			for how, res := range map[string]*analyze.Result{
				"pasted":          compareText(t, near, pasted(text, form.options, len(frames)), facts, dated),
				"text alone":      compareText(t, near, text, facts, dated),
				"without a day":   compareText(t, near, pasted(text, form.options, len(frames)), facts, tcpdump.Options{}),
				"only its middle": compareText(t, near, middle(text), facts, dated),
			} {
				key := form.options + ", " + how
				if tallies[key] == nil {
					tallies[key] = &tally{}
				}
				for i := range res.Requests {
					got := &res.Requests[i]
					if got.Way == analyze.WayLocal {
						continue
					}
					if bad := contradicts(got, whole); bad != "" {
						t.Errorf("%s, %s: %s", name, key, bad)
					}
				}
				for i := range whole.Requests {
					w := &whole.Requests[i]
					if w.StoppedAt == analyze.StopUnknown || w.Way == analyze.WayLocal {
						continue
					}
					j := slices.IndexFunc(res.Requests, func(r analyze.Request) bool { return r.Tuple == w.Tuple && r.First == w.First })
					switch {
					case j >= 0 && res.Requests[j].Source == w.Source && res.Requests[j].StoppedAt == w.StoppedAt && res.Requests[j].Outcome == w.Outcome:
						tallies[key].same++
					default:
						tallies[key].unknown++
						if form.names && how == "pasted" && !strings.Contains(form.options, "-t ") {
							t.Logf("%s, %s: %s: only the capture tells: %s, stopped at %s", name, key, w.Tuple, w.Source, w.StoppedAt)
						}
					}
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(tallies)) {
		t.Logf("%-40s %4d as the capture, %4d not known", key, tallies[key].same, tallies[key].unknown)
	}
}

// TestLabTextCut pastes every part of the far side's text that a person may paste: from the beginning, to the end, and with dots in
// place of single packets. Of what is left, nothing is concluded that the whole capture denies. (A line that is taken out without a
// mark leaves no trace, as a packet that a filter hides; the counters of a whole paste show it.)
func TestLabTextCut(t *testing.T) {
	if _, err := exec.LookPath("tcpdump"); err != nil {
		t.Skip("not checked: parts of the far side's text (no tcpdump to print it)")
	}
	results := labCaptures(t)
	runs, known := 0, 0
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		near, far := r.captures["any"].pcap, r.captures["far"].pcap
		if near == nil || far == nil || len(r.want) > 0 && r.want[0].direction == "local" {
			continue
		}
		facts := factsOf(t, r.facts)
		whole := comparePair(t, near, far, facts, analyze.PairOptions{}, true)
		_, frames := classicFrames(t, far)
		for _, options := range []string{"-nn -tt", "-nn -tt -v"} {
			lines := packetsOf(printed(t, far, options))
			for i := range lines {
				for what, part := range map[string][]string{
					fmt.Sprintf("the first %d packets", i): lines[:i], fmt.Sprintf("without the first %d packets", i): lines[i:],
					fmt.Sprintf("dots for packet %d", i+1): slices.Concat(lines[:i], []string{"...\n"}, lines[i+1:]), fmt.Sprintf("packet %d alone", i+1): lines[i : i+1],
				} {
					if len(part) == 0 || !slices.ContainsFunc(part, func(s string) bool { return strings.Contains(s, " > ") }) {
						continue
					}
					res := compareText(t, near, strings.Join(part, ""), facts, tcpdump.Options{})
					runs++
					for i := range res.Requests {
						if res.Requests[i].Way == analyze.WayLocal {
							continue
						}
						if bad := contradicts(&res.Requests[i], whole); bad != "" {
							t.Errorf("%s, %s, %s of %d: %s", name, options, what, len(frames), bad)
						}
						if res.Requests[i].StoppedAt != analyze.StopUnknown {
							known++
						}
					}
				}
			}
		}
	}
	t.Logf("%d parts of texts, %d places known in them", runs, known)
}

// TestLabConntrack: with the node's connection table, a capture of the node's uplink or of the Pod alone gives what the capture of all
// interfaces gives, or unknown, and joins with the far side's text where text alone has nothing in common with it.
func TestLabConntrack(t *testing.T) {
	if _, err := exec.LookPath("tcpdump"); err != nil {
		t.Skip("not checked: the connection table beside the far side's text (no tcpdump to print it)")
	}
	const elsewhere = "is no request of the whole capture" // but of one link, or of the time before
	results := labCaptures(t)
	runs, byTable, sources, joins := 0, 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		far := r.captures["far"].pcap
		if !strings.Contains(r.tracked, "src=") || far == nil || len(r.want) > 0 && r.want[0].direction == "local" {
			continue
		}
		table := writeCapture(t, t.TempDir(), "conntrack.txt", []byte(r.tracked))
		facts := factsOf(t, append(slices.Clone(r.facts), "--conntrack", table))
		whole := comparePair(t, r.captures["any"].pcap, far, factsOf(t, r.facts), analyze.PairOptions{}, true)
		alone := analyzeBytes(t, r.captures["any"].pcap, wire.SideNear, factsOf(t, r.facts))
		for _, req := range analyze.FromTable(facts).Requests {
			if bad := contradicts(&req, alone); bad != "" && !strings.Contains(bad, elsewhere) {
				t.Errorf("%s, the table alone: %s", name, bad)
			}
			byTable++
		}
		for _, place := range []string{"any", "inside", "uplink"} {
			near := r.captures[place].pcap
			if near == nil {
				continue
			}
			text := printed(t, far, "-nn -tt")
			if text == "" {
				continue
			}
			res := compareText(t, near, text, facts, tcpdump.Options{})
			runs++
			for i := range res.Requests {
				got := &res.Requests[i]
				if got.Way == analyze.WayLocal {
					continue
				}
				if bad := contradicts(got, whole); bad != "" && !strings.Contains(bad, elsewhere) {
					t.Errorf("%s, %s: %s", name, place, bad)
				}
				if got.Basis == analyze.BasisConntrack {
					sources++
				}
				for _, j := range got.Joins {
					if j.To == "far" && slices.Contains(j.Basis, "conntrack") {
						joins++
					}
				}
			}
		}
	}
	if byTable == 0 {
		t.Skip("not checked: what conntrack lists (the program is missing)")
	}
	t.Logf("%d pairs; the tables alone list %d requests, gave %d sources and %d joins with the far side", runs, byTable, sources, joins)
	if sources == 0 || joins == 0 {
		t.Error("no source or no join came from a table")
	}
}

// packetsOf splits a text into packets: one that begins without blanks, and the lines that belong to it.
func packetsOf(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if len(out) > 0 && (line[0] == ' ' || line[0] == '\t') {
			out[len(out)-1] += line
		} else {
			out = append(out, line)
		}
	}
	return out
}

// middle leaves out the first and the last third of a text's lines, as a person who pastes "the interesting part" does.
func middle(text string) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) < 4 {
		return text
	}
	if part := strings.Join(lines[len(lines)/3:len(lines)-len(lines)/3], ""); strings.Contains(part, "IP") {
		return part
	}
	return text // the middle of one packet's dump
}
