package cluster

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// obj is a JSON object in the making.
type obj = map[string]any

// node makes a Node with an InternalIP and a spec.podCIDR; either may be "".
func node(name, ip, podCIDR string) obj {
	n := obj{"apiVersion": "v1", "kind": "Node", "metadata": obj{"name": name}, "spec": obj{}, "status": obj{}}
	if ip != "" {
		n["status"] = obj{"addresses": []obj{{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": name}}}
	}
	if podCIDR != "" {
		n["spec"] = obj{"podCIDR": podCIDR, "podCIDRs": []string{podCIDR}}
	}
	return n
}

// pod makes a Pod of namespace/name with an address on a node with an address; more is merged into it.
func pod(name, ip, node, hostIP, phase string, more ...obj) obj {
	ns, name, _ := strings.Cut(name, "/")
	p := obj{
		"apiVersion": "v1", "kind": "Pod", "metadata": obj{"namespace": ns, "name": name},
		"spec":   obj{"nodeName": node, "containers": []obj{{"name": "main", "image": "registry.example/app:1"}}},
		"status": obj{"phase": phase, "podIP": ip, "podIPs": []obj{{"ip": ip}}, "hostIP": hostIP},
	}
	for _, m := range more {
		merge(p, m)
	}
	return p
}

// agent makes an ip-masq-agent Pod as its DaemonSet does.
func agent(name, node, hostIP, phase, ready string) obj {
	return pod("kube-system/"+name, hostIP, node, hostIP, phase,
		obj{"spec": obj{"hostNetwork": true}, "status": obj{"conditions": []obj{{"type": "Ready", "status": ready}}}})
}

func service(name, clusterIP string, more ...obj) obj {
	ns, name, _ := strings.Cut(name, "/")
	s := obj{
		"apiVersion": "v1", "kind": "Service", "metadata": obj{"namespace": ns, "name": name},
		"spec": obj{"clusterIP": clusterIP, "clusterIPs": []string{clusterIP}}, "status": obj{"loadBalancer": obj{}},
	}
	for _, m := range more {
		merge(s, m)
	}
	return s
}

func merge(into, from obj) {
	for k, v := range from {
		a, ok := into[k].(obj)
		b, ok2 := v.(obj)
		if ok && ok2 {
			merge(a, b)
			continue
		}
		into[k] = v
	}
}

// kubeList prints objects as kubectl does.
func kubeList(items ...obj) []byte {
	b, err := json.MarshalIndent(obj{"apiVersion": "v1", "items": items, "kind": "List", "metadata": obj{"resourceVersion": ""}}, "", "    ")
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
}

func prefixes(s string) []netip.Prefix {
	var out []netip.Prefix
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParsePrefix(f))
	}
	return out
}

func addrs(s string) []netip.Addr {
	var out []netip.Addr
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParseAddr(f))
	}
	return out
}

func mustNew(t testing.TB, in Input) *Facts {
	t.Helper()
	f, err := New(in)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return f
}

// roleWord is a role as a table row writes it: "pod default/a on n1", "node n1, range", "pod x/y, reused".
func roleWord(r Role) string {
	s := r.Kind.String()
	if r.Name() != "" {
		s += " " + r.Name()
	}
	if r.Node() != "" && r.Node() != r.Name() {
		s += " on " + r.Node()
	}
	if !r.Exact && r.Kind != RoleUnknown && r.Kind != RoleOther {
		s += ", range"
	}
	if r.HostNetwork {
		s += ", hostNetwork"
	}
	if r.Reused {
		s += ", reused"
	}
	return s
}

func warningCodes(f *Facts) string {
	var codes []string
	for _, w := range f.Warnings() {
		codes = append(codes, w.Code)
	}
	return strings.Join(codes, " ")
}

func warning(t testing.TB, f *Facts, code string) Warning {
	t.Helper()
	ws := f.Warnings()
	i := slices.IndexFunc(ws, func(w Warning) bool { return w.Code == code })
	if i < 0 {
		t.Fatalf("no warning %q, but %q", code, warningCodes(f))
	}
	return ws[i]
}

// shared returns a file of the shared fixtures, or skips.
func shared(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "fixtures", name))
	if err != nil {
		t.Skipf("not checked against a real node's listing: ../shared/fixtures/%s is not there", name)
	}
	return b
}

func addr(s string) wire.Addr { return wire.MustAddr(s) }
