package report

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TextOptions say how text is laid out. The zero value is 100 columns, no colour, UTC.
type TextOptions struct {
	Width    int            // columns, taken as 80 below 80 and as 100 above 100; 0 is 100
	Colour   bool           // with terminal escapes; the text is the same without
	Verbose  bool           // tell of every request what carries its verdict, with its frames
	ShowAll  bool           // a row for every request
	Location *time.Location // of the times shown; nil is UTC
}

// The widths that text is made for.
const (
	minWidth = 80
	maxWidth = 100
)

// The most that text shows of each kind without being asked for more.
const (
	maxRows     = 20
	maxExamples = 3
	maxSources  = 10
	maxUnknown  = 8
	maxFindings = 10
	maxLike     = 3
	maxNotes    = 5
	maxCarriers = 5
	maxFrames   = 8
)

// WriteText writes the record for a person: what was captured, what was seen, what was observed and how it reads, what to
// do next, and what cannot be known from these captures. Its only errors are w's.
func WriteText(w io.Writer, rec *Record, opt TextOptions) error {
	p := newPage(w, opt)
	for i := range rec.Captures {
		p.capture(&rec.Captures[i])
	}
	for i := range rec.Facts.Warnings {
		p.labelled("facts", []string{rec.Facts.Warnings[i].Text})
	}
	main, near := apart(rec, opt.ShowAll || opt.Verbose)
	if len(main.Requests) == 0 {
		p.empty(main, near)
	} else {
		p.requests(main, near)
	}
	p.carriers(rec)
	limits, numbered := limits(rec), numbered(main)
	if len(limits) > 0 || len(numbered) > 0 {
		p.blank()
	}
	p.labelled("limits", limits)
	if len(numbered) > 0 {
		p.labelled("names", []string{"--links FILE (ip -o link on the node) names " + firstOf(numbered, 4)})
	}
	return p.w.Flush()
}

// limits returns the record's limits but those on damage, which stand with the capture.
func limits(rec *Record) []string {
	return slices.DeleteFunc(once(rec.Summary.Limits), func(s string) bool {
		return slices.ContainsFunc(rec.Captures, func(c Capture) bool {
			rest, ok := strings.CutPrefix(s, c.File+" is ")
			return ok && c.Damage != "" && strings.Contains(rest, "damaged")
		})
	})
}

// numbered returns the interfaces that the findings and examples name by their number, since nobody gave their names.
func numbered(rec *Record) []string {
	if len(rec.Requests) == 0 || slices.ContainsFunc(rec.Facts.Given, func(g Given) bool { return g.Flag == "--links" }) {
		return nil
	}
	var indices []uint32
	for i := range rec.Captures {
		if rec.Captures[i].Side != "near" {
			continue
		}
		for _, f := range rec.Captures[i].Interfaces {
			if f.Index != nil && string(f.Name) == numberName(*f.Index) && f.Packets > 0 {
				indices = append(indices, *f.Index)
			}
		}
	}
	slices.Sort(indices)
	var out []string
	for _, n := range slices.Compact(indices) {
		out = append(out, numberName(n))
	}
	return out
}

// numberName is how an interface without a name is called.
func numberName(index uint32) string { return "if" + strconv.FormatUint(uint64(index), 10) }

// firstOf lists the first n of some words, and says how many more there are.
func firstOf(list []string, n int) string {
	if more := len(list) - n; more > 0 {
		return strings.Join(list[:n], ", ") + " and " + number(uint64(more)) + " more"
	}
	return strings.Join(list, ", ")
}

func (p *page) capture(c *Capture) {
	name := shown(c.File, maxName)
	if c.Label != "" {
		name = shown(string(c.Label), maxLabel) + " (" + name + ")"
	}
	if c.Format == "conntrack" {
		p.paragraph(0, p.strong.Sprint(name)+"  connection table of the node, "+count(c.Packets, "connection"), nil)
		p.notes(c.Notes)
		return
	}
	parts := []string{Escape(c.Side)}
	if c.Format == "tcpdump text" || len(c.LinkTypes) == 0 && c.Format != "" {
		parts = append(parts, Escape(c.Format))
	}
	for _, n := range c.LinkTypes {
		parts = append(parts, linkWord(n))
	}
	switch {
	case len(c.Interfaces) == 1 && c.Interfaces[0].Name != "":
		parts = append(parts, "interface "+shown(string(c.Interfaces[0].Name), maxName))
	case len(c.Interfaces) > 1:
		parts = append(parts, count(uint64(len(c.Interfaces)), "interface"))
	}
	parts = append(parts, count(c.Packets, "packet")+skippedWords(c))
	if c.Window.From.Known() && c.Window.To.Known() {
		parts = append(parts, p.window(c.Window))
	}
	if c.Window.Clock != nil {
		parts = append(parts, shortClock(c.Window.ClockFrom)+"-"+shortClock(c.Window.ClockTo)+" ("+duration(*c.Window.Clock)+"), no date")
	}
	if c.SnapLen != nil && *c.SnapLen < 1500 {
		parts = append(parts, "cut at "+count(uint64(*c.SnapLen), "byte")+" a packet")
	}
	switch {
	case c.Dropped == nil:
		parts = append(parts, "drops not recorded")
	case *c.Dropped == 0:
		parts = append(parts, "no drops")
	default:
		parts = append(parts, count(*c.Dropped, "packet")+" dropped")
	}
	if !c.Complete && c.Damage == "" {
		parts = append(parts, "damaged")
	}
	for i, line := range wrap(strings.Join(parts, ", "), p.width-columns(name)-2, p.width-2) {
		if i == 0 {
			line = p.strong.Sprint(name) + "  " + line
		} else {
			line = "  " + line
		}
		p.put(strings.TrimRight(line, " "))
	}
	if c.Damage != "" {
		p.labelled("damaged", []string{strings.TrimSuffix(string(c.Damage), ".") + "; what was read before that counts, and nothing is concluded from what is missing"})
	}
	if c.Filter != nil && *c.Filter != "" {
		basis := " (recorded in the file)"
		if c.FilterBasis == "stated" {
			basis = " (as stated)"
		}
		p.labelled("filter", []string{*c.Filter + basis})
	}
	p.notes(c.Notes)
}

// notes are what was noticed of a capture.
func (p *page) notes(notes []string) {
	if more := len(notes) - maxNotes; more > 0 && !p.opt.Verbose {
		notes = append(slices.Clone(notes[:maxNotes]), "and "+count(uint64(more), "more note")+": -o json")
	}
	p.labelled("note", notes)
}

// shortClock is a time of day without the fraction.
func shortClock(s Maybe) string {
	whole, _, _ := strings.Cut(string(s), ".")
	return shown(whole, 12)
}

// skippedWords says in parentheses why some of the packets were not judged, the commonest reason first.
func skippedWords(c *Capture) string {
	type reason struct {
		word string
		n    uint64
	}
	var reasons []reason
	for w, n := range c.Skipped {
		reasons = append(reasons, reason{w, n})
	}
	if len(reasons) == 0 {
		return ""
	}
	slices.SortFunc(reasons, func(a, b reason) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.word, b.word)) })
	var words []string
	for i, r := range reasons {
		if i == 4 {
			words = append(words, "others")
			break
		}
		words = append(words, number(r.n)+" "+skipWord(r.word))
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// skipWord is a reason's word of JSON as people say it.
func skipWord(s string) string {
	switch s {
	case "not-ip":
		return "not IP"
	case "too-short":
		return "cut too short"
	case "link-type":
		return "of an unknown link type"
	case "too-deep":
		return "in too many tunnels"
	case "no-interface":
		return "of no interface"
	}
	return word(s)
}

// window writes a capture's time as tcpdump's reader expects it: times of day, and dates only where there are two.
func (p *page) window(w Window) string {
	from, to := w.From.In(p.loc), w.To.In(p.loc)
	zone := to.Format("MST")
	const day, clock = "2006-01-02", "15:04:05"
	span := from.Format(clock) + "-" + to.Format(clock)
	if from.Format(clock) == to.Format(clock) {
		span = from.Format(clock)
	}
	switch {
	case from.Format(day) != to.Format(day):
		span = from.Format(day+" "+clock) + " to " + to.Format(day+" "+clock)
	case p.opt.Verbose:
		span = from.Format(day) + " " + span
	}
	return span + " " + zone + " (" + duration(w.To.Sub(w.From)) + ")"
}

func (p *page) requests(rec *Record, near neighbours) {
	rs, leftRows, leftRequests := rows(rec, maxRows, p.opt.ShowAll)
	p.blank()
	p.table(rec, rs, near)
	p.rest(rs, leftRows, leftRequests)
	compared := twoSided(rec)
	if compared {
		p.ladders(rec)
	}
	severe := p.findings(rec)
	p.sources(rec, rs)
	p.examples(rec, rs, severe || compared)
	if compared {
		p.blank()
		p.labelled("clocks", clockLines(rec))
	}
	p.unknowns(rec)
}

func (p *page) carriers(rec *Record) {
	if len(rec.Carriers) == 0 {
		return
	}
	p.blank()
	var lines []string
	for i := range rec.Carriers {
		if i == maxCarriers && !p.opt.ShowAll && !p.opt.Verbose {
			lines = append(lines, "and "+count(uint64(len(rec.Carriers)-i), "more tunnel")+": -o json")
			break
		}
		c := &rec.Carriers[i]
		tunnel := word(c.Tunnel)
		if tunnel == "other" {
			tunnel = "undecoded protocol"
		}
		s := tunnel + " " + address(c.Src) + " > " + address(c.Dst) + ", " + count(c.Packets, "packet")
		switch {
		case c.Tunnel == "other":
		case c.Opaque == 0:
			s += ": what it carried was judged, the tunnel itself was not"
		case c.Opaque == c.Packets:
			s += ": its inside was not decoded"
		default:
			s += ": the inside of " + number(c.Opaque) + " was not decoded"
		}
		lines = append(lines, s)
	}
	p.labelled("tunnels", lines)
}

// empty says why there is no request, and what to do.
func (p *page) empty(rec *Record, near neighbours) {
	var packets, skipped, filtered uint64
	by := make(map[string]uint64)
	whole := true
	for i := range rec.Captures {
		c := &rec.Captures[i]
		packets += c.Packets
		filtered += c.FilteredOut
		whole = whole && c.Complete
		for w, n := range c.Skipped {
			by[w] += n
			skipped += n
		}
	}
	title, next := "", []string(nil)
	kept := packets - min(filtered, packets)
	all := kept > 0 && skipped >= kept
	switch {
	case len(rec.Captures) == 0:
		title = "No capture was read."
	case rec.Summary.LeftOut > 0:
		p.noneMatches(&rec.Summary)
		return
	case near.count > 0:
		title = "No requests but " + number(near.count) + " " + betweenNeighbours + "."
		next = []string{
			"capture with the request's address in the filter, while it is made:",
			"  tcpdump -ni any -w node.pcap 'host ADDRESS or icmp'",
		}
	case packets == 0 && !whole:
		title = "No requests: the damage comes before the first packet."
		next = []string{"copy the file again from where it was captured, or capture again"}
	case packets == 0:
		title = "No requests: the capture holds no packets."
		next = []string{
			"check that the capture's filter and interface let the request through, and that the request was sent while it ran:",
			"  tcpdump -ni any -w node.pcap 'host ADDRESS or icmp'",
		}
	case kept == 0:
		title = "No requests: --filter left no packet to judge."
		next = []string{"look at what the capture holds without --filter"}
	case all && by["not-ip"] == skipped:
		title = "No requests: none of the " + count(kept, "packet") + " is IP."
		if kept == 1 {
			title = "No requests: the only packet is not IP."
		}
		next = []string{
			"capture where the request passes, with its address in the filter:",
			"  tcpdump -ni any -w node.pcap 'host ADDRESS or icmp'",
		}
	case all && by["too-short"] > 0 && by["too-short"] >= skipped-by["not-ip"]:
		title = "No requests: the packets are cut before their headers end (" + number(by["too-short"]) + " of " + number(kept) + ")."
		next = []string{"capture again with whole packets:", "  tcpdump -s 0 -ni any -w node.pcap 'host ADDRESS or icmp'"}
	case all && by["link-type"] > 0 && by["link-type"] >= skipped-by["not-ip"]:
		title = "No requests: this capture's link type is not one that srcproof reads."
		next = []string{"capture again on the pseudo-device any, which has one that it reads:", "  tcpdump -ni any -w node.pcap 'host ADDRESS or icmp'"}
	case all:
		title = "No requests: no packet could be read" + skippedWords(&Capture{Skipped: by}) + "."
		next = []string{"check the file with tcpdump, and capture again if that does not read it either:", "  tcpdump -nr FILE"}
	default:
		title = "No requests: " + count(kept, "packet") + ", and none opens, carries or answers a request."
		next = []string{
			"capture with the request's address in the filter, while it is made:",
			"  tcpdump -ni any -w node.pcap 'host ADDRESS or icmp'",
		}
	}
	p.blank()
	p.paragraph(0, title, p.strong)
	p.steps(labelHead("next"), next)
}

// noneMatches says that there are requests, and none of those that were asked for.
func (p *page) noneMatches(s *Summary) {
	title := "The only request does not match "
	if s.LeftOut > 1 {
		title = "None of the " + count(s.LeftOut, "request") + " matches "
	}
	p.blank()
	p.paragraph(0, title+Escape(string(s.Asked))+".", p.strong)
	if len(s.Nearest) > 0 {
		p.labelled("nearest", s.Nearest)
		if more := s.LeftOut - min(s.LeftOut, uint64(len(s.Nearest))); more > 0 {
			p.labelled("", []string{"all of them: without --request"})
		}
	}
}
