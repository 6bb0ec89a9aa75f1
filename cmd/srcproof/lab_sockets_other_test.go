//go:build !linux

package main

import (
	"errors"
	"syscall"
)

// transparent is Linux's.
func transparent(_, _ string, _ syscall.RawConn) error { return errors.ErrUnsupported }

// serveTun is Linux's.
func serveTun(string) error { return errors.ErrUnsupported }

// probes are Linux's.
func probes(labRequest) (string, error) { return "", errors.ErrUnsupported }
