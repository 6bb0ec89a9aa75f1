package analyze

import (
	"math"

	"github.com/srcproof/srcproof/capture/wire"
)

// A flow holds all packets of a tuple and its mirror that passed the capture in one orientation: the packets from the
// client coming in and those to it going out (the client's side of this host), or the reverse (the server's side), or,
// where the capture records no direction, at one interface. Several interfaces of one orientation (a veth and its bridge)
// share a flow, and the copies that a packet leaves there are one transmission.

// place says which orientation or which interface a flow belongs to. It is part of the flow's key.
type place uint32

const (
	placeLoopback  place = iota // loopback interfaces show one copy, incoming both ways
	placeFwdIn                  // packets from key side 0 come in, packets to it go out
	placeFwdOut                 // packets from key side 0 go out, packets to it come in
	placeInterface              // placeInterface + interface index: the capture records no direction
)

// flowKey is the tuple in canonical order (side 0 is the smaller end), its VLANs and its place.
type flowKey struct {
	end   [2]wire.Addr
	port  [2]uint16
	proto wire.Proto
	query uint8
	asker uint16 // of an ICMP query: the side that asks. Two hosts may ping each other with one identifier. (As wide as leaves no gap: the key is hashed in one piece.)
	vlan  uint32
	place place
}

// keyOf returns the flow's key and the side (0 or 1) that sent a packet with this tuple.
func keyOf(t *wire.Tuple, p *wire.Packet) (k flowKey, from int) {
	k.end[0], k.end[1] = t.Src, t.Dst
	k.port[0], k.port[1] = t.SrcPortOrEchoID, t.DstPortOrEchoID
	if c := t.Src.Compare(t.Dst); c > 0 || c == 0 && t.SrcPortOrEchoID > t.DstPortOrEchoID {
		k.end[0], k.end[1] = k.end[1], k.end[0]
		k.port[0], k.port[1] = k.port[1], k.port[0]
		from = 1
	} else if c == 0 && t.SrcPortOrEchoID == t.DstPortOrEchoID && p.Attr&wire.IsReply != 0 {
		from = 1 // a host that pings itself: only the type tells request from reply
	}
	k.proto, k.query, k.vlan = t.Proto, t.Query, p.VLAN
	if t.Proto.IsICMP() {
		k.asker = uint16(from)
		if p.Attr&wire.IsReply != 0 {
			k.asker = uint16(1 - from)
		}
	}
	// An ICMP error travels towards the sender of the packet it quotes: its orientation is that of a packet to that side.
	travels := from
	if p.Attr&wire.IsError != 0 {
		travels = 1 - from
	}
	switch {
	case p.Attr&wire.IsLoopbackIf != 0:
		k.place = placeLoopback
	case p.Dir == wire.DirUnknown:
		k.place = placeInterface + place(p.Iface)
	case (p.Dir == wire.DirIn) == (travels == 0):
		k.place = placeFwdIn
	default:
		k.place = placeFwdOut
	}
	return k, from
}

// tuple returns the tuple of packets sent by the given side.
func (k *flowKey) tuple(from int) wire.Tuple {
	return wire.Tuple{
		Src: k.end[from], Dst: k.end[1-from],
		SrcPortOrEchoID: k.port[from], DstPortOrEchoID: k.port[1-from],
		Proto: k.proto, Query: k.query,
	}
}

// dirFlags are what was seen of one direction of a flow.
type dirFlags uint32

const (
	sawSYN    dirFlags = 1 << iota // SYN without ACK; SCTP INIT
	sawSYNACK                      // SYN with ACK; SCTP INIT ACK
	sawACK                         // an ACK without SYN and RST that acknowledges something of the opening or later; SCTP COOKIE ECHO
	sawPureACK
	sawData
	sawFIN
	sawRST
	sawCookieAck
	ackedFIN // acknowledged the other side's FIN
	strayed  // a SYN with another ISN inside an open connection: oddity.stray
	knowISN
	knowTS
	knowIPID
	knowTTL
	knowSeq  // seqNext
	knowAck  // ackMax
	blind    // a packet whose transport header was cut: what it was is not known
	sawReply // ICMP query's reply
	sawBytes // payload of any kind, in an opening or a reset, too
)

// recentBits sets how many recent transmissions are kept to recognise copies: 8192, more than come by within 5 ms at a
// million packets a second.
const recentBits = 13

// dirState is one direction of a flow, counted in transmissions. There are two for each flow: what few have is in oddity.
type dirState struct {
	first, last int64
	packets     uint64
	retrans     uint32 // at most math.MaxUint32
	isn         uint32
	ts          uint32 // timestamp value of the first packet
	tsLast      uint32 // highest timestamp value
	seqLow      uint32 // lowest sequence number sent
	seqNext     uint32 // highest sequence number sent, plus one
	ackMax      uint32 // highest acknowledgement sent
	finSeq      uint32 // sequence number behind the FIN
	flags       dirFlags
	odd         uint32 // place in table.odds; 0 is none
	ipid        uint16
	mac         uint16 // link-layer source of the first packet: place in table.macs; 0 is not known
	prints      uint8
	ttl         uint8 // of the first packet
}

// oddity is what only some directions of flows have.
type oddity struct {
	stray       uint32 // ISN of the last SYN that opened nothing
	zeroWindows uint32
	gaps        uint32 // times that the other side acknowledged what is not in the capture
	dataAgain   uint32 // segments with data that were sent again
	rejected    uint32 // place in table.errs, plus one: the first rejecting ICMP error about its packets; 0 is none
	mtu         uint32 // the same, of direction 0 for both: the first fragmentation-needed or packet-too-big
}

// resent counts a retransmission.
func (d *dirState) resent() {
	if d.retrans < math.MaxUint32 {
		d.retrans++
	}
}

// oddOf is a direction's oddity, to be written to.
func (t *table) oddOf(d *dirState) *oddity {
	if d.odd == 0 {
		d.odd = t.odds.add(oddity{})
	}
	return t.odds.at(d.odd)
}

// oddities is a direction's oddity, empty if it has none.
func (t *table) oddities(d *dirState) oddity {
	if d.odd == 0 {
		return oddity{}
	}
	return *t.odds.at(d.odd)
}

// macOf is the number of a link-layer address. A capture has few; those beyond what a number can tell are not known.
func (t *table) macOf(mac [6]byte) uint16 {
	if mac == ([6]byte{}) {
		return 0
	}
	if n := t.lastMACs[mac[5]&1]; n != 0 && t.macs[n-1] == mac {
		return n
	}
	n, ok := t.macIndex[mac]
	if !ok && len(t.macs) < math.MaxUint16 {
		t.macs = append(t.macs, mac)
		n = uint16(len(t.macs))
		t.macIndex[mac] = n
	}
	t.lastMACs[mac[5]&1] = n
	return n
}

// flow is one episode at one place: port reuse after a close begins another.
type flow struct {
	key      flowKey
	dir      [2]dirState
	events   list
	taps     uint32 // the first of them
	prints   list   // fingerprints of first packets, where no SYN gives one
	prev     ref    // the episode before, none if 0
	client   uint8  // side that opened the exchange, as far as known
	carrier  bool   // the outer flow of a tunnel: never judged
	opaque   bool
	tunnel   wire.Tunnel
	guessed  bool // client was guessed from ports or order, not from an opening
	tapCount uint8
	states   [2]zeekState
}

// ref is a flow's number in the table; zero is none.
type ref uint32

// list is a chain of records in one of the table's arenas; zero is empty.
type list struct{ head, tail uint32 }

// tap is one interface (and depth) of a flow's place. Index 0 and 1 are the packets of side 0 and 1.
type tap struct {
	firstFrame [2]uint64
	packets    [2]uint64
	iface      uint32
	next       uint32
	depth      uint8
	seen       [2]wire.Direction
	ttl        [2]uint8
}

// icmpError is one ICMP error about a flow's packets.
type icmpError struct {
	from, to  wire.Addr
	time      int64
	frame     uint64
	count     uint64
	mtu       uint32
	iface     uint32
	typ, code uint8
	ttl       uint8
	hasTTL    bool
	dir       wire.Direction
}

// print is what translation leaves alone of one packet (DESIGN section 7).
type fingerprint struct {
	time   int64
	digest uint64 // TCP: sequence and acknowledgement; others: the longest payload digest that is known
	mid    uint64 // of a payload: the digest of the first 64 bytes; 0 if not known
	short  uint64 // of a payload: the digest of the first 16 bytes, for partners of which less was captured; 0 if not known
	ts     uint32 // TCP: timestamp value; others: sequence number or TSN
	size   uint32
	next   uint32
	ipid   uint16 // 0 is not known, or says nothing
	kind   printKind
	marks  printMarks
}

// printMarks tell of a fingerprint which side it is from and whether ts is known.
type printMarks uint8

const (
	printSide1 printMarks = 1 << iota // from side 1 of the flow
	printTS
)

// from is the side of the flow that sent the packet.
func (fp *fingerprint) from() int { return int(fp.marks & printSide1) }

// hasTS tells whether ts is known.
func (fp *fingerprint) hasTS() bool { return fp.marks&printTS != 0 }

// printOf begins the fingerprint of a packet, with what all have.
func printOf(kind printKind, from int, p *wire.Packet) fingerprint {
	fp := fingerprint{kind: kind, time: p.Time, marks: printMarks(from)}
	if p.Has(wire.KnowIPID) {
		fp.ipid = p.IPID
	}
	if (kind == printSYN || kind == printSYNACK || kind == printSegment) && p.Has(wire.KnowTS) {
		fp.ts, fp.marks = p.TSVal, fp.marks|printTS
	}
	return fp
}

// printKind is what a fingerprint is of.
type printKind uint8

const (
	printDatagram printKind = iota // a UDP datagram, an ICMP query or its answer, an SCTP packet
	printSYN                       // a SYN: digest is its sequence number
	printSYNACK                    // a SYN-ACK: digest is sequence and acknowledgement
	printSegment                   // a segment of a connection whose opening is not in the capture: digest is sequence and acknowledgement
	printData                      // the client's first TCP data: the digests of the payload's first 16 and 64 bytes
)

// printsKept is how many packets per direction leave a fingerprint; of datagrams, which have no sequence numbers that would
// tell how they lie to each other, more are kept while the table is small.
const (
	printsKept          = 4
	printsKeptDatagrams = 64
	manyPrints          = 1 << 20
)

// DefaultMaxFlows is how many flows one capture's table holds before it lets go of the ones that say least. Flows seen in
// one direction only may take an eighth of it, so that a flood of openings never fills the table.
const DefaultMaxFlows = 1 << 20

// table is the flow table of one capture.
type table struct {
	index   flowIndex
	flows   slab[ref, flow]
	taps    slab[uint32, tap]
	events  slab[uint32, eventBlock]
	odds    slab[uint32, oddity]
	errs    []icmpError
	prints  slab[uint32, fingerprint]
	max     int
	oneWay  int // flows with packets of one direction only
	letGo   uint64
	orphans uint64 // ICMP errors about packets that are not in the capture

	// alone: no other side will be held against it, so that what only a far side could be compared with is not kept.
	alone  bool
	cover  coverage
	other  map[wire.Proto]uint64 // packets of protocols that are not judged
	frags  uint64
	recent []recent

	macs     [][6]byte // of link-layer addresses, by number, from 1
	macIndex map[[6]byte]uint16
	lastMACs [2]uint16 // numbers that were looked up last
	// cutPayloads: of some datagram less than the whole payload was captured, so digests of its first bytes are compared, too.
	cutPayloads bool
	tcpBare     uint64 // TCP packets without SYN
	synAcks     uint64
	grouping
	// lastTime is the latest packet time so far.
	firstTime, lastTime int64
}

func newTable(maxFlows int) *table {
	if maxFlows <= 0 {
		maxFlows = DefaultMaxFlows
	}
	return &table{
		index: newFlowIndex(0), max: maxFlows, other: make(map[wire.Proto]uint64), macIndex: make(map[[6]byte]uint16),
		recent:    make([]recent, 1<<recentBits),
		firstTime: wire.NoTime, lastTime: wire.NoTime,
	}
}

// udpIdle is the silence after which a UDP tuple begins another request (DESIGN section 5), in nanoseconds.
const udpIdle = 120_000_000_000

// add takes one packet into the table.
func (t *table) add(p *wire.Packet) {
	t.clock(p)
	t.cover.add(p)
	if p.Tuple.Proto == wire.ProtoNone {
		return
	}
	if p.Attr&wire.IsLaterFrag != 0 {
		t.frags++
		return
	}
	carrier := p.Attr&(wire.IsCarrier|wire.IsOpaque) != 0
	if !carrier && !judged(p.Tuple.Proto) {
		t.other[p.Tuple.Proto]++
		return
	}
	if p.Attr&wire.IsError != 0 && !judged(p.Tuple.Proto) {
		return
	}
	if p.Attr&wire.IsError != 0 && !p.Has(wire.KnowTransport) && p.Tuple.SrcPortOrEchoID == 0 && p.Tuple.DstPortOrEchoID == 0 {
		t.orphans++ // the quote could not be read up to its ports
		return
	}
	key, from := keyOf(&p.Tuple, p)
	hash := t.index.hash(&key)
	r, _ := t.index.find(&key, hash, &t.flows)
	if r == 0 || t.begins(t.flows.at(r), from, p) {
		r = t.create(&key, hash, r, from, p)
	}
	f := t.flows.at(r)
	if carrier {
		f.carrier, f.tunnel = true, p.Tunnel
		f.opaque = f.opaque || p.Attr&wire.IsOpaque != 0
	}
	if p.Attr&wire.IsError != 0 {
		if r = t.quoted(r, from, p); r == 0 {
			t.orphans++
			return
		}
		f = t.flows.at(r)
		t.tapped(f, 1-from, p)
		t.failed(f, from, p)
		return
	}
	t.tapped(f, from, p)
	if t.copy(r, from, p) {
		return
	}
	d := &f.dir[from]
	if d.packets == 0 {
		if f.dir[1-from].packets == 0 {
			t.oneWay++
		} else {
			t.oneWay--
		}
		d.first, d.mac = p.Time, t.macOf(p.SrcMAC)
		if p.Has(wire.KnowTTL) {
			d.ttl, d.flags = p.TTL, d.flags|knowTTL
		}
		if p.Has(wire.KnowIPID) {
			d.ipid, d.flags = p.IPID, d.flags|knowIPID
		}
	}
	d.packets++
	d.last = p.Time
	if p.Has(wire.KnowPayload) && p.PayloadLen > 0 {
		d.flags |= sawBytes
	}
	switch key.proto {
	case wire.ProtoTCP:
		t.tcp(f, from, p)
	case wire.ProtoSCTP:
		t.sctp(f, from, p)
	default:
		t.datagram(f, from, p)
	}
}

// judged tells whether requests of this protocol are judged (DESIGN section 9).
func judged(p wire.Proto) bool {
	return p == wire.ProtoTCP || p == wire.ProtoUDP || p == wire.ProtoSCTP || p.IsICMP()
}

func (t *table) clock(p *wire.Packet) {
	if p.Time == wire.NoTime {
		return
	}
	if t.firstTime == wire.NoTime || p.Time < t.firstTime {
		t.firstTime = p.Time
	}
	if p.Time > t.lastTime {
		t.lastTime = p.Time
	}
}

// begins tells whether a packet opens another exchange than the one its tuple had so far.
func (t *table) begins(f *flow, from int, p *wire.Packet) bool {
	switch f.key.proto {
	case wire.ProtoTCP:
		if p.Attr&wire.IsError != 0 || !p.Has(wire.KnowTransport) || p.Flags&(wire.SYN|wire.RST) != wire.SYN {
			return false
		}
		d, o := &f.dir[from], &f.dir[1-from]
		if p.Flags&wire.ACK != 0 {
			return o.flags&strayed != 0 && p.Ack == t.oddities(o).stray+1 // the stray SYN was answered: it did open another connection
		}
		switch {
		case d.flags&sawSYNACK != 0: // this side was the server so far
			return f.closed()
		case d.flags&knowISN != 0: // from an earlier SYN, or from its answer, captured before it (several queues)
			open := f.client == uint8(from) && d.flags&sawACK != 0 && o.flags&(sawSYNACK|sawACK) != 0 && !f.closed()
			return d.isn != p.Seq && !open
		case f.dir[1-from].flags&sawSYN != 0: // simultaneous open, or the same ports the other way round
			return f.closed()
		}
		return d.packets > 0 || f.dir[1-from].packets > 0 // before it: the end of an older connection
	case wire.ProtoSCTP:
		d := &f.dir[from]
		return p.Attr&wire.IsError == 0 && p.Has(wire.KnowTransport) && p.Chunk == wire.ChunkInit && d.flags&sawSYN != 0 && d.isn != p.Seq
	case wire.ProtoUDP:
		last := max(f.dir[0].last, f.dir[1].last)
		return p.Time != wire.NoTime && last != 0 && p.Time-last >= udpIdle
	}
	return false
}

// closed tells whether the connection has ended in order or by a reset.
func (f *flow) closed() bool {
	a, b := f.dir[0].flags, f.dir[1].flags
	return (a|b)&sawRST != 0 || a&sawFIN != 0 && b&sawFIN != 0
}

// create makes a flow. prev is the tuple's flow before it, none if 0.
func (t *table) create(key *flowKey, hash uint32, prev ref, from int, p *wire.Packet) ref {
	if t.flows.size() > t.max || t.oneWay > t.max/8 {
		t.letGoOfSome()
		prev, _ = t.index.find(key, hash, &t.flows)
	}
	r, f := t.flows.next()
	f.key, f.prev = *key, prev
	f.client, f.guessed = opener(from, p)
	if prev != 0 && p.Tuple.Proto == wire.ProtoTCP && p.Flags&(wire.SYN|wire.ACK) == wire.SYN|wire.ACK {
		// Its SYN was taken for a stray one of the connection before.
		d := &f.dir[1-from]
		d.isn, d.flags, d.packets, d.first, d.last = p.Ack-1, sawSYN|knowISN, 1, p.Time, p.Time
		t.oneWay++
	}
	t.index.set(key, hash, r, &t.flows)
	return r
}

// opener returns the side that is the client as far as the first packet tells.
func opener(from int, p *wire.Packet) (client uint8, guessed bool) {
	sender, receiver := uint8(from), uint8(1-from)
	switch {
	case p.Tuple.Proto == wire.ProtoTCP && p.Has(wire.KnowTransport) && p.Flags&wire.SYN != 0:
		if p.Flags&wire.ACK != 0 {
			return receiver, false
		}
		return sender, false
	case p.Tuple.Proto == wire.ProtoSCTP && p.Has(wire.KnowTransport) && p.Chunk == wire.ChunkInit:
		return sender, false
	case p.Tuple.Proto == wire.ProtoSCTP && p.Has(wire.KnowTransport) && p.Chunk == wire.ChunkInitAck:
		return receiver, false
	case p.Tuple.Proto.IsICMP():
		// Advertisements and listener reports mostly come unasked (RFC 4861 section 7.2.6, RFC 2710): they open an exchange of
		// their own rather than answer one that is missing.
		q := p.Tuple.Query
		if p.Attr&wire.IsReply != 0 && (p.Tuple.Proto != wire.ProtoICMP6 || q < 130 || q > 136) {
			return receiver, false
		}
		return sender, false
	}
	if servesFrom(p.Tuple.Proto, p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID) && !p.Tuple.Dst.IsMulticast() {
		return receiver, true
	}
	return sender, true
}

// servesFrom tells whether a packet from port src to port dst looks like an answer: src is a service's port and dst is not,
// or dst alone is in the range from which Linux takes clients' ports (ip_local_port_range: from 32768 on). Ports below 1024
// are assigned by the system (RFC 6335 section 6); a few above it are widely known. It only orders the ends of an exchange
// whose opening is not in the capture.
func servesFrom(proto wire.Proto, src, dst uint16) bool {
	if src == 67 && dst == 68 && proto == wire.ProtoUDP { // DHCP: both are system ports, the server's is 67 (RFC 2131 section 4.1)
		return true
	}
	const firstEphemeral = 32768
	if proto == wire.ProtoUDP && src >= 1024 && dst >= 1024 && dst < firstEphemeral {
		return false // a translated source port may be any of these (MASQUERADE --random-fully), a known one, too
	}
	if servicePort(src) != servicePort(dst) {
		return servicePort(src)
	}
	return !servicePort(src) && src < firstEphemeral && dst >= firstEphemeral
}

func servicePort(p uint16) bool {
	if p < 1024 {
		return p != 0
	}
	switch p {
	case 1194, 1433, 1521, 2049, 2379, 3306, 3389, 3544, 4500, 5060, 5072, 5432, 5671, 5672, 6379, 6443, 8080, 8443, 9042, 9092, 9200, 10250, 27017, 51820:
		return true
	}
	return false
}

// maxTaps bounds the interfaces kept per flow; what is seen at more of them is counted at the last.
const maxTaps = 16

// tapped counts a packet at its interface.
func (t *table) tapped(f *flow, from int, p *wire.Packet) {
	n, last := f.taps, uint32(0)
	for n != 0 && (t.taps.at(n).iface != p.Iface || t.taps.at(n).depth != p.Depth) {
		n, last = t.taps.at(n).next, n
	}
	if n == 0 && f.tapCount >= maxTaps {
		n = last
	} else if n == 0 {
		f.tapCount++
		n = t.taps.add(tap{iface: p.Iface, depth: p.Depth})
		if last == 0 {
			f.taps = n
		} else {
			t.taps.at(last).next = n
		}
	}
	tp := t.taps.at(n)
	if p.Attr&wire.IsError != 0 {
		return // it marks the interface, it is not one of the flow's packets
	}
	if tp.packets[from] == 0 {
		tp.firstFrame[from], tp.seen[from] = p.Frame, p.Dir
		if p.Has(wire.KnowTTL) {
			tp.ttl[from] = p.TTL
		}
	}
	tp.packets[from]++
}

// quoted returns the episode that an ICMP error is about: of a reused tuple, the one whose sequence numbers hold the quoted
// one; 0 if none does.
func (t *table) quoted(r ref, from int, p *wire.Packet) ref {
	if p.Tuple.Proto != wire.ProtoTCP || !p.Has(wire.KnowTransport) {
		return r
	}
	for n := 0; r != 0 && n < 8; n++ {
		d := &t.flows.at(r).dir[from]
		if d.flags&knowISN == 0 || !before(p.Seq, d.isn) && (d.flags&knowSeq == 0 || !before(d.seqNext, p.Seq)) {
			return r
		}
		r = t.flows.at(r).prev
	}
	return 0
}

// recent is a transmission that was just seen.
type recent struct {
	sig  uint64
	time int64
}

// copyWindow is how far apart copies of one packet may be seen, in nanoseconds (DESIGN section 5).
const copyWindow = 5_000_000

// copy tells whether the same transmission was just seen at another interface or by a mirror port: same IP ID, sequence,
// flags and length within 5 ms. The recent transmissions of all flows share one small table: a burst of any flow fits, and
// what falls out of it is at worst counted as sent again.
func (t *table) copy(r ref, from int, p *wire.Packet) bool {
	const m = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio: spreads the fields over the upper bits
	h := (uint64(p.Seq)<<32 | uint64(p.Ack)) * m
	h = (h ^ uint64(p.PayloadLen)<<40 ^ uint64(p.Flags)<<32 ^ uint64(p.TSVal)) * m
	if p.Known&wire.KnowIPID != 0 {
		h = (h ^ uint64(p.IPID) ^ 1<<40) * m
	}
	h = (h ^ p.Digest16 ^ uint64(r)<<8 ^ uint64(p.ICMPType)<<2 ^ uint64(p.Chunk)<<50 ^ uint64(from)<<1 ^ 1) * m
	slot := h >> (64 - recentBits)
	for i := range uint64(2) {
		e := &t.recent[slot^i]
		if e.sig != h {
			continue
		}
		if gap := p.Time - e.time; gap <= copyWindow && gap >= -copyWindow {
			return true
		}
	}
	// Of the two places, the older one goes.
	e, o := &t.recent[slot], &t.recent[slot^1]
	if o.time < e.time {
		e = o
	}
	e.sig, e.time = h, p.Time
	return false
}

// failed takes an ICMP error about a packet of side from.
func (t *table) failed(f *flow, from int, p *wire.Packet) {
	kind := errorKind(p.ErrorFrom, p.ICMPType, p.ICMPCode)
	if kind == errorIgnored {
		return
	}
	slot := &t.oddOf(&f.dir[from]).rejected
	if kind == errorMTU {
		slot = &t.oddOf(&f.dir[0]).mtu
	}
	if *slot != 0 {
		e := &t.errs[*slot-1]
		if gap := p.Time - e.time; e.from != p.ErrorFrom || gap > 5_000_000 || gap < -5_000_000 {
			e.count++
			e.time = p.Time
			if e.count <= 3 {
				t.note(f, from, p, evError)
			}
		}
		return
	}
	e := icmpError{
		from: p.ErrorFrom, to: p.ErrorTo, time: p.Time, frame: p.Frame, count: 1, mtu: p.MTU, iface: p.Iface,
		typ: p.ICMPType, code: p.ICMPCode, dir: p.Dir,
	}
	if p.Has(wire.KnowTTL) {
		e.ttl, e.hasTTL = p.TTL, true
	}
	t.errs = append(t.errs, e)
	*slot = uint32(len(t.errs))
	t.note(f, from, p, evError)
}

type errorClass uint8

const (
	errorIgnored errorClass = iota
	errorRejecting
	errorMTU
)

// errorKind sorts ICMP errors: rejecting are type 3 except code 4, type 11, ICMPv6 types 1 and 3 (DESIGN section 5, RFC 792,
// RFC 4443); fragmentation needed and packet too big speak of size only; redirects and the rest do not count.
func errorKind(from wire.Addr, typ, code uint8) errorClass {
	if from.Is4() {
		switch {
		case typ == 3 && code == 4:
			return errorMTU
		case typ == 3, typ == 11:
			return errorRejecting
		}
		return errorIgnored
	}
	switch typ {
	case 1, 3:
		return errorRejecting
	case 2:
		return errorMTU
	}
	return errorIgnored
}
