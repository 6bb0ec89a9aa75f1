package netfilter

import (
	"net/netip"

	"github.com/srcproof/srcproof/capture/wire"
)

// tri is an answer with three values: a condition is met, is not, or this input does not tell.
type tri uint8

const (
	no tri = iota
	maybe
	yes
)

func (t tri) not() tri { return yes - t }

func triOf(b bool) tri {
	if b {
		return yes
	}
	return no
}

// Packet is a question: the first packet of a new connection, as it is about to leave the node. What is not known is left out.
type Packet struct {
	// Src and Dst are addresses (a prefix of full length) or ranges, all of whose addresses are meant. The zero prefix is not
	// known.
	Src, Dst netip.Prefix
	// Except are ranges within Dst that are not meant.
	Except           Ranges
	Proto            wire.Proto // wire.ProtoNone is not known
	SrcPort, DstPort int        // -1 is not known
	In, Out          string     // names of the interfaces that it came in by and leaves by; "" is not known
	Mark             uint32     // the packet mark that it arrives with
	// Local are the node's own addresses.
	Local []netip.Addr
}

// Ranges is a set of ranges, each in the form that Masked gives.
type Ranges map[netip.Prefix]bool

// Hold tells whether one of them holds all of a range. The ranges that are asked about lie in one of a length of least bits.
func (rs Ranges) Hold(p netip.Prefix, least int) bool {
	if len(rs) == 0 {
		return false
	}
	for n := p.Bits(); n >= least; n-- {
		if rs[netip.PrefixFrom(p.Addr(), n).Masked()] {
			return true
		}
	}
	return false
}

// is4 tells whether the packet is of IPv4.
func (p *Packet) is4() bool {
	if p.Dst.IsValid() {
		return p.Dst.Addr().Is4()
	}
	return !p.Src.IsValid() || p.Src.Addr().Is4()
}

// isOpen tells whether the question leaves out what rules for Services ask for.
func (p *Packet) isOpen() bool { return p.leavesOpen() != "" }

// leavesOpen names what it leaves out.
func (p *Packet) leavesOpen() string {
	switch {
	case p.Proto == wire.ProtoNone:
		return "--proto and --dport tell"
	case p.Proto.HasPorts() && p.DstPort < 0:
		return "--dport tells"
	case !p.Dst.IsSingleIP():
		return "--to ADDRESS tells"
	}
	return ""
}

// within tells whether all addresses of a range lie in another one: yes, none of them, or not all (or it is not known).
func within(a, in netip.Prefix) tri {
	switch {
	case !a.IsValid():
		if in.Bits() == 0 {
			return yes
		}
		return maybe
	case a.Addr().Is4() != in.Addr().Is4(), !a.Overlaps(in):
		return no
	case a.Bits() >= in.Bits():
		return yes
	}
	return maybe
}

// goesTo tells whether the destination lies in one of some ranges.
func (p *Packet) goesTo(in ...netip.Prefix) tri {
	t := no
	for _, r := range in {
		is := within(p.Dst, r)
		if is == maybe && p.Except.Hold(r, p.Dst.Bits()) {
			is = no
		}
		t = max(t, is)
	}
	return t
}

// Loopback is what is local on every host.
func Loopback(v4 bool) netip.Prefix {
	if v4 {
		return netip.MustParsePrefix("127.0.0.0/8")
	}
	return netip.MustParsePrefix("::1/128")
}

// local tells whether the source or the destination is the node itself.
func (p *Packet) local(source bool) tri {
	a := p.Dst
	if source {
		a = p.Src
	}
	if !a.IsValid() {
		return maybe
	}
	own := []netip.Prefix{Loopback(a.Addr().Is4())}
	for _, l := range p.Local {
		own = append(own, netip.PrefixFrom(l, l.BitLen()))
	}
	if source {
		return anyWithin(a, own)
	}
	return p.goesTo(own...)
}

// bits are 32 bits of which some are known: a packet mark.
type bits struct{ value, known uint32 }

func allKnown(v uint32) bits { return bits{v, ^uint32(0)} }

// is compares the masked bits with a value.
func (b bits) is(value, mask uint32) tri {
	switch {
	case (b.value^value)&mask&b.known != 0:
		return no
	case value&^mask != 0:
		return no // it asks for bits that the mask takes away
	case mask&^b.known != 0:
		return maybe
	}
	return yes
}

// merge is what is known if the one or the other holds.
func (b bits) merge(c bits) bits {
	known := b.known & c.known &^ (b.value ^ c.value)
	return bits{b.value & known, known}
}

// set is what MARK --set-xmark makes: the masked bits are cleared, and the value's are turned over (net/netfilter/xt_mark.c).
func (b bits) set(value, mask uint32) bits {
	known := b.known | mask
	return bits{((b.value &^ mask) ^ value) & known, known}
}
