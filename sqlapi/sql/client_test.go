package sql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/gateway"

	"github.com/orrerydb/orrery/sqlapi/sql/funcs"
)

// client runs a query like SDKs do: it gets the plan, sends the rewritten text to each partition, and merges.
type client struct {
	t      *testing.T
	c      *core.Container
	params []Param
}

// partition returns all rows of a text in one partition, in pages of two.
func (k client) partition(text string, p core.Partition) (rows []value.Value) {
	req := Request{PageSize: 2, Ranges: []Range{{p.Min, p.Max}}}
	for {
		pl, err := Compile(text, k.params, testEnv)
		if err != nil {
			k.t.Fatalf("%s: %v", text, err)
		}
		out := &Page{}
		if err := pl.Execute(context.Background(), k.c, req, out); err != nil {
			k.t.Fatalf("%s: %v", text, err)
		}
		v, err := doc.ValueFromJSON([]byte("[" + string(out.Body) + "]"))
		if err != nil {
			k.t.Fatalf("%s: %s", text, out.Body)
		}
		for it := v.Iter(); it.Next(); {
			rows = append(rows, it.Value())
		}
		if req.Continuation = out.Continuation; req.Continuation == "" {
			return rows
		}
	}
}

func (k client) run(text string) (rows []string) {
	b, err := QueryPlan(text, k.params, nil, k.c.Spec().PartitionKey)
	if err != nil {
		k.t.Fatalf("%s: %v", text, err)
	}
	plan, err := doc.ValueFromJSON(b)
	if err != nil {
		k.t.Fatalf("%s: %s", text, b)
	}
	if plan.Get("hybridSearchQueryInfo").IsDefined() {
		return k.runHybrid(plan)
	}
	info := plan.Get("queryInfo")
	if re := info.Get("rewrittenQuery").Str(); re != "" {
		text = strings.ReplaceAll(re, gateway.FilterPlaceholder, "true")
	}
	var all []value.Value
	parts, err := k.c.Partitions(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	for _, p := range parts {
		if k.overlaps(plan.Get("queryRanges"), p) {
			all = append(all, k.partition(text, p)...)
		}
	}
	switch {
	case info.Get("orderBy").Len() > 0:
		all = mergeOrdered(all, info.Get("orderBy"))
	case info.Get("groupByExpressions").Len() > 0 || info.Get("groupByAliasToAggregateType").Len() > 0:
		all = mergeGroups(all, info)
	case info.Get("aggregates").Len() > 0:
		all = mergeValues(all, info.Get("aggregates").At(0).Str())
	}
	if info.Get("distinctType").Str() != "None" {
		seen := funcs.NewSet()
		all = slices.DeleteFunc(all, func(v value.Value) bool { return !seen.Add(v) })
	}
	if n := info.Get("offset"); n.IsNumber() {
		all = all[min(int(n.Int()), len(all)):]
	}
	for _, name := range []string{"limit", "top"} {
		if n := info.Get(name); n.IsNumber() {
			all = all[:min(int(n.Int()), len(all))]
		}
	}
	if d := info.Get("dCountInfo"); d.Kind() == value.Object {
		n := value.IntOf(int64(len(all)))
		if alias := d.Get("dCountAlias").Str(); alias != "" {
			var b funcs.Builder
			b.Field(alias, n)
			n = b.Object()
		}
		all = []value.Value{n}
	}
	for _, v := range all {
		rows = append(rows, string(doc.AppendJSON(nil, v)))
	}
	return rows
}

func (k client) overlaps(ranges value.Value, p core.Partition) bool {
	for it := ranges.Iter(); it.Next(); {
		lo, hi := it.Value().Get("min").Str(), it.Value().Get("max").Str()
		if lo < p.Max && (hi > p.Min || lo == hi && hi == p.Min) {
			return true
		}
	}
	return false
}

// mergeOrdered sorts the rows of all partitions by their order-by items and returns the payloads.
func mergeOrdered(all []value.Value, dirs value.Value) (out []value.Value) {
	slices.SortStableFunc(all, func(a, b value.Value) int {
		for i := range dirs.Len() {
			x, y := a.Get("orderByItems").At(i).Get("item"), b.Get("orderByItems").At(i).Get("item")
			d := value.CompareCosmos(x, y)
			if dirs.At(i).Str() == "Descending" {
				d = -d
			}
			if d != 0 {
				return d
			}
		}
		return 0
	})
	for _, v := range all {
		out = append(out, v.Get("payload"))
	}
	return out
}

// merged combines the partial states of one aggregate.
func merged(plan string, parts []value.Value) value.Value {
	var sum, count float64
	var best value.Value
	for _, p := range parts {
		item := p.Get("item")
		switch plan {
		case "Count", "CountIf", "Sum":
			if !item.IsDefined() {
				return value.Value{}
			}
			sum += item.Float()
		case "Average":
			if !item.Get("sum").IsDefined() {
				return value.Value{}
			}
			sum, count = sum+item.Get("sum").Float(), count+item.Get("count").Float()
		default:
			if p.Get("item2").Get("count").Int() == 0 {
				continue
			}
			if d := value.CompareCosmos(item, best); !best.IsDefined() || plan == "Min" && d < 0 ||
				plan == "Max" && d > 0 {
				best = item
			}
		}
	}
	switch plan {
	case "Average":
		return funcs.Num(sum / count)
	case "Min", "Max":
		return best
	}
	return funcs.Num(sum)
}

func mergeValues(all []value.Value, plan string) []value.Value {
	var parts []value.Value
	for _, v := range all {
		parts = append(parts, v.At(0))
	}
	if v := merged(plan, parts); v.IsDefined() {
		return []value.Value{v}
	}
	return nil
}

func mergeGroups(all []value.Value, info value.Value) (out []value.Value) {
	var keys []value.Value
	groups := map[int][]value.Value{}
	for _, v := range all {
		i := slices.IndexFunc(keys, func(k value.Value) bool { return funcs.Same(k, v.Get("groupByItems")) })
		if i < 0 {
			i = len(keys)
			keys = append(keys, v.Get("groupByItems"))
		}
		groups[i] = append(groups[i], v.Get("payload"))
	}
	for i := range keys {
		first := groups[i][0]
		if info.Get("hasSelectValue").Bool() {
			if info.Get("aggregates").Len() == 0 {
				out = append(out, first)
			} else {
				out = append(out, mergeValues(groups[i], info.Get("aggregates").At(0).Str())...)
			}
			continue
		}
		var b funcs.Builder
		for it := info.Get("groupByAliasToAggregateType").Iter(); it.Next(); {
			name := string(it.Key())
			if it.Value().Kind() == value.Null {
				b.Field(name, first.Get(name))
				continue
			}
			var parts []value.Value
			for _, p := range groups[i] {
				parts = append(parts, p.Get(name))
			}
			b.Field(name, merged(it.Value().Str(), parts))
		}
		out = append(out, b.Object())
	}
	return out
}

// threePartitions is an empty container of three physical partitions.
func threePartitions(t *testing.T) *core.Container {
	e, err := core.Open(context.Background(), memkv.New(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
		t.Fatal(err)
	}
	c, err := e.CreateContainer(context.Background(), "d",
		core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}},
			Throughput: core.Throughput{Manual: 25100}})
	if err != nil {
		t.Fatal(err)
	}
	if parts, err := c.Partitions(t.Context()); err != nil || len(parts) != 3 {
		t.Fatalf("%d partitions (%v), wanted 3", len(parts), err)
	}
	return c
}

// TestClientMerge: a query that a client runs over three partitions with its plan has the server's result.
func TestClientMerge(t *testing.T) {
	c := threePartitions(t)
	for i := range 60 {
		b := fmt.Sprintf(`{"id":"i%02d","pk":"p%d","n":%d,"m":%d,"g":"g%d","tags":["t%d","u"]}`, i, i%13, i,
			(i*7)%11, i%4, i%3)
		if i%9 == 0 {
			b = fmt.Sprintf(`{"id":"i%02d","pk":"p%d","m":"text","g":"g%d"}`, i, i%13, i%4)
		}
		d, err := doc.FromJSON(nil, []byte(b), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		insert(t, c, d)
	}
	k := client{t: t, c: c, params: []Param{{"@p", value.StringOf("p3")}}}
	for _, text := range []string{
		`SELECT * FROM c`, `SELECT c.id FROM c WHERE c.n > 30`, `SELECT VALUE c.id FROM c WHERE c.pk = @p`,
		`SELECT VALUE c.id FROM c WHERE c.pk IN ("p1", "p2", "zz")`,
		`SELECT VALUE c.id FROM c ORDER BY c.id`, `SELECT VALUE c.n FROM c ORDER BY c.n DESC`,
		`SELECT c.id, c.m FROM c ORDER BY c.m, c.id DESC`,
		`SELECT TOP 7 c.id FROM c ORDER BY c.id DESC`,
		`SELECT c.id FROM c WHERE c.n < 40 ORDER BY c.id OFFSET 5 LIMIT 6`,
		`SELECT * FROM c WHERE c.m = 3 OR c.m = 4 ORDER BY c.id`,
		`SELECT DISTINCT VALUE c.g FROM c`, `SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g`,
		`SELECT DISTINCT TOP 3 VALUE c.g FROM c ORDER BY c.g DESC`, `SELECT DISTINCT c.g, c.m FROM c`,
		`SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags`, `SELECT c.id, t FROM c JOIN t IN c.tags ORDER BY c.id`,
		`SELECT VALUE COUNT(1) FROM c`, `SELECT VALUE SUM(c.n) FROM c`, `SELECT VALUE AVG(c.n) FROM c`,
		`SELECT VALUE MIN(c.n) FROM c`, `SELECT VALUE MAX(c.m) FROM c`,
		`SELECT VALUE SUM(c.m) FROM c`, `SELECT VALUE MAX(c.missing) FROM c`,
		`SELECT VALUE COUNT(c.n) FROM c WHERE c.pk = @p`, `SELECT VALUE COUNTIF(c.n > 10) FROM c`,
		`SELECT COUNT(1) AS n, AVG(c.n) AS a, MIN(c.id) AS low FROM c`, `SELECT MAX(c.n), MIN(c.n) FROM c`,
		`SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g`,
		`SELECT c.g, AVG(c.n) AS a, MAX(c.id) AS last FROM c WHERE c.n > 5 GROUP BY c.g`,
		`SELECT VALUE COUNT(1) FROM c GROUP BY c.g`,
		`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.g FROM c)`,
		`SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.g, c.m FROM c WHERE c.n > 5)`,
		`SELECT COUNT(d) FROM (SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags) AS d`,
		`SELECT TOP 5 VALUE c.id FROM c WHERE IS_DEFINED(c.n) ORDER BY VectorDistance([c.n, 1], [40.2, 1], true, {"distanceFunction": "euclidean"})`,
		`SELECT TOP 9 c.id FROM c WHERE IS_DEFINED(c.n) ORDER BY ST_DISTANCE({"type": "Point", "coordinates": [c.n, 1]}, {"type": "Point", "coordinates": [40.2, 1]})`,
		`SELECT VALUE c.g FROM c GROUP BY c.g`, `SELECT UPPER(c.g) AS g, SUM(c.n) AS s FROM c GROUP BY UPPER(c.g)`,
		`SELECT t, COUNT(1) AS n FROM c JOIN t IN c.tags GROUP BY t`,
	} {
		want, err := evalCore(c, text, k.params, 0)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		ordered := strings.Contains(text, "ORDER BY")
		if got := k.run(text); plainRows(got, ordered) != plainRows(want, ordered) {
			t.Errorf("%s\n got %v\nwant %v", text, got, want)
		}
	}
}

// TestClientOracle: random queries that a client runs over three partitions with their plans have the oracle's results.
func TestClientOracle(t *testing.T) {
	w := &oracleWorld{t: t, g: generator{rand.New(rand.NewPCG(5, 8))}, items: map[string]any{},
		cs: []*core.Container{threePartitions(t)}}
	for i := range 90 {
		w.put(i)
	}
	k := client{t: t, c: w.cs[0]}
	def := k.c.Spec().PartitionKey
	planned, rewritten := 0, 0
	for range 700 {
		text, ordered := w.g.naiveQueryText()
		plan, err := QueryPlan(text, nil, nil, def)
		if err != nil {
			if m := err.Error(); !strings.Contains(m, "Compositions") && !strings.Contains(m, "presence of GROUP BY") {
				t.Fatalf("%s: %v", text, err)
			}
			continue
		}
		planned++
		if !strings.Contains(string(plan), `"rewrittenQuery":""`) {
			rewritten++
		}
		ordered = ordered && !strings.Contains(text, " GROUP BY")
		want := w.answer(text, ordered)
		got := k.run(text)
		for i, r := range got {
			got[i] = naiveText(plainValue(t, r))
		}
		if !ordered {
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s\n%s\n got %v\nwant %v", text, plan, got, want)
		}
	}
	if planned < 400 || rewritten < 250 {
		t.Errorf("%d queries were planned, %d rewritten", planned, rewritten)
	}
}
