//go:build !cgo

package filter

import (
	"strings"
	"testing"
)

func TestWithoutCgo(t *testing.T) {
	if _, err := Compile("tcp"); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=1") {
		t.Errorf("%v", err)
	}
}
