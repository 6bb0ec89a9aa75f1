package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCompletionCommand(std *stdio) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes srcproof's words in bash, zsh, fish or powershell",
		Example: `  source <(srcproof completion bash)                 in this shell
  srcproof completion zsh > "${fpath[1]}/_srcproof"  for every new one`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{what: "completion takes one shell", hint: "it is " + orList(shells)}
			}
			return nil
		},
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(std.out, true)
			case "zsh":
				return root.GenZshCompletion(std.out)
			case "fish":
				return root.GenFishCompletion(std.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(std.out)
			}
			return &usageError{what: fmt.Sprintf("no completion for the shell %q", args[0]), hint: "it is " + orList(shells)}
		},
	}
}

// completeCaptures leaves file names to the shell: a capture is told by content, so no name is left out.
func completeCaptures(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// registerCompletion is cobra's RegisterFlagCompletionFunc, which fails only for a flag that does not exist, or twice:
// TestFlags sees a flag that is not completed.
func registerCompletion(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete)
}
