package report

import (
	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// alike tells requests apart as far as text does that does not give each a row of its own: by all that a row, a finding and a sentence
// on what is not known are made of. Of those that are alike text shows the first.
type alike struct {
	source             analyze.Source
	outcome            analyze.Outcome
	stop               analyze.Stop
	way                analyze.Way
	proto              wire.Proto
	query              uint8
	client, server     alikeEnd
	left               wire.Addr // zero if it was not seen leaving
	far                wire.Addr
	translated, joined bool
	legs               uint64 // kinds and captures
	findings, unknown  int    // numbers of words: see alikeWords
}

type alikeEnd struct {
	addr                       wire.Addr
	port                       uint16 // of the server
	hasPort                    bool
	kind                       cluster.RoleKind
	exact, hostNetwork, reused bool
}

func endOf(e *analyze.Endpoint) alikeEnd {
	return alikeEnd{addr: e.Addr, hasPort: e.HasPort, kind: e.Role.Kind, exact: e.Role.Exact, hostNetwork: e.Role.HostNetwork, reused: e.Role.Reused}
}

// alikeWords numbers lists of words. The zero alikeWords is ready.
type alikeWords struct {
	numbers map[string]int
	buffer  []byte
}

func (w *alikeWords) begin() { w.buffer = w.buffer[:0] }

func (w *alikeWords) add(s string) { w.buffer = append(append(w.buffer, s...), 0) }

func (w *alikeWords) number() int {
	if len(w.buffer) == 0 {
		return 0
	}
	n, ok := w.numbers[string(w.buffer)]
	if !ok {
		if w.numbers == nil {
			w.numbers = make(map[string]int)
		}
		n = len(w.numbers) + 1
		w.numbers[string(w.buffer)] = n
	}
	return n
}

// of is what a request is told apart by.
func (w *alikeWords) of(r *analyze.Request) alike {
	k := alike{
		source: r.Source, outcome: r.Outcome, stop: r.StoppedAt, way: r.Way, proto: r.Tuple.Proto, query: r.Tuple.Query,
		client: endOf(&r.Client), server: endOf(&r.Server),
	}
	k.server.port = r.Server.Port
	if r.Egress != nil {
		k.left = r.Egress.Addr
	}
	if r.Far != nil {
		k.far = r.Far.Addr
	}
	differs := func(e, f *analyze.Endpoint) bool {
		return e != nil && (e.Addr != f.Addr || e.HasPort && f.HasPort && e.Port != f.Port)
	}
	k.translated = differs(r.Egress, &r.Client) || differs(r.Backend, &r.Server)
	for _, j := range r.Joins {
		k.joined = k.joined || j.To == "far"
	}
	for i := range r.Legs {
		k.legs = k.legs*1021 + uint64(r.Legs[i].Kind)<<20 + uint64(r.Legs[i].Capture) + 1
	}
	w.begin()
	for _, code := range r.Findings {
		w.add(code)
	}
	k.findings = w.number()
	w.begin()
	for i := range r.Unknown {
		u := &r.Unknown[i]
		w.add(u.Field)
		w.add(u.Reason)
		w.add(u.Text)
		w.add(u.Settle)
	}
	k.unknown = w.number()
	return k
}

// n is how many requests one stands for.
func (r *Request) n() uint64 { return 1 + r.more }

// total is how many requests the record's stand for.
func (rec *Record) total() uint64 {
	var n uint64
	for i := range rec.Requests {
		n += rec.Requests[i].n()
	}
	return n
}
