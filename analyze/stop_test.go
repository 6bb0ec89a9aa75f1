package analyze

import (
	"strings"
	"testing"
)

func TestStoppedAt(t *testing.T) {
	g := gke(t)
	lost := tries(podEnds, 1, 2, 4)
	open := opened(podEnds, 1, 1000)
	snat := masqueraded(podEnds, node+":51000")
	reset := func(mods ...mod) packet {
		return refusal(back(podEnds), append([]mod{at(1.001), acks(31001), seq(0)}, mods...)...)
	}
	first := lost[:1]
	// A device that rejects: the error quotes the packet as that device got it.
	rejected := func(from string, typ, code uint8, quoted packet, mods ...mod) packet {
		return icmp(from, typ, code, quoted, append([]mod{at(1.01)}, mods...)...)
	}
	outer := also(first[0], between(nodeEnds), ttl(63), out("eth0"), later(50e-6))

	checkRows(t, []verdictRow{
		// Answered is past every place: it speaks of the opening only.
		{"the handshake completed", g, "", []part{snat.carry(open...)}, "outbound node-snated/translation handshake-completed none"},
		{"a datagram was answered", g, "", []part{masqueraded(pod+":41000 > 192.0.2.9:53", node+":51000").carry(udp(pod+":41000 > 192.0.2.9:53", "who?", at(1)), udp("192.0.2.9:53 > "+pod+":41000", "me", at(1.01), ttl(60)))}, "outbound node-snated/translation answered none"},
		{"half open, and the SYN-ACK was given to the Pod", g, "", []part{snat.carry(open[:2]...), goesOn(20)}, "outbound node-snated/translation half-open(filter-not-known) none"},
		{"half open, and the capture ends when the SYN-ACK has come", g, podTCP, []part{inOrder(neighbours()[:8], snat.carry(seenAt(open[:1], at(5))...), snat.carry(seenAt(open[1:2], at(7.9))...)), goesOn(8)}, "outbound node-snated/translation half-open(capture-ended) *"},
		{"half open, and only the uplink was captured", g, "", []part{outer, synack(back(nodeEnds), at(1.01), in("eth0"), acks(31001), ttl(60)), goesOn(20)}, "outbound node-snated/egress half-open(filter-not-known) unknown(half-open)"},

		// Refused: the reset may be the server's or the node's own, which carries the server's address as well.
		{"refused by the server", g, podTCP, []part{inOrder(neighbours(), snat.carry(first...), snat.carry(reset(ttl(60))))}, "outbound node-snated/translation refused none"},
		{"refused by the node itself: the reset begins here, and nothing left", g, podTCP, []part{inOrder(neighbours(), seenAt(first, in("veth1")), many{reset(out("veth1"), ttl(64))})}, "outbound not-sent refused node-out"},
		{"a reset with a fresh TTL at the Pod's veth alone may be the node's own", g, "", []part{single("veth1"), seenAt(first, on("veth1")), reset(on("veth1"), ttl(64)), goesOn(20)}, "outbound unknown(pod-side-capture-only) refused !none|node-out"},
		{"inside the Pod: a reset that passed a hop was not made by the node", g, "", []part{seenAt(first, out("eth0")), reset(in("eth0"), ttl(61)), goesOn(20)}, "outbound unknown(pod-side-capture-only) refused none"},
		{"inside the Pod: a reset with a fresh TTL may be the node's own", g, "", []part{seenAt(first, out("eth0")), reset(in("eth0"), ttl(64)), goesOn(20)}, "outbound unknown(pod-side-capture-only) refused !none|node-out"},
		{"at the uplink the reset came in", g, "", []part{outer, refusal(back(nodeEnds), at(1.01), in("eth0"), acks(31001), ttl(60)), goesOn(20)}, "outbound node-snated/egress refused none"},
		{"it left, and the Pod was reset by the node that never saw an answer", g, podTCP, []part{inOrder(neighbours(), snat.carry(first...), many{reset(out("veth1"), ttl(64), at(1.5))})}, "outbound node-snated/translation refused !none|node-in|between"},

		// Rejected: who sent the error says where.
		{"rejected by the server's own address", g, podTCP, []part{inOrder(neighbours(), snat.carry(first...), many{rejected(server, 3, 3, outer, in("eth0"), ttl(60)), rejected(server, 3, 3, first[0], out("veth1"), ttl(59))})}, "outbound node-snated/translation rejected none"},
		{"rejected by a router between", g, podTCP, []part{inOrder(neighbours(), snat.carry(first...), many{rejected("198.51.100.1", 3, 13, outer, in("eth0"), ttl(62)), rejected("198.51.100.1", 3, 13, first[0], out("veth1"), ttl(61))})}, "outbound node-snated/translation rejected between"},
		{"rejected by a router between, seen at the uplink alone", g, "", []part{outer, rejected("198.51.100.1", 3, 1, outer, in("eth0"), ttl(62)), goesOn(20)}, "outbound node-snated/egress rejected between"},
		{"rejected by the node, which had not passed it on", g, podTCP, []part{inOrder(neighbours(), seenAt(first, in("veth1")), many{rejected(node, 3, 3, first[0], out("veth1"), ttl(64))})}, "outbound not-sent rejected node-out"},
		{"rejected by the node in the server's name", g, podTCP, []part{inOrder(neighbours(), seenAt(first, in("veth1")), many{rejected(server, 3, 3, first[0], out("veth1"), ttl(64))})}, "outbound not-sent rejected node-out"},
		{"rejected by the bridge's address, which lies in the Pod range", g, podTCP, []part{inOrder(neighbours(), seenAt(first, in("veth1")), many{rejected("10.4.0.1", 3, 0, first[0], out("veth1"), ttl(64))})}, "outbound not-sent rejected node-out"},
		{"inside the Pod: an error in the server's name that passed hops", g, "", []part{seenAt(first, out("eth0")), rejected(server, 3, 3, first[0], in("eth0"), ttl(60)), goesOn(20)}, "outbound unknown(pod-side-capture-only) rejected none"},
		{"inside the Pod: rejected by the next device, which is the node or not", g, "", []part{seenAt(first, out("eth0")), rejected("10.4.0.1", 3, 0, first[0], in("eth0"), ttl(64)), goesOn(20)}, "outbound unknown(pod-side-capture-only) rejected !none|between"},
		{"inside the Pod: an error in the server's name with a fresh TTL may be the node's own", g, "", []part{seenAt(first, out("eth0")), rejected(server, 3, 3, first[0], in("eth0"), ttl(64)), goesOn(20)}, "outbound unknown(pod-side-capture-only) rejected !none|between"},
		{"the node rejects a packet of which copies left", g, podTCP, []part{inOrder(neighbours(), snat.carry(first...), many{rejected(node, 3, 1, first[0], out("veth1"), ttl(64), at(4))})}, "outbound node-snated/translation rejected !none|between"},
		{"fragmentation needed rejects nothing", g, podTCP, []part{inOrder(neighbours(), snat.carry(lost...), many{rejected("198.51.100.1", 3, 4, outer, in("eth0"), ttl(62), mtu(1400))})}, "outbound node-snated/translation request-only unknown(no-far-capture)"},
		{"a redirect rejects nothing", g, podTCP, []part{inOrder(neighbours(), snat.carry(lost...), many{rejected("10.128.0.1", 5, 1, outer, in("eth0"), ttl(64))})}, "outbound node-snated/translation request-only unknown(no-far-capture)"},
		{"a router's TTL exceeded is a rejection between", g, podTCP, []part{inOrder(neighbours(), snat.carry(first...), many{rejected("198.51.100.1", 11, 0, outer, in("eth0"), ttl(62)), rejected("198.51.100.1", 11, 0, first[0], out("veth1"), ttl(61))})}, "outbound node-snated/translation rejected between"},

		// Only one side's packets: nothing stops that is not known to have gone.
		{"late data of the client alone", g, "", []part{snat.carry(data(podEnds, 10, at(1)), data(podEnds, 10, at(2), seq(clientISN+11))), goesOn(20)}, "* * one-direction unknown(one-direction)"},
		{"answers alone", g, "", []part{synack(back(nodeEnds), at(1), in("eth0"), ttl(60)), goesOn(20)}, "* * reply-only unknown(one-direction)"},

		// Without a far capture an unanswered request stopped somewhere past the node.
		{"left, and nothing came back", g, podTCP, []part{inOrder(neighbours(), snat.carry(lost...))}, "outbound node-snated/translation request-only unknown(no-far-capture)"},
		{"left with the Pod's address, and nothing came back", g, podTCP, []part{inOrder(neighbours(), kept(podEnds).carry(lost...))}, "outbound pod-sourced/translation request-only unknown(no-far-capture)"},
		{"the node's own, and nothing came back", g, "", []part{seenAt(tries(nodeEnds, 1, 2, 4), out("eth0")), goesOn(20)}, "outbound node-own/egress request-only unknown(no-far-capture)"},

		// A far capture alone: what passed it without an answer stopped behind it; an ICMP error about the answer is the way back.
		{"far: arrived, no answer", g, "", []part{about(onFarSide), seenAt(lost, in("ens4"), ttl(61)), goesOn(20)}, "* pod-sourced/far request-only far"},
		{"far: arrived as the node, no answer", g, "", []part{about(onFarSide), seenAt(tries(nodeEnds, 1, 2, 4), in("ens4"), ttl(61)), goesOn(20)}, "* node-sourced/far|node-sourced/address request-only far"},
		{"far: answered", g, "", []part{about(onFarSide), seenAt(open[:1], in("ens4"), ttl(61)), seenAt(open[1:2], out("ens4"), ttl(64)), seenAt(open[2:], in("ens4"), ttl(61)), goesOn(20)}, "* pod-sourced/far handshake-completed none"},
		{"far: answered again and again, never acknowledged", g, "", []part{about(onFarSide), seenAt(open[:1], in("ens4"), ttl(61)), seenAt(open[1:2], out("ens4"), ttl(64)), seenAt(open[1:2], out("ens4"), ttl(64), later(1), ipid(9)), goesOn(20)}, "* pod-sourced/far half-open(filter-not-known) unknown(half-open)|unknown(one-direction)"},
		{"far: a router rejects the answer", g, "", []part{
			about(onFarSide), seenAt(open[:1], in("ens4"), ttl(61)), seenAt(open[1:2], out("ens4"), ttl(64)),
			icmp("10.20.0.1", 3, 0, open[1], at(1.02), in("ens4"), ttl(64)), goesOn(20),
		}, "* pod-sourced/far half-open(filter-not-known)|rejected(filter-not-known) return"},
		{"taken past the node and given as the node's: a router rejects the answer", g, podTCP, []part{
			single("eth0"), seenAt(open[:1], on("eth0"), ttl(61)), seenAt(open[1:2], on("eth0"), ttl(64)), icmp("10.20.0.1", 3, 0, open[1], at(1.02), on("eth0"), ttl(64)), goesOn(20),
		}, "* * half-open(filter-not-known) return"},
		{"far: a client whose address is neither a Pod's nor a node's may be a node's that was translated again", g, "", []part{about(onFarSide), seenAt(tries("203.0.113.77:41000 > "+server+":443", 1, 2, 4), in("ens4"), ttl(61)), goesOn(20)}, "* unknown(role-other) request-only *"},
		{"far: others are answered, and no packet is for the client: a filter on destinations would hide its answers", g, podTCP, []part{
			about(onFarSide), inOrder(seenAt(lost, in("ens4"), ttl(61)), seenAt(opened(node+":41001 > "+server+":443", 9, 9000)[:1], in("ens4"), ttl(61)), seenAt(opened(node+":41001 > "+server+":443", 9, 9000)[1:2], out("ens4"), ttl(64))), about(filterUnknown), goesOn(20),
		}, "* pod-sourced/far request-only unknown(filter-not-known)"},
		{"far: refused by the far host", g, "", []part{about(onFarSide), seenAt(first, in("ens4"), ttl(61)), reset(out("ens4"), ttl(64)), goesOn(20)}, "* pod-sourced/far refused unknown(delivery-not-seen)"},
		{"far: the capture ends at once", g, "", []part{about(onFarSide), seenAt(first, in("ens4"), ttl(61)), goesOn(1.2)}, "* pod-sourced/far request-only|request-only(capture-ended) unknown(capture-ended)"},
		{"far: packets were dropped", g, "", []part{about(onFarSide), seenAt(lost, in("ens4"), ttl(61)), dropped(3), goesOn(20)}, "* pod-sourced/far request-only(packets-dropped) unknown(packets-dropped)"},
		{"far: the file is cut", g, "", []part{about(onFarSide), seenAt(lost, in("ens4"), ttl(61)), about(damagedEnd), goesOn(20)}, "* pod-sourced/far request-only(capture-incomplete) unknown(capture-incomplete)"},
		{"far: the filter keeps one direction", g, "", []part{about(onFarSide), seenAt(lost, in("ens4"), ttl(61)), filtered("src host " + pod), goesOn(20)}, "* pod-sourced/far request-only(filtered-out) unknown(filtered-out)"},
		{"far: the filter is not known, and all packets go one way", g, "", []part{about(onFarSide), seenAt(lost, in("ens4"), ttl(61)), about(filterUnknown), window(0, 20)}, "* pod-sourced/far request-only unknown(filter-not-known)"},
		{"far: the filter is not known, and another request of the Pod to the server was answered", g, "udp any > any", []part{
			about(onFarSide), inOrder(seenAt(many{udp(pod+":41000 > 192.0.2.9:53", "q", at(5))}, in("ens4"), ttl(61)), seenAt(open[:1], in("ens4"), ttl(61)), seenAt(open[1:2], out("ens4"), ttl(64)), seenAt(open[2:], in("ens4"), ttl(61)), seenAt(opened(pod+":41001 > "+server+":443", 9, 9000)[:2], in("ens4"), ttl(61))), about(filterUnknown),
		}, "* pod-sourced/far request-only far"},
	})
}

// The answer reached the node's egress, the Pod asked again, and nothing went out to it.
func TestNodeIn(t *testing.T) {
	g := gke(t)
	snat := masqueraded(podEnds, node+":51000")
	again := func(times ...float64) many {
		m := snat.carry(tries(podEnds, times...)...)
		for i, t0 := range times {
			m = append(m, synack(back(nodeEnds), at(t0+0.01), in("eth0"), acks(31001), ttl(60), ipid(uint16(i))))
		}
		return inOrder(m)
	}
	checkRows(t, []verdictRow{
		{"all there", g, podTCP, []part{inOrder(neighbours(), again(1, 2, 4))}, "outbound node-snated/translation half-open|request-only node-in"},
		{"untranslated, and the answer to the Pod's address came in", g, podTCP, []part{inOrder(neighbours(), kept(podEnds).carry(tries(podEnds, 1, 2, 4)...), many{synack(back(podEnds), at(1.01), in("eth0"), acks(31001), ttl(60)), synack(back(podEnds), at(2.01), in("eth0"), acks(31001), ttl(60), ipid(7))})}, "outbound pod-sourced/translation half-open|request-only node-in"},
		{"delivered after all", g, podTCP, []part{inOrder(neighbours(), again(1, 2, 4), many{synack(back(podEnds), at(4.02), out("veth1"), acks(31001), ttl(59))})}, "outbound node-snated/translation half-open none"},
		// One needed piece is missing: each alone makes it unknown.
		{"the Pod did not ask again", g, podTCP, []part{inOrder(neighbours(), again(1))}, "* node-snated/translation * !node-in"},
		{"the Pod's interface shows no outgoing frame", g, "", []part{again(1, 2, 4), goesOn(20)}, "* node-snated/translation * unknown(pod-side-not-visible)|unknown(half-open)"},
		{"the capture dropped packets", g, podTCP, []part{inOrder(neighbours(), again(1, 2, 4)), dropped(1)}, "* * * unknown(packets-dropped)"},
		{"the file is cut", g, podTCP, []part{inOrder(neighbours(), again(1, 2, 4)), about(damagedEnd)}, "* * * unknown(capture-incomplete)"},
		{"the filter drops what goes to the Pod", g, podTCP, []part{inOrder(neighbours(), again(1, 2, 4)), filtered("not dst host " + pod)}, "* * * unknown(filtered-out)"},
		{"the filter may drop what goes to the Pod", g, podTCP, []part{inOrder(neighbours(), again(1, 2, 4)), filtered("tcp[8:4] = 0 or host 198.51.100.20 or ether host 1:2:3:4:5:6")}, "* * * unknown(filtered-out)"},
		{"the stated filter keeps the server's packets", g, podTCP, []part{inOrder(neighbours(), again(1, 2, 4)), filterStated("host " + server)}, "* * * node-in"},
		{"the Pod was answered in the capture's last moment", g, podTCP, []part{inOrder(again(1), neighbours()[:6], snat.carry(also(tries(podEnds, 1, 2)[1], at(1.02))))}, "* * * !node-in"},
	})
}

// What is not known says what would settle it: a flag, a command, or a capture to take, with the names of this request.
func TestSettleCanBeActedOn(t *testing.T) {
	g := gke(t)
	lost := tries(podEnds, 1, 2, 4)
	for _, c := range []struct {
		name, of, field, want string
		parts                 []part
	}{
		{"the Pod's side alone", "", "source", "tcpdump -ni any -w near.pcap 'host " + server + " or icmp'", []part{single("veth1"), seenAt(lost, on("veth1")), goesOn(20)}},
		{"no far capture", "", "stopped_at", "host " + node, []part{masqueraded(podEnds, node+":51000").carry(lost...), goesOn(20)}},
		{"no far capture, kept source", "", "stopped_at", "host " + pod, []part{kept(podEnds).carry(lost...), goesOn(20)}},
		{"a filter that is not known", podTCP, "source", "--near-filter", []part{kept("10.4.0.7:41001 > " + server + ":80").carry(opened("10.4.0.7:41001 > "+server+":80", 0, 500)...), seenAt(lost, in("veth1")), about(filterUnknown)}},
		{"a capture that ended", "", "outcome", "longer", []part{kept(podEnds).carry(lost[:1]...)}},
		{"roles that are not known", "", "source", "--pod-cidr", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := g
			if c.parts == nil {
				facts, c.parts = nil, []part{single("eth0"), seenAt(lost, on("eth0"), ttl(63)), goesOn(20)}
			}
			r := theRequest(t, requestsOf(t, facts, c.parts...), c.of)
			for _, u := range r.Unknown {
				if u.Field == c.field && strings.Contains(u.Settle, c.want) {
					return
				}
			}
			t.Errorf("nothing settles %s with %q: %+v", c.field, c.want, r.Unknown)
		})
	}
}
