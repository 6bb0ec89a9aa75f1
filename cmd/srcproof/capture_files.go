package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/srcproof/srcproof/capture/live"
)

// fileOptions say into which files a capture is written.
type fileOptions struct {
	name       string // "" for none, "-" for standard output
	seconds    int    // -G: a new file after so many seconds; 0 for never
	size       int64  // -C: a new file after so many bytes; 0 for never
	count      int    // -W: 0 for any number
	unbuffered bool   // -U
}

// captureFiles writes a capture into one file or, with tcpdump's meanings of -G, -C and -W, into one after the other.
type captureFiles struct {
	opt     fileOptions
	section live.Section
	std     *stdio
	state   func() captureState
	file    io.WriteCloser
	name    string
	writer  *live.Writer
	begun   time.Time // of the file's time slice
	nth     int       // files of the slice before this one
	slices  int       // time slices begun
	flushed time.Time
	from    int64  // since when the file has all packets, in nanoseconds; 0 is the capture's begin
	last    int64  // the latest frame's time
	dropped uint64 // what the kernel had dropped when the file began
}

// captureState is what is known of a capture that is running, or has run.
type captureState struct {
	ifaces      []live.Interface
	from, until int64 // between which all packets were given
	dropped     uint64
}

func newCaptureFiles(opt fileOptions, section live.Section, std *stdio, state func() captureState) *captureFiles {
	return &captureFiles{opt: opt, section: section, std: std, state: state}
}

// open begins a file.
func (c *captureFiles) open(now time.Time) error {
	if c.begun.IsZero() {
		c.begun, c.slices = now, 1
	}
	if c.opt.name == "-" {
		if _, terminal := terminalWidth(c.std.rawOut); terminal {
			return &usageError{what: "standard output is a terminal", hint: "-w FILE, or pipe it: " + program + " capture -w - | " + program + " analyze -"}
		}
		c.file, c.name = nopCloser{c.std.out}, "standard output"
	} else {
		c.name = c.fileName()
		f, err := os.OpenFile(c.name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644) // tcpdump's mode, less the umask
		if err != nil {
			return fmt.Errorf("-w %s: %w", c.name, pathCause(err))
		}
		if uid, gid, ok := sudoCaller(); ok {
			_ = f.Chown(uid, gid) // a file system without owners is no reason not to capture
		}
		c.file = f
	}
	c.writer = live.NewWriter(c.file, c.section)
	c.flushed = now
	return c.wrap(c.writer.Flush())
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// fileName is the name of the nth file of a time slice (tcpdump(1), -C, -G and -W).
func (c *captureFiles) fileName() string {
	name := c.opt.name
	if c.opt.seconds > 0 {
		name = strftime(name, c.begun)
	}
	if c.opt.size == 0 {
		return name
	}
	if c.opt.count > 0 {
		n := c.nth % c.opt.count
		return name + fmt.Sprintf("%0*d", len(strconv.Itoa(c.opt.count-1)), n)
	}
	if c.nth > 0 {
		name += strconv.Itoa(c.nth)
	}
	return name
}

// strftime fills in the conversions of strftime(3) that file names have.
func strftime(name string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' || i+1 == len(name) {
			b.WriteByte(name[i])
			continue
		}
		i++
		switch name[i] {
		case 'Y':
			b.WriteString(t.Format("2006"))
		case 'y':
			b.WriteString(t.Format("06"))
		case 'm':
			b.WriteString(t.Format("01"))
		case 'd':
			b.WriteString(t.Format("02"))
		case 'H':
			b.WriteString(t.Format("15"))
		case 'M':
			b.WriteString(t.Format("04"))
		case 'S':
			b.WriteString(t.Format("05"))
		case 'j':
			b.WriteString(t.Format("002"))
		case 'F':
			b.WriteString(t.Format("2006-01-02"))
		case 'T':
			b.WriteString(t.Format("15:04:05"))
		case 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case 'z':
			b.WriteString(t.Format("-0700"))
		case '%':
			b.WriteByte('%')
		default:
			b.WriteString(name[i-1 : i+1])
		}
	}
	return b.String()
}

// write writes a frame, into a new file if this one is full.
func (c *captureFiles) write(f *live.Frame, ifaces []live.Interface) error {
	if c.opt.size > 0 && c.writer.Size() >= c.opt.size {
		if err := c.end(c.last); err != nil {
			return err
		}
		c.nth++
		if err := c.open(time.Now()); err != nil {
			return err
		}
	}
	c.last = max(c.last, f.Time)
	err := c.writer.Write(f, ifaces)
	if err == nil && c.opt.unbuffered {
		err = c.flush()
	}
	return c.wrap(err)
}

// flushEvery is how old what was captured may be that is not in the file yet.
const flushEvery = time.Second

// tick does what the clock asks for; last is that the file that just ended was the last one that -W allows.
func (c *captureFiles) tick(now time.Time, idle bool) (last bool, err error) {
	if c.opt.seconds > 0 && now.Sub(c.begun) >= time.Duration(c.opt.seconds)*time.Second {
		if c.opt.count > 0 && c.opt.size == 0 && c.slices >= c.opt.count {
			return true, nil
		}
		if err := c.end(max(c.last, c.state().until)); err != nil {
			return false, err
		}
		c.begun, c.nth = now, 0
		c.slices++
		return false, c.open(now)
	}
	if now.Sub(c.flushed) >= flushEvery || idle && c.opt.name == "-" {
		c.flushed = now
		if f, ok := c.file.(*os.File); ok && isDeleted(f) {
			return false, fmt.Errorf("-w %s: the file was deleted while it was written: its packets are lost, capture again", c.name)
		}
		return false, c.wrap(c.flush())
	}
	return false, nil
}

func (c *captureFiles) flush() error {
	err := c.writer.Flush()
	if err == nil && c.opt.name == "-" {
		err = c.std.out.flush()
	}
	return err
}

// end ends a file that has all packets until a time.
func (c *captureFiles) end(until int64) error {
	if c.file == nil {
		return nil
	}
	now := c.state()
	e := live.Ending{From: c.from, Until: until, Dropped: now.dropped - c.dropped}
	if e.From == 0 {
		e.From = now.from
	}
	e.Until = max(e.From, e.Until)
	c.from, c.dropped = e.Until, now.dropped
	err := c.writer.Close(now.ifaces, e)
	err = errors.Join(c.wrap(err), c.wrap(c.file.Close()))
	c.file = nil
	return err
}

// wrap says what happened to the file, and that what is in it can be read.
func (c *captureFiles) wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("-w %s: no space left: the file can be read up to its last whole packet", c.name)
	}
	if out, ok := errors.AsType[*outputError](err); ok {
		return out
	}
	return fmt.Errorf("-w %s: %w: the file can be read up to its last whole packet", c.name, pathCause(err))
}

// sudoCaller is who called sudo, if that is how we are root.
func sudoCaller() (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	uid, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	if err != nil {
		return 0, 0, false
	}
	gid, err = strconv.Atoi(os.Getenv("SUDO_GID"))
	return uid, gid, err == nil
}
