package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// labAgentEnv tells the test binary that it was started inside a namespace, to open sockets there on command.
const labAgentEnv = "SRCPROOF_LAB_AGENT"

// labRequest is one line to an agent, labReply the line that answers it.
type labRequest struct {
	Op       string
	Addr     string
	Local    string // of a dial: "" is the kernel's choice
	To       string // of a proxy: where it connects on to
	AsClient bool   // of a proxy: with the client's address and port
	Wait     time.Duration
	Bytes    int
	Silent   bool
	Settings []string
	Optional bool
}

type labReply struct {
	Result string // how a request ended
	Err    string // the agent could not do what it was asked to: the lab is broken
}

// labAgent is this test binary in a namespace. It ends when its standard input does, so it never outlives the test.
type labAgent struct {
	t   labT
	ns  string
	mu  sync.Mutex // one request at a time
	in  io.Writer
	out *bufio.Reader
}

func startAgent(t labT, ns string) *labAgent {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("lab: %v", err)
	}
	cmd := exec.Command("ip", "netns", "exec", ns, self, "-test.run=^TestLabAgent$")
	cmd.Env = append(os.Environ(), labAgentEnv+"=1", "GORACE=atexit_sleep_ms=0") // the race detector's runtime waits a second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("lab: %v", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("lab: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("lab: %v", err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Logf("lab: agent in %s: %v: %s", ns, err, errs.Bytes())
		}
	})
	return &labAgent{t: t, ns: ns, in: in, out: bufio.NewReader(out)}
}

// must sends a request and returns how it ended; it ends the test if the agent could not do it.
func (a *labAgent) must(req labRequest) string {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	line, err := json.Marshal(req)
	if err != nil {
		a.t.Fatalf("lab: %v", err)
	}
	var reply labReply
	if _, err = a.in.Write(append(line, '\n')); err == nil {
		if line, err = a.out.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &reply)
		}
	}
	if err == nil && reply.Err != "" {
		err = errors.New(reply.Err)
	}
	if err != nil {
		a.t.Fatalf("lab: %s %s in %s: %v", req.Op, req.Addr, a.ns, err)
	}
	return reply.Result
}

// TestLabAgent is not a test: it is the agent's main function, see startAgent.
func TestLabAgent(t *testing.T) {
	if os.Getenv(labAgentEnv) == "" {
		t.Skip("started by the lab inside its namespaces")
	}
	conns := map[string]net.Conn{}
	enc := json.NewEncoder(os.Stdout)
	requests := bufio.NewScanner(os.Stdin)
	for requests.Scan() {
		var req labRequest
		var reply labReply
		err := json.Unmarshal(requests.Bytes(), &req)
		if err == nil {
			reply.Result, err = req.do(conns)
		}
		if err != nil {
			reply.Err = err.Error()
		}
		if err := enc.Encode(reply); err != nil {
			os.Exit(1)
		}
	}
	os.Exit(0) // not through the test framework: standard output is the protocol's
}

func (req labRequest) do(conns map[string]net.Conn) (string, error) {
	switch req.Op {
	case "sysctl":
		return "", setSysctl(req.Settings, req.Optional)
	case "serve-tcp":
		return "", serveLines(req.Addr)
	case "serve-udp":
		return "", serveDatagrams(req.Addr, req.Silent)
	case "proxy-tcp":
		return "", serveProxy(req.Addr, req.To, req.AsClient)
	case "spray", "hear", "heard":
		return probes(req)
	case "serve-tun":
		return "", serveTun(req.Addr)
	case "dial":
		dialer := net.Dialer{Timeout: req.Wait}
		if req.Local != "" {
			local, err := netip.ParseAddrPort(req.Local)
			if err != nil {
				return "", err
			}
			dialer.LocalAddr = net.TCPAddrFromAddrPort(local)
		}
		conn, err := dialer.Dial("tcp", req.Addr)
		if err != nil {
			return endOf(err)
		}
		conns[req.Addr] = conn
		return endCompleted, nil
	case "send", "close":
		conn := conns[req.Addr]
		if conn == nil {
			return "", errors.New("no open connection")
		}
		if req.Op == "close" {
			delete(conns, req.Addr)
			return "", conn.Close()
		}
		return exchange(conn, req.Bytes, req.Wait)
	case "udp":
		conn, err := net.Dial("udp", req.Addr)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return exchange(conn, 64, req.Wait)
	case "ping":
		return pingOnce(req.Addr, req.Wait)
	case "flood":
		return flood(req.Addr, req.Bytes, req.Wait)
	}
	return "", fmt.Errorf("unknown operation %q", req.Op)
}

// flood sends datagrams of 100 bytes at a rate for a time, in bursts a millisecond apart, and returns how many.
func flood(addr string, rate int, wait time.Duration) (string, error) {
	conn, err := net.Dial("udp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	b, sent := make([]byte, 100), 0
	for begun := time.Now(); time.Since(begun) < wait; {
		due := int(time.Since(begun).Seconds() * float64(rate))
		for ; sent < due; sent++ {
			if _, err := conn.Write(b); err != nil && !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ENOBUFS) {
				return "", err
			}
		}
		time.Sleep(500 * time.Microsecond)
	}
	return strconv.Itoa(sent), nil
}

// endOf gives the word for an error that a network, not the lab, made.
func endOf(err error) (string, error) {
	var late net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return endRefused, nil
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EACCES):
		return endUnreachable, nil
	case errors.As(err, &late) && late.Timeout():
		return endTimeout, nil
	}
	return "", err
}

// exchange sends n bytes that no other exchange sends, and reads them back.
func exchange(conn net.Conn, n int, wait time.Duration) (string, error) {
	sent := make([]byte, n)
	for i := range sent {
		sent[i] = 'a' + byte(rand.IntN(26))
	}
	sent[n-1] = '\n'
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return "", err
	}
	if _, err := conn.Write(sent); err != nil {
		return endOf(err)
	}
	got := make([]byte, n)
	if _, err := io.ReadFull(conn, got); err != nil {
		return endOf(err)
	}
	if !bytes.Equal(got, sent) {
		return "", fmt.Errorf("sent %q, received %q", sent, got)
	}
	return endCompleted, nil
}

func serveLines(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(onlyWriter{conn}, conn)
			}()
		}
	}()
	return nil
}

// serveProxy accepts connections, opens one of its own for each, and copies what either side sends to the other. It
// passes on what was read as it was read, as proxies do.
func serveProxy(addr, to string, asClient bool) error {
	var listen net.ListenConfig
	if asClient {
		listen.Control = transparent
	}
	ln, err := listen.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				dialer := net.Dialer{}
				if asClient {
					dialer.LocalAddr, dialer.Control = client.RemoteAddr(), transparent
				}
				server, err := dialer.Dial("tcp", to)
				if err != nil {
					return
				}
				defer server.Close()
				go func() {
					_, _ = io.Copy(onlyWriter{client}, onlyReader{server})
					_ = client.(*net.TCPConn).CloseWrite()
				}()
				_, _ = io.Copy(onlyWriter{server}, onlyReader{client})
			}()
		}
	}()
	return nil
}

// onlyReader hides WriteTo, for the reason that onlyWriter hides ReadFrom.
type onlyReader struct{ io.Reader }

// onlyWriter hides ReadFrom: a splice would give the answer other segment boundaries on each kernel.
type onlyWriter struct{ io.Writer }

func serveDatagrams(addr string, silent bool) error {
	pc, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			if !silent {
				_, _ = pc.WriteTo(buf[:n], from)
			}
		}
	}()
	return nil
}

// pingOnce sends one echo request of ping(8)'s size through a raw socket and waits for its reply.
func pingOnce(addr string, wait time.Duration) (string, error) {
	to, err := netip.ParseAddr(addr)
	if err != nil {
		return "", err
	}
	network, request, reply := "ip4:icmp", byte(8), byte(0)
	if to.Is6() {
		network, request, reply = "ip6:ipv6-icmp", 128, 129
	}
	conn, err := net.Dial(network, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	msg := make([]byte, 8+56)
	msg[0] = request
	binary.BigEndian.PutUint16(msg[4:], 1+uint16(rand.IntN(0xffff))) // identifier
	binary.BigEndian.PutUint16(msg[6:], 1)                           // sequence number
	binary.BigEndian.PutUint64(msg[8:], uint64(time.Now().UnixNano()))
	for i := 16; i < len(msg); i++ {
		msg[i] = byte(i)
	}
	if to.Is4() {
		binary.BigEndian.PutUint16(msg[2:], internetChecksum(msg)) // of ICMPv6 the kernel computes it (RFC 3542 section 3.1)
	}
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return "", err
	}
	if _, err := conn.Write(msg); err != nil {
		return endOf(err)
	}
	got := make([]byte, 1500)
	for {
		n, err := conn.Read(got)
		if err != nil {
			return endOf(err)
		}
		b := got[:n]
		if to.Is4() && n > 20 && b[0]>>4 == 4 { // a raw IPv4 socket delivers the IP header too
			b = b[int(b[0]&15)*4:]
		}
		if len(b) == len(msg) && b[0] == reply && bytes.Equal(b[4:], msg[4:]) {
			return endCompleted, nil
		}
	}
}

// internetChecksum is RFC 1071's, over an even number of bytes whose checksum field is zero.
func internetChecksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// setSysctl writes /proc/sys, of which the net part is the namespace's own.
func setSysctl(settings []string, optional bool) error {
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		err := os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0)
		if err != nil && !(optional && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}
