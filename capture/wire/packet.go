package wire

// NoTime is the Time of a packet whose capture gives none.
const NoTime int64 = -1 << 63

// Direction tells how a frame passed the capturing host.
type Direction uint8

// Directions. DirUnknown is the zero value: most captures of a single interface do not record one.
const (
	DirUnknown Direction = iota
	DirIn                // received by the capturing host (SLL packet types 0 to 3, epb_flags inbound)
	DirOut               // sent by the capturing host (SLL packet type 4, epb_flags outbound)
)

// String returns "in", "out" or "unknown".
func (d Direction) String() string {
	switch d {
	case DirIn:
		return "in"
	case DirOut:
		return "out"
	case DirUnknown:
	}
	return "unknown"
}

// Known is the set of optional facts that a Packet carries. A field whose bit is clear is unknown, whatever it holds.
type Known uint16

// The optional facts.
const (
	KnowIPID      Known = 1 << iota // IPID: an IPv4 header, or an IPv6 fragment header, was there
	KnowTTL                         // TTL
	KnowTransport                   // the header fields behind the ports: TCP flags, Seq, Ack, Window; SCTP chunk; ICMP type and code
	KnowOptions                     // all TCP options were captured and read: absent Timestamps are then truly absent
	KnowTS                          // TSVal and TSEcr
	KnowPayload                     // PayloadLen
	KnowDigest16                    // Digest16: the first min(16, PayloadLen) payload bytes were captured, and PayloadLen > 0
	KnowDigest64                    // Digest64: the first min(64, PayloadLen) payload bytes were captured, and PayloadLen > 0
	KnowDigestAll                   // DigestAll: the whole payload was captured, and PayloadLen > 0 (never for TCP)
)

// Attr is a set of plain marks on a packet.
type Attr uint16

// The marks.
const (
	IsError      Attr = 1 << iota // an ICMP error: see Packet.Tuple, Packet.ErrorFrom
	IsCarrier                     // a tunnel's outer packet: what it carries follows as packets of greater Depth with the same Frame
	IsOpaque                      // a carrier or protocol whose inside was not decoded (ESP, WireGuard, unknown protocol, cut carrier)
	IsFragment                    // part of a fragmented datagram; only the first fragment (offset 0) has ports
	IsLaterFrag                   // a fragment with offset > 0: Tuple has addresses and protocol only
	IsReply                       // an ICMP query's reply (echo reply, ...): Tuple.Query names the request's type
	IsCut                         // the snap length cut the packet inside its headers
	IsLoopbackIf                  // seen on a loopback interface (ARPHRD_LOOPBACK): delivered on this host, never left it
)

// TCPFlags are the TCP header's flag bits in wire order (RFC 9293 section 3.1).
type TCPFlags uint8

// The TCP flags that the analysis reads.
const (
	FIN TCPFlags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// SCTP chunk types (RFC 9260 section 3.2) that the analysis reads. Packet.Chunk is the first chunk's type.
const (
	ChunkData       = 0
	ChunkInit       = 1
	ChunkInitAck    = 2
	ChunkSack       = 3
	ChunkAbort      = 6
	ChunkShutdown   = 7
	ChunkShutAck    = 8
	ChunkCookieEcho = 10
	ChunkCookieAck  = 11
	ChunkShutCompl  = 14
)

// Packet is the facts of one captured frame, or of one layer of a tunnelled one. A frame gives one Packet per IP header
// chain that leads to a transport: the outermost first, each inner one with Depth one greater.
type Packet struct {
	// Time is nanoseconds since 1970-01-01 UTC, or NoTime.
	Time int64
	// Frame is the number that Wireshark and tcpdump -# show: 1 is the first packet of the file.
	Frame uint64
	// Tuple is the packet's own, or, for an ICMP error (IsError), the tuple of the quoted packet in the direction in which
	// the quoted packet travelled. Proto is ProtoNone where no IP header was found.
	Tuple Tuple
	// ErrorFrom is the source address of the ICMP error itself. Valid iff IsError.
	ErrorFrom Addr
	// ErrorTo is the destination address of the ICMP error itself: usually Tuple.Src. Valid iff IsError.
	ErrorTo Addr
	// Digest16, Digest64 and DigestAll are keyed hashes of payload prefixes; the key is one per process, so they compare
	// within a run and are never stored. Of an ICMP error they are unknown. See the Known bits.
	Digest16, Digest64, DigestAll uint64
	// Seq and Ack: TCP sequence and acknowledgement numbers; SCTP: Seq is the initiate tag of INIT and INIT ACK, else the
	// TSN of DATA, and Ack is the verification tag; ICMP echo: Seq is the sequence number. Of an ICMP error: the quoted
	// packet's. Valid iff KnowTransport.
	Seq, Ack uint32
	// TSVal and TSEcr are the TCP timestamps (RFC 7323). Valid iff KnowTS.
	TSVal, TSEcr uint32
	// PayloadLen is the transport payload in bytes by the headers' lengths (by the captured length where the IP total
	// length is zero: offload, BIG TCP). For ICMP echo: the data behind identifier and sequence number. Valid iff KnowPayload.
	PayloadLen uint32
	// WireLen is the frame's length on the wire in bytes.
	WireLen uint32
	// VLAN is the stack of VLAN identifiers, 12 bits each, innermost lowest; zero is untagged. Deeper than two tags: the
	// outer ones are folded into the upper bits.
	VLAN uint32
	// Iface is an index into Summary.Interfaces.
	Iface uint32
	// MTU is the next-hop MTU of fragmentation needed (RFC 1191) and packet too big (RFC 4443), else zero. Valid iff IsError.
	MTU uint32
	// IPID is the IPv4 identification, or the low 16 bits of the IPv6 fragment identification. Of an ICMP error: the quoted
	// packet's. Valid iff KnowIPID.
	IPID   uint16
	Window uint16 // TCP window as on the wire, unscaled. Valid iff KnowTransport and TCP.
	MSS    uint16 // TCP maximum segment size option of a SYN; zero is absent or unknown
	Known  Known
	Attr   Attr
	Dir    Direction
	Depth  uint8    // 0 is the outermost IP packet; each tunnel adds one
	TTL    uint8    // TTL or hop limit of this IP header. Of an ICMP error: the error's own. Valid iff KnowTTL.
	Flags  TCPFlags // Valid iff KnowTransport and TCP. Of an ICMP error: the quoted packet's, where quoted.
	Chunk  uint8    // SCTP: type of the first chunk. Valid iff KnowTransport and SCTP.
	// ICMPType and ICMPCode are the message's own, for queries and errors. Valid iff the packet is ICMP and KnowTransport,
	// or IsError.
	ICMPType, ICMPCode uint8
	// Tunnel says what kind of carrier this packet is. Valid iff IsCarrier or IsOpaque.
	Tunnel Tunnel
	// SrcMAC is the link-layer source address; all zero where there is none.
	SrcMAC [6]byte
}

// Has tells whether all the given facts are known.
func (p *Packet) Has(k Known) bool { return p.Known&k == k }

// Is tells whether all the given marks are set.
func (p *Packet) Is(a Attr) bool { return p.Attr&a == a }

// Tunnel is a kind of carrier.
type Tunnel uint8

// The carriers. TunnelOther is an opaque protocol without a word of its own.
const (
	TunnelNone Tunnel = iota
	TunnelVXLAN
	TunnelGeneve
	TunnelGRE
	TunnelIPIP
	Tunnel6in4
	TunnelESP
	TunnelWireGuard
	TunnelGTPU
	TunnelTeredo
	TunnelAYIYA
	TunnelOther
)

// String returns the carrier's word.
func (t Tunnel) String() string {
	switch t {
	case TunnelNone:
		return "none"
	case TunnelVXLAN:
		return "vxlan"
	case TunnelGeneve:
		return "geneve"
	case TunnelGRE:
		return "gre"
	case TunnelIPIP:
		return "ipip"
	case Tunnel6in4:
		return "6in4"
	case TunnelESP:
		return "esp"
	case TunnelWireGuard:
		return "wireguard"
	case TunnelGTPU:
		return "gtp-u"
	case TunnelTeredo:
		return "teredo"
	case TunnelAYIYA:
		return "ayiya"
	case TunnelOther:
	}
	return "other"
}
