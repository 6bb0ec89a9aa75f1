package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/analyze/pages"
	"github.com/srcproof/srcproof/capture/wire"
)

// analysis is one capture under judgement, of one file or several.
type analysis struct {
	t                *table
	sum              *summary
	captures         []CaptureInfo // of all files, by number
	info             *CaptureInfo  // of the first file
	number           int           // of the first file: index in Result.Captures
	numbers          []int         // of all files
	facts            *cluster.Facts
	known            *cluster.Connections // the node's connection table; nil is not known
	host             *hostFacts
	common           common
	longestHandshake int64 // nanoseconds
	thisNode         map[wire.Addr]bool
	occurs           map[wire.Addr]seenAs // see occurrences
	occursOnce       sync.Once
	unjoined         map[unjoinedKey][]legTimes // see leftUnjoined
	unjoinedOnce     sync.Once

	vlanPairs     map[uint32]uint32 // see missingVLAN
	vlanPairsOnce sync.Once
	byServer      map[serverKey][]arrival // see lookalike
	longest       int64                   // of byServer, from first to last packet
	byServerOnce  sync.Once

	chains   []chain
	spare    sync.Pool // of *viewSpace
	requests []Request // one per chain, where they are held
	listed   []int32   // chains that are requests of the result, where those of others are not; nil is all
	// paired tells a request what the other side shows of it, with what that refers to in the space's keeping; nil without another side.
	paired func(r *Request, v *view, chain int, space *viewSpace)

	// What many requests have in common.
	sameTuple             []string // basis of a join
	provenPod, provenNode cluster.Role
}

// unjoinedKey is where something goes.
type unjoinedKey struct {
	proto wire.Proto
	to    wire.Addr
}

// newAnalysis reads the table once more for what all requests tell together.
func newAnalysis(t *table, sum *summary, captures []CaptureInfo, numbers []int, facts *cluster.Facts, known *cluster.Connections) *analysis {
	a := &analysis{
		t: t, sum: sum, captures: captures, info: &captures[numbers[0]], number: numbers[0], numbers: numbers, facts: facts, known: known, thisNode: make(map[wire.Addr]bool),
		sameTuple:  []string{"same tuple"},
		provenPod:  cluster.NewRole(cluster.RolePod, "", "", "this capture: the node put another source in place of it"),
		provenNode: cluster.NewRole(cluster.RoleNode, "", "", "this capture: put in place of a Pod's address, and answers to it come back here"),
	}
	a.provenPod.Exact, a.provenNode.Exact = true, true
	a.spare.New = func() any { return new(viewSpace) }
	if a.known == nil && a.info.Side == wire.SideNear {
		a.known = facts.Connections()
	}
	a.chains = t.chains(a.known)
	a.host = learn(t, a.chains, facts, &sum.Summary, a.info.Side)
	a.common = t.commons(facts)
	if i := a.common.iface; i >= 0 && i < len(sum.Interfaces) && sum.Interfaces[i].LinkType == linkTypeSLL {
		a.common.iface = -1 // SLL has no interface: one entry stands for all of them
	}
	for addr := range a.host.own {
		if facts.Role(addr).Kind == cluster.RoleNode {
			a.thisNode[addr] = true
		}
	}
	for addr := range a.host.translatedTo {
		if k := facts.Role(addr).Kind; k == cluster.RoleNode || k == cluster.RoleUnknown && !nodeAddrKnown(facts, addr.Is4()) {
			a.thisNode[addr] = true
		}
	}
	for _, n := range numbers {
		captures[n].OneWay = len(a.common.from) == 1
		captures[n].OnlySYN = t.tcpBare == 0 && t.synAcks == 0
	}
	type part struct {
		space       viewSpace
		longest     int64 // handshake
		transmitted uint64
	}
	for _, p := range partsOf(len(a.chains), func() *part { return new(part) }, func(p *part, i int) {
		v := a.view(&p.space, i)
		for _, l := range v.legs() {
			p.longest = max(p.longest, l.handshake())
		}
		sent, replies := v.counted()
		p.transmitted += sent + replies
	}) {
		a.longestHandshake = max(a.longestHandshake, p.longest)
		a.info.Transmitted += p.transmitted
	}
	return a
}

// counted is how many packets of client and server the legs show: copies on the way are one.
func (v *view) counted() (sent, replies uint64) {
	for _, l := range v.legs() {
		sent, replies = max(sent, l.client.packets), max(replies, l.server.packets)
	}
	return sent, replies
}

// view is the chain number i as the capture saw it. It is valid until the space is used again: views hold more than what they are made of,
// and making one takes a tenth of a microsecond (2026-12-01), so that none is kept.
func (a *analysis) view(space *viewSpace, i int) *view { return a.made(space, &a.chains[i]) }

// made makes a view.
func (a *analysis) made(space *viewSpace, c *chain) *view {
	v := newView(a.t, c, space)
	v.settleInside(a)
	return v
}

// eachView gives the views in order. One is valid until the next is asked for.
func (a *analysis) eachView(yield func(int, *view) bool) {
	var space viewSpace
	for i := range a.chains {
		if !yield(i, a.view(&space, i)) {
			return
		}
	}
}

// eachAtOnce looks at each number below n by itself, in a space of its goroutine's, so that all processors can. What the looks share is made
// once, whoever asks first.
func eachAtOnce(n int, look func(i int, space *viewSpace)) {
	partsOf(n, func() *viewSpace { return new(viewSpace) }, func(space *viewSpace, i int) { look(i, space) })
}

// judgeAll judges every request of the capture by itself.
func (a *analysis) judgeAll() {
	a.requests = pages.Make[Request](len(a.chains))
	eachAtOnce(len(a.chains), func(i int, space *viewSpace) { a.judge(&a.requests[i], a.view(space, i), int32(i), space) })
}

// pairAll tells the requests that are held what the other side shows of them, and drops those that are not listed.
func (a *analysis) pairAll() {
	n, chain := a.list()
	if a.paired != nil {
		eachAtOnce(n, func(i int, space *viewSpace) {
			k := int(chain(i))
			a.paired(&a.requests[k], a.view(space, k), k, space)
		})
	}
	for i, k := range a.listed { // a chain's number is not below its place
		a.requests[i] = a.requests[k]
	}
	a.requests = a.requests[:n]
}

// list is how many requests of the capture are the result's, and which.
func (a *analysis) list() (n int, chain func(i int) int32) {
	if a.listed == nil {
		return len(a.chains), func(i int) int32 { return int32(i) }
	}
	return len(a.listed), func(i int) int32 { return a.listed[i] }
}

const linkTypeSLL = 113 // LINKTYPE_LINUX_SLL

// isNode tells whether anything shows that the capturing host is the node: it passes packets on, it sends as a node
// address, or the person gave its links.
func (a *analysis) isNode() bool {
	if a.info.Side == wire.SideFar {
		return false
	}
	return a.host.forwards || len(a.thisNode) > 0 || a.facts.HasLinks()
}

// role returns what an address is, by the facts first and by what this capture's translations prove otherwise.
func (a *analysis) role(addr wire.Addr) cluster.Role {
	r := a.facts.Role(addr)
	if r.Kind != cluster.RoleUnknown && r.Kind != cluster.RoleOther {
		return r
	}
	if a.host.pods[addr] && r.Kind == cluster.RoleUnknown && !podRangeKnown(a.facts, addr.Is4()) {
		return a.provenPod
	}
	if a.host.translatedTo[addr] && r.Kind == cluster.RoleUnknown && !nodeAddrKnown(a.facts, addr.Is4()) {
		return a.provenNode
	}
	return r
}

func (a *analysis) endpoint(addr wire.Addr, port uint16, proto wire.Proto) Endpoint {
	return Endpoint{Addr: addr, Port: port, HasPort: proto.HasPorts(), Role: a.role(addr)}
}

// judge turns one view into a request, which is empty, with what it refers to in the space's keeping.
func (a *analysis) judge(r *Request, v *view, n int32, space *viewSpace) {
	t, c := a.t, v.chain
	convs := t.in(c)
	first, last := &convs[0], &convs[len(convs)-1]
	key := &t.first(first).key
	kept := &space.kept
	*r = Request{
		Tuple: key.tuple(int(first.client)), First: wire.NoTime, Last: wire.NoTime, Handshake: -1,
		Client: a.endpoint(key.end[first.client], key.port[first.client], key.proto),
		Server: a.endpoint(key.end[1-first.client], key.port[1-first.client], key.proto),
		Joins:  t.joined(c),
		kept:   kept, Reasons: kept.because[:0],
	}
	if len(convs) == 1 && v.pod != nil && v.egress != nil {
		r.Joins = keep(&kept.joins, []Join{{From: "pod", To: "egress", Basis: a.sameTuple, Confidence: Exact}})
	}
	lastKey := &t.first(last).key
	o := v.outcome(a.host)
	a.counts(r, v, o, space)
	r.Legs = a.passage(v, c, space)
	r.seenAt.a, r.seenAt.chain = a, n
	if a.info.Side == wire.SideFar {
		r.Far, r.FarServer = kept.end(r.Client), kept.end(r.Server)
	} else if v.egress != nil {
		r.Egress = kept.end(a.endpoint(lastKey.end[last.client], lastKey.port[last.client], key.proto))
		if lastKey.end[1-last.client] != r.Server.Addr || r.Server.HasPort && lastKey.port[1-last.client] != r.Server.Port {
			r.Backend = kept.end(a.endpoint(lastKey.end[1-last.client], lastKey.port[1-last.client], key.proto))
		}
	}
	r.Outcome = o.outcome
	r.Way = a.way(r, v)
	a.source(r, v, c, o)
	if r.Source == SourceLocal || a.deliveredHere(r, v) || r.unknownReason("source", "destination-may-be-local") {
		r.Egress = nil // it went out to a Pod of this node or to neighbours: no claim about egress
	} else if r.Basis == BasisEgress && r.Egress == nil {
		r.Egress = kept.end(r.Client) // seen leaving where no direction is recorded
	}
	a.stop(r, v, o)
	if o.outcome == OutcomeUnknown {
		if o.blind {
			r.unknown("outcome", gapSnaplen, "the packets were cut off before the fields that tell an opening from an answer",
				"capture again with tcpdump -s 0 (or at least -s 128)")
		} else {
			r.unknown("outcome", "odd-reply", "the answer to the opening is neither a SYN-ACK nor a reset", "")
		}
	}
	if o.outcome == RequestOnly {
		resent := r.Tuple.Proto == wire.ProtoTCP || r.Tuple.Proto == wire.ProtoSCTP
		reply := missingReply(r.Tuple, r.First)
		r.Unanswered = resent && o.leg.client.retrans > 0 || a.absent(&reply) == covered
	}
	if r.tracked != nil {
		a.rename(r)
		r.Way = a.way(r, v)
	}
	a.signs(r, v, o)
	if e := r.Unknown; len(e) > 1 {
		slices.SortStableFunc(e, func(x, y Unknown) int { return fieldRank(x.Field) - fieldRank(y.Field) })
	}
	if cap(r.Reasons) > cap(kept.because) {
		kept.because = r.Reasons
	}
	r.Reasons, r.kept = keep(&kept.reasons, r.Reasons), nil
	for i := range r.Unknown {
		u := &r.Unknown[i]
		u.Text, u.Settle = kept.same(u.Text), kept.same(u.Settle)
	}
	r.Unknown = keep(&kept.unknown, r.Unknown)
}

// signs marks what findings look for.
func (a *analysis) signs(r *Request, v *view, o outcomeAt) {
	for _, l := range v.legs() {
		if l.mtu != nil {
			r.signs |= signMTU
			r.mtu = l.mtu.mtu
		}
	}
	l := o.leg
	if o.outcome == HalfOpen && l.client.flags&sawRST != 0 {
		r.signs |= signClientReset
	}
	if o.outcome == HandshakeCompleted && (l.client.flags|l.server.flags)&sawRST == 0 && (stalled(l, 0) || stalled(l, 1)) {
		r.signs |= signStalled
	}
}

// stalled tells whether one side's data was sent again and never acknowledged.
func stalled(l *legState, side uint8) bool {
	d, o := l.client, l.server
	if side == 1 {
		d, o = o, d
	}
	if d.flags&sawData == 0 || d.flags&knowSeq == 0 || o.flags&knowAck == 0 || !before(o.ackMax, d.seqNext) {
		return false
	}
	return l.again[side] >= 3 && slices.ContainsFunc(l.events(), func(e event) bool { return e.kind == evRetransmission && e.from == side })
}

func fieldRank(field string) int {
	return slices.Index([]string{"source", "outcome", "stopped_at", "direction"}, field)
}

func (r *Request) unknown(field string, reason gap, text, settle string) {
	for _, u := range r.Unknown {
		if u.Field == field {
			return // the first reason found is the nearest one
		}
	}
	r.Unknown = append(r.Unknown, Unknown{Field: field, Reason: string(reason), Text: text, Settle: settle})
}

func (r *Request) because(format string, args ...any) {
	if r.kept != nil && r.kept.brief {
		return
	}
	r.Reasons = append(r.Reasons, Reason(r.say(format, args...)))
}

// say is a sentence that is not a reason: of what is not known. Those that many requests have are held once.
func (r *Request) say(format string, args ...any) string {
	if r.kept == nil {
		return string(sentence(nil, format, args...))
	}
	r.kept.word = sentence(r.kept.word[:0], format, args...)
	return r.kept.text(r.kept.word)
}

// sentence appends what fmt.Sprintf returns. Most requests have one, of strings, addresses and small numbers, and Sprintf took a fifth of
// the time of analyze (2026-11-30, 400,000 connections).
func sentence(b []byte, format string, args ...any) []byte {
	begin, rest, given := len(b), format, args
	for {
		at := strings.IndexByte(rest, '%')
		if at < 0 || at+1 == len(rest) || len(given) == 0 {
			break
		}
		b = append(b, rest[:at]...)
		verb := byte(0) // the one that the argument is written for here
		switch v := given[0].(type) {
		case string:
			verb, b = 's', append(b, v...)
		case wire.Addr:
			verb, b = 's', appendAddr(b, v)
		case *wire.Addr: // of a request: what is passed as an interface is copied, a pointer is not
			verb, b = 's', appendAddr(b, *v)
		case uint8:
			verb, b = 'd', strconv.AppendUint(b, uint64(v), 10)
		}
		if rest[at+1] != verb {
			return fmt.Appendf(b[:begin], format, args...)
		}
		rest, given = rest[at+2:], given[1:]
	}
	if len(given) > 0 || strings.Contains(rest, "%") {
		return fmt.Appendf(b[:begin], format, args...)
	}
	return append(b, rest...)
}

// appendAddr appends what Addr.String returns.
func appendAddr(b []byte, a wire.Addr) []byte {
	if name := a.Name(); name != "" {
		return append(b, name...)
	}
	return a.Netip().AppendTo(b)
}

// counts fills in what was counted.
func (a *analysis) counts(r *Request, v *view, o outcomeAt, space *viewSpace) {
	l := o.leg
	for _, leg := range v.legs() {
		for _, d := range []*dirState{leg.client, leg.server} {
			if d.packets == 0 || d.first == wire.NoTime {
				continue
			}
			if r.First == wire.NoTime || d.first < r.First {
				r.First = d.first
			}
			r.Last = max(r.Last, d.last)
		}
		for _, e := range []*icmpError{leg.rejected, leg.replyRejected} {
			if e != nil && e.time != wire.NoTime {
				if r.First == wire.NoTime {
					r.First = e.time
				}
				r.Last = max(r.Last, e.time)
			}
		}
		r.Retransmissions = max(r.Retransmissions, uint64(leg.client.retrans)+uint64(leg.server.retrans))
	}
	r.RequestsSent, r.RepliesSeen = v.counted()
	proto := r.Tuple.Proto
	switch {
	case space.kept.brief:
	case proto == wire.ProtoTCP:
		states := l.states()
		r.ConnState = connState(states[0], states[1], (l.client.flags|l.server.flags)&sawBytes != 0)
		space.kept.word = l.history(space.kept.word[:0])
		r.History = space.kept.text(space.kept.word)
	case proto == wire.ProtoUDP:
		space.kept.word = l.history(space.kept.word[:0])
		r.History = space.kept.text(space.kept.word)
		switch {
		case l.client.packets > 0 && l.server.packets > 0:
			r.ConnState = "SF"
		case l.client.packets > 0:
			r.ConnState = "S0"
		case l.server.packets > 0:
			r.ConnState = "SHR"
		default:
			r.ConnState = "OTH"
		}
	case proto.IsICMP():
		r.ConnState = "OTH"
	}
	r.Completed = v.completed(o, a.info.Side == wire.SideFar)
	if proto == wire.ProtoTCP || proto == wire.ProtoSCTP {
		if !space.kept.brief {
			r.Handshake = l.handshake()
		}
		if l.client.flags&knowISN != 0 {
			r.Opening = uint64(l.client.isn) | 1<<32
		}
	}
	for _, leg := range v.legs() {
		if e := leg.rejected; e != nil && r.ICMP == nil {
			r.ICMP = &ICMPAnswer{
				About: a.aboutTuple(leg, 0), From: e.from, FromRole: a.role(e.from), Type: e.typ, Code: e.code, MTU: e.mtu, V6: !e.from.Is4(),
			}
		}
	}
}

// aboutTuple returns the tuple of the packets of the client (from 0) or the server (1) at a leg.
func (a *analysis) aboutTuple(l *legState, from int) wire.Tuple {
	f := a.t.flows.at(l.flows[0])
	side := int(f.client)
	for i := range f.dir {
		if a.t.oddities(&f.dir[i]).rejected != 0 && from == 0 {
			side = i
		}
	}
	return f.key.tuple(side)
}

// passage makes legs, and keeps them in the space's keeping.
func (a *analysis) passage(v *view, c *chain, space *viewSpace) []Leg {
	legs := space.passed[:0]
	for _, l := range v.legs() {
		kind := l.kind
		if a.info.Side == wire.SideFar {
			kind = LegFar
		}
		// A leg with a translated destination in it (a service's address before the bridge, its endpoint's behind) has
		// several tuples: one Leg each, in the chain's order.
		convs := a.t.in(c)
		for i := range convs {
			cs := int(convs[i].client)
			leg := Leg{Kind: kind, Capture: a.number}
			points, seen := space.points[:0], false
			for _, x := range a.t.of(&convs[i]) {
				if !slices.Contains(l.flows, x) {
					continue
				}
				f := a.t.flows.at(x)
				leg.Tuple = f.key.tuple(cs)
				leg.Sent, leg.Replies = max(leg.Sent, f.dir[cs].packets), max(leg.Replies, f.dir[1-cs].packets)
				if leg.TTL == 0 && f.dir[cs].flags&knowTTL != 0 {
					leg.TTL = f.dir[cs].ttl
				}
				seen = seen || f.taps != 0
				for n := f.taps; n != 0 && !space.kept.brief; n = a.t.taps.at(n).next {
					tp := a.t.taps.at(n)
					points = append(points, Point{
						Iface: tp.iface, VLAN: f.key.vlan, Depth: tp.depth, RequestDir: tp.seen[cs], ReplyDir: tp.seen[1-cs],
						Sent: tp.packets[cs], Replies: tp.packets[1-cs], FirstRequest: frameOf(tp.firstFrame[cs]), FirstReply: frameOf(tp.firstFrame[1-cs]),
					})
				}
			}
			if space.points = points; seen {
				leg.Points = keep(&space.kept.points, points)
				legs = append(legs, leg)
			}
		}
	}
	space.passed = legs
	return keep(&space.kept.legs, legs)
}

// passage is where a request's packets are found again: a chain of a capture.
type passage struct {
	a     *analysis
	chain int32
}

// frames adds the packets worth citing.
func (p passage) frames(out []FrameRef) []FrameRef {
	a := p.a
	space := a.spare.Get().(*viewSpace)
	defer a.spare.Put(space)
	v := a.made(space, &a.chains[p.chain])
	first := &v.t.in(v.chain)[0]
	tuple := a.t.first(first).key.tuple(int(first.client))
	most := len(out) + maxFrames
	for _, l := range v.legs() {
		kind := l.kind
		if a.info.Side == wire.SideFar {
			kind = LegFar
		}
		for _, e := range l.events() {
			if len(out) >= most {
				break
			}
			what := e.what(tuple)
			if x := l.errorAbout(e.from); e.kind == evError && x != nil && x.typ == e.typ && x.code == e.code {
				what += " from " + x.from.String()
			}
			capture, frame := splitFrame(e.frame)
			out = append(out, FrameRef{
				Capture: capture, Frame: frame, Time: e.time, Iface: e.iface, Direction: e.dir, Leg: kind, What: what,
			})
		}
	}
	return out
}

// Cited are the packets that a request cites, in order of capture and frame. They are gathered when they are asked for: of
// most requests nobody asks.
func (r *Request) Cited() []FrameRef {
	if r.seenAt.a == nil {
		return r.Frames
	}
	return r.CitedIn(nil)
}

// CitedIn is Cited with the room of a slice that is no longer needed.
func (r *Request) CitedIn(room []FrameRef) []FrameRef {
	if r.seenAt.a == nil {
		return append(room[:0], r.Frames...)
	}
	out := r.seenAt.frames(room[:0])
	for _, p := range r.alsoAt {
		if len(out) >= 2*maxFrames {
			break
		}
		out = p.frames(out)
	}
	out = out[:min(len(out), 2*maxFrames)]
	sortFrames(out)
	return out
}

// errorAbout returns the first rejecting error about packets of the client (0) or the server (1).
func (l *legState) errorAbout(from uint8) *icmpError {
	if from == 0 {
		return l.rejected
	}
	return l.replyRejected
}

func sortFrames(frames []FrameRef) {
	slices.SortStableFunc(frames, func(x, y FrameRef) int {
		return cmp.Or(cmp.Compare(x.Capture, y.Capture), cmp.Compare(x.Frame, y.Frame))
	})
}

func frameOf(ref uint64) uint64 {
	_, frame := splitFrame(ref)
	return frame
}

// maxFrames bounds the frames cited per request.
const maxFrames = 64

// what names an event for people.
func (e *event) what(t wire.Tuple) string {
	switch e.kind {
	case evSYN:
		return "SYN"
	case evSYNAgain:
		if t.Proto == wire.ProtoSCTP {
			return "INIT again"
		}
		return "SYN again"
	case evSYNACK:
		return "SYN-ACK"
	case evSYNACKAgain:
		return "SYN-ACK again"
	case evACK:
		return "ACK"
	case evData:
		return "data"
	case evFIN:
		return "FIN"
	case evRST:
		return "RST"
	case evRetransmission:
		return "retransmission"
	case evZeroWindow:
		return "zero window"
	case evGap:
		return "gap"
	case evInit:
		return "INIT"
	case evInitAck:
		return "INIT ACK"
	case evCookieEcho:
		return "COOKIE ECHO"
	case evCookieAck:
		return "COOKIE ACK"
	case evAbort:
		return "ABORT"
	case evShutdown:
		return "SHUTDOWN"
	case evRequest:
		return "request"
	case evReply:
		return "reply"
	case evError:
		return "ICMP " + ErrorText(t.Src.Is4(), e.typ, e.code)
	case evOther:
	}
	return "packet"
}

// way decides the request's direction, seen from the cluster.
func (a *analysis) way(r *Request, v *view) Way {
	client, server := r.Client.Role.Kind, r.Server.Role.Kind
	if r.Backend != nil {
		server = r.Backend.Role.Kind
	}
	switch {
	case v.local, r.Tuple.Dst.IsMulticast(), r.Tuple.Src.IsLinkLocal() && r.Tuple.Dst.IsLinkLocal():
		return WayLocal
	case a.deliveredHere(r, v):
		if client == cluster.RoleOther {
			return Inbound
		}
		if oursAtAll(client) {
			return WayLocal
		}
		return WayUnknown
	case client == cluster.RolePod || client == cluster.RoleNode:
		if server == cluster.RolePod && a.info.Side == wire.SideNear && v.egress == nil && v.pod != nil {
			return WayUnknown // it may be on this node or on another
		}
		return Outbound
	case client == cluster.RoleOther && oursAtAll(server):
		return Inbound
	case client == cluster.RoleOther && server == cluster.RoleOther:
		return Transit
	}
	return WayUnknown
}

// deliveredHere tells whether the request is delivered on the capturing host: to one of its Pods, or to itself.
func (a *analysis) deliveredHere(r *Request, v *view) bool {
	if v.local {
		return true
	}
	if a.info.Side == wire.SideFar {
		return false
	}
	if v.egress != nil && v.egress.client.packets > 0 {
		return a.towardsPod(v.egress, r)
	}
	// It came in and did not go on. The answers tell: sent by this host itself, they leave on the client's side with an
	// initial TTL and never came in on the other side.
	if v.pod != nil && v.egress == nil && !v.inside && a.isNode() {
		l := v.pod
		return a.thisNode[r.Server.Addr] || l.server.packets > 0 && l.server.flags&knowTTL != 0 && ownTTL(l.server.ttl) &&
			l.server.flags&^(knowISN|knowTTL|knowIPID|knowAck|knowSeq|knowTS|sawRST) != 0 // not a reset alone, which the node may send in anybody's name
	}
	return false
}

// towardsPod tells whether all packets of the client at this leg leave on interfaces that lead to Pods of this node.
func (a *analysis) towardsPod(l *legState, r *Request) bool {
	server := r.Server
	if r.Backend != nil {
		server = *r.Backend
	}
	seen := false
	for _, x := range l.flows {
		f := a.t.flows.at(x)
		for n := f.taps; n != 0; n = a.t.taps.at(n).next {
			tp := a.t.taps.at(n)
			if tp.seen[0] != wire.DirOut && tp.seen[1] != wire.DirOut {
				continue
			}
			if int(tp.iface) >= len(a.host.ifaces) || !a.host.ifaces[tp.iface].podSide {
				return false
			}
			seen = true
		}
	}
	return seen && (server.Role.Kind == cluster.RolePod || a.host.isPod(server.Addr, a.facts))
}

// ErrorText names an ICMP error's type and code as tcpdump users know them (RFC 792, RFC 1122, RFC 1812, RFC 4443).
func ErrorText(v4 bool, typ, code uint8) string {
	if v4 {
		switch typ {
		case 3:
			if names := [...]string{
				"net unreachable", "host unreachable", "protocol unreachable", "port unreachable", "fragmentation needed",
				"source route failed", "net unknown", "host unknown", "source host isolated", "net admin prohibited",
				"host admin prohibited", "net unreachable for this tos", "host unreachable for this tos", "admin prohibited filter",
				"host precedence violation", "precedence cutoff",
			}; int(code) < len(names) {
				return names[code]
			}
		case 4:
			return "source quench"
		case 5:
			return "redirect"
		case 11:
			if code == 0 {
				return "time exceeded in transit"
			}
			return "reassembly time exceeded"
		case 12:
			return "parameter problem"
		}
		return fmt.Sprintf("type %d code %d", typ, code)
	}
	switch typ {
	case 1:
		if names := [...]string{
			"no route", "admin prohibited", "beyond scope of source address", "address unreachable", "port unreachable",
			"source address failed policy", "reject route",
		}; int(code) < len(names) {
			return names[code]
		}
	case 2:
		return "packet too big"
	case 3:
		if code == 0 {
			return "time exceeded in transit"
		}
		return "reassembly time exceeded"
	case 4:
		return "parameter problem"
	}
	return fmt.Sprintf("type %d code %d", typ, code)
}
