package report

import (
	"fmt"
	"slices"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// Evidence is what a change did to one known request. The requests that it names, and the captures that show them, are
// those of the Record that it is part of.
type Evidence struct {
	ChangeID    Maybe          `json:"change_id"`
	Note        Maybe          `json:"note"`
	Intent      Maybe          `json:"intent"`     // "snat" or "keep"
	ChangedAt   Time           `json:"changed_at"` // as stated
	Request     string         `json:"request"`    // as --request takes it
	Chosen      bool           `json:"request_chosen"`
	Verdict     string         `json:"verdict"`
	Reading     Lines          `json:"reading"`
	Nodes       []EvidenceNode `json:"nodes"`
	Before      *MomentState   `json:"before"`
	After       *MomentState   `json:"after"`
	Rollback    *MomentState   `json:"rollback"`
	RolledBack  Maybe          `json:"rollback_equals_before"` // "yes", "no" or "unknown"; absent without a rollback
	AlsoChanged []AlsoChanged  `json:"also_changed"`
	AlsoKept    uint64         `json:"also_kept"` // other destinations in both moments whose source class stayed
	Rules       *RulesChange   `json:"rules_change"`
	OldAgents   []OldAgent     `json:"agents_older_than_change"`
	NotCovered  []string       `json:"not_covered"`
	// FirstCapture is, of before, after and rollback, the index into captures of its first one.
	FirstCapture []int  `json:"first_capture"`
	Redacted     bool   `json:"redacted"`
	Line         string `json:"line"` // one line that a change record carries; a line for each node where there are several
}

// EvidenceNode is the evidence of one node.
type EvidenceNode struct {
	Node       Maybe        `json:"node"`
	Verdict    string       `json:"verdict"`
	Reason     Maybe        `json:"reason"` // stable code of what keeps an inconclusive verdict from being one
	Observed   Lines        `json:"observed"`
	Reading    Lines        `json:"reading"`
	Next       Lines        `json:"next"`
	Before     *MomentState `json:"before"`
	After      *MomentState `json:"after"`
	Rollback   *MomentState `json:"rollback"`
	RolledBack Maybe        `json:"rollback_equals_before"`
}

// MomentState is what one moment showed of the request. Where several nodes or requests differ, what they differ in is absent.
type MomentState struct {
	Captures   []int    `json:"captures"`       // indexes into captures
	From       Time     `json:"from"`           // of the captures' window
	To         Time     `json:"to"`             //
	Request    Maybe    `json:"request"`        // id of the one that is shown: the one that decides the verdict
	Requests   []string `json:"requests"`       // ids of those that carry the verdict; of each kind the first maxIDs
	Open       []string `json:"open_before"`    // ids of those left out: open before, so of an older translation
	Unsure     []string `json:"opening_unsure"` // ids of those that may have been open before
	Doubt      []string `json:"source_unknown"` // ids of those whose source is not known
	Counted    uint64   `json:"requests_counted"`
	LeftOut    uint64   `json:"open_before_counted"`
	Unknown    uint64   `json:"source_unknown_counted"`
	Otherwise  uint64   `json:"ended_otherwise"` // of those counted: not as far as the one that is shown, or farther
	Client     Maybe    `json:"client"`          // the Pod's address
	Pod        Maybe    `json:"pod"`             // its name
	Source     Maybe    `json:"source"`
	SourceAddr Maybe    `json:"source_addr"` // as it left the node
	Outcome    Maybe    `json:"outcome"`
	Completed  *bool    `json:"completed"`
	StoppedAt  Maybe    `json:"stopped_at"`
	Frame      *Frame   `json:"frame"` // shows the source
}

// maxIDs is how many requests of a kind a moment names, and the record holds: a busy client makes a hundred thousand, and
// a record is to be kept.
const maxIDs = 100

// AlsoChanged is another destination whose requests from Pods changed their source class.
type AlsoChanged struct {
	Proto  string            `json:"proto"`
	Server Endpoint          `json:"server"`
	Before map[string]uint64 `json:"before"` // requests by source class
	After  map[string]uint64 `json:"after"`
}

// RulesChange is the difference between the nat rules before and after.
type RulesChange struct {
	Before  RulesFile `json:"before"`
	After   RulesFile `json:"after"`
	Same    bool      `json:"same"`
	Moved   bool      `json:"moved"` // the same rules in another order
	Removed []string  `json:"removed"`
	Added   []string  `json:"added"`
}

// RulesFile is a dump of rules.
type RulesFile struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Saved  Maybe  `json:"saved"` // when iptables-save says that it made it, in the node's own zone
}

// OldAgent is an ip-masq-agent Pod that started before the change.
type OldAgent struct {
	Pod     string `json:"pod"`
	Node    Maybe  `json:"node"`
	Started Time   `json:"started"`
}

// Moment is what was read of one moment: a record of its captures, records that were saved, or both.
type Moment struct {
	Records []*Record
	Split   bool // of the captures only the part on one side of the change was read
}

// EvidenceOptions are what NewEvidence is told beside the captures.
type EvidenceOptions struct {
	Which          analyze.Selector
	Intent         analyze.Intent
	ChangeID, Note string
	ChangedAt      Time
	// Rules is nil where none are given.
	Rules *RulesChange
	Facts *cluster.Facts
}

// NewEvidence makes the record of a change from what was read before and after it, and after its rollback if there is a third
// moment. It errs with *analyze.RefusedError and *analyze.NoRequestError, and where a saved record is not what it should be.
func NewEvidence(in []Moment, opt EvidenceOptions, tool Tool) (*Record, analyze.State, error) {
	b := evidenceBuilder{rec: &Record{
		Schema: Schema, Tool: Tool{Version: tool.Version, Args: append([]string{}, tool.Args...)}, Facts: factsOf(opt.Facts),
		Captures: []Capture{}, Requests: []Request{}, Findings: []Finding{}, Sources: []Source{}, Carriers: []Carrier{},
	}}
	inputs := make([]analyze.MomentInput, len(in))
	for at := range in {
		var err error
		if inputs[at], err = b.moment(analyze.Moment(at), in[at]); err != nil {
			return nil, analyze.Inconclusive, err
		}
	}
	o := analyze.EvidenceOptions{Which: opt.Which, Intent: opt.Intent}
	switch {
	case opt.Rules == nil:
	case opt.Rules.Same:
		o.Rules = analyze.RulesSame
	default:
		o.Rules = analyze.RulesDiffer
	}
	ev, err := analyze.NewEvidence(inputs, o)
	if err != nil {
		return nil, analyze.Inconclusive, err
	}
	b.inputs = inputs
	b.evidence(ev, opt)
	b.rules(in[analyze.After])
	return b.rec, ev.State(), nil
}

// evidenceBuilder gathers the captures and requests of all moments into one record.
type evidenceBuilder struct {
	rec    *Record
	inputs []analyze.MomentInput
	first  [3]int        // per moment: index in the record of its first capture
	from   [3][]*Request // per moment: the record's request of each observation
	shift  [3][]int      // per moment: index in the record of the first capture of that request's own record
	kept   map[*Request]bool
}

// moment adds a moment's captures to the record and restores its requests for the analysis.
func (b *evidenceBuilder) moment(at analyze.Moment, in Moment) (analyze.MomentInput, error) {
	var out analyze.MomentInput
	b.first[at] = len(b.rec.Captures)
	for _, rec := range in.Records {
		shift := len(b.rec.Captures)
		for i := range rec.Captures {
			c := &rec.Captures[i]
			side := wire.SideNear
			if c.Side == "far" {
				side = wire.SideFar
			}
			m := analyze.MomentCapture{
				File: c.File, Label: string(c.Label), Side: side, SHA256: string(c.SHA256), From: c.Window.From.nanoseconds(), To: c.Window.To.nanoseconds(),
				Split: in.Split, Damaged: !c.Complete, Lossy: lossy(c),
			}
			out.Captures = append(out.Captures, m)
			b.rec.Captures = append(b.rec.Captures, *c)
		}
		for i := range rec.Requests {
			r := &rec.Requests[i]
			q, err := r.restore()
			if err != nil {
				return out, fmt.Errorf("request %.20q: %w", r.ID, err)
			}
			o := analyze.Observation{Request: *q, ID: r.ID, Capture: shift - b.first[at]}
			if len(r.Legs) > 0 {
				o.Capture += r.Legs[0].Capture
			}
			out.Requests = append(out.Requests, o)
			b.from[at] = append(b.from[at], r)
			b.shift[at] = append(b.shift[at], shift)
		}
		for _, s := range rec.Summary.Limits {
			b.rec.Summary.Limits = append(b.rec.Summary.Limits, at.String()+": "+s)
		}
		// What a saved record was told of the cluster holds for it, as what this run was told holds for its captures.
		for _, g := range rec.Facts.Given {
			if !slices.Contains(b.rec.Facts.Given, g) {
				b.rec.Facts.Given = append(b.rec.Facts.Given, g)
			}
		}
	}
	return out, nil
}

// lossy is the code for which a capture may lack packets, "" if there is none.
func lossy(c *Capture) string {
	switch {
	case c.Dropped != nil && *c.Dropped > 0:
		return "packets-dropped"
	case c.LetGo > 0:
		return "flows-let-go"
	case c.CutPackets > 0 || c.Skipped["too-short"] > 0:
		return "snaplen"
	}
	return ""
}

// nanoseconds is the Time in nanoseconds since 1970, wire.NoTime if it is absent.
func (t Time) nanoseconds() int64 {
	if !t.known {
		return wire.NoTime
	}
	return t.ns
}

// evidence writes the verdicts into the record.
func (b *evidenceBuilder) evidence(ev *analyze.Evidence, opt EvidenceOptions) {
	b.kept = make(map[*Request]bool)
	e := &Evidence{
		ChangeID: Maybe(opt.ChangeID), Note: Maybe(opt.Note), Intent: Maybe(opt.Intent.String()), ChangedAt: opt.ChangedAt,
		Request: ev.Which, Chosen: ev.Chosen, Verdict: ev.Change.String(), Reading: linesOf(ev.Reading), Nodes: []EvidenceNode{},
		AlsoChanged: []AlsoChanged{}, AlsoKept: uint64(ev.AlsoKept), Rules: opt.Rules, OldAgents: oldAgents(opt, b.rec),
		NotCovered: append([]string{}, ev.NotCovered...),
	}
	var all [3][]*MomentState
	for i := range ev.Nodes {
		n := &ev.Nodes[i]
		node := EvidenceNode{
			Node: Maybe(n.Node), Verdict: n.Change.String(), Reason: Maybe(n.Code),
			Observed: linesOf(n.Observed), Reading: linesOf(n.Reading), Next: linesOf(n.Next),
		}
		if ev.HasRollback {
			node.RolledBack = rolledBackWord(n.RolledBack)
		}
		for at, to := range []**MomentState{&node.Before, &node.After, &node.Rollback} {
			if s := n.At[at]; s != nil {
				*to = b.state(analyze.Moment(at), s)
				all[at] = append(all[at], *to)
			}
		}
		e.Nodes = append(e.Nodes, node)
	}
	if ev.HasRollback {
		e.RolledBack = rolledBackWord(ev.RolledBack)
	}
	for at, to := range []**MomentState{&e.Before, &e.After, &e.Rollback} {
		if at < len(b.inputs) {
			*to = b.sum(analyze.Moment(at), all[at])
		}
	}
	for _, d := range ev.AlsoChanged {
		e.AlsoChanged = append(e.AlsoChanged, AlsoChanged{
			Proto: d.Proto.String(), Server: plainEndpoint(d.Server), Before: classCounts(d.Counts[0]), After: classCounts(d.Counts[1]),
		})
	}
	for at := range b.inputs {
		e.FirstCapture = append(e.FirstCapture, b.first[at])
	}
	b.rec.Evidence = e
	b.requests()
	b.rec.Summary = Summary{
		Requests: uint64(len(b.rec.Requests)), BySource: map[string]uint64{}, ByOutcome: map[string]uint64{}, ByStoppedAt: map[string]uint64{},
		Limits: once(b.rec.Summary.Limits), Asked: Maybe(ev.Which), Nearest: []string{},
	}
	for i := range b.rec.Requests {
		r := &b.rec.Requests[i]
		b.rec.Summary.BySource[r.Source]++
		b.rec.Summary.ByOutcome[r.Outcome]++
		b.rec.Summary.ByStoppedAt[r.StoppedAt]++
	}
	e.Line = evidenceLine(b.rec)
}

func rolledBackWord(s analyze.State) Maybe {
	switch s {
	case analyze.Met:
		return "yes"
	case analyze.NotMet:
		return "no"
	case analyze.Inconclusive:
	}
	return "unknown"
}

func classCounts(in []analyze.ClassCount) map[string]uint64 {
	out := make(map[string]uint64, len(in))
	for _, c := range in {
		out[c.Source.String()] = uint64(c.Requests)
	}
	return out
}

func plainEndpoint(e analyze.Endpoint) Endpoint {
	return Endpoint{
		Addr: e.Addr.String(), Port: known(e.Port, e.HasPort), Role: e.Role.Kind.String(), Name: Maybe(e.Role.Name()), Node: Maybe(e.Role.Node()),
		Fact: Maybe(e.Role.Fact()), Exact: e.Role.Exact, HostNetwork: e.Role.HostNetwork, Reused: e.Role.Reused,
	}
}

// state is what one moment showed on one node.
func (b *evidenceBuilder) state(at analyze.Moment, s *analyze.Seen) *MomentState {
	ids := func(list []int) []string {
		out := []string{}
		for _, i := range list[:min(len(list), maxIDs)] {
			b.kept[b.from[at][i]] = true
			out = append(out, b.from[at][i].ID)
		}
		return out
	}
	m := &MomentState{
		Requests: ids(s.Used), Open: ids(s.Open), Unsure: ids(s.Unsure), Doubt: ids(s.Doubt),
		Counted: uint64(len(s.Used)), Otherwise: b.otherwise(at, s), LeftOut: uint64(len(s.Open)), Unknown: uint64(len(s.Doubt)),
	}
	m.Captures = b.captures(at, slices.Concat(s.Used, s.Open, s.Doubt))
	m.From, m.To = b.window(m.Captures)
	if s.Main < 0 {
		return m
	}
	r := b.from[at][s.Main]
	b.kept[r] = true
	m.Request, m.Client, m.Pod = Maybe(r.ID), Maybe(r.Client.Addr), r.Client.Name
	if r.Client.Role != "pod" {
		m.Pod = ""
	}
	m.Source, m.Outcome, m.StoppedAt, m.Completed = Maybe(r.Source), Maybe(r.Outcome), Maybe(r.StoppedAt), known(r.Completed, true)
	if r.Egress != nil && r.Source != "unknown" {
		m.SourceAddr = Maybe(r.Egress.Addr)
	}
	if f := proof(r); f != nil {
		shown := *f
		shown.Capture += b.shift[at][s.Main]
		m.Frame = &shown
	}
	return m
}

// otherwise counts the requests that ended in another way than the one that is shown.
func (b *evidenceBuilder) otherwise(at analyze.Moment, s *analyze.Seen) (n uint64) {
	if s.Main < 0 {
		return 0
	}
	main := b.from[at][s.Main]
	for _, i := range s.Used {
		if r := b.from[at][i]; r.Outcome != main.Outcome || r.Completed != main.Completed {
			n++
		}
	}
	return n
}

// proof returns the frame that shows a request's source: the first that left the node, else the first.
func proof(r *Request) *Frame {
	for _, leg := range []string{"egress", "far", "pod"} {
		for i := range r.Frames {
			f := &r.Frames[i]
			if f.Leg == leg && (isOpening(f.What) || f.What == "request") {
				return f
			}
		}
	}
	if len(r.Frames) > 0 {
		return &r.Frames[0]
	}
	return nil
}

func isOpening(what string) bool {
	return what == "SYN" || what == "SYN again" || what == "INIT" || what == "INIT again"
}

// captures returns the captures that show some requests, by their place in the record.
func (b *evidenceBuilder) captures(at analyze.Moment, list []int) []int {
	out := []int{}
	for _, i := range list {
		for k := range b.from[at][i].Legs {
			out = append(out, b.shift[at][i]+b.from[at][i].Legs[k].Capture)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// window is from the first packet of some captures to the last.
func (b *evidenceBuilder) window(captures []int) (from, to Time) {
	for _, i := range captures {
		w := b.rec.Captures[i].Window
		if w.From.known && (!from.known || w.From.ns < from.ns) {
			from = w.From
		}
		if w.To.known && (!to.known || w.To.ns > to.ns) {
			to = w.To
		}
	}
	return from, to
}

// sum is what one moment showed on all nodes: what they differ in is absent.
func (b *evidenceBuilder) sum(at analyze.Moment, nodes []*MomentState) *MomentState {
	if len(nodes) == 1 {
		return nodes[0]
	}
	m := &MomentState{Captures: []int{}, Requests: []string{}, Open: []string{}, Unsure: []string{}, Doubt: []string{}}
	for i := range b.inputs[at].Captures {
		m.Captures = append(m.Captures, b.first[at]+i)
	}
	m.From, m.To = b.window(m.Captures)
	for i, n := range nodes {
		m.Requests = append(m.Requests, n.Requests...)
		m.Open = append(m.Open, n.Open...)
		m.Unsure = append(m.Unsure, n.Unsure...)
		m.Doubt = append(m.Doubt, n.Doubt...)
		m.Counted, m.LeftOut, m.Unknown, m.Otherwise = m.Counted+n.Counted, m.LeftOut+n.LeftOut, m.Unknown+n.Unknown, m.Otherwise+n.Otherwise
		same := func(to *Maybe, v Maybe) {
			if i == 0 {
				*to = v
			} else if *to != v {
				*to = ""
			}
		}
		same(&m.Source, n.Source)
		same(&m.SourceAddr, n.SourceAddr)
		same(&m.Client, n.Client)
		same(&m.Pod, n.Pod)
		same(&m.Outcome, n.Outcome)
		same(&m.StoppedAt, n.StoppedAt)
		switch {
		case i == 0:
			m.Completed = n.Completed
		case m.Completed != nil && n.Completed != nil && *m.Completed != *n.Completed:
			m.Completed = nil
		}
	}
	return m
}

// requests puts the requests that the evidence names into the record.
func (b *evidenceBuilder) requests() {
	for at := range b.inputs {
		for i, r := range b.from[at] {
			if !b.kept[r] {
				continue
			}
			q := *r
			q.Frames, q.Legs, q.Findings = slices.Clone(r.Frames), slices.Clone(r.Legs), []string{}
			for k := range q.Frames {
				q.Frames[k].Capture += b.shift[at][i]
			}
			for k := range q.Legs {
				q.Legs[k].Capture += b.shift[at][i]
			}
			b.rec.Requests = append(b.rec.Requests, q)
		}
	}
}

// rules takes over what configuration and rules, which are of after the change, say of the requests that the evidence names.
func (b *evidenceBuilder) rules(after Moment) {
	kept := make(map[string]bool)
	for i, r := range b.from[analyze.After] {
		if b.kept[b.from[analyze.After][i]] {
			kept[r.ID] = true
		}
	}
	ours := func(ids []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !kept[id] })
	}
	for _, rec := range after.Records {
		for _, f := range rec.Findings {
			all := len(f.Requests)
			f.Requests = ours(f.Requests)
			if !analyze.IsAboutRules(f.Code) || all > 0 && len(f.Requests) == 0 {
				continue
			}
			b.rec.Findings = append(b.rec.Findings, f)
			for i := range b.rec.Requests {
				if r := &b.rec.Requests[i]; slices.Contains(f.Requests, r.ID) {
					r.Findings = append(r.Findings, f.Code)
				}
			}
		}
		for _, u := range rec.Rules {
			if u.IDs = ours(u.IDs); len(u.IDs) > 0 {
				b.rec.Rules = append(b.rec.Rules, u)
			}
		}
	}
}

// oldAgents lists the agent Pods that are older than the change: they apply it only by reading their configuration again.
func oldAgents(opt EvidenceOptions, rec *Record) []OldAgent {
	out := []OldAgent{}
	change := opt.ChangedAt
	if !change.known {
		for i := range rec.Captures { // the change came behind the first capture's beginning
			if w := rec.Captures[i].Window; w.From.known && (!change.known || w.From.ns < change.ns) {
				change = w.From
			}
		}
	}
	for _, a := range opt.Facts.Agents() {
		if a.Start.IsZero() || !change.known || !a.Start.Before(change.In(a.Start.Location())) {
			continue
		}
		out = append(out, OldAgent{Pod: a.Pod, Node: Maybe(a.Node), Started: TimeOf(a.Start.UnixNano())})
	}
	return out
}
