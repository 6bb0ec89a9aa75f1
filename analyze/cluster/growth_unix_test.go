//go:build unix

package cluster

import (
	"bytes"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Work grows with the file, not with its square: many objects that share everything they can share. Eight times the input
// may take sixteen times as much of the processor, in one of three tries.
func TestClusterFileWorkIsLinear(t *testing.T) {
	small, large := sharingEverything(5000), sharingEverything(40000)
	took := func(in Input) time.Duration {
		start := cpuTime(t)
		mustNew(t, in)
		return cpuTime(t) - start
	}
	var tries []string
	for range 3 {
		a, b := min(took(small), took(small)), took(large)
		if b < 16*a {
			return
		}
		tries = append(tries, a.String()+" and "+b.String())
	}
	t.Errorf("input of n and 8 n objects took %s", strings.Join(tries, ", then "))
}

// sharingEverything makes objects and links of the same names, addresses, indexes and masters, as far as they go.
func sharingEverything(many int) Input {
	var b, links bytes.Buffer
	b.WriteString(`{"kind":"List","items":[`)
	for i := range many {
		net := strconv.Itoa(i>>8) + "." + strconv.Itoa(i&255)
		b.WriteString(`{"kind":"Node","metadata":{"name":"n"},"spec":{"podCIDR":"10.` + net + `.0/24"},` +
			`"status":{"addresses":[{"type":"InternalIP","address":"11.` + net + `.1"}]}},` + "\n" +
			`{"kind":"Pod","metadata":{"name":"p` + strconv.Itoa(i) + `"},"spec":{"nodeName":"n"},"status":{"podIP":"10.9.9.9","hostIP":"11.0.0.1"}},` + "\n")
		links.WriteString("7: gke" + strconv.Itoa(i) + "@if2: <UP> mtu 1500 master cbr0\\    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n" +
			strconv.Itoa(i+1) + ": veth" + strconv.Itoa(i) + "    inet 10.9.9.9/32\n")
	}
	b.WriteString(`{"kind":"Node","metadata":{"name":"n"}}]}`)
	return Input{PodCIDRs: prefixes("10.0.0.0/8"), NodeCIDRs: prefixes("10.0.0.0/7"), Cluster: b.Bytes(), Links: links.Bytes()}
}

// cpuTime is the processor time that this process has used: on a busy machine the clock tells nothing.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
