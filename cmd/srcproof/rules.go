package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
	"github.com/srcproof/srcproof/report"
)

// rulesFlags are the flags of srcproof rules as they were typed.
type rulesFlags struct {
	from, to          []string
	proto, dport, oif once
	captures          []string
	planned           once
	common            commonFlags
}

// rulesOptions are what srcproof rules works with: everything that was typed, checked.
type rulesOptions struct {
	args   [2][]captureArg // by wire.Side
	ask    analyze.RulesQuestion
	common commonOptions
}

func newRulesCommand(std *stdio) *cobra.Command {
	var flags rulesFlags
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Hold the masquerade configuration against the node's rules and the packets",
		Long: `Says of each destination what the ip-masq-agent was told (intent), what the node's installed rules
do (kernel) and what the packets show (wire), which of them disagree, and why. Each of the three may
be left out: the configuration alone is told in words, the rules alone are asked for a destination.

Of a destination that nobody names (--to, --capture) all are asked for, range by range. Rules are
walked as the kernel does, for the first packet of a connection. What of them cannot be judged makes
the answer "cannot tell", with the rule that it hangs on and what would settle it.

Read the rules on the node that was captured, all three stores of them:
  iptables-save > save.txt; iptables-legacy-save > legacy.txt; nft list ruleset > nft.txt
  ipset save > sets.txt                           where rules ask for sets (Calico, kube-router)
and the configuration:
  kubectl -n kube-system get configmap ip-masq-agent -o yaml > cm.yaml

With --new-masq-config it shows, before anybody applies it, for which destinations the source would
change.

Exit codes:
  0  answered, and what is known agrees
  1  configuration, rules and packets do not agree, or the agent refuses the configuration
  2  bad usage, or input that could not be read or is damaged
  3  of some destination this input cannot tell`,
		Example: `  srcproof rules --masq-config cm.yaml --iptables save.txt --to 10.20.30.40
  srcproof rules --masq-config cm.yaml --iptables save.txt --capture near.pcap \
      --pod-cidr 172.16.0.0/16 --node-ip 10.10.0.3
  srcproof rules --iptables save.txt --nft nft.txt --from 172.16.0.13 --to 10.20.0.0/16
  srcproof rules --masq-config cm.yaml --new-masq-config new.yaml --capture near.pcap`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt, err := flags.resolve()
			if err != nil {
				return err
			}
			return runRules(cmd.Context(), std, opt)
		},
	}
	flags.add(cmd)
	return cmd
}

func (f *rulesFlags) add(cmd *cobra.Command) {
	fs := newFlags()
	fs.StringArrayVar(&f.from, "from", nil, "`ADDRESS` of a Pod, or a CIDR of them; without it any Pod")
	fs.StringArrayVar(&f.to, "to", nil, "`DESTINATION`, an address or a CIDR; give the flag once for each.\nWithout it those of the captures, or all")
	fs.Var(&f.proto, "proto", "`PROTO` that is meant: tcp, udp, icmp, icmp6 or sctp")
	fs.Var(&f.dport, "dport", "destination `PORT` that is meant")
	fs.Var(&f.oif, "oif", "`INTERFACE` that the packets leave by")
	fs.Var(&f.planned, "new-masq-config", "`FILE` with a configuration that is planned: what would change?")
	addFlags(cmd, "What is asked of the rules", fs)
	for _, name := range []string{"from", "to", "dport", "oif"} {
		registerCompletion(cmd, name, cobra.NoFileCompletions)
	}
	f.proto.words = []string{"tcp", "udp", "icmp", "icmp6", "sctp"}
	registerCompletion(cmd, "proto", f.proto.complete)

	fs = newFlags()
	fs.StringArrayVar(&f.captures, "capture", nil, "`FILE` captured on the node; give the flag once for each file")
	addFlags(cmd, capturesHeading, fs)
	f.common.add(cmd)
}

// resolve checks everything that was typed before the first capture is read, and reports all that is wrong.
func (f *rulesFlags) resolve() (opt rulesOptions, err error) {
	var errs []error
	asked := &f.common.ask
	switch {
	case !f.common.facts.masquerading() && !f.planned.given:
		return opt, &usageError{what: "neither a masquerade configuration nor rules are named", hint: "--masq-config FILE and --iptables FILE; srcproof rules --help tells how to get them"}
	case len(f.captures) == 0 && (asked.request.given || asked.expect.given):
		return opt, &usageError{what: "--request and --expect are about captured requests, and no --capture is named", hint: "--from, --to, --proto and --dport say what to ask the rules for"}
	}
	opt.ask.Port, opt.ask.Out = -1, f.oif.value
	add := func(err error) { errs = append(errs, err) }
	opt.ask.From, err = parseDestinations("--from", f.from)
	add(err)
	opt.ask.To, err = parseDestinations("--to", f.to)
	add(err)
	opt.ask.Proto, _ = wire.ProtoOf(f.proto.value)
	if !f.proto.given {
		opt.ask.Proto = wire.ProtoNone
	}
	if f.dport.given {
		n, err := strconv.ParseUint(f.dport.value, 10, 16)
		switch {
		case err != nil || n == 0:
			add(&usageError{what: "--dport " + f.dport.value + ": not a port from 1 to 65535"})
		case !opt.ask.Proto.HasPorts():
			add(&usageError{what: "--dport without a protocol that has ports", hint: "--proto tcp, udp or sctp"})
		}
		opt.ask.Port = int(n)
	}
	opt.args[wire.SideNear], err = captureNames{}.parse("--capture", f.captures)
	add(err)
	opt.common, err = f.common.resolve()
	add(err)
	add(families(opt.ask.From, opt.ask.To))
	if err := errors.Join(errs...); err != nil {
		return opt, err
	}
	facts := opt.common.facts
	if f.planned.given {
		text, err := readFacts("--new-masq-config", f.planned.value, maxConfigFile)
		if err != nil {
			return opt, err
		}
		if opt.ask.Next, err = facts.Plan(text, f.planned.value); err != nil {
			return opt, fmt.Errorf("--new-masq-config %s: %w", f.planned.value, err)
		}
	}
	if len(opt.ask.To) == 0 && len(f.captures) == 0 {
		opt.ask.To = everywhere(facts, &opt.ask)
	}
	return opt, nil
}

// families refuses destinations that no source of the same address family is named for.
func families(from, to []netip.Prefix) error {
	has := func(list []netip.Prefix, v4 bool) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Addr().Is4() == v4 })
	}
	for _, v4 := range []bool{true, false} {
		if !has(from, v4) && has(to, v4) && len(to) > 0 {
			return &usageError{what: map[bool]string{true: "--to an IPv4 destination, and --from none but IPv6 addresses", false: "--to an IPv6 destination, and --from none but IPv4 addresses"}[v4]}
		}
	}
	return nil
}

// everywhere are all destinations of the address families that matter.
func everywhere(facts *cluster.Facts, q *analyze.RulesQuestion) []netip.Prefix {
	v6 := func(p netip.Prefix) bool { return p.Addr().Is6() }
	all4, all6 := netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")
	if len(q.From) > 0 {
		var out []netip.Prefix
		if !slices.ContainsFunc(q.From, v6) || slices.ContainsFunc(q.From, func(p netip.Prefix) bool { return !v6(p) }) {
			out = append(out, all4)
		}
		if slices.ContainsFunc(q.From, v6) {
			out = append(out, all6)
		}
		return out
	}
	if slices.ContainsFunc(facts.PodPrefixes(), v6) {
		return []netip.Prefix{all4, all6}
	}
	return []netip.Prefix{all4}
}

// parseDestinations reads addresses and ranges.
func parseDestinations(flag string, texts []string) (out []netip.Prefix, err error) {
	var errs []error
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			a = a.Unmap()
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := parseRange(flag, text)
		if err != nil {
			if u, ok := errors.AsType[*usageError](err); ok && !strings.Contains(text, "/") {
				u.what = flag + " " + text + ": neither an address nor a range in CIDR notation"
			}
			errs = append(errs, err)
			continue
		}
		out = append(out, p)
	}
	return out, errors.Join(errs...)
}

// runRules asks configuration and rules, with the captures if there are any.
func runRules(ctx context.Context, std *stdio, opt rulesOptions) error {
	if len(opt.args[wire.SideNear]) == 0 {
		res := analyze.HoldRules(opt.common.facts, opt.ask)
		return errors.Join(opt.common.output.writeRules(std, res), rulesAnswer(res))
	}
	set := openCaptures(ctx, std, opt.args, opt.common.captures)
	defer set.Close()
	if len(set.sources) == 0 {
		return set.err()
	}
	res, err := analyze.Run(set.inputs(), opt.common.facts, analyze.Options{Rules: &opt.ask, OnDemand: true, IDs: opt.common.output.format != "text"})
	if err := errors.Join(ctx.Err(), set.refused(), err); err != nil {
		return err
	}
	set.finish(res.Captures)
	shown, verdict := opt.common.question.ask(res)
	return errors.Join(set.err(), opt.common.output.writeRules(std, shown), verdict, rulesAnswer(shown))
}

// writeRules writes the record of what was asked of the rules.
func (o outputOptions) writeRules(std *stdio, res *analyze.Result) error {
	if o.format != "text" {
		return o.write(std, res)
	}
	opt := std.textOptions()
	opt.ShowAll = o.all
	return report.WriteRulesText(std.out, report.New(res, report.Tool{Version: versionText(), Args: std.args}), opt)
}

// rulesAnswer is what is wrong with the answers: what disagrees, or what could not be told. nil is nothing.
func rulesAnswer(res *analyze.Result) error {
	for _, in := range []*cluster.Intent{res.Facts.Intent(), res.Planned()} {
		if in != nil && in.Rejected != "" {
			return &answerError{state: analyze.NotMet, text: "the agent refuses the configuration: " + in.Rejected}
		}
	}
	var differ, untold []string
	for i := range res.Rules {
		switch r := &res.Rules[i]; {
		case r.Agree == analyze.NotMet:
			differ = append(differ, r.Destination())
		case r.Untellable():
			untold = append(untold, r.Destination())
		}
	}
	switch {
	case len(differ) > 0:
		return &answerError{state: analyze.NotMet, text: "not in agreement: " + someOf(differ)}
	case len(untold) > 0:
		return &answerError{state: analyze.Inconclusive, text: "inconclusive: this input does not tell of " + someOf(untold)}
	case len(res.Rules) == 0:
		return &answerError{state: analyze.Inconclusive, text: "inconclusive: the captures hold no request of a Pod that is asked for"}
	}
	return nil
}

// someOf lists the first of some destinations.
func someOf(list []string) string {
	const most = 3
	if n := len(list) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), n)
	}
	return strings.Join(list, ", ")
}
