package analyze

import (
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// Result is everything that one run concludes. It is deterministic: the same captures and facts give the same Result.
type Result struct {
	Captures []CaptureInfo
	Requests []Request // in order of first packet, then of tuple, where they are held; see Len, At and Each
	Findings []Finding // most severe first
	Sources  []SourceCount
	// Limits are sentences on what the whole result cannot carry: drops, cut files, flows that were let go, unknown filters.
	Limits []string
	// Carriers are tunnels' outer flows: what they carried was judged, they were not.
	Carriers []CarrierCount
	Facts    *cluster.Facts
	// Rules are configuration, installed rules and packets held against each other; nil where neither of the first two is known.
	Rules      []RuleRow
	question   *RulesQuestion
	otherRules bool
	// Asked is the selection that the requests were picked with, "" if none; LeftOut is how many it left out; Nearest are
	// those that come nearest to it, where it picked none.
	Asked   string
	LeftOut int
	Nearest []Request

	farIsHost, farIsPath bool // stated of the far capture point

	stated []string // what the person stated of the far captures, as limits
	// answered are requests that were answered, for comparison; made by contrast, and kept by a selection, so that what is
	// compared with need not be selected.
	answered map[answeredKey][]answered

	onDemand *onDemand // nil where requests are held
	survey   *survey
}

type answeredKey struct {
	capture int
	server  wire.Addr
}

// answered is what requests are compared with that were not.
type answered struct {
	source Source
	proto  wire.Proto
	server Endpoint
	left   string // the source address that it left with
}

// CaptureInfo is one capture as it was read and understood.
type CaptureInfo struct {
	File        string // as named on the command line
	Label       string // LABEL of LABEL=FILE, "" if none
	SHA256      string // lower-case hex; "" if not computed
	Side        wire.Side
	Summary     wire.Summary
	DamageText  string   // "" if the file was whole; else the error's text, with frame number and byte offset
	LetGo       uint64   // flows that were let go for want of room; no absence is concluded from their capture
	Transmitted uint64   // transmissions of the requests, copies of one packet and its two legs taken together
	OnlySYN     bool     // every TCP packet is a SYN, so a filter on flags may have kept answers out
	OneWay      bool     // every packet travels from one address, so a filter may have kept answers out
	Notes       []string // what the analysis noticed: errors without their packet, protocols that are not judged, ...
	// InterfaceNames has, per Summary.Interfaces index, the name to show ("eth0", "if7"): the file's or --links'. Not escaped.
	InterfaceNames []string
	// ClockOffset is how far this (far) capture's clock is ahead of the near one, ClockError by how much that may be wrong,
	// nanoseconds; ClockPairs joined packets show it, or ClockStated says that the person does. Valid iff HasOffset.
	ClockOffset, ClockError int64
	ClockPairs              int
	HasOffset, ClockStated  bool
	StatedFilter            string // --near-filter or --far-filter. Valid iff HasStated.
	HasStated               bool
}

// Endpoint is one end of a request.
type Endpoint struct {
	Addr    wire.Addr
	Port    uint16
	HasPort bool // false for ICMP: JSON's port is then null
	Role    cluster.Role
}

// Request is one connection or exchange end to end, with what was concluded of it.
type Request struct {
	Tuple     wire.Tuple // as the client sent it: Src is the client
	Way       Way
	Client    Endpoint
	Server    Endpoint  // what the client addressed
	Backend   *Endpoint // destination as it left the node; nil if not translated
	Egress    *Endpoint // source as it left the node; nil if not seen leaving
	Far       *Endpoint // source as the far side saw it; nil without a far leg
	FarServer *Endpoint // destination as the far side saw it; nil without a far leg

	Source    Source
	Basis     Basis
	Outcome   Outcome
	ConnState string // Zeek's conn_state; "" for protocols without one
	History   string // Zeek's history; "" for protocols without one
	Completed bool   // data answered data, or both sides closed in order
	// Unanswered is that no reply came, and not only that none was captured: the client repeated its opening, or the capture
	// would hold a reply. Valid iff Outcome is RequestOnly.
	Unanswered bool
	StoppedAt  Stop
	Unknown    []Unknown
	Reasons    []Reason

	First, Last     int64 // nanoseconds UTC, wire.NoTime if the capture has no times
	Handshake       int64 // nanoseconds from first SYN to the client's ACK; -1 if not seen
	RequestsSent    uint64
	RepliesSeen     uint64
	Retransmissions uint64
	Opening         uint64 // what the stable id is made of, beside tuple: TCP ISN, echo identifier, or the count of requests with this tuple before
	ICMP            *ICMPAnswer
	Joins           []Join
	Frames          []FrameRef // of a request that was restored; see Cited
	Legs            []Leg
	Findings        []string // codes, in the order of the rules

	seenAt     passage          // what it was made of; empty of a restored one
	alsoAt     []passage        // and what was joined with it
	kept       *keeping         // while it is judged: where what it refers to is kept
	signs      sign             // what findings look for and no field tells
	mtu        uint32           // next-hop MTU of signMTU, 0 if the message had none
	replyFrom  wire.Addr        // of signReplyOther
	tracked    *wire.Connection // the connection table's entry that gave the source; nil if none did
	rejectedBy wire.Addr        // the router that rejected the far host's answer; zero if none did
}

// ICMPAnswer is the ICMP error that answered a request.
type ICMPAnswer struct {
	About      wire.Tuple // the quoted packet, as it travelled
	From       wire.Addr
	FromRole   cluster.Role
	Type, Code uint8
	MTU        uint32 // next-hop MTU of fragmentation needed and packet too big; zero if none
	V6         bool
}

// Leg is one stretch of a request's chain as one capture saw it.
type Leg struct {
	Kind    LegKind
	Capture int // index into Result.Captures
	Tuple   wire.Tuple
	Points  []Point
	Sent    uint64 // transmissions client to server
	Replies uint64 // transmissions server to client
	TTL     uint8  // of the first packet from the client; 0 if unknown
}

// Point is one place where a leg's packets were seen.
type Point struct {
	Iface        uint32 // index into the capture's Summary.Interfaces
	VLAN         uint32
	Depth        uint8
	RequestDir   wire.Direction // of packets from the client; DirUnknown if none was seen or the capture does not say
	ReplyDir     wire.Direction
	Sent         uint64 // packets from the client
	Replies      uint64 // packets from the server
	FirstRequest uint64 // frame number; 0 if none
	FirstReply   uint64 // frame number; 0 if none
}

// Join says what joined two legs.
type Join struct {
	From, To   string // "pod", "egress", "far"
	Basis      []string
	Confidence Confidence
}

// FrameRef is one packet that shows something.
type FrameRef struct {
	Capture   int
	Frame     uint64
	Time      int64
	Iface     uint32 // index into the Summary.Interfaces of the leg's first capture
	Direction wire.Direction
	Leg       LegKind
	What      string // "SYN", "SYN again", "SYN-ACK", "ACK", "data", "FIN", "RST", "request", "reply", "ICMP host unreachable from 10.0.0.1", ...
}

// Unknown is one field that the captures do not carry, with the reason and what would settle it.
type Unknown struct {
	Field  string // "source", "outcome", "stopped_at", "direction"
	Reason string // a stable code: "egress-not-visible", "filter-not-known", "capture-ended", "clock-not-aligned", "snaplen", ...
	Text   string // the reason as a sentence
	Settle string // a flag, a capture, a command; "" if nothing would
}

// Reason is one observed fact that carries a verdict, as a sentence.
type Reason string

// Finding is a code, what was observed, how it reads, and the requests that show it.
type Finding struct {
	Code     string
	Title    string // the answer as one sentence
	Severity int    // 0 is a note, 1 worth a look, 2 the likely trouble
	Observed []string
	Reading  []string
	Next     []string // commands or steps; commands are on a line of their own with two spaces before
	Requests []int    // numbers of requests: see Result.At
}

// SourceCount counts requests and packets per source address as they left the node.
type SourceCount struct {
	Addr     wire.Addr
	Role     cluster.Role
	Requests uint64
	Packets  uint64 // transmissions from the client, as they left the node
}

// CarrierCount is a tunnel's outer flow between two hosts.
type CarrierCount struct {
	Tunnel  wire.Tunnel
	Tuple   wire.Tuple // ports of the first packet
	Packets uint64
	Opaque  uint64 // packets whose inside was not decoded
	Capture int
}
