package main

import (
	"slices"
	"strings"
	"time"
)

// The addresses again, as requests. Of the node's uplink alone, the client is the address that left.
const (
	podTCP    = "tcp " + podIP + " > " + farIP + ":80"
	nodeTCP   = "tcp " + nodeIP + " > " + farIP + ":80"
	podTCP2   = "tcp " + podIP + " > " + farIP + ":8080" // the other traffic, beside which something fails
	podEcho   = "icmp " + podIP + " > " + farIP
	nodeEcho  = "icmp " + nodeIP + " > " + farIP
	podUDP    = "udp " + podIP + " > " + farIP + ":5300"
	nodeUDP   = "udp " + nodeIP + " > " + farIP + ":5300"
	podTCP6   = "tcp " + podIP6 + " > [" + farIP6 + "]:80"
	nodeTCP6  = "tcp " + nodeIP6 + " > [" + farIP6 + "]:80"
	podEcho6  = "icmp6 " + podIP6 + " > " + farIP6
	nodeEcho6 = "icmp6 " + nodeIP6 + " > " + farIP6

	server  = farIP + ":80"
	server2 = farIP + ":8080"
	server6 = "[" + farIP6 + "]:80"
)

const (
	waitBrief   = time.Second             // for what is answered at once
	waitSilence = 2300 * time.Millisecond // for what is not: three SYNs, one a second (tcp_syn_linear_timeouts, Linux 6.5)
	// An ICMP error that comes while connect still holds the socket ends nothing (tcp_v4_err in net/ipv4/tcp_ipv4.c):
	// the client then tries again, and the second error ends it.
	waitError = waitSilence
)

// What a person knows of the cluster. A bridge's address lies in the Pod range and is the node's.
var (
	nodeFacts  = []string{"--pod-cidr", podCIDR, "--node-ip", nodeIP}
	nodeFacts6 = []string{"--pod-cidr", podCIDR6, "--node-ip", nodeIP6}
	localFacts = []string{"--pod-cidr", podCIDR, "--node-ip", nodeIP, "--node-ip", bridgeIP}
)

// verdict is what must be said of an outbound request.
func verdict(request, source, outcome, stoppedAt, completed string) labWant {
	return labWant{
		request: request, direction: "outbound", source: []string{source}, outcome: outcome,
		stoppedAt: []string{stoppedAt}, completed: completed,
	}
}

// seenIn is a verdict of the named captures, each alone.
func (w labWant) seenIn(captures ...string) []labWant {
	var all []labWant
	for _, name := range captures {
		if w.near, w.far = name, ""; name == "far" {
			w.near, w.far = "", name
		}
		all = append(all, w)
	}
	return all
}

// everywhere says what each capture must give of one outbound request of the Pod. On all interfaces, with and without a
// filter, w itself. On the uplink alone the same, for the address that left: the TTL tells forwarded from own. Inside the
// Pod nothing about the source, whatever came back. Beside the far host's capture, where packets stop.
func (w labWant) everywhere(egress, stoppedWithFar string) []labWant {
	uplink := w
	uplink.request = egress
	if strings.HasPrefix(egress, "udp ") && egress != w.request {
		// The port that the kernel chose may say as little as the server's: then which end began does not show.
		uplink.source = slices.Concat(w.source, []string{"unknown"})
	}
	return slices.Concat(w.seenIn("any", "all"), uplink.seenIn("uplink"), w.insideOnly(), w.besideFar(stoppedWithFar))
}

// everywhereSilent is everywhere for a translated request that nothing came back to and that no other packet accompanies
// (so that a far capture does not show that it ran on, and nothing passes it as proof):
// on the uplink alone the TTL would be the same behind a router, and nothing there shows who sent the frame.
func (w labWant) everywhereSilent(egress, stoppedWithFar string) []labWant {
	all := w.everywhere(egress, stoppedWithFar)
	for i := range all {
		if all[i].near == "uplink" {
			all[i].source = []string{"unknown"}
		}
	}
	return all
}

// insideOnly is a verdict for the capture inside the Pod: no source. What came back is seen there as elsewhere.
func (w labWant) insideOnly() []labWant {
	w.source, w.stoppedAt = []string{"unknown"}, nil
	return w.seenIn("inside")
}

// besideFar is a verdict for the node's capture and the far host's together.
func (w labWant) besideFar(stoppedAt string) []labWant {
	w.near, w.far, w.stoppedAt = "any", "far", []string{stoppedAt}
	return []labWant{w}
}

// labScenarios is the table.
func labScenarios() []scenario {
	return slices.Concat(demoScenarios(), sourceScenarios(), failureScenarios(), datagramScenarios(), ipv6Scenarios(),
		serviceScenarios(), connectionScenarios(), localScenarios(), pathScenarios())
}

// hostFilter is what a person captures with who looks for one server. It misses what routers on the way say.
const (
	hostFilter     = "host " + farIP
	hostICMPFilter = "host " + farIP + " or icmp"
)

// demoScenarios are the two captures of the demonstration: the change that the tool is for.
func demoScenarios() []scenario {
	own := verdict(nodeTCP, "node-own", "handshake-completed", "none", "true")
	// The Pod's and the node's request have one egress address and one server: on the uplink alone both match.
	withoutUplink := func(w labWant, stoppedWithFar string) []labWant {
		return slices.Concat(w.seenIn("any", "all"), w.insideOnly(), w.besideFar(stoppedWithFar))
	}
	return []scenario{
		{
			name: "before", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The agent's default list keeps the Pod's address for 10.0.0.0/8, and the far side has no way back to it: " +
				"the Pod's ping and its request to " + server + " leave with the Pod's address and stay without an answer, " +
				"while the node's own request to the same server completes.",
			run: func(l *lab, capture func()) {
				l.masq(false, keepDefault...)
				l.far.serveTCP(server)
				l.pod.optionalSysctl("net.ipv4.tcp_syn_linear_timeouts=0") // as nodes with older kernels: at 0, 1 and 3 s
				capture()
				l.expect(l.pod.ping(farIP, 300*time.Millisecond), endTimeout, "the Pod's ping")
				l.expect(l.pod.tcp(server, 4200*time.Millisecond), endTimeout, "the Pod's request")
				l.expect(l.node.tcp(server, waitBrief), endCompleted, "the node's request")
			},
			shows: []sight{
				seesExactly(3, "any veth0 in", podTCP+" S ttl 64"),
				seesExactly(3, "any cbr0 in", podTCP+" S ttl 64"),
				seesExactly(3, "any eth0 out", podTCP+" S ttl 63"),
				seesNone("any", "tcp "+server+" > "+podIP),
				seesExactly(1, "any eth0 out", podEcho+" 8/0"),
				seesNone("any", "icmp "+farIP+" > * 0/0"),
				sees("any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
				seesExactly(3, "far", podTCP+" S"),
				seesAtLeast(3, "far", "tcp "+server+" > "+podIP+" SA"),
				seesAtLeast(3, "far", "icmp "+routerFar+" > "+farIP+" 3/0"),
			},
			want: slices.Concat(
				verdict(podTCP, "pod-sourced", "request-only", "unknown", "false").everywhere(podTCP, "return"),
				verdict(podEcho, "pod-sourced", "request-only", "unknown", "").everywhere(podEcho, "return"),
				verdict(podTCP, "pod-sourced", "half-open", "return", "false").seenIn("far"),
				own.seenIn("any", "all", "uplink"), own.besideFar("none"),
			),
		},
		{
			name: "after", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The agent's list is narrowed to the cluster's own ranges: the same ping and the same request to " +
				server + " leave with the node's address, with ports that the kernel chose (--random-fully), and complete.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.far.serveTCP(server)
				capture()
				l.expect(l.pod.ping(farIP, waitBrief), endCompleted, "the Pod's ping")
				l.expect(l.pod.tcp(server, waitBrief), endCompleted, "the Pod's request")
				l.expect(l.node.tcp(server, waitBrief), endCompleted, "the node's request")
			},
			shows: []sight{
				seesExactly(1, "any veth0 in", podTCP+" S ttl 64"),
				seesExactly(1, "any cbr0 in", podTCP+" S ttl 64"),
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 64"),
				seesNone("any eth0 out", "tcp "+podIP+" > *"),
				sees("any veth0 out", "tcp "+server+" > "+podIP+" SA"),
				sees("any veth0 out", "tcp "+server+" > "+podIP+" A data"),
				seesExactly(1, "any eth0 out", nodeEcho+" 8/0"),
				seesExactly(1, "any veth0 out", "icmp "+farIP+" > "+podIP+" 0/0"),
				seesExactly(2, "far", nodeTCP+" S"),
				seesNone("far", "tcp "+podIP+" > *"),
			},
			check: echoIdentifierChanged,
			want: slices.Concat(
				withoutUplink(verdict(podTCP, "node-snated", "handshake-completed", "none", "true"), "none"),
				verdict(podEcho, "node-snated", "answered", "none", "").everywhere(nodeEcho, "none"),
				own.seenIn("any", "all"),
			),
		},
	}
}

// sourceScenarios are about the address that leaves, where everything is answered.
func sourceScenarios() []scenario {
	const clientPort = podIP + ":43000"
	kept := verdict(podTCP, "pod-sourced", "handshake-completed", "none", "true").everywhere(podTCP, "none")
	snated := verdict(podTCP, "node-snated", "handshake-completed", "none", "true").everywhere(nodeTCP, "none")
	answered := func(prepare func(*lab)) func(*lab, func()) {
		return func(l *lab, capture func()) {
			prepare(l)
			l.far.serveTCP(server)
			capture()
			l.expect(l.pod.tcpFrom(clientPort, server, waitBrief), endCompleted, "the Pod's request")
		}
	}
	return []scenario{
		{
			name: "kept", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The Pod's address is kept, and the far side has a route for the Pod range: the other remedy.",
			run:   answered(func(l *lab) { l.masq(false, keepDefault...); l.routeBack() }),
			shows: []sight{
				seesExactly(1, "any eth0 out", "tcp "+clientPort+" > "+server+" S ttl 63"),
				sees("any eth0 in", "tcp "+server+" > "+clientPort+" SA"),
				sees("any veth0 out", "tcp "+server+" > "+clientPort+" A data"),
				seesNone("any", "tcp "+nodeIP+" > *"),
				sees("far", "tcp "+clientPort+" > "+server+" A data"),
			},
			want: kept,
		},
		{
			name: "kept-routed", kind: routed, filter: hostFilter, facts: nodeFacts,
			about: "The Pod's address is kept and answered, the Pod hangs on a routed link.",
			run:   answered(func(l *lab) { l.masq(false, keepDefault...); l.routeBack() }),
			shows: []sight{
				seesExactly(1, "any "+podLinkRouted+" in", "tcp "+clientPort+" > "+server+" S ttl 64"),
				seesExactly(1, "any eth0 out", "tcp "+clientPort+" > "+server+" S ttl 63"),
				sees("any "+podLinkRouted+" out", "tcp "+server+" > "+clientPort+" A data"),
			},
			want: kept,
		},
		{
			name: "snat", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The node translates to its own address and keeps the port, as MASQUERADE does where the port is free.",
			run:   answered(func(l *lab) { l.masq(false, keepNarrowed...) }),
			shows: []sight{
				seesExactly(1, "any veth0 in", "tcp "+clientPort+" > "+server+" S ttl 64"),
				seesExactly(1, "any eth0 out", "tcp "+nodeIP+":43000 > "+server+" S ttl 63"),
				seesNone("any eth0 out", "tcp "+podIP+" > *"),
				sees("any veth0 out", "tcp "+server+" > "+clientPort+" A data"),
				seesNone("far", "tcp "+podIP+" > *"),
			},
			want: snated,
		},
		{
			name: "snat-routed", kind: routed, filter: hostFilter, facts: nodeFacts,
			about: "The node translates to its own address with a port of the kernel's choice, the Pod hangs on a routed link.",
			run:   answered(func(l *lab) { l.masq(true, keepNarrowed...) }),
			shows: []sight{
				seesExactly(1, "any "+podLinkRouted+" in", "tcp "+clientPort+" > "+server+" S ttl 64"),
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesNone("any eth0 out", "tcp "+nodeIP+":43000 > *"),
				sees("any "+podLinkRouted+" out", "tcp "+server+" > "+clientPort+" A data"),
			},
			want: snated,
		},
		{
			name: "snat-random-fully", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The node translates to its own address with a port of the kernel's choice (--random-fully, the agent's default).",
			run:   answered(func(l *lab) { l.masq(true, keepNarrowed...) }),
			shows: []sight{
				seesExactly(1, "any veth0 in", "tcp "+clientPort+" > "+server+" S ttl 64"),
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesNone("any eth0 out", "tcp "+nodeIP+":43000 > *"),
				seesNone("any eth0 out", "tcp "+podIP+" > *"),
				sees("any veth0 out", "tcp "+server+" > "+clientPort+" A data"),
				seesExactly(1, "inside", "tcp "+clientPort+" > "+server+" S ttl 64"),
				sees("inside", "tcp "+server+" > "+clientPort+" A data"),
				seesExactly(1, "uplink", nodeTCP+" S ttl 63"),
				seesNone("uplink", "tcp "+podIP+" > *"),
			},
			want: snated,
		},
		{
			name: "two-chains", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "Chain IP-MASQ keeps the Pod's address for 10.0.0.0/8, and IP-MASQ-AGENT beside it has a list without: what one chain alone keeps is translated.",
			run: answered(func(l *lab) {
				l.masq(false, keepDefault...)
				l.node.iptables("-t nat -N IP-MASQ-AGENT")
				l.node.iptables("-t nat -A POSTROUTING -m addrtype ! --dst-type LOCAL -j IP-MASQ-AGENT")
				l.node.iptables("-t nat -A IP-MASQ-AGENT -d 172.16.0.0/12 -j RETURN")
				l.node.iptables("-t nat -A IP-MASQ-AGENT -j MASQUERADE --random-fully")
			}),
			shows: []sight{
				seesExactly(1, "any veth0 in", "tcp "+clientPort+" > "+server+" S ttl 64"),
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesNone("any eth0 out", "tcp "+podIP+" > *"),
			},
			want: snated,
		},
		{
			name: "stray-masquerade", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A rule by hand translates before the agent's chain is asked, which would keep the Pod's address.",
			run: answered(func(l *lab) {
				l.masq(false, keepDefault...)
				l.node.iptables("-t nat -I POSTROUTING -s " + podCIDR + " -d 10.20.0.0/16 -j MASQUERADE")
			}),
			shows: []sight{
				seesExactly(1, "any veth0 in", "tcp "+clientPort+" > "+server+" S ttl 64"),
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesNone("any eth0 out", "tcp "+podIP+" > *"),
			},
			want: snated,
		},
		{
			name: "snat-other-address", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The node translates to an egress address of its uplink that is not the node's InternalIP.",
			run: answered(func(l *lab) {
				l.node.ip("addr add " + egressIP + "/28 dev eth0")
				l.masq(true, keepNarrowed...)
				l.node.iptables("-t nat -I POSTROUTING -s " + podCIDR + " -o eth0 -j SNAT --to-source " + egressIP)
			}),
			shows: []sight{
				seesExactly(1, "any veth0 in", podTCP+" S ttl 64"),
				seesExactly(1, "any eth0 out", "tcp "+egressIP+" > "+server+" S ttl 63"),
				seesNone("any", "tcp "+nodeIP+" > *"),
				sees("any veth0 out", "tcp "+server+" > "+podIP+" A data"),
			},
			want: slices.Concat(
				verdict(podTCP, "other-snated", "handshake-completed", "none", "true").seenIn("any", "all"),
				verdict(podTCP, "other-snated", "handshake-completed", "none", "true").besideFar("none"),
			),
		},
		{
			name: "snat-twice", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The node translates to its own address, and a router past it translates again: the far host sees " + routerFar + ".",
			run: answered(func(l *lab) {
				l.masq(true, keepNarrowed...)
				l.rtr.iptables("-t nat -A POSTROUTING -o o0 -j MASQUERADE --random-fully")
			}),
			shows: []sight{
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(1, "far", "tcp "+routerFar+" > "+server+" S"),
				seesNone("far", "tcp "+nodeIP+" > *"),
				sees("any veth0 out", "tcp "+server+" > "+podIP+" A data"),
			},
			want: snated,
		},
		{
			name: "node-own", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The node's own request, as a hostNetwork Pod's: it passes the agent's rules too, which change its port and not its address.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.far.serveTCP(server)
				capture()
				l.expect(l.node.tcpFrom(nodeIP+":43000", server, waitBrief), endCompleted, "the node's request")
			},
			shows: []sight{
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 64"),
				seesNone("any eth0 out", "tcp "+nodeIP+":43000 > *"),
				seesNone("any", "tcp "+podIP+" > *"),
				sees("any eth0 in", "tcp "+server+" > "+nodeIP+" A data"),
			},
			want: slices.Concat(
				verdict(nodeTCP, "node-own", "handshake-completed", "none", "true").seenIn("any", "all", "uplink"),
				verdict(nodeTCP, "node-own", "handshake-completed", "none", "true").besideFar("none"),
			),
		},
	}
}

// failureScenarios are about how far a request got, and where packets stop. Beside each that stops on the node or on the
// way, other traffic of the Pod passes: without it, nothing in the capture would show that it could have.
func failureScenarios() []scenario {
	const far80 = " -d " + farIP + " -p tcp --dport 80 "
	const toPod80 = " -d " + podIP + " -p tcp --sport 80 "
	other := verdict(podTCP2, "node-snated", "handshake-completed", "none", "true")
	// around makes a request to server that ends as told, between two to server2 that complete.
	around := func(end string, wait time.Duration, prepare func(*lab)) func(*lab, func()) {
		return func(l *lab, capture func()) {
			l.masq(true, keepNarrowed...)
			prepare(l)
			l.far.serveTCP(server, server2)
			capture()
			l.expect(l.pod.tcp(server2, waitBrief), endCompleted, "the Pod's other request")
			l.expect(l.pod.tcp(server, wait), end, "the Pod's request")
			l.expect(l.pod.tcp(server2, waitBrief), endCompleted, "the Pod's other request, again")
		}
	}
	otherPasses := []sight{
		seesExactly(2, "any veth0 in", podTCP2+" S"),
		seesExactly(2, "any eth0 out", "tcp "+nodeIP+" > "+server2+" S"),
		sees("any veth0 out", "tcp "+server2+" > "+podIP+" A data"),
	}
	notSent := func(outcome string) []labWant {
		w := verdict(podTCP, "not-sent", outcome, "node-out", "false")
		stated := w.seenIn("any")
		stated[0].flags = []string{"--near-filter", hostFilter}
		return slices.Concat(w.seenIn("any", "all"), stated, w.insideOnly(), w.besideFar("node-out"), other.seenIn("any", "all"))
	}
	return []scenario{
		{
			name: "refused", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "Nothing listens at the server's port: the far host answers with RST.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				capture()
				l.expect(l.pod.tcp(server, waitBrief), endRefused, "the Pod's request")
			},
			shows: []sight{
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(1, "any eth0 in", "tcp "+server+" > "+nodeIP+" AR"),
				seesExactly(1, "any veth0 out", "tcp "+server+" > "+podIP+" AR"),
			},
			want: verdict(podTCP, "node-snated", "refused", "none", "false").everywhere(nodeTCP, "none"),
		},
		{
			name: "rejected-by-router", kind: bridged, filter: hostICMPFilter, facts: nodeFacts,
			about: "A router between prohibits the server's port and says so by ICMP.",
			run: around(endUnreachable, waitError, func(l *lab) {
				l.rtr.iptables("-A FORWARD" + far80 + "-j REJECT --reject-with icmp-admin-prohibited")
			}),
			shows: append([]sight{
				seesAtLeast(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesAtLeast(1, "any eth0 in", "icmp "+routerIP+" > "+nodeIP+" 3/13"),
				seesAtLeast(1, "any veth0 out", "icmp "+routerIP+" > "+podIP+" 3/13"),
				seesNone("far", nodeTCP),
			}, otherPasses...),
			want: verdict(podTCP, "node-snated", "rejected", "between", "false").everywhere(nodeTCP, "between"),
		},
		{
			name: "rejected-by-host", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The far host's own firewall prohibits the port and says so by ICMP.",
			run: around(endUnreachable, waitError, func(l *lab) {
				l.far.iptables("-A INPUT" + far80 + "-j REJECT --reject-with icmp-admin-prohibited")
			}),
			shows: append([]sight{
				seesAtLeast(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesAtLeast(1, "any eth0 in", "icmp "+farIP+" > "+nodeIP+" 3/13"),
				seesAtLeast(1, "any veth0 out", "icmp "+farIP+" > "+podIP+" 3/13"),
				seesAtLeast(1, "far", nodeTCP+" S"),
			}, otherPasses...),
			want: verdict(podTCP, "node-snated", "rejected", "none", "false").everywhere(nodeTCP, "none"),
		},
		{
			name: "not-sent", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The node drops the Pod's packets to one port; others to the same server leave.",
			run:   around(endTimeout, waitSilence, func(l *lab) { l.node.iptables("-A FORWARD" + far80 + "-j DROP") }),
			shows: append([]sight{
				seesExactly(3, "any veth0 in", podTCP+" S ttl 64"),
				seesExactly(3, "any cbr0 in", podTCP+" S ttl 64"),
				seesNone("any eth0 out", "tcp * > "+server),
			}, otherPasses...),
			want: notSent("request-only"),
		},
		{
			name: "not-sent-routed", kind: routed, filter: hostFilter, facts: nodeFacts,
			about: "The node drops the Pod's packets to one port, the Pod hangs on a routed link.",
			run:   around(endTimeout, waitSilence, func(l *lab) { l.node.iptables("-A FORWARD" + far80 + "-j DROP") }),
			shows: []sight{
				seesExactly(3, "any "+podLinkRouted+" in", podTCP+" S ttl 64"),
				seesNone("any eth0 out", "tcp * > "+server),
				seesExactly(2, "any eth0 out", "tcp "+nodeIP+" > "+server2+" S"),
			},
			want: notSent("request-only"),
		},
		{
			name: "not-sent-reset", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The node refuses the Pod's packets to one port itself, with a RST in the server's name.",
			run: around(endRefused, waitBrief, func(l *lab) {
				l.node.iptables("-A FORWARD" + far80 + "-j REJECT --reject-with tcp-reset")
			}),
			shows: append([]sight{
				seesExactly(1, "any veth0 in", podTCP+" S ttl 64"),
				seesExactly(1, "any veth0 out", "tcp "+server+" > "+podIP+" AR"),
				seesNone("any eth0 out", "tcp * > "+server),
				seesNone("any eth0 in", "tcp "+server+" > *"),
			}, otherPasses...),
			want: notSent("refused"),
		},
		{
			name: "not-sent-rejected", kind: bridged, filter: hostICMPFilter, facts: nodeFacts,
			about: "The node prohibits the Pod's packets to one port and says so by ICMP.",
			run: around(endUnreachable, waitError, func(l *lab) {
				l.node.iptables("-A FORWARD" + far80 + "-j REJECT --reject-with icmp-admin-prohibited")
			}),
			shows: append([]sight{
				seesAtLeast(1, "any veth0 in", podTCP+" S ttl 64"),
				seesAtLeast(1, "any veth0 out", "icmp "+bridgeIP+" > "+podIP+" 3/13"),
				seesNone("any eth0 out", "tcp * > "+server),
			}, otherPasses...),
			want: notSent("rejected"),
		},
		{
			name: "node-in", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The server answers and the node drops the answers on the way to the Pod; others from the same server reach it.",
			run:   around(endTimeout, waitSilence, func(l *lab) { l.node.iptables("-A FORWARD" + toPod80 + "-j DROP") }),
			shows: append([]sight{
				seesExactly(3, "any eth0 out", nodeTCP+" S ttl 63"),
				seesAtLeast(3, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
				seesNone("any veth0 out", "tcp "+server+" > *"),
				seesNone("any cbr0 out", "tcp "+server+" > *"),
			}, otherPasses...),
			want: slices.Concat(
				verdict(podTCP, "node-snated", "request-only", "node-in", "false").seenIn("any", "all"),
				verdict(podTCP, "node-snated", "request-only", "node-in", "false").besideFar("node-in"),
				verdict(podTCP, "node-snated", "request-only", "unknown", "false").insideOnly(),
				verdict(nodeTCP, "node-snated", "half-open", "unknown", "false").seenIn("uplink"),
				other.seenIn("any", "all"),
			),
		},
		{
			name: "node-in-routed", kind: routed, filter: hostFilter, facts: nodeFacts,
			about: "The server answers and the node drops the answers on the way to the Pod, which hangs on a routed link.",
			run:   around(endTimeout, waitSilence, func(l *lab) { l.node.iptables("-A FORWARD" + toPod80 + "-j DROP") }),
			shows: []sight{
				seesExactly(3, "any eth0 out", nodeTCP+" S ttl 63"),
				seesAtLeast(3, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
				seesNone("any "+podLinkRouted+" out", "tcp "+server+" > *"),
				sees("any "+podLinkRouted+" out", "tcp "+server2+" > "+podIP+" A data"),
			},
			want: verdict(podTCP, "node-snated", "request-only", "node-in", "false").seenIn("any", "all"),
		},
		{
			name: "node-in-rejected", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The server answers and the node rejects the answers towards the server by ICMP.",
			run: around(endTimeout, waitSilence, func(l *lab) {
				l.node.iptables("-A FORWARD" + toPod80 + "-j REJECT --reject-with icmp-admin-prohibited")
			}),
			shows: append([]sight{
				seesExactly(3, "any eth0 out", nodeTCP+" S ttl 63"),
				seesAtLeast(1, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
				seesAtLeast(1, "any eth0 out", "icmp "+nodeIP+" > "+farIP+" 3/13"),
				seesNone("any veth0 out", "tcp "+server+" > *"),
			}, otherPasses...),
			want: verdict(podTCP, "node-snated", "request-only", "node-in", "false").seenIn("any", "all"),
		},
		{
			name: "dropped-between", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A router between drops the requests without a word; others to the same server pass it.",
			run:   around(endTimeout, waitSilence, func(l *lab) { l.rtr.iptables("-A FORWARD" + far80 + "-j DROP") }),
			shows: append([]sight{
				seesExactly(3, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(3, "rtr n0 in", nodeTCP+" S"),
				seesNone("far", nodeTCP),
				seesExactly(2, "far", "tcp "+nodeIP+" > "+server2+" S"),
			}, otherPasses...),
			want: verdict(podTCP, "node-snated", "request-only", "unknown", "false").everywhere(nodeTCP, "between"),
		},
		{
			name: "dropped-at-far", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The far host drops the requests without a word.",
			run:   around(endTimeout, waitSilence, func(l *lab) { l.far.iptables("-A INPUT" + far80 + "-j DROP") }),
			shows: append([]sight{
				seesExactly(3, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(3, "far", nodeTCP+" S"),
				seesNone("far", "tcp "+server+" > *"),
			}, otherPasses...),
			want: verdict(podTCP, "node-snated", "request-only", "unknown", "false").everywhere(nodeTCP, "far"),
		},
		{
			name: "dropped-on-return", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A router between drops the answers without a word.",
			run: around(endTimeout, waitSilence, func(l *lab) {
				l.rtr.iptables("-A FORWARD -s " + farIP + " -p tcp --sport 80 -j DROP")
			}),
			shows: append([]sight{
				seesExactly(3, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(3, "far", nodeTCP+" S"),
				seesAtLeast(3, "far", "tcp "+server+" > "+nodeIP+" SA"),
				seesNone("any", "tcp "+server+" > *"),
			}, otherPasses...),
			want: verdict(podTCP, "node-snated", "request-only", "unknown", "false").everywhere(nodeTCP, "return"),
		},
	}
}

// datagramScenarios are ping and UDP.
func datagramScenarios() []scenario {
	return []scenario{
		{
			name: "ping-snat", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "Ping, translated with an identifier of the kernel's choice, answered.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				capture()
				l.expect(l.pod.ping(farIP, waitBrief), endCompleted, "the Pod's ping")
			},
			shows: []sight{
				seesExactly(1, "any veth0 in", podEcho+" 8/0 ttl 64"),
				seesExactly(1, "any eth0 out", nodeEcho+" 8/0 ttl 63"),
				seesExactly(1, "any eth0 in", "icmp "+farIP+" > "+nodeIP+" 0/0"),
				seesExactly(1, "any veth0 out", "icmp "+farIP+" > "+podIP+" 0/0"),
			},
			check: echoIdentifierChanged,
			want:  verdict(podEcho, "node-snated", "answered", "none", "").everywhere(nodeEcho, "none"),
		},
		{
			name: "ping-kept", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "Ping with the Pod's own address, answered.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepDefault...)
				l.routeBack()
				capture()
				l.expect(l.pod.ping(farIP, waitBrief), endCompleted, "the Pod's ping")
			},
			shows: []sight{
				seesExactly(1, "any eth0 out", podEcho+" 8/0 ttl 63"),
				seesExactly(1, "any veth0 out", "icmp "+farIP+" > "+podIP+" 0/0"),
			},
			want: verdict(podEcho, "pod-sourced", "answered", "none", "").everywhere(podEcho, "none"),
		},
		{
			name: "ping-unanswered", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "Ping with the node's address to a host that does not answer pings.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.far.sysctl("net.ipv4.icmp_echo_ignore_all=1")
				capture()
				l.expect(l.pod.ping(farIP, 1500*time.Millisecond), endTimeout, "the Pod's ping")
			},
			shows: []sight{
				seesExactly(1, "any veth0 in", podEcho+" 8/0 ttl 64"),
				seesExactly(1, "any eth0 out", nodeEcho+" 8/0 ttl 63"),
				seesExactly(1, "far", nodeEcho+" 8/0"),
				seesNone("any", "icmp "+farIP+" > *"),
			},
			want: verdict(podEcho, "node-snated", "request-only", "unknown", "").everywhereSilent(nodeEcho, "unknown"),
		},
		{
			name: "udp", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "UDP, translated with a port of the kernel's choice, answered.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.far.serveUDP(farIP+":5300", false)
				capture()
				l.expect(l.pod.udp(farIP+":5300", waitBrief), endCompleted, "the Pod's datagram")
			},
			shows: []sight{
				seesExactly(1, "any veth0 in", podUDP+" data ttl 64"),
				seesExactly(1, "any eth0 out", nodeUDP+" data ttl 63"),
				seesExactly(1, "any veth0 out", "udp "+farIP+":5300 > "+podIP+" data"),
			},
			want: verdict(podUDP, "node-snated", "answered", "none", "").everywhere(nodeUDP, "none"),
		},
		{
			name: "udp-kept", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "UDP with the Pod's own address, answered.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepDefault...)
				l.routeBack()
				l.far.serveUDP(farIP+":5300", false)
				capture()
				l.expect(l.pod.udp(farIP+":5300", waitBrief), endCompleted, "the Pod's datagram")
			},
			shows: []sight{
				seesExactly(1, "any eth0 out", podUDP+" data ttl 63"),
				seesExactly(1, "any veth0 out", "udp "+farIP+":5300 > "+podIP+" data"),
			},
			want: verdict(podUDP, "pod-sourced", "answered", "none", "").everywhere(podUDP, "none"),
		},
		{
			name: "udp-silent", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "UDP to a server that reads and does not answer.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.far.serveUDP(farIP+":5300", true)
				capture()
				l.expect(l.pod.udp(farIP+":5300", 1500*time.Millisecond), endTimeout, "the Pod's datagram")
			},
			shows: []sight{
				seesExactly(1, "any eth0 out", nodeUDP+" data ttl 63"),
				seesExactly(1, "far", nodeUDP+" data"),
				seesNone("any", "udp "+farIP+":5300 > *"),
				seesNone("any", "icmp "+farIP+" > *"),
			},
			want: verdict(podUDP, "node-snated", "request-only", "unknown", "").everywhereSilent(nodeUDP, "unknown"),
		},
		{
			name: "udp-closed", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "UDP to a closed port: the far host says port unreachable.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				capture()
				l.expect(l.pod.udp(farIP+":5300", waitBrief), endRefused, "the Pod's datagram")
			},
			shows: []sight{
				seesExactly(1, "any eth0 out", nodeUDP+" data ttl 63"),
				seesExactly(1, "any eth0 in", "icmp "+farIP+" > "+nodeIP+" 3/3"),
				seesExactly(1, "any veth0 out", "icmp "+farIP+" > "+podIP+" 3/3"),
			},
			want: verdict(podUDP, "node-snated", "rejected", "none", "").everywhereSilent(nodeUDP, "none"),
		},
	}
}

// ipv6Scenarios repeat the main ones over IPv6, which has no IP identification to join by.
func ipv6Scenarios() []scenario {
	const filter = "host " + farIP6
	answered := func(l *lab, capture func()) {
		l.masq(true, keepNarrowed...)
		l.far.serveTCP(server6)
		capture()
		l.expect(l.pod.ping(farIP6, waitBrief), endCompleted, "the Pod's ping")
		l.expect(l.pod.tcp(server6, waitBrief), endCompleted, "the Pod's request")
	}
	snated := slices.Concat(
		verdict(podTCP6, "node-snated", "handshake-completed", "none", "true").everywhere(nodeTCP6, "none"),
		verdict(podEcho6, "node-snated", "answered", "none", "").everywhere(nodeEcho6, "none"),
	)
	return []scenario{
		{
			name: "ipv6-kept", kind: bridged, filter: filter, facts: nodeFacts6,
			about: "IPv6: the Pod's address is kept and the far side has no way back to it.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepDefault...)
				l.far.serveTCP(server6)
				capture()
				l.expect(l.pod.ping(farIP6, 300*time.Millisecond), endTimeout, "the Pod's ping")
				l.expect(l.pod.tcp(server6, waitSilence), endTimeout, "the Pod's request")
			},
			shows: []sight{
				seesExactly(3, "any veth0 in", podTCP6+" S ttl 64"),
				seesExactly(3, "any eth0 out", podTCP6+" S ttl 63"),
				seesExactly(1, "any eth0 out", podEcho6+" 128/0 ttl 63"),
				seesNone("any", "tcp "+server6+" > *"),
				seesAtLeast(3, "far", "tcp "+server6+" > "+podIP6+" SA"),
				seesAtLeast(3, "far", "icmp6 "+routerFar6+" > "+farIP6+" 1/0"),
			},
			want: slices.Concat(
				verdict(podTCP6, "pod-sourced", "request-only", "unknown", "false").everywhere(podTCP6, "return"),
				verdict(podEcho6, "pod-sourced", "request-only", "unknown", "").everywhere(podEcho6, "return"),
			),
		},
		{
			name: "ipv6-snat", kind: bridged, filter: filter, facts: nodeFacts6,
			about: "IPv6: ping and request are translated to the node's address with identifier and port of the kernel's choice.",
			run:   answered,
			shows: []sight{
				seesExactly(1, "any veth0 in", podTCP6+" S ttl 64"),
				seesExactly(1, "any eth0 out", nodeTCP6+" S ttl 63"),
				seesNone("any eth0 out", "tcp "+podIP6+" > *"),
				seesExactly(1, "any eth0 out", nodeEcho6+" 128/0 ttl 63"),
				seesExactly(1, "any veth0 out", "icmp6 "+farIP6+" > "+podIP6+" 129/0"),
				sees("any veth0 out", "tcp "+server6+" > "+podIP6+" A data"),
			},
			check: echoIdentifierChanged,
			want:  snated,
		},
		{
			name: "ipv6-snat-routed", kind: routed, filter: filter, facts: nodeFacts6,
			about: "IPv6: ping and request are translated to the node's address, the Pod hangs on a routed link.",
			run:   answered,
			shows: []sight{
				seesExactly(1, "any "+podLinkRouted+" in", podTCP6+" S ttl 64"),
				seesExactly(1, "any eth0 out", nodeTCP6+" S ttl 63"),
				sees("any "+podLinkRouted+" out", "tcp "+server6+" > "+podIP6+" A data"),
			},
			want: snated,
		},
		{
			name: "ipv6-rejected-by-router", kind: bridged, filter: filter + " or icmp6", facts: nodeFacts6,
			about: "IPv6: a router between prohibits the server's port and says so by ICMPv6.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.rtr.ip6tables("-A FORWARD -d " + farIP6 + " -p tcp --dport 80 -j REJECT --reject-with icmp6-adm-prohibited")
				capture()
				l.expect(l.pod.tcp(server6, waitError), endUnreachable, "the Pod's request")
			},
			shows: []sight{
				seesAtLeast(1, "any eth0 out", nodeTCP6+" S ttl 63"),
				seesAtLeast(1, "any eth0 in", "icmp6 "+routerIP6+" > "+nodeIP6+" 1/1"),
				seesAtLeast(1, "any veth0 out", "icmp6 "+routerIP6+" > "+podIP6+" 1/1"),
			},
			want: verdict(podTCP6, "node-snated", "rejected", "between", "false").everywhereSilent(nodeTCP6, "between"),
		},
	}
}

// serviceScenarios address a ClusterIP, which the node turns into the backend's address.
func serviceScenarios() []scenario {
	const (
		filter = "host " + serviceIP + " or host " + farIP
		podSvc = "tcp " + podIP + " > " + serviceIP + ":80"
	)
	facts := slices.Concat(nodeFacts, []string{"--service-cidr", "10.96.0.0/16"})
	through := func(prepare func(*lab)) func(*lab, func()) {
		return func(l *lab, capture func()) {
			prepare(l)
			l.serviceDNAT()
			l.far.serveTCP(server)
			capture()
			l.expect(l.pod.tcp(serviceIP+":80", waitBrief), endCompleted, "the Pod's request")
		}
	}
	// Inside the Pod and on the node's uplink a service request has different servers.
	seen := func(source, egress string) []labWant {
		w := verdict(podSvc, source, "handshake-completed", "none", "true")
		return w.everywhere(egress, "none")
	}
	return []scenario{
		{
			name: "service-snat", kind: bridged, filter: filter, facts: facts,
			about: "A ClusterIP's request: the destination is translated before the bridge (br_netfilter), the source on the way out.",
			run:   through(func(l *lab) { l.masq(true, keepNarrowed...) }),
			shows: []sight{
				seesExactly(1, "any veth0 in", podSvc+" S ttl 64"),
				seesExactly(1, "any cbr0 in", podTCP+" S ttl 64"),
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesNone("any eth0 out", "tcp * > "+serviceIP+":80"),
				sees("any veth0 out", "tcp "+serviceIP+":80 > "+podIP+" A data"),
			},
			want: seen("node-snated", nodeTCP),
		},
		{
			name: "service-kept", kind: bridged, filter: filter, facts: facts,
			about: "A ClusterIP's request: the destination is translated, the Pod's address is kept and answered.",
			run:   through(func(l *lab) { l.masq(true, keepDefault...); l.routeBack() }),
			shows: []sight{
				seesExactly(1, "any veth0 in", podSvc+" S ttl 64"),
				seesExactly(1, "any eth0 out", podTCP+" S ttl 63"),
				sees("any veth0 out", "tcp "+serviceIP+":80 > "+podIP+" A data"),
			},
			want: seen("pod-sourced", podTCP),
		},
		{
			name: "service-snat-behind-bridge", kind: bridged, filter: filter, facts: facts,
			about: "A ClusterIP's request on a node where bridged packets do not pass the rules: the bridge still shows the ClusterIP.",
			run: through(func(l *lab) {
				l.node.optionalSysctl("net.bridge.bridge-nf-call-iptables=0")
				l.masq(true, keepNarrowed...)
			}),
			shows: []sight{
				seesExactly(1, "any veth0 in", podSvc+" S ttl 64"),
				seesExactly(1, "any cbr0 in", podSvc+" S ttl 64"),
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				sees("any veth0 out", "tcp "+serviceIP+":80 > "+podIP+" A data"),
			},
			want: seen("node-snated", nodeTCP),
		},
		{
			name: "service-snat-routed", kind: routed, filter: filter, facts: facts,
			about: "A ClusterIP's request, the Pod hangs on a routed link.",
			run:   through(func(l *lab) { l.masq(true, keepNarrowed...) }),
			shows: []sight{
				seesExactly(1, "any "+podLinkRouted+" in", podSvc+" S ttl 64"),
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				sees("any "+podLinkRouted+" out", "tcp "+serviceIP+":80 > "+podIP+" A data"),
			},
			want: seen("node-snated", nodeTCP),
		},
	}
}

// connectionScenarios are about connections that the capture does not see whole, or that lose packets.
func connectionScenarios() []scenario {
	snated := verdict(podTCP, "node-snated", "handshake-completed", "none", "true")
	midstream := verdict(podTCP, "node-snated", "midstream", "none", "")
	oldMapping := verdict(podTCP2, "pod-sourced", "midstream", "none", "")
	stalled := verdict(podTCP, "node-snated", "handshake-completed", "none", "false")
	return []scenario{
		{
			name: "midstream", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The capture begins on an open, translated connection: data both ways, no opening.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.far.serveTCP(server)
				l.expect(l.pod.open(server, waitBrief), endCompleted, "the opening")
				l.expect(l.pod.send(server, 100, waitBrief), endCompleted, "data before the capture")
				capture()
				for range 3 {
					l.expect(l.pod.send(server, 100, waitBrief), endCompleted, "data in the capture")
				}
			},
			shows: []sight{
				seesNone("any", podTCP+" S"),
				seesAtLeast(3, "any veth0 in", podTCP+" A data"),
				seesAtLeast(3, "any eth0 out", nodeTCP+" A data"),
				seesAtLeast(3, "any veth0 out", "tcp "+server+" > "+podIP+" A data"),
			},
			want: midstream.everywhere(nodeTCP, "none"),
		},
		{
			name: "old-mapping", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The rules change under an open connection: it keeps the Pod's address, a new one is translated.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepDefault...)
				l.routeBack()
				l.far.serveTCP(server, server2)
				l.expect(l.pod.open(server2, waitBrief), endCompleted, "the opening under the old rules")
				l.masq(true, keepNarrowed...)
				capture()
				l.expect(l.pod.send(server2, 100, waitBrief), endCompleted, "data on the old connection")
				l.expect(l.pod.tcp(server, waitBrief), endCompleted, "the new request")
				l.expect(l.pod.send(server2, 100, waitBrief), endCompleted, "more data on the old connection")
			},
			shows: []sight{
				seesAtLeast(2, "any eth0 out", podTCP2+" A data"),
				seesNone("any", podTCP2+" S"),
				seesNone("any eth0 out", "tcp "+nodeIP+" > "+server2),
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
			},
			want: slices.Concat(oldMapping.everywhere(podTCP2, "none"), snated.everywhere(nodeTCP, "none")),
		},
		{
			name: "first-syn-lost", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The first SYN is lost on the way, its repetition is answered.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.rtr.iptables("-A FORWARD -p tcp --dport 80 --syn -m limit --limit 1/hour --limit-burst 1 -j DROP")
				l.far.serveTCP(server)
				capture()
				l.expect(l.pod.tcp(server, 3*time.Second), endCompleted, "the Pod's request")
			},
			shows: []sight{
				seesExactly(2, "any veth0 in", podTCP+" S"),
				seesExactly(2, "any eth0 out", nodeTCP+" S"),
				seesExactly(1, "far", nodeTCP+" S"),
				seesExactly(1, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
			},
			want: snated.everywhere(nodeTCP, "none"),
		},
		{
			name: "data-lost", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A data segment is lost on the way and repeated.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.rtr.iptables("-A FORWARD -p tcp --dport 80 -m length --length 500:1500 -m limit --limit 1/hour --limit-burst 1 -j DROP")
				l.far.serveTCP(server)
				capture()
				l.expect(l.pod.open(server, waitBrief), endCompleted, "the opening")
				l.expect(l.pod.send(server, 700, waitSilence), endCompleted, "the data")
				l.pod.hangUp(server)
			},
			shows: []sight{
				seesAtLeast(2, "any eth0 out", nodeTCP+" A data"),
				seesExactly(1, "far", nodeTCP+" A data"),
			},
			check: func(t labT, frames []labFrame) {
				seqs := map[uint32]int{}
				s := sees("any eth0 out", nodeTCP+" A data")
				for i := range frames {
					if f := &frames[i]; s.matches(f) {
						seqs[f.seq]++
					}
				}
				for _, n := range seqs {
					if n > 1 {
						return
					}
				}
				t.Fatalf("no data segment left the node twice: %v", seqs)
			},
			want: snated.everywhere(nodeTCP, "none"),
		},
		{
			name: "data-stalled", kind: bridged, filter: hostICMPFilter, facts: nodeFacts,
			about: "Large segments disappear on the way without a word: a handshake, then a segment that is never acknowledged.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.rtr.iptables("-A FORWARD -p tcp --dport 80 -m length --length 1000:65535 -j DROP")
				l.far.serveTCP(server)
				capture()
				l.expect(l.pod.open(server, waitBrief), endCompleted, "the opening")
				l.expect(l.pod.send(server, 1400, waitSilence), endTimeout, "the data")
			},
			shows: []sight{
				seesExactly(1, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
				seesAtLeast(3, "any eth0 out", nodeTCP+" A data"),
				seesNone("far", nodeTCP+" A data"),
				seesNone("any", "icmp * > *"),
			},
			want: stalled.seenIn("any", "all"),
		},
		{
			name: "mtu", kind: bridged, filter: hostICMPFilter, facts: nodeFacts,
			about: "A link on the way has a smaller MTU, the router says so by ICMP, and the sender sends smaller segments.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.rtr.ip("route replace 10.20.0.0/24 dev o0 src " + routerFar + " mtu 1300")
				l.far.serveTCP(server)
				capture()
				l.expect(l.pod.open(server, waitBrief), endCompleted, "the opening")
				l.expect(l.pod.send(server, 1400, waitSilence), endCompleted, "the data")
				l.pod.hangUp(server)
			},
			shows: []sight{
				seesAtLeast(1, "any eth0 in", "icmp "+routerIP+" > "+nodeIP+" 3/4"),
				seesAtLeast(1, "any veth0 out", "icmp "+routerIP+" > "+podIP+" 3/4"),
				sees("any veth0 out", "tcp "+server+" > "+podIP+" A data"),
			},
			want: snated.everywhere(nodeTCP, "none"),
		},
	}
}

// localScenarios never leave the node, or come from outside.
func localScenarios() []scenario {
	const podServer = podIP + ":8080"
	stays := func(request string, captures ...string) []labWant {
		w := labWant{
			request: request, direction: "local", source: []string{"local"}, outcome: "handshake-completed",
			stoppedAt: []string{"none", "unknown"}, completed: "true",
		}
		return w.seenIn(captures...)
	}
	podToPod := func(l *lab, capture func()) {
		l.addPod2()
		l.masq(true, keepNarrowed...)
		l.pod2.serveTCP(pod2IP + ":8080")
		capture()
		l.expect(l.pod.tcp(pod2IP+":8080", waitBrief), endCompleted, "Pod to Pod")
	}
	return []scenario{
		{
			name: "pod-to-pod", kind: bridged, filter: "host " + podIP, facts: localFacts,
			about: "Two Pods on one bridge: the frames pass from link to link and never leave the node.",
			run:   podToPod,
			shows: []sight{
				seesExactly(1, "any veth0 in", "tcp "+podIP+" > "+pod2IP+":8080 S ttl 64"),
				seesExactly(1, "any veth1 out", "tcp "+podIP+" > "+pod2IP+":8080 S ttl 64"),
				seesNone("uplink", "tcp * > *"),
				sees("any veth0 out", "tcp "+pod2IP+":8080 > "+podIP+" A data"),
			},
			want: stays("tcp "+podIP+" > "+pod2IP+":8080", "any", "all"),
		},
		{
			name: "pod-to-pod-routed", kind: routed, filter: "host " + podIP, facts: nodeFacts,
			about: "Two Pods on routed links of one node: the packets are forwarded and never leave the node.",
			run:   podToPod,
			shows: []sight{
				seesExactly(1, "any "+podLinkRouted+" in", "tcp "+podIP+" > "+pod2IP+":8080 S ttl 64"),
				seesExactly(1, "any "+pod2LinkRouted+" out", "tcp "+podIP+" > "+pod2IP+":8080 S ttl 63"),
				seesNone("uplink", "tcp * > *"),
				sees("any "+podLinkRouted+" out", "tcp "+pod2IP+":8080 > "+podIP+" A data"),
			},
			want: stays("tcp "+podIP+" > "+pod2IP+":8080", "any", "all"),
		},
		{
			name: "pod-to-node", kind: bridged, filter: "host " + podIP, facts: localFacts,
			about: "The Pod's request to its node's own address: the agent's rules leave local destinations alone.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.node.serveTCP(nodeIP + ":9100")
				capture()
				l.expect(l.pod.tcp(nodeIP+":9100", waitBrief), endCompleted, "Pod to node")
			},
			shows: []sight{
				seesExactly(1, "any veth0 in", "tcp "+podIP+" > "+nodeIP+":9100 S ttl 64"),
				seesNone("uplink", "tcp * > *"),
				sees("any veth0 out", "tcp "+nodeIP+":9100 > "+podIP+" A data"),
			},
			want: stays("tcp "+podIP+" > "+nodeIP+":9100", "any", "all"),
		},
		{
			name: "probe", kind: bridged, filter: "host " + podIP, facts: localFacts,
			about: "The node's probe of a Pod, from the bridge's address.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.pod.serveTCP(podServer)
				capture()
				l.expect(l.node.tcp(podServer, waitBrief), endCompleted, "node to Pod")
			},
			shows: []sight{
				seesExactly(1, "any veth0 out", "tcp "+bridgeIP+" > "+podServer+" S ttl 64"),
				seesNone("uplink", "tcp * > *"),
				sees("any veth0 in", "tcp "+podServer+" > "+bridgeIP+" A data"),
			},
			want: stays("tcp "+bridgeIP+" > "+podServer, "any", "all"),
		},
		{
			name: "inbound", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The far host's request to a Pod: it is not the cluster's, and nothing is translated.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepDefault...)
				l.routeBack()
				l.pod.serveTCP(podServer)
				capture()
				l.expect(l.far.tcp(podServer, waitBrief), endCompleted, "far host to Pod")
			},
			shows: []sight{
				seesExactly(1, "any eth0 in", "tcp "+farIP+" > "+podServer+" S ttl 63"),
				seesExactly(1, "any veth0 out", "tcp "+farIP+" > "+podServer+" S ttl 62"),
				sees("any eth0 out", "tcp "+podServer+" > "+farIP+" SA"),
				sees("any eth0 out", "tcp "+podServer+" > "+farIP+" A data"),
			},
			want: labWant{
				request: "tcp " + farIP + " > " + podServer, direction: "inbound", source: []string{"other-sourced"},
				outcome: "handshake-completed", stoppedAt: []string{"none"}, completed: "true",
			}.seenIn("any", "all"),
		},
	}
}

// echoIdentifierChanged checks that a translated ping left with another identifier than it came with: no sight can
// compare two frames.
func echoIdentifierChanged(t labT, frames []labFrame) {
	var before, after []uint16
	for _, f := range frames {
		switch {
		case f.icmp != "8/0" && f.icmp != "128/0":
		case f.dir == "out":
			after = append(after, f.echo)
		default:
			before = append(before, f.echo)
		}
	}
	if len(before) == 0 || len(after) == 0 || slices.ContainsFunc(after, func(id uint16) bool { return slices.Contains(before, id) }) {
		t.Fatalf("echo identifiers %d on the Pod's side, %d as they left: want others", before, after)
	}
}
