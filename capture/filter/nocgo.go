//go:build !cgo

package filter

import "errors"

// Filter is a compiled expression; in this build there is none.
type Filter struct{}

// Compile returns an error: the expressions' only compiler is libpcap.
func Compile(expr string) (*Filter, error) {
	return nil, errors.New("this build has no cgo: pcap-filter expressions need libpcap; build with CGO_ENABLED=1 and libpcap's headers")
}

// String returns the expression.
func (*Filter) String() string { return "" }

// Check returns nil.
func (*Filter) Check(uint32) error { return nil }

// Err returns nil.
func (*Filter) Err() error { return nil }

// Match matches nothing.
func (*Filter) Match(uint32, []byte, int) bool { return false }
