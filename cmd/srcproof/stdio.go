package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/report"
)

// The law of the two streams:
//
//   - Standard output carries what was asked for: the report, the explanation, the help. Nothing else, ever.
//   - Standard error carries everything else: errors, warnings, hints, progress. An error is "srcproof: " and the
//     sentence, in lower case, without a full stop; a hint follows it on a line of its own.
//   - Colour is for a terminal: not where standard output is a file or a pipe, NO_COLOR is set or TERM is dumb. It never
//     carries a meaning that the words do not.
//   - Lines are as wide as COLUMNS says, else as the terminal is, within minWidth and maxWidth.
//   - Progress is for a person who waits: on a terminal, and after a while.
//   - Nothing from a file or an argument reaches standard error with a control character in it.
type stdio struct {
	args   []string // what was typed, for the record
	in     io.Reader
	out    *dataWriter
	rawOut io.Writer // what out writes to: it knows whether it is a terminal
	err    io.Writer
	env    func(string) string // as os.Getenv
}

const (
	program  = "srcproof"
	maxWidth = 100
	minWidth = 80 // a table below this is no table
)

func newStdio(args []string, in io.Reader, out, err io.Writer, env func(string) string) *stdio {
	return &stdio{args: args, in: in, out: &dataWriter{w: bufio.NewWriterSize(out, 64<<10)}, rawOut: out, err: err, env: env}
}

// dataWriter is standard output. It remembers its first error, so that a writer that does not look loses nothing.
type dataWriter struct {
	w   *bufio.Writer
	err *outputError
}

func (d *dataWriter) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	return n, d.note(err)
}

func (d *dataWriter) flush() error { return d.note(d.w.Flush()) }

func (d *dataWriter) note(err error) error {
	if err != nil && d.err == nil {
		d.err = &outputError{pathCause(err)}
	}
	if d.err == nil { // not a nil *outputError in an error
		return nil
	}
	return d.err
}

// finish ends standard output and returns err with what went wrong there, once.
func (s *stdio) finish(err error) error {
	var errs []error
	for _, e := range flatten(err) {
		if _, ok := errors.AsType[*outputError](e); !ok { // else a writer passed on what flush returns
			errs = append(errs, e)
		}
	}
	return errors.Join(append(errs, s.out.flush())...)
}

// complain writes an error: a line, and its hint on a second one.
func (s *stdio) complain(err error) {
	switch {
	case isBrokenPipe(err): // it went away because it had enough
	case errors.Is(err, context.Canceled):
		s.say("interrupted")
	default:
		s.say("%s", err)
	}
	if usage, ok := errors.AsType[*usageError](err); ok && usage.hint != "" {
		s.line("hint: " + usage.hint)
	}
}

// say writes one line of the program's own to standard error.
func (s *stdio) say(format string, args ...any) {
	s.line(program + ": " + fmt.Sprintf(format, args...))
}

// line writes a line to standard error. Further lines of its text are indented below it, so that nothing in a message can
// pass for another message.
func (s *stdio) line(text string) {
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\n", "\n  ")) {
		b.WriteString(report.Escape(strings.TrimSuffix(line, "\n")))
		b.WriteByte('\n')
	}
	// Where standard error cannot be written there is nobody left to tell.
	_, _ = io.WriteString(s.err, b.String())
}

// width is the number of columns to write text in.
func (s *stdio) width() int {
	w, err := strconv.Atoi(s.env("COLUMNS"))
	if err != nil || w <= 0 {
		w, _ = terminalWidth(s.rawOut)
	}
	if w <= 0 {
		return maxWidth
	}
	return min(max(w, minWidth), maxWidth)
}

func (s *stdio) colour() bool {
	_, terminal := terminalWidth(s.rawOut)
	return terminal && s.env("NO_COLOR") == "" && s.env("TERM") != "dumb"
}

// textOptions are how text is written on this standard output.
func (s *stdio) textOptions() report.TextOptions {
	return report.TextOptions{Width: s.width(), Colour: s.colour()}
}

// terminalWidth tells whether a stream is a terminal, and how wide it is; zero is unknown.
func terminalWidth(stream any) (columns int, terminal bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	columns, _, terminal = windowSize(f)
	return columns, terminal
}

// pathCause takes the path and the operation from an operating system's error: the caller says both in its own words.
func pathCause(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}
