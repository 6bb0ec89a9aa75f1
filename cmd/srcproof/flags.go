package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A once is the value of a flag that may be given one time. Of two values neither is obviously the one that was meant,
// and a verdict must not depend on which of them came last.
type once struct {
	value string
	given bool
	words []string // the values that it may have; any if nil
}

// String returns the value, for help.
func (o *once) String() string { return o.value }

// Type returns the word that help shows for the value where the usage names none.
func (o *once) Type() string { return "word" }

// Set is called once per occurrence of the flag.
func (o *once) Set(s string) error {
	if o.given {
		return fmt.Errorf("already given as %q; give it once", o.value)
	}
	if o.words != nil && !slices.Contains(o.words, s) {
		return fmt.Errorf("must be %s", orList(o.words))
	}
	o.value, o.given = s, true
	return nil
}

// oneOf is a once with its possible values; the first is the default.
func oneOf(words ...string) once { return once{value: words[0], words: words} }

// complete is the flag's completion.
func (o *once) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return o.words, cobra.ShellCompDirectiveNoFileComp
}

// orList joins words to "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
