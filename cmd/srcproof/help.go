package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupAnnotation marks a flag with the heading that it stands under in the help.
const groupAnnotation = "srcproof_group"

// newFlags returns a set for the flags of one group, which stay in the order in which they are added.
func newFlags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SortFlags = false
	return fs
}

// addFlags gives a command the flags of one group.
func addFlags(cmd *cobra.Command, heading string, fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{groupAnnotation: {heading}} })
	cmd.Flags().AddFlagSet(fs)
}

// usage writes what a command is called with. It stands in for cobra's template, which knows no groups of flags.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-12s%s\n", c.Name(), c.Short)
			}
		}
	}
	for _, g := range flagGroups(cmd) {
		fmt.Fprintf(&b, "\n%s:\n%s", g.heading, g.flags.FlagUsagesWrapped(maxWidth))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help tells more about a command.\n", cmd.CommandPath())
	}
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}

type flagGroup struct {
	heading string
	flags   *pflag.FlagSet
}

// flagGroups returns a command's flags by heading, both in the order in which they were added.
func flagGroups(cmd *cobra.Command) []*flagGroup {
	var groups []*flagGroup
	cmd.Flags().SortFlags = false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		heading := "Flags"
		if g := f.Annotations[groupAnnotation]; len(g) > 0 {
			heading = g[0]
		}
		var group *flagGroup
		for _, g := range groups {
			if g.heading == heading {
				group = g
			}
		}
		if group == nil {
			group = &flagGroup{heading, newFlags()}
			groups = append(groups, group)
		}
		group.flags.AddFlag(f)
	})
	return groups
}
