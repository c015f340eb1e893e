package style

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 120
	tabColumns = 4
)

// TestLines checks that no line of Go is longer than maxColumns. Three kinds of lines may be longer, because they can't
// be split:
//   - one with a struct tag, which is one literal that the language reads as a whole;
//   - one with an address (://) in a comment;
//   - in tests, a row of a table that is one literal, with its key at most, or lies within one.
func TestLines(t *testing.T) {
	texts(t, func(name, text string) {
		if strings.HasSuffix(name, ".go") {
			for _, line := range tooLong(t, name, text) {
				t.Errorf("%s:%d is longer than %d columns", name, line, maxColumns)
			}
		}
	})
}

// columns is the width of a line.
func columns(line string) int {
	return utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
}

// tooLong returns the numbers of the lines of a Go file that are too long.
func tooLong(t *testing.T, name, text string) (lines []int) {
	all := strings.Split(text, "\n")
	long := map[int]bool{}
	for i, line := range all {
		if columns(line) > maxColumns {
			long[i+1] = true
		}
	}
	if len(long) == 0 {
		return nil
	}
	free := exempt(t, name, text)
	for i, line := range all {
		comment := strings.HasPrefix(strings.TrimSpace(line), "//")
		if long[i+1] && !free[i+1] && !(comment && strings.Contains(line, "://")) {
			lines = append(lines, i+1)
		}
	}
	return lines
}

// exempt returns the lines with a struct tag and, in tests, lines that are one literal.
func exempt(t *testing.T, name, text string) map[int]bool {
	free := map[int]bool{}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && f.Tag != nil {
			free[fset.Position(f.Tag.Pos()).Line] = true
		}
		return true
	})
	if !strings.HasSuffix(name, "_test.go") {
		return free
	}
	var s scanner.Scanner
	handle := token.NewFileSet().AddFile(name, -1, len(text))
	s.Init(handle, []byte(text), nil, 0)
	literals, others := map[int]int{}, map[int]int{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		line := handle.Line(pos)
		switch tok {
		case token.STRING:
			literals[line]++
			for n := range strings.Count(lit, "\n") { // the lines within it, and what is behind its end
				literals[line+n+1]++
			}
		case token.COLON: // what precedes it is a key
			literals[line], others[line] = 0, 0
		case token.COMMA, token.LBRACE, token.RBRACE, token.LPAREN, token.RPAREN, token.SEMICOLON, token.ADD:
		default:
			others[line]++
		}
	}
	for line, n := range literals {
		if n == 1 && others[line] == 0 {
			free[line] = true
		}
	}
	return free
}

// The rule must be able to fail.
func TestTheLineRuleBites(t *testing.T) {
	x := strings.Repeat("x", maxColumns)
	for _, c := range []struct {
		name, text string
		lines      int
	}{
		{"a.go", "package a\n\nvar " + x[:maxColumns-8] + " int\n", 0},
		{"a.go", "package a\n\nvar " + x[:maxColumns-7] + " int\n", 1},
		{"a.go", "package a\n\nfunc f() {\n\tg(`" + x[:maxColumns-8] + "`)\n}\n", 1},
		{"a.go", "package a\n\ntype t struct {\n\ta int `" + x + "`\n}\n", 0},
		{"a.go", "package a\n\n// https://" + x + "\n", 0},
		{"a.go", "package a\n\n// x " + x + "\n", 1},
		{"a.go", "package a\n\nvar a = []string{\n\t\"" + x + "\",\n}\n", 1},
		{"a_test.go", "package a\n\nvar a = []string{\n\t\"" + x + "\",\n}\n", 0},
		{"a_test.go", "package a\n\nvar a = map[string]string{\n\t\"k\": \"" + x + "\",\n}\n", 0},
		{"a_test.go", "package a\n\nvar a = []string{\n\t\"" + x + "\", \"y\",\n}\n", 1},
		{"a_test.go", "package a\n\nvar a = f(x, `" + x + "`)\n", 1},
		{"a_test.go", "package a\n\nvar a = `\n" + x + x + "\n`\n", 0},
	} {
		if got := tooLong(t, c.name, c.text); len(got) != c.lines {
			t.Errorf("%s: lines %v of %s", c.name, got, c.text)
		}
	}
}
