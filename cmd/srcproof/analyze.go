package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture/wire"
)

// analyzeFlags are the flags of srcproof analyze as they were typed.
type analyzeFlags struct {
	side   once
	common commonFlags
}

// analyzeOptions are what srcproof analyze works with: everything that was typed, checked.
type analyzeOptions struct {
	args   [2][]captureArg // by wire.Side
	common commonOptions
}

func newAnalyzeCommand(std *stdio) *cobra.Command {
	var flags analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze FILE...",
		Short: "Say of each request in a capture which source left the node, and how far it got",
		Long: `Reads what was captured on a node and says, per request, which source address left the node, how
far the request got, what carries that conclusion, and what these packets cannot tell.

FILE is pcap or pcapng, plain or compressed with gzip or zstd, or the text that tcpdump printed, as
it stands in a ticket; - is standard input. LABEL=FILE gives a capture a name. Files of one LABEL
are one capture, and so are the files of a rotation; others are judged each by itself. To hold a
node's capture against the far side's: srcproof compare.

Text has no payloads and often no date: give --date and --tz. What it lacks is unknown. Without any
capture, --conntrack FILE alone lists the connections of the node's table as requests.

Capture on all interfaces (tcpdump -ni any -w FILE): only then can both sides of a translation be
seen.

Exit codes:
  0  done, and as expected if --expect was given
  1  not as expected
  2  bad usage, or input that could not be read or is damaged
  3  these captures cannot tell whether it is as expected`,
		Example: `  srcproof analyze node.pcap --pod-cidr 172.16.0.0/16 --node-ip 10.10.0.3
  srcproof analyze node.pcap --cluster cluster.json --links links.txt -o json
  srcproof analyze node.pcap --request 'tcp 172.16.0.13 > 10.20.0.10:80' --expect source=node-snated
  tcpdump -ni any -w - 'host 10.20.0.10 or icmp' | srcproof analyze -
  srcproof analyze ticket.txt --date 2026-11-30 --tz Europe/Berlin --pod-cidr 172.16.0.0/16
  srcproof analyze --conntrack conntrack.txt --pod-cidr 172.16.0.0/16 --node-ip 10.10.0.3`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && !flags.common.facts.conntrack.given {
				return &usageError{what: "no capture named", hint: "srcproof analyze FILE, or - for standard input"}
			}
			return nil
		},
		ValidArgsFunction: completeCaptures,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, err := flags.resolve(args)
			if err != nil {
				return err
			}
			return runAnalyze(cmd.Context(), std, opt)
		},
	}
	flags.side = oneOf("near", "far")
	fs := newFlags()
	fs.Var(&flags.side, "side", "`SIDE` of the captures: near (the node) or far")
	addFlags(cmd, capturesHeading, fs)
	registerCompletion(cmd, "side", flags.side.complete)
	flags.common.add(cmd)
	return cmd
}

// resolve checks everything that was typed before the first capture is read, and reports all that is wrong.
func (f *analyzeFlags) resolve(args []string) (opt analyzeOptions, err error) {
	var side wire.Side
	var errs [3]error
	side, errs[1] = f.sideOf()
	opt.args[side], errs[0] = parseCaptureArgs(args)
	opt.common, errs[2] = f.common.resolve()
	return opt, errors.Join(errs[:]...)
}

// sideOf returns the side that --side names, and refuses a filter that is stated for the other one: it would be ignored.
func (f *analyzeFlags) sideOf() (wire.Side, error) {
	switch {
	case f.side.value == "far" && f.common.captures.nearFilter.given:
		return wire.SideFar, &usageError{what: "--near-filter with --side far: there is no near capture", hint: "--far-filter states the filter of a far capture"}
	case f.side.value == "far":
		return wire.SideFar, nil
	case f.common.captures.farFilter.given:
		return wire.SideNear, &usageError{what: "--far-filter without a far capture", hint: "--side far says that the capture was taken at the far side"}
	}
	return wire.SideNear, nil
}

// runAnalyze reports what it can: a capture that cannot be opened is no reason to keep silent about the others.
func runAnalyze(ctx context.Context, std *stdio, opt analyzeOptions) error {
	if len(opt.args[wire.SideNear])+len(opt.args[wire.SideFar]) == 0 {
		shown, verdict := opt.common.question.ask(analyze.FromTable(opt.common.facts))
		return errors.Join(opt.common.output.write(std, shown), verdict)
	}
	set := openCaptures(ctx, std, opt.args, opt.common.captures)
	defer set.Close()
	if len(set.sources) == 0 {
		return set.err()
	}
	return opt.common.judge(ctx, std, set, analyze.Options{OnDemand: true})
}
