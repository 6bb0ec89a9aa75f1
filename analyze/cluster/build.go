package cluster

import (
	"cmp"
	"errors"
	"fmt"
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
		b.claim(a, rankNodeIP, NewRole(RoleNode, "", "", "--node-ip "+a.String()))
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
			b.claim(a.addr, rankNodeAddr, NewRole(RoleNode, n.name, n.name, a.what+" of node "+plain(n.name)))
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
			b.claim(a.addr, rk, NewRole(RoleService, s.name, "", a.what+" of "+plain(s.name)))
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
		b.claim(a, hostRank, NewRole(RoleNode, p.node, p.node, "status.hostIP of "+plain(p.name)))
	}
	for _, a := range p.ips {
		if p.onHost(a) {
			r := NewRole(RoleNode, p.node, p.node, "status.podIP of "+plain(p.name)+", which is on the host's network")
			r.HostNetwork = true
			b.claim(a, netRank, r)
			continue
		}
		b.claim(a, podRank, NewRole(RolePod, p.name, p.node, "status.podIP of "+plain(p.name)+ended))
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
				node = cmp.Or(node, c.role.Name())
			}
		}
	}
	for _, a := range f.addrs {
		r := NewRole(RoleNode, node, node, "ip -o addr: "+plain(a.link))
		rk := rankLink
		if holdsServiceAddr(a.link, wire.AddrFrom(a.addr)) {
			r, rk = NewRole(RoleService, "", "", "ip -o addr: "+plain(a.link)+", which holds addresses of Services"), rankService
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
