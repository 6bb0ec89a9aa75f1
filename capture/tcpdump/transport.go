package tcpdump

import (
	"strconv"
	"strings"
	"sync"

	"github.com/google/gopacket/layers"

	"github.com/srcproof/srcproof/capture/wire"
)

// services are the names that hosts have for ports: IANA's, which /etc/services is a part of. Of several ports with one name the
// lowest is meant.
var services = sync.OnceValue(func() map[wire.Proto]map[string]uint16 { //nolint:gochecknoglobals // a table that is made once
	out := map[wire.Proto]map[string]uint16{wire.ProtoTCP: {}, wire.ProtoUDP: {}, wire.ProtoSCTP: {}}
	add := func(proto wire.Proto, name string, port uint16) {
		if old, ok := out[proto][name]; !ok || port < old {
			out[proto][name] = port
		}
	}
	for p, name := range layers.TCPPortNames {
		add(wire.ProtoTCP, name, uint16(p))
	}
	for p, name := range layers.UDPPortNames {
		add(wire.ProtoUDP, name, uint16(p))
	}
	for p, name := range layers.SCTPPortNames {
		add(wire.ProtoSCTP, name, uint16(p))
	}
	// Names of /etc/services (Debian's netbase) where IANA's differ, and of tcpdump's own.
	for name, port := range map[string]uint16{
		"http-alt": 8080, "webcache": 8080, "www": 80, "kerberos": 88, "bootps": 67, "bootpc": 68, "netbios-ns": 137, "netbios-dgm": 138, "netbios-ssn": 139,
		"vxlan": 4789, "geneve": 6081, "mdns": 5353, "postgresql": 5432, "mysql": 3306, "redis": 6379, "amqp": 5672, "x11": 6000, "isakmp": 500, "ipsec-nat-t": 4500,
		"pcsync-https": 8443, "otv": 8472, "etcd-client": 2379, "etcd-server": 2380, "xmpp-client": 5222, "nfs": 2049, "sunrpc": 111, "microsoft-ds": 445, "snmp-trap": 162,
	} {
		for proto := range out {
			if _, ok := out[proto][name]; !ok || name == "http-alt" || name == "otv" {
				out[proto][name] = port
			}
		}
	}
	return out
})

// servicePort is the port of a service's name.
func servicePort(name string, proto wire.Proto) (uint16, bool) {
	p, ok := services()[proto][name]
	return p, ok
}

// tcp reads "Flags [S.], cksum 0x1234 (correct), seq 7:9, ack 3, win 502, options [mss 1460,TS val 1 ecr 2], length 2".
func (l *layer) tcp(s string) {
	letters, rest, ok := strings.Cut(s[len("Flags ["):], "]")
	if !ok {
		l.truncated = true
		return
	}
	for _, c := range letters {
		switch c {
		case 'S':
			l.p.Flags |= wire.SYN
		case 'F':
			l.p.Flags |= wire.FIN
		case 'R':
			l.p.Flags |= wire.RST
		case 'P':
			l.p.Flags |= wire.PSH
		case '.':
			l.p.Flags |= wire.ACK
		case 'U':
			l.p.Flags |= wire.URG
		case 'E':
			l.p.Flags |= wire.ECE
		case 'W':
			l.p.Flags |= wire.CWR
		}
	}
	l.p.Known |= wire.KnowTransport
	l.p.Window = 0xffff // not 0, until it is read
	hasOptions, ended := false, false
	for rest = strings.TrimLeft(rest, ", "); rest != "" && !ended; rest = strings.TrimLeft(rest, ", ") {
		key, behind, _ := strings.Cut(rest, " ")
		switch key {
		case "cksum":
			if i := strings.IndexByte(behind, ')'); i >= 0 && strings.HasPrefix(strings.TrimLeft(behind[min(len(behind), 6):], " "), "(") {
				rest = behind[i+1:]
			} else {
				_, rest, _ = strings.Cut(behind, ",")
			}
		case "seq":
			word := firstToken(behind)
			from, _, _ := strings.Cut(word, ":")
			if n, err := strconv.ParseUint(from, 10, 32); err == nil {
				l.seq = int64(n)
			} else {
				l.p.Known &^= wire.KnowTransport
			}
			rest = behind[len(word):]
		case "ack":
			word := firstToken(behind)
			if n, err := strconv.ParseUint(word, 10, 32); err == nil {
				l.ack = int64(n)
			} else {
				l.p.Known &^= wire.KnowTransport
			}
			rest = behind[len(word):]
		case "win":
			word := firstToken(behind)
			if n, err := strconv.ParseUint(word, 10, 16); err == nil {
				l.p.Window = uint16(n)
			}
			rest = behind[len(word):]
		case "urg":
			rest = behind[len(firstToken(behind)):]
		case "options":
			list, after, closed := strings.Cut(behind, "]")
			l.options(strings.TrimPrefix(list, "["), closed)
			hasOptions = true
			rest = after
			ended = !closed
		case "length":
			word := firstToken(behind)
			l.payload(word)
			if !hasOptions {
				l.p.Known |= wire.KnowOptions // tcpdump prints them if there are any
			}
			ended = true
		default: // a word of a cut line, or of another tool
			ended = true
		}
	}
	// tcpdump prints the numbers of all that have one (print-tcp.c): without them the line is cut, or a person left out all behind the flags.
	if bare := strings.HasSuffix(s, "]") && strings.Count(s, "]") == 1; bare {
		return
	}
	if l.seq < 0 && l.p.Flags&(wire.SYN|wire.FIN|wire.RST|wire.PSH) != 0 || l.ack < 0 && l.p.Flags&wire.ACK != 0 {
		l.p.Known &^= wire.KnowTransport
	}
}

// firstToken is what stands before a comma, a colon that ends a summary, or a blank. The colon of a range stays.
func firstToken(s string) string {
	for i := range len(s) {
		if s[i] == ',' || s[i] == ' ' || s[i] == ':' && (i+1 == len(s) || s[i+1] == ' ') {
			return s[:i]
		}
	}
	return s
}

// options reads "mss 1460,sackOK,TS val 1 ecr 2,nop,wscale 7".
func (l *layer) options(list string, whole bool) {
	if whole && !strings.Contains(list, "[|") {
		l.p.Known |= wire.KnowOptions
	}
	for o := range strings.SplitSeq(list, ",") {
		w := strings.Fields(o)
		switch {
		case len(w) == 2 && w[0] == "mss":
			if n, err := strconv.ParseUint(w[1], 10, 16); err == nil {
				l.p.MSS = uint16(n)
			}
		case len(w) == 5 && w[0] == "TS" && w[1] == "val" && w[3] == "ecr":
			val, err := strconv.ParseUint(w[2], 10, 32)
			ecr, err2 := strconv.ParseUint(w[4], 10, 32)
			if err == nil && err2 == nil && (whole || !strings.HasSuffix(list, o)) { // the last number of a cut line may be cut
				l.p.TSVal, l.p.TSEcr = uint32(val), uint32(ecr)
				l.p.Known |= wire.KnowTS
			}
		}
	}
}

// udp reads what stands behind the addresses of a datagram: its length alone, or what a protocol in it says.
func (l *layer) udp(r string) {
	if l.number >= 0 && l.number != 17 {
		l.proto(l.number)
		l.portless = !l.p.Tuple.Proto.HasPorts()
		return
	}
	l.p.Tuple.Proto = wire.ProtoUDP
	switch {
	case strings.HasPrefix(r, "UDP, length "):
		l.payload(firstWord(r[len("UDP, length "):]))
	case strings.HasPrefix(r, "udp "):
		l.payload(firstWord(r[len("udp "):]))
	case strings.HasPrefix(r, "VXLAN"):
		l.vxlan(wire.TunnelVXLAN, r)
	case strings.HasPrefix(r, "Geneve"):
		l.vxlan(wire.TunnelGeneve, r)
	case strings.HasPrefix(r, "OTV"): // port 8472, where tcpdump takes VXLAN for it
		l.vxlan(wire.TunnelVXLAN, r)
	case isBegun(r):
		l.cut = true
	default:
		// "32746+ A? www.example.com. (32)", "NTPv4, Client, length 48"
		if i := strings.LastIndex(r, "length "); i >= 0 {
			l.payload(firstWord(r[i+len("length "):]))
		} else if strings.HasSuffix(r, ")") {
			l.payload(r[strings.LastIndexByte(r, '(')+1 : len(r)-1])
		}
	}
	if l.ipLength >= 0 && l.p.Attr&wire.IsCarrier == 0 && !l.more {
		// The headers tell it for certain: 20 or 0 bytes of IP (without options), 8 of UDP.
		head := 28
		if l.v6 {
			head = 8
		}
		if !l.p.Has(wire.KnowPayload) && l.ipLength >= head {
			l.p.PayloadLen, l.p.Known = uint32(l.ipLength-head), l.p.Known|wire.KnowPayload
		}
	}
}

// isBegun tells whether a text is the beginning of what tells the protocol, and no more of it, or broken within that.
func isBegun(s string) bool {
	s = strings.TrimSuffix(s, cutMark)
	if bare := unbroken(s); strings.HasPrefix(bare, "Flags[") || strings.HasPrefix(bare, "ICMP") {
		return true
	}
	for _, whole := range []string{"Flags [", "ICMP ", "ICMP6, ", "tcp ", "sctp (", "UDP, length "} {
		if strings.HasPrefix(whole, s) {
			return true
		}
	}
	return false
}

// unbroken is a text's beginning without blanks, so that a word is found in which a line was broken.
func unbroken(s string) string { return strings.ReplaceAll(s[:min(len(s), 96)], " ", "") }

// vxlan is a carrier whose inner packet stands behind it, on the same line or on the next.
func (l *layer) vxlan(t wire.Tunnel, r string) {
	l.p.Attr |= wire.IsCarrier
	l.p.Tunnel = t
	l.behind(r)
}

// sctp reads "sctp (1) [INIT] [init tag: 7] ...".
func (l *layer) sctp(r string) {
	_, r, ok := strings.Cut(r, "[")
	if !ok {
		return
	}
	word, r, ok := strings.Cut(r, "]")
	if !ok {
		return
	}
	chunks := map[string]uint8{
		"DATA": wire.ChunkData, "INIT": wire.ChunkInit, "INIT ACK": wire.ChunkInitAck, "SACK": wire.ChunkSack, "HB REQ": 4, "HB ACK": 5, "ABORT": wire.ChunkAbort,
		"SHUTDOWN": wire.ChunkShutdown, "SHUTDOWN ACK": wire.ChunkShutAck, "OP ERR": 9, "COOKIE ECHO": wire.ChunkCookieEcho, "COOKIE ACK": wire.ChunkCookieAck,
		"SHUTDOWN COMPLETE": wire.ChunkShutCompl,
	}
	chunk, known := chunks[word]
	if !known {
		return
	}
	l.p.Chunk = chunk
	l.p.Known |= wire.KnowTransport
	for _, key := range []string{"init tag: ", "TSN: "} {
		if i := strings.Index(r, "["+key); i >= 0 {
			if n, err := strconv.ParseUint(firstWord(r[i+1+len(key):]), 10, 32); err == nil {
				l.p.Seq = uint32(n)
			}
			break
		}
	}
}
