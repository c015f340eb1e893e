package sql

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/sarg"
	"github.com/orrerydb/orrery/sqlapi/sql/shape"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// Every query of the scripts with documents runs under each indexing policy that the script suggests: none, the
// default, each single path of its documents and filters, and composites of each pair of its scalar paths. Slots, the
// placement of items, the page size and additional items vary too. The rows must be those over plain documents for
// every policy.

// scene is a state of a script: its documents and parameters, and its queries.
type scene struct {
	docs    []doc.Doc
	params  []Param
	queries []string
}

// scenes splits a script where its documents or parameters change.
func scenes(t testing.TB, lines []string) (out []scene) {
	var s scene
	add := func() {
		if len(s.docs) > 0 && len(s.queries) > 0 {
			out = append(out, s)
		}
		s.queries = nil
	}
	for _, line := range lines {
		switch {
		case line == "reset":
			add()
			s = scene{}
		case strings.HasPrefix(line, "doc "):
			add()
			d, err := doc.FromJSON(nil, []byte(line[4:]), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			s.docs = append(s.docs[:len(s.docs):len(s.docs)], d)
		case strings.HasPrefix(line, "@"):
			add()
			name, text, _ := strings.Cut(line[1:], "=")
			v, err := doc.ValueFromJSON([]byte(strings.TrimSpace(text)))
			if err != nil {
				t.Fatal(err)
			}
			s.params = append(s.params[:len(s.params):len(s.params)], Param{Name: strings.TrimSpace(name), Value: v})
		case strings.HasPrefix(line, "> SELECT") && !strings.Contains(line, "_rid"):
			s.queries = append(s.queries, line[2:])
		}
	}
	add()
	return out
}

// paths returns the paths of a scene's documents and of its queries' filters and orders, as in indexing policies,
// without their end. scalar are those of the queries that composites may have.
func (s *scene) paths() (all, scalar []string) {
	add := func(p access.Path) {
		spec := strings.TrimSuffix(indexSpec(p), "/?")
		if !slices.Contains(all, spec) {
			all = append(all, spec)
		}
		if !p.Elements && spec != "/id" && !slices.Contains(scalar, spec) {
			scalar = append(scalar, spec)
		}
	}
	for _, text := range s.queries {
		pl, err := Compile(text, s.params, testEnv)
		if err != nil {
			continue
		}
		f := pl.p.frame(pl.vals)
		q := pl.query(f, Request{}, state{left: -1})
		var walk func(p *access.Pred)
		walk = func(p *access.Pred) {
			if p == nil {
				return
			}
			if segs := p.Path.Segs; len(segs) > 0 && !sarg.IsAlways(p.Path) {
				add(p.Path)
			}
			for _, k := range p.Kids {
				walk(k)
			}
		}
		walk(q.Pred)
		for _, o := range q.OrderBy {
			if o.Path.Segs[0][0] != 0 && !sarg.IsAlways(o.Path) {
				add(o.Path)
			}
		}
		pl.p.release(f)
	}
	asked := scalar
	for _, d := range s.docs {
		for it := value.ObjectOf(d).Iter(); it.Next(); {
			name, ok := doc.NoSQL.Shown(it.Key())
			if p := access.NewPath(string(it.Key())); ok && string(name) != "id" {
				if it.Value().Kind() == value.Array {
					p = p.Element()
				}
				add(p)
			}
		}
	}
	return all, asked
}

// tuples returns the tuple paths for the queries' conditions on array elements: the members of each array in the order
// of the conditions and in reverse.
func (s *scene) tuples() (out []string) {
	var arrays []string
	members := map[string][]string{}
	for _, text := range s.queries {
		pl, err := Compile(text, s.params, testEnv)
		if err != nil {
			continue
		}
		f := pl.p.frame(pl.vals)
		var walk func(p *access.Pred)
		walk = func(p *access.Pred) {
			if p == nil {
				return
			}
			if of := p.Path.Of; of != nil && !strings.Contains(strings.Join(p.Path.Segs, ""), `"`) {
				array := strings.TrimSuffix(indexSpec(access.NewPath(p.Path.Segs[:of.Array]...)), "/?")
				member := strings.TrimPrefix(
					strings.TrimSuffix(indexSpec(access.NewPath(append([]string{"x"}, p.Path.Segs[of.Array:]...)...)),
						"/?"), "/x/")
				if !slices.Contains(arrays, array) {
					arrays = append(arrays, array)
				}
				if !slices.Contains(members[array], member) && len(members[array]) < 8 {
					members[array] = append(members[array], member)
				}
			}
			for _, k := range p.Kids {
				walk(k)
			}
		}
		walk(pl.query(f, Request{}, state{left: -1}).Pred)
		pl.p.release(f)
	}
	for _, a := range arrays {
		m := members[a]
		out = append(out, a+"/[]/{"+strings.Join(m, ", ")+"}/?")
		if slices.Reverse(m); len(m) > 1 {
			out = append(out, a+"/[]/{"+strings.Join(m, ",")+"}/?")
		}
	}
	return out
}

// variant is one way to store the items of a scene.
type variant struct {
	name, policy string
	slots        int
	key          string // path of the partition key
	company      bool   // there are additional items, so that the index is worth using
}

// variants returns the configurations of a scene.
func (s *scene) variants() (out []variant) {
	add := func(name, policy string) {
		// Slots, placement and additional items vary from policy to policy. The two most important policies have all
		// combinations.
		keys := []string{"/pk", "/id", "/nowhere"}
		n := len(out)
		for i, slots := range []int{1, 16} {
			out = append(out, variant{name, policy, slots, keys[(n/2+i)%3], i == 0})
			if policy == "" || name == "none" {
				out = append(out, variant{name, policy, slots, keys[(n/2+i+1)%3], i == 1},
					variant{name, policy, slots, keys[(n/2+i+2)%3], i == 1})
			}
		}
	}
	quote := func(s string) string { return strings.ReplaceAll(s, `"`, `\"`) }
	add("none", `{"indexingMode":"none","automatic":false}`)
	add("default", "")
	for _, p := range s.tuples() {
		add("tuple "+p, `{"includedPaths":[{"path":"`+quote(p)+`"}],"excludedPaths":[{"path":"/*"}]}`)
	}
	all, scalar := s.paths()
	for _, p := range all {
		add("only "+p, `{"includedPaths":[{"path":"`+quote(p)+`/?"}],"excludedPaths":[{"path":"/*"}]}`)
	}
	for _, d := range s.docs {
		if it := value.ObjectOf(d).Get("loc"); it.Get("coordinates").IsDefined() {
			add("spatial", `{"includedPaths":[{"path":"/cat/?"}],"excludedPaths":[{"path":"/*"}],`+
				`"spatialIndexes":[{"path":"/loc/*","types":["Point","Polygon","MultiPolygon","LineString"]}]}`)
			break
		}
	}
	for i, p := range scalar {
		for j, q := range scalar[i+1:] {
			dir := []string{"ascending", "descending"}[j%2]
			add("composite "+p+", "+q+" "+dir, fmt.Sprintf(`{"includedPaths":[],"excludedPaths":[{"path":"/*"}],`+
				`"compositeIndexes":[[{"path":"%s","order":"ascending"},{"path":"%s","order":"%s"}],[{"path":"%s","order":"ascending"},{"path":"%s","order":"ascending"}]]}`,
				quote(p), quote(q), dir, quote(q), quote(p)))
		}
	}
	return out
}

// company returns items that resemble none of the script's, except for numbers at its top-level paths.
func (s *scene) company() []doc.Doc {
	all, _ := s.paths()
	out := append([]doc.Doc(nil), s.docs...)
	for i := range 40 {
		var b doc.Builder
		b.BeginObject()
		b.Field("_id", value.StringOf(fmt.Sprintf("zz%02d", i)))
		b.Field("pk", value.StringOf(fmt.Sprintf("far%d", i%7)))
		for j, p := range all {
			if name := p[1:]; (i+j)%5 == 0 && plainSegment(name) && name != "pk" && name[0] != '_' {
				b.Field(name, value.IntOf(int64(7000+i%9)))
			}
		}
		b.End()
		out = append(out, append(doc.Doc(nil), b.Doc()...))
	}
	return out
}

// plans counts the access paths of queries, by the first words of their explanation.
type plans map[string]int

// count adds one page with this explanation.
func (n plans) count(explain string) {
	kind, _, _ := strings.Cut(explain, ":")
	kind, _, _ = strings.Cut(kind, " on ")
	kind, _, _ = strings.Cut(kind, " of ")
	for _, special := range []string{"composite ", "(spatial)"} {
		if strings.Contains(explain, special) {
			kind = strings.Trim(special, " ()") + " " + kind
		}
	}
	n[kind]++
}

// explained is evalCore, and counts the access path of each page.
func (n plans) explained(c *core.Container, text string, params []Param, size int) ([]string, error) {
	var rows []string
	req := Request{PageSize: size, Explain: true}
	for {
		pl, err := Compile(text, params, testEnv)
		if err != nil {
			return nil, err
		}
		out := &Page{}
		if err := pl.Execute(context.Background(), c, req, out); err != nil {
			return nil, err
		}
		n.count(out.Metrics.Explain)
		if out.Count > 0 {
			rows = append(rows, splitRows(string(out.Body))...)
		}
		if req.Continuation = out.Continuation; req.Continuation == "" {
			return rows, nil
		}
	}
}

// container creates the container of a variant. The engines are shared.
func (v *variant) container(t testing.TB, engines map[int]*core.Engine, n int, docs []doc.Doc) *core.Container {
	t.Helper()
	e := engines[v.slots]
	if e == nil {
		var err error
		if e, err = core.Open(context.Background(), memkv.New(), core.Options{MinSlots: v.slots}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if problems, err := e.Check(context.Background()); err != nil || len(problems) > 0 {
				t.Errorf("store check: %v %v", problems, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
			t.Fatal(err)
		}
		engines[v.slots] = e
	}
	spec := core.ContainerSpec{ID: fmt.Sprintf("c%d", n), PartitionKey: core.PartitionKeyDef{Paths: []string{v.key}}}
	if v.policy != "" {
		spec.IndexingPolicy = []byte(v.policy)
	}
	c, err := e.CreateContainer(context.Background(), "d", spec)
	if err != nil {
		t.Fatalf("%s: %v", v.name, err)
	}
	for _, d := range docs {
		insert(t, c, d)
	}
	return c
}

// byNumber sorts the documents by their items' numbers, which decide between equal sort keys.
func byNumber(t testing.TB, c *core.Container, docs []doc.Doc) []doc.Doc {
	ids, err := evalCore(c, "SELECT VALUE c.id FROM c ORDER BY c.noSuchProperty", nil, 0)
	if err != nil || len(ids) != len(docs) {
		t.Fatalf("%d of %d items in the order of their numbers: %v", len(ids), len(docs), err)
	}
	out := make([]doc.Doc, len(docs))
	for _, d := range docs {
		out[slices.Index(ids, `"`+value.ObjectOf(d).Get("_id").Str()+`"`)] = d
	}
	return out
}

// cutsInside reports whether a sub-query, in the place of the container, takes only some of the items.
func cutsInside(text string) bool {
	q, err := syntax.Parse(text, syntax.DefaultLimits())
	if err != nil {
		return false
	}
	for q = shape.ContainerQuery(q); q != nil; q = shape.ContainerQuery(q) {
		if q.Top != nil || q.Limit != nil || len(q.OrderBy) > 0 {
			return true
		}
	}
	return false
}

// TestScriptsUnderPolicies does what the comment above describes.
func TestScriptsUnderPolicies(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		sync.Mutex
		took           plans
		variants, runs int
	}
	all.took = plans{}
	t.Cleanup(func() {
		t.Logf("%d variants, %d runs: %v", all.variants, all.runs, all.took)
		all.took.check(t, 8)
	})
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			t.Parallel()
			took, variants, runs := plans{}, 0, 0
			defer func() {
				all.Lock()
				defer all.Unlock()
				for kind, pages := range took {
					all.took[kind] += pages
				}
				all.variants, all.runs = all.variants+variants, all.runs+runs
			}()
			engines := map[int]*core.Engine{}
			for _, s := range scenes(t, strings.Split(string(b), "\n")) {
				among := s.company()
				for _, v := range s.variants() {
					variants++
					docs := s.docs
					if v.company {
						docs = among
					}
					c := v.container(t, engines, variants, docs)
					made := docs
					docs = byNumber(t, c, docs)
					for i, text := range s.queries {
						if v.name != "none" && cutsInside(text) { // the rows that an inner TOP takes are undefined
							continue
						}
						in := docs
						if cutsInside(text) { // an inner query sees the items in creation order
							in = made
						}
						want, wantErr := evalDocs(text, s.params, in, 0)
						for _, size := range []int{1000, 1, 3} {
							if size == 1 && (len(want) > 12 || len(want) < 2) && (i+variants)%8 != 0 || size == 3 &&
								(i+variants)%6 != 0 {
								continue // only some of the long answers in small pages, and of those that fill no page
							}
							runs++
							got, err := took.explained(c, text, s.params, size)
							sameRows(t, fmt.Sprintf("%s, %d slots, key %s, pages of %d", v.name, v.slots, v.key, size),
								text, got, want, err, wantErr)
						}
					}
				}
			}
		})
	}
}

// check fails if an access path was used less than least times: then the test wouldn't test it.
func (n plans) check(t *testing.T, least int) {
	t.Helper()
	for _, kind := range []string{"scan", "points", "nothing", "index", "index union", "ordered index",
		"composite index", "composite ordered index", "covered index",
		"covered ordered index", "composite covered index", "spatial index"} {
		pages := n[kind]
		if of, ok := strings.CutPrefix(kind, "composite "); ok {
			pages += n["composite covered "+of]
		}
		if pages < least {
			t.Errorf("only %d pages by %q: %v", pages, kind, n)
		}
	}
}
