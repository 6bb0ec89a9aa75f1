package report

import "strconv"

// icmpText returns an ICMP error's type and code in tcpdump's manner of speaking (RFC 792, RFC 1122, RFC 1812 section
// 5.2.7; RFC 4443 for ICMPv6).
func icmpText(v6 bool, typ, code uint8) string {
	if v6 {
		switch typ {
		case 1:
			return wordAt(unreachable6, code, "unreachable")
		case 2:
			return "packet too big"
		case 3:
			return wordAt([]string{"hop limit exceeded in transit", "fragment reassembly time exceeded"}, code, "time exceeded")
		case 4:
			return "parameter problem"
		}
		return "ICMPv6 type " + strconv.Itoa(int(typ)) + " code " + strconv.Itoa(int(code))
	}
	switch typ {
	case 3:
		return wordAt(unreachable4, code, "unreachable")
	case 4:
		return "source quench"
	case 5:
		return "redirect"
	case 11:
		return wordAt([]string{"time to live exceeded in transit", "fragment reassembly time exceeded"}, code, "time exceeded")
	case 12:
		return "parameter problem"
	}
	return "ICMP type " + strconv.Itoa(int(typ)) + " code " + strconv.Itoa(int(code))
}

var unreachable4 = []string{
	"net unreachable", "host unreachable", "protocol unreachable", "port unreachable", "fragmentation needed",
	"source route failed", "net unknown", "host unknown", "source host isolated", "net administratively prohibited",
	"host administratively prohibited", "net unreachable for this type of service",
	"host unreachable for this type of service", "administratively prohibited", "host precedence violation",
	"precedence cut off",
}

var unreachable6 = []string{
	"no route", "administratively prohibited", "beyond the scope of the source address", "address unreachable",
	"port unreachable", "source address failed policy", "reject route",
}

func wordAt(words []string, code uint8, what string) string {
	if int(code) < len(words) {
		return words[code]
	}
	return what + ", code " + strconv.Itoa(int(code))
}

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
