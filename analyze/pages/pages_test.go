package pages

import "testing"

// A list is empty and whole whatever its size, and so is each of many that lie beside it.
func TestMake(t *testing.T) {
	type record struct {
		p *int
		b [37]byte
	}
	for _, n := range []int{0, 1, 4095, large / 48, large/48 + 1, 3 * large / 48} {
		list := Make[record](n)
		if len(list) != n {
			t.Fatalf("%d records of %d", len(list), n)
		}
		for i := range list {
			if list[i] != (record{}) {
				t.Fatalf("record %d of %d is not empty", i, n)
			}
			list[i].p, list[i].b[36] = &n, byte(i)
		}
		for i := range list {
			if list[i].p != &n || list[i].b[36] != byte(i) {
				t.Fatalf("record %d of %d is lost", i, n)
			}
		}
	}
}

// Small lists grow by the unit, large ones by whole large pages, and none by more than an eighth and those.
func TestMore(t *testing.T) {
	const unit = 1 << 10
	have := 0
	for have < 10*large/32 {
		n := len(More[[32]byte](have, unit))
		switch {
		case n%unit != 0 || n == 0:
			t.Fatalf("%d more of %d", n, have)
		case have*32 < large && n != unit:
			t.Fatalf("a small list of %d grows by %d", have, n)
		case have*32 >= large && n*32 < large:
			t.Fatalf("a large list of %d grows by %d", have, n)
		case n > max(unit, have/8, large/32):
			t.Fatalf("%d more of %d", n, have)
		}
		have += n
	}
}
