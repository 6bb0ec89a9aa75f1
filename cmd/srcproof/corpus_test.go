//go:build linux

package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/report"
)

// TestDamagedCorpus runs srcproof on every file of the damaged corpus: the exit code, one line on standard error or none,
// a record that says whether it is whole, and what it costs. What is read of each file is capture's to test.
func TestDamagedCorpus(t *testing.T) {
	const dir = "../../../shared/corpora/damaged"
	index, err := os.ReadFile(filepath.Join(dir, "EXPECT.tsv"))
	if err != nil {
		t.Skip("not checked: exit codes and cost of damaged captures (../shared/corpora is not there)")
	}
	// Files that srcproof reads to their end and tcpdump does not.
	readable := map[string]string{
		"k10_zeek_trunc_mpls-6in6-broken.pcap.gz": "tcpdump does not decompress",
		"n01_two_linktypes.pcapng":                "libpcap refuses a second link type",
		"n03_multi_section_mixed_endian.pcapng":   "libpcap refuses a section of the other byte order",
		"n04_multi_section.pcapng":                "libpcap refuses a second link type",
		"n34_tsresol_63_and_seconds.pcapng":       "libpcap refuses a resolution of 2^-63 s",
		"n37_epb_on_null_and_raw.pcapng":          "libpcap refuses a second link type",
	}
	r := csv.NewReader(bytes.NewReader(index))
	r.Comma, r.LazyQuotes = '\t', true
	rows, err := r.ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("EXPECT.tsv: %d rows, %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		name, tcpdumpFails, want := row[0], row[1] != "0", row[5]
		t.Run(name, func(t *testing.T) {
			code := exitDone
			if tcpdumpFails && readable[name] == "" {
				code = exitFailed
			}
			cmd := exec.CommandContext(t.Context(), program, "analyze", "-o", "json", filepath.Join(dir, name))
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			cost, err := runMeasured(t, cmd)
			if err != nil {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != code {
				t.Errorf("exit code %d, want %d: %s", got, code, want)
			}
			if lines := strings.Count(stderr.String(), "\n"); lines != code/exitFailed || lines == 1 && !strings.HasPrefix(stderr.String(), "srcproof: "+filepath.Join(dir, name)+": ") {
				t.Errorf("standard error: %q", stderr.String())
			}
			switch rec, err := report.Decode(bytes.NewReader(stdout.Bytes())); {
			case stdout.Len() == 0 && code == exitFailed && err != nil: // nothing of it could be read
			case err != nil:
				t.Errorf("the record cannot be read back: %v", err)
			case len(rec.Captures) != 1 || rec.Captures[0].Complete != (code == exitDone):
				t.Errorf("captures: %+v, want one with complete: %v", rec.Captures, code == exitDone)
			}
			if cost.CPU > time.Second {
				t.Errorf("took %v of the processor", cost.CPU)
			}
			if cost.Memory == 0 || cost.Memory > 256<<20 {
				t.Errorf("took %d MiB of memory", cost.Memory>>20)
			}
		})
	}
}
