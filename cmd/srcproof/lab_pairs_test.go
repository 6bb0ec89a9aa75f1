package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/wire"
)

// pairCase is what a pairRow works on: all situations, and the pair's captures.
type pairCase struct {
	t       *testing.T
	results map[string]*scenarioResult
	near    []byte // the first of the node's side
	far     []byte
	request string // "proto src > dst", as the row has it
}

// pairRow is a pair of captures of one situation, one of which may be changed, and what must be said of a request:
// exactly this, where the situations' own verdicts allow unknown beside it.
type pairRow struct {
	about    string
	scenario string
	near     []string                // captures of the node's side; nil is any
	far      string                  // "" is far
	change   func(c pairCase) []byte // what is given for the far capture; nil leaves it
	filter   bool                    // the person says that the far capture has no filter
	opt      func(c pairCase) analyze.PairOptions

	request, source, outcome, stoppedAt string

	reason           string        // why stopped_at is not known; "" where it is, or not asserted
	finding, without string        // a finding that the request must and must not have; "" not asserted
	offset           time.Duration // what the far clock must be found to be ahead by; 0 not asserted
}

// times are when the client's opening packets of the request are in the node's capture, first and last.
func (c pairCase) times() (first, last time.Time) {
	c.t.Helper()
	frames, err := decodeCapture(c.near, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	s := sees("any", c.request)
	for i := range frames {
		if f := &frames[i]; s.matches(f) && (f.proto != "tcp" || f.flags == "S") {
			if last = f.time; first.IsZero() {
				first = f.time
			}
		}
	}
	if first.IsZero() {
		c.t.Fatalf("no packet of %s", c.request)
	}
	return first, last
}

// keep returns the far capture with those packets alone whose time is as told.
func (c pairCase) keep(want func(time.Time) bool) []byte {
	c.t.Helper()
	header, records := classicFrames(c.t, c.far)
	out := slices.Clone(header)
	kept := 0
	for _, r := range records {
		if want(recordTime(r)) {
			out = append(out, r...)
			kept++
		}
	}
	if kept == 0 || kept == len(records) {
		c.t.Fatalf("%d of %d packets kept: the row does not do what it says", kept, len(records))
	}
	return out
}

func recordTime(r []byte) time.Time {
	return time.Unix(int64(binary.LittleEndian.Uint32(r)), int64(binary.LittleEndian.Uint32(r[4:]))*1000).UTC()
}

// What is done to a far capture.

func movedBy(d time.Duration) func(pairCase) []byte {
	return func(c pairCase) []byte { return moved(c.t, c.far, d) }
}

func emptied(c pairCase) []byte {
	header, _ := classicFrames(c.t, c.far)
	return header
}

// startedAfter has only what came when the client had sent all that it sent. Nothing of the request itself arrives in the
// situations that use it, so the next request is there whole.
func startedAfter(c pairCase) []byte {
	_, last := c.times()
	return c.keep(func(t time.Time) bool { return t.After(last) })
}

func endedBefore(c pairCase) []byte {
	first, _ := c.times()
	return c.keep(func(t time.Time) bool { return t.Before(first) })
}

// startedAmid has what came after the first of the client's packets and before the last.
func startedAmid(c pairCase) []byte {
	first, _ := c.times()
	return c.keep(func(t time.Time) bool { return t.After(first.Add(10 * time.Millisecond)) })
}

// farOf is another situation's far capture, moved so that by the clocks it began as this one's did.
func farOf(scenario string) func(pairCase) []byte {
	return func(c pairCase) []byte {
		c.t.Helper()
		other := c.results[scenario].captures["far"].pcap
		_, theirs := classicFrames(c.t, other)
		_, ours := classicFrames(c.t, c.far)
		return moved(c.t, other, recordTime(ours[0]).Sub(recordTime(theirs[0])))
	}
}

// then does one after the other.
func then(first func(pairCase) []byte, second func(pairCase) []byte) func(pairCase) []byte {
	return func(c pairCase) []byte {
		c.far = first(c)
		return second(c)
	}
}

// What is stated of a far capture.

func farHost(pairCase) analyze.PairOptions {
	return analyze.PairOptions{FarHosts: []wire.Addr{wire.MustAddr(farIP)}}
}

// farHostAndWindow says that it ran all the time that the node's did, and a second more at both ends.
func farHostAndWindow(c pairCase) analyze.PairOptions {
	_, records := classicFrames(c.t, c.near)
	opt := farHost(c)
	opt.HasFarWindow = true
	opt.FarFrom = recordTime(records[0]).Add(-time.Second).UnixNano()
	opt.FarTo = recordTime(records[len(records)-1]).Add(time.Second).UnixNano()
	return opt
}

func farOffset(d, err time.Duration) func(pairCase) analyze.PairOptions {
	return func(pairCase) analyze.PairOptions {
		return analyze.PairOptions{HasFarOffset: true, FarOffset: int64(d), FarOffsetError: int64(err)}
	}
}

// pairRows is the table.
func pairRows() []pairRow {
	const (
		hs    = "handshake-completed"
		ro    = "request-only"
		pods  = "pod-sourced"
		snat  = "node-snated"
		hours = 2 * time.Hour
	)
	rows := []pairRow{
		// Who answers, and from where.
		{about: "a router without a way back is named", scenario: "before", request: podTCP, source: pods, outcome: ro, stoppedAt: "return", finding: "no-return-route"},
		{about: "so is one of IPv6", scenario: "ipv6-kept", request: podTCP6, source: pods, outcome: ro, stoppedAt: "return", finding: "no-return-route"},
		{about: "so is one behind a tunnel", scenario: "overlay-kept", request: podTCP, source: pods, outcome: ro, stoppedAt: "return", finding: "no-return-route"},
		{about: "so is one behind a tunnel, where only the uplink was captured", scenario: "overlay-kept", near: []string{"uplink"}, request: podTCP, source: pods, outcome: ro, stoppedAt: "return", finding: "no-return-route"},
		{about: "a ping without a way back is treated alike", scenario: "before", request: podEcho, source: pods, outcome: ro, stoppedAt: "return", finding: "no-return-route"},
		{about: "a second translation past the node is said", scenario: "snat-twice", request: podTCP, source: snat, outcome: hs, stoppedAt: "none", finding: "second-translation"},
		{about: "a translation past a node that keeps the Pod's address is said", scenario: "kept-snat-past-node", request: podTCP, source: pods, outcome: hs, stoppedAt: "none", finding: "second-translation"},
		{about: "one translation is not two", scenario: "snat-random-fully", request: podTCP, source: snat, outcome: hs, stoppedAt: "none", without: "second-translation"},
		{about: "twice translated and silent", scenario: "snat-twice-silent", request: podTCP, source: snat, outcome: ro, stoppedAt: "far", finding: "second-translation"},
		{about: "twice translated and lost", scenario: "snat-twice-dropped", filter: true, request: podTCP, source: snat, outcome: ro, stoppedAt: "between"},
		{about: "a destination that changes past the node is still the same request", scenario: "dnat-past-node-silent", request: "tcp " + podIP + " > " + virtualIP + ":80", source: snat, outcome: ro, stoppedAt: "far", without: "second-translation"},
		{
			about: "that an address which the far capture never shows was not reached is not known", scenario: "dnat-past-node-dropped", filter: true,
			request: "tcp " + podIP + " > " + virtualIP + ":80", source: snat, outcome: ro, stoppedAt: "unknown", reason: "far-place-not-known",
		},
		{about: "a proxy's connection is another one", scenario: "proxy", filter: true, request: podTCP, source: snat, outcome: hs, stoppedAt: "none", finding: "answered-by-middlebox", without: "second-translation"},
		{about: "also where the proxy takes the client's address", scenario: "proxy-as-client", filter: true, request: podTCP, source: snat, outcome: hs, stoppedAt: "none", finding: "answered-by-middlebox", without: "sequence-rewritten"},
		{about: "a proxy whose own connection is not answered may be another client", scenario: "proxy-far-silent", filter: true, request: podTCP, source: snat, outcome: hs, stoppedAt: "unknown", reason: "join-ambiguous"},
		{about: "a SYN proxy whose SYN is lost: the handshake was not the far host's", scenario: "synproxy-dropped", filter: true, request: podTCP, source: snat, outcome: hs, stoppedAt: "between", finding: "answered-by-middlebox"},
		{about: "a SYN proxy passes on what the client began", scenario: "synproxy", request: podTCP, source: snat, outcome: hs, stoppedAt: "none"},
		{about: "a SYN proxy whose SYN is not answered: the handshake was not the far host's", scenario: "synproxy-far-silent", filter: true, request: podTCP, source: snat, outcome: hs, stoppedAt: "far", finding: "answered-by-middlebox"},
		{about: "a reset in the server's name is not the server's", scenario: "reset-between", filter: true, request: podTCP, source: snat, outcome: "refused", stoppedAt: "between", finding: "answered-by-middlebox"},
		{about: "a reset of the server itself is", scenario: "refused", request: podTCP, source: snat, outcome: "refused", stoppedAt: "none", without: "answered-by-middlebox"},
		{about: "beside it the other request is not a middlebox's", scenario: "reset-between", filter: true, request: podTCP2, source: snat, outcome: hs, stoppedAt: "none", without: "answered-by-middlebox"},
		{about: "a firewall that rejects the answers is named", scenario: "return-rejected", request: podTCP, source: snat, outcome: ro, stoppedAt: "return"},
		{about: "a reset to the far host in the client's name is not the client's", scenario: "return-reset", request: podTCP, source: snat, outcome: ro, stoppedAt: "return", without: "client-reset-after-synack"},
		{about: "an answer at another node, whose capture is not there", scenario: "reply-at-other-node", request: podTCP, source: pods, outcome: ro, stoppedAt: "return", without: "answer-at-other-node"},
		{about: "an answer at another node, whose capture is there", scenario: "reply-at-other-node", near: []string{"any", "node2"}, request: podTCP, source: pods, outcome: ro, stoppedAt: "return", finding: "answer-at-other-node"},
		{about: "the captures of the nodes in another order", scenario: "reply-at-other-node", near: []string{"node2", "any"}, request: podTCP, source: pods, outcome: ro, stoppedAt: "return", finding: "answer-at-other-node"},
		{about: "a second node's capture takes nothing from what is answered", scenario: "reply-at-other-node", near: []string{"any", "node2"}, request: podTCP2, source: pods, outcome: hs, stoppedAt: "none", without: "answer-at-other-node"},
		{about: "timestamps stripped", scenario: "timestamps-stripped", request: podTCP, source: snat, outcome: hs, stoppedAt: "none", without: "sequence-rewritten"},
		{about: "every packet twice at the far side", scenario: "duplicated", request: podTCP, source: snat, outcome: hs, stoppedAt: "none"},

		// Captures on the way and of one interface.
		{about: "the uplink alone beside the far side", scenario: "dropped-between", near: []string{"uplink"}, filter: true, request: nodeTCP, source: snat, outcome: ro, stoppedAt: "between"},
		{about: "the Pod's own interface beside the far side: the far side shows the source", scenario: "snat", near: []string{"inside"}, request: podTCP, source: snat, outcome: hs, stoppedAt: "none", without: "second-translation"},
		{
			about: "inside the Pod alone, what the far side does not hold may not have left", scenario: "dropped-between", near: []string{"inside"}, filter: true,
			request: podTCP, source: "unknown", outcome: ro, stoppedAt: "unknown",
		},

		// Far captures that do not cover the request.
		{about: "an empty far capture says nothing", scenario: "dropped-between", change: emptied, filter: true, request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown"},
		{about: "not even where its place is stated: when it ran is not known", scenario: "dropped-between", change: emptied, filter: true, opt: farHost, request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown", reason: "no-times"},
		{about: "it does where place, window and filter are stated", scenario: "dropped-between", change: emptied, filter: true, opt: farHostAndWindow, request: podTCP, source: snat, outcome: ro, stoppedAt: "between"},
		{about: "and not where the filter is not", scenario: "dropped-between", change: emptied, opt: farHostAndWindow, request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown", reason: "filter-not-known"},
		{about: "nor that the far host answered what was answered", scenario: "snat", change: emptied, filter: true, request: podTCP, source: snat, outcome: hs, stoppedAt: "unknown", reason: "far-place-not-known", without: "answered-by-middlebox"},
		{about: "a far capture that starts after the request", scenario: "dropped-between", change: startedAfter, filter: true, request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown", reason: "outside-far-window"},
		{about: "also where its clock is two hours ahead", scenario: "dropped-between", change: then(startedAfter, movedBy(hours)), filter: true, request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown", reason: "outside-far-window"},
		{about: "a far capture that ends before the request", scenario: "dropped-between", change: endedBefore, filter: true, request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown", reason: "outside-far-window"},
		{about: "when it ran can be stated, also where packets show how the clocks lie", scenario: "dropped-between", change: startedAfter, filter: true, opt: farHostAndWindow, request: podTCP, source: snat, outcome: ro, stoppedAt: "between"},
		{about: "one that starts between the first SYN and the last does not show what came back before", scenario: "dropped-at-far", change: startedAmid, request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown"},
		{about: "one that starts after a request that was answered", scenario: "reset-between", change: startedAfter, filter: true, request: podTCP, source: snat, outcome: "refused", stoppedAt: "unknown", reason: "outside-far-window", without: "answered-by-middlebox"},
		{about: "a far capture of another time", scenario: "dropped-between", change: then(farOf("dropped-at-far"), movedBy(26*time.Hour)), filter: true, request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown"},
		{about: "a far capture of another run, that by its clock ran at the time", scenario: "dropped-between", change: farOf("dropped-at-far"), filter: true, request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown"},
		{about: "nor does another run's show a middlebox", scenario: "snat", change: farOf("ping-snat"), filter: true, request: podTCP, source: snat, outcome: hs, stoppedAt: "unknown", reason: "clock-not-aligned", without: "answered-by-middlebox"},
		{about: "a far capture of another protocol", scenario: "dropped-between", change: farOf("ipv6-snat"), filter: true, request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown", reason: "far-place-not-known"},
		{
			about: "the near capture given twice", scenario: "dropped-between", change: func(c pairCase) []byte { return c.near }, filter: true,
			request: podTCP, source: "unknown", outcome: ro, stoppedAt: "unknown", reason: "sides-not-as-stated",
		},
		{
			about: "a far capture without a clock in common, two hours ahead", scenario: "dropped-between", change: then(farOf("dropped-on-return"), movedBy(hours)), filter: true,
			request: podTCP, source: snat, outcome: ro, stoppedAt: "unknown", reason: "clock-not-aligned",
		},
		{about: "the offset stated wrongly does not overrule what packets show", scenario: "dropped-between", change: movedBy(37 * time.Second), filter: true, opt: farOffset(hours, time.Millisecond), request: podTCP, source: snat, outcome: ro, stoppedAt: "between", offset: 37 * time.Second},

		// Ping and UDP.
		{about: "a datagram unanswered", scenario: "datagrams-silent", request: podUDP, source: snat, outcome: ro, stoppedAt: "far"},
		{about: "a ping unanswered", scenario: "datagrams-silent", request: podEcho, source: snat, outcome: ro, stoppedAt: "far"},
		{about: "a datagram lost", scenario: "datagrams-dropped", filter: true, request: podUDP, source: snat, outcome: ro, stoppedAt: "between"},
		{about: "a ping lost", scenario: "datagrams-dropped", filter: true, request: podEcho, source: snat, outcome: ro, stoppedAt: "between"},
		{about: "a datagram's answer lost", scenario: "datagrams-dropped-on-return", request: podUDP, source: snat, outcome: ro, stoppedAt: "return"},
		{about: "a ping's answer lost", scenario: "datagrams-dropped-on-return", request: podEcho, source: snat, outcome: ro, stoppedAt: "return"},
	}
	// A far clock that is ahead or behind, by any size: everything is as it was.
	for _, by := range []time.Duration{400 * time.Millisecond, -400 * time.Millisecond, 37 * time.Second, hours, -hours} {
		for _, row := range []pairRow{
			{scenario: "before", request: podTCP, source: pods, outcome: ro, stoppedAt: "return", finding: "no-return-route"},
			{scenario: "after", request: podTCP, source: snat, outcome: hs, stoppedAt: "none"},
			{scenario: "after", request: podEcho, source: snat, outcome: "answered", stoppedAt: "none"},
			{scenario: "refused", request: podTCP, source: snat, outcome: "refused", stoppedAt: "none"},
			{scenario: "rejected-by-router", request: podTCP, source: snat, outcome: "rejected", stoppedAt: "between"},
			{scenario: "rejected-by-host", request: podTCP, source: snat, outcome: "rejected", stoppedAt: "none"},
			{scenario: "node-in", request: podTCP, source: snat, outcome: ro, stoppedAt: "node-in"},
			{scenario: "dropped-between", request: podTCP, source: snat, outcome: ro, stoppedAt: "between"},
			{scenario: "dropped-at-far", request: podTCP, source: snat, outcome: ro, stoppedAt: "far"},
			{scenario: "dropped-on-return", request: podTCP, source: snat, outcome: ro, stoppedAt: "return"},
			{scenario: "snat-twice-dropped", request: podTCP, source: snat, outcome: ro, stoppedAt: "between"},
			{scenario: "proxy", request: podTCP, source: snat, outcome: hs, stoppedAt: "none", finding: "answered-by-middlebox"},
			{scenario: "reset-between", request: podTCP, source: snat, outcome: "refused", stoppedAt: "between", finding: "answered-by-middlebox"},
			{scenario: "datagrams-dropped", request: podUDP, source: snat, outcome: ro, stoppedAt: "between"},
			{scenario: "datagrams-silent", request: podEcho, source: snat, outcome: ro, stoppedAt: "far"},
			{scenario: "ipv6-dropped-between", request: podTCP6, source: snat, outcome: ro, stoppedAt: "between"},
			{scenario: "ipv6-dropped-at-far", request: podTCP6, source: snat, outcome: ro, stoppedAt: "far"},
			{scenario: "overlay-dropped", request: podTCP, source: snat, outcome: ro, stoppedAt: "between"},
		} {
			row.about, row.change, row.filter = fmt.Sprintf("the far clock is %v ahead", by), movedBy(by), true
			if row.scenario != "refused" { // a reset has no fingerprint: nothing bounds the clock from below
				row.offset = by
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// TestIntegrationPairs holds pairs of captures against each other that cover a request, or just do not.
func TestIntegrationPairs(t *testing.T) {
	results := labCaptures(t)
	checked := 0
	for _, row := range pairRows() {
		r := results[row.scenario]
		if r == nil {
			continue // labCaptures has said why
		}
		if err := row.check(row.run(t, results)); err != nil {
			t.Errorf("%s: %s: %v", row.scenario, row.about, err)
		}
		checked++
	}
	t.Logf("%d pairs checked", checked)
}

// run analyses the row's captures.
func (row pairRow) run(t *testing.T, results map[string]*scenarioResult) *analyze.Result {
	t.Helper()
	r := results[row.scenario]
	near, far := row.near, row.far
	if near == nil {
		near = []string{"any"}
	}
	if far == "" {
		far = "far"
	}
	c := pairCase{t: t, results: results, near: r.captures[near[0]].pcap, far: r.captures[far].pcap, request: row.request}
	given := c.far
	if row.change != nil {
		given = row.change(c)
	}
	var opt analyze.Options
	if row.opt != nil {
		opt.Pair = row.opt(c)
	}
	var inputs []analyze.Input
	add := func(name string, side wire.Side, pcap []byte, stated bool) {
		source, err := capture.NewReader(bytes.NewReader(pcap), name, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		in := analyze.Input{File: name, Side: side, Source: source, HasStated: stated}
		if len(near) > 1 && side == wire.SideNear {
			in.Label = name
		}
		inputs = append(inputs, in)
	}
	for _, name := range near {
		add(name, wire.SideNear, r.captures[name].pcap, false)
	}
	add(far, wire.SideFar, given, row.filter)
	res, err := analyze.Run(inputs, factsOf(t, r.facts), opt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// check holds the requests that the row is about, and what was found of the far clock, against the row.
func (row pairRow) check(res *analyze.Result) error {
	sel, err := analyze.ParseSelector(row.request)
	if err != nil {
		return err
	}
	var bad []error
	found := false
	want := labWant{source: []string{row.source}, outcome: row.outcome, stoppedAt: []string{row.stoppedAt}}
	for i := range res.Requests {
		req := &res.Requests[i]
		if !sel.Match(req) {
			continue
		}
		found = true
		bad = append(bad, want.agrees(req))
		if row.reason != "" && !slices.ContainsFunc(req.Unknown, func(u analyze.Unknown) bool { return u.Field == "stopped_at" && u.Reason == row.reason }) {
			bad = append(bad, fmt.Errorf("unknown %+v, want stopped_at for %s", req.Unknown, row.reason))
		}
		if row.finding != "" && !slices.Contains(req.Findings, row.finding) {
			bad = append(bad, fmt.Errorf("findings %q, want %s among them", req.Findings, row.finding))
		}
		if row.without != "" && slices.Contains(req.Findings, row.without) {
			bad = append(bad, fmt.Errorf("findings %q, want them without %s", req.Findings, row.without))
		}
	}
	if !found {
		bad = append(bad, fmt.Errorf("no request %s", row.request))
	}
	if row.offset != 0 {
		// All captures of the lab have one clock, but for what is done to it; half a round trip stays open, and is short here.
		const most = 20 * time.Millisecond
		info := &res.Captures[len(res.Captures)-1]
		ahead, margin := time.Duration(info.ClockOffset), time.Duration(info.ClockError)
		if !info.HasOffset || (ahead-row.offset).Abs() > margin+50*time.Microsecond || margin > most {
			bad = append(bad, fmt.Errorf("far clock found to be %v ahead, ± %v (found: %v), want %v", ahead, margin, info.HasOffset, row.offset))
		}
	}
	return errors.Join(bad...)
}
