package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/capture/wire"
)

func encode(t testing.TB, rec *Record) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteJSON(&b, rec); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encodeLines(t testing.TB, rec *Record) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteJSONL(&b, rec); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGoldenJSON(t *testing.T) {
	golden(t, "before.json", encode(t, New(before(t), tool)))
	golden(t, "before.jsonl", encodeLines(t, New(before(t), tool)))
	golden(t, "hostile.json", encode(t, New(hostile(t), tool)))
}

// contract is DESIGN section 9, field by field: what other programs rely on.
var contract = map[string]string{
	"":                  "schema tool facts captures requests findings sources rules evidence summary",
	"tool":              "version args",
	"captures[]":        "file label node sha256 side format link_types interfaces snaplen filter packets bytes window complete dropped clock_offset_ns clock_error_ns skipped notes",
	"captures[].window": "from to basis",
	"requests[]": "id proto direction client server backend egress far far_server echo_id source source_basis outcome conn_state history completed " +
		"stopped_at unknown reasons first last handshake_ns requests_sent replies_seen retransmissions icmp join frames findings",
	"requests[].client":    "addr port role name",
	"requests[].server":    "addr port role name",
	"requests[].egress":    "addr port role name",
	"requests[].unknown[]": "field reason settle",
	"requests[].icmp":      "about from type code text",
	"requests[].join[]":    "from to basis confidence",
	"requests[].frames[]":  "capture frame time interface direction leg what",
	"findings[]":           "code title observed reading next requests",
	"sources[]":            "addr role name requests packets",
	"summary":              "by_source by_outcome by_stopped_at limits",
}

func TestContract(t *testing.T) {
	for path, names := range contract {
		values := valuesAt(t, New(long(t), tool), path)
		if len(values) == 0 {
			t.Errorf("%s: nothing there", path)
		}
		for _, v := range values {
			object, ok := v.(map[string]any)
			if !ok {
				t.Errorf("%s is a %T, not an object", path, v)
				continue
			}
			for name := range strings.FieldsSeq(names) {
				if _, ok := object[name]; !ok {
					t.Errorf("%s has no %s", path, name)
				}
			}
		}
	}
}

// valuesAt returns the values at a path of the record's JSON: "requests[].client".
func valuesAt(t testing.TB, rec *Record, path string) []any {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(encode(t, rec)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	values := []any{v}
	for step := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(step, "[]")
		var next []any
		for _, v := range values {
			if name != "" {
				v = v.(map[string]any)[name]
			}
			if !list {
				next = append(next, v)
				continue
			}
			next = append(next, v.([]any)...)
		}
		values = next
	}
	return values
}

func TestJSONValues(t *testing.T) {
	limited := inside(t)
	limited.Captures[0].StatedFilter, limited.Captures[0].HasStated = "", true
	noTime := hostile(t)
	noTime.Captures[0].Summary.First, noTime.Captures[0].Summary.Last = wire.NoTime, wire.NoTime
	for _, tc := range []struct {
		what string
		res  *analyze.Result
		path string
		want string // the values at the path, as JSON
	}{
		{"the schema is named", before(t), "schema", `["srcproof/1"]`},
		{"a port is a number, ICMP's is null", before(t), "requests[].client.port", `[43076,null,50112]`},
		{"only an echo has an identifier", before(t), "requests[].echo_id", `[null,77,null]`},
		{"a handshake is in nanoseconds, absent is null", before(t), "requests[].handshake_ns", `[null,null,2100000]`},
		{"times have nine digits and are UTC", before(t), "requests[].first", `["2026-11-30T09:30:28.104211917Z","2026-11-30T09:30:32.200000000Z","2026-11-30T09:30:32.900000000Z"]`},
		{"a packet without a time has null", noTime, "requests[].frames[].time", `[null]`},
		{"a capture without times has no window", noTime, "captures[].window", `[{"basis":"none","clock_from":null,"clock_ns":null,"clock_to":null,"from":null,"to":null}]`},
		{"drops that are not recorded are null", before(t), "captures[].dropped", `[null]`},
		{"drops that are recorded may be zero", inside(t), "captures[].dropped", `[0]`},
		{"a filter that is not recorded is null", before(t), "captures[].filter", `[null]`},
		{"a recorded filter", inside(t), "captures[].filter", `["host 10.20.0.10"]`},
		{"a stated filter wins, and may be none", limited, "captures[].filter", `[""]`},
		{"unlimited snap length is null", inside(t), "captures[].interfaces[].snaplen", `[null]`},
		{"reasons that occurred, and no others", damaged(t), "captures[].skipped", `[{"malformed":1,"not-ip":4}]`},
		{"interfaces have the name to show", before(t), "captures[].interfaces[].name", `["if2","if6","if7"]`},
		{"findings name requests by id", before(t), "findings[].requests", `[["` + New(before(t), tool).Requests[0].ID + `","` + New(before(t), tool).Requests[1].ID + `"]]`},
		{"no egress is null", inside(t), "requests[].egress", `[null,null,null]`},
		{"the next hop's MTU is null where no message states one", long(t), "requests[].icmp.mtu", `[null]`},
		{"the error in words", long(t), "requests[].icmp.text", `["admin prohibited"]`},
		{"rules were not asked for", before(t), "rules", `[null]`},
		{"evidence was not asked for", before(t), "evidence", `[null]`},
		{"every outcome is counted", before(t), "summary.by_outcome", `[{"answered":0,"half-open":0,"handshake-completed":1,"midstream":0,"one-direction":0,"refused":0,"rejected":0,"reply-only":0,"request-only":2,"unknown":0}]`},
		{"what was given", before(t), "facts.given[].flag", `["--pod-cidr","--node-ip"]`},
		{"a result of nothing has empty lists, not null", &analyze.Result{}, "requests", `[[]]`},
	} {
		got, err := json.Marshal(valuesAt(t, New(tc.res, tool), tc.path))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != tc.want {
			t.Errorf("%s: %s is %s, want %s", tc.what, tc.path, got, tc.want)
		}
	}
}

func TestRequestID(t *testing.T) {
	base := func() *analyze.Request {
		return &analyze.Request{Tuple: tcp(pod, 43076, server, 80), Opening: 2506779599}
	}
	id := base().ID()
	// Pinned: an id that was written into a change record must be found again by every later version.
	if want := "030c47a86847"; id != want {
		t.Errorf("the id is %s, and was %s", id, want)
	}
	for what, change := range map[string]func(*analyze.Request){
		"client":   func(r *analyze.Request) { r.Tuple.Src = node },
		"port":     func(r *analyze.Request) { r.Tuple.SrcPortOrEchoID++ },
		"server":   func(r *analyze.Request) { r.Tuple.Dst = node },
		"protocol": func(r *analyze.Request) { r.Tuple.Proto = wire.ProtoUDP },
		"opening":  func(r *analyze.Request) { r.Opening++ },
	} {
		r := base()
		change(r)
		if r.ID() == id {
			t.Errorf("another %s has the same id", what)
		}
	}
	r := base()
	r.Outcome, r.First, r.Source = analyze.HandshakeCompleted, 1, analyze.PodSourced
	if r.ID() != id {
		t.Error("the id depends on what was concluded")
	}
}

// tokens reads JSON into its tokens, which keep the order of fields.
func tokens(t testing.TB, b []byte) []json.Token {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var out []json.Token
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		out = append(out, tok)
	}
}

// TestEncoderIsEncodingJSON holds the fast encoder to the slow one: the same fields in the same order with the same
// values, for records with every field filled at random.
func TestEncoderIsEncodingJSON(t *testing.T) {
	for seed := range uint64(40) {
		rec := randomRecord(seed)
		slow, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		want := tokens(t, slow)
		if got := tokens(t, encode(t, rec)); !slices.Equal(got, want) {
			t.Fatalf("seed %d (-encoding/json +ours)\n%s", seed, cmp.Diff(want, got))
		}
		var compact bytes.Buffer
		e := encoder{w: &compact}
		e.record(rec)
		if err := e.flush(); err != nil {
			t.Fatal(err)
		}
		if got := tokens(t, compact.Bytes()); !slices.Equal(got, want) {
			t.Fatalf("seed %d, compact (-encoding/json +ours)\n%s", seed, cmp.Diff(want, got))
		}
	}
}

func TestRoundTrip(t *testing.T) {
	records := map[string]*Record{
		"before": New(before(t), tool), "after": New(after(t), tool), "long": New(long(t), tool), "hostile": New(hostile(t), tool),
		"damaged": New(damaged(t), tool), "inside": New(inside(t), tool), "busy": New(busy(300), tool), "nothing": New(&analyze.Result{}, Tool{}),
	}
	for seed := range uint64(40) {
		records[fmt.Sprint("seed ", seed)] = randomRecord(seed)
	}
	for name, rec := range records {
		first := encode(t, rec)
		again, err := Decode(bytes.NewReader(first))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if second := encode(t, again); !bytes.Equal(first, second) {
			t.Errorf("%s: encoding what was decoded differs\n%s", name, cmp.Diff(string(first), string(second)))
		}
	}
}

// TestRoundTripText reads the text of a decoded record: a later command starts from saved results.
func TestRoundTripText(t *testing.T) {
	for name, res := range map[string]*analyze.Result{"before": before(t), "after": after(t), "long": long(t), "damaged": damaged(t)} {
		rec := New(res, tool)
		again, err := Decode(bytes.NewReader(encode(t, rec)))
		if err != nil {
			t.Fatal(err)
		}
		opt := TextOptions{Verbose: true}
		if d := cmp.Diff(string(text(t, rec, opt)), string(text(t, again, opt))); d != "" {
			t.Errorf("%s: the text of a saved record differs\n%s", name, d)
		}
	}
}

// TestLinesStayLines: a name with a line break in a sentence must not become a line of its own in a saved record, where two
// blanks in front would make it a command to paste.
func TestLinesStayLines(t *testing.T) {
	res := before(t)
	f := &res.Findings[0]
	f.Observed, f.Reading, f.Next = []string{"seen on " + evil}, []string{evil}, []string{"look at " + evil}
	again, err := Decode(bytes.NewReader(encode(t, New(res, tool))))
	if err != nil {
		t.Fatal(err)
	}
	got := again.Findings[0]
	if len(got.Observed) != 1 || len(got.Reading) != 1 || len(got.Next) != 1 {
		t.Errorf("three sentences became %q, %q, %q", got.Observed, got.Reading, got.Next)
	}
	if _, command := splitCommand(got.Next[0]); command != "" {
		t.Errorf("a name became the command %q", command)
	}
}

func TestJSONL(t *testing.T) {
	rec := New(before(t), tool)
	var types []string
	for line := range bytes.Lines(encodeLines(t, rec)) {
		var row struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		types = append(types, row.Type)
	}
	if want := []string{"capture", "request", "request", "request", "finding", "summary"}; !slices.Equal(types, want) {
		t.Errorf("the lines are %v, want %v", types, want)
	}
}

// TestJSONIsSafeToPrint: cat on a terminal must not do what a file's author wants.
func TestJSONIsSafeToPrint(t *testing.T) {
	for name, b := range map[string][]byte{"json": encode(t, New(hostile(t), tool)), "jsonl": encodeLines(t, New(hostile(t), tool))} {
		s := strings.ReplaceAll(string(b), "\n", "")
		if i := strings.IndexFunc(s, hidden); i >= 0 {
			t.Errorf("%s holds %q", name, s[i:min(len(s), i+20)])
		}
		if !strings.Contains(s, `\u001b[2J`) || !strings.Contains(s, `\u202e`) || !strings.Contains(s, `\u009b`) {
			t.Errorf("%s lost what was escaped", name)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := string(encode(t, New(before(t), tool)))
	swap := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("the record has no %s", from)
		}
		return strings.Replace(good, from, to, 1)
	}
	for _, tc := range []struct{ what, in, want string }{
		{"nothing", "", "the file ends inside the record"},
		{"a cut record", good[:len(good)/2], "the file ends inside the record"},
		{"another schema", swap(`"srcproof/1"`, `"srcproof/2"`), `"srcproof/2": not a record of schema srcproof/1`},
		{"no schema", swap(`"schema"`, `"scheme"`), `no field "schema": not a record`},
		{"an array", "[]", `"{" expected: not a record`},
		{"a word", "true", `"{" expected: not a record`},
		{"text", "09:30:28.1 IP 10.0.0.1 > 10.0.0.2", "read record: "},
		{"two records", good + good, "something follows the record"},
		{"a field twice", swap(`"summary"`, `"tool"`), `field "tool": there twice`},
		{"a request without an id", swap(`"id": "`, `"ix": "`), `element 0: no "id"`},
		{"a request that is null", swap(`"requests": [`, `"requests": [null,`), `element 0: no "id"`},
		{"requests that are no list", swap(`"requests": [`, `"requests": {}, "x": [`), `"[" expected`},
		{"a time that is none", swap(`"2026-11-30T09:30:28.104211917Z"`, `"yesterday"`), "not RFC 3339"},
		{"a time before the calendar of nanoseconds", swap(`"2026-11-30T09:30:28.104211917Z"`, `"0001-01-01T00:00:00Z"`), "outside the years"},
		{"a port beyond 16 bits", swap(`"port": 43076`, `"port": 143076`), "143076"},
		{"a frame of a capture that is not there", swap(`"capture": 0`, `"capture": 7`), "a frame of capture 7 of 1"},
		{"a negative capture", swap(`"capture": 0`, `"capture": -1`), "a frame of capture -1 of 1"},
		{"a count that is not the requests'", swap(`"requests": 3`, `"requests": 4`), "counts 4 requests, and there are 3"},
		{"a request larger than any", swap(`"what": "SYN"`, `"what": "`+strings.Repeat("x", maxRequest)+`"`), "larger than 1 MiB"},
	} {
		_, err := Decode(strings.NewReader(tc.in))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q in it", tc.what, err, tc.want)
		}
	}
	if _, err := Decode(strings.NewReader(swap(`"srcproof/1"`, `"x"`))); !errors.Is(err, ErrSchema) {
		t.Errorf("another schema is not ErrSchema: %v", err)
	}
	if _, err := Decode(strings.NewReader(swap(`"tool"`, `"later": {"a": [1]}, "tool"`))); err != nil {
		t.Errorf("a field of a later version: %v", err)
	}
	if _, err := decodeWithin(strings.NewReader(good), int64(len(good))-1); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a byte too large: %v", err)
	}
	if _, err := decodeWithin(strings.NewReader(good), int64(len(good))); err != nil {
		t.Errorf("just as large as may be: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, New(before(f), tool)))
	f.Add(encode(f, New(hostile(f), tool)))
	f.Add([]byte(`{"schema":"srcproof/1","tool":{},"captures":[],"requests":[],"findings":[],"summary":{}}`))
	f.Add([]byte(`{"schema":"srcproof/1","tool":{},"captures":[],"requests":[],"findings":[],"summary":{},"evidence":{"nodes":[{"node":"a","before":{"captures":[3],"frame":{"capture":7}}}],"first_capture":[9,-1,0,4]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := Decode(bytes.NewReader(b))
		if err != nil {
			return
		}
		first := encode(t, rec)
		again, err := Decode(bytes.NewReader(first))
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		if second := encode(t, again); !bytes.Equal(first, second) {
			t.Fatalf("not stable: %s", cmp.Diff(string(first), string(second)))
		}
		checkText(t, rec, TextOptions{Verbose: true, ShowAll: true})
		if rec.Evidence == nil {
			return
		}
		// What --check reads is as hostile: it is held against itself, written and redacted.
		for range 2 {
			_ = CheckEvidence(rec, again)
			for _, err := range []error{WriteEvidenceLine(io.Discard, rec), WriteEvidenceText(io.Discard, rec, TextOptions{}), WriteEvidenceMarkdown(io.Discard, rec)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			Redact(rec)
		}
	})
}

// failing is a writer that takes n bytes.
type failing struct{ n int }

var errFull = errors.New("no space left")

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteErrorsComeBack(t *testing.T) {
	rec := New(busy(2000), tool)
	for name, write := range map[string]func(io.Writer) error{
		"json":  func(w io.Writer) error { return WriteJSON(w, rec) },
		"jsonl": func(w io.Writer) error { return WriteJSONL(w, rec) },
		"text":  func(w io.Writer) error { return WriteText(w, rec, TextOptions{ShowAll: true}) },
	} {
		for _, n := range []int{0, 100_000} {
			if err := write(&failing{n: n}); !errors.Is(err, errFull) {
				t.Errorf("%s to a writer that takes %d bytes: %v", name, n, err)
			}
		}
	}
}

// randomRecord fills every field of a record at random, hostile strings included, as far as Decode takes it.
func randomRecord(seed uint64) *Record {
	rnd := rand.New(rand.NewPCG(seed, 1))
	rec := new(Record)
	fill(rnd, reflect.ValueOf(rec).Elem(), 0)
	rec.Schema = Schema
	if rnd.IntN(2) == 0 {
		rec.Evidence = nil
	}
	if len(rec.Captures) == 0 {
		rec.Captures = make([]Capture, 1)
		fill(rnd, reflect.ValueOf(&rec.Captures[0]).Elem(), 1)
	}
	for i := range rec.Captures {
		c := &rec.Captures[i]
		if c.Window.From.Known() != c.Window.To.Known() {
			c.Window.From = c.Window.To
		}
		if !c.Window.From.Known() {
			c.Window.Basis = "none"
		}
	}
	for i := range rec.Requests {
		r := &rec.Requests[i]
		for k := range r.Frames {
			r.Frames[k].Capture = rnd.IntN(len(rec.Captures))
		}
		for k := range r.Legs {
			r.Legs[k].Capture = rnd.IntN(len(rec.Captures))
		}
	}
	rec.Summary.Requests = uint64(len(rec.Requests))
	return rec
}

var words = []string{
	"eth0", "172.16.0.13", "2001:db8:1111:2222:3333:4444:5555:6666", "pod-sourced", "request-only", "node-snated", "handshake-completed", "unknown",
	"none", "between", "far", "near", "SYN again", "ICMP net unreachable from 10.20.0.1", "data", "return", "not-sent", "pod", "node", "service", "in", "out", "egress", "SYN", "SYN-ACK", "capture on the node: tcpdump -ni any", "tcp", "icmp",
	"\u65e5\u672c\u8a9e", evil, "\xff\xfe", "\u2028", "\U000e0041", "a\"b\\c</script>&", "default/" + "web-0", "x",
	strings.Repeat("long", 60), strings.Repeat("many words ", 40), strings.Repeat("e\u0301", 150), strings.Repeat("\u65e5\u672c", 90), "stopped_at", "source",
}

func fill(rnd *rand.Rand, v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[Time]() {
		ns := rnd.Int64N(4e18)
		if rnd.IntN(4) == 0 {
			ns = wire.NoTime
		}
		v.Set(reflect.ValueOf(TimeOf(ns)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(rnd, field, depth+1)
			}
		}
	case reflect.Pointer:
		if rnd.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(rnd, v.Elem(), depth+1)
		}
	case reflect.Slice:
		n := rnd.IntN(4)
		if depth == 1 {
			n = rnd.IntN(40)
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // json.RawMessage
		}
		for i := range n {
			fill(rnd, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rnd.IntN(3) {
			v.SetMapIndex(reflect.ValueOf(words[rnd.IntN(22)]), reflect.ValueOf(rnd.Uint64()))
		}
	case reflect.String:
		s := words[rnd.IntN(len(words))]
		if v.Type() == reflect.TypeFor[Maybe]() && rnd.IntN(3) == 0 {
			s = ""
		}
		if rnd.IntN(3) == 0 {
			s += " " + words[rnd.IntN(len(words))]
		}
		v.SetString(s)
	case reflect.Bool:
		v.SetBool(rnd.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(rnd.Int64N(1e15) - 1e14)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rnd.Uint64() >> (64 - v.Type().Bits()) >> rnd.IntN(v.Type().Bits()))
	default:
		panic(v.Type())
	}
}

func BenchmarkNew(b *testing.B) {
	res := busy(100_000)
	for b.Loop() {
		New(res, tool)
	}
}

func BenchmarkWriteJSON(b *testing.B) {
	rec := New(busy(100_000), tool)
	b.SetBytes(int64(len(encode(b, rec))))
	for b.Loop() {
		if err := WriteJSON(io.Discard, rec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteJSONL(b *testing.B) {
	rec := New(busy(100_000), tool)
	b.SetBytes(int64(len(encodeLines(b, rec))))
	for b.Loop() {
		if err := WriteJSONL(io.Discard, rec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteText(b *testing.B) {
	rec := New(busy(100_000), tool)
	for b.Loop() {
		if err := WriteText(io.Discard, rec, TextOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// A record that gathers what it shows when it is shown is printed as one that holds all of it.
func TestNewText(t *testing.T) {
	for name, res := range map[string]*analyze.Result{"before": before(t), "busy": busy(500), "none": {}} {
		for _, opt := range []TextOptions{{}, {ShowAll: true}, {Verbose: true}} {
			if d := cmp.Diff(string(text(t, New(res, tool), opt)), string(text(t, NewText(res, tool, opt), opt))); d != "" {
				t.Errorf("%s, %+v (-whole +gathered)\n%s", name, opt, d)
			}
		}
	}
}

// A record whose requests are made while they are written is written as one that holds them.
func TestNewStream(t *testing.T) {
	for name, res := range map[string]*analyze.Result{"before": before(t), "busy": busy(3000), "one piece": busy(512), "none": {}} {
		for format, write := range map[string]func(io.Writer, *Record) error{"json": WriteJSON, "jsonl": WriteJSONL} {
			var want, got bytes.Buffer
			if err := errors.Join(write(&want, New(res, tool)), write(&got, NewStream(res, tool))); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want.Bytes(), got.Bytes()) {
				t.Errorf("%s, %s: %d bytes, want %d", name, format, got.Len(), want.Len())
			}
		}
		if err := WriteJSON(&failing{n: 10_000}, NewStream(res, tool)); len(res.Requests) > 100 && !errors.Is(err, errFull) {
			t.Errorf("%s: to a writer that is full: %v", name, err)
		}
	}
}
