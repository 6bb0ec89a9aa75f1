package analyze

// Memory is bounded by the number of flows. When the table is full, or an eighth of it is flows that have packets of one
// direction only, as a flood of openings leaves them, the oldest of those are let go; only where they are few, the oldest
// of all. How many went is counted, and nothing is concluded from the absence of a packet in such a capture.

// letGoOfSome frees an eighth of the table at least and moves what stays together.
func (t *table) letGoOfSome() {
	want := max(t.flows.size()/8, t.oneWay/2, 1)
	oneWay := func(f *flow) bool {
		a, b := t.oddities(&f.dir[0]), t.oddities(&f.dir[1])
		return (f.dir[0].packets == 0 || f.dir[1].packets == 0) && a.rejected|b.rejected|a.mtu == 0
	}
	drop := make([]bool, t.flows.size())
	dropped := 0
	for i := 1; i < t.flows.size() && dropped < want; i++ {
		if oneWay(t.flows.at(ref(i))) {
			drop[i] = true
			dropped++
		}
	}
	for i := 1; i < t.flows.size() && dropped < want; i++ {
		if !drop[i] {
			drop[i] = true
			dropped++
		}
	}
	t.letGo += uint64(dropped)
	t.compact(drop)
	t.oneWay = 0
	for i := 1; i < t.flows.size(); i++ {
		if f := t.flows.at(ref(i)); (f.dir[0].packets == 0) != (f.dir[1].packets == 0) {
			t.oneWay++
		}
	}
}

// compact rebuilds the table without the dropped flows.
func (t *table) compact(drop []bool) {
	moved := make([]ref, t.flows.size())
	var (
		flows  slab[ref, flow]
		taps   slab[uint32, tap]
		events slab[uint32, eventBlock]
		odds   slab[uint32, oddity]
		prints slab[uint32, fingerprint]
		errs   []icmpError
	)
	for i := 1; i < t.flows.size(); i++ {
		if drop[i] {
			continue
		}
		f := *t.flows.at(ref(i))
		f.taps = moveList(list{head: f.taps}, &t.taps, &taps, func(e *tap) *uint32 { return &e.next }).head
		f.events = moveList(f.events, &t.events, &events, func(e *eventBlock) *uint32 { return &e.next })
		f.prints = moveList(f.prints, &t.prints, &prints, func(e *fingerprint) *uint32 { return &e.next })
		for side := range f.dir {
			d := &f.dir[side]
			if d.odd == 0 {
				continue
			}
			d.odd = odds.add(*t.odds.at(d.odd))
			for _, e := range []*uint32{&odds.at(d.odd).rejected, &odds.at(d.odd).mtu} {
				if *e != 0 {
					errs = append(errs, t.errs[*e-1])
					*e = uint32(len(errs))
				}
			}
		}
		f.prev = moved[f.prev] // an episode's predecessor comes before it; 0 where it was let go
		moved[i] = flows.add(f)
	}
	index := newFlowIndex(flows.size())
	index.seed = t.index.seed
	for _, s := range t.index.slots {
		if m := moved[s.flow]; m != 0 {
			index.set(&flows.at(m).key, s.hash, m, &flows)
		}
	}
	t.flows, t.taps, t.events, t.odds, t.prints, t.errs, t.index = flows, taps, events, odds, prints, errs, index
}

// moveList copies a chain to the end of another slab, in order.
func moveList[E any](l list, from, to *slab[uint32, E], next func(*E) *uint32) list {
	var out list
	for n := l.head; n != 0; {
		e := *from.at(n)
		n = *next(&e)
		*next(&e) = 0
		at := to.add(e)
		if out.head == 0 {
			out.head = at
		} else {
			*next(to.at(out.tail)) = at
		}
		out.tail = at
	}
	return out
}
