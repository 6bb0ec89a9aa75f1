//go:build unix

package analyze

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/srcproof/srcproof/capture/wire"
)

// Work grows with the capture, not with its square, where flows share everything that they can share. Eight times the
// packets may take twenty-four times as much of the processor, in one of three tries.
func TestWorkIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("not checked: growth of the work with the capture (-short)")
	}
	client := clientNumber
	s := syn(podToServer, at(1), in("veth1")).Packet
	s.Iface = 0
	left := syn(nodeToServer, at(1), out("eth0"), ttl(63)).Packet
	left.Iface = 1
	question := udp(podToDNS, "the question of all", at(1), in("veth1"), ipid(0)).Packet
	question.Iface = 0
	asked := udp(node+":52000 > "+server+":53", "the question of all", at(1), out("eth0"), ttl(63), ipid(0)).Packet
	asked.Iface = 1
	for _, tt := range []struct {
		sentence string
		small    int
		packet   func(i int, p *wire.Packet)
	}{
		{"connections of one ISN, timestamp and IP ID, translated, at one moment", 10_000, func(i int, p *wire.Packet) {
			if *p = s; i%2 == 1 {
				*p = left
				p.Tuple.SrcPortOrEchoID = uint16(i >> 1)
				p.Tuple.Dst = client(i >> 17)
			} else {
				p.Tuple.Src = client(i >> 1)
			}
		}},
		{"connections of one ISN, each with a timestamp of its own", 10_000, func(i int, p *wire.Packet) {
			if *p = s; i%2 == 1 {
				*p = left
				p.Tuple.SrcPortOrEchoID = uint16(i >> 1)
				p.Tuple.Dst = client(i >> 17)
			} else {
				p.Tuple.Src = client(i >> 1)
			}
			p.TSVal, p.IPID = uint32(i>>1), uint16(i>>1)
		}},
		{"datagrams of one payload without IP IDs", 10_000, func(i int, p *wire.Packet) {
			if *p = question; i%2 == 1 {
				*p = asked
				p.Tuple.SrcPortOrEchoID = uint16(i >> 1)
				p.Tuple.Dst = client(i >> 17)
			} else {
				p.Tuple.Src = client(i >> 1)
			}
		}},
		{"one tuple, used again with another ISN each time", 10_000, func(i int, p *wire.Packet) {
			*p = s
			p.Seq, p.IPID = uint32(i)*7919, uint16(i)
			p.Time += int64(i) * 1_000_000
		}},
		{"one tuple of datagrams, idle for two minutes each time", 10_000, func(i int, p *wire.Packet) {
			*p = question
			p.Time += int64(i) * 121_000_000_000
		}},
		{"one tuple at two places, used again each time", 10_000, func(i int, p *wire.Packet) {
			if *p = s; i%2 == 1 {
				*p = left
				p.Tuple = s.Tuple
			}
			p.Seq, p.IPID = uint32(i>>1)*7919, uint16(i>>1)
			p.Time += int64(i>>1) * 1_000_000
		}},
		{"one connection", 50_000, func(i int, p *wire.Packet) {
			*p = s
			p.Flags, p.Seq, p.PayloadLen, p.IPID = wire.ACK|wire.PSH, uint32(i)*100, 100, uint16(i)
			p.Time += int64(i) * 1_000_000
		}},
		{"one connection that sends the same data again and again", 50_000, func(i int, p *wire.Packet) {
			*p = s
			p.Flags, p.PayloadLen, p.IPID = wire.ACK|wire.PSH, 100, uint16(i)
			p.Time += int64(i) * 10_000_000
		}},
		{"one tuple in every stack of two VLANs", 10_000, func(i int, p *wire.Packet) {
			*p = s
			p.VLAN = uint32(i)
		}},
		{"errors about one packet from everywhere", 10_000, func(i int, p *wire.Packet) {
			*p = icmp(router, 3, 1, packet{Packet: s}).Packet
			p.ErrorFrom = client(i)
		}},
		{"datagrams of two payloads each, of which the next flow sends one", 10_000, func(i int, p *wire.Packet) {
			n := i >> 2
			if *p = question; i%2 == 1 {
				*p = asked
				p.Tuple.SrcPortOrEchoID = uint16(n)
				p.Tuple.Dst = client(n >> 16)
			} else {
				p.Tuple.Src = client(n)
			}
			p.Time += int64(n) * 1000
			content := uint64(n + i>>1&1 + 1)
			p.Digest16, p.Digest64, p.DigestAll = content, content, content
		}},
		{"opaque packets all the time", 10_000, func(i int, p *wire.Packet) {
			if *p = s; i%2 == 1 {
				*p = left
				p.Tuple.Proto, p.Attr = wire.ProtoESP, wire.IsOpaque
			}
			p.Tuple.Src = client(i)
			p.Time += int64(i) * 2_000_000
		}},
	} {
		t.Run(tt.sentence, func(t *testing.T) { growsLinearly(t, tt.small, tt.packet) })
	}
}

// clientNumber is the address of one of very many Pods.
func clientNumber(i int) wire.Addr {
	return wire.AddrFrom4([4]byte{10, 4 + byte(i>>16), byte(i >> 8), byte(i)})
}

// growsLinearly analyses captures of n and of eight times n packets.
func growsLinearly(t *testing.T, n int, packet func(i int, p *wire.Packet)) {
	t.Helper()
	// The collector's share depends on what other tests have left behind.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	took := func(n int) time.Duration {
		in := captureOf(t, interfaces("veth1", "eth0"))
		s := in.Source.(*slice).summary
		s.Frames, s.First, s.Last = uint64(n), instant(0), instant(1000)
		in.Source = &stream{total: n, packet: packet, summary: s}
		runtime.GC()
		start := processorTime(t)
		runOf(t, gke(t), Options{}, in)
		return processorTime(t) - start
	}
	tries := ""
	for range 3 {
		a, b := min(took(n), took(n)), took(8*n)
		if b < 24*max(a, 2*time.Millisecond) {
			return
		}
		tries += fmt.Sprintf(" %v and %v,", a, b)
	}
	t.Errorf("%d packets, and eight times as many:%s", n, tries)
}

// processorTime is what this process has used: on a busy machine the clock tells nothing.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
