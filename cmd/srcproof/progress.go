package main

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// Progress appears after progressAfter and then changes every progressEvery: below that nobody wonders.
const (
	progressAfter = 2 * time.Second
	progressEvery = 250 * time.Millisecond
)

// progress counts packets and shows the count on a terminal. A nil progress shows nothing.
type progress struct {
	w       io.Writer
	packets uint64
	next    time.Time // when the line is due
	shown   bool
}

// newProgress returns nil where standard error is not a terminal.
func newProgress(std *stdio) *progress {
	if _, terminal := terminalWidth(std.err); !terminal || std.env("TERM") == "dumb" {
		return nil
	}
	return &progress{w: std.err, next: time.Now().Add(progressAfter)}
}

// add counts packets, and shows the line where it is due.
func (p *progress) add(packets int) {
	if p == nil {
		return
	}
	p.packets += uint64(packets)
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(progressEvery)
		p.shown = true
		_, _ = fmt.Fprintf(p.w, "\r%s packets read", thousands(p.packets))
	}
}

// clear takes the line away.
func (p *progress) clear() {
	if p == nil || !p.shown {
		return
	}
	p.shown = false
	_, _ = io.WriteString(p.w, "\r\x1b[K")
}

// thousands writes 1234567 as 1,234,567.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
