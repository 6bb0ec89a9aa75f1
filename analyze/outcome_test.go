package analyze

import (
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// snatted is the tests' request as a node carries it that translates its source.
var snatted = natPath{client: pod + ":41000", server: server + ":443", as: node + ":52000", podIf: "veth1", uplink: "eth0"}

const (
	nodeToServer = node + ":52000 > " + server + ":443"
	serverToNode = server + ":443 > " + node + ":52000"
	router       = "198.51.100.1"
)

func TestOutcome(t *testing.T) {
	for _, tt := range []struct {
		sentence string
		parts    []part
		want     string
	}{
		// TCP, by its opening.
		{"SYN, SYN-ACK, ACK", []part{handshake(podToServer, at(1))}, "handshake-completed"},
		{"SYN, SYN-ACK, data that acknowledges", []part{syn(podToServer, at(1)), synack(serverToPod, at(1.01)), data(podToServer, 9, at(1.02))}, "handshake-completed"},
		{"SYN, SYN-ACK, a FIN that acknowledges", []part{syn(podToServer, at(1)), synack(serverToPod, at(1.01)), fin(podToServer, at(1.02))}, "handshake-completed"},
		{"SYN, SYN-ACK, nothing more", []part{syn(podToServer, at(1)), synack(serverToPod, at(1.01))}, "half-open"},
		{"SYN, SYN-ACK, SYN-ACK again", []part{syn(podToServer, at(1)), synack(serverToPod, at(1.01)), synack(serverToPod, at(2.01), ipid(3))}, "half-open"},
		{"SYN, SYN-ACK, the client's reset", []part{syn(podToServer, at(1)), synack(serverToPod, at(1.01)), rst(podToServer, at(1.02))}, "half-open"},
		{"SYN, SYN-ACK, the server's reset", []part{syn(podToServer, at(1)), synack(serverToPod, at(1.01)), rst(serverToPod, at(1.02), seq(serverISN+1))}, "half-open"},
		{"SYN, RST", []part{syn(podToServer, at(1)), refusal(serverToPod, at(1.01))}, "refused"},
		{"SYN three times, then RST", []part{syn(podToServer, at(1)), syn(podToServer, at(2), ipid(1)), syn(podToServer, at(4), ipid(2)), refusal(serverToPod, at(4.01))}, "refused"},
		{"SYN, RST, and the SYN again, accepted", []part{syn(podToServer, at(1)), refusal(serverToPod, at(1.01)), handshake(podToServer, at(2), ipid(9))}, "handshake-completed"},
		{"SYN, and the client's own RST", []part{syn(podToServer, at(1)), rst(podToServer, at(1.01), seq(clientISN))}, "request-only"},
		{"SYN", []part{syn(podToServer, at(1))}, "request-only"},
		{"SYN with data (fast open), answered and acknowledged", []part{syn(podToServer, at(1), payload("hello")), synack(serverToPod, at(1.01), acks(clientISN+6)), ack(podToServer, at(1.02), seq(clientISN+6))}, "handshake-completed"},
		{"SYN, and data of an older connection, which does not acknowledge it", []part{syn(podToServer, at(1)), dataBack(serverToPod, 50, at(1.01), seq(123456), acks(654321)), ack(podToServer, at(1.02), acks(123506))}, "unknown"},
		{"reset behind the handshake, then data", []part{handshake(podToServer, at(1)), rst(podToServer, at(2)), dataBack(serverToPod, 9, at(2.01))}, "handshake-completed"},
		{"handshake around the wrap of both numbers", []part{reopened(podToServer, 0xffff_ffff, 0xffff_ffff, at(1))}, "handshake-completed"},
		{"handshake without times", []part{handshake(podToServer, timeless)}, "handshake-completed"},
		// TCP without its opening.
		{"data both ways", []part{data(podToServer, 9, at(1)), dataBack(serverToPod, 9, at(1.01))}, "midstream"},
		{"data one way, acknowledgements the other", []part{data(podToServer, 9, at(1)), ackBack(serverToPod, at(1.01))}, "midstream"},
		{"data of the client alone", []part{data(podToServer, 9, at(1)), data(podToServer, 9, at(1.1), seq(clientISN+10))}, "one-direction"},
		{"acknowledgements of the client alone", []part{ack(podToServer, at(1)), ack(podToServer, at(1.1), acks(serverISN+100))}, "one-direction"},
		{"a FIN alone", []part{fin(podToServer, at(1))}, "one-direction"},
		{"a RST alone", []part{rst(podToServer, at(1))}, "one-direction"},
		{"data of the server alone", []part{dataBack(serverToPod, 9, at(1))}, "one-direction"},
		{"SYN-ACK alone", []part{synack(serverToPod, at(1))}, "reply-only"},
		{"SYN-ACK and data of the server", []part{synack(serverToPod, at(1)), dataBack(serverToPod, 9, at(2))}, "reply-only"},
		// UDP and echo.
		{"datagram, datagram back", []part{udp(podToDNS, "q", at(1)), udp(dnsToPod, "r", at(1.01))}, "answered"},
		{"datagram back 119 s later", []part{udp(podToDNS, "q", at(1)), udp(dnsToPod, "r", at(120))}, "answered"},
		{"datagram", []part{udp(podToDNS, "q", at(1)), udp(podToDNS, "q", at(2), ipid(1))}, "request-only"},
		{"empty datagram, empty datagram back", []part{udp(podToDNS, "", at(1)), udp(dnsToPod, "", at(1.01))}, "answered"},
		{"datagram back alone", []part{udp(dnsToPod, "r", at(1))}, "reply-only"},
		{"datagram, and its answer in fragments", []part{udp(podToDNS, "q", at(1)), udp(dnsToPod, "long", at(1.01), marked(wire.IsFragment)), fragment(udp(dnsToPod, "long", at(1.01)))}, "answered"},
		{"datagram, and another port's datagram back", []part{udp(podToDNS, "q", at(1)), udp(server+":50000 > "+pod+":41000", "r", at(1.01))}, "request-only, request-only"},
		{"echo, reply", []part{echo(podPing, 7, 1, at(1)), echoReply(podPinged, 7, 1, at(1.01))}, "answered"},
		{"echo three times, one reply", []part{echo(podPing, 7, 1, at(1)), echo(podPing, 7, 2, at(2)), echoReply(podPinged, 7, 2, at(2.01)), echo(podPing, 7, 3, at(3))}, "answered"},
		{"echo", []part{echo(podPing, 7, 1, at(1))}, "request-only"},
		{"reply alone", []part{echoReply(podPinged, 7, 1, at(1))}, "reply-only"},
		{"ICMPv6 echo, reply", []part{echo("2001:db8:4::7 > 2001:db8:9::9", 7, 1, at(1)), echoReply("2001:db8:9::9 > 2001:db8:4::7", 7, 1, at(1.01))}, "answered"},
		// SCTP.
		{"INIT to COOKIE ACK", []part{
			chunk(podToServer, wire.ChunkInit, at(1), seq(11)), chunk(serverToPod, wire.ChunkInitAck, at(1.01), seq(22), acks(11)),
			chunk(podToServer, wire.ChunkCookieEcho, at(1.02), acks(22)), chunk(serverToPod, wire.ChunkCookieAck, at(1.03), acks(11)),
		}, "handshake-completed"},
		{"INIT, INIT ACK", []part{chunk(podToServer, wire.ChunkInit, at(1), seq(11)), chunk(serverToPod, wire.ChunkInitAck, at(1.01), seq(22), acks(11))}, "half-open"},
		{"INIT, ABORT", []part{chunk(podToServer, wire.ChunkInit, at(1), seq(11)), chunk(serverToPod, wire.ChunkAbort, at(1.01), acks(11))}, "refused"},
		{"INIT twice", []part{chunk(podToServer, wire.ChunkInit, at(1), seq(11)), chunk(podToServer, wire.ChunkInit, at(4), seq(11), ipid(9))}, "request-only"},
		{"INIT ACK alone", []part{chunk(serverToPod, wire.ChunkInitAck, at(1.01), seq(22), acks(11))}, "reply-only"},
		{"DATA one way, SACK the other", []part{chunk(podToServer, wire.ChunkData, at(1), seq(11)), chunk(serverToPod, wire.ChunkSack, at(1.01))}, "midstream"},
		// A capture that was cut behind the ports carries no outcome.
		{"cut packets both ways", []part{syn(podToServer, at(1), cutShort), synack(serverToPod, at(1.01), cutShort), ack(podToServer, at(1.02), cutShort)}, "unknown"},
		{"cut packets one way", []part{syn(podToServer, at(1), cutShort), syn(podToServer, at(2), cutShort, ipid(9))}, "unknown"},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			rs := requestsOf(t, gke(t), append([]part{window(-10, 1000)}, tt.parts...)...)
			if got := outcomesOf(rs); got != tt.want {
				t.Errorf("got  %s\nwant %s\n%s", got, tt.want, listOf(rs))
			}
		})
	}
}

// The client shows what it received: its acknowledgement proves delivery, at whatever point the reply was or was not seen.
func TestOutcomeIsJudgedWhereTheClientIs(t *testing.T) {
	s, sa, a := syn(podToServer, at(1)), synack(serverToPod, at(1.01)), ack(podToServer, at(1.02))
	up := func(p packet) many { return snatted.carry(p) }
	podSide := func(p packet) many { return up(p)[:1] }
	egress := func(p packet) many { return up(p)[1:] }
	other := natPath{client: pod + ":42000", server: server + ":443", as: node + ":53000", podIf: "veth1", uplink: "eth0"}
	delivered := other.carry(reopened(pod+":42000 > "+server+":443", 31, 32, at(0))...) // veth1 shows outgoing frames
	answer := func(p packet) many { return snatted.carry(p)[:1] }                       // at the uplink only
	for _, tt := range []struct {
		sentence string
		parts    []part
		want     string
	}{
		{"SYN-ACK at the uplink only, ACK at both", []part{up(s), answer(sa), up(a)}, "handshake-completed"},
		{"SYN-ACK at the uplink only, ACK at the Pod only", []part{up(s), answer(sa), podSide(a)}, "handshake-completed"},
		{"SYN-ACK at the uplink only, ACK at the uplink only", []part{up(s), answer(sa), egress(a)}, "handshake-completed"},
		{"SYN-ACK in no point of the capture", []part{up(s), up(a)}, "one-direction"},
		{"SYN-ACK at the uplink, and the client repeats its SYN where the capture shows what is delivered", []part{delivered, up(s), answer(sa), up(also(s, at(2), ipid(8))), answer(also(sa, at(2.01), ipid(9)))}, "request-only"},
		{"SYN-ACK at both, never acknowledged", []part{up(s), snatted.carry(sa)}, "half-open"},
		{"refused at both", []part{up(s), snatted.carry(refusal(serverToPod, at(1.01)))}, "refused"},
		{"one interface, SYN and ACK but no SYN-ACK", []part{s, a}, "one-direction"},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			rs := requestsOf(t, gke(t), append([]part{interfaces("veth1", "eth0"), window(-10, 1000)}, tt.parts...)...)
			if r := &rs[len(rs)-1]; r.Outcome.String() != tt.want {
				t.Errorf("got %s, want %s\n%s", r.Outcome, tt.want, listOf(rs))
			}
		})
	}
}

// Every ICMP message about an unanswered opening, and what it makes of it.
func TestRejecting(t *testing.T) {
	const none = "request-only"
	v6 := "[2001:db8:4::7]:41000 > [2001:db8:9::9]:443"
	type row struct {
		sentence     string
		from         string
		request      packet
		typ          uint8
		codes        [2]uint8 // first and last
		want, answer string   // outcome, and the type that answered
	}
	for _, tt := range []row{
		// ICMP type 3 except code 4, and type 11.
		{"unreachable", router, syn(podToServer, at(1)), 3, [2]uint8{0, 3}, "rejected", "3"},
		{"fragmentation needed is not a rejection", router, syn(podToServer, at(1)), 3, [2]uint8{4, 4}, none, ""},
		{"unreachable, administratively and otherwise", router, syn(podToServer, at(1)), 3, [2]uint8{5, 15}, "rejected", "3"},
		{"source quench is not", router, syn(podToServer, at(1)), 4, [2]uint8{0, 0}, none, ""},
		{"a redirect is not", router, syn(podToServer, at(1)), 5, [2]uint8{0, 3}, none, ""},
		{"time exceeded", router, syn(podToServer, at(1)), 11, [2]uint8{0, 1}, "rejected", "11"},
		{"a parameter problem is not", router, syn(podToServer, at(1)), 12, [2]uint8{0, 2}, none, ""},
		// ICMPv6 types 1 and 3.
		{"v6 unreachable", "2001:db8:2::1", syn(v6, at(1)), 1, [2]uint8{0, 6}, "rejected", "1"},
		{"v6 packet too big is not", "2001:db8:2::1", syn(v6, at(1)), 2, [2]uint8{0, 0}, none, ""},
		{"v6 time exceeded", "2001:db8:2::1", syn(v6, at(1)), 3, [2]uint8{0, 1}, "rejected", "3"},
		{"v6 parameter problem is not", "2001:db8:2::1", syn(v6, at(1)), 4, [2]uint8{0, 2}, none, ""},
		// Whatever the request is.
		{"unreachable, of a datagram", server, udp(podToDNS, "q", at(1)), 3, [2]uint8{3, 3}, "rejected", "3"},
		{"unreachable, of a ping", router, echo(podPing, 7, 1, at(1)), 3, [2]uint8{1, 1}, "rejected", "3"},
		{"unreachable, of an INIT", router, chunk(podToServer, wire.ChunkInit, at(1)), 3, [2]uint8{2, 2}, "rejected", "3"},
	} {
		for code := int(tt.codes[0]); code <= int(tt.codes[1]); code++ {
			t.Run(tt.sentence+"/"+itoa(uint64(code)), func(t *testing.T) {
				r := requestOf(t, gke(t), window(-10, 1000), tt.request, icmp(tt.from, tt.typ, uint8(code), tt.request, later(0.01)))
				if r.Outcome.String() != tt.want {
					t.Errorf("got %s, want %s", r.Outcome, tt.want)
				}
				got := ""
				if r.ICMP != nil {
					got = itoa(uint64(r.ICMP.Type))
					if r.ICMP.From != wire.MustAddr(tt.from) || int(r.ICMP.Code) != code || r.ICMP.About != tt.request.Tuple {
						t.Errorf("answered by %+v", r.ICMP)
					}
				}
				if tt.answer != "" && got != tt.answer {
					t.Errorf("answered by type %q, want %q", got, tt.answer)
				}
			})
		}
	}
}

// An ICMP error counts for the request that it quotes, and only as far as nothing went further.
func TestErrorsBelongToWhatTheyQuote(t *testing.T) {
	s := syn(podToServer, at(1))
	unreachable := func(p packet, mods ...mod) packet { return icmp(router, 3, 1, p, mods...) }
	for _, tt := range []struct {
		sentence string
		parts    []part
		want     string
	}{
		{"the furthest wins: an error, then the handshake", []part{s, unreachable(s, at(1.01)), handshake(podToServer, at(2), ipid(9))}, "handshake-completed"},
		{"the furthest wins: the handshake, then an error", []part{handshake(podToServer, at(1)), unreachable(data(podToServer, 9), at(2))}, "handshake-completed"},
		{"the furthest wins: an answer, then port unreachable", []part{udp(podToDNS, "q", at(1)), udp(dnsToPod, "r", at(1.01)), icmp(server, 3, 3, udp(podToDNS, "q"), at(1.02))}, "answered"},
		{"the furthest wins: refused and unreachable", []part{s, unreachable(s, at(1.01)), refusal(serverToPod, at(1.02))}, "refused"},
		{"an error about the server's SYN-ACK does not reject the client", []part{s, synack(serverToPod, at(1.01)), unreachable(synack(serverToPod), at(1.02))}, "half-open"},
		{"an error about the server's datagram does not reject the client", []part{udp(podToDNS, "q", at(1)), udp(dnsToPod, "r", at(1.01)), icmp(pod, 3, 3, udp(dnsToPod, "r"), at(1.02))}, "answered"},
		{"an error about an echo reply does not reject the ping", []part{echo(podPing, 7, 1, at(1)), icmp(router, 3, 1, echoReply(podPinged, 7, 1), at(1.02))}, "request-only"},
		{"an error that quotes another sequence number is about another attempt", []part{s, unreachable(syn(podToServer, isn(424242)), at(1.01))}, "request-only"},
		{"a late error about the attempt before", []part{s, syn(podToServer, at(2), isn(90000)), unreachable(s, at(2.01))}, "rejected, request-only"},
		{"an error about another tuple", []part{s, unreachable(syn(pod+":41001 > "+server+":443"), at(1.01))}, "request-only, rejected"},
		{"an error about the translated packet", []part{
			snatted.carry(s), icmp(router, 3, 1, syn(nodeToServer), at(1.01), in("eth0")), icmp(router, 3, 1, s, at(1.0101), out("veth1")),
		}, "rejected"},
		{"an error about the translated packet, seen at the uplink only", []part{snatted.carry(s), icmp(router, 3, 1, syn(nodeToServer), at(1.01), in("eth0"))}, "rejected"},
		{"an error about the Pod's packet, seen at the Pod only", []part{snatted.carry(s), icmp(router, 3, 1, s, at(1.01), out("veth1"))}, "rejected"},
		{"an error that quotes ports and no more", []part{s, unreachable(s, at(1.01), without(wire.KnowTransport))}, "rejected"},
		{"fragmentation needed about data", []part{handshake(podToServer, at(1)), data(podToServer, 1448, at(2)), icmp(router, 3, 4, data(podToServer, 1448), at(2.01), mtu(1400))}, "handshake-completed"},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			rs := requestsOf(t, gke(t), append([]part{interfaces("veth1", "eth0"), window(-10, 1000)}, tt.parts...)...)
			if got := outcomesOf(rs); got != tt.want {
				t.Errorf("got  %s\nwant %s\n%s", got, tt.want, listOf(rs))
			}
		})
	}
}

// Zeek's conn_state and history, and whether the request was completed: data answered data, or both sides closed in order.
func TestConnStateAndHistory(t *testing.T) {
	hs := handshake(podToServer, at(1))
	ask, answer := data(podToServer, 10, at(2)), dataBack(serverToPod, 20, at(2.01), acks(clientISN+11))
	for _, tt := range []struct {
		sentence       string
		parts          []part
		state, history string
		completed      bool
	}{
		{"SYN", []part{hs[:1]}, "S0", "S", false},
		{"SYN twice", []part{hs[:1], also(hs[0], at(2), ipid(1))}, "S0", "S", false},
		{"refused", []part{hs[:1], refusal(serverToPod, at(1.01))}, "REJ", "Sr", false},
		{"SYN, then FIN, no answer", []part{hs[:1], fin(podToServer, at(2), acks(0))}, "SH", "SF", false},
		{"SYN, then RST, no answer", []part{hs[:1], rst(podToServer, at(2))}, "RSTOS0", "SR", false},
		{"SYN-ACK alone", []part{synack(serverToPod, at(1))}, "OTH", "^h", false},
		{"SYN-ACK, then RST of the server, no SYN", []part{synack(serverToPod, at(1)), rst(serverToPod, at(2), seq(serverISN+1))}, "RSTRH", "^hr", false},
		{"handshake", []part{hs}, "S1", "ShA", false},
		{"only the client sent data", []part{hs, ask, ackBack(serverToPod, at(2.01), acks(clientISN+11))}, "S1", "ShADa", false},
		{"only the server sent data", []part{hs, dataBack(serverToPod, 20, at(2))}, "S1", "ShAd", false},
		{"data answered data", []part{hs, ask, answer}, "S1", "ShADd", true},
		{"data, and the client closed", []part{hs, ask, answer, fin(podToServer, at(3), seq(clientISN+11), acks(serverISN+21))}, "S2", "ShADdF", true},
		{"both closed without data", []part{hs, fin(podToServer, at(3)), finBack(serverToPod, at(3.01)), ack(podToServer, at(3.02), seq(clientISN+2), acks(serverISN+2))}, "SF", "ShAFf", true},
		{"the server closed first", []part{
			hs, fin(serverToPod, at(3), seq(serverISN+1), acks(clientISN+1)), fin(podToServer, at(3.01), acks(serverISN+2)),
		}, "SF", "ShAfF", true},
		{"only the server closed", []part{hs, fin(serverToPod, at(3), seq(serverISN+1), acks(clientISN+1))}, "S3", "ShAf", false},
		{"the client reset", []part{hs, rst(podToServer, at(3))}, "RSTO", "ShAR", false},
		{"the server reset", []part{hs, rst(serverToPod, at(3), seq(serverISN+1))}, "RSTR", "ShAr", false},
		{"data answered data, then a reset", []part{hs, ask, answer, rst(podToServer, at(3), seq(clientISN+11))}, "RSTO", "ShADdR", true},
		{"datagram answered", []part{udp(podToDNS, "q", at(1)), udp(dnsToPod, "r", at(1.01))}, "SF", "Dd", true},
		{"datagram", []part{udp(podToDNS, "q", at(1))}, "S0", "D", false},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			r := requestOf(t, gke(t), append([]part{window(-10, 1000)}, tt.parts...)...)
			if r.ConnState != tt.state || r.History != tt.history || r.Completed != tt.completed {
				t.Errorf("got %s %s completed=%v, want %s %s completed=%v", r.ConnState, r.History, r.Completed, tt.state, tt.history, tt.completed)
			}
		})
	}
}

// At the end of a capture an answer may still have been on its way: the word stays, and its doubt is listed.
func TestCaptureEnded(t *testing.T) {
	slow := handshake(pod+":42000 > "+server+":443", at(-20))
	slow[1].Time, slow[2].Time = instant(-19), instant(-19)
	for _, tt := range []struct {
		sentence string
		parts    []part
		doubt    bool
	}{
		{"0.9 s before the end, unanswered", []part{window(-30, 1.9), syn(podToServer, at(1))}, true},
		{"0.9 s before the end, half open", []part{window(-30, 1.9), syn(podToServer, at(1)), synack(serverToPod, at(1.1))}, true},
		{"0.9 s before the end, a datagram", []part{window(-30, 1.9), udp(podToDNS, "q", at(1))}, true},
		{"1.1 s before the end", []part{window(-30, 2.1), syn(podToServer, at(1)), udp(podToDNS, "later", at(2.1))}, false},
		{"1.1 s before the end, which only the capture's summary shows (frames that are not IP)", []part{window(-30, 2.1), syn(podToServer, at(1))}, false},
		{"0.9 s before the end, repeated", []part{window(-30, 1.9), syn(podToServer, at(1)), syn(podToServer, at(1.3), ipid(5))}, false},
		{"2.9 s before the end, where a handshake took 1 s", []part{window(-30, 3.9), slow, syn(podToServer, at(1))}, true},
		{"3.1 s before the end, where a handshake took 1 s", []part{window(-30, 4.1), slow, syn(podToServer, at(1)), udp(podToDNS, "later", at(4.1))}, false},
		{"completed", []part{window(-30, 1.9), handshake(podToServer, at(1))}, false},
		{"refused", []part{window(-30, 1.9), syn(podToServer, at(1)), refusal(serverToPod, at(1.01))}, false},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			rs := requestsOf(t, gke(t), tt.parts...)
			r := &rs[slices.IndexFunc(rs, func(r Request) bool { return r.First == instant(1) })]
			if got := slices.ContainsFunc(r.Unknown, func(u Unknown) bool { return u.Field == "outcome" && u.Reason == "capture-ended" }); got != tt.doubt {
				t.Errorf("capture-ended is listed: %v, want %v: %s %+v", got, tt.doubt, r.Outcome, r.Unknown)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	r := requestOf(t, gke(t), snatted.carry(handshake(podToServer, at(1))...))
	if r.First != instant(1) || r.Last != instant(1.01015) || r.Handshake != 10_100_000 {
		t.Errorf("first %d, last %d, handshake %d; want %d, %d, 10.1 ms", r.First, r.Last, r.Handshake, instant(1), instant(1.01015))
	}
	r = requestOf(t, gke(t), handshake(podToServer, timeless))
	if r.First != wire.NoTime || r.Last != wire.NoTime || r.Handshake != -1 {
		t.Errorf("without times: first %d, last %d, handshake %d", r.First, r.Last, r.Handshake)
	}
	r = requestOf(t, gke(t), syn(podToServer, at(1)), syn(podToServer, at(2), ipid(5)), synack(serverToPod, at(2.01)), ack(podToServer, at(2.02)))
	if r.Handshake != 1_020_000_000 {
		t.Errorf("handshake %d, want 1.02 s: from the first SYN", r.Handshake)
	}
	if what := whatOf(&r); what != "SYN, SYN again, SYN-ACK, ACK" {
		t.Errorf("frames: %s", what)
	}
}

func whatOf(r *Request) string {
	var what []string
	for _, f := range r.Cited() {
		what = append(what, f.What)
	}
	return strings.Join(what, ", ")
}
