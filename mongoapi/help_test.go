package mongoapi

import (
	"strings"
	"testing"
)

// TestHelps checks that help has a text about each command, and only about those.
func TestHelps(t *testing.T) {
	for name := range commands {
		if own, text := helpOf(name); text == "no help defined" || !strings.EqualFold(own, name) {
			t.Errorf("%s has no help", name)
		}
	}
	for line := range strings.Lines(helps) {
		name, _, ok := strings.Cut(line, " ")
		if _, known := commands[name]; ok && !known {
			t.Errorf("%s has help and is no command", name)
		}
	}
}
