//go:build cgo

package filter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// frame is one record of a pcap file.
type frame struct {
	data    []byte
	wireLen int
}

// readPcap reads a little-endian pcap file, as tcpdump writes it on this machine and on most.
func readPcap(t *testing.T, b []byte) (linkType uint32, frames []frame) {
	t.Helper()
	le := binary.LittleEndian
	if len(b) < 24 || le.Uint32(b) != 0xa1b2c3d4 && le.Uint32(b) != 0xa1b23c4d {
		t.Fatalf("no little-endian pcap file: %x", b[:min(len(b), 24)])
	}
	linkType = le.Uint32(b[20:])
	for b = b[24:]; len(b) >= 16; {
		n := int(le.Uint32(b[8:]))
		frames = append(frames, frame{b[16 : 16+n], int(le.Uint32(b[12:]))})
		b = b[16+n:]
	}
	return linkType, frames
}

var expressions = []string{
	"",
	"tcp",
	"not tcp",
	"udp or icmp",
	"icmp6",
	"ip6",
	"host 192.0.2.9",
	"src net 10.0.0.0/8",
	"dst net 10.0.0.0/8 and not dst port 443",
	"tcp port 8080",
	"tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
	"tcp[13] == 2",
	"icmp[icmptype] == icmp-echo",
	"portrange 1000-2000",
	"greater 100",
	"less 80",
	"len > 70 and tcp",
	"ip[8] < 64",
	"ip proto 17",
	"ip multicast",
	"not arp and not port 22",
	"tcp and (host 10.48.0.5 or host 10.128.0.10)",
}

// The same frames must pass as in tcpdump -r FILE EXPRESSION, which is what people compare with.
func TestSameAsTcpdump(t *testing.T) {
	tcpdump, err := exec.LookPath("tcpdump")
	if err != nil {
		t.Skip("not checked: tcpdump is not installed")
	}
	var files []string
	for _, pattern := range []string{"../../testdata/captures/*/*.pcap", "../../../shared/fixtures/sll1.pcap", "../../../shared/corpora/damaged/l02_*.pcap", "../../../shared/corpora/damaged/k1[56]_*.pcap", "../../../shared/corpora/zeek/ppp__*.pcap"} {
		found, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found[:min(len(found), 8)]...)
	}
	if len(files) == 0 {
		t.Skip("not checked: there are no captures")
	}
	passed := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		linkType, frames := readPcap(t, content)
		for _, expr := range expressions {
			f, err := Compile(expr)
			if err != nil {
				t.Fatalf("%q: %v", expr, err)
			}
			var got []frame
			for _, fr := range frames {
				if f.Match(linkType, fr.data, fr.wireLen) {
					got = append(got, fr)
				}
			}
			if err := f.Err(); err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			passed += len(got)
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), tcpdump, "-r", file, "-w", "-", expr)
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil && strings.Contains(stderr.String(), "rejects all packets") {
				out = content[:24]
			} else if err != nil {
				t.Errorf("%s: tcpdump %q: %v: %s", file, expr, err, stderr.String())
				continue
			}
			_, want := readPcap(t, out)
			if linkType == linkSLL2 && expr != "" {
				want = onlyIP(want)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %q: %d frames pass, in tcpdump %d", file, expr, len(got), len(want))
			}
		}
	}
	if passed == 0 {
		t.Error("no expression let any frame pass")
	}
}

// onlyIP leaves out what no expression matches in a capture of the any device: frames that are not IP.
func onlyIP(frames []frame) []frame {
	var ip []frame
	for _, f := range frames {
		if p := binary.BigEndian.Uint16(f.data); p == etherIPv4 || p == etherIPv6 {
			ip = append(ip, f)
		}
	}
	return ip
}

func TestErrorsQuoteTheExpression(t *testing.T) {
	for _, expr := range []string{"prot tcp", "tcp port", "host 300.1.2.3.4", "((tcp)", "port 99999"} {
		_, err := Compile(expr)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("filter %q: ", expr)) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", expr, err)
		}
	}
}

// Words below the network layer cannot work for SLL2, and are said, not passed over.
func TestLinkLayerWordsOfSLL2(t *testing.T) {
	for expr, word := range map[string]string{
		"ether host 02:00:00:00:00:01": "ether",
		"vlan 5 and tcp":               "vlan",
		"tcp and inbound":              "inbound",
		"(outbound)":                   "outbound",
		"ifindex 3":                    "ifindex",
		"not(mpls)":                    "mpls",
		"link[0] = 0":                  "link",
	} {
		f, err := Compile(expr)
		if err != nil {
			t.Errorf("%q: %v", expr, err)
			continue
		}
		err = f.Check(linkSLL2)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q: %q looks at the link layer", expr, word)) {
			t.Errorf("%q: %v", expr, err)
		}
		if f.Match(linkSLL2, make([]byte, 100), 100) || f.Err() == nil {
			t.Errorf("%q matched, or the error was lost: %v", expr, f.Err())
		}
	}
	for _, expr := range []string{"tcp", "host 10.0.0.1 and not (port 53 or icmp)", "net 10.0.0.0/8", ""} {
		f, err := Compile(expr)
		if err != nil || f.Check(linkSLL2) != nil {
			t.Errorf("%q: %v", expr, err)
		}
	}
}

func TestLinkTypesWithoutFilters(t *testing.T) {
	f, err := Compile("tcp")
	if err != nil {
		t.Fatal(err)
	}
	for _, linkType := range []uint32{239, 300, 9999} {
		if err := f.Check(linkType); err == nil || !strings.Contains(err.Error(), `filter "tcp"`) {
			t.Errorf("link type %d: %v", linkType, err)
		}
	}
	if f.Check(1) != nil || f.Check(101) != nil {
		t.Error("the filter is refused for Ethernet or raw IP")
	}
}

// Frames of no or few bytes are the capture's, not the filter's, to complain of.
func TestShortFrames(t *testing.T) {
	for _, expr := range []string{"", "tcp", "not tcp"} {
		f, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, linkType := range []uint32{1, 101, linkSLL2} {
			for n := range 24 {
				f.Match(linkType, make([]byte, n), 60)
			}
		}
	}
}

// "arp" matches nothing where all is IP: an answer, not an error.
func TestRejectsAllPackets(t *testing.T) {
	f, err := Compile("arp")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(101); err != nil {
		t.Error(err)
	}
	if f.Match(101, []byte{0x45, 19: 0}, 20) || f.Err() != nil {
		t.Errorf("matched, or %v", f.Err())
	}
}

func BenchmarkMatch(b *testing.B) {
	f, err := Compile("tcp port 443 and host 192.0.2.9")
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 100)
	data[12], data[13], data[14] = 8, 0, 0x45
	b.ReportAllocs()
	for b.Loop() {
		f.Match(1, data, 100)
	}
}

// libpcap says that there is an error, and not where.
func TestSyntaxErrorPlace(t *testing.T) {
	for expr, want := range map[string]string{
		"tcp portt 80":                        `filter "tcp portt 80": syntax error at column 5: "tcp" can be read, and not "portt 80" behind it`,
		"host 10.1.1.1 and":                   `"host 10.1.1.1" can be read, and not "and" behind it`,
		"host 10.1.1.1 or  or port 80 or tcp": `column 15: "host 10.1.1.1" can be read, and not "or  or port 80 or tcp" behind it`,
		"port":                                `filter "port": syntax error: no beginning of it is an expression`,
		"(tcp or udp":                         `no beginning of it is an expression`,
	} {
		if _, err := Compile(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
