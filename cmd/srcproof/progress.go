package main

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// Progress appears after progressAfter and then changes every progressEvery: below that nobody wonders.
const (
	progressAfter = 2 * time.Second
	progressEvery = 250 * time.Millisecond
)

// progress counts what was read of all captures and shows it on a terminal: packets, the share of the files, and how long the rest may
// take. It may be used from several goroutines. A nil progress shows nothing.
type progress struct {
	w     io.Writer
	begun time.Time

	mu      sync.Mutex
	packets uint64
	read    int64     // bytes of the files, as stored
	size    int64     // of all files; 0 if one has no size that is known
	unknown bool      // one has none: standard input, a pipe
	next    time.Time // when the line is due
	shown   int       // width of the line; 0 is none
}

// newProgress returns nil where standard error is not a terminal.
func newProgress(std *stdio) *progress {
	if _, terminal := terminalWidth(std.err); !terminal || std.env("TERM") == "dumb" {
		return nil
	}
	now := time.Now()
	return &progress{w: std.err, begun: now, next: now.Add(progressAfter)}
}

// expect says that a file of so many bytes will be read; size is negative if that is not known.
func (p *progress) expect(size int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unknown = p.unknown || size < 0
	p.size += max(size, 0)
}

// counting returns r with what is read of it counted.
func (p *progress) counting(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return countedReader{r, p}
}

type countedReader struct {
	io.Reader
	p *progress
}

func (c countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.p.mu.Lock()
	c.p.read += int64(n)
	c.p.mu.Unlock()
	return n, err
}

// add counts packets, and shows the line where it is due.
func (p *progress) add(packets int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packets += uint64(packets)
	now := time.Now()
	if !now.After(p.next) {
		return
	}
	p.next = now.Add(progressEvery)
	line := p.line(now.Sub(p.begun))
	_, _ = fmt.Fprintf(p.w, "\r%-*s", p.shown, line) // what a longer line left is wiped out
	p.shown = max(p.shown, len(line))
}

// line is "12,345,678 packets read, 43 % of 525 MB, 3 s left".
func (p *progress) line(elapsed time.Duration) string {
	line := thousands(p.packets) + " packets read"
	if p.unknown || p.size <= 0 || p.read <= 0 || p.read > p.size {
		return line
	}
	share := float64(p.read) / float64(p.size)
	line += fmt.Sprintf(", %.0f %% of %s", 100*share, megabytes(p.size))
	if left := time.Duration(float64(elapsed) * (1 - share) / share).Round(time.Second); left > 0 {
		line += ", " + left.String() + " left"
	}
	return line
}

// clear takes the line away.
func (p *progress) clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown == 0 {
		return
	}
	p.shown = 0
	_, _ = io.WriteString(p.w, "\r\x1b[K")
}

// megabytes writes a size as people know it of file listings.
func megabytes(n int64) string {
	if n < 10_000_000_000 {
		return thousands(uint64(max(n/1_000_000, 1))) + " MB"
	}
	return thousands(uint64(n/1_000_000_000)) + " GB"
}

// thousands writes 1234567 as 1,234,567.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
