package analyze

import (
	"net/netip"
	"slices"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// Absence is claimed only where it was covered (DESIGN section 6): the capture was running, its filter would have kept the
// missing packet, it was taken at a place that the packet had to pass, and it is whole. A reason for which it is not
// covered is a gap; the empty gap means covered.

// gap is a stable reason code for which an absence cannot be concluded.
type gap string

const (
	covered         gap = ""
	gapWhole        gap = "capture-incomplete"   // cut, damaged
	gapDropped      gap = "packets-dropped"      // the capture says that packets were dropped
	gapLetGo        gap = "flows-let-go"         // too many flows
	gapSnaplen      gap = "snaplen"              // fields cut off
	gapEnded        gap = "capture-ended"        // the capture ended too soon after the request
	gapFilter       gap = "filter-not-known"     // the missing packet lacks what all packets of the file have in common
	gapFiltered     gap = "filtered-out"         // the stated or recorded filter drops, or may drop, the missing packet
	gapInterfaces   gap = "egress-not-visible"   // not all interfaces, or something opaque left
	gapOpaque       gap = "opaque-carrier"       // an encrypted or undecoded packet left at that moment
	gapHost         gap = "node-not-proven"      // nothing shows that the capturing host is the node
	gapPodSide      gap = "pod-side-not-visible" // no outgoing frame on the Pod's interface
	gapNoTime       gap = "no-times"             // the input has no times
	gapNoFarCapture gap = "no-far-capture"
	gapExcerpt      gap = "text-excerpt"  // packets may be missing in a text
	gapBetweenFiles gap = "between-files" // in the silence between two files of one capture
)

// missing is a packet whose absence is to be concluded: what is known of it, the rest may be anything.
type missing struct {
	proto    wire.Proto
	v6       bool
	src, dst wire.Addr // zero is not known
	sport    int       // -1 is not known; an echo identifier is not a port and is -1
	dport    int
	dir      wire.Direction
	iface    int    // index; -1 is not known
	after    int64  // when it would have been due
	srcAs    seenAs // how its source must occur in the capture for "not src" filters to be ruled out; 0 is in any way
	dstAs    seenAs
	far      bool // it is missing at the far side: a source that is not known may be anything there
}

// missingReply is the answer to what carries a tuple, awaited on any interface and in any direction.
func missingReply(t wire.Tuple, after int64) missing {
	m := missing{
		proto: t.Proto, v6: !t.Dst.Is4(), src: t.Dst, dst: t.Src, sport: -1, dport: -1, iface: -1, after: after,
		srcAs: asSource, dstAs: asDestination,
	}
	if t.Proto.HasPorts() {
		m.sport, m.dport = int(t.DstPortOrEchoID), int(t.SrcPortOrEchoID)
	}
	return m
}

// coverage gathers, packet by packet, what later decides whether an absence counts.
type coverage struct {
	opaque     []int64 // times of opaque packets that left or may have left, at most one per millisecond, in capture order
	opaqueMany bool
	errorEnds  [][2]wire.Addr // outer addresses of ICMP errors, distinct, at most maxErrorEnds
}

const (
	maxOpaque    = 1 << 16
	maxErrorEnds = 64
)

func (c *coverage) add(p *wire.Packet) {
	if p.Attr&(wire.IsOpaque|wire.IsError) == 0 {
		return
	}
	if p.Attr&wire.IsOpaque != 0 && p.Dir != wire.DirIn {
		if n := len(c.opaque); n == 0 || p.Time-c.opaque[n-1] >= 1_000_000 || p.Time < c.opaque[n-1] {
			if n < maxOpaque {
				c.opaque = append(c.opaque, p.Time)
			} else {
				c.opaqueMany = true
			}
		}
	}
	if p.Attr&wire.IsError != 0 && len(c.errorEnds) < maxErrorEnds {
		e := [2]wire.Addr{p.ErrorFrom, p.ErrorTo}
		if !slices.Contains(c.errorEnds, e) {
			c.errorEnds = append(c.errorEnds, e)
		}
	}
}

// opaqueBetween tells whether something opaque left between two times, or within 10 ms behind them.
func (c *coverage) opaqueBetween(from, to int64) bool {
	if c.opaqueMany {
		return true
	}
	return slices.ContainsFunc(c.opaque, func(o int64) bool { return o >= from-1_000_000 && o <= to+10_000_000 })
}

// common is what all packets of a capture have in common: no filter that people write could have kept all of them and
// dropped a packet that has all of it too.
type common struct {
	any     bool // at least one packet
	addrs   []wire.Addr
	ports   []int // ports at either end
	proto   wire.Proto
	oneProt bool
	family  int // 4 or 6 if all are of one, else 0
	dir     wire.Direction
	oneDir  bool
	iface   int // -1 if several
	ranges  []netip.Prefix
	from    []wire.Addr
	to      []wire.Addr
}

// commons works out what all packets have in common.
func (t *table) commons(facts *cluster.Facts) common {
	ranges := slices.Concat(facts.PodPrefixes(), facts.NodePrefixes(), facts.ServicePrefixes())
	out := common{iface: -1}
	for _, c := range partsOf(t.flows.size()-1, func() *common { return &common{iface: -1} }, func(c *common, i int) {
		f := t.flows.at(ref(i + 1))
		for n := f.taps; n != 0; n = t.taps.at(n).next {
			for s := range 2 {
				if tp := t.taps.at(n); tp.packets[s] > 0 {
					c.take(f, tp, s, ranges)
				}
			}
		}
	}) {
		out.and(c)
	}
	for _, e := range t.cover.errorEnds {
		proto := wire.ProtoICMP
		if !e[0].Is4() {
			proto = wire.ProtoICMP6
		}
		quote := common{iface: out.iface, dir: out.dir, oneDir: out.oneDir} // at which interface is not told of it
		quote.begin(e[0], e[1], -1, -1, proto, ranges)
		out.and(&quote)
	}
	out.ports = slices.DeleteFunc(out.ports, func(p int) bool { return p < 0 })
	return out
}

// begin is what one packet has in common with itself.
func (c *common) begin(src, dst wire.Addr, sport, dport int, proto wire.Proto, ranges []netip.Prefix) {
	c.any = true
	c.addrs, c.from, c.to = []wire.Addr{src, dst}, []wire.Addr{src}, []wire.Addr{dst}
	c.ports = []int{sport, dport}
	c.proto, c.oneProt, c.family = proto, true, familyOf(src)
	for _, r := range ranges {
		if r.Contains(src.Netip()) || r.Contains(dst.Netip()) {
			c.ranges = append(c.ranges, r)
		}
	}
}

func familyOf(a wire.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// take has one side's packets of a flow at a tap in it, too.
func (c *common) take(f *flow, tp *tap, side int, ranges []netip.Prefix) {
	src, dst, sport, dport := &f.key.end[side], &f.key.end[1-side], -1, -1
	if f.key.proto.HasPorts() {
		sport, dport = int(f.key.port[side]), int(f.key.port[1-side])
	}
	if !c.any {
		c.begin(*src, *dst, sport, dport, f.key.proto, ranges)
		c.iface, c.dir, c.oneDir = int(tp.iface), tp.seen[side], true
		return
	}
	c.addrs = slices.DeleteFunc(c.addrs, func(a wire.Addr) bool { return a != *src && a != *dst })
	c.from = slices.DeleteFunc(c.from, func(a wire.Addr) bool { return a != *src })
	c.to = slices.DeleteFunc(c.to, func(a wire.Addr) bool { return a != *dst })
	c.ports = slices.DeleteFunc(c.ports, func(p int) bool { return p != sport && p != dport })
	c.oneProt = c.oneProt && c.proto == f.key.proto
	if c.family != 0 && c.family != familyOf(*src) {
		c.family = 0
	}
	if len(c.ranges) > 0 {
		s, d := src.Netip(), dst.Netip()
		c.ranges = slices.DeleteFunc(c.ranges, func(r netip.Prefix) bool { return !r.Contains(s) && !r.Contains(d) })
	}
	if c.iface != int(tp.iface) {
		c.iface = -1
	}
	c.oneDir = c.oneDir && c.dir == tp.seen[side]
}

// and leaves of what some packets have in common what others have, too.
func (c *common) and(o *common) {
	switch {
	case !o.any:
		return
	case !c.any:
		*c = *o
		return
	}
	c.addrs, c.from, c.to = both(c.addrs, o.addrs), both(c.from, o.from), both(c.to, o.to)
	c.ports, c.ranges = both(c.ports, o.ports), both(c.ranges, o.ranges)
	c.oneProt = c.oneProt && o.oneProt && c.proto == o.proto
	if c.family != o.family {
		c.family = 0
	}
	if c.iface != o.iface {
		c.iface = -1
	}
	c.oneDir = c.oneDir && o.oneDir && c.dir == o.dir
}

// both leaves of a list what is in another one, too.
func both[T comparable](list, other []T) []T {
	return slices.DeleteFunc(list, func(v T) bool { return !slices.Contains(other, v) })
}

// keeps tells whether the missing packet would have all that the file's packets have in common.
func (c *common) keeps(m *missing) bool {
	if !c.any {
		return false
	}
	for _, a := range c.addrs {
		if a != m.src && a != m.dst {
			return false
		}
	}
	for _, a := range c.from {
		if a != m.src {
			return false
		}
	}
	for _, a := range c.to {
		if a != m.dst {
			return false
		}
	}
	for _, p := range c.ports {
		if p != m.sport && p != m.dport {
			return false
		}
	}
	if c.oneProt && c.proto != m.proto {
		return false
	}
	if c.family == 4 && m.v6 || c.family == 6 && !m.v6 {
		return false
	}
	if c.oneDir && c.dir != wire.DirUnknown && c.dir != m.dir {
		return false
	}
	if c.iface >= 0 && c.iface != m.iface {
		return false
	}
	for _, r := range c.ranges {
		if (!m.src.IsValid() || !r.Contains(m.src.Netip())) && (!m.dst.IsValid() || !r.Contains(m.dst.Netip())) {
			return false
		}
	}
	return true
}

// seenAs is how an address occurs in a capture.
type seenAs uint8

const (
	asSource seenAs = 1 << iota
	asDestination
	leavingNode // source of an outgoing packet on an interface that is not a Pod's
)

// occurrences tells of every address how it occurs. A filter of the form "not host A", "not src A" drops what otherwise has
// all that the file's packets have in common; an address that occurs as the missing packet would carry it rules that out.
func (a *analysis) occurrences() map[wire.Addr]seenAs {
	a.occursOnce.Do(a.gatherOccurrences)
	return a.occurs
}

func (a *analysis) gatherOccurrences() {
	parts := partsOf(a.t.flows.size()-1, func() map[wire.Addr]seenAs { return make(map[wire.Addr]seenAs) }, func(occurs map[wire.Addr]seenAs, i int) {
		f := a.t.flows.at(ref(i + 1))
		for s := range 2 {
			if f.dir[s].packets == 0 {
				continue
			}
			as := asSource
			for n := f.taps; n != 0; n = a.t.taps.at(n).next {
				tp := a.t.taps.at(n)
				if tp.seen[s] == wire.DirOut && int(tp.iface) < len(a.host.ifaces) && !a.host.ifaces[tp.iface].podSide {
					as |= leavingNode
				}
			}
			occurs[f.key.end[s]] |= as
			occurs[f.key.end[1-s]] |= asDestination
		}
	})
	a.occurs = make(map[wire.Addr]seenAs)
	for _, part := range parts {
		for addr, as := range part {
			a.occurs[addr] |= as
		}
	}
}

// nodeLeaves tells whether some packet left the node with an address of the node.
func (a *analysis) nodeLeaves(v4 bool) bool {
	occurs := a.occurrences()
	for addr := range a.thisNode {
		if addr.Is4() == v4 && occurs[addr]&leavingNode != 0 {
			return true
		}
	}
	return false
}

// absent tells whether the capture would hold the missing packet if it had been there; the gap says why not.
func (a *analysis) absent(m *missing) gap {
	s := a.sum
	switch {
	case s.damaged:
		return gapWhole
	case s.HasDropped && s.Dropped > 0:
		return gapDropped
	case s.Excerpt != "":
		return gapExcerpt
	case a.t.letGo > 0:
		return gapLetGo
	case s.CutFrames > 0 || s.Skipped[wire.SkipTooShort] > 0:
		return gapSnaplen
	}
	if m.after != wire.NoTime && s.inGap(m.after, m.after+1_000_000) {
		return gapBetweenFiles
	}
	if filter, known := a.filter(); known {
		switch evalFilter(filter, m) {
		case yes:
			return covered
		case no, perhaps:
			return gapFiltered
		}
	}
	if !a.common.keeps(m) {
		return gapFilter
	}
	occurs := a.occurrences()
	switch {
	case m.src.IsValid() && (occurs[m.src] == 0 || occurs[m.src]&m.srcAs != m.srcAs),
		m.dst.IsValid() && (occurs[m.dst] == 0 && !m.far || occurs[m.dst]&m.dstAs != m.dstAs),
		!m.src.IsValid() && !m.far && !a.nodeLeaves(!m.v6): // it may have left with the node's address
		return gapFilter
	}
	return covered
}

// filter returns the filter that the capture was taken with, as stated or else as recorded.
func (a *analysis) filter() (expr string, known bool) {
	if a.info.HasStated {
		return a.info.StatedFilter, true
	}
	return a.sum.Filter, a.sum.HasFilter
}

// runsOn tells whether the capture went on long enough after a request's first packet for its answer, or its other leg,
// to be due: 1 s, or three times the longest handshake seen, or until the request was sent again (DESIGN section 5).
func (a *analysis) runsOn(first int64, resent bool) gap {
	last := a.lastTime()
	if first == wire.NoTime || last == wire.NoTime {
		return gapNoTime
	}
	if resent || last-first >= max(1_000_000_000, 3*a.longestHandshake) {
		return covered
	}
	return gapEnded
}

// lastTime is until when the capture ran: frames that gave no packet show that it did, too.
func (a *analysis) lastTime() int64 {
	_, until, _ := a.sum.Window()
	return max(a.t.lastTime, until)
}

// runsOut tells whether the capture went on long enough after a direction's first packet, and a little after its last one,
// for an answer to any of them to be due.
func (a *analysis) runsOut(d *dirState) gap {
	if g := a.runsOn(d.first, false); g != covered {
		return g
	}
	if a.lastTime()-d.last < min(1_000_000_000, max(50_000_000, 3*a.longestHandshake)) {
		return gapEnded
	}
	return covered
}
