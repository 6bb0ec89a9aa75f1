package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srcproof/srcproof/capture/wire"
)

// Capture is a running capture. It is not safe for concurrent use but for Stop.
type Capture struct {
	opt      Options
	fd       int
	wake     [2]int // a pipe: Stop writes, Next's poll wakes
	ring     []byte
	block    int // the next one to be read
	blocks   int
	held     bool // block-1 is ours: its frames are in the caller's hands
	pos      uint32
	left     uint32 // frames of the block not given yet
	linkType uint32
	loopback bool // the one device is a loopback interface
	ifaces   []Interface
	byIndex  map[uint32]uint32
	recent   uint32 // ifaces index of the last frame, and its key: packets come in runs
	recentOf uint32
	stats    Stats
	from     int64 // when it began, or the earliest frame's time
	last     int64 // the latest frame's time
	idle     int64 // when the ring was last seen empty
	stopped  atomic.Bool
	mu       sync.Mutex // held by Stop and Close, and for:
	until    int64      // when it was stopped
}

// The ring's shape. A block is given to us when it is full or this old: that is how late a packet is seen.
const (
	blockSize   = 1 << 20
	frameSize   = 1 << 11 // only its divisibility matters to TPACKET_V3
	blockRetire = 60      // milliseconds
	sll2Len     = 20
	// headroom is what is kept free before each packet: room for an SLL2 header, or for a VLAN tag that the kernel took out.
	headroom = 32
)

// Offsets in the ring's structures (include/uapi/linux/if_packet.h): tpacket_block_desc with tpacket_hdr_v1, tpacket3_hdr,
// and the sockaddr_ll behind it.
const (
	descStatus, descPackets, descFirst = 8, 12, 16

	hdrNext, hdrSec, hdrNsec, hdrSnap, hdrLen, hdrStatus, hdrMAC = 0, 4, 8, 12, 16, 20, 24
	hdrVLAN, hdrVLANType                                         = 32, 36

	addrAt                                                                   = 48
	addrProto, addrIndex, addrHatype, addrPkttype, addrHalen, addrAddr, lenA = addrAt + 2, addrAt + 4, addrAt + 8, addrAt + 10, addrAt + 11, addrAt + 12, 8
)

// Open begins a capture. Its errors are a *PermissionError, a *DeviceError, a *FilterError, or the system's.
func Open(opt Options) (*Capture, error) {
	if opt.SnapLen == 0 {
		opt.SnapLen = MaxSnapLen
	}
	c := &Capture{opt: opt, fd: -1, wake: [2]int{-1, -1}, byIndex: make(map[uint32]uint32), linkType: LinkSLL2}
	if err := c.open(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Capture) open() error {
	index, kind := 0, unix.SOCK_DGRAM
	if c.opt.Device != Any {
		dev, err := net.InterfaceByName(c.opt.Device)
		if err != nil {
			return &DeviceError{c.opt.Device, "no such interface"}
		}
		if dev.Flags&net.FlagUp == 0 {
			return &DeviceError{c.opt.Device, "is down"}
		}
		index, c.loopback = dev.Index, dev.Flags&net.FlagLoopback != 0
		c.linkType = LinkRaw
		if len(dev.HardwareAddr) == 6 || c.loopback {
			c.linkType, kind = LinkEthernet, unix.SOCK_RAW
		}
	}
	program, err := compile(c.linkType, c.opt.SnapLen, c.opt.Filter)
	if err != nil {
		return err
	}
	// Protocol 0: nothing is captured until the filter is in place and the ring is there.
	c.fd, err = unix.Socket(unix.AF_PACKET, kind|unix.SOCK_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return &PermissionError{err, "CAP_NET_RAW", "a capture"}
	case err != nil:
		return fmt.Errorf("open a packet socket: %w", err)
	}
	if err := unix.Pipe2(c.wake[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return fmt.Errorf("open a pipe: %w", err)
	}
	if err := unix.SetsockoptSockFprog(c.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}); err != nil {
		return &FilterError{c.opt.Filter, fmt.Errorf("filter %q: the kernel does not take it: %w", c.opt.Filter, err)}
	}
	for _, o := range []struct{ name, value int }{{unix.PACKET_VERSION, unix.TPACKET_V3}, {unix.PACKET_RESERVE, headroom}} {
		if err := unix.SetsockoptInt(c.fd, unix.SOL_PACKET, o.name, o.value); err != nil {
			return fmt.Errorf("set up the packet ring: %w", err)
		}
	}
	if err := c.mapRing(); err != nil {
		return err
	}
	if c.opt.Promisc && index != 0 {
		if err := unix.SetsockoptPacketMreq(c.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}); err != nil {
			return fmt.Errorf("interface %s: promiscuous mode: %w (-p captures without)", c.opt.Device, err)
		}
	}
	c.from = time.Now().UnixNano()
	if err := unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		return fmt.Errorf("interface %s: %w", c.opt.Device, err)
	}
	return nil
}

// mapRing makes the ring, a smaller one where the kernel has no memory for it.
func (c *Capture) mapRing() error {
	size := c.opt.Buffer
	if size == 0 {
		size = DefaultBuffer
	}
	for n := max(size/blockSize, 2); ; n /= 2 {
		req := unix.TpacketReq3{
			Block_size: blockSize, Block_nr: uint32(n), Frame_size: frameSize, Frame_nr: uint32(n * (blockSize / frameSize)), Retire_blk_tov: blockRetire,
		}
		err := unix.SetsockoptTpacketReq3(c.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req)
		if errors.Is(err, unix.ENOMEM) && n > 2 {
			continue
		}
		if err != nil {
			return fmt.Errorf("set up the packet ring: %w", err)
		}
		c.ring, err = unix.Mmap(c.fd, 0, n*blockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("map the packet ring: %w", err)
		}
		c.blocks = n
		return nil
	}
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

// LinkType is the pcap LINKTYPE_ value of all frames.
func (c *Capture) LinkType() uint32 { return c.linkType }

// Interfaces are those that packets were captured on, in the order of their first packet. On one device it is that.
func (c *Capture) Interfaces() []Interface { return c.ifaces }

// status is the word by which kernel and reader hand a block to each other: it orders all other accesses to the block.
func (c *Capture) status(block int) *uint32 {
	return (*uint32)(unsafe.Pointer(&c.ring[block*blockSize+descStatus]))
}

// Next fills dst with frames and returns how many: 0 if none came within timeout, or if Stop was called and everything that was
// captured before it has been given. The frames are valid until the next call. It errs where the capture cannot go on.
func (c *Capture) Next(dst []Frame, timeout time.Duration) (int, error) {
	if c.held && c.left == 0 {
		atomic.StoreUint32(c.status(c.block), unix.TP_STATUS_KERNEL)
		c.block, c.held = (c.block+1)%c.blocks, false
	}
	if !c.held {
		if atomic.LoadUint32(c.status(c.block))&unix.TP_STATUS_USER == 0 {
			if err := c.wait(timeout); err != nil {
				return 0, err
			}
			now := time.Now().UnixNano() // asked before the ring
			if atomic.LoadUint32(c.status(c.block))&unix.TP_STATUS_USER == 0 {
				c.idle = now
				return 0, nil
			}
		}
		b := c.ring[c.block*blockSize:]
		c.held, c.left, c.pos = true, ne32(b[descPackets:]), ne32(b[descFirst:])
	}
	n := 0
	b := c.ring[c.block*blockSize : (c.block+1)*blockSize]
	for n < len(dst) && c.left > 0 {
		p := b[c.pos:]
		c.left--
		if next := ne32(p[hdrNext:]); next != 0 {
			c.pos += next
		} else {
			c.left = 0
		}
		if c.frame(&dst[n], p) {
			n++
		}
	}
	return n, nil
}

func ne32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
func ne16(b []byte) uint16 { return binary.NativeEndian.Uint16(b) }

// frame reads one packet of the ring; false leaves it out.
func (c *Capture) frame(f *Frame, p []byte) bool {
	kind := p[addrPkttype]
	hatype := ne16(p[addrHatype:])
	if hatype == unix.ARPHRD_LOOPBACK && kind == unix.PACKET_OUTGOING {
		return false // a loopback interface shows each packet twice
	}
	at, snap, length := int(ne16(p[hdrMAC:])), int(ne32(p[hdrSnap:])), ne32(p[hdrLen:])
	f.Time = int64(ne32(p[hdrSec:]))*1e9 + int64(ne32(p[hdrNsec:]))
	c.from, c.last = min(c.from, f.Time), max(c.last, f.Time)
	f.Dir = wire.DirIn
	if kind == unix.PACKET_OUTGOING {
		f.Dir = wire.DirOut
	}
	f.Iface = c.iface(ne32(p[addrIndex:]))
	switch {
	case c.linkType == LinkSLL2:
		at -= sll2Len
		h := p[at : at+sll2Len]
		copy(h, p[addrProto:addrProto+2]) // network order already
		h[2], h[3] = 0, 0
		binary.BigEndian.PutUint32(h[4:], ne32(p[addrIndex:]))
		binary.BigEndian.PutUint16(h[8:], hatype)
		h[10], h[11] = kind, min(p[addrHalen], lenA)
		copy(h[12:20], p[addrAddr:addrAddr+lenA])
		snap, length = snap+sll2Len, length+sll2Len
	case c.linkType == LinkEthernet && ne32(p[hdrStatus:])&unix.TP_STATUS_VLAN_VALID != 0 && snap >= 12:
		// The network card took the tag out: it goes back behind the addresses.
		const tag = 4
		copy(p[at-tag:], p[at:at+12])
		at -= tag
		kindOfTag := uint16(unix.ETH_P_8021Q)
		if ne32(p[hdrStatus:])&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
			kindOfTag = ne16(p[hdrVLANType:])
		}
		binary.BigEndian.PutUint16(p[at+12:], kindOfTag)
		binary.BigEndian.PutUint16(p[at+14:], uint16(ne32(p[hdrVLAN:])))
		snap, length = snap+tag, length+tag
	}
	f.Data, f.WireLen = p[at:at+min(snap, c.opt.SnapLen)], length
	return true
}

// iface returns the index in ifaces of an interface, and asks for its name when it is new: a Pod's appears while we run.
func (c *Capture) iface(index uint32) uint32 {
	if index == c.recentOf && len(c.ifaces) > 0 {
		return c.recent
	}
	i, ok := c.byIndex[index]
	if !ok {
		name := fmt.Sprintf("if%d", index)
		if dev, err := net.InterfaceByIndex(int(index)); err == nil {
			name = dev.Name
		}
		i = uint32(len(c.ifaces))
		c.byIndex[index] = i
		c.ifaces = append(c.ifaces, Interface{Name: name, Index: index})
	}
	c.recent, c.recentOf = i, index
	return i
}

// wait waits until a block is there, Stop was called or the time is over.
func (c *Capture) wait(timeout time.Duration) error {
	fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}, {Fd: int32(c.wake[0]), Events: unix.POLLIN}}
	if c.stopped.Load() {
		fds, timeout = fds[:1], 3*blockRetire*time.Millisecond // what was captured is handed over by then
	}
	_, err := unix.Poll(fds, int(timeout.Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wait for packets: %w", err)
	}
	if fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) == 0 {
		return nil
	}
	code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code == 0 {
		return nil
	}
	if err == nil {
		err = unix.Errno(code)
	}
	if errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		if c.opt.Device == Any {
			return nil // one of many
		}
		if _, gone := net.InterfaceByName(c.opt.Device); gone != nil {
			return &DeviceError{c.opt.Device, "was removed while capturing"}
		}
		return &DeviceError{c.opt.Device, "went down while capturing"}
	}
	return fmt.Errorf("interface %s: %w", c.opt.Device, err)
}

// Stop ends the capture: no more packets are taken, and Next gives what was captured until now. It may be called from another
// goroutine, and again.
func (c *Capture) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 || c.stopped.Swap(true) {
		return
	}
	c.until = time.Now().UnixNano()
	// A filter that takes nothing: what the kernel has captured stays in the ring until its block is handed over.
	none := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	_ = unix.SetsockoptSockFprog(c.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &none}) // else Next goes on until the ring is empty
	_, _ = unix.Write(c.wake[1], []byte{1})                                                                            // full is awake, too
}

// Stopped tells whether Stop was called.
func (c *Capture) Stopped() bool { return c.stopped.Load() }

// settled is how long after it passed a packet has been handed over at the latest, in nanoseconds: twice the time after which
// the kernel gives up a block that is not full, and as much again for a busy machine.
const settled = 4 * blockRetire * int64(time.Millisecond)

// Ran tells between which times all packets have been given by Next, in nanoseconds since 1970-01-01 UTC.
func (c *Capture) Ran() (from, until int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	until = c.idle - settled
	if c.until != 0 {
		until = min(until, c.until)
	}
	return c.from, max(c.from, c.last, until)
}

// Stats asks the kernel what it counted.
func (c *Capture) Stats() (Stats, error) {
	s, err := unix.GetsockoptTpacketStatsV3(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return c.stats, fmt.Errorf("ask for the packet socket's counters: %w", err)
	}
	c.stats.Received += uint64(s.Packets) // the kernel starts again at zero; its packets include what it dropped
	c.stats.Dropped += uint64(s.Drops)
	return c.stats, nil
}

// Close ends the capture and gives everything back.
func (c *Capture) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring != nil {
		_ = unix.Munmap(c.ring)
		c.ring = nil
	}
	for _, fd := range []int{c.fd, c.wake[0], c.wake[1]} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	c.fd, c.wake = -1, [2]int{-1, -1}
}
