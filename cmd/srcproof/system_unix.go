//go:build unix

package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
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

// windowSize asks the terminal behind f for its size. Shells set COLUMNS but do not export it, so that the kernel has
// to be asked; the answer also tells whether there is a terminal at all (ENOTTY).
func windowSize(f *os.File) (columns, rows int, terminal bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}

// isDeleted tells whether an open file has no name any more.
func isDeleted(f *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink == 0
}
