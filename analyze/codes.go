package analyze

import "slices"

// CodeDoc is the documentation of one finding code: it stands beside the rule (findings.go) and is shown by
// `srcproof explain CODE`.
type CodeDoc struct {
	Code, Title string
	Meaning     []string // paragraphs
	Do          []string // steps
}

// The finding codes. They are part of the contract: added, never renamed.
const (
	codePodUnanswered    = "pod-source-unanswered"
	codePodAnswered      = "pod-source-answered"
	codePodRejected      = "pod-source-rejected"
	codeNodeUnanswered   = "node-source-unanswered"
	codeNoReturnRoute    = "no-return-route"
	codeNotDelivered     = "not-delivered-to-pod"
	codeNeverLeft        = "never-left-node"
	codeOtherAddress     = "snat-other-address"
	codeClientReset      = "client-reset-after-synack"
	codeReplyOther       = "reply-from-other-address"
	codeMTU              = "mtu"
	codeStalled          = "data-stalled"
	codeOldMapping       = "old-mapping"
	codePodSideOnly      = "pod-side-capture-only"
	codeOneDirection     = "one-direction-capture"
	codeRefused          = "request-refused"
	codeNodeRejected     = "node-source-rejected"
	codeFarUnanswered    = "arrived-unanswered"
	codeForwarded        = "forwarded-unanswered"
	codeServerRejected   = "server-rejected"
	codeReturnLost       = "answer-lost-on-return"
	codeBetween          = "lost-on-the-way"
	codeOtherNode        = "answer-at-other-node"
	codeMiddlebox        = "answered-by-middlebox"
	codeSecond           = "second-translation"
	codeRewritten        = "sequence-rewritten"
	codeConfigRejected   = "config-rejected"
	codeConfigNotApplied = "config-not-applied"
	codeRulesNotApplied  = "rules-not-applied"
	codeOtherRule        = "other-rule-first"
	severityNote         = 0
	severityWorthALook   = 1
	severityTheTrouble   = 2
	keepOrReturn         = "Narrow nonMasqueradeCIDRs so that the destination is masqueraded. Cost: the far side then sees node addresses, so allow lists, quotas and logs there that name Pod addresses stop matching; connections already open keep their old source."
	returnRouteRemedy    = "Give the far side a return route for the Pod range. Cost: every device on the way back (VPN gateway, Cloud Router advertisement, firewalls, the host itself) must accept the Pod range."
	waitForAgent         = "After a change of the ConfigMap wait at least 2 minutes (about 60 s until the kubelet has written the file, up to 60 s until the agent reads it) and test with a new connection: open ones keep their mapping."
	commandAgentConfig   = "  kubectl -n kube-system get configmap ip-masq-agent -o yaml"
	commandAgentPods     = "  kubectl -n kube-system get pods -o wide -l k8s-app=ip-masq-agent"
	commandAgentLog      = "  kubectl -n kube-system logs -l k8s-app=ip-masq-agent --tail=50"
	commandNatRules      = "  iptables-save -t nat | grep -nE 'POSTROUTING|IP-MASQ|MASQUERADE|SNAT'"
	commandCaptureNode   = "  tcpdump -ni any -w near.pcap 'host SERVER or icmp'"
	commandAnalyzeFacts  = "  srcproof analyze near.pcap --pod-cidr CIDR --node-ip IP"
)

// Codes returns the documentation of all finding codes, in alphabetical order.
func Codes() []CodeDoc {
	docs := []CodeDoc{
		{
			codePodUnanswered, "the Pod's packets left the node with the Pod's own address, and nothing came back",
			[]string{
				"The node passed the request on without translating its source, and no answer of any kind was captured at the node: no SYN-ACK, no reset, no ICMP error.",
				"The usual reading: an exclusion range of the masquerade rules (nonMasqueradeCIDRs of ip-masq-agent, or its defaults: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and more) covers the destination, so the Pod's address is kept, and the far side cannot answer a Pod address. Whether a return route is missing there or a firewall drops the request is not visible from the node: both look the same.",
			},
			[]string{keepOrReturn, returnRouteRemedy, "To tell routing from firewall, capture at the destination at the same time: packets that arrive and are answered there lack a way back; packets that do not arrive are dropped on the way.", waitForAgent},
		},
		{
			codePodAnswered, "the Pod's packets left the node with the Pod's own address, and were answered",
			[]string{"The far side reaches the Pod range: no translation is needed for this destination. Not a fault. It is worth knowing before masquerading is changed: lists at the far side may name Pod addresses."},
			[]string{"Nothing, unless the far side is meant to see node addresses."},
		},
		{
			codePodRejected, "the Pod's packets left the node with the Pod's own address, and a device rejected them",
			[]string{"An ICMP error came back that quotes the request. Its type and sender are the strongest hint there is: a router without a route, a firewall that says so, or the host itself."},
			[]string{"Ask the owner of the address that sent the error.", keepOrReturn, returnRouteRemedy},
		},
		{
			codeNodeRejected, "the request left with a node address, and a device rejected it",
			[]string{"The source is the node's, so masquerading did its part. An ICMP error that quotes the request came back from the address named."},
			[]string{"Ask the owner of the address that sent the error: a firewall rule or a route for the node range is missing there."},
		},
		{
			codeNodeUnanswered, "the request left with a node address, and nothing came back",
			[]string{"The source on the wire is the node's, so masquerading is not the trouble. A firewall or a route between the node and the destination, or the destination itself, is."},
			[]string{"Capture at the destination at the same time.", "Compare with a destination on the same way that answers."},
		},
		{
			codeNoReturnRoute, "a router rejected the far host's answer: it has no way back",
			[]string{"Seen at the far side: the far host answered, and a router on the way back sent an ICMP error about the answer. This is the strongest evidence of a missing return route; the router is named."},
			[]string{returnRouteRemedy, keepOrReturn},
		},
		{
			codeNotDelivered, "the answer reached the node, and the node did not deliver it to the Pod",
			[]string{"The answer came in at the node's egress interface. The Pod repeated its request afterwards, and nothing went out to the Pod on an interface on which this capture does show outgoing packets."},
			[]string{"Look at the node: FORWARD rules and network policies, reverse path filtering (net.ipv4.conf.*.rp_filter), a connection table that is full or has lost the entry (conntrack -L, conntrack -S), and the route to the Pod."},
		},
		{
			codeNeverLeft, "the Pod's request came to the node and never left it",
			[]string{"In a capture of all interfaces the request came in from the Pod, and nothing that could be it went out. The node itself dropped, rejected or reset it; the far side has never seen it."},
			[]string{"Look at the node: FORWARD rules and network policies (iptables-save, nft list ruleset), the route to the destination (ip route get), reverse path filtering, and the neighbour table (ip neigh)."},
		},
		{
			codeOtherAddress, "the request left with an address that is neither the Pod's nor a known node address",
			[]string{"Something on the node translated the source to another address: an egress gateway, an extra SNAT rule, a second interface whose address was not given as the node's. MASQUERADE takes the address of the outgoing interface, which need not be the node's InternalIP."},
			[]string{"If the address is this node's, give it: --node-ip.", "Else look for SNAT rules:", commandNatRules},
		},
		{
			codeClientReset, "the client answered the SYN-ACK with a reset",
			[]string{"A SYN-ACK came, and the client reset the connection in place of acknowledging it. Its connection table or its socket did not expect this answer: a scan, an answer that arrived after the client had given up, or an answer from another server than the one asked."},
			[]string{"Compare the SYN-ACK's acknowledgement number with the SYN's sequence number, and its time with the client's time-out."},
		},
		{
			codeReplyOther, "the answer came from another address than the one asked",
			[]string{"A datagram with the client's port came back from an address that the client had not asked. Clients and connection tables drop such answers. The server answers from another of its addresses, or a translation on the way back is missing."},
			[]string{"Bind the server to the address that is asked, or mend the translation (DNAT) whose way back is not symmetric."},
		},
		{
			codeMTU, "a router asked for smaller packets",
			[]string{"An ICMP fragmentation-needed or packet-too-big message quotes this request. Handshakes pass, larger packets do not, unless the sender hears the message. Tunnels and VPN gateways carry less than 1500 bytes (Cloud VPN: 1460)."},
			[]string{"Let the ICMP message through to the Pod, lower the Pods' MTU, or clamp the MSS on the way."},
		},
		{
			codeStalled, "the handshake completed, and then data was never acknowledged",
			[]string{"Connections open, data is sent again and again and never acknowledged. Typical of an MTU that is too large for the way (see mtu), of a firewall that inspects content, and of a return way that fails for large packets."},
			[]string{"Try with small packets: ping -M do -s 1400, then -s 1300.", "Look for ICMP fragmentation-needed messages that are filtered."},
		},
		{
			codeOldMapping, "the connection is older than the capture, and may be older than the rules",
			[]string{"The kernel decides a translation once, with the first packet of a connection, and keeps it. A connection that was open before a change shows the old mapping after it. It proves nothing about the rules in force now."},
			[]string{"Test with a new connection.", "To end old mappings: conntrack -D (it breaks the connections)."},
		},
		{
			codePodSideOnly, "the capture holds the Pod's side only",
			[]string{"It was taken inside the Pod, or on the Pod's interface. There every packet has the Pod's address, whatever the node does with it afterwards. It says nothing about the source that left the node."},
			[]string{"Capture on the node, on all interfaces:", commandCaptureNode, commandAnalyzeFacts},
		},
		{
			codeOneDirection, "the capture holds one direction only",
			[]string{"All packets of these connections travel the same way. A filter with src or dst, an interface that carries one direction, or asymmetric routing does that. Whether they were answered is not in it."},
			[]string{"Capture with a filter that keeps both directions (host, not src host or dst host), on all interfaces."},
		},
		{
			codeRefused, "the request was refused",
			[]string{"A reset answered the opening: the packets reach something that answers for the server, and nothing listens there, or a firewall resets. Source address and route are not the trouble, unless a firewall refuses by source."},
			[]string{"Look at the server: is the port open (ss -ltn), does a firewall there reject by source."},
		},
		{
			codeReturnLost, "the far host answered, and the answer never reached the node",
			[]string{"The far capture shows the answer leaving, and the node's capture, which covers the moment, does not hold it. The way back is broken: a route for the source is missing, or a firewall on the way back drops the answer. Both look the same from packets."},
			[]string{"Follow the way back from the far host, hop by hop (ip route get, traceroute).", "The single change that tells them apart: one firewall rule that allows and logs the answer.", returnRouteRemedy, keepOrReturn},
		},
		{
			codeBetween, "the request left the node and never arrived at the far side",
			[]string{"The node's capture shows it leaving, and the far capture, which covers the moment, the place and the filter, holds nothing of it. A firewall drops it, or a device on the way has no route for the destination, or, with reverse path filtering, none back to the source. Firewall and missing route look the same from packets."},
			[]string{"The single change that tells them apart: one firewall rule on the way that allows and logs this source and destination; logged there and still not at the far side, the route behind it is missing.", "Or capture at the next device on the way."},
		},
		{
			codeOtherNode, "the answer arrived at another node than the one the request left from",
			[]string{"Two nodes' captures were given. The request left from one, and its answer came in at the other, which has no connection for it and drops it."},
			[]string{"Look at what routes the source address back: alias ranges, static routes, next hops, load balancers."},
		},
		{
			codeConfigRejected, "the agent refuses the masquerade configuration",
			[]string{"A range that is not aligned, an address without a length, a value of the wrong type, too many ranges, IPv6 without --enable-ipv6: the agent logs an error, makes no rules in that pass, and leaves those that are there. A configuration that fails looks applied wherever the old rules happen to fit."},
			[]string{"Correct the configuration.", "Look for \"error syncing configuration\" in the agent's log; the line \"using config\" is printed for some files that fail afterwards."},
		},
		{
			codeConfigNotApplied, "the node does not do what the masquerade configuration asks for",
			[]string{"The rules, or the packets, of this node do not follow from the ConfigMap: the agent's Pod is not on this node or not ready, it refuses the file, it reads another key or another ConfigMap than the one that was given, or it has not come to it yet."},
			[]string{"Look whether the agent's Pod runs on this node, and at its log.", waitForAgent},
		},
		{
			codeRulesNotApplied, "the packets do not show what the installed rules say",
			[]string{"The packets are the fact. Rules that say otherwise were read on another node, at another time, or are not all there are: iptables-nft, iptables-legacy and nft tables of their own all translate. And a mapping is decided once: a connection that was open before the rules changed keeps its own."},
			[]string{"Read iptables-save, iptables-legacy-save and nft list ruleset on the node that was captured.", "Test with a new connection."},
		},
		{
			codeOtherRule, "another rule than the agent's decides on the source",
			[]string{"All chains that POSTROUTING jumps to are asked until one translates. A RETURN leaves its own chain only: where a node has two agents' chains (IP-MASQ and IP-MASQ-AGENT), a destination keeps the Pod's address only if both lists have it. A MASQUERADE in front of the agent's chain wins, and an ACCEPT ends the search."},
			[]string{"Find out who makes the rule, and remove it or give it the same list."},
		},
		{
			codeMiddlebox, "a device on the way answered in place of the server",
			[]string{"The node's side shows an answer. The far capture, which covers the request, holds nothing of it, or holds another connection with the same payload at the same time: a proxy, a SYN proxy, a firewall that resets. The near handshake says nothing about the server."},
			[]string{"Find the device. The source address that the server sees is the device's, so the Pod's address does not reach it whatever the node does."},
		},
		{
			codeSecond, "the source was translated a second time, past the node",
			[]string{"The request left the node with one source address and arrived at the far side with another: a router, firewall or NAT gateway on the way translates."},
			[]string{"Lists and return routes at the far side must name the address that arrives there."},
		},
		{
			codeRewritten, "a device on the way rewrites TCP sequence numbers",
			[]string{"The same opening has other sequence numbers at the far side. Firewalls randomise them (Cisco ASA by default). The two sides were joined by tuple, timestamp value and time, which is probable and not exact."},
			[]string{"Nothing, if the device is known. On Cisco ASA: set connection random-sequence-number disable."},
		},
		{
			codeForwarded, "a host passes requests on with their source unchanged, and nothing comes back",
			[]string{"The capture shows the request coming in and going out of the same host with one and the same source address, and no answer. Nothing that was given says whether that address is a Pod's, so the source class is unknown; the packets are as they are."},
			[]string{"Say what the addresses are: --pod-cidr and --node-ip, or --cluster."},
		},
		{
			codeServerRejected, "the server itself rejected the request",
			[]string{"An ICMP error that quotes the request came from the address that was asked: the packet got there. Port unreachable means that nothing listens; an admin-prohibited code that a firewall on the host rejects and says so."},
			[]string{"Look at the server: does the service listen (ss -lntup), does its firewall reject this source."},
		},
		{
			codeFarUnanswered, "the request arrived at the far side, and no answer passed back there",
			[]string{"In the far capture the request came by, and nothing came back past this point. If the capture was taken on the destination itself, the host or its firewall did not answer; if it was taken on the way, whatever lies behind it did not."},
			[]string{"Look at the destination: does the service listen, does the host's firewall drop by source, does reverse path filtering drop (a source for which the host has no route)."},
		},
	}
	slices.SortFunc(docs, func(a, b CodeDoc) int {
		if a.Code < b.Code {
			return -1
		}
		return 1
	})
	return docs
}
