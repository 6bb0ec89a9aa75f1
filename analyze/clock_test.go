package analyze

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// slowStretches is the twin of stretchesOf that puts samples in order whatever they show.
func slowStretches(samples []sample) (out []stretch) {
	samples = slices.Clone(samples)
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Or(cmp.Compare(a.near, b.near), cmp.Compare(a.diff, b.diff)) })
	for _, s := range samples {
		if len(out) == 0 {
			out = append(out, stretch{from: s.near})
		}
		c := &out[len(out)-1]
		if len(out) < maxStretches && (s.fromServer && c.hasUp && s.diff-c.upper > tolerance || !s.fromServer && c.hasLow && c.lower-s.diff > tolerance) {
			out = append(out, stretch{from: s.near})
			c = &out[len(out)-1]
		}
		c.pairs++
		if s.fromServer {
			if !c.hasLow || s.diff > c.lower {
				c.lower, c.hasLow = s.diff, true
			}
		} else if !c.hasUp || s.diff < c.upper {
			c.upper, c.hasUp = s.diff, true
		}
	}
	return out
}

func TestStretches(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	one, several := 0, 0
	for range 3_000 {
		samples := make([]sample, r.IntN(40))
		steps, delay := r.IntN(3), 1+r.Int64N(200_000)
		for i := range samples {
			s := sample{near: r.Int64N(50), fromServer: r.IntN(2) == 0}
			s.diff = s.near / 17 * int64(steps) * 60_000 // where a clock moves
			if s.fromServer {
				s.diff -= r.Int64N(delay)
			} else {
				s.diff += r.Int64N(delay) - 1_000
			}
			samples[i] = s
		}
		want := slowStretches(samples)
		if got := stretchesOf(samples); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\ngot  %+v\nwant %+v", samples, got, want)
		}
		if len(want) == 1 {
			one++
		} else if len(want) > 1 {
			several++
		}
	}
	if one < 500 || several < 500 {
		t.Errorf("%d clocks stood and %d moved: too few of one kind", one, several)
	}
}

// A server without timestamps sends its SYN-ACK again, with the same numbers. The far capture holds one of the two; which one, nothing tells.
func TestRepeatedPacketMakesNoClock(t *testing.T) {
	kn, kf := known()
	answer := func(at float64) packet {
		return synack(back(podEnds), isn(9), acks(8), bare, noIPID, func(p *packet) { p.Time += int64(at * 1e9) }, ttl(61))
	}
	m := many{syn(podEnds, isn(7), ipid(5), bare, at(10)), answer(10.02), answer(13.02), ack(podEnds, seq(8), acks(10), bare, at(13.021))}
	far := viaNode.far(m...)
	far = slices.Delete(far, 1, 2)
	res := pairOf(t, gke(t), PairOptions{}, []part{inOrder(kn, viaNode.near(m...), neighbours())}, []part{inOrder(kf, far), goesOn(40)})
	if c := &res.Captures[1]; !c.HasOffset || c.ClockError > 6_000_000 || slices.ContainsFunc(c.Notes, func(s string) bool { return strings.Contains(s, "move against each other") }) {
		t.Errorf("offset %v ± %d ns, notes %q", c.HasOffset, c.ClockError, c.Notes)
	}
	if r := theRequest(t, res.Requests, podTCP); r.Outcome != HandshakeCompleted || hasJoin(r) == nil {
		t.Errorf("%s %+v", verdictOf(r), r.Joins)
	}
}

// The node's uplink is a VLAN's device: what leaves is seen there and, tagged, on what it is on. That is one packet, and makes the clock.
func TestClockOfStackedUplink(t *testing.T) {
	stacked := func(m many) (out many) {
		for _, p := range m {
			if out = append(out, p); p.iface == "eth0" {
				out = append(out, also(p, vlan(100), on("eth0.phys")))
			}
		}
		return out
	}
	for _, ahead := range []float64{0, 600} {
		moved := func(m many) (out many) {
			for _, p := range m {
				out = append(out, also(p, later(ahead)))
			}
			return out
		}
		kn, kf := known()
		m, lost := answeredAt(61, opened(podEnds, 10, 7)), viaNode
		lost.client, lost.as = pod+":41999", node+":51999"
		lone := lost.near(syn(lost.client+" > "+lost.server, isn(99), ipid(9), at(20)), syn(lost.client+" > "+lost.server, isn(99), ipid(10), at(21)))
		near := []part{inOrder(stacked(kn), stacked(viaNode.near(m...)), stacked(lone), neighbours())}
		res := pairOf(t, gke(t), PairOptions{}, near, []part{inOrder(moved(kf), moved(viaNode.far(m...))), goesOn(40 + ahead)})
		c := &res.Captures[1]
		if off := c.ClockOffset - int64(ahead*1e9); !c.HasOffset || c.ClockPairs != 6 || off < -c.ClockError || off > c.ClockError {
			t.Errorf("far clock %v s ahead: offset %v %d ± %d of %d packets", ahead, c.HasOffset, c.ClockOffset, c.ClockError, c.ClockPairs)
		}
		if r := theRequest(t, res.Requests, "tcp "+lost.client+" > any"); r.StoppedAt != StopBetween || r.hasUnknown("stopped_at") {
			t.Errorf("far clock %v s ahead: the lost request %s %+v", ahead, verdictOf(r), r.Unknown)
		}
	}
}
