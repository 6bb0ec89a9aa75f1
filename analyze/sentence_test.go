package analyze

import (
	"errors"
	"fmt"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// A sentence is what fmt makes of it, whatever it is made of.
func TestSentence(t *testing.T) {
	named := wire.MustAddr("10.4.0.7")
	v6 := wire.MustAddr("fd00:4::7")
	tuple := wire.Tuple{Proto: wire.ProtoTCP, Src: named, Dst: wire.MustAddr("192.0.2.1"), SrcPortOrEchoID: 40000, DstPortOrEchoID: 80}
	for _, c := range []struct {
		format string
		args   []any
	}{
		{"nothing in it", nil},
		{"", nil},
		{"%s", []any{"a text with %s and %d and 100 %"}},
		{"source %s with ttl %d, on the node's link", []any{named, uint8(63)}},
		{"%s%s%s", []any{named, v6, "x"}},
		{"%s and %s", []any{&named, &v6}},
		{"%d", []any{uint8(0)}},
		{"%d and %d", []any{uint8(255), uint8(64)}},
		{"VLAN %d and %d", []any{uint32(17), uint32(4094)}},
		{"the table has %s as %s", []any{tuple, tuple}},
		{"from %s: %s", []any{named, tuple}},
		{"%s then %q", []any{"a", "b"}},
		{"%s of %v", []any{v6, errors.New("x")}},
		{"100 %% of %s", []any{"it"}},
		{"%s is 100 %%", []any{"it"}},
		{"a share of 5 %", nil},
		{"%s and a share of 5 %", []any{named}},
		{"too few %s %s", []any{"a"}},
		{"too many %s", []any{"a", "b"}},
		{"%5s|%-5s|", []any{"a", "b"}},
		{"%d", []any{"a"}},
		{"%s", []any{uint8(3)}},
		{"%d", []any{named}},
		{"%s", []any{nil}},
	} {
		want := "before " + fmt.Sprintf(c.format, c.args...)
		if got := string(sentence([]byte("before "), c.format, c.args...)); got != want {
			t.Errorf("%q %v: %q, want %q", c.format, c.args, got, want)
		}
	}
}
