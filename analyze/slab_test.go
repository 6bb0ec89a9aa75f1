package analyze

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/srcproof/srcproof/capture/wire"
)

// The index finds what a map finds, whatever was put into it, and grows.
func TestFlowIndex(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, keys := range []int{1, 3, 700, 5_000} {
		var flows slab[ref, flow]
		index, twin := newFlowIndex(0), make(map[flowKey]ref)
		key := func() flowKey {
			n := uint32(rnd.IntN(keys))
			return flowKey{end: [2]wire.Addr{wire.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})}, port: [2]uint16{uint16(n), 443}, proto: wire.ProtoTCP, vlan: n % 3}
		}
		for range 20_000 {
			k := key()
			h := index.hash(&k)
			if got, _ := index.find(&k, h, &flows); got != twin[k] {
				t.Fatalf("%d keys: found flow %d, and the map has %d", keys, got, twin[k])
			}
			if rnd.IntN(2) == 0 {
				r := flows.add(flow{key: k})
				index.set(&k, h, r, &flows)
				twin[k] = r
			}
		}
		if index.used != len(twin) || index.used*8 > len(index.slots)*7 {
			t.Errorf("%d keys: %d used of %d slots, and the map has %d", keys, index.used, len(index.slots), len(twin))
		}
	}
}

// What is in a slab stays where it is while it grows, and number 0 is none's.
func TestSlab(t *testing.T) {
	var s slab[ref, uint64]
	if s.size() != 1 {
		t.Errorf("an empty slab's size is %d", s.size())
	}
	var first *uint64
	for i := range uint64(5_000) {
		n := s.add(i)
		if n != ref(i+1) {
			t.Fatalf("record %d has number %d", i, n)
		}
		if i == 0 {
			first = s.at(n)
		}
	}
	if *first = 77; *s.at(1) != 77 || *s.at(5_000) != 4_999 || s.size() != 5_001 {
		t.Errorf("first %d, last %d, size %d", *s.at(1), *s.at(5_000), s.size())
	}
}

// What is kept stays as it was when its neighbours grow, and an empty list is none.
func TestKeep(t *testing.T) {
	var room arena[int]
	if keep(&room, []int{}) != nil {
		t.Error("an empty list is kept")
	}
	var kept [][]int
	for n := range 3000 {
		list := []int{n, n + 1, n + 2}[:n%3+1]
		kept = append(kept, keep(&room, list))
		list[0] = -1
	}
	for n, list := range kept {
		if grown := append(list, -2); &grown[0] == &list[0] {
			t.Fatal("what is appended runs into what lies behind")
		}
		for i := range n%3 + 1 {
			if len(list) != n%3+1 || list[i] != n+i {
				t.Fatalf("list %d is %v", n, list)
			}
		}
	}
	if long := keep(&room, make([]int, 5000)); len(long) != 5000 {
		t.Errorf("%d of 5000", len(long))
	}
}

// Equal texts are held once; texts that meet in one place are not mixed up.
func TestKeptTexts(t *testing.T) {
	var k keeping
	for range 3 {
		for n := range 5000 {
			want := fmt.Sprint("source ", n)
			if got := k.text([]byte(want)); got != want {
				t.Fatalf("%q for %q", got, want)
			}
			if got := k.same(want); got != want {
				t.Fatalf("%q for %q", got, want)
			}
		}
	}
	a, b := k.text([]byte("ShADadFf")), k.text([]byte("ShADadFf"))
	if unsafe.StringData(a) != unsafe.StringData(b) {
		t.Error("one text is held twice")
	}
	if c := k.same(strings.Clone(a)); unsafe.StringData(a) != unsafe.StringData(c) {
		t.Error("one text is held twice")
	}
}
