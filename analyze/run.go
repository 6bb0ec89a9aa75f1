package analyze

import (
	"cmp"
	"errors"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// PacketSource gives a capture's packets in batches. Read fills dst and returns how many; at the end it returns io.EOF.
// Any other error means that the capture is damaged behind what was read: it is kept and said, and no absence is concluded.
// Summary is complete once Read has returned an error.
type PacketSource interface {
	Read(dst []wire.Packet) (int, error)
	Summary() wire.Summary
}

// Input is one capture to analyse.
type Input struct {
	File, Label, SHA256 string
	Side                wire.Side
	StatedFilter        string // --near-filter or --far-filter; valid iff HasStated
	HasStated           bool
	Source              PacketSource
	// Connections is the connection table of the node that the capture was taken on; nil if it is not known. Of several files
	// of one capture the first one's counts. Of far captures it is not asked.
	Connections *cluster.Connections
}

// Options bound and steer a run. The zero Options is the default.
type Options struct {
	MaxFlows int // flows kept per capture; 0 is DefaultMaxFlows
	Batch    int // packets per Read; 0 is 512
	Pair     PairOptions
	// Rules asks for destinations of configuration and rules; nil asks for those of the captures.
	Rules *RulesQuestion
	// OnDemand has requests judged when they are asked for (Result.At, Result.Each), and not held (Result.Requests stays empty). Those of
	// several nodes are held all the same, for they tell of each other.
	OnDemand bool
	// IDs has the ids of requests made while they are judged first, for those who ask for many of them (Result.ID). Valid iff OnDemand.
	IDs bool
	// OtherRules says that masquerade configuration and rules are of another time than the captures, and not held against them.
	OtherRules bool
}

// Run analyses captures against the facts: each by itself, then, where there are near and far ones, the two sides together.
// It returns an error only where there is nothing to analyse.
func Run(inputs []Input, facts *cluster.Facts, opt Options) (*Result, error) {
	if len(inputs) == 0 {
		return nil, errors.New("no captures to analyse")
	}
	res := &Result{Facts: facts, question: opt.Rules, otherRules: opt.OtherRules}
	var sides [2][]*analysis
	paired := slices.ContainsFunc(inputs, func(in Input) bool { return in.Side != inputs[0].Side })
	res.Captures = make([]CaptureInfo, len(inputs))
	// Captures have nothing in common until the two sides are held against each other: each is read and judged by itself.
	groups := grouped(inputs, opt)
	found := make([][]*analysis, len(groups))
	var others sync.WaitGroup
	slots := make(chan struct{}, max(runtime.GOMAXPROCS(0), 1))
	for i, g := range groups {
		slots <- struct{}{}
		others.Go(func() {
			defer func() { <-slots }()
			for g != nil {
				t, sum, rest := g.read(res.Captures, facts, opt, !paired)
				a := newAnalysis(t, sum, res.Captures, g.numbers(), facts, g.connections())
				if !opt.OnDemand {
					a.judgeAll()
				}
				found[i] = append(found[i], a)
				g = rest
			}
		})
	}
	others.Wait()
	for rest, more := 0, true; more; rest++ { // the captures of a group that turned out to be several come behind the others
		more = false
		for _, of := range found {
			if rest >= len(of) {
				continue
			}
			a := of[rest]
			res.Carriers = append(res.Carriers, carriers(a.t, a.number)...)
			sides[a.info.Side] = append(sides[a.info.Side], a)
			more = true
		}
	}
	near, far := sides[wire.SideNear], sides[wire.SideFar]
	if len(near) > 0 && len(far) > 0 {
		pair(res, near, far, opt.Pair)
	}
	if opt.OnDemand && len(near) < 2 { // those of several nodes tell of each other: see answeredElsewhere
		res.gather(slices.Concat(near, far), opt.IDs)
		res.Limits = limits(res)
		res.conclude()
		return res, nil
	}
	for _, a := range slices.Concat(near, far) {
		if opt.OnDemand {
			a.judgeAll()
		}
		a.pairAll()
	}
	res.finish(sides)
	return res, nil
}

// finish holds the requests of all captures and concludes from them together.
func (res *Result) finish(sides [2][]*analysis) {
	answeredElsewhere(sides[wire.SideNear])
	for _, side := range sides {
		for _, a := range side {
			a.requests = slices.DeleteFunc(a.requests, func(r Request) bool { return r.signs&signTaken != 0 })
			number(a.requests)
			if res.Requests == nil {
				res.Requests = a.requests
			} else {
				res.Requests = append(res.Requests, a.requests...)
			}
			a.requests = nil
		}
	}
	sortRequests(res.Requests)
	res.surveyHeld()
	res.Limits = limits(res)
	res.conclude()
}

func (r *Request) capture() int {
	if len(r.Legs) == 0 {
		return 0
	}
	return r.Legs[0].Capture
}

// conclude fills in what follows from the requests: counts and findings. It runs again when requests are selected.
func (res *Result) conclude() {
	if res.survey == nil {
		res.surveyHeld()
	}
	res.markOtherReplies()
	res.survey.number()
	res.Sources = res.survey.sources
	res.concludeRules()
	res.found(rules())
	res.Findings = findings(res)
	if len(res.survey.more) > 0 {
		res.survey.told()
		res.survey.number()
	}
	res.survey.finish()
}

// sortRequests puts requests in order of first packet, then of tuple. Requests are large, so their order is sorted and each
// is moved once.
func sortRequests(requests []Request) {
	order := make([]int, len(requests))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		p, q := &requests[i], &requests[j]
		if p.First != q.First {
			return cmp.Compare(p.First, q.First)
		}
		return cmp.Or(p.Tuple.Compare(q.Tuple), cmp.Compare(p.Opening, q.Opening), cmp.Compare(p.capture(), q.capture()), cmp.Compare(i, j))
	})
	for i := range order {
		// Follow the cycle that begins at i: order[k] is where the request for place k comes from.
		if order[i] == i {
			continue
		}
		first := requests[i]
		k := i
		for order[k] != i {
			requests[k] = requests[order[k]]
			k, order[k] = order[k], k
		}
		requests[k] = first
		order[k] = k
	}
}

// number gives requests of one capture that nothing else tells apart a number, so that ids differ.
func number(requests []Request) {
	seed := maphash.MakeSeed()
	order := make([]int, len(requests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(requests[a].First, requests[b].First) })
	name := func(i int) requestName {
		return requestName{tuple: requests[order[i]].Tuple, opening: requests[order[i]].Opening}
	}
	hashes := make([]uint32, len(requests))
	inPieces(len(requests), func(i int) { hashes[i] = uint32(maphash.Comparable(seed, name(i))) })
	for i, n := range repeated(len(requests), func(i int) uint32 { return hashes[i] }, name) {
		requests[order[i]].Opening += n << 33
	}
}

// inPieces does something for each number below n, on all processors.
func inPieces(n int, do func(i int)) {
	inPiecesBy(n, func() func(from, to int) {
		return func(from, to int) {
			for i := from; i < to; i++ {
				do(i)
			}
		}
	})
}

// pieceSize is how many requests are looked at between two looks at what others do.
const pieceSize = 256

// inPiecesBy does something for each piece of the numbers below n, on all processors. Each has its own way to do it, from begin.
func inPiecesBy(n int, begin func() func(from, to int)) {
	var next atomic.Int64
	work := func() {
		do := begin()
		for {
			from := int(next.Add(pieceSize)) - pieceSize
			if from >= n {
				return
			}
			do(from, min(from+pieceSize, n))
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+pieceSize-1)/pieceSize) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// listsOf makes a list for each number below n, on all processors, and gives those of each piece, in order. Each appends in its own way, from
// begin.
func listsOf[T any](n int, begin func() func(i int, out []T) []T) [][]T {
	lists := make([][]T, (n+pieceSize-1)/pieceSize)
	inPiecesBy(n, func() func(from, to int) {
		look, mine := begin(), []T(nil)
		return func(from, to int) {
			mine = mine[:0]
			for i := from; i < to; i++ {
				mine = look(i, mine)
			}
			lists[from/pieceSize] = slices.Clone(mine)
		}
	})
	return lists
}

// partsOf looks at each number below n, on all processors. Each has a part of its own to put what it sees in, from begin; they come in the
// order of the least number that each looked at.
func partsOf[P any](n int, begin func() P, look func(part P, i int)) []P {
	type part struct {
		of    P
		first int
	}
	var lock sync.Mutex
	var parts []part
	inPiecesBy(n, func() func(from, to int) {
		mine, at := begin(), -1
		return func(from, to int) {
			if at < 0 {
				lock.Lock()
				at = len(parts)
				parts = append(parts, part{mine, from})
				lock.Unlock()
			}
			for i := from; i < to; i++ {
				look(mine, i)
			}
		}
	})
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.first, b.first) })
	out := make([]P, len(parts))
	for i := range parts {
		out[i] = parts[i].of
	}
	return out
}

// carriers sums up the outer flows of tunnels, per pair of hosts.
func carriers(t *table, capture int) []CarrierCount {
	type pair struct {
		a, b   wire.Addr
		tunnel wire.Proto
		port   uint16
	}
	index := make(map[pair]int)
	var out []CarrierCount
	for i := 1; i < t.flows.size(); i++ {
		f := t.flows.at(ref(i))
		if !f.carrier {
			continue
		}
		k := pair{f.key.end[0], f.key.end[1], f.key.proto, min(f.key.port[0], f.key.port[1])}
		n, ok := index[k]
		if !ok {
			n = len(out)
			index[k] = n
			out = append(out, CarrierCount{Tunnel: f.tunnel, Tuple: f.key.tuple(int(f.client)), Capture: capture})
		}
		packets := f.dir[0].packets + f.dir[1].packets
		out[n].Packets += packets
		if f.opaque {
			out[n].Opaque += packets
		}
	}
	slices.SortFunc(out, func(p, q CarrierCount) int {
		return cmp.Or(cmp.Compare(q.Packets, p.Packets), p.Tuple.Compare(q.Tuple))
	})
	return out
}
