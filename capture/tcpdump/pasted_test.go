package tcpdump

import (
	"fmt"
	"strings"
	"testing"

	"github.com/srcproof/srcproof/capture/wire"
)

// What two runs printed is two captures, whatever a person put between them; what one printed is one, whatever stands in it.
func TestParts(t *testing.T) {
	const near = "11:47:05.280661 eth0  In  IP 10.4.0.7.43000 > 10.20.0.10.80: Flags [S], seq 7, win 64240, length 0\n"
	const far = "11:47:01.280661 eth0  In  IP 10.4.0.7.43000 > 10.20.0.10.80: Flags [S], seq 7, win 64240, length 0\n"
	const later = "11:47:09.280661 eth0  In  IP 10.4.0.7.43000 > 10.20.0.10.80: Flags [S], seq 7, win 64240, length 0\n"
	const bare = "11:47:09.280661 IP 10.4.0.7.43000 > 10.20.0.10.80: Flags [S], seq 7, win 64240, length 0\n"
	for _, c := range []struct {
		name, text string
		parts      int
		doubt      bool // packets may be missing
	}{
		{"one run", near + later, 1, false},
		{"one run with a blank line", near + "\n" + later, 1, false},
		{"a remark", near + "# here it is sent\n" + later, 1, false},
		{"what a person wrote on a line", near + "so this is the SYN, and then nothing?\n" + later, 1, false},
		{"times begin again behind a blank line", near + "\n" + far, 2, true},
		{"times begin again behind a sentence", near + "\nthen I looked at the other side\n\n" + far, 2, true},
		{"times begin again at once: a capture of several may be so", near + far, 1, true},
		{"the interfaces' names are gone", near + bare, 2, true},
		{"a heading", near + "On the far host:\n" + later, 2, true},
		{"a heading with a word before", near + "\nand node 2:\n\n" + later, 2, true},
		{"a heading between signs", near + "=== far ===\n" + later, 2, true},
		{"a heading of Markdown", near + "## far host\n" + later, 2, true},
		{"a prompt alone", near + "[root@far ~]#\n" + later, 2, true},
		{"a host's name", near + "far:\n" + later, 2, false},
		{"midnight", strings.ReplaceAll(near, "11:47", "23:59") + "\n" + strings.ReplaceAll(far, "11:47", "00:00"), 1, false},
		{"times since the last packet", "00:00:05.000000 IP 10.4.0.7.1 > 10.20.0.10.80: Flags [S], seq 7, win 1, length 0\n\n00:00:00.000000 IP 10.4.0.7.1 > 10.20.0.10.80: Flags [S], seq 7, win 1, length 0\n", 1, false},
		{"lines that were turned around", strings.Repeat(later+"\n"+near+"\n"+far+"\n", 40), maxParts + 1, true},
	} {
		got := Read([]byte(c.text), Options{})
		doubt := false
		for i := range got {
			doubt = doubt || got[i].Summary.Excerpt != ""
		}
		if len(got) != c.parts || doubt != c.doubt {
			t.Errorf("%s: %d parts, want %d; packets may be missing: %v, want %v", c.name, len(got), c.parts, doubt, c.doubt)
		}
	}
}

// A line that is cut anywhere says less than the whole one, and nothing else: no number is another, no protocol, no kind.
func TestCutLine(t *testing.T) {
	for _, line := range []string{
		"11:47:01.280661 IP 10.4.0.7.43000 > 10.20.0.10.80: Flags [S.], seq 4123456789, ack 1234567890, win 64240, options [mss 1460,sackOK,TS val 111222333 ecr 444555666,nop,wscale 7], length 1234",
		"11:47:01.280661 IP 10.4.0.7.43000 > 10.20.0.10.80: Flags [P.], seq 4123456789:4123456999, ack 1234567890, win 64240, length 210",
		"11:47:01.280661 IP 10.4.0.7 > 10.20.0.10: ICMP echo request, id 11185, seq 123, length 64",
		"11:47:01.280661 IP 10.4.0.7 > 10.20.0.10: ICMP echo reply, id 11185, seq 123, length 64",
		"11:47:01.280661 IP 10.20.0.1 > 10.4.0.7: ICMP 10.20.0.10 udp port 5353 unreachable, length 36",
		"11:47:01.280661 IP 10.20.0.1 > 10.4.0.7: ICMP host 10.20.0.10 unreachable - admin prohibited, length 36",
		"11:47:01.280661 IP6 fd00:4::7 > fd00:20::10: ICMP6, echo request, id 11185, seq 123, length 64",
		"11:47:01.280661 IP 10.4.0.7.43000 > 10.20.0.10.5353: UDP, length 123",
	} {
		all := Read([]byte(line+"\n"), Options{})
		if len(all) != 1 || len(all[0].Packets) != 1 {
			t.Fatalf("%s: %+v", line, all)
		}
		whole := all[0].Packets[0]
		for n := len(line) - 1; n > 20; n-- {
			for i, text := range []string{line[:n], line[:n] + "\n" + line[n:]} { // cut, or wrapped
				if i == 0 && (strings.HasSuffix(text, "]") && !strings.Contains(text, "options") || strings.HasSuffix(text, "request") || strings.HasSuffix(text, "reply")) {
					continue // as people write it, who leave out what they think does not matter
				}
				for _, c := range Read([]byte(text+"\n"), Options{}) {
					for i := range c.Packets {
						if bad := denies(&c.Packets[i], &whole); bad != "" {
							t.Errorf("%q: %s", text, bad)
						}
					}
				}
			}
		}
	}
}

// denies tells what of a packet is otherwise than in another, and not only less.
func denies(p, whole *wire.Packet) string {
	switch {
	case p.Tuple.Proto != whole.Tuple.Proto:
		return fmt.Sprintf("protocol %s", p.Tuple.Proto)
	case p.Tuple != whole.Tuple && whole.Attr&wire.IsError == 0:
		return fmt.Sprintf("is of %s, not of %s", p.Tuple, whole.Tuple)
	case p.Has(wire.KnowTransport) && whole.Tuple.Proto == wire.ProtoTCP && (p.Seq != whole.Seq || p.Ack != whole.Ack && p.Ack != 0 || p.Flags != whole.Flags):
		return fmt.Sprintf("flags %v, seq %d, ack %d", p.Flags, p.Seq, p.Ack)
	case p.Has(wire.KnowTransport) && p.Window == 0 && whole.Window != 0 && whole.Tuple.Proto == wire.ProtoTCP:
		return "window 0"
	case p.Has(wire.KnowTS) && (p.TSVal != whole.TSVal || p.TSEcr != whole.TSEcr):
		return fmt.Sprintf("timestamps %d %d", p.TSVal, p.TSEcr)
	case p.Attr&(wire.IsError|wire.IsReply) != whole.Attr&(wire.IsError|wire.IsReply):
		return "another kind of packet"
	}
	return ""
}

// What -v prints of the packet that an ICMP error is about is no packet of its own, however it is indented.
func TestQuoted(t *testing.T) {
	const first = "11:47:01.280661 IP (tos 0xc0, ttl 64, id 1, offset 0, flags [none], proto ICMP (1), length 88)\n    10.10.0.1 > 172.16.0.13: ICMP host 10.20.0.10 unreachable - admin prohibited, length 68\n"
	const quote = "IP (tos 0x0, ttl 62, id 7, offset 0, flags [DF], proto TCP (6), length 60)\n    172.16.0.13.40780 > 10.20.0.10.80: Flags [S], seq 7, win 64240, length 0\n"
	for _, text := range []string{
		first + "\t" + quote, " " + first + " " + quote, first + quote,
		strings.ReplaceAll(first+"\t"+quote, "    ", ""),
		strings.Replace(first, "IP (", "52:54:00:00:00:01 > 52:54:00:00:00:02, ethertype IPv4 (0x0800), length 102: (", 1) + "\t" + strings.TrimPrefix(quote, "IP "),
	} {
		all := Read([]byte(text), Options{})
		if len(all) != 1 || all[0].Summary.Frames != 1 || len(all[0].Packets) != 1 || all[0].Packets[0].Attr&wire.IsError == 0 || all[0].Packets[0].Tuple.SrcPortOrEchoID != 40780 {
			t.Errorf("%q\n%+v", text, all)
		}
	}
}
