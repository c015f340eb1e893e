package sql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
)

// tupleEvent returns an element of events, of any shape.
func tupleEvent(r *rand.Rand) string {
	val := func() string {
		return []string{fmt.Sprint(r.IntN(12)), fmt.Sprintf(`"n%d"`, r.IntN(12)), fmt.Sprintf(`"n%d"`, r.IntN(12)),
			"null", "true", "1.5", `[1]`, `{"x":1}`, `"` + strings.Repeat("l", 300) + fmt.Sprint(r.IntN(2)) +
				`"`}[r.IntN(9)]
	}
	switch r.IntN(12) {
	case 0:
		return fmt.Sprintf(`{"category":%s}`, val())
	case 1:
		return fmt.Sprintf(`{"name":%s}`, val())
	case 2:
		return val()
	case 3:
		return fmt.Sprintf(`[{"name":%s,"category":%s}]`, val(), val())
	case 4:
		return fmt.Sprintf(`{"name":{"x":%s},"category":%s}`, val(), val())
	}
	return fmt.Sprintf(`{"name":%s,"category":%s}`, val(), val())
}

func tupleDoc(r *rand.Rand, id int, large bool) string {
	n := r.IntN(5)
	if large {
		n = 1200 // more elements than get their own entries
	}
	events := make([]string, n)
	for i := range events {
		events[i] = tupleEvent(r)
	}
	list := "[" + strings.Join(events, ",") + "]"
	if r.IntN(20) == 0 {
		list = tupleEvent(r)
	}
	return fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"events":%s}`, id, id%7, r.IntN(5), list)
}

// Conditions on one element of an array use a tuple path, with the rows of a scan, over pages and changes.
func TestTuplePaths(t *testing.T) {
	const tuple = `{"includedPaths":[{"path":"/events/[]/{name, category}/?"},{"path":"/n/?"}],` +
		`"excludedPaths":[{"path":"/*"}]}`
	var cs []*core.Container
	for _, policy := range []string{tuple, `{"indexingMode":"none","automatic":false}`, ""} {
		cs = append(cs, memContainer(t, 1+3*len(cs), core.ContainerSpec{IndexingPolicy: []byte(policy)}))
	}
	r := rand.New(rand.NewPCG(8, 8))
	for i := range 400 {
		d := mustJSON(t, tupleDoc(r, i, false))
		for _, c := range cs {
			insert(t, c, d)
		}
	}
	lit := func() string {
		return []string{fmt.Sprint(r.IntN(12)), fmt.Sprintf(`"n%d"`, r.IntN(12)), fmt.Sprintf(`"n%d"`, r.IntN(12)),
			"null", `"` + strings.Repeat("l", 300) + `1"`}[r.IntN(5)]
	}
	cond := func(path string) string {
		switch r.IntN(5) {
		case 0:
			return fmt.Sprintf("%s IN (%s, %s)", path, lit(), lit())
		case 1:
			return fmt.Sprintf(`%s > "n%d"`, path, r.IntN(12))
		case 2:
			return fmt.Sprintf(`STARTSWITH(%s, "n1")`, path)
		}
		return path + " = " + lit()
	}
	taken, inside := 0, 0
	for n := range 150 {
		where := "e.name = " + lit() + " AND " + cond("e.category")
		text := []string{
			"SELECT c.id FROM c WHERE EXISTS(SELECT VALUE e FROM e IN c.events WHERE " + where + ")",
			"SELECT c.id, e FROM c JOIN e IN c.events WHERE " + where,
			"SELECT c.id FROM c WHERE EXISTS(SELECT VALUE e FROM e IN c.events WHERE " + cond("e.name") +
				") AND EXISTS(SELECT VALUE e FROM e IN c.events WHERE " + where + ")",
			"SELECT c.id FROM c WHERE EXISTS(SELECT VALUE e FROM e IN c.events WHERE " + where + ") ORDER BY c.n DESC",
			"SELECT c.id FROM c JOIN e IN c.events JOIN f IN c.events WHERE e.name = " + lit() +
				" AND f.category = " + lit(),
			"SELECT c.id FROM c JOIN e IN c.events WHERE EXISTS(SELECT VALUE f FROM f IN c.events WHERE e.name = " +
				lit() + " AND f.category = " + lit() + ")",
			"SELECT c.id FROM c WHERE EXISTS(SELECT VALUE e FROM e IN c.events WHERE e.name = " + lit() +
				" OR e.category = " + lit() + ")",
			"SELECT c.id FROM c JOIN e IN c.events JOIN f IN c.events WHERE (e.name = " + lit() + " OR f.name = " +
				lit() + ") AND e.category = " + lit(),
		}[n%[]int{8, 4}[n/100]] // not all pairs of many elements
		if n == 100 { // the items change
			for i := range 100 {
				d := mustJSON(t, tupleDoc(r, i*4, i%40 == 0))
				for _, c := range cs {
					if _, err := c.Write(context.Background(), core.Write{Kind: core.Upsert, Doc: d}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		var key core.PartitionKey
		if n%3 == 1 {
			key = core.PartitionKey{value.StringOf("p3")}
		}
		want, _ := pages(t, cs[1], testEnv, Request{PageSize: 1000, PK: key}, text)
		for _, c := range []*core.Container{cs[0], cs[2]} {
			for _, size := range []int{1, 1000} {
				if size == 1 && n%5 > 0 {
					continue
				}
				got, m := pages(t, c, testEnv, Request{PageSize: size, PK: key}, text)
				if c == cs[0] && size > 1 &&
					strings.Contains(m.Explain, "composite /events/[]/name, /events/[]/category") {
					if taken++; key != nil {
						inside++
					}
				}
				sameRows(t, m.Explain, text, got, want, nil, nil)
			}
		}
	}
	if taken < 50 || inside < 8 {
		t.Errorf("the tuple path was taken %d times, %d of them inside a logical partition", taken, inside)
	}
}

// A tuple path finds the items in which one element satisfies all conditions. The paths of the members find more items.
func TestTuplePathReadsLess(t *testing.T) {
	const query = `SELECT c.id FROM c WHERE EXISTS(SELECT VALUE e FROM e IN c.events ` +
		`WHERE e.name = "a" AND e.category = "x")`
	read := map[string]int{}
	for name, path := range map[string]string{"tuple": `{"path":"/events/[]/{name, category}/?"},`, "paths": ""} {
		c := memContainer(t, 4, core.ContainerSpec{
			IndexingPolicy: []byte(`{"includedPaths":[` + path + `{"path":"/*"}]}`)})
		for i := range 600 {
			d := `{"id":"%d","pk":"p%d","events":[{"name":"a","category":"y%d"},{"name":"b%d","category":"x"}]}`
			if i%60 == 0 {
				d = `{"id":"%d","pk":"p%d","events":[{"name":"c%d"},{"name":"a","category":"x","n":%d}]}`
			}
			insert(t, c, mustJSON(t, fmt.Sprintf(d, i, i, i, i)))
		}
		rows, m := pages(t, c, testEnv, Request{PageSize: 1000}, query)
		if len(rows) != 10 {
			t.Errorf("%s: %d rows", name, len(rows))
		}
		read[name] = m.ItemsRead
		if u := m.Indexes; name == "tuple" && u != nil &&
			!slices.ContainsFunc(u.UsedComposite, func(x CompositeIndex) bool {
				return slices.Equal(x.Specs, []string{"/events/[]/name ASC", "/events/[]/category ASC"})
			}) {
			t.Errorf("the indexes used are %+v", u)
		}
	}
	if read["tuple"] != 10 || read["paths"] < 100 {
		t.Errorf("items read: %v", read)
	}
}
