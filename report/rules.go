package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/analyze/cluster/netfilter"
	"github.com/srcproof/srcproof/capture/wire"
)

// Masquerade is a masquerade configuration as the agent that reads it understands it.
type Masquerade struct {
	Read     string   `json:"from"`     // what was read
	Agent    string   `json:"agent"`    // upstream, gke, azure, cilium
	Chain    Maybe    `json:"chain"`    // where the agent puts its rules; absent if it makes none of iptables
	Keep     []string `json:"keep"`     // ranges of destinations that keep the Pod's address, in the order of the rules
	Guessed  bool     `json:"guessed"`  // the agent is a guess: no flag and no manifest says which it is
	Rejected Maybe    `json:"rejected"` // why the agent refuses it; absent if it takes it
	Meaning  []string `json:"meaning"`  // in sentences
	Warnings []string `json:"warnings"` // where it may not mean what its author thinks
}

// Rule is one destination under configuration, installed rules and packets. Each of the three says kept, masqueraded, or
// undetermined; what was not given is absent.
type Rule struct {
	Client      string     `json:"source"`      // an address, a range, or words: "any Pod"
	Destination string     `json:"destination"` // an address, or a range
	Rest        bool       `json:"rest"`        // of the range, what stands in no rule of its own
	Proto       Maybe      `json:"proto"`
	Port        *uint16    `json:"port"`
	Intent      Maybe      `json:"intent"`
	Kernel      Maybe      `json:"kernel"`
	Wire        Maybe      `json:"wire"` // also mixed, not-sent. Absent where no request was captured
	New         Maybe      `json:"new"`  // by the configuration that is planned
	Change      Maybe      `json:"change"`
	Because     RuleReason `json:"because"`
	KernelPlace *RulePlace `json:"kernel_place"` // the rule that decides, or the first that could not be decided
	Settle      Maybe      `json:"settle"`       // what would make an undetermined kernel an answer
	Assumed     []string   `json:"assumed"`      // what the kernel's answer rests on beside the rules
	Requests    RuleCounts `json:"requests"`
	IDs         []string   `json:"request_ids"`
	Services    uint64     `json:"services"` // addresses within the range that rules name by themselves, and which are not meant: Services
	Dropped     bool       `json:"dropped"`  // by the rules the packet does not leave the node
	Agree       string     `json:"agree"`    // yes, no, unknown
}

// RuleReason is what each answer follows from.
type RuleReason struct {
	OfIntent Maybe `json:"intent"`
	OfKernel Maybe `json:"kernel"`
	OfNew    Maybe `json:"new"`
}

// RulePlace is a rule, or a chain as a whole.
type RulePlace struct {
	Backend string  `json:"backend"` // iptables-legacy, nf_tables; iptables is one of the two
	Table   string  `json:"table"`
	Chain   string  `json:"chain"`
	Rule    Maybe   `json:"rule"` // as the file has it; absent for the chain as a whole
	File    Maybe   `json:"file"`
	Line    *uint64 `json:"line"` // of the file, from 1
}

// RuleCounts are the captured requests of a destination by what they show.
type RuleCounts struct {
	PodSourced  uint64 `json:"pod_sourced"`
	NodeSNATed  uint64 `json:"node_snated"`
	OtherSNATed uint64 `json:"other_snated"`
	Older       uint64 `json:"older"`   // the connection may be older than the rules
	Unknown     uint64 `json:"unknown"` // the captures do not show the source
	NotSent     uint64 `json:"not_sent"`
}

// What a planned configuration changes (Rule.Change), and what stands before a warning of it.
const (
	plannedPrefix = "planned: "
	changeNone    = "none"
	changeNode    = "pod-to-node"
	changePod     = "node-to-pod"
)

func masqueradeOf(in *cluster.Intent) *Masquerade {
	if in == nil {
		return nil
	}
	m := &Masquerade{
		Read: in.From, Agent: in.Setup.Agent.String(), Chain: Maybe(in.Setup.Chain), Rejected: Maybe(in.Rejected),
		Guessed: in.Setup.Guessed, Keep: []string{}, Meaning: append([]string{}, in.Words...), Warnings: []string{},
	}
	for _, k := range in.Keep {
		m.Keep = append(m.Keep, k.Range.String())
	}
	for _, w := range in.Warnings {
		m.Warnings = append(m.Warnings, w.Text)
	}
	return m
}

func (b *builder) rules(r *Record) {
	if b.res.Rules == nil {
		return
	}
	r.Rules = make([]Rule, len(b.res.Rules))
	for i := range b.res.Rules {
		in := &b.res.Rules[i]
		out := &r.Rules[i]
		*out = Rule{
			Client: in.From, Destination: in.To.String(), Rest: in.Rest, Assumed: append([]string{}, in.Kernel.Assumed...),
			Requests: RuleCounts{uint64(in.Kept), uint64(in.NodeSNATed), uint64(in.Other), uint64(in.Older), uint64(in.Untold), uint64(in.NotSent)},
			IDs:      make([]string, 0, len(in.Requests)), Services: uint64(in.Services),
			Agree: map[analyze.State]string{analyze.Met: "yes", analyze.NotMet: "no", analyze.Inconclusive: "unknown"}[in.Agree],
		}
		if in.To.IsSingleIP() {
			out.Destination = in.To.Addr().String()
		}
		if in.Proto != wire.ProtoNone {
			out.Proto = Maybe(in.Proto.String())
		}
		if in.Port >= 0 {
			out.Port = b.port(uint16(in.Port), true)
		}
		for _, n := range in.Requests {
			out.IDs = append(out.IDs, b.id(r, n))
		}
		if in.HasIntent {
			out.Intent, out.Because.OfIntent = Maybe(in.Intent.Answer.String()), Maybe(in.Intent.Why)
		}
		if in.HasKernel {
			out.Kernel, out.Because.OfKernel, out.Settle = Maybe(in.Kernel.Answer.String()), Maybe(in.Kernel.Why), Maybe(in.Kernel.Settle)
			out.KernelPlace = placeOf(&in.Kernel.Place)
			out.Dropped = in.Kernel.Dropped
		}
		if len(in.Requests) > 0 {
			out.Wire = Maybe(in.Wire().String())
			switch {
			case in.Mixed():
				out.Wire = "mixed"
			case in.NotSent > 0 && in.NotSent == len(in.Requests):
				out.Wire = "not-sent"
			}
		}
		if in.HasNew {
			out.New, out.Because.OfNew = Maybe(in.New.Answer.String()), Maybe(in.New.Why)
			out.Change = changeOf(in.Now(), in.New.Answer)
		}
	}
}

func changeOf(now, next netfilter.Answer) Maybe {
	switch {
	case now == netfilter.Undetermined || next == netfilter.Undetermined:
		return ""
	case now == next:
		return changeNone
	case next == netfilter.Masqueraded:
		return changeNode
	}
	return changePod
}

func placeOf(p *netfilter.Place) *RulePlace {
	if p.Chain == "" {
		return nil
	}
	out := &RulePlace{Backend: p.Backend.String(), Table: p.Table, Chain: p.Chain, Rule: Maybe(p.Rule), File: Maybe(p.Input)}
	if p.Line > 0 {
		n := uint64(p.Line)
		out.Line = &n
	}
	return out
}

// WriteRulesText writes what configuration, rules and packets say of each destination for a person. Its only errors are w's.
func WriteRulesText(w io.Writer, rec *Record, opt TextOptions) error {
	p := newPage(w, opt)
	for i := range rec.Captures {
		p.capture(&rec.Captures[i])
	}
	p.masquerade("configuration", rec.Facts.Masquerade)
	p.masquerade("planned", rec.Facts.Planned)
	for _, w := range rec.Facts.Warnings {
		told := func(m *Masquerade) bool {
			return m != nil && slices.Contains(m.Warnings, strings.TrimPrefix(w.Text, plannedPrefix))
		}
		if !told(rec.Facts.Masquerade) && !told(rec.Facts.Planned) {
			p.labelled("facts", []string{w.Text})
		}
	}
	if len(rec.Rules) > 0 {
		p.blank()
		p.ruleRows(rec)
		p.changes(rec)
	} else if len(rec.Captures) > 0 {
		p.blank()
		p.nothingAsked(rec)
	}
	// What else the packets show is told by analyze.
	about := slices.DeleteFunc(slices.Clone(rec.Findings), func(f Finding) bool { return !analyze.IsAboutRules(f.Code) })
	if len(about) > 0 {
		p.findings(&Record{Findings: about})
	} else {
		p.agreement(rec)
	}
	if l := limits(rec); len(l) > 0 {
		p.blank()
		p.labelled("limits", l)
	}
	return p.w.Flush()
}

// AgainstIntent says where the configuration of after a change does not ask for what the change was made for.
func AgainstIntent(rec *Record) []string {
	want := map[Maybe]Maybe{"snat": "masqueraded", "keep": "kept"}[rec.Evidence.Intent]
	var out []string
	for i := range rec.Rules {
		r := &rec.Rules[i]
		if want == "" || r.Intent == "" || r.Intent == "undetermined" || r.Intent == want {
			continue
		}
		out = append(out, "The configuration that was given does not carry the change: by it, "+addressOf(r)+" is "+string(r.Intent)+" ("+string(r.Because.OfIntent)+").")
	}
	return out
}

func addressOf(r *Rule) string {
	if r.Port != nil {
		return addrPort(r.Destination, r.Port)
	}
	return r.Destination
}

// nothingAsked says why the captures give no row.
func (p *page) nothingAsked(rec *Record) {
	pods := uint64(0)
	for i := range rec.Requests {
		if r := &rec.Requests[i]; r.Client.Role == "pod" && r.Direction != "local" {
			pods++
		}
	}
	if pods > 0 {
		p.paragraph(0, "None of the "+count(pods, "captured request")+" of Pods is from where, or to what, was asked for.", p.strong)
		p.labelled("next", []string{"look at --from, --proto, --dport and --request; --to ADDRESS asks for a destination without a request"})
		return
	}
	p.paragraph(0, "No request of a Pod to another host is in the captures.", p.strong)
	p.labelled("next", []string{"--to ADDRESS asks for a destination without a request; --pod-cidr or --cluster says what the Pods' addresses are"})
}

// masquerade says what a configuration means.
func (p *page) masquerade(label string, m *Masquerade) {
	if m == nil {
		return
	}
	name := p.strong.Sprint(label)
	text := Escape(m.Read) + ", as the agent " + word(m.Agent) + " reads it"
	if m.Guessed {
		text += " (a guess: --agent tells)"
	}
	for i, line := range wrap(text, p.width-columns(label)-2, p.width-2) {
		if i == 0 {
			p.put(name + "  " + line)
		} else {
			p.put("  " + line)
		}
	}
	p.labelled("means", m.Meaning)
	p.labelled("but", m.Warnings)
}

// ruleRows writes the table, and below each row what its answers follow from.
func (p *page) ruleRows(rec *Record) {
	rules := slices.Clone(rec.Rules)
	// What disagrees first, then what is not known; else in the order in which it was asked.
	rank := func(r *Rule) int {
		switch {
		case r.Agree == "no":
			return 0
		case r.Agree == "unknown" && (r.Kernel == "undetermined" || r.Intent == "undetermined"):
			return 1
		}
		return 2
	}
	if len(rules) > maxRows {
		slices.SortStableFunc(rules, func(a, b Rule) int { return cmp.Compare(rank(&a), rank(&b)) })
	}
	shown := rules
	if !p.opt.ShowAll && len(shown) > maxRows {
		shown = shown[:maxRows]
	}
	head := []cell{{text: "DESTINATION"}}
	add := func(has bool, word string) {
		if has {
			head = append(head, cell{text: word})
		}
	}
	has := func(of func(*Rule) bool) bool {
		return slices.ContainsFunc(rules, func(r Rule) bool { return of(&r) })
	}
	withIntent, withKernel := has(func(r *Rule) bool { return r.Intent != "" }), has(func(r *Rule) bool { return r.Kernel != "" })
	withWire, withNew := len(rec.Captures) > 0, has(func(r *Rule) bool { return r.New != "" })
	add(withIntent, "INTENT")
	add(withKernel, "KERNEL")
	add(withWire, "WIRE")
	several := 0
	for _, b := range []bool{withIntent, withKernel, withWire} {
		if b {
			several++
		}
	}
	add(several > 1, "AGREE")
	add(withNew, "PLANNED")
	t := ruleTable{rules: rules, files: rulesFiles(rec), common: commonAssumptions(rules)}
	brief := len(shown) > maxReasons && !p.opt.Verbose
	if brief {
		head = append(head, cell{text: "BECAUSE"})
	}
	lines := [][]cell{head}
	for i := range shown {
		r := &shown[i]
		line := []cell{{text: p.destination(r)}}
		add := func(has bool, text string) {
			if has {
				line = append(line, cell{text: text})
			}
		}
		add(withIntent, intentWord(r.Intent, rec.Facts.Masquerade))
		kernel := answerWord(r.Kernel)
		if r.Dropped {
			kernel = "dropped"
		}
		add(withKernel, kernel)
		add(withWire, wireWord(r))
		add(several > 1, agreeWord(r))
		style := p.good
		switch r.Agree {
		case "no":
			style = p.bad
		case "unknown":
			style = p.odd
		}
		if several > 1 {
			line[len(line)-1].style = style
		}
		if withNew {
			line = append(line, cell{text: intentWord(r.New, rec.Facts.Planned)})
			if r.Change == changeNode || r.Change == changePod {
				line[len(line)-1].text += ", changes"
			}
		}
		if brief {
			line = append(line, cell{text: Escape(t.brief(r))})
		}
		lines = append(lines, line)
	}
	widths, sum := tableWidth(lines)
	if over := sum - p.width; over > 0 && brief {
		last := len(head) - 1
		room := max(widths[last]-over, len(head[last].text))
		over -= widths[last] - room
		widths[last] = room
		for _, line := range lines {
			line[last].text = cutEnd(line[last].text, room)
		}
		sum = p.width + over
	}
	if over := sum - p.width; over > 0 { // a long destination; the other words are short
		widths[0] -= over
		for _, line := range lines {
			line[0].text = cutMiddle(line[0].text, widths[0])
		}
	}
	for i, line := range lines {
		p.line(line, widths)
		if i > 0 && !brief {
			p.ruleReasons(&shown[i-1], &t)
		}
	}
	p.labelled("assumed", t.common)
	if brief {
		p.paragraph(2, "what each follows from, in full: --to with one of them, or -o json", nil)
	}
	if more := len(rules) - len(shown); more > 0 {
		p.paragraph(2, count(uint64(more), "more row")+" not shown: --all or -o json", nil)
	}
}

func (p *page) destination(r *Rule) string {
	s := r.Destination
	switch {
	case s == "0.0.0.0/0" || s == "::/0":
		s = map[bool]string{true: "other ", false: "all "}[r.Rest] + map[bool]string{true: "IPv6", false: "IPv4"}[s == "::/0"]
	case r.Rest:
		s = "rest of " + s
	}
	if r.Proto != "" {
		if r.Port != nil {
			s = addrPort(s, r.Port)
		}
		s += " " + string(r.Proto)
	}
	return shown(s, maxName)
}

func intentWord(answer Maybe, m *Masquerade) string {
	switch {
	case answer == "kept":
		return "keep"
	case answer == "masqueraded":
		return "masquerade"
	case answer == "":
		return "-"
	case m != nil && m.Rejected != "":
		return "refused"
	}
	return "cannot tell"
}

func answerWord(answer Maybe) string {
	switch answer {
	case "kept", "masqueraded":
		return string(answer)
	case "":
		return "-"
	}
	return "cannot tell"
}

func wireWord(r *Rule) string {
	c := &r.Requests
	switch {
	case r.Wire == "":
		return "-"
	case r.Wire == "mixed", r.Wire == "not-sent":
		return string(r.Wire)
	case c.PodSourced > 0:
		return "pod-sourced"
	case c.NodeSNATed > 0:
		return "node-snated"
	case c.OtherSNATed > 0:
		return "other-snated"
	}
	return "cannot tell"
}

func agreeWord(r *Rule) string {
	if r.Agree == "unknown" {
		return "-"
	}
	return word(r.Agree)
}

// maxReasons is of how many destinations text tells in full what the answers follow from.
const maxReasons = 6

// ruleTable is what the rows of a table share.
type ruleTable struct {
	rules  []Rule
	files  int      // listings of rules that were read
	common []string // assumed for all rows
}

func rulesFiles(rec *Record) (n int) {
	for _, g := range rec.Facts.Given {
		if g.Flag == "--iptables" || g.Flag == "--nft" || g.Flag == "--ipset" {
			n++
		}
	}
	return n
}

// commonAssumptions are those that more than one row rests on, or the only one.
func commonAssumptions(rules []Rule) (out []string) {
	rows := make(map[string]int)
	for i := range rules {
		for _, s := range rules[i].Assumed {
			if rows[s]++; rows[s] == min(2, len(rules)) {
				out = append(out, s)
			}
		}
	}
	return out
}

// appended is how iptables-save begins a rule. The line number tells the chain.
var appended = regexp.MustCompile(`(: )-A \S+ `)

// brief says in one line what a row follows from: the rule, else what of the configuration.
func (t *ruleTable) brief(r *Rule) string {
	if r.Kernel != "" {
		return appended.ReplaceAllString(t.kernelReason(r), "$1")
	}
	return string(cmp.Or(r.Because.OfIntent, r.Because.OfNew))
}

// ruleReasons writes below a row what its answers follow from.
func (p *page) ruleReasons(r *Rule, t *ruleTable) {
	line := func(label, text string) {
		if text == "" {
			return
		}
		head := blanks(4) + label + blanks(9-len(label))
		for i, s := range wrap(Escape(text), p.width-13, p.width-13) {
			if i > 0 {
				head = blanks(13)
			}
			p.put(head + s)
		}
	}
	if slices.ContainsFunc(t.rules, func(o Rule) bool { return o.Client != "any Pod" }) {
		line("from", r.Client)
	}
	line("intent", string(r.Because.OfIntent))
	line("kernel", t.kernelReason(r))
	if r.Kernel == "undetermined" {
		line("settle", string(r.Settle))
	}
	for _, s := range r.Assumed {
		if !slices.Contains(t.common, s) {
			line("assumed", s)
		}
	}
	line("wire", wireReason(r))
	switch {
	case r.New == "":
	case r.Change == changeNode:
		line("planned", "changes from the Pod's address to the node's: "+string(r.Because.OfNew))
	case r.Change == changePod:
		line("planned", "changes from the node's address to the Pod's: "+string(r.Because.OfNew))
	default:
		line("planned", string(r.Because.OfNew))
	}
	if r.Services > 0 {
		line("but", count(r.Services, "address")+" in it "+isAre(r.Services)+" not meant: rules name them by themselves, as they do Services (--to ADDRESS)")
	}
}

func isAre(n uint64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func (t *ruleTable) kernelReason(r *Rule) string {
	place := r.KernelPlace
	if place == nil {
		return string(r.Because.OfKernel)
	}
	var where []string
	if place.File != "" && t.files > 1 {
		where = append(where, shown(string(place.File), maxName))
	}
	if place.Line != nil {
		where = append(where, "line "+strconv.FormatUint(*place.Line, 10))
	}
	if place.Rule == "" {
		where = append(where, "table "+shown(place.Table, maxName), "chain "+shown(place.Chain, maxName))
		return strings.Join(where, ", ") + ": " + string(r.Because.OfKernel)
	}
	rule := netfilter.WithoutComments(string(place.Rule))
	if !strings.Contains(rule, place.Chain) {
		where = append(where, "chain "+shown(place.Chain, maxName))
	}
	s := strings.Join(where, ", ") + ": " + rule
	if r.Kernel == "undetermined" {
		s += " (" + string(r.Because.OfKernel) + ")"
	}
	return s
}

func wireReason(r *Rule) string {
	c := &r.Requests
	var parts []string
	add := func(n uint64, words string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(words, count(n, "request")))
		}
	}
	add(c.PodSourced, "%s left with the Pod's address")
	add(c.NodeSNATed, "%s left with the node's address")
	add(c.OtherSNATed, "%s left with another address")
	add(c.NotSent, "%s never left the node")
	add(c.Older, "%s not counted: the connection may be older than the rules")
	add(c.Unknown, "%s of which the captures do not show what left the node")
	return strings.Join(parts, "; ")
}

// changes says how much a planned configuration changes.
func (p *page) changes(rec *Record) {
	if rec.Facts.Planned == nil {
		return
	}
	var node, pod, untold uint64
	for i := range rec.Rules {
		switch rec.Rules[i].Change {
		case changeNode:
			node++
		case changePod:
			pod++
		case "":
			untold++
		}
	}
	var parts []string
	if node > 0 {
		parts = append(parts, count(node, "destination")+" would see the node's address in place of the Pod's")
	}
	if pod > 0 {
		parts = append(parts, count(pod, "destination")+" would see the Pod's address in place of the node's")
	}
	title := strings.Join(parts, ", ")
	if title == "" {
		title = "Nothing changes"
		if untold == uint64(len(rec.Rules)) {
			title = "What changes cannot be told"
		}
	}
	if untold > 0 && untold < uint64(len(rec.Rules)) {
		title += "; of " + count(untold, "destination") + " it cannot be told"
	}
	p.blank()
	p.paragraph(0, title+".", p.strong)
	switch {
	case untold > 0 && rec.Facts.Masquerade == nil && len(rec.Captures) == 0 && !slices.ContainsFunc(rec.Rules, func(r Rule) bool { return r.Kernel != "" }):
		p.labelled("next", []string{"say what is there now: --masq-config for the configuration in force, --iptables for the node's rules, or --capture"})
	case rec.Facts.Planned.Rejected != "":
		p.labelled("but", []string{"the agent refuses the planned configuration: " + string(rec.Facts.Planned.Rejected)})
	case node+pod > 0:
		p.labelled("note", []string{"connections that are open when the rules change keep the source that they have; the rules change up to 2 minutes after the ConfigMap does"})
	}
}

// agreement says that nothing disagrees, where nothing does.
func (p *page) agreement(rec *Record) {
	var yes, unknown uint64
	for i := range rec.Rules {
		switch rec.Rules[i].Agree {
		case "yes":
			yes++
		case "unknown":
			unknown++
		}
	}
	switch {
	case yes == 0:
		return
	case unknown > 0:
		p.blank()
		p.paragraph(0, "What is known agrees for "+count(yes, "destination")+" of "+number(yes+unknown)+".", p.strong)
	case yes == 1:
		p.blank()
		p.paragraph(0, "All that is known agrees.", p.strong)
	default:
		p.blank()
		p.paragraph(0, "All that is known agrees, for "+all(yes, "destination")+".", p.strong)
	}
}
