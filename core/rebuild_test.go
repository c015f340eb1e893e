package core_test

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/value"
)

func TestIndexRebuild(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		for i := range 100 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"b":[%d]}`, i, i%7, i%3, i))
		}
		for _, policy := range []string{
			`{"indexingMode":"consistent","includedPaths":[{"path":"/b/[]/?"}],"excludedPaths":[{"path":"/*"}]}`,
			`{"indexingMode":"none"}`,
			`{"indexingMode":"consistent","includedPaths":[{"path":"/*"},{"path":"/a/?"}],"excludedPaths":[{"path":"/b/*"}]}`,
		} {
			spec := c.Spec().Clone()
			spec.IndexingPolicy = []byte(policy)
			c, err := e.ReplaceContainer(bg, "db", "c", spec)
			if err != nil {
				t.Fatal(err)
			}
			got := ids(t, c, &exec.Query{Pred: access.Eq(access.NewPath("a"), value.Int32Of(1)), Match: func(it *core.Item) (bool, error) {
				return doc.Get(it.Doc, "a").Int() == 1, nil
			}})
			if len(got) != 33 {
				t.Errorf("%s: %d rows", policy, len(got))
			}
			if p, err := e.Check(bg); err != nil || len(p) > 0 {
				t.Errorf("%s: %v %v", policy, err, p)
			}
		}
	})
}

// A query whose snapshot was taken in the middle of an index rebuild, which is over before the query looks at the index, must
// not use the half of it that the snapshot holds.
func TestQueryOpensDuringRebuild(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	many := "" // more entries in a slot than one commit of a rebuild has
	for i := range 60 {
		many += fmt.Sprintf("%d,", i)
	}
	for i := range 400 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"v":[%s0]}`, i, i, i%40, many))
	}
	q := eqQuery("n", 1)
	if plan, err := c.Explain(bg, q); err != nil || plan.Kind != access.Index {
		t.Fatalf("plan is %s (%v)", plan.Explain(), err)
	}
	half, goOn, done := make(chan bool), make(chan bool), make(chan bool)
	h.set(func(s *hookSet) {
		s.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
			writes := 0
			h.set(func(s *hookSet) {
				s.snapshot = nil
				s.visible = func() {
					if writes++; writes == 3 { // 1 is the catalog's, with 2 and 3 the old entries are gone
						h.set(func(s *hookSet) { s.visible = nil })
						half <- true
						<-goOn
					}
				}
			})
			go func() {
				setPolicy(t, e, c, `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/x/*"}]}`)
				close(done)
			}()
			<-half
			view := take()
			close(goOn)
			<-done
			return view
		}
	})
	if got := ids(t, c, q); len(got) != 10 {
		t.Errorf("%d rows, want 10", len(got))
	}
}
