package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

func TestReadConntrack(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    []string // "request -> what leaves; state flags counts"
		skipped int
	}{
		{
			text: "tcp      6 119 TIME_WAIT src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080 src=203.0.113.9 dst=10.10.0.3 sport=8080 dport=21987 [ASSURED] mark=0 use=1\n",
			want: []string{"tcp 10.4.0.7:40000 > 203.0.113.9:8080 -> tcp 10.10.0.3:21987 > 203.0.113.9:8080 TIME_WAIT assured"},
		},
		{
			text: "ipv6     10 tcp      6 431999 ESTABLISHED src=fd00:4::7 dst=2001:db8::9 sport=40000 dport=443 packets=3 bytes=180 src=2001:db8::9 dst=fd00:10::3 sport=443 dport=40000 packets=2 bytes=120 [ASSURED] mark=0 zone=0 use=2\n",
			want: []string{"tcp [fd00:4::7]:40000 > [2001:db8::9]:443 -> tcp [fd00:10::3]:40000 > [2001:db8::9]:443 ESTABLISHED assured 3/2"},
		},
		{ // The entry's own id (-o id) is neither a port nor an echo identifier.
			text: "icmp     1 29 src=10.4.0.7 dst=203.0.113.9 type=8 code=0 id=77 [UNREPLIED] src=203.0.113.9 dst=10.10.0.3 type=0 code=0 id=7321 mark=0 use=1 id=4023456789\n" +
				"udp      17 29 src=10.4.0.7 dst=10.10.0.20 sport=53 dport=8081 src=10.10.0.20 dst=10.4.0.7 sport=8081 dport=53 mark=0 use=1 id=77\n",
			want: []string{
				"icmp 10.4.0.7 > 203.0.113.9 id 77 -> icmp 10.10.0.3 > 203.0.113.9 id 7321  unreplied",
				"udp 10.4.0.7:53 > 10.10.0.20:8081 -> udp 10.4.0.7:53 > 10.10.0.20:8081 ",
			},
		},
		{ // Events of a connection are one entry, and one that begins anew after its end is another.
			text: "[1700000000.1]\t    [NEW] tcp      6 120 SYN_SENT src=10.4.0.7 dst=192.0.2.1 sport=1000 dport=80 [UNREPLIED] src=192.0.2.1 dst=10.4.0.7 sport=80 dport=1000\n" +
				"[1700000000.2]\t [UPDATE] tcp      6 60 SYN_RECV src=10.4.0.7 dst=192.0.2.1 sport=1000 dport=80 src=192.0.2.1 dst=10.4.0.7 sport=80 dport=1000\n" +
				"[1700000000.3]\t [UPDATE] tcp      6 432000 ESTABLISHED src=10.4.0.7 dst=192.0.2.1 sport=1000 dport=80 src=192.0.2.1 dst=10.4.0.7 sport=80 dport=1000 [ASSURED]\n" +
				"[1700000000.4]\t[DESTROY] tcp      6 src=10.4.0.7 dst=192.0.2.1 sport=1000 dport=80 packets=5 bytes=300 src=192.0.2.1 dst=10.4.0.7 sport=80 dport=1000 packets=4 bytes=200 [ASSURED]\n" +
				"    [NEW] tcp      6 120 SYN_SENT src=10.4.0.7 dst=192.0.2.1 sport=1000 dport=80 [UNREPLIED] src=192.0.2.1 dst=10.4.0.7 sport=80 dport=1000\n",
			want: []string{
				"tcp 10.4.0.7:1000 > 192.0.2.1:80 -> tcp 10.4.0.7:1000 > 192.0.2.1:80 ESTABLISHED assured gone 5/4",
				"tcp 10.4.0.7:1000 > 192.0.2.1:80 -> tcp 10.4.0.7:1000 > 192.0.2.1:80 SYN_SENT unreplied",
			},
		},
		{ // A protocol that conntrack has no name for.
			text: "unknown  2 599 src=172.16.0.1 dst=224.0.0.22 [UNREPLIED] src=224.0.0.22 dst=172.16.0.1 mark=0 use=1\n" +
				"ipv4     2 unknown  50 599 src=10.4.0.7 dst=203.0.113.9 src=203.0.113.9 dst=10.10.0.3 mark=0 zone=0 use=2\n" +
				"unknown  x 599 src=10.4.0.7 dst=203.0.113.9 src=203.0.113.9 dst=10.10.0.3 mark=0 use=1\n",
			want: []string{
				"ip-2 172.16.0.1 > 224.0.0.22 -> ip-2 172.16.0.1 > 224.0.0.22  unreplied",
				"esp 10.4.0.7 > 203.0.113.9 -> esp 10.10.0.3 > 203.0.113.9 ",
			},
			skipped: 1,
		},
		{ // Prompt, banner, a cut line, and what is none.
			text: "root@node:~# conntrack -L -d 203.0.113.9\r\n" +
				"udp      17 29 src=10.4.0.7 dst=203.0.113.9 sport=1 dport=2 [UNREPLIED] src=203.0.113.9 dst=10.10.0.3 sport=2 dport=9 mark=0 use=1\r\n" +
				"udp      17 29 src=10.4.0.7 dst=203.0.113.9 sport=3 dport=2 [UNREPLIED] src=203.0.113.9 ds\r\n" +
				"conntrack v1.4.7 (conntrack-tools): 2 flow entries have been shown.\r\nsrc=1.2.3.4\n",
			want:    []string{"udp 10.4.0.7:1 > 203.0.113.9:2 -> udp 10.10.0.3:9 > 203.0.113.9:2  unreplied"},
			skipped: 1,
		},
	} {
		entries, skipped, err := ReadConntrack(c.text)
		if err != nil || skipped != c.skipped {
			t.Errorf("%q: %d skipped, want %d: %v", c.text, skipped, c.skipped, err)
		}
		got := make([]string, 0, len(entries))
		for _, e := range entries {
			got = append(got, entryWords(&e))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	for _, none := range []string{
		"", "conntrack v1.4.7 (conntrack-tools): 0 flow entries have been shown.\n", "tcp 6 119 src=10.4.0.7 dst=203.0.113.9\n",
		"tcp      6 119 TIME_WAIT src=10.4.0.7 dst=203.0.113.999 sport=40000 dport=8080 src=203.0.113.9 dst=10.10.0.3 sport=8080 dport=21987\n",
		"tcp      6 119 TIME_WAIT src=10.4.0.7 dst=203.0.113.9 sport=70000 dport=8080 src=203.0.113.9 dst=10.10.0.3 sport=8080 dport=21987\n",
		"src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080 src=203.0.113.9 dst=10.10.0.3 sport=8080 dport=21987\n",
	} {
		if entries, _, err := ReadConntrack(none); err == nil {
			t.Errorf("%q is read as %+v", none, entries)
		}
	}
}

func entryWords(e *Entry) string {
	s := fmt.Sprintf("%s -> %s %s", e.Orig, e.Leaving(), e.State)
	for _, f := range []struct {
		is   bool
		word string
	}{{e.Unreplied, " unreplied"}, {e.Assured, " assured"}, {e.Gone, " gone"}, {e.Counted, fmt.Sprintf(" %d/%d", e.Sent, e.Back)}} {
		if f.is {
			s += f.word
		}
	}
	return s
}

// The kernel's own table and the tool's listing of it are the same connections.
func TestConntrackFormsAgree(t *testing.T) {
	read := func(name string) []string {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "fixtures", name))
		if err != nil {
			t.Skip("not checked: the fixtures of the tool and of the kernel's table are not here")
		}
		entries, skipped, err := ReadConntrack(string(text))
		if err != nil || skipped != 0 || len(entries) != strings.Count(string(text), "\n") {
			t.Fatalf("%s: %d entries, %d skipped: %v", name, len(entries), skipped, err)
		}
		words := make([]string, 0, len(entries))
		for _, e := range entries {
			words = append(words, entryWords(&e))
		}
		slices.Sort(words)
		return words
	}
	if tool, kernel := read("conntrack-extended.txt"), read("proc-nf_conntrack.txt"); !slices.Equal(tool, kernel) {
		t.Errorf("conntrack -L -o extended:\n%s\n/proc/net/nf_conntrack:\n%s", strings.Join(tool, "\n"), strings.Join(kernel, "\n"))
	}
}

func FuzzConntrack(f *testing.F) {
	f.Add("tcp 6 119 TIME_WAIT src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080 src=203.0.113.9 dst=10.10.0.3 sport=8080 dport=21987 [ASSURED] mark=0 use=1\n")
	f.Add("[NEW] icmpv6 58 29 src=fd00::1 dst=fd00::2 type=128 code=0 id=7 [UNREPLIED] src=fd00::2 dst=fd00::1 type=129 code=0 id=7\n[DESTROY] icmpv6 58 src=fd00::1 dst=fd00::2 type=128 code=0 id=7 packets=1 bytes=1 src=fd00::2 dst=fd00::1 type=129 code=0 id=7\n")
	f.Add("src=1.1.1.1 dst=2.2.2.2 src= dst=\x1b[2J\nudp udp udp src=::1%eth0 dst=::1\n")
	f.Fuzz(func(t *testing.T, text string) {
		entries, _, err := ReadConntrack(text)
		if err != nil {
			checkText(t, err.Error())
		}
		if err == nil && len(entries) == 0 {
			t.Error("no entries, and no error")
		}
		for _, e := range entries {
			checkText(t, e.State)
			if !e.Orig.Src.IsValid() || !e.Orig.Dst.IsValid() || !e.Reply.Src.IsValid() || !e.Reply.Dst.IsValid() || e.Orig.Proto == wire.ProtoNone || e.Reply.Proto != e.Orig.Proto {
				t.Errorf("entry %+v", e)
			}
		}
		facts, err := New(Input{PodCIDRs: prefixes("10.4.0.0/14"), Conntrack: []byte(text), ConntrackName: "c.txt"})
		if err != nil {
			checkText(t, err.Error())
			return
		}
		checkFacts(t, facts)
	})
}

// An entry of another zone than 0 shows a translation, and never that there is none.
func TestConntrackZones(t *testing.T) {
	const plain = "tcp 6 431999 ESTABLISHED src=172.16.0.13 dst=10.20.0.10 sport=40780 dport=80 src=10.20.0.10 dst=172.16.0.13 sport=80 dport=40780 [ASSURED] mark=0"
	for text, want := range map[string]bool{
		plain + " use=1": false, plain + " zone=0 use=1": false, plain + " zone=11 use=1": true,
		strings.Replace(plain, " src=10.20", " zone-orig=3 src=10.20", 1) + " use=1": true,
	} {
		entries, _, err := ReadConntrack(text)
		if err != nil || len(entries) != 1 || entries[0].Zoned != want {
			t.Errorf("%s: %+v, %v", text, entries, err)
		}
	}
}
