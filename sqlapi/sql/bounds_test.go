package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
)

// TestBoundsOfExpressions: an expression that would compute for minutes or take any amount of memory ends the query,
// for constants and for values of items. Large ones that are within the bounds are computed.
func TestBoundsOfExpressions(t *testing.T) {
	numbers := func(n int) (list string) { // text of n numbers, each with a comma before it
		for i := range n {
			list += fmt.Sprint(", ", i)
		}
		return list
	}
	const text = `REPLICATE(REPLICATE("a,", 1000), 900)`
	d, err := doc.FromJSON(nil, []byte(`{"id":"1","s":"`+strings.Repeat("a", 300<<10)+`"}`),
		doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		query string
		want  status.Code // 0: the row is true
	}{
		{`SELECT VALUE c.s LIKE "%aaa_a" AND NOT (c.s LIKE "%b%") AND NOT (c.s LIKE "%a%a%a%b")`, 0},
		{`SELECT VALUE c.s LIKE ("%" || REPLICATE("a", 10000) || "b")`, status.Timeout},
		{`SELECT VALUE ` + text + ` LIKE ("%" || REPLICATE("a,", 9000) || "b")`, status.Timeout},
		{`SELECT VALUE REGEXMATCH(c.s, "^a+$") AND ARRAY_LENGTH(RegexExtractAll(c.s, "aaa")) = 10000`, 0},
		{`SELECT VALUE ARRAY_LENGTH(StringSplit(` + text + `, ",")) = 900001`, 0},
		{`SELECT VALUE ARRAY_LENGTH(ARRAY_CONCAT(x, x)) = 1800002 FROM (SELECT VALUE StringSplit(` + text +
			`, ",")) AS x`, 0},
		{`SELECT VALUE NOT ARRAY_CONTAINS_ANY(x` + numbers(20_000) + `) AND ARRAY_CONTAINS_ANY(x` + numbers(9) + `, "a")
			AND NOT ARRAY_CONTAINS_ALL(x, "", "a"` + numbers(20_000) + `) FROM (SELECT VALUE StringSplit(` + text +
			`, ",")) AS x`, 0},
		{`SELECT VALUE ARRAY_CONTAINS_ALL([9.0, 10, {"a": [1]}` + numbers(9) + `], {"a": [1.0]}` + numbers(11) +
			`)`, 0},
		{`SELECT VALUE ARRAY_CONTAINS_ALL([1, 1, 2], 1, 1, 2) AND NOT ARRAY_CONTAINS_ALL([1, 2], 1, 3, 2) AND
			ARRAY_CONTAINS_ANY([1], 3, 2, 1) AND NOT ARRAY_CONTAINS_ANY([1], 3, 2)`, 0},
		{`SELECT VALUE ARRAY_CONCAT(x, x, x, x) FROM (SELECT VALUE StringSplit(` + text + `, ",")) AS x`,
			status.BadRequest},
		{`SELECT VALUE [` + strings.Repeat("x, ", 20) + `x] FROM (SELECT VALUE StringSplit(` + text +
			`, ",")) AS x`, status.BadRequest},
		{`SELECT VALUE ARRAY_LENGTH([x, x, x, x]) FROM (SELECT VALUE StringSplit(` + text + `, ",")) AS x`,
			status.BadRequest},
		{`SELECT {a: [x, x, x, x], b: [x, x, x, x]}, {c: [x, x, x, x]} FROM (SELECT VALUE StringSplit(` + text +
			`, ",")) AS x`, status.BadRequest},
		{`SELECT VALUE ARRAY_LENGTH([` + text + strings.Repeat(`,`+text, 20) + `])`, status.BadRequest},
	} {
		query := x.query
		if !strings.Contains(query, " FROM ") {
			query += " FROM c"
		}
		rows, err := evalDocs(query, nil, []doc.Doc{d}, 0)
		if status.CodeOf(err) != x.want || x.want == 0 && (len(rows) != 1 || rows[0] != "true") {
			t.Errorf("%s: %v %v, want %v", clipped([]string{x.query}), clipped(rows), err, x.want)
		}
	}
}

func clipped(rows []string) (out []string) {
	for _, r := range rows {
		out = append(out, r[:min(len(r), 100)])
	}
	return out
}
