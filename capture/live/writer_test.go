package live

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/wire"
)

// synFrame is a SYN on an interface, as LINKTYPE_LINUX_SLL2.
func synFrame(iface uint32, dir wire.Direction, at int64, port byte) Frame {
	kind := byte(0)
	if dir == wire.DirOut {
		kind = 4
	}
	b := []byte{8, 0, 0, 0, 0, 0, 0, byte(7 + iface), 0, 1, kind, 6, 2, 0, 0, 0, 0, 1, 0, 0}
	b = append(b, 0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0, 172, 16, 0, 13, 10, 20, 0, 10)
	b = append(b, 160, port, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xfa, 0xf0, 0, 0, 0, 0)
	return Frame{Time: at, Data: b, WireLen: uint32(len(b)), Iface: iface, Dir: dir}
}

// What is written is read again: by this tool's reader, and where they are installed by tcpdump, which stops at a second link type
// or snap length, and capinfos.
func TestWriter(t *testing.T) {
	var b bytes.Buffer
	ifaces := []Interface{{Name: "veth0", Index: 7}}
	w := NewWriter(&b, Section{
		LinkType: LinkSLL2, SnapLen: 2068, Filter: "host 10.20.0.10", Command: "srcproof capture -w x", Hardware: "node, amd64", OS: "Linux 6", App: "srcproof 1", Comment: "trimmed",
	})
	base := time.Date(2026, 11, 30, 9, 30, 0, 123456789, time.UTC).UnixNano()
	for i := range 3 {
		if i == 1 { // an interface that appears later
			ifaces = append(ifaces, Interface{Name: "eth0", Index: 8})
		}
		f := synFrame(uint32(min(i, 1)), []wire.Direction{wire.DirIn, wire.DirOut, wire.DirOut}[i], base+int64(i), byte(i))
		if err := w.Write(&f, ifaces); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Size(); n == 0 || b.Len() != 0 {
		t.Errorf("size %d, %d bytes written before they are flushed", n, b.Len())
	}
	ifaces = append(ifaces, Interface{Name: "silent", Index: 9})
	if err := w.Close(ifaces, Ending{From: base - 7, Until: base + 9, Dropped: 5}); err != nil {
		t.Fatal(err)
	}
	if w.Size() != int64(b.Len()) || b.Len()%4 != 0 {
		t.Errorf("size %d, written %d", w.Size(), b.Len())
	}
	r, err := capture.NewReader(bytes.NewReader(b.Bytes()), "x", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var batch []wire.Packet
	for err == nil {
		part, n := make([]wire.Packet, 8), 0
		n, err = r.Read(part)
		batch = append(batch, part[:n]...)
	}
	if len(batch) != 3 || !errors.Is(err, io.EOF) {
		t.Fatalf("%d packets, %v", len(batch), err)
	}
	sum := r.Summary()
	if !sum.HasDropped || sum.Dropped != 5 || !sum.HasFilter || sum.Filter != "host 10.20.0.10" || !sum.Complete || sum.Application != "srcproof 1" || sum.OS != "Linux 6" || !sum.HasWindow || sum.From != base-7 || sum.Until != base+9 {
		t.Errorf("%+v", sum)
	}
	for i, want := range []string{"veth0 7 in", "eth0 8 out", "eth0 8 out"} {
		p := &batch[i]
		f := &sum.Interfaces[p.Iface]
		if got := strings.Join([]string{f.Name, string('0' + rune(f.Index)), p.Dir.String()}, " "); got != want || p.Time != base+int64(i) || !f.HasIndex {
			t.Errorf("packet %d: %s at %d, want %s at %d", i, got, p.Time, want, base+int64(i))
		}
	}
	if len(sum.Interfaces) != 3 || sum.Interfaces[1].Packets != 2 {
		t.Errorf("interfaces %+v", sum.Interfaces)
	}
	if _, err := exec.LookPath("tcpdump"); err != nil {
		t.Skip("not checked: that tcpdump reads the file (it is not installed)")
	}
	file := filepath.Join(t.TempDir(), "x.pcapng")
	if err := writeFile(file, b.Bytes()); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tcpdump", "-nr", file).Output()
	if err != nil || strings.Count(string(out), "Flags [S]") != 3 {
		t.Errorf("tcpdump: %v: %s", err, out)
	}
}

// A writer that was cut off anywhere leaves a file that is read up to its last whole block.
func TestWriterCut(t *testing.T) {
	var b bytes.Buffer
	ifaces := []Interface{{Name: "veth0", Index: 7}}
	w := NewWriter(&b, Section{LinkType: LinkSLL2, SnapLen: 2068})
	for i := range 4 {
		f := synFrame(0, wire.DirIn, int64(i+1)*1e9, byte(i))
		if err := w.Write(&f, ifaces); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(ifaces, Ending{}); err != nil {
		t.Fatal(err)
	}
	last := 0
	for n := 60; n <= b.Len(); n++ {
		r, err := capture.NewReader(bytes.NewReader(b.Bytes()[:n]), "x", capture.Options{})
		if err != nil {
			continue
		}
		batch, got := make([]wire.Packet, 16), 0
		for err == nil {
			var k int
			k, err = r.Read(batch)
			got += k
		}
		if got < last || got > 4 {
			t.Fatalf("cut at %d: %d packets, %d before", n, got, last)
		}
		last = got
	}
	if last != 4 {
		t.Errorf("the whole file has %d packets", last)
	}
}

// A writer's first error is its last word.
func TestWriterError(t *testing.T) {
	full := errors.New("full")
	w := NewWriter(failing{full}, Section{LinkType: LinkSLL2, SnapLen: 100})
	f := synFrame(0, wire.DirIn, 1, 1)
	if err := w.Write(&f, []Interface{{Name: "a", Index: 7}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	if err := w.Close([]Interface{{Name: "a", Index: 7}}, Ending{}); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A file says when it was captured only as long as it is whole: a program that takes packets out leaves the times as they were.
func TestWriterWindow(t *testing.T) {
	ifaces := []Interface{{Name: "veth0", Index: 7}, {Name: "eth0", Index: 8}}
	write := func(e Ending, frames ...Frame) []byte {
		var b bytes.Buffer
		w := NewWriter(&b, Section{Device: Any, LinkType: LinkSLL2, SnapLen: 2068})
		for i := range frames {
			if err := w.Write(&frames[i], ifaces); err != nil {
				t.Fatal(err)
			}
		}
		if len(frames) == 0 {
			ifaces = nil
		}
		if err := w.Close(ifaces, e); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	frames := []Frame{synFrame(0, wire.DirIn, 5e9, 1), synFrame(1, wire.DirOut, 6e9, 1)}
	whole := write(Ending{From: 1e9, Until: 9e9}, frames...)
	one := bytes.LastIndex(whole, []byte{6, 0, 0, 0}) // the last packet block
	size := int(whole[one+4])
	for _, tt := range []struct {
		name        string
		b           []byte
		from, until int64
		recorded    bool
	}{
		{"whole", whole, 1e9, 9e9, true},
		{"a packet was taken out", slices.Concat(whole[:one], whole[one+size:]), 5e9, 5e9, false},
		{"cut before its statistics", whole[:one+size], 5e9, 6e9, false},
		{"two captures, one behind the other", slices.Concat(whole, whole), 5e9, 6e9, false},
		{"it says that it ended before its last packet", write(Ending{From: 1e9, Until: 5.5e9}, frames...), 5e9, 6e9, false},
		{"no packet", write(Ending{From: 1e9, Until: 9e9}), 1e9, 9e9, true},
	} {
		r, err := capture.NewReader(bytes.NewReader(tt.b), "x", capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for batch := make([]wire.Packet, 8); err == nil; {
			_, err = r.Read(batch)
		}
		sum := r.Summary()
		from, until, recorded := sum.Window()
		if from != tt.from || until != tt.until || recorded != tt.recorded {
			t.Errorf("%s: %d to %d, recorded %v; want %d to %d, %v", tt.name, from, until, recorded, tt.from, tt.until, tt.recorded)
		}
		if _, err := exec.LookPath("tcpdump"); err == nil && sum.Frames == 0 {
			file := filepath.Join(t.TempDir(), "empty.pcapng")
			if err := writeFile(file, tt.b); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("tcpdump", "-nr", file).CombinedOutput(); err != nil {
				t.Errorf("tcpdump does not read a file without packets: %s", out)
			}
		}
	}
}
