package analyze

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// A flow's events come back as they were noted, whatever their times and numbers are and how the flows' events lie between each other.
func TestEventsAreKept(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table := newTable(0)
	times := []int64{wire.NoTime, 0, -1, 1, math.MaxInt64, 1_700_000_000_000_000_000, 1_700_000_000_000_000_001, 1_700_003_600_000_000_000}
	frames := []uint64{0, 1, 127, 128, 1<<frameBits | 7, math.MaxUint64, 1_000_000}
	flows := make([]*flow, 60)
	want := make([][]event, len(flows))
	for i := range flows {
		flows[i] = table.flows.at(table.flows.add(flow{key: flowKey{proto: []wire.Proto{wire.ProtoTCP, wire.ProtoUDP, wire.ProtoICMP}[i%3]}}))
	}
	for range 4000 {
		n := r.IntN(len(flows))
		f := flows[n]
		p := wire.Packet{
			Time: times[r.IntN(len(times))], Frame: frames[r.IntN(len(frames))], Iface: uint32(r.IntN(3)), Dir: wire.Direction(r.IntN(3)),
			ICMPType: uint8(r.UintN(256)), ICMPCode: uint8(r.UintN(256)),
		}
		if r.IntN(9) == 0 {
			p.Iface = math.MaxUint32
		}
		from, kind := r.IntN(2), evSYN+eventKind(r.IntN(int(evOther)))
		if kind == evError {
			p.Attr |= wire.IsError // it marks the tap only
		}
		table.tapped(f, from, &p)
		if r.IntN(2) == 0 {
			f.dir[from].packets++
		}
		table.note(f, from, &p, kind)
		e := event{time: p.Time, frame: p.Frame, iface: p.Iface, kind: kind, from: uint8(from), dir: p.Dir}
		switch kind {
		case evError:
			e.typ, e.code = p.ICMPType, p.ICMPCode
		case evRequest, evReply:
			if f.key.proto == wire.ProtoUDP && f.dir[from].packets == 1 {
				e.letter = 'D'
			}
		default:
			e.letter = map[eventKind]byte{
				evSYN: 'S', evSYNACK: 'H', evACK: 'A', evData: 'D', evFIN: 'F', evRST: 'R', evRetransmission: 'T', evZeroWindow: 'W', evGap: 'G',
			}[kind]
		}
		want[n] = append(want[n], e)
	}
	check := func(t *testing.T, of func(i int) *flow) {
		t.Helper()
		for i := range flows {
			for client := range 2 {
				expected := slices.Clone(want[i])
				for k := range expected {
					expected[k].from ^= uint8(client)
				}
				if got := table.eventsOf(of(i), client, nil); !slices.Equal(got, expected) {
					t.Fatalf("flow %d, client %d:\n%+v\nwant\n%+v", i, client, got, expected)
				}
			}
		}
	}
	check(t, func(i int) *flow { return flows[i] })
	drop := make([]bool, table.flows.size())
	drop[1] = true
	table.compact(drop)
	flows, want = flows[1:], want[1:]
	check(t, func(i int) *flow { return table.flows.at(ref(i + 1)) })
	if got := table.eventsOf(&flow{}, 0, nil); got != nil {
		t.Errorf("a flow without events has %v", got)
	}
}

// An event of a connection takes 9 bytes, the first one 13.
func TestEventsAreSmall(t *testing.T) {
	table := newTable(0)
	f := table.flows.at(table.flows.add(flow{key: flowKey{proto: wire.ProtoTCP}}))
	for i, kind := range []eventKind{evSYN, evSYNACK, evACK, evData, evData, evFIN, evFIN} {
		p := wire.Packet{Time: 1_700_000_000_000_000_000 + int64(i)*1_000_000_000, Frame: 3_000_000 + uint64(i)*1000, Iface: 1, Dir: wire.DirOut}
		if i%2 == 1 {
			p.Dir = wire.DirIn
		}
		table.tapped(f, i%2, &p)
		table.note(f, i%2, &p, kind)
	}
	if n := table.events.size() - 1; n != 2 {
		t.Errorf("seven events take %d blocks", n)
	}
}
