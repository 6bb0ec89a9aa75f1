// Command srcproof tells from packet captures which source address left a Kubernetes node, and whether the request
// completed.
//
// What comes in is what a person typed: flags and files. What goes out is data on standard output, everything else on
// standard error, and an exit code; stdio.go has the law of the two streams and exit.go the codes. This room opens the
// files and knows the terminal and the clock, and it is the only one that knows cobra.
//
// What is deliberately absent is any rule about packets. A command is flags, then options, then one call into analyze
// and one into report.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// A reader of standard output that has read enough (head, less) must not decide the exit code: the write fails then,
	// and exitCode knows what to make of it.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// run is the whole program: args without the program's name, env as os.Getenv. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	std := newStdio(args, stdin, stdout, stderr, env)
	root := newRootCommand(std)
	root.SetArgs(args)
	err := std.finish(root.ExecuteContext(ctx))
	for _, e := range flatten(err) {
		std.complain(e)
	}
	return exitCode(err)
}
