package analyze

import (
	"fmt"
	"slices"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// FromTable makes a result of the connection table of the facts alone, without packets: its connections are the requests. What the
// kernel writes down of a connection is its source before and after translation, and whether an answer came.
func FromTable(facts *cluster.Facts) *Result {
	table := CaptureInfo{File: facts.TableName()}
	table.Summary = wire.Summary{Format: "conntrack", Frames: uint64(len(facts.Entries())), First: wire.NoTime, Last: wire.NoTime, Complete: true}
	res := &Result{Facts: facts, Captures: []CaptureInfo{table}}
	a := &analysis{facts: facts, host: &hostFacts{}, thisNode: map[wire.Addr]bool{}, info: &CaptureInfo{}}
	for _, n := range facts.LocalAddrs() {
		a.thisNode[wire.AddrFrom(n)] = true
	}
	other := make(map[wire.Proto]uint64)
	for _, e := range facts.Entries() {
		if !judged(e.Orig.Proto) {
			other[e.Orig.Proto]++
			continue
		}
		res.Requests = append(res.Requests, a.fromEntry(&e))
	}
	res.Captures[0].Notes = notJudged("connection", other)
	number(res.Requests)
	sortRequests(res.Requests)
	res.Limits = []string{"a connection table holds no packets: how far a request got shows only as far as the kernel's state tells, and what has ended may be gone from it"}
	res.conclude()
	return res
}

// listed tells whether a connection table lists the request, and no packet of it is known.
func (r *Request) listed() bool {
	return r.tracked != nil && r.seenAt.a == nil && (r.Outcome == HandshakeCompleted || r.Outcome == Answered)
}

// fromEntry makes a request of a connection.
func (a *analysis) fromEntry(e *cluster.Entry) Request {
	t := e.Orig
	r := Request{
		Tuple: t, First: wire.NoTime, Last: wire.NoTime, Handshake: -1,
		Client: a.endpoint(t.Src, t.SrcPortOrEchoID, t.Proto), Server: a.endpoint(t.Dst, t.DstPortOrEchoID, t.Proto),
		RequestsSent: e.Sent, RepliesSeen: e.Back, tracked: &e.Connection,
	}
	if b := a.endpoint(e.Reply.Src, e.Reply.SrcPortOrEchoID, t.Proto); b.Addr != r.Server.Addr || b.HasPort && b.Port != r.Server.Port {
		r.Backend = &b
	}
	r.Way = a.tableWay(&r, e)
	a.tableSource(&r, e)
	r.Outcome = tableOutcome(e)
	r.Completed = r.Outcome == HandshakeCompleted && (e.State == "LAST_ACK" || e.State == "TIME_WAIT") // both sides closed
	capture := "a capture: tcpdump -ni any -w near.pcap " + hostFilter(&r)
	if r.Outcome == HandshakeCompleted || r.Outcome == Answered {
		r.StoppedAt = StopNone
		return r
	}
	if r.Outcome == OutcomeUnknown {
		r.unknown("outcome", "connection-table", fmt.Sprintf("the connection table has it in state %s, which does not tell how it was answered", e.State), capture)
	} else {
		r.unknown("outcome", gapEnded, "the table was listed at one moment: the answer may have come later", "conntrack -L once more, or "+capture)
	}
	r.unknown("stopped_at", "connection-table", "a connection table does not tell where packets stop", capture)
	return r
}

// tableWay is the direction of a connection, seen from the cluster.
func (a *analysis) tableWay(r *Request, e *cluster.Entry) Way {
	client, server := r.Client.Role.Kind, a.role(e.Reply.Src).Kind
	switch {
	case a.thisNode[e.Reply.Src] && client == cluster.RoleOther:
		return Inbound
	case a.thisNode[e.Reply.Src]:
		return WayLocal
	case client == cluster.RolePod && server == cluster.RolePod:
		return WayUnknown // it may be on this node or on another
	case client == cluster.RolePod || client == cluster.RoleNode:
		return Outbound
	case client == cluster.RoleOther && oursAtAll(server):
		return Inbound
	case client == cluster.RoleOther && server == cluster.RoleOther:
		return Transit
	}
	return WayUnknown
}

// tableSource judges the source of a connection.
func (a *analysis) tableSource(r *Request, e *cluster.Entry) {
	left := e.Reply.Dst
	end := a.endpoint(left, e.Reply.DstPortOrEchoID, e.Orig.Proto)
	tell := func(s Source, format string, args ...any) {
		r.set(s, BasisConntrack, format, args...)
		r.Egress = &end
	}
	server := a.role(e.Reply.Src)
	switch client := r.Client.Role; {
	case a.thisNode[e.Reply.Src], e.Reply.Src.IsLoopback():
		r.set(SourceLocal, BasisConntrack, "its destination %s is this node: it was delivered here", e.Reply.Src)
	case client.Kind == cluster.RolePod && server.Kind == cluster.RolePod:
		r.unknown("source", "destination-may-be-local", "the destination is a Pod's address and may be on this node: that the packet left the node does not show", "a capture of all interfaces: tcpdump -ni any")
	case client.Kind == cluster.RolePod && left == e.Orig.Src && e.Zoned:
		r.unknown("source", "connection-table", "the entry is of a conntrack zone, and another zone may translate what this one leaves as it is", "a capture: tcpdump -ni any -w near.pcap "+hostFilter(r))
	case client.Kind == cluster.RolePod && left == e.Orig.Src:
		tell(PodSourced, "the kernel's connection table does not translate it: it leaves with the Pod's address %s", left)
	case client.Kind == cluster.RolePod && (end.Role.Kind == cluster.RoleNode || a.thisNode[left]):
		tell(NodeSNATed, "the kernel's connection table has %s leave as %s, %s", e.Orig, left, r.nodeWords(end.Role))
	case client.Kind == cluster.RolePod:
		tell(OtherSNATed, "the kernel's connection table has %s leave as %s, which is neither the Pod's nor a known node address", e.Orig, left)
	case a.thisNode[e.Orig.Src]:
		tell(NodeOwn, "the kernel's connection table has it begun by %s, this node's own address", e.Orig.Src)
	case client.Kind == cluster.RoleNode:
		tell(NodeSourced, "the kernel's connection table has it begun by %s, %s", e.Orig.Src, r.nodeWords(client))
	case client.Kind == cluster.RoleOther:
		tell(OtherSourced, "its source %s is none of the cluster's addresses", e.Orig.Src)
	default:
		a.roleUnknown(r, e.Orig.Src)
	}
}

// tableOutcome tells how far a connection got by the kernel's state of it (net/netfilter/nf_conntrack_proto_tcp.c and _sctp.c).
func tableOutcome(e *cluster.Entry) Outcome {
	switch {
	case e.Orig.Proto == wire.ProtoTCP || e.Orig.Proto == wire.ProtoSCTP:
		switch {
		case e.Unreplied:
			return RequestOnly
		case slices.Contains([]string{"ESTABLISHED", "FIN_WAIT", "CLOSE_WAIT", "LAST_ACK", "TIME_WAIT", "SHUTDOWN_SENT", "SHUTDOWN_RECD", "SHUTDOWN_ACK_SENT", "HEARTBEAT_ACKED"}, e.State), e.Assured:
			return HandshakeCompleted
		case e.State == "SYN_RECV" || e.State == "COOKIE_ECHOED":
			return HalfOpen
		}
		return OutcomeUnknown
	case e.Unreplied:
		return RequestOnly
	}
	return Answered
}
