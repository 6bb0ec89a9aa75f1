package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/wire"
)

// factsOf resolves facts from flags as a person gives them.
func factsOf(t *testing.T, flags []string) *cluster.Facts {
	t.Helper()
	var f factFlags
	cmd := &cobra.Command{}
	f.add(cmd)
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	facts, err := f.resolve()
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// analyzeBytes analyses one capture held in memory.
func analyzeBytes(t *testing.T, pcap []byte, side wire.Side, facts *cluster.Facts) *analyze.Result {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(pcap), "capture", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := analyze.Run([]analyze.Input{{File: "capture", Side: side, Source: r}}, facts, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// agrees compares a request with what is wanted of it.
func (w labWant) agrees(r *analyze.Request) error {
	var bad []string
	if w.direction != "" && r.Way.String() != w.direction {
		bad = append(bad, fmt.Sprintf("direction %s, want %s", r.Way, w.direction))
	}
	if len(w.source) > 0 && !slices.Contains(w.source, r.Source.String()) {
		bad = append(bad, fmt.Sprintf("source %s, want %s", r.Source, strings.Join(w.source, " or ")))
	}
	if w.outcome != "" && r.Outcome.String() != w.outcome {
		bad = append(bad, fmt.Sprintf("outcome %s, want %s", r.Outcome, w.outcome))
	}
	if len(w.stoppedAt) > 0 && !slices.Contains(w.stoppedAt, r.StoppedAt.String()) {
		bad = append(bad, fmt.Sprintf("stopped_at %s, want %s", r.StoppedAt, strings.Join(w.stoppedAt, " or ")))
	}
	if w.completed != "" && fmt.Sprint(r.Completed) != w.completed {
		bad = append(bad, fmt.Sprintf("completed %v, want %s", r.Completed, w.completed))
	}
	if bad != nil {
		return fmt.Errorf("%s\n      reasons %q\n      unknown %+v", strings.Join(bad, "; "), r.Reasons, r.Unknown)
	}
	return nil
}

// TestIntegrationAnalyze analyses every capture of every situation that the lab makes with the real kernel translating.
func TestIntegrationAnalyze(t *testing.T) {
	results := labCaptures(t)
	checked := 0
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		for _, w := range r.want {
			if w.near != "" && w.far != "" {
				continue // a pair is compare's
			}
			file, side := w.near, wire.SideNear
			if w.far != "" {
				file, side = w.far, wire.SideFar
			}
			facts := factsOf(t, slices.Concat(r.facts, factFlagsOnly(w.flags)))
			res := analyzeBytes(t, r.captures[file].pcap, side, facts)
			checkWant(t, name+", "+file+".pcap", w, res)
			checked++
		}
	}
	t.Logf("%d verdicts checked in %d situations", checked, len(results))
}

// TestIntegrationCompare holds the node's capture against the far host's, in every situation.
func TestIntegrationCompare(t *testing.T) {
	results := labCaptures(t)
	checked := 0
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		for _, w := range r.want {
			if w.near == "" || w.far == "" {
				continue
			}
			facts := factsOf(t, slices.Concat(r.facts, factFlagsOnly(w.flags)))
			where := name + ", " + w.near + " and " + w.far
			near, far := r.captures[w.near].pcap, r.captures[w.far].pcap
			checkWant(t, where+", stated to have no far filter", w, comparePair(t, near, far, facts, analyze.PairOptions{}, true))
			if len(w.stoppedAt) > 0 {
				// Without that word the place is what it was, or unknown.
				w.stoppedAt = append(slices.Clone(w.stoppedAt), "unknown")
			}
			checkWant(t, where, w, comparePair(t, near, far, facts, analyze.PairOptions{}, false))
			checked++
		}
	}
	t.Logf("%d verdicts checked in %d situations", checked, len(results))
}

// comparePair analyses a near and a far capture held in memory; noFarFilter states that the far one was taken without a filter.
func comparePair(t *testing.T, near, far []byte, facts *cluster.Facts, opt analyze.PairOptions, noFarFilter bool) *analyze.Result {
	t.Helper()
	var inputs []analyze.Input
	for side, pcap := range map[wire.Side][]byte{wire.SideNear: near, wire.SideFar: far} {
		r, err := capture.NewReader(bytes.NewReader(pcap), side.String(), capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, analyze.Input{File: side.String(), Side: side, Source: r, HasStated: noFarFilter && side == wire.SideFar})
	}
	res, err := analyze.Run(inputs, facts, analyze.Options{Pair: opt})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// checkWant holds all requests that a verdict is about against it.
func checkWant(t *testing.T, where string, w labWant, res *analyze.Result) {
	t.Helper()
	sel, err := analyze.ParseSelector(w.request)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i := range res.Requests {
		if !sel.Match(&res.Requests[i]) {
			continue
		}
		found++
		if err := w.agrees(&res.Requests[i]); err != nil {
			t.Errorf("%s, %s: %v", where, res.Requests[i].Tuple, err)
		}
	}
	if found == 0 {
		t.Errorf("%s: no request %s", where, w.request)
	}
}

// factFlagsOnly leaves out flags that are not facts.
func factFlagsOnly(flags []string) []string {
	var out []string
	for i := 0; i+1 < len(flags); i += 2 {
		switch flags[i] {
		case "--pod-cidr", "--service-cidr", "--node-cidr", "--node-ip", "--cluster", "--links":
			out = append(out, flags[i], flags[i+1])
		}
	}
	return out
}

// classicFrames splits a pcap file (little-endian, as tcpdump writes it here) into its header and its records.
func classicFrames(t *testing.T, pcap []byte) (header []byte, records [][]byte) {
	t.Helper()
	if len(pcap) < 24 || binary.LittleEndian.Uint32(pcap) != 0xa1b2c3d4 {
		t.Fatalf("not a little-endian pcap file")
	}
	for at := 24; at < len(pcap); {
		n := int(binary.LittleEndian.Uint32(pcap[at+8:]))
		records = append(records, pcap[at:at+16+n])
		at += 16 + n
	}
	return pcap[:24], records
}

// cutRecord shortens a record to n captured bytes.
func cutRecord(record []byte, n int) []byte {
	if len(record) <= 16+n {
		return record
	}
	out := slices.Clone(record[:16+n])
	binary.LittleEndian.PutUint32(out[8:], uint32(n))
	return out
}

// variant is a capture that shows less than the whole one.
type variant struct {
	name string
	pcap []byte
}

// variants are what filters, short captures and short packets leave of a capture (SLL2 or Ethernet).
func variants(t *testing.T, pcap []byte, hosts []string) []variant {
	t.Helper()
	header, records := classicFrames(t, pcap)
	link := binary.LittleEndian.Uint32(header[20:])
	var out []variant
	keep := func(name string, want func(i int, frame []byte) bool) {
		file := slices.Clone(header)
		for i, r := range records {
			if want(i, r[16:]) {
				file = append(file, r...)
			}
		}
		out = append(out, variant{name, file})
	}
	for _, h := range hosts {
		addr := wire.MustAddr(h)
		needle := addr[:]
		if addr.Is4() {
			needle = addr[12:]
		}
		// The IP header's own addresses: what "host H" keeps.
		offset := 14
		if link == 276 {
			offset = 20
		}
		in := func(f []byte) bool {
			if len(f) < offset+20 {
				return false
			}
			ip := f[offset:]
			if ip[0]>>4 == 4 {
				return bytes.Equal(ip[12:16], needle) || bytes.Equal(ip[16:20], needle)
			}
			return ip[0]>>4 == 6 && len(ip) >= 40 && (bytes.Equal(ip[8:24], needle) || bytes.Equal(ip[24:40], needle))
		}
		src := func(f []byte) bool {
			ip := f[min(offset, len(f)):]
			if len(ip) < 40 {
				return false
			}
			if ip[0]>>4 == 4 {
				return bytes.Equal(ip[12:16], needle)
			}
			return ip[0]>>4 == 6 && bytes.Equal(ip[8:24], needle)
		}
		keep("only host "+h, func(_ int, f []byte) bool { return in(f) })
		keep("without host "+h, func(_ int, f []byte) bool { return !in(f) })
		dst := func(f []byte) bool { return in(f) && !src(f) }
		keep("only dst "+h, func(_ int, f []byte) bool { return dst(f) })
		keep("without dst "+h, func(_ int, f []byte) bool { return !dst(f) })
		keep("only src "+h, func(_ int, f []byte) bool { return src(f) })
		keep("without src "+h, func(_ int, f []byte) bool { return !src(f) })
	}
	if link == 276 {
		ifaces := map[uint32]bool{}
		for _, r := range records {
			ifaces[binary.BigEndian.Uint32(r[16+4:])] = true
		}
		for n := range ifaces {
			keep(fmt.Sprintf("only interface %d", n), func(_ int, f []byte) bool { return binary.BigEndian.Uint32(f[4:]) == n })
			keep(fmt.Sprintf("without interface %d", n), func(_ int, f []byte) bool { return binary.BigEndian.Uint32(f[4:]) != n })
		}
		keep("only in", func(_ int, f []byte) bool { return f[10] != 4 })
		keep("only out", func(_ int, f []byte) bool { return f[10] == 4 })
	}
	for n := 1; n < len(records); n++ {
		keep(fmt.Sprintf("the first %d frames", n), func(i int, _ []byte) bool { return i < n })
		keep(fmt.Sprintf("without the first %d frames", n), func(i int, _ []byte) bool { return i >= n })
	}
	for _, n := range []int{40, 54, 64, 96} {
		file := slices.Clone(header)
		binary.LittleEndian.PutUint32(file[16:], uint32(n))
		for _, r := range records {
			file = append(file, cutRecord(r, n)...)
		}
		out = append(out, variant{fmt.Sprintf("%d bytes a packet", n), file})
	}
	slices.SortFunc(out, func(a, b variant) int { return strings.Compare(a.name, b.name) })
	return out
}

// TestIntegrationMetamorphic shows less of every capture, and requires that source and stopped-at then are what the whole
// capture gives, or unknown: never a third value.
func TestIntegrationMetamorphic(t *testing.T) {
	results := labCaptures(t)
	runs, judged := 0, 0
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		facts := factsOf(t, r.facts)
		for _, file := range []string{"any", "all", "uplink", "inside"} {
			c, ok := r.captures[file]
			if !ok {
				continue
			}
			whole := analyzeBytes(t, c.pcap, wire.SideNear, facts)
			for _, v := range variants(t, c.pcap, []string{podIP, nodeIP, farIP, podIP6, nodeIP6, farIP6}) {
				runs++
				less := analyzeBytes(t, v.pcap, wire.SideNear, facts)
				for i := range less.Requests {
					if bad := contradicts(&less.Requests[i], whole); bad != "" {
						t.Errorf("%s, %s.pcap, %s: %s", name, file, v.name, bad)
					}
					judged++
				}
			}
		}
	}
	t.Logf("%d captures that show less, %d requests in them", runs, judged)
	if runs < 1000 {
		t.Errorf("%d variants: the lab gave too little", runs)
	}
}

// moved returns the capture with all its times moved.
func moved(t *testing.T, pcap []byte, by time.Duration) []byte {
	t.Helper()
	header, records := classicFrames(t, pcap)
	out := slices.Clone(header)
	for _, r := range records {
		r = slices.Clone(r)
		at := time.Unix(int64(binary.LittleEndian.Uint32(r)), int64(binary.LittleEndian.Uint32(r[4:]))*1000).Add(by)
		binary.LittleEndian.PutUint32(r, uint32(at.Unix()))
		binary.LittleEndian.PutUint32(r[4:], uint32(at.Nanosecond()/1000))
		out = append(out, r...)
	}
	return out
}

// TestIntegrationCompareMetamorphic shows less of one side of every pair, or moves its clock, and requires that source and
// stopped-at then are what the whole pair gives, or unknown: never a third value.
func TestIntegrationCompareMetamorphic(t *testing.T) {
	results := labCaptures(t)
	runs, known := 0, 0
	hosts := []string{podIP, nodeIP, farIP, podIP6, nodeIP6, farIP6}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		facts := factsOf(t, r.facts)
		near, far := r.captures["any"].pcap, r.captures["far"].pcap
		if near == nil || far == nil {
			continue
		}
		whole := comparePair(t, near, far, facts, analyze.PairOptions{}, true)
		check := func(what string, near, far []byte, stated bool) {
			runs++
			less := comparePair(t, near, far, facts, analyze.PairOptions{}, stated)
			for i := range less.Requests {
				if less.Requests[i].Way == analyze.WayLocal || r.want[0].direction == "local" {
					continue // between neighbours, or delivered on the node: not what a far side is asked about
				}
				if bad := contradicts(&less.Requests[i], whole); bad != "" {
					t.Errorf("%s, %s: %s", name, what, bad)
				}
				if less.Requests[i].StoppedAt != analyze.StopUnknown {
					known++
				}
			}
		}
		for _, v := range variants(t, near, hosts) {
			check("near "+v.name, v.pcap, far, true)
		}
		for _, v := range variants(t, far, hosts) {
			if strings.HasPrefix(v.name, "without src") || strings.HasPrefix(v.name, "without dst") {
				continue // a far side's silence could never be told from such a filter, which nobody writes
			}
			check("far "+v.name, near, v.pcap, false)
		}
		for _, by := range []time.Duration{400 * time.Millisecond, -400 * time.Millisecond, 37 * time.Second, 2 * time.Hour, -2 * time.Hour} {
			check("far clock moved by "+by.String(), near, moved(t, far, by), true)
			check("far clock moved by "+by.String()+", filter not stated", near, moved(t, far, by), false)
			check("near clock moved by "+by.String(), moved(t, near, by), far, true)
		}
		header, _ := classicFrames(t, far)
		check("empty far capture", near, header, true)
		check("the near capture twice", near, near, true)
		// Swapped, the far host's capture is the near one, whose requests the whole pair does not list.
		ofPod := slices.ContainsFunc(whole.Requests, func(r analyze.Request) bool {
			return r.Way == analyze.Outbound && r.Client.Role.Kind == cluster.RolePod
		})
		for _, r := range comparePair(t, far, near, facts, analyze.PairOptions{}, true).Requests {
			if !ofPod {
				break // only a Pod's own packets show which side is the node's
			}
			if r.Way != analyze.WayLocal && whole.Requests[0].Way != analyze.WayLocal && (r.Source != analyze.SourceUnknown || r.StoppedAt != analyze.StopUnknown) {
				t.Errorf("%s, the sides swapped: %s: %s, stopped at %s", name, r.Tuple, r.Source, r.StoppedAt)
			}
		}
	}
	t.Logf("%d pairs that show less, %d places known in them", runs, known)
	if runs < 1000 || known < 1000 {
		t.Errorf("the lab gave too little")
	}
}

// contradicts tells what a request of a lesser capture says that the whole capture denies. A request that is split in the
// lesser capture (the Pod's side and the egress apart) is held against the whole request that either belongs to.
func contradicts(r *analyze.Request, whole *analyze.Result) string {
	var partners []*analyze.Request
	for i := range whole.Requests {
		w := &whole.Requests[i]
		if slices.ContainsFunc(w.Legs, func(l analyze.Leg) bool { return l.Tuple == r.Tuple || l.Tuple == r.Tuple.Mirror() }) {
			partners = append(partners, w)
		}
	}
	if len(partners) == 0 {
		return fmt.Sprintf("%s is no request of the whole capture", r.Tuple)
	}
	source, stopped := r.Source == analyze.SourceUnknown, r.StoppedAt == analyze.StopUnknown
	var ofWhole []string
	for _, w := range partners {
		source = source || r.Source == w.Source
		stopped = stopped || r.StoppedAt == w.StoppedAt
		ofWhole = append(ofWhole, fmt.Sprintf("%s, stopped at %s", w.Source, w.StoppedAt))
	}
	if source && stopped {
		return ""
	}
	return fmt.Sprintf("%s: %s, %s, stopped at %s; the whole capture: %s\n      reasons %q", r.Tuple, r.Source, r.Outcome, r.StoppedAt,
		strings.Join(ofWhole, " / "), r.Reasons)
}
