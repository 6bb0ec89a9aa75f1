package report

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fatih/color"
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
	maxNotes    = 5
	maxCarriers = 5
	maxFrames   = 12
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
	if len(rec.Requests) == 0 {
		p.empty(rec)
	} else {
		p.requests(rec)
	}
	p.carriers(rec)
	if len(rec.Summary.Limits) > 0 {
		p.blank()
		p.labelled("limits", rec.Summary.Limits)
	}
	return p.w.Flush()
}

// page is what the writers of text share: a width, a palette, a place to write to.
type page struct {
	w     *bufio.Writer // keeps its first error; Flush returns it
	width int
	opt   TextOptions
	loc   *time.Location

	strong, bad, odd, good, quiet *color.Color
}

func newPage(w io.Writer, opt TextOptions) *page {
	p := &page{w: bufio.NewWriter(w), width: opt.Width, opt: opt, loc: opt.Location}
	if p.width == 0 {
		p.width = maxWidth
	}
	p.width = min(max(p.width, minWidth), maxWidth)
	if p.loc == nil {
		p.loc = time.UTC
	}
	// Each object is switched by itself: color.NoColor is one for the whole process, and two writers may differ.
	style := func(attr ...color.Attribute) *color.Color {
		c := color.New(attr...)
		if opt.Colour {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
		return c
	}
	p.strong, p.bad, p.odd = style(color.Bold), style(color.FgRed), style(color.FgYellow)
	p.good, p.quiet = style(color.FgGreen), style(color.FgCyan)
	return p
}

// put writes a line as it is. bufio keeps the error for Flush.
func (p *page) put(s string) {
	_, _ = p.w.WriteString(s)
	_ = p.w.WriteByte('\n')
}

func (p *page) blank() { p.put("") }

// paragraph writes escaped text at an indent, wrapped, its further lines two columns further in. style may be nil.
func (p *page) paragraph(indent int, s string, style *color.Color) {
	for i, line := range wrap(s, p.width-indent, p.width-indent-2) {
		if style != nil {
			line = style.Sprint(line)
		}
		if i > 0 {
			line = "  " + line
		}
		p.put(blanks(indent) + line)
	}
}

// labelColumn is where the text behind a label begins; labels begin at column 2.
const labelColumn = 12

func labelHead(label string) string { return "  " + label + blanks(labelColumn-2-len(label)) }

// labelled writes sentences behind a label. They may quote files: they are escaped here, and nothing in them becomes a
// command.
func (p *page) labelled(label string, sentences []string) {
	head := labelHead(label)
	for _, s := range sentences {
		p.entry(head, Escape(s), "")
		head = blanks(labelColumn)
	}
}

// steps writes sentences and commands behind a label: an entry with two blanks in front is a command, and a sentence may
// end in ":  " and a command.
func (p *page) steps(head string, entries []string) {
	for _, s := range entries {
		prose, command := splitCommand(s)
		p.entry(head, Escape(prose), Escape(command))
		head = blanks(labelColumn)
	}
}

func (p *page) entry(head, prose, command string) {
	if prose == "" && command == "" {
		return
	}
	if prose == "" {
		p.command(head, command)
		return
	}
	hang := labelColumn + listMark(prose)
	lines := wrap(prose, p.width-labelColumn, p.width-hang)
	for i, line := range lines {
		if i == 0 {
			line = head + line
		} else {
			line = blanks(hang) + line
		}
		if i == len(lines)-1 && command != "" && columns(line)+2+columns(command) <= p.width {
			line += "  " + p.quiet.Sprint(command)
			command = ""
		}
		p.put(line)
	}
	if command != "" {
		p.command("", command)
	}
}

// command writes a command on a line of its own. It is never broken, so that it can be pasted: where it does not fit
// behind the label it moves left, and at last it is wider than the page.
func (p *page) command(head, command string) {
	n := columns(command)
	if strings.TrimSpace(head) != "" {
		if labelColumn+n <= p.width {
			p.put(head + p.quiet.Sprint(command))
			return
		}
		p.put(strings.TrimRight(head, " "))
	}
	indent := 0
	for _, in := range []int{labelColumn + 3, 4} {
		if in+n <= p.width {
			indent = in
			break
		}
	}
	p.put(blanks(indent) + p.quiet.Sprint(command))
}

// listMark returns the width of a "1. " in front of an entry, under which its further lines do not reach.
func listMark(s string) int {
	if len(s) > 3 && s[0] >= '1' && s[0] <= '9' && s[1] == '.' && s[2] == ' ' {
		return 3
	}
	return 0
}

// splitCommand parts a line into its sentence and the command that it ends in. Either may be empty.
func splitCommand(line string) (prose, command string) {
	if strings.HasPrefix(line, "  ") || isCommand(line) {
		return "", strings.TrimSpace(line)
	}
	if i := strings.Index(line, ":  "); i >= 0 {
		return line[:i+1], strings.TrimSpace(line[i+1:])
	}
	return strings.TrimSpace(line), ""
}

// isCommand tells whether a line begins as the commands do that this tool names.
func isCommand(line string) bool {
	name, rest, _ := strings.Cut(line, " ")
	switch name {
	case "tcpdump", "srcproof", "kubectl", "conntrack", "iptables-save", "nft", "gcloud":
		// "srcproof rules --to ..." is a command, "srcproof reads ..." a sentence.
		return rest == "" || strings.HasPrefix(rest, "-") || strings.Contains(rest, " -") && !strings.HasSuffix(line, ".")
	}
	return false
}

// maxName is how much is shown of a file's name, maxAddr of an address: an address out of a packet is never longer, one
// out of a saved record may be anything.
const (
	maxName = 48
	maxAddr = 48
)

func (p *page) capture(c *Capture) {
	name := cutMiddle(Escape(c.File), maxName)
	if c.Label != "" {
		name = cutMiddle(Escape(string(c.Label)), maxName) + " (" + name + ")"
	}
	parts := []string{Escape(c.Side)}
	for _, n := range c.LinkTypes {
		parts = append(parts, linkWord(n))
	}
	if len(c.LinkTypes) == 0 && c.Format != "" {
		parts = append(parts, Escape(c.Format))
	}
	switch {
	case len(c.Interfaces) == 1 && c.Interfaces[0].Name != "":
		parts = append(parts, "interface "+cutMiddle(Escape(string(c.Interfaces[0].Name)), maxName))
	case len(c.Interfaces) > 1:
		parts = append(parts, count(uint64(len(c.Interfaces)), "interface"))
	}
	parts = append(parts, count(c.Packets, "packet")+skippedWords(c))
	if c.Window.From.Known() && c.Window.To.Known() {
		parts = append(parts, p.window(c.Window))
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
	if !c.Complete {
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
		p.labelled("damaged", []string{string(c.Damage)})
	}
	if c.Filter != nil && *c.Filter != "" {
		basis := " (recorded in the file)"
		if c.FilterBasis == "stated" {
			basis = " (as stated)"
		}
		p.labelled("filter", []string{*c.Filter + basis})
	}
	notes := c.Notes
	if more := len(notes) - maxNotes; more > 0 && !p.opt.Verbose {
		notes = append(slices.Clone(notes[:maxNotes]), "and "+count(uint64(more), "more note")+": -o json")
	}
	p.labelled("note", notes)
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
	return cutMiddle(Escape(s), 20)
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

func (p *page) requests(rec *Record) {
	rs, leftRows, leftRequests := rows(rec, maxRows, p.opt.ShowAll)
	p.blank()
	p.table(rec, rs)
	p.rest(rs, leftRows, leftRequests)
	p.sources(rec)
	severe := p.findings(rec)
	p.examples(rec, rs, severe)
	p.unknowns(rec)
}

// cell is one field of a table.
type cell struct {
	text  string
	style *color.Color // nil is plain
	right bool         // aligned to the right
}

// tableWidth returns the columns that rows of cells take, and their sum with two blanks in front of each.
func tableWidth(lines [][]cell) (widths []int, sum int) {
	widths = make([]int, len(lines[0]))
	for _, line := range lines {
		for i := range line {
			widths[i] = max(widths[i], columns(line[i].text))
		}
	}
	for _, n := range widths {
		sum += 2 + n
	}
	return widths, sum
}

func (p *page) line(cells []cell, widths []int) {
	var b strings.Builder
	for i, c := range cells {
		b.WriteString("  ")
		fill := blanks(widths[i] - columns(c.text))
		text := c.text
		if c.style != nil && text != "" {
			text = c.style.Sprint(text)
		}
		switch {
		case c.right:
			b.WriteString(fill + text)
		case i == len(cells)-1:
			b.WriteString(text)
		default:
			b.WriteString(text + fill)
		}
	}
	p.put(b.String())
}

// table writes the rows on one line each, or, where names and addresses do not leave the room, on a line and a second
// one below it: an address is the answer here and is never cut.
func (p *page) table(rec *Record, rs []row) {
	withStops := slices.ContainsFunc(rs, func(r row) bool { return stops(r.stopped) })
	head := []cell{{text: "SOURCE"}, {text: "OUTCOME"}}
	if withStops {
		head = append(head, cell{text: "STOPPED AT"})
	}
	head = append(head, cell{text: "REQUESTS", right: true})
	verdicts := [][]cell{head}
	for i := range rs {
		r := &rs[i]
		style := p.odd
		switch {
		case r.rank < rankOdd:
			style = p.bad
		case r.rank >= rankOrdinary:
			style = p.good
		}
		line := []cell{{text: word(r.source), style: style}, {text: word(r.outcome), style: style}}
		if withStops {
			line = append(line, cell{text: word(r.stopped), style: style})
		}
		verdicts = append(verdicts, append(line, cell{text: number(r.count), right: true}))
	}
	for _, form := range []struct {
		egress    string
		nameWidth int
	}{{"LEFT THE NODE AS", 40}, {"LEFT THE NODE AS", 28}, {"LEFT THE NODE AS", 20}, {"LEFT AS", 20}} {
		lines := [][]cell{append(slices.Clone(verdicts[0]), cell{text: "CLIENT"}, cell{text: form.egress}, cell{text: "SERVER"})}
		for i := range rs {
			lines = append(lines, append(slices.Clone(verdicts[i+1]), cell{text: rs[i].clientWords(rec, form.nameWidth)},
				cell{text: rs[i].egressWords()}, cell{text: rs[i].serverWords(rec, form.nameWidth)}))
		}
		widths, sum := tableWidth(lines)
		if sum > p.width {
			continue
		}
		for _, line := range lines {
			p.line(line, widths)
		}
		return
	}
	below := make([][]cell, len(rs))
	aligned := true
	for i := range rs {
		r := &rs[i]
		client := p.fit("client ", func(n int) string { return r.clientWords(rec, n) })
		server := p.fit("server ", func(n int) string { return r.serverWords(rec, n) })
		below[i] = append(append(client, cell{text: leftAs(r.egressWords())}), server...)
		aligned = aligned && len(below[i]) == 3
	}
	widths, _ := tableWidth(verdicts)
	var belowWidths []int
	if aligned {
		var sum int
		belowWidths, sum = tableWidth(below)
		aligned = stackIndent-2+sum <= p.width
	}
	p.line(verdicts[0], widths)
	for i, line := range verdicts[1:] {
		p.line(line, widths)
		if aligned {
			_, _ = p.w.WriteString(blanks(stackIndent - 2))
			p.line(below[i], belowWidths)
		} else {
			p.flow(below[i])
		}
	}
}

func leftAs(egress string) string {
	switch egress {
	case "never left", "stayed local":
		return egress
	case "not seen":
		return "not seen leaving"
	}
	return "left as " + egress
}

// stackIndent is where the second line of a row begins.
const stackIndent = 4

// fit writes an end of a request behind a label, its name cut until both fit a line. Where an address leaves no room for
// what it is, that is a cell of its own.
func (p *page) fit(label string, words func(nameWidth int) string) []cell {
	for n := maxName; n >= 16; n -= 8 {
		if s := label + words(n); stackIndent+columns(s) <= p.width {
			return []cell{{text: s}}
		}
	}
	addr, role, _ := strings.Cut(words(maxName), " (")
	if role != "" {
		role = "(" + role
	}
	return []cell{{text: cutMiddle(label+addr, p.width-stackIndent)}, {text: cutMiddle(role, p.width-stackIndent)}}
}

// flow writes cells side by side where they fit, else below each other.
func (p *page) flow(cells []cell) {
	line := ""
	for _, c := range cells {
		if line != "" && stackIndent+columns(line)+2+columns(c.text) > p.width {
			p.put(blanks(stackIndent) + line)
			line = ""
		}
		if line != "" {
			line += "  "
		}
		line += c.text
	}
	p.put(blanks(stackIndent) + line)
}

// word is a verdict's word; one out of a saved record may be anything.
func word(s string) string { return cutMiddle(Escape(s), 20) }

func address(s string) string { return cutMiddle(Escape(s), maxAddr) }

// roleWords says what an address is, "" where nothing is known or nothing is worth the room.
func roleWords(role, name string, isExact, hostNetwork, reused bool, nameWidth int) string {
	var s string
	switch role {
	case "pod", "service":
		s = role
	case "node":
		s = role
		if !isExact {
			s = "in the node range"
		}
	default:
		return ""
	}
	if name != "" {
		s += " " + cutMiddle(Escape(name), nameWidth)
	}
	if hostNetwork {
		s += ", hostNetwork"
	}
	if reused {
		s += ", address reused"
	}
	return s
}

func inParentheses(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func (r *row) clientWords(rec *Record, nameWidth int) string {
	if r.client == "" && len(r.clients.seen) != 1 {
		return r.clients.words(roleNoun(r.role))
	}
	c := &rec.Requests[r.first].Client
	addr := address(c.Addr)
	if r.detail == single {
		addr = address(addrPort(c.Addr, c.Port))
	}
	return addr + inParentheses(roleWords(c.Role, string(c.Name), c.Exact, c.HostNetwork, c.Reused, nameWidth))
}

func roleNoun(role string) string {
	switch role {
	case "pod", "node", "service":
		return role
	}
	return "address"
}

func (r *row) egressWords() string {
	if r.rowKey.egress != "" {
		return address(r.rowKey.egress)
	}
	return address(r.egress.words("address"))
}

func (r *row) serverWords(rec *Record, nameWidth int) string {
	s := &rec.Requests[r.first].Server
	proto := word(r.proto)
	if r.server != "" || len(r.servers.seen) == 1 {
		addr := address(s.Addr)
		if len(r.ports.seen) > 1 {
			return addr + ", " + r.ports.words("port") + " " + proto
		}
		return address(addrPort(s.Addr, s.Port)) + " " + proto + inParentheses(roleWords(s.Role, string(s.Name), s.Exact, s.HostNetwork, s.Reused, nameWidth))
	}
	addrs := r.servers.words("server")
	switch len(r.ports.seen) {
	case 0:
		return addrs + " " + proto
	case 1:
		return addrs + " :" + r.ports.words("port") + " " + proto
	}
	return addrs + ", " + r.ports.words("port") + " " + proto
}

// rest says what the table does not show, and how to see it.
func (p *page) rest(rs []row, leftRows int, leftRequests uint64) {
	const how = "all: --all or -o json; one: --request 'PROTO SRC > DST:PORT'"
	switch {
	case leftRows > 0:
		p.paragraph(2, count(uint64(leftRows), "more row")+" ("+count(leftRequests, "request")+") not shown; "+how, nil)
	case slices.ContainsFunc(rs, func(r row) bool { return r.detail > exact }):
		p.paragraph(2, "grouped to fit; "+how, nil)
	}
}

func (p *page) sources(rec *Record) {
	if len(rec.Sources) < 2 && (len(rec.Sources) == 0 || !p.opt.Verbose) {
		return
	}
	list := slices.Clone(rec.Sources)
	slices.SortStableFunc(list, func(a, b Source) int { return cmp.Compare(b.Requests, a.Requests) })
	var more []Source
	if len(list) > maxSources && !p.opt.ShowAll {
		list, more = list[:maxSources], list[maxSources:]
	}
	lines := [][]cell{{{text: "LEFT THE NODE AS"}, {text: "REQUESTS", right: true}, {text: "PACKETS", right: true}}}
	for _, s := range list {
		lines = append(lines, []cell{
			{text: address(s.Addr) + inParentheses(roleWords(s.Role, string(s.Name), true, false, false, 28))},
			{text: number(s.Requests), right: true}, {text: number(s.Packets), right: true},
		})
	}
	if len(more) > 0 {
		var requests, packets uint64
		for _, s := range more {
			requests, packets = requests+s.Requests, packets+s.Packets
		}
		lines = append(lines, []cell{
			{text: count(uint64(len(more)), "more address")}, {text: number(requests), right: true}, {text: number(packets), right: true},
		})
	}
	p.blank()
	widths, _ := tableWidth(lines)
	for _, line := range lines {
		p.line(line, widths)
	}
}

// findings writes what was observed and how it reads, and tells whether any of it is worth a look.
func (p *page) findings(rec *Record) (severe bool) {
	shown := 0
	for i := range rec.Findings {
		f := &rec.Findings[i]
		severe = severe || f.Severity > 0
		if shown == maxFindings && !p.opt.ShowAll && !p.opt.Verbose {
			continue
		}
		shown++
		p.blank()
		title := Escape(f.Title)
		if n := len(f.Requests); n > 1 {
			title = strings.TrimSuffix(title, ".") + " (" + count(uint64(n), "request") + ")."
		}
		p.paragraph(0, title, p.strong)
		p.labelled("observed", f.Observed)
		p.labelled("reads as", f.Reading)
		p.steps(labelHead("next"), f.Next)
	}
	if more := len(rec.Findings) - shown; more > 0 {
		p.blank()
		p.paragraph(0, count(uint64(more), "more finding")+" not shown: --all, or -o json", nil)
	}
	if len(rec.Findings) == 0 && allAnswered(rec) {
		p.blank()
		if n := uint64(len(rec.Requests)); n == 1 {
			p.paragraph(0, "No findings: the request was answered.", p.strong)
		} else {
			p.paragraph(0, "No findings: all "+count(n, "request")+" were answered.", p.strong)
		}
	}
	return severe
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

func translated(r *Request) bool {
	return r.Backend != nil || r.Egress != nil && (r.Egress.Addr != r.Client.Addr || !samePort(r.Egress.Port, r.Client.Port))
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
	if r.Backend != nil {
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
	for i := range r.Legs {
		l := &r.Legs[i]
		if l.Leg == "egress" && l.EchoID != nil && r.EchoID != nil && *l.EchoID != *r.EchoID {
			s += " id " + strconv.Itoa(int(*l.EchoID))
			break
		}
	}
	if !translated(r) {
		return s + ", untranslated"
	}
	s += ", translated on the node"
	for i := range r.Join {
		j := &r.Join[i]
		if j.From == "pod" && j.To == "egress" {
			return s + "; joined by " + strings.Join(j.Basis, ", ") + " (" + j.Confidence + ")"
		}
	}
	return s
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
				n, like = g.count, ", this one among "+count(uint64(len(g.order)), "kind")+" of it: -o json"
				if g.over {
					like = ", this one among many kinds of it: -o json"
				}
			}
			text := v.text
			if text == "" {
				text = g.reason
			}
			line := g.field + ": " + text
			if total > 1 {
				all := ""
				if n == total {
					all = "all "
				}
				line += " (" + all + count(n, "request") + like + ")"
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
		s := word(c.Tunnel) + " " + address(c.Src) + " > " + address(c.Dst) + ", " + count(c.Packets, "packet")
		switch c.Opaque {
		case 0:
			s += ": what it carried was judged, the tunnel itself was not"
		case c.Packets:
			s += ": its inside was not decoded"
		default:
			s += ": the inside of " + number(c.Opaque) + " was not decoded"
		}
		lines = append(lines, s)
	}
	p.labelled("tunnels", lines)
}

// empty says why there is no request, and what to do.
func (p *page) empty(rec *Record) {
	var packets, skipped uint64
	by := make(map[string]uint64)
	whole := true
	for i := range rec.Captures {
		c := &rec.Captures[i]
		packets += c.Packets
		whole = whole && c.Complete
		for w, n := range c.Skipped {
			by[w] += n
			skipped += n
		}
	}
	title, next := "", []string(nil)
	all := packets > 0 && skipped >= packets
	switch {
	case len(rec.Captures) == 0:
		title = "No capture was read."
	case packets == 0 && !whole:
		title = "No requests: the damage comes before the first packet."
		next = []string{"copy the file again from where it was captured, or capture again"}
	case packets == 0:
		title = "No requests: the capture holds no packets."
		next = []string{
			"check that the capture's filter and interface let the request through, and that the request was sent while it ran:",
			"  tcpdump -ni any -w node.pcap host ADDRESS",
		}
	case all && by["not-ip"] == skipped:
		title = "No requests: none of the " + count(packets, "packet") + " is IP."
		if packets == 1 {
			title = "No requests: the only packet is not IP."
		}
		next = []string{
			"capture where the request passes, with its address in the filter:",
			"  tcpdump -ni any -w node.pcap host ADDRESS",
		}
	case all && by["too-short"] > 0 && by["too-short"] >= skipped-by["not-ip"]:
		title = "No requests: the packets are cut before their headers end (" + number(by["too-short"]) + " of " + number(packets) + ")."
		next = []string{"capture again with whole packets:", "  tcpdump -s 0 -ni any -w node.pcap host ADDRESS"}
	case all && by["link-type"] > 0 && by["link-type"] >= skipped-by["not-ip"]:
		title = "No requests: this capture's link type is not one that srcproof reads."
		next = []string{"capture again on the pseudo-device any, which has one that it reads:", "  tcpdump -ni any -w node.pcap host ADDRESS"}
	case all:
		title = "No requests: no packet could be read" + skippedWords(&Capture{Skipped: by}) + "."
		next = []string{"check the file with tcpdump, and capture again if that does not read it either:", "  tcpdump -nr FILE"}
	default:
		title = "No requests: " + count(packets, "packet") + ", and none opens, carries or answers a request."
		next = []string{
			"such packets are neighbour discovery, multicast and the like; capture with the request's address in the filter:",
			"  tcpdump -ni any -w node.pcap host ADDRESS",
		}
	}
	p.blank()
	p.paragraph(0, title, p.strong)
	p.steps(labelHead("next"), next)
}
