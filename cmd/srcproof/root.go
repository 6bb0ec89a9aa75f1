package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newRootCommand(std *stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   program + " COMMAND",
		Short: "Which source address did this request carry when it left the node, and did it complete?",
		Long: `srcproof reads packet captures and tells, per request, which source address left the node
(the Pod's own, or the node's after masquerading) and how far the request got. With a capture of the
far side, too, it tells where the packets stop; with captures of before and after a change, what the
change did.`,
		Example: `  tcpdump -ni any -w node.pcap 'host 10.20.0.10 or icmp'   on the node, while the request is made
  srcproof analyze node.pcap --pod-cidr 172.16.0.0/16 --node-ip 10.10.0.3
  srcproof compare --near node.pcap --far far.pcap --pod-cidr 172.16.0.0/16 --node-ip 10.10.0.3
  srcproof evidence --before before.pcap --after after.pcap --pod-cidr 172.16.0.0/16`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownWord("command", args[0], commandNames(cmd), program+" --help lists the commands")
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(std.err) // nobody asked for help: it is no data
			if err := cmd.Help(); err != nil {
				return err
			}
			return &usageError{what: "no command given"}
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(usage)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		newAnalyzeCommand(std),
		newCaptureCommand(std),
		newCompareCommand(std),
		newEvidenceCommand(std),
		newRulesCommand(std),
		newExplainCommand(std),
		newVersionCommand(std),
		newCompletionCommand(std),
	)
	root.SetHelpCommand(newHelpCommand())
	dress(root)
	return root
}

// newHelpCommand is cobra's help command, but a topic that does not exist is an error.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		Args:  atMostOne("help takes one command"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return commandNames(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, c := range cmd.Root().Commands() {
				if len(args) == 1 && c.Name() == args[0] {
					return c.Help()
				}
			}
			if len(args) == 1 {
				return unknownWord("command", args[0], commandNames(cmd.Root()), program+" --help lists the commands")
			}
			return cmd.Root().Help()
		},
	}
}

// dress does for all commands what cobra would do in its own words: the help flag, and no "[flags]" behind the usage.
func dress(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	cmd.Flags().BoolP("help", "h", false, "print this")
	for _, c := range cmd.Commands() {
		dress(c)
	}
}

func commandNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// noArguments refuses stray arguments: a word that does nothing is a typing mistake.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{what: fmt.Sprintf("%s takes no arguments, and %q is one", cmd.Name(), args[0])}
}

func atMostOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return nil
		}
		return &usageError{what: fmt.Sprintf("%s, and %q is one more", what, args[1])}
	}
}

// flagError says what cobra and pflag say of a wrong flag in this program's words.
func flagError(cmd *cobra.Command, err error) error {
	lists := cmd.CommandPath() + " --help lists the flags"
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := missing.GetSpecifiedName()
		if missing.GetSpecifiedShortnames() != "" {
			name = "-" + name
		} else {
			name = "--" + name
		}
		return unknownWord("flag", name, longFlags(cmd), cmp.Or(habit(cmd, name), lists))
	}
	if empty, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return &usageError{what: flagName(empty.GetFlag()) + " needs a value", hint: lists}
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return &usageError{what: fmt.Sprintf("%s %s: %v", flagName(invalid.GetFlag()), invalid.GetValue(), invalid.Unwrap())}
	}
	return &usageError{what: err.Error(), hint: lists}
}

// habit is the hint for a flag that fingers know from tcpdump or from other tools, "" for others.
func habit(cmd *cobra.Command, flag string) string {
	switch flag {
	case "-r":
		return "files are named without a flag: " + cmd.CommandPath() + " FILE"
	case "-n":
		return "addresses and ports are always printed as numbers"
	case "--version", "-V":
		return program + " version prints it"
	}
	return ""
}

// unknownWord is the error for a word that is none of those known; if one is near, it is the hint.
func unknownWord(kind, word string, known []string, hint string) error {
	if near, ok := nearest(word, known); ok {
		hint = "did you mean " + near + "?"
	}
	return &usageError{what: fmt.Sprintf("unknown %s %q", kind, word), hint: hint}
}

func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

func longFlags(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

// nearest returns the known word that a person most likely meant: one that word begins, or that differs in a third of
// its letters at most.
func nearest(word string, known []string) (string, bool) {
	if len(word) > 64 { // no slip of the fingers
		return "", false
	}
	score := func(k string) int {
		if len(word) >= 3 && strings.HasPrefix(k, word) {
			return 0
		}
		return editDistance(word, k)
	}
	if len(known) == 0 {
		return "", false
	}
	best := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(score(a), score(b)) })
	return best, score(best) <= len(word)/3
}

// editDistance is Levenshtein's: how many bytes to insert, remove or replace to get from a to b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
