package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxSize is the largest saved record that Decode reads, in bytes: some 100,000 requests. Memory stays within a small
// multiple of it, since every part of a record is refused where it lacks what a written one always has.
const MaxSize = 256 << 20

// ErrSchema is in the error of input that is JSON, and is not a record of this schema.
var ErrSchema = errors.New("not a record of schema " + Schema)

// Decode reads a Record that WriteJSON wrote. It errs on other JSON, on another schema, on more than MaxSize bytes, on a
// record that was cut, and on anything behind it. Fields that it does not know are skipped: fields are added under one
// schema.
func Decode(r io.Reader) (*Record, error) { return decodeWithin(r, MaxSize) }

func decodeWithin(r io.Reader, size int64) (*Record, error) {
	limited := &io.LimitedReader{R: r, N: size + 1}
	rec, err := decode(json.NewDecoder(limited))
	if limited.N <= 0 {
		return nil, fmt.Errorf("read record: larger than %d bytes; save one with fewer requests (--request)", size)
	}
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	return rec, nil
}

func decode(d *json.Decoder) (*Record, error) {
	if err := bracket(d, '{'); err != nil {
		return nil, err
	}
	rec := new(Record)
	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, cut(err)
		}
		name, _ := t.(string) // names of an object are strings, or Token errs
		if seen[name] {
			return nil, fmt.Errorf("field %.40q: there twice", name)
		}
		seen[name] = true
		if err := rec.field(d, name); err != nil {
			return nil, fmt.Errorf("field %.40q: %w", name, cut(err))
		}
	}
	if err := bracket(d, '}'); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the record; one record a file")
	}
	for _, name := range []string{"schema", "tool", "captures", "requests", "findings", "summary"} {
		if !seen[name] {
			return nil, fmt.Errorf("no field %q: %w", name, ErrSchema)
		}
	}
	return rec, rec.check()
}

// The largest part of a record, in bytes: one request, one capture, one finding (it names all its requests), anything
// else. Short text can stand for large values ("{}" for a Frame), so a part is measured before it is unpacked, and
// checked before the next one is read.
const (
	maxRequest = 1 << 20
	maxCapture = 4 << 20
	maxFinding = 32 << 20
	maxOther   = 16 << 20
)

// field reads one field of the record.
func (r *Record) field(d *json.Decoder, name string) error {
	switch name {
	case "schema":
		if err := part(d, &r.Schema, maxOther); err != nil {
			return err
		}
		if r.Schema != Schema {
			return fmt.Errorf("%.40q: %w", r.Schema, ErrSchema)
		}
		return nil
	case "tool":
		return part(d, &r.Tool, maxOther)
	case "facts":
		return part(d, &r.Facts, maxOther)
	case "captures":
		return elements(d, &r.Captures, maxCapture, (*Capture).check)
	case "requests":
		return elements(d, &r.Requests, maxRequest, (*Request).check)
	case "findings":
		return elements(d, &r.Findings, maxFinding, (*Finding).check)
	case "sources":
		return elements(d, &r.Sources, maxOther, func(s *Source) error { return want("addr", s.Addr, "role", s.Role) })
	case "carriers":
		return elements(d, &r.Carriers, maxOther, func(c *Carrier) error { return want("tunnel", c.Tunnel, "src", c.Src, "dst", c.Dst) })
	case "rules":
		return part(d, &r.Rules, maxOther)
	case "evidence":
		return part(d, &r.Evidence, maxOther)
	case "summary":
		return part(d, &r.Summary, maxOther)
	}
	var unknown json.RawMessage
	return d.Decode(&unknown)
}

func part(d *json.Decoder, v any, limit int) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	if len(raw) > limit {
		return fmt.Errorf("larger than %d MiB", limit>>20)
	}
	return json.Unmarshal(raw, v)
}

func elements[T any](d *json.Decoder, out *[]T, limit int, check func(*T) error) error {
	if err := bracket(d, '['); err != nil {
		return err
	}
	*out = []T{}
	for d.More() {
		var v T
		err := part(d, &v, limit)
		if err == nil {
			err = check(&v)
		}
		if err != nil {
			return fmt.Errorf("element %d: %w", len(*out), cut(err))
		}
		*out = append(*out, v)
	}
	return bracket(d, ']')
}

func bracket(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err != nil {
		return cut(err)
	}
	if t != want {
		return fmt.Errorf("at byte %d: %q expected: %w", d.InputOffset(), want.String(), ErrSchema)
	}
	return nil
}

// cut gives the end of the input inside a record its name.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends inside the record")
	}
	return err
}

// want takes pairs of a field's name and its value, and errs on the first that is empty.
func want(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return fmt.Errorf("no %q", pairs[i])
		}
	}
	return nil
}

func (c *Capture) check() error {
	if err := want("side", c.Side, "window.basis", c.Window.Basis); err != nil {
		return err
	}
	if c.Window.Basis == "none" {
		return nil
	}
	if c.Window.Basis == "clock" && c.Window.Clock != nil && *c.Window.Clock >= 0 {
		return nil
	}
	if !c.Window.From.Known() || !c.Window.To.Known() {
		return errors.New("window has a basis and no times")
	}
	return nil
}

func (r *Request) check() error {
	err := want("id", r.ID, "proto", r.Proto, "client.addr", r.Client.Addr, "server.addr", r.Server.Addr,
		"source", r.Source, "outcome", r.Outcome, "stopped_at", r.StoppedAt)
	if err != nil {
		return err
	}
	for i := range r.Frames {
		if err := want("what", r.Frames[i].What); err != nil {
			return fmt.Errorf("frames %d: %w", i, err)
		}
	}
	for i := range r.Legs {
		if err := want("leg", r.Legs[i].Leg, "src", r.Legs[i].Src, "dst", r.Legs[i].Dst); err != nil {
			return fmt.Errorf("legs %d: %w", i, err)
		}
	}
	for i := range r.Unknown {
		if err := want("field", r.Unknown[i].Field, "reason", r.Unknown[i].Reason); err != nil {
			return fmt.Errorf("unknown %d: %w", i, err)
		}
	}
	for _, e := range []*Endpoint{r.Backend, r.Egress, r.Far, r.FarServer} {
		if e == nil {
			continue
		}
		if err := want("addr", e.Addr); err != nil {
			return err
		}
	}
	return nil
}

func (f *Finding) check() error { return want("code", f.Code, "title", f.Title) }

// check holds the record's parts against each other.
func (r *Record) check() error {
	for i := range r.Requests {
		q := &r.Requests[i]
		for k := range q.Frames {
			if n := q.Frames[k].Capture; n < 0 || n >= len(r.Captures) {
				return fmt.Errorf("request %.20q: a frame of capture %d of %d", q.ID, n, len(r.Captures))
			}
		}
		for k := range q.Legs {
			if n := q.Legs[k].Capture; n < 0 || n >= len(r.Captures) {
				return fmt.Errorf("request %.20q: a leg of capture %d of %d", q.ID, n, len(r.Captures))
			}
		}
	}
	if n := uint64(len(r.Requests)); r.Summary.Requests != n {
		return fmt.Errorf("the summary counts %d requests, and there are %d", r.Summary.Requests, n)
	}
	return nil
}
