package report

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// findings writes what was observed and how it reads, and tells whether any of it is worth a look. Findings that say the
// same of several destinations are told once.
func (p *page) findings(rec *Record) (severe bool) {
	type block struct {
		first    *Finding
		observed []string
		requests uint64
		like     uint64 // further findings in it
		differ   bool   // their next steps are not the first's
		hidden   uint64 // of them, how many observations are not shown
	}
	var blocks []*block
	at := make(map[string]*block)
	for _, f := range bySeverity(rec.Findings) {
		severe = severe || f.Severity > 0
		key := strings.Join(append([]string{f.Code, f.Title}, f.Reading...), "\x00")
		b := at[key]
		if b == nil {
			b = &block{first: f, observed: f.Observed}
			at[key] = b
			blocks = append(blocks, b)
		} else {
			b.like++
			b.differ = b.differ || !slices.Equal(f.Next, b.first.Next)
			if b.like < maxLike || p.opt.ShowAll || p.opt.Verbose {
				b.observed = union(b.observed, f.Observed)
			} else {
				b.hidden++
			}
		}
		b.requests += uint64(len(f.Requests))
	}
	for i, b := range blocks {
		p.blank()
		if i == maxFindings && !p.opt.ShowAll && !p.opt.Verbose {
			p.paragraph(0, count(uint64(len(blocks)-i), "more finding")+" not shown: --all or -o json", nil)
			break
		}
		title := Escape(b.first.Title)
		if b.requests > 1 {
			title = strings.TrimSuffix(title, ".") + " (" + count(b.requests, "request") + ")."
		}
		p.paragraph(0, title, p.strong)
		p.labelled("observed", b.observed)
		if b.hidden > 0 {
			p.labelled("", []string{"and the same of " + count(b.hidden, "more destination") + ": --all or -o json"})
		}
		p.labelled("reads as", b.first.Reading)
		p.steps(labelHead("next"), b.first.Next)
		for _, s := range b.first.Next {
			p.told[toldBy(s)] = true
		}
		if b.differ {
			p.labelled("", []string{"the steps for the other destinations are alike: -o json"})
		}
		if isCode(b.first.Code) {
			p.steps(labelHead("more"), []string{"  srcproof explain " + b.first.Code})
		}
	}
	if len(rec.Findings) == 0 && allAnswered(rec) {
		p.blank()
		if n := rec.total(); n == 1 {
			p.paragraph(0, "No findings: the request was answered.", p.strong)
		} else {
			p.paragraph(0, "No findings: "+all(n, "request")+" were answered.", p.strong)
		}
	}
	return severe
}

// bySeverity returns the findings, the most severe first.
func bySeverity(list []Finding) []*Finding {
	out := make([]*Finding, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	slices.SortStableFunc(out, func(a, b *Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return out
}

// isCode tells whether a finding's code can stand in a command. One out of a saved record may be anything.
func isCode(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != "" && s[0] != '-' && len(s) <= 40
}

// toldBy is what two steps have in common if one of them is enough: the command, or a sentence without one.
func toldBy(step string) string {
	prose, command := splitCommand(step)
	if command != "" {
		return command
	}
	return prose
}

// union appends to a what of b it does not hold, without changing a.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func allAnswered(rec *Record) bool {
	return !slices.ContainsFunc(rec.Requests, func(r Request) bool {
		return r.Outcome != "handshake-completed" && r.Outcome != "answered" && r.Outcome != "midstream"
	})
}

// examples tells of a few requests, or of every one if asked, what carries the verdict: the translation first, since
// that is what people come for. Where a finding is severe it is the answer, and examples would only stand in its way.
func (p *page) examples(rec *Record, rs []row, severe bool) {
	if p.opt.Verbose {
		for i := range rec.Requests {
			p.example(rec, &rec.Requests[i], 1)
		}
		return
	}
	if severe {
		return
	}
	alike := make(map[verdict]uint64)
	for i := range rs {
		alike[rs[i].verdict] += rs[i].count
	}
	order := slices.Clone(rs)
	slices.SortStableFunc(order, func(a, b row) int {
		return boolOrder(translated(&rec.Requests[b.first]), translated(&rec.Requests[a.first]))
	})
	shown := make(map[verdict]bool)
	for i := range order {
		if v := order[i].verdict; len(shown) < maxExamples && !shown[v] {
			shown[v] = true
			p.example(rec, &rec.Requests[order[i].first], alike[v])
		}
	}
}

// boolOrder compares: false comes before true.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// translated tells whether the request left the node with another source or another destination.
func translated(r *Request) bool {
	return differs(r.Egress, &r.Client) || differs(r.Backend, &r.Server)
}

func differs(after, before *Endpoint) bool {
	return after != nil && (after.Addr != before.Addr || !samePort(after.Port, before.Port))
}

func samePort(a, b *uint16) bool { return a == nil || b == nil || *a == *b }

// example tells of one request of several that are alike.
func (p *page) example(rec *Record, r *Request, alike uint64) {
	r = rec.whole(r)
	p.blank()
	title := tupleWords(r) + ": " + verdictWord("source", r.Source) + ", " + verdictWord("outcome", r.Outcome)
	if stops(r.StoppedAt) {
		title += ", stopped at " + word(r.StoppedAt)
	}
	if alike > 1 {
		title += " (1 of " + number(alike) + " alike)"
	}
	p.paragraph(0, title, p.strong)
	if r.Egress != nil {
		p.labelled("left as", []string{egressLine(r)})
	}
	if differs(r.Backend, &r.Server) {
		p.labelled("sent to", []string{endpointWords(r.Backend) + ", in place of " + endpointWords(&r.Server)})
	}
	if r.Far != nil {
		p.labelled("far saw", []string{endpointWords(r.Far)})
	}
	if r.ICMP != nil {
		p.labelled("rejected", []string{
			"ICMP " + r.ICMP.Text + " from " + r.ICMP.From + inParentheses(roleWords(r.ICMP.FromRole, string(r.ICMP.FromName), true, false, false, maxName)),
		})
	}
	p.labelled("because", r.Reasons)
	if s := p.frames(rec, r); s != "" {
		p.labelled("frames", []string{s})
	}
	p.labelled("counts", []string{p.countsLine(r)})
}

// verdictWord is a verdict's word in a sentence, where "unknown" alone would not say what is.
func verdictWord(field, s string) string {
	if s == "unknown" {
		return field + " unknown"
	}
	return word(s)
}

// tupleWords names a request as --request takes it.
func tupleWords(r *Request) string {
	s := word(r.Proto) + " " + address(addrPort(r.Client.Addr, r.Client.Port)) + " > " + address(addrPort(r.Server.Addr, r.Server.Port))
	if r.EchoID != nil {
		s += " id " + strconv.Itoa(int(*r.EchoID))
	}
	return s
}

func endpointWords(e *Endpoint) string {
	return address(addrPort(e.Addr, e.Port)) + inParentheses(roleWords(e.Role, string(e.Name), e.Exact, e.HostNetwork, e.Reused, maxName))
}

func egressLine(r *Request) string {
	s := endpointWords(r.Egress)
	i := slices.IndexFunc(r.Legs, func(l Leg) bool { return l.Leg == "egress" && l.EchoID != nil })
	if i >= 0 && r.EchoID != nil && *r.Legs[i].EchoID != *r.EchoID {
		s += " id " + strconv.Itoa(int(*r.Legs[i].EchoID))
	}
	switch {
	case differs(r.Egress, &r.Client):
		return s + ", translated on the node"
	case r.Source == "node-snated", r.Source == "other-snated":
		return s + ", translated on the node; the source before it is not in the capture"
	case r.Source == "node-own":
		return s + ", the node's own, seen after any translation" // what the node sends passes masquerade as well, before the capture
	case r.Source == "unknown":
		return s
	}
	return s + ", untranslated"
}

func (p *page) countsLine(r *Request) string {
	parts := []string{"listed by conntrack, which does not count packets here"}
	if r.counted() {
		parts = []string{count(r.RequestsSent, "packet") + " sent", count(r.RepliesSeen, "packet") + " back"}
	}
	if r.Retransmissions > 0 {
		parts = append(parts, count(r.Retransmissions, "retransmission"))
	}
	if r.Handshake != nil {
		parts = append(parts, "handshake "+duration(*r.Handshake))
	}
	if r.ConnState != "" && (p.opt.Verbose || p.opt.ShowAll) { // for those who compare with Zeek's logs
		parts = append(parts, "Zeek "+string(r.ConnState)+" "+string(r.History))
	}
	return strings.Join(parts, ", ")
}

// frames writes the packets that show a request as "SYN 3 In if7, 9 Out if2; SYN-ACK 10 In if2", per capture.
func (p *page) frames(rec *Record, r *Request) string {
	var b strings.Builder
	for i := range r.Frames {
		if i == maxFrames && !p.opt.Verbose {
			b.WriteString("; and " + count(uint64(len(r.Frames)-i), "more frame") + ": -o json")
			break
		}
		f := &r.Frames[i]
		newCapture := len(rec.Captures) > 1 && (i == 0 || f.Capture != r.Frames[i-1].Capture)
		switch {
		case i == 0:
		case newCapture || f.What != r.Frames[i-1].What:
			b.WriteString("; ")
		default:
			b.WriteString(", ")
		}
		if newCapture && f.Capture >= 0 && f.Capture < len(rec.Captures) {
			b.WriteString(cutMiddle(rec.Captures[f.Capture].File, maxName) + ": ")
		}
		if i == 0 || newCapture || f.What != r.Frames[i-1].What {
			b.WriteString(f.What + " ")
		}
		b.WriteString(strconv.FormatUint(f.Frame, 10))
		switch f.Direction {
		case "in":
			b.WriteString(" In")
		case "out":
			b.WriteString(" Out")
		}
		if f.Interface != "" {
			b.WriteString(" " + cutMiddle(string(f.Interface), 20))
		}
	}
	return b.String()
}

// An unknownGroup is what the captures do not carry for one reason, in its variants.
type unknownGroup struct {
	field, reason string
	count         uint64
	variants      []*unknownVariant
}

// An unknownVariant is one text and one way to settle it. Texts that differ only in addresses are one variant.
type unknownVariant struct {
	text, settle string // the first of them
	words        []string
	count        uint64
	first        int      // index of the first request
	others       distinct // the addresses in the place of the first text's
	list         []string // the first of others
}

// unknownKey is what is the same in all texts of a variant.
type unknownKey struct{ field, reason, text, settle string }

// groupUnknowns groups what is unknown of all requests.
func groupUnknowns(rec *Record) []*unknownGroup {
	const maxExact = 4096 // texts that are remembered as they are, for speed
	var groups []*unknownGroup
	at := make(map[[2]string]*unknownGroup)
	like := make(map[unknownKey]*unknownVariant)
	exact := make(map[unknownKey]*unknownVariant)
	for i := range rec.Requests {
		n := rec.Requests[i].n()
		for _, u := range rec.Requests[i].Unknown {
			g := at[[2]string{u.Field, u.Reason}]
			if g == nil {
				g = &unknownGroup{field: u.Field, reason: u.Reason}
				at[[2]string{u.Field, u.Reason}] = g
				groups = append(groups, g)
			}
			g.count += n
			key := unknownKey{u.Field, u.Reason, u.Text, string(u.Settle)}
			if v := exact[key]; v != nil {
				v.count += n
				continue
			}
			words := strings.Fields(u.Text)
			plain := unknownKey{u.Field, u.Reason, withoutAddresses(words), withoutAddresses(strings.Fields(string(u.Settle)))}
			v := like[plain]
			if v == nil {
				v = &unknownVariant{text: u.Text, settle: string(u.Settle), words: words, first: i}
				like[plain] = v
				g.variants = append(g.variants, v)
			}
			v.count += n
			v.add(words)
			if len(exact) < maxExact {
				exact[key] = v
			}
		}
	}
	for _, g := range groups {
		slices.SortStableFunc(g.variants, func(a, b *unknownVariant) int { return cmp.Compare(b.count, a.count) })
	}
	slices.SortStableFunc(groups, func(a, b *unknownGroup) int {
		return cmp.Or(cmp.Compare(fieldOrder(a.field), fieldOrder(b.field)), cmp.Compare(b.count, a.count))
	})
	return groups
}

// add notes the address that stands in another text of the variant where the first one has its own.
func (v *unknownVariant) add(words []string) {
	for i := range min(len(words), len(v.words)) {
		if words[i] == v.words[i] {
			continue
		}
		a, _ := addressIn(words[i])
		known := len(v.others.seen)
		v.others.add(a)
		if len(v.others.seen) > known && len(v.list) < maxAlike {
			v.list = append(v.list, a)
		}
		return
	}
}

// maxAlike is how many further addresses are named.
const maxAlike = 2

// likewise names the other addresses of the variant, "" if there are none.
func (v *unknownVariant) likewise() string {
	more := len(v.others.seen) - len(v.list)
	switch {
	case len(v.list) == 0:
		return ""
	case v.others.over:
		return ", likewise " + strings.Join(v.list, ", ") + " and over " + number(distinctLimit) + " more"
	case more > 0:
		return ", likewise " + strings.Join(v.list, ", ") + " and " + number(uint64(more)) + " more"
	}
	return ", likewise " + strings.Join(v.list, " and ")
}

// withoutAddresses joins words, each address replaced.
func withoutAddresses(words []string) string {
	var b strings.Builder
	for _, w := range words {
		if a, ok := addressIn(w); ok {
			w = strings.Replace(w, a, "\x00", 1)
		}
		b.WriteString(w)
		b.WriteByte(' ')
	}
	return b.String()
}

// addressIn returns the address in a word, with its port, without the punctuation and quotes around it.
func addressIn(word string) (string, bool) {
	if !strings.ContainsAny(word, ".:") {
		return "", false
	}
	s := strings.Trim(word, "(),;'\"")
	for range 4 { // a sentence may end behind the bracket behind the address
		if _, err := netip.ParseAddr(s); err == nil {
			return s, true
		}
		if _, err := netip.ParseAddrPort(s); err == nil {
			return s, true
		}
		if s == "" || !strings.ContainsRune(".:)", rune(s[len(s)-1])) {
			return "", false
		}
		s = s[:len(s)-1]
	}
	return "", false
}

// unknowns writes what the captures do not carry, once for all requests that share it. A step that was told
// already, by a finding or here, is not told again.
func (p *page) unknowns(rec *Record) {
	groups := groupUnknowns(rec)
	if len(groups) == 0 {
		return
	}
	p.blank()
	total := rec.total()
	for i, g := range groups {
		if i == maxUnknown && !p.opt.ShowAll {
			p.labelled("", []string{"and " + count(uint64(len(groups)-i), "more reason") + ": -o json"})
			return
		}
		shown := g.variants
		if len(shown) > 2 && !p.opt.ShowAll {
			shown = shown[:1]
		}
		for _, v := range shown {
			n, more := v.count, v.likewise()
			if len(shown) < len(g.variants) {
				n, more = g.count, ", in "+count(uint64(len(g.variants)), "variant")+": -o json"
			}
			text := v.text
			if text == "" {
				text = g.reason
			}
			line := g.field + ": " + text
			if total > 1 {
				which := count(n, "request")
				switch n {
				case total:
					which = all(n, "request")
				case 1:
					which = tupleWords(&rec.Requests[v.first])
				}
				line = strings.TrimSuffix(line, ".") + " (" + which + more + ")"
			}
			p.labelled("not known", []string{line})
			if settle := toldBy(v.settle); !p.told[settle] {
				p.told[settle] = true
				p.steps(blanks(labelColumn), []string{v.settle})
			}
		}
	}
}

func fieldOrder(field string) int {
	if i := slices.Index([]string{"source", "outcome", "stopped_at", "direction"}, field); i >= 0 {
		return i
	}
	return 4
}
