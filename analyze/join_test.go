package analyze

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// chainOf is a request's way through the node and what joined it: "POD > SERVER | NODE > SERVER exact".
func chainOf(r *Request) string {
	var legs []string
	for i := range r.Legs {
		t := &r.Legs[i].Tuple
		_, ends, _ := strings.Cut(t.String(), " ")
		legs = append(legs, ends)
	}
	s := strings.Join(legs, " | ")
	for _, j := range r.Joins {
		s += " " + j.Confidence.String()
	}
	return s
}

func chainsOf(rs []Request) string {
	var lines []string
	for i := range rs {
		lines = append(lines, chainOf(&rs[i]))
	}
	return strings.Join(lines, "\n")
}

// Only what translation leaves alone joins, and only where one partner fits (DESIGN section 7).
func TestJoin(t *testing.T) {
	const (
		podIn   = podToServer
		nodeOut = nodeToServer
		joined  = podIn + " | " + nodeOut
		apart   = podIn + "\n" + nodeOut
	)
	s := syn(podIn, at(1), in("veth1"), isn(7), stamp(99, 0), ipid(31))
	leaves := func(mods ...mod) packet {
		return also(s, append([]mod{between(nodeOut), out("eth0"), later(50e-6), ttl(63)}, mods...)...)
	}
	q := udp(podToDNS, "a question of its own", at(1), in("veth1"), ipid(31))
	asked := func(mods ...mod) packet {
		return also(q, append([]mod{between(node + ":52000 > " + server + ":53"), out("eth0"), later(50e-6), ttl(63)}, mods...)...)
	}
	const udpJoined, udpApart = podToDNS + " | " + node + ":52000 > " + server + ":53", podToDNS + "\n" + node + ":52000 > " + server + ":53"
	const podTwo = "10.4.0.8:41000 > " + server + ":443"
	longText := strings.Repeat("the first sixteen and more than sixty-four bytes of one payload ", 2)
	for _, tt := range []struct {
		sentence string
		parts    []part
		want     string
	}{
		// TCP: ISN with timestamp value and IP ID.
		{"ISN, timestamp and IP ID agree", []part{s, leaves()}, joined + " exact"},
		{"the window, the MSS and the VLAN may change", []part{s, leaves(vlan(12), func(p *packet) { p.Window, p.MSS = 100, 1360 })}, joined + " exact"},
		{"a stack without timestamps: ISN and IP ID agree", []part{also(s, bare), leaves(bare)}, joined + " exact"},
		{"IP IDs of zero, as sent with a full-zero policy: ISN and timestamp agree", []part{also(s, ipid(0)), leaves(ipid(0))}, joined + " exact"},
		{"the IP ID was never captured", []part{also(s, noIPID), leaves(noIPID)}, joined + " exact"},
		{"all three agree, and no hop was taken off: a bridged way, or a rule that sets the TTL", []part{s, leaves(ttl(64))}, joined + " exact"},
		{"another ISN", []part{s, leaves(isn(8))}, apart},
		{"the ISN agrees and the timestamp does not", []part{s, leaves(stamp(5000, 0), ipid(32))}, apart},
		{"the ISN agrees, the timestamp does not, and the IP ID is not known", []part{also(s, noIPID), leaves(noIPID, stamp(5000, 0))}, apart},
		{"ISN and timestamp agree and the IP ID does not: perhaps another transmission", []part{s, leaves(ipid(32))}, joined + " probable"},
		{"only the ISN agrees, of a stack without timestamps", []part{also(s, bare), leaves(bare, ipid(32))}, apart},
		{"the same address and port, translated nothing", []part{s, leaves(between(podIn))}, podIn + " | " + podIn + " exact"},
		{"the same ISN, an hour later", []part{s, leaves(later(3600))}, apart},
		{"the same ISN to another server, and nothing else", []part{s, leaves(between(node+":52000 > 203.0.113.5:8443"), stamp(5000, 0), ipid(32))}, podIn + "\n" + node + ":52000 > 203.0.113.5:8443"},
		{"out before in, by less than a millisecond: two receive queues", []part{leaves(), also(s, later(200e-6))}, joined + " exact"},
		{"the first SYN was not captured leaving, the second was", []part{s, also(s, at(2), ipid(32), stamp(1099, 0)), leaves(at(2.00005), ipid(32), stamp(1099, 0))}, joined + " probable"},
		{"IPv6 with SNAT", []part{
			syn("[2001:db8:4::7]:41000 > [2001:db8:9::9]:443", at(1), in("veth1"), isn(7), stamp(99, 0)),
			syn("[2001:db8:1::10]:52000 > [2001:db8:9::9]:443", at(1.00005), out("eth0"), isn(7), stamp(99, 0), ttl(63)),
		}, "[2001:db8:4::7]:41000 > [2001:db8:9::9]:443 | [2001:db8:1::10]:52000 > [2001:db8:9::9]:443 exact"},
		// The destination can change on the node, before or behind the bridge, with or without the source.
		{"ClusterIP to endpoint", []part{
			also(s, between(pod+":41000 > 10.96.0.10:80")), leaves(between(pod + ":41000 > 192.0.2.9:8080")),
		}, pod + ":41000 > 10.96.0.10:80 | " + pod + ":41000 > 192.0.2.9:8080 exact"},
		{"ClusterIP to endpoint, and the source", []part{
			also(s, between(pod+":41000 > 10.96.0.10:80")), leaves(between(node + ":52000 > 192.0.2.9:8080")),
		}, pod + ":41000 > 10.96.0.10:80 | " + node + ":52000 > 192.0.2.9:8080 exact"},
		{"ClusterIP, changed already where the bridge shows it, then the source", []part{
			also(s, between(pod+":41000 > 10.96.0.10:80")), also(s, between(pod+":41000 > 192.0.2.9:8080"), in("cbr0")),
			leaves(between(node + ":52000 > 192.0.2.9:8080")),
		}, pod + ":41000 > 10.96.0.10:80 | " + pod + ":41000 > 192.0.2.9:8080 | " + node + ":52000 > 192.0.2.9:8080 exact"},
		// More than one partner fits: no join.
		{"two Pods with one fingerprint, one of them translated", []part{s, also(s, between(podTwo), in("veth2")), leaves()}, podIn + "\n" + podTwo + "\n" + nodeOut},
		{"two translations of one packet", []part{s, leaves(), leaves(between(node + ":52001 > " + server + ":443"))}, podIn + "\n" + nodeOut + "\n" + node + ":52001 > " + server + ":443"},
		{"two Pods with one ISN, told apart by their timestamps", []part{
			s, also(s, between(podTwo), in("veth2"), stamp(55, 0), ipid(90)), leaves(),
			leaves(between(node+":52001 > "+server+":443"), stamp(55, 0), ipid(90)),
		}, joined + " exact\n" + podTwo + " | " + node + ":52001 > " + server + ":443 exact"},
		// Midstream: sequence ranges, whatever offload makes of the segments.
		{"segments of a connection that was open already", []part{
			data(podIn, 100, at(1), in("veth1"), seq(500), acks(900), ipid(31)), data(nodeOut, 100, at(1.00005), out("eth0"), ttl(63), seq(500), acks(900), ipid(31)),
			dataBack(serverToNode, 50, at(1.01), in("eth0"), ttl(60), seq(900), acks(600), ipid(77)), dataBack(serverToPod, 50, at(1.01005), out("veth1"), ttl(59), seq(900), acks(600), ipid(77)),
		}, joined + " exact"},
		// UDP: exact only with equal IP IDs that are not zero, or a payload that is unique.
		{"datagrams: payload and IP ID agree", []part{q, asked()}, udpJoined + " exact"},
		{"datagrams without an IP ID: a unique payload", []part{also(q, ipid(0)), asked(ipid(0))}, udpJoined + " exact"},
		{"a datagram of the node's own, by its TTL", []part{also(q, ipid(0)), asked(ipid(0), ttl(64))}, udpApart},
		{"a datagram that would have gained a hop", []part{also(q, ipid(0), ttl(62)), asked(ipid(0), ttl(64))}, udpApart},
		{"datagrams of which one was cut at 16 bytes of payload (a carrier's headers took the room)", []part{
			also(q, payload(longText)), asked(payload(longText), without(wire.KnowDigest64|wire.KnowDigestAll)),
		}, udpJoined + " exact"},
		{"datagrams: the IP ID agrees and the payload does not", []part{q, asked(payload("something quite different"))}, udpApart},
		{"datagrams: the payload agrees and the IP ID does not", []part{q, asked(ipid(32))}, udpApart},
		{"datagrams: the payload agrees, a second later", []part{also(q, ipid(0)), asked(ipid(0), later(1))}, udpApart},
		{"two Pods ask the same without IP IDs, both translated", []part{
			also(q, ipid(0)), also(q, ipid(0), between("10.4.0.8:41000 > "+server+":53"), in("veth2")),
			asked(ipid(0)), asked(ipid(0), between(node+":52001 > "+server+":53")),
		}, udpApart[:len(podToDNS)] + "\n10.4.0.8:41000 > " + server + ":53\n" + node + ":52000 > " + server + ":53\n" + node + ":52001 > " + server + ":53"},
		{"two Pods ask the same, told apart by their IP IDs", []part{
			q, also(q, ipid(40), between("10.4.0.8:41000 > "+server+":53"), in("veth2")),
			asked(), asked(ipid(40), between(node+":52001 > "+server+":53")),
		}, udpJoined + " exact\n10.4.0.8:41000 > " + server + ":53 | " + node + ":52001 > " + server + ":53 exact"},
		// Echo: the identifier may change.
		{"a ping, its identifier rewritten", []part{
			echo(podPing, 77, 1, at(1), in("veth1"), ipid(31)), also(echo(podPing, 77, 1, ipid(31)), between(node+" > "+server), echoID(30371), at(1.00005), out("eth0"), ttl(63)),
		}, pod + " > " + server + " id 77 | " + node + " > " + server + " id 30371 exact"},
		{"pings of two Pods with one sequence number and different data", []part{
			echo(podPing, 77, 1, at(1), in("veth1"), ipid(0)), echo("10.4.0.8 > "+server, 78, 1, at(1), in("veth2"), ipid(0)),
			also(echo(podPing, 77, 1, ipid(0)), between(node+" > "+server), echoID(900), at(1.00005), out("eth0"), ttl(63)),
			also(echo(podPing, 78, 1, ipid(0)), between(node+" > "+server), echoID(901), at(1.00005), out("eth0"), ttl(63)),
		}, pod + " > " + server + " id 77 | " + node + " > " + server + " id 900 exact\n10.4.0.8 > " + server + " id 78 | " + node + " > " + server + " id 901 exact"},
		// SCTP: the INIT's tag.
		{"an INIT, its source rewritten", []part{
			chunk(podIn, wire.ChunkInit, at(1), seq(4711), in("veth1"), ipid(31)), chunk(nodeOut, wire.ChunkInit, at(1.00005), seq(4711), out("eth0"), ttl(63), ipid(31)),
		}, joined + " exact"},
		// Protocols do not mix.
		{"a datagram and a segment of one number", []part{s, asked(isn(7))}, podIn + "\n" + node + ":52000 > " + server + ":53"},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			rs := requestsOf(t, gke(t), append([]part{interfaces("veth1", "eth0"), window(-10, 10_000)}, tt.parts...)...)
			if got := chainsOf(rs); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// simulated is a node that translates, with the truth about what it did.
type simulated struct {
	packets  many
	truth    map[wire.Tuple]wire.Tuple // a Pod's tuple to what left the node
	joinable map[wire.Tuple]bool       // TCP whose opening was captured on both sides
}

// simulate makes a capture of flows that several Pods open to a few servers at once, through a node that gives each a random
// port. ISNs and timestamps are drawn from isns and stamps numbers; packets get lost on the way through the node, behind it,
// and from the capture; what is not answered is sent again.
func simulate(r *rand.Rand, flows int, isns, stamps uint64) simulated {
	sim := simulated{truth: make(map[wire.Tuple]wire.Tuple), joinable: make(map[wire.Tuple]bool)}
	used := make(map[string]bool)
	free := func(ip, to string, n int) string {
		for {
			e := fmt.Sprintf("%s:%d > %s", ip, 1024+r.IntN(n), to)
			if !used[e] {
				used[e] = true
				return e
			}
		}
	}
	now := 1.0
	for range flows {
		now += r.Float64() * 0.002
		client := fmt.Sprintf("10.4.0.%d", 2+r.IntN(6))
		veth := "veth" + client[len(client)-1:]
		udpFlow := r.IntN(3) == 0
		to := fmt.Sprintf("192.0.2.%d:443", 9+r.IntN(3))
		if udpFlow {
			to = "192.0.2.53:53"
		}
		inner, outer := free(client, to, 60000), free(node, to, 64000)
		seen := func() bool { return r.IntN(50) != 0 } // by the capture
		proto, id := wire.ProtoTCP, uint16(1+r.IntN(0xffff))
		first := syn(inner, isn(uint32(r.Uint64N(isns))), stamp(uint32(r.Uint64N(stamps)), 0), ipid(id))
		if udpFlow {
			proto = wire.ProtoUDP
			first = udp(inner, []string{"the same question", "another common question"}[r.IntN(2)], ipid(0))
			if r.IntN(2) == 0 {
				first = udp(inner, fmt.Sprint("question ", r.Uint32()), ipid(0))
			}
		}
		innerTuple := tupleOf(proto, inner)
		sim.truth[innerTuple] = tupleOf(proto, outer)
		bothSeen := false
		when := now
		for attempt := range 4 {
			sent := also(first, at(when), in(veth))
			left := also(sent, between(outer), out("eth0"), ttl(63), later(20e-6+r.Float64()*80e-6))
			if attempt > 0 && !udpFlow {
				id++
				for _, p := range []*packet{&sent, &left} {
					p.IPID, p.TSVal = id, first.TSVal+uint32(1000*attempt)
				}
			}
			seenIn, seenOut := seen(), seen()
			if seenIn {
				sim.packets = append(sim.packets, sent)
			}
			if r.IntN(20) == 0 { // lost in the node
				when += 1
				continue
			}
			if seenOut {
				sim.packets = append(sim.packets, left)
			}
			bothSeen = bothSeen || seenIn && seenOut
			if r.IntN(10) == 0 { // lost behind it
				when += 1
				continue
			}
			answer := udp(back(outer), "answer", ipid(0), ttl(60))
			if !udpFlow {
				answer = synack(back(outer), isn(r.Uint32()), acks(first.Seq+1), ipid(0), ttl(60))
			}
			answer = also(answer, at(when+0.01), in("eth0"))
			if seen() {
				sim.packets = append(sim.packets, answer)
			}
			if seen() {
				sim.packets = append(sim.packets, also(answer, between(back(inner)), out(veth), ttl(59), later(30e-6)))
			}
			if !udpFlow {
				a := also(first, at(when+0.0101), in(veth), seq(first.Seq+1), acks(answer.Seq+1), ipid(id+1), func(q *packet) { q.Flags = wire.ACK })
				sim.packets = append(sim.packets, a, also(a, between(outer), out("eth0"), ttl(63), later(40e-6)))
			}
			break
		}
		if bothSeen && !udpFlow {
			sim.joinable[innerTuple] = true
		}
	}
	return sim
}

// A translation that did not happen is never reported, however numbers collide; and nearly every one whose opening was
// captured on both sides is.
func TestSimulatedTranslation(t *testing.T) {
	for _, tt := range []struct {
		sentence     string
		seeds        uint64
		flows        int
		isns, stamps uint64
		atLeast      float64 // share of TCP connections joined
	}{
		{"numbers as hosts draw them", 8, 1500, 1 << 32, 1 << 32, 0.999},
		{"four flows share an ISN", 8, 1500, 375, 200, 0.999},
		{"a handful of flows, alike in all but ports", 400, 4, 1, 1, 0},
		{"all flows share one ISN", 1, 3000, 1, 1 << 32, 0.9},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			joinable, joined, joins := 0, 0, 0
			for seed := range tt.seeds {
				sim := simulate(rand.New(rand.NewPCG(seed, 7)), tt.flows, tt.isns, tt.stamps)
				rs := requestsOf(t, gke(t), sorted(sim.packets))
				found := make(map[wire.Tuple]bool)
				for i := range rs {
					r := &rs[i]
					if len(r.Joins) == 0 {
						continue
					}
					joins++
					first, last := r.Legs[0].Tuple, r.Legs[len(r.Legs)-1].Tuple
					if want, ok := sim.truth[first]; !ok || want != last {
						t.Fatalf("seed %d: %s\n joined to %s, left as %s (%+v)", seed, first, last, want, r.Joins)
					}
					found[first] = true
				}
				for tuple := range sim.joinable {
					joinable++
					if found[tuple] {
						joined++
					}
				}
			}
			if share := float64(joined) / float64(max(joinable, 1)); share < tt.atLeast {
				t.Errorf("joined %d of %d TCP connections whose SYN was captured on both sides", joined, joinable)
			}
			t.Logf("%d joins, none false; %d of %d TCP connections joined", joins, joined, joinable)
		})
	}
}

// Numbers that occur twice are kept, all of them; of those that do not hardly any is.
func TestMeeting(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 50, 20_000} {
		var list []uint32
		count := make(map[uint32]int)
		for range n {
			v := r.Uint32()
			for range 1 + r.IntN(20)/19 {
				list = append(list, v)
				count[v]++
			}
		}
		twice := 0
		for _, v := range list {
			if count[v] > 1 {
				twice++
			}
		}
		met := newMeeting(len(list))
		for _, v := range list {
			met.note(v)
		}
		kept := slices.DeleteFunc(slices.Clone(list), func(v uint32) bool { return !met.may(v) })
		got := 0
		for _, v := range kept {
			if count[v] > 1 {
				got++
			}
		}
		if got != twice || len(kept)-got > 1+len(list)/5 {
			t.Errorf("of %d numbers %d occur more than once: kept %d of them, and %d others", len(list), twice, got, len(kept)-got)
		}
	}
}

// Each piece of evidence has a word of its own, and they are told in order.
func TestEvidenceWords(t *testing.T) {
	all := (agreeIPID<<1 - 1).words(nil)
	for e, i := agreeISN, 0; e <= agreeIPID; e, i = e<<1, i+1 {
		if w := e.words(nil); len(w) != 1 || w[0] == "" || all[i] != w[0] || slices.Contains(all[:i], w[0]) {
			t.Errorf("evidence %d of %q is told as %q", i, all, w)
		}
	}
	if got := (agreeIPID | agreeISN | agreeTS).words(nil); !slices.Equal(got, []string{"tcp isn", "timestamp value", "ip id"}) {
		t.Errorf("%q", got)
	}
	if (agreeISN | agreeTS).has(agreeTS|agreeIPID) || !(agreeISN | agreeTS).has(agreeTS) {
		t.Error("has tells something else than what is there")
	}
}
