package wire

import (
	"encoding/binary"
	"strings"
	"sync"
)

// A text may have a host's name where the packet had its address. Such a name is given an address of its own, under a prefix that
// no network has (0100::/8 is reserved by the IETF, RFC 4291 section 4 and the IANA registry), so that all that compares and counts
// addresses needs not know of names.

const namePrefix = 0x0100fff0 << 32

// maxNames bounds how many names are kept: a text of names is hostile.
const maxNames = 1 << 16

type nameTable struct {
	sync.RWMutex
	index map[string]uint64
	list  []string
}

// names are those of the whole process, as the addresses are that stand for them.
var names = nameTable{index: make(map[string]uint64)} //nolint:gochecknoglobals // an Addr has no room for what it belongs to

// AddrOfName returns the address that stands for a name; String gives the name back. ok is false if it is no name of a host (letters,
// digits, dots, hyphens, underscores), or if there are too many.
func AddrOfName(name string) (a Addr, ok bool) {
	name = strings.Trim(name, "<>")
	if name == "" || len(name) > 255 || name[0] == '-' || name[0] == '.' || strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
	}) {
		return a, false
	}
	names.Lock()
	defer names.Unlock()
	n, known := names.index[name]
	if !known {
		if len(names.list) >= maxNames {
			return a, false
		}
		n = uint64(len(names.list))
		names.index[strings.Clone(name)] = n
		names.list = append(names.list, strings.Clone(name))
	}
	binary.BigEndian.PutUint64(a[:], namePrefix)
	binary.BigEndian.PutUint64(a[8:], n+1)
	return a, true
}

// Name returns the name that an address stands for, "" if it is an address.
func (a Addr) Name() string {
	if binary.BigEndian.Uint64(a[:]) != namePrefix {
		return ""
	}
	names.RLock()
	defer names.RUnlock()
	n := binary.BigEndian.Uint64(a[8:])
	if n == 0 || n > uint64(len(names.list)) {
		return ""
	}
	return names.list[n-1]
}
