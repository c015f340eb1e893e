package sqlapi

import (
	"os"
	"strings"
	"testing"
)

// The first table of the compatibility page lists exactly the routes of the server.
func TestCompatibilityPage(t *testing.T) {
	page, err := os.ReadFile("../docs/compat/sql-rest.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, line := range strings.Split(string(page), "\n") {
		if rest, ok := strings.CutPrefix(line, "| `/"); ok {
			p, _, _ := strings.Cut(rest, "`")
			listed["/"+p] = true
		}
	}
	for _, rt := range routes() {
		if !listed[rt.pattern] {
			t.Errorf("%s is served and not listed", rt.pattern)
		}
		delete(listed, rt.pattern)
	}
	for p := range listed {
		t.Errorf("%s is listed and not served", p)
	}
}
