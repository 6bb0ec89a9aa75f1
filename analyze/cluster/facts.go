package cluster

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/srcproof/srcproof/analyze/cluster/netfilter"
	"github.com/srcproof/srcproof/capture/wire"
)

// Input is everything that New can be told. The zero Input gives a Facts that answers "unknown".
type Input struct {
	PodCIDRs     []netip.Prefix // --pod-cidr
	ServiceCIDRs []netip.Prefix // --service-cidr
	NodeCIDRs    []netip.Prefix // --node-cidr
	NodeIPs      []netip.Addr   // --node-ip

	// Cluster is what `kubectl get nodes,pods -A -o json` printed (also YAML, single objects, several documents, Services
	// beside them); nil if not given. ClusterName is its name in messages. Limiting its size is the caller's part.
	Cluster     []byte
	ClusterName string

	// Links is what `ip -o link` printed on the node (also `ip link`, `ip -d link`, `ip addr`, in any mixture); nil if not
	// given. LinksName is its name in messages.
	Links     []byte
	LinksName string

	// MasqConfig is the masquerade configuration (ReadMasqConfig) and AgentManifest the DaemonSet of the agent that reads it
	// (ReadAgentManifest); nil if not given. Agent is --agent. NoDefaultSNAT is --disable-default-snat.
	MasqConfig, AgentManifest         []byte
	MasqConfigName, AgentManifestName string
	Agent                             MasqAgent
	NoDefaultSNAT                     bool

	// Conntrack is what was printed of the node's connection table (ReadConntrack); nil if not given.
	Conntrack     []byte
	ConntrackName string

	// Rules is what was printed of the node's installed rules, one text for each file.
	Rules []RulesText
}

// RulesText is one listing of a node's rules.
type RulesText struct {
	Flag, Name string // "--iptables" and the file's name, for messages
	Text       []byte
}

// RoleKind is what an address is in the cluster.
type RoleKind uint8

// The roles. RoleUnknown is the zero value: the facts do not say.
const (
	RoleUnknown RoleKind = iota
	RolePod
	RoleNode
	RoleService
	RoleOther // none of the cluster's
)

// RoleKindOf returns the role of a word; ok is false if it is none.
func RoleKindOf(word string) (k RoleKind, ok bool) {
	for k := RoleUnknown; k <= RoleOther; k++ {
		if k.String() == word {
			return k, true
		}
	}
	return RoleUnknown, false
}

// String returns the role's word in output and JSON.
func (k RoleKind) String() string {
	switch k {
	case RolePod:
		return "pod"
	case RoleNode:
		return "node"
	case RoleService:
		return "service"
	case RoleOther:
		return "other"
	case RoleUnknown:
	}
	return "unknown"
}

// Role is what an address is, and what says so. It is small, for there are several in each request: the words are held once for each
// fact. The zero Role is of an address of which nothing is known.
type Role struct {
	words       *roleWords // nil if there are none
	Kind        RoleKind
	Exact       bool // an exact address says it, not a range
	HostNetwork bool // a node's address that Pods with hostNetwork use as theirs: see HostNetworkPods
	Reused      bool // more than one Pod of the file had this address: see PodsAt
}

type roleWords struct{ name, node, fact string }

// NewRole returns a role with its words, see Name, Node and Fact.
func NewRole(kind RoleKind, name, node, fact string) Role {
	r := Role{Kind: kind}
	if name != "" || node != "" || fact != "" {
		r.words = &roleWords{name, node, fact}
	}
	return r
}

func (r Role) all() roleWords {
	if r.words == nil {
		return roleWords{}
	}
	return *r.words
}

// Equal tells whether two roles are the same, words included; == would ask whether one fact says them.
func (r Role) Equal(o Role) bool {
	same := r.all() == o.all()
	r.words, o.words = nil, nil
	return same && r == o
}

// Name is "namespace/name" of a Pod or Service, or a node's name; as the file gives it, not escaped; "" if none.
func (r Role) Name() string { return r.all().name }

// Node is the name of the node that hosts or owns it, as the file gives it; "" if not known.
func (r Role) Node() string { return r.all().node }

// Fact is what says so, for people; of RoleUnknown: why not, and what would settle it; "" without facts.
func (r Role) Fact() string { return r.all().fact }

// saying is the role with another fact.
func (r Role) saying(fact string) Role {
	w := r.all()
	r.words = &roleWords{w.name, w.node, fact}
	return r
}

// Node is a node of the cluster file.
type Node struct {
	Name       string         // as the file gives it, not escaped
	OS         string         // status.nodeInfo.operatingSystem: "linux", "windows"; "" if the file does not say
	Addrs      []netip.Addr   // InternalIP and ExternalIP addresses, in the file's order
	PodCIDRs   []netip.Prefix // spec.podCIDR and spec.podCIDRs, in the file's order, without repetition
	AgentReady bool           // a ready ip-masq-agent Pod runs on it, says the file
}

// Pod is a Pod of the cluster file that had an address.
type Pod struct {
	Name  string    // "namespace/name" as the file gives it, not escaped
	Node  string    // spec.nodeName
	Phase string    // status.phase: "Running", "Succeeded", "Failed", "Pending", ...
	Start time.Time // status.startTime; the zero time if the file does not say
}

// Agent is a Pod of the cluster file that looks like ip-masq-agent.
type Agent struct {
	Pod   string    // "namespace/name" as the file gives it, not escaped
	Node  string    // spec.nodeName
	Ready bool      // its phase is Running and its condition Ready is True
	Start time.Time // status.startTime; the zero time if the file does not say
}

// Warning is something about the facts that the person should know. Code is stable, lower case with hyphens.
type Warning struct {
	Code  string
	Text  string   // one sentence or two; at most a few names, then "and N more"; names with unusual characters are quoted
	Names []string // all names or addresses that it is about, sorted, as the file gives them, not escaped
}

// Given is one thing that was given, for the record.
type Given struct {
	Flag  string // "--pod-cidr"
	Value string // a prefix, an address, or a file's name with what was found in it; not escaped
}

// Facts is what is known of the cluster. A nil *Facts knows nothing and may be asked.
type Facts struct {
	exact    map[wire.Addr]Role
	ranges   [2]rangeTable // IPv4, IPv6
	fallback [2]Role       // the answer where nothing matches, by family
	// What is one host's nowhere.
	loopback, multicast, linkLocal Role

	podFacts, nodeFacts bool
	podPrefixes         []netip.Prefix
	servicePrefixes     []netip.Prefix
	nodePrefixes        []netip.Prefix
	nodeAddrs           []wire.Addr
	local               []netip.Addr // --node-ip
	intent              *Intent
	setup               MasqSetup // as far as it was stated, for a configuration that is planned
	rules               *netfilter.Ruleset
	entries             []Entry
	tableName           string
	connections         *Connections
	nodes               []Node
	agents              []Agent
	pods                map[wire.Addr][]Pod
	hostPods            map[wire.Addr][]string

	links    []Link // by index
	byIndex  map[uint32]int
	nodeMACs map[[6]byte]struct{}

	warnings []Warning
	given    []Given
}

// New reads the facts. Its errors name the flag or the file, the place in it, and what to do; all that could be read of
// wrong input is reported at once.
func New(in Input) (*Facts, error) {
	var b builder
	errFlags := b.flags(in)
	errCluster := b.cluster(in)
	errLinks := b.linkFile(in)
	rules, errRules := b.rules(in)
	intent, setup, errIntent := b.masquerade(in, rules)
	entries, known, errConntrack := b.conntrack(in)
	if err := errors.Join(errFlags, errCluster, errLinks, errIntent, errRules, errConntrack); err != nil {
		return nil, err
	}
	f := b.facts()
	f.local, f.intent, f.setup, f.rules = slices.Clone(in.NodeIPs), intent, setup, rules
	f.entries, f.connections, f.tableName = entries, known, in.ConntrackName
	if intent != nil {
		intent.check(f, false)
		f.warnings = append(f.warnings, intent.Warnings...)
	}
	return f, nil
}

// Intent is what the masquerade configuration asks for; nil if none was given.
func (f *Facts) Intent() *Intent {
	if f == nil {
		return nil
	}
	return f.intent
}

// Rules are the node's installed rules; nil if none were given.
func (f *Facts) Rules() *netfilter.Ruleset {
	if f == nil {
		return nil
	}
	return f.rules
}

// LocalAddrs are the addresses that were stated as the node's own.
func (f *Facts) LocalAddrs() []netip.Addr {
	if f == nil {
		return nil
	}
	return f.local
}

// Role tells what an address is. It does not allocate.
func (f *Facts) Role(a wire.Addr) Role {
	if f == nil || !a.IsValid() {
		return Role{}
	}
	if r, ok := f.exact[a]; ok {
		return r
	}
	fam := family(a)
	if r := f.ranges[fam].longest(a); r != nil {
		return r.roleOf(a)
	}
	switch {
	case a.IsLoopback():
		return f.loopback
	case a.IsMulticast():
		return f.multicast
	case a.IsLinkLocal():
		return f.linkLocal
	}
	return f.fallback[fam]
}

// HasPodFacts tells whether anything was given that can say "pod".
func (f *Facts) HasPodFacts() bool { return f != nil && f.podFacts }

// HasNodeFacts tells whether anything was given that can say "node" of an address.
func (f *Facts) HasNodeFacts() bool { return f != nil && f.nodeFacts }

// HasLinks tells whether a list of the node's interfaces was given.
func (f *Facts) HasLinks() bool { return f != nil && len(f.links) > 0 }

// Link returns the interface with an index on the node. An index that the file gives to two different interfaces is
// not answered.
func (f *Facts) Link(ifindex uint32) (Link, bool) {
	if f == nil {
		return Link{}, false
	}
	i, ok := f.byIndex[ifindex]
	if !ok {
		return Link{}, false
	}
	return f.links[i], true
}

// Links returns the node's interfaces, by index and, of one index, in the file's order.
func (f *Facts) Links() []Link {
	if f == nil {
		return nil
	}
	return slices.Clone(f.links)
}

// IsNodeMAC tells whether a link-layer address is that of one of the node's interfaces other than loopback.
func (f *Facts) IsNodeMAC(mac [6]byte) bool {
	if f == nil {
		return false
	}
	_, ok := f.nodeMACs[mac]
	return ok
}

// Warnings returns what the person should know of the facts, sorted by code.
func (f *Facts) Warnings() []Warning {
	if f == nil {
		return nil
	}
	ws := slices.Clone(f.warnings)
	for i := range ws {
		ws[i].Names = slices.Clone(ws[i].Names)
	}
	return ws
}

// Given returns what was given: ranges and addresses in the order of the flags, then the files.
func (f *Facts) Given() []Given {
	if f == nil {
		return nil
	}
	return slices.Clone(f.given)
}

// PodPrefixes returns the known Pod ranges, stated and from the nodes' spec.podCIDRs, sorted; those that lie inside
// another are left out.
func (f *Facts) PodPrefixes() []netip.Prefix {
	if f == nil {
		return nil
	}
	return slices.Clone(f.podPrefixes)
}

// ServicePrefixes returns the stated Service ranges, as PodPrefixes does.
func (f *Facts) ServicePrefixes() []netip.Prefix {
	if f == nil {
		return nil
	}
	return slices.Clone(f.servicePrefixes)
}

// NodePrefixes returns the stated node ranges, as PodPrefixes does.
func (f *Facts) NodePrefixes() []netip.Prefix {
	if f == nil {
		return nil
	}
	return slices.Clone(f.nodePrefixes)
}

// NodeAddrs returns all addresses that are exactly known to be a node's, sorted.
func (f *Facts) NodeAddrs() []wire.Addr {
	if f == nil {
		return nil
	}
	return slices.Clone(f.nodeAddrs)
}

// Nodes returns the nodes of the cluster file, sorted by name.
func (f *Facts) Nodes() []Node {
	if f == nil {
		return nil
	}
	ns := slices.Clone(f.nodes)
	for i := range ns {
		ns[i].Addrs = slices.Clone(ns[i].Addrs)
		ns[i].PodCIDRs = slices.Clone(ns[i].PodCIDRs)
	}
	return ns
}

// Agents returns the ip-masq-agent Pods of the cluster file that have not ended, sorted by node.
func (f *Facts) Agents() []Agent {
	if f == nil {
		return nil
	}
	return slices.Clone(f.agents)
}

// PodsAt returns the Pods of the cluster file that had an address, hostNetwork Pods not among them: the one that Role
// names first, then the others by the same preference.
func (f *Facts) PodsAt(a wire.Addr) []Pod {
	if f == nil {
		return nil
	}
	return slices.Clone(f.pods[a])
}

// HostNetworkPods returns the "namespace/name" of the Pods that use a node's address as theirs, sorted.
func (f *Facts) HostNetworkPods(a wire.Addr) []string {
	if f == nil {
		return nil
	}
	return slices.Clone(f.hostPods[a])
}

// family is the index of an address's family in the per-family tables: 0 for IPv4, 1 for IPv6.
func family(a wire.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}
