package cluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/srcproof/srcproof/analyze/cluster/netfilter"
)

// What a masquerade configuration asks for, as the agent that reads it understands it.

// MasqAgent is a program that makes masquerade rules of a configuration.
type MasqAgent uint8

// The agents. AgentGuess is the zero value: the configuration's own shape tells.
const (
	AgentGuess    MasqAgent = iota
	AgentUpstream           // kubernetes-sigs/ip-masq-agent
	AgentGKE                // the same as GKE's add-on runs it: with all reserved ranges in its default list
	AgentAzure              // Azure/ip-masq-agent-v2
	AgentCilium             // Cilium's ip-masq-agent in eBPF
)

// String returns the agent's word on the command line and in JSON.
func (a MasqAgent) String() string {
	return [...]string{"", "upstream", "gke", "azure", "cilium"}[a]
}

// MasqAgentOf returns the agent of a word of MasqAgent.String.
func MasqAgentOf(word string) (MasqAgent, bool) {
	for a := AgentUpstream; a <= AgentCilium; a++ {
		if a.String() == word {
			return a, true
		}
	}
	return AgentGuess, false
}

// MasqSetup is how an agent runs: what its DaemonSet's manifest says, or is assumed.
type MasqSetup struct {
	Agent          MasqAgent
	ReservedRanges bool   // --nomasq-all-reserved-ranges: the default list has all ranges that RFCs reserve
	IPv6           bool   // --enable-ipv6
	Chain          string // --masq-chain
	RandomFully    bool   // --random-fully
	DataKey        string // the key of the ConfigMap's data that the agent gets to read; "" is not known
	ConfigMap      string // name of the ConfigMap; "" is not known
	Stated         bool   // a manifest says it
	Guessed        bool   // nothing says which agent it is
	NoDefaultSNAT  bool   // the cluster was made with --disable-default-snat, which counts only where no agent runs
}

// KeptRange is a range of destinations that keep the Pod's address as source.
type KeptRange struct {
	Range netip.Prefix
	Why   string // "nonMasqueradeCIDRs[2]", "the default list", ...
}

// Intent is what a configuration asks for.
type Intent struct {
	Setup    MasqSetup
	From     string      // what was read: "ConfigMap kube-system/ip-masq-agent, key config"
	Keep     []KeptRange // in the order of the rules that the agent makes
	Rejected string      // why the agent refuses the configuration, and goes on with what it had; "" if it takes it
	Words    []string    // what the configuration means, in sentences
	Warnings []Warning   // where it may not mean what its author thinks
	policy   bool        // of EgressNATPolicy objects
	defaults bool        // no list was given: the agent's own is in force
}

// linkLocal4 and linkLocal6 are what agents keep unless told otherwise.
func linkLocal(v4 bool) netip.Prefix {
	if v4 {
		return netip.MustParsePrefix("169.254.0.0/16")
	}
	return netip.MustParsePrefix("fe80::/10")
}

// defaultRanges is an agent's list where no configuration gives one, in the order of upstream's code.
func defaultRanges(reserved bool) []string {
	out := []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}
	if reserved {
		out = append(out, "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4")
	}
	return out
}

// setupOf is how an agent runs where nothing says otherwise.
func setupOf(a MasqAgent) MasqSetup {
	s := MasqSetup{Agent: a, Chain: "IP-MASQ-AGENT", RandomFully: true, DataKey: "config", ConfigMap: "ip-masq-agent"}
	switch a {
	case AgentGKE:
		s.ReservedRanges, s.Chain = true, "IP-MASQ"
	case AgentAzure:
		s.RandomFully, s.DataKey, s.ConfigMap = false, "", "azure-ip-masq-agent-config"
	case AgentCilium:
		s.ReservedRanges, s.Chain, s.RandomFully = true, "", false
	case AgentGuess, AgentUpstream:
		s.Agent = AgentUpstream
	}
	return s
}

// Ask answers for a destination, and says what decides. except are ranges in it that are not meant, local the node's own addresses.
func (in *Intent) Ask(dst netip.Prefix, except netfilter.Ranges, local []netip.Addr) (answer netfilter.Answer, because string) {
	if in.Rejected != "" {
		return netfilter.Undetermined, "the agent refuses this configuration, and the rules that it made before stay: " + in.Rejected
	}
	if slices.Contains(local, dst.Addr()) && dst.IsSingleIP() {
		return netfilter.Kept, "the node's own address"
	}
	v4 := dst.Addr().Is4()
	if !v4 && !in.Setup.IPv6 && !in.policy {
		return netfilter.Kept, "the agent makes no rules for IPv6 (--enable-ipv6 is not given)"
	}
	partly := ""
	for _, k := range in.Keep {
		switch {
		case k.Range.Addr().Is4() != v4 || !k.Range.Overlaps(dst):
		case k.Range.Bits() <= dst.Bits():
			return netfilter.Kept, k.Range.String() + ", " + k.Why
		default:
			if !except.Hold(k.Range, dst.Bits()) {
				partly = cmp.Or(partly, k.Range.String()+", "+k.Why)
			}
		}
	}
	if partly != "" {
		return netfilter.Undetermined, "part of it is kept: " + partly
	}
	switch len(in.Keep) {
	case 0:
		return netfilter.Masqueraded, "no range keeps the source"
	case 1:
		return netfilter.Masqueraded, "not in " + in.Keep[0].Range.String() + ", which alone keeps the source"
	}
	return netfilter.Masqueraded, fmt.Sprintf("in none of the %d ranges that keep the source", len(in.Keep))
}

// warn adds a warning.
func (in *Intent) warn(code, text string, names ...string) {
	in.Warnings = append(in.Warnings, Warning{Code: code, Text: text, Names: names})
}

// reject says why the agent does not take the configuration.
func (in *Intent) reject(format string, args ...any) {
	in.Rejected = cmp.Or(in.Rejected, fmt.Sprintf(format, args...))
}

// ReadMasqConfig reads an agent's configuration: a ConfigMap as kubectl prints it (YAML or JSON, a List too), its data alone, the
// bare file, or EgressNATPolicy objects. It errs where the text is none of these; a configuration that the agent refuses is no
// error, but Rejected.
func ReadMasqConfig(text []byte, setup MasqSetup) (*Intent, error) {
	text, err := utf8Text(text)
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("not text: give the ConfigMap as kubectl -n kube-system get configmap ip-masq-agent -o yaml prints it")
	}
	objects, bare, err := configObjects(text)
	if err != nil {
		return nil, err
	}
	var maps []configObject
	var policies []configObject
	for _, o := range objects {
		switch {
		case o.Kind == "EgressNATPolicy":
			policies = append(policies, o)
		case o.Kind == "ConfigMap" || o.Kind == "" && o.Data != nil:
			maps = append(maps, o)
		}
	}
	switch {
	case len(policies) > 0:
		return readPolicies(policies), nil
	case len(maps) > 0:
		return readConfigMaps(maps, setup)
	case len(objects) > 0:
		return nil, fmt.Errorf("it holds %s, and neither a ConfigMap nor an EgressNATPolicy", plain(objects[0].Kind))
	}
	if len(bytes.TrimSpace(bare)) == 0 {
		return nil, errors.New("it is empty: did kubectl print an error? (What the agent does without a configuration: --agent upstream or gke alone)")
	}
	if !looksLikeConfig(bare) {
		return nil, errors.New("it is no configuration of ip-masq-agent: no key of it is nonMasqueradeCIDRs or another that the agent reads")
	}
	if setup.Agent == AgentGuess {
		setup = setupOf(AgentUpstream)
		setup.Guessed = true
	}
	in := &Intent{Setup: setup, From: "the bare file"}
	in.readFiles([]configFile{{"", bare}})
	return in, nil
}

// masqKeys are the keys that agents read.
func masqKeys() []string {
	return []string{"nonMasqueradeCIDRs", "cidrLimit", "masqLinkLocal", "masqLinkLocalIPv6", "resyncInterval"}
}

// looksLikeConfig tells whether a file has a key that an agent reads, or one that is meant to be such.
func looksLikeConfig(text []byte) bool {
	j, err := yaml.YAMLToJSON(text)
	if err != nil {
		return bytes.Contains(bytes.ToLower(text), []byte("masq")) // the agent refuses it
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(j, &keys) != nil {
		return false
	}
	for k := range keys {
		if slices.ContainsFunc(masqKeys(), func(s string) bool { return strings.EqualFold(s, k) }) || nearest(k, masqKeys()) != "" {
			return true
		}
	}
	return len(keys) == 0
}

// readFor is ReadMasqConfig; where nothing says which agent reads the configuration, the chain that the node has tells.
func readFor(text []byte, setup MasqSetup, rules *netfilter.Ruleset) (*Intent, error) {
	in, err := ReadMasqConfig(text, setup)
	if err == nil && in.Setup.Guessed && rules.HasChain("IP-MASQ") && !rules.HasChain("IP-MASQ-AGENT") {
		setup = setupOf(AgentGKE)
		setup.Guessed = true
		return ReadMasqConfig(text, setup)
	}
	return in, err
}

// DefaultIntent is what an agent does without a configuration, or the node itself without an agent.
func DefaultIntent(setup MasqSetup) *Intent {
	if setup.Agent == AgentGuess {
		setup.Agent = AgentGKE
	}
	in := &Intent{Setup: setup, From: "no configuration"}
	if setup.NoDefaultSNAT {
		in.From = "no agent, and the cluster made with --disable-default-snat"
		in.Keep = []KeptRange{{netip.MustParsePrefix("0.0.0.0/0"), in.From}, {netip.MustParsePrefix("::/0"), in.From}}
		in.Words = []string{"Without an agent such a cluster keeps the Pod's address for every destination."}
		return in
	}
	in.readFiles(nil)
	return in
}

// configObject is a Kubernetes object as far as it matters here.
type configObject struct {
	Kind     string                           `json:"kind"`
	Metadata struct{ Name, Namespace string } `json:"metadata"`
	Data     map[string]json.RawMessage       `json:"data"`
	Binary   map[string][]byte                `json:"binaryData"`
	Items    []json.RawMessage                `json:"items"`
	Spec     struct {
		Action       string `json:"action"`
		Destinations []struct {
			CIDR string `json:"cidr"`
		} `json:"destinations"`
	} `json:"spec"`
}

func (o *configObject) name() string {
	if o.Metadata.Name == "" {
		return cmp.Or(o.Kind, "a fragment of a ConfigMap")
	}
	n := plain(o.Metadata.Name)
	if o.Metadata.Namespace != "" {
		n = plain(o.Metadata.Namespace) + "/" + n
	}
	return strings.TrimSpace(o.Kind + " " + n)
}

// configObjects parts a text into Kubernetes objects; bare is the text where it is none.
func configObjects(text []byte) (objects []configObject, bare []byte, err error) {
	const most = 10_000
	for start := 0; start < len(text); {
		end, after := yamlDocument(text, start)
		doc := text[start:end]
		start = after
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		j, err := yaml.YAMLToJSON(doc)
		if err != nil {
			if bare == nil && bytes.Contains(bytes.ToLower(doc), []byte("nonmasquerade")) && !bytes.Contains(doc, []byte("kind:")) {
				bare = doc // the agent refuses it
				continue
			}
			return nil, nil, fmt.Errorf("neither YAML nor JSON: %w", err)
		}
		var o configObject
		if json.Unmarshal(j, &o) != nil || o.Kind == "" && o.Data == nil {
			if bare == nil { // of several documents the agent reads the first
				bare = doc
			}
			continue
		}
		if len(o.Items) == 0 {
			objects = append(objects, o)
			continue
		}
		for _, raw := range o.Items {
			var item configObject
			if err := json.Unmarshal(raw, &item); err != nil {
				return nil, nil, fmt.Errorf("an item of the list: %w", err)
			}
			if item.Kind == "" {
				item.Kind = strings.TrimSuffix(o.Kind, "List")
			}
			if objects = append(objects, item); len(objects) > most {
				return nil, nil, fmt.Errorf("more than %d objects: give the one ConfigMap", most)
			}
		}
	}
	return objects, bare, nil
}

// configFile is a file as the agent sees it in its volume.
type configFile struct {
	key  string
	text []byte
}

func (f configFile) name() string {
	if f.key == "" {
		return "the file"
	}
	return plain(f.key)
}

// readConfigMaps finds the agent's ConfigMap, and in it what the agent gets to read.
func readConfigMaps(all []configObject, setup MasqSetup) (*Intent, error) {
	const how = "give what kubectl -n kube-system get configmap ip-masq-agent -o yaml prints"
	var own []configObject
	for _, o := range all {
		if strings.Contains(o.Metadata.Name, "ip-masq") || len(all) == 1 {
			own = append(own, o)
		}
	}
	if len(own) == 0 {
		return nil, errors.New("none of its ConfigMaps is ip-masq-agent's: " + how)
	}
	if len(own) == 1 && own[0].Metadata.Name != "" && !strings.Contains(own[0].Metadata.Name, "masq") && !own[0].looksLikeConfig() {
		return nil, fmt.Errorf("%s is not ip-masq-agent's: %s", own[0].name(), how)
	}
	if setup.Agent == AgentGuess {
		guess := AgentUpstream
		for _, o := range own {
			if strings.HasPrefix(o.Metadata.Name, "azure-ip-masq") {
				guess = AgentAzure
			}
		}
		setup = setupOf(guess)
		setup.Guessed = guess == AgentUpstream
	}
	if len(own) > 1 && setup.Agent != AgentAzure {
		own = slices.DeleteFunc(own, func(o configObject) bool { return o.Metadata.Name != cmp.Or(setup.ConfigMap, "ip-masq-agent") })
		if system := slices.DeleteFunc(slices.Clone(own), func(o configObject) bool { return o.Metadata.Namespace != "kube-system" }); len(system) > 0 {
			own = system
		}
		if len(own) != 1 {
			return nil, fmt.Errorf("it holds several ConfigMaps, and which of them the agent reads is not clear: %s", how)
		}
	}
	in := &Intent{Setup: setup}
	var files []configFile
	var names []string
	for _, o := range own {
		names = append(names, o.name())
		if n := o.Metadata.Name; setup.Stated && setup.Agent != AgentAzure && n != "" && setup.ConfigMap != "" && n != setup.ConfigMap {
			in.warn("wrong-configmap", fmt.Sprintf("the DaemonSet mounts the ConfigMap %s and not %s: the agent does not read this one. What is taken here are its defaults", plain(setup.ConfigMap), plain(n)), n)
			continue
		}
		usual := cmp.Or(setup.ConfigMap, "ip-masq-agent")
		if n, space := o.Metadata.Name, o.Metadata.Namespace; !setup.Stated && setup.Agent != AgentAzure && (n != "" && n != usual || space != "" && space != "kube-system") {
			in.warn("wrong-configmap", fmt.Sprintf("the agent's usual DaemonSet mounts the ConfigMap kube-system/%s and not %s: then the agent finds no file, and uses its defaults without a word. What the list says is taken here as meant; --agent-manifest tells",
				plain(usual), o.name()), o.name())
		}
		keys := o.keys()
		var odd []string
		for _, k := range keys {
			text := o.file(k)
			switch {
			case setup.Agent == AgentAzure && strings.HasPrefix(k, "ip-masq"), setup.Agent != AgentAzure && k == setup.DataKey:
				files = append(files, configFile{k, []byte(text)})
			default:
				odd = append(odd, k)
			}
		}
		wanted := "data key " + plain(setup.DataKey)
		if setup.Agent == AgentAzure {
			wanted = "data keys that begin with ip-masq"
		}
		switch {
		case len(odd) == 0:
		case setup.Stated && setup.Agent != AgentAzure && len(files) == 0:
			in.warn("wrong-data-key", fmt.Sprintf("the data key is %s, and of the DaemonSet's volume %s becomes the file that the agent reads: it finds none, and uses its defaults", plainList(odd), cmp.Or(setup.DataKey, "none")), odd...)
		case setup.Agent != AgentAzure && len(files) == 0 && len(odd) == 1 && setup.DataKey != "":
			// What its author means is plain; what the agent gets to read hangs on how its DaemonSet maps keys to files.
			files = append(files, configFile{odd[0], []byte(o.file(odd[0]))})
			in.warn("wrong-data-key", fmt.Sprintf("the data key is %s and not %s, which the agent's usual DaemonSet gives it to read: with another key it finds no file, and uses its defaults without a word. What the list says is taken here as meant; --agent-manifest tells",
				plain(odd[0]), plain(setup.DataKey)), odd[0])
		default:
			in.warn("data-key-ignored", "the agent reads "+wanted+" and nothing else: "+plainList(odd)+" is not read", odd...)
		}
	}
	in.From = strings.Join(names, " and ")
	if len(files) > 0 {
		var keys []string
		for _, f := range files {
			keys = append(keys, plain(f.key))
		}
		in.From += ", key " + strings.Join(keys, " and ")
	}
	in.readFiles(files)
	return in, nil
}

// keys are the names of the files that a ConfigMap becomes in a volume, sorted.
func (o *configObject) keys() []string {
	var keys []string
	for k := range o.Data {
		keys = append(keys, k)
	}
	for k := range o.Binary {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// file is the text of one of them.
func (o *configObject) file(key string) string {
	raw, ok := o.Data[key]
	if !ok {
		return string(o.Binary[key])
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw) // in a fragment the file's YAML may not be a string yet
	}
	return text
}

// looksLikeConfig tells whether one of its files does.
func (o *configObject) looksLikeConfig() bool {
	return slices.ContainsFunc(o.keys(), func(k string) bool { return looksLikeConfig([]byte(o.file(k))) })
}

// masqDuration is the agent's: a string, and nothing else.
type masqDuration struct{}

// UnmarshalJSON is upstream's Duration.UnmarshalJSON.
func (*masqDuration) UnmarshalJSON(b []byte) error {
	if len(b) < 2 || b[0] != '"' {
		return fmt.Errorf("resyncInterval is %s, and must be a string like 60s", b)
	}
	if _, err := time.ParseDuration(string(b[1 : len(b)-1])); err != nil {
		return fmt.Errorf("resyncInterval: %w", err)
	}
	return nil
}

// masqConfig is the file as agents decode it: into the defaults, so that what it does not have stays, and that an item of a list
// that is null leaves what stood there.
type masqConfig struct {
	NonMasqueradeCIDRs []string     `json:"nonMasqueradeCIDRs"`
	CidrLimit          int          `json:"cidrLimit"`
	MasqLinkLocal      bool         `json:"masqLinkLocal"`
	MasqLinkLocalIPv6  bool         `json:"masqLinkLocalIPv6"`
	ResyncInterval     masqDuration `json:"resyncInterval"`
}

// masqConfig3 is the file of agents that know three keys.
type masqConfig3 struct {
	NonMasqueradeCIDRs []string `json:"nonMasqueradeCIDRs"`
	MasqLinkLocal      bool     `json:"masqLinkLocal"`
	MasqLinkLocalIPv6  bool     `json:"masqLinkLocalIPv6"`
}

// readFiles reads the files that the agent finds, none of them being its defaults.
func (in *Intent) readFiles(files []configFile) {
	s := in.Setup
	c := masqConfig{NonMasqueradeCIDRs: defaultRanges(s.ReservedRanges), CidrLimit: 64}
	why := make([]string, len(c.NonMasqueradeCIDRs))
	for i := range why {
		why[i] = "the default list"
	}
	given := false // the configuration has a list
	switch {
	case len(files) == 0:
		in.Words = append(in.Words, "Without a configuration the agent keeps the Pod's address for its default list.")
	case s.Agent == AgentAzure:
		c, why = masqConfig{CidrLimit: 64}, nil
		for _, f := range files {
			one := masqConfig{CidrLimit: 64}
			has := in.decode(f, &one)
			given = given || has
			if n := len(one.NonMasqueradeCIDRs); n > one.CidrLimit {
				in.reject("%d ranges in %s, and the agent takes %d at most of one file", n, f.name(), one.CidrLimit)
			}
			for i, r := range one.NonMasqueradeCIDRs {
				if !slices.Contains(c.NonMasqueradeCIDRs, r) {
					c.NonMasqueradeCIDRs = append(c.NonMasqueradeCIDRs, r)
					why = append(why, fmt.Sprintf("nonMasqueradeCIDRs[%d] of %s", i, f.name()))
				}
			}
			c.MasqLinkLocal = c.MasqLinkLocal || one.MasqLinkLocal
			c.MasqLinkLocalIPv6 = c.MasqLinkLocalIPv6 || one.MasqLinkLocalIPv6
		}
		if len(c.NonMasqueradeCIDRs) == 0 && in.Rejected == "" {
			in.warn("masquerades-everything", "no file has a list: this agent then masquerades every destination, Pods and nodes too")
		}
	default:
		defaults := slices.Clone(c.NonMasqueradeCIDRs)
		if s.Agent == AgentCilium {
			c, why = masqConfig{CidrLimit: 1 << 30}, nil
		}
		given = in.decode(files[0], &c)
		if given || s.Agent == AgentCilium {
			why = make([]string, len(c.NonMasqueradeCIDRs))
			for i := range why {
				why[i] = fmt.Sprintf("nonMasqueradeCIDRs[%d]", i)
			}
		}
		in.list(files[0], &c, given, defaults)
	}
	if n := len(c.NonMasqueradeCIDRs); n > c.CidrLimit && s.Agent != AgentCilium && s.Agent != AgentAzure {
		in.reject("%d ranges, and the agent takes %d at most (cidrLimit)", n, c.CidrLimit)
	}
	if !c.MasqLinkLocal {
		in.Keep = append(in.Keep, KeptRange{linkLocal(true), "link-local, kept unless masqLinkLocal is true"})
	}
	if !c.MasqLinkLocalIPv6 && (s.IPv6 || s.Agent == AgentCilium) {
		in.Keep = append(in.Keep, KeptRange{linkLocal(false), "link-local, kept unless masqLinkLocalIPv6 is true"})
	}
	for i, r := range c.NonMasqueradeCIDRs {
		in.keep(r, why[i])
	}
	if in.Rejected != "" {
		in.Keep = nil
		what := "The rules that it made before stay as they are, and are not healed; on a new node it makes none."
		if s.Agent == AgentAzure {
			what = "It ends, and is started again and again; the rules that it made before stay as they are."
		}
		in.Words = append(in.Words, "The agent refuses this configuration: "+in.Rejected+". "+what)
		return
	}
	in.defaults = !given && s.Agent != AgentCilium && s.Agent != AgentAzure
	var all []string
	for _, k := range in.Keep {
		all = append(all, k.Range.String())
	}
	in.Words = append(in.Words, "Kept, with the Pod's own address: "+cmp.Or(plainList(all), "nothing")+". Every other destination gets the node's address.")
}

// keep adds a range of the list, as the agent checks it.
func (in *Intent) keep(text, why string) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil && in.Setup.Agent == AgentCilium:
		in.reject("%q is not a range in CIDR notation", text)
	case err != nil:
		hint := ""
		if a, err := netip.ParseAddr(text); err == nil {
			hint = fmt.Sprintf(" (for the one address: %s/%d)", a, a.BitLen())
		}
		in.reject("%q is not a range in CIDR notation%s", text, hint)
	case p != p.Masked() && in.Setup.Agent == AgentCilium:
		in.warn("unaligned-cidr", fmt.Sprintf("%s has bits set behind its first %d: the agent takes it as %s", text, p.Bits(), p.Masked()), text)
		in.Keep = append(in.Keep, KeptRange{p.Masked(), why})
	case p != p.Masked():
		in.reject("%q is not aligned: the range is %s", text, p.Masked())
	case p.Addr().Is6() && !in.Setup.IPv6 && in.Setup.Agent != AgentCilium:
		in.reject("%s is of IPv6, which the agent takes with --enable-ipv6 only", text)
	default:
		for _, k := range in.Keep {
			if k.Range == p {
				in.warn("duplicate-range", text+" stands in the list more than once, which changes nothing", text)
			}
		}
		if p.Bits() == 0 {
			in.warn("keeps-everything", text+" keeps the Pod's address for every destination: nothing is masqueraded", text)
		}
		in.Keep = append(in.Keep, KeptRange{p, why})
	}
}

// decode reads a file into a configuration as the agent does (encoding/json: names of keys in any case, unknown ones ignored), and
// tells whether it has a list.
func (in *Intent) decode(f configFile, into *masqConfig) (hasList bool) {
	j, err := yaml.YAMLToJSON(f.text)
	if err != nil {
		in.reject("the file is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return false
	}
	var target any = into
	three := masqConfig3{into.NonMasqueradeCIDRs, into.MasqLinkLocal, into.MasqLinkLocalIPv6}
	known := masqKeys()
	if in.Setup.Agent == AgentAzure || in.Setup.Agent == AgentCilium {
		target, known = &three, []string{"nonMasqueradeCIDRs", "masqLinkLocal", "masqLinkLocalIPv6"}
	}
	if err := json.Unmarshal(j, target); err != nil {
		in.reject("%s", jsonReason(err))
		return false
	}
	if target == any(&three) {
		into.NonMasqueradeCIDRs, into.MasqLinkLocal, into.MasqLinkLocalIPv6 = three.NonMasqueradeCIDRs, three.MasqLinkLocal, three.MasqLinkLocalIPv6
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(j, &keys) != nil {
		return false
	}
	names := make([]string, 0, len(keys))
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		i := slices.IndexFunc(known, func(s string) bool { return strings.EqualFold(s, k) })
		switch {
		case i < 0:
			text := "the agent does not know the key " + plain(k) + " and ignores it"
			if near := nearest(k, known); near != "" {
				text += ": " + near + " is meant"
			}
			in.warn("unknown-key", text, k)
		case known[i] == "nonMasqueradeCIDRs":
			hasList = true
		}
	}
	return hasList
}

// jsonReason is a decoding error in a person's words.
func jsonReason(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := t.Field
		if field == "" {
			return "the file is a " + t.Value + ", and must be a list of keys"
		}
		return fmt.Sprintf("%s is a %s, and must be %s", field, t.Value, typeWord(t.Type))
	}
	return err.Error()
}

// nearest returns the word that a misspelt one is meant to be, "" if none is near.
func nearest(s string, of []string) string {
	best, least := "", 4
	for _, o := range of {
		if d := distance(strings.ToLower(s), strings.ToLower(o)); d < least {
			best, least = o, d
		}
	}
	return best
}

// distance is how many letters have to be changed, added or left out.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// list says what the list of a file means where it may surprise.
func (in *Intent) list(f configFile, c *masqConfig, given bool, defaults []string) {
	if in.Rejected != "" {
		return
	}
	j, err := yaml.YAMLToJSON(f.text)
	if err != nil {
		return
	}
	var raw struct {
		NonMasqueradeCIDRs *[]any `json:"nonMasqueradeCIDRs"`
	}
	_ = json.Unmarshal(j, &raw) // it was decoded before
	switch {
	case !given && in.Setup.Agent == AgentCilium:
		in.warn("no-list", "the file has no nonMasqueradeCIDRs: this agent then has no defaults, and keeps link-local alone")
	case !given:
		in.warn("no-list", "the file has no nonMasqueradeCIDRs: the default list is in force, "+plainList(defaults))
	case len(c.NonMasqueradeCIDRs) == 0:
		what := "an empty list"
		if raw.NonMasqueradeCIDRs == nil {
			what = "a list without a value (null)"
		}
		in.warn("masquerades-everything", what+" masquerades every destination, Pods and nodes too")
	}
	if raw.NonMasqueradeCIDRs != nil {
		for i, v := range *raw.NonMasqueradeCIDRs {
			if v == nil && i < len(c.NonMasqueradeCIDRs) {
				in.warn("null-item", fmt.Sprintf("item %d of the list is empty (null): the agent keeps what its default list has in that place, %s", i, cmp.Or(plain(c.NonMasqueradeCIDRs[i]), "nothing")))
			}
		}
	}
}

// readPolicies reads EgressNATPolicy objects (networking.gke.io/v1): destinations of all of them keep the Pod's address.
func readPolicies(all []configObject) *Intent {
	setup := setupOf(AgentGKE)
	in := &Intent{Setup: setup, policy: true}
	var names []string
	for _, o := range all {
		names = append(names, plain(o.Metadata.Name))
		if o.Spec.Action != "NoSNAT" {
			in.warn("unknown-action", "EgressNATPolicy "+plain(o.Metadata.Name)+" has the action "+plain(o.Spec.Action)+"; NoSNAT is the only one that is documented, so it is left out here", o.Metadata.Name)
			continue
		}
		for i, d := range o.Spec.Destinations {
			why := fmt.Sprintf("destinations[%d] of EgressNATPolicy %s", i, plain(o.Metadata.Name))
			if d.CIDR == "" {
				in.warn("null-item", why+" has no cidr and is ignored", o.Metadata.Name)
				continue
			}
			p, err := netip.ParsePrefix(d.CIDR)
			if err != nil {
				in.reject("%s: %q is not a range in CIDR notation", why, d.CIDR)
				continue
			}
			in.Keep = append(in.Keep, KeptRange{p.Masked(), why})
		}
	}
	in.From = "EgressNATPolicy " + strings.Join(names, ", ")
	if in.Rejected != "" {
		in.Keep = nil
		in.Words = []string{"It is not valid: " + in.Rejected + "."}
		return in
	}
	var ranges []string
	for _, k := range in.Keep {
		ranges = append(ranges, k.Range.String())
	}
	in.Words = []string{"Kept, with the Pod's own address: " + cmp.Or(plainList(ranges), "nothing") + ". Every other destination gets the node's address."}
	if !slices.ContainsFunc(all, func(o configObject) bool { return strings.HasPrefix(o.Metadata.Name, "gke-") }) {
		in.warn("policy-missing", "the managed policy gke-... (node, Pod and Service ranges) is not in the input: kubectl get egressnatpolicies -o yaml prints all of them")
	}
	return in
}

// Plan reads a configuration that may come in the place of the one in force, for the same agent. It errs as ReadMasqConfig does.
func (f *Facts) Plan(text []byte, name string) (*Intent, error) {
	in, err := readFor(text, f.setup, f.rules)
	if err != nil {
		return nil, err
	}
	in.From = name + ": " + in.From
	in.check(f, true)
	return in, nil
}

// check warns where a list leaves out the ranges that must be kept: Pods and nodes among each other, and of a plan Services.
func (in *Intent) check(f *Facts, planned bool) {
	if in.Rejected != "" {
		return
	}
	of := func(kind string, ranges []netip.Prefix, means string) {
		var out []string
		for _, p := range ranges {
			if a, _ := in.Ask(p, nil, nil); a != netfilter.Kept {
				out = append(out, p.String())
			}
		}
		if len(out) > 0 {
			in.warn("list-without-"+kind+"s", fmt.Sprintf("the %s range %s is not all in the list: %s", map[string]string{"pod": "Pod", "node": "node", "service": "Service"}[kind], plainList(out), means), out...)
		}
	}
	of("pod", f.PodPrefixes(), "Pods' packets to Pods get the node's address, and network policies and logs that know Pods by address see nodes")
	of("node", f.NodePrefixes(), "Pods' packets to other nodes get the node's address")
	if planned {
		of("service", f.ServicePrefixes(), "it matters only where Pods' packets to Services leave the node untranslated; usually the node puts an endpoint's address in place first")
	}
}
