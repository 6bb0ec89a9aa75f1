//go:build !linux

package live

import "time"

// Capture is a running capture; on this system there is none.
type Capture struct{}

// Open errs with ErrNotSupported.
func Open(Options) (*Capture, error) { return nil, ErrNotSupported }

// LinkType is never asked: there is no Capture.
func (c *Capture) LinkType() uint32 { return 0 }

// Interfaces is never asked: there is no Capture.
func (c *Capture) Interfaces() []Interface { return nil }

// Next is never called: there is no Capture.
func (c *Capture) Next([]Frame, time.Duration) (int, error) { return 0, ErrNotSupported }

// Ran is never asked: there is no Capture.
func (c *Capture) Ran() (from, until int64) { return 0, 0 }

// Stop is never called: there is no Capture.
func (c *Capture) Stop() {}

// Stopped is never asked: there is no Capture.
func (c *Capture) Stopped() bool { return true }

// Stats is never asked: there is no Capture.
func (c *Capture) Stats() (Stats, error) { return Stats{}, ErrNotSupported }

// Close is never called: there is no Capture.
func (c *Capture) Close() {}
