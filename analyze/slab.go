package analyze

import "hash/maphash"

// slab is a list that grows without moving what is in it: doubling a slice of some hundred megabytes would copy it, and need half as
// much again while it does. Number 0 is never given out: it stands for none. The zero slab is empty.
type slab[N ~uint32, T any] struct {
	chunks [][]T
	n      uint32 // numbers given out, the 0 included; 0 in an empty slab
}

const chunkBits = 10

// size is one more than the highest number.
func (s *slab[N, T]) size() int { return int(max(s.n, 1)) }

// at is the record of a number that add returned. It stays where it is.
func (s *slab[N, T]) at(n N) *T { return &s.chunks[n>>chunkBits][n&(1<<chunkBits-1)] }

// add takes a record and returns its number.
func (s *slab[N, T]) add(v T) N {
	n := max(s.n, 1)
	if int(n>>chunkBits) == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, 1<<chunkBits))
	}
	s.chunks[n>>chunkBits][n&(1<<chunkBits-1)] = v
	s.n = n + 1
	return N(n)
}

// flowIndex finds the latest flow of a key: open addressing over flow numbers, with linear probing. The hash is keyed by the process, so
// that nobody can choose keys that meet. (2026-11-30: 12 bytes a flow at most, where map[flowKey]ref takes 80 to 160.)
type flowIndex struct {
	slots []indexSlot // as many as a power of two, at most three quarters of them used
	used  int
	seed  maphash.Seed
}

type indexSlot struct {
	hash uint32 // the lower half of the key's
	flow ref    // none is a free slot
}

const smallIndex = 1 << 10

func newFlowIndex(flows int) flowIndex {
	size := smallIndex
	for size*3 < flows*4 {
		size *= 2
	}
	return flowIndex{slots: make([]indexSlot, size), seed: maphash.MakeSeed()}
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
	if x.used++; x.used*4 > len(x.slots)*3 {
		x.grow()
	}
}

func (x *flowIndex) grow() {
	old := x.slots
	x.slots = make([]indexSlot, 2*len(old))
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
