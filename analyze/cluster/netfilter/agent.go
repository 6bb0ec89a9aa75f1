package netfilter

import (
	"net/netip"
	"slices"
)

// WithAgent returns the rules as they would be after ip-masq-agent has made its chain anew with a list of ranges that keep the
// source: the chain's rules are replaced in each nat table that has it; where none has it, chain and jump are added to the table
// that POSTROUTING is in, as the agent does (kubernetes-sigs/ip-masq-agent, syncMasqRules). rs is not changed.
func (rs *Ruleset) WithAgent(name string, keep []netip.Prefix, v6 bool) *Ruleset {
	out := *rs
	out.tables = slices.Clone(rs.tables)
	for _, four := range []bool{true, false} {
		if !four && !v6 {
			continue
		}
		at := slices.IndexFunc(out.tables, func(t *table) bool {
			return t.base() == "nat" && (four && t.v4 || !four && t.v6) && t.chains[name] != nil
		})
		if at < 0 {
			at = slices.IndexFunc(out.tables, func(t *table) bool {
				return t.base() == "nat" && (four && t.v4 || !four && t.v6) && t.chains["POSTROUTING"] != nil && !rs.shadowed(t)
			})
		}
		if at < 0 {
			continue
		}
		for i := at; i < len(out.tables); i++ {
			if t := out.tables[i]; i == at || t.base() == "nat" && t.chains[name] != nil && (four && t.v4 || !four && t.v6) {
				out.tables[i] = t.withAgent(name, keep, four)
			}
		}
	}
	return &out
}

// withAgent is a copy of a table with an agent's chain of its own.
func (t *table) withAgent(name string, keep []netip.Prefix, v4 bool) *table {
	n := *t
	n.chains, n.order = make(map[string]*chain), nil
	for _, c := range t.order {
		d := *c
		d.table, d.rules = &n, nil
		for _, r := range c.rules {
			s := *r
			s.chain = &d
			d.rules = append(d.rules, &s)
		}
		n.chains[c.name] = &d
		n.order = append(n.order, &d)
	}
	fresh := n.chains[name] == nil
	c := n.chain(name)
	c.rules, c.cut, c.around, c.declared = nil, "", "", true
	add := func(to *chain, line string) {
		opts, _ := words(line)
		conditions, target := parseRule(opts[2:])
		to.rules = append(to.rules, &rule{chain: to, text: line, input: "as planned", conditions: conditions, target: target})
	}
	for _, p := range keep {
		if p.Addr().Is4() == v4 {
			add(c, "-A "+name+" -d "+p.String()+" -j RETURN")
		}
	}
	add(c, "-A "+name+" -j MASQUERADE --random-fully")
	if post := n.chains["POSTROUTING"]; fresh && post != nil {
		add(post, "-A POSTROUTING -m addrtype ! --dst-type LOCAL -j "+name)
	}
	return &n
}

// AgentChains are those of the chains that agents and nodes make by themselves that are there.
func (rs *Ruleset) AgentChains() []string {
	var out []string
	for _, name := range []string{"IP-MASQ", "IP-MASQ-AGENT"} {
		if rs.HasChain(name) {
			out = append(out, name)
		}
	}
	return out
}
