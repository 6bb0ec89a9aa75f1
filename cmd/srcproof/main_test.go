package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture/filter"
)

func TestExitCode(t *testing.T) {
	notMet := &verdictError{analyze.Verdict{State: analyze.NotMet, Lines: []string{"source is pod-sourced"}}}
	inconclusive := &verdictError{analyze.Verdict{State: analyze.Inconclusive, Lines: []string{"no such request"}}}
	full := &outputError{syscall.ENOSPC}
	closed := &outputError{syscall.EPIPE}
	failure := errors.New("near.pcap: no such file")
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"nothing went wrong", nil, 0},
		{"an expectation is not met", notMet, 1},
		{"a usage error", &usageError{what: "no capture named"}, 2},
		{"a file that cannot be read", failure, 2},
		{"a full disk", full, 2},
		{"an expectation that cannot be told", inconclusive, 3},
		{"a failure outweighs what is not met", errors.Join(notMet, failure), 2},
		{"a failure outweighs what cannot be told", errors.Join(failure, inconclusive), 2},
		{"not met outweighs what cannot be told, in either order", errors.Join(inconclusive, notMet), 1},
		{"not met outweighs what cannot be told, in the other order", errors.Join(notMet, inconclusive), 1},
		{"joins inside joins count", errors.Join(notMet, errors.Join(nil, errors.Join(failure))), 2},
		{"a reader that has read enough is no failure", closed, 0},
		{"and leaves the verdict", errors.Join(closed, notMet), 1},
		{"and leaves the failure", errors.Join(closed, failure), 2},
		{"interrupted", context.Canceled, 130},
		{"interrupted outweighs what became of it", errors.Join(failure, fmt.Errorf("read: %w", context.Canceled)), 130},
		{"a verdict without a state is no success", &verdictError{}, 3},
	}
	for _, tt := range tests {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A sentence around several causes is one complaint; what was joined is several.
func TestFlatten(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"no error", nil, nil},
		{"one", a, []string{"a"}},
		{"a join", errors.Join(a, b), []string{"a", "b"}},
		{"a join in a join", errors.Join(a, errors.Join(b, a)), []string{"a", "b", "a"}},
		{"a sentence with two causes", fmt.Errorf("both %w and %w", a, b), []string{"both a and b"}},
		{"a sentence around a join", fmt.Errorf("all: %w", errors.Join(a, b)), []string{"all: a\nb"}},
	}
	for _, tt := range tests {
		var got []string
		for _, e := range flatten(tt.err) {
			got = append(got, e.Error())
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestParseRange(t *testing.T) {
	tests := []struct{ name, text, want, hint string }{
		{"a range", "172.16.0.0/16", "172.16.0.0/16", ""},
		{"one address", "172.16.0.13/32", "172.16.0.13/32", ""},
		{"IPv6", "fd00:10:1::/64", "fd00:10:1::/64", ""},
		{"everything", "0.0.0.0/0", "0.0.0.0/0", ""},
		{"IPv4 written as IPv6 is IPv4", "::ffff:10.0.0.0/104", "10.0.0.0/8", ""},
		{"a length beyond the family", "10.0.0.0/33", "", "from 0 to 32"},
		{"a negative length", "10.0.0.0/-1", "", "from 0 to 32"},
		{"a length with a sign", "fd00::/+8", "", "from 0 to 128"},
		{"no length", "10.4.0.7", "", "write 10.4.0.7/32"},
		{"no length, IPv6", "fd00::7", "", "write fd00::7/128"},
		{"not aligned", "10.4.0.7/14", "", "10.4.0.0/14 for the range, or 10.4.0.7/32"},
		{"not aligned, IPv6", "fd00::7/64", "", "fd00::/64 for the range, or fd00::7/128"},
		{"a list", "10.0.0.0/8,172.16.0.0/12", "", "repeat --pod-cidr"},
		{"a list with blanks", "10.0.0.0/8 172.16.0.0/12", "", "repeat --pod-cidr"},
		{"a netmask", "10.0.0.0/255.0.0.0", "", "from 0 to 32"},
		{"three numbers", "10.0.0/8", "", "write it like"},
		{"a zone", "fe80::1%eth0/64", "", "write it like"},
		{"a name", "pods", "", "write it like"},
		{"nothing", "", "", "write it like"},
	}
	for _, tt := range tests {
		p, err := parseRange("--pod-cidr", tt.text)
		if tt.hint == "" {
			if err != nil || p != netip.MustParsePrefix(tt.want) {
				t.Errorf("%s: %q gives %v, %v, want %s", tt.name, tt.text, p, err, tt.want)
			}
			continue
		}
		usage, ok := errors.AsType[*usageError](err)
		if !ok || !strings.Contains(usage.hint, tt.hint) || !strings.HasPrefix(usage.what, "--pod-cidr "+tt.text+": ") {
			t.Errorf("%s: %q gives %v, %#v, want a hint with %q", tt.name, tt.text, p, err, tt.hint)
		}
	}
}

func TestParseAddress(t *testing.T) {
	tests := []struct{ name, text, want, hint string }{
		{"IPv4", "10.10.0.3", "10.10.0.3", ""},
		{"IPv6", "fd00:10::3", "fd00:10::3", ""},
		{"IPv4 written as IPv6 is IPv4", "::ffff:10.10.0.3", "10.10.0.3", ""},
		{"a range", "10.10.0.0/28", "", "--node-cidr 10.10.0.0/28"},
		{"an address with the length of its subnet", "10.10.0.3/28", "", "write 10.10.0.3 alone, or the range with --node-cidr 10.10.0.0/28"},
		{"an address as a range", "10.10.0.3/32", "", "write 10.10.0.3 alone"},
		{"a list", "10.10.0.3,10.10.0.4", "", "repeat --node-ip"},
		{"a zone", "fe80::1%eth0", "", "write it like"},
		{"a port", "10.10.0.3:80", "", "write it like"},
		{"a name", "gke-a-1", "", "write it like"},
	}
	for _, tt := range tests {
		a, err := parseAddress("--node-ip", tt.text)
		if tt.hint == "" {
			if err != nil || a != netip.MustParseAddr(tt.want) {
				t.Errorf("%s: %q gives %v, %v, want %s", tt.name, tt.text, a, err, tt.want)
			}
			continue
		}
		if usage, ok := errors.AsType[*usageError](err); !ok || !strings.Contains(usage.hint, tt.hint) {
			t.Errorf("%s: %q gives %v, %#v, want a hint with %q", tt.name, tt.text, a, err, tt.hint)
		}
	}
}

func TestParseCaptureArgs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a=there.pcap", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, arg string
		want      captureArg
	}{
		{"a file", "near.pcap", captureArg{file: "near.pcap"}},
		{"standard input", "-", captureArg{file: "-"}},
		{"a label", "node-a.1=near.pcap", captureArg{"node-a.1", "near.pcap"}},
		{"a label and a path", "a=dir/near.pcap", captureArg{"a", "dir/near.pcap"}},
		{"a label of standard input", "a=-", captureArg{"a", "-"}},
		{"a file with = in its name that is there", "a=there.pcap", captureArg{file: "a=there.pcap"}},
		{"a label of a file with = in its name", "a=b=c.pcap", captureArg{"a", "b=c.pcap"}},
		{"a path is no label", "dir/a=near.pcap", captureArg{file: "dir/a=near.pcap"}},
		{"nothing is no label", "=near.pcap", captureArg{file: "=near.pcap"}},
		{"nothing is no file", "a=", captureArg{file: "a="}},
	}
	for _, tt := range tests {
		got, err := parseCaptureArgs([]string{tt.arg})
		if err != nil || len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %q gives %v, %v, want %v", tt.name, tt.arg, got, err, tt.want)
		}
	}
	for _, args := range [][]string{{""}, {"x", "x"}, {"x", "./x"}, {"a=x", "b=x"}, {"-", "a=-"}} {
		if got, err := parseCaptureArgs(args); err == nil {
			t.Errorf("%q gives %v, want an error", args, got)
		}
	}
}

// What --filter leaves out is as absent as what a capture's own filter left out.
func TestNarrowed(t *testing.T) {
	tests := []struct {
		name, own string
		known     bool
		expr      string
		want      string
	}{
		{"neither", "", true, "", ""},
		{"the capture's own alone", "tcp or icmp", true, "", "tcp or icmp"},
		{"--filter alone, on a capture known to be unfiltered", "", true, "udp or tcp", "udp or tcp"},
		{"both must pass", "tcp or icmp", true, "host 10.20.0.10 or port 53", "(tcp or icmp) and (host 10.20.0.10 or port 53)"},
		{"an unknown filter stays unknown", "", false, "tcp", ""},
	}
	for _, tt := range tests {
		var src captureSource
		if tt.expr != "" {
			var err error
			if src.opt.filter, err = filter.Compile(tt.expr); err != nil {
				t.Skipf("not checked: --filter beside a capture's own filter (%v)", err)
			}
		}
		if got := src.narrowed(tt.own, tt.known); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	codes := []string{"mtu", "no-return-route", "pod-source-unanswered", "pod-source-answered"}
	tests := []struct{ name, word, want string }{
		{"a letter too few", "no-return-rout", "no-return-route"},
		{"two letters exchanged", "no-retrun-route", "no-return-route"},
		{"the beginning of one", "pod-source-un", "pod-source-unanswered"},
		{"two that are near: the nearer", "pod-source-nanswered", "pod-source-unanswered"},
		{"too short to tell", "mt", ""},
		{"nothing like it", "frobnicate", ""},
		{"nothing", "", ""},
		{"far too long", strings.Repeat("no-return-route", 1000), ""},
	}
	for _, tt := range tests {
		if got, ok := nearest(tt.word, codes); ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s: %q gives %q, %v, want %q", tt.name, tt.word, got, ok, tt.want)
		}
	}
	if got, ok := nearest("x", nil); ok {
		t.Errorf("of no words %q is near", got)
	}
}

// Whatever a message holds, standard error gets lines without control characters.
func TestComplainEscapes(t *testing.T) {
	var stderr bytes.Buffer
	std := newStdio(nil, nil, io.Discard, &stderr, func(string) string { return "" })
	std.complain(errors.New("\x1b]0;owned\x07.pcap: no such\r\nfile\u202e"))
	want := `srcproof: \x1b]0;owned\x07.pcap: no such\x0d` + "\n" + `  file\u{202e}` + "\n"
	if got := stderr.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A writer that fails is remembered, and said once, whether or not the command looked.
func TestOutputErrors(t *testing.T) {
	std := newStdio(nil, nil, failingWriter{}, io.Discard, func(string) string { return "" })
	_, err := std.out.Write(make([]byte, 1<<20))
	if out, ok := errors.AsType[*outputError](err); !ok || !errors.Is(out, syscall.ENOSPC) {
		t.Fatalf("Write gives %v", err)
	}
	got := std.finish(errors.Join(errors.New("other"), fmt.Errorf("write report: %w", err)))
	if want := "other\nwrite standard output: no space left on device"; got.Error() != want {
		t.Errorf("finish gives %q, want %q", got, want)
	}
	ok := newStdio(nil, nil, io.Discard, io.Discard, func(string) string { return "" })
	if _, err := ok.out.Write([]byte("x")); err != nil {
		t.Errorf("Write gives %v (%T)", err, err)
	}
	if err := ok.finish(nil); err != nil {
		t.Errorf("finish gives %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// Progress is for those who wait.
func TestProgress(t *testing.T) {
	var w bytes.Buffer
	p := &progress{w: &w, begun: time.Now(), next: time.Now().Add(time.Hour)}
	p.add(1_000_000)
	p.clear()
	if w.Len() > 0 {
		t.Errorf("said %q before it was due", w.String())
	}
	p.next = time.Now().Add(-time.Second)
	p.add(234_567)
	p.add(1) // not due again yet
	p.clear()
	p.clear()
	if got, want := w.String(), "\r1,234,567 packets read\r\x1b[K"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	// Of files whose size is known, the share and what is left; a shorter line wipes out the longer one before it.
	for _, c := range []struct {
		sizes   []int64
		read    int
		elapsed time.Duration
		want    string
	}{
		{[]int64{300_000_000, 225_000_000}, 131_250_000, 5 * time.Second, "0 packets read, 25 % of 525 MB, 15s left"},
		{[]int64{525_000_000}, 525_000_000, 5 * time.Second, "0 packets read, 100 % of 525 MB"},
		{[]int64{40_000_000_000}, 10_000_000_000, 100 * time.Second, "0 packets read, 25 % of 40 GB, 5m0s left"},
		{[]int64{525_000_000, -1}, 131_250_000, 5 * time.Second, "0 packets read"},
		{nil, 100, time.Second, "0 packets read"},
	} {
		p := &progress{w: &w}
		for _, n := range c.sizes {
			p.expect(n)
		}
		p.read = int64(c.read)
		if got := p.line(c.elapsed); got != c.want {
			t.Errorf("%v: %q, want %q", c.sizes, got, c.want)
		}
	}
	p = &progress{w: &w}
	if n, err := io.Copy(io.Discard, p.counting(strings.NewReader("seven b"))); n != 7 || err != nil || p.read != 7 {
		t.Errorf("counted %d of %d bytes: %v", p.read, n, err)
	}
	var none *progress
	none.add(1)
	none.expect(7)
	none.clear()
	if r := strings.NewReader(""); none.counting(r) != io.Reader(r) {
		t.Error("without a terminal nothing is counted")
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", 18446744073709551615: "18,446,744,073,709,551,615"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// A command that is cancelled says so, and writes no report.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"analyze", "../../testdata/captures/before/node.pcap"}, nil, &stdout, &stderr, func(string) string { return "" })
	if code != exitInterrupted || stdout.Len() > 0 || stderr.String() != "srcproof: interrupted\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
}

// A stream without an end can be cancelled.
func TestCancelledWhileReading(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := &endlessCapture{t: t, cancel: cancel}
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"analyze", "-"}, in, &stdout, &stderr, func(string) string { return "" })
	if code != exitInterrupted || stdout.Len() > 0 || stderr.String() != "srcproof: interrupted\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
}

// endlessCapture is one packet over and over, in pcapng. It cancels the reading, and gives up if nobody cares.
type endlessCapture struct {
	t       *testing.T
	cancel  func()
	pending []byte
	rounds  int
}

func (e *endlessCapture) Read(p []byte) (int, error) {
	if len(e.pending) == 0 {
		switch e.rounds++; e.rounds {
		case 10:
			e.cancel()
		case 10_000:
			e.t.Error("still reading, a million packets later")
			return 0, io.EOF
		}
		header, packet := pcapngSYN("eth0", "")
		if e.pending = bytes.Repeat(packet, 100); e.rounds == 1 {
			e.pending = append(header, e.pending...)
		}
	}
	n := copy(p, e.pending)
	e.pending = e.pending[n:]
	return n, nil
}

// The flags that every command has, checked over the tree: each has help, the ones with a value name it, the ones with
// given values complete to them, and no help line is wider than a page.
func TestFlags(t *testing.T) {
	std := newStdio(nil, nil, io.Discard, io.Discard, func(string) string { return "" })
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			where := cmd.CommandPath() + " --" + f.Name
			if name, text := pflag.UnquoteUsage(f); text == "" || f.Value.Type() != "bool" && name != strings.ToUpper(name) {
				t.Errorf("%s: help %q, value %q", where, text, name)
			}
			if o, ok := f.Value.(*once); ok && o.words != nil {
				complete, ok := cmd.GetFlagCompletionFunc(f.Name)
				if !ok {
					t.Errorf("%s: its values are not completed", where)
					return
				}
				if got, _ := complete(cmd, nil, ""); fmt.Sprint(got) != fmt.Sprint(o.words) {
					t.Errorf("%s completes to %q, want %q", where, got, o.words)
				}
			}
		})
		for line := range strings.Lines(cmd.UsageString() + cmd.Long + "\n") {
			if len(line) > maxWidth+1 {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), len(line)-1, line)
			}
		}
		for _, c := range cmd.Commands() {
			check(c)
		}
	}
	check(newRootCommand(std))
}
