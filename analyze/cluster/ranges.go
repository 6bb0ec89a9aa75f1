package cluster

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/srcproof/srcproof/capture/wire"
)

// A rangeTable finds the longest range that holds an address: one map of network addresses for each prefix length in
// use, longest first. A cluster uses a handful of lengths but may have thousands of ranges (one or two for each node).
type rangeTable struct {
	lens []lenTable
}

// A lenTable is the ranges of one length. bits counts from the front of the 16 bytes of a wire.Addr (IPv4 /8 is 104).
type lenTable struct {
	nets map[wire.Addr]*rangeRole
	bits int
}

// A rangeRole is what a range says of the addresses in it.
type rangeRole struct {
	role Role
	// custom is said instead of role of the network address and the first host address, where hasCustom.
	custom    Role
	net       wire.Addr
	first     wire.Addr
	hasCustom bool
}

// longest returns the longest range that holds a, nil if there is none.
func (t *rangeTable) longest(a wire.Addr) *rangeRole {
	for i := range t.lens {
		l := &t.lens[i]
		if r, ok := l.nets[masked(a, l.bits)]; ok {
			return r
		}
	}
	return nil
}

func (t *rangeTable) add(bits int, r *rangeRole) {
	i, ok := slices.BinarySearchFunc(t.lens, bits, func(l lenTable, bits int) int { return cmp.Compare(bits, l.bits) })
	if !ok {
		t.lens = slices.Insert(t.lens, i, lenTable{nets: map[wire.Addr]*rangeRole{}, bits: bits})
	}
	t.lens[i].nets[r.net] = r
}

func (r *rangeRole) roleOf(a wire.Addr) Role {
	if r.hasCustom && (a == r.net || a == r.first) {
		return r.custom
	}
	return r.role
}

// masked returns a with all but its first bits cleared.
func masked(a wire.Addr, bits int) wire.Addr {
	n := bits / 8
	if n >= len(a) {
		return a
	}
	a[n] &= ^byte(0xff >> (bits % 8))
	clear(a[n+1:])
	return a
}

// wireBits returns the length of a prefix counted in the 16 bytes of a wire.Addr.
func wireBits(p netip.Prefix) int {
	if p.Addr().Is4() {
		return p.Bits() + 96
	}
	return p.Bits()
}

// next returns the address after a.
func next(a wire.Addr) wire.Addr {
	for i := len(a) - 1; i >= 0; i-- {
		a[i]++
		if a[i] != 0 {
			break
		}
	}
	return a
}

// cover returns the prefixes sorted, without those that lie inside another. Preconditions: all are valid and masked.
func cover(ps []netip.Prefix) []netip.Prefix {
	ps = slices.Clone(ps)
	slices.SortFunc(ps, netip.Prefix.Compare) // a range comes before those inside it
	var out []netip.Prefix
	for _, p := range ps {
		if len(out) > 0 && out[len(out)-1].Contains(p.Addr()) && out[len(out)-1].Bits() <= p.Bits() {
			continue
		}
		out = append(out, p)
	}
	return out
}

// contained tells whether one of the ranges, which cover returned, holds the address.
func contained(sorted []netip.Prefix, a netip.Addr) bool {
	i, ok := slices.BinarySearchFunc(sorted, a, func(p netip.Prefix, a netip.Addr) int { return p.Addr().Compare(a) })
	return ok || i > 0 && sorted[i-1].Contains(a)
}
