package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var benchLive = flag.Bool("bench-live", false, "hold live capture against tcpdump: TestBenchLive")

// TestBenchLive prints what tcpdump -i any -w and srcproof capture -i any -w cost at the highest rate at which tcpdump drops
// nothing: a generator sends datagrams over a veth pair, both are captured in the receiver's namespace, one after the other. It is
// run by make bench-live.
func TestBenchLive(t *testing.T) {
	if !*benchLive {
		t.Skip("measures only with -bench-live: make bench-live")
	}
	requireLab(t)
	l := newLab(t, "bench", bridged)
	bin := filepath.Join(t.TempDir(), program)
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const long = 4 * time.Second
	dir := t.TempDir()
	tcpdump := func() []string {
		return []string{"tcpdump", "-n", "-i", "any", "-w", filepath.Join(dir, "t.pcap"), "udp"}
	}
	mine := func() []string {
		return []string{bin, "capture", "-i", "any", "-w", filepath.Join(dir, "s.pcapng"), "--write-only", "udp"}
	}
	whole := func() []string { return append(mine()[:len(mine())-1:len(mine())-1], "-s", "0", "udp") }
	run := func(command []string, rate int) benchRun {
		t.Helper()
		r := benchRun{rate: rate}
		cmd := exec.Command("ip", append([]string{"netns", "exec", l.far.ns}, command...)...)
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make(chan string, 1)
		ready := make(chan bool, 1)
		go func() {
			var all strings.Builder
			for lines := bufio.NewScanner(stderr); lines.Scan(); {
				if strings.Contains(lines.Text(), "listening on") || strings.Contains(lines.Text(), "capturing on") {
					ready <- true
				}
				all.WriteString(lines.Text() + "\n")
			}
			said <- all.String()
		}()
		<-ready
		r.sent, _ = strconv.Atoi(l.node.agent.must(labRequest{Op: "flood", Addr: farIP + ":9", Bytes: rate, Wait: long}))
		time.Sleep(500 * time.Millisecond)
		_ = cmd.Process.Signal(os.Interrupt)
		text := <-said
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if m := regexp.MustCompile(`(\d+) packets? captured`).FindStringSubmatch(text); m != nil {
			r.captured, _ = strconv.Atoi(m[1])
		}
		if m := regexp.MustCompile(`(\d+) (?:packets? dropped|DROPPED) by(?: the)? kernel`).FindStringSubmatch(text); m != nil {
			r.dropped, _ = strconv.Atoi(m[1])
		}
		return r
	}
	best := 0
	for _, rate := range []int{25_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000, 400_000} {
		r := run(tcpdump(), rate)
		fmt.Printf("tcpdump at %6d/s: sent %7d captured %7d dropped %6d cpu %v\n", rate, r.sent, r.captured, r.dropped, r.cpu.Round(time.Millisecond))
		if r.dropped > 0 || r.sent < rate*int(long/time.Second)*8/10 {
			break
		}
		best = rate
	}
	if best == 0 {
		t.Fatal("tcpdump drops at every rate")
	}
	const times = 5
	costs := map[string][]float64{}
	for range times {
		for _, c := range []struct {
			name string
			args []string
		}{{"tcpdump -w", tcpdump()}, {"srcproof -w --write-only", mine()}, {"srcproof -w --write-only -s 0", whole()}} {
			r := run(c.args, best)
			if r.captured > 0 {
				costs[c.name] = append(costs[c.name], float64(r.cpu.Nanoseconds())/float64(r.captured))
			}
			fmt.Printf("%-30s at %d/s: sent %d captured %d dropped %d cpu %v\n", c.name, best, r.sent, r.captured, r.dropped, r.cpu.Round(time.Millisecond))
		}
	}
	base := 0.0
	fmt.Printf("\n%-30s %10s %10s %10s  (processor ns a packet, %d runs)\n", "", "min", "median", "max", times)
	for _, name := range []string{"tcpdump -w", "srcproof -w --write-only", "srcproof -w --write-only -s 0"} {
		c := costs[name]
		slices.Sort(c)
		if len(c) == 0 {
			continue
		}
		if base == 0 {
			base = c[len(c)/2]
		}
		fmt.Printf("%-30s %10.0f %10.0f %10.0f  %.2f x tcpdump\n", name, c[0], c[len(c)/2], c[len(c)-1], c[len(c)/2]/base)
	}
}

type benchRun struct {
	rate, sent, captured, dropped int
	cpu                           time.Duration
}
