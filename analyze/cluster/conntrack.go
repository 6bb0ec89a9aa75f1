package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// Entry is a connection as conntrack lists it.
type Entry struct {
	wire.Connection
	State     string // of TCP and SCTP: "ESTABLISHED", ...; "" of others
	Unreplied bool   // no answer has come
	Assured   bool   // traffic went both ways for long enough that the kernel keeps it
	Gone      bool   // its end was listed (conntrack -E)
	Sent      uint64 // packets of the requests, where the kernel counts them (nf_conntrack_acct)
	Back      uint64 // of the answers. Valid iff Counted.
	Counted   bool
	// Zoned: it is of a conntrack zone other than 0. Another zone may translate what this one leaves as it is (Open vSwitch, OVN).
	Zoned bool
}

// ReadConntrack reads what conntrack -L, conntrack -E (events) or /proc/net/nf_conntrack print, with prompts and other lines around
// them. Events of one connection become one entry. It errs where no line is an entry.
func ReadConntrack(text string) (entries []Entry, skipped int, err error) {
	index := make(map[wire.Connection]int)
	for line := range strings.Lines(text) {
		e, ok := readEntry(strings.TrimSpace(line))
		if !ok {
			if strings.Contains(line, "src=") && strings.Contains(line, "dst=") {
				skipped++ // cut, or of a form that is not known
			}
			continue
		}
		if at, known := index[e.Connection]; known && (!entries[at].Gone || e.Gone) {
			entries[at].merge(&e)
			continue
		}
		if len(entries) >= maxConnections {
			return nil, 0, fmt.Errorf("more than %d connections: list those that matter (conntrack -L -d ADDRESS)", maxConnections)
		}
		index[e.Connection] = len(entries)
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, 0, errors.New("no connection is in it: give what conntrack -L prints on the node, or /proc/net/nf_conntrack")
	}
	return entries, skipped, nil
}

// merge takes over what a later event says.
func (e *Entry) merge(o *Entry) {
	if o.State != "" && (!o.Gone || e.State == "") {
		e.State = o.State
	}
	e.Unreplied = e.Unreplied && o.Unreplied
	e.Assured = e.Assured || o.Assured
	e.Gone = e.Gone || o.Gone
	e.Zoned = e.Zoned || o.Zoned
	if o.Counted {
		e.Counted, e.Sent, e.Back = true, max(e.Sent, o.Sent), max(e.Back, o.Back)
	}
}

// readEntry reads "tcp 6 119 ESTABLISHED src=... dst=... sport=... dport=... src=... dst=... [ASSURED] mark=0 use=1", with "ipv4 2" in
// front in the extended form, and "[NEW]" and a time before that in events.
func readEntry(line string) (e Entry, ok bool) {
	words := strings.Fields(line)
	at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "src=") })
	if at < 2 {
		return e, false
	}
	for i, w := range words[:at] {
		switch {
		case i > 0 && words[i-1] == "unknown": // a protocol conntrack has no name for (ESP, IGMP): its number is next
			n, err := strconv.ParseUint(w, 10, 8)
			if err != nil {
				return e, false
			}
			e.Orig.Proto = wire.Proto(n)
		case w == "[DESTROY]":
			e.Gone = true
		case len(w) > 2 && strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" && w[0] >= 'A':
			e.State = w
		default:
			if p, known := wire.ProtoOf(map[string]string{"icmpv6": "icmp6"}[w]); known {
				e.Orig.Proto = p
			} else if p, known := wire.ProtoOf(w); known && w != "none" && !strings.HasPrefix(w, "ip-") {
				e.Orig.Proto = p
			}
		}
	}
	if e.Orig.Proto == wire.ProtoNone {
		return e, false
	}
	e.Reply.Proto = e.Orig.Proto
	sides := [2]*wire.Tuple{&e.Orig, &e.Reply}
	var has [2]int // fields that were read: 1 source, 2 destination, 4 source port or identifier, 8 destination port
	side := -1
	for _, w := range words[at:] {
		switch w {
		case "[UNREPLIED]":
			e.Unreplied = true
			continue
		case "[ASSURED]":
			e.Assured = true
			continue
		}
		key, value, found := strings.Cut(w, "=")
		if !found {
			continue
		}
		if strings.HasPrefix(key, "zone") && value != "0" { // zone, zone-orig, zone-reply
			e.Zoned = true
		}
		if key == "src" {
			side++
		}
		if side < 0 || side > 1 {
			break
		}
		t := sides[side]
		switch key {
		case "src", "dst":
			a, err := netip.ParseAddr(value)
			if err != nil || a.Zone() != "" {
				return e, false
			}
			if key == "src" {
				t.Src, has[side] = wire.AddrFrom(a), has[side]|1
			} else {
				t.Dst, has[side] = wire.AddrFrom(a), has[side]|2
			}
		case "sport", "dport", "id":
			if key == "id" && (!e.Orig.Proto.IsICMP() || has[side]&4 != 0) {
				continue // the entry's own (-o id)
			}
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil {
				return e, false
			}
			if key != "dport" {
				t.SrcPortOrEchoID, has[side] = uint16(n), has[side]|4
			}
			if key != "sport" {
				t.DstPortOrEchoID, has[side] = uint16(n), has[side]|8
			}
		case "packets":
			if n, err := strconv.ParseUint(value, 10, 64); err == nil {
				e.Counted = true
				if side == 0 {
					e.Sent = n
				} else {
					e.Back = n
				}
			}
		case "type":
			if e.Orig.Proto.IsICMP() && side == 0 {
				if n, err := strconv.ParseUint(value, 10, 8); err == nil {
					e.Orig.Query, e.Reply.Query = uint8(n), uint8(n)
				}
			}
		}
	}
	want := 3
	if e.Orig.Proto.HasPorts() || e.Orig.IsEcho() {
		want = 15
	}
	for _, t := range sides {
		if !t.Src.IsValid() || !t.Dst.IsValid() {
			return e, false
		}
	}
	return e, has[0]&want == want && has[1]&want == want
}

// conntrack takes the connection table that was given.
func (b *builder) conntrack(in Input) ([]Entry, *Connections, error) {
	if in.Conntrack == nil {
		return nil, nil, nil
	}
	text, err := utf8Text(in.Conntrack)
	if err != nil {
		return nil, nil, fmt.Errorf("--conntrack %s: %w", in.ConntrackName, err)
	}
	entries, skipped, err := ReadConntrack(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("--conntrack %s: %w", in.ConntrackName, err)
	}
	known := &Connections{}
	for i := range entries {
		if e := &entries[i]; !e.Zoned || e.Reply.Dst != e.Orig.Src { // of a zone: that it does not translate says nothing
			known.Add(e.Connection)
		}
	}
	b.given = append(b.given, Given{"--conntrack", in.ConntrackName + ": " + count(len(entries), "connection")})
	if skipped > 0 {
		b.warn("conntrack-lines", fmt.Sprintf("%s: %s could not be read (cut, or of a form that is not known)", in.ConntrackName, count(skipped, "line")), nil)
	}
	return entries, known, nil
}

// Connections is the node's connection table; nil if none was given.
func (f *Facts) Connections() *Connections {
	if f == nil {
		return nil
	}
	return f.connections
}

// TableName is the name of the input that the connection table was read from.
func (f *Facts) TableName() string {
	if f == nil {
		return ""
	}
	return f.tableName
}

// Entries are the connections of that table, in its order.
func (f *Facts) Entries() []Entry {
	if f == nil {
		return nil
	}
	return f.entries
}
