package cluster

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// checkFacts tests what holds of all facts, however hostile what they were made of.
func checkFacts(t *testing.T, f *Facts) {
	t.Helper()
	for a, r := range f.exact {
		if !r.Exact || r.Kind == RoleUnknown || r.Kind == RoleOther || r.Fact() == "" {
			t.Errorf("exact role of %s: %+v", a, r)
		}
		if r.Kind == RoleNode != slices.Contains(f.nodeAddrs, a) {
			t.Errorf("%s is %s, and in NodeAddrs: %t", a, r.Kind, r.Kind != RoleNode)
		}
	}
	texts := []string{f.Role(wire.AddrFrom4([4]byte{10, 4, 0, 1})).Fact()}
	for _, w := range f.Warnings() {
		texts = append(texts, w.Text)
	}
	for _, l := range f.Links() {
		texts = append(texts, l.PodSideFact)
	}
	for _, r := range f.exact {
		texts = append(texts, r.Fact())
	}
	for _, s := range texts {
		checkText(t, s)
	}
	for _, p := range f.PodPrefixes() {
		if r := f.Role(wire.AddrFrom(p.Addr().Next().Next())); p.Contains(p.Addr().Next().Next()) && r.Fact() == "" {
			t.Errorf("nothing is said of an address in %s", p)
		}
	}
}

// checkText tests that a sentence of ours cannot act on a terminal.
func checkText(t *testing.T, s string) {
	t.Helper()
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
		t.Errorf("control characters in %q", s)
	}
}

func FuzzCluster(f *testing.F) {
	f.Add([]byte(kubeList(node("n", "10.10.0.3", "10.4.0.0/24"), pod("d/a", "10.4.0.7", "n", "10.10.0.3", "Running"), service("d/s", "10.96.0.9"), agent("ip-masq-agent-1", "n", "10.10.0.3", "Running", "True"))))
	f.Add([]byte(`{"items":[{"metadata":{"name":"a"},"status":{"podIP":"10.4.0.7"}}],"kind":"PodList"}`))
	f.Add([]byte(`[{"kind":"Pod","metadata":{"name":"\u001b[2J"},"status":{"podIP":"\n","podIPs":[{"ip":"::1"}]}}]`))
	f.Add([]byte("kind: Node\nmetadata: {name: a}\n--- # x\nkind: Pod\nmetadata: {name: b}\nstatus: {podIP: 10.4.0.7}\n"))
	f.Add([]byte(`{"kind":"Node","metadata":{"name":"a"},"spec":{"podCIDR":"::/0","podCIDRs":["10.4.0.9/0"]}}{"kind":"Node","metadata":{"name":"a"}}`))
	f.Add([]byte("\xff\xfe{\x00}\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		in := Input{PodCIDRs: prefixes("10.4.0.0/14"), NodeIPs: addrs("10.10.0.3"), Cluster: text, ClusterName: "c.json"}
		facts, err := New(in)
		if err != nil {
			checkText(t, err.Error())
			return
		}
		checkFacts(t, facts)
		if again, err := New(in); err != nil || !slices.EqualFunc(facts.Warnings(), again.Warnings(), func(a, b Warning) bool { return a.Text == b.Text }) {
			t.Errorf("a second reading differs: %v", err)
		}
		// What was read once is read again inside a longer file.
		if twice, err := New(Input{PodCIDRs: in.PodCIDRs, NodeIPs: in.NodeIPs, Cluster: append(bytes.Clone(text), kubeList(node("zz-more", "192.0.2.77", ""))...)}); err == nil {
			checkFacts(t, twice)
		}
	})
}

func FuzzLinks(f *testing.F) {
	f.Add([]byte("1: lo: <LOOPBACK,UP> mtu 65536 qdisc noqueue\\    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n2: veth1@if3: <UP> mtu 1500 master cbr0\\    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n"))
	f.Add([]byte("2: eth0: <UP> mtu 1500\n    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n    veth\n    inet 10.10.0.3/28 scope global eth0\n"))
	f.Add([]byte("2: eth0    inet6 fe80::1/64 scope link\\ valid_lft forever\n5: kube-ipvs0    inet 10.96.0.1/32\n2: \x1b[2J: <UP> mtu 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		facts, err := New(Input{PodCIDRs: prefixes("10.4.0.0/14"), Links: text, LinksName: "l.txt"})
		if err != nil {
			checkText(t, err.Error())
			return
		}
		checkFacts(t, facts)
		if !facts.HasLinks() {
			t.Error("no links, and no error")
		}
		for _, l := range facts.Links() {
			if l.Index == 0 || l.Name == "" || strings.ContainsAny(l.Name, " \t\n") {
				t.Errorf("link %+v", l)
			}
			if l.PodSide != (l.PodSideFact != "") || l.PodSide && l.Loopback || !l.HasMAC && l.MAC != [6]byte{} {
				t.Errorf("link %+v", l)
			}
			if got, ok := facts.Link(l.Index); ok && got.Index != l.Index {
				t.Errorf("Link(%d) has index %d", l.Index, got.Index)
			}
		}
	})
}
