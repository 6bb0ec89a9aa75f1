package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/srcproof/srcproof/capture/wire"
)

// order writes a file's numbers; binary.LittleEndian and BigEndian are orders.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// record is one frame of a file in a test.
type record struct {
	sec, frac int
	frame     []byte
	orig      int // zero: as captured
}

func records() []record {
	return []record{
		{1700000000, 1, eth(etherIPv4, inner()), 0},
		{1700000000, 999999, eth(etherARP, make([]byte, 28)), 0},
		{1700000001, 2, eth(etherIPv6, inner6()), 0},
	}
}

func pcapFile(o order, magic uint32, link, snap int, recs ...record) []byte {
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(o.AppendUint16(b, 2), 4)
	b = append(b, make([]byte, 8)...)
	b = o.AppendUint32(o.AppendUint32(b, uint32(snap)), uint32(link))
	for _, r := range recs {
		b = o.AppendUint32(o.AppendUint32(b, uint32(r.sec)), uint32(r.frac))
		b = o.AppendUint32(o.AppendUint32(b, uint32(len(r.frame))), uint32(max(r.orig, len(r.frame))))
		if magic == 0xa1b2cd34 {
			b = append(b, make([]byte, 8)...)
		}
		b = append(b, r.frame...)
	}
	return b
}

// pad fills up to four bytes.
func pad(b []byte) []byte { return append(b, make([]byte, (4-len(b)%4)%4)...) }

func block(o order, kind uint32, body ...[]byte) []byte {
	b := pad(cat(body...))
	n := uint32(len(b) + 12)
	return o.AppendUint32(append(o.AppendUint32(o.AppendUint32(nil, kind), n), b...), n)
}

func option(o order, code int, value []byte) []byte {
	return pad(append(o.AppendUint16(o.AppendUint16(nil, uint16(code)), uint16(len(value))), value...))
}

func shb(o order, options ...[]byte) []byte {
	return block(o, blockSHB, o.AppendUint32(nil, byteOrderMagic), o.AppendUint16(nil, 1), o.AppendUint16(nil, 0), bytes.Repeat([]byte{0xff}, 8), cat(options...))
}

func idb(o order, link, snap int, options ...[]byte) []byte {
	return block(o, blockIDB, o.AppendUint16(nil, uint16(link)), u16(0), o.AppendUint32(nil, uint32(snap)), cat(options...))
}

func epb(o order, iface int, ticks uint64, frame []byte, options ...[]byte) []byte {
	b := o.AppendUint32(nil, uint32(iface))
	b = o.AppendUint32(o.AppendUint32(b, uint32(ticks>>32)), uint32(ticks))
	b = o.AppendUint32(o.AppendUint32(b, uint32(len(frame))), uint32(len(frame)))
	return block(o, blockEPB, b, pad(bytes.Clone(frame)), cat(options...))
}

// readAll reads until the end: the packets, the error that ended them if it was not io.EOF, and the summary.
func readAll(t testing.TB, src io.Reader, opt Options) ([]wire.Packet, wire.Summary, error) {
	t.Helper()
	r, err := NewReader(src, "x.pcap", opt)
	if err != nil {
		return nil, wire.Summary{}, err
	}
	defer r.Close()
	var packets []wire.Packet
	dst := make([]wire.Packet, 2*MaxPerFrame)
	for {
		n, err := r.Read(dst)
		if n > 0 == (err != nil) {
			t.Fatalf("Read gave %d packets and error %v", n, err)
		}
		packets = append(packets, dst[:n]...)
		if err == nil {
			continue
		}
		if _, again := r.Read(dst); again != io.EOF { //nolint:errorlint // the contract is io.EOF itself
			t.Fatalf("after %v, Read gave %v", err, again)
		}
		if err == io.EOF { //nolint:errorlint // as above
			err = nil
		}
		return packets, r.Summary(), err
	}
}

func TestPcapFlavours(t *testing.T) {
	for _, c := range []struct {
		name  string
		order order
		magic uint32
		tick  int64
	}{
		{"little endian, microseconds", binary.LittleEndian, 0xa1b2c3d4, 1000},
		{"big endian, microseconds", binary.BigEndian, 0xa1b2c3d4, 1000},
		{"little endian, nanoseconds", binary.LittleEndian, 0xa1b23c4d, 1},
		{"big endian, nanoseconds", binary.BigEndian, 0xa1b23c4d, 1},
		{"modified, little endian", binary.LittleEndian, 0xa1b2cd34, 1000},
		{"modified, big endian", binary.BigEndian, 0xa1b2cd34, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			packets, sum, err := readAll(t, bytes.NewReader(pcapFile(c.order, c.magic, linkEthernet, 65535, records()...)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := lines(packets), innerTuple+"\n"+inner6Tuple+"\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			first, last := int64(1700000000e9)+c.tick, int64(1700000001e9)+2*c.tick
			if packets[0].Time != first || packets[0].Frame != 1 || packets[1].Time != last || packets[1].Frame != 3 {
				t.Errorf("times %d, %d, frames %d, %d", packets[0].Time, packets[1].Time, packets[0].Frame, packets[1].Frame)
			}
			want := wire.Summary{
				Format: "pcap", LinkTypes: []uint32{1}, SnapLen: 65535, Frames: 3, Bytes: 74 + 42 + 94, First: first, Last: last, Complete: true,
				Interfaces: []wire.Interface{{LinkType: 1, SnapLen: 65535, Packets: 3}},
				Skipped:    [wire.NumSkips]uint64{wire.SkipNotIP: 1},
			}
			if diff := cmp.Diff(want, sum); diff != "" {
				t.Errorf("summary, -want +got:\n%s", diff)
			}
		})
	}
}

// ngFile has everything that a section can have.
func ngFile(o order) []byte {
	be := func(v uint64) []byte { return o.AppendUint64(nil, v) }
	frame, frame6 := eth(etherIPv4, inner()), inner6()
	return cat(
		shb(o, option(o, 2, []byte("cpu")), option(o, 3, []byte("Linux")), option(o, 4, []byte("dumpcap")), option(o, 0, nil)),
		idb(o, linkEthernet, 1000, option(o, 2, []byte("eth0")), option(o, 3, []byte("uplink")), option(o, 11, []byte("\x00host 10.4.0.7"))),
		idb(o, linkRaw, 0, option(o, 2, []byte("tun0\x00")), option(o, 9, []byte{9}), option(o, 14, be(1000))),
		block(o, 0x0bad, o.AppendUint32(nil, 32473), []byte("anything")),
		epb(o, 0, 1700000000_000001, frame, option(o, 2, o.AppendUint32(nil, 2)), option(o, 0, nil)),
		block(o, 4, []byte("name resolution, of no use here")),
		epb(o, 1, 1699999000_000000002, frame6, option(o, 1, []byte("comment")), option(o, 2, o.AppendUint32(nil, 1))),
		// A simple packet block: original length, data.
		block(o, blockSPB, o.AppendUint32(nil, uint32(len(frame))), frame),
		// An obsolete packet block: interface, drops, time, lengths, data, options.
		block(o, blockPacket, o.AppendUint16(nil, 1), o.AppendUint16(nil, 3), o.AppendUint32(nil, uint32(uint64(1699999001e9)>>32)), o.AppendUint32(nil, uint32(uint64(1699999001e9)&0xffffffff)),
			o.AppendUint32(nil, uint32(len(frame6))), o.AppendUint32(nil, uint32(len(frame6))), pad(bytes.Clone(frame6)), option(o, 2, o.AppendUint32(nil, 2))),
		block(o, blockISB, o.AppendUint32(nil, 0), make([]byte, 8), option(o, 5, be(5)), option(o, 7, be(2)), option(o, 0, nil)),
	)
}

func TestPcapngBlocks(t *testing.T) {
	for _, o := range []order{binary.LittleEndian, binary.BigEndian} {
		t.Run(o.String(), func(t *testing.T) {
			packets, sum, err := readAll(t, bytes.NewReader(ngFile(o)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			type fact struct {
				frame uint64
				time  int64
				iface uint32
				dir   wire.Direction
				tuple string
			}
			var got []fact
			for _, p := range packets {
				got = append(got, fact{p.Frame, p.Time, p.Iface, p.Dir, p.Tuple.String()})
			}
			want := []fact{
				// Frame 1 is the custom block: Wireshark numbers it.
				{2, 1700000000_000001_000, 0, wire.DirOut, innerTuple},
				{3, 1700000000_000000_002, 1, wire.DirIn, inner6Tuple},
				{4, wire.NoTime, 0, wire.DirUnknown, innerTuple},
				{5, 1700000001_000000_000, 1, wire.DirOut, inner6Tuple},
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(fact{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(wire.Summary{
				Format: "pcapng", LinkTypes: []uint32{1, 101}, SnapLen: 1000, Frames: 4, Bytes: 74 + 80 + 74 + 80,
				First: 1700000000_000000_002, Last: 1700000001_000000_000, Complete: true, Dropped: 10, HasDropped: true,
				Hardware: "cpu", OS: "Linux", Application: "dumpcap",
				Interfaces: []wire.Interface{
					{Name: "eth0", Description: "uplink", Filter: "host 10.4.0.7", HasFilter: true, LinkType: 1, SnapLen: 1000, Packets: 2, Dropped: 7, HasDropped: true},
					{Name: "tun0", LinkType: 101, Packets: 2, Dropped: 3, HasDropped: true},
				},
			}, sum); diff != "" {
				t.Errorf("summary, -want +got:\n%s", diff)
			}
		})
	}
}

// Sections of either byte order follow each other, and each numbers its interfaces anew.
func TestPcapngSections(t *testing.T) {
	le, be := order(binary.LittleEndian), order(binary.BigEndian)
	file := cat(
		shb(le), idb(le, linkEthernet, 0), epb(le, 0, 1, eth(etherIPv4, inner())),
		shb(be), idb(be, linkRaw, 0), epb(be, 0, 2, inner6()),
	)
	packets, sum, err := readAll(t, bytes.NewReader(file), Options{})
	if err != nil || len(packets) != 2 || packets[0].Iface != 0 || packets[1].Iface != 1 || packets[1].Tuple.String() != inner6Tuple {
		t.Errorf("%v, %s", err, lines(packets))
	}
	if len(sum.Interfaces) != 2 || !sum.Complete {
		t.Errorf("%+v", sum)
	}
}

// The any device in a pcapng file: its packets name their interfaces, which have the device's filter.
func TestPcapngAnyDevice(t *testing.T) {
	le := order(binary.LittleEndian)
	frame := func(index int) []byte {
		return cat(unhex("0800 0000"), u32(index), unhex("0001 00 06 0200000000020000"), inner())
	}
	packets, sum, err := readAll(t, bytes.NewReader(cat(shb(le), idb(le, linkSLL2, 500, option(le, 2, []byte("any")), option(le, 11, []byte("\x00tcp"))),
		epb(le, 0, 1, frame(3)), epb(le, 0, 2, frame(7)), epb(le, 0, 3, frame(3)))), Options{})
	if err != nil || len(packets) != 3 || packets[0].Iface != 1 || packets[1].Iface != 2 || packets[2].Iface != 1 {
		t.Fatalf("%v, %+v", err, packets)
	}
	want := []wire.Interface{
		{Name: "any", Filter: "tcp", HasFilter: true, LinkType: linkSLL2, SnapLen: 500},
		{Filter: "tcp", HasFilter: true, LinkType: linkSLL2, SnapLen: 500, Index: 3, HasIndex: true, Packets: 2},
		{Filter: "tcp", HasFilter: true, LinkType: linkSLL2, SnapLen: 500, Index: 7, HasIndex: true, Packets: 1},
	}
	if diff := cmp.Diff(want, sum.Interfaces); diff != "" || !sum.AllInterfaces || sum.Filter != "tcp" {
		t.Errorf("%+v, -want +got:\n%s", sum, diff)
	}
}

// Packets say how many were lost before them; statistics count all, and overrule.
func TestLostPackets(t *testing.T) {
	le := order(binary.LittleEndian)
	lost := func(n uint64) []byte {
		return epb(le, 0, 1, eth(etherIPv4, inner()), option(le, 4, le.AppendUint64(nil, n)))
	}
	stats := block(le, blockISB, le.AppendUint32(nil, 0), make([]byte, 8), option(le, 5, le.AppendUint64(nil, 9)))
	for _, c := range []struct {
		name   string
		blocks []byte
		want   uint64
		has    bool
	}{
		{"nothing is said", epb(le, 0, 1, eth(etherIPv4, inner())), 0, false},
		{"none was lost", lost(0), 0, true},
		{"they add up", cat(lost(2), lost(3)), 5, true},
		{"beyond all bounds", cat(lost(math.MaxUint64), lost(3)), math.MaxUint64, true},
		{"statistics behind", cat(lost(2), stats), 9, true},
		{"statistics between", cat(lost(2), stats, lost(3)), 9, true},
		{"the last statistics hold", cat(stats, stats), 9, true},
	} {
		_, sum, err := readAll(t, bytes.NewReader(cat(shb(le), idb(le, 1, 0), c.blocks)), Options{})
		if err != nil || sum.Dropped != c.want || sum.HasDropped != c.has {
			t.Errorf("%s: %d, %v, %v", c.name, sum.Dropped, sum.HasDropped, err)
		}
	}
}

func TestFilterOfAllInterfacesIsTheFiles(t *testing.T) {
	le := order(binary.LittleEndian)
	filter := func(s string) []byte { return option(le, 11, []byte("\x00"+s)) }
	for _, c := range []struct {
		name string
		idbs [][]byte
		want string
		has  bool
	}{
		{"one", [][]byte{idb(le, 1, 0, filter("tcp"))}, "tcp", true},
		{"two of the same", [][]byte{idb(le, 1, 0, filter("tcp")), idb(le, 1, 0, filter("tcp"))}, "tcp", true},
		{"two that differ", [][]byte{idb(le, 1, 0, filter("tcp")), idb(le, 1, 0, filter("udp"))}, "", false},
		{"one of two", [][]byte{idb(le, 1, 0, filter("tcp")), idb(le, 1, 0)}, "", false},
		{"the other of two", [][]byte{idb(le, 1, 0), idb(le, 1, 0, filter("tcp"))}, "", false},
		{"byte code, which is not kept", [][]byte{idb(le, 1, 0, option(le, 11, []byte{1, 2, 3}))}, "", false},
		{"a filter of all", [][]byte{idb(le, 1, 0, filter(""))}, "", true},
	} {
		_, sum, err := readAll(t, bytes.NewReader(cat(shb(le), cat(c.idbs...))), Options{})
		if err != nil || sum.Filter != c.want || sum.HasFilter != c.has {
			t.Errorf("%s: %q, %v, %v", c.name, sum.Filter, sum.HasFilter, err)
		}
	}
}

func TestClock(t *testing.T) {
	const year2023 = 1700000000
	for _, c := range []struct {
		name   string
		resol  byte
		offset int64
		ticks  uint64
		want   int64
	}{
		{"microseconds", 6, 0, year2023*1e6 + 1, year2023*1e9 + 1000},
		{"nanoseconds", 9, 0, year2023*1e9 + 1, year2023*1e9 + 1},
		{"seconds", 0, 0, year2023, year2023 * 1e9},
		{"picoseconds, rounded down", 12, 0, 1234567, 1234},
		{"the finest that reaches a nanosecond", 28, 0, math.MaxUint64, 1},
		{"finer than any clock", 29, 0, math.MaxUint64, wire.NoTime},
		{"the finest of all", 127, 0, math.MaxUint64, wire.NoTime},
		{"halves of a second", 0x81, 0, 3, 15e8},
		{"2^-20 s", 0x80 | 20, 0, year2023<<20 | 1<<19, year2023*1e9 + 5e8},
		{"2^-32 s, as in NTP", 0x80 | 32, 0, year2023<<32 | 1<<31, year2023*1e9 + 5e8},
		{"2^-63 s", 0x80 | 63, 0, 1 << 63, 1e9},
		{"2^-64 s and finer", 0x80 | 64, 0, math.MaxUint64, wire.NoTime},
		{"2^-127 s", 0xff, 0, math.MaxUint64, wire.NoTime},
		{"whole seconds as a power of two", 0x80, 0, year2023, year2023 * 1e9},
		{"with an offset", 6, 1000, year2023 * 1e6, (year2023 + 1000) * 1e9},
		{"with a negative offset", 6, -1000, year2023 * 1e6, (year2023 - 1000) * 1e9},
		{"too many seconds", 0, 0, math.MaxUint64, wire.NoTime},
		{"too many microseconds", 6, 0, math.MaxUint64, wire.NoTime},
		{"too many nanoseconds", 9, 0, math.MaxUint64, wire.NoTime},
		{"an offset that does not fit", 6, math.MaxInt64, 1, wire.NoTime},
		{"a negative one", 6, math.MinInt64, 1, wire.NoTime},
		{"an offset that fits, and a sum that does not", 9, math.MaxInt64 / 1_000_000_000, math.MaxInt64, wire.NoTime},
		{"the smallest offset that fits", 9, math.MinInt64 / 1_000_000_000, 1, -9223372036*1_000_000_000 + 1},
	} {
		if got := newClock(c.resol, c.offset).time(c.ticks); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// cutCase is a file and where its records begin: cut there, it is whole and shorter.
type cutCase struct {
	name   string
	file   []byte
	header int   // shorter than this it is no capture
	starts []int // of each record or block behind the header
	isPkt  []bool
}

func cutCases() []cutCase {
	var cases []cutCase
	for _, o := range []order{binary.LittleEndian, binary.BigEndian} {
		c := cutCase{name: "pcap " + o.String(), file: pcapFile(o, 0xa1b2c3d4, linkEthernet, 65535, records()...), header: 24}
		at := 24
		for _, r := range records() {
			c.starts, c.isPkt = append(c.starts, at), append(c.isPkt, true)
			at += 16 + len(r.frame)
		}
		cases = append(cases, c)

		c = cutCase{name: "pcapng " + o.String(), file: ngFile(o)}
		for at := 0; at < len(c.file); at += int(o.Uint32(c.file[at+4:])) {
			if at == 0 {
				c.header = int(o.Uint32(c.file[4:]))
				continue
			}
			kind := o.Uint32(c.file[at:])
			c.starts, c.isPkt = append(c.starts, at), append(c.isPkt, kind == blockEPB || kind == blockSPB || kind == blockPacket || kind == 0x0bad)
		}
		cases = append(cases, c)
	}
	return cases
}

func TestCutAtEveryByte(t *testing.T) {
	for _, c := range cutCases() {
		t.Run(c.name, func(t *testing.T) {
			all, _, err := readAll(t, bytes.NewReader(c.file), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for n := range len(c.file) {
				packets, sum, err := readAll(t, bytes.NewReader(c.file[:n]), Options{})
				if n < c.header {
					if !errors.Is(err, ErrNotCapture) {
						t.Errorf("%d bytes: error %v", n, err)
					}
					continue
				}
				frames, at, boundary := uint64(0), 0, n == c.header
				for i, start := range c.starts {
					end := len(c.file)
					if i+1 < len(c.starts) {
						end = c.starts[i+1]
					}
					switch {
					case end <= n:
						boundary = boundary || end == n
						if c.isPkt[i] {
							frames++
						}
					case start < n:
						at = start
					}
				}
				want := all
				for i, p := range all {
					if p.Frame > frames {
						want = all[:i]
						break
					}
				}
				if diff := cmp.Diff(lines(want), lines(packets)); diff != "" {
					t.Fatalf("%d bytes, -want +got:\n%s", n, diff)
				}
				if sum.Complete != boundary {
					t.Errorf("%d bytes: complete is %v", n, sum.Complete)
				}
				var damage *DamageError
				switch {
				case boundary && err != nil:
					t.Errorf("%d bytes, on a boundary: %v", n, err)
				case boundary:
				case !errors.As(err, &damage):
					t.Errorf("%d bytes: error %v", n, err)
				case damage.Frame != frames+1 || damage.Offset != int64(at):
					t.Errorf("%d bytes: %v; want packet %d at byte %d", n, err, frames+1, at)
				}
			}
		})
	}
}

func gz(b []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(b)
	_ = w.Close()
	return buf.Bytes()
}

func zst(b []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(b, nil)
}

func TestCompressedAndCut(t *testing.T) {
	for _, c := range cutCases() {
		all, plainSum, _ := readAll(t, bytes.NewReader(c.file), Options{})
		for _, z := range []struct {
			name string
			file []byte
		}{{"gzip", gz(c.file)}, {"zstd", zst(c.file)}} {
			packets, sum, err := readAll(t, bytes.NewReader(z.file), Options{})
			if want := plainSum.Format + " (" + z.name + ")"; err != nil || lines(packets) != lines(all) || sum.Format != want || !sum.Complete {
				t.Errorf("%s, %s: %v, %s", c.name, z.name, err, lines(packets))
			}
			for n := 1; n < len(z.file); n++ {
				packets, sum, err := readAll(t, bytes.NewReader(z.file[:n]), Options{})
				if err == nil || sum.Complete {
					t.Errorf("%s, %s cut to %d of %d bytes: no error", c.name, z.name, n, len(z.file))
				}
				if !strings.HasPrefix(lines(all), lines(packets)) {
					t.Errorf("%s, %s cut to %d bytes: %s", c.name, z.name, n, lines(packets))
				}
			}
		}
	}
}

func TestTwoGzipMembersAreOneFile(t *testing.T) {
	file := pcapFile(binary.LittleEndian, 0xa1b2c3d4, linkEthernet, 65535, records()...)
	packets, _, err := readAll(t, bytes.NewReader(cat(gz(file[:100]), gz(file[100:]))), Options{})
	if err != nil || len(packets) != 2 {
		t.Errorf("%d packets, %v", len(packets), err)
	}
}

// A stream gives bytes as it likes.
func TestReadersOfAnyKind(t *testing.T) {
	for _, c := range cutCases() {
		want, _, _ := readAll(t, bytes.NewReader(c.file), Options{})
		for name, src := range map[string]io.Reader{
			"a byte at a time":      iotest.OneByteReader(bytes.NewReader(c.file)),
			"half of what is asked": iotest.HalfReader(bytes.NewReader(c.file)),
			"data with the error":   iotest.DataErrReader(bytes.NewReader(c.file)),
		} {
			if got, sum, err := readAll(t, src, Options{}); err != nil || !sum.Complete || lines(got) != lines(want) {
				t.Errorf("%s, %s: %v, %s", c.name, name, err, lines(got))
			}
		}
	}
}

// An error of the source is the end, is said, and is no clean end.
func TestFailingReader(t *testing.T) {
	file := pcapFile(binary.LittleEndian, 0xa1b2c3d4, linkEthernet, 65535, records()...)
	broken := errors.New("input/output error")
	packets, sum, err := readAll(t, io.MultiReader(bytes.NewReader(file[:24+16+74]), iotest.ErrReader(broken)), Options{})
	if len(packets) != 1 || sum.Complete || !errors.Is(err, broken) {
		t.Errorf("%d packets, complete %v, %v", len(packets), sum.Complete, err)
	}
	var damage *DamageError
	if !errors.As(err, &damage) || damage.Frame != 2 {
		t.Errorf("%v", err)
	}
	if _, err := NewReader(iotest.ErrReader(broken), "x.pcap", Options{}); !errors.Is(err, broken) || errors.Is(err, ErrNotCapture) {
		t.Errorf("nothing readable: %v", err)
	}
	if _, _, err := readAll(t, readerFunc(func([]byte) (int, error) { return 0, nil }), Options{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

type portFilter struct{}

func (*portFilter) Match(linkType uint32, frame []byte, wireLen int) bool {
	return linkType == linkEthernet && wireLen >= len(frame) && be16(frame[12:]) == etherIPv6
}

type refusing struct{ portFilter }

func (*refusing) Check(linkType uint32) error {
	return fmt.Errorf("filter: not for link type %d", linkType)
}

func TestFilterKeepsFrameNumbers(t *testing.T) {
	file := pcapFile(binary.LittleEndian, 0xa1b2c3d4, linkEthernet, 65535, records()...)
	packets, sum, err := readAll(t, bytes.NewReader(file), Options{Filter: &portFilter{}})
	if err != nil || len(packets) != 1 || packets[0].Frame != 3 || sum.Frames != 3 || sum.First != 1700000000_000001_000 {
		t.Errorf("%v, %s, %+v", err, lines(packets), sum)
	}
	if _, sum, err := readAll(t, bytes.NewReader(file), Options{Filter: &refusing{}}); err == nil || sum.Complete || !strings.Contains(err.Error(), "x.pcap: filter: not for link type 1") {
		t.Errorf("a filter that cannot be applied: %v", err)
	}
}

func TestNotCaptures(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"nothing", "", "x.pcap: is empty"},
		{"three bytes", "abc", "cut in its file header, after 3 bytes"},
		{"HTML", "\n<HTML><body>404", "HTML page"},
		{"JSON", ` {"kind":"List"}`, "JSON"},
		{"JSON on lines of its own", "{\n  \"kind\": 1 }", "JSON"},
		{"Jira's quote of nothing", "{code}\nhello\n{code}\n", "no packet of tcpdump's is in it"},
		{"a zip archive", "PK\x03\x04....", "zip archive"},
		{"xz", "\xfd7zXZ\x00....", "xz -d"},
		{"something binary", "\x00\x01\x02\x03\x04\x05\x06\x07", "neither pcap nor pcapng"},
		{"pcapng with CR LF for LF", strings.ReplaceAll(string(ngFile(binary.LittleEndian)), "\n", "\r\n"), "text mode"},
		{"pcapng with LF for CR LF", strings.ReplaceAll(string(ngFile(binary.LittleEndian)), "\r\n", "\n"), "text mode"},
		{"zstd with a window of a gibibyte", "\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00", "--long=31"},
		{"pcap cut in its header", "\xd4\xc3\xb2\xa1\x02\x00\x04\x00", "after 8 of 24 bytes"},
		{"text", "a letter\nof two lines\n", "no packet of tcpdump's is in it"},
		{"gzip of text", string(gz([]byte("hello, world\n"))), "is text"},
		{"gzip of gzip", string(gz(gz([]byte("hello, world\n")))), "compressed twice"},
		{"gzip of nothing", string(gz(nil)), "is empty"},
		{"garbage behind gzip's magic", "\x1f\x8b\x08\xff\xff", "gzip file"},
		{"garbage behind zstd's magic", "\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "zstd file"},
	} {
		_, err := NewReader(strings.NewReader(c.content), "x.pcap", Options{})
		var format *FormatError
		if !errors.As(err, &format) || !errors.Is(err, ErrNotCapture) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

// What tickets and terminals put around text does not keep it from being read.
func TestTextInTickets(t *testing.T) {
	const line = "12:00:00.123456 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 7, win 1, length 0\n"
	for _, text := range []string{
		"{code}\n" + line + "{code}\n", "{noformat:title=far|borderStyle=solid}\n" + line + "{noformat}", "{code}" + line, "\a" + line, "\x1b]0;root@node: ~\a[root@node ~]# tcpdump -n\n" + line, "# tcpdmp\b\bump -n\n" + line,
	} {
		packets, _, err := readAll(t, strings.NewReader(text), Options{})
		if err != nil || len(packets) != 1 || packets[0].Tuple.String() != "tcp 10.0.0.1:40000 > 10.0.0.2:80" {
			t.Errorf("%q: %d packets, %v", text, len(packets), err)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none.pcap"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrNotCapture) || !strings.Contains(err.Error(), "directory") {
		t.Errorf("directory: %v", err)
	}
	if _, err := Open(os.DevNull, Options{}); !errors.Is(err, ErrNotCapture) {
		t.Errorf("/dev/null: %v", err)
	}
	path := filepath.Join(dir, "a.txt") // the name says nothing
	if err := os.WriteFile(path, zst(ngFile(binary.BigEndian)), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for p, err := range r.Packets() {
		if err != nil || p.Frame == 0 {
			t.Fatal(err)
		}
		n++
	}
	if err := r.Close(); err != nil || n != 4 || r.Summary().Format != "pcapng (zstd)" {
		t.Errorf("%d packets, %v, %q", n, err, r.Summary().Format)
	}
}

func TestPacketsYieldsTheErrorLast(t *testing.T) {
	file := pcapFile(binary.LittleEndian, 0xa1b2c3d4, linkEthernet, 65535, records()...)
	r, err := NewReader(bytes.NewReader(file[:len(file)-1]), "x.pcap", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []error
	for _, err := range r.Packets() {
		got = append(got, err)
	}
	if len(got) != 2 || got[0] != nil || got[1] == nil || got[1].Error() != "x.pcap: packet 3 at byte 172: the file is cut inside a packet, 93 of its 94 bytes are there" {
		t.Errorf("%v", got)
	}
}

func TestReadNeedsRoom(t *testing.T) {
	r, err := NewReader(bytes.NewReader(ngFile(binary.LittleEndian)), "x.pcapng", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]wire.Packet, MaxPerFrame-1)); n != 0 || !errors.Is(err, io.ErrShortBuffer) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := r.Read(make([]wire.Packet, MaxPerFrame)); n != 1 || err != nil {
		t.Errorf("with room for one frame: %d, %v", n, err)
	}
}

// Lengths from the file allocate nothing: a claim of 16 MiB in a file of a few bytes costs the usual buffer.
func TestClaimsAllocateNothing(t *testing.T) {
	le := order(binary.LittleEndian)
	huge := pcapFile(le, 0xa1b2c3d4, linkEthernet, math.MaxUint32)
	huge = append(huge, unhex("00000000 00000000 ffffff00 ffffff00")...)
	files := map[string][]byte{
		"pcap":                  huge,
		"pcap, more of it":      append(bytes.Clone(huge), make([]byte, readSize+1000)...),
		"pcapng":                cat(shb(le), idb(le, 1, 0), le.AppendUint32(le.AppendUint32(nil, blockEPB), maxRecord), make([]byte, 64)),
		"pcapng, unknown block": cat(shb(le), le.AppendUint32(le.AppendUint32(nil, 0x12345678), math.MaxUint32-3), make([]byte, 64)),
	}
	for name, file := range files {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := readAll(t, bytes.NewReader(file), Options{})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 4*readSize {
			t.Errorf("%s: %d bytes allocated, error %v", name, n, err)
		}
	}
}

// A decompression bomb passes through; it is not held.
func TestBombStreams(t *testing.T) {
	head := pcapFile(binary.LittleEndian, 0xa1b2c3d4, linkEthernet, 65535, records()...)
	const size = 16 << 20
	src, dst := io.Pipe()
	go func() {
		w := gzip.NewWriter(dst)
		_, _ = w.Write(head)
		zeros := make([]byte, 1<<20)
		for range size / len(zeros) {
			_, _ = w.Write(zeros)
		}
		_ = w.Close()
		_ = dst.Close()
	}()
	r, err := NewReader(src, "bomb.gz", Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range r.Packets() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	sum := r.Summary()
	if n != 2 || sum.Frames != 3+size/16 || sum.Skipped[wire.SkipEmpty] != size/16 || len(sum.Notes) != 1 || sum.Last != 1700000001_000002_000 {
		t.Errorf("%d packets, %+v", n, sum)
	}
	if len(r.s.buf) != readSize {
		t.Errorf("the buffer grew to %d bytes", len(r.s.buf))
	}
}

func TestLargeFrames(t *testing.T) {
	// BIG TCP: half a mebibyte in one frame, which the buffer must grow for, between two small ones.
	big := ip4(6, "10.4.0.7", "192.0.2.9", tcp(41000, 443, wire.ACK, make([]byte, 512<<10)))
	big[2], big[3] = 0, 0
	recs := records()
	file := pcapFile(binary.LittleEndian, 0xa1b2c3d4, linkEthernet, 1<<20, recs[0], record{1700000000, 5, eth(etherIPv4, big), 0}, recs[2])
	packets, _, err := readAll(t, iotest.HalfReader(bytes.NewReader(file)), Options{})
	if err != nil || len(packets) != 3 || packets[1].PayloadLen != 512<<10 || packets[2].Tuple.String() != inner6Tuple {
		t.Errorf("%v, %s", err, lines(packets))
	}
}

func TestManyInterfacesAreBounded(t *testing.T) {
	le := order(binary.LittleEndian)
	name := option(le, 2, bytes.Repeat([]byte("x"), 1000))
	file := shb(le)
	one := idb(le, 1, 0, name)
	file = append(file, bytes.Repeat(one, maxInterfaces+1)...)
	_, sum, err := readAll(t, bytes.NewReader(file), Options{})
	var damage *DamageError
	if !errors.As(err, &damage) || len(sum.Interfaces) != maxInterfaces {
		t.Errorf("%d interfaces, %v", len(sum.Interfaces), err)
	}
	text := 0
	for _, i := range sum.Interfaces {
		text += len(i.Name)
	}
	if text > maxText || len(sum.Notes) != 1 {
		t.Errorf("%d bytes of names, notes %q", text, sum.Notes)
	}
}

func TestOldPcapVersions(t *testing.T) {
	le := order(binary.LittleEndian)
	swapped := pcapFile(le, 0xa1b2c3d4, linkEthernet, 65535, record{1, 2, eth(etherIPv4, inner()), 100})
	length, orig := bytes.Clone(swapped[32:36]), bytes.Clone(swapped[36:40])
	copy(swapped[32:], orig)
	copy(swapped[36:], length)
	for _, c := range []struct{ major, minor byte }{{2, 2}, {2, 3}} {
		file := bytes.Clone(swapped)
		file[4], file[6] = c.major, c.minor
		packets, _, err := readAll(t, bytes.NewReader(file), Options{})
		if err != nil || len(packets) != 1 || packets[0].WireLen != 100 {
			t.Errorf("version %d.%d: %v, %s", c.major, c.minor, err, lines(packets))
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, format := range []string{"pcap", "pcapng"} {
		b.Run(format, func(b *testing.B) {
			_, frames := benchFrames()
			le := order(binary.LittleEndian)
			file := pcapFile(le, 0xa1b2c3d4, linkEthernet, 65535)
			if format == "pcapng" {
				file = cat(shb(le), idb(le, 1, 0))
			}
			const n = 20000
			for i := range n {
				f := frames[i%2]
				if format == "pcap" {
					file = append(file, pcapFile(le, 0xa1b2c3d4, linkEthernet, 65535, record{1700000000, i, f, 0})[24:]...)
				} else {
					file = append(file, epb(le, 0, 1700000000_000000, f)...)
				}
			}
			dst := make([]wire.Packet, 512)
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(file), "x", Options{})
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					_, err = r.Read(dst)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/packet")
		})
	}
}

// Reading allocates per file, not per packet.
func TestReadDoesNotAllocatePerPacket(t *testing.T) {
	le := order(binary.LittleEndian)
	file := func(n int) []byte {
		b := cat(shb(le), idb(le, 1, 0))
		return append(b, bytes.Repeat(epb(le, 0, 1700000000_000000, eth(etherIPv4, inner()), option(le, 2, le.AppendUint32(nil, 1))), n)...)
	}
	dst := make([]wire.Packet, 64)
	allocs := func(b []byte) float64 {
		return testing.AllocsPerRun(5, func() {
			r, err := NewReader(bytes.NewReader(b), "x", Options{})
			for err == nil {
				_, err = r.Read(dst)
			}
		})
	}
	if few, many := allocs(file(10)), allocs(file(10000)); many > few+1 {
		t.Errorf("%v allocations for 10 packets, %v for 10000", few, many)
	}
}
