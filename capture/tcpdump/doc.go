// Package tcpdump reads what tcpdump prints, as people paste it into tickets: versions 4.9 to 5.0, with and without names, times,
// interfaces, link-layer headers and verbose lines; around the packets prompts, banners, counters, quoting and lines that were
// wrapped or cut. What the text does not say stays unknown: payloads, mostly TTL and IP identification, and any place where it may
// be an excerpt.
package tcpdump
