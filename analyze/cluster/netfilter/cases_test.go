package netfilter

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

const shared = "../../../../shared"

// TestCases asks what is expected of rules as people paste them.
func TestCases(t *testing.T) {
	rows, err := os.ReadFile(filepath.Join(shared, "cases", "EXPECT-rules.tsv"))
	if err != nil {
		t.Skipf("not checked: the cases (%v)", err)
	}
	asked := 0
	for line := range strings.Lines(string(rows)) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(f) < 9 || !slices.Contains([]string{"iptables-save", "iptables-list", "nft"}, f[1]) {
			continue
		}
		asked++
		t.Run(f[0]+" to "+f[4], func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(shared, "cases", f[0]))
			if err != nil {
				t.Fatal(err)
			}
			var rs Ruleset
			if err := rs.Read(string(text), f[0]); err != nil {
				t.Fatal(err)
			}
			p := Packet{Src: address(t, f[3]), Dst: address(t, f[4]), SrcPort: -1, DstPort: -1, Out: f[6]}
			p.Proto, _ = wire.ProtoOf(f[5])
			if f[2] != "-" {
				p.Local = append(p.Local, netip.MustParseAddr(f[2]))
			}
			v := rs.Ask(p)
			if !slices.Contains(strings.Split(f[7], "|"), v.Answer.String()) {
				t.Errorf("%s, want %s (%s; %s)\n%+v\nnotes %q", v.Answer, f[7], f[8], f[9], v, rs.Notes)
			}
			t.Logf("%s: line %d: %s [%s] settle %s\n want because %s", v.Answer, v.Place.Line, v.Place.Rule, v.Why, v.Settle, f[8])
		})
	}
	if asked < 40 {
		t.Errorf("%d rows", asked)
	}
}

func address(t *testing.T, s string) netip.Prefix {
	t.Helper()
	host, port, ok := strings.Cut(s, ":")
	if ok {
		if _, err := strconv.Atoi(port); err != nil {
			t.Fatal(s)
		}
		s = host
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		t.Fatal(err)
	}
	return netip.PrefixFrom(a, a.BitLen())
}
