//go:build linux && cgo

package live

import (
	"fmt"
	"strings"

	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcap"
	"golang.org/x/sys/unix"

	"github.com/srcproof/srcproof/capture/filter"
)

// dltRaw is libpcap's number for raw IP on Linux; files say LinkRaw.
const dltRaw = 12

// compile makes the kernel's program of a filter expression. The kernel gives a cooked socket's filter the bytes from the
// network layer on (net/packet/af_packet.c, tpacket_rcv), so that for it and for raw devices the expression is compiled for
// raw IP; words that look at the link layer are refused there.
func compile(linkType uint32, snapLen int, expr string) ([]unix.SockFilter, error) {
	if strings.TrimSpace(expr) == "" {
		return everything(snapLen), nil
	}
	f, err := filter.Compile(expr)
	if err == nil {
		err = f.Check(linkType)
	}
	if err != nil {
		return nil, &FilterError{expr, err}
	}
	dlt := layers.LinkType(dltRaw)
	if linkType == LinkEthernet {
		dlt = layers.LinkTypeEthernet
	}
	program, err := pcap.CompileBPFFilter(dlt, snapLen, expr)
	if err != nil {
		return nil, &FilterError{expr, fmt.Errorf("filter %q: %w", expr, err)}
	}
	if len(program) > unix.BPF_MAXINSNS {
		return nil, &FilterError{expr, fmt.Errorf("filter %q: it is longer than the kernel takes; make it shorter", expr)}
	}
	out := make([]unix.SockFilter, len(program))
	for i, p := range program {
		out[i] = unix.SockFilter{Code: p.Code, Jt: p.Jt, Jf: p.Jf, K: p.K}
	}
	return out, nil
}
