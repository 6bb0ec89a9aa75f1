package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/srcproof/srcproof/analyze/cluster"
	"github.com/srcproof/srcproof/capture/live"
)

// liveFlags are the flags of srcproof capture as they were typed.
type liveFlags struct {
	device, write, user, snapLen           once
	count, rotateSec, rotateMB, files, kB  int
	duration                               time.Duration
	unbuffered, noPromisc, list, writeOnly bool
	farCommand, connTrack                  bool
	facts                                  factFlags
	ask                                    askFlags
	format                                 once
}

// liveOptions are what srcproof capture works with: everything that was typed, checked.
type liveOptions struct {
	capture   live.Options
	trim      bool // keep headers and live.KeptPayload bytes
	files     fileOptions
	count     int
	duration  time.Duration
	user      string
	writeOnly bool
	connTrack bool // ask the kernel's connection table
	facts     *cluster.Facts
	question  question
	format    string
}

func newCaptureCommand(std *stdio) *cobra.Command {
	var flags liveFlags
	cmd := &cobra.Command{
		Use:   "capture [-i IFACE] [-w FILE] [EXPRESSION...]",
		Short: "Capture live on a node, with verdicts as they form",
		Long: `Captures on this host, keeps the packets in a pcapng file that tcpdump and Wireshark read, and says
of each request which source left the node and how far it got, as soon as that is decided. At the
end comes the report that srcproof analyze gives of the file.

On all interfaces (-i any) each packet keeps its interface and its direction, and interfaces that
appear while it runs are included. EXPRESSION is tcpdump's (pcap-filter).

Privacy: of each packet the headers and 16 bytes behind them are kept, which is enough to find a
packet again behind a translation; -s N keeps N bytes, -s 0 whole packets.

It needs root or CAP_NET_RAW. Under sudo the files belong to who called it; -Z USER gives root up
once the capture is open.

Exit codes:
  0  done, and as expected if --expect was given
  1  not as expected
  2  bad usage, or the capture or its file failed
  3  what was captured cannot tell whether it is as expected`,
		Example: `  srcproof capture -i any -w near.pcapng --pod-cidr 172.16.0.0/16 host 10.20.30.40 or icmp
  srcproof capture --pod-cidr 172.16.0.0/16 --request 'tcp 172.16.0.0/16 > 10.20.30.40:443' \
      --expect source=node-snated,completed=true --duration 2m host 10.20.30.40
  srcproof capture -i any -w 'near-%H%M.pcapng' -G 600 -W 6 host 10.20.30.40
  srcproof capture -w - -i eth0 | srcproof analyze -`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.list {
				return listDevices(std)
			}
			opt, err := flags.resolve(args)
			if err != nil {
				return err
			}
			if flags.farCommand {
				return printFarCommand(std, opt)
			}
			return runCapture(cmd.Context(), std, opt)
		},
	}
	flags.add(cmd)
	return cmd
}

func (f *liveFlags) add(cmd *cobra.Command) {
	fs := newFlags()
	fs.VarP(&f.device, "interface", "i", "`IFACE` to capture on; any, all of them, if not given")
	fs.VarP(&f.write, "write", "w", "pcapng `FILE` to write; - is standard output, and then there are no verdicts")
	fs.IntVarP(&f.count, "count", "c", 0, "end after `N` packets")
	fs.DurationVar(&f.duration, "duration", 0, "end after this `TIME`, like 90s or 5m")
	fs.VarP(&f.snapLen, "snapshot-length", "s", "keep `N` bytes of each packet, 0 for all of them; else all headers and 16 bytes")
	fs.BoolVarP(&f.noPromisc, "no-promiscuous-mode", "p", false, "do not put the interface into promiscuous mode")
	fs.BoolVarP(&f.unbuffered, "packet-buffered", "U", false, "write each packet to the file as soon as it is captured")
	fs.IntVarP(&f.rotateSec, "rotate-seconds", "G", 0, "begin a new file every `SEC` seconds; FILE may hold %Y %m %d %H %M %S")
	fs.IntVarP(&f.rotateMB, "rotate-size", "C", 0, "begin a new file after `MB` million bytes")
	fs.IntVarP(&f.files, "file-count", "W", 0, "with -C keep `N` files, the oldest is overwritten; with -G end after N")
	fs.IntVarP(&f.kB, "buffer-size", "B", live.DefaultBuffer>>10, "kernel buffer in KiB, as `N`")
	fs.VarP(&f.user, "relinquish-privileges", "Z", "become `USER` once the capture is open")
	fs.BoolVarP(&f.list, "list-interfaces", "D", false, "list the interfaces")
	fs.BoolVar(&f.writeOnly, "write-only", false, "only write the file: no verdicts, no report")
	fs.BoolVar(&f.farCommand, "print-far-command", false, "print the tcpdump command for the far side, whose filter matches whatever the source becomes")
	fs.BoolVar(&f.connTrack, "kernel-conntrack", false, "ask this kernel's connection table for each request whose source the packets do not show; needs root")
	addFlags(cmd, "Capture", fs)
	for _, name := range []string{"interface", "relinquish-privileges", "count", "duration"} {
		registerCompletion(cmd, name, cobra.NoFileCompletions)
	}
	f.facts.add(cmd)
	f.ask.add(cmd)
	fs = newFlags()
	f.format = oneOf("text", "jsonl")
	fs.VarP(&f.format, "output", "o", "`FORMAT` of verdicts and report: text, or jsonl (one JSON object per line)")
	addFlags(cmd, "Output", fs)
	registerCompletion(cmd, "output", f.format.complete)
}

// resolve checks everything that was typed, and reports all that is wrong.
func (f *liveFlags) resolve(args []string) (opt liveOptions, err error) {
	var errs [2]error
	opt.facts, errs[0] = f.facts.resolve()
	opt.question, errs[1] = f.ask.resolve()
	wrong := func(what, hint string) { err = errors.Join(err, &usageError{what: what, hint: hint}) }
	opt.capture = live.Options{Device: live.Any, Filter: strings.Join(args, " "), Promisc: !f.noPromisc, Buffer: f.kB << 10}
	if f.device.given {
		opt.capture.Device = f.device.value
	}
	opt.trim = !f.snapLen.given
	opt.capture.SnapLen = live.DefaultSnapLen
	if f.snapLen.given {
		n, err := strconv.Atoi(f.snapLen.value)
		switch {
		case err != nil || n < 0 || n > live.MaxSnapLen:
			wrong(fmt.Sprintf("-s %s: not a number of bytes from 0 to %d", f.snapLen.value, live.MaxSnapLen), "-s 0 keeps whole packets")
		case n == 0:
			opt.capture.SnapLen = live.MaxSnapLen
		default:
			opt.capture.SnapLen = n
		}
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"-c", f.count}, {"-G", f.rotateSec}, {"-C", f.rotateMB}, {"-W", f.files}, {"--duration", int(f.duration)}, {"-B", f.kB - 1}} {
		if n.value < 0 {
			wrong(n.flag+": must be more than 0", "")
		}
	}
	if f.kB > 1<<21 {
		wrong("-B: more than 2 GiB", "")
	}
	opt.files = fileOptions{name: f.write.value, seconds: f.rotateSec, size: int64(f.rotateMB) * 1_000_000, count: f.files, unbuffered: f.unbuffered}
	switch {
	case !f.write.given && (f.rotateSec > 0 || f.rotateMB > 0 || f.writeOnly || f.unbuffered):
		wrong("-G, -C, -U and --write-only are for a file", "-w FILE names it")
	case f.write.given && f.write.value == "":
		wrong("-w: FILE is empty", "- is standard output")
	case f.write.value == "-" && (f.rotateSec > 0 || f.rotateMB > 0):
		wrong("-w - with -G or -C: standard output is one file", "")
	case f.files > 0 && f.rotateSec == 0 && f.rotateMB == 0:
		wrong("-W is for -G or -C: it counts the files that they begin", "")
	}
	opt.count, opt.duration, opt.user = f.count, f.duration, f.user.value
	opt.writeOnly = f.writeOnly || f.write.value == "-"
	opt.format = f.format.value
	opt.connTrack = f.connTrack
	if f.connTrack && f.user.given {
		wrong("--kernel-conntrack with -Z: the connection table is root's to read, and -Z gives root up", "")
	}
	if f.connTrack && opt.writeOnly {
		wrong("--kernel-conntrack is for verdicts, and -w - and --write-only have none", "")
	}
	if opt.writeOnly && f.ask.expect.given {
		wrong("--expect needs verdicts, and -w - and --write-only have none", "")
	}
	return opt, errors.Join(errs[0], errs[1], err)
}

// section says what the file is captured with.
func (o *liveOptions) section(std *stdio, linkType uint32) live.Section {
	s := live.Section{
		Device: o.capture.Device, LinkType: linkType, SnapLen: o.capture.SnapLen, Filter: o.capture.Filter, Command: program + " " + strings.Join(std.args, " "),
		App: program + " " + versionText(),
	}
	if linkType == live.LinkSLL2 {
		s.SnapLen += 20 // its header is not of the packet
	}
	s.OS, s.Hardware = hostWords()
	if o.trim {
		s.Comment = fmt.Sprintf("of each packet the headers and %d bytes behind them are kept", live.KeptPayload)
	}
	return s
}

// runCapture captures until it is told to end, and reports.
func runCapture(ctx context.Context, std *stdio, opt liveOptions) error {
	c, err := live.Open(opt.capture)
	if err != nil {
		return captureError(err)
	}
	defer c.Close()
	if opt.user != "" {
		if err := becomeUser(opt.user); err != nil {
			return err
		}
	}
	run := liveRun{std: std, opt: opt, capture: c, section: opt.section(std, c.LinkType())}
	if opt.files.name != "" {
		run.files = newCaptureFiles(opt.files, run.section, std, run.state)
	}
	if !opt.writeOnly {
		run.verdicts = newLiveVerdicts(std, opt, run.section)
		if opt.connTrack {
			table, err := live.OpenConnTrack()
			if err != nil {
				return captureError(err)
			}
			defer table.Close()
			run.verdicts.askConnTrack(table)
		}
	}
	// The first signal ends the capture and everything that is due is still done; the second one ends the program.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-signals:
			signal.Reset(os.Interrupt, syscall.SIGTERM)
		case <-ctx.Done():
		case <-done:
			return
		}
		c.Stop()
	}()
	return run.loop()
}

// captureError says what to do about a capture that could not be begun.
func captureError(err error) error {
	if bad, ok := errors.AsType[*live.FilterError](err); ok {
		return &usageError{what: bad.Error(), hint: "the expression is tcpdump's: host 10.20.30.40 or icmp"}
	}
	if p, ok := errors.AsType[*live.PermissionError](err); ok {
		caps := "cap_net_raw"
		if p.Capability == "CAP_NET_ADMIN" {
			caps += ",cap_net_admin"
		}
		return fmt.Errorf("%w: run it with sudo, or once: sudo setcap %s+ep %s", err, caps, executable())
	}
	if dev, ok := errors.AsType[*live.DeviceError](err); ok {
		return &usageError{what: dev.Error(), hint: program + " capture -D lists the interfaces"}
	}
	return err
}

func executable() string {
	if path, err := os.Executable(); err == nil {
		return path
	}
	return program
}

// liveRun is a capture under way.
type liveRun struct {
	std      *stdio
	opt      liveOptions
	capture  *live.Capture
	section  live.Section
	files    *captureFiles // nil without -w
	verdicts *liveVerdicts // nil with --write-only
	captured uint64
	last     int64 // the latest frame's time, of those that were taken
	ended    bool  // what was captured since is not taken
}

// pollTime is how long the capture waits for packets before it looks at the clock.
const pollTime = 200 * time.Millisecond

func (r *liveRun) loop() error {
	frames := make([]live.Frame, 256)
	begun := time.Now()
	var failed error
	stop := func() {
		r.ended = true
		r.capture.Stop()
	}
	if r.files != nil {
		if failed = r.files.open(begun); failed != nil {
			return failed
		}
	}
	if !r.opt.writeOnly || r.opt.files.name != "-" {
		r.std.say("capturing on %s%s, %s; Ctrl-C ends it", r.opt.capture.Device, filterWords(r.opt.capture.Filter), r.keptWords())
	}
	idle := 0
	for {
		n, err := r.capture.Next(frames, pollTime)
		if err != nil {
			failed = captureError(err)
			break
		}
		if n == 0 && r.capture.Stopped() {
			if idle++; idle > 1 { // the last block has been handed over
				break
			}
		}
		for i := range frames[:n] {
			if r.ended {
				break
			}
			f := &frames[i]
			if r.opt.trim {
				f.Data = f.Data[:live.Trim(r.section.LinkType, f.Data)]
			}
			r.captured++
			r.last = max(r.last, f.Time)
			if r.files != nil && failed == nil {
				if failed = r.files.write(f, r.capture.Interfaces()); failed != nil {
					stop()
				}
			}
			if r.verdicts != nil {
				r.verdicts.add(f, r.capture.Interfaces())
			}
			if r.opt.count > 0 && r.captured >= uint64(r.opt.count) {
				stop()
			}
		}
		now := time.Now()
		if r.files != nil && failed == nil {
			var last bool
			if last, failed = r.files.tick(now, n == 0); last || failed != nil {
				stop()
			}
		}
		if r.opt.duration > 0 && now.Sub(begun) >= r.opt.duration {
			r.capture.Stop()
		}
		if r.verdicts != nil && r.verdicts.due(now) {
			if met, err := r.verdicts.judge(r.state()); err != nil {
				failed = errors.Join(failed, err)
				stop()
			} else if met {
				r.capture.Stop()
			}
		}
	}
	if r.verdicts != nil {
		failed = errors.Join(failed, r.verdicts.erase())
	}
	state := r.state()
	if r.files != nil {
		if err := r.files.end(state.until); failed == nil {
			failed = err
		}
	}
	stats, _ := r.capture.Stats()
	r.std.say("%s captured, %s", countWords(r.captured, "packet"), droppedWords(stats))
	var verdict error
	if r.verdicts != nil {
		verdict = r.verdicts.finish(state)
	}
	return errors.Join(failed, verdict)
}

// state asks the capture how it goes.
func (r *liveRun) state() captureState {
	stats, _ := r.capture.Stats() // without an answer what was known before stands
	s := captureState{ifaces: r.capture.Interfaces(), dropped: stats.Dropped}
	s.from, s.until = r.capture.Ran()
	if r.ended {
		s.until = max(r.last, s.from)
	}
	return s
}

func filterWords(expr string) string {
	if expr == "" {
		return ", everything"
	}
	return ", " + expr
}

func (r *liveRun) keptWords() string {
	switch {
	case r.opt.trim:
		return fmt.Sprintf("headers and %d bytes of each packet", live.KeptPayload)
	case r.opt.capture.SnapLen == live.MaxSnapLen:
		return "whole packets"
	}
	return "the first " + strconv.Itoa(r.opt.capture.SnapLen) + " bytes of each packet"
}

func countWords(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatUint(n, 10) + " " + noun + "s"
}

func droppedWords(s live.Stats) string {
	if s.Dropped == 0 {
		return "none dropped by the kernel"
	}
	return fmt.Sprintf("%d DROPPED by the kernel: what is missing from the capture may have been there (-B 131072 gives the kernel more room)", s.Dropped)
}
