package onemore

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// recipe adds one thing of a kind.
//
//	kind SQL function                        the heading of docs/contributing.md: "One more SQL function"
//	run sqlapi/sql TestScripts/orrery_twice  a test that must pass with the thing, by its package
//	-- code sqlapi/sql/funcs/twice.go --     a new file of code; its text follows
//	-- entry sqlapi/sql/names.go --          a line of a registry; the line before it follows, then the new one
//	-- data sqlapi/sql/testdata/twice.sql -- a new file of cases, its text follows; or a line of one, as for entry
//	-- row docs/compat/sql-language.md --    a line of a table of the documentation, as for entry
type recipe struct {
	file, kind string
	runs       []run
	places     []place
}

type run struct{ pkg, test string }

// place is a file that is new or has one more line.
type place struct{ what, path, text string }

// most is the largest number of places of each kind that one more thing may need.
var most = map[string]int{"code": 1, "entry": 1, "data": 1, "row": 1}

var header = regexp.MustCompile(`(?m)^-- (\w+) (\S+) --\n`)

func parse(t *testing.T, file string) (r recipe) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	r.file = file
	at := header.FindAllStringSubmatchIndex(text, -1)
	if len(at) == 0 {
		t.Fatalf("%s has no places", file)
	}
	for line := range strings.Lines(text[:at[0][0]]) {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "kind":
			r.kind = rest
		case "run":
			pkg, test, ok := strings.Cut(rest, " ")
			if !ok {
				t.Fatalf("%s: %s", file, line)
			}
			r.runs = append(r.runs, run{pkg, test})
		case "":
		default:
			t.Fatalf("%s: %s", file, line)
		}
	}
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		r.places = append(r.places, place{text[m[2]:m[3]], text[m[4]:m[5]], text[m[1]:end]})
	}
	return r
}

// tree is a copy of the repository, to which one thing of each kind is added. The repository itself is compiled, with
// the changes as an overlay, so everything unchanged is compiled already.
type tree struct {
	from, to string
	overlay  map[string]string // changed files of Go: in the repository, in the copy
}

// left are folders that don't belong to the repository.
var left = []string{"bin", "dist", "data", "node_modules", "__pycache__"}

// files returns the names of the repository's files: those that git knows or doesn't ignore; all files if there is no
// git.
func files(root string) (names []string, err error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard").Output()
	if err == nil {
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains(left, d.Name())):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		rel, err := filepath.Rel(root, p)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	return names, err
}

// plant copies the repository.
func plant(t *testing.T) *tree {
	t.Helper()
	from, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	w := &tree{from: from, to: t.TempDir(), overlay: map[string]string{}}
	names, err := files(from)
	if err != nil || len(names) < 100 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	for _, name := range names {
		old, copied := filepath.Join(from, filepath.FromSlash(name)), filepath.Join(w.to, filepath.FromSlash(name))
		if info, err := os.Lstat(old); err != nil || !info.Mode().IsRegular() {
			continue // deleted and not committed
		}
		b, err := os.ReadFile(old)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(copied), 0o755)
		}
		if err == nil {
			err = os.WriteFile(copied, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// add makes the change in one place.
func (w *tree) add(p place) error {
	file := filepath.Join(w.to, filepath.FromSlash(p.path))
	old, err := os.ReadFile(file)
	text := p.text
	switch isNew := os.IsNotExist(err); {
	case isNew && (p.what == "code" || p.what == "data"):
	case p.what == "code":
		return fmt.Errorf("%s is there already", p.path)
	case err != nil:
		return err
	default:
		anchor, line, ok := strings.Cut(p.text, "\n")
		if ok = ok && strings.Count(line, "\n") == 1; !ok || strings.Count(string(old), anchor+"\n") != 1 {
			return fmt.Errorf("%s: want one line, behind one that is there once: %q", p.path, anchor)
		}
		text = strings.Replace(string(old), anchor+"\n", anchor+"\n"+line, 1)
	}
	if strings.HasSuffix(file, ".go") {
		w.overlay[filepath.Join(w.from, filepath.FromSlash(p.path))] = file
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// compile makes the test binaries of tests with the changes, by package.
func (w *tree) compile(t *testing.T, runs []run) map[string]string {
	t.Helper()
	dir := t.TempDir()
	list, err := json.Marshal(map[string]any{"Replace": w.overlay})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o644); err != nil {
		t.Fatal(err)
	}
	bin := map[string]string{}
	args := []string{"test", "-c", "-pgo=off", "-vet=off", "-ldflags=-s -w", "-overlay", overlay,
		"-o", dir + string(filepath.Separator)}
	for _, r := range runs {
		p := r.pkg
		if bin[p] != "" {
			continue
		}
		args = append(args, "./"+p)
		bin[p] = filepath.Join(dir, filepath.Base(p)+".test")
		if runtime.GOOS == "windows" {
			bin[p] += ".exe"
		}
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = w.from
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// TestOneMore adds one thing of each kind and runs the tests of its recipe. A thing may need one new file of code, one
// line of a registry, one file of cases, and one row of the documentation. All other files stay unchanged. All things
// are compiled together, which takes a third of the time.
func TestOneMore(t *testing.T) {
	texts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(texts) < 7 {
		t.Fatalf("%d recipes: %v", len(texts), err)
	}
	guide, err := os.ReadFile("../../docs/contributing.md")
	if err != nil {
		t.Fatal(err)
	}
	w := plant(t)
	var recipes []recipe
	var runs []run
	for _, file := range texts {
		r := parse(t, file)
		for _, p := range r.places {
			if err := w.add(p); err != nil {
				t.Fatalf("%s: %v", r.kind, err)
			}
		}
		recipes, runs = append(recipes, r), append(runs, r.runs...)
	}
	bin := w.compile(t, runs)
	for _, r := range recipes {
		t.Run(r.kind, func(t *testing.T) {
			if len(r.runs) == 0 {
				t.Error("no test shows that it works")
			}
			for _, problem := range append(r.tooMany(), r.untold(string(guide))...) {
				t.Error(problem)
			}
			t.Logf("%d places", len(r.places))
			for _, run := range r.runs {
				w.passes(t, bin[run.pkg], run)
			}
		})
	}
}

// tooMany lists the places beyond the allowed number.
func (r *recipe) tooMany() (problems []string) {
	n := map[string]int{}
	for _, p := range r.places {
		if n[p.what]++; n[p.what] > most[p.what] {
			problems = append(problems, p.path+" is one "+p.what+" too many")
		}
	}
	return problems
}

// untold lists the differences between the guide and the recipe. The guide's section on the kind has a table with a row
// for each place, in the same order. A row's file is the recipe's, or, for a new file, one in the same folder.
func (r *recipe) untold(guide string) (problems []string) {
	_, part, ok := strings.Cut(guide, "\n## One more "+r.kind+"\n")
	if !ok {
		return []string{"the guide has no part on one more " + r.kind}
	}
	part, _, _ = strings.Cut(part, "\n## ")
	_, table, _ := strings.Cut(part, "\n| --- |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")[1:]
	if len(rows) != len(r.places) {
		return []string{fmt.Sprintf("the guide names %d places, the recipe %d", len(rows), len(r.places))}
	}
	for i, p := range r.places {
		cells := strings.Split(rows[i], "`")
		isNew := p.what == "code" || p.what == "data"
		if len(cells) < 3 || cells[1] != p.path && !(isNew && path.Dir(cells[1]) == path.Dir(p.path)) {
			problems = append(problems, "the guide has "+rows[i]+", the recipe "+p.path)
		}
	}
	return problems
}

// The rules must be able to fail.
func TestTheRulesBite(t *testing.T) {
	const guide = "# Guide\n\n## One more thing\n\n| place | what |\n| --- | --- |\n| `a/b.go` | code |\n" +
		"| `c/d.go` | entry |\n\nText.\n"
	code, entry := place{"code", "a/new.go", ""}, place{"entry", "c/d.go", ""}
	for _, c := range []struct {
		kind            string
		places          []place
		tooMany, untold int
	}{
		{"thing", []place{code, entry}, 0, 0},
		{"other", []place{code, entry}, 0, 1},
		{"thing", []place{code}, 0, 1},
		{"thing", []place{entry, code}, 0, 2},
		{"thing", []place{code, {"entry", "c/e.go", ""}}, 0, 1},
		{"thing", []place{{"code", "x/new.go", ""}, entry}, 0, 1},
		{"thing", []place{code, {"code", "c/new.go", ""}}, 1, 0},
		{"thing", []place{code, {"helper", "c/d.go", ""}}, 1, 0},
	} {
		r := recipe{kind: c.kind, places: c.places}
		if many, un := r.tooMany(), r.untold(guide); len(many) != c.tooMany || len(un) != c.untold {
			t.Errorf("%v: %q %q", c, many, un)
		}
	}
}

// passes runs a test in its package's folder of the copy.
func (w *tree) passes(t *testing.T, bin string, r run) {
	parts := strings.Split(r.test, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	cmd := exec.Command(bin, "-test.v", "-test.run", strings.Join(parts, "/"))
	cmd.Dir = filepath.Join(w.to, filepath.FromSlash(r.pkg))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+r.test+" ") {
		t.Errorf("%s %s: %v\n%s", r.pkg, r.test, err, out)
	}
}
