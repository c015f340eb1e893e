package core_test

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
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
