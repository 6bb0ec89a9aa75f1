package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	benchFiles = flag.Bool("bench-files", false, "hold the analysis of files against tcpdump's bare read: TestBenchFiles")
	benchFlows = flag.Int("bench-flows", 400_000, "TCP connections in the captures of TestBenchFiles")
	benchRuns  = flag.Int("bench-runs", 5, "times that each command of TestBenchFiles is run")
)

// benchCost is what one run of a command cost.
type benchCost struct {
	Wall, CPU time.Duration
	Memory    int64 // peak resident set, bytes; 0 where the system does not tell
}

// benchCommand is a row of the table. of are the files whose bare read by tcpdump it is compared with.
type benchCommand struct {
	name  string
	of    []string
	args  []string
	check func(summary benchSummary) error // of srcproof's: the result against the truth; nil of others
}

// benchSummary is the summary row of -o jsonl.
type benchSummary struct {
	Requests  int            `json:"requests"`
	BySource  map[string]int `json:"by_source"`
	ByOutcome map[string]int `json:"by_outcome"`
	ByStopped map[string]int `json:"by_stopped_at"`
}

// TestBenchFiles prints what commands cost on captures that it makes, beside tcpdump's bare read and copy of the same files in the same
// round, after it has held each result against the truth that the captures were made from. It is run by make bench.
func TestBenchFiles(t *testing.T) {
	if !*benchFiles {
		t.Skip("measures only with -bench-files: make bench")
	}
	if _, err := exec.LookPath("tcpdump"); err != nil {
		t.Fatal("needs tcpdump, for the cost of a bare read")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, program)
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	uplink := benchCapture{flows: *benchFlows}
	captures := map[string]benchCapture{
		"near.pcap": uplink, "far.pcap": {flows: *benchFlows, far: true}, "any.pcap": {flows: *benchFlows / 3, any: true},
		"tenth.pcap": {flows: *benchFlows / 10}, "long.pcap": {flows: *benchFlows / 100, long: 400},
		"syn.pcap": {flows: *benchFlows * 5 / 2, first: true}, "one.pcap": {flows: 1, long: *benchFlows * 25 / 2}, "isn.pcap": {flows: *benchFlows / 4, isn: 7},
	}
	names := []string{"near.pcap", "far.pcap", "any.pcap", "tenth.pcap", "long.pcap", "syn.pcap", "one.pcap", "isn.pcap"}

	for _, name := range names {
		n, err := captures[name].file(path(name))
		if err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path(name))
		if err != nil {
			t.Fatal(err)
		}

		fmt.Printf("%-10s  %9d packets  %7d connections  %4d MB\n", name, n, captures[name].flows, st.Size()/1_000_000)
	}
	for _, tool := range []string{"gzip", "zstd"} {
		if _, err := exec.LookPath(tool); err == nil {
			if out, err := exec.Command(tool, "-qkf", path("near.pcap")).CombinedOutput(); err != nil {
				t.Fatalf("%s: %s", tool, out)
			}
		}
	}
	var commands []benchCommand
	bare := func(name string) benchCommand {
		return benchCommand{name: "tcpdump -w /dev/null " + name, of: []string{name}, args: []string{"tcpdump", "-r", path(name), "-w", "/dev/null"}}
	}
	facts := []string{"--pod-cidr", "10.4.0.0/16", "--node-ip", "10.128.0.10"}
	analyze := func(of, file string) benchCommand {
		c := captures[of]
		return benchCommand{
			name: "srcproof analyze " + file, of: []string{of}, args: append([]string{bin, "analyze", path(file)}, facts...),
			check: func(s benchSummary) error { return c.checkNear(s) },
		}
	}
	for _, name := range names {
		commands = append(commands, bare(name))
	}
	for _, name := range names {
		if name != "far.pcap" {
			commands = append(commands, analyze(name, name))
		}
	}
	jsonl := analyze("near.pcap", "near.pcap")
	jsonl.name += " -o jsonl"
	jsonl.args = append(jsonl.args, "-o", "jsonl")
	commands = append(commands, jsonl)
	commands = append(commands, benchCommand{
		name: "srcproof compare near.pcap far.pcap", of: []string{"near.pcap", "far.pcap"},
		args:  append([]string{bin, "compare", "--near", path("near.pcap"), "--far", path("far.pcap"), "--near-filter", "", "--far-filter", ""}, facts...),
		check: uplink.checkPair,
	})
	for tool, file := range map[string]string{"gzip": "near.pcap.gz", "zstd": "near.pcap.zst"} {
		if _, err := os.Stat(path(file)); err == nil {
			commands = append(commands, benchCommand{name: tool + " -dc " + file, of: []string{"near.pcap"}, args: []string{tool, "-dc", path(file)}}, analyze("near.pcap", file))
		}
	}
	for _, peer := range [][]string{
		{"nfpcapd", "-r", path("near.pcap"), "-w", dir},
		{"argus", "-r", path("near.pcap"), "-w", "/dev/null"},
		{"tshark", "-r", path("near.pcap"), "-q", "-z", "conv,tcp"},
	} {
		if _, err := exec.LookPath(peer[0]); err == nil {
			commands = append(commands, benchCommand{name: strings.Join(peer[:1], " ") + " near.pcap", of: []string{"near.pcap"}, args: peer})
		}
	}
	for _, c := range commands {
		if c.check == nil {
			continue
		}
		args := c.args
		if !slices.Contains(args, "jsonl") {
			args = append(slices.Clone(args), "-o", "jsonl")
		}
		s, err := benchResult(args)
		if err == nil {
			err = c.check(s)
		}
		if err != nil {
			t.Fatalf("%s: not what the capture was made from: %v", c.name, err)
		}
	}
	costs := make([][]benchCost, len(commands))
	for range *benchRuns {
		for i, c := range commands {
			var errs bytes.Buffer
			cmd := exec.CommandContext(t.Context(), c.args[0], c.args[1:]...)
			cmd.Stderr = &errs
			cost, err := runMeasured(t, cmd)
			if err == nil && !cmd.ProcessState.Success() {
				err = fmt.Errorf("%v: %s", cmd.ProcessState, errs.String())
			}
			if err != nil {
				t.Fatalf("%s: %v", strings.Join(c.args, " "), err)
			}
			costs[i] = append(costs[i], cost)
		}
	}
	fmt.Printf("\n%s, %d processors, %d rounds; minimum, median and maximum; times are to the bare read of the same round\n\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), *benchRuns)
	fmt.Printf("%-40s %22s %22s %20s %20s %8s\n", "", "wall, s", "processor, s", "wall / bare", "processor / bare", "MB")
	for i, c := range commands {
		var wall, cpu, wallRatio, cpuRatio []float64
		memory := int64(0)
		for round, cost := range costs[i] {
			wall, cpu = append(wall, cost.Wall.Seconds()), append(cpu, cost.CPU.Seconds())
			memory = max(memory, cost.Memory)
			var base benchCost
			for k := range commands {
				if len(commands[k].of) == 1 && strings.HasPrefix(commands[k].name, "tcpdump") && slices.Contains(c.of, commands[k].of[0]) {
					base.Wall += costs[k][round].Wall
					base.CPU += costs[k][round].CPU
				}
			}
			wallRatio, cpuRatio = append(wallRatio, cost.Wall.Seconds()/base.Wall.Seconds()), append(cpuRatio, cost.CPU.Seconds()/base.CPU.Seconds())
		}
		fmt.Printf("%-40s %22s %22s %20s %20s %8d\n", c.name, spread(wall), spread(cpu), spread(wallRatio), spread(cpuRatio), memory/1_000_000)
	}
}

// spread is minimum, median and maximum.
func spread(v []float64) string {
	v = slices.Sorted(slices.Values(v))
	return fmt.Sprintf("%.2f %.2f %.2f", v[0], v[len(v)/2], v[len(v)-1])
}

// runMeasured runs a command and tells what it cost. A command that ends with an exit code of its own is no error: it stands in
// cmd.ProcessState.
func runMeasured(t *testing.T, cmd *exec.Cmd) (cost benchCost, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cost")
	cmd.Env = append(cmd.Environ(), "COST="+path)
	if cmd.Path, err = exec.LookPath("measured"); err != nil {
		return cost, err
	}
	cmd.Args = append([]string{"measured"}, cmd.Args...)
	if err := cmd.Run(); err != nil && !isExit(err) {
		return cost, err
	}
	written, err := os.ReadFile(path)
	if err != nil {
		return cost, err
	}
	return cost, json.Unmarshal(written, &cost)
}

// measured is the process between: it runs the command in its arguments and writes what it cost to the file COST names. A child's peak of
// memory begins at what its parent has, and that is little here, whatever the tests before it left.
func measured() {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
	cmd := exec.CommandContext(context.Background(), os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	start := time.Now()
	err := cmd.Run()
	if err != nil && !isExit(err) {
		fail(err)
	}
	p := cmd.ProcessState
	cost, err := json.Marshal(benchCost{time.Since(start), p.UserTime() + p.SystemTime(), peakMemory(p)})
	if err != nil {
		fail(err)
	}
	if err := os.WriteFile(os.Getenv("COST"), cost, 0o600); err != nil {
		fail(err)
	}
	os.Exit(p.ExitCode())
}

// benchResult is the summary of a run with -o jsonl: its last line.
func benchResult(args []string) (s benchSummary, err error) {
	cmd := exec.Command(args[0], args[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	var last []byte
	for lines := bufio.NewReaderSize(out, 1<<20); err == nil; {
		var line []byte
		if line, err = lines.ReadSlice('\n'); bytes.HasPrefix(line, []byte(`{"type":"summary"`)) {
			last = bytes.Clone(line)
		} else if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
	}
	if err := cmd.Wait(); err != nil {
		return s, err
	}
	return s, json.Unmarshal(last, &s)
}

// checkNear holds a result of the near side alone against the truth.
func (c benchCapture) checkNear(s benchSummary) error {
	f := c.truth()
	if c.first { // a flood of openings: most are let go, and what is kept is right
		return benchEqual(s.Requests, s, nil, map[string]int{"request-only": s.Requests}, nil)
	}
	return benchEqual(c.flows, s, map[string]int{"node-snated": c.flows},
		map[string]int{"handshake-completed": f[benchAnswered], "request-only": f[benchSilent] + f[benchLost], "refused": f[benchRefused]}, nil)
}

// checkPair holds a comparison against the truth.
func (c benchCapture) checkPair(s benchSummary) error {
	f := c.truth()
	return benchEqual(c.flows, s, map[string]int{"node-snated": c.flows},
		map[string]int{"handshake-completed": f[benchAnswered], "request-only": f[benchSilent] + f[benchLost], "refused": f[benchRefused]},
		map[string]int{"none": f[benchAnswered] + f[benchRefused], "far": f[benchSilent], "between": f[benchLost]})
}

func benchEqual(flows int, s benchSummary, source, outcome, stopped map[string]int) error {
	if s.Requests != flows {
		return fmt.Errorf("%d requests of %d", s.Requests, flows)
	}
	for _, c := range []struct {
		name      string
		got, want map[string]int
	}{{"source", s.BySource, source}, {"outcome", s.ByOutcome, outcome}, {"stopped_at", s.ByStopped, stopped}} {
		for word, n := range c.got {
			if c.want != nil && c.want[word] != n {
				return fmt.Errorf("%s %s: %d of %d", c.name, word, n, c.want[word])
			}
		}
	}
	return nil
}
