package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/srcproof/srcproof/report"
)

// Saved results stand in for captures, so that packets need not leave the node: what analyze and compare wrote with -o json.

// isSaved tells whether a file holds JSON in place of packets. What cannot be opened is no saved result: whoever opens it as a
// capture says why.
func isSaved(a captureArg) (bool, error) {
	if a.file == "-" {
		return false, nil // it can be read once
	}
	f, err := os.Open(a.file)
	if err != nil {
		return false, nil
	}
	defer func() { _ = f.Close() }() // it was only read
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return false, nil
	}
	var head [512]byte
	n, err := io.ReadFull(f, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("%s: %w", a.file, pathCause(err))
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head[:n], []byte("\xef\xbb\xbf")), " \t\r\n")
	return len(text) > 0 && text[0] == '{', nil
}

// savedNote begins the note of a capture that was not read itself; the SHA-256 of the saved result follows.
const savedNote = "from a saved result, its packets were not read; SHA-256 of the result "

// readSaved reads a saved result. Its label is the file's where it has none of its own.
func readSaved(a captureArg) (*report.Record, error) {
	rec, sum, err := readRecordFile("", a.file)
	if err != nil {
		return nil, err
	}
	if rec.Evidence != nil {
		return nil, &usageError{what: a.file + " is evidence itself", hint: "--check takes it; --before and --after take what analyze and compare wrote"}
	}
	for i := range rec.Captures {
		c := &rec.Captures[i]
		if a.label != "" {
			c.Label = report.Maybe(a.label)
		}
		c.Notes = append(c.Notes, savedNote+sum)
	}
	return rec, nil
}

// readRecordFile reads a record and returns its file's SHA-256 with it.
func readRecordFile(flag, path string) (rec *report.Record, sum string, err error) {
	name := path
	if flag != "" {
		name = flag + " " + path
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", &usageError{what: name + ": no such file"}
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, pathCause(err))
	}
	defer func() { _ = f.Close() }() // it was only read
	digest := sha256.New()
	rec, err = report.Decode(io.TeeReader(f, digest))
	if err != nil {
		make := "srcproof analyze or compare, -o json (not jsonl)"
		if flag != "" {
			make = "srcproof evidence, -o json"
		}
		return nil, "", fmt.Errorf("%s: %w: make one with %s", name, err, make)
	}
	if _, err := io.Copy(digest, f); err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, pathCause(err))
	}
	return rec, hex.EncodeToString(digest.Sum(nil)), nil
}

// writeRedactMap writes what the pseudonyms stand for into a file that only its owner reads. A file that is there is kept: it may
// be the only map of another record.
func writeRedactMap(path string, original map[string]string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &usageError{what: "--redact-map " + path + ": is there already, and is not overwritten", hint: "name a new file"}
	}
	if err != nil {
		return fmt.Errorf("--redact-map %s: %w", path, pathCause(err))
	}
	text, err := json.MarshalIndent(original, "", "  ")
	if err == nil {
		_, err = f.Write(append(text, '\n'))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--redact-map %s: %w", path, pathCause(err))
	}
	return nil
}

// maxRedactMap is more than any record's map has.
const maxRedactMap = 16 << 20

func readRedactMap(path string) (map[string]string, error) {
	text, err := readFacts("--redact-map", path, maxRedactMap)
	if err != nil {
		return nil, err
	}
	var original map[string]string
	if err := json.Unmarshal(text, &original); err != nil {
		return nil, fmt.Errorf("--redact-map %s: not a map that --redact wrote: %w", path, err)
	}
	if slices.Contains(slices.Collect(maps.Values(original)), "") {
		return nil, fmt.Errorf("--redact-map %s: not a map that --redact wrote: an original is empty", path)
	}
	return original, nil
}
