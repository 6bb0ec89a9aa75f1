package analyze

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/srcproof/srcproof/capture/wire"
)

// Pairing joins each request of the near side with what the far side saw of it, by what translation and the way leave
// alone (DESIGN section 7). Ports alone never join, IP IDs only beside something else, and where more than one partner
// fits, nothing is joined. Clocks are not assumed to agree: times take part only once exact joins have shown how the far
// clock lies to the near one.

// PairOptions are what a person states of the far captures. The zero value states nothing.
type PairOptions struct {
	// FarOffset is how far the far clock is ahead of the near one, FarOffsetError by how much that may be wrong, both in
	// nanoseconds. Valid iff HasFarOffset.
	FarOffset, FarOffsetError int64
	HasFarOffset              bool
	// FarFrom and FarTo are when the far capture ran, in the near clock's time, nanoseconds UTC. Valid iff HasFarWindow.
	FarFrom, FarTo int64
	HasFarWindow   bool
	FarHosts       []wire.Addr // addresses that the far capture point is on the way to
	FarIsHost      bool        // the far capture was taken on the destination itself
	FarIsPath      bool        // it was taken on the way
}

// pairing is one near capture held against one far capture.
type pairing struct {
	near, far *analysis
	clock     clock
	measured  int // of how many joins the clock was made, plus one; 0 is not yet
	// sameSource: a joined request arrived with the source it left with, so that nothing translates it on the way.
	// otherSource: one arrived with another.
	sameSource, otherSource bool
	joined                  int
	atOdds                  bool // see checkOdds
	numbersKept             bool // openings were joined by their sequence numbers: nothing on the way rewrites them
	same                    bool // the two are the same capture
	swapped                 bool // the far capture shows packets earlier on their way than the near one
}

// partner is a far chain that a near request was joined with.
type partner struct {
	p          *pairing
	payload    *payloadKey // of a datagram: what agreed; nil for connections
	chain      int32       // index into the far analysis
	basis      evidence
	confidence Confidence
	strong     bool // more than a number or a payload alone agrees: such joins make the clock that the others must fit
	rewritten  bool // the sequence numbers differ: a firewall rewrites them
	moved      bool // it arrived at another server than it was sent to
}

// pair joins the two sides and judges again where packets stop.
func pair(res *Result, near, far []*analysis, opt PairOptions) {
	partners := make([][][]partner, len(near))
	all := make([][]*pairing, len(near))
	for i, n := range near {
		partners[i] = make([][]partner, len(n.chains))
		all[i] = make([]*pairing, len(far))
		for j, f := range far {
			all[i][j] = &pairing{near: n, far: f}
			all[i][j].checkSides()
		}
	}
	text := slices.ContainsFunc(slices.Concat(near, far), func(a *analysis) bool { return a.sum.Text })
	known := slices.ContainsFunc(near, func(a *analysis) bool { return a.known.Len() > 0 })
	under := slices.ContainsFunc(near, (*analysis).beganBefore)
	counts := make(map[payloadKey]int32) // in how many near requests each payload occurs
	for _, n := range near {
		countPayloads(n, text, counts)
	}
	contested := make(map[[2]int]bool) // near capture and request: more than one far chain fits, or others claim it, too
	var room arena[partner]
	for j, f := range far {
		ix := newFarIndex(f, text, known, under)
		// What agrees in more than one thing is joined first and shows how the clocks lie; the rest has to fit that.
		settle(ix.claims(near, partners, all, j, counts, contested, func(*pairing, *view, *view, *partner) bool { return true }), partners, contested, &room,
			func(c *claim) bool { return c.strong })
		for i, n := range near {
			all[i][j].measure(n, partners[i], opt)
		}
		settle(ix.claims(near, partners, all, j, counts, contested, (*pairing).timely), partners, contested, &room, func(*claim) bool { return true })
	}
	claimed := make([][]bool, len(far))
	for j, f := range far {
		claimed[j] = make([]bool, len(f.chains))
	}
	for i, n := range near {
		for j := range far {
			p := all[i][j]
			p.measure(n, partners[i], opt)
			p.takeIn(partners[i], claimed[j])
		}
	}
	// What no fingerprint joins may still be the same request behind a device that rewrites sequence numbers.
	for j := range far {
		for i, n := range near {
			joinRewritten(all[i][j], n, partners[i], claimed[j])
		}
	}
	for i, n := range near {
		for _, p := range all[i] {
			p.checkOdds()
		}
		n.paired = func(r *Request, v *view, k int, space *viewSpace) {
			r.kept = &space.kept
			n.place(r, v, space, partners[i][k], contested[[2]int{i, k}], all[i], claimed, far, opt)
			r.kept = nil
		}
	}
	describePairs(res, all, opt)
	for j, f := range far {
		sound := slices.ContainsFunc(all, func(ps []*pairing) bool { return !ps[j].same && !ps[j].swapped })
		f.keepOwn(claimed[j], sound)
	}
}

// takeIn counts what was joined, and notes what the joins show of what lies between the two captures.
func (p *pairing) takeIn(partners [][]partner, claimed []bool) {
	for k := range partners {
		for i := range partners[k] {
			if m := &partners[k][i]; m.p == p {
				claimed[m.chain] = true
				p.joined++
				p.numbersKept = p.numbersKept || m.basis.has(agreeISN) && m.strong
			}
		}
	}
	var met [2]atomic.Bool // one arrived with another source, or with the same
	eachAtOnce(len(partners), func(k int, space *viewSpace) {
		for i := range partners[k] {
			if m := &partners[k][i]; m.p == p {
				at := &met[0]
				if p.sourceKept(p.near.view(space, k), p.far.view(space.second(), int(m.chain))) {
					at = &met[1]
				}
				if !at.Load() { // written by all, it would be waited for
					at.Store(true)
				}
			}
		}
	})
	p.otherSource, p.sameSource = met[0].Load(), met[1].Load()
}

// claim is a near request's claim on a far chain.
type claim struct {
	partner
	near    int32
	request int32
	fitting int32 // how many far chains fit as well
}

// claims finds the partners of the near requests that have none yet in this far capture.
func (ix *farIndex) claims(near []*analysis, partners [][][]partner, all [][]*pairing, j int, counts map[payloadKey]int32, contested map[[2]int]bool, fits func(p *pairing, v, far *view, m *partner) bool) []claim {
	of := make([][]claim, len(near))
	for i, n := range near {
		p := all[i][j]
		found := listsOf(len(n.chains), func() func(k int, out []claim) []claim {
			s := search{ix: ix, p: p, counts: counts, fits: fits}
			var space viewSpace
			return func(k int, out []claim) []claim {
				if slices.ContainsFunc(partners[i][k], func(m partner) bool { return m.p.far == ix.a }) {
					return out
				}
				m, fitting := s.find(n.view(&space, k))
				if fitting == 0 {
					return out
				}
				m.p = p
				return append(out, claim{m, int32(i), int32(k), int32(fitting)})
			}
		})
		of[i] = slices.DeleteFunc(slices.Concat(found...), func(c claim) bool {
			if c.fitting > 1 {
				contested[[2]int{i, int(c.request)}] = true
			}
			return c.fitting > 1
		})
	}
	if len(of) == 1 {
		return of[0]
	}
	return slices.Concat(of...)
}

// settle joins what the claims of one kind agree on. A far chain belongs to one near request: what two claim with equal
// right belongs to neither, unless the two are of different near captures, which may both hold it; that they are contested
// is noted, for neither is absent.
func settle(claims []claim, partners [][][]partner, contested map[[2]int]bool, room *arena[partner], kind func(*claim) bool) {
	if len(claims) == 0 {
		return
	}
	far := claims[0].p.far
	taken := make([]bool, len(far.chains))
	for _, ps := range partners {
		for _, of := range ps {
			for i := range of {
				if of[i].p.far == far {
					taken[of[i].chain] = true
				}
			}
		}
	}
	from := make([]int, len(partners)) // how many of the claims at hand are of each near capture
	join := func(of []claim) {         // those on one far chain
		if taken[of[0].chain] {
			return
		}
		if len(of) > 1 {
			if exact := slices.DeleteFunc(slices.Clone(of), func(c claim) bool { return c.confidence != Exact }); len(exact) > 0 {
				of = exact
			}
		}
		for i := range of {
			from[of[i].near]++
		}
		for i := range of {
			c := &of[i]
			if held := &partners[c.near][c.request]; from[c.near] == 1 && (len(of) == 1 || c.confidence == Exact) {
				*held = keepBoth(room, *held, []partner{c.partner})
			} else {
				contested[[2]int{int(c.near), int(c.request)}] = true
			}
		}
		for i := range of {
			from[of[i].near] = 0
		}
	}
	claims = slices.DeleteFunc(claims, func(c claim) bool { return !kind(&c) })
	slices.SortFunc(claims, func(x, y claim) int {
		return cmp.Or(cmp.Compare(x.chain, y.chain), cmp.Compare(x.near, y.near), cmp.Compare(x.request, y.request))
	})
	for begin, end := 0, 0; begin < len(claims); begin = end {
		for end = begin + 1; end < len(claims) && claims[end].chain == claims[begin].chain; end++ {
		}
		join(claims[begin:end])
	}
}

// timely tells whether two exchanges can be one by the measured clocks; without a clock they can.
func (p *pairing) timely(v, far *view, m *partner) bool {
	if k := m.payload; k != nil {
		near := false
		bare := k.bare() && (m.confidence != Exact || m.basis.has(agreePorts)) // without a clock that may be another with the same ends
		v.prints(v.exit().flows, func(a *fingerprint, from int) {
			lower, upper, known := p.clock.at(a.time)
			if k.bare() {
				lower, upper, known = p.clock.roughly(a.time)
			}
			if from != int(k.from) || a.size != k.size || !known {
				near = near || !known && !m.moved && !bare
				return
			}
			far.prints(far.flows(), func(b *fingerprint, from int) {
				const delay = 500_000_000
				same := a.short == b.short && a.short != 0 || a.digest == b.digest || k.bare() && a.ts == b.ts
				if from == int(k.from) && b.size == k.size && same && b.time-a.time >= lower-delay && b.time-a.time <= upper+delay {
					near = true
				}
			})
		})
		return near
	}
	x, y := v.exit(), far.exit()
	a, b := x.client, y.client
	if a.packets == 0 || b.packets == 0 {
		a, b = x.server, y.server
	}
	lower, upper, known := p.clock.at(a.first)
	if !known || a.packets == 0 || b.packets == 0 {
		return true
	}
	const slack = 5_000_000_000 // the first packets of each side need not be the same ones
	return b.first <= a.last+upper+slack && b.last >= a.first+lower-slack
}

// keepOwn lists of a far capture's requests those that no near one was joined with and whose sender is the cluster's: the
// others are other clients' traffic, and are counted. Of a capture that is not the far side's nothing is listed.
func (a *analysis) keepOwn(claimed []bool, sound bool) {
	a.listed = []int32{}
	others := uint64(0)
	for k := range a.chains {
		switch {
		case claimed[k] || !sound:
		case oursAtAll(a.role(a.clientOf(k)).Kind):
			a.listed = append(a.listed, int32(k))
		default:
			others++
		}
	}
	a.paired = func(r *Request, _ *view, _ int, _ *viewSpace) {
		if r.Source == NodeSourced {
			// The near side, which could tell, was given and does not hold it.
			r.Source, r.Basis, r.Reasons = SourceUnknown, BasisNone, nil
			r.unknown("source", "no-near-partner", "it arrived from "+r.Client.Addr.String()+", "+r.nodeWords(r.Client.Role)+", and the near capture does not hold it",
				"a near capture of all interfaces that runs at that moment")
		}
	}
	if others > 0 {
		a.info.Notes = append(a.info.Notes, plural(others, "request")+" of other clients: not listed")
	}
}

// exit returns the flows at which a near request is nearest to the far side: its egress, else where no direction is
// recorded, else the Pod's side.
func (v *view) exit() *legState {
	switch {
	case v.egress != nil:
		return v.egress
	case v.plain != nil:
		return v.plain
	}
	return v.pod
}

// prints calls visit for the fingerprints of the flows, with 0 for packets of the client and 1 for the server's.
func (v *view) prints(flows []ref, visit func(fp *fingerprint, from int)) {
	for _, x := range flows {
		f := v.t.flows.at(x)
		client := v.clientSide(x)
		for n := f.prints.head; n != 0; n = v.t.prints.at(n).next {
			fp := v.t.prints.at(n)
			from := 1
			if fp.from() == client {
				from = 0
			}
			visit(fp, from)
		}
	}
}

// clientSide returns which side of a flow is the request's client.
func (v *view) clientSide(x ref) int {
	convs := v.t.in(v.chain)
	for i := range convs {
		if slices.Contains(v.t.of(&convs[i]), x) {
			return int(convs[i].client)
		}
	}
	return int(v.t.flows.at(x).client)
}

// flows returns all flows of the view.
func (v *view) flows() []ref {
	convs := v.t.in(v.chain)
	out := v.t.of(&convs[0])
	for i := 1; i < len(convs); i++ {
		out = slices.Clip(out)
		out = append(out, v.t.of(&convs[i])...)
	}
	return out
}

// proto returns the request's protocol.
func (v *view) proto() wire.Proto { return v.t.first(&v.t.in(v.chain)[0]).key.proto }

// isn returns the client's initial sequence number (SCTP: initiate tag), if known.
func (v *view) isn() (uint32, bool) {
	for _, l := range v.legs() {
		if l.client.flags&knowISN != 0 {
			return l.client.isn, true
		}
	}
	return 0, false
}

// endpoints returns the tuple with which the request leaves the near side.
func (v *view) leaving() wire.Tuple {
	l := v.exit()
	x := l.flows[0]
	return v.t.flows.at(x).key.tuple(v.clientSide(x))
}

// payloadKey is a datagram's payload, length, sequence number (echo, SCTP), how many bytes of the payload the digest
// covers, and, where a crowd shares the payload, the IP ID. Text holds no payloads: held against it, a datagram is found by its ends.
type payloadKey struct {
	digest uint64
	size   uint32
	cover  uint32
	seq    uint32
	proto  wire.Proto
	from   uint8
	ipid   uint16 // 0 in keys of the payload alone, and of the ends
	ends   wire.Tuple
}

// bare tells whether the key speaks of no payload.
func (k *payloadKey) bare() bool { return k.digest == 0 }

// payloadKeys calls visit for the keys of one datagram, the longest digest first. ends, if valid, are those by which it is found where
// one side's payloads are not known: with them, the last keys are of what is left then.
func payloadKeys(fp *fingerprint, from int, proto wire.Proto, ends wire.Tuple, visit func(payloadKey)) {
	if fp.kind != printDatagram || fp.size == 0 {
		return
	}
	k := payloadKey{size: fp.size, proto: family(proto), from: uint8(from)}
	if proto.IsICMP() || proto == wire.ProtoSCTP {
		k.seq = fp.ts
	}
	if ends.Dst.IsValid() {
		defer func() {
			k.digest, k.cover, k.ends = 0, 0, ends
			visit(k)
			if fp.ipid != 0 {
				if k.ends.Src = (wire.Addr{}); ends.IsEcho() {
					k.ends.SrcPortOrEchoID, k.ends.DstPortOrEchoID = 0, 0
				}
				k.ipid = fp.ipid
				visit(k)
			}
		}()
	}
	seen := uint32(0)
	for _, d := range [3]struct {
		digest uint64
		cover  uint32
	}{{fp.digest, fp.size}, {fp.mid, min(64, fp.size)}, {fp.short, min(16, fp.size)}} {
		switch {
		case d.digest == 0:
			continue
		case d.cover == fp.size && fp.size > 64 && d.digest == fp.mid:
			continue // the longest that was captured is the first 64 bytes
		case d.cover == fp.size && fp.size > 16 && d.digest == fp.short:
			continue
		case d.cover == seen:
			continue
		}
		seen = d.cover
		k.digest, k.cover = d.digest, d.cover
		visit(k)
	}
}

// ends are what shows a datagram without its payload to be the same: of echo the server and the identifier, which translation
// keeps where it can, and of others the whole tuple, for ports alone say nothing.
func (v *view) ends() wire.Tuple {
	t := v.leaving()
	if t.IsEcho() {
		t.Src = wire.Addr{}
	}
	return t
}

// endsIf are the ends where payloads are not known on one side, and else invalid.
func (v *view) endsIf(text bool) wire.Tuple {
	if text {
		return v.ends()
	}
	return wire.Tuple{}
}

// family folds ICMP and ICMPv6: a translation between address families changes the type and not the payload.
func family(p wire.Proto) wire.Proto {
	if p == wire.ProtoICMP6 {
		return wire.ProtoICMP
	}
	return p
}

// countPayloads counts in how many requests of a capture each payload occurs.
func countPayloads(a *analysis, text bool, counts map[payloadKey]int32) {
	var space viewSpace
	for i := range a.chains {
		proto := a.proto(i)
		if proto == wire.ProtoTCP {
			continue
		}
		v := a.view(&space, i)
		seen := make(map[payloadKey]bool)
		v.prints(v.flows(), func(fp *fingerprint, from int) {
			payloadKeys(fp, from, proto, v.endsIf(text), func(k payloadKey) {
				if !seen[k] {
					seen[k] = true
					counts[k]++
				}
			})
		})
	}
}

// farIndex finds a far capture's chains by what they have in common with a near request.
type farIndex struct {
	a         *analysis
	text      bool                   // one of the sides is text
	tcp, sctp isnIndex               // by the number that the client opened with
	bySegment map[segmentKey][]int32 // connections whose opening is not known
	byAnyPart map[segmentKey][]int32 // all connections; nil where every near one has its opening
	byPayload map[payloadKey][]int32
	byTuple   map[wire.Tuple][]int32 // where the connection table of a near side is known
	counts    map[payloadKey]int32
}

// isnIndex is sequence numbers, each with the chain whose client opened with it in the lower half, in order. (2026-12-01, 400,000
// connections: 3 MB and 30 ms instead of 40 MB and 100 ms of a map.)
type isnIndex []uint64

// with are the chains that a client opened with a number.
func (o isnIndex) with(isn uint32) isnIndex {
	at, _ := slices.BinarySearch(o, uint64(isn)<<32)
	end := at
	for end < len(o) && uint32(o[end]>>32) == isn {
		end++
	}
	return o[at:end]
}

// segmentKey is where in the sequence space a connection without opening lies, in windows of a megabyte.
type segmentKey struct {
	server wire.Addr
	port   uint16
	window uint32
}

const windowBits = 20

// newFarIndex makes the index. known: a connection table of the near side is known; under: a near connection's opening is not.
func newFarIndex(a *analysis, text, known, under bool) *farIndex {
	ix := &farIndex{
		a: a, text: text, bySegment: make(map[segmentKey][]int32), byPayload: make(map[payloadKey][]int32), counts: make(map[payloadKey]int32),
	}
	countPayloads(a, text, ix.counts)
	if known {
		ix.byTuple = make(map[wire.Tuple][]int32, len(a.chains))
		for i, v := range a.eachView {
			t := v.leaving()
			ix.byTuple[t] = append(ix.byTuple[t], int32(i))
		}
	}
	if under {
		ix.byAnyPart = make(map[segmentKey][]int32)
		for i, v := range a.eachView {
			if v.proto() == wire.ProtoTCP {
				segmentKeys(v, func(k segmentKey) { ix.byAnyPart[k] = append(ix.byAnyPart[k], int32(i)) })
			}
		}
	}
	const unknown = ^uint64(0)
	isns := make([]uint64, len(a.chains))
	eachAtOnce(len(isns), func(i int, space *viewSpace) {
		isns[i] = unknown
		if proto := a.proto(i); proto == wire.ProtoTCP || proto == wire.ProtoSCTP {
			if isn, ok := a.view(space, i).isn(); ok {
				isns[i] = uint64(isn)<<32 | uint64(i)
			}
		}
	})
	var space viewSpace
	ix.tcp = make(isnIndex, 0, len(isns))
	for i, isn := range isns {
		proto := a.proto(i)
		switch {
		case isn == unknown:
		case proto == wire.ProtoTCP:
			ix.tcp = append(ix.tcp, isn)
			continue
		default:
			ix.sctp = append(ix.sctp, isn)
		}
		v, n := a.view(&space, i), int32(i)
		if proto == wire.ProtoTCP {
			segmentKeys(v, func(k segmentKey) { ix.bySegment[k] = append(ix.bySegment[k], n) })
			continue
		}
		v.prints(v.flows(), func(fp *fingerprint, from int) {
			payloadKeys(fp, from, proto, v.endsIf(text), func(k payloadKey) {
				ix.enter(k, n)
				if fp.ipid != 0 && !k.bare() {
					k.ipid = fp.ipid
					ix.enter(k, n)
				}
			})
		})
	}
	slices.Sort(ix.tcp)
	slices.Sort(ix.sctp)
	return ix
}

// beganBefore tells whether some TCP connection's opening is not in the capture.
func (a *analysis) beganBefore() bool {
	var found atomic.Bool
	eachAtOnce(len(a.chains), func(i int, space *viewSpace) {
		if a.proto(i) != wire.ProtoTCP || found.Load() {
			return
		}
		if _, opened := a.view(space, i).isn(); !opened {
			found.Store(true)
		}
	})
	return found.Load()
}

func (ix *farIndex) enter(k payloadKey, n int32) {
	if l := ix.byPayload[k]; len(l) <= maxPartners && (len(l) == 0 || l[len(l)-1] != n) {
		ix.byPayload[k] = append(l, n)
	}
}

// segmentKeys calls visit for the windows that the client's sequence numbers lie in; long transfers are entered at their
// ends only.
func segmentKeys(v *view, visit func(segmentKey)) {
	t := v.leaving()
	l := v.exit()
	d := l.client
	if d.flags&knowSeq == 0 {
		return
	}
	k := segmentKey{server: t.Dst, port: t.DstPortOrEchoID}
	low, high := d.seqLow>>windowBits, d.seqNext>>windowBits
	const most = 64
	for n, w := uint32(0), low; ; n, w = n+1, (w+1)&(1<<(32-windowBits)-1) {
		k.window = w
		visit(k)
		if w == high {
			return
		}
		if n == most {
			k.window = high
			visit(k)
			return
		}
	}
}

// search is one goroutine's search for the partners of near requests.
type search struct {
	ix     *farIndex
	p      *pairing
	counts map[payloadKey]int32 // in how many near requests each payload occurs
	fits   func(p *pairing, v, far *view, m *partner) bool
	space  viewSpace // for far views
	found  []partner
}

// far is a far chain.
func (s *search) far(c int32) *view { return s.ix.a.view(&s.space, int(c)) }

// add takes in that a chain is a partner, if all fits.
func (s *search) add(v, far *view, m partner, ok bool) {
	if ok && s.fits(s.p, v, far, &m) && !slices.ContainsFunc(s.found, func(o partner) bool { return o.chain == m.chain && o.confidence >= m.confidence }) {
		s.found = slices.DeleteFunc(s.found, func(o partner) bool { return o.chain == m.chain })
		s.found = append(s.found, m)
	}
}

// exact are how many of those found are exact, and the first of them.
func (s *search) exact() (first partner, n int) {
	for _, m := range s.found {
		if m.confidence != Exact {
			continue
		}
		if n == 0 {
			first = m
		}
		n++
	}
	return first, n
}

// find returns a far chain that is the near request, and how many fit equally well.
func (s *search) find(v *view) (m partner, fitting int) {
	ix := s.ix
	s.found = s.found[:0]
	proto := v.proto()
	if isn, ok := v.isn(); ok && (proto == wire.ProtoTCP || proto == wire.ProtoSCTP) {
		list := ix.tcp
		if proto == wire.ProtoSCTP {
			list = ix.sctp
		}
		if list = list.with(isn); len(list) > maxPartners {
			list = s.narrow(v, list)
		}
		for _, c := range list {
			far := s.far(int32(c))
			m, ok := joinOpening(v, far, int32(c))
			s.add(v, far, m, ok)
		}
	}
	switch {
	case proto == wire.ProtoTCP && len(s.found) == 0:
		// Two openings that are known and differ are of two connections: of those only what one side did not see is left.
		index := ix.bySegment
		if _, ok := v.isn(); !ok {
			index = ix.byAnyPart
		}
		if len(index) == 0 {
			break
		}
		seen := make(map[int32]bool)
		segmentKeys(v, func(k segmentKey) {
			list := index[k]
			if len(list) > maxPartners*4 {
				return
			}
			for _, c := range list {
				if !seen[c] {
					seen[c] = true
					far := s.far(c)
					m, ok := joinMidstream(v, far, c)
					s.add(v, far, m, ok)
				}
			}
		})
	case proto != wire.ProtoTCP && len(s.found) == 0:
		v.prints(v.flows(), func(fp *fingerprint, from int) {
			matched := false
			payloadKeys(fp, from, proto, v.endsIf(ix.text), func(k payloadKey) {
				list := ix.byPayload[k]
				if matched || len(list) == 0 {
					return // the longest digest that both sides hold decides
				}
				matched = true
				if len(list) > maxPartners && fp.ipid != 0 && !k.bare() {
					withID := k
					withID.ipid = fp.ipid
					list = ix.byPayload[withID]
				}
				if len(list) > maxPartners {
					return
				}
				for _, c := range list {
					far := s.far(c)
					m, ok := joinDatagram(v, far, c, k, fp, s.counts[k] == 1 && ix.counts[k] == 1)
					s.add(v, far, m, ok)
				}
			})
		})
	}
	m, fitting = s.exact()
	if fitting == 0 {
		for _, c := range s.tracked(v) {
			s.add(v, s.far(c), partner{chain: c, basis: agreeTracked, confidence: Exact}, true)
		}
		m, fitting = s.exact()
	}
	if fitting == 0 && len(s.found) > 0 {
		return s.found[0], len(s.found)
	}
	return m, fitting
}

// tracked are the far chains with the tuple that the node's connection table has a request leave with. One whose opening is another, by
// its sequence number or timestamp, had these ports before or after.
func (s *search) tracked(v *view) []int32 {
	e, ok := s.p.near.known.Of(v.leaving())
	if !ok {
		return nil
	}
	list := s.ix.byTuple[e.Leaving()]
	if len(list) > maxPartners {
		return nil
	}
	isn, hasISN := v.isn()
	return slices.DeleteFunc(slices.Clone(list), func(c int32) bool {
		far := s.far(c)
		other, has := far.isn()
		return hasISN && has && isn != other || comparableTS(v, far)
	})
}

// narrow keeps of chains that share an ISN those that share timestamp value or IP ID, too: a crowd must not cost time.
func (s *search) narrow(v *view, list isnIndex) isnIndex {
	var want []fingerprint
	v.prints(v.exit().flows, func(fp *fingerprint, from int) {
		if fp.kind == printSYN && from == 0 {
			want = append(want, *fp)
		}
	})
	var out isnIndex
	const most = 4096
	for _, c := range list[:min(len(list), most)] {
		agree := false
		far := s.far(int32(c))
		far.prints(far.t.of(&far.t.in(far.chain)[0]), func(fp *fingerprint, from int) {
			for i := range want {
				agree = agree || fp.kind == printSYN && from == 0 && fp.hasTS() == want[i].hasTS() && fp.ts == want[i].ts && fp.ipid == want[i].ipid
			}
		})
		if agree {
			out = append(out, c)
		}
		if len(out) > maxPartners {
			return nil
		}
	}
	return out
}

// joinOpening compares two openings that share their ISN: any SYN of one that is a SYN of the other by timestamp value or IP
// ID makes them one connection; where neither is there to compare, one end must be the same, and the join is probable.
func joinOpening(v, far *view, c int32) (partner, bool) {
	m := partner{chain: c, basis: agreeISN}
	if v.proto() == wire.ProtoSCTP {
		m.basis, m.confidence, m.strong = agreeInitTag, Exact, true
		return m, true
	}
	comparable, ts, id := false, false, false
	compare := func(kind printKind, side int) {
		v.prints(v.exit().flows, func(x *fingerprint, from int) {
			if x.kind != kind || from != side {
				return
			}
			far.prints(far.flows(), func(y *fingerprint, from int) {
				if y.kind != kind || from != side {
					return
				}
				if x.hasTS() && y.hasTS() {
					comparable = true
					ts = ts || x.ts == y.ts
				}
				if x.ipid != 0 && y.ipid != 0 {
					id = id || x.ipid == y.ipid && (!x.hasTS() || !y.hasTS() || x.ts == y.ts)
				}
			})
		})
	}
	compare(printSYN, 0)
	if !ts && !id {
		compare(printSYNACK, 1)
	}
	if ts {
		m.basis |= agreeTS
	}
	if id {
		m.basis |= agreeIPID
	}
	if ts || id {
		m.confidence, m.strong = Exact, true
		return m, true
	}
	a, b := v.leaving(), far.leaving()
	sameServer := a.Dst == b.Dst && a.DstPortOrEchoID == b.DstPortOrEchoID
	sameClient := a.Src == b.Src && a.SrcPortOrEchoID == b.SrcPortOrEchoID
	// Timestamps that differ: other transmissions of the SYN were captured on each side, or it is another connection.
	return m, sameServer && (!comparable || sameClient)
}

// joinMidstream compares two connections whose openings were not captured: both directions' sequence numbers and timestamp
// values must overlap. The windows are small parts of the number space, which makes a chance agreement in all unlikely.
func joinMidstream(v, far *view, c int32) (partner, bool) {
	a, b := v.leaving(), far.leaving()
	if a.Dst != b.Dst || a.DstPortOrEchoID != b.DstPortOrEchoID {
		return partner{}, false
	}
	x, y := v.exit(), far.exit()
	m := partner{chain: c, basis: agreeRanges}
	agreed := 0
	for side := range 2 {
		d, e := x.client, y.client
		if side == 1 {
			d, e = x.server, y.server
		}
		if d.flags&e.flags&knowSeq != 0 {
			if before(d.seqNext, e.seqLow) || before(e.seqNext, d.seqLow) {
				return partner{}, false
			}
			agreed++
		}
		if d.flags&e.flags&knowTS != 0 {
			if before(d.tsLast, e.ts) || before(e.tsLast, d.ts) {
				return partner{}, false
			}
			if agreed < 2 {
				agreed++
			}
			m.basis |= agreeTSRange
		}
	}
	if agreed < 2 {
		return partner{}, false
	}
	if m.basis.has(agreeTSRange) {
		m.confidence, m.strong = Exact, true
	}
	return m, true
}

// joinDatagram compares two exchanges that share one datagram's payload, length and sequence number. IP IDs that differ may have
// been rewritten on the way (pf's random-id), so they only count against a payload that others have, too.
func joinDatagram(v, far *view, c int32, k payloadKey, fp *fingerprint, unique bool) (partner, bool) {
	m := partner{chain: c, basis: agreePayload, payload: &k}
	id, contradicts := false, false
	far.prints(far.flows(), func(y *fingerprint, from int) {
		if y.kind != printDatagram || from != int(k.from) || y.size != k.size || !k.bare() && y.digest != k.digest && y.mid != k.digest && y.short != k.digest {
			return
		}
		if k.bare() && k.seq != y.ts && v.proto().IsICMP() {
			return
		}
		if fp.ipid != 0 && y.ipid != 0 {
			id = id || fp.ipid == y.ipid
			contradicts = contradicts || fp.ipid != y.ipid
		}
	})
	if k.bare() {
		m.basis = agreeFiveTuple
		if v.proto().IsICMP() {
			m.basis = agreeEcho
		}
		if k.ipid != 0 && v.proto().IsICMP() { // translation changed the identifier: little is left, and many pings begin with the same number
			m.basis = agreeEchoSequence | agreeIPID
			b := far.leaving()
			return m, id && v.leaving().Dst == b.Dst
		}
		if k.ipid != 0 {
			m.basis = agreePorts
		}
		unique = false // what it would be unique in is no payload
	}
	if id {
		m.basis |= agreeIPID
	}
	a, b := v.leaving(), far.leaving()
	sameServer := a.Dst == b.Dst && (a.DstPortOrEchoID == b.DstPortOrEchoID || v.proto().IsICMP())
	switch {
	case id && unique && !sameServer: // the destination may change on the way; the clocks have to agree
		m.confidence, m.moved = Exact, true
	case id && sameServer, unique && sameServer:
		m.confidence = Exact
	case contradicts || !sameServer:
		return partner{}, false
	}
	return m, true
}

// rewriteKey is what a device that rewrites sequence numbers leaves of an opening: the server with the SYN's timestamp
// value, or, without timestamps, the whole tuple.
type rewriteKey struct {
	tuple wire.Tuple
	ts    uint32
	hasTS bool
}

// rewriteKeys returns the keys of an opening's SYNs.
func rewriteKeys(v *view) []rewriteKey {
	l := v.exit()
	if v.proto() != wire.ProtoTCP || l.client.flags&sawSYN == 0 {
		return nil
	}
	t := v.leaving()
	var out []rewriteKey
	v.prints(l.flows, func(fp *fingerprint, from int) {
		k := rewriteKey{tuple: t}
		if fp.kind != printSYN || from != 0 {
			return
		}
		if fp.hasTS() {
			k = rewriteKey{tuple: wire.Tuple{Dst: t.Dst, DstPortOrEchoID: t.DstPortOrEchoID, Proto: t.Proto}, ts: fp.ts, hasTS: true}
		}
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	})
	return out
}

// joinRewritten joins openings whose sequence numbers differ and whose rest fits: the same timestamp value towards the same
// server, or, without timestamps, the same tuple; at the same time by the measured clocks; and nobody else on either side.
func joinRewritten(p *pairing, n *analysis, partners [][]partner, claimed []bool) {
	open := func(k int) bool {
		return !slices.ContainsFunc(partners[k], func(m partner) bool { return m.p.far == p.far })
	}
	var near, other viewSpace
	nearBy, farBy := make(map[rewriteKey][]int), make(map[rewriteKey][]int)
	for k := range partners {
		if n.proto(k) == wire.ProtoTCP && open(k) {
			for _, key := range rewriteKeys(n.view(&near, k)) {
				nearBy[key] = append(nearBy[key], k)
			}
		}
	}
	if len(nearBy) == 0 {
		return
	}
	for c := range claimed {
		if !claimed[c] && p.far.proto(c) == wire.ProtoTCP {
			for _, key := range rewriteKeys(p.far.view(&other, c)) {
				farBy[key] = append(farBy[key], c)
			}
		}
	}
	if len(farBy) == 0 {
		return
	}
	// one returns the only member of the lists that fits, -1 if there is none or more than one.
	one := func(keys []rewriteKey, lists map[rewriteKey][]int, fits func(int) bool) int {
		found := -1
		for _, key := range keys {
			if len(lists[key]) > maxPartners {
				return -1
			}
			for _, c := range lists[key] {
				if c == found || !fits(c) {
					continue
				}
				if found >= 0 {
					return -1
				}
				found = c
			}
		}
		return found
	}
	for k := range partners {
		if n.proto(k) != wire.ProtoTCP || !open(k) {
			continue
		}
		v := n.view(&near, k)
		keys := rewriteKeys(v)
		c := one(keys, farBy, func(c int) bool { return !claimed[c] && p.mayBe(v, p.far.view(&other, c)) })
		if c < 0 {
			continue
		}
		far := p.far.view(&other, c)
		left, arrived := v.leaving(), far.leaving()
		hasTS, kept := keys[0].hasTS, p.sourceKept(v, far)
		if one(rewriteKeys(far), nearBy, func(k int) bool { return open(k) && p.mayBe(n.view(&near, k), far) }) != k {
			continue
		}
		claimed[c] = true
		m := partner{p: p, chain: int32(c), basis: agreeTuple, confidence: Probable, rewritten: true}
		if left != arrived {
			m.basis = agreeServer
		}
		if hasTS {
			m.basis |= agreeTS
		}
		partners[k] = append(partners[k], m)
		p.sameSource, p.otherSource = p.sameSource || kept, p.otherSource || !kept
	}
}

// mayBe tells whether, by the clocks, a far opening with other sequence numbers can be the near one.
func (p *pairing) mayBe(v, far *view) bool {
	x, y := v.exit(), far.exit()
	lo, hi, known := p.clock.at(x.client.first)
	if !known {
		return rewriteKeys(v)[0].hasTS // without a clock a tuple alone may be an older connection's
	}
	const slack = 3_000_000_000 // SYNs lost on the way: the far side may see a later one first
	return y.client.first >= x.client.first+lo-slack && y.client.first <= x.client.last+hi+slack
}

// sourceKept tells whether a joined request arrived with the source it left with.
func (p *pairing) sourceKept(v, far *view) bool { return v.leaving().Src == far.leaving().Src }

// checkSides tells whether the two captures are what they are said to be: not the same one, and not the node's as the far
// one. Of the node's capture it is typical that Pods' packets come in with the TTL they were made with, and go out.
func (p *pairing) checkSides() {
	a, b := p.near.sum, p.far.sum
	p.same = a.Frames > 0 && a.Frames == b.Frames && a.Bytes == b.Bytes && a.First == b.First && a.Last == b.Last
	p.swapped = !p.same && p.far.podsBegin(true) && !p.near.podsBegin(false)
}

// podsBegin tells whether the capture shows packets of Pods with the TTL they were made with; passedOn, that they are
// passed on, too.
func (a *analysis) podsBegin(passedOn bool) bool {
	var space viewSpace
	for i := range a.chains {
		if !a.host.isPod(a.clientOf(i), a.facts) {
			continue
		}
		v := a.view(&space, i)
		if passedOn && (v.pod == nil || v.egress == nil) {
			continue
		}
		l := v.legs()[0]
		if l.client.flags&knowTTL != 0 && ownTTL(l.client.ttl) {
			return true
		}
	}
	return false
}

// answeredElsewhere finds requests whose answer reached another node than the one they left from.
func answeredElsewhere(near []*analysis) {
	if len(near) < 2 {
		return
	}
	// What is answered: the tuple, and of a connection the sequence number that is acknowledged.
	type question struct {
		tuple wire.Tuple
		isn   uint32
	}
	type arrivedAt struct {
		a    *analysis
		view int
	}
	answers := make(map[question][]arrivedAt)
	for _, n := range near {
		for k, v := range n.eachView {
			for _, l := range v.legs() {
				if l.server.packets > 0 && l.client.packets == 0 {
					for _, x := range l.flows {
						isn, _ := v.isn()
						q := question{n.t.flows.at(x).key.tuple(v.clientSide(x)), isn}
						answers[q] = append(answers[q], arrivedAt{n, k})
					}
				}
			}
		}
	}
	var space, elsewhere viewSpace
	for _, n := range near {
		for k := range n.requests {
			r := &n.requests[k]
			if r.Outcome != RequestOnly || r.StoppedAt != StopUnknown && r.StoppedAt != StopReturn || r.Egress == nil {
				continue
			}
			v := n.view(&space, k)
			isn, _ := v.isn()
			at := slices.DeleteFunc(slices.Clone(answers[question{v.leaving(), isn}]), func(x arrivedAt) bool {
				return x.a == n || !otherNode(n, x.a, r.Egress.Addr) || x.a.view(&elsewhere, x.view).pod != nil
			})
			if len(at) == 0 {
				continue
			}
			r.Reasons = slices.DeleteFunc(r.Reasons, func(s Reason) bool { return strings.Contains(string(s), "no answer reached the node") })
			r.clear("stopped_at")
			r.StoppedAt = StopReturn
			r.because("its answer arrived at another node's capture: %s", at[0].a.name())
			r.signs |= signOtherNode
			// What came in there is no request of its own.
			o := &at[0].a.requests[at[0].view]
			if o.Outcome == ReplyOnly {
				r.alsoAt = append(r.alsoAt, o.seenAt)
				o.signs |= signTaken
			}
		}
	}
}

// otherNode tells whether two captures can be of two nodes: taken at the same time (what follows the other is its next
// file), without a node address that both show as their own. The address that a request left with is not the second's.
func otherNode(a, b *analysis, left wire.Addr) bool {
	if b.thisNode[left] {
		return false
	}
	for addr := range a.thisNode {
		if b.thisNode[addr] {
			return false
		}
	}
	from, to, _ := a.sum.Window()
	otherFrom, otherTo, _ := b.sum.Window()
	return from <= otherTo && otherFrom <= to
}

// name is how people know a capture.
func (a *analysis) name() string { return cmp.Or(a.info.Label, a.info.File) }

func (r *Request) clear(field string) {
	r.Unknown = slices.DeleteFunc(r.Unknown, func(u Unknown) bool { return u.Field == field })
}
