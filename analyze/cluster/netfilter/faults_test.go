package netfilter

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// Rules that are damaged below: a mark that decides first, a chain with its end, and packets that tell each rule from the others.
var (
	whole = natTable("IP-MASQ KUBE-MARK-MASQ KUBE-POSTROUTING", `-A PREROUTING -d 10.96.0.0/16 -i pod+ -j KUBE-MARK-MASQ
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
`+agent("IP-MASQ", "10.84.0.0/14 192.168.0.0/16")+`-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
`)
	wholeAsked = []question{
		{"10.84.3.7 > 10.86.1.1 in=eth1 out=eth0 local=10.20.0.9", "kept", "-d 10.84.0.0/14", ""},
		{"10.84.3.7 > 192.168.1.1 in=eth1 out=eth0 local=10.20.0.9", "kept", "-d 192.168.0.0/16", ""},
		{"10.84.3.7 > 10.99.1.1 in=eth1 out=eth0 local=10.20.0.9", "masqueraded random", "-A IP-MASQ", ""},
		{"10.84.3.7 > 10.86.1.1 mark=0x4000 in=eth1 out=eth0 local=10.20.0.9", "masqueraded random", "-A KUBE-POSTROUTING", ""},
		{"10.84.3.7 > 10.20.0.9 in=eth1 out=lo local=10.20.0.9", "kept", "", ""},
		{"10.84.3.7 > 10.96.1.1 in=pod1 out=eth0 local=10.20.0.9", "masqueraded random", "-A KUBE-POSTROUTING", ""},
	}
	// The same as iptables -S and -L print it.
	wholeS = strings.NewReplacer(":PREROUTING ACCEPT [0:0]", "-P PREROUTING ACCEPT", ":INPUT ACCEPT [0:0]", "-P INPUT ACCEPT", ":OUTPUT ACCEPT [0:0]", "-P OUTPUT ACCEPT",
		":POSTROUTING ACCEPT [0:0]", "-P POSTROUTING ACCEPT", ":IP-MASQ - [0:0]", "-N IP-MASQ", ":KUBE-MARK-MASQ - [0:0]", "-N KUBE-MARK-MASQ", ":KUBE-POSTROUTING - [0:0]", "-N KUBE-POSTROUTING").
		Replace(strings.SplitN(strings.SplitN(whole, "*nat\n", 2)[1], "COMMIT", 2)[0])
)

const wholeL = `Chain PREROUTING (policy ACCEPT 0 packets, 0 bytes)
 pkts bytes target     prot opt in     out     source               destination         
    0     0 KUBE-MARK-MASQ  0    --  pod+   *       0.0.0.0/0            10.96.0.0/16        

Chain INPUT (policy ACCEPT 0 packets, 0 bytes)
 pkts bytes target     prot opt in     out     source               destination         

Chain OUTPUT (policy ACCEPT 0 packets, 0 bytes)
 pkts bytes target     prot opt in     out     source               destination         

Chain POSTROUTING (policy ACCEPT 0 packets, 0 bytes)
 pkts bytes target     prot opt in     out     source               destination         
    0     0 KUBE-POSTROUTING  0    --  *      *       0.0.0.0/0            0.0.0.0/0            /* kubernetes postrouting rules */
    0     0 IP-MASQ    0    --  *      *       0.0.0.0/0            0.0.0.0/0            /* ip-masq-agent: ensure nat POSTROUTING directs all non-LOCAL destination traffic to our custom IP-MASQ chain */ ADDRTYPE match dst-type !LOCAL

Chain IP-MASQ (1 references)
 pkts bytes target     prot opt in     out     source               destination         
    0     0 RETURN     0    --  *      *       0.0.0.0/0            10.84.0.0/14         /* ip-masq-agent: local traffic is not subject to MASQUERADE */
    0     0 RETURN     0    --  *      *       0.0.0.0/0            192.168.0.0/16       /* ip-masq-agent: local traffic is not subject to MASQUERADE */
    0     0 MASQUERADE  0    --  *      *       0.0.0.0/0            0.0.0.0/0            /* ip-masq-agent: outbound traffic is subject to MASQUERADE (must be last in chain) */ random-fully

Chain KUBE-MARK-MASQ (1 references)
 pkts bytes target     prot opt in     out     source               destination         
    0     0 MARK       0    --  *      *       0.0.0.0/0            0.0.0.0/0            MARK or 0x4000

Chain KUBE-POSTROUTING (1 references)
 pkts bytes target     prot opt in     out     source               destination         
    0     0 RETURN     0    --  *      *       0.0.0.0/0            0.0.0.0/0            mark match ! 0x4000/0x4000
    0     0 MARK       0    --  *      *       0.0.0.0/0            0.0.0.0/0            MARK xor 0x4000
    0     0 MASQUERADE  0    --  *      *       0.0.0.0/0            0.0.0.0/0            /* kubernetes service traffic requiring SNAT */ random-fully
`

const wholeNFT = `table ip nat {
	chain PREROUTING {
		type nat hook prerouting priority dstnat; policy accept;
		iifname "pod*" ip daddr 10.96.0.0/16 counter packets 0 bytes 0 jump KUBE-MARK-MASQ
	}

	chain POSTROUTING {
		type nat hook postrouting priority srcnat; policy accept;
		 counter packets 0 bytes 0 jump KUBE-POSTROUTING
		 fib daddr type != local counter packets 0 bytes 0 jump IP-MASQ
	}

	chain IP-MASQ {
		ip daddr 10.84.0.0/14  counter packets 0 bytes 0 return
		ip daddr 192.168.0.0/16  counter packets 0 bytes 0 return
		 counter packets 0 bytes 0 masquerade fully-random
	}

	chain KUBE-MARK-MASQ {
		counter packets 0 bytes 0 meta mark set mark or 0x4000
	}

	chain KUBE-POSTROUTING {
		meta mark & 0x00004000 != 0x00004000 counter packets 0 bytes 0 return
		counter packets 0 bytes 0 meta mark set mark xor 0x4000
		 counter packets 0 bytes 0 masquerade fully-random
	}
}
`

// never holds that a damaged text is refused, or gives no answer that the whole text does not give.
func never(t *testing.T, what, damaged string, asked []question) {
	t.Helper()
	var rs Ruleset
	if err := rs.Read(damaged, "damaged"); err != nil {
		return
	}
	for _, q := range asked {
		v := rs.Ask(packetOf(t, q.ask))
		switch {
		case v.Answer == Undetermined && (v.Why == "" || v.Settle == "" && !v.Diverted):
			t.Errorf("%s\n%s\n got %+v without a reason, or what would settle it", what, q.ask, v)
		case v.Answer != Undetermined && !strings.HasPrefix(q.want, v.Answer.String()):
			t.Errorf("%s\n%s\n got %s by %q (%s)\nwant %s or undetermined\nnotes %q", what, q.ask, answerOf(v), v.Place.Rule, v.Why, q.want, rs.Notes)
		case v.To != "" && !strings.Contains(q.want, "to "+v.To+" ") && !strings.HasSuffix(q.want, "to "+v.To):
			t.Errorf("%s\n%s\n got %s\nwant %s", what, q.ask, answerOf(v), q.want)
		}
	}
}

// TestWhole holds that the forms are the same before they are damaged.
func TestWhole(t *testing.T) {
	check(t, wholeAsked, whole)
	check(t, wholeAsked, wholeS)
	check(t, inNFT(wholeAsked), wholeL)
	check(t, inNFT(wholeAsked), wholeNFT)
}

// TestCut cuts forms that say where they end at every byte.
func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		asked []question
	}{
		"iptables-save": {whole, wholeAsked},
		"nft":           {wholeNFT, wholeAsked},
		"AWS": {natTable("AWS-CONNMARK-CHAIN-0 AWS-SNAT-CHAIN-0", awsRules), []question{
			{"10.0.7.33 > 10.0.200.1 in=eni5a0 out=eth0", "kept", "", ""},
			{"10.0.7.33 > 10.8.3.3 in=eni5a0 out=eth0", "kept", "", ""},
			{"10.0.7.33 > 8.8.8.8 in=eni5a0 out=eth0", "masqueraded random to 10.0.1.10", "", ""},
		}},
		"AWS, nft": {awsNFT, []question{
			{"10.0.7.33 > 10.0.200.1 in=eni5a0 out=eth0", "kept", "", ""},
			{"10.0.7.33 > 8.8.8.8 in=eni5a0 out=eth0", "masqueraded random to 10.0.1.10", "", ""},
		}},
		"kube-proxy": {natTable(kubeProxyChains, kubeProxyRules), []question{
			{"10.244.1.5 > 10.244.2.9 tcp/8080 in=cni0 out=eth0", "kept", "", ""},
			{"10.244.1.5 > 10.244.2.9 tcp/8080 mark=0x4000 in=cni0 out=eth0", "masqueraded random", "", ""},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for n := range c.text {
				from := max(0, n-60)
				never(t, fmt.Sprintf("cut at %d, behind %q", n, c.text[from:n]), c.text[:n], c.asked)
				if t.Failed() {
					break
				}
			}
		})
	}
}

// TestCutKeepsWhatIsThere holds that rules before a cut still decide.
func TestCutKeepsWhatIsThere(t *testing.T) {
	before, _, _ := strings.Cut(whole, "-A IP-MASQ -m comment")
	check(t, []question{
		{"10.84.3.7 > 10.86.1.1 out=eth0", "undetermined", "", "iptables-save"}, // KUBE-POSTROUTING is behind the cut
		{"10.84.3.7 > 10.99.1.1 out=eth0", "undetermined", "", "iptables-save"},
	}, before)
	head, _, _ := strings.Cut(natTable("IP-MASQ", agent("IP-MASQ", "10.84.0.0/14 192.168.0.0/16")), "-A IP-MASQ -m comment")
	check(t, []question{
		{"10.84.3.7 > 10.86.1.1 out=eth0", "kept", "-d 10.84.0.0/14", ""},
		{"10.84.3.7 > 10.99.1.1 out=eth0", "undetermined", "", "iptables-save"},
	}, head)
	check(t, []question{
		{"10.84.3.7 > 10.86.1.1 out=eth0", "kept", "-d 10.84.0.0/14", ""},
		{"10.84.3.7 > 10.99.1.1 out=eth0", "undetermined", "", "iptables-save"},
	}, head+"-A IP-MASQ -m comment --comment \"ip-masq-agent: outbound traffic is su")
	var rs Ruleset
	if err := rs.Read(head, "head"); err != nil || !strings.Contains(strings.Join(rs.Notes, "\n"), "COMMIT") {
		t.Errorf("notes %q, %v: want what is missing", rs.Notes, err)
	}
}

// TestCutInAnOption ends iptables -S, which has no end mark, in the middle of a rule: the rule is not whole without its target.
func TestCutInAnOption(t *testing.T) {
	asked := []question{{"10.84.3.7 > 10.86.1.1 out=eth0", "kept", "", ""}, {"10.84.3.7 > 8.8.8.8 out=eth0", "masqueraded random", "", ""}}
	text := "-P POSTROUTING ACCEPT\n-N IP-MASQ\n" + agent("IP-MASQ", "10.84.0.0/14 192.168.0.0/16")
	last := strings.LastIndex(text, "-A IP-MASQ")
	for n := range text {
		switch {
		case n <= strings.Index(text, "-A"), n < last && text[n] == '\n', n > 0 && text[n-1] == '\n': // whole lines: nothing shows the cut
			continue
		case strings.HasSuffix(text[:n], "-j RETURN"):
			continue
		}
		never(t, fmt.Sprintf("cut at %d, behind %q", n, text[max(0, n-60):n]), text[:n], asked)
		if t.Failed() {
			break
		}
	}
}

// TestCutListing cuts iptables -L, of which a row may be whole at any word: what is asked here is that it is read at all.
func TestCutListing(t *testing.T) {
	for n := range wholeL {
		var rs Ruleset
		if err := rs.Read(wholeL[:n], "cut"); err == nil {
			for _, q := range wholeAsked {
				rs.Ask(packetOf(t, q.ask))
			}
		}
	}
}

// TestDamagedLine puts something unreadable in the place of each line of rules.
func TestDamagedLine(t *testing.T) {
	for name, text := range map[string]string{"iptables-save": whole, "iptables -S": wholeS, "iptables -L": wholeL, "nft": wholeNFT} {
		for _, garbage := range []string{"@@ damaged @@", "<<<<<<< HEAD", "... 12 lines omitted ...", "\x00\x01\x02\xff"} {
			lines := strings.Split(text, "\n")
			for i, l := range lines {
				if !strings.HasPrefix(l, "-A ") && !strings.HasPrefix(l, "    0") && !strings.Contains(l, "counter") {
					continue
				}
				damaged := append(append(append([]string{}, lines[:i]...), garbage), lines[i+1:]...)
				never(t, fmt.Sprintf("%s: %q in the place of %q", name, garbage, l), strings.Join(damaged, "\n"), wholeAsked)
			}
		}
	}
}

// TestWrapped breaks lines as terminals and mail programs do. (Of nft's text each part of a line is a rule too.)
func TestWrapped(t *testing.T) {
	for name, text := range map[string]string{"iptables-save": whole, "iptables -S": wholeS, "iptables -L": wholeL} {
		for width := 20; width < 200; width += 9 {
			var b strings.Builder
			for l := range strings.Lines(text) {
				for len(l) > width+1 {
					at := strings.LastIndexByte(l[:width], ' ')
					if at <= 0 {
						at = width
					}
					b.WriteString(l[:at] + "\n")
					l = l[at:]
				}
				b.WriteString(l)
			}
			never(t, fmt.Sprintf("%s, %d columns", name, width), b.String(), wholeAsked)
		}
	}
}

// TestTypography reads rules that a word processor went over: dashes and quotes are other ones.
func TestTypography(t *testing.T) {
	for _, r := range []*strings.Replacer{
		strings.NewReplacer("--", "–"), strings.NewReplacer("--", "—"), strings.NewReplacer(" -", " –"), strings.NewReplacer(` "`, " “", `" `, "” "),
		strings.NewReplacer(" ", "\u00a0"), strings.NewReplacer("--", "–", ` "`, " “", `" `, "” "), strings.NewReplacer("! ", "!"), strings.NewReplacer("! ", "\\! "),
	} {
		never(t, r.Replace("-- - \" ! "), r.Replace(whole), wholeAsked)
		never(t, r.Replace("-- - \" ! "), r.Replace(wholeS), wholeAsked)
	}
	// What is at stake: a condition that is left out.
	never(t, "a dash", natTable("", "-A POSTROUTING -m mark –mark 0x4000/0x4000 -j MASQUERADE\n"), []question{{"10.84.3.7 > 8.8.8.8", "kept", "", ""}})
}

// TestShapes reads whole rules in other clothes: the answers stay.
func TestShapes(t *testing.T) {
	filter := "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE-FORWARD - [0:0]\n-A FORWARD -j KUBE-FORWARD\n-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n"
	counted := func(n string) string { return strings.ReplaceAll(whole, "\n-A ", "\n["+n+"] -A ") }
	for name, text := range map[string]string{
		"CRLF":                     strings.ReplaceAll(whole, "\n", "\r\n"),
		"byte order mark":          "\ufeff" + whole,
		"byte order mark and CRLF": "\ufeff" + strings.ReplaceAll(whole, "\n", "\r\n"),
		"tabs":                     strings.NewReplacer(" -j ", "\t-j\t", " --", "\t--").Replace(whole),
		"indented":                 strings.ReplaceAll(whole, "\n", "\n\t  "),
		"trailing blanks":          strings.ReplaceAll(whole, "\n", "  \n"),
		"no newline at the end":    strings.TrimSuffix(whole, "\n"),
		"blank lines":              strings.ReplaceAll(whole, "\n", "\n\n"),
		"prompts":                  "root@node-1:/# iptables-save -t nat\n" + whole + "root@node-1:/# exit\n",
		"another prompt":           "[core@node-1 ~]$ sudo iptables-save\n" + filter + whole + "[core@node-1 ~]$ \n",
		"words around":             "Hi, these are the rules of the node, made with iptables-save:\n\n```\n" + whole + "```\n\nThanks!\n",
		"comments":                 strings.ReplaceAll(whole, "\n-A ", "\n# why?\n-A "),
		"counters":                 counted("12:3456"),
		"filter first":             filter + whole,
		"filter last":              whole + filter,
		"twice":                    whole + whole,
		"twice, with counters":     counted("12:3456") + counted("13:3540"),
		"end of the filter table":  "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n# Completed on Mon Nov 30 09:35:03 2026\n" + whole,
		"-S with prompts":          "$ sudo iptables -t nat -S\n" + wholeS + "$\n",
		"-S, its table left out":   "$ iptables -S\n" + wholeS,
		"-S, a counter at its end": wholeS + "-A KUBE-POSTROUTING -d 192.0.2.1/32\n",
		"-S with words behind":     wholeS + "\nThat is all of them.\nThanks!\n",
		"-S of all tables":         "# iptables -S\n-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n-N IP-MASQ\n-A IP-MASQ -j ACCEPT\n# iptables -t nat -S\n" + wholeS,
		"-S with CRLF":             strings.ReplaceAll(wholeS, "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) { check(t, wholeAsked, text) })
	}
	for name, text := range map[string]string{
		"nft CRLF":               strings.ReplaceAll(wholeNFT, "\n", "\r\n"),
		"nft indented":           strings.ReplaceAll("  "+wholeNFT, "\n", "\n  "),
		"nft with prompts":       "# nft list ruleset\n" + wholeNFT + "# \n",
		"nft with warning":       "# Warning: table ip nat is managed by iptables-nft, do not touch!\n" + wholeNFT,
		"nft handles":            strings.NewReplacer("nat {", "nat { # handle 4", "jump IP-MASQ\n", "jump IP-MASQ # handle 14\n", "return\n", "return # handle 9\n").Replace(wholeNFT),
		"-L, its table left out": "$ iptables -nvL\n" + wholeL,
		"-L double spaced":       strings.ReplaceAll(wholeL, "\n", "\n\n"),
		"-L of all tables":       "# iptables -nvL\n" + strings.Replace(listing("ACCEPT     0    --  *      eth0    0.0.0.0/0            0.0.0.0/0"), "POSTROUTING", "FORWARD", 1) + "\n# iptables -t nat -nvL\n" + wholeL,
		"-S and -L":              "# iptables -t nat -S\n" + wholeS + "# iptables -t filter -L\nChain INPUT (policy ACCEPT)\ntarget     prot opt source               destination\n",
		"-L CRLF":                strings.ReplaceAll(wholeL, "\n", "\r\n"),
		"-L tabs":                strings.ReplaceAll(wholeL, "    0     0 ", "\t0\t0\t"),
		"-L with prompts":        "$ sudo iptables -t nat -L -n -v\n" + wholeL + "$\n",
		"-L with line numbers":   numbered(wholeL),
		"-L without blank ends":  strings.ReplaceAll(wholeL, "         \n", "\n"),
	} {
		t.Run(name, func(t *testing.T) { check(t, inNFT(wholeAsked), text) })
	}
}

// numbered is a listing with --line-numbers.
func numbered(list string) string {
	var b strings.Builder
	n := 0
	for l := range strings.Lines(list) {
		switch {
		case strings.HasPrefix(l, " pkts"):
			n = 0
			l = "num  " + l
		case strings.HasPrefix(l, "    0"):
			n++
			l = fmt.Sprintf("%-4d ", n) + l
		}
		b.WriteString(l)
	}
	return b.String()
}

// TestNotTheRules asks texts that do not hold what decides.
func TestNotTheRules(t *testing.T) {
	const ask = "10.84.3.7 > 10.86.1.1 in=eth1 out=eth0"
	filter := "# Generated by iptables-save v1.8.9 (nf_tables) on Mon Nov 30 09:35:03 2026\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n-A FORWARD -s 10.84.0.0/14 -j ACCEPT\nCOMMIT\n"
	other := strings.ReplaceAll(whole, "10.84.0.0/14", "10.87.0.0/16")
	for _, c := range []struct {
		name, text, why, settle string
	}{
		{"filter alone", filter, "no nat table", "iptables-save"},
		{"nft, filter alone", "table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy accept;\n\t}\n}\n", "no nat table", "nft list ruleset"},
		{"iptables -S of filter", "-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n-A FORWARD -s 10.84.0.0/14 -j ACCEPT\n", "no nat table", "iptables-save"},
		{"IPv6 alone", strings.ReplaceAll(whole, "iptables-save", "ip6tables-save"), "IPv4", "iptables-save"},
		{"two dumps, different", whole + other, "more than once", "one dump"},
		{"two dumps, one of them cut", whole + whole[:len(whole)/2], "more than once", "one dump"},
		{"the chain alone", "-A IP-MASQ -d 10.84.0.0/14 -j RETURN\n-A IP-MASQ -j MASQUERADE\n", "POSTROUTING", "iptables-save"},
		{"no way into the chain", natTable("", "")[:strings.Index(natTable("", ""), ":POST")], "POSTROUTING", "iptables-save"},
		{"a jump to a chain that is missing", natTable("", "-A POSTROUTING -j IP-MASQ\n"), "IP-MASQ", "iptables-save"},
		{"legacy has rules too", "# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n" + whole, "legacy", "iptables-legacy-save"},
		{"nft hides a set", strings.Replace(wholeNFT, "\t\tip daddr 10.84", "\t\txt match \"set\" counter packets 0 bytes 0 masquerade\n\t\tip daddr 10.84", 1), "set", "iptables-save"},
		{"nft hides a set in a comment", strings.Replace(wholeNFT, "\t\tip daddr 10.84", "\t\t# match-set KUBE-LOOP-BACK dst,dst,src counter packets 0 bytes 0 masquerade\n\t\tip daddr 10.84", 1), "KUBE-LOOP-BACK", "iptables-save"},
		{"nft hides a target", strings.Replace(wholeNFT, "ip daddr 10.84.0.0/14  counter packets 0 bytes 0 return", "ip daddr 10.84.0.0/14 counter packets 0 bytes 0 xt target \"NOVEL\"", 1), "NOVEL", ""},
		{"a target of no chain", strings.Replace(whole, "-A IP-MASQ -d 10.84.0.0/14", "-A IP-MASQ -d 10.84.0.0/14 -j NOVEL\n-A IP-MASQ -d 10.84.0.0/14", 1), "NOVEL", ""},
		{"a match that is not known", strings.Replace(whole, "-A IP-MASQ -d 10.84.0.0/14", "-A IP-MASQ -m novel --strange 7 -j MASQUERADE\n-A IP-MASQ -d 10.84.0.0/14", 1), "--strange", ""},
		// A table is read to its end, and behind it one begins whose way in is cut off.
		{"nft, the second table cut", "table ip own {\n\tchain post {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n\t\tip saddr 172.17.0.0/16 masquerade\n\t}\n}\ntable ip nat {\n\tchain IP-MASQ {\n\t\tcounter packets 0 bytes 0 masquerade\n", "cut", "nft list ruleset"},
		{"a second store cut in its head", strings.ReplaceAll(natTable("", ""), " (nf_tables)", "") + "# Generated by iptables-save v1.8.9 (nf_tables) on Mon Nov 30 09:35:03 2026\n*nat\n:PREROUTING ACCEPT [0:0]\n", "cut", "iptables-save"},
		// What one command prints of another table is none of nat's.
		{"-S of two tables", "# iptables -t mangle -S\n-P PREROUTING ACCEPT\n-P POSTROUTING ACCEPT\n-A POSTROUTING -o eth0 -j ACCEPT\n# iptables -t nat -S\n-P PREROUTING ACCEPT\n-P POSTROUTING ACCEPT\n-A POSTROUTING -m novel --strange 7 -j MASQUERADE\n", "--strange", ""},
		{"-S of two tables, no prompts", "-P PREROUTING ACCEPT\n-P POSTROUTING ACCEPT\n-A POSTROUTING -o eth0 -j ACCEPT\n-P PREROUTING ACCEPT\n-P POSTROUTING ACCEPT\n-A POSTROUTING -j MASQUERADE\n", "more than once", ""},
		{"-L of two tables, no prompts", listing("ACCEPT     0    --  *      eth0    0.0.0.0/0            0.0.0.0/0") + "\n" + listing("MASQUERADE  0    --  *      *       0.0.0.0/0            0.0.0.0/0"), "more than once", ""},
		{"-L of two tables", "# iptables -t mangle -nvL\n" + listing("ACCEPT     0    --  *      eth0    0.0.0.0/0            0.0.0.0/0") + "\n# iptables -t nat -nvL\n" + listing("MASQUERADE  0    --  *      *       0.0.0.0/0            0.0.0.0/0            novel 7"), "novel", ""},
		// A rule that marks is in one of two dumps.
		{"mangle twice, different", marks("") + marks("-A PREROUTING -j MARK --set-xmark 0x4000/0x4000\n") + whole, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rs Ruleset
			if err := rs.Read(c.text, "text"); err != nil {
				t.Fatal(err)
			}
			v := rs.Ask(packetOf(t, ask))
			said := v.Why + " " + v.Place.Rule + " " + v.Place.Chain + " " + strings.Join(rs.Notes, " ")
			if v.Answer != Undetermined || v.Why == "" || !strings.Contains(said, c.why) || !strings.Contains(v.Settle, c.settle) {
				t.Errorf("got %s by %q: %s; settle %q; notes %q\nwant undetermined, for %q, settled by %q", answerOf(v), v.Place.Rule, v.Why, v.Settle, rs.Notes, c.why, c.settle)
			}
		})
	}
}

func listing(rule string) string {
	return "Chain POSTROUTING (policy ACCEPT 0 packets, 0 bytes)\n pkts bytes target     prot opt in     out     source               destination\n    0     0 " + rule + "\n"
}

func marks(rule string) string {
	return "# Generated by iptables-save v1.8.9 (nf_tables) on Mon Nov 30 09:35:03 2026\n*mangle\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n" + rule + "COMMIT\n"
}

// TestSetsCut asks of sets that are not all in the input.
func TestSetsCut(t *testing.T) {
	rules := natTable("", "-A POSTROUTING -m set --match-set pools src -m set ! --match-set pools dst -j MASQUERADE\n")
	const list = "Name: pools\nType: hash:net\nRevision: 7\nHeader: family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x6b1b8a5f\nSize in memory: 568\nReferences: 2\nNumber of entries: 2\nMembers:\n10.48.0.0/16\n172.31.0.0/20\n"
	asked := []question{
		{"10.48.3.7 > 10.48.9.9", "kept", "", ""},
		{"10.48.3.7 > 172.31.1.1", "kept", "", ""},
		{"10.48.3.7 > 8.8.8.8", "masqueraded", "", ""},
		{"10.49.3.7 > 8.8.8.8", "kept", "", ""},
	}
	check(t, asked, rules, list)
	check(t, asked, rules, strings.ReplaceAll(list, "\n", "\r\n"))
	check(t, asked, rules+"$ ipset list\n"+list)
	cut, _, _ := strings.Cut(list, "172.31")
	check(t, []question{
		{"10.48.3.7 > 10.48.9.9", "kept", "", ""},
		{"10.48.3.7 > 172.31.1.1", "undetermined", "pools", "ipset save"},
		{"10.48.3.7 > 8.8.8.8", "undetermined", "pools", "ipset save"},
	}, rules, cut)
	for n := range list {
		if n > strings.Index(list, "10.48") && list[n] != '\n' {
			continue // another range, which nothing tells from the right one
		}
		never(t, fmt.Sprintf("cut at %d, behind %q", n, list[max(0, n-40):n]), rules+"\n"+list[:n], asked)
	}
}

// TestNoText gives what holds no rules: it is refused, and nothing is answered.
func TestNoText(t *testing.T) {
	var zip bytes.Buffer
	w := gzip.NewWriter(&zip)
	_, _ = w.Write([]byte(whole))
	_ = w.Close()
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(whole)) {
		wide = binary.LittleEndian.AppendUint16(wide, u)
	}
	for name, text := range map[string]string{
		"empty": "", "blank": " \r\n\t\n", "byte order mark": "\ufeff", "zeroes": strings.Repeat("\x00", 4096), "compressed": zip.String(), "two bytes a letter": string(wide),
		"comments": "# nothing\n", "quotes": `"" 00`, "prompt": "$ sudo iptables-save\n$\n", "error": "iptables-save v1.8.9 (legacy): Cannot initialize: Permission denied (you must be root)\n",
		"cut JSON": `{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {"family": "ip", "na`, "another JSON": `{"nftables": 7}`,
		"a long line": "-A POSTROUTING -m comment --comment \"" + strings.Repeat("x", maxLine) + "\" -j MASQUERADE\n",
	} {
		t.Run(name, func(t *testing.T) {
			var rs Ruleset
			err := rs.Read(text, "text")
			if err == nil {
				t.Error("no error")
			} else if msg := err.Error(); len(msg) > 300 || strings.ContainsAny(msg, "\n\x00") {
				t.Errorf("%.400q", msg)
			}
			if v := rs.Ask(packetOf(t, "10.84.3.7 > 10.86.1.1 out=eth0")); v.Answer != Undetermined || v.Why == "" || v.Settle == "" {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestListing6 reads what ip6tables -L prints: the chains behind a blank line are of the same table.
func TestListing6(t *testing.T) {
	const text = `Chain IP-MASQ (1 references)
 pkts bytes target     prot opt in     out     source               destination
    0     0 RETURN     0    --  *      *       ::/0                 fd00:84::/48
    0     0 MASQUERADE  0    --  *      *       ::/0                 ::/0

Chain POSTROUTING (policy ACCEPT 0 packets, 0 bytes)
 pkts bytes target     prot opt in     out     source               destination
    0     0 IP-MASQ    0    --  *      *       ::/0                 ::/0
`
	asked := []question{
		{"fd00:84::7 > fd00:84::9", "kept", "fd00:84::/48", ""},
		{"fd00:84::7 > 2001:db8::9", "masqueraded", "MASQUERADE", ""},
		{"10.84.3.7 > 10.99.1.1", "undetermined", "", "iptables-save"},
	}
	check(t, asked, text)
	check(t, asked, "# ip6tables -t nat -nvL\n"+text)
}

// TestHiddenJSON reads nft -j of rules that iptables-nft wrote: a comment is a match there, which asks for nothing.
func TestHiddenJSON(t *testing.T) {
	const text = `{"nftables": [{"metainfo": {"version": "1.0.6", "json_schema_version": 1}}, {"table": {"family": "ip", "name": "nat", "handle": 1}},
{"chain": {"family": "ip", "table": "nat", "name": "POSTROUTING", "handle": 1, "type": "nat", "hook": "postrouting", "prio": 100, "policy": "accept"}},
{"rule": {"family": "ip", "table": "nat", "chain": "POSTROUTING", "handle": 2, "expr": [{"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": "10.244.0.5"}},
{"xt": {"type": "match", "name": "comment"}}, {"counter": {"packets": 0, "bytes": 0}}, {"xt": {"type": "target", "name": "SNAT"}}]}},
{"rule": {"family": "ip", "table": "nat", "chain": "POSTROUTING", "handle": 3, "expr": [{"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": "10.244.0.6"}},
{"xt": {"type": "match", "name": "set"}}, {"counter": {"packets": 0, "bytes": 0}}, {"xt": {"type": "target", "name": "MASQUERADE"}}]}}]}`
	asked := []question{
		{"10.244.0.5 > 8.8.8.8", "masqueraded", "SNAT", ""},
		{"10.244.0.6 > 8.8.8.8", "undetermined", "", "iptables-save"},
		{"10.244.0.7 > 8.8.8.8", "kept", "", ""},
	}
	check(t, asked, text)
	check(t, asked, "\ufeff"+text+"\n")
	for n := range text {
		never(t, fmt.Sprintf("cut at %d", n), text[:n], asked)
	}
}

// TestCircles reads chains and sets that hold themselves, many times over: the kernel takes none of them, a text may.
func TestCircles(t *testing.T) {
	chains := natTable("A", "-A POSTROUTING -s 192.0.2.1/32 -j A\n"+strings.Repeat("-A A -s 10.84.0.0/30 -j A\n", 400))
	sets := natTable("", "-A POSTROUTING -m set --match-set a src -j MASQUERADE\n") + "create a list:set size 8\nadd a a\nadd a a\n"
	for _, text := range []string{chains, sets, strings.Replace(chains, "-s 192.0.2.1/32 ", "", 1)} {
		begin := time.Now()
		check(t, []question{{"10.84.0.0/16 > 8.8.8.8", map[bool]string{true: "kept", false: "undetermined"}[strings.Contains(text, "192.0.2.1")], "", ""}}, text)
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("took %s", took)
		}
	}
}

// Packets leave a chain by several ways, and with the marks that they have on each: what the rules behind a RETURN, an ACCEPT or a goto
// set is not on those that went before.
func TestMarksOfAllWaysOut(t *testing.T) {
	dump := func(mangle, nat string) string {
		return "*mangle\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n-A PREROUTING -m recent --name x -j MARK --set-xmark 0x1/0x1\n" + mangle + "COMMIT\n" +
			natTable("", nat)
	}
	const masquerade = "-A POSTROUTING -m mark --mark 0x1 -j MASQUERADE\n"
	for name, c := range map[string]struct {
		mangle string
		want   string
	}{
		"return":                       {"-A POSTROUTING -m mark --mark 0x1/0x1 -j RETURN\n-A POSTROUTING -j MARK --set-xmark 0x4000/0xffffffff\n", "undetermined"},
		"accept":                       {"-A POSTROUTING -m mark --mark 0x1/0x1 -j ACCEPT\n-A POSTROUTING -j MARK --set-xmark 0x4000/0xffffffff\n", "undetermined"},
		"return in a chain":            {"-A POSTROUTING -j A\n-A A -m mark --mark 0x1/0x1 -j RETURN\n-A A -j MARK --set-xmark 0x4000/0xffffffff\n", "undetermined"},
		"accept in a chain":            {"-A POSTROUTING -j A\n-A A -m mark --mark 0x1/0x1 -j ACCEPT\n-A A -j MARK --set-xmark 0x4000/0xffffffff\n", "undetermined"},
		"goto":                         {"-A POSTROUTING -m mark --mark 0x1/0x1 -g A\n-A POSTROUTING -j MARK --set-xmark 0x4000/0xffffffff\n-A A -p udp -j RETURN\n", "undetermined"},
		"goto from a chain":            {"-A POSTROUTING -j B\n-A B -m mark --mark 0x1/0x1 -g A\n-A B -j MARK --set-xmark 0x4000/0xffffffff\n-A A -p udp -j RETURN\n", "undetermined"},
		"all set the same":             {"-A POSTROUTING -m mark --mark 0x1/0x1 -j A\n-A POSTROUTING -j MARK --set-xmark 0x4000/0xffffffff\n-A A -p udp -j RETURN\n", "kept"},
		"set behind the return of all": {"-A POSTROUTING -j RETURN\n-A POSTROUTING -j MARK --set-xmark 0x1/0xffffffff\n", "undetermined"},
		"set for all":                  {"-A POSTROUTING -j MARK --set-xmark 0x1/0xffffffff\n", "masqueraded"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, []question{{"10.84.3.7 > 10.99.1.1 tcp/443 in=eth1 out=eth0 local=10.20.0.9", c.want, "", ""}}, dump(c.mangle, masquerade))
		})
	}
}

// A map of many elements that many rules ask does not become as many rules as the two make: what is too much is not known.
func TestLargeMaps(t *testing.T) {
	var b strings.Builder
	b.WriteString("table ip own {\n\tmap ways {\n\t\ttype ipv4_addr : verdict\n\t\telements = { ")
	const n = 3_000
	for i := range n {
		fmt.Fprintf(&b, "10.1.%d.%d : accept, ", i/256, i%256)
	}
	b.WriteString("192.0.2.1 : drop }\n\t}\n")
	text := func(asks int) string {
		return b.String() + leaves(strings.Repeat("\t\tip daddr vmap @ways\n", asks)+"\t\tmasquerade\n") + "}\n"
	}
	const asked, held = "172.16.0.13 > 203.0.113.9 udp/53 in=eth1 out=eth0", "172.16.0.13 > 10.1.9.9 udp/53 in=eth1 out=eth0"
	check(t, []question{{asked, "masqueraded", "masquerade", ""}, {held, "kept", "", ""}}, text(80))
	check(t, []question{{asked, "undetermined", "vmap @ways", "elements"}}, text(n))
	var rs Ruleset
	if err := rs.Read(text(n), "x"); err != nil {
		t.Fatal(err)
	}
	// Nor do many conditions of one rule, times the elements.
	var long Ruleset
	if err := long.Read(b.String()+leaves("\t\t"+strings.Repeat("iif 1 ", 3_000)+"ip daddr vmap @ways\n\t\tmasquerade\n")+"}\n", "x"); err != nil || long.spreads < maxSpreads {
		t.Errorf("%v, %d", err, long.spreads)
	}
	for _, c := range long.tables[0].order {
		if len(c.rules) > 3 {
			t.Errorf("%d rules of %d conditions", len(c.rules), len(c.rules[0].conditions))
		}
	}
	rules := 0
	for _, tb := range rs.tables {
		for _, c := range tb.order {
			rules += len(c.rules)
		}
	}
	if rules > maxSpreads+n {
		t.Errorf("%d rules", rules)
	}
}

// A person's note that rules were left out is no comment: what stood there may have decided.
func TestLeftOut(t *testing.T) {
	const asked = "10.84.3.7 > 8.8.8.8 in=eth1 out=eth0 local=10.20.0.9"
	for note, want := range map[string]string{
		"# (40 rules left out)": "undetermined", "# ...": "undetermined", "# [snip]": "undetermined", "# 12 more rules here": "undetermined", "# … und weitere": "undetermined",
		"# truncated": "undetermined", "# rules for Calico omitted": "undetermined", "# -- removed customer's rules --": "undetermined",
		"# removed kube-proxy last week": "masqueraded", "user@host:~/.../k8s$": "masqueraded", "# for the tunnel": "masqueraded", "# rules of the agent": "masqueraded", "# 10.0.0.0/8 is kept": "masqueraded", "~~~": "masqueraded", "# do not skip": "masqueraded",
	} {
		text := natTable("IP-MASQ", "-A POSTROUTING -j IP-MASQ\n"+note+"\n-A IP-MASQ -d 10.0.0.0/8 -j RETURN\n-A IP-MASQ -j MASQUERADE\n")
		t.Run(note, func(t *testing.T) { check(t, []question{{asked, want, "", ""}}, text) })
		t.Run("-L "+note, func(t *testing.T) {
			const head, row = " pkts bytes target     prot opt in     out     source               destination         \n", "  0    --  *      *       0.0.0.0/0            "
			check(t, []question{{asked, want, "", ""}}, "Chain PREROUTING (policy ACCEPT 0 packets, 0 bytes)\n"+head+"\nChain POSTROUTING (policy ACCEPT 0 packets, 0 bytes)\n"+head+
				"    0     0 IP-MASQ"+row+"0.0.0.0/0           \n\nChain IP-MASQ (1 references)\n"+head+"    0     0 RETURN"+row+"10.0.0.0/8          \n"+note+
				"\n    0     0 MASQUERADE"+row+"0.0.0.0/0           \n\nChain LAST (0 references)\n"+head)
		})
	}
}
