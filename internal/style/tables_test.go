package style

import (
	"strings"
	"testing"
)

// TestTables checks that no blank line lies within a table of a Markdown page: what follows it is no table, and is
// shown as a line with bars. Merges that add rows on both sides leave such lines.
func TestTables(t *testing.T) {
	texts(t, func(name, text string) {
		if strings.HasSuffix(name, ".md") {
			for _, n := range torn(text) {
				t.Errorf("%s:%d: a row of a table behind a blank line", name, n)
			}
		}
	})
}

// torn returns the numbers of the rows that a blank line separates from their table. A row that begins another table
// has a line of dashes below it.
func torn(text string) (rows []int) {
	lines := strings.Split(text, "\n")
	row := func(i int) bool { return i >= 0 && i < len(lines) && strings.HasPrefix(lines[i], "|") }
	for i := range lines {
		begins := row(i+1) && strings.HasPrefix(lines[i+1], "| --")
		if row(i) && i > 0 && lines[i-1] == "" && row(i-2) && !begins {
			rows = append(rows, i+1)
		}
	}
	return rows
}

// The rule must be able to fail.
func TestTheRuleOfTablesBites(t *testing.T) {
	for text, problems := range map[string]int{
		"| a |\n| --- |\n| 1 |\n| 2 |":              0,
		"| a |\n| --- |\n| 1 |\n\n| b |\n| --- |":   0,
		"| a |\n| --- |\n| 1 |\n\ntext\n\n| 2 |":    0,
		"| a |\n| --- |\n| 1 |\n\n| 2 |\n| 3 |":     1,
		"| a |\n| --- |\n| 1 |\n\n| 2 |\n\n| 3 |\n": 2,
	} {
		if got := torn(text); len(got) != problems {
			t.Errorf("%q: rows %d", text, got)
		}
	}
}
