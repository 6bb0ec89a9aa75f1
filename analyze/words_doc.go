package analyze

// WordDoc is the documentation of one word of the output that is not a finding's code; `srcproof explain WORD` shows it.
// A word may stand in several groups: "far" is a source_basis and a stopped_at.
type WordDoc struct {
	Group   WordGroup
	Word    string
	Meaning string // what it means
	Do      string // what to do about it, "" if nothing
}

// WordGroup is the field in which a word stands.
type WordGroup string

// The groups, in the order of Words.
const (
	GroupSource    WordGroup = "source"
	GroupBasis     WordGroup = "source_basis"
	GroupOutcome   WordGroup = "outcome"
	GroupStoppedAt WordGroup = "stopped_at"
	GroupDirection WordGroup = "direction"
	GroupUnknown   WordGroup = "unknown" // the reasons for which one of the others is unknown
	GroupVerdict   WordGroup = "verdict" // of evidence
	GroupReason    WordGroup = "reason"  // the reasons for which a verdict is inconclusive, beside those of GroupUnknown
)

// Words returns the documentation of all words, by group; within a group in the order of DESIGN sections 2 to 6, reasons in
// the order in which they are judged.
func Words() []WordDoc {
	const onTheNode = "Capture on the node, on all interfaces: tcpdump -ni any -w near.pcap 'host SERVER or icmp'"
	const give = "Give --pod-cidr and --node-ip, or --cluster (kubectl get nodes,pods -A -o json)."
	return []WordDoc{
		{
			GroupSource, PodSourced.String(), "The packet left the node with the Pod's own address: the node did not masquerade it.",
			"If it should have been: is the destination in nonMasqueradeCIDRs of ip-masq-agent, or in its defaults?",
		},
		{
			GroupSource, NodeSNATed.String(), "The node forwarded the request and put an address of its own in place of the Pod's (masquerading).",
			"source_basis says what carries it; egress, from a forwarded ttl alone, is an inference.",
		},
		{
			GroupSource, OtherSNATed.String(), "The source was translated to an address that is neither the Pod's nor a known address of the node.",
			"If it is an address of this node give it: --node-ip. Else look for an egress gateway or a further SNAT rule.",
		},
		{
			GroupSource, NodeOwn.String(), "The request originated on the node itself (its ttl is an initial value), which includes Pods with hostNetwork. It says nothing about Pods' sources.", "",
		},
		{
			GroupSource, NodeSourced.String(), "A node's address was seen, and these captures cannot tell whether the node translated a Pod's request (node-snated) or made it itself (node-own).",
			onTheNode,
		},
		{
			GroupSource, OtherSourced.String(), "The original sender is none of the cluster's: a request that came in, or one that passes through.", "",
		},
		{
			GroupSource, SourceLocal.String(), "Delivered on this node and never meant to leave: a probe, Pod to Pod on one node, multicast on the link. No claim about what leaves.", "",
		},
		{
			GroupSource, NotSent.String(), "The request was due to leave the node and never did. Claimed only from a capture of all interfaces whose filter keeps both sides.",
			"Look at the node: FORWARD rules, network policies, routes, reverse path filtering.",
		},
		{
			GroupSource, SourceUnknown.String(), "These captures do not carry the source; the reason stands under \"not known\", or in unknown[] of JSON.", "",
		},

		{GroupBasis, BasisTranslation.String(), "The strongest: the packet was seen on the Pod's side and as it left, and both were joined by what translation leaves alone.", ""},
		{GroupBasis, BasisConntrack.String(), "The kernel's own connection table says it, read while capturing (--kernel-conntrack): its entry, or two sides that it joins.", ""},
		{GroupBasis, BasisEgress.String(), "Seen leaving the node: outgoing on an interface that is no Pod's, or with a ttl below an initial value.", ""},
		{GroupBasis, BasisFar.String(), "Seen at the far side, with the address that arrived there.", ""},
		{GroupBasis, BasisAddress.String(), "Only the address says so, which is the weakest: it carries node-sourced and other-sourced, and nothing else.", ""},
		{GroupBasis, BasisNone.String(), "Nothing carries a source, or the request never left (local, not-sent).", ""},

		{GroupOutcome, HandshakeCompleted.String(), "TCP: SYN, SYN-ACK and the client's ACK; SCTP: INIT to COOKIE-ACK. Packets pass both ways, and the opening is done.", ""},
		{GroupOutcome, Answered.String(), "UDP or ICMP: a reply came.", ""},
		{
			GroupOutcome, HalfOpen.String(), "A SYN-ACK was seen, the client's ACK never: the answer may not reach the client.",
			"stopped_at says where it is lost, if the captures carry it.",
		},
		{
			GroupOutcome, Refused.String(), "A reset (SCTP: ABORT) answered the opening: something there answers for the server, and nothing listens, or a firewall resets.",
			"At the server: is the port open (ss -lntup)?",
		},
		{GroupOutcome, Rejected.String(), "An ICMP error answered it; its type, code and sender are given.", "Ask the owner of the address that sent it."},
		{GroupOutcome, RequestOnly.String(), "Packets of the request, and no reply of any kind.", "source says whether the address could be the reason; a capture at the far side says where it stops."},
		{GroupOutcome, Midstream.String(), "Traffic both ways whose opening is not in the capture. Its translation was decided when it opened, and may predate the rules.", "Test with a new connection."},
		{GroupOutcome, OneDirection.String(), "Only one direction is in the capture, and it is not an unanswered request.", "Capture with a filter that keeps both directions, on all interfaces."},
		{GroupOutcome, ReplyOnly.String(), "Replies without their request: the request took another way, or was filtered out.", "Capture with a filter that keeps both directions, on all interfaces."},
		{GroupOutcome, OutcomeUnknown.String(), "The capture cut off the fields that would tell.", "Capture whole packets (tcpdump -s 0)."},

		{GroupStoppedAt, StopNone.String(), "Packets do not stop: the opening was answered, by the server itself or in its name. It speaks of the opening only.", ""},
		{GroupStoppedAt, StopNodeOut.String(), "Seen on the Pod's side, and it never left the node, or the node itself answered with a reset or an ICMP error.", "Look at the node: FORWARD rules, network policies, routes, reverse path filtering."},
		{GroupStoppedAt, StopBetween.String(), "It left the node and was not seen at the far side, or a device between the two rejected it.", "Look at the way: firewalls, VPN, routes. A device that rejected it is named."},
		{GroupStoppedAt, StopFar.String(), "It passed the far capture point, and nothing came back past it.", "Look at the destination: does the service listen, does its firewall drop this source, does it have a route back?"},
		{GroupStoppedAt, StopReturn.String(), "The far side answered and the node never saw it, or a router rejected the answer for want of a way back.", "Give the far side a route for the source, or let the node masquerade."},
		{GroupStoppedAt, StopNodeIn.String(), "The answer reached the node and was not delivered to the Pod.", "Look at the node: FORWARD rules, network policies, reverse path filtering, the connection table."},
		{GroupStoppedAt, StopUnknown.String(), "These captures cannot tell; the reason stands under \"not known\", or in unknown[] of JSON.", ""},

		{GroupDirection, Outbound.String(), "From the cluster to the outside.", ""},
		{GroupDirection, Inbound.String(), "From the outside to the cluster.", ""},
		{GroupDirection, WayLocal.String(), "Never meant to leave the node.", ""},
		{GroupDirection, Transit.String(), "Neither end is the cluster's: the node passes it on.", ""},
		{GroupDirection, WayUnknown.String(), "Nothing given says which end is the cluster's.", give},

		{GroupUnknown, "opening-not-seen", "Which end began is not in the capture: the opening is missing, or the protocol has none, and the ports do not tell.", "Capture while the request is made anew."},
		{GroupUnknown, "join-ambiguous", "More than one packet fits as the other side of the node's translation, and an ambiguous join is no join.", "Let one client try at a time while capturing."},
		{GroupUnknown, "egress-not-joined", "It was answered, so it left or was served on the node; no packet that left could be matched to it.", "Capture on all interfaces, and from before the request is made."},
		{GroupUnknown, "no-request-packets", "No packet of the request is at the place that would tell, only answers to it.", "Capture with a filter that keeps both directions, on all interfaces."},
		{GroupUnknown, "connection-table", "The request is known from the node's connection table alone, which holds no packets: it does not tell where they stop.", "Capture the request on the node: tcpdump -ni any -w near.pcap"},
		{GroupUnknown, "no-tracked-connection", "A late segment without its connection: the kernel does not translate packets of no tracked connection, so its source says nothing about the rules.", "Test with a new connection."},
		{GroupUnknown, "conntrack-disagrees", "No packet of it is seen leaving, but the kernel's connection table has an entry for it, which it makes only of what passed on.", "Capture on all interfaces, without a filter but for the destination's address."},
		{GroupUnknown, "role-other", "The address is none of the given Pod and node addresses: a translation to it and passing traffic cannot be told apart.", "If it is an address of this node: --node-ip."},
		{GroupUnknown, "role-unknown", "Nothing given says whether the address is a Pod's or the node's.", give},
		{GroupUnknown, "facts-contradicted", "The packets contradict what was given: the node treats an address as a Pod's that is said to be none of the cluster's.", "Are the given ranges this cluster's?"},
		{GroupUnknown, "destination-may-be-local", "The destination is a Pod's address and may be on this node: that the packet left the node does not show.", "Give --links (ip -o link on the node)."},
		{GroupUnknown, "ttl-unclear", "The ttl is neither an initial value nor one below: it does not tell whether this host passed the packet on or sent it.", onTheNode},
		{GroupUnknown, "ttl-not-known", "Without the ttl it does not show whether the packet had left the Pod's side.", onTheNode},
		{GroupUnknown, "pod-side-capture-only", "The capture was taken inside the Pod or on its interface: what left the node is not in it.", onTheNode},
		{GroupUnknown, "past-the-node", "More than one device has passed the packet on (by its ttl), so the frame is not the node's.", onTheNode},
		{GroupUnknown, "sender-of-frame-not-known", "Whether the node or another device sent this frame does not show.", onTheNode},

		{GroupUnknown, string(gapWhole), "The capture is cut or damaged, and the missing packet may have been in what could not be read.", "Copy the file again, or capture again."},
		{GroupUnknown, string(gapDropped), "The capture says that packets were dropped, and the missing one may be among them.", "Capture with a narrower filter or a larger buffer (tcpdump -B)."},
		{GroupUnknown, string(gapLetGo), "There were more flows than fit, and some were let go.", "Narrow the capture: --filter."},
		{GroupUnknown, string(gapSnaplen), "The packets were cut before the fields that would tell.", "Capture whole packets (tcpdump -s 0)."},
		{GroupUnknown, string(gapFiltered), "The capture's filter drops, or may drop, the missing packet.", "Capture with a filter that keeps both sides: host SERVER or icmp."},
		{GroupUnknown, string(gapFilter), "The capture's filter is not known, and one that fits all its packets could have kept the missing one out.", "State it: --near-filter or --far-filter EXPR, '' for none."},
		{GroupUnknown, string(gapBetweenFiles), "It falls into the silence between two files of one capture.", "Give the file that is missing, or capture into one."},
		{GroupUnknown, string(gapNoTime), "The input has no times, so it does not show what the capture would have seen.", ""},
		{GroupUnknown, string(gapEnded), "The capture ended too soon after the request: an answer may have come later.", "Capture for longer, or let the client try again while capturing."},
		{GroupUnknown, string(gapInterfaces), "Whether it left the node is not visible: not all interfaces were captured.", onTheNode},
		{GroupUnknown, string(gapOpaque), "Something encrypted or undecoded left at that moment, and may have been the request.", "Capture outside the tunnel too, or stop other traffic in it while testing."},
		{GroupUnknown, string(gapExcerpt), "Packets may be missing in the text: it was cut, parts were left out, or tcpdump counted more.", "Give the whole output, or the file that tcpdump -w writes."},
		{GroupUnknown, string(gapHost), "Nothing shows that the capturing host is the Pod's node.", "Give --links (ip -o link on the node), or a capture that holds other traffic of the node too."},
		{GroupUnknown, string(gapPodSide), "The capture shows no outgoing packet on the Pod's interface, so that none went there proves nothing.", onTheNode},
		{GroupUnknown, string(gapNoFarCapture), "There is no capture at the far side, and this one cannot tell where behind the node packets stop.", "Capture at the destination at the same time, and give both: srcproof compare --near near.pcap --far far.pcap."},

		{GroupUnknown, string(gapWindow), "The far capture did not run at that moment, by the clocks as they were measured or stated.", "Capture at the far side while the request is made."},
		{GroupUnknown, string(gapClock), "How the far clock lies to the near one is not known, so whether the far capture ran at that moment is not either.", "State it: --far-clock-offset DUR±ERR, or --far-window FROM/TO; or capture a request that both sides hold (a ping from the node)."},
		{GroupUnknown, string(gapPlace), "No packet to this destination is in the far capture, so nothing shows that such packets pass there.", "State it: --far-host IP, if the far capture was taken where packets to it pass."},
		{GroupUnknown, string(gapProxy), "The far capture holds another connection to the same server at the same time, with the same payload: something on the way may end connections.", "Find the proxy, or capture before it."},
		{GroupUnknown, "no-near-partner", "The far capture holds the request and the near one does not, so whether the node translated it does not show.", onTheNode},
		{GroupUnknown, "sides-not-as-stated", "The near and the far capture are the same, or look swapped.", "Give the node's capture with --near and the destination's with --far."},

		{GroupUnknown, "odd-reply", "What answered the opening is neither a SYN-ACK nor a reset.", "Look at the packets (tcpdump -nr FILE)."},
		{GroupUnknown, "delivered-on-this-node", "Delivered on this node or to neighbours on the link; whether the receiver got it is not covered.", ""},
		{GroupUnknown, "half-open", "The SYN-ACK came back to this point; whether it reached the client is not in the capture.", onTheNode},
		{GroupUnknown, "one-direction", "Only one direction is in the capture: the other may have been filtered out or have taken another way.", "Capture with a filter that keeps both directions, on all interfaces."},
		{GroupUnknown, "outcome-unknown", "The outcome is not known, so neither is the place.", "Capture whole packets (tcpdump -s 0)."},
		{GroupUnknown, "answered-from-other-address", "An answer came from an address that was not asked, so nothing is said of where the request stops.", "Bind the server to the address that is asked, or mend the translation that is missing on the way back."},
		{GroupUnknown, "answered-past-the-capture", "The request left, and the reset that the client got was not seen coming in.", onTheNode},
		{GroupUnknown, "sender-of-reset-not-known", "The reset comes from a neighbour (by its ttl): the server on the same link, or the node in its name.", onTheNode},
		{GroupUnknown, "rejected-by-node", "This node's own address rejected the request although packets of it left.", "Look at the node's rules (iptables-save, nft list ruleset)."},
		{GroupUnknown, "rejecting-device-not-placed", "On which side of the node the device is that rejected the request does not show.", onTheNode},
		{GroupUnknown, "delivery-not-seen", "The answer left the far side; that it reached the client does not show there.", "Capture on the node at the same time."},
		{GroupUnknown, "rejected-past-the-capture", "A device rejected the request, and on which way does not show in a far capture alone.", "Capture on the node at the same time."},

		{
			GroupVerdict, ChangedAsIntended.String(), "The source changed as --intent says, and the request completed: data or orderly close in both directions, or for UDP and ping an answer.", "",
		},
		{GroupVerdict, Changed.String(), "The source changed, and the request completed. What was intended was not stated (--intent).", ""},
		{
			GroupVerdict, ChangedNotCompleted.String(), "The source changed, and a request after the change did not complete.",
			"Do firewalls and allow lists on the way and at the destination take the new source, and is there a way back to it?",
		},
		{
			GroupVerdict, Unchanged.String(), "A request that began after the change left with the source that it had before.",
			"Did the rules reach this node? Is ip-masq-agent ready there, and did it read the new list?",
		},
		{
			GroupVerdict, ChangedUnexpectedly.String(), "The source changed to an address that is neither the Pod's nor the node's, or against what --intent says, or the request no longer leaves the node.",
			"If the address is one of this node: --node-ip. Else look for an egress gateway or another SNAT rule.",
		},
		{GroupVerdict, ChangeInconclusive.String(), "The captures do not carry a verdict; the reason stands beside it.", ""},

		{GroupReason, doubtNoRequest, "This node's captures hold the request before or after the change only.", "Capture on it while one of its Pods makes the request."},
		{GroupReason, doubtDelivered, "The request was delivered on this node: it was never meant to leave, so no source left.", ""},
		{GroupReason, doubtSource, "Which source left is not known, and the captures do not say why.", ""},
		{
			GroupReason, doubtOlder, "The capture holds connections only that were open before it began, or before the change: they keep the translation that they began with.",
			"Start the capture, then make a new request.",
		},
		{
			GroupReason, doubtUnsure, "The source is what it was, but the request may have begun before the change: a repeated SYN, a datagram exchange or a ping that goes on keeps its translation.",
			"Start the capture some time before a new request (UDP 120 s, ping 30 s; TCP some seconds, with another packet at the capture's beginning).",
		},
		{GroupReason, doubtMixed, "The requests of one moment left with different sources.", "Say when the change was made, by the record of who made it: --changed-at. A time that is read off the captures would prove itself."},
		{GroupReason, doubtNotSent, "Before the change the request never left the node, so there is no source to compare with.", ""},
		{GroupReason, doubtOtherPod, "Before and after show another Pod's request, or only the node's side of it.", "Make the request from the same Pod, and capture on all interfaces of the node."},
		{GroupReason, doubtFacts, "Before and after left with one address, and by the facts that each was judged with it is something else.", "Judge all captures by the same facts."},
		{GroupReason, doubtBackend, "The Service's requests went to another endpoint after the change than before it, and the rules decide by the endpoint.", "Make a request that goes to one address."},
		{GroupReason, doubtAnswerer, "The request was answered, and the captures show that it did not get through to the far host: something on the way answers in its place.", ""},
		{GroupReason, doubtDelivery, "The answer reached the node, and that it went on to the Pod is not in the capture.", "Capture on all interfaces of the node."},
		{GroupReason, doubtOtherNode, "Before and after were seen on different nodes: what changed on either does not show.", "Capture before and after on one node."},
	}
}
