//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peakMemory is the largest resident set of a process that ended, mapped pages included, in bytes (getrusage(2): kilobytes on Linux,
// bytes on macOS).
func peakMemory(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	switch {
	case !ok:
		return 0
	case runtime.GOOS == "darwin":
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) << 10
}
