package analyze

import (
	"cmp"
	"slices"
)

// Far times minus near times of joined packets bound the far clock's offset: a packet from the client was seen near first,
// so its difference is offset plus delay; a packet from the server was seen far first, so its difference is offset minus
// delay. Delays are never negative: the smallest of the first kind is an upper bound, the largest of the second a lower
// one. Where bounds cross, a clock was set, or drifts, and the bounds begin anew.

// clock is how the far clock lies to the near one, in nanoseconds, per stretch of near time.
type clock struct {
	stretches []stretch
	stated    bool // by the person, not measured
}

// stretch is the bounds from a near time on.
type stretch struct {
	from          int64
	lower, upper  int64
	hasLow, hasUp bool
	pairs         int
}

// sample is one joined packet.
type sample struct {
	near, diff int64
	fromServer bool
}

// measure makes the clock of a pairing from its joins, or takes the stated one.
func (p *pairing) measure(n *analysis, partners [][]partner, opt PairOptions) {
	joins := 0
	for k := range partners {
		for i := range partners[k] {
			if partners[k][i].p == p {
				joins++
			}
		}
	}
	if p.measured == joins+1 {
		return // nothing was joined since
	}
	p.measured = joins + 1
	p.clock = clock{}
	var samples []sample
	// Strong joins make the clock; where there are none, the others do.
	for _, want := range []func(m *partner) bool{
		func(m *partner) bool { return m.strong }, func(m *partner) bool { return m.confidence == Exact }, func(m *partner) bool { return !m.rewritten },
	} {
		of := listsOf(len(partners), func() func(k int, out []sample) []sample {
			var mine sampling
			var space viewSpace
			return func(k int, out []sample) []sample {
				for i := range partners[k] {
					if m := &partners[k][i]; m.p == p && want(m) {
						out = mine.add(out, n.view(&space, k), p.far.view(space.second(), int(m.chain)))
					}
				}
				return out
			}
		})
		n := 0
		for i, s := range of {
			if n += len(s); n >= maxSamples {
				of = of[:i+1]
				break
			}
		}
		samples = slices.Concat(of...)
		if len(samples) > 0 {
			break
		}
	}
	p.clock.stretches = stretchesOf(samples)
	if len(samples) == 0 && opt.HasFarOffset {
		p.clock.stated = true
		p.clock.stretches = []stretch{{
			from: -1 << 62, lower: opt.FarOffset - opt.FarOffsetError, upper: opt.FarOffset + opt.FarOffsetError, hasLow: true, hasUp: true,
		}}
	}
}

// stretchesOf are the bounds that samples show, which it puts in order of time where they have to be.
func stretchesOf(samples []sample) (out []stretch) {
	if len(samples) == 0 {
		return nil
	}
	// Where no bound crosses another, the order does not matter.
	if all := boundsOf(samples); !all.hasLow || !all.hasUp || all.lower <= all.upper+tolerance {
		return []stretch{all}
	}
	slices.SortFunc(samples, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.near, b.near), cmp.Compare(a.diff, b.diff))
	})
	for _, s := range samples {
		if len(out) == 0 || len(out) < maxStretches && out[len(out)-1].crossedBy(s) {
			out = append(out, stretch{from: s.near})
		}
		out[len(out)-1].add(s)
	}
	return out
}

// boundsOf are the bounds of all samples as if no clock moved.
func boundsOf(samples []sample) stretch {
	out := stretch{from: samples[0].near}
	for _, s := range samples {
		out.from = min(out.from, s.near)
		out.add(s)
	}
	return out
}

// tolerance is by how much bounds may cross, in nanoseconds: what two clocks of one host differ, for captures stamp a packet at different
// places in the kernel.
const tolerance = 50_000

// crossedBy tells whether a sample contradicts the bounds.
func (c *stretch) crossedBy(s sample) bool {
	return s.fromServer && c.hasUp && s.diff > c.upper+tolerance || !s.fromServer && c.hasLow && s.diff < c.lower-tolerance
}

func (c *stretch) add(s sample) {
	c.pairs++
	switch {
	case s.fromServer && (!c.hasLow || s.diff > c.lower):
		c.lower, c.hasLow = s.diff, true
	case !s.fromServer && (!c.hasUp || s.diff < c.upper):
		c.upper, c.hasUp = s.diff, true
	}
}

const maxStretches = 1000

// maxSamples is about how many packets a clock is made of at most.
const maxSamples = 1 << 20

// at returns the bounds of far minus near at a near time; known is false where one bound is missing.
func (c *clock) at(near int64) (lower, upper int64, known bool) {
	s := c.stretch(near)
	if s == nil || !s.hasLow || !s.hasUp {
		return 0, 0, false
	}
	return min(s.lower, s.upper), max(s.lower, s.upper), true
}

// roughly is at, and where packets of one direction alone were joined, takes them to have been on the way for no longer than 2 s: enough
// to find what is the same otherwise, and not to say what is absent.
func (c *clock) roughly(near int64) (lower, upper int64, known bool) {
	const longest = 2_000_000_000
	s := c.stretch(near)
	switch {
	case s == nil || !s.hasLow && !s.hasUp:
		return 0, 0, false
	case !s.hasLow:
		return s.upper - longest, s.upper, true
	case !s.hasUp:
		return s.lower, s.lower + longest, true
	}
	return c.at(near)
}

// stretch is what is known of the clocks at a near time; nil is nothing.
func (c *clock) stretch(near int64) *stretch {
	i, _ := slices.BinarySearchFunc(c.stretches, near, func(s stretch, t int64) int { return cmp.Compare(s.from, t) })
	if i == len(c.stretches) || i > 0 && c.stretches[i].from > near {
		i--
	}
	if i < 0 {
		return nil
	}
	return &c.stretches[i]
}

// sampling is one goroutine's room for gathering samples.
type sampling struct{ near, far []stamped }

// packetName is what tells the packets of a request apart.
type packetName struct {
	digest    uint64
	size, seq uint32
	ipid      uint16 // 0 where the rest names it
	kind      printKind
	from      uint8
}

// stamped is when a packet passed.
type stamped struct {
	packetName
	time int64
}

// add pairs the packets of a joined request whose times both captures have. A name that occurs more than once in a near flow, or at the far
// side, names no single packet; where several near flows show a packet (a VLAN's device and what it is on), the first of them counts.
func (s *sampling) add(out []sample, v, far *view) []sample {
	icmp := v.proto().IsICMP()
	s.near, s.far = s.near[:0], far.stamps(far.flows(), icmp, s.far[:0])
	flows := v.exit().flows
	for n := range flows {
		before := len(s.near)
		s.near = v.stamps(flows[n:n+1], icmp, s.near)
		for i := before; i < len(s.near); i++ {
			x := &s.near[i]
			if only(s.near[before:], x.packetName) != x || slices.ContainsFunc(s.near[:before], func(o stamped) bool { return o.packetName == x.packetName }) {
				continue
			}
			if y := only(s.far, x.packetName); y != nil {
				out = append(out, sample{near: x.time, diff: y.time - x.time, fromServer: x.from == 1})
			}
		}
	}
	return out
}

// only is the only one of the list that has a name; nil if there is none, or more.
func only(list []stamped, name packetName) (out *stamped) {
	for i := range list {
		if list[i].packetName != name {
			continue
		}
		if out != nil {
			return nil
		}
		out = &list[i]
	}
	return out
}

// stamps are the packets of flows that have a name.
func (v *view) stamps(flows []ref, icmp bool, out []stamped) []stamped {
	v.prints(flows, func(fp *fingerprint, from int) {
		s := stamped{packetName{kind: fp.kind, from: uint8(from), size: fp.size}, fp.time}
		switch fp.kind {
		case printSYN, printSYNACK, printSegment:
			s.digest, s.seq = fp.digest, fp.ts
			if !fp.hasTS() {
				s.ipid = fp.ipid
			}
		case printDatagram:
			if s.digest = fp.short; fp.short == 0 {
				s.ipid = fp.ipid
				if fp.ipid == 0 {
					return
				}
			} else if icmp {
				s.seq = fp.ts
			}
		case printData:
			return
		}
		out = append(out, s)
	})
	return out
}
