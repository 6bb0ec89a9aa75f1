package wire

import (
	"cmp"
	"strconv"
)

// Proto is an IP protocol number (IANA "Assigned Internet Protocol Numbers").
type Proto uint8

// The protocols that this tool has a word for. Others are carried as their number.
const (
	ProtoNone    Proto = 0 // no transport: the packet was not decoded that far
	ProtoICMP    Proto = 1
	ProtoIPIP    Proto = 4
	ProtoTCP     Proto = 6
	ProtoUDP     Proto = 17
	ProtoIPv6    Proto = 41
	ProtoGRE     Proto = 47
	ProtoESP     Proto = 50
	ProtoAH      Proto = 51
	ProtoICMP6   Proto = 58
	ProtoSCTP    Proto = 132
	ProtoUDPLite Proto = 136
)

// String returns the protocol's word in output and JSON; protocols without one are "ip-N".
func (p Proto) String() string {
	switch p {
	case ProtoNone:
		return "none"
	case ProtoICMP:
		return "icmp"
	case ProtoIPIP:
		return "ipip"
	case ProtoTCP:
		return "tcp"
	case ProtoUDP:
		return "udp"
	case ProtoIPv6:
		return "6in4"
	case ProtoGRE:
		return "gre"
	case ProtoESP:
		return "esp"
	case ProtoAH:
		return "ah"
	case ProtoICMP6:
		return "icmp6"
	case ProtoSCTP:
		return "sctp"
	case ProtoUDPLite:
		return "udplite"
	}
	return "ip-" + strconv.Itoa(int(p))
}

// ProtoOf returns the protocol of a word of Proto.String; ok is false if it is none.
func ProtoOf(word string) (p Proto, ok bool) {
	for n := range 256 {
		if Proto(n).String() == word {
			return Proto(n), true
		}
	}
	return 0, false
}

// HasPorts tells whether the protocol has source and destination ports in its first four bytes.
func (p Proto) HasPorts() bool {
	return p == ProtoTCP || p == ProtoUDP || p == ProtoSCTP || p == ProtoUDPLite
}

// IsICMP tells whether the protocol is ICMP or ICMPv6.
func (p Proto) IsICMP() bool { return p == ProtoICMP || p == ProtoICMP6 }

// ICMP types that begin a query and an answer of their own (RFC 792, RFC 4443, RFC 4861, RFC 2710).
const (
	ICMPEchoReply    = 0
	ICMPEchoRequest  = 8
	ICMP6EchoRequest = 128
	ICMP6EchoReply   = 129
)

// Tuple is what a flow is keyed by: protocol, source and destination, as one packet carried them. It is 38 bytes
// without a gap and without a pointer.
type Tuple struct {
	Src, Dst Addr
	// SrcPortOrEchoID and DstPortOrEchoID are ports for TCP, UDP, UDP-Lite and SCTP. For ICMP queries with an identifier
	// (echo, timestamp) both hold the identifier, so that request and reply mirror each other. Zero otherwise.
	SrcPortOrEchoID, DstPortOrEchoID uint16
	Proto                            Proto
	// Query is the ICMP type of the request that the message belongs to (8 for echo and echo reply, 128 for ICMPv6 echo,
	// 135 for neighbour solicitation and advertisement, ...), so that both directions have one tuple. Zero for others.
	Query uint8
}

// Mirror returns the tuple of the opposite direction.
func (t Tuple) Mirror() Tuple {
	t.Src, t.Dst = t.Dst, t.Src
	t.SrcPortOrEchoID, t.DstPortOrEchoID = t.DstPortOrEchoID, t.SrcPortOrEchoID
	return t
}

// IsEcho tells whether the tuple is an echo request's or reply's.
func (t Tuple) IsEcho() bool {
	return t.Proto == ProtoICMP && t.Query == ICMPEchoRequest || t.Proto == ProtoICMP6 && t.Query == ICMP6EchoRequest
}

// Compare orders tuples by protocol, query, source, destination, then ports.
func (t Tuple) Compare(u Tuple) int {
	return cmp.Or(
		cmp.Compare(t.Proto, u.Proto), cmp.Compare(t.Query, u.Query),
		t.Src.Compare(u.Src), t.Dst.Compare(u.Dst),
		cmp.Compare(t.SrcPortOrEchoID, u.SrcPortOrEchoID), cmp.Compare(t.DstPortOrEchoID, u.DstPortOrEchoID),
	)
}

// String returns "tcp 10.0.0.1:1 > 10.0.0.2:2", and "icmp 10.0.0.1 > 10.0.0.2 id 7" for echo.
func (t Tuple) String() string {
	if t.Proto.HasPorts() {
		return t.Proto.String() + " " + t.Src.withPort(t.SrcPortOrEchoID) + " > " + t.Dst.withPort(t.DstPortOrEchoID)
	}
	s := t.Proto.String() + " " + t.Src.String() + " > " + t.Dst.String()
	if t.IsEcho() {
		s += " id " + strconv.Itoa(int(t.SrcPortOrEchoID))
	}
	return s
}

// Connection is an entry of a kernel's connection table (conntrack): what its first packet carried before the host translated
// it, and what its answers carry when they come in. Where they mirror each other, nothing is translated.
type Connection struct{ Orig, Reply Tuple }

// Leaving is what the connection's requests carry when they leave the host.
func (c Connection) Leaving() Tuple { return c.Reply.Mirror() }
