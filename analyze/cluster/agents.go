package cluster

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// resolveNodes fills the list of nodes, and warns of those without a ready ip-masq-agent Pod: on them the rules may be
// old, or from somebody else. Nothing is said of a file without Pods.
func (b *builder) resolveNodes(f *Facts) {
	if b.kube == nil {
		return
	}
	ready, agents := map[string]bool{}, 0
	hosts := map[string]bool{}
	kubeSystem := false
	dataplanes := map[string]bool{}
	for i := range b.kube.pods {
		p := &b.kube.pods[i]
		hosts[p.node] = true
		kubeSystem = kubeSystem || p.namespace == "kube-system"
		dataplanes[p.dataplane] = true
		if p.agent {
			agents++
			ready[p.node] = ready[p.node] || p.phase == "Running" && p.ready
			if !p.ended() {
				f.agents = append(f.agents, Agent{Pod: p.name, Node: p.node, Ready: p.phase == "Running" && p.ready, Start: p.start})
			}
		}
	}
	slices.SortFunc(f.agents, func(a, b Agent) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Pod, b.Pod)) })
	for _, n := range b.kube.nodes {
		addrs := make([]netip.Addr, 0, len(n.addrs))
		for _, a := range n.addrs {
			addrs = append(addrs, a.addr)
		}
		f.nodes = append(f.nodes, Node{Name: n.name, OS: n.os, Addrs: addrs, PodCIDRs: n.podCIDRs, AgentReady: ready[n.name]})
	}
	if len(b.kube.pods) == 0 {
		return
	}
	partial := ""
	if !kubeSystem {
		partial = "; the file has no Pod of kube-system either: was it made without -A?"
	}
	if agents == 0 {
		b.warn("no-agent", "no ip-masq-agent Pod in the file: rules may come from the node itself"+dataplaneHint(dataplanes)+partial, nil)
		return
	}
	// Of a file of Pods alone, the nodes are those that the Pods are on.
	var without []string
	windows := 0
	if len(f.nodes) == 0 {
		delete(hosts, "")
		for _, n := range slices.Sorted(maps.Keys(hosts)) {
			if !ready[n] {
				without = append(without, n)
			}
		}
	}
	for _, n := range f.nodes {
		switch {
		case n.AgentReady:
		case n.OS == "windows": // the agent does not run there; the node translates by a fixed list of its own
			windows++
		default:
			without = append(without, n.Name)
		}
	}
	if len(without) > 0 {
		text := count(len(without), "node") + " without a ready ip-masq-agent Pod: " + plainList(without) +
			"; the masquerade rules there may be old or missing"
		if windows > 0 {
			text += " (" + count(windows, "Windows node") + " not counted: the agent does not run there)"
		}
		b.warn("agent-not-ready", text+partial, without)
	}
}

// dataplaneHint says who else may translate.
func dataplaneHint(dataplanes map[string]bool) string {
	switch {
	case dataplanes["anetd"]:
		return "; the anetd Pods are GKE Dataplane V2's, ask it: " +
			"kubectl -n kube-system exec ds/anetd -c cilium-agent -- cilium status | grep Masquerading"
	case dataplanes["cilium"]:
		return "; Cilium's Pods are there, and it may masquerade by itself, ask it: " +
			"kubectl -n kube-system exec ds/cilium -c cilium-agent -- cilium-dbg status | grep Masquerading"
	}
	return ""
}
