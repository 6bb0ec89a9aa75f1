//go:build cgo

package analyze

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/filter"
	"github.com/srcproof/srcproof/capture/wire"
)

// TestEvalFilterAgreesWithLibpcap holds evalFilter against the compiler that it reads: expressions of its subset and random
// packets, as Linux cooked frames, which carry a direction. A yes or no must be libpcap's, also where less is known of the
// packet than the frame has; perhaps is always lawful, and counted, for a reading that knows nothing would pass as well.
func TestEvalFilterAgreesWithLibpcap(t *testing.T) {
	for _, row := range []struct {
		name      string
		primitive func(*rand.Rand) string
		forget    bool // fields of the packet are not known
		decided   int  // of a hundred answers, at least
	}{
		{"expressions of the subset", anyPrimitive, false, 95},
		{"expressions of the subset, packets of which something is not known", anyPrimitive, true, 60},
		{"with primitives that are not read here", strangePrimitive, false, 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			const expressions = 2000
			rng := rand.New(rand.NewPCG(1, 2))
			decided, undecided, kept, refused := 0, 0, 0, 0
		expressions:
			for range expressions {
				expr := anyExpr(rng, row.primitive, 3)
				f, err := filter.Compile(expr)
				if err == nil {
					err = f.Check(linkTypeSLL)
				}
				if err != nil {
					refused++
					continue
				}
				for range 40 {
					m := anyPacket(rng)
					frame := cooked(m)
					want := f.Match(linkTypeSLL, frame, len(frame))
					if want {
						kept++
					}
					if row.forget {
						forget(rng, m)
					}
					switch got := evalFilter(expr, m); {
					case got == perhaps:
						undecided++
					case (got == yes) != want:
						t.Errorf("%q: %s of %s, libpcap says %t", expr, got, packetWords(m), want)
						continue expressions
					default:
						decided++
					}
				}
			}
			if all := decided + undecided; refused > expressions/5 || decided*100 < all*row.decided || kept*10 < all || kept*10 > 9*all {
				t.Errorf("the comparison says little: %d of %d expressions refused by libpcap, %d of %d answers decided, %d kept", refused, expressions, decided, all, kept)
			}
		})
	}
}

// forget makes fields of a packet unknown.
func forget(rng *rand.Rand, m *missing) {
	for _, lose := range []func(){
		func() { m.src = wire.Addr{} }, func() { m.dst = wire.Addr{} }, func() { m.sport = -1 }, func() { m.dport = -1 },
		func() { m.dir = wire.DirUnknown },
	} {
		if rng.IntN(3) == 0 {
			lose()
		}
	}
}

// anyPacket is a packet of which everything is known, from few enough addresses and ports for filters to meet it.
func anyPacket(rng *rand.Rand) *missing {
	four := []string{"10.4.0.7", "10.4.0.8", "10.8.0.1", "172.16.5.5", "192.0.2.9"}
	six := []string{"2001:db8::7", "2001:db8::8", "2001:db8:9::9"}
	m := &missing{sport: -1, dport: -1, dir: pick(rng, wire.DirIn, wire.DirOut), v6: rng.IntN(3) == 0}
	m.proto = pick(rng, wire.ProtoTCP, wire.ProtoUDP, wire.ProtoSCTP, wire.ProtoICMP)
	from := four
	if m.v6 {
		from = six
		if m.proto == wire.ProtoICMP {
			m.proto = wire.ProtoICMP6
		}
	}
	m.src, m.dst = wire.MustAddr(pick(rng, from...)), wire.MustAddr(pick(rng, from...))
	if m.proto.HasPorts() {
		m.sport, m.dport = pick(rng, 53, 80, 443, 41000), pick(rng, 53, 80, 443, 41000)
	}
	return m
}

func pick[E any](rng *rand.Rand, of ...E) E { return of[rng.IntN(len(of))] }

func packetWords(m *missing) string {
	return fmt.Sprintf("%s %s:%d > %s:%d %s", m.proto, m.src, m.sport, m.dst, m.dport, m.dir)
}

// cooked writes the packet as a frame of link type SLL.
func cooked(m *missing) []byte {
	b := make([]byte, 16, 96)
	if m.dir == wire.DirOut {
		b[1] = 4 // LINUX_SLL_OUTGOING
	}
	b[3] = 1
	transport := make([]byte, 24)
	if m.sport >= 0 {
		binary.BigEndian.PutUint16(transport, uint16(m.sport))
		binary.BigEndian.PutUint16(transport[2:], uint16(m.dport))
		transport[12] = 5 << 4
	} else {
		// An echo request whose bytes, read as ports, would be ports that filters ask for.
		copy(transport, []byte{8, 0, 0, 80, 1, 187, 0, 53})
		if m.v6 {
			transport[0] = wire.ICMP6EchoRequest
		}
	}
	src, dst := m.src.Netip(), m.dst.Netip()
	if m.v6 {
		b[14], b[15] = 0x86, 0xdd
		h := make([]byte, 40)
		h[0], h[5], h[6], h[7] = 6<<4, byte(len(transport)), byte(m.proto), 64
		copy(h[8:], src.AsSlice())
		copy(h[24:], dst.AsSlice())
		return append(append(b, h...), transport...)
	}
	b[14] = 0x08
	h := make([]byte, 20)
	h[0], h[3], h[8], h[9] = 4<<4|5, byte(20+len(transport)), 64, byte(m.proto)
	copy(h[12:], src.AsSlice())
	copy(h[16:], dst.AsSlice())
	return append(append(b, h...), transport...)
}

// anyExpr is a random expression of the subset that is read here.
func anyExpr(rng *rand.Rand, primitive func(*rand.Rand) string, depth int) string {
	if depth == 0 || rng.IntN(4) == 0 {
		return primitive(rng)
	}
	switch rng.IntN(6) {
	case 0:
		return pick(rng, "not ", "! ", "!") + primitive(rng)
	case 1:
		return pick(rng, "not ", "!") + "(" + anyExpr(rng, primitive, depth-1) + ")"
	case 2:
		return "(" + anyExpr(rng, primitive, depth-1) + ")"
	default:
		return anyExpr(rng, primitive, depth-1) + pick(rng, " and ", " or ", " && ", " || ", "&&", "||") + anyExpr(rng, primitive, depth-1)
	}
}

// strangePrimitive is one that this room reads, or one that it does not.
func strangePrimitive(rng *rand.Rand) string {
	if rng.IntN(6) > 0 {
		return anyPrimitive(rng)
	}
	return pick(
		rng, "tcp[13] & 2 != 0", "tcp[tcpflags] & (tcp-syn) != 0", "less 60", "greater 60", "len <= 70", "ip[8] > 63", "ip multicast", "ip6 multicast",
		"net 10.0.0.0 mask 255.0.0.0", "host (10.4.0.7 or 192.0.2.9)", "port (80 or 443)", "port domain", "src (10.4.0.7 or 10.4.0.8)",
		"icmp[icmptype] == icmp-echo", "dst or src port 80", "net 172.16 or 10.4", "host 10.4", "tcp port https or domain", `ip proto \ospf`, "ip proto \\\tcp",
		"ip6 protochain 6", "udp[0:2] = 53", "ip host 10.4.0.7 or ip6", "1 = 1", "10.4.0.7",
	)
}

func anyPrimitive(rng *rand.Rand) string {
	host := func() string {
		return pick(rng, "10.4.0.7", "10.4.0.8", "10.8.0.1", "172.16.5.5", "192.0.2.9", "198.51.100.1", "2001:db8::7", "2001:db8:0:0::8")
	}
	net := func() string {
		return pick(rng, "10", "10.4", "172.16.5", "172.16", "10.0.0.0/8", "10.4.0.0/14", "192.0.2.0/25", "192.0.2.9/32", "0.0.0.0/0", "2001:db8::/32", "2001:db8:9::/48", "10.4.0.7", "10")
	}
	port := func() string { return pick(rng, "53", "80", "443", "41000", "9") }
	dir := func() string { return pick(rng, "", "", "src ", "dst ", "src or dst ", "src and dst ") }
	proto := func() string { return pick(rng, "", "", "tcp ", "udp ", "sctp ", "ip ", "ip6 ") }
	join := func(words string, value func() string) string {
		s := words + value()
		for rng.IntN(3) == 0 {
			s += pick(rng, " or ", " and ", " or not ") + value()
		}
		return s
	}
	switch rng.IntN(9) {
	case 0, 1:
		return join(dir()+"host ", host)
	case 2:
		return join(dir()+"net ", net)
	case 3:
		return join(strings.Replace(strings.Replace(proto(), "ip6 ", "", 1), "ip ", "", 1)+dir()+"port ", port)
	case 4:
		return dir() + "portrange " + pick(rng, "50-60", "80-443", "1-65535", "80", "443-443")
	case 5:
		return pick(rng, "ip", "ip6", "tcp", "udp", "sctp", "icmp", "icmp6", "arp")
	case 6:
		return pick(rng, "", "ip ", "ip6 ") + "proto " + pick(rng, "1", "6", "17", "58", "132", "136", `\tcp`, `\udp`, `\icmp`, `\sctp`)
	case 7:
		return pick(rng, "inbound", "outbound")
	default:
		return pick(rng, "src ", "dst ") + pick(rng, "10.4.0.7", "192.0.2.9")
	}
}
