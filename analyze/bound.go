package analyze

// Memory is bounded by the number of flows. When the table is full, or an eighth of it is flows that have packets of one
// direction only, as a flood of openings leaves them, the oldest of those are let go; only where they are few, the oldest
// of all. How many went is counted, and nothing is concluded from the absence of a packet in such a capture.

// letGoOfSome frees an eighth of the table at least and moves what stays together.
func (t *table) letGoOfSome() {
	want := max(len(t.flows)/8, t.oneWay/2, 1)
	oneWay := func(f *flow) bool {
		return (f.dir[0].packets == 0 || f.dir[1].packets == 0) && f.errs == [2]uint32{} && f.mtu == 0
	}
	drop := make([]bool, len(t.flows))
	dropped := 0
	for i := 1; i < len(t.flows) && dropped < want; i++ {
		if oneWay(&t.flows[i]) {
			drop[i] = true
			dropped++
		}
	}
	for i := 1; i < len(t.flows) && dropped < want; i++ {
		if !drop[i] {
			drop[i] = true
			dropped++
		}
	}
	t.letGo += uint64(dropped)
	t.compact(drop)
	t.oneWay = 0
	for i := 1; i < len(t.flows); i++ {
		if f := &t.flows[i]; (f.dir[0].packets == 0) != (f.dir[1].packets == 0) {
			t.oneWay++
		}
	}
}

// compact rebuilds the table without the dropped flows.
func (t *table) compact(drop []bool) {
	moved := make([]ref, len(t.flows))
	flows := make([]flow, 1, cap(t.flows))
	taps := make([]tap, 1, cap(t.taps))
	events := make([]event, 1, cap(t.events))
	prints := make([]fingerprint, 1, cap(t.prints))
	errs := make([]icmpError, 0, cap(t.errs))
	for i := 1; i < len(t.flows); i++ {
		if drop[i] {
			continue
		}
		f := t.flows[i]
		f.taps = moveList(f.taps, t.taps, &taps, func(e *tap) *uint32 { return &e.next })
		f.events = moveList(f.events, t.events, &events, func(e *event) *uint32 { return &e.next })
		f.prints = moveList(f.prints, t.prints, &prints, func(e *fingerprint) *uint32 { return &e.next })
		for _, e := range []*uint32{&f.errs[0], &f.errs[1], &f.mtu} {
			if *e != 0 {
				errs = append(errs, t.errs[*e-1])
				*e = uint32(len(errs))
			}
		}
		f.prev = moved[f.prev] // an episode's predecessor comes before it; 0 where it was let go
		moved[i] = ref(len(flows))
		flows = append(flows, f)
	}
	index := make(map[flowKey]ref, len(t.index))
	for k, r := range t.index {
		if m := moved[r]; m != 0 {
			index[k] = m
		}
	}
	t.flows, t.taps, t.events, t.prints, t.errs, t.index = flows, taps, events, prints, errs, index
}

// moveList copies a chain to the end of another arena, in order.
func moveList[E any](l list, from []E, to *[]E, next func(*E) *uint32) list {
	var out list
	for n := l.head; n != 0; {
		e := from[n]
		n = *next(&e)
		*next(&e) = 0
		at := uint32(len(*to))
		*to = append(*to, e)
		if out.head == 0 {
			out.head = at
		} else {
			*next(&(*to)[out.tail]) = at
		}
		out.tail = at
	}
	return out
}
