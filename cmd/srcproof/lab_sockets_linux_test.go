package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

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

// serveTun makes a device without a link header (tun(4)), behind which every datagram is sent back to where it came from.
func serveTun(name string) error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	go func() {
		for b := make([]byte, 2048); ; {
			n, err := f.Read(b)
			if err != nil {
				return
			}
			const header = 20
			if n < header+8 || b[0] != 0x45 || b[9] != syscall.IPPROTO_UDP {
				continue
			}
			// Both checksums stay what they are: addresses and ports change places.
			for _, ends := range [][2]int{{12, 16}, {14, 18}, {header, header + 2}} {
				for i := range 2 {
					b[ends[0]+i], b[ends[1]+i] = b[ends[1]+i], b[ends[0]+i]
				}
			}
			if _, err := f.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	return nil
}
