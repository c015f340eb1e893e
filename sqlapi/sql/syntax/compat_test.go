package syntax

import (
	"maps"
	"os"
	"strings"
	"testing"
)

// The compatibility page has every keyword, and no others.
func TestCompatibilityKeywords(t *testing.T) {
	page, err := os.ReadFile("../../../docs/compat/sql-language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "\n## Keywords\n")
	if !ok {
		t.Fatal("no table of keywords")
	}
	table, _, _ = strings.Cut(table, "\nOperators:")
	left := maps.Clone(keywords)
	maps.Copy(left, lowerKeywords)
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) < 3 {
			continue
		}
		for i, word := range strings.Split(cells[0], "`") {
			if i%2 == 0 {
				continue
			}
			if !left[word] {
				t.Errorf("%s is listed and no keyword, or listed twice", word)
			}
			delete(left, word)
		}
	}
	for word := range left {
		t.Errorf("%s is not listed", word)
	}
}
