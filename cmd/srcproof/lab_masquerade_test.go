package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster/netfilter"
	"github.com/srcproof/srcproof/capture/wire"
	"github.com/srcproof/srcproof/report"
)

// TestLabRulesAgree holds the node's rules against its packets in every situation of the lab: what the kernel did is what its
// rules say.
func TestLabRulesAgree(t *testing.T) {
	results := labCaptures(t)
	rows, told := 0, 0
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		any, ok := r.captures["any"]
		if !ok || r.rules == "" {
			continue
		}
		save := filepath.Join(t.TempDir(), "save.txt")
		if err := os.WriteFile(save, []byte(r.rules), 0o600); err != nil {
			t.Fatal(err)
		}
		facts := factsOf(t, append(slices.Clone(r.facts), "--iptables", save))
		res := analyzeBytes(t, any.pcap, wire.SideNear, facts)
		for i := range res.Rules {
			row := &res.Rules[i]
			rows++
			switch {
			case row.Agree == analyze.NotMet && name == "old-mapping":
				t.Errorf("%s: %s: an older connection was counted: %+v", name, row.Destination(), row)
			case row.Agree == analyze.NotMet:
				t.Errorf("%s: %s: by the rules %s (%s), by the packets %d kept and %d not", name, row.Destination(), row.Kernel.Answer, row.Kernel.Place.Rule, row.Kept, row.Seen()-row.Kept)
			case row.Kernel.Answer == netfilter.Undetermined && row.Seen() > 0:
				t.Errorf("%s: %s: the rules do not tell: %s [%s]", name, row.Destination(), row.Kernel.Why, row.Kernel.Place.Rule)
			case row.Agree == analyze.Met:
				told++
			}
		}
	}
	t.Logf("%d destinations, of which packets and rules agree for %d", rows, told)
	if told < 30 {
		t.Errorf("%d destinations: the lab gave too little", told)
	}
}

// TestLabMasquerade runs the tool as a person does where configuration, rules and packets are not one.
func TestLabMasquerade(t *testing.T) {
	const (
		keeps    = "nonMasqueradeCIDRs: [10.0.0.0/8, 172.16.0.0/12]\n"
		narrow   = "nonMasqueradeCIDRs: [172.16.0.0/16, 10.10.0.0/28]\n"
		rejected = "nonMasqueradeCIDRs: [172.16.0.0/16, 10.10.0.3/28]\n"
	)
	for _, c := range []struct {
		name, scenario, config string
		intent, kernel, wire   string
		rule                   string // part of the one that decides
		agree                  string
		codes                  []string
		code                   int
		also                   []string // flags
		title                  string   // of one of the findings
	}{
		{
			name: "two chains with different lists", scenario: "two-chains", config: keeps, intent: "kept", kernel: "masqueraded", wire: "masqueraded",
			rule: "-A IP-MASQ-AGENT -j MASQUERADE", agree: "no", codes: []string{"other-rule-first"}, code: exitNotMet, title: "Chain IP-MASQ-AGENT decides, and not the agent's alone.",
		},
		{
			name: "the same, of the GKE add-on", scenario: "two-chains", config: keeps, intent: "kept", kernel: "masqueraded", wire: "masqueraded",
			rule: "-A IP-MASQ-AGENT -j MASQUERADE", agree: "no", codes: []string{"other-rule-first"}, code: exitNotMet, also: []string{"--agent", "gke"},
		},
		{
			name: "a MASQUERADE before the agent's chain", scenario: "stray-masquerade", config: keeps, intent: "kept", kernel: "masqueraded", wire: "masqueraded",
			rule: "-A POSTROUTING -s 172.16.0.0/16 -d 10.20.0.0/16 -j MASQUERADE", agree: "no", codes: []string{"other-rule-first"}, code: exitNotMet,
			title: "Chain POSTROUTING decides, and not the agent's alone.",
		},
		{
			name: "a configuration that the agent refuses, the old rules in force", scenario: "before", config: rejected, intent: "undetermined", kernel: "kept", wire: "kept",
			rule: "-d 10.0.0.0/8", agree: "yes", codes: []string{"config-rejected"}, code: exitNotMet,
		},
		{
			name: "a configuration that has not come to the node", scenario: "before", config: narrow, intent: "masqueraded", kernel: "kept", wire: "kept",
			rule: "-d 10.0.0.0/8", agree: "no", codes: []string{"config-not-applied"}, code: exitNotMet,
		},
		{
			name: "all is one", scenario: "after", config: narrow, intent: "masqueraded", kernel: "masqueraded", wire: "masqueraded",
			rule: "-j MASQUERADE", agree: "yes", code: exitDone,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := labCaptures(t, c.scenario)
			r := results[c.scenario]
			if r == nil {
				t.Fatal("the situation did not happen")
			}
			dir := t.TempDir()
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			args := slices.Concat([]string{"rules", "--masq-config", write("cm.yaml", c.config), "--iptables", write("save.txt", r.rules), "--capture", r.path(t, "any"), "-o", "json", "--request", podTCP}, r.facts, c.also)
			out, errs, code := srcproofRun(t, args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, errs)
			}
			var rec report.Record
			if err := json.Unmarshal([]byte(out), &rec); err != nil {
				t.Fatal(err)
			}
			if len(rec.Rules) != 1 {
				t.Fatalf("%d rows: %+v", len(rec.Rules), rec.Rules)
			}
			row := rec.Rules[0]
			if got := []string{string(row.Intent), string(row.Kernel), string(row.Wire), row.Agree}; !slices.Equal(got, []string{c.intent, c.kernel, c.wire, c.agree}) {
				t.Errorf("intent, kernel, wire, agree: %q", got)
			}
			if row.KernelPlace == nil || !strings.Contains(netfilter.WithoutComments(string(row.KernelPlace.Rule)), c.rule) {
				t.Errorf("the rule that decides: %+v, want %q", row.KernelPlace, c.rule)
			}
			var codes, titles []string
			for _, f := range rec.Findings {
				if analyze.IsAboutRules(f.Code) {
					codes, titles = append(codes, f.Code), append(titles, f.Title)
				}
			}
			if !slices.Equal(codes, c.codes) {
				t.Errorf("findings %q, want %q", codes, c.codes)
			}
			if c.title != "" && !slices.Contains(titles, c.title) {
				t.Errorf("titles %q, want %q", titles, c.title)
			}
		})
	}
}
