package live

import "golang.org/x/sys/unix"

// everything is the filter that takes every packet, its first snapLen bytes.
func everything(snapLen int) []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: uint32(snapLen)}}
}
