package expand

import (
	"testing"

	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

func definitions(t *testing.T, defs ...Property) *Computed {
	t.Helper()
	c, err := New(defs, func(text string) (*syntax.Query, int, error) {
		q, err := syntax.Parse(text, syntax.DefaultLimits())
		return q, 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The language of a text comes from its path, under any alias of the item, or else from the container.
func TestTexts(t *testing.T) {
	var none *Computed
	texts := []TextPath{{[]string{"abstract"}, "french"}, {[]string{"o", "title"}, "english"}}
	if none.WithTexts("english", texts[1:]) != nil {
		t.Error("a container whose texts are English has languages")
	}
	c := none.WithTexts("german", texts)
	for text, want := range map[string]string{
		`FullTextContains(c.abstract, "x")`:        "french",
		`FullTextContainsAny(c.o.title, "x")`:      "english",
		`_FullTextWordCount(c["o"]["title"])`:      "english",
		`FullTextContainsAll(c.other, "x")`:        "german",
		`fulltextcontains(c.o.abstract, "x")`:      "german",
		`FullTextContains(LOWER(c.abstract), "x")`: "german",
		`CONTAINS(c.abstract, "x")`:                "",
		`udf.FullTextContains(c.abstract, "x")`:    "",
	} {
		q, err := syntax.Parse("SELECT VALUE "+text+" FROM c", syntax.DefaultLimits())
		if err != nil {
			t.Fatal(text, err)
		}
		n, err := c.Expand(q)
		if err != nil {
			t.Fatal(text, err)
		}
		if got := n.Value.(*syntax.Call).Language; got != want {
			t.Errorf("%s: %q, wanted %q", text, got, want)
		}
	}
}

// A computed name is replaced by its expression wherever the item is read, under any alias, and nowhere else. The item
// has no alias in an expression, so the query's own aliases can't hide it.
func TestExpand(t *testing.T) {
	c := definitions(t, Property{"low", `SELECT VALUE LOWER(x.name) FROM x`}).
		WithEmbeddings([]Embedding{{[]string{"v"}, "euclidean"}, {[]string{"w"}, "cosine"}})
	const low = "LOWER(\x00item.name)"
	for text, want := range map[string]string{
		`SELECT c.low FROM c`:                        `SELECT ` + low + ` AS low FROM c`,
		`SELECT c.low AS l FROM c WHERE c.low = "a"`: `SELECT ` + low + ` AS l FROM c WHERE (` + low + ` = "a")`,
		`SELECT c.name FROM c ORDER BY c.low`:        `SELECT c.name AS name FROM c ORDER BY ` + low,
		`SELECT t.low FROM c JOIN t IN c.tags`:       `SELECT t.low AS low FROM c JOIN t IN c.tags`,
		`SELECT VALUE c.o.low FROM c`:                `SELECT VALUE c.o.low FROM c`,
		`SELECT * FROM c WHERE EXISTS(SELECT VALUE c.low FROM c IN c.tags)`: `SELECT * FROM c WHERE ` +
			`EXISTS(SELECT VALUE c.low FROM c IN c.tags)`,
		`SELECT VALUE VectorDistance(c.v, [1]) FROM c`: `SELECT VALUE VectorDistance(c.v, [1], false, ` +
			`{"distanceFunction": "euclidean"}) FROM c`,
		`SELECT VALUE VectorDistance(c.w, [1]) FROM c`: `SELECT VALUE VectorDistance(c.w, [1]) FROM c`,
	} {
		q, err := syntax.Parse(text, syntax.DefaultLimits())
		if err != nil {
			t.Fatal(text, err)
		}
		before := syntax.PrintQuery(q)
		n, err := c.Expand(q)
		if err != nil {
			t.Fatal(text, err)
		}
		if got := syntax.PrintQuery(n); got != want {
			t.Errorf("%s\nis %s\nwanted %s", text, got, want)
		}
		if syntax.PrintQuery(q) != before {
			t.Errorf("%s was changed", text)
		}
	}
}
