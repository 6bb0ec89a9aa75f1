package main

import (
	"slices"
	"time"
)

// pathScenarios are about what lies between the node and the far host, as the node's capture and the far host's show it
// together: devices that translate again, answer in the server's name, end connections, drop in one direction or the other.
func pathScenarios() []scenario {
	return slices.Concat(deviceScenarios(), middleboxScenarios(), overlayScenarios(), translatorScenarios(), returnScenarios(),
		silentDatagramScenarios(), ipv6PathScenarios())
}

const (
	toServer   = " -d " + farIP + " -p tcp --dport 80 "
	fromServer = " -s " + farIP + " -p tcp --sport 80 "

	udpServer = farIP + ":5300"
	nodeTCP2  = "tcp " + nodeIP + " > " + server2
	server62  = "[" + farIP6 + "]:8080"
	podTCP62  = "tcp " + podIP6 + " > " + server62
)

// amid makes a request between two others of the Pod to server2 that complete: what then is missing was not missing for
// want of a running capture, and the clocks can be held against each other.
func amid(prepare, request func(*lab)) func(*lab, func()) {
	return func(l *lab, capture func()) {
		l.masq(true, keepNarrowed...)
		prepare(l)
		l.far.serveTCP(server, server2)
		capture()
		l.expect(l.pod.tcp(server2, waitBrief), endCompleted, "the Pod's other request")
		request(l)
		l.expect(l.pod.tcp(server2, waitBrief), endCompleted, "the Pod's other request, again")
	}
}

// ends is a request to server that ends as told.
func ends(end string, wait time.Duration) func(*lab) {
	return func(l *lab) { l.expect(l.pod.tcp(server, wait), end, "the Pod's request") }
}

// withPing adds the node's ping: without it all that a far capture holds may be one port's, and it covers no other.
func withPing(request func(*lab)) func(*lab) {
	return func(l *lab) {
		l.expect(l.node.ping(farIP, waitBrief), endCompleted, "the node's ping")
		request(l)
	}
}

// opensOnly is a connection to server that opens, and then gives no answer.
func opensOnly(l *lab) {
	l.expect(l.pod.open(server, waitBrief), endCompleted, "the opening")
	l.expect(l.pod.send(server, 100, waitSilence), endTimeout, "the data")
}

// others are the sights of amid's other requests, which nothing on the way changes.
func others(s ...sight) []sight {
	return append(s,
		seesExactly(2, "any veth0 in", podTCP2+" S"),
		sees("any veth0 out", "tcp "+server2+" > "+podIP+" A data"),
		seesExactly(2, "far", "tcp * > "+server2+" S"),
	)
}

// deviceScenarios change packets on the way, and pass them on.
func deviceScenarios() []scenario {
	snated := verdict(podTCP, "node-snated", "handshake-completed", "none", "true").everywhere(nodeTCP, "none")
	// Answers with an initial TTL come from a neighbour: on the uplink alone that may be a capture behind the node's router.
	neighbourly := func(wants []labWant) []labWant {
		wants = slices.Clone(wants)
		for i := range wants {
			if wants[i].near == "uplink" {
				wants[i].source = []string{"unknown"}
			}
		}
		return wants
	}
	answered := func(prepare func(*lab), n int) func(*lab, func()) {
		return func(l *lab, capture func()) {
			l.masq(true, keepNarrowed...)
			prepare(l)
			l.far.serveTCP(server)
			capture()
			l.expect(l.pod.open(server, waitBrief), endCompleted, "the opening")
			l.expect(l.pod.send(server, n, waitBrief), endCompleted, "the data")
			l.pod.hangUp(server)
		}
	}
	return []scenario{
		{
			name: "mss-clamp", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A router clamps the MSS of SYN and SYN-ACK, so that the two sides show different options and different segments.",
			run: answered(func(l *lab) {
				l.need(l.rtr, "TCPMSS", "-t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1000")
			}, 20_000),
			shows: []sight{
				seesExactly(1, "any eth0 out", nodeTCP+" S mss 1460"),
				seesExactly(1, "far", nodeTCP+" S mss 1000"),
				seesExactly(1, "far", "tcp "+server+" > "+nodeIP+" SA mss 1460"),
				seesExactly(1, "any veth0 out", "tcp "+server+" > "+podIP+" SA mss 1000"),
			},
			want: snated,
		},
		{
			name: "ttl-rewritten", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A router sets the TTL of all that it forwards to an initial value, in both directions.",
			run: answered(func(l *lab) {
				l.need(l.rtr, "TTL", "-t mangle -A FORWARD -j TTL --ttl-set 64")
			}, 100),
			shows: []sight{
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(1, "far", nodeTCP+" S ttl 64"),
				seesExactly(1, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA ttl 64"),
			},
			want: neighbourly(snated),
		},
		{
			name: "timestamps-stripped", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A firewall strips the TCP timestamps: the far side's SYN has none to compare.",
			run: answered(func(l *lab) {
				l.need(l.rtr, "TCPOPTSTRIP", "-t mangle -A FORWARD -p tcp -j TCPOPTSTRIP --strip-options timestamp")
			}, 100),
			shows: []sight{
				seesExactly(1, "any eth0 out", nodeTCP+" S timestamp"),
				seesExactly(1, "far", nodeTCP+" S"),
				seesNone("far", nodeTCP+" S timestamp"),
			},
			want: snated,
		},
		{
			name: "duplicated", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A router sends everything on twice, to the far host and to the node: the copies are one transmission.",
			run: answered(func(l *lab) {
				l.need(l.rtr, "TEE", "-t mangle -A FORWARD -o o0 -j TEE --gateway "+farIP)
				l.need(l.rtr, "TEE", "-t mangle -A FORWARD -o n0 -j TEE --gateway "+nodeIP)
			}, 100),
			shows: []sight{
				seesExactly(1, "any eth0 out", nodeTCP+" S"),
				seesExactly(2, "far", nodeTCP+" S"),
				seesAtLeast(2, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
			},
			want: snated,
		},
	}
}

// middleboxScenarios answer in the server's name.
func middleboxScenarios() []scenario {
	const toProxy = "-t nat -A PREROUTING -i n0" + toServer + "-j REDIRECT --to-ports 3128"
	proxied := func(completed string) []labWant {
		return verdict(podTCP, "node-snated", "handshake-completed", "none", completed).everywhere(nodeTCP, "none")
	}
	synproxy := func(l *lab) {
		// As in the module's documentation: the SYN is not tracked, and what then follows is invalid until SYNPROXY has it.
		l.rtr.sysctl("net.netfilter.nf_conntrack_tcp_loose=0")
		l.rtr.iptables("-t raw -A PREROUTING -i n0" + toServer + "--syn -j CT --notrack")
		l.need(l.rtr, "SYNPROXY", "-A FORWARD -i n0"+toServer+"-m conntrack --ctstate INVALID,UNTRACKED -j SYNPROXY --sack-perm --timestamp --wscale 7 --mss 1460")
		l.rtr.iptables("-A FORWARD -i n0" + toServer + "-m conntrack --ctstate INVALID -j DROP")
	}
	return []scenario{
		{
			name: "proxy", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A transparent proxy on the router ends the connection and opens its own to the far host, from the router's address.",
			run: amid(func(l *lab) {
				l.rtr.proxyTCP(":3128", server)
				l.rtr.iptables(toProxy)
			}, ends(endCompleted, waitBrief)),
			shows: others(
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesNone("far", nodeTCP),
				seesExactly(1, "far", "tcp "+routerFar+" > "+server+" S"),
				sees("far", "tcp "+routerFar+" > "+server+" A data"),
				sees("any veth0 out", "tcp "+server+" > "+podIP+" A data"),
			),
			want: proxied("true"),
		},
		{
			name: "proxy-as-client", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A transparent proxy on the router opens its own connection with the client's address and port: to the far host it looks like the client.",
			run: amid(func(l *lab) {
				l.rtr.ip("rule add fwmark 1 lookup 100", "route add local default dev lo table 100")
				l.need(l.rtr, "TPROXY", "-t mangle -A PREROUTING -i n0"+toServer+"-j TPROXY --on-port 3128 --tproxy-mark 1")
				l.rtr.iptables("-t mangle -A PREROUTING -i o0" + fromServer + "-j MARK --set-mark 1")
				l.rtr.proxyAsClient("0.0.0.0:3128", server)
			}, ends(endCompleted, waitBrief)),
			shows: others(
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(1, "far", nodeTCP+" S ttl 64"),
				sees("any veth0 out", "tcp "+server+" > "+podIP+" A data"),
			),
			want: proxied("true"),
		},
		{
			name: "proxy-far-silent", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A transparent proxy on the router ends the connection, and the far host does not answer the one that it opens.",
			run: amid(func(l *lab) {
				l.rtr.proxyTCP(":3128", server)
				l.rtr.iptables(toProxy)
				l.far.iptables("-A INPUT" + toServer + "-j DROP")
			}, opensOnly),
			shows: others(
				seesExactly(1, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
				seesNone("far", nodeTCP),
				seesAtLeast(2, "far", "tcp "+routerFar+" > "+server+" S"),
				seesNone("far", "tcp "+server+" > *"),
			),
			// What the far capture holds of the proxy carries no payload: it may be the proxy's, or any other client's.
			want: verdict(podTCP, "node-snated", "handshake-completed", "none", "false").everywhere(nodeTCP, "unknown"),
		},
		{
			name: "synproxy", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A SYN proxy on the router answers the SYN itself, and opens the connection to the far host once the client has acknowledged.",
			run:   amid(synproxy, ends(endCompleted, waitSilence)),
			shows: others(
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				// Twice where the client's data overtakes the far host's answer: SYNPROXY then opens again (ipv4_synproxy_hook,
				// TCP_CONNTRACK_SYN_SENT), and lets the second answer pass.
				seesAtLeast(1, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
				seesAtLeast(1, "far", nodeTCP+" S"),
				sees("any veth0 out", "tcp "+server+" > "+podIP+" A data"),
			),
			want: proxied("true"),
		},
		{
			name: "synproxy-dropped", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A SYN proxy on the router answers the SYN itself; what it then sends towards the far host is lost.",
			run: amid(func(l *lab) {
				synproxy(l)
				l.rtr.iptables("-A OUTPUT -o o0" + toServer + "-j DROP")
			}, withPing(opensOnly)),
			shows: others(
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(1, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
				seesNone("far", "tcp * > "+server),
			),
			want: verdict(podTCP, "node-snated", "handshake-completed", "none", "false").everywhere(nodeTCP, "between"),
		},
		{
			name: "synproxy-far-silent", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A SYN proxy on the router answers the SYN itself, and the far host does not answer what it then sends.",
			run: amid(func(l *lab) {
				synproxy(l)
				l.far.iptables("-A INPUT" + toServer + "-j DROP")
			}, opensOnly),
			shows: others(
				seesExactly(1, "any eth0 in", "tcp "+server+" > "+nodeIP+" SA"),
				seesAtLeast(1, "far", nodeTCP+" S"),
				seesNone("far", "tcp "+server+" > *"),
			),
			want: verdict(podTCP, "node-snated", "handshake-completed", "none", "false").everywhere(nodeTCP, "far"),
		},
		{
			name: "reset-between", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A firewall on the way refuses the request with a reset in the server's name.",
			run: amid(func(l *lab) {
				l.rtr.iptables("-A FORWARD" + toServer + "-j REJECT --reject-with tcp-reset")
			}, withPing(ends(endRefused, waitBrief))),
			shows: others(
				seesExactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(1, "any eth0 in", "tcp "+server+" > "+nodeIP+" AR"),
				seesExactly(1, "any veth0 out", "tcp "+server+" > "+podIP+" AR"),
				seesNone("far", nodeTCP),
			),
			want: verdict(podTCP, "node-snated", "refused", "none", "false").everywhere(nodeTCP, "between"),
		},
	}
}

// overlayScenarios have a VXLAN tunnel between node and router: the uplink carries the node's UDP alone, and the requests
// inside it.
func overlayScenarios() []scenario {
	const (
		filter   = hostFilter + " or udp port 4789"
		egress   = "tcp " + overlayIP + " > " + server
		egress2  = "tcp " + overlayIP + " > " + server2
		carrier  = "udp " + nodeIP + " > " + routerIP + ":4789 data"
		toPodIn  = "tcp " + server + " > " + podIP
		toNodeIn = "tcp " + server + " > " + overlayIP
	)
	facts := slices.Concat(nodeFacts, []string{"--node-ip", overlayIP})
	return []scenario{
		{
			name: "overlay", kind: bridged, filter: filter, facts: facts,
			about: "A VXLAN tunnel from the node to the router: the node translates to its address in the tunnel, and its uplink shows the request inside.",
			run:   amid(func(l *lab) { l.addOverlay() }, ends(endCompleted, waitBrief)),
			shows: others(
				seesExactly(1, "any vx0 out", egress+" S ttl 63"),
				sees("any eth0 out", carrier),
				seesNone("any eth0 out", "tcp * > *"),
				sees("any vx0 in", toNodeIn+" A data"),
				sees("any veth0 out", toPodIn+" A data"),
				seesExactly(1, "far", egress+" S"),
			),
			want: verdict(podTCP, "node-snated", "handshake-completed", "none", "true").everywhere(egress, "none"),
		},
		{
			name: "overlay-kept", kind: bridged, filter: filter, facts: facts,
			about: "A VXLAN tunnel from the node to the router: the Pod's address is kept, and the router has no way back to it.",
			run: func(l *lab, capture func()) {
				l.addOverlay()
				l.masq(false, keepDefault...)
				l.far.serveTCP(server)
				capture()
				l.expect(l.pod.tcp(server, waitSilence), endTimeout, "the Pod's request")
			},
			shows: []sight{
				seesExactly(3, "any vx0 out", podTCP+" S ttl 63"),
				seesAtLeast(3, "any eth0 out", carrier),
				seesNone("any", "tcp "+server+" > *"),
				seesAtLeast(3, "far", "icmp "+routerFar+" > "+farIP+" 3/0"),
			},
			want: verdict(podTCP, "pod-sourced", "request-only", "unknown", "false").everywhere(podTCP, "return"),
		},
		{
			name: "overlay-dropped", kind: bridged, filter: filter, facts: facts,
			about: "A VXLAN tunnel from the node to the router, which drops the requests to one port behind it.",
			run: amid(func(l *lab) {
				l.addOverlay()
				l.rtr.iptables("-A FORWARD" + toServer + "-j DROP")
			}, ends(endTimeout, waitSilence)),
			shows: others(
				seesExactly(3, "any vx0 out", egress+" S ttl 63"),
				seesExactly(2, "any vx0 out", egress2+" S ttl 63"),
				seesNone("far", egress),
			),
			want: verdict(podTCP, "node-snated", "request-only", "unknown", "false").everywhere(egress, "between"),
		},
	}
}

// translatorScenarios translate past the node: the source a second time, or the destination.
func translatorScenarios() []scenario {
	const (
		virtual     = virtualIP + ":80"
		podVirtual  = "tcp " + podIP + " > " + virtual
		nodeVirtual = "tcp " + nodeIP + " > " + virtual
		filter      = "host " + virtualIP + " or " + hostFilter
	)
	again := func(l *lab) { l.rtr.iptables("-t nat -A POSTROUTING -o o0 -j MASQUERADE --random-fully") }
	dnat := func(l *lab) {
		l.rtr.iptables("-t nat -A PREROUTING -d " + virtualIP + " -p tcp --dport 80 -j DNAT --to-destination " + server)
	}
	toVirtual := func(end string, wait time.Duration) func(*lab) {
		return func(l *lab) { l.expect(l.pod.tcp(virtual, wait), end, "the Pod's request") }
	}
	// The far host may be asked under its own address, or past a device that turns another into it.
	virtualWants := func(outcome, stoppedWithFar, completed, alone string) []labWant {
		return verdict(podVirtual, "node-snated", outcome, alone, completed).everywhere(nodeVirtual, stoppedWithFar)
	}
	return []scenario{
		{
			name: "kept-snat-past-node", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "The node keeps the Pod's address, and a router past it translates: the far host sees " + routerFar + ".",
			run: func(l *lab, capture func()) {
				l.masq(true, keepDefault...)
				l.routeBack()
				again(l)
				l.far.serveTCP(server)
				capture()
				l.expect(l.pod.tcp(server, waitBrief), endCompleted, "the Pod's request")
			},
			shows: []sight{
				seesExactly(1, "any eth0 out", podTCP+" S ttl 63"),
				seesExactly(1, "far", "tcp "+routerFar+" > "+server+" S"),
				seesNone("far", podTCP),
				sees("any veth0 out", "tcp "+server+" > "+podIP+" A data"),
			},
			want: verdict(podTCP, "pod-sourced", "handshake-completed", "none", "true").everywhere(podTCP, "none"),
		},
		{
			name: "snat-twice-silent", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "Node and router both translate, and the far host drops the requests to one port.",
			run: amid(func(l *lab) {
				again(l)
				l.far.iptables("-A INPUT" + toServer + "-j DROP")
			}, ends(endTimeout, waitSilence)),
			shows: others(
				seesExactly(3, "any eth0 out", nodeTCP+" S ttl 63"),
				seesExactly(3, "far", "tcp "+routerFar+" > "+server+" S"),
				seesNone("far", "tcp "+server+" > *"),
			),
			want: verdict(podTCP, "node-snated", "request-only", "unknown", "false").everywhere(nodeTCP, "far"),
		},
		{
			name: "snat-twice-dropped", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "Node and router both translate, and the router drops the requests to one port.",
			run: amid(func(l *lab) {
				again(l)
				l.rtr.iptables("-A FORWARD" + toServer + "-j DROP")
			}, ends(endTimeout, waitSilence)),
			shows: others(
				seesExactly(3, "any eth0 out", nodeTCP+" S ttl 63"),
				seesNone("far", "tcp * > "+server),
				seesNone("far", nodeTCP2),
			),
			want: verdict(podTCP, "node-snated", "request-only", "unknown", "false").everywhere(nodeTCP, "between"),
		},
		{
			name: "dnat-past-node", kind: bridged, filter: filter, facts: nodeFacts,
			about: "The Pod asks " + virtualIP + ", which a router past the node turns into the far host's address.",
			run:   amid(dnat, toVirtual(endCompleted, waitBrief)),
			shows: others(
				seesExactly(1, "any eth0 out", nodeVirtual+" S ttl 63"),
				seesExactly(1, "far", nodeTCP+" S"),
				sees("any veth0 out", "tcp "+virtual+" > "+podIP+" A data"),
			),
			want: virtualWants("handshake-completed", "none", "true", "none"),
		},
		{
			name: "dnat-past-node-silent", kind: bridged, filter: filter, facts: nodeFacts,
			about: "The Pod asks " + virtualIP + ", which a router past the node turns into the far host's address, and the far host drops the requests.",
			run: amid(func(l *lab) {
				dnat(l)
				l.far.iptables("-A INPUT" + toServer + "-j DROP")
			}, toVirtual(endTimeout, waitSilence)),
			shows: others(
				seesExactly(3, "any eth0 out", nodeVirtual+" S ttl 63"),
				seesExactly(3, "far", nodeTCP+" S"),
				seesNone("far", "tcp "+server+" > *"),
			),
			want: virtualWants("request-only", "far", "false", "unknown"),
		},
		{
			name: "dnat-past-node-dropped", kind: bridged, filter: filter, facts: nodeFacts,
			about: "The Pod asks " + virtualIP + ", which is the far host's for a router past the node, and that drops the requests: " +
				"the far capture holds no packet to the address asked, and proves nothing of it.",
			run: amid(func(l *lab) {
				dnat(l)
				l.rtr.iptables("-A FORWARD" + toServer + "-j DROP")
			}, toVirtual(endTimeout, waitSilence)),
			shows: others(
				seesExactly(3, "any eth0 out", nodeVirtual+" S ttl 63"),
				seesNone("far", "tcp * > "+server),
			),
			want: virtualWants("request-only", "unknown", "false", "unknown"),
		},
	}
}

// returnScenarios lose the answer on its way back.
func returnScenarios() []scenario {
	return []scenario{
		{
			name: "reply-at-other-node", kind: bridged, filter: hostFilter, facts: slices.Concat(nodeFacts, []string{"--node-ip", node2IP}),
			about: "The Pod's address is kept and answered, until the router sends the answers to another node, " + node2IP + ", which has no such Pod.",
			taps:  []labTap{{"node2", "any", hostFilter, func(l *lab) *labHost { return l.node2 }}},
			run: func(l *lab, capture func()) {
				l.masq(false, keepDefault...)
				l.routeBack()
				l.addNode2()
				l.far.serveTCP(server, server2)
				capture()
				l.expect(l.pod.tcp(server2, waitBrief), endCompleted, "the Pod's other request")
				l.rtr.ip("route replace " + podCIDR + " via " + node2IP)
				l.expect(l.pod.tcp(server, waitSilence), endTimeout, "the Pod's request")
				l.expect(l.node2.tcp(server2, waitBrief), endCompleted, "the other node's request")
				l.expect(l.node.tcp(server2, waitBrief), endCompleted, "the node's request")
			},
			shows: []sight{
				seesExactly(3, "any eth0 out", podTCP+" S ttl 63"),
				seesNone("any", "tcp "+server+" > *"),
				seesAtLeast(3, "far", "tcp "+server+" > "+podIP+" SA"),
				seesAtLeast(3, "node2", "tcp "+server+" > "+podIP+" SA"),
				seesNone("node2", podTCP),
				seesNone("far", "icmp * > "+farIP),
			},
			want: verdict(podTCP, "pod-sourced", "request-only", "unknown", "false").everywhere(podTCP, "return"),
		},
		{
			name: "return-rejected", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A router between prohibits the answers and says so to the far host by ICMP.",
			run: amid(func(l *lab) {
				l.rtr.iptables("-A FORWARD" + fromServer + "-j REJECT --reject-with icmp-admin-prohibited")
			}, ends(endTimeout, waitSilence)),
			shows: others(
				seesExactly(3, "any eth0 out", nodeTCP+" S ttl 63"),
				seesNone("any", "tcp "+server+" > *"),
				seesAtLeast(1, "far", "tcp "+server+" > "+nodeIP+" SA"),
				seesAtLeast(1, "far", "icmp "+routerFar+" > "+farIP+" 3/13"),
			),
			want: verdict(podTCP, "node-snated", "request-only", "unknown", "false").everywhere(nodeTCP, "return"),
		},
		{
			name: "return-reset", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A firewall on the way back refuses the answers with a reset in the client's name.",
			run: amid(func(l *lab) {
				l.rtr.iptables("-A FORWARD" + fromServer + "-j REJECT --reject-with tcp-reset")
			}, ends(endTimeout, waitSilence)),
			shows: others(
				seesExactly(3, "any eth0 out", nodeTCP+" S ttl 63"),
				seesNone("any", "tcp "+server+" > *"),
				seesNone("any", nodeTCP+" R"),
				seesAtLeast(1, "far", "tcp "+server+" > "+nodeIP+" SA"),
				seesAtLeast(1, "far", nodeTCP+" R"),
			),
			want: verdict(podTCP, "node-snated", "request-only", "unknown", "false").everywhere(nodeTCP, "return"),
		},
	}
}

// silentDatagramScenarios are ping and UDP without an answer, and the Pod's other traffic afterwards: nothing asks again
// here, and only what follows shows that the captures ran on.
func silentDatagramScenarios() []scenario {
	const udp = " -p udp --dport 5300 "
	silent := func(l *lab) {
		l.expect(l.pod.udp(udpServer, 1100*time.Millisecond), endTimeout, "the Pod's datagram")
		l.expect(l.pod.ping(farIP, 1100*time.Millisecond), endTimeout, "the Pod's ping")
	}
	wants := func(stoppedWithFar string) []labWant {
		return slices.Concat(
			verdict(podUDP, "node-snated", "request-only", "unknown", "").everywhere(nodeUDP, stoppedWithFar),
			verdict(podEcho, "node-snated", "request-only", "unknown", "").everywhere(nodeEcho, stoppedWithFar),
		)
	}
	left := func(s ...sight) []sight {
		return others(append(s,
			seesExactly(1, "any eth0 out", nodeUDP+" data ttl 63"),
			seesExactly(1, "any eth0 out", nodeEcho+" 8/0 ttl 63"),
			seesNone("any", "udp "+udpServer+" > *"),
			seesNone("any", "icmp "+farIP+" > *"),
		)...)
	}
	return []scenario{
		{
			name: "datagrams-silent", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A datagram to a server that reads and does not answer, and a ping to a host that answers none.",
			run: amid(func(l *lab) {
				l.far.serveUDP(udpServer, true)
				l.far.sysctl("net.ipv4.icmp_echo_ignore_all=1")
			}, silent),
			shows: left(
				seesExactly(1, "far", nodeUDP+" data"),
				seesExactly(1, "far", nodeEcho+" 8/0"),
				seesNone("far", "udp "+udpServer+" > *"),
				seesNone("far", "icmp "+farIP+" > *"),
			),
			want: wants("far"),
		},
		{
			name: "datagrams-dropped", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A datagram and a ping that a router between drops.",
			run: amid(func(l *lab) {
				l.far.serveUDP(udpServer, false)
				l.rtr.iptables("-A FORWARD -d " + farIP + udp + "-j DROP")
				l.rtr.iptables("-A FORWARD -d " + farIP + " -p icmp -j DROP")
			}, silent),
			shows: left(
				seesNone("far", nodeUDP),
				seesNone("far", nodeEcho+" 8/0"),
			),
			want: wants("between"),
		},
		{
			name: "datagrams-dropped-on-return", kind: bridged, filter: hostFilter, facts: nodeFacts,
			about: "A datagram and a ping whose answers a router between drops.",
			run: amid(func(l *lab) {
				l.far.serveUDP(udpServer, false)
				l.rtr.iptables("-A FORWARD -s " + farIP + " -p udp --sport 5300 -j DROP")
				l.rtr.iptables("-A FORWARD -s " + farIP + " -p icmp -j DROP")
			}, silent),
			shows: left(
				seesExactly(1, "far", "udp "+udpServer+" > "+nodeIP+" data"),
				seesExactly(1, "far", "icmp "+farIP+" > "+nodeIP+" 0/0"),
			),
			want: wants("return"),
		},
	}
}

// ipv6PathScenarios repeat the places where packets stop over IPv6.
func ipv6PathScenarios() []scenario {
	const (
		filter = "host " + farIP6
		to     = " -d " + farIP6 + " -p tcp --dport 80 "
		from   = " -s " + farIP6 + " -p tcp --sport 80 "
	)
	amid6 := func(prepare func(*lab), end string, wait time.Duration) func(*lab, func()) {
		return func(l *lab, capture func()) {
			l.masq(true, keepNarrowed...)
			prepare(l)
			l.far.serveTCP(server6, server62)
			capture()
			l.expect(l.pod.tcp(server62, waitBrief), endCompleted, "the Pod's other request")
			l.expect(l.pod.tcp(server6, wait), end, "the Pod's request")
			l.expect(l.pod.tcp(server62, waitBrief), endCompleted, "the Pod's other request, again")
		}
	}
	left := func(s ...sight) []sight {
		return append(s,
			seesExactly(3, "any veth0 in", podTCP6+" S ttl 64"),
			seesExactly(3, "any eth0 out", nodeTCP6+" S ttl 63"),
			seesExactly(2, "any veth0 in", podTCP62+" S"),
			seesExactly(2, "far", "tcp "+nodeIP6+" > "+server62+" S"),
		)
	}
	silent := func(stoppedWithFar string) []labWant {
		return verdict(podTCP6, "node-snated", "request-only", "unknown", "false").everywhere(nodeTCP6, stoppedWithFar)
	}
	return []scenario{
		{
			name: "ipv6-dropped-between", kind: bridged, filter: filter, facts: nodeFacts6,
			about: "IPv6: a router between drops the requests without a word; others to the same server pass it.",
			run:   amid6(func(l *lab) { l.rtr.ip6tables("-A FORWARD" + to + "-j DROP") }, endTimeout, waitSilence),
			shows: left(seesNone("far", nodeTCP6)),
			want:  silent("between"),
		},
		{
			name: "ipv6-dropped-at-far", kind: bridged, filter: filter, facts: nodeFacts6,
			about: "IPv6: the far host drops the requests without a word.",
			run:   amid6(func(l *lab) { l.far.ip6tables("-A INPUT" + to + "-j DROP") }, endTimeout, waitSilence),
			shows: left(seesExactly(3, "far", nodeTCP6+" S"), seesNone("far", "tcp "+server6+" > *")),
			want:  silent("far"),
		},
		{
			name: "ipv6-dropped-on-return", kind: bridged, filter: filter, facts: nodeFacts6,
			about: "IPv6: a router between drops the answers without a word.",
			run:   amid6(func(l *lab) { l.rtr.ip6tables("-A FORWARD" + from + "-j DROP") }, endTimeout, waitSilence),
			shows: left(seesAtLeast(3, "far", "tcp "+server6+" > "+nodeIP6+" SA"), seesNone("any", "tcp "+server6+" > *")),
			want:  silent("return"),
		},
		{
			name: "ipv6-timestamps-stripped", kind: bridged, filter: filter, facts: nodeFacts6,
			about: "IPv6: a firewall strips the TCP timestamps, and there is no IP identification: the initial sequence number alone is left to join by.",
			run: amid6(func(l *lab) {
				l.need6(l.rtr, "TCPOPTSTRIP", "-t mangle -A FORWARD -p tcp -j TCPOPTSTRIP --strip-options timestamp")
			}, endCompleted, waitBrief),
			shows: []sight{
				seesExactly(1, "any eth0 out", nodeTCP6+" S timestamp"),
				seesExactly(1, "far", nodeTCP6+" S"),
				seesNone("far", nodeTCP6+" S timestamp"),
				sees("any veth0 out", "tcp "+server6+" > "+podIP6+" A data"),
			},
			want: verdict(podTCP6, "node-snated", "handshake-completed", "none", "true").everywhere(nodeTCP6, "none"),
		},
	}
}
