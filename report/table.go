package report

import (
	"cmp"
	"slices"
	"strings"
)

// maxName is how much is shown of a file's name, maxAddr of an address: an address out of a packet is never longer, one
// out of a saved record may be anything.
const (
	maxName  = 48
	maxLabel = 20
	maxAddr  = 48
)

// A form is one way to lay the table out, from roomy to narrow.
type form struct {
	merged    bool   // where it stopped stands behind the outcome, and has no column
	requests  string // heading
	egress    string // heading
	nameWidth int
}

// forms returns the forms to try, in order. The address is the answer: headings and names give way to it.
func forms(far bool) []form {
	long, short := "LEFT THE NODE AS", "LEFT AS"
	if far {
		long, short = "ARRIVED AS", "ARRIVED AS"
	}
	return []form{
		{false, "REQUESTS", long, 40},
		{false, "REQUESTS", long, 28},
		{false, "REQUESTS", long, 20},
		{false, "REQUESTS", short, 20},
		{true, "REQUESTS", short, 20},
		{true, "REQS", short, 20},
		{true, "N", short, 20},
	}
}

// verdicts returns the head's and the rows' cells of what was concluded, the count last.
func (p *page) verdicts(rs []row, merged bool, requests string) [][]cell {
	withStops := slices.ContainsFunc(rs, func(r row) bool { return stops(r.stopped) })
	head := []cell{{text: "SOURCE"}, {text: "OUTCOME"}}
	switch {
	case withStops && merged:
		head[1].text = "OUTCOME, STOPPED AT"
	case withStops:
		head = append(head, cell{text: "STOPPED AT"})
	}
	lines := [][]cell{append(head, cell{text: requests, right: true})}
	for i := range rs {
		r := &rs[i]
		style := p.odd
		switch {
		case r.rank < rankOdd:
			style = p.bad
		case r.rank >= rankOrdinary:
			style = p.good
		}
		line := []cell{{text: word(r.source), style: style}, {text: word(r.outcome), style: style}}
		switch {
		case merged && stops(r.stopped):
			line[1].text += ", " + word(r.stopped)
		case withStops && !merged:
			line = append(line, cell{text: word(r.stopped), style: style})
		}
		lines = append(lines, append(line, cell{text: number(r.count), right: true}))
	}
	return lines
}

// table writes the rows on one line each, or, where names and addresses do not leave the room, on a line and a second
// one below it: an address is the answer here and is never cut. Requests between neighbours are the last line.
func (p *page) table(rec *Record, rs []row, near neighbours) {
	far, farSaw := onlyFar(rec), arrivedOtherwise(rec)
	egress := func(left, saw string) []cell {
		if !farSaw {
			return []cell{{text: left}}
		}
		return []cell{{text: left}, {text: saw}}
	}
	for _, f := range forms(far) {
		verdicts := p.verdicts(rs, f.merged, f.requests)
		last := near.cells(len(verdicts[0]))
		lines := [][]cell{slices.Concat(verdicts[0], []cell{{text: "CLIENT"}}, egress(f.egress, "FAR SAW"), []cell{{text: "SERVER"}})}
		for i := range rs {
			lines = append(lines, slices.Concat(verdicts[i+1], []cell{{text: rs[i].clientWords(rec, f.nameWidth)}},
				egress(rs[i].egressWords(), rs[i].farWords()), []cell{{text: rs[i].serverWords(rec, f.nameWidth)}}))
		}
		widths, sum := tableWidth(lines)
		if last != nil {
			for i := range last[:len(last)-1] {
				widths[i] = max(widths[i], columns(last[i].text))
			}
			sum = 0
			for _, n := range widths {
				sum += 2 + n
			}
		}
		if sum > p.width || last != nil && !p.lineFits(last, widths) {
			continue
		}
		for _, line := range lines {
			p.line(line, widths)
		}
		if last != nil {
			p.line(last, widths)
		}
		return
	}
	verdicts := p.verdicts(rs, false, "REQUESTS")
	last := near.cells(len(verdicts[0]))
	below := make([][]cell, len(rs))
	aligned := true
	for i := range rs {
		r := &rs[i]
		client := p.fit("client ", func(n int) string { return r.clientWords(rec, n) })
		server := p.fit("server ", func(n int) string { return r.serverWords(rec, n) })
		below[i] = slices.Concat(client, egress(leftAs(r.egressWords(), far), farSawWords(r.farWords())), server)
		aligned = aligned && len(client) == 1 && len(server) == 1
	}
	all := verdicts
	if last != nil {
		all = append(slices.Clone(verdicts), last[:len(last)-1])
	}
	widths, _ := tableWidth(all)
	var belowWidths []int
	if aligned {
		var sum int
		belowWidths, sum = tableWidth(below)
		aligned = stackIndent-2+sum <= p.width
	}
	p.line(verdicts[0], widths)
	for i, line := range verdicts[1:] {
		p.line(line, widths)
		if aligned {
			_, _ = p.w.WriteString(blanks(stackIndent - 2))
			p.line(below[i], belowWidths)
		} else {
			p.flow(below[i])
		}
	}
	if last != nil {
		p.line(last[:len(last)-1], widths)
		p.flow(last[len(last)-1:])
	}
}

// lineFits tells whether a line whose last cell reaches over the columns behind it is as wide as the page at most.
func (p *page) lineFits(cells []cell, widths []int) bool {
	n := 2 + columns(cells[len(cells)-1].text)
	for _, w := range widths[:len(cells)-1] {
		n += 2 + w
	}
	return n <= p.width
}

func leftAs(egress string, far bool) string {
	switch {
	case egress == neverLeft || egress == stayedLocal:
		return egress
	case egress == notSeen && !far:
		return "not seen leaving"
	case egress == notSeen:
		return "not seen arriving"
	case egress == theirOwn && far:
		return "arrived with " + theirOwn
	case egress == theirOwn:
		return "left with " + theirOwn
	case far:
		return "arrived as " + egress
	}
	return "left as " + egress
}

func farSawWords(address string) string {
	if address == notSeen {
		return "not seen at the far side"
	}
	return "far saw " + address
}

// stackIndent is where the second line of a row begins.
const stackIndent = 4

// fit writes an end of a request behind a label, its name cut until both fit a line. Where an address leaves no room for
// what it is, that is a cell of its own.
func (p *page) fit(label string, words func(nameWidth int) string) []cell {
	for n := maxName; n >= 16; n -= 8 {
		if s := label + words(n); stackIndent+columns(s) <= p.width {
			return []cell{{text: s}}
		}
	}
	addr, role, _ := strings.Cut(words(maxName), " (")
	if role != "" {
		role = "(" + role
	}
	return []cell{{text: shown(label+addr, p.width-stackIndent)}, {text: shown(role, p.width-stackIndent)}}
}

// word is a verdict's word; one out of a saved record may be anything.
func word(s string) string { return shown(s, 20) }

func address(s string) string { return shown(s, maxAddr) }

// shown escapes s and cuts it to width; blanks at its ends would be mistaken for the table's.
func shown(s string, width int) string { return strings.TrimSpace(cutMiddle(Escape(s), width)) }

// roleWords says what an address is, "" where nothing is known or nothing is worth the room.
func roleWords(role, name string, isExact, hostNetwork, reused bool, nameWidth int) string {
	var s string
	switch role {
	case "pod", "service":
		s = role
	case "node":
		s = role
		if !isExact {
			s = "in the node range"
		}
	default:
		return ""
	}
	if name != "" {
		s += " " + shown(name, nameWidth)
	}
	if hostNetwork {
		s += ", hostNetwork"
	}
	if reused {
		s += ", address reused"
	}
	return s
}

func inParentheses(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func (r *row) clientWords(rec *Record, nameWidth int) string {
	if r.client == "" && len(r.clients.seen) != 1 {
		return r.clients.words(roleNoun(r.role))
	}
	c := &rec.Requests[r.first].Client
	addr := address(c.Addr)
	if r.detail == single {
		addr = address(addrPort(c.Addr, c.Port))
	}
	if behind(&rec.Requests[r.first]) {
		return "behind " + addr
	}
	return addr + inParentheses(roleWords(c.Role, string(c.Name), c.Exact, c.HostNetwork, c.Reused, nameWidth))
}

func roleNoun(role string) string {
	switch role {
	case "pod", "node", "service":
		return role
	}
	return "address"
}

func (r *row) egressWords() string {
	if r.rowKey.egress != "" {
		return address(r.rowKey.egress)
	}
	if r.own && len(r.egress.seen) > 1 {
		return theirOwn
	}
	return address(r.egress.words("address"))
}

// farWords is with which address the requests arrived at the far side.
func (r *row) farWords() string {
	if r.rowKey.farSaw != "" {
		return address(r.rowKey.farSaw)
	}
	return address(r.farSaw.words("address"))
}

func (r *row) serverWords(rec *Record, nameWidth int) string {
	s := &rec.Requests[r.first].Server
	proto := word(r.proto)
	if r.server != "" || len(r.servers.seen) == 1 {
		addr := address(s.Addr)
		if len(r.ports.seen) > 1 {
			return addr + ", " + r.ports.words("port") + " " + proto
		}
		return address(addrPort(s.Addr, s.Port)) + " " + proto + inParentheses(roleWords(s.Role, string(s.Name), s.Exact, s.HostNetwork, s.Reused, nameWidth))
	}
	addrs := r.servers.words("server")
	switch len(r.ports.seen) {
	case 0:
		return addrs + " " + proto
	case 1:
		return addrs + " :" + r.ports.words("port") + " " + proto
	}
	return addrs + ", " + r.ports.words("port") + " " + proto
}

// rest says what the table does not show, and how to see it.
func (p *page) rest(rs []row, leftRows int, leftRequests uint64) {
	const how = "all: --all or -o json; one: --request 'PROTO SRC > DST:PORT'"
	switch {
	case leftRows > 0:
		p.paragraph(2, count(uint64(leftRows), "more row")+" ("+count(leftRequests, "request")+") not shown; "+how, nil)
	case slices.ContainsFunc(rs, func(r row) bool { return r.detail > exact }):
		p.paragraph(2, "grouped to fit; "+how, nil)
	}
}

// sources writes with which addresses requests left the node, where the table above does not tell it: Pods left with
// several, or rows count addresses in place of naming them.
func (p *page) sources(rec *Record, rs []row) {
	if len(rec.Sources) < 2 && (len(rec.Sources) == 0 || !p.opt.Verbose) {
		return
	}
	counted := slices.ContainsFunc(rs, func(r row) bool { return r.rowKey.egress == "" && len(r.egress.seen) > 1 && !r.own })
	if !counted && !p.opt.Verbose && !manyForPods(rec) {
		return
	}
	list := slices.Clone(rec.Sources)
	slices.SortStableFunc(list, func(a, b Source) int { return cmp.Compare(b.Requests, a.Requests) })
	var more []Source
	if len(list) > maxSources && !p.opt.ShowAll {
		list, more = list[:maxSources], list[maxSources:]
	}
	lines := [][]cell{{{text: forms(onlyFar(rec))[0].egress}, {text: "REQUESTS", right: true}, {text: "PACKETS", right: true}}}
	for _, s := range list {
		lines = append(lines, []cell{
			{text: address(s.Addr) + inParentheses(roleWords(s.Role, string(s.Name), true, false, false, 28))},
			{text: number(s.Requests), right: true},
			{text: number(s.Packets), right: true},
		})
	}
	if len(more) > 0 {
		var requests, packets uint64
		for _, s := range more {
			requests, packets = requests+s.Requests, packets+s.Packets
		}
		lines = append(lines, []cell{
			{text: count(uint64(len(more)), "more address")}, {text: number(requests), right: true}, {text: number(packets), right: true},
		})
	}
	p.blank()
	widths, sum := tableWidth(lines)
	if over := sum - p.width; over > 0 { // a long name; counts are never that long
		widths[0] -= over
		for _, line := range lines {
			line[0].text = shown(line[0].text, widths[0])
		}
	}
	for _, line := range lines {
		p.line(line, widths)
	}
}

// manyForPods tells whether Pods' requests left with more than one address, their own counted as one.
func manyForPods(rec *Record) bool {
	first := ""
	for i := range rec.Requests {
		r := &rec.Requests[i]
		if r.Egress == nil || r.Client.Role != "pod" {
			continue
		}
		left := r.Egress.Addr
		if left == r.Client.Addr {
			left = theirOwn
		}
		if first == "" {
			first = left
		}
		if left != first {
			return true
		}
	}
	return false
}
