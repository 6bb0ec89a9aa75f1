package analyze

import (
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/capture/wire"
)

// lacking reads a missing packet: "tcp 10.4.0.7:41000 > 192.0.2.9:443 out". An end that is not known is "?".
func lacking(t testing.TB, s string) *missing {
	t.Helper()
	words := strings.Fields(s)
	if len(words) < 4 || words[2] != ">" {
		t.Fatalf("a missing packet is written \"protocol source > destination direction\": %q", s)
	}
	m := &missing{sport: -1, dport: -1, iface: -1}
	switch words[0] {
	case "tcp":
		m.proto = wire.ProtoTCP
	case "udp":
		m.proto = wire.ProtoUDP
	case "sctp":
		m.proto = wire.ProtoSCTP
	case "icmp":
		m.proto = wire.ProtoICMP
	case "icmp6":
		m.proto = wire.ProtoICMP6
	default:
		t.Fatalf("no protocol %q", words[0])
	}
	end := func(w string) (wire.Addr, int) {
		if w == "?" {
			return wire.Addr{}, -1
		}
		addr, port := endOf(w)
		if !m.proto.HasPorts() {
			return addr, -1
		}
		return addr, int(port)
	}
	m.src, m.sport = end(words[1])
	m.dst, m.dport = end(words[3])
	m.v6 = m.src.IsValid() && !m.src.Is4() || m.dst.IsValid() && !m.dst.Is4()
	if len(words) > 4 {
		m.dir = map[string]wire.Direction{"in": wire.DirIn, "out": wire.DirOut}[words[4]]
	}
	return m
}

func (v tri) String() string { return [...]string{"perhaps", "no", "yes"}[v] }

// What pcap-filter(7) says of an expression, held against one packet. "perhaps" is what is said where the answer hangs on
// something that is not known of the packet, or that this room does not read: it may never stand for a guess.
func TestEvalFilter(t *testing.T) {
	const (
		web  = "tcp 10.4.0.7:41000 > 192.0.2.9:443 out"
		dns  = "udp 192.0.2.53:53 > 10.4.0.7:41000 in"
		ping = "icmp 10.4.0.7 > 192.0.2.9 out"
		six  = "tcp [2001:db8::7]:41000 > [2001:db8:9::9]:443 out"
		any6 = "icmp6 2001:db8::7 > 2001:db8:9::9"
		// As a packet that left under an address and port not known beforehand.
		left = "tcp ? > 192.0.2.9:443 out"
		// As an answer to it.
		back = "tcp 192.0.2.9:443 > ? in"
	)
	for _, row := range []struct {
		name, expr, packet string
		want               tri
	}{
		{"no filter keeps everything", "", web, yes},
		{"blanks are no filter", " \t\n", web, yes},

		// Hosts.
		{"host is either end: the source", "host 10.4.0.7", web, yes},
		{"host is either end: the destination", "host 192.0.2.9", web, yes},
		{"host is neither end", "host 192.0.2.10", web, no},
		{"src host is the source", "src host 10.4.0.7", web, yes},
		{"src host is not the destination", "src host 192.0.2.9", web, no},
		{"dst host is the destination", "dst host 192.0.2.9", web, yes},
		{"src without a word for what it is means a host", "src 10.4.0.7", web, yes},
		{"dst without a word for what it is means a host", "dst 10.4.0.7", web, no},
		{"src or dst host is host", "src or dst host 192.0.2.9", web, yes},
		{"src and dst host must be both", "src and dst host 192.0.2.9", web, no},
		{"a source that is not known may be the host", "host 10.4.0.7", left, perhaps},
		{"one end that is known is enough", "host 192.0.2.9", left, yes},
		{"a source that is not known may be no source of that name", "src host 10.4.0.7", left, perhaps},
		{"a destination that is not known", "dst host 10.4.0.7", back, perhaps},
		{"an IPv6 host", "host 2001:db8::7", six, yes},
		{"an IPv6 host written long", "host 2001:db8:0:0:0:0:0:7", six, yes},
		{"an IPv4 host and an IPv6 packet", "host 10.4.0.7", six, no},
		{"ip host wants IPv4", "ip host 10.4.0.7", web, yes},
		{"ip6 host wants IPv6", "ip6 host 2001:db8::7", six, yes},
		{"a name is not resolved here", "host www.example.com", web, perhaps},
		{"a name and something that does not fit", "host www.example.com and port 80", web, no},
		{"a name or something that fits", "host www.example.com or port 443", web, yes},

		// A value alone repeats the words before the last value: "host a or b".
		{"host a or b: the second", "host 192.0.2.77 or 10.4.0.7", web, yes},
		{"host a or b: neither", "host 192.0.2.77 or 192.0.2.78", web, no},
		{"host a and b", "host 10.4.0.7 and 192.0.2.9", web, yes},
		{"src host a or b: b is a source, too", "src host 192.0.2.77 or 192.0.2.9", web, no},
		{"host a or not b", "host 192.0.2.77 or not 192.0.2.9", web, no},
		{"port a or b", "port 80 or 443", web, yes},
		{"src port a or b: b is a source port, too", "src port 80 or 443", web, no},
		{"tcp port a or b: b is TCP's, too", "tcp port 80 or 53", dns, no},
		{"net a or b", "net 172.16 or 10", web, yes},
		{"a parenthesis does not forget the words", "(port 80) or 443", web, yes},

		// Ranges.
		{"net with a length", "net 10.4.0.0/14", web, yes},
		{"net with a length, not in it", "net 10.8.0.0/14", web, no},
		{"src net", "src net 192.0.2.0/24", web, no},
		{"dst net", "dst net 192.0.2.0/24", web, yes},
		{"src host and dst net", "src host 10.4.0.7 and dst net 192.0.2.0/24", web, yes},
		{"net of one octet", "net 10", web, yes},
		{"net of one octet, not in it", "net 11", web, no},
		{"net of two octets", "net 10.4", web, yes},
		{"net of two octets, not in it", "net 172.16", web, no},
		{"net of three octets", "net 192.0.2", web, yes},
		{"net of four octets is one address", "net 10.4.0.0", web, no},
		{"an IPv6 net", "net 2001:db8:9::/48", six, yes},
		{"an IPv6 net, not in it", "net 2001:db8:8::/48", six, no},
		{"a net with a mask is not read", "net 10.0.0.0 mask 255.0.0.0", web, perhaps},
		{"a net with a mask, and what does not fit", "port 80 and net 10.0.0.0 mask 255.0.0.0", web, no},
		{"a net that is none", "net 10.0.0.300", web, perhaps},

		// Ports.
		{"port is either end: the source", "port 41000", web, yes},
		{"port is either end: the destination", "port 443", web, yes},
		{"port is neither end", "port 80", web, no},
		{"src port", "src port 443", web, no},
		{"dst port", "dst port 443", web, yes},
		{"src or dst port", "src or dst port 53", dns, yes},
		{"src and dst port", "src and dst port 53", dns, no},
		{"a port that is not known", "port 41000", left, perhaps},
		{"a source port that is not known", "src port 443", left, perhaps},
		{"a ping has no port", "port 443", ping, no},
		{"a ping has no port that could be excluded", "not port 22", ping, yes},
		{"tcp port of a TCP packet", "tcp port 443", web, yes},
		{"udp port of a TCP packet", "udp port 443", web, no},
		{"tcp src port", "tcp src port 41000", web, yes},
		{"tcp dst port", "tcp dst port 41000", web, no},
		{"the first of a portrange", "portrange 443-500", web, yes},
		{"the last of a portrange", "portrange 400-443", web, yes},
		{"outside a portrange", "portrange 444-500", web, no},
		{"dst portrange", "dst portrange 40000-42000", web, no},
		{"udp portrange", "udp portrange 1-65535", web, no},
		{"a portrange that is none", "portrange 500-70000", web, perhaps},
		{"a port's name", "port https", web, perhaps},
		{"a port that is none", "port 65536", web, perhaps},

		// Protocols.
		{"tcp", "tcp", web, yes},
		{"udp", "udp", web, no},
		{"icmp", "icmp", ping, yes},
		{"icmp is not ICMPv6", "icmp", any6, no},
		{"icmp6", "icmp6", any6, yes},
		{"sctp", "sctp", web, no},
		{"ip is IPv4", "ip", web, yes},
		{"ip is not IPv6", "ip", six, no},
		{"ip6", "ip6", six, yes},
		{"tcp is TCP over either", "tcp", six, yes},
		{"arp keeps no request", "arp", web, no},
		{"ip proto by number", "ip proto 6", web, yes},
		{"ip proto by another number", "ip proto 17", web, no},
		{"ip proto and an IPv6 packet", "ip proto 6", six, no},
		{"ip6 proto by number", "ip6 proto 6", six, yes},
		{"proto by number is either", "proto 6", six, yes},
		{"proto by name, escaped", `proto \tcp`, web, yes},
		{"ip proto by name, escaped", `ip proto \udp`, web, no},
		{"proto by a name that is not known here", `ip proto \ospf`, web, perhaps},
		{"tcp or udp port 53: tcp stands alone", "tcp or udp port 53", web, yes},
		{"host and icmp, as next[] says it", "host 10.4.0.7 or icmp", dns, yes},

		// and and or are equal and read from the left: pcap-filter(7), not C.
		{"a or b and c is (a or b) and c", "host 10.4.0.7 or host 192.0.2.77 and port 80", web, no},
		{"the same with parentheses where C has them", "host 10.4.0.7 or (host 192.0.2.77 and port 80)", web, yes},
		{"a and b or c is (a and b) or c", "port 80 and host 10.4.0.7 or tcp", web, yes},
		{"a and (b or c)", "port 80 and (host 10.4.0.7 or tcp)", web, no},
		{"not binds to one", "not port 80 and host 10.4.0.7", web, yes},
		{"not binds to one, and the other does not fit", "not port 80 and host 192.0.2.77", web, no},
		{"not of an or", "not (port 80 or port 443)", web, no},
		{"not not", "not not tcp", web, yes},
		{"and not", "tcp and not port 443", web, no},
		{"not of perhaps is perhaps", "not src host 10.4.0.7", left, perhaps},
		{"nested parentheses", "((tcp) and ((port 443)))", web, yes},

		// Other ways to write it.
		{"&&", "tcp && port 443", web, yes},
		{"||", "udp || port 443", web, yes},
		{"!", "! port 443", web, no},
		{"operators without blanks", "tcp&&!port 80", web, yes},
		{"! before a parenthesis", "!(udp||icmp)", web, yes},
		{"parentheses without blanks", "(udp)or(tcp)", web, yes},
		{"quotes around it", "'tcp and port 443'", web, yes},
		{"double quotes around it", `"tcp and port 80"`, web, no},

		// Direction.
		{"outbound, and it went out", "outbound", web, yes},
		{"inbound, and it went out", "inbound", web, no},
		{"inbound, and it came in", "inbound and udp", dns, yes},
		{"outbound, and the direction is not known", "outbound", any6, perhaps},

		// What is not read makes the whole of it perhaps: it may change what the rest means.
		{"TCP flags", "tcp[13] & 2 != 0", web, perhaps},
		{"TCP flags by name", "tcp[tcpflags] & (tcp-syn) != 0", web, perhaps},
		{"TCP flags by name, two", "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn", web, perhaps},
		{"bytes behind a blank", "tcp [13] & 2 != 0", web, perhaps},
		{"ICMP type", "icmp[icmptype] == icmp-echo", ping, perhaps},
		{"length", "less 100", web, perhaps},
		{"length, at least", "greater 100", web, perhaps},
		{"length, compared", "len <= 100", web, perhaps},
		{"vlan moves what follows", "vlan", web, perhaps},
		{"vlan and a host that fits", "vlan 7 and host 10.4.0.7", web, perhaps},
		{"vlan behind what fits", "host 10.4.0.7 or vlan", web, perhaps},
		{"ether host", "ether host 02:00:00:00:00:01", web, perhaps},
		{"ether proto", `ether proto \ip`, web, perhaps},
		{"broadcast", "ip broadcast", web, perhaps},
		{"multicast", "multicast", web, perhaps},
		{"gateway", "gateway 10.128.0.1", web, perhaps},
		{"protochain", "ip6 protochain 6", six, perhaps},
		{"interface", "ifname eth0", web, perhaps},

		// What libpcap would refuse decides nothing.
		{"two primitives without an operator", "host 10.4.0.7 port 443", web, perhaps},
		{"a parenthesis that is not closed", "(tcp", web, perhaps},
		{"a parenthesis that was not opened", "tcp)", web, perhaps},
		{"nothing in parentheses", "()", web, perhaps},
		{"an operator at the end", "tcp and", web, perhaps},
		{"an operator at the beginning", "or tcp", web, perhaps},
		{"not alone", "not", web, perhaps},
		{"a qualifier alone", "src", web, perhaps},
		{"host without a host", "host", web, perhaps},
		{"capitals", "HOST 10.4.0.7", web, perhaps},
		{"two protocols", "tcp udp port 443", web, perhaps},
		{"words", "please keep my packets", web, perhaps},
		{"bytes that are no text", "\x00\xff\xfe", web, perhaps},
		{"mask at the end", "net 10.0.0.0 mask", web, perhaps},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := evalFilter(row.expr, lacking(t, row.packet)); got != row.want {
				t.Errorf("%q keeps %s: got %s, want %s", row.expr, row.packet, got, row.want)
			}
		})
	}
}

// A filter comes from a file. However it is nested and however long it is, it is read in one pass, without the stack.
func TestEvalFilterIsBounded(t *testing.T) {
	m := lacking(t, "tcp 10.4.0.7:41000 > 192.0.2.9:443 out")
	for _, row := range []struct {
		name string
		make func(n int) string
		want tri
	}{
		{"parentheses", func(n int) string { return strings.Repeat("(", n) + "tcp" + strings.Repeat(")", n) }, perhaps},
		{"parentheses that are not closed", func(n int) string { return strings.Repeat("(", n) }, perhaps},
		{"not", func(n int) string { return strings.Repeat("not ", n) + "tcp" }, perhaps},
		{"exclamation marks", func(n int) string { return strings.Repeat("!", n) + "tcp" }, perhaps},
		{"parentheses within not", func(n int) string { return strings.Repeat("!(", n) + "tcp" + strings.Repeat(")", n) }, perhaps},
		{"one or behind the other", func(n int) string { return "port 1" + strings.Repeat(" or 2", n) }, no},
		{"one parenthesis behind the other", func(n int) string { return "udp" + strings.Repeat(" or (udp)", n) }, no},
		{"src or src or src", func(n int) string { return strings.Repeat("src or ", n) }, perhaps},
		{"ampersands", func(n int) string { return strings.Repeat("&", n) }, perhaps},
		{"one long word", func(n int) string { return "host " + strings.Repeat("1", n) }, perhaps},
	} {
		t.Run(row.name, func(t *testing.T) {
			best := func(n int) time.Duration {
				expr, least := row.make(n), time.Hour
				for range 3 {
					start := time.Now()
					if got := evalFilter(expr, m); got != row.want {
						t.Fatalf("%d of them: got %s, want %s", n, got, row.want)
					}
					least = min(least, time.Since(start))
				}
				return least
			}
			small, large := best(10_000), best(160_000)
			// Sixteen times as much: 64 times as long leaves room for a busy machine and none for a square (256).
			if large > 64*small+20*time.Millisecond {
				t.Errorf("10,000 took %v and 160,000 took %v", small, large)
			}
		})
	}
}

// FuzzFilterExpr: no expression panics; a filter and its negation contradict each other; what is decided of a packet of
// which little is known stays decided when more is known of it.
func FuzzFilterExpr(f *testing.F) {
	for _, s := range []string{
		"", "host 10.4.0.7 or 192.0.2.9", "src or dst port 53", "not (net 10 and tcp) || !icmp", "tcp[13] & 2 != 0",
		"net 10.0.0.0 mask 255.0.0.0", `ip proto \tcp`, "inbound and portrange 1-1024", "((((", "src and dst net 2001:db8::/32", "net 10 or 172",
	} {
		f.Add(s)
	}
	full := lacking(f, "tcp 10.4.0.7:41000 > 192.0.2.9:443 out")
	vague := lacking(f, "tcp ? > 192.0.2.9:443 out")
	f.Fuzz(func(t *testing.T, expr string) {
		v, w := evalFilter(expr, full), evalFilter(expr, vague)
		if w != perhaps && v != w {
			t.Errorf("%q: %s of a packet of which less is known, %s of one that it may be", expr, w, v)
		}
		if strings.TrimSpace(strings.NewReplacer("'", "", `"`, "").Replace(expr)) == "" {
			return
		}
		if n := evalFilter("not ("+expr+")", full); v != perhaps && n != v.not() && n != perhaps {
			t.Errorf("%q: %s, and its negation %s", expr, v, n)
		}
	})
}
