package core_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// Every step of a plan tells how many rows it returned and how many entries it read.
func TestStepsTellWhatTheyDid(t *testing.T) {
	e, _ := hooked(t, core.Options{MinSlots: 2})
	c := newContainer(t, e, core.ContainerSpec{})
	var ws []core.Write
	for i := range 4000 {
		ws = append(ws, core.Write{Kind: core.Create, Doc: mustDoc(t, fmt.Sprintf(
			`{"id":"%04d","pk":"p%d","a":%d,"b":%d,"n":%d}`, i, i%50, i%40, i%39, i))})
	}
	for _, o := range c.WriteMany(bg, ws, true) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	eq := func(field string, n int32) *access.Pred { return access.Eq(access.NewPath(field), value.Int32Of(n)) }
	odd := func(it *core.Item) (bool, error) { return value.ObjectOf(it.Doc).Get("n").Int()%2 == 1, nil }
	for name, x := range map[string]struct {
		q    exec.Query
		want string // steps with their counts, from the top
	}{
		"a scan": {exec.Query{Match: odd}, "Filter gave 2000, Scan gave 4000"},
		"one leaf": {exec.Query{Pred: eq("a", 3), Match: odd},
			"Filter gave 100, IndexScan gave 100 of 100"},
		"alternatives": {exec.Query{Pred: access.Or(eq("a", 3), eq("b", 4)), Match: odd},
			"Filter gave 148, Union gave 200, IndexScan gave 100 of 100, IndexScan gave 103 of 103"},
		"two conditions": {exec.Query{Pred: access.And(eq("a", 3), eq("b", 3)), Match: odd},
			"Filter gave 3, Intersect gave 3, IndexScan gave 100 of 100, IndexScan gave 103 of 103"},
		"few of an order": {exec.Query{Pred: access.Range(access.NewPath("n"), &access.Bound{Value: value.Int32Of(9)},
			nil), OrderBy: orderBy(false, "n"), Compare: value.CompareCosmos, Limit: 10},
			"Limit gave 10, Merge gave 10, IndexScan gave 10 of 11"},
		"a sort": {exec.Query{Pred: eq("a", 3), OrderBy: orderBy(true, "b"), Compare: value.CompareCosmos, Match: odd,
			Limit: 7}, "Limit gave 7, TopK gave 7, Filter gave 100, IndexScan gave 100 of 100"},
		"creation order": {exec.Query{Pred: eq("a", 3), Shown: exec.Creation},
			"CreationOrder gave 100, IndexScan gave 100 of 100"},
	} {
		before := *readAll(t, c, &x.q).Stats()
		x.q.Explain = true
		rows := readAll(t, c, &x.q)
		s, e := *rows.Stats(), rows.Explain(true)
		if s.Plan, s.Tree, s.Explained = before.Plan, before.Tree, 0; s != before {
			t.Errorf("%s: EXPLAIN changes what is read: %+v, before it was %+v", name, s, before)
		}
		estimated(t, name, &e.Plan)
		for i := range e.Rejected {
			estimated(t, name, &e.Rejected[i])
		}
		var steps []string
		for line := range strings.Lines(e.String()) {
			op, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			_, given, _ := strings.Cut(rest, "gave ")
			given, _, _ = strings.Cut(given, "]")
			if op != "rejected" {
				steps = append(steps, op+" gave "+strings.Replace(given, ", entries", " of", 1))
			}
		}
		if got := strings.Join(steps, ", "); got != x.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, x.want)
		}
	}
}

// readAll runs a query to its end, or to its limit.
func readAll(t *testing.T, c *core.Container, q *exec.Query) *exec.Rows {
	t.Helper()
	rows, err := c.Query(bg, q)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for n := 0; (q.Limit == 0 || n < q.Limit) && rows.Next(); n++ {
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return rows
}

// estimated asserts that a step, and those below it, have an estimate of their rows and a cost. For an index that was
// read to its end, the estimate is close.
func estimated(t *testing.T, name string, s *plan.Step) {
	t.Helper()
	if s.Rows == nil || s.Cost == nil || *s.Cost <= 0 {
		t.Fatalf("%s: no estimate of %+v", name, s)
	}
	if s.Op == "IndexScan" && s.Entries != nil && *s.Entries >= 100 && !s.AtLeast &&
		math.Abs(*s.Rows-float64(*s.Entries)) > 20 {
		t.Errorf("%s: an estimate of %.0f rows for %d entries", name, *s.Rows, *s.Entries)
	}
	for i := range s.Steps {
		estimated(t, name, &s.Steps[i])
	}
}
