package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/live"
	"github.com/srcproof/srcproof/capture/wire"
	"github.com/srcproof/srcproof/report"
)

// liveVerdicts judges a capture while it runs and tells each verdict once it is decided.
type liveVerdicts struct {
	std     *stdio
	opt     liveOptions
	stream  *live.Stream
	live    *analyze.Live
	packets []wire.Packet
	next    time.Time
	fresh   bool              // packets came since the last judging, or time alone may decide
	told    map[string]string // by request id: the verdict that was told
	table   bool              // on a terminal: a table that is drawn again in its place, not a line for each verdict
	drawn   int               // its lines
	begun   time.Time

	connTrack   *live.ConnTrack // nil: not asked
	connections cluster.Connections
	asked       map[askedRequest]int // how often the connection table was asked for a request
	trackFailed error
}

// askedRequest tells requests apart, whatever is found out about them.
type askedRequest struct {
	tuple   wire.Tuple // of its first leg
	opening uint64
	first   int64
}

func newLiveVerdicts(std *stdio, opt liveOptions, section live.Section) *liveVerdicts {
	in := analyze.Input{File: opt.files.name}
	if in.File == "" {
		in.File = opt.capture.Device
	}
	_, terminal := terminalWidth(std.rawOut)
	v := &liveVerdicts{
		std: std, opt: opt, stream: live.NewStream(section), told: make(map[string]string),
		table: terminal && opt.format == "text" && std.env("TERM") != "dumb", begun: time.Now(),
	}
	in.Connections = &v.connections
	v.live = analyze.NewLive(in, opt.facts, analyze.Options{})
	return v
}

func (v *liveVerdicts) add(f *live.Frame, ifaces []live.Interface) {
	v.packets = v.stream.Decode(v.packets[:0], f, ifaces)
	v.live.Add(v.packets)
	v.fresh = true
}

// askConnTrack lets the kernel's connection table speak where the packets do not.
func (v *liveVerdicts) askConnTrack(t *live.ConnTrack) {
	v.connTrack, v.asked = t, make(map[askedRequest]int)
}

// How often the table is asked for one request, for an entry may come late; and how many requests it is asked for at once, so
// that the packets do not wait for long: an answer takes about 20 microseconds.
const (
	maxAsked   = 3
	maxAskedAt = 5000
)

// result judges what was captured until now. Entries of the connection table do not live long: they are asked for at once.
func (v *liveVerdicts) result(sum wire.Summary) *analyze.Result {
	res := v.live.Result(sum)
	if v.connTrack == nil || v.trackFailed != nil {
		return res
	}
	before, left := v.connections.Len(), maxAskedAt
	for _, r := range res.Each {
		if r.Basis == analyze.BasisTranslation || r.Basis == analyze.BasisConntrack || len(r.Legs) == 0 {
			continue
		}
		k := askedRequest{r.Legs[0].Tuple, r.Opening, r.First}
		if v.asked[k] >= maxAsked || left == 0 {
			continue
		}
		left--
		v.asked[k]++
		c, ok, err := v.connTrack.Find(k.tuple)
		if err != nil {
			v.trackFailed = err // the capture goes on without
			return res
		}
		if ok {
			v.asked[k] = maxAsked
			v.connections.Add(c)
		}
	}
	if v.connections.Len() > before {
		res = v.live.Result(sum)
	}
	return res
}

// due tells whether it is time to judge again.
func (v *liveVerdicts) due(now time.Time) bool { return (v.fresh || v.table) && !now.Before(v.next) }

// judgeEvery is how often verdicts are made. Judging takes the longer the more flows there are: it gets a tenth of the time.
const judgeEvery = 500 * time.Millisecond

// judge tells the verdicts that are new, and whether the expectation is met.
func (v *liveVerdicts) judge(state captureState) (met bool, err error) {
	begun := time.Now()
	sum := v.summary(state)
	res := v.result(sum)
	if v.table {
		err = v.draw(res, &sum)
		v.fresh = false
	} else {
		v.fresh, err = v.tell(res)
	}
	if !v.opt.question.expect.IsZero() {
		met = v.opt.question.expect.Any(res, v.opt.question.which).State == analyze.Met
	}
	v.next = time.Now().Add(max(judgeEvery, 9*time.Since(begun)))
	return met, errors.Join(err, v.std.out.flush())
}

// summary is what is known of the capture: what its file would say if it ended now.
func (v *liveVerdicts) summary(state captureState) wire.Summary {
	sum := v.stream.Summary(live.Ending{From: state.from, Until: state.until, Dropped: state.dropped})
	switch {
	case v.connTrack == nil:
	case v.trackFailed != nil:
		sum.Notes = append(sum.Notes, "the kernel's connection table could not be asked: "+v.trackFailed.Error())
	default:
		sum.Notes = append(sum.Notes, "the kernel's connection table was asked while capturing and gave "+countWords(uint64(v.connections.Len()), "connection"))
	}
	return sum
}

// draw draws the table of requests over the one before.
func (v *liveVerdicts) draw(res *analyze.Result, sum *wire.Summary) error {
	now := time.Now()
	state := report.LiveState{Elapsed: now.Sub(v.begun), Now: report.TimeOf(now.UnixNano()), Packets: sum.Frames, Dropped: sum.Dropped, Above: v.drawn}
	if f, ok := v.std.rawOut.(*os.File); ok {
		state.Columns, state.Rows, _ = windowSize(f) // it may have changed
	}
	var err error
	v.drawn, err = report.WriteLive(v.std.out, report.New(res.Select(v.opt.question.which), report.Tool{}), state, v.std.textOptions())
	return err
}

// erase takes the table away, for what is said next stands where it stood.
func (v *liveVerdicts) erase() error {
	if v.drawn == 0 {
		return nil
	}
	_, err := fmt.Fprintf(v.std.out, "\x1b[%dA\r\x1b[J", v.drawn)
	v.drawn = 0
	return errors.Join(err, v.std.out.flush())
}

// tell writes the verdicts that are decided and were not told yet, or were told otherwise. A request of which the captured
// packets do not tell yet how far it got is not decided.
func (v *liveVerdicts) tell(res *analyze.Result) (undecided bool, err error) {
	part := res.Select(v.opt.question.which)
	rec := report.New(part, report.Tool{Version: versionText(), Args: v.std.args})
	var fresh []int
	for i := range rec.Requests {
		r := &rec.Requests[i]
		if !report.Decided(r) {
			undecided = true
			continue
		}
		verdict := r.Source + r.Outcome + r.StoppedAt + fmt.Sprint(r.Completed)
		if v.told[r.ID] != verdict {
			v.told[r.ID] = verdict
			fresh = append(fresh, i)
		}
	}
	if v.opt.format == "jsonl" {
		return undecided, report.WriteJSONLRequests(v.std.out, rec, fresh)
	}
	return undecided, report.WriteVerdicts(v.std.out, rec, fresh, v.std.textOptions())
}

// finish gives the report of the whole capture, and what is not as expected.
func (v *liveVerdicts) finish(state captureState) error {
	res := v.result(v.summary(state))
	if !v.table {
		if _, err := v.tell(res); err != nil {
			return err
		}
	}
	shown := res.Select(v.opt.question.which)
	var verdict error
	if !v.opt.question.expect.IsZero() {
		if any := v.opt.question.expect.Any(res, v.opt.question.which); any.State != analyze.Met {
			verdict = &verdictError{any}
		}
	}
	rec := report.New(shown, report.Tool{Version: versionText(), Args: v.std.args})
	if v.opt.format == "jsonl" {
		return errors.Join(report.WriteJSONLEnd(v.std.out, rec), verdict)
	}
	_, err := fmt.Fprintln(v.std.out)
	return errors.Join(err, report.WriteText(v.std.out, rec, v.std.textOptions()), verdict)
}
