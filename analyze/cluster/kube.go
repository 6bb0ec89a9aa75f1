package cluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// clusterCommand makes the file that --cluster reads.
const clusterCommand = "kubectl get nodes,pods -A -o json > cluster.json"

const (
	// maxItem bounds one Kubernetes object. The API server's store takes about 1.5 MiB (etcd's default request limit);
	// anything much larger is not an object, and what it decodes to would be many times its size.
	maxItem = 16 << 20
	// maxYAML bounds a YAML file, which has to be held as a tree before it can be read. JSON is read item by item.
	maxYAML = 32 << 20
	// maxPodIPs bounds the addresses of a Pod and of its host. Kubernetes allows one for each family.
	maxPodIPs = 16
)

// kubeItem is what is read of a Node, Pod or Service, or of the list around them.
type kubeItem struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name              string `json:"name"`
		Namespace         string `json:"namespace"`
		DeletionTimestamp string `json:"deletionTimestamp"`
		Labels            struct {
			App string `json:"k8s-app"`
		} `json:"labels"`
	} `json:"metadata"`
	Spec   kubeSpec   `json:"spec"`
	Status kubeStatus `json:"status"`

	typeErr   *json.UnmarshalTypeError // the first field of another type than in Kubernetes: an error only in the kinds that are read
	typeErrAt string                   // that field
	start     int64                    // offset behind which the item begins
	n         int                      // its number in the file, from 1
}

type kubeSpec struct {
	PodCIDR     string   `json:"podCIDR"`  // Node
	PodCIDRs    []string `json:"podCIDRs"` // Node
	NodeName    string   `json:"nodeName"` // Pod
	HostNetwork bool     `json:"hostNetwork"`
	Containers  []struct {
		Image string `json:"image"`
	} `json:"containers"`
	ClusterIP   string   `json:"clusterIP"` // Service
	ClusterIPs  []string `json:"clusterIPs"`
	ExternalIPs []string `json:"externalIPs"`
}

type kubeStatus struct {
	Addresses []struct {
		Type    string `json:"type"`
		Address string `json:"address"`
	} `json:"addresses"` // Node
	NodeInfo struct {
		OS string `json:"operatingSystem"`
	} `json:"nodeInfo"`
	Phase      string   `json:"phase"` // Pod
	StartTime  string   `json:"startTime"`
	PodIP      string   `json:"podIP"`
	PodIPs     []kubeIP `json:"podIPs"`
	HostIP     string   `json:"hostIP"`
	HostIPs    []kubeIP `json:"hostIPs"`
	Conditions []struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	} `json:"conditions"`
	LoadBalancer struct {
		Ingress []kubeIP `json:"ingress"` // Service
	} `json:"loadBalancer"`
}

type kubeIP struct {
	IP string `json:"ip"`
}

// kubeNode, kubePod and kubeService are what is kept of an object.
type kubeNode struct {
	name, os string
	addrs    []kubeAddr
	podCIDRs []netip.Prefix
}

type kubeAddr struct {
	what string // "status.addresses InternalIP"
	addr netip.Addr
}

type kubePod struct {
	name        string // namespace/name
	namespace   string
	node        string
	phase       string
	start       time.Time
	ips         []netip.Addr
	hostIPs     []netip.Addr
	hostNetwork bool
	deleting    bool
	ready       bool
	agent       bool // looks like ip-masq-agent
	dataplane   string
}

type kubeService struct {
	name  string // namespace/name
	addrs []kubeAddr
}

// kubeFile is what the --cluster file holds.
type kubeFile struct {
	nodes    []kubeNode
	pods     []kubePod
	services []kubeService
	others   int      // objects of other kinds
	bad      []string // values that are no address: "status.podIP of ns/name is "x""
}

// readCluster reads what kubectl printed: JSON (a List, a list of one kind, one object, a bare array of objects, and
// several of these in a row) or YAML (documents of the same).
func readCluster(text []byte) (*kubeFile, error) {
	text, err := utf8Text(text)
	if err != nil {
		return nil, err
	}
	var file kubeFile
	switch first := bytes.TrimLeft(text, " \t\r\n"); {
	case len(first) == 0:
		return nil, fmt.Errorf("the file is empty; make it with: %s", clusterCommand)
	case first[0] == '{' || first[0] == '[':
		r := kubeReader{data: text, file: &file, isJSON: true}
		err = r.read()
	default:
		err = readYAML(text, &file)
	}
	if err != nil {
		return nil, err
	}
	if len(file.nodes) == 0 && len(file.pods) == 0 {
		return nil, fmt.Errorf("no nodes and no Pods in it (%s of other kinds); make it with: %s",
			count(len(file.services)+file.others, "object"), clusterCommand)
	}
	return &file, nil
}

// readYAML reads YAML documents by way of JSON, as kubectl does.
func readYAML(text []byte, file *kubeFile) error {
	if len(text) > maxYAML {
		return fmt.Errorf("YAML of more than %d MiB; make JSON, which is read piece by piece: %s", maxYAML>>20, clusterCommand)
	}
	for start, line := 0, 1; start < len(text); {
		end, after := yamlDocument(text, start)
		doc := text[start:end]
		if len(bytes.TrimSpace(doc)) > 0 {
			j, err := yaml.YAMLToJSON(doc)
			if err != nil {
				return fmt.Errorf("document at line %d is neither JSON nor YAML (%q); make it with: %s", line, err.Error(), clusterCommand)
			}
			switch j = bytes.TrimSpace(j); {
			case bytes.Equal(j, []byte("null")): // nothing but comments
			case j[0] != '{' && j[0] != '[':
				return fmt.Errorf("document at line %d is text, not an object that kubectl printed as JSON or YAML; make it with: %s",
					line, clusterCommand)
			default:
				r := kubeReader{data: j, file: file}
				if err := r.read(); err != nil {
					return fmt.Errorf("document at line %d: %w", line, err)
				}
			}
		}
		line += bytes.Count(text[start:after], []byte{'\n'})
		start = after
	}
	return nil
}

// yamlDocument returns where the document that starts at start ends, and where the next one starts: behind "---" or "..." at the
// beginning of a line.
func yamlDocument(text []byte, start int) (end, after int) {
	for at := start; at < len(text); {
		line := text[at:]
		n := bytes.IndexByte(line, '\n') + 1
		if n > 0 {
			line = line[:n]
		}
		if len(line) >= 3 && (string(line[:3]) == "---" || string(line[:3]) == "...") && len(bytes.TrimLeft(line[3:min(4, len(line))], " \t\r\n")) == 0 {
			return at, at + 3
		}
		at += len(line)
	}
	return len(text), len(text)
}

// keep takes what is needed of an object. Only the core group's kinds are meant: Knative has a Service, too.
func (r *kubeReader) keep(it *kubeItem) error {
	core := it.APIVersion == "" || it.APIVersion == "v1"
	if !core || it.Kind != "Node" && it.Kind != "Pod" && it.Kind != "Service" {
		r.file.others++
		return nil
	}
	if te := it.typeErr; te != nil {
		return fmt.Errorf("%s, in item %d (%s %q): %s is of type %s, in Kubernetes %s; make it again with: %s",
			r.place(it.start), it.n, it.Kind, it.fullName(), cmp.Or(it.typeErrAt, "it"), te.Value, typeWord(te.Type), clusterCommand)
	}
	if it.Metadata.Name == "" {
		return fmt.Errorf("%s, in item %d: a %s without metadata.name; make it again with: %s", r.place(it.start), it.n, it.Kind, clusterCommand)
	}
	switch it.Kind {
	case "Node":
		r.file.addNode(it)
	case "Pod":
		r.file.addPod(it)
	case "Service":
		r.file.addService(it)
	}
	return nil
}

// fullName returns "namespace/name", or the name alone of what is in no namespace.
func (it *kubeItem) fullName() string {
	if it.Metadata.Namespace == "" {
		return it.Metadata.Name
	}
	return it.Metadata.Namespace + "/" + it.Metadata.Name
}

func (f *kubeFile) addNode(it *kubeItem) {
	n := kubeNode{name: it.Metadata.Name, os: it.Status.NodeInfo.OS}
	for _, a := range it.Status.Addresses {
		if a.Type != "InternalIP" && a.Type != "ExternalIP" {
			continue // Hostname, InternalDNS, ExternalDNS: names
		}
		what := "status.addresses " + a.Type
		if ip, ok := f.addr(a.Address, what, n.name); ok {
			n.addrs = append(n.addrs, kubeAddr{what, ip})
		}
	}
	for i, s := range append([]string{it.Spec.PodCIDR}, it.Spec.PodCIDRs...) {
		if s == "" || i > 0 && s == it.Spec.PodCIDR {
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			f.bad = append(f.bad, "spec.podCIDR of node "+plain(n.name)+" is "+strconv.Quote(s))
			continue
		}
		n.podCIDRs = append(n.podCIDRs, p.Masked())
	}
	f.nodes = append(f.nodes, n)
}

func (f *kubeFile) addPod(it *kubeItem) {
	p := kubePod{
		name: it.fullName(), namespace: it.Metadata.Namespace, node: it.Spec.NodeName, phase: it.Status.Phase,
		hostNetwork: it.Spec.HostNetwork, deleting: it.Metadata.DeletionTimestamp != "",
	}
	p.start, _ = time.Parse(time.RFC3339, it.Status.StartTime) // the zero time where there is none or it cannot be read
	p.ips = f.addrs(it.Status.PodIP, it.Status.PodIPs, "status.podIP", p.name)
	p.hostIPs = f.addrs(it.Status.HostIP, it.Status.HostIPs, "status.hostIP", p.name)
	for _, c := range it.Status.Conditions {
		p.ready = p.ready || c.Type == "Ready" && c.Status == "True"
	}
	name := it.Metadata.Name
	p.agent = strings.HasPrefix(name, "ip-masq-agent") || it.Metadata.Labels.App == "ip-masq-agent"
	for _, c := range it.Spec.Containers {
		p.agent = p.agent || strings.Contains(c.Image, "ip-masq-agent")
	}
	switch {
	case strings.HasPrefix(name, "anetd-"):
		p.dataplane = "anetd"
	case it.Metadata.Labels.App == "cilium":
		p.dataplane = "cilium"
	}
	f.pods = append(f.pods, p)
}

func (f *kubeFile) addService(it *kubeItem) {
	s := kubeService{name: it.fullName()}
	add := func(what, text string) {
		if text == "" || text == "None" { // a headless Service
			return
		}
		ip, ok := f.addr(text, what, s.name)
		for _, have := range s.addrs {
			ok = ok && have.addr != ip
		}
		if ok {
			s.addrs = append(s.addrs, kubeAddr{what, ip})
		}
	}
	add("spec.clusterIP", it.Spec.ClusterIP)
	// A Service has two clusterIPs at most, and few other addresses; the bound keeps add's search short on any input.
	for _, ip := range it.Spec.ClusterIPs[:min(len(it.Spec.ClusterIPs), 16)] {
		add("spec.clusterIPs", ip)
	}
	for _, ip := range it.Spec.ExternalIPs[:min(len(it.Spec.ExternalIPs), 256)] {
		add("spec.externalIPs", ip)
	}
	for _, in := range it.Status.LoadBalancer.Ingress[:min(len(it.Status.LoadBalancer.Ingress), 256)] {
		add("status.loadBalancer.ingress", in.IP)
	}
	f.services = append(f.services, s)
}

// addr reads an address; what is none, is noted.
func (f *kubeFile) addr(text, what, of string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		f.bad = append(f.bad, what+" of "+plain(of)+" is "+strconv.Quote(text))
		return netip.Addr{}, false
	}
	a = a.WithZone("").Unmap()
	return a, !a.IsUnspecified()
}

// addrs reads an address and the list that repeats it and holds those of the other family.
func (f *kubeFile) addrs(one string, more []kubeIP, what, of string) []netip.Addr {
	var out []netip.Addr
	if one != "" {
		if a, ok := f.addr(one, what, of); ok {
			out = append(out, a)
		}
	}
	for _, m := range more[:min(len(more), maxPodIPs)] {
		if m.IP == "" || m.IP == one {
			continue
		}
		if a, ok := f.addr(m.IP, what+"s", of); ok {
			out = append(out, a)
		}
	}
	return out
}
