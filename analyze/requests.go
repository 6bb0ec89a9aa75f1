package analyze

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"

	"github.com/srcproof/srcproof/capture/wire"
)

// A result's requests are held, or judged when they are asked for. The flow table tells what is told of one, so that judging it again
// gives the same. (2026-12-01: a held one takes 0.75 KB, judging one 0.7 microseconds.)

// Room is where one request is judged after another. The zero Room is ready. It is for one goroutine.
type Room struct {
	space viewSpace
	r     Request
}

// Len is how many requests there are.
func (res *Result) Len() int {
	if res.onDemand != nil {
		return len(res.onDemand.order)
	}
	return len(res.Requests)
}

// At is the request number i, from 0, in order of first packet, then of tuple. It is valid until the room is used again; with nil for
// a room, as long as anybody wants.
func (res *Result) At(i int, room *Room) *Request {
	if res.onDemand == nil {
		return &res.Requests[i]
	}
	if room == nil {
		room = new(Room)
	} else {
		room.space.kept.reuse()
	}
	res.onDemand.judge(i, &room.r, &room.space)
	return &room.r
}

// Each gives the requests in order, with their numbers. One is valid until the next is asked for.
func (res *Result) Each(yield func(int, *Request) bool) {
	res.each(res.Len(), func(k int) int { return k }, yield)
}

// some is Each for some requests.
func (res *Result) some(which []int32) func(yield func(int, *Request) bool) {
	return func(yield func(int, *Request) bool) {
		res.each(len(which), func(k int) int { return int(which[k]) }, yield)
	}
}

// each gives n requests; number has the number of each.
func (res *Result) each(n int, number func(k int) int, yield func(int, *Request) bool) {
	workers := min(runtime.GOMAXPROCS(0), (n+pieceSize-1)/pieceSize)
	if res.onDemand == nil || workers < 2 {
		var room Room
		for k := range n {
			if !yield(number(k), res.At(number(k), &room)) {
				return
			}
		}
		return
	}
	// Pieces are judged on all processors and given in order. There are few of them, and they are used again.
	type piece struct {
		from  int
		space viewSpace
		rs    [pieceSize]Request
		done  chan struct{}
	}
	pieces := 2 * workers
	free, todo, order := make(chan *piece, pieces), make(chan *piece, pieces), make(chan *piece, pieces)
	for range pieces {
		p := &piece{done: make(chan struct{}, 1)}
		free <- p
	}
	stop := make(chan struct{})
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for p := range todo {
				p.space.kept.reuse()
				for k := p.from; k < min(p.from+pieceSize, n); k++ {
					res.onDemand.judge(number(k), &p.rs[k-p.from], &p.space)
				}
				p.done <- struct{}{}
			}
		})
	}
	working.Go(func() {
		defer close(order)
		defer close(todo)
		for from := 0; from < n; from += pieceSize {
			select {
			case p := <-free:
				p.from = from
				order <- p
				todo <- p
			case <-stop:
				return
			}
		}
	})
	defer working.Wait()
	defer close(stop)
	for p := range order {
		<-p.done
		for k := p.from; k < min(p.from+pieceSize, n); k++ {
			if !yield(number(k), &p.rs[k-p.from]) {
				return
			}
		}
		free <- p
	}
}

// onDemand is how requests are judged when they are asked for.
type onDemand struct {
	of     []*analysis
	order  []int32            // per request, its number among those of all analyses, one behind the other
	again  map[int32]uint64   // of some, by number: how many before it have the same tuple and opening
	marked map[int32]*Request // those that others tell something of: see markOtherReplies

	ids    [][idSize]byte      // by the numbers in order; nil if they were not asked for
	survey *survey             // nil as long as no findings are made
	codes  map[uint64][]string // of findings, per Alike.matches
	more   map[int32][]string  // codes of findings about rules, behind those
}

// seat is where a request comes from: a chain of an analysis.
type seat struct{ of, chain int32 }

// seat is where a request comes from by its number among those of all analyses.
func (d *onDemand) seat(n int) seat {
	for k := 0; ; k++ {
		size, chain := d.of[k].list()
		if n < size {
			return seat{int32(k), chain(n)}
		}
		n -= size
	}
}

// judge makes request number i, with what it refers to in the space's keeping.
func (d *onDemand) judge(i int, r *Request, space *viewSpace) {
	if m := d.marked[int32(i)]; m != nil {
		*r = *m
	} else {
		d.judgeAt(d.seat(int(d.order[i])), r, space)
		r.Opening += d.again[int32(i)] << 33
	}
	if d.survey == nil {
		return
	}
	r.Findings = d.codes[d.survey.alike[d.survey.class[i]].matches]
	if more := d.more[int32(i)]; more != nil {
		r.Findings = slices.Concat(r.Findings, more)
	}
}

func (d *onDemand) judgeAt(at seat, r *Request, space *viewSpace) {
	a := d.of[at.of]
	v := a.view(space, int(at.chain))
	a.judge(r, v, at.chain, space)
	if a.paired != nil {
		a.paired(r, v, int(at.chain), space)
	}
}

// gather finds the order of the requests of analyses, which are judged when they are asked for from now on.
func (res *Result) gather(of []*analysis, withIDs bool) {
	d := &onDemand{of: of}
	// What the chains were found with is of no use any more, and what follows takes as much: it need not take other memory. The flow table
	// has next to no pointers, so that this takes 2 ms; the two save a tenth of the memory (2026-12-01, 400,000 connections).
	runtime.GC()
	n := 0
	for _, a := range of {
		k, _ := a.list()
		n += k
	}
	first, names := make([]int64, n), make([]uint32, n)
	seed := maphash.MakeSeed()
	at := func(i int, room *Room) *Request {
		room.space.kept.reuse()
		room.space.kept.brief = true
		d.judgeAt(d.seat(i), &room.r, &room.space)
		return &room.r
	}
	if withIDs {
		d.ids = make([][idSize]byte, n)
	}
	s := newSurvey(n, at, func(i int, r *Request) {
		if withIDs {
			d.ids[i] = r.id()
		}
		first[i], names[i] = r.First, uint32(maphash.Comparable(seed, requestName{r.Tuple, r.Opening, d.seat(i).of}))
	})
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int { return cmp.Or(cmp.Compare(first[i], first[j]), cmp.Compare(i, j)) })
	// The tuples of those that begin at the same time are few, and asked for again.
	var room Room
	for from, to := 0, 0; from < n; from = to {
		for to = from + 1; to < n && first[order[to]] == first[order[from]]; to++ {
		}
		if to-from < 2 {
			continue
		}
		type named struct {
			requestName
			raw int32
		}
		tied := make([]named, 0, to-from)
		for _, i := range order[from:to] {
			r := at(int(i), &room)
			tied = append(tied, named{requestName{r.Tuple, r.Opening, int32(r.capture())}, i})
		}
		slices.SortFunc(tied, func(p, q named) int {
			return cmp.Or(p.tuple.Compare(q.tuple), cmp.Compare(p.opening, q.opening), cmp.Compare(p.of, q.of), cmp.Compare(p.raw, q.raw))
		})
		for k := range tied {
			order[from+k] = tied[k].raw
		}
	}
	runtime.GC() // what was judged is judged again, and when it began is not asked any more
	s.reorder(order)
	d.order = order
	d.again = repeated(n, func(i int) uint32 { return names[order[i]] }, func(i int) requestName {
		at(int(order[i]), &room)
		return requestName{room.r.Tuple, room.r.Opening, d.seat(int(order[i])).of}
	})
	res.onDemand, res.survey = d, s
	if withIDs {
		for i := range d.again {
			d.ids[order[i]] = res.At(int(i), &room).id()
		}
	}
}

// idSize is how many bytes of a digest make an id.
const idSize = 6

// id is a digest of protocol, client, server and opening.
func (r *Request) id() [idSize]byte {
	var buf [64]byte
	b := append(buf[:0], byte(r.Tuple.Proto), r.Tuple.Query)
	b = append(b, r.Tuple.Src[:]...)
	b = append(b, r.Tuple.Dst[:]...)
	b = binary.BigEndian.AppendUint16(b, r.Tuple.SrcPortOrEchoID)
	b = binary.BigEndian.AppendUint16(b, r.Tuple.DstPortOrEchoID)
	b = binary.BigEndian.AppendUint64(b, r.Opening)
	sum := sha256.Sum256(b)
	return [idSize]byte(sum[:])
}

// ID is 12 hexadecimal digits: the same request has the same id in every run, and in every capture that shows it.
func (r *Request) ID() string {
	id := r.id()
	return hex.EncodeToString(id[:])
}

// ID is the id of request number i.
func (res *Result) ID(i int) string {
	if d := res.onDemand; d != nil && d.ids != nil {
		return hex.EncodeToString(d.ids[d.order[i]][:])
	}
	return res.At(i, nil).ID()
}

// requestName is what tells requests of one capture apart.
type requestName struct {
	tuple   wire.Tuple
	opening uint64
	of      int32
}

// repeated counts, of n requests in order whose names another one before has, those before.
func repeated(n int, hash func(i int) uint32, name func(i int) requestName) map[int32]uint64 {
	met, count := newMeeting(n), make(map[uint32]int)
	for i := range n {
		met.note(hash(i))
	}
	for i := range n {
		if h := hash(i); met.may(h) {
			count[h]++
		}
	}
	seen, out := make(map[requestName]uint64), make(map[int32]uint64)
	for i := range n {
		if h := hash(i); !met.may(h) || count[h] < 2 {
			continue
		}
		k := name(i)
		if seen[k] > 0 {
			out[int32(i)] = seen[k]
		}
		seen[k]++
	}
	return out
}

// mark is request number i, to add something to that others tell.
func (res *Result) mark(i int) *Request {
	d := res.onDemand
	if d == nil {
		return &res.Requests[i]
	}
	m := d.marked[int32(i)]
	if m == nil {
		if d.marked == nil {
			d.marked = make(map[int32]*Request)
		}
		m = res.At(i, nil)
		d.marked[int32(i)] = m
	}
	return m
}

// found notes the codes of the findings that rules make of requests.
func (res *Result) found(all []rule) {
	codes := func(bits uint64) (out []string) {
		for k := range all {
			if bits>>k&1 != 0 {
				out = append(out, all[k].code)
			}
		}
		return out
	}
	s := res.survey
	s.more = make(map[int32][]string)
	if d := res.onDemand; d != nil {
		d.survey, d.more, d.codes = s, s.more, make(map[uint64][]string)
		for i := range s.alike {
			if bits := s.alike[i].matches; d.codes[bits] == nil {
				d.codes[bits] = codes(bits)
			}
		}
		return
	}
	for i := range res.Requests {
		res.Requests[i].Findings = codes(s.alike[s.class[i]].matches)
	}
}

// foundOf adds a finding about rules to request number i.
func (res *Result) foundOf(i int, code string) {
	res.survey.more[int32(i)] = append(res.survey.more[int32(i)], code)
	if res.onDemand == nil {
		res.Requests[i].Findings = append(res.Requests[i].Findings, code)
	}
}
