package tcpdump

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// Log is what a log puts before each line of what a program prints: kubectl logs --timestamps and --prefix, stern, journalctl, docker
// compose, and grep with file names and line numbers do.
type Log struct {
	Prefix string // of the first packet's line; "" if there is none
	Other  string // of a packet's line that is another source's: its packets may be another host's; "" if there is none
}

// WithoutLog finds out what stands before each line of a text in which Read finds no packet, and returns the text without it. Lines of
// other sources are left out. The Log is zero if no packet stands behind anything.
func WithoutLog(text []byte) ([]byte, Log) {
	shape, first, ok := findShape(text)
	if !ok {
		return nil, Log{}
	}
	log := Log{Prefix: first}
	source := sourceOf(first)
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		prefix, rest, ok := shape.cut(string(line))
		switch {
		case !ok:
			out.Write(line)
		case sourceOf(prefix) == source:
			out.WriteString(rest)
		default:
			if log.Other == "" && len(rest) < maxRecord && holdsPacket(rest) {
				log.Other = prefix
			}
			out.WriteByte('\n')
		}
	}
	return out.Bytes(), log
}

// logShape is how a prefix is told from what follows: it is some words, or some parts that end with a colon, as grep's do.
type logShape struct{ words, colons int }

// What is looked at to find a packet behind something.
const (
	logLines  = 500
	logPrefix = 200 // bytes
	logWords  = 8
	logColons = 2
)

// findShape looks for the first line in which a packet stands behind something.
func findShape(text []byte) (shape logShape, prefix string, ok bool) {
	looked := 0
	for line := range bytes.Lines(text) {
		if looked++; looked > logLines {
			break
		}
		if len(line) > maxRecord {
			continue
		}
		s := string(line)
		for n := 1; n <= logColons+logWords; n++ {
			shape := logShape{colons: n}
			if n > logColons {
				shape = logShape{words: n - logColons}
			}
			before, rest, ok := shape.cut(s)
			if ok && len(before) <= logPrefix && holdsPacket(rest) {
				return shape, before, true
			}
		}
	}
	return logShape{}, "", false
}

// cut parts a line. Of the blanks behind a prefix one belongs to it: the others are the line's own, for tcpdump indents second lines.
func (g logShape) cut(line string) (prefix, rest string, ok bool) {
	at := 0
	for range g.words {
		for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
			at++
		}
		begin := at
		for at < len(line) && line[at] != ' ' && line[at] != '\t' && line[at] != '\n' {
			at++
		}
		if at == begin {
			return "", "", false
		}
	}
	if g.words > 0 {
		if at == len(line) || line[at] == '\n' {
			return line[:at], line[at:], true // an empty line, whose blank was trimmed
		}
		return line[:at], line[at+1:], true
	}
	for range g.colons {
		n := strings.IndexAny(line[at:], ": \t\n")
		if n < 1 || line[at+n] != ':' {
			return "", "", false
		}
		at += n + 1
	}
	return line[:at], line[at:], true
}

// holdsPacket tells whether a line is a packet's.
func holdsPacket(line string) bool {
	if h, ok := parseHead(clean(strings.TrimRight(line, "\n"))); !ok || !h.ip && !h.other {
		return false
	}
	for _, run := range Read([]byte(line), Options{}) {
		if len(run.Packets) > 0 && run.Packets[0].Tuple.Proto != wire.ProtoNone {
			return true
		}
	}
	return false
}

// passing are words of a prefix that tell no source: times and counters in digits, names of days and months, and what container
// runtimes write of a line (stdout, stderr; F and P for whole and partial lines).
var passing = regexp.MustCompile(`^(?:[\[(]?[0-9][0-9:.,/+TZ-]*[\])]?:?|[+-][0-9]{2}:?[0-9]{2}|UTC|[A-Z]{3,4}T|Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|stdout|stderr|F|P)$`)

// sourceOf is what is left of a prefix without what differs from line to line of one source.
func sourceOf(prefix string) string {
	var kept []string
	for part := range strings.FieldsSeq(prefix) {
		if !passing.MatchString(part) {
			kept = append(kept, lineOf.ReplaceAllString(part, "$1"))
		}
	}
	return strings.Join(kept, " ")
}

// lineOf is a file's name and a line's number (grep -Hn).
var lineOf = regexp.MustCompile(`^([^:]+:)\d+:$`)
