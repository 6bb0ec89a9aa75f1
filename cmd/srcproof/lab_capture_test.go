package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// labTap is one tcpdump of a lab: the name of its capture, where it listens, and the filter, "" for none.
type labTap struct {
	name, iface, filter string
	at                  func(*lab) *labHost
}

// labTaps are the captures of every scenario. The filters are those that a person writes who looks for one server.
func labTaps(filter string) []labTap {
	return []labTap{
		{"any", "any", filter, func(l *lab) *labHost { return l.node }},     // the node, all interfaces, the person's filter
		{"all", "any", "", func(l *lab) *labHost { return l.node }},         // the node, all interfaces, no filter
		{"uplink", "eth0", filter, func(l *lab) *labHost { return l.node }}, // the node's uplink alone
		{"inside", "eth0", "", func(l *lab) *labHost { return l.pod }},      // inside the Pod
		{"far", "ens4", "", func(l *lab) *labHost { return l.far }},         // the far host
		{"rtr", "any", "", func(l *lab) *labHost { return l.rtr }},          // the router between
	}
}

// labBuffer is a capture in memory that is read while tcpdump writes it.
type labBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *labBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *labBuffer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Len()
}

func (b *labBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Bytes()
}

// labSnapLen is more than any packet of the lab has. In immediate mode each slot of the kernel's ring is as large as the
// snap length: tcpdump's default leaves eight slots, and drops.
const labSnapLen = "16384"

// labTcpdump is a running capture.
type labTcpdump struct {
	labTap
	t      labT
	cmd    *exec.Cmd
	out    *labBuffer
	stderr chan string // all that it said after it listened; closed at its end
}

// startTcpdump starts a capture and returns once it listens. It writes to a pipe: some distributions' tcpdump gives up
// root, or is confined, before it opens a file.
func (l *lab) startTcpdump(tap labTap) *labTcpdump {
	l.t.Helper()
	d := &labTcpdump{labTap: tap, t: l.t, out: new(labBuffer), stderr: make(chan string, 1)}
	args := []string{"netns", "exec", tap.at(l).ns, "tcpdump", "-n", "-i", tap.iface, "--immediate-mode", "-s", labSnapLen, "-B", "4096", "-U", "-w", "-"}
	d.cmd = exec.Command("ip", append(args, strings.Fields(tap.filter)...)...)
	d.cmd.Stdout = d.out
	d.cmd.WaitDelay = 5 * time.Second
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		l.t.Fatalf("lab: %v", err)
	}
	if err := d.cmd.Start(); err != nil {
		l.t.Fatalf("lab: %v", err)
	}
	l.t.Cleanup(func() { _ = d.cmd.Process.Kill() }) // no effect once stopped
	listening := make(chan bool, 1)
	go func() {
		var said strings.Builder
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if strings.Contains(lines.Text(), "listening on") {
				listening <- true
			}
			said.WriteString(lines.Text() + "\n")
		}
		close(listening)
		d.stderr <- said.String()
	}()
	select {
	case ok := <-listening:
		if !ok {
			l.t.Fatalf("lab: tcpdump for %s ended: %s", tap.name, <-d.stderr)
		}
	case <-time.After(labCommandTime):
		l.t.Fatalf("lab: tcpdump for %s does not listen", tap.name)
	}
	return d
}

// labSettle waits until no running capture has grown for a while.
func labSettle(dumps []*labTcpdump) {
	const quiet, most = 200 * time.Millisecond, 5 * time.Second
	size := func() (n int) {
		for _, d := range dumps {
			n += d.out.Len()
		}
		return n
	}
	start, last, since := time.Now(), size(), time.Now()
	for time.Since(since) < quiet && time.Since(start) < most {
		time.Sleep(20 * time.Millisecond)
		if n := size(); n != last {
			last, since = n, time.Now()
		}
	}
}

// labCapture is what one tcpdump kept.
type labCapture struct {
	pcap    []byte
	command string // tcpdump's command line
	missed  int    // packets that the kernel had for tcpdump, and that it did not write
	filter  string
}

var tcpdumpCounts = regexp.MustCompile(`(?m)^(\d+) packets? (captured|received by filter|dropped by kernel)$`)

// stop ends the capture as a person does, with an interrupt.
func (d *labTcpdump) stop() labCapture {
	d.t.Helper()
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		d.t.Fatalf("lab: tcpdump for %s: %v", d.name, err)
	}
	said := <-d.stderr
	if err := d.cmd.Wait(); err != nil {
		d.t.Fatalf("lab: tcpdump for %s: %v: %s", d.name, err, said)
	}
	counts := map[string]int{}
	for _, m := range tcpdumpCounts.FindAllStringSubmatch(said, -1) {
		counts[m[2]], _ = strconv.Atoi(m[1])
	}
	if len(counts) != 3 {
		d.t.Fatalf("lab: tcpdump for %s does not say what it dropped: %s", d.name, said)
	}
	line := "tcpdump -n -i " + d.iface + " -s " + labSnapLen + " -w " + d.name + ".pcap"
	if d.filter != "" {
		line += " '" + d.filter + "'"
	}
	// What is "received" after the last read and before the end is neither captured nor counted as dropped.
	missed := max(counts["dropped by kernel"], counts["received by filter"]-counts["captured"])
	return labCapture{pcap: d.out.Bytes(), command: line, missed: missed, filter: d.filter}
}

// labFrame is a frame as the lab's own decoder reads it. The decoder is separate from the tool's on purpose: it says
// whether a scenario happened, and the tool is then judged by that.
type labFrame struct {
	number   int
	time     time.Time
	iface    string // SLL2: the name, by index; else ""
	dir      string // SLL2: "in" or "out"; else ""
	proto    string // tcp, udp, icmp, icmp6
	src, dst netip.AddrPort
	ttl      byte
	flags    string // TCP: of S, A, F, R, in this order
	seq      uint32
	mss      uint16 // TCP option; 0 if absent
	stamped  bool   // TCP timestamps option
	payload  int    // bytes of transport payload
	icmp     string // "type/code"
	echo     uint16 // identifier of an echo message
}

// decodeCapture reads a little-endian microsecond pcap file of Ethernet or SLL2 frames, which is what tcpdump writes
// here. Frames that are not IP are left out.
func decodeCapture(pcap []byte, names map[uint32]string) ([]labFrame, error) {
	le, be := binary.LittleEndian, binary.BigEndian
	if len(pcap) < 24 || le.Uint32(pcap) != 0xa1b2c3d4 {
		return nil, fmt.Errorf("not a little-endian microsecond pcap file")
	}
	link := le.Uint32(pcap[20:])
	var frames []labFrame
	rest := pcap[24:]
	for number := 1; len(rest) > 0; number++ {
		if len(rest) < 16 || len(rest) < 16+int(le.Uint32(rest[8:])) {
			return nil, fmt.Errorf("frame %d: cut", number)
		}
		data := rest[16 : 16+int(le.Uint32(rest[8:]))]
		f := labFrame{number: number, time: time.Unix(int64(le.Uint32(rest)), int64(le.Uint32(rest[4:]))*1000).UTC()}
		rest = rest[16+len(data):]
		var etherType uint16
		switch link {
		case 1: // LINKTYPE_ETHERNET
			etherType, data = be.Uint16(data[12:]), data[14:]
		case 276: // LINKTYPE_LINUX_SLL2
			etherType = be.Uint16(data)
			f.iface, f.dir = names[be.Uint32(data[4:])], "in"
			if data[10] == 4 {
				f.dir = "out"
			}
			data = data[20:]
		default:
			return nil, fmt.Errorf("link type %d", link)
		}
		if (etherType == 0x0800 || etherType == 0x86dd) && f.decodeIP(data) {
			frames = append(frames, f)
		}
	}
	return frames, nil
}

func (f *labFrame) decodeIP(b []byte) bool {
	be := binary.BigEndian
	var src, dst netip.Addr
	var proto byte
	switch {
	case b[0]>>4 == 4:
		src, dst, proto, f.ttl = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:])), b[9], b[8]
		b = b[int(b[0]&15)*4 : be.Uint16(b[2:])]
	case b[0]>>4 == 6:
		src, dst, proto, f.ttl = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:])), b[6], b[7]
		b = b[40 : 40+int(be.Uint16(b[4:]))]
	default:
		return false
	}
	var sport, dport uint16
	switch proto {
	case 6:
		f.proto, sport, dport, f.seq = "tcp", be.Uint16(b), be.Uint16(b[2:]), be.Uint32(b[4:])
		f.payload = len(b) - int(b[12]>>4)*4
		for o := b[20 : int(b[12]>>4)*4]; len(o) > 1 && o[0] != 0; {
			switch o[0] {
			case 1: // no operation: a byte alone
				o = o[1:]
				continue
			case 2:
				f.mss = be.Uint16(o[2:])
			case 8:
				f.stamped = true
			}
			o = o[max(o[1], 2):]
		}
		for _, flag := range []struct {
			bit  byte
			name string
		}{{2, "S"}, {16, "A"}, {1, "F"}, {4, "R"}} {
			if b[13]&flag.bit != 0 {
				f.flags += flag.name
			}
		}
	case 17:
		f.proto, sport, dport, f.payload = "udp", be.Uint16(b), be.Uint16(b[2:]), len(b)-8
	case 1, 58:
		f.proto, f.icmp, f.payload = "icmp", fmt.Sprintf("%d/%d", b[0], b[1]), len(b)-8
		if proto == 58 {
			f.proto = "icmp6"
		}
		f.echo = be.Uint16(b[4:])
	default:
		return false
	}
	f.src, f.dst = netip.AddrPortFrom(src, sport), netip.AddrPortFrom(dst, dport)
	return true
}

// sight is a sentence about a capture: between least and most frames of that kind are in it.
//
// point is the capture's name, and for captures on any also interface and direction: "far", "any eth0 out". frame is
// written as tcpdump writes it: "tcp 172.16.0.13 > 10.20.0.10:80 S" with the flags exactly, "data" for a payload, or
// type/code for ICMP, "mss N" and "timestamp" for TCP options; an address without a port is any port, * is any address, and
// "ttl N" may end it.
type sight struct {
	point, frame string
	least, most  int
}

const many = 1 << 30

func sees(point, frame string) sight               { return sight{point, frame, 1, many} }
func seesNone(point, frame string) sight           { return sight{point, frame, 0, 0} }
func seesExactly(n int, point, frame string) sight { return sight{point, frame, n, n} }
func seesAtLeast(n int, point, frame string) sight { return sight{point, frame, n, many} }
func (s sight) String() string                     { return fmt.Sprintf("%s: %s", s.point, s.frame) }

func (s sight) in() string       { name, _, _ := strings.Cut(s.point, " "); return name }
func (s sight) holds(n int) bool { return s.least <= n && n <= s.most }
func (s sight) count(frames []labFrame) (n int) {
	for i := range frames {
		if s.matches(&frames[i]) {
			n++
		}
	}
	return n
}

func (s sight) matches(f *labFrame) bool {
	if where := strings.Fields(s.point); len(where) == 3 && (f.iface != where[1] || f.dir != where[2]) {
		return false
	}
	words := strings.Fields(s.frame) // proto src > dst what...
	if words[0] != f.proto || !matchesAddr(words[1], f.src) || !matchesAddr(words[3], f.dst) {
		return false
	}
	for i := 4; i < len(words); i++ {
		switch what := words[i]; {
		case what == "ttl":
			if i++; words[i] != strconv.Itoa(int(f.ttl)) {
				return false
			}
		case what == "mss":
			if i++; words[i] != strconv.Itoa(int(f.mss)) {
				return false
			}
		case what == "timestamp":
			if !f.stamped {
				return false
			}
		case what == "data":
			if f.payload == 0 {
				return false
			}
		case what != f.flags && what != f.icmp:
			return false
		}
	}
	return true
}

func matchesAddr(want string, got netip.AddrPort) bool {
	if want == "*" {
		return true
	}
	if a, err := netip.ParseAddr(want); err == nil {
		return a == got.Addr()
	}
	return netip.MustParseAddrPort(want) == got
}

// writeCapture stores a capture under dir and returns its path.
func writeCapture(t labT, dir, name string, pcap []byte) string {
	t.Helper()
	path := filepath.Join(dir, name+".pcap")
	if err := os.WriteFile(path, pcap, 0o644); err != nil {
		t.Fatalf("lab: %v", err)
	}
	return path
}

func (s sight) wanted() string {
	switch {
	case s.most == many:
		return fmt.Sprintf("at least %d", s.least)
	case s.least == s.most:
		return strconv.Itoa(s.least)
	}
	return fmt.Sprintf("%d to %d", s.least, s.most)
}
