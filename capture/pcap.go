package capture

import (
	"encoding/binary"
	"fmt"

	"github.com/srcproof/srcproof/capture/wire"
)

// The pcap file format: draft-ietf-opsawg-pcap, and libpcap's sf-pcap.c for what is in the wild beside it.
const (
	pcapHeaderLen = 24
	pcapRecordLen = 16
	// maxSnapLen is libpcap's MAXIMUM_SNAPLEN. A record longer than this and than the file's own snap length is taken for
	// damage: nothing writes it, and a corrupt length would swallow the packets behind it.
	maxSnapLen = 262144
)

// pcapMagic tells a pcap magic number, read in the file's byte order.
type pcapFlavour struct {
	nano      bool // fractions of a second are nanoseconds
	recordLen int  // length of a record's header
}

func pcapMagic(m uint32) (pcapFlavour, bool) {
	switch m {
	case 0xa1b2c3d4:
		return pcapFlavour{recordLen: pcapRecordLen}, true
	case 0xa1b23c4d:
		return pcapFlavour{nano: true, recordLen: pcapRecordLen}, true
	case 0xa1b2cd34: // Alexey Kuznetzov's modified libpcap: interface, protocol, packet type behind the usual header
		return pcapFlavour{recordLen: pcapRecordLen + 8}, true
	}
	return pcapFlavour{}, false
}

// pcapState is what the file header said.
type pcapState struct {
	pcapFlavour
	linkType uint32
	maxLen   uint32 // longest captured length that is believed
	iface    uint32
	swap     byte // whether captured and original length are swapped: 'n'o, 'y'es, 'm'aybe
	zeros    bool // the note about empty records was made
}

// openPcap reads the file header.
func (r *Reader) openPcap(order binary.ByteOrder, f pcapFlavour) error {
	h := r.s.peek(pcapHeaderLen)
	if len(h) < pcapHeaderLen {
		return &FormatError{r.name, fmt.Sprintf("is a pcap file cut in its file header, after %d of %d bytes", len(h), pcapHeaderLen), "there is no packet in it; copy it again"}
	}
	major, minor := order.Uint16(h[4:]), order.Uint16(h[6:])
	snap, link := order.Uint32(h[16:]), order.Uint32(h[20:])
	p := &r.pcap
	*p = pcapState{pcapFlavour: f, linkType: link & 0x03ffffff, swap: 'n'} // above: FCS length and presence
	// The versions that libpcap reads. Before 2.3 the lengths are the other way round, in 2.3 and in the version of
	// 3.0 BSD's "543.0" writers sometimes (sf-pcap.c, pcap_check_header).
	switch {
	case major == 543 && minor == 0, major == 2 && minor == 3:
		p.swap = 'm'
	case major == 2 && minor < 3:
		p.swap = 'y'
	case major == 2 && minor == 4:
	default:
		return &FormatError{r.name, fmt.Sprintf("is a pcap file of version %d.%d, which libpcap does not read either", major, minor), convertHint}
	}
	if !supportedLink(p.linkType) {
		return &FormatError{r.name, fmt.Sprintf("has link type %d, which is not decoded", p.linkType), "capture on an Ethernet, tun or \"any\" device: tcpdump -i any"}
	}
	r.little = order == binary.ByteOrder(binary.LittleEndian)
	r.sum.Format = "pcap"
	r.sum.SnapLen = snap
	p.maxLen = min(max(snap, maxSnapLen), maxRecord)
	r.addLinkType(p.linkType)
	if p.linkType != linkSLL2 { // SLL2's interfaces come with the packets
		p.iface = r.dec.AddInterface(wire.Interface{LinkType: p.linkType, SnapLen: snap})
	}
	r.s.skip(pcapHeaderLen)
	if what := r.oddRecords(); what != "" {
		r.pending = r.damage(r.s.offset(), "its record headers are "+what+" under the usual magic number, so that packets would be read wrongly; "+convertHint, nil)
	}
	return nil
}

// oddRecords recognises two kinds of pcap file that carry the plain magic number, but longer record headers: those of
// Red Hat Linux 6.1 (24 bytes) and of Nokia firewalls (20). Read plainly, the first packet is garbage, and the second
// record's header is absurd. It returns "" if the file is plain.
func (r *Reader) oddRecords() string {
	if r.pcap.recordLen != pcapRecordLen || r.sane(pcapRecordLen) {
		return ""
	}
	if r.sane(24) {
		return "24 bytes long (Red Hat Linux 6.1)"
	}
	if r.sane(20) {
		return "20 bytes long (Nokia)"
	}
	return ""
}

// sane tells whether the first two records look right if their headers are n bytes long.
func (r *Reader) sane(n int) bool {
	at := 0
	var before uint32
	for i := range 2 {
		b := r.s.peek(at + n)
		if len(b) < at+n {
			return n == pcapRecordLen // cut, or one record long: plain; a guess needs both records
		}
		b = b[at:]
		sec, frac, length, orig := r.u32(b), r.u32(b[4:]), r.u32(b[8:]), r.u32(b[12:])
		if length > r.pcap.maxLen || orig > maxRecord || frac >= 1e9 {
			return false
		}
		if i > 0 && n != pcapRecordLen && max(sec, before)-min(sec, before) > 365*24*3600 {
			return false // a guess needs more than a length that fits
		}
		before = sec
		at += n + int(length)
	}
	return true
}

// u32 reads a 32-bit number in the file's byte order. A branch, not a method of the order: it is called per packet.
func (r *Reader) u32(b []byte) uint32 {
	if r.little {
		return binary.LittleEndian.Uint32(b)
	}
	return binary.BigEndian.Uint32(b)
}

// nextPcap reads records until one has bytes.
func (r *Reader) nextPcap() error {
	p := &r.pcap
	for {
		off := r.s.offset()
		h := r.s.peek(p.recordLen)
		if len(h) < p.recordLen {
			if len(h) == 0 {
				return r.atEnd()
			}
			return r.cut(off, "a record header")
		}
		sec, frac, length, orig := r.u32(h), r.u32(h[4:]), r.u32(h[8:]), r.u32(h[12:])
		if p.swap != 'n' && (p.swap == 'y' || length > orig) {
			length, orig = orig, length
		}
		if length > p.maxLen {
			return r.absurd(off, length)
		}
		if length == 0 && orig == 0 && isPcapHeader(h) {
			return r.damage(off, "a second pcap file begins here: the file is two captures one after the other; split it, or join captures with mergecap", nil)
		}
		b := r.s.peek(p.recordLen + int(length))
		if len(b) < p.recordLen+int(length) {
			inside := fmt.Sprintf("a packet, %d of its %d bytes are there", len(b)-p.recordLen, length)
			if frac >= 1e9 || !p.nano && frac >= 1e6 {
				inside += "; its header makes no sense either: " + textModeHint
			}
			return r.cut(off, inside)
		}
		r.s.skip(len(b))
		r.frames++
		r.frame = b[p.recordLen:]
		r.linkType = p.linkType
		r.meta = FrameMeta{Time: int64(sec) * 1e9, Frame: r.frames, WireLen: max(orig, length), Iface: p.iface}
		// A fraction of a second or more is a broken writer's; adding it is what it must have meant.
		if p.nano {
			r.meta.Time += int64(frac)
		} else {
			r.meta.Time += int64(frac) * 1000
		}
		if length != 0 {
			r.count(true)
			return nil
		}
		// A record of zeros is the tail of a file that was preallocated, not a packet of 1970.
		zero := sec|frac|orig == 0
		if zero && !p.zeros {
			p.zeros = true
			r.note("from byte %d on there are records of nothing but zeros: the file was preallocated, or its writer crashed", off)
		}
		r.count(!zero)
		r.dec.Skipped[wire.SkipEmpty]++
	}
}

const textModeHint = "the file is corrupt; if it passed a transfer in text mode (CR LF), copy it again in binary mode"

// isPcapHeader tells whether a record header is really a file header: a magic number and version 2.4.
func isPcapHeader(h []byte) bool {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if _, ok := pcapMagic(order.Uint32(h)); ok && order.Uint16(h[4:]) == 2 && order.Uint16(h[6:]) == 4 {
			return true
		}
	}
	return false
}

// absurd reports a record whose length cannot be.
func (r *Reader) absurd(off int64, length uint32) error {
	return r.damage(off, fmt.Sprintf("it claims %d captured bytes, more than any capture holds (%d): %s", length, r.pcap.maxLen, textModeHint), nil)
}
