package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/analyze/cluster/netfilter"
	"github.com/srcproof/srcproof/capture/wire"
)

// What the masquerade configuration asks for, what the node's installed rules do and what the packets show, held against each
// other for each destination.

// RulesQuestion says which packets are asked for. The zero question is none.
type RulesQuestion struct {
	From, To []netip.Prefix  // From empty: the captured clients, else any Pod. To empty: the destinations of the captures
	Proto    wire.Proto      // wire.ProtoNone is not said
	Port     int             // destination port; -1 is not said
	Out      string          // outgoing interface; "" is the one of the captures, if there is one
	Next     *cluster.Intent // a configuration that is planned; nil is none
}

// RuleRow is one destination under the three views of it.
type RuleRow struct {
	From  string // "any Pod", an address, a range
	To    netip.Prefix
	Rest  bool // what of To stands in no row of its own
	Proto wire.Proto
	Port  int // -1 is not said

	Intent, Kernel, New  netfilter.Verdict // Place and Settle of Intent and New are empty
	HasIntent, HasKernel bool
	HasNew               bool
	Kept                 int // requests that left with the Pod's address
	NodeSNATed, Other    int // with a node's, with another one
	Older, Untold        int // whose connection may be older than the rules; whose source is not known
	NotSent              int // that never left the node
	Requests             []int
	Services             int   // addresses in it that rules translate to others first
	Agree                State // Met: all that is known agrees. Inconclusive: less than two are known
}

// Seen is how many requests show what the node does.
func (r *RuleRow) Seen() int { return r.Kept + r.NodeSNATed + r.Other }

// Mixed tells whether some requests kept the Pod's address and others did not.
func (r *RuleRow) Mixed() bool { return r.Kept > 0 && r.Kept < r.Seen() }

// Wire is what the packets show.
func (r *RuleRow) Wire() netfilter.Answer {
	switch {
	case r.Seen() == 0 || r.Mixed():
		return netfilter.Undetermined
	case r.Kept > 0:
		return netfilter.Kept
	}
	return netfilter.Masqueraded
}

// Bounds of the work: the rows of a range, the captured destinations that rules are asked for, and the captured clients of one.
const (
	maxPieces       = 1024
	maxDestinations = 4096
	maxClients      = 64
)

// HoldRules holds configuration and rules against each other without packets: a result with no capture.
func HoldRules(facts *cluster.Facts, q RulesQuestion) *Result {
	res := &Result{Facts: facts, question: &q}
	res.conclude()
	return res
}

// concludeRules fills in the rows, if anything is known that they could hold.
func (res *Result) concludeRules() {
	res.Rules = nil
	switch {
	case res.question != nil:
		res.Rules = res.holdRules(*res.question)
	case !res.otherRules && (res.Facts.Intent() != nil || res.Facts.Rules() != nil):
		res.Rules = res.holdRules(RulesQuestion{Port: -1})
	}
}

// holdRules holds configuration and rules, as far as the facts have them, against the packets.
func (res *Result) holdRules(q RulesQuestion) []RuleRow {
	h := rulesHolder{res: res, q: q, intent: res.Facts.Intent(), rules: res.Facts.Rules()}
	h.plan()
	var rows []RuleRow
	if len(q.To) == 0 {
		rows = h.captured()
	}
	for _, to := range q.To {
		if len(q.From) > 0 && !slices.ContainsFunc(q.From, func(p netip.Prefix) bool { return p.Addr().Is4() == to.Addr().Is4() }) {
			continue
		}
		rows = append(rows, h.stated(to)...)
	}
	for i := range rows {
		rows[i].compare()
	}
	return rows
}

type rulesHolder struct {
	res    *Result
	q      RulesQuestion
	intent *cluster.Intent
	rules  *netfilter.Ruleset
	next   *netfilter.Ruleset // the rules as the planned configuration would make them; nil is not known
	chain  string             // that the agent makes
}

// plan finds what rules the planned configuration would make. Other rules stay, and may decide before the agent's.
func (h *rulesHolder) plan() {
	in := h.q.Next
	if in == nil || h.rules == nil || in.Rejected != "" || in.Setup.Chain == "" {
		return
	}
	h.chain = in.Setup.Chain
	if in.Setup.Guessed {
		there := h.rules.AgentChains()
		if len(there) > 1 {
			h.chain = "" // which of them is the agent's is not known
			return
		}
		if len(there) == 1 {
			h.chain = there[0]
		}
	}
	var keep []netip.Prefix
	for _, k := range in.Keep {
		keep = append(keep, k.Range)
	}
	h.next = h.rules.WithAgent(h.chain, keep, in.Setup.IPv6)
}

func (h *rulesHolder) limit(s string) {
	if !slices.Contains(h.res.Limits, s) {
		h.res.Limits = append(slices.Clone(h.res.Limits), s)
	}
}

// captured makes a row for each destination, protocol and port that Pods sent requests to.
func (h *rulesHolder) captured() []RuleRow {
	type key struct {
		to    netip.Addr
		proto wire.Proto
		port  int
	}
	index := make(map[key]int)
	var rows []RuleRow
	var clients [][]netip.Addr
	var out []map[string]bool
	left := make(map[key]bool)
	for i, r := range h.res.Each {
		to := leftFor(r)
		if !asksRules(r) || !h.asksFrom(r) || h.q.Proto != wire.ProtoNone && r.Tuple.Proto != h.q.Proto || h.q.Port >= 0 && (!to.HasPort || int(to.Port) != h.q.Port) {
			continue
		}
		k := key{to.Addr.Netip(), r.Tuple.Proto, -1}
		if to.HasPort {
			k.port = int(to.Port)
		}
		n, ok := index[k]
		if !ok && len(rows) == maxDestinations {
			left[k] = true
			continue
		}
		if !ok {
			n = len(rows)
			index[k] = n
			rows = append(rows, RuleRow{To: netip.PrefixFrom(k.to, k.to.BitLen()), Proto: k.proto, Port: k.port})
			clients, out = append(clients, nil), append(out, map[string]bool{})
		}
		rows[n].take(i, r)
		if a := r.Client.Addr.Netip(); r.Client.Role.Kind == cluster.RolePod && len(clients[n]) < maxClients && !slices.Contains(clients[n], a) {
			clients[n] = append(clients[n], a)
		}
		for _, name := range h.res.leftBy(r) {
			out[n][name] = true
		}
	}
	for n := range rows {
		from := h.q.From
		if len(from) == 0 {
			for _, a := range clients[n] {
				from = append(from, netip.PrefixFrom(a, a.BitLen()))
			}
		}
		by := h.q.Out
		if by == "" && len(out[n]) == 1 {
			for name := range out[n] {
				by = name
			}
		}
		h.ask(&rows[n], from, by, nil)
	}
	if len(left) > 0 {
		h.limit(fmt.Sprintf("configuration and rules were held against %d destinations; %d more were not asked for", len(rows), len(left)))
	}
	return rows
}

// stated makes the rows of a destination that was asked for: one, or of a range one for each range within that configuration and
// rules tell apart.
func (h *rulesHolder) stated(to netip.Prefix) []RuleRow {
	v4 := to.Addr().Is4()
	pieces := []netip.Prefix{to}
	var apart []netip.Prefix // what lies in them and is not asked for
	if !to.IsSingleIP() {
		bounds, alone := h.bounds(to)
		apart = alone
		if n := len(bounds); n > maxPieces {
			apart = append(apart, bounds[maxPieces:]...)
			bounds = bounds[:maxPieces]
			h.limit(fmt.Sprintf("configuration and rules part %s into %d ranges, of which %d were asked for: --to with a narrower range", to, n, maxPieces))
		}
		pieces = append(pieces, bounds...)
	}
	rows, above, except := parts(pieces, apart)
	pieces = pieces[:0]
	for i := range rows {
		rows[i].Proto, rows[i].Port = h.q.Proto, h.q.Port
		pieces = append(pieces, rows[i].To)
	}
	for i, r := range h.res.Each {
		end := leftFor(r)
		if !asksRules(r) || !to.Contains(end.Addr.Netip()) || h.q.Proto != wire.ProtoNone && r.Tuple.Proto != h.q.Proto ||
			h.q.Port >= 0 && (!end.HasPort || int(end.Port) != h.q.Port) || !h.asksFrom(r) {
			continue
		}
		// The last piece that holds it is the narrowest.
		for n := len(pieces) - 1; n >= 0; n-- {
			if pieces[n].Contains(end.Addr.Netip()) {
				rows[n].take(i, r)
				break
			}
		}
	}
	drop := make([]bool, len(pieces))
	for i := range rows {
		row, within := &rows[i], except[i]
		if loopback := netfilter.Loopback(v4); row.To.Bits() < loopback.Bits() && row.To.Overlaps(loopback) {
			within[loopback] = true
		}
		if filledBy(row.To, within) {
			drop[i] = true
			continue
		}
		h.ask(row, h.q.From, h.q.Out, within)
	}
	// What says the same as the range around it, for the same reason, is no row of its own; nor are Services' addresses.
	for i := len(rows) - 1; i > 0; i-- {
		up := above[i]
		if drop[i] || up < 0 {
			continue
		}
		for drop[up] && above[up] >= 0 {
			up = above[up]
		}
		if drop[up] {
			continue
		}
		switch a, b := &rows[up], &rows[i]; {
		case b.isService() && len(b.Requests) == 0 && (b.Intent.Diverted || sameVerdict(&a.Intent, &b.Intent)) && (b.New.Diverted || sameVerdict(&a.New, &b.New)):
			a.Services += 1 + b.Services
		case a.alike(b):
			a.absorb(b)
		default:
			a.Rest = true
			continue
		}
		drop[i] = true
	}
	out := rows[:0]
	for i := range rows {
		if !drop[i] {
			out = append(out, rows[i])
		}
	}
	return out
}

// parts makes a row for each range, and says of each which one it lies in (-1 is none), and what in it is not meant: the ranges in
// it, and what stands apart, of which single addresses are counted.
func parts(pieces, apart []netip.Prefix) (rows []RuleRow, above []int, except []netfilter.Ranges) {
	isPiece := make(map[netip.Prefix]bool)
	for _, p := range pieces {
		isPiece[p] = true
	}
	all := slices.Concat(pieces, slices.DeleteFunc(slices.Clone(apart), func(p netip.Prefix) bool { return isPiece[p] }))
	slices.SortFunc(all, netip.Prefix.Compare) // a range stands before those in it
	var open []int
	for _, p := range slices.Compact(all) {
		for len(open) > 0 && !rows[open[len(open)-1]].To.Contains(p.Addr()) {
			open = open[:len(open)-1]
		}
		up := -1
		if len(open) > 0 {
			up = open[len(open)-1]
			except[up][p] = true
		}
		if !isPiece[p] {
			if up >= 0 && p.IsSingleIP() {
				rows[up].Services++
			}
			continue
		}
		open = append(open, len(rows))
		rows, above, except = append(rows, RuleRow{To: p}), append(above, up), append(except, netfilter.Ranges{})
	}
	return rows, above, except
}

// bounds are the ranges within another one that configuration and rules tell apart: those of the configuration first, then the
// node's own addresses, then those that the rules name, wide ones first. alone are addresses that rules name by themselves.
func (h *rulesHolder) bounds(to netip.Prefix) (out, alone []netip.Prefix) {
	var all []netip.Prefix
	for _, in := range []*cluster.Intent{h.intent, h.q.Next} {
		if in != nil {
			for _, k := range in.Keep {
				all = append(all, k.Range)
			}
		}
	}
	for _, a := range h.res.Facts.LocalAddrs() {
		all = append(all, netip.PrefixFrom(a, a.BitLen()))
	}
	named, alone := h.rules.Destinations()
	slices.SortStableFunc(named, func(a, b netip.Prefix) int { return cmp.Compare(a.Bits(), b.Bits()) })
	all = append(all, named...)
	seen := make(map[netip.Prefix]bool)
	outside := func(p netip.Prefix) bool {
		out := seen[p] || p.Addr().Is4() != to.Addr().Is4() || p.Bits() <= to.Bits() || !to.Contains(p.Addr()) || netfilter.Loopback(p.Addr().Is4()).Contains(p.Addr())
		seen[p] = true
		return out
	}
	return slices.DeleteFunc(all, outside), slices.DeleteFunc(slices.Clone(alone), outside)
}

// filledBy tells whether ranges are all of the one around them.
func filledBy(p netip.Prefix, in netfilter.Ranges) bool {
	sorted := slices.SortedFunc(maps.Keys(in), netip.Prefix.Compare)
	var whole func(p netip.Prefix, in []netip.Prefix) bool
	whole = func(p netip.Prefix, in []netip.Prefix) bool {
		switch {
		case len(in) == 0:
			return false
		case in[0].Bits() <= p.Bits():
			return true
		}
		low, high := halves(p)
		at := slices.IndexFunc(in, func(q netip.Prefix) bool { return !low.Contains(q.Addr()) })
		if at < 0 {
			at = len(in)
		}
		return whole(low, in[:at]) && whole(high, in[at:])
	}
	return whole(p, sorted)
}

func halves(p netip.Prefix) (low, high netip.Prefix) {
	low = netip.PrefixFrom(p.Addr(), p.Bits()+1)
	b := p.Addr().AsSlice()
	b[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	a, _ := netip.AddrFromSlice(b)
	return low, netip.PrefixFrom(a, p.Bits()+1)
}

// sameVerdict tells whether two verdicts say the same for the same reasons.
func sameVerdict(a, b *netfilter.Verdict) bool {
	return a.Answer == b.Answer && a.Place == b.Place && a.Why == b.Why
}

// isService tells whether a row is an address that is translated to another one first, as far as is known.
func (r *RuleRow) isService() bool {
	return r.To.IsSingleIP() && (r.Intent.Diverted || r.Kernel.Diverted || r.Kernel.Apart)
}

// alike tells whether two rows say the same for the same reasons.
func (r *RuleRow) alike(o *RuleRow) bool {
	return sameVerdict(&r.Intent, &o.Intent) && sameVerdict(&r.Kernel, &o.Kernel) && sameVerdict(&r.New, &o.New)
}

// absorb takes the requests of a row that says the same.
func (r *RuleRow) absorb(o *RuleRow) {
	r.Kept, r.NodeSNATed, r.Other = r.Kept+o.Kept, r.NodeSNATed+o.NodeSNATed, r.Other+o.Other
	r.Older, r.Untold, r.Services = r.Older+o.Older, r.Untold+o.Untold, r.Services+o.Services
	r.NotSent += o.NotSent
	r.Requests = append(r.Requests, o.Requests...)
	slices.Sort(r.Requests)
}

// asksFrom tells whether a request is from where was asked for.
func (h *rulesHolder) asksFrom(r *Request) bool {
	return len(h.q.From) == 0 || slices.ContainsFunc(h.q.From, func(p netip.Prefix) bool { return p.Contains(r.Client.Addr.Netip()) })
}

// asksRules tells whether a request is one that masquerade rules decide on: a Pod's, on its way out.
func asksRules(r *Request) bool {
	if r.Way == Inbound || r.Way == WayLocal || r.Source == SourceLocal {
		return false
	}
	return r.Client.Role.Kind == cluster.RolePod || r.Source == NodeSNATed || r.Source == OtherSNATed || r.Source == PodSourced
}

// leftFor is where a request was due when it left the node.
func leftFor(r *Request) Endpoint {
	if r.Backend != nil {
		return *r.Backend
	}
	return r.Server
}

// take counts a request.
func (r *RuleRow) take(i int, q *Request) {
	r.Requests = append(r.Requests, i)
	switch {
	case q.Outcome == Midstream:
		r.Older++
	case q.Source == PodSourced:
		r.Kept++
	case q.Source == NodeSNATed:
		r.NodeSNATed++
	case q.Source == OtherSNATed:
		r.Other++
	case q.Source == NotSent:
		r.NotSent++
	default:
		r.Untold++
	}
}

// leftBy are the names of the interfaces that a request left the node by.
func (res *Result) leftBy(r *Request) []string {
	var out []string
	for i := range r.Legs {
		l := &r.Legs[i]
		if l.Kind != LegEgress {
			continue
		}
		for _, p := range l.Points {
			if names := res.Captures[l.Capture].InterfaceNames; p.RequestDir == wire.DirOut && int(p.Iface) < len(names) && names[p.Iface] != "" {
				out = append(out, names[p.Iface])
			}
		}
	}
	return out
}

// ask asks configuration and rules for a row. from empty is any Pod; except is what of the row's range stands elsewhere.
func (h *rulesHolder) ask(row *RuleRow, from []netip.Prefix, out string, except netfilter.Ranges) {
	facts := h.res.Facts
	local := facts.LocalAddrs()
	v4 := row.To.Addr().Is4()
	from = slices.DeleteFunc(slices.Clone(from), func(p netip.Prefix) bool { return p.Addr().Is4() != v4 })
	row.From = "any Pod"
	switch {
	case len(from) == 1:
		row.From = shortRange(from[0])
	case len(from) > 1 && len(h.q.From) == 0:
		row.From = plural(uint64(len(from)), "Pod")
	case len(from) > 1:
		row.From = plural(uint64(len(from)), "source")
	}
	if len(from) == 0 {
		from = slices.DeleteFunc(facts.PodPrefixes(), func(p netip.Prefix) bool { return p.Addr().Is4() != v4 })
	}
	row.HasIntent, row.HasNew, row.HasKernel = h.intent != nil, h.q.Next != nil, h.rules != nil
	for _, c := range []struct {
		intent *cluster.Intent
		to     *netfilter.Verdict
	}{{h.intent, &row.Intent}, {h.q.Next, &row.New}} {
		if c.intent == nil {
			continue
		}
		if row.To.IsSingleIP() && facts.Role(wire.AddrFrom(row.To.Addr())).Kind == cluster.RoleService {
			c.to.Why = "a Service's address: the node puts an endpoint's in its place first, and masquerades by that"
			c.to.Diverted = true
			continue
		}
		c.to.Answer, c.to.Why = c.intent.Ask(row.To, except, local)
	}
	if h.rules == nil {
		return
	}
	p := netfilter.Packet{Dst: row.To, Except: except, Proto: row.Proto, SrcPort: -1, DstPort: row.Port, Out: out, Local: local}
	row.Kernel = askRules(h.rules, p, from)
	if h.intent != nil && h.intent.Setup.Agent == cluster.AgentCilium && row.Kernel.Answer == netfilter.Kept {
		row.Kernel = netfilter.Verdict{
			Place: row.Kernel.Place, Why: "no rule translates, but Cilium's agent does so in eBPF, which no rule shows", Settle: "cilium-dbg bpf ipmasq list in the cilium-agent Pod of the node",
		}
	}
	if !row.HasNew || h.q.Next.Setup.Chain == "" || row.New.Answer == netfilter.Undetermined {
		return
	}
	if h.next == nil {
		row.New = netfilter.Verdict{Why: "the node has the chains IP-MASQ and IP-MASQ-AGENT, and which of them this agent makes is not known", Settle: "--agent or --agent-manifest"}
		return
	}
	// The configuration is what the agent's own chain does: other rules stay, and may decide first.
	switch v := askRules(h.next, p, from); v.Answer {
	case row.New.Answer:
	case netfilter.Undetermined:
		v.Why = placeWords(v.Place, v.Why)
		row.New = v
	case netfilter.Kept, netfilter.Masqueraded:
		v.Why = "by a rule that is not the agent's, " + placeWords(v.Place, v.Why) + "; by the configuration alone it would be " + row.New.Answer.String()
		row.New = v
	}
}

// askRules asks rules for packets from some sources; none is any source.
func askRules(rules *netfilter.Ruleset, p netfilter.Packet, from []netip.Prefix) netfilter.Verdict {
	if len(from) == 1 {
		p.Src = from[0]
	}
	all := rules.Ask(p)
	if len(from) < 2 || all.Answer != netfilter.Undetermined {
		return all // the same for all sources
	}
	for i, src := range from {
		p.Src = src
		v := rules.Ask(p)
		switch {
		case i == 0:
			all = v
		case v.Answer != all.Answer:
			return netfilter.Verdict{
				Place: v.Place, Why: fmt.Sprintf("it depends on the source: %s is %s, %s is %s", shortRange(from[0]), all.Answer, shortRange(src), v.Answer), Settle: "--from ADDRESS",
			}
		}
	}
	return all
}

// shortRange is a range, or the one address of it.
func shortRange(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// compare tells whether what is known agrees.
func (r *RuleRow) compare() {
	known := map[netfilter.Answer]int{}
	add := func(has bool, a netfilter.Answer) {
		if has && a != netfilter.Undetermined {
			known[a]++
		}
	}
	add(r.HasIntent, r.Intent.Answer)
	add(r.HasKernel, r.Kernel.Answer)
	asked := len(known) > 0
	add(true, r.Wire())
	switch n := known[netfilter.Kept] + known[netfilter.Masqueraded]; {
	case r.Kernel.Dropped && r.NotSent > 0 && r.Seen() == 0:
		r.Agree = Met
	case len(known) == 2, r.Mixed() && asked:
		r.Agree = NotMet
	case n >= 2:
		r.Agree = Met
	default:
		r.Agree = Inconclusive
	}
}

// Untellable tells whether something that was given does not say what happens to these packets, so that nothing else is known of
// them, or nothing it could be held against.
func (r *RuleRow) Untellable() bool {
	if r.Agree != Inconclusive {
		return false
	}
	const unknown = netfilter.Undetermined
	return r.HasIntent && r.Intent.Answer == unknown || r.HasKernel && r.Kernel.Answer == unknown && !r.Kernel.Dropped ||
		r.HasNew && (r.New.Answer == unknown || r.Now() == unknown) || r.Older+r.Untold > 0 && r.Wire() == unknown
}

// Now is what is done at present, by the best of what is known: the packets, the rules, the configuration.
func (r *RuleRow) Now() netfilter.Answer {
	for _, a := range []netfilter.Answer{r.Wire(), r.Kernel.Answer, r.Intent.Answer} {
		if a != netfilter.Undetermined {
			return a
		}
	}
	return netfilter.Undetermined
}

// ruleFindings are what does not agree, one finding for each kind of disagreement and its cause.
func ruleFindings(res *Result, rows []RuleRow) []Finding {
	g := ruleGroups{res: res, index: make(map[[2]string]int)}
	if in := res.Facts.Intent(); in != nil && in.Rejected != "" {
		g.out = append(g.out, Finding{
			Code: codeConfigRejected, Severity: severityTheTrouble, Title: "The agent refuses this configuration.",
			Observed: []string{in.From + ": " + in.Rejected},
			Reading:  []string{"the agent logs an error at each pass and touches no rule: those that it made before stay in force and are not healed, and on a new node it makes none"},
			Next:     []string{"correct the configuration; the error stands in the log of the agent:", commandAgentLog},
		})
	}
	for i := range rows {
		if r := &rows[i]; r.Agree == NotMet {
			g.row(r)
		}
	}
	for i := range g.out {
		f := &g.out[i]
		slices.Sort(f.Requests)
		f.Requests = slices.Compact(f.Requests)
		for _, n := range f.Requests {
			res.foundOf(n, f.Code)
		}
		if more := g.more[i]; more.rows > 0 {
			f.Observed = append(f.Observed, more.String())
		}
	}
	slices.SortStableFunc(g.out, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return g.out
}

// ruleGroups gathers the rows that disagree in the same way.
type ruleGroups struct {
	res   *Result
	out   []Finding
	more  map[int]moreRows
	index map[[2]string]int
	room  Room
}

// moreRows are those of a finding that are not described.
type moreRows struct{ rows, requests int }

func (m moreRows) String() string {
	if m.requests > 0 {
		return fmt.Sprintf("and %s to %s", plural(uint64(m.requests), "more request"), plural(uint64(m.rows), "more destination"))
	}
	return "and " + plural(uint64(m.rows), "more destination")
}

// add notes a row under a finding, which is made with the first of them.
func (g *ruleGroups) add(f Finding, r *RuleRow, requests []int, observed string) {
	k := [2]string{f.Code, f.Title}
	n, ok := g.index[k]
	if !ok {
		n = len(g.out)
		g.index[k] = n
		f.Severity = severityTheTrouble
		g.out = append(g.out, f)
	}
	at := &g.out[n]
	at.Requests = append(at.Requests, requests...)
	if len(at.Observed) == maxDescribed {
		if g.more == nil {
			g.more = make(map[int]moreRows)
		}
		m := g.more[n]
		g.more[n] = moreRows{m.rows + 1, m.requests + len(requests)}
		return
	}
	to := r.Destination()
	if len(requests) > 0 {
		q := g.res.At(requests[0], &g.room)
		to = q.Tuple.Proto.String() + " " + q.Client.Addr.String() + " > " + addrPort(leftFor(q))
	}
	if n := len(requests) - 1; n > 0 {
		observed += fmt.Sprintf("; %s like it", plural(uint64(n), "more request"))
	}
	at.Observed = append(at.Observed, to+": "+observed)
}

// row finds what disagrees in a row.
func (g *ruleGroups) row(r *RuleRow) {
	const unknown = netfilter.Undetermined
	intent, kernel, wire := unknown, unknown, r.Wire()
	if r.HasIntent {
		intent = r.Intent.Answer
	}
	if r.HasKernel {
		kernel = r.Kernel.Answer
	}
	by := fmt.Sprintf("by the configuration %s (%s)", intent, r.Intent.Why)
	rules := fmt.Sprintf("by the rules %s (%s)", kernel, placeWords(r.Kernel.Place, r.Kernel.Why))
	if intent != unknown && kernel != unknown && intent != kernel {
		f := Finding{
			Code: codeConfigNotApplied, Title: "The node's rules are not those of this configuration.",
			Reading: []string{"the agent has not applied this configuration on this node: it does not run there, refuses the configuration, reads another key or ConfigMap, or has not come to it yet; or the rules were read before the change, or on another node"},
			Next:    []string{"is the agent's Pod on this node and ready?", commandAgentPods, "does it take the configuration?", commandAgentLog, waitForAgent},
		}
		if in := g.res.Facts.Intent(); in.Setup.NoDefaultSNAT {
			f = Finding{
				Code: codeConfigNotApplied, Title: "The node translates, although the cluster was made with --disable-default-snat.",
				Reading: []string{"the flag counts only where no agent runs: one does, or a rule of another kind translates; or the cluster was not made with it"},
				Next:    []string{"which DaemonSets are there, and what does the cluster say?", "  kubectl -n kube-system get daemonsets", "  gcloud container clusters describe CLUSTER --format='value(networkConfig.defaultSnatStatus)'"},
			}
		}
		if chain := r.Kernel.Place.Chain; g.isOther(r.Kernel.Place) {
			f = Finding{
				Code: codeOtherRule, Title: fmt.Sprintf("Chain %s decides, and not the agent's alone.", plainName(chain)),
				Reading: []string{"every chain of POSTROUTING is asked until one translates: a RETURN leaves its own chain only, so that a destination keeps the Pod's address only if all of them keep it; an ACCEPT ends them all"},
				Next:    []string{"who makes that chain? Another agent (IP-MASQ of the node beside IP-MASQ-AGENT), a CNI plugin, or a rule by hand:", natRulesFor(r), "remove what is not wanted, or give both the same list"},
			}
		}
		g.add(f, r, r.Requests, by+", "+rules)
	}
	if r.Mixed() {
		g.add(Finding{
			Code: codeRulesNotApplied, Title: "Requests to one destination left with the Pod's address and with another one.",
			Reading: []string{"the rules changed while the capture ran, or tell sources or interfaces apart, or the captures are of several nodes"},
			Next:    []string{"look when each of them began: srcproof analyze with --request for this destination, and --all"},
		}, r, g.seen(r, unknown), fmt.Sprintf("%d kept the Pod's address, %d left with another", r.Kept, r.Seen()-r.Kept))
		return
	}
	if wire == unknown {
		return
	}
	left := "left with " + r.sourceWord()
	switch {
	case kernel != unknown && kernel != wire:
		g.add(Finding{
			Code: codeRulesNotApplied, Title: "The packets do not show what the rules say.",
			Reading: []string{"the packets are the fact: the rules were read on another node, or at another time than the packets; or a rule store that is not in the input translates too; or the connections are older than the rules, for a mapping is decided once"},
			Next:    []string{"read all stores of the node that was captured, and capture a new connection:", "  iptables-save", "  iptables-legacy-save", "  nft list ruleset"},
		}, r, g.seen(r, wire), rules+", and it "+left)
	case intent != unknown && intent != wire && kernel == unknown:
		g.add(Finding{
			Code: codeConfigNotApplied, Title: "The packets do not show what the configuration asks for.",
			Reading: []string{"this node does not do what the configuration asks for: the agent does not run here, refuses the configuration or has not come to it yet; or another chain decides first; or a device or program that translates by itself (eBPF) does; or the connections are older than the rules"},
			Next: []string{
				"what do the rules of this node say?", natRulesFor(r), "is the agent's Pod on this node and ready?", commandAgentPods,
				"does it take the configuration?", commandAgentLog, waitForAgent,
			},
		}, r, g.seen(r, wire), by+", and it "+left)
	}
}

// seen are the requests of a row that left in a way; Undetermined is any.
func (g *ruleGroups) seen(r *RuleRow, as netfilter.Answer) []int {
	var out []int
	for _, n := range r.Requests {
		var one RuleRow
		one.take(n, g.res.At(n, &g.room))
		if one.Seen() > 0 && (as == netfilter.Undetermined || one.Wire() == as) {
			out = append(out, n)
		}
	}
	return out
}

// isOther tells whether a place is in none of the chains that the configuration's agent makes, or in one of two that may be.
func (g *ruleGroups) isOther(p netfilter.Place) bool {
	in, rules := g.res.Facts.Intent(), g.res.Facts.Rules()
	if in == nil || rules == nil || p.Rule == "" {
		return false
	}
	own := []string{in.Setup.Chain}
	if in.Setup.Guessed { // which of them it is hangs on how the agent is run
		own = []string{"IP-MASQ", "IP-MASQ-AGENT"}
	}
	there := 0
	for _, name := range own {
		if rules.HasChain(name) {
			there++
		}
		if strings.Contains(p.Rule, "-j "+name) || strings.Contains(p.Rule, "jump "+name) {
			return false // it is the way to the agent's chain
		}
	}
	return there == 2 || there == 1 && !slices.Contains(own, p.Chain)
}

func natRulesFor(r *RuleRow) string {
	if r.To.Addr().Is4() {
		return commandNatRules
	}
	return strings.Replace(commandNatRules, "iptables-save", "ip6tables-save", 1)
}

// sourceWord says what the requests of a row left with. Valid iff they all left with the same.
func (r *RuleRow) sourceWord() string {
	switch {
	case r.Kept > 0:
		return "the Pod's address"
	case r.Other > 0:
		return "an address that is neither the Pod's nor the node's"
	}
	return "the node's address"
}

// IsAboutRules tells whether a finding's code is about masquerade configuration and rules.
func IsAboutRules(code string) bool {
	switch code {
	case codeConfigRejected, codeConfigNotApplied, codeRulesNotApplied, codeOtherRule:
		return true
	}
	return false
}

// plainName is a chain's name where it is one that a person would give.
func plainName(s string) string {
	if len(s) > 32 || strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' }) {
		return "(unprintable)"
	}
	return s
}

// Destination names where a row's packets go.
func (r *RuleRow) Destination() string {
	s := shortRange(r.To)
	switch {
	case r.Rest && r.To.Bits() == 0:
		s = "all others"
	case r.Rest:
		s = "the rest of " + s
	case r.To.Bits() == 0:
		s = "all destinations"
	}
	if r.Proto != wire.ProtoNone {
		s += " " + r.Proto.String()
		if r.Port >= 0 {
			s += fmt.Sprintf(" port %d", r.Port)
		}
	}
	return s
}

// placeWords says which rule decides.
func placeWords(p netfilter.Place, why string) string {
	switch {
	case p.Chain == "":
		return why
	case p.Rule == "":
		return "chain " + p.Chain + ": " + why
	case p.Line > 0:
		return fmt.Sprintf("line %d, chain %s: %s", p.Line, p.Chain, netfilter.WithoutComments(p.Rule))
	}
	return "chain " + p.Chain + ": " + netfilter.WithoutComments(p.Rule)
}

// Planned is the configuration that was asked about beside the one in force; nil is none.
func (res *Result) Planned() *cluster.Intent {
	if res.question == nil {
		return nil
	}
	return res.question.Next
}
