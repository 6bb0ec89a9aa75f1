package main

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// scenario is a situation that the lab makes: what is done in it, what its captures then show (or it did not happen,
// and fails), and what a tool that reads the captures must say.
type scenario struct {
	name   string
	about  string // what it shows: a sentence for people
	kind   labKind
	filter string   // of the captures any and uplink, as a person writes it
	facts  []string // flags for the analysis of every capture of it
	taps   []labTap // captures beside those that every scenario has
	// run makes the situation. It prepares rules and servers, calls capture once, which starts all captures, and makes
	// the traffic.
	run   func(l *lab, capture func())
	shows []sight
	check func(t labT, frames []labFrame) // of the capture any, what no sight can say; may be nil
	want  []labWant
}

// labWant is what an analysis must say of one request.
type labWant struct {
	near, far string   // the captures given: near alone, far alone, or both for a comparison
	flags     []string // beside the scenario's facts
	request   string   // as --request takes it
	direction string
	source    []string // any of these
	outcome   string
	stoppedAt []string // any of these; none: not asserted
	completed string   // "true", "false", or "" for not asserted
}

// scenarioResult is a scenario that happened: its captures, and what else a person can ask the node for.
type scenarioResult struct {
	scenario
	captures map[string]labCapture // by the names of labTaps
	links    string                // `ip -o link` on the node
	rules    string                // `iptables-save` on the node; of ip6tables behind it
	tracked  string                // `conntrack -L` on the node, "" where the program is missing
	took     time.Duration
	err      error  // the scenario did not happen, or not as it says
	lacks    string // what this kernel lacks that it needs: then it did not happen either, and that is no error
}

// path stores a capture for the length of a test and returns its path.
func (r *scenarioResult) path(t *testing.T, name string) string {
	t.Helper()
	c, ok := r.captures[name]
	if !ok {
		t.Fatalf("scenario %s has no capture %q", r.name, name)
	}
	return writeCapture(t, t.TempDir(), name, c.pcap)
}

// labParallel is how many labs run at a time. Most of a scenario is waiting for a timeout.
const labParallel = 6

// labCache holds the results of this test binary's run: every scenario happens once, whoever asks for it.
var labCache = struct {
	sync.Mutex
	results map[string]*scenarioResult
}{results: map[string]*scenarioResult{}}

// labCaptures returns the results of the named scenarios, of all without names; it makes those that were not made yet.
// It skips the test where the lab cannot run. A scenario that did not happen is an error of the test, and not returned;
// one that this kernel cannot make is not returned either.
func labCaptures(t *testing.T, names ...string) map[string]*scenarioResult {
	t.Helper()
	requireLab(t)
	labCache.Lock()
	defer labCache.Unlock()
	results := map[string]*scenarioResult{}
	slots := make(chan struct{}, labParallel)
	var wait sync.WaitGroup
	for _, sc := range labScenarios() {
		if len(names) > 0 && !slices.Contains(names, sc.name) {
			continue
		}
		r := labCache.results[sc.name]
		if r == nil {
			r = &scenarioResult{scenario: sc}
			labCache.results[sc.name] = r
			wait.Go(func() {
				slots <- struct{}{}
				r.make()
				<-slots
			})
		}
		results[sc.name] = r
	}
	wait.Wait()
	for _, name := range names {
		if results[name] == nil {
			t.Fatalf("no scenario %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		switch r := results[name]; {
		case r.lacks != "":
			t.Logf("not checked: scenario %s: this kernel lacks %s", name, r.lacks)
			delete(results, name)
		case r.err != nil:
			t.Errorf("scenario %s: %v", name, r.err)
			delete(results, name)
		}
	}
	return results
}

// scenarioT is a labT outside of any test: its first failure ends the scenario's goroutine.
type scenarioT struct {
	cleanups []func()
	failure  error
	logged   []string
}

func (t *scenarioT) Helper()          {}
func (t *scenarioT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *scenarioT) Logf(format string, args ...any) {
	t.logged = append(t.logged, fmt.Sprintf(format, args...))
}

func (t *scenarioT) Fatalf(format string, args ...any) {
	t.failure = fmt.Errorf(format, args...)
	runtime.Goexit()
}

func (t *scenarioT) cleanup() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// make makes the scenario happen and checks that it did. Only whole captures count: a neighbour solicitation that comes
// between the last read and the end of a capture without a filter is reason enough to do it again, a few times.
func (r *scenarioResult) make() {
	start := time.Now()
	missed := ""
	for range 4 {
		missed = ""
		t := &scenarioT{failure: errors.New("ended early")}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer t.cleanup()
			r.inLab(t)
			t.failure = nil
		}()
		<-done
		r.err = t.failure
		if r.err == nil && len(t.logged) > 0 {
			r.err = errors.New(strings.Join(t.logged, "\n"))
		}
		for _, name := range slices.Sorted(maps.Keys(r.captures)) {
			if n := r.captures[name].missed; n > 0 {
				missed += fmt.Sprintf("%s.pcap lacks %d packets; ", name, n)
			}
		}
		if missed == "" {
			break
		}
	}
	if missed != "" {
		r.err = errors.Join(errors.New(missed), r.err)
	}
	r.took = time.Since(start)
}

// inLab makes the scenario in a lab of its own.
func (r *scenarioResult) inLab(t labT) {
	r.captures = map[string]labCapture{}
	l := newLab(t, r.name, r.kind)
	defer func() { r.lacks = l.lacks }()
	var dumps []*labTcpdump
	r.run(l, func() {
		for _, tap := range slices.Concat(labTaps(r.filter), r.taps) {
			dumps = append(dumps, l.startTcpdump(tap))
		}
	})
	labSettle(dumps)
	for _, d := range dumps {
		r.captures[d.name] = d.stop()
	}
	r.links = l.node.links()
	r.rules = l.node.run("iptables-save") + l.node.run("ip6tables-save")
	if _, err := exec.LookPath("conntrack"); err == nil {
		r.tracked = l.node.run("conntrack", "-L") + l.node.run("conntrack", "-L", "-f", "ipv6")
	}

	names := map[string]map[uint32]string{"any": linkNames(r.links), "rtr": linkNames(l.rtr.links())}
	names["all"] = names["any"]
	if err := r.verify(t, names); err != nil {
		t.Fatalf("%v", err)
	}
}

// verify reads the captures and checks what the scenario says of them. Sights of captures that are not there are left
// out: a stored case keeps only some. names gives interface names by capture and index.
func (r *scenarioResult) verify(t labT, names map[string]map[uint32]string) error {
	frames := map[string][]labFrame{}
	for name, c := range r.captures {
		f, err := decodeCapture(c.pcap, names[name])
		if err != nil {
			return fmt.Errorf("%s.pcap: %w", name, err)
		}
		frames[name] = f
	}
	var failed []error
	looked := 0
	for _, s := range r.shows {
		if _, ok := frames[s.in()]; !ok {
			continue
		}
		looked++
		if n := s.count(frames[s.in()]); !s.holds(n) {
			failed = append(failed, fmt.Errorf("%d frames of %q, want %s", n, s.String(), s.wanted()))
		}
	}
	if looked == 0 {
		return fmt.Errorf("the scenario says nothing of the captures %v", slices.Sorted(maps.Keys(frames)))
	}
	if frames, ok := frames["any"]; ok && r.check != nil && len(failed) == 0 {
		r.check(t, frames)
	}
	return errors.Join(failed...)
}

// TestLabScenarios makes every situation happen. That the captures show it is checked by the lab's own decoder, and the
// decoder by tcpdump.
func TestLabScenarios(t *testing.T) {
	results := labCaptures(t)
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		t.Logf("%-26s %4.1f s, any.pcap %d bytes", name, r.took.Seconds(), len(r.captures["any"].pcap))
		frames, err := decodeCapture(r.captures["any"].pcap, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := labCommand("tcpdump", "-n", "-tt", "-r", r.path(t, "any"), "tcp or udp or icmp or icmp6")
		if err != nil {
			t.Fatal(err)
		}
		packets := 0
		for line := range strings.Lines(text) {
			if line[0] >= '0' && line[0] <= '9' { // a time; what is inside a tunnel has a line without one
				packets++
			}
		}
		if packets != len(frames) {
			t.Errorf("scenario %s: tcpdump reads %d packets in any.pcap, the lab %d:\n%s", name, packets, len(frames), text)
		}
	}
}
