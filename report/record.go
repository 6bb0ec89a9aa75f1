package report

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// Schema is the version of the Record's JSON form. Fields are added under it, never renamed or removed.
const Schema = "srcproof/1"

// Record is everything that a run concluded, in the form that all writers share. Its JSON form is the contract of
// DESIGN section 9: what is absent is null and never zero, times are RFC 3339 UTC with nanoseconds, durations integer
// nanoseconds, addresses strings.
type Record struct {
	Schema   string            `json:"schema"`
	Tool     Tool              `json:"tool"`
	Facts    Facts             `json:"facts"`
	Captures []Capture         `json:"captures"`
	Requests []Request         `json:"requests"`
	Findings []Finding         `json:"findings"`
	Sources  []Source          `json:"sources"`
	Carriers []Carrier         `json:"carriers"`
	Rules    []json.RawMessage `json:"rules"`    // nil where no rules were compared
	Evidence json.RawMessage   `json:"evidence"` // nil where no evidence was asked for
	Summary  Summary           `json:"summary"`
}

// Tool says what made the record.
type Tool struct {
	Version string   `json:"version"`
	Args    []string `json:"args"`
}

// Facts is what was known of the cluster, and from where.
type Facts struct {
	Given    []Given   `json:"given"`
	Warnings []Warning `json:"warnings"`
}

// Given is one flag or file that stated a fact.
type Given struct {
	Flag  string `json:"flag"`
	Value string `json:"value"`
}

// Warning is something about the facts that the person should know.
type Warning struct {
	Code  string   `json:"code"`
	Text  string   `json:"text"`
	Names []string `json:"names"`
}

// Capture is one source of packets.
type Capture struct {
	File          string            `json:"file"`
	Label         Maybe             `json:"label"`
	Node          Maybe             `json:"node"`   // name of the node it was taken on, where the facts say it
	SHA256        Maybe             `json:"sha256"` // absent unless a digest was asked for
	Side          string            `json:"side"`
	Format        string            `json:"format"`
	LinkTypes     []uint32          `json:"link_types"` // pcap LINKTYPE_ numbers
	Interfaces    []Interface       `json:"interfaces"`
	AllInterfaces bool              `json:"all_interfaces"` // taken on the pseudo-device any
	SnapLen       *uint32           `json:"snaplen"`        // bytes; absent is unlimited or unknown
	Filter        *string           `json:"filter"`         // absent is unknown; "" is known to be none
	FilterBasis   Maybe             `json:"filter_basis"`   // "stated" by a person or "recorded" in the file
	Packets       uint64            `json:"packets"`        // records of the file, judged or not
	Bytes         uint64            `json:"bytes"`          // captured bytes of those records
	Transmissions uint64            `json:"transmissions"`  // packets, copies of one packet counted once
	Window        Window            `json:"window"`
	Complete      bool              `json:"complete"`
	Damage        Maybe             `json:"damage"` // where and how the file is damaged
	Dropped       *uint64           `json:"dropped"`
	CutPackets    uint64            `json:"cut_packets"`     // packets whose captured bytes end inside their headers
	LetGo         uint64            `json:"flows_let_go"`    // flows forgotten for want of room
	ClockOffset   *int64            `json:"clock_offset_ns"` // this clock minus the near clock
	ClockError    *int64            `json:"clock_error_ns"`
	Skipped       map[string]uint64 `json:"skipped"` // why frames gave no packet; only reasons that occurred
	Notes         []string          `json:"notes"`
}

// Interface is one place of a capture.
type Interface struct {
	Name        Maybe   `json:"name"` // the name to show: the file's, or that of --links, or "if" and the index
	Description Maybe   `json:"description"`
	Index       *uint32 `json:"index"` // the operating system's
	LinkType    uint32  `json:"link_type"`
	SnapLen     *uint32 `json:"snaplen"`
	Filter      *string `json:"filter"`
	Loopback    bool    `json:"loopback"`
	Packets     uint64  `json:"packets"`
	Dropped     *uint64 `json:"dropped"`
}

// Window is the time for which a capture can speak.
type Window struct {
	From  Time   `json:"from"`
	To    Time   `json:"to"`
	Basis string `json:"basis"` // "packets": first and last packet; "none": no packet has a time
}

// Endpoint is one end of a request.
type Endpoint struct {
	Addr        string  `json:"addr"`
	Port        *uint16 `json:"port"` // absent for ICMP
	Role        string  `json:"role"`
	Name        Maybe   `json:"name"`
	Node        Maybe   `json:"node"`
	Fact        Maybe   `json:"fact"`  // what says so
	Exact       bool    `json:"exact"` // an exact address says so, not a range
	HostNetwork bool    `json:"host_network"`
	Reused      bool    `json:"reused"` // several Pods of the cluster file had this address
}

// Request is one connection or exchange end to end, and what was concluded of it.
type Request struct {
	ID              string    `json:"id"`
	Proto           string    `json:"proto"`
	Direction       string    `json:"direction"`
	Client          Endpoint  `json:"client"`
	Server          Endpoint  `json:"server"`     // what the client addressed
	Backend         *Endpoint `json:"backend"`    // destination as it left the node, if translated
	Egress          *Endpoint `json:"egress"`     // source as it left the node
	Far             *Endpoint `json:"far"`        // source as the far side saw it
	FarServer       *Endpoint `json:"far_server"` // destination as the far side saw it
	EchoID          *uint16   `json:"echo_id"`
	Source          string    `json:"source"`
	SourceBasis     string    `json:"source_basis"`
	Outcome         string    `json:"outcome"`
	ConnState       Maybe     `json:"conn_state"`
	History         Maybe     `json:"history"`
	Completed       bool      `json:"completed"`
	StoppedAt       string    `json:"stopped_at"`
	Unknown         []Unknown `json:"unknown"`
	Reasons         []string  `json:"reasons"`
	First           Time      `json:"first"`
	Last            Time      `json:"last"`
	Handshake       *int64    `json:"handshake_ns"`
	RequestsSent    uint64    `json:"requests_sent"`
	RepliesSeen     uint64    `json:"replies_seen"`
	Retransmissions uint64    `json:"retransmissions"`
	ICMP            *ICMP     `json:"icmp"`
	Join            []Join    `json:"join"`
	Frames          []Frame   `json:"frames"`
	Findings        []string  `json:"findings"`
	Legs            []Leg     `json:"legs"`
}

// Unknown is one field that the captures do not carry.
type Unknown struct {
	Field  string `json:"field"`
	Reason string `json:"reason"` // a stable code
	Text   string `json:"text"`   // the reason as a sentence
	Settle Maybe  `json:"settle"` // what would turn it into an answer
}

// ICMP is the ICMP error that answered a request.
type ICMP struct {
	About    string  `json:"about"` // the quoted packet's tuple
	From     string  `json:"from"`
	FromRole string  `json:"from_role"`
	FromName Maybe   `json:"from_name"`
	Type     uint8   `json:"type"`
	Code     uint8   `json:"code"`
	MTU      *uint32 `json:"mtu"` // bytes; next-hop MTU where the message states one
	Text     string  `json:"text"`
}

// Join says what joined two legs.
type Join struct {
	From       string   `json:"from"`
	To         string   `json:"to"`
	Basis      []string `json:"basis"`
	Confidence string   `json:"confidence"`
}

// Frame is one packet that shows something.
type Frame struct {
	Capture   int    `json:"capture"` // index into captures
	Frame     uint64 `json:"frame"`   // the number that Wireshark shows
	Time      Time   `json:"time"`
	Interface Maybe  `json:"interface"`
	Direction string `json:"direction"`
	Leg       string `json:"leg"`
	What      string `json:"what"`
}

// Leg is one stretch of a request's chain as one capture saw it.
type Leg struct {
	Leg     string  `json:"leg"`
	Capture int     `json:"capture"` // index into captures
	Src     string  `json:"src"`
	SrcPort *uint16 `json:"src_port"`
	Dst     string  `json:"dst"`
	DstPort *uint16 `json:"dst_port"`
	EchoID  *uint16 `json:"echo_id"`
	TTL     *uint8  `json:"ttl"` // of the first packet from the client
	Sent    uint64  `json:"sent"`
	Replies uint64  `json:"replies"`
	Points  []Point `json:"points"`
}

// Point is one place where a leg's packets were seen.
type Point struct {
	Interface        Maybe    `json:"interface"`
	VLANs            []uint32 `json:"vlans"` // innermost first
	Depth            uint8    `json:"depth"` // tunnels around the packets
	RequestDirection string   `json:"request_direction"`
	ReplyDirection   string   `json:"reply_direction"`
	Sent             uint64   `json:"sent"`
	Replies          uint64   `json:"replies"`
	FirstRequest     *uint64  `json:"first_request"` // frame number
	FirstReply       *uint64  `json:"first_reply"`   // frame number
}

// Finding is a code, what was observed, how it reads, and the requests that show it.
type Finding struct {
	Code     string   `json:"code"`
	Title    string   `json:"title"`
	Observed Lines    `json:"observed"`
	Reading  Lines    `json:"reading"`
	Next     Lines    `json:"next"` // a line that begins with two spaces is a command
	Requests []string `json:"requests"`
	Severity int      `json:"severity"` // 0 a note, 1 worth a look, 2 the likely trouble
}

// Source counts what left the node with one source address.
type Source struct {
	Addr     string `json:"addr"`
	Role     string `json:"role"`
	Name     Maybe  `json:"name"`
	Requests uint64 `json:"requests"`
	Packets  uint64 `json:"packets"`
}

// Carrier is a tunnel's outer flow: what it carried was judged, it was not.
type Carrier struct {
	Tunnel  string  `json:"tunnel"`
	Capture int     `json:"capture"`
	Proto   string  `json:"proto"`
	Src     string  `json:"src"`
	SrcPort *uint16 `json:"src_port"`
	Dst     string  `json:"dst"`
	DstPort *uint16 `json:"dst_port"`
	Packets uint64  `json:"packets"`
	Opaque  uint64  `json:"opaque"` // packets whose inside was not decoded
}

// Summary counts the requests by each verdict. Every word of the tool's own is a key, also where its count is zero, so
// that a program may ask for it without asking first whether it is there.
type Summary struct {
	Requests    uint64            `json:"requests"`
	BySource    map[string]uint64 `json:"by_source"`
	ByOutcome   map[string]uint64 `json:"by_outcome"`
	ByStoppedAt map[string]uint64 `json:"by_stopped_at"`
	Limits      []string          `json:"limits"`
}

// Maybe is a string that may be absent: "" is absent, and null in JSON.
type Maybe string

// MarshalJSON encodes "" as null.
func (m Maybe) MarshalJSON() ([]byte, error) {
	if m == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(m))
}

// Lines are sentences or steps; in JSON they are one string with a line each.
type Lines []string

// linesOf copies sentences. One that quotes a name with a line break must not become two, of which the second could pass
// for a command.
func linesOf(in []string) Lines {
	out := make(Lines, 0, len(in))
	for _, s := range in {
		out = append(out, strings.ReplaceAll(s, "\n", `\x0a`))
	}
	return out
}

// MarshalJSON joins the lines.
func (l Lines) MarshalJSON() ([]byte, error) { return json.Marshal(strings.Join(l, "\n")) }

// UnmarshalJSON splits the string into lines. It errs on what is no string.
func (l *Lines) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("lines: %w", err)
	}
	*l = Lines{}
	if s != "" {
		*l = strings.Split(s, "\n")
	}
	return nil
}

// Time is a moment to the nanosecond, or none: the zero Time is absent, and null in JSON.
type Time struct {
	ns    int64 // since 1970-01-01 UTC. Valid iff known.
	known bool
}

// TimeOf returns the Time of nanoseconds since 1970-01-01 UTC; wire.NoTime gives the absent Time.
func TimeOf(ns int64) Time {
	if ns == wire.NoTime {
		return Time{}
	}
	return Time{ns: ns, known: true}
}

// Known tells whether there is a time.
func (t Time) Known() bool { return t.known }

// In returns the time in a zone. Valid iff Known.
func (t Time) In(loc *time.Location) time.Time { return time.Unix(0, t.ns).In(loc) }

// Sub returns t minus u in nanoseconds. Valid iff both are Known.
func (t Time) Sub(u Time) int64 { return t.ns - u.ns }

// MarshalJSON encodes RFC 3339 in UTC with nine digits of a second, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if !t.known {
		return []byte("null"), nil
	}
	return t.In(time.UTC).AppendFormat(nil, `"2006-01-02T15:04:05.000000000Z"`), nil
}

// UnmarshalJSON reads any RFC 3339 time between the years 1678 and 2261, or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	var v time.Time
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("time %.40s: not RFC 3339", b)
	}
	// Beyond these years UnixNano is undefined (package time).
	if y := v.UTC().Year(); y < 1678 || y > 2261 {
		return fmt.Errorf("time %.40s: outside the years 1678 to 2261", b)
	}
	*t = TimeOf(v.UnixNano())
	return nil
}

// New makes the record of a result. It reads no clock and keeps nothing of res.
func New(res *analyze.Result, tool Tool) *Record {
	b := builder{
		res:   res,
		addrs: make(map[wire.Addr]string),
		names: make([][]Maybe, len(res.Captures)),
	}
	r := &Record{
		Schema:   Schema,
		Tool:     Tool{Version: tool.Version, Args: append([]string{}, tool.Args...)},
		Facts:    factsOf(res.Facts),
		Captures: make([]Capture, len(res.Captures)),
		Requests: make([]Request, len(res.Requests)),
		Findings: make([]Finding, len(res.Findings)),
		Sources:  make([]Source, len(res.Sources)),
		Carriers: make([]Carrier, len(res.Carriers)),
		Summary:  summaryOf(res),
	}
	for i := range res.Captures {
		b.capture(&r.Captures[i], i)
	}
	for i := range res.Requests {
		b.request(&r.Requests[i], &res.Requests[i])
	}
	for i := range res.Findings {
		f := &res.Findings[i]
		ids := make([]string, 0, len(f.Requests))
		for _, n := range f.Requests {
			ids = append(ids, r.Requests[n].ID)
		}
		r.Findings[i] = Finding{
			Code: f.Code, Title: f.Title, Severity: f.Severity, Requests: ids,
			Observed: linesOf(f.Observed), Reading: linesOf(f.Reading), Next: linesOf(f.Next),
		}
	}
	for i, s := range res.Sources {
		r.Sources[i] = Source{
			Addr: b.addr(s.Addr), Role: s.Role.Kind.String(), Name: Maybe(s.Role.Name), Requests: s.Requests, Packets: s.Packets,
		}
	}
	for i, c := range res.Carriers {
		r.Carriers[i] = Carrier{
			Tunnel: c.Tunnel.String(), Capture: c.Capture, Proto: c.Tuple.Proto.String(), Packets: c.Packets, Opaque: c.Opaque,
			Src: b.addr(c.Tuple.Src), SrcPort: b.port(c.Tuple.SrcPortOrEchoID, c.Tuple.Proto.HasPorts()),
			Dst: b.addr(c.Tuple.Dst), DstPort: b.port(c.Tuple.DstPortOrEchoID, c.Tuple.Proto.HasPorts()),
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
	return out
}

func summaryOf(res *analyze.Result) Summary {
	s := Summary{
		Requests:    uint64(len(res.Requests)),
		BySource:    make(map[string]uint64),
		ByOutcome:   make(map[string]uint64),
		ByStoppedAt: make(map[string]uint64),
		Limits:      append([]string{}, res.Limits...),
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
	for i := range res.Requests {
		q := &res.Requests[i]
		s.BySource[q.Source.String()]++
		s.ByOutcome[q.Outcome.String()]++
		s.ByStoppedAt[q.StoppedAt.String()]++
	}
	return s
}

// builder makes the parts of a Record. Strings of addresses are shared, and small slices are cut from large ones: a
// capture of a busy node has hundreds of thousands of requests.
type builder struct {
	res   *analyze.Result
	addrs map[wire.Addr]string
	names [][]Maybe // per capture, per interface

	frames slab[Frame]
	legs   slab[Leg]
	points slab[Point]
	ends   slab[Endpoint]
	ports  slab[uint16]
	counts slab[uint64]
	texts  slab[string]
}

// slab cuts small slices from large ones.
type slab[T any] struct{ free []T }

func (s *slab[T]) take(n int) []T {
	const chunk = 1024
	if n > len(s.free) {
		s.free = make([]T, max(n, chunk))
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

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
		Addr: b.addr(e.Addr), Port: b.port(e.Port, e.HasPort), Role: e.Role.Kind.String(), Name: Maybe(e.Role.Name),
		Node: Maybe(e.Role.Node), Fact: Maybe(e.Role.Fact), Exact: e.Role.Exact, HostNetwork: e.Role.HostNetwork,
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

func (b *builder) capture(out *Capture, i int) {
	in := &b.res.Captures[i]
	s := &in.Summary
	*out = Capture{
		File: in.File, Label: Maybe(in.Label), SHA256: Maybe(in.SHA256), Side: in.Side.String(), Format: s.Format,
		LinkTypes: append([]uint32{}, s.LinkTypes...), Interfaces: make([]Interface, len(s.Interfaces)),
		AllInterfaces: s.AllInterfaces, SnapLen: nonZero(s.SnapLen), Packets: s.Frames, Bytes: s.Bytes,
		Transmissions: in.Transmitted, Complete: s.Complete, Damage: Maybe(in.DamageText), Dropped: known(s.Dropped, s.HasDropped),
		CutPackets: s.CutFrames, LetGo: in.LetGo, Skipped: make(map[string]uint64),
		Notes:  append(append([]string{}, s.Notes...), in.Notes...),
		Window: Window{From: TimeOf(s.First), To: TimeOf(s.Last), Basis: "packets"},
	}
	// A stated filter beats the recorded one: the person knows what the file left out.
	switch {
	case in.HasStated:
		out.Filter, out.FilterBasis = known(in.StatedFilter, true), "stated"
	case s.HasFilter:
		out.Filter, out.FilterBasis = known(s.Filter, true), "recorded"
	}
	if s.First == wire.NoTime || s.Last == wire.NoTime {
		out.Window = Window{Basis: "none"}
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
			name = "if" + strconv.FormatUint(uint64(f.Index), 10)
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

func (b *builder) request(out *Request, in *analyze.Request) {
	*out = Request{
		ID: requestID(in), Proto: in.Tuple.Proto.String(), Direction: in.Way.String(),
		Client: b.endpoint(in.Client), Server: b.endpoint(in.Server),
		Backend: b.endpointIf(in.Backend), Egress: b.endpointIf(in.Egress), Far: b.endpointIf(in.Far), FarServer: b.endpointIf(in.FarServer),
		EchoID: b.port(in.Tuple.SrcPortOrEchoID, in.Tuple.IsEcho()),
		Source: in.Source.String(), SourceBasis: in.Basis.String(), Outcome: in.Outcome.String(),
		ConnState: Maybe(in.ConnState), History: Maybe(in.History), Completed: in.Completed, StoppedAt: in.StoppedAt.String(),
		Unknown: make([]Unknown, len(in.Unknown)), Reasons: b.texts.take(len(in.Reasons)),
		First: TimeOf(in.First), Last: TimeOf(in.Last), Handshake: known(in.Handshake, in.Handshake >= 0),
		RequestsSent: in.RequestsSent, RepliesSeen: in.RepliesSeen, Retransmissions: in.Retransmissions,
		Join: make([]Join, len(in.Joins)), Frames: b.frames.take(len(in.Frames)), Findings: append([]string{}, in.Findings...),
		Legs: b.legs.take(len(in.Legs)),
	}
	for i, u := range in.Unknown {
		out.Unknown[i] = Unknown{Field: u.Field, Reason: u.Reason, Text: u.Text, Settle: Maybe(u.Settle)}
	}
	for i, s := range in.Reasons {
		out.Reasons[i] = string(s)
	}
	if a := in.ICMP; a != nil {
		out.ICMP = &ICMP{
			About: a.About.String(), From: b.addr(a.From), FromRole: a.FromRole.Kind.String(), FromName: Maybe(a.FromRole.Name),
			Type: a.Type, Code: a.Code, MTU: nonZero(a.MTU), Text: icmpText(a.V6, a.Type, a.Code),
		}
	}
	for i, j := range in.Joins {
		out.Join[i] = Join{From: j.From, To: j.To, Basis: append([]string{}, j.Basis...), Confidence: j.Confidence.String()}
	}
	for i, f := range in.Frames {
		out.Frames[i] = Frame{
			Capture: f.Capture, Frame: f.Frame, Time: TimeOf(f.Time), Interface: b.iface(f.Capture, f.Iface),
			Direction: f.Direction.String(), Leg: f.Leg.String(), What: f.What,
		}
	}
	for i := range in.Legs {
		b.leg(&out.Legs[i], &in.Legs[i])
	}
}

func (b *builder) leg(out *Leg, in *analyze.Leg) {
	t := in.Tuple
	*out = Leg{
		Leg: in.Kind.String(), Capture: in.Capture, Sent: in.Sent, Replies: in.Replies, TTL: nonZero(in.TTL),
		Src: b.addr(t.Src), SrcPort: b.port(t.SrcPortOrEchoID, t.Proto.HasPorts()),
		Dst: b.addr(t.Dst), DstPort: b.port(t.DstPortOrEchoID, t.Proto.HasPorts()),
		EchoID: b.port(t.SrcPortOrEchoID, t.IsEcho()), Points: b.points.take(len(in.Points)),
	}
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

// requestID is a digest of protocol, client, server and opening: the same request has the same id in every run, and in
// every capture that shows it.
func requestID(r *analyze.Request) string {
	var buf [64]byte
	b := append(buf[:0], byte(r.Tuple.Proto), r.Tuple.Query)
	b = append(b, r.Tuple.Src[:]...)
	b = append(b, r.Tuple.Dst[:]...)
	b = binary.BigEndian.AppendUint16(b, r.Tuple.SrcPortOrEchoID)
	b = binary.BigEndian.AppendUint16(b, r.Tuple.DstPortOrEchoID)
	b = binary.BigEndian.AppendUint64(b, r.Opening)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}
