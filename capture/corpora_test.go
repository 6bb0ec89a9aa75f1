package capture

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/capture/wire"
)

// corpus is the folder of captures that other people's tools were tried on. It is no part of the project.
func corpus(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "corpora", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("not checked: %s is absent", dir)
	}
	return dir
}

// table reads a table with a head line, separated by tabs: one map a row.
func table(t *testing.T, path string) []map[string]string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var head []string
	var rows []map[string]string
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if head == nil {
			head = cells
			continue
		}
		row := make(map[string]string)
		for i, c := range cells {
			row[head[i]] = c
		}
		rows = append(rows, row)
	}
	return rows
}

// ending is how reading a file ends.
type ending struct {
	frames  uint64
	packets int
	// "" for a clean end, "format: TEXT" for a FormatError, "frame N: TEXT" for a DamageError; TEXT is part of its message.
	end string
	// What else the file is there to show.
	check func(*testing.T, []wire.Packet, wire.Summary)
}

func isSF(t *testing.T, p []wire.Packet, _ wire.Summary) {
	for i := range p {
		if s := p[i].Tuple.String(); s != "tcp 141.142.228.5:59856 > 192.150.187.43:80" && s != "tcp 192.150.187.43:80 > 141.142.228.5:59856" {
			t.Errorf("packet %d is %s", i, s)
		}
		if !p[i].Has(wire.KnowTransport) {
			t.Errorf("packet %d has no flags", i)
		}
	}
}

func skips(k wire.Skip, n uint64) func(*testing.T, []wire.Packet, wire.Summary) {
	return func(t *testing.T, _ []wire.Packet, s wire.Summary) {
		if s.Skipped[k] != n {
			t.Errorf("skipped %v, want %d %v", s.Skipped, n, k)
		}
	}
}

func gives(want string) func(*testing.T, []wire.Packet, wire.Summary) {
	return func(t *testing.T, p []wire.Packet, s wire.Summary) {
		if got := lines(p); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

func both(a, b func(*testing.T, []wire.Packet, wire.Summary)) func(*testing.T, []wire.Packet, wire.Summary) {
	return func(t *testing.T, p []wire.Packet, s wire.Summary) { a(t, p, s); b(t, p, s) }
}

func vlans(want ...uint32) func(*testing.T, []wire.Packet, wire.Summary) {
	return func(t *testing.T, p []wire.Packet, _ wire.Summary) {
		seen := map[uint32]int{}
		for i := range p {
			seen[p[i].VLAN]++
		}
		for _, v := range want {
			if seen[v] != len(p)/len(want) {
				t.Errorf("VLANs %v, want %v", seen, want)
			}
		}
	}
}

func window(first, last int64) func(*testing.T, []wire.Packet, wire.Summary) {
	return func(t *testing.T, _ []wire.Packet, s wire.Summary) {
		if s.First != first || s.Last != last {
			t.Errorf("from %d to %d, want %d to %d", s.First, s.Last, first, last)
		}
	}
}

func TestDamagedFiles(t *testing.T) {
	const sfFirst, sfLast = 1362692526_869344_000, 1362692527_080972_000 // of the connection that most files hold
	want := map[string]ending{
		"c02_truncated.pcap.gz":          {8, 8, "frame 9: unexpected end of gzip", isSF},
		"f_aix_iptrace2.iptrace":         {end: "format: AIX iptrace"},
		"f_commview-ncf.ncf":             {end: "format: neither pcap nor pcapng"},
		"f_directory_placeholder.txt":    {end: "format: is text"},
		"f_html_error_page.pcap":         {end: "format: HTML page"},
		"f_lanalyzer.lanalyzer.tr1":      {end: "format: LANalyzer"},
		"f_netmon2.netmon2":              {end: "format: Network Monitor"},
		"f_ngwsniffer_2_0.ngsniffer.cap": {end: "format: NetXray or Sniffer"},
		"f_observer.observer.bfr":        {end: "format: Observer"},
		"f_snoop.snoop":                  {end: "format: snoop"},
		"f_visual.visual":                {end: "format: Visual Networks"},
		"k03_tcp_doff_15.pcap":           {14, 14, "", both(isSF, skips(wire.SkipMalformed, 1))},
		"k04_snap_34_bytes_ip_only.pcap": {14, 0, "", skips(wire.SkipTooShort, 14)},
		"k05_snap_48_tcp_cut_before_flags.pcap": {14, 14, "", func(t *testing.T, p []wire.Packet, s wire.Summary) {
			for i := range p {
				if p[i].Tuple.SrcPortOrEchoID == 0 || p[i].Has(wire.KnowTransport) || !p[i].Is(wire.IsCut) {
					t.Errorf("%+v", p[i])
				}
			}
			if s.CutFrames != 14 {
				t.Errorf("%d cut frames", s.CutFrames)
			}
		}},
		"k06_snap_54_exact_headers.pcap":                       {14, 14, "", both(isSF, window(sfFirst, sfLast))},
		"k10_zeek_trunc_icmp-header-trunc.pcap":                {2, 0, "", skips(wire.SkipTooShort, 2)},
		"k10_zeek_trunc_ip-discarder-truncated-tcp-oob.pcapng": {1, 0, "", skips(wire.SkipTooShort, 1)},
		"k10_zeek_trunc_ip4-trunc.pcap":                        {1, 0, "", skips(wire.SkipTooShort, 1)},
		"k10_zeek_trunc_ip6-ext-trunc.pcap":                    {1, 0, "", skips(wire.SkipMalformed, 1)},
		"k10_zeek_trunc_ip6-trunc.pcap":                        {1, 0, "", skips(wire.SkipTooShort, 1)},
		"k10_zeek_trunc_ipv4-internally-truncated-header.pcap": {1, 0, "", skips(wire.SkipTooShort, 1)},
		"k10_zeek_trunc_ipv4-truncated-broken-header.pcap":     {1, 0, "", skips(wire.SkipMalformed, 1)},
		"k10_zeek_trunc_mpls-6in6-6in6-4in6-trunc.pcap":        {1, 1, "", skips(wire.SkipMalformed, 1)},
		"k10_zeek_trunc_mpls-6in6-broken.pcap.gz":              {1811, 1774, "", skips(wire.SkipMalformed, 1811)},
		"k10_zeek_trunc_trunc-hdr.pcap":                        {1, 0, "", skips(wire.SkipTooShort, 1)},
		"k15_vlan_collisions.pcap":                             {42, 42, "", both(isSF, vlans(0, 42, 10<<12|20))},
		"k16_qinqinq.pcap":                                     {14, 14, "", both(isSF, vlans(30<<24|20<<12|10))},
		"k17_bad_checksums_offload.pcap":                       {10, 10, "", nil},
		"k18_syn_bad_checksum.pcap":                            {1, 1, "", isSF},
		"k19_unknown_ip_short.pcap":                            {4, 4, "", gives(strings.Repeat("ip-253 192.168.1.1 > 192.168.1.2 opaque other\n", 4))},
		"k21_mpls_in_vlan.pcap":                                {3, 3, "", nil},
		"k22_bigtcp-ipv4-vxlan-ipv4.pcap":                      {1, 2, "", both(gives("udp 10.25.132.11:47044 > 10.25.132.13:4789 carrier vxlan\n  tcp 192.168.1.2:36875 > 192.168.1.1:36449\n"), inside(80000))},
		"k22_bigtcp-ipv6-geneve-ipv6.pcap":                     {1, 2, "", both(gives("udp [2604:1380:4091:ce00::d]:23733 > [2604:1380:4091:ce00::b]:6081 carrier geneve\n  tcp [fd00::1]:38339 > [fd00::2]:43997\n"), inside(80000))},
		"k22_erspan-type-i-1.pcap":                             {2, 4, "", gives("gre 1.1.1.1 > 192.168.255.5 carrier gre\n  icmp 10.52.128.233 > 10.52.128.234 id 44114\ngre 1.1.1.1 > 192.168.255.5 carrier gre\n  icmp 10.52.128.234 > 10.52.128.233 id 44114\n")},
		"k22_gso-ipv4-geneve-ipv6.pcap":                        {1, 2, "", both(gives("udp 10.25.132.11:15130 > 10.25.132.13:6081 carrier geneve\n  tcp [fd00::2]:34235 > [fd00::1]:37399\n"), inside(4134))},
		"k22_isakmp-pointer-loop.pcap":                         {1, 1, "", gives("udp 129.170.249.126:500 > 129.170.249.87:500\n")},
		"k22_nsh-over-vxlan-gpe.pcap":                          {1, 2, "", gives("udp 127.0.0.1:4790 > 127.0.0.1:4790 carrier vxlan\n  udp 192.168.0.1:10000 > 192.168.0.2:20000\n")},
		"l02_loop_dlt108.pcap":                                 {24, 24, "", nil},
		"l07_nflog.pcap":                                       {13, 13, "", nil},
		"l08_nflog_bad_tlv.pcap":                               {1, 0, "", skips(wire.SkipMalformed, 1)},
		"l09_ppi.pcap":                                         {5, 3, "", skips(wire.SkipNotIP, 2)},
		"n01_two_linktypes.pcapng":                             {5, 5, "", nil},
		"n03_multi_section_mixed_endian.pcapng":                {8, 8, "", nil},
		"n04_multi_section.pcapng":                             {4, 4, "", nil},
		"n06_unknown_blocks.pcapng":                            {4, 4, "", nil},
		"n14_version_bad1.pcapng":                              {end: "format: version"},
		"n15_version_bad2.pcapng":                              {end: "format: version 1.1"},
		"n16_shb_option_too_long.pcapng":                       {end: "format: section header"},
		"n20_trunc_mid_epb.pcapng":                             {5, 5, "frame 6: cut inside a block", isSF},
		"n21_trunc_in_block_header.pcapng":                     {5, 5, "frame 6: cut inside a block header", isSF},
		"n22_block_len_0.pcapng":                               {2, 2, "frame 3: length of 0 bytes", isSF},
		"n24_block_len_fffffffc.pcapng":                        {2, 2, "frame 3: 4294967292", isSF},
		"n26_trailing_len_mismatch.pcapng":                     {2, 2, "frame 3: two lengths differ", isSF},
		"n27_undefined_interface.pcapng":                       {14, 13, "frame 3: interface 7", both(isSF, skips(wire.SkipNoInterface, 1))},
		"n28_caplen_gt_block.pcapng":                           {2, 2, "frame 3: more than its block holds", isSF},
		"n29_no_idb.pcapng":                                    {0, 0, "frame 1: before any interface", nil},
		"n32_tsresol_ns_and_offset.pcapng":                     {14, 14, "", both(isSF, window(sfFirst+1000e9, sfLast+1000e9))},
		"n34_tsresol_63_and_seconds.pcapng":                    {14, 14, "", both(isSF, window(1362692526e9, 1362692527e9))},
		"n35_if1_mixed_tsresol_interleaved.pcapng":             {14, 14, "", both(isSF, window(sfFirst, sfLast))},
		"n36_pcap_after_pcapng.pcapng":                         {14, 14, "frame 15: a pcap file begins here", isSF},
		"n37_epb_on_null_and_raw.pcapng":                       {14, 14, "", isSF},
		"n39_dropped_count_isb.pcapng":                         {14, 14, "", isSF},
		"p01_zero_bytes.pcap":                                  {end: "format: is empty"},
		"p02_header_10_bytes.pcap":                             {end: "format: after 10 of 24 bytes"},
		"p03_header_only.pcap":                                 {0, 0, "", window(wire.NoTime, wire.NoTime)},
		"p05_trunc_record_data.pcap":                           {13, 13, "frame 14: 61 of its 66 bytes", isSF},
		"p07_nokia.pcap":                                       {0, 0, "frame 1: Nokia", nil},
		"p08_redhat61.pcap":                                    {0, 0, "frame 1: Red Hat", nil},
		"p11_big_endian_us.pcap":                               {14, 14, "", both(isSF, window(sfFirst, sfLast))},
		"p15_snaplen_0.pcap":                                   {14, 14, "", isSF},
		"p16_snaplen_huge.pcap":                                {14, 14, "", isSF},
		"p17_caplen_gt_snaplen.pcap":                           {14, 14, "", isSF},
		"p18_zero_caplen_records.pcap":                         {16, 14, "", both(isSF, skips(wire.SkipEmpty, 2))},
		"p19_origlen_lt_caplen.pcap":                           {14, 14, "", isSF},
		"p21_linktype_9999.pcap":                               {end: "format: link type 9999"},
		"p24_version_1.4.pcap":                                 {end: "format: version 1.4"},
		"p25_version_2.5.pcap":                                 {end: "format: version 2.5"},
		"p28_ts_zero_and_max.pcap":                             {14, 14, "", both(isSF, window(0, (1<<32-1)*1e9+999999e3))},
		"p29_ts_fraction_out_of_range.pcap":                    {3, 3, "", nil},
		"p30_two_pcaps_concatenated.pcap":                      {14, 14, "frame 15: a second pcap file begins here", isSF},
		"p31_zero_tail.pcap":                                   {270, 14, "", both(isSF, window(sfFirst, sfLast))},
		"p32_crlf_mangled.pcap":                                {1, 1, "frame 2: text mode (CR LF)", nil},
		"p37_caplen_262145_snap_262144.pcap":                   {1, 1, "frame 2: 262145 captured bytes", nil},
	}
	dir := corpus(t, "damaged")
	for _, row := range table(t, filepath.Join(dir, "EXPECT.tsv")) {
		name := row["file"]
		t.Run(name, func(t *testing.T) {
			w, ok := want[name]
			if !ok {
				t.Fatalf("what should happen is not written down; want: %s", row["want"])
			}
			began := time.Now()
			packets, sum, err := readFile(t, filepath.Join(dir, name))
			if took := time.Since(began); took > time.Second {
				t.Errorf("took %v", took)
			}
			var format *FormatError
			var damage *DamageError
			got := ""
			switch {
			case errors.As(err, &format):
				got = "format: " + format.What + " " + format.Hint
			case errors.As(err, &damage):
				got = fmt.Sprintf("frame %d: %v", damage.Frame, damage)
			case err != nil:
				t.Fatal(err)
			}
			kind, text, _ := strings.Cut(w.end, ": ")
			if gotKind, _, _ := strings.Cut(got, ": "); gotKind != kind || !strings.Contains(got, text) {
				t.Errorf("ends with %q, want %q (%s)", got, w.end, row["want"])
			}
			if strings.ContainsAny(got, "\n\x1b") {
				t.Errorf("the message has more than one line: %q", got)
			}
			if sum.Frames != w.frames || len(packets) != w.packets {
				t.Errorf("%d frames, %d packets, want %d, %d", sum.Frames, len(packets), w.frames, w.packets)
			}
			if sum.Complete != (w.end == "") {
				t.Errorf("complete is %v", sum.Complete)
			}
			if w.check != nil {
				w.check(t, packets, sum)
			}
			delete(want, name)
			// What the two tools see bounds what is right: not fewer frames than the poorer, nor more than the richer.
			if w.end == "" || kind != "format" {
				tcpdump, _ := strconv.ParseUint(row["tcpdump_lines"], 10, 64)
				tshark, _ := strconv.ParseUint(row["tshark_frames"], 10, 64)
				if why := map[string]string{
					"p07_nokia.pcap":                 "its first packet is garbage in tcpdump",
					"p08_redhat61.pcap":              "its first packet is garbage in tcpdump",
					"n27_undefined_interface.pcapng": "both stop at the packet that is left out here",
				}[name]; why == "" && (sum.Frames < min(tcpdump, tshark) || sum.Frames > max(tcpdump, tshark)) {
					t.Errorf("%d frames; tcpdump has %d, tshark %d", sum.Frames, tcpdump, tshark)
				}
			}
		})
	}
	for name := range want {
		t.Errorf("%s is not in EXPECT.tsv, or failed", name)
	}
}

// inside checks the payload of the last packet.
func inside(payload uint32) func(*testing.T, []wire.Packet, wire.Summary) {
	return func(t *testing.T, p []wire.Packet, _ wire.Summary) {
		if n := p[len(p)-1].PayloadLen; n != payload {
			t.Errorf("payload of %d bytes, want %d", n, payload)
		}
	}
}

func readFile(t *testing.T, path string) ([]wire.Packet, wire.Summary, error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return readAll(t, f, Options{})
}

// Every trace of Zeek's test suite is read whole, with as many frames as tcpdump counts, and the packets of every
// connection that Zeek sees in it are there, those inside tunnels included.
func TestZeekTraces(t *testing.T) {
	dir := corpus(t, "zeek")
	type key struct{ file, tuple string }
	packets := map[key]int{}
	files := map[string]bool{}
	for _, row := range table(t, filepath.Join(dir, "EXPECT.tsv")) {
		files[row["file"]] = true
	}
	_, lookErr := exec.LookPath("tcpdump")
	if lookErr != nil {
		t.Log("not checked: frames as tcpdump counts them, for it is not installed")
	}
	for name := range files {
		got, sum, err := readFile(t, filepath.Join(dir, name))
		if err != nil || !sum.Complete {
			t.Errorf("%s: %v", name, err)
		}
		if lookErr == nil {
			out, err := exec.Command("tcpdump", "-r", filepath.Join(dir, name), "--count").Output()
			n, _, _ := strings.Cut(string(out), " ")
			if err != nil || n != strconv.FormatUint(sum.Frames, 10) {
				t.Errorf("%s: %d frames, tcpdump counts %q, %v", name, sum.Frames, n, err)
			}
		}
		for i := range got {
			if !got[i].Is(wire.IsError) { // an error's tuple is the quoted packet's
				packets[key{name, got[i].Tuple.String()}]++
			}
		}
		if n := sum.Skipped[wire.SkipMalformed] + sum.Skipped[wire.SkipLinkType] + sum.Skipped[wire.SkipDepth]; n != 0 {
			t.Errorf("%s: skipped %v", name, sum.Skipped)
		}
	}
	checked := 0
	type side struct {
		src, sport, dst, dport, count string
	}
	want := map[key]int{}
	for _, row := range table(t, filepath.Join(dir, "EXPECT.tsv")) {
		if row["proto"] != "tcp" && row["proto"] != "udp" {
			continue
		}
		for _, s := range []side{
			{row["orig_h"], row["orig_p"], row["resp_h"], row["resp_p"], row["orig_pkts"]},
			{row["resp_h"], row["resp_p"], row["orig_h"], row["orig_p"], row["resp_pkts"]},
		} {
			n, err := strconv.Atoi(s.count)
			if err != nil {
				t.Fatal(err)
			}
			tuple := wire.Tuple{Src: wire.MustAddr(s.src), Dst: wire.MustAddr(s.dst), Proto: wire.ProtoTCP}
			if row["proto"] == "udp" {
				tuple.Proto = wire.ProtoUDP
			}
			sp, _ := strconv.Atoi(s.sport)
			dp, _ := strconv.Atoi(s.dport)
			tuple.SrcPortOrEchoID, tuple.DstPortOrEchoID = uint16(sp), uint16(dp)
			want[key{row["file"], tuple.String()}] += n
		}
	}
	// Where Zeek counts otherwise, and why.
	differs := map[string]string{
		"smtp.pcap":                "Zeek lists one packet a side; tcpdump has as many as we do",
		"ntp__misordered-ntp.pcap": "Zeek counts the reply, which stands first in the file, for the other side",
		"tunnels__gtp__gtp1_gn_normal_incl_fragmentation.pcap": "Zeek reassembles, and has no packet where only the first fragment is there",
		"chksums__localhost-bad-chksum.pcap":                   "Zeek drops packets with bad checksums",
		"vntag_vlan_sandwich_clean.pcap":                       "Zeek drops packets with bad checksums",
	}
	for k, n := range want {
		checked++
		if got := packets[k]; got != n && differs[k.file] == "" {
			t.Errorf("%s: %s: %d packets, Zeek has %d", k.file, k.tuple, got, n)
		}
	}
	if checked < 190 {
		t.Errorf("only %d directions of connections were checked", checked)
	}
}
