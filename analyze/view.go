package analyze

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// legState is what one leg of a request shows, with the flows of the leg put together.
type legState struct {
	t                       *table
	kind                    LegKind
	flows                   []ref
	clients                 []int     // per flow, which side is the client
	client, server          *dirState // flags, counts, sequence marks: the flow's own, or those of several flows merged
	merged                  [2]dirState
	again                   [2]uint32 // segments with data that client and server sent again
	rejected, replyRejected *icmpError
	mtu                     *icmpError

	told    []event // see events
	hasTold bool
}

// view is one request as one capture saw it, before it is judged.
type view struct {
	t     *table
	chain *chain
	// pod is the client's side of the node, egress the server's side; plain is where the capture records no direction.
	// A leg without flows is nil.
	pod, egress, plain *legState
	local              bool         // on a loopback interface
	order              [3]*legState // the legs, nearest to the client first
	count              int          // of them
	inside             bool         // taken where the client's packets are made, and nothing says that this is the node: in a Pod
	client             wire.Addr
}

// viewSpace is room for one view at a time: those that are looked at once and forgotten share it. The zero viewSpace is ready.
type viewSpace struct {
	view view
	legs [3]legState // pod, egress, plain
	side [3]legFlows

	// Room to judge it in, and to keep what comes of it.
	passed []Leg
	points []Point
	kept   keeping

	other *viewSpace // see second
}

// second is room for another view beside this one.
func (s *viewSpace) second() *viewSpace {
	if s.other == nil {
		s.other = new(viewSpace)
	}
	return s.other
}

// legFlows are the flows of a leg; clients has, per flow, which side is the client.
type legFlows struct {
	flows   []ref
	clients []int
}

func (f *legFlows) add(r ref, client int) {
	f.flows, f.clients = append(f.flows, r), append(f.clients, client)
}

// merge puts flows of one leg together.
func (t *table) merge(kind LegKind, l *legState, of *legFlows) *legState {
	if len(of.flows) == 0 {
		return nil
	}
	l.t, l.kind, l.flows, l.clients = t, kind, of.flows, of.clients
	l.again, l.rejected, l.replyRejected, l.mtu, l.hasTold = [2]uint32{}, nil, nil, nil, false
	for side, d := range [2]**dirState{&l.client, &l.server} {
		first := &t.flows.at(l.flows[0]).dir[l.clients[0]^side]
		if *d = first; len(l.flows) == 1 && first.last >= 0 { // without times, a merged direction's last one is 0
			continue
		}
		*d, l.merged[side] = &l.merged[side], dirState{}
		for i, r := range l.flows {
			mergeDir(*d, &t.flows.at(r).dir[l.clients[i]^side])
		}
	}
	for i, r := range l.flows {
		f, c := t.flows.at(r), l.clients[i]
		if f.dir[0].odd|f.dir[1].odd == 0 {
			continue
		}
		client, server := t.oddities(&f.dir[c]), t.oddities(&f.dir[1-c])
		l.again[0], l.again[1] = max(l.again[0], client.dataAgain), max(l.again[1], server.dataAgain)
		if e := client.rejected; e != 0 && (l.rejected == nil || t.errs[e-1].time < l.rejected.time) {
			l.rejected = &t.errs[e-1]
		}
		if e := server.rejected; e != 0 && (l.replyRejected == nil || t.errs[e-1].time < l.replyRejected.time) {
			l.replyRejected = &t.errs[e-1]
		}
		if e := t.oddities(&f.dir[0]).mtu; e != 0 && l.mtu == nil {
			l.mtu = &t.errs[e-1]
		}
	}
	return l
}

// primary is the flow that saw most. One place tells the story if it saw both directions; else (asymmetric ways, one direction per VLAN)
// all places do.
func (l *legState) primary() (at int, alone bool) {
	packets := func(i int) uint64 {
		f := l.t.flows.at(l.flows[i])
		return f.dir[0].packets + f.dir[1].packets
	}
	for i := range l.flows {
		if packets(i) > packets(at) {
			at = i
		}
	}
	f := l.t.flows.at(l.flows[at])
	return at, len(l.flows) == 1 || f.dir[0].packets > 0 && f.dir[1].packets > 0
}

// events are those of both directions in order of time; from: 0 is the client, 1 the server. Most who look at a leg do not ask for them.
func (l *legState) events() []event {
	if l.hasTold {
		return l.told
	}
	l.told, l.hasTold = l.told[:0], true
	at, alone := l.primary()
	if alone {
		l.told = l.t.eventsOf(l.t.flows.at(l.flows[at]), l.clients[at], l.told)
		return l.told
	}
	for i, r := range l.flows {
		l.told = l.t.eventsOf(l.t.flows.at(r), l.clients[i], l.told)
	}
	slices.SortStableFunc(l.told, func(a, b event) int { return cmp.Compare(a.time, b.time) })
	return l.told
}

// states are those of client and server.
func (l *legState) states() [2]zeekState {
	if at, alone := l.primary(); alone {
		f, c := l.t.flows.at(l.flows[at]), l.clients[at]
		return [2]zeekState{f.states[c], f.states[1-c]}
	}
	var again flow // replayed from the events
	for _, e := range l.events() {
		if fl := e.kind.flags(); fl != 0 {
			again.zeek(int(e.from), fl)
		}
	}
	return again.states
}

// flags returns the TCP flags that an event stands for, 0 if none.
func (k eventKind) flags() wire.TCPFlags {
	switch k {
	case evSYN:
		return wire.SYN
	case evSYNACK:
		return wire.SYN | wire.ACK
	case evACK, evData:
		return wire.ACK
	case evFIN:
		return wire.FIN
	case evRST:
		return wire.RST
	default:
		return 0
	}
}

// mergeDir adds what one flow saw of a direction. Counts are of the place that saw most: places of one leg see copies.
func mergeDir(to, d *dirState) {
	if d.packets == 0 && d.flags == 0 {
		return
	}
	if to.packets == 0 || d.packets > 0 && d.first < to.first {
		to.first, to.mac = d.first, d.mac
		if d.flags&knowTTL != 0 {
			to.ttl = d.ttl
		}
	}
	if d.flags&sawSYN != 0 || to.flags&knowISN == 0 {
		to.isn = d.isn
	}
	to.last = max(to.last, d.last)
	to.packets = max(to.packets, d.packets)
	to.retrans = max(to.retrans, d.retrans)
	if d.flags&knowAck != 0 && (to.flags&knowAck == 0 || before(to.ackMax, d.ackMax)) {
		to.ackMax = d.ackMax
	}
	if d.flags&knowSeq != 0 && (to.flags&knowSeq == 0 || before(to.seqNext, d.seqNext)) {
		to.seqNext = d.seqNext
	}
	if d.flags&knowSeq != 0 && (to.flags&knowSeq == 0 || before(d.seqLow, to.seqLow)) {
		to.seqLow = d.seqLow
	}
	if d.flags&knowTS != 0 {
		if to.flags&knowTS == 0 || before(d.ts, to.ts) {
			to.ts = d.ts
		}
		if to.flags&knowTS == 0 || before(to.tsLast, d.tsLast) {
			to.tsLast = d.tsLast
		}
	}
	if d.flags&sawFIN != 0 {
		to.finSeq = d.finSeq
	}
	to.flags |= d.flags
}

// history appends Zeek's history: upper case for the client, lower case for the server, each kind once, repeated ones on a
// logarithmic scale; ^ says that the first packet is the server's (Zeek's conn.log documentation).
func (l *legState) history(b []byte) []byte {
	events := l.events()
	if len(events) > 0 && events[0].from == 1 {
		b = append(b, '^')
	}
	for i := range events {
		e := &events[i]
		if e.letter == 0 {
			continue
		}
		c := e.letter
		if e.from == 1 {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

// ownTTL tells whether a TTL is one that hosts start with (64: Linux and most others, 128: Windows, 255: routers and some
// Unix systems).
func ownTTL(ttl uint8) bool { return ttl == 64 || ttl == 128 || ttl == 255 }

// forwardedTTL tells whether a TTL is one less than hosts start with: exactly one router has passed the packet on.
func forwardedTTL(ttl uint8) bool { return ttl == 63 || ttl == 127 || ttl == 254 }

// ifaceSeen is what a capture shows of one of its interfaces.
type ifaceSeen struct {
	in, out  bool
	uplink   bool   // packets of the node itself, or translated ones, go out here
	podSide  bool   // packets of Pods come in here with the TTL they were sent with
	podFact  string // what says so
	podName  bool   // its name says so, printed by the host itself
	loopback bool
}

// hostFacts is what one capture tells of the host it was taken on.
type hostFacts struct {
	ifaces []ifaceSeen
	// forwards: a packet came in at one place and went out at another. A Pod does not do that, a node does.
	forwards bool
	// own: addresses from which this host sends packets of its own (outgoing with an initial TTL), and those that it
	// answers for.
	own map[wire.Addr]bool
	// translatedTo: addresses that this host put in place of a client's.
	translatedTo map[wire.Addr]bool
	// pods: clients whose source this host translated: without facts, the only proof that an address is a Pod's.
	pods map[wire.Addr]bool
	// macs: numbers of source MAC addresses of frames that this host sent, where the capture records no direction.
	macs map[uint16]bool
}

// learn gathers what a capture's requests tell of the host, so that each can be judged in the light of all.
func learn(t *table, chains []chain, facts *cluster.Facts, sum *wire.Summary, side wire.Side) *hostFacts {
	ifaces := sum.Interfaces
	h := &hostFacts{
		ifaces: make([]ifaceSeen, len(ifaces)), own: make(map[wire.Addr]bool), translatedTo: make(map[wire.Addr]bool),
		pods: make(map[wire.Addr]bool), macs: make(map[uint16]bool),
	}
	for i := range ifaces {
		h.ifaces[i].loopback = ifaces[i].Loopback
		if ifaces[i].HasIndex && side == wire.SideNear { // the links are the node's
			if l, ok := facts.Link(ifaces[i].Index); ok && l.PodSide {
				h.ifaces[i].podSide, h.ifaces[i].podFact = true, "--links"
			}
		}
		if sum.Text && sum.OwnNames && side == wire.SideNear { // printed where it was captured, so that the name is that host's
			if _, ok := cluster.PodSideName(ifaces[i].Name); ok {
				h.ifaces[i].podSide, h.ifaces[i].podFact = true, "the interface's name, as the host printed it"
				h.ifaces[i].podName = true
			}
		}
	}
	for i := range chains {
		c := &chains[i]
		convs := t.in(c)
		if len(convs) > 1 {
			h.forwards = true
			a, b := t.clientOf(&convs[0]), t.clientOf(&convs[len(convs)-1])
			if a != b && t.first(&convs[0]).key.place != placeLoopback {
				h.translatedTo[b] = true
				if k := facts.Role(a).Kind; k == cluster.RolePod || k == cluster.RoleUnknown && !podRangeKnown(facts, a.Is4()) {
					h.pods[a] = true
				}
			}
		}
		for j := range convs {
			if convs[j].in && convs[j].out {
				h.forwards = true
			}
		}
	}
	part := func() *hostFacts {
		return &hostFacts{ifaces: slices.Clone(h.ifaces), own: make(map[wire.Addr]bool), translatedTo: h.translatedTo, pods: h.pods, macs: make(map[uint16]bool)}
	}
	for _, p := range partsOf(t.flows.size()-1, part, func(p *hostFacts, i int) { p.look(t, t.flows.at(ref(i+1)), facts) }) {
		maps.Copy(h.own, p.own)
		maps.Copy(h.macs, p.macs)
		for i := range h.ifaces {
			s, o := &h.ifaces[i], &p.ifaces[i]
			s.in, s.out, s.uplink = s.in || o.in, s.out || o.out, s.uplink || o.uplink
			if !s.podSide {
				s.podSide, s.podFact = o.podSide, o.podFact
			}
		}
	}
	return h
}

// look learns from one flow; what all chains together tell is known.
func (h *hostFacts) look(t *table, f *flow, facts *cluster.Facts) {
	for side := range 2 {
		d := &f.dir[side]
		if f.key.place < placeInterface || d.packets == 0 || d.mac == 0 {
			continue
		}
		// The first router behind a Pod, and the sender of what a node address begins, are the node.
		r := facts.Role(f.key.end[side])
		node := r.Kind == cluster.RoleNode && r.Exact
		o := &f.dir[1-side]
		answeredFromAway := o.packets > 0 && o.flags&knowTTL != 0 && !ownTTL(o.ttl)
		if node && (ownTTL(d.ttl) || answeredFromAway) || forwardedTTL(d.ttl) && h.isPod(f.key.end[side], facts) {
			h.macs[d.mac] = true
		}
	}
	for n := f.taps; n != 0; n = t.taps.at(n).next {
		tp := t.taps.at(n)
		if int(tp.iface) >= len(h.ifaces) {
			continue
		}
		s := &h.ifaces[tp.iface]
		for side := range 2 {
			switch tp.seen[side] {
			case wire.DirIn:
				s.in = true
				if tp.depth == 0 && ownTTL(tp.ttl[side]) && !s.podSide && h.isPod(f.key.end[side], facts) {
					s.podSide, s.podFact = true, "packets of a Pod come in here with the TTL they were sent with"
				}
			case wire.DirOut:
				s.out = true
				addr := f.key.end[side]
				made := tp.depth == 0 && ownTTL(tp.ttl[side]) && addr.IsValid()
				if made {
					h.own[addr] = true
				}
				other := f.key.end[1-side]
				if (made && facts.Role(addr).Kind == cluster.RoleNode || h.translatedTo[addr]) && !h.isPod(other, facts) && !other.IsMulticast() {
					s.uplink = true
				}
			case wire.DirUnknown:
			}
		}
	}
}

// podRangeKnown tells whether the facts hold a Pod range of the address family.
func podRangeKnown(facts *cluster.Facts, v4 bool) bool {
	return slices.ContainsFunc(facts.PodPrefixes(), func(p netip.Prefix) bool { return p.Addr().Is4() == v4 })
}

// nodeAddrKnown tells whether the facts hold a node address or range of the address family.
func nodeAddrKnown(facts *cluster.Facts, v4 bool) bool {
	return slices.ContainsFunc(facts.NodePrefixes(), func(p netip.Prefix) bool { return p.Addr().Is4() == v4 }) ||
		slices.ContainsFunc(facts.NodeAddrs(), func(a wire.Addr) bool { return a.Is4() == v4 })
}

// isPod tells whether an address is a Pod's: by the facts, or because this host translated it.
func (h *hostFacts) isPod(a wire.Addr, facts *cluster.Facts) bool {
	return facts.Role(a).Kind == cluster.RolePod || h.pods[a]
}

func (t *table) first(c *conversation) *flow { return t.flows.at(t.of(c)[0]) }

func (t *table) clientOf(c *conversation) wire.Addr { return t.first(c).key.end[c.client] }

// clientOf is the client's address of a chain.
func (a *analysis) clientOf(chain int) wire.Addr { return a.t.clientOf(&a.t.in(&a.chains[chain])[0]) }

// proto is the protocol of a chain.
func (a *analysis) proto(chain int) wire.Proto {
	return a.t.first(&a.t.in(&a.chains[chain])[0]).key.proto
}

// newView sorts a chain's flows into legs. The view is valid until the space is used again.
func newView(t *table, c *chain, space *viewSpace) *view {
	v := &space.view
	convs := t.in(c)
	*v = view{t: t, chain: c, client: t.clientOf(&convs[0])}
	pod, egress, plain := &space.side[0], &space.side[1], &space.side[2]
	for _, f := range []*legFlows{pod, egress, plain} {
		f.flows, f.clients = f.flows[:0], f.clients[:0]
	}
	for i := range convs {
		cv := &convs[i]
		for _, r := range t.of(cv) {
			f := t.flows.at(r)
			to := plain
			switch f.clientDir(int(cv.client)) {
			case wire.DirIn:
				to = pod
			case wire.DirOut:
				to = egress
			case wire.DirUnknown:
				if f.key.place == placeLoopback {
					v.local = true
				} else if len(convs) > 1 {
					// Joined across a translation with no direction recorded: the order of the chain says which side is which.
					if i == 0 {
						to = pod
					} else {
						to = egress
					}
				}
			}
			to.add(r, int(cv.client))
		}
	}
	if len(convs) == 1 && len(plain.flows) > 1 {
		// One tuple at several interfaces or VLANs without directions: a hop between them tells the sides apart.
		cv := &convs[0]
		if ownTTL(cv.maxTTL) && cv.minTTL != 0 && cv.minTTL == cv.maxTTL-1 {
			n := 0
			for i, r := range plain.flows {
				d := &t.flows.at(r).dir[cv.client]
				switch {
				case d.ttl == cv.maxTTL:
					pod.add(r, plain.clients[i])
				case d.ttl == cv.minTTL, d.packets == 0:
					egress.add(r, plain.clients[i])
				default:
					plain.flows[n], plain.clients[n] = r, plain.clients[i]
					n++
				}
			}
			plain.flows, plain.clients = plain.flows[:n], plain.clients[:n]
		}
	}
	v.pod = t.merge(LegPod, &space.legs[0], pod)
	v.egress = t.merge(LegEgress, &space.legs[1], egress)
	v.plain = t.merge(LegUnknown, &space.legs[2], plain)
	v.arrange()
	return v
}

// settleInside takes an egress leg for what it may be: packets that go out with the TTL they were made with are made on the
// capturing host, and where nothing says that the host is the node, it may be the Pod itself. What such a leg shows is the
// Pod's side, and no egress.
func (v *view) settleInside(a *analysis) {
	if v.pod != nil || v.egress == nil || a.info.Side == wire.SideFar {
		return
	}
	l := v.egress
	if l.client.packets == 0 || l.client.flags&knowTTL == 0 || !ownTTL(l.client.ttl) || a.madeByNode(v.client) {
		return
	}
	l.kind = LegPod
	v.pod, v.egress, v.inside = l, nil, true
	v.arrange()
}

// madeByNode tells whether what this host makes itself, with this source address, is the node's.
func (a *analysis) madeByNode(addr wire.Addr) bool {
	role := a.role(addr)
	if role.Kind == cluster.RoleNode || a.thisNode[addr] {
		return true
	}
	// The host passes packets on, so it is a node; what it makes itself comes from an address of its own, a bridge's or a
	// second interface's. Without a Pod range it could be a bridged Pod's packet whose way in is not in the capture.
	return role.Kind != cluster.RolePod && a.host.forwards && podRangeKnown(a.facts, addr.Is4())
}

// legs returns the view's legs, nearest to the client first.
func (v *view) legs() []*legState { return v.order[:v.count] }

// arrange puts the legs in order, now that it is known which there are.
func (v *view) arrange() {
	v.count = 0
	for _, l := range [...]*legState{v.pod, v.plain, v.egress} {
		if l != nil {
			v.order[v.count] = l
			v.count++
		}
	}
}
