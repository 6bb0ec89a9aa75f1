package tcpdump

import (
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// icmp reads what stands behind "ICMP ": a query, or an error with what it names of the packet that it is about.
func (l *layer) icmp(r string) {
	l.portless = true
	if l.query(r, 8, 0) {
		return
	}
	code := func(typ, code uint8) {
		l.p.ICMPType, l.p.ICMPCode = typ, code
		l.p.Attr |= wire.IsError
		l.p.Known |= wire.KnowTransport
	}
	r, _, whole := strings.Cut(r, ", length ")
	defer func() { l.cut = !l.p.Has(wire.KnowTransport) && (!whole || isBroken(r)) }()
	switch {
	case strings.HasPrefix(r, "time exceeded in-transit"):
		code(11, 0)
	case strings.HasPrefix(r, "ip reassembly time exceeded"):
		code(11, 1)
	case strings.HasPrefix(r, "redirect "), strings.HasPrefix(r, "source quench"), strings.HasPrefix(r, "router "), strings.HasPrefix(r, "time stamp "), strings.HasPrefix(r, "address mask "),
		strings.HasPrefix(r, "parameter problem"):
		// neither a request nor what rejects one
	case strings.Contains(r, "unreachable"):
		l.unreachable(r, code)
	}
}

// unreachable reads the ways in which tcpdump prints ICMP's type 3 (print-icmp.c).
func (l *layer) unreachable(r string, code func(typ, code uint8)) {
	words := strings.Fields(r)
	name := func(i int) {
		if i < len(words) {
			l.about = words[i]
		}
	}
	switch {
	case len(words) >= 5 && words[2] == "port" && strings.HasPrefix(words[4], "unreachable"): // "10.0.0.1 udp port 53 unreachable"
		code(3, 3)
		name(0)
		if p, ok := wire.ProtoOf(words[1]); ok {
			l.aboutProto = p
		}
		if n, err := strconv.ParseUint(words[3], 10, 16); err == nil {
			l.aboutPort = int(n)
		} else if n, ok := servicePort(words[3], l.aboutProto); ok {
			l.aboutPort = int(n)
		}
	case words[0] == "net": // "net 10.0.0.0 unreachable", "... - admin prohibited", "... - unknown", "... - tos prohibited"
		name(1)
		switch {
		case strings.Contains(r, "unknown"):
			code(3, 6)
		case strings.Contains(r, "prohibited"):
			code(3, 9)
		case strings.Contains(r, "tos"):
			code(3, 11)
		default:
			code(3, 0)
		}
	case words[0] == "host":
		name(1)
		switch {
		case strings.Contains(r, "admin prohibited filter"):
			code(3, 13)
		case strings.Contains(r, "admin prohibited"):
			code(3, 10)
		case strings.Contains(r, "unknown"):
			code(3, 7)
		case strings.Contains(r, "tos"):
			code(3, 12)
		case strings.Contains(r, "host precedence"), strings.Contains(r, "precedence violation"):
			code(3, 14)
		default:
			code(3, 1)
		}
	case len(words) >= 4 && words[1] == "protocol": // "10.0.0.1 protocol 47 unreachable", with a port where that is known
		code(3, 2)
		name(0)
	case strings.Contains(r, "need to frag"): // "10.0.0.1 unreachable - need to frag (mtu 1400)"
		code(3, 4)
		name(0)
		if _, mtu, ok := strings.Cut(r, "(mtu "); ok {
			if n, err := strconv.ParseUint(firstWord(mtu), 10, 32); err == nil {
				l.p.MTU = uint32(n)
			}
		}
	case strings.Contains(r, "source route failed"):
		code(3, 5)
		name(0)
	default:
		code(3, 1)
		name(0)
	}
	l.about = strings.TrimRight(l.about, ",")
}

// icmp6 reads what stands behind "ICMP6, ".
func (l *layer) icmp6(r string) {
	l.portless = true
	if l.query(r, 128, 129) {
		return
	}
	code := func(typ, code uint8) {
		l.p.ICMPType, l.p.ICMPCode = typ, code
		l.p.Attr |= wire.IsError
		l.p.Known |= wire.KnowTransport
	}
	r, _, whole := strings.Cut(r, ", length ")
	defer func() { l.cut = !l.p.Has(wire.KnowTransport) && (!whole || isBroken(r)) }()
	words := strings.Fields(r)
	last := func() {
		if len(words) > 0 {
			l.about = strings.TrimRight(words[len(words)-1], ",")
		}
	}
	switch {
	case strings.HasPrefix(r, "destination unreachable"):
		switch {
		case strings.Contains(r, "unreachable route"):
			code(1, 0)
			last()
		case strings.Contains(r, "prohibited"):
			code(1, 1)
			last()
		case strings.Contains(r, "beyond scope"):
			code(1, 2)
		case strings.Contains(r, "unreachable address"):
			code(1, 3)
			last()
		case strings.Contains(r, "unreachable port"): // "unreachable port, 2001:db8::1 udp port 53"
			code(1, 4)
			if i := strings.Index(r, "unreachable port, "); i >= 0 {
				w := strings.Fields(r[i+len("unreachable port, "):])
				if len(w) >= 4 && w[2] == "port" {
					l.about = w[0]
					if p, ok := wire.ProtoOf(w[1]); ok {
						l.aboutProto = p
					}
					if n, err := strconv.ParseUint(w[3], 10, 16); err == nil {
						l.aboutPort = int(n)
					} else if n, ok := servicePort(w[3], l.aboutProto); ok {
						l.aboutPort = int(n)
					}
				}
			}
		default:
			code(1, 0)
		}
	case strings.HasPrefix(r, "neighbor solicitation"):
		l.ask(135, 135)
	case strings.HasPrefix(r, "neighbor advertisement"):
		l.ask(136, 135)
	case strings.HasPrefix(r, "router solicitation"):
		l.ask(133, 133)
	case strings.HasPrefix(r, "router advertisement"):
		l.ask(134, 133)
	case strings.HasPrefix(r, "multicast listener query"):
		l.ask(130, 130)
	case strings.HasPrefix(r, "multicast listener report"), strings.HasPrefix(r, "multicast listener done"):
		l.ask(131, 130)
	case strings.HasPrefix(r, "packet too big"):
		code(2, 0)
		if i := strings.Index(r, "mtu "); i >= 0 {
			if n, err := strconv.ParseUint(firstWord(r[i+4:]), 10, 32); err == nil {
				l.p.MTU = uint32(n)
			}
		}
	case strings.HasPrefix(r, "time exceeded in-transit"):
		code(3, 0)
		last()
	case strings.HasPrefix(r, "ip reassembly time exceeded"):
		code(3, 1)
	}
}

// isBroken tells whether a text names a kind of message that is not found in it, because a line was broken within the words.
func isBroken(s string) bool {
	bare := unbroken(s)
	for _, word := range []string{"echorequest", "echoreply", "unreachable", "timeexceeded", "packettoobig"} {
		if strings.Contains(bare, word) {
			return true
		}
	}
	return false
}

// ask is a query without an identifier, or its answer.
func (l *layer) ask(typ, query uint8) {
	l.p.ICMPType, l.p.Tuple.Query = typ, query
	l.p.Known |= wire.KnowTransport
	if typ != query {
		l.p.Attr |= wire.IsReply
	}
}

// query reads an echo request or reply: "echo request, id 7, seq 1, length 64". Other tools' texts leave the numbers out.
func (l *layer) query(r string, request, reply uint8) bool {
	switch {
	case strings.HasPrefix(r, "echo request"):
		l.p.ICMPType = request
	case strings.HasPrefix(r, "echo reply"):
		l.p.ICMPType = reply
		l.p.Attr |= wire.IsReply
	default:
		return false
	}
	l.p.Known |= wire.KnowTransport
	l.p.Tuple.Query = request
	for field := range strings.SplitSeq(r, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(field), " ")
		n, err := strconv.ParseUint(firstWord(value), 10, 32)
		if err != nil {
			continue
		}
		switch key {
		case "id":
			l.p.Tuple.SrcPortOrEchoID, l.hasEchoID = uint16(n), true
		case "seq":
			l.p.Seq = uint32(n)
		case "length":
			if n >= 8 {
				l.p.PayloadLen, l.p.Known = uint32(n-8), l.p.Known|wire.KnowPayload
			}
		}
	}
	bare := r == "echo request" || r == "echo reply" // as people write it
	l.cut = !l.hasEchoID && !bare && (!strings.Contains(r, "length ") || strings.Contains(r, "seq") || strings.Contains(r, cutMark))
	return true
}
