package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// probes sends or hears.
func probes(req labRequest) (string, error) {
	switch req.Op {
	case "spray":
		return "", spray(req.To)
	case "hear":
		return "", labEars.hear()
	}
	return labEars.tell(req.To, req.Wait)
}

// probe is one packet that a host sends with a source of its choice: the first one of a connection.
type probe struct {
	ID           uint32
	Proto        string // "udp", "tcp", "icmp"
	Src, Dst     netip.Addr
	Sport, Dport uint16
}

// bytes is the packet, its checksums right: the kernel does not translate what is broken.
func (p *probe) bytes() []byte {
	var b []byte
	var proto byte
	switch p.Proto {
	case "udp":
		proto = syscall.IPPROTO_UDP
		b = make([]byte, 8+4)
		binary.BigEndian.PutUint16(b[0:], p.Sport)
		binary.BigEndian.PutUint16(b[2:], p.Dport)
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
		binary.BigEndian.PutUint32(b[8:], p.ID)
		binary.BigEndian.PutUint16(b[6:], p.sum(b, proto))
	case "tcp":
		proto = syscall.IPPROTO_TCP
		b = make([]byte, 20)
		binary.BigEndian.PutUint16(b[0:], p.Sport)
		binary.BigEndian.PutUint16(b[2:], p.Dport)
		binary.BigEndian.PutUint32(b[4:], p.ID)
		b[12], b[13] = 5<<4, 2 // SYN
		binary.BigEndian.PutUint16(b[14:], 0xffff)
		binary.BigEndian.PutUint16(b[16:], p.sum(b, proto))
	default:
		proto = syscall.IPPROTO_ICMP
		b = make([]byte, 8+4)
		b[0] = 8
		binary.BigEndian.PutUint16(b[4:], p.Sport)
		binary.BigEndian.PutUint16(b[6:], 1)
		binary.BigEndian.PutUint32(b[8:], p.ID)
		binary.BigEndian.PutUint16(b[2:], internetChecksum(b))
	}
	ip := make([]byte, 20, 20+len(b))
	ip[0], ip[8], ip[9] = 0x45, 64, proto
	binary.BigEndian.PutUint16(ip[2:], uint16(20+len(b)))
	binary.BigEndian.PutUint16(ip[4:], uint16(p.ID)|1)
	copy(ip[12:], p.Src.AsSlice())
	copy(ip[16:], p.Dst.AsSlice())
	binary.BigEndian.PutUint16(ip[10:], internetChecksum(ip))
	return append(ip, b...)
}

func (p *probe) sum(b []byte, proto byte) uint16 {
	pseudo := append(append(append([]byte{}, p.Src.AsSlice()...), p.Dst.AsSlice()...), 0, proto, 0, byte(len(b)))
	return internetChecksum(append(pseudo, b...))
}

// spray sends probes through a raw socket (raw(7), IP_HDRINCL).
func spray(list string) error {
	var probes []probe
	if err := json.Unmarshal([]byte(list), &probes); err != nil {
		return err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_RAW)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(fd) }()
	for i := range probes {
		to := &syscall.SockaddrInet4{Addr: probes[i].Dst.As4()}
		if err := syscall.Sendto(fd, probes[i].bytes(), 0, to); err != nil {
			return err
		}
		if i%16 == 15 {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// ears is what a host has heard: the source address that each probe arrived with.
type ears struct {
	mu    sync.Mutex
	heard map[uint32]string
}

var labEars = ears{heard: map[uint32]string{}}

// hear listens for probes to any of the host's addresses.
func (e *ears) hear() error {
	for network, at := range map[string]int{"ip4:udp": 8, "ip4:tcp": 4, "ip4:icmp": 8} {
		pc, err := net.ListenPacket(network, "0.0.0.0")
		if err != nil {
			return err
		}
		if c, ok := pc.(*net.IPConn); ok {
			_ = c.SetReadBuffer(4 << 20)
		}
		go func() {
			b := make([]byte, 2048)
			for {
				n, from, err := pc.ReadFrom(b)
				if err != nil {
					return
				}
				if n < at+4 || network == "ip4:icmp" && b[0] != 8 || network == "ip4:tcp" && b[13] != 2 {
					continue
				}
				e.mu.Lock()
				e.heard[binary.BigEndian.Uint32(b[at:])] = from.String()
				e.mu.Unlock()
			}
		}()
	}
	return nil
}

// tell returns what was heard since it was asked last, once as many probes have come or the time is over.
func (e *ears) tell(want string, wait time.Duration) (string, error) {
	n, err := strconv.Atoi(want)
	if err != nil {
		return "", errors.New("how many?")
	}
	for end := time.Now().Add(wait); ; time.Sleep(2 * time.Millisecond) {
		e.mu.Lock()
		if len(e.heard) >= n || time.Now().After(end) {
			b, err := json.Marshal(e.heard)
			e.heard = map[uint32]string{}
			e.mu.Unlock()
			return string(b), err
		}
		e.mu.Unlock()
	}
}
