package style

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	document = regexp.MustCompile(`[\w./-]*[\w-]\.md\b`)
	decision = regexp.MustCompile(`(?i)\bdecisions?[ /](\d+)`)
	source   = regexp.MustCompile(
		"`((?:cmd|conformance|core|docs|graphapi|internal|mongoapi|sqlapi|tableapi)/[\\w./-]+)`")
	notWord = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// The folder of working papers next to a checkout isn't part of the repository. It is written in two parts, because
// this file is checked too. Continuous integration runs programs that it finds there, and goes without them elsewhere.
const papers = "../" + "shared/"

// TestNamedDocuments checks that everything that a file names exists: links of Markdown with their anchors, mentions of
// Markdown files, and decisions by number; in Markdown also packages and source files in backquotes.
func TestNamedDocuments(t *testing.T) {
	texts(t, func(name, text string) {
		if name == "internal/style/documents_test.go" { // names what isn't there, below
			return
		}
		for _, problem := range missing(name, text) {
			t.Errorf("%s %s", name, problem)
		}
	})
}

// missing lists the missing documents that the text of a file names. name is a slash path from the root.
func missing(name, text string) (problems []string) {
	dir := path.Dir(name)
	if strings.HasSuffix(name, ".md") {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			file := path.Join(dir, target)
			switch {
			case strings.Contains(m[1], "://"):
			case target != "" && !there(file):
				problems = append(problems, "links to "+m[1]+", which isn't there")
			case anchor != "" && target == "" && !hasAnchor(text, anchor):
				problems = append(problems, "links to its part "+anchor+", which isn't there")
			case anchor != "" && target != "" && !hasAnchor(read(file), anchor):
				problems = append(problems, "links to "+m[1]+", which has no such part")
			}
		}
	}
	if strings.HasSuffix(name, ".md") {
		for _, m := range source.FindAllStringSubmatch(text, -1) {
			if !there(m[1]) {
				problems = append(problems, "names "+m[1]+", which isn't there")
			}
		}
	}
	for _, m := range document.FindAllString(strings.ReplaceAll(text, `\n`, " "), -1) {
		if !there(path.Join(dir, m)) && !there(m) {
			problems = append(problems, "names "+m+", which isn't there")
		}
	}
	for _, m := range decision.FindAllStringSubmatch(text, -1) {
		number := "000" + m[1]
		found, err := filepath.Glob(filepath.Join(root, "docs", "decisions", number[len(number)-4:]+"-*.md"))
		if len(found) != 1 || err != nil {
			problems = append(problems, "names decision "+m[1]+", which isn't there")
		}
	}
	if strings.Contains(text, papers) && dir != ".ci" {
		problems = append(problems, "names "+papers)
	}
	return problems
}

func there(file string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(file)))
	return err == nil
}

func read(file string) string {
	text, _ := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	return string(text)
}

// hasAnchor reports whether a Markdown text has a heading with this anchor: its words in lower case, joined by hyphens.
func hasAnchor(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		words := notWord.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(words, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// The rule must be able to fail.
func TestTheDocumentRuleBites(t *testing.T) {
	const no = "nothing" + ".md"
	for _, c := range []struct {
		name, text string
		problems   int
	}{
		{"docs/x.md", "[a](operations.md#full-disk), [b](../README.md), [c](https://example.org/" + "y)", 0},
		{"docs/x.md", "[a](" + no + ")", 2},
		{"docs/x.md", "[a](operations.md#no-such-part)", 1},
		{"docs/x.md", "# A part: one\n[a](#a-part-one) [b](#b)", 1},
		{"docs/x.md", "`core/kv`, `core/kv/kv.go`, `core/" + "nothing.go`, `sqlapi/" + "nothing`", 2},
		{"core/x.go", "// See docs/formats.md and exec/DESIGN.md.", 0},
		{"core/x.go", "// See docs/" + no + " and spec/" + no + ".", 2},
		{"core/x.go", "// See decision 0001, decision 2 and docs/decisions/0003.", 0},
		{"core/x.go", "// See decision " + "9999.", 1},
		{"core/x.go", "// See " + papers + "a.", 1},
	} {
		if got := missing(c.name, c.text); len(got) != c.problems {
			t.Errorf("%s %q: %q", c.name, c.text, got)
		}
	}
}
