package report

import (
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, tc := range []struct {
		what         string
		in           string
		first, width int
		want         []string
	}{
		{"nothing is one empty line", "", 10, 10, []string{""}},
		{"it fits", "one two", 10, 10, []string{"one two"}},
		{"it breaks at the last blank that fits", "one two three", 8, 8, []string{"one two", "three"}},
		{"the first line may be shorter", "one two three", 4, 9, []string{"one", "two three"}},
		{"a first word that needs the whole line waits for it", "onetwo three", 4, 12, []string{"", "onetwo three"}},
		{"a long word is cut in the middle", "0123456789abcdef x", 10, 10, []string{"0123...def", "x"}},
		{"a number stays with its unit", "took about 4.1 s, then", 15, 15, []string{"took about", "4.1 s, then"}},
		{"two quantities may part", "after 2 h 13 min.", 10, 10, []string{"after 2 h", "13 min."}},
		{"wide characters take two columns", "日本 日本", 8, 8, []string{"日本", "日本"}},
	} {
		if got := wrap(tc.in, tc.first, tc.width); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q gives %q, want %q", tc.what, tc.in, got, tc.want)
		}
	}
	for _, line := range wrap(strings.Repeat("a b", 64<<10), 80, 80)[1:] {
		if columns(line) > 80 {
			t.Errorf("%d columns: %q", columns(line), line)
		}
	}
}

func TestCutMiddle(t *testing.T) {
	for _, tc := range []struct {
		in    string
		width int
		want  string
	}{
		{"abcdefghij", 10, "abcdefghij"},
		{"abcdefghijk", 10, "abcd...ijk"},
		{"日本語日本語", 12, "日本語日本語"},
		{"日本語日本語", 9, "日...語"},
		{"e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301", 5, "e\u0301...e\u0301"},
	} {
		got := cutMiddle(tc.in, tc.width)
		if got != tc.want {
			t.Errorf("%q in %d columns gives %q, want %q", tc.in, tc.width, got, tc.want)
		}
		if columns(got) > tc.width {
			t.Errorf("%q takes %d columns of %d", got, columns(got), tc.width)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{count(0, "request"), "0 requests"},
		{count(1, "request"), "1 request"},
		{count(2, "address"), "2 addresses"},
		{count(1000, "packet"), "1,000 packets"},
		{all(2, "request"), "both requests"},
		{all(1000, "request"), "all 1,000 requests"},
		{number(999), "999"},
		{number(1234567), "1,234,567"},
		{duration(0), "0 s"},
		{duration(52_000), "0.052 ms"},
		{duration(2_345_678), "2.3 ms"},
		{duration(419_000_000), "419 ms"},
		{duration(999_400_000), "999 ms"},
		{duration(999_600_000), "1.0 s"},
		{duration(5_096_000_000), "5.1 s"},
		{duration(61_000_000_000), "1 min 1 s"},
		{duration(4350_000_000_000), "1 h 12 min"},
		{duration(3 * 86400 * 1_000_000_000), "3 days 0 h"},
		{duration(-5_100_000_000), "-5.1 s"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

func TestSplitCommand(t *testing.T) {
	for _, tc := range []struct{ what, in, prose, command string }{
		{"two blanks in front are a command", "  ip route get 10.0.0.1", "", "ip route get 10.0.0.1"},
		{"a sentence is a sentence", "ask the owner of the router", "ask the owner of the router", ""},
		{"a sentence and a command", "capture on the node: tcpdump -ni any host 10.0.0.1", "capture on the node:", "tcpdump -ni any host 10.0.0.1"},
		{"two blanks behind a colon", "on the node:  anything at all", "on the node:", "anything at all"},
		{"a colon alone is no command", "two things: a route and a rule", "two things: a route and a rule", ""},
		{"a command without blanks in front", "srcproof compare --near a --far b", "", "srcproof compare --near a --far b"},
		{"a sentence that begins with the tool's name", "srcproof reads the file - twice.", "srcproof reads the file - twice.", ""},
	} {
		if p, c := splitCommand(tc.in); p != tc.prose || c != tc.command {
			t.Errorf("%s: %q gives %q and %q, want %q and %q", tc.what, tc.in, p, c, tc.prose, tc.command)
		}
	}
}
