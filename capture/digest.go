package capture

import (
	"hash/maphash"

	"github.com/srcproof/srcproof/capture/wire"
)

// digestSeed keys the payload digests: one per process, so that digests of two captures compare and none is worth
// storing. It never changes after start.
var digestSeed = maphash.MakeSeed() //nolint:gochecknoglobals // a constant that only the start of the process knows

// payload books a transport payload: its length on the wire, and digests of the prefixes that were captured. whole is
// whether a digest of all of it means something: a TCP segment's does not, since offload cuts and joins segments.
func payload(p *wire.Packet, b []byte, wireLen int, whole bool) {
	p.PayloadLen = uint32(wireLen)
	p.Known |= wire.KnowPayload
	if wireLen == 0 {
		return
	}
	if len(b) > wireLen {
		b = b[:wireLen]
	}
	n := len(b)
	if n >= 16 || n == wireLen {
		p.Digest16 = maphash.Bytes(digestSeed, b[:min(n, 16)])
		p.Known |= wire.KnowDigest16
	}
	if n >= 64 || n == wireLen {
		p.Digest64 = maphash.Bytes(digestSeed, b[:min(n, 64)])
		p.Known |= wire.KnowDigest64
	}
	if whole && n == wireLen {
		p.DigestAll = maphash.Bytes(digestSeed, b)
		p.Known |= wire.KnowDigestAll
	}
}
