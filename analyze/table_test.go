package analyze

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
)

// A connection table tells sources exactly and outcomes as far as the kernel's state goes: never more.
func TestFromTable(t *testing.T) {
	const back = " src=203.0.113.9 dst=%s sport=8080 dport=40000 mark=0 use=1"
	for _, c := range []struct {
		line    string
		source  Source
		outcome Outcome
		way     Way
		egress  string
		unknown []string
	}{
		{"tcp 6 119 TIME_WAIT src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080" + fmt.Sprintf(back, "10.4.0.7") + " [ASSURED]", PodSourced, HandshakeCompleted, Outbound, "10.4.0.7", nil},
		{"tcp 6 119 ESTABLISHED src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080" + fmt.Sprintf(back, "10.10.0.3") + " [ASSURED]", NodeSNATed, HandshakeCompleted, Outbound, "10.10.0.3", nil},
		{"tcp 6 119 ESTABLISHED src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080" + fmt.Sprintf(back, "198.51.100.1") + " [ASSURED]", OtherSNATed, HandshakeCompleted, Outbound, "198.51.100.1", nil},
		{"tcp 6 119 SYN_SENT src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080 [UNREPLIED]" + fmt.Sprintf(back, "10.10.0.3"), NodeSNATed, RequestOnly, Outbound, "10.10.0.3", []string{"outcome", "stopped_at"}},
		{"tcp 6 59 SYN_RECV src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080" + fmt.Sprintf(back, "10.10.0.3"), NodeSNATed, HalfOpen, Outbound, "10.10.0.3", []string{"outcome", "stopped_at"}},
		{"tcp 6 9 CLOSE src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080" + fmt.Sprintf(back, "10.10.0.3"), NodeSNATed, OutcomeUnknown, Outbound, "10.10.0.3", []string{"outcome", "stopped_at"}},
		{"udp 17 9 src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080" + fmt.Sprintf(back, "10.4.0.7"), PodSourced, Answered, Outbound, "10.4.0.7", nil},
		{"icmp 1 9 src=10.4.0.7 dst=203.0.113.9 type=8 code=0 id=7 [UNREPLIED] src=203.0.113.9 dst=10.10.0.3 type=0 code=0 id=9", NodeSNATed, RequestOnly, Outbound, "10.10.0.3", []string{"outcome", "stopped_at"}},
		// Of a zone: another one may translate it.
		{"tcp 6 119 ESTABLISHED src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080" + fmt.Sprintf(back, "10.4.0.7") + " zone=11 [ASSURED]", SourceUnknown, HandshakeCompleted, Outbound, "", []string{"source"}},
		{"tcp 6 119 ESTABLISHED src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080" + fmt.Sprintf(back, "10.10.0.3") + " zone=11 [ASSURED]", NodeSNATed, HandshakeCompleted, Outbound, "10.10.0.3", nil},
		// What the node sends and what is delivered on it.
		{"tcp 6 119 ESTABLISHED src=10.10.0.3 dst=203.0.113.9 sport=40000 dport=8080" + fmt.Sprintf(back, "10.10.0.3"), NodeOwn, HandshakeCompleted, Outbound, "10.10.0.3", nil},
		{"tcp 6 119 ESTABLISHED src=192.0.2.7 dst=10.10.0.3 sport=40000 dport=22 src=10.10.0.3 dst=192.0.2.7 sport=22 dport=40000", SourceLocal, HandshakeCompleted, Inbound, "", nil},
		// Between Pods: it may never have left the node.
		{"tcp 6 119 ESTABLISHED src=10.4.0.7 dst=10.4.9.9 sport=40000 dport=22 src=10.4.9.9 dst=10.4.0.7 sport=22 dport=40000", SourceUnknown, HandshakeCompleted, WayUnknown, "", []string{"source"}},
		// A Service's address stands for a backend; it is the backend that decides where it goes.
		{"tcp 6 119 ESTABLISHED src=10.4.0.7 dst=10.96.0.9 sport=40000 dport=443 src=203.0.113.9 dst=10.10.0.3 sport=8443 dport=40000", NodeSNATed, HandshakeCompleted, Outbound, "10.10.0.3", nil},
		{"tcp 6 119 ESTABLISHED src=192.0.2.7 dst=203.0.113.9 sport=40000 dport=8080" + fmt.Sprintf(back, "192.0.2.7"), OtherSourced, HandshakeCompleted, Transit, "192.0.2.7", nil},
	} {
		facts, err := cluster.New(cluster.Input{
			PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.4.0.0/14")}, NodeIPs: []netip.Addr{netip.MustParseAddr("10.10.0.3")},
			Conntrack: []byte(c.line + "\n"), ConntrackName: "table.txt",
		})
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		res := FromTable(facts)
		if len(res.Requests) != 1 {
			t.Errorf("%s: %d requests", c.line, len(res.Requests))
			continue
		}
		r := &res.Requests[0]
		egress := ""
		if r.Egress != nil {
			egress = r.Egress.Addr.String()
		}
		var unknown []string
		for _, u := range r.Unknown {
			unknown = append(unknown, u.Field)
			if u.Settle == "" && u.Text == "" {
				t.Errorf("%s: %s is not known, and nothing says why", c.line, u.Field)
			}
		}
		slices.Sort(unknown)
		if r.Source != c.source || r.Outcome != c.outcome || r.Way != c.way || egress != c.egress || !slices.Equal(unknown, c.unknown) {
			t.Errorf("%s:\n  %s %s %s as %q, unknown %v\n  want %s %s %s as %q, unknown %v", c.line, r.Source, r.Outcome, r.Way, egress, unknown, c.source, c.outcome, c.way, c.egress, c.unknown)
		}
		if r.Source != SourceUnknown && r.Source != SourceLocal && r.Basis != BasisConntrack {
			t.Errorf("%s: basis %s", c.line, r.Basis)
		}
		// Whether data was answered no table tells, of one that is still open.
		if e, err := ParseExpect("completed=true"); err != nil || (r.Outcome == HandshakeCompleted || r.Outcome == Answered) && !r.Completed && e.Check(res, Selector{}).State != Inconclusive {
			t.Errorf("%s: completed=true is %+v, %v", c.line, e.Check(res, Selector{}), err)
		}
		if r.First != wire.NoTime || len(r.Legs) != 0 || r.counted() {
			t.Errorf("%s: packets or times that no table holds: %+v", c.line, r)
		}
	}
}

// Connections of protocols that are not judged are counted, and not left out without a word.
func TestFromTableOfOthers(t *testing.T) {
	const gre = "gre 47 179 src=10.0.0.1 dst=10.0.0.%d srckey=0x0 dstkey=0x1 src=10.0.0.%[1]d dst=10.0.0.1 srckey=0x1 dstkey=0x0 [ASSURED] mark=0 use=1\n"
	const esp = "unknown 50 599 src=10.0.0.1 dst=10.0.0.2 src=10.0.0.2 dst=10.0.0.1 mark=0 use=1\n"
	const udp = "udp 17 9 src=10.4.0.7 dst=203.0.113.9 sport=40000 dport=8080 src=203.0.113.9 dst=10.4.0.7 sport=8080 dport=40000 mark=0 use=1\n"
	facts, err := cluster.New(cluster.Input{Conntrack: []byte(fmt.Sprintf(gre, 2) + esp + udp + fmt.Sprintf(gre, 3)), ConntrackName: "table.txt"})
	if err != nil {
		t.Fatal(err)
	}
	res := FromTable(facts)
	if want := []string{"2 connections of protocol gre: not judged", "1 connection of protocol esp: not judged"}; len(res.Requests) != 1 || !slices.Equal(res.Captures[0].Notes, want) {
		t.Errorf("%d requests, notes %q, want %q", len(res.Requests), res.Captures[0].Notes, want)
	}
}
