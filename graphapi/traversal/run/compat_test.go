package run_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/graphapi/traversal/run"
)

// TestCompatibilityTable compares docs/compat/gremlin-steps.md with the registry: every step has a line with its actual
// state.
func TestCompatibilityTable(t *testing.T) {
	b, err := os.ReadFile("../../../docs/compat/gremlin-steps.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	name := regexp.MustCompile("`([A-Za-z]+)`")
	section := ""
	for _, line := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(line, "## ") {
			section = line
		}
		cells := strings.Split(line, "|")
		if !strings.Contains(section, "Steps") || len(cells) < 4 ||
			strings.HasPrefix(strings.TrimSpace(cells[1]), "-") {
			continue
		}
		for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
			told[m[1]] = strings.TrimSpace(cells[2]) != "no"
		}
	}
	names, supported := run.Steps()
	for _, n := range names {
		state, ok := told[n]
		switch {
		case !ok:
			t.Errorf("the table does not name %s", n)
		case state != supported[n]:
			t.Errorf("%s: the table says %v, the registry %v", n, state, supported[n])
		}
		delete(told, n)
	}
	for n := range told {
		t.Errorf("the table names %s, which is no step", n)
	}
}
