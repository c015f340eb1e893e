package expr

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/mongoapi/merr"
)

// TestBacktracking: what Go's engine doesn't know runs on the other one, with indexes in bytes.
func TestBacktracking(t *testing.T) {
	for _, c := range []struct {
		pattern, options, text string
		want                   [][]int
	}{
		{"(?=b)", "", "ab", [][]int{{1, 1}}},
		{`a(?!b)`, "", "abac", [][]int{{2, 3}}},
		{`(?<=ä)b`, "", "äb b", [][]int{{2, 3}}},
		{`(?<!a)b`, "", "ab b", [][]int{{3, 4}}},
		{`(.)\1`, "", "aäässb", [][]int{{1, 5, 1, 3}, {5, 7, 5, 6}}},
		{`(?>a+)b`, "i", "AAB", [][]int{{0, 3}}},
		{`(?<=(x))y|z`, "", "xyz", [][]int{{1, 2, 0, 1}, {2, 3, -1, -1}}},
		{`^(?!#).+$`, "m", "#no\nyes", [][]int{{4, 7}}},
	} {
		p, prefix, err := Regexp(c.pattern, c.options)
		if err != nil || p.re != nil || prefix != "" {
			t.Errorf("%s: %v, prefix %q, on Go's engine: %t", c.pattern, err, prefix, p != nil && p.re != nil)
			continue
		}
		r := NewRun(context.Background(), nil)
		got, err := r.findAll(p, []byte(c.text), -1)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s in %q: %v, want %v (%v)", c.pattern, c.text, got, c.want, err)
		}
		if !r.Match(p, []byte(c.text)) || r.Match(p, nil) != (c.pattern == "(?=)") {
			t.Errorf("%s doesn't match %q, or matches nothing", c.pattern, c.text)
		}
	}
}

// TestCatastrophe: a pattern that would backtrack for years fails after a moment.
func TestCatastrophe(t *testing.T) {
	for _, p := range []string{`(?=x)?(a+)+$`, `^(?:(\w+)\s?)+\1!$`, `(?!y)(a|aa)+$`} {
		re, _, err := Regexp(p, "")
		if err != nil || re.re != nil {
			t.Fatalf("%s: %v", p, err)
		}
		text := []byte(strings.Repeat("a", 60) + "-")
		began := time.Now()
		r := NewRun(context.Background(), nil)
		if r.Match(re, text); r.Cut() == nil || merr.From(r.Cut()).Code != 51156 {
			t.Errorf("%s: no error but %v", p, r.Cut())
		}
		if _, err := NewRun(context.Background(), nil).findAll(re, text, -1); err == nil {
			t.Errorf("%s: no error of a search", p)
		}
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("%s took %v", p, d)
		}
	}
}
