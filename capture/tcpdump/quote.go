package tcpdump

import (
	"github.com/srcproof/srcproof/capture/wire"
)

// recentFlow is a request that an ICMP error may be about.
type recentFlow struct {
	tuple wire.Tuple
	reply wire.Attr // wire.IsReply if its packets answer an ICMP query
	under bool      // the last packet of TCP opens nothing
	at    stamp
}

// maxRecent bounds how many requests between two hosts are remembered, and maxPairs of how many.
const (
	maxRecent = 16
	maxPairs  = 1 << 16
)

// remember keeps a packet, for errors about it.
func (s *section) remember(p *wire.Packet, at stamp) {
	k := [2]wire.Addr{p.Tuple.Src, p.Tuple.Dst}
	list := s.recent[k]
	f := recentFlow{p.Tuple, p.Attr & wire.IsReply, p.Tuple.Proto == wire.ProtoTCP && p.Flags&wire.SYN == 0, at}
	for i := range list {
		if list[i].tuple == f.tuple && list[i].reply == f.reply {
			list[i] = f
			return
		}
	}
	if list == nil && len(s.recent) >= maxPairs {
		return
	}
	if len(list) >= maxRecent {
		list = append(list[:0], list[1:]...)
	}
	s.recent[k] = append(list, f)
}

// quote finds what an ICMP error is about: the packet that it quotes, where -v prints it, or else the only request that it can mean.
func (s *section) quote(p *wire.Packet, l *layer, at stamp) {
	p.ErrorFrom, p.ErrorTo = p.Tuple.Src, p.Tuple.Dst
	p.IPID, p.Known = 0, p.Known&^wire.KnowIPID
	about := wire.Tuple{Src: p.ErrorTo}
	if len(l.inner) == 0 {
		p.Known &^= wire.KnowTransport // no number of the quoted packet is printed
	}
	if len(l.inner) > 0 {
		if q, ok := parseLayer(l.inner[0]); ok && q.fill(&q.p) {
			p.Tuple, p.Attr = q.p.Tuple, p.Attr|q.p.Attr&wire.IsReply
			if q.p.Has(wire.KnowIPID) {
				p.IPID, p.Known = q.p.IPID, p.Known|wire.KnowIPID
			}
			p.Flags = q.p.Flags
			if q.seq >= 0 && q.p.Flags&wire.SYN != 0 {
				p.Seq = uint32(q.seq)
			} else {
				p.Known &^= wire.KnowTransport // relative to a beginning that need not be the quoted packet's
			}
			return
		}
	}
	if a, ok := addressOf(l.about); ok && l.about != "" {
		about.Dst = a
	}
	p.Tuple = wire.Tuple{Src: about.Src, Dst: about.Dst, Proto: wire.ProtoNone}
	if !about.Dst.IsValid() || l.ipLength >= 0 { // with -v the quote is printed: it was cut off, and no guess takes its place
		return
	}
	var found []recentFlow
	for _, f := range s.recent[[2]wire.Addr{about.Src, about.Dst}] {
		if l.aboutProto != wire.ProtoNone && f.tuple.Proto != l.aboutProto || l.aboutPort >= 0 && int(f.tuple.DstPortOrEchoID) != l.aboutPort {
			continue
		}
		if f.under && p.MTU == 0 {
			continue // connections under way are seldom rejected: what was may be before the text begins
		}
		found = append(found, f)
	}
	if len(found) > 1 { // of several the one that was just sent, if it alone was
		const soon = int64(2e9)
		var near []recentFlow
		for _, f := range found {
			if f.at.kind != noStamp && f.at.kind == at.kind && at.ns >= f.at.ns && at.ns-f.at.ns <= soon {
				near = append(near, f)
			}
		}
		found = near
	}
	if len(found) == 1 {
		p.Tuple, p.Attr = found[0].tuple, p.Attr|found[0].reply
	}
}
