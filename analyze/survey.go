package analyze

import (
	"cmp"
	"slices"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// survey is what is gathered of all requests together. It is made in one pass over them.
type survey struct {
	class []int32 // per request, its place in alike
	alike []Alike
	more  map[int32][]string // codes of findings about rules, by number
	pods  bool               // one has a Pod at one of its ends

	sources   []SourceCount
	replyOnly []int32 // answers that were not asked for, by number

	// While classes are found: the place of each in alike, and how they are told apart.
	index map[alike]int32
	apart alikeness
}

// surveyor is the part of one goroutine in it.
type surveyor struct {
	survey
	bySource map[sourceKey]int32
	keys     []sourceKey // per source
	pieces   []int       // what it looked at: where each piece begins
	room     Room
}

// sourceKey tells sources apart: what an address is, one capture may show and the other not.
type sourceKey struct {
	addr    wire.Addr
	capture int
}

// newSurvey looks at n requests, which judge gives, on all processors; seen is told each, at the same time.
func newSurvey(n int, judge func(i int, room *Room) *Request, seen func(i int, r *Request)) *survey {
	out := &survey{class: make([]int32, n), index: make(map[alike]int32), apart: newAlikeness()}
	all := rules()
	begin := func() *surveyor {
		return &surveyor{bySource: make(map[sourceKey]int32), survey: survey{index: make(map[alike]int32), apart: alikeness{seeds: out.apart.seeds}}}
	}
	out.merge(partsOf(n, begin, func(s *surveyor, i int) {
		if i%pieceSize == 0 {
			s.pieces = append(s.pieces, i)
		}
		r := judge(i, &s.room)
		out.class[i] = s.look(i, r, matching(all, r))
		if seen != nil {
			seen(i, r)
		}
	}))
	return out
}

// surveyHeld makes the survey of requests that are held.
func (res *Result) surveyHeld() {
	res.survey = newSurvey(len(res.Requests), func(i int, _ *Room) *Request { return &res.Requests[i] }, nil)
}

// matching has a bit for each rule that makes a finding of a request.
func matching(all []rule, r *Request) (bits uint64) {
	for k := range all {
		if all[k].match(r) {
			bits |= 1 << k
		}
	}
	return bits
}

// look takes a request in, and returns its class.
func (s *surveyor) look(i int, r *Request, matches uint64) int32 {
	s.pods = s.pods || r.Client.Role.Kind == cluster.RolePod || r.Server.Role.Kind == cluster.RolePod || r.Backend != nil && r.Backend.Role.Kind == cluster.RolePod
	if r.Outcome == ReplyOnly && mayBeOthers(r) {
		s.replyOnly = append(s.replyOnly, int32(i))
	}
	s.source(r)
	return s.put(s.apart.of(r, matches), alikeOf(r, matches))
}

func alikeOf(r *Request, matches uint64) Alike {
	return Alike{source: r.Source, outcome: r.Outcome, stop: r.StoppedAt, matches: matches}
}

// put is the class of a digest, which is made if there is none.
func (s *survey) put(k alike, like Alike) int32 {
	n, ok := s.index[k]
	if !ok {
		n = int32(len(s.alike))
		like.key = k
		s.index[k] = n
		s.alike = append(s.alike, like)
	}
	return n
}

// source counts a request and its packets under its source address as it left the node.
func (s *surveyor) source(r *Request) {
	e, sent := r.Egress, uint64(0)
	for j := range r.Legs {
		if r.Legs[j].Kind == LegEgress {
			sent = max(sent, r.Legs[j].Sent)
		}
	}
	if e != nil && sent == 0 {
		sent = r.RequestsSent // seen leaving where no direction is recorded
	}
	if e == nil || sent == 0 || r.Source == SourceLocal || r.Way == Inbound || r.Way == WayLocal {
		return
	}
	k := sourceKey{e.Addr, r.capture()}
	n, ok := s.bySource[k]
	if !ok {
		n = int32(len(s.sources))
		s.bySource[k] = n
		s.sources, s.keys = append(s.sources, SourceCount{Addr: e.Addr, Role: e.Role}), append(s.keys, k)
	}
	s.sources[n].Requests++
	s.sources[n].Packets += sent
}

// merge puts the parts together. What comes out does not depend on who looked at what.
func (s *survey) merge(parts []*surveyor) {
	type source struct {
		SourceCount
		capture int
	}
	bySource := make(map[wire.Addr]source)
	for _, part := range parts {
		classes := make([]int32, len(part.alike))
		for i := range part.alike {
			classes[i] = s.put(part.alike[i].key, part.alike[i])
		}
		for _, from := range part.pieces {
			of := s.class[from:min(from+pieceSize, len(s.class))]
			for i := range of {
				of[i] = classes[of[i]]
			}
		}
		for i := range part.sources {
			c, capture := part.sources[i], part.keys[i].capture
			o, ok := bySource[c.Addr]
			// Of captures that say different things of an address, one that knows it is believed, the first of them.
			if knows, knew := c.Role.Kind != cluster.RoleUnknown, o.Role.Kind != cluster.RoleUnknown; !ok || knows && !knew || knows == knew && capture < o.capture {
				o.SourceCount.Addr, o.SourceCount.Role, o.capture = c.Addr, c.Role, capture
			}
			o.Requests, o.Packets = o.Requests+c.Requests, o.Packets+c.Packets
			bySource[c.Addr] = o
		}
		s.pods = s.pods || part.pods
		s.replyOnly = append(s.replyOnly, part.replyOnly...)
	}
	for _, o := range bySource {
		s.sources = append(s.sources, o.SourceCount)
	}
	slices.SortFunc(s.sources, func(p, q SourceCount) int {
		return cmp.Or(cmp.Compare(q.Requests, p.Requests), p.Addr.Compare(q.Addr))
	})
	slices.Sort(s.replyOnly)
}

// reorder puts what is known of each request in another order: order has, per place, where it was.
func (s *survey) reorder(order []int32) {
	class, place := make([]int32, len(order)), make(map[int32]int32, len(s.replyOnly))
	for _, i := range s.replyOnly {
		place[i] = -1
	}
	for i, from := range order {
		class[i] = s.class[from]
		if len(place) > 0 {
			if _, ok := place[from]; ok {
				place[from] = int32(i)
			}
		}
	}
	s.class = class
	for k, i := range s.replyOnly {
		s.replyOnly[k] = place[i]
	}
	slices.Sort(s.replyOnly)
}

// again looks at a request once more, which was told something.
func (s *survey) again(all []rule, i int, r *Request) {
	matches := matching(all, r)
	s.class[i] = s.put(s.apart.of(r, matches), alikeOf(r, matches))
}

// told parts requests that findings about rules were added to from those that are alike otherwise.
func (s *survey) told() {
	s.index = make(map[alike]int32)
	for i, n := range s.class {
		if codes := s.more[int32(i)]; codes != nil {
			s.class[i] = s.put(s.apart.told(s.alike[n].key, codes), s.alike[n])
		}
	}
}

// number counts the classes, and puts them in order of the first request of each.
func (s *survey) number() {
	place := make([]int32, len(s.alike)) // plus one
	out := make([]Alike, 0, len(s.alike))
	for i, c := range s.class {
		if place[c] == 0 {
			like := s.alike[c]
			like.First, like.Count = i, 0
			out = append(out, like)
			place[c] = int32(len(out))
		}
		s.class[i] = place[c] - 1
		out[s.class[i]].Count++
	}
	s.alike = out
}

// finish forgets what nobody asks for after the conclusions.
func (s *survey) finish() {
	for i := range s.alike {
		s.alike[i].key = alike{}
	}
	*s = survey{class: s.class, alike: s.alike}
}
