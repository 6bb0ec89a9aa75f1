package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/srcproof/srcproof/capture/wire"
)

// Schema is the version of the Record's JSON form. Fields are added under it, never renamed or removed.
const Schema = "srcproof/1"

// Record is everything that a run concluded, in the form that all writers share. Its JSON form is the contract of
// DESIGN section 9: what is absent is null and never zero, times are RFC 3339 UTC with nanoseconds, durations integer
// nanoseconds, addresses strings.
type Record struct {
	Schema   string    `json:"schema"`
	Tool     Tool      `json:"tool"`
	Facts    Facts     `json:"facts"`
	Captures []Capture `json:"captures"`
	Requests []Request `json:"requests"`
	Findings []Finding `json:"findings"`
	Sources  []Source  `json:"sources"`
	Carriers []Carrier `json:"carriers"`
	Rules    []Rule    `json:"rules"`    // nil where neither masquerade configuration nor rules are known
	Evidence *Evidence `json:"evidence"` // nil where no evidence was asked for
	Summary  Summary   `json:"summary"`

	from *builder // see NewText
}

// Tool says what made the record.
type Tool struct {
	Version string   `json:"version"`
	Args    []string `json:"args"`
}

// Facts is what was known of the cluster, and from where.
type Facts struct {
	Given    []Given   `json:"given"`
	Warnings []Warning `json:"warnings"`
	// Masquerade is the masquerade configuration that was given, Planned the one that may come in its place; nil is none.
	Masquerade *Masquerade `json:"masquerade"`
	Planned    *Masquerade `json:"planned"`
}

// Given is one flag or file that stated a fact.
type Given struct {
	Flag  string `json:"flag"`
	Value string `json:"value"`
}

// Warning is something about the facts that the person should know.
type Warning struct {
	Code  string   `json:"code"`
	Text  string   `json:"text"`
	Names []string `json:"names"`
}

// Capture is one source of packets.
type Capture struct {
	File          string            `json:"file"`
	Label         Maybe             `json:"label"`
	Node          Maybe             `json:"node"`   // name of the node it was taken on, where the facts say it
	SHA256        Maybe             `json:"sha256"` // absent unless a digest was asked for
	Side          string            `json:"side"`
	Format        string            `json:"format"`
	LinkTypes     []uint32          `json:"link_types"` // pcap LINKTYPE_ numbers
	Interfaces    []Interface       `json:"interfaces"`
	AllInterfaces bool              `json:"all_interfaces"` // taken on the pseudo-device any
	SnapLen       *uint32           `json:"snaplen"`        // bytes; absent is unlimited or unknown
	Filter        *string           `json:"filter"`         // absent is unknown; "" is known to be none
	FilterBasis   Maybe             `json:"filter_basis"`   // "stated" by a person or "recorded" in the file
	Packets       uint64            `json:"packets"`        // records of the file, judged or not
	Bytes         uint64            `json:"bytes"`          // captured bytes of those records
	Transmissions uint64            `json:"transmissions"`  // packets, copies of one packet counted once
	Window        Window            `json:"window"`
	Complete      bool              `json:"complete"`
	Damage        Maybe             `json:"damage"` // where and how the file is damaged
	Dropped       *uint64           `json:"dropped"`
	FilteredOut   uint64            `json:"filtered_out"`    // packets that --filter left out
	CutPackets    uint64            `json:"cut_packets"`     // packets whose captured bytes end inside their headers
	LetGo         uint64            `json:"flows_let_go"`    // flows forgotten for want of room
	ClockOffset   *int64            `json:"clock_offset_ns"` // this clock minus the near clock
	ClockError    *int64            `json:"clock_error_ns"`
	ClockPairs    *uint64           `json:"clock_pairs"`  // joined packets that show it; absent where none does
	ClockStated   bool              `json:"clock_stated"` // a person says so, no packet shows it
	Skipped       map[string]uint64 `json:"skipped"`      // why frames gave no packet; only reasons that occurred
	Notes         []string          `json:"notes"`
}

// Interface is one place of a capture.
type Interface struct {
	Name        Maybe   `json:"name"` // the name to show: the file's, or that of --links, or "if" and the index
	Description Maybe   `json:"description"`
	Index       *uint32 `json:"index"` // the operating system's
	LinkType    uint32  `json:"link_type"`
	SnapLen     *uint32 `json:"snaplen"`
	Filter      *string `json:"filter"`
	Loopback    bool    `json:"loopback"`
	Packets     uint64  `json:"packets"`
	Dropped     *uint64 `json:"dropped"`
}

// Window is the time for which a capture can speak.
type Window struct {
	From  Time   `json:"from"`
	To    Time   `json:"to"`
	Basis string `json:"basis"` // "packets": first and last packet; "recorded": the file says when it was captured; "clock": the text's times have no date; "none": no packet has a time
	// Of times without a date: the time of day of the first and of the last packet, and the nanoseconds between them.
	ClockFrom Maybe  `json:"clock_from"`
	ClockTo   Maybe  `json:"clock_to"`
	Clock     *int64 `json:"clock_ns"`
}

// Endpoint is one end of a request.
type Endpoint struct {
	Addr        string  `json:"addr"`
	Port        *uint16 `json:"port"` // absent for ICMP
	Role        string  `json:"role"`
	Name        Maybe   `json:"name"`
	Node        Maybe   `json:"node"`
	Fact        Maybe   `json:"fact"`  // what says so
	Exact       bool    `json:"exact"` // an exact address says so, not a range
	HostNetwork bool    `json:"host_network"`
	Reused      bool    `json:"reused"` // several Pods of the cluster file had this address
}

// Request is one connection or exchange end to end, and what was concluded of it.
type Request struct {
	ID              string    `json:"id"`
	Proto           string    `json:"proto"`
	Direction       string    `json:"direction"`
	Client          Endpoint  `json:"client"`
	Server          Endpoint  `json:"server"`     // what the client addressed
	Backend         *Endpoint `json:"backend"`    // destination as it left the node, if translated
	Egress          *Endpoint `json:"egress"`     // source as it left the node
	Far             *Endpoint `json:"far"`        // source as the far side saw it
	FarServer       *Endpoint `json:"far_server"` // destination as the far side saw it
	EchoID          *uint16   `json:"echo_id"`
	Source          string    `json:"source"`
	SourceBasis     string    `json:"source_basis"`
	Outcome         string    `json:"outcome"`
	ConnState       Maybe     `json:"conn_state"`
	History         Maybe     `json:"history"`
	Completed       bool      `json:"completed"`
	Unanswered      *bool     `json:"unanswered"` // of request-only: no reply came, and not only none was captured; else absent
	StoppedAt       string    `json:"stopped_at"`
	Unknown         []Unknown `json:"unknown"`
	Reasons         []string  `json:"reasons"`
	First           Time      `json:"first"`
	Last            Time      `json:"last"`
	Handshake       *int64    `json:"handshake_ns"`
	RequestsSent    uint64    `json:"requests_sent"`
	RepliesSeen     uint64    `json:"replies_seen"`
	Retransmissions uint64    `json:"retransmissions"`
	ICMP            *ICMP     `json:"icmp"`
	Join            []Join    `json:"join"`
	Frames          []Frame   `json:"frames"`
	Findings        []string  `json:"findings"`
	Legs            []Leg     `json:"legs"`

	more uint64 // requests that are like this one and not in the record: see NewText
	left int    // number of the request, plus one, of which reasons and frames are not filled in yet: see NewText
}

// Unknown is one field that the captures do not carry.
type Unknown struct {
	Field  string `json:"field"`
	Reason string `json:"reason"` // a stable code
	Text   string `json:"text"`   // the reason as a sentence
	Settle Maybe  `json:"settle"` // what would turn it into an answer
}

// ICMP is the ICMP error that answered a request.
type ICMP struct {
	About    string  `json:"about"` // the quoted packet's tuple
	From     string  `json:"from"`
	FromRole string  `json:"from_role"`
	FromName Maybe   `json:"from_name"`
	Type     uint8   `json:"type"`
	Code     uint8   `json:"code"`
	MTU      *uint32 `json:"mtu"` // bytes; next-hop MTU where the message states one
	Text     string  `json:"text"`
}

// Join says what joined two legs.
type Join struct {
	From       string   `json:"from"`
	To         string   `json:"to"`
	Basis      []string `json:"basis"`
	Confidence string   `json:"confidence"`
}

// Frame is one packet that shows something.
type Frame struct {
	Capture   int    `json:"capture"` // index into captures
	Frame     uint64 `json:"frame"`   // the number that Wireshark shows
	Time      Time   `json:"time"`
	Interface Maybe  `json:"interface"`
	Direction string `json:"direction"`
	Leg       string `json:"leg"`
	What      string `json:"what"`
}

// Leg is one stretch of a request's chain as one capture saw it.
type Leg struct {
	Leg     string  `json:"leg"`
	Capture int     `json:"capture"` // index into captures
	Src     string  `json:"src"`
	SrcPort *uint16 `json:"src_port"`
	Dst     string  `json:"dst"`
	DstPort *uint16 `json:"dst_port"`
	EchoID  *uint16 `json:"echo_id"`
	TTL     *uint8  `json:"ttl"` // of the first packet from the client
	Sent    uint64  `json:"sent"`
	Replies uint64  `json:"replies"`
	Points  []Point `json:"points"`
}

// Point is one place where a leg's packets were seen.
type Point struct {
	Interface        Maybe    `json:"interface"`
	VLANs            []uint32 `json:"vlans"` // innermost first
	Depth            uint8    `json:"depth"` // tunnels around the packets
	RequestDirection string   `json:"request_direction"`
	ReplyDirection   string   `json:"reply_direction"`
	Sent             uint64   `json:"sent"`
	Replies          uint64   `json:"replies"`
	FirstRequest     *uint64  `json:"first_request"` // frame number
	FirstReply       *uint64  `json:"first_reply"`   // frame number
}

// Finding is a code, what was observed, how it reads, and the requests that show it.
type Finding struct {
	Code     string   `json:"code"`
	Title    string   `json:"title"`
	Observed Lines    `json:"observed"`
	Reading  Lines    `json:"reading"`
	Next     Lines    `json:"next"` // a line that begins with two spaces is a command
	Requests []string `json:"requests"`
	Severity int      `json:"severity"` // 0 a note, 1 worth a look, 2 the likely trouble
}

// Source counts what left the node with one source address.
type Source struct {
	Addr     string `json:"addr"`
	Role     string `json:"role"`
	Name     Maybe  `json:"name"`
	Requests uint64 `json:"requests"`
	Packets  uint64 `json:"packets"`
}

// Carrier is a tunnel's outer flow: what it carried was judged, it was not.
type Carrier struct {
	Tunnel  string  `json:"tunnel"`
	Capture int     `json:"capture"`
	Proto   string  `json:"proto"`
	Src     string  `json:"src"`
	SrcPort *uint16 `json:"src_port"`
	Dst     string  `json:"dst"`
	DstPort *uint16 `json:"dst_port"`
	Packets uint64  `json:"packets"`
	Opaque  uint64  `json:"opaque"` // packets whose inside was not decoded
}

// Summary counts the requests by each verdict. Every word of the tool's own is a key, also where its count is zero, so
// that a program may ask for it without asking first whether it is there.
type Summary struct {
	Requests    uint64            `json:"requests"`
	BySource    map[string]uint64 `json:"by_source"`
	ByOutcome   map[string]uint64 `json:"by_outcome"`
	ByStoppedAt map[string]uint64 `json:"by_stopped_at"`
	Limits      []string          `json:"limits"`
	Asked       Maybe             `json:"asked"`    // the selection that these requests were picked with
	LeftOut     uint64            `json:"left_out"` // requests that it did not pick
	Nearest     []string          `json:"nearest"`  // where it picked none, the requests that come nearest to it
}

// Maybe is a string that may be absent: "" is absent, and null in JSON.
type Maybe string

// MarshalJSON encodes "" as null.
func (m Maybe) MarshalJSON() ([]byte, error) {
	if m == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(m))
}

// Lines are sentences or steps; in JSON they are one string with a line each.
type Lines []string

// linesOf copies sentences. One that quotes a name with a line break must not become two, of which the second could pass
// for a command.
func linesOf(in []string) Lines {
	out := make(Lines, 0, len(in))
	for _, s := range in {
		out = append(out, strings.ReplaceAll(s, "\n", `\x0a`))
	}
	return out
}

// MarshalJSON joins the lines.
func (l Lines) MarshalJSON() ([]byte, error) { return json.Marshal(strings.Join(l, "\n")) }

// UnmarshalJSON splits the string into lines. It errs on what is no string.
func (l *Lines) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("lines: %w", err)
	}
	*l = Lines{}
	if s != "" {
		*l = strings.Split(s, "\n")
	}
	return nil
}

// Time is a moment to the nanosecond, or none: the zero Time is absent, and null in JSON.
type Time struct {
	ns    int64 // since 1970-01-01 UTC. Valid iff known.
	known bool
}

// TimeOf returns the Time of nanoseconds since 1970-01-01 UTC; wire.NoTime gives the absent Time.
func TimeOf(ns int64) Time {
	if ns == wire.NoTime {
		return Time{}
	}
	return Time{ns: ns, known: true}
}

// Known tells whether there is a time.
func (t Time) Known() bool { return t.known }

// In returns the time in a zone. Valid iff Known.
func (t Time) In(loc *time.Location) time.Time { return time.Unix(0, t.ns).In(loc) }

// Sub returns t minus u in nanoseconds. Valid iff both are Known.
func (t Time) Sub(u Time) int64 { return t.ns - u.ns }

// MarshalJSON encodes RFC 3339 in UTC with nine digits of a second, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if !t.known {
		return []byte("null"), nil
	}
	return t.In(time.UTC).AppendFormat(nil, `"2006-01-02T15:04:05.000000000Z"`), nil
}

// UnmarshalJSON reads any RFC 3339 time between the years 1678 and 2261, or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	var v time.Time
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("time %.40s: not RFC 3339", b)
	}
	// Beyond these years UnixNano is undefined (package time).
	if y := v.UTC().Year(); y < 1678 || y > 2261 {
		return fmt.Errorf("time %.40s: outside the years 1678 to 2261", b)
	}
	*t = TimeOf(v.UnixNano())
	return nil
}
