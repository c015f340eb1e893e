package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// objectDocs are items with objects at /a: directly, in an array, in a nested array, among other values, and none.
var objectDocs = []string{`{"k":1}`, `[{"k":1}]`, `[[{"k":1}]]`, `["x",{"k":2},{"k":1}]`, `[{"k":2},{"k":3}]`,
	`{"k":2}`, `[1,2]`, `1`, `[]`, `[{"b":[{"k":1}]}]`}

func putObjects(t *testing.T, c *core.Container) {
	t.Helper()
	for i, a := range objectDocs {
		put(t, c, core.Upsert, fmt.Sprintf(`{"id":"i%d","pk":"p%d","a":%s}`, i, i%3, a))
	}
	for i := range 200 { // enough for the index to be used
		put(t, c, core.Upsert, fmt.Sprintf(`{"id":"other%d","pk":"p%d"}`, i, i%3))
	}
}

// wantObjects queries by the index for items with certain objects at /a or in its arrays.
func wantObjects(t *testing.T, c *core.Container) {
	t.Helper()
	one, err := doc.ValueFromJSON([]byte(`{"k":1}`))
	if err != nil {
		t.Fatal(err)
	}
	a := access.NewPath("a").Element()
	for _, tc := range []struct {
		name string
		pred *access.Pred
		want string
	}{
		{"equal", access.Eq(a, one), "i0 i1 i2 i3"},
		{"from", access.Range(a, &access.Bound{Value: one, Inclusive: true}, nil), "i0 i1 i2 i3 i4 i5 i9"},
		{"exists", access.Exists(a), "i0 i1 i2 i3 i4 i5 i6 i7 i8 i9"},
		{"one of", access.In(a, value.IntOf(2), one), "i0 i1 i2 i3 i6"},
	} {
		matches := func(v value.Value) bool {
			switch tc.pred.Op {
			case access.OpRange:
				return v.Kind() == value.Object
			case access.OpExists:
				return v.IsDefined()
			}
			return slices.ContainsFunc(tc.pred.Vals, func(w value.Value) bool { return value.EqualCosmos(v, w) })
		}
		q := exec.Query{Pred: tc.pred, Match: func(it *core.Item) (bool, error) {
			return anyElement(doc.Get(it.Doc, "a"), matches), nil
		}}
		r, err := c.Query(bg, &q)
		if err != nil {
			t.Fatal(err)
		}
		r.Next()
		if k := r.Stats().Plan.Kind; k != access.Index {
			t.Errorf("%s: the plan is %v", tc.name, r.Stats().Plan.Explain())
		}
		r.Close()
		for _, page := range []int{1, 100} {
			got := paged(t, c, q, page)
			slices.Sort(got)
			if s := fmt.Sprint(got); s != "["+tc.want+"]" {
				t.Errorf("%s, pages of %d: %v, want %s", tc.name, page, got, tc.want)
			}
		}
	}
}

// TestObjectsInArrays: an object in an array has no own entry, and the index finds it by the entry of the array.
func TestObjectsInArrays(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		putObjects(t, c)
		wantObjects(t, c)
	})
}
