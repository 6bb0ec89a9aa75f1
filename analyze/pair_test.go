package analyze

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// trip is a request's way from a Pod through the node to the server and back: two routers after the node, 5 ms each way.
type trip struct {
	client, server  string // as the Pod writes them
	as              string // the client behind the node, "" if unchanged
	arrives, serves string // both ends as they arrive, "" if the way changes nothing
}

// snat is the trip of podEnds, translated on the node.
var viaNode = trip{client: pod + ":41000", server: server + ":443", as: node + ":51000"}

// near is what a capture of all the node's interfaces holds of packets that are written as the Pod sees them.
func (w trip) near(packets ...packet) many {
	return natPath{client: w.client, server: w.server, as: w.as, podIf: "veth1", uplink: "eth0"}.carry(packets...)
}

// far is what a capture on the server holds of them.
func (w trip) far(packets ...packet) many {
	client, serves := w.client, w.server
	for _, as := range []string{w.as, w.arrives} {
		if as != "" {
			client = as
		}
	}
	if w.serves != "" {
		serves = w.serves
	}
	src, sport := endOf(w.client)
	var seen many
	for _, p := range packets {
		if p.Tuple.Src == src && (p.Tuple.SrcPortOrEchoID == sport || !p.Tuple.Proto.HasPorts()) {
			seen = append(seen, also(p, between(client+" > "+serves), in("ens4"), ttl(p.TTL-3), later(0.005)))
			continue
		}
		seen = append(seen, also(p, between(serves+" > "+client), out("ens4"), ttl(64), later(-0.005)))
	}
	return seen
}

// farCapture makes a capture of the far side.
func farCapture(t testing.TB, parts ...part) Input {
	t.Helper()
	return captureOf(t, append([]part{about(onFarSide), about(func(r *recording) { r.input.File = "far.pcapng" })}, parts...)...)
}

// atServer is what the server's capture holds of a stranger's packets.
func atServer(packets many) many {
	var m many
	for _, p := range packets {
		if p.Tuple.Dst == wire.MustAddr(server) {
			m = append(m, also(p, in("ens4"), ttl(50)))
		} else {
			m = append(m, also(p, out("ens4"), ttl(64)))
		}
	}
	return m
}

// pairOf analyses a near and a far capture together.
func pairOf(t testing.TB, facts *cluster.Facts, opt PairOptions, near, far []part) *Result {
	t.Helper()
	return runOf(t, facts, Options{Pair: opt}, captureOf(t, near...), farCapture(t, far...))
}

// known are requests that both sides hold, one early and one late, so that the clocks are known to agree.
func known() (near, far many) {
	for i, at := range []float64{0.5, 30} {
		w := trip{client: fmt.Sprintf("10.4.0.8:%d", 42000+i), server: server + ":443", as: fmt.Sprintf("%s:%d", node, 52000+i)}
		m := answeredAt(61, opened(w.client+" > "+w.server, at, 610_000+uint32(20_000*i)))
		near, far = append(near, w.near(m...)...), append(far, w.far(m...)...)
	}
	return near, far
}

func hasJoin(r *Request) *Join {
	for i := range r.Joins {
		if r.Joins[i].To == "far" {
			return &r.Joins[i]
		}
	}
	return nil
}

// joinOf writes what joined a request with the far side: "tcp isn, timestamp value: exact"; "" is no join.
func joinOf(r *Request) string {
	j := hasJoin(r)
	if j == nil {
		return ""
	}
	return strings.Join(j.Basis, ", ") + ": " + j.Confidence.String()
}

// reverse gives the far side's packets other numbers: what a firewall that randomises them does.
func renumbered(m many, client, serves uint32) many {
	var out many
	for _, p := range m {
		if p.Tuple.Dst == wire.MustAddr(server) {
			p.Seq += client
			if p.Flags&wire.ACK != 0 {
				p.Ack += serves
			}
		} else {
			p.Seq += serves
			p.Ack += client
		}
		out = append(out, p)
	}
	return out
}

// What joins the two sides, and how surely (DESIGN section 7). Every pair holds two more requests that tell how the clocks
// lie to each other; want is the basis with its confidence, "" for no join.
func TestPairJoin(t *testing.T) {
	open := answeredAt(61, opened(podEnds, 10, 1000))
	open = append(open, data(podEnds, 200, at(10.02), seq(1001), acks(8001), stamp(1020, 1009), payload("GET /of-its-own HTTP/1.1")))
	near, far := viaNode.near(open...), viaNode.far(open...)
	each := func(m many, mods ...mod) many { return seenAt(m, mods...) }
	middle := answeredAt(61, many{
		data(podEnds, 500, at(10.1), seq(70_001), acks(8001), stamp(1100, 1009)),
		dataBack(back(podEnds), 900, at(10.2), seq(8001), acks(70_501), stamp(1200, 1100), ttl(61)),
	})
	ask := trip{client: pod + ":41000", server: server + ":53", as: node + ":51000"}
	question := udp(ask.client+" > "+ask.server, "what is asked once", at(10))
	common := func(id uint16) packet {
		return udp(ask.client+" > "+ask.server, "what everybody asks", at(10), ipid(id))
	}
	stranger := func(p packet, mods ...mod) many {
		return many{also(p, append([]mod{between("172.16.0.9:7000 > " + server + ":53"), in("ens4"), ttl(50), later(0.1)}, mods...)...)}
	}
	ping := trip{client: pod, server: server, as: node}
	p1 := echo(ping.client+" > "+ping.server, 77, 1, at(10))
	const all = "tcp isn, timestamp value, ip id: exact"
	for _, tt := range []struct {
		sentence  string
		near, far many
		want      string
	}{
		{"TCP: everything agrees", near, far, all},
		{"the MSS is clamped, and the window is another", near, each(far, func(p *packet) { p.MSS, p.Window = 1360, 1000 }), all},
		{"IP IDs of zero", each(near, ipid(0)), each(far, ipid(0)), "tcp isn, timestamp value: exact"},
		{"IP IDs are rewritten on the way", near, each(far, ipid(9)), "tcp isn, timestamp value: exact"},
		{"no timestamps", each(near, bare), each(far, bare), "tcp isn, ip id: exact"},
		{"neither timestamps nor IP IDs", each(near, bare, ipid(0)), each(far, bare, ipid(0)), "tcp isn: probable"},
		{"timestamps alone are stripped on the way, and IP IDs agree", near, each(far, bare), "tcp isn, ip id: exact"},
		{"the ISN agrees, the timestamp and the IP ID do not: another connection", near, each(far, stamp(90_000, 0), ipid(9), between("172.16.0.9:7000 > "+server+":443")), ""},
		{"the SYN was not captured at the far side, the SYN-ACK was", near, far[1:], "tcp isn, timestamp value, ip id: exact"},
		{"the near side saw the first SYN, the far side the second: it was lost on the way, and the captures in part", viaNode.near(tries(podEnds, 10)...), viaNode.far(tries(podEnds, 10, 11)[1]), "tcp isn: probable"},
		{"the far side saw the second of two SYNs", viaNode.near(tries(podEnds, 10, 11)...), viaNode.far(tries(podEnds, 10, 11)[1]), all},
		// Rewritten sequence numbers.
		{"both ISNs are rewritten, timestamps and tuple agree", near, renumbered(far, 1_000_000_000, 3_000_000_000), "tuple, timestamp value: probable"},
		{"and IP IDs", near, each(renumbered(far, 1_000_000_000, 3_000_000_000), ipid(9)), "tuple, timestamp value: probable"},
		{"and the source", near, func() many {
			w := viaNode
			w.arrives = "203.0.113.1:60000"
			return renumbered(w.far(open...), 1_000_000_000, 3_000_000_000)
		}(), "server, timestamp value: probable"},
		{"ISNs are rewritten, there are no timestamps, and the tuple agrees at that moment", each(near, bare), each(renumbered(far, 1_000_000_000, 3_000_000_000), bare), "tuple: probable"},
		{"the same, an hour later by known clocks: another connection", each(near, bare), each(renumbered(far, 1_000_000_000, 3_000_000_000), bare, later(3600)), ""},
		{"ISNs are rewritten, and timestamps, too: nothing is left", near, each(renumbered(far, 1_000_000_000, 3_000_000_000), stamp(90_000, 0), between("172.16.0.9:7000 > "+server+":443")), ""},
		{"rewritten, and a stranger's opening fits as well", near, append(renumbered(far, 1_000_000_000, 3_000_000_000), each(renumbered(far[:1], 77, 77), between("172.16.0.9:7000 > "+server+":443"))...), ""},
		// Midstream: sequence ranges of both directions, and timestamps.
		{"both captures began behind the opening", viaNode.near(middle...), viaNode.far(middle...), "tcp sequence ranges, timestamp values: exact"},
		{"segments were merged on the way in", viaNode.near(middle...), each(viaNode.far(middle...), func(p *packet) { p.PayloadLen /= 2 }), "tcp sequence ranges, timestamp values: exact"},
		{"another connection of other numbers", viaNode.near(middle...), renumbered(viaNode.far(middle...), 1_000_000_000, 3_000_000_000), ""},
		// Datagrams.
		{"UDP: a payload that occurs once", ask.near(question), ask.far(question), "payload, ip id: exact"},
		{"without IP IDs", each(ask.near(question), ipid(0)), each(ask.far(question), ipid(0)), "payload: exact"},
		{"with IP IDs that are rewritten", ask.near(question), each(ask.far(question), ipid(9)), "payload: exact"},
		{"everybody asks the same, and the IP ID tells", ask.near(common(7)), append(ask.far(common(7)), stranger(common(8))...), "payload, ip id: exact"},
		{"everybody asks the same without IP IDs", ask.near(common(0)), append(ask.far(common(0)), stranger(common(0))...), ""},
		{"the far capture kept 16 bytes of payload", each(ask.near(question), ipid(0)), each(ask.far(question), ipid(0), without(wire.KnowDigest64|wire.KnowDigestAll), func(p *packet) { p.Digest64, p.DigestAll = 0, 0 }), "payload: exact"},
		{"equal IP IDs and other payloads", ask.near(question), ask.far(also(common(0), ipid(question.IPID))), ""},
		{"ping: the identifier is rewritten on the way", ping.near(p1), each(ping.far(p1), echoID(999)), "payload, ip id: exact"},
		{"ping: another sequence number", each(ping.near(p1), ipid(0)), each(ping.far(echo(ping.client+" > "+ping.server, 77, 2, at(10), payload("the data of all"))), ipid(0)), ""},
		// More than one fits, and ports alone never do.
		{"the far side holds it twice, at different ports", near[:2], append(each(far[:1]), each(far[:1], between("172.16.0.9:7000 > "+server+":443"))...), ""},
		{"the tuple agrees and nothing else", near, each(renumbered(far, 5, 5), stamp(90_000, 0), ipid(9)), ""},
		{"a proxy: another ISN, timestamp and source, the same payload", near, each(renumbered(far, 5, 5), stamp(90_000, 0), ipid(9), between("203.0.113.7:7000 > "+server+":443")), ""},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			kn, kf := known()
			res := pairOf(t, gke(t), PairOptions{}, []part{inOrder(kn, tt.near), goesOn(60)}, []part{inOrder(kf, tt.far), goesOn(60)})
			r := thePods(t, res, "the Pod's request")
			if got := joinOf(r); got != tt.want {
				t.Errorf("got %q, want %q\n%s%+v", got, tt.want, listOf(res.Requests), r.Unknown)
			}
			checkHonest(t, res.Requests)
		})
	}
}

// What joins the node's capture with the far side's text, which holds no payloads, and IP IDs only where -v printed them; and with the
// node's connection table, which tells what leaves.
func TestPairJoinText(t *testing.T) {
	asPrinted := func(m many, mods ...mod) many {
		return seenAt(m, append([]mod{without(wire.KnowDigest16 | wire.KnowDigest64 | wire.KnowDigestAll | wire.KnowIPID), func(p *packet) {
			p.Digest16, p.Digest64, p.DigestAll = 0, 0, 0
		}}, mods...)...)
	}
	verbose := func(m many, mods ...mod) many {
		return seenAt(m, append([]mod{without(wire.KnowDigest16 | wire.KnowDigest64 | wire.KnowDigestAll), func(p *packet) { p.Digest16, p.Digest64, p.DigestAll = 0, 0, 0 }}, mods...)...)
	}
	open := answeredAt(61, opened(podEnds, 10, 1000))
	kept, keptPing := trip{client: pod + ":41000", server: server + ":53"}, trip{client: pod, server: server}
	snat, snatPing := trip{client: pod + ":41000", server: server + ":53", as: node + ":51000"}, trip{client: pod, server: server, as: node}
	samePort := trip{client: pod + ":41000", server: server + ":53", as: node + ":41000"}
	ask := udp(snat.client+" > "+snat.server, "what is asked", at(10))
	ping := echo(pod+" > "+server, 77, 1, at(10))
	pings := many{ping, echo(pod+" > "+server, 77, 2, at(11))}
	table := func(orig, reply string) string {
		return "conntrack " + orig + " " + reply
	}
	// inside keeps what a capture of the Pod's interface holds: what translation makes of it does not show there.
	inside := func(m many) many {
		return slices.DeleteFunc(m, func(p packet) bool { return p.iface != "veth1" })
	}
	udpTable := table("udp 17 29 src="+pod+" dst="+server+" sport=41000 dport=53", "src="+server+" dst="+node+" sport=53 dport=51000")
	const number, ends = "echo identifier and sequence number", "five-tuple"
	type clocks int // what is joined beside, and so tells how they lie to each other
	const (
		both clocks = iota
		oneSide
		none
	)
	for _, tt := range []struct {
		sentence  string
		near, far many
		facts     []string
		want      string
		clocks    clocks
	}{
		{"TCP joins by what is printed", viaNode.near(open...), asPrinted(viaNode.far(open...)), nil, "tcp isn, timestamp value: exact", both},
		{"UDP, not translated", kept.near(ask), asPrinted(kept.far(ask)), nil, ends + ": probable", both},
		{"and printed with -v", kept.near(ask), verbose(kept.far(ask)), nil, ends + ", ip id: exact", both},
		{"another IP ID: another datagram", kept.near(ask), verbose(kept.far(ask), ipid(9)), nil, "", both},
		{"the same ends an hour later", kept.near(ask), asPrinted(kept.far(ask), later(3600)), nil, "", both},
		{"the same ends, and no clock", kept.near(ask), asPrinted(kept.far(ask)), nil, "", none},
		{"the same ends, and a clock known on one side", kept.near(ask), asPrinted(kept.far(ask)), nil, ends + ": probable", oneSide},
		{"a minute later by that", kept.near(ask), asPrinted(kept.far(ask), later(45)), nil, "", oneSide},
		{"another length", kept.near(ask), asPrinted(kept.far(udp(ask.Tuple.String()[4:], "what another asks", at(10)))), nil, "", both},
		{"UDP, translated, as it left", snat.near(ask), asPrinted(snat.far(ask)), nil, ends + ": probable", both},
		{"inside the Pod: ports and lengths alone say nothing", inside(snat.near(ask)), asPrinted(snat.far(ask)), nil, "", both},
		{"not even a kept port", inside(samePort.near(ask)), asPrinted(samePort.far(ask)), nil, "", both},
		{"a kept port and the IP ID", inside(samePort.near(ask)), verbose(samePort.far(ask)), nil, "ports, ip id: exact", both},
		{"a kept port and the IP ID, and no clock", inside(samePort.near(ask)), verbose(samePort.far(ask)), nil, "", none},
		{"ping, not translated", keptPing.near(ping), asPrinted(keptPing.far(ping)), nil, number + ": probable", both},
		{"ping, translated, the identifier kept", snatPing.near(ping), asPrinted(snatPing.far(ping)), nil, number + ": probable", both},
		{"ping, translated, with -v", snatPing.near(ping), verbose(snatPing.far(ping)), nil, number + ", ip id: exact", both},
		{"ping, another identifier", snatPing.near(ping), asPrinted(snatPing.far(ping), echoID(9)), nil, "", both},
		{"ping, another identifier and the same IP ID", snatPing.near(ping), verbose(snatPing.far(ping), echoID(9)), nil, "echo sequence number, ip id: probable", both},
		{"ping, another number", snatPing.near(ping), asPrinted(snatPing.far(pings[1])), nil, "", both},
		{"two pings of one identifier at the same time: another node's, too", snatPing.near(ping), append(asPrinted(snatPing.far(ping)), asPrinted(snatPing.far(ping), between("10.10.0.9 > "+server), later(0.1))...), nil, "", both},
		{"the connection table tells what leaves", inside(snat.near(ask)), asPrinted(snat.far(ask)), []string{udpTable}, "conntrack: exact", both},
		{"and makes of probable exact", snat.near(ask), asPrinted(snat.far(ask)), []string{udpTable}, "conntrack: exact", both},
		{"also without a clock", inside(snat.near(ask)), asPrinted(snat.far(ask)), []string{udpTable}, "conntrack: exact", none},
		{"not an hour later", inside(snat.near(ask)), asPrinted(snat.far(ask), later(3600)), []string{udpTable}, "", both},
		{"another connection had these ports", viaNode.near(open...), asPrinted(viaNode.far(open...), func(p *packet) { p.Seq, p.Ack = p.Seq+5, p.Ack+5 }, stamp(90_000, 0), later(2)), []string{"conntrack tcp 6 9 ESTABLISHED src=" + pod + " dst=" + server + " sport=41000 dport=443 src=" + server + " dst=" + node + " sport=443 dport=51000"}, "", both},
		{"without timestamps the numbers may have been rewritten", seenAt(viaNode.near(open...), bare), asPrinted(viaNode.far(open...), func(p *packet) { p.Seq, p.Ack = p.Seq+5, p.Ack+5 }, bare, later(2)), []string{"conntrack tcp 6 9 ESTABLISHED src=" + pod + " dst=" + server + " sport=41000 dport=443 src=" + server + " dst=" + node + " sport=443 dport=51000"}, "tuple: probable", both},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			var kn, kf many
			switch tt.clocks {
			case both:
				kn, kf = known()
			case oneSide:
				w := trip{client: "10.4.0.8:42000", server: server + ":443", as: node + ":52000"}
				first := opened(w.client+" > "+w.server, 0.5, 610_000)[:1]
				kn, kf = w.near(first...), asPrinted(w.far(first...))
			case none:
			}
			kn = append(kn, tt.near...)
			facts := factsOf(t, append([]string{"pod 10.4.0.0/14", "node " + node, "service 10.96.0.0/16"}, tt.facts...)...)
			where := about(func(*recording) {})
			if !slices.ContainsFunc(tt.near, func(p packet) bool { return p.iface != "veth1" }) {
				kn, where = inside(kn), single("veth1")
			}
			res := pairOf(t, facts, PairOptions{}, []part{where, inOrder(kn), goesOn(60)}, []part{about(printed), inOrder(kf, tt.far), goesOn(60)})
			r := thePods(t, res, "the Pod's request")
			if got := joinOf(r); got != tt.want {
				t.Errorf("got %q, want %q\n%s%+v", got, tt.want, listOf(res.Requests), r.Unknown)
			}
			checkHonest(t, res.Requests)
		})
	}
}

// Where packets stop, as a pair tells it: the verdict, and what must and must not be found.
func TestPairPlace(t *testing.T) {
	open := answeredAt(61, opened(podEnds, 10, 1000))
	open = append(open, data(podEnds, 200, at(10.02), seq(1001), acks(8001), stamp(1020, 1009), payload("GET /of-its-own HTTP/1.1")))
	lost := tries(podEnds, 10, 11, 13)
	answer := synack(back(podEnds), at(10.01), acks(31001), ttl(61))
	kn, kf := known()
	near := func(m many, more ...part) []part { return append(append([]part{inOrder(kn, m)}, more...), goesOn(60)) }
	far := func(m many, more ...part) []part { return append(append([]part{inOrder(kf, m)}, more...), goesOn(60)) }
	second := viaNode
	second.arrives = "203.0.113.1:60000"
	keptTrip := trip{client: pod + ":41000", server: server + ":443"}
	arrivedAnswer := viaNode.far(answer)[0]
	rejection := func(from string) packet {
		return icmp(from, 3, 1, arrivedAnswer, at(10.02), in("ens4"), ttl(64), func(p *packet) { p.ErrorTo = wire.MustAddr(server) })
	}
	onVLAN := func(n uint32, m many) many { return seenAt(m, vlan(n), on("span0")) }
	proxied := seenAt(renumbered(viaNode.far(open...), 5, 5), stamp(90_000, 0), ipid(9), between("203.0.113.7:7000 > "+server+":443"))
	for _, row := range []struct {
		sentence  string
		near, far []part
		opt       PairOptions
		want      string // verdict
		find, not string // finding codes, parted by |
		says      string // in the reasons
	}{
		{"the handshake completed", near(viaNode.near(open...)), far(viaNode.far(open...)), PairOptions{}, "outbound node-snated/translation handshake-completed none", "", codeMiddlebox + "|" + codeSecond, ""},
		{"it left and never arrived", near(viaNode.near(lost...)), far(nil), PairOptions{}, "outbound node-snated/translation request-only between", codeBetween, codeMiddlebox, "holds nothing of it"},
		{"it arrived, and nothing came back", near(viaNode.near(lost...)), far(viaNode.far(lost...)), PairOptions{}, "outbound node-snated/translation request-only far", codeFarUnanswered, codeBetween, "3 packets arrived"},
		{"the answer left and never reached the node", near(viaNode.near(lost...)), far(inOrder(viaNode.far(append(lost, answer)...))), PairOptions{}, "outbound node-snated/translation request-only return", codeReturnLost, codeNoReturnRoute, "no answer reached the node"},
		{"the answer reached the node and not the Pod", near(inOrder(viaNode.near(lost...), viaNode.near(answer)[:1])), far(inOrder(viaNode.far(append(lost, answer)...))), PairOptions{}, "outbound node-snated/translation half-open|request-only node-in", codeNotDelivered, codeReturnLost, ""},
		{"a router rejects the far host's answer", near(viaNode.near(lost...)), far(inOrder(viaNode.far(append(lost, answer)...), many{rejection("10.20.0.1")})), PairOptions{}, "outbound node-snated/translation request-only return", codeNoReturnRoute, codeReturnLost, "10.20.0.1"},
		// A second translation, and a destination that changes.
		{"a second translation", near(viaNode.near(open...)), far(second.far(open...)), PairOptions{}, "outbound node-snated/translation handshake-completed none", codeSecond, codeMiddlebox, ""},
		{"a second translation, and no answer", near(viaNode.near(lost...)), far(second.far(lost...)), PairOptions{}, "outbound node-snated/translation request-only far", codeSecond + "|" + codeFarUnanswered, "", ""},
		{"the destination changes past the node", near(viaNode.near(open...)), far(trip{client: viaNode.client, server: viaNode.server, as: viaNode.as, serves: "10.50.0.2:8443"}.far(open...)), PairOptions{}, "outbound node-snated/translation handshake-completed none", "", codeMiddlebox, ""},
		{
			"the destination changes on the node", near(natPath{client: pod + ":41000", server: "10.96.0.10:443", as: node + ":51000", to: server + ":443", podIf: "veth1", uplink: "eth0"}.carry(seenAt(open[:1], between(pod+":41000 > 10.96.0.10:443"))...)),
			far(viaNode.far(open[:1]...)),
			PairOptions{},
			"outbound node-snated/translation request-only far", codeFarUnanswered, "", "",
		},
		// Who answered.
		{"the near side is answered, and the far side holds nothing: a device on the way answered", near(viaNode.near(open...)), far(nil), PairOptions{}, "outbound node-snated/translation handshake-completed between", codeMiddlebox, codeBetween, "holds nothing of it"},
		{"the same, refused", near(viaNode.near(lost[0], refusal(back(podEnds), at(10.01), acks(31001), seq(0), ttl(61)))), far(nil), PairOptions{}, "outbound node-snated/translation refused between", codeMiddlebox, "", ""},
		{"a proxy: the far side holds another connection with its payload at that time", near(viaNode.near(open...)), far(proxied), PairOptions{}, "outbound node-snated/translation handshake-completed none", codeMiddlebox, codeSecond, "same payload"},
		{"the same, an hour later: it says nothing of a proxy, and the far side holds nothing", near(viaNode.near(open...)), far(seenAt(proxied, later(3600))), PairOptions{}, "outbound node-snated/translation handshake-completed between", codeMiddlebox, "", ""},
		// A firewall that rewrites sequence numbers.
		{"rewritten, and no answer", near(viaNode.near(lost...)), far(renumbered(viaNode.far(lost...), 1e9, 3e9)), PairOptions{}, "outbound node-snated/translation request-only far", codeRewritten + "|" + codeFarUnanswered, codeSecond, ""},
		{"rewritten, and the answer was lost on the way back", near(viaNode.near(lost...)), far(renumbered(inOrder(viaNode.far(append(lost, answer)...)), 1e9, 3e9)), PairOptions{}, "outbound node-snated/translation request-only return", codeRewritten + "|" + codeReturnLost, "", ""},
		// Mirror ports.
		{"a mirror port's copies are one transmission", near(viaNode.near(lost[0])), far(inOrder(viaNode.far(lost[0]), seenAt(viaNode.far(lost[0]), later(0.002)))), PairOptions{}, "outbound node-snated/translation request-only far", "", "", "1 packet arrived"},
		{
			"seen on one VLAN of a firewall and not on the other, on which others are seen", near(viaNode.near(lost...)),
			[]part{inOrder(onVLAN(10, kf), seenAt(onVLAN(20, kf), later(0.0005), func(p *packet) { p.TTL-- }), onVLAN(10, viaNode.far(lost...))), goesOn(60)},
			PairOptions{},
			"outbound node-snated/translation request-only between", codeBetween, codeFarUnanswered, "VLAN 20",
		},
		{
			"seen on both VLANs", near(viaNode.near(lost...)),
			[]part{inOrder(onVLAN(10, kf), seenAt(onVLAN(20, kf), later(0.0005), func(p *packet) { p.TTL-- }), onVLAN(10, viaNode.far(lost...)), seenAt(onVLAN(20, viaNode.far(lost...)), later(0.0005), func(p *packet) { p.TTL-- })), goesOn(60)},
			PairOptions{},
			"outbound node-snated/translation request-only far", codeFarUnanswered, codeBetween, "",
		},
		// A capture inside the Pod and the far side: the address that arrived says what left.
		{"inside the Pod: it arrived with the node's address", []part{inOrder(seenAt(open[:1], out("eth0")), seenAt(open[1:2], in("eth0")), seenAt(open[2:], out("eth0"))), goesOn(60)}, far(viaNode.far(open...)), PairOptions{}, "outbound node-snated/far handshake-completed none", "", codeSecond, ""},
		{"inside the Pod: it arrived with the Pod's", []part{inOrder(seenAt(open[:1], out("eth0")), seenAt(open[1:2], in("eth0")), seenAt(open[2:], out("eth0"))), goesOn(60)}, far(keptTrip.far(open...)), PairOptions{}, "outbound pod-sourced/far handshake-completed none", "", codeSecond, ""},
		{"the Pod's interface: it arrived with the node's address, unanswered", []part{single("veth1"), seenAt(lost, on("veth1")), goesOn(60)}, far(viaNode.far(lost...)), PairOptions{}, "outbound node-snated/far request-only far", codeFarUnanswered, "", ""},
		{"inside the Pod: it arrived with a third address", []part{inOrder(seenAt(open[:1], out("eth0")), seenAt(open[1:2], in("eth0")), seenAt(open[2:], out("eth0"))), goesOn(60)}, far(second.far(open...)), PairOptions{}, "outbound unknown(pod-side-capture-only) handshake-completed none", "", "", ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			res := pairOf(t, gke(t), row.opt, row.near, row.far)
			r := thePods(t, res, "the Pod's request")
			if got := verdictOf(r); !meets(got, row.want) {
				t.Errorf("got  %s\nwant %s\n%+v\n%q\n%s", got, row.want, r.Unknown, r.Reasons, listOf(res.Requests))
			}
			for c := range strings.SplitSeq(row.find, "|") {
				if c != "" && !slices.Contains(r.Findings, c) {
					t.Errorf("no finding %s: %v", c, r.Findings)
				}
			}
			for c := range strings.SplitSeq(row.not, "|") {
				if c != "" && slices.Contains(r.Findings, c) {
					t.Errorf("finding %s: %v", c, r.Findings)
				}
			}
			if !strings.Contains(fmt.Sprint(r.Reasons), row.says) {
				t.Errorf("the reasons do not say %q: %q", row.says, r.Reasons)
			}
			checkHonest(t, res.Requests)
		})
	}
}

// The far side's address of a second translation is given, with what the far side calls the server.
func TestPairNamesBothEnds(t *testing.T) {
	open := answeredAt(61, opened(podEnds, 10, 1000))
	w := viaNode
	w.arrives, w.serves = "203.0.113.1:60000", "10.50.0.2:8443"
	r := thePods(t, pairOf(t, gke(t), PairOptions{}, []part{viaNode.near(open...)}, []part{w.far(open...)}), "")
	got := ""
	for _, e := range []*Endpoint{&r.Client, r.Egress, r.Far, &r.Server, r.FarServer} {
		if e == nil {
			t.Fatalf("an end is missing: %+v", r)
		}
		got += " " + addrPort(*e)
	}
	if want := " " + pod + ":41000 " + node + ":51000 203.0.113.1:60000 " + server + ":443 10.50.0.2:8443"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An answer that arrives at another node than the one the request left from: the way back, and that node is named.
func TestAnswerAtAnotherNode(t *testing.T) {
	lost := tries(podEnds, 10, 11, 13)
	answer := synack(back(podEnds), at(10.01), acks(31001), ttl(61))
	for _, label := range []string{"", "node-b"} {
		kn, kf := known()
		two := captureOf(t, viaNode.near(answer)[:1], goesOn(60), about(func(r *recording) { r.input.Label, r.input.File = label, "second.pcap" }))
		one := captureOf(t, inOrder(kn, viaNode.near(lost...)), goesOn(60))
		name := label
		if name == "" {
			name = "second.pcap"
		}
		res := runOf(t, gke(t), Options{}, one, two, farCapture(t, inOrder(kf, viaNode.far(append(lost, answer)...)), goesOn(60)))
		r := thePods(t, res, "")
		if r.StoppedAt != StopReturn || !slices.Contains(r.Findings, codeOtherNode) || !strings.Contains(fmt.Sprint(r.Reasons), name) {
			t.Errorf("%s %v %q", verdictOf(r), r.Findings, r.Reasons)
		}
	}
}

// Of a far capture's own requests those of the cluster are listed, others' are counted.
func TestFarRequestsOfTheCluster(t *testing.T) {
	kn, kf := known()
	missed := trip{client: "10.4.9.9:40000", server: server + ":443"}.far(answeredAt(61, opened("10.4.9.9:40000 > "+server+":443", 20, 310_000))...)
	byNode := atServer(opened(node+":40001 > "+server+":443", 21, 320_000))
	stranger := atServer(opened("172.16.0.9:40000 > "+server+":443", 22, 330_000))
	res := pairOf(t, gke(t), PairOptions{}, []part{inOrder(kn)}, []part{inOrder(kf, missed, byNode, stranger)})
	var got []string
	for i := range res.Requests {
		if r := &res.Requests[i]; r.farOnly() {
			got = append(got, r.Client.Addr.String())
		}
	}
	slices.Sort(got)
	if want := []string{node, "10.4.9.9"}; !slices.Equal(got, want) {
		t.Errorf("listed of the far capture alone: %v, want %v", got, want)
	}
	if notes := strings.Join(res.Captures[1].Notes, "; "); !strings.Contains(notes, "1 request of other clients") {
		t.Errorf("the stranger's is not counted: %q", notes)
	}
}

// What is looked up in a sorted list is what a map of lists holds.
func TestISNIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	twin := make(map[uint32][]int32)
	var list isnIndex
	for i := range int32(3_000) {
		isn := []uint32{0, 1, ^uint32(0), r.Uint32N(700), r.Uint32()}[r.IntN(5)]
		twin[isn] = append(twin[isn], i)
		list = append(list, uint64(isn)<<32|uint64(i))
	}
	slices.Sort(list)
	ask := func(isn uint32) {
		var got []int32
		for _, c := range list.with(isn) {
			got = append(got, int32(c))
		}
		if !slices.Equal(got, twin[isn]) {
			t.Fatalf("number %d: %v, the map has %v", isn, got, twin[isn])
		}
	}
	for isn := range twin {
		ask(isn)
	}
	for range 1_000 {
		ask(r.Uint32N(1_000))
	}
}
