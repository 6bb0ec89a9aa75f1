package report

import (
	"io"

	"github.com/srcproof/srcproof/analyze"
)

// WriteExplain writes what a finding code means and what to do. Its only errors are w's.
func WriteExplain(w io.Writer, doc analyze.CodeDoc, opt TextOptions) error {
	p := newPage(w, opt)
	p.put(p.strong.Sprint(Escape(doc.Code)))
	p.paragraph(0, Escape(doc.Title), nil)
	p.blank()
	p.labelled("means", doc.Meaning)
	p.steps(labelHead("do"), doc.Do)
	return p.w.Flush()
}

// WriteExplainList writes all finding codes with their titles. Its only errors are w's.
func WriteExplainList(w io.Writer, docs []analyze.CodeDoc, opt TextOptions) error {
	p := newPage(w, opt)
	width := 0
	for _, d := range docs {
		width = max(width, columns(Escape(d.Code)))
	}
	width = min(width, p.width/2)
	for _, d := range docs {
		code := cutMiddle(Escape(d.Code), width)
		for i, line := range wrap(Escape(d.Title), p.width-width-2, p.width-width-2) {
			if i == 0 {
				line = p.strong.Sprint(code) + blanks(width-columns(code)+2) + line
			} else {
				line = blanks(width+2) + line
			}
			p.put(line)
		}
	}
	return p.w.Flush()
}
