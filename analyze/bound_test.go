package analyze

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// stream is a PacketSource that makes its packets when they are asked for, so that a capture of any length costs no memory.
type stream struct {
	total   int
	packet  func(i int, p *wire.Packet)
	summary wire.Summary
	next    int
}

func (s *stream) Read(dst []wire.Packet) (int, error) {
	n := 0
	for ; n < len(dst) && s.next < s.total; n++ {
		s.packet(s.next, &dst[n])
		dst[n].Frame = uint64(s.next + 1)
		s.next++
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (s *stream) Summary() wire.Summary { return s.summary }

// flooding is a flood of n SYNs from spoofed addresses, coming in from outside within three seconds, among which
// other packets stand: from the middle on, one in each hundred.
func flooding(t testing.TB, n int, among many) Input {
	t.Helper()
	in := captureOf(t, interfaces("veth1", "eth0"), among)
	others := in.Source.(*slice)
	s := &stream{total: n + len(among), summary: others.summary}
	s.summary.Frames = uint64(s.total)
	model := syn("203.0.113.1:1024 > "+node+":443", ttl(50)).Packet
	from, every, tick := n/2, min(100, n+1), int64(3_000_000_000/max(n, 1))
	taken, made := 0, 0
	s.packet = func(i int, p *wire.Packet) {
		if i >= from && taken < len(among) && (i-from)%every == 0 {
			*p = others.packets[taken]
			taken++
			return
		}
		*p = model
		p.Iface, p.Dir = 1, wire.DirIn
		p.Time = instant(0) + int64(i)*tick
		p.Tuple.Src = wire.AddrFrom4([4]byte{100, byte(made >> 16), byte(made >> 8), byte(made)})
		p.Tuple.SrcPortOrEchoID = uint16(1024 + made%60000)
		p.Seq = uint32(made) * 2654435761
		p.IPID = uint16(made)
		made++
	}
	// The others stand where the flood's clock is; without a flood, far enough apart for a lost packet to be missed.
	apart := int64(every) * tick
	if n == 0 {
		apart = 300_000_000
	}
	for k := range others.packets {
		others.packets[k].Time = instant(0) + int64(from)*tick + int64(k)*apart
	}
	s.summary.First, s.summary.Last = instant(0), instant(6)
	in.Source = s
	return in
}

// A flood of openings neither exhausts memory, nor pushes out what was completed meanwhile, nor lets an absence be claimed.
func TestFlood(t *testing.T) {
	const room = 5000
	completed := snatted.carry(append(handshake(podToServer), data(podToServer, 10), dataBack(serverToPod, 10, acks(clientISN+11)))...)
	neverLeft := syn(pod+":43000 > "+server+":443", in("veth1"), isn(555))
	undelivered := natPath{client: pod + ":44000", server: server + ":443", as: node + ":54000", podIf: "veth1", uplink: "eth0"}
	again := undelivered.carry(syn(pod+":44000 > "+server+":443", isn(777), ipid(7)))
	notDelivered := append(undelivered.carry(syn(pod+":44000 > "+server+":443", isn(777))),
		synack(server+":443 > "+node+":54000", in("eth0"), acks(778), ttl(60)), again[0], again[1])
	among := slices.Concat(many{neverLeft}, completed, notDelivered)

	absence := func(r *Request) bool {
		return r.Source == NotSent || r.StoppedAt == StopNodeIn || r.StoppedAt == StopNodeOut || r.StoppedAt == StopFar || r.StoppedAt == StopReturn ||
			r.StoppedAt == StopBetween
	}
	count := func(rs []Request) (n int) {
		for i := range rs {
			if absence(&rs[i]) {
				n++
			}
		}
		return n
	}

	// Without the flood the same packets do carry two absences: else what follows would prove nothing.
	calm := runOf(t, gke(t), Options{}, flooding(t, 0, among))
	if n := count(calm.Requests); n != 2 {
		t.Fatalf("without a flood: %d absences, want 2 (one never left, one not delivered)\n%s", n, listOf(calm.Requests))
	}

	// Nor is it the flood as such: while the table has room for all of it, they stand.
	small := runOf(t, gke(t), Options{}, flooding(t, 30_000, among))
	if got := count(small.Requests); got != 2 || small.Captures[0].LetGo != 0 {
		t.Errorf("a flood that fits: %d absences, want 2; %d let go", got, small.Captures[0].LetGo)
	}

	n := 3_000_000
	if testing.Short() {
		n = 300_000
	}
	res := runOf(t, gke(t), Options{MaxFlows: room}, flooding(t, n, among))
	if got := len(res.Requests); got > room {
		t.Errorf("%d requests kept, with room for %d flows", got, room)
	}
	if got := res.Captures[0].LetGo; got < uint64(n-room) || got > uint64(n+len(among)) {
		t.Errorf("says that %d flows were let go, of %d", got, n)
	}
	if got := count(res.Requests); got != 0 {
		t.Errorf("%d absences claimed from a capture that let flows go", got)
	}
	said := strings.Join(res.Limits, "\n")
	if !strings.Contains(said, itoa(res.Captures[0].LetGo)) {
		t.Errorf("the limits do not say how many flows were let go: %s", said)
	}
	found := false
	for i := range res.Requests {
		if r := &res.Requests[i]; r.Tuple == tupleOf(wire.ProtoTCP, podToServer) {
			found = true
			if r.Source != NodeSNATed || r.Outcome != HandshakeCompleted || !r.Completed {
				t.Errorf("the completed connection reads %s %s completed=%v", r.Source, r.Outcome, r.Completed)
			}
		}
	}
	if !found {
		t.Error("the completed connection was let go")
	}
}

// The table's parts stay bounded while they are filled, whatever fills them.
func TestTableIsBounded(t *testing.T) {
	const room = 2000
	n := 100_000
	if testing.Short() {
		n = 30_000
	}
	client := func(i int) wire.Addr { return wire.AddrFrom4([4]byte{100, byte(i >> 16), byte(i >> 8), byte(i)}) }
	s, sa := syn("203.0.113.1:1024 > "+node+":443", in("eth0")).Packet, synack(node+":443 > 203.0.113.1:1024", out("eth0")).Packet
	unreachable := icmp(node, 3, 3, udp("203.0.113.1:1024 > "+node+":53", "q"), out("eth0")).Packet
	datagram := udp("203.0.113.1:1024 > "+node+":53", "q", in("eth0")).Packet
	ping := echo("203.0.113.1 > "+node, 1, 1, in("eth0")).Packet
	for _, tt := range []struct {
		sentence string
		add      func(t *table, i int, now int64)
	}{
		{"openings", func(t *table, i int, now int64) {
			p := s
			p.Tuple.Src, p.Time = client(i), now
			t.add(&p)
		}},
		{"openings that are answered", func(t *table, i int, now int64) {
			p, q := s, sa
			p.Tuple.Src, p.Time = client(i), now
			q.Tuple.Dst, q.Time = client(i), now
			t.add(&p)
			t.add(&q)
		}},
		{"answers without openings", func(t *table, i int, now int64) {
			q := sa
			q.Tuple.Dst, q.Time = client(i), now
			t.add(&q)
		}},
		{"datagrams that are rejected", func(t *table, i int, now int64) {
			p, q := datagram, unreachable
			p.Tuple.Src, p.Time = client(i), now
			q.Tuple.Src, q.ErrorTo, q.Time = client(i), client(i), now
			t.add(&p)
			t.add(&q)
		}},
		{"errors about packets that are not in the capture", func(t *table, i int, now int64) {
			q := unreachable
			q.Tuple.Src, q.ErrorTo, q.Time = client(i), client(i), now
			t.add(&q)
		}},
		{"pings with every identifier from everywhere", func(t *table, i int, now int64) {
			p := ping
			p.Tuple.Src, p.Time = client(i>>4), now
			p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = uint16(i), uint16(i)
			t.add(&p)
		}},
		{"one tuple used over and over", func(t *table, i int, now int64) {
			p := s
			p.Seq, p.IPID, p.Time = uint32(i)*7919, uint16(i), now
			t.add(&p)
		}},
		{"one tuple used over and over, and errors about attempts long let go", func(t *table, i int, now int64) {
			p := s
			p.Seq, p.IPID, p.Time = uint32(i)*7919, uint16(i), now
			t.add(&p)
			q := icmp(router, 3, 1, packet{Packet: p}).Packet
			q.Seq = p.Seq - 3*7919
			t.add(&q)
			q.Seq = p.Seq - 7_000_000
			t.add(&q)
		}},
		{"frames of 4096 VLANs on every interface", func(t *table, i int, now int64) {
			p := s
			p.VLAN, p.Iface, p.Time, p.IPID = uint32(i&0xfff), uint32(i>>12), now, uint16(i)
			t.add(&p)
		}},
		{"one connection of many packets", func(t *table, i int, now int64) {
			p := data(podToServer, 100).Packet
			p.Seq, p.IPID, p.Time = uint32(i)*50, uint16(i), now
			t.add(&p)
		}},
		{"protocols without a word", func(t *table, i int, now int64) {
			p := s
			p.Tuple.Proto, p.Tuple.Src, p.Time = wire.Proto(i), client(i), now
			t.add(&p)
		}},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			table := newTable(room)
			widest := [4]int{}
			for i := range n {
				tt.add(table, i, instant(0)+int64(i)*10_000)
				widest = [4]int{
					max(widest[0], table.flows.size()), max(widest[1], table.events.size()), max(widest[2], table.prints.size()), max(widest[3], table.taps.size()),
				}
			}
			// A flow has a few dozen events at the most here, eight fingerprints, sixteen interfaces.
			if limit := [4]int{room + 2, 64 * room, 8*room + 8, 16*room + 16}; widest[0] > limit[0] || widest[1] > limit[1] || widest[2] > limit[2] || widest[3] > limit[3] {
				t.Errorf("flows, events, fingerprints, taps grew to %v, want at most %v", widest, limit)
			}
			if table.index.used > table.flows.size() || len(table.errs) > 3*room {
				t.Errorf("index %d, errors %d, flows %d", table.index.used, len(table.errs), table.flows.size())
			}
		})
	}
}

// A packet of a known flow costs no memory.
func TestNoAllocs(t *testing.T) {
	for _, tt := range []struct {
		sentence string
		packets  many
	}{
		{"data and acknowledgements", many{data(podToServer, 100), ackBack(serverToPod)}},
		{"SYNs", many{syn(podToServer)}},
		{"datagrams and answers", many{udp(podToDNS, "q"), udp(dnsToPod, "r")}},
		{"pings", many{echo(podPing, 7, 1), echoReply(podPinged, 7, 1)}},
		{"SCTP data", many{chunk(podToServer, wire.ChunkData), chunk(serverToPod, wire.ChunkSack)}},
		{"ICMP errors", many{udp(podToDNS, "q"), icmp(server, 3, 3, udp(podToDNS, "q"))}},
		{"later fragments", many{fragment(udp(podToDNS, "q"))}},
		{"packets of three interfaces", many{data(podToServer, 100, in("veth1")), data(podToServer, 100, in("cbr0")), data(podToServer, 100, out("eth0"))}},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			in := captureOf(t, tt.packets)
			packets := in.Source.(*slice).packets
			table := newTable(0)
			i := uint32(0)
			round := func() {
				for k := range packets {
					p := packets[k]
					i++
					p.Seq, p.IPID, p.Time, p.Frame = p.Seq+i*100, uint16(i), instant(1)+int64(i)*10_000_000, uint64(i)
					if p.Flags&wire.SYN != 0 {
						p.Seq = clientISN
					}
					table.add(&p)
				}
			}
			for range 100 {
				round() // every event worth citing is behind us, but for the powers of ten
			}
			if n := testing.AllocsPerRun(200, round); n != 0 {
				t.Errorf("%v allocations for %d packets", n, len(packets))
			}
		})
	}
}
