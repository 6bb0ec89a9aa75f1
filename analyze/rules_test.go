package analyze

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/analyze/cluster/netfilter"
	"github.com/srcproof/srcproof/capture/wire"
)

// rowWords says of each row what it holds: "10.0.0.0/8 rest: intent kept, kernel masqueraded: NotMet".
func rowWords(rows []RuleRow) []string {
	var out []string
	for i := range rows {
		r := &rows[i]
		s := r.Destination() + ":"
		if r.HasIntent {
			s += " intent " + r.Intent.Answer.String()
		}
		if r.HasKernel {
			s += " kernel " + r.Kernel.Answer.String()
		}
		if r.HasNew {
			s += " new " + r.New.Answer.String()
		}
		if n := r.Seen(); n > 0 {
			s += fmt.Sprintf(" wire %d/%d/%d", r.Kept, r.NodeSNATed, r.Other)
		}
		if r.Older+r.Untold > 0 {
			s += fmt.Sprintf(" not counted %d/%d", r.Older, r.Untold)
		}
		if r.Services > 0 {
			s += fmt.Sprintf(" services %d", r.Services)
		}
		out = append(out, s+" "+map[State]string{Met: "yes", NotMet: "no", Inconclusive: "-"}[r.Agree])
	}
	return out
}

func checkRuleRows(t *testing.T, rows []RuleRow, want ...string) {
	t.Helper()
	if got := rowWords(rows); !slices.Equal(got, want) {
		t.Errorf("rows\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}

func ask(to ...string) RulesQuestion {
	q := RulesQuestion{Port: -1}
	for _, s := range to {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			a := netip.MustParseAddr(s)
			p = netip.PrefixFrom(a, a.BitLen())
		}
		q.To = append(q.To, p)
	}
	return q
}

// A range is parted where configuration and rules part it, and not more: what says the same for the same reason is one row.
func TestRulesOfRange(t *testing.T) {
	const service = "-A PREROUTING -d 10.96.0.10/32 -p tcp -m tcp --dport 443 -j DNAT --to-destination 10.4.0.9:8443\n"
	for _, c := range []struct {
		name, config, rules string
		to                  []string
		want                []string
	}{
		{
			"one address", narrow, agentRules("IP-MASQ-AGENT", "10.0.0.0/8"),
			[]string{"10.20.0.1", "192.0.2.1"},
			[]string{"10.20.0.1: intent kept kernel kept yes", "192.0.2.1: intent masqueraded kernel masqueraded yes"},
		},
		{
			"the whole Internet", narrow, agentRules("IP-MASQ-AGENT", "10.0.0.0/8", "192.0.2.0/24"),
			[]string{"0.0.0.0/0"},
			[]string{
				"all others: intent masqueraded kernel masqueraded yes", "the rest of 10.0.0.0/8: intent kept kernel kept yes",
				node + ": intent kept kernel kept yes", "169.254.0.0/16: intent kept kernel masqueraded no", "192.0.2.0/24: intent masqueraded kernel kept no",
			},
		},
		{
			"a range within the list", narrow, agentRules("IP-MASQ-AGENT", "10.0.0.0/8"),
			[]string{"10.20.0.0/16"},
			[]string{"10.20.0.0/16: intent kept kernel kept yes"},
		},
		{
			"a range that the list halves", narrow, "",
			[]string{"8.0.0.0/6"},
			[]string{"the rest of 8.0.0.0/6: intent masqueraded -", "the rest of 10.0.0.0/8: intent kept -", node + ": intent kept -"},
		},
		{
			"two halves that are all of it", "nonMasqueradeCIDRs: [192.0.2.0/25, 192.0.2.128/25]", "",
			[]string{"192.0.2.0/24"},
			[]string{"192.0.2.0/25: intent kept -", "192.0.2.128/25: intent kept -"},
		},
		{
			"a range in a range, with the same answer for another reason", "nonMasqueradeCIDRs: [198.51.100.0/24, 198.51.100.128/25]", "",
			[]string{"198.51.100.0/24"},
			[]string{"198.51.100.0/24: intent kept -"},
		},
		{
			"Services' addresses are no rows of their own", narrow, agentRules("IP-MASQ-AGENT", "10.0.0.0/8") + "*nat\n:PREROUTING ACCEPT [0:0]\n" + service + "COMMIT\n",
			[]string{"10.96.0.0/16"},
			[]string{"10.96.0.0/16: intent kept kernel kept services 1 yes"},
		},
		{
			"a Service's address", narrow, agentRules("IP-MASQ-AGENT", "10.0.0.0/8"),
			[]string{"10.96.0.10"},
			[]string{"10.96.0.10: intent undetermined kernel kept -"},
		},
		{
			"a set of which nothing is known", narrow, "*nat\n:POSTROUTING ACCEPT\n-A POSTROUTING -m set ! --match-set pods dst -j MASQUERADE\nCOMMIT\n",
			[]string{"10.20.0.1"},
			[]string{"10.20.0.1: intent kept kernel undetermined -"},
		},
		{
			"IPv6 that the agent makes no rules for", narrow, "",
			[]string{"2001:db8::1"},
			[]string{"2001:db8::1: intent kept -"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := HoldRules(ruled(t, c.config, c.rules), ask(c.to...))
			checkRuleRows(t, res.Rules, c.want...)
			checkFindings(t, res)
		})
	}
}

// Of a range each address has the answer of the row that it belongs to: random lists and rules, asked by ranges and one by one.
func TestRulesOfRangeAreThoseOfItsAddresses(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 6))
	random := func(within netip.Prefix, most int) string {
		var out []string
		for range rnd.IntN(most + 1) {
			b := within.Addr().As4()
			bits := within.Bits() + rnd.IntN(33-within.Bits())
			for i := within.Bits(); i < bits; i++ {
				if rnd.IntN(2) == 0 {
					b[i/8] |= 0x80 >> (i % 8)
				}
			}
			out = append(out, netip.PrefixFrom(netip.AddrFrom4(b), bits).Masked().String())
		}
		return strings.Join(out, ", ")
	}
	within := netip.MustParsePrefix("198.51.100.0/24")
	asked := 0
	for range 300 {
		config := "nonMasqueradeCIDRs: [" + random(within, 4) + "]"
		keep := random(within, 5)
		rules := agentRules("IP-MASQ-AGENT")
		if keep != "" {
			rules = agentRules("IP-MASQ-AGENT", strings.Split(keep, ", ")...)
		}
		facts := ruled(t, config, rules)
		res := HoldRules(facts, ask(within.String()))
		for host := range 256 {
			a := within.Addr().As4()
			a[3] = byte(host)
			one := HoldRules(facts, ask(netip.AddrFrom4(a).String())).Rules[0]
			// The narrowest row that holds the address.
			var row *RuleRow
			for i := range res.Rules {
				if res.Rules[i].To.Contains(one.To.Addr()) {
					row = &res.Rules[i]
				}
			}
			if row == nil || row.Intent.Answer != one.Intent.Answer || row.Kernel.Answer != one.Kernel.Answer || row.Agree != one.Agree {
				t.Fatalf("%s, rules %s\n%s\nby itself %s", config, keep, strings.Join(rowWords(res.Rules), "\n"), rowWords([]RuleRow{one}))
			}
			asked++
		}
	}
	t.Logf("%d addresses", asked)
}

// Requests count for their destination by what left the node; what is older than the rules, or not known, does not.
func TestRulesOfRequests(t *testing.T) {
	lost := tries(podEnds, 1, 2, 4)
	other := pod + ":41001 > 203.0.113.9:443"
	facts := ruled(t, narrow, agentRules("IP-MASQ-AGENT", "10.0.0.0/8"))
	kept, snat := kept(podEnds), masqueraded(podEnds, node+":51000")
	for _, c := range []struct {
		name  string
		parts []part
		to    []string
		want  []string
	}{
		{"kept", []part{inOrder(neighbours(), kept.carry(lost...))}, nil, []string{server + " tcp port 443: intent masqueraded kernel masqueraded wire 1/0/0 no"}},
		{"translated", []part{inOrder(neighbours(), snat.carry(lost...))}, nil, []string{server + " tcp port 443: intent masqueraded kernel masqueraded wire 0/1/0 yes"}},
		{"seen at the Pod alone", []part{single("veth1"), seenAt(lost, on("veth1")), goesOn(20)}, nil, []string{server + " tcp port 443: intent masqueraded kernel masqueraded not counted 0/1 yes"}},
		{
			"open before",
			[]part{kept.carry(data(podEnds, 10, at(1)), dataBack(back(podEnds), 20, at(1.01), acks(clientISN+11), ttl(60)), ack(podEnds, at(1.02), seq(clientISN+11), acks(serverISN+21))), goesOn(20)},
			nil,
			[]string{server + " tcp port 443: intent masqueraded kernel masqueraded not counted 1/0 yes"},
		},
		{"the node's own", []part{seenAt(tries(nodeEnds, 1, 2, 4), out("eth0")), goesOn(20)}, nil, nil},
		{
			"one of two destinations is asked for",
			[]part{inOrder(neighbours(), snat.carry(lost...), masqueraded(other, node+":51001").carry(seenAt(tries(other, 1.5), isn(77000))...)), goesOn(20)},
			[]string{"203.0.113.0/24"},
			[]string{"203.0.113.0/24: intent masqueraded kernel masqueraded wire 0/1/0 yes"},
		},
		{
			"a destination that nobody asked",
			[]part{inOrder(neighbours(), snat.carry(lost...))},
			[]string{"203.0.113.9"},
			[]string{"203.0.113.9: intent masqueraded kernel masqueraded yes"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var opt Options
			if c.to != nil {
				q := ask(c.to...)
				opt.Rules = &q
			}
			res := runOf(t, facts, opt, captureOf(t, c.parts...))
			ours := slices.DeleteFunc(slices.Clone(res.Rules), func(r RuleRow) bool { return strings.HasPrefix(r.Destination(), "198.51.100.") }) // not the neighbours
			checkRuleRows(t, ours, c.want...)
			checkFindings(t, res)
		})
	}
	// What is planned is shown beside.
	q := ask(server)
	next, err := facts.Plan([]byte(wide), "new.yaml")
	if err != nil {
		t.Fatal(err)
	}
	q.Next = next
	res := runOf(t, facts, Options{Rules: &q}, captureOf(t, inOrder(neighbours(), snat.carry(lost...))))
	checkRuleRows(t, res.Rules, server+": intent masqueraded kernel masqueraded new kept wire 0/1/0 yes")
	// Of another time, configuration and rules are not held against packets.
	res = runOf(t, facts, Options{OtherRules: true}, captureOf(t, inOrder(neighbours(), kept.carry(lost...))))
	if res.Rules != nil || slices.ContainsFunc(res.Findings, func(f Finding) bool { return IsAboutRules(f.Code) }) {
		t.Errorf("rows %q, findings %+v", rowWords(res.Rules), res.Findings)
	}
}

// Rules that tell sources apart are asked for each Pod that was captured, or for the range that is asked from.
func TestRulesBySource(t *testing.T) {
	const bySource = "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -s 10.4.0.0/24 -d 192.0.2.0/24 -j MASQUERADE\nCOMMIT\n"
	facts := ruled(t, "", bySource)
	for _, c := range []struct {
		from []string
		want netfilter.Answer
		says string
	}{
		{nil, netfilter.Undetermined, "10.4.0.0/24"},
		{[]string{"10.4.0.7/32"}, netfilter.Masqueraded, ""},
		{[]string{"10.5.0.7/32"}, netfilter.Kept, ""},
		{[]string{"10.4.0.0/25"}, netfilter.Masqueraded, ""},
		{[]string{"10.4.0.7/32", "10.4.0.8/32"}, netfilter.Masqueraded, ""},
		{[]string{"10.4.0.7/32", "10.5.0.8/32"}, netfilter.Undetermined, "it depends on the source: 10.4.0.7 is masqueraded, 10.5.0.8 is kept"},
	} {
		q := ask("192.0.2.9")
		for _, s := range c.from {
			q.From = append(q.From, netip.MustParsePrefix(s))
		}
		r := HoldRules(facts, q).Rules[0]
		if r.Kernel.Answer != c.want || !strings.Contains(r.Kernel.Why+r.Kernel.Place.Rule, c.says) {
			t.Errorf("from %q: %s (%s), want %s", c.from, r.Kernel.Answer, r.Kernel.Why, c.want)
		}
	}
}

// The protocol and the port that are asked for are those of the rules, and of the requests that count.
func TestRulesByPort(t *testing.T) {
	const byPort = "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -d 192.0.2.0/24 -p tcp -m tcp --dport 443 -j MASQUERADE\nCOMMIT\n"
	for _, c := range []struct {
		proto wire.Proto
		port  int
		want  string
	}{
		{wire.ProtoTCP, 443, server + " tcp port 443: kernel masqueraded wire 1/0/0 no"},
		{wire.ProtoTCP, 80, server + " tcp port 80: kernel kept -"},
		{wire.ProtoUDP, 443, server + " udp port 443: kernel kept -"},
		{wire.ProtoTCP, -1, server + " tcp: kernel undetermined wire 1/0/0 -"},
		{wire.ProtoNone, -1, server + ": kernel undetermined wire 1/0/0 -"},
	} {
		q := ask(server)
		q.Proto, q.Port = c.proto, c.port
		res := runOf(t, ruled(t, "", byPort), Options{Rules: &q}, captureOf(t, inOrder(neighbours(), kept(podEnds).carry(tries(podEnds, 1, 2, 4)...))))
		checkRuleRows(t, res.Rules, c.want)
	}
}

// What is planned changes the agent's own chain: other rules stay, and may decide first.
func TestRulesPlanned(t *testing.T) {
	agents := agentRules("IP-MASQ-AGENT", "10.0.0.0/8")
	behind := func(rule string) string {
		return strings.Replace(agents, "-A POSTROUTING", rule+"\n-A POSTROUTING", 1)
	}
	for _, c := range []struct {
		name, rules, next string
		agent             cluster.MasqAgent
		want              netfilter.Answer
		says              string
	}{
		{"the agent's chain decides", agents, "nonMasqueradeCIDRs: [10.0.0.0/8, 192.0.2.0/24]", cluster.AgentGuess, netfilter.Kept, "nonMasqueradeCIDRs[1]"},
		{"a rule by hand keeps", behind("-A POSTROUTING -d 192.0.2.0/24 -j ACCEPT"), "nonMasqueradeCIDRs: [10.0.0.0/8]", cluster.AgentGuess, netfilter.Kept, "by the configuration alone it would be masqueraded"},
		{"a rule by hand translates", behind("-A POSTROUTING -d 192.0.2.0/24 -j MASQUERADE"), "nonMasqueradeCIDRs: [192.0.2.0/24]", cluster.AgentGuess, netfilter.Masqueraded, "by the configuration alone it would be kept"},
		{"two chains, and the agent is not known", agents + agentRules("IP-MASQ", "192.0.2.0/24"), "nonMasqueradeCIDRs: [192.0.2.0/24]", cluster.AgentGuess, netfilter.Undetermined, "which of them this agent makes is not known"},
		{"two chains, of which this agent's is one", agents + agentRules("IP-MASQ", "192.0.2.0/24"), "nonMasqueradeCIDRs: [192.0.2.0/24]", cluster.AgentUpstream, netfilter.Kept, "nonMasqueradeCIDRs[0]"},
		{"and the other one translates", agents + agentRules("IP-MASQ", "192.0.2.0/24"), "nonMasqueradeCIDRs: [192.0.2.0/24]", cluster.AgentGKE, netfilter.Masqueraded, "chain IP-MASQ-AGENT"},
		{"the chain is not there yet", "*nat\n:POSTROUTING ACCEPT\nCOMMIT\n", "nonMasqueradeCIDRs: [10.0.0.0/8]", cluster.AgentUpstream, netfilter.Masqueraded, "not in "},
		{"a set is in the way", behind("-A POSTROUTING -m set --match-set x dst -j ACCEPT"), "nonMasqueradeCIDRs: [10.0.0.0/8]", cluster.AgentGuess, netfilter.Undetermined, "--match-set x dst"},
		{"no rules are given", "", "nonMasqueradeCIDRs: [192.0.2.0/24]", cluster.AgentGuess, netfilter.Kept, "nonMasqueradeCIDRs[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := cluster.Input{Agent: c.agent}
			if c.rules != "" {
				in.Rules = []cluster.RulesText{{Flag: "--iptables", Name: "s", Text: []byte(strings.ReplaceAll(c.rules, "COMMIT\n*nat\n", ""))}}
			}
			facts, err := cluster.New(in)
			if err != nil {
				t.Fatal(err)
			}
			q := ask(server)
			if q.Next, err = facts.Plan([]byte(c.next+"\nmasqLinkLocal: true\n"), "new.yaml"); err != nil {
				t.Fatal(err)
			}
			if v := HoldRules(facts, q).Rules[0].New; v.Answer != c.want || !strings.Contains(v.Why, c.says) {
				t.Errorf("%s (%s), want %s (%s)", v.Answer, v.Why, c.want, c.says)
			}
		})
	}
}

// Where something translates that no rule shows, rules that keep say nothing.
func TestRulesBesideWhichOthersTranslate(t *testing.T) {
	for _, c := range []struct {
		rules string
		agent cluster.MasqAgent
		want  netfilter.Answer
	}{
		{"*nat\n:POSTROUTING ACCEPT\n:CILIUM_POST_nat - [0:0]\n-A POSTROUTING -j CILIUM_POST_nat\nCOMMIT\n", cluster.AgentGuess, netfilter.Undetermined},
		{"*nat\n:POSTROUTING ACCEPT\n:OVN-KUBE-EGRESS-SVC - [0:0]\n-A POSTROUTING -j OVN-KUBE-EGRESS-SVC\nCOMMIT\n", cluster.AgentGuess, netfilter.Undetermined},
		{agentRules("IP-MASQ", "192.0.2.0/24"), cluster.AgentCilium, netfilter.Undetermined},
		{agentRules("IP-MASQ", "192.0.2.0/24"), cluster.AgentGKE, netfilter.Kept},
	} {
		facts, err := cluster.New(cluster.Input{Agent: c.agent, Rules: []cluster.RulesText{{Flag: "--iptables", Name: "s", Text: []byte(c.rules)}}})
		if err != nil {
			t.Fatal(err)
		}
		r := HoldRules(facts, ask(server)).Rules[0]
		if r.Kernel.Answer != c.want || c.want == netfilter.Undetermined && r.Kernel.Settle == "" || c.want == netfilter.Kept && !strings.Contains(strings.Join(r.Kernel.Assumed, ""), "no other rules of the node translate") {
			t.Errorf("%s: %+v", c.rules, r.Kernel)
		}
	}
}

// A request that the rules drop, and that never left, is no contradiction, and nothing that is not known.
func TestRulesOfDropped(t *testing.T) {
	drop := "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -d 192.0.2.0/24 -j DROP\nCOMMIT\n" + agentRules("IP-MASQ", "10.0.0.0/8")
	res := runOf(t, ruled(t, "", drop), Options{}, captureOf(t, inOrder(neighbours(), seenAt(tries(podEnds, 1, 2, 4), in("veth1")))))
	var row *RuleRow
	for i := range res.Rules {
		if res.Rules[i].To.Contains(netip.MustParseAddr(server)) {
			row = &res.Rules[i]
		}
	}
	if row == nil || !row.Kernel.Dropped || row.NotSent != 1 || row.Agree != Met || row.Untellable() {
		t.Errorf("%+v", row)
	}
}

// Which agent reads a configuration, the chain that the node has tells where no flag does.
func TestRulesTellTheAgent(t *testing.T) {
	reserved := agentRules("IP-MASQ", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16")
	for rules, want := range map[string]string{reserved: "gke", strings.ReplaceAll(reserved, "IP-MASQ", "IP-MASQ-AGENT"): "upstream", "": "upstream"} {
		in := ruled(t, "masqLinkLocal: false", rules).Intent()
		if in.Setup.Agent.String() != want || !in.Setup.Guessed {
			t.Errorf("agent %s, want %s: %+v", in.Setup.Agent, want, in.Setup)
		}
	}
}

// A configuration that is refused says nothing of any destination.
func TestRulesOfRefused(t *testing.T) {
	res := HoldRules(ruled(t, "nonMasqueradeCIDRs: [10.4.0.1/14]", agentRules("IP-MASQ-AGENT", "10.0.0.0/8")), ask("10.20.0.1"))
	checkRuleRows(t, res.Rules, "10.20.0.1: intent undetermined kernel kept -")
	if len(res.Findings) != 1 || res.Findings[0].Code != codeConfigRejected {
		t.Errorf("findings %+v", res.Findings)
	}
}

// A node with very many Services is asked in a time that grows with them, and not with their square.
func TestRulesOfManyServices(t *testing.T) {
	b := strings.Builder{}
	b.WriteString("*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\n-A POSTROUTING ! -d 10.0.0.0/8 -j MASQUERADE\n")
	const n = 3000
	for i := range n {
		fmt.Fprintf(&b, "-A KUBE-SERVICES -d 10.96.%d.%d/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.4.0.9:80\n", i/256, i%256)
	}
	b.WriteString("COMMIT\n")
	res := HoldRules(ruled(t, narrow, b.String()), ask("0.0.0.0/0"))
	rest := &res.Rules[1]
	if rest.To.String() != "10.0.0.0/8" || rest.Services != n || rest.Kernel.Answer != netfilter.Kept {
		t.Errorf("%d rows, the second %q", len(res.Rules), rowWords(res.Rules[1:2]))
	}
}
