package report

import "strconv"

// linkWord is a link type as a person who uses tcpdump names it (tcpdump.org/linktypes.html).
func linkWord(n uint32) string {
	switch n {
	case 0:
		return "NULL"
	case 1:
		return "Ethernet"
	case 9, 50, 51:
		return "PPP"
	case 12, 14, 101:
		return "raw IP"
	case 105:
		return "802.11"
	case 108:
		return "LOOP"
	case 113:
		return "SLL"
	case 127:
		return "802.11 radiotap"
	case 228:
		return "raw IPv4"
	case 229:
		return "raw IPv6"
	case 276:
		return "SLL2"
	}
	return "link type " + strconv.FormatUint(uint64(n), 10)
}
