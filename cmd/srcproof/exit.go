package main

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"github.com/srcproof/srcproof/analyze"
)

// The exit codes. They are an interface: scripts and pipelines branch on them.
const (
	exitDone         = 0   // done, and as expected if an expectation was given
	exitNotMet       = 1   // an expectation is not met
	exitFailed       = 2   // bad usage, or unreadable or damaged input, or output that could not be written
	exitInconclusive = 3   // the captures do not carry the expectation, nor its opposite
	exitInterrupted  = 130 // as a shell reports a program that Ctrl-C ended
)

// exitCode is the one place where an exit code is decided. A failure outweighs every verdict: what was concluded from
// half of the input, or was not written down, is no proof. A violation outweighs a doubt.
func exitCode(err error) int {
	var failed, notMet, inconclusive bool
	for _, e := range flatten(err) {
		verdict, isVerdict := stateOf(e)
		switch {
		case isVerdict:
			notMet = notMet || verdict == analyze.NotMet
			inconclusive = inconclusive || verdict != analyze.NotMet
		case isBrokenPipe(e): // whoever reads has read enough; what was concluded stands
		default:
			failed = true
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case failed:
		return exitFailed
	case notMet:
		return exitNotMet
	case inconclusive:
		return exitInconclusive
	}
	return exitDone
}

// stateOf is the answer that an error carries, if it is a verdict and no failure.
func stateOf(err error) (analyze.State, bool) {
	if v, ok := errors.AsType[*verdictError](err); ok {
		return v.State, true
	}
	if v, ok := errors.AsType[*answerError](err); ok {
		return v.state, true
	}
	return analyze.Inconclusive, false
}

// flatten returns the errors that were joined into err, in order; each of them is one complaint.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	// A wrapped join is one complaint, so that only err itself is looked at.
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	var text []string
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
		text = append(text, e.Error())
	}
	if err.Error() != strings.Join(text, "\n") { // not errors.Join's: a sentence around several causes
		return []error{err}
	}
	return all
}

// A usageError is a mistake on the command line: what is wrong, and what to type instead ("" if what says it).
type usageError struct{ what, hint string }

func (e *usageError) Error() string { return e.what }

// A verdictError is an expectation that was not met, or that the captures cannot decide.
type verdictError struct{ analyze.Verdict }

func (e *verdictError) Error() string {
	word := "inconclusive"
	if e.State == analyze.NotMet {
		word = "not as expected"
	}
	return word + ": " + strings.Join(e.Lines, "\n")
}

// An answerError is an answer that is not what it should be, or that the input does not carry, in a sentence of its own.
type answerError struct {
	state analyze.State
	text  string
}

func (e *answerError) Error() string { return e.text }

// An outputError is standard output that could not be written.
type outputError struct{ err error }

func (e *outputError) Error() string { return "write standard output: " + e.err.Error() }

func (e *outputError) Unwrap() error { return e.err }

// isBrokenPipe tells whether standard output was closed by whoever read it.
func isBrokenPipe(err error) bool {
	out, ok := errors.AsType[*outputError](err)
	return ok && errors.Is(out.err, syscall.EPIPE)
}
