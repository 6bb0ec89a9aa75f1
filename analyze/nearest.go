package analyze

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
)

// maxNearest is how many requests are named to a person whose selection picked none.
const maxNearest = 5

// nearest returns the requests that a selection which picks none of them most likely meant: those that fit most of its
// parts, one for each pair of client and server. Requests between neighbours come last. at gives one of them to keep.
func (s Selector) nearest(requests iter.Seq2[int, *Request], at func(i int) *Request) []Request {
	type pair struct {
		proto  string
		client netip.Addr
		server netip.Addr
		port   uint16
	}
	type candidate struct{ index, misses int }
	var best []candidate
	for i, r := range requests {
		c := candidate{i, s.misses(r)}
		// Only what could be among the best is kept and sorted: a capture may have hundreds of thousands of requests.
		if len(best) == maxNearest*8 && c.misses >= best[len(best)-1].misses {
			continue
		}
		place, _ := slices.BinarySearchFunc(best, c, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.misses, b.misses), cmp.Compare(a.index, b.index))
		})
		best = slices.Insert(best, place, c)
		best = best[:min(len(best), maxNearest*8)]
	}
	var out []Request
	seen := make(map[pair]bool)
	for _, c := range best {
		r := at(c.index)
		k := pair{r.Tuple.Proto.String(), r.Client.Addr.Netip(), r.Server.Addr.Netip(), r.Server.Port}
		if seen[k] || len(out) == maxNearest {
			continue
		}
		seen[k] = true
		out = append(out, *r)
	}
	return out
}

// misses weighs what keeps the request from being picked: an address that is another one weighs more than a port or a
// protocol.
func (s Selector) misses(r *Request) int {
	n := 0
	in := func(p netip.Prefix, ends ...*Endpoint) bool {
		return !p.IsValid() || slices.ContainsFunc(ends, func(e *Endpoint) bool { return e != nil && p.Contains(e.Addr.Netip()) })
	}
	if s.proto != "" && s.proto != r.Tuple.Proto.String() {
		n += 2
	}
	if !in(s.client, &r.Client) {
		n += 4
		if in(s.client, r.Egress, r.Far) { // the address after the translation
			n--
		}
	}
	if !in(s.server, &r.Server, r.Backend, r.FarServer) {
		n += 5
	}
	if s.sport >= 0 && int(r.Client.Port) != s.sport {
		n++
	}
	if s.port >= 0 && int(r.Server.Port) != s.port && (r.Backend == nil || int(r.Backend.Port) != s.port) {
		n++
	}
	if r.Tuple.Dst.IsMulticast() || r.Tuple.Src.IsLinkLocal() && r.Tuple.Dst.IsLinkLocal() {
		n += 20
	}
	return n
}
