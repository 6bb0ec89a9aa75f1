package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/srcproof/srcproof/analyze"
)

// The evidence as a document is the same sections whatever it is written as: Markdown, or text of a fixed width.

// section is a part of the document: a title, and below it one or more of a table, sentences, and lines of code.
type section struct {
	title string
	table [][]string // the first row is the head, the first column names the rows
	list  []string   // sentences; one with two blanks in front is a command
	code  []string
}

// The most that a document lists of each kind.
const (
	maxAlsoChanged = 50
	maxRuleLines   = 100
	maxAgents      = 20
	maxCitedFrames = 12
)

// WriteEvidenceLine writes the evidence as the one line that a change record carries. Its only errors are w's.
func WriteEvidenceLine(w io.Writer, rec *Record) error {
	_, err := io.WriteString(w, rec.Evidence.Line+"\n")
	return err
}

// WriteEvidenceText writes the evidence for a ticket that keeps a fixed width. Its only errors are w's.
func WriteEvidenceText(w io.Writer, rec *Record, opt TextOptions) error {
	p := newPage(w, opt)
	p.paragraph(0, Escape(evidenceTitle(rec)), p.strong)
	for line := range strings.SplitSeq(rec.Evidence.Line, "\n") {
		p.blank()
		p.paragraph(0, line, nil)
	}
	for _, s := range evidenceSections(rec) {
		p.blank()
		p.paragraph(0, Escape(s.title), p.strong)
		if len(s.table) > 0 && len(s.table[0]) > maxGrid {
			p.stack(s.table)
		} else {
			p.grid(s.table)
		}
		for _, text := range s.list {
			prose, command := splitCommand(text)
			if prose != "" {
				p.paragraph(2, Escape(prose), nil)
			}
			if command != "" {
				p.put(blanks(6) + p.quiet.Sprint(Escape(command)))
			}
		}
		for _, line := range s.code {
			p.put(blanks(2) + Escape(line))
		}
	}
	return p.w.Flush()
}

// maxGrid is how many columns a table may have to be drawn as one.
const maxGrid = 4

// stack writes a table of many columns as a paragraph for each row, with the columns' heads as words.
func (p *page) stack(table [][]string) {
	for _, row := range table[1:] {
		parts := []string{row[0]}
		for i, text := range row[1:] {
			parts = append(parts, table[0][i+1]+" "+text)
		}
		p.paragraph(2, Escape(strings.Join(parts, ", ")), nil)
	}
}

// grid writes a table whose first column names the rows, and the others share what is left of the width.
func (p *page) grid(table [][]string) {
	if len(table) == 0 {
		return
	}
	label := 0
	for _, row := range table {
		label = max(label, columns(Escape(row[0])))
	}
	label = min(label, 20)
	others := len(table[0]) - 1
	width := (p.width-2-label)/others - 2
	for _, row := range table {
		cells := make([][]string, len(row))
		height := 0
		for i, text := range row {
			room := width
			if i == 0 {
				room = label
			}
			cells[i] = wrap(Escape(text), room, room)
			height = max(height, len(cells[i]))
		}
		for k := range height {
			var b strings.Builder
			for i := range cells {
				room := width
				if i == 0 {
					room = label
				}
				text := ""
				if k < len(cells[i]) {
					text = cells[i][k]
				}
				b.WriteString("  " + text + blanks(room-columns(text)))
			}
			p.put(strings.TrimRight(b.String(), " "))
		}
	}
}

// WriteEvidenceMarkdown writes the evidence for a ticket that renders Markdown (CommonMark, with GitHub's tables). Its only
// errors are w's.
func WriteEvidenceMarkdown(w io.Writer, rec *Record) error {
	var b strings.Builder
	b.WriteString("## " + EscapeMarkdown(evidenceTitle(rec)) + "\n")
	for line := range strings.SplitSeq(rec.Evidence.Line, "\n") {
		b.WriteString("\n" + EscapeMarkdown(line) + "\n")
	}
	for _, s := range evidenceSections(rec) {
		b.WriteString("\n### " + EscapeMarkdown(s.title) + "\n")
		for i, row := range s.table {
			b.WriteString("\n|")
			for _, cell := range row {
				b.WriteString(" " + cmp.Or(EscapeMarkdown(cell), " ") + " |")
			}
			if i == 0 {
				b.WriteString("\n|" + strings.Repeat("---|", len(row)))
			}
		}
		if len(s.table) > 0 {
			b.WriteByte('\n')
		}
		if len(s.list) > 0 {
			b.WriteByte('\n')
		}
		for _, text := range s.list {
			prose, command := splitCommand(text)
			switch {
			case command == "":
				b.WriteString("- " + EscapeMarkdown(prose) + "\n")
			case prose == "":
				b.WriteString("  - " + codeSpan(command) + "\n")
			default:
				b.WriteString("- " + EscapeMarkdown(prose) + " " + codeSpan(command) + "\n")
			}
		}
		if len(s.code) > 0 {
			b.WriteString("\n" + codeBlock(s.code))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// codeSpan quotes a command (CommonMark 0.31 section 6.1): a run of backticks that the command does not have.
func codeSpan(s string) string {
	s = Escape(s)
	fence := "`" + strings.Repeat("`", longestRun(s, '`'))
	pad := ""
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		pad = " "
	}
	return fence + pad + s + pad + fence
}

// codeBlock is a fenced block (CommonMark 0.31 section 4.5) that no line in it can end.
func codeBlock(lines []string) string {
	run := 2
	for _, s := range lines {
		run = max(run, longestRun(s, '`'))
	}
	fence := strings.Repeat("`", run+1)
	var b strings.Builder
	b.WriteString(fence + "diff\n")
	for _, s := range lines {
		b.WriteString(Escape(s) + "\n")
	}
	b.WriteString(fence + "\n")
	return b.String()
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] == c {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}

func evidenceTitle(rec *Record) string {
	e := rec.Evidence
	title := e.Verdict + ": " + e.Request
	switch {
	case len(e.Nodes) == 1:
		title = verdictWords(&e.Nodes[0]) + ": " + e.Request
	case len(e.Nodes) > 1:
		title = strings.Join(e.Reading, ", ") + ": " + e.Request
	}
	if e.Redacted {
		title += " (redacted)"
	}
	if e.ChangeID != "" {
		title = string(e.ChangeID) + " " + title
	}
	return title
}

// evidenceSections are the document's parts, in the order of what a reader asks: what was seen, what it means, what is to be
// done, what else changed, from what, and what it does not say.
func evidenceSections(rec *Record) []section {
	e := rec.Evidence
	var out []section
	add := func(s section) {
		if len(s.table)+len(s.list)+len(s.code) > 0 {
			out = append(out, s)
		}
	}
	for i := range e.Nodes {
		n := &e.Nodes[i]
		of := ""
		if n.Node != "" {
			of = " on node " + string(n.Node)
		}
		verdict := ""
		if len(e.Nodes) > 1 {
			verdict = ": " + verdictWords(n)
		}
		add(section{title: "Observed" + of, table: momentTable(rec, n)})
		add(section{title: "Reads as" + of + verdict, list: n.Reading})
		add(section{title: "Next" + of, list: n.Next})
	}
	rules := AgainstIntent(rec)
	for _, f := range rec.Findings {
		rules = slices.Concat(rules, []string{f.Title}, f.Observed, f.Reading, f.Next)
	}
	add(section{title: "Configuration and rules after the change", list: rules})
	add(section{title: "What else changed", list: alsoLines(e)})
	add(rulesSection(e.Rules))
	add(section{title: "ip-masq-agent", list: agentLines(rec)})
	add(section{title: "Note", list: noteLines(e)})
	add(section{title: "Captures", table: captureTable(rec), list: digestLines(rec)})
	add(section{title: "Taken as known", list: givenLines(rec)})
	add(section{title: "Not covered", list: slices.Concat(e.NotCovered, rec.Summary.Limits)})
	add(section{title: "Made by", list: madeBy(rec)})
	return out
}

func noteLines(e *Evidence) []string {
	if e.Note == "" {
		return nil
	}
	return strings.Split(string(e.Note), "\n")
}

func madeBy(rec *Record) []string {
	lines := []string{"srcproof " + rec.Tool.Version}
	if len(rec.Tool.Args) > 0 {
		lines = append(lines, "  srcproof "+strings.Join(quoteArgs(rec.Tool.Args), " "))
	}
	return lines
}

// quoteArgs quotes for a POSIX shell what it would take apart.
func quoteArgs(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		if a == "" || strings.ContainsFunc(a, func(r rune) bool { return !strings.ContainsRune(plainArg, r) }) {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return out
}

const plainArg = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%"

// momentTable has a column for each moment.
func momentTable(rec *Record, n *EvidenceNode) [][]string {
	head := []string{"", "before", "after"}
	states := []*MomentState{n.Before, n.After}
	if n.Rollback != nil || n.RolledBack != "" {
		head, states = append(head, "rollback"), append(states, n.Rollback)
	}
	table := [][]string{head}
	row := func(label string, of func(r *Request, m *MomentState) string) {
		cells := []string{label}
		for _, m := range states {
			text := "-"
			if r := requestOf(rec, m); r != nil {
				text = cmp.Or(of(r, m), "-")
			}
			cells = append(cells, text)
		}
		if strings.Join(cells[1:], "") != strings.Repeat("-", len(states)) {
			table = append(table, cells)
		}
	}
	row("request", func(r *Request, _ *MomentState) string { return tupleText(r) })
	row("first packet", func(r *Request, _ *MomentState) string { return utcText(r.First) })
	row("client", func(r *Request, _ *MomentState) string { return roleText(&r.Client) })
	row("left as", func(r *Request, _ *MomentState) string { return leftWords(r) + ": " + r.Source })
	row("carried by", func(r *Request, _ *MomentState) string { return basisText(r) })
	row("at far side", func(r *Request, _ *MomentState) string {
		if r.Far == nil {
			return ""
		}
		return endpointText(r.Far)
	})
	row("outcome", func(r *Request, _ *MomentState) string { return endedWords(r) })
	row("completed", func(r *Request, _ *MomentState) string {
		if r.Completed {
			return "yes"
		}
		return "no"
	})
	row("stopped at", func(r *Request, _ *MomentState) string { return r.StoppedAt })
	row("frames", func(r *Request, _ *MomentState) string { return citedFrames(rec, r) })
	row("requests", func(_ *Request, m *MomentState) string {
		s := number(m.Counted)
		if m.LeftOut > 0 {
			s += ", and " + count(m.LeftOut, "older connection") + " left out"
		}
		if m.Unknown > 0 {
			s += ", and " + number(m.Unknown) + " of unknown source"
		}
		return s
	})
	return table
}

func tupleText(r *Request) string {
	s := r.Proto + " " + endpointText(&r.Client) + " > " + endpointText(&r.Server)
	if r.EchoID != nil {
		s += " id " + strconv.Itoa(int(*r.EchoID))
	}
	return s
}

// utcText writes a time to the millisecond, "" if there is none.
func utcText(t Time) string {
	if !t.Known() {
		return ""
	}
	return t.In(time.UTC).Format("2006-01-02 15:04:05.000Z")
}

func roleText(e *Endpoint) string {
	s := e.Addr + " (" + e.Role
	if e.Name != "" {
		s += " " + string(e.Name)
	}
	if e.Node != "" && e.Node != e.Name {
		s += " on " + string(e.Node)
	}
	return s + ")"
}

// basisText says what carries the source, with what joined the legs.
func basisText(r *Request) string {
	if r.SourceBasis == "none" {
		return ""
	}
	for _, j := range r.Join {
		if j.From == "pod" && j.To == "egress" {
			return r.SourceBasis + ": " + strings.Join(j.Basis, ", ") + " (" + j.Confidence + ")"
		}
	}
	return r.SourceBasis
}

// citedFrames lists a request's frames by capture, as Wireshark numbers them.
func citedFrames(rec *Record, r *Request) string {
	var parts []string
	last, shown := -1, 0
	for i := range r.Frames {
		f := &r.Frames[i]
		if shown == maxCitedFrames {
			parts = append(parts, "and "+number(uint64(len(r.Frames)-i))+" more")
			break
		}
		if f.Capture != last && f.Capture >= 0 && f.Capture < len(rec.Captures) {
			if last >= 0 {
				parts[len(parts)-1] += ";"
			}
			parts = append(parts, captureFileName(&rec.Captures[f.Capture])+":")
			last = f.Capture
		}
		parts = append(parts, fmt.Sprintf("%d", f.Frame))
		shown++
	}
	return strings.Join(parts, " ")
}

func alsoLines(e *Evidence) []string {
	var out []string
	for i := range e.AlsoChanged {
		if i == maxAlsoChanged {
			out = append(out, "and "+count(uint64(len(e.AlsoChanged)-i), "more destination")+": -o json")
			break
		}
		out = append(out, serverWords(&e.AlsoChanged[i])+": lists and logs there that name addresses see others now")
	}
	switch {
	case e.AlsoKept == 0 && len(out) == 0:
		out = append(out, "no other destination of Pods is in both captures: what else changed does not show")
	case len(out) == 0:
		out = append(out, "nothing that shows: "+count(e.AlsoKept, "other destination")+" of Pods in both captures, each with the source class that it had")
	case e.AlsoKept > 0:
		out = append(out, count(e.AlsoKept, "other destination")+" of Pods kept the source class that it had")
	}
	return out
}

func rulesSection(r *RulesChange) section {
	if r == nil {
		return section{}
	}
	s := section{title: "nat rules: " + rulesWords(r), list: []string{rulesFileWords("before", &r.Before), rulesFileWords("after", &r.After)}}
	for _, d := range []struct {
		sign  string
		rules []string
	}{{"- ", r.Removed}, {"+ ", r.Added}} {
		for i, line := range d.rules {
			if i == maxRuleLines {
				s.code = append(s.code, d.sign+"and "+count(uint64(len(d.rules)-i), "more rule")+": -o json")
				break
			}
			s.code = append(s.code, d.sign+line)
		}
	}
	return s
}

func rulesFileWords(moment string, f *RulesFile) string {
	s := moment + " " + baseName(f.File) + " sha256 " + f.SHA256
	if f.Saved != "" {
		s += ", made " + string(f.Saved) + " by the node's clock"
	}
	return s
}

// agentLines tells of the agent's Pods: nodes without a ready one, and those that are older than the change.
func agentLines(rec *Record) []string {
	var out []string
	for _, w := range rec.Facts.Warnings {
		if w.Code == "agent-not-ready" || w.Code == "no-agent" {
			out = append(out, w.Text)
		}
	}
	for i, a := range rec.Evidence.OldAgents {
		if i == maxAgents {
			out = append(out, "and "+count(uint64(len(rec.Evidence.OldAgents)-i), "more agent Pod")+": -o json")
			break
		}
		out = append(out, fmt.Sprintf("%s on node %s runs since %s, before the change: it takes a new list only when it reads its ConfigMap again", a.Pod, a.Node, utcText(a.Started)))
	}
	return out
}

func captureTable(rec *Record) [][]string {
	table := [][]string{{"capture", "of", "window", "packets", "filter", "dropped"}}
	for i := range rec.Captures {
		c := &rec.Captures[i]
		filter, dropped := "not known", "not recorded"
		if c.Filter != nil {
			filter = cmp.Or(*c.Filter, "none") + " (" + string(c.FilterBasis) + ")"
		}
		if c.Dropped != nil {
			dropped = number(*c.Dropped)
		}
		packets := number(c.Packets)
		if !c.Complete {
			packets += ", damaged"
		}
		window := "no times"
		if c.Window.Clock != nil {
			window = shortClock(c.Window.ClockFrom) + " to " + shortClock(c.Window.ClockTo) + ", no date"
		}
		if c.Window.From.Known() {
			window = utcText(c.Window.From) + " to " + utcText(c.Window.To)
			if day := c.Window.To.In(time.UTC).Format("2006-01-02 "); strings.HasPrefix(window, day) {
				window = utcText(c.Window.From) + " to " + strings.TrimPrefix(utcText(c.Window.To), day)
			}
		}
		table = append(table, []string{captureFileName(c), momentOf(rec.Evidence, i) + ", " + c.Side, window, packets, filter, dropped})
	}
	return table
}

// momentOf names the moment that a capture is of.
func momentOf(e *Evidence, capture int) string {
	return analyze.Moment(momentIndex(e, capture)).String()
}

// momentIndex is 0 for a capture of before, 1 for after, 2 for rollback.
func momentIndex(e *Evidence, capture int) int {
	at := 0
	for i, first := range e.FirstCapture {
		if capture >= first {
			at = i
		}
	}
	return at
}

func digestLines(rec *Record) []string {
	var out []string
	for i := range rec.Captures {
		c := &rec.Captures[i]
		name := momentOf(rec.Evidence, i) + " " + captureFileName(c)
		out = append(out, name+" sha256 "+cmp.Or(string(c.SHA256), "not recorded"))
		for _, n := range c.Notes {
			out = append(out, name+": "+n)
		}
	}
	return out
}

func givenLines(rec *Record) []string {
	var out []string
	for _, g := range rec.Facts.Given {
		out = append(out, g.Flag+" "+g.Value)
	}
	if e := rec.Evidence; e.ChangedAt.Known() {
		out = append(out, "--changed-at "+e.ChangedAt.In(time.UTC).Format(time.RFC3339Nano)+": each capture counts on its side of it")
	}
	return out
}
