package live

import (
	"encoding/binary"
	"io"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// Section says what a file was captured with.
type Section struct {
	Device   string // Any, or an interface's name
	LinkType uint32
	SnapLen  int    // bytes of a frame, the link header included
	Filter   string // "" is none
	Command  string // the command line
	Hardware string // of the host
	OS       string
	App      string // program and version
	Comment  string // what a reader should know
}

// Writer writes one pcapng file (draft-ietf-opsawg-pcapng): a section header, an interface block before the first packet of
// each interface, enhanced packet blocks with direction and nanoseconds, interface statistics at the end. It gives w whole
// blocks only: a file whose writer was killed ends where a block does, or within the last one.
type Writer struct {
	w       io.Writer
	section Section
	b       []byte
	count   []uint64 // frames written, of each interface that has its block
	size    int64
	err     error // w's first error: nothing is written after it
}

// flushAt is how many bytes are gathered before they are written.
const flushAt = 256 << 10

// NewWriter begins a file.
func NewWriter(w io.Writer, s Section) *Writer {
	out := &Writer{w: w, section: s}
	out.block(blockSection, func() {
		out.u32(0x1a2b3c4d) // byte order
		out.u16(1)          // version 1.0
		out.u16(0)
		out.u64(^uint64(0)) // the section's length is not known
		for _, o := range []struct {
			code uint16
			text string
		}{{optComment, s.Comment}, {optHardware, s.Hardware}, {optOS, s.OS}, {optApp, s.App}, {optComment, commandText(s.Command)}} {
			out.text(o.code, o.text)
		}
		out.end()
	})
	return out
}

func commandText(s string) string {
	if s == "" {
		return ""
	}
	return "command: " + s
}

// Block types and option codes.
const (
	blockSection, blockInterface, blockStatistics, blockPacket = 0x0a0d0d0a, 1, 5, 6

	optEnd, optComment, optHardware, optOS, optApp      = 0, 1, 2, 3, 4
	optName, optTimeResolution, optFilter, optIfaceOS   = 2, 9, 11, 12
	optFlags                                            = 2
	optStartTime, optEndTime, optReceived, optOSDropped = 2, 3, 4, 7
	flagInbound, flagOutbound                           = 1, 2
	maxText                                             = 0xfff0
)

func (w *Writer) u16(v uint16) { w.b = binary.LittleEndian.AppendUint16(w.b, v) }
func (w *Writer) u32(v uint32) { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *Writer) u64(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }

// block writes a block around its body.
func (w *Writer) block(kind uint32, body func()) {
	at := len(w.b)
	w.u32(kind)
	w.u32(0)
	body()
	w.close(at)
}

// close writes a block's length in front and behind.
func (w *Writer) close(at int) {
	n := uint32(len(w.b) - at + 4)
	w.u32(n)
	binary.LittleEndian.PutUint32(w.b[at+4:], n)
}

func (w *Writer) pad() {
	for len(w.b)%4 != 0 { // blocks begin at multiples of four
		w.b = append(w.b, 0)
	}
}

// text writes an option of text, none if it is empty.
func (w *Writer) text(code uint16, s string) {
	if s == "" {
		return
	}
	s = strings.ToValidUTF8(s[:min(len(s), maxText)], "\ufffd")
	w.u16(code)
	w.u16(uint16(len(s)))
	w.b = append(w.b, s...)
	w.pad()
}

func (w *Writer) number(code uint16, v uint64) {
	w.u16(code)
	w.u16(8)
	w.u64(v)
}

func (w *Writer) stampOf(t int64) {
	w.u32(uint32(uint64(t) >> 32))
	w.u32(uint32(uint64(t)))
}

func (w *Writer) end() {
	w.u16(optEnd)
	w.u16(0)
}

// Write writes a frame, and before it the block of its interface if it is the first of it.
func (w *Writer) Write(f *Frame, ifaces []Interface) error {
	for len(w.count) < len(ifaces) {
		w.iface(&ifaces[len(w.count)])
	}
	w.count[f.Iface]++
	at := len(w.b)
	w.u32(blockPacket)
	w.u32(0)
	w.u32(f.Iface)
	w.stampOf(f.Time)
	w.u32(uint32(len(f.Data)))
	w.u32(max(f.WireLen, uint32(len(f.Data))))
	w.b = append(w.b, f.Data...)
	w.pad()
	if f.Dir != wire.DirUnknown {
		w.u16(optFlags)
		w.u16(4)
		flag := uint32(flagInbound)
		if f.Dir == wire.DirOut {
			flag = flagOutbound
		}
		w.u32(flag)
		w.end()
	}
	w.close(at)
	if len(w.b) >= flushAt {
		return w.Flush()
	}
	return w.err
}

func (w *Writer) iface(i *Interface) {
	w.block(blockInterface, func() {
		w.u16(uint16(w.section.LinkType))
		w.u16(0)
		w.u32(uint32(w.section.SnapLen))
		w.text(optName, i.Name)
		w.u16(optTimeResolution)
		w.u16(1)
		w.b = append(w.b, 9, 0, 0, 0) // nanoseconds
		if f := w.section.Filter; f != "" {
			f = f[:min(len(f), maxText-1)]
			w.u16(optFilter)
			w.u16(uint16(len(f) + 1))
			w.b = append(append(w.b, 0), f...) // 0: the text is libpcap's
			w.pad()
		}
		w.text(optIfaceOS, w.section.OS)
		w.end()
	})
	w.count = append(w.count, 0)
}

// Size is how many bytes the file has, those that are still to be flushed included.
func (w *Writer) Size() int64 { return w.size + int64(len(w.b)) }

// Flush writes what was gathered.
func (w *Writer) Flush() error {
	if w.err == nil && len(w.b) > 0 {
		n, err := w.w.Write(w.b)
		w.size += int64(n)
		w.err = err
	}
	w.b = w.b[:0]
	return w.err
}

// Ending is what a file says of its capture once that has ended.
type Ending struct {
	From, Until int64  // when it ran, in nanoseconds since 1970-01-01 UTC
	Dropped     uint64 // by the kernel, between From and Until
}

// Close ends the file with the statistics of its interfaces. The kernel counts what it dropped for the capture as a whole: that
// stands with the first interface. A file without packets gets the block of its device, for tcpdump reads none without one.
func (w *Writer) Close(ifaces []Interface, e Ending) error {
	for len(w.count) < len(ifaces) {
		w.iface(&ifaces[len(w.count)])
	}
	if len(w.count) == 0 {
		w.iface(&Interface{Name: w.section.Device})
	}
	for i := range w.count {
		w.block(blockStatistics, func() {
			w.u32(uint32(i))
			w.stampOf(e.Until)
			for _, t := range []struct {
				code uint16
				at   int64
			}{{optStartTime, e.From}, {optEndTime, e.Until}} {
				w.u16(t.code)
				w.u16(8)
				w.stampOf(t.at)
			}
			w.number(optReceived, w.count[i])
			drops := uint64(0)
			if i == 0 {
				drops = e.Dropped
			}
			w.number(optOSDropped, drops)
			w.end()
		})
	}
	return w.Flush()
}
