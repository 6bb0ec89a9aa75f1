package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze/cluster"
)

// Files of facts are read whole, because JSON and YAML are; these bound what that may cost. kubectl's JSON is about
// 10 KiB per Pod, so that 1 GiB is a cluster of 100,000 Pods; a line of `ip -o link` is about 200 bytes.
const (
	maxClusterFile   = 1 << 30
	maxLinksFile     = 16 << 20
	maxConntrackFile = 512 << 20 // about 200 bytes a connection, of which a large node has a million
	maxConfigFile    = 16 << 20  // a ConfigMap is at most 1 MiB (etcd's limit), a List holds some
)

// factFlags are the facts of the cluster as they were typed.
type factFlags struct {
	podCIDRs, serviceCIDRs, nodeCIDRs, nodeIPs []string
	cluster, links, conntrack                  once

	masqConfig, agent, agentManifest once
	noDefaultSNAT                    bool
	iptables, nft, ipset, after      []string // after: evidence has a flag of its own for them
}

func (f *factFlags) add(cmd *cobra.Command) {
	fs := newFlags()
	fs.StringArrayVar(&f.podCIDRs, "pod-cidr", nil, "`CIDR` of Pod addresses; give the flag once for each range")
	fs.StringArrayVar(&f.serviceCIDRs, "service-cidr", nil, "`CIDR` of Service addresses")
	fs.StringArrayVar(&f.nodeCIDRs, "node-cidr", nil, "`CIDR` that the nodes have their addresses from")
	fs.StringArrayVar(&f.nodeIPs, "node-ip", nil, "`IP` address of the node; give the flag once for each address")
	fs.Var(&f.cluster, "cluster", "`FILE` with what kubectl get nodes,pods -A -o json printed")
	fs.Var(&f.conntrack, "conntrack", "`FILE` with what conntrack -L printed on the node")
	fs.Var(&f.links, "links", "`FILE` with what ip -o link printed on the node")
	addFlags(cmd, "Facts of the cluster", fs)

	fs = newFlags()
	fs.Var(&f.masqConfig, "masq-config", "`FILE` with the ip-masq-agent's ConfigMap, or its EgressNATPolicy objects\n(kubectl get ... -o yaml)")
	f.agent.words = []string{"upstream", "gke", "azure", "cilium"} // none is the default: the configuration's own shape may tell
	fs.Var(&f.agent, "agent", "`AGENT` that reads it: upstream, gke, azure or cilium")
	fs.Var(&f.agentManifest, "agent-manifest", "`FILE` with the agent's DaemonSet: its arguments and its volume tell how it reads")
	fs.BoolVar(&f.noDefaultSNAT, "disable-default-snat", false, "the GKE cluster was made with this flag, and runs no agent")
	fs.StringArrayVar(&f.iptables, "iptables", nil, "`FILE` with what iptables-save, iptables-legacy-save, iptables -S or\niptables -nvL -t nat printed on the node; once for each file")
	fs.StringArrayVar(&f.nft, "nft", nil, "`FILE` with what nft list ruleset printed there, or nft -j")
	fs.StringArrayVar(&f.ipset, "ipset", nil, "`FILE` with what ipset save printed there")
	addFlags(cmd, "Masquerading, as configured and as installed", fs)
	registerCompletion(cmd, "agent", f.agent.complete)
}

// given tells whether anything of masquerading was.
func (f *factFlags) masquerading() bool {
	return f.masqConfig.given || f.agent.given || f.agentManifest.given || f.noDefaultSNAT || len(f.iptables)+len(f.nft)+len(f.ipset) > 0
}

// resolve parses what was typed and reads the files. All that is wrong is reported, not only the first.
func (f *factFlags) resolve() (*cluster.Facts, error) {
	var errs []error
	ranges := func(flag string, texts []string) []netip.Prefix {
		var ps []netip.Prefix
		for _, text := range texts {
			p, err := parseRange(flag, text)
			errs = append(errs, err)
			ps = append(ps, p)
		}
		return ps
	}
	file := func(flag string, path once, limit int64) []byte {
		if !path.given {
			return nil
		}
		b, err := readFacts(flag, path.value, limit)
		errs = append(errs, err)
		return b
	}
	in := cluster.Input{
		PodCIDRs:     ranges("--pod-cidr", f.podCIDRs),
		ServiceCIDRs: ranges("--service-cidr", f.serviceCIDRs),
		NodeCIDRs:    ranges("--node-cidr", f.nodeCIDRs),
		Cluster:      file("--cluster", f.cluster, maxClusterFile),
		ClusterName:  f.cluster.value,
		Links:        file("--links", f.links, maxLinksFile),
		LinksName:    f.links.value,

		Conntrack:     file("--conntrack", f.conntrack, maxConntrackFile),
		ConntrackName: f.conntrack.value,

		MasqConfig:        file("--masq-config", f.masqConfig, maxConfigFile),
		MasqConfigName:    f.masqConfig.value,
		AgentManifest:     file("--agent-manifest", f.agentManifest, maxConfigFile),
		AgentManifestName: f.agentManifest.value,
		NoDefaultSNAT:     f.noDefaultSNAT,
	}
	in.Agent, _ = cluster.MasqAgentOf(f.agent.value)
	if f.noDefaultSNAT && (f.masqConfig.given || f.agent.given || f.agentManifest.given) {
		errs = append(errs, &usageError{what: "--disable-default-snat with a configuration: the flag counts only where no agent runs", hint: "give the one or the other"})
	}
	if f.agent.given && f.agentManifest.given {
		errs = append(errs, &usageError{what: "--agent with --agent-manifest: the manifest says how the agent runs"})
	}
	for _, kind := range []struct {
		flag  string
		files []string
	}{{"--iptables", f.iptables}, {"--nft", f.nft}, {"--ipset", f.ipset}, {"--after-iptables", f.after}} {
		for _, name := range kind.files {
			b, err := readFacts(kind.flag, name, maxRulesFile)
			errs = append(errs, err)
			in.Rules = append(in.Rules, cluster.RulesText{Flag: kind.flag, Name: name, Text: b})
		}
	}
	for _, text := range f.nodeIPs {
		a, err := parseAddress("--node-ip", text)
		errs = append(errs, err)
		in.NodeIPs = append(in.NodeIPs, a)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return cluster.New(in)
}

// parseRange reads a CIDR. A range that is not aligned is refused as ip-masq-agent refuses it: the person may have meant
// the one address, or the range around it, and every role would follow from the guess.
func parseRange(flag, text string) (netip.Prefix, error) {
	wrong := func(hint string) (netip.Prefix, error) {
		return netip.Prefix{}, &usageError{what: fmt.Sprintf("%s %s: not a range in CIDR notation", flag, text), hint: hint}
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		address, bits, hasBits := strings.Cut(text, "/")
		a, addressErr := netip.ParseAddr(address)
		switch {
		case strings.ContainsAny(text, ", "):
			return wrong("one value per flag: repeat " + flag + " for each range")
		case addressErr != nil || a.Zone() != "":
			return wrong("write it like 172.16.0.0/16 or fd00:10::/48")
		case !hasBits && flag == "--node-cidr":
			return wrong("for one address write --node-ip " + text)
		case !hasBits:
			return wrong(fmt.Sprintf("for one address write %s/%d", text, a.BitLen()))
		}
		return wrong(fmt.Sprintf("the length %q is not a number from 0 to %d", bits, a.BitLen()))
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if m := p.Masked(); m != p {
		return netip.Prefix{}, &usageError{
			what: fmt.Sprintf("%s %s: the address has bits set behind the first %d", flag, text, p.Bits()),
			hint: fmt.Sprintf("write %s for the range, or %s/%d for the one address", m, p.Addr(), p.Addr().BitLen()),
		}
	}
	return p, nil
}

func parseAddress(flag, text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err == nil && a.Zone() == "" {
		return a.Unmap(), nil
	}
	hint := "write it like 10.10.0.3 or fd00:10::3"
	if p, err := netip.ParsePrefix(text); err == nil {
		hint = "write " + p.Addr().String() + " alone"
		if flag == "--node-ip" && !p.IsSingleIP() {
			hint += ", or the range with --node-cidr " + p.Masked().String()
		}
	} else if strings.ContainsAny(text, ", ") {
		hint = "one value per flag: repeat " + flag + " for each address"
	}
	return netip.Addr{}, &usageError{what: fmt.Sprintf("%s %s: not an IP address", flag, text), hint: hint}
}

// readFacts reads a file of facts. A pipe is a file too: --cluster <(kubectl get nodes,pods -A -o json).
func readFacts(flag, path string, limit int64) ([]byte, error) {
	if path == "-" {
		return nil, &usageError{what: flag + " -: standard input is for captures", hint: "write it to a file first, or use " + flag + " <(COMMAND)"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, path, pathCause(err))
	}
	defer func() { _ = f.Close() }() // it was only read
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s %s: is a directory", flag, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, path, pathCause(err))
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s %s: larger than %d MiB, which is no such file", flag, path, limit>>20)
	}
	return b, nil
}
