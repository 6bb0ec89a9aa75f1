package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture/wire"
)

func TestParseFarWindow(t *testing.T) {
	at := func(s string) int64 {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixNano()
	}
	tests := []struct{ name, text, from, to, wrong string }{
		{"two times", "2026-11-30T09:30:00Z/2026-11-30T09:35:00Z", "2026-11-30T09:30:00Z", "2026-11-30T09:35:00Z", ""},
		{"fractions of a second", "2026-11-30T09:30:00.000000001Z/2026-11-30T09:30:00.000000002Z", "2026-11-30T09:30:00.000000001Z", "2026-11-30T09:30:00.000000002Z", ""},
		{"zones, each its own", "2026-11-30T10:30:00+01:00/2026-11-30T09:35:00Z", "2026-11-30T09:30:00Z", "2026-11-30T09:35:00Z", ""},
		{"blanks around the slash", "2026-11-30T09:30:00Z / 2026-11-30T09:35:00Z", "2026-11-30T09:30:00Z", "2026-11-30T09:35:00Z", ""},
		{"one time", "2026-11-30T09:30:00Z", "", "", "no / between FROM and TO"},
		{"no beginning", "/2026-11-30T09:35:00Z", "", "", "FROM is missing"},
		{"no end", "2026-11-30T09:30:00Z/", "", "", "TO is missing"},
		{"a beginning without a zone", "2026-11-30T09:30:00/2026-11-30T09:35:00Z", "", "", "FROM is not a time with date and zone"},
		{"an end without a date", "2026-11-30T09:30:00Z/09:35:00Z", "", "", "TO is not a time with date and zone"},
		{"a duration as end", "2026-11-30T09:30:00Z/5m", "", "", "TO is not a time with date and zone"},
		{"three times", "2026-11-30T09:30:00Z/2026-11-30T09:31:00Z/2026-11-30T09:35:00Z", "", "", "TO is not"},
		{"a day that does not exist", "2026-11-31T09:30:00Z/2026-12-01T09:35:00Z", "", "", "FROM is not"},
		{"an end before the beginning", "2026-11-30T09:35:00Z/2026-11-30T09:30:00Z", "", "", "FROM must be before TO"},
		{"an end before the beginning, by the zone alone", "2026-11-30T09:30:00Z/2026-11-30T09:35:00+01:00", "", "", "FROM must be before TO"},
		{"a moment", "2026-11-30T09:30:00Z/2026-11-30T09:30:00Z", "", "", "FROM must be before TO"},
		{"a time before any that nanoseconds count", "0001-01-01T00:00:00Z/2026-11-30T09:30:00Z", "", "", "FROM lies beyond"},
		{"a time behind any that nanoseconds count", "2026-11-30T09:30:00Z/9999-12-31T23:59:59Z", "", "", "TO lies beyond"},
		{"nothing", "", "", "", "no / between FROM and TO"},
	}
	for _, tt := range tests {
		from, to, err := parseFarWindow(tt.text)
		if tt.wrong == "" {
			if err != nil || from != at(tt.from) || to != at(tt.to) {
				t.Errorf("%s: %q gives %d, %d, %v, want %s to %s", tt.name, tt.text, from, to, err, tt.from, tt.to)
			}
			continue
		}
		wantUsageError(t, tt.name, err, "--far-window "+tt.text+": "+tt.wrong, "2026-11-30T09:30:00Z/2026-11-30T09:35:00Z")
	}
}

func TestParseClockOffset(t *testing.T) {
	const wide = 876_000 * time.Hour // 100 years of 365 days
	tests := []struct {
		name, text     string
		offset, margin time.Duration
		wrong          string
	}{
		{"ahead", "37s±5ms", 37 * time.Second, 5 * time.Millisecond, ""},
		{"behind", "-1.5s±100ms", -1500 * time.Millisecond, 100 * time.Millisecond, ""},
		{"without ± on the keyboard", "37s+-5ms", 37 * time.Second, 5 * time.Millisecond, ""},
		{"behind, without ± on the keyboard", "-1.5s+-100ms", -1500 * time.Millisecond, 100 * time.Millisecond, ""},
		{"as the report writes it", "37.0021s ± 0.4ms", 37*time.Second + 2100*time.Microsecond, 400 * time.Microsecond, ""},
		{"a plus that says ahead", "+2h±1s", 2 * time.Hour, time.Second, ""},
		{"several units", "1h2m3s±1µs", time.Hour + 2*time.Minute + 3*time.Second, time.Microsecond, ""},
		{"no offset, but an error", "0s±50ms", 0, 50 * time.Millisecond, ""},
		{"an error of zero, said in so many words", "37s±0s", 37 * time.Second, 0, ""},
		{"a clock that began in 1970", "-490560h±1h", -490_560 * time.Hour, time.Hour, ""},
		{"the most", "-876000h±876000h", -wide, wide, ""},
		{"no error", "37s", 0, 0, "no ± and behind it by how much"},
		{"an error without a value", "37s±", 0, 0, `the error "" is not a duration`},
		{"an error alone", "±5ms", 0, 0, `the offset "" is not a duration`},
		{"an offset without its unit", "37±5ms", 0, 0, `the offset "37" is not a duration with its unit`},
		{"an error without its unit", "37s±5", 0, 0, `the error "5" is not a duration with its unit`},
		{"a negative error", "37s±-5ms", 0, 0, "the error is negative"},
		{"two errors", "37s±5ms±1ms", 0, 0, "the error"},
		{"a negative error, without ± on the keyboard", "37s+--5ms", 0, 0, "the error is negative"},
		{"a minus for ±", "37s-5ms", 0, 0, "no ±"},
		{"more than any clock is wrong", "876000h1ns±1s", 0, 0, "the offset is more than 100 years"},
		{"more than any clock is wrong, behind", "-876000h1ns±1s", 0, 0, "the offset is more than 100 years"},
		{"an error that says nothing", "0s±876000h1ns", 0, 0, "the error is more than 100 years"},
		{"more than a duration holds", "99999999999h±1s", 0, 0, "the offset"},
		{"a ± of another encoding", "37s\xb15ms", 0, 0, "no ±"},
		{"nothing", "", 0, 0, "no ±"},
	}
	for _, tt := range tests {
		offset, margin, err := parseClockOffset(tt.text)
		if tt.wrong == "" {
			if err != nil || offset != int64(tt.offset) || margin != int64(tt.margin) {
				t.Errorf("%s: %q gives %d, %d, %v, want %v, %v", tt.name, tt.text, offset, margin, err, tt.offset, tt.margin)
			}
			continue
		}
		wantUsageError(t, tt.name, err, "--far-clock-offset "+tt.text+": "+tt.wrong, "37s±5ms or 37s+-5ms")
	}
}

// wantUsageError checks how a complaint begins, and that its hint shows the form.
func wantUsageError(t *testing.T, name string, err error, what, hint string) {
	t.Helper()
	usage, ok := errors.AsType[*usageError](err)
	if !ok || !strings.HasPrefix(usage.what, what) || !strings.Contains(usage.hint, hint) {
		t.Errorf("%s: %#v, want %q and a hint with %q", name, err, what, hint)
	}
}

// What is typed arrives at the analysis, each at its place, and what is not typed states nothing.
func TestCompareFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	const window = "2026-11-30T09:30:00Z/2026-11-30T09:35:00Z"
	from := time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC).UnixNano()
	sides := []string{"--near", "n.pcap", "--far", "f.pcap"}
	tests := []struct {
		name  string
		flags []string
		want  analyze.PairOptions
	}{
		{"nothing is stated", nil, analyze.PairOptions{}},
		{"a window", []string{"--far-window", window}, analyze.PairOptions{FarFrom: from, FarTo: from + 300e9, HasFarWindow: true}},
		{"an offset", []string{"--far-clock-offset", "-1.5s±100ms"}, analyze.PairOptions{FarOffset: -1500e6, FarOffsetError: 100e6, HasFarOffset: true}},
		{"an offset of zero is stated, too", []string{"--far-clock-offset", "0s±0s"}, analyze.PairOptions{HasFarOffset: true}},
		{"hosts of both families", []string{"--far-host", "10.20.0.10", "--far-host=fd00:20::10"}, analyze.PairOptions{FarHosts: []wire.Addr{wire.MustAddr("10.20.0.10"), wire.MustAddr("fd00:20::10")}}},
		{"the host itself", []string{"--far-is", "host"}, analyze.PairOptions{FarIsHost: true}},
		{"on the way", []string{"--far-is", "path"}, analyze.PairOptions{FarIsPath: true}},
	}
	for _, tt := range tests {
		opt, err := resolveCompare(t, append(tt.flags, sides...))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, opt.pair); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}

	opt, err := resolveCompare(t, []string{"--far", "x=f1.pcap", "--near", "a=n1.pcap", "--far", "f2.pcap", "--near", "n2.pcap", "--near-filter", "", "--far-filter", "tcp"})
	if err != nil {
		t.Fatal(err)
	}
	want := [2][]captureArg{
		wire.SideNear: {{"a", "n1.pcap"}, {file: "n2.pcap"}},
		wire.SideFar:  {{"x", "f1.pcap"}, {file: "f2.pcap"}},
	}
	if diff := cmp.Diff(want, opt.args, cmp.AllowUnexported(captureArg{})); diff != "" {
		t.Errorf("captures (-want +got):\n%s", diff)
	}
	if got := opt.common.captures.stated; got[wire.SideNear] != (statedFilter{"", true}) || got[wire.SideFar] != (statedFilter{"tcp", true}) {
		t.Errorf("stated filters %v", got)
	}
}

// resolveCompare parses flags as the command does.
func resolveCompare(t *testing.T, args []string) (compareOptions, error) {
	t.Helper()
	var flags compareFlags
	cmd := &cobra.Command{}
	flags.add(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return flags.resolve()
}
