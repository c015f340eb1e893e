package funcs

import (
	"os"
	"strings"
	"testing"
)

// The compatibility page has every function of the registry and every aggregate once, with its state.
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
		if len(cells) < 3 {
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
	told := func(name, want string) {
		if states[name] != want {
			t.Errorf("%s: state %q, is %q", name, states[name], want)
		}
		delete(states, name)
	}
	for _, f := range registry {
		want := "yes"
		if f.Unsupported != "" {
			want = "no"
		}
		told(f.Name, want)
	}
	for name := range aggregates {
		told(name, "yes")
	}
	for name := range states {
		t.Errorf("%s is listed and no function", name)
	}
}
