package analyze

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// sorted puts packets in order of time, as a capture holds them.
func sorted(m many) many {
	m = slices.Clone(m)
	slices.SortStableFunc(m, func(a, b packet) int { return cmp.Compare(a.Time, b.Time) })
	return m
}

// verdicts are the requests as far as they do not cite frame numbers: what must not depend on the order of frames that were
// captured at the same moment.
func verdicts(rs []Request) string {
	var lines []string
	for i := range rs {
		r := &rs[i]
		line := listOf(rs[i:i+1]) + "   sent " + itoa(r.RequestsSent) + " replies " + itoa(r.RepliesSeen) + " again " + itoa(r.Retransmissions)
		for _, u := range r.Unknown {
			line += " " + u.Field + ":" + u.Reason
		}
		for _, j := range r.Joins {
			line += " " + strings.Join(j.Basis, "+") + " " + j.Confidence.String()
		}
		lines = append(lines, line+" "+strings.Join(r.Findings, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// firstDifference is what two lists of lines do not share, for failures.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return "got  " + a + "\nwant " + b
		}
	}
	return ""
}

// busy is a capture of everything at once: translated and not, colliding, lost, repeated, rejected.
func busy(seed uint64) many {
	r := rand.New(rand.NewPCG(seed, 11))
	m := simulate(r, 300, 60, 50).packets
	direct := natPath{client: "10.4.1.9:40000", server: "192.0.2.77:80", podIf: "veth9", bridge: "cbr0", uplink: "eth0"}
	m = append(m, direct.carry(handshake("10.4.1.9:40000 > 192.0.2.77:80", at(1.1))...)...)
	m = append(m, direct.carry(many{data("10.4.1.9:40000 > 192.0.2.77:80", 100, at(1.2)), dataBack("192.0.2.77:80 > 10.4.1.9:40000", 900, at(1.21), acks(clientISN+101))}...)...)
	lost := syn("10.4.1.9:40001 > 192.0.2.78:80", at(1.15), in("veth9"), isn(90001))
	m = append(m, lost, icmp(node, 3, 0, lost, at(1.2), out("veth9")))
	m = append(m, many{
		syn(node+":50000 > 192.0.2.79:80", at(1.05), out("eth0"), isn(90002)), refusal("192.0.2.79:80 > "+node+":50000", at(1.06), in("eth0"), acks(90003), ttl(60)),
		echo("10.4.1.9 > 192.0.2.80", 5, 1, at(1.3), in("veth9")), also(echo("10.4.1.9 > 192.0.2.80", 5, 1), between(node+" > 192.0.2.80"), echoID(777), at(1.30004), out("eth0"), ttl(63)),
		udp("10.4.1.9:5000 > 224.0.0.251:5353", "who", at(1.4), in("veth9")),
		neighbour("fe80::1 > ff02::1:ff00:2", 135, at(1.5), in("eth0")),
	}...)
	return sorted(m)
}

// gathered is a result with all that is gathered only when it is asked for.
func gathered(res *Result) *Result {
	out := *res
	out.Requests, out.answered = slices.Clone(res.Requests), nil
	for i := range out.Requests {
		r := &out.Requests[i]
		r.Frames, r.seenAt, r.alsoAt = r.Cited(), passage{}, nil
	}
	return &out
}

// The same captures and facts give the same Result, field by field: nothing depends on the order of a map.
func TestRunIsDeterministic(t *testing.T) {
	facts := gke(t)
	for seed := range uint64(4) {
		m := busy(seed)
		want := resultOf(t, facts, m)
		for range 4 {
			if got := resultOf(t, facts, m); !reflect.DeepEqual(gathered(got), gathered(want)) {
				t.Fatalf("seed %d: two runs differ\n%s", seed, firstDifference(verdicts(got.Requests), verdicts(want.Requests)))
			}
		}
	}
}

// How many packets come at a time is nothing that a verdict could know of.
func TestBatchSize(t *testing.T) {
	facts := gke(t)
	m := busy(1)
	want := runOf(t, facts, Options{}, captureOf(t, m))
	for _, batch := range []int{1, 7, 512, 100_000} {
		if got := runOf(t, facts, Options{Batch: batch}, captureOf(t, m)); !reflect.DeepEqual(gathered(got), gathered(want)) {
			t.Errorf("batches of %d: %s", batch, firstDifference(verdicts(got.Requests), verdicts(want.Requests)))
		}
	}
}

// Interfaces are read from queues of their own, so that a capture's order between them is off by a little: it tells nothing.
func TestOrderBetweenInterfaces(t *testing.T) {
	facts := gke(t)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		m := busy(seed)
		names := []part{interfaces("veth2", "veth3", "veth4", "veth5", "veth6", "veth7", "veth9", "cbr0", "eth0")}
		want := verdicts(requestsOf(t, facts, append(names, m)...))
		late := make(map[string]int64)
		for _, p := range m {
			if _, ok := late[p.iface]; !ok {
				late[p.iface] = r.Int64N(1_000_000)
			}
		}
		moved := slices.Clone(m)
		slices.SortStableFunc(moved, func(a, b packet) int { return cmp.Compare(a.Time+late[a.iface], b.Time+late[b.iface]) })
		if got := verdicts(requestsOf(t, facts, append(names, moved)...)); got != want {
			t.Fatalf("seed %d, interfaces late by %v ns:\n%s", seed, late, firstDifference(got, want))
		}
	}
}

// Packets of other flows that stand before or behind a request's own tell nothing of it.
func TestOrderOfUnrelatedFlows(t *testing.T) {
	facts := gke(t)
	type ends struct{ a, b wire.Addr }
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 6))
		m := busy(seed)
		names := []part{interfaces("veth2", "veth3", "veth4", "veth5", "veth6", "veth7", "veth9", "cbr0", "eth0")}
		want := verdicts(requestsOf(t, facts, append(names, m)...))
		// Flows keep their own order and their times; between each other they come in any order.
		groups := make(map[ends]many)
		var order []ends
		for _, p := range m {
			k := ends{p.Tuple.Src, p.Tuple.Dst}
			if k.a.Compare(k.b) > 0 {
				k.a, k.b = k.b, k.a
			}
			if len(groups[k]) == 0 {
				order = append(order, k)
			}
			groups[k] = append(groups[k], p)
		}
		var moved many
		for len(order) > 0 {
			i := r.IntN(len(order))
			k := order[i]
			moved = append(moved, groups[k][0])
			if groups[k] = groups[k][1:]; len(groups[k]) == 0 {
				order = slices.Delete(order, i, i+1)
			}
		}
		if got := verdicts(requestsOf(t, facts, append(names, moved)...)); got != want {
			t.Fatalf("seed %d:\n%s", seed, firstDifference(got, want))
		}
	}
}

// Requests come in order of their first packets, and no two of a run have the same tuple and opening.
func TestRequestsAreOrderedAndTold(t *testing.T) {
	type identity struct {
		tuple   wire.Tuple
		opening uint64
	}
	m := busy(3)
	m = append(m, sorted(many{ // requests that nothing but their number tells apart
		udp("10.4.1.9:6000 > 192.0.2.53:53", "q", at(10), in("veth9")), udp("10.4.1.9:6000 > 192.0.2.53:53", "q", at(200), in("veth9")),
		udp("10.4.1.9:6000 > 192.0.2.53:53", "q", at(400), in("veth9")),
		syn("10.4.1.9:6001 > 192.0.2.53:53", at(10), in("veth9"), isn(4)), rst("10.4.1.9:6001 > 192.0.2.53:53", at(11), in("veth9"), seq(5)),
		syn("10.4.1.9:6001 > 192.0.2.53:53", at(12), in("veth9"), isn(9)), syn("10.4.1.9:6001 > 192.0.2.53:53", at(14), in("veth9"), isn(4)),
	})...)
	rs := requestsOf(t, gke(t), m)
	seen := make(map[identity]bool)
	for i := range rs {
		if i > 0 && rs[i].First < rs[i-1].First {
			t.Errorf("request %d begins before the one above it", i)
		}
		k := identity{rs[i].Tuple, rs[i].Opening}
		if seen[k] {
			t.Errorf("two requests are %s with opening %d", k.tuple, k.opening)
		}
		seen[k] = true
	}
}

// A damaged capture gives what was read before the damage, says so, and carries no absence.
func TestDamagedCapture(t *testing.T) {
	neverLeft := []part{
		interfaces("veth1", "eth0"), syn(pod+":43000 > "+server+":443", at(0), in("veth1"), isn(555)), snatted.carry(handshake(podToServer, at(10))...),
	}
	whole := resultOf(t, gke(t), neverLeft...)
	if r := &whole.Requests[0]; r.Source != NotSent || r.StoppedAt != StopNodeOut {
		t.Fatalf("whole, the capture carries that the request never left; got %s %s %+v", r.Source, r.StoppedAt, r.Unknown)
	}
	res := resultOf(t, gke(t), append(neverLeft, about(damagedEnd))...)
	if len(res.Requests) != 2 {
		t.Fatalf("got %d requests, want 2", len(res.Requests))
	}
	if c := &res.Captures[0]; c.DamageText != "packet 99 at byte 9000: cut" || c.Summary.Complete {
		t.Errorf("damage %q, complete %v", c.DamageText, c.Summary.Complete)
	}
	if r := &res.Requests[0]; r.Source == NotSent || r.StoppedAt == StopNodeOut {
		t.Errorf("damaged, the capture still carries an absence: %s %s", r.Source, r.StoppedAt)
	}
	if r := &res.Requests[1]; r.Outcome != HandshakeCompleted || r.Source != NodeSNATed {
		t.Errorf("what is in the damaged capture counts: got %s %s", r.Source, r.Outcome)
	}
}

func TestRunWithNothing(t *testing.T) {
	if _, err := Run(nil, nil, Options{}); err == nil {
		t.Error("no captures: no error")
	}
	res := resultOf(t, nil)
	if len(res.Requests) != 0 || len(res.Captures) != 1 {
		t.Errorf("an empty capture gives %d requests of %d captures", len(res.Requests), len(res.Captures))
	}
	// Points never merge across captures: two captures of one request are two views of it here, not one.
	one, two := captureOf(t, handshake(podToServer, at(1))), captureOf(t, handshake(podToServer, at(1)))
	if rs := runOf(t, nil, Options{}, one, two).Requests; len(rs) != 2 || rs[0].Legs[0].Capture != 0 || rs[1].Legs[0].Capture != 1 {
		t.Errorf("two captures of one request:\n%s", listOf(rs))
	}
}

// Tuple and opening make the stable id: they do not depend on what else is in the capture.
func TestOpeningIsStable(t *testing.T) {
	request := snatted.carry(handshake(podToServer, at(1.23))...)
	alone := requestOf(t, gke(t), request)
	for _, r := range requestsOf(t, gke(t), sorted(append(busy(2), request...))) {
		if r.Tuple == alone.Tuple && r.Opening == alone.Opening {
			return
		}
	}
	t.Error("beside other requests its tuple or opening changes")
}

// Tunnels' outer flows are carriers: listed with their packets, never judged.
func TestCarriers(t *testing.T) {
	const nodes = node + ":40000 > 10.128.0.11:4789"
	outer := func(mods ...mod) packet {
		p := udp(nodes, "outer", append([]mod{out("eth0")}, mods...)...)
		p.Attr |= wire.IsCarrier
		p.Tunnel = wire.TunnelVXLAN
		return p
	}
	res := resultOf(t, gke(t), outer(at(1), ipid(1)), syn(podToServer, at(1), out("eth0"), ttl(63), depth(1)), outer(at(2), ipid(2), marked(wire.IsOpaque)))
	if len(res.Requests) != 1 || res.Requests[0].Tuple.Proto != wire.ProtoTCP {
		t.Errorf("requests:\n%s", listOf(res.Requests))
	}
	if c := res.Carriers; len(c) != 1 || c[0].Packets != 2 || c[0].Tunnel != wire.TunnelVXLAN || c[0].Tuple != tupleOf(wire.ProtoUDP, nodes) {
		t.Errorf("carriers: %+v", c)
	}
}
