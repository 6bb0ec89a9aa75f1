package tcpdump

import (
	"strings"
	"time"

	"github.com/srcproof/srcproof/capture/wire"
)

// stampKind is the form of a time in the text.
type stampKind uint8

const (
	noStamp    stampKind = iota
	clockStamp           // 09:30:28.123456, of some day
	deltaStamp           // -ttt: since the packet before; -ttttt: since the first
	dateStamp            // 2026-11-30 09:30:28.123456
	epochStamp           // 1796031028.123456
)

// stamp is a time as it stands in the text.
type stamp struct {
	kind stampKind
	ns   int64 // of clock and delta since midnight or since another packet; of a date since 1970 as if it were UTC; of epoch since 1970
}

// readStamp reads the time that a line may begin with, and returns what stands behind it.
func readStamp(s string) (stamp, string, bool) {
	word, rest, _ := strings.Cut(s, " ")
	if len(word) < 6 || len(word) > 32 {
		return stamp{}, s, false
	}
	if len(word) == 10 && word[4] == '-' && word[7] == '-' {
		day, err := time.Parse(time.DateOnly, word)
		clock, behind, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
		ns, ok := clockOf(clock)
		if err != nil || !ok {
			return stamp{}, s, false
		}
		return stamp{dateStamp, day.UnixNano() + ns}, behind, true
	}
	if ns, ok := clockOf(word); ok {
		return stamp{clockStamp, ns}, rest, true
	}
	if ns, ok := epochOf(word); ok {
		return stamp{epochStamp, ns}, rest, true
	}
	return stamp{}, s, false
}

// clockOf reads HH:MM:SS.ffffff, with one digit of the hour if the first was cut off.
func clockOf(s string) (ns int64, ok bool) {
	var part [3]int64
	at, digits, n := 0, 0, int64(0)
	for i := 0; ; i++ {
		if i == len(s) || s[i] == '.' {
			if at != 2 || digits == 0 {
				return 0, false
			}
			part[2] = n
			if part[0] > 999 || part[1] > 59 || part[2] > 60 {
				return 0, false
			}
			frac, ok := fraction(s[i:])
			return ((part[0]*60+part[1])*60+part[2])*1e9 + frac, ok
		}
		switch c := s[i]; {
		case c >= '0' && c <= '9' && digits < 3:
			n = n*10 + int64(c-'0')
			digits++
		case c == ':' && digits > 0 && at < 2:
			part[at] = n
			at, n, digits = at+1, 0, 0
		default:
			return 0, false
		}
	}
}

// fraction reads ".123456", of up to nine digits, or nothing.
func fraction(s string) (ns int64, ok bool) {
	if s == "" {
		return 0, true
	}
	unit := int64(1e8)
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' || unit == 0 {
			return 0, false
		}
		ns += int64(s[i]-'0') * unit
		unit /= 10
	}
	return ns, len(s) > 1
}

// epochOf reads seconds since 1970 with a fraction.
func epochOf(s string) (ns int64, ok bool) {
	whole, frac, found := strings.Cut(s, ".")
	if !found || len(whole) < 1 || len(whole) > 10 || len(frac) != 6 && len(frac) != 9 {
		return 0, false
	}
	n := int64(0)
	for i := range len(whole) {
		if whole[i] < '0' || whole[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(whole[i]-'0')
	}
	f, ok := fraction("." + frac)
	return n*1e9 + f, ok
}

// clock turns the stamps of one section into times.
type clock struct {
	zone     *time.Location // nil is not known
	day      time.Time      // midnight of the first packet's day; zero is not known
	delta    bool           // stamps are -ttt's
	dated    bool           // times are since 1970
	begun    bool
	last     int64
	overflow int64 // days that have gone by since the first packet, in nanoseconds
	before   int64 // the stamp before
}

const dayNS = 24 * int64(time.Hour)

// time returns when a packet was seen: since 1970 if the date is known, else since the first day's midnight.
func (c *clock) time(s stamp) int64 {
	switch {
	case s.kind == noStamp:
		return wire.NoTime
	case s.kind == epochStamp:
		c.dated = true
		return s.ns
	case s.kind == dateStamp:
		if c.zone == nil {
			return s.ns
		}
		c.dated = true
		t := time.Unix(0, s.ns).UTC()
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), c.zone).UnixNano()
	case c.delta:
		if c.begun {
			c.last += s.ns
		}
		c.begun = true
		return c.last
	}
	// A clock that goes back by more than half a day has passed midnight.
	if c.begun && s.ns < c.before-dayNS/2 {
		c.overflow += dayNS
	}
	c.begun, c.before = true, s.ns
	ns := s.ns + c.overflow
	if c.day.IsZero() || c.zone == nil {
		return ns
	}
	c.dated = true
	return time.Date(c.day.Year(), c.day.Month(), c.day.Day(), 0, 0, 0, 0, c.zone).Add(time.Duration(ns)).UnixNano()
}

// measure finds out what a section's stamps count from, and tells whether they count from its first packet.
func (s *section) measure(c *clock) (relative bool) {
	blank, first, falls := s.blanks > 0 && s.blanks*2 >= s.Summary.Frames, int64(-1), false
	last := int64(-1)
	for _, st := range s.stamps {
		if st.kind != clockStamp {
			continue
		}
		if first < 0 {
			first = st.ns
		}
		falls = falls || last >= 0 && st.ns < last && last-st.ns < dayNS/2
		last = st.ns
	}
	switch {
	case first < 0:
		return false
	case s.delta == 3, s.delta < 0 && (blank || first == 0) && falls:
		c.delta, relative = true, true
	case s.delta == 5, s.delta < 0 && (blank || first == 0):
		relative = true
	}
	if relative {
		c.day = time.Time{}
	}
	return relative
}

// fallsBehind tells whether a time lies before another that stands before it in the text by more than packets of one run do, which come
// from several queues. A clock that begins a new day does not; times of the first hour may be ones that count from another packet.
func (s stamp) fallsBehind(last stamp) bool {
	const slack, hour = int64(time.Second), int64(time.Hour)
	if s.kind != last.kind || s.kind == noStamp || s.kind == deltaStamp || last.ns-s.ns <= slack {
		return false
	}
	return s.kind != clockStamp || last.ns > hour && last.ns-s.ns < 12*hour
}
