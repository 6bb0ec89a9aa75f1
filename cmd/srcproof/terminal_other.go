//go:build !unix

package main

import "os"

// windowColumns knows no terminal on this system: text is then written as into a pipe, without colour.
func windowColumns(*os.File) (columns int, terminal bool) { return 0, false }
