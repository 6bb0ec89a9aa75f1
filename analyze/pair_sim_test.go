package analyze

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// A simulated world: Pods, their node, a way with routers and what else stands there, and servers, captured on the node and
// on the far host. Everything is drawn from a seed, and of every request it is known what was done to it.

// ports is what the node makes of a source.
type ports uint8

const (
	random    ports = iota // the node's address, a random port (--random-fully)
	samePort               // the node's address, the client's port where it is free
	untouched              // no translation
)

// world is how the simulation differs from a plain one: three routers, 5 ms each way, Linux at both ends, whole captures of
// all of it without a filter, and clocks that agree.
type world struct {
	sentence string
	snat     ports
	second   bool // a second translation on the way, to a third address and another port
	rewrites bool // a firewall adds an offset of its own to each connection's and direction's sequence numbers
	newIDs   bool // and draws new IP IDs
	clamp    bool // of the MSS
	offload  bool // the node's capture shows segments before they are cut
	v6       bool

	lossTo, lossBack float64 // on the way, of each packet
	doubled          float64
	jitter           float64 // seconds; above 0.1 ms it reorders
	fates            bool    // some requests end at the node, between, at the far host, on the way back, at the Pod's door

	skew, drift     float64 // of the far clock: seconds ahead, seconds per second
	step, nearStep  float64 // a clock is set by so much halfway through
	nearCut, farCut float64 // captures leave out so many seconds at either end
	long            bool    // connections last for half a minute
	snaplen         int     // 0 is no limit
	farOneWay       bool    // the far capture holds nothing that the servers send

	noID, noTS bool
	datagrams  float64 // share of UDP and ping
	repeated   bool    // datagrams say the same in most requests
	others     float64 // clients of the same servers that are none of the cluster's, per request
	alike      bool    // they use the same ports, say the same, and all ISNs are drawn from a few thousand
	parrots    bool    // they say what a request of the cluster said some seconds before
	reuse      bool    // few ports, used again as soon as a connection is closed
	claims     bool    // everything is covered, so where packets stop is said of nearly all
}

// fate is where a request's packets stop, whatever else gets lost.
type fate = Stop

// happened is what was done to one request.
type happened struct {
	proto              wire.Proto
	pod, egress, far   wire.Tuple
	stop               Stop // the furthest place where packets of it stopped
	elsewhere          bool // its server is not behind the far capture point
	other              bool // a client's that is none of the cluster's
	rewritten          bool
	openNear, openFar  bool // the ISN shows in the capture
	commonSYN, common  bool // one transmission, of the SYN or of the whole opening or a datagram, is in both captures
	payload            string
	id                 map[uint16]bool // IP IDs of transmissions that are in both captures
	fate               fate
	refused            bool
	digest             bool // enough of its datagrams was captured to compare
	shiftC, shiftS     uint32
	clientID, serverID uint16
}

// shot is a packet as one capture holds it.
type shot struct {
	packet
	owner int
}

type simWorld struct {
	world
	r         *rand.Rand
	requests  []happened
	near, far []shot
	busy      map[wire.Tuple]float64
	end       float64 // of the last request's beginning
	payloads  map[string]int
	// words are, per payload and IP ID and side, the requests in whose datagrams they are; 0 is several.
	words map[utterance]int
}

// utterance is what datagrams are told apart by.
type utterance struct {
	payload string
	id      uint16
	far     bool
}

// said notes a datagram in a capture. Requests are counted from 1.
func (s *simWorld) said(n int, id uint16, far bool) {
	k := utterance{s.requests[n].payload, id, far}
	if who, ok := s.words[k]; ok && who != n+1 {
		s.words[k] = 0
	} else {
		s.words[k] = n + 1
	}
}

const wayDelay = 0.005

// through runs n requests through the world.
func (w world) through(seed uint64, n int) *simWorld {
	s := &simWorld{
		world: w, r: rand.New(rand.NewPCG(seed, 3)), busy: make(map[wire.Tuple]float64), payloads: make(map[string]int), words: make(map[utterance]int),
	}
	gap := 0.01
	if w.long {
		gap = 0.02
	}
	s.end = gap * float64(n)
	for i := range n {
		at := 100 + float64(i)*gap
		s.request(at, false)
		for k := w.others; k > 0; k-- {
			if s.r.Float64() < k {
				s.request(at+gap*s.r.Float64(), true)
			}
		}
	}
	for _, c := range [][]shot{s.near, s.far} {
		slices.SortStableFunc(c, func(a, b shot) int { return cmp.Compare(a.Time, b.Time) })
	}
	return s
}

func (s *simWorld) chance(p float64) bool { return p > 0 && s.r.Float64() < p }

// free gives a tuple whose source port, or identifier, is not in use at that moment, and takes it.
func (s *simWorld) free(t wire.Tuple, first uint16, until float64) wire.Tuple {
	spread := 60000
	if s.reuse {
		spread = 40
	}
	for try := 0; ; try++ {
		t.SrcPortOrEchoID = uint16(1024 + s.r.IntN(spread))
		if try > 200 {
			t.SrcPortOrEchoID = uint16(1024 + s.r.IntN(60000))
		}
		if try == 0 && first != 0 {
			t.SrcPortOrEchoID = first
		}
		if t.Proto.IsICMP() {
			t.DstPortOrEchoID = t.SrcPortOrEchoID
		}
		if s.busy[t] < until-60 && s.busy[t] != 0 && s.busy[t] < s.now(until) || s.busy[t] == 0 {
			s.busy[t] = until
			return t
		}
	}
}

// now is the beginning of a request that holds its tuple until then.
func (s *simWorld) now(until float64) float64 { return until - holds(s.long) }

// holds is for how long a connection may use its tuple, seconds.
func holds(long bool) float64 {
	if long {
		return 70
	}
	return 25
}

func (s *simWorld) addr(v4 string, v6 string) wire.Addr {
	if s.v6 {
		return wire.MustAddr(v6)
	}
	return wire.MustAddr(v4)
}

// request lets one request happen.
func (s *simWorld) request(at float64, other bool) {
	h := happened{proto: wire.ProtoTCP, other: other, stop: StopNone, fate: StopNone, id: make(map[uint16]bool)}
	client := s.r.IntN(12)
	t := wire.Tuple{
		Proto: wire.ProtoTCP, Src: s.addr(fmt.Sprintf("10.4.0.%d", 2+client), fmt.Sprintf("2001:db8:4::%d", 2+client)),
		Dst: s.addr(fmt.Sprintf("192.0.2.%d", 9+s.r.IntN(3)), fmt.Sprintf("2001:db8:9::%d", 9+s.r.IntN(3))), DstPortOrEchoID: 443,
	}
	if other {
		t.Src = s.addr(fmt.Sprintf("172.16.0.%d", 2+client), fmt.Sprintf("2001:db8:ff::%d", 2+client))
	} else if s.chance(0.05) {
		h.elsewhere = true
		t.Dst = s.addr("198.51.100.77", "2001:db8:77::7")
	}
	until := at + holds(s.long)
	if s.chance(s.datagrams) {
		until = at + 1e6 // a tuple of datagrams belongs to one request
		h.proto = wire.ProtoUDP
		t.Proto, t.DstPortOrEchoID = wire.ProtoUDP, 53
		if s.r.IntN(3) == 0 {
			h.proto, t.Query = wire.ProtoICMP, wire.ICMPEchoRequest
			if s.v6 {
				h.proto, t.Query = wire.ProtoICMP6, wire.ICMP6EchoRequest
			}
			t.Proto = h.proto
		}
	}
	h.pod = s.free(t, 0, until)
	h.egress, h.far = h.pod, h.pod
	nodeAddr := s.addr(node, "2001:db8:1::10")
	if !other && s.snat != untouched {
		t.Src = nodeAddr
		keep := uint16(0)
		if s.snat == samePort {
			keep = h.pod.SrcPortOrEchoID
		}
		h.egress = s.free(t, keep, until)
	}
	h.far = h.egress
	if s.second && !other {
		t.Src = s.addr("203.0.113.1", "2001:db8:f::1")
		h.far = s.free(t, 0, until)
	}
	if other && s.alike && s.snat == random && len(s.requests) > 0 {
		// The port of a request of the cluster, from another address.
		prev := &s.requests[len(s.requests)-1]
		same := h.far
		same.SrcPortOrEchoID = prev.far.SrcPortOrEchoID
		if prev.proto == h.proto && h.proto.HasPorts() && s.busy[same] == 0 {
			s.busy[same] = until
			h.pod, h.egress, h.far = same, same, same
		}
	}
	if s.rewrites && h.proto == wire.ProtoTCP && !other {
		h.rewritten, h.shiftC, h.shiftS = true, s.r.Uint32(), s.r.Uint32()
	}
	if s.fates && !other {
		switch s.r.IntN(20) {
		case 0:
			h.fate = StopNodeOut
		case 1, 2:
			h.fate = StopBetween
		case 3, 4:
			h.fate = StopFar
		case 5, 6:
			h.fate = StopReturn
		case 7:
			h.fate = StopNodeIn
		case 8:
			h.refused = h.proto == wire.ProtoTCP
		}
	}
	h.clientID, h.serverID = uint16(1+s.r.IntN(65000)), uint16(1+s.r.IntN(65000))
	s.requests = append(s.requests, h)
	n := len(s.requests) - 1
	if h.proto == wire.ProtoTCP {
		s.connect(n, at)
	} else {
		s.ask(n, at)
	}
}

// reach is how far a packet got, in the order of the way.
var reach = map[Stop]int{StopNodeOut: 1, StopBetween: 2, StopFar: 3, StopReturn: 4, StopNodeIn: 5}

// transit takes one packet of the client from the Pod to the server; the packet is written as the Pod sends it. It returns
// when it arrives, and where it stopped.
func (s *simWorld) transit(n int, p packet, at float64, opening, data bool) (float64, Stop) {
	h := &s.requests[n]
	h.clientID++
	p.IPID, p.hasIPID = s.idOf(h.clientID), true
	podSide, egress := false, false
	if !h.other {
		podSide = s.capture(&s.near, n, also(p, tupled(h.pod), in(fmt.Sprintf("veth%d", h.pod.Src[15]))), at)
	}
	if h.fate == StopNodeOut {
		s.marks(n, podSide, false, false, opening, 0, p.Flags)
		return 0, StopNodeOut
	}
	at += 20e-6 + 60e-6*s.r.Float64()
	p = also(p, tupled(h.egress), ttl(p.TTL-1))
	if !h.other {
		egress = s.capture(&s.near, n, also(p, out("eth0")), at)
	}
	if h.fate == StopBetween || s.chance(s.lossTo) {
		s.marks(n, podSide || egress, false, false, opening, 0, p.Flags)
		return 0, StopBetween
	}
	sent := p.IPID
	if s.newIDs && p.IPID != 0 {
		p.IPID = uint16(1 + s.r.IntN(65000))
	}
	if s.clamp && p.MSS > 1360 {
		p.MSS = 1360
	}
	p.Seq += h.shiftC
	if p.Flags&wire.ACK != 0 {
		p.Ack -= h.shiftS
	}
	p = also(p, tupled(h.far), ttl(p.TTL-3), in("ens4"))
	at += wayDelay + s.jitter*s.r.Float64()
	far := false
	if !h.elsewhere {
		pieces := many{p}
		if s.offload && data && p.PayloadLen > 1400 {
			half := p.PayloadLen / 2
			second := also(p, seq(p.Seq+half), payloadOf("the second half", int(p.PayloadLen-half)))
			p.PayloadLen = half
			second.IPID++
			pieces = many{p, second}
		}
		for _, q := range pieces {
			far = s.capture(&s.far, n, q, at) || far
			if s.chance(s.doubled) {
				s.capture(&s.far, n, q, at+0.02*s.r.Float64())
			}
		}
	}
	id := uint16(0)
	if sent == p.IPID {
		id = sent
	}
	s.marks(n, podSide || egress, far, egress && far, opening, id, p.Flags)
	if h.fate == StopFar {
		return at, StopFar
	}
	return at, StopNone
}

// answer takes one packet of the server to the Pod; the packet is written as the server sends it.
func (s *simWorld) answer(n int, p packet, at float64, opening bool) (float64, Stop) {
	h := &s.requests[n]
	if !opening || h.proto != wire.ProtoTCP { // Linux's SYN-ACKs have no IP ID
		h.serverID++
		p.IPID = s.idOf(h.serverID)
	}
	p.hasIPID = true
	podSide, egress, far := false, false, false
	if !h.elsewhere && !s.farOneWay {
		far = s.capture(&s.far, n, also(p, tupled(h.far.Mirror()), out("ens4")), at)
	}
	if h.fate == StopReturn || s.chance(s.lossBack) {
		s.marks(n, false, far, false, opening, 0, p.Flags)
		return 0, StopReturn
	}
	sent := p.IPID
	if s.newIDs && p.IPID != 0 {
		p.IPID = uint16(1 + s.r.IntN(65000))
	}
	p.Seq += h.shiftS
	if p.Flags&wire.ACK != 0 {
		p.Ack -= h.shiftC
	}
	at += wayDelay + s.jitter*s.r.Float64()
	p = also(p, tupled(h.egress.Mirror()), ttl(p.TTL-3))
	if !h.other {
		egress = s.capture(&s.near, n, also(p, in("eth0")), at)
		if s.chance(s.doubled) {
			s.capture(&s.near, n, also(p, in("eth0")), at+0.02*s.r.Float64())
		}
	}
	stop := StopNone
	if h.fate == StopNodeIn {
		stop = StopNodeIn
	} else if at += 20e-6 + 60e-6*s.r.Float64(); !h.other {
		podSide = s.capture(&s.near, n, also(p, tupled(h.pod.Mirror()), out(fmt.Sprintf("veth%d", h.pod.Src[15])), ttl(p.TTL-1)), at)
	}
	id := uint16(0)
	if sent == p.IPID {
		id = sent
	}
	s.marks(n, podSide || egress, far, egress && far, opening, id, p.Flags)
	return at, stop
}

// marks books which transmissions the captures have in common.
func (s *simWorld) marks(n int, near, far, both, opening bool, id uint16, flags wire.TCPFlags) {
	h := &s.requests[n]
	if opening {
		h.openNear, h.openFar, h.common = h.openNear || near, h.openFar || far, h.common || both
		h.commonSYN = h.commonSYN || both && flags == wire.SYN
		if both && id != 0 && h.proto != wire.ProtoTCP {
			h.id[id] = true
		}
	}
}

func (s *simWorld) idOf(id uint16) uint16 {
	if s.noID {
		return 0
	}
	return max(id, 1)
}

func tupled(t wire.Tuple) mod { return func(p *packet) { p.Tuple = t } }

// capture lets a capture see a packet at a true time. It tells whether the capture holds it.
func (s *simWorld) capture(c *[]shot, n int, p packet, at float64) bool {
	cut, half := s.nearCut, 100+s.end/2
	if c == &s.far {
		cut = s.farCut
	}
	if cut > 0 && (at < 100+cut || at > 100+s.end-cut) {
		return false
	}
	shown := at
	switch {
	case c == &s.far:
		if shown += s.skew + s.drift*(at-100); s.step != 0 && at > half {
			shown += s.step
		}
	case s.nearStep != 0 && at > half:
		shown += s.nearStep
	}
	p.Time = instant(shown)
	s.cut(&p)
	*c = append(*c, shot{p, n})
	if p.Tuple.Proto != wire.ProtoTCP {
		s.said(n, p.IPID, c == &s.far)
	}
	return true
}

// cut leaves of a packet what the snap length does; SLL2 takes 20 bytes.
func (s *simWorld) cut(p *packet) {
	if s.snaplen == 0 {
		return
	}
	left := s.snaplen - 20 - 20
	if s.v6 {
		left -= 20
	}
	switch p.Tuple.Proto {
	case wire.ProtoTCP:
		header := 20
		if p.Has(wire.KnowTS) {
			header = 32
		}
		if p.Flags&wire.SYN != 0 {
			header = 40
		}
		if left < header {
			p.Known &^= wire.KnowOptions | wire.KnowTS
			p.Attr |= wire.IsCut
			p.MSS = 0
		}
		left -= header
	default:
		left -= 8
	}
	if left < min(16, int(p.PayloadLen)) {
		p.Known &^= wire.KnowDigest16
		p.Digest16 = 0
	}
	if left < min(64, int(p.PayloadLen)) {
		p.Known &^= wire.KnowDigest64
		p.Digest64 = 0
	}
	if left < int(p.PayloadLen) {
		p.Known &^= wire.KnowDigestAll
		p.DigestAll = 0
	}
}

// connect is a TCP connection: the opening, some data, and the end.
func (s *simWorld) connect(n int, at float64) {
	h := &s.requests[n]
	stamps, serverStamps := s.r.Uint32(), s.r.Uint32()
	cISN, sISN := s.r.Uint32(), s.r.Uint32() // as the client sends the one, as the server sends the other
	if s.alike {
		cISN = uint32(s.r.IntN(5000)) * 7919
	}
	mods := func(t float64) []mod {
		if s.noTS {
			return []mod{bare}
		}
		return []mod{stamp(stamps+uint32(1000*(t-at)), 0)}
	}
	serverMods := func(t float64) []mod {
		if s.noTS {
			return []mod{bare}
		}
		return []mod{stamp(serverStamps+uint32(1000*(t-at)), stamps)}
	}
	seg := func(f wire.TCPFlags, sq, ak uint32, size int, text string, m []mod) packet {
		p := packet{iface: "eth0", hasIPID: true}
		p.TTL, p.WireLen, p.Flags, p.Seq, p.Ack, p.Window = 64, 74, f, sq, ak, 64240
		p.Known = wire.KnowTTL | wire.KnowTransport | wire.KnowPayload | wire.KnowOptions | wire.KnowTS
		if !s.v6 {
			p.Known |= wire.KnowIPID
		}
		p.Tuple.Proto = wire.ProtoTCP
		payloadOf(text, size)(&p)
		return p.with(m...)
	}
	open, t := false, at
	for try := range 4 {
		if try > 0 {
			t += float64(int(1) << (try - 1))
		}
		syn := seg(wire.SYN, cISN, 0, 0, "", mods(t))
		syn.MSS = 1460
		arrived, stop := s.transit(n, syn, t, true, false)
		h.got(stop)
		if stop != StopNone {
			continue
		}
		if h.refused {
			_, stop := s.answer(n, seg(wire.RST|wire.ACK, 0-h.shiftS, cISN+h.shiftC+1, 0, "", []mod{bare}), arrived, false)
			if h.got(stop); stop == StopNone {
				h.stop = StopNone
				return
			}
			continue
		}
		back, stop := s.answer(n, seg(wire.SYN|wire.ACK, sISN, cISN+h.shiftC+1, 0, "", serverMods(arrived)), arrived+20e-6, true)
		h.got(stop)
		if stop == StopNone {
			open, t = true, back
			break
		}
	}
	if !open {
		return
	}
	h.stop = StopNone
	toServer := func(f wire.TCPFlags, sq, ak uint32, size int, text string) bool {
		for range 3 {
			t += 50e-6
			if _, stop := s.transit(n, seg(f, sq, ak, size, text, mods(t)), t, false, size > 0); stop == StopNone {
				return true
			}
			t += 0.25
		}
		return false
	}
	toClient := func(f wire.TCPFlags, sq, ak uint32, size int, text string) bool {
		for range 3 {
			t += 50e-6
			if _, stop := s.answer(n, seg(f, sq, ak, size, text, serverMods(t)), t, false); stop == StopNone {
				return true
			}
			t += 0.25
		}
		return false
	}
	c, v := cISN+1, sISN+1 // the client's next as it sends it, the server's next as it sends it
	toServer(wire.ACK, c, v+h.shiftS, 0, "")
	rounds := 1
	if s.long {
		rounds = 5
	}
	for k := range rounds {
		size, text := 100+s.r.IntN(1500), "GET / HTTP/1.1 of everybody"
		if !s.alike {
			text = fmt.Sprintf("GET /%d of %d HTTP/1.1 and a few words more than sixteen bytes", k, n)
		}
		if s.offload {
			size = 2800
		}
		if !toServer(wire.ACK|wire.PSH, c, v+h.shiftS, size, text) {
			return
		}
		c += uint32(size)
		t += 2*wayDelay + s.jitter
		if !toClient(wire.ACK|wire.PSH, v, c+h.shiftC, 1000, "200 OK") {
			return
		}
		v += 1000
		t += 2*wayDelay + s.jitter
		if s.long {
			t += 6
		}
	}
	switch s.r.IntN(10) {
	case 0:
		toServer(wire.RST, c, 0, 0, "")
	case 1:
		if s.reuse {
			toServer(wire.RST, c, 0, 0, "")
		}
	default:
		toServer(wire.FIN|wire.ACK, c, v+h.shiftS, 0, "")
		t += 2*wayDelay + s.jitter
		toClient(wire.FIN|wire.ACK, v, c+1+h.shiftC, 0, "")
		t += 2*wayDelay + s.jitter
		toServer(wire.ACK, c+1, v+1+h.shiftS, 0, "")
	}
}

// got keeps the furthest place at which packets of the request stopped.
func (h *happened) got(stop Stop) {
	if stop != StopNone && (h.stop == StopNone || reach[stop] > reach[h.stop]) {
		h.stop = stop
	}
}

// ask is an exchange of datagrams: one question that is asked again until it is answered, or three pings.
func (s *simWorld) ask(n int, at float64) {
	h := &s.requests[n]
	h.payload = fmt.Sprintf("question %d of its own, which is longer than the sixty-four bytes of a digest's prefix", n)
	switch {
	case s.repeated && s.r.IntN(4) != 0, s.alike:
		h.payload = "the same question that everybody asks, longer than the sixty-four bytes of a prefix"
	case s.snaplen == 96 && s.r.IntN(2) == 0:
		h.payload = fmt.Sprintf("%08d it is", n) // short enough to be whole
	}
	if h.other && s.parrots {
		for k := n - 700; k >= 0; k-- {
			if o := &s.requests[k]; !o.other && o.proto == h.proto {
				h.payload = o.payload
				break
			}
		}
	}
	left := s.snaplen - 48
	h.digest = s.snaplen == 0 || left >= 16 && strings.HasPrefix(h.payload, "question")
	s.payloads[h.payload]++
	dg := func(text string, sq uint32, reply bool) packet {
		p := packet{iface: "eth0", hasIPID: true}
		p.TTL, p.WireLen, p.Seq = 64, 74, sq
		p.Known = wire.KnowTTL | wire.KnowTransport | wire.KnowPayload
		if !s.v6 {
			p.Known |= wire.KnowIPID
		}
		p.Tuple.Proto = h.proto
		if h.proto.IsICMP() {
			p.ICMPType = h.pod.Query
			if reply {
				p.Attr |= wire.IsReply
				if p.ICMPType = wire.ICMPEchoReply; h.proto == wire.ProtoICMP6 {
					p.ICMPType = wire.ICMP6EchoReply
				}
			}
		}
		payload(text)(&p)
		return p
	}
	rounds := 1
	if h.proto.IsICMP() {
		rounds = 3
	}
	answered := false
	t := at
	for k := range rounds {
		text := h.payload
		if rounds > 1 && !strings.HasPrefix(text, "the same") {
			text += fmt.Sprint(" ", k)
		}
		for range 3 {
			arrived, stop := s.transit(n, dg(text, uint32(k), false), t, true, false)
			h.got(stop)
			t += 1
			if stop == StopNone {
				reply := "answer to " + text
				if rounds > 1 {
					reply = text
				}
				_, stop = s.answer(n, dg(reply, uint32(k), true), arrived+20e-6, false)
				if h.got(stop); stop == StopNone {
					answered = true
					break
				}
			}
			if rounds > 1 {
				break // ping does not repeat
			}
		}
	}
	if answered {
		h.stop = StopNone
	}
}

// inputs are the two captures.
func (s *simWorld) inputs(t testing.TB) []Input {
	t.Helper()
	captured := func(side wire.Side, file string, shots []shot, ifaces ...string) Input {
		m := make(many, len(shots))
		for i := range shots {
			m[i] = shots[i].packet
		}
		return captureOf(t, interfaces(ifaces...), m, about(func(r *recording) { r.input.Side, r.input.File = side, file }))
	}
	inputs := []Input{captured(wire.SideNear, "near.pcap", s.near, "eth0"), captured(wire.SideFar, "far.pcap", s.far, "ens4")}
	if s.farOneWay {
		inputs[1].Source.(*slice).summary.HasFilter = false // there is one, and the file does not say so
	}
	return inputs
}

// expected tells whether a request's two sides hold enough in common to be joined, and how surely.
func (s *simWorld) expected(h *happened) (joinable bool, c Confidence) {
	if h.other || h.elsewhere {
		return false, 0
	}
	if h.proto != wire.ProtoTCP {
		once := s.payloads[h.payload] == 1
		byID := false
		for id := range h.id {
			byID = byID || s.words[utterance{h.payload, id, false}] > 0 && s.words[utterance{h.payload, id, true}] > 0
		}
		return h.common && h.digest && (once || byID), Exact
	}
	stamps := !s.noTS && s.snaplen != 60
	ids := !s.noID && !s.newIDs && !s.v6
	switch {
	case h.rewritten && stamps:
		return h.commonSYN, Probable
	case h.rewritten:
		return h.commonSYN && h.egress == h.far && !s.reuse, Probable
	case h.common && (stamps || h.commonSYN && ids):
		return true, Exact
	case h.openNear && h.openFar && !stamps:
		return true, Probable
	}
	return false, 0
}

// underRace tells whether the race detector slows this run down.
func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

var worlds = []world{
	{sentence: "random ports, three routers", fates: true, others: 0.3, datagrams: 0.2, claims: true},
	{sentence: "the client's port where it is free", snat: samePort, fates: true, others: 0.3, datagrams: 0.2, claims: true},
	{sentence: "no translation", snat: untouched, fates: true, others: 0.3, datagrams: 0.2, claims: true},
	{sentence: "a second translation on the way", second: true, fates: true, others: 0.3, datagrams: 0.2, claims: true},
	{sentence: "a second translation behind none", snat: untouched, second: true, fates: true, others: 0.3, claims: true},
	{sentence: "a firewall rewrites sequence numbers", rewrites: true, fates: true, others: 0.3, datagrams: 0.1},
	{sentence: "it rewrites IP IDs, too", rewrites: true, newIDs: true, fates: true, others: 0.3},
	{sentence: "it rewrites, and a second translation follows", rewrites: true, newIDs: true, second: true, fates: true, others: 0.3},
	{sentence: "it rewrites, and nobody sends timestamps", snat: samePort, rewrites: true, newIDs: true, noTS: true, datagrams: 0.2, others: 0.3},
	{sentence: "IP IDs are rewritten, and nothing else", newIDs: true, fates: true, datagrams: 0.3, others: 0.3},
	{sentence: "one packet in twenty is lost, each way", lossTo: 0.05, lossBack: 0.05, fates: true, others: 0.3, datagrams: 0.2, claims: true},
	{sentence: "one packet in three is lost on the way back", lossBack: 0.3, others: 0.3, datagrams: 0.2},
	{sentence: "doubled and reordered packets", doubled: 0.1, jitter: 0.02, fates: true, others: 0.3, datagrams: 0.2, claims: true},
	{sentence: "the far clock is 0.4 s ahead", skew: 0.4, fates: true, others: 0.3, datagrams: 0.2, claims: true},
	{sentence: "the far clock is 37 s behind", skew: -37, fates: true, others: 0.3, datagrams: 0.2, claims: true},
	{sentence: "the far clock is two hours ahead and fast", skew: 7200, drift: 50e-6, fates: true, others: 0.3, datagrams: 0.2, claims: true},
	{sentence: "the far clock is set back by 3 s", step: -3, fates: true, others: 0.3, datagrams: 0.2},
	{sentence: "the near clock is set forward by 2 s", nearStep: 2, fates: true, others: 0.3, datagrams: 0.2},
	{sentence: "a clamped MSS, and segments that are cut behind the capture", clamp: true, offload: true, fates: true, others: 0.3, claims: true},
	{sentence: "captures that begin and end at other moments, long connections", nearCut: 5, farCut: 9, long: true, fates: true, others: 0.3, datagrams: 0.2},
	{sentence: "the near capture is the shorter one", nearCut: 12, farCut: 3, long: true, fates: true, skew: 37, others: 0.3, datagrams: 0.2},
	{sentence: "96 bytes a packet", snaplen: 96, fates: true, datagrams: 0.3, others: 0.3},
	{sentence: "60 bytes a packet", snaplen: 60, fates: true, datagrams: 0.1, others: 0.3},
	{sentence: "IP IDs are zero", noID: true, fates: true, datagrams: 0.3, others: 0.3, claims: true},
	{sentence: "no timestamps", noTS: true, fates: true, others: 0.3, claims: true},
	{sentence: "neither timestamps nor IP IDs", noTS: true, noID: true, fates: true, others: 0.3},
	{sentence: "datagrams that say the same, told apart by IP IDs", datagrams: 0.9, repeated: true, fates: true, others: 0.5},
	{sentence: "datagrams that say the same, without IP IDs", datagrams: 0.9, repeated: true, noID: true, fates: true, others: 0.5},
	{sentence: "strangers say what was said some seconds before, without IP IDs", datagrams: 0.9, parrots: true, noID: true, fates: true, others: 0.3},
	{sentence: "strangers say it, with IP IDs of their own", datagrams: 0.9, parrots: true, fates: true, others: 0.3},
	{sentence: "IPv6", v6: true, fates: true, datagrams: 0.3, others: 0.3, claims: true},
	{sentence: "the far capture holds what goes to the servers alone", farOneWay: true, fates: true, datagrams: 0.2, others: 0.3},
	{sentence: "others with the same ports, words and few ISNs", alike: true, fates: true, datagrams: 0.2, others: 1.5},
	{sentence: "ports are used again at once", snat: samePort, reuse: true, fates: true, others: 0.5},
	{
		sentence: "all at once", second: true, doubled: 0.05, jitter: 0.02, lossTo: 0.03, lossBack: 0.03, fates: true, skew: 7200, drift: 20e-6, nearCut: 3,
		farCut: 5, snaplen: 96, datagrams: 0.3, repeated: true, others: 1, alike: true, reuse: true, clamp: true,
	},
}

// No request is ever joined with another's far side; of those whose two sides hold enough in common nearly all are; the clock
// offset is right within the error stated; and what is said of a place where packets stop is the truth.
func TestSimulatedPair(t *testing.T) {
	each := 100_000/len(worlds) + 1
	if testing.Short() || underRace() {
		each /= 4
		t.Logf("not checked: a hundred thousand requests (-short or -race); %d", each*len(worlds))
	}
	var all tally
	for i, w := range worlds {
		t.Run(w.sentence, func(t *testing.T) {
			s := w.through(uint64(i), each)
			facts := factsOf(t, "pod 10.4.0.0/14", "node "+node, "pod 2001:db8:4::/48", "node 2001:db8:1::10")
			res := runOf(t, facts, Options{}, s.inputs(t)...)
			sum := s.check(t, res)
			t.Log(sum)
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + i%2*3)) // one processor, or more than there may be
			if at, one, other := differ(res, runOf(t, facts, Options{Batch: 1 + i}, s.inputs(t)...)); at >= 0 {
				t.Errorf("another number of processors and batches of %d change request %d from\n%s\nto\n%s", 1+i, at, one, other)
			}
			all.add(&sum)
		})
	}
	t.Log(all)
	if all.requests < 100_000 && !testing.Short() && !underRace() {
		t.Errorf("%d requests were simulated, want 100,000", all.requests)
	}
}

// differ finds the first request of which two results say different things, -1 if there is none.
func differ(one, other *Result) (at int, a, b string) {
	said := func(res *Result, i int) string {
		if i >= len(res.Requests) {
			return "none"
		}
		r := &res.Requests[i]
		end := func(e *Endpoint) string {
			if e == nil {
				return "-"
			}
			return fmt.Sprint(e.Addr, e.Port, e.Role.Kind, e.Role.Fact())
		}
		return fmt.Sprint(r.Tuple, " ", verdictOf(r), r.Opening, end(r.Backend), end(r.Egress), end(r.Far), end(r.FarServer), r.ConnState, r.History, r.Completed,
			r.Unanswered, r.Unknown, r.Reasons, r.First, r.Last, r.Handshake, r.RequestsSent, r.RepliesSeen, r.Retransmissions, r.Joins, r.Cited(), r.Legs, r.Findings)
	}
	for i := range max(len(one.Requests), len(other.Requests)) {
		if a, b = said(one, i), said(other, i); a != b {
			return i, a, b
		}
	}
	return -1, "", ""
}

// tally is what a run of a world came to.
type tally struct {
	requests, joinable, joined, exact, exactGot, joins int
	stopped, claimed                                   map[Stop]int
	why                                                map[string]int // reasons for which a place is not known
}

func (a *tally) add(b *tally) {
	a.requests += b.requests
	a.joinable += b.joinable
	a.joined += b.joined
	a.exact += b.exact
	a.exactGot += b.exactGot
	a.joins += b.joins
}

func (a tally) String() string {
	s := fmt.Sprintf("%d requests, %d joined; of %d joinable %d, of %d exact ones %d", a.requests, a.joins, a.joinable, a.joined, a.exact, a.exactGot)
	for _, k := range []Stop{StopNodeOut, StopBetween, StopFar, StopReturn, StopNodeIn} {
		if n := a.stopped[k]; n > 0 {
			s += fmt.Sprintf("; %s %d of %d", k, a.claimed[k], n)
		}
	}
	if len(a.why) > 0 {
		s += fmt.Sprint("; not said, ", a.why)
	}
	return s
}

// complaints are failures of a world, of which the first few are printed.
type complaints struct {
	t    *testing.T
	seen map[string]int
}

func (c *complaints) say(kind, format string, args ...any) {
	const most = 3
	if c.seen[kind]++; c.seen[kind] <= most {
		c.t.Errorf(kind+": "+format, args...)
	}
}

// note prints the first few of what is counted elsewhere.
func (c *complaints) note(kind, format string, args ...any) {
	const most = 3
	if c.seen[kind]++; c.seen[kind] <= most {
		c.t.Logf(kind+": "+format, args...)
	}
}

// check holds a result against what happened.
func (s *simWorld) check(t *testing.T, res *Result) tally {
	t.Helper()
	sum := tally{stopped: make(map[Stop]int), claimed: make(map[Stop]int), why: make(map[string]int)}
	why := make(map[int]string)
	bad := &complaints{t, make(map[string]int)}
	owner := func(f *FrameRef) int {
		if f.Capture == 0 {
			return s.near[f.Frame-1].owner
		}
		return s.far[f.Frame-1].owner
	}
	joined := make(map[int]Confidence)
	placed := make(map[int]Stop)
	for i := range res.Requests {
		r := &res.Requests[i]
		cited := r.Cited()
		if len(cited) == 0 {
			bad.say("no frames", "%s", r.Tuple)
			continue
		}
		who := owner(&cited[0])
		h := &s.requests[who]
		near, far := false, false
		for k := range cited {
			f := &cited[k]
			near, far = near || f.Capture == 0, far || f.Capture == 1
			if o := owner(f); o != who {
				bad.say("false join", "%s and %s\n%s\nfirst %s\nsecond %s\njoins %+v", r.Tuple, s.requests[o].far, listOf(res.Requests[i:i+1]), h, &s.requests[o], r.Joins)
				break
			}
		}
		if !near {
			if h.other && r.Client.Role.Kind != cluster.RolePod && r.Client.Role.Kind != cluster.RoleNode {
				bad.say("listed", "another client's request: %s", r.Tuple)
			}
			continue
		}
		var join *Join
		for k := range r.Joins {
			if r.Joins[k].To == "far" {
				join = &r.Joins[k]
			}
		}
		if (join != nil) != far {
			bad.say("no join", "%s has frames of the far side (%v) and joins %+v", r.Tuple, far, r.Joins)
		}
		if join != nil {
			sum.joins++
			if len(join.Basis) == 0 {
				bad.say("no basis", "%s: %+v", r.Tuple, join)
			}
			if c, ok := joined[who]; !ok || join.Confidence > c {
				joined[who] = join.Confidence
			}
			if r.Far == nil || r.Far.Addr != h.far.Src || r.Far.HasPort && r.Far.Port != h.far.SrcPortOrEchoID || r.FarServer.Addr != h.far.Dst {
				bad.say("far end", "%s arrived as %s, and is said to have as %+v", r.Tuple, h.far, r.Far)
			}
			if h.rewritten && join.Confidence == Exact {
				bad.say("too sure", "%s: sequence numbers were rewritten, and the join is exact by %v", r.Tuple, join.Basis)
			}
			if second := h.far.Src != h.egress.Src; r.Egress != nil && second != slices.Contains(r.Findings, codeSecond) && slices.Contains(r.Findings, codeSecond) {
				bad.say("second translation", "%s left as %s, arrived as %s; findings %v", r.Tuple, h.egress, h.far, r.Findings)
			}
		}
		for _, u := range r.Unknown {
			if u.Field == "stopped_at" {
				why[who] += " " + u.Reason
			}
		}
		if r.StoppedAt != StopUnknown {
			placed[who] = r.StoppedAt
			// Seen at the node's egress alone, an answer there is an answer: it does not show the Pod.
			egressOnly := !slices.ContainsFunc(r.Legs, func(l Leg) bool { return l.Kind == LegPod })
			if r.StoppedAt != h.stop && !(h.stop == StopNodeIn && r.StoppedAt == StopNone && egressOnly) {
				bad.say("stopped at", "%s\nsaid %s, is %s\n%s%s\nreasons %q\n", r.Tuple, r.StoppedAt, h.stop, listOf(res.Requests[i:i+1]), h, r.Reasons)
			}
		}
		if !s.sourceFits(h, r) {
			bad.say("source", "%s: said %s, happened %s", r.Tuple, r.Source, h)
		}
	}
	for n := range s.requests {
		h := &s.requests[n]
		if h.other {
			continue
		}
		sum.requests++
		if joinable, c := s.expected(h); joinable {
			sum.joinable++
			got, ok := joined[n]
			if ok {
				sum.joined++
			} else {
				bad.note("not joined", "%s", h)
			}
			if c == Exact {
				sum.exact++
				if ok && got == Exact {
					sum.exactGot++
				}
			}
		}
		if !h.elsewhere && h.stop != StopNone {
			if placed[n] != h.stop && h.stop != StopNodeOut {
				sum.why[h.stop.String()+": "+why[n]]++
			}
			sum.stopped[h.stop]++
			if placed[n] == h.stop {
				sum.claimed[h.stop]++
			}
		}
	}
	for kind, n := range bad.seen {
		t.Logf("%s: %d times", kind, n)
	}
	least := 0.999
	if s.repeated && !s.noID {
		least = 0.995 // IP IDs have 16 bits: in a crowd that says one thing some have two partners that fit
	}
	if sum.joinable == 0 && sum.requests <= 2000 {
		return sum // too short a world for captures that begin and end at other moments
	}
	least -= 1 / float64(sum.joinable+1) // one is one, however short the world
	if sum.joinable == 0 || float64(sum.joined) < least*float64(sum.joinable) || float64(sum.exactGot) < least*float64(sum.exact) {
		t.Errorf("too few are joined: %s", sum)
	}
	for _, k := range []Stop{StopBetween, StopFar, StopReturn} {
		// In a short world the end of the captures is too large a part of it.
		if s.claims && sum.requests > 2000 && (sum.stopped[k] == 0 || float64(sum.claimed[k]) < 0.9*float64(sum.stopped[k])) {
			t.Errorf("everything is covered, and %s is said of %d in %d", k, sum.claimed[k], sum.stopped[k])
		}
	}
	s.checkClock(t, &res.Captures[1])
	return sum
}

// sourceFits tells whether the source said is what happened, or less.
func (s *simWorld) sourceFits(h *happened, r *Request) bool {
	switch r.Source {
	case SourceUnknown:
		return true
	case NotSent:
		return h.fate == StopNodeOut
	case PodSourced:
		return s.snat == untouched
	case NodeSNATed, NodeSourced:
		return s.snat != untouched
	default:
		return false
	}
}

// checkClock holds the far clock's offset against the true one.
func (s *simWorld) checkClock(t *testing.T, c *CaptureInfo) {
	t.Helper()
	if s.farOneWay || s.rewrites {
		return // one direction bounds it on one side only; probable joins do not measure
	}
	if !c.HasOffset {
		t.Errorf("no clock offset is said")
		return
	}
	near := func(at float64) float64 { return s.skew + s.drift*(at-100) + s.step - s.nearStep }
	a, b := near(100), near(100+s.end+30)
	const nanoseconds = 1e9
	low, high := min(a, b)*nanoseconds, max(a, b)*nanoseconds
	if lo, hi := float64(c.ClockOffset-c.ClockError), float64(c.ClockOffset+c.ClockError); hi < low-1000 || lo > high+1000 {
		t.Errorf("the far clock is said to be %d ± %d ns ahead, is %.0f to %.0f", c.ClockOffset, c.ClockError, low, high)
	}
	if c.ClockError > 2*int64((wayDelay+s.jitter)*nanoseconds) {
		t.Errorf("the error stated is %d ns, twice the delay of the way and more", c.ClockError)
	}
	if c.ClockPairs == 0 || c.ClockStated {
		t.Errorf("the offset was measured: %d pairs, stated %v", c.ClockPairs, c.ClockStated)
	}
	if stepped := s.step != 0 || s.nearStep != 0; stepped && !slices.ContainsFunc(c.Notes, func(n string) bool { return strings.Contains(n, "clock") }) {
		t.Errorf("a clock was set, and no note says so: %q", c.Notes)
	} else if !stepped && s.drift == 0 && slices.ContainsFunc(c.Notes, func(n string) bool { return strings.Contains(n, "step") }) {
		t.Errorf("no clock was set, and a note says so: %q", c.Notes)
	}
}

func (h *happened) String() string {
	return fmt.Sprintf("{%s, left as %s, arrived as %s; fate %s, stopped %s, elsewhere %v, other %v, opening near %v far %v common %v, payload %.12q}",
		h.pod, h.egress, h.far, h.fate, h.stop, h.elsewhere, h.other, h.openNear, h.openFar, h.common, h.payload)
}
