package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		name, events string
		want         counts
		shows        string
		hides        string
	}{
		{"a pass hides its output", `{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":1.5}`, counts{1, 0}, "pass p  1.5s", "noise"},
		{"a failure shows its output, the package is not counted again",
			`{"Action":"output","Package":"p","Test":"TestA","Output":"why\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}`, counts{1, 1}, "why", ""},
		{"a package that does not build is one failure",
			`{"Action":"build-output","ImportPath":"p","Output":"x.go:1: bad\n"}
{"Action":"fail","Package":"p"}`, counts{0, 1}, "x.go:1: bad", ""},
		{"skips count as neither", `{"Action":"skip","Package":"p","Test":"TestA"}`, counts{0, 0}, "", "TestA"},
	} {
		var out strings.Builder
		if got := read(strings.NewReader(tc.events), &out).counts; got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
		if !strings.Contains(out.String(), tc.shows) || tc.hides != "" && strings.Contains(out.String(), tc.hides) {
			t.Errorf("%s: printed %q", tc.name, out.String())
		}
	}
}

// What failed can only run again by itself if the others of its package have run.
func TestWhatRunsAgain(t *testing.T) {
	for _, tc := range []struct {
		name, events string
		tests        string
		stopped      bool
	}{
		{"a test and one within it", `{"Action":"output","Package":"p","Test":"TestA","Output":"no panic: here\n"}
{"Action":"fail","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"q","Test":"TestB"}
{"Action":"fail","Package":"p"}`, "TestA TestB", false},
		{"a panic", `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: no\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, "TestA", true},
		{"a process that ended", `{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, "TestA", true},
		{"a package that fails by itself", `{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"q"}`, "TestA", true},
	} {
		got := read(strings.NewReader(tc.events), io.Discard)
		if strings.Join(got.tests, " ") != tc.tests || got.stopped != tc.stopped {
			t.Errorf("%s: %v, stopped %v", tc.name, got.tests, got.stopped)
		}
	}
}

func TestSums(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sums")
	for _, c := range []counts{{3, 0}, {4, 0}} {
		if err := add(file, "x", c); err != nil {
			t.Fatal(err)
		}
	}
	if code := printSums(file); code != 0 {
		t.Fatal("all passed, exit", code)
	}
	if code := printSums(file); code == 0 {
		t.Fatal("nothing counted must not pass")
	}
	if err := add(file, "x", counts{3, 1}); err != nil {
		t.Fatal(err)
	}
	if code := printSums(file); code == 0 {
		t.Fatal("a failure must not pass")
	}
}
