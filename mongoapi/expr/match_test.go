package expr

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/mongoapi/merr"
)

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
