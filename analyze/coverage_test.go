package analyze

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// Absence is claimed only where it was covered: DESIGN sections 4 and 6. The first row of each table is covered; every
// other one takes away one thing that the claim needs.

func TestNotSentNeeds(t *testing.T) {
	g := gke(t)
	ranges := factsOf(t, "pod 10.4.0.0/14", "nodes 10.128.0.0/20")
	podsOnly := factsOf(t, "pod 10.4.0.0/14")
	lost := seenAt(tries(podEnds, 1, 2, 4), in("veth1"))
	carrier := func(proto wire.Proto, kind wire.Tunnel, when float64, mods ...mod) packet {
		p := newPacket(proto, node+" > 198.51.100.99")
		p.Tunnel = kind
		return p.with(append([]mod{marked(wire.IsOpaque), at(when), out("eth0")}, mods...)...)
	}
	capture := func(more ...many) part { return inOrder(append([]many{neighbours(), lost}, more...)...) }
	const never = "outbound not-sent request-only node-out"

	checkRows(t, []verdictRow{
		{"all there", g, podTCP, []part{capture()}, never},
		{"drops are not recorded, as in every tcpdump file", g, podTCP, []part{capture(), about(dropsUnknown)}, never},
		{"a ping, never passed on", g, "icmp " + pod + " > " + server, []part{inOrder(neighbours(), many{echo(pod+" > "+server, 5, 1, at(1), in("veth1")), echo(pod+" > "+server, 5, 2, at(2), in("veth1"))})}, never},
		{"a datagram, never passed on", g, "udp " + pod + " > " + server, []part{inOrder(neighbours(), many{udp(pod+":41000 > "+server+":53", "q", at(1), in("veth1")), udp(pod+":41000 > "+server+":53", "q", at(6), in("veth1"))})}, never},

		// Window.
		{"the capture ends 0.5 s behind the only packet", g, podTCP, []part{inOrder(neighbours()[:15], seenAt(lost[:1], later(-0.5)))}, "outbound unknown(capture-ended) request-only(capture-ended) unknown(capture-ended)"},
		{"no packet comes behind it, but the file records that the capture ran on", g, podTCP, []part{inOrder(neighbours()[:15], seenAt(lost[:1], later(-0.5))), ran(-100, 100)}, never},
		{"what the file records of its time cannot be, as packets lie outside", g, podTCP, []part{inOrder(neighbours()[:15], seenAt(lost[:1], later(-0.5))), ran(0.3, 100)}, "outbound unknown(capture-ended) request-only(capture-ended) unknown(capture-ended)"},
		{"the input has no times", g, podTCP, []part{seenAt(capture().(many), timeless)}, "outbound !not-sent * !node-out"},

		// Filter, recorded or stated.
		{"the file records a filter that keeps the server's packets and others", g, podTCP, []part{capture(), filtered("host " + server + " or net 198.51.100.0/24")}, never},
		{"the file records a filter for the Pod", g, podTCP, []part{capture(), filtered("host " + pod + " or host " + node)}, "* unknown(filtered-out) * unknown(filtered-out)"},
		{"the file records a filter of another protocol", g, podTCP, []part{capture(), filtered("udp")}, "* unknown(filtered-out) * unknown(filtered-out)"},
		{"the file records a filter that cannot be read", g, podTCP, []part{capture(), filtered("tcp[13] & 2 != 0")}, "* unknown(filtered-out) * unknown(filtered-out)"},
		{"incoming frames alone were captured", g, podTCP, []part{capture(), filtered("inbound")}, "* unknown(filtered-out) * unknown(filtered-out)"},
		{"the stated filter keeps the server's packets", g, podTCP, []part{capture(), filterStated("host " + server)}, never},
		{"the stated filter is none", g, podTCP, []part{capture(), filterStated("")}, never},
		{"the stated filter drops the node's address", g, podTCP, []part{capture(), filterStated("not host " + node)}, "* unknown(filtered-out) * unknown(filtered-out)"},
		{"the stated filter names the Pods' range, which the translated packet does not have", g, podTCP, []part{capture(), filterStated("net 10.4.0.0/14")}, "* unknown(filtered-out) * unknown(filtered-out)"},
		{"the stated filter names a source port, which a translation may change", g, podTCP, []part{capture(), filterStated("port 41000")}, "* unknown(filtered-out) * unknown(filtered-out)"},
		{"the stated filter names the server's port", g, podTCP, []part{capture(), filterStated("port 443")}, never},

		// Filter not known: what all packets have in common, the missing one must have too.
		{"filter not known, and the packets have nothing in common but TCP", g, podTCP, []part{capture(), about(filterUnknown)}, never},
		{"filter not known, and every packet is the Pod's", g, "", []part{lost, about(filterUnknown)}, "* !not-sent * !node-out"},
		{"filter not known, and every packet has a Pod's address", g, podTCP, []part{inOrder(lost, kept(pod+":43000 > 198.51.100.21:443").carry(opened(pod+":43000 > 198.51.100.21:443", 0.2, 120000)...), natPath{client: "10.4.0.8:43000", server: "198.51.100.22:443", podIf: "veth2", uplink: "eth0"}.carry(opened("10.4.0.8:43000 > 198.51.100.22:443", 0.3, 150000)...), natPath{client: "10.4.0.8:43001", server: server + ":80", podIf: "veth2", uplink: "eth0"}.carry(opened("10.4.0.8:43001 > "+server+":80", 0.4, 160000)...)), about(filterUnknown)}, "* unknown(filter-not-known) * unknown(filter-not-known)"},
		{"filter not known, every packet has the server, and node-addressed ones are among them", g, podTCP, []part{inOrder(lost, seenAt(opened(node+":44000 > "+server+":80", 0.3, 130000)[:1], out("eth0")), seenAt(opened(node+":44000 > "+server+":80", 0.3, 130000)[1:2], in("eth0")), masqueraded(pod+":43000 > "+server+":80", node+":53000").carry(opened(pod+":43000 > "+server+":80", 0.4, 120000)...)), about(filterUnknown)}, never},
		{"filter not known, and every packet goes to or from port 443 of some server", g, podTCP, []part{inOrder(lost, masqueraded(pod+":43000 > 198.51.100.21:443", node+":53000").carry(opened(pod+":43000 > 198.51.100.21:443", 0.4, 120000)...)), about(filterUnknown)}, "* not-sent|unknown(filter-not-known) * node-out|unknown(filter-not-known)"},
		{"filter not known, and every packet came in", g, podTCP, []part{inOrder(lost, seenAt(neighbours(), func(p *packet) { p.Dir = wire.DirIn })), about(filterUnknown)}, "* !not-sent * !node-out"},

		// Place: all interfaces, of the Pod's node.
		{"one interface", g, podTCP, []part{single("veth1"), seenAt(capture().(many), on("veth1"))}, "* !not-sent * !node-out"},
		{"several interfaces are not all", g, podTCP, []part{severalDevices("veth1", "veth2", "eth0"), capture()}, "* unknown(egress-not-visible) * unknown(egress-not-visible)"},
		{"nothing shows that the host is the node", g, "", []part{lost, goesOn(20)}, "* unknown(node-not-proven) * unknown(node-not-proven)"},
		{"no facts: nothing says whose address it is", nil, podTCP, []part{lost, goesOn(20)}, "* !not-sent * !node-out"},
		{"the node's range alone does not say that this host is the node", ranges, "", []part{inOrder(lost, seenAt(tries("10.128.0.11:41000 > 10.128.0.10:22", 1, 2), in("eth0"))[:0]), goesOn(20)}, "* !not-sent * !node-out"},
		{"Pod ranges alone, and the host passes other Pods' packets on", podsOnly, podTCP, []part{capture()}, never},
		{"the Pod's packet came in one hop old: it had a router behind it", g, podTCP, []part{inOrder(neighbours(), seenAt(lost, ttl(63)))}, "* !not-sent * !node-out"},
		{"the destination is a Pod that may be on this node", g, "tcp " + pod + " > 10.4.0.99:443", []part{inOrder(neighbours(), seenAt(tries(pod+":41000 > 10.4.0.99:443", 1, 2, 4), in("veth1")))}, "* unknown(destination-may-be-local)|local request-only !node-out|between"},
		{"the destination is a Service, whose Pod may be on this node", g, "tcp " + pod + " > 10.96.0.10:443", []part{inOrder(neighbours(), seenAt(tries(pod+":41000 > 10.96.0.10:443", 1, 2, 4), in("veth1")))}, "* !not-sent request-only !node-out|between"},

		// Whole.
		{"packets were dropped", g, podTCP, []part{capture(), dropped(1)}, "* unknown(packets-dropped) request-only(packets-dropped) unknown(packets-dropped)"},
		{"the file is damaged", g, podTCP, []part{capture(), about(damagedEnd)}, "* unknown(capture-incomplete) request-only(capture-incomplete) unknown(capture-incomplete)"},
		{"the file is cut, and nothing else says so", g, podTCP, []part{capture(), about(func(r *recording) { r.summary.Complete = false })}, "* unknown(capture-incomplete) request-only(capture-incomplete) unknown(capture-incomplete)"},
		{"frames were cut inside their headers", g, podTCP, []part{capture(many{also(neighbours()[0], cutShort, at(3))})}, "* unknown(snaplen) request-only unknown(snaplen)"},
		{"records were too short to be read at all", g, podTCP, []part{capture(), about(func(r *recording) { r.summary.Skipped[wire.SkipTooShort] = 2 })}, "* unknown(snaplen) request-only unknown(snaplen)"},
		{"frames of a link type that is not decoded", g, podTCP, []part{capture(), about(func(r *recording) { r.summary.Skipped[wire.SkipLinkType] = 2 })}, "* !not-sent request-only !node-out"},
		{"frames whose headers contradict themselves", g, podTCP, []part{capture(), about(func(r *recording) { r.summary.Skipped[wire.SkipMalformed] = 2 })}, "* !not-sent request-only !node-out"},
		{"frames nested deeper than the decoder follows", g, podTCP, []part{capture(), about(func(r *recording) { r.summary.Skipped[wire.SkipDepth] = 2 })}, "* !not-sent request-only !node-out"},
		{"ARP is not a reason", g, podTCP, []part{capture(), about(func(r *recording) { r.summary.Skipped[wire.SkipNotIP] = 50 })}, never},

		// Nothing opaque leaving within 10 ms of the request.
		{"ESP leaves 5 ms behind the first packet", g, podTCP, []part{capture(many{carrier(wire.ProtoESP, wire.TunnelESP, 1.005)})}, "* unknown(opaque-carrier)|unknown(egress-not-visible) request-only unknown(opaque-carrier)|unknown(egress-not-visible)"},
		{"ESP leaves 5 ms behind the last repetition", g, podTCP, []part{capture(many{carrier(wire.ProtoESP, wire.TunnelESP, 4.005)})}, "* unknown(opaque-carrier)|unknown(egress-not-visible) request-only unknown(opaque-carrier)|unknown(egress-not-visible)"},
		{"WireGuard leaves 5 ms behind", g, podTCP, []part{capture(many{carrier(wire.ProtoUDP, wire.TunnelWireGuard, 1.005, between(node+":51820 > 198.51.100.99:51820"))})}, "* unknown(opaque-carrier)|unknown(egress-not-visible) request-only unknown(opaque-carrier)|unknown(egress-not-visible)"},
		{"an undecoded protocol leaves 5 ms behind", g, podTCP, []part{capture(many{carrier(99, wire.TunnelOther, 1.005)})}, "* unknown(opaque-carrier)|unknown(egress-not-visible) request-only unknown(opaque-carrier)|unknown(egress-not-visible)"},
		{"ESP that may have left: no direction is known", g, podTCP, []part{capture(many{carrier(wire.ProtoESP, wire.TunnelESP, 1.005, on("eth0"))})}, "* unknown(opaque-carrier)|unknown(egress-not-visible) request-only unknown(opaque-carrier)|unknown(egress-not-visible)"},
		{"ESP comes in 5 ms behind", g, podTCP, []part{capture(many{carrier(wire.ProtoESP, wire.TunnelESP, 1.005, in("eth0"))})}, never},
		{"ESP leaves half a second away", g, podTCP, []part{capture(many{carrier(wire.ProtoESP, wire.TunnelESP, 1.5)})}, never},
		{"an SCTP or GRE carrier cut by the snap length leaves at the moment", g, podTCP, []part{capture(many{carrier(wire.ProtoGRE, wire.TunnelGRE, 1.002)})}, "* unknown(opaque-carrier)|unknown(egress-not-visible)|unknown(snaplen) request-only unknown(opaque-carrier)|unknown(egress-not-visible)|unknown(snaplen)"},
	})
}

// A request that was answered did not stay: whatever could not be matched to it.
func TestAnsweredIsNeverNotSent(t *testing.T) {
	g := gke(t)
	m := opened(podEnds, 1, 1000)
	checkRows(t, []verdictRow{
		{"the Pod's side shows the answer, passed on from elsewhere", g, podTCP, []part{inOrder(neighbours(), seenAt(m[:1], in("veth1")), seenAt(m[1:2], out("veth1"), ttl(59)), seenAt(m[2:], in("veth1")))}, "outbound !not-sent|local handshake-completed none"},
	})
}

// A table that let flows go says so and concludes no absence.
func TestFlowsLetGo(t *testing.T) {
	flood := many{}
	for i := range 64 {
		flood = append(flood, syn("198.51.100.50:"+itoa(uint64(1000+i))+" > "+node+":80", at(0.5+float64(i)*0.001), in("eth0"), isn(uint32(900000+i))))
	}
	res := runOf(t, gke(t), Options{MaxFlows: 40}, captureOf(t, inOrder(neighbours(), seenAt(tries(podEnds, 1, 2, 4), in("veth1")), flood)))
	if res.Captures[0].LetGo == 0 {
		t.Fatal("no flow was let go: the test needs a smaller table")
	}
	for i := range res.Requests {
		if r := &res.Requests[i]; r.Source == NotSent || r.StoppedAt == StopNodeOut || r.StoppedAt == StopNodeIn {
			t.Errorf("absence concluded although flows were let go: %s %s", r.Tuple, verdictOf(r))
		}
	}
	if len(res.Limits) == 0 {
		t.Error("no limit says that flows were let go")
	}
}

// Two files of one capture: what was due in the silence between them is not missing, unless they record that both ran then.
func TestCoverageBetweenFiles(t *testing.T) {
	g := gke(t)
	lost := seenAt(tries(podEnds, 1, 2, 4), in("veth1"))
	first := inOrder(neighbours()[:15], seenAt(lost[:1], later(-0.5)))
	for _, tt := range []struct {
		name       string
		ran, after about
		want       string
	}{
		{"nothing is recorded", func(*recording) {}, func(*recording) {}, "between-files"},
		{"the first file alone records it", ran(-100, 21), func(*recording) {}, ""},
		{"both record it, and there is no gap", ran(-100, 8), ran(8, 40), ""},
		{"both record it, and there is one", ran(-100, 0.5001), ran(8, 40), "between-files"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, two := captureOf(t, first, tt.ran), captureOf(t, seenAt(neighbours(), later(20)), tt.after)
			one.Label, two.Label = "node", "node"
			one.File, two.File = "1.pcapng", "2.pcapng"
			res := runOf(t, g, Options{}, one, two)
			i := slices.IndexFunc(res.Requests, func(r Request) bool { return r.Tuple == tupleOf(wire.ProtoTCP, podEnds) })
			if i < 0 {
				t.Fatal("no request")
			}
			got := ""
			for _, u := range res.Requests[i].Unknown {
				if u.Field == "source" {
					got = u.Reason
				}
			}
			if got != tt.want || (tt.want == "") != (res.Requests[i].Source == NotSent) {
				t.Errorf("%s: source is unknown for %q, want %q", res.Requests[i].Source, got, tt.want)
			}
		})
	}
}

// What all packets have in common does not depend on how they are divided up.
func TestCommonsInParts(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	facts := gke(t)
	ranges := slices.Concat(facts.PodPrefixes(), facts.NodePrefixes(), facts.ServicePrefixes())
	for range 200 {
		table := newTable(0)
		ends := []string{pod + ":%d > " + server + ":443", node + ":%d > " + server + ":443", pod + ":%d > 198.51.100.7:443", server + ":%d > " + pod + ":443"}
		kinds := 1 + r.IntN(len(ends))
		for i := range 1 + r.IntN(1_200) {
			p := syn(fmt.Sprintf(ends[r.IntN(kinds)], 1024+i), isn(uint32(i)))
			if r.IntN(400) == 0 {
				p = udp(fmt.Sprintf("10.4.9.9:%d > 192.0.2.3:53", 1024+i), "q")
			}
			if p.Iface, p.Dir = uint32(min(r.IntN(300), 1)), wire.DirIn; r.IntN(500) == 0 {
				p.Dir = wire.DirOut
			}
			table.add(&p.Packet)
		}
		// The first flow is in the first part, as it is where parts are made at once.
		parts, serial := make([]common, 1+r.IntN(4)), common{iface: -1}
		for i := range parts {
			parts[i].iface = -1
		}
		for i := 1; i < table.flows.size(); i++ {
			f, part := table.flows.at(ref(i)), &parts[0]
			if i > 1 {
				part = &parts[r.IntN(len(parts))]
			}
			for n := f.taps; n != 0; n = table.taps.at(n).next {
				for side := range 2 {
					if tp := table.taps.at(n); tp.packets[side] > 0 {
						serial.take(f, tp, side, ranges)
						part.take(f, tp, side, ranges)
					}
				}
			}
		}
		for i := range parts[1:] {
			parts[0].and(&parts[i+1])
		}
		for _, got := range []common{parts[0], table.commons(facts)} {
			if !reflect.DeepEqual(emptied(got), emptied(serial)) {
				t.Fatalf("%d flows in %d parts:\ngot    %+v\nserial %+v", table.flows.size()-1, len(parts), got, serial)
			}
		}
	}
}

// emptied makes lists that are empty nil.
func emptied(c common) common {
	c.addrs, c.from, c.to = slices.Concat(c.addrs), slices.Concat(c.from), slices.Concat(c.to)
	c.ports, c.ranges = slices.Concat(c.ports), slices.Concat(c.ranges)
	return c
}
