package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// analyzeFlags are the flags of srcproof analyze as they were typed.
type analyzeFlags struct {
	captures captureFlags
	facts    factFlags
	ask      askFlags
	output   outputFlags
}

// analyzeOptions are what srcproof analyze works with: everything that was typed, checked.
type analyzeOptions struct {
	args     []captureArg
	side     wire.Side
	captures captureOptions
	facts    *cluster.Facts
	question question
	output   outputOptions
}

func newAnalyzeCommand(std *stdio) *cobra.Command {
	var flags analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze FILE...",
		Short: "Say of each request in a capture which source left the node, and how far it got",
		Long: `Reads what was captured on a node and says, per request, which source address left the node, how
far the request got, what carries that conclusion, and what these packets cannot tell.

FILE is pcap or pcapng, plain or compressed with gzip or zstd; - is standard input. LABEL=FILE gives
a capture a name. Several files are judged each by itself. Capture on all interfaces
(tcpdump -ni any -w FILE): only then can both sides of a translation be seen.

Exit codes:
  0  done, and as expected if --expect was given
  1  not as expected
  2  bad usage, or input that could not be read or is damaged
  3  these captures cannot tell whether it is as expected`,
		Example: `  srcproof analyze node.pcap --pod-cidr 172.16.0.0/16 --node-ip 10.10.0.3
  srcproof analyze node.pcap --cluster cluster.json --links links.txt -o json
  srcproof analyze node.pcap --request 'tcp 172.16.0.13 > 10.20.0.10:80' --expect source=node-snated
  tcpdump -ni any -w - 'host 10.20.0.10 or icmp' | srcproof analyze -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
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
	flags.captures.add(cmd)
	flags.facts.add(cmd)
	flags.ask.add(cmd)
	flags.output.add(cmd)
	return cmd
}

// resolve checks everything that was typed before the first capture is read, and reports all that is wrong.
func (f *analyzeFlags) resolve(args []string) (opt analyzeOptions, err error) {
	var errs [6]error
	opt.args, errs[0] = parseCaptureArgs(args)
	opt.side, errs[1] = f.captures.sideOf()
	opt.captures, errs[2] = f.captures.resolve()
	opt.facts, errs[3] = f.facts.resolve()
	opt.question, errs[4] = f.ask.resolve()
	opt.output, errs[5] = f.output.resolve()
	return opt, errors.Join(errs[:]...)
}

func runAnalyze(ctx context.Context, std *stdio, opt analyzeOptions) error {
	set := openCaptures(ctx, std, opt.args, opt.side, opt.captures)
	defer set.Close()
	if len(set.sources) == 0 {
		return set.err()
	}
	res, err := analyze.Run(set.inputs(), opt.facts, analyze.Options{})
	if err := errors.Join(ctx.Err(), set.refused(), err); err != nil {
		return err
	}
	set.finish(res.Captures)
	shown, verdict := opt.question.ask(res)
	return errors.Join(set.err(), opt.output.write(std, shown), verdict)
}
