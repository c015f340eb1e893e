package sql

import (
	"os"
	"strings"
	"testing"
)

// The compatibility page names every keyword and every aggregate, and no others.
func TestCompatibilityKeywords(t *testing.T) {
	b, err := os.ReadFile("../../docs/compat/sql-language.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	listed := func(from, to, prefix string) map[string]bool {
		_, rest, ok := strings.Cut(page, "\n## "+from+"\n")
		if !ok {
			t.Fatalf("no section %s", from)
		}
		rest, _, _ = strings.Cut(rest, to)
		out := map[string]bool{}
		for _, line := range strings.Split(rest, "\n") {
			cells := strings.Split(line, " | ")
			if !strings.HasPrefix(line, prefix) || len(cells) < 3 {
				continue
			}
			names := cells[0]
			if prefix != "| `" {
				names = cells[1]
			}
			for i, w := range strings.Split(names, "`") {
				if i%2 == 1 {
					out[w] = true
				}
			}
		}
		return out
	}
	same := func(what string, page, code map[string]bool) {
		for w := range code {
			if !page[w] {
				t.Errorf("%s %s is not listed", what, w)
			}
			delete(page, w)
		}
		for w := range page {
			t.Errorf("%s %s is listed and not there", what, w)
		}
	}
	words := map[string]bool{}
	for w := range keywords {
		words[w] = true
	}
	for w := range lowerKeywords {
		words[w] = true
	}
	same("keyword", listed("Keywords", "\nOperators:", "| `"), words)
	aggs := map[string]bool{}
	for w := range aggregates {
		aggs[w] = true
	}
	same("aggregate", listed("Functions", "\n\x00", "| Aggregate "), aggs)
}
