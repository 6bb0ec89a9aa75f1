package netfilter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// token is a word of nft's text.
type token struct {
	s      string
	quoted bool
	line   int
}

func (t token) is(s string) bool { return !t.quoted && t.s == s }

// nftTokens parts a line. Line ends and semicolons are tokens "\n"; a comment is one token that begins with #.
func nftTokens(line string, n int) []token {
	var out []token
	for i := 0; i < len(line); {
		c := line[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '"':
			end := strings.IndexByte(line[i+1:], '"')
			if end < 0 {
				end = len(line) - i - 1
			}
			out = append(out, token{line[i+1 : i+1+end], true, n})
			i = min(i+end+2, len(line))
		case c == '#':
			out = append(out, token{strings.TrimSpace(line[i:]), false, n})
			i = len(line)
		case c == ';':
			out = append(out, token{"\n", false, n})
			i++
		case strings.IndexByte("{},", c) >= 0:
			out = append(out, token{string(c), false, n})
			i++
		default:
			end := strings.IndexAny(line[i:], " \t\r{},;\"")
			if end < 0 {
				end = len(line) - i
			}
			out = append(out, token{line[i : i+end], false, n})
			i += end
		}
	}
	return append(out, token{"\n", false, n})
}

// nftReader reads one table.
type nftReader struct {
	rs    *Ruleset
	t     *table
	toks  []token
	at    int
	lines []string
	first int
}

// readNFT reads a table that begins in the first of some lines, and returns how many lines it has.
func (rs *Ruleset) readNFT(lines []string, first int) (used int, err error) {
	r := &nftReader{rs: rs, lines: lines, first: first}
	depth := 0
	for n, line := range lines {
		if len(line) > maxLine {
			return 0, fmt.Errorf("line %d: longer than %d bytes, which is no rule", first+n, maxLine)
		}
		toks := nftTokens(line, first+n)
		r.toks = append(r.toks, toks...)
		for _, t := range toks {
			switch {
			case t.is("{"):
				depth++
			case t.is("}"):
				depth--
			}
		}
		used = n + 1
		if depth == 0 {
			break
		}
	}
	w := strings.Fields(lines[0])
	t, matters := rs.nftTable(w[1], strings.Trim(w[2], `"`))
	if !matters {
		return used, nil
	}
	if len(t.chains) > 0 && t.listed {
		rs.note("table " + t.name + " stands in the input more than once")
	}
	r.t, t.listed = t, true
	r.at = 4 // table FAMILY NAME {
	for r.at < len(r.toks) {
		switch tok := r.next(); {
		case tok.is("\n") || strings.HasPrefix(tok.s, "#"):
		case tok.is("}"):
			return used, nil
		case tok.is("chain"):
			r.chain()
		case tok.is("flags"):
			for !r.peek().is("\n") && !r.peek().is("}") {
				t.dormant = strings.Contains(r.next().s, "dormant") || t.dormant
			}
		case tok.is("set"), tok.is("map"):
			r.set(tok.s == "map")
		default: // a counter, a flowtable, a comment
			r.skip()
		}
	}
	rs.note("table " + t.name + " is cut: what stands behind the cut is not known")
	rs.cut = "table " + t.name + " is cut in the input: chains behind the cut may translate too"
	for _, c := range t.order {
		if c.hook == NoHook && len(c.rules) == 0 && !c.declared {
			c.cut = "is cut in the input"
		}
	}
	return used, nil
}

func (r *nftReader) next() token {
	if r.at >= len(r.toks) {
		return token{s: "\n"}
	}
	r.at++
	return r.toks[r.at-1]
}

func (r *nftReader) peek() token {
	if r.at >= len(r.toks) {
		return token{s: "\n"}
	}
	return r.toks[r.at]
}

// skip leaves out a statement with its block.
func (r *nftReader) skip() {
	depth := 0
	for r.at < len(r.toks) {
		switch tok := r.next(); {
		case tok.is("{"):
			depth++
		case tok.is("}"):
			if depth--; depth == 0 {
				return
			}
			if depth < 0 {
				r.at--
				return
			}
		case tok.is("\n") && depth == 0:
			return
		}
	}
}

// chain reads "chain NAME { ... }", NAME being next.
func (r *nftReader) chain() {
	c := r.t.chain(r.next().s)
	if c.declared {
		c.around = "stands in the input more than once"
	}
	c.declared = true
	for !r.peek().is("{") {
		if r.at >= len(r.toks) {
			c.cut = "is cut in the input"
			return
		}
		r.next()
	}
	r.next()
	for r.at < len(r.toks) {
		tok := r.peek()
		switch {
		case tok.is("\n"):
			r.next()
			continue
		case tok.is("}"):
			r.next()
			return
		}
		line := r.statement()
		switch {
		case len(line) == 0:
		case line[0].is("type"):
			r.header(c, line)
		case line[0].is("policy"):
			c.drops = len(line) > 1 && line[1].is("drop")
		case line[0].is("comment"), strings.HasPrefix(line[0].s, "# handle"):
		default:
			for _, part := range r.rule(line) {
				c.add(part)
			}
		}
	}
	c.cut = cutChain
	c.cutTarget()
}

// statement takes the tokens up to the end of the line, over the lines of a block in it. What nft says of a target that it does
// not know stands on the next line.
func (r *nftReader) statement() []token {
	var out []token
	depth := 0
	for r.at < len(r.toks) {
		tok := r.peek()
		switch {
		case tok.is("\n"):
			r.next()
			if depth > 0 {
				continue
			}
			if n := len(out); n > 0 && strings.HasPrefix(out[n-1].s, "# Warning: XT ") && r.peek().is("xt") {
				out = out[:n-1]
				continue
			}
			return out
		case tok.is("{"):
			depth++
		case tok.is("}"):
			if depth--; depth < 0 {
				return out
			}
		}
		out = append(out, r.next())
	}
	return out
}

// header reads "type nat hook postrouting priority srcnat + 5".
func (r *nftReader) header(c *chain, line []token) {
	for i := 0; i+1 < len(line); i++ {
		switch v := line[i+1].s; line[i].s {
		case "type":
			c.nat = v == "nat"
		case "hook":
			c.hook, _ = nftHook(v)
		case "priority":
			n, ok := nftPriority(v)
			if !ok {
				c.around = "has a priority that this tool does not know"
			}
			if i+3 < len(line) {
				more, _ := nftPriority(line[i+3].s)
				switch line[i+2].s {
				case "+":
					n += more
				case "-":
					n -= more
				}
			}
			c.priority = n
		}
	}
}

// set reads "set NAME { type ...; elements = { ... } }", NAME being next.
func (r *nftReader) set(isMap bool) {
	name := r.next().s
	s := &nftSet{}
	if r.rs.nftSets == nil {
		r.rs.nftSets = make(map[string]*nftSet)
	}
	r.rs.nftSets[nftSetName(r.t, name)] = s
	r.next() // {
	for r.at < len(r.toks) {
		switch tok := r.next(); {
		case tok.is("}"):
			return
		case tok.is("flags"):
			for !r.peek().is("\n") && !r.peek().is("}") {
				s.odd = nftChanges(r.next().s) || s.odd
			}
		case tok.is("elements"):
			r.next() // =
			if !r.next().is("{") {
				s.odd = true
				return
			}
			elements, closed := r.elements()
			s.odd = s.odd || !closed
			for _, words := range elements {
				if isMap {
					s.add(mapElement(words))
				} else {
					s.items = append(s.items, itemOf(words))
				}
			}
		}
	}
	s.odd = true
}

// elements reads the words of each element of a block whose { was read.
func (r *nftReader) elements() (out [][]token, closed bool) {
	var words []token
	end := func() {
		if len(words) > 0 {
			out = append(out, words)
			words = nil
		}
	}
	for r.at < len(r.toks) {
		switch tok := r.next(); {
		case tok.is("}"):
			end()
			return out, true
		case tok.is(","):
			end()
		case tok.is("\n") || strings.HasPrefix(tok.s, "#"):
		case tok.is("{"):
			return out, false
		default:
			words = append(words, tok)
		}
	}
	return out, false
}

// items reads the values of a block whose { was read.
func (r *nftReader) items() (out []nftItem, closed bool) {
	elements, closed := r.elements()
	for _, words := range elements {
		out = append(out, itemOf(words))
	}
	return out, closed
}

// mapElement reads "10.0.0.1 . tcp . 80 : goto CHAIN"; ok is false where what stands behind the colon is no verdict.
func mapElement(words []token) (key nftItem, t target, ok bool) {
	at := slices.IndexFunc(words, func(t token) bool { return t.is(":") })
	if at < 0 || at+1 == len(words) {
		t, ok = mapVerdict("", "")
		return itemOf(words), t, ok
	}
	t, ok = mapVerdict(words[at+1].s, words[len(words)-1].s)
	return itemOf(words[:at]), t, ok
}

// mapVerdict is the verdict of a map's element; chain is that of a jump.
func mapVerdict(word, chain string) (target, bool) {
	switch word {
	case "jump":
		return target{verdict: jump, name: chain}, true
	case "goto":
		return target{verdict: jumpAway, name: chain}, true
	case "continue":
		return target{verdict: goOn, name: word}, true
	case "accept", "drop", "return":
		return nftTarget(word)
	}
	return target{verdict: opaque, name: cmp.Or(word, "an element without a verdict")}, word == "queue"
}

// itemOf reads "10.0.0.1 . tcp . 80 timeout 1h".
func itemOf(words []token) nftItem {
	var item nftItem
	for i := 0; i < len(words); i++ {
		item.parts = append(item.parts, partOf(words[i]))
		if i+1 >= len(words) || !words[i+1].is(".") {
			break
		}
		i++
	}
	return item
}

// partOf reads a value: "10.0.0.0/8", "10.0.0.5-10.0.0.9", "1000-2000", "tcp", "eth0".
func partOf(t token) nftPart {
	if t.quoted {
		return nftPart{from: t.s}
	}
	if from, to, ok := strings.Cut(t.s, "-"); ok && from != "" && to != "" && (unicode.IsDigit(rune(from[0])) || strings.Contains(from, ":")) {
		return nftPart{from, to}
	}
	return nftPart{from: t.s}
}

// rule reads a rule's tokens. It is more than one rule where it changes the packet before it asks for more, see nftRule.when.
func (r *nftReader) rule(toks []token) []*rule {
	out := &rule{line: toks[0].line}
	if n := out.line - r.first; n >= 0 && n < len(r.lines) {
		out.text = strings.Join(strings.Fields(r.lines[n]), " ")
		if strings.HasPrefix(out.text, "chain ") || strings.Count(out.text, "}") != strings.Count(out.text, "{") { // more than the rule is on the line
			out.text = strings.TrimSpace(textOf(slices.DeleteFunc(slices.Clone(toks), func(t token) bool { return t.is("\n") })))
		}
	}
	p := &nftRule{t: r.t, toks: toks}
	p.read()
	out.lost = p.lost
	return p.rules(out)
}

// nftRule reads one rule.
type nftRule struct {
	t          *table
	toks       []token
	at         int
	conditions []condition
	ofMark     []bool // of each: it asks for a mark, or may
	mark       func(mark, connection bits) (bits, bits)
	rewrites   bool // it puts other addresses or ports in the packet
	target     target
	lost       string // why it is no rule
	before     []rule // what it does before it asks for more
}

// when adds a condition. nft works off a rule from left to right: what a rule has changed by then is changed whether or not the packet
// meets the condition, which asks for the packet as it is now (net/netfilter/nf_tables_core.c, nft_do_chain).
func (p *nftRule) when(c condition, mark bool) {
	if p.mark != nil || p.rewrites {
		p.before = append(p.before, p.done(target{}))
		for i, mark := range p.ofMark {
			if mark { // it was asked for before the mark changed
				p.conditions[i] = unknown(p.conditions[i].text, "")
			}
		}
		p.mark, p.rewrites = nil, false
	}
	p.conditions, p.ofMark = append(p.conditions, c), append(p.ofMark, mark)
}

// done is what was read so far as a rule of its own.
func (p *nftRule) done(t target) rule {
	t.mark = p.mark
	if p.rewrites {
		t.verdict, t.name = opaque, cmp.Or(t.name, "a rule that puts other addresses or ports in the packet")
	}
	return rule{conditions: slices.Clone(p.conditions), target: t}
}

// rules are the rules that it comes to, with what is known of it as a whole.
func (p *nftRule) rules(whole *rule) (out []*rule) {
	all := p.before
	if last := p.done(p.target); len(all) == 0 || last.target.verdict != goOn || last.target.mark != nil {
		all = append(all, last)
	}
	for _, r := range all {
		r.text, r.line, r.lost = whole.text, whole.line, whole.lost
		out = append(out, &r)
	}
	return out
}

func (p *nftRule) next() token {
	if p.at >= len(p.toks) {
		return token{s: ""}
	}
	p.at++
	return p.toks[p.at-1]
}

func (p *nftRule) peek() token {
	if p.at >= len(p.toks) {
		return token{s: ""}
	}
	return p.toks[p.at]
}

func textOf(toks []token) string {
	var b strings.Builder
	for i, t := range toks {
		if i > 0 && !t.is(",") {
			b.WriteByte(' ')
		}
		if t.quoted {
			b.WriteString(`"` + t.s + `"`)
		} else {
			b.WriteString(t.s)
		}
	}
	return b.String()
}

func (p *nftRule) read() {
	for p.at < len(p.toks) {
		from := p.at
		tok := p.next()
		if t, ok := nftTarget(tok.s); ok && !tok.quoted {
			p.verdict(t)
			continue
		}
		switch tok.s {
		case "counter":
			for p.peek().is("packets") || p.peek().is("bytes") || p.peek().is("name") {
				p.next()
				p.next()
			}
		case "comment":
			p.next()
		case "continue":
		case "jump", "goto":
			if p.peek().is("{") { // a chain without a name
				p.block()
				p.target = target{verdict: opaque, name: "a chain within the rule"}
				continue
			}
			p.target = target{verdict: jump, name: p.next().s}
			if tok.s == "goto" {
				p.target.verdict = jumpAway
			}
		case "log":
			p.options("prefix", "group", "level", "snaplen", "queue-threshold", "flags")
		case "xt":
			kind, name := p.next(), p.next()
			if kind.s == "target" {
				p.xtTarget(name.s)
				continue
			}
			if name.s != "comment" { // asks for nothing
				p.when(unknown(textOf(p.toks[from:p.at]), "iptables-save, which prints what nft hides of this rule"), true)
			}
		case "limit", "quota":
			p.resync(from)
		case "":
		default:
			if nftMatches(tok.s) && !tok.quoted {
				p.at = from
				p.expression()
				continue
			}
			if strings.HasPrefix(tok.s, "#") {
				p.hidden(tok)
				continue
			}
			p.resync(from)
			if from == 0 && p.at == len(p.toks) && !nftBegins(tok.s) { // no rule at all
				p.lost = unreadable
			}
		}
	}
}

// nftMatches tells whether a word begins a comparison or the setting of a field.
func nftMatches(word string) bool {
	switch word {
	case "meta", "ct", "ip", "ip6", "tcp", "udp", "th", "sctp", "udplite", "icmp", "icmpv6", "fib", "iif", "oif", "iifname", "oifname", "mark":
		return true
	}
	return false
}

// nftBegins tells whether a rule without a verdict may begin with a word that is not read (nft(8)).
func nftBegins(word string) bool {
	switch word {
	case "add", "ah", "arp", "comp", "dccp", "delete", "dst", "esp", "ether", "exthdr", "flow", "frag", "gre", "hbh",
		"igmp", "ipsec", "jhash", "last", "mh", "numgen", "osf", "reset", "rt", "sctp", "socket", "symhash", "update", "vlan":
		return true
	}
	return false
}

// options leaves out the options of a statement.
func (p *nftRule) options(names ...string) {
	for {
		known := false
		for _, n := range names {
			known = known || p.peek().is(n)
		}
		if !known {
			return
		}
		p.next()
		p.next()
	}
}

// hidden reads what nft prints as a comment: the match of an extension that it does not know, with the rule going on behind it.
func (p *nftRule) hidden(tok token) {
	body := strings.TrimSpace(strings.TrimPrefix(tok.s, "#"))
	if strings.HasPrefix(body, "handle ") {
		return
	}
	match, rest := body, ""
	if i := strings.Index(body, "counter "); i >= 0 {
		match, rest = strings.TrimSpace(body[:i]), body[i:]
	}
	p.when(unknown("# "+match, "iptables-save, which prints what nft hides of this rule"), true)
	if rest == "" {
		p.target = target{verdict: opaque, name: "what follows " + match}
		return
	}
	more := nftTokens(rest, tok.line)
	p.toks = append(p.toks[:p.at:p.at], append(more[:len(more)-1], p.toks[p.at:]...)...)
}

// resync makes a condition of what is not known, up to the next word that can only begin a statement.
func (p *nftRule) resync(from int) {
	sets := false
	for p.at < len(p.toks) {
		tok := p.peek()
		_, verdict := nftTarget(tok.s)
		if !tok.quoted && (verdict || tok.is("counter") || tok.is("jump") || tok.is("goto") || tok.is("log") || tok.is("comment") || tok.is("continue") || tok.is("xt")) {
			break
		}
		if tok.is("vmap") { // of a key that is not known any element may be met
			p.vmap(from, nftMatch{odd: true})
			return
		}
		sets = sets || tok.is("set") || tok.is("map") || tok.is("{")
		p.next()
	}
	text := textOf(p.toks[from:p.at])
	p.when(unknown(text, ""), true)
	if sets {
		p.mark = anyMark
	}
}

// verdict reads what belongs to a verdict.
func (p *nftRule) verdict(t target) {
	from := p.at
	for p.at < len(p.toks) {
		tok := p.peek()
		if tok.is("comment") || tok.is("counter") {
			break
		}
		p.next()
		switch {
		case tok.is("random"), tok.is("fully-random"), strings.HasPrefix(tok.s, "random,"), strings.HasPrefix(tok.s, "fully-random,"), strings.HasPrefix(tok.s, ":"):
			t.random = true
		case tok.is("to") && t.name == "snat":
			t.to = strings.TrimSuffix(p.peek().s, ",")
		}
	}
	if toks := p.toks[from:p.at]; slices.ContainsFunc(toks, func(t token) bool { return t.is("map") }) { // what is in no map is not translated
		t.to = ""
		p.when(unknown(textOf(toks), ""), false)
	}
	p.target = t
}

// left reads the field of a comparison.
func (p *nftRule) left() (field string, ok bool) {
	tok := p.next()
	switch tok.s {
	case "iif", "oif", "iifname", "oifname", "mark":
		return "meta " + tok.s, true
	case "meta", "ct", "ip", "ip6", "tcp", "udp", "th", "sctp", "udplite", "icmp", "icmpv6":
		return tok.s + " " + p.next().s, true
	case "fib":
		dir, kind := p.next().s, p.next().s
		return "fib " + dir + " " + kind, dir == "daddr" || dir == "saddr"
	}
	return tok.s, false
}

func operator(t token) string {
	if t.quoted {
		return ""
	}
	switch t.s {
	case "&", "and":
		return "&"
	case "|", "or":
		return "|"
	case "^", "xor":
		return "^"
	}
	return ""
}

// expression reads a comparison, or the statement that sets a mark.
func (p *nftRule) expression() {
	from := p.at
	m := nftMatch{}
	for {
		field, ok := p.left()
		m.fields = append(m.fields, field)
		m.odd = m.odd || !ok
		if !p.peek().is(".") {
			break
		}
		p.next()
	}
	field := m.fields[0]
	if p.peek().is("set") {
		p.next()
		p.setMark(field)
		return
	}
	if p.peek().is("vmap") {
		p.vmap(from, m)
		return
	}
	if op := operator(p.peek()); op == "&" && (field == "meta mark" || field == "ct mark") {
		p.next()
		v, ok := number32(p.next().s)
		if m.mask, m.odd = &v, m.odd || !ok; p.peek().is("vmap") {
			p.vmap(from, m)
			return
		}
	} else if op != "" && field != "tcp flags" {
		p.resync(from)
		return
	}
	switch tok := p.peek(); {
	case tok.is("!="), tok.is("!"): // "ct state ! established" is how some versions print it
		m.not = true
		p.next()
	case tok.is("=="):
		p.next()
	case tok.is("<"), tok.is(">"), tok.is("<="), tok.is(">="):
		p.resync(from)
		return
	}
	if field == "tcp flags" {
		if slices.ContainsFunc(p.toks[p.at:], func(t token) bool { return t.is("vmap") }) { // by some of the flags
			p.resync(from)
			return
		}
		p.flags(from, m.not)
		return
	}
	switch tok := p.next(); {
	case strings.HasPrefix(tok.s, "@") && !tok.quoted:
		m.set = nftSetName(p.t, tok.s[1:])
	case tok.is("{"):
		sub := &nftReader{toks: p.toks, at: p.at}
		items, closed := sub.items()
		p.at = sub.at
		m.values, m.odd = items, m.odd || !closed
	default:
		words := []token{tok}
		for p.peek().is(".") {
			words = append(words, p.next(), p.next())
		}
		if len(words) > 1 {
			m.values = []nftItem{itemOf(words)}
			break
		}
		m.values = []nftItem{{[]nftPart{partOf(tok)}}}
		for p.peek().is(",") { // ct state established,new
			p.next()
			m.values = append(m.values, nftItem{[]nftPart{partOf(p.next())}})
		}
	}
	m.text = textOf(p.toks[from:p.at])
	p.when(m.condition(), m.ofMark())
}

// vmap reads "vmap @NAME" or "vmap { KEY : VERDICT, ... }", behind the key.
func (p *nftRule) vmap(from int, key nftMatch) {
	p.next()
	look := &nftLookup{key: key}
	switch tok := p.next(); {
	case strings.HasPrefix(tok.s, "@") && !tok.quoted:
		look.of = nftSetName(p.t, tok.s[1:])
	case tok.is("{"):
		sub := &nftReader{toks: p.toks, at: p.at}
		elements, closed := sub.elements()
		for _, words := range elements {
			look.own.add(mapElement(words))
		}
		p.at, look.own.odd = sub.at, look.own.odd || !closed
	default:
		look.own.odd = true
	}
	look.key.text = textOf(p.toks[from:p.at])
	p.looksUp(look)
}

// looksUp has the rule do what a map says. What stands behind the lookup is for packets whose element says continue: which those are, is
// not told apart there.
func (p *nftRule) looksUp(look *nftLookup) {
	p.when(unknown(look.key.text, "nft list ruleset, which has the map's elements"), look.key.ofMark())
	asks := p.done(target{verdict: opaque, name: "vmap"})
	asks.lookup = look
	p.before = append(p.before, asks)
}

// block leaves out a value: a word, or a block.
func (p *nftRule) block() {
	if !p.next().is("{") {
		return
	}
	for depth := 1; depth > 0 && p.at < len(p.toks); {
		switch tok := p.next(); {
		case tok.is("{"):
			depth++
		case tok.is("}"):
			depth--
		}
	}
}

// flags reads the rest of a comparison of TCP's flags: "syn", "syn / fin,syn,rst,ack", "& (fin | syn) == syn".
func (p *nftRule) flags(from int, not bool) {
	list := func() (out []string) {
		for {
			out = append(out, strings.Trim(p.next().s, "()"))
			if !p.peek().is(",") {
				return out
			}
			p.next()
		}
	}
	var c condition
	if operator(p.peek()) == "&" {
		p.next()
		var mask []string
		for p.at < len(p.toks) && !p.peek().is("==") && !p.peek().is("!=") {
			for s := range strings.SplitSeq(strings.Trim(p.next().s, "()"), "|") {
				if s != "" && s != "," {
					mask = append(mask, s)
				}
			}
		}
		not = p.next().is("!=")
		c = tcpFlags("", mask, list(), false)
	} else {
		set := list()
		if p.peek().is("/") {
			p.next()
			c = tcpFlags("", list(), set, false)
		} else {
			c = tcpFlags("", nil, set, true)
			if not { // "!= syn" compares all of them
				c = tcpFlags("", []string{"ALL"}, set, false)
			}
		}
	}
	text := textOf(p.toks[from:p.at])
	if not {
		c = c.not()
	}
	c.text = text
	p.when(all(text, onProtocol(text, 6), c), false)
}

// setMark reads what a mark is set to.
func (p *nftRule) setMark(field string) {
	if field != "meta mark" && field != "ct mark" {
		p.rewrites = p.rewrites || rewritten(field)
		from := p.at
		if !nftMatches(p.next().s) {
			for op := operator(p.peek()); op != ""; op = operator(p.peek()) {
				p.next()
				p.next()
			}
			return
		}
		p.resync(from) // it is computed of other fields: where the value ends is not known
		return
	}
	known, from := true, ""
	var ops []nftMarkOp
	tok := p.next()
	switch tok.s {
	case "meta", "ct":
		from = tok.s + " " + p.next().s
		known = from == "meta mark" || from == "ct mark"
	case "mark":
		from = "meta mark"
	default:
		if nftMatches(tok.s) || tok.is("numgen") || tok.is("jhash") || tok.is("symhash") { // where the value ends is not known
			p.resync(p.at - 1)
			p.setsMark(anyMark)
			return
		}
		v, ok := number32(tok.s)
		known = ok
		ops = append(ops, nftMarkOp{"", v})
	}
	for {
		op := operator(p.peek())
		if op == "" {
			break
		}
		// Of CONNMARK's two masks what is printed for iptables' rules shows one, in words: "meta mark set ct mark and 0xff".
		lossy := p.next().s == "and" && from != "" && from != field
		v, ok := number32(p.next().s)
		known = known && ok && !lossy
		ops = append(ops, nftMarkOp{op, v})
	}
	p.setsMark(nftMark(field == "ct mark", from, ops, known))
}

// setsMark adds a mark to those that the rule sets, one after the other.
func (p *nftRule) setsMark(f func(mark, connection bits) (bits, bits)) {
	if before := p.mark; before != nil {
		p.mark = func(m, c bits) (bits, bits) { return f(before(m, c)) }
		return
	}
	p.mark = f
}

func (p *nftRule) xtTarget(name string) {
	t := xtTarget(name)
	if t.mark != nil {
		p.setsMark(t.mark)
		return
	}
	p.target = t
}
