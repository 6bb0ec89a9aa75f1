package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fatih/color"
)

// A ladder draws one request as it went from the Pod over the node to the far side, and where it stopped. It is 7-bit, so
// that it survives a ticket, a chat and a terminal of any kind.

// maxLadders is how many cases are drawn without being asked for more.
const maxLadders = 5

// ladderCase is requests that a single drawing stands for.
type ladderCase struct {
	first int // index of the request that is drawn
	rank  int
	count uint64
}

// caseKey is what they agree in.
type caseKey struct {
	verdict
	proto, server string
	port          int32 // -1 is none
	arrived       bool
}

// twoSided tells whether the record holds a near and a far side against each other.
func twoSided(rec *Record) bool {
	on := func(side string) bool {
		return slices.ContainsFunc(rec.Captures, func(c Capture) bool { return c.Side == side })
	}
	return on("near") && on("far")
}

// ladderCases returns the cases to draw, trouble first: all that something is wrong with, or, where nothing is, one that
// went well.
func ladderCases(rec *Record) []ladderCase {
	bySeverity := severities(rec)
	var wrong, well []ladderCase
	at := make(map[caseKey]int)
	for i := range rec.Requests {
		r := &rec.Requests[i]
		if !drawn(r) {
			continue
		}
		severity := severityOf(r, bySeverity)
		if severity == 0 && wentWell(r) {
			if hasLeg(r, "far") && (len(well) == 0 || tells(&rec.Requests[well[0].first]) < tells(r)) {
				well = []ladderCase{{first: i, rank: rankOrdinary, count: 1}}
			}
			continue
		}
		k := caseKey{verdict: verdict{r.Source, r.Outcome, r.StoppedAt}, proto: r.Proto, server: r.Server.Addr, port: -1, arrived: hasLeg(r, "far")}
		if r.Server.Port != nil {
			k.port = int32(*r.Server.Port)
		}
		n, ok := at[k]
		if !ok {
			n = len(wrong)
			at[k] = n
			wrong = append(wrong, ladderCase{first: i, rank: rankOrdinary})
		}
		wrong[n].count += r.n()
		wrong[n].rank = min(wrong[n].rank, rank(r, severity))
	}
	if len(wrong) == 0 {
		return well
	}
	slices.SortStableFunc(wrong, func(a, b ladderCase) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.count, a.count))
	})
	return wrong
}

// drawn tells whether a request goes the way that a ladder shows. Captures that are not of the sides that they were given
// for show no way at all.
func drawn(r *Request) bool {
	if r.Direction == "inbound" || r.Direction == "local" || r.Source == "local" || len(r.Legs) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Unknown, func(u Unknown) bool { return u.Reason == "sides-not-as-stated" })
}

func wentWell(r *Request) bool {
	switch r.Outcome {
	case "handshake-completed", "answered", "midstream":
		return !stops(r.StoppedAt)
	}
	return false
}

// tells is how much there is to see in a request that went well.
func tells(r *Request) int {
	n := 0
	if translated(r) {
		n += 2
	}
	if r.Outcome == "handshake-completed" {
		n++
	}
	return n
}

func hasLeg(r *Request, kind string) bool {
	return slices.ContainsFunc(r.Legs, func(l Leg) bool { return l.Leg == kind })
}

// ladders draws what the captures of both sides show of each case.
func (p *page) ladders(rec *Record) {
	cases := ladderCases(rec)
	clocks := clocksOf(rec)
	node := onlyNodeAddress(rec)
	for i, c := range cases {
		p.blank()
		if i == maxLadders && !p.opt.ShowAll && !p.opt.Verbose {
			var requests uint64
			for _, c := range cases[i:] {
				requests += c.count
			}
			p.paragraph(2, count(uint64(len(cases)-i), "more case")+" ("+count(requests, "request")+") not drawn: --all", nil)
			return
		}
		l := newLadder(p, rec, rec.whole(&rec.Requests[c.first]), clocks, node)
		l.draw()
		if c.count > 1 {
			p.paragraph(2, "and "+number(c.count-1)+" more like it", nil)
		}
	}
}

// onlyNodeAddress returns the node's address where just one node was captured and just one address was given for nodes, ""
// otherwise.
func onlyNodeAddress(rec *Record) string {
	near, addr := 0, ""
	for i := range rec.Captures {
		if rec.Captures[i].Side == "near" {
			near++
		}
	}
	for _, g := range rec.Facts.Given {
		switch {
		case g.Flag == "--cluster", g.Flag == "--node-ip" && addr != "":
			return ""
		case g.Flag == "--node-ip":
			addr = g.Value
		}
	}
	if near != 1 {
		return ""
	}
	return addr
}

// sender is which way a packet of a request travels.
type sender uint8

const (
	senderUnknown sender = iota
	fromClient           // towards the server
	fromServer           // towards the client
)

// stepKey is one kind of packet on its way.
type stepKey struct {
	what string
	from sender
}

// step is the packets of one kind at one place.
type step struct {
	count  uint64
	frames []Frame
}

// sight is what one place saw of a request.
type sight struct {
	seen          bool
	sent, replies uint64
	steps         map[stepKey]*step
	capture       int // of the first leg
}

func (s *sight) count(k stepKey) uint64 {
	if st := s.steps[k]; st != nil {
		return st.count
	}
	return 0
}

// plainWhat is a frame's word without what is said of its repetition and of an error's sender.
func plainWhat(f *Frame) string {
	what, _ := errorParts(f.What)
	return strings.TrimSuffix(what, " again")
}

// errorParts parts "ICMP net unreachable from 10.20.0.1" into the error and its sender, "" where none is named.
func errorParts(what string) (kind, from string) {
	if isError(what) {
		if i := strings.LastIndex(what, " from "); i >= 0 {
			return what[:i], what[i+len(" from "):]
		}
	}
	return what, ""
}

// sightOf gathers what the legs of some kinds show, in all captures or in those that of accepts.
func sightOf(r *Request, kinds []string, of func(capture int) bool) sight {
	s := sight{steps: make(map[stepKey]*step), capture: -1}
	for i := range r.Legs {
		l := &r.Legs[i]
		if !slices.Contains(kinds, l.Leg) || !of(l.Capture) {
			continue
		}
		if s.capture < 0 {
			s.capture = l.Capture
		}
		s.seen = true
		s.sent, s.replies = max(s.sent, l.Sent), max(s.replies, l.Replies)
	}
	for i := range r.Frames {
		f := &r.Frames[i]
		if !slices.Contains(kinds, f.Leg) || !of(f.Capture) {
			continue
		}
		k := stepKey{plainWhat(f), senderOf(r, f)}
		if s.steps[k] == nil {
			s.steps[k] = new(step)
		}
		s.steps[k].count++
		s.steps[k].frames = append(s.steps[k].frames, *f)
	}
	s.settle(r)
	return s
}

// senderOf tells which way a packet travels, by its kind or by the direction in which the node saw it.
func senderOf(r *Request, f *Frame) sender {
	switch plainWhat(f) {
	case "SYN", "INIT", "COOKIE ECHO", "request":
		return fromClient
	case "SYN-ACK", "INIT ACK", "COOKIE ACK", "reply":
		return fromServer
	}
	outwards := f.Leg == "pod" && f.Direction == "in" || f.Leg == "egress" && f.Direction == "out"
	inwards := f.Leg == "pod" && f.Direction == "out" || f.Leg == "egress" && f.Direction == "in"
	switch {
	case outwards:
		return fromClient
	case inwards:
		return fromServer
	case f.Leg == "far" && isError(f.What) && r.Outcome == "rejected":
		return fromServer
	}
	return senderUnknown
}

func isError(what string) bool { return strings.HasPrefix(what, "ICMP ") }

// settle finds out, by how many packets travelled which way, what the frames alone leave open.
func (s *sight) settle(r *Request) {
	var opening, answer, others uint64
	for k, st := range s.steps {
		switch {
		case k.what == openingOf(r):
			opening += st.count
		case k.what == answerOf(r):
			answer += st.count
		case !isError(k.what) && k.what != "RST" && k.what != "ABORT":
			others += st.count
		}
	}
	for _, what := range []string{"RST", "ABORT"} {
		st := s.steps[stepKey{what, senderUnknown}]
		if st == nil || others > 0 {
			continue
		}
		switch {
		case s.sent == opening && s.replies == answer+st.count:
			s.move(what, fromServer)
		case s.sent == opening+st.count && s.replies == answer:
			s.move(what, fromClient)
		}
	}
	// An error that did not answer the request answers the answer, if there was one.
	for k := range s.steps {
		if isError(k.what) && k.from == senderUnknown && s.replies > 0 {
			s.move(k.what, fromClient)
		} else if isError(k.what) && k.from == senderUnknown {
			s.move(k.what, fromServer)
		}
	}
	// The frames that are cited are bounded; where nothing but the opening travelled, the leg's count is the whole.
	connection := r.Proto == "tcp" || r.Proto == "sctp"
	if connection && (others > 0 || r.Outcome != "request-only" && r.Outcome != "half-open" ||
		s.count(stepKey{"RST", fromClient})+s.count(stepKey{"RST", fromServer}) > 0) {
		return
	}
	for what, n := range map[string]uint64{openingOf(r): s.sent, answerOf(r): s.replies} {
		from := fromClient
		if what == answerOf(r) {
			from = fromServer
		}
		k := stepKey{what, from}
		if st := s.steps[k]; st != nil {
			st.count = max(st.count, n)
		} else if !connection && n > 0 {
			s.steps[k] = &step{count: n}
		}
	}
}

func (s *sight) move(what string, to sender) {
	from := stepKey{what, senderUnknown}
	st := s.steps[from]
	delete(s.steps, from)
	if have := s.steps[stepKey{what, to}]; have != nil {
		have.count += st.count
		have.frames = append(have.frames, st.frames...)
		return
	}
	s.steps[stepKey{what, to}] = st
}

func openingOf(r *Request) string {
	switch r.Proto {
	case "tcp":
		return "SYN"
	case "sctp":
		return "INIT"
	}
	return "request"
}

func answerOf(r *Request) string {
	switch r.Proto {
	case "tcp":
		return "SYN-ACK"
	case "sctp":
		return "INIT ACK"
	}
	return "reply"
}

// stepWord is a step as people call it.
func stepWord(r *Request, what string) string {
	if r.EchoID != nil && (what == "request" || what == "reply") {
		what = "echo " + what
	}
	return shown(what, 40)
}

func times(n uint64) string {
	if n == 1 {
		return ""
	}
	return " x" + number(n)
}

// ladder is one drawing: bars where packets were captured, arrows between them.
type ladder struct {
	p      *page
	rec    *Record
	r      *Request
	clocks map[int]*farClock
	node   string // the only address that was given for a node

	pod, exit sight
	far       []sight
	withPod   bool // the first bar is there

	bar [3]int // columns of the bars
}

func newLadder(p *page, rec *Record, r *Request, clocks map[int]*farClock, node string) *ladder {
	l := &ladder{p: p, rec: rec, r: r, clocks: clocks, node: node}
	anywhere := func(int) bool { return true }
	l.pod = sightOf(r, []string{"pod"}, anywhere)
	l.exit = sightOf(r, []string{"egress"}, anywhere)
	if !l.exit.seen {
		l.exit = sightOf(r, []string{"unknown"}, anywhere)
	}
	for _, c := range farCaptures(r) {
		l.far = append(l.far, sightOf(r, []string{"far"}, func(capture int) bool { return farCapture(rec, r, capture) == c }))
	}
	l.withPod = l.pod.seen || r.Client.Role == "pod"
	const indent = 4
	l.bar = [3]int{indent, indent + 22, indent + 64}
	if p.width < maxWidth {
		l.bar = [3]int{indent, indent + 18, indent + 52}
	}
	if !l.withPod { // one arrow in place of two
		l.bar = [3]int{indent, indent, l.bar[2] - l.bar[1] + indent}
	}
	return l
}

// farCaptures returns the captures of a request's far legs, in their order.
func farCaptures(r *Request) []int {
	var out []int
	for i := range r.Legs {
		if r.Legs[i].Leg == "far" && !slices.Contains(out, r.Legs[i].Capture) {
			out = append(out, r.Legs[i].Capture)
		}
	}
	return out
}

// farCapture returns the far leg's capture that a file belongs to: a capture may be several files, and its legs name the
// first of them. It is -1 if there is none.
func farCapture(rec *Record, r *Request, file int) int {
	list := farCaptures(r)
	if slices.Contains(list, file) {
		return file
	}
	if len(list) == 1 {
		return list[0]
	}
	for _, c := range list {
		if label := rec.Captures[c].Label; label != "" && label == rec.Captures[file].Label {
			return c
		}
	}
	return -1
}

// captureName is what a person calls a capture.
func captureName(c *Capture, width int) string {
	if c.Label != "" {
		return shown(string(c.Label), width)
	}
	return shown(c.File, width)
}

// captureFile is a capture's file; files of one label share that.
func captureFile(c *Capture) string { return shown(c.File, maxName) }

// severalCaptures tells whether a side was captured at more than one place, as far as their names tell.
func severalCaptures(rec *Record, side string) bool {
	seen := make(map[string]bool)
	for i := range rec.Captures {
		if c := &rec.Captures[i]; c.Side == side {
			seen[cmp.Or(string(c.Label), c.File)] = true
		}
	}
	return len(seen) > 1
}

func (l *ladder) draw() {
	l.title()
	l.heads()
	l.opening()
	l.answers()
	l.rest()
	l.cited()
}

func (l *ladder) title() {
	r := l.r
	name := tupleWords(r)
	verdict := verdictWord("source", r.Source) + ", " + verdictWord("outcome", r.Outcome) + ", stopped at: " + word(r.StoppedAt)
	if n := columns(name) + columns(verdict); n+3 <= l.p.width {
		l.p.put(l.p.strong.Sprint(name) + blanks(min(6, l.p.width-n)) + l.p.strong.Sprint(verdict))
		return
	}
	l.p.paragraph(0, name, l.p.strong)
	l.p.paragraph(2, verdict, l.p.strong)
}

// heads names the bars. A head that would run into the next one leaves it to the next line.
func (l *ladder) heads() {
	r := l.r
	type head struct {
		bar         int
		place, name string
	}
	var heads []head
	if l.withPod {
		place := "client"
		if r.Client.Role == "pod" {
			place = "pod"
		}
		heads = append(heads, head{0, place + " " + address(r.Client.Addr), shown(string(r.Client.Name), 40)})
	}
	node, name := "node", shown(string(r.Client.Node), 40)
	if l.exit.seen && !l.pod.seen && hasLeg(r, "unknown") {
		node = "near"
	}
	switch {
	case r.Egress != nil && r.Egress.Role == "node":
		node += " " + address(r.Egress.Addr)
		name = cmp.Or(name, shown(string(r.Egress.Name), 40))
	case l.node != "" && node == "node":
		node += " " + address(l.node)
	}
	if near := max(l.exit.capture, l.pod.capture); near >= 0 && severalCaptures(l.rec, "near") {
		if s := captureName(&l.rec.Captures[near], maxLabel); s != name {
			name = strings.TrimPrefix(name+", "+s, ", ")
		}
	}
	heads = append(heads, head{1, node, name})
	server := r.Server
	if r.Backend != nil {
		server = *r.Backend
	}
	if r.FarServer != nil {
		server = *r.FarServer
	}
	heads = append(heads, head{2, "far " + address(server.Addr), shown(string(server.Name), 40)})

	l.p.blank()
	lines := []string{}
	add := func(bar int, text string) {
		if text == "" {
			return
		}
		at := min(l.bar[bar], max(l.p.width-columns(text), 0))
		if n := len(lines); n > 0 && columns(lines[n-1])+2 <= at {
			lines[n-1] += blanks(at-columns(lines[n-1])) + text
			return
		}
		lines = append(lines, blanks(at)+text)
	}
	for _, h := range heads {
		add(h.bar, h.place)
	}
	first := len(lines)
	lines = append(lines, "")
	for _, h := range heads {
		add(h.bar, h.name)
	}
	if lines[first] == "" {
		lines = slices.Delete(lines, first, first+1)
	}
	for _, s := range lines {
		l.p.put(s)
	}
}

// lane is what is drawn between two bars.
type lane struct {
	dir    int    // 1 is an arrow to the right, -1 one to the left, 0 none
	label  string // what travels
	cut    string // with an arrow: it does not reach the other bar, and why ("x", "? not seen")
	origin string // with an arrow: it comes from in between, from this
	text   string // without an arrow
}

// arrowRoom is what an arrow takes beside its label: dashes, a dash behind it, a head.
const arrowRoom = 3 + 1 + 1

// draw returns exactly width columns, and, where the label does not fit, what is to stand in a line above.
func (n lane) draw(width int) (drawn, above string) {
	label, origin := n.label, n.origin
	extra := 0
	if n.cut != "" {
		extra = 2 + columns(n.cut)
	}
	if origin != "" {
		extra = 2 + columns(origin)
	}
	if n.dir != 0 && columns(label)+arrowRoom+extra > width {
		above, label = label, ""
		if origin != "" {
			above, origin, extra = above+" from "+origin, "o", 3
		}
	}
	whole := max(width-extra, 0)
	if origin != "" || n.cut != "" && n.dir < 0 {
		whole = min(whole, max(columns(label)+arrowRoom, 12))
	}
	switch {
	case n.dir == 0:
		drawn = "  " + n.text
	case n.dir > 0 && origin != "":
		drawn = alignRight(origin+" "+arrow(label, whole, 1), width)
	case n.dir > 0 && n.cut != "":
		drawn = arrow(label, whole, 1) + " " + n.cut
	case n.dir > 0:
		drawn = arrow(label, width, 1)
	case origin != "":
		drawn = arrow(label, whole, -1) + " " + origin
	case n.cut != "":
		drawn = alignRight(n.cut+" "+arrow(label, whole, -1), width)
	default:
		drawn = arrow(label, width, -1)
	}
	if columns(drawn) > width { // a text longer than the lane: never with the words of this file
		drawn = cutMiddle(drawn, max(width, 5))
	}
	return drawn + blanks(width-columns(drawn)), above
}

func alignRight(s string, width int) string { return blanks(width-columns(s)) + s }

// arrow is an arrow of a length, its label behind the first dashes of its way.
func arrow(label string, length, dir int) string {
	dashes := max(length-1-columns(label), 0)
	if dir > 0 {
		left := min(3, dashes)
		return strings.Repeat("-", left) + label + strings.Repeat("-", dashes-left) + ">"
	}
	left := min(3, dashes)
	return "<" + strings.Repeat("-", left) + label + strings.Repeat("-", dashes-left)
}

// rung writes one line of the ladder. What does not fit a lane stands above it; the note's further lines below.
func (l *ladder) rung(first, second lane, note string, style *color.Color) {
	drawn1, above1 := "", ""
	if l.withPod {
		drawn1, above1 = first.draw(l.bar[1] - l.bar[0] - 1)
	}
	drawn2, above2 := second.draw(l.bar[2] - l.bar[1] - 1)
	l.above(above1, above2)
	line := blanks(l.bar[0]) + "|"
	if l.withPod {
		line += drawn1 + "|"
	}
	line += drawn2 + "|"
	room := l.p.width - l.bar[2] - 3
	var far []string
	if note != "" {
		// An address is never cut: a note whose longest word has no room stands below, further to the left.
		if slices.ContainsFunc(strings.Fields(note), func(w string) bool { return columns(w) > room }) {
			l.p.put(line)
			l.words(1, note)
			return
		}
		far = wrap(note, room, room)
	}
	for i, s := range far {
		if i > 0 {
			line = l.bars(2)
		}
		if style != nil {
			s = style.Sprint(s)
		}
		l.p.put(line + "  " + s)
	}
	if len(far) == 0 {
		l.p.put(line)
	}
}

// above writes what did not fit the lanes below, in one line if that has the room.
func (l *ladder) above(first, second string) {
	switch {
	case first == "" && second == "":
	case second == "" || l.bar[0]+3+columns(first) >= l.bar[1]:
		if first != "" {
			l.words(0, first)
		}
		if second != "" {
			l.words(1, second)
		}
	default:
		s := blanks(l.bar[0]) + "|  " + first
		lead := l.bars(1)
		if first != "" && l.withPod {
			lead = s + blanks(l.bar[1]-columns(s)) + "|"
		}
		if s = lead + "  " + second; columns(s) > l.p.width {
			if first != "" {
				l.words(0, first)
			}
			l.words(1, second)
			return
		}
		l.p.put(l.withBars(s))
	}
}

// withBars adds to a line the bars behind it.
func (l *ladder) withBars(s string) string {
	for _, at := range l.bar {
		if n := columns(s); n <= at {
			s += blanks(at-n) + "|"
		}
	}
	return s
}

// bars returns the bars up to and with the last one.
func (l *ladder) bars(last int) string {
	var b strings.Builder
	at := 0
	for i := 0; i <= last; i++ {
		if i == 0 && !l.withPod {
			continue
		}
		b.WriteString(blanks(l.bar[i]-at) + "|")
		at = max(at, l.bar[i]) + 1
	}
	return b.String()
}

// words writes words to the right of a bar, or where they do not fit there, further to the left.
func (l *ladder) words(bar int, s string) {
	lead := ""
	for ; ; bar-- {
		lead = l.bars(bar) + "  "
		if bar == 0 || columns(lead)+columns(s) <= l.p.width {
			break
		}
	}
	room := l.p.width - columns(lead)
	if bar > 0 || columns(s) <= room {
		l.p.put(l.withBars(lead + s))
		return
	}
	for _, line := range wrap(s, room, room) {
		l.p.put(lead + line)
	}
}

// notSeen is how an arrow ends that was not seen on its other side: "x" only where the verdict is that it stops there.
func (l *ladder) notSeen(stop string) string {
	if l.r.StoppedAt == stop {
		return "x"
	}
	return "?"
}

// opening draws the request's first packets on their way to the far side.
func (l *ladder) opening() {
	what := stepKey{openingOf(l.r), fromClient}
	if l.pod.count(what)+l.exit.count(what) == 0 && !slices.ContainsFunc(l.far, func(s sight) bool { return s.count(what) > 0 }) {
		return // not captured: the packets in all follow
	}
	l.towardsServer(what, true)
}

// towardsServer draws what the client sent, and what was sent in its place.
func (l *ladder) towardsServer(what stepKey, opening bool) {
	word := stepWord(l.r, what.what)
	one, two := lane{}, lane{}
	note, style := "", (*color.Color)(nil)
	atPod, atExit := l.pod.count(what), l.exit.count(what)
	var far []sight
	for _, s := range l.far {
		if s.count(what) > 0 {
			far = append(far, s)
		}
	}
	if atPod > 0 {
		one = lane{dir: 1, label: word + times(atPod)}
	} else if l.withPod && l.pod.seen {
		one.text = "? not seen"
	}
	label := word + times(atExit)
	if opening && atExit > 0 && l.r.Egress != nil && l.pod.seen && l.r.Source != "node-own" {
		label += ", as " + address(addrPort(l.r.Egress.Addr, l.r.Egress.Port))
	}
	switch {
	case atExit > 0 && len(far) > 0:
		two = lane{dir: 1, label: label}
	case atExit > 0:
		two = lane{dir: 1, label: label, cut: l.notSeen("between")}
		switch note = "not seen"; {
		case two.cut == "x":
			style = l.p.bad
		case len(l.far) == 0 && !stops(l.r.StoppedAt):
			note += ", not covered"
		}
	case len(far) > 0 && (l.pod.seen || l.exit.seen):
		two = lane{dir: 1, label: word + times(far[0].count(what)), origin: "leaving not seen"}
	case len(far) > 0:
		two = lane{dir: 1, label: word + times(far[0].count(what)), origin: "not in the near capture"}
	case l.r.Source == "not-sent" || l.r.StoppedAt == "node-out":
		two.text = "x never left"
	default:
		two.text = "? not seen leaving"
	}
	if len(far) == 0 {
		l.rung(one, two, note, style)
		return
	}
	for i := range far {
		if i > 0 {
			one, two.label, two.origin = lane{}, "", ""
			if atExit == 0 {
				two = lane{}
			}
		}
		note = "arrived" + times(far[i].count(what))
		if opening && i == 0 {
			note += l.farWords()
		}
		if ns, ok := l.oneWay(&far[i], what); ok {
			note += ", +" + duration(ns)
		}
		l.rung(one, two, note+l.where(&far[i]), nil)
	}
}

// farWords says with which address, and at which, a request arrived, where that is not how it left.
func (l *ladder) farWords() string {
	r, s := l.r, ""
	left := r.Egress
	if left == nil {
		left = &r.Client
	}
	if r.Far != nil && (r.Far.Addr != left.Addr || !samePort(r.Far.Port, left.Port)) {
		s += " as " + address(addrPort(r.Far.Addr, r.Far.Port))
	}
	sent := &r.Server
	if r.Backend != nil {
		sent = r.Backend
	}
	if differs(r.FarServer, sent) {
		s += " at " + address(addrPort(r.FarServer.Addr, r.FarServer.Port))
	}
	return s
}

// where names the far capture, if there are several.
func (l *ladder) where(s *sight) string {
	if s.capture < 0 || !severalCaptures(l.rec, "far") {
		return ""
	}
	return ", " + captureName(&l.rec.Captures[s.capture], maxLabel)
}

// oneWay returns how long a packet took from the node to the far side, if the clocks tell: it is known only where the same
// packets were seen on both sides, and where it is longer than the clocks may be wrong.
func (l *ladder) oneWay(far *sight, what stepKey) (int64, bool) {
	c := l.clocks[far.capture]
	if c == nil || !c.steady {
		return 0, false
	}
	ns, ok := firstApart(l.rec, l.r, far.capture, what.what)
	ns -= c.offset
	return ns, ok && ns > c.wrong && ns < maxOneWay
}

// maxOneWay is the longest time that is believed: a connection gives up sooner than a longer one could matter.
const maxOneWay = 60e9

// firstApart returns by how many nanoseconds the far side's first frame of a kind is behind the near one. Which packet is
// which is known only where both sides saw as many.
func firstApart(rec *Record, r *Request, capture int, what string) (int64, bool) {
	var n [2]int
	var first [2]Time
	near := "egress"
	if !hasLeg(r, near) {
		near = "unknown"
	}
	for i := range r.Frames {
		f, side := &r.Frames[i], 0
		switch {
		case plainWhat(f) != what:
			continue
		case f.Leg == "far" && farCapture(rec, r, f.Capture) == capture:
			side = 1
		case f.Leg != near:
			continue
		}
		if n[side] == 0 {
			first[side] = f.Time
		}
		n[side]++
	}
	if n[0] == 0 || n[0] != n[1] || !first[0].Known() || !first[1].Known() {
		return 0, false
	}
	return first[1].Sub(first[0]), true
}

// answers draws what came back, and errors.
func (l *ladder) answers() {
	var list []stepKey
	for _, s := range append([]sight{l.pod, l.exit}, l.far...) {
		for k := range s.steps {
			if (k.what == answerOf(l.r) || k.what == "RST" || k.what == "ABORT" || isError(k.what)) && k.from != senderUnknown && !slices.Contains(list, k) {
				list = append(list, k)
			}
		}
	}
	order := func(k stepKey) int {
		switch {
		case isError(k.what) && k.from == fromServer:
			return 0
		case k.what == answerOf(l.r):
			return 1
		case k.from == fromServer:
			return 2
		}
		return 3
	}
	slices.SortFunc(list, func(a, b stepKey) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.what, b.what), cmp.Compare(a.from, b.from))
	})
	if len(list) == 0 && len(l.far) > 0 && l.r.Outcome == "request-only" {
		style := l.p.bad
		if l.r.StoppedAt != "far" {
			style = nil
		}
		l.rung(lane{}, lane{}, l.notSeen("far")+" no answer seen here", style)
	}
	for _, k := range list {
		switch {
		case k.from == fromServer:
			l.towardsClient(k)
		case isError(k.what):
			l.rejectedAnswer(k)
		default:
			l.towardsServer(k, false)
		}
	}
}

// towardsClient draws an answer on its way back.
func (l *ladder) towardsClient(what stepKey) {
	word, from := stepWord(l.r, what.what), ""
	if isError(what.what) {
		from = l.errorSender(what)
	}
	named := func(n uint64) string {
		if from != "" {
			return word + times(n) + " from " + from
		}
		return word + times(n)
	}
	var far []sight
	for _, s := range l.far {
		if s.count(what) > 0 {
			far = append(far, s)
		}
	}
	atPod, atExit := l.pod.count(what), l.exit.count(what)
	one, two := lane{}, lane{}
	switch {
	case atPod > 0 && atExit == 0 && len(far) == 0:
		one = lane{dir: -1, label: named(atPod)} // the node itself
		if !l.exit.seen && l.r.StoppedAt != "node-out" {
			two.text = "? not seen coming in"
		}
	case atPod > 0:
		one = lane{dir: -1, label: word + times(atPod)}
		if isError(what.what) && columns(one.label)+arrowRoom > l.bar[1]-l.bar[0]-1 {
			one.label = "ICMP" + times(atPod) // the other arrow has its name
		}
	case l.withPod && l.pod.seen && atExit > 0:
		one.text = l.notSeen("node-in") + " not seen"
	}
	note := ""
	switch {
	case atExit > 0 && len(far) > 0:
		two = lane{dir: -1, label: named(atExit)}
	case atExit > 0:
		two = lane{dir: -1, label: word + times(atExit), origin: cmp.Or(from, "o")}
		if !isError(what.what) {
			note = "not seen"
			if slices.Contains(l.r.Findings, "answered-by-middlebox") {
				note = "not from here"
			}
		}
	case len(far) > 0 && atPod > 0:
		two = lane{dir: -1, label: named(far[0].count(what))}
	case len(far) > 0 && (l.pod.seen || l.exit.seen):
		two = lane{dir: -1, label: named(far[0].count(what)), cut: l.notSeen("return") + " not seen"}
	case len(far) > 0:
		two = lane{dir: -1, label: named(far[0].count(what)), cut: "not in the near capture"}
	}
	if len(far) == 0 {
		l.rung(one, two, note, nil)
		return
	}
	for i := range far {
		if i > 0 {
			one, two = lane{}, lane{}
		}
		note = "answered" + times(far[i].count(what))
		if isError(what.what) {
			note = "passed" + times(far[i].count(what))
		}
		l.rung(one, two, note+l.where(&far[i]), nil)
	}
}

// rejectedAnswer draws an error about the answer, on its way to the server.
func (l *ladder) rejectedAnswer(what stepKey) {
	word, from := stepWord(l.r, what.what), l.errorSender(what)
	about := "about the " + stepWord(l.r, answerOf(l.r))
	atPod, atExit := l.pod.count(what), l.exit.count(what)
	if atPod+atExit > 0 {
		one, two := lane{}, lane{dir: 1, label: word + times(max(atExit, atPod))}
		if atPod > 0 {
			one = lane{dir: 1, label: word + times(atPod)}
		}
		if from != "" {
			two.label += " from " + from
		}
		l.rung(one, two, about, nil)
		return
	}
	for i := range l.far {
		if n := l.far[i].count(what); n > 0 {
			l.rung(lane{}, lane{dir: 1, label: word + times(n), origin: cmp.Or(from, "o")}, about+l.where(&l.far[i]), nil)
		}
	}
}

// errorSender returns the address that an error came from, "" if no frame names it.
func (l *ladder) errorSender(what stepKey) string {
	for _, s := range append([]sight{l.exit, l.pod}, l.far...) {
		st := s.steps[what]
		if st == nil {
			continue
		}
		for i := range st.frames {
			if _, from := errorParts(st.frames[i].What); from != "" {
				return address(from)
			}
		}
	}
	if l.r.ICMP != nil && what.what == "ICMP "+l.r.ICMP.Text {
		return address(l.r.ICMP.From)
	}
	return ""
}

// rest draws what followed the opening: the client's acknowledgement, then all packets in numbers.
func (l *ladder) rest() {
	var shown [2]uint64 // by the place that saw most: packets of the client and of the server that are drawn already
	var data [2]bool
	sights := append([]sight{l.pod, l.exit}, l.far...)
	for _, s := range sights {
		var n [2]uint64
		for k, st := range s.steps {
			data[0] = data[0] || k == stepKey{"data", fromClient}
			data[1] = data[1] || k == stepKey{"data", fromServer}
			switch {
			case isError(k.what):
			case k == stepKey{openingOf(l.r), fromClient}, k.from == fromClient && (k.what == "RST" || k.what == "ABORT"):
				n[0] += st.count
			case k == stepKey{answerOf(l.r), fromServer}, k.from == fromServer && (k.what == "RST" || k.what == "ABORT"):
				n[1] += st.count
			}
		}
		shown[0], shown[1] = max(shown[0], n[0]), max(shown[1], n[1])
	}
	if len(l.far) == 0 && shown[0]+shown[1] > 0 {
		return // there is nothing to hold the numbers against
	}
	for side := range 2 {
		total := func(s *sight) uint64 {
			if side == 0 {
				return s.sent
			}
			return s.replies
		}
		if !slices.ContainsFunc(sights, func(s sight) bool { return total(&s) > shown[side] }) {
			continue
		}
		what := ""
		if data[side] {
			what = ", with data"
		}
		l.totals(side, total, what)
	}
}

// totals draws all packets of one side as a pair of arrows with their numbers.
func (l *ladder) totals(side int, total func(*sight) uint64, what string) {
	dir, note := 1, "arrived"
	if side == 1 {
		dir, note = -1, "sent"
	}
	one, two := lane{}, lane{}
	words := func(n uint64) string { return number(n) + " in all" }
	if n := total(&l.pod); n > 0 {
		one = lane{dir: dir, label: words(n)}
	}
	if n := total(&l.exit); n > 0 {
		two = lane{dir: dir, label: words(n) + what}
	}
	drawn := false
	for i := range l.far {
		n := total(&l.far[i])
		if n == 0 {
			continue
		}
		if two.dir == 0 && !drawn {
			two = lane{dir: dir, label: words(n)}
		}
		l.rung(one, two, number(n)+" "+note+l.where(&l.far[i]), nil)
		drawn = true
		one, two = lane{}, lane{}
	}
	if drawn || one.dir == 0 && two.dir == 0 {
		return
	}
	if two.dir > 0 {
		two.cut = l.notSeen("between")
	}
	if two.dir < 0 {
		two.origin = "o"
	}
	l.rung(one, two, "", nil)
}

// maxCited is how many frames are cited of one kind.
const maxCited = 5

// cited writes the frames that show it, and by what the two sides were joined.
func (l *ladder) cited() {
	files := make(map[string]int)
	for i := range l.rec.Captures {
		files[l.rec.Captures[i].Side]++
	}
	var lines []string
	for i := 0; i < len(l.r.Frames); {
		c := &l.rec.Captures[l.r.Frames[i].Capture]
		end := i
		for end < len(l.r.Frames) && l.r.Frames[end].Capture == l.r.Frames[i].Capture {
			end++
		}
		name := shown(c.Side, maxLabel)
		if files[c.Side] > 1 {
			name += " " + captureFile(c)
		}
		lines = append(lines, name+": "+citedOf(l.r, l.r.Frames[i:end]))
		i = end
	}
	l.p.labelled("frames", lines)
	var joined []string
	for _, j := range l.r.Join {
		if j.To == "far" {
			if s := strings.Join(j.Basis, ", ") + "; " + j.Confidence; !slices.Contains(joined, s) {
				joined = append(joined, s)
			}
		}
	}
	for i := range joined {
		joined[i] = "with the far side by " + joined[i]
	}
	l.p.labelled("joined", joined)
}

// citedOf lists frames of one capture by place and kind, as "pod SYN 4 7 10; egress SYN 6 9 12, SYN-ACK 7".
func citedOf(r *Request, frames []Frame) string {
	type key struct{ leg, what string }
	var order []key
	at := make(map[key][]uint64)
	for i := range frames {
		k := key{frames[i].Leg, plainWhat(&frames[i])}
		if at[k] == nil {
			order = append(order, k)
		}
		at[k] = append(at[k], frames[i].Frame)
	}
	legs := []string{}
	for _, k := range order {
		if !slices.Contains(legs, k.leg) {
			legs = append(legs, k.leg)
		}
	}
	var parts []string
	for _, leg := range legs {
		var kinds []string
		for _, k := range order {
			if k.leg != leg {
				continue
			}
			words := []string{stepWord(r, k.what)}
			for _, n := range at[k][:min(len(at[k]), maxCited)] {
				words = append(words, strconv.FormatUint(n, 10))
			}
			if rest := len(at[k]) - maxCited; rest > 0 {
				words = append(words, "and", number(uint64(rest)), "more")
			}
			kinds = append(kinds, strings.Join(words, " "))
		}
		s := strings.Join(kinds, ", ")
		switch leg {
		case "pod":
			s = "pod " + s
		case "egress":
			s = "egress " + s
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}
