package report

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for _, tc := range []struct{ what, in, want string }{
		{"plain text stays", "eth0 10.20.0.10:80 ünïcödé 日本 ✓", "eth0 10.20.0.10:80 ünïcödé 日本 ✓"},
		{"nothing stays nothing", "", ""},
		{"ESC cannot begin a sequence", "a\x1b[31mb", `a\x1b[31mb`},
		{"a line break cannot begin a line", "a\r\nb", `a\x0d\x0ab`},
		{"a tab cannot move a column", "a\tb", `a\x09b`},
		{"BEL, NUL and DEL", "\x07\x00\x7f", `\x07\x00\x7f`},
		{"C1 in UTF-8 is CSI to some terminals", "a\u009b31mb\u0085", `a\u{9b}31mb\u{85}`},
		{"a lone C1 byte is not UTF-8", "a\x9b31m", `a\x9b31m`},
		{"bytes that are not UTF-8", "\xff\xc3(", `\xff\xc3(`},
		{"an encoded surrogate is not UTF-8", "\xed\xa0\x80", `\xed\xa0\x80`},
		{"bidirectional overrides and isolates", "\u202a\u202e\u2066\u2069", `\u{202a}\u{202e}\u{2066}\u{2069}`},
		{"marks of direction", "\u200e\u200f\u061c", `\u{200e}\u{200f}\u{61c}`},
		{"nothing of no width", "a\u200bb\u200d\ufeff\u2060\u00ad", `a\u{200b}b\u{200d}\u{feff}\u{2060}\u{ad}`},
		{"line and paragraph separators", "\u2028\u2029", `\u{2028}\u{2029}`},
		{"blanks that are not the space", "a\u00a0b\u3000", `a\u{a0}b\u{3000}`},
		{"letters that draw nothing", "\u3164\u115f\u034f\ufe0f\u2800", `\u{3164}\u{115f}\u{34f}\u{fe0f}\u{2800}`},
		{"tags", "\U000e0041", `\u{e0041}`},
		{"the replacement character prints", "\ufffd", "\ufffd"},
	} {
		if got := Escape(tc.in); got != tc.want {
			t.Errorf("%s: %q gives %s, want %s", tc.what, tc.in, got, tc.want)
		}
	}
}

func TestEscapeMarkdown(t *testing.T) {
	for _, tc := range []struct{ what, in, want string }{
		{"addresses and sentences stay as they are", "10.20.0.10:80 left at 09:30:28, ttl 63.", "10.20.0.10:80 left at 09:30:28, ttl 63."},
		{"IPv6 in brackets", "[2001:db8::1]:443", `\[2001:db8::1\]:443`},
		{"HTML", "<script>&amp;", `&lt;script&gt;&amp;amp;`},
		{"a table cell ends at a bar", "a|b", `a\|b`},
		{"emphasis, code, strike, image and link", "*a* _b_ `c` ~~d~~ ![e](f)", "\\*a\\* \\_b\\_ \\`c\\` \\~\\~d\\~\\~ \\!\\[e\\](f)"},
		{"a line break becomes text", "a\n# b", `a\\x0a# b`},
		{"a heading, a list, a rule begin a line", "# a", `\# a`},
		{"not inside one", "a # b - c + d", "a # b - c + d"},
		{"a numbered list", "1. a", `1\. a`},
		{"a numbered list of the other kind", "12) a", `12\) a`},
		{"a bullet", "- a", `\- a`},
		{"a backslash", `a\b`, `a\\b`},
		{"a bare link", "see https://x.test and www.x.test", "see https&#58;//x.test and www&#46;x.test"},
		{"a mention and an address", "@team a@b.test", "&#64;team a&#64;b.test"},
		{"escapes for the terminal are escaped again", "\x1b[31m", `\\x1b\[31m`},
		{"nothing stays nothing", "", ""},
	} {
		if got := EscapeMarkdown(tc.in); got != tc.want {
			t.Errorf("%s: %q gives %s, want %s", tc.what, tc.in, got, tc.want)
		}
	}
}

// FuzzEscape holds every writer's escaping to its promise: what comes out is UTF-8 that prints, on one line.
func FuzzEscape(f *testing.F) {
	f.Add(evil)
	f.Add("\xff\xfe\xed\xa0\x80\xf4\x90\x80\x80")
	f.Fuzz(func(t *testing.T, s string) {
		for name, got := range map[string]string{"text": Escape(s), "markdown": EscapeMarkdown(s), "json": string(appendString(nil, s))} {
			if !utf8.ValidString(got) {
				t.Errorf("%s: %q is not UTF-8", name, got)
			}
			if i := strings.IndexFunc(got, hidden); i >= 0 {
				t.Errorf("%s: %q has %q at byte %d", name, got, got[i:], i)
			}
		}
		if got := Escape(Escape(s)); got != Escape(s) {
			t.Errorf("escaping twice gives %q, once %q", got, Escape(s))
		}
		if got := EscapeMarkdown(s); strings.ContainsAny(got, "<>") {
			t.Errorf("markdown: %q holds HTML", got)
		}
	})
}
