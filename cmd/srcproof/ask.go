package main

import (
	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
)

// askFlags say which requests are meant and what is expected of them, as typed.
type askFlags struct {
	request, expect once
}

func (f *askFlags) add(cmd *cobra.Command) {
	fs := newFlags()
	fs.Var(&f.request, "request", "report only what matches `REQUEST`: 'tcp 172.16.0.13 > 10.20.0.10:80'")
	fs.Var(&f.expect, "expect", "exit with 1 unless these requests are as `EXPECTED`: KEY=VALUE[|VALUE],...;\nKEY is source, outcome, stopped_at or completed")
	addFlags(cmd, "What is asked", fs)
}

// A question is which requests are meant, and what is expected of them. The zero question means all and expects nothing.
type question struct {
	which  analyze.Selector
	expect analyze.Expect
}

func (f *askFlags) resolve() (q question, err error) {
	if f.request.given {
		if q.which, err = analyze.ParseSelector(f.request.value); err != nil {
			return q, &usageError{what: "--request: " + err.Error()}
		}
	}
	if f.expect.given {
		if q.expect, err = analyze.ParseExpect(f.expect.value); err != nil {
			return q, &usageError{what: "--expect: " + err.Error()}
		}
	}
	return q, nil
}

// ask returns the part of a result that is meant, and a *verdictError unless it is as expected.
func (q question) ask(res *analyze.Result) (*analyze.Result, error) {
	part := res.Select(q.which)
	if q.expect.IsZero() {
		return part, nil
	}
	if v := q.expect.Check(res, q.which); v.State != analyze.Met {
		return part, &verdictError{v}
	}
	return part, nil
}
