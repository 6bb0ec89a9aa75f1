package analyze

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// sides are the captures of a pair, and what was stated of the far one.
type sides struct {
	near, far []part
	inputs    func(t *testing.T) []Input // in place of near and far
	opt       PairOptions
}

func (s sides) run(t *testing.T) *Result {
	t.Helper()
	if s.inputs != nil {
		return runOf(t, gke(t), Options{Pair: s.opt}, s.inputs(t)...)
	}
	return pairOf(t, gke(t), s.opt, s.near, s.far)
}

// What a settle must hold so that somebody can act on it: a flag, a command, or the capture to take.
var actionable = regexp.MustCompile(`--[a-z]|tcpdump|\bcapture\b|whole file`)

// A pair that does not carry it never says where packets stop for want of seeing them; the same pair with the one thing
// mended does (DESIGN section 6). Each row is both.
func TestAbsenceIsCovered(t *testing.T) {
	lost := tries(podEnds, 10, 11, 13)
	answer := synack(back(podEnds), at(10.01), acks(31001), ttl(61))
	kn, kf := known()
	alone := func() []part { return []part{inOrder(viaNode.near(lost...)), goesOn(60)} }
	near := func(more ...part) []part {
		return append(append([]part{inOrder(kn, viaNode.near(lost...))}, more...), goesOn(60))
	}
	// What the far side holds: nothing of the request, the request alone, the request and its answer.
	holds := func(m many) func(more ...part) []part {
		return func(more ...part) []part { return append(append([]part{inOrder(kf, m)}, more...), goesOn(60)) }
	}
	nothing, arrived, replied := holds(nil), holds(viaNode.far(lost...)), holds(inOrder(viaNode.far(append(lost, answer)...)))

	// Requests to another server behind the same far capture point, for the clocks.
	other := func(dst string) (n, f many) {
		for i, at := range []float64{0.6, 29} {
			w := trip{client: fmt.Sprintf("10.4.0.8:%d", 42100+i), server: dst, as: fmt.Sprintf("%s:%d", node, 52100+i)}
			m := answeredAt(61, opened(w.client+" > "+w.server, at, 710_000+uint32(20_000*i)))
			n, f = append(n, w.near(m...)...), append(f, w.far(m...)...)
		}
		return n, f
	}
	elseNear, elseFar := other("203.0.113.50:443")
	// A virtual address, and a member behind it that got the other requests.
	member := trip{client: "10.4.0.8:42300", server: server + ":443", as: node + ":52300", serves: "10.50.0.2:443"}
	atMember := answeredAt(61, opened(member.client+" > "+member.server, 0.7, 810_000))
	// Strangers at the server, whose packets join with nothing.
	strangers := inOrder(
		atServer(opened("172.16.0.5:50000 > "+server+":443", 0.5, 910_000)),
		atServer(opened("172.16.0.6:50000 > "+server+":443", 58, 930_000)),
	)
	clientsOnly := func(m many) many {
		return slices.DeleteFunc(slices.Clone(m), func(p packet) bool { return p.Tuple.Src == wire.MustAddr(server) })
	}
	state := func(from, to float64) PairOptions {
		return PairOptions{HasFarWindow: true, FarFrom: instant(from), FarTo: instant(to)}
	}
	offset := func(s, err float64) PairOptions {
		return PairOptions{HasFarOffset: true, FarOffset: int64(s * 1e9), FarOffsetError: int64(err * 1e9)}
	}
	hosts := func(o PairOptions, h ...string) PairOptions {
		for _, a := range h {
			o.FarHosts = append(o.FarHosts, wire.MustAddr(a))
		}
		return o
	}
	shifted := func(m many, s float64) many { return seenAt(m, later(s)) }

	for _, row := range []struct {
		sentence string
		lacks    sides
		reason   string // codes that may say why, "" where the near side's own word stands
		twin     sides
		claim    Stop
		note     string // what is noted of the far capture, beside the reason
	}{
		// Window and clock.
		{
			"the far capture is of another day, and of other requests",
			sides{near: alone(), far: []part{shifted(strangers, 86400)}},
			"clock-not-aligned|outside-far-window",
			sides{near: near(), far: []part{shifted(inOrder(kf, strangers), 86400)}},
			StopBetween, "",
		},
		{
			"the far capture began after the request",
			sides{near: near(), far: []part{many(kf[3:]), goesOn(60)}},
			"outside-far-window",
			sides{near: near(), far: nothing()},
			StopBetween, "",
		},
		{
			"it ended before the request",
			sides{near: near(), far: []part{many(kf[:3])}},
			"outside-far-window",
			sides{near: near(), far: []part{many(kf[:3]), goesOn(60)}},
			StopBetween, "",
		},
		{
			"it ended while the request was on its way",
			sides{near: []part{inOrder(kn, viaNode.near(lost[:1]...)), goesOn(60)}, far: []part{many(kf[:3]), window(0, 10.002)}},
			"outside-far-window|capture-ended",
			sides{near: []part{inOrder(kn, viaNode.near(lost[:1]...)), goesOn(60)}, far: []part{many(kf[:3]), window(0, 12)}},
			StopBetween, "",
		},
		{
			"the clocks differ by two hours, nothing joins, and the windows do not meet",
			sides{near: alone(), far: []part{shifted(strangers, 7200)}},
			"clock-not-aligned",
			sides{near: alone(), far: []part{shifted(strangers, 7200)}, opt: offset(7200, 1)},
			StopBetween, "",
		},
		{
			"nothing joins, and the far window by its own clock holds half of the request",
			sides{near: alone(), far: []part{strangers[:3], window(0, 10.5)}},
			"clock-not-aligned|outside-far-window",
			sides{near: alone(), far: []part{strangers[:3], window(0, 10.5)}, opt: state(0, 70)},
			StopBetween, "",
		},
		{
			"the offset that is stated puts the far capture after the request",
			sides{near: alone(), far: []part{strangers}, opt: offset(-30, 1)},
			"outside-far-window",
			sides{near: alone(), far: []part{strangers}, opt: offset(0, 1)},
			StopBetween, "",
		},
		{
			"the error of the stated offset is larger than what is left of the window",
			sides{near: alone(), far: []part{strangers}, opt: offset(0, 20)},
			"outside-far-window|clock-not-aligned",
			sides{near: alone(), far: []part{strangers}, opt: offset(0, 5)},
			StopBetween, "",
		},
		{
			"the window that is stated ends before the request",
			sides{near: alone(), far: []part{strangers}, opt: state(0, 9)},
			"outside-far-window",
			sides{near: alone(), far: []part{strangers}, opt: state(0, 60)},
			StopBetween, "",
		},
		{
			"the joined packets all go one way, and bound the offset on one side only",
			sides{near: near(), far: []part{clientsOnly(kf), strangers[1:2], goesOn(60)}},
			"clock-not-aligned",
			sides{near: near(), far: []part{inOrder(kf), strangers[1:2], goesOn(60)}},
			StopBetween, "",
		},
		{
			"the far capture has no times",
			sides{near: near(), far: []part{seenAt(kf, timeless)}},
			"no-times",
			sides{near: near(), far: nothing()},
			StopBetween, "",
		},
		// Place.
		{
			"the far capture is of another link: other servers",
			sides{near: append([]part{elseNear}, near()...), far: []part{elseFar, goesOn(60)}},
			"far-place-not-known",
			sides{near: append([]part{elseNear}, near()...), far: []part{elseFar, goesOn(60)}, opt: hosts(PairOptions{}, server)},
			StopBetween, "",
		},
		{
			"it is of another member of a load balancer",
			sides{near: []part{inOrder(member.near(atMember...), viaNode.near(lost...)), goesOn(60)}, far: []part{member.far(atMember...), goesOn(60)}},
			"far-place-not-known",
			sides{near: []part{inOrder(member.near(atMember...), viaNode.near(lost...)), goesOn(60)}, far: []part{member.far(atMember...), goesOn(60)}, opt: hosts(PairOptions{}, server)},
			StopBetween, "",
		},
		{
			"the far file is empty",
			sides{near: near(), far: nil},
			"far-place-not-known|no-times|outside-far-window",
			sides{near: near(), far: nil, opt: hosts(state(0, 60), server)},
			StopBetween, "",
		},
		{
			"the far file is empty, and only its place is stated",
			sides{near: near(), far: nil, opt: hosts(PairOptions{}, server)},
			"no-times|outside-far-window|clock-not-aligned",
			sides{near: near(), far: nil, opt: hosts(state(0, 60), server)},
			StopBetween, "",
		},
		// Filter.
		{
			"the far filter keeps another host",
			sides{near: near(), far: nothing(filtered("host 10.128.0.99"))},
			"filtered-out",
			sides{near: near(), far: nothing(filtered("host " + node))},
			StopBetween, "",
		},
		{
			"it drops the node",
			sides{near: near(), far: nothing(filtered("not host " + node))},
			"filtered-out",
			sides{near: near(), far: nothing(filtered("not host 10.9.9.9"))},
			StopBetween, "",
		},
		{
			"it keeps another port",
			sides{near: near(), far: nothing(filtered("tcp port 80"))},
			"filtered-out",
			sides{near: near(), far: nothing(filtered("tcp port 443"))},
			StopBetween, "",
		},
		{
			"it keeps another protocol",
			sides{near: near(), far: nothing(filtered("icmp"))},
			"filtered-out",
			sides{near: near(), far: nothing(filtered("icmp or tcp"))},
			StopBetween, "",
		},
		{
			"it keeps what the server sends",
			sides{near: near(), far: nothing(filtered("src host " + server))},
			"filtered-out",
			sides{near: near(), far: nothing(filtered("dst host " + server))},
			StopBetween, "",
		},
		{
			"it keeps one interface",
			sides{near: near(), far: nothing(filtered("ifname ens5"))},
			"filtered-out",
			sides{near: near(), far: nothing(filterStated(""))},
			StopBetween, "",
		},
		{
			"it keeps large packets",
			sides{near: near(), far: nothing(filtered("greater 1000"))},
			"filtered-out",
			sides{near: near(), far: nothing(filterStated(""))},
			StopBetween, "",
		},
		{
			"the stated filter keeps another host, whatever the file says",
			sides{near: near(), far: nothing(filterStated("host 10.128.0.99"))},
			"filtered-out",
			sides{near: near(), far: nothing(filterStated("host " + node))},
			StopBetween, "",
		},
		{
			"its filter is not known, and all its packets are of one other port",
			sides{near: append([]part{elseNear}, near()...), far: []part{seenAt(elseFar), about(filterUnknown)}, opt: hosts(PairOptions{}, server)},
			"filter-not-known",
			sides{near: append([]part{elseNear}, near()...), far: []part{seenAt(elseFar), about(filterUnknown), filterStated("")}, opt: hosts(PairOptions{}, server)},
			StopBetween, "",
		},
		{
			"its filter is not known, and all its packets are TCP, and a datagram is missing",
			sides{near: []part{inOrder(kn, many{udp(podEnds, "who", at(10), in("veth1")), udp(nodeEnds, "who", at(10.00005), out("eth0"), ttl(63))}), goesOn(60)}, far: []part{inOrder(kf), about(filterUnknown), window(0, 60)}},
			"filter-not-known",
			sides{near: []part{inOrder(kn, many{udp(podEnds, "who", at(10), in("veth1")), udp(nodeEnds, "who", at(10.00005), out("eth0"), ttl(63))}), goesOn(60)}, far: []part{inOrder(kf), filterStated(""), window(0, 60)}},
			StopBetween, "",
		},
		// Whole.
		{
			"the far file is cut",
			sides{near: near(), far: nothing(about(damagedEnd))},
			"capture-incomplete",
			sides{near: near(), far: nothing()},
			StopBetween, "",
		},
		{
			"the far capture dropped packets",
			sides{near: near(), far: nothing(dropped(7))},
			"packets-dropped",
			sides{near: near(), far: nothing(about(dropsUnknown))},
			StopBetween, "",
		},
		{
			"the far snap length cut headers off",
			sides{near: near(), far: nothing(many{syn("172.16.0.9:4000 > "+server+":443", at(12), in("ens4"), cutShort)})},
			"snaplen|join-ambiguous",
			sides{near: near(), far: nothing(many{syn("172.16.0.9:4000 > "+server+":443", at(12), isn(77), stamp(999, 0), in("ens4"))})},
			StopBetween, "",
		},
		// The sides.
		{
			"the near file twice",
			sides{inputs: func(t *testing.T) []Input {
				return []Input{captureOf(t, near()...), captureOf(t, append(near(), about(onFarSide))...)}
			}},
			"sides-not-as-stated",
			sides{near: near(), far: nothing()},
			StopBetween, "same",
		},
		{
			"the sides are swapped",
			sides{near: replied(), far: near()},
			"",
			sides{near: near(), far: replied()},
			StopReturn, "swapped",
		},
		// It arrived, and no answer was seen to pass back.
		{
			"far: the filter keeps what goes to the server",
			sides{near: near(), far: arrived(filtered("dst host " + server))},
			"filtered-out",
			sides{near: near(), far: arrived(filtered("host " + server))},
			StopFar, "",
		},
		{
			"far: the filter is not known, and all its packets go to the server",
			sides{near: near(), far: []part{clientsOnly(inOrder(kf, viaNode.far(lost...))), about(filterUnknown), window(0, 60)}},
			"filter-not-known|clock-not-aligned",
			sides{near: near(), far: []part{inOrder(kf, viaNode.far(lost...)), about(filterUnknown), window(0, 60)}},
			StopFar, "",
		},
		{
			"far: the capture ended with the request",
			sides{near: near(), far: []part{inOrder(kf[:3], viaNode.far(lost...))}},
			"capture-ended",
			sides{near: near(), far: []part{inOrder(kf[:3], viaNode.far(lost...)), goesOn(15)}},
			StopFar, "",
		},
		{
			"far: the file is cut",
			sides{near: near(), far: arrived(about(damagedEnd))},
			"capture-incomplete",
			sides{near: near(), far: arrived()},
			StopFar, "",
		},
		{
			"far: packets were dropped",
			sides{near: near(), far: arrived(dropped(1))},
			"packets-dropped",
			sides{near: near(), far: arrived(about(dropsUnknown))},
			StopFar, "",
		},
		// It was answered, and the answer was not seen to come back.
		{
			"return: the near filter keeps what leaves",
			sides{near: near(filtered("dst host " + server)), far: replied()},
			"filtered-out",
			sides{near: near(filtered("host " + server)), far: replied()},
			StopReturn, "",
		},
		{
			"return: the near filter keeps the Pod",
			sides{near: near(filtered("host " + pod + " or dst host " + server)), far: replied()},
			"filtered-out",
			sides{near: near(filtered("host " + pod + " or host " + server)), far: replied()},
			StopReturn, "",
		},
		{
			"return: the near capture ended while the answer was on its way",
			sides{near: []part{inOrder(kn[:6], viaNode.near(lost[0]))}, far: replied()},
			"capture-ended",
			sides{near: []part{inOrder(kn[:6], viaNode.near(lost[0])), goesOn(15)}, far: replied()},
			StopReturn, "",
		},
		{
			"return: the near capture records when it ended, and that is too early",
			sides{near: []part{inOrder(kn[:6], viaNode.near(lost[0])), ran(-100, 1.1)}, far: replied()},
			"capture-ended",
			sides{near: []part{inOrder(kn[:6], viaNode.near(lost[0])), ran(-100, 15)}, far: replied()},
			StopReturn, "",
		},
		{
			"return: the near file is cut",
			sides{near: near(about(damagedEnd)), far: replied()},
			"capture-incomplete",
			sides{near: near(), far: replied()},
			StopReturn, "",
		},
		{
			"return: the near capture dropped packets",
			sides{near: near(dropped(1)), far: replied()},
			"packets-dropped",
			sides{near: near(about(dropsUnknown)), far: replied()},
			StopReturn, "",
		},
		{
			"return: the near capture is of the Pod's interface",
			sides{near: []part{single("veth1"), seenAt(lost, on("veth1")), goesOn(60)}, far: replied()},
			"egress-not-visible|pod-side-capture-only|filter-not-known",
			sides{near: near(), far: replied()},
			StopReturn, "",
		},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			of := podTCP
			res := row.lacks.run(t)
			for i := range res.Requests {
				if s := res.Requests[i].StoppedAt; s == StopBetween || s == StopFar || s == StopReturn {
					t.Errorf("claimed: %s %q", verdictOf(&res.Requests[i]), res.Requests[i].Reasons)
				}
			}
			if notes := strings.Join(res.Captures[1].Notes, "; "); row.note != "" && !strings.Contains(notes, row.note) {
				t.Errorf("no note says %q: %s", row.note, notes)
			}
			if row.reason != "" {
				r := thePods(t, res, of)
				var said *Unknown
				for i := range r.Unknown {
					if r.Unknown[i].Field == "stopped_at" {
						said = &r.Unknown[i]
					}
				}
				switch {
				case said == nil:
					t.Errorf("no reason: %s", verdictOf(r))
				case !slices.Contains(strings.Split(row.reason, "|"), said.Reason):
					t.Errorf("the reason is %s (%s), want %s", said.Reason, said.Text, row.reason)
				case !actionable.MatchString(said.Settle):
					t.Errorf("%s is settled by %q, which nobody can act on", said.Reason, said.Settle)
				}
			}
			res = row.twin.run(t)
			r := thePods(t, res, of)
			if r.StoppedAt != row.claim {
				t.Errorf("the sufficient twin: %s, want %s\n%+v\n%q\n%q", verdictOf(r), row.claim, r.Unknown, res.Captures[0].Notes, res.Captures[len(res.Captures)-1].Notes)
			}
		})
	}
}

// thePods is the request of the Pod that a row speaks of.
func thePods(t *testing.T, res *Result, of string) *Request {
	t.Helper()
	var found *Request
	for i := range res.Requests {
		if r := &res.Requests[i]; r.Tuple.Src == wire.MustAddr(pod) && r.capture() == 0 {
			if found != nil {
				t.Fatalf("%s picks several:\n%s", of, listOf(res.Requests))
			}
			found = r
		}
	}
	if found == nil {
		t.Fatalf("%s picks none:\n%s", of, listOf(res.Requests))
	}
	return found
}
