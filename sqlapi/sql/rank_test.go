package sql

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/gateway"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// rankItem is an item with texts as the tests of ORDER BY RANK know it. Its words are their own stems.
type rankItem struct {
	id          string
	text, title []string // nil: it has none
	v           []float64
	n           int
}

func (x rankItem) json() string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":"%s","pk":"p%d","n":%d`, x.id, x.n%7, x.n)
	if x.text != nil {
		fmt.Fprintf(&b, `,"text":"%s"`, strings.Join(x.text, " "))
	}
	if x.title != nil {
		fmt.Fprintf(&b, `,"title":"%s"`, strings.Join(x.title, ", "))
	}
	if x.v != nil {
		fmt.Fprintf(&b, `,"v":[%g,%g]`, x.v[0], x.v[1])
	}
	return b.String() + "}"
}

var rankWords = []string{"tree", "river", "stone", "cloud", "bird", "wolf", "lamp", "coat"}

func randomItem(r *rand.Rand, n int) rankItem {
	words := func(most int) (out []string) {
		out = []string{}
		for range r.IntN(most) {
			out = append(out, rankWords[r.IntN(len(rankWords))])
		}
		return out
	}
	x := rankItem{id: fmt.Sprintf("i%03d", n), n: n}
	if n%9 > 0 {
		x.text = words(12)
	}
	if n%5 > 0 {
		x.title = words(4)
	}
	if n%8 > 0 {
		x.v = []float64{math.Cos(float64(r.IntN(50))), math.Sin(float64(r.IntN(50)))}
	}
	return x
}

// noScore is the score of an item without one.
var noScore = math.Inf(-1)

// textScores are the scores of texts for terms of one word each, with the statistics of all items.
func textScores(items []rankItem, field func(rankItem) []string, terms ...string) []float64 {
	words := 0.0
	with := make([]float64, len(terms))
	for _, x := range items {
		words += float64(len(field(x)))
		for i, term := range terms {
			if slices.Contains(field(x), term) {
				with[i]++
			}
		}
	}
	n := float64(len(items))
	out := make([]float64, len(items))
	for k, x := range items {
		if field(x) == nil {
			out[k] = noScore
			continue
		}
		for i, term := range terms {
			f := 0.0
			for _, w := range field(x) {
				if w == term {
					f++
				}
			}
			out[k] += math.Log(1+(n-with[i]+0.5)/(with[i]+0.5)) * f * 2.2 /
				(f + 1.2*(0.25+0.75*float64(len(field(x)))/(words/n)))
		}
	}
	return out
}

func vectorScores(items []rankItem, x, y float64) []float64 {
	out := make([]float64, len(items))
	for i, it := range items {
		if out[i] = noScore; it.v != nil {
			out[i] = (it.v[0]*x + it.v[1]*y) / math.Hypot(it.v[0], it.v[1]) / math.Hypot(x, y)
		}
	}
	return out
}

// fuseScores are the results of RRF of all items.
func fuseScores(lists [][]float64, weights []float64) []float64 {
	out := make([]float64, len(lists[0]))
	for k, list := range lists {
		list = slices.Clone(list)
		for i, s := range list {
			if weights[k] < 0 && s != noScore {
				list[i] = -s
			}
		}
		distinct := map[string]bool{}
		for _, s := range list {
			distinct[near(s)] = true
		}
		order := slices.SortedFunc(maps.Keys(distinct), func(a, b string) int {
			x, _ := strconv.ParseFloat(a, 64)
			y, _ := strconv.ParseFloat(b, 64)
			switch {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return 0
		})
		for i, s := range list {
			out[i] += math.Abs(weights[k]) / float64(61+slices.Index(order, near(s)))
		}
	}
	return out
}

func near(f float64) string { return strconv.FormatFloat(f, 'f', 9, 64) }

// rankQuery is a query, and the values by which its rows are ordered, best first; those of items that it doesn't
// return are NaN.
type rankQuery struct {
	text   string
	values []float64
	most   int
}

func rankQueries(items []rankItem) []rankQuery {
	text := func(x rankItem) []string { return x.text }
	title := func(x rankItem) []string { return x.title }
	only := func(values []float64, keep func(rankItem) bool) []float64 {
		out := slices.Clone(values)
		for i := range out {
			if !keep(items[i]) {
				out[i] = math.NaN()
			}
		}
		return out
	}
	a, b, v := textScores(items, text, "wolf", "bird"), textScores(items, title, "stone"), vectorScores(items, 1, 0.3)
	const ab = `FullTextScore(c.text, "wolf", "birds"), FullTextScore(c.title, "stone")`
	const vector = `VectorDistance(c.v, [1, 0.3])`
	return []rankQuery{
		{`SELECT TOP 12 c.n FROM c ORDER BY RANK FullTextScore(c.text, "wolf", "birds")`, a, 12},
		{`SELECT c.n FROM c ORDER BY RANK FullTextScore(c.title, ["Stone"]) OFFSET 0 LIMIT 30`, b, 30},
		{`SELECT c.n FROM c ORDER BY RANK FullTextScore(c.text, "wolf", "bird")`, a, len(items)},
		{`SELECT TOP 9 c.n FROM c WHERE c.n < 50 ORDER BY RANK FullTextScore(c.text, "wolf", "bird")`,
			only(a, func(x rankItem) bool { return x.n < 50 }), 9},
		{`SELECT TOP 9 c.n FROM c WHERE FullTextContains(c.text, "wolf") ` +
			`ORDER BY RANK FullTextScore(c.text, "wolf", "bird")`,
			only(a, func(x rankItem) bool { return slices.Contains(x.text, "wolf") }), 9},
		{`SELECT TOP 20 c.n FROM c ORDER BY RANK ` + vector, v, 20},
		{`SELECT TOP 15 c.n FROM c ORDER BY RANK RRF(` + ab + `)`, fuseScores([][]float64{a, b}, []float64{1, 1}), 15},
		{`SELECT TOP 15 c.n FROM c ORDER BY RANK RRF(` + ab + `, ` + vector + `)`,
			fuseScores([][]float64{a, b, v}, []float64{1, 1, 1}), 15},
		{`SELECT TOP 15 c.n FROM c ORDER BY RANK RRF(` + vector + `, ` + ab + `, [0.5, 2, -1])`,
			fuseScores([][]float64{v, a, b}, []float64{0.5, 2, -1}), 15},
	}
}

// check compares the rows of a query, {"n": number of the item}, with those that are best by its values. Items with
// equal values may stand for one another.
func (q rankQuery) check(t *testing.T, name string, rows []string) {
	t.Helper()
	var best []float64
	for _, v := range q.values {
		if !math.IsNaN(v) {
			best = append(best, v)
		}
	}
	slices.SortFunc(best, func(a, b float64) int {
		if a > b {
			return -1
		}
		return 1
	})
	best = best[:min(len(best), q.most)]
	var want, got []string
	seen := map[int]bool{}
	for i, row := range rows {
		v, err := doc.ValueFromJSON([]byte(row))
		if err != nil {
			t.Fatal(row, err)
		}
		n := int(v.Get("n").Int())
		if seen[n] {
			t.Errorf("%s: %s\nitem %d comes twice", name, q.text, n)
		}
		seen[n] = true
		got = append(got, near(q.values[n]))
		if i < len(best) {
			want = append(want, near(best[i]))
		}
	}
	if len(rows) != len(best) || !slices.Equal(got, want) {
		t.Errorf("%s: %s\n%d rows, wanted %d\n got %v\nwant %v", name, q.text, len(rows), len(best), got, want)
	}
}

// TestRank: the server's orders over three partitions, in pages of any size, and the ones that clients make of the
// query plans are those that are computed here.
func TestRank(t *testing.T) {
	c := threePartitions(t)
	r := rand.New(rand.NewPCG(3, 7))
	var items []rankItem
	for n := range 110 {
		items = append(items, randomItem(r, n))
		insertJSON(t, c, items[n].json())
	}
	k := client{t: t, c: c}
	for _, q := range rankQueries(items) {
		for _, size := range []int{0, 1, 7} {
			rows, err := evalCore(c, q.text, nil, size)
			if err != nil {
				t.Fatal(q.text, err)
			}
			q.check(t, fmt.Sprintf("pages of %d", size), rows)
		}
		q.check(t, "client", k.run(q.text))
	}
}

// TestRankOfOnePartition: the scores of a query about one logical partition come from the texts of all, unless the
// request says otherwise.
func TestRankOfOnePartition(t *testing.T) {
	c := threePartitions(t)
	r := rand.New(rand.NewPCG(8, 2))
	var items []rankItem
	for n := range 60 {
		items = append(items, randomItem(r, n))
		insertJSON(t, c, items[n].json())
	}
	text := func(x rankItem) []string { return x.text }
	const query = `SELECT c.n FROM c ORDER BY RANK FullTextScore(c.text, "wolf", "bird")`
	key := core.PartitionKey{value.StringOf("p3")}
	for _, own := range []bool{false, true} {
		known, of := items, []int{}
		if own {
			known = nil
		}
		for _, x := range items {
			if x.n%7 == 3 {
				of = append(of, x.n)
				if own {
					known = append(known, x)
				}
			}
		}
		scores := textScores(known, text, "wolf", "bird")
		values := slices.Repeat([]float64{math.NaN()}, len(items))
		for i, n := range of {
			if values[n] = scores[i]; !own {
				values[n] = scores[n]
			}
		}
		req := Request{PK: key, PageSize: 3}
		if own {
			req.Statistics = key
		}
		rows, _ := allRows(t, c, query, req, nil)
		rankQuery{query, values, len(items)}.check(t, fmt.Sprint("own statistics ", own), rows)
	}
}

// allRows reads a query in pages, and calls between after each.
func allRows(t *testing.T, c *core.Container, text string, req Request, between func()) (rows []string, read int) {
	t.Helper()
	for {
		pl, err := Compile(text, nil, testEnv)
		if err != nil {
			t.Fatal(text, err)
		}
		out := &Page{}
		if err := pl.Execute(context.Background(), c, req, out); err != nil {
			t.Fatal(text, err)
		}
		read += out.Metrics.ItemsRead
		rows = append(rows, splitRows(string(out.Body))...)
		if req.Continuation = out.Continuation; req.Continuation == "" {
			return rows, read
		}
		if between != nil {
			between()
		}
	}
}

// TestRankAmongWrites: writes between two pages change the statistics of later queries, but no row of this one comes
// twice or is left out. The rows of RRF are computed once, unless what a page keeps is lost.
func TestRankAmongWrites(t *testing.T) {
	c := threePartitions(t)
	for n := range 40 {
		insertJSON(t, c, rankItem{id: fmt.Sprint(n), n: n, text: slices.Repeat([]string{"wolf"}, 1+n),
			title: slices.Repeat([]string{"bird"}, 1+n%20)}.json())
	}
	for rank, most := range map[string]int{
		`FullTextScore(c.text, "wolf")`:                                      40,
		`RRF(FullTextScore(c.text, "wolf"), FullTextScore(c.title, "bird"))`: 40,
	} {
		text := `SELECT c.n FROM c WHERE c.n < 1000 ORDER BY RANK ` + rank
		for _, lost := range []bool{false, true} {
			n := 1000
			rows, read := allRows(t, c, text, Request{PageSize: 3}, func() {
				n++
				insertJSON(t, c, rankItem{id: fmt.Sprintf("%d-%v-%d", len(rank), lost, n), n: n,
					text: slices.Repeat([]string{"wolf", "lamp"}, n%50)}.json())
				if lost {
					c.Kept().Drop()
				}
			})
			seen := map[string]bool{}
			for _, r := range rows {
				if seen[r] {
					t.Errorf("%s: %s comes twice", text, r)
				}
				seen[r] = true
			}
			if len(rows) != most {
				t.Errorf("%s: %d rows, wanted %d", text, len(rows), most)
			}
			if !lost && read > 400 {
				t.Errorf("%s: %d items were read for %d rows", text, read, len(rows))
			}
		}
	}
}

// TestRankMemory: RRF without a limit that needs more memory than a query's share is refused; with one it holds the
// candidates only.
func TestRankMemory(t *testing.T) {
	p, err := compile(`SELECT TOP 3 c.n FROM c `+
		`ORDER BY RANK RRF(FullTextScore(c.text, "wolf"), FullTextScore(c.title, "bird"))`, syntax.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	f := p.frame(nil)
	defer p.release(f)
	if err := p.rank.begin(f); err != nil {
		t.Fatal(err)
	}
	var docs []doc.Doc
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 3000 {
		d, err := doc.FromJSON(nil, []byte(randomItem(r, n).json()), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, d)
	}
	src := newDocSource(p, f, docs, "")
	rows, err := p.rank.fuse(f, src, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if len(rows.list) < 120 || len(rows.list) > 240 {
		t.Errorf("%d candidates for 3 rows of 2 scores", len(rows.list))
	}
	if held := rows.Held(); held > 240*(candidateSize+100) {
		t.Errorf("%d bytes are held", held)
	}
}

// runHybrid runs a plan for ORDER BY RANK as SDKs do.
func (k client) runHybrid(plan value.Value) (rows []string) {
	h := plan.Get("hybridSearchQueryInfo")
	parts, err := k.c.Partitions(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	var documents float64
	var words []float64
	var hits [][]float64
	if h.Get("requiresGlobalStatistics").Bool() {
		for _, p := range parts {
			for _, row := range k.partition(h.Get("globalStatisticsQuery").Str(), p) {
				documents += row.Get("documentCount").Float()
				i := 0
				for it := row.Get("fullTextStatistics").Iter(); it.Next(); i++ {
					if i == len(words) {
						words, hits = append(words, 0), append(hits, make([]float64, it.Value().Get("hitCounts").Len()))
					}
					words[i] += it.Value().Get("totalWordCount").Float()
					for n := range hits[i] {
						hits[i][n] += it.Value().Get("hitCounts").At(n).Float()
					}
				}
			}
		}
	}
	type row struct {
		payload string
		scores  []float64
		result  float64
	}
	found := map[string]*row{}
	for it := h.Get("componentQueryInfos").Iter(); it.Next(); {
		text := strings.ReplaceAll(it.Value().Get("rewrittenQuery").Str(), gateway.FilterPlaceholder, "true")
		put := func(name, v string) {
			text = strings.ReplaceAll(text, "{documentdb-formattablehybridsearchquery-"+name+"}", v)
		}
		put("totaldocumentcount", fmt.Sprint(documents))
		for i := range words {
			put(fmt.Sprint("totalwordcount-", i), fmt.Sprint(words[i]))
			put(fmt.Sprint("hitcountsarray-", i), strings.ReplaceAll(fmt.Sprint(hits[i]), " ", ","))
		}
		for _, p := range parts {
			if !k.overlaps(plan.Get("queryRanges"), p) {
				continue
			}
			for _, v := range k.partition(text, p) {
				r := &row{payload: string(doc.AppendJSON(nil, v.Get("payload").Get("payload")))}
				for s := v.Get("payload").Get("componentScores").Iter(); s.Next(); {
					r.scores = append(r.scores, s.Value().Float())
				}
				found[r.payload] = r // SDKs use _rid, which the tests' items lack
			}
		}
	}
	var all []*row
	for _, rid := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[rid])
	}
	for i := range h.Get("componentQueryInfos").Len() {
		sign := 1.0
		if h.Get("componentQueryInfos").At(i).Get("orderBy").At(0).Str() == "Ascending" {
			sign = -1
		}
		weight := 1.0
		if w := h.Get("componentWeights"); w.Len() > 0 {
			weight = w.At(i).Float()
		}
		slices.SortStableFunc(all, func(a, b *row) int {
			switch d := (b.scores[i] - a.scores[i]) * sign; {
			case d < 0:
				return -1
			case d > 0:
				return 1
			}
			return 0
		})
		rank := 0
		for n, r := range all {
			if n == 0 || r.scores[i] != all[n-1].scores[i] {
				rank++
			}
			r.result += weight / float64(60+rank)
		}
	}
	slices.SortStableFunc(all, func(a, b *row) int {
		switch {
		case a.result > b.result:
			return -1
		case a.result < b.result:
			return 1
		}
		return 0
	})
	if n := h.Get("skip"); n.IsNumber() {
		all = all[min(int(n.Int()), len(all)):]
	}
	if n := h.Get("take"); n.IsNumber() {
		all = all[:min(int(n.Int()), len(all))]
	}
	for _, r := range all {
		rows = append(rows, r.payload)
	}
	return rows
}
