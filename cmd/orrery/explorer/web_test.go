package explorer

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// maxPage is the limit of all files of the page together, in bytes.
const maxPage = 250_000

func TestSizeOfThePage(t *testing.T) {
	n := 0
	for _, f := range files {
		n += len(f.text)
	}
	t.Logf("%d files, %d bytes", len(files), n)
	if n > maxPage || files["index.html"] == nil {
		t.Errorf("%d bytes, want at most %d", n, maxPage)
	}
}

// markup are the ways in which a text becomes markup or code.
var markup = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|` +
	`DOMParser|createContextualFragment|setTimeout\(\s*['"]|srcdoc|javascript:`)

var imported = regexp.MustCompile(`(?:from|import)\s*\(?\s*['"` + "`" + `]([^'"` + "`" + `]+)`)

func TestCodeOfThePage(t *testing.T) {
	for name, f := range files {
		text := string(f.text)
		if strings.Contains(text, "src=\"http") || strings.Contains(text, "from 'http") {
			t.Errorf("%s loads something from elsewhere", name)
		}
		if path.Ext(name) != ".js" {
			continue
		}
		for i, line := range strings.Split(text, "\n") { // its text would lose tabs
			if strings.Count(line, "`")%2 != 0 || strings.HasPrefix(line, "\t") {
				t.Errorf("%s:%d begins or ends a text of several lines, or is indented", name, i+1)
			}
		}
		if m := markup.FindString(text); m != "" {
			t.Errorf("%s has %s: texts must not become markup or code", name, m)
		}
		if strings.Contains(text, "fetch(") && name != "api.js" {
			t.Errorf("%s sends requests: only api.js does", name)
		}
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "${") || m[1][0] != '.' {
				continue // the panes, by app.js; programs that Connect shows
			}
			to := path.Join(path.Dir(name), m[1])
			if files[to] == nil {
				t.Errorf("%s imports %s, which isn't there", name, to)
			}
			if strings.HasPrefix(to, "panes/") && name != "app.js" {
				t.Errorf("%s imports the pane %s", name, to)
			}
			if !strings.HasPrefix(name, "panes/") && name != "app.js" && to == "app.js" {
				t.Errorf("%s imports app.js", name)
			}
		}
	}
}
