package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// A rank orders the exact statements about an address, strongest first. See the package comment.
type rank uint8

const (
	rankNodeIP      rank = iota // --node-ip
	rankNodeAddr                // status.addresses of a Node
	rankHostNetwork             // the address of a hostNetwork Pod
	rankHostIP                  // the address of a Pod's host
	rankPod                     // the address of a Pod that has not ended
	rankService                 // spec.clusterIP and what kube-ipvs0 holds
	rankLink                    // an interface of the node
	rankIngress                 // a Service's externalIPs and load balancer: often a node's own
	rankEndedHost               // what a Pod that has ended says of its host
	rankEndedPod                // the address that a Pod had before it ended
	numRanks
)

// A claim is an exact statement about an address.
type claim struct {
	role Role
	rank rank
}

// A rangeClaim is a statement about a range.
type rangeClaim struct {
	prefix netip.Prefix
	name   string // "--pod-cidr 172.16.0.0/16", "spec.podCIDR of node a"
	node   string
	kind   RoleKind
	flag   bool // stated by the person
}

// A builder gathers statements, then resolves them.
type builder struct {
	ranges   []rangeClaim
	claims   map[wire.Addr][]claim
	kube     *kubeFile
	links    *linkFile
	given    []Given
	warnings []Warning
}

func (b *builder) warn(code, text string, names []string) {
	b.warnings = append(b.warnings, Warning{Code: code, Text: text, Names: names})
}

func (b *builder) claim(a netip.Addr, rk rank, r Role) {
	if a = a.WithZone(""); !a.IsValid() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() {
		return // no one node's and no Pod's
	}
	if b.claims == nil {
		b.claims = map[wire.Addr][]claim{}
	}
	r.Exact = true
	w := wire.AddrFrom(a)
	b.claims[w] = append(b.claims[w], claim{role: r, rank: rk})
}

// flags takes the ranges and addresses that the person states.
func (b *builder) flags(in Input) error {
	var errs []error
	var unaligned []string
	for _, g := range []struct {
		flag     string
		prefixes []netip.Prefix
		kind     RoleKind
	}{
		{"--pod-cidr", in.PodCIDRs, RolePod},
		{"--service-cidr", in.ServiceCIDRs, RoleService},
		{"--node-cidr", in.NodeCIDRs, RoleNode},
	} {
		for i, p := range g.prefixes {
			q, ok := unmapPrefix(p)
			if !ok {
				errs = append(errs, fmt.Errorf("%s: value %d is not a range such as 10.4.0.0/14", g.flag, i+1))
				continue
			}
			if q != q.Masked() {
				unaligned = append(unaligned, q.String())
				q = q.Masked()
			}
			b.given = append(b.given, Given{g.flag, q.String()})
			b.ranges = append(b.ranges, rangeClaim{q, g.flag + " " + q.String(), "", g.kind, true})
		}
	}
	if len(unaligned) > 0 {
		b.warn("range-not-aligned", "bits are set behind the length of "+list(unaligned)+": read as the range that holds the address", unaligned)
	}
	for i, a := range in.NodeIPs {
		if a = a.WithZone("").Unmap(); !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
			errs = append(errs, fmt.Errorf("--node-ip: value %d is not an address that a node can have", i+1))
			continue
		}
		b.given = append(b.given, Given{"--node-ip", a.String()})
		b.claim(a, rankNodeIP, Role{Kind: RoleNode, Fact: "--node-ip " + a.String()})
	}
	return errors.Join(errs...)
}

// unmapPrefix turns a range of IPv4-mapped IPv6 addresses into the IPv4 range that it is.
func unmapPrefix(p netip.Prefix) (netip.Prefix, bool) {
	if p.IsValid() && p.Addr().Is4In6() {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96) // invalid where it is more than IPv4
	}
	return p, p.IsValid()
}

// cluster takes the cluster file's statements.
func (b *builder) cluster(in Input) error {
	if in.Cluster == nil {
		return nil
	}
	name := cmp.Or(in.ClusterName, "--cluster")
	f, err := readCluster(in.Cluster)
	if err != nil {
		return fmt.Errorf("read cluster file %s: %w", plain(name), err)
	}
	f.dedupe()
	b.kube = f
	value := name + ": " + count(len(f.nodes), "node") + ", " + count(len(f.pods), "Pod")
	if n := len(f.services); n > 0 {
		value += ", " + count(n, "Service")
	}
	if f.others > 0 {
		value += ", " + count(f.others, "other object")
	}
	b.given = append(b.given, Given{"--cluster", value})

	for i := range f.nodes {
		n := &f.nodes[i]
		for _, a := range n.addrs {
			b.claim(a.addr, rankNodeAddr, Role{Kind: RoleNode, Name: n.name, Node: n.name, Fact: a.what + " of node " + plain(n.name)})
		}
		for _, p := range n.podCIDRs {
			b.ranges = append(b.ranges, rangeClaim{p, "spec.podCIDR of node " + plain(n.name), n.name, RolePod, false})
		}
	}
	for i := range f.pods {
		b.pod(&f.pods[i])
	}
	for i := range f.services {
		s := &f.services[i]
		for _, a := range s.addrs {
			rk := rankIngress
			if strings.HasPrefix(a.what, "spec.clusterIP") {
				rk = rankService
			}
			b.claim(a.addr, rk, Role{Kind: RoleService, Name: s.name, Fact: a.what + " of " + plain(s.name)})
		}
	}
	if len(f.bad) > 0 {
		slices.Sort(f.bad)
		f.bad = slices.Compact(f.bad)
		b.warn("address-not-read", "not an address, so not used: "+list(f.bad), f.bad)
	}
	return nil
}

// pod takes a Pod's statements: about its own address, and about its host's.
func (b *builder) pod(p *kubePod) {
	ended := ""
	podRank, hostRank, netRank := rankPod, rankHostIP, rankHostNetwork
	if p.ended() {
		ended = " (" + p.phase + ": another Pod may have the address by now)"
		podRank, hostRank, netRank = rankEndedPod, rankEndedHost, rankEndedHost
	}
	for _, a := range p.hostIPs {
		b.claim(a, hostRank, Role{Kind: RoleNode, Name: p.node, Node: p.node, Fact: "status.hostIP of " + plain(p.name)})
	}
	for _, a := range p.ips {
		if p.onHost(a) {
			b.claim(a, netRank, Role{
				Kind: RoleNode, Name: p.node, Node: p.node, HostNetwork: true,
				Fact: "status.podIP of " + plain(p.name) + ", which is on the host's network",
			})
			continue
		}
		b.claim(a, podRank, Role{Kind: RolePod, Name: p.name, Node: p.node, Fact: "status.podIP of " + plain(p.name) + ended})
	}
}

// onHost tells whether an address of the Pod is its host's.
func (p *kubePod) onHost(a netip.Addr) bool { return p.hostNetwork || slices.Contains(p.hostIPs, a) }

// ended tells whether the Pod's containers have all ended: its address is then free for another Pod.
func (p *kubePod) ended() bool { return p.phase == "Succeeded" || p.phase == "Failed" }

// compare orders Pods by how likely it is that an address is theirs now: running before going before not yet running
// before ended, then the one that started last.
func (p *kubePod) compare(q *kubePod) int {
	state := func(p *kubePod) int {
		switch {
		case p.ended():
			return 3
		case p.phase == "Running" && !p.deleting:
			return 0
		case p.phase == "Running":
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(cmp.Compare(state(p), state(q)), q.start.Compare(p.start), cmp.Compare(p.name, q.name), cmp.Compare(p.node, q.node))
}

// dedupe sorts nodes and Services by name and Pods by preference, and drops objects that the file holds twice: it may be
// two listings in a row. Of a Pod that is listed twice both stay where their addresses differ.
func (f *kubeFile) dedupe() {
	slices.SortStableFunc(f.nodes, func(a, b kubeNode) int { return cmp.Compare(a.name, b.name) })
	var merged []kubeNode
	var addrs map[netip.Addr]bool // of the last of merged
	var cidrs map[netip.Prefix]bool
	for _, n := range f.nodes {
		if len(merged) == 0 || merged[len(merged)-1].name != n.name {
			merged = append(merged, kubeNode{name: n.name})
			addrs, cidrs = map[netip.Addr]bool{}, map[netip.Prefix]bool{}
		}
		m := &merged[len(merged)-1]
		m.os = cmp.Or(n.os, m.os)
		for _, a := range n.addrs {
			if !addrs[a.addr] {
				addrs[a.addr] = true
				m.addrs = append(m.addrs, a)
			}
		}
		for _, p := range n.podCIDRs {
			if !cidrs[p] {
				cidrs[p] = true
				m.podCIDRs = append(m.podCIDRs, p)
			}
		}
	}
	f.nodes = merged
	slices.SortStableFunc(f.services, func(a, b kubeService) int { return cmp.Compare(a.name, b.name) })
	slices.SortStableFunc(f.pods, func(a, b kubePod) int { return a.compare(&b) })
	type seen struct {
		name, node, ips string
	}
	have := map[seen]bool{}
	f.pods = slices.DeleteFunc(f.pods, func(p kubePod) bool {
		k := seen{p.name, p.node, fmt.Sprint(p.ips)}
		again := have[k]
		have[k] = true
		return again
	})
}

// linkFile takes the statements of the list of interfaces.
func (b *builder) linkFile(in Input) error {
	if in.Links == nil {
		return nil
	}
	name := cmp.Or(in.LinksName, "--links")
	f, err := readLinks(in.Links)
	if err != nil {
		return fmt.Errorf("read links file %s: %w", plain(name), err)
	}
	b.links = f
	value := name + ": " + count(len(f.links), "link")
	if n := len(f.addrs); n == 1 {
		value += ", 1 address"
	} else if n > 1 {
		value += ", " + strconv.Itoa(n) + " addresses"
	}
	b.given = append(b.given, Given{"--links", value})

	// Which node is it? The one that the cluster's facts name for one of its addresses.
	node := ""
	asked := map[netip.Addr]bool{}
	for _, a := range f.addrs {
		if node != "" || asked[a.addr] {
			continue
		}
		asked[a.addr] = true
		for _, c := range b.claims[wire.AddrFrom(a.addr)] {
			if c.rank == rankNodeAddr || c.rank == rankHostIP || c.rank == rankHostNetwork {
				node = cmp.Or(node, c.role.Name)
			}
		}
	}
	for _, a := range f.addrs {
		r := Role{Kind: RoleNode, Name: node, Node: node, Fact: "ip -o addr: " + plain(a.link)}
		rk := rankLink
		if holdsServiceAddr(a.link, wire.AddrFrom(a.addr)) {
			r, rk = Role{Kind: RoleService, Fact: "ip -o addr: " + plain(a.link) + ", which holds addresses of Services"}, rankService
		}
		b.claim(a.addr, rk, r)
	}
	if len(f.ambiguous) > 0 {
		var names []string
		for _, i := range f.ambiguous {
			names = append(names, strconv.FormatUint(uint64(i), 10))
		}
		b.warn("links-ambiguous", "the links file gives interface index "+list(names)+" to different interfaces: it is of more than one "+
			"node or network namespace, and these are not used; make it on the capturing node alone", names)
	}
	return nil
}

// facts resolves everything.
func (b *builder) facts() *Facts {
	f := &Facts{given: b.given, exact: make(map[wire.Addr]Role, len(b.claims)), pods: map[wire.Addr][]Pod{}, hostPods: map[wire.Addr][]string{}}
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
		b.warn("pod-address-reused", "more than one Pod of the file had the same address, and the running one is named: "+list(reused)+
			"; compare their start times with the capture's", addrNames(addrs))
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
			if c.role.Kind == best.Kind && best.Name == "" && c.role.Name != "" {
				fact := best.Fact
				best = c.role // the same, with a name
				best.Fact = fact + ", " + c.role.Fact
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
				conflicts = append(conflicts, w.String()+": "+best.Fact+" against "+c.role.Fact)
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
	r := rangeRole{net: wire.AddrFrom(p.Addr()), role: Role{Kind: claims[0].kind, Fact: claims[0].name, Exact: p.IsSingleIP()}}
	for _, c := range claims[1:] {
		if c.kind != claims[0].kind {
			r.role = Role{Fact: claims[0].name + " and " + c.name + " are the same range: it tells Pods, nodes and Services not apart (--node-ip or --cluster would)"}
			return r
		}
	}
	var nodes []string
	for _, c := range claims {
		if c.node != "" && !slices.Contains(nodes, c.node) && len(nodes) < 2 {
			nodes = append(nodes, c.node)
			r.role.Fact = c.name
		}
	}
	switch len(nodes) {
	case 1:
		r.role.Node = nodes[0]
	case 2:
		r.role.Fact = claims[0].name + " and others"
	}
	if r.role.Kind == RoleNode && !r.role.Exact {
		r.role.Fact = "in the node range: " + r.role.Fact
	}
	hostBits := p.Addr().BitLen() - p.Bits()
	if r.role.Kind == RolePod && hostBits >= 2 {
		r.hasCustom = true
		r.first = next(r.net)
		r.custom = Role{Node: r.role.Node, Fact: "the first address of " + r.role.Fact +
			", by custom the node's own bridge or tunnel: a range does not tell (--node-ip, or ip -o addr in the --links file, would)"}
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
			f.fallback[fam] = Role{Fact: "no " + word + " Pod range is known, so this may be a Pod that no fact names (--pod-cidr would tell)"}
		case !nodeFact[fam] && !listed:
			f.fallback[fam] = Role{Fact: "no " + word + " address of a node is known, so this may be one (--node-ip, --node-cidr or --cluster would tell)"}
		case outside[fam]:
			f.fallback[fam] = Role{Fact: "Pods run outside the known Pod ranges, so this may be one that no fact names (--pod-cidr would tell)"}
		default:
			f.fallback[fam] = Role{Kind: RoleOther, Fact: "in no known range, and no known address"}
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
	if len(unknown) > 0 {
		b.warn("pod-range-unknown", count(len(unknown), "Pod")+" of the file outside every known Pod range (the network plugin does not use "+
			"spec.podCIDR): "+plainList(unknown)+"; give the range with --pod-cidr, else only Pods of the file are recognised", unknown)
	}
	return outside
}
