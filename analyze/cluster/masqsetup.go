package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/srcproof/srcproof/analyze/cluster/netfilter"
)

// daemonSet is a DaemonSet as far as it matters here.
type daemonSet struct {
	Kind string `json:"kind"`
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Name, Image   string
					Command, Args []string
					VolumeMounts  []volumeMount
				} `json:"containers"`
				Volumes []struct {
					Name      string
					ConfigMap *struct {
						Name  string
						Items []struct{ Key, Path string }
					} `json:"configMap"`
				} `json:"volumes"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Items []json.RawMessage `json:"items"`
}

type volumeMount struct{ Name, MountPath, SubPath string }

// agentFile is the file that upstream's agent reads (configPath in its code).
const agentFile = "/etc/config/ip-masq-agent"

// ReadAgentManifest reads the agent's DaemonSet, as kubectl prints it or as it was applied: its arguments, and which key of which
// ConfigMap it gets to read. It errs where there is no such DaemonSet in the text.
func ReadAgentManifest(text []byte) (MasqSetup, error) {
	const how = "give what kubectl -n kube-system get daemonset ip-masq-agent -o yaml prints"
	text, err := utf8Text(text)
	if err != nil {
		return MasqSetup{}, err
	}
	for start := 0; start < len(text); {
		end, after := yamlDocument(text, start)
		doc := text[start:end]
		start = after
		j, err := yaml.YAMLToJSON(doc)
		if err != nil {
			return MasqSetup{}, errors.New("neither YAML nor JSON: " + how)
		}
		var d daemonSet
		if json.Unmarshal(j, &d) != nil {
			continue
		}
		if s, ok := d.setup(); ok {
			return s, nil
		}
		for _, raw := range d.Items {
			var item daemonSet
			if json.Unmarshal(raw, &item) != nil {
				continue
			}
			if s, ok := item.setup(); ok {
				return s, nil
			}
		}
	}
	return MasqSetup{}, errors.New("no DaemonSet of ip-masq-agent is in it: " + how)
}

// setup reads the arguments and volumes of the agent's container; ok is false if there is none.
func (d *daemonSet) setup() (s MasqSetup, ok bool) {
	spec := &d.Spec.Template.Spec
	at := slices.IndexFunc(spec.Containers, func(c struct {
		Name, Image   string
		Command, Args []string
		VolumeMounts  []volumeMount
	},
	) bool {
		return strings.Contains(c.Image, "ip-masq-agent") || strings.Contains(c.Name, "ip-masq-agent")
	})
	if at < 0 {
		return s, false
	}
	c := &spec.Containers[at]
	s = setupOf(AgentUpstream)
	if strings.Contains(c.Image, "ip-masq-agent-v2") || strings.Contains(c.Name, "azure") {
		s = setupOf(AgentAzure)
	}
	args := slices.Concat(c.Command, c.Args)
	for i, arg := range args {
		name, value, has := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name == "masq-chain" && !has && i+1 < len(args) {
			value, has = args[i+1], true
		}
		on, err := strconv.ParseBool(value)
		if !has {
			on, err = true, nil
		}
		switch {
		case name == "masq-chain" && has:
			s.Chain = value
		case err != nil:
		case name == "nomasq-all-reserved-ranges":
			s.ReservedRanges = on
			if on && s.Agent == AgentUpstream {
				s.Agent = AgentGKE
			}
		case name == "enable-ipv6":
			s.IPv6 = on
		case name == "random-fully":
			s.RandomFully = on
		}
	}
	if s.Agent != AgentAzure {
		s.DataKey, s.ConfigMap = "", "" // unless a volume has the file
	}
	for _, m := range c.VolumeMounts {
		dir, file := path.Split(agentFile)
		single := m.MountPath == agentFile
		if path.Clean(m.MountPath) != path.Clean(dir) && !single {
			continue
		}
		for _, v := range spec.Volumes {
			if v.Name != m.Name || v.ConfigMap == nil {
				continue
			}
			s.ConfigMap = v.ConfigMap.Name
			if s.Agent == AgentAzure {
				continue
			}
			want := file // in the volume
			if single {
				want = path.Clean(m.SubPath)
			}
			if len(v.ConfigMap.Items) == 0 {
				s.DataKey = want // each key is a file of its name
			}
			for _, i := range v.ConfigMap.Items {
				if path.Clean(i.Path) == want {
					s.DataKey = i.Key
				}
			}
		}
	}
	return s, true
}

// masquerade reads the configuration that was given; nil if none was. setup is what was stated of the agent.
func (b *builder) masquerade(in Input, rules *netfilter.Ruleset) (intent *Intent, setup MasqSetup, err error) {
	if in.Agent != AgentGuess {
		setup = setupOf(in.Agent)
	}
	if in.AgentManifest != nil {
		if setup, err = ReadAgentManifest(in.AgentManifest); err != nil {
			return nil, setup, fmt.Errorf("--agent-manifest %s: %w", in.AgentManifestName, err)
		}
		setup.Stated = true
		b.given = append(b.given, Given{"--agent-manifest", in.AgentManifestName + ": " + setup.words()})
	}
	switch {
	case in.MasqConfig != nil:
		intent, err := readFor(in.MasqConfig, setup, rules)
		if err != nil {
			return nil, setup, fmt.Errorf("--masq-config %s: %w", in.MasqConfigName, err)
		}
		intent.From = in.MasqConfigName + ": " + intent.From
		b.given = append(b.given, Given{"--masq-config", intent.From + ", for the agent " + intent.Setup.agentWords()})
		return intent, setup, nil
	case in.NoDefaultSNAT:
		b.given = append(b.given, Given{"--disable-default-snat", "the cluster was made with it"})
		without := setup
		without.NoDefaultSNAT = true
		return DefaultIntent(without), setup, nil
	case in.Agent != AgentGuess || in.AgentManifest != nil:
		b.given = append(b.given, Given{"--agent", setup.Agent.String() + ", without a configuration"})
		return DefaultIntent(setup), setup, nil
	}
	return nil, setup, nil
}

// agentWords names the agent, and says if it is a guess.
func (s *MasqSetup) agentWords() string {
	if s.Guessed {
		return s.Agent.String() + " (a guess: --agent tells)"
	}
	return s.Agent.String()
}

// words says how the agent runs.
func (s *MasqSetup) words() string {
	w := []string{"agent " + s.Agent.String()}
	if s.Chain != "" {
		w = append(w, "chain "+plain(s.Chain))
	}
	if s.ReservedRanges {
		w = append(w, "all reserved ranges in its default list")
	}
	if s.IPv6 {
		w = append(w, "IPv6 too")
	}
	if s.Agent != AgentAzure {
		if s.DataKey == "" {
			w = append(w, "no key of its ConfigMap becomes the file that it reads")
		} else {
			w = append(w, "reads the data key "+plain(s.DataKey))
		}
	}
	return strings.Join(w, ", ")
}

// rules reads the listings of the node's rules; nil if none were given.
func (b *builder) rules(in Input) (*netfilter.Ruleset, error) {
	if len(in.Rules) == 0 {
		return nil, nil //nolint:nilnil // nothing was given, which is no error
	}
	rs := &netfilter.Ruleset{}
	var errs []error
	for _, r := range in.Rules {
		text, err := utf8Text(r.Text)
		if err == nil {
			err = rs.Read(string(text), r.Name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", r.Flag, r.Name, err))
			continue
		}
		b.given = append(b.given, Given{r.Flag, r.Name})
	}
	for _, n := range rs.Notes {
		b.warn("rules-input", n, nil)
	}
	return rs, errors.Join(errs...)
}
