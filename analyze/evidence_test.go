package analyze

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// momentOf is what one moment's captures hold, each made of parts and named by a label, "" for none.
func momentOf(t testing.TB, facts *cluster.Facts, captures ...nodeCapture) MomentInput {
	t.Helper()
	var m MomentInput
	for _, c := range captures {
		in := captureOf(t, c.parts...)
		in.Label = c.label
		res := runOf(t, facts, Options{}, in)
		at := len(m.Captures)
		for _, info := range res.Captures {
			lossy := ""
			if info.Summary.Dropped > 0 {
				lossy = string(gapDropped)
			}
			m.Captures = append(m.Captures, MomentCapture{
				Lossy: lossy,
				File:  cmpOr(c.label, "test") + ".pcapng", Label: c.label, SHA256: fmt.Sprintf("%v/%v", info.Summary.First, c.label),
				From: info.Summary.First, To: info.Summary.Last,
			})
		}
		for i := range res.Requests {
			r := &res.Requests[i]
			m.Requests = append(m.Requests, Observation{Request: *r, ID: fmt.Sprintf("%v %d", r.Tuple, r.Opening), Capture: at + r.capture()})
		}
	}
	return m
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

type nodeCapture struct {
	label string
	parts []part
}

func capturedBy(parts ...part) []nodeCapture { return []nodeCapture{{"", parts}} }

// exchanged is a connection in which data answers data, opened t seconds behind the epoch and numbered by n.
func exchanged(ends string, t float64, n uint32) many {
	return append(opened(ends, t, n),
		data(ends, 100, at(t+0.02), seq(n+1), acks(n+7001), stamp(n+2, n+9), payload(fmt.Sprint("asks ", n))),
		dataBack(back(ends), 200, at(t+0.03), seq(n+7001), acks(n+101), stamp(n+19, n+2), ttl(60), payload(fmt.Sprint("tells ", n))))
}

// fromClient leaves the server's packets out.
func fromClient(m many) many {
	return slices.DeleteFunc(m, func(p packet) bool { return p.Tuple.Src == wire.MustAddr(server) })
}

// Ends of the Pod's requests: another port each time, as a client takes one.
func podAsks(port int) string { return fmt.Sprintf("%s:%d > %s:443", pod, port, server) }

// The verdicts (the list), and the reasons for none. Before is captured from 0 s on, after from 1000 s.
func TestEvidence(t *testing.T) {
	keeps := func(ends string, packets ...packet) many { return kept(ends).carry(packets...) }
	snats := func(ends string, packets ...packet) many { return masqueraded(ends, node+":52000").carry(packets...) }
	strange := func(ends string, packets ...packet) many {
		return masqueraded(ends, "203.0.113.77:53000").carry(packets...)
	}
	was, now := podAsks(41000), podAsks(41001)
	silentBefore := capturedBy(window(0, 60), keeps(was, tries(was, 5, 6, 8)...), goesOn(60))
	keptBefore := capturedBy(window(0, 60), keeps(was, exchanged(was, 5, 1000)...), goesOn(60))
	snatBefore := capturedBy(window(0, 60), snats(was, exchanged(was, 5, 1000)...), goesOn(60))
	snatAfter := capturedBy(window(1000, 1060), snats(now, exchanged(now, 1005, 9000)...), goesOn(1060))
	keptAfter := capturedBy(window(1000, 1060), keeps(now, exchanged(now, 1005, 9000)...), goesOn(1060))
	dropped := about(func(r *recording) { r.summary.Dropped = 3 })
	unfiltered := about(func(r *recording) { r.summary.HasFilter = false })
	question := fmt.Sprintf("%s:5000 > %s:53", pod, server)
	asksDNS := func(t float64, as string) many {
		q := udp(question, fmt.Sprint("name? ", t), at(t))
		a := udp(back(question), fmt.Sprint("address ", t), at(t+0.01), ttl(60))
		if as == "" {
			return kept(question).carry(q, a)
		}
		return masqueraded(question, as).carry(q, a)
	}
	ping := func(t float64, id uint16, n uint32) many {
		ends := pod + " > " + server
		return kept(ends).carry(echo(ends, id, n, at(t)), echoReply(back(ends), id, n, at(t+0.01), ttl(60)))
	}
	for _, tt := range []struct {
		sentence      string
		before, after []nodeCapture
		intent        Intent
		want          Change
		code          string
	}{
		{"the node's address in place of the Pod's, and data both ways", silentBefore, snatAfter, IntentSNAT, ChangedAsIntended, ""},
		{"the same, without an intention", silentBefore, snatAfter, IntentNone, Changed, ""},
		{"the Pod's address was kept and answered before", keptBefore, snatAfter, IntentSNAT, ChangedAsIntended, ""},
		{"against the intention", silentBefore, snatAfter, IntentKeep, ChangedUnexpectedly, ""},
		{"the Pod's address in place of the node's, as intended", snatBefore, keptAfter, IntentKeep, ChangedAsIntended, ""},
		{"the Pod's address in place of the node's, against the intention", snatBefore, keptAfter, IntentSNAT, ChangedUnexpectedly, ""},
		{"still the Pod's address", keptBefore, keptAfter, IntentSNAT, Unchanged, ""},
		{"the before already shows the node's address", snatBefore, snatAfter, IntentSNAT, Unchanged, ""},
		{"a stranger's address", keptBefore, capturedBy(window(1000, 1060), strange(now, exchanged(now, 1005, 9000)...), goesOn(1060)), IntentSNAT, ChangedUnexpectedly, ""},
		{
			"the node's address, and no answer", silentBefore,
			capturedBy(window(1000, 1060), snats(now, tries(now, 1005, 1006, 1008)...), goesOn(1060)), IntentSNAT, ChangedNotCompleted, "",
		},
		{
			"a handshake alone is not completed", silentBefore,
			capturedBy(window(1000, 1060), snats(now, opened(now, 1005, 9000)...), goesOn(1060)), IntentSNAT, ChangedNotCompleted, "",
		},
		{
			"a handshake at the end of the capture", silentBefore,
			capturedBy(snats(now, opened(now, 1005, 9000)...)), IntentSNAT, ChangeInconclusive, "capture-ended",
		},
		{
			"no answer, and the capture dropped packets", silentBefore,
			capturedBy(dropped, window(1000, 1060), snats(now, tries(now, 1005, 1006, 1008)...), goesOn(1060)), IntentSNAT, ChangeInconclusive, "packets-dropped",
		},
		{
			"a handshake without data, and the capture dropped packets", silentBefore,
			capturedBy(dropped, window(1000, 1060), snats(now, opened(now, 1005, 9000)...), goesOn(1060)), IntentSNAT, ChangeInconclusive, "packets-dropped",
		},
		{
			"a filter that kept the way there only", silentBefore,
			capturedBy(unfiltered, window(1000, 1060), fromClient(snats(now, exchanged(now, 1005, 9000)...)), goesOn(1060)), IntentSNAT, ChangeInconclusive, "filter-not-known",
		},
		{
			"one SYN, and a filter that may keep answers out", silentBefore,
			capturedBy(unfiltered, window(1000, 1070), snats(now, tries(now, 1068)...), goesOn(1070)), IntentSNAT, ChangeInconclusive, "filter-not-known",
		},
		{
			"the SYN is repeated: the client itself shows that nothing came", silentBefore,
			capturedBy(unfiltered, window(1000, 1060), snats(now, tries(now, 1005, 1006, 1008)...), goesOn(1060)), IntentSNAT, ChangedNotCompleted, "",
		},
		{
			"refused, whatever the filter", silentBefore,
			capturedBy(unfiltered, dropped, window(1000, 1060), snats(now, syn(now, at(1005), isn(9000)), refusal(back(now), at(1005.01), acks(9001), ttl(60))), goesOn(1060)), IntentSNAT, ChangedNotCompleted, "",
		},
		{
			"one of two requests does not complete", silentBefore,
			capturedBy(window(1000, 1060), inOrder(snats(now, exchanged(now, 1005, 9000)...), masqueraded(podAsks(41002), node+":52002").carry(tries(podAsks(41002), 1020, 1021, 1023)...)), goesOn(1060)),
			IntentSNAT, ChangedNotCompleted, "",
		},
		// Connections that are older than the change.
		{
			"an old connection beside a new one is left out", keptBefore,
			capturedBy(window(1000, 1060), inOrder(
				keeps(was, data(was, 50, at(1001), seq(2000), acks(9000)), dataBack(back(was), 50, at(1002), seq(9000), acks(2050), ttl(60))),
				snats(now, exchanged(now, 1005, 9000)...)), goesOn(1060)), IntentSNAT, ChangedAsIntended, "",
		},
		{
			"an old connection alone", keptBefore,
			capturedBy(window(1000, 1060), keeps(was, data(was, 50, at(1001), seq(2000), acks(9000)), dataBack(back(was), 50, at(1002), seq(9000), acks(2050), ttl(60))), goesOn(1060)),
			IntentSNAT, ChangeInconclusive, doubtOlder,
		},
		{
			"a SYN that goes on since before", silentBefore,
			capturedBy(window(1000, 1060), keeps(was, tries(was, 1005)...), goesOn(1060)), IntentSNAT, ChangeInconclusive, doubtOlder,
		},
		{
			"a single SYN that may repeat one from before the capture", silentBefore,
			capturedBy(window(1000, 1060), keeps(now, tries(now, 1005)...), goesOn(1060)), IntentSNAT, ChangeInconclusive, doubtUnsure,
		},
		{
			"SYNs 8 s apart: the first of them was before", silentBefore,
			capturedBy(window(1000, 1060), keeps(now, tries(now, 1005, 1013, 1029)...), goesOn(1060)), IntentSNAT, ChangeInconclusive, doubtUnsure,
		},
		{
			"a single SYN, long after the capture began", silentBefore,
			capturedBy(window(1000, 1130), keeps(podAsks(41009), exchanged(podAsks(41009), 1000, 50)...)[:0], keeps(now, tries(now, 1070)...), goesOn(1130)), IntentSNAT, Unchanged, "",
		},
		{
			"SYNs 1 s apart: the first is the first", silentBefore,
			capturedBy(window(1000, 1060), keeps(now, tries(now, 1005, 1006, 1008)...), goesOn(1060)), IntentSNAT, Unchanged, "",
		},
		{
			"what may be older is translated all the same: an older translation would have kept the Pod's address", silentBefore,
			capturedBy(window(1000, 1060), snats(now, append(tries(now, 1005), exchanged(now, 1013, 31000)[1:]...)...), goesOn(1060)), IntentSNAT, ChangedAsIntended, "",
		},
		{
			"a repeated SYN of before beside a new request", silentBefore,
			capturedBy(window(1000, 1060), inOrder(keeps(podAsks(41007), tries(podAsks(41007), 1002, 1010)...), snats(now, exchanged(now, 1005, 9000)...)), goesOn(1060)),
			IntentSNAT, ChangedAsIntended, "",
		},
		// Datagrams have no opening.
		{
			"UDP: the node's address in place of the Pod's", capturedBy(window(0, 60), asksDNS(5, ""), goesOn(60)),
			capturedBy(window(1000, 1060), asksDNS(1005, node+":54000"), goesOn(1060)), IntentSNAT, ChangeInconclusive, doubtOlder, // the same ports: it goes on since before
		},
		{
			"ping: the Pod's address soon after the capture began", capturedBy(window(0, 60), ping(5, 7, 1), goesOn(60)),
			capturedBy(window(1000, 1060), ping(1005, 8, 1), goesOn(1060)), IntentSNAT, ChangeInconclusive, doubtUnsure,
		},
		{
			"ping: the Pod's address 31 s after the capture began", capturedBy(window(0, 60), ping(5, 7, 1), goesOn(60)),
			capturedBy(window(1000, 1060), ping(1031, 8, 1), goesOn(1060)), IntentSNAT, Unchanged, "",
		},
		{
			"ping: the same identifier goes on", capturedBy(window(0, 60), ping(5, 7, 1), goesOn(60)),
			capturedBy(window(1000, 1060), ping(1031, 7, 900), goesOn(1060)), IntentSNAT, ChangeInconclusive, doubtOlder,
		},
		// Sources that are not known, or not one.
		{
			"the after capture shows both sources", keptBefore,
			capturedBy(window(1000, 1060), inOrder(keeps(now, exchanged(now, 1005, 9000)...), masqueraded(podAsks(41002), node+":52002").carry(exchanged(podAsks(41002), 1010, 19_000)...)), goesOn(1060)),
			IntentSNAT, ChangeInconclusive, doubtMixed,
		},
		{
			"only the Pod's side was captured after", keptBefore,
			capturedBy(window(1000, 1060), seenAt(exchanged(now, 1005, 9000), on("veth1")), single("veth1")), IntentSNAT, ChangeInconclusive, "pod-side-capture-only",
		},
		{
			"before, the request never left the node", capturedBy(window(0, 60), seenAt(tries(was, 5, 6, 8), in("veth1")), keeps(podAsks(40000), exchanged(podAsks(40000), 40, 77_000)...)[:0], goesOn(60)),
			snatAfter, IntentSNAT, ChangeInconclusive, "",
		},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			in := []MomentInput{momentOf(t, gke(t), tt.before...), momentOf(t, gke(t), tt.after...)}
			ev, err := NewEvidence(in, EvidenceOptions{Which: selectorOf(t, "any 10.4.0.0/14 > "+server), Intent: tt.intent})
			if err != nil {
				t.Fatal(err)
			}
			n := &ev.Nodes[0]
			if ev.Change != tt.want || tt.code != "" && n.Code != tt.code || ev.Change != ChangeInconclusive && n.Code != "" {
				t.Errorf("%s (%s), want %s (%s)\nreading %q\nbefore %+v\nafter %+v", ev.Change, n.Code, tt.want, tt.code, n.Reading, n.At[Before], n.At[After])
			}
			if len(n.Reading) == 0 || ev.Change == ChangeInconclusive && ev.State() != Inconclusive {
				t.Errorf("reading %q, state %v", n.Reading, ev.State())
			}
		})
	}
}

func selectorOf(t testing.TB, text string) Selector {
	t.Helper()
	s, err := ParseSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is refused, and what is not there: no verdict at all.
func TestEvidenceRefuses(t *testing.T) {
	asks := func(client string, port int, t float64, n uint32) many {
		ends := fmt.Sprintf("%s:%d > %s:443", client, port, server)
		return kept(ends).carry(exchanged(ends, t, n)...)
	}
	one := capturedBy(window(0, 60), asks(pod, 41000, 5, 1000), goesOn(60))
	later := capturedBy(window(1000, 1060), asks(pod, 41001, 1005, 9000), goesOn(1060))
	two := capturedBy(window(1000, 1060), asks(pod, 41001, 1005, 9000), asks("10.4.0.8", 41001, 1006, 19_000), goesOn(1060))
	another := fmt.Sprintf("%s:41001 > %s:8443", pod, server)
	other := capturedBy(window(1000, 1060), kept(another).carry(exchanged(another, 1005, 9000)...), goesOn(1060))
	own := node + ":41001 > " + server + ":443"
	nodeOnly := capturedBy(window(1000, 1060), seenAt(exchanged(own, 1005, 9000), out("eth0")), goesOn(1060))
	overlaps := capturedBy(window(30, 90), asks(pod, 41001, 65, 9000), goesOn(90))
	both := capturedBy(window(1000, 1060), asks(pod, 41001, 1005, 9000), kept(another).carry(exchanged(another, 1007, 29_000)...), goesOn(1060))
	bothBefore := capturedBy(window(0, 60), asks(pod, 41000, 5, 1000), kept(podAsksAt(8443)).carry(exchanged(podAsksAt(8443), 7, 39_000)...), goesOn(60))
	unnamed := []nodeCapture{{"", []part{window(1000, 1060), asks(pod, 41001, 1005, 9000), goesOn(1060)}}, {"", []part{window(1100, 1160), asks(pod, 41002, 1105, 19_000), goesOn(1160)}}}
	for _, tt := range []struct {
		sentence      string
		before, after []nodeCapture
		which         string
		none          bool   // *NoRequestError, else *RefusedError
		says          string // in the error
		candidates    int
	}{
		{"after is older than before", later, one, "any any > any", false, "was captured before", 0},
		{"they overlap", one, overlaps, "any any > any", false, "overlap in time", 0},
		{"no such request in either", one, later, "tcp any > 198.51.100.1", true, "in the before capture", 0},
		{"no such request after", one, other, "tcp any > " + server + ":443", true, "in the after capture", 0},
		{"the requests differ", one, other, "tcp any > " + server, true, "no request of a Pod is in both captures", 0},
		{"several Pods ask", one, two, "tcp any > any", false, "2 Pods make this request", 2},
		{"several destinations fit", bothBefore, both, "tcp any > any", false, "fits 2 requests", 2},
		{"nobody asked, and two fit", bothBefore, both, "", false, "2 requests are in both captures", 2},
		{"only the node asks after", one, nodeOnly, "tcp any > " + server + ":443", true, "which Pod stands behind a node's address", 0},
		{"the same bytes twice in one moment", one, []nodeCapture{later[0], {"", later[0].parts}}, "any any > any", false, "are one capture", 0},
		{"one of them has a label, and they overlap", []nodeCapture{{"a", one[0].parts}}, overlaps, "any any > any", false, "overlap in time", 0},
		{"two captures without a name", one, unnamed, "tcp any > any", false, "which node each of them shows is not known", 0},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			in := []MomentInput{momentOf(t, gke(t), tt.before...), momentOf(t, gke(t), tt.after...)}
			opt := EvidenceOptions{}
			if tt.which != "" {
				opt.Which = selectorOf(t, tt.which)
			}
			ev, err := NewEvidence(in, opt)
			if err == nil {
				t.Fatalf("%s: %+v", ev.Change, ev.Nodes)
			}
			none, isNone := errors.AsType[*NoRequestError](err)
			refused, isRefused := errors.AsType[*RefusedError](err)
			if isNone != tt.none || isRefused == tt.none || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%T %v, want one that says %q", err, err, tt.says)
			}
			if isRefused && len(refused.Candidates) != tt.candidates {
				t.Errorf("candidates %q, want %d", refused.Candidates, tt.candidates)
			}
			if isNone && len(none.Nearest) == 0 && !strings.Contains(none.What, "holds") {
				t.Error("what the capture holds is not said")
			}
		})
	}
	// The same bytes are no two moments; of a capture that spans the change they are.
	m := momentOf(t, gke(t), one...)
	if _, err := NewEvidence([]MomentInput{m, m}, EvidenceOptions{}); err == nil || !strings.Contains(err.Error(), "are one capture") {
		t.Errorf("a capture against itself: %v", err)
	}
}

func podAsksAt(port int) string { return fmt.Sprintf("%s:41003 > %s:%d", pod, server, port) }

// Several nodes: each has its verdict, and the worst is that of all.
func TestEvidenceNodes(t *testing.T) {
	asks := func(client string, port int, t float64, n uint32, as string) many {
		ends := fmt.Sprintf("%s:%d > %s:443", client, port, server)
		if as == "" {
			return kept(ends).carry(exchanged(ends, t, n)...)
		}
		return masqueraded(ends, as).carry(exchanged(ends, t, n)...)
	}
	before := []nodeCapture{
		{"a", []part{window(0, 60), asks("10.4.0.7", 41000, 5, 1000, ""), goesOn(60)}},
		{"b", []part{window(0, 60), asks("10.4.1.7", 41000, 5, 2000, ""), goesOn(60)}},
	}
	after := []nodeCapture{
		{"a", []part{window(1000, 1060), asks("10.4.0.7", 41001, 1005, 3000, node+":52000"), goesOn(1060)}},
		{"b", []part{window(1000, 1060), asks("10.4.1.7", 41001, 1005, 4000, ""), goesOn(1060)}},
	}
	which := EvidenceOptions{Which: selectorOf(t, "tcp 10.4.0.0/14 > "+server+":443"), Intent: IntentSNAT}
	prove := func(t *testing.T, before, after []nodeCapture) *Evidence {
		t.Helper()
		ev, err := NewEvidence([]MomentInput{momentOf(t, gke(t), before...), momentOf(t, gke(t), after...)}, which)
		if err != nil {
			t.Fatal(err)
		}
		return ev
	}
	verdicts := func(ev *Evidence) string {
		s := ev.Change.String() + ":"
		for i := range ev.Nodes {
			s += fmt.Sprintf(" %s %s", ev.Nodes[i].Node, ev.Nodes[i].Change)
		}
		return s
	}
	for _, tt := range []struct {
		sentence      string
		before, after []nodeCapture
		want          string
	}{
		{"one node did not change", before, after, "unchanged: a changed-as-intended b unchanged"},
		{"both changed", before[:1], after[:1], "changed-as-intended: a changed-as-intended"},
		{"the second node has no after", before, after[:1], "inconclusive: a changed-as-intended b inconclusive"},
		{"one did not change, one has no after", append(slices.Clone(before), nodeCapture{"c", []part{window(0, 60), asks("10.4.2.7", 41000, 5, 7000, ""), goesOn(60)}}), after, "unchanged: a changed-as-intended b unchanged c inconclusive"},
		{"before on one node, after on another", before[:1], after[1:], "inconclusive: a then b inconclusive"},
		{"one named, one not", []nodeCapture{{"", before[0].parts}}, after[:1], "changed-as-intended: a changed-as-intended"},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			if got := verdicts(prove(t, tt.before, tt.after)); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// The rollback is the first state again, or not.
func TestEvidenceRollback(t *testing.T) {
	was, now, back, again := podAsks(41000), podAsks(41001), podAsks(41002), podAsks(41003)
	before := momentOf(t, gke(t), capturedBy(window(0, 60), kept(was).carry(tries(was, 5, 6, 8)...), goesOn(60))...)
	after := momentOf(t, gke(t), capturedBy(window(1000, 1060), masqueraded(now, node+":52000").carry(exchanged(now, 1005, 9000)...), goesOn(1060))...)
	for _, tt := range []struct {
		sentence string
		rollback many
		want     State
	}{
		{"as before", kept(back).carry(tries(back, 2005, 2006, 2008)...), Met},
		{"still translated", masqueraded(back, node+":52001").carry(exchanged(back, 2005, 19_000)...), NotMet},
		{"the Pod's address, and now it is answered", kept(back).carry(exchanged(back, 2005, 19_000)...), Inconclusive}, // its SYN may be repeated
		{"the Pod's address, and now it is answered, by a request that is new", kept(back).carry(exchanged(back, 2070, 19_000)...), NotMet},
		{"one answered, one not", inOrder(kept(back).carry(tries(back, 2005, 2006, 2008)...), kept(again).carry(exchanged(again, 2070, 19_000)...)), Inconclusive},
		{"another one of the Pod's is still translated", inOrder(kept(back).carry(tries(back, 2005, 2006, 2008)...), masqueraded(again, node+":52003").carry(exchanged(again, 2070, 19_000)...)), Inconclusive},
		{"the connection of the change goes on", masqueraded(now, node+":52000").carry(data(now, 50, at(2001), seq(9500), acks(16_500)), dataBack(backOf(now), 50, at(2002), seq(16_500), acks(9550), ttl(60))), Inconclusive},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			rollback := momentOf(t, gke(t), capturedBy(window(2000, 2090), tt.rollback, goesOn(2090))...)
			ev, err := NewEvidence([]MomentInput{before, after, rollback}, EvidenceOptions{Which: selectorOf(t, "tcp any > "+server), Intent: IntentSNAT})
			if err != nil {
				t.Fatal(err)
			}
			if ev.Change != ChangedAsIntended || ev.RolledBack != tt.want || ev.State() != tt.want {
				t.Errorf("%s, rolled back %v, state %v, want %v: %q", ev.Change, ev.RolledBack, ev.State(), tt.want, ev.Nodes[0].Reading)
			}
		})
	}
}

func backOf(ends string) string { return back(ends) }

// What else changed is told by source class, of requests that began in their capture; the known request is not among it.
func TestEvidenceAlsoChanged(t *testing.T) {
	ask := func(port, to int) string { return fmt.Sprintf("%s:%d > %s:%d", pod, port, server, to) }
	path := func(ends string, snat bool) natPath {
		if snat {
			return masqueraded(ends, fmt.Sprintf("%s:%d", node, 50_000+len(ends)))
		}
		return kept(ends)
	}
	var before, after many
	n := uint32(1000)
	add := func(to *many, t float64, port, dport int, snat bool) {
		n += 10_000
		*to = append(*to, path(ask(port, dport), snat).carry(exchanged(ask(port, dport), t, n)...)...)
	}
	add(&before, 5, 41000, 443, false)
	add(&after, 1005, 41001, 443, true)
	add(&before, 6, 42000, 8001, false) // changes
	add(&before, 7, 42001, 8001, false)
	add(&after, 1006, 42002, 8001, true)
	add(&before, 8, 43000, 8002, true) // stays
	add(&after, 1008, 43001, 8002, true)
	add(&before, 9, 44000, 8003, false)     // is in one moment only
	dns := func(port int, t float64) many { // soon after the capture began: it may be older
		q := fmt.Sprintf("%s:%d > %s:53", pod, port, server)
		return kept(q).carry(udp(q, fmt.Sprint("name ", t), at(t)), udp(back(q), fmt.Sprint("answer ", t), at(t+0.01), ttl(60)))
	}
	before, after = append(before, dns(5000, 11)...), append(after, dns(5001, 1011)...)
	for i, to := range []string{"192.0.2.21:8443", "192.0.2.22:8443"} { // a Service whose endpoint is another one: not the same destination
		p := path(ask(46000+i, 8005), i == 1)
		p.to = to
		n += 10_000
		m := p.carry(exchanged(ask(46000+i, 8005), 12+1000*float64(i), n)...)
		if i == 0 {
			before = append(before, m...)
		} else {
			after = append(after, m...)
		}
	}
	old := ask(45000, 8004) // an old connection is no change
	add(&before, 10, 45001, 8004, true)
	after = append(after, kept(old).carry(data(old, 50, at(1001), seq(2000), acks(9000)), dataBack(back(old), 50, at(1002), seq(9000), acks(2050), ttl(60)))...)
	in := []MomentInput{
		momentOf(t, gke(t), capturedBy(window(0, 60), inOrder(before), goesOn(60))...),
		momentOf(t, gke(t), capturedBy(window(1000, 1060), inOrder(after), goesOn(1060))...),
	}
	ev, err := NewEvidence(in, EvidenceOptions{Which: selectorOf(t, "tcp any > "+server+":443")})
	if err != nil {
		t.Fatal(err)
	}
	if ev.AlsoKept != 1 || len(ev.AlsoChanged) != 1 {
		t.Fatalf("kept %d, changed %+v", ev.AlsoKept, ev.AlsoChanged)
	}
	c := ev.AlsoChanged[0]
	// A far capture has another clock: it may overlap with a near one of another moment.
	overlapping := in[Before].Captures[0]
	overlapping.Side, overlapping.File, overlapping.SHA256, overlapping.To = wire.SideFar, "far", "far", in[After].Captures[0].To
	far := []MomentInput{{Captures: append(slices.Clone(in[Before].Captures), overlapping), Requests: in[Before].Requests}, in[After]}
	if _, err := NewEvidence(far, EvidenceOptions{Which: selectorOf(t, "tcp any > "+server+":443")}); err != nil {
		t.Errorf("a far capture that overlaps: %v", err)
	}
	want := [2][]ClassCount{{{PodSourced, 2}}, {{NodeSNATed, 1}}}
	if c.Server.Port != 8001 || !slices.Equal(c.Counts[0], want[0]) || !slices.Equal(c.Counts[1], want[1]) {
		t.Errorf("%+v", c)
	}
}

// Words of what evidence prints stay what they are.
func TestChangeWords(t *testing.T) {
	for c := ChangeInconclusive; c <= ChangedUnexpectedly; c++ {
		if !slices.Contains(byGravity(), c) {
			t.Errorf("%s has no place in a summary", c)
		}
		if (c.State() == Met) != (c == Changed || c == ChangedAsIntended) || (c.State() == Inconclusive) != (c == ChangeInconclusive) {
			t.Errorf("%s means %v", c, c.State())
		}
	}
	if Change(99).State() != Inconclusive || wire.NoTime == 0 {
		t.Error("a verdict that does not exist proves something")
	}
}
