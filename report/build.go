package report

import (
	"slices"
	"time"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// New makes the record of a result. It reads no clock and keeps nothing of res.
func New(res *analyze.Result, tool Tool) *Record { return newRecord(res, tool, whole) }

// NewStream makes a record for WriteJSON or WriteJSONL alone: its requests are made while they are written, so that they are never there
// all at once. It keeps res.
func NewStream(res *analyze.Result, tool Tool) *Record { return newRecord(res, tool, streamed) }

// NewText makes a record for WriteText with these options alone. Text shows few of many requests: of those that are alike the first
// stands for all, and what is shown of one request only (its reasons and frames) is gathered where it is printed. It keeps res.
func NewText(res *analyze.Result, tool Tool, opt TextOptions) *Record {
	if opt.ShowAll || opt.Verbose {
		return newRecord(res, tool, brief)
	}
	return newRecord(res, tool, folded)
}

// extent is how much of the requests a record holds.
type extent uint8

const (
	whole    extent = iota
	brief           // without what is shown of one request only
	folded          // brief, and one for all that are alike
	streamed        // none: they are made while they are written
)

func newRecord(res *analyze.Result, tool Tool, of extent) *Record {
	b := &builder{
		extent: of,
		res:    res,
		addrs:  make(map[wire.Addr]string),
		names:  make([][]Maybe, len(res.Captures)),
	}
	r := &Record{
		from:     b,
		Schema:   Schema,
		Tool:     Tool{Version: tool.Version, Args: append([]string{}, tool.Args...)},
		Facts:    factsOf(res.Facts),
		Captures: make([]Capture, len(res.Captures)),
		Findings: make([]Finding, len(res.Findings)),
		Sources:  make([]Source, len(res.Sources)),
		Carriers: make([]Carrier, len(res.Carriers)),
		Summary:  summaryOf(res),
	}
	for i := range res.Captures {
		b.capture(&r.Captures[i], i)
	}
	b.requests(r)
	for i := range res.Findings {
		f := &res.Findings[i]
		ids := make([]string, 0, len(f.Requests))
		for _, n := range f.Requests {
			ids = append(ids, b.id(r, n))
		}
		r.Findings[i] = Finding{
			Code: f.Code, Title: f.Title, Severity: f.Severity, Requests: ids,
			Observed: linesOf(f.Observed), Reading: linesOf(f.Reading), Next: linesOf(f.Next),
		}
	}
	for i, s := range res.Sources {
		r.Sources[i] = Source{
			Addr: b.addr(s.Addr), Role: s.Role.Kind.String(), Name: Maybe(s.Role.Name()), Requests: s.Requests, Packets: s.Packets,
		}
	}
	for i, c := range res.Carriers {
		r.Carriers[i] = Carrier{
			Tunnel: c.Tunnel.String(), Capture: c.Capture, Proto: c.Tuple.Proto.String(), Packets: c.Packets, Opaque: c.Opaque,
			Src: b.addr(c.Tuple.Src), SrcPort: b.port(c.Tuple.SrcPortOrEchoID, c.Tuple.Proto.HasPorts()),
			Dst: b.addr(c.Tuple.Dst), DstPort: b.port(c.Tuple.DstPortOrEchoID, c.Tuple.Proto.HasPorts()),
		}
	}
	b.rules(r)
	if next := res.Planned(); next != nil {
		r.Facts.Planned = masqueradeOf(next)
		for _, w := range next.Warnings {
			r.Facts.Warnings = append(r.Facts.Warnings, Warning{Code: w.Code, Text: plannedPrefix + w.Text, Names: append([]string{}, w.Names...)})
		}
	}
	return r
}

func factsOf(f *cluster.Facts) Facts {
	out := Facts{Given: []Given{}, Warnings: []Warning{}}
	for _, g := range f.Given() {
		out.Given = append(out.Given, Given{Flag: g.Flag, Value: g.Value})
	}
	for _, w := range f.Warnings() {
		out.Warnings = append(out.Warnings, Warning{Code: w.Code, Text: w.Text, Names: append([]string{}, w.Names...)})
	}
	out.Masquerade = masqueradeOf(f.Intent())
	return out
}

func summaryOf(res *analyze.Result) Summary {
	s := Summary{
		Requests:    uint64(res.Len()),
		BySource:    make(map[string]uint64),
		ByOutcome:   make(map[string]uint64),
		ByStoppedAt: make(map[string]uint64),
		Limits:      once(res.Limits),
		Asked:       Maybe(res.Asked),
		LeftOut:     uint64(res.LeftOut),
		Nearest:     []string{},
	}
	for i := range res.Nearest {
		s.Nearest = append(s.Nearest, selector(&res.Nearest[i]))
	}
	for v := analyze.SourceUnknown; v <= analyze.NotSent; v++ {
		s.BySource[v.String()] = 0
	}
	for v := analyze.OutcomeUnknown; v <= analyze.ReplyOnly; v++ {
		s.ByOutcome[v.String()] = 0
	}
	for v := analyze.StopUnknown; v <= analyze.StopNodeIn; v++ {
		s.ByStoppedAt[v.String()] = 0
	}
	alike := res.Alike()
	for i := range alike {
		q := &alike[i]
		s.BySource[q.Source().String()] += q.Count
		s.ByOutcome[q.Outcome().String()] += q.Count
		s.ByStoppedAt[q.StoppedAt().String()] += q.Count
	}
	return s
}

// n is how many requests one stands for.
func (r *Request) n() uint64 { return 1 + r.more }

// total is how many requests the record's stand for.
func (rec *Record) total() uint64 {
	var n uint64
	for i := range rec.Requests {
		n += rec.Requests[i].n()
	}
	return n
}

// selector names a request as --request takes it, without what a client chooses anew each time.
func selector(r *analyze.Request) string {
	server := r.Server.Addr.String()
	if r.Server.HasPort {
		server = addrPort(server, &r.Server.Port)
	}
	return r.Tuple.Proto.String() + " " + r.Client.Addr.String() + " > " + server
}

// once copies sentences, each the first time only.
func once(in []string) []string {
	out := make([]string, 0, len(in))
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// builder makes the parts of a Record. Strings of addresses are shared, and small slices are cut from large ones: a
// capture of a busy node has hundreds of thousands of requests.
type builder struct {
	extent extent
	res    *analyze.Result
	room   analyze.Room
	addrs  map[wire.Addr]string
	names  [][]Maybe // per capture, per interface

	frames slab[Frame]
	legs   slab[Leg]
	points slab[Point]
	ends   slab[Endpoint]
	ports  slab[uint16]
	counts slab[uint64]
	texts  slab[string]
	cited  []analyze.FrameRef // room
}

// slab cuts small slices from large ones.
type slab[T any] struct{ free, all []T }

func (s *slab[T]) take(n int) []T {
	const chunk = 1024
	if n > len(s.free) {
		s.all = make([]T, max(n, chunk))
		s.free = s.all
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// reuse gives out again what was cut from the last large slice.
func (s *slab[T]) reuse() { s.free = s.all }

func (s *slab[T]) put(v T) *T {
	p := &s.take(1)[0]
	*p = v
	return p
}

func (b *builder) addr(a wire.Addr) string {
	s, ok := b.addrs[a]
	if !ok {
		s = a.String()
		b.addrs[a] = s
	}
	return s
}

func (b *builder) port(p uint16, has bool) *uint16 {
	if !has {
		return nil
	}
	return b.ports.put(p)
}

func (b *builder) frameNumber(n uint64) *uint64 {
	if n == 0 {
		return nil
	}
	return b.counts.put(n)
}

func (b *builder) endpoint(e analyze.Endpoint) Endpoint {
	return Endpoint{
		Addr: b.addr(e.Addr), Port: b.port(e.Port, e.HasPort), Role: e.Role.Kind.String(), Name: Maybe(e.Role.Name()),
		Node: Maybe(e.Role.Node()), Fact: Maybe(e.Role.Fact()), Exact: e.Role.Exact, HostNetwork: e.Role.HostNetwork,
		Reused: e.Role.Reused,
	}
}

func (b *builder) endpointIf(e *analyze.Endpoint) *Endpoint {
	if e == nil {
		return nil
	}
	return b.ends.put(b.endpoint(*e))
}

// iface returns the name to show of an interface, "" if there is none.
func (b *builder) iface(capture int, iface uint32) Maybe {
	if capture < 0 || capture >= len(b.names) || int64(iface) >= int64(len(b.names[capture])) {
		return ""
	}
	return b.names[capture][iface]
}

func windowOf(s *wire.Summary) Window {
	from, until, recorded := s.Window()
	switch {
	case s.NoDate && from != wire.NoTime && until != wire.NoTime:
		return Window{Basis: "clock", ClockFrom: clockText(from), ClockTo: clockText(until), Clock: known(until-from, true)}
	case from == wire.NoTime || until == wire.NoTime:
		return Window{Basis: "none"}
	case recorded:
		return Window{From: TimeOf(from), To: TimeOf(until), Basis: "recorded"}
	}
	return Window{From: TimeOf(from), To: TimeOf(until), Basis: "packets"}
}

// clockText is a time of a day that is not known.
func clockText(ns int64) Maybe {
	return Maybe(time.Unix(0, ns).UTC().Format("15:04:05.000000"))
}

// time is a time of a capture, absent where the capture's times have no date.
func (b *builder) time(capture int, ns int64) Time {
	if capture >= 0 && capture < len(b.res.Captures) && b.res.Captures[capture].Summary.NoDate {
		return Time{}
	}
	return TimeOf(ns)
}

func (b *builder) capture(out *Capture, i int) {
	in := &b.res.Captures[i]
	s := &in.Summary
	*out = Capture{
		File: in.File, Label: Maybe(in.Label), SHA256: Maybe(in.SHA256), Side: in.Side.String(), Format: s.Format,
		LinkTypes: append([]uint32{}, s.LinkTypes...), Interfaces: make([]Interface, len(s.Interfaces)),
		AllInterfaces: s.AllInterfaces, SnapLen: nonZero(s.SnapLen), Packets: s.Frames, Bytes: s.Bytes,
		Transmissions: in.Transmitted, Complete: s.Complete, Damage: Maybe(in.DamageText), Dropped: known(s.Dropped, s.HasDropped),
		ClockOffset: known(in.ClockOffset, in.HasOffset), ClockError: known(in.ClockError, in.HasOffset),
		ClockPairs: known(uint64(max(in.ClockPairs, 0)), in.HasOffset && !in.ClockStated), ClockStated: in.HasOffset && in.ClockStated,
		FilteredOut: s.FilteredOut, CutPackets: s.CutFrames, LetGo: in.LetGo, Skipped: make(map[string]uint64),
		Notes:  once(slices.Concat(s.Notes, in.Notes)),
		Window: windowOf(s),
	}
	// A stated filter beats the recorded one: the person knows what the file left out.
	switch {
	case in.HasStated:
		out.Filter, out.FilterBasis = known(in.StatedFilter, true), "stated"
	case s.HasFilter:
		out.Filter, out.FilterBasis = known(s.Filter, true), "recorded"
	}
	for k, n := range s.Skipped {
		if n > 0 {
			out.Skipped[wire.Skip(k).String()] += n
		}
	}
	b.names[i] = make([]Maybe, len(s.Interfaces))
	for k := range s.Interfaces {
		f := &s.Interfaces[k]
		name := f.Name
		if name == "" && f.HasIndex {
			name = numberName(f.Index)
		}
		if k < len(in.InterfaceNames) && in.InterfaceNames[k] != "" {
			name = in.InterfaceNames[k]
		}
		b.names[i][k] = Maybe(name)
		out.Interfaces[k] = Interface{
			Name: Maybe(name), Description: Maybe(f.Description), Index: known(f.Index, f.HasIndex), LinkType: f.LinkType,
			SnapLen: nonZero(f.SnapLen), Filter: known(f.Filter, f.HasFilter), Loopback: f.Loopback, Packets: f.Packets,
			Dropped: known(f.Dropped, f.HasDropped),
		}
	}
}

func known[T any](v T, has bool) *T {
	if !has {
		return nil
	}
	return &v
}

func nonZero[T comparable](v T) *T {
	var zero T
	return known(v, v != zero)
}

// requests makes the record's requests, as many as it holds.
func (b *builder) requests(r *Record) {
	switch b.extent {
	case streamed:
		r.Requests = []Request{}
	case whole, brief:
		r.Requests = make([]Request, b.res.Len())
		for i, in := range b.res.Each {
			b.request(&r.Requests[i], in, i)
		}
	case folded:
		alike := b.res.Alike()
		r.Requests = make([]Request, len(alike))
		for n := range alike {
			b.request(&r.Requests[n], b.res.At(alike[n].First, &b.room), alike[n].First)
			r.Requests[n].more = alike[n].Count - 1
		}
	}
}

// id is the id of the result's n-th request, of one that is folded the id of the one that stands for it.
func (b *builder) id(r *Record, n int) string {
	switch b.extent {
	case streamed:
		return b.res.ID(n)
	case folded:
		n = b.res.AlikeTo(n)
	case whole, brief:
	}
	return r.Requests[n].ID
}

// captureOf is the capture whose clock a request's times are by.
func captureOf(r *analyze.Request) int {
	if len(r.Legs) == 0 {
		return 0
	}
	return r.Legs[0].Capture
}

func (b *builder) request(out *Request, in *analyze.Request, number int) {
	*out = Request{
		ID: in.ID(), Proto: in.Tuple.Proto.String(), Direction: in.Way.String(),
		Client: b.endpoint(in.Client), Server: b.endpoint(in.Server),
		Backend: b.endpointIf(in.Backend), Egress: b.endpointIf(in.Egress), Far: b.endpointIf(in.Far), FarServer: b.endpointIf(in.FarServer),
		EchoID: b.port(in.Tuple.SrcPortOrEchoID, in.Tuple.IsEcho()),
		Source: in.Source.String(), SourceBasis: in.Basis.String(), Outcome: in.Outcome.String(),
		ConnState: Maybe(in.ConnState), History: Maybe(in.History), Completed: in.Completed, Unanswered: known(in.Unanswered, in.Outcome == analyze.RequestOnly), StoppedAt: in.StoppedAt.String(),
		Unknown: make([]Unknown, len(in.Unknown)),
		First:   b.time(captureOf(in), in.First), Last: b.time(captureOf(in), in.Last), Handshake: known(in.Handshake, in.Handshake >= 0),
		RequestsSent: in.RequestsSent, RepliesSeen: in.RepliesSeen, Retransmissions: in.Retransmissions,
		Join: make([]Join, len(in.Joins)), Findings: append([]string{}, in.Findings...),
		Legs: b.legs.take(len(in.Legs)),
	}
	for i, u := range in.Unknown {
		out.Unknown[i] = Unknown{Field: u.Field, Reason: u.Reason, Text: u.Text, Settle: Maybe(u.Settle)}
	}
	if a := in.ICMP; a != nil {
		out.ICMP = &ICMP{
			About: a.About.String(), From: b.addr(a.From), FromRole: a.FromRole.Kind.String(), FromName: Maybe(a.FromRole.Name()),
			Type: a.Type, Code: a.Code, MTU: nonZero(a.MTU), Text: analyze.ErrorText(!a.V6, a.Type, a.Code),
		}
	}
	for i, j := range in.Joins {
		out.Join[i] = Join{From: j.From, To: j.To, Basis: append([]string{}, j.Basis...), Confidence: j.Confidence.String()}
	}
	for i := range in.Legs {
		b.leg(&out.Legs[i], &in.Legs[i])
	}
	if b.extent == brief || b.extent == folded {
		out.left = number + 1
		return
	}
	b.single(out, in)
}

// whole is a request with all that is shown of one by itself.
func (rec *Record) whole(r *Request) *Request {
	if r.left > 0 {
		rec.from.single(r, rec.from.res.At(r.left-1, &rec.from.room))
		r.left = 0
	}
	return r
}

// sample gives requests with all their frames, as many as are enough to tell what holds of all of them.
func (rec *Record) sample(look func(r *Request)) {
	const enough = 10_000
	if rec.from == nil || rec.from.extent == whole {
		for i := range rec.Requests {
			look(&rec.Requests[i])
		}
		return
	}
	for i, in := range rec.from.res.Each {
		if i == enough {
			break
		}
		var r Request
		rec.from.request(&r, in, i)
		look(rec.whole(&r))
	}
}

// single fills in what is shown of one request by itself.
func (b *builder) single(out *Request, in *analyze.Request) {
	b.cited = in.CitedIn(b.cited)
	cited := b.cited
	out.Reasons, out.Frames = b.texts.take(len(in.Reasons)), b.frames.take(len(cited))
	for i, s := range in.Reasons {
		out.Reasons[i] = string(s)
	}
	for i, f := range cited {
		out.Frames[i] = Frame{
			Capture: f.Capture, Frame: f.Frame, Time: b.time(f.Capture, f.Time), Interface: b.iface(f.Capture, f.Iface),
			Direction: f.Direction.String(), Leg: f.Leg.String(), What: f.What,
		}
	}
}

func (b *builder) leg(out *Leg, in *analyze.Leg) {
	t := in.Tuple
	*out = Leg{
		Leg: in.Kind.String(), Capture: in.Capture, Sent: in.Sent, Replies: in.Replies, TTL: nonZero(in.TTL),
		Src: b.addr(t.Src), SrcPort: b.port(t.SrcPortOrEchoID, t.Proto.HasPorts()),
		Dst: b.addr(t.Dst), DstPort: b.port(t.DstPortOrEchoID, t.Proto.HasPorts()),
		EchoID: b.port(t.SrcPortOrEchoID, t.IsEcho()),
	}
	if b.extent == brief || b.extent == folded {
		return // text does not show the points
	}
	out.Points = b.points.take(len(in.Points))
	for i := range in.Points {
		p := &in.Points[i]
		out.Points[i] = Point{
			Interface: b.iface(in.Capture, p.Iface), VLANs: vlans(p.VLAN), Depth: p.Depth,
			RequestDirection: p.RequestDir.String(), ReplyDirection: p.ReplyDir.String(), Sent: p.Sent, Replies: p.Replies,
			FirstRequest: b.frameNumber(p.FirstRequest), FirstReply: b.frameNumber(p.FirstReply),
		}
	}
}

// vlans unpacks wire.Packet's stack of tags: 12 bits each (IEEE 802.1Q), innermost lowest.
func vlans(stack uint32) []uint32 {
	out := []uint32{}
	for ; stack != 0; stack >>= 12 {
		out = append(out, stack&0xfff)
	}
	return out
}
