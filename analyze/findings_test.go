package analyze

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// A row of a finding: a capture, the request meant in it, and whether the finding is printed about it. A row in which it
// is not printed lacks one thing of a row in which it is.
type findingRow struct {
	name    string
	facts   *cluster.Facts
	of      string // as in verdictRow
	parts   []part
	printed bool
	more    [][]part // further captures
}

// result is what comes out of the row's captures; to each of them some parts are added.
func (row *findingRow) result(t *testing.T, facts *cluster.Facts, added ...part) *Result {
	t.Helper()
	inputs := []Input{captureOf(t, append(slices.Clone(row.parts), added...)...)}
	for i, parts := range row.more {
		in := captureOf(t, append(slices.Clone(parts), added...)...)
		in.File = fmt.Sprintf("more%d.pcapng", i)
		inputs = append(inputs, in)
	}
	return runOf(t, facts, Options{}, inputs...)
}

// request is the request meant: of those that the selector picks, the one in the first capture.
func (row *findingRow) request(t *testing.T, res *Result) *Request {
	t.Helper()
	first := slices.Clone(res.Requests)
	first = slices.DeleteFunc(first, func(r Request) bool { return r.capture() != 0 })
	meant := theRequest(t, first, row.of)
	for i := range res.Requests {
		if r := &res.Requests[i]; r.capture() == 0 && r.Tuple == meant.Tuple && r.Opening == meant.Opening {
			return r
		}
	}
	t.Fatal("a request has gone")
	return nil
}

type findingRows struct {
	code string
	rows []findingRow
}

// rowsOfFindings are, per code, what must be printed and what comes near to it.
func rowsOfFindings(t *testing.T, g *cluster.Facts) []findingRows {
	t.Helper()
	const (
		dnsEnds  = pod + ":41000 > 192.0.2.53:53"
		podDNS   = "udp " + pod + " > 192.0.2.53:53"
		podPings = pod + " > " + server
		far      = "ens4"
	)
	twoNICs := factsOf(t, "pod 10.4.0.0/14", "node "+node, "node 198.51.100.77")
	lost := tries(podEnds, 1, 2, 4)
	open := opened(podEnds, 1, 1000)
	snat := masqueraded(podEnds, node+":51000")
	keep := kept(podEnds)
	pings := many{echo(podPings, 7, 1, at(1)), echo(podPings, 7, 2, at(2)), echo(podPings, 7, 3, at(3))}
	// A device rejects a request that the node passed on: the error as it comes in at the uplink, and as it goes to the Pod.
	rejectedBy := func(path natPath, from string, typ, code uint8, mods ...mod) many {
		quoted := path.carry(lost[:1]...)
		inward := quoted[len(quoted)-1]
		return inOrder(neighbours(), quoted, many{
			icmp(from, typ, code, inward, append([]mod{at(1.01), in("eth0"), ttl(62)}, mods...)...),
			icmp(from, typ, code, lost[0], append([]mod{at(1.0101), out("veth1"), ttl(61)}, mods...)...),
		})
	}
	farSees := func(packets many) many {
		var m many
		for _, p := range packets {
			if p.Tuple.Src == wire.MustAddr(server) {
				m = append(m, also(p, out(far), ttl(64)))
			} else {
				m = append(m, also(p, in(far), ttl(61)))
			}
		}
		return m
	}
	answeredSYNs := func(times ...float64) many {
		m := snat.carry(tries(podEnds, times...)...)
		for i, t0 := range times {
			m = append(m, synack(back(nodeEnds), at(t0+0.01), in("eth0"), acks(31001), ttl(60), ipid(uint16(i))))
		}
		return inOrder(neighbours(), m)
	}
	// A datagram to a server, and what came back to the client's port from elsewhere.
	question := seenAt(many{udp(dnsEnds, "who is it?", at(1)), udp(dnsEnds, "who is it?", at(3), ipid(77))}, in("veth1"))
	questionOut := seenAt(question, out("eth0"), later(50e-6), ttl(63))
	answerFrom := func(from string) many {
		m := many{udp(from+" > "+pod+":41000", "it is", at(1.02), in("eth0"), ttl(60))}
		return append(m, also(m[0], out("veth1"), later(50e-6), ttl(59)))
	}
	repeated := func(n int, mods ...mod) many {
		m := slices.Clone(open)
		for i := range n {
			m = append(m, data(podEnds, 1000, append([]mod{at(1.1 + float64(i)), seq(1001), acks(8001), ipid(uint16(900 + i))}, mods...)...))
		}
		return m
	}

	// What both sides see of two connections that show how their clocks lie, and that nothing is translated on the way: the
	// Pod's to another port of the server, and the node's.
	const (
		alsoPod  = pod + ":43001 > " + server + ":80"
		alsoNode = node + ":53001 > " + server + ":22"
	)
	reference := slices.Concat(opened(alsoPod, 0.5, 52000), opened(alsoNode, 0.6, 62000))
	nearSees := func(more ...many) part {
		return inOrder(append(more, neighbours(), kept(alsoPod).carry(opened(alsoPod, 0.5, 52000)...),
			seenAt(opened(alsoNode, 0.6, 62000)[:1], out("eth0")), seenAt(opened(alsoNode, 0.6, 62000)[1:2], in("eth0")), seenAt(opened(alsoNode, 0.6, 62000)[2:], out("eth0")))...)
	}
	// The far host's capture: packets come in 2 ms later, answers go out 2 ms earlier than the node has them.
	theFar := func(packets ...many) []part {
		var m many
		for _, p := range inOrder(append(packets, reference, opened(node+":53009 > "+server+":22", 20, 190000)[:1])...) {
			if p.Tuple.Src == wire.MustAddr(server) {
				m = append(m, also(p, out(far), ttl(64), later(-0.002)))
			} else {
				m = append(m, also(p, in(far), ttl(61), later(0.002)))
			}
		}
		return []part{about(onFarSide), inOrder(m)}
	}
	synacks := func(ends string, times ...float64) many {
		var m many
		for i, t0 := range times {
			m = append(m, synack(back(ends), at(t0+0.01), acks(31001), ipid(uint16(40+i))))
		}
		return m
	}
	snatEnds := node + ":51000 > " + server + ":443"
	asNode := seenAt(lost, between(snatEnds))
	anotherNode := func(packets ...many) []part {
		return []part{inOrder(append(packets, many{udp("169.254.1.1:5353 > 224.0.0.251:5353", "rest", at(20), in("eth0"))})...)}
	}

	return []findingRows{
		{codeReturnLost, []findingRow{
			{"the far host answered each SYN, and no answer came to the node", g, podTCP, []part{nearSees(keep.carry(lost...))}, true, [][]part{theFar(lost, synacks(podEnds, 1, 2, 4))}},
			{"translated", g, podTCP, []part{nearSees(snat.carry(lost...))}, true, [][]part{theFar(asNode, synacks(snatEnds, 1, 2, 4))}},
			{"the far host did not answer", g, podTCP, []part{nearSees(keep.carry(lost...))}, false, [][]part{theFar(lost)}},
			{"the answers came to the node, which did not deliver them", g, podTCP, []part{nearSees(keep.carry(lost...), seenAt(synacks(podEnds, 1, 2, 4), in("eth0"), ttl(60)))}, false, [][]part{theFar(lost, synacks(podEnds, 1, 2, 4))}},
			{"a router rejected the answers", g, podTCP, []part{nearSees(keep.carry(lost...))}, false, [][]part{append(theFar(lost, synacks(podEnds, 1, 2, 4)), icmp("10.20.0.1", 3, 0, synacks(podEnds, 1)[0], at(1.02), in(far), ttl(64)))}},
			{"the near capture dropped packets", g, podTCP, []part{nearSees(keep.carry(lost...)), dropped(1)}, false, [][]part{theFar(lost, synacks(podEnds, 1, 2, 4))}},
			{"no far capture", g, podTCP, []part{nearSees(keep.carry(lost...))}, false, nil},
		}},
		{codeBetween, []findingRow{
			{"it left, and the far capture, which holds others, does not hold it", g, podTCP, []part{nearSees(keep.carry(lost...))}, true, [][]part{theFar()}},
			{"translated", g, podTCP, []part{nearSees(snat.carry(lost...))}, true, [][]part{theFar()}},
			{"it arrived", g, podTCP, []part{nearSees(keep.carry(lost...))}, false, [][]part{theFar(lost)}},
			{"the far capture dropped packets", g, podTCP, []part{nearSees(keep.carry(lost...))}, false, [][]part{append(theFar(), dropped(1))}},
			{"the far capture's filter drops it", g, podTCP, []part{nearSees(keep.carry(lost...))}, false, [][]part{append(theFar(), filtered("not port 443"))}},
			{"the far capture is cut", g, podTCP, []part{nearSees(keep.carry(lost...))}, false, [][]part{append(theFar(), about(damagedEnd))}},
			{"a router on the way rejected it, which says more", g, podTCP, []part{nearSees(rejectedBy(keep, router, 3, 1))}, false, [][]part{theFar()}},
		}},
		{codeOtherNode, []findingRow{
			{"the answers came in at another node", g, podTCP, []part{nearSees(keep.carry(lost...))}, true, [][]part{anotherNode(seenAt(synacks(podEnds, 1, 2, 4), in("eth0"), ttl(60))), theFar(lost, synacks(podEnds, 1, 2, 4))}},
			{"the answers came in at this node", g, podTCP, []part{nearSees(keep.carry(lost...), seenAt(synacks(podEnds, 1, 2, 4), in("eth0"), ttl(60)))}, false, [][]part{anotherNode(), theFar(lost, synacks(podEnds, 1, 2, 4))}},
		}},
		{codeMiddlebox, []findingRow{
			{"answered, and the far host never saw it", g, podTCP, []part{nearSees(keep.carry(open...))}, true, [][]part{theFar()}},
			{"refused, and the far host never saw it", g, podTCP, []part{nearSees(keep.carry(lost[:1]...), keep.carry(refusal(back(podEnds), at(1.01), acks(31001), ttl(60))))}, true, [][]part{theFar()}},
			{"the far host saw it", g, podTCP, []part{nearSees(keep.carry(open...))}, false, [][]part{theFar(open)}},
			{"the far capture dropped packets", g, podTCP, []part{nearSees(keep.carry(open...))}, false, [][]part{append(theFar(), dropped(1))}},
			{"not answered", g, podTCP, []part{nearSees(keep.carry(lost...))}, false, [][]part{theFar()}},
		}},
		{codeSecond, []findingRow{
			{"it arrives with the address of a gateway", g, podTCP, []part{nearSees(keep.carry(open...))}, true, [][]part{theFar(seenAt(open[:1], between("198.51.100.200:6000 > "+server+":443")), seenAt(open[1:2], between(server+":443 > 198.51.100.200:6000")), seenAt(open[2:], between("198.51.100.200:6000 > "+server+":443")))}},
			{"it arrives as it left", g, podTCP, []part{nearSees(snat.carry(open...))}, false, [][]part{theFar(seenAt(open[:1], between(snatEnds)), seenAt(open[1:2], between(back(snatEnds))), seenAt(open[2:], between(snatEnds)))}},
			{"it does not arrive", g, podTCP, []part{nearSees(keep.carry(lost...))}, false, [][]part{theFar()}},
		}},
		{codeRewritten, []findingRow{
			{"other sequence numbers, and all else is the same", g, podTCP, []part{nearSees(keep.carry(open...))}, true, [][]part{theFar(seenAt(open[:1], isn(880000)), seenAt(open[1:2], acks(880001)), seenAt(open[2:], seq(880001)))}},
			{"the same sequence numbers", g, podTCP, []part{nearSees(keep.carry(open...))}, false, [][]part{theFar(open)}},
			{"other sequence numbers and other timestamps: another connection", g, podTCP, []part{nearSees(keep.carry(open...))}, false, [][]part{theFar(seenAt(open[:1], isn(880000), stamp(4711, 0), ipid(9)), seenAt(open[1:2], acks(880001), stamp(3, 4711), ipid(8)), seenAt(open[2:], seq(880001), stamp(4712, 3), ipid(7)))}},
		}},
		{codePodUnanswered, []findingRow{
			{"three SYNs left with the Pod's address, and nothing came back", g, podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, true, nil},
			{"seen at the uplink alone", g, "", []part{seenAt(lost, out("eth0"), ttl(63)), goesOn(20)}, true, nil},
			{"three pings", g, "icmp " + podPings, []part{inOrder(neighbours(), keep.carry(pings...))}, true, nil},
			{"a datagram", g, podDNS, []part{inOrder(neighbours(), question, questionOut)}, true, nil},
			{"and the node's own request was answered", g, podTCP, []part{inOrder(neighbours(), keep.carry(lost...), seenAt(opened(nodeEnds, 5, 77000)[:1], out("eth0")), seenAt(opened(nodeEnds, 5, 77000)[1:2], in("eth0")), seenAt(opened(nodeEnds, 5, 77000)[2:], out("eth0")))}, true, nil},
			{"they left with the node's address", g, podTCP, []part{inOrder(neighbours(), snat.carry(lost...))}, false, nil},
			{"they were answered", g, podTCP, []part{inOrder(neighbours(), keep.carry(open...))}, false, nil},
			{"the capture ended at once", g, "", []part{keep.carry(lost[:1]...), goesOn(1.2)}, false, nil},
			{"a router rejected them", g, podTCP, []part{rejectedBy(keep, router, 3, 1)}, false, nil},
			{"the server refused them", g, podTCP, []part{inOrder(neighbours(), keep.carry(lost[:1]...), keep.carry(refusal(back(podEnds), at(1.01), acks(31001), ttl(60))))}, false, nil},
			{"the answer came to the node", g, podTCP, []part{inOrder(neighbours(), keep.carry(lost...), many{synack(back(podEnds), at(1.01), in("eth0"), acks(31001), ttl(60))})}, false, nil},
			{"the answer came from another address", g, podDNS, []part{inOrder(neighbours(), question, questionOut, answerFrom("192.0.2.54:53"))}, false, nil},
			{"they never left", g, podTCP, []part{inOrder(neighbours(), seenAt(lost, in("veth1")))}, false, nil},
			{"inside the Pod", g, "", []part{seenAt(lost, out("eth0")), goesOn(20)}, false, nil},
			{"at the far side", g, "", []part{about(onFarSide), farSees(lost), goesOn(20)}, false, nil},
			{"nothing says that the address is a Pod's", nil, "", []part{keep.carry(lost...), goesOn(20)}, false, nil},
			{"from outside, to a Pod", g, "", []part{natPath{client: "192.0.2.9:5000", server: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(tries("192.0.2.9:5000 > "+pod+":8080", 1, 2, 4)...), goesOn(20)}, false, nil},
		}},
		{codePodAnswered, []findingRow{
			{"a handshake", g, podTCP, []part{inOrder(neighbours(), keep.carry(open...))}, true, nil},
			{"a ping", g, "icmp " + podPings, []part{inOrder(neighbours(), keep.carry(pings[0], echoReply(back(podPings), 7, 1, at(1.01), ttl(60))))}, true, nil},
			{"left with the node's address", g, podTCP, []part{inOrder(neighbours(), snat.carry(open...))}, false, nil},
			{"inside the Pod", g, "", []part{seenAt(open[:1], out("eth0")), seenAt(open[1:2], in("eth0")), seenAt(open[2:], out("eth0"))}, false, nil},
			{"half open", g, podTCP, []part{inOrder(neighbours(), keep.carry(open[:2]...))}, false, nil},
			{"older than the capture", g, "", []part{keep.carry(data(podEnds, 10, at(1)), dataBack(back(podEnds), 20, at(1.01), acks(clientISN+11), ttl(60)), ack(podEnds, at(1.02), seq(clientISN+11), acks(serverISN+21))), goesOn(20)}, false, nil},
			{"at the far side", g, "", []part{about(onFarSide), farSees(open), goesOn(20)}, false, nil},
		}},
		{codePodRejected, []findingRow{
			{"by a router", g, podTCP, []part{rejectedBy(keep, router, 3, 1)}, true, nil},
			{"by a firewall that says so", g, podTCP, []part{rejectedBy(keep, router, 3, 13)}, true, nil},
			{"by a loop", g, podTCP, []part{rejectedBy(keep, router, 11, 0)}, true, nil},
			{"by the server", g, podTCP, []part{rejectedBy(keep, server, 3, 3)}, false, nil},
			{"with the node's address", g, podTCP, []part{rejectedBy(snat, router, 3, 1)}, false, nil},
			{"asked for smaller packets, which rejects nothing", g, podTCP, []part{rejectedBy(keep, router, 3, 4)}, false, nil},
			{"by the node, before it left", g, podTCP, []part{inOrder(neighbours(), seenAt(lost[:1], in("veth1")), many{icmp(node, 3, 1, lost[0], at(1.01), out("veth1"), ttl(64))})}, false, nil},
		}},
		{codeServerRejected, []findingRow{
			{"nothing listens there", g, podTCP, []part{rejectedBy(keep, server, 3, 3)}, true, nil},
			{"with the node's address", g, podTCP, []part{rejectedBy(snat, server, 3, 10)}, true, nil},
			{"by a router", g, podTCP, []part{rejectedBy(keep, router, 3, 3)}, false, nil},
			{"by the node in the server's name", g, podTCP, []part{inOrder(neighbours(), seenAt(lost[:1], in("veth1")), many{icmp(server, 3, 3, lost[0], at(1.01), out("veth1"), ttl(64))})}, false, nil},
			{"from outside, to a Pod that rejects it", g, "", []part{natPath{client: "192.0.2.9:5000", server: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(tries("192.0.2.9:5000 > "+pod+":8080", 1)...), icmp(pod, 3, 3, syn("192.0.2.9:5000 > "+pod+":8080", isn(31000), ipid(700)), at(1.01), in("veth1")), goesOn(20)}, false, nil},
		}},
		{codeNodeUnanswered, []findingRow{
			{"translated, and nothing came back", g, podTCP, []part{inOrder(neighbours(), snat.carry(lost...))}, true, nil},
			{"the node's own", g, "", []part{seenAt(tries(nodeEnds, 1, 2, 4), out("eth0")), goesOn(20)}, true, nil},
			{"the node's, and the capture cannot tell whose it was", g, "", []part{single("mon0"), seenAt(tries(nodeEnds, 1, 2, 4), on("mon0"), ttl(62)), goesOn(20)}, true, nil},
			{"with the Pod's address", g, podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
			{"answered", g, podTCP, []part{inOrder(neighbours(), snat.carry(open...))}, false, nil},
			{"the answer came to the node", g, podTCP, []part{answeredSYNs(1, 2, 4)}, false, nil},
			{"the answer came to the node at the last moment", g, podTCP, []part{answeredSYNs(1)}, false, nil},
			{"a router rejected it", g, podTCP, []part{rejectedBy(snat, router, 3, 1)}, false, nil},
			{"the kubelet asks a Pod, which does not answer", g, "", []part{seenAt(tries(node+":41000 > "+pod+":8080", 1, 2, 4), out("veth1")), goesOn(20)}, false, nil},
			{"another node asks a Pod of this one", factsOf(t, "pod 10.4.0.0/14", "node "+node, "node 10.128.0.11"), "tcp 10.128.0.11 > any", []part{inOrder(neighbours(), natPath{client: "10.128.0.11:5000", server: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(tries("10.128.0.11:5000 > "+pod+":8080", 1, 2, 4)...))}, false, nil},
			{"the capture ended at once", g, "", []part{snat.carry(lost[:1]...), goesOn(1.2)}, false, nil},
		}},
		{codeNodeRejected, []findingRow{
			{"by a router", g, podTCP, []part{rejectedBy(snat, router, 3, 1)}, true, nil},
			{"by the server", g, podTCP, []part{rejectedBy(snat, server, 3, 3)}, false, nil},
			{"with the Pod's address", g, podTCP, []part{rejectedBy(keep, router, 3, 1)}, false, nil},
			{"answered all the same", g, podTCP, []part{inOrder(rejectedBy(snat, router, 3, 1), snat.carry(tries(podEnds, 1, 3)[1], synack(back(podEnds), at(3.01), acks(31001), ttl(60)), ack(podEnds, at(3.011), seq(31001))))}, false, nil},
		}},
		{codeNoReturnRoute, []findingRow{
			{"at the far side: a router rejects the answer", g, "", []part{about(onFarSide), farSees(open[:2]), icmp("10.20.0.1", 3, 0, open[1], at(1.02), in(far), ttl(64)), goesOn(20)}, true, nil},
			{"at the far side: a router rejects the request", g, "", []part{about(onFarSide), farSees(open[:1]), icmp("10.20.0.1", 3, 0, open[0], at(1.02), out(far), ttl(64)), goesOn(20)}, false, nil},
			{"at the far side: the answer went out, and no more is known", g, "", []part{about(onFarSide), farSees(open[:2]), goesOn(20)}, false, nil},
		}},
		{codeNotDelivered, []findingRow{
			{"the answers came in, the Pod asked again, and none went out to it", g, podTCP, []part{answeredSYNs(1, 2, 4)}, true, nil},
			{"the Pod did not ask again", g, podTCP, []part{answeredSYNs(1)}, false, nil},
			{"one was delivered", g, podTCP, []part{inOrder(answeredSYNs(1, 2, 4), many{synack(back(podEnds), at(4.02), out("veth1"), acks(31001), ttl(59))})}, false, nil},
		}},
		{codeNeverLeft, []findingRow{
			{"it came to the node and did not leave", g, podTCP, []part{inOrder(neighbours(), seenAt(lost, in("veth1")))}, true, nil},
			{"the node reset it", g, podTCP, []part{inOrder(neighbours(), seenAt(lost[:1], in("veth1")), many{refusal(back(podEnds), at(1.001), acks(31001), out("veth1"), ttl(64))})}, true, nil},
			{"it left", g, podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
			{"not all interfaces are in the capture", g, podTCP, []part{severalDevices("veth1", "veth2", "eth0"), inOrder(neighbours(), seenAt(lost, in("veth1")))}, false, nil},
			{"packets were dropped", g, podTCP, []part{inOrder(neighbours(), seenAt(lost, in("veth1"))), dropped(1)}, false, nil},
		}},
		{codeOtherAddress, []findingRow{
			{"an address that nobody gave", g, podTCP, []part{inOrder(neighbours(), masqueraded(podEnds, "198.51.100.77:51000").carry(open...))}, true, nil},
			{"and nothing came back", g, podTCP, []part{inOrder(neighbours(), masqueraded(podEnds, "198.51.100.77:51000").carry(lost...))}, true, nil},
			{"the address of the node's second interface, which was given", twoNICs, podTCP, []part{inOrder(neighbours(), masqueraded(podEnds, "198.51.100.77:51000").carry(open...))}, false, nil},
			{"the node's address", g, podTCP, []part{inOrder(neighbours(), snat.carry(open...))}, false, nil},
			{"from outside, translated on the way to a Pod", g, "", []part{natPath{client: "192.0.2.9:5000", server: node + ":30080", as: "198.51.100.77:6000", to: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(opened("192.0.2.9:5000 > "+node+":30080", 1, 1000)...)}, false, nil},
		}},
		{codeClientReset, []findingRow{
			{"a reset in place of the ACK", g, podTCP, []part{inOrder(neighbours(), snat.carry(open[0], open[1], rst(podEnds, at(1.02), seq(1001))))}, true, nil},
			{"no ACK at all", g, podTCP, []part{inOrder(neighbours(), snat.carry(open[:2]...))}, false, nil},
			{"a reset behind the handshake", g, podTCP, []part{inOrder(neighbours(), snat.carry(open[0], open[1], open[2], rst(podEnds, at(1.02), seq(1001))))}, false, nil},
			{"the server's reset", g, podTCP, []part{inOrder(neighbours(), snat.carry(open[0], open[1], rst(back(podEnds), at(1.02), seq(8001), ttl(60))))}, false, nil},
		}},
		{codeReplyOther, []findingRow{
			{"from another address, from the port that was asked", g, podDNS, []part{inOrder(neighbours(), question, questionOut, answerFrom("192.0.2.54:53"))}, true, nil},
			{"from the address that was asked", g, podDNS, []part{inOrder(neighbours(), question, questionOut, answerFrom("192.0.2.53:53"))}, false, nil},
			{"from another address and another port", g, podDNS, []part{inOrder(neighbours(), question, questionOut, answerFrom("192.0.2.54:5353"))}, false, nil},
			{"another server was asked, too, and answered", g, podDNS, []part{inOrder(neighbours(), question, questionOut, seenAt(many{udp(pod+":41000 > 192.0.2.54:53", "and you?", at(1.005))}, in("veth1")), seenAt(many{udp(pod+":41000 > 192.0.2.54:53", "and you?", at(1.005))}, out("eth0"), ttl(63), later(50e-6)), answerFrom("192.0.2.54:53"))}, false, nil},
		}},
		{codeMTU, []findingRow{
			{"fragmentation needed", g, podTCP, []part{rejectedBy(keep, router, 3, 4, mtu(1400))}, true, nil},
			{"fragmentation needed, of an old router that names no MTU", g, podTCP, []part{rejectedBy(keep, router, 3, 4)}, true, nil},
			{"packet too big", factsOf(t, "pod 2001:db8:4::/48", "node 2001:db8:a::1"), "", []part{seenAt(opened("[2001:db8:4::7]:41000 > [2001:db8:9::9]:443", 1, 1000)[:1], out("eth0"), ttl(63)), icmp("2001:db8:1::1", 2, 0, syn("[2001:db8:4::7]:41000 > [2001:db8:9::9]:443", isn(1000)), at(1.02), in("eth0"), ttl(62), mtu(1280)), goesOn(20)}, true, nil},
			{"host unreachable", g, podTCP, []part{rejectedBy(keep, router, 3, 1)}, false, nil},
			{"a redirect", g, podTCP, []part{rejectedBy(keep, router, 5, 1)}, false, nil},
		}},
		{codeStalled, []findingRow{
			{"one segment again and again", g, podTCP, []part{inOrder(neighbours(), snat.carry(repeated(5)...))}, true, nil},
			{"it was acknowledged in the end", g, podTCP, []part{inOrder(neighbours(), snat.carry(repeated(5)...), snat.carry(ackBack(back(podEnds), at(6), seq(8001), acks(2001), ttl(60))))}, false, nil},
			{"it was sent again twice, as happens on the best of ways", g, podTCP, []part{inOrder(neighbours(), snat.carry(repeated(3)...))}, false, nil},
			{"it was sent once", g, podTCP, []part{inOrder(neighbours(), snat.carry(repeated(1)...))}, false, nil},
			{"a reset ended it", g, podTCP, []part{inOrder(neighbours(), snat.carry(repeated(5)...), snat.carry(rst(back(podEnds), at(6), seq(8001), ttl(60))))}, false, nil},
			{"the handshake did not complete", g, podTCP, []part{inOrder(neighbours(), snat.carry(open[:2]...))}, false, nil},
		}},
		{codeOldMapping, []findingRow{
			{"data both ways, no opening", g, "", []part{keep.carry(data(podEnds, 10, at(1)), dataBack(back(podEnds), 20, at(1.01), acks(clientISN+11), ttl(60)), ack(podEnds, at(1.02), seq(clientISN+11), acks(serverISN+21))), goesOn(20)}, true, nil},
			{"translated", g, "", []part{snat.carry(data(podEnds, 10, at(1)), dataBack(back(podEnds), 20, at(1.01), acks(clientISN+11), ttl(60)), ack(podEnds, at(1.02), seq(clientISN+11), acks(serverISN+21))), goesOn(20)}, true, nil},
			{"with its opening", g, podTCP, []part{inOrder(neighbours(), keep.carry(open...))}, false, nil},
			{"the node's own", g, "", []part{seenAt(many{data(nodeEnds, 10, at(1))}, out("eth0")), seenAt(many{dataBack(back(nodeEnds), 20, at(1.01), acks(clientISN+11), ttl(60))}, in("eth0")), goesOn(20)}, false, nil},
			{"inside the Pod", g, "", []part{seenAt(many{data(podEnds, 10, at(1))}, out("eth0")), seenAt(many{dataBack(back(podEnds), 20, at(1.01), acks(clientISN+11), ttl(60))}, in("eth0")), goesOn(20)}, false, nil},
		}},
		{codePodSideOnly, []findingRow{
			{"inside the Pod", g, "", []part{seenAt(open[:1], out("eth0")), seenAt(open[1:2], in("eth0")), seenAt(open[2:], out("eth0"))}, true, nil},
			{"the Pod's veth alone", g, "", []part{single("veth1"), seenAt(lost, on("veth1")), goesOn(20)}, true, nil},
			{"the uplink alone", g, "", []part{single("eth0"), seenAt(lost, on("eth0"), ttl(63)), goesOn(20)}, false, nil},
			{"both sides", g, podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
			{"the node's own", g, "", []part{seenAt(tries(nodeEnds, 1, 2, 4), out("eth0")), goesOn(20)}, false, nil},
		}},
		{codeOneDirection, []findingRow{
			{"late data of the client alone", g, "", []part{snat.carry(data(podEnds, 10, at(1)), data(podEnds, 10, at(2), seq(clientISN+11))), goesOn(20)}, true, nil},
			{"answers alone", g, "", []part{synack(back(nodeEnds), at(1), in("eth0"), ttl(60)), goesOn(20)}, true, nil},
			{"late data to a Service, of which the backend is seen", g, "", []part{natPath{client: pod + ":41000", server: "10.96.0.10:443", as: node + ":51000", to: server + ":8443", podIf: "veth1", uplink: "eth0"}.carry(data(pod+":41000 > 10.96.0.10:443", 300, at(1)), data(pod+":41000 > 10.96.0.10:443", 300, at(2), seq(clientISN+301))), goesOn(20)}, true, nil},
			{"a request that was not answered", g, podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
			{"an answer from an address that was not asked is that request's", g, "udp " + pod + " > 192.0.2.54", []part{inOrder(neighbours(), question, questionOut, answerFrom("192.0.2.54:53"))}, false, nil},
			{"both directions", g, "", []part{keep.carry(data(podEnds, 10, at(1)), dataBack(back(podEnds), 20, at(1.01), acks(clientISN+11), ttl(60))), goesOn(20)}, false, nil},
		}},
		{codeRefused, []findingRow{
			{"by the server", g, podTCP, []part{inOrder(neighbours(), snat.carry(lost[:1]...), snat.carry(refusal(back(podEnds), at(1.01), acks(31001), ttl(60))))}, true, nil},
			{"by whatever is behind the Pod's interface", g, "", []part{single("veth1"), seenAt(lost[:1], on("veth1")), refusal(back(podEnds), at(1.001), acks(31001), on("veth1"), ttl(64)), goesOn(20)}, true, nil},
			{"by the node, and never left", g, podTCP, []part{inOrder(neighbours(), seenAt(lost[:1], in("veth1")), many{refusal(back(podEnds), at(1.001), acks(31001), out("veth1"), ttl(64))})}, false, nil},
			{"the client gave up with a reset", g, podTCP, []part{inOrder(neighbours(), snat.carry(lost...), snat.carry(rst(podEnds, at(5), seq(31001))))}, false, nil},
			{"refused once, then accepted", g, podTCP, []part{inOrder(neighbours(), snat.carry(lost[:1]...), snat.carry(refusal(back(podEnds), at(1.01), acks(31001), ttl(60))), snat.carry(tries(podEnds, 3)[0], synack(back(podEnds), at(3.01), isn(9000), acks(31001), ttl(60)), ack(podEnds, at(3.011), seq(31001), acks(9001))))}, false, nil},
			{"from outside, to a Pod that refuses", g, "", []part{natPath{client: "192.0.2.9:5000", server: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(syn("192.0.2.9:5000 > "+pod+":8080", at(1)), refusal(pod+":8080 > 192.0.2.9:5000", at(1.01))), goesOn(20)}, false, nil},
		}},
		{codeFarUnanswered, []findingRow{
			{"it arrived, and nothing came back past this point", g, "", []part{about(onFarSide), farSees(lost), goesOn(20)}, true, nil},
			{"it was answered", g, "", []part{about(onFarSide), farSees(open), goesOn(20)}, false, nil},
			{"the capture ended at once", g, "", []part{about(onFarSide), farSees(lost[:1]), goesOn(1.2)}, false, nil},
			{"the far capture's filter keeps what comes in", g, "", []part{about(onFarSide), farSees(lost), filtered("dst host " + server), goesOn(20)}, false, nil},
			{"a near capture", g, podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
		}},
		{codeForwarded, []findingRow{
			{"no facts: passed on with its source, and nothing came back", nil, "", []part{keep.carry(lost...), goesOn(20)}, true, nil},
			{"no facts: its translation on another way shows that it is a Pod's", nil, podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
			{"no facts: answered", nil, "", []part{keep.carry(open...), goesOn(20)}, false, nil},
			{"no facts: seen leaving alone", nil, "", []part{seenAt(lost, out("eth0"), ttl(63)), goesOn(20)}, false, nil},
			{"the address is known to be a Pod's", g, podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
			{"no facts: translated", nil, "", []part{snat.carry(lost...), goesOn(20)}, false, nil},
		}},
		{codeConfigRejected, []findingRow{
			{"a range that is not aligned", ruled(t, "nonMasqueradeCIDRs: [10.4.0.1/14]", ""), podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, true, nil},
			{"the same range, aligned", ruled(t, "nonMasqueradeCIDRs: [10.4.0.0/14]", ""), podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
		}},
		{codeConfigNotApplied, []findingRow{
			{"it asks for the node's address, and the Pod's is seen", ruled(t, narrow, ""), podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, true, nil},
			{"it asks for the Pod's address, and the node's is seen", ruled(t, wide, ""), podTCP, []part{inOrder(neighbours(), snat.carry(lost...))}, true, nil},
			{"it asks for what the rules do not do", ruled(t, narrow, agentRules("IP-MASQ-AGENT", "192.0.2.0/24")), podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, true, nil},
			{"what is seen is what it asks for", ruled(t, narrow, ""), podTCP, []part{inOrder(neighbours(), snat.carry(lost...))}, false, nil},
			{"the same with a list that keeps", ruled(t, wide, ""), podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
			{"the connection may be older", ruled(t, narrow, ""), "", []part{keep.carry(data(podEnds, 10, at(1)), dataBack(back(podEnds), 20, at(1.01), acks(clientISN+11), ttl(60)), ack(podEnds, at(1.02), seq(clientISN+11), acks(serverISN+21))), goesOn(20)}, false, nil},
			{"the agent refuses it", ruled(t, "nonMasqueradeCIDRs: [10.4.0.1/14]", ""), podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
			{"the node's own request", ruled(t, narrow, ""), "", []part{seenAt(tries(nodeEnds, 1, 2, 4), out("eth0")), goesOn(20)}, false, nil},
		}},
		{codeRulesNotApplied, []findingRow{
			{"they translate, and the Pod's address is seen", ruled(t, "", agentRules("IP-MASQ", "10.0.0.0/8")), podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, true, nil},
			{"they keep, and the node's is seen", ruled(t, "", agentRules("IP-MASQ", "192.0.2.0/24")), podTCP, []part{inOrder(neighbours(), snat.carry(lost...))}, true, nil},
			{"they translate, and so is seen", ruled(t, "", agentRules("IP-MASQ", "10.0.0.0/8")), podTCP, []part{inOrder(neighbours(), snat.carry(lost...))}, false, nil},
			{"they keep, and so is seen", ruled(t, "", agentRules("IP-MASQ", "192.0.2.0/24")), podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
			{"they hang on a set that is not in the input", ruled(t, "", "*nat\n:POSTROUTING ACCEPT\n-A POSTROUTING -m set ! --match-set pods dst -j MASQUERADE\nCOMMIT\n"), podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
		}},
		{codeOtherRule, []findingRow{
			{"two chains with different lists", ruled(t, wide, agentRules("IP-MASQ", "10.0.0.0/8")+agentRules("IP-MASQ-AGENT", "192.0.2.0/24")), podTCP, []part{inOrder(neighbours(), snat.carry(lost...))}, true, nil},
			{"a rule by hand before the agent's chain", ruled(t, wide, "*nat\n:POSTROUTING ACCEPT\n-A POSTROUTING -d 192.0.2.0/24 -j MASQUERADE\nCOMMIT\n"+agentRules("IP-MASQ-AGENT", "192.0.2.0/24")), podTCP, []part{inOrder(neighbours(), snat.carry(lost...))}, true, nil},
			{"one chain with another list", ruled(t, wide, agentRules("IP-MASQ", "10.0.0.0/8")), podTCP, []part{inOrder(neighbours(), snat.carry(lost...))}, false, nil},
			{"two chains with the same list", ruled(t, wide, agentRules("IP-MASQ", "192.0.2.0/24")+agentRules("IP-MASQ-AGENT", "192.0.2.0/24")), podTCP, []part{inOrder(neighbours(), keep.carry(lost...))}, false, nil},
		}},
	}
}

// Lists of an agent's configuration: without the server, and with it.
const (
	narrow = "nonMasqueradeCIDRs: [10.0.0.0/8]"
	wide   = "nonMasqueradeCIDRs: [10.0.0.0/8, 192.0.2.0/24]"
)

// agentRules are the rules that an agent makes, as iptables-save prints them. Of two such texts the kernel asks both chains.
func agentRules(chain string, keep ...string) string {
	s := "*nat\n:POSTROUTING ACCEPT [0:0]\n:" + chain + " - [0:0]\n-A POSTROUTING -m addrtype ! --dst-type LOCAL -j " + chain + "\n"
	for _, k := range keep {
		s += "-A " + chain + " -d " + k + " -j RETURN\n"
	}
	return s + "-A " + chain + " -j MASQUERADE --random-fully\nCOMMIT\n"
}

// ruled are the facts of gke with a configuration and rules; "" is none. Rules of several chains become one table.
func ruled(t testing.TB, config, rules string) *cluster.Facts {
	t.Helper()
	in := cluster.Input{
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.4.0.0/14")}, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		NodeIPs: []netip.Addr{netip.MustParseAddr(node)},
	}
	if config != "" {
		in.MasqConfig, in.MasqConfigName = []byte(config), "cm.yaml"
	}
	if rules != "" {
		rules = strings.ReplaceAll(rules, "COMMIT\n*nat\n", "")
		in.Rules = []cluster.RulesText{{Flag: "--iptables", Name: "rules.save", Text: []byte(rules)}}
	}
	f, err := cluster.New(in)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Each finding is printed where it should be, and not where one thing of it is missing. Every code has both kinds of row.
func TestFindings(t *testing.T) {
	g := gke(t)
	groups := rowsOfFindings(t, g)
	for _, doc := range Codes() {
		var has [2]bool
		for _, group := range groups {
			for _, row := range group.rows {
				if group.code == doc.Code && row.printed {
					has[1] = true
				} else if group.code == doc.Code {
					has[0] = true
				}
			}
		}
		if has != [2]bool{true, true} {
			t.Errorf("%s: rows in which it is not printed, and in which it is: %t", doc.Code, has)
		}
	}
	for _, group := range groups {
		t.Run(group.code, func(t *testing.T) {
			for _, row := range group.rows {
				t.Run(row.name, func(t *testing.T) {
					res := row.result(t, row.facts)
					r := row.request(t, res)
					printed := slices.Contains(r.Findings, group.code) || group.code == codeConfigRejected &&
						slices.ContainsFunc(res.Findings, func(f Finding) bool { return f.Code == group.code }) // it is about no request
					if printed != row.printed {
						t.Errorf("printed: %t, findings %q\ngot %s\nreasons %q", printed, r.Findings, verdictOf(r), r.Reasons)
					}
					checkHonest(t, res.Requests)
					checkFindings(t, res)
				})
			}
		})
	}
}

// What a finding claims of a request: what became of it, and which source it left with. Findings that speak of the same
// and say different things contradict each other. Those that are left out claim neither.
func fateOf(code string) string {
	switch code {
	case codePodUnanswered, codeNodeUnanswered, codeForwarded:
		return "nothing came back to the node"
	case codeReturnLost:
		return "its answer was lost on the way back"
	case codeBetween:
		return "it was lost on the way"
	case codeOtherNode:
		return "its answer came to another node"
	case codePodRejected, codeNodeRejected:
		return "a device on the way rejected it"
	case codeServerRejected:
		return "the server rejected it"
	case codeNoReturnRoute:
		return "its answer was rejected"
	case codeNeverLeft:
		return "it did not leave"
	case codeNotDelivered:
		return "its answer stayed at the node"
	case codeFarUnanswered:
		return "it arrived, and nothing came back"
	case codeReplyOther:
		return "another address answered"
	case codeStalled, codePodAnswered:
		return "it was answered"
	case codeRefused:
		return "it was refused"
	case codeClientReset:
		return "it was answered and reset"
	case codeOldMapping:
		return "it is older than the capture"
	case codeOneDirection:
		return "one direction of it is not in the capture"
	}
	return ""
}

func sourceClaim(code string) string {
	switch code {
	case codePodUnanswered, codePodAnswered, codePodRejected:
		return "the Pod's"
	case codeNodeUnanswered, codeNodeRejected:
		return "the node's"
	case codeOtherAddress:
		return "another"
	case codeNeverLeft:
		return "none"
	case codePodSideOnly, codeForwarded:
		return "not known"
	}
	return ""
}

var (
	likeIt  = regexp.MustCompile(`; (\d+) more requests? like it$`)
	andMore = regexp.MustCompile(`^and (\d+) more requests? to (\d+) more destinations?$`)
)

// checkFindings holds for every finding of every result.
func checkFindings(t *testing.T, res *Result) {
	t.Helper()
	docs := Codes()
	noted := make(map[int][]string)
	for i := range res.Findings {
		f := &res.Findings[i]
		if !slices.ContainsFunc(docs, func(d CodeDoc) bool { return d.Code == f.Code }) {
			t.Errorf("%s is not documented", f.Code)
		}
		if i > 0 && f.Severity > res.Findings[i-1].Severity {
			t.Errorf("%s (severity %d) stands below %s (%d)", f.Code, f.Severity, res.Findings[i-1].Code, res.Findings[i-1].Severity)
		}
		if f.Severity < severityNote || f.Severity > severityTheTrouble {
			t.Errorf("%s: severity %d", f.Code, f.Severity)
		}
		if !strings.HasSuffix(f.Title, ".") || strings.ContainsAny(f.Title, "\n\t") || strings.Contains(f.Title, "invalid") {
			t.Errorf("%s: the title is no sentence: %q", f.Code, f.Title)
		}
		if len(f.Observed) == 0 || len(f.Reading) == 0 || f.Severity == severityTheTrouble && len(f.Next) == 0 {
			t.Errorf("%s: observed %q, reading %q, next %q", f.Code, f.Observed, f.Reading, f.Next)
		}
		for _, s := range slices.Concat(f.Observed, f.Reading, f.Next) {
			if strings.TrimSpace(s) == "" || strings.Contains(s, "%!") {
				t.Errorf("%s says %q", f.Code, s)
			}
		}
		if len(f.Requests) == 0 && f.Code != codeConfigRejected && len(res.Requests) > 0 || !slices.IsSorted(f.Requests) || len(slices.Compact(slices.Clone(f.Requests))) != len(f.Requests) {
			t.Errorf("%s is about requests %v", f.Code, f.Requests)
		}
		for _, n := range f.Requests {
			noted[n] = append(noted[n], f.Code)
		}
		if said := requestsSaid(f.Observed); said != len(f.Requests) {
			t.Errorf("%s is about %d requests, and what was observed adds up to %d: %q", f.Code, len(f.Requests), said, f.Observed)
		}
	}
	for i := range res.Requests {
		r := &res.Requests[i]
		mine, theirs := slices.Sorted(slices.Values(r.Findings)), slices.Sorted(slices.Values(noted[i]))
		if !slices.Equal(mine, theirs) {
			t.Errorf("%s has %q, and the findings about it are %q", r.Tuple, mine, theirs)
		}
		fates, sources := map[string]string{}, map[string]string{}
		for _, code := range r.Findings {
			if s := fateOf(code); s != "" {
				fates[s] = code
			}
			if s := sourceClaim(code); s != "" {
				sources[s] = code
			}
		}
		if len(fates) > 1 || len(sources) > 1 {
			t.Errorf("%s: findings contradict each other: %v, sources %v", r.Tuple, fates, sources)
		}
	}
	for _, c := range commandsOf(res) {
		checkCommand(t, c)
	}
}

// requestsSaid adds up the requests that the lines of Observed speak of.
func requestsSaid(observed []string) int {
	n := 0
	for _, s := range observed {
		if m := andMore.FindStringSubmatch(s); m != nil {
			k, _ := strconv.Atoi(m[1])
			return n + k
		}
		if !strings.Contains(s, " > ") {
			continue // a comparison, not a request of this finding
		}
		n++
		if m := likeIt.FindStringSubmatch(s); m != nil {
			k, _ := strconv.Atoi(m[1])
			n += k
		}
	}
	return n
}

// commandsOf are the commands that a result tells a person to paste.
func commandsOf(res *Result) []string {
	var out []string
	for i := range res.Findings {
		for _, s := range res.Findings[i].Next {
			if c, ok := strings.CutPrefix(s, "  "); ok {
				out = append(out, c)
			}
		}
	}
	for i := range res.Requests {
		for _, u := range res.Requests[i].Unknown {
			if at := strings.Index(u.Settle, "tcpdump -"); at >= 0 {
				out = append(out, u.Settle[at:])
			}
		}
	}
	return out
}

// checkCommand: beside the words of the commands as they stand in the code, a command has addresses and nothing else.
// Nothing that comes from a capture or from a cluster can then mean anything to a shell.
func checkCommand(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(`tcpdump -ni any -w near.pcap far.pcap -s 0 (or at least -s 128) -B 16384 host or icmp icmp6
		srcproof analyze far.pcap --side far compare --near near.pcap --far far.pcap ip route get from iif POD-INTERFACE iptables-save -c -t nat | grep -nE
		'FORWARD|DROP|REJECT' 'POSTROUTING|IP-MASQ|MASQUERADE|SNAT' nft list ruleset conntrack -L -d
		sysctl net.ipv4.conf.all.rp_filter ping -M do -s 1372 kubectl -n kube-system get configmap ip-masq-agent -o yaml
		pods wide -l k8s-app=ip-masq-agent logs --tail=50 iptables-save ip6tables-save iptables-legacy-save`)
	for w := range strings.FieldsSeq(command) {
		if slices.Contains(words, w) {
			continue
		}
		if _, err := netip.ParseAddr(strings.Trim(w, "'")); err != nil && !slices.Contains(words, strings.Trim(w, "'")) {
			t.Errorf("%q: %q is neither a word of the command nor an address", command, w)
		}
	}
	if strings.Count(command, "'")%2 != 0 || strings.ContainsAny(command, "$`\"\\;&<>") {
		t.Errorf("%q is not safe in a shell", command)
	}
}

// hostileFacts are the facts of gke with the names that a hostile cluster would give its nodes and Pods: the Pod is known
// by its own address, or by the range of its node alone.
func hostileFacts(t *testing.T, exact bool) *cluster.Facts {
	t.Helper()
	type obj = map[string]any
	items := []obj{
		{
			"apiVersion": "v1", "kind": "Node", "metadata": obj{"name": "$(reboot)`id`"}, "spec": obj{"podCIDR": "10.4.0.0/24", "podCIDRs": []string{"10.4.0.0/24"}},
			"status": obj{"addresses": []obj{{"type": "InternalIP", "address": node}}},
		},
		{
			"apiVersion": "v1", "kind": "Pod", "metadata": obj{"namespace": "';rm -rf /;'", "name": "a\nb$(reboot)"},
			"spec": obj{"nodeName": "$(reboot)`id`"}, "status": obj{"phase": "Running", "podIP": pod, "podIPs": []obj{{"ip": pod}}, "hostIP": node},
		},
	}
	if !exact {
		items = items[:1]
	}
	list, err := json.Marshal(obj{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	f, err := cluster.New(cluster.Input{
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.4.0.0/14")}, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		Cluster: list, ClusterName: "`reboot`.json",
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// renamed gives the interfaces of a capture hostile names.
func renamed(r *recording) {
	name := func(s string) string { return "$(reboot)';`id`;\n" + s }
	names := make(map[string]uint32)
	for s, i := range r.names {
		names[name(s)] = i
	}
	r.names = names
	for i := range r.summary.Interfaces {
		r.summary.Interfaces[i].Name = name(r.summary.Interfaces[i].Name)
	}
	for i := range r.packets {
		r.packets[i].iface = name(r.packets[i].iface)
	}
}

// Names of Pods, nodes and interfaces are hostile. They stand in what was observed, and in no command; and whatever is
// printed can be pasted into a shell.
func TestCommandsAreSafe(t *testing.T) {
	g, hostile := gke(t), []*cluster.Facts{hostileFacts(t, true), hostileFacts(t, false)}
	var all []string
	seen, named := map[string]bool{}, false
	for _, group := range rowsOfFindings(t, g) {
		for _, row := range group.rows {
			facts := hostile
			if row.facts != g {
				facts = []*cluster.Facts{row.facts}
			}
			for _, f := range facts {
				res := row.result(t, f, about(renamed))
				t.Run(group.code+"/"+row.name, func(t *testing.T) { checkFindings(t, res) })
				for i := range res.Findings {
					seen[res.Findings[i].Code] = true
					for _, s := range res.Findings[i].Observed {
						named = named || strings.Contains(s, "rm -rf")
					}
				}
				all = append(all, commandsOf(res)...)
			}
		}
	}
	for _, doc := range Codes() {
		if !seen[doc.Code] {
			t.Errorf("%s was never printed: nothing is known of its commands", doc.Code)
		}
		for _, s := range doc.Do {
			if c, ok := strings.CutPrefix(s, "  "); ok {
				all = append(all, strings.NewReplacer("SERVER", server, "CIDR", "10.4.0.0/14", "IP", node).Replace(c))
			}
		}
	}
	if !named {
		t.Error("no finding named the hostile Pod: the test shows nothing")
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("not checked: whether a shell reads the commands (there is no sh)")
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) < 10 {
		t.Fatalf("only %d commands: %q", len(all), all)
	}
	for _, c := range all {
		c, _, _ = strings.Cut(c, " (or at least ")
		cmd := exec.CommandContext(t.Context(), shell, "-n")
		cmd.Stdin = strings.NewReader(c + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v: %s", c, err, out)
		}
	}
}

var tcpdumpFilter = regexp.MustCompile(`tcpdump -ni any -w (near|far)\.pcap(?: '([^']*)')?$`)

// A capture that is proposed has a filter that keeps what is asked for: the request as it will be seen there, its answer,
// and what routers say about either.
func TestProposedFiltersKeepTheRequest(t *testing.T) {
	g := gke(t)
	proposed := 0
	for _, group := range rowsOfFindings(t, g) {
		for _, row := range group.rows {
			res := row.result(t, row.facts)
			r := row.request(t, res)
			var commands []string
			for _, u := range r.Unknown {
				commands = append(commands, u.Settle)
			}
			for i := range res.Findings {
				if f := &res.Findings[i]; len(f.Requests) == 1 && slices.Contains(r.Findings, f.Code) && &res.Requests[f.Requests[0]] == r {
					commands = append(commands, f.Next...)
				}
			}
			for _, c := range commands {
				m := tcpdumpFilter.FindStringSubmatch(c)
				if m == nil {
					if strings.Contains(c, "tcpdump -ni any -w") {
						t.Errorf("%s: the capture proposed is not understood: %q", row.name, c)
					}
					continue
				}
				proposed++
				tuples := []wire.Tuple{r.Tuple, r.Tuple.Mirror()}
				if left := r.Egress; left != nil {
					out := r.Tuple
					out.Src, out.SrcPortOrEchoID = left.Addr, left.Port
					if r.Backend != nil {
						out.Dst, out.DstPortOrEchoID = r.Backend.Addr, r.Backend.Port
					}
					if m[1] == "far" {
						tuples = nil // what the node translates is not seen untranslated there
					}
					tuples = append(tuples, out, out.Mirror())
				}
				for _, u := range tuples {
					keep := []*missing{{proto: u.Proto, v6: !u.Src.Is4(), src: u.Src, dst: u.Dst, sport: -1, dport: -1}}
					fromRouter := &missing{proto: wire.ProtoICMP, v6: !u.Src.Is4(), dst: u.Src, sport: -1, dport: -1}
					if fromRouter.v6 {
						fromRouter.proto = wire.ProtoICMP6
					}
					for _, p := range append(keep, fromRouter) {
						if evalFilter(m[2], p) != yes {
							t.Errorf("%s: %q does not keep %s %s > %s", row.name, c, p.proto, p.src, p.dst)
						}
					}
				}
			}
		}
	}
	if proposed < 10 {
		t.Errorf("only %d captures were proposed", proposed)
	}
}

// A finding describes three destinations by one request each, and counts the others.
func TestFindingsGroupByDestination(t *testing.T) {
	g := gke(t)
	// requests to n destinations: counts[i] of them to the i-th.
	requests := func(counts ...int) many {
		var m many
		port := 41000
		for i, n := range counts {
			for k := range n {
				port++
				ends := fmt.Sprintf("%s:%d > 192.0.2.%d:443", pod, port, 10+i)
				m = append(m, kept(ends).carry(seenAt(tries(ends, 1, 2), later(float64(i)+float64(k)/10), isn(uint32(1000*port)))...)...)
			}
		}
		return inOrder(neighbours(), m)
	}
	for _, row := range []struct {
		name   string
		counts []int
		tails  []string // what the lines of Observed end with
	}{
		{"one request to one destination", []int{1}, []string{"until the capture ends"}},
		{"two requests to one destination", []int{2}, []string{"; 1 more request like it"}},
		{"many to one destination", []int{12}, []string{"; 11 more requests like it"}},
		{"three destinations", []int{1, 3, 1}, []string{"until the capture ends", "; 2 more requests like it", "until the capture ends"}},
		{"four destinations", []int{1, 1, 1, 1}, []string{"ends", "ends", "ends", "and 1 more request to 1 more destination"}},
		{"four destinations, the last of several requests", []int{1, 1, 1, 4}, []string{"ends", "ends", "ends", "and 4 more requests to 1 more destination"}},
		{"six destinations", []int{3, 1, 2, 2, 1, 5}, []string{"; 2 more requests like it", "ends", "; 1 more request like it", "and 8 more requests to 3 more destinations"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			res := resultOf(t, g, requests(row.counts...))
			checkFindings(t, res)
			at := slices.IndexFunc(res.Findings, func(f Finding) bool { return f.Code == codePodUnanswered })
			if at < 0 {
				t.Fatalf("no %s: %+v", codePodUnanswered, res.Findings)
			}
			f, total := &res.Findings[at], 0
			for _, n := range row.counts {
				total += n
			}
			if len(f.Requests) != total {
				t.Errorf("%d requests, want %d", len(f.Requests), total)
			}
			if len(f.Observed) != len(row.tails) {
				t.Fatalf("observed %q, want lines that end with %q", f.Observed, row.tails)
			}
			for i, tail := range row.tails {
				if !strings.HasSuffix(f.Observed[i], tail) {
					t.Errorf("line %d: %q, want it to end with %q", i, f.Observed[i], tail)
				}
				if i < min(3, len(row.counts)) && !strings.Contains(f.Observed[i], fmt.Sprintf("> 192.0.2.%d:443: ", 10+i)) {
					t.Errorf("line %d: %q is not about the destination that came next", i, f.Observed[i])
				}
			}
		})
	}
}

// Requests that different devices rejected are different findings; so are those of two captures.
func TestFindingsGroupByTitle(t *testing.T) {
	g := gke(t)
	rejected := func(port int, from string, when float64) many {
		ends := fmt.Sprintf("%s:%d > %s:443", pod, port, server)
		s := syn(ends, at(when), isn(uint32(port)*1000))
		passed := kept(ends).carry(s)
		return append(passed, icmp(from, 3, 1, passed[1], at(when+0.01), in("eth0"), ttl(62)), icmp(from, 3, 1, s, at(when+0.0101), out("veth1"), ttl(61)))
	}
	m := inOrder(neighbours(), rejected(41001, router, 1), rejected(41002, "198.51.100.2", 1.1), rejected(41003, router, 1.2))
	res := resultOf(t, g, m)
	checkFindings(t, res)
	var got []string
	for _, f := range res.Findings {
		if f.Code == codePodRejected {
			got = append(got, fmt.Sprintf("%s %d", f.Title, len(f.Requests)))
		}
	}
	if want := []string{
		"The Pod's packets leave the node with the Pod's own address, and 198.51.100.1 rejects them. 2",
		"The Pod's packets leave the node with the Pod's own address, and 198.51.100.2 rejects them. 1",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}

	second := captureOf(t, inOrder(neighbours(), kept(podEnds).carry(tries(podEnds, 1, 2, 4)...)))
	first := captureOf(t, inOrder(neighbours(), kept(podEnds).carry(tries(podEnds, 1, 2, 4)...)))
	first.Label, second.Label = "one", "two"
	two := runOf(t, g, Options{}, first, second)
	checkFindings(t, two)
	n := 0
	for _, f := range two.Findings {
		if f.Code == codePodUnanswered {
			n++
		}
	}
	if n != 2 {
		t.Errorf("two captures of one request: %d findings, want one each", n)
	}
}

// What is likely the trouble stands first, whatever came first in the capture.
func TestFindingsAreInOrderOfSeverity(t *testing.T) {
	other := pod + ":41001 > " + server + ":80"
	s := syn(other, at(0.5), isn(500))
	m := append(kept(other).carry(s), icmp(server, 3, 3, also(s, ttl(63)), at(0.51), in("eth0"), ttl(60)))
	stall := opened(podEnds, 1, 1000)
	for i := range 5 {
		stall = append(stall, data(podEnds, 1000, at(1.1+float64(i)), seq(1001), acks(8001), ipid(uint16(900+i))))
	}
	answered := pod + ":41002 > " + server + ":22"
	res := resultOf(t, gke(t), inOrder(neighbours(), kept(answered).carry(opened(answered, 0.6, 600)...), m, masqueraded(podEnds, node+":51000").carry(stall...)))
	checkFindings(t, res)
	var got []string
	for _, f := range res.Findings {
		got = append(got, f.Code)
	}
	if want := []string{codeStalled, codeServerRejected, codePodAnswered}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
