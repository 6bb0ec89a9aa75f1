package report

import (
	"cmp"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Redact replaces, in an evidence record, every address, every range, and every name of a Pod, a node, a Service or an interface
// by a pseudonym: the same one wherever it stands, numbered in the order of the record, so that the same captures always give
// the same pseudonyms, and none of them tells what it stands for. Digests, times, ports and frame numbers stay: with the
// captures at hand the record can be made and redacted again. It returns the original of each pseudonym.
func Redact(rec *Record) map[string]string {
	for i := range rec.Captures { // folders may be named after people and projects
		rec.Captures[i].File = baseName(rec.Captures[i].File)
	}
	for i, a := range rec.Tool.Args {
		if !strings.Contains(a, " ") && strings.ContainsAny(a, `/\`) {
			if _, err := netip.ParsePrefix(a); err != nil {
				label, file, ok := strings.Cut(a, "=")
				if !ok {
					label, file = "", a
				} else {
					label += "="
				}
				rec.Tool.Args[i] = label + baseName(file)
			}
		}
	}
	if rules := rec.Evidence.Rules; rules != nil {
		rules.Before.File, rules.After.File = baseName(rules.Before.File), baseName(rules.After.File)
	}
	for i := range rec.Evidence.ruleLines() { // their comments name Pods and Services
		lines := rec.Evidence.ruleLines()[i]
		for k := range lines {
			lines[k] = ruleComment.ReplaceAllString(lines[k], "--comment redacted")
		}
	}
	for i := range rec.Facts.Given {
		g := &rec.Facts.Given[i]
		g.Value = withoutFolder(g.Value)
	}
	for _, m := range []*Masquerade{rec.Facts.Masquerade, rec.Facts.Planned} {
		if m != nil {
			m.Read = withoutFolder(m.Read)
		}
	}
	for i := range rec.Rules {
		if p := rec.Rules[i].KernelPlace; p != nil {
			p.File = Maybe(baseName(string(p.File)))
			p.Rule = Maybe(ruleComment.ReplaceAllString(string(p.Rule), "--comment redacted"))
		}
	}
	r := redactor{pseudonym: make(map[string]string), original: make(map[string]string), count: make(map[string]int)}
	r.collect(rec)
	// In the order of what the captures give, and last what was typed: it may differ where the same record is made again.
	for _, part := range []any{&rec.Requests, rec.Evidence, &rec.Captures, &rec.Facts, &rec.Summary, &rec.Tool, &rec.Findings, &rec.Rules, &rec.Sources, &rec.Carriers} {
		r.walk(reflect.ValueOf(part).Elem(), "")
	}
	for i := range rec.Facts.Warnings {
		w := &rec.Facts.Warnings[i] // a sentence with any names of the cluster file in it
		w.Text, w.Names = w.Code+" ("+count(uint64(len(w.Names)), "name")+")", []string{}
	}
	rec.Evidence.Redacted = true
	rec.Evidence.Line = evidenceLine(rec)
	return r.original
}

// Unredact puts the originals back into a text, for --check.
func Unredact(text string, original map[string]string) string {
	return pseudonymWord.ReplaceAllStringFunc(text, func(word string) string { return cmp.Or(original[word], word) })
}

// pseudonymWord matches what Redact writes.
var pseudonymWord = regexp.MustCompile(`\b(?:pod|node|service|address|range|name|node-name|interface|request|filter)-[0-9]+\b`)

// withoutFolder takes the folder from a file's name that a value begins with. A range has none.
func withoutFolder(value string) string {
	file, rest, found := strings.Cut(value, ": ")
	if _, err := netip.ParsePrefix(file); err == nil {
		return value
	}
	if found {
		rest = ": " + rest
	}
	return baseName(file) + rest
}

type redactor struct {
	pseudonym map[string]string // by original
	original  map[string]string // by pseudonym
	count     map[string]int    // by kind
	names     *strings.Replacer // of names, longest first
	loose     []string          // names that cannot be told from a word of a sentence by themselves, longest first
}

// name gives an original its pseudonym.
func (r *redactor) name(kind, original string) string {
	if p, ok := r.pseudonym[original]; ok {
		return p
	}
	r.count[kind]++
	p := kind + "-" + strconv.Itoa(r.count[kind])
	r.pseudonym[original], r.original[p] = p, original
	return p
}

// factName finds the name in what says that an address is what it is: "status.podIP of default/web-1".
var factName = regexp.MustCompile(`(?:status|spec)\.[A-Za-z]+(?: InternalIP| ExternalIP)? of (?:node )?([^\s,;()]+)`)

// commonInterface is an interface's name that names no Pod and no host.
var commonInterface = regexp.MustCompile(`^(?:any|lo|if[0-9]+|(?:eth|ens|eno|cbr|cni|docker|tun|wg|bond|vxlan)[0-9]+|enp[0-9]+s[0-9]+)$`)

// collect names what the record says is a Pod's, a node's or a Service's.
func (r *redactor) collect(rec *Record) {
	e := rec.Evidence
	var names []string
	named := func(kind string, name Maybe) {
		if name == "" {
			return
		}
		r.name(kind, string(name))
		names = append(names, string(name))
	}
	end := func(p *Endpoint) {
		if p == nil {
			return
		}
		kind := "address"
		if p.Role == "pod" || p.Role == "node" || p.Role == "service" {
			kind = p.Role
		}
		r.name(kind, p.Addr)
		if p.Role == "node" {
			named("node-name", p.Name)
		}
		named("name", p.Name)
		named("node-name", p.Node)
		for _, m := range factName.FindAllStringSubmatch(string(p.Fact), -1) {
			named("name", Maybe(m[1]))
		}
	}
	for i := range rec.Requests {
		q := &rec.Requests[i]
		r.name("request", q.ID)
		for _, p := range []*Endpoint{&q.Client, q.Egress, q.Far, &q.Server, q.Backend, q.FarServer} {
			end(p)
		}
		for _, s := range q.Reasons {
			for _, m := range factName.FindAllStringSubmatch(s, -1) {
				named("name", Maybe(m[1]))
			}
		}
	}
	for i := range e.AlsoChanged {
		end(&e.AlsoChanged[i].Server)
	}
	for i := range e.Nodes {
		named("node-name", e.Nodes[i].Node)
	}
	for _, a := range e.OldAgents {
		named("name", Maybe(a.Pod))
		named("node-name", a.Node)
	}
	for i := range rec.Captures {
		c := &rec.Captures[i]
		named("node-name", c.Label)
		if c.Filter != nil && *c.Filter != "" {
			named("filter", Maybe(*c.Filter))
		}
		named("node-name", c.Node)
		for _, f := range c.Interfaces {
			if f.Name != "" && !commonInterface.MatchString(string(f.Name)) {
				named("interface", f.Name)
			}
		}
	}
	for i, a := range rec.Tool.Args {
		if i > 0 && strings.HasSuffix(rec.Tool.Args[i-1], "-filter") || i > 0 && rec.Tool.Args[i-1] == "--filter" {
			named("filter", Maybe(a))
		}
		for _, flag := range []string{"--filter=", "--near-filter=", "--far-filter="} {
			if expr, ok := strings.CutPrefix(a, flag); ok {
				named("filter", Maybe(expr))
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, n := range names {
		if !strings.Contains(n, " ") && (len(n) < 5 || !strings.ContainsAny(n, "0123456789-/.")) {
			r.loose = append(r.loose, n)
		} else {
			pairs = append(pairs, n, r.pseudonym[n])
		}
	}
	r.names = strings.NewReplacer(pairs...) // of names that begin alike, the first of the list is taken
}

// isSchemaWord tells whether a field's values are words of the schema, which a label may equal, or digests.
func isSchemaWord(field string) bool {
	switch field {
	case "SHA256", "Role", "FromRole", "Side", "Proto", "Source", "SourceBasis", "Outcome", "StoppedAt", "Direction", "RequestDirection", "ReplyDirection",
		"Leg", "What", "Verdict", "Format", "Field", "Reason", "Confidence", "ConnState", "History", "FilterBasis", "RolledBack", "Intent", "Code", "Version",
		"Tunnel", "Flag", "From", "To":
		return true
	}
	return false
}

// walk replaces all strings below a value, which is a field of that name.
func (r *redactor) walk(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.String:
		switch {
		case !isSchemaWord(field):
			v.SetString(r.textOf(v.String(), field))
		case field == "From" || field == "What": // an ICMP error's sender, or a leg; "ICMP host unreachable from 10.0.0.1", or "SYN"
			v.SetString(r.addresses(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			r.walk(v.Elem(), field)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			r.walk(v.Index(i), field)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				r.walk(v.Field(i), f.Name)
			}
		}
	default: // numbers; maps, whose keys are words of the schema
	}
}

// textOf is text for a field. Files are named after nodes.
func (r *redactor) textOf(s, field string) string {
	s = r.text(s)
	if field != "File" && field != "Args" && field != "Notes" {
		return s
	}
	for _, n := range r.loose {
		s = replaceName(s, n, r.pseudonym[n])
	}
	return s
}

// replaceName replaces a name where no letter or digit stands beside it.
func replaceName(s, old, with string) string {
	letter := func(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
	var b strings.Builder
	for at := 0; ; {
		i := strings.Index(s[at:], old)
		if i < 0 {
			b.WriteString(s[at:])
			return b.String()
		}
		i += at
		end := i + len(old)
		b.WriteString(s[at:i])
		if i > 0 && letter(s[i-1]) || end < len(s) && letter(s[end]) {
			b.WriteString(old)
		} else {
			b.WriteString(with)
		}
		at = end
	}
}

// ruleComment is a rule's comment, with the quotes that iptables-save puts around words.
var ruleComment = regexp.MustCompile(`--comment (?:"(?:[^"\\]|\\.)*"|\S+)`)

// ruleLines are the rules that the evidence quotes.
func (e *Evidence) ruleLines() [][]string {
	if e.Rules == nil {
		return nil
	}
	return [][]string{e.Rules.Removed, e.Rules.Added}
}

var (
	ipv4Text = regexp.MustCompile(`[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?`)
	// An IPv6 address has two colons at least; what else matches (a time, a MAC address) does not parse as one.
	ipv6Text = regexp.MustCompile(`[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:/[0-9]{1,3})?`)
)

// text replaces what is to be hidden in one string.
func (r *redactor) text(s string) string {
	if p, ok := r.pseudonym[s]; ok {
		return p
	}
	s = r.names.Replace(s)
	for _, n := range r.loose { // "a" is a word; "node a" and "a=FILE" are a name
		p := r.pseudonym[n]
		s = replaceWord(s, "node "+n, "node "+p)
		if rest, ok := strings.CutPrefix(s, n+"="); ok {
			s = p + "=" + rest
		}
	}
	return requestIDText.ReplaceAllStringFunc(r.addresses(s), func(id string) string { return cmp.Or(r.pseudonym[id], id) })
}

// addresses replaces the addresses and ranges of a text.
func (r *redactor) addresses(s string) string {
	for _, expr := range []*regexp.Regexp{ipv6Text, ipv4Text} {
		s = expr.ReplaceAllStringFunc(s, r.address)
	}
	return s
}

// requestIDText matches what looks like a request's id, which is a digest of its addresses: it could be found by trying all.
var requestIDText = regexp.MustCompile(`\b[0-9a-f]{12}\b`)

// replaceWord replaces old where it is not the beginning of a longer name.
func replaceWord(s, old, with string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, old)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		rest := s[i+len(old):]
		b.WriteString(s[:i])
		if rest != "" && (rest[0] == '-' || rest[0] == '_' || rest[0] >= '0' && rest[0] <= '9' || rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z') {
			b.WriteString(old)
		} else {
			b.WriteString(with)
		}
		s = rest
	}
}

// address replaces an address or a range; what does not parse as one stays.
func (r *redactor) address(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return r.name("address", a.String())
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		if p.IsSingleIP() {
			return r.name("address", p.Addr().String()) // iptables writes an address as 10.0.0.1/32
		}
		return r.name("range", p.String())
	}
	// "10.0.0.1/32" with a wrong length, or an address with a colon behind it.
	for _, cut := range []string{":", "."} {
		if rest, ok := strings.CutSuffix(text, cut); ok && rest != "" {
			return r.address(rest) + cut
		}
	}
	return text
}
