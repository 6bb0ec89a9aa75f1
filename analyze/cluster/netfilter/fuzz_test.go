package netfilter

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// questions are some packets to ask any rules for.
func questions() []Packet {
	at := netip.MustParsePrefix
	node := []netip.Addr{netip.MustParseAddr("10.10.0.3"), netip.MustParseAddr("2001:db8::3")}
	return []Packet{
		{Src: at("172.16.0.13/32"), Dst: at("10.20.0.10/32"), Proto: wire.ProtoTCP, SrcPort: 40000, DstPort: 80, Out: "eth0", Local: node},
		{Dst: at("8.8.8.8/32"), Proto: wire.ProtoUDP, SrcPort: -1, DstPort: 53},
		{Dst: at("10.0.0.0/8"), Except: Ranges{at("10.20.0.0/16"): true, at("10.96.0.1/32"): true}, SrcPort: -1, DstPort: -1},
		{Dst: at("0.0.0.0/0"), SrcPort: -1, DstPort: -1, Local: node},
		{Src: at("fd00::/64"), Dst: at("2001:db8::1/128"), Proto: wire.ProtoICMP6, SrcPort: -1, DstPort: -1},
	}
}

// FuzzRead: no text makes Read or Ask panic or run away, and an answer has a reason.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"cases/iptables/*", "cases/nft/*", "cases/ipset/*", "fixtures/*.save", "fixtures/gke.*"} {
		files, _ := filepath.Glob(filepath.Join(shared, name))
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil {
				f.Add(string(text))
			}
		}
	}
	for _, s := range []string{
		whole, wholeS, wholeL, wholeNFT, calicoSets, ipvsSets, awsNFT, kubeProxyNFT, kubeProxyMaps, `"" 00`,
		"*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -j A\n-A A -j B\n-A B -j A\n-A A -g A\nCOMMIT\n",
		"*nat\n-A POSTROUTING -m set --match-set s src,dst -j MASQUERADE\nCOMMIT\ncreate s hash:net,port family inet\nadd s 10.0.0.0/8,tcp:80 nomatch\n",
		"table inet t {\n set s { type ipv4_addr; flags interval; elements = { 10.0.0.0-10.0.0.9, 10.2.0.0/16 } }\n chain c { type nat hook postrouting priority srcnat; ip daddr @s counter masquerade; oifname { \"a\", \"b*\" } snat to 1.2.3.4 }\n}\n",
		`{"nftables":[{"metainfo":{}},{"table":{"family":"ip","name":"n"}},{"chain":{"family":"ip","table":"n","name":"c","type":"nat","hook":"postrouting","prio":100,"policy":"accept"}},{"rule":{"family":"ip","table":"n","chain":"c","expr":[{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"daddr"}},"right":{"prefix":{"addr":"10.0.0.0","len":8}}}},{"masquerade":null}]}}]}`,
		"Chain POSTROUTING (policy ACCEPT)\ntarget prot opt source destination\nMASQUERADE all -- 0.0.0.0/0 !10.0.0.0/8 /* x */ random-fully\n",
		"iptables -t nat -I POSTROUTING 1 -d 10.0.0.0/8 -j ACCEPT # x\n\xff\x00{",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var rs Ruleset
		_ = rs.Read(text, "fuzz")
		for _, p := range questions() {
			if v := rs.Ask(p); v.Why == "" {
				t.Errorf("%+v without a reason", v)
			}
		}
		ranges, alone := rs.Destinations()
		for _, d := range append(ranges, alone...) {
			if !d.IsValid() || d != d.Masked() {
				t.Errorf("destination %s", d)
			}
		}
	})
}

// TestCutAnywhere: a dump that ends too early gives the answer of the whole one, or none.
func TestCutAnywhere(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 13
	}
	cuts := 0
	for _, name := range []string{
		"fixtures/gke.save", "fixtures/gke.nft", "fixtures/gke.L", "fixtures/full.save", "cases/iptables/agent-narrowed-list.save", "cases/iptables/hand-rule-before-agent.save",
		"cases/iptables/agent-nvL-all-chains.list", "cases/nft/agent-list-fully-random.nft",
	} {
		text, err := os.ReadFile(filepath.Join(shared, name))
		if err != nil {
			t.Skipf("not checked: %v", err)
		}
		whole := read(t, name)
		for end := 0; end < len(text); end += step {
			var part Ruleset
			if part.Read(string(text[:end]), name) != nil {
				continue
			}
			cuts++
			if slices.ContainsFunc(part.tables, (*table).isEmpty) && !strings.HasSuffix(name, ".save") {
				continue // of four chains without rules nothing shows that more followed
			}
			for i, p := range questions() {
				got, want := part.Ask(p), whole.Ask(p)
				if got.Answer != Undetermined && got.Answer != want.Answer {
					t.Fatalf("%s cut behind %d bytes, question %d: %s, of the whole %s\n...%s\n%+v", name, end, i, got.Answer, want.Answer, lastLines(string(text[:end])), got)
				}
			}
		}
	}
	t.Logf("%d cuts", cuts)
}

func lastLines(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}
