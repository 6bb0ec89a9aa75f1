package analyze

import (
	"cmp"
	"fmt"
	"maps"
	bits64 "math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/analyze/cluster/netfilter"
	"github.com/srcproof/srcproof/capture/wire"
)

// A rule turns requests of one kind into findings: one per capture and title. Observed is what the packets show; reading is
// kept apart from it, and next is what to do.
type rule struct {
	code     string
	severity int
	match    func(r *Request) bool
	title    func(r *Request) string
	reading  func(res *Result, r *Request) []string
	next     func(res *Result, r *Request) []string
}

// group is the requests of one finding, by destination in order of appearance.
type group struct {
	title string
	dests []destination
	index []int // all requests
}

// destination is the requests of a group to one server, port and protocol, the example first.
type destination struct {
	example int // number of a request
	count   uint64
}

// maxDescribed is how many destinations of a finding are described.
const maxDescribed = 3

func say(s string) func(*Request) string { return func(*Request) string { return s } }

func reads(s ...string) func(*Result, *Request) []string {
	return func(*Result, *Request) []string { return s }
}

func rules() []rule {
	left := func(r *Request, s ...Source) bool {
		return slices.Contains(s, r.Source) && r.Way != Inbound && r.Way != WayLocal
	}
	return []rule{
		{
			code: codeNoReturnRoute, severity: severityTheTrouble,
			match: func(r *Request) bool {
				return r.StoppedAt == StopReturn && r.signs&signOtherNode == 0 && r.rejectedBy.IsValid()
			},
			title: func(r *Request) string {
				return fmt.Sprintf("The far host answers, and the router %s rejects the answer: it has no way back.", r.rejectedBy)
			},
			reading: reads("the far side has no return route for this source. Not a tunnel fault, and not this node's masquerading as such."),
			next:    func(res *Result, r *Request) []string { return remedies(res, r) },
		},
		{
			code: codeOtherNode, severity: severityTheTrouble,
			match:   func(r *Request) bool { return r.signs&signOtherNode != 0 },
			title:   say("The answer arrives at another node than the one the request left from."),
			reading: reads("the way back leads to the wrong node: a route or a load balancer sends answers to an address by another node, which knows nothing of the connection"),
			next: func(_ *Result, r *Request) []string {
				return []string{"look at what routes " + sourceShown(r) + " back: alias ranges, static routes, the next hop of the VPN or the load balancer"}
			},
		},
		{
			code: codeReturnLost, severity: severityTheTrouble,
			match: func(r *Request) bool {
				return r.StoppedAt == StopReturn && r.signs&signOtherNode == 0 && !r.rejectedBy.IsValid()
			},
			title:   say("The far host answers, and the answer never reaches the node."),
			reading: reads("the way back is broken: the far side has no route for this source, or a firewall on the way back drops it (a stateful one that has not seen the request does), or it goes to another node (that node's capture, given with a second --near, would show it). All look the same from here."),
			next: func(res *Result, r *Request) []string {
				return append([]string{
					"for the far team: where do answers to " + sourceShown(r) + " go? On the far host, then hop by hop:", "  ip route get " + farSource(r),
					"which of the two: let the firewall allow that source for one test, or add the one route; what changes tells",
				}, remedies(res, r)...)
			},
		},
		{
			code: codeBetween, severity: severityTheTrouble,
			match:   func(r *Request) bool { return r.StoppedAt == StopBetween && r.Outcome == RequestOnly },
			title:   say("The request leaves the node and never arrives at the far side."),
			reading: reads("something between drops it: a firewall that does not allow this source, or a device without a route (for the destination, or, with reverse path filtering, back to this source). Firewall and missing route look the same from packets."),
			next: func(_ *Result, r *Request) []string {
				return []string{
					"the single change that tells them apart: one firewall rule on the way that allows and logs " + r.Tuple.Proto.String() + " " + sourceShown(r) + " > " + addrPort(r.Server) + "; logged there and still not here, the route behind it is missing",
					"or capture at the next device on the way",
				}
			},
		},
		{
			code: codeMiddlebox, severity: severityWorthALook,
			match: func(r *Request) bool { return r.signs&signMiddlebox != 0 },
			title: func(r *Request) string {
				if r.signs&signProxy != 0 {
					return "The request is answered, and the far side holds another connection in its place."
				}
				if r.Outcome == Refused {
					return "The request is refused on the way: it never arrives at the far side."
				}
				return "The request is answered, and never arrives at the far side."
			},
			reading: reads("a device on the way answers for the server: a proxy, a SYN proxy or a firewall that resets. Its answer says nothing about the server, and what the server sees, if anything, comes from that device."),
			next: func(_ *Result, r *Request) []string {
				return []string{"find what ends connections to " + addrPort(r.Server) + ": a load balancer, an inspecting firewall, a service mesh; what matters there is its source, not the Pod's"}
			},
		},
		{
			code: codeSecond, severity: severityWorthALook,
			match: func(r *Request) bool { return r.signs&signSecond != 0 && r.Far != nil },
			title: func(r *Request) string {
				return fmt.Sprintf("The source is translated a second time past the node: the far side sees %s.", r.Far.Addr)
			},
			reading: reads("a router, firewall or NAT gateway on the way changes the source: lists at the far side have to name that address"),
			next:    reads(),
		},
		{
			code: codeRewritten, severity: severityNote,
			match:   func(r *Request) bool { return r.signs&signRewritten != 0 },
			title:   say("A device on the way rewrites sequence numbers."),
			reading: reads("firewalls do that (Cisco ASA by default). The two sides were joined by the rest, which is probable and not exact."),
			next:    reads(),
		},
		{
			code: codePodUnanswered, severity: severityTheTrouble,
			match: func(r *Request) bool { return left(r, PodSourced) && r.unanswered() },
			title: say("The Pod's packets leave the node with the Pod's own address, and nothing comes back."),
			reading: func(res *Result, r *Request) []string {
				why := "the node does not translate this destination: an exclusion range (nonMasqueradeCIDRs of ip-masq-agent, or its defaults) covers it, or no masquerade rule applies"
				switch is, because := res.configured(r); is {
				case netfilter.Kept:
					why = "the node does as the configuration says, which keeps the Pod's address here: " + because
				case netfilter.Masqueraded:
					why = "the configuration asks for the node's address here, and the node does not put it in place"
				case netfilter.Undetermined:
				}
				out := []string{why}
				if text, same := contrast(res, r); text != "" && same {
					return append(out, "the far side answers the node and not the Pod: it has no return route for the Pod range, or a firewall drops it. Packets here cannot tell which")
				}
				return append(out, "whether the source is what matters does not show here: the far side may lack a return route for the Pod range, a firewall may drop it, or the server may be down")
			},
			next: func(res *Result, r *Request) []string {
				var out []string
				if _, same := contrast(res, r); !same {
					out = append(out, "does the source matter? Make the same request from the node: answered there, it does.")
				}
				out = append(out, "is it the list? On the node, and in the cluster:", natRules(r), commandAgentConfig)
				return slices.Concat(out, farSteps(res, r), remedies(res, r))
			},
		},
		{
			code: codeForwarded, severity: severityTheTrouble,
			match: func(r *Request) bool {
				return r.Source == SourceUnknown && r.unanswered() && r.Egress != nil && r.Egress.Addr == r.Client.Addr && r.passedOn() && r.unknownReason("source", "role-unknown")
			},
			title:   say("Requests are passed on by this host with their source unchanged, and nothing comes back."),
			reading: reads("if the client is a Pod, its own address is what leaves the node, and the far side does not answer it"),
			next: func(_ *Result, r *Request) []string {
				return []string{"say what the addresses are, and the verdict follows: --pod-cidr " + hostRange(r.Client.Addr) + " (or the whole Pod range) and --node-ip IP"}
			},
		},
		{
			code: codePodRejected, severity: severityTheTrouble,
			match: func(r *Request) bool { return left(r, PodSourced) && r.Outcome == Rejected && !r.rejectedByServer() },
			title: func(r *Request) string {
				return fmt.Sprintf("The Pod's packets leave the node with the Pod's own address, and %s rejects them.", r.ICMP.From)
			},
			reading: func(_ *Result, r *Request) []string { return []string{rejectionReads(r)} },
			next: func(res *Result, r *Request) []string {
				return append([]string{askOwner(r)}, remedies(res, r)...)
			},
		},
		{
			code: codeNeverLeft, severity: severityTheTrouble,
			match:   func(r *Request) bool { return r.Source == NotSent },
			title:   say("The Pod's request came to the node and never left it."),
			reading: reads("the node itself drops or rejects it: a FORWARD rule or network policy, no route, reverse path filtering, or no neighbour. The far side has never seen it."),
			next: func(_ *Result, r *Request) []string {
				return []string{
					"on the node:", "  ip route get " + r.Server.Addr.String() + " from " + r.Client.Addr.String() + " iif POD-INTERFACE",
					forwardRules(r), "  nft list ruleset",
				}
			},
		},
		{
			code: codeNotDelivered, severity: severityTheTrouble,
			match:   func(r *Request) bool { return r.StoppedAt == StopNodeIn },
			title:   say("The answer reaches the node, and the node does not deliver it to the Pod."),
			reading: reads("the node drops the answer: a FORWARD rule or network policy, reverse path filtering, or a lost connection entry. The far side has answered."),
			next: func(_ *Result, r *Request) []string {
				out := []string{"on the node:", "  conntrack -L -d " + r.Server.Addr.String(), forwardRules(r)}
				if r.Server.Addr.Is4() {
					out = append(out, "  sysctl net.ipv4.conf.all.rp_filter")
				}
				return out
			},
		},
		{
			code: codeOtherAddress, severity: severityTheTrouble,
			match: func(r *Request) bool { return left(r, OtherSNATed) },
			title: func(r *Request) string {
				return fmt.Sprintf("The source was translated to %s, which is neither the Pod's nor a known node address.", sourceShown(r))
			},
			reading: reads("an egress address or an extra SNAT rule on this node, or an address of the node that was not given"),
			next: func(_ *Result, r *Request) []string {
				return []string{"if it is this node's: --node-ip " + sourceShown(r), "else find the rule:", natRules(r)}
			},
		},
		{
			code: codeNodeUnanswered, severity: severityTheTrouble,
			match: func(r *Request) bool { return left(r, NodeSNATed, NodeOwn, NodeSourced) && r.unanswered() },
			title: say("The request leaves with a node address, and nothing comes back."),
			reading: func(res *Result, r *Request) []string {
				if text, _ := contrast(res, r); text != "" {
					return []string{"masquerading is not the trouble, and the route works for this source: the port is filtered on the way or at the server, or the service does not answer"}
				}
				return []string{"masquerading is not the trouble: the source is the node's. A route is missing or a firewall drops between the node and the destination, or the destination does not answer. Packets here cannot tell which."}
			},
			next: farSteps,
		},
		{
			code: codeNodeRejected, severity: severityTheTrouble,
			match: func(r *Request) bool {
				return left(r, NodeSNATed, NodeOwn, NodeSourced) && r.Outcome == Rejected && !r.rejectedByServer()
			},
			title: func(r *Request) string {
				return fmt.Sprintf("The request leaves with a node address, and %s rejects it.", r.ICMP.From)
			},
			reading: func(_ *Result, r *Request) []string {
				return []string{"masquerading is not the trouble: the source is the node's", rejectionReads(r)}
			},
			next: func(_ *Result, r *Request) []string { return []string{askOwner(r)} },
		},
		{
			code: codeServerRejected, severity: severityWorthALook,
			match: func(r *Request) bool {
				return r.Outcome == Rejected && r.rejectedByServer() && r.StoppedAt == StopNone && r.Way != Inbound && r.Way != WayLocal
			},
			title: func(r *Request) string { return fmt.Sprintf("The server %s itself rejects the request.", r.ICMP.From) },
			reading: func(_ *Result, r *Request) []string {
				return []string{"source and route are fine: the packet got there", rejectionReads(r)}
			},
			next: func(_ *Result, r *Request) []string {
				return []string{fmt.Sprintf("at %s: does the service listen (ss -lntup), does a rule there reject %s", r.ICMP.From, sourceShown(r))}
			},
		},
		{
			code: codeFarUnanswered, severity: severityTheTrouble,
			match: func(r *Request) bool { return r.StoppedAt == StopFar },
			title: say("The request arrives at the far side, and no answer passes back there."),
			reading: func(res *Result, _ *Request) []string {
				switch {
				case res.farIsHost:
					return []string{"the far host itself, or its firewall, does not answer this source (the capture was taken on it, as stated)"}
				case res.farIsPath:
					return []string{"whatever lies behind this capture point does not answer this source, or its answer goes another way (the capture was taken on the way, as stated)"}
				}
				return []string{"the far host, its firewall, or whatever lies behind this capture point does not answer this source"}
			},
			next: func(_ *Result, r *Request) []string {
				return []string{
					"at the far host: does the service listen, does a rule drop by source, is there a route back (without one, reverse path filtering drops):",
					"  ip route get " + farSource(r),
				}
			},
		},
		{
			code: codeStalled, severity: severityTheTrouble,
			match:   func(r *Request) bool { return r.signs&signStalled != 0 },
			title:   say("The handshake completes, and then data is never acknowledged."),
			reading: reads("large packets or content do not get through: an MTU that is too large for the way, or an inspecting firewall"),
			next: func(_ *Result, r *Request) []string {
				return []string{"from the Pod:", "  ping -M do -s 1372 " + r.Server.Addr.String()}
			},
		},
		{
			code: codeReplyOther, severity: severityTheTrouble,
			match: func(r *Request) bool { return r.signs&signReplyOther != 0 },
			title: func(r *Request) string {
				return fmt.Sprintf("The answer comes from %s, and not from the address asked.", r.replyFrom)
			},
			reading: reads("clients and connection tables drop it: the server answers from another of its addresses, or the way back misses a translation"),
			next: func(_ *Result, r *Request) []string {
				return []string{"bind the server to " + r.Server.Addr.String() + ", or mend the translation whose way back is not symmetric"}
			},
		},
		{
			code: codeMTU, severity: severityWorthALook,
			match:   func(r *Request) bool { return r.signs&signMTU != 0 },
			title:   func(r *Request) string { return fmt.Sprintf("A router asks for smaller packets%s.", mtuWords(r)) },
			reading: reads("the way carries less than the sender assumes. If the message does not reach the Pod, large packets vanish while handshakes pass."),
			next:    reads("lower the Pods' MTU, clamp the MSS, or let the ICMP message through to the Pod"),
		},
		{
			code: codeRefused, severity: severityWorthALook,
			match: func(r *Request) bool {
				return r.Outcome == Refused && r.Source != NotSent && r.Way != Inbound && r.signs&signMiddlebox == 0
			},
			title:   say("The request is refused with a reset."),
			reading: reads("whatever sent the reset got the request: nothing listens on that port, or a firewall on the way resets"),
			next: func(_ *Result, r *Request) []string {
				return []string{fmt.Sprintf("at %s: does the service listen on %s port %d (ss -lntup), does a rule reject by source", r.Server.Addr, r.Tuple.Proto, r.Server.Port)}
			},
		},
		{
			code: codeClientReset, severity: severityWorthALook,
			match:   func(r *Request) bool { return r.signs&signClientReset != 0 },
			title:   say("The client answers the SYN-ACK with a reset."),
			reading: reads("the answer does not fit what the client asked, or came after it had given up"),
			next:    reads("in the frames named: does the SYN-ACK acknowledge the SYN's sequence number plus one, and did it come within the client's time-out"),
		},
		{
			code: codePodSideOnly, severity: severityWorthALook,
			match:   func(r *Request) bool { return r.unknownReason("source", codePodSideOnly) },
			title:   say("This capture holds the Pod's side only: it does not show what left the node."),
			reading: reads("inside the Pod, or on its interface, every packet has the Pod's address, whatever the node does with it afterwards"),
			next: func(_ *Result, r *Request) []string {
				return []string{"capture on the node, on all interfaces:", "  tcpdump -ni any -w near.pcap " + hostFilter(r)}
			},
		},
		{
			code: codeOldMapping, severity: severityWorthALook,
			match:   func(r *Request) bool { return left(r, PodSourced, NodeSNATed, OtherSNATed) && r.Outcome == Midstream },
			title:   say("Connections older than the capture: their source may be older than the rules."),
			reading: reads("the kernel decides a translation with a connection's first packet and keeps it. These prove nothing about the rules in force now."),
			next:    reads("test with a new connection"),
		},
		{
			code: codeOneDirection, severity: severityWorthALook,
			match: func(r *Request) bool {
				return (r.Outcome == OneDirection || r.Outcome == ReplyOnly) && r.signs&signOtherReply == 0
			},
			title:   say("Only one direction of these is in the capture."),
			reading: reads("a filter with src or dst, an interface that carries one direction, or another way back. Whether they were answered is not in it."),
			next: func(_ *Result, r *Request) []string {
				return []string{"capture both directions:", "  tcpdump -ni any -w near.pcap " + hostFilter(r)}
			},
		},
		{
			code: codePodAnswered, severity: severityNote,
			match: func(r *Request) bool {
				return left(r, PodSourced) && !r.farOnly() && (r.Outcome == HandshakeCompleted || r.Outcome == Answered) && r.StoppedAt == StopNone
			},
			title:   say("The Pod's packets leave with the Pod's own address, and are answered."),
			reading: reads("the far side reaches the Pod range: no translation is needed for this destination"),
			next:    reads(),
		},
	}
}

// unanswered tells whether nothing came back to a request, as seen near, in a capture that ran on long enough to say so.
func (r *Request) unanswered() bool {
	return r.Outcome == RequestOnly && r.StoppedAt == StopUnknown && !r.farOnly() && !r.answerAtEgress() && !r.hasUnknown("outcome") && r.signs&(signReplyOther|signMTU) == 0
}

// farOnly tells whether the request is known from a far capture alone.
func (r *Request) farOnly() bool {
	return r.Far != nil && !slices.ContainsFunc(r.Legs, func(l Leg) bool { return l.Kind != LegFar })
}

// farSource is the source that the far side answers to.
func farSource(r *Request) string {
	if r.Far != nil {
		return r.Far.Addr.String()
	}
	return sourceShown(r)
}

// passedOn tells whether the capture shows the request coming in and going out.
func (r *Request) passedOn() bool {
	kinds := map[LegKind]bool{}
	for i := range r.Legs {
		kinds[r.Legs[i].Kind] = true
	}
	return kinds[LegPod] && kinds[LegEgress]
}

func (r *Request) rejectedByServer() bool {
	return r.ICMP != nil && (r.ICMP.From == r.Server.Addr || r.Backend != nil && r.ICMP.From == r.Backend.Addr)
}

func (r *Request) hasUnknown(field string) bool {
	return slices.ContainsFunc(r.Unknown, func(u Unknown) bool { return u.Field == field })
}

func (r *Request) unknownReason(field, reason string) bool {
	return slices.ContainsFunc(r.Unknown, func(u Unknown) bool { return u.Field == field && u.Reason == reason })
}

// rejectionReads is what an ICMP error's type and code say (RFC 792, RFC 1812 section 5.2.7.1, RFC 4443 section 3).
func rejectionReads(r *Request) string {
	e := r.ICMP
	switch {
	case !e.V6 && e.Type == 11, e.V6 && e.Type == 3:
		return "the hop limit ran out: a routing loop, or a way longer than the sender allows"
	case !e.V6 && (e.Code == 9 || e.Code == 10 || e.Code == 13), e.V6 && (e.Code == 1 || e.Code == 5 || e.Code == 6):
		return "a rule there forbids it, and says so"
	case (!e.V6 && e.Code == 3 || e.V6 && e.Code == 4) && !r.Server.HasPort:
		return "nothing there takes it, or its firewall answers so"
	case !e.V6 && e.Code == 3, e.V6 && e.Code == 4:
		return fmt.Sprintf("nothing listens on %s port %d there, or its firewall answers so", r.Tuple.Proto, r.Server.Port)
	case !e.V6 && e.Code == 2:
		return "the host does not speak this protocol, or its firewall answers so"
	}
	return "it has no route to the destination, or the next device does not answer there; some firewalls answer so too"
}

func askOwner(r *Request) string {
	to := r.Server
	if r.Backend != nil {
		to = *r.Backend
	}
	return fmt.Sprintf("ask the owner of %s about %s %s > %s: %s", r.ICMP.From, r.Tuple.Proto, sourceShown(r), addrPort(to), ErrorText(!r.ICMP.V6, r.ICMP.Type, r.ICMP.Code))
}

// natRules and forwardRules are the commands that list the rules of the request's address family.
func natRules(r *Request) string { return ofFamily(r, commandNatRules) }

func forwardRules(r *Request) string {
	return ofFamily(r, "  iptables-save -c | grep -nE 'FORWARD|DROP|REJECT'")
}

func ofFamily(r *Request, command string) string {
	if r.Server.Addr.Is4() {
		return command
	}
	return strings.Replace(command, "iptables-save", "ip6tables-save", 1)
}

func hostRange(a wire.Addr) string {
	if a.Is4() {
		return a.String() + "/32"
	}
	return a.String() + "/128"
}

// sign is a mark on a request that only the packets tell.
type sign uint16

const (
	signClientReset sign = 1 << iota
	signMTU
	signStalled
	signReplyOther // the answer came from another address
	signOtherReply // it is that answer
	signOtherNode  // its answer arrived at another node
	signRewritten  // joined although the sequence numbers differ
	signMiddlebox  // answered near, and the far side that would show it holds nothing, or another connection
	signProxy      // the far side holds another connection with its payload
	signTaken      // listed as part of another request
	signSecond     // arrived with another source than it left the node with
)

// findings applies the rules, most severe first.
func findings(res *Result) []Finding {
	type dest struct {
		group int
		proto wire.Proto
		addr  wire.Addr
		port  uint16
	}
	type title struct {
		capture int
		text    string
	}
	type found struct {
		groups  []group
		byTitle map[title]int
		byDest  map[dest]int
	}
	all := rules()
	by := make([]found, len(all)) // per rule
	var which []int32
	for i, n := range res.survey.class {
		if res.survey.alike[n].matches != 0 {
			which = append(which, int32(i))
		}
	}
	for i, r := range res.some(which) {
		for bits := res.survey.alike[res.survey.class[i]].matches; bits != 0; bits &= bits - 1 {
			n := bits64.TrailingZeros64(bits)
			f := &by[n]
			if f.byTitle == nil {
				f.byTitle, f.byDest = make(map[title]int), make(map[dest]int)
			}
			k := title{r.capture(), all[n].title(r)}
			at, ok := f.byTitle[k]
			if !ok {
				at = len(f.groups)
				f.byTitle[k] = at
				f.groups = append(f.groups, group{title: k.text})
			}
			g := &f.groups[at]
			g.index = append(g.index, i)
			d := dest{group: at, proto: r.Tuple.Proto, addr: r.Server.Addr}
			if r.Server.HasPort {
				d.port = r.Server.Port
			}
			m, ok := f.byDest[d]
			if !ok {
				m = len(g.dests)
				f.byDest[d] = m
				g.dests = append(g.dests, destination{example: i})
			}
			g.dests[m].count++
		}
	}
	var out []Finding
	for n := range all {
		ru := &all[n]
		for i := range by[n].groups {
			g := &by[n].groups[i]
			r := res.At(g.dests[0].example, nil)
			out = append(out, Finding{
				Code: ru.code, Title: g.title, Severity: ru.severity, Observed: observe(res, g), Reading: ru.reading(res, r),
				Next: ru.next(res, r), Requests: g.index,
			})
		}
	}
	if res.Rules != nil {
		out = append(out, ruleFindings(res, res.Rules)...)
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return out
}

// mayBeOthers tells whether a request that holds answers alone may be the answer to another one.
func mayBeOthers(r *Request) bool {
	return r.Tuple.Proto == wire.ProtoUDP || r.Tuple.Proto == wire.ProtoTCP
}

// markOtherReplies finds answers that came back to a client's port, or to the port that the node put in its place, from an
// address that was not asked: datagrams to that port, and SYN-ACKs that acknowledge the SYN.
func (res *Result) markOtherReplies() {
	if len(res.survey.replyOnly) == 0 {
		return
	}
	type socket struct {
		capture int
		proto   wire.Proto
		addr    wire.Addr
		port    uint16
		sport   uint16
		opening uint64
	}
	key := func(r *Request, e *Endpoint) socket {
		k := socket{capture: r.capture(), proto: r.Tuple.Proto, addr: e.Addr, port: e.Port, sport: r.Server.Port}
		if k.proto == wire.ProtoTCP {
			k.opening = r.Opening
		}
		return k
	}
	from := make(map[socket]int)
	var room Room
	for _, i := range res.survey.replyOnly {
		r := res.At(int(i), &room)
		from[key(r, &r.Client)] = int(i)
	}
	var unanswered []int32
	for i, n := range res.survey.class {
		if res.survey.alike[n].outcome == RequestOnly {
			unanswered = append(unanswered, int32(i))
		}
	}
	type pair struct{ asked, answer int }
	var pairs []pair
	for i, r := range res.some(unanswered) {
		if !mayBeOthers(r) {
			continue
		}
		o, ok := from[key(r, &r.Client)]
		if !ok && r.Egress != nil {
			o, ok = from[key(r, r.Egress)]
		}
		if ok && res.At(o, &room).Server.Addr != r.Server.Addr {
			pairs = append(pairs, pair{i, o})
		}
	}
	all := rules()
	for _, p := range pairs {
		r, o := res.mark(p.asked), res.mark(p.answer)
		r.signs |= signReplyOther
		r.replyFrom = o.Server.Addr
		o.signs |= signOtherReply
		if r.StoppedAt == StopFar {
			r.StoppedAt, r.Reasons = StopUnknown, slices.DeleteFunc(r.Reasons, func(s Reason) bool { return strings.Contains(string(s), "nothing came back") })
			r.unknown("stopped_at", "answered-from-other-address", "an answer passed here from "+r.replyFrom.String()+", which was not asked", "")
		}
		if r.Source == NotSent {
			// Something answered it, so something of it did leave, or was served here.
			r.Source, r.Basis, r.StoppedAt, r.Reasons = SourceUnknown, BasisNone, StopUnknown, nil
			const text = "an answer came from another address, so it left or was served here; no packet leaving this host could be matched to it"
			r.unknown("source", "egress-not-joined", text, "")
			r.unknown("stopped_at", "egress-not-joined", text, "")
		}
		res.survey.again(all, p.asked, r)
		res.survey.again(all, p.answer, o)
	}
}

// observe describes a group: a few destinations by example, then how many more there are, then what contrasts with it.
func observe(res *Result, g *group) []string {
	var out []string
	for i := range g.dests[:min(len(g.dests), maxDescribed)] {
		s := describe(res, res.At(g.dests[i].example, nil))
		if n := g.dests[i].count - 1; n > 0 {
			s += fmt.Sprintf("; %s like it", plural(n, "more request"))
		}
		out = append(out, s)
	}
	if rest := g.dests[min(len(g.dests), maxDescribed):]; len(rest) > 0 {
		n := uint64(0)
		for i := range rest {
			n += rest[i].count
		}
		out = append(out, fmt.Sprintf("and %s to %s", plural(n, "more request"), plural(uint64(len(rest)), "more destination")))
	}
	var room Room
	for i := range g.dests {
		if s, _ := contrast(res, res.At(g.dests[i].example, &room)); s != "" {
			return append(out, s)
		}
	}
	return out
}

// contrast finds a request to the same server that fared better: from another source for a Pod's address, from the same
// source to another port for a node's. It is the comparison that an engineer makes first. same tells whether it differs in
// the source alone.
func contrast(res *Result, r *Request) (text string, same bool) {
	if r.Outcome != RequestOnly && r.Outcome != Rejected {
		return "", false
	}
	if res.answered == nil {
		res.answered = make(map[answeredKey][]answered)
		var room Room
		for i := range res.survey.alike {
			if c := &res.survey.alike[i]; (c.outcome == HandshakeCompleted || c.outcome == Answered) && (c.source == NodeOwn || c.source == NodeSNATed) {
				o := res.At(c.First, &room)
				k := answeredKey{o.capture(), o.Server.Addr}
				if len(res.answered[k]) < 32 {
					res.answered[k] = append(res.answered[k], answered{c.source, o.Tuple.Proto, o.Server, sourceShown(o)})
				}
			}
		}
	}
	for _, o := range res.answered[answeredKey{r.capture(), r.Server.Addr}] {
		what := o.proto.String()
		if o.server.HasPort {
			what += " port " + itoa(uint64(o.server.Port))
		}
		alike := o.proto == r.Tuple.Proto && o.server.Port == r.Server.Port
		s := ""
		switch {
		case r.Source == PodSourced && o.source == NodeOwn:
			s = fmt.Sprintf("the node's own request to the same server (%s) was answered", what)
		case r.Source == PodSourced:
			s = fmt.Sprintf("a request to the same server that left as %s (%s) was answered", o.left, what)
		case o.left == sourceShown(r) && (r.Source == NodeSNATed || r.Source == NodeOwn || r.Source == NodeSourced):
			s = fmt.Sprintf("another request from %s to the same server (%s) was answered", o.left, what)
		}
		if s != "" && (text == "" || alike && !same) {
			text, same = s, alike
		}
	}
	return text, same
}

// describe says what was seen of one request, with its frames.
func describe(res *Result, r *Request) string {
	var b strings.Builder
	b.WriteString(addrPort(r.Client))
	if r.Client.Role.Name() != "" {
		fmt.Fprintf(&b, " (%s)", r.Client.Role.Name())
	}
	fmt.Fprintf(&b, " > %s: ", addrPort(r.Server))
	b.WriteString(sentWords(r))
	names := res.Captures[r.capture()].InterfaceNames
	for i := range r.Legs {
		if r.Legs[i].Kind != LegFar || r.farOnly() {
			b.WriteString(legWordsOf(r, &r.Legs[i], names))
		}
	}
	if frames := framesOf(r, r.farOnly(), isRequest); frames != "" {
		b.WriteString(", " + frames)
	}
	b.WriteString("; " + answerWords(res, r))
	if s := farWords(res, r); s != "" {
		b.WriteString("; " + s)
	}
	return b.String()
}

// farWords says what the far side saw of a request that was joined with it.
func farWords(res *Result, r *Request) string {
	if r.Far == nil || r.farOnly() {
		return ""
	}
	var sent, replies uint64
	capture := 0
	for i := range r.Legs {
		if l := &r.Legs[i]; l.Kind == LegFar && l.Sent+l.Replies > 0 {
			sent, replies, capture = max(sent, l.Sent), max(replies, l.Replies), l.Capture
		}
	}
	s := fmt.Sprintf("at the far side (%s) %s arrived", cmp.Or(res.Captures[capture].Label, res.Captures[capture].File), plural(sent, "packet"))
	if f := framesOf(r, true, isRequest); f != "" {
		s += ", " + f
	}
	if replies == 0 {
		return s + " and none went back"
	}
	s += fmt.Sprintf(" and %s went back", plural(replies, "packet"))
	for _, f := range r.Cited() {
		if f.Leg == LegFar && strings.HasPrefix(f.What, "ICMP ") {
			return s + fmt.Sprintf("; %s about an answer, frame %d", f.What, f.Frame)
		}
	}
	return s
}

// counted tells whether packets of it were counted: a connection table lists connections without, unless the kernel counts
// (net.netfilter.nf_conntrack_acct).
func (r *Request) counted() bool { return r.RequestsSent+r.RepliesSeen > 0 }

// isRequest tells whether a cited frame is one that opens or asks.
func isRequest(what string) bool {
	return strings.HasPrefix(what, "SYN") && !strings.HasPrefix(what, "SYN-ACK") || what == "request" || strings.HasPrefix(what, "INIT") && what != "INIT ACK"
}

// answerAtEgress tells whether an answer to a request that its client saw unanswered reached the node.
func (r *Request) answerAtEgress() bool {
	return r.Outcome == RequestOnly && slices.ContainsFunc(r.Legs, func(l Leg) bool { return l.Kind == LegEgress && l.Replies > 0 })
}

func sentWords(r *Request) string {
	if !r.counted() {
		return "listed by conntrack"
	}
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

func framesOf(r *Request, far bool, match func(string) bool) string {
	var n []string
	// The egress leg is what counts; the Pod's side where there is no other.
	want := LegPod
	for _, f := range r.Cited() {
		if f.Leg == LegEgress && match(f.What) {
			want = LegEgress
		}
	}
	for _, f := range r.Cited() {
		here := f.Leg == want || f.Leg == LegUnknown
		if far {
			here = f.Leg == LegFar
		}
		if match(f.What) && here && len(n) < 6 {
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
		if r.signs&signReplyOther != 0 {
			return "the only answer came from " + r.replyFrom.String()
		}
		if r.answerAtEgress() {
			return "an answer came in at the node's egress, and nothing went out to the Pod"
		}
		if r.signs&signMTU != 0 {
			return "no reply, but a router asked for smaller packets"
		}
		s := "no reply of any kind"
		_, end, _ := res.Captures[r.capture()].Summary.Window()
		if r.First != wire.NoTime && end != wire.NoTime && end > r.First {
			s += " in the " + seconds(end-r.First) + " until the capture ends"
			if c := &res.Captures[r.capture()]; r.Tuple.Proto == wire.ProtoTCP && c.OnlySYN {
				s += " (every TCP packet in it is a SYN: a filter on flags would hide an answer; --near-filter tells)"
			} else if c.OneWay {
				s += " (every packet in it travels from one address: a filter with src would hide an answer; --near-filter tells)"
			}
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
		if len(r.Legs) == 0 {
			return s + " by the kernel's state of it"
		}
		return s + ", no data answered"
	case Rejected:
		if r.ICMP != nil {
			s := fmt.Sprintf("ICMP %s from %s", ErrorText(!r.ICMP.V6, r.ICMP.Type, r.ICMP.Code), r.ICMP.From)
			if f := framesOf(r, r.farOnly(), func(w string) bool { return strings.HasPrefix(w, "ICMP ") }); f != "" {
				s += ", " + f
			}
			return s
		}
	case Refused:
		if f := framesOf(r, r.farOnly(), func(w string) bool { return w == "RST" }); f != "" {
			return "a reset answers, " + f
		}
		return "a reset answers"
	case HalfOpen:
		return fmt.Sprintf("SYN-ACK seen, never acknowledged (%s)", plural(r.RepliesSeen, "reply packet"))
	case Answered:
		if !r.counted() {
			return "an answer came"
		}
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

// farSteps is the capture that shows where packets stop, and what to do with it.
func farSteps(_ *Result, r *Request) []string {
	for _, u := range r.Unknown {
		if u.Field == "stopped_at" && strings.HasPrefix(u.Settle, "capture at ") {
			at, cmd, _ := strings.Cut(strings.TrimPrefix(u.Settle, "capture at "), ": ")
			return []string{
				"where does it stop? Capture at " + at + " at the same time:", "  " + cmd, "then, with the same facts:", "  srcproof compare --near near.pcap --far far.pcap",
			}
		}
	}
	for _, u := range r.Unknown {
		if u.Field == "stopped_at" && u.Settle != "" {
			return []string{"where it stops shows with: " + u.Settle}
		}
	}
	return nil
}

// remedies are the two ways out where the Pod's address is the trouble, with their cost.
func remedies(res *Result, r *Request) []string {
	pods := r.Client.Addr.String()
	if r.Client.Role.Kind == cluster.RolePod {
		pods = "the Pod range (" + strings.TrimPrefix(r.Client.Role.Fact(), "--pod-cidr ") + ")"
	}
	if r.Client.Role.Exact {
		pods = "the Pod range"
	}
	remedy := "remedy: narrow nonMasqueradeCIDRs so that " + r.Server.Addr.String() + " is masqueraded"
	if is, _ := res.configured(r); is == netfilter.Masqueraded {
		remedy = "remedy: get the configuration applied on this node, which asks for the node's address already"
	}
	return []string{
		remedy + "; the far side then sees node addresses, so lists and logs there that name Pod addresses stop matching",
		"or: give the far side a route back for " + pods + "; every device on the way must accept that range",
	}
}

// configured is what the masquerade configuration asks for a request, if one is known.
func (res *Result) configured(r *Request) (is netfilter.Answer, because string) {
	in := res.Facts.Intent()
	if in == nil || res.otherRules {
		return netfilter.Undetermined, ""
	}
	a := leftFor(r).Addr.Netip()
	return in.Ask(netip.PrefixFrom(a, a.BitLen()), nil, res.Facts.LocalAddrs())
}

// limits are sentences on what the result cannot carry.
func limits(res *Result) []string {
	out := slices.Clone(res.stated)
	if res.Facts.HasPodFacts() && res.Len() > 0 && !res.survey.pods {
		out = append(out, "no request has an address in the given Pod ranges: are they this cluster's, and is this the Pod's node?")
	}
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
func notes(t *table) []string {
	var out []string
	if t.frags > 0 {
		out = append(out, fmt.Sprintf("%s behind the first of their datagram: they carry no ports and are not matched", plural(t.frags, "fragment")))
	}
	if t.orphans > 0 {
		out = append(out, fmt.Sprintf("%s whose quoted packet could not be read", plural(t.orphans, "ICMP error")))
	}
	return append(out, notJudged("packet", t.other)...)
}

// notJudged notes how many packets or connections are of protocols that are not judged.
func notJudged(noun string, of map[wire.Proto]uint64) (out []string) {
	for _, p := range slices.Sorted(maps.Keys(of)) {
		out = append(out, fmt.Sprintf("%s of protocol %s: not judged", plural(of[p], noun), p))
	}
	return out
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
