//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// TestTerminal runs srcproof with its standard output on a terminal: there, and only there, it asks for the width and
// uses colour.
func TestTerminal(t *testing.T) {
	tests := []struct {
		name    string
		columns uint16 // of the terminal
		env     []string
		width   int // no line is wider, and one is wider than 10 less
		colour  bool
	}{
		{"text is as wide as the terminal", 90, nil, 90, true},
		{"text is never narrower than 80 columns", 30, nil, 80, true},
		{"text is never wider than 100 columns", 250, nil, 100, true},
		{"a terminal that knows no width has 100 columns", 0, nil, 100, true},
		{"COLUMNS overrides the terminal", 250, []string{"COLUMNS=80"}, 80, true},
		{"NO_COLOR takes the colour away, and nothing else", 100, []string{"NO_COLOR=1"}, 100, false},
		{"an empty NO_COLOR is none", 100, []string{"NO_COLOR="}, 100, true},
		{"a dumb terminal has no colour", 100, []string{"TERM=dumb"}, 100, false},
	}
	plain := map[int]string{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := onTerminal(t, tt.columns, tt.env, "analyze", "../../testdata/captures/before/node.pcap", "--pod-cidr", "172.16.0.0/16")
			if got := strings.Contains(out, "\x1b["); got != tt.colour {
				t.Errorf("colour: %v, want %v", got, tt.colour)
			}
			text := withoutColour(out)
			widest := 0
			for line := range strings.Lines(text) {
				widest = max(widest, utf8.RuneCountInString(strings.TrimRight(line, "\n")))
			}
			if widest > tt.width || widest <= tt.width-10 {
				t.Errorf("the widest line has %d columns, want up to %d:\n%s", widest, tt.width, text)
			}
			if want, ok := plain[tt.width]; ok && text != want {
				t.Errorf("the words differ with the colour:\n%s\nwant:\n%s", text, want)
			}
			plain[tt.width] = text
		})
	}
}

// TestTerminalIsNoCapture: who forgot the pipe would wait for ever.
func TestTerminalIsNoCapture(t *testing.T) {
	_, slave := openTerminal(t, 80)
	cmd := exec.CommandContext(t.Context(), "srcproof", "analyze", "-")
	cmd.Stdin = slave
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitFailed {
		t.Errorf("ended with %v, want exit code %d", err, exitFailed)
	}
	want := "srcproof: standard input is a terminal\nhint: pipe a capture in, as tcpdump -ni any -w - writes one\n"
	if stdout.Len() > 0 || stderr.String() != want {
		t.Errorf("stdout %q, stderr %q, want %q", stdout.String(), stderr.String(), want)
	}
}

// onTerminal returns what srcproof writes to a terminal of so many columns.
func onTerminal(t *testing.T, columns uint16, env []string, args ...string) string {
	t.Helper()
	master, slave := openTerminal(t, columns)
	cmd := exec.CommandContext(t.Context(), "srcproof", args...)
	cmd.Env = append(os.Environ(), append([]string{"COLUMNS=", "TERM=xterm"}, env...)...)
	if !strings.Contains(strings.Join(env, " "), "NO_COLOR") {
		cmd.Env = append(cmd.Env, "NO_COLOR=")
	}
	cmd.Stdout = slave
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	// Reading a terminal that nobody has open any more fails with EIO.
	if _, err := io.Copy(&out, master); err != nil && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

// openTerminal opens a pseudo-terminal (pty(7)); the program writes to slave what the test reads from master.
func openTerminal(t *testing.T, columns uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("not checked: behaviour on a terminal (%v)", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

// withoutColour removes the sequences that select a rendition (ECMA-48, SGR), and no others.
func withoutColour(s string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		rest := strings.TrimLeft(after, "0123456789;")
		if !strings.HasPrefix(rest, "m") {
			b.WriteString("\x1b[")
			s = after
			continue
		}
		s = rest[1:]
	}
}

// screen is what a terminal shows of what was written to it (ECMA-48: CR, LF, CUU, EL, ED; a line that is too long breaks).
type screen struct {
	width, height int
	lines         []string // from the first one on, scrolled away or not
	row, column   int
	broken        int // lines that were too long
}

func (s *screen) write(out string) {
	for out != "" {
		for len(s.lines) <= s.row {
			s.lines = append(s.lines, "")
		}
		if rest, ok := strings.CutPrefix(out, "\x1b["); ok {
			i := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' })
			if i < 0 {
				return
			}
			n, line := 1, []rune(s.lines[s.row])
			if _, err := fmt.Sscanf(rest[:i], "%d", &n); err != nil {
				n = 1
			}
			switch rest[i] {
			case 'A':
				s.row = max(s.row-n, len(s.lines)-s.height, 0)
			case 'K':
				s.lines[s.row] = string(line[:min(s.column, len(line))])
			case 'J':
				s.lines[s.row] = string(line[:min(s.column, len(line))])
				s.lines = s.lines[:s.row+1]
			}
			out = rest[i+1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(out)
		out = out[size:]
		switch r {
		case '\r':
			s.column = 0
		case '\n':
			s.row++
		default:
			if s.column == s.width {
				s.broken++
				s.row, s.column = s.row+1, 0
				s.lines = append(s.lines, "")
			}
			line := []rune(s.lines[s.row])
			for len(line) <= s.column {
				line = append(line, ' ')
			}
			line[s.column] = r
			s.lines[s.row] = string(line)
			s.column++
		}
	}
}
