package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The lab is a cluster in network namespaces on one Linux host, in which the real kernel does the translation:
//
//	pod 172.16.0.13 -- cbr0 [node] eth0 10.10.0.3 -- n0 [rtr] o0 -- ens4 10.20.0.10 [far]
//	    fd00:10:1::d              fd00:10:10::3                          fd00:10:20::a
//
// The router has no route to the Pod range, so the far host cannot answer a Pod address, as in the field: the node's
// request succeeds and the Pod's does not. A lab belongs to one process and to one name within it; labs run side by side.
const (
	podIP     = "172.16.0.13"
	pod2IP    = "172.16.0.14"
	bridgeIP  = "172.16.0.1"
	nodeIP    = "10.10.0.3"
	egressIP  = "10.10.0.9" // a second address of the uplink that no fact names: an egress address
	routerIP  = "10.10.0.1" // towards the node
	routerFar = "10.20.0.1" // towards the far host
	farIP     = "10.20.0.10"
	serviceIP = "10.96.0.10"
	virtualIP = "10.30.0.80" // that the router turns into the far host's
	node2IP   = "10.10.0.18" // a second node, on a link of its own
	router2IP = "10.10.0.17" // towards it
	podCIDR   = "172.16.0.0/16"

	overlayIP     = "10.40.0.3" // the node's address in the tunnel
	overlayRouter = "10.40.0.1"

	podIP6     = "fd00:10:1::d"
	pod2IP6    = "fd00:10:1::e"
	bridgeIP6  = "fd00:10:1::1"
	nodeIP6    = "fd00:10:10::3"
	routerIP6  = "fd00:10:10::1"
	routerFar6 = "fd00:10:20::1"
	farIP6     = "fd00:10:20::a"
	podCIDR6   = "fd00:10:1::/64"

	// caliMAC is the address that Calico gives the node's end of every Pod link; its EUI-64 link-local address is the
	// Pods' IPv6 gateway.
	caliMAC        = "ee:ee:ee:ee:ee:ee"
	caliGateway    = "169.254.1.1"
	caliGateway6   = "fe80::ecee:eeff:feee:eeee"
	labPrefix      = "srcproof-"
	labCommandTime = 20 * time.Second
	podLinkBridge  = "veth0"
	podLinkRouted  = "cali0a1b2c3d4e5"
	pod2LinkRouted = "cali5e4d3c2b1a0"
)

// labT is what the lab needs of a test. *testing.T is one; so is a scenario that runs beside others, outside of any one
// test, because its captures are shared by all of them.
type labT interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// labMissing is the reason why this machine cannot run the lab, "" if it can. It is found out by doing: a container
// may be root without being allowed to make a namespace, and a kernel may lack the modules.
var labMissing = sync.OnceValue(func() string {
	if runtime.GOOS != "linux" {
		return "not Linux"
	}
	for _, tool := range []string{"ip", "iptables", "ip6tables", "iptables-restore", "iptables-save", "tcpdump"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is not installed (Debian: apt-get install iproute2 iptables tcpdump)"
		}
	}
	if os.Geteuid() != 0 {
		return "not root"
	}
	ns := labPrefix + strconv.Itoa(os.Getpid()) + "-probe"
	defer func() { _, _ = labCommand("ip", "netns", "del", ns) }()
	for _, args := range [][]string{
		{"ip", "netns", "add", ns},
		{"ip", "-n", ns, "link", "add", "br0", "type", "bridge"},
		{"ip", "-n", ns, "link", "add", "v0", "type", "veth", "peer", "name", "v1"},
		{"ip", "netns", "exec", ns, "iptables", "-w", "-t", "nat", "-A", "POSTROUTING", "-m", "addrtype", "!", "--dst-type", "LOCAL", "-j", "MASQUERADE", "--random-fully"},
		{"ip", "netns", "exec", ns, "ip6tables", "-w", "-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE", "--random-fully"},
	} {
		if _, err := labCommand(args...); err != nil {
			return err.Error()
		}
	}
	return ""
})

// requireLab skips the test where the lab cannot run, and names what is then not checked. In CI it must run.
func requireLab(t *testing.T) {
	t.Helper()
	reason := labMissing()
	switch {
	case reason != "" && os.Getenv("CI") == "true":
		t.Fatalf("the lab must run in CI: %s", reason)
	case reason != "":
		t.Skipf("not checked: real kernel translation in network namespaces (%s)", reason)
	case testing.Short():
		t.Skip("not checked: real kernel translation in network namespaces (-short)")
	}
}

// removeStaleLabs deletes the namespaces of labs whose process is gone, with what still runs in them: a test binary
// that was killed could not clean up.
var removeStaleLabs = sync.OnceFunc(func() {
	names, _ := filepath.Glob("/run/netns/" + labPrefix + "*")
	for _, path := range names {
		ns := filepath.Base(path)
		pid, _, _ := strings.Cut(strings.TrimPrefix(ns, labPrefix), "-")
		if _, err := strconv.Atoi(pid); err != nil {
			continue // not a name that newLab gives
		}
		// This process has none yet: those under its number are a dead one's.
		if _, err := os.Stat("/proc/" + pid); err == nil && pid != strconv.Itoa(os.Getpid()) {
			continue
		}
		deleteNamespace(ns)
	}
})

// deleteNamespace ends the processes in a namespace of ours and deletes it.
func deleteNamespace(ns string) {
	pids, _ := labCommand("ip", "netns", "pids", ns)
	for field := range strings.FieldsSeq(pids) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}
	_, _ = labCommand("ip", "netns", "del", ns)
}

// labCommand runs a program to its end and returns its standard output. An error holds the command line and what the
// program said.
func labCommand(args ...string) (string, error) { return labCommandIn("", args...) }

func labCommandIn(stdin string, args ...string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	cmd.WaitDelay = time.Second
	timer := time.AfterFunc(labCommandTime, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Start(); err != nil {
		return "", err
	}
	if err := cmd.Wait(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// lab is one cluster. Its methods end the test on failure.
type lab struct {
	t                   labT
	prefix              string
	routed              bool
	podLink             string // the node's end of the Pod's link
	pod, node, rtr, far *labHost
	pod2                *labHost // nil until addPod2
	node2               *labHost // nil until addNode2
	lacks               string   // what this kernel lacks that the scenario needs, "" for nothing; see need
}

// labHost is one namespace of a lab, with a process in it that opens sockets on command.
type labHost struct {
	t     labT
	ns    string
	agent *labAgent
}

// labKind is how the Pods hang on the node.
type labKind int

const (
	bridged labKind = iota // veth in bridge cbr0, the bridge is the gateway: kubenet, CNI bridge, flannel
	routed                 // a /32 behind a routed veth, gateway 169.254.1.1 by proxy ARP: Calico; ptp is alike
)

// newLab builds a lab and takes it down with the test.
func newLab(t labT, name string, kind labKind) *lab {
	t.Helper()
	removeStaleLabs()
	l := &lab{t: t, prefix: labPrefix + strconv.Itoa(os.Getpid()) + "-" + name + "-", routed: kind == routed, podLink: podLinkBridge}
	if l.routed {
		l.podLink = podLinkRouted
	}
	l.pod, l.node, l.rtr, l.far = l.addHost("pod"), l.addHost("node"), l.addHost("rtr"), l.addHost("far")

	l.node.ip(
		"link add eth0 type veth peer name n0 netns "+l.rtr.ns,
		"addr add "+nodeIP+"/28 dev eth0",
		"addr add "+nodeIP6+"/64 dev eth0 nodad",
		"link set eth0 up",
	)
	l.rtr.ip(
		"link add o0 type veth peer name ens4 netns "+l.far.ns,
		"addr add "+routerIP+"/28 dev n0",
		"addr add "+routerIP6+"/64 dev n0 nodad",
		"link set n0 up",
		"addr add "+routerFar+"/24 dev o0",
		"addr add "+routerFar6+"/64 dev o0 nodad",
		"link set o0 up",
	)
	l.node.ip("route add default via "+routerIP, "route add default via "+routerIP6)
	l.far.ip(
		"addr add "+farIP+"/24 dev ens4",
		"addr add "+farIP6+"/64 dev ens4 nodad",
		"link set ens4 up",
		"route add default via "+routerFar,
		"route add default via "+routerFar6,
	)
	for _, h := range []*labHost{l.node, l.rtr} {
		h.sysctl("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
	}
	if !l.routed {
		l.node.ip(
			"link add cbr0 type bridge",
			"addr add "+bridgeIP+"/24 dev cbr0",
			"addr add "+bridgeIP6+"/64 dev cbr0 nodad",
			"link set cbr0 up",
		)
	}
	l.connectPod(l.pod, l.podLink, podIP, podIP6)
	l.resolved(l.node, farIP, farIP6)
	return l
}

// resolved waits until a host reaches addresses: the first neighbour solicitation on a new link is often lost, and no
// capture should begin with that.
func (l *lab) resolved(h *labHost, addrs ...string) {
	l.t.Helper()
	for _, addr := range addrs {
		got := endTimeout
		for try := 0; try < 20 && got != endCompleted; try++ {
			got = h.ping(addr, 200*time.Millisecond)
		}
		l.expect(got, endCompleted, h.ns+" to "+addr)
	}
}

// addHost makes a namespace with an agent in it.
func (l *lab) addHost(role string) *labHost {
	l.t.Helper()
	h := &labHost{t: l.t, ns: l.prefix + role}
	if _, err := labCommand("ip", "netns", "add", h.ns); err != nil {
		l.t.Fatalf("lab: %v", err)
	}
	l.t.Cleanup(func() { deleteNamespace(h.ns) })
	h.agent = startAgent(l.t, h.ns)
	// Duplicate address detection would keep link-local addresses unusable for a second; errors that are limited in rate
	// would make a scenario depend on the one before.
	h.sysctl("net.ipv6.conf.default.accept_dad=0", "net.ipv6.conf.all.accept_dad=0",
		"net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0",
		"net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
	h.ip("link set lo up")
	return h
}

// connectPod gives a namespace a Pod's link, addresses and routes.
func (l *lab) connectPod(pod *labHost, link, addr, addr6 string) {
	l.t.Helper()
	defer l.resolved(pod, nodeIP, nodeIP6)
	if !l.routed {
		l.node.ip(
			"link add "+link+" type veth peer name eth0 netns "+pod.ns,
			"link set "+link+" master cbr0 up",
		)
		pod.ip(
			"addr add "+addr+"/24 dev eth0",
			"addr add "+addr6+"/64 dev eth0 nodad",
			"link set eth0 up",
			"route add default via "+bridgeIP,
			"route add default via "+bridgeIP6,
		)
		return
	}
	l.node.ip("link add " + link + " address " + caliMAC + " type veth peer name eth0 netns " + pod.ns)
	l.node.sysctl("net.ipv4.conf."+link+".proxy_arp=1", "net.ipv4.neigh."+link+".proxy_delay=0")
	l.node.ip(
		"link set "+link+" up",
		"route add "+addr+"/32 dev "+link,
		"route add "+addr6+"/128 dev "+link,
	)
	pod.ip(
		"addr add "+addr+"/32 dev eth0",
		"addr add "+addr6+"/128 dev eth0 nodad",
		"link set eth0 up",
		"route add "+caliGateway+" dev eth0 scope link",
		"route add default via "+caliGateway+" dev eth0",
		"route add default via "+caliGateway6+" dev eth0",
	)
}

// addPod2 adds a second Pod on the same node.
func (l *lab) addPod2() {
	l.t.Helper()
	l.pod2 = l.addHost("pod2")
	link := "veth1"
	if l.routed {
		link = pod2LinkRouted
	}
	l.connectPod(l.pod2, link, pod2IP, pod2IP6)
}

// routeBack gives the router what it lacks: the way to the Pod range.
func (l *lab) routeBack() {
	l.t.Helper()
	l.rtr.ip("route add "+podCIDR+" via "+nodeIP, "route add "+podCIDR6+" via "+nodeIP6)
}

// The keep lists of the two demo captures: what the agent has without a ConfigMap, and a narrowed one.
var (
	keepDefault  = []string{"169.254.0.0/16", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fe80::/10", "fd00::/8"}
	keepNarrowed = []string{"169.254.0.0/16", podCIDR, "172.17.0.0/20", "10.10.0.0/28", "fe80::/10", podCIDR6, "fd00:10:10::/64"}
)

// addNode2 adds a second node with an uplink of its own. It has no Pods, and says nothing about packets to them.
func (l *lab) addNode2() {
	l.t.Helper()
	l.node2 = l.addHost("node2")
	l.node2.ip(
		"link add eth0 type veth peer name n1 netns "+l.rtr.ns,
		"addr add "+node2IP+"/28 dev eth0",
		"link set eth0 up",
	)
	l.rtr.ip("addr add "+router2IP+"/28 dev n1", "link set n1 up")
	l.node2.ip("route add default via "+router2IP, "route add blackhole "+podCIDR)
	l.node2.sysctl("net.ipv4.ip_forward=1")
	l.resolved(l.node2, farIP)
}

// addOverlay puts a VXLAN tunnel between node and router, and the node's default route into it: the uplink then carries
// nothing of the Pod's but UDP packets between node and router.
func (l *lab) addOverlay() {
	l.t.Helper()
	for h, end := range map[*labHost]struct{ local, remote, dev, addr string }{
		l.node: {nodeIP, routerIP, "eth0", overlayIP},
		l.rtr:  {routerIP, nodeIP, "n0", overlayRouter},
	} {
		if _, err := labCommand(strings.Fields("ip -n " + h.ns + " link add vx0 type vxlan id 7 dstport 4789 local " + end.local +
			" remote " + end.remote + " dev " + end.dev)...); err != nil {
			l.missing("VXLAN: %v", err)
		}
		h.ip("addr add "+end.addr+"/24 dev vx0", "link set vx0 up")
	}
	l.node.ip("route replace default via " + overlayRouter)
	l.resolved(l.node, farIP)
}

// missing ends a scenario that this kernel cannot make. It is then not checked, which the tests say; it has not failed.
func (l *lab) missing(format string, args ...any) {
	l.t.Helper()
	l.lacks = fmt.Sprintf(format, args...)
	l.t.Fatalf("this kernel lacks %s", l.lacks)
}

// need adds an iptables rule with an extension that kernels may lack.
func (l *lab) need(h *labHost, extension, rule string) {
	l.t.Helper()
	l.needs(h, "iptables", extension, rule)
}

// need6 is need's IPv6 twin.
func (l *lab) need6(h *labHost, extension, rule string) {
	l.t.Helper()
	l.needs(h, "ip6tables", extension, rule)
}

func (l *lab) needs(h *labHost, tool, extension, rule string) {
	l.t.Helper()
	if _, err := labCommand(append([]string{"ip", "netns", "exec", h.ns, tool, "-w"}, strings.Fields(rule)...)...); err != nil {
		l.missing("%s: %v", extension, err)
	}
}

// masq replaces the node's nat rules by those that ip-masq-agent writes on GKE for a list of ranges, IPv4 and IPv6.
func (l *lab) masq(randomFully bool, keep ...string) {
	l.t.Helper()
	for _, v6 := range []bool{false, true} {
		l.node.restore(v6, masqRules(v6, randomFully, keep))
	}
}

// masqRules returns ip-masq-agent's rules as iptables-save prints them: chain IP-MASQ, one RETURN for each range of the
// family in the list's order, MASQUERADE last.
func masqRules(v6, randomFully bool, keep []string) string {
	const agent = `-m comment --comment "ip-masq-agent: `
	var b strings.Builder
	b.WriteString("*nat\n:POSTROUTING ACCEPT [0:0]\n:IP-MASQ - [0:0]\n")
	b.WriteString(`-A POSTROUTING ` + agent + `ensure nat POSTROUTING directs all non-LOCAL destination traffic to our custom IP-MASQ chain" -m addrtype ! --dst-type LOCAL -j IP-MASQ` + "\n")
	for _, cidr := range keep {
		if netip.MustParsePrefix(cidr).Addr().Is6() == v6 {
			b.WriteString(`-A IP-MASQ -d ` + cidr + ` ` + agent + `local traffic is not subject to MASQUERADE" -j RETURN` + "\n")
		}
	}
	b.WriteString(`-A IP-MASQ ` + agent + `outbound traffic is subject to MASQUERADE (must be last in chain)" -j MASQUERADE`)
	if randomFully {
		b.WriteString(" --random-fully")
	}
	b.WriteString("\nCOMMIT\n")
	return b.String()
}

// serviceDNAT makes a ClusterIP of the far host's port 80, as kube-proxy does for a Service without Pods behind it.
func (l *lab) serviceDNAT() {
	l.t.Helper()
	l.node.iptables("-t nat -A PREROUTING -d " + serviceIP + " -p tcp --dport 80 -j DNAT --to-destination " + farIP + ":80")
}

// run runs a program in the namespace.
func (h *labHost) run(args ...string) string {
	h.t.Helper()
	out, err := labCommand(append([]string{"ip", "netns", "exec", h.ns}, args...)...)
	if err != nil {
		h.t.Fatalf("lab: %v", err)
	}
	return out
}

// ip runs commands of ip(8) in the namespace.
func (h *labHost) ip(lines ...string) {
	h.t.Helper()
	if _, err := labCommandIn(strings.Join(lines, "\n")+"\n", "ip", "-n", h.ns, "-batch", "-"); err != nil {
		h.t.Fatalf("lab: %v\nin:\n%s", err, strings.Join(lines, "\n"))
	}
}

// iptables adds a rule without quoted words. ip6tables is its IPv6 twin.
func (h *labHost) iptables(rule string) {
	h.t.Helper()
	h.run(append([]string{"iptables", "-w"}, strings.Fields(rule)...)...)
}

func (h *labHost) ip6tables(rule string) {
	h.t.Helper()
	h.run(append([]string{"ip6tables", "-w"}, strings.Fields(rule)...)...)
}

// restore replaces a table.
func (h *labHost) restore(v6 bool, rules string) {
	h.t.Helper()
	tool := "iptables-restore"
	if v6 {
		tool = "ip6tables-restore"
	}
	if _, err := labCommandIn(rules, "ip", "netns", "exec", h.ns, tool, "-w"); err != nil {
		h.t.Fatalf("lab: %v\nin:\n%s", err, rules)
	}
}

// sysctl sets kernel parameters of the namespace, "name=value".
func (h *labHost) sysctl(settings ...string) {
	h.t.Helper()
	h.agent.must(labRequest{Op: "sysctl", Settings: settings})
}

// optionalSysctl sets a parameter that older kernels lack.
func (h *labHost) optionalSysctl(setting string) {
	h.t.Helper()
	h.agent.must(labRequest{Op: "sysctl", Settings: []string{setting}, Optional: true})
}

// links is what `ip -o link` prints in the namespace.
func (h *labHost) links() string {
	h.t.Helper()
	return h.run("ip", "-o", "link")
}

// linkNames maps the interface indexes of `ip -o link` to names: SLL2 stores only the index.
func linkNames(links string) map[uint32]string {
	names := map[uint32]string{}
	for line := range strings.Lines(links) {
		index, rest, _ := strings.Cut(line, ": ")
		name, _, _ := strings.Cut(rest, ": ")
		name, _, _ = strings.Cut(name, "@")
		if n, err := strconv.ParseUint(index, 10, 32); err == nil {
			names[uint32(n)] = name
		}
	}
	return names
}

// How a request ended, as the client's kernel told it.
const (
	endCompleted   = "completed"   // connected, data sent, the same data received
	endTimeout     = "timeout"     // nothing came in time
	endRefused     = "refused"     // RST, or ICMP port unreachable
	endUnreachable = "unreachable" // ICMP: no route, prohibited
)

// serveTCP starts a server that returns every line it reads, until the client closes. It is ready on return.
func (h *labHost) serveTCP(addrs ...string) {
	h.t.Helper()
	for _, addr := range addrs {
		h.agent.must(labRequest{Op: "serve-tcp", Addr: addr})
	}
}

// serveUDP starts a server that returns every datagram; a silent one only reads them.
func (h *labHost) serveUDP(addr string, silent bool) {
	h.t.Helper()
	h.agent.must(labRequest{Op: "serve-udp", Addr: addr, Silent: silent})
}

// proxyTCP starts a proxy: for each connection that it accepts it opens one to another address.
func (h *labHost) proxyTCP(addr, to string) {
	h.t.Helper()
	h.agent.must(labRequest{Op: "proxy-tcp", Addr: addr, To: to})
}

// proxyAsClient starts a proxy that opens its connections with the address and port of the client, as TPROXY allows.
func (h *labHost) proxyAsClient(addr, to string) {
	h.t.Helper()
	h.agent.must(labRequest{Op: "proxy-tcp", Addr: addr, To: to, AsClient: true})
}

// tcp makes one request: connect, send a line, read it back, close. It returns how it ended.
func (h *labHost) tcp(addr string, wait time.Duration) string {
	h.t.Helper()
	return h.tcpFrom("", addr, wait)
}

// tcpFrom is tcp from a local address and port of the caller's choice.
func (h *labHost) tcpFrom(local, addr string, wait time.Duration) string {
	h.t.Helper()
	if got := h.agent.must(labRequest{Op: "dial", Local: local, Addr: addr, Wait: wait}); got != endCompleted {
		return got
	}
	got := h.send(addr, 100, wait)
	h.hangUp(addr)
	return got
}

// open connects and keeps the connection under the server's address. One at a time for an address.
func (h *labHost) open(addr string, wait time.Duration) string {
	h.t.Helper()
	return h.agent.must(labRequest{Op: "dial", Addr: addr, Wait: wait})
}

// send sends a line of n bytes on the open connection and reads it back.
func (h *labHost) send(addr string, n int, wait time.Duration) string {
	h.t.Helper()
	return h.agent.must(labRequest{Op: "send", Addr: addr, Bytes: n, Wait: wait})
}

// hangUp closes the open connection.
func (h *labHost) hangUp(addr string) {
	h.t.Helper()
	h.agent.must(labRequest{Op: "close", Addr: addr})
}

// udp sends one datagram and waits for its answer.
func (h *labHost) udp(addr string, wait time.Duration) string {
	h.t.Helper()
	return h.agent.must(labRequest{Op: "udp", Addr: addr, Wait: wait})
}

// ping sends one echo request and waits for its reply.
func (h *labHost) ping(addr string, wait time.Duration) string {
	h.t.Helper()
	return h.agent.must(labRequest{Op: "ping", Addr: addr, Wait: wait})
}

// expect ends the scenario if a request did not end as it must for the scenario to be what it says.
func (l *lab) expect(got, want, what string) {
	l.t.Helper()
	if got != want {
		l.t.Fatalf("%s: %s, want %s", what, got, want)
	}
}

func TestLabTopology(t *testing.T) {
	requireLab(t)
	for _, tt := range []struct {
		name string
		kind labKind
	}{
		{"a Pod on a bridge", bridged},
		{"a Pod on a routed link", routed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, "topology", tt.kind)
			const short = 300 * time.Millisecond
			both := func(h *labHost, want, what string) {
				t.Helper()
				l.expect(h.ping(farIP, short), want, what+", IPv4")
				l.expect(h.ping(farIP6, short), want, what+", IPv6")
			}
			both(l.node, endCompleted, "node to far host")
			both(l.pod, endTimeout, "Pod to far host without rules")
			l.masq(false, keepDefault...)
			both(l.pod, endTimeout, "Pod to far host with the default list")
			l.masq(true, keepNarrowed...)
			both(l.pod, endCompleted, "Pod to far host with the narrowed list")

			// The kernel prints the agent's rules back as they were written: what the lab tests is what the field has.
			for tool, v6 := range map[string]bool{"iptables-save": false, "ip6tables-save": true} {
				var got, want []string
				for line := range strings.Lines(l.node.run(tool, "-t", "nat")) {
					if strings.HasPrefix(line, "-A ") {
						got = append(got, line)
					}
				}
				for line := range strings.Lines(masqRules(v6, true, keepNarrowed)) {
					if strings.HasPrefix(line, "-A ") {
						want = append(want, line)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s prints\n%swant\n%s", tool, strings.Join(got, ""), strings.Join(want, ""))
				}
			}

			l.masq(false, keepDefault...)
			both(l.pod, endTimeout, "Pod to far host with the default list again")
			l.routeBack()
			both(l.pod, endCompleted, "Pod to far host with a way back")
			l.addPod2()
			l.expect(l.pod.ping(pod2IP, short), endCompleted, "Pod to Pod, IPv4")
			l.expect(l.pod.ping(pod2IP6, short), endCompleted, "Pod to Pod, IPv6")
		})
	}
	left, err := filepath.Glob("/run/netns/" + labPrefix + strconv.Itoa(os.Getpid()) + "-topology-*")
	if err := errors.Join(err); err != nil || len(left) > 0 {
		t.Errorf("namespaces left behind: %v, %v", left, err)
	}
}
