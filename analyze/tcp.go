package analyze

import "github.com/srcproof/srcproof/capture/wire"

// zeekState is the state of one end of a connection as Zeek names it; conn_state is made of the two
// (scripts/base/protocols/conn/main.zeek, function conn_state).
type zeekState uint8

const (
	zInactive zeekState = iota
	zSynSent
	zSynAckSent
	zPartial
	zEstablished
	zClosed
	zReset
)

// before tells whether sequence number a comes before b, across the wrap (RFC 9293 section 3.4).
func before(a, b uint32) bool { return int32(a-b) < 0 }

// synNotes is how many transmissions of a SYN or SYN-ACK are cited.
const synNotes = 8

// tcp takes one transmission of a TCP flow.
func (t *table) tcp(f *flow, from int, p *wire.Packet) {
	d, o := &f.dir[from], &f.dir[1-from]
	if !p.Has(wire.KnowTransport) {
		d.flags |= blind
		return
	}
	if p.Has(wire.KnowTS) {
		if d.flags&knowTS == 0 {
			d.ts, d.tsLast, d.flags = p.TSVal, p.TSVal, d.flags|knowTS
		} else if before(d.tsLast, p.TSVal) {
			d.tsLast = p.TSVal
		}
	}
	if d.flags&knowSeq == 0 || before(p.Seq, d.seqLow) {
		d.seqLow = p.Seq
	}
	if p.Flags&wire.SYN == 0 {
		t.tcpBare++
	} else if p.Flags&wire.ACK != 0 {
		t.synAcks++
	}
	size := p.PayloadLen
	if !p.Has(wire.KnowPayload) {
		size = 0
	}
	flags := p.Flags
	switch {
	case flags&wire.SYN != 0:
		t.synchronise(f, from, p)
	case flags&wire.RST != 0:
		if d.flags&sawRST == 0 {
			t.note(f, from, p, evRST)
		}
		d.flags |= sawRST
	case flags&wire.ACK != 0 && size == 0 && flags&wire.FIN == 0:
		if d.flags&sawPureACK == 0 {
			t.note(f, from, p, evACK)
		}
		d.flags |= sawPureACK
	}
	if flags&(wire.SYN|wire.RST) == 0 {
		if size > 0 {
			t.payload(f, from, p, size)
		}
		if flags&wire.FIN != 0 {
			if d.flags&sawFIN == 0 {
				t.note(f, from, p, evFIN)
				d.finSeq = p.Seq + size + 1
			}
			d.flags |= sawFIN
		}
		if flags&wire.ACK != 0 && p.Window == 0 {
			t.zeroWindow(f, from, p)
		}
		if end := p.Seq + size; d.flags&knowSeq == 0 || before(d.seqNext, end) {
			d.seqNext, d.flags = end, d.flags|knowSeq
		}
		if d.flags&sawFIN != 0 && before(d.seqNext, d.finSeq) {
			d.seqNext = d.finSeq
		}
		if f.dir[0].flags&knowISN == 0 && f.dir[1].flags&knowISN == 0 {
			t.printTCP(f, from, p, size)
		}
	}
	if flags&wire.ACK != 0 && flags&wire.RST == 0 {
		if d.flags&knowAck == 0 || before(d.ackMax, p.Ack) {
			d.ackMax, d.flags = p.Ack, d.flags|knowAck
		}
		// A side that has reset the connection completes nothing any more, whatever it sends.
		// Nor does what acknowledges another connection's numbers, below the opening or beyond what was sent so far.
		if flags&wire.SYN == 0 && d.flags&sawRST == 0 && (o.flags&knowISN == 0 || d.flags&sawACK != 0 || !before(p.Ack, o.isn+1) && !before(o.seqNext, p.Ack)) {
			d.flags |= sawACK
		}
		if flags&wire.SYN == 0 && o.flags&knowSeq != 0 && before(o.seqNext, p.Ack) {
			t.gap(f, from, p)
		}
		if o.flags&sawFIN != 0 && !before(p.Ack, o.finSeq) {
			d.flags |= ackedFIN
		}
	}
	f.zeek(from, flags)
}

// synchronise takes a SYN or SYN-ACK.
func (t *table) synchronise(f *flow, from int, p *wire.Packet) {
	d := &f.dir[from]
	if p.Flags&wire.ACK == 0 && d.flags&sawSYN != 0 && p.Seq != d.isn {
		t.oddOf(d).stray = p.Seq
		d.flags |= strayed // inside an open connection it opens nothing, unless it is answered: see begins
		return
	}
	kind, digest := printSYN, uint64(p.Seq)
	if p.Flags&wire.ACK != 0 {
		kind, digest = printSYNACK, uint64(p.Seq)<<32|uint64(p.Ack)
	}
	fp := printOf(kind, from, p)
	fp.digest = digest
	t.keep(f, from, fp)
	if p.Flags&wire.ACK != 0 {
		if d.flags&sawSYNACK == 0 {
			t.note(f, from, p, evSYNACK)
			d.isn = p.Seq // a later SYN-ACK with another ISN does not split the request (DESIGN section 5)
			d.flags |= sawSYNACK | knowISN
			if o := &f.dir[1-from]; o.flags&knowISN == 0 {
				// The SYN itself is not here (yet), but its sequence number is the one acknowledged (RFC 9293 section 3.5).
				o.isn, o.flags = p.Ack-1, o.flags|knowISN
				f.client, f.guessed = uint8(1-from), false
			}
		} else {
			d.resent()
			if d.retrans < synNotes {
				t.note(f, from, p, evSYNACKAgain)
			}
		}
	} else {
		if d.flags&sawSYN == 0 {
			t.note(f, from, p, evSYN)
			d.isn = p.Seq
			d.flags |= sawSYN | knowISN
			if f.dir[1-from].flags&sawSYN == 0 {
				f.client, f.guessed = uint8(from), false
			}
		} else {
			d.resent()
			if d.retrans < synNotes {
				t.note(f, from, p, evSYNAgain)
			}
		}
	}
	if end := p.Seq + 1; d.flags&knowSeq == 0 || before(d.seqNext, end) {
		d.seqNext, d.flags = end, d.flags|knowSeq
	}
}

// payload takes a segment with data: first of its direction, new, or sent again.
func (t *table) payload(f *flow, from int, p *wire.Packet, size uint32) {
	d := &f.dir[from]
	again := d.flags&knowSeq != 0 && d.flags&sawData != 0 && !before(d.seqNext, p.Seq+size)
	if d.flags&sawData == 0 {
		t.note(f, from, p, evData)
		d.flags |= sawData
		if p.Has(wire.KnowDigest16) && !t.alone && (f.guessed || f.client == uint8(from)) { // what the client sends first is what a proxy repeats
			fp := printOf(printData, from, p)
			fp.short, fp.size = p.Digest16, size
			if p.Has(wire.KnowDigest64) {
				fp.mid = p.Digest64
			}
			t.append(f, fp)
		}
	}
	if again {
		d.resent()
		odd := t.oddOf(d)
		odd.dataAgain++
		if scaled(uint64(odd.dataAgain)) {
			t.note(f, from, p, evRetransmission)
		}
	}
}

// scaled tells whether an occurrence is the 1st, 10th, 100th, ...: Zeek records repeated events on a logarithmic scale.
func scaled(n uint64) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}

// gap notes that a side acknowledges what the capture does not hold: packets of the other side are missing from it. They
// did arrive, so the mark moves on.
func (t *table) gap(f *flow, from int, p *wire.Packet) {
	o := &f.dir[1-from]
	if o.flags&(sawFIN|sawRST) != 0 || p.Ack-o.seqNext > 1<<30 {
		return
	}
	odd := t.oddOf(o)
	odd.gaps++
	o.seqNext = p.Ack
	if scaled(uint64(odd.gaps)) {
		t.note(f, 1-from, p, evGap)
	}
}

func (t *table) zeroWindow(f *flow, from int, p *wire.Packet) {
	odd := t.oddOf(&f.dir[from])
	odd.zeroWindows++
	if scaled(uint64(odd.zeroWindows)) {
		t.note(f, from, p, evZeroWindow)
	}
}

// zeek moves the two ends' states as Zeek does. It counts a SYN-ACK as establishment of both ends, which is why
// conn_state stands beside the outcome and never makes it.
func (f *flow) zeek(from int, flags wire.TCPFlags) {
	s, o := &f.states[from], &f.states[1-from]
	switch {
	case flags&wire.RST != 0:
		if *s != zClosed || *o != zClosed {
			*s = zReset
		}
	case *s == zReset || *o == zReset:
	case flags&wire.SYN != 0 && flags&wire.ACK != 0:
		switch {
		case *o == zSynSent, *o == zEstablished:
			*s, *o = zEstablished, zEstablished
		case *s == zInactive:
			*s = zSynAckSent
		}
	case flags&wire.SYN != 0:
		if *s == zInactive || *s == zPartial {
			*s = zSynSent
			if *o == zSynAckSent { // captured before it
				*s, *o = zEstablished, zEstablished
			}
		}
	case flags&wire.FIN != 0:
		*s = zClosed
	case *s == zInactive:
		*s = zPartial
		if *o == zSynAckSent { // Zeek's guess: the SYN was missed
			*s, *o = zEstablished, zEstablished
		}
	}
}

// connState returns Zeek's conn_state of a TCP connection; bytes is that client or server sent payload.
func connState(client, server zeekState, bytes bool) string {
	inactive := func(s zeekState) bool { return s == zInactive || s == zPartial }
	switch {
	case server == zReset:
		switch {
		case client == zSynSent, client == zSynAckSent, client == zReset && !bytes:
			return "REJ"
		case inactive(client):
			return "RSTRH"
		}
		return "RSTR"
	case client == zReset:
		if inactive(server) {
			return "RSTOS0"
		}
		return "RSTO"
	case server == zClosed && client == zClosed:
		return "SF"
	case client == zClosed:
		if inactive(server) {
			return "SH"
		}
		return "S2"
	case server == zClosed:
		if inactive(client) {
			return "SHR"
		}
		return "S3"
	case client == zSynSent && server == zInactive:
		return "S0"
	case client == zEstablished && server == zEstablished:
		return "S1"
	}
	return "OTH"
}

// sctp takes one transmission of an SCTP flow (RFC 9260 section 5.1: INIT, INIT ACK, COOKIE ECHO, COOKIE ACK).
func (t *table) sctp(f *flow, from int, p *wire.Packet) {
	d := &f.dir[from]
	if !p.Has(wire.KnowTransport) {
		d.flags |= blind
		return
	}
	once := func(flag dirFlags, kind eventKind) {
		if d.flags&flag == 0 {
			t.note(f, from, p, kind)
		}
		d.flags |= flag
	}
	switch p.Chunk {
	case wire.ChunkInit:
		if d.flags&sawSYN != 0 {
			d.resent()
			if d.retrans < synNotes {
				t.note(f, from, p, evSYNAgain)
			}
			return
		}
		d.isn, d.flags = p.Seq, d.flags|knowISN
		f.client, f.guessed = uint8(from), false
		once(sawSYN, evInit)
	case wire.ChunkInitAck:
		if d.flags&sawSYNACK == 0 {
			d.isn, d.flags = p.Seq, d.flags|knowISN
		}
		once(sawSYNACK, evInitAck)
	case wire.ChunkCookieEcho:
		once(sawACK, evCookieEcho)
	case wire.ChunkCookieAck:
		once(sawCookieAck, evCookieAck)
	case wire.ChunkAbort:
		once(sawRST, evAbort)
	case wire.ChunkShutdown, wire.ChunkShutAck, wire.ChunkShutCompl:
		once(sawFIN, evShutdown)
	case wire.ChunkData:
		once(sawData, evData)
	}
	t.print(f, from, p)
}

// datagram takes one transmission of a UDP or ICMP query flow.
func (t *table) datagram(f *flow, from int, p *wire.Packet) {
	d := &f.dir[from]
	if p.Attr&wire.IsReply != 0 {
		d.flags |= sawReply
	}
	if d.packets <= 3 {
		kind := evRequest
		if uint8(from) != f.client {
			kind = evReply
		}
		t.note(f, from, p, kind)
	}
	t.print(f, from, p)
}

// printTCP keeps the fingerprint of one of the first segments of a connection whose opening is not in the capture.
func (t *table) printTCP(f *flow, from int, p *wire.Packet, size uint32) {
	fp := printOf(printSegment, from, p)
	fp.digest, fp.size = uint64(p.Seq)<<32|uint64(p.Ack), size
	t.keep(f, from, fp)
}

// print keeps the fingerprint of one of the first datagrams of a direction: the longest payload digest that is known.
func (t *table) print(f *flow, from int, p *wire.Packet) {
	fp := printOf(printDatagram, from, p)
	fp.size, fp.ts = p.PayloadLen, p.Seq
	if p.Has(wire.KnowDigest16) {
		fp.short = p.Digest16
	}
	if p.Has(wire.KnowDigest64) {
		fp.mid = p.Digest64
	}
	switch {
	case p.Has(wire.KnowDigestAll):
		fp.digest = p.DigestAll
	case p.Has(wire.KnowDigest64):
		fp.digest = p.Digest64
		t.cutPayloads = true
	default:
		fp.digest = fp.short
		t.cutPayloads = t.cutPayloads || p.PayloadLen > 0
	}
	t.keep(f, from, fp)
}

func (t *table) keep(f *flow, from int, fp fingerprint) {
	if t.alone && fp.kind != printDatagram && fp.kind != printSegment { // those join inside a capture, too
		return
	}
	d := &f.dir[from]
	if d.prints >= printsKept && (fp.kind != printDatagram || d.prints >= printsKeptDatagrams || t.prints.size() > manyPrints) {
		return
	}
	d.prints++
	t.append(f, fp)
}

func (t *table) append(f *flow, fp fingerprint) {
	n := t.prints.add(fp)
	if f.prints.head == 0 {
		f.prints.head = n
	} else {
		t.prints.at(f.prints.tail).next = n
	}
	f.prints.tail = n
}
