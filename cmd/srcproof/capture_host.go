package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// listDevices lists the interfaces, as tcpdump -D does.
func listDevices(std *stdio) error {
	all, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list the interfaces: %w", err)
	}
	for _, i := range all {
		state := "down"
		if i.Flags&net.FlagUp != 0 {
			state = "up"
		}
		if i.Flags&net.FlagLoopback != 0 {
			state += ", loopback"
		}
		if _, err := fmt.Fprintf(std.out, "%d.%s [%s]\n", i.Index, i.Name, state); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(std.out, "any (all of them, each packet with its interface and direction)\n")
	return err
}

// hostWords says what a capture file's section header says of the host.
func hostWords() (system, hardware string) {
	system = runtime.GOOS
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		system = "Linux " + strings.TrimSpace(string(b))
	}
	name, err := os.Hostname()
	if err != nil {
		return system, runtime.GOARCH
	}
	return system, name + ", " + runtime.GOARCH
}

// printFarCommand prints the tcpdump command for the far side. The source that arrives there may be the Pod's, the node's or a
// third one: the filter names only the servers.
func printFarCommand(std *stdio, opt liveOptions) error {
	var servers []string
	take := func(a netip.Addr) {
		switch opt.facts.Role(wire.AddrFrom(a)).Kind {
		case cluster.RolePod, cluster.RoleNode, cluster.RoleService:
			return
		case cluster.RoleUnknown, cluster.RoleOther:
		}
		if s := "host " + a.String(); !slices.Contains(servers, s) {
			servers = append(servers, s)
		}
	}
	for word := range strings.FieldsFuncSeq(opt.capture.Filter, func(r rune) bool { return strings.ContainsRune(" \t()", r) }) {
		if a, err := netip.ParseAddr(word); err == nil {
			take(a)
		}
	}
	if p, ok := opt.question.which.Server(); ok {
		if p.IsSingleIP() {
			take(p.Addr())
		} else {
			servers = append(servers, "net "+p.String())
		}
	}
	if len(servers) == 0 {
		return &usageError{what: "--print-far-command: no server is named", hint: "name it in EXPRESSION (host 10.20.30.40) or with --request"}
	}
	_, err := fmt.Fprintf(std.out, "tcpdump -ni any -w far.pcap '%s or icmp or icmp6'\n", strings.Join(servers, " or "))
	return err
}
