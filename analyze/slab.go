package analyze

import (
	"hash/maphash"

	"github.com/srcproof/srcproof/analyze/pages"
)

// slab is a list that grows without moving what is in it: doubling a slice of some hundred megabytes would copy it, and need half as
// much again while it does. Number 0 is never given out: it stands for none. The zero slab is empty.
type slab[N ~uint32, T any] struct {
	chunks [][]T
	spare  []T    // room that becomes chunks
	n      uint32 // numbers given out, the 0 included; 0 in an empty slab
}

const chunkBits = 10

// size is one more than the highest number.
func (s *slab[N, T]) size() int { return int(max(s.n, 1)) }

// at is the record of a number that add returned. It stays where it is.
func (s *slab[N, T]) at(n N) *T { return &s.chunks[n>>chunkBits][n&(1<<chunkBits-1)] }

// add takes a record and returns its number.
func (s *slab[N, T]) add(v T) N {
	n, record := s.next()
	*record = v
	return n
}

// next gives out a record, which is zero, and its number.
func (s *slab[N, T]) next() (N, *T) {
	n := max(s.n, 1)
	if int(n>>chunkBits) == len(s.chunks) {
		if len(s.spare) == 0 {
			s.spare = pages.More[T](len(s.chunks)<<chunkBits, 1<<chunkBits)
		}
		s.chunks = append(s.chunks, s.spare[:1<<chunkBits:1<<chunkBits])
		s.spare = s.spare[1<<chunkBits:]
	}
	s.n = n + 1
	return N(n), s.at(N(n))
}

// flowIndex finds the latest flow of a key: open addressing over flow numbers, with linear probing. The hash is keyed by the process, so
// that nobody can choose keys that meet. (2026-11-30: 12 bytes a flow at most, where map[flowKey]ref takes 80 to 160.)
type flowIndex struct {
	slots []indexSlot // as many as a power of two, at most seven eighths of them used
	used  int
	seed  maphash.Seed
}

type indexSlot struct {
	hash uint32 // the lower half of the key's
	flow ref    // none is a free slot
}

const smallIndex = 1 << 10

func newFlowIndex(flows int) flowIndex {
	return flowIndex{slots: make([]indexSlot, slotsFor(flows)), seed: maphash.MakeSeed()}
}

// slotsFor is how many slots are enough for entries: a power of two of which at most seven eighths are used.
func slotsFor(entries int) int {
	size := smallIndex
	for size*7 < entries*8 {
		size *= 2
	}
	return size
}

func (x *flowIndex) hash(k *flowKey) uint32 { return uint32(maphash.Comparable(x.seed, *k)) }

// find returns the flow of a key, none if there is none; at is its slot, or the one that it would take.
func (x *flowIndex) find(k *flowKey, h uint32, flows *slab[ref, flow]) (r ref, at uint32) {
	mask := uint32(len(x.slots) - 1)
	for at = h & mask; ; at = (at + 1) & mask {
		s := x.slots[at]
		if s.flow == 0 || s.hash == h && flows.at(s.flow).key == *k {
			return s.flow, at
		}
	}
}

// set makes a flow the latest of its key.
func (x *flowIndex) set(k *flowKey, h uint32, r ref, flows *slab[ref, flow]) {
	old, at := x.find(k, h, flows)
	x.slots[at] = indexSlot{h, r}
	if old != 0 {
		return
	}
	if x.used++; x.used*8 > len(x.slots)*7 {
		x.grow()
	}
}

func (x *flowIndex) grow() {
	old := x.slots
	x.slots = pages.Make[indexSlot](2 * len(old))
	mask := uint32(len(x.slots) - 1)
	for _, s := range old {
		if s.flow == 0 {
			continue
		}
		at := s.hash & mask
		for x.slots[at].flow != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = s
	}
}

// keeping is where what lists and strings of requests hold is kept, one behind the other: a request has half a dozen of small ones, and
// making each by itself took as long as judging. The zero keeping is ready.
type keeping struct {
	legs    arena[Leg]
	points  arena[Point]
	ends    arena[Endpoint]
	joins   arena[Join]
	reasons arena[Reason]
	unknown arena[Unknown]
	also    arena[passage]
	words   arena[string]

	// brief: what only a reader asks for is not made: reasons, history, state, how long the handshake took, at which interfaces. No verdict
	// and no finding rests on it.
	brief bool

	// Room for what is being made.
	word    []byte
	because []Reason

	// texts holds a string of each hash, so that those that many requests have are held once.
	texts []string
	seed  maphash.Seed // valid iff texts is not nil
}

// keptTexts is a number of places for texts: verdicts of one capture have a few hundred texts, or one for each of their addresses.
const keptTexts = 1 << 10

func (k *keeping) prepare() {
	if k.texts == nil {
		k.texts, k.seed = make([]string, keptTexts), maphash.MakeSeed()
	}
}

// reuse forgets what is kept: its room is used again.
func (k *keeping) reuse() {
	k.legs.reuse()
	k.points.reuse()
	k.ends.reuse()
	k.joins.reuse()
	k.reasons.reuse()
	k.unknown.reuse()
	k.also.reuse()
	k.words.reuse()
}

// arena gives out small pieces of large ones, which are the larger the more are asked for.
type arena[T any] struct{ free, all []T }

func (a *arena[T]) take(n int) []T {
	if len(a.free) < n {
		a.all = make([]T, max(n, min(2*len(a.all), 1<<chunkBits)))
		a.free = a.all
	}
	out := a.free[:n:n]
	a.free = a.free[n:]
	return out
}

func (a *arena[T]) reuse() { a.free = a.all }

// keep copies a list into room, nil if it is empty. What is appended to the copy does not run into what lies behind it.
func keep[T any](room *arena[T], list []T) []T { return keepBoth(room, list, nil) }

// keepBoth copies a list and what comes behind it into room.
func keepBoth[T any](room *arena[T], list, more []T) []T {
	n := len(list) + len(more)
	if n == 0 {
		return nil
	}
	out := room.take(n)
	copy(out[copy(out, list):], more)
	return out
}

// keepOne copies a record into room.
func keepOne[T any](room *arena[T], record *T) *T {
	out := &room.take(1)[0]
	*out = *record
	return out
}

// basis keeps the words of evidence.
func (k *keeping) basis(e evidence) []string {
	var room [8]string
	return keep(&k.words, e.words(room[:0]))
}

// end keeps an endpoint.
func (k *keeping) end(e Endpoint) *Endpoint { return keepOne(&k.ends, &e) }

// text is string(s), one for many that are equal.
func (k *keeping) text(s []byte) string {
	k.prepare()
	at := &k.texts[maphash.Bytes(k.seed, s)%keptTexts]
	if *at != string(s) {
		*at = string(s)
	}
	return *at
}

// same is s, or a string that equals it and is held already.
func (k *keeping) same(s string) string {
	k.prepare()
	at := &k.texts[maphash.String(k.seed, s)%keptTexts]
	if *at != s {
		*at = s
	}
	return *at
}
