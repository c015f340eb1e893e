package expr

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/mongoapi/merr"
)

// TestFindEach: finding matches one by one gives the same ones as finding all at once.
func TestFindEach(t *testing.T) {
	texts := []string{
		"",
		"a",
		"abab ab\nab",
		"foo foobar\n\nbar",
		"äöü ÄÖÜ a",
		"x\xffy\xff",
		"aaa",
		"a\n\nb",
		strings.Repeat("ab c", 5),
	}
	for _, p := range []string{"a", "", "a*", "^a", "(?m)^a|b$", `\bfoo\b`, `\B`, "(a)(b)?", "(?i)ä", ".", "(?s).+",
		"$", "(?m)$", "a|ab", `\w+`, "[^a]", "(x*)(y*)", `\z`, "b*?"} {
		re, _, err := Regexp(p, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range texts {
			for _, most := range []int{-1, 1, 2} {
				got, err := NewRun(context.Background(), nil).findEach(re.re, []byte(s), most)
				if want := re.re.FindAllSubmatchIndex([]byte(s), most); err != nil ||
					len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
					t.Errorf("%q in %q, %d: %v, want %v (%v)", p, s, most, got, want, err)
				}
			}
		}
	}
}

// TestMatchEnds: a match on a long text, or one that reads to the end of the text each time, stops when the run has
// ended.
func TestMatchEnds(t *testing.T) {
	re, _, err := Regexp("a(.*b)?", "s")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	r := NewRun(ctx, nil)
	began := time.Now()
	_, err = r.findAll(re, []byte(strings.Repeat("a", 1<<20)), -1)
	if err == nil || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if r.Match(re, []byte(strings.Repeat("x", 1<<20))); r.Cut() == nil {
		t.Error("a match after the end of its run says nothing")
	}
	if r.Under(context.Background()); !r.Match(re, []byte(strings.Repeat("x", 1<<20)+"a")) || r.Cut() != nil {
		t.Error("a run under another context doesn't match")
	}
}

func TestTooLargePattern(t *testing.T) {
	for p, ok := range map[string]bool{"a{1000}": true, "(a{10}){10}": true, "((a{100}){10})": true,
		strings.Repeat("(abc|[a-z]+)", 1000): true,
		strings.Repeat("a{1000}", 40):        false, strings.Repeat(`(\pL{900}|x)`, 40): false} {
		_, _, err := Regexp(p, "")
		if (err == nil) != ok || err != nil && merr.From(err).Code != merr.RegexInvalid {
			t.Errorf("%.30s: %v", p, err)
		}
	}
}
