package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/wire"
	"github.com/srcproof/srcproof/report"
)

// TestLiveEqualsRun feeds every stored capture packet by packet, judging on the way: the last result is what a run over the
// whole capture says, to the byte.
func TestLiveEqualsRun(t *testing.T) {
	files, err := filepath.Glob("../../testdata/captures/*/*.pcap")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	facts := factsOf(t, nodeFacts)
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		open := func() *capture.Reader {
			r, err := capture.NewReader(bytes.NewReader(b), name, capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		want, err := analyze.Run([]analyze.Input{{File: name, Source: open()}}, facts, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := open()
		live := analyze.NewLive(analyze.Input{File: name}, facts, analyze.Options{})
		var got *analyze.Result
		for batch := make([]wire.Packet, 8); ; {
			n, err := r.Read(batch)
			live.Add(batch[:n])
			got = live.Result(r.Summary())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if x, y := jsonOf(t, want), jsonOf(t, got); x != y {
			t.Errorf("%s: live and whole differ:\n%s\n%s", name, x, y)
		}
	}
}

func jsonOf(t *testing.T, res *analyze.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteJSON(&b, report.New(res, report.Tool{})); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
