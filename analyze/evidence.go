package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// Evidence is what a change did to one known request: its source address before and after, and whether it then completed.
// It is made from what the captures of each moment showed, so that it can be made again by whoever has them.

// Moment is a state of the cluster that a change record tells of.
type Moment uint8

// The moments, in the order of time.
const (
	Before Moment = iota
	After
	Rollback
	moments
)

// String returns the moment's word, which is also its flag's.
func (m Moment) String() string { return word([]string{"before", "after", "rollback"}, int(m)) }

// Change is the verdict on a change. The zero Change proves nothing.
type Change uint8

// The verdicts.
const (
	ChangeInconclusive  Change = iota // the captures do not carry it; the reason is given
	ChangedAsIntended                 // the source changed as was intended, and the request completed
	Changed                           // the source changed, and the request completed; no intention was stated
	ChangedNotCompleted               // the source changed, and the request did not complete
	Unchanged                         // the source is what it was
	ChangedUnexpectedly               // the source changed to an address that is not the node's, or against the intention
)

func changeWords() []string {
	return []string{"inconclusive", "changed-as-intended", "changed", "changed-not-completed", "unchanged", "changed-unexpectedly"}
}

// String returns the verdict's word.
func (c Change) String() string { return word(changeWords(), int(c)) }

// State is what the verdict means to whoever made the change.
func (c Change) State() State {
	switch c {
	case ChangedAsIntended, Changed:
		return Met
	case ChangedNotCompleted, Unchanged, ChangedUnexpectedly:
		return NotMet
	case ChangeInconclusive:
	}
	return Inconclusive
}

// byGravity are the verdicts in the order in which a summary of several nodes tells them.
func byGravity() []Change {
	return []Change{ChangedUnexpectedly, Unchanged, ChangedNotCompleted, ChangeInconclusive, ChangedAsIntended, Changed}
}

// Intent is what the change was made for.
type Intent uint8

// The intentions.
const (
	IntentNone Intent = iota
	IntentSNAT        // the node's address in place of the Pod's
	IntentKeep        // the Pod's own address
)

// String returns the intention's word, "" for none.
func (i Intent) String() string { return []string{"", "snat", "keep"}[min(int(i), 2)] }

// EvidenceOptions steer NewEvidence. The zero value asks for the only request that fits.
type EvidenceOptions struct {
	Which  Selector
	Intent Intent
	// Rules tells what the nat rules of both moments, read from the node, say.
	Rules RulesChange
}

// RulesChange is whether the node's installed nat rules differ between before and after.
type RulesChange uint8

// What is known of the rules.
const (
	RulesNotGiven RulesChange = iota
	RulesSame
	RulesDiffer
)

// MomentInput is what one moment's captures showed.
type MomentInput struct {
	Captures []MomentCapture
	Requests []Observation
}

// MomentCapture is a capture of one moment.
type MomentCapture struct {
	File     string // its name, for messages
	Label    string // LABEL of LABEL=FILE: the node's name; "" if none
	Side     wire.Side
	SHA256   string // "" if not known
	From, To int64  // its window in nanoseconds UTC; wire.NoTime if it has no times
	Split    bool   // only its part on one side of the change was read
	Damaged  bool   // it is cut or damaged: what it shows counts, and proves no change
	// Lossy is the stable code for which a packet may be missing from it, "" if none is known: packets-dropped, flows-let-go,
	// snaplen.
	Lossy string
}

// Observation is one request as one moment's captures showed it.
type Observation struct {
	Request
	ID      string // the same for one connection, whatever the capture
	Capture int    // index into MomentInput.Captures: where it was seen first
}

// Evidence is the answer to NewEvidence.
type Evidence struct {
	Which       string // the request, as --request takes it
	Chosen      bool   // nobody asked for it: it is the only one that fits
	Nodes       []NodeEvidence
	Change      Change // of all nodes: the worst, unless it is the only one
	HasRollback bool
	RolledBack  State // whether the rollback gave back the state before; valid iff HasRollback
	Reading     []string
	AlsoChanged []DestinationChange
	AlsoKept    int // other destinations of Pods, in both moments, whose source class stayed
	NotCovered  []string
}

// NodeEvidence is the evidence of one node.
type NodeEvidence struct {
	Node       string // its name; "" where there is one node and no name
	Change     Change
	Code       string // of ChangeInconclusive: the reason's stable code
	RolledBack State
	At         [moments]*Seen // nil where the moment has none
	Observed   []string
	Reading    []string
	Next       []string // as Finding.Next
}

// Seen is what one moment showed of the request on one node. All indices are into MomentInput.Requests.
type Seen struct {
	Main   int   // the one to show: of those that carry the verdict, the one that decides it
	Used   []int // those that carry the verdict
	Open   []int // open before the capture began, or before the change: they keep an older translation, and are left out
	Unsure []int // of those: may have been open before: they can show that the source changed, and not that it did not
	Doubt  []int // their source is not known

	unsure map[int]bool
}

// DestinationChange is a destination whose requests from Pods changed their source class.
type DestinationChange struct {
	Proto  wire.Proto
	Server Endpoint
	Counts [2][]ClassCount // by Before and After, in the order of Source
}

// ClassCount counts requests of one source class.
type ClassCount struct {
	Source   Source
	Requests int
}

// NoRequestError says that a moment's captures hold no such request. What they do not hold proves nothing.
type NoRequestError struct {
	What    string
	Nearest []Request // what comes nearest to it there
}

func (e *NoRequestError) Error() string { return e.What }

// RefusedError says why captures cannot stand for a before and an after, or why it is not clear which request is meant.
type RefusedError struct {
	What, Hint string
	Candidates []string // what could be meant, as --request takes it
}

func (e *RefusedError) Error() string { return e.What }

// NewEvidence holds the moments against each other: before, after and, where there is a third, the rollback. It returns a
// *RefusedError where the captures cannot stand for these moments or several requests fit, and a *NoRequestError where a
// moment has no such request.
func NewEvidence(in []MomentInput, opt EvidenceOptions) (*Evidence, error) {
	if err := checkMoments(in); err != nil {
		return nil, err
	}
	m := newMatcher(in, opt)
	if err := m.choose(); err != nil {
		return nil, err
	}
	ev := &Evidence{Which: m.which(), Chosen: opt.Which.IsZero(), HasRollback: len(in) > int(Rollback)}
	seen, err := m.byNode()
	if err != nil {
		return nil, err
	}
	if len(seen) > 1 && opt.Rules != RulesNotGiven {
		return nil, &RefusedError{
			What: fmt.Sprintf("the rules given are one node's, and the captures are of %d nodes: %s", len(seen), firstFew(sortedKeys(seen), 5)),
			Hint: "with rules, prove one node at a time",
		}
	}
	for _, name := range sortedKeys(seen) {
		at := seen[name]
		n := NodeEvidence{Node: name, At: *at}
		j := judgement{m: m, n: &n}
		j.judge()
		ev.Nodes = append(ev.Nodes, n)
	}
	ev.pairMoved()
	ev.conclude()
	ev.AlsoChanged, ev.AlsoKept = m.alsoChanged()
	ev.NotCovered = m.notCovered(ev)
	return ev, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// checkMoments refuses captures that cannot be what they are named as: the same capture twice, an after that is older than
// its before, and captures of one node that overlap.
func checkMoments(in []MomentInput) error {
	type named struct {
		MomentCapture
		at Moment
	}
	var all []named
	for m := range in {
		for _, c := range in[m].Captures {
			all = append(all, named{c, Moment(m)})
		}
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.SHA256 != "" && a.SHA256 == b.SHA256 && !a.Split && !b.Split {
				return &RefusedError{
					What: fmt.Sprintf("%s (%s) and %s (%s) are one capture: their SHA-256 is the same, %s", a.File, a.at, b.File, b.at, a.SHA256[:min(12, len(a.SHA256))]),
					Hint: "one capture that spans the change: --before FILE --changed-at TIME",
				}
			}
			if a.at == b.at || a.Side != b.Side || a.Label != "" && b.Label != "" && a.Label != b.Label {
				continue
			}
			if a.at > b.at {
				a, b = b, a
			}
			if a.From == wire.NoTime || a.To == wire.NoTime || b.From == wire.NoTime || b.To == wire.NoTime {
				continue
			}
			switch {
			case b.To < a.From:
				return &RefusedError{
					What: fmt.Sprintf("%s was captured before %s, which is named as %s", b.File, a.File, a.at),
					Hint: fmt.Sprintf("are --%s and --%s exchanged? of several nodes: --%s NODE=FILE", a.at, b.at, a.at),
				}
			case b.From <= a.To && a.From <= b.To:
				return &RefusedError{
					What: fmt.Sprintf("%s (%s) and %s (%s) overlap in time: which of their packets are older than the change does not show", a.File, a.at, b.File, b.at),
					Hint: "--changed-at TIME says when the change was made; captures of several nodes: --" + a.at.String() + " NODE=FILE",
				}
			}
		}
	}
	return nil
}

// pairMoved joins the verdicts of two nodes of which one shows the request before and the other one after: what changed on
// either does not show.
func (ev *Evidence) pairMoved() {
	if len(ev.Nodes) != 2 {
		return
	}
	a, b := &ev.Nodes[0], &ev.Nodes[1]
	if a.At[Before] == nil {
		a, b = b, a
	}
	if a.At[Before] == nil || a.At[After] != nil || b.At[Before] != nil || b.At[After] == nil {
		return
	}
	text := fmt.Sprintf("before it was seen on node %s, after on node %s: what changed on either of them does not show", a.Node, b.Node)
	moved := NodeEvidence{
		Node: a.Node + " then " + b.Node, Code: doubtOtherNode, Observed: slices.Concat(a.Observed, b.Observed), Reading: []string{text},
		Next: []string{"capture before and after on one node: the Pod moved, or the captures are of different nodes"},
	}
	moved.At[Before], moved.At[After], moved.At[Rollback] = a.At[Before], b.At[After], b.At[Rollback]
	ev.Nodes = []NodeEvidence{moved}
}

// conclude sums up the nodes.
func (ev *Evidence) conclude() {
	ev.RolledBack = Met
	for i := range ev.Nodes {
		switch n := &ev.Nodes[i]; {
		case n.RolledBack == NotMet:
			ev.RolledBack = NotMet
		case n.RolledBack == Inconclusive && ev.RolledBack == Met:
			ev.RolledBack = Inconclusive
		}
	}
	for _, c := range slices.Backward(byGravity()) {
		var names []string
		for i := range ev.Nodes {
			if ev.Nodes[i].Change == c {
				names = append(names, "node "+ev.Nodes[i].Node)
			}
		}
		if len(names) > 0 {
			ev.Change = c
			ev.Reading = slices.Insert(ev.Reading, 0, fmt.Sprintf("%s on %d of %d: %s", c, len(names), len(ev.Nodes), strings.Join(names, ", ")))
		}
	}
	if len(ev.Nodes) == 1 {
		ev.Reading = ev.Nodes[0].Reading
	}
}

// State is what the evidence means to whoever made the change, the rollback included.
func (ev *Evidence) State() State {
	s := ev.Change.State()
	switch {
	case s == NotMet || !ev.HasRollback || ev.RolledBack == Met:
		return s
	case ev.RolledBack == NotMet:
		return NotMet
	}
	return Inconclusive
}

// isPodRequest tells whether a request may be one of a Pod that masquerading concerns. The node's own are none, nor are those
// that came from elsewhere.
func isPodRequest(r *Request) bool {
	switch r.Source {
	case PodSourced, NodeSNATed, OtherSNATed, NotSent:
		return true
	case SourceUnknown, SourceLocal:
		return r.Client.Role.Kind == cluster.RolePod || r.Client.Role.Kind == cluster.RoleUnknown
	case NodeOwn, NodeSourced, OtherSourced:
	}
	return false
}
