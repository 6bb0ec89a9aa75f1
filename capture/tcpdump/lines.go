package tcpdump

import (
	"html"
	"regexp"
	"strings"
)

// What surrounds a line in mails, tickets and chats is taken away first: quoting, indentation of code blocks, escapes, entities.

// clean returns a line without what it was quoted with. It keeps the indentation that is left: tcpdump's own tells second lines.
func clean(line string) string {
	line = strings.TrimRight(line, "\r")
	if strings.IndexByte(line, 0x1b) >= 0 {
		line = terminal.ReplaceAllString(line, "")
	}
	if strings.ContainsAny(line, "\a\b\f") {
		line = obeyed(line)
	}
	line = strings.TrimPrefix(line, "\ufeff")
	if strings.Contains(line, "\u00a0") {
		line = strings.ReplaceAll(line, "\u00a0", " ")
	}
	for begin := strings.TrimLeft(line, " "); len(begin) > 0 && (begin[0] == '>' || begin[0] == '|'); begin = strings.TrimLeft(line, " ") {
		quote := begin[:1]
		if rest := begin[1:]; strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "  ") {
			line = rest[1:] // "> text"; two blanks more are the text's own
		} else {
			line = rest
		}
		if quote == "|" {
			line = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(line, " "), "|"), " ")
		}
	}
	if t := strings.TrimSpace(line); len(t) > 1 && t[0] == '`' && !strings.HasPrefix(t, "```") {
		line = strings.Trim(t, "`")
	}
	if strings.IndexByte(line, '&') >= 0 {
		line = html.UnescapeString(line)
		line = strings.ReplaceAll(line, "\u00a0", " ")
	}
	if strings.IndexByte(line, '\\') >= 0 {
		line = markdownEscape.ReplaceAllString(line, "$1")
	}
	if strings.Contains(line, "](") {
		line = markdownLink.ReplaceAllString(line, "$1")
	}
	if strings.Contains(line, "{code") || strings.Contains(line, "{noformat") {
		line = jiraMacro.ReplaceAllString(line, "")
	}
	return strings.TrimPrefix(line, "^C")
}

// obeyed is a line as a terminal leaves it: a bell shows nothing, a backspace goes back over what comes next.
func obeyed(line string) string {
	out := make([]byte, 0, len(line))
	for _, c := range []byte(line) {
		switch c {
		case '\a', '\f':
		case '\b':
			out = out[:max(len(out)-1, 0)]
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

var (
	// What a terminal obeys (ECMA-48 section 5.4), and the rest of sequences that begin otherwise.
	terminal = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?`)
	// A backslash in front of what Markdown would take for its own (CommonMark section 2.4), not in front of letters.
	markdownEscape = regexp.MustCompile("\\\\([\\[\\]<>_*.#|`~(){}+!-])")
	jiraMacro      = regexp.MustCompile(`\{(?:code|noformat)(?::[^{}]*)?\}`)
	markdownLink   = regexp.MustCompile(`\[([^\[\]()]+)\]\([^()\s]*\)`)

	hexLine     = regexp.MustCompile(`^\s*0x[0-9a-f]{4}:\s`)
	countLine   = regexp.MustCompile(`^(\d+) packets? (captured|received by filter|dropped by kernel|dropped by interface)\b`)
	bannerLine  = regexp.MustCompile(`^(?:tcpdump: )?listening on ([^\s,]+)(?:, link-type (\S+))?(?:.*?(?:capture size|snapshot length|snaplen) (\d+))?`)
	readingLine = regexp.MustCompile(`^(?:tcpdump: )?reading from file \S+, link-type (\S+)`)
	noteLine    = regexp.MustCompile(`^(?:tcpdump: (?:data link type|verbose output suppressed|WARNING|Warning|pcap_loop|.*: No such device)|dropped privs to |Warning: |warning: |Got \d+$|pktap, )`)
	labelLine   = regexp.MustCompile(`^(?:[#*_ ]*)(?:on (?:the )?)?([A-Za-z][\w.-]{0,60}):\**$`)
	// "On the far host:", "and node 2:", "=== far ===", "## far host", a prompt without a command: what people put over the next output.
	headingLine = regexp.MustCompile(`(?i)^(?:[#=*_ -]*(?:and |then |now )?(?:on|from|at|node|host|far|near|server|client)\b[\w .,'/()-]{0,60}:?[=*_ -]*|[#=*_-]{2,} *[\w .,:'/()-]{1,60}[#=*_ -]*|\[?[\w.-]+@[\w.-]+[ :~/\w.-]*\]?[#$>])$`)
	cutLine     = regexp.MustCompile(`^\s*(?:\.\.\.+|…|\[\.\.\.\]|\(\.\.\.\)|\[?(?:snip|cut|truncated|omitted)\]?|<snip>|-{2,} ?(?:snip|cut))\s*$`)
	// A prompt or a script line with the command.
	commandLine = regexp.MustCompile(`(?:^|[\s/;&|("'])tcpdump(?:\s+(?:-|'|"|[a-z(])|\s*$)`)
)

// looksLikeCommand tells whether a line calls tcpdump. What tcpdump itself says begins with its name and a colon.
func looksLikeCommand(line string) bool {
	return strings.Contains(line, "tcpdump") && !strings.HasPrefix(line, "tcpdump: ") && commandLine.MatchString(line) && !strings.HasPrefix(line, "dropped privs")
}
