package netfilter

import (
	"strings"
	"testing"
)

// own is a table of nft's with chains.
func own(chains string) string { return "table ip own {\n" + chains + "}\n" }

// leaves is a chain for what leaves.
func leaves(rules string) string {
	return "\tchain post {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n" + rules + "\t}\n"
}

// inJSON is a ruleset as nft -j prints it, with the rules of one chain for what leaves.
func inJSON(table string, rules ...string) string {
	s := `{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {"family": "ip", "name": "own"` + table + `}}, ` +
		`{"chain": {"family": "ip", "table": "own", "name": "post", "type": "nat", "hook": "postrouting", "prio": 100, "policy": "accept"}}`
	for _, r := range rules {
		s += `, {"rule": {"family": "ip", "table": "own", "chain": "post", "expr": [` + r + `]}}`
	}
	return s + "]}\n"
}

// TestAsTheKernel asks of rules what a kernel was seen to do with a packet through them (Linux 6.18, 2026-11-30): where the answer is not
// undetermined, it is the kernel's.
func TestAsTheKernel(t *testing.T) {
	const udp, tcp = "172.16.0.13 > 203.0.113.9 udp/53 in=eth1 out=eth0", "172.16.0.13 > 203.0.113.9 tcp/80 in=eth1 out=eth0"
	const masq = "\t\tmasquerade\n"
	const mark = `{"mangle": {"key": {"meta": {"key": "mark"}}, "value": 16384}}`
	set := func(create, add, rule string) []string {
		return []string{natTable("", "-A POSTROUTING "+rule+" -j RETURN\n-A POSTROUTING -j MASQUERADE\n"), create + "\n" + add + "\n"}
	}
	listed := func(rules string) string {
		const head = " pkts bytes target     prot opt in     out     source               destination         \n"
		return "Chain PREROUTING (policy ACCEPT 0 packets, 0 bytes)\n" + head + "\nChain INPUT (policy ACCEPT 0 packets, 0 bytes)\n" + head +
			"\nChain OUTPUT (policy ACCEPT 0 packets, 0 bytes)\n" + head + "\nChain POSTROUTING (policy ACCEPT 0 packets, 0 bytes)\n" + head + rules + "\nChain END (0 references)\n" + head
	}
	const row = "  --  *      *       0.0.0.0/0            0.0.0.0/0           "
	for _, c := range []struct {
		name      string
		texts     []string
		ask, want string
	}{
		{"a field that is set, and then a condition", []string{own(leaves("\t\tmeta nftrace set 1 ip daddr 10.0.0.0/8 masquerade\n"))}, udp, "kept"},
		{"a field of the packet that is set", []string{own(leaves("\t\tip dscp set cs1 ip daddr 10.0.0.0/8 masquerade\n"))}, udp, "kept"},
		{"a priority, and a RETURN for others", []string{own(leaves("\t\tmeta priority set 1:1 ip daddr 10.0.0.0/8 return\n" + masq))}, udp, "masqueraded"},
		{"a field is set to another's value", []string{own(leaves("\t\tmeta priority set ip dscp map { cs1 : 1:1 } ip daddr 10.0.0.0/8 masquerade\n"))}, udp, "undetermined"},
		{"a mark is set before the condition is asked", []string{own(leaves("\t\tmeta mark set 0x4000 udp dport 54 accept\n\t\tmeta mark 0x4000 masquerade\n"))}, udp, "masqueraded"},
		{"a mark is set and asked for in one rule", []string{own(leaves("\t\tct mark set 0x10 ct mark 0x10 masquerade\n"))}, udp, "masqueraded"},
		{"a mark decides, although the rest of its rule does not apply", []string{own(leaves("\t\tmeta mark set 0x1 ip daddr 10.0.0.0/8 return\n\t\tmeta mark 0x1 return\n" + masq))}, udp, "kept"},
		{"a mark is asked for, changed, and the rule goes on", []string{own(leaves("\t\tmeta mark 0x0 meta mark set 0x1 udp dport 53 masquerade\n"))}, udp, "undetermined"},
		{"the same in JSON", []string{inJSON("", mark+`, {"match": {"op": "==", "left": {"payload": {"protocol": "udp", "field": "dport"}}, "right": 54}}, {"accept": null}`, `{"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": 16384}}, {"masquerade": null}`)}, udp, "masqueraded"},
		{"a chain within a rule", []string{own(leaves("\t\tip saddr 172.16.0.0/16 jump {\n\t\t\tip daddr 10.0.0.0/8 return\n\t\t\tmasquerade\n\t\t}\n"))}, udp, "undetermined"},
		{"the same in JSON", []string{inJSON("", `"jump {\n\t\t\tip daddr 10.0.0.0/8 return\n\t\t\tmasquerade\n\t\t}"`)}, udp, "undetermined"},
		{"the source is in no map", []string{own(leaves("\t\tsnat to ip saddr map { 172.16.0.14 : 10.10.0.5 }\n"))}, udp, "undetermined"},
		{"the same in JSON", []string{inJSON("", `{"snat": {"addr": {"map": {"key": {"payload": {"protocol": "ip", "field": "saddr"}}, "data": {"set": [["172.16.0.14", "10.10.0.5"]]}}}}}`)}, udp, "undetermined"},
		{"the destination is the node", []string{natTable("", "-A POSTROUTING -s 172.16.0.0/16 -j MASQUERADE\n")}, "172.16.0.13 > 10.10.0.3 udp/5353 in=eth1 local=10.10.0.3", "kept"},
		{"the same, with rules for what is delivered", []string{natTable("", "-A INPUT -j SNAT --to-source 10.10.0.3\n-A POSTROUTING -s 172.16.0.0/16 -j MASQUERADE\n")}, "172.16.0.13 > 10.10.0.3 udp/5353 in=eth1 local=10.10.0.3", "undetermined"},
		{"NETMAP of the destination", []string{natTable("", "-A PREROUTING -d 203.0.113.0/24 -j NETMAP --to 10.20.0.0/24\n-A POSTROUTING -d 10.20.0.0/16 -j RETURN\n-A POSTROUTING -j MASQUERADE\n")}, udp, "undetermined diverted"},
		{"a source that is rewritten without nat", []string{own("\tchain late {\n\t\ttype filter hook postrouting priority 150; policy accept;\n\t\tip saddr 172.16.0.13 ip saddr set 10.10.0.3\n\t}\n" + leaves("\t\tip daddr 10.0.0.0/8 masquerade\n"))}, udp, "undetermined"},
		{"a destination that is", []string{own("\tchain pre {\n\t\ttype filter hook prerouting priority 0; policy accept;\n\t\tip daddr 203.0.113.9 ip daddr set 10.20.0.9\n\t}\n" + leaves("\t\tip daddr 10.0.0.0/8 masquerade\n"))}, udp, "undetermined"},
		{"a table that sleeps", []string{"table ip own {\n\tflags dormant\n" + leaves(masq) + "}\n"}, udp, "undetermined"},
		{"the same in JSON", []string{inJSON(`, "flags": "dormant"`, `{"masquerade": null}`)}, udp, "undetermined"},
		{"flags that are not known", []string{inJSON(`, "flags": "own"`, `{"masquerade": null}`)}, udp, "undetermined"},
		{"flags that do not matter", []string{inJSON(`, "flags": "owner"`, `{"masquerade": null}`)}, udp, "masqueraded"},
		{"a mark that is set behind nat", []string{own("\tchain late {\n\t\ttype filter hook postrouting priority 150; policy accept;\n\t\tmeta mark set 0x4000\n\t}\n" + leaves("\t\tmeta mark 0x4000 masquerade\n"))}, udp, "kept"},
		{"a mark that is set beside nat", []string{own("\tchain late {\n\t\ttype filter hook postrouting priority 100; policy accept;\n\t\tmeta mark set 0x4000\n\t}\n" + leaves("\t\tmeta mark 0x4000 masquerade\n"))}, udp, "undetermined"},
		{"a nat chain is asked at nat's turn, whatever its priority", []string{own("\tchain mark {\n\t\ttype filter hook prerouting priority -50; policy accept;\n\t\tmeta mark set 0x1\n\t}\n\tchain pre {\n\t\ttype nat hook prerouting priority 0; policy accept;\n\t\tmeta mark 0x1 meta mark set 0x4000\n\t}\n" + leaves("\t\tmeta mark 0x4000 masquerade\n"))}, udp, "kept"},
		{"+ is no wildcard of nft's", []string{own(leaves("\t\toifname \"eth+\" masquerade\n"))}, udp, "kept"},
		{"* is", []string{own(leaves("\t\toifname \"eth*\" masquerade\n"))}, udp, "masqueraded"},
		{"* is none of iptables'", []string{natTable("", "-A POSTROUTING -o eth* -j MASQUERADE\n")}, udp, "kept"},
		{"a variable of a script", []string{"table ip nat {\n" + leaves("\t\toifname $WAN masquerade\n") + "}\n"}, udp, "undetermined"},
		{"a set of networks by their address", set("create a hash:ip family inet hashsize 1024 maxelem 65536 netmask 24 bucketsize 12 initval 0xdef486b7", "add a 203.0.113.0", "-m set --match-set a dst"), udp, "undetermined"},
		{"the same as a list", set("Name: a\nType: hash:ip\nRevision: 6\nHeader: family inet hashsize 1024 maxelem 65536 netmask 24 bucketsize 12 initval 0xdef486b7\nSize in memory: 248\nReferences: 1\nNumber of entries: 1\nMembers:\n203.0.113.0", "", "-m set --match-set a dst"), udp, "undetermined"},
		{"a set of ports of any protocol", set("create a bitmap:port range 0-9000", "add a 53", "-m set --match-set a dst"), udp, "kept"},
		{"beginnings of interfaces", set("create a hash:net,iface family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0xd9fbd96c", "add a 203.0.113.0/24,eth wildcard", "-m set --match-set a dst,dst"), udp, "kept"},
		{"a whole name", set("create a hash:net,iface family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0xd9fbd96c", "add a 203.0.113.0/24,eth", "-m set --match-set a dst,dst"), udp, "masqueraded"},
		{"a comment that says nomatch", set("create a hash:ip family inet hashsize 1024 maxelem 65536 comment bucketsize 12 initval 0xbe48f9b2", `add a 203.0.113.9 comment "do nomatch this"`, "-m set --match-set a dst"), udp, "kept"},
		{"a set gives the mark", []string{"*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j SET --map-set a dst --map-mark\nCOMMIT\n" + natTable("", "-A POSTROUTING -m mark --mark 0x4000 -j MASQUERADE\n")}, udp, "undetermined"},
		{"a target of which nft shows the name alone", []string{own("\tchain pre {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n\t\txt target \"SET\"\n\t}\n" + leaves("\t\tmeta mark 0x4000 masquerade\n"))}, udp, "undetermined"},
		{"-L: a set gives the mark", []string{listed("    1    33 SET        0  " + row + " map-set a dst map-mark\n    1    33 MASQUERADE  0  " + row + " mark match 0x4000\n")}, udp, "undetermined"},
		{"-L: rules fill a set that is not asked for", []string{listed("    1    33 SET        0  " + row + " add-set a src\n    1    33 MASQUERADE  0  " + row + " mark match 0x0\n")}, udp, "masqueraded"},
		{"rules fill the set", []string{"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j SET --add-set a src\nCOMMIT\n" + natTable("", "-A POSTROUTING -m set --match-set a src -j MASQUERADE\n"), "create a hash:ip family inet hashsize 1024 maxelem 65536\n"}, udp, "undetermined"},
		{"rules fill nft's set", []string{own("\tset seen {\n\t\ttype ipv4_addr\n\t\tsize 65535\n\t\tflags dynamic,timeout\n\t\ttimeout 1s\n\t}\n" + leaves("\t\tip saddr @seen masquerade\n"))}, udp, "undetermined"},
		{"nft -t prints no elements", []string{own("\tset nomasq {\n\t\ttype ipv4_addr\n\t\tflags interval\n\t}\n" + leaves("\t\tip daddr @nomasq return\n"+masq))}, tcp, "undetermined"},
		{"a set that is empty, beside one that is not", []string{own("\tset nomasq {\n\t\ttype ipv4_addr\n\t}\n\tset other {\n\t\ttype ipv4_addr\n\t\telements = { 192.0.2.1 }\n\t}\n" + leaves("\t\tip daddr @nomasq return\n"+masq))}, tcp, "masqueraded"},
		{"one of several flags", []string{inJSON("", `{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "flags"}}, "right": {"set": ["syn", "ack"]}}}, {"return": null}`, `{"masquerade": null}`)}, tcp, "undetermined"},
		{"numbers for names", []string{own(leaves("\t\ticmp type 8 ct direction 0 masquerade\n"))}, "172.16.0.13 > 203.0.113.9 icmp in=eth1 out=eth0", "masqueraded"},
		{"numbers of others", []string{own(leaves("\t\ticmp type 0 masquerade\n"))}, "172.16.0.13 > 203.0.113.9 icmp in=eth1 out=eth0", "kept"},
		{"-L: the pieces of a packet", []string{listed("    0     0 RETURN     0    -f  *      *       0.0.0.0/0            0.0.0.0/0           \n    1    33 MASQUERADE  0    !f  *      *       0.0.0.0/0            0.0.0.0/0           \n")}, udp, "masqueraded"},
		{"-L: a comment that ends early", []string{listed("    1    33 MASQUERADE  0  " + row + " /* */ state ESTABLISHED */\n")}, udp, "undetermined"},
		{"-L: a comment that names a target", []string{listed("    1    33 MASQUERADE  0  " + row + " /* b */ LOG */ mark match 0x1\n")}, udp, "undetermined"},
		{"-L: a chain that looks like a counter", []string{listed("    1    33 10K        0  "+row+"\n") + "\nChain 10K (1 references)\n pkts bytes target     prot opt in     out     source               destination         \n    1    33 MASQUERADE  0  " + row + "\n\nChain LAST (0 references)\n pkts bytes target     prot opt in     out     source               destination         \n"}, udp, "masqueraded"},
		{"rules of ip6tables without their head", []string{"*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -d fd00::/8 -j RETURN\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n"}, udp, "undetermined"},
		{"the same, asked of IPv6", []string{"*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -d fd00::/8 -j RETURN\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n"}, "fd00:4::7 > 2001:db8::9 udp/53 in=eth1 out=eth0", "masqueraded"},
		{"the same behind rules of iptables", []string{"*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -d 10.0.0.0/8 -j RETURN\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n", "*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -d fd00::/8 -j RETURN\nCOMMIT\n"}, udp, "masqueraded"},
		{"a map of verdicts", []string{own("\tchain keep {\n\t\taccept\n\t}\n" + leaves("\t\tip daddr vmap { 10.0.0.0/8 : return, 203.0.113.0/24 : goto keep }\n"+masq))}, udp, "kept"},
		{"a map that holds nothing of it", []string{own("\tchain keep {\n\t\taccept\n\t}\n" + leaves("\t\tip daddr vmap { 10.0.0.0/8 : return, 192.0.2.9 : goto keep }\n"+masq))}, udp, "masqueraded"},
		{"what is left for all others", []string{own(leaves("\t\tip daddr vmap { 10.0.0.0/8 : continue, * : accept }\n" + masq))}, udp, "kept"},
		{"what is left for others than these", []string{own(leaves("\t\tip daddr vmap { 203.0.113.9 : continue, * : accept }\n" + masq))}, udp, "masqueraded"},
		{"a map by the connection's state", []string{own(leaves("\t\tct state vmap { established : accept, related : accept, invalid : drop }\n" + masq))}, udp, "masqueraded"},
		{"a map with a name", []string{own("\tmap ways {\n\t\ttype ipv4_addr . inet_proto . inet_service : verdict\n\t\telements = { 203.0.113.9 . tcp . 53 : accept,\n\t\t\t     203.0.113.9 . udp . 53 comment \"a : b\" : return }\n\t}\n" + leaves("\t\tip daddr . meta l4proto . th dport vmap @ways\n"+masq))}, udp, "kept"},
		{"the same of another port", []string{own("\tmap ways {\n\t\ttype ipv4_addr . inet_proto . inet_service : verdict\n\t\telements = { 203.0.113.9 . tcp . 53 : accept,\n\t\t\t     203.0.113.9 . udp . 53 comment \"a : b\" : return }\n\t}\n" + leaves("\t\tip daddr . meta l4proto . th dport vmap @ways\n"+masq))}, tcp, "masqueraded"},
		{"the same in JSON", []string{strings.Replace(inJSON("", `{"vmap": {"key": {"concat": [{"payload": {"protocol": "ip", "field": "daddr"}}, {"payload": {"protocol": "udp", "field": "dport"}}]}, "data": "@ways"}}`, `{"masquerade": null}`), `{"rule"`, `{"map": {"family": "ip", "table": "own", "name": "ways", "type": ["ipv4_addr", "inet_service"], "map": "verdict", "elem": [[{"concat": ["203.0.113.9", 53]}, {"return": null}], [{"elem": {"val": {"concat": ["203.0.113.9", 54]}, "comment": "x"}}, {"goto": {"target": "post"}}]]}}, {"rule"`, 1)}, udp, "kept"},
		{"a map of the rule in JSON", []string{inJSON("", `{"vmap": {"key": {"payload": {"protocol": "ip", "field": "daddr"}}, "data": {"set": [[{"prefix": {"addr": "203.0.113.0", "len": 24}}, {"accept": null}], ["*", {"drop": null}]]}}}`, `{"masquerade": null}`)}, udp, "kept"},
		{"by flags", []string{own(leaves("\t\ttcp flags & (fin | syn | rst | ack) vmap { syn : accept, fin : accept }\n" + masq))}, tcp, "undetermined"},
		{"by two fields of the routing", []string{own(leaves("\t\tfib daddr . iif type vmap { blackhole : drop, prohibit : accept }\n" + masq))}, tcp, "undetermined"},
		{"by bits of an address", []string{own(leaves("\t\tip daddr & 255.0.0.0 vmap { 203.0.0.0 : accept, 10.0.0.0 : return }\n" + masq))}, tcp, "undetermined"},
		{"by the lot of a hash", []string{own(leaves("\t\tjhash ip saddr mod 2 seed 0x1 vmap { 0 : accept, 1 : return }\n" + masq))}, tcp, "undetermined"},
		{"what is left, of packets that have no such field", []string{own(leaves("\t\ttcp dport vmap { 80 : accept, * : accept }\n" + masq))}, udp, "masqueraded"},
		{"the same in JSON", []string{inJSON("", `{"vmap": {"key": {"payload": {"protocol": "tcp", "field": "dport"}}, "data": {"set": [[80, {"accept": null}], ["*", {"accept": null}]]}}}`, `{"masquerade": null}`)}, udp, "masqueraded"},
		{"what is left, of the other family", []string{"table inet own {\n\tchain out {\n\t\tmasquerade\n\t}\n" + leaves("\t\tip daddr vmap { 10.0.0.0/8 : return, * : goto out }\n") + "}\n"}, "fd00:4::7 > 2001:db8::9 udp/53 in=eth1 out=eth0", "kept"},
		{"the same of protocols", []string{"table inet own {\n\tchain out {\n\t\tmasquerade\n\t}\n" + leaves("\t\tip protocol vmap { tcp : return, * : goto out }\n") + "}\n"}, "fd00:4::7 > 2001:db8::9 udp/53 in=eth1 out=eth0", "kept"},
		{"a protocol of the other family", []string{"table inet own {\n" + leaves("\t\tip protocol udp accept\n"+masq) + "}\n"}, "fd00:4::7 > 2001:db8::9 udp/53 in=eth1 out=eth0", "masqueraded"},
		{"what is left of a map that rules fill", []string{own("\tmap ways {\n\t\ttype ipv4_addr : verdict\n\t\tflags timeout\n\t\telements = { 192.0.2.1 : drop, * : accept }\n\t}\n" + leaves("\t\tip daddr vmap @ways\n"+masq))}, udp, "undetermined"},
		{"a set that is asked as a map", []string{own("\tset ways {\n\t\ttype ipv4_addr\n\t\telements = { 203.0.113.9 }\n\t}\n" + leaves("\t\tip daddr vmap @ways\n"+masq))}, udp, "undetermined"},
		{"one that is, in JSON", []string{strings.Replace(inJSON("", `{"vmap": {"key": {"payload": {"protocol": "ip", "field": "daddr"}}, "data": "@ways"}}`, `{"masquerade": null}`), `{"rule"`, `{"set": {"family": "ip", "table": "own", "name": "ways", "type": "ipv4_addr", "elem": ["203.0.113.9"]}}, {"rule"`, 1)}, udp, "undetermined"},
		{"a map by nothing", []string{inJSON("", `{"vmap": {"key": {"concat": []}, "data": {"set": [[{"concat": []}, {"accept": null}]]}}}`, `{"masquerade": null}`)}, udp, "undetermined"},
		{"a comparison of nothing", []string{inJSON("", `{"match": {"op": "==", "left": {"concat": []}, "right": 1}}, {"accept": null}`, `{"masquerade": null}`)}, udp, "undetermined"},
		{"a map and its number (nft -a)", []string{own(leaves("\t\tip daddr vmap { 203.0.113.0/24 : return } # handle 5\n" + masq))}, udp, "kept"},
		{"a map and a counter", []string{own(leaves("\t\tip daddr vmap { 203.0.113.0/24 : return } counter packets 0 bytes 0\n" + masq))}, udp, "kept"},
		{"two maps, of which the first decides", []string{own("\tchain out {\n\t\tmasquerade\n\t}\n" + leaves("\t\tip daddr vmap { 203.0.113.9 : goto out } ip saddr vmap { 172.16.0.99 : accept }\n"))}, udp, "masqueraded"},
		{"the same in JSON", []string{inJSON("", `{"vmap": {"key": {"payload": {"protocol": "ip", "field": "daddr"}}, "data": {"set": [["203.0.113.9", {"return": null}]]}}}, {"vmap": {"key": {"payload": {"protocol": "ip", "field": "saddr"}}, "data": {"set": [["172.16.0.99", {"accept": null}]]}}}`, `{"masquerade": null}`)}, udp, "kept"},
		{"what stands behind a map, in JSON", []string{inJSON("", `{"vmap": {"key": {"payload": {"protocol": "ip", "field": "daddr"}}, "data": {"set": [["203.0.113.9", {"continue": null}]]}}}, {"match": {"op": "==", "left": {"payload": {"protocol": "udp", "field": "dport"}}, "right": 53}}, {"accept": null}`, `{"masquerade": null}`)}, udp, "undetermined"},
		{"a mark behind a map, in JSON", []string{inJSON("", `{"vmap": {"key": {"payload": {"protocol": "ip", "field": "daddr"}}, "data": {"set": [["203.0.113.9", {"continue": null}]]}}}, `+mark, `{"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": 16384}}, {"accept": null}`, `{"masquerade": null}`)}, udp, "undetermined"},
		{"a condition behind a map that decides", []string{own("\tchain out {\n\t\tmasquerade\n\t}\n" + leaves("\t\tip daddr vmap { 203.0.113.9 : goto out } tcp dport 80 accept\n"))}, udp, "masqueraded"},
		{"a map that is not in the input", []string{own(leaves("\t\tip daddr vmap @ways\n" + masq))}, udp, "undetermined"},
		{"a map whose elements nft -t leaves out", []string{own("\tmap ways {\n\t\ttype ipv4_addr : verdict\n\t}\n" + leaves("\t\tip daddr vmap @ways\n"+masq))}, udp, "undetermined"},
		{"a map that rules fill", []string{own("\tmap ways {\n\t\ttype ipv4_addr : verdict\n\t\tflags dynamic\n\t\telements = { 192.0.2.1 : accept }\n\t}\n" + leaves("\t\tip daddr vmap @ways\n"+masq))}, udp, "undetermined"},
		{"one of several ways, by lot", []string{own("\tchain out {\n\t\tmasquerade\n\t}\n" + leaves("\t\tnumgen random mod 2 vmap { 0 : goto out, 1 : accept }\n\t\taccept\n"))}, udp, "undetermined"},
		{"by bits of a mark", []string{own("\tchain out {\n\t\tmasquerade\n\t}\n" + leaves("\t\tmeta mark & 0xff vmap { 0x0 : goto out, 0x1 : accept }\n\t\taccept\n"))}, udp, "undetermined"},
		{"a mark that the first element's chain changes", []string{own("\tchain marks {\n\t\tmeta mark set 0x4000\n\t}\n" + leaves("\t\tmeta mark vmap { 0x0 : jump marks, 0x4000 : accept }\n"+masq))}, udp, "undetermined"},
		{"a statement behind the map", []string{own(leaves("\t\tip daddr vmap { 203.0.113.9 : continue } masquerade\n"))}, udp, "undetermined"},
		{"all ways lead to a drop", []string{own("\tchain fwd {\n\t\ttype filter hook forward priority 0; policy drop;\n\t\tnumgen random mod 2 vmap { 0 : drop }\n\t}\n" + leaves(masq))}, udp, "undetermined dropped"},
		{"a chain that is called like a target", []string{natTable("TARPIT", "-A POSTROUTING -j TARPIT\n-A TARPIT -j MASQUERADE\n")}, udp, "masqueraded"},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, []question{{c.ask, c.want, "", ""}}, c.texts...) })
	}
}
