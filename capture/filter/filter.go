//go:build cgo

package filter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcap"
)

const (
	// snapLen is what tcpdump compiles with: a filter's result is how many bytes to keep, zero being none.
	snapLen = 262144

	dltRaw   = 12 // libpcap's number for raw IP on Linux; files say 101
	linkNull = 0
	linkLoop = 108
	linkSLL2 = 276
	sll2Len  = 20

	etherIPv4, etherIPv6 = 0x0800, 0x86dd
)

// Filter is a compiled expression. It is not safe for concurrent use.
type Filter struct {
	expr     string
	programs []program
	err      error
}

// program is the expression compiled for one link type. bpf is nil where libpcap found that no packet can match, or
// could not compile.
type program struct {
	linkType uint32
	bpf      *pcap.BPF
	err      error
}

// Compile checks an expression and returns its filter; the empty expression matches every frame. The error quotes the
// expression and what libpcap says.
//
// Whether an expression is possible depends on the link type, which is not known yet: an expression is accepted here if
// it compiles for any of the common ones, and compiled in earnest by Check or Match. libpcap does not say where it stopped
// reading; the error says which beginning of the expression can be read.
func Compile(expr string) (*Filter, error) {
	f := &Filter{expr: strings.TrimSpace(expr)}
	if f.expr == "" {
		return f, nil
	}
	var first error
	for _, dlt := range []uint8{1, 113, 105, dltRaw} { // Ethernet, Linux cooked, 802.11, raw IP
		if _, err := f.compile(dlt); err == nil {
			return f, nil
		} else if first == nil {
			first = err
		}
	}
	if strings.Contains(first.Error(), "syntax error") {
		return nil, fmt.Errorf("filter %q: %s", f.expr, f.where())
	}
	return nil, first
}

// where says how much of an expression with a syntax error can be read.
func (f *Filter) where() string {
	for end := len(f.expr); ; {
		end = strings.LastIndexAny(f.expr[:end], " \t\n\r")
		if end < 0 {
			return "syntax error: no beginning of it is an expression"
		}
		head := strings.TrimSpace(f.expr[:end])
		if _, err := (&Filter{expr: head}).compile(1); head != "" && err == nil {
			rest := strings.TrimSpace(f.expr[end:])
			return fmt.Sprintf("syntax error at column %d: %q can be read, and not %q behind it", len(f.expr)-len(rest)+1, head, rest)
		}
	}
}

// String returns the expression.
func (f *Filter) String() string { return f.expr }

// Check compiles the expression for a link type (a pcap LINKTYPE_ value), and returns the error that quotes the
// expression where it cannot be applied to it.
func (f *Filter) Check(linkType uint32) error { return f.program(linkType).err }

// Err returns the first error of compiling for a link type that Match met.
func (f *Filter) Err() error { return f.err }

// Match tells whether a frame passes the filter. linkType is its pcap LINKTYPE_ value, wireLen its length in bytes
// before the snap length cut it. Where the expression cannot be compiled for the link type nothing matches, and Err
// says why.
func (f *Filter) Match(linkType uint32, frame []byte, wireLen int) bool {
	if f.expr == "" {
		return true
	}
	p := f.program(linkType)
	if p.bpf == nil {
		if f.err == nil {
			f.err = p.err
		}
		return false
	}
	if asRaw(linkType) {
		frame = network(linkType, frame)
		// wireLen stays the frame's: "len", "less" and "greater" count the link layer's header.
	}
	if len(frame) == 0 {
		return false // gopacket takes the address of the first byte
	}
	return p.bpf.Matches(gopacket.CaptureInfo{CaptureLength: len(frame), Length: wireLen}, frame)
}

// asRaw tells whether a link type's frames are filtered from the network layer on, by an expression that is compiled for
// raw IP: SLL2, for which the binding cannot compile, and BSD's loopback types, whose address family for IPv6 libpcap takes
// to be this host's unless it reads the file itself (gencode.c, gen_linktype).
func asRaw(linkType uint32) bool {
	return linkType == linkSLL2 || linkType == linkNull || linkType == linkLoop
}

// network returns the IP packet of a frame whose link type is filtered as raw IP, nil if it is none.
func network(linkType uint32, frame []byte) []byte {
	if linkType == linkSLL2 {
		if len(frame) < sll2Len {
			return nil
		}
		if t := binary.BigEndian.Uint16(frame); t != etherIPv4 && t != etherIPv6 {
			return nil
		}
		return frame[sll2Len:]
	}
	if len(frame) < 4 {
		return nil
	}
	family := binary.BigEndian.Uint32(frame)
	if family > 0xffff { // the capturing host's byte order
		family = binary.LittleEndian.Uint32(frame)
	}
	switch family {
	case 2, 10, 23, 24, 28, 30: // AF_INET; AF_INET6 of Linux, Windows, NetBSD and OpenBSD, FreeBSD, Darwin
		return frame[4:]
	}
	return nil
}

// program finds the program for a link type, or compiles it. There are a few link types at most: a slice is faster than
// a map.
func (f *Filter) program(linkType uint32) *program {
	for i := range f.programs {
		if f.programs[i].linkType == linkType {
			return &f.programs[i]
		}
	}
	p := program{linkType: linkType}
	switch {
	case f.expr == "":
	case asRaw(linkType):
		if w := linkWord(f.expr); w != "" {
			p.err = fmt.Errorf("filter %q: %q looks at the link layer, which cannot be filtered in a capture of %s: leave it out", f.expr, w, linkName(linkType))
			break
		}
		p.bpf, p.err = f.compile(dltRaw)
	case linkType == 101, linkType == 14:
		p.bpf, p.err = f.compile(dltRaw)
	case linkType > 255:
		p.err = fmt.Errorf("filter %q: libpcap's Go binding has no link type %d", f.expr, linkType)
	default:
		p.bpf, p.err = f.compile(uint8(linkType))
	}
	if errors.Is(p.err, errNothing) {
		p.err = nil
	}
	f.programs = append(f.programs, p)
	return &f.programs[len(f.programs)-1]
}

func linkName(linkType uint32) string {
	if linkType == linkSLL2 {
		return `the "any" device (link type SLL2)`
	}
	return "a BSD loopback device"
}

// errNothing is libpcap's finding that an expression matches no packet of a link type: "arp" where all is IP. tcpdump
// takes it as an error; in a file of several link types it is an answer.
var errNothing = errors.New("expression rejects all packets")

func (f *Filter) compile(dlt uint8) (*pcap.BPF, error) {
	bpf, err := pcap.NewBPF(layers.LinkType(dlt), snapLen, f.expr)
	if err == nil {
		return bpf, nil
	}
	if strings.Contains(err.Error(), errNothing.Error()) {
		return nil, fmt.Errorf("filter %q: %w", f.expr, errNothing)
	}
	return nil, fmt.Errorf("filter %q: %w", f.expr, err)
}
