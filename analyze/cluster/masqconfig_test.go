package cluster

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster/netfilter"
)

const sharedCases = "../../../shared/cases"

// TestMasqConfigCases asks what is expected of configurations as people have them.
func TestMasqConfigCases(t *testing.T) {
	rows, err := os.ReadFile(filepath.Join(sharedCases, "EXPECT-rules.tsv"))
	if err != nil {
		t.Skipf("not checked: the cases (%v)", err)
	}
	asked := 0
	for line := range strings.Lines(string(rows)) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(f) < 9 || f[1] != "masq-config" {
			continue
		}
		asked++
		t.Run(f[0]+" to "+f[4], func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(sharedCases, f[0]))
			if err != nil {
				t.Fatal(err)
			}
			in, err := ReadMasqConfig(text, MasqSetup{})
			if err != nil {
				t.Fatal(err)
			}
			switch f[7] {
			case "rejected":
				if in.Rejected == "" {
					t.Errorf("taken, want rejected: %s", f[8])
				}
				return
			case "finding":
				if len(in.Warnings) == 0 {
					t.Errorf("no warning, want %s", f[8])
				}
				return
			}
			a := netip.MustParseAddr(f[4])
			got, why := in.Ask(netip.PrefixFrom(a, a.BitLen()), nil, nil)
			if got.String() != f[7] {
				t.Errorf("%s by %s, want %s (%s)", got, why, f[7], f[8])
			}
		})
	}
	if asked < 25 {
		t.Errorf("%d rows", asked)
	}
}

// TestMasqConfig is the agents' decoding (FACTS 1.4 and 2.1): what a file means, and what is warned of.
func TestMasqConfig(t *testing.T) {
	const kept, masq = netfilter.Kept, netfilter.Masqueraded
	type asks map[string]netfilter.Answer
	reserved := MasqSetup{Agent: AgentGKE, ReservedRanges: true, DataKey: "config"}
	six := setupOf(AgentUpstream)
	six.IPv6 = true
	for _, tt := range []struct {
		name     string
		setup    MasqSetup
		text     string
		asks     asks
		rejected string // in the reason
		warns    []string
	}{
		{"an empty file", MasqSetup{}, "data: {config: ''}", asks{"10.1.1.1": kept, "100.64.1.1": masq, "169.254.1.1": kept, "fd00::1": kept}, "", []string{"no-list"}},
		{"an empty file where all reserved ranges are kept", reserved, "data: {config: ''}", asks{"10.1.1.1": kept, "100.64.1.1": kept, "203.0.113.9": kept}, "", []string{"no-list"}},
		{"an empty list", MasqSetup{}, "nonMasqueradeCIDRs: []\n", asks{"10.1.1.1": masq, "169.254.1.1": kept}, "", []string{"masquerades-everything"}},
		{"a list without a value", MasqSetup{}, "nonMasqueradeCIDRs:\n", asks{"10.1.1.1": masq}, "", []string{"masquerades-everything"}},
		{"keys in capitals", MasqSetup{}, "NonMasqueradeCIDRs: [10.9.0.0/16]\nMasqLinkLocal: true\n", asks{"10.9.1.1": kept, "10.8.1.1": masq, "169.254.1.1": masq}, "", nil},
		{"a key that is misspelt", MasqSetup{}, "nonMasqueradCIDRs: [10.9.0.0/16]\n", asks{"10.8.1.1": kept}, "", []string{"unknown-key", "no-list"}},
		{"an address without a length", MasqSetup{}, "nonMasqueradeCIDRs: [10.9.0.0]\n", nil, "10.9.0.0/32", nil},
		{"IPv6 without the flag", MasqSetup{}, "nonMasqueradeCIDRs: ['fc00::/7']\n", nil, "--enable-ipv6", nil},
		{"IPv6 with it", six, "nonMasqueradeCIDRs: ['fc00::/7']\n", asks{"fd00::1": kept, "2001:db8::1": masq, "fe80::1": kept, "10.1.1.1": masq}, "", nil},
		{"its own limit", MasqSetup{}, "cidrLimit: 1\nnonMasqueradeCIDRs: [10.1.0.0/16, 10.2.0.0/16]\n", nil, "takes 1 at most", nil},
		{"a limit that admits none", MasqSetup{}, "cidrLimit: 0\nnonMasqueradeCIDRs: [10.1.0.0/16]\n", nil, "takes 0 at most", nil},
		{"an interval that is a number", MasqSetup{}, "resyncInterval: 60\n", nil, "resyncInterval", nil},
		{"an interval that is no time", MasqSetup{}, "resyncInterval: soon\n", nil, "resyncInterval", nil},
		{"a list that is a string", MasqSetup{}, "nonMasqueradeCIDRs: 10.0.0.0/8\n", nil, "nonMasqueradeCIDRs is a string", nil},
		{"not a list of keys", MasqSetup{}, "data:\n  config: |\n    - 10.0.0.0/8\n", nil, "must be a list of keys", nil},
		{"duplicates", MasqSetup{}, "nonMasqueradeCIDRs: [10.1.0.0/16, 10.1.0.0/16]\n", asks{"10.1.1.1": kept}, "", []string{"duplicate-range"}},
		{"everything is kept", MasqSetup{}, "nonMasqueradeCIDRs: [0.0.0.0/0]\n", asks{"8.8.8.8": kept}, "", []string{"keeps-everything"}},
		{"JSON", MasqSetup{}, `{"nonMasqueradeCIDRs": ["10.1.0.0/16"]}`, asks{"10.1.1.1": kept, "10.2.1.1": masq}, "", nil},
		{"half of a range", MasqSetup{}, "nonMasqueradeCIDRs: [10.1.0.0/17]\n", asks{"10.1.0.0/16": netfilter.Undetermined, "10.1.0.0/18": kept, "10.2.0.0/16": masq}, "", nil},
		{"CRLF and a byte order mark", MasqSetup{}, "\ufeffnonMasqueradeCIDRs:\r\n- 10.1.0.0/16\r\n", asks{"10.1.1.1": kept, "10.2.1.1": masq}, "", nil},

		{"azure: no list in any file", setupOf(AgentAzure), "masqLinkLocal: true\n", asks{"10.1.1.1": masq, "169.254.1.1": masq}, "", []string{"masquerades-everything"}},
		{"cilium: a file without a list has no defaults", setupOf(AgentCilium), "masqLinkLocal: false\n", asks{"10.1.1.1": masq, "169.254.1.1": kept, "fe80::1": kept}, "", []string{"no-list"}},
		{"cilium: an unaligned range is taken as the range around it", setupOf(AgentCilium), "nonMasqueradeCIDRs: [10.0.0.1/8]\n", asks{"10.9.9.9": kept}, "", []string{"unaligned-cidr"}},

		{"a List of ConfigMaps", MasqSetup{}, `{"apiVersion":"v1","kind":"List","items":[{"kind":"ConfigMap","metadata":{"name":"other"},"data":{"x":"y"}},{"kind":"ConfigMap","metadata":{"name":"ip-masq-agent","namespace":"kube-system"},"data":{"config":"nonMasqueradeCIDRs: [10.1.0.0/16]"}}]}`, asks{"10.1.1.1": kept, "10.2.1.1": masq}, "", nil},
		{"a ConfigMap with a key beside it", MasqSetup{}, "kind: ConfigMap\nmetadata: {name: ip-masq-agent}\ndata:\n  config: |\n    nonMasqueradeCIDRs: [10.1.0.0/16]\n  config.bak: |\n    nonMasqueradeCIDRs: [10.2.0.0/16]\n", asks{"10.1.1.1": kept, "10.2.1.1": masq}, "", []string{"data-key-ignored"}},
		{"ConfigMaps of several namespaces: the agent's is in kube-system", MasqSetup{}, "kind: List\nitems:\n- {kind: ConfigMap, metadata: {name: ip-masq-agent, namespace: default}, data: {config: 'nonMasqueradeCIDRs: [10.2.0.0/16]'}}\n- {kind: ConfigMap, metadata: {name: ip-masq-agent, namespace: kube-system}, data: {config: 'nonMasqueradeCIDRs: [10.1.0.0/16]'}}\n- {kind: ConfigMap, metadata: {name: backup-ip-masq-agent, namespace: kube-system}, data: {config: 'nonMasqueradeCIDRs: [10.3.0.0/16]'}}\n", asks{"10.1.1.1": kept, "10.2.1.1": masq, "10.3.1.1": masq}, "", nil},
		{"a ConfigMap of another namespace", MasqSetup{}, "kind: ConfigMap\nmetadata: {name: ip-masq-agent, namespace: default}\ndata: {config: 'nonMasqueradeCIDRs: [172.16.0.0/16]'}\n", asks{"10.1.1.1": masq}, "", []string{"wrong-configmap"}},
		{"a ConfigMap of another name", MasqSetup{}, "kind: ConfigMap\nmetadata: {name: ip-masq-config, namespace: kube-system}\ndata: {config: 'nonMasqueradeCIDRs: [172.16.0.0/16]'}\n", asks{"10.1.1.1": masq}, "", []string{"wrong-configmap"}},
		{"a ConfigMap that the DaemonSet does not mount", MasqSetup{Agent: AgentUpstream, Stated: true, ConfigMap: "other", DataKey: "config"}, "kind: ConfigMap\nmetadata: {name: ip-masq-agent}\ndata: {config: 'nonMasqueradeCIDRs: [172.16.0.0/16]'}\n", asks{"10.1.1.1": kept}, "", []string{"wrong-configmap"}},
		{"no volume has a file for the agent", MasqSetup{Agent: AgentUpstream, Stated: true}, "kind: ConfigMap\nmetadata: {name: ip-masq-agent}\ndata: {config: 'nonMasqueradeCIDRs: [172.16.0.0/16]'}\n", asks{"10.1.1.1": kept}, "", []string{"wrong-data-key"}},
		{"binary data becomes a file too", MasqSetup{}, "kind: ConfigMap\nmetadata: {name: ip-masq-agent}\nbinaryData: {config: bm9uTWFzcXVlcmFkZUNJRFJzOiBbMTcyLjE2LjAuMC8xNl0=}\n", asks{"10.1.1.1": masq, "172.16.1.1": kept}, "", nil},
		{"of several documents the agent reads the first", MasqSetup{}, "nonMasqueradeCIDRs: [10.1.0.0/16]\n---\nnonMasqueradeCIDRs: [10.2.0.0/16]\n", asks{"10.1.1.1": kept, "10.2.1.1": masq}, "", nil},
		{"tabs are no YAML", MasqSetup{}, "nonMasqueradeCIDRs:\n\t- 10.0.0.0/8\n", nil, "the file is not YAML", nil},
		{"azure: the limit is of one file", setupOf(AgentAzure), "kind: ConfigMap\nmetadata: {name: azure-ip-masq-agent-config}\ndata: {ip-masq-agent: 'nonMasqueradeCIDRs: [" + strings.Repeat("10.1.0.0/16, ", 40) + "]', ip-masq-more: 'nonMasqueradeCIDRs: [" + strings.Repeat("10.2.0.0/16, ", 40) + "]'}\n", asks{"10.1.1.1": kept, "10.2.1.1": kept, "10.3.1.1": masq}, "", nil},
		{"azure: too many in one file", setupOf(AgentAzure), "nonMasqueradeCIDRs: [" + strings.Repeat("10.1.0.0/16, ", 65) + "]\n", nil, "65 ranges in the file", nil},
		{"azure and cilium do not know the interval", setupOf(AgentAzure), "resyncInterval: 60\nnonMasqueradeCIDRs: [10.1.0.0/16]\n", asks{"10.1.1.1": kept}, "", []string{"unknown-key"}},
		{"a ConfigMap without data", MasqSetup{}, "kind: ConfigMap\nmetadata: {name: ip-masq-agent}\n", asks{"10.1.1.1": kept, "8.8.8.8": masq}, "", nil},

		{"EgressNATPolicy", MasqSetup{}, "apiVersion: networking.gke.io/v1\nkind: EgressNATPolicy\nmetadata: {name: default}\nspec:\n  action: NoSNAT\n  destinations:\n  - cidr: 10.0.0.0/8\n  - {}\n---\nkind: EgressNATPolicy\nmetadata: {name: gke-abc}\nspec: {action: NoSNAT, destinations: [{cidr: 172.16.0.0/16}]}\n", asks{"10.1.1.1": kept, "172.16.1.1": kept, "169.254.1.1": masq}, "", []string{"null-item"}},
		{"EgressNATPolicy with an action that is not documented", MasqSetup{}, "kind: EgressNATPolicy\nmetadata: {name: default}\nspec: {action: SNAT, destinations: [{cidr: 10.0.0.0/8}]}\n", asks{"10.1.1.1": masq}, "", []string{"unknown-action", "policy-missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := ReadMasqConfig([]byte(tt.text), tt.setup)
			if err != nil {
				t.Fatal(err)
			}
			if (tt.rejected == "") != (in.Rejected == "") || !strings.Contains(in.Rejected, tt.rejected) {
				t.Errorf("rejected %q, want %q", in.Rejected, tt.rejected)
			}
			for to, want := range tt.asks {
				p, err := netip.ParsePrefix(to)
				if err != nil {
					a := netip.MustParseAddr(to)
					p = netip.PrefixFrom(a, a.BitLen())
				}
				if got, why := in.Ask(p, nil, nil); got != want {
					t.Errorf("%s: %s by %s, want %s", to, got, why, want)
				}
			}
			var codes []string
			for _, w := range in.Warnings {
				codes = append(codes, w.Code)
			}
			if !slices.Equal(codes, tt.warns) {
				t.Errorf("warnings %q, want %q: %+v", codes, tt.warns, in.Warnings)
			}
		})
	}
	for text, want := range map[string]string{
		"\x00\x01": "not text", "kind: Pod\nmetadata: {name: x}\n": "it holds Pod", "a: [": "neither YAML nor JSON", "": "it is empty", " \n": "it is empty",
		"Error from server (NotFound): configmaps \"ip-masq-agent\" not found": "it is no configuration of ip-masq-agent", "- 10.0.0.0/8\n": "it is no configuration of ip-masq-agent", "the agent's list": "it is no configuration",
		"kind: ConfigMap\nmetadata: {name: my-app}\ndata: {config: 'port: 80'}\n":                                                                                 "ConfigMap my-app is not ip-masq-agent's",
		"kind: List\nitems: [{kind: ConfigMap, metadata: {name: ip-masq-agent, namespace: a}}, {kind: ConfigMap, metadata: {name: ip-masq-agent, namespace: b}}]": "which of them the agent reads is not clear",
		"kind: List\nitems: [{kind: ConfigMap, metadata: {name: a}}, {kind: ConfigMap, metadata: {name: b}}]":                                                     "none of its ConfigMaps is ip-masq-agent's",
	} {
		if _, err := ReadMasqConfig([]byte(text), MasqSetup{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestMasqConfigPods: a list has to keep Pods and nodes among each other.
func TestMasqConfigPods(t *testing.T) {
	f, err := New(Input{PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.4.0.0/14")}, NodeCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/20")}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"nonMasqueradeCIDRs: [10.0.0.0/8]": nil, "nonMasqueradeCIDRs: [10.4.0.0/15]": {"list-without-pods", "list-without-nodes"}, "nonMasqueradeCIDRs: [10.4.0.0/14]": {"list-without-nodes"},
	} {
		in, err := ReadMasqConfig([]byte(text), MasqSetup{})
		if err != nil {
			t.Fatal(err)
		}
		in.check(f, false)
		var codes []string
		for _, w := range in.Warnings {
			codes = append(codes, w.Code)
		}
		if !slices.Equal(codes, want) {
			t.Errorf("%s: %q, want %q", text, codes, want)
		}
	}
}

// TestAgentManifest: the DaemonSet decides what the agent reads, and how.
func TestAgentManifest(t *testing.T) {
	const manifest = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ip-masq-agent, namespace: kube-system}
spec:
  template:
    spec:
      containers:
      - name: ip-masq-agent
        image: registry.k8s.io/networking/ip-masq-agent:v2.10.0
        args: [--masq-chain=IP-MASQ, "--nomasq-all-reserved-ranges", ARGS]
        volumeMounts: [{name: config, mountPath: /etc/config}]
      volumes:
      - name: config
        configMap: {name: my-config, optional: trueITEMS}
`
	for _, tt := range []struct {
		args, items string
		want        MasqSetup
	}{
		{"-v=2", ", items: [{key: config, path: ip-masq-agent}]", MasqSetup{Agent: AgentGKE, ReservedRanges: true, Chain: "IP-MASQ", RandomFully: true, DataKey: "config", ConfigMap: "my-config"}},
		{"--enable-ipv6", ", items: [{key: c.yaml, path: ip-masq-agent}]", MasqSetup{Agent: AgentGKE, ReservedRanges: true, IPv6: true, Chain: "IP-MASQ", RandomFully: true, DataKey: "c.yaml", ConfigMap: "my-config"}},
		{"--random-fully=false", "", MasqSetup{Agent: AgentGKE, ReservedRanges: true, Chain: "IP-MASQ", DataKey: "ip-masq-agent", ConfigMap: "my-config"}},
		{"--random-fully=true", ", items: [{key: config, path: other}]", MasqSetup{Agent: AgentGKE, ReservedRanges: true, Chain: "IP-MASQ", RandomFully: true, DataKey: "", ConfigMap: "my-config"}},
	} {
		got, err := ReadAgentManifest([]byte(strings.NewReplacer("ARGS", tt.args, "ITEMS", tt.items).Replace(manifest)))
		if err != nil || got != tt.want {
			t.Errorf("%s%s: %+v, %v; want %+v", tt.args, tt.items, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		old, new string
		want     string // the data key
	}{
		{"mountPath: /etc/config}", "mountPath: /etc/config/ip-masq-agent, subPath: my-key}", "my-key"},
		{"mountPath: /etc/config}", "mountPath: /etc/other}", ""},
	} {
		got, err := ReadAgentManifest([]byte(strings.NewReplacer(tt.old, tt.new, "ARGS", "-v=2", "ITEMS", "").Replace(manifest)))
		if err != nil || got.DataKey != tt.want {
			t.Errorf("%s: %+v, %v", tt.new, got, err)
		}
	}
	if got, err := ReadAgentManifest([]byte(strings.NewReplacer("--masq-chain=IP-MASQ", "--masq-chain, MY-MASQ", "ARGS", "-v=2", "ITEMS", "").Replace(manifest))); err != nil || got.Chain != "MY-MASQ" {
		t.Errorf("an argument in two words: %+v, %v", got, err)
	}
	if got, err := ReadAgentManifest([]byte(strings.NewReplacer("--masq-chain=IP-MASQ, \"--nomasq-all-reserved-ranges\", ARGS", "--v=2", "ITEMS", "", "ip-masq-agent:v2", "ip-masq-agent-v2:v0").Replace(manifest))); err != nil || got.Agent != AgentAzure || got.Chain != "IP-MASQ-AGENT" {
		t.Errorf("azure: %+v, %v", got, err)
	}
	for _, text := range []string{"kind: Pod\n", "kind: DaemonSet\nspec: {template: {spec: {containers: [{name: x, image: y}]}}}\n", "a: ["} {
		if _, err := ReadAgentManifest([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
