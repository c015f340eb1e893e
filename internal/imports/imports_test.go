package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/orrerydb/orrery/"

// rooms in the order of the table: a room imports only rooms above it, and itself. A room also holds the packages in
// its folder, except those of a deeper room.
var rooms = []string{
	"core/invariants", "core/few", "core/status", "core/yield", "core/work", "core/budget", "core/clock", "core/ru",
	"core/json", "core/isotime", "core/bson", "core/value", "core/doc", "core/collate", "core/geo", "core/text",
	"core/vector",
	"core/epk", "core/keys", "core/kv",
	"core/kv/memkv", "core/kv/pebblekv", "core/kv/tikvkv", "core/kv/kvtest", "core/lease", "core/spill", "core/journal",
	"core/catalog", "core/index", "core/store", "core/feed", "core/jobs", "core/plan/access", "core/plan", "core/exec",
	"core", "core/move",
	"graphapi/gvalue", "graphapi/wire", "graphapi/gremlin", "graphapi/graph", "graphapi/traversal/compile",
	"graphapi/traversal/run",
	"sqlapi/sql/syntax", "sqlapi/sql/funcs", "sqlapi/sql/shape", "sqlapi/sql/expand", "sqlapi/sql/sarg",
	"sqlapi/sql/gateway", "sqlapi/sql", "sqlapi/wire", "sqlapi/script",
	"sqlapi", "tableapi", "graphapi", "mongoapi", "cmd",
}

// only has the rooms that may import less than everything above.
var only = map[string][]string{
	"core/invariants":  {},
	"core/few":         {},
	"core/status":      {},
	"core/yield":       {},
	"core/work":        {"core/status"},
	"core/budget":      {"core/status"},
	"core/clock":       {},
	"core/ru":          {},
	"core/json":        {"core/status"},
	"core/isotime":     {},
	"core/bson":        {},
	"core/value":       {"core/invariants", "core/status", "core/json", "core/isotime", "core/bson"},
	"core/doc":         {"core/invariants", "core/status", "core/json", "core/isotime", "core/bson", "core/value"},
	"core/collate":     {"core/bson", "core/value"},
	"core/geo":         {"core/invariants", "core/status", "core/value"},
	"core/text":        {},
	"core/vector":      {"core/bson", "core/value"},
	"core/epk":         {"core/invariants", "core/status", "core/value", "core/doc"},
	"core/keys":        {"core/invariants", "core/status", "core/bson", "core/value", "core/epk"},
	"core/kv":          {"core/invariants", "core/status"},
	"core/kv/memkv":    {"core/invariants", "core/status", "core/kv"},
	"core/kv/pebblekv": {"core/clock", "core/few", "core/invariants", "core/status", "core/kv"},
	"core/kv/kvtest":   {"core/clock", "core/invariants", "core/status", "core/kv"},
	"core/lease":       {"core/clock", "core/few", "core/keys", "core/kv", "core/status", "core/work"},
	"core/spill":       {"core/status", "core/budget"},
	"core/journal": {"core/clock", "core/keys", "core/kv", "core/status", "core/bson", "core/value",
		"core/work"},
	"core/move": {"core", "core/catalog", "core/clock", "core/keys", "core/kv", "core/lease", "core/status",
		"core/store", "core/work"},
	"tableapi": forAPIs, "mongoapi": forAPIs,

	"sqlapi/sql/syntax": {"core/json", "core/status", "core/value"},
	"sqlapi/sql/funcs": {"core/bson", "core/doc", "core/geo", "core/isotime", "core/status", "core/text", "core/value",
		"core/vector"},
	"sqlapi/sql/shape":  {"core/plan/access", "core/doc", "core/value", "sqlapi/sql/syntax", "sqlapi/sql/funcs"},
	"sqlapi/sql/expand": {"core/value", "sqlapi/sql/syntax", "sqlapi/sql/funcs", "sqlapi/sql/shape"},
	"sqlapi/sql/sarg": {"core", "core/plan/access", "core/doc", "core/exec", "core/geo", "core/text", "core/value",
		"sqlapi/sql/syntax", "sqlapi/sql/funcs", "sqlapi/sql/shape"},
	"sqlapi/sql/gateway": {"core", "core/plan/access", "core/json", "core/value", "sqlapi/sql/syntax",
		"sqlapi/sql/funcs", "sqlapi/sql/shape"},
	"sqlapi/sql": slices.Concat(forAPIs, []string{"sqlapi/sql/syntax", "sqlapi/sql/funcs", "sqlapi/sql/shape",
		"sqlapi/sql/expand", "sqlapi/sql/sarg", "sqlapi/sql/gateway"}),
	"sqlapi/wire":   {"core/json", "core/status"},
	"sqlapi/script": {"core/clock", "core/json", "core/doc", "core/geo", "core/value"},
	"sqlapi": slices.Concat(forAPIs, []string{"sqlapi/sql", "sqlapi/sql/expand", "sqlapi/sql/syntax",
		"sqlapi/wire", "sqlapi/script"}),

	"graphapi/gvalue":            {"core/isotime"},
	"graphapi/wire":              {"core/json", "graphapi/gvalue"},
	"graphapi/gremlin":           {"graphapi/gvalue"},
	"graphapi/graph":             slices.Concat(forAPIs, []string{"graphapi/gvalue"}),
	"graphapi/traversal/compile": {"core/plan/access", "core/value", "graphapi/gvalue", "graphapi/gremlin"},
	"graphapi/traversal/run": slices.Concat(forAPIs, []string{"graphapi/gvalue", "graphapi/wire", "graphapi/gremlin",
		"graphapi/graph", "graphapi/traversal/compile"}),
	"graphapi": slices.Concat(forAPIs, []string{"graphapi/gvalue", "graphapi/wire", "graphapi/traversal/run"}),
}

// forAPIs are the packages that an API may import: the facade and the vocabulary, not the store below, and no other
// API.
var forAPIs = []string{"core", "core/few", "core/bson", "core/json", "core/isotime", "core/doc", "core/value",
	"core/collate", "core/geo", "core/text", "core/vector", "core/plan", "core/plan/access", "core/exec", "core/feed",
	"core/status", "core/clock", "core/ru", "core/invariants", "core/budget", "core/spill", "core/yield",
	"core/journal"}

// engines may be imported only by cmd and by each other's tests.
var engines = []string{"core/kv/memkv", "core/kv/pebblekv", "core/kv/tikvkv", "core/kv/kvtest"}

// libraries that only some rooms may import.
var libraries = map[string][]string{
	"github.com/gin-gonic/gin":      {"internal/rest", "sqlapi", "tableapi", "cmd"},
	"github.com/dop251/goja":        {"sqlapi/script", "cmd/orrery/mongoshell"},
	"go.mongodb.org/mongo-driver":   {"mongoapi/internal/mtest"}, // which only tests import
	"github.com/cockroachdb/apd":    {"core/bson"},
	"github.com/cockroachdb/pebble": {"core/kv/pebblekv"},
	"github.com/tidwall/btree":      {"core/kv/memkv", "core/catalog"},
	"github.com/coocood/freecache":  {"core/kv/pebblekv"},
	"github.com/golang/geo":         {"core/geo"},

	"github.com/blevesearch/snowballstem": {"core/text"},
	"github.com/tikv/client-go":           {"core/kv/tikvkv"},
	"github.com/google/uuid": {"core/clock", "core/value", "core/doc", "sqlapi", "tableapi", "graphapi",
		"mongoapi"},
	"github.com/spf13/cobra":                 {"cmd"},
	"github.com/spf13/pflag":                 {"cmd"},
	"github.com/prometheus/client_golang":    {"cmd"},
	"github.com/Azure/":                      {},
	"github.com/apache/tinkerpop/gremlin-go": {},
}

// clockCalls read time or randomness. Outside core/clock they would ignore a frozen clock.
var clockCalls = map[string][]string{
	"time":                   {"Now", "Since", "Until"},
	"github.com/google/uuid": {"New", "NewString", "NewRandom", "Must", "NewV7", "NewUUID"},
	"math/rand":              nil, "math/rand/v2": nil, // nil: the import itself
	"crypto/rand": nil,
}

// clockFree are exempt: the clock itself, and packages for tests. TLS keys need crypto/rand, which no test freezes. The
// engine's background work uses real pauses, independent of the time of items.
var clockFree = map[string][]string{
	"core/clock":           {"time", "github.com/google/uuid", "math/rand", "math/rand/v2", "crypto/rand"},
	"core/kv/kvtest":       {"math/rand/v2"},
	"cmd/orrery/certs":     {"crypto/rand"},
	"core/kv/pebblekv":     {"time"},
	"core/kv/pebblekv/aio": {"time"}, // deadlines
	"internal/netlimit":    {"time"}, // deadlines of sockets
	"mongoapi/peer":        {"time"}, // the same
	"internal/tally":       {"time"},
}

// goFree may start goroutines themselves: the package for background work, engines, whose failures end the process, and
// servers of connections or of processes. Elsewhere a panic in a goroutine would end the process for a fault in one
// container.
var goFree = []string{"core/work", "core/kv", "mongoapi", "graphapi", "sqlapi/script", "cmd", "internal"}

// file is one parsed Go file.
type file struct {
	name, pkg string // slash paths from the root
	test      bool
	ast       *ast.File
	imports   map[string]string // path -> name in this file
	pos       func(token.Pos) int
}

func root(t *testing.T) string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sources parses the files of this module. Other modules in the tree are left out.
func sources(t *testing.T) []file {
	dir := root(t)
	fset := token.NewFileSet()
	var out []file
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != dir {
			_, err := os.Stat(filepath.Join(p, "go.mod"))
			if err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		rel = filepath.ToSlash(rel)
		imports := map[string]string{}
		for _, i := range f.Imports {
			ip, _ := strconv.Unquote(i.Path.Value)
			name := path.Base(ip)
			if len(name) > 1 && name[0] == 'v' && name[1] >= '0' && name[1] <= '9' {
				name = path.Base(path.Dir(ip))
			}
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[ip] = name
		}
		out = append(out, file{name: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), ast: f,
			imports: imports,
			pos:     func(p token.Pos) int { return fset.Position(p).Line }})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// in reports whether pkg is one of the folders or below one.
func in(pkg string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return pkg == f || strings.HasPrefix(pkg, f+"/") })
}

// roomOf returns the deepest room that holds pkg, "" if there is none.
func roomOf(pkg string) string {
	best := ""
	for _, r := range rooms {
		if len(r) > len(best) && in(pkg, []string{r}) {
			if r == "core" && pkg != "core" { // a folder below core that isn't in the table
				continue
			}
			best = r
		}
	}
	return best
}

// allowed says why pkg must not import target (both from the root), "" if it may. Tests may also import engines.
func allowed(pkg, target string, test bool) string {
	from, to := roomOf(pkg), roomOf(target)
	switch {
	case in(pkg, []string{"internal"}):
		return ""
	case in(target, []string{"internal"}):
		return ""
	case from == "":
		return "package is in no room: add it to the table of docs/architecture.md and to rooms"
	case to == "":
		return "imported package is in no room"
	case from == to:
		return ""
	case slices.Contains(engines, to):
		if test || from == "cmd" {
			return ""
		}
		return "only cmd and tests name a concrete engine"
	case test && strings.HasPrefix(from, "core") && strings.HasPrefix(to, "core"):
		return "" // a test in core may import any room of core
	}
	if list, ok := only[from]; ok {
		if slices.Contains(list, to) || test && strings.HasPrefix(to, "core/kv") {
			return ""
		}
		return fmt.Sprintf("%s may import only %v", from, list)
	}
	if slices.Index(rooms, to) > slices.Index(rooms, from) {
		return fmt.Sprintf("%s is below %s in the table", to, from)
	}
	return ""
}

func TestRoomsImportOnlyRoomsAbove(t *testing.T) {
	for _, f := range sources(t) {
		for ip := range f.imports {
			target, ours := strings.CutPrefix(ip, module)
			if !ours {
				continue
			}
			if why := allowed(f.pkg, target, f.test); why != "" {
				t.Errorf("%s imports %s: %s", f.name, target, why)
			}
		}
	}
}

func TestLibrariesStayInTheirRooms(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || f.pkg == "internal/deps" {
			continue
		}
		for ip := range f.imports {
			for lib, where := range libraries {
				if strings.HasPrefix(ip, lib) && !in(f.pkg, where) {
					t.Errorf("%s imports %s: only %v may", f.name, ip, where)
				}
			}
		}
	}
}

func TestTimeAndChanceComeFromTheClock(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		for ip, names := range clockCalls {
			local, imported := f.imports[ip]
			if !imported || slices.Contains(clockFree[f.pkg], ip) {
				continue
			}
			if names == nil {
				t.Errorf("%s imports %s: take randomness from core/clock", f.name, ip)
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && x.Name == local && slices.Contains(names, s.Sel.Name) {
					t.Errorf("%s:%d uses %s.%s: take it from core/clock", f.name, f.pos(s.Pos()), local, s.Sel.Name)
				}
				return true
			})
		}
	}
}

// started returns what starts a goroutine at a node, "" for nothing. A call of Go with one argument is that of a
// WaitGroup or an errgroup; work.Group's has two.
func started(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		switch {
		case !ok:
		case s.Sel.Name == "Go" && len(n.Args) == 1:
			return "a call of Go"
		case s.Sel.Name == "AfterFunc":
			return "a call of AfterFunc"
		}
	}
	return ""
}

func TestBackgroundWorkIsGuarded(t *testing.T) {
	seen := 0
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			what := started(n)
			if what == "" {
				return true
			}
			seen++
			if !in(f.pkg, goFree) {
				t.Errorf("%s:%d has %s: start background work with core/work", f.name, f.pos(n.Pos()), what)
			}
			return true
		})
	}
	if seen < 5 {
		t.Errorf("only %d starts of goroutines were found: the test looks for the wrong thing", seen)
	}
}

// TiKV has only the order of bytes.Compare, so Pebble must not have another one.
func TestPebbleKeepsItsByteOrder(t *testing.T) {
	for _, f := range sources(t) {
		if _, ok := f.imports["github.com/cockroachdb/pebble/v2"]; !ok {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && (id.Name == "Comparer" || id.Name == "Merger") {
				t.Errorf("%s:%d names Pebble's %s", f.name, f.pos(id.Pos()), id.Name)
			}
			return true
		})
	}
}

// The rules must be able to fail: the first edges violate them, the second ones don't.
func TestTheRulesBite(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		test, ok bool
	}{
		{"sqlapi", "core", false, true},
		{"sqlapi/sql", "core/value", false, true},
		{"sqlapi", "core/store", false, false},
		{"sqlapi", "core/kv", false, false},
		{"sqlapi", "tableapi", false, false},
		{"mongoapi/filter", "sqlapi/sql", true, false},
		{"sqlapi/sql", "sqlapi/sql/sarg", false, true},
		{"sqlapi/sql/sarg", "sqlapi/sql", false, false},
		{"sqlapi/sql/gateway", "sqlapi/sql/sarg", false, false},
		{"sqlapi/sql/syntax", "sqlapi/sql/funcs", false, false},
		{"sqlapi/sql/funcs", "sqlapi/sql/syntax", false, false},
		{"sqlapi", "sqlapi/sql/sarg", false, false},
		{"graphapi", "core/kv/memkv", false, false},
		{"graphapi", "graphapi/traversal/run", false, true},
		{"graphapi", "graphapi/graph", false, false},
		{"graphapi/traversal/compile", "core/exec", false, false},
		{"graphapi/traversal/compile", "graphapi/graph", false, false},
		{"graphapi/graph", "graphapi/traversal/compile", false, false},
		{"graphapi/wire/graphson", "graphapi/wire/message", false, true},
		{"graphapi/wire/graphson", "core/value", false, false},
		{"graphapi", "core/kv/memkv", true, true},
		{"core", "core/kv/pebblekv", false, false},
		{"core/store", "core/index", false, true},
		{"core/index", "core/store", false, false},
		{"core/exec", "core", false, false},
		{"core/status", "core/value", false, false},
		{"core/kv", "core/keys", false, false},
		{"core/value", "sqlapi", false, false},
		{"core/unheardof", "core/status", false, false},
		{"cmd/orrery", "core/kv/pebblekv", false, true},
		{"cmd/orrery/server", "mongoapi", false, true},
	} {
		if why := allowed(tc.from, tc.to, tc.test); (why == "") != tc.ok {
			t.Errorf("%s -> %s (test %v): %q", tc.from, tc.to, tc.test, why)
		}
	}
}
