package analyze

import (
	"slices"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// Live judges a capture while it runs. It is not safe for concurrent use.
type Live struct {
	in    Input
	facts *cluster.Facts
	t     *table
}

// NewLive begins the analysis of one capture. in.Source is not read: packets come by Add.
func NewLive(in Input, facts *cluster.Facts, opt Options) *Live {
	t := newTable(opt.MaxFlows)
	t.alone = true
	return &Live{in: in, facts: facts, t: t}
}

// Add takes the next packets of the capture, in its order. It keeps nothing of the slice.
func (l *Live) Add(packets []wire.Packet) {
	for i := range packets {
		l.t.add(&packets[i])
	}
}

// Result judges what was added until now; sum is what is known of the capture until now. What Run says of a capture of the
// same packets is the same. It takes as long as judging all flows does, and changes nothing of what later results say.
// What its requests cite (Request.Cited) is gathered from what was added, and has to be asked for before more is.
func (l *Live) Result(sum wire.Summary) *Result {
	res := &Result{Facts: l.facts, Captures: make([]CaptureInfo, 1)}
	of := &summary{}
	of.add(&sum, false, true)
	of.Interfaces = sum.Interfaces
	res.Captures[0] = CaptureInfo{
		File: l.in.File, Label: l.in.Label, SHA256: l.in.SHA256, Side: l.in.Side, Summary: sum, Notes: slices.Concat(sum.Notes, notes(l.t)),
		StatedFilter: l.in.StatedFilter, HasStated: l.in.HasStated, LetGo: l.t.letGo,
		InterfaceNames: interfaceNames(sum.Interfaces, l.facts, l.in.Side),
	}
	a := newAnalysis(l.t, of, res.Captures, []int{0}, l.facts, l.in.Connections)
	a.judgeAll()
	res.Carriers = carriers(l.t, 0)
	var sides [2][]*analysis
	sides[a.info.Side] = []*analysis{a}
	res.finish(sides)
	return res
}
