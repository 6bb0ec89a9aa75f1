package netfilter

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/srcproof/srcproof/capture/wire"
)

// What iptables -L prints, with -v, -n and --line-numbers or without.

// listed reads one listing.
type listed struct {
	rs      *Ruleset
	backend Backend
	name    string // of the table
	v6      bool
	ended   bool // a blank line stands behind the chain
	table   *table
	chain   *chain
	ifs     int // columns with interfaces: 1 yes, 0 no, -1 the head did not say
	lead    int // columns before the target: counters and numbers; valid iff ifs is not -1
}

// head reads "Chain POSTROUTING (policy ACCEPT 0 packets, 0 bytes)" and "Chain IP-MASQ (1 references)".
func (l *listed) head(line string) bool {
	rest, ok := strings.CutPrefix(line, "Chain ")
	if !ok {
		return false
	}
	name, what, ok := strings.Cut(rest, " (")
	if !ok {
		return false
	}
	if l.table == nil {
		l.table = l.rs.table(l.backend, l.name, !l.v6, l.v6)
	}
	c := l.table.chain(name)
	if c.declared || len(c.rules) > 0 {
		l.rs.note("chain " + name + " stands in the input more than once")
		c.around = "stands in the input more than once"
	}
	c.declared = true
	if strings.HasPrefix(what, "policy ") {
		c.builtin()
		c.drops = strings.HasPrefix(what, "policy DROP")
	}
	l.chain, l.ifs = c, -1
	return true
}

// mayGoOn is chain.mayGoOn of the last chain.
func (l *listed) mayGoOn() {
	if l.chain != nil && (!l.table.isEmpty() || l.ifs < 0) { // the columns' names end the head
		l.chain.mayGoOn()
	}
}

// row reads a rule.
func (l *listed) row(line string, number int) bool {
	if l.chain == nil {
		return false
	}
	words := strings.Fields(line)
	if slices.Contains(words, "target") && slices.Contains(words, "prot") {
		l.ifs, l.lead = 0, slices.Index(words, "target")
		if slices.Contains(words, "in") && slices.Contains(words, "out") {
			l.ifs = 1
		}
		return true
	}
	at := slices.IndexFunc(words, func(w string) bool { return w == "--" || w == "-f" || w == "!f" })
	if at < 1 || at > 5 {
		return false
	}
	r := &rule{text: strings.Join(words, " "), line: number}
	name := ""
	if at >= 2 && (l.ifs >= 0 && at-2 == l.lead || l.ifs < 0 && !isCounter(words[at-2])) { // a chain may be called 100
		name = words[at-2]
	}
	add := func(c condition, not bool) {
		if not {
			c = c.not()
			c.text = "! " + c.text
		}
		r.conditions = append(r.conditions, c)
	}
	proto := wire.ProtoNone
	prot, not := strings.CutPrefix(words[at-1], "!")
	if p, every, ok := protocol(prot); !ok {
		add(unknown("protocol "+prot, ""), false)
	} else if !every {
		add(onProtocol("-p "+prot, p), not)
		if !not {
			proto = p
		}
	}
	if opt := words[at]; opt != "--" {
		add(fragment("-f"), opt == "!f")
	}
	at++
	hasIfs := l.ifs == 1
	if l.ifs < 0 && at < len(words) {
		_, ok := prefixes(strings.TrimPrefix(words[at], "!"))
		hasIfs = !ok
	}
	if hasIfs {
		if at+2 > len(words) {
			return false
		}
		for i, opt := range []string{"-i ", "-o "} {
			dev, not := strings.CutPrefix(words[at+i], "!")
			if dev != "*" && dev != "any" {
				name, begin := withPlus(dev)
				add(onInterface(opt+dev, i == 1, name, begin), not)
			}
		}
		at += 2
	} else {
		add(unknown("the rule's interfaces, which -L without -v does not show", "iptables -t nat -L -n -v"), false)
	}
	if at+2 > len(words) {
		return false
	}
	for i := range 2 {
		addr, not := strings.CutPrefix(words[at+i], "!")
		ranges, ok := prefixes(addr)
		switch {
		case !ok:
			add(unknown(addr, "the address of "+addr+": iptables -L -n"), false)
		case slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Bits() == 0 }) && !not:
			if !ranges[0].Addr().Is4() && !l.table.v6 {
				l.table.v4, l.table.v6 = false, true
			}
		case i == 0:
			add(onSource("-s "+addr, ranges...), not)
		default:
			add(onDestination("-d "+addr, ranges...), not)
		}
	}
	rest, plain := uncommented(strings.Join(words[at+2:], " "))
	cs, opts, away := listedMatches(rest, proto, name)
	if !plain {
		cs, opts = []condition{unknown("what stands beside the comment", "iptables-save, which quotes comments")}, nil
	}
	r.conditions = append(r.conditions, cs...)
	r.target = targetOf(name, opts)
	if away {
		r.target.verdict = jumpAway
	}
	l.chain.add(r)
	return true
}

// isCounter tells whether a word is a number as -L prints them: "21377", "1294K".
func isCounter(s string) bool {
	s = strings.TrimRight(s, "KMGT")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// uncommented takes the comment out of what a listing prints behind the addresses. Where there is more than one beginning or end of one,
// a comment may hold them, and which words are the rule's does not show: plain is false.
func uncommented(s string) (rest string, plain bool) {
	from, to := strings.Index(s, "/*"), strings.Index(s, "*/")
	switch {
	case from < 0 && to < 0:
		return strings.TrimSpace(s), true
	case from >= 0 && to < 0: // cut
		return strings.TrimSpace(s[:from]), strings.Count(s, "/*") == 1
	case from < 0 || to < from || strings.Count(s, "/*") > 1 || strings.Count(s, "*/") > 1:
		return s, false
	}
	return strings.TrimSpace(s[:from] + " " + s[to+2:]), true
}

// listedMatches reads what a listing prints of matches and of the target's options. What is left over is a condition that is not
// decided.
func listedMatches(s string, proto wire.Proto, target string) (cs []condition, opts []string, away bool) {
	words := strings.Fields(s)
	at := 0
	take := func(n int) string {
		at += n
		return strings.Join(words[at-n:at], " ")
	}
	is := func(want ...string) bool {
		if at+len(want) > len(words) {
			return false
		}
		for i, w := range want {
			if w != "" && words[at+i] != w {
				return false
			}
		}
		return true
	}
	var odd []string
	for at < len(words) {
		w := words[at]
		switch {
		case is("ADDRTYPE", "match"):
			at += 2
			for at < len(words) && (is("dst-type", "") || is("src-type", "")) {
				kinds, not := strings.CutPrefix(words[at+1], "!")
				text := "-m addrtype " + take(2)
				var any []condition
				for k := range strings.SplitSeq(strings.ToUpper(kinds), ",") {
					any = append(any, onAddressType(text, strings.Contains(text, "src-type"), k))
				}
				c := anyOf(text, any...)
				if is("limit-in") || is("limit-out") || is("dst-type", "", "limit-in") || is("dst-type", "", "limit-out") || is("src-type", "", "limit-in") || is("src-type", "", "limit-out") {
					c = onOneInterface(c, strings.Contains(text, "src-type"))
				}
				if not {
					c = c.not()
				}
				cs = append(cs, c)
			}
			if is("limit-in") || is("limit-out") {
				at++
			}
		case is("mark", "match", "!", ""), is("mark", "match", ""), is("connmark", "match", "!", ""), is("connmark", "match", ""):
			not := words[at+2] == "!" && at+3 < len(words)
			n := 3
			if not {
				n = 4
			}
			text := take(n)
			v, m, ok := valueMask(words[at-1])
			c := onMark(text, v, m)
			if w == "connmark" {
				c = onConnectionMark(text, v, m)
			}
			if !ok {
				c = unknown(text, "")
			}
			if not {
				c = c.not()
			}
			cs = append(cs, c)
		case is("!", "match-set", "", ""), is("match-set", "", ""):
			not := w == "!"
			if not {
				at++
			}
			c := onSet("match-set "+words[at+1]+" "+words[at+2], words[at+1], strings.Split(words[at+2], ","))
			at += 3
			if not {
				c = c.not()
			}
			cs = append(cs, c)
		case is("state", ""), is("ctstate", ""), is("!", "ctstate", ""):
			not := w == "!"
			if not {
				at++
			}
			c := onState(take(2), strings.Split(words[at-1], ","))
			if not {
				c = c.not()
			}
			cs = append(cs, c)
		case (w == "tcp" || w == "udp" || w == "sctp" || w == "udplite") && at+1 < len(words) && isPortWord(words[at+1]):
			at++
			for at < len(words) && isPortWord(words[at]) {
				text := w + " " + take(1)
				kind, value, _ := strings.Cut(words[at-1], ":")
				value, not := strings.CutPrefix(value, "!")
				r, ok := portRange(value, proto)
				c := onPorts(text, kind[0] == 's', kind[0] == 'd', []ports{r})
				if kind == "flags" { // "flags:0x17/0x02": the mask comes first
					mask, set, valid := valueMask(value)
					c, ok = onFlags(text, wire.TCPFlags(mask), wire.TCPFlags(set)), valid
				}
				if !ok {
					c = unknown(text, "iptables -L -n")
				}
				if not {
					c = c.not()
				}
				cs = append(cs, c)
			}
		case is("multiport", "", ""):
			kind := words[at+1]
			not := words[at+2] == "!" && at+3 < len(words)
			n := 3
			if not {
				n = 4
			}
			text := take(n)
			list, attached := strings.CutPrefix(words[at-1], "!")
			not = not || attached
			var in []ports
			good := kind == "sports" || kind == "dports" || kind == "ports"
			for p := range strings.SplitSeq(list, ",") {
				r, ok := portRange(p, proto)
				good = good && ok
				in = append(in, r)
			}
			c := onPorts(text, kind != "dports", kind != "sports", in)
			if !good {
				c = unknown(text, "")
			}
			if not {
				c = c.not()
			}
			cs = append(cs, c)
		case is("source", "IP", "range", ""), is("destination", "IP", "range", ""):
			not := words[at+3] == "!" && at+4 < len(words)
			n := 4
			if not {
				n = 5
			}
			text := take(n)
			from, to, _ := strings.Cut(words[at-1], "-")
			a, err := netip.ParseAddr(from)
			b, err2 := netip.ParseAddr(to)
			c := onRange(text, w == "source", a, b)
			if err != nil || err2 != nil {
				c = unknown(text, "")
			}
			if not {
				c = c.not()
			}
			cs = append(cs, c)
		case w == "[goto]":
			away = true
			at++
		case target == "SET" && is("add-set", ""), target == "SET" && is("del-set", ""):
			opts = append(opts, "--"+w, words[at+1])
			at = len(words) // its other options do not matter here
		case w == "random-fully", w == "random", w == "persistent":
			opts = append(opts, "--"+w)
			at++
		case strings.HasPrefix(w, "to:"):
			opts = append(opts, "--to", w[3:], "--to-source", w[3:])
			at++
		case is("masq", "ports:", ""):
			opts = append(opts, "--to-ports", words[at+2])
			at += 3
		case is("MARK", "xset", ""), is("MARK", "set", ""), is("MARK", "or", ""), is("MARK", "and", ""), is("MARK", "xor", ""), is("CONNMARK", "xset", ""), is("CONNMARK", "set", ""), is("CONNMARK", "or", ""), is("CONNMARK", "and", ""), is("CONNMARK", "xor", ""):
			name := map[string]string{"xset": "--set-xmark", "set": "--set-mark", "or": "--or-mark", "and": "--and-mark", "xor": "--xor-mark"}[words[at+1]]
			opts = append(opts, name, words[at+2])
			at += 3
		case is("CONNMARK", "save"), is("CONNMARK", "restore"):
			opts = append(opts, "--"+words[at+1]+"-mark")
			at += 2
			if is("mask", "") {
				opts = append(opts, "--mask", words[at+1])
				at += 2
			}
		case w == target && (w == "LOG" || w == "NFLOG"), target == "REJECT" && w == "reject-with", target == "NFLOG" && w == "nflog-prefix":
			at = len(words) // options of what does not matter here
		default:
			odd = append(odd, w)
			at++
		}
	}
	if len(odd) > 0 {
		cs = append(cs, unknown(strings.Join(odd, " "), "iptables-save, which prints all of it"))
	}
	return cs, opts, away
}

func isPortWord(s string) bool {
	for _, p := range []string{"dpt:", "spt:", "dpts:", "spts:", "flags:"} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
