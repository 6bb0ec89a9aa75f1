package capture

import "io"

const (
	// maxRecord bounds one frame or block in bytes. Nothing a network carries comes near: BIG TCP's largest is 512 KiB.
	maxRecord = 16 << 20
	// readSize is the size of the read buffer. Large reads keep the cost of system calls out of the packet loop.
	readSize = 256 << 10
)

// stream hands out consecutive bytes of a reader from one buffer that is reused, and knows their offset.
type stream struct {
	r    io.Reader
	buf  []byte
	pos  int   // first byte not consumed
	end  int   // first byte not filled
	base int64 // offset of buf[0] in the stream
	err  error // why no more bytes will come; io.EOF at the end
}

func newStream(r io.Reader) *stream { return &stream{r: r, buf: make([]byte, readSize)} }

// offset is the position in the stream of the next byte not consumed.
func (s *stream) offset() int64 { return s.base + int64(s.pos) }

// peek returns the next n bytes without consuming them, fewer only where the stream ends. They are valid until the next
// peek or discard.
func (s *stream) peek(n int) []byte {
	if s.end-s.pos < n {
		s.fill(n)
	}
	return s.buf[s.pos:min(s.pos+n, s.end)]
}

// skip consumes n bytes that peek has returned.
func (s *stream) skip(n int) { s.pos += n }

// discard consumes n bytes without holding them, and tells whether there were that many.
func (s *stream) discard(n int64) bool {
	for n > 0 {
		b := s.peek(int(min(n, int64(len(s.buf)))))
		if len(b) == 0 {
			return false
		}
		s.skip(len(b))
		n -= int64(len(b))
	}
	return true
}

// fill reads until n bytes are there or the stream ends. The buffer doubles as bytes arrive, so that a length field
// alone allocates nothing.
func (s *stream) fill(n int) {
	if s.pos > 0 {
		s.base += int64(s.pos)
		s.end = copy(s.buf, s.buf[s.pos:s.end])
		s.pos = 0
	}
	empty := 0
	for s.end < n && s.err == nil {
		if s.end == len(s.buf) {
			grown := make([]byte, min(2*len(s.buf), max(n, readSize)))
			copy(grown, s.buf)
			s.buf = grown
		}
		m, err := s.r.Read(s.buf[s.end:])
		s.end += m
		if empty++; m > 0 {
			empty = 0
		} else if err == nil && empty > 100 {
			err = io.ErrNoProgress
		}
		s.err = err
	}
}
