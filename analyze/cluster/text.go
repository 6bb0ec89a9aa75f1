package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// maxNames and maxPhrases are how many names, and how many longer parts, a warning's sentence holds before it counts the
// rest.
const (
	maxNames   = 12
	maxPhrases = 4
)

// plain returns a name for a sentence: as it is where it consists of what names, paths and addresses consist of, quoted
// otherwise, so that a hostile name can neither act on a terminal nor pretend to be part of the sentence.
func plain(s string) string {
	if s == "" {
		return `""`
	}
	for i := range len(s) {
		c := s[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_./:@+=%", c) >= 0
		if !ok {
			return strconv.Quote(s)
		}
	}
	return s
}

// list joins what is fit for a sentence already, and counts the parts beyond maxPhrases.
func list(phrases []string) string { return join(phrases, maxPhrases) }

// plainList joins names as a file gives them, and counts those beyond maxNames.
func plainList(names []string) string {
	shown := slices.Clone(names[:min(len(names), maxNames)])
	for i := range shown {
		shown[i] = plain(shown[i])
	}
	return join(append(shown, names[len(shown):]...), maxNames)
}

func join(parts []string, most int) string {
	if n := len(parts) - most; n > 0 {
		return strings.Join(parts[:most], ", ") + " and " + strconv.Itoa(n) + " more"
	}
	return strings.Join(parts, ", ")
}

// count returns "1 node", "3 nodes".
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// utf8Text returns a file's text as UTF-8 without a byte order mark. Windows PowerShell 5 writes what is redirected into
// a file as UTF-16 with a mark.
func utf8Text(b []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return b[3:], nil
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return b, nil
	}
	b = b[2:]
	if len(b)%2 != 0 {
		return nil, errors.New("UTF-16 text of an odd number of bytes: the file was cut")
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return []byte(string(utf16.Decode(units))), nil
}

// lineAt returns the number of the line in which an offset lies; the first line is 1.
func lineAt(b []byte, off int64) int {
	return 1 + bytes.Count(b[:max(0, min(off, int64(len(b))))], []byte{'\n'})
}
