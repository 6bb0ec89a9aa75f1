package report

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
)

// ruledFacts are facts with a configuration and rules.
func ruledFacts(t testing.TB, config, rules string) *cluster.Facts {
	t.Helper()
	in := cluster.Input{
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/16")}, NodeIPs: []netip.Addr{netip.MustParseAddr("10.10.0.3")},
		MasqConfig: []byte(config), MasqConfigName: "/home/somebody/cm.yaml",
		Rules: []cluster.RulesText{{Flag: "--iptables", Name: "/home/somebody/save.txt", Text: []byte(rules)}},
	}
	f, err := cluster.New(in)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func manyRules(n int) string {
	var b strings.Builder
	b.WriteString("*nat\n:POSTROUTING ACCEPT [0:0]\n:IP-MASQ - [0:0]\n-A POSTROUTING -m addrtype ! --dst-type LOCAL -j IP-MASQ\n")
	for i := range n {
		fmt.Fprintf(&b, "-A IP-MASQ -d 198.18.%d.0/24 -m comment --comment \"shop/web-%d\" -j RETURN\n", i, i)
	}
	b.WriteString("-A IP-MASQ -j MASQUERADE\nCOMMIT\n")
	return b.String()
}

// lines are what WriteRulesText writes, each no wider than it may be: only commands are not broken.
func ruleLines(t *testing.T, rec *Record, opt TextOptions) []string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteRulesText(&b, rec, opt); err != nil {
		t.Fatal(err)
	}
	width := opt.Width
	if width == 0 {
		width = maxWidth
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for _, l := range lines {
		if n := columns(l); n > width && !isCommand(strings.TrimSpace(l)) {
			t.Errorf("%d columns: %s", n, l)
		}
		if strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("control characters: %q", l)
		}
		if l != strings.TrimRight(l, " ") {
			t.Errorf("blanks at the end: %q", l)
		}
	}
	return lines
}

// However many rows and whatever names, the text stays in its columns and says what it leaves out.
func TestRulesText(t *testing.T) {
	for _, n := range []int{0, 1, 5, 6, 7, 60} {
		for _, width := range []int{80, 100} {
			facts := ruledFacts(t, "nonMasqueradeCIDRs: [10.0.0.0/8, 198.18.0.0/24]", manyRules(n))
			rec := New(analyze.HoldRules(facts, analyze.RulesQuestion{To: []netip.Prefix{netip.MustParsePrefix("198.18.0.0/16")}, Port: -1}), Tool{})
			text := strings.Join(ruleLines(t, rec, TextOptions{Width: width}), "\n")
			if more := len(rec.Rules) - maxRows; (more > 0) != strings.Contains(text, "not shown: --all or -o json") {
				t.Errorf("%d rules, width %d: %s", n, width, text)
			}
			all := strings.Join(ruleLines(t, rec, TextOptions{Width: width, ShowAll: true}), "\n")
			for _, r := range rec.Rules {
				if !strings.Contains(all, r.Destination) {
					t.Errorf("%d rules: --all does not show %s", n, r.Destination)
				}
			}
			if n > 1 && !strings.Contains(text, "The node's rules are not those of this configuration.") {
				t.Errorf("%d rules: %s", n, text)
			}
		}
	}
}

// Names of chains, keys, ConfigMaps and files are hostile.
func TestRulesTextHostile(t *testing.T) {
	const evil = `e\u001b[31m\u0007\n## x <b> \u202e`
	config := `{"kind":"ConfigMap","metadata":{"name":"ip-masq-agent` + evil + `","namespace":"` + evil + `"},"data":{"config":"{\"nonMasqueradeCIDRs\":[\"10.0.0.0/8\"],\"` + strings.ReplaceAll(evil, `\`, `\\`) + `\":1}","` + evil + `":"x"}}`
	rules := "*nat\n:POSTROUTING ACCEPT [0:0]\n:E\x1b[31m - [0:0]\n-A POSTROUTING -m comment --comment \"\x1b]0;x\x07\" -j E\x1b[31m\n-A E\x1b[31m -d 10.0.0.0/8 -m comment --comment a\x1b[2J -j MASQUERADE\n-A E\x1b[31m -m what --ever \x1b[0m -j RETURN\n\x1b[31mnonsense\nCOMMIT\n"
	rec := New(analyze.HoldRules(ruledFacts(t, config, rules), analyze.RulesQuestion{To: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32")}, Port: -1}), Tool{})
	for _, width := range []int{80, 100} {
		ruleLines(t, rec, TextOptions{Width: width})
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, rec); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(b.String(), func(r rune) bool { return r < ' ' && r != '\n' }) {
		t.Errorf("control characters in JSON: %q", b.String())
	}
	if _, err := Decode(&b); err != nil {
		t.Errorf("the record is not one: %v", err)
	}
}

// Of evidence the configuration and the rules are of after the change; redacted, nothing of them stays.
func TestEvidenceRules(t *testing.T) {
	was, now := before(t), before(t)
	now.Facts = ruledFacts(t, "nonMasqueradeCIDRs: [172.16.0.0/16]", "*nat\n:POSTROUTING ACCEPT [0:0]\n:IP-MASQ - [0:0]\n-A POSTROUTING -j IP-MASQ\n-A IP-MASQ -d 10.0.0.0/8 -m comment --comment \"shop/web-7\" -j RETURN\n-A IP-MASQ -j MASQUERADE\nCOMMIT\n")
	now = now.Select(analyze.Selector{})
	res := analyze.HoldRules(now.Facts, analyze.RulesQuestion{To: []netip.Prefix{netip.MustParsePrefix("10.20.0.10/32")}, Port: -1})
	now.Rules = res.Rules
	for i := range now.Requests {
		if now.Requests[i].Client.Role.Kind == cluster.RolePod && now.Requests[i].Server.HasPort {
			now.Rules[0].Requests = append(now.Rules[0].Requests, i)
			for _, f := range res.Findings {
				f.Requests = []int{i}
				now.Findings = append(now.Findings, f)
			}
		}
	}
	rec := proved(t, was, now, EvidenceOptions{Which: webSelector(t), Intent: analyze.IntentSNAT, Facts: now.Facts})
	if len(rec.Rules) != 1 || len(rec.Findings) != 1 || rec.Findings[0].Code != "config-not-applied" {
		t.Fatalf("rules %+v, findings %+v", rec.Rules, rec.Findings)
	}
	var b bytes.Buffer
	if err := WriteEvidenceText(&b, rec, TextOptions{}); err != nil || !strings.Contains(b.String(), "The node's rules are not those of this configuration.") {
		t.Errorf("%v: %s", err, b.String())
	}
	if s := AgainstIntent(rec); s != nil {
		t.Errorf("the configuration carries the change: %q", s)
	}
	rec.Evidence.Intent = "keep"
	if s := AgainstIntent(rec); len(s) != 1 {
		t.Errorf("the configuration is against the intention: %q", s)
	}
	Redact(rec)
	b.Reset()
	if err := WriteJSON(&b, rec); err != nil {
		t.Fatal(err)
	}
	if err := WriteEvidenceText(&b, rec, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`[0-9]{1,3}(\.[0-9]{1,3}){3}|somebody|web-7|shop`).FindAllString(b.String(), -1); m != nil {
		t.Errorf("left in the record: %q", m)
	}
}

// What a saved record holds may be anything.
func TestRulesTextOfRandomRecords(t *testing.T) {
	for seed := range uint64(60) {
		rec := randomRecord(seed)
		for _, opt := range []TextOptions{{}, {Width: 80, ShowAll: true}} {
			var b bytes.Buffer
			if err := WriteRulesText(&b, rec, opt); err != nil {
				t.Fatal(err)
			}
			for l := range strings.Lines(b.String()) {
				if i := strings.IndexFunc(strings.TrimSuffix(l, "\n"), hidden); i >= 0 {
					t.Fatalf("seed %d: %q", seed, l)
				}
			}
		}
	}
}
