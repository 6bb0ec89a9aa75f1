package wire

// Side is where a capture was taken.
type Side uint8

// Sides. SideNear is the zero value: the node.
const (
	SideNear Side = iota // the node
	SideFar              // the far host, or anything past the node
)

// String returns "near" or "far".
func (s Side) String() string {
	if s == SideFar {
		return "far"
	}
	return "near"
}

// Skip is a reason for which a frame, or a layer of it, gave no packet facts.
type Skip uint8

// The reasons.
const (
	SkipNotIP       Skip = iota // ARP, LLDP and everything else without an IP header
	SkipTooShort                // the capture holds less than the headers need (snap length)
	SkipMalformed               // a header contradicts itself or the packet's length
	SkipLinkType                // link type or hardware type not decoded
	SkipEmpty                   // a record without bytes
	SkipDepth                   // more nested headers than the decoder follows
	SkipNoInterface             // a packet block that names an interface the file does not describe
	NumSkips
)

// String returns the reason's word in JSON.
func (s Skip) String() string {
	switch s {
	case SkipNotIP:
		return "not-ip"
	case SkipTooShort:
		return "too-short"
	case SkipMalformed:
		return "malformed"
	case SkipLinkType:
		return "link-type"
	case SkipEmpty:
		return "empty"
	case SkipDepth:
		return "too-deep"
	case SkipNoInterface:
		return "no-interface"
	case NumSkips:
	}
	return "other"
}

// Interface is one place of a capture: a pcapng interface block, an SLL2 interface index, or the one interface of a
// pcap file.
type Interface struct {
	Name        string // as the file gives it, not escaped; "" is unknown
	Description string
	Filter      string // capture filter that the file records for it
	HasFilter   bool   // false: the file does not say
	Index       uint32 // operating system's interface index. Valid iff HasIndex.
	HasIndex    bool
	LinkType    uint32 // pcap LINKTYPE_ value
	SnapLen     uint32 // zero is unlimited
	Loopback    bool   // the link layer says so (SLL2 ARPHRD_LOOPBACK)
	Packets     uint64
	Dropped     uint64 // by the kernel or the interface, as interface statistics say. Valid iff HasDropped.
	HasDropped  bool
}

// Summary is what is known of a whole capture once it has been read.
type Summary struct {
	Format     string // "pcap", "pcapng", "tcpdump text"; with " (gzip)" or " (zstd)" behind it
	LinkTypes  []uint32
	Interfaces []Interface
	// AllInterfaces is true where the capture was taken on the pseudo-device any (link type SLL or SLL2): every interface
	// of the host is in it, as far as its filter let it.
	AllInterfaces bool
	SnapLen       uint32 // zero is unlimited or unknown
	Filter        string // valid iff HasFilter
	HasFilter     bool
	Frames        uint64 // records read, decoded or not
	Bytes         uint64 // captured bytes of those records
	First, Last   int64  // earliest and latest time of a frame, NoTime if there is none
	From, Until   int64  // when the capture began and ended by its own record, see Window. Valid iff HasWindow.
	HasWindow     bool
	Complete      bool   // the file ended where a record ended, and nothing in it was damaged
	Dropped       uint64 // valid iff HasDropped
	HasDropped    bool
	Skipped       [NumSkips]uint64
	FilteredOut   uint64 // records that a filter of the reader's left out, not the capture's own; part of Frames
	CutFrames     uint64 // frames whose captured bytes ended inside the headers that the analysis reads (IsCut)
	Notes         []string
	// Text is true for what tcpdump printed: names of interfaces only tell points apart, for they may be another host's.
	Text bool
	// OwnNames is true of a text that shows that tcpdump captured live where it printed: the names are that host's.
	OwnNames bool
	// NoDate is true where times count from the midnight of a day, or a packet, that is not known: they can be compared with each
	// other, and with no other capture's.
	NoDate bool
	// Excerpt says why packets that were captured may be missing in a text; "" if nothing speaks for it.
	Excerpt     string
	Hardware    string // pcapng section header options, not escaped
	OS          string
	Application string
}

// Window returns when the capture ran: as it records it itself, or else from its first frame to its last one. NoTime is not
// known.
func (s *Summary) Window() (from, until int64, recorded bool) {
	if !s.HasWindow || s.From > s.Until || s.First != NoTime && (s.First < s.From || s.Last > s.Until) {
		return s.First, s.Last, false
	}
	return s.From, s.Until, true
}
