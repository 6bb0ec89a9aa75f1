package analyze

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

func verdictOfPair(t *testing.T, opt PairOptions, of string, near, far []part) (string, *Request, *Result) {
	t.Helper()
	res := pairOf(t, gke(t), opt, near, far)
	r := theRequest(t, res.Requests, of)
	return verdictOf(r), r, res
}

// Near side alone: nine Pods ask the same without IP IDs (every IPv6 datagram, Linux's unconnected UDP sockets): more than
// maxPartners conversations share the payload, edges() skips them, and each Pod's question is called not-sent.
func TestRegressPairCrowdIsNotSent(t *testing.T) {
	var m many
	for i := range 9 {
		w := trip{client: fmt.Sprintf("10.4.0.%d:41000", 20+i), server: server + ":53", as: fmt.Sprintf("%s:%d", node, 51000+i)}
		m = append(m, w.near(udp(w.client+" > "+w.server, "the question of all", ipid(0), at(1+float64(i)*0.2)))...)
	}
	for _, r := range requestsOf(t, gke(t), inOrder(neighbours(), m)) {
		if r.Source == NotSent {
			t.Errorf("%s: not-sent, %q", r.Tuple, r.Reasons)
		}
	}
}

// The far capture ends 1 ms after the SYN left: it arrives 4 ms later. covers() is lenient by the delay where it has to be
// strict: to-lower is later than what the capture holds, from-upper earlier.
func TestRegressPairWindowEnds(t *testing.T) {
	kn, kf := known()
	m := answeredAt(61, opened(podEnds, 10, 1000))
	got, r, _ := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(m...), neighbours())}, []part{many(kf[:3]), window(0, 10.001)})
	t.Logf("%s %q %v %+v", got, r.Reasons, r.Findings, r.Unknown)
	if r.StoppedAt == StopBetween {
		t.Errorf("%s %q %v", got, r.Reasons, r.Findings)
	}
}

// The same at the beginning: it arrived before the capture began.
func TestRegressPairWindowBegins(t *testing.T) {
	kn, kf := known()
	m := answeredAt(61, opened(podEnds, 10, 1000))
	got, r, _ := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(m...), neighbours())}, []part{many(kf[3:]), window(10.006, 40)})
	if r.StoppedAt == StopBetween {
		t.Errorf("%s %q %v", got, r.Reasons, r.Findings)
	}
}

// 300 other clients of the server, hours before: lookalike counts 256 chains before it looks at their time.
func TestRegressPairBusyServer(t *testing.T) {
	kn, kf := known()
	var others many
	for i := range 300 {
		others = append(others, atServer(opened(fmt.Sprintf("172.16.%d.%d:50000 > %s:443", i/200, 1+i%200, server), -7200+float64(i), uint32(500_000+20_000*i)))...)
	}
	got, r, _ := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(tries(podEnds, 10, 11, 13)...), neighbours())}, []part{inOrder(others, kf), goesOn(40)})
	if r.StoppedAt != StopBetween {
		t.Errorf("%s %+v", got, r.Unknown)
	}
}

// A way that rewrites IP IDs and nothing else (scrub random-id): all joins are exact by ISN and timestamp, and none gives a
// clock sample, since the sample's key holds the IP ID. So no absence is ever concluded.
func TestRegressPairClockWithNewIDs(t *testing.T) {
	kn, kf := known()
	for i := range kf {
		kf[i].IPID += 100
	}
	got, r, res := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(tries(podEnds, 10, 11, 13)...), neighbours())}, []part{inOrder(kf), goesOn(40)})
	if !res.Captures[1].HasOffset || r.StoppedAt != StopBetween {
		t.Errorf("offset %v, %s %+v", res.Captures[1].HasOffset, got, r.Unknown)
	}
}

// Stacks without timestamps and with SYN IP IDs of zero: joined by ISN and server, which is probable, and never a clock.
func TestRegressPairClockFromProbable(t *testing.T) {
	kn, kf := known()
	strip := func(m many) many {
		for i := range m {
			m[i] = also(m[i], bare, ipid(0))
		}
		return m
	}
	got, r, res := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(strip(kn), viaNode.near(strip(tries(podEnds, 10, 11, 13))...), neighbours())}, []part{strip(inOrder(kf)), goesOn(40)})
	if !res.Captures[1].HasOffset || r.StoppedAt != StopBetween {
		t.Errorf("offset %v, %s %+v", res.Captures[1].HasOffset, got, r.Unknown)
	}
}

// Twenty requests that say the same, each with an IP ID of its own: none is joined, since the list of those that share the
// payload is given up at maxPartners before IP IDs are looked at.
func TestRegressPairCrowdOfDatagrams(t *testing.T) {
	kn, kf := known()
	near, far := kn, kf
	for i := range 20 {
		w := trip{client: fmt.Sprintf("10.4.0.%d:41000", 20+i), server: server + ":53", as: fmt.Sprintf("%s:%d", node, 51000+i)}
		q := udp(w.client+" > "+w.server, "the question of all", ipid(uint16(1000+i)), at(1+float64(i)))
		near, far = append(near, w.near(q)...), append(far, w.far(q)...)
	}
	res := pairOf(t, gke(t), PairOptions{}, []part{inOrder(near)}, []part{inOrder(far)})
	n := 0
	for i := range res.Requests {
		if r := &res.Requests[i]; r.Tuple.Proto == wire.ProtoUDP && hasJoin(r) != nil {
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d of 20 joined", n)
	}
}

// One capture began behind the opening and the other before it: the sequence ranges of both directions agree.
func TestRegressPairMidstreamOnOneSide(t *testing.T) {
	kn, kf := known()
	m := answeredAt(61, opened(podEnds, 10, 1000))
	m = append(m, data(podEnds, 500, at(10.1), seq(1001), acks(8001), stamp(1100, 1009)), dataBack(back(podEnds), 900, at(10.2), seq(8001), acks(1501), stamp(1200, 1100), ttl(61)))
	_, r, _ := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(m[3:]...))}, []part{inOrder(kf, viaNode.far(m...))})
	if hasJoin(r) == nil {
		t.Errorf("near midstream, far whole: %s %+v", verdictOf(r), r.Unknown)
	}
	_, r, _ = verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(m...))}, []part{inOrder(kf, viaNode.far(m[3:]...))})
	if hasJoin(r) == nil {
		t.Errorf("near whole, far midstream: %s %+v", verdictOf(r), r.Unknown)
	}
}

// The first SYN was lost, the second was answered, and the near capture ended while that answer was on its way: runsOn is
// satisfied by a SYN that was sent again, whenever the capture ended.
func TestRegressPairNearEndsBeforeTheAnswer(t *testing.T) {
	kn, kf := known()
	m := tries(podEnds, 31, 32)
	answer := synack(back(podEnds), at(32.01), acks(31001), ttl(61))
	got, r, _ := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(m...))}, []part{inOrder(kf, viaNode.far(m[1], answer)), goesOn(60)})
	if r.StoppedAt == StopReturn {
		t.Errorf("%s %q", got, r.Reasons)
	}
}

// The same at the far side: it ended 1 ms after the second SYN arrived.
func TestRegressPairFarEndsBeforeTheAnswer(t *testing.T) {
	kn, kf := known()
	m := tries(podEnds, 31, 32)
	got, r, _ := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(m...)), goesOn(32.5)}, []part{inOrder(kf, viaNode.far(m...))})
	if r.StoppedAt == StopFar {
		t.Errorf("%s %q", got, r.Reasons)
	}
}

// A Pod asks the same as a stranger, IP IDs are 16 bits, and the Pod's question was lost: the stranger's, half an hour
// later by clocks that are known, is taken for it.
func TestRegressPairStrangersDatagram(t *testing.T) {
	kn, kf := known()
	w := trip{client: pod + ":41000", server: server + ":53", as: node + ":51000"}
	q := udp(w.client+" > "+w.server, "the question of all", ipid(77), at(10))
	stranger := udp("172.16.0.9:5000 > "+server+":53", "the question of all", ipid(77), at(1800), in("ens4"), ttl(50))
	_, r, _ := verdictOfPair(t, PairOptions{}, "udp "+pod+" > any", []part{inOrder(kn, w.near(q)), goesOn(2000)}, []part{inOrder(kf, many{stranger}), goesOn(2000)})
	if hasJoin(r) != nil {
		t.Errorf("joined with %s:%d: %+v", r.Far.Addr, r.Far.Port, r.Joins)
	}
	// The payload is unique in both: a heartbeat of the Pod's that was lost, and a stranger's half an hour later.
	q, stranger = also(q, ipid(0)), also(stranger, ipid(0))
	_, r, _ = verdictOfPair(t, PairOptions{}, "udp "+pod+" > any", []part{inOrder(kn, w.near(q)), goesOn(2000)}, []part{inOrder(kf, many{stranger}), goesOn(2000)})
	if hasJoin(r) != nil {
		t.Errorf("joined with %s:%d: %+v", r.Far.Addr, r.Far.Port, r.Joins)
	}
}

// The same with TCP of a stack without timestamps: an ISN that a stranger uses half an hour later.
func TestRegressPairStrangersISN(t *testing.T) {
	kn, kf := known()
	lost := many{syn(podEnds, isn(7), bare, ipid(0), at(10)), syn(podEnds, isn(7), bare, ipid(0), at(11))}
	stranger := syn("172.16.0.9:5000 > "+server+":443", isn(7), bare, ipid(0), at(1800), in("ens4"), ttl(50))
	_, r, _ := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(lost...)), goesOn(2000)}, []part{inOrder(kf, many{stranger}), goesOn(2000)})
	if hasJoin(r) != nil {
		t.Errorf("joined with %s:%d: %+v", r.Far.Addr, r.Far.Port, r.Joins)
	}
}

// Near side alone: the near clock is set forward by 2 s between a SYN's coming in and its going out, 50 µs later. ISN,
// timestamp value and IP ID all agree, the time does not, so nothing is joined, and the Pod's side is called not-sent.
func TestRegressPairClockSetWhileForwarding(t *testing.T) {
	m := viaNode.near(tries(podEnds, 10)...)
	m[1] = also(m[1], later(2))
	for _, r := range requestsOf(t, gke(t), inOrder(neighbours(), m), goesOn(30)) {
		if r.Source == NotSent {
			t.Errorf("%s: not-sent, %q", r.Tuple, r.Reasons)
		}
	}
}

// A request that never left the node is joined with a stranger's of the same payload, and keeps node-out beside a far leg.
func TestRegressPairNotSentIsJoined(t *testing.T) {
	kn, kf := known()
	w := trip{client: pod + ":41000", server: server + ":53"}
	q := udp(w.client+" > "+w.server, "the question of all", at(10), in("veth1"), ipid(5))
	stranger := udp("172.16.0.9:5000 > "+server+":53", "the question of all", ipid(77), at(20), in("ens4"), ttl(50))
	_, r, _ := verdictOfPair(t, PairOptions{}, "udp "+pod+" > any", []part{inOrder(kn, neighbours(), many{q}), goesOn(60)}, []part{inOrder(kf, many{stranger}), goesOn(60)})
	if r.Source == NotSent && r.Far != nil {
		t.Errorf("%s, and arrived as %s: %+v", verdictOf(r), r.Far.Addr, r.Joins)
	}
}

// Probable joins of other requests' sides put steps into the clock: a stranger says what the Pod said, half a minute later.
// (See the parrots' worlds of TestSimulatedPair: 57 steps, the largest 5.4 s, of clocks that nobody set.)

// The answer's packets at the other node are added to the request's; what the far side holds of it is there already.
func TestRegressFramesOnce(t *testing.T) {
	lost := tries(podEnds, 10, 11, 13)
	answer := synack(back(podEnds), at(10.01), acks(31001), ttl(61))
	kn, kf := known()
	two := captureOf(t, viaNode.near(answer)[:1], goesOn(60))
	two.File = "second.pcap"
	res := runOf(t, gke(t), Options{}, captureOf(t, inOrder(kn, viaNode.near(lost...)), goesOn(60)), two, farCapture(t, inOrder(kf, viaNode.far(append(lost, answer)...)), goesOn(60)))
	r := thePods(t, res, "")
	seen := make(map[string]bool)
	for _, f := range r.Cited() {
		if key := fmt.Sprint(f.Capture, f.Frame); seen[key] {
			t.Errorf("frame %d of capture %d is named twice: %+v", f.Frame, f.Capture, r.Cited())
		} else {
			seen[key] = true
		}
	}
	if r.StoppedAt != StopReturn || len(seen) < 9 {
		t.Errorf("%s, frames %+v", verdictOf(r), r.Cited())
	}
}

// Two captures of one node, one by direction or by interface: the answer in the second came to this very node.
func TestRegressSameNodeTwice(t *testing.T) {
	lost := tries(podEnds, 10, 11, 13)
	answer := synack(back(podEnds), at(10.01), acks(31001), ttl(61))
	keeps := viaNode
	keeps.as = ""
	kn, kf := known()
	for _, row := range []struct {
		name string
		w    trip
		two  []part
	}{
		{"it shows the address that the request left with as its own", viaNode, []part{inOrder(viaNode.near(answer)[:1], neighbours()), goesOn(60)}},
		{"it shows the node's address as its own", keeps, []part{inOrder(keeps.near(answer)[:1], neighbours()), goesOn(60)}},
		{"it follows", viaNode, []part{seenAt(viaNode.near(answer)[:1], at(70)), goesOn(80)}},
	} {
		two := captureOf(t, row.two...)
		two.File = "second.pcap"
		res := runOf(t, gke(t), Options{}, captureOf(t, inOrder(kn, neighbours(), row.w.near(lost...)), goesOn(60)), two, farCapture(t, inOrder(kf, row.w.far(append(lost, answer)...)), goesOn(60)))
		for i := range res.Requests {
			if r := &res.Requests[i]; slices.Contains(r.Findings, codeOtherNode) {
				t.Errorf("%s: %s %q %q", row.name, verdictOf(r), r.Findings, r.Reasons)
			}
		}
	}
}

// The far side holds the client's acknowledgement, so the SYN-ACK had reached the client, whatever the near capture missed.
func TestRegressFarShowsTheHandshake(t *testing.T) {
	kn, kf := known()
	open := answeredAt(61, opened(podEnds, 10, 1000))
	for name, held := range map[string]many{"the SYN alone": open[:1], "SYN and SYN-ACK": open[:2]} {
		got, r, _ := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(held...)), goesOn(60)}, []part{inOrder(kf, viaNode.far(open...)), goesOn(60)})
		if !meets(got, "outbound node-snated/translation handshake-completed none") || r.ConnState != "S1" {
			t.Errorf("%s: %s %s %q", name, got, r.ConnState, r.Reasons)
		}
	}
}

// What was refused on the way is said once, with what it means.
func TestRegressRefusedOnTheWay(t *testing.T) {
	kn, kf := known()
	lost := tries(podEnds, 10)
	reset := refusal(back(podEnds), at(10.01), acks(31001), ttl(60))
	_, r, _ := verdictOfPair(t, PairOptions{}, podTCP, []part{inOrder(kn, viaNode.near(lost[0], reset)), goesOn(60)}, []part{kf, goesOn(60)})
	if !slices.Contains(r.Findings, codeMiddlebox) || slices.Contains(r.Findings, codeRefused) {
		t.Errorf("%s %q", verdictOf(r), r.Findings)
	}
}

// A stated clock offset that joined packets contradict is not used, and that is said.
func TestRegressStatedOffsetContradicted(t *testing.T) {
	kn, kf := known()
	for offset, want := range map[int64]bool{37e9: true, 0: false} {
		res := pairOf(t, gke(t), PairOptions{HasFarOffset: true, FarOffset: offset, FarOffsetError: 5e6}, []part{kn, goesOn(60)}, []part{kf, goesOn(60)})
		if got := strings.Contains(strings.Join(res.stated, "\n"), "contradicted"); got != want {
			t.Errorf("offset %d: %q", offset, res.stated)
		}
	}
}

// A far capture whose filter is not known holds the Pod's packets and nothing for the Pod, while others are answered: a
// filter on destinations looks the same. An answer to another request of the Pod shows that such packets are kept.
func TestRegressFarHoldsNothingForThePod(t *testing.T) {
	lost := tries(podEnds, 10, 11, 13)
	keeps := viaNode
	keeps.as = ""
	kn, kf := known()
	other := trip{client: pod + ":41001", server: server + ":443"}
	open := answeredAt(61, opened(other.client+" > "+other.server, 20, 77_000))
	for _, row := range []struct{ of, want string }{{"", "unknown(filter-not-known)"}, {"and another is answered", "far"}} {
		n, f := append(slices.Clone(kn), keeps.near(lost...)...), append(slices.Clone(kf), keeps.far(lost...)...)
		if row.of != "" {
			n, f = append(n, other.near(open...)...), append(f, other.far(open...)...)
		}
		res := pairOf(t, gke(t), PairOptions{}, []part{inOrder(n), goesOn(60)}, []part{inOrder(f), about(filterUnknown), goesOn(60)})
		for i := range res.Requests {
			if r := &res.Requests[i]; r.Tuple == lost[0].Tuple && !meets(verdictOf(r), "outbound pod-sourced/translation request-only "+row.want) {
				t.Errorf("%s: %s %+v", row.of, verdictOf(r), r.Unknown)
			}
		}
	}
}

// A far capture that holds nothing of the node, and whose filter is not known: "not host NODE" looks the same. That the
// request did not arrive was claimed where other clients' packets left nothing in common and both clocks agreed as they were.
func TestRegressFarWithoutTheNode(t *testing.T) {
	near := viaNode.near(answeredAt(61, opened(podEnds, 10, 1000))...)
	var far many
	for i, at := range []float64{2, 9, 20} {
		far = append(far, atServer(answeredAt(64, opened(fmt.Sprintf("198.51.100.%d:%d > %s:9999", 7+i, 40_000+i, server), at, 50_000+uint32(i)*9000)[:1]))...)
	}
	far = append(far, atServer(answeredAt(64, opened("192.0.2.77:50000 > 198.51.100.77:8080", 5, 150_000)))...)
	far = append(far, also(udp(back("198.51.100.7:1 > "+server+":53"), "x", at(6)), out("ens4")))
	unknownFilter := about(func(r *recording) { r.summary.HasFilter = false })
	res := pairOf(t, gke(t), PairOptions{}, []part{near, window(0, 30)}, []part{unknownFilter, far, window(0, 30)})
	r := thePods(t, res, "the Pod's request")
	if r.StoppedAt != StopUnknown {
		t.Errorf("stopped at %s: %q, %+v", r.StoppedAt, r.Reasons, r.Unknown)
	}
	// With the filter known to be none it is claimed: the twin.
	res = pairOf(t, gke(t), PairOptions{}, []part{near, window(0, 30)}, []part{far, window(0, 30)})
	if r := thePods(t, res, "the Pod's request"); r.StoppedAt != StopBetween {
		t.Errorf("without a filter: stopped at %s: %+v", r.StoppedAt, r.Unknown)
	}
}
