package core_test

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// The planner counts index entries to choose, and that is a small part of what the query then reads, whatever the
// conditions: an entry that is counted costs a tenth of an item that is fetched.
func TestCountingIsBounded(t *testing.T) {
	e, _ := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{})
	var ws []core.Write
	for i := range 12000 {
		ws = append(ws, core.Write{Kind: core.Create, Doc: mustDoc(t, fmt.Sprintf(
			`{"id":"%d","pk":"p%d","one":%d,"rare":%d,"some":%d,"common":%d,"n":%d}`, i, i%50, i, i%600, i%40, i%3,
			i))})
	}
	for _, o := range c.WriteMany(bg, ws, true) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	eq := func(field string) *access.Pred { return access.Eq(access.NewPath(field), value.Int32Of(2)) }
	above := func(n int32) *access.Pred {
		return access.Range(access.NewPath("n"), &access.Bound{Value: value.Int32Of(n)}, nil)
	}
	for name, x := range map[string]struct {
		pred *access.Pred
		most int // entries that are counted
	}{
		"one equality":                     {eq("rare"), 0},
		"rare and common":                  {access.And(eq("rare"), eq("common")), 250},
		"two that are rare":                {access.And(eq("rare"), eq("some")), 250},
		"two that are common":              {access.And(eq("common"), eq("some")), 900},
		"three":                            {access.And(eq("one"), eq("rare"), eq("common")), 250},
		"a wide range":                     {above(1000), 2100},
		"a narrow range":                   {above(11900), 300},
		"a narrow range and what's common": {access.And(above(11900), eq("common")), 900},
		"alternatives that are too many":   {access.Or(eq("common"), above(50)), 4200},
	} {
		rows, err := c.Query(bg, &exec.Query{Pred: x.pred})
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		s := rows.Stats()
		if rows.Err() != nil || s.Counted > x.most {
			t.Errorf("%s: %d entries were counted, at most %d are wanted (%s, %v)", name, s.Counted, x.most,
				s.Plan.Explain(), rows.Err())
		}
		if cost := s.Entries - s.Counted + 10*s.Items; s.Counted > 250+cost/4 {
			t.Errorf("%s: %d entries were counted for a query that costs %d (%s)", name, s.Counted, cost,
				s.Plan.Explain())
		}
		rows.Close()
	}
}
