package main

import "syscall"

// transparent lets a socket have an address that is not the host's: ip(7), IP_TRANSPARENT.
func transparent(_, _ string, conn syscall.RawConn) error {
	var failed error
	err := conn.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.SOL_IP, syscall.IP_TRANSPARENT, 1)
	})
	if err != nil {
		return err
	}
	return failed
}
