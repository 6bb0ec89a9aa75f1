package capture

import (
	"errors"
	"strconv"
)

// ErrNotCapture is what every [FormatError] wraps.
var ErrNotCapture = errors.New("not a capture")

// FormatError reports an input that is no capture that this package reads, before any packet was read. Its text is one
// line: what the input is, and what to give instead.
type FormatError struct {
	Name string // input, as given
	What string // what it is: "an empty file"
	Hint string // what to do; may be empty
}

// Error returns "NAME: WHAT: HINT".
func (e *FormatError) Error() string {
	s := e.Name + ": " + e.What
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Unwrap returns ErrNotCapture.
func (e *FormatError) Unwrap() error { return ErrNotCapture }

// DamageError reports a capture that is cut or corrupt. The packets before the damage were delivered.
type DamageError struct {
	Name   string
	Frame  uint64 // number of the frame that could not be read, from 1
	Offset int64  // where the damaged record begins, in bytes of the decompressed stream
	Reason string // what is wrong, and what to do where that is known
	Err    error  // underlying error, may be nil
}

// Error returns "NAME: packet N at byte OFFSET: REASON".
func (e *DamageError) Error() string {
	s := e.Name + ": packet " + strconv.FormatUint(e.Frame, 10) + " at byte " + strconv.FormatInt(e.Offset, 10) + ": " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the underlying error.
func (e *DamageError) Unwrap() error { return e.Err }
