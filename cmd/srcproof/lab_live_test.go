//go:build linux

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/wire"
	"github.com/srcproof/srcproof/report"
)

// liveBinary is this test binary under the name by which it is srcproof.
func liveBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), program)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// liveCapture is srcproof capture, running on a lab's node.
type liveCapture struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    labBuffer
	stderr chan string
}

// startLive starts srcproof capture in a namespace and returns once it captures. before is what the command is run by.
func startLive(t *testing.T, h *labHost, before []string, args ...string) *liveCapture {
	t.Helper()
	c := &liveCapture{t: t, stderr: make(chan string, 1)}
	line := slices.Concat([]string{"netns", "exec", h.ns}, before, []string{liveBinary(t), "capture"}, args)
	c.cmd = exec.Command("ip", line...)
	c.cmd.Env = append(os.Environ(), raceEnv)
	c.cmd.Stdout = &c.out
	c.cmd.WaitDelay = 5 * time.Second
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	ready := make(chan bool, 1)
	go func() {
		var said strings.Builder
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "capturing on") {
				ready <- true
			}
		}
		close(ready)
		c.stderr <- said.String()
	}()
	select {
	case <-ready:
	case <-time.After(labCommandTime):
		t.Fatal("srcproof capture does not begin")
	}
	return c
}

const raceEnv = "GORACE=" + raceOptions

// stop ends the capture as a person does and returns what it said and its exit code.
func (c *liveCapture) stop(sig os.Signal) (stdout, stderr string, code int) {
	c.t.Helper()
	_ = c.cmd.Process.Signal(sig) // it may have ended by itself
	return c.wait()
}

func (c *liveCapture) wait() (stdout, stderr string, code int) {
	c.t.Helper()
	stderr = <-c.stderr
	err := c.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	return string(c.out.Bytes()), stderr, code
}

// seenFrame is what a capture says of a frame, whatever its format: where it passed, and what it was.
func seenFrames(t *testing.T, b string, links []string) []string {
	t.Helper()
	r, err := capture.NewReader(strings.NewReader(b), "capture", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for batch := make([]wire.Packet, 512); ; {
		n, err := r.Read(batch)
		for i := range batch[:n] {
			p := &batch[i]
			f := &r.Summary().Interfaces[p.Iface]
			name := f.Name
			if name == "" && int(f.Index) < len(links) {
				name = links[f.Index]
			}
			out = append(out, fmt.Sprintf("%s %s %v flags %d seq %d ack %d ttl %d id %d len %d", name, p.Dir, p.Tuple, p.Flags, p.Seq, p.Ack, p.TTL, p.IPID, p.PayloadLen))
		}
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLabLive captures live through a change, beside tcpdump: the same packets with the same interfaces and directions, the same
// verdicts in the end, and each of them told while it ran.
func TestLabLive(t *testing.T) {
	t.Parallel()
	requireLab(t)
	l := newLab(t, "live", bridged)
	l.masq(true, keepDefault...)
	l.far.serveTCP(server, server2)
	file := filepath.Join(t.TempDir(), "near.pcapng")
	live := startLive(t, l.node, nil, slices.Concat([]string{"-i", "any", "-w", file, "-o", "jsonl"}, nodeFacts, strings.Fields(hostFilter))...)
	dump := l.startTcpdump(labTap{"any", "any", hostFilter, func(l *lab) *labHost { return l.node }})
	l.expect(l.pod.tcp(server, 2*time.Second), endTimeout, "the Pod's request before")
	l.expect(l.node.tcp(server, waitBrief), endCompleted, "the node's request")
	l.masq(true, keepNarrowed...)
	l.expect(l.pod.tcp(server, waitBrief), endCompleted, "the Pod's request after")
	l.expect(l.pod.ping(farIP, waitBrief), endCompleted, "the Pod's ping")
	l.addPod2() // its interface appears while the capture runs
	l.expect(l.pod2.tcp(server2, waitBrief), endCompleted, "the new Pod's request")
	time.Sleep(1500 * time.Millisecond)
	labSettle([]*labTcpdump{dump})
	tcpd := dump.stop()
	stdout, stderr, code := live.stop(os.Interrupt)
	if code != 0 || !strings.Contains(stderr, "none dropped by the kernel") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	mine, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	names := linkNames(l.node.links())
	links := make([]string, 64)
	for i, n := range names {
		links[i] = n
	}
	x, y := seenFrames(t, string(mine), links), seenFrames(t, string(tcpd.pcap), links)
	if len(x) < 60 || !slices.Equal(x, y) {
		t.Errorf("%d packets, tcpdump has %d", len(x), len(y))
		for i := range min(len(x), len(y)) {
			if x[i] != y[i] {
				t.Fatalf("packet %d:\n%s\ntcpdump:\n%s", i+1, x[i], y[i])
			}
		}
	}
	if !slices.ContainsFunc(x, func(s string) bool { return strings.HasPrefix(s, "veth1 in tcp "+pod2IP) }) {
		t.Error("the interface of the new Pod is not in the file")
	}
	// The verdicts of the file are those of tcpdump's.
	facts := factsOf(t, nodeFacts)
	whole := report.New(analyzeBytes(t, tcpd.pcap, wire.SideNear, facts), report.Tool{})
	of := verdictsOf(t, report.New(analyzeBytes(t, mine, wire.SideNear, facts), report.Tool{}))
	for id, want := range verdictsOf(t, whole) {
		if of[id] != want {
			t.Errorf("%s, by tcpdump's capture %s", of[id], want)
		}
	}
	// And each was told live; the last that was said of a request is what the file says.
	told := map[string]string{}
	for line := range strings.Lines(stdout) {
		if strings.HasPrefix(line, `{"type":"request"`) {
			rec, err := report.Decode(strings.NewReader(`{"schema":"srcproof/1","tool":{},"captures":[{"side":"near","window":{"basis":"none"}}],"findings":[],"summary":{"requests":1},"requests":[` + line + `]}`))
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			maps.Copy(told, verdictsOf(t, rec))
		}
	}
	for id, want := range of {
		if told[id] != want {
			t.Errorf("told live: %s, the file says %s", told[id], want)
		}
	}
	if !strings.Contains(stdout, `{"type":"summary"`) {
		t.Error("no summary at the end")
	}
	// tcpdump reads the file to its end.
	text, err := labCommand("tcpdump", "-nr", file)
	if err != nil || strings.Count(text, "\n") < len(x)*9/10 {
		t.Errorf("tcpdump -r: %v, %d lines", err, strings.Count(text, "\n"))
	}
}

// verdictsOf are a record's requests: what is said of each, with its legs.
func verdictsOf(t *testing.T, rec *report.Record) map[string]string {
	t.Helper()
	out := map[string]string{}
	for i := range rec.Requests {
		r := &rec.Requests[i]
		s := fmt.Sprintf("%s %s > %s: %s %s %s %v", r.Proto, r.Client.Addr, r.Server.Addr, r.Source, r.Outcome, r.StoppedAt, r.Completed)
		if r.Egress != nil {
			s += " as " + r.Egress.Addr
		}
		for k := range r.Legs {
			s += fmt.Sprintf("; %s %d points", r.Legs[k].Leg, len(r.Legs[k].Points))
		}
		out[r.ID] = s
	}
	return out
}

// TestLabLiveFaults: what can go wrong on a node.
func TestLabLiveFaults(t *testing.T) {
	t.Parallel()
	requireLab(t)
	l := newLab(t, "livefault", bridged)
	l.far.serveTCP(server)
	facts := factsOf(t, nodeFacts)
	readable := func(t *testing.T, file string) int {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := exec.Command("tcpdump", "-nr", file).Output(); err != nil {
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || !strings.Contains(string(exit.Stderr), "truncated") {
				t.Errorf("tcpdump -r: %v", err)
			}
		}
		r, err := capture.NewReader(strings.NewReader(string(b)), file, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := analyze.Run([]analyze.Input{{File: file, Source: r}}, facts, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return int(res.Captures[0].Summary.Frames)
	}
	load := func(n int) {
		for range n {
			l.expect(l.node.tcp(server, waitBrief), endCompleted, "the node's request")
		}
	}
	t.Run("killed", func(t *testing.T) {
		for i := range 20 {
			file := filepath.Join(t.TempDir(), "k.pcapng")
			c := startLive(t, l.node, nil, "-i", "any", "-w", file, "--write-only", "-U")
			load(1 + i%4)
			time.Sleep(time.Duration(70+i*7) * time.Millisecond)
			_, _, code := c.stop(os.Kill)
			if n := readable(t, file); code == 0 || n == 0 {
				t.Errorf("kill %d: exit code %d, %d packets", i, code, n)
			}
		}
	})
	t.Run("terminated", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "t.pcapng")
		c := startLive(t, l.node, nil, "-w", file)
		load(2)
		_, stderr, code := c.stop(syscall.SIGTERM)
		if n := readable(t, file); code != 0 || n < 20 {
			t.Errorf("exit code %d, %d packets: %s", code, n, stderr)
		}
	})
	t.Run("disk full", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := labCommand("mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", dir); err != nil {
			t.Skipf("not checked: a full disk (%v)", err)
		}
		defer func() { _, _ = labCommand("umount", dir) }()
		file := filepath.Join(dir, "full.pcapng")
		c := startLive(t, l.node, nil, "-w", file, "--write-only", "-U", "-s", "0", "--duration", "20s")
		for range 40 {
			load(5)
		}
		_, stderr, code := c.wait()
		if n := readable(t, file); code != 2 || !strings.Contains(stderr, "no space left: the file can be read up to its last whole packet") || n == 0 {
			t.Errorf("exit code %d, %d packets: %s", code, n, stderr)
		}
	})
	t.Run("without the capability, and with it alone", func(t *testing.T) {
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("not checked: capabilities (setpriv is not installed)")
		}
		dir := t.TempDir()
		bin := liveBinary(t)
		for _, d := range []string{dir, filepath.Dir(dir), filepath.Dir(bin), filepath.Dir(filepath.Dir(bin))} {
			if err := os.Chmod(d, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		nobody := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
		cmd := exec.Command("ip", slices.Concat([]string{"netns", "exec", l.node.ns}, nobody, []string{bin, "capture", "-c", "1"})...)
		cmd.Env = append(os.Environ(), raceEnv)
		out, err := cmd.CombinedOutput()
		exit, _ := errors.AsType[*exec.ExitError](err)
		if exit == nil || exit.ExitCode() != 2 || !strings.Contains(string(out), "needs root or the capability CAP_NET_RAW: run it with sudo, or once: sudo setcap cap_net_raw+ep ") {
			t.Errorf("without: %v: %s", err, out)
		}
		file := filepath.Join(dir, "cap.pcapng")
		c := startLive(t, l.node, append(nobody, "--inh-caps=+net_raw", "--ambient-caps=+net_raw"), "-w", file, "--write-only", "-i", "eth0")
		load(2)
		_, stderr, code := c.stop(os.Interrupt)
		if n := readable(t, file); code != 0 || n < 5 {
			t.Errorf("with cap_net_raw: exit code %d, %d packets: %s", code, n, stderr)
		}
	})
	t.Run("the interface is removed", func(t *testing.T) {
		l.node.ip("link add gone0 type veth peer name gone1", "link set gone0 up", "link set gone1 up")
		file := filepath.Join(t.TempDir(), "gone.pcapng")
		c := startLive(t, l.node, nil, "-w", file, "--write-only", "-i", "gone0", "--duration", "20s")
		l.node.ip("link del gone0")
		_, stderr, code := c.wait()
		if code != 2 || !strings.Contains(stderr, "interface gone0: was removed while capturing") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
	t.Run("the file is deleted", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "gone.pcapng")
		c := startLive(t, l.node, nil, "-w", file, "--write-only", "-U", "--duration", "20s")
		load(1)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if _, stderr, code := c.wait(); code != 2 || !strings.Contains(stderr, "gone.pcapng: the file was deleted while it was written") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
	t.Run("the file is moved", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "moved.pcapng")
		c := startLive(t, l.node, nil, "-w", file, "--write-only", "-U")
		load(1)
		if err := os.Rename(file, file+".1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(flushEvery + pollTime)
		load(1)
		if _, stderr, code := c.stop(os.Interrupt); code != 0 || readable(t, file+".1") < 20 {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
	t.Run("whose the files are", func(t *testing.T) {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Skipf("not checked: -Z (%v)", err)
		}
		dir := t.TempDir()
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chmod(d, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		owner := func(file string) string {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			st, ok := info.Sys().(*syscall.Stat_t)
			if !ok {
				t.Fatal("no owner")
			}
			return strconv.Itoa(int(st.Uid)) + ":" + strconv.Itoa(int(st.Gid))
		}
		// -Z: the process is that user once it captures, and so are the files.
		file := filepath.Join(dir, "z.pcapng")
		c := startLive(t, l.node, nil, "-w", file, "--write-only", "-Z", "nobody")
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
		if err != nil || !strings.Contains(string(status), "\nUid:\t"+strings.Repeat(nobody.Uid+"\t", 3)+nobody.Uid+"\n") || !strings.Contains(string(status), "\nCapEff:\t0000000000000000\n") {
			t.Errorf("the process: %v: %s", err, status)
		}
		load(2)
		if _, stderr, code := c.stop(os.Interrupt); code != 0 || readable(t, file) < 20 || owner(file) != nobody.Uid+":"+nobody.Gid {
			t.Errorf("-Z: exit code %d, owner %s: %s", code, owner(file), stderr)
		}
		// sudo: the process stays root, the files are the caller's.
		file = filepath.Join(dir, "s.pcapng")
		c = startLive(t, l.node, []string{"env", "SUDO_UID=" + nobody.Uid, "SUDO_GID=" + nobody.Gid}, "-w", file, "--write-only")
		load(1)
		if _, stderr, code := c.stop(os.Interrupt); code != 0 || owner(file) != nobody.Uid+":"+nobody.Gid {
			t.Errorf("sudo: exit code %d, owner %s: %s", code, owner(file), stderr)
		}
		cmd := exec.Command("ip", "netns", "exec", l.node.ns, liveBinary(t), "capture", "-c", "1", "-Z", "no-such-user")
		cmd.Env = append(os.Environ(), raceEnv)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "-Z no-such-user: no such user") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("silence", func(t *testing.T) {
		// One SYN, and nothing more comes: the capture knows by the clock that it ran on, and so does its file.
		l.masq(true, keepDefault...)
		defer l.masq(true, keepNarrowed...)
		file := filepath.Join(t.TempDir(), "quiet.pcapng")
		args := slices.Concat([]string{"-w", file, "--request", podRequest, "--expect", "outcome=request-only", "--duration", "20s"}, nodeFacts, []string{"host", farIP})
		c := startLive(t, l.node, nil, args...)
		l.expect(l.pod.tcp(server, 100*time.Millisecond), endTimeout, "the Pod's request")
		begun := time.Now()
		if stdout, stderr, code := c.wait(); code != 0 || time.Since(begun) > 10*time.Second || readable(t, file) > 4 {
			t.Errorf("exit code %d after %v: %s%s", code, time.Since(begun), stderr, stdout)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rec := report.New(analyzeBytes(t, b, wire.SideNear, facts), report.Tool{})
		if len(rec.Requests) != 1 || !report.Decided(&rec.Requests[0]) || rec.Captures[0].Window.Basis != "recorded" {
			t.Errorf("the file: %+v", rec.Requests)
		}
	})
	t.Run("expectation", func(t *testing.T) {
		l.masq(true, keepNarrowed...)
		args := slices.Concat([]string{"--request", podRequest, "--duration", "20s"}, nodeFacts)
		c := startLive(t, l.node, nil, append(slices.Clone(args), "--expect", "source=node-snated,completed=true")...)
		l.expect(l.pod.tcp(server, waitBrief), endCompleted, "the Pod's request")
		begun := time.Now()
		if stdout, stderr, code := c.wait(); code != 0 || time.Since(begun) > 10*time.Second || !strings.Contains(stdout, "node-snated") {
			t.Errorf("met: exit code %d after %v: %s%s", code, time.Since(begun), stderr, stdout)
		}
		c = startLive(t, l.node, nil, append(slices.Clip(nodeFacts), "--request", podRequest, "--expect", "source=pod-sourced", "--duration", "3s")...)
		l.expect(l.pod.tcp(server, waitBrief), endCompleted, "the Pod's request")
		if _, stderr, code := c.wait(); code != 1 {
			t.Errorf("not met: exit code %d: %s", code, stderr)
		}
		c = startLive(t, l.node, nil, append(slices.Clip(nodeFacts), "--request", podRequest, "--expect", "source=pod-sourced", "--duration", "1s")...)
		if _, stderr, code := c.wait(); code != 3 {
			t.Errorf("no request: exit code %d: %s", code, stderr)
		}
	})
}

// TestLabLiveTerminal: on a terminal there is one table, drawn again in its place, no line of it broken however narrow the
// terminal is, and nothing of it is left when the report comes.
func TestLabLiveTerminal(t *testing.T) {
	t.Parallel()
	requireLab(t)
	l := newLab(t, "liveterm", bridged)
	l.masq(true, keepDefault...)
	l.far.serveTCP(server)
	const width, height = 54, 9
	master, slave := openTerminal(t, width)
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}); err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{"netns", "exec", l.node.ns, liveBinary(t), "capture"}, nodeFacts, strings.Fields(hostFilter))
	cmd := exec.Command("ip", args...)
	cmd.Env = append(os.Environ(), raceEnv, "TERM=xterm", "COLUMNS=", "NO_COLOR=")
	cmd.Stdout, cmd.Stderr = slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	var out labBuffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&out, master) // EIO once nobody has the terminal open
	}()
	var s screen
	shows := func(what string, want ...string) {
		t.Helper()
		for end := time.Now().Add(labCommandTime); ; time.Sleep(50 * time.Millisecond) {
			s = screen{width: width, height: height}
			s.write(string(out.Bytes()))
			text := strings.Join(s.lines, "\n")
			if !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(text, w) }) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: the screen does not show %q:\n%s", what, want, text)
			}
		}
	}
	one := func(what string) {
		t.Helper()
		if n := strings.Count(strings.Join(s.lines, "\n"), "none dropped"); n != 1 || s.broken > 1 { // the line on standard error may break
			t.Errorf("%s: %d tables, %d lines broken:\n%s", what, n, s.broken, strings.Join(s.lines, "\n"))
		}
	}
	shows("at the begin", "capturing on any", "no request yet")
	l.expect(l.pod.tcp(server, 300*time.Millisecond), endTimeout, "the Pod's request before")
	shows("unanswered", "pod-sourced  waiting", "to tcp 10.")
	one("unanswered")
	for range 12 {
		l.expect(l.node.tcp(server, waitBrief), endCompleted, "the node's request")
	}
	shows("more requests than rows", "13 requests: ", "handshake-completed")
	one("more requests than rows")
	if len(s.lines) > 2+height {
		t.Errorf("%d lines: the table does not fit the terminal:\n%s", len(s.lines), strings.Join(s.lines, "\n"))
	}
	shows("later", "pod-sourced  request-only")
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	<-read
	s = screen{width: width, height: height}
	s.write(string(out.Bytes()))
	text := strings.Join(s.lines, "") // what the report breaks or does not is not the table's
	at := strings.Index(text, " captured, none dropped by the kernel")
	if at < 0 || strings.Contains(text, "13 requests: ") || !strings.Contains(text[at:], "pod-sourced") {
		t.Errorf("in the end the screen shows:\n%s", text)
	}
	if c := strings.Count(string(out.Bytes()), "\x1b[J"); c < 4 {
		t.Errorf("the table was drawn %d times", c)
	}
}

// TestLabLiveConntrack captures one side of the node only: the kernel's connection table says what the packets do not show.
func TestLabLiveConntrack(t *testing.T) {
	t.Parallel()
	requireLab(t)
	l := newLab(t, "livect", bridged)
	l.far.serveTCP(server)
	l.far.serveUDP(farIP+":53", false)
	for _, tt := range []struct {
		name, device string
		random       bool
		keep         []string
		want         []string // source, basis, client, egress of each request
		without      []string // the same without the table
	}{
		{
			"the Pod's interface, translated", "veth0", true, keepNarrowed,
			[]string{"icmp node-snated conntrack " + podIP + " " + nodeIP, "tcp node-snated conntrack " + podIP + " " + nodeIP, "udp node-snated conntrack " + podIP + " " + nodeIP},
			[]string{"icmp unknown none " + podIP + " -", "tcp unknown none " + podIP + " -", "udp unknown none " + podIP + " -"},
		},
		{
			"the Pod's interface, kept", "veth0", false, keepDefault,
			[]string{"icmp pod-sourced conntrack " + podIP + " " + podIP, "tcp pod-sourced conntrack " + podIP + " " + podIP, "udp pod-sourced conntrack " + podIP + " " + podIP},
			[]string{"icmp unknown none " + podIP + " -", "tcp unknown none " + podIP + " -", "udp unknown none " + podIP + " -"},
		},
		{
			"the node's interface, translated", "eth0", true, keepNarrowed,
			[]string{"icmp node-snated conntrack " + podIP + " " + nodeIP, "tcp node-snated conntrack " + podIP + " " + nodeIP, "udp node-snated conntrack " + podIP + " " + nodeIP},
			[]string{"icmp node-snated egress " + nodeIP + " " + nodeIP, "tcp node-snated egress " + nodeIP + " " + nodeIP, "udp node-snated egress " + nodeIP + " " + nodeIP},
		},
	} {
		l.masq(tt.random, tt.keep...)
		args := slices.Concat([]string{"-i", tt.device, "-o", "jsonl"}, nodeFacts, []string{"host", farIP})
		with := startLive(t, l.node, nil, append([]string{"--kernel-conntrack"}, args...)...)
		without := startLive(t, l.node, nil, args...)
		l.pod.tcp(server, 300*time.Millisecond)
		l.pod.udp(farIP+":53", 300*time.Millisecond)
		l.pod.ping(farIP, 300*time.Millisecond)
		time.Sleep(800 * time.Millisecond)
		for c, want := range map[*liveCapture][]string{with: tt.want, without: tt.without} {
			stdout, stderr, code := c.stop(os.Interrupt)
			if code != 0 {
				t.Fatalf("%s: exit code %d: %s", tt.name, code, stderr)
			}
			if got := sourcesOf(t, stdout); !slices.Equal(got, want) {
				t.Errorf("%s:\n%q, want\n%q\n%s", tt.name, got, want, stdout)
			}
			if c == with && !strings.Contains(stdout, "the kernel's connection table was asked while capturing and gave 3 connections") {
				t.Errorf("%s: the capture does not say that the table was asked", tt.name)
			}
		}
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("not checked: the connection table without CAP_NET_ADMIN (setpriv is not installed)")
	}
	cmd := exec.Command("ip", "netns", "exec", l.node.ns, "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", liveBinary(t), "capture", "--kernel-conntrack", "-c", "1")
	cmd.Env = append(os.Environ(), raceEnv)
	out, err := cmd.CombinedOutput()
	if exit, _ := errors.AsType[*exec.ExitError](err); exit == nil || exit.ExitCode() != 2 || !strings.Contains(string(out), "the kernel's connection table needs root or the capability CAP_NET_ADMIN: run it with sudo, or once: sudo setcap cap_net_raw,cap_net_admin+ep ") {
		t.Errorf("without CAP_NET_ADMIN: %v: %s", err, out)
	}
}

// sourcesOf are the last verdicts of a live capture's requests: protocol, source, basis, client, egress.
func sourcesOf(t *testing.T, jsonl string) []string {
	t.Helper()
	last := map[string]string{}
	for line := range strings.Lines(jsonl) {
		var r struct {
			Type, Proto, Source string
			Basis               string `json:"source_basis"`
			Client, Egress      struct{ Addr string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Type == "request" {
			last[r.Proto] = strings.Join([]string{r.Proto, r.Source, r.Basis, r.Client.Addr, cmp.Or(r.Egress.Addr, "-")}, " ")
		}
	}
	return slices.Sorted(maps.Values(last))
}

// TestLabLiveDevices: a device without a link header (WireGuard's and VPN clients' are such) and the loopback device, which the
// kernel shows each packet of twice, captured by themselves and with all others.
func TestLabLiveDevices(t *testing.T) {
	t.Parallel()
	requireLab(t)
	l := newLab(t, "livetun", bridged)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("not checked: a device without a link header (%v)", err)
	}
	l.node.agent.must(labRequest{Op: "serve-tun", Addr: "tun0"})
	l.node.ip("addr add 10.99.0.1/24 dev tun0", "link set tun0 up")
	l.node.serveUDP("127.0.0.1:53", false)
	for _, device := range []string{"any", "lo"} {
		file := filepath.Join(t.TempDir(), device+".pcapng")
		c := startLive(t, l.node, nil, "-i", device, "-w", file, "udp", "port", "53")
		l.expect(l.node.udp("127.0.0.1:53", waitBrief), endCompleted, "the node's datagram to itself")
		_, stderr, code := c.stop(os.Interrupt)
		b, err := os.ReadFile(file)
		if err != nil || code != 0 {
			t.Fatalf("%s: %v, exit code %d: %s", device, err, code, stderr)
		}
		if seen := seenFrames(t, string(b), nil); len(seen) != 2 || !strings.HasPrefix(seen[0], "lo ") {
			t.Errorf("%s: %q", device, seen)
		}
	}
	for _, device := range []string{"any", "tun0"} {
		file := filepath.Join(t.TempDir(), device+".pcapng")
		c := startLive(t, l.node, nil, "-i", device, "-w", file, "--node-ip", "10.99.0.1", "udp", "port", "53")
		l.expect(l.node.udp("10.99.0.2:53", waitBrief), endCompleted, "the node's datagram")
		stdout, stderr, code := c.stop(os.Interrupt)
		b, err := os.ReadFile(file)
		if err != nil || code != 0 {
			t.Fatalf("%s: %v, exit code %d: %s", device, err, code, stderr)
		}
		seen := seenFrames(t, string(b), nil)
		if len(seen) != 2 || !strings.HasPrefix(seen[0], "tun0 out udp 10.99.0.1:") || !strings.HasPrefix(seen[1], "tun0 in udp 10.99.0.2:53 > 10.99.0.1:") || !strings.Contains(stdout, "answered") {
			t.Errorf("%s: %q\n%s", device, seen, stdout)
		}
		if text, err := labCommand("tcpdump", "-nr", file); err != nil || strings.Count(text, "10.99.0.2.53") != 2 {
			t.Errorf("%s: tcpdump -r: %v: %s", device, err, text)
		}
	}
}
