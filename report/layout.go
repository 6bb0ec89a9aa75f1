package report

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// columns returns how many columns of a terminal s takes. s is escaped: it holds no control characters.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// runeColumns is 0 for marks that combine with the character before, 2 for what East Asian scripts draw wide (Unicode
// Annex 11, classes W and F, in blocks) and for pictures, else 1.
func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xa960 && r <= 0xa97f, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x16fe0 && r <= 0x18dff, r >= 0x1aff0 && r <= 0x1b2ff, r >= 0x1f000 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

const ellipsis = "..."

// cutEnd shortens s to at most width columns, keeping its beginning. Nothing of it is left if width is less than 4.
func cutEnd(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	if width <= len(ellipsis) {
		return ""
	}
	left := width - len(ellipsis)
	for i, r := range s {
		if left -= runeColumns(r); left < 0 {
			return s[:i] + ellipsis
		}
	}
	return s
}

// cutMiddle shortens s to at most width columns, keeping both ends: the end of a name often tells it from its
// neighbours. width is at least 5.
func cutMiddle(s string, width int) string {
	if len(s) <= width || columns(s) <= width {
		return s
	}
	room := width - len(ellipsis)
	head, tail := 0, len(s)
	for left := (room + 1) / 2; ; {
		r, n := utf8.DecodeRuneInString(s[head:])
		if left -= runeColumns(r); left < 0 {
			break
		}
		head += n
	}
	for left := room / 2; ; {
		r, n := utf8.DecodeLastRuneInString(s[:tail])
		if left -= runeColumns(r); left < 0 {
			break
		}
		tail -= n
	}
	for tail < len(s) { // a mark without the character that it belongs to would sit on the ellipsis
		r, n := utf8.DecodeRuneInString(s[tail:])
		if runeColumns(r) > 0 {
			break
		}
		tail += n
	}
	return s[:head] + ellipsis + s[tail:]
}

// blanks returns n blanks, none if n is negative.
func blanks(n int) string { return strings.Repeat(" ", max(n, 0)) }

// maxParagraph is the longest paragraph in columns; a name out of a file may be 64 KiB long.
const maxParagraph = 2000

// wrap breaks a paragraph at its blanks into lines of at most width columns, the first of them at most first. A number
// stays with its unit, and a word that is longer than a line is cut in the middle. It returns at least one line.
func wrap(s string, first, width int) []string {
	var lines []string
	var line strings.Builder
	used, room := 0, first
	words := strings.Fields(cutMiddle(s, maxParagraph))
	for i := 0; i < len(words); i++ {
		word := words[i]
		for i+1 < len(words) && isQuantity(word, words[i+1]) {
			i++
			word += " " + words[i]
		}
		n := columns(word)
		if used > 0 && used+1+n > room || used == 0 && n > room && room < width {
			lines = append(lines, line.String())
			line.Reset()
			used, room = 0, width
		}
		word = cutMiddle(word, room)
		if used > 0 {
			line.WriteByte(' ')
			used++
		}
		line.WriteString(word)
		used += columns(word)
	}
	return append(lines, line.String())
}

// isQuantity tells whether two words are a number and its unit.
func isQuantity(number, unit string) bool {
	if c := number[len(number)-1]; c < '0' || c > '9' {
		return false
	}
	switch strings.TrimRight(unit, ",.;:)") {
	case "s", "ms", "us", "ns", "min", "h", "days":
		return true
	}
	return false
}

// count returns a number with its noun, "1 request" or "1,204 requests".
func count(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + plural(noun)
}

// all returns "both requests" or "all 3 requests". n is at least 2.
func all(n uint64, noun string) string {
	if n == 2 {
		return "both " + plural(noun)
	}
	return "all " + count(n, noun)
}

func plural(noun string) string {
	switch stem, ok := strings.CutSuffix(noun, "y"); {
	case ok:
		return stem + "ies" // reply
	case strings.HasSuffix(noun, "s"):
		return noun + "es" // address
	}
	return noun + "s"
}

// number returns n with a comma between thousands.
func number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// duration returns nanoseconds in the unit that a person would take, with two or three digits.
func duration(ns int64) string {
	const second = 1e9
	f := float64(ns)
	switch {
	case ns < 0:
		return "-" + duration(-max(ns, -1<<62))
	case ns == 0:
		return "0 s"
	case f < 0.0995*1e6:
		return strconv.FormatFloat(f/1e6, 'g', 2, 64) + " ms"
	case f < 9.95*1e6:
		return strconv.FormatFloat(f/1e6, 'f', 1, 64) + " ms"
	case f < 0.9995*second:
		return strconv.FormatFloat(f/1e6, 'f', 0, 64) + " ms"
	case f < 59.95*second:
		return strconv.FormatFloat(f/second, 'f', 1, 64) + " s"
	}
	s := ns / second
	switch {
	case s < 3600:
		return strconv.FormatInt(s/60, 10) + " min " + strconv.FormatInt(s%60, 10) + " s"
	case s < 2*86400:
		return strconv.FormatInt(s/3600, 10) + " h " + strconv.FormatInt(s%3600/60, 10) + " min"
	}
	return strconv.FormatInt(s/86400, 10) + " days " + strconv.FormatInt(s%86400/3600, 10) + " h"
}
