package analyze

import (
	"encoding/binary"

	"github.com/srcproof/srcproof/capture/wire"
)

// eventKind is something worth citing.
type eventKind uint8

const (
	evSYN eventKind = iota + 1
	evSYNAgain
	evSYNACK
	evSYNACKAgain
	evACK
	evData
	evFIN
	evRST
	evRetransmission
	evZeroWindow
	evGap
	evInit
	evInitAck
	evCookieEcho
	evCookieAck
	evAbort
	evShutdown
	evRequest
	evReply
	evError
	evOther
)

// letter is Zeek's history letter of a kind, 0 if it has none. Of requests and replies those of UDP have it, the first of a side.
func (k eventKind) letter() byte {
	switch k {
	case evSYN:
		return 'S'
	case evSYNACK:
		return 'H'
	case evACK:
		return 'A'
	case evData, evRequest, evReply:
		return 'D'
	case evFIN:
		return 'F'
	case evRST:
		return 'R'
	case evRetransmission:
		return 'T'
	case evZeroWindow:
		return 'W'
	case evGap:
		return 'G'
	default:
		return 0
	}
}

// event is one transmission worth citing, in the order seen.
type event struct {
	time      int64
	frame     uint64
	iface     uint32
	kind      eventKind
	from      uint8 // side that sent it; of an error: the side whose packet it quotes
	letter    byte  // of Zeek's history, 0 if it has none
	dir       wire.Direction
	typ, code uint8 // of an error
}

// A flow's events are written one behind the other into a chain of blocks: a byte with kind, side and two marks, then how far time and
// frame number are from those of the flow's first event, and what is not as usual. (2026-12-01: 9 bytes an event instead of 32, and a
// twelfth of the flow table's memory in all.)
const (
	eventKindBits = 0x1f
	eventFrom     = 1 << 5 // side 1
	eventLetter   = 1 << 6 // it has its kind's letter, if there is one
	eventUsual    = 1 << 7 // at the flow's first tap, in the direction of the first packet from this side there
)

type eventBlock struct {
	next uint32
	used uint8
	data [35]byte
}

// maxEvent is how many bytes an event takes at most.
const maxEvent = 1 + 2*binary.MaxVarintLen64 + binary.MaxVarintLen32 + 3

// note records a transmission worth citing.
func (t *table) note(f *flow, from int, p *wire.Packet, kind eventKind) {
	mark := byte(kind)
	if from == 1 {
		mark |= eventFrom
	}
	if kind != evRequest && kind != evReply || f.key.proto == wire.ProtoUDP && f.dir[from].packets == 1 {
		mark |= eventLetter
	}
	usual := false
	if f.taps != 0 {
		tp := t.taps.at(f.taps)
		usual = tp.packets[from] > 0 && tp.iface == p.Iface && tp.seen[from] == p.Dir
	}
	if usual {
		mark |= eventUsual
	}
	var room [maxEvent]byte
	b := append(room[:0], mark)
	if f.events.head == 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(p.Time))
		b = binary.AppendUvarint(b, p.Frame)
	} else {
		time, frame := t.beginOf(f)
		b = binary.AppendVarint(b, p.Time-time)
		b = binary.AppendVarint(b, int64(p.Frame-frame))
	}
	if !usual {
		b = binary.AppendUvarint(b, uint64(p.Iface))
		b = append(b, byte(p.Dir))
	}
	if kind == evError {
		b = append(b, p.ICMPType, p.ICMPCode)
	}
	t.write(f, b)
}

// beginOf is time and frame of a flow's first event.
func (t *table) beginOf(f *flow) (int64, uint64) {
	first := t.events.at(f.events.head)
	frame, _ := binary.Uvarint(first.data[9:])
	return int64(binary.LittleEndian.Uint64(first.data[1:])), frame
}

func (t *table) write(f *flow, b []byte) {
	if f.events.head == 0 {
		f.events.head = t.events.add(eventBlock{})
		f.events.tail = f.events.head
	}
	for {
		block := t.events.at(f.events.tail)
		n := copy(block.data[block.used:], b)
		block.used += uint8(n)
		if b = b[n:]; len(b) == 0 {
			return
		}
		block.next = t.events.add(eventBlock{})
		f.events.tail = block.next
	}
}

// eventsOf adds a flow's events to a list, in the order seen; client is the side that becomes 0.
func (t *table) eventsOf(f *flow, client int, out []event) []event {
	if f.events.head == 0 {
		return out
	}
	var room [8 * len(eventBlock{}.data)]byte
	b := room[:0]
	for n := f.events.head; n != 0; {
		block := t.events.at(n)
		b = append(b, block.data[:block.used]...)
		n = block.next
	}
	first := t.taps.at(f.taps) // a flow with events has one
	time, frame := t.beginOf(f)
	for begun := false; len(b) > 0; begun = true {
		mark := b[0]
		b = b[1:]
		e := event{time: time, frame: frame, kind: eventKind(mark & eventKindBits)}
		side := int(mark & eventFrom / eventFrom)
		if side != client {
			e.from = 1
		}
		if mark&eventLetter != 0 {
			e.letter = e.kind.letter()
		}
		if begun {
			later, n := binary.Varint(b)
			further, m := binary.Varint(b[n:])
			e.time, e.frame, b = time+later, frame+uint64(further), b[n+m:]
		} else {
			_, n := binary.Uvarint(b[8:])
			b = b[8+n:]
		}
		if mark&eventUsual != 0 {
			e.iface, e.dir = first.iface, first.seen[side]
		} else {
			iface, n := binary.Uvarint(b)
			e.iface, e.dir, b = uint32(iface), wire.Direction(b[n]), b[n+1:]
		}
		if e.kind == evError {
			e.typ, e.code, b = b[0], b[1], b[2:]
		}
		out = append(out, e)
	}
	return out
}
