package analyze

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// Joining inside one capture. Flows of one tuple at several places are one conversation if their openings agree. Two
// conversations of different tuples are one request across a translation if what translation leaves alone agrees
// (DESIGN section 7, FACTS section 3.2): for TCP the ISN with timestamp value and IP ID, for datagrams payload and IP ID.
// Ports alone never join, and where more than one partner fits, nothing is joined.

// conversation is the flows of one tuple that belong to one exchange.
type conversation struct {
	at     [1]ref // its flow; of several, where they begin in grouping.flows
	n      uint16 // of flows: at most maxPlaces
	client uint8  // side
	in     bool   // seen on the client's side of this host: packets from the client come in, packets to it go out
	out    bool   // seen on the server's side
	maxTTL uint8  // of packets from the client; 0 if unknown
	minTTL uint8
}

// chain is one request as one capture saw it: conversations from the client's side to the server's.
type chain struct {
	convs     uint32 // where they begin in grouping.convs
	n         uint8  // of them: at most maxTuples
	ambiguous bool   // more than one partner fitted across a translation, so none was taken
}

// grouping is what a table's flows are to each other. It is made by chains; there are as many conversations and chains as flows, so that
// all are kept side by side. (2026-12-01: 20 bytes a request instead of 112.)
type grouping struct {
	flows []ref // of conversations that have several
	convs []conversation
	joins []Join   // of chains of several conversations, and
	those []uint32 // their chain.convs, in order
}

// of are the flows of a conversation.
func (g *grouping) of(c *conversation) []ref {
	if c.n == 1 {
		return c.at[:]
	}
	return g.flows[c.at[0] : c.at[0]+ref(c.n)]
}

// in are the conversations of a chain, from the client's side to the server's.
func (g *grouping) in(c *chain) []conversation { return g.convs[c.convs : c.convs+uint32(c.n)] }

// joined is what joined a chain's conversations, nil if nothing had to.
func (g *grouping) joined(c *chain) []Join {
	if c.n == 1 {
		return nil
	}
	at, _ := slices.BinarySearch(g.those, c.convs)
	return g.joins[at : at+1 : at+1]
}

// maxPartners bounds how many conversations may share one fingerprint before it says nothing: a guard against captures
// made to be slow, and against fields that are not unique after all.
const maxPartners = 16

// forwardDelay bounds the time between a packet's coming in and its going out of the same host, in nanoseconds: generous for
// TCP, whose fingerprint is strong; short for datagrams, whose payload may be sent again by anybody.
const (
	forwardDelayTCP      = 1_000_000_000
	forwardDelayDatagram = 50_000_000
	forwardDelayWeak     = 50_000_000 // a TCP opening that nothing but its ISN (and time) joins
)

// chains groups a capture's flows into requests, in no particular order.
func (t *table) chains(known *cluster.Connections) []chain {
	t.conversations()
	convs := t.convs
	var parent []int32 // per conversation, if any are joined
	find := func(i int32) int32 {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	all, contradicted := t.edges(convs)
	all = append(all, t.tracked(convs, all, known)...)
	edges := strongest(all, len(convs))
	// Those that are joined are in a list per root, in order, and the strongest evidence of each.
	var first, next, strongest []int32 // conversation and edge, plus one; 0 is none
	several := 0
	if len(edges) > 0 {
		parent = make([]int32, len(convs))
		for i := range parent {
			parent[i] = int32(i)
		}
		for _, e := range edges {
			parent[find(e.a)] = find(e.b)
		}
		first, next, strongest = make([]int32, len(convs)), make([]int32, len(convs)), make([]int32, len(convs))
		paired, last := make([]bool, len(convs)), make([]int32, len(convs))
		for k, e := range edges {
			paired[e.a], paired[e.b] = true, true
			if s := &strongest[find(e.a)]; *s == 0 || edges[*s-1].weaker(&e) {
				*s = int32(k) + 1
			}
		}
		for i := range convs {
			if !paired[i] {
				continue
			}
			several++
			root := find(int32(i))
			if last[root] > 0 {
				next[last[root]-1] = int32(i) + 1
			} else {
				first[root] = int32(i) + 1
			}
			last[root] = int32(i) + 1
		}
	}
	t.convs = slices.Grow(t.convs, several)
	out := make([]chain, 0, len(convs))
	var group []int32
	for i := range convs {
		root := int32(i)
		if parent != nil {
			root = find(root)
		}
		switch {
		case parent == nil, first[root] == 0:
			out = append(out, chain{convs: uint32(i), n: 1, ambiguous: contradicted[int32(i)]})
		case first[root] != int32(i)+1: // done with its first member
		default:
			group = group[:0]
			for m := first[root]; m > 0; m = next[m-1] {
				group = append(group, m-1)
			}
			ordered, ok := t.inOrder(convs, group)
			if !ok {
				for _, m := range group {
					out = append(out, chain{convs: uint32(m), n: 1, ambiguous: true})
				}
				continue
			}
			t.joins, t.those = append(t.joins, edges[strongest[root]-1].join()), append(t.those, uint32(len(t.convs)))
			out = append(out, chain{convs: uint32(len(t.convs)), n: uint8(len(ordered))})
			t.convs = append(t.convs, ordered...)
		}
	}
	return out
}

// evidence is a set of what agrees between two sides of a join.
type evidence uint16

// What a join may rest on, in the order in which it is told.
const (
	agreeISN evidence = 1 << iota
	agreeInitTag
	agreeSequence
	agreeRanges
	agreePayload
	agreeFiveTuple
	agreePorts
	agreeEcho
	agreeEchoSequence
	agreeTuple
	agreeServer
	agreeTracked // by the kernel's connection table
	agreeTS
	agreeTSRange
	agreeIPID
)

// words appends the evidence as it is told.
func (e evidence) words(out []string) []string {
	for i, word := range [...]string{
		"tcp isn", "sctp initiate tag", "tcp sequence and acknowledgement", "tcp sequence ranges", "payload", "five-tuple", "ports",
		"echo identifier and sequence number", "echo sequence number", "tuple", "server", "conntrack",
		"timestamp value", "timestamp values", "ip id",
	} {
		if e>>i&1 != 0 {
			out = append(out, word)
		}
	}
	return out
}

// has tells whether all that is asked for agrees.
func (e evidence) has(o evidence) bool { return e&o == o }

// tracked finds pairs of conversations that are one request by the kernel's connection table. What the packets themselves
// show exactly is not asked again: an entry may be of an earlier connection with the same ports.
func (t *table) tracked(convs []conversation, found []edge, known *cluster.Connections) []edge {
	if known.Len() == 0 {
		return nil
	}
	exact := make(map[int32]bool)
	for _, e := range found {
		if e.confidence == Exact {
			exact[e.a], exact[e.b] = true, true
		}
	}
	byEntry := make(map[wire.Connection][]int32)
	var edges []edge
	for i := range convs {
		e, ok := known.Of(t.first(&convs[i]).key.tuple(int(convs[i].client)))
		if !ok || exact[int32(i)] {
			continue
		}
		others := byEntry[e]
		for _, o := range others {
			if mayTranslate(t, &convs[o], &convs[i]) && t.together(&convs[o], &convs[i]) {
				edges = append(edges, edge{a: o, b: int32(i), basis: agreeTracked, confidence: Exact})
			}
		}
		if len(others) < maxPartners {
			byEntry[e] = append(others, int32(i))
		}
	}
	return edges
}

// together tells whether two conversations overlap in time, but for what a packet takes to pass the host.
func (t *table) together(p, q *conversation) bool {
	span := func(c *conversation) (first, last int64) {
		first, last = t.first(c).span()
		for _, r := range t.of(c)[1:] {
			a, b := t.flows.at(r).span()
			first, last = min(first, a), max(last, b)
		}
		return first, last
	}
	a0, a1 := span(p)
	b0, b1 := span(q)
	return a0-forwardDelayTCP <= b1 && b0-forwardDelayTCP <= a1
}

// strongest leaves out probable evidence about conversations that have exact evidence: what agrees in everything is not
// made ambiguous by what agrees in little.
func strongest(edges []edge, convs int) []edge {
	if len(edges) == 0 {
		return nil
	}
	exact := make([]bool, convs)
	for _, e := range edges {
		if e.confidence == Exact {
			exact[e.a], exact[e.b] = true, true
		}
	}
	return slices.DeleteFunc(edges, func(e edge) bool { return e.confidence == Probable && (exact[e.a] || exact[e.b]) })
}

// maxTuples is how many tuples one request may have on one host: a service's address, its endpoint's, and both once more
// behind a translation of the source.
const maxTuples = 4

// conversations groups flows of one tuple.
func (t *table) conversations() {
	begin := func(f *flow) int64 {
		a, b := &f.dir[0], &f.dir[1]
		switch {
		case a.packets == 0:
			return b.first
		case b.packets == 0:
			return a.first
		}
		return min(a.first, b.first)
	}
	t.grouping = grouping{convs: make([]conversation, 0, t.flows.size()-1)}
	add := func(flows []ref) {
		c := conversation{at: [1]ref{flows[0]}, n: uint16(len(flows))}
		if c.n > 1 {
			c.at[0] = ref(len(t.grouping.flows))
			t.grouping.flows = append(t.grouping.flows, flows...)
		}
		t.convs = append(t.convs, c)
	}
	for alike := range t.byEnds {
		if len(alike) == 1 {
			add(alike)
			continue
		}
		slices.SortFunc(alike, func(x, y ref) int {
			return cmp.Or(cmp.Compare(begin(t.flows.at(x)), begin(t.flows.at(y))), cmp.Compare(x, y))
		})
		var exchanges [][]ref
		for n, r := range alike {
			joined := false
			// Flows come in time order, so only the latest exchanges of a tuple can still take one in.
			for k := len(exchanges) - 1; k >= max(0, len(exchanges)-8) && !joined; k-- {
				if t.sameExchange(exchanges[k], r) {
					exchanges[k] = append(exchanges[k], r)
					joined = true
				}
			}
			if !joined {
				exchanges = append(exchanges, alike[n:n+1:n+1])
			}
		}
		for _, flows := range exchanges {
			add(flows)
		}
	}
	inPieces(len(t.convs), func(i int) { t.orient(&t.convs[i]) })
}

// byEnds gives the flows that are judged, those of one tuple together, in the order in which the first of each began: what lies side by
// side in the table is then looked at together, too. (2026-12-01: half the time of sorting them by tuple, and a third less for all that
// goes over the requests behind it.)
func (t *table) byEnds(yield func([]ref) bool) {
	n := t.flows.size()
	ends := func(r ref) flowKey {
		k := t.flows.at(r).key
		k.vlan, k.place = 0, 0
		return k
	}
	hashes := make([]uint32, n)
	inPieces(n-1, func(i int) {
		k := ends(ref(i + 1))
		hashes[i+1] = t.index.hash(&k)
	})
	slots := make([]ref, slotsFor(n)) // open addressing over the first flow of each tuple
	mask := uint32(len(slots) - 1)
	next := make([]ref, n) // behind the first one the others, and none
	others := make([]bool, n)
	for r := ref(1); int(r) < n; r++ {
		f := t.flows.at(r)
		if f.carrier {
			others[r] = true
			continue
		}
		at := hashes[r] & mask
		for slots[at] != 0 && (hashes[slots[at]] != hashes[r] || !sameEnds(&t.flows.at(slots[at]).key, &f.key)) {
			at = (at + 1) & mask
		}
		if first := slots[at]; first != 0 {
			others[r], next[r], next[first] = true, next[first], r
		} else {
			slots[at] = r
		}
	}
	var alike []ref
	for r := ref(1); int(r) < n; r++ {
		if others[r] {
			continue
		}
		alike = alike[:0]
		for x := r; x != 0; x = next[x] {
			alike = append(alike, x)
		}
		if !yield(alike) {
			return
		}
	}
}

// sameEnds tells whether keys differ in VLAN and place at most.
func sameEnds(a, b *flowKey) bool {
	return a.end == b.end && a.port == b.port && a.proto == b.proto && a.query == b.query && a.asker == b.asker
}

// sameExchange tells whether a flow is the same exchange, at another place, as flows of the same tuple.
func (t *table) sameExchange(flows []ref, r ref) bool {
	// One packet passes few places; more flows of one tuple than that are not places of one exchange.
	const maxPlaces = 32
	if len(flows) >= maxPlaces {
		return false
	}
	g := t.flows.at(r)
	overlap := false
	for _, x := range flows {
		f := t.flows.at(x)
		if f.key == g.key {
			return false // another episode at the same place
		}
		agree, differ := false, false
		for s := range 2 {
			if f.dir[s].flags&g.dir[s].flags&knowISN == 0 {
				continue
			}
			if f.dir[s].isn == g.dir[s].isn {
				agree = true
			} else if f.dir[s].flags&sawSYN != 0 || g.dir[s].flags&sawSYN != 0 {
				differ = true // a server's ISN may differ between SYN-ACKs, a client's may not
			}
		}
		if differ {
			return false
		}
		if agree {
			return true
		}
		slack := int64(1_000_000_000)
		if f.key.proto != wire.ProtoTCP {
			slack = udpIdle
		}
		a0, a1 := f.span()
		b0, b1 := g.span()
		if a0-slack <= b1 && b0-slack <= a1 {
			overlap = true
		}
	}
	return overlap
}

// span returns the flow's first and last packet time.
func (f *flow) span() (first, last int64) {
	a, b := &f.dir[0], &f.dir[1]
	switch {
	case a.packets == 0 && b.packets == 0:
		return 0, 0
	case a.packets == 0:
		return b.first, b.last
	case b.packets == 0:
		return a.first, a.last
	}
	return min(a.first, b.first), max(a.last, b.last)
}

// clientDir returns how the client's packets pass this host at the flow's place.
func (f *flow) clientDir(client int) wire.Direction {
	switch f.key.place {
	case placeFwdIn:
		if client == 0 {
			return wire.DirIn
		}
		return wire.DirOut
	case placeFwdOut:
		if client == 0 {
			return wire.DirOut
		}
		return wire.DirIn
	case placeLoopback:
	}
	return wire.DirUnknown
}

// orient decides which end is the client, and where the client's packets pass.
func (t *table) orient(c *conversation) {
	best := -1
	earliest := int64(0)
	for _, r := range t.of(c) {
		f := t.flows.at(r)
		if !f.guessed {
			c.client, best = f.client, 2
			break
		}
		from, _ := f.span()
		if best < 0 || from < earliest {
			c.client, best, earliest = f.client, 1, from
		}
	}
	if best == 1 {
		// Both ends guessed, and the file's order may not be the order in time: the earlier sender is the client unless the
		// ports say otherwise.
		f := t.first(c)
		a, b := c.client, 1-c.client
		switch {
		case servesFrom(f.key.proto, f.key.port[a], f.key.port[b]) && !f.key.end[b].IsMulticast():
			c.client = b
		case servesFrom(f.key.proto, f.key.port[b], f.key.port[a]):
		default:
			ta, tb := int64(0), int64(0)
			na, nb := false, false
			for _, r := range t.of(c) {
				d := &t.flows.at(r).dir
				if d[a].packets > 0 && (!na || d[a].first < ta) {
					ta, na = d[a].first, true
				}
				if d[b].packets > 0 && (!nb || d[b].first < tb) {
					tb, nb = d[b].first, true
				}
			}
			if na && nb && tb < ta {
				c.client = b
			}
		}
	}
	for _, r := range t.of(c) {
		f := t.flows.at(r)
		switch f.clientDir(int(c.client)) {
		case wire.DirIn:
			c.in = c.in || f.dir[0].packets+f.dir[1].packets > 0
		case wire.DirOut:
			c.out = c.out || f.dir[0].packets+f.dir[1].packets > 0
		case wire.DirUnknown:
		}
		if f.dir[c.client].packets > 0 {
			for n := f.taps; n != 0; n = t.taps.at(n).next {
				if ttl := t.taps.at(n).ttl[c.client]; ttl != 0 {
					c.maxTTL = max(c.maxTTL, ttl)
					if c.minTTL == 0 || ttl < c.minTTL {
						c.minTTL = ttl
					}
				}
			}
		}
	}
}

// began is the time of the first packet of a conversation from the client, else of any.
func (t *table) began(c *conversation) int64 {
	first, seen := int64(0), false
	for _, r := range t.of(c) {
		if d := &t.flows.at(r).dir[c.client]; d.packets > 0 && (!seen || d.first < first) {
			first, seen = d.first, true
		}
	}
	if !seen {
		first, _ = t.first(c).span()
	}
	return first
}

// edge is one piece of evidence that two conversations are one request.
type edge struct {
	a, b       int32
	basis      evidence
	confidence Confidence
	apart      bool // all agrees but the time: a clock was set in between
}

// edges finds pairs of conversations that share what translation leaves alone. contradicted are those that share all of it
// with another whose hop count does not fit: they are not joined, and nothing is concluded from their standing alone.
func (t *table) edges(convs []conversation) (edges []edge, contradicted map[int32]bool) {
	contradicted = make(map[int32]bool)
	try := func(e edge, ok bool) {
		switch {
		case !ok:
		case e.apart:
			contradicted[e.a], contradicted[e.b] = true, true
		case e.basis.has(agreeTS | agreeIPID):
			// ISN, timestamp value and IP ID all agree: one packet, whatever was done to its TTL (a bridged datapath, a TTL rule).
			edges = append(edges, e)
		case !hopsFit(&convs[e.a], &convs[e.b]):
			if e.confidence == Exact {
				contradicted[e.a], contradicted[e.b] = true, true
			}
		default:
			edges = append(edges, e)
		}
	}
	type opening struct {
		isn  uint32
		conv int32
		prot wire.Proto
	}
	var openings []opening
	const unknown = 1 << 32
	isns := make([]uint64, len(convs))
	inPieces(len(convs), func(i int) {
		isns[i] = unknown
		if isn, ok := t.isnOf(&convs[i]); ok {
			isns[i] = uint64(isn)
		}
	})
	met := newMeeting(len(convs))
	for _, isn := range isns {
		if isn != unknown {
			met.note(uint32(isn))
		}
	}
	type packetKey struct {
		digest uint64
		size   uint32
		seq    uint32
		prot   wire.Proto
		ipid   uint16
		server wire.Addr // of an echo of which nothing but its numbers is known
		echo   uint16
	}
	byPacket := make(map[packetKey][]int32)
	for i, isn := range isns {
		c := &convs[i]
		// Only a conversation that does not pass the host under one tuple can have a partner; with no direction recorded, any.
		if isn != unknown {
			if met.may(uint32(isn)) {
				openings = append(openings, opening{uint32(isn), int32(i), t.first(c).key.proto})
			}
			continue
		}
		f0 := t.first(c)
		if f0.key.proto == wire.ProtoTCP || f0.key.proto == wire.ProtoUDP || f0.key.proto == wire.ProtoSCTP || f0.key.query != 0 {
			var mine []packetKey
			for _, r := range t.of(c) {
				for n := t.flows.at(r).prints.head; n != 0; n = t.prints.at(n).next {
					fp := t.prints.at(n)
					if fp.kind != printDatagram && fp.kind != printSegment {
						continue
					}
					k := packetKey{digest: fp.digest, size: fp.size, prot: f0.key.proto}
					if f0.key.proto == wire.ProtoTCP || f0.key.proto == wire.ProtoSCTP || f0.key.query != 0 {
						k.seq = fp.ts
					}
					k.ipid = fp.ipid
					if k.digest == 0 && k.ipid == 0 {
						if tuple := f0.key.tuple(int(c.client)); !tuple.IsEcho() {
							continue // nothing but a length
						}
						// A text has no payload: identifier, sequence number and destination are what is left.
						k.server, k.echo = f0.key.end[1-c.client], f0.key.port[c.client]
					}
					for range 2 {
						if !slices.Contains(mine, k) {
							mine = append(mine, k)
							byPacket[k] = append(byPacket[k], int32(i))
						}
						if !t.cutPayloads || fp.short == 0 {
							break
						}
						k.digest = fp.short
					}
				}
			}
		}
	}
	slices.SortFunc(openings, func(p, q opening) int {
		if p.isn != q.isn {
			return cmp.Compare(p.isn, q.isn)
		}
		return cmp.Or(cmp.Compare(p.prot, q.prot), cmp.Compare(p.conv, q.conv))
	})
	var members []int32
	for from, to := 0, 0; from < len(openings); from = to {
		members = members[:0]
		for to < len(openings) && openings[to].isn == openings[from].isn && openings[to].prot == openings[from].prot {
			members = append(members, openings[to].conv)
			to++
		}
		if len(members) < 2 {
			continue
		}
		if len(members) > maxPartners {
			t.narrowISN(convs, members, try, contradicted)
			continue
		}
		for x := range members {
			for y := x + 1; y < len(members); y++ {
				try(t.sameOpening(convs, members[x], members[y]))
			}
		}
	}
	for k, members := range byPacket {
		if len(members) > maxPartners {
			for _, m := range members {
				contradicted[m] = true // any of the crowd may be the other side of any
			}
			continue
		}
		for x := range members {
			for y := x + 1; y < len(members); y++ {
				try(t.samePacket(convs, members[x], members[y], k.digest, k.size, k.ipid, k.server.IsValid(), len(members) == 2))
			}
		}
	}
	slices.SortFunc(edges, func(p, q edge) int {
		return cmp.Or(cmp.Compare(p.a, q.a), cmp.Compare(p.b, q.b), cmp.Compare(q.confidence, p.confidence), cmp.Compare(p.basis, q.basis))
	})
	return edges, contradicted
}

// meeting tells which numbers may occur twice: all that do, and few more. (2026-12-01: of 400,000 openings, of which hardly two share a
// number, sorting all took 50 ms.)
type meeting struct {
	once, twice []uint64
	shift       uint8
}

// newMeeting is for about n numbers.
func newMeeting(n int) *meeting {
	bits := 10
	for 1<<bits < 16*n {
		bits++
	}
	return &meeting{make([]uint64, 1<<bits/64), make([]uint64, 1<<bits/64), uint8(32 - bits)}
}

func (m *meeting) place(number uint32) (word uint32, bit uint64) {
	h := number * 0x9E3779B1 >> m.shift // 2^32 divided by the golden ratio; numbers that are chosen to meet cost time, and change nothing
	return h >> 6, 1 << (h & 63)
}

// note is told each number as often as it occurs, before may is asked.
func (m *meeting) note(number uint32) {
	w, b := m.place(number)
	m.twice[w] |= m.once[w] & b
	m.once[w] |= b
}

// may tells whether a number may occur twice.
func (m *meeting) may(number uint32) bool {
	w, b := m.place(number)
	return m.twice[w]&b != 0
}

// isnOf is the initial sequence number of a conversation's client, if it is known.
func (t *table) isnOf(c *conversation) (uint32, bool) {
	for _, r := range t.of(c) {
		if d := &t.flows.at(r).dir[c.client]; d.flags&knowISN != 0 {
			return d.isn, true
		}
	}
	return 0, false
}

// narrowISN splits conversations that share one ISN by timestamp value and IP ID: a crowd that still shares all three is
// no evidence.
func (t *table) narrowISN(convs []conversation, members []int32, try func(edge, bool), contradicted map[int32]bool) {
	type key struct {
		ts   uint32
		ipid uint16
	}
	sub := make(map[key][]int32)
	for _, m := range members {
		d := t.openingOf(&convs[m])
		k := key{d.ts, d.ipid}
		sub[k] = append(sub[k], m)
	}
	for _, s := range sub {
		if len(s) > maxPartners {
			for _, m := range s {
				contradicted[m] = true
			}
			continue
		}
		for x := range s {
			for y := x + 1; y < len(s); y++ {
				try(t.sameOpening(convs, s[x], s[y]))
			}
		}
	}
}

// openingFacts is what is known of a conversation's first SYN.
type openingFacts struct {
	first int64
	ts    uint32
	flags dirFlags // knowTS, knowIPID, blind
	ipid  uint16
}

// openingOf returns the facts of the conversation's earliest SYN; where only its answer was captured, its time alone.
func (t *table) openingOf(c *conversation) openingFacts {
	var best *dirState
	for _, r := range t.of(c) {
		d := &t.flows.at(r).dir[c.client]
		if d.flags&sawSYN != 0 && (best == nil || d.first < best.first) {
			best = d
		}
	}
	if best == nil {
		return openingFacts{first: t.began(c)}
	}
	return openingFacts{best.first, best.ts, best.flags, best.ipid}
}

// sameOpening compares two openings that share their ISN.
func (t *table) sameOpening(convs []conversation, a, b int32) (edge, bool) {
	p, q := &convs[a], &convs[b]
	x, y := t.openingOf(p), t.openingOf(q)
	if !mayTranslate(t, p, q) {
		return edge{}, false
	}
	gap := y.first - x.first
	if gap < 0 {
		gap = -gap
	}
	e := edge{a: a, b: b, basis: agreeISN}
	if t.first(p).key.proto == wire.ProtoSCTP {
		if gap > forwardDelayTCP {
			return edge{}, false
		}
		e.basis, e.confidence = agreeInitTag, Exact
		return e, true
	}
	bothTS := x.flags&y.flags&knowTS != 0
	bothID := x.flags&y.flags&knowIPID != 0 && x.ipid != 0 && y.ipid != 0
	switch {
	case bothTS && x.ts == y.ts && gap <= forwardDelayTCP && (!bothID || x.ipid == y.ipid):
		e.basis, e.confidence = e.basis|agreeTS, Exact
		if bothID {
			e.basis |= agreeIPID
		}
	case bothTS && x.ts == y.ts && bothID && x.ipid == y.ipid:
		e.apart = true
	case !bothTS && bothID && x.ipid == y.ipid && gap <= forwardDelayTCP:
		e.basis, e.confidence = e.basis|agreeIPID, Exact
	case !t.oneEndKept(p, q):
		return edge{}, false // both ends changed, and nothing but the ISN agrees
	case !bothTS && !bothID && gap <= forwardDelayWeak:
	case bothTS && ticks(y.ts-x.ts, y.first-x.first):
		// The first SYN of one side is a retransmission of the other's: same ISN, and the clock moved on as time did.
	default:
		return edge{}, false
	}
	return e, true
}

// oneEndKept tells whether client or server is the same in both conversations, as one translation leaves it.
func (t *table) oneEndKept(p, q *conversation) bool {
	a, b := &t.first(p).key, &t.first(q).key
	same := func(x, y uint8) bool { return a.end[x] == b.end[y] && a.port[x] == b.port[y] }
	return same(p.client, q.client) || same(1-p.client, 1-q.client)
}

// ticks tells whether a timestamp clock of 100, 250 or 1000 Hz (RFC 7323 section 5.4: between 1 Hz and 1 kHz; Linux 1000)
// moves by diff in the given time.
func ticks(diff uint32, ns int64) bool {
	if ns < 0 {
		diff, ns = -diff, -ns
	}
	const longest = 130_000_000_000 // the last of the usual SYN retransmissions
	if ns == 0 || ns > longest {
		return false
	}
	for _, hz := range []int64{1000, 250, 100} {
		want := ns / (1_000_000_000 / hz)
		if off := int64(diff) - want; off >= -2-want/50 && off <= 2+want/50 {
			return true
		}
	}
	return false
}

// samePacket compares two conversations that share one packet's payload, length and IP ID.
func (t *table) samePacket(convs []conversation, a, b int32, digest uint64, size uint32, ipid uint16, numbers, unique bool) (edge, bool) {
	p, q := &convs[a], &convs[b]
	if !mayTranslate(t, p, q) {
		return edge{}, false
	}
	proto := t.first(p).key.proto
	limit := int64(forwardDelayDatagram)
	if proto == wire.ProtoTCP {
		limit = forwardDelayTCP
	}
	near := false
	for _, r := range t.of(p) {
		for n := t.flows.at(r).prints.head; n != 0 && !near; n = t.prints.at(n).next {
			if !t.prints.at(n).is(digest, size) {
				continue
			}
			for _, s := range t.of(q) {
				for m := t.flows.at(s).prints.head; m != 0; m = t.prints.at(m).next {
					if t.prints.at(m).is(digest, size) {
						if gap := t.prints.at(n).time - t.prints.at(m).time; gap <= limit && gap >= -limit {
							near = true
						}
					}
				}
			}
		}
	}
	if !near {
		return edge{}, false
	}
	e := edge{a: a, b: b, confidence: Probable}
	if proto == wire.ProtoTCP {
		e.basis, e.confidence = agreeSequence, Exact
		return e, true
	}
	if digest != 0 {
		e.basis = agreePayload
	}
	if numbers && unique {
		e.basis = agreeEcho
	}
	if ipid != 0 {
		e.basis, e.confidence = e.basis|agreeIPID, Exact
	} else if unique && digest != 0 {
		e.confidence = Exact
	}
	return e, e.basis != 0
}

func (fp *fingerprint) is(digest uint64, size uint32) bool {
	return (fp.kind == printDatagram || fp.kind == printSegment) && fp.size == size && (fp.digest == digest || fp.short == digest && digest != 0)
}

// mayTranslate tells whether one conversation can be the other behind a translation on this host: one of the two passes
// only on the client's side and the other goes on from there, or no direction is recorded.
func mayTranslate(t *table, p, q *conversation) bool {
	fp, fq := t.first(p), t.first(q)
	if fp.key.proto != fq.key.proto || fp.key.end == fq.key.end && fp.key.port == fq.key.port {
		return false
	}
	if p.in || p.out || q.in || q.out {
		// The same host cannot send two translations of one packet, and a packet comes in from one client.
		if p.out && q.out && !t.stacked(p, q) && !t.stacked(q, p) {
			return false
		}
		if p.in && q.in && (fp.key.end[p.client] != fq.key.end[q.client] || fp.key.port[p.client] != fq.key.port[q.client]) {
			return false
		}
	}
	return true
}

// stackedDelay is how long a packet takes from a device to the one below it, in nanoseconds: it does not wait in between.
const stackedDelay = 1_000_000

// stacked tells whether p passes this host and leaves it by a device that hands its packets on to another one (a VRF, a bond, a VLAN),
// where q, which did not come in, is seen a moment later.
func (t *table) stacked(p, q *conversation) bool {
	if !p.in || !p.out || !q.out || q.in {
		return false
	}
	later := t.began(q) - t.began(p)
	return later >= 0 && later <= stackedDelay
}

// hopsFit tells whether the hop counts allow one conversation to be the other further on.
func hopsFit(p, q *conversation) bool {
	if p.maxTTL == 0 || q.maxTTL == 0 {
		return true
	}
	// Routing takes one from the TTL, a router inside the node two; a bridge, in front of which a service was translated,
	// takes none. What this host makes itself keeps its initial TTL, and is nobody's translation.
	switch {
	case p.in && q.in:
		return p.maxTTL == q.maxTTL
	case p.in && q.out:
		d := int(p.maxTTL) - int(q.maxTTL)
		return d == 1 || d == 2
	case q.in && p.out:
		d := int(q.maxTTL) - int(p.maxTTL)
		return d == 1 || d == 2
	}
	d := int(p.minTTL) - int(q.minTTL)
	return d == 1 || d == -1
}

// inOrder puts joined conversations in order from the client to the server, and refuses a group that cannot be one request.
func (t *table) inOrder(convs []conversation, members []int32) (ordered []conversation, ok bool) {
	if len(members) > maxTuples {
		return ordered, false
	}
	for _, m := range members {
		ordered = append(ordered, convs[m])
	}
	slices.SortStableFunc(ordered, func(p, q conversation) int {
		stage := func(c conversation) int {
			switch {
			case c.in && !c.out:
				return 0
			case c.in:
				return 1
			case c.out:
				return 2
			}
			return 1
		}
		return cmp.Or(cmp.Compare(stage(p), stage(q)), cmp.Compare(q.maxTTL, p.maxTTL), cmp.Compare(t.began(&p), t.began(&q)))
	})
	outs := 0
	end := func(i int, side uint8) (wire.Addr, uint16) {
		k := &t.first(&ordered[i]).key
		return k.end[side], k.port[side]
	}
	for i := range ordered {
		if ordered[i].out {
			outs++
		}
		if i == 0 {
			continue
		}
		c0, p0 := end(i-1, ordered[i-1].client)
		c1, p1 := end(i, ordered[i].client)
		s0, _ := end(i-1, 1-ordered[i-1].client)
		s1, _ := end(i, 1-ordered[i].client)
		if ordered[i-1].in && ordered[i].in && (c0 != c1 || p0 != p1) {
			return ordered, false
		}
		if s0 != s1 && c0 != c1 && s0 == c1 && c0 == s1 { // the ends are swapped: guessed the wrong way round on one side
			ordered[i].client = 1 - ordered[i].client
		}
	}
	if outs > 1 && (len(ordered) != 2 || !t.stacked(&ordered[0], &ordered[1])) {
		return ordered, false
	}
	if outs == 0 && len(ordered) > 2 {
		return ordered, false // no direction recorded, and more than two tuples: which is which cannot be told
	}
	return ordered, true
}

// weaker tells whether other evidence says more.
func (e *edge) weaker(o *edge) bool {
	n, m := bits.OnesCount16(uint16(e.basis)), bits.OnesCount16(uint16(o.basis))
	return cmp.Or(cmp.Compare(e.confidence, o.confidence), cmp.Compare(n, m)) < 0
}

// join is the evidence as it is told.
func (e *edge) join() Join {
	return Join{From: "pod", To: "egress", Basis: e.basis.words(nil), Confidence: e.confidence}
}
