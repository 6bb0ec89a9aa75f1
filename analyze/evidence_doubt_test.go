package analyze

import (
	"fmt"
	"slices"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster"
)

// Situations that look like proof, or like a failure, and are not; each of them was once taken for one.
func TestEvidenceDoubts(t *testing.T) {
	was, now, third := podAsks(41000), podAsks(41001), podAsks(41002)
	of := func(parts ...part) MomentInput { return momentOf(t, gke(t), capturedBy(parts...)...) }
	silentBefore := of(window(0, 60), kept(was).carry(tries(was, 5, 6, 8)...), goesOn(60))
	keptBefore := of(window(0, 60), kept(was).carry(exchanged(was, 5, 1000)...), goesOn(60))
	snatAfter := of(window(1000, 1060), masqueraded(now, node+":52000").carry(exchanged(now, 1005, 9000)...), goesOn(1060))
	keptBack := of(window(2000, 2090), kept(third).carry(exchanged(third, 2070, 19000)...), goesOn(2090))
	one := syn(now, at(1002), isn(31000))
	service := func(port int, to, as string) natPath {
		p := kept(fmt.Sprintf("%s:%d > 10.96.0.10:443", pod, port))
		p.to, p.as = to, as
		return p
	}
	svc := func(port int, t float64, n uint32) many {
		return exchanged(fmt.Sprintf("%s:%d > 10.96.0.10:443", pod, port), t, n)
	}
	question := func(port int) string { return fmt.Sprintf("%s:%d > %s:53", pod, port, server) }
	asks := func(port int, as string, t float64) many {
		q := question(port)
		p := kept(q)
		p.as = as
		return p.carry(udp(q, fmt.Sprint("name ", t), at(t)), udp(back(q), fmt.Sprint("answer ", t), at(t+0.01), ttl(60)))
	}
	named := func(m MomentInput, name string) MomentInput {
		m.Requests = append([]Observation{}, m.Requests...)
		for i := range m.Requests {
			if r := &m.Requests[i]; r.Client.Role.Kind == cluster.RolePod {
				r.Client.Role = cluster.NewRole(cluster.RolePod, name, r.Client.Role.Node(), r.Client.Role.Fact())
			}
		}
		return m
	}
	damagedOne := func(m MomentInput) MomentInput {
		m.Captures = append([]MomentCapture{}, m.Captures...)
		m.Captures[0].Damaged = true
		return m
	}
	lossy := func(m MomentInput, code string) MomentInput {
		m.Captures = append([]MomentCapture{}, m.Captures...)
		m.Captures[0].Lossy = code
		return m
	}
	delivered := asks(5001, node+":54000", 1130)
	atEgress := delivered[:len(delivered)-1] // the last is the answer's way to the Pod
	var silentHere many                      // on the Pod's interface only
	silentHere = append(silentHere, seenAt(tries(third, 1010, 1011, 1013), in("veth1"))...)
	for _, tt := range []struct {
		sentence string
		moments  []MomentInput
		want     Change
		code     string
		rolled   State
	}{
		{"a single SYN that was answered may repeat one that was not", []MomentInput{silentBefore, of(window(1000, 1060), kept(now).carry(exchanged(now, 1002, 9000)...), goesOn(1060))}, ChangeInconclusive, doubtUnsure, 0},
		{"where requests were answered before, nobody repeats a SYN", []MomentInput{keptBefore, of(window(1000, 1060), kept(now).carry(exchanged(now, 1002, 9000)...), goesOn(1060))}, Unchanged, "", 0},
		{
			"a single SYN that was rejected",
			[]MomentInput{silentBefore, of(window(1000, 1060), kept(now).carry(one), icmp("10.128.0.1", 3, 1, kept(now).carry(one)[1], at(1003), in("eth0")), goesOn(1060))},
			ChangeInconclusive, doubtUnsure, 0,
		},
		{
			"SYNs 1 s apart at the beginning of the capture: Linux repeats the first ones alike",
			[]MomentInput{silentBefore, of(window(1000, 1060), kept(now).carry(tries(now, 1000.3, 1001.3, 1003.3, 1007.3)...), goesOn(1060))},
			ChangeInconclusive, doubtUnsure, 0,
		},
		{
			"the same 2 s after the capture began: a repetition before them would be in it",
			[]MomentInput{silentBefore, of(window(1000, 1060), kept(now).carry(tries(now, 1002, 1003, 1005)...), goesOn(1060))},
			Unchanged, "", 0,
		},
		{
			"a Service whose endpoint is another one", []MomentInput{
				of(window(0, 60), service(41000, "192.0.2.9:8443", "").carry(svc(41000, 5, 1000)...), goesOn(60)),
				of(window(1000, 1060), service(41001, "198.51.100.9:8443", node+":52000").carry(svc(41001, 1005, 9000)...), goesOn(1060)),
			}, ChangeInconclusive, doubtBackend, 0,
		},
		{
			"a Service whose endpoint is the same", []MomentInput{
				of(window(0, 60), service(41000, "192.0.2.9:8443", "").carry(svc(41000, 5, 1000)...), goesOn(60)),
				of(window(1000, 1060), service(41001, "192.0.2.9:8443", node+":52000").carry(svc(41001, 1005, 9000)...), goesOn(1060)),
			}, ChangedAsIntended, "", 0,
		},
		{
			"one address, and facts that call it something else on each side", []MomentInput{
				momentOf(t, factsOf(t, "pod 10.4.0.0/14", "node 10.128.0.99"), capturedBy(window(0, 60), masqueraded(was, node+":51000").carry(exchanged(was, 5, 1000)...), goesOn(60))...), snatAfter,
			}, ChangeInconclusive, doubtFacts, 0,
		},
		{
			"UDP: the answer is seen at the node and not on its way to the Pod",
			[]MomentInput{of(window(0, 200), asks(5000, "", 130), goesOn(200)), of(window(1000, 1200), atEgress, goesOn(1200))},
			ChangeInconclusive, doubtDelivery, 0,
		},
		{"UDP: it goes on to the Pod", []MomentInput{of(window(0, 200), asks(5000, "", 130), goesOn(200)), of(window(1000, 1200), delivered, goesOn(1200))}, ChangedAsIntended, "", 0},
		{
			"a further request after the change of which the source is not known",
			[]MomentInput{silentBefore, of(window(1000, 1060), inOrder(masqueraded(now, node+":52000").carry(exchanged(now, 1005, 9000)...), silentHere), notAll, goesOn(1060))},
			ChangeInconclusive, "egress-not-visible", 0,
		},
		{"packets were dropped, and no data is seen", []MomentInput{silentBefore, lossy(of(window(1000, 1060), masqueraded(now, node+":52000").carry(opened(now, 1005, 9000)...), goesOn(1060)), "packets-dropped")}, ChangeInconclusive, "packets-dropped", 0},
		{"packets were dropped, and the request completed all the same", []MomentInput{silentBefore, lossy(snatAfter, "packets-dropped")}, ChangedAsIntended, "", 0},
		{"a single SYN 45 s after the capture began: the pauses between repetitions may be longer", []MomentInput{silentBefore, of(window(1000, 1090), kept(now).carry(tries(now, 1045)...), goesOn(1090))}, ChangeInconclusive, doubtUnsure, 0},
		{"UDP 60 s after the capture began", []MomentInput{of(window(0, 200), asks(5000, "", 130), goesOn(200)), of(window(1000, 1200), asks(5001, "", 1060), goesOn(1200))}, ChangeInconclusive, doubtUnsure, 0},
		{"UDP 125 s after the capture began", []MomentInput{of(window(0, 200), asks(5000, "", 130), goesOn(200)), of(window(1000, 1200), asks(5001, "", 1125), goesOn(1200))}, Unchanged, "", 0},
		{
			"UDP soon after the change, in one capture that ran long before it",
			[]MomentInput{split(of(window(0, 999), asks(5000, "", 130), goesOn(999))), split(of(window(1000, 1200), asks(5001, "", 1005), goesOn(1200)))},
			Unchanged, "", 0,
		},
		{
			"one that may be older, and one that is new: the new one is shown",
			[]MomentInput{silentBefore, of(window(1000, 1100), inOrder(kept(now).carry(tries(now, 1003, 1011)...), kept(third).carry(exchanged(third, 1080, 19000)...)), goesOn(1100))},
			Unchanged, "", 0,
		},
		{
			"answers alone, of an exchange that began before", []MomentInput{
				of(window(0, 200), asks(5000, "", 130), goesOn(200)),
				of(window(1000, 1200), inOrder(asks(5001, node+":54000", 1130), seenAt(many{udp(back(question(5003)), "late", at(1150), ttl(59))}, out("veth1"))), goesOn(1200)),
			}, ChangedAsIntended, "", 0,
		},
		{"only the node's side was captured after the change", []MomentInput{keptBefore, of(window(1000, 1060), onUplink(masqueraded(now, node+":52000").carry(exchanged(now, 1005, 9000)...)), goesOn(1060))}, ChangeInconclusive, doubtOtherPod, 0},
		{"the request never left before", []MomentInput{of(window(0, 60), neighbours(), seenAt(tries(was, 45, 46, 48), in("veth1")), goesOn(60)), snatAfter}, ChangeInconclusive, doubtNotSent, 0},
		{"the request never leaves after", []MomentInput{keptBefore, of(window(1000, 1060), neighboursAt(1000), seenAt(tries(now, 1045, 1046, 1048), in("veth1")), goesOn(1060))}, ChangedUnexpectedly, "", 0},
		{"another Pod, by name", []MomentInput{named(keptBefore, "shop/web-1"), named(snatAfter, "shop/web-2")}, ChangeInconclusive, doubtOtherPod, 0},
		{"the same Pod, by name", []MomentInput{named(keptBefore, "shop/web-1"), named(snatAfter, "shop/web-1")}, ChangedAsIntended, "", 0},
		{"a damaged capture", []MomentInput{keptBefore, damagedOne(snatAfter)}, ChangeInconclusive, "capture-incomplete", 0},

		{"a rollback of another Pod", []MomentInput{named(keptBefore, "shop/web-1"), named(snatAfter, "shop/web-1"), named(keptBack, "shop/web-2")}, ChangedAsIntended, "", Inconclusive},
		{"a rollback in a damaged capture", []MomentInput{keptBefore, snatAfter, damagedOne(keptBack)}, ChangeInconclusive, "capture-incomplete", Inconclusive},
		{"a rollback as before", []MomentInput{keptBefore, snatAfter, keptBack}, ChangedAsIntended, "", Met},
		{
			"a rollback of which one request completes and one does not",
			[]MomentInput{keptBefore, snatAfter, of(window(2000, 2090), inOrder(kept(third).carry(exchanged(third, 2070, 19000)...), kept(podAsks(41003)).carry(tries(podAsks(41003), 2010, 2011, 2013)...)), goesOn(2090))},
			ChangedAsIntended, "", Inconclusive,
		},
		{
			"a rollback whose UDP exchange may be older than the change", []MomentInput{
				of(window(0, 200), asks(5000, "", 130), goesOn(200)), of(window(1000, 1200), asks(5001, node+":54000", 1130), goesOn(1200)), of(window(2000, 2060), asks(5002, "", 2005), goesOn(2060)),
			}, ChangedAsIntended, "", Inconclusive,
		},
		{
			"a rollback, and before it both sources were seen", []MomentInput{
				of(window(0, 60), inOrder(kept(was).carry(exchanged(was, 5, 1000)...), masqueraded(podAsks(41009), node+":52009").carry(exchanged(podAsks(41009), 7, 51000)...)), goesOn(60)), snatAfter, keptBack,
			}, ChangeInconclusive, doubtMixed, Inconclusive,
		},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			ev, err := NewEvidence(tt.moments, EvidenceOptions{Which: selectorOf(t, doubtsOf(tt.code)), Intent: IntentSNAT})
			if err != nil {
				t.Fatal(err)
			}
			n := &ev.Nodes[0]
			if ev.Change != tt.want || n.Code != tt.code {
				t.Errorf("%s (%s), want %s (%s): %q", ev.Change, n.Code, tt.want, tt.code, n.Reading)
			}
			if s := n.At[After]; n.Change == Unchanged && slices.Contains(s.Unsure, s.Main) {
				t.Errorf("what is shown as unchanged may be older: %+v", s)
			}
			if len(tt.moments) > 2 && ev.RolledBack != tt.rolled {
				t.Errorf("rolled back: %v, want %v: %q", ev.RolledBack, tt.rolled, n.Reading)
			}
		})
	}
}

// doubtsOf is which requests are asked for: the Pod's, or where the Pod is not to be seen, anybody's.
func doubtsOf(code string) string {
	if code == doubtOtherPod {
		return "tcp any > " + server + ":443"
	}
	return "any 10.4.0.7 > any"
}

// split makes a moment one side of a capture that spans the change.
func split(m MomentInput) MomentInput {
	m.Captures = append([]MomentCapture{}, m.Captures...)
	m.Captures[0].Split, m.Captures[0].SHA256 = true, "one"
	return m
}

// onUplink leaves out what passes the Pod's interface.
func onUplink(m many) many {
	return slices.DeleteFunc(m, func(p packet) bool { return p.iface != "eth0" })
}

// neighboursAt is neighbours, later.
func neighboursAt(seconds float64) many { return seenAt(neighbours(), later(seconds)) }

// notAll is a capture of one device: what left by another is not in it.
var notAll = about(func(r *recording) { r.summary.AllInterfaces = false })

// Two files of one label with a gap between them: what comes first behind the gap may be a repetition from within it.
func TestEvidenceGapBetweenFiles(t *testing.T) {
	was, now := podAsks(41000), podAsks(41001)
	before := momentOf(t, gke(t), capturedBy(window(0, 60), kept(was).carry(tries(was, 5, 6, 8)...), goesOn(60))...)
	after := momentOf(t, gke(t), nodeCapture{"", []part{window(1000, 1100), neighbours(), kept(now).carry(tries(now, 1090)...), goesOn(1100)}})
	for _, tt := range []struct {
		sentence string
		first    [2]float64 // the window of a file before it
		want     Change
	}{
		{"a file that ends 1 s before: watched all the time", [2]float64{900, 999.5}, Unchanged},
		{"a file that ends 80 s before", [2]float64{900, 920}, ChangeInconclusive},
	} {
		in := []MomentInput{before, after}
		c := after.Captures[0]
		earlier := c
		earlier.From, earlier.To, earlier.SHA256 = instant(tt.first[0]), instant(tt.first[1]), "earlier"
		c.From = instant(1088)
		if tt.first[1] > 999 {
			c.From = instant(1000)
		}
		in[After].Captures = []MomentCapture{c, earlier}
		ev, err := NewEvidence(in, EvidenceOptions{Which: selectorOf(t, "tcp any > "+server)})
		if err != nil {
			t.Fatal(err)
		}
		if ev.Change != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.sentence, ev.Change, ev.Nodes[0].Code, tt.want)
		}
	}
}

// A middlebox answers in the far host's place: the far capture covers the request and holds nothing of it.
func TestEvidenceAnsweredInBetween(t *testing.T) {
	was, now, other := podAsks(41000), podAsks(41001), podAsks(41020)
	before := momentOf(t, gke(t), capturedBy(window(0, 60), kept(was).carry(tries(was, 5, 6, 8)...), goesOn(60))...)
	passes := trip{client: pod + ":41020", server: server + ":443", as: node + ":52020"}
	near := captureOf(t, window(1000, 1060), inOrder(passes.near(exchanged(other, 1002, 55000)...), masqueraded(now, node+":52000").carry(exchanged(now, 1005, 9000)...)), goesOn(1060))
	far := farCapture(t, window(1000, 1060), passes.far(exchanged(other, 1002, 55000)...))
	res := runOf(t, gke(t), Options{}, near, far)
	var m MomentInput
	for i, info := range res.Captures {
		m.Captures = append(m.Captures, MomentCapture{File: fmt.Sprint("f", i), Side: info.Side, SHA256: fmt.Sprint("m", i), From: info.Summary.First, To: info.Summary.Last})
	}
	for i := range res.Requests {
		r := &res.Requests[i]
		m.Requests = append(m.Requests, Observation{Request: *r, ID: fmt.Sprintf("%v %d", r.Tuple, r.Opening), Capture: r.capture()})
	}
	ev, err := NewEvidence([]MomentInput{before, m}, EvidenceOptions{Which: selectorOf(t, "tcp "+pod+":41001 > any")})
	if err == nil {
		t.Fatalf("before is of another port: %+v", ev)
	}
	ev, err = NewEvidence([]MomentInput{before, m}, EvidenceOptions{Which: selectorOf(t, "tcp any > "+server)})
	if err != nil {
		t.Fatal(err)
	}
	if ev.Change != ChangeInconclusive || ev.Nodes[0].Code != doubtAnswerer {
		t.Errorf("%s (%s): %q", ev.Change, ev.Nodes[0].Code, ev.Nodes[0].Reading)
	}
}
