package agg

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
)

// countHost counts the queries of a memHost.
type countHost struct {
	*memHost
	finds int
}

func (h *countHost) Find(coll string, q Lead, e *expr.Env) (Iter, error) {
	h.finds++
	return h.memHost.Find(coll, q, e)
}

// TestLookupBatches: a $lookup by two fields gives what a $lookup with an empty pipeline gives, which joins document by
// document, and needs few queries.
func TestLookupBatches(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 2))
	random := func() string {
		switch rnd.IntN(9) {
		case 0:
			return "null"
		case 1:
			return fmt.Sprintf(`[%d,%d]`, rnd.IntN(20), rnd.IntN(20))
		case 2:
			return fmt.Sprintf(`%d.0`, rnd.IntN(20))
		case 3:
			return fmt.Sprintf(`{"x":%d}`, rnd.IntN(3))
		case 4:
			return fmt.Sprintf(`[[%d]]`, rnd.IntN(3))
		case 5:
			return `[]`
		}
		return fmt.Sprint(rnd.IntN(20))
	}
	h := &countHost{memHost: &memHost{colls: map[string][]value.Value{}}}
	for i := range 700 {
		a, b := `,"a":`+random(), `,"b":[{"c":`+random()+`},{"c":`+random()+`}]`
		if rnd.IntN(10) == 0 {
			a = ""
		}
		if rnd.IntN(3) == 0 {
			b = `,"b":{"c":` + random() + `}`
		}
		h.colls["in"] = append(h.colls["in"], mtest.Value(t, fmt.Sprintf(`{"_id":%d%s}`, i, a)))
		if i < 100 {
			h.colls["out"] = append(h.colls["out"], mtest.Value(t, fmt.Sprintf(`{"_id":%d%s}`, i, b)))
		}
	}
	result := func(more string) string {
		h.finds = 0
		p, err := Compile(mtest.Value(t, `[{"$lookup":{"from":"out","localField":"a","foreignField":"b.c","as":"j"`+
			more+`}}]`), Options{})
		if err != nil {
			t.Fatal(err)
		}
		it, err := p.RunAll(&Exec{Env: mtest.Env(), Host: h}, NewSlice(h.colls["in"]))
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		var b strings.Builder
		for {
			d, ok, err := it.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return b.String()
			}
			b.WriteString(mtest.Text(d) + "\n")
		}
	}
	want := result(`,"pipeline":[]`)
	if h.finds != 700 {
		t.Fatalf("%d queries for 700 documents with a pipeline", h.finds)
	}
	if got := result(""); got != want {
		t.Fatalf("got %s\nwant %s", got, want)
	}
	if h.finds > 20 {
		t.Errorf("%d queries for 700 documents", h.finds)
	}
	if n := strings.Count(want, `"b":`); n < 1000 {
		t.Errorf("only %d documents were joined", n)
	}
}
