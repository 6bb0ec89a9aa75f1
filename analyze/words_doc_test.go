package analyze

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryWordIsExplained: each word of each enumeration has an entry, and no entry is of a word that is gone.
func TestEveryWordIsExplained(t *testing.T) {
	used := map[WordGroup][]string{
		GroupSource:    sourceWords(),
		GroupBasis:     basisWords(),
		GroupOutcome:   outcomeWords(),
		GroupStoppedAt: stopWords(),
		GroupDirection: wayWords(),
		GroupUnknown:   reasonCodes(t),
		GroupVerdict:   changeWords(),
		GroupReason:    constantsWith(t, "doubt"),
	}
	documented := map[WordGroup][]string{}
	for _, d := range Words() {
		if slices.Contains(documented[d.Group], d.Word) {
			t.Errorf("%s %s stands twice", d.Group, d.Word)
		}
		documented[d.Group] = append(documented[d.Group], d.Word)
		for _, s := range []string{d.Meaning, d.Do} {
			// A sentence, or one that ends in a command to paste: a full stop would be pasted with it.
			_, command, ends := strings.Cut(s, ": tcpdump ")
			if s != "" && !ends && !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") || ends && strings.HasSuffix(command, ".") {
				t.Errorf("%s %s: no sentence: %q", d.Group, d.Word, s)
			}
		}
		if d.Meaning == "" {
			t.Errorf("%s %s says nothing", d.Group, d.Word)
		}
	}
	for group, words := range used {
		for _, w := range words {
			if !slices.Contains(documented[group], w) {
				t.Errorf("%s %s is used, and words_doc.go does not explain it", group, w)
			}
		}
		for _, w := range documented[group] {
			if !slices.Contains(words, w) {
				t.Errorf("%s %s is explained, and nothing uses it", group, w)
			}
		}
	}
	if len(documented) != len(used) {
		t.Errorf("%d groups are documented, %d are used", len(documented), len(used))
	}
}

// reasonCodes reads from the source of this room every code that Unknown.Reason can have: the constants of type gap, and
// the literals that stand where a gap is asked for.
func reasonCodes(t *testing.T) []string {
	t.Helper()
	var codes []string
	literal := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			if s != "" && !slices.Contains(codes, s) { // the empty gap is none
				codes = append(codes, s)
			}
		}
	}
	isGap := func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && id.Name == "gap"
	}
	for _, f := range roomFiles(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec: // gapWhole gap = "capture-incomplete"
				if isGap(n.Type) {
					for _, v := range n.Values {
						literal(v)
					}
				}
			case *ast.CallExpr: // r.unknown("source", "role-other", ...) and gap("x")
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "unknown" && len(n.Args) == 4 {
					literal(n.Args[1])
				}
				if isGap(n.Fun) {
					literal(n.Args[0])
				}
			case *ast.KeyValueExpr: // Unknown{Reason: "x"}
				if id, ok := n.Key.(*ast.Ident); ok && id.Name == "Reason" {
					literal(n.Value)
				}
			case *ast.FuncDecl: // func (...) (gap, string) { return "x", "..." }
				if n.Type.Results == nil || n.Body == nil {
					return true
				}
				for at, field := range n.Type.Results.List {
					if !isGap(field.Type) {
						continue
					}
					ast.Inspect(n.Body, func(n ast.Node) bool {
						if ret, ok := n.(*ast.ReturnStmt); ok && at < len(ret.Results) {
							literal(ret.Results[at])
						}
						return true
					})
				}
			}
			return true
		})
	}
	for _, want := range []string{string(gapWhole), "role-other", "half-open"} { // the reading itself works
		if !slices.Contains(codes, want) {
			t.Fatalf("%q was not found in the source: %q", want, fmt.Sprint(codes))
		}
	}
	return codes
}

// roomFiles parses the source of this room, without its tests.
func roomFiles(t *testing.T) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	var out []*ast.File
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(files, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, f)
		}
	}
	return out
}

// constantsWith reads from the source of this room the values of the string constants whose name begins with a prefix.
func constantsWith(t *testing.T, prefix string) []string {
	t.Helper()
	var out []string
	for _, f := range roomFiles(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) || len(spec.Values) != 1 {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				s, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, s)
			}
			return true
		})
	}
	return out
}
