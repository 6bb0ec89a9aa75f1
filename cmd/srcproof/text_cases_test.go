package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/report"
)

const casesDir = "../../../shared/cases"

// textCase is a row of EXPECT.tsv.
type textCase struct {
	file, form                 string
	facts                      []string
	proto, client, server      string
	egress                     string
	source, outcome, stoppedAt string
	note                       string
}

func textCases(t *testing.T, forms ...string) []textCase {
	t.Helper()
	rows, err := os.ReadFile(filepath.Join(casesDir, "EXPECT.tsv"))
	if err != nil {
		t.Skipf("not checked: texts as people paste them (%v)", err)
	}
	var out []textCase
	for line := range strings.Lines(string(rows)) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(f) < 11 || !slices.Contains(forms, f[1]) {
			continue
		}
		c := textCase{file: f[0], form: f[1], proto: f[3], client: f[4], server: f[5], egress: f[6], source: f[7], outcome: f[8], stoppedAt: f[9], note: f[10]}
		if f[2] != "-" {
			c.facts = strings.Fields(f[2])
		}
		out = append(out, c)
	}
	return out
}

// allows tells whether a value is one of those that a row allows.
func allows(want, got string) bool {
	return want == "*" || slices.Contains(strings.Split(want, "|"), got)
}

// endText is an end as rows have it: without what marks a placeholder.
func endText(addr string, port *uint16) string {
	if port == nil {
		return addr
	}
	return net.JoinHostPort(addr, itoaPort(*port))
}

func itoaPort(p uint16) string {
	b, _ := json.Marshal(p)
	return string(b)
}

// TestTextCases reads texts as people paste them, each with the facts of its row, and looks for the row's request.
func TestTextCases(t *testing.T) {
	records := map[string]*report.Record{}
	used := map[string]map[string]bool{}
	for _, c := range textCases(t, "text", "none", "conntrack") {
		t.Run(c.file+" "+c.client+" > "+c.server, func(t *testing.T) {
			rec := records[c.file]
			if rec == nil {
				args := append([]string{"analyze", "-o", "json"}, c.facts...)
				if c.form == "conntrack" {
					args = append(args, "--conntrack")
				}
				out, errs, code := srcproofRun(t, append(args, filepath.Join(casesDir, c.file))...)
				if code != exitDone {
					t.Fatalf("exit code %d: %s", code, errs)
				}
				rec = &report.Record{}
				if err := json.Unmarshal([]byte(out), rec); err != nil {
					t.Fatal(err)
				}
				records[c.file], used[c.file] = rec, map[string]bool{}
			}
			plain := strings.NewReplacer("<", "", ">", "")
			var seen []string
			for i := range rec.Requests {
				r := &rec.Requests[i]
				client, server := endText(r.Client.Addr, r.Client.Port), endText(r.Server.Addr, r.Server.Port)
				egress := "-"
				if r.Egress != nil {
					egress = r.Egress.Addr
				}
				seen = append(seen, strings.Join([]string{r.Proto, client, ">", server, "egress", egress, r.Source, r.Outcome, r.StoppedAt}, " "))
				same := client == plain.Replace(c.client) && server == plain.Replace(c.server)
				if either := allows(c.outcome, "one-direction") || allows(c.outcome, "midstream"); either && !same {
					same = server == plain.Replace(c.client) && client == plain.Replace(c.server)
				}
				if r.Proto != c.proto || !same || used[c.file][r.ID] || !allows(c.outcome, r.Outcome) {
					continue
				}
				used[c.file][r.ID] = true
				if !allows(plain.Replace(c.egress), egress) || !allows(c.source, r.Source) || !allows(c.stoppedAt, r.StoppedAt) {
					t.Errorf("egress %s, source %s, outcome %s, stopped at %s; want %s, %s, %s, %s (%s)\nreasons %q\nunknown %+v", egress, r.Source, r.Outcome, r.StoppedAt, c.egress, c.source, c.outcome, c.stoppedAt, c.note, r.Reasons, r.Unknown)
				}
				return
			}
			t.Errorf("no such request with outcome %s (%s); seen\n  %s", c.outcome, c.note, strings.Join(seen, "\n  "))
		})
	}
	if len(records) < 55 {
		t.Errorf("%d files", len(records))
	}
}

// TestTextRefused: what is no packet is refused in a line that says what it is.
func TestTextRefused(t *testing.T) {
	asked := 0
	for _, c := range textCases(t, "refuse") {
		asked++
		out, errs, code := srcproofRun(t, "analyze", filepath.Join(casesDir, c.file))
		if code != exitFailed || out != "" || strings.Count(errs, "\n") > 2 {
			t.Errorf("%s: exit code %d, %q, %q", c.file, code, out, errs)
		}
		t.Logf("%s (%s): %s", c.file, c.note, errs)
	}
	if asked < 6 {
		t.Errorf("%d files", asked)
	}
}
