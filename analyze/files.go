package analyze

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// Several files may be one capture: files of one label, and files that follow one another in time and are named like a
// rotation (tcpdump -C, -G and -W number or date them). They are read into one flow table in order of time, so that a
// connection goes on across their border; the gaps between them are listed, and no absence is concluded in one.

// file is one input while it is read.
type file struct {
	in     *Input
	number int // index into Result.Captures
	ahead  []wire.Packet
	at     int      // the next of ahead
	err    error    // what Read returned with the packets ahead
	damage string   // the error's text where the file is damaged
	first  int64    // time of the first packet
	ifaces []uint32 // this file's interface index -> the capture's; nil where the file is alone
	// full are the batches that were read meanwhile, spare those that are used up; nil where the file is read when it is asked.
	full, spare chan batch
	used        []batch // to be given back
}

// batch is what one Read gave.
type batch struct {
	packets []wire.Packet
	err     error
}

// batchesAhead is how many batches are read ahead at most. The reader is the faster of the two, and waits; it is woken for half of them at
// once. (2026-12-01: woken for each, analyze took 1 to 6 % more.)
const batchesAhead = 8

// readAhead has another goroutine read the next batches while one is taken into the table. The source's Summary must not be asked before
// its end.
func (f *file) readAhead() {
	if f.err != nil || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	f.full, f.spare = make(chan batch, batchesAhead), make(chan batch, batchesAhead)
	for range batchesAhead {
		f.spare <- batch{packets: make([]wire.Packet, cap(f.ahead))}
	}
	go func() {
		failed := false
		for b := range f.spare {
			var n int
			n, b.err = f.in.Source.Read(b.packets[:cap(b.packets)])
			b.packets = b.packets[:n]
			f.full <- b
			if errors.Is(b.err, io.EOF) || b.err != nil && failed {
				return
			}
			failed = failed || b.err != nil
		}
	}()
}

// next is the next batch of the file, in the place of the one that was ahead.
func (f *file) next() {
	f.at = 0
	if f.full == nil {
		var n int
		n, f.err = f.in.Source.Read(f.ahead[:cap(f.ahead)])
		f.ahead = f.ahead[:n]
		return
	}
	f.used = append(f.used, batch{packets: f.ahead})
	b := <-f.full
	f.ahead, f.err = b.packets, b.err
	if len(f.used) == batchesAhead/2 {
		for _, b := range f.used {
			f.spare <- b
		}
		f.used = f.used[:0]
	}
}

// fileGroup is the files of one capture, in order of time.
type fileGroup struct{ files []*file }

// frameBits is how much of a frame reference holds the frame number; the file's number is above it.
const frameBits = 48

func splitFrame(ref uint64) (capture int, frame uint64) {
	return int(ref >> frameBits), ref & (1<<frameBits - 1)
}

func (g *fileGroup) numbers() []int {
	out := make([]int, len(g.files))
	for i, f := range g.files {
		out[i] = f.number
	}
	return out
}

func (g *fileGroup) connections() *cluster.Connections {
	if in := g.files[0].in; in.Side == wire.SideNear {
		return in.Connections
	}
	return nil
}

// grouped looks at the beginning of each input and sorts the inputs into captures.
func grouped(inputs []Input, opt Options) []*fileGroup {
	files := make([]*file, len(inputs))
	for i := range inputs {
		f := &file{in: &inputs[i], number: i, first: wire.NoTime}
		f.ahead = make([]wire.Packet, batchSize(opt))
		n, err := f.in.Source.Read(f.ahead)
		f.ahead, f.err = f.ahead[:n], err
		for j := range f.ahead {
			if f.ahead[j].Time != wire.NoTime {
				f.first = f.ahead[j].Time
				break
			}
		}
		files[i] = f
	}
	var groups []*fileGroup
	for _, f := range files {
		at := slices.IndexFunc(groups, func(g *fileGroup) bool { return g.files[0].belongs(f) })
		if at < 0 {
			groups = append(groups, &fileGroup{})
			at = len(groups) - 1
		}
		groups[at].files = append(groups[at].files, f)
	}
	for _, g := range groups {
		slices.SortStableFunc(g.files, func(a, b *file) int { return cmp.Compare(a.first, b.first) })
	}
	return groups
}

func batchSize(opt Options) int { return max(cmp.Or(opt.Batch, 512), 8) }

// belongs tells whether two files are parts of one capture: the same label says so; without labels, the same folder and
// names that differ in digits only. (Whether they overlap in time shows only when they were read: see read.)
func (f *file) belongs(g *file) bool {
	if f.in.Side != g.in.Side {
		return false
	}
	if f.in.Label != "" || g.in.Label != "" {
		return f.in.Label == g.in.Label
	}
	return path.Dir(f.in.File) == path.Dir(g.in.File) && stem(f.in.File) == stem(g.in.File) && f.in.File != "-" && f.in.File != g.in.File &&
		f.first != wire.NoTime && g.first != wire.NoTime && f.first != g.first
}

// stem is a file's name without its digits, and without what tcpdump -C appends to it.
func stem(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, path.Base(name))
}

// read reads the files of a capture into one flow table, in order of time, and fills in what is known of each file. Files
// that turn out not to follow on the ones before are given back: they are another capture.
func (g *fileGroup) read(captures []CaptureInfo, facts *cluster.Facts, opt Options, alone bool) (*table, *summary, *fileGroup) {
	t := newTable(opt.MaxFlows)
	t.alone = alone
	sum := &summary{}
	several := len(g.files) > 1
	if !several {
		g.files[0].readAhead()
	}
	var rest *fileGroup
	if g.files[0].in.Label != "" && several {
		merge(g.files, func(f *file, p *wire.Packet) { f.take(p, t, sum, several) })
	} else {
		for i, f := range g.files {
			if i > 0 && (f.first < t.lastTime || f.first-t.lastTime > rotationGap) {
				rest = &fileGroup{files: g.files[i:]}
				g.files = g.files[:i]
				break
			}
			merge(g.files[i:i+1], func(f *file, p *wire.Packet) { f.take(p, t, sum, several) })
		}
	}
	for i, f := range g.files {
		s := f.in.Source.Summary()
		captures[f.number] = CaptureInfo{
			File: f.in.File, Label: f.in.Label, SHA256: f.in.SHA256, Side: f.in.Side, Summary: s, DamageText: f.damage, Notes: slices.Clone(s.Notes),
			StatedFilter: f.in.StatedFilter, HasStated: f.in.HasStated, InterfaceNames: interfaceNames(s.Interfaces, facts, f.in.Side),
		}
		sum.add(&s, f.damage != "", i == 0)
		if !several {
			sum.Interfaces = s.Interfaces
		}
	}
	first := &captures[g.files[0].number]
	first.LetGo = t.letGo
	first.Notes = append(first.Notes, notes(t)...)
	if len(g.files) > 1 {
		first.Notes = append(first.Notes, fmt.Sprintf("read as one capture of %d files", len(g.files)))
	}
	for _, gap := range sum.gaps {
		first.Notes = append(first.Notes, fmt.Sprintf("nothing was captured for %s between two of its files", seconds(gap[1]-gap[0])))
	}
	return t, sum, rest
}

// rotationGap is how far apart in time the files of a rotation may be, in nanoseconds: the next file begins with the next
// packet, however long that takes to come, but after a minute without one it may as well be another capture.
const rotationGap = 60_000_000_000

// take puts one packet into the flow table.
func (f *file) take(p *wire.Packet, t *table, sum *summary, several bool) {
	p.Frame |= uint64(f.number) << frameBits
	if several {
		p.Iface = f.interfaceOf(p.Iface, sum)
	}
	t.add(p)
}

// merge walks the packets of files in order of time, each file's own in the order they have there.
func merge(files []*file, visit func(*file, *wire.Packet)) {
	open := slices.Clone(files)
	for len(open) > 0 {
		next := open[0]
		for _, f := range open[1:] {
			if f.fill() && (!next.fill() || f.ahead[f.at].Time < next.ahead[next.at].Time) {
				next = f
			}
		}
		if !next.fill() {
			open = slices.DeleteFunc(open, func(f *file) bool { return f == next })
			continue
		}
		visit(next, &next.ahead[next.at])
		next.at++
		if len(open) == 1 {
			for ; next.at < len(next.ahead); next.at++ {
				visit(next, &next.ahead[next.at])
			}
		}
	}
}

// fill sees to it that a packet is ahead; it tells whether there is one.
func (f *file) fill() bool {
	for f.at >= len(f.ahead) {
		switch {
		case errors.Is(f.err, io.EOF):
			return false
		case f.err != nil && f.damage != "":
			return false // a source that goes on failing
		case f.err != nil:
			f.damage = f.err.Error() // the source says io.EOF next
		}
		f.next()
	}
	return true
}

// interfaceOf returns the capture's index of a file's interface: one with the same name, index and link type is the same.
func (f *file) interfaceOf(n uint32, sum *summary) uint32 {
	for int(n) >= len(f.ifaces) {
		all := f.in.Source.Summary().Interfaces
		if len(f.ifaces) >= len(all) {
			return n
		}
		mine := all[len(f.ifaces)]
		at := slices.IndexFunc(sum.Interfaces, func(i wire.Interface) bool {
			return i.Name == mine.Name && i.HasIndex == mine.HasIndex && i.Index == mine.Index && i.LinkType == mine.LinkType
		})
		if at < 0 {
			at = len(sum.Interfaces)
			sum.Interfaces = append(sum.Interfaces, mine)
		}
		f.ifaces = append(f.ifaces, uint32(at))
	}
	return f.ifaces[n]
}

// summary is what is known of a whole capture, whatever the number of its files.
type summary struct {
	wire.Summary
	damaged bool
	gaps    [][2]int64 // between files, in order of time: end of one, beginning of the next
}

// fileGap is the silence between two files from which on it is a gap that is listed, in nanoseconds.
const fileGap = 1_000_000_000

// add adds the next file in order of time.
func (s *summary) add(f *wire.Summary, damaged, isFirst bool) {
	s.damaged = s.damaged || damaged || !f.Complete
	if isFirst {
		ifaces := s.Interfaces // of this file, as far as packets named them
		s.Summary = *f
		s.Interfaces = ifaces
		return
	}
	s.Complete = s.Complete && f.Complete
	s.AllInterfaces = s.AllInterfaces && f.AllInterfaces
	s.HasFilter = s.HasFilter && f.HasFilter && s.Filter == f.Filter
	s.HasDropped = s.HasDropped && f.HasDropped
	s.NoDate = s.NoDate || f.NoDate
	s.Excerpt = cmp.Or(s.Excerpt, f.Excerpt)
	s.Dropped += f.Dropped
	s.CutFrames += f.CutFrames
	s.Frames += f.Frames
	s.Bytes += f.Bytes
	for i := range s.Skipped {
		s.Skipped[i] += f.Skipped[i]
	}
	from, until, recorded := s.Window()
	next, end, also := f.Window()
	if until != wire.NoTime && next != wire.NoTime && next-until > fileGap {
		s.gaps = append(s.gaps, [2]int64{until, next})
	}
	s.HasWindow = recorded && also
	s.From, s.Until = min(from, next), max(until, end)
	if f.First != wire.NoTime && (s.First == wire.NoTime || f.First < s.First) {
		s.First = f.First
	}
	s.Last = max(s.Last, f.Last)
}

// inGap tells whether a moment lies between two files, where nothing was captured.
func (s *summary) inGap(from, to int64) bool {
	return slices.ContainsFunc(s.gaps, func(g [2]int64) bool { return from < g[1] && to > g[0] })
}

// interfaceNames gives each interface the name to show.
func interfaceNames(ifaces []wire.Interface, facts *cluster.Facts, side wire.Side) []string {
	out := make([]string, len(ifaces))
	for i := range ifaces {
		f := &ifaces[i]
		if f.HasIndex && side == wire.SideNear { // --links are the node's
			if l, ok := facts.Link(f.Index); ok {
				out[i] = l.Name
				continue
			}
		}
		switch {
		case f.Name != "":
			out[i] = f.Name
		case f.HasIndex:
			out[i] = "if" + itoa(uint64(f.Index))
		}
	}
	return out
}
