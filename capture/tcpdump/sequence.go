package tcpdump

import (
	"hash/fnv"

	"github.com/srcproof/srcproof/capture/wire"
)

// conversation is what tcpdump keeps of a TCP connection to print numbers relative to its beginning (print-tcp.c): of each
// direction the number that counts as 0.
type conversation struct {
	base [2]uint32 // by direction: 0 is from the lesser end
	has  [2]bool
	next [2]uint32 // the number that is due next
	due  [2]bool
}

// maxConversations bounds the memory of a hostile text.
const maxConversations = 1 << 20

// small is below what initial sequence numbers are: of 2 of them that are drawn at random, both are below in 1 of 65,536 cases.
const small = 1 << 24

// numbers gives a segment its sequence numbers. tcpdump prints those of the first segment with an acknowledgement that it sees of a
// connection as they are, and of later ones their distance from them, unless -S is given.
func (s *section) numbers(p *wire.Packet, l *layer) {
	key, dir := p.Tuple, 0
	if p.Tuple.Compare(p.Tuple.Mirror()) > 0 {
		key, dir = p.Tuple.Mirror(), 1
	}
	c := s.conv[key]
	seq, ack := l.seq, l.ack
	if p.Flags&wire.ACK == 0 { // printed as they are, and not remembered
		p.Seq = uint32(max(seq, 0))
		if c == nil && p.Flags&wire.SYN != 0 && len(s.conv) < maxConversations {
			c = &conversation{}
			s.conv[key] = c
			c.next[dir], c.due[dir] = p.Seq+1, true
		} else if c != nil && p.Flags&wire.SYN != 0 {
			c.next[dir], c.due[dir] = p.Seq+1, true
		}
		return
	}
	if c == nil || !c.has[0] && !c.has[1] || p.Flags&wire.SYN != 0 {
		if c == nil {
			if len(s.conv) >= maxConversations {
				p.Known &^= wire.KnowTransport
				return
			}
			c = &conversation{}
			s.conv[key] = c
		}
		if p.Flags&wire.SYN != 0 || s.hasSeq || seq >= small || ack >= small {
			if seq >= 0 {
				c.base[dir], c.has[dir] = uint32(seq), true
			}
			if ack >= 0 {
				c.base[1-dir], c.has[1-dir] = uint32(ack)-1, true
			}
			p.Seq, p.Ack = c.filled(dir, seq, s, key), uint32(max(ack, 0))
			c.advance(dir, p)
			return
		}
		// Relative already: what they are relative to was printed before the text begins.
	}
	p.Seq, p.Ack = s.absolute(c, key, dir, seq), s.absolute(c, key, 1-dir, ack)
	if seq < 0 {
		p.Seq = c.filled(dir, seq, s, key)
	}
	c.advance(dir, p)
}

// absolute turns a number of one direction into what was on the wire.
func (s *section) absolute(c *conversation, key wire.Tuple, dir int, n int64) uint32 {
	if n < 0 {
		return 0
	}
	if s.hasSeq {
		return uint32(n)
	}
	if !c.has[dir] {
		c.base[dir], c.has[dir] = s.stand(key, dir), true
	}
	// Numbers that lie near the base are as they are: tcpdump ran with -S. Those near 0 from either side, as of a keep-alive, are
	// distances.
	if distance := int32(uint32(n) - c.base[dir]); !s.relative && n >= small && n <= 1<<32-small && distance > -small && distance < small {
		s.hasSeq = true
		return uint32(n)
	}
	s.relative = s.relative || n < small && c.base[dir] >= small && c.base[dir] <= 1<<32-2*small
	return c.base[dir] + uint32(n)
}

// filled is the number of a segment, or where none is printed, as of a bare acknowledgement, the one that is due.
func (c *conversation) filled(dir int, seq int64, s *section, key wire.Tuple) uint32 {
	switch {
	case seq >= 0:
		return uint32(seq)
	case c.due[dir]:
		return c.next[dir]
	case c.has[dir]:
		return c.base[dir] + 1
	}
	c.base[dir], c.has[dir] = s.stand(key, dir), true
	return c.base[dir] + 1
}

// advance notes what is due next.
func (c *conversation) advance(dir int, p *wire.Packet) {
	end := p.Seq
	if p.Has(wire.KnowPayload) {
		end += p.PayloadLen
	}
	if p.Flags&(wire.SYN|wire.FIN) != 0 {
		end++
	}
	if !c.due[dir] || int32(end-c.next[dir]) > 0 || p.Flags&wire.SYN != 0 {
		c.next[dir], c.due[dir] = end, true
	}
	if p.Flags&wire.ACK != 0 && p.Ack != 0 && !c.due[1-dir] {
		c.next[1-dir], c.due[1-dir] = p.Ack, true
	}
}

// stand is a number in place of one that the text does not tell. It is of this connection alone: two legs of one connection must not
// seem to have the same numbers.
func (s *section) stand(key wire.Tuple, dir int) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(key.Src[:])
	_, _ = h.Write(key.Dst[:])
	_, _ = h.Write([]byte{byte(key.SrcPortOrEchoID), byte(key.SrcPortOrEchoID >> 8), byte(key.DstPortOrEchoID), byte(key.DstPortOrEchoID >> 8), byte(dir)})
	return h.Sum32()
}
