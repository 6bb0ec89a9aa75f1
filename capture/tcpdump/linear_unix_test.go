//go:build unix

package tcpdump

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Work grows with the text, not with its square, whatever stands in it.
func TestTextWorkIsLinear(t *testing.T) {
	cpu := func(text []byte) time.Duration {
		var a, b syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &a)
		Read(text, Options{})
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &b)
		return time.Duration(b.Utime.Nano() - a.Utime.Nano())
	}
	for name, line := range map[string]string{
		"parentheses": strings.Repeat("(", 400) + "\n", "arrows": strings.Repeat("a > b: ", 60) + "\n", "no line ends": strings.Repeat("x > y: IP ", 40),
		"packets":                   "12:00:00.1 IP 10.0.0.1.%d > 10.0.0.2.80: Flags [P.], seq 1:2, ack 1, win 1, length 1\n",
		"lines behind a cut packet": "    foo bar baz\n", "endless record": "12:00:00.1 IP 10.0.0.1 > 10.0.0.2:\n more and more of it\n", "names": "12:00:00.1 IP host%d.1 > host.2: Flags [S], seq 1, win 1, length 0\n",
		"inner": "12:00:00.1 IP 10.0.0.1.1 > 10.0.0.2.4789: VXLAN, flags [I] (0x08), vni 1\nIP 10.0.0.1.1 > 10.0.0.2.4789: VXLAN, flags [I] (0x08), vni 1\n",
	} {
		make := func(n int) []byte {
			var b strings.Builder
			if name == "lines behind a cut packet" {
				b.WriteString("12:00:00.1 IP 1.2.3.4.5 > 2.3.4.5.6: Flags [S],\n")
			}
			for i := 0; b.Len() < n; i++ {
				if strings.Contains(line, "%d") {
					fmt.Fprintf(&b, line, i%60000)
				} else {
					b.WriteString(line)
				}
			}
			return []byte(b.String())
		}
		small, large := make(1<<18), make(1<<21)
		ok := false
		var tries []string
		for range 3 {
			a, b := min(cpu(small), cpu(small)), cpu(large)
			if b < 20*max(a, 2*time.Millisecond) {
				ok = true
				break
			}
			tries = append(tries, a.String()+" and "+b.String())
		}
		if !ok {
			t.Errorf("%s: texts of n and 8 n bytes took %s", name, strings.Join(tries, ", then "))
		}
	}
}
