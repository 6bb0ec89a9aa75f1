package cluster

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// linksCommand makes the file that --links reads.
const linksCommand = "ip -o link > links.txt; ip -o addr >> links.txt   (on the node, not inside a Pod)"

// Link is one network interface of the node. Names are as the file gives them, not escaped.
type Link struct {
	Name        string
	Master      string // the bridge, bond or VRF that it is part of; "" if none
	Peer        string // what stands behind @: the lower or peer interface, "if2" where that is in another namespace; "" if none
	Type        string // link-layer type behind "link/": "ether", "loopback", "none", "ipip", ...; "" if the file does not say
	Kind        string // "veth", "bridge", "vlan", ...: where `ip -d` or the type says so; "" if not known
	PodSideFact string // why PodSide
	Index       uint32
	MTU         int     // bytes; 0 if the file does not say
	MAC         [6]byte // valid iff HasMAC
	HasMAC      bool
	Loopback    bool
	PodSide     bool // it leads to Pods of this node, and not out of the node
}

// linkAddr is an address of an interface.
type linkAddr struct {
	link string
	addr netip.Addr
}

// linkFile is what the --links file holds.
type linkFile struct {
	links     []Link // by index
	addrs     []linkAddr
	ambiguous []uint32 // indexes that the file gives to different interfaces
}

// isLinkKind tells whether a word is one of the interface kinds that `ip -d link` prints behind the link-layer line
// (iproute2, ip/iplink_*.c).
func isLinkKind(word string) bool {
	switch word {
	case "amt", "bareudp", "batadv", "bond", "bridge", "can", "dsa", "dummy", "erspan", "geneve", "gre", "gretap", "gtp",
		"hsr", "ifb", "ip6erspan", "ip6gre", "ip6gretap", "ip6tnl", "ipip", "ipoib", "ipvlan", "ipvtap", "macsec", "macvlan",
		"macvtap", "netdevsim", "netkit", "nlmon", "openvswitch", "rmnet", "sit", "team", "tun", "vcan", "veth", "virt_wifi",
		"vlan", "vrf", "vti", "vti6", "vxcan", "vxlan", "wireguard", "wwan", "xfrm":
		return true
	}
	return false
}

// readLinks reads what ip printed. Lines that are neither a link nor an address (prompts, statistics) are skipped: the
// file is often pasted from a terminal.
func readLinks(text []byte) (*linkFile, error) {
	text, err := utf8Text(text)
	if err != nil {
		return nil, err
	}
	p := linkParser{byIndex: map[uint32]int{}, bad: map[uint32]bool{}, cur: -1}
	for line := range bytes.Lines(text) {
		p.line(string(bytes.TrimRight(line, "\r\n")))
	}
	if len(p.file.links) == 0 {
		if t := bytes.TrimSpace(text); len(t) > 0 && (t[0] == '[' || t[0] == '{') {
			return nil, fmt.Errorf("JSON, not ip's text; make it with: %s", linksCommand)
		}
		return nil, fmt.Errorf("no network interface in it; make it with: %s", linksCommand)
	}
	f := p.file
	for i := range p.bad {
		f.ambiguous = append(f.ambiguous, i)
	}
	slices.Sort(f.ambiguous)
	slices.SortStableFunc(f.links, func(a, b Link) int { return int(int64(a.Index) - int64(b.Index)) })
	return &f, nil
}

// A linkParser reads ip's text line by line.
type linkParser struct {
	file    linkFile
	byIndex map[uint32]int  // index to place in file.links
	bad     map[uint32]bool // indexes of two interfaces
	cur     int             // the link that indented lines belong to, -1 if none
}

func (p *linkParser) line(s string) {
	if s == "" {
		return
	}
	// In the one-line form (-o) ip writes a backslash where the other form begins a new line.
	head, rest, oneLine := strings.Cut(s, `\`)
	if s[0] != ' ' && s[0] != '\t' {
		p.cur = -1
	}
	if l, ok := parseLinkHead(head); ok {
		p.cur = p.add(l)
		if oneLine {
			p.details(rest)
			p.cur = -1
		}
		return
	}
	if index, name, addr, ok := parseAddrLine(head); ok {
		p.cur = -1
		p.add(Link{Index: index, Name: name})
		p.file.addrs = append(p.file.addrs, linkAddr{link: name, addr: addr})
		return
	}
	if p.cur < 0 {
		return
	}
	l := &p.file.links[p.cur]
	f := strings.Fields(s)
	if len(f) >= 2 && (f[0] == "inet" || f[0] == "inet6") {
		if a, ok := parseIfAddr(f[1]); ok {
			p.file.addrs = append(p.file.addrs, linkAddr{link: l.Name, addr: a})
		}
		return
	}
	p.detail(l, f)
}

// details reads the segments of a one-line link. Only the first two can be the link layer and the kind: an alias, which
// anybody with rights on an interface may set to any text, comes last.
func (p *linkParser) details(rest string) {
	l := &p.file.links[p.cur]
	for range 2 {
		var seg string
		seg, rest, _ = strings.Cut(rest, `\`)
		p.detail(l, strings.Fields(seg))
	}
}

// detail reads the fields of a line below a link's first: "link/ether MAC ..." or the kind. What is known already stays;
// another hardware address under the same index and name is another node's or namespace's interface.
func (p *linkParser) detail(l *Link, f []string) {
	if len(f) == 0 {
		return
	}
	typ, ok := strings.CutPrefix(f[0], "link/")
	var mac [6]byte
	hasMAC := false
	if ok && typ == "ether" && len(f) > 1 {
		mac, hasMAC = parseMAC(f[1])
	}
	switch {
	case hasMAC && l.HasMAC && mac != l.MAC:
		p.bad[l.Index] = true
	case ok && l.Type == "":
		l.Type = typ
		l.MAC, l.HasMAC = mac, hasMAC
		l.Loopback = l.Loopback || typ == "loopback"
		switch typ {
		case "ipip", "sit", "gre":
			l.Kind = typ
		case "gre6":
			l.Kind = "ip6gre"
		case "tunnel6":
			l.Kind = "ip6tnl"
		}
	case isLinkKind(f[0]) && l.Type != "" && (l.Kind == "" || l.Kind == f[0]):
		l.Kind = f[0]
	}
}

// add records a link, or merges it with what is known of its index, and returns its place.
func (p *linkParser) add(l Link) int {
	i, ok := p.byIndex[l.Index]
	if !ok {
		p.file.links = append(p.file.links, l)
		p.byIndex[l.Index] = len(p.file.links) - 1
		return len(p.file.links) - 1
	}
	old := &p.file.links[i]
	if old.Name != l.Name {
		p.bad[l.Index] = true
		p.file.links = append(p.file.links, l)
		p.byIndex[l.Index] = len(p.file.links) - 1 // later lines of this block belong to it
		return len(p.file.links) - 1
	}
	if l.MTU != 0 { // a link's own line, after an address line of the same interface or a repetition
		l.Type, l.Kind, l.MAC, l.HasMAC = old.Type, old.Kind, old.MAC, old.HasMAC
		l.Loopback = l.Loopback || old.Loopback
		*old = l
	}
	return i
}

// parseLinkHead reads "4: eth0@if2: <BROADCAST,UP> mtu 1500 ... master cbr0 ...".
func parseLinkHead(s string) (Link, bool) {
	index, s, ok := cutIndex(s)
	if !ok {
		return Link{}, false
	}
	name, s, ok := strings.Cut(s, ": <")
	if !ok || name == "" || strings.ContainsAny(name, " \t") {
		return Link{}, false // the kernel allows no white space in a name (net/core/dev.c, dev_valid_name)
	}
	flags, s, ok := strings.Cut(s, ">")
	if !ok {
		return Link{}, false
	}
	l := Link{Index: index}
	l.Name, l.Peer = cutPeer(name)
	for flag := range strings.SplitSeq(flags, ",") {
		l.Loopback = l.Loopback || flag == "LOOPBACK"
	}
	f := strings.Fields(s)
	for i := range len(f) - 1 {
		switch f[i] {
		case "mtu":
			l.MTU, _ = strconv.Atoi(f[i+1])
		case "master":
			l.Master = f[i+1]
		}
	}
	return l, true
}

// parseAddrLine reads "2: cbr0    inet 10.4.0.1/24 scope global cbr0" of `ip -o addr`.
func parseAddrLine(s string) (index uint32, name string, addr netip.Addr, ok bool) {
	index, s, ok = cutIndex(s)
	f := strings.Fields(s)
	if !ok || len(f) < 3 || f[1] != "inet" && f[1] != "inet6" {
		return 0, "", netip.Addr{}, false
	}
	name, _ = cutPeer(f[0])
	addr, ok = parseIfAddr(f[2])
	return index, name, addr, ok
}

// parseIfAddr reads "10.4.0.1/24", or "10.4.0.1" of a point-to-point interface.
func parseIfAddr(s string) (netip.Addr, bool) {
	s, _, _ = strings.Cut(s, "/")
	a, err := netip.ParseAddr(s)
	return a.WithZone(""), err == nil
}

// parseMAC reads "7e:a3:9f:79:89:f7".
func parseMAC(s string) (mac [6]byte, ok bool) {
	if len(s) != 17 {
		return mac, false
	}
	for i := range mac {
		b, err := strconv.ParseUint(s[3*i:3*i+2], 16, 8)
		if err != nil || i < 5 && s[3*i+2] != ':' {
			return [6]byte{}, false
		}
		mac[i] = byte(b)
	}
	return mac, true
}

// cutIndex cuts "12: " off a line.
func cutIndex(s string) (uint32, string, bool) {
	num, rest, ok := strings.Cut(s, ": ")
	n, err := strconv.ParseUint(strings.TrimLeft(num, " \t"), 10, 31) // an interface index is a positive int
	return uint32(n), rest, ok && err == nil && n > 0
}

// cutPeer cuts the peer off "eth0@if2". "@NONE" is a tunnel bound to no interface.
func cutPeer(s string) (name, peer string) {
	i := strings.LastIndexByte(s, '@')
	if i <= 0 {
		return s, ""
	}
	name, peer = s[:i], s[i+1:]
	if peer == "NONE" {
		peer = ""
	}
	return name, peer
}

// PodSideName tells whether an interface name is one that container networks give to the node's end of a Pod's link, or
// to the bridge that holds those, and which. It is for captures whose interfaces have names but no --links file.
func PodSideName(name string) (fact string, ok bool) {
	switch name {
	case "cbr0", "cni0", "docker0", "kube-bridge", "antrea-gw0":
		return "the name " + name + " is a Pod bridge's or gateway's", true
	case "lxc_health":
		return "the name lxc_health is Cilium's", true
	}
	// The prefixes, with the least number of hexadecimal digits that must follow to the name's end (0: anything follows).
	// The digits keep lxcbr0, br-ex, br-int and vlan100 out.
	for _, p := range [...]struct {
		prefix, whose string
		hex           int
	}{
		{"gke", "GKE's Pod links", 6},
		{"veth", "container links", 0},
		{"cali", "Calico's Pod links", 6},
		{"lxc", "Cilium's Pod links", 6},
		{"eni", "the AWS VPC CNI's Pod links", 6},
		{"vlan", "the AWS VPC CNI's Pod links with security groups", 11},
		{"azv", "Azure CNI's Pod links", 6},
		{"br-", "Docker's bridges", 12},
	} {
		if rest, ok := strings.CutPrefix(name, p.prefix); ok && (p.hex == 0 && rest != "" || p.hex > 0 && isHex(rest, p.hex)) {
			return "names that begin with " + p.prefix + " are " + p.whose, true
		}
	}
	return "", false
}

func isHex(s string, least int) bool {
	if len(s) < least {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// markPodSide decides which links lead to Pods. owned names the links that alone hold an address by which the cluster
// knows a node: such a link leads out of the node whatever its name is.
func markPodSide(links []Link, owned map[string]bool) {
	members := map[string][]*Link{} // by master
	antrea := false
	for i := range links {
		l := &links[i]
		l.PodSideFact, l.PodSide = PodSideName(l.Name)
		antrea = antrea || l.Name == "antrea-gw0"
		if l.Master != "" {
			members[l.Master] = append(members[l.Master], l)
		}
	}
	for i := range links {
		l := &links[i]
		// Antrea names a Pod's link after the Pod: "<pod>-<6 hex digits>".
		if n := len(l.Name); !l.PodSide && antrea && n > 7 && l.Name[n-7] == '-' && isHex(l.Name[n-6:], 6) && isVeth(l) {
			l.PodSideFact, l.PodSide = "Antrea's Pod links are named after the Pod", true
		}
	}
	for i := range links {
		b := &links[i]
		in := members[b.Name]
		if b.Kind != "" && b.Kind != "bridge" {
			continue // a VRF or a bond is no place where Pods are
		}
		veths := 0
		for _, l := range in {
			if isVeth(l) {
				veths++
			}
		}
		if veths == 0 {
			continue
		}
		if !b.PodSide && veths == len(in) {
			b.PodSideFact, b.PodSide = "a bridge that holds nothing but "+count(veths, "veth link"), true
		}
		for _, l := range in {
			if !l.PodSide && isVeth(l) {
				l.PodSideFact, l.PodSide = "a veth link whose master is the bridge "+plain(b.Name), true
			}
		}
	}
	for i := range links {
		l := &links[i]
		if l.PodSide && owned[l.Name] || l.Loopback {
			l.PodSideFact, l.PodSide = "", false
		}
	}
}

// isVeth tells whether a link is one end of a veth pair: -d says so, or its name does, or its peer is in another
// network namespace ("@if2") and it is not said to be of another kind (a VLAN or macvlan moved into a namespace has its
// lower device elsewhere too, and the same form).
func isVeth(l *Link) bool {
	if l.Kind != "" {
		return l.Kind == "veth"
	}
	if _, ok := PodSideName(l.Name); ok {
		return l.Master != "" || l.Peer != ""
	}
	n, ok := strings.CutPrefix(l.Peer, "if")
	_, err := strconv.ParseUint(n, 10, 31)
	return ok && err == nil
}

// Interfaces that hold addresses of Services rather than the node's own: kube-proxy's in IPVS mode, and that of
// NodeLocal DNSCache, which answers for the DNS Service's address beside its own link-local one.
func holdsServiceAddr(link string, a wire.Addr) bool {
	return link == "kube-ipvs0" || link == "nodelocaldns" && !a.IsLinkLocal()
}
