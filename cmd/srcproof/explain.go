package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/report"
)

func newExplainCommand(std *stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain a finding: what it means and what to do; without CODE, list them",
		Example: `  srcproof explain
  srcproof explain no-return-route`,
		Args: atMostOne("explain takes one code"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var words []string
			if len(args) == 0 {
				for _, doc := range analyze.Codes() {
					words = append(words, cobra.CompletionWithDesc(doc.Code, doc.Title))
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listCodes(std)
			}
			return explain(std, args[0])
		},
	}
}

func explain(std *stdio, code string) error {
	docs := analyze.Codes()
	i := slices.IndexFunc(docs, func(d analyze.CodeDoc) bool { return d.Code == code })
	if i < 0 {
		var codes []string
		for _, d := range docs {
			codes = append(codes, d.Code)
		}
		return unknownWord("finding code", code, codes, "srcproof explain lists them")
	}
	return report.WriteExplain(std.out, docs[i], std.textOptions())
}

func listCodes(std *stdio) error {
	docs := analyze.Codes()
	column := 0
	for _, d := range docs {
		column = max(column, len(d.Code)+2)
	}
	for _, d := range docs {
		lines := wrap(d.Title, std.width()-column)
		if _, err := fmt.Fprintf(std.out, "%-*s%s\n", column, d.Code, strings.Join(lines, "\n"+strings.Repeat(" ", column))); err != nil {
			return err
		}
	}
	return nil
}

// wrap breaks text between words into lines of at most width bytes; a longer word has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
