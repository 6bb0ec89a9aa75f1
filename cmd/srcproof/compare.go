package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture/wire"
)

// compareFlags are the flags of srcproof compare as they were typed.
type compareFlags struct {
	near, far      []string
	window, offset once
	hosts          []string
	is             once
	common         commonFlags
}

// compareOptions are what srcproof compare works with: everything that was typed, checked.
type compareOptions struct {
	args   [2][]captureArg // by wire.Side
	pair   analyze.PairOptions
	common commonOptions
}

func newCompareCommand(std *stdio) *cobra.Command {
	var flags compareFlags
	cmd := &cobra.Command{
		Use:   "compare --near FILE --far FILE",
		Short: "Hold the node's capture against the far side's, and say where packets stop",
		Long: `Joins each request in the node's capture with what the far side captured of it, across translation,
rewritten ports and clocks that differ, and says where its packets stop: before they leave the node,
between the two captures, at the far side, or on the way back.

FILE is what srcproof analyze takes, and a flag names one: --near a.pcap --near b.pcap. Files of one
LABEL (LABEL=FILE) are one capture, and so are the files of a rotation.

That a packet is missing is concluded only where the capture would hold it: it ran at that time, its
filter keeps such packets, and they pass where it was taken. What the captures do not show of that
can be stated: --near-filter, --far-filter, --far-window, --far-clock-offset, --far-host, --far-is.
What is stated of the far capture holds for every --far. The report says what would settle what is
not known.

Exit codes:
  0  done, and as expected if --expect was given
  1  not as expected
  2  bad usage, or input that could not be read or is damaged
  3  these captures cannot tell whether it is as expected`,
		Example: `  tcpdump -ni any -w node.pcap 'host 10.20.0.10 or icmp'   on the node
  tcpdump -ni any -w far.pcap 'host 10.20.0.10 or icmp'    at the far side, at the same time
  srcproof compare --near node.pcap --far far.pcap --pod-cidr 172.16.0.0/16 --node-ip 10.10.0.3
  srcproof compare --near a=a.pcap --near b=b.pcap --far far.pcap --cluster cluster.json
  srcproof compare --near node.pcap --far pasted.txt --date 2026-11-30 --tz UTC
  srcproof compare --near node.pcap --far far.pcap --far-filter '' --far-clock-offset 37s±5ms \
      --request 'tcp 172.16.0.13 > 10.20.0.10:80' --expect stopped_at=none`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := noArguments(cmd, args); err != nil {
				return &usageError{what: err.Error(), hint: "each file has a flag of its own: --near FILE --near FILE --far FILE"}
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt, err := flags.resolve()
			if err != nil {
				return err
			}
			return runCompare(cmd.Context(), std, opt)
		},
	}
	flags.add(cmd)
	return cmd
}

func (f *compareFlags) add(cmd *cobra.Command) {
	f.is.words = []string{"host", "path"} // neither is the default: where it was taken is not known
	fs := newFlags()
	fs.StringArrayVar(&f.near, "near", nil, "`FILE` captured on the node; give the flag once for each file")
	fs.StringArrayVar(&f.far, "far", nil, "`FILE` captured at the far side; give the flag once for each file")
	addFlags(cmd, capturesHeading, fs)
	f.common.captures.add(cmd)

	fs = newFlags()
	fs.Var(&f.window, "far-window", "when it ran, `FROM/TO` by the near clock, like\n2026-11-30T09:30:00Z/2026-11-30T09:35:00Z")
	fs.Var(&f.offset, "far-clock-offset", "`OFFSET` of its clock, how far it is ahead of the near one:\nDUR±ERR like 37s±5ms, or -1.5s±100ms where it is behind;\nused where no packet that both captures hold shows it")
	fs.StringArrayVar(&f.hosts, "far-host", nil, "`IP` whose packets pass where it was taken, although it\nholds none; give the flag once for each")
	fs.Var(&f.is, "far-is", "`WHERE` it was taken: host (on the destination itself) or\npath (on the way to it)")
	addFlags(cmd, "What is known of the far capture", fs)
	for _, name := range []string{"far-window", "far-clock-offset", "far-host"} {
		registerCompletion(cmd, name, cobra.NoFileCompletions)
	}
	registerCompletion(cmd, "far-is", f.is.complete)

	f.common.facts.add(cmd)
	f.common.ask.add(cmd)
	f.common.output.add(cmd)
}

// resolve checks everything that was typed before the first capture is read, and reports all that is wrong.
func (f *compareFlags) resolve() (opt compareOptions, err error) {
	var errs [3]error
	opt.args, errs[0] = f.captures()
	opt.pair, errs[1] = f.stated()
	opt.common, errs[2] = f.common.resolve()
	return opt, errors.Join(errs[:]...)
}

// captures reads the FILE of both sides. One side alone has nothing to be held against.
func (f *compareFlags) captures() (args [2][]captureArg, err error) {
	switch {
	case len(f.near)+len(f.far) == 0:
		return args, &usageError{what: "no captures named", hint: "srcproof compare --near FILE --far FILE"}
	case len(f.far) == 0:
		return args, &usageError{what: "no far capture named", hint: "--far FILE names it; for one side alone: srcproof analyze FILE"}
	case len(f.near) == 0:
		return args, &usageError{what: "no near capture named", hint: "--near FILE names it; for one side alone: srcproof analyze --side far FILE"}
	}
	var errs [2]error
	seen := captureNames{}
	args[wire.SideNear], errs[0] = seen.parse("--near", f.near)
	args[wire.SideFar], errs[1] = seen.parse("--far", f.far)
	return args, errors.Join(errs[:]...)
}

// stated is what the person says of the far capture.
func (f *compareFlags) stated() (opt analyze.PairOptions, err error) {
	var errs []error
	if f.window.given {
		opt.FarFrom, opt.FarTo, err = parseFarWindow(f.window.value)
		opt.HasFarWindow = err == nil
		errs = append(errs, err)
	}
	if f.offset.given {
		opt.FarOffset, opt.FarOffsetError, err = parseClockOffset(f.offset.value)
		opt.HasFarOffset = err == nil
		errs = append(errs, err)
	}
	for _, text := range f.hosts {
		a, err := parseAddress("--far-host", text)
		errs = append(errs, err)
		opt.FarHosts = append(opt.FarHosts, wire.AddrFrom(a))
	}
	opt.FarIsHost = f.is.value == "host"
	opt.FarIsPath = f.is.value == "path"
	return opt, errors.Join(errs...)
}

// parseFarWindow reads FROM/TO, two RFC 3339 times, in nanoseconds since 1970. Both ends are needed: a capture without an
// end would cover every request that is still to come.
func parseFarWindow(text string) (from, to int64, err error) {
	wrong := func(what string) (int64, int64, error) {
		return 0, 0, &usageError{
			what: "--far-window " + text + ": " + what,
			hint: "write it like 2026-11-30T09:30:00Z/2026-11-30T09:35:00Z, or with +01:00 in place of Z",
		}
	}
	before, after, ok := strings.Cut(text, "/")
	if !ok {
		return wrong("no / between FROM and TO")
	}
	var at [2]int64
	for i, s := range []string{before, after} {
		name := []string{"FROM", "TO"}[i]
		if strings.TrimSpace(s) == "" {
			return wrong(name + " is missing: when the capture began and when it ended are both needed")
		}
		t, err := time.Parse(time.RFC3339, strings.TrimSpace(s))
		if err != nil {
			return wrong(fmt.Sprintf("%s is not a time with date and zone", name))
		}
		at[i] = t.UnixNano()
		if !time.Unix(0, at[i]).Equal(t) { // nanoseconds since 1970 reach from 1677 to 2262
			return wrong(name + " lies beyond what a capture can hold")
		}
	}
	if at[0] >= at[1] {
		return wrong("FROM must be before TO")
	}
	return at[0], at[1], nil
}

// maxClockOffset is more than any clock is wrong that was ever set: one that starts in 1970 is behind by half of it. Sums
// of it and of a capture's times stay far inside of int64.
const maxClockOffset = 100 * 365 * 24 * time.Hour

// parseClockOffset reads DUR±ERR, in nanoseconds. +- stands for ± where a keyboard has none. The error is needed: an
// offset without one would claim to be exact to the nanosecond.
func parseClockOffset(text string) (offset, margin int64, err error) {
	wrong := func(what string) (int64, int64, error) {
		return 0, 0, &usageError{what: "--far-clock-offset " + text + ": " + what, hint: "write it like 37s±5ms or 37s+-5ms, and -1.5s±100ms if the far clock is behind"}
	}
	before, after, ok := strings.Cut(text, "±")
	if !ok {
		before, after, ok = strings.Cut(text, "+-")
	}
	if !ok {
		return wrong("no ± and behind it by how much that may be wrong")
	}
	var d [2]time.Duration
	for i, s := range []string{before, after} {
		name := []string{"the offset", "the error"}[i]
		if d[i], err = time.ParseDuration(strings.TrimSpace(s)); err != nil {
			return wrong(fmt.Sprintf("%s %q is not a duration with its unit", name, s))
		}
		if d[i].Abs() > maxClockOffset {
			return wrong(name + " is more than 100 years")
		}
	}
	if d[1] < 0 {
		return wrong("the error is negative")
	}
	return int64(d[0]), int64(d[1]), nil
}

// runCompare needs every file. What one capture does not hold may be in the one that could not be opened: a report without
// it would call absent what was only not looked at.
func runCompare(ctx context.Context, std *stdio, opt compareOptions) error {
	set := openCaptures(ctx, std, opt.args, opt.common.captures)
	defer set.Close()
	if err := errors.Join(ctx.Err(), set.err()); err != nil {
		return err
	}
	return opt.common.judge(ctx, std, set, analyze.Options{Pair: opt.pair, OnDemand: true})
}
