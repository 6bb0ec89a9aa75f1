package main

import (
	"os"
	"os/signal"
)

// leaveInterruptToWriter leaves the first Ctrl-C to the program that writes standard input. A terminal sends it to all of
// tcpdump -w - | srcproof analyze -: tcpdump then writes what it still holds and ends, and the packets are judged. The
// second Ctrl-C ends this program too. It returns what puts the usual behaviour back.
func leaveInterruptToWriter() (restore func()) {
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt)
	done := make(chan struct{})
	go func() {
		select {
		case <-first:
			signal.Reset(os.Interrupt)
		case <-done:
			signal.Stop(first)
		}
	}()
	return func() { close(done) }
}
