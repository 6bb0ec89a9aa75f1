package pages

import (
	"os"
	"syscall"
	"unsafe"
)

// advise asks for large pages (madvise(2), MADV_HUGEPAGE) under what lies between two page boundaries. It is advice: that a kernel has
// none is no error.
func advise(room []byte) {
	page := uintptr(os.Getpagesize())
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(room))) & (page - 1)
	_ = syscall.Madvise(room[skip:], syscall.MADV_HUGEPAGE)
}
