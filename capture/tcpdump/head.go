package tcpdump

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// head is what stands on a packet's line before its network layer.
type head struct {
	frame  uint64 // with -#; 0 is not printed
	stamp  stamp
	blank  bool // a blank stands before the time, as -ttt and -ttttt print it since 4.99
	iface  string
	dir    wire.Direction
	vlan   uint32
	mac    [6]byte
	length uint32 // of the frame, with -e
	ip     bool
	other  bool // a packet that is not IP
	rest   string
}

// parseHead reads the beginning of a line; ok is false where no packet begins there.
func parseHead(line string) (h head, ok bool) {
	s := strings.TrimLeft(line, " \t")
	indent := len(line) - len(s)
	if len(s) < 4 {
		return h, false
	}
	// With -#, a number stands in front.
	if c := s[0]; c >= '0' && c <= '9' {
		if word, rest, found := strings.Cut(s, "  "); found && len(word) <= 12 {
			if n, err := strconv.ParseUint(word, 10, 64); err == nil {
				h.frame = n
				s = strings.TrimLeft(rest, " ")
			}
		}
	}
	if c := firstByte(s); c >= '0' && c <= '9' {
		if st, rest, found := readStamp(s); found {
			h.stamp = st
			h.blank = indent%2 == 1 && h.frame == 0
			s = strings.TrimLeft(rest, " ")
		}
	}
	timed := h.stamp.kind != noStamp
	if s == "" {
		return h, false
	}
	linked := false
	s, linked = h.link(s)
	if i := strings.Index(s, "ethertype IPv"); timed && !linked && i > 0 { // behind other link layers, as 802.11's
		s, linked = h.link(s[i:])
	}
	h.rest = s
	switch {
	case strings.HasPrefix(s, "IP "), strings.HasPrefix(s, "IP6 "):
		h.ip = true
	case linked && (strings.HasPrefix(s, "(") || strings.Contains(s, " > ")), linked && s == "":
		h.ip = true
	case isOtherLayer(s):
		h.other = true
	case timed && strings.Contains(s, " > ") && !strings.HasPrefix(s, "<"): // a line whose "IP" was lost
		if l, ok := parseLayer(s); ok && l.printed {
			h.ip = true
		}
	}
	if timed && !h.ip && !h.other && (s == "IP" || s == "IP6") {
		h.ip = true // cut behind the word
	}
	return h, h.ip || h.other
}

func firstByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

// link reads interface, direction and link-layer header, as far as they are printed, and returns what stands behind them. linked
// tells that a link-layer header was there, behind which no "IP" is printed.
func (h *head) link(s string) (rest string, linked bool) {
	if dir, behind, ok := cutDirection(s); ok {
		h.dir, s = dir, behind
	} else if name, behind, found := strings.Cut(s, " "); found && isInterface(name) {
		if dir, behind, ok := cutDirection(strings.TrimLeft(behind, " ")); ok {
			h.iface, h.dir, s = strings.Clone(name), dir, behind
		}
	}
	if behind, ok := strings.CutPrefix(s, "ifindex "); ok {
		_, s, _ = strings.Cut(behind, " ")
	}
	if word, behind, _ := strings.Cut(s, " "); isMAC(word) {
		h.mac = macOf(word)
		s = cutOUI(behind)
		if behind, ok := strings.CutPrefix(s, "> "); ok {
			word, behind, _ = strings.Cut(behind, " ")
			if isMAC(strings.TrimRight(word, ",")) || word == "Broadcast," {
				s = cutOUI(behind)
				s = strings.TrimLeft(s, ", ")
			}
		}
		linked = true
	}
	for {
		switch {
		case strings.HasPrefix(s, "IP6 (0x"), strings.HasPrefix(s, "IP (0x"): // PPP: "IP6 (0x0057), length 74: "
			_, behind, found := strings.Cut(s, "), ")
			if !found {
				return s, linked
			}
			s, linked = behind, true
			continue
		case strings.HasPrefix(s, "ethertype "):
			kind, behind := s[len("ethertype "):], ""
			end := strings.Index(kind, ", ")
			if end < 0 {
				return s, linked
			}
			kind, behind = kind[:end], kind[end+2:]
			if strings.HasPrefix(kind, "IP") || strings.HasPrefix(kind, "802.1Q") || strings.HasPrefix(kind, "Unknown") || strings.HasPrefix(kind, "802.1ad") {
				s, linked = behind, true
				continue
			}
			return kind + ", " + behind, false // ARP and others
		case strings.HasPrefix(s, "IPv4, "), strings.HasPrefix(s, "IPv6, "), strings.HasPrefix(s, "802.1Q, "): // -q -e
			s, linked = s[strings.Index(s, ", ")+2:], true
			continue
		case linked && strings.HasPrefix(s, "length "):
			word, behind, found := strings.Cut(s[len("length "):], ": ")
			if !found {
				if word = strings.TrimRight(s[len("length "):], ": "); strings.Trim(word, "0123456789") == "" { // the line ends here
					return "", true
				}
				return s, linked
			}
			if n, err := strconv.ParseUint(word, 10, 32); err == nil {
				h.length = uint32(n)
			}
			s = strings.TrimLeft(behind, " ")
			continue
		case strings.HasPrefix(s, "vlan "):
			word := firstWord(s[len("vlan "):])
			n, err := strconv.ParseUint(word, 10, 12)
			if err != nil {
				return s, linked
			}
			h.vlan = h.vlan<<12 | uint32(n)
			s = strings.TrimLeft(s[len("vlan ")+len(word):], ", ")
			linked = true
			continue
		case linked && (strings.HasPrefix(s, "p ") || strings.HasPrefix(s, "DEI, ")):
			if i := strings.Index(s, ", "); i >= 0 && i < 8 {
				s = s[i+2:]
				continue
			}
		}
		return s, linked
	}
}

// cutDirection reads the direction of cooked captures: "In", "Out", and of packets to others "B", "M", "P".
func cutDirection(s string) (d wire.Direction, rest string, ok bool) {
	word, rest, found := strings.Cut(s, " ")
	if !found {
		return 0, s, false
	}
	switch word {
	case "Out":
		d = wire.DirOut
	case "In", "B", "M", "P":
		d = wire.DirIn
	default:
		return 0, s, false
	}
	rest = strings.TrimLeft(rest, " ")
	return d, rest, true
}

// isInterface tells whether a word may be an interface's name (IFNAMSIZ is 16 in Linux, with the zero at the end).
func isInterface(s string) bool {
	return len(s) > 0 && len(s) < 16 && s != "IP" && s != "IP6" && s != "ARP," && s != "In" && s != "Out" && !strings.ContainsAny(s, ",()<>:") || strings.Contains(s, "@") && len(s) < 32
}

// isMAC tells whether a word is a link-layer address.
func isMAC(s string) bool {
	if len(s) != 17 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if i%3 == 2 {
			if c != ':' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

func macOf(s string) (m [6]byte) {
	b, err := hex.DecodeString(strings.ReplaceAll(s, ":", ""))
	if err == nil {
		copy(m[:], b)
	}
	return m
}

// cutOUI takes "(oui Unknown)" away, which stands behind an address with -e and without -n.
func cutOUI(s string) string {
	s = strings.TrimLeft(s, " ")
	if strings.HasPrefix(s, "(oui ") {
		if i := strings.IndexByte(s, ')'); i >= 0 {
			return strings.TrimLeft(s[i+1:], " ")
		}
	}
	return s
}

// behindEthernet returns what an Ethernet header carries.
func behindEthernet(s string) (string, bool) {
	var h head
	rest, linked := h.link(s)
	return rest, linked && rest != ""
}

// isOtherLayer tells the beginnings of packets that are not IP.
func isOtherLayer(s string) bool {
	for _, begin := range []string{
		"ARP,", "ARP ", "Request who-has ", "Reply ", "RARP", "LLDP", "STP ", "802.1d", "802.3", "EAPOL", "MPLS", "PPPoE", "IS-IS", "CDPv", "LACPv", "AoE", "Loopback", "Unknown ", "[|ether]",
		"IPX ", "AT ", "MACCTRL", "PROFINET", "wlan", "Slow Protocols", "HomePlug", "LLC,", "SNAP", "NCSI", "null ", "arp who-has", "arp reply",
	} {
		if strings.HasPrefix(s, begin) {
			return true
		}
	}
	return false
}

// addressOf is the address that is printed, or the one that stands for a name.
func addressOf(s string) (wire.Addr, bool) {
	if i := strings.IndexByte(s, '%'); i > 0 { // a zone
		s = s[:i]
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return wire.AddrFrom(a), true
	}
	if s == "" || strings.Trim(s, "0123456789.") == "" {
		return wire.Addr{}, false // an address that is cut
	}
	return wire.AddrOfName(s)
}
