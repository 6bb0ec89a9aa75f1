package capture

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/srcproof/srcproof/capture/tcpdump"
	"github.com/srcproof/srcproof/capture/wire"
)

const noTime = wire.NoTime

// Reader reads the packets of one capture. It is not safe for concurrent use.
type Reader struct {
	name        string
	compression string
	filter      FrameFilter
	textOptions tcpdump.Options
	checked     []uint32 // link types that the filter was asked about
	s           *stream
	closers     []func() error

	// What the file header said, pcap; what the section header said, pcapng.
	little  bool
	isNG    bool
	pcap    pcapState
	section sectionState

	// The record that next has read.
	meta     FrameMeta
	linkType uint32
	frame    []byte

	frames   uint64 // frame number of the last record; a pcapng's custom blocks have one too, see skipBlock
	dec      Decoder
	sum      wire.Summary
	soft     *DamageError // first damage that did not stop the reading: reported at the end
	printed  *textState   // of tcpdump's text; nil of a file
	pending  error        // to be returned once the packets before it are delivered
	complete bool         // the end was reached, and nothing was damaged
}

// Read fills dst with packets and returns how many. A frame may give several, a carrier before what it carries; Read
// stops where the next frame's might not fit, so dst should hold at least MaxPerFrame packets, and a few hundred for
// speed. It returns n > 0 and no error, or 0 and an error: io.EOF at a clean end; a *DamageError, once, where the
// capture is cut or corrupt, and io.EOF after it.
func (r *Reader) Read(dst []wire.Packet) (int, error) {
	if len(dst) < MaxPerFrame {
		return 0, fmt.Errorf("read %s: room for %d packets, need %d: %w", r.name, len(dst), MaxPerFrame, io.ErrShortBuffer)
	}
	if r.printed != nil {
		return r.printed.read(dst)
	}
	n := 0
	for r.pending == nil && n+MaxPerFrame <= len(dst) {
		if err := r.next(); err != nil {
			r.pending = r.ending(err)
			break
		}
		if r.filter != nil {
			if r.pending = r.checkFilter(); r.pending != nil {
				break
			}
			if !r.filter.Match(r.linkType, r.frame, int(r.meta.WireLen)) {
				continue
			}
		}
		n = len(r.dec.Decode(dst[:n], r.meta, r.linkType, r.frame))
	}
	if n > 0 {
		return n, nil
	}
	err := r.pending
	r.pending = io.EOF
	return 0, err
}

// checkFilter asks the filter whether it can be applied to the frame's link type.
func (r *Reader) checkFilter() error {
	if slices.Contains(r.checked, r.linkType) || !supportedLink(r.linkType) {
		return nil
	}
	r.checked = append(r.checked, r.linkType)
	if c, ok := r.filter.(interface{ Check(linkType uint32) error }); ok {
		if err := c.Check(r.linkType); err != nil {
			return fmt.Errorf("read %s: %w", r.name, err)
		}
	}
	return nil
}

// ending is the error that next's last error is delivered as.
func (r *Reader) ending(err error) error {
	switch {
	case r.soft == nil:
		r.complete = errors.Is(err, io.EOF)
		return err
	case errors.Is(err, io.EOF):
		return r.soft
	}
	r.note("packet %d at byte %d: %s", r.soft.Frame, r.soft.Offset, r.soft.Reason)
	return err
}

// Packets yields the packets in file order, and last, if the capture is damaged, the error with a zero Packet.
func (r *Reader) Packets() iter.Seq2[wire.Packet, error] {
	return func(yield func(wire.Packet, error) bool) {
		batch := make([]wire.Packet, 256)
		for {
			n, err := r.Read(batch)
			for i := range n {
				if !yield(batch[i], nil) {
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(wire.Packet{}, err)
				}
				return
			}
		}
	}
}

// next reads records until one is a packet.
func (r *Reader) next() error {
	if r.isNG {
		return r.nextPcapng()
	}
	return r.nextPcap()
}

// count books the record in r.meta and r.frame. stamped is false where its time says nothing.
func (r *Reader) count(stamped bool) {
	r.sum.Frames++
	r.sum.Bytes += uint64(len(r.frame))
	if t := r.meta.Time; stamped && t != noTime {
		if r.sum.First == noTime || t < r.sum.First {
			r.sum.First = t
		}
		if r.sum.Last == noTime || t > r.sum.Last {
			r.sum.Last = t
		}
	}
}

// damage is the hard end of the reading: the record at offset off is the first that cannot be read.
func (r *Reader) damage(off int64, reason string, err error) error {
	return &DamageError{Name: r.name, Frame: r.frames + 1, Offset: off, Reason: reason, Err: err}
}

// cut is the end of a stream inside the record at offset off.
func (r *Reader) cut(off int64, inside string) error {
	if errors.Is(r.s.err, io.EOF) || r.s.err == nil {
		return r.damage(off, "the file is cut inside "+inside, nil)
	}
	if r.compression != "" && errors.Is(r.s.err, io.ErrUnexpectedEOF) {
		return r.damage(off, "unexpected end of "+r.compression+" inside "+inside, r.s.err)
	}
	return r.damage(off, "reading failed inside "+inside, r.s.err)
}

// atEnd tells how a stream ended on a record boundary: io.EOF if cleanly. A compressed stream without its trailer is
// cut even where the bytes that it gave end on a boundary.
func (r *Reader) atEnd() error {
	if errors.Is(r.s.err, io.ErrUnexpectedEOF) && r.compression != "" {
		return r.damage(r.s.offset(), "unexpected end of "+r.compression, r.s.err)
	}
	if errors.Is(r.s.err, io.EOF) {
		return io.EOF
	}
	return r.damage(r.s.offset(), "reading failed", r.s.err)
}

// softly remembers the first damage that does not stop the reading. off is where the record begins; its frame has been
// counted.
func (r *Reader) softly(off int64, reason string) {
	if r.soft == nil {
		r.soft = &DamageError{Name: r.name, Frame: max(r.frames, 1), Offset: off, Reason: reason}
	}
}

// maxNotes and maxLinkTypes bound what a hostile file puts into the summary.
const (
	maxNotes     = 32
	maxLinkTypes = 64
)

func (r *Reader) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if len(r.sum.Notes) < maxNotes && !slices.Contains(r.sum.Notes, s) {
		r.sum.Notes = append(r.sum.Notes, s)
	}
}

// addLinkType books a link type of the capture.
func (r *Reader) addLinkType(t uint32) {
	if len(r.sum.LinkTypes) < maxLinkTypes && !slices.Contains(r.sum.LinkTypes, t) {
		r.sum.LinkTypes = append(r.sum.LinkTypes, t)
	}
	if t == linkSLL || t == linkSLL2 {
		r.sum.AllInterfaces = true
	}
}

// Summary is what is known of the capture so far; it is complete once Read has returned an error. Interface names and
// other texts are as the file gives them, not escaped.
func (r *Reader) Summary() wire.Summary {
	if r.printed != nil {
		return r.printed.run.Summary
	}
	s := r.sum
	s.Complete = r.complete
	s.Skipped = r.dec.Skipped
	s.CutFrames = r.dec.CutFrames
	s.LinkTypes = slices.Clone(s.LinkTypes)
	s.Notes = slices.Clone(s.Notes)
	s.Interfaces = slices.Clone(r.dec.Interfaces)
	r.summarizeInterfaces(&s)
	s.From, s.Until, s.HasWindow = r.window()
	return s
}

// Close releases the file and the decompressor.
func (r *Reader) Close() error {
	var errs []error
	for _, c := range slices.Backward(r.closers) {
		errs = append(errs, c())
	}
	r.closers = nil
	return errors.Join(errs...)
}
