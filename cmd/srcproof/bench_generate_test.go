package main

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// benchCapture is a capture that is made, not taken: TCP connections of Pods, translated by the node, begun at an even rate over an
// hour so that about a thousand are open at a time. The same numbers give the same bytes.
type benchCapture struct {
	flows int
	long  int    // data segments of one connection, 0 is an exchange of one request and one answer
	any   bool   // all interfaces of the node, SLL2: each packet at the Pod's interface, the bridge and the uplink; else the uplink, Ethernet
	first bool   // the first SYN of each alone
	isn   uint32 // of all, 0 is of each its own
	far   bool   // the far host's Ethernet interface: 20 ms and three hops later, by a clock that is 37 s ahead
}

// What becomes of a connection, by its number: the truth that a result is checked against.
const (
	benchAnswered = iota
	benchSilent   // 1 in 50: three SYNs that arrive and are not answered
	benchLost     // 1 in 50: three SYNs that do not arrive at the far side
	benchRefused  // 1 in 100
)

func (c benchCapture) fate(i int) int {
	if i >= c.flows-c.flows/100 {
		return benchAnswered // at the end of the capture nothing else would be known of them
	}
	switch i % 100 {
	case 10, 60:
		return benchSilent
	case 30, 80:
		return benchLost
	case 45:
		return benchRefused
	}
	return benchAnswered
}

// truth counts the connections by what becomes of them.
func (c benchCapture) truth() (fates [4]int) {
	for i := range c.flows {
		fates[c.fate(i)]++
	}
	return fates
}

const (
	benchPods  = 100
	benchStart = int64(1_800_000_000_000_000) // microseconds
	benchHour  = int64(3_600_000_000)
)

// segment is one packet of a connection: when, by the near uplink's clock in microseconds, and what.
type benchSegment struct {
	at       int64
	flow     uint32
	step     uint32
	back     bool
	flags    byte
	seq, ack uint32
	size     uint16
}

// benchQueue orders the next segments of the open connections by time.
type benchQueue []benchSegment

func (q benchQueue) Len() int { return len(q) }
func (q benchQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].flow < q[j].flow
}
func (q benchQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *benchQueue) Push(x any)   { *q = append(*q, x.(benchSegment)) }
func (q *benchQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// next is the segment that follows one of its connection; ok is false behind the last.
func (c benchCapture) next(s benchSegment) (n benchSegment, ok bool) {
	n = s
	n.step++
	const fin, syn, rst, psh, ack = 1, 2, 4, 8, 16
	isn, answer := c.number(s.flow), benchHash(s.flow^0x5a5a5a5a)|1
	if c.first {
		return n, false
	}
	if fate := c.fate(int(s.flow)); fate == benchSilent || fate == benchLost {
		n.at += 1_000_000 << s.step
		return n, n.step < 3
	} else if fate == benchRefused {
		n.at += 40_000
		n.back, n.flags, n.seq, n.ack = true, rst|ack, 0, isn+1
		return n, n.step < 2
	}
	segments := max(c.long, 1)
	put := func(delay int64, back bool, flags byte, seq, ack uint32, size uint16) (benchSegment, bool) {
		n.at += delay
		n.back, n.flags, n.seq, n.ack, n.size = back, flags, seq, ack, size
		return n, true
	}
	const asked = 150
	told := uint32(350)
	if c.long > 10_000 {
		told = 10 // what counts is the number of packets
	}
	switch end := 3 + 2*segments; {
	case n.step == 1:
		return put(40_000, true, syn|ack, answer, isn+1, 0)
	case n.step == 2:
		return put(100, false, ack, isn+1, answer+1, 0)
	case n.step == 3:
		return put(300, false, psh|ack, isn+1, answer+1, asked)
	case int(n.step) > 3 && int(n.step) <= end-1 || int(n.step) == end: // what is told, and its acknowledgements
		k := uint32(n.step-4) / 2
		if n.step%2 == 0 {
			return put(40_000, true, psh|ack, answer+1+k*told, isn+1+asked, uint16(told))
		}
		return put(100, false, ack, isn+1+asked, answer+1+(k+1)*told, 0)
	case int(n.step) == end+1:
		return put(200, false, fin|ack, isn+1+asked, answer+1+uint32(segments)*told, 0)
	case int(n.step) == end+2:
		return put(40_000, true, fin|ack, answer+1+uint32(segments)*told, isn+2+asked, 0)
	case int(n.step) == end+3:
		return put(100, false, ack, isn+2+asked, answer+2+uint32(segments)*told, 0)
	}
	return n, false
}

// number is a connection's initial sequence number.
func (c benchCapture) number(flow uint32) uint32 {
	if c.isn != 0 {
		return c.isn
	}
	return benchHash(flow) | 1
}

// benchHash spreads a number; the numbers of its values are all different (it is invertible).
func benchHash(n uint32) uint32 {
	n = (n ^ n>>16) * 0x7feb352d
	n = (n ^ n>>15) * 0x846ca68b
	return n ^ n>>16
}

// write makes the capture and returns how many packets are in it.
func (c benchCapture) write(w io.Writer) (packets int, err error) {
	b := bufio.NewWriterSize(w, 1<<20)
	link := uint32(1)
	if c.any {
		link = 276
	}
	head := make([]byte, 24)
	for i, v := range []uint32{0xa1b2c3d4, 4<<16 | 2, 0, 0, 262144, link} {
		binary.LittleEndian.PutUint32(head[4*i:], v)
	}
	_, _ = b.Write(head)
	var q benchQueue
	emit := func(s benchSegment) {
		if c.far && c.fate(int(s.flow)) == benchLost {
			return
		}
		packets += c.packet(b, s)
	}
	for i := range c.flows {
		at := benchStart + int64(i)*benchHour/int64(c.flows)
		for len(q) > 0 && q[0].at <= at {
			s := heap.Pop(&q).(benchSegment)
			emit(s)
			if n, ok := c.next(s); ok {
				heap.Push(&q, n)
			}
		}
		heap.Push(&q, benchSegment{at: at, flow: uint32(i), flags: 2, seq: c.number(uint32(i))})
	}
	for len(q) > 0 {
		s := heap.Pop(&q).(benchSegment)
		emit(s)
		if n, ok := c.next(s); ok {
			heap.Push(&q, n)
		}
	}
	return packets, b.Flush()
}

// packet writes one segment, at each place that sees it.
func (c benchCapture) packet(b *bufio.Writer, s benchSegment) int {
	pod, podPort := s.flow%benchPods, uint16(1024+s.flow/benchPods%60000)
	src, sport := [4]byte{10, 4, byte(pod >> 8), byte(2 + pod)}, podPort
	node, nodePort := [4]byte{10, 128, 0, 10}, uint16(1024+s.flow%60000)
	server := [4]byte{192, 0, 2, byte(1 + s.flow/60000%250)} // the node's ports are not enough for one
	at, ttl := s.at, byte(63)
	if c.far {
		at += 37_020_000
		ttl = 60
		if s.back {
			at, ttl = s.at+37_000_000-20_000, 64
		}
	}
	type place struct {
		iface    uint32
		out      bool
		src      [4]byte
		port     uint16
		ttl      byte
		delay    int64
		ethernet bool
	}
	places := []place{{src: node, port: nodePort, ttl: ttl, ethernet: true}}
	if c.any {
		places = []place{{7, s.back, src, sport, 64, 0, false}, {4, s.back, src, sport, 64, 2, false}, {2, !s.back, node, nodePort, 63, 30, false}}
		if s.back {
			places[0], places[2] = places[2], places[0]
			places[0].delay, places[2].delay = 0, 30
			places[0].ttl, places[1].ttl, places[2].ttl = 61, 60, 60
		}
	}
	for _, p := range places {
		t := at + p.delay
		l2 := 14
		if !p.ethernet {
			l2 = 20
		}
		size := l2 + 20 + 32 + int(s.size)
		f := make([]byte, 16+size)
		binary.LittleEndian.PutUint32(f[0:], uint32(t/1_000_000))
		binary.LittleEndian.PutUint32(f[4:], uint32(t%1_000_000))
		binary.LittleEndian.PutUint32(f[8:], uint32(size))
		binary.LittleEndian.PutUint32(f[12:], uint32(size))
		h := f[16:]
		if p.ethernet {
			copy(h, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x00")
		} else {
			binary.BigEndian.PutUint16(h, 0x0800)
			binary.BigEndian.PutUint32(h[4:], p.iface)
			binary.BigEndian.PutUint16(h[8:], 1)
			if p.out {
				h[10] = 4
			}
			h[11] = 6
			h[12] = 2
		}
		ip := h[l2:]
		ip[0] = 0x45
		binary.BigEndian.PutUint16(ip[2:], uint16(size-l2))
		binary.BigEndian.PutUint16(ip[4:], uint16(benchHash(s.flow^uint32(s.step)<<20)))
		ip[6], ip[8], ip[9] = 0x40, p.ttl, 6
		from, to, fromPort, toPort := p.src, server, p.port, uint16(443)
		if s.back {
			from, to, fromPort, toPort = to, from, toPort, fromPort
		}
		copy(ip[12:], from[:])
		copy(ip[16:], to[:])
		tcp := ip[20:]
		binary.BigEndian.PutUint16(tcp, fromPort)
		binary.BigEndian.PutUint16(tcp[2:], toPort)
		binary.BigEndian.PutUint32(tcp[4:], s.seq)
		binary.BigEndian.PutUint32(tcp[8:], s.ack)
		tcp[12], tcp[13] = 0x80, s.flags
		binary.BigEndian.PutUint16(tcp[14:], 64240)
		copy(tcp[20:], "\x01\x01\x08\x0a")
		binary.BigEndian.PutUint32(tcp[24:], uint32(s.at/1000)+benchHash(s.flow))
		for i := range int(s.size) {
			tcp[32+i] = byte(i) ^ byte(s.flow>>(8*uint(i&3)))
		}
		_, _ = b.Write(f)
	}
	return len(places)
}

// file writes the capture to a path.
func (c benchCapture) file(path string) (packets int, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	packets, err = c.write(f)
	return packets, errors.Join(err, f.Close())
}
