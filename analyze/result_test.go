package analyze

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// Sources are counted as they left the node: nothing that was not seen leaving, nothing that was never meant to, no copy
// of a packet twice.
func TestSources(t *testing.T) {
	g := gke(t)
	const (
		echoEnds = pod + " > " + server
		inward   = "192.0.2.9:5000 > " + pod + ":8080"
	)
	lost := tries(podEnds, 1, 2, 4)
	open := opened(podEnds, 1, 1000)
	bridged := natPath{client: pod + ":41000", server: server + ":443", podIf: "veth1", bridge: "cbr0", uplink: "eth0"}
	for _, row := range []struct {
		name  string
		parts []part
		want  []string // address, role, requests, packets
	}{
		{"nothing was captured", nil, nil},
		{"kept: three SYNs are three packets of one request", []part{kept(podEnds).carry(lost...), goesOn(20)}, []string{"10.4.0.7 pod 1 3"}},
		{"translated: counted as the node", []part{masqueraded(podEnds, node+":51000").carry(open...)}, []string{"10.128.0.10 node 1 2"}},
		{"what the client sent is counted, not what it was answered", []part{kept(podEnds).carry(open...), kept(podEnds).carry(dataBack(back(podEnds), 100, at(2), seq(8001), acks(1001), ttl(60)))}, []string{"10.4.0.7 pod 1 2"}},
		{"seen at the Pod's interface, its bridge and the uplink: one packet each", []part{bridged.carry(lost...), goesOn(20)}, []string{"10.4.0.7 pod 1 3"}},
		{"the most requests first", []part{inOrder(neighbours(), kept(podEnds).carry(lost...))}, []string{"10.128.0.10 node 4 7", "10.4.0.7 pod 1 3"}},
		{"as many requests: by address", []part{kept(podEnds).carry(lost...), seenAt(tries(nodeEnds, 5, 6), out("eth0")), goesOn(20)}, []string{"10.4.0.7 pod 1 3", "10.128.0.10 node 1 2"}},
		{"an address that nobody gave", []part{masqueraded(podEnds, "198.51.100.77:51000").carry(open...)}, []string{"198.51.100.77 other 1 2"}},
		{"three pings", []part{kept(podEnds).carry(echo(echoEnds, 7, 1, at(1)), echo(echoEnds, 7, 2, at(2)), echo(echoEnds, 7, 3, at(3))), goesOn(20)}, []string{"10.4.0.7 pod 1 3"}},
		{"a capture of one device without directions, behind the node", []part{single("eth0"), seenAt(lost, on("eth0"), ttl(63)), goesOn(20)}, []string{"10.4.0.7 pod 1 3"}},

		{"never left", []part{inOrder(neighbours(), seenAt(lost, in("veth1")))}, []string{"10.128.0.10 node 4 7"}},
		{"inside the Pod", []part{seenAt(open[:1], out("eth0")), seenAt(open[1:2], in("eth0")), seenAt(open[2:], out("eth0"))}, nil},
		{"the Pod's veth alone", []part{single("veth1"), seenAt(lost, on("veth1")), goesOn(20)}, nil},
		{"from outside, to a Pod", []part{natPath{client: "192.0.2.9:5000", server: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(opened(inward, 1, 1000)...)}, nil},
		{"a kubelet probe", []part{seenAt(opened(node+":41000 > "+pod+":8080", 1, 1000)[:1], out("veth1")), seenAt(opened(node+":41000 > "+pod+":8080", 1, 1000)[1:2], in("veth1"), ttl(64))}, nil},
		{"neighbours on the link", []part{udp(node+":5353 > 224.0.0.251:5353", "mdns", at(1), out("eth0"), ttl(255))}, nil},
		{"on the loopback interface", []part{handshake(node+":41000 > "+node+":8080", at(1), on("lo"))}, nil},
		{"the far side's own view", []part{about(onFarSide), seenAt(lost, in("ens4"), ttl(61)), goesOn(20)}, nil},
		{"answers without their request", []part{synack(back(nodeEnds), at(1), in("eth0"), ttl(60)), goesOn(20)}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			res := resultOf(t, g, row.parts...)
			var got []string
			for _, s := range res.Sources {
				got = append(got, fmt.Sprintf("%s %s %d %d", s.Addr, s.Role.Kind, s.Requests, s.Packets))
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q\n%s", got, row.want, listOf(res.Requests))
			}
		})
	}
}

// A limit is said of the capture that has it, by name, and not where nothing limits.
func TestLimits(t *testing.T) {
	g := gke(t)
	lost := many{kept(podEnds).carry(tries(podEnds, 1, 2, 4)...)[0]}
	strangers := opened("10.9.9.9:41000 > 192.0.2.9:443", 1, 1000)
	const nothing = "nothing is concluded from what is missing"
	for _, row := range []struct {
		name  string
		facts *cluster.Facts
		parts []part
		want  []string // words of the limits, in order
	}{
		{"a whole capture", g, []part{lost}, nil},
		{"no drops", g, []part{lost, dropped(0)}, nil},
		{"drops that are not recorded", g, []part{lost, about(dropsUnknown)}, nil},
		{"one packet dropped", g, []part{lost, dropped(1)}, []string{"test.pcapng: 1 packet dropped while capturing: " + nothing}},
		{"packets dropped", g, []part{lost, dropped(17)}, []string{"test.pcapng: 17 packets dropped while capturing: " + nothing}},
		{"a damaged file", g, []part{lost, about(damagedEnd)}, []string{"test.pcapng is cut or damaged"}},
		{"a file that ends within a packet", g, []part{lost, about(func(r *recording) { r.summary.Complete = false })}, []string{"test.pcapng is cut or damaged"}},
		{"a frame cut inside its headers", g, []part{lost, also(lost[0], cutShort, at(2))}, []string{"1 frame cut inside the headers: capture with tcpdump -s 0"}},
		{"several limits", g, []part{lost, about(damagedEnd), dropped(2), also(lost[0], cutShort, at(2))}, []string{"damaged", "2 packets dropped", "1 frame cut"}},
		{"no Pod in the capture", g, []part{seenAt(strangers, out("eth0"), ttl(63))}, []string{"no request has an address in the given Pod ranges"}},
		{"no Pod in the capture, and no Pod range given", factsOf(t, "node "+node), []part{seenAt(strangers, out("eth0"), ttl(63))}, nil},
		{"no request at all", g, nil, nil},
		{"a Pod behind a Service is a Pod", g, []part{natPath{client: "192.0.2.9:5000", server: node + ":30080", to: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(opened("192.0.2.9:5000 > "+node+":30080", 1, 1000)...)}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := resultOf(t, row.facts, row.parts...).Limits
			if len(got) != len(row.want) {
				t.Fatalf("got %q, want %q", got, row.want)
			}
			for i, want := range row.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}

	whole, cut := captureOf(t, lost), captureOf(t, lost, about(damagedEnd), about(onFarSide))
	whole.File, cut.File = "near.pcap", "far.pcap"
	got := runOf(t, g, Options{}, whole, cut).Limits
	if said := strings.Join(got, "\n"); !strings.Contains(said, "far.pcap is cut") || strings.Contains(said, "near.pcap is cut") {
		t.Errorf("of two captures, one of them cut: %q", got)
	}
}

// object is a JSON object in the making.
type object = map[string]any

func kubeNode(name, ip string) object {
	return object{
		"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name}, "spec": object{},
		"status": object{"addresses": []object{{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": name}}},
	}
}

func kubePod(name, ip, onNode, hostIP, phase string, hostNetwork bool) object {
	return object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"namespace": "shop", "name": name},
		"spec":   object{"nodeName": onNode, "hostNetwork": hostNetwork},
		"status": object{"phase": phase, "podIP": ip, "podIPs": []object{{"ip": ip}}, "hostIP": hostIP},
	}
}

func clusterOf(t *testing.T, items ...object) *cluster.Facts {
	t.Helper()
	b, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	f, err := cluster.New(cluster.Input{Cluster: b, ClusterName: "nodes-pods.json"})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// With --cluster, roles come with names, and with what a name cannot say.
func TestRolesOfCluster(t *testing.T) {
	const other = "10.128.0.11"
	facts := clusterOf(
		t, kubeNode("gke-a", node), kubeNode("gke-b", other),
		kubePod("web", pod, "gke-a", node, "Running", false),
		kubePod("exporter", node, "gke-a", node, "Running", true),
		kubePod("job-old", "10.4.0.8", "gke-a", node, "Succeeded", false),
		kubePod("job-new", "10.4.0.8", "gke-a", node, "Running", false),
		kubePod("far", "10.5.0.9", "gke-b", other, "Running", false),
	)
	uplink := func(ends string, n uint8) many {
		m := opened(ends, 1, 1000)
		return slices.Concat(seenAt(m[:1], out("eth0"), ttl(n)), seenAt(m[1:2], in("eth0")), seenAt(m[2:], out("eth0"), ttl(n)))
	}
	const reusedEnds = "10.4.0.8:41000 > " + server + ":443"
	for _, row := range []struct {
		name        string
		parts       []part
		verdict     string // as in verdictRow
		role, named string // of the client
		hostNetwork bool
		reused      bool
		reason      string // in one of the reasons
	}{
		{"a Pod by its own address", []part{kept(podEnds).carry(opened(podEnds, 1, 1000)...)}, "outbound pod-sourced/translation handshake-completed none", "pod", "shop/web", false, false, "same source 10.4.0.7"},
		{"a Pod, translated: the node is named", []part{masqueraded(podEnds, node+":51000").carry(opened(podEnds, 1, 1000)...)}, "outbound node-snated/translation handshake-completed none", "pod", "shop/web", false, false, "an address of node gke-a"},
		{"a hostNetwork Pod's address is the node's: it is no Pod", []part{uplink(nodeEnds, 64)}, "outbound node-own/egress handshake-completed none", "node", "gke-a", true, false, "this host sent it itself"},
		{"a hostNetwork Pod's address, forwarded", []part{uplink(nodeEnds, 63)}, "outbound node-snated/egress handshake-completed none", "node", "gke-a", true, false, "an inference"},
		{"a Pod's address that another Pod had before", []part{kept(reusedEnds).carry(opened(reusedEnds, 1, 1000)...)}, "outbound pod-sourced/translation handshake-completed none", "pod", "shop/job-new", false, true, "same source 10.4.0.8"},
		{"translated to the address of another node", []part{masqueraded(podEnds, other+":51000").carry(opened(podEnds, 1, 1000)...)}, "outbound node-snated/translation handshake-completed none", "pod", "shop/web", false, false, "gke-b"},
		{"from a Pod of another node, to a Pod of this one", []part{natPath{client: "10.5.0.9:41000", server: pod + ":8080", podIf: "eth0", uplink: "veth1"}.carry(seenAt(opened("10.5.0.9:41000 > "+pod+":8080", 1, 1000)[:1], ttl(63))...), goesOn(20)}, "* !not-sent|node-snated|node-own * !node-out|between", "pod", "shop/far", false, false, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			res := resultOf(t, facts, row.parts...)
			r := theRequest(t, res.Requests, "")
			if got := verdictOf(r); !meets(got, row.verdict) {
				t.Errorf("got %s, want %s: %q, %+v", got, row.verdict, r.Reasons, r.Unknown)
			}
			role := r.Client.Role
			if role.Kind.String() != row.role || role.Name() != row.named || role.HostNetwork != row.hostNetwork || role.Reused != row.reused || !role.Exact {
				t.Errorf("the client is %+v", role)
			}
			if said := fmt.Sprint(r.Reasons); !strings.Contains(said, row.reason) {
				t.Errorf("no reason says %q: %s", row.reason, said)
			}
			checkHonest(t, res.Requests)
			checkFindings(t, res)
		})
	}
}

// What a tunnel carries is judged, the tunnel is not: its outer packets are no request and no source.
func TestCarriersAreNoRequests(t *testing.T) {
	lost := tries(podEnds, 1, 2, 4)
	outer := func(p packet) packet {
		c := udp(node+":50000 > 10.128.0.99:4789", "", at(0), out("eth0"))
		c.Time, c.Tunnel = p.Time, wire.TunnelVXLAN
		return c.with(marked(wire.IsCarrier))
	}
	var m many
	for _, p := range lost {
		m = append(m, also(p, in("veth1")), outer(p), also(p, out("eth0"), depth(1), ttl(63)))
	}
	res := resultOf(t, gke(t), m, goesOn(20))
	r := theRequest(t, res.Requests, "")
	if got := verdictOf(r); !meets(got, "outbound pod-sourced/translation|pod-sourced/egress request-only unknown(no-far-capture)") {
		t.Errorf("got %s: %q", got, r.Reasons)
	}
	if len(res.Carriers) != 1 || res.Carriers[0].Packets != 3 || res.Carriers[0].Opaque != 0 || res.Carriers[0].Tunnel != wire.TunnelVXLAN {
		t.Errorf("carriers %+v", res.Carriers)
	}
	if len(res.Sources) != 1 || res.Sources[0].Addr != wire.MustAddr(pod) || res.Sources[0].Packets != 3 {
		t.Errorf("sources %+v", res.Sources)
	}
}
