package cluster

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/srcproof/srcproof/capture/wire"
)

// facts resolves everything.
func (b *builder) facts() *Facts {
	f := &Facts{
		given: b.given, exact: make(map[wire.Addr]Role, len(b.claims)), pods: map[wire.Addr][]Pod{}, hostPods: map[wire.Addr][]string{},
		loopback:  NewRole(RoleUnknown, "", "", "a loopback address: every host has it"),
		multicast: NewRole(RoleUnknown, "", "", "a multicast or broadcast address: no one host's"),
		linkLocal: NewRole(RoleUnknown, "", "", "a link-local address: Pods, nodes and others have such (ip -o addr in the --links file would tell the node's)"),
	}
	b.resolvePods(f)
	b.resolveExact(f)
	b.resolveRanges(f)
	b.resolveLinks(f)
	b.resolveNodes(f)
	b.resolveFallback(f)
	slices.SortStableFunc(b.warnings, func(x, y Warning) int { return cmp.Compare(x.Code, y.Code) })
	f.warnings = b.warnings
	return f
}

// resolvePods fills the tables of Pods by address. The Pods are in the order of preference.
func (b *builder) resolvePods(f *Facts) {
	if b.kube == nil {
		return
	}
	for i := range b.kube.pods {
		p := &b.kube.pods[i]
		for _, a := range p.ips {
			w := wire.AddrFrom(a)
			if p.onHost(a) {
				f.hostPods[w] = append(f.hostPods[w], p.name)
				continue
			}
			f.pods[w] = append(f.pods[w], Pod{Name: p.name, Node: p.node, Phase: p.phase, Start: p.start})
		}
	}
	var reused []string
	var addrs []wire.Addr
	for _, w := range slices.SortedFunc(maps.Keys(f.pods), wire.Addr.Compare) {
		if !isReused(f.pods[w]) {
			continue
		}
		addrs = append(addrs, w)
		var who []string
		for _, p := range f.pods[w] {
			who = append(who, plain(p.Name)+" "+plain(cmp.Or(p.Phase, "without-phase")))
		}
		reused = append(reused, w.String()+" ("+list(who)+")")
	}
	if len(reused) > 0 {
		b.warn("pod-address-reused", "more than one Pod of the file had the same address, and the one that runs or started last is named: "+
			list(reused)+"; compare their start times with the capture's", addrNames(addrs))
	}
	for w := range f.hostPods {
		slices.Sort(f.hostPods[w])
		f.hostPods[w] = slices.Compact(f.hostPods[w])
	}
}

// isReused tells whether Pods of different names are among those of one address.
func isReused(pods []Pod) bool {
	for _, p := range pods[1:] {
		if p.Name != pods[0].Name {
			return true
		}
	}
	return false
}

func addrNames(ws []wire.Addr) []string {
	out := make([]string, len(ws))
	for i, w := range ws {
		out[i] = w.String()
	}
	return out
}

// resolveExact decides what each exactly known address is.
func (b *builder) resolveExact(f *Facts) {
	var conflicts []string
	var conflictAddrs []wire.Addr
	for _, w := range slices.SortedFunc(maps.Keys(b.claims), wire.Addr.Compare) {
		cs := b.claims[w]
		slices.SortStableFunc(cs, func(x, y claim) int { return cmp.Compare(x.rank, y.rank) })
		best := cs[0].role
		for _, c := range cs[1:] {
			if c.role.Kind == best.Kind && best.Name() == "" && c.role.Name() != "" {
				best = c.role.saying(best.Fact() + ", " + c.role.Fact()) // the same, with a name
			}
		}
		best.HostNetwork = best.Kind == RoleNode && len(f.hostPods[w]) > 0
		best.Reused = best.Kind == RolePod && isReused(f.pods[w])
		f.exact[w] = best
		if best.Kind == RoleNode {
			f.nodeAddrs = append(f.nodeAddrs, w)
		}
		for _, c := range cs[1:] {
			if (best.Kind == RoleNode && c.rank == rankPod) || (best.Kind == RolePod && c.rank == rankLink) {
				conflicts = append(conflicts, w.String()+": "+best.Fact()+" against "+c.role.Fact())
				conflictAddrs = append(conflictAddrs, w)
				break
			}
		}
	}
	if len(conflicts) > 0 {
		b.warn("address-conflict", "a Pod's address and a node's at once, taken as the first says: "+list(conflicts)+
			"; was a links file made inside a Pod, or are the facts of different times?", addrNames(conflictAddrs))
	}
	f.nodeFacts = len(f.nodeAddrs) > 0
	f.podFacts = len(f.pods) > 0
}

// resolveRanges builds the range tables.
func (b *builder) resolveRanges(f *Facts) {
	byPrefix := map[netip.Prefix][]rangeClaim{}
	stated := map[RoleKind][]netip.Prefix{}
	for _, r := range b.ranges {
		byPrefix[r.prefix] = append(byPrefix[r.prefix], r)
		stated[r.kind] = append(stated[r.kind], r.prefix)
	}
	f.podPrefixes, f.servicePrefixes, f.nodePrefixes = cover(stated[RolePod]), cover(stated[RoleService]), cover(stated[RoleNode])
	f.podFacts = f.podFacts || len(f.podPrefixes) > 0
	f.nodeFacts = f.nodeFacts || len(f.nodePrefixes) > 0

	for _, p := range slices.SortedFunc(maps.Keys(byPrefix), netip.Prefix.Compare) {
		r := rangeOf(p, byPrefix[p])
		f.ranges[family(r.net)].add(wireBits(p), &r)
	}
	b.warnOverlaps()
}

// rangeOf decides what a range says of which one or more statements were made.
func rangeOf(p netip.Prefix, claims []rangeClaim) rangeRole {
	r := rangeRole{net: wire.AddrFrom(p.Addr())}
	fact := claims[0].name
	for _, c := range claims[1:] {
		if c.kind != claims[0].kind {
			r.role = NewRole(RoleUnknown, "", "", fact+" and "+c.name+" are the same range: it tells Pods, nodes and Services not apart (--node-ip or --cluster would)")
			return r
		}
	}
	var nodes []string
	for _, c := range claims {
		if c.node != "" && !slices.Contains(nodes, c.node) && len(nodes) < 2 {
			nodes = append(nodes, c.node)
			fact = c.name
		}
	}
	node := ""
	switch len(nodes) {
	case 1:
		node = nodes[0]
	case 2:
		fact = claims[0].name + " and others"
	}
	if claims[0].kind == RoleNode && !p.IsSingleIP() {
		fact = "in the node range: " + fact
	}
	r.role = NewRole(claims[0].kind, "", node, fact)
	r.role.Exact = p.IsSingleIP()
	hostBits := p.Addr().BitLen() - p.Bits()
	if r.role.Kind == RolePod && hostBits >= 2 {
		r.hasCustom = true
		r.first = next(r.net)
		r.custom = NewRole(RoleUnknown, "", node, "the first address of "+fact+
			", by custom the node's own bridge or tunnel: a range does not tell (--node-ip, or ip -o addr in the --links file, would)")
	}
	return r
}

// warnOverlaps names stated ranges that overlap ranges of another kind. Only pairs with a stated one are looked at:
// nodes' spec.podCIDRs, of which there may be thousands, are all of one kind.
func (b *builder) warnOverlaps() {
	var pairs, names []string
	for i := range b.ranges {
		if !b.ranges[i].flag {
			continue
		}
		for j := range b.ranges {
			x, y := &b.ranges[i], &b.ranges[j]
			if x.kind == y.kind || y.flag && j < i || !x.prefix.Overlaps(y.prefix) {
				continue
			}
			long, short := x, y
			if long.prefix.Bits() < short.prefix.Bits() {
				long, short = short, long
			}
			switch {
			case long.prefix == short.prefix:
				pairs = append(pairs, long.name+" is "+short.name+", so it says nothing")
			default:
				pairs = append(pairs, long.name+" lies in "+short.name+", and wins there")
			}
			names = append(names, long.prefix.String())
		}
	}
	if len(pairs) > 0 {
		b.warn("ranges-overlap", "ranges of different kinds overlap: "+list(pairs), sorted(names))
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// resolveLinks builds the tables of interfaces.
func (b *builder) resolveLinks(f *Facts) {
	if b.links == nil {
		return
	}
	f.links = b.links.links
	holders := map[netip.Addr][]string{}
	for _, a := range b.links.addrs {
		holders[a.addr] = append(holders[a.addr], a.link)
	}
	owned := map[string]bool{}
	for a, links := range holders {
		for _, c := range b.claims[wire.AddrFrom(a)] {
			owned[links[0]] = owned[links[0]] || c.rank == rankNodeAddr && len(links) == 1
		}
	}
	markPodSide(f.links, owned)
	f.byIndex = make(map[uint32]int, len(f.links))
	f.nodeMACs = make(map[[6]byte]struct{}, len(f.links))
	for i, l := range f.links {
		if _, ambiguous := slices.BinarySearch(b.links.ambiguous, l.Index); !ambiguous {
			f.byIndex[l.Index] = i
		}
		if l.HasMAC && !l.Loopback && l.MAC != [6]byte{} {
			f.nodeMACs[l.MAC] = struct{}{}
		}
	}
}

// resolveFallback decides what is said of addresses that nothing matches, for each family.
func (b *builder) resolveFallback(f *Facts) {
	outside := b.podsOutside(f)
	if !f.podFacts || !f.nodeFacts {
		return // nothing to be other than
	}
	podRange, nodeFact := [2]bool{}, [2]bool{}
	for _, p := range f.podPrefixes {
		podRange[family(wire.AddrFrom(p.Addr()))] = true
	}
	for _, p := range f.nodePrefixes {
		nodeFact[family(wire.AddrFrom(p.Addr()))] = true
	}
	for _, w := range f.nodeAddrs {
		nodeFact[family(w)] = nodeFact[family(w)] || !w.IsLinkLocal()
	}
	// A file that lists nodes with their Pod ranges speaks of both families: one that it does not mention is not in use.
	listed := false
	for _, n := range f.nodes {
		listed = listed || len(n.PodCIDRs) > 0 && len(n.Addrs) > 0
	}
	for fam, word := range [2]string{"IPv4", "IPv6"} {
		switch {
		case !podRange[fam] && !listed:
			f.fallback[fam] = NewRole(RoleUnknown, "", "", "no "+word+" Pod range is known, so this may be a Pod that no fact names (--pod-cidr would tell)")
		case !nodeFact[fam] && !listed:
			f.fallback[fam] = NewRole(RoleUnknown, "", "", "no "+word+" address of a node is known, so this may be one (--node-ip, --node-cidr or --cluster would tell)")
		case outside[fam]:
			f.fallback[fam] = NewRole(RoleUnknown, "", "", "Pods run outside the known Pod ranges, so this may be one that no fact names (--pod-cidr would tell)")
		default:
			f.fallback[fam] = NewRole(RoleOther, "", "", "in no known range, and no known address")
		}
	}
}

// podsOutside warns of Pods that have not ended and whose addresses lie outside the stated ranges, and tells for which
// families Pods lie outside all that is known.
func (b *builder) podsOutside(f *Facts) (outside [2]bool) {
	var stated []netip.Prefix
	statedFam := [2]bool{}
	for _, r := range b.ranges {
		if r.flag && r.kind == RolePod {
			stated = append(stated, r.prefix)
			statedFam[family(wire.AddrFrom(r.prefix.Addr()))] = true
		}
	}
	stated = cover(stated)
	var names, unknown []string
	for _, w := range slices.SortedFunc(maps.Keys(f.pods), wire.Addr.Compare) {
		p := f.pods[w][0]
		if f.exact[w].Kind != RolePod || p.Phase == "Succeeded" || p.Phase == "Failed" {
			continue
		}
		known := contained(f.podPrefixes, w.Netip())
		outside[family(w)] = outside[family(w)] || !known
		switch {
		case statedFam[family(w)] && !contained(stated, w.Netip()):
			names = append(names, p.Name)
		case !known:
			unknown = append(unknown, p.Name)
		}
	}
	names, unknown = sorted(names), sorted(unknown) // a dual-stack Pod is there twice
	if len(names) > 0 {
		b.warn("pod-outside-range", count(len(names), "Pod")+" of the file outside the given --pod-cidr: "+plainList(names)+
			"; is the range another cluster's, or is one missing?", names)
	}
	switch {
	case len(unknown) == 0:
	case len(f.podPrefixes) == 0:
		b.warn("pod-range-unknown", "no Pod range is known (the nodes have no spec.podCIDR, and there is no --pod-cidr): "+
			"only Pods of the file are recognised; give the range with --pod-cidr", nil)
	default:
		b.warn("pod-range-unknown", count(len(unknown), "Pod")+" of the file outside every known Pod range (the network plugin does not use "+
			"spec.podCIDR): "+plainList(unknown)+"; give the range with --pod-cidr, else only Pods of the file are recognised", unknown)
	}
	return outside
}
