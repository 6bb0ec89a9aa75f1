package netfilter

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// onSource asks for a source address in one of some ranges.
func onSource(text string, in ...netip.Prefix) condition {
	return condition{text: text, test: func(w *walk) (tri, string) {
		return anyWithin(w.p.Src, in), "--from ADDRESS: the rule means some of the sources that are asked for"
	}}
}

// onDestination asks for a destination address in one of some ranges.
func onDestination(text string, in ...netip.Prefix) condition {
	return condition{text: text, dst: in, test: func(w *walk) (tri, string) {
		return w.p.goesTo(in...), "--to ADDRESS: the rule means some of the destinations that are asked for"
	}}
}

// anyWithin tells whether an address lies in one of some ranges. Of a range that several of them cover together it says maybe.
func anyWithin(a netip.Prefix, in []netip.Prefix) tri {
	t := no
	for _, p := range in {
		t = max(t, within(a, p))
	}
	return t
}

// onRange asks for an address between two others.
func onRange(text string, source bool, from, to netip.Addr) condition {
	return condition{text: text, test: func(w *walk) (tri, string) {
		a := w.p.Dst
		if source {
			a = w.p.Src
		}
		switch {
		case !a.IsValid():
			return maybe, "--from and --to"
		case a.Addr().Is4() != from.Is4():
			return no, ""
		}
		first, last := a.Addr(), lastOf(a)
		switch {
		case last.Less(from), to.Less(first):
			return no, ""
		case !first.Less(from) && !to.Less(last):
			return yes, ""
		}
		return maybe, "--from ADDRESS and --to ADDRESS: the rule means some of those that are asked for"
	}}
}

// lastOf is the last address of a range.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// onProtocol asks for a transport protocol; 0 is every one.
func onProtocol(text string, proto wire.Proto) condition {
	return condition{text: text, test: func(w *walk) (tri, string) {
		switch {
		case proto == wire.ProtoNone, w.p.Proto == proto:
			return yes, ""
		case w.p.Proto == wire.ProtoNone:
			return maybe, "--proto"
		}
		return no, ""
	}}
}

// ports is a range of ports.
type ports struct{ from, to uint16 }

// onPorts asks for a port in one of some ranges: of the source, of the destination, or of either.
func onPorts(text string, source, destination bool, in []ports) condition {
	return condition{text: text, test: func(w *walk) (tri, string) {
		t, missing := no, ""
		if source {
			t = portWithin(w.p.SrcPort, in)
			missing = "the client's port"
		}
		if destination {
			d := portWithin(w.p.DstPort, in)
			if d == maybe && t != yes {
				missing = "--dport"
			}
			t = max(t, d)
		}
		return t, missing
	}}
}

func portWithin(port int, in []ports) tri {
	if port < 0 {
		if slices.ContainsFunc(in, func(r ports) bool { return r.from == 0 && r.to == 0xffff }) {
			return yes
		}
		return maybe
	}
	return triOf(slices.ContainsFunc(in, func(r ports) bool { return port >= int(r.from) && port <= int(r.to) }))
}

// onInterface asks for the name of an interface, or for the beginning of it.
func onInterface(text string, out bool, name string, begin bool) condition {
	return condition{text: text, test: func(w *walk) (tri, string) {
		is, flag := w.p.In, "the interface that the Pod's packets come in by"
		if out {
			is, flag = w.p.Out, "--oif"
		}
		if out && w.hook == Prerouting || !out && w.hook == Postrouting {
			is = "" // not known there, and kernels differ in what they compare then
		}
		switch {
		case begin && name == "":
			return yes, ""
		case is == "":
			return maybe, flag
		case begin:
			return triOf(strings.HasPrefix(is, name)), ""
		}
		return triOf(is == name), ""
	}}
}

// withPlus parts an interface's name as iptables has it: a trailing + stands for any end.
func withPlus(name string) (string, bool) { return strings.CutSuffix(name, "+") }

// onMark asks for bits of the packet mark.
func onMark(text string, value, mask uint32) condition {
	return condition{text: text, test: func(w *walk) (tri, string) {
		w.askedMark = true
		return w.mark.is(value, mask), cmp.Or(w.markOpen, "what sets the mark: the rules of all tables (iptables-save without -t)")
	}}
}

// onConnectionMark asks for bits of the connection's mark, which is 0 for a new connection until a rule sets it.
func onConnectionMark(text string, value, mask uint32) condition {
	return condition{text: text, test: func(w *walk) (tri, string) {
		w.askedMark = true
		return w.connmrk.is(value, mask), cmp.Or(w.markOpen, "what sets the connection's mark: the rules of all tables (iptables-save without -t)")
	}}
}

// onLocal asks whether the source or the destination is the node itself.
func onLocal(text string, source bool) condition {
	return condition{text: text, test: func(w *walk) (tri, string) {
		if !source {
			w.askedLoc = true
		}
		return w.p.local(source), "--node-ip for each address of the node, and --to ADDRESS"
	}}
}

// addressTypes are those that addrtype and fib know, upper case (include/uapi/linux/rtnetlink.h, RTN_*).
func onAddressType(text string, source bool, kind string) condition {
	local := onLocal(text, source)
	return condition{text: text, test: func(w *walk) (tri, string) {
		a := w.p.Dst
		if source {
			a = w.p.Src
		}
		is, settle := local.test(w)
		if kind == "LOCAL" {
			return is, settle
		}
		if !a.IsValid() {
			return maybe, "--from and --to"
		}
		multicast := netip.MustParsePrefix("224.0.0.0/4")
		if !a.Addr().Is4() {
			multicast = netip.MustParsePrefix("ff00::/8")
		}
		group := within(a, multicast)
		if !source {
			group = w.p.goesTo(multicast)
		}
		broadcast := triOf(a == netip.MustParsePrefix("255.255.255.255/32"))
		switch kind {
		case "MULTICAST":
			return group, "--to ADDRESS"
		case "UNICAST":
			// What the routing table holds as a broadcast address of a link is not known; it is nobody's destination through a node.
			return min(is.not(), group.not(), broadcast.not()), settle
		case "BROADCAST":
			if group == yes || is == yes {
				return no, ""
			}
			if broadcast == yes {
				return yes, ""
			}
		}
		return maybe, "the node's routing table, which this tool does not read"
	}}
}

// onOneInterface asks for an address type among the addresses of one interface, which are not known: an address that is the
// node's may be another interface's (net/netfilter/xt_addrtype.c).
func onOneInterface(c condition, source bool) condition {
	test := c.test
	c.test = func(w *walk) (tri, string) {
		t, settle := test(w)
		if is, _ := onLocal("", source).test(w); is != no {
			return maybe, "the addresses of each interface, which this tool does not read"
		}
		return t, settle
	}
	return c
}

// onState asks for the state of the connection. The packet is the first of it.
func onState(text string, states []string) condition {
	return condition{text: text, test: func(*walk) (tri, string) {
		t := no
		for _, s := range states {
			switch strings.ToUpper(s) {
			case "NEW":
				return yes, ""
			case "ESTABLISHED", "RELATED", "INVALID", "UNTRACKED", "SNAT": // the source is translated behind this, if at all
			default:
				t = maybe
			}
		}
		return t, "whether the destination was translated"
	}}
}

// onFlags asks for TCP flags: the first packet of a connection has SYN and of these no other.
func onFlags(text string, mask, set wire.TCPFlags) condition {
	return condition{text: text, test: func(w *walk) (tri, string) {
		const known = wire.FIN | wire.SYN | wire.RST | wire.ACK | wire.PSH | wire.URG
		switch {
		case w.p.Proto != wire.ProtoTCP && w.p.Proto != wire.ProtoNone:
			return no, ""
		case wire.SYN&mask&known != set&known:
			return no, ""
		case mask&^known != 0 || w.p.Proto == wire.ProtoNone:
			return maybe, "--proto tcp"
		}
		return yes, ""
	}}
}

// unknown is a condition that this tool does not decide.
func unknown(text, settle string) condition {
	return condition{text: text, test: func(*walk) (tri, string) { return maybe, settle }}
}

// named are the destinations that conditions name.
func named(cs []condition) (out []netip.Prefix) {
	for _, c := range cs {
		out = append(out, c.dst...)
	}
	return out
}

// all is met if each of some conditions is.
func all(text string, cs ...condition) condition {
	return condition{text: text, dst: named(cs), test: func(w *walk) (tri, string) {
		t, settle := yes, ""
		for _, c := range cs {
			is, s := c.test(w)
			if is < t {
				t, settle = is, s
			}
		}
		return t, settle
	}}
}

// any is met if one of some conditions is.
func anyOf(text string, cs ...condition) condition {
	return condition{text: text, dst: named(cs), test: func(w *walk) (tri, string) {
		t, settle := no, ""
		for _, c := range cs {
			is, s := c.test(w)
			if is > t {
				t, settle = is, s
			}
		}
		return t, settle
	}}
}

// never and always are conditions that do not depend on the packet.
func always(text string) condition {
	return condition{text: text, test: func(*walk) (tri, string) { return yes, "" }}
}

// family asks for IPv4 or IPv6.
func onFamily(text string, v4 bool) condition {
	return condition{text: text, test: func(w *walk) (tri, string) { return triOf(w.p.is4() == v4), "" }}
}

// onSet asks whether the packet's fields are a member of a set.
func onSet(text, name string, fields []string) condition {
	return condition{text: text, test: func(w *walk) (tri, string) {
		s := w.rs.sets[name]
		if s == nil {
			return maybe, fmt.Sprintf("set %s: ipset save (or ipset list %s)", name, name)
		}
		return s.has(w, fields)
	}}
}
