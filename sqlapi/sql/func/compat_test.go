package funcs

import (
	"os"
	"strings"
	"testing"
)

// The compatibility page names every function of the registry, once, with its state.
func TestCompatibilityFunctions(t *testing.T) {
	page, err := os.ReadFile("../../../docs/compat/sql-language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "\n## Functions\n")
	if !ok {
		t.Fatal("no table of functions")
	}
	states := map[string]string{}
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 || strings.HasPrefix(line, "| Aggregate ") {
			continue
		}
		for i, name := range strings.Split(cells[1], "`") {
			if i%2 == 0 {
				continue
			}
			if states[name] != "" {
				t.Errorf("%s is listed twice", name)
			}
			states[name] = cells[2]
		}
	}
	for _, f := range registry {
		want := "yes"
		if f.Unsupported != "" {
			want = "no"
		}
		if states[f.Name] != want {
			t.Errorf("%s: state %q, is %q", f.Name, states[f.Name], want)
		}
		delete(states, f.Name)
	}
	for name := range states {
		t.Errorf("%s is listed and no function", name)
	}
}
