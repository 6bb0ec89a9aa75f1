package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/wire"
	"github.com/srcproof/srcproof/report"
)

// TestSameResult: processors, batches and how a record is made change nothing of what is said of a capture, on every capture that is
// there.
func TestSameResult(t *testing.T) {
	var files []string
	for _, dir := range []string{capturesDir, "../../../shared/corpora", "../../../shared/fixtures"} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.Contains(filepath.Base(path), "cap") && !strings.HasSuffix(path, ".md") {
				files = append(files, path)
			}
			return nil
		})
	}
	facts := factsOf(t, []string{"--pod-cidr", "172.16.0.0/12", "--node-ip", "10.10.0.3"})
	compared, requests := 0, 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil || len(raw) > 20<<20 {
			continue
		}
		say := func(processors, batch int, onDemand bool, write func(b *bytes.Buffer, res *analyze.Result) error) []byte {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			inputs := make([]analyze.Input, 0, 2)
			for _, side := range []wire.Side{wire.SideNear, wire.SideFar} { // the capture beside itself: two that are read at the same time
				r, err := capture.NewReader(bytes.NewReader(raw), file, capture.Options{})
				if err != nil {
					return nil
				}
				inputs = append(inputs, analyze.Input{File: file, Label: side.String(), Side: side, Source: r})
			}
			var out bytes.Buffer
			for _, in := range [][]analyze.Input{inputs[:1], inputs} {
				if len(in) == 2 {
					r, _ := capture.NewReader(bytes.NewReader(raw), file, capture.Options{})
					in[0].Source = r
				}
				res, err := analyze.Run(in, facts, analyze.Options{Batch: batch, OnDemand: onDemand, IDs: batch == 512})
				if err != nil {
					t.Fatal(err)
				}
				requests += res.Len()
				if err := write(&out, res); err != nil {
					t.Fatal(err)
				}
			}
			return out.Bytes()
		}
		text := report.TextOptions{Width: 100}
		whole := func(b *bytes.Buffer, res *analyze.Result) error {
			rec := report.New(res, report.Tool{})
			return errors.Join(report.WriteJSONL(b, rec), report.WriteText(b, rec, text))
		}
		parts := func(b *bytes.Buffer, res *analyze.Result) error {
			return errors.Join(report.WriteJSONL(b, report.NewStream(res, report.Tool{})), report.WriteText(b, report.NewText(res, report.Tool{}, text), text))
		}
		want := say(1, 8, false, whole)
		if want == nil {
			continue
		}
		compared++
		for name, got := range map[string][]byte{
			"one processor, on demand": say(1, 512, true, parts), "two processors": say(2, 512, false, whole), "two, on demand": say(2, 1000, true, whole),
			"four": say(4, 1000, false, parts), "four, on demand, batches of 1": say(4, 1, true, parts),
		} {
			if !bytes.Equal(got, want) {
				t.Errorf("%s, %s: %d bytes, want %d", file, name, len(got), len(want))
			}
		}
	}
	t.Logf("%d captures, %d requests", compared, requests)
	if compared < 40 {
		t.Errorf("%d captures were compared", compared)
	}
}
