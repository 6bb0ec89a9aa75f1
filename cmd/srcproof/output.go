package main

import (
	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/report"
)

// outputFlags say how a record is written, as typed.
type outputFlags struct {
	format once
	all    bool
}

func (f *outputFlags) add(cmd *cobra.Command) {
	fs := newFlags()
	f.format = oneOf("text", "json", "jsonl")
	fs.VarP(&f.format, "output", "o", "`FORMAT` of the report: text, json, or jsonl (one JSON object per line: captures, requests, findings, a summary)")
	fs.BoolVar(&f.all, "all", false, "in text, give every request a row of its own")
	addFlags(cmd, "Output", fs)
	registerCompletion(cmd, "output", f.format.complete)
}

type outputOptions struct {
	format string
	all    bool
}

func (f *outputFlags) resolve() (outputOptions, error) {
	if f.all && f.format.value != "text" {
		return outputOptions{}, &usageError{what: "--all is for text: -o " + f.format.value + " always holds every request"}
	}
	return outputOptions{f.format.value, f.all}, nil
}

// write writes the record of a result to standard output.
func (o outputOptions) write(std *stdio, res *analyze.Result) error {
	tool := report.Tool{Version: versionText(), Args: std.args}
	if o.format == "text" {
		opt := std.textOptions()
		opt.ShowAll = o.all
		return report.WriteText(std.out, report.NewText(res, tool, opt), opt)
	}
	rec := report.NewStream(res, tool)
	if res.Len() == 0 && res.LeftOut > 0 { // the text says it itself
		std.say("no request matches %s; without --request there are %d", res.Asked, res.LeftOut)
	}
	if o.format == "json" {
		return report.WriteJSON(std.out, rec)
	}
	return report.WriteJSONL(std.out, rec)
}
