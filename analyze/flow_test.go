package analyze

import (
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

const (
	podToServer = pod + ":41000 > " + server + ":443"
	serverToPod = server + ":443 > " + pod + ":41000"
	podToDNS    = pod + ":41000 > " + server + ":53"
	dnsToPod    = server + ":53 > " + pod + ":41000"
	podPing     = pod + " > " + server
	podPinged   = server + " > " + pod
)

// outcomesOf is what happened, request by request, in order of their first packets.
func outcomesOf(rs []Request) string {
	words := make([]string, len(rs))
	for i := range rs {
		words[i] = rs[i].Outcome.String()
	}
	return strings.Join(words, ", ")
}

// reopened is a handshake of other initial sequence numbers.
func reopened(ends string, client, srv uint32, mods ...mod) many {
	m := handshake(ends, mods...)
	m[0].Seq = client
	m[1].Seq, m[1].Ack = srv, client+1
	m[2].Seq, m[2].Ack = client+1, srv+1
	for i := range m {
		m[i].IPID += uint16(client)
	}
	return m
}

func TestRequestsBegin(t *testing.T) {
	closed := many{fin(podToServer, at(2)), finBack(serverToPod, at(2.01)), ack(podToServer, at(2.0101), seq(clientISN+2), acks(serverISN+2))}
	for _, tt := range []struct {
		sentence string
		parts    []part
		want     string
	}{
		// A SYN of another client ISN begins a request after a close, a reset or an unanswered attempt.
		{
			"another ISN after both sides closed",
			[]part{handshake(podToServer, at(1)), closed, reopened(podToServer, 9000, 70000, at(3))},
			"handshake-completed, handshake-completed",
		},
		{
			"another ISN after the client's reset",
			[]part{handshake(podToServer, at(1)), rst(podToServer, at(2)), reopened(podToServer, 9000, 70000, at(3))},
			"handshake-completed, handshake-completed",
		},
		{
			"another ISN after the server's reset",
			[]part{handshake(podToServer, at(1)), rst(serverToPod, at(2), seq(serverISN+1)), reopened(podToServer, 9000, 70000, at(3))},
			"handshake-completed, handshake-completed",
		},
		{
			"another ISN after an attempt that nobody answered",
			[]part{syn(podToServer, at(1)), syn(podToServer, at(2), ipid(2)), reopened(podToServer, 9000, 70000, at(5))},
			"request-only, handshake-completed",
		},
		{
			"another ISN after a refused attempt",
			[]part{syn(podToServer, at(1)), refusal(serverToPod, at(1.01)), reopened(podToServer, 9000, 70000, at(1.5))},
			"refused, handshake-completed",
		},
		{
			"another ISN after an attempt that a router rejected",
			[]part{
				syn(podToServer, at(1)), icmp("198.51.100.1", 3, 13, syn(podToServer), at(1.01)),
				reopened(podToServer, 9000, 70000, at(1.5)),
			},
			"rejected, handshake-completed",
		},
		{
			"another ISN that is lower than the one before, across the wrap",
			[]part{syn(podToServer, at(1), isn(0xffff_fff0)), syn(podToServer, at(2), isn(16))},
			"request-only, request-only",
		},
		{
			"the other end opens a connection between the same ports once this one is closed",
			[]part{handshake(podToServer, at(1)), closed, reopened(serverToPod, 9000, 70000, at(3))},
			"handshake-completed, handshake-completed",
		},
		// Nothing else splits a connection.
		{
			"the same SYN again, however late",
			[]part{syn(podToServer, at(1)), syn(podToServer, at(64), ipid(9)), syn(podToServer, at(191), ipid(10))},
			"request-only",
		},
		{
			"the same SYN again behind an answer that got lost",
			[]part{syn(podToServer, at(1)), synack(serverToPod, at(1.01)), syn(podToServer, at(2), ipid(9)), synack(serverToPod, at(2.01), ipid(8)), ack(podToServer, at(2.0101))},
			"handshake-completed",
		},
		{
			"a SYN-ACK with another server ISN, as a balancer's second member sends",
			[]part{syn(podToServer, at(1)), synack(serverToPod, at(1.01)), syn(podToServer, at(2), ipid(9)), synack(serverToPod, at(2.01), isn(80000)), ack(podToServer, at(2.02), acks(80001))},
			"handshake-completed",
		},
		{
			"a stray SYN within an open connection, challenged (RFC 5961 section 4), and the connection goes on",
			[]part{
				handshake(podToServer, at(1)), syn(podToServer, at(2), isn(77777)), ackBack(serverToPod, at(2.01)),
				data(podToServer, 5, at(3)), dataBack(serverToPod, 5, at(3.1), acks(clientISN+6)),
			},
			"handshake-completed",
		},
		{
			"a connection without a packet for an hour",
			[]part{handshake(podToServer, at(1)), data(podToServer, 10, at(3600)), dataBack(serverToPod, 10, at(3600.1))},
			"handshake-completed",
		},
		{
			"data behind a reset",
			[]part{handshake(podToServer, at(1)), rst(podToServer, at(2)), dataBack(serverToPod, 10, at(2.001))},
			"handshake-completed",
		},
		{
			"both ends' SYNs cross",
			[]part{
				syn(podToServer, at(1)), syn(serverToPod, at(1.001), isn(serverISN)),
				synack(podToServer, at(1.002), isn(clientISN), acks(serverISN+1)), synack(serverToPod, at(1.003)),
			},
			"handshake-completed",
		},
		{
			"the answer was captured before the SYN",
			[]part{synack(serverToPod, at(1.000010)), syn(podToServer, at(1.000012)), ack(podToServer, at(1.0001))},
			"handshake-completed",
		},
		{
			"the client's ACK was captured before the SYN-ACK",
			[]part{syn(podToServer, at(1)), ack(podToServer, at(1.010001)), synack(serverToPod, at(1.010003))},
			"handshake-completed",
		},
		// UDP: the same tuple is another request after 120 idle seconds, in either direction.
		{
			"a datagram 119.9 s behind the last",
			[]part{udp(podToDNS, "one", at(0)), udp(podToDNS, "two", at(119.9))},
			"request-only",
		},
		{
			"a datagram 120 s behind the last",
			[]part{udp(podToDNS, "one", at(0)), udp(podToDNS, "two", at(120))},
			"request-only, request-only",
		},
		{
			"a reply keeps the tuple from being idle",
			[]part{udp(podToDNS, "one", at(0)), udp(dnsToPod, "reply", at(100)), udp(podToDNS, "two", at(200))},
			"answered",
		},
		{
			"a reply that comes after 120 s of silence answers nothing",
			[]part{udp(podToDNS, "one", at(0)), udp(dnsToPod, "reply", at(130))},
			"request-only, reply-only",
		},
		{
			"datagrams without times are one request",
			[]part{udp(podToDNS, "one", timeless), udp(podToDNS, "two", timeless)},
			"request-only",
		},
		// Echo: an identifier is a request, its sequence numbers are not.
		{
			"two pings of one identifier",
			[]part{echo(podPing, 7, 1, at(1)), echoReply(podPinged, 7, 1, at(1.01)), echo(podPing, 7, 2, at(2)), echoReply(podPinged, 7, 2, at(2.01))},
			"answered",
		},
		{
			"two identifiers, of which one is answered",
			[]part{echo(podPing, 7, 1, at(1)), echo(podPing, 8, 1, at(2)), echoReply(podPinged, 8, 1, at(2.01))},
			"request-only, answered",
		},
		{
			"pings both ways with one identifier, of which one is answered",
			[]part{echo(podPing, 7, 1, at(1)), echo(podPinged, 7, 1, at(2)), echoReply(podPing, 7, 1, at(2.01))},
			"request-only, answered",
		},
		{
			"pings both ways with one identifier, and nobody answers",
			[]part{echo(podPing, 7, 1, at(1)), echo(podPinged, 7, 1, at(2))},
			"request-only, request-only",
		},
		// SCTP: as TCP, by the INIT's tag.
		{
			"another INIT tag after an ABORT",
			[]part{
				chunk(podToServer, wire.ChunkInit, at(1), seq(1)), chunk(serverToPod, wire.ChunkAbort, at(1.01), acks(1)),
				chunk(podToServer, wire.ChunkInit, at(2), seq(2)),
			},
			"refused, request-only",
		},
		// What makes no request.
		{
			"later fragments alone",
			[]part{fragment(udp(podToDNS, "x", at(1)))},
			"",
		},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			rs := requestsOf(t, gke(t), append([]part{interfaces("veth1", "eth0"), window(-10, 10_000)}, tt.parts...)...)
			if got := outcomesOf(rs); got != tt.want {
				t.Errorf("got  %s\nwant %s\n%s", got, tt.want, listOf(rs))
			}
		})
	}
}

func TestClient(t *testing.T) {
	for _, tt := range []struct {
		sentence string
		parts    []part
		want     string // client, server
	}{
		{"who sent the SYN, whatever the ports", []part{syn(serverToPod, at(1))}, server + ":443 " + pod + ":41000"},
		{"whom the SYN-ACK was sent to", []part{synack(serverToPod, at(1))}, pod + ":41000 " + server + ":443"},
		{"whom the SYN-ACK was sent to, whatever the ports", []part{synack(podToServer, at(1))}, server + ":443 " + pod + ":41000"},
		{"midstream: the end with the ephemeral port, though the server spoke first", []part{dataBack(serverToPod, 9, at(1)), data(podToServer, 9, at(2))}, pod + ":41000 " + server + ":443"},
		{"a SYN decides, though data of another connection was seen before", []part{dataBack(serverToPod, 9, at(1), seq(77777)), syn(podToServer, at(2)), synack(serverToPod, at(2.1))}, pod + ":41000 " + server + ":443"},
		{"UDP: who spoke first", []part{udp(pod+":41000 > "+server+":39999", "q", at(1)), udp(server+":39999 > "+pod+":41000", "r", at(2))}, pod + ":41000 " + server + ":39999"},
		{"UDP: a reply alone comes from the well-known port", []part{udp(dnsToPod, "r", at(1))}, pod + ":41000 " + server + ":53"},
		{"echo: who sent the request, though the reply was captured first", []part{echoReply(podPinged, 7, 1, at(1)), echo(podPing, 7, 1, at(1.00001))}, pod + " " + server},
		{"echo: whom the reply was sent to", []part{echoReply(podPinged, 7, 1, at(1))}, pod + " " + server},
		{"SCTP: who sent the INIT", []part{chunk(serverToPod, wire.ChunkInit, at(1))}, server + ":443 " + pod + ":41000"},
		{"SCTP: whom the INIT ACK was sent to", []part{chunk(podToServer, wire.ChunkInitAck, at(1))}, server + ":443 " + pod + ":41000"},
		{"a router's error alone: who sent the quoted packet", []part{icmp("198.51.100.1", 3, 1, syn(podToServer), at(1))}, pod + ":41000 " + server + ":443"},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			rs := requestsOf(t, gke(t), tt.parts...)
			if len(rs) == 0 {
				t.Fatal("no request")
			}
			r := &rs[len(rs)-1]
			if got := endText(r.Client) + " " + endText(r.Server); got != tt.want {
				t.Errorf("got %q, want %q\n%s", got, tt.want, listOf(rs))
			}
		})
	}
}

func endText(e Endpoint) string {
	if !e.HasPort {
		return e.Addr.String()
	}
	return e.Addr.String() + ":" + itoa(uint64(e.Port))
}

// One transmission is counted once, wherever and however often it was seen; a retransmission is another one.
func TestTransmissions(t *testing.T) {
	v6 := "[2001:db8:4::7]:41000 > [2001:db8:9::9]:443"
	var burst, copied many
	for i := range 40 {
		p := data(podToServer, 100, at(2+float64(i)*1e-6), seq(uint32(clientISN+1+100*i)), ipid(uint16(100+i)), in("veth1"))
		burst, copied = append(burst, p), append(copied, also(p, in("cbr0"), later(60e-6)))
	}
	for _, tt := range []struct {
		sentence             string
		parts                []part
		sent, replies, again uint64
	}{
		{
			"at the Pod's interface, the bridge and the uplink",
			[]part{
				syn(podToServer, at(1), in("veth1")), syn(podToServer, at(1), in("cbr0")), syn(podToServer, at(1.00005), out("eth0"), ttl(63)),
				synack(serverToPod, at(1.01), in("eth0"), ttl(60)), synack(serverToPod, at(1.01004), out("cbr0"), ttl(59)), synack(serverToPod, at(1.01005), out("veth1"), ttl(59)),
			},
			1, 1, 0,
		},
		{
			"at three interfaces, translated on the way",
			[]part{
				natPath{client: pod + ":41000", server: server + ":443", as: node + ":52000", podIf: "veth1", bridge: "cbr0", uplink: "eth0"}.carry(handshake(podToServer, at(1))...),
			},
			2, 1, 0,
		},
		{
			"copied by a mirror port 4 ms later",
			[]part{syn(podToServer, at(1), ipid(5)), syn(podToServer, at(1.004), ipid(5))},
			1, 0, 0,
		},
		{
			"copied by a mirror port, and both copies once more a second later",
			[]part{
				syn(podToServer, at(1), ipid(5)), syn(podToServer, at(1.001), ipid(5)),
				syn(podToServer, at(2), ipid(6)), syn(podToServer, at(2.001), ipid(6)),
			},
			2, 0, 1,
		},
		{
			"sent again within 5 ms with another IP ID",
			[]part{syn(podToServer, at(1), ipid(5)), syn(podToServer, at(1.003), ipid(6))},
			2, 0, 1,
		},
		{
			"sent again with the same IP ID, 6 ms later",
			[]part{syn(podToServer, at(1), ipid(5)), syn(podToServer, at(1.006), ipid(5))},
			2, 0, 1,
		},
		{
			"IPv6 has no IP ID: a copy is told by sequence and payload",
			[]part{syn(v6, at(1)), syn(v6, at(1.0001))},
			1, 0, 0,
		},
		{
			"two datagrams of the same IP ID and different payload are two",
			[]part{udp(podToDNS, "one", at(1), ipid(5)), udp(podToDNS, "two", at(1.001), ipid(5))},
			2, 0, 0,
		},
		{
			"two datagrams of the same payload and different IP IDs are two",
			[]part{udp(podToDNS, "one", at(1), ipid(5)), udp(podToDNS, "one", at(1.001), ipid(6))},
			2, 0, 0,
		},
		{
			"a retransmission at two points is one",
			[]part{
				syn(podToServer, at(1), in("veth1"), ipid(5)), syn(podToServer, at(1.0001), out("eth0"), ttl(63), ipid(5)),
				syn(podToServer, at(2), in("veth1"), ipid(6)), syn(podToServer, at(2.0001), out("eth0"), ttl(63), ipid(6)),
			},
			2, 0, 1,
		},
		{
			"a burst that a veth hands to its bridge at once is copied, not sent again",
			[]part{handshake(podToServer, at(1), in("veth1")), burst, copied},
			42, 1, 0,
		},
		{
			"data that is sent again is a retransmission",
			[]part{handshake(podToServer, at(1)), data(podToServer, 100, at(2), ipid(5)), data(podToServer, 100, at(2.3), ipid(6))},
			4, 1, 1,
		},
		{
			"data behind data is none",
			[]part{handshake(podToServer, at(1)), data(podToServer, 100, at(2), ipid(5)), data(podToServer, 100, at(2.3), seq(clientISN+101), ipid(6))},
			4, 1, 0,
		},
		{
			"data across the wrap of the sequence numbers is none",
			[]part{
				syn(podToServer, at(1), isn(0xffff_ffce)), synack(serverToPod, at(1.01), acks(0xffff_ffcf)), ack(podToServer, at(1.011), seq(0xffff_ffcf)),
				data(podToServer, 100, at(2), seq(0xffff_ffcf), ipid(5)), data(podToServer, 100, at(2.1), seq(51), ipid(6)),
			},
			4, 1, 0,
		},
		{
			"pure acknowledgements are never retransmissions",
			[]part{handshake(podToServer, at(1)), ack(podToServer, at(2), ipid(5)), ack(podToServer, at(3), ipid(6))},
			4, 1, 0,
		},
		{
			"a keep-alive probe is none",
			[]part{handshake(podToServer, at(1)), ack(podToServer, at(60), seq(clientISN), ipid(5)), ackBack(serverToPod, at(60.01))},
			3, 2, 0,
		},
		{
			"the fragments of one datagram are one",
			[]part{
				udp(podToDNS, "long", at(1), ipid(5), marked(wire.IsFragment)), fragment(udp(podToDNS, "long", at(1), ipid(5))), fragment(udp(podToDNS, "long", at(1.0001), ipid(5))),
			},
			1, 0, 0,
		},
		{
			"the same ping at two points is one, the next is another",
			[]part{
				echo(podPing, 7, 1, at(1), in("veth1")), echo(podPing, 7, 1, at(1.0001), out("eth0"), ttl(63)),
				echo(podPing, 7, 2, at(2), in("veth1")), echo(podPing, 7, 2, at(2.0001), out("eth0"), ttl(63)),
			},
			2, 0, 0,
		},
		{
			"without times, the same packet on two interfaces is one",
			[]part{syn(podToServer, timeless, in("veth1")), syn(podToServer, timeless, out("eth0"), ttl(63))},
			1, 0, 0,
		},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			r := requestOf(t, gke(t), tt.parts...)
			if r.RequestsSent != tt.sent || r.RepliesSeen != tt.replies || r.Retransmissions != tt.again {
				t.Errorf("got %d sent, %d replies, %d again; want %d, %d, %d", r.RequestsSent, r.RepliesSeen, r.Retransmissions, tt.sent, tt.replies, tt.again)
			}
		})
	}
}

// A request is one, through whatever interfaces and VLANs its packets come and go.
func TestPoints(t *testing.T) {
	for _, tt := range []struct {
		sentence string
		parts    []part
		want     string
	}{
		{"out by one uplink, back by the other", []part{
			syn(podToServer, at(1), in("veth1")), syn(podToServer, at(1.0001), out("eth0"), ttl(63)),
			synack(serverToPod, at(1.01), in("eth1")), synack(serverToPod, at(1.0101), out("veth1"), ttl(63)),
			ack(podToServer, at(1.0102), in("veth1")), ack(podToServer, at(1.0103), out("eth0"), ttl(63)),
		}, "handshake-completed"},
		{"out in one VLAN, back in another", []part{
			syn(podToServer, at(1), on("eth0"), vlan(10)), synack(serverToPod, at(1.01), on("eth0"), vlan(20)), ack(podToServer, at(1.02), on("eth0"), vlan(10)),
		}, "handshake-completed"},
		{"the request on one interface only, the reply on another only", []part{
			udp(podToDNS, "q", at(1), out("eth0"), ttl(63)), udp(dnsToPod, "r", at(1.01), in("eth1")),
		}, "answered"},
		{"a frame on the VLAN interface and, tagged, on the device below", []part{
			syn(podToServer, at(1), out("eth0.10")), syn(podToServer, at(1), out("eth0"), vlan(10)),
			synack(serverToPod, at(1.01), in("eth0"), vlan(10)), synack(serverToPod, at(1.01), in("eth0.10")),
		}, "half-open"},
		{"all interfaces as SLL gives them: directions and no names, translated on the way", []part{
			about(cooked1), natPath{client: pod + ":41000", server: server + ":443", as: node + ":52000", podIf: "any", uplink: "any"}.carry(handshake(podToServer, at(1))...),
		}, "handshake-completed"},
		{"inside a tunnel and outside of it", []part{
			syn(podToServer, at(1), in("veth1")), syn(podToServer, at(1.0001), out("eth0"), ttl(63), depth(1)),
			synack(serverToPod, at(1.01), in("eth0"), depth(1)), synack(serverToPod, at(1.0101), out("veth1"), ttl(63)), ack(podToServer, at(1.0102), in("veth1")),
		}, "handshake-completed"},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			if r := requestOf(t, gke(t), tt.parts...); r.Outcome.String() != tt.want {
				t.Errorf("got %s, want %s\n%s", r.Outcome, tt.want, listOf([]Request{r}))
			}
		})
	}
}

// Neighbour discovery is the link's business: with it in the capture, everything else reads the same.
func TestNeighbourDiscoveryNeverDisturbs(t *testing.T) {
	ends := "[2001:db8:4::7]:41000 > [2001:db8:9::9]:443"
	facts := factsOf(t, "pod 2001:db8:4::/48", "node 2001:db8:1::10")
	request := natPath{client: "[2001:db8:4::7]:41000", server: "[2001:db8:9::9]:443", podIf: "veth1", uplink: "eth0"}.carry(handshake(ends, at(1))...)
	noise := many{
		neighbour("2001:db8:4::7 > ff02::1:ff00:1", 135, at(0.5), in("veth1")), neighbour("fe80::1 > 2001:db8:4::7", 136, at(0.5001), out("veth1")),
		neighbour("2001:db8:1::10 > ff02::1:ff00:9", 135, at(0.9), out("eth0")), neighbour("fe80::1 > ff02::1", 134, at(2), in("eth0")),
		neighbour("fe80::1 > fe80::2", 137, at(3), in("eth0")),
	}
	quiet := resultOf(t, facts, interfaces("veth1", "eth0"), window(0, 10), request)
	noisy := resultOf(t, facts, interfaces("veth1", "eth0"), window(0, 10), noise[:3], request, noise[3:])
	others := slices.DeleteFunc(noisy.Requests, func(r Request) bool { return r.Tuple.Query != 0 })
	if got, want := listOf(others), listOf(quiet.Requests); got != want {
		t.Errorf("requests change:\n%swant:\n%s", got, want)
	}
	if got, want := codesOf(noisy), codesOf(quiet); !slices.Equal(got, want) {
		t.Errorf("findings change: got %v, want %v", got, want)
	}
	if len(noisy.Sources) != len(quiet.Sources) {
		t.Errorf("sources change: got %v, want %v", noisy.Sources, quiet.Sources)
	}
}

func codesOf(res *Result) []string {
	var codes []string
	for i := range res.Findings {
		codes = append(codes, res.Findings[i].Code)
	}
	return codes
}

// A direction of a leg of one flow is the flow's own: it says what merging it with nothing would.
func TestLegOfOneFlow(t *testing.T) {
	for seed := range uint64(3) {
		m := busy(seed)
		for _, strip := range []mod{func(*packet) {}, timeless} {
			table := newTable(0)
			for _, p := range m {
				p := p.with(strip)
				p.Iface = uint32(len(p.iface))
				table.add(&p.Packet)
			}
			for i := 1; i < table.flows.size(); i++ {
				f := table.flows.at(ref(i))
				var l legState
				table.merge(LegUnknown, &l, &legFlows{flows: []ref{ref(i)}, clients: []int{int(f.client)}})
				for side, d := range []*dirState{l.client, l.server} {
					var want dirState
					mergeDir(&want, &f.dir[int(f.client)^side])
					got := *d
					got.odd, got.ipid, got.prints = 0, 0, 0 // of one flow, not of a leg
					if got.mac, want.mac = 0, 0; got != want {
						t.Fatalf("flow %d, side %d:\ngot  %+v\nwant %+v", i, side, got, want)
					}
				}
			}
		}
	}
}
