package analyze

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// A capture's filter decides what its silence means. evalFilter asks whether a pcap-filter expression (the pcap-filter(7)
// manual page) would have kept a packet of which only some fields are known. It is a reading of the common subset with
// three answers; whatever it does not understand is perhaps, never a guess.

// tri is an answer with three values.
type tri uint8

const (
	perhaps tri = iota
	no
	yes
)

func (t tri) not() tri {
	switch t {
	case yes:
		return no
	case no:
		return yes
	case perhaps:
	}
	return perhaps
}

func and(a, b tri) tri {
	switch {
	case a == no || b == no:
		return no
	case a == yes && b == yes:
		return yes
	}
	return perhaps
}

func or(a, b tri) tri {
	switch {
	case a == yes || b == yes:
		return yes
	case a == no && b == no:
		return no
	}
	return perhaps
}

// maxFilterDepth bounds nested parentheses.
const maxFilterDepth = 200

// evalFilter answers whether the filter keeps the packet. The empty filter keeps everything.
func evalFilter(expr string, m *missing) tri {
	p := filterParser{words: filterWords(expr), m: m}
	if len(p.words) == 0 {
		return yes
	}
	v := p.or(0)
	if p.bad || p.at != len(p.words) {
		return perhaps
	}
	return v
}

// filterWords splits an expression into words and the operators that need no space around them.
func filterWords(expr string) []string {
	for _, op := range []string{"&&", "||", "!", "(", ")"} {
		expr = strings.ReplaceAll(expr, op, " "+op+" ")
	}
	expr = strings.ReplaceAll(expr, " !  = ", " != ") // a comparison, not a negation
	return strings.Fields(strings.NewReplacer("'", " ", `"`, " ").Replace(expr))
}

type filterParser struct {
	words []string
	at    int
	m     *missing
	bad   bool
	// last are the qualifiers of the primitive before, which a bare value repeats: "host a or b" (pcap-filter(7)).
	last qualifiers
}

type qualifiers struct{ proto, dir, kind string }

func (p *filterParser) peek() string {
	if p.at < len(p.words) {
		return p.words[p.at]
	}
	return ""
}

func (p *filterParser) next() string {
	w := p.peek()
	p.at++
	return w
}

// or reads alternation and concatenation, which have equal precedence and associate to the left (pcap-filter(7)).
func (p *filterParser) or(depth int) tri {
	v := p.term(depth)
	for !p.bad {
		switch p.peek() {
		case "or", "||":
			p.at++
			v = or(v, p.term(depth))
		case "and", "&&":
			p.at++
			v = and(v, p.term(depth))
		case "", ")":
			return v
		default:
			p.bad = true
		}
	}
	return perhaps
}

func (p *filterParser) term(depth int) tri {
	if depth > maxFilterDepth {
		p.bad = true
		return perhaps
	}
	switch p.peek() {
	case "not", "!":
		p.at++
		return p.term(depth + 1).not()
	case "(":
		p.at++
		v := p.or(depth + 1)
		if p.next() != ")" {
			p.bad = true
		}
		return v
	case "", ")", "and", "or", "&&", "||":
		p.bad = true
		return perhaps
	}
	return p.primitive()
}

func (p *filterParser) primitive() tri {
	var q qualifiers
	for {
		switch w := p.peek(); w {
		case "ip", "ip6", "tcp", "udp", "sctp", "icmp", "icmp6", "arp", "rarp":
			if q.proto != "" {
				p.bad = true
				return perhaps
			}
			q.proto = w
		case "src", "dst":
			q.dir = w
			if after := strings.Join(p.words[p.at:min(p.at+3, len(p.words))], " "); strings.HasPrefix(after, "src or dst") || strings.HasPrefix(after, "src and dst") {
				q.dir = strings.Fields(after)[1]
				p.at += 2
			}
		case "host", "net", "port", "portrange", "proto":
			q.kind = w
		case "inbound":
			p.at++
			return direction(p.m, wire.DirIn)
		case "outbound":
			p.at++
			return direction(p.m, wire.DirOut)
		default:
			return p.value(q)
		}
		p.at++
	}
}

func direction(m *missing, d wire.Direction) tri {
	return same(m.dir != wire.DirUnknown, m.dir == d)
}

// value reads the identifier behind the qualifiers, if there is one, and answers the primitive.
func (p *filterParser) value(q qualifiers) tri {
	w := p.peek()
	bare := w == "" || w == ")" || w == "and" || w == "or" || w == "&&" || w == "||"
	if bare {
		if q.proto == "" || q.dir != "" || q.kind != "" {
			p.bad = true
			return perhaps
		}
		return p.protocol(q.proto)
	}
	if q == (qualifiers{}) {
		if !plausibleValue(w) {
			p.bad = true // a primitive that is not in the subset: greater, vlan, tcp[13] & 2 != 0, ...
			return perhaps
		}
		q = p.last
	}
	p.last = q
	p.at++
	v := yes
	if q.proto != "" {
		v = p.protocol(q.proto)
	}
	switch q.kind {
	case "", "host":
		if prefix, err := netip.ParsePrefix(w); err == nil {
			return and(v, p.ends(q.dir, func(a wire.Addr) tri { return inPrefix(a, prefix) }))
		}
		addr, err := netip.ParseAddr(w)
		if err != nil {
			p.bad = p.bad || strings.ContainsAny(w, "[]<>=&|")
			return perhaps // a name: this room resolves none
		}
		want := wire.AddrFrom(addr)
		return and(v, p.ends(q.dir, func(a wire.Addr) tri { return same(a.IsValid(), a == want) }))
	case "net":
		prefix, ok := parseNet(w)
		if p.peek() == "mask" {
			p.at += 2
			return perhaps
		}
		if !ok {
			return perhaps
		}
		return and(v, p.ends(q.dir, func(a wire.Addr) tri { return inPrefix(a, prefix) }))
	case "port", "portrange":
		lo, hi, ok := parsePorts(w)
		if !ok {
			return perhaps
		}
		if !p.m.proto.HasPorts() {
			return no
		}
		return and(v, p.ports(q.dir, func(n int) tri { return same(n >= 0, n >= lo && n <= hi) }))
	case "proto":
		n, err := strconv.Atoi(strings.TrimPrefix(w, `\`))
		if err != nil {
			return and(v, p.protocol(strings.TrimPrefix(w, `\`)))
		}
		return and(v, same(true, int(p.m.proto) == n))
	}
	return perhaps
}

func plausibleValue(w string) bool {
	if _, err := netip.ParseAddr(w); err == nil {
		return true
	}
	if _, err := netip.ParsePrefix(w); err == nil {
		return true
	}
	_, _, ok := parsePorts(w)
	return ok
}

func same(known, equal bool) tri {
	switch {
	case !known:
		return perhaps
	case equal:
		return yes
	}
	return no
}

func inPrefix(a wire.Addr, p netip.Prefix) tri { return same(a.IsValid(), p.Contains(a.Netip())) }

func (p *filterParser) ends(dir string, match func(wire.Addr) tri) tri {
	switch dir {
	case "src":
		return match(p.m.src)
	case "dst":
		return match(p.m.dst)
	case "and":
		return and(match(p.m.src), match(p.m.dst))
	}
	return or(match(p.m.src), match(p.m.dst))
}

func (p *filterParser) ports(dir string, match func(int) tri) tri {
	switch dir {
	case "src":
		return match(p.m.sport)
	case "dst":
		return match(p.m.dport)
	case "and":
		return and(match(p.m.sport), match(p.m.dport))
	}
	return or(match(p.m.sport), match(p.m.dport))
}

func (p *filterParser) protocol(name string) tri {
	switch name {
	case "ip":
		return same(true, !p.m.v6)
	case "ip6":
		return same(true, p.m.v6)
	case "tcp":
		return same(true, p.m.proto == wire.ProtoTCP)
	case "udp":
		return same(true, p.m.proto == wire.ProtoUDP)
	case "sctp":
		return same(true, p.m.proto == wire.ProtoSCTP)
	case "icmp":
		return same(true, p.m.proto == wire.ProtoICMP)
	case "icmp6":
		return same(true, p.m.proto == wire.ProtoICMP6)
	case "arp", "rarp":
		return no
	}
	return perhaps
}

// parseNet reads a network as pcap-filter has them: with a length, or as one to three octets of IPv4.
func parseNet(w string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(w); err == nil {
		return p.Masked(), true
	}
	if strings.Contains(w, "/") || strings.Contains(w, ":") {
		return netip.Prefix{}, false
	}
	parts := strings.Split(w, ".")
	if len(parts) > 4 {
		return netip.Prefix{}, false
	}
	full := w + strings.Repeat(".0", 4-len(parts))
	a, err := netip.ParseAddr(full)
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, 8*len(parts)), true
}

func parsePorts(w string) (lo, hi int, ok bool) {
	a, b, ranged := strings.Cut(w, "-")
	lo, err := strconv.Atoi(a)
	if err != nil || lo < 0 || lo > 65535 {
		return 0, 0, false
	}
	if !ranged {
		return lo, lo, true
	}
	hi, err = strconv.Atoi(b)
	return lo, hi, err == nil && hi >= lo && hi <= 65535
}
