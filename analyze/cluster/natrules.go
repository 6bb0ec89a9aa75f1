package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NATRules are the rules of the nat tables of a dump, in its order, without packet and byte counters: two dumps of the same
// rules give the same NATRules.
type NATRules []string

// maxRuleLine bounds one rule, in bytes: the kernel takes comments of 256, and a rule has few of them.
const maxRuleLine = 16 << 10

// ReadNATRules reads what iptables-save or ip6tables-save printed, with counters (-c) or without, one after the other in one
// file too, or what iptables -t nat -S did. It errs where there is no nat table, or what is read is no such dump.
func ReadNATRules(text []byte) (NATRules, error) {
	text, err := utf8Text(text)
	if err != nil {
		return nil, err
	}
	const how = "make it with: iptables-save -t nat"
	rules := NATRules{}
	table, tables, bare, number := "", 0, false, 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case len(line) > maxRuleLine:
			return nil, fmt.Errorf("line %d: longer than %d bytes, which is no rule; %s", number, maxRuleLine, how)
		case line == "" || line[0] == '#':
		case line[0] == '*':
			table, tables = line[1:], tables+1
		case line == "COMMIT":
			table = ""
		case isRule(line):
			if table == "" {
				table, bare = "nat", true // iptables -t nat -S names no table
			}
			if table == "nat" {
				rules = append(rules, withoutCounters(line))
			}
		default:
			return nil, fmt.Errorf("line %d is no rule of iptables-save (%.40q); %s", number, line, how)
		}
	}
	switch {
	case tables == 0 && !bare:
		return nil, errors.New("there are no rules in it; " + how)
	case len(rules) == 0:
		return nil, errors.New("there is no nat table in it; " + how)
	}
	return rules, nil
}

// isRule tells whether a line is a chain or a rule: ":CHAIN POLICY", "-P", "-N" or "-A", the latter with counters in front too.
func isRule(line string) bool {
	if line[0] == '[' {
		_, line, _ = strings.Cut(line, "] ")
	}
	for _, begin := range []string{":", "-A ", "-N ", "-P "} {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

func withoutCounters(line string) string {
	if line[0] == '[' {
		_, line, _ = strings.Cut(line, "] ")
	}
	if line[0] == ':' { // ":POSTROUTING ACCEPT [0:0]"
		line, _, _ = strings.Cut(line, " [")
	}
	return line
}

// NATDiff is what differs between the nat rules of two dumps.
type NATDiff struct {
	Removed, Added []string // in the order of their dump
	Moved          bool     // the same rules in another order
}

// Same tells whether nothing differs.
func (d NATDiff) Same() bool { return len(d.Removed) == 0 && len(d.Added) == 0 && !d.Moved }

// Diff compares the rules with those of a later dump.
func (r NATRules) Diff(later NATRules) NATDiff {
	var d NATDiff
	count := make(map[string]int)
	for _, s := range r {
		count[s]++
	}
	for _, s := range later {
		if count[s] > 0 {
			count[s]--
			continue
		}
		d.Added = append(d.Added, s)
	}
	// What is left of count is missing: of rules that stand several times the last ones.
	for _, s := range slices.Backward(r) {
		if count[s] > 0 {
			count[s]--
			d.Removed = append(d.Removed, s)
		}
	}
	slices.Reverse(d.Removed)
	d.Moved = len(d.Removed) == 0 && len(d.Added) == 0 && !slices.Equal(r, later)
	return d
}
