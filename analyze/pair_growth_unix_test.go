//go:build unix

package analyze

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/srcproof/srcproof/capture/wire"
)

// crowd is very many requests of one kind. near gives the four packets of a request on the node (in from the Pod, out of the
// node, and the answer's two), far the two on the server; what is shared by all is for the row to say.
type crowd struct {
	sentence  string
	near, far func(i, k int, p *wire.Packet)
}

// inputs are n requests on each side.
func (c crowd) inputs(t *testing.T, n int) []Input {
	t.Helper()
	side := func(in Input, each int, packet func(i, k int, p *wire.Packet)) Input {
		s := in.Source.(*slice).summary
		s.Frames, s.First, s.Last = uint64(n*each), instant(0), instant(float64(n)*0.001+100)
		in.Source = &stream{total: n * each, summary: s, packet: func(i int, p *wire.Packet) { packet(i/each, i%each, p) }}
		return in
	}
	return []Input{side(captureOf(t, interfaces("veth1", "eth0")), 4, c.near), side(farCapture(t, interfaces("ens4")), 2, c.far)}
}

// Work grows with the captures, not with their product, where requests share everything that they can share. Four times the
// requests may take twelve times as much of the processor, in one of three tries; and 200,000 plain ones take seconds.
func TestPairingIsLinear(t *testing.T) {
	if testing.Short() || underRace() {
		t.Skip("not checked: growth of pairing with the captures (-short or -race)")
	}
	template := func(p packet, iface uint32) wire.Packet { p.Iface = iface; return p.Packet }
	s := [4]wire.Packet{
		template(syn(podEnds, in("veth1")), 0), template(syn(nodeEnds, out("eth0"), ttl(63)), 1),
		template(synack(back(nodeEnds), in("eth0"), ttl(61)), 1), template(synack(back(podEnds), out("veth1"), ttl(60)), 0),
	}
	f := [2]wire.Packet{template(syn(nodeEnds, in("ens4"), ttl(60)), 0), template(synack(back(nodeEnds), out("ens4")), 0)}
	q := [4]wire.Packet{
		template(udp(podEnds, "what all ask", in("veth1")), 0), template(udp(nodeEnds, "what all ask", out("eth0"), ttl(63)), 1),
		template(udp(back(nodeEnds), "what all hear", in("eth0"), ttl(61)), 1), template(udp(back(podEnds), "what all hear", out("veth1"), ttl(60)), 0),
	}
	g := [2]wire.Packet{template(udp(nodeEnds, "what all ask", in("ens4"), ttl(60)), 0), template(udp(back(nodeEnds), "what all hear", out("ens4")), 0)}
	// place gives packet k of request i its ends and its time; from is the address behind the node.
	place := func(p *wire.Packet, i, k int, behind bool, shift float64) {
		client, port := clientNumber(i), uint16(40000)
		if behind {
			client, port = wire.AddrFrom4([4]byte{10, 128, byte(i >> 24), byte(10 + i>>16)}), uint16(i)
		}
		if k == 0 {
			p.Tuple.Src, p.Tuple.SrcPortOrEchoID = client, port
		} else {
			p.Tuple.Dst, p.Tuple.DstPortOrEchoID = client, port
		}
		p.Time = instant(1+float64(i)*0.001) + int64(shift*1e9)
	}
	shifts := [4]float64{0, 50e-6, 0.010, 0.01005}
	number := func(p *wire.Packet, i, k int, own bool) {
		if !own {
			return
		}
		n := uint32(i)*2654435761 + 1
		p.TSVal, p.IPID = n, uint16(i)|1
		if k == 0 {
			p.Seq = n
		} else {
			p.Seq, p.Ack = n+7, n+1
		}
	}
	nearOf := func(s [4]wire.Packet, own bool, more func(i, k int, p *wire.Packet)) func(i, k int, p *wire.Packet) {
		return func(i, k int, p *wire.Packet) {
			*p = s[k]
			reply := k / 2
			place(p, i, reply, k == 1 || k == 2, shifts[k])
			number(p, i, reply, own)
			if more != nil {
				more(i, reply, p)
			}
		}
	}
	farOf := func(s [2]wire.Packet, own bool, more func(i, k int, p *wire.Packet)) func(i, k int, p *wire.Packet) {
		return func(i, k int, p *wire.Packet) {
			*p = s[k]
			place(p, i, k, true, 0.005)
			number(p, i, k, own)
			if more != nil {
				more(i, k, p)
			}
		}
	}
	same := func(ts, id bool) func(i, k int, p *wire.Packet) {
		return func(_, _ int, p *wire.Packet) {
			if ts {
				p.TSVal = 7
			}
			if id {
				p.IPID = 0
			}
		}
	}
	shifted := func(i, k int, p *wire.Packet) { p.Seq += 1e9; p.Ack += 1e9 }
	unstamped := func(i, k int, p *wire.Packet) { p.Known &^= wire.KnowTS }
	strangers := func(i, k int, p *wire.Packet) {
		a := wire.AddrFrom4([4]byte{172, 16 + byte(i>>16), byte(i >> 8), byte(i)})
		p.TSVal += 99
		p.Seq, p.Ack = p.Seq^0x55555555, p.Ack^0x55555555
		if k == 0 {
			p.Tuple.Src = a
		} else {
			p.Tuple.Dst = a
		}
	}
	for _, c := range []crowd{
		{"plain connections", nearOf(s, true, nil), farOf(f, true, nil)},
		{"connections of one timestamp and no IP ID", nearOf(s, true, same(true, true)), farOf(f, true, same(true, true))},
		{"connections of one ISN, told apart by timestamps", nearOf(s, true, func(_, _ int, p *wire.Packet) { p.Seq, p.Ack = 7, 8 }), farOf(f, true, func(_, _ int, p *wire.Packet) { p.Seq, p.Ack = 7, 8 })},
		{"connections alike in all numbers", nearOf(s, false, nil), farOf(f, false, nil)},
		{"connections whose numbers are rewritten", nearOf(s, true, nil), farOf(f, true, shifted)},
		{"rewritten, of one timestamp", nearOf(s, true, same(true, false)), farOf(f, true, func(i, k int, p *wire.Packet) { shifted(i, k, p); p.TSVal = 7 })},
		{"rewritten, without timestamps", nearOf(s, true, unstamped), farOf(f, true, func(i, k int, p *wire.Packet) { shifted(i, k, p); unstamped(i, k, p) })},
		{"lost ones, beside as many strangers at the far side", nearOf(s, true, nil), farOf(f, true, strangers)},
		{"datagrams alike in all, without IP IDs", nearOf(q, false, same(false, true)), farOf(g, false, same(false, true))},
		{"datagrams of one payload, with IP IDs", nearOf(q, true, nil), farOf(g, true, nil)},
		{"segments in the middle of connections of one range", nearOf(s, false, func(_, _ int, p *wire.Packet) { p.Flags = wire.ACK; p.PayloadLen = 100 }), farOf(f, false, func(_, _ int, p *wire.Packet) { p.Flags = wire.ACK; p.PayloadLen = 100 })},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			// The collector's share depends on what other tests have left behind.
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			took := func(n int) time.Duration {
				in := c.inputs(t, n)
				runtime.GC()
				start := processorTime(t)
				runOf(t, gke(t), Options{}, in...)
				return processorTime(t) - start
			}
			const small = 5000
			tries := ""
			for range 3 {
				a, b := min(took(small), took(small)), took(4*small)
				tries += fmt.Sprintf(" %v and %v,", a, b)
				if b < 12*max(a, 5*time.Millisecond) {
					t.Logf("%d requests on each side, and four times as many:%s", small, tries)
					return
				}
			}
			t.Errorf("%d requests on each side, and four times as many:%s", small, tries)
		})
	}
	t.Run("200,000 requests on each side", func(t *testing.T) {
		const n, most = 200_000, 30 * time.Second
		in := (crowd{near: nearOf(s, true, nil), far: farOf(f, true, nil)}).inputs(t, n)
		start := processorTime(t)
		res := runOf(t, gke(t), Options{}, in...)
		took := processorTime(t) - start
		joined := 0
		for i := range res.Requests {
			if hasJoin(&res.Requests[i]) != nil {
				joined++
			}
		}
		t.Logf("%d requests on each side, %d joined: %v of the processor", n, joined, took)
		if joined != n || took > most {
			t.Errorf("%d joined in %v, want %d in less than %v", joined, took, n, most)
		}
	})
}
