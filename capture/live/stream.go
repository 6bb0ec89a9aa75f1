package live

import (
	"slices"

	"github.com/srcproof/srcproof/capture"
	"github.com/srcproof/srcproof/capture/wire"
)

// Stream turns frames into packet facts as a reader of the file that a Writer makes of them would, and keeps the summary of what
// it was given. The zero value is not ready: see NewStream.
type Stream struct {
	section Section
	decoder capture.Decoder
	ids     []uint32 // by Frame.Iface: the decoder's interface
	sum     wire.Summary
}

// NewStream begins the facts of a capture.
func NewStream(s Section) *Stream {
	return &Stream{section: s, sum: wire.Summary{
		Format: "live", LinkTypes: []uint32{s.LinkType}, AllInterfaces: s.LinkType == LinkSLL2, SnapLen: uint32(s.SnapLen),
		Filter: s.Filter, HasFilter: true, First: wire.NoTime, Last: wire.NoTime, Complete: true, HasDropped: true, Application: s.App,
	}}
}

// Decode appends the packets of a frame to dst, at most wire.MaxPerFrame, and returns it.
func (s *Stream) Decode(dst []wire.Packet, f *Frame, ifaces []Interface) []wire.Packet {
	for i := len(s.ids); i < len(ifaces); i++ {
		s.ids = append(s.ids, s.decoder.AddInterface(wire.Interface{
			Name: ifaces[i].Name, Index: ifaces[i].Index, HasIndex: s.section.LinkType == LinkSLL2, LinkType: s.section.LinkType,
			Filter: s.section.Filter, HasFilter: true, SnapLen: uint32(s.section.SnapLen),
		}))
	}
	s.sum.Frames++
	s.sum.Bytes += uint64(len(f.Data))
	if s.sum.First == wire.NoTime || f.Time < s.sum.First {
		s.sum.First = f.Time
	}
	s.sum.Last = max(s.sum.Last, f.Time)
	return s.decoder.Decode(dst, capture.FrameMeta{Time: f.Time, Frame: s.sum.Frames, WireLen: f.WireLen, Iface: s.ids[f.Iface], Dir: f.Dir}, s.section.LinkType, f.Data)
}

// Summary is what is known of the capture if it ended so now.
func (s *Stream) Summary(e Ending) wire.Summary {
	sum := s.sum
	sum.From, sum.Until, sum.HasWindow, sum.Dropped = e.From, e.Until, true, e.Dropped
	sum.Skipped, sum.CutFrames = s.decoder.Skipped, s.decoder.CutFrames
	sum.Interfaces = slices.Clone(s.decoder.Interfaces)
	sum.LinkTypes, sum.Notes = slices.Clone(sum.LinkTypes), slices.Clone(sum.Notes)
	return sum
}
