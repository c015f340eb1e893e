package model

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	rowOf   = regexp.MustCompile(`^\| ([PM]\d+) \|`)
	quoted  = regexp.MustCompile("`([^`]+)`")
	inFile  = regexp.MustCompile(` in ([\w./-]+\.\w+)`)
	declare = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// The table of promises (docs/compat/model.md) has each row, names tests that exist, and each test of this package that
// is named after a row.
func TestRowsHaveTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/compat/model.md")
	ok(t, err)
	own := declared(t)
	rows, named := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch first := strings.TrimSpace(cells[0]); {
		case !strings.HasPrefix(line, "| "), first == "row", first == "reader", first == "---":
			continue
		}
		if m := rowOf.FindStringSubmatch(line); m != nil {
			rows[m[1]] = true
		}
		tests := cells[len(cells)-1]
		if strings.HasPrefix(strings.TrimSpace(tests), "none: ") {
			continue
		}
		n := 0
		for part := range strings.SplitSeq(tests, ";") { // names, and the file that has them; none: this package
			file := ""
			for _, q := range strings.Split(part, ", `") {
				q = "`" + strings.TrimPrefix(strings.TrimSpace(q), "`")
				if m := inFile.FindStringSubmatch(part[strings.Index(part, strings.Trim(q, "`")):]); m != nil {
					file = m[1]
				}
				name := quoted.FindStringSubmatch(q)
				if name == nil {
					t.Errorf("no name of a test in %q", q)
					continue
				}
				n++
				if file == "" {
					named[name[1]] = true
					if !own[name[1]] {
						t.Errorf("there is no %s here: %s", name[1], line)
					}
				} else if b, err := os.ReadFile(filepath.Join("../..", file)); err != nil ||
					!strings.Contains(string(b), name[1]) {
					t.Errorf("there is no %q in %s: %v", name[1], file, err)
				}
			}
		}
		if n == 0 {
			t.Errorf("no test: %s", line)
		}
	}
	for letter, last := range map[string]int{"P": 17, "M": 7} {
		for i := range last {
			if row := fmt.Sprint(letter, i+1); !rows[row] {
				t.Errorf("no row %s", row)
			}
		}
	}
	for name := range own {
		if regexp.MustCompile(`^Test[PM]\d`).MatchString(name) && !named[name] {
			t.Errorf("no row names %s", name)
		}
	}
}

// declared returns the tests of this package.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	files, err := filepath.Glob("*_test.go")
	ok(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		ok(t, err)
		for _, m := range declare.FindAllStringSubmatch(string(b), -1) {
			out[m[1]] = true
		}
	}
	return out
}
