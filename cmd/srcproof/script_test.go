package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/srcproof/srcproof/capture/filter"
	"github.com/srcproof/srcproof/report"
)

var update = flag.Bool("update", false, "rewrite what the scripts in testdata/script expect")

const raceOptions = "atexit_sleep_ms=0"

// TestMain lets this test binary be srcproof: the scripts run it as a process of its own, with real streams and signals.
func TestMain(m *testing.M) {
	// Under the race detector every process would sleep for a second at its end.
	if err := os.Setenv("GORACE", raceOptions); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"srcproof": main, "measured": measured})
}

func isExit(err error) bool {
	_, ok := errors.AsType[*exec.ExitError](err)
	return ok
}

// TestScripts runs the scripts in testdata/script: one behaviour each, told by both streams and the exit code.
func TestScripts(t *testing.T) {
	captures, err := filepath.Abs("../../testdata/captures")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("CAPTURES", captures)
			env.Setenv("GORACE", raceOptions)
			env.Setenv("COLUMNS", "")
			env.Setenv("NO_COLOR", "")
			env.Setenv("TERM", "xterm")
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Getuid() == 0, nil
			case "libpcap":
				_, err := filter.Compile("tcp")
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     scriptExits,
			"json":      scriptJSON,
			"columns":   scriptColumns,
			"capture":   scriptCapture,
			"head":      scriptHead,
			"rest":      scriptRest,
			"shiftpcap": scriptShiftPcap,
			"flipbyte":  scriptFlipByte,
		},
	})
}

// exits N COMMAND...: the command ends with exit code N.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// json FILE: the file is one record that the report room reads back. json -lines FILE: every line of it is JSON.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	switch {
	case !neg && len(args) == 1:
		rec, err := report.Decode(strings.NewReader(ts.ReadFile(args[0])))
		ts.Check(err)
		if rec.Schema != report.Schema {
			ts.Fatalf("schema %q", rec.Schema)
		}
	case !neg && len(args) == 2 && args[0] == "-lines":
		text := ts.ReadFile(args[1])
		if !strings.HasSuffix(text, "\n") {
			ts.Fatalf("does not end with a line end")
		}
		for line := range strings.Lines(text) {
			if !json.Valid([]byte(line)) {
				ts.Fatalf("not JSON: %s", line)
			}
		}
	default:
		ts.Fatalf("usage: json [-lines] FILE")
	}
}

// columns N FILE: the longest line of the file is N columns wide at most, and holds no control character.
// ! columns N FILE: a line is wider.
func scriptColumns(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] columns N FILE")
	}
	limit, err := strconv.Atoi(args[0])
	ts.Check(err)
	wider := ""
	text := ts.ReadFile(args[1])
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			ts.Fatalf("control character in %q", line)
		}
		if utf8.RuneCountInString(line) > limit {
			wider = line
		}
	}
	switch {
	case text == "":
		ts.Fatalf("%s is empty", args[1])
	case !neg && wider != "":
		ts.Fatalf("%d columns: %s", utf8.RuneCountInString(wider), wider)
	case neg && wider == "":
		ts.Fatalf("no line is wider than %d columns", limit)
	}
}

// capture FILE IFNAME COMMENT: writes a pcapng file with one unanswered SYN, seen on an interface of that name. The
// arguments are unquoted as Go strings, so that they can hold what a script cannot.
func scriptCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: capture FILE IFNAME COMMENT")
	}
	name, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	comment, err := strconv.Unquote(`"` + args[2] + `"`)
	ts.Check(err)
	header, packet := pcapngSYN(name, comment)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), append(header, packet...), 0o666))
}

// head N IN OUT: writes the first N bytes of a file.
func scriptHead(ts *testscript.TestScript, neg bool, args []string) {
	in, n := scriptCut(ts, neg, args)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), in[:n], 0o666))
}

// rest N IN OUT: writes a pcap file with what is behind the first N bytes of one; N is where a packet begins.
func scriptRest(ts *testscript.TestScript, neg bool, args []string) {
	in, n := scriptCut(ts, neg, args)
	const fileHeader = 24
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), slices.Concat(in[:fileHeader], in[n:]), 0o666))
}

// scriptCut reads N IN OUT.
func scriptCut(ts *testscript.TestScript, neg bool, args []string) (in []byte, n int) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: head|rest N IN OUT")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	in, err = os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	if n > len(in) {
		ts.Fatalf("%s has %d bytes", args[1], len(in))
	}
	return in, n
}

// shiftpcap FILE OUT DURATION: writes a pcap file whose clock is ahead of FILE's by DURATION.
func scriptShiftPcap(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: shiftpcap FILE OUT DURATION")
	}
	ahead, err := time.ParseDuration(args[2])
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	le := binary.LittleEndian
	if len(b) < 24 || le.Uint32(b) != 0xa1b2c3d4 {
		ts.Fatalf("%s is not a little-endian pcap file with microseconds", args[0])
	}
	packets := 0
	for r := b[24:]; len(r) > 0; packets++ {
		if len(r) < 16 || uint64(len(r)) < 16+uint64(le.Uint32(r[8:])) {
			ts.Fatalf("%s is cut in packet %d", args[0], packets+1)
		}
		at := time.Unix(int64(le.Uint32(r)), int64(le.Uint32(r[4:]))*1000).Add(ahead)
		le.PutUint32(r, uint32(at.Unix()))
		le.PutUint32(r[4:], uint32(at.Nanosecond()/1000))
		r = r[16+le.Uint32(r[8:]):]
	}
	if packets == 0 {
		ts.Fatalf("%s holds no packets", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o666))
}

// flipbyte FILE OUT: writes FILE with its last byte turned round.
func scriptFlipByte(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flipbyte FILE OUT")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	b[len(b)-1] ^= 0xff
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o666))
}

// pcapngSYN is a capture in pcapng (draft-ietf-opsawg-pcapng section 4), little endian: a section, an interface of
// Ethernet, and one packet.
func pcapngSYN(ifName, comment string) (header, packet []byte) {
	le := binaryLE{}
	header = append(header, le.block(0x0a0d0d0a, le.u32(0x1a2b3c4d), le.u16(1), le.u16(0), []byte("\xff\xff\xff\xff\xff\xff\xff\xff"), le.options(1, comment))...)
	header = append(header, le.block(1, le.u16(1), le.u16(0), le.u32(0), le.options(2, ifName))...)
	frame := bytes.Join([][]byte{
		{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00},                                            // Ethernet: IPv4
		{0x45, 0, 0, 40, 0x12, 0x34, 0x40, 0, 63, 6, 0, 0, 172, 16, 0, 13, 10, 20, 0, 10},           // IPv4: 172.16.0.13 > 10.20.0.10, ttl 63
		{0xa8, 0x44, 0, 80, 0x01, 0x02, 0x03, 0x04, 0, 0, 0, 0, 0x50, 0x02, 0xfa, 0xf0, 0, 0, 0, 0}, // TCP: 43076 > 80, SYN
	}, nil)
	const micros = 1_796_038_783_752_004
	return header, le.block(6, le.u32(0), le.u32(micros>>32), le.u32(micros&0xffffffff), le.u32(len(frame)), le.u32(len(frame)), le.pad(frame), le.options(1, comment))
}

// binaryLE writes pcapng's parts in little endian.
type binaryLE struct{}

func (binaryLE) u16(v int) []byte { return []byte{byte(v), byte(v >> 8)} }

func (binaryLE) u32(v int) []byte { return []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)} }

func (binaryLE) pad(b []byte) []byte { return append(bytes.Clone(b), make([]byte, -len(b)&3)...) }

func (le binaryLE) options(code int, text string) []byte {
	return bytes.Join([][]byte{le.u16(code), le.u16(len(text)), le.pad([]byte(text)), le.u32(0)}, nil)
}

func (le binaryLE) block(kind int, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	size := le.u32(len(body) + 12)
	return bytes.Join([][]byte{le.u32(kind), size, body, size}, nil)
}
