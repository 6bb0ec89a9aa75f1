package tcpdump

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/srcproof/srcproof/capture/wire"
)

// Options say what a text does not: the day of its first packet, and the zone that its times are in.
type Options struct {
	Day  time.Time      // any moment of it in UTC; zero is not known
	Zone *time.Location // nil is not known
	Log  string         // what a log put before the first line, and was taken off all: see WithoutLog; "" is nothing
}

// Capture is what one run of tcpdump printed.
type Capture struct {
	Packets []wire.Packet
	Summary wire.Summary
	Host    string // the host that it ran on, as a prompt or a label says; "" is not known
}

// Looks tells whether a text may be tcpdump's, by its beginning.
func Looks(head string) bool {
	for line := range strings.Lines(head) {
		line = clean(strings.TrimRight(line, "\n"))
		t := strings.TrimSpace(line)
		if looksLikeCommand(line) || bannerLine.MatchString(t) || countLine.MatchString(t) || readingLine.MatchString(t) {
			return true
		}
		if h, ok := parseHead(line); ok && (h.ip || h.other) {
			return true
		}
		if l, ok := parseLayer(t); ok && l.printed && l.p.Tuple.Proto != wire.ProtoNone && (strings.HasPrefix(l.rest, "Flags [") || strings.HasPrefix(l.rest, "ICMP ")) {
			return true
		}
	}
	return false
}

// maxLine is the longest line that may be a packet's.
const maxLine = 64 << 10

// maxRecord is the longest record in bytes; what stands behind is a dump of the payload.
const maxRecord = 8 << 10

// Read reads a text: each run of tcpdump in it is one capture. It never errs: what is no packet is skipped, and counted where it may
// be one.
func Read(text []byte, opt Options) []Capture {
	r := &reader{opt: opt}
	r.begin()
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		if len(line) > maxLine {
			r.flush()
			r.skipped++
			continue
		}
		r.line(clean(string(line)))
	}
	r.flush()
	r.end()
	return r.out
}

// reader reads line by line.
type reader struct {
	opt     Options
	out     []Capture
	s       *section
	cur     *record
	skipped uint64 // lines that are no packet, and longer than one can be
	parts   int    // how often times began again
	apart   bool   // something else than packets stands before the line at hand
}

// section is one run of tcpdump.
type section struct {
	Capture
	stamps   []stamp // of each packet
	ifaces   map[string]uint32
	conv     map[wire.Tuple]*conversation
	recent   map[[2]wire.Addr][]recentFlow
	command  bool // a command line was seen
	banner   bool
	reading  bool   // from a file
	hasSeq   bool   // -S
	relative bool   // not -S: numbers were seen that are distances
	delta    int    // how often t stands in the options; -1 is not known
	foreign  bool   // tcpdump itself says that the interfaces' names may be another host's
	names    bool   // -n is not given: names may stand for addresses
	quiet    bool   // -q
	blanks   uint64 // times with a blank in front
	counted  map[string]uint64
	gaps     []string // why packets may be missing
	onAny    bool
	device   string
	absent   uint64 // records that were cut before what tells what they are
	named    bool   // the last packet's line named an interface or a direction
}

// record is one packet while its lines are gathered.
type record struct {
	head   head
	text   string   // from the network layer on
	inner  []string // what it carries or quotes, each from its network layer on
	indent int
	lines  int
	raw    string // the last line
	closed bool   // what was read last ends as a packet's line does, or is as long as one can be
}

// cutMark stands behind a number at which a line ends that goes on elsewhere, or nowhere: digits of it may be missing. No text has it.
const cutMark = "\x00"

// isCutNumber tells whether a text ends within what may be a number.
func isCutNumber(s string) bool { return s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' }

// last is the header chain that was read last.
func (c *record) last() string {
	if n := len(c.inner); n > 0 {
		return c.inner[n-1]
	}
	return c.text
}

// isError tells whether a header chain ends in an ICMP error, behind which -v prints the packet that it is about.
func isError(s string) bool {
	return strings.Contains(s, ": ICMP") && (strings.Contains(s, "unreachable") || strings.Contains(s, "time exceeded") || strings.Contains(s, "too big"))
}

func (r *reader) begin() {
	r.s = &section{ifaces: make(map[string]uint32), conv: make(map[wire.Tuple]*conversation), recent: make(map[[2]wire.Addr][]recentFlow), delta: -1, counted: make(map[string]uint64)}
	r.s.Summary.First, r.s.Summary.Last = wire.NoTime, wire.NoTime
	r.s.Summary.Format, r.s.Summary.Complete = "tcpdump text", true
}

// next begins a new section, if the one at hand holds anything.
func (r *reader) next() {
	r.flush()
	if r.s.Summary.Frames > 0 || len(r.s.counted) > 0 {
		r.end()
		r.begin()
	}
}

func (r *reader) line(line string) {
	t := strings.TrimSpace(line)
	switch {
	case t == "":
		r.flush()
		r.apart = true
		return
	case hexLine.MatchString(line):
		return
	case looksLikeCommand(line):
		r.next()
		r.s.commandLine(t)
		return
	}
	if m := bannerLine.FindStringSubmatch(t); m != nil {
		if r.s.banner {
			r.next()
		} else {
			r.flush()
		}
		r.s.bannerLine(m)
		return
	}
	if m := readingLine.FindStringSubmatch(t); m != nil {
		if r.s.banner {
			r.next()
		}
		r.s.banner, r.s.reading = true, true
		r.s.linkType(m[1])
		return
	}
	if m := countLine.FindStringSubmatch(t); m != nil {
		r.flush()
		if n, err := strconv.ParseUint(m[1], 10, 64); err == nil {
			r.s.counted[m[2]] = n
		}
		return
	}
	switch {
	case noteLine.MatchString(t):
		if strings.Contains(t, "interface names might be incorrect") {
			r.s.foreign = true
			r.s.note("tcpdump says that the interfaces' names may be those of another host")
		}
		return
	case cutLine.MatchString(line):
		r.flush()
		r.s.gap("a line of dots: packets were left out")
		return
	case strings.HasPrefix(t, "#") && !strings.HasPrefix(t, "##"), strings.HasPrefix(t, "//"), strings.HasPrefix(t, "```"):
		if !looksLikeCommand(t) {
			return // a person's remark; what it stands between may go on
		}
	}
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	h, ok := parseHead(line)
	if ok && h.stamp.kind == noStamp && r.cur != nil && r.cur.takesInner(h, indent) {
		r.cur.quote(h.rest)
		return
	}
	// With -e the quoted packet begins with its header alone.
	if !ok && r.cur != nil && r.cur.head.stamp.kind != noStamp && isError(r.cur.last()) && quotedHeader.MatchString(t) {
		r.cur.quote(t)
		return
	}
	if ok {
		r.flush()
		r.other(&h)
		if h.blank {
			r.s.blanks++
		}
		r.cur = &record{head: h, text: h.rest, indent: indent, lines: 1, raw: t}
		return
	}
	if indent == 0 && (r.cur == nil || r.cur.isClosed()) {
		if m := labelLine.FindStringSubmatch(t); m != nil && !strings.Contains(t, " ") {
			r.next()
			r.s.Host = m[1]
			return
		}
		if headingLine.MatchString(t) {
			r.part("a heading parts the text: how what stands before it belongs to what stands behind is not known")
			return
		}
	}
	r.apart = r.apart || r.cur == nil || indent == 0 && r.cur.isClosed()
	if r.cur == nil {
		// The second line of a packet whose first one was not copied.
		if l, ok := parseLayer(t); ok && l.printed && (strings.HasPrefix(l.rest, "Flags [") || strings.HasPrefix(l.rest, "ICMP ")) {
			r.s.gap("the text begins within a packet")
			r.cur = &record{head: head{ip: true, rest: t}, text: t, indent: indent, lines: 1, raw: t}
		}
		return
	}
	// What goes on: the second line of -v, or one that a mail program broke.
	of := &r.cur.text
	if n := len(r.cur.inner); n > 0 {
		of = &r.cur.inner[n-1]
	}
	if r.cur.isClosed() {
		return
	}
	if len(*of)+len(t) > maxRecord {
		r.cur.closed = true
		return
	}
	if isCutNumber(*of) {
		*of += cutMark
	}
	*of += " " + t
	r.cur.lines++
	r.cur.closed = isWhole(*of)
}

// isClosed tells whether the record at hand cannot go on.
func (c *record) isClosed() bool {
	if !c.closed && c.lines == 1 && len(c.inner) == 0 {
		c.closed = isWhole(c.text)
	}
	return c.closed
}

// quote adds what the packet carries or quotes.
func (c *record) quote(s string) {
	c.inner = append(c.inner, s)
	c.lines++
	c.closed = isWhole(s)
}

// part begins a new section, where the text shows that it is parted and not by what: packets may be missing on both sides.
func (r *reader) part(why string) {
	if r.s.Summary.Frames > 0 || r.cur != nil {
		r.flush()
		r.s.gap(why)
		r.next()
		r.s.gap(why)
	}
}

// maxParts is how often a text may begin again before its lines are taken for ones that are in no order.
const maxParts = 16

// other begins a new section where a packet cannot be of the run before it: its time lies before the last one's, or the packets had
// interfaces' names so far and this one has none, or the reverse.
func (r *reader) other(h *head) {
	s := r.s
	named := h.iface != "" || h.dir != wire.DirUnknown
	if n := len(s.stamps); n > 0 && h.ip {
		last := s.stamps[n-1]
		switch {
		case named != s.named:
			r.part("the lines have another form from here on: another run of tcpdump, perhaps of another host")
		case !h.blank && s.blanks == 0 && s.delta < 3 && h.stamp.fallsBehind(last):
			if r.parts++; !r.apart || r.parts > maxParts { // a capture that was put together of others has its packets so
				s.gap("times go back: the lines are in no order, or of more than one capture")
				break
			}
			r.part("times begin again: another run of tcpdump, perhaps of another host")
		}
	}
	r.s.named, r.apart = named, false
}

// takesInner tells whether a line without a time is what the record carries or quotes.
func (c *record) takesInner(h head, indent int) bool {
	if !h.ip {
		return false
	}
	of := c.last()
	if carries(of) {
		return !strings.Contains(of, ": IP ") && !strings.Contains(of, ": IP6 ") && !strings.Contains(of, ", ethertype ")
	}
	// Every packet has a time, and what it quotes has none; without times the indentation tells.
	return isError(of) && (c.head.stamp.kind != noStamp || indent > c.indent)
}

var quotedHeader = regexp.MustCompile(`^\((?:tos|hlim|class|flowlabel) `)

// carries tells whether a layer is a tunnel whose inside is printed on a line of its own.
func carries(s string) bool {
	return strings.Contains(s, "VXLAN, flags") || strings.Contains(s, "Geneve, ") || strings.Contains(s, "OTV, ") || strings.Contains(s, "GREv")
}

// isWhole tells whether a record's text is one that ends where a packet's does. It is asked of a record with each line that comes to it
// (2026-12-01: as a regular expression it took 12 us a line of garbage, nine tenths of all).
func isWhole(s string) bool {
	if !strings.Contains(s, " > ") || flagsAlone(s) {
		return false
	}
	if at := behindDestination(s); at >= 0 && endsPacket(s[at:]) {
		return true
	}
	for _, rest, ok := strings.Cut(s, ", length "); ok; _, rest, ok = strings.Cut(rest, ", length ") {
		t := strings.TrimLeft(rest, digits)
		if len(t) < len(rest) && len(t) > 2 && t[:2] == ": " && t[2] >= 'A' && t[2] <= 'Z' {
			return true // what carries another packet, which is on the line
		}
	}
	return false
}

const digits = "0123456789"

// behindDestination is where a text goes on behind the first "> DESTINATION: ", -1 if there is none.
func behindDestination(s string) int {
	for at := 0; ; {
		n := strings.Index(s[at:], " > ")
		if n < 0 {
			return -1
		}
		at += n + len(" > ")
		if end := strings.IndexByte(s[at:], ' '); end > 1 && s[at+end-1] == ':' {
			return at + end + 1
		}
		at-- // the blank may begin the next one
	}
}

// endsPacket tells whether a text ends as a packet's last line does.
func endsPacket(s string) bool {
	if strings.HasSuffix(s, "]") || strings.HasSuffix(s, "unreachable") {
		return true
	}
	inside, parenthesis := strings.CutSuffix(s, ")")
	t := strings.TrimRight(inside, digits)
	switch {
	case len(t) == len(inside):
		return false
	case parenthesis:
		return strings.HasSuffix(t, "(")
	}
	return strings.HasSuffix(t, ", length ") || strings.HasSuffix(t, ", length: ") || strings.HasSuffix(t, "tcp ")
}

// flagsAlone tells whether a text ends behind flags, where a line may have been broken.
func flagsAlone(s string) bool {
	at := strings.LastIndex(s, "Flags [")
	return at >= 0 && strings.IndexByte(s[at:], ']') == len(s)-at-1
}

// flush ends the record at hand.
func (r *reader) flush() {
	c := r.cur
	r.cur = nil
	if c == nil {
		return
	}
	s := r.s
	s.Summary.Frames++
	frame := s.Summary.Frames
	if c.head.frame > 0 {
		frame = c.head.frame
	}
	for _, text := range append([]*string{&c.text}, pointers(c.inner)...) {
		if isCutNumber(*text) && !isWhole(*text) {
			*text += cutMark
		}
	}
	at := s.at(c.head)
	if !c.head.ip {
		s.Summary.Skipped[wire.SkipNotIP]++
		return
	}
	l, ok := parseLayer(c.text)
	if !ok || l.cut {
		s.Summary.Skipped[wire.SkipTooShort]++
		s.absent++
		return
	}
	base := wire.Packet{Frame: frame, Iface: at, Dir: c.head.dir, VLAN: c.head.vlan, SrcMAC: c.head.mac, WireLen: c.head.length, Time: wire.NoTime}
	l.inner = append(l.inner, c.inner...)
	for depth := range 8 {
		p := base
		p.Depth = uint8(depth)
		inner := l.inner
		if !s.emit(&p, &l, c.head.stamp) {
			s.Summary.Skipped[wire.SkipMalformed]++
			break
		}
		if p.Attr&wire.IsCarrier == 0 || len(inner) == 0 {
			break
		}
		l, ok = parseLayer(inner[0])
		if !ok {
			break
		}
		l.inner = append(l.inner, inner[1:]...)
	}
}

func pointers(list []string) (out []*string) {
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}

// at is the interface that a packet was seen at.
func (s *section) at(h head) uint32 {
	name := h.iface
	n, ok := s.ifaces[name]
	if !ok {
		const most = 4096
		if len(s.ifaces) >= most {
			return 0
		}
		n = uint32(len(s.Summary.Interfaces))
		s.ifaces[name] = n
		s.Summary.Interfaces = append(s.Summary.Interfaces, wire.Interface{Name: name, Loopback: name == "lo"})
	}
	s.Summary.Interfaces[n].Packets++
	if h.iface != "" || h.dir != wire.DirUnknown {
		s.onAny = true
	}
	return n
}

// emit completes a packet and keeps it. It is false where its addresses are none.
func (s *section) emit(p *wire.Packet, l *layer, st stamp) bool {
	from := *p
	*p = l.p
	p.Time, p.Frame, p.Iface, p.Dir, p.VLAN, p.SrcMAC, p.WireLen, p.Depth = from.Time, from.Frame, from.Iface, from.Dir, from.VLAN, from.SrcMAC, from.WireLen, from.Depth
	if !l.fill(p) {
		return false
	}
	if p.Tuple.Proto == wire.ProtoTCP && p.Has(wire.KnowTransport) && p.Attr&wire.IsError == 0 {
		s.numbers(p, l)
	}
	if p.Attr&wire.IsError != 0 {
		s.quote(p, l, st)
	} else if p.Depth == 0 || p.Attr&wire.IsCarrier == 0 {
		s.remember(p, st)
	}
	s.Packets = append(s.Packets, *p)
	s.stamps = append(s.stamps, st)
	return true
}

// fill turns the printed endpoints into addresses and ports.
func (l *layer) fill(p *wire.Packet) bool {
	src, dst := l.src, l.dst
	if p.Tuple.Proto.HasPorts() && !l.portless {
		sport, ok := portOf(src, p.Tuple.Proto)
		dport, ok2 := portOf(dst, p.Tuple.Proto)
		if !ok || !ok2 {
			return false // the name of a service that is not known
		}
		p.Tuple.SrcPortOrEchoID, p.Tuple.DstPortOrEchoID = sport, dport
		src, dst = hostOf(src), hostOf(dst)
	}
	if p.Tuple.Query != 0 {
		p.Tuple.DstPortOrEchoID = p.Tuple.SrcPortOrEchoID
	}
	var ok, ok2 bool
	p.Tuple.Src, ok = addressOf(src)
	p.Tuple.Dst, ok2 = addressOf(dst)
	return ok && ok2
}

// remark of the capture.
func (s *section) note(text string) {
	if !slices.Contains(s.Summary.Notes, text) {
		s.Summary.Notes = append(s.Summary.Notes, text)
	}
}

// gap notes why packets may be missing.
func (s *section) gap(why string) {
	if !slices.Contains(s.gaps, why) {
		s.gaps = append(s.gaps, why)
	}
}

// end completes the section.
func (r *reader) end() {
	s := r.s
	sum := &s.Summary
	if sum.Frames == 0 && len(s.counted) == 0 {
		return
	}
	c := clock{zone: r.opt.Zone, day: r.opt.Day}
	relative := s.measure(&c)
	for i := range s.Packets {
		p := &s.Packets[i]
		if i > 0 && p.Frame == s.Packets[i-1].Frame {
			p.Time = s.Packets[i-1].Time // what it carries
		} else {
			p.Time = c.time(s.stamps[i])
		}
		if p.Time == wire.NoTime {
			continue
		}
		if sum.First == wire.NoTime || p.Time < sum.First {
			sum.First = p.Time
		}
		if sum.Last == wire.NoTime || p.Time > sum.Last {
			sum.Last = p.Time
		}
	}
	sum.NoDate = !c.dated
	sum.Text = true
	switch {
	case sum.First == wire.NoTime:
		s.note("the text has no times: what came before what is known, and not how long after")
	case relative:
		s.note("the text's times count from its first packet: when that was is not known")
	case sum.NoDate:
		s.note("the text's times have no date" + map[bool]string{true: " and no zone: --date and --tz say them", false: ": --date says it"}[r.opt.Zone == nil])
	}
	sum.AllInterfaces = s.onAny
	sum.OwnNames = s.command && s.banner && !s.reading && !s.foreign
	if _, unnamed := s.ifaces[""]; s.onAny && len(s.ifaces) == 1 && unnamed {
		s.note("the text names no interfaces: at which of them a packet was seen is not known")
	}
	if named := slices.ContainsFunc(sum.Interfaces, func(i wire.Interface) bool { return i.Name != "" }); s.onAny && named && !sum.OwnNames {
		s.note("interface names are as printed: tcpdump -r prints those of the host that it runs on, which need not be the one that captured")
	}
	if n, ok := s.counted["captured"]; ok && n > sum.Frames {
		s.gap(fmt.Sprintf("tcpdump counts %d packets, and the text holds %d", n, sum.Frames))
	}
	if s.absent > 0 {
		s.gap(fmt.Sprintf("%d packets are cut before what tells what they are", s.absent))
	}
	kernel, hasKernel := s.counted["dropped by kernel"]
	device, hasDevice := s.counted["dropped by interface"]
	if hasKernel || hasDevice {
		sum.Dropped, sum.HasDropped = kernel+device, true
	}
	if r.opt.Log != "" {
		s.note(fmt.Sprintf("what a log put before each line (%q) was taken off", r.opt.Log))
		if len(s.gaps) == 0 && !sum.HasDropped { // tcpdump's counters, which would tell, are not in it
			s.gap("a log may hold less than tcpdump printed")
		}
	}
	if len(s.gaps) > 0 {
		sum.Excerpt = strings.Join(s.gaps, "; ")
		s.note("packets may be missing in the text: " + sum.Excerpt)
	}
	if len(sum.LinkTypes) == 0 {
		sum.LinkTypes = []uint32{}
	}
	if len(sum.Interfaces) == 1 && sum.Interfaces[0].Name == "" && s.device != "any" {
		sum.Interfaces[0].Name = s.device
	}
	for i := range sum.Interfaces {
		if len(sum.LinkTypes) > 0 {
			sum.Interfaces[i].LinkType = sum.LinkTypes[0]
		}
	}
	r.out = append(r.out, s.Capture)
}

// commandLine reads a prompt or script line: host, interface, filter, and the options that say how the text is to be read.
func (s *section) commandLine(line string) {
	s.command = true
	at := strings.LastIndex(line, "tcpdump")
	before, args := line[:at], line[at+len("tcpdump"):]
	if i := strings.Index(line, "tcpdump "); i >= 0 && strings.Contains(line[:i], "exec") { // "kubectl exec POD -- tcpdump"
		before, args = line[:i], line[i+len("tcpdump"):]
	}
	if m := promptHost.FindStringSubmatch(before); m != nil {
		s.Host = m[1]
	}
	w, piped := shellWords(args)
	if piped != "" {
		s.gap("the output went through " + piped)
	}
	s.names = true
	var filter []string
	takes := "iswWCGcrFEMyzTBZVmQ"
	for i := 0; i < len(w); i++ {
		a := w[i]
		if len(a) < 2 || a[0] != '-' || a[1] >= '0' && a[1] <= '9' { // getopt takes options behind the expression too
			filter = append(filter, a)
			continue
		}
		if strings.HasPrefix(a, "--") {
			key, value, has := strings.Cut(a, "=")
			if !has && i+1 < len(w) && (key == "--interface" || key == "--snapshot-length" || key == "--direction" || key == "--count") && key != "--count" {
				i++
				value = w[i]
			}
			switch key {
			case "--interface":
				s.device = value
			case "--snapshot-length":
				s.snap(value)
			case "--direction":
				s.gap("tcpdump kept the packets of one direction alone (--direction " + value + ")")
			}
			continue
		}
		for k := 1; k < len(a); k++ {
			switch c := a[k]; {
			case strings.IndexByte(takes, c) >= 0:
				value := a[k+1:]
				if value == "" && i+1 < len(w) {
					i++
					value = w[i]
				}
				switch c {
				case 'i':
					s.device = value
				case 's':
					s.snap(value)
				case 'r':
					s.reading = true
				case 'Q':
					s.gap("tcpdump kept the packets of one direction alone (-Q " + value + ")")
				}
				k = len(a)
			case c == 'S':
				s.hasSeq = true
			case c == 't':
				s.delta = max(s.delta, 0) + 1
			case c == 'n':
				s.names = false
			case c == 'q':
				s.quiet = true
			}
		}
	}
	if s.device == "any" {
		s.onAny = true
	}
	if piped == "" || strings.HasPrefix(piped, "tee") {
		s.Summary.Filter, s.Summary.HasFilter = strings.Join(filter, " "), true
	}
}

var promptHost = regexp.MustCompile(`@([A-Za-z0-9][\w.-]*)`)

func (s *section) snap(value string) {
	if n, err := strconv.ParseUint(value, 10, 32); err == nil && n > 0 {
		s.Summary.SnapLen = uint32(n)
	}
}

// shellWords parts a command's arguments as a shell does, as far as people type them here. piped is the command that the output
// goes to.
func shellWords(s string) (words []string, piped string) {
	var b strings.Builder
	quote, has := byte(0), false
	flush := func() {
		if has {
			words = append(words, b.String())
		}
		b.Reset()
		has = false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(c)
		case c == '\'' || c == '"':
			quote, has = c, true
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
			has = true
		case c == '|':
			flush()
			rest := strings.TrimSpace(s[i+1:])
			return words, path.Base(firstWord(strings.TrimLeft(rest, "| ")))
		case c == ';' || c == '&' || c == '#' && !has:
			flush()
			return words, ""
		case c == '>' || c == '<':
			flush()
			return words, ""
		case c == ' ' || c == '\t':
			flush()
		default:
			b.WriteByte(c)
			has = true
		}
	}
	flush()
	return words, ""
}

// bannerLine reads "listening on any, link-type LINUX_SLL2 (Linux cooked v2), snapshot length 262144 bytes".
func (s *section) bannerLine(m []string) {
	s.banner = true
	s.device = m[1]
	if m[1] == "any" || strings.HasPrefix(m[2], "LINUX_SLL") {
		s.onAny = true
	}
	s.linkType(m[2])
	if m[3] != "" {
		s.snap(m[3])
	}
}

// linkType notes a link type by pcap's name of it.
func (s *section) linkType(name string) {
	types := map[string]uint32{"EN10MB": 1, "RAW": 101, "LINUX_SLL": 113, "LINUX_SLL2": 276, "IEEE802_11": 105, "NULL": 0, "LOOP": 108, "IPV4": 228, "IPV6": 229, "PPP": 9}
	if n, ok := types[name]; ok {
		s.Summary.LinkTypes = []uint32{n}
	}
	if strings.HasPrefix(name, "LINUX_SLL") {
		s.onAny = true
	}
}
