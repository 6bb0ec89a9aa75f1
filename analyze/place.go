package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// place judges again where a request's packets stop, now that the far side is known (DESIGN section 6). Absence at the far
// side is claimed only where the far capture covers it: window, clock, filter, place and wholeness.
func (a *analysis) place(r *Request, v *view, space *viewSpace, partners []partner, contested bool, pairings []*pairing, claimed [][]bool, far []*analysis, opt PairOptions) {
	for _, p := range pairings {
		if p.same || p.swapped {
			text := "the near and the far capture are the same: nothing is known of the far side"
			if p.swapped {
				text = "the captures look swapped: the far one shows packets before the near one does"
			}
			const how = "give the node's capture with --near and the destination's with --far"
			r.StoppedAt, r.Source, r.Basis, r.Reasons = StopUnknown, SourceUnknown, BasisNone, nil
			r.clear("stopped_at")
			r.clear("source")
			r.unknown("source", "sides-not-as-stated", text, how)
			r.unknown("stopped_at", "sides-not-as-stated", text, how)
			return
		}
	}
	if r.Source == NotSent && len(partners) > 0 {
		strong := slices.ContainsFunc(partners, func(m partner) bool { return m.strong })
		if !strong {
			return // by its payload alone it would be somebody else's
		}
		const text = "it arrived at the far side, so it left; no packet leaving this host could be matched to it"
		r.Source, r.Basis, r.StoppedAt, r.Reasons = SourceUnknown, BasisNone, StopUnknown, nil
		r.unknown("source", "egress-not-joined", text, "")
	}
	for _, m := range partners {
		a.attach(r, v, m, space)
	}
	if r.Way == Inbound || r.Way == WayLocal || r.Source == SourceLocal || r.Source == NotSent || r.StoppedAt == StopNodeOut || r.StoppedAt == StopNodeIn {
		return
	}
	if len(partners) > 0 {
		a.placeJoined(r, v, partners, space.second())
		return
	}
	a.placeAbsent(r, v, space.second(), contested, pairings, claimed, far, opt)
}

// attach adds what the far side saw to the request.
func (a *analysis) attach(r *Request, v *view, m partner, space *viewSpace) {
	f := m.p.far
	fv := f.view(space.second(), int(m.chain))
	arrived := fv.leaving()
	if convs := f.t.in(fv.chain); len(convs) > 1 {
		arrived = f.t.first(&convs[0]).key.tuple(int(convs[0].client))
	}
	role := func(addr wire.Addr) cluster.Role { return a.role(addr) }
	src := Endpoint{Addr: arrived.Src, Port: arrived.SrcPortOrEchoID, HasPort: arrived.Proto.HasPorts(), Role: role(arrived.Src)}
	dst := Endpoint{Addr: arrived.Dst, Port: arrived.DstPortOrEchoID, HasPort: arrived.Proto.HasPorts(), Role: role(arrived.Dst)}
	if r.Far == nil {
		r.Far, r.FarServer = r.kept.end(src), r.kept.end(dst)
	}
	r.Legs = keepBoth(&r.kept.legs, r.Legs, f.passage(fv, fv.chain, space))
	r.alsoAt = keepBoth(&r.kept.also, r.alsoAt, []passage{{f, m.chain}})
	from := "egress"
	if v.egress == nil {
		from = "pod"
	}
	r.Joins = keepBoth(&r.kept.joins, r.Joins, []Join{{From: from, To: "far", Basis: r.kept.basis(m.basis), Confidence: m.confidence}})
	if m.rewritten {
		r.signs |= signRewritten
	}
	left := v.leaving()
	if arrived.Src != left.Src && v.egressShown(r) {
		r.signs |= signSecond
	}
	if r.Source == SourceUnknown && !v.egressShown(r) && r.Client.Role.Kind == cluster.RolePod {
		// The Pod's side and the far side, and nothing in between: the address that arrived is the one that left, or was
		// changed on the way; a node address can only be the node's doing.
		switch {
		case arrived.Src == r.Client.Addr:
			r.clear("source")
			r.set(PodSourced, BasisFar, "sent by the Pod and arrived with its own address %s", arrived.Src)
		case src.Role.Kind == cluster.RoleNode:
			r.clear("source")
			r.set(NodeSNATed, BasisFar, "sent by the Pod %s and arrived as %s, %s", r.Client.Addr, arrived.Src, r.nodeWords(src.Role))
		default:
		}
	}
}

// egressShown tells whether the near capture shows the request as it left the node.
func (v *view) egressShown(r *Request) bool {
	return v.egress != nil || v.plain != nil && v.plain.client.flags&knowTTL != 0 && (!ownTTL(v.plain.client.ttl) || r.Source == NodeOwn)
}

// placeJoined: the far side saw the request. Its views are made in other.
func (a *analysis) placeJoined(r *Request, v *view, partners []partner, other *viewSpace) {
	var answered *partner
	var rejectedReply *icmpError
	for i := range partners {
		m := &partners[i]
		for _, l := range m.p.far.view(other, int(m.chain)).legs() {
			if l.server.packets > 0 && answered == nil {
				answered = m
			}
			if rejectedReply == nil {
				rejectedReply = l.replyRejected
			}
		}
	}
	if r.Outcome == RequestOnly || r.Outcome == HalfOpen {
		for i := range partners {
			if f := partners[i].p.far; f.outcomeOf(other, partners[i].chain) == HandshakeCompleted {
				o := f.judged(partners[i].chain)
				// The client's acknowledgement arrived at the far side: the SYN-ACK had reached it (DESIGN section 5), and the near
				// capture does not hold it.
				r.Outcome, r.StoppedAt, r.Completed = HandshakeCompleted, StopNone, o.Completed
				r.ConnState, r.History = o.ConnState, o.History
				r.clear("outcome")
				r.clear("stopped_at")
				r.because("the far side holds the client's acknowledgement of the SYN-ACK, so that had reached it")
				return
			}
		}
	}
	switch r.Outcome {
	case RequestOnly:
		switch {
		case r.answerAtEgress():
			return // what came back to the node is judged there
		case rejectedReply != nil:
			r.clear("stopped_at")
			r.rejectedBy = rejectedReply.from
			r.replyRejected(rejectedReply, a.thisNode[rejectedReply.from] || a.role(rejectedReply.from).Kind == cluster.RoleNode, "far host's")
		case answered != nil:
			a.placeReturn(r, v, answered, other)
		default:
			a.placeFar(r, v, partners, other)
		}
	case Rejected:
		if r.StoppedAt == StopUnknown && answered == nil && r.rejectedByServer() {
			r.clear("stopped_at")
			r.StoppedAt = StopNone
		}
	case HandshakeCompleted, Answered, Refused, HalfOpen, Midstream:
		unanswered := slices.ContainsFunc(partners, func(m partner) bool { return m.p.far.outcomeOf(other, m.chain) == RequestOnly })
		if answered == nil && unanswered && r.StoppedAt == StopNone {
			// Answered near, and not at the far side: a device on the way may have answered (a SYN proxy keeps the client's
			// numbers), or the far capture does not show answers.
			a.placeFar(r, v, partners, other)
			if r.StoppedAt == StopFar {
				r.signs |= signMiddlebox
			} else if r.StoppedAt == StopNone {
				r.StoppedAt = StopUnknown
			}
		}
	case OutcomeUnknown, OneDirection, ReplyOnly:
		// They carry no more than the near side says of them.
	}
}

// placeReturn: the far side answered, and the node's capture does not hold the answer.
func (a *analysis) placeReturn(r *Request, v *view, m *partner, other *viewSpace) {
	r.clear("stopped_at")
	if !v.egressShown(r) {
		r.unknown("stopped_at", gapInterfaces, "the far side answered; the near capture does not show the node's egress, so whether the answer reached the node is not known", a.captureHint(r))
		return
	}
	reply := missingReply(v.leaving(), v.exit().client.first)
	reply.dir, reply.iface = wire.DirIn, a.legInterface(v.exit())
	g := a.absent(&reply)
	if g == covered {
		g = a.answerDue(v, m, other)
	}
	if g != covered {
		r.unknown("stopped_at", g, "the far side answered; that the answer did not reach the node is not covered: "+gapText(g), a.settle(g, r))
		return
	}
	r.StoppedAt = StopReturn
	_, replies := m.p.far.view(other, int(m.chain)).counted()
	r.because("the far side answered (%s), and no answer reached the node", plural(replies, "packet"))
}

// answerDue tells whether the near capture ran on until what the far side answered should have arrived.
func (a *analysis) answerDue(v *view, m *partner, other *viewSpace) gap {
	answered := int64(wire.NoTime)
	for _, l := range m.p.far.view(other, int(m.chain)).legs() {
		if l.server.packets > 0 {
			answered = max(answered, l.server.first)
		}
	}
	lower, _, known := m.p.clock.at(v.exit().client.first)
	if answered == wire.NoTime || !known {
		return a.runsOut(v.exit().client)
	}
	if a.lastTime()-(answered-lower) < 1_000_000_000 {
		return gapEnded
	}
	return covered
}

// placeFar: the request passed the far capture point, and no answer passed it.
func (a *analysis) placeFar(r *Request, v *view, partners []partner, other *viewSpace) {
	r.clear("stopped_at")
	first := gap("")
	for i := range partners {
		m := &partners[i]
		f := m.p.far
		fv := f.view(other, int(m.chain))
		if vlan, other := f.missingVLAN(fv); other != 0 {
			r.StoppedAt = StopBetween
			r.because("seen on VLAN %d at the far capture point and not on VLAN %d, to which others are passed on", vlan, other)
			return
		}
		reply := missingReply(fv.leaving(), fv.exit().client.first)
		reply.iface = f.legInterface(fv.exit())
		if fv.pod != nil || fv.egress != nil {
			reply.dir = wire.DirOut
			reply.iface = -1
			if len(f.sum.Interfaces) == 1 {
				reply.iface = 0
			}
		}
		g := f.absent(&reply)
		if g == covered {
			g = f.runsOut(fv.exit().client)
		}
		if g == covered && !m.fromTheBeginning(r, v, fv) {
			g = gapWindow // it may have begun, and been answered, before the far capture did
		}
		if g == covered {
			r.StoppedAt = StopFar
			sent, _ := fv.counted()
			r.because("%s arrived at the far capture point (%s) and nothing came back past it", plural(sent, "packet"), f.name())
			return
		}
		if first == covered {
			first = g
		}
	}
	r.unknown("stopped_at", first, "it arrived at the far capture point; that nothing came back past it is not covered: "+gapText(first), partners[0].p.far.settle(first, r))
}

// fromTheBeginning tells whether the far capture ran when the request's first packet arrived: it holds as many of its
// packets as were sent, or began before by the clocks; and of a connection an opening.
func (m *partner) fromTheBeginning(r *Request, v, far *view) bool {
	f := m.p.far
	if r.Tuple.Proto == wire.ProtoTCP && !far.opened() {
		return false
	}
	lower, _, known := m.p.clock.at(v.exit().client.first)
	from, _, _ := f.sum.Window()
	sent, _ := far.counted()
	return sent >= r.RequestsSent || known && from <= v.exit().client.first+lower
}

// legInterface returns the one interface at which a leg was seen where the capture records no direction, -1 otherwise.
func (a *analysis) legInterface(l *legState) int {
	for _, x := range l.flows {
		if a.t.flows.at(x).key.place < placeInterface {
			return -1
		}
	}
	return a.podInterface(l)
}

// missingVLAN tells of a request seen on one VLAN whether others that were seen on it were seen on a second one, too: the
// two sides of a firewall, at a mirror port. Both are 0 if not.
func (a *analysis) missingVLAN(v *view) (seen, missing uint32) {
	a.vlanPairsOnce.Do(a.gatherVLANPairs)
	vlans := v.vlans()
	if len(vlans) != 1 || a.sum.damaged || a.sum.Excerpt != "" || a.sum.HasDropped && a.sum.Dropped > 0 {
		return 0, 0
	}
	if other, ok := a.vlanPairs[vlans[0]]; ok {
		return vlans[0], other
	}
	return 0, 0
}

func (a *analysis) gatherVLANPairs() {
	a.vlanPairs = make(map[uint32]uint32)
	var space viewSpace
	for i := range a.chains {
		if convs := a.t.in(&a.chains[i]); len(convs) == 1 && len(a.t.of(&convs[0])) == 1 {
			continue // one flow has one VLAN
		}
		if vlans := a.view(&space, i).vlans(); len(vlans) == 2 {
			a.vlanPairs[vlans[0]] = vlans[1]
			a.vlanPairs[vlans[1]] = vlans[0]
		}
	}
}

// vlans returns the VLANs on which packets from the client were seen, in order of time.
func (v *view) vlans() []uint32 {
	var out []uint32
	for _, x := range v.flows() {
		f := v.t.flows.at(x)
		if f.dir[v.clientSide(x)].packets > 0 && !slices.Contains(out, f.key.vlan) {
			out = append(out, f.key.vlan)
		}
	}
	return out
}

// placeAbsent: no far capture holds the request.
func (a *analysis) placeAbsent(r *Request, v *view, other *viewSpace, contested bool, pairings []*pairing, claimed [][]bool, far []*analysis, opt PairOptions) {
	answered := r.StoppedAt == StopNone
	claimable := r.Outcome == RequestOnly || r.Outcome == HandshakeCompleted || r.Outcome == Answered || r.Outcome == Refused
	visible := v.egressShown(r)
	if !answered && (r.Outcome != RequestOnly || !visible || r.answerAtEgress()) {
		return // what the near side says of it stands: it has not been shown to leave, or carries no more
	}
	first, settle := gapInterfaces, a.captureHint(r)
	if contested {
		first, settle = gapAmbiguous, "let one client try at a time while capturing"
	} else if r.hasUnknown("outcome") {
		first, settle = gapEnded, a.settle(gapEnded, r) // whether it is answered is not known, so neither is what should have arrived
	} else if visible && claimable {
		first = covered
	} else if visible {
		first, settle = gapAmbiguous, "a near capture that holds the opening" // of a connection under way too little is there to join or to miss
	}
	for j, p := range pairings {
		if first != covered {
			break
		}
		g, how, hint := a.farAbsence(r, v, other, p, claimed[j], opt)
		if g == covered {
			r.clear("stopped_at")
			r.StoppedAt = StopBetween
			r.because("left the node, and the far capture (%s), which covers it, holds nothing of it", far[j].name())
			if answered {
				r.signs |= signMiddlebox
			}
			if how != "" {
				r.unknown("stopped_at", "clock-not-aligned", how, "--far-clock-offset DUR±ERR, or a request that both captures hold")
			}
			return
		}
		if g == gapProxy && answered {
			r.StoppedAt = StopNone
			r.signs |= signMiddlebox | signProxy
			r.because("the far capture holds another connection in its place, at the same time and with the same payload or the same tuple: something on the way ends connections")
			return
		}
		first, settle = g, hint
	}
	r.clear("stopped_at")
	r.StoppedAt = StopUnknown
	if answered {
		r.unknown("stopped_at", first, "it was answered; that the far host did so does not show, since it is not in the far capture: "+gapText(first), settle)
		return
	}
	r.unknown("stopped_at", first, "it is not in the far capture, and that it did not arrive is not covered: "+gapText(first), settle)
}

// Reasons for which a request's absence from a far capture is not covered.
const (
	gapWindow    gap = "outside-far-window"
	gapClock     gap = "clock-not-aligned"
	gapPlace     gap = "far-place-not-known"
	gapProxy     gap = "other-connection"
	gapAmbiguous gap = "join-ambiguous"
)

// farAbsence tells whether the far capture would hold the request if it had passed there. how is the doubt that remains.
func (a *analysis) farAbsence(r *Request, v *view, other *viewSpace, p *pairing, claimed []bool, opt PairOptions) (g gap, how, settle string) {
	f := p.far
	t := v.leaving()
	occurs := f.occurrences()
	if occurs[t.Dst] == 0 && !slices.Contains(opt.FarHosts, t.Dst) {
		return gapPlace, "", "--far-host " + t.Dst.String() + " if the far capture was taken where packets to it pass"
	}
	// Window and clock.
	l := v.exit()
	from, to, _ := f.sum.Window()
	lower, upper, known := p.clock.at(l.client.first)
	switch {
	case l.client.first == wire.NoTime:
		return gapNoTime, "", ""
	case opt.HasFarWindow:
		if l.client.first < opt.FarFrom || l.client.first > opt.FarTo {
			return gapWindow, "", "a far capture that runs while the request is made"
		}
		if !known {
			lower, upper = -1<<61, 1<<61 // by the far clock it may be any time
		}
	case from == wire.NoTime || to == wire.NoTime:
		return gapNoTime, "", "--far-window FROM/TO, when the far capture ran"
	case known:
		if !covers(v.exit(), from-lower, to-upper) { // whatever the offset is within its bounds
			return gapWindow, "", "a far capture that runs while the request is made"
		}
	case len(p.clock.stretches) > 0 && p.joined > 0:
		return gapClock, "", "--far-clock-offset DUR±ERR: the packets that both captures hold bound it on one side only"
	case p.atOdds:
		return gapClock, "", "--far-clock-offset DUR±ERR or --far-window FROM/TO: both hold answered requests to the same servers, and none in common"
	case a.sum.NoDate || f.sum.NoDate:
		return gapClock, "", "--date and --tz for a text whose times have no date, --far-clock-offset DUR±ERR, or the capture file itself"
	default:
		if from > l.client.first || to < l.client.last {
			return gapClock, "", "--far-clock-offset DUR±ERR or --far-window FROM/TO"
		}
		how = "nothing in common shows how the two clocks lie to each other; by both clocks as they are the far capture ran all the time"
		lower, upper = -1_000_000_000, 1_000_000_000
	}
	// Something at the far side that may be it, joined with nothing.
	if g := a.lookalike(v, other, p, claimed, lower, upper, r.StoppedAt == StopNone); g != covered {
		return g, "", "a capture before the device that changes it"
	}
	m := missing{proto: t.Proto, v6: !t.Dst.Is4(), dst: t.Dst, sport: -1, dport: -1, dir: wire.DirIn, iface: -1, after: l.client.first + lower, far: true}
	if p.sameSource && !p.otherSource {
		m.src, m.srcAs = t.Src, asSource // what is joined shows that nothing translates on the way
	}
	if t.Proto.HasPorts() {
		m.dport = int(t.DstPortOrEchoID)
	}
	if len(f.sum.Interfaces) == 1 {
		m.iface = 0
	}
	if f.common.oneDir && f.common.dir == wire.DirUnknown {
		m.dir = wire.DirUnknown
	}
	if g := f.absent(&m); g != covered {
		return g, "", f.settle(g, r)
	}
	if _, stated := f.filter(); !stated && !m.src.IsValid() && !p.otherSource && occurs[t.Src]&asSource == 0 {
		return gapFilter, "", f.settle(gapFilter, r) // nothing shows that its source is not what the filter leaves out
	}
	return covered, how, ""
}

// outcomeOf is the outcome of a chain by its capture alone.
func (a *analysis) outcomeOf(space *viewSpace, chain int32) Outcome {
	return a.view(space, int(chain)).outcome(a.host).outcome
}

// judged is the request of a chain by its capture alone.
func (a *analysis) judged(chain int32) *Request {
	var room Room
	a.judge(&room.r, a.view(&room.space, int(chain)), chain, &room.space)
	return &room.r
}

// checkOdds tells whether two captures that share nothing both hold answered requests to one server: then they are of two
// times, whatever their clocks say.
func (p *pairing) checkOdds() {
	if p.joined == 0 {
		servers := make(map[wire.Addr]bool)
		answered := func(a *analysis, v *view) bool {
			o := v.outcome(a.host).outcome
			return o == HandshakeCompleted || o == Answered
		}
		for _, v := range p.far.eachView {
			if answered(p.far, v) {
				servers[v.leaving().Dst] = true
			}
		}
		for _, v := range p.near.eachView {
			if servers[v.leaving().Dst] && answered(p.near, v) {
				p.atOdds = true
				break
			}
		}
	}
}

// covers tells whether at least one of the client's packets at this leg lies in a window of near time.
func covers(l *legState, from, to int64) bool {
	for _, e := range l.events() {
		switch e.kind {
		case evSYN, evSYNAgain, evRequest, evInit:
			if e.from == 0 && e.time >= from && e.time <= to {
				return true
			}
		default:
		}
	}
	return l.client.first >= from && l.client.first <= to
}

// gatherByServer finds the chains that nothing was joined with by where they go.
func (a *analysis) gatherByServer(claimed []bool) {
	a.byServer = make(map[serverKey][]arrival)
	var space viewSpace
	for c := range a.chains {
		if claimed[c] {
			continue
		}
		o := a.view(&space, c)
		k, y := serverOf(o.leaving()), o.exit()
		at := arrival{chain: c, first: y.client.first, last: y.client.last}
		if y.client.packets == 0 { // answers alone: the request they answer was here
			at.first, at.last = y.server.first, y.server.last
		}
		a.byServer[k] = append(a.byServer[k], at)
		a.longest = max(a.longest, at.last-at.first)
	}
	for _, l := range a.byServer {
		slices.SortFunc(l, func(x, y arrival) int { return cmp.Compare(x.first, y.first) })
	}
}

// lookalike finds a far chain towards the same server, at the same time, that nothing was joined with.
func (a *analysis) lookalike(v *view, other *viewSpace, p *pairing, claimed []bool, lower, upper int64, answered bool) gap {
	f := p.far
	f.byServerOnce.Do(func() { f.gatherByServer(claimed) })
	t := v.leaving()
	l := v.exit()
	const slack = 1_000_000_000
	checked := 0
	list := f.byServer[serverOf(t)]
	from, to := l.client.first+lower-slack, l.client.last+upper+slack
	begin, _ := slices.BinarySearchFunc(list, from-f.longest, func(x arrival, t int64) int { return cmp.Compare(x.first, t) })
	for _, at := range list[begin:] {
		if at.first > to {
			break
		}
		c := at.chain
		if at.last < from {
			continue
		}
		if checked++; checked > 1024 {
			return gapAmbiguous
		}
		o := f.view(other, c)
		if t == o.leaving() && comparableTS(v, o) {
			return gapProxy // the same tuple at the same moment, and another opening: a device on the way makes its own connection
		}
		switch same, known := samePayload(v, o); {
		case same:
			return gapProxy
		case !known && answered:
			return gapAmbiguous // a proxy's connection, or another client's: the payload that would tell is not there
		}
		if t.Proto != wire.ProtoTCP && otherDatagrams(v, o) {
			continue
		}
		if isn, ok := v.isn(); ok && t.Src == o.leaving().Src {
			if theirs, ok := o.isn(); ok && theirs != isn && (comparableTS(v, o) || p.numbersKept) {
				continue // another connection of the same source: its SYN carries another timestamp value
			}
		}
		if t.Proto == wire.ProtoTCP && o.leaving().Src != t.Src && (comparableTS(v, o) || p.numbersKept && o.opened()) {
			if kind := f.role(o.client).Kind; kind != cluster.RoleNode && kind != cluster.RolePod {
				continue // another client's, by its timestamp value; a proxy's would carry the payload
			}
		}
		return gapAmbiguous
	}
	return covered
}

type serverKey struct {
	addr  wire.Addr
	proto wire.Proto
	port  uint16
}

func serverOf(t wire.Tuple) serverKey {
	k := serverKey{addr: t.Dst, proto: t.Proto}
	if t.Proto.HasPorts() {
		k.port = t.DstPortOrEchoID
	}
	return k
}

// arrival is a far chain with the time of its packets from the client.
type arrival struct {
	chain       int
	first, last int64
}

// otherDatagrams tells whether both exchanges have payloads to compare and none agrees.
func otherDatagrams(v, o *view) bool {
	both, agree := false, false
	v.prints(v.exit().flows, func(x *fingerprint, from int) {
		if x.kind != printDatagram || from != 0 || x.short == 0 {
			return
		}
		o.prints(o.exit().flows, func(y *fingerprint, from int) {
			if y.kind == printDatagram && from == 0 && y.short != 0 {
				both = true
				agree = agree || x.short == y.short && x.size == y.size
			}
		})
	})
	return both && !agree
}

// comparableTS tells whether both openings carry timestamps and none agrees.
func comparableTS(v, o *view) bool {
	both, agree := false, false
	v.prints(v.exit().flows, func(x *fingerprint, from int) {
		if x.kind != printSYN || from != 0 || !x.hasTS() {
			return
		}
		o.prints(o.exit().flows, func(y *fingerprint, from int) {
			if y.kind == printSYN && from == 0 && y.hasTS() {
				both = true
				agree = agree || x.ts == y.ts
			}
		})
	})
	return both && !agree
}

// samePayload tells whether the first data of both connections' clients is the same; known, whether both captures hold it.
func samePayload(v, o *view) (same, known bool) {
	v.prints(v.exit().flows, func(x *fingerprint, from int) {
		if x.kind != printData || from != 0 {
			return
		}
		o.prints(o.exit().flows, func(y *fingerprint, from int) {
			if y.kind == printData && from == 0 {
				known = true
				same = same || x.mid != 0 && x.mid == y.mid || (x.mid == 0 || y.mid == 0) && x.short == y.short && x.size == y.size
			}
		})
	})
	return same, known
}

// describePairs notes what was measured and what was stated.
func describePairs(res *Result, all [][]*pairing, opt PairOptions) {
	for _, ps := range all {
		for _, p := range ps {
			info := p.far.info
			if n := len(p.clock.stretches); n > 0 {
				s := &p.clock.stretches[n-1]
				if s.hasLow && s.hasUp && !info.HasOffset {
					for _, n := range p.far.numbers {
						c := &res.Captures[n]
						c.HasOffset = true
						c.ClockOffset = (s.lower + s.upper) / 2
						c.ClockError = max((s.upper-s.lower+1)/2, 0)
						c.ClockPairs = s.pairs
						c.ClockStated = p.clock.stated
					}
				}
				if n > 1 {
					info.Notes = append(info.Notes, p.clock.stepNote(p.near.name()))
				}
			}
			switch {
			case p.same:
				info.Notes = append(info.Notes, fmt.Sprintf("it is the same capture as %s: every joined packet has the same time in both", p.near.name()))
			case p.swapped:
				info.Notes = append(info.Notes, fmt.Sprintf("it looks like the node's side: it shows packets before %s does; --near and --far may be swapped", p.near.name()))
			case p.joined == 0:
				info.Notes = append(info.Notes, fmt.Sprintf("nothing in it could be joined with %s: %s", p.near.name(), p.whyApart()))
			}
		}
	}
	if opt.HasFarWindow {
		res.stated = append(res.stated, "stated: the far capture ran "+utcTime(opt.FarFrom)+"/"+utcTime(opt.FarTo)+" (--far-window)")
	}
	if opt.HasFarOffset {
		for _, ps := range all {
			for _, p := range ps {
				if measured, ok := p.clock.contradicts(opt.FarOffset, opt.FarOffsetError); ok {
					res.stated = append(res.stated, fmt.Sprintf("the stated clock offset of %s is contradicted by joined packets (%s); the packets count", p.far.name(), measured))
				}
			}
		}
		offset, word := time.Duration(opt.FarOffset), "ahead of"
		if offset < 0 {
			offset, word = -offset, "behind"
		}
		res.stated = append(res.stated, fmt.Sprintf("stated: the far clock is %s %s the near one, ± %s (--far-clock-offset); used where no packet shows it", offset, word, time.Duration(opt.FarOffsetError)))
	}
	for _, h := range opt.FarHosts {
		res.stated = append(res.stated, "stated: the far capture lies on the way to "+h.String()+" (--far-host)")
	}
	res.farIsHost, res.farIsPath = opt.FarIsHost, opt.FarIsPath
	if opt.FarIsHost {
		res.stated = append(res.stated, "stated: the far capture was taken on the destination itself (--far-is host)")
	}
	if opt.FarIsPath {
		res.stated = append(res.stated, "stated: the far capture was taken on the way (--far-is path)")
	}
}

func utcTime(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// contradicts tells whether what joined packets show leaves no room for a stated offset, and what they show instead.
func (c *clock) contradicts(offset, margin int64) (measured time.Duration, ok bool) {
	if len(c.stretches) == 0 || c.stated {
		return 0, false
	}
	s := &c.stretches[len(c.stretches)-1]
	ok = s.hasLow && s.hasUp && (offset-margin > s.upper || offset+margin < s.lower)
	return time.Duration((s.lower + s.upper) / 2), ok
}

// stepNote says that a clock was set or drifts.
func (c *clock) stepNote(near string) string {
	var largest int64
	for i := 1; i < len(c.stretches); i++ {
		a, b := &c.stretches[i-1], &c.stretches[i]
		if a.hasLow && a.hasUp && b.hasLow && b.hasUp {
			d := (b.lower+b.upper)/2 - (a.lower+a.upper)/2
			if d < 0 {
				d = -d
			}
			largest = max(largest, d)
		}
	}
	return fmt.Sprintf("its clock and that of %s move against each other: %s, the largest %s; each request is compared by the offset of its time",
		near, plural(uint64(len(c.stretches)-1), "step"), seconds(largest))
}

// whyApart says what two captures that share nothing most likely are.
func (p *pairing) whyApart() string {
	from, to, _ := p.near.sum.Window()
	farFrom, farTo, _ := p.far.sum.Window()
	switch {
	case p.far.t.firstTime == wire.NoTime:
		return "it holds no packets"
	case from != wire.NoTime && farFrom != wire.NoTime && (to < farFrom || farTo < from):
		return fmt.Sprintf("by their clocks they ran at different times (%s apart)", seconds(max(farFrom-to, from-farTo)))
	}
	occurs := p.far.occurrences()
	for _, v := range p.near.eachView {
		if occurs[v.leaving().Dst] != 0 {
			return "it holds packets of the same servers, and none of the same requests"
		}
	}
	return "no server of the near side occurs in it: it may be of another link, host or filter"
}
