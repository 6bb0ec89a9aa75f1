package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/srcproof/srcproof/analyze"
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
}

func newLiveVerdicts(std *stdio, opt liveOptions, section live.Section) *liveVerdicts {
	in := analyze.Input{File: opt.files.name}
	if in.File == "" {
		in.File = opt.capture.Device
	}
	return &liveVerdicts{std: std, opt: opt, stream: live.NewStream(section), live: analyze.NewLive(in, opt.facts, analyze.Options{}), told: make(map[string]string)}
}

func (v *liveVerdicts) add(f *live.Frame, ifaces []live.Interface) {
	v.packets = v.stream.Decode(v.packets[:0], f, ifaces)
	v.live.Add(v.packets)
	v.fresh = true
}

// due tells whether it is time to judge again.
func (v *liveVerdicts) due(now time.Time) bool { return v.fresh && !now.Before(v.next) }

// judgeEvery is how often verdicts are made. Judging takes the longer the more flows there are: it gets a tenth of the time.
const judgeEvery = 500 * time.Millisecond

// judge tells the verdicts that are new, and whether the expectation is met.
func (v *liveVerdicts) judge(dropped uint64) (met bool, err error) {
	begun := time.Now()
	res := v.live.Result(v.stream.Summary(dropped))
	undecided, err := v.tell(res)
	v.fresh = undecided
	if !v.opt.question.expect.IsZero() {
		met = v.opt.question.expect.Any(res, v.opt.question.which).State == analyze.Met
	}
	v.next = time.Now().Add(max(judgeEvery, 9*time.Since(begun)))
	return met, errors.Join(err, v.std.out.flush())
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
func (v *liveVerdicts) finish(dropped uint64) error {
	res := v.live.Result(v.stream.Summary(dropped))
	if _, err := v.tell(res); err != nil {
		return err
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
