//go:build unix

package main

import (
	"fmt"
	"os/user"
	"strconv"
	"syscall"
)

// becomeUser gives root up for a user: all groups but the user's, then the user.
func becomeUser(name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return &usageError{what: "-Z " + name + ": no such user"}
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return &usageError{what: "-Z " + name + ": its user ID is no number"}
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return &usageError{what: "-Z " + name + ": its group ID is no number"}
	}
	for _, step := range []func() error{
		func() error { return syscall.Setgroups([]int{gid}) },
		func() error { return syscall.Setgid(gid) },
		func() error { return syscall.Setuid(uid) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("-Z %s: %w: only root can become another user", name, err)
		}
	}
	return nil
}
