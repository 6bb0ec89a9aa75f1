package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/tcpdump"
	"github.com/srcproof/srcproof/capture/wire"
)

func readAll(t *testing.T, path string) *analyze.Result {
	t.Helper()
	r, err := capture.Open(path, capture.Options{Text: tcpdump.Options{Zone: time.UTC, Day: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	res, err := analyze.Run([]analyze.Input{{File: path, Source: r}}, nil, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// textLacks says what the forms of tcpdump's text do not carry, by the letters of its options.
func textLacks(form string) string {
	if strings.Contains(form, "q") {
		return "flags and numbers of TCP: how far a connection got, and what opened it; what tunnels carry"
	}
	return ""
}

// insideNotPrinted are captures of tunnels whose inside tcpdump does not print, so that no text of it can give it, and why.
func insideNotPrinted() map[string]string {
	return map[string]string{
		"erspanI": "ERSPAN", "tunnels__ayiya3": "AYIYA", "tunnels__gre-aruba-amsdu": "an Aruba frame in GRE", "tunnels__gre-over-udp-4754": "GRE in UDP", "tunnels__gtp": "GTP-U",
		"tunnels__teredo": "Teredo", "vntag_vlan_sandwich_clean": "VN-Tag",
	}
}

// TestTextCorpus: what tcpdump prints of a capture gives the requests, outcomes and sources of the capture, in every form, but for
// what the form does not carry.
func TestTextCorpus(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/corpora/tcpdump-text/*.cap")
	if len(files) == 0 {
		t.Skip("not checked: tcpdump's text of captures (../shared/corpora is absent)")
	}
	compared, requests := 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cap")
		hidden := ""
		for begin, what := range insideNotPrinted() {
			if strings.HasPrefix(name, begin) {
				hidden = what
			}
		}
		whole := readAll(t, file)
		for _, form := range []string{"n", "nnttttv", "nne", "nnttS", "nq", "nnum"} {
			t.Run(name+"."+form, func(t *testing.T) {
				path := strings.TrimSuffix(file, ".cap") + "." + form + ".txt"
				st, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				if textLacks(form) != "" && strings.HasPrefix(name, "tunnels__") {
					return // nor does it print what tunnels carry
				}
				if st.Size() == 0 || hidden != "" {
					if hidden == "" && len(whole.Requests) > 0 {
						t.Error("the text is empty, and the capture is not")
					}
					_, _ = capture.Open(path, capture.Options{}) // it does not panic
					return
				}
				words := func(r *analyze.Request) string {
					outcome, source := r.Outcome.String(), r.Source.String()
					if textLacks(form) != "" && r.Tuple.Proto == wire.ProtoTCP {
						outcome, source = "-", "-"
					}
					return fmt.Sprint(r.Tuple, " ", outcome, " ", source)
				}
				want, got := map[string]int{}, map[string]int{}
				for i := range whole.Requests {
					want[words(&whole.Requests[i])]++
				}
				if len(want) > 0 {
					text := readAll(t, path)
					for i := range text.Requests {
						r := &text.Requests[i]
						k := words(r)
						if textLacks(form) != "" && r.Tuple.Proto == wire.ProtoTCP && want[k] == 0 { // who began is not known either
							m := *r
							m.Tuple = r.Tuple.Mirror()
							k = words(&m)
						}
						got[k]++
					}
				}
				if textLacks(form) != "" { // without flags two connections of one tuple are one
					for k := range got {
						got[k] = min(got[k], want[k])
					}
					for k := range want {
						if strings.HasPrefix(k, "tcp ") {
							want[k] = min(want[k], max(got[k], 1))
						}
					}
				}
				if !maps.Equal(got, want) {
					for _, k := range slices.Sorted(maps.Keys(want)) {
						if got[k] != want[k] {
							t.Errorf("want %d, got %d: %s", want[k], got[k], k)
						}
					}
					for _, k := range slices.Sorted(maps.Keys(got)) {
						if want[k] == 0 {
							t.Errorf("too many: %d %s", got[k], k)
						}
					}
				}
				compared++
				requests += len(want)
			})
		}
	}
	t.Logf("%d captures, %d texts with %d kinds of requests", len(files), compared, requests)
	if compared < 200 {
		t.Errorf("%d texts were compared", compared)
	}
}
