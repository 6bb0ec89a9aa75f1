// Package filter compiles pcap-filter expressions (pcap-filter(7)) with libpcap and applies them to frames.
//
// A [Filter] satisfies capture.FrameFilter without knowing that package. It compiles its expression once for each link
// type that it meets. What libpcap cannot compile for is said as an error, never passed over: a filter that silently
// matches nothing would read as an absence of packets.
//
// The package needs cgo and libpcap's headers; built without cgo, Compile says so.
package filter

import "strings"

// linkWord returns the first word of an expression that looks below the network layer, or "". For a capture of the "any"
// device in its second format libpcap's Go binding cannot compile at all (its link types are one byte), so that
// expressions are compiled for raw IP: these words would then be refused, or, worse, be compiled to something else
// ("inbound" is taken to mean what the kernel says of a live packet).
func linkWord(expr string) string {
	for word := range strings.FieldsFuncSeq(expr, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}) {
		switch word {
		case "ether", "link", "fddi", "tr", "wlan", "vlan", "mpls", "pppoed", "pppoes", "inbound", "outbound", "ifindex", "gateway":
			return word
		}
	}
	return ""
}
