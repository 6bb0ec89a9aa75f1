package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/capture/live"
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
			c := newCaptureFiles(tt.opt, live.Section{LinkType: live.LinkSLL2, SnapLen: 100}, newStdio(nil, nil, &errs, &errs, func(string) string { return "" }))
			if err := c.open(at); err != nil {
				t.Fatal(err)
			}
			ifaces := []live.Interface{{Name: "eth0", Index: 2}}
			last := false
			for i := range tt.steps {
				if err := c.write(&live.Frame{Time: int64(i), Data: make([]byte, 60), WireLen: 60}, ifaces); err != nil {
					t.Fatal(err)
				}
				var err error
				if last, err = c.tick(at.Add(time.Duration(i+1)*10*time.Second), false, ifaces); err != nil {
					t.Fatal(err)
				}
				if last {
					break
				}
			}
			if err := c.close(ifaces, 0); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				got = append(got, e.Name())
				if info, err := e.Info(); err != nil || info.Size() < 100 {
					t.Errorf("%s: %v", e.Name(), err)
				}
			}
			if !slices.Equal(got, tt.want) || last != tt.last {
				t.Errorf("files %q, want %q; ended %v, want %v", got, tt.want, last, tt.last)
			}
		})
	}
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
		{[]string{"-s", "300000"}, "more than 262144 bytes"},
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
