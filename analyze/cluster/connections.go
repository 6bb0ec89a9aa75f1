package cluster

import "github.com/srcproof/srcproof/capture/wire"

// Connections is a node's connection table, or what was read of it. The zero value is empty; a nil one may be asked.
type Connections struct {
	byTuple map[wire.Tuple]tracked
	entries int
}

type tracked struct {
	wire.Connection
	several bool // more than one entry has this tuple: connections that followed each other
}

// maxConnections bounds the table: as many as a large node's kernel keeps (net.netfilter.nf_conntrack_max).
const maxConnections = 1 << 20

// Add takes an entry. It is found by each tuple that its requests have on the node: as they come in, with the destination
// translated, and as they leave.
func (c *Connections) Add(e wire.Connection) {
	if c.byTuple == nil {
		c.byTuple = make(map[wire.Tuple]tracked)
	}
	if c.entries >= maxConnections {
		return
	}
	c.entries++
	between := e.Orig
	between.Dst, between.DstPortOrEchoID = e.Reply.Src, e.Reply.SrcPortOrEchoID
	if e.Orig.Proto.IsICMP() {
		between.DstPortOrEchoID = e.Orig.DstPortOrEchoID // both hold the identifier, and it changes with the source
	}
	for _, t := range [3]wire.Tuple{e.Orig, between, e.Leaving()} {
		old, ok := c.byTuple[t]
		c.byTuple[t] = tracked{e, old.several || ok && old.Connection != e}
	}
}

// Len is how many entries were taken.
func (c *Connections) Len() int {
	if c == nil {
		return 0
	}
	return c.entries
}

// Of returns the entry whose requests have a tuple at some place on the node; ok is false if there is none, or more than one.
func (c *Connections) Of(t wire.Tuple) (e wire.Connection, ok bool) {
	if c == nil {
		return e, false
	}
	f, ok := c.byTuple[t]
	return f.Connection, ok && !f.several
}
