package analyze

import (
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// stop decides where the request's packets stop, as far as one capture tells (DESIGN section 6).
func (a *analysis) stop(r *Request, v *view, o outcomeAt) {
	if o.outcome == RequestOnly || o.outcome == HalfOpen {
		since, resent := r.First, o.leg.client.retrans > 0 || o.leg.client.packets > 1 && r.Tuple.Proto != wire.ProtoTCP
		if o.outcome == HalfOpen { // what is awaited is the acknowledgement of the SYN-ACK
			at := o.leg
			for _, l := range v.legs() {
				if o.leg.server.packets == 0 && l.server.packets > 0 {
					at = l
				}
			}
			since, resent = at.server.first, at.server.retrans > 0
		}
		if g := a.runsOn(since, resent); g != covered {
			text := "the capture ends less than a second after the request, so an answer may have come later"
			if g == gapNoTime {
				text = gapText(g)
			}
			r.unknown("outcome", g, text, a.settle(gapEnded, r))
		}
	}
	if o.outcome == HalfOpen && r.Tuple.Proto == wire.ProtoTCP && a.t.tcpBare == 0 {
		r.unknown("outcome", gapFilter, "every TCP packet of the capture carries SYN: a filter on flags would hide the acknowledgement", a.settle(gapFilter, r))
	}
	if o.outcome == RequestOnly {
		if g := a.answerKept(r); g != covered {
			r.unknown("outcome", g, gapText(g), a.settle(g, r))
		}
	}
	if a.info.Side == wire.SideFar {
		a.stopFar(r, v, o)
		return
	}
	if v.plain != nil && v.plain.replyRejected != nil && a.role(v.plain.replyRejected.from).Kind != cluster.RoleNode && v.plain.client.flags&knowTTL != 0 && !ownTTL(v.plain.client.ttl) {
		// Seen past the node: a router on the way back rejected the answer, whatever side the capture is said to be of.
		r.rejectedBy, r.Completed = v.plain.replyRejected.from, false
		r.replyRejected(v.plain.replyRejected, false, "server's")
		return
	}
	if r.Source == NotSent {
		r.StoppedAt = StopNodeOut
		if o.outcome == Refused {
			r.because("this node itself answered with a reset, in the server's name (initial ttl %d)", v.pod.server.ttl)
		}
		if o.outcome == Rejected {
			r.because("this node itself answered with an ICMP error from %s", r.ICMP.From)
		}
		return
	}
	if r.Source == SourceLocal || a.deliveredHere(r, v) {
		switch o.outcome {
		case HandshakeCompleted, Answered, Midstream, Refused:
			r.StoppedAt = StopNone
		case OutcomeUnknown, HalfOpen, Rejected, RequestOnly, OneDirection, ReplyOnly:
			text := "delivered on this node: whether the receiver got it is not covered"
			if r.Tuple.Dst.IsMulticast() || r.Tuple.Dst.IsLinkLocal() {
				text = "sent to neighbours on the link: who got it is not covered"
			}
			r.unknown("stopped_at", "delivered-on-this-node", text, "")
		}
		return
	}
	switch o.outcome {
	case HandshakeCompleted, Answered, Midstream:
		r.StoppedAt = StopNone
	case HalfOpen:
		switch {
		case o.leg.kind == LegPod && o.delivered, o.leg.kind == LegUnknown && o.leg.client.flags&knowTTL != 0 && ownTTL(o.leg.client.ttl):
			r.StoppedAt = StopNone
		case a.nodeIn(r, v) == covered:
			r.StoppedAt = StopNodeIn
		default:
			r.unknown("stopped_at", "half-open", "the SYN-ACK came back to this point; whether it reached the client is not in the capture", a.captureHint(r))
		}
	case Refused:
		a.stopRefused(r, v)
	case Rejected:
		a.stopRejected(r, v)
	case RequestOnly:
		a.stopRequestOnly(r, v)
	case OneDirection, ReplyOnly:
		r.unknown("stopped_at", "one-direction", "only one direction is in the capture: the other may have been filtered out or taken another way", a.captureHint(r))
	case OutcomeUnknown:
		r.unknown("stopped_at", "outcome-unknown", "the outcome is not known", "")
	}
}

// answerKept tells whether the capture is whole, and its filter, where it is known, would have kept an answer.
func (a *analysis) answerKept(r *Request) gap {
	switch {
	case a.sum.damaged:
		return gapWhole
	case a.sum.HasDropped && a.sum.Dropped > 0:
		return gapDropped
	case a.sum.Excerpt != "":
		return gapExcerpt
	case a.t.letGo > 0:
		return gapLetGo
	}
	filter, known := a.filter()
	if !known {
		return covered
	}
	client, server := r.Client, r.Server
	if r.Egress != nil {
		client = *r.Egress
	}
	if r.Backend != nil {
		server = *r.Backend
	}
	m := missing{proto: r.Tuple.Proto, v6: !server.Addr.Is4(), src: server.Addr, dst: client.Addr, sport: -1, dport: -1, iface: -1}
	if server.HasPort {
		m.sport, m.dport = int(server.Port), int(client.Port)
	}
	if evalFilter(filter, &m) == no {
		return gapFiltered
	}
	return covered
}

// stopRefused: a reset answered. Where the egress is not visible, a reset with an initial TTL comes from a neighbour: the
// server on the same link, or the node in the server's name.
func (a *analysis) stopRefused(r *Request, v *view) {
	if v.egress != nil && v.egress.server.packets > 0 || r.Server.Role.Kind == cluster.RoleNode {
		r.StoppedAt = StopNone
		return
	}
	l := v.legs()[0]
	if v.egress != nil && v.egress.client.packets > 0 && l.kind == LegPod {
		r.unknown("stopped_at", "answered-past-the-capture", "the request left, and the reset that the client got was not seen coming in", a.captureHint(r))
		return
	}
	podSide := l.kind == LegPod || l.kind == LegUnknown && l.client.flags&knowTTL != 0 && ownTTL(l.client.ttl)
	if podSide && l.server.flags&knowTTL != 0 && ownTTL(l.server.ttl) {
		r.unknown("stopped_at", "sender-of-reset-not-known",
			r.say("the reset has the initial ttl %d: it comes from a neighbour, the server or the node in its name", l.server.ttl), a.captureHint(r))
		return
	}
	r.StoppedAt = StopNone
}

func (a *analysis) stopRejected(r *Request, v *view) {
	from := r.ICMP.From
	byServer := from == r.Server.Addr || r.Backend != nil && from == r.Backend.Addr
	// The error came in where the request had gone out: somebody past the node sent it.
	cameIn := v.egress != nil && v.egress.rejected != nil
	left := v.egress != nil && v.egress.client.packets > 0
	if v.plain != nil && v.plain.client.packets > 0 && v.plain.client.flags&knowTTL != 0 && !ownTTL(v.plain.client.ttl) {
		cameIn, left = v.plain.rejected != nil, true // seen past the first hop
	}
	var e *icmpError
	for _, l := range v.legs() {
		if e == nil {
			e = l.rejected
		}
	}
	neighbour := e.hasTTL && ownTTL(e.ttl)
	switch {
	case a.thisNode[from] && !cameIn && left:
		r.unknown("stopped_at", "rejected-by-node", r.say("%s, this node's own address, rejected it although packets of it left", from), "")
	case a.thisNode[from] && !cameIn, neighbour && !cameIn && !left:
		r.unknown("stopped_at", gapInterfaces, r.say("%s, the next device, rejected it; whether that is the node or a router behind it, and whether anything left, is not covered", from), a.captureHint(r))
	case byServer && (cameIn || !neighbour):
		r.StoppedAt = StopNone
		r.because("rejected by the server's own address %s: it got there", from)
	case cameIn || left || !neighbour && e.hasTTL:
		r.StoppedAt = StopBetween
		r.because("rejected by %s, which is neither the server nor this node: it got as far as that", from)
	default:
		r.unknown("stopped_at", "rejecting-device-not-placed", r.say("%s rejected it; on which side of the node that is does not show", from), a.captureHint(r))
	}
}

func (a *analysis) stopRequestOnly(r *Request, v *view) {
	if v.egress != nil && (v.egress.server.packets > 0 || v.egress.replyRejected != nil) {
		g := a.nodeIn(r, v)
		if g == covered {
			r.StoppedAt = StopNodeIn
			return
		}
		r.unknown("stopped_at", g, "an answer came back to the node's egress; that it did not reach the Pod is not covered: "+gapText(g), a.settle(g, r))
		return
	}
	for _, u := range r.Unknown {
		if u.Field == "source" && (r.Egress == nil && v.plain == nil) {
			r.unknown("stopped_at", gap(u.Reason), "whether it left the node is not known", u.Settle)
			return
		}
	}
	r.unknown("stopped_at", gapNoFarCapture, "no far capture", a.farHint(r))
}

// farHint is the capture to take at the far side, whose filter still matches after translation.
func (a *analysis) farHint(r *Request) string {
	// Routers that reject an answer are neither end: their ICMP errors are the best evidence there is.
	server := r.Server.Addr
	if r.Backend != nil {
		server = r.Backend.Addr
	}
	const one, two = "capture at %s: tcpdump -ni any -w far.pcap 'host %s or %s'", "capture at %s: tcpdump -ni any -w far.pcap 'host %s or host %s or %s'"
	if r.Egress != nil && r.Egress.Addr != r.Client.Addr {
		return r.say(one, server, r.Egress.Addr, icmpOf(server))
	}
	for _, n := range a.facts.NodeAddrs() {
		if a.facts.HasNodeFacts() && n.Is4() == r.Client.Addr.Is4() && n != r.Client.Addr {
			return r.say(two, server, r.Client.Addr, n, icmpOf(server))
		}
	}
	return r.say(one, server, r.Client.Addr, icmpOf(server))
}

// nodeIn decides whether an answer that reached the node's egress was not delivered to the Pod.
func (a *analysis) nodeIn(r *Request, v *view) gap {
	if v.egress == nil || v.pod == nil || v.pod.client.packets == 0 {
		return gapPodSide
	}
	if e := v.egress.replyRejected; e != nil && a.thisNode[e.from] && e.dir != wire.DirIn {
		r.because("this node rejected the answer: ICMP %s from %s", ErrorText(e.from.Is4(), e.typ, e.code), e.from)
		return covered
	}
	if v.egress.server.packets == 0 || v.pod.server.packets > 0 {
		return gapPodSide
	}
	if v.pod.client.last <= v.egress.server.first {
		return gapEnded // the client has not shown that it is still waiting
	}
	if !v.showsOut(v.pod, a.host) {
		return gapPodSide
	}
	m := missingReply(r.Tuple, v.egress.server.first)
	m.dir, m.iface = wire.DirOut, a.podInterface(v.pod)
	if g := a.absent(&m); g != covered {
		return g
	}
	r.because("the answer came in at the node's egress (%s), did not go out to the Pod, and the Pod asked again afterwards", plural(v.egress.server.packets, "packet"))
	return covered
}

// podInterface returns the one interface of the leg, -1 if there are several.
func (a *analysis) podInterface(l *legState) int {
	found := -1
	for _, x := range l.flows {
		for n := a.t.flows.at(x).taps; n != 0; n = a.t.taps.at(n).next {
			i := int(a.t.taps.at(n).iface)
			if found >= 0 && found != i {
				return -1
			}
			found = i
		}
	}
	return found
}

// replyRejected places an ICMP error about the answer: by the node itself, or on the way back to it. Whose answer it is
// called depends on the side that shows it.
func (r *Request) replyRejected(e *icmpError, byNode bool, whose string) {
	what := ErrorText(e.from.Is4(), e.typ, e.code)
	if byNode {
		r.StoppedAt = StopNodeIn
		r.because("the node itself (%s) rejected the %s answer: ICMP %s", e.from, whose, what)
		return
	}
	r.StoppedAt = StopReturn
	r.because("%s rejected the %s answer on its way back: ICMP %s", e.from, whose, what)
}

// stopFar judges a far capture alone.
func (a *analysis) stopFar(r *Request, v *view, o outcomeAt) {
	for _, l := range v.legs() {
		if e := l.replyRejected; e != nil {
			byNode := a.role(e.from).Kind == cluster.RoleNode
			if !byNode {
				r.rejectedBy = e.from
			}
			r.replyRejected(e, byNode, "server's")
			return
		}
	}
	switch o.outcome {
	case HandshakeCompleted, Midstream:
		r.StoppedAt = StopNone // the client's own acknowledgements came back here
	case Answered, Refused:
		r.unknown("stopped_at", "delivery-not-seen", "the answer left this point; that it reached the client does not show in a far capture alone",
			"a capture on the node at the same time")
	case Rejected:
		if r.ICMP.From == r.Server.Addr {
			r.StoppedAt = StopNone
			return
		}
		r.unknown("stopped_at", "rejected-past-the-capture", r.say("%s rejected it; compare with a near capture tells on which way", r.ICMP.From), "a capture on the node at the same time")
	case RequestOnly:
		m := missingReply(r.Tuple, r.First)
		m.dir = wire.DirOut
		if len(a.sum.Interfaces) == 1 {
			m.iface = 0
		}
		g := a.runsOut(o.leg.client)
		if g == covered {
			g = a.absent(&m)
		}
		if g != covered {
			r.unknown("stopped_at", g, gapText(g), a.settle(g, r))
			return
		}
		r.StoppedAt = StopFar
		r.because("%s arrived here and nothing came back past this point", plural(r.RequestsSent, "packet"))
	case OutcomeUnknown, HalfOpen, OneDirection, ReplyOnly:
		r.unknown("stopped_at", "one-direction", "the far capture alone does not show whether the answers got back", "a capture on the node at the same time")
	}
}
