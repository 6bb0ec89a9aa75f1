//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// windowColumns asks the terminal behind f for its width. Shells set COLUMNS but do not export it, so that the kernel has
// to be asked; the answer also tells whether there is a terminal at all (ENOTTY).
func windowColumns(f *os.File) (columns int, terminal bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
