package pages

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

// The kernel has the advice: the mapping of a large list has the flag hg (proc_pid_smaps(5)), that of a small one need not.
func TestAdvised(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil {
		t.Skip("not checked: large pages (this kernel has none)")
	}
	list := Make[byte](4 * large)
	middle := uintptr(unsafe.Pointer(&list[2*large]))
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("not checked: large pages (/proc/self/smaps cannot be read)")
	}
	list[0] = 1
	inside := false
	for line := range strings.Lines(string(smaps)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from <= middle && middle < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			if !strings.Contains(flags, " hg ") {
				t.Errorf("the list's mapping has the flags%s", flags)
			}
			return
		}
	}
	t.Fatal("the list is in no mapping")
}
