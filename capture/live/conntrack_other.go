//go:build !linux

package live

import "github.com/srcproof/srcproof/capture/wire"

// ConnTrack asks a kernel's connection table; on this system there is none.
type ConnTrack struct{}

// OpenConnTrack errs with ErrNotSupported.
func OpenConnTrack() (*ConnTrack, error) { return nil, ErrNotSupported }

// Find is never called: there is no ConnTrack.
func (t *ConnTrack) Find(wire.Tuple) (wire.Connection, bool, error) {
	return wire.Connection{}, false, ErrNotSupported
}

// Close is never called: there is no ConnTrack.
func (t *ConnTrack) Close() {}
