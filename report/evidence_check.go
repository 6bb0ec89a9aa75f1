package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxDiffers is how many differences a check tells.
const maxDiffers = 12

// CheckEvidence holds a recorded evidence against one that was made again from captures. It returns what differs, a sentence
// each; nothing if the captures still give the same record: the same files by their digests, and from them every field that
// follows from packets. The files may have other names and another order. The change's id and note, the rules where none are
// given now, and what made the record are not the captures' to tell.
func CheckEvidence(recorded, now *Record) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
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
	// The line is what people copy: it must follow from the record's fields. Another version may word it differently.
	if recorded.Tool.Version == now.Tool.Version && recorded.Evidence.Line != evidenceLine(recorded) {
		say("the record's line does not follow from its fields: one of them was edited")
	}
	d := differ{names: renamed(recorded, now)}
	d.walk("", checkable(recorded, recorded, now), checkable(now, recorded, now))
	slices.SortStableFunc(d.out, func(a, b string) int { return differRank(a) - differRank(b) })
	if len(d.out) > maxDiffers {
		d.out = append(d.out[:maxDiffers], fmt.Sprintf("and %d more", len(d.out)-maxDiffers))
	}
	return append(out, d.out...)
}

// differRank puts what a reader asks first in front.
func differRank(s string) int {
	for i, begin := range []string{"evidence.verdict", "evidence.rollback_equals", "evidence.request", "evidence.nodes", "evidence.", "requests"} {
		if strings.HasPrefix(s, begin) {
			return i
		}
	}
	return 6
}

// checkable is the part of a record that follows from the captures, as JSON in Go's form. Captures stand in the order that they
// have in recorded.
func checkable(rec, recorded, now *Record) map[string]any {
	order := make([]int, len(rec.Captures)) // of the record's captures, by the place that they take
	for i := range order {
		order[i] = i
	}
	if rec == now && len(rec.Captures) == len(recorded.Captures) {
		order = matching(recorded, now)
	}
	place := make([]int, len(order))
	for to, from := range order {
		place[from] = to
	}
	var tree map[string]any
	text, err := json.Marshal(rec)
	if err == nil {
		err = json.Unmarshal(text, &tree)
	}
	if err != nil {
		return nil
	}
	captures, _ := tree["captures"].([]any)
	sorted := make([]any, len(captures))
	for from, c := range captures {
		if m, ok := c.(map[string]any); ok {
			delete(m, "file")
			if hasTwin(&rec.Captures[from], recorded, now) { // else its digest has told
				sorted[place[from]] = m
			}
		}
	}
	evidence, _ := tree["evidence"].(map[string]any)
	for _, k := range []string{"change_id", "note", "line", "redacted"} {
		delete(evidence, k)
	}
	if recorded.Evidence.Rules == nil || now.Evidence.Rules == nil {
		delete(evidence, "rules_change")
		delete(evidence, "not_covered") // tells that there are none
	} else if rules, ok := evidence["rules_change"].(map[string]any); ok {
		for _, k := range []string{"before", "after"} {
			if f, ok := rules[k].(map[string]any); ok {
				delete(f, "file")
			}
		}
	}
	out := map[string]any{"captures": sorted, "requests": tree["requests"], "evidence": evidence}
	renumber(out["requests"], place)
	renumber(evidence, place)
	return out
}

// hasTwin tells whether a capture is in both records.
func hasTwin(c *Capture, records ...*Record) bool {
	return !slices.ContainsFunc(records, func(r *Record) bool {
		return !slices.ContainsFunc(r.Captures, func(d Capture) bool { return d.SHA256 == c.SHA256 && d.Side == c.Side })
	})
}

// renumber puts the places of captures where their numbers stand.
func renumber(v any, place []int) {
	at := func(n any) any {
		if f, ok := n.(float64); ok && f >= 0 && int(f) < len(place) {
			return float64(place[int(f)])
		}
		return n
	}
	switch v := v.(type) {
	case []any:
		for i := range v {
			renumber(v[i], place)
		}
	case map[string]any:
		for k := range v {
			switch list, isList := v[k].([]any); {
			case k == "capture":
				v[k] = at(v[k])
			case k == "captures" && isList:
				for i := range list {
					list[i] = at(list[i])
				}
				slices.SortFunc(list, func(a, b any) int {
					x, _ := a.(float64)
					y, _ := b.(float64)
					return int(x - y)
				})
			default:
				renumber(v[k], place)
			}
		}
	}
}

// matching gives for each recorded capture the one of now that is of the same moment, side and digest.
func matching(recorded, now *Record) []int {
	order := make([]int, 0, len(now.Captures))
	taken := make([]bool, len(now.Captures))
	for i := range recorded.Captures {
		r := &recorded.Captures[i]
		for k := range now.Captures {
			n := &now.Captures[k]
			if !taken[k] && n.SHA256 == r.SHA256 && n.Side == r.Side && momentIndex(now.Evidence, k) == momentIndex(recorded.Evidence, i) {
				order, taken[k] = append(order, k), true
				break
			}
		}
	}
	for k := range taken { // without a twin: told by its digest
		if !taken[k] {
			order = append(order, k)
		}
	}
	return order
}

// renamed maps names of the files of now to those of the record, for sentences that name them.
func renamed(recorded, now *Record) *strings.Replacer {
	var pairs []string
	for i := range now.Captures {
		for k := range recorded.Captures {
			if n, r := &now.Captures[i], &recorded.Captures[k]; n.SHA256 != "" && n.SHA256 == r.SHA256 && n.File != r.File {
				pairs = append(pairs, n.File, r.File)
				break
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// differ gathers in which fields two trees differ.
type differ struct {
	names *strings.Replacer
	out   []string
}

func (d *differ) walk(path string, a, b any) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := slices.Sorted(maps.Keys(x))
		for k := range y {
			if _, ok := x[k]; !ok {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range keys {
			d.walk(strings.TrimPrefix(path+"."+k, "."), x[k], y[k])
		}
		return
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			d.walk(fmt.Sprintf("%s[%d]", path, i), x[i], y[i])
		}
		return
	case string:
		if y, ok := b.(string); ok && (x == y || x == d.names.Replace(y)) {
			return
		}
	default:
		if a == b {
			return
		}
	}
	p, err := json.Marshal(a)
	q, err2 := json.Marshal(b)
	if err == nil && err2 == nil {
		same := 0
		for same < len(p) && same < len(q) && p[same] == q[same] {
			same++
		}
		cut := func(b []byte) string { // where they begin to differ
			s := string(b)
			if from := same - 20; from > 0 {
				s = "..." + s[from:]
			}
			return cutMiddle(s, 100)
		}
		d.out = append(d.out, fmt.Sprintf("%s: recorded is %s, the captures give %s", path, cut(p), cut(q)))
	}
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
