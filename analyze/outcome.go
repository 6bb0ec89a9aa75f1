package analyze

import "github.com/srcproof/srcproof/capture/wire"

// verdictOf is the outcome with the leg it was judged at.
type outcomeAt struct {
	outcome Outcome
	leg     *legState // nearest to the client; never nil
	// delivered: what the outcome rests on reached the leg nearest to the client, or the client shows that it did.
	delivered bool
	blind     bool // the capture cut off what would tell
}

// outcome judges how far the request got (DESIGN section 5), where the client is nearest, by everything that the client
// shows it received.
func (v *view) outcome(h *hostFacts) outcomeAt {
	legs := v.legs()
	at := legs[0]
	for _, l := range legs {
		if l.client.packets > 0 {
			at = l
			break
		}
	}
	var c, s dirFlags // everything seen of the client and the server, at any leg
	var sent, replies uint64
	for _, l := range legs {
		c |= l.client.flags
		s |= l.server.flags
		sent += l.client.packets
		replies += l.server.packets
	}
	here := at.server.flags
	hereReplies := at.server.packets
	if !v.repliesVisible(at, h) {
		// This leg's replies were not captured at all, so what another leg shows of them stands.
		here, hereReplies = s, replies
	}
	proto := v.t.flows.at(at.flows[0]).key.proto
	out := outcomeAt{leg: at, delivered: true}
	rejected := false
	for _, l := range legs {
		rejected = rejected || l.rejected != nil
	}
	switch proto {
	case wire.ProtoTCP:
		goesOn := c&(sawPureACK|sawData|sawFIN) != 0
		out.outcome = connectionOutcome(tcpOpened(c, s), goesOn, c, s, here, hereReplies, sent, replies, rejected)
	case wire.ProtoSCTP:
		opened, goesOn := c&sawSYN != 0 && s&sawCookieAck != 0, c&^(sawSYN|knowISN|knowTTL|knowIPID) != 0
		out.outcome = connectionOutcome(opened, goesOn, c, s, here, hereReplies, sent, replies, rejected)
	default:
		switch {
		case sent == 0 && replies == 0 && rejected:
			out.outcome = Rejected // the error quotes a request that was not captured itself
		case sent == 0:
			out.outcome = ReplyOnly
		case hereReplies > 0:
			out.outcome = Answered
		case rejected:
			out.outcome = Rejected
		default:
			out.outcome = RequestOnly
		}
	}
	out.blind = (c|s)&blind != 0
	if out.outcome == HalfOpen || out.outcome == Refused || out.outcome == Answered {
		out.delivered = at.server.packets > 0
	}
	return out
}

// tcpOpened tells whether the handshake completed.
func tcpOpened(c, s dirFlags) bool {
	// The client acknowledged: the SYN-ACK reached it, wherever it was captured (RFC 9293 section 3.5). Or both ends opened at
	// once and acknowledged each other (RFC 9293 figure 7).
	return c&sawSYN != 0 && (c&sawACK != 0 && s&(sawSYNACK|sawACK) != 0 || c&s&sawSYNACK != 0)
}

// connectionOutcome judges TCP and SCTP, which open alike; goesOn is that the client sends what follows an answered opening.
func connectionOutcome(opened, goesOn bool, c, s, here dirFlags, hereReplies, sent, replies uint64, rejected bool) Outcome {
	began := c&sawSYN != 0
	switch {
	case opened:
		return HandshakeCompleted
	case began && here&sawSYNACK != 0:
		return HalfOpen
	case began && here&sawRST != 0:
		return Refused
	case rejected && (began || sent == 0 && replies == 0):
		return Rejected
	case (c|s)&blind != 0:
		return OutcomeUnknown
	case began && hereReplies == 0:
		if goesOn {
			return OneDirection // it goes on as if answered: the answers are not captured here
		}
		return RequestOnly
	case began:
		return OutcomeUnknown // answered by something that opens nothing: a challenge ACK (RFC 5961), stray data
	case sent > 0 && replies > 0:
		return Midstream
	case replies > 0 && s&sawSYNACK != 0:
		return ReplyOnly
	}
	return OneDirection
}

// repliesVisible tells whether the capture would show replies at this leg: at an interface on which it shows frames
// leaving towards the client, for the pod leg. Where no direction is recorded, it shows both.
func (v *view) repliesVisible(l *legState, h *hostFacts) bool {
	if l.server.packets > 0 || l.kind != LegPod || v.inside {
		return true
	}
	return v.showsOut(l, h)
}

// showsOut tells whether one of the leg's interfaces shows outgoing frames in this capture.
func (v *view) showsOut(l *legState, h *hostFacts) bool {
	for _, r := range l.flows {
		for n := v.t.flows.at(r).taps; n != 0; n = v.t.taps.at(n).next {
			if i := v.t.taps.at(n).iface; int(i) < len(h.ifaces) && h.ifaces[i].out {
				return true
			}
		}
		if v.t.flows.at(r).key.place >= placeInterface {
			return true // no direction recorded: frames of both are in it
		}
	}
	return false
}

// completed tells whether data answered data, or both sides closed in order.
func (v *view) completed(o outcomeAt, far bool) bool {
	if o.outcome == Answered {
		return !far // an answer that passes the far side need not arrive
	}
	if o.outcome != HandshakeCompleted && o.outcome != Midstream {
		return false
	}
	var c, s dirFlags
	for _, l := range v.legs() {
		c |= l.client.flags
		s |= l.server.flags
	}
	if c&s&sawData != 0 {
		if o.leg.server.flags&sawData != 0 {
			return true
		}
		// The server's data was captured only past the nearest leg: it was delivered if the client acknowledged it.
		for _, l := range v.legs() {
			if l.server.flags&sawData != 0 && l.server.flags&knowISN != 0 && o.leg.client.flags&knowAck != 0 && before(l.server.isn+1, o.leg.client.ackMax) {
				return true
			}
		}
	}
	return c&s&sawFIN != 0 && (c|s)&ackedFIN != 0 && (c|s)&sawRST == 0
}

// handshake returns the time from the first SYN to the client's first acknowledgement at this leg, -1 if not seen.
func (l *legState) handshake() int64 {
	began, answered := int64(-1), false
	events := l.events()
	for i := range events {
		e := &events[i]
		switch e.kind {
		case evSYN, evInit:
			if began < 0 {
				began = e.time
			}
		case evSYNACK, evInitAck:
			answered = true
		case evACK, evData, evFIN, evCookieEcho:
			if began >= 0 && answered && e.from == 0 {
				if e.time == wire.NoTime || e.time < began {
					return -1
				}
				return e.time - began
			}
		default:
		}
	}
	return -1
}
