package analyze

import (
	"slices"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// TestNearest: a selection that picks nothing names what was most likely meant.
func TestNearest(t *testing.T) {
	res := &Result{}
	ask := func(proto wire.Proto, src string, sport uint16, dst string, dport uint16) {
		r := Request{Tuple: wire.Tuple{Proto: proto, Src: wire.MustAddr(src), Dst: wire.MustAddr(dst), SrcPortOrEchoID: sport, DstPortOrEchoID: dport}}
		r.Client = Endpoint{Addr: r.Tuple.Src, Port: sport, HasPort: proto.HasPorts()}
		r.Server = Endpoint{Addr: r.Tuple.Dst, Port: dport, HasPort: proto.HasPorts()}
		res.Requests = append(res.Requests, r)
	}
	ask(wire.ProtoICMP6, "fe80::1", 0, "ff02::2", 0)
	for i := range uint16(100) {
		ask(wire.ProtoTCP, "172.16.0.99", 50000+i, "10.99.0.1", 443)
	}
	ask(wire.ProtoTCP, "172.16.0.13", 40001, "10.20.0.10", 8080)
	ask(wire.ProtoTCP, "172.16.0.13", 40002, "10.20.0.10", 8080)
	ask(wire.ProtoUDP, "172.16.0.13", 40003, "10.20.0.10", 53)
	ask(wire.ProtoTCP, "10.10.0.3", 40004, "10.20.0.10", 80)
	res.Requests[len(res.Requests)-1].Egress = &Endpoint{Addr: wire.MustAddr("172.16.0.13")}

	for _, tc := range []struct {
		what, ask string
		want      []string
	}{
		{"what is picked needs no candidates", "tcp 172.16.0.13 > 10.20.0.10:8080", nil},
		{"another port is nearer than another protocol, that than another client; one per pair of ends; strangers last", "tcp 172.16.0.13 > 10.20.0.10:80", []string{
			"tcp 172.16.0.13:40001 > 10.20.0.10:8080", "udp 172.16.0.13:40003 > 10.20.0.10:53", "tcp 10.10.0.3:40004 > 10.20.0.10:80", "tcp 172.16.0.99:50000 > 10.99.0.1:443",
		}},
		{"neighbours come last, whatever was asked", "icmp6 fe80::2 > ff02::2", []string{
			"tcp 172.16.0.99:50000 > 10.99.0.1:443",
		}},
	} {
		sel, err := ParseSelector(tc.ask)
		if err != nil {
			t.Fatal(err)
		}
		part := res.Select(sel)
		var got []string
		for i := range part.Nearest {
			got = append(got, part.Nearest[i].Tuple.String())
		}
		if tc.what[0] == 'n' { // what follows the first is not the point
			got = got[:min(len(got), 1)]
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q gives %q, want %q", tc.what, tc.ask, got, tc.want)
		}
		if part.Asked != sel.String() || part.LeftOut != len(res.Requests)-len(part.Requests) {
			t.Errorf("%s: asked %q, %d left out", tc.what, part.Asked, part.LeftOut)
		}
	}
}
