package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/wire"
	"github.com/srcproof/srcproof/report"
)

// evidenceFlags are the flags of srcproof evidence as they were typed.
type evidenceFlags struct {
	before, beforeFar, after, afterFar, rollback []string
	changedAt                                    once
	captures                                     captureFlags
	facts                                        factFlags
	request, intent                              once
	beforeRules, afterRules                      once
	changeID, note                               once
	redact                                       bool
	redactMap, check                             once
	format                                       once
	typedID, typedNote                           bool // they were typed, and not taken from a record
}

// evidenceOptions are what srcproof evidence works with: everything that was typed, checked.
type evidenceOptions struct {
	moments   []momentArgs // before, after, and the rollback if there is one
	captures  captureOptions
	facts     *cluster.Facts
	record    report.EvidenceOptions
	changedAt int64 // nanoseconds UTC; 0 if not given
	redact    bool
	redactMap string // "" for none
	check     *savedEvidence
	format    string
}

// momentArgs are the captures and saved results of one moment.
type momentArgs struct {
	captures [2][]captureArg // by wire.Side
	saved    []captureArg
}

func newEvidenceCommand(std *stdio) *cobra.Command {
	var flags evidenceFlags
	cmd := &cobra.Command{
		Use:   "evidence --before FILE --after FILE",
		Short: "Prove what a change did to a request: its source before and after, in one line",
		Long: `Holds one known request before a change against the same request after it, and writes the line
that a change record carries: the source address before and after, how far the request got, and the
frames and digests that show it.

FILE is what srcproof analyze takes, or the JSON that analyze or compare printed (-o json --digest),
so that packets need not leave the node. A flag names one FILE; LABEL=FILE names the node that it is
of. One capture that spans the change is named with --before alone, and --changed-at parts it.

Start each capture on the node, then make a new request (a ConfigMap takes about 2 minutes to reach
the rules):  tcpdump -ni any -w before.pcap 'host 10.20.0.10 or icmp'

The request is the same if protocol, destination and port are, and the client's Pod: by name if
--cluster knows it, else by the range that --request names. Only requests that begin while the
capture runs count: a connection that is open when the rules change keeps its old translation.

The verdict is changed-as-intended, changed, changed-not-completed, unchanged, changed-unexpectedly
or inconclusive; srcproof explain VERDICT says more. Keep the JSON (-o json) with the captures: that
is what --check reads.

Exit codes:
  0  changed-as-intended, or changed where no --intent is given
  1  changed-not-completed, unchanged, changed-unexpectedly; with --rollback: not as before; with
     --check: not the same record
  2  bad usage, or input that could not be read or is damaged (then the line says inconclusive)
  3  inconclusive: these captures cannot tell, or do not hold the request`,
		Example: `  srcproof evidence --before before.pcap --after after.pcap --pod-cidr 172.16.0.0/16 \
      --node-ip 10.10.0.3 --request 'tcp 172.16.0.0/16 > 10.20.0.10:80' --intent snat
  srcproof evidence --before a=a1.pcap --before b=b1.pcap --after a=a2.pcap --after b=b2.pcap \
      --cluster cluster.json --change-id CHG0012345 -o markdown
  srcproof evidence --before node.pcap --changed-at 2026-11-30T09:45:00Z --pod-cidr 172.16.0.0/16
  srcproof evidence --check record.json --before before.pcap --after after.pcap`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := noArguments(cmd, args); err != nil {
				return &usageError{what: err.Error(), hint: "each file has a flag of its own: --before FILE --after FILE"}
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt, err := flags.resolve()
			if err != nil {
				return err
			}
			return runEvidence(cmd.Context(), std, opt)
		},
	}
	flags.add(cmd)
	return cmd
}

func (f *evidenceFlags) add(cmd *cobra.Command) {
	fs := newFlags()
	fs.StringArrayVar(&f.before, "before", nil, "`FILE` captured on the node before the change; give the flag once for each file")
	fs.StringArrayVar(&f.after, "after", nil, "`FILE` captured on the node after it")
	fs.StringArrayVar(&f.beforeFar, "before-far", nil, "`FILE` captured at the far side before the change")
	fs.StringArrayVar(&f.afterFar, "after-far", nil, "`FILE` captured at the far side after it")
	fs.StringArrayVar(&f.rollback, "rollback", nil, "`FILE` captured on the node after the change was taken back")
	fs.Var(&f.changedAt, "changed-at", "`TIME` of the change, like 2026-11-30T09:45:00Z: what is older counts\nas before, the rest as after")
	addFlags(cmd, capturesHeading, fs)
	registerCompletion(cmd, "changed-at", cobra.NoFileCompletions)
	f.captures.add(cmd)
	f.facts.add(cmd)

	fs = newFlags()
	fs.Var(&f.request, "request", "the `REQUEST` to compare: 'tcp 172.16.0.0/16 > 10.20.0.10:80';\nnot needed if the captures hold only one of a Pod")
	f.intent.words = []string{"snat", "keep"} // neither is the default: no intention is known
	fs.Var(&f.intent, "intent", "`WHAT` the change was made for: snat (the node's address) or keep (the Pod's)")
	addFlags(cmd, "What is asked", fs)
	registerCompletion(cmd, "request", cobra.NoFileCompletions)
	registerCompletion(cmd, "intent", f.intent.complete)

	fs = newFlags()
	fs.Var(&f.beforeRules, "before-iptables", "`FILE` with what iptables-save printed on the node before the change")
	fs.Var(&f.afterRules, "after-iptables", "`FILE` with what it printed after it; the difference goes into the record")
	fs.Var(&f.changeID, "change-id", "`ID` of the change record, carried as it is")
	fs.Var(&f.note, "note", "`TEXT` for the record, carried as it is")
	fs.BoolVar(&f.redact, "redact", false, "put pseudonyms in place of addresses, ranges, and the names of\nPods, nodes and interfaces, in file names and --note too")
	fs.Var(&f.redactMap, "redact-map", "`FILE` to make, with what each pseudonym stands for; --check reads\nit, and without it needs --request and the facts")
	fs.Var(&f.check, "check", "`RECORD`, made with -o json: do these captures still give it?")
	addFlags(cmd, "The record", fs)
	for _, name := range []string{"change-id", "note"} {
		registerCompletion(cmd, name, cobra.NoFileCompletions)
	}

	fs = newFlags()
	f.format = oneOf("line", "markdown", "text", "json")
	fs.VarP(&f.format, "output", "o", "`FORMAT` of the record: line, markdown, text, or json")
	addFlags(cmd, "Output", fs)
	registerCompletion(cmd, "output", f.format.complete)
}

// resolve checks everything that was typed before the first capture is read, and reports all that is wrong. What a record that
// is checked says of itself stands in for what was not typed.
func (f *evidenceFlags) resolve() (opt evidenceOptions, err error) {
	f.typedID, f.typedNote = f.changeID.given, f.note.given
	if f.check.given {
		if opt.check, err = f.readRecord(); err != nil {
			return opt, err
		}
		if err := f.fillIn(opt.check); err != nil {
			return opt, err
		}
	}
	var errs [7]error
	opt.moments, errs[0] = f.moments()
	opt.captures, errs[1] = f.captures.resolve()
	opt.captures.digest = true
	if f.afterRules.given && f.beforeRules.given { // they are the rules that the requests of after the change met
		f.facts.after = []string{f.afterRules.value}
	}
	opt.facts, errs[2] = f.facts.resolve()
	if f.request.given {
		if opt.record.Which, errs[3] = analyze.ParseSelector(f.request.value); errs[3] != nil {
			errs[3] = &usageError{what: "--request: " + errs[3].Error()}
		}
	}
	opt.changedAt, errs[4] = parseChangedAt(f.changedAt)
	opt.record.Rules, errs[5] = readRules(f.beforeRules, f.afterRules)
	errs[6] = f.contradictions()
	switch f.intent.value {
	case "snat":
		opt.record.Intent = analyze.IntentSNAT
	case "keep":
		opt.record.Intent = analyze.IntentKeep
	}
	opt.record.ChangeID, opt.record.Note, opt.record.Facts = f.changeID.value, f.note.value, opt.facts
	if opt.changedAt != 0 {
		opt.record.ChangedAt = report.TimeOf(opt.changedAt)
	}
	opt.redact, opt.redactMap, opt.format = f.redact, f.redactMap.value, f.format.value
	return opt, errors.Join(errs[:]...)
}

// contradictions are flags that say nothing together.
func (f *evidenceFlags) contradictions() error {
	switch {
	case f.redactMap.given && !f.redact:
		return &usageError{what: "--redact-map without --redact: nothing is replaced", hint: "--redact --redact-map FILE"}
	case f.check.given && (f.typedID || f.typedNote):
		return &usageError{what: "--check with --change-id or --note: they are the record's, and no capture tells whether they are right"}
	case f.captures.farFilter.given && len(f.beforeFar)+len(f.afterFar) == 0 && !f.check.given:
		return &usageError{what: "--far-filter without a far capture", hint: "--before-far FILE and --after-far FILE name them"}
	case f.check.given && f.format.given && f.format.value != "line":
		return &usageError{what: "--check with -o " + f.format.value + ": a check says whether the record holds, and writes none"}
	}
	return nil
}

// moments reads the FILE of all moments.
func (f *evidenceFlags) moments() ([]momentArgs, error) {
	spans := f.changedAt.given && len(f.after)+len(f.afterFar) == 0
	switch {
	case len(f.before)+len(f.after)+len(f.rollback) == 0:
		return nil, &usageError{what: "no captures named", hint: "srcproof evidence --before FILE --after FILE, also with --check"}
	case len(f.before) == 0:
		return nil, &usageError{what: "no capture of before the change: --before FILE names it", hint: "without a before nothing shows that the change did it"}
	case len(f.after) == 0 && !spans:
		return nil, &usageError{what: "no capture of after the change: --after FILE names it", hint: "one capture that spans the change: --before FILE --changed-at TIME"}
	case spans && len(f.rollback) > 0:
		return nil, &usageError{what: "--rollback needs --after: of a capture that spans the change, --changed-at parts before from after only"}
	}
	lists := []struct {
		flag, farFlag string
		near, far     []string
	}{
		{"--before", "--before-far", f.before, f.beforeFar},
		{"--after", "--after-far", f.after, f.afterFar},
		{"--rollback", "", f.rollback, nil},
	}
	if spans {
		lists[1] = lists[0]
	}
	var out []momentArgs
	var errs []error
	seen := captureNames{}
	for i, l := range lists {
		if i == 2 && len(l.near) == 0 {
			continue
		}
		if f.changedAt.given {
			seen = captureNames{} // one capture may be both: it is parted
		}
		var m momentArgs
		near, err := seen.parse(l.flag, l.near)
		errs = append(errs, err)
		far, err := seen.parse(l.farFlag, l.far)
		errs = append(errs, err)
		for _, a := range near {
			switch saved, err := isSaved(a); {
			case err != nil:
				errs = append(errs, err)
			case saved && f.changedAt.given:
				errs = append(errs, &usageError{what: a.file + " is a saved result, and --changed-at parts captures only", hint: "give the captures, or saved results of before and after"})
			case saved && len(far) > 0:
				errs = append(errs, &usageError{
					what: a.file + " is a saved result, which is not held against a capture of the far side",
					hint: "save what srcproof compare prints of both: -o json --digest",
				})
			case saved:
				m.saved = append(m.saved, a)
			default:
				m.captures[wire.SideNear] = append(m.captures[wire.SideNear], a)
			}
		}
		for _, a := range far {
			saved, err := isSaved(a)
			if errs = append(errs, err); saved {
				errs = append(errs, &usageError{what: a.file + " is a saved result", hint: l.flag + " takes it, with both sides in it"})
			}
			m.captures[wire.SideFar] = append(m.captures[wire.SideFar], a)
		}
		if f.changedAt.given {
			for _, a := range append(near, far...) {
				if a.file == "-" {
					errs = append(errs, &usageError{what: "standard input cannot be parted by --changed-at: it is read once", hint: "write it to a file first"})
				}
			}
		}
		out = append(out, m)
	}
	if facts := f.factsTyped(); facts != "" && !slices.ContainsFunc(out, func(m momentArgs) bool { return len(m.captures[wire.SideNear])+len(m.captures[wire.SideFar]) > 0 }) {
		errs = append(errs, &usageError{what: facts + " would change nothing: a saved result was judged by the facts that it was made with", hint: "give them to srcproof analyze or compare, when the result is made"})
	}
	return out, errors.Join(errs...)
}

// factsTyped names a flag of facts that is given, "" if none is.
func (f *evidenceFlags) factsTyped() string {
	for flag, given := range map[string]bool{
		"--pod-cidr": len(f.facts.podCIDRs) > 0, "--service-cidr": len(f.facts.serviceCIDRs) > 0, "--node-cidr": len(f.facts.nodeCIDRs) > 0,
		"--node-ip": len(f.facts.nodeIPs) > 0, "--links": f.facts.links.given,
	} {
		if given {
			return flag
		}
	}
	return ""
}

// parseChangedAt reads an RFC 3339 time, in nanoseconds since 1970.
func parseChangedAt(text once) (int64, error) {
	if !text.given {
		return 0, nil
	}
	t, err := time.Parse(time.RFC3339, strings.TrimSpace(text.value))
	if err != nil || !time.Unix(0, t.UnixNano()).Equal(t) || t.UnixNano() == 0 {
		return 0, &usageError{what: "--changed-at " + text.value + ": not a time with date and zone", hint: "write it like 2026-11-30T09:45:00Z, or with +01:00 in place of Z"}
	}
	return t.UnixNano(), nil
}

// maxRulesFile bounds a dump of rules. kube-proxy makes about 1 KiB a Service.
const maxRulesFile = 64 << 20

// readRules compares the nat rules of two dumps; nil if none are given.
func readRules(before, after once) (*report.RulesChange, error) {
	switch {
	case !before.given && !after.given:
		return nil, nil
	case !after.given:
		return nil, &usageError{what: "--before-iptables without --after-iptables", hint: "a difference needs both"}
	case !before.given:
		return nil, &usageError{what: "--after-iptables without --before-iptables", hint: "a difference needs both"}
	}
	var rules [2]cluster.NATRules
	var files [2]report.RulesFile
	var errs [2]error
	for i, f := range []struct {
		flag string
		path string
	}{{"--before-iptables", before.value}, {"--after-iptables", after.value}} {
		text, err := readFacts(f.flag, f.path, maxRulesFile)
		if err != nil {
			errs[i] = err
			continue
		}
		if rules[i], err = cluster.ReadNATRules(text); err != nil {
			errs[i] = fmt.Errorf("%s %s: %w", f.flag, f.path, err)
		}
		files[i] = report.RulesFile{File: f.path, SHA256: fmt.Sprintf("%x", sha256.Sum256(text))}
		if at := rules[i].Saved; !at.IsZero() {
			files[i].Saved = report.Maybe(at.Format(time.DateTime))
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if b, a := rules[0].Saved, rules[1].Saved; !b.IsZero() && !a.IsZero() && a.Before(b) {
		return nil, &usageError{
			what: fmt.Sprintf("%s was made at %s, before %s, which is named as of before the change", after.value, a.Format(time.TimeOnly), before.value),
			hint: "are --before-iptables and --after-iptables exchanged?",
		}
	}
	d := rules[0].Diff(rules[1])
	return &report.RulesChange{
		Before: files[0], After: files[1], Same: d.Same(), Moved: d.Moved,
		Removed: append([]string{}, d.Removed...), Added: append([]string{}, d.Added...),
	}, nil
}

// runEvidence needs every file: a change is not proved by those that could be read.
func runEvidence(ctx context.Context, std *stdio, opt evidenceOptions) error {
	tool := report.Tool{Version: versionText(), Args: std.args}
	moments := make([]report.Moment, len(opt.moments))
	var damage []error
	for i := range opt.moments {
		o := opt.captures
		if opt.changedAt != 0 {
			if i == int(analyze.Before) {
				o.part.until = opt.changedAt
			} else {
				o.part.from = opt.changedAt
			}
		}
		m, damaged, err := opt.moments[i].read(ctx, std, analyze.Moment(i), opt.facts, o, tool)
		if err == nil {
			err = o.part.nothingIn(m)
		}
		if err != nil {
			return errors.Join(append(damage, damaged, err)...)
		}
		m.Split = opt.changedAt != 0
		moments[i], damage = m, append(damage, damaged)
	}
	rec, state, err := report.NewEvidence(moments, opt.record, tool)
	if err != nil {
		return errors.Join(append(damage, evidenceError(std, err))...)
	}
	if opt.redact || opt.check != nil && opt.check.record.Evidence.Redacted {
		original := report.Redact(rec)
		if opt.check == nil && (rec.Evidence.Note != "" || rec.Evidence.ChangeID != "") {
			std.say("only addresses and known names are replaced in --change-id and --note: read them before they go out")
		}
		if opt.redactMap != "" && opt.check == nil {
			if err := writeRedactMap(opt.redactMap, original); err != nil {
				return err
			}
		}
	}
	if opt.check != nil {
		return errors.Join(append(damage, opt.check.hold(std, rec))...)
	}
	return errors.Join(append(damage, writeEvidence(std, rec, opt.format), verdictOf(rec, state, opt.format))...)
}

// verdictOf is what is wrong with a change, nil if nothing is. The line has no room for what to do: that stands here.
func verdictOf(rec *report.Record, state analyze.State, format string) error {
	if state == analyze.Met {
		return nil
	}
	e := rec.Evidence
	v := &answerError{state: state, text: strings.Join(e.Reading, "; ")}
	if len(e.Nodes) == 1 {
		v.text = e.Verdict + ": " + v.text
	}
	if e.RolledBack == "no" {
		v.text = "the rollback is not as before; " + v.text
	}
	if format != "line" {
		return v
	}
	for _, s := range report.AgainstIntent(rec) {
		v.text += "\n" + s
	}
	for _, f := range rec.Findings {
		v.text += "\n" + f.Title
		for _, s := range slices.Concat(f.Observed, f.Next) {
			v.text += "\n" + s
		}
	}
	for i := range e.Nodes {
		n := &e.Nodes[i]
		for _, s := range n.Next {
			if len(e.Nodes) > 1 && !strings.HasPrefix(s, " ") {
				s = "node " + string(n.Node) + ": " + s
			}
			v.text += "\n" + s
		}
	}
	return v
}

// read reads what one moment's captures hold, and what was saved of it. damaged is what is wrong with captures of which a part
// could be read.
func (m *momentArgs) read(ctx context.Context, std *stdio, at analyze.Moment, facts *cluster.Facts, opt captureOptions, tool report.Tool) (out report.Moment, damaged, err error) {
	if len(m.captures[wire.SideNear])+len(m.captures[wire.SideFar]) > 0 {
		set := openCaptures(ctx, std, m.captures, opt)
		defer set.Close()
		if err := errors.Join(ctx.Err(), set.err()); err != nil {
			return out, nil, err
		}
		res, err := analyze.Run(set.inputs(), facts, analyze.Options{OtherRules: at != analyze.After})
		if err := errors.Join(ctx.Err(), set.refused(), err); err != nil {
			return out, nil, err
		}
		set.finish(res.Captures)
		damaged = set.err()
		out.Records = append(out.Records, report.New(res, tool))
	}
	for _, a := range m.saved {
		rec, err := readSaved(a)
		if err != nil {
			return out, damaged, err
		}
		out.Records = append(out.Records, rec)
	}
	return out, damaged, nil
}

// nothingIn says that --changed-at lies outside of a moment's captures: no packet of any is on the part's side.
func (p part) nothingIn(m report.Moment) error {
	if p.isAll() {
		return nil
	}
	for _, rec := range m.Records {
		for i := range rec.Captures {
			if rec.Captures[i].Window.From.Known() {
				return nil
			}
		}
	}
	side, when := "before", p.until
	if p.from != 0 {
		side, when = "after", p.from
	}
	var names []string
	for _, rec := range m.Records {
		for i := range rec.Captures {
			names = append(names, rec.Captures[i].File)
		}
	}
	return &usageError{
		what: fmt.Sprintf("no packet of %s lies %s --changed-at %s", strings.Join(names, ", "), side, time.Unix(0, when).UTC().Format(time.RFC3339Nano)),
		hint: "is the time in the zone that it says? Z is UTC; " + program + " analyze shows when a capture ran",
	}
}

func writeEvidence(std *stdio, rec *report.Record, format string) error {
	switch format {
	case "json":
		return report.WriteJSON(std.out, rec)
	case "markdown":
		return report.WriteEvidenceMarkdown(std.out, rec)
	case "text":
		return report.WriteEvidenceText(std.out, rec, std.textOptions())
	}
	return report.WriteEvidenceLine(std.out, rec)
}

// evidenceError turns what the evidence says of its captures into what is wrong with the command line.
func evidenceError(std *stdio, err error) error {
	if none, ok := errors.AsType[*analyze.NoRequestError](err); ok {
		v := &answerError{state: analyze.Inconclusive, text: "inconclusive: " + none.What}
		for i := range none.Nearest {
			r := &none.Nearest[i]
			if i == 0 {
				v.text += "\nit holds:"
			}
			v.text += fmt.Sprintf("\n%s (%s, %s)", r.Tuple, r.Source, r.Outcome)
		}
		return v
	}
	if refused, ok := errors.AsType[*analyze.RefusedError](err); ok {
		const most = 20
		u := &usageError{what: refused.What, hint: refused.Hint}
		for i, c := range refused.Candidates {
			if i == most {
				u.what += fmt.Sprintf("\nand %d more", len(refused.Candidates)-most)
				break
			}
			u.what += "\n--request '" + c + "'"
		}
		return u
	}
	return err
}

// readRecord reads the record that --check names, and the map of its pseudonyms.
func (f *evidenceFlags) readRecord() (*savedEvidence, error) {
	rec, _, err := readRecordFile("--check", f.check.value)
	if err != nil {
		return nil, err
	}
	if rec.Evidence == nil {
		return nil, &usageError{what: f.check.value + " holds no evidence", hint: "--check takes what srcproof evidence -o json wrote; --before and --after take other results"}
	}
	saved := &savedEvidence{file: f.check.value, record: rec}
	if f.redactMap.given {
		if saved.original, err = readRedactMap(f.redactMap.value); err != nil {
			return nil, err
		}
		f.redactMap = once{}
	}
	if rec.Evidence.Redacted && saved.original == nil && !f.request.given {
		return nil, &usageError{
			what: f.check.value + " is redacted: --redact-map FILE tells what its pseudonyms stand for",
			hint: "or give what they hide: --request and the facts (--pod-cidr, --node-ip)",
		}
	}
	return saved, nil
}

// fillIn takes from the record what was not typed: what it was asked, the filters that were stated, and facts that are values. A
// file that it was made with must be named again: no path is taken from a file.
func (f *evidenceFlags) fillIn(s *savedEvidence) error {
	e, args := s.record.Evidence, s.record.Tool.Args
	fill := func(to *once, value string, given bool) {
		if !to.given && given {
			to.value, to.given = s.plain(value), true
		}
	}
	fill(&f.changeID, string(e.ChangeID), e.ChangeID != "")
	fill(&f.note, string(e.Note), e.Note != "")
	fill(&f.intent, string(e.Intent), e.Intent != "")
	fill(&f.request, e.Request, !e.Chosen)
	if e.ChangedAt.Known() {
		fill(&f.changedAt, e.ChangedAt.In(time.UTC).Format(time.RFC3339Nano), true)
	}
	for flag, to := range map[string]*once{
		"--filter": &f.captures.filter, "--near-filter": &f.captures.nearFilter, "--far-filter": &f.captures.farFilter,
		"--date": &f.captures.date, "--tz": &f.captures.zone, "--agent": &f.facts.agent,
	} {
		value, given := typed(args, flag)
		fill(to, value, given)
	}
	f.facts.noDefaultSNAT = f.facts.noDefaultSNAT || slices.Contains(args, "--disable-default-snat")
	for flag, named := range map[string]bool{
		"--cluster": f.facts.cluster.given, "--links": f.facts.links.given, "--conntrack": f.facts.conntrack.given,
		"--masq-config": f.facts.masqConfig.given, "--agent-manifest": f.facts.agentManifest.given,
		"--iptables": len(f.facts.iptables) > 0, "--nft": len(f.facts.nft) > 0, "--ipset": len(f.facts.ipset) > 0,
	} {
		if _, given := typed(args, flag); given && !named {
			return &usageError{what: s.file + " was made with " + flag + " FILE: name that file again", hint: "the record holds what followed from it, and not the file"}
		}
	}
	if len(f.facts.podCIDRs)+len(f.facts.serviceCIDRs)+len(f.facts.nodeCIDRs)+len(f.facts.nodeIPs) > 0 {
		return nil
	}
	for flag, list := range map[string]*[]string{
		"--pod-cidr": &f.facts.podCIDRs, "--service-cidr": &f.facts.serviceCIDRs, "--node-cidr": &f.facts.nodeCIDRs, "--node-ip": &f.facts.nodeIPs,
	} {
		if _, given := typed(args, flag); !given {
			continue // it is a saved result's: there it is known already
		}
		for _, g := range s.record.Facts.Given {
			if g.Flag == flag {
				*list = append(*list, s.plain(g.Value))
			}
		}
	}
	return nil
}

// typed returns the value that a recorded command line gave a flag last.
func typed(args []string, flag string) (value string, given bool) {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, flag+"="); ok {
			value, given = v, true
		} else if a == flag && i+1 < len(args) {
			value, given = args[i+1], true
		}
	}
	return value, given
}

// savedEvidence is the record that --check holds captures against.
type savedEvidence struct {
	file     string
	record   *report.Record
	original map[string]string // of its pseudonyms; nil if not given
}

func (s *savedEvidence) plain(text string) string { return report.Unredact(text, s.original) }

// hold says whether the captures still give the record.
func (s *savedEvidence) hold(std *stdio, now *report.Record) error {
	differ := report.CheckEvidence(s.record, now)
	if len(differ) == 0 {
		also := ""
		for i := range now.Captures {
			if slices.ContainsFunc(now.Captures[i].Notes, func(n string) bool { return strings.HasPrefix(n, savedNote) }) {
				also = "; not checked: what saved results say of their captures, whose packets were not read"
			}
		}
		if s.record.Evidence.Rules != nil && now.Evidence.Rules == nil {
			also += "; not checked: the nat rules (--before-iptables, --after-iptables)"
		}
		_, err := fmt.Fprintf(std.out, "the captures still give this record: %s, %d captures of the same SHA-256; change id and note are nothing that captures tell%s\n",
			report.Escape(now.Evidence.Verdict), len(now.Captures), also)
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "not the same record as %s:\n", report.Escape(s.file))
	for _, d := range differ {
		b.WriteString("  " + report.Escape(d) + "\n")
	}
	_, err := io.WriteString(std.out, b.String())
	return errors.Join(err, &answerError{state: analyze.NotMet, text: s.file + " does not hold: what differs stands above"})
}
