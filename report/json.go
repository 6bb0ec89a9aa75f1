package report

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes the record as one indented JSON object. Small objects stand on one line. Every character that
// Escape would spell out is written as \uNNNN, so that the output is safe on a terminal; a byte that is not UTF-8
// becomes U+FFFD, as JSON has no form for it. Its only errors are w's.
func WriteJSON(w io.Writer, rec *Record) error {
	e := encoder{w: w, pretty: true}
	e.record(rec)
	e.newline()
	return e.flush()
}

// WriteJSONL writes one JSON object a line: every capture, every request, every finding, and last the summary with tool,
// facts, sources and carriers. A "type" in front says which; the other fields are those of WriteJSON, in its order. Its
// only errors are w's.
func WriteJSONL(w io.Writer, rec *Record) error {
	e := encoder{w: w}
	for i := range rec.Captures {
		e.row("capture", func() { e.captureFields(&rec.Captures[i]) })
	}
	e.requests(rec, func(e *encoder, r *Request) { e.row("request", func() { e.requestFields(r) }) })
	for i := range rec.Findings {
		e.row("finding", func() { e.findingFields(&rec.Findings[i]) })
	}
	for i := range rec.Rules {
		e.row("rule", func() { e.ruleFields(&rec.Rules[i]) })
	}
	e.row("summary", func() {
		e.key("schema")
		e.str(rec.Schema)
		e.key("tool")
		e.tool(&rec.Tool)
		e.key("facts")
		e.facts(&rec.Facts)
		e.key("sources")
		list(&e, rec.Sources, e.source)
		e.key("carriers")
		list(&e, rec.Carriers, e.carrier)
		e.summaryFields(&rec.Summary)
	})
	return e.flush()
}

// encoder writes JSON into one buffer that goes to w when it is full. encoding/json would take several seconds for the
// requests of a busy node; a test holds the two against each other.
type encoder struct {
	w      io.Writer
	b      []byte
	err    error // w's first error: nothing is written after it
	pretty bool
	inline int // open brackets that keep their content on one line
	depth  int
	more   bool // something stands before the next element
	second int64
	stamp  [len("2006-01-02T15:04:05.")]byte // the second's text: packets of one second share it
	dated  bool
}

const bufferSize = 64 << 10

// row writes an object on a line of its own, its type in front.
func (e *encoder) row(typ string, body func()) {
	e.open('{')
	e.key("type")
	e.str(typ)
	body()
	e.close('}')
	e.endRow()
}

func (e *encoder) flush() error {
	if e.err == nil && len(e.b) > 0 {
		_, e.err = e.w.Write(e.b)
	}
	e.b = e.b[:0]
	return e.err
}

func (e *encoder) room() {
	if len(e.b) >= bufferSize && e.w != nil {
		_ = e.flush() // the error is kept and returned at the end
	}
}

func (e *encoder) newline() { e.b = append(e.b, '\n') }

func (e *encoder) endRow() {
	e.newline()
	e.more = false
	e.room()
}

// next begins an element: a comma, and in the indented form a new line.
func (e *encoder) next() {
	if e.more {
		e.b = append(e.b, ',')
	}
	switch {
	case e.pretty && e.inline > 0 && e.more:
		e.b = append(e.b, ' ')
	case e.pretty && e.inline == 0 && e.depth > 0:
		e.lineBreak()
	}
	e.more = true
}

func (e *encoder) lineBreak() {
	e.b = append(e.b, '\n')
	for range e.depth {
		e.b = append(e.b, "  "...)
	}
}

func (e *encoder) open(c byte) {
	e.b = append(e.b, c)
	e.depth++
	e.more = false
}

func (e *encoder) close(c byte) {
	e.depth--
	if e.pretty && e.inline == 0 && e.more {
		e.lineBreak()
	}
	e.b = append(e.b, c)
	e.more = true
	e.room()
}

// openLine opens a bracket whose content stays on one line.
func (e *encoder) openLine(c byte) {
	e.open(c)
	e.inline++
}

func (e *encoder) closeLine(c byte) {
	e.depth--
	e.inline--
	e.b = append(e.b, c)
	e.more = true
}

// key writes a field's name, which needs no escaping.
func (e *encoder) key(k string) {
	e.next()
	e.b = append(e.b, '"')
	e.b = append(e.b, k...)
	e.b = append(e.b, '"')
	e.colon()
}

func (e *encoder) colon() {
	e.b = append(e.b, ':')
	if e.pretty {
		e.b = append(e.b, ' ')
	}
}

func (e *encoder) null() { e.b = append(e.b, "null"...) }

func (e *encoder) bool(v bool) { e.b = strconv.AppendBool(e.b, v) }

func (e *encoder) int(v int64) { e.b = strconv.AppendInt(e.b, v, 10) }

func (e *encoder) uint(v uint64) { e.b = strconv.AppendUint(e.b, v, 10) }

func (e *encoder) str(s string) { e.b = appendString(e.b, s) }

func (e *encoder) maybe(m Maybe) {
	if m == "" {
		e.null()
		return
	}
	e.str(string(m))
}

func (e *encoder) lines(l Lines) { e.str(strings.Join(l, "\n")) }

func (e *encoder) strIf(s *string) {
	if s == nil {
		e.null()
		return
	}
	e.str(*s)
}

func (e *encoder) intIf(v *int64) {
	if v == nil {
		e.null()
		return
	}
	e.int(*v)
}

func (e *encoder) boolIf(v *bool) {
	if v == nil {
		e.null()
		return
	}
	e.bool(*v)
}

func uintIf[T uint8 | uint16 | uint32 | uint64](e *encoder, v *T) {
	if v == nil {
		e.null()
		return
	}
	e.uint(uint64(*v))
}

func (e *encoder) time(t Time) {
	if !t.known {
		e.null()
		return
	}
	sec, nano := t.ns/1e9, t.ns%1e9
	if nano < 0 {
		sec, nano = sec-1, nano+1e9
	}
	if !e.dated || sec != e.second {
		e.dated, e.second = true, sec
		time.Unix(sec, 0).UTC().AppendFormat(e.stamp[:0], "2006-01-02T15:04:05.")
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, e.stamp[:]...)
	for div := int64(1e8); div > 0; div /= 10 {
		e.b = append(e.b, byte('0'+nano/div%10))
	}
	e.b = append(e.b, 'Z', '"')
}

func (e *encoder) strs(v []string) {
	e.openLine('[')
	for _, s := range v {
		e.next()
		e.str(s)
	}
	e.closeLine(']')
}

// paragraphs writes sentences, in the indented form a line each.
func (e *encoder) paragraphs(v []string) {
	e.open('[')
	for _, s := range v {
		e.next()
		e.str(s)
	}
	e.close(']')
}

func (e *encoder) uint32s(v []uint32) {
	e.openLine('[')
	for _, n := range v {
		e.next()
		e.uint(uint64(n))
	}
	e.closeLine(']')
}

func (e *encoder) counts(m map[string]uint64) {
	e.openLine('{')
	for _, k := range slices.Sorted(maps.Keys(m)) {
		e.next()
		e.str(k)
		e.colon()
		e.uint(m[k])
	}
	e.closeLine('}')
}

// list writes an array of objects.
func list[T any](e *encoder, v []T, one func(*T)) {
	e.open('[')
	for i := range v {
		e.next()
		one(&v[i])
	}
	e.close(']')
}

// fields writes an object, in the indented form a field a line.
func fields[T any](e *encoder, body func(*T)) func(*T) {
	return func(v *T) {
		e.open('{')
		body(v)
		e.close('}')
	}
}

func (e *encoder) record(r *Record) {
	e.open('{')
	e.key("schema")
	e.str(r.Schema)
	e.key("tool")
	e.tool(&r.Tool)
	e.key("facts")
	e.facts(&r.Facts)
	e.key("captures")
	list(e, r.Captures, fields(e, e.captureFields))
	e.key("requests")
	e.open('[')
	e.requests(r, func(e *encoder, r *Request) {
		e.next()
		e.open('{')
		e.requestFields(r)
		e.close('}')
	})
	e.close(']')
	e.key("findings")
	list(e, r.Findings, fields(e, e.findingFields))
	e.key("sources")
	list(e, r.Sources, e.source)
	e.key("carriers")
	list(e, r.Carriers, e.carrier)
	e.key("rules")
	if r.Rules == nil {
		e.null()
	} else {
		list(e, r.Rules, fields(e, e.ruleFields))
	}
	e.key("evidence")
	e.evidence(r.Evidence)
	e.key("summary")
	e.open('{')
	e.summaryFields(&r.Summary)
	e.close('}')
	e.close('}')
}

// evidence writes what a change did.
func (e *encoder) evidence(v *Evidence) {
	if v == nil {
		e.null()
		return
	}
	marshalled(e, v)
}

// marshalled writes a small value as encoding/json does, its strings escaped as all others are.
func marshalled[T any](e *encoder, v *T) {
	m, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.raw(m)
}

// ruleFields writes the members of a rule.
func (e *encoder) ruleFields(r *Rule) {
	m, err := json.Marshal(r)
	if err != nil && e.err == nil {
		e.err = err
	}
	d := json.NewDecoder(bytes.NewReader(m))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return
	}
	for d.More() {
		e.next()
		e.value(d)
		e.colon()
		e.value(d)
	}
}

// raw writes JSON that another writer made, again token by token: its form may be any, its strings hostile.
func (e *encoder) raw(m json.RawMessage) {
	if len(m) == 0 || !json.Valid(m) {
		e.null()
		return
	}
	d := json.NewDecoder(bytes.NewReader(m))
	d.UseNumber()
	e.value(d)
}

// value writes the next value of valid JSON.
func (e *encoder) value(d *json.Decoder) {
	t, err := d.Token()
	if err != nil {
		e.null()
		return
	}
	switch v := t.(type) {
	case json.Delim:
		e.open(byte(v))
		for d.More() {
			e.next()
			if v == '{' {
				e.value(d) // the name
				e.colon()
			}
			e.value(d)
		}
		_, _ = d.Token()     // the closing bracket, which valid JSON has
		e.close(byte(v) + 2) // '[' and ']', '{' and '}' are two apart in ASCII
	case bool:
		e.bool(v)
	case json.Number:
		e.b = append(e.b, v...)
	case string:
		e.str(v)
	default:
		e.null()
	}
}

func (e *encoder) tool(t *Tool) {
	e.openLine('{')
	e.key("version")
	e.str(t.Version)
	e.key("args")
	e.strs(t.Args)
	e.closeLine('}')
}

func (e *encoder) facts(f *Facts) {
	e.open('{')
	e.key("given")
	list(e, f.Given, func(g *Given) {
		e.openLine('{')
		e.key("flag")
		e.str(g.Flag)
		e.key("value")
		e.str(g.Value)
		e.closeLine('}')
	})
	e.key("warnings")
	list(e, f.Warnings, func(w *Warning) {
		e.openLine('{')
		e.key("code")
		e.str(w.Code)
		e.key("text")
		e.str(w.Text)
		e.key("names")
		e.strs(w.Names)
		e.closeLine('}')
	})
	for _, m := range []struct {
		key string
		of  *Masquerade
	}{{"masquerade", f.Masquerade}, {"planned", f.Planned}} {
		e.key(m.key)
		if m.of == nil {
			e.null()
		} else {
			marshalled(e, m.of)
		}
	}
	e.close('}')
}

func (e *encoder) captureFields(c *Capture) {
	e.key("file")
	e.str(c.File)
	e.key("label")
	e.maybe(c.Label)
	e.key("node")
	e.maybe(c.Node)
	e.key("sha256")
	e.maybe(c.SHA256)
	e.key("side")
	e.str(c.Side)
	e.key("format")
	e.str(c.Format)
	e.key("link_types")
	e.uint32s(c.LinkTypes)
	e.key("interfaces")
	list(e, c.Interfaces, e.iface)
	e.key("all_interfaces")
	e.bool(c.AllInterfaces)
	e.key("snaplen")
	uintIf(e, c.SnapLen)
	e.key("filter")
	e.strIf(c.Filter)
	e.key("filter_basis")
	e.maybe(c.FilterBasis)
	e.key("packets")
	e.uint(c.Packets)
	e.key("bytes")
	e.uint(c.Bytes)
	e.key("transmissions")
	e.uint(c.Transmissions)
	e.key("window")
	e.openLine('{')
	e.key("from")
	e.time(c.Window.From)
	e.key("to")
	e.time(c.Window.To)
	e.key("basis")
	e.str(c.Window.Basis)
	e.key("clock_from")
	e.maybe(c.Window.ClockFrom)
	e.key("clock_to")
	e.maybe(c.Window.ClockTo)
	e.key("clock_ns")
	e.intIf(c.Window.Clock)
	e.closeLine('}')
	e.key("complete")
	e.bool(c.Complete)
	e.key("damage")
	e.maybe(c.Damage)
	e.key("dropped")
	uintIf(e, c.Dropped)
	e.key("filtered_out")
	e.uint(c.FilteredOut)
	e.key("cut_packets")
	e.uint(c.CutPackets)
	e.key("flows_let_go")
	e.uint(c.LetGo)
	e.key("clock_offset_ns")
	e.intIf(c.ClockOffset)
	e.key("clock_error_ns")
	e.intIf(c.ClockError)
	e.key("clock_pairs")
	uintIf(e, c.ClockPairs)
	e.key("clock_stated")
	e.bool(c.ClockStated)
	e.key("skipped")
	e.counts(c.Skipped)
	e.key("notes")
	e.paragraphs(c.Notes)
}

func (e *encoder) iface(f *Interface) {
	e.openLine('{')
	e.key("name")
	e.maybe(f.Name)
	e.key("description")
	e.maybe(f.Description)
	e.key("index")
	uintIf(e, f.Index)
	e.key("link_type")
	e.uint(uint64(f.LinkType))
	e.key("snaplen")
	uintIf(e, f.SnapLen)
	e.key("filter")
	e.strIf(f.Filter)
	e.key("loopback")
	e.bool(f.Loopback)
	e.key("packets")
	e.uint(f.Packets)
	e.key("dropped")
	uintIf(e, f.Dropped)
	e.closeLine('}')
}

func (e *encoder) endpoint(p *Endpoint) {
	if p == nil {
		e.null()
		return
	}
	e.openLine('{')
	e.key("addr")
	e.str(p.Addr)
	e.key("port")
	uintIf(e, p.Port)
	e.key("role")
	e.str(p.Role)
	e.key("name")
	e.maybe(p.Name)
	e.key("node")
	e.maybe(p.Node)
	e.key("fact")
	e.maybe(p.Fact)
	e.key("exact")
	e.bool(p.Exact)
	e.key("host_network")
	e.bool(p.HostNetwork)
	e.key("reused")
	e.bool(p.Reused)
	e.closeLine('}')
}

func (e *encoder) requestFields(r *Request) {
	e.key("id")
	e.str(r.ID)
	e.key("proto")
	e.str(r.Proto)
	e.key("direction")
	e.str(r.Direction)
	e.key("client")
	e.endpoint(&r.Client)
	e.key("server")
	e.endpoint(&r.Server)
	e.key("backend")
	e.endpoint(r.Backend)
	e.key("egress")
	e.endpoint(r.Egress)
	e.key("far")
	e.endpoint(r.Far)
	e.key("far_server")
	e.endpoint(r.FarServer)
	e.key("echo_id")
	uintIf(e, r.EchoID)
	e.key("source")
	e.str(r.Source)
	e.key("source_basis")
	e.str(r.SourceBasis)
	e.key("outcome")
	e.str(r.Outcome)
	e.key("conn_state")
	e.maybe(r.ConnState)
	e.key("history")
	e.maybe(r.History)
	e.key("completed")
	e.bool(r.Completed)
	e.key("unanswered")
	e.boolIf(r.Unanswered)
	e.key("stopped_at")
	e.str(r.StoppedAt)
	e.key("unknown")
	list(e, r.Unknown, e.unknown)
	e.key("reasons")
	e.paragraphs(r.Reasons)
	e.key("first")
	e.time(r.First)
	e.key("last")
	e.time(r.Last)
	e.key("handshake_ns")
	e.intIf(r.Handshake)
	for _, n := range [...]struct {
		key   string
		count uint64
	}{{"requests_sent", r.RequestsSent}, {"replies_seen", r.RepliesSeen}, {"retransmissions", r.Retransmissions}} {
		e.key(n.key)
		if r.counted() {
			e.uint(n.count)
		} else {
			e.null()
		}
	}
	e.key("icmp")
	e.icmp(r.ICMP)
	e.key("join")
	list(e, r.Join, e.join)
	e.key("frames")
	list(e, r.Frames, e.frame)
	e.key("findings")
	e.strs(r.Findings)
	e.key("legs")
	list(e, r.Legs, fields(e, e.legFields))
}

func (e *encoder) unknown(u *Unknown) {
	e.openLine('{')
	e.key("field")
	e.str(u.Field)
	e.key("reason")
	e.str(u.Reason)
	e.key("text")
	e.str(u.Text)
	e.key("settle")
	e.maybe(u.Settle)
	e.closeLine('}')
}

func (e *encoder) icmp(m *ICMP) {
	if m == nil {
		e.null()
		return
	}
	e.openLine('{')
	e.key("about")
	e.str(m.About)
	e.key("from")
	e.str(m.From)
	e.key("from_role")
	e.str(m.FromRole)
	e.key("from_name")
	e.maybe(m.FromName)
	e.key("type")
	e.uint(uint64(m.Type))
	e.key("code")
	e.uint(uint64(m.Code))
	e.key("mtu")
	uintIf(e, m.MTU)
	e.key("text")
	e.str(m.Text)
	e.closeLine('}')
}

func (e *encoder) join(j *Join) {
	e.openLine('{')
	e.key("from")
	e.str(j.From)
	e.key("to")
	e.str(j.To)
	e.key("basis")
	e.strs(j.Basis)
	e.key("confidence")
	e.str(j.Confidence)
	e.closeLine('}')
}

func (e *encoder) frame(f *Frame) {
	e.openLine('{')
	e.key("capture")
	e.int(int64(f.Capture))
	e.key("frame")
	e.uint(f.Frame)
	e.key("time")
	e.time(f.Time)
	e.key("interface")
	e.maybe(f.Interface)
	e.key("direction")
	e.str(f.Direction)
	e.key("leg")
	e.str(f.Leg)
	e.key("what")
	e.str(f.What)
	e.closeLine('}')
}

func (e *encoder) legFields(l *Leg) {
	e.key("leg")
	e.str(l.Leg)
	e.key("capture")
	e.int(int64(l.Capture))
	e.key("src")
	e.str(l.Src)
	e.key("src_port")
	uintIf(e, l.SrcPort)
	e.key("dst")
	e.str(l.Dst)
	e.key("dst_port")
	uintIf(e, l.DstPort)
	e.key("echo_id")
	uintIf(e, l.EchoID)
	e.key("ttl")
	uintIf(e, l.TTL)
	e.key("sent")
	e.uint(l.Sent)
	e.key("replies")
	e.uint(l.Replies)
	e.key("points")
	list(e, l.Points, e.point)
}

func (e *encoder) point(p *Point) {
	e.openLine('{')
	e.key("interface")
	e.maybe(p.Interface)
	e.key("vlans")
	e.uint32s(p.VLANs)
	e.key("depth")
	e.uint(uint64(p.Depth))
	e.key("request_direction")
	e.str(p.RequestDirection)
	e.key("reply_direction")
	e.str(p.ReplyDirection)
	e.key("sent")
	e.uint(p.Sent)
	e.key("replies")
	e.uint(p.Replies)
	e.key("first_request")
	uintIf(e, p.FirstRequest)
	e.key("first_reply")
	uintIf(e, p.FirstReply)
	e.closeLine('}')
}

func (e *encoder) findingFields(f *Finding) {
	e.key("code")
	e.str(f.Code)
	e.key("title")
	e.str(f.Title)
	e.key("observed")
	e.lines(f.Observed)
	e.key("reading")
	e.lines(f.Reading)
	e.key("next")
	e.lines(f.Next)
	e.key("requests")
	e.strs(f.Requests)
	e.key("severity")
	e.int(int64(f.Severity))
}

func (e *encoder) source(s *Source) {
	e.openLine('{')
	e.key("addr")
	e.str(s.Addr)
	e.key("role")
	e.str(s.Role)
	e.key("name")
	e.maybe(s.Name)
	e.key("requests")
	e.uint(s.Requests)
	e.key("packets")
	e.uint(s.Packets)
	e.closeLine('}')
}

func (e *encoder) carrier(c *Carrier) {
	e.openLine('{')
	e.key("tunnel")
	e.str(c.Tunnel)
	e.key("capture")
	e.int(int64(c.Capture))
	e.key("proto")
	e.str(c.Proto)
	e.key("src")
	e.str(c.Src)
	e.key("src_port")
	uintIf(e, c.SrcPort)
	e.key("dst")
	e.str(c.Dst)
	e.key("dst_port")
	uintIf(e, c.DstPort)
	e.key("packets")
	e.uint(c.Packets)
	e.key("opaque")
	e.uint(c.Opaque)
	e.closeLine('}')
}

func (e *encoder) summaryFields(s *Summary) {
	e.key("requests")
	e.uint(s.Requests)
	e.key("by_source")
	e.counts(s.BySource)
	e.key("by_outcome")
	e.counts(s.ByOutcome)
	e.key("by_stopped_at")
	e.counts(s.ByStoppedAt)
	e.key("limits")
	e.paragraphs(s.Limits)
	e.key("asked")
	e.maybe(s.Asked)
	e.key("left_out")
	e.uint(s.LeftOut)
	e.key("nearest")
	e.paragraphs(s.Nearest)
}

// appendString appends s as a JSON string (RFC 8259 section 7).
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			b = append(b, s[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = appendUnit(b, uint16(c))
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError && !hidden(r) {
			i += n
			continue
		}
		b = append(b, s[from:i]...)
		if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
			b = appendUnit(appendUnit(b, uint16(r1)), uint16(r2))
		} else {
			b = appendUnit(b, uint16(r))
		}
		i += n
		from = i
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

func appendUnit(b []byte, u uint16) []byte {
	return append(b, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
