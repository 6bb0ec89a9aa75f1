package analyze

import (
	"encoding/binary"
	"hash/maphash"
)

// Alike are requests that nothing tells apart but what a client chooses anew each time, times and counters: all that a row of a table, a
// finding or a sentence on what is not known is made of is the same.
type Alike struct {
	First int // number of the first of them
	Count uint64

	source  Source
	outcome Outcome
	stop    Stop
	matches uint64 // rules that make findings of them, a bit for each
	key     alike
}

// Source is the source of all of them.
func (a *Alike) Source() Source { return a.source }

// Outcome is the outcome of all of them.
func (a *Alike) Outcome() Outcome { return a.outcome }

// StoppedAt is where all of them stopped.
func (a *Alike) StoppedAt() Stop { return a.stop }

// Alike lists those that are alike, in order of the first of each.
func (res *Result) Alike() []Alike { return res.surveyed().alike }

// AlikeTo is the place in Alike of request number i.
func (res *Result) AlikeTo(i int) int { return int(res.surveyed().class[i]) }

// surveyed is the survey; of a result that was put together elsewhere it is made of what that says.
func (res *Result) surveyed() *survey {
	if res.survey == nil {
		res.surveyHeld()
		s := res.survey
		s.more = make(map[int32][]string)
		for i := range res.Requests {
			s.more[int32(i)] = res.Requests[i].Findings
		}
		s.told()
		s.number()
		s.finish()
	}
	return res.survey
}

// alike is a digest of what requests are told apart by, keyed, so that nobody can choose requests that are taken for one another.
type alike [2]uint64

// alikeness makes digests. The zero alikeness is not ready: it needs the seeds that those it is held against have.
type alikeness struct {
	seeds [2]maphash.Seed
	words []byte // room
}

func newAlikeness() alikeness {
	return alikeness{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

func (d *alikeness) digest() alike {
	return alike{maphash.Bytes(d.seeds[0], d.words), maphash.Bytes(d.seeds[1], d.words)}
}

// of is the digest of a request; matches are the rules that make findings of it.
func (d *alikeness) of(r *Request, matches uint64) alike {
	yes := func(is ...bool) (bits byte) {
		for _, b := range is {
			bits <<= 1
			if b {
				bits |= 1
			}
		}
		return bits
	}
	b := append(d.words[:0], byte(r.Source), byte(r.Outcome), byte(r.StoppedAt), byte(r.Way), byte(r.Tuple.Proto), r.Tuple.Query)
	b = binary.NativeEndian.AppendUint64(b, matches)
	b = binary.NativeEndian.AppendUint16(b, r.Server.Port)
	for _, e := range [...]*Endpoint{&r.Client, &r.Server} {
		b = append(b, e.Addr[:]...)
		b = append(b, byte(e.Role.Kind), yes(e.HasPort, e.Role.Exact, e.Role.HostNetwork, e.Role.Reused))
	}
	for _, e := range [...]*Endpoint{r.Egress, r.Far} {
		if e == nil {
			b = append(b, 0)
		} else {
			b = append(append(b, 1), e.Addr[:]...)
		}
	}
	differs := func(e, f *Endpoint) bool {
		return e != nil && (e.Addr != f.Addr || e.HasPort && f.HasPort && e.Port != f.Port)
	}
	joined := false
	for i := range r.Joins {
		joined = joined || r.Joins[i].To == "far"
	}
	b = append(b, yes(differs(r.Egress, &r.Client) || differs(r.Backend, &r.Server), joined))
	for i := range r.Legs {
		b = append(b, byte(r.Legs[i].Kind)+1)
		b = binary.NativeEndian.AppendUint32(b, uint32(r.Legs[i].Capture))
	}
	for i := range r.Unknown {
		u := &r.Unknown[i]
		for _, s := range [...]string{u.Field, u.Reason, u.Text, u.Settle} {
			b = append(append(b, 0), s...)
		}
	}
	d.words = b
	return d.digest()
}

// told is the digest of requests that were alike before findings about rules were added to them.
func (d *alikeness) told(before alike, codes []string) alike {
	b := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(d.words[:0], before[0]), before[1])
	for _, s := range codes {
		b = append(append(b, 0), s...)
	}
	d.words = b
	return d.digest()
}
