package main

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/live"
	"github.com/srcproof/srcproof/capture/wire"
)

func TestStrftime(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 5, 7, 0, time.FixedZone("", 3600))
	for in, want := range map[string]string{
		"near.pcapng": "near.pcapng", "%Y%m%d-%H%M%S": "20261130-090507", "%F_%T": "2026-11-30_09:05:07", "%s": "1796025907", "100%%": "100%", "%q%": "%q%", "%j%y%z": "33426+0100",
	} {
		if got := strftime(in, at); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// The names and numbers of files are tcpdump's: -C counts, -W makes a ring of them or ends the capture, -G takes the time.
func TestCaptureFiles(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.Local)
	for _, tt := range []struct {
		name  string
		opt   fileOptions
		steps int // frames of about 150 bytes, 10 s apart
		want  []string
		last  bool
	}{
		{"one file", fileOptions{name: "a.pcapng"}, 20, []string{"a.pcapng"}, false},
		{"-C", fileOptions{name: "a.pcapng", size: 300}, 12, []string{"a.pcapng", "a.pcapng1", "a.pcapng2", "a.pcapng3"}, false},
		{"-C -W: a ring", fileOptions{name: "a.pcapng", size: 300, count: 2}, 12, []string{"a.pcapng0", "a.pcapng1"}, false},
		{"-C -W 10: numbers of one width", fileOptions{name: "a.pcapng", size: 300, count: 11}, 8, []string{"a.pcapng00", "a.pcapng01", "a.pcapng02"}, false},
		{"-G", fileOptions{name: "a-%H%M%S.pcapng", seconds: 60}, 14, []string{"a-090000.pcapng", "a-090100.pcapng", "a-090200.pcapng"}, false},
		{"-G -W: ends", fileOptions{name: "a-%H%M%S.pcapng", seconds: 60, count: 2}, 14, []string{"a-090000.pcapng", "a-090100.pcapng"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.opt.name = filepath.Join(dir, tt.opt.name)
			var errs bytes.Buffer
			c := newCaptureFiles(tt.opt, live.Section{LinkType: live.LinkSLL2, SnapLen: 100}, newStdio(nil, nil, &errs, &errs, func(string) string { return "" }), func() captureState {
				return captureState{ifaces: []live.Interface{{Name: "eth0", Index: 2}}, from: 1, dropped: 0}
			})
			if err := c.open(at); err != nil {
				t.Fatal(err)
			}
			last := false
			for i := range tt.steps {
				if err := c.write(&live.Frame{Time: int64(i + 1), Data: make([]byte, 60), WireLen: 60}, c.state().ifaces); err != nil {
					t.Fatal(err)
				}
				var err error
				if last, err = c.tick(at.Add(time.Duration(i+1)*10*time.Second), false); err != nil {
					t.Fatal(err)
				}
				if last {
					break
				}
			}
			if err := c.end(c.last); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var windows [][2]int64
			for _, e := range entries {
				got = append(got, e.Name())
				b, err := os.ReadFile(filepath.Join(dir, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				windows = append(windows, windowOf(t, b))
				if info, err := e.Info(); err != nil || info.Size() < 100 {
					t.Errorf("%s: %v", e.Name(), err)
				}
			}
			// The files of a rotation follow each other without a gap.
			slices.SortFunc(windows, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
			for i := 1; i < len(windows); i++ {
				if windows[i][0] != windows[i-1][1] {
					t.Errorf("windows %v", windows)
				}
			}
			if !slices.Equal(got, tt.want) || last != tt.last {
				t.Errorf("files %q, want %q; ended %v, want %v", got, tt.want, last, tt.last)
			}
		})
	}
}

// windowOf is when a file says that it was captured.
func windowOf(t *testing.T, b []byte) [2]int64 {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(b), "x", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for batch := make([]wire.Packet, 8); err == nil; {
		_, err = r.Read(batch)
	}
	sum := r.Summary()
	from, until, recorded := sum.Window()
	if !recorded || sum.Dropped != 0 {
		t.Errorf("window %d to %d, recorded %v, %d dropped", from, until, recorded, sum.Dropped)
	}
	return [2]int64{from, until}
}

func TestCaptureFlags(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string // in the error; "" for none
	}{
		{[]string{"host", "10.20.30.40"}, ""},
		{[]string{"-w", "-"}, ""},
		{[]string{"-G", "60"}, "-w FILE names it"},
		{[]string{"-w", "-", "-G", "60"}, "standard output is one file"},
		{[]string{"-w", "x", "-W", "3"}, "-W is for -G or -C"},
		{[]string{"-w", "-", "--expect", "source=pod-sourced"}, "--expect needs verdicts"},
		{[]string{"-s", "300000"}, "not a number of bytes from 0 to 262144"},
		{[]string{"-c", "-1"}, "-c: must be more than 0"},
		{[]string{"-w", ""}, "FILE is empty"},
	} {
		var out, errs bytes.Buffer
		root := newRootCommand(newStdio(nil, strings.NewReader(""), &out, &errs, func(string) string { return "" }))
		var flags liveFlags
		cmd, rest, err := root.Find(append([]string{"capture"}, tt.args...))
		if err != nil {
			t.Fatal(err)
		}
		fresh := *cmd
		fresh.ResetFlags()
		flags.add(&fresh)
		if err := fresh.ParseFlags(rest); err != nil {
			t.Fatal(err)
		}
		_, err = flags.resolve(fresh.Flags().Args())
		said := ""
		for _, e := range flatten(err) {
			said += e.Error()
			if u, ok := errors.AsType[*usageError](e); ok {
				said += " " + u.hint
			}
		}
		if (tt.says == "") != (err == nil) || !strings.Contains(said, tt.says) {
			t.Errorf("%q: %v, want %q", tt.args, said, tt.says)
		}
	}
}
