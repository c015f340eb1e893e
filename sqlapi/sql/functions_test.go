package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
)

// fakeFunctions are user-defined functions in Go. An argument that is undefined is left out of the list.
type fakeFunctions struct {
	messages int
	calls    int
	sent     []string // lists of arguments
	reads    map[string][][]string
}

var errThrown = errors.New("thrown by the function")

var fakes = map[string]func(args []any) (any, error){
	"double": func(args []any) (any, error) {
		if n, ok := args[0].(float64); ok {
			return 2 * n, nil
		}
		return nil, nil
	},
	"isOdd":   func(args []any) (any, error) { return int(args[0].(float64))%2 == 1, nil },
	"count":   func(args []any) (any, error) { return len(args), nil },
	"nothing": func([]any) (any, error) { return errUndefined, nil },
	"below500": func(args []any) (any, error) {
		if args[0].(float64) >= 500 {
			return nil, errThrown
		}
		return true, nil
	},
	"itemN":    func(args []any) (any, error) { return args[0].(map[string]any)["n"], nil },
	"endless":  func([]any) (any, error) { return nil, status.New(status.Timeout, "too long") },
	"constant": func([]any) (any, error) { return []any{"a", 1}, nil },
}

var errUndefined = errors.New("undefined")

// Has implements Functions.
func (f *fakeFunctions) Has(name string) bool { return fakes[name] != nil }

// Reads implements Functions.
func (f *fakeFunctions) Reads(name string) [][]string { return f.reads[name] }

// Call implements Functions.
func (f *fakeFunctions) Call(_ context.Context, name string, args [][]byte) ([][]byte, error) {
	f.messages++
	f.calls += len(args)
	values := make([][]byte, len(args))
	for i, list := range args {
		f.sent = append(f.sent, string(list))
		var parsed []any
		text := strings.ReplaceAll(string(list), "undefined", `"undefined"`)
		if err := json.Unmarshal([]byte(text), &parsed); err != nil {
			return nil, err
		}
		parsed = slices.DeleteFunc(parsed, func(v any) bool { return v == "undefined" })
		v, err := fakes[name](parsed)
		if err != nil {
			return nil, err
		}
		if v == error(errUndefined) {
			continue
		}
		if values[i], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// numbered returns a container with items 0 to n-1, which have n, g = n % 3 and tags [n, n+1].
func numbered(t testing.TB, n int) *core.Container {
	c := containers(t)["1 slot, all indexed"]
	for i := range n {
		text := fmt.Appendf(nil, `{"id":"%d","pk":"%d","n":%d,"g":%d,"tags":[%d,%d]}`, i, i%7, i, i%3, i, i+1)
		d, err := doc.FromJSON(nil, text, doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		insert(t, c, d)
	}
	return c
}

// called runs a query in pages and returns its rows.
func called(c *core.Container, text string, size int, fns Functions) (rows []string, err error) {
	env := *testEnv
	env.Functions = fns
	return evalIn(&env, c, text, nil, size)
}

// Each query with user-defined functions must give the rows of the query that has the same conditions in SQL, also in
// pages, and with few messages to the functions.
func TestUserDefinedFunctions(t *testing.T) {
	c := numbered(t, 1000)
	for _, tc := range []struct {
		text, same string
		messages   int // at most, in one page
	}{
		{`SELECT VALUE udf.double(c.n) FROM c`, `SELECT VALUE 2 * c.n FROM c`, 4},
		{`SELECT VALUE c.n FROM c WHERE udf.isOdd(c.n)`, `SELECT VALUE c.n FROM c WHERE c.n % 2 = 1`, 4},
		{`SELECT c.n, udf.double(c.n) AS d FROM c WHERE udf.isOdd(c.n) AND c.g = 1`,
			`SELECT c.n, 2 * c.n AS d FROM c WHERE c.n % 2 = 1 AND c.g = 1`, 8},
		{`SELECT VALUE udf.double(udf.double(c.n)) FROM c`, `SELECT VALUE 4 * c.n FROM c`, 8},
		{`SELECT VALUE udf.double(t) FROM c JOIN t IN c.tags WHERE udf.isOdd(t)`,
			`SELECT VALUE 2 * t FROM c JOIN t IN c.tags WHERE t % 2 = 1`, 8},
		{`SELECT udf.isOdd(c.n) AS odd, COUNT(1) AS k, SUM(udf.double(c.n)) AS s FROM c GROUP BY udf.isOdd(c.n)`,
			`SELECT c.n % 2 = 1 AS odd, COUNT(1) AS k, SUM(2 * c.n) AS s FROM c GROUP BY c.n % 2 = 1`, 8},
		{`SELECT VALUE COUNT(1) FROM c WHERE udf.isOdd(c.n)`, `SELECT VALUE COUNT(1) FROM c WHERE c.n % 2 = 1`, 4},
		{`SELECT VALUE udf.double(SUM(c.n)) FROM c`, `SELECT VALUE 2 * SUM(c.n) FROM c`, 1},
		{`SELECT DISTINCT VALUE udf.double(c.g) FROM c`, `SELECT DISTINCT VALUE 2 * c.g FROM c`, 4},
		{`SELECT VALUE udf.double(c.n) FROM c WHERE udf.isOdd(c.n) ORDER BY c.n DESC OFFSET 10 LIMIT 50`,
			`SELECT VALUE 2 * c.n FROM c WHERE c.n % 2 = 1 ORDER BY c.n DESC OFFSET 10 LIMIT 50`, 8},
		{`SELECT TOP 5 VALUE udf.double(c.n) FROM c ORDER BY c.n`, `SELECT TOP 5 VALUE 2 * c.n FROM c ORDER BY c.n`, 1},
		{`SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE udf.double(t) > 1990)`,
			`SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE 2 * t > 1990)`, 4},
		{`SELECT VALUE s.d FROM (SELECT VALUE {"d": udf.double(c.n)} FROM c) s`, `SELECT VALUE 2 * c.n FROM c`, 4},
		{`SELECT VALUE udf.itemN(c) FROM c WHERE c.n < 10`, `SELECT VALUE c.n FROM c WHERE c.n < 10`, 1},
		{`SELECT VALUE udf.count(c.n, c.none, 3) FROM c WHERE c.n < 2`, `SELECT VALUE 2 FROM c WHERE c.n < 2`, 1},
		{`SELECT VALUE udf.nothing() FROM c`, `SELECT VALUE c.none FROM c`, 4},
		{`SELECT udf.nothing() AS a, 1 AS b FROM c`, `SELECT 1 AS b FROM c`, 4},
		{`SELECT VALUE udf.constant()[0] FROM c WHERE c.n = 1`, `SELECT VALUE "a" FROM c WHERE c.n = 1`, 1},
		{`SELECT VALUE udf.constant()`, `SELECT VALUE ["a", 1]`, 1},
		{`SELECT VALUE c.n < 500 ? udf.below500(c.n) : false FROM c`, `SELECT VALUE c.n < 500 FROM c`, 4},
		{`SELECT VALUE c.n FROM c WHERE c.n < 500 AND udf.below500(c.n)`, `SELECT VALUE c.n FROM c WHERE c.n < 500`, 4},
		{`SELECT VALUE g.k FROM (SELECT c.g, udf.double(COUNT(1)) AS k FROM c GROUP BY c.g) g`,
			`SELECT VALUE g.k FROM (SELECT c.g, 2 * COUNT(1) AS k FROM c GROUP BY c.g) g`, 3},
	} {
		want, err := evalCore(c, tc.same, nil, 0)
		if err != nil {
			t.Fatal(tc.same, err)
		}
		for _, size := range []int{0, 1000, 100, 7} {
			fns := &fakeFunctions{reads: map[string][][]string{"itemN": {{"n"}}}}
			got, err := called(c, tc.text, size, fns)
			sameRows(t, fmt.Sprintf("pages of %d", size), tc.text, got, want, err, nil)
			if size == 0 && fns.messages > tc.messages {
				t.Errorf("%s: %d messages for %d calls, want at most %d", tc.text, fns.messages, fns.calls, tc.messages)
			}
		}
	}
}

// A function gets only the properties of an object that it can read, whether the object is the item, a part of it or
// made by the query.
func TestFunctionsGetWhatTheyRead(t *testing.T) {
	c := numbered(t, 3)
	for _, tc := range []struct {
		text string
		sent string // how the first list of arguments begins
	}{
		{`SELECT VALUE udf.itemN(c) FROM c`, `[{"n":0}]`},
		{`SELECT VALUE udf.itemN(c, c) FROM c`, `[{"n":0},{"id":"0","pk":"0","n":0,"g":0,"tags":[0,1]}]`},
		{`SELECT VALUE udf.itemN({"n": c.n, "m": 1}) FROM c`, `[{"n":0}]`},
		{`SELECT VALUE udf.count(c.n) FROM c`, `[0]`},
		{`SELECT VALUE udf.count(c) FROM c`, `[{"id":"0","_ts":`},
		{`SELECT VALUE udf.constant(c) FROM c`, `[{}]`},
		{`SELECT VALUE udf.constant(c.none, c.tags) FROM c`, `[undefined,[0,1]]`},
		{`SELECT VALUE udf.constant(s) FROM (SELECT c.n AS none, c.g FROM c) s`, `[{}]`},
	} {
		fns := &fakeFunctions{reads: map[string][][]string{"itemN": {{"n", "none"}}, "count": {{"id", "_ts"}},
			"constant": {{}, {}}}}
		env := *itemEnv
		env.Functions, env.Form = fns, nil
		if _, err := evalIn(&env, c, tc.text, nil, 0); err != nil {
			t.Fatal(tc.text, err)
		}
		if len(fns.sent) == 0 || !strings.HasPrefix(fns.sent[0], tc.sent) {
			t.Errorf("%s: %v, want %s first", tc.text, fns.sent, tc.sent)
		}
	}
}

// A call that fails ends the query, but only if its value is needed.
func TestFunctionThatFails(t *testing.T) {
	c := numbered(t, 600)
	for text, wanted := range map[string]error{
		`SELECT VALUE udf.below500(c.n) FROM c`:                                errThrown,
		`SELECT VALUE c.n FROM c WHERE udf.below500(c.n)`:                      errThrown,
		`SELECT VALUE COUNT(udf.below500(c.n)) FROM c`:                         errThrown,
		`SELECT TOP 300 VALUE udf.below500(c.n) FROM c ORDER BY c.n`:           nil,
		`SELECT VALUE udf.below500(c.n) FROM c WHERE NOT (c.n >= 500)`:         nil,
		`SELECT TOP 500 VALUE c.n FROM c WHERE udf.below500(c.n) ORDER BY c.n`: nil,
		`SELECT TOP 501 VALUE c.n FROM c WHERE udf.below500(c.n) ORDER BY c.n`: errThrown,
		`SELECT VALUE c.n > 499 OR udf.below500(c.n) FROM c`:                   nil,
		`SELECT VALUE udf.double(udf.below500(c.n)) FROM c WHERE c.n > 590`:    errThrown,
	} {
		if _, err := called(c, text, 0, &fakeFunctions{}); !errors.Is(err, wanted) {
			t.Errorf("%s: %v, want %v", text, err, wanted)
		}
	}
}

// A function that exceeds its time is called once, not for each row again.
func TestFunctionThatExceedsItsTime(t *testing.T) {
	c := numbered(t, 50)
	fns := &fakeFunctions{}
	_, err := called(c, `SELECT VALUE udf.endless(c.n) FROM c`, 0, fns)
	if !status.Is(err, status.Timeout) || fns.messages != 1 {
		t.Errorf("%v after %d messages", err, fns.messages)
	}
	fns = &fakeFunctions{}
	got, err := called(c, `SELECT VALUE c.n FROM c WHERE c.n > 60 AND udf.endless(c.n)`, 0, fns)
	if err != nil || len(got) > 0 || fns.messages > 1 {
		t.Errorf("%v, %v after %d messages", got, err, fns.messages)
	}
}

func TestFunctionsAreRefused(t *testing.T) {
	eleven := `SELECT udf.count(1) AS x0`
	for i := range maxFunctionCalls {
		eleven += fmt.Sprintf(`, udf.count(1) AS x%d`, i+1)
	}
	for text, want := range map[string]string{
		`SELECT udf.none(c.n) FROM c`:              "The user defined function 'none' does not exist.",
		`SELECT udf.Double(c.n) FROM c`:            "The user defined function 'Double' does not exist.",
		eleven + ` FROM c`:                         "more than 10 times",
		`SELECT * FROM c ORDER BY udf.double(c.n)`: "could not be mapped to a document path",
		`SELECT udf.double(d.n) FROM c`:            "Identifier 'd' could not be resolved",
		`SELECT TOP udf.double(1) * FROM c`:        "Syntax error",
	} {
		_, err := Compile(text, nil, &Env{Functions: &fakeFunctions{}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := Compile(`SELECT udf.double(1)`, nil, nil); err == nil {
		t.Error("a function is found where there are none")
	}
	pl, err := Compile(`SELECT * FROM c WHERE udf.isOdd(c.n)`, nil, &Env{Functions: &fakeFunctions{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pl.Match(t.Context(), &core.Item{}); err == nil {
		t.Error("the condition of a patch calls a function")
	}
}

// The plan for a client doesn't need the functions: the partitions have them.
func TestQueryPlanWithFunctions(t *testing.T) {
	plan, err := QueryPlan(`SELECT TOP 3 c.n, udf.double(c.n) AS d FROM c WHERE udf.isOdd(c.n) ORDER BY c.n`, nil, nil,
		core.PartitionKeyDef{Paths: []string{"/pk"}, Version: 2})
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		QueryInfo struct{ RewrittenQuery string }
	}
	if err := json.Unmarshal(plan, &parsed); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"udf.double(c.n)", "udf.isOdd(c.n)"} {
		if !strings.Contains(parsed.QueryInfo.RewrittenQuery, part) {
			t.Errorf("%s is not in %s", part, parsed.QueryInfo.RewrittenQuery)
		}
	}
}

// Without functions a query has no state for them, and reads its items as before.
func TestQueriesWithoutFunctionsHaveNoCalls(t *testing.T) {
	pl, err := Compile(`SELECT * FROM c WHERE c.n = 1`, nil, &Env{Functions: &fakeFunctions{}})
	if err != nil {
		t.Fatal(err)
	}
	if u := pl.p.newCalls(pl.env); u != nil || !pl.p.top.coreFilters(true) {
		t.Errorf("calls %v", reflect.ValueOf(u))
	}
}
