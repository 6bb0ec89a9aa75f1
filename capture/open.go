package capture

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/srcproof/srcproof/capture/tcpdump"
)

// maxZstdWindow bounds the memory that a zstd stream may demand; it is the limit of the zstd command too (--long=27).
const maxZstdWindow = 128 << 20

// FrameFilter decides which frames are decoded. linkType is the pcap LINKTYPE_ value of the frame, wireLen its length
// in bytes before the snap length cut it. frame must not be kept.
//
// A filter that also has a method Check(linkType uint32) error is asked before the first frame of a link type; its
// error ends the reading, for a filter that cannot be applied would make packets look absent.
type FrameFilter interface {
	Match(linkType uint32, frame []byte, wireLen int) bool
}

// Options change how a capture is read. The zero value reads everything.
type Options struct {
	// Filter, if not nil, is applied to each frame before decoding. A frame that it drops keeps its number and is counted
	// in Summary.Frames, but gives no packets.
	Filter FrameFilter
	// Text says of tcpdump's text what it does not say itself.
	Text tcpdump.Options
}

// Open opens a capture file; "-" is standard input. It returns a *FormatError (wrapping ErrNotCapture) if the content is
// no capture, and the operating system's error if the file cannot be read.
func Open(path string, opt Options) (*Reader, error) {
	if path == "-" {
		return NewReader(os.Stdin, "standard input", opt)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open capture: %w", err)
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		_ = f.Close()
		return nil, &FormatError{path, "is a directory", "give a capture file in it"}
	}
	r, err := NewReader(f, path, opt)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	r.closers = append(r.closers, f.Close)
	return r, nil
}

// NewReader reads a capture from a stream. The format is told by content: pcap, pcapng or what tcpdump printed, and gzip or zstd of
// either.
// name is used in messages only. Close releases what the reader holds, and leaves src open.
func NewReader(src io.Reader, name string, opt Options) (*Reader, error) {
	r := &Reader{name: name, filter: opt.Filter, textOptions: opt.Text, s: newStream(src)}
	r.sum.First, r.sum.Last = noTime, noTime
	suffix, err := r.uncompress()
	if err == nil {
		err = r.sniff()
	}
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	r.sum.Format += suffix
	return r, nil
}

// Magic numbers of compressed streams: RFC 1952 section 2.3.1 (with CM = deflate), RFC 8878 sections 3.1.1 and 3.1.2
// (a skippable frame may come first), bzip2, and xz.
const (
	magicGzip  = "\x1f\x8b\x08"
	magicZstd  = "\x28\xb5\x2f\xfd"
	magicSkip  = "\x2a\x4d\x18" // behind a first byte of 0x50 to 0x5f
	magicBzip2 = "BZh"
	magicXZ    = "\xfd7zXZ\x00"
)

// uncompress puts a decompressor under the stream where the content asks for one, and returns what the format is called
// then: " (gzip)".
func (r *Reader) uncompress() (string, error) {
	head := string(r.s.peek(6))
	switch {
	case strings.HasPrefix(head, magicGzip):
		z, err := gzip.NewReader(r.rest())
		if err != nil {
			return "", &FormatError{r.name, "is a gzip file whose header is damaged (" + err.Error() + ")", "copy it again, in binary mode"}
		}
		r.closers = append(r.closers, z.Close)
		r.compression = "gzip"
		r.s = newStream(z)
	case strings.HasPrefix(head, magicZstd), len(head) >= 4 && head[0]&0xf0 == 0x50 && head[1:4] == magicSkip:
		z, err := zstd.NewReader(r.rest(), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return "", &FormatError{r.name, "is a zstd file whose header is damaged (" + err.Error() + ")", "copy it again, in binary mode"}
		}
		r.closers = append(r.closers, func() error { z.Close(); return nil })
		r.compression = "zstd"
		r.s = newStream(z)
	case strings.HasPrefix(head, magicBzip2):
		// Only gzip and zstd are promised; bzip2 comes with the standard library and costs one line.
		r.compression = "bzip2"
		r.s = newStream(bzip2.NewReader(r.rest()))
	case strings.HasPrefix(head, magicXZ):
		return "", &FormatError{r.name, "is an xz file", "decompress it first: xz -d"}
	default:
		return "", nil
	}
	return " (" + r.compression + ")", nil
}

// rest is the stream from the beginning, what was peeked included.
func (r *Reader) rest() io.Reader {
	return io.MultiReader(bytes.NewReader(r.s.buf[r.s.pos:r.s.end]), r.s.r)
}

const (
	convertHint = "convert it with: editcap -F pcapng IN OUT (Wireshark)"
	captureHint = "give a capture: tcpdump -w FILE writes one"
)

// sniff tells the format by content and reads the file header.
func (r *Reader) sniff() error {
	head := r.s.peek(24)
	if len(head) < 4 {
		switch {
		case r.s.err != nil && !errors.Is(r.s.err, io.EOF):
			return r.headError(r.s.err)
		case len(head) == 0:
			return &FormatError{r.name, "is empty", "there is no capture in it; was tcpdump stopped before it wrote its header?"}
		}
		return &FormatError{r.name, fmt.Sprintf("is cut in its file header, after %d bytes", len(head)), "copy it again"}
	}
	le, be := binary.LittleEndian.Uint32(head), binary.BigEndian.Uint32(head)
	if le == blockSHB { // a palindrome: the byte order follows in the body
		return r.openPcapng()
	}
	if m, ok := pcapMagic(le); ok {
		return r.openPcap(binary.LittleEndian, m)
	}
	if m, ok := pcapMagic(be); ok {
		return r.openPcap(binary.BigEndian, m)
	}
	return r.notCapture()
}

// headError reports a stream that failed before a file header was read.
func (r *Reader) headError(err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return &FormatError{r.name, fmt.Sprintf("is a zstd file with a window of more than %d MiB", maxZstdWindow>>20), "decompress it first: zstd -d --long=31"}
	}
	if r.compression != "" {
		return &FormatError{r.name, fmt.Sprintf("is a %s file that cannot be decompressed (%v)", r.compression, err), "copy it again, in binary mode"}
	}
	return fmt.Errorf("read capture %s: %w", r.name, err)
}

// foreignFormat tells formats that people hand in for a capture by their first bytes, and returns what they are and what
// to do.
func foreignFormat(head string) (what, hint string) {
	for _, f := range [...]struct{ magic, what, hint string }{
		{"snoop\x00\x00\x00", "is a snoop capture (Solaris)", convertHint},
		{"iptrace 1.0", "is an AIX iptrace capture (iptrace 1.0), which is not supported", convertHint},
		{"iptrace 2.0", "is an AIX iptrace capture (iptrace 2.0), which is not supported", convertHint},
		{"GMBU", "is a Microsoft Network Monitor 2 capture", convertHint},
		{"RTSS", "is a Microsoft Network Monitor 1 capture", convertHint},
		{"XCP\x00", "is a NetXray or Sniffer capture", convertHint},
		{"TRSNIFF data", "is a Sniffer capture (DOS)", convertHint},
		{"ObserverPktBuffe", "is a Network Instruments Observer capture", convertHint},
		{"\x05VNF", "is a Visual Networks capture", convertHint},
		{"\x01\x10\x4c\x00", "is a Novell LANalyzer capture", convertHint},
		{"\x01\x10\x30\x00", "is a Novell LANalyzer capture", convertHint},
		// pcapng's first bytes are what they are so that this shows (draft-ietf-opsawg-pcapng section 4.1).
		{"\r\n\r\r\r\n", "is a pcapng file that passed a transfer in text mode (CR LF)", "copy it again, in binary mode"},
		{"\n\r\n", "is a pcapng file that passed a transfer in text mode (CR LF)", "copy it again, in binary mode"},
		{"MDMP", "is a Windows memory dump", captureHint},
		{"\x02\x00MicrosoftETL", "is a Windows event trace", "convert it with: etl2pcapng in.etl out.pcapng"},
		{"PK\x03\x04", "is a zip archive", "unpack it and give the capture in it"},
		{"\x7fELF", "is a program", captureHint},
		{"\xff\xd8\xff", "is a picture", captureHint},
		{"\x89PNG", "is a picture", captureHint},
		{"%PDF", "is a PDF document", captureHint},
	} {
		if strings.HasPrefix(head, f.magic) {
			return f.what, f.hint
		}
	}
	return "", ""
}

// notCapture says what the input looks like.
func (r *Reader) notCapture() error {
	head := string(r.s.peek(512))
	if what, hint := foreignFormat(head); what != "" {
		return &FormatError{r.name, what, hint}
	}
	if strings.HasPrefix(head, magicGzip) || strings.HasPrefix(head, magicZstd) {
		return &FormatError{r.name, "is compressed twice", "decompress it once"}
	}
	text := strings.ToLower(strings.TrimLeft(head, " \t\r\n\ufeff"))
	switch {
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"):
		return &FormatError{r.name, "is an HTML page, not a capture", "the download gave an error page; download it again"}
	case jsonBegins.MatchString(text), strings.HasPrefix(text, "[{"), strings.HasPrefix(text, "[\n"), text == "[":
		return &FormatError{r.name, "looks like JSON, not a capture", "give a pcap or pcapng file"}
	case isText(head):
		return r.openText()
	}
	return &FormatError{r.name, "is neither pcap nor pcapng", convertHint}
}

// jsonBegins is an object's beginning (RFC 8259 section 4); {code} is Jira's.
var jsonBegins = regexp.MustCompile(`^\{\s*(?:["}]|$)`)

// isText tells whether the bytes are plain text, with what terminals obey in it: a bell, backspaces, escape sequences.
func isText(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' && !strings.ContainsRune("\n\r\t\a\b\f\x1b", rune(c)) || c == 0x7f {
			return false
		}
	}
	return len(s) > 0
}
