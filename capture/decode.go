package capture

import (
	"encoding/binary"

	"github.com/srcproof/srcproof/capture/wire"
)

const (
	// MaxPerFrame is the most packets that one frame gives: the outermost and seven inside tunnels.
	MaxPerFrame = 8
	// maxLinks bounds link-layer headers inside link-layer headers (backbone bridges, pseudowires).
	maxLinks = 16
	// maxLinkIfaces bounds the interfaces that packets themselves name (SLL2). Those beyond share one entry.
	maxLinkIfaces = 4096
)

// Link types (https://www.tcpdump.org/linktypes.html), and the DLT_RAW values that differ between systems.
const (
	linkNull     = 0
	linkEthernet = 1
	linkPPP      = 9
	linkRaw12    = 12
	linkRaw14    = 14
	linkPPPHDLC  = 50
	linkPPPoE    = 51
	linkRaw      = 101
	linkCHDLC    = 104
	linkWLAN     = 105
	linkLoop     = 108
	linkSLL      = 113
	linkRadiotap = 127
	linkPPI      = 192
	linkPPPDir   = 204
	linkIPv4     = 228
	linkIPv6     = 229
	linkNFLOG    = 239
	linkSLL2     = 276
)

// supportedLink tells whether frames of a link type are decoded.
func supportedLink(t uint32) bool {
	switch t {
	case linkNull, linkEthernet, linkPPP, linkRaw12, linkRaw14, linkPPPHDLC, linkPPPoE, linkRaw, linkCHDLC, linkWLAN, linkLoop,
		linkSLL, linkRadiotap, linkPPI, linkPPPDir, linkIPv4, linkIPv6, linkNFLOG, linkSLL2:
		return true
	}
	return false
}

// FrameMeta is what is known of a frame beside its bytes.
type FrameMeta struct {
	Time    int64  // nanoseconds since 1970-01-01 UTC, or wire.NoTime
	Frame   uint64 // number, from 1
	WireLen uint32 // bytes before the snap length cut it; less than the bytes given is taken as not cut
	Iface   uint32 // index into Decoder.Interfaces; ignored for SLL2, whose packets name their interface
	Dir     wire.Direction
}

// Decoder turns frames into packet facts. It owns the counters and the interface table of one capture, allocates
// nothing per frame (a new SLL2 interface apart), and keeps no reference to a frame. The zero value is ready. It is not
// safe for concurrent use.
type Decoder struct {
	// Skipped counts frames, and layers inside them, that gave no facts.
	Skipped [wire.NumSkips]uint64
	// CutFrames counts frames whose captured bytes ended inside headers that are read.
	CutFrames uint64
	// Interfaces is what FrameMeta.Iface and Packet.Iface index. Packets counts the frames decoded on each.
	Interfaces []wire.Interface

	linkIfaces map[linkIface]uint32
	cache      [64]cachedIface // of linkIfaces, by interface index

	// Of the frame at hand:
	out   []wire.Packet
	meta  FrameMeta
	vlan  uint32
	attr  wire.Attr // marks of every packet of the frame
	mac   [6]byte
	base  int   // len(out) before the frame
	depth uint8 // IP headers seen
	links uint8 // link-layer headers inside the frame seen
	whole bool  // all of it was captured: what is missing was never there
	cut   bool
}

// linkIface is an interface as a packet names it: under a pcapng interface of type any, an operating system's index.
type linkIface struct{ parent, index uint32 }

type cachedIface struct {
	key linkIface
	id  uint32 // index in Interfaces, plus one
}

// AddInterface adds an interface and returns its index.
func (d *Decoder) AddInterface(i wire.Interface) uint32 {
	d.Interfaces = append(d.Interfaces, i)
	return uint32(len(d.Interfaces) - 1)
}

// verdict is how decoding a layer went.
type verdict uint8

const (
	good    verdict = iota // an IP header was read; what it held is booked
	notIP                  // a protocol that is not IP
	unknown                // a protocol that is not known: not IP on a link, no tunnel where a tunnel was guessed
	sealed                 // encrypted or compressed
	short                  // the snap length cut it before an IP header was read
	bad                    // it contradicts itself or the length that it had on the wire
	tooDeep                // more headers than are followed
)

// Decode appends the packets of a frame to dst, at most MaxPerFrame, and returns it. linkType is a pcap LINKTYPE_ value,
// frame the captured bytes. A frame without an IP header appends nothing and is counted.
func (d *Decoder) Decode(dst []wire.Packet, meta FrameMeta, linkType uint32, frame []byte) []wire.Packet {
	d.out, d.base, d.meta = dst, len(dst), meta
	d.vlan, d.attr, d.mac = 0, 0, [6]byte{}
	d.depth, d.links, d.cut = 0, 0, false
	n := max(int(meta.WireLen), len(frame))
	d.meta.WireLen = uint32(n)
	d.whole = n == len(frame)
	var v verdict
	switch linkType {
	case linkEthernet:
		v = d.ethernet(frame, n)
	case linkSLL2:
		v = d.sll2(frame, n)
	case linkRaw, linkRaw12, linkRaw14:
		v = d.raw(frame, n)
	default:
		v = d.otherLink(linkType, frame, n)
	}
	if v != good {
		d.skip(v)
	}
	return d.finish()
}

func (d *Decoder) finish() []wire.Packet {
	if d.cut {
		d.CutFrames++
	}
	if i := d.meta.Iface; uint64(i) < uint64(len(d.Interfaces)) {
		d.Interfaces[i].Packets++
	}
	out := d.out
	d.out = nil
	return out
}

// skip counts a layer that gave no facts.
func (d *Decoder) skip(v verdict) {
	switch v {
	case good:
	case notIP, unknown, sealed:
		d.Skipped[wire.SkipNotIP]++
	case short:
		d.cut = true
		d.Skipped[wire.SkipTooShort]++
	case bad:
		d.Skipped[wire.SkipMalformed]++
	case tooDeep:
		d.Skipped[wire.SkipDepth]++
	}
}

// missing is the verdict on a layer that needs more bytes than were captured: cut if the wire had them. All layers take
// the captured bytes and how many there were on the wire by the headers around them, which is never less.
func (d *Decoder) missing(need, n int) verdict {
	if !d.whole && n >= need {
		return short
	}
	return bad
}

func be16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// EtherTypes (IEEE registration authority), and the type field's values below 1536: a length (IEEE 802.3).
const (
	etherIPv4     = 0x0800
	etherARP      = 0x0806
	etherTEB      = 0x6558 // Ethernet in GRE and Geneve
	etherRARP     = 0x8035
	etherVLAN     = 0x8100
	etherIPv6     = 0x86dd
	etherPPP      = 0x880b
	etherMPLS     = 0x8847
	etherMPLSMult = 0x8848
	etherPPPoED   = 0x8863
	etherPPPoE    = 0x8864
	etherEAPOL    = 0x888e
	etherQinQ     = 0x88a8
	etherLLDP     = 0x88cc
	etherPBB      = 0x88e7
	etherMACsec   = 0x88e5
	etherPTP      = 0x88f7
	etherCMD      = 0x8909 // Cisco TrustSec security group tag
	etherVNTag    = 0x8926
	etherHSR      = 0x892f
	etherNSH      = 0x894f
	etherQinQ1    = 0x9100
	etherQinQ2    = 0x9200
	etherQinQ3    = 0x9300
	etherLoop     = 0x9000
)

// ethernet decodes from the destination address on.
func (d *Decoder) ethernet(b []byte, n int) verdict {
	if len(b) < 14 {
		return d.missing(14, n)
	}
	d.mac = [6]byte(b[6:12])
	return d.etherType(be16(b[12:]), b[14:], n-14)
}

// etherType decodes what follows an EtherType.
func (d *Decoder) etherType(t uint16, b []byte, n int) verdict {
	for {
		switch t {
		case etherIPv4:
			return d.ip4(b, n)
		case etherIPv6:
			return d.ip6(b, n)
		case etherVLAN, etherQinQ, etherQinQ1, etherQinQ2, etherQinQ3:
			if len(b) < 4 {
				return d.missing(4, n)
			}
			d.pushVLAN(be16(b))
			t, b, n = be16(b[2:]), b[4:], n-4
		case etherVNTag, etherCMD, etherHSR: // a tag of four bytes, then the type
			if len(b) < 6 {
				return d.missing(6, n)
			}
			t, b, n = be16(b[4:]), b[6:], n-6
		case etherMPLS, etherMPLSMult:
			return d.mpls(b, n)
		case etherPPPoE:
			return d.pppoe(b, n)
		case etherPBB: // IEEE 802.1ah: flags and service identifier, then the customer's frame
			if len(b) < 4 {
				return d.missing(4, n)
			}
			return d.innerEthernet(b[4:], n-4)
		case etherNSH:
			return d.nsh(b, n)
		default:
			if t < 1536 {
				if d.depth > 0 && int(t) > n {
					return bad
				}
				return d.llc(b, n)
			}
			if knownEtherType(t) {
				return notIP
			}
			return unknown
		}
	}
}

// innerEthernet decodes an Ethernet frame inside a frame.
func (d *Decoder) innerEthernet(b []byte, n int) verdict {
	if d.links++; d.links > maxLinks {
		return tooDeep
	}
	d.vlan = 0
	return d.ethernet(b, n)
}

// pushVLAN adds a tag behind the tags before it (Packet.VLAN). Identifier 0 is a priority tag: the frame is untagged
// (IEEE 802.1Q section 9.6).
func (d *Decoder) pushVLAN(tci uint16) {
	id := uint32(tci & 0xfff)
	if id == 0 {
		return
	}
	fold := d.vlan >> 24
	if outer := d.vlan >> 12 & 0xfff; outer != 0 {
		fold = (fold*31 + outer + outer>>8) & 0xff
	}
	d.vlan = fold<<24 | d.vlan&0xfff<<12 | id
}

// llc decodes an LLC header (IEEE 802.2): SNAP with an EtherType, or the old SAP number of IP.
func (d *Decoder) llc(b []byte, n int) verdict {
	if len(b) < 3 {
		return d.missing(3, n)
	}
	switch {
	case b[0] == 0xaa && b[1] == 0xaa && b[2] == 3:
		if len(b) < 8 {
			return d.missing(8, n)
		}
		// RFC 1042's organisation code, and bridge tunnel's (IEEE 802.1H); others have their own protocol numbers.
		if oui := be32(b[2:]) & 0xffffff; oui != 0 && oui != 0x0000f8 || be16(b[6:]) < 1536 {
			return notIP // Cisco's discovery protocols, AppleTalk
		}
		if d.links++; d.links > maxLinks {
			return tooDeep
		}
		return d.etherType(be16(b[6:]), b[8:], n-8)
	case b[0] == 6 && b[1] == 6 && b[2] == 3:
		return d.ip4(b[3:], n-3)
	}
	switch b[0] {
	case 0x42, 0xe0, 0xf0, 0xfe, 0xff: // spanning tree, IPX, NetBIOS, OSI, raw IPX
		return notIP
	}
	return unknown
}

// sll2 decodes a Linux cooked header of version 2 (LINKTYPE_LINUX_SLL2): protocol, reserved, interface index, hardware
// type, packet type, address length, address.
func (d *Decoder) sll2(b []byte, n int) verdict {
	if len(b) < 20 {
		return d.missing(20, n)
	}
	hardware := be16(b[8:])
	loop := hardware == arphrdLoopback
	if loop {
		d.attr = wire.IsLoopbackIf
	}
	key := linkIface{d.meta.Iface, be32(b[4:])}
	if c := &d.cache[key.index%uint32(len(d.cache))]; c.id != 0 && c.key == key {
		d.meta.Iface = c.id - 1
	} else {
		d.meta.Iface = d.linkIface(key, loop)
		*c = cachedIface{key, d.meta.Iface + 1}
	}
	d.packetType(uint16(b[10]))
	if b[11] == 6 {
		d.mac = [6]byte(b[12:18])
	}
	return d.cooked(hardware, be16(b), b[20:], n-20)
}

// Hardware types of Linux (include/uapi/linux/if_arp.h) that change what the protocol field of a cooked header means.
const (
	arphrdFrameRelay = 770
	arphrdLoopback   = 772
	arphrdWLAN       = 801
	arphrdRadiotap   = 803
	arphrdNetlink    = 824
)

// cooked decodes behind a cooked header. Its protocol field is an EtherType or, below 1536, a Linux ETH_P_ number.
func (d *Decoder) cooked(hardware, proto uint16, b []byte, n int) verdict {
	switch hardware {
	case arphrdNetlink, arphrdFrameRelay:
		return notIP
	case arphrdWLAN:
		return d.wlan(b, n)
	case arphrdRadiotap:
		return d.radiotap(b, n)
	}
	switch proto {
	case 1: // ETH_P_802_3: Novell's raw 802.3
		return notIP
	case 4: // ETH_P_802_2
		return d.llc(b, n)
	}
	if proto < 1536 {
		return notIP
	}
	return d.etherType(proto, b, n)
}

// packetType reads the packet type of cooked headers and NFLOG's relatives: 0 to 3 to us, broadcast, multicast, to
// another host; 4 sent by us. A direction that the file records itself wins.
func (d *Decoder) packetType(t uint16) {
	switch {
	case d.meta.Dir != wire.DirUnknown:
	case t <= 3:
		d.meta.Dir = wire.DirIn
	case t == 4:
		d.meta.Dir = wire.DirOut
	}
}

// linkIface finds or adds an interface that a packet names.
func (d *Decoder) linkIface(key linkIface, loop bool) uint32 {
	if id, ok := d.linkIfaces[key]; ok {
		return id
	}
	if d.linkIfaces == nil {
		d.linkIfaces = make(map[linkIface]uint32)
	}
	// The entry that all share once the table is full has a key that no packet has: interface indexes are positive ints.
	other := linkIface{^uint32(0), ^uint32(0)}
	if len(d.linkIfaces) >= maxLinkIfaces {
		if id, ok := d.linkIfaces[other]; ok {
			return id
		}
		id := d.AddInterface(wire.Interface{Name: "other", LinkType: linkSLL2})
		d.linkIfaces[other] = id
		return id
	}
	if uint64(key.parent) < uint64(len(d.Interfaces)) {
		// A pcapng file with a block for each interface, named: the packets tell its index. Of the device any they tell all.
		if p := &d.Interfaces[key.parent]; p.LinkType == linkSLL2 && p.Name != "" && p.Name != "any" && (!p.HasIndex || p.Index == key.index) {
			p.Index, p.HasIndex, p.Loopback = key.index, true, loop
			d.linkIfaces[key] = key.parent
			return key.parent
		}
	}
	i := wire.Interface{LinkType: linkSLL2}
	if uint64(key.parent) < uint64(len(d.Interfaces)) && d.Interfaces[key.parent].LinkType == linkSLL2 && !d.Interfaces[key.parent].HasIndex {
		p := &d.Interfaces[key.parent] // a pcapng file's any device: what it says holds for all of them
		i.Filter, i.HasFilter, i.SnapLen = p.Filter, p.HasFilter, p.SnapLen
	}
	i.Index, i.HasIndex, i.Loopback = key.index, true, loop
	id := d.AddInterface(i)
	d.linkIfaces[key] = id
	return id
}

// raw decodes a packet without a link layer.
func (d *Decoder) raw(b []byte, n int) verdict {
	if len(b) < 1 {
		return d.missing(1, n)
	}
	switch b[0] >> 4 {
	case 4:
		return d.ip4(b, n)
	case 6:
		return d.ip6(b, n)
	}
	return notIP
}
