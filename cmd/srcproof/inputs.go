package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/filter"
	"github.com/srcproof/srcproof/capture/tcpdump"
	"github.com/srcproof/srcproof/capture/wire"
)

// standardInput is how the stream is named in messages; on the command line and in the record it is "-".
const standardInput = "standard input"

// capturesHeading is what the flags about captures stand under in the help.
const capturesHeading = "Captures"

// captureFlags say how captures are read and what they were taken with, as typed.
type captureFlags struct {
	filter, nearFilter, farFilter once
	digest                        bool
	date, zone                    once
}

func (f *captureFlags) add(cmd *cobra.Command) {
	fs := newFlags()
	fs.Var(&f.filter, "filter", "read only the packets that match `EXPR`, in tcpdump's words")
	fs.Var(&f.nearFilter, "near-filter", "`EXPR` that the near capture was taken with; '' if with none")
	fs.Var(&f.farFilter, "far-filter", "`EXPR` that the far capture was taken with; '' if with none")
	fs.BoolVar(&f.digest, "digest", false, "put the SHA-256 of each file on record")
	fs.Var(&f.date, "date", "`DATE` of the first packet of a text whose times have none, like 2026-11-30")
	fs.Var(&f.zone, "tz", "`ZONE` of the times in a text: UTC, Europe/Berlin, or +01:00")
	addFlags(cmd, capturesHeading, fs)
	registerCompletion(cmd, "date", cobra.NoFileCompletions)
	registerCompletion(cmd, "tz", cobra.NoFileCompletions)
}

// textOptions are what is said of the times in texts.
func (f *captureFlags) textOptions() (opt tcpdump.Options, err error) {
	if f.date.given {
		if opt.Day, err = time.Parse(time.DateOnly, f.date.value); err != nil {
			return opt, &usageError{what: "--date " + f.date.value + ": not a date", hint: "write it like 2026-11-30"}
		}
		if !f.zone.given {
			return opt, &usageError{what: "--date without --tz: of which zone are the times?", hint: "--tz UTC, --tz Europe/Berlin or --tz +01:00: as date prints it on the host where tcpdump ran"}
		}
	}
	if f.zone.given {
		if opt.Zone, err = parseZone(f.zone.value); err != nil {
			return opt, err
		}
	}
	return opt, nil
}

// parseZone reads a zone by its name (IANA) or as hours and minutes east of UTC.
func parseZone(text string) (*time.Location, error) {
	for _, form := range []string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(form, text); err == nil {
			_, offset := t.Zone()
			return time.FixedZone(text, offset), nil
		}
	}
	if text == "" || text == "Local" {
		return nil, &usageError{what: "--tz " + text + ": not a zone", hint: "write it like UTC, Europe/Berlin or +01:00"}
	}
	zone, err := time.LoadLocation(text)
	if err != nil {
		return nil, &usageError{what: "--tz " + text + ": not a zone", hint: "write it like UTC, Europe/Berlin or +01:00"}
	}
	return zone, nil
}

// resolve checks what was typed and compiles the filter.
func (f *captureFlags) resolve() (captureOptions, error) {
	opt := captureOptions{digest: f.digest}
	if f.filter.value != "" {
		var err error
		if opt.filter, err = filter.Compile(f.filter.value); err != nil {
			return opt, &usageError{what: "--filter: " + err.Error()}
		}
	}
	var err error
	if opt.text, err = f.textOptions(); err != nil {
		return opt, err
	}
	for side, stated := range map[wire.Side]once{wire.SideNear: f.nearFilter, wire.SideFar: f.farFilter} {
		opt.stated[side] = statedFilter{stated.value, stated.given}
	}
	return opt, nil
}

// captureOptions are how captures are read.
type captureOptions struct {
	filter *filter.Filter  // nil reads everything
	stated [2]statedFilter // by wire.Side
	digest bool
	part   part
	text   tcpdump.Options
}

// A part is one side of a moment: of a capture that spans it only the packets of that side are read. The zero part is all.
type part struct {
	from, until int64 // nanoseconds UTC; 0 is no bound. until is not in the part.
}

func (p part) isAll() bool { return p == part{} }

// keeps tells whether a packet of that time is read. One without a time is on no side.
func (p part) keeps(t int64) bool {
	return t != wire.NoTime && (p.from == 0 || t >= p.from) && (p.until == 0 || t < p.until)
}

// narrow gives a capture's summary the part's window. Where packets lie past the moment the capture ran up to it.
func (p part) narrow(sum *wire.Summary, read uint64) {
	if sum.First == wire.NoTime || sum.Last == wire.NoTime {
		return
	}
	cut := func(from, until *int64) (left bool) {
		if p.from != 0 {
			*from = max(*from, p.from)
		}
		if p.until != 0 {
			*until = min(*until, p.until-1)
		}
		return *from <= *until
	}
	if !cut(&sum.First, &sum.Last) {
		sum.First, sum.Last = wire.NoTime, wire.NoTime
	}
	sum.HasWindow = cut(&sum.From, &sum.Until) && sum.HasWindow
	side := "from --changed-at on"
	if p.until != 0 {
		side = "before --changed-at"
	}
	sum.Notes = append(slices.Clip(sum.Notes), fmt.Sprintf("only what lies %s counts: %d of %d packets", side, read, sum.Frames))
}

// A statedFilter is the filter that a person says a capture was taken with.
type statedFilter struct {
	expr  string
	given bool
}

// A captureArg is one FILE or LABEL=FILE.
type captureArg struct{ label, file string }

// name is the file in messages.
func (a captureArg) name() string {
	if a.file == "-" {
		return standardInput
	}
	return a.file
}

// parseCaptureArgs reads the FILE arguments of a command that takes captures without a flag.
func parseCaptureArgs(args []string) ([]captureArg, error) {
	return captureNames{}.parse("", args)
}

// captureNames has, of each file that was named, the flag that named it, "" if none.
type captureNames map[string]string

// parse reads what one flag names. A file that is there under the whole name is never taken apart. A file that was named
// before is refused: every packet of it would count twice, and on both sides it would be its own far side.
func (seen captureNames) parse(flag string, args []string) ([]captureArg, error) {
	var parsed []captureArg
	for _, arg := range args {
		a := captureArg{file: arg}
		if label, file, ok := strings.Cut(arg, "="); ok && isLabel(label) && file != "" {
			if _, err := os.Lstat(arg); errors.Is(err, fs.ErrNotExist) {
				a = captureArg{label, file}
			}
		}
		if a.file == "" {
			return nil, &usageError{what: strings.TrimPrefix(flag+": a FILE is empty", ": "), hint: "- is standard input"}
		}
		key := filepath.Clean(a.file)
		switch before, named := seen[key]; {
		case named && before != flag && flag == "--far":
			return nil, &usageError{
				what: a.name() + " is named with " + before + " and with " + flag + ": what a capture does not hold shows only in another one",
				hint: "--near names a capture of the node, --far one of the far side",
			}
		case named && before != flag:
			return nil, &usageError{what: a.name() + " is named with " + before + " and with " + flag, hint: "one capture that spans the change: --before FILE --changed-at TIME"}
		case named:
			return nil, &usageError{what: a.name() + " is named twice", hint: "every packet of it would count twice"}
		}
		seen[key] = flag
		parsed = append(parsed, a)
	}
	return parsed, nil
}

// isLabel tells whether s can be the LABEL of LABEL=FILE: letters, digits, '.', '_' and '-', so that a path is none.
func isLabel(s string) bool {
	for _, c := range s {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c)) {
			return false
		}
	}
	return s != ""
}

// A captureSet is captures, opened. Close it.
type captureSet struct {
	sources []*captureSource // those that could be opened
	errs    []error          // what was wrong with the others, and later with these: one line each
	restore func()           // nil unless standard input is among them
}

// openCaptures opens all captures that can be opened. args has those of each wire.Side.
func openCaptures(ctx context.Context, std *stdio, args [2][]captureArg, opt captureOptions) *captureSet {
	var set captureSet
	progress := newProgress(std)
	for side, files := range args {
		for _, arg := range files {
			if arg.file == "-" && std.in == os.Stdin {
				set.restore = leaveInterruptToWriter()
			}
			src, err := openCapture(ctx, std, arg, wire.Side(side), opt, progress)
			if err != nil {
				set.errs = append(set.errs, err)
				continue
			}
			set.sources = append(append(set.sources, src), src.furtherRuns()...)
		}
	}
	return &set
}

// err is everything that was wrong with the captures, joined.
func (s *captureSet) err() error { return errors.Join(s.errs...) }

// inputs are the captures as the analysis takes them.
func (s *captureSet) inputs() []analyze.Input {
	var ins []analyze.Input
	for _, src := range s.sources {
		ins = append(ins, src.input())
	}
	return ins
}

// refused is what kept captures from being read as was asked: a filter that is not possible for their link type. Damage
// leaves a report of what was read; this leaves none, for packets would look absent that were only not looked at.
func (s *captureSet) refused() error {
	var errs []error
	for _, src := range s.sources {
		if _, damaged := errors.AsType[*capture.DamageError](src.err); !damaged {
			errs = append(errs, src.err)
		}
	}
	return errors.Join(errs...)
}

// finish ends the reading. It completes the digests, which cover each file to its last byte whether or not the analysis
// came that far. captures are those of the Result, in the order of inputs.
func (s *captureSet) finish(captures []analyze.CaptureInfo) {
	for i, src := range s.sources {
		src.progress.clear()
		if src.err != nil {
			s.errs = append(s.errs, fmt.Errorf("%w; the report covers what could be read", src.err))
		}
		if src.of != nil { // the first run's file, whose digest is known by now
			captures[i].SHA256 = src.of.digest
		}
		if src.hash == nil {
			continue
		}
		digest, err := src.sum()
		if err != nil {
			s.errs = append(s.errs, err)
			continue
		}
		captures[i].SHA256, src.digest = digest, digest
	}
}

// Close closes all files. They were only read: there is nothing to lose.
func (s *captureSet) Close() {
	for _, src := range s.sources {
		src.close()
	}
	if s.restore != nil {
		s.restore()
	}
}

// A captureSource is one open capture; it is the analyze.PacketSource of its Input.
type captureSource struct {
	ctx      context.Context // of the command: Read has no place for one
	arg      captureArg
	side     wire.Side
	opt      captureOptions
	file     io.Reader // the file's bytes as stored; what is read of them goes into hash
	closer   io.Closer // nil for standard input
	reader   *capture.Reader
	filtered *countingFilter // nil unless --filter is given
	kept     uint64          // packets that lie in the part that is read
	digest   string          // once it is known
	hash     hash.Hash       // nil if no digest is wanted
	progress *progress
	run      int            // of tcpdump in a text; 0 is the first or only one
	of       *captureSource // the first run's, whose file this is; nil of the first
	err      error          // the first thing that was wrong with the file
}

// furtherRuns are the captures of a text behind its first. Each is one by itself: they may be of several hosts.
func (s *captureSource) furtherRuns() []*captureSource {
	var out []*captureSource
	for i, r := range s.reader.Runs() {
		out = append(out, &captureSource{ctx: s.ctx, arg: s.arg, side: s.side, opt: s.opt, reader: r, progress: s.progress, run: i + 1, of: s})
	}
	return out
}

// label is the capture's: as typed, and of a text with several runs with the run's number and host.
func (s *captureSource) label() string {
	if s.of == nil && s.reader.Runs() == nil {
		return s.arg.label
	}
	l := fmt.Sprintf("run %d", s.run+1)
	if s.arg.label != "" {
		l = s.arg.label + " " + l
	}
	if host := s.reader.Host(); host != "" {
		l += " " + host
	}
	return l
}

func openCapture(ctx context.Context, std *stdio, arg captureArg, side wire.Side, opt captureOptions, progress *progress) (*captureSource, error) {
	src := &captureSource{ctx: ctx, arg: arg, side: side, opt: opt, progress: progress}
	if err := src.openFile(std); err != nil {
		return nil, err
	}
	src.file = progress.counting(src.file)
	if opt.digest {
		src.hash = sha256.New()
		src.file = io.TeeReader(src.file, src.hash)
	}
	read := capture.Options{Text: opt.text}
	if opt.filter != nil { // not a nil *countingFilter in the interface
		own, err := filter.Compile(opt.filter.String()) // captures are read at the same time, and a filter is for one of them
		if err != nil {
			src.close()
			return nil, err
		}
		src.filtered = &countingFilter{Filter: own}
		read.Filter = src.filtered
	}
	var err error
	src.reader, err = capture.NewReader(src.file, arg.name(), read)
	if err != nil {
		src.close()
		return nil, err
	}
	return src, nil
}

// A countingFilter counts what --filter is asked and what it keeps, so that a report of little tells why.
type countingFilter struct {
	*filter.Filter
	asked, kept uint64
}

// Match is the filter's.
func (f *countingFilter) Match(linkType uint32, frame []byte, wireLen int) bool {
	ok := f.Filter.Match(linkType, frame, wireLen)
	f.asked++
	if ok {
		f.kept++
	}
	return ok
}

func (s *captureSource) openFile(std *stdio) error {
	if s.arg.file == "-" {
		if _, terminal := terminalWidth(std.in); terminal {
			return &usageError{what: "standard input is a terminal", hint: "pipe a capture in, as tcpdump -ni any -w - writes one"}
		}
		s.file = std.in
		s.progress.expect(-1)
		return nil
	}
	f, err := os.Open(s.arg.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &usageError{what: s.arg.file + ": no such file", hint: filterHint(s.arg.file)}
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied: read it as its owner or with sudo", s.arg.file)
	case err != nil:
		return fmt.Errorf("%s: %w", s.arg.file, pathCause(err))
	}
	size := int64(-1)
	if st, err := f.Stat(); err == nil {
		if st.IsDir() {
			_ = f.Close()
			return fmt.Errorf("%s: is a directory: name a capture file in it", s.arg.file)
		}
		if st.Mode().IsRegular() {
			size = st.Size()
		}
	}
	s.progress.expect(size)
	s.file, s.closer = f, f
	return nil
}

// filterHint is for those who write the filter behind the file, as tcpdump -r takes it.
func filterHint(word string) string {
	switch word {
	case "host", "net", "port", "portrange", "src", "dst", "ip", "ip6", "tcp", "udp", "icmp", "icmp6", "and", "or", "not", "(":
		return "a filter is one value: --filter 'EXPR'"
	}
	return ""
}

// Read is capture.Reader's, ends when the command does, and remembers what was wrong.
func (s *captureSource) Read(dst []wire.Packet) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.reader.Read(dst)
	s.progress.add(n)
	if err != nil && !errors.Is(err, io.EOF) && s.err == nil {
		s.err = err
	}
	if !s.opt.part.isAll() {
		n = len(slices.DeleteFunc(dst[:n], func(p wire.Packet) bool { return !s.opt.part.keeps(p.Time) }))
		if s.kept += uint64(n); n == 0 && err == nil {
			return s.Read(dst)
		}
	}
	return n, err
}

// Summary is capture.Reader's, but its filters are those that a packet had to pass to be read: what --filter left out is
// as absent as what was never captured. What --filter did is counted and noted.
func (s *captureSource) Summary() wire.Summary {
	sum := s.reader.Summary()
	sum.Filter = s.narrowed(sum.Filter, sum.HasFilter)
	for i := range sum.Interfaces {
		in := &sum.Interfaces[i]
		in.Filter = s.narrowed(in.Filter, in.HasFilter)
	}
	if f := s.filtered; f != nil {
		sum.FilteredOut = f.asked - f.kept
		sum.Notes = append(slices.Clip(sum.Notes), fmt.Sprintf("--filter %s kept %d of %d packets", s.opt.filter, f.kept, f.asked))
	}
	if !s.opt.part.isAll() {
		s.opt.part.narrow(&sum, s.kept)
	}
	return sum
}

// narrowed returns a capture's known filter with --filter behind it.
func (s *captureSource) narrowed(known string, ok bool) string {
	switch {
	case !ok || s.opt.filter == nil:
		return known
	case known == "":
		return s.opt.filter.String()
	}
	return "(" + known + ") and (" + s.opt.filter.String() + ")"
}

func (s *captureSource) input() analyze.Input {
	stated := s.opt.stated[s.side]
	return analyze.Input{
		File: s.arg.file, Label: s.label(), Side: s.side,
		StatedFilter: s.narrowed(stated.expr, stated.given), HasStated: stated.given,
		Source: s,
	}
}

// sum reads what the analysis left of the file and returns the digest of the whole.
func (s *captureSource) sum() (string, error) {
	if _, err := io.Copy(io.Discard, s.file); err != nil {
		return "", fmt.Errorf("digest of %s: %w", s.arg.name(), pathCause(err))
	}
	return hex.EncodeToString(s.hash.Sum(nil)), nil
}

func (s *captureSource) close() {
	if s.reader != nil {
		_ = s.reader.Close()
	}
	if s.closer != nil {
		_ = s.closer.Close()
	}
}
