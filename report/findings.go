package report

import (
	"cmp"
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
	for i := range rec.Findings {
		f := &rec.Findings[i]
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
		if b.differ {
			p.labelled("", []string{"the steps for the other destinations are alike: -o json"})
		}
	}
	if len(rec.Findings) == 0 && allAnswered(rec) {
		p.blank()
		if n := uint64(len(rec.Requests)); n == 1 {
			p.paragraph(0, "No findings: the request was answered.", p.strong)
		} else {
			p.paragraph(0, "No findings: "+all(n, "request")+" were answered.", p.strong)
		}
	}
	return severe
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
// that is what people come for. What a finding explains needs no example beside it.
func (p *page) examples(rec *Record, rs []row, severe bool) {
	if p.opt.Verbose {
		for i := range rec.Requests {
			p.example(rec, &rec.Requests[i])
		}
		return
	}
	shown := make(map[verdict]bool)
	for i := range rs {
		r := &rec.Requests[rs[i].first]
		if len(shown) == maxExamples || shown[rs[i].verdict] || rs[i].covered || severe && !translated(r) {
			continue
		}
		shown[rs[i].verdict] = true
		p.example(rec, r)
	}
}

// translated tells whether the request left the node with another source or another destination.
func translated(r *Request) bool {
	return differs(r.Egress, &r.Client) || differs(r.Backend, &r.Server)
}

func differs(after, before *Endpoint) bool {
	return after != nil && (after.Addr != before.Addr || !samePort(after.Port, before.Port))
}

func samePort(a, b *uint16) bool { return a == nil || b == nil || *a == *b }

func (p *page) example(rec *Record, r *Request) {
	p.blank()
	title := tupleWords(r) + ": " + verdictWord("source", r.Source) + ", " + verdictWord("outcome", r.Outcome)
	if stops(r.StoppedAt) {
		title += ", stopped at " + word(r.StoppedAt)
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
	p.labelled("counts", []string{countsLine(r)})
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
	case r.Source == "unknown":
		return s
	}
	return s + ", untranslated"
}

func countsLine(r *Request) string {
	parts := []string{count(r.RequestsSent, "packet") + " sent", count(r.RepliesSeen, "packet") + " back"}
	if r.Retransmissions > 0 {
		parts = append(parts, count(r.Retransmissions, "retransmission"))
	}
	if r.Handshake != nil {
		parts = append(parts, "handshake "+duration(*r.Handshake))
	}
	if r.ConnState != "" {
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

// unknowns writes what the captures do not carry, once for all requests that share it.
func (p *page) unknowns(rec *Record) {
	type variant struct{ text, settle string }
	type group struct {
		field, reason string
		count         uint64
		variants      map[variant]uint64
		order         []variant
		over          bool
	}
	const maxVariants = 64
	var groups []*group
	at := make(map[[2]string]*group)
	for i := range rec.Requests {
		for _, u := range rec.Requests[i].Unknown {
			g := at[[2]string{u.Field, u.Reason}]
			if g == nil {
				g = &group{field: u.Field, reason: u.Reason, variants: make(map[variant]uint64)}
				at[[2]string{u.Field, u.Reason}] = g
				groups = append(groups, g)
			}
			g.count++
			v := variant{u.Text, string(u.Settle)}
			if _, ok := g.variants[v]; !ok {
				if len(g.order) == maxVariants {
					g.over = true
					continue
				}
				g.order = append(g.order, v)
			}
			g.variants[v]++
		}
	}
	if len(groups) == 0 {
		return
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(fieldOrder(a.field), fieldOrder(b.field)), cmp.Compare(b.count, a.count))
	})
	p.blank()
	total := uint64(len(rec.Requests))
	for i, g := range groups {
		if i == maxUnknown && !p.opt.ShowAll {
			p.labelled("", []string{"and " + count(uint64(len(groups)-i), "more reason") + ": -o json"})
			return
		}
		slices.SortStableFunc(g.order, func(a, b variant) int { return cmp.Compare(g.variants[b], g.variants[a]) })
		shown := g.order
		if len(shown) > 2 && !p.opt.ShowAll {
			shown = shown[:1]
		}
		for _, v := range shown {
			n, like := g.variants[v], ""
			if len(shown) < len(g.order) {
				n, like = g.count, ", in "+count(uint64(len(g.order)), "variant")+": -o json"
				if g.over {
					like = ", in many variants: -o json"
				}
			}
			text := v.text
			if text == "" {
				text = g.reason
			}
			line := g.field + ": " + text
			if total > 1 {
				requests := count(n, "request")
				if n == total {
					requests = all(n, "request")
				}
				line = strings.TrimSuffix(line, ".") + " (" + requests + like + ")"
			}
			p.labelled("not known", []string{line})
			p.steps(blanks(labelColumn), []string{v.settle})
		}
	}
}

func fieldOrder(field string) int {
	if i := slices.Index([]string{"source", "outcome", "stopped_at", "direction"}, field); i >= 0 {
		return i
	}
	return 4
}
