package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze"
	"github.com/srcproof/srcproof/report"
)

func newExplainCommand(std *stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [WORD]",
		Short: "Explain a finding or a word of the report; without WORD, list them",
		Long: `Explains a finding's code, a source, outcome, stopped_at, direction or source_basis, or a reason for
which one of them is not known: what it means and what to do. Without WORD, lists them all.`,
		Example: `  srcproof explain
  srcproof explain no-return-route
  srcproof explain node-snated`,
		Args: atMostOne("explain takes one word"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var words []string
			for _, doc := range analyze.Codes() {
				words = append(words, cobra.CompletionWithDesc(doc.Code, doc.Title))
			}
			seen := explained(analyze.Codes(), nil)
			for _, doc := range analyze.Words() {
				if !slices.Contains(seen, doc.Word) { // a word of several groups once
					seen = append(seen, doc.Word)
					words = append(words, cobra.CompletionWithDesc(doc.Word, doc.Meaning))
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return report.WriteExplainList(std.out, analyze.Codes(), analyze.Words(), std.textOptions())
			}
			return explain(std, args[0])
		},
	}
}

// explain writes everything that a word is: "one-direction" is an outcome, and a reason for which others are not known.
func explain(std *stdio, word string) error {
	codes, words := analyze.Codes(), analyze.Words()
	known := explained(codes, words)
	codes = slices.DeleteFunc(codes, func(d analyze.CodeDoc) bool { return d.Code != word })
	words = slices.DeleteFunc(words, func(d analyze.WordDoc) bool { return d.Word != word })
	if len(codes)+len(words) == 0 {
		return unknownWord("word", word, known, "srcproof explain lists them")
	}
	return report.WriteExplain(std.out, codes, words, std.textOptions())
}

// explained lists what can be explained.
func explained(codes []analyze.CodeDoc, words []analyze.WordDoc) []string {
	var names []string
	for _, d := range codes {
		names = append(names, d.Code)
	}
	for _, d := range words {
		names = append(names, d.Word)
	}
	return names
}
