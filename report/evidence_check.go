package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// CheckEvidence holds a recorded evidence against one that was made again from captures. It returns what differs, a sentence
// each; nothing if the captures still give the same record: the same files by their digests, and from them the same verdict.
func CheckEvidence(recorded, now *Record) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	a, b := recorded.Evidence, now.Evidence
	for at, name := range []string{"before", "after", "rollback"} {
		x, y := digestsOf(recorded, at), digestsOf(now, at)
		for _, d := range x {
			switch {
			case d.sha256 == "":
				say("%s: the record has no SHA-256 of %s, so which capture it speaks of cannot be checked", name, d.file)
			case !slices.ContainsFunc(y, func(e digest) bool { return e.sha256 == d.sha256 }):
				say("%s: no capture given has the SHA-256 that was recorded for %s, %s", name, d.file, d.sha256)
			}
		}
		for _, d := range y {
			if !slices.ContainsFunc(x, func(e digest) bool { return e.sha256 == d.sha256 }) {
				say("%s: %s, SHA-256 %s, is not in the record", name, d.file, d.sha256)
			}
		}
	}
	differ := func(what, x, y string) {
		if x != y {
			say("%s: recorded is %q, the captures give %q", what, x, y)
		}
	}
	differ("verdict", a.Verdict, b.Verdict)
	differ("request", a.Request, b.Request)
	differ("intent", string(a.Intent), string(b.Intent))
	differ("rollback equals before", string(a.RolledBack), string(b.RolledBack))
	if len(a.Nodes) != len(b.Nodes) {
		say("nodes: recorded are %d, the captures give %d", len(a.Nodes), len(b.Nodes))
	} else {
		for i := range a.Nodes {
			x, y := &a.Nodes[i], &b.Nodes[i]
			of := ""
			if len(a.Nodes) > 1 {
				of = "node " + string(x.Node) + ": "
				differ("node", string(x.Node), string(y.Node))
			}
			differ(of+"verdict", verdictWords(x), verdictWords(y))
			told := len(out)
			for at, m := range [][2]*MomentState{{x.Before, y.Before}, {x.After, y.After}, {x.Rollback, y.Rollback}} {
				out = append(out, momentDiffers(of+[]string{"before", "after", "rollback"}[at], m[0], m[1])...)
			}
			if told == len(out) { // else it follows from what differs
				differ(of+"observed", strings.Join(x.Observed, "; "), strings.Join(y.Observed, "; "))
			}
		}
	}
	if !sameJSON(a.AlsoChanged, b.AlsoChanged) {
		say("what else changed: recorded is %s; the captures give %s", alsoWords(a), alsoWords(b))
	}
	if a.Rules != nil && b.Rules != nil && (!slices.Equal(a.Rules.Removed, b.Rules.Removed) || !slices.Equal(a.Rules.Added, b.Rules.Added) || a.Rules.Same != b.Rules.Same) {
		say("nat rules: the difference is not the recorded one")
	}
	// The line is what people copy: it must follow from the record's fields. Another version may word it differently.
	if recorded.Tool.Version == now.Tool.Version && a.Line != evidenceLine(recorded) {
		say("the record's line does not follow from its fields: one of them was edited")
	}
	return out
}

// momentDiffers says in which fields one moment differs.
func momentDiffers(of string, x, y *MomentState) []string {
	switch {
	case x == nil && y == nil:
		return nil
	case x == nil || y == nil:
		return []string{of + ": the request is in one of the record and the captures only"}
	}
	var out []string
	for _, f := range []struct {
		name string
		a, b any
	}{
		{"client", x.Client, y.Client},
		{"source", x.Source, y.Source},
		{"source address", x.SourceAddr, y.SourceAddr},
		{"outcome", x.Outcome, y.Outcome},
		{"completed", x.Completed, y.Completed},
		{"stopped at", x.StoppedAt, y.StoppedAt},
		{"requests counted", x.Counted, y.Counted},
		{"older connections", x.LeftOut, y.LeftOut},
		{"frame", x.Frame, y.Frame},
	} {
		if !sameJSON(f.a, f.b) {
			a, _ := json.Marshal(f.a) // plain values: sameJSON has encoded them
			b, _ := json.Marshal(f.b)
			out = append(out, fmt.Sprintf("%s: %s: recorded is %.200s, the captures give %.200s", of, f.name, a, b))
		}
	}
	if out == nil && !sameJSON(x, y) {
		out = append(out, of+": the requests are not those of the record")
	}
	return out
}

func alsoWords(e *Evidence) string {
	var words []string
	for i := range e.AlsoChanged {
		words = append(words, serverWords(&e.AlsoChanged[i]))
	}
	if len(words) == 0 {
		return "nothing"
	}
	return firstOf(words, 3)
}

type digest struct{ file, sha256 string }

// digestsOf lists a moment's captures.
func digestsOf(rec *Record, at int) []digest {
	var out []digest
	for i := range rec.Captures {
		if c := &rec.Captures[i]; momentIndex(rec.Evidence, i) == at {
			out = append(out, digest{baseName(c.File), string(c.SHA256)})
		}
	}
	return out
}

// sameJSON tells whether two parts of a record are written alike.
func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}
