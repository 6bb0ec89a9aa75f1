package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/srcproof/srcproof"

// importRule forbids the packages of some rooms to import some packages. An edge is forbidden where one rule says so.
//
// Patterns are those of the go command: "a" is a alone, "a/..." is a and everything below it, "..." is everything.
// Those that begin with "./" speak of this module.
type importRule struct {
	from   string   // the rooms
	except []string // but not these rooms
	to     []string // what they do not import
	but    []string // but may
	reason string
}

// importLaw is one row for each thing that a room must not know. Only direct imports are judged, of code that is not a
// test: where every edge is lawful, so is every path. Tests may look behind a door to check what it lets through.
//
// The linter's depguard rules repeat the rows that matter while typing; this table is the law.
func importLaw() []importRule {
	return []importRule{
		// wire: the words.
		{
			from: "./capture/wire/...", to: []string{"./..."}, but: []string{"./capture/wire/..."},
			reason: "every room speaks these words, so they can depend on no room",
		},
		{
			from: "./capture/wire/...", to: []string{thirdParty},
			reason: "a word that needs a library would bring it into every room",
		},

		// capture: bytes in, packets out.
		{
			from: "./capture/...", to: []string{"./analyze/...", "./report/..."},
			reason: "packets are facts: a decoder that knows what is concluded from them would decode towards it",
		},
		{
			from: "./capture/tcpdump/...", to: []string{"./...", "os/...", "net", "syscall/..."}, but: []string{"./capture/wire/..."},
			reason: "text becomes packets without a file: capture opens it, and knows no more of it than of any other capture",
		},
		{
			from: "./...", except: []string{"./capture/..."}, to: []string{"github.com/google/gopacket/..."},
			reason: "capture is the only door to gopacket: its traps are known there and nowhere else",
		},
		{
			from: "./...", except: []string{"./capture/..."}, to: []string{"github.com/klauspost/compress/..."},
			reason: "whether a capture came compressed is over once capture has opened it",
		},

		// cgo: only where libpcap is the point.
		{
			from: "./...", except: []string{"./capture/live/...", "./capture/filter/..."},
			to:     []string{"C", "github.com/google/gopacket/pcap/...", "github.com/google/gopacket/afpacket/..."},
			reason: "reading a file must work on a machine that has neither a C compiler nor libpcap",
		},

		// analyze: values in, values out.
		{
			from: "./analyze/...", to: []string{"./capture/..."}, but: []string{"./capture/wire/..."},
			reason: "a verdict is made from values, so that it can be made again from the same values without a capture",
		},
		{
			from: "./analyze/...", to: []string{"./report/..."},
			reason: "data flows one way: how a verdict is written must not reach into how it is found",
		},
		{
			from: "./analyze/...", except: []string{"./analyze/pages/..."},
			to: []string{
				"os/...", "io/fs", "io/ioutil", "embed", "path/filepath", "syscall/...", "golang.org/x/sys/...",
				"net", "net/http/...", "log/...", "runtime/debug", "plugin",
			},
			reason: "no I/O: the same packets and facts give the same verdict on every machine",
		},
		{
			from: "./analyze/pages/...", to: []string{"./...", thirdParty},
			reason: "it may speak to the kernel, because it knows nothing that a verdict is made of",
		},
		{
			from: "./analyze/...", to: []string{"math/rand/...", "crypto/rand"},
			reason: "the output is deterministic: a change record that cannot be made again proves nothing",
		},
		{
			from: "./analyze/...", except: []string{"./analyze/cluster/..."}, to: []string{"encoding/...", "sigs.k8s.io/yaml/..."},
			but:    []string{"encoding/binary", "encoding/hex"},
			reason: "formats of the cluster's facts are known in one place, so that the rules see facts and no syntax",
		},

		// report: one record, several writers.
		{
			from: "./report/...", to: []string{"./capture/..."}, but: []string{"./capture/wire/..."},
			reason: "a writer prints what the record says, and cannot look at the packets again",
		},
		{
			from: "./report/...", to: []string{"os/...", "io/ioutil", "net", "net/http/...", "syscall/...", "golang.org/x/sys/..."},
			reason: "a writer is given where to write: it opens no file and asks no terminal",
		},
		{
			from: "./...", except: []string{"./report/...", "./cmd/..."}, to: []string{"github.com/fatih/color/..."},
			reason: "colour is dress: nothing before the writers may depend on it",
		},

		{
			from: "./...", except: []string{"./capture/live/..."}, to: []string{"github.com/ti-mo/conntrack/..."},
			reason: "the kernel is asked where the packets are captured: everybody else gets its entries as values",
		},

		// cmd: flags, files, clock, terminal, exit code.
		{
			from: "./...", except: []string{"./cmd/..."}, to: []string{"github.com/spf13/...", "flag"},
			reason: "what was typed becomes options in cmd: every other room can be used without a command line",
		},
		{
			from: "./...", except: []string{"./cmd/...", "./capture/live/..."}, to: []string{"log/..."},
			reason: "a library returns what it has to say; only what runs for long may log",
		},

		// Everywhere.
		{
			from: "./...", to: []string{"testing/...", "github.com/rogpeppe/go-internal/...", "github.com/google/go-cmp/..."},
			reason: "no test hooks in production code",
		},
		{
			from: "./...", except: []string{"./capture/live/...", "./analyze/pages/..."}, to: []string{"unsafe"},
			reason: "all input is hostile: a slip of the decoder must be an error and never another variable's memory; " +
				"a live capture shares a ring with the kernel, whose status words have to be read atomically, and pages names memory to the kernel " +
				"without reading it",
		},
		{
			from: "./...", to: []string{thirdParty},
			but: []string{
				"github.com/google/gopacket/...", "github.com/spf13/cobra/...", "github.com/spf13/pflag/...",
				"github.com/fatih/color/...", "github.com/klauspost/compress/...", "github.com/ti-mo/conntrack/...", "sigs.k8s.io/yaml/...",
				"golang.org/x/sys/...",
				// Named by the rule above, with its own reason.
				"github.com/rogpeppe/go-internal/...", "github.com/google/go-cmp/...",
			},
			reason: "a dependency is a decision: name it here, and say in the commit why it is worth having",
		},
	}
}

// thirdParty matches import paths of other modules: those whose first element has a dot and that are not ours.
const thirdParty = "(other modules)"

// rooms are the places where packages live.
func rooms() []string {
	return []string{"./cmd/...", "./capture/...", "./analyze/...", "./report/..."}
}

func TestImportLaw(t *testing.T) {
	// A file that one build leaves out is under the law all the same.
	for _, build := range [][]string{
		{"GOOS=linux", "CGO_ENABLED=1"},
		{"GOOS=linux", "CGO_ENABLED=0"},
		{"GOOS=darwin", "CGO_ENABLED=1"},
		{"GOOS=windows", "CGO_ENABLED=0"},
	} {
		t.Run(strings.Join(build, ","), func(t *testing.T) {
			packages := listPackages(t, build)
			if len(packages) == 0 {
				t.Fatal("go list names no package: the law was not checked")
			}
			for _, p := range packages {
				if !slices.ContainsFunc(rooms(), func(room string) bool { return matchImport(room, p.ImportPath) }) {
					t.Errorf("%s lives in no room: the rooms are %s", p.ImportPath, strings.Join(rooms(), " "))
				}
				for _, breach := range breaches(importLaw(), p) {
					t.Error(breach)
				}
			}
		})
	}
}

// TestImportLawBites breaks each row once and uses each of its exceptions: a matcher that is wrong, or an exception that
// is too wide, would void a row and nobody would know.
func TestImportLawBites(t *testing.T) {
	for _, rule := range importLaw() {
		row := []importRule{rule}
		from := samplePath(rule.from)
		if rule.from == "./..." {
			from = samplePath(rooms()[slices.IndexFunc(rooms(), func(room string) bool { return !slices.Contains(rule.except, room) })])
		}
		for _, to := range rule.to {
			p := listedPackage{ImportPath: from, Imports: []string{samplePath(to)}}
			if len(breaches(row, p)) != 1 {
				t.Errorf("%s imports %s, and the row that forbids it says nothing: %s", from, p.Imports[0], rule.reason)
			}
			for _, except := range rule.except {
				p.ImportPath = samplePath(except)
				if got := breaches(row, p); len(got) != 0 {
					t.Errorf("%s is excepted, and yet: %v", p.ImportPath, got)
				}
			}
		}
		for _, but := range rule.but {
			p := listedPackage{ImportPath: from, Imports: []string{samplePath(but)}}
			if got := breaches(row, p); len(got) != 0 {
				t.Errorf("%s may be imported, and yet: %v", p.Imports[0], got)
			}
		}
	}
}

// samplePath returns an import path that the pattern matches.
func samplePath(pattern string) string {
	if pattern == thirdParty {
		return "example.com/other/module"
	}
	if below, ok := strings.CutPrefix(pattern, "./"); ok {
		pattern = modulePath + "/" + below
	}
	return strings.TrimSuffix(pattern, "/...")
}

// breaches returns a sentence for each import of p that a rule forbids.
func breaches(law []importRule, p listedPackage) []string {
	matches := func(path string) func(pattern string) bool {
		return func(pattern string) bool { return matchImport(pattern, path) }
	}
	var found []string
	for _, rule := range law {
		if !matchImport(rule.from, p.ImportPath) || slices.ContainsFunc(rule.except, matches(p.ImportPath)) {
			continue
		}
		for _, path := range p.Imports {
			if slices.ContainsFunc(rule.to, matches(path)) && !slices.ContainsFunc(rule.but, matches(path)) {
				found = append(found, fmt.Sprintf("%s must not import %s: %s", p.ImportPath, path, rule.reason))
			}
		}
	}
	return found
}

// matchImport tells whether an import path matches a pattern of importRule.
func matchImport(pattern, path string) bool {
	if pattern == thirdParty {
		first, _, _ := strings.Cut(path, "/")
		return strings.Contains(first, ".") && !matchImport("./...", path)
	}
	if below, ok := strings.CutPrefix(pattern, "./"); ok {
		pattern = modulePath + "/" + below
	}
	prefix, tree := strings.CutSuffix(pattern, "/...")
	return path == prefix || tree && strings.HasPrefix(path, prefix+"/")
}

// listedPackage is what the law needs to know of a package; the field names are the go command's.
type listedPackage struct {
	ImportPath string
	Imports    []string // of files that are not tests; "C" among them where a file uses cgo
}

// listPackages returns the module's packages as one build sees them. What does not build is listed all the same (-e):
// that is the compiler's to say, and it must not hide a breach.
func listPackages(t *testing.T, build []string) []listedPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), build...)
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			stderr = exit.Stderr
		}
		t.Fatalf("%s: %v\n%s", cmd, err, stderr)
	}
	var packages []listedPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("%s: %v", cmd, err)
		}
		packages = append(packages, p)
	}
}
