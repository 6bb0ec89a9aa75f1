package cluster

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

func TestRole(t *testing.T) {
	stated := Input{PodCIDRs: prefixes("172.16.0.0/16"), NodeCIDRs: prefixes("10.10.0.0/28"), NodeIPs: addrs("10.10.0.3"), ServiceCIDRs: prefixes("10.96.0.0/12")}
	dual := Input{Cluster: kubeList(
		node("n1", "10.10.0.3", "172.16.1.0/24"),
		node("n2", "10.10.0.4", "172.16.2.0/24"),
		merged(node("n6", "", ""), obj{
			"spec": obj{"podCIDR": "172.16.3.0/24", "podCIDRs": []string{"172.16.3.0/24", "fd00:10:3::/64"}},
			"status": obj{"addresses": []obj{
				{"type": "InternalIP", "address": "10.10.0.6"},
				{"type": "InternalIP", "address": "fd00:1::6"},
				{"type": "ExternalIP", "address": "198.51.100.6"},
				{"type": "Hostname", "address": "10.99.99.99"},
			}},
		}),
		pod("shop/cart-1", "172.16.1.7", "n1", "10.10.0.3", "Running"),
		pod("shop/six", "172.16.3.7", "n6", "10.10.0.6", "Running", obj{"status": obj{
			"podIPs": []obj{{"ip": "172.16.3.7"}, {"ip": "fd00:10:3::7"}}, "hostIPs": []obj{{"ip": "10.10.0.6"}, {"ip": "fd00:1::6"}},
		}}),
		pod("kube-system/proxy-1", "10.10.0.3", "n1", "10.10.0.3", "Running", obj{"spec": obj{"hostNetwork": true}}),
		pod("kube-system/trimmed", "10.10.0.4", "n2", "10.10.0.4", "Running"),
		pod("batch/done", "172.16.2.9", "n2", "10.10.0.4", "Succeeded"),
		pod("kube-system/bridge-holder", "172.16.2.1", "n2", "10.10.0.4", "Running"),
		service("shop/cart", "10.96.7.7", obj{
			"spec":   obj{"externalIPs": []string{"203.0.113.80"}},
			"status": obj{"loadBalancer": obj{"ingress": []obj{{"ip": "203.0.113.81"}, {"hostname": "lb.example"}}}},
		}),
		service("shop/headless", "None"),
	)}
	podsOnly := Input{Cluster: kubeList(pod("shop/cart-1", "172.16.1.7", "n1", "10.10.0.3", "Running"))}
	linksAddr := "1: lo    inet 127.0.0.1/8 scope host lo\n" +
		"2: eth0    inet 10.10.0.3/28 brd 10.10.0.15 scope global eth0\\       valid_lft forever preferred_lft forever\n" +
		"3: cbr0    inet 172.16.1.1/24 scope global cbr0\n" +
		"4: wg0    inet 10.77.0.1 peer 10.77.0.2/32 scope global wg0\n" +
		"5: kube-ipvs0    inet 10.96.0.1/32 scope global kube-ipvs0\n" +
		"6: nodelocaldns    inet 169.254.20.10/32 scope global nodelocaldns\n" +
		"6: nodelocaldns    inet 10.96.0.10/32 scope global nodelocaldns\n" +
		"2: eth0    inet6 fe80::1/64 scope link\n"
	withLinks := dual
	withLinks.Links = []byte(linksAddr)
	linksAlone := stated
	linksAlone.Links = []byte(linksAddr)

	fourOnly := Input{Cluster: kubeList(
		node("n1", "10.10.0.3", "172.16.1.0/24"),
		pod("kube-system/proxy", "10.10.0.5", "n5", "", "Running", obj{"spec": obj{"hostNetwork": true}}),
		pod("d/old", "", "gone", "172.16.1.9", "Failed"),
		pod("d/new", "172.16.1.9", "n1", "10.10.0.3", "Running"),
	)}
	bridgeOnce := Input{
		Cluster: kubeList(node("n1", "10.10.0.3", "172.16.1.0/24"), pod("d/done", "172.16.1.1", "n1", "10.10.0.3", "Succeeded")),
		Links:   []byte(linksAddr),
	}
	linkLocalOnly := Input{PodCIDRs: prefixes("fd00:10::/56"), Links: []byte("2: eth0    inet6 fe80::1/64 scope link\n")}

	for _, tt := range []struct {
		rule string
		in   Input
		addr string
		want string
	}{
		// Stated ranges and addresses.
		{"an address in --pod-cidr is a Pod's, by range", stated, "172.16.0.13", "pod, range"},
		{"a --node-ip is a node's, exactly", stated, "10.10.0.3", "node"},
		{"an address in --node-cidr alone is in the node range, not this node", stated, "10.10.0.4", "node, range"},
		{"an address in --service-cidr is a Service's", stated, "10.96.0.10", "service, range"},
		{"an address in none of them is none of the cluster's", stated, "10.20.0.10", "other"},
		{"IPv6 is not known where only IPv4 facts are given", stated, "2001:db8::1", "unknown"},
		{"the first host address of a Pod range may be the bridge's", stated, "172.16.0.1", "unknown"},
		{"the network address of a Pod range may be the tunnel's", stated, "172.16.0.0", "unknown"},
		{"the second host address of a Pod range is a Pod's", stated, "172.16.0.2", "pod, range"},
		{"a loopback address is every host's", stated, "127.0.0.1", "unknown"},
		{"a multicast address is no host's", stated, "224.0.0.251", "unknown"},
		{"a link-local address tells nothing", stated, "169.254.1.1", "unknown"},
		{"the first host address of a Service range is a Service's: the API server's", stated, "10.96.0.1", "service, range"},
		{"the zero address is unknown", stated, "::", "unknown"},
		{"a range of one address is exact", Input{PodCIDRs: prefixes("172.16.0.13/32")}, "172.16.0.13", "pod"},
		{"the longer range wins: Pods inside a node range", Input{PodCIDRs: prefixes("10.4.0.0/14"), NodeCIDRs: prefixes("10.0.0.0/8")}, "10.5.1.2", "pod, range"},
		{"the longer range wins: nodes inside a Pod range", Input{PodCIDRs: prefixes("10.0.0.0/8"), NodeCIDRs: prefixes("10.4.0.0/28")}, "10.4.0.2", "node, range"},
		{"one range for Pods and nodes tells neither", Input{PodCIDRs: prefixes("10.0.0.0/16"), NodeCIDRs: prefixes("10.0.0.0/16")}, "10.0.3.4", "unknown"},
		{"an exact address beats that range", Input{PodCIDRs: prefixes("10.0.0.0/16"), NodeIPs: addrs("10.0.3.4")}, "10.0.3.4", "node"},
		{"host bits in a range are read over", Input{PodCIDRs: prefixes("172.16.5.9/16")}, "172.16.200.1", "pod, range"},
		{"a range of IPv4-mapped addresses is an IPv4 range", Input{PodCIDRs: prefixes("::ffff:172.16.0.0/112")}, "172.16.0.13", "pod, range"},
		{"an IPv6 range does not hold IPv4 addresses", Input{PodCIDRs: prefixes("::/0")}, "172.16.0.13", "unknown"},
		{"an IPv4 range does not hold IPv6 addresses", Input{PodCIDRs: prefixes("0.0.0.0/0")}, "fd00::7", "unknown"},
		{"an IPv6 range holds its addresses", Input{PodCIDRs: prefixes("fd00:10::/56")}, "fd00:10::7", "pod, range"},
		{"a node address with a zone is the address", Input{NodeIPs: addrs("fe80::5%eth0")}, "fe80::5", "node"},
		{"without node facts nothing is other", Input{PodCIDRs: prefixes("172.16.0.0/16")}, "10.20.0.10", "unknown"},
		{"without Pod facts nothing is other", Input{NodeIPs: addrs("10.10.0.3")}, "10.20.0.10", "unknown"},
		{"without facts nothing is known", Input{}, "10.20.0.10", "unknown"},

		// The cluster file.
		{"a Pod's address is that Pod's, with its node", dual, "172.16.1.7", "pod shop/cart-1 on n1"},
		{"a Pod's second address, of the other family", dual, "fd00:10:3::7", "pod shop/six on n6"},
		{"an address in a node's spec.podCIDR is a Pod's of that node, by range", dual, "172.16.2.44", "pod on n2, range"},
		{"an address in a node's second Pod range, of the other family", dual, "fd00:10:3::44", "pod on n6, range"},
		{"a node's InternalIP is the node's", dual, "10.10.0.6", "node n6"},
		{"a node's second InternalIP, of the other family", dual, "fd00:1::6", "node n6"},
		{"a node's ExternalIP is the node's", dual, "198.51.100.6", "node n6"},
		{"a node's Hostname is a name, even if it looks like an address", dual, "10.99.99.99", "other"},
		{"a hostNetwork Pod is the node", dual, "10.10.0.3", "node n1, hostNetwork"},
		{"a Pod with its host's address is the node, whatever its spec says", dual, "10.10.0.4", "node n2, hostNetwork"},
		{"a Pod that has ended still names its address", dual, "172.16.2.9", "pod batch/done on n2"},
		{"a Pod that has the first host address is a Pod", dual, "172.16.2.1", "pod kube-system/bridge-holder on n2"},
		{"the first host address of a node's Pod range is its bridge's by custom", dual, "172.16.1.1", "unknown on n1"},
		{"a Service's clusterIP", dual, "10.96.7.7", "service shop/cart"},
		{"a Service's externalIP", dual, "203.0.113.80", "service shop/cart"},
		{"a Service's load balancer", dual, "203.0.113.81", "service shop/cart"},
		{"an address of none of them is none of the cluster's", dual, "8.8.8.8", "other"},
		{"a file that lists the nodes speaks for IPv6, too", dual, "2001:db8::1", "other"},
		{"a Pod's hostIP names a node that the file does not list", podsOnly, "10.10.0.3", "node n1"},
		{"where no Pod range is known, another address may be a new Pod's", podsOnly, "172.16.1.8", "unknown"},

		{"a file that lists IPv4 nodes alone speaks for IPv6, too", fourOnly, "2001:db8::1", "other"},
		{"a hostNetwork Pod is the node, even if its host's address is not told", fourOnly, "10.10.0.5", "node n5, hostNetwork"},
		{"what a Pod that has ended says of its host does not take a Pod's address", fourOnly, "172.16.1.9", "pod d/new on n1"},

		// The node's own interfaces.
		{"a Pod that has ended does not keep the bridge's address", bridgeOnce, "172.16.1.1", "node n1"},
		{"a link-local address of a node does not tell where IPv6 nodes are", linkLocalOnly, "2001:db8::1", "unknown"},
		{"a bridge's address is the node's, though it lies in the Pod range", withLinks, "172.16.1.1", "node n1"},
		{"a tunnel's address is the node's", withLinks, "10.77.0.1", "node n1"},
		{"a tunnel's peer is not", withLinks, "10.77.0.2", "other"},
		{"a link-local address of the node is the node's", withLinks, "fe80::1", "node n1"},
		{"without a cluster file the node has no name", linksAlone, "10.77.0.1", "node"},
		{"what kube-proxy's IPVS interface holds is a Service's", linksAlone, "10.96.0.1", "service"},
		{"what NodeLocal DNSCache's interface holds is a Service's", linksAlone, "10.96.0.10", "service"},
		{"except its own link-local address", linksAlone, "169.254.20.10", "node"},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			r := mustNew(t, tt.in).Role(addr(tt.addr))
			if got := roleWord(r); got != tt.want {
				t.Errorf("%s is %q (%s), want %q", tt.addr, got, r.Fact(), tt.want)
			}
			if r.Kind != RoleUnknown && r.Fact() == "" {
				t.Errorf("%s is %s, and no fact says so", tt.addr, r.Kind)
			}
		})
	}
}

func merged(o obj, more obj) obj {
	merge(o, more)
	return o
}

func TestRoleNamesItsFact(t *testing.T) {
	f := mustNew(t, Input{
		PodCIDRs: prefixes("172.16.0.0/16"), NodeCIDRs: prefixes("10.10.0.0/28"), NodeIPs: addrs("10.10.0.3 10.10.0.9"),
		Cluster: kubeList(
			node("a", "10.10.0.3", "172.16.1.0/24"),
			pod("kube-system/dns-1", "172.16.1.7", "a", "10.10.0.3", "Running"),
			pod("kube-system/proxy", "10.10.0.5", "b", "10.10.0.5", "Running", obj{"spec": obj{"hostNetwork": true}}),
			pod("x/old", "172.16.1.8", "a", "10.10.0.3", "Failed"),
			pod("x/\x1b[31mred\n", "172.16.1.9", "a", "10.10.0.3", "Running"),
		),
		Links: []byte("3: cbr0    inet 172.16.1.1/24 scope global cbr0\n"),
	})
	for _, tt := range []struct{ addr, want string }{
		{"172.16.9.9", "--pod-cidr 172.16.0.0/16"},
		{"172.16.1.99", "spec.podCIDR of node a"},
		{"172.16.1.7", "status.podIP of kube-system/dns-1"},
		{"172.16.1.8", "status.podIP of x/old (Failed: another Pod may have the address by now)"},
		{"172.16.1.1", "ip -o addr: cbr0"},
		{"10.10.0.3", "--node-ip 10.10.0.3, status.addresses InternalIP of node a"},
		{"10.10.0.9", "--node-ip 10.10.0.9"},
		{"10.10.0.5", "status.podIP of kube-system/proxy, which is on the host's network"},
		{"10.10.0.4", "in the node range: --node-cidr 10.10.0.0/28"},
		// Names keep their bytes in values, and are quoted in sentences.
		{"172.16.1.9", `status.podIP of "x/\x1b[31mred\n"`},
	} {
		if got := f.Role(addr(tt.addr)).Fact(); got != tt.want {
			t.Errorf("%s: fact %q, want %q", tt.addr, got, tt.want)
		}
	}
	if got := f.Role(addr("172.16.1.9")).Name(); got != "x/\x1b[31mred\n" {
		t.Errorf("the name of a Pod with escapes is %q: not as the file gives it", got)
	}
	if got := f.HostNetworkPods(addr("10.10.0.5")); !slices.Equal(got, []string{"kube-system/proxy"}) {
		t.Errorf("hostNetwork Pods of 10.10.0.5: %q", got)
	}
}

func TestReusedPodAddress(t *testing.T) {
	at := func(s string) obj { return obj{"status": obj{"startTime": s}} }
	going := obj{"metadata": obj{"deletionTimestamp": "2026-01-01T00:00:00Z"}}
	for _, tt := range []struct {
		rule   string
		pods   []obj
		want   string
		reused bool
	}{
		{"the running one of a running and an ended one is meant", []obj{
			pod("d/ended", "172.16.1.7", "n", "10.10.0.3", "Succeeded"), pod("d/running", "172.16.1.7", "n", "10.10.0.3", "Running"),
		}, "d/running", true},
		{"in any order of the file", []obj{
			pod("d/running", "172.16.1.7", "n", "10.10.0.3", "Running"), pod("d/ended", "172.16.1.7", "n", "10.10.0.3", "Failed"),
		}, "d/running", true},
		{"the one that stays, not the one that is being deleted", []obj{
			pod("d/a-going", "172.16.1.7", "n", "10.10.0.3", "Running", going), pod("d/b-staying", "172.16.1.7", "n", "10.10.0.3", "Running"),
		}, "d/b-staying", true},
		{"of two running ones, the one that started last", []obj{
			pod("d/a", "172.16.1.7", "n", "10.10.0.3", "Running", at("2026-01-01T00:00:00Z")),
			pod("d/b", "172.16.1.7", "n", "10.10.0.3", "Running", at("2026-01-02T00:00:00Z")),
		}, "d/b", true},
		{"of two ended ones, the one that started last", []obj{
			pod("d/b", "172.16.1.7", "n", "10.10.0.3", "Failed", at("2026-01-02T00:00:00Z")),
			pod("d/a", "172.16.1.7", "n", "10.10.0.3", "Succeeded", at("2026-01-01T00:00:00Z")),
		}, "d/b", true},
		{"one Pod listed twice is one Pod", []obj{
			pod("d/a", "172.16.1.7", "n", "10.10.0.3", "Running"), pod("d/a", "172.16.1.7", "n", "10.10.0.3", "Running"),
		}, "d/a", false},
		{"Pods on the host's network share its address, and reuse nothing", []obj{
			pod("d/a", "172.16.1.7", "n", "10.10.0.3", "Running"),
			pod("d/h1", "10.10.0.3", "n", "10.10.0.3", "Running"), pod("d/h2", "10.10.0.3", "n", "10.10.0.3", "Running"),
		}, "d/a", false},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			f := mustNew(t, Input{Cluster: kubeList(tt.pods...)})
			r := f.Role(addr("172.16.1.7"))
			if r.Name() != tt.want || r.Reused != tt.reused || r.Kind != RolePod || !r.Exact {
				t.Errorf("got %s (reused %t), want pod %s (reused %t)", roleWord(r), r.Reused, tt.want, tt.reused)
			}
			at := f.PodsAt(addr("172.16.1.7"))
			if len(at) == 0 || at[0].Name != tt.want || (len(at) > 1) != tt.reused {
				t.Errorf("PodsAt: %+v", at)
			}
			if got := strings.Contains(warningCodes(f), "pod-address-reused"); got != tt.reused {
				t.Errorf("warnings %q", warningCodes(f))
			}
			if tt.reused {
				w := warning(t, f, "pod-address-reused")
				for _, p := range at {
					if !strings.Contains(w.Text, p.Name) {
						t.Errorf("the warning does not name %s: %s", p.Name, w.Text)
					}
				}
			}
		})
	}
}

func TestWarningsAboutRangesAndAddresses(t *testing.T) {
	running := func(name, ip string) obj { return pod(name, ip, "n", "10.10.0.3", "Running") }
	for _, tt := range []struct {
		rule  string
		in    Input
		codes string
		says  string // part of the first warning's text; "|" is its end
	}{
		{"ranges that agree with the file need no word", Input{PodCIDRs: prefixes("172.16.0.0/16"), Cluster: kubeList(node("n", "10.10.0.3", "172.16.1.0/24"))}, "", ""},
		{
			"a Pod outside the given range is named",
			Input{PodCIDRs: prefixes("172.16.0.0/16"), Cluster: kubeList(node("n", "10.10.0.3", "10.4.0.0/24"), running("d/a", "10.4.0.9"), agent("ip-masq-agent-1", "n", "10.10.0.3", "Running", "True"))},
			"pod-outside-range", "1 Pod of the file outside the given --pod-cidr: d/a",
		},
		{
			"a Pod that has ended is not",
			Input{PodCIDRs: prefixes("172.16.0.0/16"), Cluster: kubeList(node("n", "10.10.0.3", ""), pod("d/a", "10.4.0.9", "n", "10.10.0.3", "Failed"), agent("ip-masq-agent-1", "n", "10.10.0.3", "Running", "True"))},
			"", "",
		},
		{
			"a network plugin with ranges of its own is told by Pods outside spec.podCIDR",
			Input{Cluster: kubeList(node("n", "10.10.0.3", "10.4.0.0/24"), running("d/a", "192.168.7.7"), agent("ip-masq-agent-1", "n", "10.10.0.3", "Running", "True"))},
			"pod-range-unknown", "1 Pod of the file outside every known Pod range",
		},
		{
			"Pods and no range at all",
			Input{Cluster: kubeList(node("n", "10.10.0.3", ""), running("d/a", "192.168.7.7"), agent("ip-masq-agent-1", "n", "10.10.0.3", "Running", "True"))},
			"pod-range-unknown", "no Pod range is known",
		},
		{
			"a node range around a Pod range, and which wins",
			Input{PodCIDRs: prefixes("10.4.0.0/14"), NodeCIDRs: prefixes("10.0.0.0/8")},
			"ranges-overlap", "--pod-cidr 10.4.0.0/14 lies in --node-cidr 10.0.0.0/8, and wins there",
		},
		{
			"one range for two things, said once",
			Input{PodCIDRs: prefixes("10.0.0.0/16"), NodeCIDRs: prefixes("10.0.0.0/16")},
			"ranges-overlap", "ranges of different kinds overlap: --pod-cidr 10.0.0.0/16 is --node-cidr 10.0.0.0/16, so it says nothing|",
		},
		{
			"a stated node range over a node's Pod range",
			Input{NodeCIDRs: prefixes("172.16.0.0/12"), Cluster: kubeList(node("n", "10.10.0.3", "172.16.1.0/24"))},
			"ranges-overlap", "spec.podCIDR of node n lies in --node-cidr 172.16.0.0/12",
		},
		{"a headless Service has no address, and none is missed", Input{Cluster: kubeList(node("n", "10.10.0.3", ""), service("d/headless", "None"))}, "", ""},
		{"a range with host bits", Input{PodCIDRs: prefixes("172.16.5.9/16")}, "range-not-aligned", "172.16.5.9/16"},
		{
			"a stated node address that is a running Pod's",
			Input{NodeIPs: addrs("172.16.1.7"), Cluster: kubeList(node("n", "10.10.0.3", "172.16.1.0/24"), running("d/a", "172.16.1.7"), agent("ip-masq-agent-1", "n", "10.10.0.3", "Running", "True"))},
			"address-conflict", "172.16.1.7: --node-ip 172.16.1.7 against status.podIP of d/a",
		},
		{
			"a links file made inside a Pod",
			Input{Cluster: kubeList(node("n", "10.10.0.3", "172.16.1.0/24"), running("d/a", "172.16.1.7"), agent("ip-masq-agent-1", "n", "10.10.0.3", "Running", "True")), Links: []byte("2: eth0    inet 172.16.1.7/24 scope global eth0\n")},
			"address-conflict", "172.16.1.7: status.podIP of d/a against ip -o addr: eth0",
		},
		{
			"values that are no addresses are named and not used",
			Input{Cluster: kubeList(node("n", "REDACTED", ""), node("m", "10.10.0.4", "x.x.x.x/24"))},
			"address-not-read", `spec.podCIDR of node m is "x.x.x.x/24", status.addresses InternalIP of n is "REDACTED"`,
		},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			f := mustNew(t, tt.in)
			if got := warningCodes(f); got != tt.codes {
				t.Fatalf("warnings %q, want %q: %+v", got, tt.codes, f.Warnings())
			}
			if tt.codes != "" && !strings.Contains(f.Warnings()[0].Text+"|", tt.says) {
				t.Errorf("warning %q does not say %q", f.Warnings()[0].Text, tt.says)
			}
		})
	}
}

func TestPodsOutsideTheRangesLeaveNothingOther(t *testing.T) {
	f := mustNew(t, Input{Cluster: kubeList(
		node("n", "10.10.0.3", "10.4.0.0/24"), pod("d/a", "192.168.7.7", "n", "10.10.0.3", "Running"))})
	if r := f.Role(addr("192.168.7.8")); r.Kind != RoleUnknown || !strings.Contains(r.Fact(), "--pod-cidr") {
		t.Errorf("the neighbour of a Pod outside the known ranges is %s (%s): it may be a Pod", r.Kind, r.Fact())
	}
}

func TestGivenListsFlagsThenFiles(t *testing.T) {
	f := mustNew(t, Input{
		PodCIDRs: prefixes("172.16.0.0/16 fd00::/56"), ServiceCIDRs: prefixes("10.96.0.0/12"), NodeCIDRs: prefixes("10.10.0.0/28"), NodeIPs: addrs("10.10.0.3"),
		Cluster:     kubeList(node("n", "10.10.0.3", ""), pod("d/a", "172.16.1.7", "n", "10.10.0.3", "Running"), service("d/s", "10.96.0.9"), obj{"kind": "ConfigMap"}),
		ClusterName: "c.json", Links: []byte("2: eth0    inet 10.10.0.3/28 scope global eth0\n"), LinksName: "l.txt",
	})
	want := []Given{
		{"--pod-cidr", "172.16.0.0/16"},
		{"--pod-cidr", "fd00::/56"},
		{"--service-cidr", "10.96.0.0/12"},
		{"--node-cidr", "10.10.0.0/28"},
		{"--node-ip", "10.10.0.3"},
		{"--cluster", "c.json: 1 node, 1 Pod, 1 Service, 1 other object"},
		{"--links", "l.txt: 1 link, 1 address"},
	}
	if got := f.Given(); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestPrefixesAreCoveredAndSorted(t *testing.T) {
	f := mustNew(t, Input{
		PodCIDRs: prefixes("172.16.0.0/16 ::ffff:10.200.0.0/112"), ServiceCIDRs: prefixes("10.96.0.0/12 10.96.0.0/12"), NodeCIDRs: prefixes("fd00::/64 10.10.0.0/28"),
		Cluster: kubeList(node("n", "10.10.0.3", "172.16.1.0/24"), node("m", "10.10.0.4", "10.4.0.0/24"), node("n", "10.10.0.3", "172.16.1.0/24")),
	})
	for _, tt := range []struct {
		what string
		got  []netip.Prefix
		want string
	}{
		{"Pod", f.PodPrefixes(), "10.4.0.0/24 10.200.0.0/16 172.16.0.0/16"},
		{"Service", f.ServicePrefixes(), "10.96.0.0/12"},
		{"node", f.NodePrefixes(), "10.10.0.0/28 fd00::/64"},
	} {
		if !slices.Equal(tt.got, prefixes(tt.want)) {
			t.Errorf("%s ranges %v, want %s", tt.what, tt.got, tt.want)
		}
	}
	if got, want := f.NodeAddrs(), []wire.Addr{addr("10.10.0.3"), addr("10.10.0.4")}; !slices.Equal(got, want) {
		t.Errorf("node addresses %v, want %v", got, want)
	}
	if ns := f.Nodes(); len(ns) != 2 || ns[0].Name != "m" || ns[1].Name != "n" || len(ns[1].PodCIDRs) != 1 || len(ns[1].Addrs) != 1 {
		t.Errorf("nodes %+v", ns)
	}
}

func TestFlagErrorsAreToldTogether(t *testing.T) {
	_, err := New(Input{PodCIDRs: []netip.Prefix{{}}, NodeIPs: []netip.Addr{{}, netip.IPv4Unspecified()}, Cluster: []byte("{"), Links: []byte("x")})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"--pod-cidr: value 1", "--node-ip: value 1", "--node-ip: value 2", "read cluster file --cluster", "read links file --links"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q:\n%v", part, err)
		}
	}
}

func TestNilFactsKnowNothing(t *testing.T) {
	var f *Facts
	if f.Role(addr("10.0.0.1")) != (Role{}) || f.HasPodFacts() || f.HasNodeFacts() || f.HasLinks() || f.IsNodeMAC([6]byte{}) ||
		f.Links() != nil || f.Warnings() != nil || f.Given() != nil || f.PodPrefixes() != nil || f.ServicePrefixes() != nil ||
		f.NodePrefixes() != nil || f.NodeAddrs() != nil || f.Nodes() != nil || f.PodsAt(addr("10.0.0.1")) != nil || f.HostNetworkPods(addr("10.0.0.1")) != nil {
		t.Error("a nil *Facts knows something")
	}
	if _, ok := f.Link(1); ok {
		t.Error("a nil *Facts has a link")
	}
}

func TestHasFacts(t *testing.T) {
	for _, tt := range []struct {
		rule      string
		in        Input
		pod, node bool
	}{
		{"nothing was given", Input{}, false, false},
		{"a Pod range", Input{PodCIDRs: prefixes("172.16.0.0/16")}, true, false},
		{"a node range", Input{NodeCIDRs: prefixes("10.10.0.0/28")}, false, true},
		{"a node address", Input{NodeIPs: addrs("10.10.0.3")}, false, true},
		{"a Service range says neither", Input{ServiceCIDRs: prefixes("10.96.0.0/12")}, false, false},
		{"nodes without Pod ranges", Input{Cluster: kubeList(node("n", "10.10.0.3", ""))}, false, true},
		{"nodes with Pod ranges", Input{Cluster: kubeList(node("n", "10.10.0.3", "10.4.0.0/24"))}, true, true},
		{"a Pod with its host", Input{Cluster: kubeList(pod("d/a", "10.4.0.7", "n", "10.10.0.3", "Running"))}, true, true},
		{"a hostNetwork Pod is no Pod fact", Input{Cluster: kubeList(pod("d/a", "10.10.0.3", "n", "10.10.0.3", "Running"))}, false, true},
		{"links without addresses say neither", Input{Links: []byte("2: eth0: <UP> mtu 1500\n")}, false, false},
		{"an interface's address is a node fact", Input{Links: []byte("2: eth0    inet 10.10.0.3/28\n")}, false, true},
		{"the loopback interface's is not", Input{Links: []byte("1: lo    inet 127.0.0.1/8\n")}, false, false},
	} {
		f := mustNew(t, tt.in)
		if f.HasPodFacts() != tt.pod || f.HasNodeFacts() != tt.node {
			t.Errorf("%s: Pod facts %t, node facts %t; want %t, %t", tt.rule, f.HasPodFacts(), f.HasNodeFacts(), tt.pod, tt.node)
		}
	}
}

// What is given out may be changed without changing the facts.
func TestFactsGiveOutCopies(t *testing.T) {
	f := mustNew(t, Input{
		PodCIDRs: prefixes("10.0.0.0/8"), NodeCIDRs: prefixes("10.4.0.0/16"),
		Cluster: kubeList(node("n", "10.10.0.3", "10.5.0.0/24")), Links: []byte("2: eth0: <UP> mtu 1500\n"),
	})
	f.PodPrefixes()[0] = netip.Prefix{}
	f.NodeAddrs()[0] = wire.Addr{}
	f.Nodes()[0].PodCIDRs[0] = netip.Prefix{}
	f.Warnings()[0].Names[0] = "x"
	f.Given()[0] = Given{}
	f.Links()[0] = Link{}
	if l, _ := f.Link(2); f.PodPrefixes()[0] == (netip.Prefix{}) || f.NodeAddrs()[0] == (wire.Addr{}) || f.Nodes()[0].PodCIDRs[0] == (netip.Prefix{}) ||
		f.Warnings()[0].Names[0] == "x" || f.Given()[0] == (Given{}) || l == (Link{}) {
		t.Error("the facts were changed through what they gave out")
	}
}

// The slow twin of the range tables looks at every range.
func TestRangesMatchTheSlowTwin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func() netip.Addr {
		var b [16]byte
		for i := range b {
			b[i] = byte(rnd.UintN(4)) // few values, so that ranges nest and addresses hit
		}
		if rnd.UintN(2) == 0 {
			return netip.AddrFrom4([4]byte(b[:4]))
		}
		return netip.AddrFrom16(b)
	}
	for range 200 {
		in := Input{NodeIPs: addrs("192.0.2.1")}
		all := map[netip.Prefix]RoleKind{}
		for range rnd.IntN(40) {
			a := random()
			p := netip.PrefixFrom(a, rnd.IntN(a.BitLen()+1)).Masked()
			if p.Contains(netip.IPv6Unspecified()) || p.Contains(netip.IPv4Unspecified()) {
				continue
			}
			k := RoleKind(1 + rnd.IntN(3))
			if old, ok := all[p]; ok && old != k {
				k = RoleUnknown
			}
			all[p] = k
			switch k {
			case RolePod:
				in.PodCIDRs = append(in.PodCIDRs, p)
			case RoleService:
				in.ServiceCIDRs = append(in.ServiceCIDRs, p)
			case RoleNode:
				in.NodeCIDRs = append(in.NodeCIDRs, p)
			default:
				in.NodeCIDRs, in.PodCIDRs = append(in.NodeCIDRs, p), append(in.PodCIDRs, p)
			}
		}
		f := mustNew(t, in)
		for range 200 {
			a := random()
			var best netip.Prefix
			for p := range all {
				if p.Contains(a) && (!best.IsValid() || p.Bits() > best.Bits()) {
					best = p
				}
			}
			want := all[best]
			if !best.IsValid() || a == best.Addr() || a == best.Addr().Next() {
				continue // other, unknown, or a customary address: TestRole
			}
			if got := f.Role(wire.AddrFrom(a)); got.Kind != want {
				t.Fatalf("%s is %s (%s), want %s by %s", a, got.Kind, got.Fact(), want, best)
			}
		}
	}
}

func TestRoleDoesNotAllocate(t *testing.T) {
	f := mustNew(t, Input{PodCIDRs: prefixes("10.4.0.0/14 fd00::/56"), NodeCIDRs: prefixes("10.10.0.0/28"), Cluster: kubeList(node("n", "10.10.0.3", "10.4.1.0/24"))})
	for _, a := range []string{"10.10.0.3", "10.4.1.1", "10.4.1.9", "10.4.9.9", "8.8.8.8", "fd00::1:2", "127.0.0.1"} {
		w := addr(a)
		if n := testing.AllocsPerRun(100, func() { f.Role(w) }); n != 0 {
			t.Errorf("Role(%s) allocates %v times", a, n)
		}
	}
}

func TestWarningsAreTheSameEveryTime(t *testing.T) {
	in := Input{PodCIDRs: prefixes("172.16.0.0/16"), NodeCIDRs: prefixes("172.16.0.0/12"), Cluster: manyPods(300, 3)}
	first := mustNew(t, in)
	for range 5 {
		again := mustNew(t, in)
		if a, b := first.Warnings(), again.Warnings(); !slices.EqualFunc(a, b, func(x, y Warning) bool {
			return x.Code == y.Code && x.Text == y.Text && slices.Equal(x.Names, y.Names)
		}) {
			t.Fatalf("two runs differ:\n%+v\n%+v", a, b)
		}
	}
	if !strings.Contains(warningCodes(first), "pod-address-reused") {
		t.Error("the input was to have reused addresses")
	}
}

// manyPods makes a file of Pods spread over nodes; every third address is used twice.
func manyPods(pods, nodes int) []byte {
	var items []obj
	for i := range nodes {
		ip := netip.AddrFrom4([4]byte{10, 10, byte(i >> 8), byte(i)}).String()
		items = append(items, node("n"+ip, ip, ""))
	}
	for i := range pods {
		j := i - i%3/2
		ip := netip.AddrFrom4([4]byte{10, byte(64 + j>>16), byte(j >> 8), byte(j)}).String()
		host := netip.AddrFrom4([4]byte{10, 10, byte(i % nodes >> 8), byte(i % nodes)}).String()
		items = append(items, pod("ns/pod-"+string(rune('a'+i%26))+ip, ip, "n"+host, host, "Running"))
	}
	return kubeList(items...)
}

func BenchmarkRole(b *testing.B) {
	f := mustNew(b, Input{PodCIDRs: prefixes("10.4.0.0/14"), NodeCIDRs: prefixes("10.10.0.0/16"), ServiceCIDRs: prefixes("10.96.0.0/12"), Cluster: manyPods(20000, 500)})
	for _, a := range []string{"10.10.0.3", "10.4.1.9", "8.8.8.8"} {
		w := addr(a)
		b.Run(a, func(b *testing.B) {
			for b.Loop() {
				f.Role(w)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	// kubectl prints much that is not read: most of a Pod is that.
	text := bytes.ReplaceAll(manyPods(5000, 50), []byte(`"image"`), []byte(`"env": [`+strings.Repeat(`{"name": "A", "value": "`+strings.Repeat("x", 80)+`"},`, 30)+`{}], "image"`))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		mustNew(b, Input{Cluster: text})
	}
}
