package core_test

import (
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// manyTermsQueries all have the item of TestManyTerms among their rows.
func manyTermsQueries() map[string]exec.Query {
	v, late := access.NewPath("v"), access.NewPath("late")
	at := func(n int) *access.Bound { return &access.Bound{Value: value.Int32Of(int32(n)), Inclusive: true} }
	return map[string]exec.Query{
		"an element":           {Pred: access.Eq(v.Element(), value.Int32Of(17))},
		"elements":             {Pred: access.Range(v.Element(), at(3), at(5))},
		"an element cut off":   {Pred: access.Eq(v.Element(), value.Int32Of(5999))},
		"the array":            {Pred: access.Exists(v)},
		"a path cut off":       {Pred: access.Eq(late, value.Int32Of(7))},
		"an existence cut off": {Pred: access.Exists(late)},
		"a range cut off": {Pred: access.Range(late, at(5), at(9)), OrderBy: orderBy(true, "late"),
			Compare: value.CompareCosmos},
		"a union": {Pred: access.Or(access.Eq(late, value.Int32Of(7)), access.Eq(v.Element(), value.Int32Of(17)))},
	}
}

// A document with a duplicate field name has two entries at a path, and a query returns it once.
func TestFieldNameTwice(t *testing.T) {
	onEngines(t, core.Options{MinSlots: 1}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		d := doc.AppendElement(nil, "_id", value.StringOf("1"))
		d = doc.AppendElement(d, "pk", value.StringOf("a"))
		d = doc.AppendElement(d, "n", value.Int32Of(1))
		d = doc.AppendElement(d, "n", value.Int32Of(2))
		n := len(d) + 5
		d = append(append([]byte{byte(n), byte(n >> 8), 0, 0}, d...), 0)
		if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: d}); err != nil {
			t.Fatal(err)
		}
		put(t, c, core.Create, `{"id":"2","pk":"a"}`)
		for range 2 { // the second time the slots know the path
			if got := ids(t, c, &exec.Query{OrderBy: orderBy(false, "n"), Compare: value.CompareCosmos}); len(got) !=
				2 {
				t.Errorf("in order: %v", got)
			}
		}
		p := access.NewPath("n")
		for _, q := range []exec.Query{{Pred: access.In(p, value.Int32Of(1), value.Int32Of(2))},
			{Pred: access.In(p, value.Int32Of(1), value.Int32Of(2)), OrderBy: orderBy(true, "n"),
				Compare: value.CompareCosmos}} {
			if got := paged(t, c, q, 1); !slices.Equal(got, []string{"1"}) {
				t.Errorf("got %v", got)
			}
		}
	})
}

// An item written with the indexing directive Exclude is found by the same queries as other items.
func TestExcludedItems(t *testing.T) {
	onEngines(t, core.Options{MinSlots: 2}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"1","pk":"a","n":1}`)
		if _, err := c.Write(bg, core.Write{
			Kind: core.Create, NoIndex: true, Doc: mustDoc(t, `{"id":"2","pk":"b","n":1}`)}); err != nil {
			t.Fatal(err)
		}
		for _, q := range []*exec.Query{eqQuery("n", 1), {OrderBy: orderBy(false, "n"), Compare: value.CompareCosmos},
			{Pred: access.Eq(access.NewPath("pk").Element(), value.StringOf("b"))}} {
			if got := ids(t, c, q); !slices.Contains(got, "2") {
				t.Errorf("got %v", got)
			}
		}
		setPolicy(t, e, c, `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/x/?"}]}`)
		if got := ids(t, c, eqQuery("n", 1)); len(got) != 2 {
			t.Errorf("after a rebuild: %v", got)
		}
	})
}

// A partition key of a kind that JSON lacks is found by its text under every indexing policy.
func TestForeignPartitionKeys(t *testing.T) {
	for name, policy := range map[string]string{"all": "", "none": noIndex} {
		t.Run(name, func(t *testing.T) {
			e, _ := hooked(t, core.Options{})
			c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(policy)})
			var b doc.Builder
			b.BeginObject()
			b.Field("_id", value.StringOf("1"))
			b.Field("pk", value.DateOf(0, 0))
			b.End()
			if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: b.Doc()}); err != nil {
				t.Fatal(err)
			}
			q := &exec.Query{
				Pred: access.WithForeign(access.Eq(access.NewPath("pk"), value.StringOf("1970-01-01T00:00:00.000Z")))}
			if got := ids(t, c, q); !slices.Equal(got, []string{"1"}) {
				t.Errorf("got %v", got)
			}
		})
	}
}
