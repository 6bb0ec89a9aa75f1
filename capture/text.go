package capture

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/srcproof/srcproof/capture/tcpdump"
	"github.com/srcproof/srcproof/capture/wire"
)

// maxTextFile is the largest text that is read: it is held as a whole, and so are its packets. tcpdump prints about 150 bytes a packet.
const maxTextFile = 256 << 20

// textState is one run of tcpdump out of a text.
type textState struct {
	run  tcpdump.Capture
	next int // packet
	rest []tcpdump.Capture
}

func (t *textState) read(dst []wire.Packet) (int, error) {
	if t.next == len(t.run.Packets) {
		return 0, io.EOF
	}
	n := copy(dst, t.run.Packets[t.next:])
	t.next += n
	return n, nil
}

// openText reads what tcpdump printed, or says what else the text is.
func (r *Reader) openText() error {
	text, err := io.ReadAll(io.LimitReader(r.rest(), maxTextFile+1))
	switch {
	case err != nil:
		return r.headError(err)
	case len(text) > maxTextFile:
		return &FormatError{r.name, fmt.Sprintf("is a text of more than %d MiB", maxTextFile>>20), "give the file that tcpdump -w wrote"}
	}
	runs := tcpdump.Read(text, r.textOptions)
	if framesOf(runs) == 0 {
		counters := len(runs) > 0
		if runs, err = r.openLog(text); err != nil {
			return err
		}
		if framesOf(runs) == 0 {
			return r.notPackets(text, counters)
		}
	}
	if r.filter != nil {
		return &FormatError{r.name, "is text, to which --filter cannot be applied", "without --filter; --request picks requests"}
	}
	format := r.sum.Format
	for i := range runs {
		runs[i].Summary.Format += format
	}
	r.printed = &textState{run: runs[0], rest: runs[1:]}
	r.sum.Format = runs[0].Summary.Format
	return nil
}

func framesOf(runs []tcpdump.Capture) (n uint64) {
	for i := range runs {
		n += runs[i].Summary.Frames
	}
	return n
}

// openLog reads what tcpdump printed into a log that puts something before each line.
func (r *Reader) openLog(text []byte) ([]tcpdump.Capture, error) {
	plain, log := tcpdump.WithoutLog(text)
	switch {
	case log.Prefix == "":
		return nil, nil
	case log.Other != "":
		return nil, &FormatError{
			r.name, fmt.Sprintf("is a log of several sources: packets stand behind %q and behind %q, and may be of two hosts", log.Prefix, log.Other),
			"give the lines of one source at a time (grep, or the log of one Pod)",
		}
	}
	opt := r.textOptions
	opt.Log = log.Prefix
	return tcpdump.Read(plain, opt), nil
}

// Runs returns readers of the further runs of tcpdump in a text, nil of other captures. They need not be closed.
func (r *Reader) Runs() []*Reader {
	if r.printed == nil {
		return nil
	}
	var out []*Reader
	for _, run := range r.printed.rest {
		out = append(out, &Reader{name: r.name, printed: &textState{run: run}})
	}
	return out
}

// Host is the host that a text says it was printed on, "" if none is known.
func (r *Reader) Host() string {
	if r.printed == nil {
		return ""
	}
	return r.printed.run.Host
}

// notPackets says what a text without packets is. counters tells that tcpdump's counts are in it.
func (r *Reader) notPackets(text []byte, counters bool) error {
	const give = "give what tcpdump -n printed, or the file that tcpdump -w wrote"
	if counters {
		return &FormatError{r.name, "holds tcpdump's counters and no packets: a count proves nothing about sources", give}
	}
	head := string(text[:min(len(text), 64<<10)])
	if packetList.MatchString(head) {
		return &FormatError{r.name, "is Wireshark's or tshark's list of packets", "give the capture file itself, or what tcpdump -nr FILE prints of it"}
	}
	for _, f := range foreignTexts() {
		for _, marks := range f.marks {
			if containsAll(head, marks) {
				return &FormatError{r.name, f.what, f.hint}
			}
		}
	}
	return &FormatError{r.name, "is text, and no packet of tcpdump's is in it", give}
}

// packetList is a row of Wireshark's or tshark's: number, time, two addresses, protocol, length.
var packetList = regexp.MustCompile(`(?m)^\s*\d+\s+\d+[.:]\d[\d.:]*\s+[0-9a-fA-F.:]{3,}\s+(?:(?:→|->)\s+)?[0-9a-fA-F.:]{3,}\s+[A-Z][A-Za-z0-9./]*\s+\d+\s`)

type foreignText struct {
	marks [][]string // any of them, all parts on one line
	what  string
	hint  string
}

// foreignTexts are the texts that people take for captures.
func foreignTexts() []foreignText {
	const give = "give what tcpdump -n prints while the request is made"
	return []foreignText{
		{[][]string{{"martian source"}, {"martian destination"}, {"ll header: "}}, "is the kernel's log of martian packets, which it drops before they are judged", "give tcpdump -ni any, and look at rp_filter: sysctl -a | grep rp_filter"},
		{[][]string{{"TRACE: "}, {"trace id "}}, "is the kernel's trace of rules (TRACE), not packets of a capture", give + "; for the rules: srcproof rules --iptables FILE"},
		{[][]string{{"bad checksum. From"}, {"UDP: bad checksum"}, {"UDP: short packet"}, {"TCP: request_sock_TCP"}}, "is the kernel's log (dmesg), not packets of a capture", give},
		{[][]string{{" IN=", " OUT=", " SRC=", " DST="}}, "is a log of the firewall (iptables LOG), not packets of a capture", give + "; for the rules: srcproof rules --iptables FILE"},
		{[][]string{{"-> endpoint ", " identity "}, {"-> stack flow "}, {"xx drop ("}, {"-> network flow "}, {"-> overlay flow "}}, "is cilium monitor's output, not packets of a capture", give},
		{[][]string{{" to-endpoint ", "FORWARDED"}, {" to-stack ", "FORWARDED"}, {" to-network ", "FORWARDED"}}, "is Hubble's output, not packets of a capture", give},
		{[][]string{{"No.", "Time", "Source", "Destination", "Protocol"}, {" → ", " TCP "}, {" → ", " DNS "}, {" → ", " ICMP "}, {" → ", " UDP "}}, "is Wireshark's or tshark's list of packets", "give the capture file itself, or what tcpdump -nr FILE prints of it"},
		{[][]string{{"src=", "dst=", "sport=", "dport="}, {"src=", "dst=", "type=", "code=", "id="}}, "is a listing of the connection table (conntrack)", "give it as --conntrack FILE"},
		{[][]string{{"-A POSTROUTING"}, {"*nat"}, {"Chain POSTROUTING"}, {"table ip nat"}}, "is a listing of rules", "give it to: srcproof rules --iptables FILE --to ADDRESS"},
	}
}

// containsAll tells whether a line of a text has all parts.
func containsAll(text string, parts []string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}
