package netfilter

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// set is an ipset, or a set of nft's.
type set struct {
	name    string
	kind    []string // "ip", "net", "port", "iface", ...; nil is not known
	entries []entry
	expects int    // entries that the input says it has; -1 does not say
	cut     string // why entries may be missing
	members bool   // of list:set: entries are names of sets
	alters  bool   // an option changes what its entries mean: what is not found may be in it all the same
}

// entry is one element of a set, one field for each of its dimensions.
type entry struct {
	fields []field
	except bool // nomatch
	odd    bool // it could not be read
}

// field is what one dimension of an entry asks for.
type field struct {
	ranges  []netip.Prefix
	from    netip.Addr // of an interval that is no prefix
	to      netip.Addr
	proto   wire.Proto
	ports   []ports
	name    string // interface, or set
	isRange bool
	begin   bool // the interface's name is the beginning of one
}

func newSet(name, kind string) *set {
	s := &set{name: name, expects: -1}
	family, dims, _ := strings.Cut(kind, ":") // "hash:ip,port"
	switch {
	case kind == "":
		s.cut = "of no known type"
	case family == "list":
		s.members = true
	default:
		s.kind = strings.Split(dims, ",")
	}
	return s
}

// options reads what a set was created with: "family inet hashsize 1024 maxelem 65536 netmask 24".
func (s *set) options(words []string) {
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "family", "hashsize", "maxelem", "timeout", "range", "size", "bucketsize", "initval":
			i++
		case "counters", "comment", "skbinfo", "forceadd":
		default:
			s.alters = true
		}
	}
}

// add reads an entry as ipset prints it: "10.0.0.0/8", "172.30.77.0,tcp:80 timeout 30", "10.1.0.0/16 nomatch".
func (s *set) add(words []string) {
	if len(words) == 0 {
		return
	}
	e := entry{}
	begin := false
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "comment":
			i++
		case "nomatch":
			e.except = true
		case "wildcard":
			begin = true
		}
	}
	if s.members {
		e.fields = []field{{name: words[0]}}
		s.entries = append(s.entries, e)
		return
	}
	parts := strings.Split(words[0], ",")
	e.odd = len(parts) != len(s.kind)
	for i, p := range parts {
		if e.odd {
			break
		}
		f, ok := fieldOf(s.kind[i], p)
		f.begin = begin && s.kind[i] == "iface"
		e.odd = e.odd || !ok
		e.fields = append(e.fields, f)
	}
	s.entries = append(s.entries, e)
}

func fieldOf(kind, s string) (f field, ok bool) {
	switch kind {
	case "ip", "net":
		if from, to, isRange := strings.Cut(s, "-"); isRange {
			a, err := netip.ParseAddr(from)
			b, err2 := netip.ParseAddr(to)
			return field{from: a, to: b, isRange: true}, err == nil && err2 == nil
		}
		p, ok := prefix(s)
		return field{ranges: []netip.Prefix{p}}, ok
	case "port":
		proto, port, has := strings.Cut(s, ":")
		if !has { // bitmap:port is of numbers alone
			proto, port = "all", s
		}
		p, _, ok := protocol(proto)
		r, ok2 := portRange(strings.ReplaceAll(port, "-", ":"), p)
		return field{proto: p, ports: []ports{r}}, ok && ok2
	case "iface":
		return field{name: s}, !strings.HasPrefix(s, "physdev:")
	}
	return f, false
}

// has tells whether a packet is in the set. directions has "src" or "dst" for each dimension.
func (s *set) has(w *walk, directions []string) (tri, string) {
	if s.alters || w.rs.changing[s.name] {
		t, _ := s.hasAsListed(w, directions)
		return max(t, maybe), "a capture: what is in set " + s.name + " does not show in its entries alone"
	}
	return s.hasAsListed(w, directions)
}

func (s *set) hasAsListed(w *walk, directions []string) (tri, string) {
	settle := "ipset save of the whole set " + s.name
	if s.members {
		t, why := no, settle
		for _, e := range s.entries {
			of := w.rs.sets[e.fields[0].name]
			if of == nil || of.members { // the kernel has no lists of lists
				t, why = max(t, maybe), "set "+e.fields[0].name+": ipset save"
				continue
			}
			is, sub := of.has(w, directions)
			if is > t {
				t, why = is, sub
			}
		}
		return s.whole(t), why
	}
	if len(directions) < len(s.kind) || s.kind == nil {
		return maybe, settle
	}
	if of := s.asksFor(w.p, directions); of != "" && s.whole(no) == no {
		settle = of
	}
	t, except := no, no
	longest, longestExcept := -1, -1
	for _, e := range s.entries {
		is := maybe
		if !e.odd {
			is = e.meets(w.p, s.kind, directions)
		}
		if is == no {
			continue
		}
		n := -1
		if !e.odd && len(e.fields) > 0 && len(e.fields[0].ranges) == 1 {
			n = e.fields[0].ranges[0].Bits()
		}
		if e.except {
			except, longestExcept = max(except, is), max(longestExcept, n)
		} else {
			t, longest = max(t, is), max(longest, n)
		}
	}
	if except != no && t != no {
		// The most specific entry decides; with more than one dimension it is not that simple.
		switch {
		case len(s.kind) == 1 && except == yes && t == yes && longestExcept > longest:
			t = no
		case len(s.kind) == 1 && except == yes && t == yes && longest > longestExcept:
		default:
			t = maybe
		}
	}
	return s.whole(t), settle
}

// asksFor names what of a packet is left open that a set's entries tell apart.
func (s *set) asksFor(p *Packet, directions []string) string {
	var out []string
	for i, kind := range s.kind {
		source := directions[i] == "src"
		switch {
		case kind == "port" && (p.Proto == wire.ProtoNone || !source && p.DstPort < 0):
			out = append(out, "--proto and --dport")
		case (kind == "ip" || kind == "net") && source && !p.Src.IsSingleIP():
			out = append(out, "--from ADDRESS")
		case (kind == "ip" || kind == "net") && !source && !p.Dst.IsSingleIP():
			out = append(out, "--to ADDRESS")
		case kind == "iface" && !source && p.Out == "":
			out = append(out, "--oif")
		}
	}
	return strings.Join(slices.Compact(out), ", ")
}

// whole takes an answer back where entries may be missing.
func (s *set) whole(t tri) tri {
	if t == no && (s.cut != "" || s.expects > len(s.entries)) {
		return maybe
	}
	return t
}

func (e *entry) meets(p *Packet, kind, directions []string) tri {
	t := yes
	for i, f := range e.fields {
		source := directions[i] == "src"
		is := maybe
		switch kind[i] {
		case "ip", "net":
			switch {
			case f.isRange:
				is, _ = onRange("", source, f.from, f.to).test(&walk{p: p})
			case source:
				is = anyWithin(p.Src, f.ranges)
			default:
				is = p.goesTo(f.ranges...)
			}
		case "port":
			port := p.DstPort
			if source {
				port = p.SrcPort
			}
			switch {
			case p.Proto == wire.ProtoNone:
				is = maybe
			case f.proto != wire.ProtoNone && p.Proto != f.proto, f.proto == wire.ProtoNone && !p.Proto.HasPorts():
				is = no
			default:
				is = portWithin(port, f.ports)
			}
		case "iface":
			name := p.Out
			if source {
				name = p.In
			}
			if name != "" {
				is = triOf(name == f.name || f.begin && strings.HasPrefix(name, f.name))
			}
		}
		t = min(t, is)
	}
	return t
}

// ipsetLine reads a line of ipset save.
func (rs *Ruleset) ipsetLine(words []string) bool {
	switch {
	case len(words) >= 3 && words[0] == "create":
		s := newSet(words[1], words[2])
		s.options(words[3:])
		rs.addSet(s)
		return true
	case len(words) >= 3 && (words[0] == "add" || words[0] == "-A"):
		s := rs.sets[words[1]]
		if s == nil {
			return false
		}
		s.add(words[2:])
		return true
	}
	return false
}

func (rs *Ruleset) addSet(s *set) {
	if rs.sets == nil {
		rs.sets = make(map[string]*set)
	}
	if old := rs.sets[s.name]; old != nil {
		s.cut = "stands more than once in the input"
		rs.note("set " + s.name + " stands in the input more than once")
	}
	rs.sets[s.name] = s
}

// ipsetList reads lines of ipset list, which stand between "Name:" and a blank line.
type ipsetList struct {
	set     *set
	members bool
}

func (l *ipsetList) line(rs *Ruleset, s string) bool {
	key, value, ok := strings.Cut(s, ":")
	value = strings.TrimSpace(value)
	switch {
	case ok && key == "Name":
		l.set, l.members = &set{name: value, expects: -1, cut: "is cut in the input"}, false
		rs.addSet(l.set)
	case l.set == nil:
		return false
	case l.members:
		w, _ := words(s)
		l.set.add(w)
	case key == "Type":
		kept := l.set.cut
		*l.set = *newSet(l.set.name, value)
		l.set.cut = kept
	case key == "Header":
		l.set.options(strings.Fields(value))
	case key == "Number of entries":
		if n, err := strconv.Atoi(value); err == nil {
			l.set.expects = n
		}
	case key == "Members":
		l.members = true
		if l.set.expects >= 0 && l.set.cut == "is cut in the input" {
			l.set.cut = ""
		}
	}
	return true
}
