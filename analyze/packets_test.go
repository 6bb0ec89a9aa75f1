package analyze

import (
	"errors"
	"hash/maphash"
	"io"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// This file is the vocabulary of the package's tests: packets in one line each, captures made of them, and the requests
// that come out. A packet is written as the wire carried it:
//
//	syn("10.4.0.7:41000 > 192.0.2.9:443", at(1.0), in("veth1"), ttl(64), isn(7))
//
// What a line does not say is what a plain Linux sender would have sent: TTL 64, every header captured, TCP timestamps, and
// an IP ID that copies of one packet share and different packets do not.

// epoch is the Unix time, in seconds, of at(0).
const epoch = 1_700_000_000

// The addresses of the tests: a Pod, its node, a Service, and a server somewhere else.
const (
	pod    = "10.4.0.7"
	node   = "10.128.0.10"
	server = "192.0.2.9"
)

// packet is one packet with the name of the interface that it was seen on.
type packet struct {
	wire.Packet
	iface   string
	hasIPID bool // ipid() or noIPID() spoke
}

// mod changes one thing of a packet.
type mod func(*packet)

// part is something that a capture is made of: a packet, several, or a word about the capture itself.
type part interface{ addTo(*recording) }

// many is several packets in a row.
type many []packet

// recording is a capture while it is being put together.
type recording struct {
	packets  []packet
	summary  wire.Summary
	input    Input
	damage   error
	names    map[string]uint32
	from, to int64
}

type about func(*recording)

func (p packet) addTo(r *recording) { r.packets = append(r.packets, p) }
func (m many) addTo(r *recording)   { r.packets = append(r.packets, m...) }
func (a about) addTo(r *recording)  { a(r) }

// at is the packet's time in seconds behind the epoch.
func at(s float64) mod { return func(p *packet) { p.Time = instant(s) } }

func instant(s float64) int64 { return epoch*1e9 + int64(math.Round(s*1e9)) }

// later moves a packet by seconds.
func later(s float64) mod {
	return func(p *packet) {
		if p.Time != wire.NoTime {
			p.Time += int64(math.Round(s * 1e9))
		}
	}
}

// timeless is a packet of a capture without times.
func timeless(p *packet) { p.Time = wire.NoTime }

// in, out and on are the interface, and the direction in which the host saw the frame pass.
func in(iface string) mod  { return func(p *packet) { p.iface, p.Dir = iface, wire.DirIn } }
func out(iface string) mod { return func(p *packet) { p.iface, p.Dir = iface, wire.DirOut } }
func on(iface string) mod  { return func(p *packet) { p.iface, p.Dir = iface, wire.DirUnknown } }

func vlan(tag uint32) mod { return func(p *packet) { p.VLAN = tag } }
func depth(d uint8) mod   { return func(p *packet) { p.Depth = d } }
func ttl(n uint8) mod     { return func(p *packet) { p.TTL = n; p.Known |= wire.KnowTTL } }

// between gives a packet other ends, as a translation does.
func between(ends string) mod {
	return func(p *packet) {
		t := tupleOf(p.Tuple.Proto, ends)
		if p.Tuple.Proto.IsICMP() && !p.Is(wire.IsError) {
			t.SrcPortOrEchoID, t.DstPortOrEchoID, t.Query = p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID, p.Tuple.Query
		}
		p.Tuple = t
	}
}

// isn is the initial sequence number of a SYN or SYN-ACK; seq and acks are raw numbers of any segment.
func isn(n uint32) mod  { return func(p *packet) { p.Seq = n } }
func seq(n uint32) mod  { return func(p *packet) { p.Seq = n } }
func acks(n uint32) mod { return func(p *packet) { p.Ack = n } }

// stamp is the TCP timestamp option; bare is a segment without one.
func stamp(val, ecr uint32) mod {
	return func(p *packet) { p.TSVal, p.TSEcr = val, ecr; p.Known |= wire.KnowTS | wire.KnowOptions }
}
func bare(p *packet) { p.TSVal, p.TSEcr = 0, 0; p.Known &^= wire.KnowTS }

func ipid(n uint16) mod {
	return func(p *packet) { p.IPID, p.hasIPID = n, true; p.Known |= wire.KnowIPID }
}
func noIPID(p *packet) { p.IPID, p.hasIPID = 0, true; p.Known &^= wire.KnowIPID }

// without clears facts: what a snap length cut away.
func without(k wire.Known) mod { return func(p *packet) { p.Known &^= k } }
func marked(a wire.Attr) mod   { return func(p *packet) { p.Attr |= a } }

// cutShort is a packet whose capture ended behind the ports.
func cutShort(p *packet) {
	p.Known &= wire.KnowTTL | wire.KnowIPID
	p.Attr |= wire.IsCut
	p.Seq, p.Ack, p.Flags, p.TSVal, p.TSEcr, p.PayloadLen = 0, 0, 0, 0, 0, 0
	p.Digest16, p.Digest64, p.DigestAll = 0, 0, 0
}

// echoID is the identifier of an ICMP query.
func echoID(id uint16) mod {
	return func(p *packet) { p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = id, id }
}

// payload is the packet's data: equal texts have equal digests.
func payload(text string) mod { return payloadOf(text, len(text)) }

// payloadOf is payload of n bytes of which text tells only what they are.
func payloadOf(text string, n int) mod {
	return func(p *packet) {
		p.PayloadLen = uint32(n)
		p.Known |= wire.KnowPayload
		p.Known &^= wire.KnowDigest16 | wire.KnowDigest64 | wire.KnowDigestAll
		p.Digest16, p.Digest64, p.DigestAll = 0, 0, 0
		if n == 0 {
			return
		}
		p.Digest16, p.Digest64, p.DigestAll = digest(text[:min(16, len(text))]), digest(text[:min(64, len(text))]), digest(text)
		p.Known |= wire.KnowDigest16 | wire.KnowDigest64
		if p.Tuple.Proto != wire.ProtoTCP {
			p.Known |= wire.KnowDigestAll
		} else {
			p.DigestAll = 0
		}
	}
}

var digestSeed = maphash.MakeSeed()

func digest(s string) uint64 { return maphash.String(digestSeed, s) }

// tupleOf reads "10.4.0.7:41000 > 192.0.2.9:443", or addresses alone.
func tupleOf(proto wire.Proto, ends string) wire.Tuple {
	src, dst, ok := strings.Cut(ends, " > ")
	if !ok {
		panic("a packet's ends are written \"source > destination\": " + ends)
	}
	t := wire.Tuple{Proto: proto}
	t.Src, t.SrcPortOrEchoID = endOf(src)
	t.Dst, t.DstPortOrEchoID = endOf(dst)
	return t
}

func endOf(s string) (wire.Addr, uint16) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return wire.AddrFrom(ap.Addr()), ap.Port()
	}
	return wire.MustAddr(s), 0
}

// back is the same two ends the other way.
func back(ends string) string {
	src, dst, _ := strings.Cut(ends, " > ")
	return dst + " > " + src
}

func newPacket(proto wire.Proto, ends string) packet {
	p := packet{iface: "eth0"}
	p.Tuple = tupleOf(proto, ends)
	p.Time = instant(0)
	p.TTL = 64
	p.WireLen = 74
	p.Known = wire.KnowTTL | wire.KnowTransport | wire.KnowPayload
	return p
}

func (p packet) with(mods ...mod) packet {
	for _, m := range mods {
		m(&p)
	}
	if !p.hasIPID && p.Tuple.Src.Is4() {
		// An IP ID that copies of a packet share: of everything that translation leaves alone.
		h := uint32(p.Seq*2654435761) ^ p.Ack*40503 ^ uint32(p.Flags)<<8 ^ p.PayloadLen*31 ^ uint32(p.Digest16)
		p.IPID = uint16(h>>16^h) | 1
		p.Known |= wire.KnowIPID
	}
	return p
}

// also is the same packet seen elsewhere: what mods do not say stays, its IP ID included.
func also(p packet, mods ...mod) packet {
	p.hasIPID = true
	return p.with(mods...)
}

// The numbers that the TCP packets below take where a line does not say others.
const (
	clientISN = 1000
	serverISN = 5000
)

func segment(ends string, f wire.TCPFlags, s, a uint32, n int, mods []mod) packet {
	p := newPacket(wire.ProtoTCP, ends)
	p.Flags, p.Seq, p.Ack, p.Window = f, s, a, 64240
	p.TSVal, p.TSEcr = 77, 0
	p.Known |= wire.KnowOptions | wire.KnowTS
	payloadOf("data", n)(&p)
	return p.with(mods...)
}

func syn(ends string, mods ...mod) packet {
	return segment(ends, wire.SYN, clientISN, 0, 0, mods)
}

func synack(ends string, mods ...mod) packet {
	return segment(ends, wire.SYN|wire.ACK, serverISN, clientISN+1, 0, mods)
}

// ack is the third segment of the handshake; ackBack is the server's.
func ack(ends string, mods ...mod) packet {
	return segment(ends, wire.ACK, clientISN+1, serverISN+1, 0, mods)
}

func ackBack(ends string, mods ...mod) packet {
	return segment(ends, wire.ACK, serverISN+1, clientISN+1, 0, mods)
}

// data is the client's first n bytes, dataBack the server's.
func data(ends string, n int, mods ...mod) packet {
	return segment(ends, wire.ACK|wire.PSH, clientISN+1, serverISN+1, n, mods)
}

func dataBack(ends string, n int, mods ...mod) packet {
	return segment(ends, wire.ACK|wire.PSH, serverISN+1, clientISN+1, n, mods)
}

// fin is the client's, finBack the server's, both without data before them.
func fin(ends string, mods ...mod) packet {
	return segment(ends, wire.FIN|wire.ACK, clientISN+1, serverISN+1, 0, mods)
}

func finBack(ends string, mods ...mod) packet {
	return segment(ends, wire.FIN|wire.ACK, serverISN+1, clientISN+2, 0, mods)
}

// rst is a reset within the connection by the client; refusal is the reset that answers a SYN.
func rst(ends string, mods ...mod) packet {
	return segment(ends, wire.RST, clientISN+1, 0, 0, append([]mod{bare}, mods...))
}

func refusal(ends string, mods ...mod) packet {
	return segment(ends, wire.RST|wire.ACK, 0, clientISN+1, 0, append([]mod{bare}, mods...))
}

func udp(ends, text string, mods ...mod) packet {
	p := newPacket(wire.ProtoUDP, ends)
	payload(text)(&p)
	return p.with(mods...)
}

// echo and echoReply are written with addresses alone; n is the sequence number.
func echo(ends string, id uint16, n uint32, mods ...mod) packet {
	p := newPacket(wire.ProtoICMP, ends)
	p.Tuple.Query, p.ICMPType = wire.ICMPEchoRequest, wire.ICMPEchoRequest
	if !p.Tuple.Src.Is4() {
		p.Tuple.Proto, p.Tuple.Query, p.ICMPType = wire.ProtoICMP6, wire.ICMP6EchoRequest, wire.ICMP6EchoRequest
	}
	p.Seq = n
	echoID(id)(&p)
	payloadOf("ping "+itoa(uint64(id))+" "+itoa(uint64(n)), 56)(&p)
	return p.with(mods...)
}

func echoReply(ends string, id uint16, n uint32, mods ...mod) packet {
	p := echo(ends, id, n)
	p.Attr |= wire.IsReply
	p.hasIPID = false
	if p.ICMPType = wire.ICMPEchoReply; p.Tuple.Proto == wire.ProtoICMP6 {
		p.ICMPType = wire.ICMP6EchoReply
	}
	return p.with(mods...)
}

// icmp is an ICMP error from an address about a packet, which it quotes as that travelled.
func icmp(from string, typ, code uint8, quoted packet, mods ...mod) packet {
	p := newPacket(wire.ProtoICMP, "0.0.0.0 > 0.0.0.0")
	p.Tuple = quoted.Tuple
	p.Attr |= wire.IsError | quoted.Attr&wire.IsReply
	p.ErrorFrom, p.ErrorTo = wire.MustAddr(from), quoted.Tuple.Src
	p.ICMPType, p.ICMPCode = typ, code
	p.Seq, p.Flags, p.Chunk = quoted.Seq, quoted.Flags, quoted.Chunk
	p.IPID, p.hasIPID = quoted.IPID, true
	p.Known = wire.KnowTTL | quoted.Known&(wire.KnowIPID|wire.KnowTransport)
	p.Time = quoted.Time
	p.iface = quoted.iface
	return p.with(mods...)
}

func mtu(n uint32) mod { return func(p *packet) { p.MTU = n } }

// chunk is an SCTP packet whose first chunk has the type; its tag is the initiate tag or TSN, written by seq().
func chunk(ends string, typ uint8, mods ...mod) packet {
	p := newPacket(wire.ProtoSCTP, ends)
	p.Chunk, p.Seq, p.Ack = typ, clientISN, 0
	return p.with(mods...)
}

// fragment is a later fragment of a datagram: it has no ports.
func fragment(p packet, mods ...mod) packet {
	p = also(p, mods...)
	p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = 0, 0
	p.Attr |= wire.IsFragment | wire.IsLaterFrag
	p.Known &= wire.KnowTTL | wire.KnowIPID
	return p
}

// neighbour is an ICMPv6 neighbour discovery message of a type (133 to 137).
func neighbour(ends string, typ uint8, mods ...mod) packet {
	p := newPacket(wire.ProtoICMP6, ends)
	p.TTL, p.ICMPType, p.Tuple.Query = 255, typ, typ
	if typ == 136 {
		p.Tuple.Query = 135
		p.Attr |= wire.IsReply
	}
	return p.with(mods...)
}

// handshake is a connection's opening as one point sees it: answered 10 ms behind the SYN, acknowledged at once.
func handshake(ends string, mods ...mod) many {
	return many{
		syn(ends, mods...),
		synack(back(ends), slices.Concat(mods, []mod{later(0.010), isn(serverISN), turned})...),
		ack(ends, slices.Concat(mods, []mod{later(0.0101), seq(clientISN + 1)})...),
	}
}

// turned gives a packet the opposite direction.
func turned(p *packet) {
	switch p.Dir {
	case wire.DirIn:
		p.Dir = wire.DirOut
	case wire.DirOut:
		p.Dir = wire.DirIn
	case wire.DirUnknown:
	}
}

// natPath is a node that forwards one client's packets and translates them. carry gives what a capture on all interfaces
// sees of packets that are written as the client sees them: each at the client's interface and at the uplink, 50 µs apart,
// the hop taken off the TTL. An empty as is no translation.
type natPath struct {
	client, server string // "10.4.0.7:41000", "192.0.2.9:443"
	as             string // client behind the translation
	to             string // server behind the translation, "" if unchanged
	podIf, bridge  string // "veth1", "" for no bridge
	uplink         string // "eth0"
}

func (n natPath) carry(packets ...packet) many {
	after := natPath{client: n.client, server: n.server}
	if n.as != "" {
		after.client = n.as
	}
	if n.to != "" {
		after.server = n.to
	}
	var seen many
	for _, p := range packets {
		src, sport := endOf(n.client)
		if p.Tuple.Src == src && (p.Tuple.SrcPortOrEchoID == sport || !p.Tuple.Proto.HasPorts()) {
			seen = append(seen, also(p, in(n.podIf)))
			if n.bridge != "" {
				seen = append(seen, also(p, in(n.bridge)))
			}
			seen = append(seen, also(p, between(after.client+" > "+after.server), out(n.uplink), later(50e-6), ttl(p.TTL-1)))
			continue
		}
		seen = append(seen, also(p, between(after.server+" > "+after.client), in(n.uplink)))
		if n.bridge != "" {
			seen = append(seen, also(p, out(n.bridge), later(50e-6), ttl(p.TTL-1)))
		}
		seen = append(seen, also(p, out(n.podIf), later(50e-6), ttl(p.TTL-1)))
	}
	return seen
}

// A capture is, where nothing else is said, one of all interfaces (device any, SLL2) of a node, whole, with no drops and a
// filter that is known to be none.

// single is a capture of one device, Ethernet.
func single(name string) about {
	return func(r *recording) {
		r.summary.AllInterfaces, r.summary.LinkTypes = false, []uint32{1}
		r.index(name)
	}
}

// cooked1 is a capture of all interfaces as SLL gives it: directions, and no interface.
func cooked1(r *recording) {
	r.summary.LinkTypes = []uint32{113}
}

// severalDevices is a capture of several named devices, not of all (dumpcap -i veth1 -i eth0).
func severalDevices(names ...string) about {
	return func(r *recording) {
		r.summary.AllInterfaces, r.summary.LinkTypes = false, []uint32{1}
		for _, n := range names {
			r.index(n)
		}
	}
}

// interfaces describes interfaces in this order, whether or not packets were seen on them.
func interfaces(names ...string) about {
	return func(r *recording) {
		for _, n := range names {
			r.index(n)
		}
	}
}

func filtered(expr string) about {
	return func(r *recording) { r.summary.Filter, r.summary.HasFilter = expr, true }
}
func filterUnknown(r *recording) { r.summary.Filter, r.summary.HasFilter = "", false }
func filterStated(expr string) about {
	return func(r *recording) { r.input.StatedFilter, r.input.HasStated = expr, true; filterUnknown(r) }
}

func dropped(n uint64) about {
	return func(r *recording) { r.summary.Dropped, r.summary.HasDropped = n, true }
}
func dropsUnknown(r *recording) { r.summary.Dropped, r.summary.HasDropped = 0, false }
func onFarSide(r *recording)    { r.input.Side = wire.SideFar }

// printed is what tcpdump printed of a capture: no payloads, and no IP IDs.
func printed(r *recording) { r.summary.Text, r.summary.Format = true, "tcpdump text" }

// damagedEnd is a file that is broken behind its last packet.
func damagedEnd(r *recording) {
	r.summary.Complete, r.damage = false, errors.New("packet 99 at byte 9000: cut")
}

// window is a capture that ran from and to these seconds: other packets, of no request, stood there.
func window(from, to float64) about {
	return func(r *recording) { r.from, r.to = instant(from), instant(to) }
}

// ran is a capture that records itself from and to which seconds it ran.
func ran(from, to float64) about {
	return func(r *recording) {
		r.summary.From, r.summary.Until, r.summary.HasWindow = instant(from), instant(to), true
	}
}

func (r *recording) index(name string) uint32 {
	if i, ok := r.names[name]; ok {
		return i
	}
	i := uint32(len(r.summary.Interfaces))
	f := wire.Interface{Name: name, Index: i + 2, HasIndex: true, LinkType: r.summary.LinkTypes[0]}
	if name == "lo" {
		f.Index, f.Loopback = 1, true
	}
	r.names[name] = i
	r.summary.Interfaces = append(r.summary.Interfaces, f)
	return i
}

// slice is a PacketSource of packets in memory.
type slice struct {
	packets []wire.Packet
	next    int
	summary wire.Summary
	damage  error
}

func (s *slice) Read(dst []wire.Packet) (int, error) {
	if s.next == len(s.packets) {
		if err := s.damage; err != nil {
			s.damage = nil
			return 0, err
		}
		return 0, io.EOF
	}
	n := copy(dst, s.packets[s.next:])
	s.next += n
	return n, nil
}

func (s *slice) Summary() wire.Summary { return s.summary }

// captureOf puts a capture together.
func captureOf(t testing.TB, parts ...part) Input {
	t.Helper()
	r := &recording{names: make(map[string]uint32), from: wire.NoTime, to: wire.NoTime}
	r.summary = wire.Summary{
		Format: "pcapng", LinkTypes: []uint32{276}, AllInterfaces: true, HasFilter: true, Complete: true, HasDropped: true, SnapLen: 262144,
	}
	r.input.File = "test.pcapng"
	for _, p := range parts {
		p.addTo(r)
	}
	src := &slice{packets: make([]wire.Packet, len(r.packets)), damage: r.damage}
	r.summary.First, r.summary.Last = r.from, r.to
	for i := range r.packets {
		p := &r.packets[i]
		if p.Frame == 0 {
			p.Frame = uint64(i + 1)
		}
		p.Iface = r.index(p.iface)
		f := &r.summary.Interfaces[p.Iface]
		f.Packets++
		if f.Loopback {
			p.Attr |= wire.IsLoopbackIf
		}
		if p.Is(wire.IsCut) {
			r.summary.CutFrames++
		}
		r.summary.Frames++
		r.summary.Bytes += uint64(p.WireLen)
		if p.Time != wire.NoTime {
			if r.summary.First == wire.NoTime || p.Time < r.summary.First {
				r.summary.First = p.Time
			}
			r.summary.Last = max(r.summary.Last, p.Time)
		}
		src.packets[i] = p.Packet
	}
	src.summary = r.summary
	r.input.Source = src
	return r.input
}

// factsOf are facts in words: "pod 10.4.0.0/14", "node 10.128.0.10", "nodes 10.128.0.0/20", "service 10.96.0.0/16".
func factsOf(t testing.TB, words ...string) *cluster.Facts {
	t.Helper()
	var in cluster.Input
	for _, w := range words {
		kind, value, _ := strings.Cut(w, " ")
		switch kind {
		case "pod":
			in.PodCIDRs = append(in.PodCIDRs, netip.MustParsePrefix(value))
		case "node":
			in.NodeIPs = append(in.NodeIPs, netip.MustParseAddr(value))
		case "nodes":
			in.NodeCIDRs = append(in.NodeCIDRs, netip.MustParsePrefix(value))
		case "service":
			in.ServiceCIDRs = append(in.ServiceCIDRs, netip.MustParsePrefix(value))
		case "conntrack":
			in.Conntrack, in.ConntrackName = append(in.Conntrack, value+"\n"...), "conntrack.txt"
		default:
			t.Fatalf("no fact begins with %q", kind)
		}
	}
	f, err := cluster.New(in)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// gke are the facts of the tests' cluster.
func gke(t testing.TB) *cluster.Facts {
	t.Helper()
	return factsOf(t, "pod 10.4.0.0/14", "node "+node, "service 10.96.0.0/16")
}

// resultOf analyses one capture made of parts. A nil *cluster.Facts is a run without facts.
func resultOf(t testing.TB, facts *cluster.Facts, parts ...part) *Result {
	t.Helper()
	return runOf(t, facts, Options{}, captureOf(t, parts...))
}

// runOf runs the analysis, with requests held and with requests on demand: nobody can tell one from the other.
func runOf(t testing.TB, facts *cluster.Facts, opt Options, inputs ...Input) *Result {
	t.Helper()
	again := slices.Clone(inputs)
	for i := range again {
		if src, ok := again[i].Source.(*slice); ok {
			anew := *src
			again[i].Source = &anew
		} else {
			again = nil
			break
		}
	}
	res, err := Run(inputs, facts, opt)
	if err != nil {
		t.Fatal(err)
	}
	if again == nil {
		return res
	}
	opt.OnDemand, opt.IDs = true, true
	other, err := Run(again, facts, opt)
	if err != nil {
		t.Fatal(err)
	}
	sameOnDemand(t, other, res)
	return res
}

// sameOnDemand holds a result whose requests are judged when they are asked for against one that holds them.
func sameOnDemand(t testing.TB, got, want *Result) {
	t.Helper()
	if got.Len() != want.Len() {
		t.Fatalf("%d requests on demand, %d held", got.Len(), want.Len())
	}
	all := *got
	all.Requests, all.onDemand = make([]Request, got.Len()), nil
	if got.Len() == 0 {
		all.Requests = want.Requests
	}
	one := gathered(want)
	for i, r := range got.Each {
		all.Requests[i] = *got.At(i, nil)
		if got.ID(i) != one.Requests[i].ID() || r.ID() != one.Requests[i].ID() {
			t.Fatalf("request %d has the ids %s and %s on demand, and %s held", i, got.ID(i), r.ID(), one.Requests[i].ID())
		}
		sides := [2]Request{*r, one.Requests[i]} // before the next is asked for
		sides[0].Frames, sides[0].seenAt, sides[0].alsoAt = r.Cited(), passage{}, nil
		if !reflect.DeepEqual(sides[0], sides[1]) {
			t.Fatalf("request %d on demand:\n%+v\nheld:\n%+v", i, sides[0], sides[1])
		}
	}
	if !reflect.DeepEqual(gathered(&all), one) {
		t.Errorf("on demand and held differ\n%s", firstDifference(verdicts(all.Requests), verdicts(want.Requests)))
	}
}

// requestsOf are the requests of one capture made of parts.
func requestsOf(t testing.TB, facts *cluster.Facts, parts ...part) []Request {
	t.Helper()
	return resultOf(t, facts, parts...).Requests
}

// requestOf is the one request of a capture that holds one.
func requestOf(t testing.TB, facts *cluster.Facts, parts ...part) Request {
	t.Helper()
	rs := requestsOf(t, facts, parts...)
	if len(rs) != 1 {
		t.Fatalf("got %d requests, want one:\n%s", len(rs), listOf(rs))
	}
	return rs[0]
}

// listOf prints requests a line each, for failures.
func listOf(rs []Request) string {
	var b strings.Builder
	for i := range rs {
		r := &rs[i]
		b.WriteString("  " + r.Tuple.String() + " " + r.Source.String() + "/" + r.Basis.String() + " " + r.Outcome.String() +
			" " + r.ConnState + " " + r.History + " stopped " + r.StoppedAt.String())
		for _, l := range r.Legs {
			b.WriteString(" " + l.Kind.String() + "[" + l.Tuple.String() + "]")
		}
		b.WriteString("\n")
	}
	return b.String()
}
