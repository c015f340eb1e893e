package regex

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestFindEach: matches that are found one by one, as in a long text, are those that are found all at once.
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
		re := regexp.MustCompile(p)
		for _, s := range texts {
			for _, most := range []int{-1, 1, 2} {
				got, err := findEach(re, []byte(s), most, context.Background())
				if want := re.FindAllSubmatchIndex([]byte(s), most); err != nil ||
					len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
					t.Errorf("%q in %q, %d: %v, want %v (%v)", p, s, most, got, want, err)
				}
			}
		}
	}
}

// TestEnds: a match of a long text by a large pattern, and matches that read to the end of the text each time, end.
func TestEnds(t *testing.T) {
	text := []byte(strings.Repeat("a", 1<<20))
	for name, match := range map[string]func(context.Context) error{
		"a match": func(ctx context.Context) error {
			_, err := Match(regexp.MustCompile("(a?){1000}b"), text, ctx)
			return err
		},
		"many matches": func(ctx context.Context) error {
			_, err := FindAll(regexp.MustCompile("(?s)a(.*b)?"), text, -1, ctx)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		began := time.Now()
		if err := match(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(began))
		}
		cancel()
	}
	if ok, err := Match(regexp.MustCompile("a$"), text, context.Background()); !ok || err != nil {
		t.Errorf("a long text: %v %v", ok, err)
	}
}
