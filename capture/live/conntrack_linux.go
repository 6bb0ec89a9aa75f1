package live

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/ti-mo/conntrack"
	"golang.org/x/sys/unix"

	"github.com/srcproof/srcproof/capture/wire"
)

// ConnTrack asks the connection table of the kernel's network namespace that this process is in (nf_conntrack, over netlink).
// It is not safe for concurrent use.
type ConnTrack struct{ conn *conntrack.Conn }

// OpenConnTrack opens the connection table. Its errors are a *PermissionError or the system's.
func OpenConnTrack() (*ConnTrack, error) {
	conn, err := conntrack.Dial(nil)
	if err != nil {
		return nil, fmt.Errorf("open the kernel's connection table: %w", err)
	}
	t := &ConnTrack{conn}
	// The kernel checks the capability when it is asked, not when the socket is opened.
	none := netip.IPv4Unspecified()
	if _, _, err := t.Find(wire.Tuple{Proto: wire.ProtoTCP, Src: wire.AddrFrom(none), Dst: wire.AddrFrom(none)}); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Find returns the entry that a packet with a tuple belongs to, be it the connection's first one or what the host made of it; ok
// is false if there is none.
func (t *ConnTrack) Find(tuple wire.Tuple) (c wire.Connection, ok bool, err error) {
	for _, q := range []wire.Tuple{tuple, tuple.Mirror()} {
		reply := q != tuple
		ask, ok := tupleOf(q, reply)
		if !ok {
			return c, false, nil // a protocol whose connections have no tuple here
		}
		flow, err := t.conn.Get(conntrack.Flow{TupleOrig: ask})
		switch {
		case errors.Is(err, unix.ENOENT):
			continue
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
			return c, false, &PermissionError{err, "CAP_NET_ADMIN", "the kernel's connection table"}
		case err != nil:
			return c, false, fmt.Errorf("ask the kernel's connection table: %w", err)
		}
		orig, isOrig := fromTuple(&flow.TupleOrig)
		back, isReply := fromTuple(&flow.TupleReply)
		if !isOrig || !isReply {
			return c, false, nil
		}
		return wire.Connection{Orig: orig, Reply: back}, true, nil
	}
	return c, false, nil
}

// Close gives the socket back.
func (t *ConnTrack) Close() { _ = t.conn.Close() }

// answerTo is the ICMP type that answers a query (RFC 792, RFC 4443).
func answerTo(query uint8) uint8 {
	if query == wire.ICMP6EchoRequest {
		return wire.ICMP6EchoReply
	}
	return wire.ICMPEchoReply
}

// tupleOf is a tuple as the kernel has it: of a reply, the ICMP type is the answer's.
func tupleOf(t wire.Tuple, reply bool) (conntrack.Tuple, bool) {
	out := conntrack.Tuple{
		IP:    conntrack.IPTuple{SourceAddress: t.Src.Netip(), DestinationAddress: t.Dst.Netip()},
		Proto: conntrack.ProtoTuple{Protocol: uint8(t.Proto)},
	}
	switch {
	case t.Proto.HasPorts():
		out.Proto.SourcePort, out.Proto.DestinationPort = t.SrcPortOrEchoID, t.DstPortOrEchoID
	case t.IsEcho():
		out.Proto.ICMPv4, out.Proto.ICMPv6 = t.Proto == wire.ProtoICMP, t.Proto == wire.ProtoICMP6
		out.Proto.ICMPID, out.Proto.ICMPType = t.SrcPortOrEchoID, t.Query
		if reply {
			out.Proto.ICMPType = answerTo(t.Query)
		}
	default:
		return out, false
	}
	return out, true
}

func fromTuple(k *conntrack.Tuple) (wire.Tuple, bool) {
	t := wire.Tuple{Proto: wire.Proto(k.Proto.Protocol), Src: wire.AddrFrom(k.IP.SourceAddress), Dst: wire.AddrFrom(k.IP.DestinationAddress)}
	if t.Proto.HasPorts() {
		t.SrcPortOrEchoID, t.DstPortOrEchoID = k.Proto.SourcePort, k.Proto.DestinationPort
		return t, true
	}
	switch t.Proto {
	case wire.ProtoICMP:
		t.Query = wire.ICMPEchoRequest
	case wire.ProtoICMP6:
		t.Query = wire.ICMP6EchoRequest
	default:
		return t, false
	}
	t.SrcPortOrEchoID, t.DstPortOrEchoID = k.Proto.ICMPID, k.Proto.ICMPID
	return t, k.Proto.ICMPType == t.Query || k.Proto.ICMPType == answerTo(t.Query)
}
