package netfilter

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// read reads texts that nobody here wrote.
func read(t *testing.T, names ...string) *Ruleset {
	t.Helper()
	var rs Ruleset
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(shared, name))
		if err != nil {
			t.Skipf("not checked: %v", err)
		}
		if err := rs.Read(string(text), name); err != nil {
			t.Fatal(err)
		}
	}
	return &rs
}

// TestFixtures: an agent's rules as the kernel's tools printed them keep what is in the list and translate the rest, in every form.
func TestFixtures(t *testing.T) {
	private := []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}
	local := []string{"169.254.0.0/16"}
	reserved := slices.Concat(local, private, []string{
		"100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	})
	rnd := rand.New(rand.NewPCG(1, 6))
	for name, keep := range map[string][]string{
		"all.save": {"0.0.0.0/0"}, "default.save": slices.Concat(local, private), "emptylist.save": local,
		"full.save": {"169.254.0.0/16", "10.48.0.0/14", "10.128.0.0/20", "192.168.50.7/32"}, "missingkey.save": private,
		"gke.save": reserved, "gke.nft": reserved, "gke.L": reserved,
		"iptables-save.txt": slices.Concat(local, private), "nft-ruleset.txt": slices.Concat(local, private),
	} {
		t.Run(name, func(t *testing.T) {
			rs := read(t, filepath.Join("fixtures", name))
			node := netip.MustParseAddr("203.0.113.200")
			ask := func(dst netip.Addr, want Answer) {
				t.Helper()
				v := rs.Ask(Packet{Dst: netip.PrefixFrom(dst, 32), SrcPort: -1, DstPort: -1, Out: "eth0", Local: []netip.Addr{node}})
				if v.Answer != want {
					t.Errorf("%s: %s, want %s: %+v", dst, v.Answer, want, v)
				}
				if v.Answer != Undetermined && v.Place.Rule == "" {
					t.Errorf("%s: no rule is named: %+v", dst, v)
				}
			}
			keeps := func(a netip.Addr) Answer {
				if slices.ContainsFunc(keep, func(s string) bool { return netip.MustParsePrefix(s).Contains(a) }) {
					return Kept
				}
				return Masqueraded
			}
			for _, s := range keep {
				p := netip.MustParsePrefix(s)
				ask(p.Addr(), keeps(p.Addr()))
				last := lastOf(p)
				ask(last, keeps(last))
				if next := last.Next(); next.IsValid() {
					ask(next, keeps(next))
				}
				if before := p.Addr().Prev(); before.IsValid() {
					ask(before, keeps(before))
				}
			}
			for range 2000 {
				var b [4]byte
				n := rnd.Uint32()
				b[0], b[1], b[2], b[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
				if a := netip.AddrFrom4(b); b[0] != 127 && a != node {
					ask(a, keeps(a))
				}
			}
			ask(node, Kept) // the node itself
		})
	}
}

// TestFixturesTogether: what iptables-save, iptables -L and nft print of one table do not contradict each other.
func TestFixturesTogether(t *testing.T) {
	rs := read(t, "fixtures/gke.save", "fixtures/gke.nft", "fixtures/gke.L")
	for dst, want := range map[string]Answer{"10.1.2.3": Kept, "8.8.8.8": Masqueraded} {
		if v := rs.Ask(Packet{Dst: address(t, dst), SrcPort: -1, DstPort: -1, Local: []netip.Addr{netip.MustParseAddr("10.10.0.3")}}); v.Answer != want {
			t.Errorf("%s: %+v, want %s", dst, v, want)
		}
	}
}

// TestSetCases asks what is expected of sets as people paste them.
func TestSetCases(t *testing.T) {
	rows, err := os.ReadFile(filepath.Join(shared, "cases", "EXPECT-rules.tsv"))
	if err != nil {
		t.Skipf("not checked: the cases (%v)", err)
	}
	asked := 0
	for line := range strings.Lines(string(rows)) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(f) < 9 || f[1] != "ipset" {
			continue
		}
		asked++
		rs := read(t, filepath.Join("cases", f[0]))
		if len(rs.sets) != 1 {
			t.Fatalf("%d sets", len(rs.sets))
		}
		for _, s := range rs.sets {
			p := Packet{Dst: address(t, f[4]), SrcPort: -1, DstPort: -1}
			p.Proto, _ = wire.ProtoOf(f[5])
			if _, port, ok := strings.Cut(f[4], ":"); ok {
				if p.DstPort, err = strconv.Atoi(port); err != nil {
					t.Fatal(err)
				}
			}
			want := map[string]tri{"member": yes, "not-member": no}[f[7]]
			if is, settle := s.has(&walk{rs: rs, p: &p}, []string{"dst", "dst"}); is != want {
				t.Errorf("%s %s: %d, want %d (%s)", f[0], f[4], is, want, settle)
			}
		}
	}
	if asked < 2 {
		t.Errorf("%d rows", asked)
	}
}
