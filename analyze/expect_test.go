package analyze

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// asked is a request as a selector sees it: its tuple, and what its ends became.
func asked(proto wire.Proto, ends string, mods ...func(*Request)) *Request {
	r := &Request{Tuple: tupleOf(proto, ends)}
	end := func(a wire.Addr, port uint16) Endpoint {
		return Endpoint{Addr: a, Port: port, HasPort: proto.HasPorts()}
	}
	r.Client, r.Server = end(r.Tuple.Src, r.Tuple.SrcPortOrEchoID), end(r.Tuple.Dst, r.Tuple.DstPortOrEchoID)
	for _, m := range mods {
		m(r)
	}
	return r
}

func became(backend string) func(*Request) {
	return func(r *Request) {
		a, p := endOf(backend)
		r.Backend = &Endpoint{Addr: a, Port: p, HasPort: true}
	}
}

func arrivedAt(far string) func(*Request) {
	return func(r *Request) {
		a, p := endOf(far)
		r.FarServer = &Endpoint{Addr: a, Port: p, HasPort: true}
	}
}

func leftAs(egress string) func(*Request) {
	return func(r *Request) {
		a, p := endOf(egress)
		r.Egress = &Endpoint{Addr: a, Port: p, HasPort: true}
	}
}

func TestSelectorMatch(t *testing.T) {
	const (
		tcp = wire.ProtoTCP
		six = "[2001:db8::7]:41000 > [2001:db8:9::9]:443"
	)
	web := asked(tcp, podEnds)
	service := asked(tcp, pod+":41000 > 10.96.0.10:80", became("192.0.2.9:8080"))
	for _, row := range []struct {
		name, selector string
		request        *Request
		want           bool
	}{
		{"addresses and a port", "tcp 10.4.0.7 > 192.0.2.9:443", web, true},
		{"another protocol", "udp 10.4.0.7 > 192.0.2.9:443", web, false},
		{"another client", "tcp 10.4.0.8 > 192.0.2.9:443", web, false},
		{"another server", "tcp 10.4.0.7 > 192.0.2.8:443", web, false},
		{"another port", "tcp 10.4.0.7 > 192.0.2.9:80", web, false},
		{"the ends the other way round", "tcp 192.0.2.9 > 10.4.0.7", web, false},
		{"no port is every port", "tcp 10.4.0.7 > 192.0.2.9", web, true},
		{"a range of clients", "tcp 10.4.0.0/14 > 192.0.2.9:443", web, true},
		{"a range without the client", "tcp 10.8.0.0/14 > 192.0.2.9:443", web, false},
		{"a range of servers, with a port", "tcp any > 192.0.2.0/24:443", web, true},
		{"a range whose host bits are set", "tcp 10.4.0.7/14 > any", web, true},
		{"any client", "tcp any > 192.0.2.9:443", web, true},
		{"any server", "tcp 10.4.0.7 > any", web, true},
		{"any server at a port", "tcp 10.4.0.7 > any:443", web, true},
		{"any server at another port", "tcp 10.4.0.7 > any:80", web, false},
		{"a star is any", "tcp * > *:443", web, true},
		{"any protocol", "any 10.4.0.7 > 192.0.2.9", web, true},
		{"ip is any protocol", "ip 10.4.0.7 > 192.0.2.9", web, true},
		{"the client's port", "tcp 10.4.0.7:41000 > 192.0.2.9:443", web, true},
		{"another client's port", "tcp 10.4.0.7:41001 > 192.0.2.9:443", web, false},
		{"any client at a port", "tcp any:41000 > any", web, true},
		{"blanks more than one, and none", "  tcp   10.4.0.7>192.0.2.9:443  ", web, true},
		{"IPv6 with brackets and a port", "tcp [2001:db8::7] > [2001:db8:9::9]:443", asked(tcp, six), true},
		{"IPv6 with brackets and another port", "tcp [2001:db8::7] > [2001:db8:9::9]:80", asked(tcp, six), false},
		{"IPv6 with brackets and no port", "tcp any > [2001:db8:9::9]", asked(tcp, six), true},
		{"IPv6 without brackets has no port", "tcp 2001:db8::7 > 2001:db8:9::9", asked(tcp, six), true},
		{"IPv6 client's port", "tcp [2001:db8::7]:41000 > any", asked(tcp, six), true},
		{"an IPv6 range", "tcp 2001:db8::/32 > any", asked(tcp, six), true},
		{"an IPv6 range in brackets with a port", "tcp any > [2001:db8:9::/48]:443", asked(tcp, six), true},
		{"an IPv6 range and an IPv4 request", "tcp ::/0 > any", web, false},
		{"an IPv4 range and an IPv6 request", "tcp 0.0.0.0/0 > any", asked(tcp, six), false},
		{"an IPv4 address mapped into IPv6 is the IPv4 address", "tcp ::ffff:10.4.0.7 > any", web, true},
		{"ping", "icmp 10.4.0.7 > 192.0.2.9", asked(wire.ProtoICMP, "10.4.0.7 > 192.0.2.9"), true},
		{"icmp is not ICMPv6", "icmp any > any", asked(wire.ProtoICMP6, "2001:db8::7 > 2001:db8::9"), false},
		{"icmp6", "icmp6 any > any", asked(wire.ProtoICMP6, "2001:db8::7 > 2001:db8::9"), true},
		{"sctp", "sctp any > any:3868", asked(wire.ProtoSCTP, "10.4.0.7:5000 > 192.0.2.9:3868"), true},

		// The server has the name that it was asked under, and the one that it became.
		{"a Service by its own address", "tcp 10.4.0.7 > 10.96.0.10:80", service, true},
		{"a Service by its backend", "tcp 10.4.0.7 > 192.0.2.9:8080", service, true},
		{"a Service by neither", "tcp 10.4.0.7 > 192.0.2.10", service, false},
		{"what the far side saw", "tcp any > 10.20.0.10", asked(tcp, podEnds, arrivedAt("10.20.0.10:443")), true},
		{"a client is not named by what it left as", "tcp 10.128.0.10 > any", asked(tcp, podEnds, leftAs(node+":51000")), false},
		{"a client that left as another keeps its name", "tcp 10.4.0.7 > any", asked(tcp, podEnds, leftAs(node+":51000")), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			sel, err := ParseSelector(row.selector)
			if err != nil {
				t.Fatal(err)
			}
			if got := sel.Match(row.request); got != row.want {
				t.Errorf("%q picks %s: got %t, want %t", row.selector, row.request.Tuple, got, row.want)
			}
			if sel.IsZero() {
				t.Error("a selector that was given is not the one that picks everything")
			}
			again, err := ParseSelector(sel.String())
			if err != nil || again != sel {
				t.Errorf("read again from %q: %+v, %v; was %+v", sel.String(), again, err, sel)
			}
		})
	}
	if !(Selector{}).Match(web) || !(Selector{}).IsZero() {
		t.Error("the zero selector picks everything")
	}
}

// An error is one sentence that has what was typed and the form to type.
func TestSelectorErrors(t *testing.T) {
	for _, row := range []struct{ name, selector, says string }{
		{"nothing", "", "no >"},
		{"no arrow", "tcp 10.4.0.7 192.0.2.9:443", "no >"},
		{"no protocol", "10.4.0.7 > 192.0.2.9:443", "a protocol and the client"},
		{"no client", "tcp > 192.0.2.9:443", "a protocol and the client"},
		{"too much before the arrow", "tcp 10.4.0.7 41000 > 192.0.2.9:443", "a protocol and the client"},
		{"no server", "tcp 10.4.0.7 >", "the server"},
		{"two servers", "tcp 10.4.0.7 > 192.0.2.9 192.0.2.8", "the server"},
		{"two arrows", "tcp 10.4.0.7 > 192.0.2.9 > 192.0.2.8", "the server"},
		{"a protocol that is not judged", "gre 10.4.0.7 > 192.0.2.9", `protocol "gre"`},
		{"a client that is no address", "tcp pod-a > 192.0.2.9:443", `"pod-a"`},
		{"a server that is no address", "tcp 10.4.0.7 > www.example.com:443", `"www.example.com"`},
		{"an address that is none", "tcp 10.4.0.300 > any", `"10.4.0.300"`},
		{"a range that is none", "tcp 10.4.0.0/33 > any", `"10.4.0.0/33"`},
		{"a port that is no number", "tcp any > any:https", `"https"`},
		{"a port that is too large", "tcp any > any:65536", `"65536"`},
		{"a port below zero", "tcp any > any:-1", `"-1"`},
		{"a colon and no port", "tcp any > 192.0.2.9:", `port ""`},
		{"a client's port that is none", "tcp 10.4.0.7:x > any", `"x"`},
		{"a ping's port", "icmp 10.4.0.7 > 192.0.2.9:80", "no port"},
		{"text behind the brackets", "tcp any > [2001:db8::9]443", "2001:db8::9"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := ParseSelector(row.selector)
			if err == nil {
				t.Fatalf("%q was read", row.selector)
			}
			oneSentence(t, err)
			for _, part := range []string{fmt.Sprintf("%q", row.selector), row.says, "the form is 'tcp 172.16.0.0/16 > 10.20.0.10:80'"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

// oneSentence holds for every error that a person reads: lower case at the beginning, one line, no full stop.
func oneSentence(t *testing.T, err error) {
	t.Helper()
	s := err.Error()
	if s == "" || strings.ContainsAny(s, "\n\r\x1b") || strings.HasSuffix(s, ".") || s[0] >= 'A' && s[0] <= 'Z' {
		t.Errorf("not one sentence: %q", s)
	}
}

// A selection is a result of its own: counts, findings and limits speak of what was selected, captures stay as they were.
func TestSelect(t *testing.T) {
	g := gke(t)
	lost := tries(podEnds, 1, 2, 4)
	res := resultOf(t, g, inOrder(neighbours(), kept(podEnds).carry(lost...)))
	sel := func(s string) Selector {
		t.Helper()
		sel, err := ParseSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		return sel
	}
	if res.Select(Selector{}) != res {
		t.Error("no selector leaves the result as it is")
	}
	all, before := len(res.Requests), len(res.Findings)
	one := res.Select(sel(podTCP))
	if len(one.Requests) != 1 || one.LeftOut != all-1 || len(one.Captures) != 1 {
		t.Fatalf("%d requests, %d left out of %d, %d captures", len(one.Requests), one.LeftOut, all, len(one.Captures))
	}
	if len(one.Findings) != 1 || one.Findings[0].Code != codePodUnanswered || !slices.Equal(one.Findings[0].Requests, []int{0}) {
		t.Errorf("findings of the selection: %+v", one.Findings)
	}
	if len(one.Sources) != 1 || one.Sources[0].Addr != wire.MustAddr(pod) || one.Sources[0].Requests != 1 || one.Sources[0].Packets != 3 {
		t.Errorf("sources of the selection: %+v", one.Sources)
	}
	rest := res.Select(sel("tcp " + node + " > any"))
	if slices.ContainsFunc(rest.Findings, func(f Finding) bool { return f.Code == codePodUnanswered }) {
		t.Errorf("a finding of what was left out: %+v", rest.Findings)
	}
	none := res.Select(sel("udp any > any"))
	if len(none.Requests) != 0 || none.LeftOut != all || len(none.Findings) != 0 || len(none.Sources) != 0 {
		t.Errorf("nothing selected: %d requests, %d left out, %d findings, sources %+v", len(none.Requests), none.LeftOut, len(none.Findings), none.Sources)
	}
	if len(res.Requests) != all || len(res.Findings) != before || res.LeftOut != 0 {
		t.Errorf("the result that was selected from has changed: %d requests, %d findings, %d left out", len(res.Requests), len(res.Findings), res.LeftOut)
	}
	for i := range res.Findings {
		for _, n := range res.Findings[i].Requests {
			if !slices.Contains(res.Requests[n].Findings, res.Findings[i].Code) {
				t.Errorf("%s is about request %d, which has %q", res.Findings[i].Code, n, res.Requests[n].Findings)
			}
		}
	}
}

// valueOf is the value of an enumeration that has the word.
func valueOf[E interface {
	~uint8
	String() string
}](t *testing.T, word string,
) E {
	t.Helper()
	for i := range E(50) {
		if i.String() == word {
			return i
		}
	}
	t.Fatalf("no value is written %q", word)
	return 0
}

// concluded is a request with verdicts, written "source outcome stopped_at", "completed" behind it where it was.
func concluded(t *testing.T, verdict string, unknown ...Unknown) Request {
	t.Helper()
	r := *asked(wire.ProtoTCP, podEnds)
	words := strings.Fields(verdict)
	r.Source, r.Outcome, r.StoppedAt = valueOf[Source](t, words[0]), valueOf[Outcome](t, words[1]), valueOf[Stop](t, words[2])
	r.Completed = len(words) > 3
	r.Unknown = unknown
	return r
}

func TestExpect(t *testing.T) {
	ended := Unknown{Field: "outcome", Reason: "capture-ended", Text: "the capture ends too soon", Settle: "capture for longer"}
	noFar := Unknown{Field: "stopped_at", Reason: "no-far-capture", Text: "no far capture"}
	podSide := Unknown{Field: "source", Reason: "pod-side-capture-only", Text: "this capture holds the Pod's side only", Settle: "capture on the node"}
	good := concluded(t, "node-snated handshake-completed none completed")
	bad := concluded(t, "pod-sourced request-only unknown", noFar)
	doubtful := concluded(t, "pod-sourced request-only unknown", ended, noFar)
	inside := concluded(t, "unknown handshake-completed none", podSide)
	for _, row := range []struct {
		name, expect string
		requests     []Request
		want         State
		says         string // in one of the lines; "" for no lines
	}{
		{"the source is as expected", "source=node-snated", []Request{good}, Met, ""},
		{"the source is another", "source=node-snated", []Request{bad}, NotMet, "source is expected to be node-snated and is pod-sourced"},
		{"one of several values", "source=node-own|node-snated", []Request{good}, Met, ""},
		{"none of several values", "source=node-own|node-snated", []Request{bad}, NotMet, "expected to be node-own or node-snated"},
		{"all keys", "source=node-snated,outcome=handshake-completed,stopped_at=none,completed=true", []Request{good}, Met, ""},
		{"blanks behind commas", "source=node-snated, outcome=handshake-completed", []Request{good}, Met, ""},
		{"one key of several differs", "source=node-snated,outcome=refused", []Request{good}, NotMet, "outcome is expected to be refused and is handshake-completed"},
		{"all requests must be as expected", "source=node-snated", []Request{good, bad}, NotMet, "pod-sourced"},
		{"all requests are as expected", "source=node-snated", []Request{good, good}, Met, ""},

		{"what is not known is neither", "source=node-snated", []Request{inside}, Inconclusive, "is not known: this capture holds the Pod's side only (capture on the node)"},
		{"what is not known, expected of stopped_at", "stopped_at=between", []Request{bad}, Inconclusive, "is not known: no far capture"},
		{"unknown is expected", "source=unknown", []Request{inside}, Met, ""},
		{"unknown is expected of a source that is known", "source=unknown", []Request{good}, NotMet, "expected to be unknown and is node-snated"},
		{"unknown or something", "stopped_at=unknown|far", []Request{bad}, Met, ""},
		{"one differs and one is not known: it differs", "source=node-snated", []Request{bad, inside}, NotMet, "is not known"},
		{"one is not known and one differs: it differs", "source=node-snated", []Request{inside, bad}, NotMet, "is not known"},
		{"one is as expected and one is not known", "source=node-snated", []Request{good, inside}, Inconclusive, "is not known"},

		{"request-only, and the capture ran on", "outcome=request-only", []Request{bad}, Met, ""},
		{"request-only, and the capture ended at once", "outcome=request-only", []Request{doubtful}, Inconclusive, "the capture ends too soon (capture for longer)"},
		{"an answer, and the capture ended at once", "outcome=answered", []Request{doubtful}, Inconclusive, "the capture ends too soon"},
		{"an answer, and the capture ran on", "outcome=answered", []Request{bad}, NotMet, "expected to be answered and is request-only"},
		{"a doubt about the outcome is none about the source", "source=pod-sourced", []Request{doubtful}, Met, ""},

		{"completed", "completed=true", []Request{good}, Met, ""},
		{"completed, and not expected to be", "completed=false", []Request{good}, NotMet, "completed is expected to be false and is true"},
		{"not completed", "completed=true", []Request{bad}, NotMet, "completed is expected to be true and is false"},
		{"not completed, and the capture ended at once", "completed=true", []Request{doubtful}, Inconclusive, "the capture ends too soon"},
		{"not completed is expected, and the capture ended at once", "completed=false", []Request{doubtful}, Inconclusive, "the capture ends too soon"},
		{"completed although the outcome is not sure", "completed=true", []Request{concluded(t, "node-own answered none completed", ended)}, Met, ""},

		{"no request", "source=node-snated", nil, Inconclusive, "no request is in the capture"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e, err := ParseExpect(row.expect)
			if err != nil {
				t.Fatal(err)
			}
			if e.IsZero() {
				t.Error("something is expected")
			}
			v := e.Check(&Result{Requests: row.requests}, Selector{})
			if v.State != row.want {
				t.Errorf("got state %d, want %d: %q", v.State, row.want, v.Lines)
			}
			if row.says == "" && len(v.Lines) > 0 || !strings.Contains(strings.Join(v.Lines, "\n"), row.says) {
				t.Errorf("lines %q, want %q", v.Lines, row.says)
			}
		})
	}
	if e := (Expect{}); !e.IsZero() {
		t.Error("the zero Expect expects nothing")
	}
}

// Only what the selector picks is held against the expectation.
func TestExpectSelected(t *testing.T) {
	other := concluded(t, "pod-sourced request-only unknown")
	other.Tuple = tupleOf(wire.ProtoTCP, pod+":41001 > 198.51.100.1:443")
	other.Server.Addr = other.Tuple.Dst
	res := &Result{Requests: []Request{other, concluded(t, "node-snated handshake-completed none")}}
	e, err := ParseExpect("source=node-snated")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		selector string
		want     State
		says     string
	}{
		{podTCP, Met, ""},
		{"tcp any > 198.51.100.1", NotMet, "198.51.100.1:443: source is expected"},
		{"tcp any > 198.51.100.2", Inconclusive, `no request in the capture matches "tcp any > 198.51.100.2"`},
	} {
		sel, err := ParseSelector(row.selector)
		if err != nil {
			t.Fatal(err)
		}
		v := e.Check(res, sel)
		if v.State != row.want || !strings.Contains(strings.Join(v.Lines, "\n"), row.says) || row.says == "" && len(v.Lines) > 0 {
			t.Errorf("%s: state %d, %q; want %d, %q", row.selector, v.State, v.Lines, row.want, row.says)
		}
	}
}

// A capture of thousands of requests that are not as expected fills no terminal.
func TestExpectLinesAreFew(t *testing.T) {
	e, err := ParseExpect("source=node-snated")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		requests, lines int
		last            string
	}{
		{20, 20, "pod-sourced"},
		{21, 21, "and 1 more"},
		{5000, 21, "and 4980 more"},
	} {
		v := e.Check(&Result{Requests: slices.Repeat([]Request{concluded(t, "pod-sourced request-only unknown")}, row.requests)}, Selector{})
		if len(v.Lines) != row.lines || !strings.Contains(v.Lines[len(v.Lines)-1], row.last) {
			t.Errorf("%d requests: %d lines, the last %q", row.requests, len(v.Lines), v.Lines[len(v.Lines)-1])
		}
	}
}

func TestExpectErrors(t *testing.T) {
	for _, row := range []struct {
		name, expect string
		says         []string
	}{
		{"nothing", "", []string{"the form is"}},
		{"a word", "node-snated", []string{`"node-snated"`, "the form is"}},
		{"nothing behind a comma", "source=node-snated,", []string{"the form is"}},
		{"a key that is none", "src=node-snated", []string{`"src"`, "source, outcome, stopped_at or completed"}},
		{"a key with a blank", "source =node-snated", []string{`"source "`}},
		{"a value that is none", "source=snat", []string{`"snat"`, "node-snated", "pod-sourced"}},
		{"no value", "source=", []string{`""`, "node-snated"}},
		{"a value of another key", "outcome=node-snated", []string{`"node-snated"`, "handshake-completed"}},
		{"no value behind a bar", "outcome=answered|", []string{`""`, "handshake-completed"}},
		{"a key twice", "source=node-own,source=node-snated", []string{`"source" stands twice`, "source=A|B"}},
		{"a truth that is none", "completed=yes", []string{`"yes"`, "true, false"}},
		{"a line break", "source=a\nb", []string{`\n`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := ParseExpect(row.expect)
			if err == nil {
				t.Fatalf("%q was read", row.expect)
			}
			oneSentence(t, err)
			for _, part := range append(row.says, fmt.Sprintf("expectation %q", row.expect)) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

// FuzzSelector: what is read is read the same from its own text; what is not read is said in one sentence.
func FuzzSelector(f *testing.F) {
	for _, s := range []string{
		"tcp 172.16.0.0/16 > 10.20.0.10:80", "icmp any > [2001:db8::1]", "any *:1 > *", "udp [::1]:53>[fe80::1%eth0]:53", "sctp ::ffff:10.0.0.1 > ::/0",
		"tcp a > b", "ip any >", ">>", "tcp [[[::1]]] > ]", "tcp any:+1 > any:-0",
	} {
		f.Add(s)
	}
	r := asked(wire.ProtoTCP, podEnds, became("192.0.2.10:8443"))
	f.Fuzz(func(t *testing.T, s string) {
		sel, err := ParseSelector(s)
		if err != nil {
			oneSentence(t, err)
			return
		}
		again, err := ParseSelector(sel.String())
		if err != nil {
			t.Fatalf("%q became %q, which is not read: %v", s, sel, err)
		}
		if again != sel || sel.IsZero() {
			t.Errorf("%q became %+v, read again %+v", s, sel, again)
		}
		sel.Match(r)
	})
}

// FuzzExpect: what is read can be met, and never is where there is no request.
func FuzzExpect(f *testing.F) {
	for _, s := range []string{
		"source=node-snated", "source=unknown|node-own,outcome=refused", "completed=true, stopped_at=none", "=,=", "source==", "a=b=c", "completed=true|false",
	} {
		f.Add(s)
	}
	r := Request{Tuple: tupleOf(wire.ProtoTCP, podEnds)}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseExpect(s)
		if err != nil {
			oneSentence(t, err)
			return
		}
		if e.IsZero() {
			t.Errorf("%q expects nothing", s)
		}
		if v := e.Check(&Result{}, Selector{}); v.State != Inconclusive || len(v.Lines) != 1 {
			t.Errorf("%q of no request: %+v", s, v)
		}
		if v := e.Check(&Result{Requests: []Request{r}}, Selector{}); (v.State == Met) != (len(v.Lines) == 0) {
			t.Errorf("%q: state %d, lines %q", s, v.State, v.Lines)
		}
	})
}
