package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// Why a change is inconclusive, where that is not a reason of the source or the outcome (Unknown.Reason).
const (
	doubtNoRequest = "no-such-request"
	doubtDelivered = "delivered-here"
	doubtSource    = "source-not-known"
	doubtOlder     = "opening-not-in-capture"
	doubtUnsure    = "opening-not-shown"
	doubtMixed     = "mixed-sources"
	doubtNotSent   = "not-sent-before"
	doubtOtherPod  = "other-pod"
	doubtOtherNode = "other-node"
	doubtFacts     = "facts-differ"
	doubtBackend   = "other-backend"
	doubtAnswerer  = "answered-in-between"
	doubtDelivery  = "answer-not-at-pod"
)

// judgement reaches the verdict of one node.
type judgement struct {
	m *matcher
	n *NodeEvidence
}

func (j *judgement) request(at Moment, i int) *Observation { return &j.m.in[at].Requests[i] }

// judge fills in the verdict, what was observed, and how it reads.
func (j *judgement) judge() {
	n := j.n
	before := j.settle(Before)
	if before && j.settle(After) {
		j.compare()
	}
	if len(j.m.in) > int(Rollback) {
		j.rollback(before)
	}
	j.damaged()
	for at := range j.m.in {
		if s := n.At[at]; s != nil && s.Main >= 0 {
			n.Observed = append(n.Observed, Moment(at).String()+": "+j.observed(Moment(at)))
		}
	}
}

// damaged takes the verdict back where a capture is damaged. What was read of it stays said, and is no proof.
func (j *judgement) damaged() {
	var names []string
	for at := range j.m.in {
		for _, c := range j.m.in[at].Captures {
			if c.Damaged {
				names = append(names, c.File)
			}
		}
	}
	if len(names) > 0 {
		j.n.Reading, j.n.Next, j.n.RolledBack = nil, nil, Inconclusive
		j.inconclusive(string(gapWhole), "not judged, as a change record rests on whole captures; damaged: "+firstFew(names, 3),
			"copy the file again from where it was captured, or capture again")
	}
}

// inconclusive says why there is no verdict, and what would settle it.
func (j *judgement) inconclusive(code, text string, next ...string) bool {
	j.n.Change, j.n.Code = ChangeInconclusive, code
	j.n.Reading = append(j.n.Reading, text)
	j.n.Next = append(j.n.Next, next...)
	return false
}

// settle decides which of a moment's requests carry its source, and tells whether they agree on one. What may have been open
// before, and has the source of then, counts only where it agrees with the others.
func (j *judgement) settle(at Moment) bool {
	s := j.n.At[at]
	server := j.m.goal.addr.String()
	again := "  tcpdump -ni any -w " + at.String() + ".pcap 'host " + server + " or icmp'"
	switch {
	case s == nil:
		return j.inconclusive(doubtNoRequest, fmt.Sprintf("%s: no such request is in this node's capture", at),
			"is a label misspelt? else capture on this node while one of its Pods makes the request:", again)
	case len(s.Used) == 0 && len(s.Doubt) > 0:
		s.Main = s.Doubt[0]
		o := j.request(at, s.Main)
		if o.Source == SourceLocal {
			return j.inconclusive(doubtDelivered, fmt.Sprintf("%s: the request was delivered on this node and never meant to leave it", at))
		}
		for _, u := range o.Unknown {
			if u.Field == "source" {
				var next []string
				if u.Settle != "" { // evidence has a flag for each side
					next = []string{strings.ReplaceAll(u.Settle, "--side far", "--"+at.String()+"-far FILE")}
				}
				return j.inconclusive(u.Reason, fmt.Sprintf("%s: which source left is not known: %s", at, u.Text), next...)
			}
		}
		return j.inconclusive(doubtSource, fmt.Sprintf("%s: which source left is not known", at))
	case len(s.Used) == 0:
		s.Main = s.Open[0]
		text := "the opening of its connection is not in the capture"
		if o := j.request(at, s.Main); at != Before && j.m.ids[Before][o.ID] {
			text = "it is the connection of before"
			if o.Tuple.Proto == wire.ProtoUDP || o.Tuple.Proto.IsICMP() {
				text = "it has the ports or the identifier of the exchange of before"
			}
		}
		return j.inconclusive(doubtOlder,
			fmt.Sprintf("%s: %s, and what is open keeps the translation that it began with: %s", at, text, j.m.tuples(at, s.Open)),
			"start the capture first, then make a new request:", again)
	}
	if len(j.classes(at, s.Used)) > 1 {
		fresh := j.fresh(at)
		if len(j.classes(at, fresh)) != 1 {
			s.Main = s.Used[0]
			return j.mixed(at)
		}
		s.Used = fresh
	}
	s.Main = s.Used[0]
	return true
}

// fresh are those of Used that no translation of the moment before explains.
func (j *judgement) fresh(at Moment) []int {
	s := j.n.At[at]
	if at == Before || j.n.At[at-1] == nil || j.n.At[at-1].Main < 0 {
		return s.sure()
	}
	was := wireSourceOf(j.request(at-1, j.n.At[at-1].Main))
	return slices.DeleteFunc(slices.Clone(s.Used), func(i int) bool { return s.unsure[i] && wireSourceOf(j.request(at, i)) == was })
}

// older are those that may have begun before and were not counted.
func (s *Seen) older() []int {
	used := make(map[int]bool, len(s.Used))
	for _, i := range s.Used {
		used[i] = true
	}
	return slices.DeleteFunc(slices.Clone(s.Unsure), func(i int) bool { return used[i] })
}

// sure are those of Used that began while their capture ran.
func (s *Seen) sure() []int {
	return slices.DeleteFunc(slices.Clone(s.Used), func(i int) bool { return s.unsure[i] })
}

// wireSource is what is compared of a request's source: its class, and the address where it is a stranger's.
type wireSource struct {
	source Source
	addr   wire.Addr
}

func wireSourceOf(o *Observation) wireSource {
	l := wireSource{source: o.Source}
	if o.Source == OtherSNATed && o.Egress != nil {
		l.addr = o.Egress.Addr
	}
	return l
}

// classes returns the different sources of some requests, in the order in which they occur.
func (j *judgement) classes(at Moment, list []int) []wireSource {
	var out []wireSource
	for _, i := range list {
		if l := wireSourceOf(j.request(at, i)); !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// mixed says that one moment shows several sources. A time that is read off the result must not part it: that would prove
// itself.
func (j *judgement) mixed(at Moment) bool {
	used := j.n.At[at].Used
	var words []string
	for _, c := range j.classes(at, used) {
		n := 0
		for _, i := range used {
			if wireSourceOf(j.request(at, i)) == c {
				n++
			}
		}
		words = append(words, fmt.Sprintf("%d %s", n, c.source))
	}
	return j.inconclusive(doubtMixed, fmt.Sprintf("%s: its requests left with different sources (%s): the rules may have changed while it ran", at, strings.Join(words, ", ")),
		"say when the change was made, by the record of who made it: --changed-at TIME; or capture again")
}

// compare holds before against after. Both agree on one source each.
func (j *judgement) compare() {
	n := j.n
	b, a := j.request(Before, n.At[Before].Main), j.request(After, n.At[After].Main)
	from, to := wireSourceOf(b), wireSourceOf(a)
	if code, text, next := j.incomparable(b, a, After); code != "" {
		j.inconclusive(code, text, next)
		return
	}
	switch {
	case from == to:
		j.unchanged(b, a)
	case to.source == NotSent:
		n.Change = ChangedUnexpectedly
		n.Reading = append(n.Reading, "after the change the request does not leave the node at all")
		n.Next = append(n.Next, "on the node, look at what drops it: FORWARD rules, network policies, routes, reverse path filtering")
	case from.source == NotSent:
		j.inconclusive(doubtNotSent, "before the change the request never left the node: there is no source to compare with")
	case to.source == OtherSNATed && a.Egress.Role.Kind == cluster.RoleUnknown:
		j.inconclusive("role-unknown", fmt.Sprintf("the source changed to %s, and nothing given says whether that is an address of the node", a.Egress.Addr),
			fmt.Sprintf("if it is: --node-ip %s; else give the node's addresses, or --cluster", a.Egress.Addr))
	case to.source == OtherSNATed:
		n.Change = ChangedUnexpectedly
		n.Reading = append(n.Reading, fmt.Sprintf("the source changed to %s, which is neither the Pod's nor a known address of the node", a.Egress.Addr))
		n.Next = append(n.Next, fmt.Sprintf("if %s is an address of this node: --node-ip %s; else look for an egress gateway or another SNAT rule", a.Egress.Addr, a.Egress.Addr))
	case j.m.opt.Intent == IntentSNAT && to.source == PodSourced, j.m.opt.Intent == IntentKeep && to.source == NodeSNATed:
		n.Change = ChangedUnexpectedly
		n.Reading = append(n.Reading, fmt.Sprintf("the source changed against the intention (%s): from %s to %s", j.m.opt.Intent, from.source, to.source))
		n.Next = append(n.Next, "are before and after exchanged, or does --intent say the opposite of what was meant?")
	default:
		j.changed(b, a)
	}
}

// incomparable says why the requests of two moments cannot be held against each other, "" if they can.
func (j *judgement) incomparable(b, o *Observation, at Moment) (code, text, next string) {
	for m, r := range map[Moment]*Observation{Before: b, at: o} {
		if r.Client.Role.Kind == cluster.RoleNode {
			return doubtOtherPod, fmt.Sprintf("%s: only the node's side is in the capture: which Pod stands behind %s does not show", m, r.Client.Addr),
				"capture on all interfaces of the node: tcpdump -ni any"
		}
	}
	if x, y := b.Client.Role.Name(), o.Client.Role.Name(); x != "" && y != "" && x != y {
		return doubtOtherPod, fmt.Sprintf("before it was Pod %s, %s Pod %s: another Pod's request is another request", x, at, y), "make the request from the same Pod"
	}
	// The rules see a Service's address as what it became.
	backend := func(r *Observation) (a wire.Addr) {
		if r.Backend != nil {
			a = r.Backend.Addr
		}
		return a
	}
	if x, y := backend(b), backend(o); x != y && x.IsValid() && y.IsValid() {
		return doubtBackend, fmt.Sprintf("the Service's requests went to %s before and to %s %s, and the rules decide by that address", x, y, at),
			"make a request that goes to one address: to the endpoint, not the Service"
	}
	if b.Egress != nil && o.Egress != nil && b.Egress.Addr == o.Egress.Addr && b.Source != o.Source && b.Source != NotSent && o.Source != NotSent {
		return doubtFacts, fmt.Sprintf("both left as %s, which by the facts of before is %s and by those of %s %s", b.Egress.Addr, b.Source, at, o.Source),
			"judge all captures by the same facts: give captures in place of saved results, or save them again"
	}
	return "", "", ""
}

// changed judges a source that changed to what is not against the intention: what counts now is that the requests complete.
func (j *judgement) changed(b, a *Observation) {
	n := j.n
	s := n.At[After]
	var failed, doubt []int
	for _, i := range s.Used {
		switch j.completed(After, j.request(After, i)) {
		case NotMet:
			failed = append(failed, i)
		case Inconclusive:
			doubt = append(doubt, i)
		case Met:
		}
	}
	became := "the node now puts its own address in place of the Pod's"
	if a.Source == PodSourced {
		became = "the node now keeps the Pod's own address"
	}
	switch was := j.completed(Before, b); {
	case len(failed) > 0:
		s.Main = failed[0]
		o := j.request(After, s.Main)
		n.Change = ChangedNotCompleted
		text := became + ", and the request does not complete: " + j.shortOf(o)
		if len(failed) < len(s.Used) {
			text = fmt.Sprintf("%s, and %d of %d requests do not complete, like %s: %s", became, len(failed), len(s.Used), o.Tuple, j.shortOf(o))
		}
		switch was {
		case Met:
			text += "; before the change it completed"
		case NotMet:
			text += "; before the change it did not complete either"
		case Inconclusive:
		}
		n.Reading = append(n.Reading, text)
		j.whyNotCompleted(o)
	case len(s.Doubt) > 0:
		o := j.request(After, s.Doubt[0])
		code, why := doubtSource, "the captures do not say why"
		for _, u := range o.Unknown {
			if u.Field == "source" {
				code, why = u.Reason, u.Text
			}
		}
		j.inconclusive(code, fmt.Sprintf("%s; but of %s after the change the source is not known, like %s: %s", became, plural(uint64(len(s.Doubt)), "further request"), o.Tuple, why),
			"name one client with its port: --request 'tcp ADDRESS:PORT > SERVER:PORT'")
	case len(doubt) > 0:
		s.Main = doubt[0]
		o := j.request(After, s.Main)
		code, text := j.completionDoubt(After, o)
		next := "let the capture run until some seconds after the request has ended"
		if code == string(gapFilter) || code == string(gapFiltered) {
			next = "state the filter that it was captured with: --near-filter EXPR ('' if with none), or capture again with the answers in the filter"
		}
		j.inconclusive(code, became+"; whether the request completes is not known: "+text, next)
	default:
		n.Change = Changed
		text := became
		if j.m.opt.Intent != IntentNone {
			n.Change = ChangedAsIntended
			text += ", as intended (" + j.m.opt.Intent.String() + ")"
		}
		switch was {
		case Met:
			text += ", and the request completes, as it did before"
		case NotMet:
			text += ", and the request completes, which before it did not"
		case Inconclusive:
			text += ", and the request completes"
		}
		n.Reading = append(n.Reading, text)
	}
	if j.m.opt.Rules == RulesSame {
		n.Reading = append(n.Reading, "the given rules of before and after are the same and do not explain it: were they read on this node, before and after?")
	}
	if a.Far != nil && a.Egress != nil && a.Far.Addr != a.Egress.Addr {
		n.Reading = append(n.Reading, fmt.Sprintf("it arrives at the far side from %s: a second translation after the node", a.Far.Addr))
	}
}

// completed tells whether a request completed: data or orderly close in both directions, or for datagrams an answer.
func (j *judgement) completed(at Moment, o *Observation) State {
	switch code, _ := j.completionDoubt(at, o); {
	case code != "":
		return Inconclusive
	case o.Completed:
		return Met
	}
	return NotMet
}

// completionDoubt says why it is not known whether a request completed, "" if it is known. What a reset or an ICMP error answered
// did not complete, whatever else the capture lacks.
func (j *judgement) completionDoubt(at Moment, o *Observation) (code, text string) {
	if o.Completed {
		return doubtCompleted(o)
	}
	for _, u := range o.Unknown {
		if u.Field == "outcome" {
			return u.Reason, u.Text
		}
	}
	if o.Outcome == Refused || o.Outcome == Rejected {
		return "", ""
	}
	var c MomentCapture
	if o.Capture >= 0 && o.Capture < len(j.m.in[at].Captures) {
		c = j.m.in[at].Captures[o.Capture]
	}
	if c.Lossy != "" {
		return c.Lossy, "the capture may lack packets of it"
	}
	switch {
	case o.Outcome == HandshakeCompleted && (c.To == wire.NoTime || o.Last == wire.NoTime || c.To-o.Last < handshakeOnly):
		return string(gapEnded), "the handshake completed, and the capture ends before data was answered"
	case o.Outcome == RequestOnly && !o.Unanswered:
		return string(gapFilter), "no reply is in the capture, and its filter may have kept replies out"
	case o.Outcome == HandshakeCompleted, o.Outcome == RequestOnly, o.Outcome == HalfOpen:
		return "", ""
	}
	return string(gapFilter), "the capture does not hold both directions of it"
}

// doubtCompleted says why a request that looks completed may not be: something else than the far host answered it, or the answer
// was seen at the node and not on its way to the Pod.
func doubtCompleted(o *Observation) (code, text string) {
	switch o.StoppedAt {
	case StopBetween, StopFar, StopNodeIn, StopNodeOut, StopReturn:
		return doubtAnswerer, "it was answered, and the captures show that it stopped at: " + o.StoppedAt.String()
	case StopUnknown, StopNone:
	}
	if o.Tuple.Proto == wire.ProtoTCP || o.Tuple.Proto == wire.ProtoSCTP {
		return "", "" // the client acknowledged
	}
	var pod, egress uint64
	hasPod := false
	for i := range o.Legs {
		switch l := &o.Legs[i]; l.Kind {
		case LegPod:
			pod, hasPod = max(pod, l.Replies), true
		case LegEgress:
			egress = max(egress, l.Replies)
		case LegFar, LegUnknown:
		}
	}
	if hasPod && pod == 0 && egress > 0 {
		return doubtDelivery, "the answer reached the node, and that it went on to the Pod is not in the capture"
	}
	return "", ""
}

// handshakeOnly is how long a capture must go on after a handshake, in nanoseconds, for it to count that no data came.
const handshakeOnly = 1_000_000_000

// shortOf says how a request ended, without its tuple.
func (j *judgement) shortOf(o *Observation) string {
	s := o.Outcome.String()
	switch {
	case o.Outcome == HandshakeCompleted && o.Completed:
		s += ", data or close both ways"
	case o.Outcome == HandshakeCompleted:
		s += ", and neither was data answered nor the connection closed in order"
	case o.ICMP != nil:
		s += fmt.Sprintf(", ICMP %s from %s", ErrorText(!o.ICMP.V6, o.ICMP.Type, o.ICMP.Code), o.ICMP.From)
	}
	if o.StoppedAt != StopUnknown && o.StoppedAt != StopNone {
		s += ", stopped at: " + o.StoppedAt.String()
	}
	return s
}

// whyNotCompleted adds what to look at where the translation changed and the request fails all the same.
func (j *judgement) whyNotCompleted(o *Observation) {
	source := o.Client.Addr
	if o.Egress != nil {
		source = o.Egress.Addr
	}
	next := func(format string, args ...any) { j.n.Next = append(j.n.Next, fmt.Sprintf(format, args...)) }
	switch {
	case o.StoppedAt == StopNodeIn:
		next("the answer reached the node and not the Pod: look at the node's FORWARD rules, network policies and connection table")
	case o.StoppedAt == StopNodeOut:
		next("the node itself stopped it: look at its routes, FORWARD rules and network policies")
	case o.Outcome == Rejected && o.ICMP != nil:
		next("%s rejects what comes from %s: its filter must allow that source, or its routes lack the way", o.ICMP.From, source)
	case o.Outcome == Refused:
		next("a reset answers %s: is the port open at %s, and does a firewall reset this source?", source, o.Server.Addr)
	case o.Outcome == HandshakeCompleted:
		next("the handshake passes from %s: look at the application, its own allow list, or at packets larger than a handshake's (MTU)", source)
	case o.StoppedAt == StopReturn:
		next("%s answers %s, and the answer does not come back: is there a route back to %s, and does a firewall on the way back let it pass?", o.Server.Addr, source, source)
	case o.StoppedAt == StopFar:
		next("at %s: does its firewall or allow list take %s, and does it have a route back?", o.Server.Addr, source)
	default:
		next("the request now comes from %s: do firewalls and allow lists on the way to %s and at its end take that address, and is there a way back to it?", source, o.Server.Addr)
	}
	for _, u := range o.Unknown {
		switch {
		case u.Field != "stopped_at":
		case u.Reason == string(gapNoFarCapture):
			next("where it stops shows in a capture of the far side: --after-far FILE")
		case u.Settle != "":
			next("where it stops is not known: %s", u.Text)
			j.n.Next = append(j.n.Next, u.Settle)
		}
	}
}

// unchanged says what the likeliest cause is, as far as the packets allow.
func (j *judgement) unchanged(b, a *Observation) {
	n := j.n
	s := n.At[After]
	sure := s.sure()
	if len(sure) == 0 {
		text := "a datagram exchange or ping that began before keeps the translation that it began with"
		if a.Tuple.Proto == wire.ProtoTCP || a.Tuple.Proto == wire.ProtoSCTP {
			text = "its first packet here may repeat one from before the capture, and a connection keeps the translation that it began with"
		}
		j.inconclusive(doubtUnsure, "after: the source is what it was, but that the request is a new one does not show: "+text, waitFor(a.Tuple.Proto))
		return
	}
	if s.unsure[s.Main] {
		s.Main = sure[0]
	}
	n.Change = Unchanged
	target := map[Intent]Source{IntentSNAT: NodeSNATed, IntentKeep: PodSourced, IntentNone: NodeSNATed}[j.m.opt.Intent]
	switch {
	case a.Source == target:
		whose := "the node's"
		if target == PodSourced {
			whose = "the Pod's own"
		}
		n.Reading = append(n.Reading, "the before capture already shows "+whose+" address: the change was made before it, or nothing had to be changed")
		n.Reading = append(n.Reading, j.rulesSay()...)
		n.Next = append(n.Next, "for a before, capture where the old rules are still in force, or roll back and capture then (--rollback FILE)")
	case a.Source == PodSourced || a.Source == NodeSNATed:
		still := "the node still sends the Pod's own address"
		if a.Source == NodeSNATed {
			still = "the node still puts its own address in place of the Pod's"
		}
		n.Reading = append(n.Reading, still+": most likely its masquerade rules for this destination did not change")
		n.Reading = append(n.Reading, j.rulesSay()...)
		if end := j.endOf(Before); a.First != wire.NoTime && end != wire.NoTime && a.First-end < propagation {
			n.Next = append(n.Next, fmt.Sprintf("the request came %s after the before capture ended, and a ConfigMap takes about 2 minutes to reach the node's rules: wait, then capture a new request", seconds(max(a.First-end, 0))))
		}
		ask, rules := "is ip-masq-agent ready on this node, and do the rules have the new list?", "  iptables-save -t nat"
		if j.m.opt.Rules == RulesSame {
			ask, rules = "the list did not reach the rules: is ip-masq-agent ready on this node, and what does it say of its ConfigMap?", "  kubectl -n kube-system logs -l k8s-app=ip-masq-agent --prefix"
		}
		n.Next = append(n.Next, ask, "  kubectl -n kube-system get pods -o wide -l k8s-app=ip-masq-agent", rules)
	case a.Source == OtherSNATed:
		n.Reading = append(n.Reading, fmt.Sprintf("the source is still %s, which is neither the Pod's nor a known address of the node", a.Egress.Addr))
		n.Next = append(n.Next, fmt.Sprintf("if %s is an address of this node: --node-ip %s", a.Egress.Addr, a.Egress.Addr))
	default:
		n.Reading = append(n.Reading, "the request still does not leave the node")
		n.Next = append(n.Next, "on the node, look at what drops it: FORWARD rules, network policies, routes, reverse path filtering")
	}
	if b.Egress != nil && a.Egress != nil && a.Source == NodeSNATed && b.Egress.Addr != a.Egress.Addr {
		n.Reading = append(n.Reading, fmt.Sprintf("the node's address is another one: %s before, %s after", b.Egress.Addr, a.Egress.Addr))
	}
}

// propagation is how long a change of ip-masq-agent's ConfigMap takes to reach the rules, in nanoseconds: about a minute until
// the kubelet has it, and resyncInterval (60 s unless set) until the agent reads it.
const propagation = 120_000_000_000

// waitFor says what to do for a request that is certainly a new one.
func waitFor(p wire.Proto) string {
	switch {
	case p.IsICMP():
		return "start the capture, wait " + seconds(mappingICMP) + ", then begin to ping anew"
	case p == wire.ProtoTCP || p == wire.ProtoSCTP:
		return "let the capture hold a packet of the node's own some seconds before the new request: start it, ping the server from the node, wait 5 s, then make the request"
	}
	return "start the capture, wait " + seconds(mappingUDP) + ", then make a new request"
}

// endOf is when a moment's last near capture ended; the earliest time if unknown.
func (j *judgement) endOf(at Moment) int64 {
	end := int64(wire.NoTime)
	for _, c := range j.m.in[at].Captures {
		if c.Side == wire.SideNear && c.To != wire.NoTime {
			end = max(end, c.To)
		}
	}
	return end
}

func (j *judgement) rulesSay() []string {
	switch j.m.opt.Rules {
	case RulesSame:
		return []string{"the given rules of before and after are the same, too"}
	case RulesDiffer:
		return []string{"the given rules of before and after differ: were they read on this node, and does the difference concern this destination?"}
	case RulesNotGiven:
	}
	return nil
}

// rollback tells whether the third state is the first again. known is whether the first one is.
func (j *judgement) rollback(known bool) {
	n := j.n
	code, change, next := n.Code, n.Change, n.Next
	said := func(s State, text string) {
		n.Code, n.Change, n.Next = code, change, next
		n.RolledBack = s
		n.Reading = append(n.Reading, "rollback: "+text)
	}
	reading := len(n.Reading)
	if n.At[Rollback] == nil {
		said(Inconclusive, "no such request is in its capture")
		return
	}
	if !j.settle(Rollback) {
		why := n.Reading[len(n.Reading)-1]
		n.Reading = n.Reading[:reading]
		said(Inconclusive, strings.TrimPrefix(why, "rollback: "))
		return
	}
	if !known {
		said(Inconclusive, "there is no state before that it could be held against")
		return
	}
	b, r := j.request(Before, n.At[Before].Main), j.request(Rollback, n.At[Rollback].Main)
	if _, text, _ := j.incomparable(b, r, Rollback); text != "" {
		said(Inconclusive, text)
		return
	}
	was, is := j.endings(Before), j.endings(Rollback)
	switch {
	case wireSourceOf(b) != wireSourceOf(r):
		said(NotMet, fmt.Sprintf("not as before: the source was %s and is %s", b.Source, r.Source))
	case len(n.At[Rollback].sure()) == 0:
		said(Inconclusive, "the source is as before, and that its request is a new one does not show")
	case len(was) == 1 && len(is) == 1 && was[0] == is[0] && was[0].known:
		said(Met, "as before")
	case len(was) == 1 && len(is) == 1 && was[0].known && is[0].known:
		said(NotMet, fmt.Sprintf("not as before: the source is as it was, and the request was %s and is %s", j.shortOf(b), j.shortOf(r)))
	default:
		said(Inconclusive, "the source is as before; how the requests ended is not known of all, or not the same of all")
	}
}

// ending is how a request ended.
type ending struct {
	outcome   Outcome
	completed bool
	known     bool
}

// endings are the different ends of a moment's requests.
func (j *judgement) endings(at Moment) []ending {
	var out []ending
	for _, i := range j.n.At[at].Used {
		o := j.request(at, i)
		code, _ := j.completionDoubt(at, o)
		if e := (ending{o.Outcome, o.Completed, code == ""}); !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

// observed says what a moment's request did.
func (j *judgement) observed(at Moment) string {
	s := j.n.At[at]
	o := j.request(at, s.Main)
	left := ""
	switch {
	case o.Source == PodSourced:
		left = fmt.Sprintf("%s left the node as %s, the Pod's own address", o.Tuple, o.Client.Addr)
	case o.Source == NodeSNATed && o.Egress != nil:
		left = fmt.Sprintf("%s left the node as %s, %s", o.Tuple, o.Egress.Addr, o.nodeWords(o.Egress.Role))
	case o.Source == OtherSNATed && o.Egress != nil:
		left = fmt.Sprintf("%s left the node as %s, neither the Pod's nor a known address of the node", o.Tuple, o.Egress.Addr)
	case o.Source == NotSent:
		left = fmt.Sprintf("%s never left the node", o.Tuple)
	default:
		left = fmt.Sprintf("%s, with which source is not known", o.Tuple)
	}
	left += fmt.Sprintf(" (%s); %s", o.Source, j.shortOf(o))
	left += fmt.Sprintf("; %s, %s back", plural(o.RequestsSent, "packet"), itoa(o.RepliesSeen))
	if o.Source != SourceUnknown && o.Basis != BasisNone {
		left += "; carried by " + o.Basis.String()
	}
	if more := len(s.Used); more > 1 {
		left += fmt.Sprintf("; 1 of %d such requests", more)
	}
	return left
}
