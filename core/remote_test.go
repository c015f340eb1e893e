package core_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// Over a network items are fetched in chunks and slots are begun concurrently. With many slots a local engine does the
// latter too. That isn't visible: pages have the same rows, charge and continuation as on a local engine, and ordered
// rows come in the same order from 40 slots as from one.
func TestRemotePagesAreTheSame(t *testing.T) {
	t.Parallel()
	queries := manyKinds()
	open := func(eng kv.Engine, slots int) *core.Container {
		return forManyKinds(t, opened(t, kv.Checked(eng), core.Options{MinSlots: slots}), 300)
	}
	one := open(memkv.New(), 1)
	own := queries["own keys"]
	waitPlan(t, one, &own, func(p *access.Plan) bool { return p.Kind == access.Ordered && p.Why == access.EntryOfKey })
	local, remote := open(memkv.New(), 40), open(&kvtest.Slow{Engine: memkv.New(), Far: true}, 40)
	pages := []int{7, 1000, 1, 50}[:race.Fewer(4, 2)]
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		q := queries[name]
		q.PlanHash = 1
		for _, page := range pages {
			want, got := pagesOf(t, local, q, page), pagesOf(t, remote, q, page)
			if got != want {
				t.Errorf("%s, pages of %d: over a network\n%s\nlocally\n%s", name, page, got, want)
			}
		}
		if len(q.OrderBy) > 0 {
			want := strings.Join(ids(t, one, &q), " ")
			for _, c := range []*core.Container{local, remote} {
				if got := strings.Join(ids(t, c, &q), " "); got != want {
					t.Errorf("%s: in many slots\n%s\nin one\n%s", name, got, want)
				}
			}
		}
	}
	for _, page := range pages {
		if want, got := feedPages(t, local, page), feedPages(t, remote, page); got != want {
			t.Errorf("feed, pages of %d: over a network\n%s\nlocally\n%s", page, got, want)
		}
	}
}

// manyKinds returns queries of all kinds, over the items of forManyKinds.
func manyKinds() map[string]exec.Query {
	n, k, s := access.NewPath("n"), access.NewPath("k"), access.NewPath("s")
	order := func(desc bool, ps ...access.Path) (out []exec.Order) {
		for _, p := range ps {
			out = append(out, exec.Order{Path: p, Desc: desc})
		}
		return out
	}
	var someIDs []value.Value
	for i := range 30 {
		someIDs = append(someIDs, value.StringOf(fmt.Sprint(i*9)))
	}
	var scattered []epk.Range // two in each of many slots
	for i := range 64 {
		scattered = append(scattered, epk.Range{Min: fmt.Sprintf("%02X4", i*2), Max: fmt.Sprintf("%02XC", i*2)})
	}
	odd := func(it *core.Item) (bool, error) { return it.LSN%2 == 1, nil }
	w := access.NewPath("w", "v").Element() // an item's key is the v of its first w: the index may give this order
	first := func(desc bool) []exec.Order {
		return []exec.Order{{Path: w, Desc: desc, Own: true, Key: func(it *core.Item) value.Value {
			var v value.Value
			if a := doc.Get(it.Doc, "w").Iter(); a.Next() {
				v = a.Value().Get("v")
			}
			return v
		}}}
	}
	return map[string]exec.Query{
		"all":             {},
		"equality":        *eqQuery("k", 3),
		"filtered":        {Pred: access.Eq(k, value.Int32Of(3)), Match: odd},
		"range":           {Pred: access.Range(n, &access.Bound{Value: value.Int32Of(30)}, nil), Match: odd},
		"union":           {Pred: access.In(k, value.Int32Of(1), value.Int32Of(4))},
		"elements":        {Pred: access.Eq(access.Path{Segs: []string{"a"}, Elements: true}, value.Int32Of(2))},
		"order":           {OrderBy: order(false, n), Compare: value.CompareCosmos},
		"order down":      {OrderBy: order(true, n), Compare: value.CompareCosmos},
		"order limit":     {OrderBy: order(false, n), Compare: value.CompareCosmos, Limit: 25},
		"order with ties": {OrderBy: order(true, k), Compare: value.CompareCosmos},
		"order of a range": {OrderBy: order(false, n), Compare: value.CompareCosmos,
			Pred: access.Range(n, &access.Bound{Value: value.Int32Of(50)}, nil), Match: odd},
		"composite":      {OrderBy: order(false, k, s), Compare: value.CompareCosmos, Collation: access.JSONOrder},
		"composite down": {OrderBy: order(true, k, s), Compare: value.CompareCosmos, Collation: access.JSONOrder},
		"ids": {Pred: access.And(access.In(access.NewPath("pk"), value.StringOf("p3"), value.StringOf("p9")),
			access.In(access.NewPath("_id"), someIDs...))},
		"one key":            {PK: pk("p3"), Pred: access.In(access.NewPath("_id"), someIDs...)},
		"newest":             {Shown: exec.Newest, Pred: access.Eq(k, value.Int32Of(3))},
		"filtered scan":      {Match: odd},
		"ranges":             {Ranges: scattered},
		"oldest":             {Shown: exec.Oldest},
		"newest of all":      {Shown: exec.Newest, Match: odd},
		"made in partitions": {Shown: exec.CreationByPartition},
		"made in one key":    {PK: pk("p3"), Shown: exec.Creation},
		"made in ranges":     {Ranges: scattered, Shown: exec.Newest},
		"key order":          {OrderBy: order(false, access.NewPath("pk"), access.ID), Compare: value.CompareCosmos},
		"key order from a key": {OrderBy: order(false, access.NewPath("pk"), access.ID), Compare: value.CompareCosmos,
			Pred: access.Range(access.NewPath("pk"), &access.Bound{Value: value.StringOf("p4")}, nil), Match: odd},
		"key order of named items": {OrderBy: order(false, access.NewPath("pk"), access.ID),
			Compare: value.CompareCosmos, Pred: access.Eq(n, value.Int32Of(30))},
		"own keys":      {OrderBy: first(false), Compare: value.CompareCosmos, Limit: 7},
		"own keys down": {OrderBy: first(true), Compare: value.CompareCosmos, Limit: 7, Match: odd},
		"values":        {Pred: access.Exists(k), Needs: []access.Path{k}, Want: exec.WantValues},
		"count":         {Pred: access.Eq(k, value.Int32Of(3)), Needs: []access.Path{k}, Whole: true, Repeat: true},
		"max read":      {Pred: access.Eq(k, value.Int32Of(3)), Match: odd, MaxRead: 11},
	}
}

// forManyKinds makes a container with n items for the queries of manyKinds.
func forManyKinds(t *testing.T, e *core.Engine, n int) *core.Container {
	t.Helper()
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: []byte(`{"includedPaths":[{"path":"/*"}],` +
		`"compositeIndexes":[[{"path":"/k"},{"path":"/s"}]]}`)})
	for i := range n {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"k":%d,"s":"s%d","a":[%d,2],`+
			`"w":[{"v":%d},{"v":%d}]}`, i, i%60, i*7919%97, i%5, i%7, i%4, i*31%101, i%11))
	}
	for i := 0; i < n; i += 10 {
		put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%d","pk":"p%d","n":%d,"k":3,"s":"x","a":[2],`+
			`"w":[{"v":%[1]d},{"v":7}]}`, i, i%60, i))
	}
	return c
}

// pagesOf reads a query in pages and returns everything that a client can see of them.
func pagesOf(t *testing.T, c *core.Container, q exec.Query, page int) string {
	t.Helper()
	var out strings.Builder
	for range 1000 {
		q.Page = page
		r, err := c.Query(bg, &q)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < page && r.Next(); n++ {
			fmt.Fprintf(&out, "%s*%d ", r.Item().ID().Str(), r.Times())
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		st := *r.Stats()
		fmt.Fprintf(&out, "read %d %d %d ", st.Entries, st.Items, st.Bytes)
		if q.Whole {
			r.Close()
			return out.String()
		}
		tok, over := r.Continuation(), r.Exhausted()
		st = *r.Stats()
		fmt.Fprintf(&out, "%x %v, looked ahead %d %d\n", tok, over, st.Entries, st.Items)
		r.Close()
		if over || tok == "" {
			return out.String()
		}
		q.Continuation = tok
	}
	t.Fatal("the query does not end")
	return ""
}

// feedPages reads the feed in pages and returns everything that a client can see of them.
func feedPages(t *testing.T, c *core.Container, page int) string {
	t.Helper()
	var out strings.Builder
	for pos := feed.Start(); ; {
		p, err := c.Feed(bg, feed.Scope{}, pos, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range p.Items {
			fmt.Fprintf(&out, "%s@%d ", it.ID().Str(), it.LSN)
		}
		fmt.Fprintf(&out, "%s %v\n", p.Next.String(), p.More)
		if pos = p.Next; !p.More {
			return out.String()
		}
	}
}
