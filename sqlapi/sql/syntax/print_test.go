package syntax

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The printed queries of all scripts parse again, and print the same.
func TestPrintedTextIsTheQuery(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(script)) {
			text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "> ")
			if !ok {
				continue
			}
			if !strings.HasPrefix(strings.ToUpper(text), "SELECT") {
				text = "SELECT VALUE " + text
			}
			q, err := Parse(text, DefaultLimits())
			if err != nil {
				continue // a script with errors
			}
			n++
			printed := PrintQuery(q)
			again, err := Parse(printed, DefaultLimits())
			if err != nil {
				t.Errorf("%s\nprints as %s\n%v", text, printed, err)
			} else if twice := PrintQuery(again); twice != printed {
				t.Errorf("%s\nprints as %s\nand then as %s", text, printed, twice)
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d queries were printed", n)
	}
}
