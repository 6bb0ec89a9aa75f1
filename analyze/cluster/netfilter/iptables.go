package netfilter

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// What iptables-save, iptables -S and iptables commands write: one rule a line, as options.

// words splits a line as a shell does: blanks part words, quotes keep them together, a backslash takes the next character as
// it is. open is that a quote is not closed: the line is cut.
func words(line string) (out []string, open bool) {
	var b strings.Builder
	quote := byte(0)
	in := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
			in = true
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				b.WriteByte(c)
			}
		case c == '"' || c == '\'':
			quote, in = c, true
		case c == ' ' || c == '\t':
			if in {
				out = append(out, b.String())
				b.Reset()
				in = false
			}
		default:
			b.WriteByte(c)
			in = true
		}
	}
	if in {
		out = append(out, b.String())
	}
	return out, quote != 0
}

// options reads a rule's options one after the other.
type options struct {
	words  []string
	at     int
	neg    bool     // a ! stands before the option
	stray  []string // words that are no option, and belong to none
	proto  wire.Proto
	module string
}

// next returns the next option, "" at the end. Words that are none are kept apart.
func (o *options) next() string {
	o.neg = false
	for o.at < len(o.words) {
		w := o.words[o.at]
		o.at++
		if w == "!" {
			o.neg = true
			continue
		}
		if len(w) > 1 && w[0] == '-' {
			return w
		}
		o.stray = append(o.stray, w)
		o.neg = false
	}
	return ""
}

// value returns an option's value; a ! may stand before it, as old versions wrote.
func (o *options) value() string {
	if o.at < len(o.words) && o.words[o.at] == "!" {
		o.neg = !o.neg
		o.at++
	}
	if o.at < len(o.words) {
		o.at++
		return o.words[o.at-1]
	}
	return ""
}

// limited tells whether addrtype asks for the addresses of one interface only, which stands behind its types.
func (o *options) limited() bool {
	for _, w := range o.words[o.at:] {
		switch w {
		case "--limit-iface-in", "--limit-iface-out":
			return true
		case "-m", "--match", "-j", "--jump", "-g", "--goto":
			return false
		}
	}
	return false
}

// rest returns the values of an option that this tool does not know: all words up to the next option.
func (o *options) rest() []string {
	from := o.at
	for o.at < len(o.words) && (o.words[o.at] == "" || o.words[o.at][0] != '-') && o.words[o.at] != "!" {
		o.at++
	}
	return o.words[from:o.at]
}

// parseRule reads the options of a rule into conditions and a target. Whatever it does not know becomes a condition that is not
// decided, or a target that is not.
func parseRule(opts []string) (conditions []condition, t target) {
	o := options{words: opts}
	add := func(c condition) {
		if o.neg {
			c = c.not()
		}
		conditions = append(conditions, c)
	}
	for {
		begin := o.at
		opt := o.next()
		if len(o.stray) > 0 { // not as a tool prints it: what they ask for is not known
			conditions = append(conditions, unknown(strings.Join(o.stray, " "), "iptables-save, as it prints it"))
			o.stray = nil
			if opt == "" {
				return conditions, target{verdict: opaque}
			}
		}
		if opt == "" {
			return conditions, t
		}
		text := func() string { return strings.Join(o.words[begin:o.at], " ") }
		switch opt {
		case "-s", "--source", "--src", "-d", "--destination", "--dst":
			source := strings.TrimLeft(opt, "-")[0] == 's'
			v := o.value()
			ranges, ok := prefixes(v)
			switch {
			case !ok:
				add(unknown(text(), "the address of "+v))
			case source:
				add(onSource(text(), ranges...))
			default:
				add(onDestination(text(), ranges...))
			}
		case "-p", "--protocol", "--proto":
			v := o.value()
			p, all, ok := protocol(v)
			if ok && !all && !o.neg {
				o.proto = p
			}
			switch {
			case !ok:
				add(unknown(text(), ""))
			case all:
				add(always(text()))
			default:
				add(onProtocol(text(), p))
			}
		case "-i", "--in-interface", "-o", "--out-interface":
			text := text0(&o, opt)
			name, begin := withPlus(o.words[o.at-1])
			add(onInterface(text, opt == "-o" || opt == "--out-interface", name, begin))
		case "-m", "--match":
			o.module = o.value()
		case "-j", "--jump", "-g", "--goto":
			name := o.value()
			t = targetOf(name, o.words[o.at:])
			if opt == "-g" || opt == "--goto" {
				t.verdict = jumpAway
			}
			return conditions, t
		case "-c", "--set-counters":
			o.value()
			o.value()
		case "-f", "--fragment":
			add(fragment(text()))
		case "--comment":
			o.value()
		default:
			if c, ok := o.extension(opt); ok {
				c.text = text()
				add(c)
				continue
			}
			o.rest()
			conditions = append(conditions, unknown(text(), ""))
		}
	}
}

// fragment asks for the second and further pieces of a packet. A connection's first packet as conntrack sees it is whole.
func fragment(text string) condition {
	return condition{text: text, test: func(*walk) (tri, string) { return no, "" }}
}

// text0 reads an option's value and returns both as text.
func text0(o *options, opt string) string {
	v := o.value()
	return opt + " " + v
}

// extension reads an option of a match module.
func (o *options) extension(opt string) (c condition, ok bool) {
	switch opt {
	case "--dst-type", "--src-type":
		var cs []condition
		for k := range strings.SplitSeq(strings.ToUpper(o.value()), ",") {
			cs = append(cs, onAddressType("", opt == "--src-type", k))
		}
		c := anyOf("", cs...)
		if o.limited() {
			c = onOneInterface(c, opt == "--src-type")
		}
		return c, true
	case "--limit-iface-in", "--limit-iface-out": // see --dst-type
		return always(""), true
	case "--mark":
		v, m, ok := valueMask(o.value())
		if o.module == "connmark" {
			return onConnectionMark("", v, m), ok
		}
		return onMark("", v, m), ok
	case "--match-set":
		name := o.value()
		return onSet("", name, strings.Split(o.value(), ",")), true
	case "--ctstate", "--state":
		return onState("", strings.Split(o.value(), ",")), true
	case "--sport", "--source-port", "--dport", "--destination-port":
		r, ok := portRange(o.value(), o.proto)
		return onPorts("", opt[2] == 's', opt[2] == 'd', []ports{r}), ok
	case "--sports", "--source-ports", "--dports", "--destination-ports", "--ports":
		var in []ports
		good := true
		for s := range strings.SplitSeq(o.value(), ",") {
			r, ok := portRange(s, o.proto)
			good = good && ok
			in = append(in, r)
		}
		return onPorts("", opt[2] == 's' || opt == "--ports", opt[2] == 'd' || opt == "--ports", in), good
	case "--src-range", "--dst-range":
		from, to, isRange := strings.Cut(o.value(), "-")
		a, err := netip.ParseAddr(from)
		if !isRange {
			to = from
		}
		b, err2 := netip.ParseAddr(to)
		return onRange("", opt == "--src-range", a, b), err == nil && err2 == nil
	case "--syn":
		return onFlags("", wire.FIN|wire.SYN|wire.RST|wire.ACK, wire.SYN), true
	case "--tcp-flags":
		mask, ok := flags(o.value())
		neg := o.neg
		set, ok2 := flags(o.value())
		o.neg = neg
		return onFlags("", mask, set), ok && ok2
	}
	return c, false
}

func flags(list string) (f wire.TCPFlags, ok bool) {
	names := map[string]wire.TCPFlags{
		"FIN": wire.FIN, "SYN": wire.SYN, "RST": wire.RST, "PSH": wire.PSH, "ACK": wire.ACK, "URG": wire.URG,
		"ALL": wire.FIN | wire.SYN | wire.RST | wire.PSH | wire.ACK | wire.URG, "NONE": 0,
	}
	for s := range strings.SplitSeq(list, ",") {
		v, ok := names[strings.ToUpper(s)]
		if !ok {
			return 0, false
		}
		f |= v
	}
	return f, true
}

// prefixes reads one address or range, or several with commas.
func prefixes(list string) ([]netip.Prefix, bool) {
	var out []netip.Prefix
	for s := range strings.SplitSeq(list, ",") {
		switch s {
		case "anywhere", "default": // what iptables -L prints without -n
			out = append(out, netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0))
			continue
		}
		p, ok := prefix(s)
		if !ok {
			return nil, false
		}
		out = append(out, p)
	}
	return out, true
}

// prefix reads an address, or one with a mask: of a length, or written as an address.
func prefix(s string) (netip.Prefix, bool) {
	addr, mask, has := strings.Cut(s, "/")
	a, err := netip.ParseAddr(addr)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	if !has {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	if n, err := strconv.Atoi(mask); err == nil {
		p := netip.PrefixFrom(a, n)
		return p.Masked(), p.IsValid()
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || m.BitLen() != a.BitLen() {
		return netip.Prefix{}, false
	}
	n, gap := 0, false
	for _, b := range m.AsSlice() {
		for i := range 8 {
			switch {
			case b&(0x80>>i) == 0:
				gap = true
			case gap:
				return netip.Prefix{}, false // a mask with holes is no range
			default:
				n++
			}
		}
	}
	return netip.PrefixFrom(a, n).Masked(), true
}

func protocol(s string) (p wire.Proto, all, ok bool) {
	switch strings.ToLower(s) {
	case "all", "0", "any":
		return 0, true, true
	case "icmpv6", "ipv6-icmp", "icmp6":
		return wire.ProtoICMP6, false, true
	case "ah", "esp", "gre", "ipv6", "ipip", "ipencap":
		p = map[string]wire.Proto{"ah": wire.ProtoAH, "esp": wire.ProtoESP, "gre": wire.ProtoGRE, "ipv6": wire.ProtoIPv6, "ipip": wire.ProtoIPIP, "ipencap": wire.ProtoIPIP}[strings.ToLower(s)]
		return p, false, true
	}
	if n, err := strconv.ParseUint(s, 10, 8); err == nil {
		return wire.Proto(n), false, true
	}
	if p, ok := wire.ProtoOf(strings.ToLower(s)); ok {
		return p, false, true
	}
	return 0, false, false
}

// valueMask reads "0x4000/0x4000" or "0x4000".
func valueMask(s string) (value, mask uint32, ok bool) {
	v, m, has := strings.Cut(s, "/")
	a, err := strconv.ParseUint(v, 0, 32)
	b := uint64(0xffffffff)
	var err2 error
	if has {
		b, err2 = strconv.ParseUint(m, 0, 32)
	}
	return uint32(a), uint32(b), err == nil && err2 == nil
}

// portRange reads "80", "1024:65535", ":1023", "80-90" and the names of well-known services.
func portRange(s string, proto wire.Proto) (ports, bool) {
	from, to, has := strings.Cut(s, ":")
	if !has {
		if a, b, ok := strings.Cut(s, "-"); ok && a != "" && a[0] >= '0' && a[0] <= '9' {
			from, to, has = a, b, true
		}
	}
	if !has {
		to = from
	}
	r := ports{0, 0xffff}
	for _, e := range []struct {
		s  string
		to *uint16
	}{{from, &r.from}, {to, &r.to}} {
		if e.s == "" {
			continue
		}
		n, err := strconv.ParseUint(e.s, 10, 16)
		if err != nil {
			named, ok := servicePort(e.s)
			if !ok {
				return r, false
			}
			n = uint64(named)
		}
		*e.to = uint16(n)
	}
	return r, true
}

// servicePort is the port of a service that is known by name where tools print names.
func servicePort(name string) (uint16, bool) {
	n, ok := map[string]uint16{
		"ftp": 21, "ssh": 22, "telnet": 23, "smtp": 25, "domain": 53, "http": 80, "ntp": 123, "snmp": 161, "ldap": 389, "https": 443, "ldaps": 636, "mysql": 3306, "postgresql": 5432,
	}[name]
	return n, ok
}

// isHarmless tells whether a target of iptables does nothing to a packet's source, destination, mark or way.
func isHarmless(name string) bool {
	switch name {
	case "LOG", "NFLOG", "ULOG", "AUDIT", "TRACE", "TEE", "TCPMSS", "TTL", "HL", "TOS", "DSCP", "ECN", "CLASSIFY", "RATEEST", "CHECKSUM", "SECMARK", "CONNSECMARK", "IDLETIMER",
		"LED", "TCPOPTSTRIP":
		return true
	}
	return false
}

// isOpaque tells whether a target is one of which this tool does not follow what it does.
func isOpaque(name string) bool {
	switch name {
	case "NOTRACK", "CT", "QUEUE", "NFQUEUE", "SYNPROXY", "HMARK", "CLUSTERIP", "DNPT", "SNPT":
		return true
	}
	return false
}

// targetOf reads a target and its options.
func targetOf(name string, opts []string) target {
	t := target{name: name}
	opt := func(names ...string) (string, bool) {
		for i, w := range opts {
			if slices.Contains(names, w) {
				if i+1 < len(opts) {
					return opts[i+1], true
				}
				return "", true
			}
		}
		return "", false
	}
	switch name {
	case "ACCEPT":
		t.verdict = accept
	case "DROP", "REJECT", "TARPIT", "STEAL":
		t.verdict = drop
	case "RETURN":
		t.verdict = toCaller
	case "MASQUERADE":
		t.verdict = translate
		t.random = slices.Contains(opts, "--random-fully") || slices.Contains(opts, "--random")
		if _, ok := opt("--to-ports"); ok {
			t.random = true
		}
	case "SNAT":
		t.verdict = translate
		t.to, _ = opt("--to-source", "--to")
		t.random = slices.Contains(opts, "--random-fully") || slices.Contains(opts, "--random")
	case "NETMAP":
		t.verdict = translate
		t.to, _ = opt("--to")
	case "DNAT", "REDIRECT", "TPROXY":
		t.verdict = divert
	case "SET":
		for i, w := range opts {
			if (w == "--add-set" || w == "--del-set") && i+1 < len(opts) {
				t.sets = append(t.sets, opts[i+1])
			}
		}
		if len(t.sets) == 0 { // --map-set gives the packet what the set holds; where options are not shown it may be that
			t.mark = anyMark
		}
	case "MARK":
		t.mark = markTarget(opt)
	case "CONNMARK":
		t.mark = connmarkTarget(opt, opts)
	case "":
	default:
		switch {
		case isHarmless(name):
		case isOpaque(name):
			t.verdict = opaque
		default:
			t.verdict = jump
		}
	}
	return t
}

// markOption reads the options of MARK and CONNMARK that set bits (iptables-extensions(8)): which are cleared, and which are then
// turned over.
func markOption(opt func(...string) (string, bool)) (value, mask uint32, ok bool) {
	for _, name := range []string{"--set-xmark", "--set-mark", "--and-mark", "--or-mark", "--xor-mark"} {
		s, has := opt(name)
		if !has {
			continue
		}
		v, m, ok := valueMask(s)
		switch name {
		case "--set-mark":
			m |= v
		case "--and-mark":
			v, m = 0, ^v
		case "--or-mark":
			m = v
		case "--xor-mark":
			m = 0
		}
		return v, m, ok
	}
	return 0, 0, false
}

// markTarget reads the options of MARK.
func markTarget(opt func(...string) (string, bool)) func(a, b bits) (bits, bits) {
	if v, m, ok := markOption(opt); ok {
		return func(p, c bits) (bits, bits) { return p.set(v, m), c }
	}
	return func(_, c bits) (bits, bits) { return bits{}, c }
}

// connmarkTarget reads the options of CONNMARK.
func connmarkTarget(opt func(...string) (string, bool), opts []string) func(a, b bits) (bits, bits) {
	number := func(name string, otherwise uint32) uint32 {
		if s, ok := opt(name); ok {
			if v, _, ok := valueMask(s); ok {
				return v
			}
		}
		return otherwise
	}
	masks := func() (nf, ct uint32) {
		both := number("--mask", ^uint32(0))
		return number("--nfmask", both), number("--ctmask", both)
	}
	if v, m, ok := markOption(opt); ok {
		return func(p, c bits) (bits, bits) { return p, c.set(v, m) }
	}
	// net/netfilter/xt_connmark.c: what is copied is masked, and turned over into what was cleared.
	mix := func(to, from bits, toMask, fromMask uint32) bits {
		known := (to.known | toMask) & (from.known | ^fromMask)
		return bits{((to.value &^ toMask) ^ (from.value & fromMask)) & known, known}
	}
	switch {
	case slices.Contains(opts, "--save-mark"):
		nf, ct := masks()
		return func(p, c bits) (bits, bits) { return p, mix(c, p, ct, nf) }
	case slices.Contains(opts, "--restore-mark"):
		nf, ct := masks()
		return func(p, c bits) (bits, bits) { return mix(p, c, nf, ct), c }
	}
	return func(bits, bits) (bits, bits) { return bits{}, bits{} }
}

// saved reads what iptables-save, iptables -S or commands write.
type saved struct {
	rs      *Ruleset
	backend Backend
	v6      bool // ip6tables wrote it, as its head or a command says
	table   *table
	headed  bool   // a line names it: *nat
	guessed bool   // a command that names no table printed it: filter, unless its chains are nat's
	commit  bool   // the table was ended
	last    *chain // of the rule before
	before  *chain // of the last rule of another chain

	unfinished bool   // the rule before has no target: it is cut, unless it only counts
	bare       bool   // it is a chain's name and no more: the name may be cut too
	at         int    // its line
	gap        string // a line that could not be read stands behind it
	skipped    bool   // chains may have rules that could not be read
}

const (
	cutChain   = "is cut in the input: there may be rules behind it"
	unreadable = "holds a line that could not be read"
)

// header reads "# Generated by iptables-save v1.8.9 (nf_tables) on ...".
func (s *saved) header(line string) {
	_, by, _ := strings.Cut(line, "Generated by ")
	tool, rest, _ := strings.Cut(by, " ")
	s.v6 = strings.HasPrefix(tool, "ip6")
	s.backend = BackendUnknown
	version, rest, _ := strings.Cut(rest, " ")
	switch {
	case strings.HasPrefix(rest, "(nf_tables)"):
		s.backend = BackendNFT
	case strings.HasPrefix(version, "v1."):
		s.backend = BackendLegacy // only nf_tables' is said
	}
}

// begin begins a table.
func (s *saved) begin(name string) {
	s.end()
	t := s.rs.table(s.backend, name, !s.v6, s.v6)
	if len(t.chains) > 0 { // it stands in the input already: read apart, and held against the first
		t = &table{rs: s.rs, backend: s.backend, name: name, v4: !s.v6, v6: s.v6, chains: make(map[string]*chain)}
	}
	s.table, s.headed, s.commit, s.last = t, true, false, nil
}

// end ends a table whose COMMIT is missing, or that is whole.
func (s *saved) end() {
	t := s.table
	if t == nil {
		return
	}
	headed := s.headed
	s.table, s.headed, s.guessed = nil, false, false
	if !s.commit {
		s.rs.note("table " + t.name + " is cut (it has no COMMIT): the rules behind the cut are not known")
		// Chains are written one after the other: those before the last one are whole.
		for _, c := range t.order {
			// Of a last rule that is cut itself the chain's name may be.
			if c.cut == "" && (c == s.last || c == s.before && s.bare || len(c.rules) == 0) {
				c.cut = cutChain
			}
		}
		s.last.cutTarget()
		if len(t.chains) == 0 || t.chains["POSTROUTING"] == nil {
			s.rs.cut = "table " + t.name + " is cut in the input: chains behind the cut may translate too"
		}
	}
	if !headed && !t.isEmpty() {
		behind := s.last == nil
		for _, c := range t.order {
			if behind || c == s.last {
				c.mayGoOn()
			}
			behind = behind || c == s.last
		}
	}
	if s.skipped {
		for _, c := range t.order {
			if len(c.rules) == 0 {
				c.cut = unreadable
			}
		}
	}
	s.last, s.before, s.gap, s.skipped, s.unfinished, s.bare = nil, nil, "", false, false, false
	old := s.rs.table(t.backend, t.name, t.v4, t.v6)
	if old == t {
		return
	}
	if len(old.chains) == 0 {
		*old = *t
		for _, c := range old.chains {
			c.table = old
		}
		return
	}
	differ := len(old.chains) != len(t.chains)
	for name, c := range t.chains {
		differ = differ || old.chains[name] == nil || !old.chains[name].same(c)
	}
	if differ {
		old.several = true
		s.rs.note("table " + t.name + " stands in the input more than once, with different rules")
	}
}

// mayGoOn notes of the last chain of a listing without an end mark that more may follow: it has no rules, or nothing but RETURN,
// which is of no use.
func (c *chain) mayGoOn() {
	switch {
	case c.cut != "" || !c.declared && len(c.rules) == 0:
	case len(c.rules) == 0:
		c.cut = "ends the listing without a rule, and the listing has no end mark: it may be cut"
	case !slices.ContainsFunc(c.rules, func(r *rule) bool { return r.target.verdict != toCaller }):
		c.cut = "ends the listing with nothing but RETURN: the listing may be cut"
	}
}

// isEmpty tells whether a nat table was listed whole, and has no rules.
func (t *table) isEmpty() bool {
	for _, c := range t.order {
		if c.hook == NoHook || len(c.rules) > 0 || c.cut != "" {
			return false
		}
	}
	return len(t.order) == 4 // PREROUTING, INPUT, OUTPUT, POSTROUTING
}

// chainLine reads ":POSTROUTING ACCEPT [0:0]", "-P POSTROUTING ACCEPT" and "-N IP-MASQ".
func (s *saved) chainLine(name, policy string) {
	if s.guessed && (name == "PREROUTING" || name == "POSTROUTING") { // which the filter table has not
		s.table, s.guessed = s.rs.table(s.backend, "nat", !s.v6, s.v6), false
	}
	c := s.in().chain(name)
	if c.declared && !s.headed {
		c.around = "stands in the input more than once"
	}
	c.declared = true
	c.builtin()
	c.drops = policy == "DROP"
	if c.hook != NoHook && policy != "ACCEPT" && policy != "DROP" {
		c.cut = cutChain
	}
}

// in is the table that rules go to: nat where the input names none.
func (s *saved) in() *table {
	if s.table == nil {
		s.table = s.rs.table(s.backend, "nat", !s.v6, s.v6)
		s.commit, s.headed = true, false // iptables -S writes none
	}
	return s.table
}

// rule reads the options of a rule for a chain.
func (s *saved) rule(name string, opts []string, text string, line int, open bool) {
	c := s.in().chain(name)
	c.builtin()
	if c != s.last {
		s.before = s.last
		if s.gap != "" {
			c.lose(s.gap, line-1, unreadable)
			s.skipped = true
		}
	}
	s.last, s.at, s.gap = c, line, ""
	conditions, t := parseRule(opts)
	s.unfinished, s.bare = t.verdict == goOn && t.name == "", len(opts) == 0
	if open {
		c.lose(text, line, "is cut in the input, in the middle of a rule")
		s.commit = false // nothing behind it is there either
		s.rs.note(fmt.Sprintf("line %d is cut in the middle of a rule", line))
		return
	}
	if t.verdict == opaque && t.name == "" {
		c.lose(text, line, unreadable)
		return
	}
	if t.verdict == jump {
		// A name that is no chain of the table and that this tool does not know may be an extension: it is looked for when it is
		// met.
		t.name = strings.TrimSpace(t.name)
	}
	c.add(&rule{text: text, line: line, conditions: conditions, target: t})
}
