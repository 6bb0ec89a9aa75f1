package tcpdump

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// What logs put before each line is taken off, and nothing else: the packets are those of the text without it.
func TestWithoutLog(t *testing.T) {
	const plain = "tcpdump: listening on eth0, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n" +
		"12:00:00.000100 IP 10.4.1.2.40000 > 192.0.2.9.443: Flags [S], seq 100, win 64240, options [mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7], length 0\n" +
		"12:00:00.500000 IP (tos 0x0, ttl 63, id 7, offset 0, flags [DF], proto TCP (6), length 60)\n" +
		"    192.0.2.9.443 > 10.4.1.2.40000: Flags [S.], cksum 0x1234 (correct), seq 900, ack 101, win 65160, options [mss 1460], length 0\n" +
		"12:00:01.000000 IP6 2001:db8::1.40001 > 2001:db8::2.443: Flags [S], seq 5, win 64240, length 0\n" +
		"\n" +
		"3 packets captured\n3 packets received by filter\n0 packets dropped by kernel\n"
	want := Read([]byte(plain), Options{})
	if len(want) != 1 || len(want[0].Packets) != 3 {
		t.Fatalf("the text itself has %d runs", len(want))
	}
	same := func(before string) func(int) string { return func(int) string { return before } }
	for name, before := range map[string]func(line int) string{
		"kubectl logs --timestamps": func(n int) string { return fmt.Sprintf("2026-11-30T12:00:0%d.123456789Z ", n) },
		"kubectl logs --prefix":     same("[pod/debug-x7k2p/tcpdump] "),
		"both":                      func(n int) string { return fmt.Sprintf("[pod/debug/tcpdump] 2026-11-30T12:00:0%d.1+01:00 ", n) },
		"stern":                     same("debug-x7k2p tcpdump "),
		"journalctl":                func(n int) string { return fmt.Sprintf("Nov 30 12:00:0%d node-1 tcpdump[1234]: ", n) },
		"journalctl, one digit":     func(n int) string { return fmt.Sprintf("Dec  1 12:00:0%d node-1 tcpdump[1234]: ", n) },
		"journalctl -o short-iso":   func(n int) string { return fmt.Sprintf("2026-11-30T12:00:0%d+0100 node-1 tcpdump[1234]: ", n) },
		"container runtime": func(n int) string {
			return fmt.Sprintf("2026-11-30T12:00:0%d.123456789Z %s F ", n, []string{"stderr", "stdout"}[min(n, 1)])
		},
		"docker compose": same("tcpdump-1  | "),
		"grep -n":        func(n int) string { return fmt.Sprintf("%d:", 90+n) },
		"grep -H":        same("near.txt:"),
		"grep -Hn":       func(n int) string { return fmt.Sprintf("near.txt:%d:", 90+n) },
		"a list":         same("- "),
		"a numbered one": func(n int) string { return fmt.Sprintf("%d. ", n+1) },
	} {
		var text strings.Builder
		n := 0
		for line := range strings.Lines(plain) {
			if before := before(n); line == "\n" {
				text.WriteString(strings.TrimRight(before, " ") + line)
			} else {
				text.WriteString(before + line)
			}
			n++
		}
		for _, run := range Read([]byte(text.String()), Options{}) {
			if run.Summary.Frames > 0 {
				t.Errorf("%s: is read as it is", name)
			}
		}
		got, log := WithoutLog([]byte(text.String()))
		if runs := Read(got, Options{}); !reflect.DeepEqual(runs, want) {
			t.Errorf("%s: %+v, of\n%s", name, runs, got)
		}
		if log.Other != "" || !strings.HasPrefix(before(1), strings.TrimSpace(log.Prefix)[:1]) {
			t.Errorf("%s: %+v", name, log)
		}
	}
}

// Lines of another source are no packets of this one; where they are packets, nobody can tell whose.
func TestLogOfSeveral(t *testing.T) {
	const packet = "12:00:00.000100 IP 10.4.1.2.40000 > 192.0.2.9.443: Flags [S], seq 100, win 64240, length 0\n"
	for _, c := range []struct {
		text          string
		packets       int
		prefix, other string
	}{
		{"web-1 nginx GET / 200\ndebug-1 tcpdump " + packet + "web-1 nginx     10.4.1.2.40000 > 192.0.2.9.443: no\ndebug-1 tcpdump " + packet, 2, "debug-1 tcpdump", ""},
		{"debug-1 tcpdump " + packet + "debug-2 tcpdump " + packet, 1, "debug-1 tcpdump", "debug-2 tcpdump"},
		{"a.txt:" + packet + "b.txt:" + packet, 1, "a.txt:", "b.txt:"},
		{"Nov 30 12:00:00 node-1 tcpdump[1]: " + packet + "Nov 30 12:00:00 node-2 tcpdump[1]: " + packet, 1, "Nov 30 12:00:00 node-1 tcpdump[1]:", "Nov 30 12:00:00 node-2 tcpdump[1]:"},
		{"a letter\nof two lines, at 12:00:00.000100 IP\n", 0, "", ""},
		{"", 0, "", ""},
		{strings.Repeat("word ", 300) + packet, 0, "", ""},
		{strings.Repeat("a line\n", 600) + "x " + packet, 0, "", ""},
	} {
		plain, log := WithoutLog([]byte(c.text))
		packets := 0
		for _, run := range Read(plain, Options{}) {
			packets += len(run.Packets)
		}
		if packets != c.packets || log.Prefix != c.prefix || log.Other != c.other {
			t.Errorf("%.60q: %d packets, %+v", c.text, packets, log)
		}
	}
}

// isWhole is what two regular expressions say, which are easier to read and much slower.
func TestIsWhole(t *testing.T) {
	whole := regexp.MustCompile(` > [^ ]+: .*(?:, length:? \d+|\(\d+\)|tcp \d+|unreachable|\])$|, length \d+: [A-Z]`)
	broken := regexp.MustCompile(`Flags \[[^\]]*\]$`)
	r := rand.New(rand.NewPCG(1, 9))
	pieces := []string{
		" > ", ">", " ", ": ", ":", "10.0.0.1.80", "10.0.0.2.443:", "Flags [", "Flags [S]", "S.", "]", ", length ", ", length: ", "12", "0", "(", ")", "tcp ", "unreachable",
		"IP", "a", ", ", "x: ", "\x00", "\xff", "é",
	}
	yes := 0
	for range 300_000 {
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteString("10.0.0.1.80 > 10.0.0.2.443: ")
		}
		for range 1 + r.IntN(10) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		s := b.String()
		want := strings.Contains(s, " > ") && whole.MatchString(s) && !broken.MatchString(s)
		if got := isWhole(s); got != want {
			t.Fatalf("%q: %v", s, got)
		}
		if want {
			yes++
		}
	}
	if yes < 1000 {
		t.Errorf("%d of the texts are whole", yes)
	}
}
