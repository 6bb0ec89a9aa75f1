package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/srcproof/srcproof/capture/wire"
)

// Block types of pcapng (draft-ietf-opsawg-pcapng section 10.1).
const (
	blockIDB     = 0x00000001 // interface description
	blockPacket  = 0x00000002 // packet, obsolete
	blockSPB     = 0x00000003 // simple packet
	blockISB     = 0x00000005 // interface statistics
	blockEPB     = 0x00000006 // enhanced packet
	blockJournal = 0x00000009 // systemd journal entry
	blockCustom  = 0x00000bad
	blockCustom2 = 0x40000bad // not to be copied
	blockSHB     = 0x0a0d0d0a // section header
)

// Option codes, by block.
const (
	optEnd = 0

	shbHardware, shbOS, shbApplication = 2, 3, 4

	ifName, ifDescription, ifTsresol, ifFilter, ifTsoffset = 2, 3, 9, 11, 14

	epbFlags, epbDropcount = 2, 4

	isbStart, isbEnd, isbIfrecv, isbIfdrop, isbOSdrop = 2, 3, 4, 5, 7
)

const (
	byteOrderMagic = 0x1a2b3c4d
	// maxInterfaces bounds the interface table of a file, over all its sections.
	maxInterfaces = 1 << 16
	// maxText bounds what is kept of a file's texts (names, filters, ...) in bytes.
	maxText = 4 << 20
)

// sectionState is what is valid until the next section header.
type sectionState struct {
	ifaces []ngInterface
	text   int // bytes of text kept of the whole file
	nth    int // sections begun
}

// ngInterface is what reading an interface's packets needs.
type ngInterface struct {
	index    uint32 // in Decoder.Interfaces
	linkType uint32
	snapLen  uint32
	clock    clock
	counted  bool // a statistics block gave its drops
	frames   uint64
	ran      ranTime
}

// ranTime is when an interface was captured on, by its statistics block.
type ranTime struct {
	from, until                    int64
	received                       uint64
	hasFrom, hasUntil, hasReceived bool
}

// openPcapng reads the first section header. r.s stands at its beginning.
func (r *Reader) openPcapng() error {
	r.isNG = true
	r.sum.Format = "pcapng"
	err := r.nextSection(r.s.offset())
	if d, ok := err.(*DamageError); ok { //nolint:errorlint // nextSection returns it bare
		// No section, no capture: the person gave a wrong file, or one that was never begun.
		return &FormatError{r.name, "is a pcapng file whose section header cannot be read", d.Reason}
	}
	return err
}

// nextPcapng reads blocks until one is a packet with bytes.
func (r *Reader) nextPcapng() error {
	for {
		off := r.s.offset()
		h := r.s.peek(8)
		if len(h) < 8 {
			if len(h) == 0 {
				return r.atEnd()
			}
			return r.cut(off, "a block header")
		}
		kind := r.u32(h)
		if kind == blockSHB {
			if err := r.nextSection(off); err != nil {
				return err
			}
			continue
		}
		total := r.u32(h[4:])
		if total < 12 || total%4 != 0 {
			if r.looksLikePcap() {
				return r.damage(off, "a pcap file begins here, behind a pcapng file: split it, or join captures with mergecap", nil)
			}
			return r.damage(off, fmt.Sprintf("a block claims a length of %d bytes, which is impossible", total), nil)
		}
		switch kind {
		case blockEPB, blockSPB, blockPacket, blockIDB, blockISB:
		default:
			if err := r.skipBlock(off, kind, total); err != nil {
				return err
			}
			continue
		}
		body, err := r.block(off, total)
		if err != nil {
			return err
		}
		ok := false
		switch kind {
		case blockEPB:
			ok, err = r.enhancedPacket(off, body)
		case blockSPB:
			ok, err = r.simplePacket(off, body)
		case blockPacket:
			ok, err = r.oldPacket(off, body)
		case blockIDB:
			err = r.interfaceBlock(off, body)
		case blockISB:
			r.statistics(body)
		}
		if ok || err != nil {
			return err
		}
	}
}

// block consumes a block and returns its body. Both lengths must agree.
func (r *Reader) block(off int64, total uint32) ([]byte, error) {
	if total > maxRecord {
		return nil, r.damage(off, fmt.Sprintf("a block claims a length of %d bytes, more than is believed (%d)", total, maxRecord), nil)
	}
	b := r.s.peek(int(total))
	if len(b) < int(total) {
		return nil, r.cut(off, fmt.Sprintf("a block, %d of its %d bytes are there", len(b), total))
	}
	if trailer := r.u32(b[total-4:]); trailer != total {
		return nil, r.damage(off, fmt.Sprintf("a block's two lengths differ, %d and %d", total, trailer), nil)
	}
	r.s.skip(int(total))
	return b[8 : total-4], nil
}

// skipBlock passes over a block of another kind, of any length, without holding it. Custom blocks and journal entries
// have a frame number in Wireshark (though they are no packets), so that they must have one here.
func (r *Reader) skipBlock(off int64, kind, total uint32) error {
	if !r.s.discard(int64(total) - 4) {
		return r.cut(off, "a block")
	}
	b := r.s.peek(4)
	if len(b) < 4 {
		return r.cut(off, "a block")
	}
	if trailer := r.u32(b); trailer != total {
		return r.damage(off, fmt.Sprintf("a block's two lengths differ, %d and %d", total, trailer), nil)
	}
	r.s.skip(4)
	if kind == blockCustom || kind == blockCustom2 || kind == blockJournal {
		r.frames++
	}
	return nil
}

// looksLikePcap tells whether a pcap file header comes next.
func (r *Reader) looksLikePcap() bool {
	h := r.s.peek(8)
	return len(h) == 8 && isPcapHeader(h)
}

// nextSection reads a section header: it sets the byte order and empties the interface table.
func (r *Reader) nextSection(off int64) error {
	h := r.s.peek(16)
	if len(h) < 16 {
		return r.cut(off, "a section header")
	}
	switch {
	case binary.LittleEndian.Uint32(h[8:]) == byteOrderMagic:
		r.little = true
	case binary.BigEndian.Uint32(h[8:]) == byteOrderMagic:
		r.little = false
	default:
		return r.damage(off, "a section header has no byte-order magic", nil)
	}
	total := r.u32(h[4:])
	if total < 28 || total%4 != 0 {
		return r.damage(off, fmt.Sprintf("a section header claims a length of %d bytes, which is impossible", total), nil)
	}
	// 1.2 is what some writers called 1.0 (section 4.1 of the draft); Wireshark reads it, and both reject 1.1.
	if major, minor := r.u16(h[12:]), r.u16(h[14:]); major != 1 || minor != 0 && minor != 2 {
		return r.damage(off, fmt.Sprintf("section of pcapng version %d.%d: only 1.0 and 1.2 are known", major, minor), nil)
	}
	body, err := r.block(off, total)
	if err != nil {
		return err
	}
	r.section.ifaces = r.section.ifaces[:0]
	r.section.nth++
	if !r.options(body[16:], func(code uint16, v []byte) {
		switch code {
		case shbHardware:
			r.sum.Hardware = r.text(v)
		case shbOS:
			r.sum.OS = r.text(v)
		case shbApplication:
			r.sum.Application = r.text(v)
		}
	}) {
		return r.damage(off, "an option of a section header is longer than the block", nil)
	}
	return nil
}

func (r *Reader) u16(b []byte) uint16 {
	if r.little {
		return binary.LittleEndian.Uint16(b)
	}
	return binary.BigEndian.Uint16(b)
}

// options walks a block's options, and tells whether they fit. v must not be kept.
func (r *Reader) options(b []byte, each func(code uint16, v []byte)) bool {
	for len(b) >= 4 {
		code, n := r.u16(b), int(r.u16(b[2:]))
		if code == optEnd {
			return true
		}
		padded := (n + 3) &^ 3
		if n > len(b)-4 {
			return false
		}
		each(code, b[4:4+n])
		b = b[min(4+padded, len(b)):]
	}
	return len(b) == 0
}

// text keeps a text of the file, within a bound for all of them.
func (r *Reader) text(v []byte) string {
	v, _, _ = bytes.Cut(v, []byte{0}) // some writers count a terminating zero
	if r.section.text += len(v); r.section.text > maxText {
		r.note("names and comments beyond %d bytes were left out", maxText)
		return ""
	}
	return string(v)
}

// interfaceBlock adds an interface to the section.
func (r *Reader) interfaceBlock(off int64, b []byte) error {
	if len(b) < 8 {
		return r.damage(off, "an interface description is too short", nil)
	}
	if len(r.dec.Interfaces) >= maxInterfaces {
		return r.damage(off, fmt.Sprintf("more than %d interfaces", maxInterfaces), nil)
	}
	i := wire.Interface{LinkType: uint32(r.u16(b)), SnapLen: r.u32(b[4:])}
	resol, offset := byte(6), int64(0)
	if !r.options(b[8:], func(code uint16, v []byte) {
		switch {
		case code == ifName:
			i.Name = r.text(v)
		case code == ifDescription:
			i.Description = r.text(v)
		case code == ifFilter && len(v) > 0 && v[0] == 0: // 0: a pcap-filter string; 1: BPF code, which is not kept
			i.Filter, i.HasFilter = r.text(v[1:]), true
		case code == ifTsresol && len(v) >= 1:
			resol = v[0]
		case code == ifTsoffset && len(v) >= 8:
			offset = int64(r.u64(v))
		}
	}) {
		return r.damage(off, "an option of an interface description is longer than the block", nil)
	}
	n := ngInterface{linkType: i.LinkType, snapLen: i.SnapLen, clock: newClock(resol, offset)}
	if n.clock.useless() {
		r.note("interface %d has a time resolution that no clock has: its packets are taken as without time", len(r.section.ifaces))
	}
	n.index = r.dec.AddInterface(i)
	r.section.ifaces = append(r.section.ifaces, n)
	r.addLinkType(i.LinkType)
	return nil
}

func (r *Reader) u64(b []byte) uint64 {
	if r.little {
		return binary.LittleEndian.Uint64(b)
	}
	return binary.BigEndian.Uint64(b)
}

// iface finds a packet's interface. A packet before any interface ends the reading; one that names an interface that is
// not described is left out, and the file is reported as damaged.
func (r *Reader) iface(off int64, id uint32) (*ngInterface, error) {
	if len(r.section.ifaces) == 0 {
		return nil, r.damage(off, "a packet comes before any interface description", nil)
	}
	if uint64(id) >= uint64(len(r.section.ifaces)) {
		r.frames++
		r.sum.Frames++
		r.dec.Skipped[wire.SkipNoInterface]++
		r.softly(off, fmt.Sprintf("it names interface %d, which the file does not describe; it was left out", id))
		return nil, nil
	}
	return &r.section.ifaces[id], nil
}

// packet books a frame. It tells whether the frame has bytes.
func (r *Reader) packet(i *ngInterface, t int64, orig uint32, frame []byte) bool {
	r.frames++
	i.frames++
	r.frame = frame
	r.linkType = i.linkType
	r.meta = FrameMeta{Time: t, Frame: r.frames, WireLen: max(orig, uint32(len(frame))), Iface: i.index}
	r.count(true)
	if len(frame) == 0 {
		r.dec.Skipped[wire.SkipEmpty]++
		return false
	}
	return true
}

// enhancedPacket reads an EPB (section 4.3).
func (r *Reader) enhancedPacket(off int64, b []byte) (bool, error) {
	if len(b) < 20 {
		return false, r.damage(off, "a packet block is too short", nil)
	}
	length := r.u32(b[12:])
	if uint64(length) > uint64(len(b)-20) {
		return false, r.damage(off, fmt.Sprintf("it claims %d captured bytes, more than its block holds (%d)", length, len(b)-20), nil)
	}
	i, err := r.iface(off, r.u32(b))
	if i == nil {
		return false, err
	}
	t := i.clock.time(uint64(r.u32(b[4:]))<<32 | uint64(r.u32(b[8:])))
	frame := b[20 : 20+length]
	ok := r.packet(i, t, r.u32(b[16:]), frame)
	if opts := 20 + int(length+3)&^3; opts < len(b) {
		r.packetOptions(off, i, b[opts:])
	}
	return ok, nil
}

// packetOptions reads a packet's direction (epb_flags: bits 0 and 1 are 1 for inbound, 2 for outbound) and how many packets
// were lost before it. Options that do not fit are damage that the packet itself does not suffer from.
func (r *Reader) packetOptions(off int64, i *ngInterface, b []byte) {
	for len(b) >= 4 {
		code, n := r.u16(b), int(r.u16(b[2:]))
		if code == optEnd {
			return
		}
		if n > len(b)-4 {
			r.softly(off, "an option of it is longer than its block")
			return
		}
		switch {
		case code == epbFlags && n >= 4:
			switch r.u32(b[4:]) & 3 {
			case 1:
				r.meta.Dir = wire.DirIn
			case 2:
				r.meta.Dir = wire.DirOut
			}
		case code == epbDropcount && n >= 8:
			r.lost(i, r.u64(b[4:]))
		}
		b = b[min(4+(n+3)&^3, len(b)):]
	}
}

// lost books packets that the file says were dropped between two of an interface's packets. Statistics blocks, which
// count all drops, overrule them.
func (r *Reader) lost(i *ngInterface, n uint64) {
	f := &r.dec.Interfaces[i.index]
	if i.counted {
		return
	}
	f.HasDropped = true
	if f.Dropped += n; f.Dropped < n {
		f.Dropped = math.MaxUint64
	}
}

// simplePacket reads an SPB (section 4.4): interface 0, no time.
func (r *Reader) simplePacket(off int64, b []byte) (bool, error) {
	if len(b) < 4 {
		return false, r.damage(off, "a simple packet block is too short", nil)
	}
	i, err := r.iface(off, 0)
	if i == nil {
		return false, err
	}
	orig := r.u32(b)
	length := min(orig, uint32(len(b)-4))
	if i.snapLen != 0 {
		length = min(length, i.snapLen)
	} else if orig > length {
		return false, r.damage(off, fmt.Sprintf("it claims %d captured bytes, more than its block holds (%d)", orig, len(b)-4), nil)
	}
	return r.packet(i, noTime, orig, b[4:4+length]), nil
}

// oldPacket reads a packet block of the first drafts (appendix A).
func (r *Reader) oldPacket(off int64, b []byte) (bool, error) {
	if len(b) < 20 {
		return false, r.damage(off, "a packet block is too short", nil)
	}
	length := r.u32(b[12:])
	if uint64(length) > uint64(len(b)-20) {
		return false, r.damage(off, fmt.Sprintf("it claims %d captured bytes, more than its block holds (%d)", length, len(b)-20), nil)
	}
	i, err := r.iface(off, uint32(r.u16(b)))
	if i == nil {
		return false, err
	}
	// Packets dropped between this packet and the one before it; all ones is unknown.
	if drops := r.u16(b[2:]); drops != 0xffff {
		r.lost(i, uint64(drops))
	}
	t := i.clock.time(uint64(r.u32(b[4:]))<<32 | uint64(r.u32(b[8:])))
	ok := r.packet(i, t, r.u32(b[16:]), b[20:20+length])
	if opts := 20 + int(length+3)&^3; opts < len(b) {
		r.packetOptions(off, i, b[opts:])
	}
	return ok, nil
}

// statistics reads an ISB's times and drop counts (section 4.6). They count from the start of the capture, so that the last block
// of an interface holds.
func (r *Reader) statistics(b []byte) {
	if len(b) < 12 {
		return
	}
	id := r.u32(b)
	if uint64(id) >= uint64(len(r.section.ifaces)) {
		return
	}
	dropped, has := uint64(0), false
	i := &r.section.ifaces[id]
	i.ran = ranTime{}
	r.options(b[12:], func(code uint16, v []byte) {
		switch {
		case code == isbStart && len(v) >= 8:
			i.ran.from, i.ran.hasFrom = i.clock.time(uint64(r.u32(v))<<32|uint64(r.u32(v[4:]))), true
		case code == isbEnd && len(v) >= 8:
			i.ran.until, i.ran.hasUntil = i.clock.time(uint64(r.u32(v))<<32|uint64(r.u32(v[4:]))), true
		case code == isbIfrecv && len(v) >= 8:
			i.ran.received, i.ran.hasReceived = r.u64(v), true
		}
		if (code == isbIfdrop || code == isbOSdrop) && len(v) >= 8 {
			var carry uint64
			if dropped, carry = bits.Add64(dropped, r.u64(v), 0); carry != 0 {
				dropped = math.MaxUint64
			}
			has = true
		}
	})
	if has {
		i.counted = true
		f := &r.dec.Interfaces[i.index]
		f.Dropped, f.HasDropped = dropped, true
	}
}

// window is when the capture ran, by the statistics of all its interfaces. Programs that cut packets out of a file leave its
// statistics as they were (editcap, tshark -w): they hold only where they count as many packets as the file has.
func (r *Reader) window() (from, until int64, ok bool) {
	if !r.isNG || !r.complete || r.section.nth != 1 || len(r.section.ifaces) == 0 {
		return 0, 0, false
	}
	from, until = math.MinInt64, math.MaxInt64
	for n := range r.section.ifaces {
		i := &r.section.ifaces[n]
		ran := &i.ran
		if !ran.hasFrom || !ran.hasUntil || !ran.hasReceived || ran.received != i.frames || ran.from == noTime || ran.until == noTime {
			return 0, 0, false
		}
		from, until = max(from, ran.from), min(until, ran.until)
	}
	return from, until, from <= until
}

// summarizeInterfaces draws from the interfaces what they have in common: the smallest snap length, the sum of the
// drops, and the filter if it is one.
func (r *Reader) summarizeInterfaces(s *wire.Summary) {
	if !r.isNG {
		for n := range s.Interfaces {
			s.Interfaces[n].SnapLen = s.SnapLen // also of those that the packets name
		}
		return
	}
	s.SnapLen = 0
	for n, i := range s.Interfaces {
		if i.SnapLen != 0 && (s.SnapLen == 0 || i.SnapLen < s.SnapLen) {
			s.SnapLen = i.SnapLen
		}
		if i.HasDropped {
			s.HasDropped = true
			if s.Dropped += i.Dropped; s.Dropped < i.Dropped {
				s.Dropped = math.MaxUint64
			}
		}
		if n == 0 {
			s.Filter, s.HasFilter = i.Filter, i.HasFilter
		} else if !i.HasFilter || i.Filter != s.Filter {
			s.Filter, s.HasFilter = "", false
		}
	}
}

// clock turns an interface's ticks into nanoseconds since 1970.
type clock struct {
	mul    uint64 // ticks times this are nanoseconds, if not zero
	div    uint64 // ticks by this are nanoseconds, if not zero
	shift  uint8  // a tick is 2^-shift seconds, if mul and div are zero
	offset int64  // seconds
}

// newClock reads if_tsresol: the resolution is 10^-n seconds, or 2^-n if the top bit is set (section 4.2).
func newClock(resol byte, offset int64) clock {
	c := clock{offset: offset}
	n := resol & 0x7f
	switch {
	case resol&0x80 != 0:
		c.shift = n
	case n <= 9:
		c.mul = pow10(9 - n)
	case n <= 28:
		c.div = pow10(n - 9)
	default:
		c.shift = 0x7f
	}
	return c
}

func pow10(n uint8) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}

// useless tells whether no count of ticks reaches a nanosecond's neighbourhood of any date.
func (c clock) useless() bool { return c.mul == 0 && c.div == 0 && c.shift > 63 }

// time returns nanoseconds since 1970, or noTime where they do not fit in 63 bits.
func (c clock) time(ticks uint64) int64 {
	var hi, lo uint64
	switch {
	case c.mul != 0:
		hi, lo = bits.Mul64(ticks, c.mul)
	case c.div != 0:
		lo = ticks / c.div
	case c.shift > 63:
		return noTime
	default:
		hi, lo = bits.Mul64(ticks, 1e9)
		if c.shift > 0 {
			lo = lo>>c.shift | hi<<(64-c.shift)
			hi >>= c.shift
		}
	}
	if hi != 0 || lo > math.MaxInt64 {
		return noTime
	}
	ns := int64(lo)
	if c.offset != 0 {
		if c.offset > math.MaxInt64/int64(1e9) || c.offset < math.MinInt64/int64(1e9) {
			return noTime
		}
		sum := ns + c.offset*1e9
		if c.offset > 0 && sum < ns || sum == noTime {
			return noTime
		}
		ns = sum
	}
	return ns
}
