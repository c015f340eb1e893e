package main

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// What compiles on one system only is found on the others, in tests too.
func TestCheck(t *testing.T) {
	f := &files{set: token.NewFileSet(), parsed: map[string]*ast.File{}}
	for target, want := range map[string]string{
		"linux/amd64":   "",
		"darwin/arm64":  "",
		"linux/386":     "odd_test.go:6:20: cannot use 1 << 40",
		"windows/amd64": "odd.go:7:35: undefined: syscall.Kill",
		"linux":         "want OS/ARCH",
	} {
		n, err := check("testdata/odd", target, f)
		if want == "" && (err != nil || n != 2) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %d packages, %v, want %q", target, n, err, want)
		}
	}
}
