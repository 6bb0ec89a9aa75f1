package report

import (
	"slices"
	"strconv"
)

// farClock is how a far capture's clock lies to the near one, in nanoseconds.
type farClock struct {
	offset, wrong int64
	steady        bool // no request that both sides saw contradicts it
}

// clocksOf returns the far clocks that are known, by capture. An offset holds for one stretch of time: where a clock was
// set in between, what was seen before contradicts it, and no time is to be told by it.
func clocksOf(rec *Record) map[int]*farClock {
	clocks := make(map[int]*farClock)
	for i := range rec.Captures {
		if c := &rec.Captures[i]; c.Side == "far" && c.ClockOffset != nil && c.ClockError != nil {
			clocks[i] = &farClock{offset: *c.ClockOffset, wrong: *c.ClockError, steady: true}
		}
	}
	if len(clocks) == 0 {
		return clocks
	}
	// Captures stamp a packet at different places in the kernel.
	const tolerance = 50_000
	rec.sample(func(r *Request) {
		for _, capture := range farCaptures(r) {
			c := clocks[capture]
			if c == nil || !c.steady {
				continue
			}
			// A delay is never negative: seen far, a request is not before it was seen near, nor an answer behind it.
			if ns, ok := firstApart(rec, r, capture, openingOf(r)); ok && ns < c.offset-c.wrong-tolerance {
				c.steady = false
			}
			if ns, ok := firstApart(rec, r, capture, answerOf(r)); ok && ns > c.offset+c.wrong+tolerance {
				c.steady = false
			}
		}
	})
	return clocks
}

// clockLines says of each far capture how its clock lies to the near one, or why that is not known.
func clockLines(rec *Record) []string {
	joined := make(map[int]bool)
	for i := range rec.Requests {
		for _, c := range farCaptures(&rec.Requests[i]) {
			joined[c] = joined[c] || slices.ContainsFunc(rec.Requests[i].Join, func(j Join) bool { return j.To == "far" })
		}
	}
	type line struct{ name, words string }
	var lines []line
	undated := slices.ContainsFunc(rec.Captures, func(c Capture) bool { return c.Side == "near" && c.Window.Clock != nil })
	for i := range rec.Captures {
		c := &rec.Captures[i]
		if c.Side != "far" {
			continue
		}
		var words string
		switch {
		case c.ClockPairs != nil && (undated || c.Window.Clock != nil):
			words = "is compared through " + count(*c.ClockPairs, "packet") + " that both sides hold: without a date its times say no more"
		case c.ClockOffset != nil && c.ClockError != nil:
			words = clockWords(c)
		case joined[i] && c.Window.Basis == "none":
			words = "not known: its packets have no times"
		case joined[i]:
			words = "not known: the packets that both sides hold bound it on one side only"
		default:
			continue
		}
		if l := (line{captureName(c, maxName), words}); !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return []string{"not known: no packet was found on both sides"}
	}
	// Files of one capture share a clock.
	if !slices.ContainsFunc(lines, func(l line) bool { return l.words != lines[0].words }) {
		lines = []line{{"far", lines[0].words}}
	}
	var out []string
	for _, l := range lines {
		out = append(out, l.name+" "+l.words)
	}
	return out
}

// clockWords is "is 37.0021 s ahead of near, +-0.4 ms (12 packets, both directions)".
func clockWords(c *Capture) string {
	offset, wrong := *c.ClockOffset, *c.ClockError
	how := " (stated: --far-clock-offset)"
	if !c.ClockStated {
		how = " (both directions)"
		if c.ClockPairs != nil {
			how = " (" + count(*c.ClockPairs, "packet") + ", both directions)"
		}
	}
	size := max(offset, -max(offset, -1<<62))
	if size <= wrong && !c.ClockStated {
		return "agrees with near within " + duration(sum(size, wrong)) + how
	}
	side := " ahead of near, +-"
	if offset < 0 {
		side = " behind near, +-"
	}
	return "is " + seconds(size, wrong) + side + duration(wrong) + how
}

// sum adds without running over.
func sum(a, b int64) int64 {
	if b > 1<<62-min(a, 1<<62) {
		return 1 << 62
	}
	return a + b
}

// seconds writes a time with as many digits as its error leaves meaning.
func seconds(ns, wrong int64) string {
	if ns < 1e9 {
		return duration(ns)
	}
	digits := 1
	for limit := int64(1e8); limit > wrong && digits < 6; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(float64(ns)/1e9, 'f', digits, 64) + " s"
}
