package analyze

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// Each row is the smallest capture that shows it: what must be printed of the request, and what must not.
func TestRegressFindings(t *testing.T) {
	g := gke(t)
	const (
		dns  = pod + ":41000 > 192.0.2.53:53"
		snat = node + ":51000"
	)
	lost := tries(podEnds, 1, 2, 4)
	q := udp(dns, "who?", at(1), in("veth1"))
	asked := many{q, also(q, out("eth0"), ttl(63), later(50e-6))}
	translated := many{q, also(q, between(snat+" > 192.0.2.53:53"), out("eth0"), ttl(63), later(50e-6))}
	big := udp(dns, strings.Repeat("a long question ", 100), at(1), in("veth1"))
	ping := echo(pod+" > "+server, 80, 1, at(1), in("veth1"))
	pingOut := also(ping, out("eth0"), ttl(63), later(50e-6))
	for _, row := range []struct {
		name, of string
		parts    []part
		want     string // codes that must be printed
		not      string // codes that must not
		silent   string // words that no finding about the request may say
	}{
		{
			"A: the filter keeps what the Pod sends and nothing else: that nothing comes back does not show", "",
			[]part{kept(podEnds).carry(lost...), filtered("src host " + pod), window(0, 20)},
			"", codePodUnanswered, "",
		},
		{
			"A2: the same, of the node's address", "",
			[]part{seenAt(tries(nodeEnds, 1, 2, 4), out("eth0")), filtered("dst host " + server), window(0, 20)},
			"", codeNodeUnanswered, "",
		},
		{
			"B: the capture dropped packets: that nothing comes back does not show", "",
			[]part{kept(podEnds).carry(lost...), dropped(3), window(0, 20)},
			"", codePodUnanswered, "",
		},
		{
			"C: an answer came from another address: 'no reply of any kind' is not what was observed", "udp " + pod + " > 192.0.2.53",
			[]part{inOrder(neighbours(), asked, many{udp("192.0.2.54:53 > "+pod+":41000", "me", at(1.01), in("eth0"), ttl(60))})},
			codeReplyOther, codePodUnanswered, "no reply of any kind",
		},
		{
			"I: translated, and the answer comes to the node's port from another address", "udp " + pod + " > 192.0.2.53",
			[]part{inOrder(neighbours(), translated, many{udp("192.0.2.54:53 > "+snat, "me", at(1.01), in("eth0"), ttl(60))})},
			codeReplyOther, codeNodeUnanswered, "no reply of any kind",
		},
		{
			"J: the SYN-ACK that acknowledges this SYN comes from another address", podTCP,
			[]part{inOrder(neighbours(), kept(podEnds).carry(lost...), many{synack("192.0.2.10:443 > "+pod+":41000", at(1.01), in("eth0"), acks(31001), ttl(60))})},
			codeReplyOther, codePodUnanswered, "",
		},
		{
			"R: a router rejected one copy, another address answered", "udp " + pod + " > 192.0.2.53",
			[]part{inOrder(neighbours(), asked, many{icmp(router, 3, 1, asked[1], at(1.005), in("eth0"), ttl(62)), udp("192.0.2.54:53 > "+pod+":41000", "me", at(1.01), in("eth0"), ttl(60))})},
			"", codePodRejected + "+" + codeReplyOther, "",
		},
		{
			"S: nothing that could be it left, and yet another address answered", "udp " + pod + " > 192.0.2.53",
			[]part{inOrder(neighbours(), many{q, udp("192.0.2.54:53 > "+pod+":41000", "me", at(1.01), in("eth0"), ttl(60))})},
			"", codeNeverLeft + "+" + codeReplyOther, "",
		},
		{
			"T: the far host answers from another of its addresses", "udp " + pod + " > 192.0.2.53",
			[]part{about(onFarSide), udp(dns, "who?", at(1), in("ens4"), ttl(61)), udp("192.0.2.54:53 > "+pod+":41000", "me", at(1.01), out("ens4"), ttl(64)), goesOn(20)},
			codeReplyOther, codeFarUnanswered, "",
		},
		{
			"BB: a ping has an identifier and no port", "icmp " + pod + " > " + server,
			[]part{inOrder(neighbours(), many{ping, pingOut, icmp(router, 3, 3, pingOut, at(1.01), in("eth0"), ttl(62))})},
			codePodRejected, "", "port 80",
		},
		{
			"HH: the node's request to another port says nothing of this one", podTCP,
			[]part{inOrder(neighbours(), kept(podEnds).carry(lost...), seenAt(opened(node+":51000 > "+server+":22", 5, 77000)[:1], out("eth0")), seenAt(opened(node+":51000 > "+server+":22", 5, 77000)[1:2], in("eth0")), seenAt(opened(node+":51000 > "+server+":22", 5, 77000)[2:], out("eth0")))},
			codePodUnanswered, "", "answers the node and not the Pod",
		},
		{
			"SS: a router asked for smaller packets: something came back", "udp " + pod + " > 192.0.2.53",
			[]part{inOrder(neighbours(), many{big, also(big, out("eth0"), ttl(63), later(50e-6)), icmp(router, 3, 4, also(big, ttl(63)), at(1.01), in("eth0"), ttl(62), mtu(1400))})},
			codeMTU, codePodUnanswered, "no reply of any kind",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			res := resultOf(t, g, row.parts...)
			r := theRequest(t, res.Requests, row.of)
			if row.want != "" && !slices.Contains(r.Findings, row.want) {
				t.Errorf("no %s: %q, %s, reasons %q", row.want, r.Findings, verdictOf(r), r.Reasons)
			}
			all := row.not != ""
			for code := range strings.SplitSeq(row.not, "+") {
				all = all && slices.Contains(r.Findings, code)
			}
			if all {
				t.Errorf("%s printed: %q, %s, reasons %q", row.not, r.Findings, verdictOf(r), r.Reasons)
			}
			for _, f := range res.Findings {
				if said := strings.Join(slices.Concat(f.Observed, f.Reading, f.Next), "\n"); slices.Contains(r.Findings, f.Code) && row.silent != "" && strings.Contains(said, row.silent) {
					t.Errorf("%s says %q:\n%s", f.Code, row.silent, said)
				}
			}
			checkFindings(t, res)
		})
	}
}

// CC: pings to one server have one destination, whatever their identifiers.
func TestRegressPingsHaveOneDestination(t *testing.T) {
	var m many
	for i := range 5 {
		p := echo(pod+" > "+server, uint16(100+i), 1, at(1+float64(i)))
		m = append(m, kept(podEnds).carry(p)...)
	}
	res := resultOf(t, gke(t), inOrder(neighbours(), m))
	for _, f := range res.Findings {
		if f.Code == codePodUnanswered && len(f.Observed) != 1 {
			t.Errorf("five pings to one server: %q", f.Observed)
		}
	}
}

// EE: an identifier is no port, though a selector with a port takes any protocol.
func TestRegressSelectorPortOfPing(t *testing.T) {
	ping := asked(wire.ProtoICMP, pod+" > "+server, func(r *Request) { r.Client.Port, r.Server.Port = 80, 80 })
	for _, s := range []string{"any any > " + server + ":80", "any any:80 > any"} {
		sel, err := ParseSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		if sel.Match(ping) {
			t.Errorf("%q picks a ping whose identifier is 80", s)
		}
	}
	r := requestOf(t, gke(t), echo(pod+" > "+server, 80, 1, at(1), in("veth1")))
	if sel, _ := ParseSelector("any any > " + server + ":80"); sel.Match(&r) {
		t.Errorf("it picks a captured ping: %+v", r.Server)
	}
}

// FF: what is no address is refused.
func TestRegressSelectorGarbage(t *testing.T) {
	for _, s := range []string{
		"tcp [2001:db8::7 > any", "tcp 2001:db8::7] > any", "tcp ]10.4.0.7[ > any", "tcp [[10.4.0.7]] > any", "tcp any > any:+80", "tcp any > any:-0",
		"tcp ::ffff:10.0.0.0/104 > any",
	} {
		if sel, err := ParseSelector(s); err == nil {
			t.Errorf("%q was read: %+v", s, sel)
		}
	}
}

// OO: a selection of the node's own requests does not make the Pod ranges wrong.
func TestRegressLimitOfSelection(t *testing.T) {
	res := resultOf(t, gke(t), neighbours())
	if len(res.Limits) > 0 {
		t.Fatal(res.Limits)
	}
	sel, err := ParseSelector("tcp " + node + " > any")
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Select(sel).Limits; len(got) > 0 {
		t.Errorf("limits of the selection: %q", got)
	}
}

// GG: selecting the Pod's request keeps the comparison with the node's, which was in the same capture.
func TestRegressContrastOfSelection(t *testing.T) {
	own := opened(nodeEnds, 5, 77000)
	res := resultOf(t, gke(t), inOrder(neighbours(), kept(podEnds).carry(tries(podEnds, 1, 2, 4)...), seenAt(own[:1], out("eth0")), seenAt(own[1:2], in("eth0")), seenAt(own[2:], out("eth0"))))
	sel, err := ParseSelector(podTCP)
	if err != nil {
		t.Fatal(err)
	}
	const compared = "the node's own request to the same server"
	for _, r := range []*Result{res, res.Select(sel)} {
		if said := fmt.Sprint(r.Findings); !strings.Contains(said, compared) {
			t.Errorf("%d requests: nothing says %q: %s", len(r.Requests), compared, said)
		}
	}
}

// NN: an IPv6 request is looked for in the tables of IPv6.
func TestRegressCommandsOfIPv6(t *testing.T) {
	six := "[2001:db8:4::7]:41000 > [2001:db8:9::9]:443"
	facts := factsOf(t, "pod 2001:db8:4::/48", "node 2001:db8:a::1")
	n := kept(six)
	res := resultOf(t, facts, n.carry(tries(six, 1, 2, 4)...), goesOn(20))
	if len(res.Findings) == 0 {
		t.Fatal("no finding")
	}
	for _, f := range res.Findings {
		for _, s := range f.Next {
			if strings.Contains(s, " iptables-save") || strings.Contains(s, "net.ipv4") {
				t.Errorf("%s: %q about %s", f.Code, s, six)
			}
		}
	}
}

// KK: a kubelet probe of a Pod that does not answer: that it left the node is not known (source unknown,
// destination-may-be-local), so it is no source as it left.
func TestRegressSourceOfWhatMayBeLocal(t *testing.T) {
	res := resultOf(t, gke(t), seenAt(tries(node+":41000 > "+pod+":8080", 1, 2, 4), out("veth1")), goesOn(20))
	r := theRequest(t, res.Requests, "")
	if r.Source != SourceUnknown || len(res.Sources) > 0 || r.Egress != nil {
		t.Errorf("%s, egress %v, sources %+v", verdictOf(r), r.Egress, res.Sources)
	}
}

// L: an answer at another node that acknowledges another SYN is another connection's.
func TestRegressAnswerAtOtherNode(t *testing.T) {
	lost := tries(podEnds, 1, 2, 4)
	rest := func(at64 float64, iface string) many {
		return many{udp("169.254.1.1:5353 > 224.0.0.251:5353", "rest", at(at64), in(iface))}
	}
	near := captureOf(t, inOrder(neighbours(), kept(podEnds).carry(lost...)))
	other := captureOf(t, inOrder(many{synack(back(podEnds), at(1.01), acks(77001), in("eth0"), ttl(60))}, rest(20, "eth0")))
	far := captureOf(t, about(onFarSide), inOrder(seenAt(lost, in("ens4"), ttl(61), later(0.002)), many{synack(back(podEnds), at(1.003), acks(31001), out("ens4"))}, rest(20, "ens4")))
	near.File, other.File, far.File = "a.pcap", "b.pcap", "far.pcap"
	res := runOf(t, gke(t), Options{}, near, other, far)
	for i := range res.Requests {
		if r := &res.Requests[i]; slices.Contains(r.Findings, codeOtherNode) {
			t.Errorf("%s: %q, reasons %q", r.Tuple, r.Findings, r.Reasons)
		}
	}
}

// M: two near captures and no far one: the answer at the other node names it all the same (DESIGN section 7).
func TestRegressAnswerAtOtherNodeWithoutFar(t *testing.T) {
	lost := tries(podEnds, 1, 2, 4)
	near := captureOf(t, inOrder(neighbours(), kept(podEnds).carry(lost...)))
	other := captureOf(t, inOrder(many{synack(back(podEnds), at(1.01), acks(31001), in("eth0"), ttl(60))}, many{udp("169.254.1.1:5353 > 224.0.0.251:5353", "rest", at(20), in("eth0"))}))
	near.File, other.File = "a.pcap", "b.pcap"
	res := runOf(t, gke(t), Options{}, near, other)
	for i := range res.Requests {
		if r := &res.Requests[i]; r.Tuple == lost[0].Tuple && r.Outcome == RequestOnly && r.StoppedAt != StopReturn {
			t.Errorf("%s, findings %q", verdictOf(r), r.Findings)
		}
	}
}

// N: the far side holds a connection with the very tuple at the very moment, opened by somebody else's SYN: a transparent
// proxy's. DESIGN section 6: stopped at none, with answered-by-middlebox; not "between".
func TestRegressTransparentProxy(t *testing.T) {
	open := opened(podEnds, 1, 1000)
	also80 := pod + ":43001 > " + server + ":80"
	other := opened(also80, 0.5, 52000)
	far := func(m many) many {
		return inOrder(seenAt(m[:1], in("ens4"), ttl(61), later(0.002)), seenAt(m[1:2], out("ens4"), ttl(64), later(-0.002)), seenAt(m[2:], in("ens4"), ttl(61), later(0.002)))
	}
	near := captureOf(t, inOrder(neighbours(), kept(also80).carry(other...), kept(podEnds).carry(open...)))
	there := captureOf(t, about(onFarSide), inOrder(far(other), far(opened(podEnds, 1.001, 880000)), many{udp("169.254.1.1:5353 > 224.0.0.251:5353", "rest", at(20), in("ens4"))}))
	there.File = "far.pcap"
	res := runOf(t, gke(t), Options{}, near, there)
	for i := range res.Requests {
		if r := &res.Requests[i]; r.capture() == 0 && r.Tuple == open[0].Tuple && (r.StoppedAt != StopNone || !slices.Contains(r.Findings, codeMiddlebox)) {
			t.Errorf("%s, findings %q, reasons %q", verdictOf(r), r.Findings, r.Reasons)
		}
	}
}

// With --random-fully the node may give a datagram any source port, that of a known service, too: the request was then taken for an
// answer, and the Pod's datagram, which was joined with nothing, for one that never left the node.
func TestRegressTranslatedToAServicesPort(t *testing.T) {
	ports := []int{1194, 1433, 1521, 2049, 2379, 3306, 3389, 3544, 4500, 5060, 5072, 5432, 5671, 5672, 6379, 6443, 8080, 8443, 9042, 9092, 9200, 10250, 27017, 51820}
	for port := 1024; port < 65536; port += 251 {
		ports = append(ports, port)
	}
	for _, to := range []int{53, 5300, 40000} {
		for _, port := range ports {
			q := fmt.Sprintf("%s:41000 > %s:%d", pod, server, to)
			m := masqueraded(q, fmt.Sprintf("%s:%d", node, port)).carry(udp(q, "asks", at(5)))
			for _, r := range requestsOf(t, gke(t), neighbours(), inOrder(m), goesOn(20)) {
				if r.Client.Addr != wire.MustAddr(pod) || r.Server.Addr != wire.MustAddr(server) {
					continue
				}
				if r.Source == NotSent || to < 32768 && r.Source != NodeSNATed {
					t.Errorf("to port %d from port %d: %s %q", to, port, r.Source, r.Reasons)
				}
			}
		}
	}
}
