package analyze

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Selector picks requests: protocol, client, server, server port. The zero Selector picks all.
type Selector struct {
	text   string
	proto  string // "" is any
	client netip.Prefix
	server netip.Prefix
	sport  int // -1 is any
	port   int // -1 is any
	set    bool
}

// ParseSelector reads "PROTO SRC > DST:PORT", as --request takes it: "tcp 172.16.0.0/16 > 10.20.0.10:80". SRC and DST are
// addresses, ranges, or any; the port may be left out; "icmp" has none. Brackets go around an IPv6 address with a port.
func ParseSelector(s string) (Selector, error) {
	fail := func(what string) (Selector, error) {
		return Selector{}, fmt.Errorf("request %q: %s; the form is 'tcp 172.16.0.0/16 > 10.20.0.10:80'", s, what)
	}
	left, right, ok := strings.Cut(s, ">")
	if !ok {
		return fail("there is no >")
	}
	words := strings.Fields(left)
	sel := Selector{text: strings.Join(strings.Fields(s), " "), sport: -1, port: -1, set: true}
	if len(words) != 2 {
		return fail("before the > stand a protocol and the client")
	}
	switch words[0] {
	case "tcp", "udp", "sctp", "icmp", "icmp6":
		sel.proto = words[0]
	case "any", "ip":
	default:
		return fail(fmt.Sprintf("protocol %q is not tcp, udp, sctp, icmp, icmp6 or any", words[0]))
	}
	to := strings.TrimSpace(right)
	if to == "" || len(strings.Fields(to)) != 1 {
		return fail("behind the > stands the server, with or without :PORT")
	}
	var err error
	if sel.client, sel.sport, err = sel.end(words[1]); err != nil {
		return fail(err.Error())
	}
	if sel.server, sel.port, err = sel.end(to); err != nil {
		return fail(err.Error())
	}
	if sel.proto == "icmp" && (isV6(sel.client) || isV6(sel.server)) {
		return fail("the protocol of IPv6 is icmp6")
	}
	return sel, nil
}

func isV6(p netip.Prefix) bool { return p.IsValid() && p.Addr().Is6() }

// end reads ADDRESS, RANGE or any, with or without :PORT.
func (s Selector) end(text string) (netip.Prefix, int, error) {
	host, port := text, -1
	if h, p, found := cutPort(text); found {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return netip.Prefix{}, 0, fmt.Errorf("port %q is not a number from 0 to 65535", p)
		}
		if strings.HasPrefix(s.proto, "icmp") {
			return netip.Prefix{}, 0, errors.New("icmp has no port")
		}
		host, port = h, int(n)
	}
	p, err := parseRange(host)
	return p, port, err
}

// cutPort splits HOST:PORT; an IPv6 address needs brackets to have one.
func cutPort(s string) (host, port string, ok bool) {
	if strings.HasPrefix(s, "[") {
		end := strings.LastIndexByte(s, ']')
		if end < 0 {
			return s, "", false
		}
		rest := s[end+1:]
		if strings.HasPrefix(rest, ":") {
			return s[1:end], rest[1:], true
		}
		return s[1:end], "", false
	}
	if strings.Count(s, ":") == 1 {
		host, port, _ = strings.Cut(s, ":")
		return host, port, true
	}
	return s, "", false
}

func parseRange(s string) (netip.Prefix, error) {
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") {
		s = strings.TrimSuffix(inner, "]")
	}
	if s == "any" || s == "*" {
		return netip.Prefix{}, nil
	}
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("%q is not a range", s)
		}
		if p.Addr().Is4In6() {
			return netip.Prefix{}, fmt.Errorf("%q is an IPv4 range in IPv6 form; write it as IPv4", s)
		}
		return p.Masked(), nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not an address", s)
	}
	return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
}

// IsZero tells whether the selector picks everything.
func (s Selector) IsZero() bool { return !s.set }

// Server returns the addresses of the servers that the selector picks; ok is false if it picks any.
func (s Selector) Server() (p netip.Prefix, ok bool) { return s.server, s.server.IsValid() }

// String returns the selector as it was given.
func (s Selector) String() string { return s.text }

// Match tells whether the selector picks the request. The client is the sender as far as the capture shows it; the server
// may be named by the address asked or by the one it became.
func (s Selector) Match(r *Request) bool {
	if !s.set {
		return true
	}
	if s.proto != "" && s.proto != r.Tuple.Proto.String() {
		return false
	}
	in := func(p netip.Prefix, ends ...*Endpoint) bool {
		return !p.IsValid() || slices.ContainsFunc(ends, func(e *Endpoint) bool { return e != nil && p.Contains(e.Addr.Netip()) })
	}
	if !in(s.client, &r.Client) || !in(s.server, &r.Server, r.Backend, r.FarServer) {
		return false
	}
	if (s.sport >= 0 || s.port >= 0) && !r.Server.HasPort {
		return false
	}
	if s.sport >= 0 && int(r.Client.Port) != s.sport {
		return false
	}
	return s.port < 0 || int(r.Server.Port) == s.port || r.Backend != nil && int(r.Backend.Port) == s.port
}

// Select returns a Result of the selected requests only: counts and findings follow, captures stay.
func (res *Result) Select(sel Selector) *Result {
	if sel.IsZero() {
		return res
	}
	out := *res
	out.Requests, out.onDemand, out.survey = nil, nil, nil
	for i, r := range res.Each {
		if sel.Match(r) {
			out.Requests = append(out.Requests, *res.At(i, nil))
		}
	}
	out.Asked, out.LeftOut = sel.String(), res.Len()-len(out.Requests)
	if len(out.Requests) == 0 {
		out.Nearest = sel.nearest(res.Each, func(i int) *Request { return res.At(i, nil) })
	}
	out.conclude()
	return &out
}

// Expect is what --expect asks of every selected request.
type Expect struct {
	text string
	keys []expectKey
}

type expectKey struct {
	key    string
	values []string
}

// ParseExpect reads KEY=VALUE[|VALUE],... with the keys source, outcome, stopped_at and completed.
func ParseExpect(s string) (Expect, error) {
	e := Expect{text: s}
	allowed := map[string][]string{
		"source": sourceWords(), "outcome": outcomeWords(), "stopped_at": stopWords(), "completed": {"true", "false"},
	}
	for part := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return Expect{}, fmt.Errorf("expectation %q: %q has no =; the form is source=node-snated,outcome=handshake-completed", s, part)
		}
		words, known := allowed[key]
		if !known {
			return Expect{}, fmt.Errorf("expectation %q: key %q is not source, outcome, stopped_at or completed", s, key)
		}
		if slices.ContainsFunc(e.keys, func(k expectKey) bool { return k.key == key }) {
			return Expect{}, fmt.Errorf("expectation %q: key %q stands twice; give alternatives as %s=A|B", s, key, key)
		}
		values := strings.Split(value, "|")
		for _, v := range values {
			if !slices.Contains(words, v) {
				return Expect{}, fmt.Errorf("expectation %q: %s is never %q; it is one of %s", s, key, v, strings.Join(words, ", "))
			}
		}
		e.keys = append(e.keys, expectKey{key, values})
	}
	return e, nil
}

// IsZero tells whether nothing is expected.
func (e Expect) IsZero() bool { return len(e.keys) == 0 }

// State is the answer to an expectation.
type State uint8

// The states. Inconclusive is the zero value.
const (
	Inconclusive State = iota
	Met
	NotMet
)

// Verdict is the answer to an expectation, with a line for each request that is not as expected, at most 20.
type Verdict struct {
	State State
	Lines []string
}

// Check holds the selected requests against the expectation: met if all meet it; not met if one is known to differ;
// inconclusive if nothing was selected, or if what is not known stands in the way.
func (e Expect) Check(res *Result, sel Selector) Verdict {
	const maxLines = 20
	v := Verdict{State: Met}
	count, bad := 0, 0
	say := func(format string, args ...any) {
		if bad++; bad <= maxLines {
			v.Lines = append(v.Lines, fmt.Sprintf(format, args...))
		}
	}
	for _, r := range res.Each {
		if !sel.Match(r) {
			continue
		}
		count++
		for _, k := range e.keys {
			got := k.of(r)
			want := strings.Join(k.values, " or ")
			doubt, why := k.doubt(r)
			switch {
			case slices.Contains(k.values, got) && (!doubt || got == "unknown"):
			case got == "unknown" || doubt:
				if v.State == Met {
					v.State = Inconclusive
				}
				say("%s: %s is expected to be %s and is not known: %s", r.Tuple, k.key, want, why)
			default:
				v.State = NotMet
				say("%s: %s is expected to be %s and is %s", r.Tuple, k.key, want, got)
			}
		}
	}
	if count == 0 {
		what := "no request is in the capture"
		if !sel.IsZero() {
			what = fmt.Sprintf("no request in the capture matches %q", sel)
		}
		return Verdict{State: Inconclusive, Lines: []string{what + ", so the expectation is neither met nor broken"}}
	}
	if bad > maxLines {
		v.Lines = append(v.Lines, fmt.Sprintf("and %d more", bad-maxLines))
	}
	return v
}

func (k expectKey) of(r *Request) string {
	switch k.key {
	case "source":
		return r.Source.String()
	case "outcome":
		return r.Outcome.String()
	case "stopped_at":
		return r.StoppedAt.String()
	}
	return strconv.FormatBool(r.Completed)
}

// Any holds the selected requests one by one against the expectation: met if one meets it. Else it is not met if one is known to
// differ, and inconclusive if none is decided. It is what a capture waits for that runs until the expectation is met.
func (e Expect) Any(res *Result, sel Selector) Verdict {
	all := e.Check(res, sel)
	if all.State == Met {
		return all
	}
	one := Result{Requests: make([]Request, 1)}
	for _, r := range res.Each {
		if !sel.Match(r) {
			continue
		}
		one.Requests[0] = *r
		if v := e.Check(&one, sel); v.State == Met {
			return v
		}
	}
	return all
}

// doubt tells whether the value at this key is one that the captures do not fully carry (capture-ended keeps the word
// request-only, but more could have come).
func (k expectKey) doubt(r *Request) (bool, string) {
	for _, u := range r.Unknown {
		if u.Field == k.key || k.key == "completed" && !r.Completed && u.Field == "outcome" {
			if u.Settle != "" {
				return true, u.Text + " (" + u.Settle + ")"
			}
			return true, u.Text
		}
	}
	if k.key == "completed" && !r.Completed && r.listed() {
		return true, "a connection table does not tell whether data was answered"
	}
	return k.of(r) == "unknown", "no reason recorded"
}
