package netfilter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Answer is what the rules do with a packet's source address.
type Answer uint8

// The answers. Undetermined is the zero value: what was read does not decide it.
const (
	Undetermined Answer = iota
	Kept
	Masqueraded // another source is put in place: MASQUERADE, SNAT, NETMAP
)

// String returns the answer's word in output and JSON.
func (a Answer) String() string {
	switch a {
	case Kept:
		return "kept"
	case Masqueraded:
		return "masqueraded"
	case Undetermined:
	}
	return "undetermined"
}

// Place is a rule, or the chain whose policy decides.
type Place struct {
	Backend Backend
	Table   string // "nat"; of nft with its family: "ip nat"
	Chain   string
	Rule    string // as the input has it; "" is the chain as a whole
	Input   string // the input's name
	Line    int    // of the input; 0 for a chain as a whole
}

// Verdict is an answer with what decides it.
type Verdict struct {
	Answer Answer
	Place  Place // what decides; where it is undetermined, the first place that could not be decided
	Why    string
	Settle string // undetermined: what would turn it into an answer; "" if nothing known would
	To     string // masqueraded: the address that the rule names; "" is the one of the interface
	Random bool   // masqueraded: the source port is changed too
	// Diverted tells that it is undetermined because a rule puts another destination in place first.
	Diverted bool
	// Dropped tells that it is undetermined because a rule drops the packet: it does not leave.
	Dropped bool
	// Apart tells that a rule does so for some of the packets that are asked for; the answer is that of the others.
	Apart bool
	// Assumed is what the answer rests on beside the rules.
	Assumed []string

	named bool // kept: the rule that decides names destinations
}

// walk is one packet on its way through the rules.
type walk struct {
	rs      *Ruleset
	p       *Packet
	mark    bits
	connmrk bits
	depth   int
	steps   int

	ends      []end
	doubt     *Verdict        // the first place that could not be decided
	passed    *rule           // the last rule that let the packet go on untranslated, for certain
	missed    *rule           // the last rule that would have led to a translation, and which the packet does not meet
	leads     map[*chain]bool // whether chains lead to a translation
	missedFor string          // the condition that it does not meet
	askedMark bool            // a mark decided, and it is assumed to be what it is
	askedLoc  bool            // so did whether the destination is the node itself
	hook      Hook            // where the packet is
	early     bool            // the packet has not come to the chains that translate the source yet
	diverts   *rule           // the first rule that puts another destination in place for some of the packets
	open      string          // what would tell whether the packet meets the last rule that was looked at
	markOpen  string          // what would tell which marks it has
	absent    string          // early: a chain that is not in the input, or not all of it
	accepted  leaving         // the packets that a rule of the base chain at hand accepts
}

// leaving are the marks that packets have which come out of a chain, by any of its ways.
type leaving struct {
	mark, connmrk bits
	any           bool
}

// add adds a way out: here.
func (l *leaving) add(w *walk) {
	if !l.any {
		*l = leaving{w.mark, w.connmrk, true}
		return
	}
	l.mark, l.connmrk = l.mark.merge(w.mark), l.connmrk.merge(w.connmrk)
}

// join adds the ways of another.
func (l *leaving) join(o leaving) {
	switch {
	case !o.any:
	case !l.any:
		*l = o
	default:
		l.mark, l.connmrk = l.mark.merge(o.mark), l.connmrk.merge(o.connmrk)
	}
}

// end is one way that the walk of a base chain may end.
type end struct {
	kind    verdict // accept, drop, translate, divert, opaque
	rule    *rule   // nil is the chain's policy
	certain bool
}

// Bounds of a walk: how deep chains jump (the kernel's own limit is 16), and how many rules are looked at.
const (
	maxDepth = 64
	maxSteps = 2_000_000
)

// Ask answers a question: does the node put another source address in place when the packet leaves?
func (rs *Ruleset) Ask(p Packet) Verdict {
	w := &walk{rs: rs, p: &p, mark: allKnown(p.Mark), connmrk: allKnown(0)}
	v4 := p.is4()
	// What the packet has met before: marks that rules ask for, and translations of the destination.
	for _, h := range []Hook{Prerouting, Forward, Postrouting} {
		chains := slices.DeleteFunc(rs.hooked(h, v4), func(c *chain) bool { return h == Postrouting && c.nat })
		w.hook = h
		var out *Verdict
		beside, late := len(chains), len(chains) // where the chains begin that are asked at nat's turn, and those behind it
		if h == Postrouting {
			turn := func(c *chain, at int) int { return cmp.Compare(c.turn(), at) }
			beside, _ = slices.BinarySearchFunc(chains, prioritySNAT, turn)
			late, _ = slices.BinarySearchFunc(chains, prioritySNAT+1, turn)
		}
		before := func(c *chain) bool {
			out = w.before(c)
			return out == nil
		}
		w.each(chains[:beside], before)
		if out == nil && beside < len(chains) { // what they set is no mark that nat sees for certain
			mark, connection := w.mark, w.connmrk
			w.each(chains[beside:late], before)
			mark, connection = w.mark.merge(mark), w.connmrk.merge(connection)
			if out == nil {
				w.each(chains[late:], before)
			}
			w.mark, w.connmrk = mark, connection
		}
		if out != nil {
			return w.done(*out)
		}
	}
	var all []answered
	w.each(slices.DeleteFunc(rs.hooked(Postrouting, v4), func(c *chain) bool { return !c.nat }), func(c *chain) bool {
		all = append(all, answered{c.table, w.ask(c)})
		return true
	})
	if len(all) == 0 {
		return w.done(w.noBase(v4))
	}
	if v := contradiction(all); v != nil {
		return w.done(*v)
	}
	kept := all[0].Verdict
	for _, a := range all {
		switch {
		case a.Answer == Masqueraded && p.local(false) == yes:
			return w.done(w.delivered(v4, a.Verdict))
		case a.Answer != Kept: // the first that translates is the last that is asked
			return w.done(a.Verdict)
		case kept.Place.Rule == "" && a.Place.Rule != "", a.named && !kept.named:
			kept = a.Verdict
		}
	}
	if rs.hidden != "" && !slices.ContainsFunc(rs.tables, func(t *table) bool { return t.backend == BackendLegacy }) {
		return w.done(Verdict{Why: rs.hidden, Settle: settleRules(v4)})
	}
	if rs.cut != "" {
		return w.done(Verdict{Why: rs.cut, Settle: settleRules(v4)})
	}
	return w.done(rs.beside(kept, v4))
}

// delivered is the answer for a packet to the node itself: it does not leave, and the rules for what leaves are not asked.
func (w *walk) delivered(v4 bool, leaving Verdict) Verdict {
	for _, c := range w.rs.hooked(Input, v4) {
		if c.nat && (len(c.rules) > 0 || c.cut != "" || c.around != "") {
			return Verdict{Place: c.place(), Why: "the destination is the node itself, and chain " + c.name + " of the nat table may translate what is delivered to it", Settle: "a capture on the node"}
		}
	}
	return Verdict{Answer: Kept, Place: leaving.Place, Why: "the destination is the node itself: the packet is delivered there, and does not come to the rules for what leaves"}
}

// beside says what a packet that these rules keep rests on: that nothing beside them translates.
func (rs *Ruleset) beside(v Verdict, v4 bool) Verdict {
	if v.Answer != Kept {
		return v
	}
	ovn, cilium := false, false
	stores := map[Backend]bool{}
	native := false
	for _, t := range rs.tables {
		native = native || t.native
		stores[t.backend] = true
		for _, c := range t.order {
			ovn = ovn || strings.HasPrefix(c.name, "OVN-KUBE-")
			cilium = cilium || c.name == "CILIUM_POST_nat" && len(c.rules) == 0
		}
	}
	const ciliumStatus = "cilium status | grep Masquerading, in the cilium-agent (on GKE the anetd) Pod of the node"
	switch {
	case ovn && (v.Place.Rule == "" || !strings.HasPrefix(v.Place.Chain, "OVN-KUBE-")):
		return Verdict{Place: v.Place, Why: "no rule translates, but OVN-Kubernetes translates in its own router, which no rule shows", Settle: "a capture on the node"}
	case cilium && !rs.HasChain("IP-MASQ") && !rs.HasChain("IP-MASQ-AGENT"):
		return Verdict{Place: v.Place, Why: "no rule translates, but Cilium, whose chain CILIUM_POST_nat is empty here, may do so in eBPF, which no rule shows", Settle: ciliumStatus}
	case cilium:
		v.Assumed = append(v.Assumed, "Cilium does not translate in eBPF ("+ciliumStatus+")")
	}
	six := ""
	if !v4 {
		six = "6"
	}
	var missing []string
	if !stores[BackendLegacy] {
		missing = append(missing, "ip"+six+"tables-legacy-save")
	}
	if !native {
		missing = append(missing, "nft list ruleset")
	}
	if len(missing) > 0 {
		v.Assumed = append(v.Assumed, "no other rules of the node translate (not in the input: "+strings.Join(missing, ", ")+")")
	}
	return v
}

// answered is what one table says.
type answered struct {
	table *table
	Verdict
}

// contradiction finds two listings that may be of one table, since one of them does not say by what the table is kept, and of which
// one translates and the other does not: which of them is in force is not known.
func contradiction(all []answered) *Verdict {
	for _, a := range all {
		for _, b := range all {
			if a.table.backend == BackendUnknown && a.table != b.table && a.table.base() == b.table.base() && a.Answer != b.Answer &&
				a.Answer != Undetermined && b.Answer != Undetermined {
				return &Verdict{
					Place: a.Place, Why: fmt.Sprintf("table %s stands more than once in the input: by one listing the packet is %s, by another %s", a.table.base(), a.Answer, b.Answer),
					Settle: "one dump of each store, made now: iptables-save, iptables-legacy-save and nft list ruleset",
				}
			}
		}
	}
	return nil
}

// each walks base chains in the kernel's order, until one says no. Of chains with one priority the kernel asks the one first that was
// registered last (net/netfilter/core.c, nf_hook_entries_grow), which no dump shows: any order may be it.
func (w *walk) each(chains []*chain, walk func(*chain) bool) {
	for len(chains) > 0 {
		n, nat := 1, chains[0].nat
		for n < len(chains) && chains[n].turn() == chains[0].turn() {
			nat = nat && chains[n].nat
			n++
		}
		if nat { // nat's own order is known
			for n = 1; n < len(chains) && chains[n].turn() == chains[0].turn() && chains[n].priority == chains[0].priority; {
				n++
			}
		}
		group := chains[:n]
		chains = chains[n:]
		in, after := w.orders(group)
		for i, c := range group {
			w.mark, w.connmrk = in[i][0], in[i][1]
			if !walk(c) {
				return
			}
			if n == 1 {
				after = [2]bits{w.mark, w.connmrk}
			}
		}
		w.mark, w.connmrk = after[0], after[1]
	}
}

// orders walks chains in every order, and returns the marks with which each may be reached, and those that may be left. Of many
// chains with one priority nothing is known of the marks.
func (w *walk) orders(group []*chain) (in [][2]bits, after [2]bits) {
	in = make([][2]bits, len(group))
	start := [2]bits{w.mark, w.connmrk}
	if len(group) == 1 {
		in[0] = start
		return in, start
	}
	if len(group) > 4 {
		return in, after
	}
	met := make([]bool, len(group))
	left, seen := true, make([]bool, len(group))
	var order func(at [2]bits, n int)
	order = func(at [2]bits, n int) {
		if n == len(group) {
			if left {
				after, left = at, false
			}
			after = [2]bits{after[0].merge(at[0]), after[1].merge(at[1])}
			return
		}
		for i, c := range group {
			if met[i] {
				continue
			}
			if !seen[i] {
				in[i], seen[i] = at, true
			}
			in[i] = [2]bits{in[i][0].merge(at[0]), in[i][1].merge(at[1])}
			w.mark, w.connmrk = at[0], at[1]
			w.base(c)
			met[i] = true
			order([2]bits{w.mark, w.connmrk}, n+1)
			met[i] = false
		}
	}
	order(start, 0)
	return in, after
}

// done adds what the answer rests on.
func (w *walk) done(v Verdict) Verdict {
	if w.askedMark {
		has := false
		for _, t := range w.rs.tables {
			has = has || !strings.HasSuffix(t.name, "nat")
		}
		switch {
		case w.absent != "":
			v.Assumed = append(v.Assumed, "chain "+w.absent+", which is not all in the input, does not mark the packet")
		case !has:
			v.Assumed = append(v.Assumed, "no rule outside the nat table marks the packet (none is in the input)")
		}
	}
	if w.diverts != nil {
		v.Apart = true
		v.Assumed = append(v.Assumed, fmt.Sprintf("it is none of the packets that a rule of chain %s sends to another destination first (%s)", w.diverts.chain.name, w.p.leavesOpen()))
	}
	if w.askedLoc && len(w.p.Local) == 0 {
		v.Assumed = append(v.Assumed, "the destination is not the node itself (no address of the node is given)")
	}
	return v
}

// noBase is the answer where the way into the rules is not in the input.
func (w *walk) noBase(v4 bool) Verdict {
	family := "IPv4"
	if !v4 {
		family = "IPv6"
	}
	if len(w.rs.tables) == 0 {
		return Verdict{Why: "there are no rules in the input", Settle: settleRules(v4)}
	}
	for _, t := range w.rs.tables {
		if v4 && !t.v4 || !v4 && !t.v6 || !strings.HasSuffix(t.name, "nat") {
			continue
		}
		// Of a chain that nothing leads into one can say what it would do.
		for _, c := range t.order {
			if c.hook == NoHook && len(c.rules) > 0 {
				return Verdict{
					Place: c.place(), Why: fmt.Sprintf("chain POSTROUTING is not in the input: whether anything leads into %s is not known", c.name),
					Settle: settleRules(v4),
				}
			}
		}
	}
	return Verdict{Why: "no nat table for " + family + " with a chain for packets that leave (POSTROUTING) is in the input", Settle: settleRules(v4)}
}

func settleRules(v4 bool) string {
	six := ""
	if !v4 {
		six = "6"
	}
	return "the whole rules of the node: ip" + six + "tables-save, ip" + six + "tables-legacy-save and nft list ruleset"
}

// before walks a chain that the packet meets before it leaves. It returns a verdict where the packet is no longer the one that
// was asked for.
func (w *walk) before(c *chain) *Verdict {
	w.ends, w.doubt, w.passed, w.missed = nil, nil, nil, nil
	if c.table.several { // which of the marks that they set is in force is not known
		w.mark, w.connmrk = bits{}, bits{}
		return nil
	}
	w.early = true
	fall := w.base(c)
	w.early = false
	if fall != no && c.drops {
		w.ends = append(w.ends, end{drop, nil, fall == yes})
		fall = no
	}
	if fall == no && w.steps <= maxSteps && !slices.ContainsFunc(w.ends, func(e end) bool { return e.kind != drop }) { // one of them, whichever
		w.ends[len(w.ends)-1].certain = true
	}
	for _, e := range w.ends {
		if e.kind == translate && w.hook == Prerouting { // NETMAP: there it puts another destination in place
			e.kind = divert
		}
		switch e.kind {
		case divert:
			// Of a question that leaves protocol or port open some packets may be such: they are apart from what is asked.
			if !e.certain && w.p.isOpen() {
				w.apart(e.rule)
				continue
			}
			v := w.undetermined(e, "the destination is translated by this rule before the packet leaves", "ask for the address behind it (--to)")
			v.Diverted = true
			return v
		case opaque:
			if e.rule != nil {
				return w.undetermined(e, "what this rule does is not known to this tool", "")
			}
		case drop:
			if e.certain {
				v := w.undetermined(e, "the packet is dropped before it leaves", "")
				v.Dropped = true
				return v
			}
		case goOn, accept, toCaller, jump, jumpAway, translate:
		}
	}
	return nil
}

// apart notes a rule that puts another destination in place for some of the packets that are asked for.
func (w *walk) apart(r *rule) {
	if w.diverts == nil {
		w.diverts = r
	}
}

func (w *walk) undetermined(e end, why, settle string) *Verdict {
	v := Verdict{Why: why, Settle: settle}
	if e.rule != nil {
		v.Place = e.rule.place()
	}
	return &v
}

func (r *rule) place() Place {
	return Place{r.chain.table.backend, r.chain.table.name, r.chain.name, r.text, r.input, r.line}
}

func (c *chain) place() Place { return Place{c.table.backend, c.table.name, c.name, "", "", 0} }

// ask walks one nat chain for packets that leave.
func (w *walk) ask(c *chain) Verdict {
	w.ends, w.doubt, w.passed, w.missed = nil, nil, nil, nil
	if c.table.several {
		return Verdict{Place: c.place(), Why: "table " + c.table.name + " stands more than once in the input, with different rules: which of them are in force is not known", Settle: "one dump, made now"}
	}
	fall := w.base(c)
	if fall != no {
		kind := accept
		if c.drops {
			kind = drop
		}
		w.ends = append(w.ends, end{kind, nil, fall == yes})
	}
	kinds := map[verdict]bool{}
	for _, e := range w.ends {
		kinds[e.kind] = true
	}
	first := w.ends[0]
	for _, e := range w.ends {
		if e.certain {
			first = e
			break
		}
	}
	switch {
	case w.steps > maxSteps:
		return Verdict{Place: c.place(), Why: "the rules are too many to follow", Settle: ""}
	case len(kinds) == 1 && kinds[translate]:
		return Verdict{Answer: Masqueraded, Place: first.rule.place(), Why: "the rule puts another source in place", To: first.rule.target.to, Random: first.rule.target.random}
	case len(kinds) == 1 && kinds[accept]:
		return w.kept(c)
	case len(kinds) == 1 && kinds[drop]:
		v := w.undetermined(first, "the packet is dropped, and does not leave", "")
		v.Dropped = true
		return *v
	case len(kinds) == 1 && kinds[opaque] && w.doubt == nil:
		return *w.undetermined(first, "what this rule does is not known to this tool", "")
	}
	if w.doubt != nil {
		return *w.doubt
	}
	return Verdict{Place: c.place(), Why: "more than one rule may decide", Settle: ""}
}

// kept says by which rule a packet goes on with its own source.
func (w *walk) kept(c *chain) Verdict {
	v := Verdict{Answer: Kept, Place: c.place(), Why: "no rule of the chain puts another source in place of this one"}
	switch {
	case w.passed != nil:
		v.Place, v.Why, v.named = w.passed.place(), "the rule ends the search before a translation", len(named(w.passed.conditions)) > 0
	case w.missed != nil:
		v.Place, v.Why, v.named = w.missed.place(), "the rule that leads to a translation does not apply: "+w.missedFor, len(named(w.missed.conditions)) > 0
	}
	return v
}

// base walks a base chain, and leaves the marks that packets have which go on behind it: those that come to its end, and those that a
// rule of it accepts.
func (w *walk) base(c *chain) (fall tri) {
	w.accepted = leaving{}
	fall = w.chain(c, yes)
	var out leaving
	if fall != no {
		out.add(w)
	}
	if out.join(w.accepted); out.any {
		w.mark, w.connmrk = out.mark, out.connmrk
	}
	return fall
}

// chain walks a chain that the packet reaches for certain or may reach, and tells whether it comes out of it again.
func (w *walk) chain(c *chain, reach tri) (fall tri) {
	if w.depth++; w.depth > maxDepth {
		w.depth--
		w.unsure(c.place(), "chains jump to each other too deep", "")
		return w.anything(reach)
	}
	defer func() { w.depth-- }()
	var out leaving
	if fall = w.rules(c, reach, &out); out.any {
		w.mark, w.connmrk = out.mark, out.connmrk
	}
	return fall
}

// rules walks the rules of a chain. out gets the marks with which the packet comes out of it.
func (w *walk) rules(c *chain, reach tri, out *leaving) (fall tri) {
	alive := reach // whether the packet is still in the chain here
	fall = no
	leave := func(at tri) tri {
		if at != no {
			out.add(w)
		}
		return at
	}
	if c.around != "" {
		w.unsure(c.place(), "chain "+c.name+" "+c.around, settleRules(c.table.v4))
		return leave(w.lost(c.name, alive))
	}
	for _, r := range c.rules {
		if w.steps++; w.steps > maxSteps {
			return leave(w.anything(alive))
		}
		if r.lost != "" {
			w.unsure(r.place(), "chain "+c.name+" "+r.lost, settleRules(c.table.v4))
			at := leave(w.lost(c.name, alive))
			fall, alive = max(fall, min(at, maybe)), at
			continue
		}
		t := w.meets(r)
		if t == no {
			continue
		}
		open := w.open
		certain := alive == yes && t == yes
		in := min(alive, t)
		stays := t != yes // whether the packet may go on behind the rule, if the rule ends its walk here
		mark, connection := w.mark, w.connmrk
		if r.target.mark != nil {
			w.mark, w.connmrk = r.target.mark(w.mark, w.connmrk)
			if t != yes {
				w.mayMark(mark, connection)
			}
		}
		does := r.target.verdict
		if to := c.table.chains[r.target.name]; does != jumpAway && to != nil && to.declared && !c.table.native {
			does = jump // a chain that is called as a target elsewhere is: TARPIT, STEAL
		}
		switch does {
		case goOn:
			continue
		case accept, drop, translate, divert:
			if r.target.verdict == accept && certain {
				w.passed = r
			}
			if r.target.verdict == accept {
				w.accepted.add(w)
			}
			w.ends = append(w.ends, end{r.target.verdict, r, certain})
		case opaque:
			w.unsure(r.place(), "what "+r.target.name+" does is not known to this tool", "")
			w.ends = append(w.ends, end{opaque, r, certain})
			stays = true
		case toCaller:
			if certain && w.leadsOn(c) {
				w.passed = r
			}
			fall = max(fall, leave(in))
		case jump, jumpAway:
			to := c.table.chains[r.target.name]
			var back tri
			switch {
			case to == nil || !to.declared && len(to.rules) == 0:
				w.unsure(r.place(), "chain "+r.target.name+" is not in the input", settleRules(c.table.v4))
				back = w.lost(r.target.name, in)
			default:
				back = w.chain(to, in)
			}
			if does == jumpAway {
				fall = max(fall, leave(back))
			}
			if t != yes {
				w.open = open
				w.mayMark(mark, connection)
			}
			if does == jumpAway {
				break
			}
			switch {
			case t == yes:
				if alive = min(alive, back); alive == no {
					return fall
				}
			default:
				alive = maybe
			}
			continue
		}
		if !stays {
			return fall
		}
		alive = maybe
	}
	if c.cut != "" {
		w.unsure(c.place(), "chain "+c.name+" "+c.cut, settleRules(c.table.v4))
		return max(fall, leave(w.lost(c.name, alive)))
	}
	return max(fall, leave(alive))
}

// leadsOn tells whether a chain holds a translation behind its RETURN rules, so that a RETURN keeps the source.
func (w *walk) leadsOn(c *chain) bool {
	for _, r := range c.rules {
		if r.target.verdict == translate {
			return true
		}
	}
	return c.hook == Postrouting || c.cut != ""
}

// meets tells whether a packet meets all conditions of a rule. The first that is not known is remembered as the doubt, if the
// rule can matter.
func (w *walk) meets(r *rule) tri {
	t := yes
	var open condition
	settle := ""
	for _, c := range r.conditions {
		is, s := c.test(w)
		if is == no {
			if w.leadsTo(r) {
				w.missed, w.missedFor = r, c.text
			}
			return no
		}
		if is == maybe && t == yes {
			t, open, settle = maybe, c, s
		}
	}
	w.open = settle
	if t == maybe && r.target.verdict != goOn {
		w.unsure(r.place(), "whether the packet meets "+quoted(open.text)+" is not known", settle)
	}
	return t
}

// mayMark takes back what a rule did to the marks that may not apply, and remembers what would tell.
func (w *walk) mayMark(mark, connection bits) {
	if w.mark != mark || w.connmrk != connection {
		w.markOpen = cmp.Or(w.markOpen, w.open)
	}
	w.mark, w.connmrk = w.mark.merge(mark), w.connmrk.merge(connection)
}

func quoted(s string) string { return `"` + s + `"` }

// leadsTo tells whether a rule translates, or jumps to a chain that does.
func (w *walk) leadsTo(r *rule) bool {
	switch r.target.verdict {
	case translate:
		return true
	case jump, jumpAway:
		to := r.chain.table.chains[r.target.name]
		if to == nil {
			return false
		}
		leads, known := w.leads[to]
		if known {
			return leads
		}
		if w.leads == nil {
			w.leads = make(map[*chain]bool)
		}
		w.leads[to] = false // chains may jump in a circle
		w.leads[to] = slices.ContainsFunc(to.rules, w.leadsTo)
		return w.leads[to]
	case goOn, accept, drop, toCaller, divert, opaque:
	}
	return false
}

// unsure remembers the first place that could not be decided.
func (w *walk) unsure(at Place, why, settle string) {
	if w.doubt == nil {
		w.doubt = &Verdict{Place: at, Why: why, Settle: settle}
	}
}

// lost is a chain that is not in the input, or not all of it. Before the packet comes to the chains that translate its source,
// only marks and translations of the destination matter: that there are none is assumed, and said.
func (w *walk) lost(name string, reach tri) tri {
	if w.early {
		if w.absent == "" {
			w.absent = name
		}
		return reach
	}
	return w.anything(reach)
}

// anything is a piece of the way that is not known: the packet may end there in any way, or come out of it, with any mark.
func (w *walk) anything(reach tri) tri {
	w.ends = append(w.ends, end{opaque, nil, false})
	w.mark, w.connmrk = bits{}, bits{}
	return min(reach, maybe)
}
