package imports

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/orrerydb/orrery/"

// room is a folder of the table of docs/architecture.md, which is the rule. The packages below the folder are in the
// room too, except those of a deeper room.
type room struct {
	row   string   // its row's first column
	names []string // the rooms that its row names in the last column
	may   []string // the rooms that it may import: these, and those that api or "everything above" stand for
}

// api is the row with what all APIs may import. Other rows name it.
const api = "an API"

var (
	quoted    = regexp.MustCompile("`([^`]+)`")
	tableHead = "| room | what it does | may import (ours) |\n| --- | --- | --- |\n"
)

// readRooms reads the table. A row names a room above it by its folder, or by the end of its folder.
func readRooms(text string) (map[string]room, error) {
	_, table, found := strings.Cut(text, tableHead)
	if !found {
		return nil, errors.New("no table of rooms")
	}
	rooms := map[string]room{}
	for line := range strings.Lines(table) {
		columns := strings.Split(line, "|")
		if len(columns) != 5 {
			break
		}
		r := room{row: strings.TrimSpace(columns[1])}
		for name := range strings.SplitSeq(strings.TrimSpace(columns[3]), ", ") {
			switch name {
			case "nothing":
			case "everything above":
				r.may = slices.AppendSeq(r.may, maps.Keys(rooms))
			case api:
				r.may = append(r.may, rooms[api].may...)
				r.names = append(r.names, api)
			default:
				above := named(rooms, name)
				if len(above) != 1 {
					return nil, fmt.Errorf("%s may import %q: above it are %q", r.row, name, above)
				}
				r.may, r.names = append(r.may, above...), append(r.names, above...)
			}
		}
		if r.row == api {
			rooms[api] = r
		}
		for _, m := range quoted.FindAllStringSubmatch(r.row, -1) {
			rooms[m[1]] = r
		}
	}
	return rooms, nil
}

// named returns the rooms with this name.
func named(rooms map[string]room, name string) (found []string) {
	for folder := range rooms {
		if folder == name || strings.HasSuffix(folder, "/"+name) {
			found = append(found, folder)
		}
	}
	slices.Sort(found)
	return found
}

// theRooms returns the rooms of docs/architecture.md.
func theRooms(t *testing.T) map[string]room {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash("docs/architecture.md")))
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := readRooms(string(text))
	if err != nil {
		t.Fatal("docs/architecture.md: ", err)
	}
	return rooms
}

// engines, and their interface, may be imported by all tests.
var engines = []string{"core/kv", "core/kv/memkv", "core/kv/pebblekv", "core/kv/tikvkv", "core/kv/kvtest"}

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
	other     bool // of another module than this one
	ast       *ast.File
	imports   map[string]string // path -> name in this file
	pos       func(token.Pos) int
}

const root = "../.."

// allSources returns the files of all modules in the tree.
func allSources(t *testing.T) []file {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sources returns the files of this module.
func sources(t *testing.T) []file {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(allSources(t)), func(f file) bool { return f.other })
}

// parsed parses all files, once for all tests.
var parsed = sync.OnceValues(func() (out []file, err error) {
	fset := token.NewFileSet()
	var others []string // folders of other modules
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() && p != root {
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
				others = append(others, rel)
			}
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
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
		out = append(out, file{name: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"),
			other: in(rel, others), ast: f, imports: imports,
			pos: func(p token.Pos) int { return fset.Position(p).Line }})
		return nil
	})
	return out, err
})

// in reports whether pkg is one of the folders or below one.
func in(pkg string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return pkg == f || strings.HasPrefix(pkg, f+"/") })
}

// roomOf returns the deepest room that holds pkg, "" if there is none.
func roomOf(rooms map[string]room, pkg string) string {
	for dir := pkg; dir != "."; dir = path.Dir(dir) {
		if _, ok := rooms[dir]; ok && (dir != "core" || pkg == "core") { // folders below core have rooms of their own
			return dir
		}
	}
	return ""
}

// allowed says why pkg must not import target (both from the root), "" if it may. Tests may also import engines, what
// is in internal, and other rooms of their own API or of the core.
func allowed(rooms map[string]room, pkg, target string, test bool) string {
	from, to := roomOf(rooms, pkg), roomOf(rooms, target)
	switch {
	case from == "":
		return "the package is in no room: add it to the table of docs/architecture.md"
	case to == "":
		return "the imported package is in no room"
	case from == to, slices.Contains(rooms[from].may, to):
		return ""
	case test && (slices.Contains(engines, to) || in(to, []string{"internal"}) || in(from, []string{"internal"})):
		return ""
	case test && top(from) == top(to):
		return ""
	}
	return fmt.Sprintf("the row of %s in docs/architecture.md doesn't name %s", rooms[from].row, to)
}

// top returns the folder of a path that is in the root.
func top(pkg string) string {
	first, _, _ := strings.Cut(pkg, "/")
	return first
}

func TestRoomsImportWhatTheTableSays(t *testing.T) {
	rooms := theRooms(t)
	used := map[string]map[string]bool{} // row -> rooms that it imports
	use := func(row, to string) {
		if used[row] == nil {
			used[row] = map[string]bool{}
		}
		used[row][to] = true
	}
	for _, f := range allSources(t) {
		for ip := range f.imports {
			target, ours := strings.CutPrefix(ip, module)
			if !ours {
				continue
			}
			if why := allowed(rooms, f.pkg, target, f.test); why != "" {
				t.Errorf("%s imports %s: %s", f.name, target, why)
			}
			if from, to := rooms[roomOf(rooms, f.pkg)], roomOf(rooms, target); !f.test {
				use(from.row, to)
				if slices.Contains(from.names, api) {
					use(from.row, api)
					use(api, to)
				}
			}
		}
	}
	for _, r := range rooms {
		for _, to := range r.names {
			if !used[r.row][to] {
				t.Errorf("the row of %s in docs/architecture.md names %s, which it doesn't import", r.row, to)
			}
		}
	}
}

func TestLibrariesStayInTheirRooms(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
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

// lookUps are the look-ups of core.Engine without a ctx, with the number of their arguments. Tests, and commands
// without a deadline, may use them. core.Lookups has the same names: it is what Engine.Within returns.
var lookUps = map[string]int{"Container": 2, "ContainerFold": 2, "ContainerByRID": 1, "Database": 1,
	"DatabaseByRID": 1, "Resource": 4, "Containers": 1}

// requests are the packages that answer requests.
var requests = []string{"sqlapi", "tableapi", "graphapi", "mongoapi", "cmd/orrery/server"}

// unbounded returns the name of the look-up without a ctx that a node calls, "" for none. What Within returned is
// called names, if it has a name.
func unbounded(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 || lookUps[s.Sel.Name] != len(call.Args) {
		return ""
	}
	switch x := s.X.(type) {
	case *ast.Ident:
		if x.Name == "names" {
			return ""
		}
	case *ast.CallExpr:
		if f, ok := x.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Within" {
			return ""
		}
	}
	return s.Sel.Name
}

// While a store doesn't answer, what a request looks up ends with the request.
func TestRequestsLookUpWithinTheirCtx(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || !in(f.pkg, requests) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if name := unbounded(n); name != "" {
				t.Errorf("%s:%d calls %s: look it up with Within", f.name, f.pos(n.Pos()), name)
			}
			return true
		})
	}
	for text, want := range map[string]string{
		`s.core.Container(db, id)`: "Container", `e.Database(id)`: "Database", `s.Engine().ContainerByRID(rid)`: "ContainerByRID",
		`s.core.Within(ctx).Container(db, id)`: "", `names.Container(db, id)`: "", `ct.Database()`: "",
	} {
		x, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := unbounded(x); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
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
	rooms := theRooms(t)
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
		if why := allowed(rooms, tc.from, tc.to, tc.test); (why == "") != tc.ok {
			t.Errorf("%s -> %s (test %v): %q", tc.from, tc.to, tc.test, why)
		}
	}
}

// A row must name rooms above it, each by a name that no other has.
func TestTheTableIsRead(t *testing.T) {
	head := tableHead + "| `a/x`, `b/x` | | nothing |\n| an API | | a/x |\n"
	for _, tc := range []struct{ row, err string }{
		{"| `c` | | a/x, b/x |", ""},
		{"| `c` | | an API, b/x |", ""},
		{"| `c` | | everything above |", ""},
		{"| `c` | | x |", "above it are [\"a/x\" \"b/x\"]"},
		{"| `c` | | d |", "above it are []"},
	} {
		rooms, err := readRooms(head + tc.row + "\n\ntext")
		switch {
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
			t.Errorf("%s: %v, want %s", tc.row, err, tc.err)
		case tc.err == "" && (err != nil || !slices.Contains(rooms["c"].may, "a/x") || len(rooms["a/x"].may) > 0):
			t.Errorf("%s: %v, %+v", tc.row, err, rooms)
		}
	}
	if _, err := readRooms("text"); err == nil {
		t.Error("a text without the table")
	}
}
