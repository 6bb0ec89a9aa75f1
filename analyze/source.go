package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// source decides which source address left the node, and what carries that (DESIGN section 4).
func (a *analysis) source(r *Request, v *view, c *chain, o outcomeAt) {
	switch {
	case v.clientGuessed() && !v.local && !r.Tuple.Dst.IsMulticast():
		r.unknown("source", "opening-not-seen", "which end began is not in the capture: the opening is missing, or the protocol has none, and the ports do not tell",
			a.captureHint(r))
	case a.info.Side == wire.SideFar:
		a.sourceFar(r, o)
	case v.local, r.Tuple.Dst.IsMulticast(), r.Tuple.Src.IsLinkLocal() && r.Tuple.Dst.IsLinkLocal():
		r.Source = SourceLocal
		r.because("%s", a.localReason(r, v))
	case c.ambiguous:
		r.unknown("source", "join-ambiguous", "more than one packet fits as the other side of the node's translation, so none was taken",
			"let one client try at a time while capturing")
	case o.outcome == ReplyOnly && c.n == 1:
		r.unknown("source", "no-request-packets", "no packet of the request is in the capture, only answers to it", a.captureHint(r))
	case o.outcome == OneDirection && r.Tuple.Proto == wire.ProtoTCP && !v.opened():
		r.unknown("source", "no-tracked-connection",
			"a late segment without its connection: the kernel does not translate packets of no tracked connection, so its source says nothing about the rules",
			a.captureHint(r))
	case a.deliveredHere(r, v):
		a.sourceDelivered(r, v)
	case v.pod != nil && v.egress != nil:
		a.sourceJoined(r, v, c)
	case v.egress != nil:
		a.sourceEgress(r, v)
	case v.pod != nil:
		a.sourcePodLeg(r, v, o)
	default:
		a.sourcePlain(r, v)
	}
	a.sourceTracked(r, v, c)
	if r.Source == SourceUnknown {
		r.Basis = BasisNone
	}
	if o.outcome == Midstream && (r.Source == PodSourced || r.Source == NodeSNATed || r.Source == OtherSNATed) {
		r.because("the connection was open before the capture began: its mapping may be older than the rules in force")
	}
}

// clientGuessed tells whether which end is the client rests on nothing but who sent first in the capture: a TCP
// connection without its opening, or a datagram exchange, between ports that say nothing.
func (v *view) clientGuessed() bool {
	convs := v.t.in(v.chain)
	for i := range convs {
		c := &convs[i]
		for _, r := range v.t.of(c) {
			if !v.t.flows.at(r).guessed {
				return false
			}
		}
		k := &v.t.first(c).key
		if servesFrom(k.proto, k.port[1-c.client], k.port[c.client]) {
			return false
		}
	}
	return true
}

// opened tells whether the connection's opening is in the capture.
func (v *view) opened() bool {
	for _, l := range v.legs() {
		if l.client.flags&sawSYN != 0 {
			return true
		}
	}
	return false
}

func (a *analysis) localReason(r *Request, v *view) string {
	switch {
	case v.local:
		return "seen on a loopback interface: it never left this host"
	case r.Tuple.Dst.IsMulticast():
		return fmt.Sprintf("%s is a multicast or broadcast address", r.Tuple.Dst)
	}
	return "both ends are link-local addresses, which no router forwards"
}

func (r *Request) set(s Source, b Basis, format string, args ...any) {
	r.Source, r.Basis = s, b
	r.because(format, args...)
}

func (a *analysis) roleUnknown(r *Request, addr wire.Addr) {
	fact := ""
	if role := a.facts.Role(addr); role.Kind == cluster.RoleOther {
		r.unknown("source", "role-other", r.say("%s is none of the given Pod and node addresses: a translation to it and passing traffic cannot be told apart here", addr),
			"if it is an address of this node (a second interface, an egress address): --node-ip "+addr.String())
		return
	}
	r.unknown("source", "role-unknown", r.say("nothing given says whether %s is a Pod's or the node's address%s", addr, fact),
		"--pod-cidr CIDR and --node-ip IP, or --cluster nodes-pods.json (kubectl get nodes,pods -A -o json)")
}

func (a *analysis) sourceFar(r *Request, o outcomeAt) {
	if o.outcome == OneDirection && r.Tuple.Proto == wire.ProtoTCP {
		r.unknown("source", "no-tracked-connection", "a late segment without its connection says nothing about the rules", "")
		return
	}
	switch addr := r.Client.Addr; r.Client.Role.Kind {
	case cluster.RolePod:
		r.set(PodSourced, BasisFar, "arrived at the far side from %s, a Pod's address (%s)", addr, r.Client.Role.Fact())
	case cluster.RoleNode:
		r.set(NodeSourced, BasisFar, "arrived at the far side from %s, %s: whether the node translated it or sent it itself is not visible there",
			addr, r.nodeWords(r.Client.Role))
	case cluster.RoleOther:
		r.unknown("source", "role-other", r.say("arrived from %s, which is none of the given Pod and node addresses: another client's, or a translation on the way", addr),
			"a capture on the node at the same time (srcproof compare), or if it is a node's address: --node-ip "+addr.String())
	case cluster.RoleService, cluster.RoleUnknown:
		a.roleUnknown(r, addr)
	}
}

func (r *Request) nodeWords(role cluster.Role) string {
	if !role.Exact {
		return r.say("an address in the node range (%s)", role.Fact())
	}
	if role.Name() != "" {
		return r.say("an address of node %s", role.Name())
	}
	return r.say("a node's address (%s)", role.Fact())
}

func (a *analysis) sourceDelivered(r *Request, v *view) {
	switch r.Client.Role.Kind {
	case cluster.RoleOther:
		basis := BasisAddress
		if v.pod != nil && v.egress != nil {
			basis = BasisTranslation
		}
		r.set(OtherSourced, basis, "came in from %s, which is none of the cluster's addresses, and was delivered on this node", r.Client.Addr)
	case cluster.RolePod, cluster.RoleNode, cluster.RoleService:
		r.set(SourceLocal, BasisNone, "delivered on this node: it was never meant to leave")
	case cluster.RoleUnknown:
		a.roleUnknown(r, r.Client.Addr)
	}
}

// sourceJoined has both legs: the strongest case.
func (a *analysis) sourceJoined(r *Request, v *view, c *chain) {
	client, left := r.Client.Addr, r.Egress.Addr
	how, basis := "same tuple", BasisTranslation
	if joins := a.t.joined(c); len(joins) > 0 {
		how = joinWords(joins[0])
		var room [1]string
		if slices.Equal(joins[0].Basis, agreeTracked.words(room[:0])) {
			basis = BasisConntrack
		}
	}
	if r.Client.Role.Kind != cluster.RoleOther && a.serverPlace(r, v) == atUnknown {
		a.mayBeLocal(r)
		return
	}
	switch r.Client.Role.Kind {
	case cluster.RolePod:
		switch {
		case client == left:
			r.set(PodSourced, basis, "came in from the Pod and left with the same source %s (%s)", client, how)
		case r.Egress.Role.Kind == cluster.RoleNode || a.thisNode[left]:
			r.set(NodeSNATed, basis, "came in from %s and left as %s, %s (%s)", client, left, r.nodeWords(r.Egress.Role), how)
		default:
			r.set(OtherSNATed, basis, "came in from %s and left as %s, which is neither the Pod's nor a known node address (%s)", client, left, how)
		}
	case cluster.RoleOther:
		if client != left && !oursAtAll(r.Server.Role.Kind) {
			r.unknown("source", "facts-contradicted",
				r.say("by what was given %s is none of the cluster's addresses, but this node put %s in its place on the way out, as it does for Pods", client, left),
				"are the given ranges this cluster's? --pod-cidr, --node-ip, or --cluster")
			return
		}
		r.set(OtherSourced, basis, "came in from %s, which is none of the cluster's addresses, and was passed on (%s)", client, how)
	case cluster.RoleNode:
		if v.pod.client.packets == 0 {
			a.roleUnknown(r, client)
			return
		}
		r.set(NodeSourced, BasisAddress, "came in from %s, %s, and was passed on", client, r.nodeWords(r.Client.Role))
	case cluster.RoleService, cluster.RoleUnknown:
		a.roleUnknown(r, client)
	}
}

// oursAtAll tells whether a role is one of the cluster's.
func oursAtAll(k cluster.RoleKind) bool {
	return k == cluster.RolePod || k == cluster.RoleNode || k == cluster.RoleService
}

func joinWords(j Join) string {
	return "joined by " + strings.Join(j.Basis, ", ") + "; " + j.Confidence.String()
}

// whereabouts says whether a request's destination is on the capturing host.
type whereabouts uint8

const (
	atUnknown whereabouts = iota
	atAway
	atHere
)

// serverPlace tells where the destination is. Only a Pod's address can be on this node and away alike; what tells is the
// interface that the request leaves by, or how far its answers have come.
func (a *analysis) serverPlace(r *Request, v *view) whereabouts {
	server := r.Server
	if r.Backend != nil {
		server = *r.Backend
	}
	if server.Role.Kind != cluster.RolePod {
		return atAway
	}
	if a.deliveredHere(r, v) {
		return atHere
	}
	l := v.egress
	if l == nil {
		return atUnknown
	}
	if l.server.packets > 0 && l.server.flags&knowTTL != 0 && forwardedTTL(l.server.ttl) {
		return atAway // another node has passed the answer on
	}
	for _, x := range l.flows {
		for n := a.t.flows.at(x).taps; n != 0; n = a.t.taps.at(n).next {
			if i := a.t.taps.at(n).iface; int(i) < len(a.host.ifaces) && a.host.ifaces[i].uplink && !a.host.ifaces[i].podSide {
				return atAway
			}
		}
	}
	return atUnknown
}

func (a *analysis) mayBeLocal(r *Request) {
	r.unknown("source", "destination-may-be-local", "the destination is a Pod's address and may be on this node: that the packet left the node does not show",
		"--links FILE (ip -o link on the node), or "+a.captureHint(r))
}

// sourceTracked asks the node's connection table where the packets alone do not carry the source. The kernel puts a
// connection into it when its first packet has passed POSTROUTING or was delivered (nf_conntrack_confirm), so that an entry
// shows that it went that far, and with which source.
func (a *analysis) sourceTracked(r *Request, v *view, c *chain) {
	if a.known.Len() == 0 || r.Source == SourceLocal || c.ambiguous || r.Tuple.Src.IsLinkLocal() ||
		r.unknownReason("source", "no-tracked-connection") || r.unknownReason("source", "no-request-packets") {
		return
	}
	e, ok := a.known.Of(r.Tuple)
	if !ok {
		return
	}
	client, left := a.role(e.Orig.Src), e.Reply.Dst
	if r.Basis == BasisTranslation || r.Basis == BasisConntrack {
		if r.Egress != nil && r.Egress.Addr != left {
			r.because("the kernel's connection table has %s as %s, which is not what left: another connection with these ports, before or after", e.Orig, e.Leaving())
		}
		return
	}
	if (v.egress != nil || r.Basis == BasisEgress) && v.leaving() != e.Leaving() {
		r.because("the kernel's connection table has %s as %s, which is not what left: another connection with these ports, before or after", e.Orig, e.Leaving())
		return
	}
	// A destination on this node: the connection was delivered, and has left nothing.
	if to := a.role(e.Reply.Src).Kind; a.thisNode[e.Reply.Src] || to == cluster.RolePod && a.serverPlace(r, v) != atAway {
		return
	}
	if r.Source == NotSent {
		r.Source = SourceUnknown
		r.unknown("source", "conntrack-disagrees",
			r.say("no packet of it is seen leaving, but the kernel's connection table has an entry for it (%s), which it makes only of what passed on", e.Leaving()), a.captureHint(r))
		return
	}
	tell := func(s Source, format string, args ...any) {
		r.Unknown = slices.DeleteFunc(r.Unknown, func(u Unknown) bool { return u.Field == "source" })
		r.Reasons = nil
		r.set(s, BasisConntrack, format, args...)
		r.tracked = &e
		end := a.endpoint(left, e.Reply.DstPortOrEchoID, e.Orig.Proto)
		r.Egress = &end
	}
	switch {
	case client.Kind == cluster.RolePod && left == e.Orig.Src:
		tell(PodSourced, "the kernel's connection table does not translate it: it leaves with the Pod's address %s", left)
	case client.Kind == cluster.RolePod && (a.role(left).Kind == cluster.RoleNode || a.thisNode[left]):
		tell(NodeSNATed, "the kernel's connection table has %s leave as %s, %s", e.Orig, left, r.nodeWords(a.role(left)))
	case client.Kind == cluster.RolePod:
		tell(OtherSNATed, "the kernel's connection table has %s leave as %s, which is neither the Pod's nor a known node address", e.Orig, left)
	case client.Kind == cluster.RoleNode && r.Source == NodeSourced && a.thisNode[e.Orig.Src]:
		tell(NodeOwn, "the kernel's connection table has it begun by %s, this node's own address", e.Orig.Src)
	}
}

// rename gives a request the client that the connection table knows, where the capture holds only what the node made of it.
func (a *analysis) rename(r *Request) {
	e := r.tracked
	if r.Tuple == e.Orig {
		return
	}
	r.Tuple = e.Orig
	r.Client = a.endpoint(e.Orig.Src, e.Orig.SrcPortOrEchoID, e.Orig.Proto)
	r.Server = a.endpoint(e.Orig.Dst, e.Orig.DstPortOrEchoID, e.Orig.Proto)
	if b := a.endpoint(e.Reply.Src, e.Reply.SrcPortOrEchoID, e.Orig.Proto); b.Addr != r.Server.Addr || b.HasPort && b.Port != r.Server.Port {
		r.Backend = &b
	}
}

// sourceEgress has only the leg on which the request leaves the host.
func (a *analysis) sourceEgress(r *Request, v *view) {
	l := v.egress
	addr, role := &r.Client.Addr, r.Client.Role
	if l.client.packets == 0 {
		r.unknown("source", "no-request-packets", "only answers were captured at the node's egress", a.captureHint(r))
		return
	}
	ttl := l.client.ttl
	own := l.client.flags&knowTTL != 0 && ownTTL(ttl)
	forwarded := l.client.flags&knowTTL != 0 && forwardedTTL(ttl)
	switch {
	case a.serverPlace(r, v) == atUnknown:
		a.mayBeLocal(r)
	case own: // else it would be the Pod's side: settleInside
		r.set(NodeOwn, BasisEgress, "left with source %s and ttl %d, the value it was made with: this host sent it itself", addr, ttl)
	case forwarded && role.Kind == cluster.RolePod:
		r.set(PodSourced, BasisEgress, "left with the Pod's address %s and ttl %d, one below an initial value: this host passed it on", addr, ttl)
	case role.Kind == cluster.RolePod && a.host.forwards && a.leavesPodSide(l):
		r.set(PodSourced, BasisEgress, "left with the Pod's address %s on an interface that does not lead to Pods", addr)
	case forwarded && role.Kind == cluster.RoleNode:
		r.set(NodeSNATed, BasisEgress, "left as %s with ttl %d, one below an initial value: this host passed it on, so the source was put there by the node (an inference from the ttl)", addr, ttl)
	case role.Kind == cluster.RoleNode:
		r.set(NodeSourced, BasisAddress, "left as %s, %s; whether the node translated it or sent it itself does not show", addr, r.nodeWords(role))
	case role.Kind == cluster.RolePod && l.client.flags&knowTTL == 0:
		r.unknown("source", "ttl-not-known", r.say("%s leaves, and without the ttl it does not show whether this host passed it on or sent it itself", addr), a.captureHint(r))
	case role.Kind == cluster.RolePod:
		r.unknown("source", "ttl-unclear", r.say("%s leaves, but ttl %d does not tell whether this host passed it on or sent it itself", addr, ttl), a.captureHint(r))
	default:
		a.roleUnknown(r, *addr)
	}
}

// leavesPodSide tells whether the leg's packets leave on an interface that is known not to lead to Pods: packets of
// Pods were seen coming in at others.
func (a *analysis) leavesPodSide(l *legState) bool {
	podSides := false
	for i := range a.host.ifaces {
		podSides = podSides || a.host.ifaces[i].podSide
	}
	if !podSides {
		return false
	}
	for _, x := range l.flows {
		for n := a.t.flows.at(x).taps; n != 0; n = a.t.taps.at(n).next {
			if i := a.t.taps.at(n).iface; int(i) < len(a.host.ifaces) && a.host.ifaces[i].podSide {
				return false
			}
		}
	}
	return true
}

func (a *analysis) podSideOnly(r *Request, ttl uint8) {
	r.unknown("source", "pod-side-capture-only",
		r.say("this capture holds the Pod's side only (initial ttl %d): what left the node is not in it", ttl), a.captureHint(r))
}

// sourcePodLeg has only the leg on which the client's packets come in.
func (a *analysis) sourcePodLeg(r *Request, v *view, o outcomeAt) {
	addr, role := &r.Client.Addr, r.Client.Role
	if v.inside && role.Kind == cluster.RolePod {
		a.podSideOnly(r, v.pod.client.ttl)
		return
	}
	if v.inside {
		a.roleUnknown(r, *addr)
		return
	}
	switch role.Kind {
	case cluster.RolePod:
		g, text := a.notSent(r, v, o)
		if g == covered {
			r.set(NotSent, BasisNone, "%s", text)
			return
		}
		r.unknown("source", g, text, a.settle(g, r))
	case cluster.RoleOther:
		r.set(OtherSourced, BasisAddress, "came in from %s, which is none of the cluster's addresses", addr)
	case cluster.RoleNode:
		r.set(NodeSourced, BasisAddress, "came in from %s, %s", addr, r.nodeWords(role))
	case cluster.RoleService, cluster.RoleUnknown:
		a.roleUnknown(r, *addr)
	}
}

// sourcePlain judges a request at a place where the capture records no direction: only hop counts and addresses speak.
func (a *analysis) sourcePlain(r *Request, v *view) {
	l := v.plain
	addr, role, ttl := &r.Client.Addr, r.Client.Role, l.client.ttl
	if l.client.packets == 0 {
		r.unknown("source", "no-request-packets", "no packet of the request is in the capture, only answers to it", a.captureHint(r))
		return
	}
	known := l.client.flags&knowTTL != 0 && l.client.packets > 0
	own, forwarded := known && ownTTL(ttl), known && forwardedTTL(ttl)
	switch role.Kind {
	case cluster.RolePod:
		switch {
		case own:
			a.podSideOnly(r, ttl)
		case forwarded:
			r.set(PodSourced, BasisEgress, "the frame carries the Pod's address %s and ttl %d, one below an initial value: the node has passed it on", addr, ttl)
		case known:
			r.unknown("source", "past-the-node", r.say("ttl %d: more than one device has passed this packet on, so the frame is not the node's", ttl),
				"if the capture was taken past the node: --side far")
		default:
			r.unknown("source", "ttl-not-known", "without the ttl it does not show whether the packet had left the Pod's side", a.captureHint(r))
		}
	case cluster.RoleNode:
		switch {
		case own && role.Exact:
			r.set(NodeOwn, BasisEgress, "source %s with ttl %d, the value it was made with: the node sent it itself", addr, ttl)
		case forwarded && role.Exact && a.sentByNode(l):
			r.set(NodeSNATed, BasisEgress, "source %s with ttl %d, one below an initial value, on the node's link: the node passed the packet on and put its address there (an inference from the ttl, for a capture taken on the node)", addr, ttl)
		case forwarded && role.Exact:
			// A router past the node makes the same of what the node sends itself.
			r.unknown("source", "sender-of-frame-not-known",
				r.say("source %s with ttl %d fits a packet that the node passed on and translated, but also one that it sent itself, seen behind a router: nothing here shows that the node sent this frame", addr, ttl),
				senderHint(l)+"--links FILE (ip -o link on the node), or "+a.captureHint(r))
		default:
			r.set(NodeSourced, BasisAddress, "source %s, %s; this capture does not show whether the node translated it or sent it itself", addr, r.nodeWords(role))
			if r.Egress == nil && role.Exact {
				r.Egress = r.kept.end(r.Client) // as it left, whichever of the two
			}
		}
	case cluster.RoleOther:
		r.set(OtherSourced, BasisAddress, "source %s is none of the cluster's addresses", addr)
	case cluster.RoleService, cluster.RoleUnknown:
		a.roleUnknown(r, *addr)
	}
}

// senderHint says what speaks for a capture that was taken at the far side.
func senderHint(l *legState) string {
	if l.server.packets > 0 && l.server.flags&knowTTL != 0 && ownTTL(l.server.ttl) {
		return fmt.Sprintf("the answers have the initial ttl %d, as at the server: --side far if it was taken there; else ", l.server.ttl)
	}
	return ""
}

// sentByNode tells whether the frames at a place without directions were sent by the node: by their link-layer source, which
// --links, the node's own packets or a Pod's forwarded ones prove to be the node's; or because answers to that sender
// come from routers away, as they do on the node's link and not on the server's.
func (a *analysis) sentByNode(l *legState) bool {
	mac := l.client.mac
	if mac != 0 && a.facts.HasLinks() {
		return a.facts.IsNodeMAC(a.t.macs[mac-1])
	}
	return mac != 0 && a.host.macs[mac] || l.server.packets > 0 && l.server.flags&knowTTL != 0 && !ownTTL(l.server.ttl)
}

// fromPodLink tells whether all that the client sent at a leg came in on links whose names, printed by the host itself, say that they
// lead to Pods of this node.
func (a *analysis) fromPodLink(l *legState) bool {
	met := false
	for _, x := range l.flows {
		f := a.t.flows.at(x)
		for n := f.taps; n != 0; n = a.t.taps.at(n).next {
			tp := a.t.taps.at(n)
			if tp.seen[f.client] == wire.DirUnknown {
				continue
			}
			if tp.seen[f.client] != wire.DirIn || int(tp.iface) >= len(a.host.ifaces) || !a.host.ifaces[tp.iface].podName {
				return false
			}
			met = true
		}
	}
	return met
}

// notSent decides whether a Pod's request that came in never left this node. The text is the reason, either way.
func (a *analysis) notSent(r *Request, v *view, o outcomeAt) (gap, string) {
	l, s := v.pod, a.sum
	repliedByHost := o.outcome == Refused && ownTTL(l.server.ttl) || o.outcome == Rejected && a.rejectedHere(v)
	switch {
	case !s.AllInterfaces:
		return gapInterfaces, "the capture is not of all interfaces, so a packet leaving by another one would not show"
	case l.client.packets == 0:
		return "no-request-packets", "no packet of the request is in the capture"
	case l.client.flags&knowTTL == 0 && !a.fromPodLink(l):
		return gapHost, "without the ttl it does not show whether the packets that came in were made by a neighbour of this host, and so whether it is their node"
	case l.client.flags&knowTTL != 0 && !ownTTL(l.client.ttl):
		return gapHost, "the packets that came in were not made by a neighbour of this host (ttl), so it need not be their node"
	case !a.isNode() && !a.fromPodLink(l):
		return gapHost, "nothing in the capture shows that this host is the Pod's node: it passes no packet on and sends none as the node"
	case o.outcome != RequestOnly && !repliedByHost:
		return "egress-not-joined", "it was answered, so it left or was served here; no packet leaving this host could be matched to it"
	case r.Server.Role.Kind == cluster.RolePod:
		return "destination-may-be-local", "the destination is a Pod's address and may be on this node"
	case (r.Server.Role.Kind == cluster.RoleService || r.Server.Addr.IsLinkLocal()) && !repliedByHost:
		return "destination-may-be-local", "the destination is a Service's or a link-local address, which the node may serve itself"
	case a.thisNode[r.Server.Addr], r.Server.Role.Kind == cluster.RoleNode:
		return "destination-may-be-local", "the destination is a node address and may be this node's own"
	case a.opaqueNear(l):
		return gapOpaque, "an encrypted or undecoded packet left within 10 ms of it, and may have carried it"
	case s.Skipped[wire.SkipLinkType]+s.Skipped[wire.SkipMalformed]+s.Skipped[wire.SkipDepth] > 0:
		return gapOpaque, "the capture holds frames that could not be decoded, and one of them may have carried it"
	}
	if g := a.runsOn(l.client.first, l.client.packets > 1); g != covered && !repliedByHost {
		return g, "the capture ends too soon after the request"
	}
	m := missing{proto: r.Tuple.Proto, v6: !r.Server.Addr.Is4(), dst: r.Server.Addr, sport: -1, dport: -1, dir: wire.DirOut, iface: -1, after: l.client.first, dstAs: asDestination}
	if r.Tuple.Proto.HasPorts() {
		m.dport = int(r.Tuple.DstPortOrEchoID)
	}
	if r.Server.Role.Kind == cluster.RoleService {
		m.dst, m.dport = wire.Addr{}, -1 // it may have left for a backend
	}
	if g := a.absent(&m); g != covered {
		return g, gapText(g)
	}
	if a.leftUnjoined(r, l) {
		return "egress-not-joined", "a packet that the node passed on to the same destination left at that time, and whether it is this one does not show"
	}
	return covered, fmt.Sprintf("came in from the Pod, and in a capture of all interfaces nothing that could be it left this host (%s)", plural(l.client.packets, "packet"))
}

// passedOn is how long the node may hold a packet before it passes it on, in nanoseconds.
const passedOn = 1_000_000_000

// leftUnjoined tells whether something left for the request's server, about when the request came in, that is joined with no
// Pod's request and was not made on this host: it may be the request, whatever kept the two from being joined.
func (a *analysis) leftUnjoined(r *Request, l *legState) bool {
	a.unjoinedOnce.Do(a.gatherUnjoined)
	list := a.unjoined[unjoinedKey{r.Tuple.Proto, r.Server.Addr}]
	const many = 64 // among so many one may always be it
	if len(list) > many {
		return true
	}
	return slices.ContainsFunc(list, func(e legTimes) bool {
		for _, d := range e {
			if d.any && d.last >= l.client.first && d.first <= l.client.last+passedOn {
				return true
			}
		}
		return false
	})
}

// legTimes is when client and server sent at a leg.
type legTimes [2]struct {
	first, last int64
	any         bool
}

// gatherUnjoined finds what left and is joined with no Pod's request, by where it goes.
func (a *analysis) gatherUnjoined() {
	a.unjoined = make(map[unjoinedKey][]legTimes)
	for _, v := range a.eachView {
		e, sent, to := v.egress, (*dirState)(nil), v.leaving().Dst
		switch {
		case e != nil && v.pod == nil:
			sent = e.client
		case e == nil && v.pod != nil && v.pod.client.packets == 0: // which end is the client was guessed, and may be wrong
			e, sent, to = v.pod, v.pod.server, v.leaving().Src
		default:
			continue
		}
		if sent.packets > 0 && !(sent.flags&knowTTL != 0 && ownTTL(sent.ttl)) {
			k := unjoinedKey{v.leaving().Proto, to}
			times := legTimes{}
			for i, d := range [2]*dirState{e.client, e.server} {
				times[i].first, times[i].last, times[i].any = d.first, d.last, d.packets > 0
			}
			a.unjoined[k] = append(a.unjoined[k], times)
		}
	}
}

// opaqueNear tells whether something opaque left shortly after one of the leg's requests.
func (a *analysis) opaqueNear(l *legState) bool {
	cited := uint64(0)
	for _, e := range l.events() {
		switch e.kind {
		case evSYN, evSYNAgain, evInit, evRequest:
			cited++
			if a.t.cover.opaqueBetween(e.time, e.time) {
				return true
			}
		default:
		}
	}
	return cited < l.client.packets && a.t.cover.opaqueBetween(l.client.first, l.client.last)
}

// rejectedHere tells whether the ICMP error that answered was sent by the capturing host: it is not seen coming in, and
// its address or its initial TTL says so.
func (a *analysis) rejectedHere(v *view) bool {
	if v.egress != nil && v.egress.rejected != nil {
		return false
	}
	for _, l := range v.legs() {
		if e := l.rejected; e != nil {
			return a.thisNode[e.from] || e.hasTTL && ownTTL(e.ttl)
		}
	}
	return false
}

func gapText(g gap) string {
	switch g {
	case gapWhole:
		return "the capture is cut or damaged, so a packet missing from it may be in the part that is missing"
	case gapDropped:
		return "the capture reports dropped packets, so one missing from it may have been dropped"
	case gapLetGo:
		return "more flows than the table holds: some were let go, and an absence proves nothing"
	case gapSnaplen:
		return "packets were cut off before the fields that would match the other leg"
	case gapEnded:
		return "the capture ends too soon after the request"
	case gapFilter:
		return "the capture's filter is not known, and a filter that fits all its packets could have kept the missing one out"
	case gapFiltered:
		return "the capture's filter drops the missing packet, or may drop it"
	case gapPodSide:
		return "the capture shows no outgoing frame on the Pod's interface"
	case gapNoTime:
		return "the input has no times, so it does not show how long it went on"
	case gapInterfaces:
		return "the capture is not of all interfaces"
	case gapOpaque:
		return "an encrypted or undecoded packet left at that moment"
	case gapHost:
		return "nothing shows that the capture was taken on the node"
	case gapNoFarCapture:
		return "no far capture"
	case gapWindow:
		return "the far capture did not run at that moment"
	case gapClock:
		return "nothing shows how the two clocks lie to each other"
	case gapPlace:
		return "nothing shows that packets to this destination pass the far capture point"
	case gapProxy:
		return "the far capture holds another connection to the same server at the same time, with the same payload or the same tuple"
	case gapAmbiguous:
		return "the far capture holds something at the same time that may be it, and too little to tell"
	case gapExcerpt:
		return "packets may be missing in the text, so one that is not in it may only not have been copied"
	case gapBetweenFiles:
		return "at that moment nothing was captured: it lies between two files of the capture"
	case covered:
	}
	return string(g)
}

// settle returns what would close a gap.
func (a *analysis) settle(g gap, r *Request) string {
	far := a.info.Side == wire.SideFar
	switch g {
	case gapFiltered:
		return "a capture without a filter, or with: " + strings.Trim(hostFilter(r), "'")
	case gapFilter:
		if far {
			return "--far-filter EXPR, the filter it was captured with ('' for none), or a capture without a filter"
		}
		return "--near-filter EXPR, the filter it was captured with ('' for none), or a capture without a filter"
	case gapEnded:
		return "capture for longer, or let the client try again while capturing"
	case gapDropped:
		return "capture again with a larger buffer: tcpdump -B 16384"
	case gapWhole:
		return "the whole file: copy it again, or stop tcpdump with Ctrl-C and not with kill -9"
	case gapSnaplen:
		return "capture again with tcpdump -s 0 (or at least -s 128)"
	case gapLetGo:
		return "capture with a narrower filter"
	case gapHost:
		return "--links FILE (ip -o link on the node) if it was taken on the node, or a capture that holds other traffic of the node too"
	case gapNoFarCapture, gapNoTime, covered:
		return ""
	default:
		if far {
			return ""
		}
		return a.captureHint(r)
	}
}

// captureHint is the capture to take on the node instead.
func (a *analysis) captureHint(r *Request) string {
	if filter := hostFilter(r); filter != "" {
		return r.say("capture on the node: tcpdump -ni any -w near.pcap %s", filter)
	}
	return "capture on the node: tcpdump -ni any -w near.pcap"
}

// hostFilter is a filter, quoted for the shell, that keeps both legs of a request (the server stays the same where the
// source is translated) and what routers on the way say about it.
func hostFilter(r *Request) string {
	switch {
	case r.Backend != nil:
		return r.say("'host %s or host %s or %s'", r.Server.Addr, r.Backend.Addr, icmpOf(r.Server.Addr))
	case r.Server.Role.Kind == cluster.RoleService:
		return "" // it may leave for any backend, whose port may be another, too: no filter
	}
	return r.say("'host %s or %s'", r.Server.Addr, icmpOf(r.Server.Addr))
}

// icmpOf is the filter word for what routers say about packets of the address's family.
func icmpOf(a wire.Addr) string {
	if a.Is4() {
		return "icmp"
	}
	return "icmp6"
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
