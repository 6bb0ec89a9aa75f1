package report

import "net/netip"

// Neighbour discovery, multicast listener reports, mDNS and the like are in every capture, never leave the link, and are
// never what a person looks for: text folds them into one line.

// betweenNeighbours names such requests, and how to see them.
const betweenNeighbours = "between neighbours (multicast, link-local): --all"

// neighbours is what was folded.
type neighbours struct {
	count  uint64
	source string // the source of all of them, "..." if they differ
}

// apart returns the record without the requests between neighbours, unless all is set, and what was left out. Where a
// person asked for some requests and got only such, they are what was asked for.
func apart(rec *Record, all bool) (*Record, neighbours) {
	var near neighbours
	if all {
		return rec, near
	}
	bySeverity := severities(rec)
	fold := func(r *Request) bool { return betweenTwoNeighbours(r) && severityOf(r, bySeverity) == 0 }
	for i := range rec.Requests {
		r := &rec.Requests[i]
		if !fold(r) {
			continue
		}
		switch {
		case near.count == 0:
			near.source = r.Source
		case near.source != r.Source:
			near.source = ellipsis
		}
		near.count += r.n()
	}
	if near.count == 0 || near.count == rec.total() && rec.Summary.LeftOut > 0 {
		return rec, neighbours{}
	}
	main := *rec
	main.Requests = make([]Request, 0, len(rec.Requests))
	for i := range rec.Requests {
		if !fold(&rec.Requests[i]) {
			main.Requests = append(main.Requests, rec.Requests[i])
		}
	}
	return &main, near
}

// betweenTwoNeighbours tells whether a request is to a multicast or broadcast address, or between addresses that no
// router forwards.
func betweenTwoNeighbours(r *Request) bool {
	server, err := netip.ParseAddr(r.Server.Addr)
	if err != nil {
		return false
	}
	if server.IsMulticast() || server == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return true
	}
	if !server.IsLinkLocalUnicast() {
		return false
	}
	client, err := netip.ParseAddr(r.Client.Addr)
	return err == nil && (client.IsLinkLocalUnicast() || client.IsUnspecified())
}

// cells returns the table's last line: source, dots, count, and words that reach over the columns behind. verdicts is
// how many columns the count ends. It returns nil where nothing was folded.
func (n neighbours) cells(verdicts int) []cell {
	if n.count == 0 {
		return nil
	}
	line := make([]cell, verdicts, verdicts+1)
	line[0].text, line[1].text = word(n.source), ellipsis
	line[verdicts-1] = cell{text: number(n.count), right: true}
	return append(line, cell{text: betweenNeighbours})
}
