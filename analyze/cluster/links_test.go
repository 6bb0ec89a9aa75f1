package cluster

import (
	"fmt"
	"strings"
	"testing"
)

// linkWord is a link as a table row writes it.
func linkWord(l Link) string {
	s := fmt.Sprintf("%d %s", l.Index, l.Name)
	for _, f := range []struct{ what, value string }{{"peer", l.Peer}, {"master", l.Master}, {"type", l.Type}, {"kind", l.Kind}} {
		if f.value != "" {
			s += " " + f.what + "=" + f.value
		}
	}
	if l.MTU != 0 {
		s += fmt.Sprintf(" mtu=%d", l.MTU)
	}
	if l.HasMAC {
		s += fmt.Sprintf(" mac=%x", l.MAC)
	}
	if l.Loopback {
		s += " loopback"
	}
	if l.PodSide {
		s += " podside"
	}
	return s
}

func TestLinkForms(t *testing.T) {
	for _, tt := range []struct {
		form, text, want string // want: one link a line
	}{
		{
			"ip -o link",
			"1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000\\    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n" +
				"2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1460 qdisc mq state UP mode DEFAULT group default qlen 1000\\    link/ether 42:01:0a:0a:00:03 brd ff:ff:ff:ff:ff:ff\\    altname enp0s4\n" +
				"7: veth8a1@if3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1460 qdisc noqueue master cbr0 state UP mode DEFAULT group default \\    link/ether e6:26:84:25:ab:b8 brd ff:ff:ff:ff:ff:ff link-netnsid 0\n",
			"1 lo type=loopback mtu=65536 loopback\n2 eth0 type=ether mtu=1460 mac=42010a0a0003\n7 veth8a1 peer=if3 master=cbr0 type=ether mtu=1460 mac=e6268425abb8 podside",
		},
		{
			"ip link",
			"1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000\n    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n" +
				"2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1460 qdisc mq state UP mode DEFAULT group default qlen 1000\n    link/ether 42:01:0a:0a:00:03 brd ff:ff:ff:ff:ff:ff\n    altname enp0s4\n",
			"1 lo type=loopback mtu=65536 loopback\n2 eth0 type=ether mtu=1460 mac=42010a0a0003",
		},
		{
			"ip -d -o link",
			"2: cbr0: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000\\    link/ether e6:26:84:25:ab:b8 brd ff:ff:ff:ff:ff:ff promiscuity 0  allmulti 0 minmtu 68 maxmtu 65535 \\    bridge forward_delay 1500 hello_time 200 ageing_time 30000 numtxqueues 1 \n" +
				"6: vethxx@eth9: <BROADCAST,MULTICAST,M-DOWN> mtu 1500 qdisc noop master cbr0 state DOWN mode DEFAULT group default qlen 1000\\    link/ether e6:26:84:25:ab:b9 brd ff:ff:ff:ff:ff:ff promiscuity 1  allmulti 1 minmtu 68 maxmtu 65535 \\    veth \\    bridge_slave state disabled priority 32 cost 2 hairpin off \n" +
				"7: tap0: <POINTOPOINT,MULTICAST,NOARP> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 500\\    link/none  promiscuity 0  allmulti 0 minmtu 68 maxmtu 65535 \\    tun type tun pi off vnet_hdr off persist on\n",
			"2 cbr0 type=ether kind=bridge mtu=1500 mac=e6268425abb8 podside\n6 vethxx peer=eth9 master=cbr0 type=ether kind=veth mtu=1500 mac=e6268425abb9 podside\n7 tap0 type=none kind=tun mtu=1500",
		},
		{
			"ip -d link",
			"6: vethxx@if9: <BROADCAST,MULTICAST,M-DOWN> mtu 1500 qdisc noop master cbr0 state DOWN mode DEFAULT group default qlen 1000\n    link/ether e6:26:84:25:ab:b9 brd ff:ff:ff:ff:ff:ff promiscuity 1  allmulti 1 minmtu 68 maxmtu 65535 \n    veth \n    bridge_slave state disabled priority 32 cost 2 hairpin off \n",
			"6 vethxx peer=if9 master=cbr0 type=ether kind=veth mtu=1500 mac=e6268425abb9 podside",
		},
		{
			"tunnels, whose kind the link layer tells",
			"4: tunl0@NONE: <NOARP,UP,LOWER_UP> mtu 1480 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000\\    link/ipip 0.0.0.0 brd 0.0.0.0\n5: gre1@eth0: <POINTOPOINT,NOARP> mtu 1476 qdisc noop\\    link/gre 10.0.0.1 peer 10.0.0.2\n",
			"4 tunl0 type=ipip kind=ipip mtu=1480\n5 gre1 peer=eth0 type=gre kind=gre mtu=1476",
		},
		{
			"an XDP program between mtu and master",
			"4: lxc0123456789ab@if3: <BROADCAST,UP> mtu 1500 xdpgeneric/id:42 qdisc noqueue master vrf0 state UP\\    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n",
			"4 lxc0123456789ab peer=if3 master=vrf0 type=ether mtu=1500 mac=020000000001 podside",
		},
		{
			"pasted from a terminal, with prompts, indented, with CR LF",
			"root@node:~# ip -o link\r\n    2: eth0: <BROADCAST,UP> mtu 1460 qdisc mq state UP\\    link/ether 42:01:0a:0a:00:03 brd ff:ff:ff:ff:ff:ff\r\nroot@node:~# exit\r\n",
			"2 eth0 type=ether mtu=1460 mac=42010a0a0003",
		},
		{"with a byte order mark", "\xef\xbb\xbf2: eth0: <UP> mtu 1460\n", "2 eth0 mtu=1460"},
		{
			"addresses before links: one link, not two",
			"2: eth0    inet 10.10.0.3/28 scope global eth0\n2: eth0@if4: <UP> mtu 1460 qdisc mq\\    link/ether 42:01:0a:0a:00:03 brd ff:ff:ff:ff:ff:ff\n2: eth0    inet6 fe80::1/64 scope link\n",
			"2 eth0 peer=if4 type=ether mtu=1460 mac=42010a0a0003",
		},
		{
			"links in no order",
			"9: b: <UP> mtu 1\n3: a: <UP> mtu 2\n",
			"3 a mtu=2\n9 b mtu=1",
		},
		{
			"an alias cannot pretend to be anything",
			"2: eth0: <UP> mtu 1460 qdisc mq\\    link/ether 42:01:0a:0a:00:03 brd ff:ff:ff:ff:ff:ff\\    alias x\\    veth\\    link/ether 02:02:02:02:02:02 \\ 3: evil: <UP> mtu 9\n",
			"2 eth0 type=ether mtu=1460 mac=42010a0a0003",
		},
		{
			"hardware addresses that are none",
			"2: a: <UP> mtu 1\\    link/ether 42:01:0a:0a:00 brd x\n3: b: <UP> mtu 1\\    link/ether\n4: c: <UP> mtu 1\\    link/infiniband 80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:01 brd x\n5: d: <UP> mtu 1\\    link/ether zz:01:0a:0a:00:03\n6: e: <UP> mtu 1\\    link/ether 42-01-0a-0a-00-03\n",
			"2 a type=ether mtu=1\n3 b type=ether mtu=1\n4 c type=infiniband mtu=1\n5 d type=ether mtu=1\n6 e type=ether mtu=1",
		},
	} {
		t.Run(tt.form, func(t *testing.T) {
			f := mustNew(t, Input{Links: []byte(tt.text)})
			var got []string
			for _, l := range f.Links() {
				got = append(got, linkWord(l))
				if byIndex, ok := f.Link(l.Index); !ok || byIndex != l {
					t.Errorf("Link(%d) is %+v, %t", l.Index, byIndex, ok)
				}
				if l.PodSide != (l.PodSideFact != "") {
					t.Errorf("%s: PodSide %t because %q", l.Name, l.PodSide, l.PodSideFact)
				}
			}
			if s := strings.Join(got, "\n"); s != tt.want {
				t.Errorf("got\n%s\nwant\n%s", s, tt.want)
			}
		})
	}
}

func TestAddressesOfLinks(t *testing.T) {
	for _, tt := range []struct{ form, text, node string }{
		{"ip -o addr", "3: cbr0    inet 172.16.1.1/24 scope global cbr0\\       valid_lft forever preferred_lft forever\n", "172.16.1.1"},
		{"ip addr", "3: cbr0: <UP> mtu 1500 qdisc noqueue state UP\n    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n    inet 172.16.1.1/24 scope global cbr0\n       valid_lft forever preferred_lft forever\n", "172.16.1.1"},
		{"a second address of ip addr", "3: cbr0: <UP> mtu 1500\n    inet 172.16.1.1/24 scope global cbr0\n       valid_lft forever\n    inet6 fd00::1/64 scope global\n", "fd00::1"},
		{"a point-to-point address", "4: wg0    inet 172.16.1.1 peer 10.77.0.2/32 scope global wg0\n", "172.16.1.1"},
		{"a name with a peer", "4: eth0@if2    inet 172.16.1.1/24 scope global eth0\n", "172.16.1.1"},
	} {
		f := mustNew(t, Input{Links: []byte(tt.text)})
		if r := f.Role(addr(tt.node)); r.Kind != RoleNode || !r.Exact {
			t.Errorf("%s: %s is %s (%s), want a node", tt.form, tt.node, roleWord(r), r.Fact())
		}
	}
	f := mustNew(t, Input{Links: []byte("2: eth0: <UP> mtu 1\\    alias x\\    inet 8.8.8.8/32 scope global\n    inet 8.8.4.4/32\n3: eth1: <UP> mtu 1\nnot a link\n    inet 8.8.4.5/32\n")})
	for _, a := range []string{"8.8.8.8", "8.8.4.4", "8.8.4.5"} {
		if r := f.Role(addr(a)); r.Kind != RoleUnknown {
			t.Errorf("%s, which is in no address line, is %s (%s)", a, r.Kind, r.Fact())
		}
	}
}

func TestPodSideLinks(t *testing.T) {
	link := func(i int, name, rest string) string {
		return fmt.Sprintf("%d: %s: <UP> mtu 1500 %s\n", i, name, rest)
	}
	for _, tt := range []struct {
		rule, text string
		pods       string // the names of the Pod-side links
	}{
		// Names.
		{"GKE's", link(2, "gke0b335c00e99@if2", ""), "gke0b335c00e99"},
		{"Calico's, Cilium's, AWS', Azure's", link(2, "cali0123456789a@if2", "") + link(3, "lxc0123456789ab@if2", "") + link(4, "lxc_health@if2", "") + link(5, "eni0123456789a@if2", "") + link(6, "azv0123456789a@if2", "") + link(7, "vlan0123456789a@if2", ""), "cali0123456789a lxc0123456789ab lxc_health eni0123456789a azv0123456789a vlan0123456789a"},
		{"the usual Pod bridges", link(2, "cbr0", "") + link(3, "cni0", "") + link(4, "docker0", "") + link(5, "br-0123456789ab", "") + link(6, "kube-bridge", ""), "cbr0 cni0 docker0 br-0123456789ab kube-bridge"},
		{"not what leads out", link(2, "eth0", "") + link(3, "ens4", "") + link(4, "bond0", "") + link(5, "eth0.100@eth0", "") + link(6, "vlan100@eth0", "") + link(7, "vlan.eth.1@eth1", "") + link(8, "br-ex", "") + link(9, "enp0s4", ""), ""},
		{"not tunnels", link(2, "flannel.1", "") + link(3, "tunl0@NONE", "") + link(4, "vxlan.calico", "") + link(5, "wg0", "") + link(6, "cilium_vxlan", ""), ""},
		{"not what only begins alike", link(2, "gke", "") + link(3, "gkeuplink", "") + link(4, "lxcbr0", "") + link(5, "enixyz", "") + link(6, "veth", ""), ""},
		{"not an uplink that is a veth in a nested node", link(4, "eth0@if2", ""), ""},
		// Masters.
		{"a bridge that holds veths, and what it holds", link(2, "br0", "") + link(3, "a@if2", "master br0") + link(4, "b@if2", "master br0"), "br0 a b"},
		{"a bridge with an uplink in it is none, its veths are", link(2, "br0", "") + link(3, "eth0", "master br0") + link(4, "v4@if2", "master br0"), "v4"},
		{"Azure's bridge holds the uplink", link(2, "azure0", "") + link(3, "eth0", "master azure0") + link(4, "azv0123456789a@if2", "master azure0"), "azv0123456789a"},
		{"a bond of uplinks is none", link(2, "bond0", "") + link(3, "eth0", "master bond0") + link(4, "eth1", "master bond0"), ""},
		{"a VRF is none, if the kind is known", link(2, "vrf0", "\\    link/ether 02:00:00:00:00:01\\    vrf table 10") + link(3, "x@if2", "master vrf0"), ""},
		{"a VLAN moved into a namespace is no veth, if the kind is known", link(2, "br0", "") + link(3, "x@if2", "master br0\\    link/ether 02:00:00:00:00:01\\    vlan protocol 802.1Q id 100"), ""},
		{"Antrea names links after Pods", link(2, "antrea-gw0", "") + link(3, "web-12-a1b2c3@if2", "") + link(4, "web-12-xyz123@if2", ""), "antrea-gw0 web-12-a1b2c3"},
		{"the loopback interface is none, whatever its name is", "1: veth0: <LOOPBACK,UP> mtu 65536\n", ""},
		{"but only where Antrea is", link(3, "web-12-a1b2c3@if2", ""), ""},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			var got []string
			for _, l := range mustNew(t, Input{Links: []byte(tt.text)}).Links() {
				if l.PodSide {
					got = append(got, l.Name)
				}
			}
			if s := strings.Join(got, " "); s != tt.pods {
				t.Errorf("got %q, want %q", s, tt.pods)
			}
		})
	}
}

func TestALinkWithTheNodesAddressLeadsOut(t *testing.T) {
	f := mustNew(t, Input{
		Cluster: kubeList(node("n", "10.10.0.3", "172.16.1.0/24"), node("m", "10.10.0.4", "")),
		Links: []byte("2: vethuplink@if2: <UP> mtu 1500\n3: cbr0: <UP> mtu 1500\n4: veth1@if2: <UP> mtu 1500 master cbr0\n" +
			"2: vethuplink    inet 10.10.0.3/28 scope global vethuplink\n3: cbr0    inet 172.16.1.1/24 scope global cbr0\n" +
			// An address that many links hold is a gateway's address for Pods: GKE, ptp.
			"5: veth2@if2: <UP> mtu 1500\n6: veth3@if2: <UP> mtu 1500\n5: veth2    inet 10.10.0.4/32\n6: veth3    inet 10.10.0.4/32\n"),
	})
	for i, want := range map[uint32]bool{2: false, 3: true, 4: true, 5: true, 6: true} {
		if l, ok := f.Link(i); !ok || l.PodSide != want {
			t.Errorf("%s: Pod side %t (%s), want %t", l.Name, l.PodSide, l.PodSideFact, want)
		}
	}
}

func TestNodeMACs(t *testing.T) {
	f := mustNew(t, Input{Links: []byte("1: lo: <LOOPBACK,UP> mtu 65536\\    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n" +
		"2: eth0: <UP> mtu 1460\\    link/ether 42:01:0a:0a:00:03 brd ff:ff:ff:ff:ff:ff\n3: d: <UP> mtu 1\\    link/ether 00:00:00:00:00:00 brd ff:ff:ff:ff:ff:ff\n")})
	for _, tt := range []struct {
		mac  [6]byte
		want bool
		why  string
	}{
		{[6]byte{0x42, 0x01, 0x0a, 0x0a, 0x00, 0x03}, true, "eth0's"},
		{[6]byte{0x42, 0x01, 0x0a, 0x0a, 0x00, 0x04}, false, "nobody's"},
		{[6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, false, "the broadcast address"},
		{[6]byte{}, false, "no address"},
	} {
		if got := f.IsNodeMAC(tt.mac); got != tt.want {
			t.Errorf("%x (%s): %t", tt.mac, tt.why, got)
		}
	}
}

// A file of two nodes must not name one node's interface after the other's.
func TestLinksOfTwoNodes(t *testing.T) {
	for _, tt := range []struct{ rule, text string }{
		{"two names", "2: eth0: <UP> mtu 1\n3: eth1: <UP> mtu 1\n2: ens4: <UP> mtu 1\n"},
		{"one name, two hardware addresses", "2: eth0: <UP> mtu 1\\    link/ether 02:00:00:00:00:01\n3: eth1: <UP> mtu 1\n2: eth0: <UP> mtu 1\\    link/ether 02:00:00:00:00:02\n"},
		{"one name, two hardware addresses, on two lines", "2: eth0: <UP> mtu 1\n    link/ether 02:00:00:00:00:01\n3: eth1: <UP> mtu 1\n2: eth0: <UP> mtu 1\n    link/ether 02:00:00:00:00:02\n"},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			f := mustNew(t, Input{Links: []byte(tt.text)})
			if l, ok := f.Link(2); ok {
				t.Errorf("index 2 is %s", l.Name)
			}
			if l, ok := f.Link(3); !ok || l.Name != "eth1" {
				t.Errorf("index 3 is %q, %t", l.Name, ok)
			}
			if w := warning(t, f, "links-ambiguous"); !strings.Contains(w.Text, "index 2 ") {
				t.Errorf("warning %q", w.Text)
			}
		})
	}
}

func TestLinkFileErrors(t *testing.T) {
	for _, tt := range []struct{ rule, text, want string }{
		{"an empty file", "", "no network interface in it"},
		{"ip -br link, which has no index", "lo               UNKNOWN        00:00:00:00:00:00 <LOOPBACK,UP,LOWER_UP> \n", "no network interface in it"},
		{"ip -j link", `[{"ifindex":1,"ifname":"lo"}]`, "JSON, not ip's text"},
		{"an index of zero", "0: eth0: <UP> mtu 1\n", "no network interface in it"},
		{"an index beyond an int", "2147483648: eth0: <UP> mtu 1\n", "no network interface in it"},
		{"odd UTF-16", "\xff\xfe2", "UTF-16"},
	} {
		_, err := New(Input{Links: []byte(tt.text), LinksName: "l.txt"})
		if err == nil || !strings.HasPrefix(err.Error(), "read links file l.txt: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.rule, err, tt.want)
			continue
		}
		if tt.want != "UTF-16" && !strings.Contains(err.Error(), "ip -o link") {
			t.Errorf("%s: the error does not name the command: %v", tt.rule, err)
		}
	}
	if _, err := New(Input{Links: []byte{}, LinksName: "a\x1b[31m.txt"}); err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("the file's name is not quoted: %q", err)
	}
}

func TestSharedLinkListings(t *testing.T) {
	text := append(shared(t, "ip-o-link.txt"), shared(t, "ip-o-addr.txt")...)
	f := mustNew(t, Input{PodCIDRs: prefixes("10.48.0.0/14"), Links: text})
	var got []string
	for _, l := range f.Links() {
		got = append(got, linkWord(l))
	}
	want := []string{
		"1 lo type=loopback mtu=65536 loopback",
		"2 gke0b335c00e99 peer=if2 type=ether mtu=1500 mac=6a165f82aff8 podside",
		"3 gke5edb4f4d5d2 peer=if2 type=ether mtu=1500 mac=2aef2d9403ab podside",
		"4 eth0 peer=if2 type=ether mtu=1500 mac=7ea39f7989f7",
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
	for a, want := range map[string]string{"10.48.0.1": "node", "10.128.0.10": "node", "10.48.0.5": "pod, range", "fe80::6816:5fff:fe82:aff8": "node"} {
		if got := roleWord(f.Role(addr(a))); got != want {
			t.Errorf("%s is %q, want %q", a, got, want)
		}
	}
}
