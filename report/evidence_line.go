package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The evidence line is for a field of a ticket: one line of plain text, in which no part can pass for another. Parts are
// parted by " | "; the verdict comes before what it speaks of, so that a field that cuts the line cannot cut it off.

// maxNotCovered is how much of what was not covered a line tells, in bytes.
const maxNotCovered = 240

// digestDigits is how much of a SHA-256 a line has; the other formats have all of it.
const digestDigits = 12

// evidenceLine writes the line; where there are several nodes, one for each and one that sums them up.
func evidenceLine(rec *Record) string {
	e := rec.Evidence
	var head, tail []string
	if e.ChangeID != "" {
		head = append(head, string(e.ChangeID))
	}
	if e.Redacted {
		tail = append(tail, "redacted: names and addresses are pseudonyms")
	}
	if e.ChangedAt.Known() {
		tail = append(tail, "changed at "+stamp(e.ChangedAt)+" (stated)")
	}
	if n := len(e.AlsoChanged); n > 0 {
		s := serverWords(&e.AlsoChanged[0])
		if n > 1 {
			s = count(uint64(n), "other destination") + ", like " + s
		}
		tail = append(tail, "also changed: "+s)
	} else if e.AlsoKept > 0 {
		tail = append(tail, "also changed: none of "+count(e.AlsoKept, "other destination"))
	}
	if e.Rules != nil {
		tail = append(tail, "nat rules: "+rulesWords(e.Rules))
	}
	if s := strings.Join(e.NotCovered, "; "); s != "" {
		if len(s) > maxNotCovered {
			s = count(uint64(len(e.NotCovered)), "point") + ", see -o text"
		}
		tail = append(tail, "not covered: "+s)
	}
	if e.Note != "" {
		tail = append(tail, "note: "+string(e.Note))
	}
	tail = append(tail, "srcproof "+rec.Tool.Version)
	var lines []string
	for i := range e.Nodes {
		n := &e.Nodes[i]
		parts := append([]string{}, head...)
		if len(e.Nodes) > 1 {
			parts = append(parts, "node "+string(n.Node))
		}
		parts = append(parts, verdictWords(n), requestWords(rec, n))
		parts = append(parts, momentParts(rec, n)...)
		if len(n.Reading) > 0 {
			parts = append(parts, "reads: "+strings.Join(n.Reading, "; "))
		}
		if len(e.Nodes) == 1 {
			parts = append(parts, tail...)
		} else {
			parts = append(parts, "what else changed and what is not covered: line of all "+number(uint64(len(e.Nodes)))+" nodes", "srcproof "+rec.Tool.Version)
		}
		lines = append(lines, joinParts(parts))
	}
	if len(e.Nodes) > 1 {
		parts := append([]string{}, head...)
		parts = append(parts, count(uint64(len(e.Nodes)), "node"), strings.Join(e.Reading, ", "), e.Request)
		lines = append(lines, joinParts(append(parts, tail...)))
	}
	return strings.Join(lines, "\n")
}

// joinParts makes one line. What parts it is spelled out inside a part.
func joinParts(parts []string) string {
	for i, s := range parts {
		parts[i] = strings.ReplaceAll(Escape(s), "|", `\x7c`)
	}
	return strings.Join(parts, " | ")
}

// verdictWords is a node's verdict, with the reason's code where it is inconclusive, and what the rollback gave back.
func verdictWords(n *EvidenceNode) string {
	s := n.Verdict
	if n.Reason != "" {
		s += " (" + string(n.Reason) + ")"
	}
	switch n.RolledBack {
	case "yes":
		s += ", rollback as before"
	case "no":
		s += ", rollback NOT as before"
	case "unknown":
		s += ", rollback not known"
	}
	return s
}

// requestWords names the request as it is before and after: the Pod by its name if it has one, else by its address.
func requestWords(rec *Record, n *EvidenceNode) string {
	pods := []string{}
	var server, proto string
	for _, m := range []*MomentState{n.Before, n.After} {
		r := requestOf(rec, m)
		if r == nil {
			continue
		}
		proto, server = r.Proto, endpointText(&r.Server)
		pod := r.Client.Addr
		if r.Client.Name != "" && r.Client.Role == "pod" {
			pod = string(r.Client.Name) + " " + pod
		}
		if r.Client.Role == "pod" {
			pod = "Pod " + pod
		}
		if len(pods) == 0 || pods[0] != pod {
			pods = append(pods, pod)
		}
	}
	if proto == "" {
		return rec.Evidence.Request
	}
	if len(pods) == 2 {
		pods[0], pods[1] = pods[0]+" before,", pods[1]+" after"
	}
	return proto + " " + strings.Join(pods, " ") + " > " + server
}

func endpointText(e *Endpoint) string { return addrPort(e.Addr, e.Port) }

// requestOf returns the request that a moment shows, nil if it shows none.
func requestOf(rec *Record, m *MomentState) *Request {
	if m == nil || m.Request == "" {
		return nil
	}
	for i := range rec.Requests {
		r := &rec.Requests[i]
		if r.ID == string(m.Request) && len(r.Legs) > 0 && slices.Contains(m.Captures, r.Legs[0].Capture) {
			return r
		}
	}
	return nil
}

func momentParts(rec *Record, n *EvidenceNode) []string {
	var parts []string
	for _, m := range []struct {
		word  string
		state *MomentState
	}{{"before", n.Before}, {"after", n.After}, {"rollback", n.Rollback}} {
		r := requestOf(rec, m.state)
		if r == nil {
			continue
		}
		s := m.word + " "
		if r.First.Known() {
			s += stamp(r.First) + " "
		}
		if r.Source != "not-sent" && r.Source != "local" {
			s += "source "
		}
		s += leftWords(r) + ", " + endedWords(r)
		if r.StoppedAt != "none" && r.StoppedAt != "unknown" {
			s += ", stopped at " + r.StoppedAt
		}
		if n := m.state.Counted; n > 1 {
			s += ", 1 of " + count(n, "request")
			if m.state.Otherwise == 0 {
				s += ", all alike"
			} else {
				s += ", " + number(m.state.Otherwise) + " otherwise"
			}
		}
		parts = append(parts, s+" "+citation(rec, m.state))
	}
	return parts
}

// stamp writes a time to the millisecond.
func stamp(t Time) string { return t.In(time.UTC).Format("2006-01-02T15:04:05.000Z") }

// leftWords says as what a request left the node.
func leftWords(r *Request) string {
	addr := r.Client.Addr
	if r.Egress != nil {
		addr = r.Egress.Addr
	}
	switch r.Source {
	case "pod-sourced":
		return addr + " (the Pod's own)"
	case "node-snated":
		node := "node"
		if r.Egress != nil && r.Egress.Name != "" {
			node += " " + string(r.Egress.Name)
		}
		return addr + " (" + node + ")"
	case "other-snated":
		return addr + " (neither the Pod's nor the node's)"
	case "not-sent":
		return "never left the node"
	case "local":
		return "delivered on the node"
	}
	return "not known"
}

// endedWords says how far a request got, in the protocol's words.
func endedWords(r *Request) string {
	s := r.Outcome
	switch {
	case r.Outcome == "handshake-completed" && r.Completed:
		s += ", " + bothWays(r)
	case r.Outcome == "handshake-completed":
		s += ", no data answered"
	case r.ICMP != nil:
		s += " (ICMP " + r.ICMP.Text + " from " + r.ICMP.From + ")"
	case r.Outcome == "request-only" && r.unanswered() && r.Proto == "tcp":
		s += ", " + number(r.RequestsSent) + " SYN, " + count(r.RepliesSeen, "reply")
	case r.Outcome == "request-only" && r.unanswered():
		s += ", " + number(r.RequestsSent) + " sent, " + number(r.RepliesSeen) + " back"
	case r.Outcome == "request-only":
		s += ", " + number(r.RequestsSent) + " sent, no reply captured (whether one came is not known)"
	default:
		s += ", " + number(r.RequestsSent) + " sent, " + number(r.RepliesSeen) + " back"
	}
	return s
}

// bothWays says what makes a connection complete: in Zeek's history D and d are data of the client and of the server, F and f
// the close of each.
func bothWays(r *Request) string {
	if h := string(r.History); strings.Contains(h, "F") && strings.Contains(h, "f") && !(strings.Contains(h, "D") && strings.Contains(h, "d")) {
		return "closed in order"
	}
	return "data both ways"
}

// citation names the frame that shows the source, and the file by its digest.
func citation(rec *Record, m *MomentState) string {
	if m.Frame == nil || m.Frame.Capture < 0 || m.Frame.Capture >= len(rec.Captures) {
		return "[no frame]"
	}
	c := &rec.Captures[m.Frame.Capture]
	digest := "sha256 " + string(c.SHA256[:min(digestDigits, len(c.SHA256))])
	if c.SHA256 == "" {
		digest = "no digest"
	}
	return "[" + captureFileName(c) + "#" + strconv.FormatUint(m.Frame.Frame, 10) + " " + digest + "]"
}

// captureFileName names a capture for a reader: LABEL=FILE as it was given, without folders.
func captureFileName(c *Capture) string {
	if c.Label != "" {
		return string(c.Label) + "=" + baseName(c.File)
	}
	return baseName(c.File)
}

// baseName is a file's name without its folders: the digest tells which file it is.
func baseName(file string) string { return file[strings.LastIndexAny(file, `/\`)+1:] }

func serverWords(c *AlsoChanged) string {
	return c.Proto + " " + endpointText(&c.Server) + " (" + classWords(c.Before) + " before, " + classWords(c.After) + " after)"
}

// classWords lists counts by source class, "3 pod-sourced".
func classWords(n map[string]uint64) string {
	var words []string
	for _, c := range []string{"pod-sourced", "node-snated", "other-snated"} {
		if n[c] > 0 {
			words = append(words, number(n[c])+" "+c)
		}
	}
	return cmp.Or(strings.Join(words, " and "), "none")
}

func rulesWords(r *RulesChange) string {
	switch {
	case r.Same:
		return "the same before and after"
	case r.Moved:
		return "the same, in another order"
	}
	return number(uint64(len(r.Removed))) + " removed, " + number(uint64(len(r.Added))) + " added"
}
