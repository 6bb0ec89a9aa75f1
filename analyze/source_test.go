package analyze

import (
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// A row says what a capture holds and what must be concluded of one request in it, in four words: direction, source with
// its basis, outcome, where it stopped. A reason of unknown[] stands in brackets behind the word it belongs to; a star is a
// word that the row does not speak of, and a leading ! is one that must not be said.
type verdictRow struct {
	name  string
	facts *cluster.Facts
	of    string // the request meant, as --request writes it; "" where the capture holds one
	parts []part
	want  string
}

// verdictOf writes a request's verdict in a row's words.
func verdictOf(r *Request) string {
	words := []string{r.Way.String(), r.Source.String(), r.Outcome.String(), r.StoppedAt.String()}
	if r.Basis != BasisNone {
		words[1] += "/" + r.Basis.String()
	}
	for i, field := range []string{"direction", "source", "outcome", "stopped_at"} {
		var reasons []string
		for _, u := range r.Unknown {
			if u.Field == field {
				reasons = append(reasons, u.Reason)
			}
		}
		if len(reasons) > 0 {
			words[i] += "(" + strings.Join(reasons, ",") + ")"
		}
	}
	return strings.Join(words, " ")
}

// meets compares a verdict with a row's four words.
func meets(got, want string) bool {
	g, w := strings.Fields(got), strings.Fields(want)
	if len(g) != 4 || len(w) != 4 {
		return false
	}
	for i := range g {
		switch {
		case w[i] == "*":
		case strings.HasPrefix(w[i], "!"):
			for bad := range strings.SplitSeq(w[i][1:], "|") {
				if bare, _, _ := strings.Cut(g[i], "("); bare == bad || strings.HasPrefix(bare, bad+"/") {
					return false
				}
			}
		case !slices.Contains(strings.Split(w[i], "|"), g[i]):
			return false
		}
	}
	return true
}

func checkRows(t *testing.T, rows []verdictRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			res := resultOf(t, row.facts, row.parts...)
			rs := res.Requests
			r := theRequest(t, rs, row.of)
			if got := verdictOf(r); !meets(got, row.want) {
				t.Errorf("got  %s\nwant %s\nunknown %+v\nreasons %q\nall:\n%s", got, row.want, r.Unknown, r.Reasons, listOf(rs))
			}
			checkHonest(t, rs)
			checkFindings(t, res)
		})
	}
}

func theRequest(t *testing.T, rs []Request, of string) *Request {
	t.Helper()
	var found []*Request
	var sel Selector
	rest := wire.MustAddr("224.0.0.251") // what goesOn sends
	if of != "" {
		var err error
		if sel, err = ParseSelector(of); err != nil {
			t.Fatal(err)
		}
	}
	for i := range rs {
		if of == "" && rs[i].Tuple.Dst == rest {
			continue
		}
		if sel.Match(&rs[i]) {
			found = append(found, &rs[i])
		}
	}
	if len(found) != 1 {
		t.Fatalf("%q picks %d requests, want one:\n%s", of, len(found), listOf(rs))
	}
	return found[0]
}

// checkHonest holds for every request of every capture: what is unknown says why in a sentence, what is known has a basis
// that may carry it and a reason, and nothing is said twice.
func checkHonest(t *testing.T, rs []Request) {
	t.Helper()
	for i := range rs {
		r := &rs[i]
		why := map[string]int{}
		for _, u := range r.Unknown {
			why[u.Field]++
			if u.Reason == "" || u.Text == "" || strings.ContainsAny(u.Reason, " _ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				t.Errorf("%s: unknown without a code and a sentence: %+v", r.Tuple, u)
			}
			if !slices.Contains([]string{"source", "outcome", "stopped_at", "direction"}, u.Field) {
				t.Errorf("%s: unknown[] names no field: %+v", r.Tuple, u)
			}
		}
		// A packet that did not leave has no address that it left with, and so no basis for one.
		if stayed := r.Source == SourceUnknown || r.Source == SourceLocal || r.Source == NotSent; stayed != (r.Basis == BasisNone) {
			t.Errorf("%s: source %s with basis %s", r.Tuple, r.Source, r.Basis)
		}
		if r.Source == SourceUnknown && why["source"] == 0 {
			t.Errorf("%s: source is unknown and nothing says why", r.Tuple)
		}
		if r.StoppedAt == StopUnknown && why["stopped_at"] == 0 {
			t.Errorf("%s: stopped_at is unknown and nothing says why", r.Tuple)
		}
		if r.StoppedAt != StopUnknown && why["stopped_at"] > 0 {
			t.Errorf("%s: stopped at %s and yet not known: %+v", r.Tuple, r.StoppedAt, r.Unknown)
		}
		if r.Source != SourceUnknown && why["source"] > 0 {
			t.Errorf("%s: source %s and yet not known: %+v", r.Tuple, r.Source, r.Unknown)
		}
		if r.Source != SourceUnknown && len(r.Reasons) == 0 {
			t.Errorf("%s: source %s without a reason", r.Tuple, r.Source)
		}
		// DESIGN section 4: the address alone carries these two and nothing else.
		if r.Basis == BasisAddress && r.Source != NodeSourced && r.Source != OtherSourced {
			t.Errorf("%s: %s on the address alone", r.Tuple, r.Source)
		}
		if r.Source == PodSourced && r.Egress != nil && r.Egress.Addr != r.Client.Addr {
			t.Errorf("%s: pod-sourced, and left as %s", r.Tuple, r.Egress.Addr)
		}
		if r.Source == NotSent && (r.Egress != nil || r.StoppedAt != StopNodeOut) {
			t.Errorf("%s: not-sent, left as %v, stopped at %s", r.Tuple, r.Egress, r.StoppedAt)
		}
	}
}

// The traffic that rows are made of.
const (
	podEnds  = pod + ":41000 > " + server + ":443"
	nodeEnds = node + ":51000 > " + server + ":443"
	podTCP   = "tcp " + pod + " > " + server + ":443"
)

// inOrder is several captures' packets as one capture would hold them.
func inOrder(parts ...many) many {
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(p, q packet) int { return int(p.Time - q.Time) })
	return all
}

// opened is a connection that opens t seconds behind the epoch, numbered by n so that two of them differ.
func opened(ends string, t float64, n uint32) many {
	return many{
		syn(ends, at(t), isn(n), stamp(n, 0)),
		synack(back(ends), at(t+0.010), isn(n+7000), acks(n+1), stamp(n+9, n), ttl(60)),
		ack(ends, at(t+0.0101), seq(n+1), acks(n+7001), stamp(n+1, n+9)),
	}
}

// goesOn is a capture that was still running at that second: a packet of the neighbourhood came by where the last one did.
func goesOn(until float64) about {
	return func(r *recording) {
		last := r.packets[len(r.packets)-1]
		p := udp("169.254.1.1:5353 > 224.0.0.251:5353", "rest", at(until), on(last.iface))
		if last.Dir != wire.DirUnknown {
			p.Dir = wire.DirIn
		}
		r.packets = append(r.packets, p)
	}
}

// answeredAt gives the answers of a connection another TTL.
func answeredAt(n uint8, m many) many {
	for i := range m {
		if m[i].Flags&(wire.SYN|wire.ACK) == wire.SYN|wire.ACK {
			m[i] = also(m[i], ttl(n))
		}
	}
	return m
}

// tries are the same SYN again and again, as a kernel repeats it.
func tries(ends string, times ...float64) many {
	var m many
	for i, t := range times {
		m = append(m, syn(ends, at(t), isn(31000), stamp(31000+uint32(1000*(t-times[0])), 0), ipid(uint16(700+i))))
	}
	return m
}

// seenAt is packets at one point only.
func seenAt(packets many, mods ...mod) many {
	var m many
	for _, p := range packets {
		m = append(m, also(p, mods...))
	}
	return m
}

func kept(ends string) natPath {
	c, s, _ := strings.Cut(ends, " > ")
	return natPath{client: c, server: s, podIf: "veth1", uplink: "eth0"}
}

func masqueraded(ends, as string) natPath {
	n := kept(ends)
	n.as = as
	return n
}

// neighbours is what else a node does while it captures: another Pod's masqueraded connection, the Pod's own to another
// server, the node's own. It shows that the host forwards for Pods, that frames out of veth1 and eth0 are in the capture,
// and it goes on for 20 seconds.
func neighbours() many {
	a, b, c := "10.4.0.8:42000 > 198.51.100.20:443", pod+":43000 > 198.51.100.21:443", node+":44000 > 198.51.100.22:80"
	other := masqueraded(a, node+":52000")
	other.podIf = "veth2"
	return inOrder(
		other.carry(opened(a, 0.1, 110000)...),
		masqueraded(b, node+":53000").carry(opened(b, 0.2, 120000)...),
		seenAt(opened(c, 0.3, 130000)[:1], out("eth0")), seenAt(opened(c, 0.3, 130000)[1:2], in("eth0")), seenAt(opened(c, 0.3, 130000)[2:], out("eth0")),
		seenAt(opened(c, 20, 140000)[:1], out("eth0"), between(node+":44001 > 198.51.100.22:80")),
	)
}

func TestSource(t *testing.T) {
	g := gke(t)
	onlyRanges := factsOf(t, "pod 10.4.0.0/14", "nodes 10.128.0.0/20")
	twoNICs := factsOf(t, "pod 10.4.0.0/14", "node "+node, "node 10.200.0.5")
	open := opened(podEnds, 1, 1000)
	lost := tries(podEnds, 1, 2, 4)
	uplink := func(ends string, n uint8) many {
		m := opened(ends, 1, 1000)
		return slices.Concat(seenAt(m[:1], out("eth0"), ttl(n)), seenAt(m[1:2], in("eth0")), seenAt(m[2:], out("eth0"), ttl(n)))
	}
	wireOf := func(iface, ends string, n uint8) many {
		m := opened(ends, 1, 1000)
		return slices.Concat(seenAt(m[:1], on(iface), ttl(n)), seenAt(m[1:2], on(iface)), seenAt(m[2:], on(iface), ttl(n)))
	}
	hairpin := func(src string) many {
		turn := natPath{client: pod + ":41000", server: "10.96.0.10:80", as: src, to: pod + ":8080", podIf: "veth1", uplink: "veth1"}
		return turn.carry(opened(pod+":41000 > 10.96.0.10:80", 1, 1000)...)
	}

	checkRows(t, []verdictRow{
		// Both legs in a capture of all interfaces: what joins them carries the source, and the address that left tells which.
		{"left with the Pod's address", g, "", []part{kept(podEnds).carry(open...)}, "outbound pod-sourced/translation|pod-sourced/egress handshake-completed none"},
		{"left with the node's address, port kept", g, "", []part{masqueraded(podEnds, node+":41000").carry(open...)}, "outbound node-snated/translation handshake-completed none"},
		{"left with the node's address and another port", g, "", []part{masqueraded(podEnds, node+":51000").carry(open...)}, "outbound node-snated/translation handshake-completed none"},
		{"left with an address that is nobody's", g, "", []part{masqueraded(podEnds, "10.200.0.5:51000").carry(open...)}, "outbound other-snated/translation handshake-completed none"},
		{"left with the address of the node's second interface, which is given", twoNICs, "", []part{masqueraded(podEnds, "10.200.0.5:51000").carry(open...)}, "outbound node-snated/translation handshake-completed none"},
		{"left with an egress gateway's address, unanswered", g, "", []part{masqueraded(podEnds, "203.0.113.77:51000").carry(lost...), goesOn(20)}, "outbound other-snated/translation request-only unknown(no-far-capture)"},
		{"left with an address in the node range, which need not be this node's", onlyRanges, "", []part{masqueraded(podEnds, node+":51000").carry(open...)}, "outbound node-snated/translation handshake-completed none"},
		{"no facts at all: a translation shows which address is the Pod's", nil, "", []part{masqueraded(podEnds, node+":51000").carry(open...)}, "* node-snated/translation handshake-completed none"},
		{"translated on the way out, as Pods are, for a sender that by the facts is none of the cluster's: the facts may be wrong", g, "", []part{masqueraded("10.9.9.9:41000 > 192.0.2.9:443", node+":51000").carry(opened("10.9.9.9:41000 > 192.0.2.9:443", 1, 1000)...)}, "transit unknown(facts-contradicted) handshake-completed none"},
		{"forwarded untranslated for a sender that is none of the cluster's", g, "", []part{kept("10.9.9.9:41000 > 192.0.2.9:443").carry(opened("10.9.9.9:41000 > 192.0.2.9:443", 1, 1000)...)}, "transit other-sourced/translation|other-sourced/egress handshake-completed none"},
		{"a Pod whose kernel begins at TTL 128", g, "", []part{masqueraded(podEnds, node+":51000").carry(seenAt(open, ttl(128))...)}, "outbound node-snated/translation * none"},
		{"a Pod whose kernel begins at TTL 65", g, "", []part{masqueraded(podEnds, node+":51000").carry(seenAt(open, ttl(65))...)}, "outbound node-snated/translation * none"},
		{"a traceroute probe that has one hop left behind the node", g, "", []part{masqueraded(podEnds, node+":51000").carry(seenAt(lost, ttl(2))...), goesOn(20)}, "outbound node-snated/translation request-only unknown(no-far-capture)"},

		// The uplink alone: TTL tells what the node forwarded from what it sent, on frames that go out.
		{"uplink: the Pod's address, one hop old", g, "", []part{uplink(podEnds, 63)}, "outbound pod-sourced/egress handshake-completed none"},
		{"uplink: the node's address, one hop old", g, "", []part{uplink(nodeEnds, 63)}, "outbound node-snated/egress handshake-completed none"},
		{"uplink: the node's address, 128 less a hop", g, "", []part{uplink(nodeEnds, 127)}, "outbound node-snated/egress handshake-completed none"},
		{"uplink: the node's address, 255 less a hop", g, "", []part{uplink(nodeEnds, 254)}, "outbound node-snated/egress handshake-completed none"},
		{"uplink: the node's address, a fresh TTL", g, "", []part{uplink(nodeEnds, 64)}, "outbound node-own/egress handshake-completed none"},
		{"uplink: the node's address, a TTL that tells nothing", g, "", []part{uplink(nodeEnds, 1)}, "outbound node-sourced/egress|node-sourced/address handshake-completed none"},
		{"uplink: the node's address, and the snap length cut nothing but no TTL is known", g, "", []part{seenAt(uplink(nodeEnds, 63), without(wire.KnowTTL))}, "outbound node-sourced/egress|node-sourced/address handshake-completed none"},
		{"uplink: an address in the node range, one hop old, may be another node's that this host routes for", onlyRanges, "", []part{uplink(nodeEnds, 63)}, "outbound !node-own handshake-completed none"},
		{"uplink without directions: the node's address", g, "", []part{single("eth0"), wireOf("eth0", nodeEnds, 61)}, "outbound node-sourced/address * *"},
		{"mirror port without directions: the Pod's address two hops old", g, "", []part{single("mon0"), wireOf("mon0", podEnds, 62)}, "* !node-snated|node-own|node-sourced|local|not-sent * *"},
		{"mirror port without directions: the node's address is not told own from forwarded two hops away", g, "", []part{single("mon0"), wireOf("mon0", nodeEnds, 62)}, "* node-sourced/address * *"},

		// Inside the Pod every packet has the Pod's address, whatever the node makes of it.
		{"inside the Pod, device any", g, "", []part{uplink(podEnds, 64)}, "outbound unknown(pod-side-capture-only) handshake-completed none"},
		{"inside the Pod, device any, no facts", nil, "", []part{uplink(podEnds, 64)}, "* !pod-sourced|node-own|node-snated|not-sent * *"},
		{"inside the Pod, device eth0", g, "", []part{single("eth0"), wireOf("eth0", podEnds, 64)}, "outbound unknown(pod-side-capture-only) handshake-completed none"},
		{"inside a Pod whose kernel begins at TTL 128", g, "", []part{uplink(podEnds, 128)}, "outbound unknown(pod-side-capture-only) handshake-completed none"},
		{"inside a Pod whose kernel begins at TTL 255", g, "", []part{uplink(podEnds, 255)}, "outbound unknown(pod-side-capture-only) handshake-completed none"},
		{"inside a Pod whose kernel begins at TTL 65", g, "", []part{uplink(podEnds, 65)}, "outbound !pod-sourced|node-own|not-sent handshake-completed *"},
		{"inside the Pod: traceroute's TTL 1 is not a packet on its last hop", g, "", []part{seenAt(lost, out("eth0"), ttl(1)), goesOn(20)}, "outbound !pod-sourced|not-sent request-only *"},
		{"inside the Pod: traceroute's TTL 30", g, "", []part{seenAt(lost, out("eth0"), ttl(30)), goesOn(20)}, "outbound !pod-sourced|not-sent request-only *"},
		{"the Pod's veth alone", g, "", []part{single("veth1"), wireOf("veth1", podEnds, 64)}, "outbound unknown(pod-side-capture-only) handshake-completed none"},
		{"the bridge alone", g, "", []part{single("cbr0"), wireOf("cbr0", podEnds, 64)}, "outbound unknown(pod-side-capture-only) handshake-completed none"},

		// Never meant to leave.
		{"hairpin: the Pod asks its Service and is given to itself, masqueraded by the bridge's address", g, "", []part{hairpin("10.4.0.1:41000")}, "local local handshake-completed *"},
		{"hairpin: masqueraded by the node's address", g, "", []part{hairpin(node + ":41000")}, "local local handshake-completed *"},
		{"a kubelet probe with the node's address", g, "", []part{seenAt(opened(node+":41000 > "+pod+":8080", 1, 1000)[:1], out("veth1")), seenAt(opened(node+":41000 > "+pod+":8080", 1, 1000)[1:2], in("veth1"), ttl(64)), seenAt(opened(node+":41000 > "+pod+":8080", 1, 1000)[2:], out("veth1"))}, "local local handshake-completed *"},
		{"a kubelet probe with the bridge's address, which lies in the Pod range", g, "", []part{seenAt(opened("10.4.0.1:41000 > "+pod+":8080", 1, 1000)[:1], out("cbr0")), seenAt(opened("10.4.0.1:41000 > "+pod+":8080", 1, 1000)[1:2], in("cbr0"), ttl(64)), seenAt(opened("10.4.0.1:41000 > "+pod+":8080", 1, 1000)[2:], out("cbr0"))}, "* !pod-sourced|node-snated|not-sent handshake-completed *"},
		{"Pod to Pod on one node", g, "", []part{natPath{client: pod + ":41000", server: "10.4.0.8:80", podIf: "veth1", uplink: "veth2"}.carry(answeredAt(64, opened(pod+":41000 > 10.4.0.8:80", 1, 1000))...)}, "local local handshake-completed *"},
		{"Pod to Pod, unanswered: the other Pod may be on this node", g, "", []part{natPath{client: pod + ":41000", server: "10.4.0.8:80", podIf: "veth1", uplink: "veth2"}.carry(tries(pod+":41000 > 10.4.0.8:80", 1, 2, 4)...), goesOn(20)}, "* unknown(destination-may-be-local) request-only *"},
		{"node-local DNS answers on the node", g, "", []part{udp(pod+":41000 > 169.254.20.10:53", "who?", at(1), in("veth1")), udp("169.254.20.10:53 > "+pod+":41000", "me", at(1.001), out("veth1"), ttl(64)), goesOn(20)}, "* !pod-sourced|not-sent answered *"},
		{"multicast that the node does not route", g, "udp " + pod + " > 224.0.0.251:5353", []part{inOrder(neighbours(), many{udp(pod+":5353 > 224.0.0.251:5353", "mdns", at(1), in("veth1"), ttl(255))})}, "* !not-sent|pod-sourced * !node-out"},
		{"a DHCP discover in the Pod's network", g, "udp 0.0.0.0 > 255.255.255.255:67", []part{inOrder(neighbours(), many{udp("0.0.0.0:68 > 255.255.255.255:67", "dhcp", at(1), in("veth1"))})}, "* !not-sent|pod-sourced|other-sourced * !node-out"},
		{"the node's own DHCP renewal", g, "udp 0.0.0.0 > 255.255.255.255:67", []part{inOrder(neighbours(), many{udp("0.0.0.0:68 > 255.255.255.255:67", "dhcp", at(1), out("eth0"))})}, "* !not-sent|pod-sourced|other-sourced|node-snated * !node-out"},
		{"the metadata address, answered by the node", g, "tcp " + pod + " > 169.254.169.254:80", []part{inOrder(neighbours(), seenAt(opened(pod+":41000 > 169.254.169.254:80", 1, 1000)[:1], in("veth1")), seenAt(opened(pod+":41000 > 169.254.169.254:80", 1, 1000)[1:2], out("veth1"), ttl(64)), seenAt(opened(pod+":41000 > 169.254.169.254:80", 1, 1000)[2:], in("veth1")))}, "* local|unknown(destination-may-be-local)|unknown(egress-not-joined) handshake-completed *"},
		{"the metadata address, unanswered: the node may serve it itself", g, "tcp " + pod + " > 169.254.169.254:80", []part{inOrder(neighbours(), seenAt(tries(pod+":41000 > 169.254.169.254:80", 1, 2, 4), in("veth1")))}, "* !not-sent * !node-out"},
		{"a Pod asks the node's own address", g, "tcp " + pod + " > " + node + ":10250", []part{inOrder(neighbours(), seenAt(opened(pod+":41000 > "+node+":10250", 1, 1000)[:1], in("veth1")), seenAt(opened(pod+":41000 > "+node+":10250", 1, 1000)[1:2], out("veth1"), ttl(64)), seenAt(opened(pod+":41000 > "+node+":10250", 1, 1000)[2:], in("veth1")))}, "local local handshake-completed *"},
		{"a Pod asks the node's own address, which does not answer", g, "tcp " + pod + " > " + node + ":10250", []part{inOrder(neighbours(), seenAt(tries(pod+":41000 > "+node+":10250", 1, 2, 4), in("veth1")))}, "local !not-sent|pod-sourced request-only !node-out|between"},

		// From outside, to a Pod: the sender is none of the cluster's, translated or not.
		{"NodePort, source kept", g, "", []part{natPath{client: "192.0.2.9:5000", server: node + ":30080", to: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(opened("192.0.2.9:5000 > "+node+":30080", 1, 1000)...)}, "inbound other-sourced/translation * *"},
		{"NodePort, source translated to the node's", g, "", []part{natPath{client: "192.0.2.9:5000", server: node + ":30080", as: node + ":6000", to: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(opened("192.0.2.9:5000 > "+node+":30080", 1, 1000)...)}, "inbound other-sourced/translation * *"},
		{"NodePort whose Pod is on another node: out where it came in", g, "", []part{natPath{client: "192.0.2.9:5000", server: node + ":30080", as: node + ":6000", to: "10.5.0.7:8080", podIf: "eth0", uplink: "eth0"}.carry(opened("192.0.2.9:5000 > "+node+":30080", 1, 1000)...)}, "!outbound|local other-sourced/translation * *"},
		{"direct return: the request passes on, the answer goes another way", g, "", []part{natPath{client: "192.0.2.9:5000", server: node + ":30080", to: "10.5.0.7:8080", podIf: "eth0", uplink: "eth0"}.carry(tries("192.0.2.9:5000 > "+node+":30080", 1)...), goesOn(20)}, "!outbound|local other-sourced/translation * !none|node-out|node-in"},
		{"straight to the Pod, from outside", g, "", []part{natPath{client: "192.0.2.9:5000", server: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(opened("192.0.2.9:5000 > "+pod+":8080", 1, 1000)...)}, "inbound other-sourced/translation|other-sourced/egress * *"},

		// Where the capture was not taken on the node, nothing of the node may be concluded from it.
		{"a router past the node given as near: the Pod's address comes in one hop old and goes out two", g, "", []part{natPath{client: pod + ":41000", server: server + ":443", podIf: "n0", uplink: "o0"}.carry(seenAt(open, ttl(63))...)}, "* !node-snated|node-own|not-sent|local * !node-out"},
		{"a router past the node drops the Pod's packets", g, "", []part{seenAt(lost, in("n0"), ttl(63)), goesOn(20)}, "* !not-sent|node-snated|local request-only !node-out|between"},
		{"the far host given as near, and silent", g, "", []part{seenAt(lost, in("ens4"), ttl(62)), goesOn(20)}, "* !not-sent|node-snated|local request-only !node-out|node-in"},
		{"the far host given as near, one hop from the Pod, and silent", g, "", []part{seenAt(lost, in("ens4"), ttl(63)), goesOn(20)}, "* !not-sent|local request-only !node-out|node-in"},
		{"a router past the node passes the node's packets on: who made them does not show", g, "", []part{natPath{client: node + ":51000", server: server + ":443", podIf: "n0", uplink: "o0"}.carry(seenAt(opened(nodeEnds, 1, 1000), ttl(64))...)}, "* !node-snated|pod-sourced|other-sourced * none"},
		{"a router one hop further", g, "", []part{natPath{client: node + ":51000", server: server + ":443", podIf: "n0", uplink: "o0"}.carry(seenAt(opened(nodeEnds, 1, 1000), ttl(63))...)}, "* !node-snated|pod-sourced|other-sourced|node-own * none"},

		// A kernel translates no packet that belongs to no tracked connection.
		{"a lone FIN with the Pod's address", g, "", []part{fin(podEnds, at(1), out("eth0"), ttl(63)), goesOn(20)}, "* unknown(no-tracked-connection) * *"},
		{"a lone RST with the Pod's address", g, "", []part{rst(podEnds, at(1), out("eth0"), ttl(63)), goesOn(20)}, "* unknown(no-tracked-connection) * *"},
		{"late data one way with the Pod's address", g, "", []part{data(podEnds, 10, at(1), out("eth0"), ttl(63)), goesOn(20)}, "* unknown(no-tracked-connection) * *"},
		{"an old connection with data both ways has its mapping", g, "", []part{kept(podEnds).carry(data(podEnds, 10, at(1)), dataBack(back(podEnds), 20, at(1.01), acks(clientISN+11), ttl(60)), ack(podEnds, at(1.02), seq(clientISN+11), acks(serverISN+21))), goesOn(20)}, "outbound pod-sourced/translation|pod-sourced/egress midstream none"},

		// Two nodes' captures in one file: interface numbers name two different devices.
		{"from a Pod of one node to a Pod of the other", g, "", []part{inOrder(
			kept(pod+":41000 > 10.5.0.9:80").carry(opened(pod+":41000 > 10.5.0.9:80", 1, 1000)[:1]...),
			natPath{client: pod + ":41000", server: "10.5.0.9:80", podIf: "eth0", uplink: "veth1"}.carry(seenAt(opened(pod+":41000 > 10.5.0.9:80", 1.001, 1000)[:1], ttl(63))...),
		), goesOn(20)}, "* !local|not-sent|node-own|node-snated * !node-out"},

		// The answer to another address than the one that asked is nobody's answer.
		{"the request left untranslated, and the answer comes for the node's address", g, "tcp " + pod + " > " + server + ":443", []part{inOrder(
			kept(podEnds).carry(lost...),
			many{synack(server+":443 > "+node+":41000", at(1.01), in("eth0"), acks(31001), ttl(60))},
		), goesOn(20)}, "outbound pod-sourced/translation|pod-sourced/egress request-only !none|node-in|node-out"},

		// Through a tunnel that was decoded: the inner packet is what left.
		{"the Pod's packet leaves inside VXLAN", g, "", []part{inOrder(seenAt(lost, in("veth1")), seenAt(lost, out("eth0"), depth(1), ttl(63), later(50e-6))), goesOn(20)}, "outbound pod-sourced/translation|pod-sourced/egress request-only unknown(no-far-capture)"},
	})
}

// What is concluded from TTL alone is said to be concluded: DESIGN section 4.
func TestForwardedTTLIsSaidToBeAnInference(t *testing.T) {
	m := opened(nodeEnds, 1, 1000)
	r := requestOf(t, gke(t), seenAt(m[:1], out("eth0"), ttl(63)), seenAt(m[1:2], in("eth0")))
	if r.Source != NodeSNATed {
		t.Fatalf("source %s", r.Source)
	}
	for _, s := range r.Reasons {
		if strings.Contains(strings.ToLower(string(s)), "infer") || strings.Contains(string(s), "conclu") {
			return
		}
	}
	t.Errorf("no reason says that it is an inference: %q", r.Reasons)
}

// What is not known to have left has no source "as it left", and is not counted among those.
func TestPodSideHasNoEgress(t *testing.T) {
	m := opened(podEnds, 1, 1000)
	res := resultOf(t, gke(t), seenAt(m[:1], out("eth0")), seenAt(m[1:2], in("eth0")), seenAt(m[2:], out("eth0")))
	r := &res.Requests[0]
	if r.Egress != nil {
		t.Errorf("inside the Pod: egress %v, source %s", r.Egress.Addr, r.Source)
	}
	for _, l := range r.Legs {
		if l.Kind == LegEgress {
			t.Errorf("inside the Pod: a leg is called %s", l.Kind)
		}
	}
	if len(res.Sources) > 0 {
		t.Errorf("inside the Pod: sources %+v", res.Sources)
	}
}

// A match of a range of nodes reads "in the node range", never "this node": DESIGN section 4.
func TestNodeRangeIsNotThisNode(t *testing.T) {
	facts := factsOf(t, "pod 10.4.0.0/14", "nodes 10.128.0.0/20")
	r := requestOf(t, facts, masqueraded(podEnds, node+":51000").carry(opened(podEnds, 1, 1000)...))
	said := ""
	for _, s := range r.Reasons {
		said += string(s) + "\n"
	}
	if strings.Contains(said, "this node") || strings.Contains(said, "the node's address") || !strings.Contains(said, "node range") {
		t.Errorf("the reasons say: %s", said)
	}
}

// entry is an entry of the node's connection table: a connection, and what its requests carry when they leave.
func entry(ends, leaving string) about {
	return func(r *recording) {
		proto := wire.ProtoTCP
		if r.input.Connections == nil {
			r.input.Connections = &cluster.Connections{}
		}
		r.input.Connections.Add(wire.Connection{Orig: tupleOf(proto, ends), Reply: tupleOf(proto, leaving).Mirror()})
	}
}

// The kernel's connection table speaks where the packets do not carry the source, and nowhere else.
func TestSourceConnectionTable(t *testing.T) {
	g := gke(t)
	ends := podEnds // pod:41000 > server:443
	left := node + ":52001 > " + server + ":443"
	conn := opened(ends, 1, 31000)
	podSide := []part{single("veth1"), seenAt(conn, on("veth1"))}
	leaves := out
	out := masqueraded(ends, node+":52001").carry(conn...)
	uplink := func(mods ...mod) []part {
		var m many
		for _, p := range out {
			if p.iface == "eth0" {
				m = append(m, also(p, append([]mod{on("eth0")}, mods...)...))
			}
		}
		return []part{single("eth0"), m}
	}
	with := func(parts []part, more ...part) []part { return append(slices.Clone(parts), more...) }
	rewritten := func(from uint32) part { // one side of the node with other sequence numbers, no timestamps, no IP ID
		var m many
		for _, p := range out {
			if p.iface == "eth0" {
				p.Seq, p.Ack = p.Seq+from, p.Ack+from
			}
			m = append(m, also(p, bare, noIPID))
		}
		return m
	}
	lost := seenAt(tries(ends, 1, 2, 4), in("veth1"))
	hop := func(p *packet) { ttl(p.TTL - 1)(p) }
	out1 := leaves("eth0")
	toPod := pod + ":41000 > 10.4.0.9:443"
	checkRows(t, []verdictRow{
		{"the Pod's side alone", g, "", podSide, "* unknown(pod-side-capture-only) handshake-completed *"},
		{"the Pod's side and an entry that translates", g, "", with(podSide, entry(ends, left)), "outbound node-snated/conntrack handshake-completed none"},
		{"the Pod's side and an entry that does not", g, "", with(podSide, entry(ends, ends)), "outbound pod-sourced/conntrack handshake-completed none"},
		{"the Pod's side and an entry with a stranger's address", g, "", with(podSide, entry(ends, "198.51.100.77:4000 > "+server+":443")), "outbound other-snated/conntrack handshake-completed none"},
		{"an entry of another connection", g, "", with(podSide, entry(pod+":41001 > "+server+":443", left)), "* unknown(pod-side-capture-only) handshake-completed *"},
		{"two entries one after the other, which differ", g, "", with(podSide, entry(ends, left), entry(ends, ends)), "* unknown(pod-side-capture-only) handshake-completed *"},
		{"two entries that say the same", g, "", with(podSide, entry(ends, left), entry(ends, left)), "outbound node-snated/conntrack handshake-completed none"},
		{"a destination that may be a Pod of this node", g, "", with([]part{single("veth1"), seenAt(opened(toPod, 1, 31000), on("veth1"))}, entry(toPod, toPod)), "* unknown(pod-side-capture-only) handshake-completed *"},
		{"the far side: it is not that node's table", g, "", with([]part{about(onFarSide), seenAt(conn, on("ens4"))}, entry(ends, left)), "* pod-sourced/far handshake-completed *"},

		{"the uplink alone, no ttl", g, "", uplink(without(wire.KnowTTL)), "outbound node-sourced/address handshake-completed *"},
		{"the uplink alone, no ttl, and an entry: the client is the Pod", g, "tcp " + pod + " > " + server, with(uplink(without(wire.KnowTTL)), entry(ends, left)), "outbound node-snated/conntrack handshake-completed none"},
		{"the uplink alone with a ttl: the entry is stronger", g, "tcp " + pod + " > " + server, with(uplink(), entry(ends, left)), "outbound node-snated/conntrack handshake-completed none"},
		{"the uplink alone, and an entry that leaves otherwise", g, "", with(uplink(without(wire.KnowTTL)), entry(ends, node+":52002 > "+server+":443")), "outbound node-sourced/address handshake-completed *"},

		{"the uplink alone, which the Pod's address leaves by, and an entry that translates: the wire is the fact", g, "", []part{single("eth0"), seenAt(conn, on("eth0"), hop), entry(ends, left)}, "outbound pod-sourced/egress handshake-completed none"},
		{"the same with directions", g, "", []part{seenAt(conn[:1], out1, hop), seenAt(conn[1:2], in("eth0")), seenAt(conn[2:], out1, hop), entry(ends, left)}, "outbound pod-sourced/egress handshake-completed none"},

		{"both sides joined by the packets: the entry adds nothing", g, "", []part{out, entry(ends, left)}, "outbound node-snated/translation handshake-completed none"},
		{"both sides joined by the packets, and an entry that contradicts: the wire is the fact", g, "", []part{out, entry(ends, ends)}, "outbound node-snated/translation handshake-completed none"},
		{"both sides joined by the packets, and an entry that joins another one", g, podTCP, []part{inOrder(out, masqueraded(pod+":41009 > "+server+":80", node+":52002").carry(opened(pod+":41009 > "+server+":80", 1.1, 61000)...)), entry(ends, node+":52002 > "+server+":80")}, "outbound node-snated/translation handshake-completed none"},
		{"both sides, and nothing that joins them", g, "tcp " + pod + " > " + server, []part{rewritten(5000)}, "* !node-snated handshake-completed *"},
		{"both sides, which the entry joins", g, "", []part{rewritten(5000), entry(ends, left)}, "outbound node-snated/conntrack handshake-completed none"},

		{"never left", g, podTCP, []part{inOrder(neighbours(), lost)}, "outbound not-sent request-only node-out"},
		{"never left, by the packets, and an entry says that it passed on", g, podTCP, []part{inOrder(neighbours(), lost), entry(ends, left)}, "outbound unknown(conntrack-disagrees) request-only *"},
	})
	// A connection of the same ports at another time is not the other side.
	if rs := requestsOf(t, g, seenAt(conn[:1], in("veth1")), seenAt(opened(left, 500, 71000)[:1], leaves("eth0"), hop), goesOn(510), entry(ends, left)); len(rs) != 3 {
		t.Errorf("%d requests, want 3 with the neighbourhood's:\n%s", len(rs), listOf(rs))
	}
	// What is said beside the verdict.
	r := requestOf(t, g, out, entry(ends, ends))
	if !slices.ContainsFunc(r.Reasons, func(s Reason) bool {
		return strings.Contains(string(s), "is not what left: another connection with these ports")
	}) {
		t.Errorf("reasons %q", r.Reasons)
	}
	r = requestOf(t, g, with(uplink(), entry(pod+":41000 > 10.96.0.9:80", left))...)
	if r.Server.Addr != wire.MustAddr("10.96.0.9") || r.Backend == nil || r.Backend.Addr != wire.MustAddr(server) || r.Egress == nil || r.Egress.Addr != wire.MustAddr(node) || r.Client.Addr != wire.MustAddr(pod) {
		t.Errorf("client %v, server %v, backend %v, egress %v", r.Client, r.Server, r.Backend, r.Egress)
	}
}
