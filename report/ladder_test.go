package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/wire"
)

// compared analyses the captures of a case, both sides if it has both; else the far one is of another time, and of the
// requests only those are kept that stop at a place that the near side shows.
func compared(t testing.TB, name string, far func(*analyze.Input)) *analyze.Result {
	t.Helper()
	var inputs []analyze.Input
	foreign := false
	for _, side := range []wire.Side{wire.SideNear, wire.SideFar} {
		file := map[wire.Side]string{wire.SideNear: "node.pcap", wire.SideFar: "far.pcap"}[side]
		b, err := os.ReadFile(filepath.Join("..", "testdata", "captures", name, file))
		if side == wire.SideFar && os.IsNotExist(err) {
			b, err = os.ReadFile(filepath.Join("..", "testdata", "captures", "after", file))
			foreign = true
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := capture.NewReader(bytes.NewReader(b), file, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		in := analyze.Input{File: file, Side: side, Source: r}
		if side == wire.SideFar && far != nil {
			far(&in)
		}
		inputs = append(inputs, in)
	}
	res, err := analyze.Run(inputs, facts(t), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if foreign { // what is said of a far capture that shares nothing is no matter here
		res.Requests = slices.DeleteFunc(res.Requests, func(r analyze.Request) bool { return r.StoppedAt <= analyze.StopNone })
		res.Captures[1].Notes, res.Findings = nil, nil
	}
	// The words of findings are analyze's, and are tested there.
	for i := range res.Findings {
		f := &res.Findings[i]
		f.Title, f.Observed, f.Reading, f.Next = f.Code+".", nil, nil, nil
	}
	return res
}

func unfiltered(in *analyze.Input) { in.HasStated = true }

// farFile is a far capture of one interface, its clock 37 s ahead.
func farFile(name string) analyze.CaptureInfo {
	c := nodeCapture(name, 12, "09:47:15.003", "09:47:15.42")
	c.Side, c.Summary.LinkTypes, c.Summary.AllInterfaces = wire.SideFar, []uint32{1}, false
	c.Summary.Interfaces = []wire.Interface{{Name: "eth0", LinkType: 1, Packets: 12}}
	c.HasOffset, c.ClockOffset, c.ClockError, c.ClockPairs = true, 37_002_100_000, 400_000, 12
	return c
}

// arrived adds to a request what the far side saw of it, with the source and the time behind the near one.
func arrived(r *analyze.Request, captureIndex int, src *analyze.Endpoint, behind int64, sent, replies uint64) {
	server := r.Server
	if r.Backend != nil {
		server = *r.Backend
	}
	if r.Far == nil {
		r.Far, r.FarServer = src, &server
	}
	r.Legs = append(r.Legs, analyze.Leg{
		Kind: analyze.LegFar, Capture: captureIndex, Tuple: tcp(src.Addr, src.Port, server.Addr, server.Port), Sent: sent, Replies: replies, TTL: 62,
		Points: []analyze.Point{{Sent: sent, Replies: replies, FirstRequest: 1}},
	})
	add := func(what string, frame uint64, time int64) {
		r.Frames = append(r.Frames, analyze.FrameRef{Capture: captureIndex, Frame: frame, Time: time, Leg: analyze.LegFar, What: what})
	}
	for i := range min(sent, 3) {
		what := "SYN"
		if i > 0 {
			what = "SYN again"
		}
		add(what, i*2+1, r.First+52_000+behind+int64(i)*1e9)
	}
	for i := range min(replies, 3) {
		add([]string{"SYN-ACK", "SYN-ACK again", "SYN-ACK again"}[i], i*2+2, r.First+52_000+behind+int64(i)*1e9+20_000)
	}
	r.Joins = append(r.Joins, analyze.Join{From: "egress", To: "far", Basis: []string{"tcp isn", "timestamp value"}, Confidence: analyze.Exact})
}

// unanswered is the Pod's translated request, of which nothing came back to the node.
func unanswered(t testing.TB) analyze.Request {
	r := after(t).Requests[0]
	r.Outcome, r.Completed, r.ConnState, r.History, r.Handshake = analyze.RequestOnly, false, "S0", "S", -1
	r.RequestsSent, r.RepliesSeen = 1, 0
	r.Frames = append([]analyze.FrameRef{}, r.Frames[:2]...)
	r.Legs = append([]analyze.Leg{}, r.Legs...)
	for i := range r.Legs {
		r.Legs[i].Sent, r.Legs[i].Replies = 1, 0
	}
	return r
}

func pairOf(t testing.TB, files []string, requests ...analyze.Request) *analyze.Result {
	res := &analyze.Result{Captures: []analyze.CaptureInfo{nodeCapture("near.pcap", 33, "09:46:38.001", "09:46:38.42")}, Facts: facts(t), Requests: requests}
	for _, f := range files {
		res.Captures = append(res.Captures, farFile(f))
	}
	return res
}

const ahead = 37_002_100_000

// secondTranslation arrives with a third address.
func secondTranslation(t testing.TB) *analyze.Result {
	r := after(t).Requests[0]
	arrived(&r, 1, endp(wire.MustAddr("203.0.113.7"), 4023, otherRole), ahead+2_100_000, 1, 1)
	r.Legs[2].Sent, r.Legs[2].Replies = 6, 5
	r.Findings = []string{"second-translation"}
	res := pairOf(t, []string{"far.pcap"}, r)
	res.Findings = []analyze.Finding{{Code: "second-translation", Severity: 1, Title: "The source is translated a second time.", Requests: []int{0}}}
	return res
}

// middlebox is answered near, and the far side holds nothing of it.
func middlebox(t testing.TB) *analyze.Result {
	r := after(t).Requests[0]
	r.StoppedAt, r.Findings = analyze.StopBetween, []string{"answered-by-middlebox"}
	res := pairOf(t, []string{"far.pcap"}, r)
	res.Findings = []analyze.Finding{{Code: "answered-by-middlebox", Severity: 2, Title: "A device on the way answers in place of the server.", Requests: []int{0}}}
	return res
}

// longPair has IPv6 addresses of full length everywhere, and long names.
func longPair(t testing.TB) *analyze.Result {
	client, snat := wire.MustAddr("2001:db8:1111:2222:3333:4444:5555:6666"), wire.MustAddr("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff")
	dst, third := wire.MustAddr("2001:db8:7777:8888:9999:aaaa:bbbb:cccc"), wire.MustAddr("2001:db8:dead:beef:dead:beef:dead:beef")
	r := unanswered(t)
	named := cluster.NewRole(cluster.RolePod, "team-payments-production/payment-gateway-client-6f7d9c5b4-x2x9z", "gke-prod-europe-west4-pool-1-0a1b2c3d-x9z8", podRole.Fact())
	nodeNamed := exactly(cluster.NewRole(cluster.RoleNode, named.Node(), "", nodeRole.Fact()))
	r.Tuple, r.Client, r.Server = tcp(client, 54670, dst, 8443), end(client, 54670, named), end(dst, 8443, otherRole)
	r.Egress, r.StoppedAt = endp(snat, 31337, nodeNamed), analyze.StopReturn
	arrived(&r, 1, endp(third, 40231, otherRole), ahead+2_100_000, 1, 1)
	r.Frames = append(r.Frames, analyze.FrameRef{
		Capture: 1, Frame: 4, Time: wire.NoTime, Leg: analyze.LegFar, What: "ICMP beyond scope of source address from 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
	})
	res := pairOf(t, []string{"far.pcap"}, r)
	res.Captures[1].ClockStated, res.Captures[1].ClockOffset, res.Captures[1].ClockError = true, 37_000_000_000, 50_000_000
	return res
}

// farOnly is a request that only the far side saw, of a Pod.
func farOnly(t testing.TB) *analyze.Result {
	r := analyze.Request{
		Tuple: tcp(pod, 43076, server, 80), Way: analyze.Outbound, Client: end(pod, 43076, podRole), Server: end(server, 80, otherRole),
		Source: analyze.PodSourced, Basis: analyze.BasisFar, Outcome: analyze.HalfOpen, Handshake: -1, First: at("09:47:15.1"), Last: at("09:47:15.2"),
		RequestsSent: 2, RepliesSeen: 2,
		Unknown: []analyze.Unknown{{Field: "stopped_at", Reason: "no-near-partner", Text: "the near capture does not hold it", Settle: "a near capture of all interfaces"}},
	}
	arrived(&r, 1, endp(pod, 43076, podRole), 0, 2, 2)
	r.Joins = nil
	well := after(t).Requests[0]
	arrived(&well, 1, endp(node, 31337, nodeRole), ahead+2_100_000, 1, 1)
	return pairOf(t, []string{"far.pcap"}, r, well)
}

// severalFar passes a router and does not get to the host behind it.
func severalFar(t testing.TB) *analyze.Result {
	r := unanswered(t)
	r.StoppedAt = analyze.StopReturn
	arrived(&r, 1, endp(node, 31337, nodeRole), ahead+2_100_000, 1, 0)
	arrived(&r, 2, endp(node, 31337, nodeRole), -7_200_000_000_000+2_900_000, 1, 3)
	res := pairOf(t, []string{"router.pcap", "host.pcap", "elsewhere.pcap"}, r)
	res.Captures[2].Label, res.Captures[2].ClockOffset, res.Captures[2].ClockError = "onprem", -7_200_000_000_000, 3_000_000
	res.Captures[3].HasOffset = false
	return res
}

// fourGroups is a thousand requests of four kinds.
func fourGroups(t testing.TB) *analyze.Result {
	var rs []analyze.Request
	for i := range 1000 {
		r := unanswered(t)
		r.Client.Port = uint16(20_000 + i)
		switch {
		case i%10 == 3:
			r.StoppedAt = analyze.StopBetween
			r.Server.Port = 443
		case i%100 == 7:
			r.StoppedAt = analyze.StopReturn
			arrived(&r, 1, endp(node, 31337, nodeRole), ahead+2_100_000, 1, 1)
		case i == 500:
			r.StoppedAt = analyze.StopUnknown
			r.Unknown = []analyze.Unknown{{Field: "stopped_at", Reason: "filter-not-known", Text: "that it did not arrive is not covered", Settle: "--far-filter EXPR"}}
		default:
			r = after(t).Requests[0]
			arrived(&r, 1, endp(node, 31337, nodeRole), ahead+2_100_000, 1, 1)
		}
		rs = append(rs, r)
	}
	return pairOf(t, []string{"far.pcap"}, rs...)
}

// hostilePair is names of an attacker at both sides.
func hostilePair(t testing.TB) *analyze.Result {
	res := severalFar(t)
	for i := range res.Captures {
		res.Captures[i].File, res.Captures[i].Label = evil+fmt.Sprint(i), evil+fmt.Sprint(i)
	}
	r := &res.Requests[0]
	role := cluster.NewRole(cluster.RolePod, evil, evil, evil)
	r.Client.Role, r.Egress.Role = role, cluster.NewRole(cluster.RoleNode, evil, "", "")
	for i := range r.Frames {
		if i%2 == 1 {
			r.Frames[i].What = "ICMP " + evil + " from " + evil
		}
	}
	r.Joins[0].Basis = []string{evil}
	return res
}

func pairs(t testing.TB) map[string]*analyze.Result {
	t.Helper()
	return map[string]*analyze.Result{
		"pair-before": compared(t, "before", nil), "pair-after": compared(t, "after", nil),
		"pair-dropped-between":    compared(t, "dropped-between", unfiltered),
		"pair-dropped-not-stated": compared(t, "dropped-between", nil),
		"pair-dropped-at-far":     compared(t, "dropped-at-far", unfiltered),
		"pair-node-in":            compared(t, "node-in", nil), "pair-not-sent": compared(t, "not-sent", nil),
		"pair-rejected":           compared(t, "rejected-by-router", nil),
		"pair-second-translation": secondTranslation(t), "pair-middlebox": middlebox(t), "pair-long": longPair(t),
		"pair-far-only": farOnly(t), "pair-several-far": severalFar(t), "pair-groups": fourGroups(t), "pair-hostile": hostilePair(t),
	}
}

func TestGoldenPairs(t *testing.T) {
	for name, res := range pairs(t) {
		t.Run(name, func(t *testing.T) {
			rec := New(res, tool)
			golden(t, name+".txt", text(t, rec, TextOptions{}))
			golden(t, name+"-80.txt", text(t, rec, TextOptions{Width: 80}))
		})
	}
}

func TestTextOfPairs(t *testing.T) {
	for name, res := range pairs(t) {
		t.Run(name, func(t *testing.T) {
			rec := New(res, tool)
			for _, opt := range []TextOptions{{}, {Width: 80}, {Width: 91}, {Verbose: true}, {ShowAll: true, Width: 80}} {
				checkText(t, rec, opt)
			}
			got := ladderLines(string(text(t, rec, TextOptions{Width: 80})))
			for _, line := range got {
				for _, c := range line {
					if c > 0x7e {
						t.Errorf("%q holds %q, which a ticket may not keep", line, c)
					}
				}
			}
		})
	}
}

// TestLadderCases: what is drawn, and in which order.
func TestLadderCases(t *testing.T) {
	short := func(rec *Record) (out []string) {
		for _, c := range ladderCases(rec) {
			r := &rec.Requests[c.first]
			out = append(out, fmt.Sprintf("%s %s %s %d", r.Source, r.Outcome, r.StoppedAt, c.count))
		}
		return out
	}
	groups := fourGroups(t)
	only := func(keep func(*analyze.Request) bool) *analyze.Result {
		res := *groups
		res.Requests = nil
		for i := range groups.Requests {
			if keep(&groups.Requests[i]) {
				res.Requests = append(res.Requests, groups.Requests[i])
			}
		}
		return &res
	}
	swapped := only(func(r *analyze.Request) bool { return r.StoppedAt == analyze.StopBetween })
	for i := range swapped.Requests {
		swapped.Requests[i].Unknown = []analyze.Unknown{{Field: "source", Reason: "sides-not-as-stated", Text: "swapped"}}
	}
	inbound := only(func(r *analyze.Request) bool { return r.StoppedAt == analyze.StopBetween })
	for i := range inbound.Requests {
		inbound.Requests[i].Way = analyze.Inbound
	}
	for _, tc := range []struct {
		what string
		res  *analyze.Result
		want []string
	}{
		{"trouble first, the commonest before the others, and nothing that went well", groups, []string{
			"node-snated request-only between 100", "node-snated request-only return 10", "node-snated request-only unknown 1",
		}},
		{"where nothing is wrong one that went well", only(func(r *analyze.Request) bool { return r.Outcome == analyze.HandshakeCompleted }), []string{
			"node-snated handshake-completed none 1",
		}},
		{"captures that are swapped show no way", swapped, nil},
		{"an inbound request goes another way", inbound, nil},
	} {
		if got := short(New(tc.res, tool)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.what, got, tc.want)
		}
	}
	// One side alone has nothing to be drawn against.
	if got := ladderLines(string(text(t, New(before(t), tool), TextOptions{}))); got != nil {
		t.Errorf("of a near capture alone: %q", got)
	}
}

// TestManyCases: a page is not filled with drawings unless that is asked for.
func TestManyCases(t *testing.T) {
	var rs []analyze.Request
	for i := range 9 {
		r := unanswered(t)
		r.Server.Port, r.StoppedAt = uint16(8000+i), analyze.StopBetween
		rs = append(rs, r)
	}
	rec := New(pairOf(t, []string{"far.pcap"}, rs...), tool)
	const more = "\n  4 more cases (4 requests) not drawn: --all\n"
	got := string(text(t, rec, TextOptions{}))
	if n := len(ladderLines(got)); n != maxLadders || !strings.Contains(got, more) {
		t.Errorf("%d drawn of 9\n%s", n, got)
	}
	got = string(text(t, rec, TextOptions{ShowAll: true}))
	if n := len(ladderLines(got)); n != 9 || strings.Contains(got, more) {
		t.Errorf("--all: %d drawn of 9\n%s", n, got)
	}
}

func minuteEarlier(r analyze.Request) analyze.Request {
	r.First -= 60e9
	for i := range r.Frames {
		r.Frames[i].Time -= 60e9
	}
	return r
}

// TestOneWayTime: a time is told only where the clocks carry it.
func TestOneWayTime(t *testing.T) {
	for _, tc := range []struct {
		what   string
		change func(res *analyze.Result)
		want   bool
	}{
		{"a time longer than the clocks may be wrong", func(*analyze.Result) {}, true},
		{"clocks that may be wrong by more", func(res *analyze.Result) { res.Captures[1].ClockError = 2_200_000 }, false},
		{"no clock", func(res *analyze.Result) { res.Captures[1].HasOffset = false }, false},
		{"an offset by which it came before it left", func(res *analyze.Result) { res.Captures[1].ClockOffset += 3_000_000 }, false},
		{"a SYN that the far side did not see: which is which is not known", func(res *analyze.Result) {
			r := &res.Requests[0]
			again := r.Frames[1]
			again.Frame, again.What = 5, "SYN again"
			r.Frames = append(r.Frames, again)
		}, false},
		{"a clock that was set between two requests", func(res *analyze.Result) {
			earlier := minuteEarlier(unanswered(t))
			arrived(&earlier, 1, endp(node, 31337, nodeRole), ahead-5e9, 1, 0)
			res.Requests = append(res.Requests, earlier)
		}, false},
		{"a clock that was set back between two requests", func(res *analyze.Result) {
			earlier := minuteEarlier(unanswered(t))
			arrived(&earlier, 1, endp(node, 31337, nodeRole), ahead+5e9, 1, 1)
			earlier.Frames = append(earlier.Frames, analyze.FrameRef{
				Frame: 4, Time: earlier.First + 3e6, Leg: analyze.LegEgress, Direction: wire.DirIn, What: "SYN-ACK",
			})
			res.Requests = append(res.Requests, earlier)
		}, false},
		{"frames without times", func(res *analyze.Result) {
			for i := range res.Requests[0].Frames {
				res.Requests[0].Frames[i].Time = wire.NoTime
			}
		}, false},
	} {
		r := unanswered(t)
		r.StoppedAt = analyze.StopFar
		arrived(&r, 1, endp(node, 31337, nodeRole), ahead+2_100_000, 1, 0)
		res := pairOf(t, []string{"far.pcap"}, r)
		tc.change(res)
		got := strings.Join(ladderLines(string(text(t, New(res, tool), TextOptions{}))), "\n")
		if strings.Contains(got, "arrived, +2.1 ms") != tc.want || !tc.want && strings.Contains(got, "ms") {
			t.Errorf("%s: want a time: %v\n%s", tc.what, tc.want, got)
		}
	}
}

// TestNotSeen: an x is a verdict, and where there is none stands a question mark.
func TestNotSeen(t *testing.T) {
	for _, tc := range []struct {
		what       string
		stop       analyze.Stop
		far        bool
		has, hasNo string
	}{
		{"far", analyze.StopFar, true, "|  x no answer", "?"},
		{"far not covered", analyze.StopUnknown, true, "|  ? no answer", "x "},
		{"between", analyze.StopBetween, false, "> x |", "?"},
		{"not covered", analyze.StopUnknown, false, "> ? |", "x "},
		{"return", analyze.StopReturn, true, "x not seen <---SYN-ACK", "?"},
		{"return not covered", analyze.StopUnknown, true, "? not seen <---SYN-ACK", "x "},
	} {
		r := unanswered(t)
		r.StoppedAt = tc.stop
		if tc.far {
			replies := uint64(1)
			if strings.HasPrefix(tc.what, "far") {
				replies = 0
			}
			arrived(&r, 1, endp(node, 31337, nodeRole), ahead, 1, replies)
		}
		got := strings.Join(ladderLines(string(text(t, New(pairOf(t, []string{"far.pcap"}, r), tool), TextOptions{}))), "\n")
		if !strings.Contains(got, tc.has) || strings.Contains(got, tc.hasNo) {
			t.Errorf("%s: want %q and no %q in\n%s", tc.what, tc.has, tc.hasNo, got)
		}
	}
}

// TestResetOfAnyone: the far side does not record who sent a reset, and it is not guessed.
func TestResetOfAnyone(t *testing.T) {
	for _, tc := range []struct {
		what          string
		sent, replies uint64
		want          string
	}{
		{"the server's", 1, 1, "|<---RST"},
		{"the client's", 2, 0, "|---RST"},
		{"somebody's", 2, 1, ""},
	} {
		r := unanswered(t)
		r.Outcome, r.StoppedAt = analyze.Refused, analyze.StopNone
		arrived(&r, 1, endp(node, 31337, nodeRole), ahead, 1, 0)
		r.Legs[2].Sent, r.Legs[2].Replies = tc.sent, tc.replies
		near := analyze.FrameRef{Frame: 4, Time: wire.NoTime, Leg: analyze.LegEgress, Direction: wire.DirIn, What: "RST"}
		if tc.want == "|---RST" {
			near.Direction = wire.DirOut
		}
		far := analyze.FrameRef{Capture: 1, Frame: 4, Time: wire.NoTime, Leg: analyze.LegFar, What: "RST"}
		r.Frames = append(r.Frames, near, far)
		got := strings.Join(ladderLines(string(text(t, New(pairOf(t, []string{"far.pcap"}, r), tool), TextOptions{}))), "\n")
		whole := strings.Contains(got, "|<---RST-------------------") || strings.Contains(got, "|---RST-------------------")
		if whole != (tc.want != "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: want %q in\n%s", tc.what, tc.want, got)
		}
	}
}

func TestClockLines(t *testing.T) {
	for _, tc := range []struct {
		what          string
		offset, wrong int64
		stated        bool
		want          string
	}{
		{"ahead", 37_002_100_000, 400_000, false, "far is 37.0021 s ahead of near, +-0.4 ms (12 packets, both directions)"},
		{"behind", -7_200_000_000_000, 3_000_000, false, "far is 7200.000 s behind near, +-3.0 ms (12 packets, both directions)"},
		{"400 ms", 400_000_000, 12_000, false, "far is 400 ms ahead of near, +-0.012 ms (12 packets, both directions)"},
		{"in step", -3_000, 12_000, false, "far agrees with near within 0.015 ms (12 packets, both directions)"},
		{"stated", 37_000_000_000, 50_000_000, true, "far is 37.00 s ahead of near, +-50 ms (stated: --far-clock-offset)"},
		{"stated as none", 0, 50_000_000, true, "far is 0 s ahead of near, +-50 ms (stated: --far-clock-offset)"},
		{"absurd", -1 << 63, 1<<63 - 1, false, "far agrees with near within 53375 days 23 h (12 packets, both directions)"},
	} {
		res := severalFar(t)
		res.Captures = res.Captures[:2]
		c := &res.Captures[1]
		c.ClockOffset, c.ClockError, c.ClockStated = tc.offset, tc.wrong, tc.stated
		res.Requests = nil
		if got := clockLines(New(res, tool)); len(got) != 1 || got[0] != tc.want {
			t.Errorf("%s: %q, want %q", tc.what, got, tc.want)
		}
	}
	one := severalFar(t)
	for i := range one.Captures {
		one.Captures[i].HasOffset = false
	}
	const bound = "far not known: the packets that both sides hold bound it on one side only"
	if got := clockLines(New(one, tool)); len(got) != 1 || got[0] != bound {
		t.Errorf("joined and not bound: %q, want %q", got, bound)
	}
	one.Requests[0].Joins = nil
	if got := clockLines(New(one, tool)); len(got) != 1 || got[0] != "not known: no packet was found on both sides" {
		t.Errorf("nothing joined: %q", got)
	}
}

// TestClockJSON: what is not known is null, and what is comes back.
func TestClockJSON(t *testing.T) {
	for _, tc := range []struct {
		what   string
		change func(*analyze.CaptureInfo)
		want   string
	}{
		{"measured", func(*analyze.CaptureInfo) {}, `"clock_offset_ns":37002100000,"clock_error_ns":400000,"clock_pairs":12,"clock_stated":false`},
		{"stated", func(c *analyze.CaptureInfo) { c.ClockStated, c.ClockPairs = true, 0 }, `"clock_offset_ns":37002100000,"clock_error_ns":400000,"clock_pairs":null,"clock_stated":true`},
		{"not known", func(c *analyze.CaptureInfo) { c.HasOffset = false }, `"clock_offset_ns":null,"clock_error_ns":null,"clock_pairs":null,"clock_stated":false`},
	} {
		res := secondTranslation(t)
		tc.change(&res.Captures[1])
		rec := New(res, tool)
		var b bytes.Buffer
		if err := WriteJSONL(&b, rec); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), tc.want) {
			t.Errorf("%s: no %s in\n%s", tc.what, tc.want, b.String())
		}
		b.Reset()
		if err := WriteJSON(&b, rec); err != nil {
			t.Fatal(err)
		}
		back, err := Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(rec.Captures, back.Captures, cmp.AllowUnexported(Time{})); d != "" {
			t.Errorf("%s (-written +read):\n%s", tc.what, d)
		}
	}
}

// ladderLines returns the lines of text that draw something.
func ladderLines(s string) []string {
	var out []string
	for line := range strings.Lines(s) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "|") {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}
