package analyze

import (
	"fmt"
	"testing"
)

// benchPackets are those of some connections of a Pod, as the node's interfaces or the far side see them, in order of time.
func benchPackets(b *testing.B, connections int, far bool) Input {
	b.Helper()
	var m many
	for i := range connections {
		w := trip{
			client: fmt.Sprintf("10.4.%d.%d:41000", i>>8&3, i&255), server: fmt.Sprintf("192.0.2.%d:443", 1+i%200), as: fmt.Sprintf("%s:%d", node, 20_000+i%40_000),
		}
		open := answeredAt(61, opened(w.client+" > "+w.server, float64(i)/100, uint32(i)*70_001))
		if far {
			m = append(m, w.far(open...)...)
		} else {
			m = append(m, w.near(open...)...)
		}
	}
	if far {
		return farCapture(b, sorted(m))
	}
	return captureOf(b, sorted(m))
}

// again is an input whose packets can be read once more.
func again(in Input) Input {
	s := *in.Source.(*slice)
	in.Source = &s
	return in
}

func BenchmarkFlows(b *testing.B) {
	in := benchPackets(b, 2_000, false)
	packets := in.Source.(*slice).packets
	b.ReportAllocs()
	for b.Loop() {
		t := newTable(0)
		for i := range packets {
			t.add(&packets[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(packets)), "ns/packet")
}

func BenchmarkRun(b *testing.B) {
	facts, near, far := gke(b), benchPackets(b, 2_000, false), benchPackets(b, 2_000, true)
	for name, sides := range map[string][]Input{"near": {near}, "pair": {near, far}} {
		b.Run(name, func(b *testing.B) {
			packets := 0
			for _, in := range sides {
				packets += len(in.Source.(*slice).packets)
			}
			b.ReportAllocs()
			for b.Loop() {
				ins := make([]Input, 0, len(sides))
				for _, in := range sides {
					ins = append(ins, again(in))
				}
				if _, err := Run(ins, facts, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*packets), "ns/packet")
		})
	}
}
