package main

import (
	"errors"
	"fmt"
	"maps"
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
	// run makes the situation. It prepares rules and servers, calls capture once, which starts all captures, and makes
	// the traffic.
	run   func(l *lab, capture func())
	shows []sight
	check func(t labT, frames map[string][]labFrame) // what no sight can say; may be nil
	want  []want
}

// want is what an analysis must say of one request.
type want struct {
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
	took     time.Duration
	err      error // the scenario did not happen, or not as it says
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
const labParallel = 4

// labCache holds the results of this test binary's run: every scenario happens once, whoever asks for it.
var labCache = struct {
	sync.Mutex
	results map[string]*scenarioResult
}{results: map[string]*scenarioResult{}}

// labCaptures returns the results of the named scenarios, of all without names; it makes those that were not made yet.
// It skips the test where the lab cannot run. A scenario that did not happen is an error of the test, and not returned.
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
		if r := results[name]; r.err != nil {
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

// make makes the scenario happen and checks that it did.
func (r *scenarioResult) make() {
	start := time.Now()
	t := &scenarioT{failure: errors.New("ended early")}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.cleanup()
		r.inLab(t)
		t.failure = nil
	}()
	<-done
	r.err, r.took = t.failure, time.Since(start)
	if r.err == nil && len(t.logged) > 0 {
		r.err = errors.New(strings.Join(t.logged, "\n"))
	}
}

func (r *scenarioResult) inLab(t labT) {
	l := newLab(t, r.name, r.kind)
	var dumps []*tcpdump
	r.run(l, func() {
		for _, tap := range labTaps(r.filter) {
			dumps = append(dumps, l.startTcpdump(tap))
		}
	})
	settle(dumps)
	r.captures = map[string]labCapture{}
	for _, d := range dumps {
		r.captures[d.name] = d.stop()
	}
	r.links = l.node.links()
	r.rules = l.node.run("iptables-save") + l.node.run("ip6tables-save")

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
	for _, s := range r.shows {
		if _, ok := frames[s.in()]; !ok {
			continue
		}
		if n := s.count(frames[s.in()]); !s.holds(n) {
			failed = append(failed, fmt.Errorf("%d frames of %q, want %s", n, s.String(), s.wanted()))
		}
	}
	if r.check != nil && len(failed) == 0 {
		r.check(t, frames)
	}
	return errors.Join(failed...)
}

func TestLabScenarios(t *testing.T) {
	results := labCaptures(t)
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		t.Logf("%-26s %4.1f s, any.pcap %d bytes", name, r.took.Seconds(), len(r.captures["any"].pcap))
	}
}

// The addresses again, as requests. Of the node's uplink alone, the client is the address that left.
const (
	podTCP  = "tcp " + podIP + " > " + farIP + ":80"
	nodeTCP = "tcp " + nodeIP + " > " + farIP + ":80"
	podEcho = "icmp " + podIP + " > " + farIP
)

const (
	brief   = time.Second             // for what is answered at once
	silence = 2300 * time.Millisecond // for what is not: three SYNs, one a second (tcp_syn_linear_timeouts, Linux 6.5)
)

var (
	factsFlags  = []string{"--pod-cidr", podCIDR, "--node-ip", nodeIP}
	facts6Flags = []string{"--pod-cidr", podCIDR6, "--node-ip", nodeIP6}
)

// views says what each capture must give of one outbound request of the Pod: on all interfaces, with and without a
// filter, w itself; on the uplink alone the same for the address that left; inside the Pod, nothing about the source; and
// beside the far host's capture, where packets stop.
func views(w want, egress, stoppedWithFar string) []want {
	w.direction = "outbound"
	near := func(name string) want { w.near = name; return w }
	uplink, inside, both := near("uplink"), near("inside"), near("any")
	uplink.request = egress
	inside.source = []string{"unknown"}
	both.far, both.stoppedAt = "far", []string{stoppedWithFar}
	return []want{near("any"), near("all"), uplink, inside, both}
}

// labScenarios is the table. Rows with the same filter differ in rules or traffic only.
func labScenarios() []scenario {
	const host = "host " + farIP
	return []scenario{
		{
			name: "before", kind: bridged, filter: host, facts: factsFlags,
			about: "The agent's default list keeps the Pod's address for 10.0.0.0/8, and the far side has no way back to it: " +
				"the Pod's ping and its request to " + farIP + ":80 leave with the Pod's address and stay without an answer, " +
				"while the node's own request to the same server completes.",
			run: func(l *lab, capture func()) {
				l.masq(false, keepDefault...)
				l.far.serveTCP(farIP + ":80")
				l.pod.optionalSysctl("net.ipv4.tcp_syn_linear_timeouts=0") // as nodes with older kernels: at 0, 1 and 3 s
				capture()
				l.expect(l.pod.ping(farIP, 300*time.Millisecond), timeout, "the Pod's ping")
				l.expect(l.pod.tcp(farIP+":80", 4200*time.Millisecond), timeout, "the Pod's request")
				l.expect(l.node.tcp(farIP+":80", brief), completed, "the node's request")
			},
			shows: []sight{
				exactly(3, "any veth0 in", podTCP+" S ttl 64"),
				exactly(3, "any cbr0 in", podTCP+" S ttl 64"),
				exactly(3, "any eth0 out", podTCP+" S ttl 63"),
				none("any", "tcp "+farIP+":80 > "+podIP),
				exactly(1, "any eth0 out", podEcho+" 8/0"),
				none("any", "icmp "+farIP+" > * 0/0"),
				some("any eth0 in", "tcp "+farIP+":80 > "+nodeIP+" SA"),
				exactly(3, "far", podTCP+" S"),
				atLeast(3, "far", "tcp "+farIP+":80 > "+podIP+" SA"),
				atLeast(3, "far", "icmp "+routerFar+" > "+farIP+" 3/0"),
			},
			want: append(append(views(want{
				request: podTCP, source: []string{"pod-sourced"}, outcome: "request-only",
				stoppedAt: []string{"unknown"}, completed: "false",
			}, podTCP, "return"), views(want{
				request: podEcho, source: []string{"pod-sourced"}, outcome: "request-only",
				stoppedAt: []string{"unknown"},
			}, podEcho, "return")...), want{
				near: "any", request: nodeTCP, direction: "outbound", source: []string{"node-own"},
				outcome: "handshake-completed", stoppedAt: []string{"none"}, completed: "true",
			}, want{
				far: "far", request: podTCP, source: []string{"pod-sourced"}, outcome: "half-open",
				stoppedAt: []string{"return"}, completed: "false",
			}),
		},
		{
			name: "after", kind: bridged, filter: host, facts: factsFlags,
			about: "The agent's list is narrowed to the cluster's own ranges: the same ping and the same request to " +
				farIP + ":80 leave with the node's address, with ports that the kernel chose (--random-fully), and complete.",
			run: func(l *lab, capture func()) {
				l.masq(true, keepNarrowed...)
				l.far.serveTCP(farIP + ":80")
				capture()
				l.expect(l.pod.ping(farIP, brief), completed, "the Pod's ping")
				l.expect(l.pod.tcp(farIP+":80", brief), completed, "the Pod's request")
				l.expect(l.node.tcp(farIP+":80", brief), completed, "the node's request")
			},
			shows: []sight{
				exactly(1, "any veth0 in", podTCP+" S ttl 64"),
				exactly(1, "any cbr0 in", podTCP+" S ttl 64"),
				exactly(1, "any eth0 out", nodeTCP+" S ttl 63"),
				exactly(1, "any eth0 out", nodeTCP+" S ttl 64"),
				none("any eth0 out", "tcp "+podIP+" > *"),
				some("any veth0 out", "tcp "+farIP+":80 > "+podIP+" SA"),
				some("any veth0 out", "tcp "+farIP+":80 > "+podIP+" A data"),
				exactly(1, "any eth0 out", "icmp "+nodeIP+" > "+farIP+" 8/0"),
				exactly(1, "any veth0 out", "icmp "+farIP+" > "+podIP+" 0/0"),
				exactly(2, "far", nodeTCP+" S"),
				none("far", "tcp "+podIP+" > *"),
			},
			want: append(append(views(want{
				request: podTCP, source: []string{"node-snated"}, outcome: "handshake-completed",
				stoppedAt: []string{"none"}, completed: "true",
			}, nodeTCP, "none")[0:2], views(want{
				request: podEcho, source: []string{"node-snated"}, outcome: "answered",
				stoppedAt: []string{"none"},
			}, "icmp "+nodeIP+" > "+farIP, "none")...), want{
				near: "any", request: nodeTCP, direction: "outbound", source: []string{"node-own"},
				outcome: "handshake-completed", stoppedAt: []string{"none"}, completed: "true",
			}),
		},
	}
}
