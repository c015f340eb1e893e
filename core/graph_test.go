package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// TestGraphFormConditions queries data of graph elements that has no index entries: the answers must not depend on
// that.
func TestGraphFormConditions(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		for i := range 40 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"v%d","pk":"p%d","label":"person","name":[{"_value":"n%d",`+
				`"id":"g%d"}],"list":[{"id":"x%d","_value":1,"other":2}]}`, i, i%5, i%7, i, i))
			put(t, c, core.Create, fmt.Sprintf(`{"id":"e%d","pk":"p%d","label":"knows","_isEdge":true,"_sink":"v%d",`+
				`"_sinkLabel":"person%d","_vertexId":"v%d","_vertexLabel":"person","_sinkPartition":"p%d"}`, i, i%5,
				i+1, i%3, i, i%4))
		}
		whole, err := doc.ValueFromJSON([]byte(`{"_value":"n3","id":"g3"}`))
		if err != nil {
			t.Fatal(err)
		}
		elem := func(path ...string) access.Path { return access.NewPath(path...).Element() }
		for _, tc := range []struct {
			pred *access.Pred
			rows int
			plan access.Kind
		}{
			{access.Eq(elem("name", "_value"), value.StringOf("n3")), 6, access.Index},
			{access.Eq(elem("name", "id"), value.StringOf("g3")), 1, access.Scan},
			{access.Eq(elem("list", "id"), value.StringOf("x3")), 1, access.Scan},
			{access.Eq(elem("name"), whole), 1, access.Scan},
			{access.Exists(access.NewPath("name")), 40, access.Scan},
			{access.Eq(access.NewPath("_sinkLabel"), value.StringOf("person1")), 13, access.Scan},
			{access.Eq(access.NewPath("_sinkPartition"), value.StringOf("p1")), 10, access.Scan},
			{access.Eq(access.NewPath("_sink"), value.StringOf("v5")), 1, access.Index},
			{access.Eq(access.NewPath("_vertexId"), value.StringOf("v5")), 1, access.Index},
		} {
			q := &exec.Query{Pred: tc.pred, Match: func(it *core.Item) (bool, error) {
				return holds(tc.pred, it.Doc), nil
			}}
			plan, err := c.Explain(bg, q)
			if err != nil || plan.Kind != tc.plan {
				t.Errorf("%s: plan is %s", tc.pred.Path, plan.Explain())
			}
			if got := ids(t, c, q); len(got) != tc.rows {
				t.Errorf("%s: %d rows, want %d", tc.pred.Path, len(got), tc.rows)
			}
		}
	})
}

// holds evaluates an equality or an existence on a document, including elements of arrays.
func holds(p *access.Pred, d doc.Doc) bool {
	var walk func(v value.Value, segs []string) bool
	walk = func(v value.Value, segs []string) bool {
		if v.Kind() == value.Array {
			for it := v.Iter(); it.Next(); {
				if walk(it.Value(), segs) {
					return true
				}
			}
		}
		if len(segs) > 0 {
			return v.Kind() == value.Object && walk(v.Get(segs[0]), segs[1:])
		}
		return v.IsDefined() && (len(p.Vals) == 0 || value.EqualCosmos(v, p.Vals[0]))
	}
	return walk(value.ObjectOf(d), p.Path.Segs)
}

// TestIDFilters looks up ids over all partitions while the filters are being made and items are created and deleted:
// every existing item is found.
func TestIDFilters(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		find := func(id string) int {
			v := value.StringOf(id)
			return len(ids(t, c, &exec.Query{Pred: access.Eq(access.ID, v), Match: func(it *core.Item) (bool, error) {
				return value.EqualCosmos(doc.Get(it.Doc, "_id"), v), nil
			}}))
		}
		for i := range 3000 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"i%d","pk":"p%d"}`, i, i%97))
			if i%10 == 0 && find(fmt.Sprintf("i%d", i)) != 1 {
				t.Fatalf("i%d was not found after its insert", i)
			}
		}
		put(t, c, core.Create, `{"id":"i7","pk":"other"}`)
		if n := find("i7"); n != 2 {
			t.Errorf("i7 was found %d times in two partitions", n)
		}
		entries := func() int {
			r, err := c.Query(bg, &exec.Query{Pred: access.Eq(access.ID, value.StringOf("i7"))})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for r.Next() {
			}
			return r.Stats().Entries
		}
		for deadline := time.Now().Add(10 * time.Second); find("nobody") != 0 ||
			entries() != 2; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the filters never came")
			}
		}
		for i := range 3000 {
			if i%100 == 0 {
				if n := find(fmt.Sprintf("i%d", i)); n != 1 {
					t.Fatalf("i%d was found %d times", i, n)
				}
			}
		}
	})
}
