package shape

import (
	"testing"

	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

func parse(t *testing.T, text string) *syntax.Query {
	t.Helper()
	q, err := syntax.Parse(text, syntax.DefaultLimits())
	if err != nil {
		t.Fatal(text, err)
	}
	return q
}

// The facts that the tree of a query shows by itself.
func TestShape(t *testing.T) {
	for text, want := range map[string]struct{ grouped, streams, ordered, count bool }{
		`SELECT * FROM c`:                                                     {streams: true},
		`SELECT VALUE COUNT(1) FROM c`:                                        {grouped: true},
		`SELECT c.g, SUM(c.n) + 1 AS s FROM c GROUP BY c.g`:                   {grouped: true},
		`SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c`:        {streams: true},
		`SELECT * FROM (SELECT VALUE c.a FROM c) AS a`:                        {streams: true},
		`SELECT * FROM (SELECT DISTINCT VALUE c.a FROM c) AS a`:               {},
		`SELECT TOP 3 * FROM c`:                                               {},
		`SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a`:                       {ordered: true},
		`SELECT DISTINCT c.a, c.b FROM c ORDER BY c.b, c["a"] DESC`:           {ordered: true},
		`SELECT DISTINCT c.a, c.b FROM c ORDER BY c.b`:                        {},
		`SELECT DISTINCT c.a FROM c ORDER BY c.b, c.a`:                        {},
		`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)`:       {grouped: true, count: true},
		`SELECT COUNT(d) AS n FROM (SELECT DISTINCT c.a FROM c) AS d`:         {grouped: true, count: true},
		`SELECT VALUE COUNT(d.a) FROM (SELECT DISTINCT c.a FROM c) AS d`:      {grouped: true},
		`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT TOP 2 VALUE c.a FROM c)`: {grouped: true},
	} {
		q := parse(t, text)
		got := want
		got.grouped, got.streams, got.ordered = IsGrouped(q), Streams(q), DistinctOrdered(q)
		if _, _, got.count = DistinctCount(q); got != want {
			t.Errorf("%s: %+v, wanted %+v", text, got, want)
		}
	}
}

// The steps of a path, and where it is stored. System properties except _ts aren't stored, and positions in arrays are
// any element.
func TestPaths(t *testing.T) {
	for text, want := range map[string]struct {
		steps  int
		stored string
	}{
		`c.a`: {1, "/a"}, `c.a.b`: {2, "/a/b"}, `c["a b"]`: {1, "/a b"}, `c.id`: {1, "/_id"},
		`c.a[3].b`: {3, "/a/b/[]"}, `c._ts`: {1, "/\x00_ts"}, `c._etag`: {1, ""}, `c`: {0, ""}, `c.a["$oid"]`: {2, ""},
		`c[0]`: {1, ""},
	} {
		q := parse(t, "SELECT VALUE "+text+" FROM c")
		steps, base := SplitPath(q.Value)
		if id, ok := base.(*syntax.Ident); !ok || id.Name != "c" || len(steps) != want.steps {
			t.Errorf("%s: %v of %v", text, steps, base)
		}
		path, _, ok := StoredPath(steps, false)
		if got := path.String(); ok != (want.stored != "") || ok && got != want.stored {
			t.Errorf("%s: stored at %q %v, wanted %q", text, got, ok, want.stored)
		}
	}
}
