package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
)

// commonFlags are the flags of every command that judges captures, as they were typed.
type commonFlags struct {
	captures captureFlags
	facts    factFlags
	ask      askFlags
	output   outputFlags
}

func (f *commonFlags) add(cmd *cobra.Command) {
	f.captures.add(cmd)
	f.facts.add(cmd)
	f.ask.add(cmd)
	f.output.add(cmd)
}

// commonOptions are what every command that judges captures works with: everything that was typed, checked.
type commonOptions struct {
	captures captureOptions
	facts    *cluster.Facts
	question question
	output   outputOptions
}

// resolve checks everything that was typed, and reports all that is wrong.
func (f *commonFlags) resolve() (opt commonOptions, err error) {
	var errs [4]error
	opt.captures, errs[0] = f.captures.resolve()
	opt.facts, errs[1] = f.facts.resolve()
	opt.question, errs[2] = f.ask.resolve()
	opt.output, errs[3] = f.output.resolve()
	return opt, errors.Join(errs[:]...)
}

// judge analyses opened captures, writes the report, and returns what was wrong with them and what is not as expected.
func (o *commonOptions) judge(ctx context.Context, std *stdio, set *captureSet, opt analyze.Options) error {
	opt.IDs = o.output.format != "text"
	res, err := analyze.Run(set.inputs(), o.facts, opt)
	if err := errors.Join(ctx.Err(), set.refused(), err); err != nil {
		return err
	}
	set.finish(res.Captures)
	shown, verdict := o.question.ask(res)
	return errors.Join(set.err(), o.output.write(std, shown), verdict)
}
