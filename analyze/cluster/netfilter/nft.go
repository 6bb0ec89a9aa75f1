package netfilter

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// What nft prints, as text or as JSON, is read into the same matches and statements; they become conditions and targets here.

// nftMatch is one comparison of a rule.
type nftMatch struct {
	text   string
	fields []string  // "ip saddr", "meta mark", ...; more than one is a concatenation
	mask   *uint32   // of the one field
	not    bool      // !=
	values []nftItem // any of them
	set    string    // or the elements of a set
	odd    bool      // it could not be read
}

// nftItem is a value, of one field or of several that belong together.
type nftItem struct{ parts []nftPart }

// nftPart is a value of one field: a word, or an interval.
type nftPart struct{ from, to string }

func (p nftPart) String() string {
	if p.to == "" {
		return p.from
	}
	return p.from + "-" + p.to
}

// condition turns a match into a condition.
func (m *nftMatch) condition() condition {
	c := m.positive()
	c.text = m.text
	if m.not {
		c = c.not()
		c.text = m.text
	}
	if needs := m.needs(); len(needs) > 0 {
		return all(m.text, append(needs, c)...)
	}
	return c
}

// needs are what its fields ask for by themselves: a field of a header is there only if the packet has such a header. A packet of another
// protocol or family does not meet the rule, negated or not.
func (m *nftMatch) needs() (out []condition) {
	for _, f := range m.fields {
		if head, _, _ := strings.Cut(f, " "); head == "ip" || head == "ip6" {
			out = append(out, onFamily(m.text, head == "ip"))
		} else if p, all, ok := protocol(head); ok && !all {
			out = append(out, onProtocol(m.text, p))
		}
	}
	return out
}

// ofMark tells whether it asks for a mark.
func (m *nftMatch) ofMark() bool {
	return slices.Contains(m.fields, "meta mark") || slices.Contains(m.fields, "ct mark") || m.odd
}

// rewritten tells whether a field is part of what the packet's connection is known by.
func rewritten(field string) bool {
	switch field {
	case "ip saddr", "ip daddr", "ip6 saddr", "ip6 daddr", "tcp sport", "tcp dport", "udp sport", "udp dport", "th sport", "th dport", "sctp sport", "sctp dport", "udplite sport", "udplite dport":
		return true
	}
	return false
}

// nftChanges tells of a set's flags whether its elements come and go with the packets: what the listing does not hold may be in it by
// the next one.
func nftChanges(flags string) bool {
	return strings.Contains(flags, "dynamic") || strings.Contains(flags, "timeout")
}

// positive is the condition without its negation.
func (m *nftMatch) positive() condition {
	if m.odd {
		return unknown(m.text, "")
	}
	if m.set != "" {
		return condition{text: m.text, test: func(w *walk) (tri, string) {
			s := w.rs.nftSets[m.set]
			if s == nil {
				return maybe, "set " + m.set + ": nft list ruleset"
			}
			t, settle := no, "set "+m.set+": nft list ruleset"
			for _, e := range s.items {
				is, why := m.item(e).test(w)
				if is > t {
					t, settle = is, why
				}
			}
			if s.odd && t == no {
				t = maybe
			}
			if s.terse && t == no {
				t, settle = maybe, "nft list ruleset without -t: no element of any set is in the input"
			}
			return t, settle
		}}
	}
	var any []condition
	for _, v := range m.values {
		any = append(any, m.item(v))
	}
	return anyOf(m.text, any...)
}

// item is the condition that all fields have the values of one item.
func (m *nftMatch) item(v nftItem) condition {
	if len(v.parts) != len(m.fields) {
		return unknown(m.text, "")
	}
	var cs []condition
	for i, f := range m.fields {
		if strings.HasPrefix(v.parts[i].from, "$") { // of a script
			return unknown(m.text, "nft list ruleset, which has the values of variables")
		}
		cs = append(cs, nftField(m.text, f, m.mask, v.parts[i]))
	}
	if len(cs) == 1 {
		return cs[0]
	}
	return all(m.text, cs...)
}

// nftField is the condition that one field has a value.
func nftField(text, field string, mask *uint32, v nftPart) condition {
	if mask != nil && field != "meta mark" && field != "ct mark" {
		return unknown(text, "")
	}
	switch field {
	case "ip saddr", "ip daddr", "ip6 saddr", "ip6 daddr":
		source := strings.HasSuffix(field, "saddr")
		if v.to != "" {
			a, err := netip.ParseAddr(v.from)
			b, err2 := netip.ParseAddr(v.to)
			if err != nil || err2 != nil {
				break
			}
			return onRange(text, source, a, b)
		}
		p, ok := prefix(v.from)
		if !ok {
			break
		}
		if source {
			return onSource(text, p)
		}
		return onDestination(text, p)
	case "ip protocol", "meta l4proto", "ip6 nexthdr":
		if p, all, ok := protocol(v.from); ok && !all && v.to == "" {
			return onProtocol(text, p)
		}
	case "tcp sport", "tcp dport", "udp sport", "udp dport", "th sport", "th dport", "sctp sport", "sctp dport", "udplite sport", "udplite dport":
		r, ok := portRange(v.from, 0)
		if v.to != "" {
			last, ok2 := portRange(v.to, 0)
			r.to, ok = last.to, ok && ok2
		}
		if !ok {
			break
		}
		source := strings.HasSuffix(field, "sport")
		return onPorts(text, source, !source, []ports{r})
	case "meta iifname", "meta oifname", "meta iif", "meta oif":
		if v.to != "" {
			break
		}
		name, wild := v.from, strings.HasSuffix(v.from, "*") && !strings.HasSuffix(v.from, `\*`)
		if wild {
			name = strings.TrimSuffix(name, "*")
		}
		return onInterface(text, strings.Contains(field, "oif"), strings.ReplaceAll(name, `\`, ""), wild)
	case "meta mark", "ct mark":
		from, ok := number32(v.from)
		if !ok {
			break
		}
		on := onMark
		if field == "ct mark" {
			on = onConnectionMark
		}
		switch {
		case v.to == "" && mask == nil:
			return on(text, from, ^uint32(0))
		case v.to == "":
			return on(text, from, *mask)
		}
		to, ok := number32(v.to)
		if !ok || mask != nil {
			break
		}
		return condition{text: text, test: func(w *walk) (tri, string) {
			w.askedMark = true
			b := w.mark
			if field == "ct mark" {
				b = w.connmrk
			}
			if b.known != ^uint32(0) {
				return maybe, "what sets the mark"
			}
			return triOf(b.value >= from && b.value <= to), ""
		}}
	case "ct state":
		return onState(text, []string{v.from})
	case "fib daddr type", "fib saddr type":
		return onAddressType(text, strings.Contains(field, "saddr"), strings.ToUpper(v.from))
	case "meta nfproto", "meta protocol":
		switch v.from {
		case "ipv4", "ip":
			return onFamily(text, true)
		case "ipv6", "ip6":
			return onFamily(text, false)
		}
	case "icmp type", "icmpv6 type":
		// Of ICMP only echo requests are asked for: 8 of ICMP, 128 of ICMPv6, with nft -n.
		if v.to != "" {
			break
		}
		return condition{text: text, test: func(*walk) (tri, string) {
			return triOf(v.from == "echo-request" || v.from == map[string]string{"icmp type": "8", "icmpv6 type": "128"}[field]), ""
		}}
	case "ct direction":
		switch v.String() {
		case "original", "0":
			return always(text)
		case "reply", "1":
			return always(text).not()
		}
	}
	return unknown(text, "")
}

func number32(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 0, 32)
	return uint32(n), err == nil
}

// nftSet is a set, or a map.
type nftSet struct {
	items    []nftItem
	verdicts []target // of a map of verdicts, for each item
	odd      bool     // elements could not be read, or may be missing
	terse    bool     // the listing shows no set's elements: nft -t prints none
}

// add takes an element of a map.
func (s *nftSet) add(key nftItem, verdict target, ok bool) {
	s.items, s.verdicts, s.odd = append(s.items, key), append(s.verdicts, verdict), s.odd || !ok
}

// nftLookup is what a rule looks up in a map of verdicts (vmap).
type nftLookup struct {
	key nftMatch // its fields and text
	of  string   // the map's name over all tables; "" is the rule's own
	own nftSet
}

// spread puts rules in place of those that ask maps of verdicts, one for each element: keys do not overlap, so that at most one is met.
// Rules whose map is not in the input stay, and what they do is not known.
func (rs *Ruleset) spread() {
	for _, t := range rs.tables {
		for _, c := range t.order {
			if !slices.ContainsFunc(c.rules, func(r *rule) bool { return r.lookup != nil }) {
				continue
			}
			var rules []*rule
			for _, r := range c.rules {
				rules = append(rules, r.spread(rs)...)
			}
			c.rules = rules
		}
	}
}

// maxSpreads is how many conditions of rules may stand in place of lookups: a text may have as many rules that ask one map as that has
// elements.
const maxSpreads = 1 << 18

func (r *rule) spread(rs *Ruleset) []*rule {
	if r.lookup == nil {
		return []*rule{r}
	}
	key, s := r.lookup.key, &r.lookup.own
	if r.lookup.of != "" {
		if s = rs.nftSets[r.lookup.of]; s == nil || s.terse || len(s.verdicts) != len(s.items) { // a set is no map
			return []*rule{r}
		}
	}
	known := r.conditions[:len(r.conditions)-1] // without the one that stands for the lookup
	if rs.spreads += len(s.items) * (1 + len(known)); rs.spreads > maxSpreads {
		return []*rule{r}
	}
	// A jump may come back with another mark, by which a second element would be met.
	odd := key.odd || key.mask != nil || key.ofMark() && slices.ContainsFunc(s.verdicts, func(t target) bool { return t.verdict == jump })
	out, others := []*rule(nil), []condition(nil)
	add := func(c condition, t target) {
		to := *r
		to.conditions, to.target, to.lookup = append(slices.Clone(known), c), t, nil
		out = append(out, &to)
	}
	rest := -1 // the element for what no other is met by
	for i, item := range s.items {
		if len(item.parts) == 1 && item.parts[0].from == "*" {
			rest = i
			continue
		}
		m := nftMatch{text: key.text, fields: key.fields, values: []nftItem{item}, odd: odd}
		others = append(others, m.positive())
		add(m.condition(), s.verdicts[i])
	}
	if rest >= 0 {
		cs := append(key.needs(), anyOf(key.text, others...).not())
		if s.odd { // an element that is missing here may be met
			cs = append(cs, r.conditions[len(r.conditions)-1])
		}
		add(all(key.text, cs...), s.verdicts[rest])
	}
	if s.odd {
		add(r.conditions[len(r.conditions)-1], r.target)
	}
	return out
}

// noElements marks the sets of a listing that shows no element of any set.
func (rs *Ruleset) noElements() {
	none := true
	for _, s := range rs.nftSets {
		none = none && len(s.items) == 0
	}
	for _, s := range rs.nftSets {
		s.terse = none
	}
}

// nftMarkOp is one step of a new mark: what it is computed with.
type nftMarkOp struct {
	op    string // "", "&", "|", "^"
	value uint32
}

// nftMark is the statement that sets the packet's or the connection's mark, to a number or to a mark with steps behind it.
func nftMark(connection bool, from string, ops []nftMarkOp, known bool) func(mark, connection bits) (bits, bits) {
	return func(mark, conn bits) (bits, bits) {
		b := bits{}
		switch from {
		case "meta mark":
			b = mark
		case "ct mark":
			b = conn
		case "":
			b = allKnown(0)
		}
		for _, o := range ops {
			switch o.op {
			case "&":
				b = bits{b.value & o.value, b.known | ^o.value}
			case "|":
				b = bits{b.value | o.value, b.known | o.value}
			case "^":
				b = bits{(b.value ^ o.value) & b.known, b.known}
			default:
				b = allKnown(o.value)
			}
		}
		b.value &= b.known
		if !known {
			b = bits{}
		}
		if connection {
			return mark, b
		}
		return b, conn
	}
}

// nftPriorities are the names of priorities (nft(8)); bridge's are not asked for.
func nftPriority(name string) (int, bool) {
	n, ok := map[string]int{"raw": priorityRaw, "mangle": priorityMangle, "dstnat": priorityDNAT, "filter": priorityFilter, "security": 50, "srcnat": prioritySNAT}[name]
	if ok {
		return n, true
	}
	n, err := strconv.Atoi(name)
	return n, err == nil
}

func nftHook(name string) (Hook, bool) {
	h, ok := map[string]Hook{"prerouting": Prerouting, "input": Input, "forward": Forward, "output": Output, "postrouting": Postrouting}[name]
	return h, ok
}

// nftTable returns a table of nft's, and whether its family is one that matters.
func (rs *Ruleset) nftTable(family, name string) (*table, bool) {
	v4, v6 := family == "ip" || family == "inet", family == "ip6" || family == "inet"
	if !v4 && !v6 {
		return nil, false
	}
	t := rs.table(BackendNFT, family+" "+name, v4, v6)
	t.native = true
	return t, true
}

// nftSetName is a set's name over all tables.
func nftSetName(t *table, name string) string { return t.name + " " + name }

// shadowed tells whether a table of nft's is one that iptables keeps there, and which was read from iptables itself: that says more.
func (rs *Ruleset) shadowed(t *table) bool {
	if !t.native {
		return false
	}
	family, name, _ := strings.Cut(t.name, " ")
	return slices.ContainsFunc(rs.tables, func(o *table) bool {
		return !o.native && o.backend == BackendNFT && o.name == name && o.v4 == (family == "ip") && o.v6 == (family == "ip6")
	})
}

// nftTarget reads a verdict or translation by its name.
func nftTarget(word string) (target, bool) {
	switch word {
	case "accept":
		return target{verdict: accept, name: word}, true
	case "drop", "reject":
		return target{verdict: drop, name: word}, true
	case "return":
		return target{verdict: toCaller, name: word}, true
	case "masquerade", "snat":
		return target{verdict: translate, name: word}, true
	case "dnat", "redirect", "tproxy":
		return target{verdict: divert, name: word}, true
	case "queue", "notrack", "synproxy", "fwd", "dup":
		return target{verdict: opaque, name: word}, true
	}
	return target{}, false
}

// anyMark is a mark that is set to something that is not known.
func anyMark(bits, bits) (bits, bits) { return bits{}, bits{} }

// xtTarget is a target of iptables' that nft shows by its name alone.
func xtTarget(name string) target {
	t := targetOf(name, nil)
	if t.verdict == jump {
		t.verdict = opaque
	}
	if t.mark != nil {
		t.mark = anyMark
	}
	return t
}

// tcpFlags is the condition on TCP's flags: of a mask's, exactly some are set.
func tcpFlags(text string, mask, set []string, any bool) condition {
	one := func(names []string) (f wire.TCPFlags, ok bool) {
		for _, n := range names {
			v, ok := flags(n)
			if !ok {
				return 0, false
			}
			f |= v
		}
		return f, true
	}
	m, ok := one(mask)
	s, ok2 := one(set)
	switch {
	case !ok || !ok2:
		return unknown(text, "")
	case any: // one of them is set
		return condition{text: text, test: func(*walk) (tri, string) {
			if s&wire.SYN != 0 {
				return yes, ""
			}
			return no, ""
		}}
	}
	return onFlags(text, m, s)
}
