package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// TestMain runs the program itself where a test starts it as one.
func TestMain(m *testing.M) {
	if os.Getenv("ORRERY_COPY_ITSELF") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// createGraph creates a graph by NoSQL; Gremlin can't.
func createGraph(t *testing.T, s *server.Server, key, path string) {
	t.Helper()
	createNoSQL(t, reach(t, "nosql", s, key, "d/g").(*nosql), path)
}

// graphPair has a graph of n vertices and n edges at its source. key is the partition key's path.
func graphPair(t *testing.T, path string, n int) (*pair, *gremlin) {
	t.Helper()
	p := newPair(t)
	createGraph(t, p.from, "FROM_KEY", path)
	createGraph(t, p.to, "TO_KEY", path)
	from := reach(t, "gremlin", p.from, "FROM_KEY", "d/g").(*gremlin)
	key := strings.TrimPrefix(path, "/")
	if from.key = key; path == "/_partitionKey" {
		from.key = ""
	}
	pk := func(i int) string { return fmt.Sprintf("p%d", i%5) }
	id := func(i int) any {
		if i%3 == 0 && from.key == "" { // with a partition key of its own, a graph has texts as ids only
			return int64(i)
		}
		return fmt.Sprintf("v%d'", i)
	}
	var vertices, edges []change
	for i := range n {
		v := &element{id: id(i), label: "person", props: []property{{key: "n", value: int64(i)},
			{key: "tag", value: "a", meta: []property{{key: "since", value: int32(2020)}, {key: "by", value: "x\"y"}}},
			{key: "tag", value: "b"}, {key: "half", value: 0.5}, {key: "yes", value: true}}}
		e := &element{id: fmt.Sprintf("e%d", i), label: "knows", out: &end{id(i), pk(i)},
			in:    &end{id((i * 7) % n), pk((i * 7) % n)},
			props: []property{{key: "weight", value: float64(i)}, {key: "why", value: "it's\nso"}}}
		if from.key != "" {
			v.props = append(v.props, property{key: key, value: pk(i)})
		}
		vertices, edges = append(vertices, change{element: v}), append(edges, change{element: e})
	}
	for _, batch := range [][]change{vertices, edges} {
		if bad, err := from.apply(context.Background(), batch); err != nil || len(bad) > 0 {
			t.Fatal(bad, err)
		}
	}
	return p, from
}

// elements are all elements of a graph, sorted.
func elements(t *testing.T, g *gremlin) []string {
	t.Helper()
	var out []string
	err := g.changes(context.Background(), nil, false, func(batch []change, _ json.RawMessage) error {
		for _, c := range batch {
			e := c.element
			slices.SortFunc(e.props, func(a, b property) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			text := fmt.Sprintf("%T %v %s %#v", e.id, e.id, e.label, e.props)
			if e.out != nil {
				text += fmt.Sprintf(" %#v %#v", *e.out, *e.in)
			}
			out = append(out, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// killLater kills a process some time after it has written its state.
func killLater(p *os.Process, state string, later time.Duration) {
	before, _ := os.ReadFile(state)
	for range 2000 {
		time.Sleep(2 * time.Millisecond)
		if now, err := os.ReadFile(state); err == nil && !bytes.Equal(now, before) {
			break
		}
	}
	time.Sleep(later)
	_ = p.Kill() // it may have ended
}

// noKeys checks that no file of a directory has a key.
func noKeys(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || bytes.Contains(text, []byte(fromKey)) || bytes.Contains(text, []byte(toKey)) {
			t.Errorf("%s: %v: %s", name, err, text)
		}
	}
}

// A graph is copied with its ids, labels, multi-properties and their own properties, and edges. A copy that is killed
// goes on with the same command, and ends equal.
func TestCopyOfGraphs(t *testing.T) {
	const n, kills = 1300, 10
	for _, path := range []string{"/_partitionKey", "/city"} {
		t.Run(path[1:], func(t *testing.T) {
			p, from := graphPair(t, path, n)
			args := []string{"--from", place2("gremlin", p.from, "d/g"), "--from-key", "env:FROM_KEY", "--to",
				place2("gremlin", p.to, "d/g"), "--to-key", "env:TO_KEY", "--state", filepath.Join(p.dir, "state"),
				"--bad-rows", filepath.Join(p.dir, "bad")}
			if from.key != "" {
				args = append(args, "--partition-key", from.key)
			}
			var out bytes.Buffer
			killed := 0
			for i := range 20 {
				cmd := exec.Command(os.Args[0], args...)
				cmd.Env = append(os.Environ(), "ORRERY_COPY_ITSELF=1")
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if i < kills {
					go killLater(cmd.Process, filepath.Join(p.dir, "state"), time.Duration(i)*2*time.Millisecond)
				}
				err := cmd.Wait()
				noKeys(t, p.dir)
				if err == nil {
					break
				}
				if cmd.ProcessState.Exited() {
					t.Fatal(err, out.String())
				}
				killed++
			}
			to := reach(t, "gremlin", p.to, "TO_KEY", "d/g").(*gremlin)
			to.key = from.key
			got, want := elements(t, to), elements(t, from)
			if len(want) != 2*n || !slices.Equal(got, want) {
				t.Errorf("%d elements, want %d and the same; killed %d times: %s", len(got), len(want), killed,
					out.String())
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Fatalf("%s\nwant %s", got[i], want[i])
					}
				}
			}
			if killed < kills {
				t.Errorf("the copy was killed only %d times", killed)
			}
			for _, secret := range []string{fromKey, toKey} {
				if strings.Contains(out.String(), secret) {
					t.Errorf("a key is shown: %s", out.String())
				}
			}
		})
	}
}

// A server of Gremlin without databases has traversal sources, and a login with a user's name.
func TestCopyOfSources(t *testing.T) {
	p := newPair(t)
	from := reach(t, "gremlin", p.from, "FROM_KEY", "g").(*gremlin)
	some := []change{{element: &element{id: "a", label: "x"}}, {element: &element{id: "b", label: "x"}}}
	if bad, err := from.apply(context.Background(), some); err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	if out, err := p.copy(context.Background(), "gremlin", "g"); err != nil || out != "2 items, 2 of them now\n" {
		t.Error(out, err)
	}
	got, want := elements(t, reach(t, "gremlin", p.to, "TO_KEY", "g").(*gremlin)), elements(t, from)
	if len(got) != 2 || !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a graph can't have is bad: an edge without a vertex, a vertex whose label is another one, a vertex without the
// partition key. Fields get new names, the partition key too, and --dry-run writes nothing.
func TestCopyOfGraphsKeepsBad(t *testing.T) {
	p, from := graphPair(t, "/city", 4)
	ctx := context.Background()
	createNoSQL(t, reach(t, "nosql", p.to, "TO_KEY", "d/h").(*nosql), "/town")
	to := reach(t, "gremlin", p.to, "TO_KEY", "d/h").(*gremlin)
	to.key = "town"
	other := &element{id: "v1'", label: "robot", props: []property{{key: "town", value: "p1"}}}
	if bad, err := to.apply(ctx, []change{{element: other}}); err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	file := filepath.Join(p.dir, "bad")
	args := []string{"--to", place2("gremlin", p.to, "d/h"), "--map", "city=town", "--partition-key", "city",
		"--bad-rows", file}
	out, err := p.copy(ctx, "gremlin", "d/g", append(args, "--dry-run")...)
	if err != nil || out != "8 items, nothing written (--dry-run)\n" {
		t.Error(out, err)
	}
	if got := elements(t, to); len(got) != 1 {
		t.Errorf("--dry-run has written %q", got)
	}
	out, err = p.copy(ctx, "gremlin", "d/g", args...)
	if err == nil || out != "8 items, 8 of them now, 1 bad\n" {
		t.Error(out, err)
	}
	bad, _ := os.ReadFile(file)
	if !regexp.MustCompile(`^{"line":[1-4],"reason":"a vertex v1' with the label robot is there`).Match(bad) {
		t.Errorf("%s", bad)
	}
	if got := elements(t, to); len(got) != 8 || !strings.Contains(got[len(got)-1], `"town"`) {
		t.Errorf("%q", got)
	}
	lone := &element{id: "lone", label: "knows", out: &end{"v0'", "p0"}, in: &end{"nobody", "p0"}}
	refusals, err := from.apply(ctx, []change{{element: lone}, {element: &element{id: "x", label: "person"}}})
	if err != nil || len(refusals) != 2 {
		t.Errorf("%v, %v", refusals, err)
	}
	for args, says := range map[string]string{"--follow": "has no change feed", "--from-key=env:TO_KEY": "401"} {
		if out, err := p.copy(ctx, "gremlin", "d/g", args); err == nil || !strings.Contains(err.Error(), says) ||
			strings.Contains(out+err.Error(), toKey) {
			t.Errorf("%s: %s, %v", args, out, err)
		}
	}
}

// A vertex with more values than Gremlin Server takes as bindings has the others in the text of its script, where they
// mean the same: here Orrery reads them, in conformance/clients/gremlinserver also Groovy.
func TestCopyOfManyProperties(t *testing.T) {
	p, from := graphPair(t, "/_partitionKey", 1)
	many := &element{id: "many", label: "x"}
	for i, v := range []any{"it's", `a\b`, "line\nbreak\t\r", "${x} $y \"", "\x01control", "日本", "", true, int32(-7),
		int64(1) << 60, int64(math.MinInt64), int32(math.MinInt32), 0.1, -1e300, 1e-9, math.MaxFloat64, 5.0, -0.5} {
		many.props = append(many.props, property{key: fmt.Sprint("k'", i), value: v,
			meta: []property{{key: "m", value: v}, {key: "n", value: "it's"}}})
	}
	if bad, err := from.apply(context.Background(), []change{{element: many}}); err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	if out, err := p.copy(context.Background(), "gremlin", "d/g"); err != nil || !strings.HasPrefix(out, "3 items") {
		t.Error(out, err)
	}
	want := elements(t, from)
	if got := elements(t, reach(t, "gremlin", p.to, "TO_KEY", "d/g").(*gremlin)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, q := range many.props {
		if text := fmt.Sprintf("%#v", q.value); !strings.Contains(strings.Join(want, ""), text) {
			t.Errorf("%s is not there: %q", text, want)
		}
	}
	s := newScript()
	for i := range 40 {
		s.add("?", fmt.Sprint(i))
	}
	if len(s.values) > 16 {
		t.Errorf("%d bindings, want at most 16", len(s.values))
	}
}
