package report

import (
	"io"

	"github.com/srcproof/srcproof/analyze"
)

// WriteExplain writes what a finding's code or a word means and what to do. A word may be several things. Its only errors
// are w's.
func WriteExplain(w io.Writer, codes []analyze.CodeDoc, words []analyze.WordDoc, opt TextOptions) error {
	p := newPage(w, opt)
	for i, doc := range codes {
		if i > 0 {
			p.blank()
		}
		p.put(p.strong.Sprint(Escape(doc.Code)))
		p.paragraph(0, Escape(doc.Title), nil)
		p.blank()
		p.labelled("means", doc.Meaning)
		p.steps(labelHead("do"), doc.Do)
	}
	for i, doc := range words {
		if i > 0 || len(codes) > 0 {
			p.blank()
		}
		p.put(p.strong.Sprint(Escape(doc.Word)))
		p.paragraph(0, groupWords(doc.Group), nil)
		p.blank()
		p.labelled("means", []string{doc.Meaning})
		p.steps(labelHead("do"), []string{doc.Do})
	}
	return p.w.Flush()
}

// WriteExplainList writes all finding codes with their titles, and all words by group with what they mean. Its only errors
// are w's.
func WriteExplainList(w io.Writer, codes []analyze.CodeDoc, words []analyze.WordDoc, opt TextOptions) error {
	p := newPage(w, opt)
	width := 0
	for _, d := range codes {
		width = max(width, columns(Escape(d.Code)))
	}
	for _, d := range words {
		width = max(width, columns(Escape(d.Word)))
	}
	width = min(width, p.width/2)
	p.put(p.strong.Sprint("findings"))
	for _, d := range codes {
		p.entryOf(d.Code, d.Title, width)
	}
	var group analyze.WordGroup
	for _, d := range words {
		if d.Group != group {
			group = d.Group
			p.blank()
			p.paragraph(0, groupWords(group), p.strong)
		}
		p.entryOf(d.Word, d.Meaning, width)
	}
	return p.w.Flush()
}

// entryOf writes a word and behind it, in a column, what it means.
func (p *page) entryOf(name, text string, width int) {
	name = cutMiddle(Escape(name), width)
	room := p.width - width - 4
	for i, line := range wrap(Escape(text), room, room) {
		if i == 0 {
			line = "  " + p.strong.Sprint(name) + blanks(width-columns(name)+2) + line
		} else {
			line = blanks(width+4) + line
		}
		p.put(line)
	}
}

// groupWords says in which field a group's words stand.
func groupWords(g analyze.WordGroup) string {
	switch g {
	case analyze.GroupSource:
		return "source: which address left the node"
	case analyze.GroupBasis:
		return "source_basis: what carries the source"
	case analyze.GroupOutcome:
		return "outcome: how far the request got"
	case analyze.GroupStoppedAt:
		return "stopped_at: where packets stop"
	case analyze.GroupDirection:
		return "direction: of the request, seen from the cluster"
	case analyze.GroupUnknown:
		return "not known: why one of them is unknown"
	case analyze.GroupVerdict:
		return "verdict: what a change did (evidence)"
	case analyze.GroupReason:
		return "reason: why a verdict is inconclusive (evidence)"
	}
	return Escape(string(g))
}
