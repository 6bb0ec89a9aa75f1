package live

import (
	"errors"

	"github.com/srcproof/srcproof/capture/wire"
)

// The link types of frames (pcap LINKTYPE_ values).
const (
	LinkEthernet = 1
	LinkRaw      = 101
	LinkSLL2     = 276
)

// Any is the pseudo-device of all interfaces.
const Any = "any"

// DefaultSnapLen is how many bytes of a frame are taken from the kernel where Trim is set: more than any headers have.
const DefaultSnapLen = 2048

// MaxSnapLen is the largest snap length, tcpdump's own.
const MaxSnapLen = 262144

// Options say what to capture.
type Options struct {
	Device  string // Any, or an interface's name
	Filter  string // pcap-filter expression; "" is everything
	SnapLen int    // bytes of a frame to keep, 1 to MaxSnapLen; 0 is MaxSnapLen
	Promisc bool   // put the device into promiscuous mode; not for Any
	Buffer  int    // bytes of the ring; 0 is DefaultBuffer
}

// DefaultBuffer is the ring's size in bytes: at 100,000 packets of 200 bytes a second it holds more than a second.
const DefaultBuffer = 32 << 20

// Interface is one interface that packets were captured on.
type Interface struct {
	Name  string // "if7" where it was gone before its name could be asked
	Index uint32 // the operating system's
}

// Frame is one captured frame.
type Frame struct {
	Time    int64  // nanoseconds since 1970-01-01 UTC, by the kernel
	Data    []byte // with its link header; valid until the next call of Next
	WireLen uint32 // bytes that the frame had, its link header included
	Iface   uint32 // index into Interfaces
	Dir     wire.Direction
}

// Stats are what the kernel counted since the capture began.
type Stats struct {
	Received uint64 // passed the filter
	Dropped  uint64 // of those: had no room in the ring
}

// ErrNotSupported is in the error of Open on systems other than Linux.
var ErrNotSupported = errors.New("live capture needs Linux; capture with tcpdump, and give srcproof the file")

// FilterError is an expression that libpcap does not take.
type FilterError struct {
	Expr string
	Err  error // which quotes it
}

func (e *FilterError) Error() string { return e.Err.Error() }

func (e *FilterError) Unwrap() error { return e.Err }

// PermissionError says which capability is missing.
type PermissionError struct {
	Err        error
	Capability string // "CAP_NET_RAW"
	What       string // that needs it: "a capture"
}

func (e *PermissionError) Error() string {
	return "permission denied: " + e.What + " needs root or the capability " + e.Capability
}

func (e *PermissionError) Unwrap() error { return e.Err }

// DeviceError says what is wrong with an interface.
type DeviceError struct {
	Device string
	What   string // "no such interface", "is down", "was removed"
}

func (e *DeviceError) Error() string { return "interface " + e.Device + ": " + e.What }
