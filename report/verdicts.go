package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fatih/color"
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
		p.put(at + "  " + p.liveStyle(r).Sprint(Escape(s)))
	}
	return p.w.Flush()
}

// LiveState is what a table of a running capture tells beside its requests.
type LiveState struct {
	Elapsed time.Duration
	Now     Time // to tell ages by
	Packets uint64
	Dropped uint64 // by the kernel
	Rows    int    // of the terminal; 0 is unknown
	Columns int    // of the terminal; 0 is unknown
	Above   int    // lines of the table that stands there already
}

// What a live table takes of a terminal whose size is not known, and the rows that it leaves to the prompt and its own head.
const (
	liveRows    = 24
	liveColumns = minWidth
	liveSpare   = 5
)

// WriteLive writes a table of the requests of a running capture over the one that stands there, the latest ones as far as the
// terminal is high, and returns how many lines it has. Each line is cut to the terminal's width, so that none of them breaks and
// the next table meets this one. Its only errors are w's.
func WriteLive(w io.Writer, rec *Record, s LiveState, opt TextOptions) (lines int, err error) {
	p := newPage(w, opt)
	rows, width := s.Rows, s.Columns
	if rows <= 0 {
		rows = liveRows
	}
	if width <= 0 {
		width = liveColumns
	}
	if s.Above > 0 {
		_, _ = p.w.WriteString("\x1b[" + strconv.Itoa(s.Above) + "A\r") // p.w keeps its first error
	}
	// The text stays where it is until its new text is written over it, and what is left of the old line is erased: no flicker.
	put := func(text string, style *color.Color) {
		if text = cutEnd(text, width-1); style != nil { // a line that fills the last column breaks on some terminals
			text = style.Sprint(text)
		}
		p.put(text + "\x1b[K")
		lines++
	}
	head := liveAge(s.Elapsed) + "  " + count(s.Packets, "packet") + "  "
	if s.Dropped > 0 {
		put(head+number(s.Dropped)+" DROPPED by the kernel: nothing that is missing proves absence", p.bad)
	} else {
		put(head+"none dropped", p.strong)
	}
	put(liveCounts(rec), p.strong)
	shown := liveShown(rec, max(rows-liveSpare, 1))
	if len(shown) > 0 {
		cells := make([][]string, 0, len(shown)+1)
		cells = append(cells, []string{"source", "outcome", "age", "sent", "back", ""})
		to := liveServer(rec, shown)
		if to != "" {
			cells[0][5] = "to " + to + " from"
		}
		for _, i := range shown {
			cells = append(cells, liveCells(&rec.Requests[i], s.Now, to != ""))
		}
		var widths [5]int
		for _, line := range cells {
			for i := range widths {
				widths[i] = max(widths[i], len(line[i]))
			}
		}
		for n, c := range cells {
			text := fmt.Sprintf("%-*s  %-*s  %*s  %*s  %*s  %s", widths[0], c[0], widths[1], c[1], widths[2], c[2], widths[3], c[3], widths[4], c[4], c[5])
			if n == 0 {
				put(text, nil)
			} else {
				put(text, p.liveStyle(&rec.Requests[shown[n-1]]))
			}
		}
	}
	_, _ = p.w.WriteString("\x1b[J") // a table that was longer
	return lines, p.w.Flush()
}

// liveShown chooses the requests of a live table: those that did not go well, or may still, before the others, and then the
// latest ones. They stand in the record's order.
func liveShown(rec *Record, most int) []int {
	var out []int
	for _, well := range []bool{false, true} {
		for i := len(rec.Requests) - 1; i >= 0 && len(out) < most; i-- {
			if r := &rec.Requests[i]; well == (wentWell(r) && Decided(r)) {
				out = append(out, i)
			}
		}
	}
	slices.Sort(out)
	return out
}

// liveServer is what all requests that are shown went to, "" if they went to several.
func liveServer(rec *Record, shown []int) string {
	var to string
	for n, i := range shown {
		r := &rec.Requests[i]
		s := r.Proto + " " + endpointText(&r.Server)
		if n > 0 && s != to {
			return ""
		}
		to = s
	}
	return to
}

// liveCells are the columns of a request.
func liveCells(r *Request, now Time, oneServer bool) []string {
	age := "-"
	if r.First.Known() && now.Known() {
		age = liveAge(time.Duration(max(now.Sub(r.First), 0)))
	}
	text := tupleText(r)
	if oneServer {
		text = endpointText(&r.Client)
		if r.EchoID != nil {
			text += " id " + strconv.Itoa(int(*r.EchoID))
		}
	}
	if r.Egress != nil && r.Egress.Addr != r.Client.Addr {
		text += " left as " + r.Egress.Addr
	}
	return []string{r.Source, liveOutcome(r), age, number(r.RequestsSent), number(r.RepliesSeen), Escape(text)}
}

func (p *page) liveStyle(r *Request) *color.Color {
	switch {
	case !Decided(r), r.Source == "unknown", r.Outcome == "unknown":
		return p.odd
	case !wentWell(r):
		return p.bad
	}
	return p.good
}

// liveAge is a duration in whole seconds: a table that is drawn twice a second has no use for more.
func liveAge(d time.Duration) string {
	if d < time.Minute {
		return strconv.Itoa(int(d/time.Second)) + " s"
	}
	return duration(d.Nanoseconds())
}

// liveOutcome is a request's outcome, or that it may still be decided.
func liveOutcome(r *Request) string {
	if !Decided(r) {
		return "waiting"
	}
	return r.Outcome
}

// liveCounts says how many requests there are, by source.
func liveCounts(rec *Record) string {
	if len(rec.Requests) == 0 {
		return "no request yet"
	}
	var names []string
	counts := map[string]uint64{}
	for i := range rec.Requests {
		if s := rec.Requests[i].Source; counts[s] == 0 {
			names = append(names, s)
		}
		counts[rec.Requests[i].Source]++
	}
	for i, s := range names {
		names[i] = number(counts[s]) + " " + s
	}
	return count(uint64(len(rec.Requests)), "request") + ": " + strings.Join(names, ", ")
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
