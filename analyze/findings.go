package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// A rule turns requests of one kind into one finding per destination. Observed is what the packets show; reading is kept
// apart from it, and next is what to do.
type rule struct {
	code     string
	severity int
	match    func(r *Request) bool
	title    func(g *group) string
	observed func(res *Result, g *group) []string
	reading  []string
	next     func(res *Result, g *group) []string
}

// group is the requests of one rule to one destination, the example first.
type group struct {
	requests []*Request
	index    []int
	others   int // further destinations that were put into this group
}

func (g *group) example() *Request { return g.requests[0] }

// maxGroups is how many destinations of one rule get a finding of their own.
const maxGroups = 5

func rules() []rule {
	left := func(r *Request, s ...Source) bool {
		return slices.Contains(s, r.Source) && r.Way != Inbound && r.Way != WayLocal
	}
	// Unanswered at the node: nothing is known to have come back or to have stopped elsewhere.
	unanswered := func(r *Request) bool {
		return r.Outcome == RequestOnly && r.StoppedAt == StopUnknown && !r.answerAtEgress()
	}
	describeOnly := func(res *Result, g *group) []string { return observe(res, g) }
	return []rule{
		{
			code: codeNoReturnRoute, severity: severityTheTrouble,
			match: func(r *Request) bool { return r.StoppedAt == StopReturn },
			title: func(*group) string {
				return "The far host answered, and a router rejected the answer: it has no way back."
			},
			observed: describeOnly,
			reading:  []string{"the far side has no return route for this source. Not a tunnel fault, and not this node's masquerading as such."},
			next: func(_ *Result, g *group) []string {
				return remedies(g)
			},
		},
		{
			code: codePodUnanswered, severity: severityTheTrouble,
			match: func(r *Request) bool { return left(r, PodSourced) && unanswered(r) && r.Far == nil },
			title: func(*group) string {
				return "The Pod's packets leave the node with the Pod's own address, and nothing comes back."
			},
			observed: describeOnly,
			reading: []string{
				"the node's rules keep the Pod's source for this destination (an exclusion range such as nonMasqueradeCIDRs covers it), and the far side does not answer a Pod address: a return route or a firewall is missing there. Packets here cannot tell which.",
			},
			next: func(res *Result, g *group) []string {
				return append(append([]string{"is it the list? On the node, and in the cluster:", commandNatRules, commandAgentConfig}, farSteps(res, g)...), remedies(g)...)
			},
		},
		{
			code: codePodRejected, severity: severityTheTrouble,
			match: func(r *Request) bool { return left(r, PodSourced) && r.Outcome == Rejected },
			title: func(g *group) string {
				return fmt.Sprintf("The Pod's packets leave the node with the Pod's own address, and %s rejects them.", g.example().ICMP.From)
			},
			observed: describeOnly,
			reading:  []string{"the device that sent the error has no route, or a rule against this source or destination."},
			next: func(_ *Result, g *group) []string {
				return append([]string{fmt.Sprintf("ask the owner of %s what it has against %s", g.example().ICMP.From, sourceShown(g.example()))}, remedies(g)...)
			},
		},
		{
			code: codeNeverLeft, severity: severityTheTrouble,
			match:    func(r *Request) bool { return r.Source == NotSent },
			title:    func(*group) string { return "The Pod's request came to the node and never left it." },
			observed: describeOnly,
			reading:  []string{"the node itself drops or rejects it: a FORWARD rule or network policy, no route, reverse path filtering, or no neighbour. The far side has never seen it."},
			next: func(_ *Result, g *group) []string {
				r := g.example()
				return []string{"on the node:", "  ip route get " + r.Server.Addr.String() + " from " + r.Client.Addr.String() + " iif POD-INTERFACE", "  iptables-save -c | grep -nE 'FORWARD|DROP|REJECT'", "  nft list ruleset"}
			},
		},
		{
			code: codeNotDelivered, severity: severityTheTrouble,
			match: func(r *Request) bool { return r.StoppedAt == StopNodeIn },
			title: func(*group) string {
				return "The answer reaches the node, and the node does not deliver it to the Pod."
			},
			observed: describeOnly,
			reading:  []string{"the node drops the answer: a FORWARD rule or network policy, reverse path filtering, or a lost connection entry. The far side is fine."},
			next: func(_ *Result, g *group) []string {
				return []string{"on the node:", "  conntrack -L -d " + g.example().Server.Addr.String(), "  iptables-save -c | grep -nE 'FORWARD|DROP|REJECT'", "  sysctl net.ipv4.conf.all.rp_filter"}
			},
		},
		{
			code: codeOtherAddress, severity: severityTheTrouble,
			match: func(r *Request) bool { return left(r, OtherSNATed) },
			title: func(g *group) string {
				return fmt.Sprintf("The source was translated to %s, which is neither the Pod's nor a known node address.", sourceShown(g.example()))
			},
			observed: describeOnly,
			reading:  []string{"an egress address or an extra SNAT rule on this node, or an address of the node that was not given."},
			next: func(_ *Result, g *group) []string {
				return []string{"if it is this node's: --node-ip " + sourceShown(g.example()), "else find the rule:", commandNatRules}
			},
		},
		{
			code: codeNodeUnanswered, severity: severityTheTrouble,
			match: func(r *Request) bool {
				return left(r, NodeSNATed, NodeOwn, NodeSourced) && unanswered(r) && r.Far == nil
			},
			title:    func(*group) string { return "The request leaves with a node address, and nothing comes back." },
			observed: describeOnly,
			reading:  []string{"masquerading is not the trouble: the source is the node's. A route or a firewall between the node and the destination is, or the destination itself. Packets here cannot tell which."},
			next:     farSteps,
		},
		{
			code: codeNodeRejected, severity: severityTheTrouble,
			match: func(r *Request) bool { return left(r, NodeSNATed, NodeOwn, NodeSourced) && r.Outcome == Rejected },
			title: func(g *group) string {
				return fmt.Sprintf("The request leaves with a node address, and %s rejects it.", g.example().ICMP.From)
			},
			observed: describeOnly,
			reading:  []string{"masquerading is not the trouble: the source is the node's. The device that sent the error has no route, or a rule against it."},
			next: func(_ *Result, g *group) []string {
				return []string{fmt.Sprintf("ask the owner of %s what it has against %s", g.example().ICMP.From, sourceShown(g.example()))}
			},
		},
		{
			code: codeFarUnanswered, severity: severityTheTrouble,
			match:    func(r *Request) bool { return r.StoppedAt == StopFar },
			title:    func(*group) string { return "The request arrives at the far side, and no answer passes back there." },
			observed: describeOnly,
			reading:  []string{"the far host, its firewall, or whatever lies behind this capture point does not answer this source."},
			next: func(_ *Result, g *group) []string {
				return []string{"at the far host: does the service listen, does a rule drop by source, is there a route back to " + g.example().Client.Addr.String() + " (reverse path filtering drops without one):", "  ip route get " + g.example().Client.Addr.String()}
			},
		},
		{
			code: codeStalled, severity: severityTheTrouble,
			match:    func(r *Request) bool { return r.signs&signStalled != 0 },
			title:    func(*group) string { return "The handshake completes, and then data is never acknowledged." },
			observed: describeOnly,
			reading:  []string{"large packets or content do not get through: an MTU that is too large for the way, or an inspecting firewall."},
			next: func(_ *Result, g *group) []string {
				return []string{"from the Pod:", "  ping -M do -s 1372 " + g.example().Server.Addr.String()}
			},
		},
		{
			code: codeMTU, severity: severityWorthALook,
			match: func(r *Request) bool { return r.signs&signMTU != 0 },
			title: func(g *group) string {
				return fmt.Sprintf("A router asks for smaller packets%s.", mtuWords(g.example()))
			},
			observed: describeOnly,
			reading:  []string{"the way carries less than the sender assumes. If the message does not reach the Pod, large packets vanish while handshakes pass."},
			next: func(*Result, *group) []string {
				return []string{"lower the Pods' MTU, clamp the MSS, or let the ICMP message through to the Pod"}
			},
		},
		{
			code: codeRefused, severity: severityWorthALook,
			match:    func(r *Request) bool { return r.Outcome == Refused && r.Source != NotSent && r.Way != Inbound },
			title:    func(*group) string { return "The request is refused with a reset." },
			observed: describeOnly,
			reading:  []string{"packets get there and back. Nothing listens on that port, or a firewall resets."},
			next: func(_ *Result, g *group) []string {
				return []string{fmt.Sprintf("at %s: does the service listen on %s port %d, does a rule reject by source", g.example().Server.Addr, g.example().Tuple.Proto, g.example().Server.Port)}
			},
		},
		{
			code: codeClientReset, severity: severityWorthALook,
			match:    func(r *Request) bool { return r.signs&signClientReset != 0 },
			title:    func(*group) string { return "The client answers the SYN-ACK with a reset." },
			observed: describeOnly,
			reading:  []string{"the answer does not fit what the client asked, or comes after it has given up."},
			next: func(*Result, *group) []string {
				return []string{"compare the SYN-ACK's acknowledgement number with the SYN's sequence number in the frames named"}
			},
		},
		{
			code: codeReplyOther, severity: severityTheTrouble,
			match: func(r *Request) bool { return r.signs&signReplyOther != 0 },
			title: func(g *group) string { return "The answer comes from another address than the one asked." },
			observed: func(res *Result, g *group) []string {
				r := g.example()
				return append(observe(res, g), fmt.Sprintf("an answer to %s came from %s", addrPort(r.Client), r.replyFrom))
			},
			reading: []string{"clients and connection tables drop it: the server answers from another of its addresses, or the way back misses a translation."},
			next: func(_ *Result, g *group) []string {
				return []string{"bind the server to " + g.example().Server.Addr.String() + ", or mend the translation whose way back is not symmetric"}
			},
		},
		{
			code: codePodSideOnly, severity: severityWorthALook,
			match: func(r *Request) bool {
				return slices.ContainsFunc(r.Unknown, func(u Unknown) bool { return u.Field == "source" && u.Reason == codePodSideOnly })
			},
			title: func(*group) string {
				return "This capture holds the Pod's side only: it does not show what left the node."
			},
			observed: describeOnly,
			reading:  []string{"inside the Pod, or on its interface, every packet has the Pod's address, whatever the node does with it afterwards."},
			next: func(_ *Result, g *group) []string {
				return []string{"capture on the node, on all interfaces:", "  tcpdump -ni any -w near.pcap " + hostFilter(g.example())}
			},
		},
		{
			code: codeOldMapping, severity: severityWorthALook,
			match: func(r *Request) bool { return left(r, PodSourced, NodeSNATed, OtherSNATed) && r.Outcome == Midstream },
			title: func(*group) string {
				return "Connections older than the capture: their source may be older than the rules."
			},
			observed: describeOnly,
			reading:  []string{"the kernel decides a translation with a connection's first packet and keeps it. These prove nothing about the rules in force now."},
			next: func(*Result, *group) []string {
				return []string{"test with a new connection"}
			},
		},
		{
			code: codeOneDirection, severity: severityWorthALook,
			match:    func(r *Request) bool { return r.Outcome == OneDirection || r.Outcome == ReplyOnly },
			title:    func(*group) string { return "Only one direction of these is in the capture." },
			observed: describeOnly,
			reading:  []string{"a filter with src or dst, an interface that carries one direction, or another way back. Whether they were answered is not in it."},
			next: func(_ *Result, g *group) []string {
				return []string{"capture both directions:", "  tcpdump -ni any -w near.pcap " + hostFilter(g.example())}
			},
		},
		{
			code: codePodAnswered, severity: severityNote,
			match: func(r *Request) bool {
				return left(r, PodSourced) && (r.Outcome == HandshakeCompleted || r.Outcome == Answered) && r.StoppedAt == StopNone
			},
			title:    func(*group) string { return "The Pod's packets leave with the Pod's own address, and are answered." },
			observed: describeOnly,
			reading:  []string{"the far side reaches the Pod range: no translation is needed for this destination."},
			next:     func(*Result, *group) []string { return nil },
		},
	}
}

// sign is a mark on a request that only the packets tell.
type sign uint8

const (
	signClientReset sign = 1 << iota
	signMTU
	signStalled
	signReplyOther
)

// findings applies the rules, most severe first, and notes their codes at the requests.
func findings(res *Result) []Finding {
	for i := range res.Requests {
		res.Requests[i].Findings = nil
	}
	markOtherReplies(res.Requests)
	var out []Finding
	for _, ru := range rules() {
		type dest struct {
			capture int
			proto   wire.Proto
			addr    wire.Addr
			port    uint16
		}
		index := make(map[dest]int)
		var groups []group
		for i := range res.Requests {
			r := &res.Requests[i]
			if !ru.match(r) {
				continue
			}
			r.Findings = append(r.Findings, ru.code)
			k := dest{r.capture(), r.Tuple.Proto, r.Server.Addr, r.Server.Port}
			n, ok := index[k]
			if !ok {
				if len(groups) < maxGroups {
					n = len(groups)
					groups = append(groups, group{})
				} else {
					n = maxGroups - 1
					groups[n].others++
				}
				index[k] = n
			}
			groups[n].requests = append(groups[n].requests, r)
			groups[n].index = append(groups[n].index, i)
		}
		for i := range groups {
			g := &groups[i]
			out = append(out, Finding{
				Code: ru.code, Title: ru.title(g), Severity: ru.severity, Observed: ru.observed(res, g), Reading: ru.reading,
				Next: ru.next(res, g), Requests: g.index,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return out
}

// markOtherReplies finds datagrams that came back to a client's port from an address it had not asked.
func markOtherReplies(requests []Request) {
	type socket struct {
		addr  wire.Addr
		port  uint16
		sport uint16
	}
	var from map[socket]wire.Addr
	for i := range requests {
		r := &requests[i]
		if r.Tuple.Proto == wire.ProtoUDP && r.Outcome == ReplyOnly {
			if from == nil {
				from = make(map[socket]wire.Addr)
			}
			from[socket{r.Client.Addr, r.Client.Port, r.Server.Port}] = r.Server.Addr
		}
	}
	if from == nil {
		return
	}
	for i := range requests {
		r := &requests[i]
		if r.Tuple.Proto != wire.ProtoUDP || r.Outcome != RequestOnly && r.Outcome != Rejected {
			continue
		}
		if a, ok := from[socket{r.Client.Addr, r.Client.Port, r.Server.Port}]; ok && a != r.Server.Addr {
			r.signs |= signReplyOther
			r.replyFrom = a
		}
	}
}

// observe describes a group: its example in full, then how many are like it, then what contrasts with it.
func observe(res *Result, g *group) []string {
	r := g.example()
	out := []string{describe(res, r)}
	if n := len(g.requests) - 1; n > 0 {
		s := fmt.Sprintf("%s more like it", plural(uint64(n), "request"))
		if g.others > 0 {
			s += fmt.Sprintf(", some of them to %s", plural(uint64(g.others), "other destination"))
		}
		out = append(out, s)
	}
	if s := contrast(res, r); s != "" {
		out = append(out, s)
	}
	return out
}

// contrast finds a request to the same server that fared better from another source: the comparison that an engineer makes
// first.
func contrast(res *Result, r *Request) string {
	if r.Outcome != RequestOnly && r.Outcome != Rejected || r.Source != PodSourced {
		return ""
	}
	for i := range res.Requests {
		o := &res.Requests[i]
		if o.Server.Addr != r.Server.Addr || o.capture() != r.capture() || o.Outcome != HandshakeCompleted && o.Outcome != Answered {
			continue
		}
		switch o.Source {
		case NodeOwn:
			return fmt.Sprintf("the node's own request to the same server (%s) was answered", o.Tuple.Proto)
		case NodeSNATed:
			return fmt.Sprintf("a request to the same server that left as %s (%s) was answered", o.Egress.Addr, o.Tuple.Proto)
		default:
		}
	}
	return ""
}

// describe says what was seen of one request, with its frames.
func describe(res *Result, r *Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s > %s", addrPort(r.Client), addrPort(r.Server))
	if r.Client.Role.Name != "" {
		fmt.Fprintf(&b, " (%s)", r.Client.Role.Name)
	}
	b.WriteString(": ")
	b.WriteString(sentWords(r))
	names := res.Captures[r.capture()].InterfaceNames
	for i := range r.Legs {
		if s := legWordsOf(r, &r.Legs[i], names); s != "" {
			b.WriteString(s)
		}
	}
	if frames := framesOf(r, func(w string) bool {
		return strings.HasPrefix(w, "SYN") && !strings.HasPrefix(w, "SYN-ACK") || w == "request" || strings.HasPrefix(w, "INIT") && w != "INIT ACK"
	}); frames != "" {
		b.WriteString(", " + frames)
	}
	b.WriteString("; " + answerWords(res, r))
	return b.String()
}

// answerAtEgress tells whether an answer to a request that its client saw unanswered reached the node.
func (r *Request) answerAtEgress() bool {
	return r.Outcome == RequestOnly && slices.ContainsFunc(r.Legs, func(l Leg) bool { return l.Kind == LegEgress && l.Replies > 0 })
}

func sentWords(r *Request) string {
	noun := "packet"
	if r.Tuple.Proto == wire.ProtoTCP && (r.Outcome == RequestOnly || r.Outcome == Rejected || r.Outcome == Refused) {
		noun = "SYN"
	}
	if r.Tuple.IsEcho() {
		noun = "echo request"
	}
	s := plural(r.RequestsSent, noun)
	if noun == "SYN" && r.RequestsSent > 1 {
		s += fmt.Sprintf(" (1 request, %s)", plural(r.RequestsSent-1, "retransmission"))
	}
	return s
}

// legWordsOf says where a leg's packets were seen: "in on if7 and if6", "out on if2 as 172.16.0.13:43076, ttl 63".
func legWordsOf(r *Request, l *Leg, names []string) string {
	var in, out, at []string
	for _, p := range l.Points {
		if p.Sent == 0 {
			continue
		}
		n := ""
		if int(p.Iface) < len(names) {
			n = names[p.Iface]
		}
		if n == "" {
			continue
		}
		switch p.RequestDir {
		case wire.DirIn:
			in = append(in, n)
		case wire.DirOut:
			out = append(out, n)
		case wire.DirUnknown:
			at = append(at, n)
		}
	}
	s := ""
	if len(in) > 0 {
		s += ", in on " + list2(in)
	}
	if len(at) > 0 {
		s += " on " + list2(at)
	}
	if len(out) > 0 {
		s += ", out on " + list2(out)
	}
	if l.Kind == LegEgress && l.Sent > 0 && r.Egress != nil {
		s += " as " + addrPort(*r.Egress)
		if l.TTL != 0 {
			s += ", ttl " + strconv.Itoa(int(l.TTL))
		}
	}
	return s
}

func list2(s []string) string {
	slices.Sort(s)
	s = slices.Compact(s)
	if len(s) > 4 {
		return strings.Join(s[:4], ", ") + fmt.Sprintf(" and %d more", len(s)-4)
	}
	if len(s) < 2 {
		return strings.Join(s, "")
	}
	return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
}

func framesOf(r *Request, match func(string) bool) string {
	var n []string
	// The egress leg is what counts; the Pod's side where there is no other.
	want := LegPod
	for _, f := range r.Frames {
		if f.Leg == LegEgress && match(f.What) {
			want = LegEgress
		}
	}
	for _, f := range r.Frames {
		if match(f.What) && (f.Leg == want || f.Leg == LegUnknown || f.Leg == LegFar) && len(n) < 6 {
			n = append(n, strconv.FormatUint(f.Frame, 10))
		}
	}
	switch len(n) {
	case 0:
		return ""
	case 1:
		return "frame " + n[0]
	}
	return "frames " + strings.Join(n, " ")
}

func answerWords(res *Result, r *Request) string {
	switch r.Outcome {
	case RequestOnly:
		if r.answerAtEgress() {
			return "an answer came in at the node's egress, and nothing went out to the Pod"
		}
		s := "no reply of any kind"
		end := res.Captures[r.capture()].Summary.Last
		if r.First != wire.NoTime && end != wire.NoTime && end > r.First {
			s += " in the " + seconds(end-r.First) + " until the capture ends"
		}
		return s
	case HandshakeCompleted:
		s := "handshake completed"
		if r.Handshake >= 0 {
			s += " in " + seconds(r.Handshake)
		}
		if r.Completed {
			return s + ", data or close both ways"
		}
		return s + ", no data answered"
	case Rejected:
		if r.ICMP != nil {
			s := fmt.Sprintf("ICMP %s from %s", ErrorText(!r.ICMP.V6, r.ICMP.Type, r.ICMP.Code), r.ICMP.From)
			if f := framesOf(r, func(w string) bool { return strings.HasPrefix(w, "ICMP ") }); f != "" {
				s += ", " + f
			}
			return s
		}
	case Refused:
		if f := framesOf(r, func(w string) bool { return w == "RST" }); f != "" {
			return "a reset answers, " + f
		}
		return "a reset answers"
	case HalfOpen:
		return fmt.Sprintf("SYN-ACK seen, never acknowledged (%s)", plural(r.RepliesSeen, "reply packet"))
	case Answered:
		return plural(r.RepliesSeen, "reply packet")
	case Midstream:
		return fmt.Sprintf("%s back; the opening is not in the capture", plural(r.RepliesSeen, "packet"))
	case OneDirection:
		return "the other direction is not in the capture"
	case ReplyOnly:
		return plural(r.RepliesSeen, "reply packet") + ", no request packet in the capture"
	case OutcomeUnknown:
	}
	return "outcome not known"
}

// seconds prints a duration in nanoseconds with two significant digits or more.
func seconds(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.0f us", float64(d)/float64(time.Microsecond))
}

func addrPort(e Endpoint) string {
	if !e.HasPort {
		return e.Addr.String()
	}
	if e.Addr.Is4() {
		return e.Addr.String() + ":" + strconv.Itoa(int(e.Port))
	}
	return "[" + e.Addr.String() + "]:" + strconv.Itoa(int(e.Port))
}

func sourceShown(r *Request) string {
	if r.Egress != nil {
		return r.Egress.Addr.String()
	}
	return r.Client.Addr.String()
}

func mtuWords(r *Request) string {
	if r.mtu == 0 {
		return ""
	}
	return fmt.Sprintf(" (next hop MTU %d)", r.mtu)
}

// farSteps is the capture that shows where packets stop.
func farSteps(res *Result, g *group) []string {
	for _, u := range g.example().Unknown {
		if u.Field == "stopped_at" && strings.HasPrefix(u.Settle, "capture at ") {
			at, cmd, _ := strings.Cut(strings.TrimPrefix(u.Settle, "capture at "), ": ")
			return []string{"where does it stop? Capture at " + at + " at the same time:", "  " + cmd}
		}
	}
	_ = res
	return nil
}

// remedies are the two ways out where the Pod's address is the trouble, with their cost.
func remedies(g *group) []string {
	r := g.example()
	pods := r.Client.Addr.String()
	if r.Client.Role.Kind == cluster.RolePod {
		pods = "the Pod range (" + strings.TrimPrefix(r.Client.Role.Fact, "--pod-cidr ") + ")"
	}
	if r.Client.Role.Exact {
		pods = "the Pod range"
	}
	return []string{
		"remedy: narrow nonMasqueradeCIDRs so that " + r.Server.Addr.String() + " is masqueraded; the far side then sees node addresses, so lists and logs there that name Pod addresses stop matching",
		"or: give the far side a route back for " + pods + "; every device on the way must accept that range",
	}
}

// limits are sentences on what the result cannot carry.
func limits(res *Result) []string {
	var out []string
	for i := range res.Captures {
		c := &res.Captures[i]
		s := &c.Summary
		if c.DamageText != "" || !s.Complete {
			out = append(out, c.File+" is cut or damaged: what was read before that counts, and nothing is concluded from what is missing")
		}
		if s.HasDropped && s.Dropped > 0 {
			out = append(out, fmt.Sprintf("%s: %s dropped while capturing: nothing is concluded from what is missing", c.File, plural(s.Dropped, "packet")))
		}
		if c.LetGo > 0 {
			out = append(out, fmt.Sprintf("%s: %s let go for want of room, those of one or two unanswered packets first: nothing is concluded from what is missing", c.File, plural(c.LetGo, "flow")))
		}
		if s.CutFrames > 0 {
			out = append(out, fmt.Sprintf("%s: %s cut inside the headers: capture with tcpdump -s 0, or at least -s 128", c.File, plural(s.CutFrames, "frame")))
		}
	}
	return out
}

// notes are what the analysis noticed about one capture.
func notes(t *table, info *CaptureInfo) []string {
	var out []string
	out = append(out, info.Summary.Notes...)
	if t.copied > 0 {
		out = append(out, fmt.Sprintf("%s seen again at another interface or from a mirror port: counted once", plural(t.copied, "packet")))
	}
	if t.frags > 0 {
		out = append(out, fmt.Sprintf("%s behind the first of their datagram: they carry no ports and are not matched", plural(t.frags, "fragment")))
	}
	if t.orphans > 0 {
		out = append(out, fmt.Sprintf("%s whose quoted packet could not be read", plural(t.orphans, "ICMP error")))
	}
	protos := make([]wire.Proto, 0, len(t.other))
	for p := range t.other {
		protos = append(protos, p)
	}
	slices.Sort(protos)
	for _, p := range protos {
		out = append(out, fmt.Sprintf("%s of protocol %s: not judged", plural(t.other[p], "packet"), p))
	}
	return out
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
