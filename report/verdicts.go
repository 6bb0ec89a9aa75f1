package report

import (
	"io"
	"slices"
	"time"
)

// Decided tells whether more packets or more time would not decide a request further: it completed or was answered otherwise, or it
// is known that nothing came in the time that an answer takes.
func Decided(r *Request) bool {
	return !slices.ContainsFunc(r.Unknown, func(u Unknown) bool { return u.Field == "outcome" && u.Reason == "capture-ended" })
}

// WriteVerdicts writes a line for each of some requests of a record, as a capture tells them while it runs. Its only errors are
// w's.
func WriteVerdicts(w io.Writer, rec *Record, which []int, opt TextOptions) error {
	p := newPage(w, opt)
	for _, i := range which {
		r := &rec.Requests[i]
		at := "--:--:--"
		if r.First.Known() {
			at = r.First.In(p.loc).Format(time.TimeOnly)
		}
		s := tupleText(r) + "  " + r.Source
		if r.Egress != nil && r.Egress.Addr != r.Client.Addr {
			s += " (left as " + r.Egress.Addr + ")"
		}
		s += ", " + endedWords(r)
		if r.StoppedAt != "none" && r.StoppedAt != "unknown" {
			s += ", stopped at " + r.StoppedAt
		}
		style := p.good
		switch {
		case r.Source == "unknown" || r.Outcome == "unknown":
			style = p.odd
		case !wentWell(r):
			style = p.bad
		}
		p.put(at + "  " + style.Sprint(Escape(s)))
	}
	return p.w.Flush()
}

// WriteJSONLRequests writes the rows of some requests, as WriteJSONL does. Its only errors are w's.
func WriteJSONLRequests(w io.Writer, rec *Record, which []int) error {
	e := encoder{w: w}
	for _, i := range which {
		e.row("request", func() { e.requestFields(&rec.Requests[i]) })
	}
	return e.flush()
}

// WriteJSONLEnd writes the rows of WriteJSONL that are not requests. Its only errors are w's.
func WriteJSONLEnd(w io.Writer, rec *Record) error {
	rest := *rec
	rest.Requests = nil
	return WriteJSONL(w, &rest)
}
