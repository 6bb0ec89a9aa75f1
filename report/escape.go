package report

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns s as it may be written to a terminal or a log: whatever does not print as itself is spelled out,
// a byte as \xNN and any other character as \u{N}. That is all of C0 (line breaks and tabs too), DEL, C1, the
// bidirectional controls, everything of no width, every kind of blank but the space, and bytes that are not UTF-8. A
// backslash stays as it is: the result is for the eye and cannot be turned back.
//
// It is an allow-list: a character that Unicode will add tomorrow is spelled out until Go knows that it prints.
func Escape(s string) string {
	i := firstHidden(s)
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1, hidden(r) && r < utf8.RuneSelf:
			b.WriteString(`\x`)
			b.WriteByte(hexDigits[s[i]>>4])
			b.WriteByte(hexDigits[s[i]&15])
		case hidden(r):
			b.WriteString(`\u{`)
			b.WriteString(strconv.FormatInt(int64(r), 16))
			b.WriteByte('}')
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

const hexDigits = "0123456789abcdef"

// firstHidden returns the index of the first byte that begins something to be spelled out, -1 if there is none.
func firstHidden(s string) int {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || hidden(r) {
			return i
		}
		i += n
	}
	return -1
}

// hidden tells whether a character does not print as itself, so that a reader could not see it, or could be made to see
// something else.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	// Of what Unicode counts as letters, marks and symbols, these draw nothing: variation selectors, fillers and joiners
	// (Default_Ignorable_Code_Point), and the empty Braille pattern.
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == 0x2800
}

// EscapeMarkdown returns s as plain text inside a Markdown paragraph or table cell (CommonMark 0.31, GitHub's tables):
// nothing in it begins markup, HTML, an autolink or a new cell, and it stays on its line. Addresses, dates and ordinary
// sentences come out unchanged, since a person also reads the source.
func EscapeMarkdown(s string) string {
	s = Escape(s)
	if !strings.ContainsAny(s, "\\`*_{}[]<>#+-=!|~&:.)@") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	digits := 0 // digits that s begins with: "1." and "1)" begin a list
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '<':
			b.WriteString("&lt;")
			continue
		case '>':
			b.WriteString("&gt;")
			continue
		case '&':
			b.WriteString("&amp;")
			continue
		case '\\', '`', '*', '_', '[', ']', '|', '~', '!', '{', '}':
			b.WriteByte('\\')
		case '#', '+', '-', '=':
			// Headings, lists and underlines begin a line; nothing of the kind begins inside one.
			if strings.Trim(s[:i], " ") == "" {
				b.WriteByte('\\')
			}
		case '.', ')':
			// "1. " begins a list, "10.20.0.10" does not.
			if digits > 0 && i == digits && (i+1 == len(s) || s[i+1] == ' ') {
				b.WriteByte('\\')
			}
			// GitHub links a bare "www." (extended autolinks).
			if c == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www") {
				b.WriteString("&#46;")
				continue
			}
		case ':':
			// GitHub links a bare "http://" and "mailto:".
			if strings.HasPrefix(s[i:], "://") || i >= 6 && strings.EqualFold(s[i-6:i], "mailto") || i >= 4 && strings.EqualFold(s[i-4:i], "xmpp") {
				b.WriteString("&#58;")
				continue
			}
		case '@':
			// GitHub links a bare address and mentions a bare @name.
			b.WriteString("&#64;")
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
