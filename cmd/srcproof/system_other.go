//go:build !unix

package main

import "os"

// becomeUser is for systems with users that a process can become.
func becomeUser(string) error {
	return &usageError{what: "-Z: this system has no such thing"}
}

// windowSize knows no terminal on this system: text is then written as into a pipe, without colour.
func windowSize(*os.File) (columns, rows int, terminal bool) { return 0, 0, false }

// isDeleted: an open file cannot lose its name on such a system, or this tool cannot tell.
func isDeleted(*os.File) bool { return false }
