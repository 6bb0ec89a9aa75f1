package netfilter

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Backend is what keeps rules in the kernel. A node has one of each, and all of them work at once.
type Backend uint8

// The backends. BackendUnknown is iptables' own, one of two: the input does not say which.
const (
	BackendUnknown Backend = iota
	BackendLegacy          // iptables-legacy: the kernel's ip_tables
	BackendNFT             // nf_tables: iptables-nft's tables and others
)

// String names a backend as people do.
func (b Backend) String() string {
	switch b {
	case BackendLegacy:
		return "iptables-legacy"
	case BackendNFT:
		return "nf_tables"
	case BackendUnknown:
	}
	return "iptables"
}

// Hook is the place in the kernel's path where a base chain is asked.
type Hook uint8

// The hooks, in the order in which a forwarded packet meets them. NoHook is a chain that others jump to.
const (
	NoHook Hook = iota
	Prerouting
	Input
	Forward
	Output
	Postrouting
)

// Priorities of iptables' tables (include/uapi/linux/netfilter_ipv4.h) and the names that nft has for them.
const (
	priorityRaw    = -300
	priorityMangle = -150
	priorityDNAT   = -100
	priorityFilter = 0
	prioritySNAT   = 100
)

// Ruleset is what was read of a node's rules.
type Ruleset struct {
	tables  []*table
	sets    map[string]*set
	nftSets map[string]*nftSet
	spreads int // conditions of elements that became rules: see spread
	// changing are the sets that rules add packets to: the next packet may meet others than the input has.
	changing map[string]bool
	input    string   // the name of the text that is read
	Notes    []string // what the reader should know of the input: what was left out, cut, or filtered
	Texts    int      // listings, chains and rules that were found in it
	hidden   string   // why there are rules that are not in the input; "" if nothing says so
	cut      string   // why there may be chains that are not in the input; "" if nothing says so
}

// table is one table of one backend. Its chains jump to each other and to no others.
type table struct {
	rs      *Ruleset
	backend Backend
	name    string // "nat"; of nft with its family: "ip nat"
	v4, v6  bool
	chains  map[string]*chain
	order   []*chain
	native  bool // nft printed it
	listed  bool // a table of nft's was read already
	several bool // it stands more than once in the input, and differently
	dormant bool // it is not in force (nft: flags dormant)
	odd     bool // its flags are not known
}

// chain is a list of rules.
type chain struct {
	table    *table
	name     string
	hook     Hook
	nat      bool // of type nat: it is asked for the first packet of a connection only
	priority int
	drops    bool // policy
	rules    []*rule
	cut      string // why further rules may be missing behind those that are here; "" if none are
	around   string // why rules may be missing anywhere in it; "" if none are
	declared bool   // the input names it, and does not only have rules of it
}

// rule is one rule of a chain.
type rule struct {
	chain      *chain
	text       string // as the input has it, on one line
	line       int    // of the input, from 1
	input      string // the input's name
	conditions []condition
	target     target
	lookup     *nftLookup // its verdict is that of a map's element; nil where it has its own, see spread
	lost       string     // it stands for rules that are not in the input: why; "" is a rule
}

// condition is one thing that a rule asks of a packet.
type condition struct {
	text string
	dst  []netip.Prefix // the destinations that it names
	// test answers, and says of a maybe what would settle it.
	test func(w *walk) (t tri, settle string)
}

// not turns a condition over.
func (c condition) not() condition {
	test := c.test
	c.test = func(w *walk) (tri, string) {
		t, s := test(w)
		return t.not(), s
	}
	return c
}

// verdict is what a rule does with a packet that meets all its conditions.
type verdict uint8

const (
	goOn      verdict = iota // counts, logs, or changes something that does not matter here
	accept                   // ends this base chain
	drop                     //
	toCaller                 // RETURN
	jump                     //
	jumpAway                 // goto
	translate                // MASQUERADE, SNAT, NETMAP: the source is another one
	divert                   // DNAT, REDIRECT, TPROXY: the destination is another one
	opaque                   // something that this tool does not know
)

// target is a rule's verdict with what belongs to it.
type target struct {
	verdict verdict
	name    string   // "MASQUERADE", or the chain of a jump
	to      string   // the address that is put in place, where the rule says it
	random  bool     // the source port is changed too
	sets    []string // ipsets that it adds the packet to, or takes it from
	// mark changes packet mark and connection mark before the verdict; nil changes none.
	mark func(mark, connection bits) (bits, bits)
}

func (rs *Ruleset) note(s string) {
	if rs.input != "" {
		s = rs.input + ": " + s
	}
	if !slices.Contains(rs.Notes, s) {
		rs.Notes = append(rs.Notes, s)
	}
}

// table returns a table of a backend, a new one if there is none yet.
func (rs *Ruleset) table(b Backend, name string, v4, v6 bool) *table {
	for _, t := range rs.tables {
		if t.backend == b && t.name == name && t.v4 == v4 && t.v6 == v6 {
			return t
		}
	}
	t := &table{rs: rs, backend: b, name: name, v4: v4, v6: v6, chains: make(map[string]*chain)}
	rs.tables = append(rs.tables, t)
	return t
}

// base is the table's name in iptables.
func (t *table) base() string { return t.name[strings.LastIndexByte(t.name, ' ')+1:] }

// chain returns a chain of the table, a new one if there is none yet.
func (t *table) chain(name string) *chain {
	c, ok := t.chains[name]
	if !ok {
		c = &chain{table: t, name: name}
		t.chains[name] = c
		t.order = append(t.order, c)
	}
	return c
}

// builtin gives a chain of iptables the hook and priority that its table has.
func (c *chain) builtin() {
	hooks := map[string]Hook{"PREROUTING": Prerouting, "INPUT": Input, "FORWARD": Forward, "OUTPUT": Output, "POSTROUTING": Postrouting}
	hook, ok := hooks[c.name]
	if !ok {
		return
	}
	c.hook = hook
	switch c.table.name {
	case "nat":
		c.nat, c.priority = true, priorityDNAT
		if hook == Postrouting || hook == Input {
			c.priority = prioritySNAT
		}
	case "mangle":
		c.priority = priorityMangle
	case "raw":
		c.priority = priorityRaw
	case "security":
		c.priority = 50
	default:
		c.priority = priorityFilter
	}
}

// add adds a rule.
func (c *chain) add(r *rule) {
	r.chain, r.input = c, c.table.rs.input
	for _, name := range r.target.sets {
		if c.table.rs.changing == nil {
			c.table.rs.changing = make(map[string]bool)
		}
		c.table.rs.changing[name] = true
	}
	c.rules = append(c.rules, r)
}

// hooked returns the base chains of a hook that a packet of a family meets, in the kernel's order.
func (rs *Ruleset) hooked(h Hook, v4 bool) []*chain {
	var out []*chain
	for _, t := range rs.tables {
		if v4 && !t.v4 || !v4 && !t.v6 || t.dormant || rs.shadowed(t) {
			continue
		}
		for _, c := range t.order {
			if c.hook == h {
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *chain) int {
		return cmp.Or(cmp.Compare(a.turn(), b.turn()), cmp.Compare(a.priority, b.priority))
	})
	return out
}

// turn is when a base chain is asked among the others of its hook. Chains of type nat are all asked at one moment, whatever their own
// priority, which orders them among themselves (net/netfilter/nf_nat_core.c, nf_nat_register_fn; nf_nat_proto.c, the nat hooks).
func (c *chain) turn() int {
	switch {
	case !c.nat:
		return c.priority
	case c.hook == Postrouting || c.hook == Input:
		return prioritySNAT
	}
	return priorityDNAT
}

// Destinations returns the ranges of destinations that rules name, sorted: within a range that none of them parts, all addresses
// have the same answer as far as the destination goes. alone are single addresses that sets hold, or that rules name which a packet
// meets before it comes to those that translate its source: Services.
func (rs *Ruleset) Destinations() (ranges, alone []netip.Prefix) {
	if rs == nil {
		return nil, nil
	}
	leaving := rs.leaving()
	add := func(p netip.Prefix, early bool) {
		switch {
		case !p.IsValid(): // an entry that could not be read
		case early && p.IsSingleIP():
			alone = append(alone, p.Masked())
		default:
			ranges = append(ranges, p.Masked())
		}
	}
	for _, t := range rs.tables {
		for _, c := range t.order {
			for _, r := range c.rules {
				for _, k := range r.conditions {
					for _, p := range k.dst {
						add(p, !leaving[c])
					}
				}
			}
		}
	}
	for _, s := range rs.sets {
		for _, e := range s.entries {
			for _, f := range e.fields {
				for _, p := range f.ranges {
					add(p, true)
				}
			}
		}
	}
	for _, s := range rs.nftSets {
		for _, item := range s.items {
			for _, part := range item.parts {
				if p, ok := prefix(part.from); ok && part.to == "" {
					add(p, true)
				}
			}
		}
	}
	tidy := func(list []netip.Prefix) []netip.Prefix {
		slices.SortFunc(list, netip.Prefix.Compare)
		return slices.Compact(list)
	}
	return tidy(ranges), tidy(alone)
}

// leaving are the chains that packets meet as they leave.
func (rs *Ruleset) leaving() map[*chain]bool {
	met := make(map[*chain]bool)
	var walk func(c *chain)
	walk = func(c *chain) {
		if c == nil || met[c] {
			return
		}
		met[c] = true
		for _, r := range c.rules {
			if r.target.verdict == jump || r.target.verdict == jumpAway {
				walk(c.table.chains[r.target.name])
			}
		}
	}
	for _, t := range rs.tables {
		for _, c := range t.order {
			if c.hook == Postrouting {
				walk(c)
			}
		}
	}
	return met
}

// same tells whether two chains have the same rules.
func (c *chain) same(d *chain) bool {
	return slices.EqualFunc(c.rules, d.rules, func(r, s *rule) bool {
		return uncounted(r.text) == uncounted(s.text)
	})
}

// uncounted is a rule without the counters that iptables-save -c puts before it.
func uncounted(rule string) string {
	if rule != "" && rule[0] == '[' {
		_, rule, _ = strings.Cut(rule, "] ")
	}
	return strings.Join(strings.Fields(rule), " ")
}

// lose notes that rules may be missing at the place where the chain's reading is.
func (c *chain) lose(text string, line int, why string) {
	c.add(&rule{text: text, line: line, lost: why})
}

// isCut tells whether the chain's last rule has no target, or one that is no chain of the table.
func (c *chain) isCut() bool {
	if c == nil || len(c.rules) == 0 {
		return false
	}
	t := c.rules[len(c.rules)-1].target
	switch t.verdict {
	case goOn:
		return t.name == ""
	case jump, jumpAway:
		return c.table.chains[t.name] == nil
	case accept, drop, toCaller, translate, divert, opaque:
	}
	return false
}

// cutTarget takes back what the last rule says of its target's address: it may be cut there.
func (c *chain) cutTarget() {
	if c != nil && len(c.rules) > 0 {
		c.rules[len(c.rules)-1].target.to = ""
	}
}

// HasChain tells whether a nat table has rules in a chain of a name.
func (rs *Ruleset) HasChain(name string) bool {
	if rs == nil {
		return false
	}
	for _, t := range rs.tables {
		if c := t.chains[name]; c != nil && len(c.rules) > 0 {
			return true
		}
	}
	return false
}

var comment = regexp.MustCompile(`\s*(?:-m comment )?--comment (?:"(?:[^"\\]|\\.)*"|'[^']*'|\S+)|\s*/\*.*?\*/|\s+comment "(?:[^"\\]|\\.)*"`)

// WithoutComments is a rule without what people wrote in it.
func WithoutComments(rule string) string {
	return strings.TrimSpace(comment.ReplaceAllString(rule, ""))
}
