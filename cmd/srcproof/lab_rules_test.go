//go:build linux

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/analyze/cluster/netfilter"
	"github.com/srcproof/srcproof/capture/wire"
)

var rulesRounds = flag.Int("rules-rounds", 0, "how many random rule sets TestLabRules loads; 0 is its own number")

// TestLabRules loads random rules into the kernel, sends packets through them and compares the source addresses that the far host
// hears with what the evaluator says of the node's dumps: never another answer, and undetermined only where the rules hold
// something that no dump tells.
func TestLabRules(t *testing.T) {
	requireLab(t)
	l := newLab(t, "rules", bridged)
	world := newRulesWorld(l)
	rounds := 320
	if testing.Short() {
		rounds = 40
	}
	if *rulesRounds > 0 {
		rounds = *rulesRounds
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("RULES_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("RULES_SEED=%d", seed)
	tally := map[string]int{}
	for i := range rounds {
		world.round(t, rand.New(rand.NewPCG(seed, uint64(i))), i, tally)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d rule sets: %v", rounds, tally)
	if tally["save masqueraded"] < rounds || tally["save kept"] < rounds {
		t.Errorf("too little is decided: %v", tally)
	}
}

// rulesWorld is a lab in which any Pod address may send, the node has two ways out, and the far host has every address.
type rulesWorld struct {
	l  *lab
	id uint32
}

const (
	otherNodeIP = "10.10.1.2" // of the node's second uplink
	otherRoute  = "10.21.0.0/16"
)

func newRulesWorld(l *lab) *rulesWorld {
	l.node.ip("link add eth1 type veth peer name n1 netns "+l.rtr.ns, "addr add "+otherNodeIP+"/28 dev eth1", "link set eth1 up")
	l.rtr.ip("addr add 10.10.1.1/28 dev n1", "link set n1 up", "route add default via "+farIP)
	l.node.ip("route add " + otherRoute + " via 10.10.1.1")
	l.far.ip("route add local 0.0.0.0/0 dev lo table 77", "rule add iif ens4 lookup 77 pref 5")
	l.far.agent.must(labRequest{Op: "hear"})
	l.rtr.iptables("-P FORWARD ACCEPT")
	return &rulesWorld{l: l, id: 1}
}

// What random rules and packets are made of.
var (
	rulesSources      = []string{"172.16.0.13", "172.16.0.14", "172.16.5.5", "172.16.200.9"}
	rulesDestinations = []string{"10.20.0.10", "10.20.7.7", "10.21.3.3", "10.99.1.1", "192.168.7.7", "203.0.113.9", "172.20.3.3"}
	rulesRanges       = []string{
		"10.0.0.0/8", "10.20.0.0/16", "10.20.0.10/32", "10.21.0.0/16", "172.16.0.0/12", "172.16.0.0/24", "172.16.0.0/16", "192.168.0.0/16", "203.0.113.0/24", "0.0.0.0/1", "172.16.5.5/32",
	}
	rulesPorts = []uint16{53, 80, 443, 8080, 40000}
)

// ruleSet is what is loaded in one round.
type ruleSet struct {
	nft, legacy string // for iptables-restore; "" is none
	native      string // for nft -f
	sets        string // for ipset restore
	opaque      bool   // it asks for something that no dump tells
	xt          bool   // it asks for something that nft does not print of iptables' rules
}

func (w *rulesWorld) round(t *testing.T, r *rand.Rand, nth int, tally map[string]int) {
	t.Helper()
	g := ruleGenerator{r: r}
	set := g.set()
	dir := t.TempDir()
	for name, text := range map[string]string{"nft": set.nft, "legacy": set.legacy, "native": set.native, "sets": set.sets} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const parts = "=====PART"
	script := `set -e
nft flush ruleset
printf '*nat\nCOMMIT\n*mangle\nCOMMIT\n' | iptables-legacy-restore
ipset destroy
ipset restore < ` + dir + `/sets
[ -s ` + dir + `/nft ] && iptables-nft-restore < ` + dir + `/nft
[ -s ` + dir + `/legacy ] && iptables-legacy-restore < ` + dir + `/legacy
[ -s ` + dir + `/native ] && nft -f ` + dir + `/native
p() { echo; echo "` + parts + ` $1"; }
p nftsave; [ -s ` + dir + `/nft ] && iptables-nft-save 2>/dev/null
p legacysave; iptables-legacy-save
p ipset; ipset save
p ipsetlist; ipset list
p nftS; [ -s ` + dir + `/nft ] && iptables-nft -t nat -S
p legacyS; iptables-legacy -t nat -S
p nftL; [ -s ` + dir + `/nft ] && iptables-nft -t nat -L -n -v
p legacyL; iptables-legacy -t nat -L -n -v --line-numbers
p nft; nft list ruleset 2>/dev/null
p json; nft -j list ruleset 2>/dev/null
`
	script = strings.ReplaceAll(script, "\n[ -s", "\n! [ -s") // "set -e" and a file that is empty
	script = strings.ReplaceAll(script, "&& ", "|| ")
	script = strings.ReplaceAll(script, "; [ -s", "; ! [ -s")
	out, err := exec.Command("ip", "netns", "exec", w.l.node.ns, "sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("round %d: %v: %s\n%s\n%s\n%s\n%s", nth, err, out, set.nft, set.legacy, set.native, set.sets)
	}
	dumps := map[string]string{}
	for part := range strings.SplitSeq(string(out), "\n"+parts+" ") {
		name, text, _ := strings.Cut(part, "\n")
		dumps[name] = text
	}
	probes := g.probes(w)
	list, err := json.Marshal(probes)
	if err != nil {
		t.Fatal(err)
	}
	w.l.pod.agent.must(labRequest{Op: "spray", To: string(list)})
	answer := w.l.far.agent.must(labRequest{Op: "heard", To: strconv.Itoa(len(probes)), Wait: 400 * time.Millisecond})
	heard := map[uint32]string{}
	if err := json.Unmarshal([]byte(answer), &heard); err != nil {
		t.Fatal(err)
	}
	for form, texts := range map[string][]string{
		"save": {dumps["nftsave"], dumps["legacysave"], dumps["ipset"], set.nativeDump(dumps["nft"])},
		"S":    {"iptables-nft -S\n" + dumps["nftS"], "iptables-legacy -S\n" + dumps["legacyS"], dumps["ipsetlist"], set.nativeDump(dumps["nft"])},
		"L":    {"iptables-nft -L\n" + dumps["nftL"], "iptables-legacy -L\n" + dumps["legacyL"], dumps["ipset"], set.nativeDump(dumps["nft"])},
		"nft":  {dumps["nft"], dumps["legacysave"], dumps["ipset"]},
		"json": {dumps["json"], dumps["legacysave"], dumps["ipset"]},
	} {
		if !set.onlyNAT() && (form == "S" || form == "L") {
			continue // the nat table alone does not tell what marks the packets
		}
		var rs netfilter.Ruleset
		for _, text := range texts {
			if strings.TrimSpace(text) == "" {
				continue
			}
			if err := rs.Read(text, form); err != nil && !strings.Contains(err.Error(), "there are no rules") {
				t.Fatalf("round %d, %s: %v\n%s", nth, form, err, text)
			}
		}
		for i := range probes {
			p := &probes[i]
			q := netfilter.Packet{
				Src: netip.PrefixFrom(p.Src, 32), Dst: netip.PrefixFrom(p.Dst, 32), SrcPort: int(p.Sport), DstPort: int(p.Dport), In: "cbr0", Out: "eth0",
				Local: []netip.Addr{netip.MustParseAddr(nodeIP), netip.MustParseAddr(otherNodeIP), netip.MustParseAddr(bridgeIP)},
			}
			if netip.MustParsePrefix(otherRoute).Contains(p.Dst) {
				q.Out = "eth1"
			}
			q.Proto, _ = wire.ProtoOf(p.Proto)
			if p.Proto == "icmp" {
				q.SrcPort, q.DstPort = -1, -1
			}
			v := rs.Ask(q)
			tally[form+" "+v.Answer.String()]++
			from, came := heard[p.ID]
			if !came {
				tally["not heard"]++
				continue
			}
			want := netfilter.Masqueraded
			if from == p.Src.String() {
				want = netfilter.Kept
			}
			if v.Answer != want && v.Answer != netfilter.Undetermined || v.Answer == netfilter.Undetermined && !set.opaque && !((set.xt || strings.Contains(set.nft, "ctmask")) && form == "nft") && !(set.nft != "" && form == "json") &&
				!((form == "S" || form == "L") && (strings.Contains(v.Why, "may be cut") || strings.Contains(v.Why, "mark"))) { // the end of a listing may be missing
				t.Errorf("round %d, %s: %+v came from %s: %s by %+v", nth, form, *p, from, v.Answer, v)
				t.Logf("loaded:\n%s\n%s\n%s", set.nft, set.legacy, set.native)
				for _, text := range texts {
					t.Log("\n" + text)
				}
				return
			}
		}
	}
}

// nativeDump is what nft prints, without the tables that iptables keeps there.
func (s *ruleSet) nativeDump(all string) string {
	if s.native == "" {
		return ""
	}
	return all
}

// onlyNAT tells whether the nat table is all there is.
func (s *ruleSet) onlyNAT() bool { return !strings.Contains(s.nft+s.legacy, "*mangle") }

// native makes what nft -f reads: tables of its own, with priorities before and behind iptables'.
func (g *ruleGenerator) native() string {
	var b strings.Builder
	for n := range 1 + g.r.IntN(2) {
		family := pick(g, []string{"ip", "ip", "inet"})
		fmt.Fprintf(&b, "table %s own%d {\n\tset ranges { type ipv4_addr; flags interval; elements = { 10.20.0.0/16, 192.168.7.1-192.168.7.9 } }\n", family, n)
		b.WriteString("\tset ports { type inet_service; flags interval; elements = { 80, 8000-9000 } }\n\tset pairs { type ipv4_addr . inet_service; elements = { 10.20.0.10 . 80, 10.99.1.1 . 53 } }\n")
		chains := g.r.IntN(3)
		fmt.Fprintf(&b, "\tmap way { type ipv4_addr : verdict; flags interval; elements = { 10.20.0.0/16 : %s, 192.168.7.1-192.168.7.9 : %s, 203.0.113.9 : %s%s } }\n",
			g.nativeVerdict(-1, chains), g.nativeVerdict(-1, chains), g.nativeVerdict(-1, chains), pick(g, []string{"", "", ", * : " + g.nativeVerdict(-1, chains)}))
		fmt.Fprintf(&b, "\tmap doors { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.20.0.10 . tcp . 80 : %s, 10.99.1.1 . udp . 53 : %s } }\n",
			g.nativeVerdict(-1, chains), g.nativeVerdict(-1, chains))
		for c := chains - 1; c >= 0; c-- { // nft wants what is jumped to first
			fmt.Fprintf(&b, "\tchain n%d {\n", c)
			for range 1 + g.r.IntN(4) {
				b.WriteString("\t\t" + g.nativeRule(c, chains) + "\n")
			}
			b.WriteString("\t}\n")
		}
		if g.one(3) {
			fmt.Fprintf(&b, "\tchain before {\n\t\ttype filter hook %s priority %s; policy accept;\n", pick(g, []string{"prerouting", "forward"}), []string{"mangle - 10", "-50"}[n])
			for range 1 + g.r.IntN(3) {
				b.WriteString("\t\t" + g.nativeMatch(false) + g.nativeMark() + "\n")
			}
			b.WriteString("\t}\n")
		}
		fmt.Fprintf(&b, "\tchain out {\n\t\ttype nat hook postrouting priority %s; policy accept;\n", []string{"90", "srcnat + 10", "0", "srcnat - 5"}[n+2*g.r.IntN(2)])
		for range 1 + g.r.IntN(5) {
			b.WriteString("\t\t" + g.nativeRule(-1, chains) + "\n")
		}
		b.WriteString("\t}\n}\n")
	}
	return b.String()
}

func (g *ruleGenerator) nativeMark() string {
	return pick(g, []string{
		"meta mark set 0x4000", "meta mark set meta mark or 0x4000", "meta mark set meta mark and 0xff", "meta mark set meta mark xor 0x201", "meta mark set ct mark", "ct mark set meta mark",
		"ct mark set 0x80", "ct mark set ct mark or 0x1", "meta mark set meta mark and 0xffff00ff or 0x1200", "meta mark set ct mark and 0xff",
	})
}

func (g *ruleGenerator) nativeRule(c, chains int) string {
	s := g.nativeMatch(true)
	if g.one(3) {
		s += "counter "
	}
	if g.one(8) {
		s += g.nativeMark() + " "
	}
	switch n := g.r.IntN(12); {
	case n >= 10:
		of := g.nativeMap(c, chains)
		for _, proto := range []string{"l4proto", "ip protocol", "tcp", "udp", "icmp"} { // nft refuses two that do not go together
			if strings.Contains(s, proto) {
				return of
			}
		}
		return s + of
	case n < 2 && c+1 < chains:
		return s + fmt.Sprintf("%s n%d", pick(g, []string{"jump", "jump", "goto"}), c+1+g.r.IntN(chains-c-1))
	case n < 4:
		return s + "return"
	case n < 5:
		return s + "accept"
	case n < 7:
		return s + "masquerade" + pick(g, []string{"", " fully-random", " random,persistent"})
	case n < 8:
		return s + "snat ip to " + pick(g, []string{nodeIP, "10.10.0.5-10.10.0.7"})
	case n < 9:
		return s + g.nativeMark()
	}
	return s + `log group 5 comment "masquerade # not"`
}

// nativeVerdict is what an element of a map does, in chain c, or in the base chain for -1.
func (g *ruleGenerator) nativeVerdict(c, chains int) string {
	if c+1 < chains && g.one(2) {
		return fmt.Sprintf("%s n%d", pick(g, []string{"jump", "goto"}), c+1+g.r.IntN(chains-c-1))
	}
	return pick(g, []string{"accept", "return", "continue", "return"})
}

// nativeMap asks a map for the verdict.
func (g *ruleGenerator) nativeMap(c, chains int) string {
	of := func(keys ...string) string {
		var s []string
		for _, k := range keys {
			s = append(s, k+" : "+g.nativeVerdict(c, chains))
		}
		return " vmap { " + strings.Join(s, ", ") + " }"
	}
	if c < 0 && g.one(2) {
		return pick(g, []string{"ip daddr vmap @way", "ip daddr . meta l4proto . th dport vmap @doors"})
	}
	switch g.r.IntN(8) {
	case 0:
		return "ip saddr" + of("172.16.0.13", "172.16.5.0/24", "*")
	case 1:
		return "meta l4proto" + of("tcp", "udp") + pick(g, []string{"", " counter"})
	case 2:
		return "tcp dport" + pick(g, []string{of("80", "443", "1000-9000"), of("80", "*"), of("443", "8080", "*")})
	case 3:
		return "ip daddr . udp dport" + of("10.99.1.1 . 53", "10.20.0.10 . 443")
	case 4:
		s := "ct state" + of("established", "new", "related")
		if g.one(2) { // for what goes on behind it
			g.opaque = true
			s += pick(g, []string{" accept", " return", " meta mark set 0x4000", " masquerade", " udp dport 53 accept", " ip saddr" + of("172.16.0.13", "172.16.5.0/24")})
		}
		return s
	case 5:
		m := "meta mark" + of("0x0", "0x4000")
		g.opaque = g.opaque || strings.Contains(m, "jump") // what comes back may have another mark
		return m
	case 6:
		g.opaque = g.opaque || g.one(2)
		if g.opaque {
			return "numgen random mod 2" + of("0", "1")
		}
		return "oifname" + of(`"eth0"`, `"eth1"`)
	}
	return "fib daddr type" + of("local", "unicast")
}

func (g *ruleGenerator) nativeMatch(leaves bool) string {
	s := ""
	not := func() string {
		if g.one(4) {
			return "!= "
		}
		return ""
	}
	if g.one(3) {
		s += "ip saddr " + not() + pick(g, []string{"172.16.0.0/24", "172.16.5.5", "{ 172.16.0.13, 172.16.5.0-172.16.6.0 }", "172.16.0.13-172.16.0.14"}) + " "
	}
	if g.one(2) {
		s += "ip daddr " + not() + pick(g, []string{"10.20.0.0/16", "10.0.0.0/8", "@ranges", "{ 10.20.0.10, 203.0.113.0/24 }", "10.20.0.5-10.20.9.200"}) + " "
	}
	if g.one(4) {
		s += pick(g, []string{"meta l4proto ", "ip protocol "}) + not() + pick(g, []string{"tcp", "udp", "icmp", "{ tcp, udp }"}) + " "
	} else if g.one(3) {
		s += pick(g, []string{"tcp", "udp"}) + pick(g, []string{" dport ", " dport ", " sport "}) + not() + pick(g, []string{"80", "1-1023", "{ 53, 80, 8000-9000 }", "@ports", "20000-30000"}) + " "
	} else if g.one(6) {
		s += pick(g, []string{"ip daddr . tcp dport @pairs", "ip daddr . udp dport { 10.99.1.1 . 53, 10.20.0.10 . 443 }", "icmp type echo-request", "tcp flags syn", "tcp flags & (fin | syn | rst | ack) == syn", "tcp flags != syn"}) + " "
	}
	if leaves && g.one(5) {
		s += "oifname " + not() + pick(g, []string{"\"eth0\"", "\"eth*\"", "{ \"eth1\", \"cali*\" }"}) + " "
	}
	if g.one(5) {
		s += pick(g, []string{"meta mark 0x4000", "meta mark & 0x4000 == 0x4000", "meta mark and 0x4000 != 0x4000", "meta mark != 0", "meta mark { 0-5, 0x4000 }", "ct mark & 0x80 == 0x80", "ct mark 0"}) + " "
	}
	if g.one(5) {
		s += pick(g, []string{"fib daddr type != local", "fib daddr type local", "fib daddr type { local, multicast }", "fib daddr type unicast"}) + " "
	}
	if g.one(7) {
		s += pick(g, []string{"ct state new", "ct state established,related", "ct state { new, established }", "ct state != new", "ct direction original"}) + " "
	}
	if g.one(40) {
		s += pick(g, []string{"numgen random mod 2 0", "meta length 20-40", "ip ttl 63", "meta random & 1 == 1", "limit rate 100/second"}) + " "
		g.opaque = true
	}
	return s
}

// ruleGenerator makes random rules.
type ruleGenerator struct {
	r          *rand.Rand
	opaque, xt bool
}

func (g *ruleGenerator) one(n int) bool { return g.r.IntN(n) == 0 }

func pick[T any](g *ruleGenerator, of []T) T { return of[g.r.IntN(len(of))] }

func (g *ruleGenerator) set() ruleSet {
	s := ruleSet{sets: "create ranges hash:net family inet\nadd ranges 10.20.0.0/16\nadd ranges 192.168.0.0/16\ncreate hosts hash:ip family inet\nadd hosts 10.20.0.10\nadd hosts 172.16.0.13\n" +
		"create services hash:ip,port family inet\nadd services 10.20.0.10,tcp:80\nadd services 10.99.1.1,udp:53\ncreate holes hash:net family inet\nadd holes 10.0.0.0/8\nadd holes 10.20.0.0/16 nomatch\n"}
	switch g.r.IntN(6) {
	case 0, 1:
		s.nft = g.iptables()
	case 2:
		s.legacy = g.iptables()
	case 3:
		s.nft, s.legacy = g.iptables(), g.iptables()
	case 4:
		s.native = g.native()
	default:
		s.nft, s.native = g.iptables(), g.native()
	}
	s.opaque, s.xt = g.opaque, g.xt
	if strings.Contains(s.nft, "MARK --") && strings.Contains(s.legacy, "ark") || strings.Contains(s.legacy, "MARK --") && strings.Contains(s.nft, "ark") {
		s.opaque = true // which of two chains with one priority comes first, no dump tells
	}
	return s
}

// iptables makes what iptables-restore reads.
func (g *ruleGenerator) iptables() string {
	var b strings.Builder
	if g.one(3) {
		b.WriteString("*mangle\n:PREROUTING ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n")
		for _, c := range []string{"PREROUTING", "FORWARD", "POSTROUTING"} {
			for range g.r.IntN(3) {
				b.WriteString("-A " + c + g.matches(c) + g.markTarget() + "\n")
			}
		}
		b.WriteString("COMMIT\n")
	}
	b.WriteString("*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n")
	chains := g.r.IntN(5)
	for i := range chains {
		fmt.Fprintf(&b, ":U%d - [0:0]\n", i)
	}
	if g.one(4) {
		b.WriteString("-A PREROUTING" + g.matches("PREROUTING") + g.markTarget() + "\n")
	}
	for c := -1; c < chains; c++ {
		name := "POSTROUTING"
		if c >= 0 {
			name = fmt.Sprintf("U%d", c)
		}
		for range 1 + g.r.IntN(5) {
			b.WriteString("-A " + name + g.matches("POSTROUTING") + g.target(c, chains) + "\n")
		}
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

func (g *ruleGenerator) not() string {
	if g.one(4) {
		return " !"
	}
	return ""
}

// matches makes the conditions of a rule in some chain.
func (g *ruleGenerator) matches(chain string) string {
	s := ""
	if g.one(3) {
		s += g.not() + " -s " + pick(g, rulesRanges)
	}
	if g.one(2) {
		s += g.not() + " -d " + pick(g, rulesRanges)
	}
	proto := ""
	if g.one(3) {
		not := g.not()
		proto = pick(g, []string{"udp", "tcp", "icmp"})
		s += not + " -p " + proto
		if not != "" || proto == "icmp" {
			proto = ""
		}
	}
	if proto != "" && g.one(2) {
		switch g.r.IntN(4) {
		case 0:
			s += " -m " + proto + g.not() + fmt.Sprintf(" --dport %d", pick(g, rulesPorts))
		case 1:
			s += " -m " + proto + g.not() + " --dport 1:1023"
		case 2:
			s += " -m multiport" + g.not() + " --dports 53,80,8000:9000"
		default:
			s += " -m " + proto + g.not() + " --sport 20000:30000"
		}
		if proto == "tcp" && g.one(3) {
			s += pick(g, []string{" --syn", " ! --syn", " --tcp-flags SYN,RST SYN", " --tcp-flags ALL ACK"})
		}
	}
	if chain == "POSTROUTING" && g.one(4) {
		s += g.not() + " -o " + pick(g, []string{"eth0", "eth1", "eth+", "docker0", "cali+"})
	}
	if chain == "PREROUTING" && g.one(3) {
		s += g.not() + " -i " + pick(g, []string{"cbr0", "eth0", "cbr+"})
	}
	if g.one(5) {
		s += " -m mark" + g.not() + " --mark " + pick(g, []string{"0x4000/0x4000", "0x1", "0x0", "0xa00/0xe00", "0x0/0x4000"})
	}
	if g.one(8) {
		s += " -m connmark" + g.not() + " --mark " + pick(g, []string{"0x80/0x80", "0x0", "0x1/0x1"})
	}
	if g.one(5) {
		s += " -m addrtype" + g.not() + pick(g, []string{" --dst-type LOCAL", " --dst-type LOCAL", " --dst-type UNICAST", " --dst-type MULTICAST"})
	}
	if g.one(6) {
		s += " -m set" + g.not() + pick(g, []string{" --match-set ranges dst", " --match-set hosts src", " --match-set hosts dst", " --match-set services dst,dst", " --match-set holes dst"})
		g.xt = true
	}
	if g.one(8) {
		s += pick(g, []string{" -m conntrack --ctstate NEW", " -m conntrack ! --ctstate NEW", " -m conntrack --ctstate RELATED,ESTABLISHED", " -m state --state NEW", " -m conntrack ! --ctstate RELATED,ESTABLISHED"})
	}
	if g.one(8) {
		s += " -m iprange" + g.not() + pick(g, []string{" --dst-range 10.20.0.5-10.20.9.200", " --src-range 172.16.0.13-172.16.0.14"})
	}
	if g.one(6) {
		s += ` -m comment --comment "` + pick(g, []string{`a \"quoted\" word`, "-j ACCEPT", "it's ! -d 10.0.0.0/8", "x"}) + `"`
	}
	if g.one(40) {
		s += pick(g, []string{" -m statistic --mode random --probability 0.5", " -m length --length 20:40", " -m ttl --ttl-eq 63", " -m u32 --u32 0x0=0x0", " -m pkttype --pkt-type unicast", " -m physdev --physdev-in veth0"})
		g.opaque = true
	}
	return s
}

func (g *ruleGenerator) markTarget() string {
	return pick(g, []string{
		" -j MARK --set-xmark 0x4000/0x4000", " -j MARK --set-mark 0x1", " -j MARK --or-mark 0x4000", " -j MARK --and-mark 0xffff", " -j MARK --xor-mark 0x201", " -j MARK --set-xmark 0xa00/0xe00",
		" -j CONNMARK --set-xmark 0x80/0x80", " -j CONNMARK --save-mark", " -j CONNMARK --restore-mark", " -j CONNMARK --save-mark --nfmask 0x4000 --ctmask 0x4000", " -j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xff", "",
	})
}

// target makes the target of a rule of chain number c; -1 is POSTROUTING.
func (g *ruleGenerator) target(c, chains int) string {
	switch n := g.r.IntN(12); {
	case n < 3 && c+1 < chains:
		return fmt.Sprintf(" %s U%d", pick(g, []string{"-j", "-j", "-j", "-g"}), c+1+g.r.IntN(chains-c-1))
	case n < 5:
		return " -j RETURN"
	case n < 6:
		return " -j ACCEPT"
	case n < 8:
		return " -j MASQUERADE" + pick(g, []string{"", " --random-fully"})
	case n < 9:
		return " -j SNAT --to-source " + pick(g, []string{nodeIP, "10.10.0.9", "10.10.0.5-10.10.0.7"})
	case n < 10:
		if g.one(4) {
			g.xt = true
			return " -j NETMAP --to 10.30.0.0/16"
		}
		return " -j NFLOG --nflog-group 5"
	case n < 11:
		return g.markTarget()
	}
	return ""
}

// probes makes packets, each of a connection of its own.
func (g *ruleGenerator) probes(w *rulesWorld) []probe {
	var out []probe
	for range 40 {
		w.id++
		out = append(out, probe{
			ID: w.id, Proto: pick(g, []string{"udp", "udp", "tcp", "icmp"}), Src: netip.MustParseAddr(pick(g, rulesSources)), Dst: netip.MustParseAddr(pick(g, rulesDestinations)),
			Sport: uint16(10000 + w.id%50000), Dport: pick(g, rulesPorts),
		})
	}
	slices.SortFunc(out, func(a, b probe) int { return int(a.ID) - int(b.ID) })
	return out
}
