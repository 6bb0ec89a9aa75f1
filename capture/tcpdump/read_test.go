package tcpdump

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/capture/wire"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"> 12:00:00.1 IP a > b: x":     "12:00:00.1 IP a > b: x",
		">12:00:00.1 IP":               "12:00:00.1 IP",
		">    10.0.0.1.1 > 10.0.0.2.2": "    10.0.0.1.1 > 10.0.0.2.2",
		"> > deep":                     "deep",
		"| cell |":                     "cell",
		"`12:00:00.1 IP a > b: x`":     "12:00:00.1 IP a > b: x",
		`Flags \[S\], a\_b`:            "Flags [S], a_b",
		"a &gt; b &amp; c":             "a > b & c",
		"see [www.x.test](http://y/).": "see www.x.test.",
		"^C3 packets captured":         "3 packets captured",
		"\x1b[31mred\x1b[0m":           "red",
		"\ufeff12:00:00.1 IP":          "12:00:00.1 IP",
		"12:00:00.1\u00a0IP\r":         "12:00:00.1 IP",
		"\x1b]0;title\x07text":         "text",
		"\x07text":                     "text",
		"tcpdmp\b\bump -n":             "tcpdump -n",
		"\b\btext\f":                   "text",
		"{code}":                       "",
		"{code:title=x|theme=y}text":   "text",
		"text{noformat}":               "text",
		"{coded} text":                 "{coded} text",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// one reads a text of one packet.
func one(t *testing.T, text string, opt Options) (Capture, wire.Packet) {
	t.Helper()
	all := Read([]byte(text), opt)
	if len(all) != 1 || len(all[0].Packets) == 0 {
		t.Fatalf("%q: %d captures: %+v", text, len(all), all)
	}
	return all[0], all[0].Packets[0]
}

// Every form of a line gives what it says, and nothing more.
func TestForms(t *testing.T) {
	const tcp = "10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 7, win 1, options [mss 1460,sackOK,TS val 5 ecr 0,nop,wscale 7], length 0"
	const syn = "tcp 10.0.0.1:40000 > 10.0.0.2:80"
	for _, c := range []struct {
		name, text, tuple string
		known             wire.Known
		iface             string
		dir               wire.Direction
		vlan              uint32
		frame             uint64
	}{
		{"plain", "12:00:00.123456 IP " + tcp, syn, wire.KnowTransport | wire.KnowOptions | wire.KnowTS | wire.KnowPayload, "", 0, 0, 1},
		{"without a time", "IP " + tcp, syn, wire.KnowTransport, "", 0, 0, 1},
		{"SLL2", "12:00:00.123456 eth0  Out IP " + tcp, syn, wire.KnowTransport, "eth0", wire.DirOut, 0, 1},
		{"SLL2 to others", "12:00:00.123456 veth1 P   IP " + tcp, syn, wire.KnowTransport, "veth1", wire.DirIn, 0, 1},
		{"SLL1", "12:00:00.123456  In IP " + tcp, syn, wire.KnowTransport, "", wire.DirIn, 0, 1},
		{"SLL2 with -e", "12:00:00.123456 eth0  In  ifindex 2 02:00:00:00:00:01 ethertype IPv4 (0x0800), length 80: " + tcp, syn, wire.KnowTransport, "eth0", wire.DirIn, 0, 1},
		{"Ethernet", "12:00:00.123456 02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype IPv4 (0x0800), length 74: " + tcp, syn, wire.KnowTransport, "", 0, 0, 1},
		{"Ethernet with names", "12:00:00.123456 02:00:00:00:00:01 (oui Unknown) > 02:00:00:00:00:02 (oui Unknown), ethertype IPv4 (0x0800), length 74: " + tcp, syn, wire.KnowTransport, "", 0, 0, 1},
		{"VLAN", "12:00:00.123456 02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype 802.1Q (0x8100), length 78: vlan 5, p 0, ethertype IPv4 (0x0800), " + tcp, syn, wire.KnowTransport, "", 0, 5, 1},
		{"numbered", "   17  12:00:00.123456 IP " + tcp, syn, wire.KnowTransport, "", 0, 0, 17},
		{"-v", "12:00:00.123456 IP (tos 0x0, ttl 63, id 99, offset 0, flags [DF], proto TCP (6), length 60)\n    " + tcp, syn, wire.KnowTransport | wire.KnowTTL | wire.KnowIPID, "", 0, 0, 1},
		{"-v, wrapped", "12:00:00.123456 IP (tos 0x0, ttl 63, id 99, offset 0,\nflags [DF], proto TCP (6), length 60)\n    " + strings.Replace(tcp, "win 1, ", "win 1,\n", 1), syn, wire.KnowTransport | wire.KnowTTL | wire.KnowIPID | wire.KnowTS, "", 0, 0, 1},
		{"IPv6", "12:00:00.123456 IP6 (flowlabel 0x1, hlim 64, next-header TCP (6) payload length: 40) 2001:db8::1.40000 > 2001:db8::2.443: Flags [S], seq 1, win 1, length 0", "tcp [2001:db8::1]:40000 > [2001:db8::2]:443", wire.KnowTTL, "", 0, 0, 1},
		{"names of services", "12:00:00.123456 IP 10.0.0.1.40000 > web.example.https: Flags [S], seq 1, win 1, length 0", "tcp 10.0.0.1:40000 > web.example:443", 0, "", 0, 0, 1},
		{"-q", "12:00:00.123456 IP 10.0.0.1.40000 > 10.0.0.2.80: tcp 12", syn, wire.KnowPayload, "", 0, 0, 1},
		{"DNS", "12:00:00.123456 IP 10.0.0.1.40000 > 10.0.0.2.53: 5+ A? x.test. (24)", "udp 10.0.0.1:40000 > 10.0.0.2:53", wire.KnowPayload, "", 0, 0, 1},
		{"echo", "12:00:00.123456 IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 7, seq 1, length 64", "icmp 10.0.0.1 > 10.0.0.2 id 7", wire.KnowPayload, "", 0, 0, 1},
		{"a date", "2026-11-30 12:00:00.123456 IP " + tcp, syn, wire.KnowTransport, "", 0, 0, 1},
		{"since 1970", "1796040000.123456 IP " + tcp, syn, wire.KnowTransport, "", 0, 0, 1},
		{"SCTP", "12:00:00.123456 IP 10.0.0.1.7 > 10.0.0.2.8: sctp (1) [INIT] [init tag: 9] [rwnd: 1] [OS: 1] [MIS: 1] [init TSN: 3]", "sctp 10.0.0.1:7 > 10.0.0.2:8", wire.KnowTransport, "", 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, p := one(t, c.text+"\n", Options{})
			if p.Tuple.String() != c.tuple || !p.Has(c.known) || p.Dir != c.dir || p.VLAN != c.vlan || p.Frame != c.frame || run.Summary.Interfaces[p.Iface].Name != c.iface {
				t.Errorf("%s known %b (want %b) dir %s vlan %d frame %d interface %q", p.Tuple, p.Known, c.known, p.Dir, p.VLAN, p.Frame, run.Summary.Interfaces[p.Iface].Name)
			}
			for _, k := range []wire.Known{wire.KnowTTL, wire.KnowIPID, wire.KnowDigest16, wire.KnowDigestAll} {
				if strings.Contains(c.text, "ttl") || strings.Contains(c.text, "hlim") {
					break
				}
				if p.Has(k) {
					t.Errorf("%b is known, and the text does not say it", k)
				}
			}
		})
	}
}

// Relative numbers are those of the wire: SYN and SYN-ACK are printed as they are, what follows by its distance.
func TestSequenceNumbers(t *testing.T) {
	text := `12:00:00.1 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 4294967290, win 1, length 0
12:00:00.2 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 100, ack 4294967291, win 1, length 0
12:00:00.3 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 1, length 0
12:00:00.4 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:21, ack 1, win 1, length 20
12:00:00.5 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 21, win 1, length 0
12:00:00.6 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], seq 1:11, ack 21, win 1, length 10
12:00:00.7 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], seq 4294967295:0, ack 21, win 1, length 0
`
	want := [][2]uint32{{4294967290, 0}, {100, 4294967291}, {4294967291, 101}, {4294967291, 101}, {101, 15}, {101, 15}, {99, 15}}
	check := func(text string, want [][2]uint32) {
		t.Helper()
		run := Read([]byte(text), Options{})[0]
		for i, p := range run.Packets {
			if got := [2]uint32{p.Seq, p.Ack}; got != want[i] {
				t.Errorf("packet %d: %d, want %d", i+1, got, want[i])
			}
		}
	}
	check(text, want)
	// -S prints all as they are; the numbers themselves tell.
	check(`12:00:00.1 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 3000000000, win 1, length 0
12:00:00.2 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 2000000000, ack 3000000001, win 1, length 0
12:00:00.3 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 2000000001, win 1, length 0
12:00:00.4 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 3000000001:3000000021, ack 2000000001, win 1, length 20
`, [][2]uint32{{3000000000, 0}, {2000000000, 3000000001}, {3000000001, 2000000001}, {3000000001, 2000000001}})
	// Relative without what they are relative to: two legs of one connection do not seem to have the same numbers.
	run := Read([]byte("12:00:00.1 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:21, ack 1, win 1, length 20\n12:00:00.1 IP 10.9.9.9.40000 > 10.0.0.2.80: Flags [P.], seq 1:21, ack 1, win 1, length 20\n"), Options{})[0]
	if a, b := run.Packets[0], run.Packets[1]; a.Seq == b.Seq || a.Ack == b.Ack {
		t.Errorf("%d/%d and %d/%d", a.Seq, a.Ack, b.Seq, b.Ack)
	}
}

func TestTimes(t *testing.T) {
	line := func(stamp string) string {
		return stamp + " IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 7, seq 1, length 64\n"
	}
	day := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	berlin := time.FixedZone("+01:00", 3600)
	ms := func(text string, opt Options) (out []int64, noDate bool) {
		run := Read([]byte(text), opt)[0]
		for _, p := range run.Packets {
			if p.Time == wire.NoTime {
				out = append(out, -1)
				continue
			}
			out = append(out, p.Time/1e6)
		}
		return out, run.Summary.NoDate
	}
	at := func(h, m, s int) int64 { return int64((h*60+m)*60+s) * 1000 }
	since := func(t time.Time) int64 { return t.UnixMilli() }
	for _, c := range []struct {
		name   string
		text   string
		opt    Options
		want   []int64
		noDate bool
	}{
		{"a day that is not known", line("12:00:01.000000") + line("12:00:02.000000"), Options{}, []int64{at(12, 0, 1), at(12, 0, 2)}, true},
		{"past midnight", line("23:59:59.000000") + line("00:00:01.000000"), Options{}, []int64{at(23, 59, 59), at(24, 0, 1)}, true},
		{"with date and zone", line("12:00:01.000000"), Options{Day: day, Zone: berlin}, []int64{since(time.Date(2026, 11, 30, 11, 0, 1, 0, time.UTC))}, false},
		{"a date alone has no zone", line("2026-11-30 12:00:01.000000"), Options{}, []int64{since(time.Date(2026, 11, 30, 12, 0, 1, 0, time.UTC))}, true},
		{"a date with its zone", line("2026-11-30 12:00:01.000000"), Options{Zone: berlin}, []int64{since(time.Date(2026, 11, 30, 11, 0, 1, 0, time.UTC))}, false},
		{"since 1970", line("1796040000.000000"), Options{}, []int64{1796040000000}, false},
		{"none", line("")[1:], Options{}, []int64{-1}, true},
		{"since the packet before", line(" 00:00:00.000000") + line(" 00:00:02.000000") + line(" 00:00:01.000000"), Options{}, []int64{0, 2000, 3000}, true},
		{"since the packet before, which is long", line(" 00:01:03.000000") + line(" 00:00:01.000000"), Options{}, []int64{0, 1000}, true},
		{"since the first", line(" 00:00:00.000000") + line(" 00:00:01.000000") + line(" 00:00:02.000000"), Options{}, []int64{0, 1000, 2000}, true},
		{"what the command says", "# tcpdump -nttt -i any icmp\n" + line(" 00:00:00.000000") + line(" 00:00:01.000000") + line(" 00:00:02.000000"), Options{}, []int64{0, 1000, 3000}, true},
	} {
		if got, noDate := ms(c.text, c.opt); !slices.Equal(got, c.want) || noDate != c.noDate {
			t.Errorf("%s: %d, no date %t; want %d, %t", c.name, got, noDate, c.want, c.noDate)
		}
	}
}

func TestCommands(t *testing.T) {
	const packet = "12:00:00.1 IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 7, seq 1, length 64\n"
	for _, c := range []struct {
		line, host, filter string
		known, any         bool
		excerpt            string
	}{
		{"root@node-1:~# tcpdump -ni any host 10.0.0.2 and icmp", "node-1", "host 10.0.0.2 and icmp", true, true, ""},
		{"[ops@n2 ~]$ sudo tcpdump -nn -i eth0 -s 0 -c 10 'host 10.0.0.2'", "n2", "host 10.0.0.2", true, false, ""},
		{"$ tcpdump -i any -n port 80 -vv", "", "port 80", true, true, ""},
		{"# ip netns exec ns1 /usr/sbin/tcpdump -ln", "", "", true, false, ""},
		{"$ kubectl exec -it web -- tcpdump -ni any icmp", "", "icmp", true, true, ""},
		{"# timeout 10 tcpdump -ni any icmp | grep 10.0.0.2", "", "", false, true, "the output went through grep"},
		{"# tcpdump -Q in -ni eth0", "", "", true, false, "of one direction alone"},
	} {
		run, _ := one(t, c.line+"\n"+packet, Options{})
		s := run.Summary
		if run.Host != c.host || s.Filter != c.filter || s.HasFilter != c.known || s.AllInterfaces != c.any || !strings.Contains(s.Excerpt, c.excerpt) || c.excerpt == "" && s.Excerpt != "" {
			t.Errorf("%s: host %q, filter %q (known %t), all interfaces %t, excerpt %q", c.line, run.Host, s.Filter, s.HasFilter, s.AllInterfaces, s.Excerpt)
		}
	}
}

// What stands around the packets tells what is missing, and what is of another run.
func TestAround(t *testing.T) {
	const packet = "12:00:00.1 IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 7, seq 1, length 64\n"
	for _, c := range []struct {
		name, text string
		runs       int
		excerpt    string
		dropped    uint64
		hasDropped bool
	}{
		{"counters that fit", packet + "1 packet captured\n2 packets received by filter\n0 packets dropped by kernel\n", 1, "", 0, true},
		{"more were captured", packet + "7 packets captured\n7 packets received by filter\n0 packets dropped by kernel\n", 1, "counts 7 packets, and the text holds 1", 0, true},
		{"some were dropped", packet + "^C1 packet captured\n9 packets received by filter\n8 packets dropped by kernel\n", 1, "", 8, true},
		{"dots", packet + "...\n" + packet, 1, "a line of dots", 0, false},
		{"two prompts", "root@a:~# tcpdump -ni any\n" + packet + "root@b:~# tcpdump -ni any\n" + packet, 2, "", 0, false},
		{"two banners", "listening on eth0, link-type EN10MB (Ethernet), capture size 262144 bytes\n" + packet + "listening on eth1, link-type EN10MB (Ethernet), capture size 262144 bytes\n" + packet, 2, "", 0, false},
		{"a prompt and its banner", "root@a:~# tcpdump -ni any\ntcpdump: verbose output suppressed, use -v\nlistening on any, link-type LINUX_SLL2 (Linux cooked v2), snapshot length 262144 bytes\n" + packet, 1, "", 0, false},
		{"the second line of a packet first", "    10.0.0.1.1 > 10.0.0.2.2: Flags [S], seq 1, win 1, length 0\n" + packet, 1, "begins within a packet", 0, false},
		{"remarks, dumps and other lines", packet + "# here it stops\n\t0x0000:  4500 0054\nE..T..@.@\n" + packet, 1, "", 0, false},
	} {
		all := Read([]byte(c.text), Options{})
		if len(all) != c.runs {
			t.Errorf("%s: %d runs", c.name, len(all))
			continue
		}
		s := all[0].Summary
		if !strings.Contains(s.Excerpt, c.excerpt) || c.excerpt == "" && s.Excerpt != "" || s.Dropped != c.dropped || s.HasDropped != c.hasDropped {
			t.Errorf("%s: excerpt %q, dropped %d (known %t)", c.name, s.Excerpt, s.Dropped, s.HasDropped)
		}
	}
}

// An ICMP error without the packet that it quotes is about the only request that it can mean, or about none.
func TestErrorsWithoutQuote(t *testing.T) {
	syn := func(at string, port int) string {
		return fmt.Sprintf("12:00:%s IP 10.0.0.1.%d > 10.0.0.2.80: Flags [S], seq %d, win 1, length 0\n", at, port, port*100000)
	}
	const err = " IP 10.0.0.9 > 10.0.0.1: ICMP host 10.0.0.2 unreachable - admin prohibited, length 68\n"
	for _, c := range []struct {
		name, text string
		port       uint16
	}{
		{"one request", syn("00.1", 41000) + "12:00:00.2" + err, 41000},
		{"two, of which one was just sent", syn("00.1", 41000) + syn("09.1", 41001) + "12:00:09.2" + err, 41001},
		{"two at once", syn("00.1", 41000) + syn("00.15", 41001) + "12:00:00.2" + err, 0},
		{"to another host", strings.ReplaceAll(syn("00.1", 41000), "10.0.0.2", "10.0.0.3") + "12:00:00.2" + err, 0},
	} {
		run := Read([]byte(c.text), Options{})[0]
		p := run.Packets[len(run.Packets)-1]
		if p.Attr&wire.IsError == 0 || p.Tuple.SrcPortOrEchoID != c.port || p.ICMPType != 3 || p.ICMPCode != 10 {
			t.Errorf("%s: %s, type %d code %d", c.name, p.Tuple, p.ICMPType, p.ICMPCode)
		}
	}
}

// FuzzText: no text makes Read panic, and what it gives is what a capture may give.
func FuzzText(f *testing.F) {
	files, _ := filepath.Glob("../../../shared/cases/*/*")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, c := range Read(text, Options{}) {
			frames := uint64(0)
			for i := range c.Packets {
				p := &c.Packets[i]
				if int(p.Iface) >= len(c.Summary.Interfaces) || p.Frame == 0 {
					t.Fatalf("packet %+v of %d interfaces", p, len(c.Summary.Interfaces))
				}
				if p.Tuple.Src.Name() == "" && p.Tuple.Src.String() == "" {
					t.Fatalf("%+v", p)
				}
				frames++
			}
			if c.Summary.Complete && c.Summary.Format != "tcpdump text" {
				t.Fatalf("%+v", c.Summary)
			}
		}
		_ = Looks(string(text[:min(len(text), 4096)]))
		if plain, log := WithoutLog(text); log.Prefix != "" && len(plain) > len(text) {
			t.Fatalf("%d bytes without %q, %d with it", len(plain), log.Prefix, len(text))
		}
	})
}

// What an error is about may be the answer to a ping: then it is the answer that was rejected, with the quote and without.
func TestErrorAboutEchoReply(t *testing.T) {
	const ping = "12:00:00.1 IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 7, seq 1, length 64\n12:00:00.2 IP 10.0.0.2 > 10.0.0.1: ICMP echo reply, id 7, seq 1, length 64\n"
	for name, c := range map[string]struct {
		text  string
		src   string
		reply wire.Attr
	}{
		"the answer":          {"12:00:00.3 IP 10.0.0.9 > 10.0.0.2: ICMP net 10.0.0.1 unreachable, length 92\n", "10.0.0.2", wire.IsReply},
		"the request":         {"12:00:00.3 IP 10.0.0.9 > 10.0.0.1: ICMP net 10.0.0.2 unreachable, length 92\n", "10.0.0.1", 0},
		"the answer, quoted":  {"12:00:00.3 IP 10.0.0.9 > 10.0.0.2: ICMP net 10.0.0.1 unreachable, length 92\n\tIP (tos 0x0, ttl 64, id 5, offset 0, flags [none], proto ICMP (1), length 84)\n    10.0.0.2 > 10.0.0.1: ICMP echo reply, id 7, seq 1, length 64\n", "10.0.0.2", wire.IsReply},
		"the request, quoted": {"12:00:00.3 IP 10.0.0.9 > 10.0.0.1: ICMP net 10.0.0.2 unreachable, length 92\n\tIP (tos 0x0, ttl 64, id 5, offset 0, flags [none], proto ICMP (1), length 84)\n    10.0.0.1 > 10.0.0.2: ICMP echo request, id 7, seq 1, length 64\n", "10.0.0.1", 0},
	} {
		run := Read([]byte(ping+c.text), Options{})[0]
		p := run.Packets[len(run.Packets)-1]
		if len(run.Packets) != 3 || !p.Is(wire.IsError) || p.Tuple.Src.String() != c.src || p.Attr&wire.IsReply != c.reply || p.Tuple.SrcPortOrEchoID != 7 {
			t.Errorf("%s: %d packets, %s %b", name, len(run.Packets), p.Tuple, p.Attr)
		}
	}
}
