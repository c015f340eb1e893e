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
)

// textContainer is an empty container with an indexing policy.
func textContainer(t *testing.T, policy string) *core.Container {
	e, err := core.Open(context.Background(), memkv.New(), core.Options{MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if problems, err := e.Check(context.Background()); err != nil || len(problems) > 0 {
			t.Errorf("store check: %v %v", problems, err)
		}
		_ = e.Close()
	})
	if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
		t.Fatal(err)
	}
	c, err := e.CreateContainer(context.Background(), "d", core.ContainerSpec{ID: "c",
		PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}, IndexingPolicy: []byte(policy)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const indexedTexts = `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/text/?"},{"path":"/title/?"}],` +
	`"textIndexes":[{"path":["text"],"language":"english"},{"path":["title"],"language":"english"}]}`

// TestTextIndex: an index over texts changes no answer, also after items have changed.
func TestTextIndex(t *testing.T) {
	with, without := textContainer(t, indexedTexts), textContainer(t, "")
	r := rand.New(rand.NewPCG(6, 6))
	var items []rankItem
	for n := range 160 {
		items = append(items, randomItem(r, n))
		for _, c := range []*core.Container{with, without} {
			insertJSON(t, c, items[n].json())
		}
	}
	for round := range 2 {
		for _, where := range []string{
			`FullTextContains(c.text, "wolves")`,
			`FullTextContains(c.text, "wolf")`,
			`FullTextContains(c.text, "Wolf birds")`,
			`FullTextContains(c.text, "the wolf")`,
			`FullTextContains(c.text, "the")`,
			`FullTextContains(c.text, "elephant")`,
			`FullTextContainsAll(c.text, "wolf", "bird", "tree")`,
			`FullTextContainsAny(c.text, "wolf", "bird") AND FullTextContains(c.text, "tree")`,
			`FullTextContainsAny(c.text, "wolf", {"term": "birt", "distance": 1})`,
			`FullTextContains(c.text, {"term": "birt", "distance": 1}) AND FullTextContains(c.title, "stone")`,
			`NOT FullTextContains(c.text, "wolf")`,
			`FullTextContains(c.title, "stone") AND c.n < 60`,
			`FullTextContains(c.text, c.title)`,
			`FullTextContains(c.text, ["wolf"])`,
			`FullTextContains(c.text, "wolf") OR c.n = 3`,
		} {
			text := "SELECT c.n, c.text FROM c WHERE " + where
			rows, _ := allRows(t, with, text, Request{PageSize: 7}, nil)
			want, _ := allRows(t, without, text, Request{}, nil)
			slices.Sort(rows)
			slices.Sort(want)
			if !slices.Equal(rows, want) {
				t.Errorf("round %d: %s\n got %v\nwant %v", round, where, rows, want)
			}
		}
		for n := range items { // every third item changes
			if n%3 != 0 {
				continue
			}
			items[n] = randomItem(r, n)
			for _, c := range []*core.Container{with, without} {
				upsert(t, c, items[n])
			}
		}
	}
	for _, q := range rankQueries(items) {
		for _, size := range []int{0, 5} {
			rows, err := evalCore(with, q.text, nil, size)
			if err != nil {
				t.Fatal(q.text, err)
			}
			q.check(t, fmt.Sprintf("pages of %d", size), rows)
		}
	}
}

// TestTextIndexReads: a search reads only the items that have its words, or those that have the rarest ones.
func TestTextIndexReads(t *testing.T) {
	c := textContainer(t, indexedTexts)
	has := func(n int, word string) bool { // w7 is in each seventh text
		var every int
		_, err := fmt.Sscanf(word, "w%d", &every)
		return err == nil && n%every == 0
	}
	const items = 1500
	for n := range items {
		x := rankItem{id: fmt.Sprint(n), n: n, text: []string{"lamp"}}
		for every := 2; every < 200; every++ {
			if word := fmt.Sprint("w", every); has(n, word) {
				x.text = append(x.text, word)
			}
		}
		insertJSON(t, c, x.json())
	}
	for where, most := range map[string]int{
		`FullTextContains(c.text, "w150")`:                                     10,
		`FullTextContains(c.text, "nothing")`:                                  0,
		`FullTextContains(c.text, "the")`:                                      0,
		`FullTextContains(c.text, "w150 w2")`:                                  10,
		`FullTextContainsAll(c.text, "w100", "w150")`:                          10,
		`FullTextContainsAny(c.text, "w100", "w150")`:                          25,
		`FullTextContainsAny(c.text, "w100", "w150") AND c.n < 1000`:           25,
		`FullTextContains(c.text, "lamp") AND FullTextContains(c.text, "w99")`: 16,
		`FullTextContains(c.text, {"term": "w999", "distance": 1})`:            items,
	} {
		_, read := allRows(t, c, "SELECT * FROM c WHERE "+where, Request{}, nil)
		if read > most {
			t.Errorf("%s reads %d items, wanted at most %d", where, read, most)
		}
	}
	// The best rows by a score are those with a term, if there are enough. The statistics read as many.
	for order, most := range map[string]int{
		`TOP 10 c.n FROM c ORDER BY RANK FullTextScore(c.text, "w150")`:                                20,
		`TOP 11 c.n FROM c ORDER BY RANK FullTextScore(c.text, "w150")`:                                2*items + 20,
		`TOP 8 c.n FROM c WHERE c.n > 299 ORDER BY RANK FullTextScore(c.text, "w150")`:                 20,
		`TOP 10 c.n FROM c ORDER BY _FullTextScore(c.text, ["w150"], 1500, 9000, [10]) DESC`:           10,
		`c.n FROM c ORDER BY _FullTextScore(c.text, ["w150"], 1500, 9000, [10]) DESC OFFSET 2 LIMIT 8`: 10,
		`TOP 10 c.n FROM c ORDER BY _FullTextScore(c.text, ["w150"], 1500, 9000, [10])`:                items,
	} {
		for _, size := range []int{0, 3} {
			rows, read := allRows(t, c, "SELECT "+order, Request{PageSize: size}, nil)
			if size == 0 && read > most {
				t.Errorf("%s reads %d items, wanted at most %d", order, read, most)
			}
			for i, row := range rows {
				var n int
				if _, err := fmt.Sscanf(row, `{"n":%d}`, &n); err != nil {
					t.Fatal(row, err)
				}
				if ascending := strings.HasSuffix(order, "[10])"); !ascending && has(n, "w150") != (i < 10) {
					t.Errorf("%s: row %d is %s", order, i, row)
				}
			}
		}
	}
}

// TestTextIndexStatistics: the statistics of scores come from the index: only items with a term are read for them.
func TestTextIndexStatistics(t *testing.T) {
	c := textContainer(t, indexedTexts)
	r := rand.New(rand.NewPCG(1, 9))
	for n := range 400 {
		x := randomItem(r, n)
		if x.text != nil && n%50 == 1 {
			x.text = append(x.text, "zebra")
		}
		insertJSON(t, c, x.json())
	}
	for text, most := range map[string]int{
		`FullTextScore(c.text, "zebra")`:                         8,
		`FullTextScore(c.text, "zebra crossing")`:                8,
		`FullTextScore(c.title, "nothing", "the")`:               0,
		`FullTextScore(c.other, "zebra")`:                        400,
		`FullTextScore(c.text, {"term": "zebr", "distance": 1})`: 400,
	} {
		_, read := allRows(t, c, `SELECT c.n FROM c WHERE c.n = 7 ORDER BY RANK `+text, Request{}, nil)
		if read > most+1 {
			t.Errorf("%s reads %d items, wanted at most %d for the statistics", text, read, most)
		}
	}
}

// TestTextTallies: what clients ask each partition for before they order by scores comes from the index, too, and is
// what a container without one answers.
func TestTextTallies(t *testing.T) {
	with, without := textContainer(t, indexedTexts), textContainer(t, "")
	r := rand.New(rand.NewPCG(4, 4))
	for n := range 300 {
		x := randomItem(r, n)
		if x.text != nil && n%50 == 1 {
			x.text = append(x.text, "zebra")
		}
		for _, c := range []*core.Container{with, without} {
			insertJSON(t, c, x.json())
		}
	}
	for text, most := range map[string]int{
		`SELECT COUNT(1) AS documentCount, [{"totalWordCount": SUM(_FullTextWordCount(c.text)), "hitCounts": ` +
			`[COUNTIF(FullTextContains(c.text, "zebra")), COUNTIF(FullTextContains(c.text, "zebra wolf"))]}, ` +
			`{"totalWordCount": SUM(_FullTextWordCount(c.title)), "hitCounts": [COUNTIF(FullTextContains(c.title, ` +
			`"nothing"))]}] AS fullTextStatistics FROM c`: 12, // those with zebra, for each of its phrases
		`SELECT VALUE SUM(_FullTextWordCount(c.text)) FROM c`:                                               0,
		`SELECT COUNT(1) AS n, COUNTIF(FullTextContains(c.text, "wolf")) AS w FROM c`:                       300,
		`SELECT COUNTIF(FullTextContains(c.text, {"term": "zebr", "distance": 1})) AS w FROM c`:             300,
		`SELECT SUM(_FullTextWordCount(c.text)) AS w, COUNT(c.title) AS n FROM c`:                           300,
		`SELECT SUM(_FullTextWordCount(c.text)) + SUM(_FullTextWordCount(c.title)) AS w FROM c`:             0,
		`SELECT SUM(_FullTextWordCount(c.other)) AS w FROM c`:                                               300,
		`SELECT COUNTIF(FullTextContains(c.text, 5)) AS w, SUM(_FullTextWordCount(c.text)) AS n FROM c`:     300,
		`SELECT COUNTIF(FullTextContains(c.text, "the")) AS w, SUM(_FullTextWordCount(c.text)) AS n FROM c`: 0,
	} {
		for _, req := range []Request{{}, {PK: core.PartitionKey{value.StringOf("p3")}}} {
			rows, read := allRows(t, with, text, req, nil)
			want, _ := allRows(t, without, text, req, nil)
			if !slices.Equal(rows, want) {
				t.Errorf("%s\n got %v\nwant %v", text, rows, want)
			}
			if read > most && req.PK == nil {
				t.Errorf("%s reads %d items, wanted at most %d", text, read, most)
			}
		}
	}
}

// upsert replaces an item.
func upsert(t *testing.T, c *core.Container, x rankItem) {
	t.Helper()
	d, err := doc.FromJSON(nil, []byte(x.json()), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	pk, id, err := c.KeyOf(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(context.Background(), core.Write{Kind: core.Upsert, PK: pk, ID: id, Doc: d}); err != nil {
		t.Fatal(x.id, err)
	}
}

// TestTextIndexPlan: EXPLAIN names the index of a text.
func TestTextIndexPlan(t *testing.T) {
	c := textContainer(t, indexedTexts)
	for n := range 30 {
		insertJSON(t, c, rankItem{id: fmt.Sprint(n), n: n, text: []string{rankWords[n%8], "lamp"}}.json())
	}
	pl, err := Compile(`SELECT * FROM c WHERE FullTextContains(c.text, "wolf")`, nil, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	out := &Page{}
	if err := pl.Execute(context.Background(), c, Request{Explain: true}, out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.Metrics.Explain, "text/text/[]") {
		t.Errorf("%q", out.Metrics.Explain)
	}
}
