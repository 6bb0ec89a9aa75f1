package report

import (
	"fmt"
	"net/netip"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// restore turns a record's request back into what an analysis takes: what its evidence rests on. Points, joins and the findings
// stay behind. It errs on an address, a time or a word that no record has: the file was written by something else.
func (r *Request) restore() (*analyze.Request, error) {
	q := &analyze.Request{
		Completed: r.Completed, Unanswered: r.unanswered(), First: r.First.nanoseconds(), Last: r.Last.nanoseconds(), Handshake: -1,
		RequestsSent: r.RequestsSent, RepliesSeen: r.RepliesSeen, Retransmissions: r.Retransmissions,
		ConnState: string(r.ConnState), History: string(r.History),
	}
	var err error
	word := func(ok bool, field, value string) {
		if !ok && err == nil {
			err = fmt.Errorf("%s %.40q is not a word of this schema", field, value)
		}
	}
	var ok bool
	q.Tuple.Proto, ok = wire.ProtoOf(r.Proto)
	word(ok, "proto", r.Proto)
	q.Source, ok = analyze.SourceOf(r.Source)
	word(ok, "source", r.Source)
	q.Basis, ok = analyze.BasisOf(r.SourceBasis)
	word(ok, "source_basis", r.SourceBasis)
	q.Outcome, ok = analyze.OutcomeOf(r.Outcome)
	word(ok, "outcome", r.Outcome)
	q.StoppedAt, ok = analyze.StopOf(r.StoppedAt)
	word(ok, "stopped_at", r.StoppedAt)
	q.Way, ok = analyze.WayOf(r.Direction)
	word(ok, "direction", r.Direction)
	end := func(field string, e *Endpoint) *analyze.Endpoint {
		if e == nil {
			return nil
		}
		out, e2 := e.restore()
		if e2 != nil && err == nil {
			err = fmt.Errorf("%s: %w", field, e2)
		}
		return &out
	}
	q.Client, q.Server = *end("client", &r.Client), *end("server", &r.Server)
	q.Backend, q.Egress = end("backend", r.Backend), end("egress", r.Egress)
	q.Far, q.FarServer = end("far", r.Far), end("far_server", r.FarServer)
	q.Tuple.Src, q.Tuple.Dst = q.Client.Addr, q.Server.Addr
	q.Tuple.SrcPortOrEchoID, q.Tuple.DstPortOrEchoID = q.Client.Port, q.Server.Port
	if r.EchoID != nil {
		q.Tuple.SrcPortOrEchoID, q.Tuple.DstPortOrEchoID, q.Tuple.Query = *r.EchoID, *r.EchoID, wire.ICMPEchoRequest
		if q.Tuple.Proto == wire.ProtoICMP6 {
			q.Tuple.Query = wire.ICMP6EchoRequest
		}
	}
	for _, u := range r.Unknown {
		q.Unknown = append(q.Unknown, analyze.Unknown{Field: u.Field, Reason: u.Reason, Text: u.Text, Settle: string(u.Settle)})
	}
	for i := range r.Frames {
		f := &r.Frames[i]
		leg, ok := analyze.LegKindOf(f.Leg)
		word(ok, "leg", f.Leg)
		q.Frames = append(q.Frames, analyze.FrameRef{Capture: f.Capture, Frame: f.Frame, Time: f.Time.nanoseconds(), Leg: leg, What: f.What})
	}
	for i := range r.Legs {
		leg, ok := analyze.LegKindOf(r.Legs[i].Leg)
		word(ok, "leg", r.Legs[i].Leg)
		q.Legs = append(q.Legs, analyze.Leg{Kind: leg, Capture: r.Legs[i].Capture, Sent: r.Legs[i].Sent, Replies: r.Legs[i].Replies})
	}
	if m := r.ICMP; m != nil {
		from, e2 := netip.ParseAddr(m.From)
		if e2 != nil && err == nil {
			err = fmt.Errorf("icmp.from %.40q is not an address", m.From)
		}
		q.ICMP = &analyze.ICMPAnswer{From: wire.AddrFrom(from), Type: m.Type, Code: m.Code, V6: from.Is6()}
	}
	return q, err
}

func (r *Request) unanswered() bool { return r.Unanswered != nil && *r.Unanswered }

func (e *Endpoint) restore() (analyze.Endpoint, error) {
	a, err := netip.ParseAddr(e.Addr)
	if err != nil || a.Zone() != "" {
		return analyze.Endpoint{}, fmt.Errorf("%.40q is not an address", e.Addr)
	}
	kind, ok := cluster.RoleKindOf(e.Role)
	if !ok {
		return analyze.Endpoint{}, fmt.Errorf("role %.40q is not a word of this schema", e.Role)
	}
	out := analyze.Endpoint{Addr: wire.AddrFrom(a), Role: cluster.NewRole(kind, string(e.Name), string(e.Node), string(e.Fact))}
	out.Role.Exact, out.Role.HostNetwork, out.Role.Reused = e.Exact, e.HostNetwork, e.Reused
	if e.Port != nil {
		out.Port, out.HasPort = *e.Port, true
	}
	return out, nil
}

// counted tells whether packets of it were counted; a connection table may list it without.
func (r *Request) counted() bool { return r.RequestsSent+r.RepliesSeen > 0 }
