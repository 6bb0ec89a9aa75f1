package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// matcher finds the one known request in every moment: protocol, destination and port, and the client's Pod.
type matcher struct {
	in  []MomentInput
	opt EvidenceOptions

	goal   goal              // the one that is meant
	client string            // address or range of its clients, as --request takes it
	ids    []map[string]bool // of each moment's requests
	served map[served]bool   // of before: who was answered there
}

// served is a source whose requests are answered by a server: nobody has to repeat an opening there.
type served struct {
	goal   goal
	source Source
}

func newMatcher(in []MomentInput, opt EvidenceOptions) *matcher {
	m := &matcher{in: in, opt: opt, ids: make([]map[string]bool, len(in)), served: make(map[served]bool)}
	for i := range in[Before].Requests {
		if o := &in[Before].Requests[i]; o.Outcome == HandshakeCompleted || o.Outcome == HalfOpen || o.Outcome == Refused {
			m.served[served{goalOf(&o.Request), o.Source}] = true
		}
	}
	for at := range in {
		m.ids[at] = make(map[string]bool, len(in[at].Requests))
		for i := range in[at].Requests {
			m.ids[at][in[at].Requests[i].ID] = true
		}
	}
	return m
}

// goal is where a request goes, as its client addressed it.
type goal struct {
	proto wire.Proto
	addr  wire.Addr
	port  uint16 // 0 for ICMP
}

func goalOf(r *Request) goal {
	g := goal{proto: r.Tuple.Proto, addr: r.Server.Addr}
	if r.Server.HasPort {
		g.port = r.Server.Port
	}
	return g
}

func (d goal) compare(e goal) int {
	return cmp.Or(cmp.Compare(d.proto, e.proto), d.addr.Compare(e.addr), cmp.Compare(d.port, e.port))
}

// selector returns the destination with clients, as --request takes it.
func (d goal) selector(clients string) string {
	server := d.addr.String()
	if d.proto.HasPorts() {
		if !d.addr.Is4() {
			server = "[" + server + "]"
		}
		server += ":" + itoa(uint64(d.port))
	}
	return d.proto.String() + " " + clients + " > " + server
}

// which is the request that the evidence speaks of: as it was asked for, else as it would have to be.
func (m *matcher) which() string {
	if !m.opt.Which.IsZero() {
		return m.opt.Which.String()
	}
	return m.goal.selector(m.client)
}

// asked returns the requests of a moment that may be meant: those of Pods that the selection picks.
func (m *matcher) asked(at Moment) []*Observation {
	var out []*Observation
	for i := range m.in[at].Requests {
		if m.isAsked(at, i) {
			out = append(out, &m.in[at].Requests[i])
		}
	}
	return out
}

func (m *matcher) isAsked(at Moment, i int) bool {
	o := &m.in[at].Requests[i]
	if m.opt.Which.IsZero() && o.Source == SourceLocal {
		return false // the node's neighbours: nobody's change is about them
	}
	return m.opt.Which.Match(&o.Request) && isPodRequest(&o.Request) && o.nearLeg()
}

// nearLeg tells whether the node's side shows the request. What only the far side shows has no Pod.
func (o *Observation) nearLeg() bool { return !o.farOnly() }

// podOf names the Pod of a request: by name where the facts give it, else by its address.
func podOf(r *Request) string {
	if r.Client.Role.Kind == cluster.RolePod && r.Client.Role.Name() != "" {
		return r.Client.Role.Name()
	}
	return r.Client.Addr.String()
}

// choose decides which destination is meant: the only one that the selection picks in all moments.
func (m *matcher) choose() error {
	found := make([]map[goal][]*Observation, len(m.in))
	for at := range m.in {
		found[at] = make(map[goal][]*Observation)
		asked := m.asked(Moment(at))
		if len(asked) == 0 {
			return m.none(Moment(at))
		}
		for _, o := range asked {
			d := goalOf(&o.Request)
			found[at][d] = append(found[at][d], o)
		}
	}
	var fit []goal
	for d := range found[Before] {
		if !slices.ContainsFunc(found[After:], func(f map[goal][]*Observation) bool { return f[d] == nil }) {
			fit = append(fit, d)
		}
	}
	slices.SortFunc(fit, goal.compare)
	if len(fit) == 1 {
		m.goal = fit[0]
		return m.oneClient(found)
	}
	if len(fit) == 0 {
		return m.nothingInCommon(found)
	}
	refused := &RefusedError{What: fmt.Sprintf("%d requests are in both captures, and one is needed", len(fit)), Hint: "name it with --request"}
	if len(m.in) > int(Rollback) {
		refused.What = fmt.Sprintf("%d requests are in all captures, and one is needed", len(fit))
	}
	if !m.opt.Which.IsZero() {
		refused.What = fmt.Sprintf("--request %s fits %d requests, and one is needed", m.opt.Which, len(fit))
	}
	for _, d := range fit {
		refused.Candidates = append(refused.Candidates, d.selector(m.clients(found, d)))
	}
	return refused
}

// clients returns who asks a destination: the address that is in all moments, or the range of the addresses.
func (m *matcher) clients(found []map[goal][]*Observation, d goal) string {
	addrs := make(map[string]bool)
	facts := make(map[string]bool)
	for at := range found {
		for _, o := range found[at][d] {
			addrs[o.Client.Addr.String()] = true
			facts[o.Client.Role.Fact()] = true
		}
	}
	if len(addrs) == 1 {
		return sortedKeys(addrs)[0]
	}
	if len(facts) == 1 { // "--pod-cidr 172.16.0.0/16"
		if p, err := parseRange(strings.TrimPrefix(sortedKeys(facts)[0], "--pod-cidr ")); err == nil && p.IsValid() {
			return p.String()
		}
	}
	return "any"
}

// oneClient sees to it that on each node one Pod is meant in each moment.
func (m *matcher) oneClient(found []map[goal][]*Observation) error {
	for at := range found {
		pods := make(map[string]map[string]bool) // by node
		for _, o := range found[at][m.goal] {
			node := m.nodeOf(Moment(at), o)
			if pods[node] == nil {
				pods[node] = make(map[string]bool)
			}
			pods[node][podOf(&o.Request)] = true
		}
		for _, node := range sortedKeys(pods) {
			if len(pods[node]) < 2 {
				continue
			}
			names := sortedKeys(pods[node])
			where := Moment(at).String()
			if node != "" {
				where += " on node " + node
			}
			refused := &RefusedError{
				What: fmt.Sprintf("%s, %d Pods make this request (%s), and one is needed: %s", where, len(names), m.goal.selector("any"), firstFew(names, 5)),
				Hint: "name one Pod with --request, by its address",
			}
			addrs := make(map[string]bool)
			for _, o := range found[at][m.goal] {
				addrs[o.Client.Addr.String()] = true
			}
			for _, a := range sortedKeys(addrs) {
				refused.Candidates = append(refused.Candidates, m.goal.selector(a))
			}
			return refused
		}
	}
	m.client = m.clients(found, m.goal)
	return nil
}

func firstFew(list []string, n int) string {
	if more := len(list) - n; more > 0 {
		return strings.Join(list[:n], ", ") + " and " + itoa(uint64(more)) + " more"
	}
	return strings.Join(list, ", ")
}

// files names a moment's captures for a sentence.
func (m *matcher) files(at Moment) string {
	var names []string
	for _, c := range m.in[at].Captures {
		if c.Side == wire.SideNear {
			names = append(names, c.File)
		}
	}
	return firstFew(names, 3)
}

// none says that a moment holds no such request, and what it holds in its place.
func (m *matcher) none(at Moment) error {
	in := &m.in[at]
	what := "no request of a Pod is in the " + at.String() + " capture"
	if !m.opt.Which.IsZero() {
		what = fmt.Sprintf("no request of a Pod that matches %q is in the %s capture", m.opt.Which, at)
	}
	what += " (" + m.files(at) + ")"
	if len(in.Requests) == 0 {
		what += ", nor any other request"
	}
	for i := range in.Requests {
		if r := &in.Requests[i].Request; !m.opt.Which.IsZero() && m.opt.Which.Match(r) && r.Source == OtherSourced {
			what += fmt.Sprintf("; %s matches, and by the facts given its client is no Pod (--pod-cidr)", r.Tuple)
			break
		}
	}
	all := make([]Request, len(in.Requests))
	for i := range in.Requests {
		all[i] = in.Requests[i].Request
	}
	e := &NoRequestError{Nearest: m.opt.Which.nearest((&Result{Requests: all}).Each, func(i int) *Request { return &all[i] })}
	for i := range in.Requests {
		r := &in.Requests[i].Request
		same := m.opt.Which.server.IsValid() && m.opt.Which.server.Contains(r.Server.Addr.Netip())
		if same && (r.Source == NodeOwn || r.Source == NodeSourced || r.Client.Role.Kind == cluster.RoleNode) {
			what += fmt.Sprintf("; there, %s asks %s, and which Pod stands behind a node's address shows only where the Pod's side is captured too (tcpdump -ni any)", r.Client.Addr, r.Server.Addr)
			break
		}
	}
	e.What = what
	return e
}

// nothingInCommon says that both moments hold requests and none is in both.
func (m *matcher) nothingInCommon(found []map[goal][]*Observation) error {
	e := &NoRequestError{What: "no request of a Pod is in all captures"}
	if len(m.in) == 2 {
		e.What = "no request of a Pod is in both captures"
	}
	if !m.opt.Which.IsZero() {
		e.What += fmt.Sprintf(" of those that match %q", m.opt.Which)
	}
	var parts []string
	for at := range found {
		var names []string
		for d := range found[at] {
			names = append(names, d.selector(m.clients(found[at:at+1], d)))
		}
		slices.Sort(names)
		parts = append(parts, fmt.Sprintf("%s holds %s", Moment(at), firstFew(names, 3)))
	}
	e.What += ": " + strings.Join(parts, "; ")
	return e
}

// nodeOf names the node that shows a request: as its capture's label says, else as the facts do; "" if neither does.
func (m *matcher) nodeOf(at Moment, o *Observation) string {
	label := ""
	if o.Capture >= 0 && o.Capture < len(m.in[at].Captures) {
		label = m.in[at].Captures[o.Capture].Label
	}
	if label != "" {
		return label
	}
	if o.Egress != nil && o.Egress.Role.Kind == cluster.RoleNode && o.Egress.Role.Node() != "" {
		return o.Egress.Role.Node()
	}
	return o.Client.Role.Node()
}

// byNode sorts the requests that are meant by the node that shows them. Where one moment names its node and the other does
// not, there is one node only.
func (m *matcher) byNode() (map[string]*[moments]*Seen, error) {
	names := make([]map[string]bool, len(m.in))
	for at := range m.in {
		names[at] = make(map[string]bool)
		unnamed := make(map[int]bool)
		for _, o := range m.meant(Moment(at)) {
			node := m.nodeOf(Moment(at), o)
			names[at][node] = true
			if node == "" {
				unnamed[o.Capture] = true
			}
		}
		if len(unnamed) > 1 || len(unnamed) == 1 && len(names[at]) > 1 {
			return nil, &RefusedError{
				What: fmt.Sprintf("the request is in several captures of %s (%s), and which node each of them shows is not known", Moment(at), m.files(Moment(at))),
				Hint: fmt.Sprintf("name the nodes: --%s NODE=FILE --%s NODE=FILE", Moment(at), Moment(at)),
			}
		}
	}
	// A node that is named in one moment only is the other moment's one node.
	alias := ""
	for at := range names {
		for name := range names[at] {
			if name != "" {
				alias = name
			}
		}
	}
	for at := range names {
		if names[at][""] && slices.ContainsFunc(names, func(n map[string]bool) bool { return len(n) > 1 }) {
			return nil, &RefusedError{
				What: fmt.Sprintf("which of the nodes %s shows is not known", m.files(Moment(at))),
				Hint: fmt.Sprintf("name it: --%s NODE=FILE", Moment(at)),
			}
		}
	}
	out := make(map[string]*[moments]*Seen)
	for at := range m.in {
		for i := range m.in[at].Requests {
			o := &m.in[at].Requests[i]
			if !m.isAsked(Moment(at), i) || goalOf(&o.Request) != m.goal {
				continue
			}
			node := cmp.Or(m.nodeOf(Moment(at), o), alias)
			if out[node] == nil {
				out[node] = new([moments]*Seen)
			}
			if out[node][at] == nil {
				out[node][at] = &Seen{Main: -1, unsure: make(map[int]bool)}
			}
			m.sort(Moment(at), i, out[node][at])
		}
	}
	return out, nil
}

// meant returns the requests of a moment that the evidence speaks of.
func (m *matcher) meant(at Moment) []*Observation {
	return slices.DeleteFunc(m.asked(at), func(o *Observation) bool { return goalOf(&o.Request) != m.goal })
}

// sort puts a request where it belongs among those of its moment and node.
func (m *matcher) sort(at Moment, i int, s *Seen) {
	o := &m.in[at].Requests[i]
	switch m.opening(at, o) {
	case openingElsewhere:
		s.Open = append(s.Open, i)
		return
	case openingUnsure, openingShown:
	}
	if o.Source == SourceUnknown || o.Source == SourceLocal {
		s.Doubt = append(s.Doubt, i)
		return
	}
	s.Used = append(s.Used, i)
	if m.opening(at, o) == openingUnsure {
		s.Unsure, s.unsure[i] = append(s.Unsure, i), true
	}
}

// opening is whether a request began while its capture ran.
type opening uint8

const (
	openingShown     opening = iota
	openingUnsure            // it may have begun before
	openingElsewhere         // it began before
)

// How long the kernel keeps a mapping without packets, and with it an older translation, in nanoseconds (Linux
// net/netfilter/nf_conntrack_proto_udp.c UDP_CT_REPLIED and _icmp.c), and how long an unanswered SYN is repeated: with
// tcp_syn_retries 6 the longest pause is 32 s, with 7 it is 64 s (net/ipv4/tcp_timer.c).
const (
	mappingUDP  = 120_000_000_000
	mappingICMP = 30_000_000_000
	longestSYN  = 64_000_000_000
)

// opening tells whether a request began while its capture ran: the kernel translates a connection as its rules were when it
// began. A repeated SYN belongs to a connection that began with the first.
func (m *matcher) opening(at Moment, o *Observation) opening {
	for earlier := range at {
		if m.ids[earlier][o.ID] {
			return openingElsewhere
		}
	}
	since := m.since(at, o)
	quiet := func(ns int64) bool { return since != wire.NoTime && o.First != wire.NoTime && o.First-since >= ns }
	switch {
	case o.RequestsSent == 0:
		return openingElsewhere
	case o.Tuple.Proto == wire.ProtoTCP || o.Tuple.Proto == wire.ProtoSCTP:
		return openingOf(o, quiet, m.served[served{goalOf(&o.Request), o.Source}])
	case o.Tuple.Proto.IsICMP() && quiet(mappingICMP), quiet(mappingUDP):
		return openingShown
	}
	return openingUnsure
}

// openingOf looks for the opening of a connection. quiet tells whether the capture ran for so long before without a packet of it;
// served is that requests of this source were answered before, so that none had to be repeated. The pauses between repetitions
// never shrink (Linux makes the first ones alike: tcp_syn_linear_timeouts), so that before the first pause that is seen there
// was none longer: half of it more is for the kernel's timers.
func openingOf(o *Observation, quiet func(ns int64) bool, served bool) opening {
	var first, second int64
	n, leg := 0, LegUnknown
	cited := o.Cited()
	for i := range cited {
		f := &cited[i]
		switch f.What {
		case "SYN", "SYN again", "INIT", "INIT again":
		default:
			continue
		}
		if n == 0 {
			first, leg = f.Time, f.Leg
		} else if n == 1 && f.Leg == leg {
			second = f.Time
		} else if f.Leg != leg {
			continue
		}
		n++
	}
	switch {
	case n == 0:
		return openingElsewhere
	case quiet(longestSYN), n == 1 && served && o.Outcome != RequestOnly:
		return openingShown
	case n > 1 && first != wire.NoTime && quiet((second-first)*3/2):
		return openingShown
	}
	return openingUnsure
}

// since is when the place where a request was seen began to be watched. Of a capture that spans the change, the part before
// it watched the same place.
func (m *matcher) since(at Moment, o *Observation) int64 {
	if o.Capture < 0 || o.Capture >= len(m.in[at].Captures) {
		return wire.NoTime
	}
	c := &m.in[at].Captures[o.Capture]
	from := m.begun(at, c, o.First)
	for earlier := range at {
		for _, e := range m.in[earlier].Captures {
			if c.Split && e.Split && e.SHA256 != "" && e.SHA256 == c.SHA256 && e.From != wire.NoTime {
				from = min(from, e.From)
			}
		}
	}
	return from
}

// begun is when the file that holds a moment began, or the first of those that follow on one another without a gap: files of one
// label are one capture, and between two of them nothing may have been watched.
func (m *matcher) begun(at Moment, c *MomentCapture, when int64) int64 {
	if when == wire.NoTime || c.From == wire.NoTime {
		return c.From
	}
	var same []*MomentCapture
	for i := range m.in[at].Captures {
		if d := &m.in[at].Captures[i]; d.Side == c.Side && d.Label == c.Label && d.From != wire.NoTime && d.From <= when {
			same = append(same, d)
		}
	}
	slices.SortFunc(same, func(a, b *MomentCapture) int { return cmp.Compare(a.From, b.From) })
	from := int64(wire.NoTime)
	for _, d := range slices.Backward(same) {
		if from != wire.NoTime && from-d.To > fileGap {
			break
		}
		from = d.From
	}
	return from
}

// alsoChanged compares the source classes of all other destinations of Pods that are in both moments. What may be older than the
// change shows that a class is another one, and not that it stayed.
func (m *matcher) alsoChanged() (changed []DestinationChange, kept int) {
	type place struct {
		goal    goal
		backend wire.Addr // what a Service's address became: the rules see that
	}
	type tally struct {
		server Endpoint
		counts [2][SourceLocal]int
		shown  bool // after: one began while the capture ran
	}
	seen := make(map[place]*tally)
	for at := range 2 {
		for i := range m.in[at].Requests {
			o := &m.in[at].Requests[i]
			p := place{goal: goalOf(&o.Request)}
			if o.Backend != nil {
				p.backend = o.Backend.Addr
			}
			if o.Source != PodSourced && o.Source != NodeSNATed && o.Source != OtherSNATed || p.goal == m.goal || !o.nearLeg() {
				continue
			}
			opening := m.opening(Moment(at), o)
			if opening == openingElsewhere {
				continue
			}
			if seen[p] == nil {
				seen[p] = &tally{server: o.Server}
			}
			seen[p].counts[at][o.Source]++
			seen[p].shown = seen[p].shown || at == int(After) && opening == openingShown
		}
	}
	for p, n := range seen {
		classes := func(at Moment) (out []ClassCount) {
			for s, k := range n.counts[at] {
				if k > 0 {
					out = append(out, ClassCount{Source(s), k})
				}
			}
			return out
		}
		before, after := classes(Before), classes(After)
		if len(before) == 0 || len(after) == 0 {
			continue
		}
		if !slices.EqualFunc(before, after, func(a, b ClassCount) bool { return a.Source == b.Source }) {
			changed = append(changed, DestinationChange{Proto: p.goal.proto, Server: n.server, Counts: [2][]ClassCount{before, after}})
		} else if n.shown {
			kept++
		}
	}
	slices.SortFunc(changed, func(a, b DestinationChange) int {
		return goal{a.Proto, a.Server.Addr, a.Server.Port}.compare(goal{b.Proto, b.Server.Addr, b.Server.Port})
	})
	return changed, kept
}

// notCovered lists what this evidence does not speak of.
func (m *matcher) notCovered(ev *Evidence) []string {
	var out []string
	for i := range ev.Nodes {
		n := &ev.Nodes[i]
		for at := range m.in {
			s := n.At[at]
			if s == nil {
				continue
			}
			name := ""
			if n.Node != "" && len(ev.Nodes) > 1 {
				name = " on node " + n.Node
			}
			if len(s.Open) > 0 {
				out = append(out, fmt.Sprintf("%s%s: not counted, as it was open before and keeps an older translation: %s", Moment(at), name, m.tuples(Moment(at), s.Open)))
			}
			older := s.older()
			if len(older) > 0 && len(s.Used) > 0 {
				out = append(out, fmt.Sprintf("%s%s: not counted, as it may have begun before and has the source of then: %s", Moment(at), name, m.tuples(Moment(at), older)))
			}
			if s.Main >= 0 && len(s.Used) > 0 {
				o := &m.in[at].Requests[s.Main]
				if code, text := (&judgement{m: m}).completionDoubt(Moment(at), o); code != "" && (Moment(at) != After || n.Change != ChangeInconclusive) {
					out = append(out, fmt.Sprintf("%s%s: how far the request got is not known (%s): %s", Moment(at), name, code, text))
				}
			}
			if len(s.Doubt) > 0 && len(s.Used) > 0 {
				out = append(out, fmt.Sprintf("%s%s: source not known: %s", Moment(at), name, m.tuples(Moment(at), s.Doubt)))
			}
		}
	}
	for i := range ev.Nodes {
		n := &ev.Nodes[i]
		if s := n.At[Before]; s != nil && len(s.Used) > 0 && len(s.Unsure) == len(s.Used) {
			out = append(out, "before: that its request began under the rules of then does not show: it may be older than the capture")
		}
		for at := range m.in {
			if s := n.At[at]; s != nil && s.Main >= 0 {
				if o := &m.in[at].Requests[s.Main]; o.Source == NodeSNATed && o.Egress != nil && strings.HasPrefix(o.Egress.Role.Fact(), "this capture: ") {
					out = append(out, fmt.Sprintf("%s: that %s is an address of the node is learned from the capture (--node-ip states it)", Moment(at), o.Egress.Addr))
				}
			}
		}
	}
	unordered := false
	for at := range m.in {
		for _, c := range m.in[at].Captures {
			unordered = unordered || c.From == wire.NoTime
			if c.SHA256 == "" {
				out = append(out, fmt.Sprintf("%s: no SHA-256 of %s: the saved result was made without --digest", Moment(at), c.File))
			}
		}
	}
	if unordered {
		out = append(out, "not all captures have times with a date: that before is older than after is as stated, and not checked")
	}
	if m.opt.Rules == RulesNotGiven {
		out = append(out, "the node's rules (none given)")
	}
	return out
}

// tuples names connections, the first few of them.
func (m *matcher) tuples(at Moment, list []int) string {
	var names []string
	for _, i := range list {
		names = append(names, m.in[at].Requests[i].Tuple.String())
	}
	return firstFew(names, 3)
}
