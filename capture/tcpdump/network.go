package tcpdump

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// layer is what one printed header chain says of a packet.
type layer struct {
	src, dst   string // as printed, ports included
	v6         bool
	number     int // the protocol's number; -1 if it is not printed
	p          wire.Packet
	offset     int  // of a fragment, in bytes
	more       bool // further fragments
	rest       string
	ipLength   int      // total length of the IPv4 packet, or payload length of the IPv6 one; -1 if it is not printed
	inner      []string // header chains that this one carries, or that an ICMP error quotes
	printed    bool     // addresses were found
	portless   bool     // the protocol has no ports
	seq, ack   int64    // TCP's as printed; -1 is not printed
	about      string   // of an ICMP error: the address that it names
	aboutPort  int      // and its port; -1 if none
	aboutProto wire.Proto
	truncated  bool // the line ends within what matters
	cut        bool // it ends before it is known what the packet is
	hasEchoID  bool
}

// headWords are what tcpdump prints in front of an IP header's line.
func cutHead(s string) (rest string, v6, ok bool) {
	for {
		switch {
		case strings.HasPrefix(s, "IP6 "):
			s, v6, ok = strings.TrimLeft(s[4:], " "), true, true
		case strings.HasPrefix(s, "IP "):
			s, v6, ok = strings.TrimLeft(s[3:], " "), false, true
		case strings.HasPrefix(s, "truncated-ip"): // "truncated-ip - 2 bytes missing! "
			_, behind, found := strings.Cut(s, "missing! ")
			if !found {
				return s, v6, ok
			}
			s = behind
		default:
			return s, v6, ok
		}
	}
}

// parseLayer reads "IP (tos 0x0, ttl 64, ...) 10.0.0.1.80 > 10.0.0.2.40000: Flags [S], ...". ok is false where it is no IP packet.
func parseLayer(s string) (l layer, ok bool) {
	l = layer{number: -1, ipLength: -1, seq: -1, ack: -1, aboutPort: -1}
	s, l.v6, _ = cutHead(strings.TrimLeft(s, " "))
	if strings.HasPrefix(s, "(") {
		end := matching(s)
		if end < 0 {
			return l, false // cut within the header
		}
		l.header(s[1:end])
		s = strings.TrimLeft(s[end+1:], " ,")
	}
	src, rest, found := strings.Cut(s, " > ")
	if !found || src == "" || strings.ContainsAny(src, " \t,()") && !strings.Contains(src, "<") {
		return l, false
	}
	dst, rest, found := cutDestination(rest)
	if !found {
		return l, false
	}
	l.src, l.dst, l.rest, l.printed = src, dst, rest, true
	if a, err := netip.ParseAddr(hostOf(src)); err == nil && a.Is6() {
		l.v6 = true
	} else if a, err := netip.ParseAddr(src); err == nil && a.Is6() {
		l.v6 = true
	}
	l.transport()
	return l, true
}

// cutDestination parts the destination from what follows: a colon and a blank end it. IPv6 addresses hold colons.
func cutDestination(s string) (dst, rest string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == ' ' || s[i] == ',':
			return "", "", false
		case s[i] == ':' && (i+1 == len(s) || s[i+1] == ' '):
			return s[:i], strings.TrimLeft(s[i+1:], " "), i > 0
		}
	}
	return "", "", false
}

// matching returns the place of the parenthesis that closes the first one; -1 if there is none.
func matching(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// header reads what -v prints of the IP header: "tos 0x0, ttl 64, id 7, offset 0, flags [DF], proto TCP (6), length 60".
func (l *layer) header(s string) {
	for field := range strings.SplitSeq(s, ",") {
		field = strings.TrimSpace(field)
		key, value, _ := strings.Cut(field, " ")
		n, err := strconv.Atoi(firstWord(value))
		switch key {
		case "ttl", "hlim":
			if err == nil && n >= 0 && n <= 255 {
				l.p.TTL, l.p.Known = uint8(n), l.p.Known|wire.KnowTTL
			}
		case "id":
			if err == nil && n >= 0 && n <= 0xffff {
				l.p.IPID, l.p.Known = uint16(n), l.p.Known|wire.KnowIPID
			}
		case "offset":
			if err == nil {
				l.offset = n
			}
		case "flags":
			l.more = strings.Contains(value, "+")
		case "proto", "next-header":
			l.number = inParentheses(value)
			if _, length, ok := strings.Cut(value, "payload length: "); ok { // "next-header TCP (6) payload length: 40"
				if n, err := strconv.Atoi(firstWord(length)); err == nil {
					l.ipLength, l.v6 = n, true
				}
			}
		case "length":
			if err == nil {
				l.ipLength = n
			}
		}
	}
}

func firstWord(s string) string {
	s = strings.TrimLeft(s, " ")
	if i := strings.IndexAny(s, " ,;:)]"); i >= 0 {
		return s[:i]
	}
	return s
}

// inParentheses reads the number of "TCP (6)"; -1 if there is none.
func inParentheses(s string) int {
	_, s, found := strings.Cut(s, "(")
	if !found {
		n, err := strconv.Atoi(firstWord(s))
		if err != nil {
			return -1
		}
		return n
	}
	s, _, _ = strings.Cut(s, ")")
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 255 {
		return -1
	}
	return n
}

// hostOf is an endpoint without its port: what stands before the last dot.
func hostOf(s string) string {
	if i := strings.LastIndexByte(s, '.'); i > 0 {
		return s[:i]
	}
	return s
}

// portOf is the port of an endpoint, by number or by the name of a service.
func portOf(s string, proto wire.Proto) (uint16, bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return 0, false
	}
	word := s[i+1:]
	if n, err := strconv.ParseUint(word, 10, 16); err == nil {
		return uint16(n), true
	}
	return servicePort(word, proto)
}

// transport finds the protocol, and reads what the line says behind the addresses.
func (l *layer) transport() {
	r := l.rest
	for { // remarks on checksums and lengths
		trimmed := trimRemark(r)
		if trimmed == r {
			break
		}
		r = trimmed
	}
	switch {
	case l.offset > 0:
		l.p.Attr |= wire.IsFragment | wire.IsLaterFrag
		l.proto(l.number)
		l.portless = true
		return
	case strings.HasPrefix(r, "Flags ["):
		l.p.Tuple.Proto = wire.ProtoTCP
		l.tcp(r)
	case strings.HasPrefix(r, "tcp "), r == "tcp":
		l.p.Tuple.Proto = wire.ProtoTCP
		l.payload(firstWord(strings.TrimPrefix(r, "tcp")))
	case strings.HasPrefix(r, "[|tcp"):
		l.p.Tuple.Proto = wire.ProtoTCP
	case strings.HasPrefix(r, "sctp"):
		l.p.Tuple.Proto = wire.ProtoSCTP
		l.sctp(r)
	case strings.HasPrefix(r, "ICMP6, "):
		l.p.Tuple.Proto = wire.ProtoICMP6
		l.icmp6(r[len("ICMP6, "):])
	case strings.HasPrefix(r, "ICMP "), strings.HasPrefix(r, "ICMP, "), strings.HasPrefix(r, "icmp: "), strings.HasPrefix(r, "[|icmp"):
		l.p.Tuple.Proto = wire.ProtoICMP
		if _, behind, ok := strings.Cut(r, " "); ok {
			l.icmp(behind)
		}
	case strings.HasPrefix(r, "[|icmp6"):
		l.p.Tuple.Proto = wire.ProtoICMP6
	case strings.HasPrefix(r, "GREv"):
		l.carrier(wire.TunnelGRE, 47)
		l.behind(r)
	case strings.HasPrefix(r, "IP6 "):
		l.carrier(wire.Tunnel6in4, 41)
		l.inner = append(l.inner, r)
	case strings.HasPrefix(r, "IP "):
		l.carrier(wire.TunnelIPIP, 4)
		l.inner = append(l.inner, r)
	case strings.HasPrefix(r, "ESP("):
		l.carrier(wire.TunnelESP, 50)
		l.p.Attr |= wire.IsOpaque
	case strings.HasPrefix(r, "AH("):
		l.carrier(wire.TunnelOther, 51)
		l.p.Attr |= wire.IsOpaque
	case strings.HasPrefix(r, "ip-proto-"):
		n, err := strconv.Atoi(firstWord(r[len("ip-proto-"):]))
		if err != nil {
			n = -1
		}
		l.proto(n)
		l.portless = l.p.Tuple.Proto != wire.ProtoUDP && l.p.Tuple.Proto != wire.ProtoTCP
	case strings.HasPrefix(r, "frag ("), strings.HasPrefix(r, "frag("):
		l.p.Attr |= wire.IsFragment | wire.IsLaterFrag
		l.portless = true
	case isPortless(r):
		l.proto(portlessNumber(r))
		l.portless = true
	case !hasPort(l.src) && !hasPort(l.dst) && beginsLayer(r): // with -e no word stands before the inner header
		if l.v6 {
			l.carrier(wire.Tunnel6in4, 41)
		} else {
			l.carrier(wire.TunnelIPIP, 4)
		}
		l.inner = append(l.inner, r)
	default:
		l.udp(r)
	}
	if l.more {
		l.p.Attr |= wire.IsFragment
	}
}

// trimRemark takes a remark in brackets from the front: "[udp sum ok] ", "[bad udp cksum 0x.. -> 0x..!] ", "(ipv6-icmp) ".
func trimRemark(s string) string {
	for _, begin := range []string{"[udp sum ok]", "[icmp6 sum ok]", "[sum ok]", "[no cksum]", "[bad udp cksum", "[bad icmp6 cksum", "[bad hdr length", "bad-hlen"} {
		if strings.HasPrefix(s, begin) {
			if _, rest, ok := strings.Cut(s, "]"); ok {
				return strings.TrimLeft(rest, " ")
			}
		}
	}
	return s
}

// proto sets the protocol by its number; -1 is not known.
func (l *layer) proto(n int) {
	switch {
	case n < 0:
		l.p.Tuple.Proto = wire.ProtoNone
	default:
		l.p.Tuple.Proto = wire.Proto(n)
	}
}

func (l *layer) carrier(t wire.Tunnel, number int) {
	l.p.Attr |= wire.IsCarrier
	l.p.Tunnel = t
	l.proto(number)
	l.portless = true
}

// behind finds the packet that a tunnel carries, printed behind its own header on the same line.
func (l *layer) behind(r string) {
	for i := strings.Index(r, ": "); i >= 0; {
		inner := r[i+2:]
		if _, _, ok := cutHead(inner); ok && !strings.HasPrefix(inner, "IP (0x") && !strings.HasPrefix(inner, "IP6 (0x") || beginsLayer(inner) {
			l.inner = append(l.inner, inner)
			return
		}
		if carried, ok := behindEthernet(inner); ok { // "aa:bb > cc:dd, ethertype IPv4 (0x0800), length 98: ..."
			l.inner = append(l.inner, carried)
			return
		}
		next := strings.Index(inner, ": ")
		if next < 0 {
			return
		}
		i += 2 + next
	}
}

// beginsLayer tells whether a text begins with two addresses, as an IP header does where its word is not printed.
func beginsLayer(s string) bool {
	src, rest, ok := strings.Cut(s, " > ")
	if !ok || len(src) > 64 {
		return false
	}
	dst, _, ok := cutDestination(rest)
	isAddress := func(s string) bool {
		if _, err := netip.ParseAddr(s); err == nil {
			return true
		}
		_, err := netip.ParseAddr(hostOf(s))
		return err == nil
	}
	return ok && isAddress(src) && isAddress(dst)
}

// hasPort tells whether an address is printed with a port.
func hasPort(s string) bool {
	_, err := netip.ParseAddr(s)
	return err != nil
}

// isPortless tells the summaries of protocols that run on IP itself.
func isPortless(r string) bool { return portlessNumber(r) >= 0 }

func portlessNumber(r string) int {
	for _, k := range [...]struct {
		begin  string
		number int
	}{
		{"igmp", 2},
		{"OSPF", 89},
		{"VRRPv", 112},
		{"vrrp", 112},
		{"PIM", 103},
		{"EIGRP", 88},
		{"RSVPv", 46},
		{"PGM", 113},
		{"mobile", 55},
		{"carp", 112},
		{"CARPv", 112},
		{"pfsync", 240},
		{"DCCP", 33},
		{"dccp", 33},
		{"HBH", 0},
		{"no next header", 59},
		{"IPComp", 108},
		{"ipcomp", 108},
	} {
		if strings.HasPrefix(r, k.begin) {
			return k.number
		}
	}
	return -1
}

// payload sets the length of the transport's payload, if it is printed.
func (l *layer) payload(number string) {
	if n, err := strconv.ParseUint(number, 10, 32); err == nil {
		l.p.PayloadLen, l.p.Known = uint32(n), l.p.Known|wire.KnowPayload
	}
}
