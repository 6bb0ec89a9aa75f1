// Package live captures packets on this host's interfaces and writes them to pcapng files.
//
// A [Capture] reads from a packet socket over a memory-mapped ring (packet(7), TPACKET_V3), because libpcap's device "any"
// loses through its Go binding which interface a packet passed and in which direction: here both are the kernel's own words,
// per packet. On "any" frames are given as LINKTYPE_LINUX_SLL2, on one Ethernet device as Ethernet, on a device without a
// link header (tun, WireGuard) as raw IP. Filters are pcap-filter expressions that libpcap compiles and the kernel applies.
//
// A [Writer] writes what was captured as pcapng (draft-ietf-opsawg-pcapng), so that tcpdump, Wireshark and this tool read it:
// on "any" with one interface block for each interface, all of one link type and snap length, as tcpdump stops at a second one.
//
// The package is for Linux; on other systems Open says so. Without cgo it captures, but cannot compile a filter.
package live
