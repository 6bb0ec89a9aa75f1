package report

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
)

// A row of the table stands for requests that agree in what the row shows. Where there are too many different ones,
// rows give up detail, the ordinary ones first: clients' addresses, then servers' addresses, then ports.

// detail is how much of its requests a row tells.
type detail uint8

const (
	single           detail = iota // a row for each request
	exact                          // clients, egress addresses, servers and ports each by name
	exactPorts                     // ports counted
	manyClients                    // clients and egress addresses counted
	manyClientsPorts               // and ports counted
	manyServers                    // servers counted, by port
	manyBoth                       // clients, egress addresses and servers counted, by port
	manyPorts                      // all counted
)

// verdict is what all requests of a bucket share.
type verdict struct{ source, outcome, stopped string }

// bucket is the requests of one verdict.
type bucket struct {
	verdict
	rank  int // 0 is the first thing to look at
	index []int
	count uint64 // requests
}

// rowKey is what the requests of a row agree in, beside the verdict. What the row's detail leaves out is zero.
type rowKey struct {
	proto                  string
	role                   string // the client's
	client, name           string
	egress, farSaw         string
	server, serverRole     string
	serverName             string
	clientPort, serverPort int32 // -1 is none
	node                   bool  // the client is this node by an exact address
	hostNetwork, reused    bool
}

// row is one line of the table.
type row struct {
	verdict
	rowKey
	detail  detail
	rank    int
	first   int // index of its first request
	count   uint64
	own     bool // all its requests left with their client's address
	clients distinct
	egress  distinct
	farSaw  distinct
	servers distinct
	ports   distinct
}

// distinct counts different strings up to a limit, so that a flood of addresses does not fill the memory.
type distinct struct {
	seen map[string]struct{}
	last string
	over bool
}

const distinctLimit = 10_000

func (d *distinct) add(s string) {
	if d.seen != nil && s == d.last {
		return
	}
	if d.seen == nil {
		d.seen = make(map[string]struct{}, 1)
	}
	d.last = s
	if _, ok := d.seen[s]; ok {
		return
	}
	if len(d.seen) >= distinctLimit {
		d.over = true
		return
	}
	d.seen[s] = struct{}{}
}

// words returns the one string itself, or how many there are.
func (d *distinct) words(noun string) string {
	switch {
	case len(d.seen) == 1:
		return d.last
	case d.over:
		return "over " + count(distinctLimit, noun)
	}
	return count(uint64(len(d.seen)), noun)
}

// severities returns, per finding code, the most severe finding of it.
func severities(rec *Record) map[string]int {
	m := make(map[string]int, len(rec.Findings))
	for i := range rec.Findings {
		m[rec.Findings[i].Code] = max(m[rec.Findings[i].Code], rec.Findings[i].Severity)
	}
	return m
}

func severityOf(r *Request, bySeverity map[string]int) int {
	s := 0
	for _, code := range r.Findings {
		s = max(s, bySeverity[code])
	}
	return s
}

// The ranks that decide colour; between them lie the finer shades of odd.
const (
	rankTrouble  = 0
	rankOdd      = 4 // up to here something is wrong
	rankOrdinary = 7 // from here on all is well
)

// rank says how soon a person should see the request: 0 first.
func rank(r *Request, severity int) int {
	switch {
	case severity >= 2:
		return rankTrouble
	case r.Source == "local":
		return 8
	case r.Source == "not-sent":
		return 1
	case stops(r.StoppedAt):
		return 2
	case r.Outcome == "request-only", r.Outcome == "rejected", r.Outcome == "half-open":
		if r.Source == "unknown" {
			return 3
		}
		return 2
	case severity == 1:
		return rankOdd
	case r.Outcome == "refused", r.Outcome == "one-direction", r.Outcome == "reply-only", r.Outcome == "unknown":
		return 5
	case r.Source == "unknown", r.Source == "pod-sourced", r.Source == "other-snated", r.Source == "node-sourced", r.Outcome == "midstream":
		return 6
	}
	return rankOrdinary
}

// stops tells whether a stopped_at names a place.
func stops(s string) bool { return s != "" && s != "none" && s != "unknown" }

// rows returns the table's rows, the odd ones first, at most limit of them unless all is set. left is how many rows and
// requests did not find room even at the least detail.
func rows(rec *Record, limit int, all bool) (out []row, leftRows int, leftRequests uint64) {
	bySeverity := severities(rec)
	far, farSaw := onlyFar(rec), arrivedOtherwise(rec)
	var buckets []*bucket
	byVerdict := make(map[verdict]*bucket)
	for i := range rec.Requests {
		r := &rec.Requests[i]
		v := verdict{r.Source, r.Outcome, r.StoppedAt}
		b := byVerdict[v]
		if b == nil {
			b = &bucket{verdict: v, rank: rankOrdinary + 1}
			byVerdict[v] = b
			buckets = append(buckets, b)
		}
		b.rank = min(b.rank, rank(r, severityOf(r, bySeverity)))
		b.index = append(b.index, i)
		b.count += r.n()
	}
	slices.SortStableFunc(buckets, func(a, b *bucket) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.count, a.count))
	})
	if all {
		for _, b := range buckets {
			rs, _ := b.rows(rec, far, farSaw, single, len(b.index))
			out = append(out, rs...)
		}
		return out, 0, 0
	}
	// Everybody starts with the least detail; what room is left then goes to the odd ones first.
	chosen := make([][]row, len(buckets))
	used := 0
	for i, b := range buckets {
		chosen[i], _ = b.rows(rec, far, farSaw, manyPorts, len(b.index))
		used += len(chosen[i])
	}
	for i, b := range buckets {
		room := min(limit-used+len(chosen[i]), share(b.rank, limit, len(buckets)))
		for d := exact; d < manyPorts && room > 0; d++ {
			if rs, ok := b.rows(rec, far, farSaw, d, room); ok {
				used += len(rs) - len(chosen[i])
				chosen[i] = rs
				break
			}
		}
	}
	for _, rs := range chosen {
		for k := range rs {
			if len(out) == limit {
				leftRows++
				leftRequests += rs[k].count
				continue
			}
			out = append(out, rs[k])
		}
	}
	return out, leftRows, leftRequests
}

// share is the most rows that one verdict takes: a table of one verdict may be long, but the odd ones should not be
// followed by a screen of ordinary ones.
func share(rank, limit, verdicts int) int {
	switch {
	case verdicts == 1:
		return limit
	case rank <= rankOdd:
		return limit * 3 / 5
	}
	return limit / 4
}

// rows groups the bucket's requests. It gives up, and says false, where that makes more than limit rows.
func (b *bucket) rows(rec *Record, far, farSaw bool, d detail, limit int) ([]row, bool) {
	var out []row
	at := make(map[rowKey]int)
	for _, i := range b.index {
		r := &rec.Requests[i]
		key, saw := keyOf(r, d, far), ""
		if farSaw {
			saw = farWord(r)
		}
		if key.egress != "" {
			key.farSaw = saw
		}
		n, ok := at[key]
		if !ok || d == single {
			if len(out) == limit {
				return nil, false
			}
			n = len(out)
			at[key] = n
			out = append(out, row{verdict: b.verdict, rowKey: key, detail: d, rank: b.rank, first: i, own: true})
		}
		w := &out[n]
		w.count += r.n()
		if d == single {
			continue
		}
		left := egressWord(r, far)
		w.own = w.own && left == r.Client.Addr
		w.clients.add(r.Client.Addr)
		w.egress.add(left)
		w.farSaw.add(saw)
		w.servers.add(r.Server.Addr)
		if r.Server.Port != nil {
			w.ports.add(strconv.Itoa(int(*r.Server.Port)))
		}
	}
	if d != single {
		slices.SortStableFunc(out, func(a, b row) int { return cmp.Compare(b.count, a.count) })
	}
	return out, true
}

func keyOf(r *Request, d detail, far bool) rowKey {
	k := rowKey{proto: r.Proto, role: r.Client.Role, clientPort: -1, serverPort: -1}
	if d == single && r.Client.Port != nil {
		k.clientPort = int32(*r.Client.Port)
	}
	if d <= exactPorts || d == manyServers {
		k.client, k.name, k.egress = r.Client.Addr, string(r.Client.Name), egressWord(r, far)
		k.node = r.Client.Exact
		k.hostNetwork, k.reused = r.Client.HostNetwork, r.Client.Reused
	}
	if d <= manyClientsPorts {
		k.server, k.serverRole, k.serverName = r.Server.Addr, r.Server.Role, string(r.Server.Name)
	}
	if d != exactPorts && d != manyClientsPorts && d != manyPorts && r.Server.Port != nil {
		k.serverPort = int32(*r.Server.Port)
	}
	return k
}

// What stands in place of an address with which a request left.
const (
	neverLeft   = "never left"
	stayedLocal = "stayed local"
	notSeen     = "not seen"
	theirOwn    = "their own"
	sameAddress = "the same"
)

// egressWord is the address with which a request left the node, or at a far side arrived, or what is to be said in its
// place.
func egressWord(r *Request, far bool) string {
	switch {
	case far && r.Far != nil:
		return r.Far.Addr
	case r.Egress != nil:
		return r.Egress.Addr
	case r.Source == "not-sent":
		return neverLeft
	case r.Source == "local":
		return stayedLocal
	}
	return notSeen
}

// arrivedOtherwise tells whether a request arrived at the far side with another address than the one it left with, or than
// nobody saw it leave with: then the table has a column for that.
func arrivedOtherwise(rec *Record) bool {
	return twoSided(rec) && slices.ContainsFunc(rec.Requests, func(r Request) bool { return r.Far != nil && farWord(&r) != sameAddress })
}

// farWord is the address with which a request arrived at the far side, or what is to be said in its place.
func farWord(r *Request) string {
	switch {
	case r.Far == nil:
		return notSeen
	case r.Egress != nil && r.Egress.Addr == r.Far.Addr:
		return sameAddress
	}
	return r.Far.Addr
}

// behind tells whether the node translated the request and what it had been before is not in the capture: the client
// shown is then the node's address, and the real one is behind it.
func behind(r *Request) bool {
	return (r.Source == "node-snated" || r.Source == "other-snated") && r.Egress != nil && r.Egress.Addr == r.Client.Addr
}

// onlyFar tells whether all captures were taken at the far side, where packets arrive and do not leave.
func onlyFar(rec *Record) bool {
	return len(rec.Captures) > 0 && !slices.ContainsFunc(rec.Captures, func(c Capture) bool { return c.Side != "far" })
}

// addrPort writes an address with a port as netip does, IPv6 in brackets.
func addrPort(addr string, port *uint16) string {
	if port == nil {
		return addr
	}
	if a, err := netip.ParseAddr(addr); err == nil {
		return netip.AddrPortFrom(a, *port).String()
	}
	return addr + ":" + strconv.Itoa(int(*port))
}
