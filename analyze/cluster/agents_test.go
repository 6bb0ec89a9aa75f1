package cluster

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestAgentWarnings(t *testing.T) {
	a, b := node("a", "10.10.0.3", "172.16.1.0/24"), node("b", "10.10.0.4", "172.16.2.0/24")
	windows := merged(node("w", "10.10.0.5", ""), obj{"status": obj{"nodeInfo": obj{"operatingSystem": "windows"}}})
	readyA, readyB := agent("ip-masq-agent-a1", "a", "10.10.0.3", "Running", "True"), agent("ip-masq-agent-b1", "b", "10.10.0.4", "Running", "True")
	system := func(name, node string, more ...obj) obj {
		return pod("kube-system/"+name, "10.10.0.3", node, "10.10.0.3", "Running", append([]obj{{"status": obj{"conditions": []obj{{"type": "Ready", "status": "True"}}}}}, more...)...)
	}
	app := pod("d/a", "172.16.1.7", "a", "10.10.0.3", "Running")

	for _, tt := range []struct {
		rule  string
		items []obj
		code  string   // "" for no warning
		names []string // the nodes that are named
		says  []string
	}{
		{"a ready agent on each node: nothing to say", []obj{a, b, readyA, readyB}, "", nil, nil},
		{"a node without an agent is named", []obj{a, b, readyA}, "agent-not-ready", []string{"b"}, []string{"1 node without a ready ip-masq-agent Pod: b"}},
		{"a node whose agent is not ready is named", []obj{a, b, readyA, agent("ip-masq-agent-b1", "b", "10.10.0.4", "Running", "False")}, "agent-not-ready", []string{"b"}, nil},
		{"a node whose agent is pending is named", []obj{a, b, readyA, agent("ip-masq-agent-b1", "b", "10.10.0.4", "Pending", "True")}, "agent-not-ready", []string{"b"}, nil},
		{"a node whose agent failed is named, unless another one is ready", []obj{a, b, readyA, readyB, agent("ip-masq-agent-b0", "b", "10.10.0.4", "Failed", "False")}, "", nil, nil},
		{"nodes are named in order", []obj{b, a, agent("ip-masq-agent-x", "c", "10.10.0.9", "Running", "True")}, "agent-not-ready", []string{"a", "b"}, []string{"2 nodes without a ready ip-masq-agent Pod: a, b"}},
		{"the agent may be told by its label", []obj{a, system("masq-xyz", "a", obj{"metadata": obj{"labels": obj{"k8s-app": "ip-masq-agent"}}})}, "", nil, nil},
		{"or by its image", []obj{a, system("azure-masq-xyz", "a", obj{"spec": obj{"containers": []obj{{"image": "mcr.example/aks/ip-masq-agent-v2:v0.1"}}}})}, "", nil, nil},
		{"in any namespace", []obj{a, pod("net/ip-masq-agent-1", "10.10.0.3", "a", "10.10.0.3", "Running", obj{"status": obj{"conditions": []obj{{"type": "Ready", "status": "True"}}}})}, "", nil, nil},
		{"no agent at all is said once, not for each node", []obj{a, b, system("kube-proxy", "a"), app}, "no-agent", nil, []string{"no ip-masq-agent Pod in the file: rules may come from the node itself"}},
		{"with Dataplane V2's Pods, how to ask it", []obj{a, system("anetd-x1", "a")}, "no-agent", nil, []string{"Dataplane V2", "exec ds/anetd"}},
		{"with Cilium's Pods, how to ask it", []obj{a, system("cilium-x1", "a", obj{"metadata": obj{"labels": obj{"k8s-app": "cilium"}}})}, "no-agent", nil, []string{"Cilium", "exec ds/cilium"}},
		{"a file without kube-system was perhaps made without -A", []obj{a, app}, "no-agent", nil, []string{"was it made without -A?"}},
		{"a file without Pods says nothing about agents", []obj{a, b}, "", nil, nil},
		{"of a file without nodes, those that Pods are on", []obj{readyA, app, pod("d/b", "172.16.2.7", "b", "10.10.0.4", "Running"), pod("d/c", "", "", "", "Pending")}, "agent-not-ready", []string{"b"}, nil},
		{"the agent does not run on Windows", []obj{a, windows, readyA}, "", nil, nil},
		{"and Windows nodes are not counted", []obj{a, b, windows, readyA}, "agent-not-ready", []string{"b"}, []string{"1 Windows node not counted"}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			f := mustNew(t, Input{Cluster: kubeList(tt.items...)})
			var got []Warning
			for _, w := range f.Warnings() {
				if w.Code == "no-agent" || w.Code == "agent-not-ready" {
					got = append(got, w)
				}
			}
			if tt.code == "" {
				if len(got) > 0 {
					t.Errorf("warned: %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Code != tt.code || !slices.Equal(got[0].Names, tt.names) {
				t.Fatalf("got %+v, want %s %q", got, tt.code, tt.names)
			}
			for _, s := range append(tt.says, tt.names...) {
				if !strings.Contains(got[0].Text, s) {
					t.Errorf("%q does not say %q", got[0].Text, s)
				}
			}
			for _, n := range f.Nodes() {
				if n.AgentReady == slices.Contains(got[0].Names, n.Name) && n.OS != "windows" && tt.code == "agent-not-ready" {
					t.Errorf("node %s: AgentReady is %t", n.Name, n.AgentReady)
				}
			}
		})
	}
}

func TestWarningsNameAFewAndCountTheRest(t *testing.T) {
	items := []obj{agent("ip-masq-agent-x", "ready", "10.10.9.9", "Running", "True"), node("\x1b[2Jevil", "10.10.8.8", "")}
	for i := range 50 {
		items = append(items, node("n"+strconv.Itoa(10+i), "10.10.0."+strconv.Itoa(i), ""))
	}
	w := warning(t, mustNew(t, Input{Cluster: kubeList(items...)}), "agent-not-ready")
	if len(w.Names) != 51 || !slices.IsSorted(w.Names) || w.Names[0] != "\x1b[2Jevil" {
		t.Errorf("names %q", w.Names)
	}
	if !strings.Contains(w.Text, "n20 and 39 more") || !strings.Contains(w.Text, `"\x1b[2Jevil"`) {
		t.Errorf("text %q", w.Text)
	}
}
