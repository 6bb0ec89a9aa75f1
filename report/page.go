package report

import (
	"bufio"
	"io"
	"strings"
	"time"

	"github.com/fatih/color"
)

// page is what the writers of text share: a width, a palette, a place to write to.
type page struct {
	w     *bufio.Writer // keeps its first error; Flush returns it
	width int
	opt   TextOptions
	loc   *time.Location
	told  map[string]bool // steps that were written, by toldBy

	strong, bad, odd, good, quiet *color.Color
}

func newPage(w io.Writer, opt TextOptions) *page {
	p := &page{w: bufio.NewWriter(w), width: opt.Width, opt: opt, loc: opt.Location, told: make(map[string]bool)}
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
// end in ": " and a command.
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
	for i := 0; ; {
		n := strings.Index(line[i:], ": ")
		if n < 0 {
			return strings.TrimSpace(line), ""
		}
		i += n + 2
		if strings.HasPrefix(line[i:], " ") || isCommand(line[i:]) {
			return line[:i-1], strings.TrimSpace(line[i:])
		}
	}
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
