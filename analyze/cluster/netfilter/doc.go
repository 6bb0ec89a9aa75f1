// Package netfilter reads the rules that are installed on a node (iptables-save, iptables -S and -L, nft list ruleset as text and
// JSON, ipset save and list) and says what they do with the source address of a new connection. It never guesses: what it cannot
// decide is undetermined, at the rule that it could not decide, with what would settle it.
package netfilter
