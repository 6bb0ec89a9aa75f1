package analyze

import "slices"

// The enumerations of DESIGN sections 2, 4, 5 and 6. The zero value of each says nothing, so that a forgotten branch
// cannot become a verdict.

// Source is a request's source class on the wire: which address left the node.
type Source uint8

// The source classes.
const (
	SourceUnknown Source = iota // the captures do not carry it
	PodSourced                  // left the node with the Pod's own address
	NodeSNATed                  // forwarded by the node and left with an address of the node
	OtherSNATed                 // translated to an address that is neither the Pod's nor a known node address
	NodeOwn                     // originated on the node
	NodeSourced                 // a node address was seen; forwarded or own cannot be told
	OtherSourced                // the original sender is none of the cluster's
	SourceLocal                 // delivered on this node, never meant to leave
	NotSent                     // due to leave, and never left
)

func sourceWords() []string {
	return []string{"unknown", "pod-sourced", "node-snated", "other-snated", "node-own", "node-sourced", "other-sourced", "local", "not-sent"}
}

// String returns the class's word in output and JSON.
func (s Source) String() string { return word(sourceWords(), int(s)) }

// Basis is what carries a source class, strongest first.
type Basis uint8

// The bases. BasisNone goes with SourceUnknown.
const (
	BasisNone        Basis = iota
	BasisTranslation       // pod leg and egress leg joined by fingerprint
	BasisConntrack         // the kernel's own connection table
	BasisEgress            // seen leaving the node
	BasisFar               // seen at the far side
	BasisAddress           // only the address says so
)

func basisWords() []string {
	return []string{"none", "translation", "conntrack", "egress", "far", "address"}
}

// String returns the basis's word.
func (b Basis) String() string { return word(basisWords(), int(b)) }

// Outcome is how far a request got.
type Outcome uint8

// The outcomes, furthest first behind the zero value.
const (
	OutcomeUnknown     Outcome = iota // the capture cut off the fields that would tell
	HandshakeCompleted                // TCP SYN, SYN-ACK and the client's ACK; SCTP INIT to COOKIE-ACK
	Answered                          // UDP or ICMP query: a reply came
	HalfOpen                          // SYN-ACK seen, the client's ACK never
	Refused                           // RST or SCTP ABORT answered the opening
	Rejected                          // an ICMP error answered it
	RequestOnly                       // request packets, no reply of any kind
	Midstream                         // traffic both ways, the opening is not in the capture
	OneDirection                      // one direction only, and it is not an unanswered request
	ReplyOnly                         // replies without their request
)

func outcomeWords() []string {
	return []string{"unknown", "handshake-completed", "answered", "half-open", "refused", "rejected", "request-only", "midstream", "one-direction", "reply-only"}
}

// String returns the outcome's word.
func (o Outcome) String() string { return word(outcomeWords(), int(o)) }

// Stop is the place where a request's packets stop.
type Stop uint8

// The places.
const (
	StopUnknown Stop = iota
	StopNone
	StopNodeOut
	StopBetween
	StopFar
	StopReturn
	StopNodeIn
)

func stopWords() []string {
	return []string{"unknown", "none", "node-out", "between", "far", "return", "node-in"}
}

// String returns the place's word.
func (s Stop) String() string { return word(stopWords(), int(s)) }

// Way is a request's direction, seen from the cluster.
type Way uint8

// The ways.
const (
	WayUnknown Way = iota
	Outbound
	Inbound
	WayLocal
	Transit
)

func wayWords() []string {
	return []string{"unknown", "outbound", "inbound", "local", "transit"}
}

// String returns the direction's word.
func (w Way) String() string { return word(wayWords(), int(w)) }

// LegKind is a stretch of a request's chain.
type LegKind uint8

// The legs.
const (
	LegUnknown LegKind = iota
	LegPod             // before the node translates the source
	LegEgress          // as it left the node
	LegFar             // as the far side saw it
)

func legWords() []string {
	return []string{"unknown", "pod", "egress", "far"}
}

// String returns the leg's word.
func (l LegKind) String() string { return word(legWords(), int(l)) }

// Confidence is how sure a join is. An ambiguous join is no join and has no value here.
type Confidence uint8

// The confidences.
const (
	Probable Confidence = iota
	Exact
)

// String returns "exact" or "probable".
func (c Confidence) String() string {
	if c == Exact {
		return "exact"
	}
	return "probable"
}

func word(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return "unknown"
}

// SourceOf returns the source class of a word; ok is false if it is none.
func SourceOf(w string) (s Source, ok bool) { return wordIn[Source](sourceWords(), w) }

// BasisOf returns the basis of a word; ok is false if it is none.
func BasisOf(w string) (b Basis, ok bool) { return wordIn[Basis](basisWords(), w) }

// OutcomeOf returns the outcome of a word; ok is false if it is none.
func OutcomeOf(w string) (o Outcome, ok bool) { return wordIn[Outcome](outcomeWords(), w) }

// StopOf returns the place of a word; ok is false if it is none.
func StopOf(w string) (s Stop, ok bool) { return wordIn[Stop](stopWords(), w) }

// WayOf returns the direction of a word; ok is false if it is none.
func WayOf(w string) (d Way, ok bool) { return wordIn[Way](wayWords(), w) }

// LegKindOf returns the leg of a word; ok is false if it is none.
func LegKindOf(w string) (l LegKind, ok bool) { return wordIn[LegKind](legWords(), w) }

func wordIn[T ~uint8](words []string, w string) (T, bool) {
	i := slices.Index(words, w)
	if i < 0 {
		return 0, false
	}
	return T(i), true
}
