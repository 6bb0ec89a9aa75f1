//go:build !unix

package main

// becomeUser is for systems with users that a process can become.
func becomeUser(string) error {
	return &usageError{what: "-Z: this system has no such thing"}
}
