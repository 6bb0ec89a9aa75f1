// Package capture turns captured bytes into packet facts.
//
// In come pcap and pcapng files, plain or compressed with gzip or zstd, from a path or a stream; the format is told by
// content. Out come [wire.Packet] values in file order, and a [wire.Summary] of what the capture is and how whole it is.
// Link layers, IP, transports, ICMP errors with the packet that they quote, and tunnels are decoded by hand: the
// decoder allocates nothing, keeps nothing of a frame, and is checked against gopacket's layers, its slow twin.
//
// Every input is taken as hostile. Nothing is allocated because a length field says so: buffers grow as bytes arrive,
// up to 16 MiB a frame; nesting, interface tables and notes are bounded; a damaged record ends the reading with a
// [DamageError] after everything before it was delivered.
//
// Deliberately absent: any judgement of what the packets mean (analyze), pcap-filter expressions (capture/filter), live
// devices (capture/live), checksum validation (a sender's capture holds checksums that the card has yet to fill in), and
// reassembly of fragments and streams.
package capture
