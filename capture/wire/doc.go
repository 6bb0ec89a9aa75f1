// Package wire is the shared word list: the facts of one captured packet, the capture they came from, and the few
// enumerations that every other room speaks in.
//
// Values here are copies. Nothing in a Packet points into a capture buffer, so a Packet may be kept, sent to another
// goroutine or compared long after the buffer was reused. Every field says when it is valid; a fact that the capture
// does not carry is unknown (its Known bit is clear), never zero by accident.
//
// The package is a leaf: it imports the standard library only, does no I/O and knows no packet format. Formats are
// decoded in capture; conclusions are drawn in analyze.
package wire
