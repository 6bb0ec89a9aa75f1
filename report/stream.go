package report

import (
	"runtime"
	"sync"

	"github.com/srcproof/srcproof/capture/wire"
)

// requests writes the record's requests in order, with one for each. Those of a streamed record are made and encoded in pieces, on all
// processors, and a few pieces at a time.
func (e *encoder) requests(rec *Record, one func(e *encoder, r *Request)) {
	if rec.from == nil || rec.from.extent != streamed {
		for i := range rec.Requests {
			one(e, &rec.Requests[i])
		}
		return
	}
	const size = 512
	type piece struct {
		from int
		done chan *encoder
	}
	n := rec.from.res.Len()
	workers := max(runtime.GOMAXPROCS(0), 1)
	todo, order := make(chan piece, workers), make(chan piece, 2*workers)
	start := *e
	spare := sync.Pool{New: func() any { return new(encoder) }}
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			b := rec.from.fork()
			var r Request
			for p := range todo {
				out := spare.Get().(*encoder)
				*out = encoder{b: out.b[:0], pretty: start.pretty, inline: start.inline, depth: start.depth, more: start.more}
				if start.depth > 0 {
					out.more = start.more || p.from > 0 // elements of one list
				}
				for i := p.from; i < min(p.from+size, n); i++ {
					b.reuse()
					b.request(&r, b.res.At(i, &b.room), i)
					one(out, &r)
				}
				p.done <- out
			}
		})
	}
	go func() {
		for from := 0; from < n; from += size {
			p := piece{from, make(chan *encoder, 1)}
			order <- p
			todo <- p
		}
		close(todo)
		close(order)
	}()
	for p := range order {
		out := <-p.done
		e.more = out.more
		if e.flush() == nil {
			_, e.err = e.w.Write(out.b)
		}
		spare.Put(out)
	}
	working.Wait()
}

// reuse forgets the last request, whose parts are no longer needed.
func (b *builder) reuse() {
	b.frames.reuse()
	b.legs.reuse()
	b.points.reuse()
	b.ends.reuse()
	b.ports.reuse()
	b.counts.reuse()
	b.texts.reuse()
}

// fork is a builder of requests for another goroutine.
func (b *builder) fork() *builder {
	return &builder{res: b.res, addrs: make(map[wire.Addr]string), names: b.names}
}
