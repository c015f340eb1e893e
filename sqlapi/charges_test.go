package sqlapi

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/internal/rest"
)

// sized returns an item whose stored document has kb KB.
func sized(id string, kb int, more string) string {
	const fields = 4 + 1 + // the document
		1 + 4 + 4 + // _id
		1 + 3 + 4 + 2 + // pk
		1 + 2 + 8 + // n, which is a double: 0.5 and the like
		1 + 5 + 4 + 1 // text
	n := kb<<10 - fields - len(id) - 1
	if more != "" {
		for _, f := range strings.Split(more, ",")[1:] {
			name, val, _ := strings.Cut(f, ":")
			n -= 1 + len(name) - 2 + 1 + 4 + len(val) - 2 + 1
		}
	}
	num, _ := strconv.Atoi(id)
	return fmt.Sprintf(`{"id":"%s","pk":"a","n":%d.5,"text":"%s"%s}`, id, num, strings.Repeat("x", n), more)
}

// charged returns the charge of a reply.
func (r *reply) charged() float64 {
	r.t.Helper()
	f, err := strconv.ParseFloat(r.h.Get("x-ms-request-charge"), 64)
	if err != nil || f <= 0 {
		r.t.Fatalf("%s: charge %q", r.what, r.h.Get("x-ms-request-charge"))
	}
	return f
}

// examples are the requests of the table in docs/request-units.md.
var examples = map[string]func(a *api) float64{
	"read, 1 KB":    func(a *api) float64 { return a.written(1).do("GET", docsOfC+"/1", "", keyA).is(200).charged() },
	"read, 10 KB":   func(a *api) float64 { return a.written(10).do("GET", docsOfC+"/1", "", keyA).is(200).charged() },
	"read, 64 KB":   func(a *api) float64 { return a.written(64).do("GET", docsOfC+"/1", "", keyA).is(200).charged() },
	"read, missing": func(a *api) float64 { return a.do("GET", docsOfC+"/1", "", keyA).is(404).charged() },
	"create, 1 KB, nothing indexed": func(a *api) float64 {
		a.do("PUT", "/dbs/db/colls/c", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},`+
			`"indexingPolicy":{"indexingMode":"none","automatic":false}}`).is(200)
		a.indexed("/dbs/db/colls/c")
		return a.do("POST", docsOfC, sized("1", 1, ""), keyA).is(201).charged()
	},
	"create, 1 KB": func(a *api) float64 { return a.do("POST", docsOfC, sized("1", 1, ""), keyA).is(201).charged() },
	"create, 100 KB": func(a *api) float64 {
		return a.do("POST", docsOfC, sized("1", 100, ""), keyA).is(201).charged()
	},
	"create, 1 KB, 20 more properties": func(a *api) float64 {
		more := ""
		for i := range 20 {
			more += fmt.Sprintf(`,"p%02d":"v%02d"`, i, i)
		}
		return a.do("POST", docsOfC, sized("1", 1, more), keyA).is(201).charged()
	},
	"create, it exists": func(a *api) float64 {
		return a.written(1).do("POST", docsOfC, sized("1", 1, ""), keyA).is(409).charged()
	},
	"replace, 1 KB": func(a *api) float64 {
		return a.written(1).do("PUT", docsOfC+"/1", sized("1", 1, ""), keyA).is(200).charged()
	},
	"patch, 1 KB": func(a *api) float64 {
		return a.written(1).do("PATCH", docsOfC+"/1", `{"operations":[{"op":"incr","path":"/n","value":1}]}`,
			keyA).is(200).charged()
	},
	"delete, 1 KB": func(a *api) float64 {
		return a.written(1).do("DELETE", docsOfC+"/1", "", keyA).is(204).charged()
	},
	"batch of 10 creates, 1 KB": func(a *api) float64 {
		var ops []string
		for i := range 10 {
			ops = append(ops, `{"operationType":"Create","resourceBody":`+sized(strconv.Itoa(i), 1, "")+`}`)
		}
		r := a.do("POST", docsOfC, "["+strings.Join(ops, ",")+"]", keyA, "x-ms-cosmos-is-batch-request: True",
			"x-ms-cosmos-batch-atomic: True").is(200)
		sum := 0.0
		for _, part := range strings.Split(r.body, `"requestCharge":`)[1:] {
			f, err := strconv.ParseFloat(part[:strings.IndexByte(part, ',')], 64)
			if err != nil {
				a.t.Fatal(err)
			}
			sum += f
		}
		if math.Abs(sum-r.charged()) > 0.001 {
			a.t.Errorf("the operations of a batch cost %.2f, the batch %.2f", sum, r.charged())
		}
		return r.charged()
	},
	"query by id and key, 1 KB": func(a *api) float64 {
		return a.filled(100).queried(`SELECT * FROM c WHERE c.id = '7'`, 1, 100, keyA)
	},
	"query of 1 of 100 items by a property, 1 KB": func(a *api) float64 {
		return a.filled(100).queried(`SELECT * FROM c WHERE c.n = 7.5`, 1, 100, keyA)
	},
	"query of 100 items, 1 KB": func(a *api) float64 {
		return a.filled(100).queried(`SELECT * FROM c`, 100, 100, keyA)
	},
	"query of 100 items, 1 KB, in pages of 10": func(a *api) float64 {
		return a.filled(100).queried(`SELECT * FROM c`, 100, 10, keyA)
	},
	"query of 100 items, 1 KB, ordered, in pages of 7": func(a *api) float64 {
		return a.filled(100).queried(`SELECT * FROM c ORDER BY c.n`, 100, 7, keyA)
	},
	"query of 100 items, 1 KB, over 2 physical partitions": func(a *api) float64 {
		a.do("DELETE", "/dbs/db/colls/c", "").is(204)
		a.do("POST", "/dbs/db/colls", collC, "x-ms-offer-throughput: 20000").is(201)
		return a.filled(100).queried(`SELECT * FROM c`, 100, 100)
	},
	"count of 100 items": func(a *api) float64 {
		return a.filled(100).queried(`SELECT VALUE COUNT(1) FROM c`, 1, 100, keyA)
	},
	"change feed, 100 items, 1 KB": func(a *api) float64 {
		return a.filled(100).do("GET", docsOfC, "", keyA, "a-im: Incremental Feed", "x-ms-max-item-count: 100").is(
			200).charged()
	},
	"change feed, no changes": func(a *api) float64 {
		return a.do("GET", docsOfC, "", keyA, "a-im: Incremental Feed", "if-none-match: *").is(304).charged()
	},
	"read a container": func(a *api) float64 { return a.do("GET", "/dbs/db/colls/c", "").is(200).charged() },
}

const (
	docsOfC = "/dbs/db/colls/c/docs"
	keyA    = `x-ms-documentdb-partitionkey: ["a"]`
	collC   = `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`
)

// written adds item 1.
func (a *api) written(kb int) *api {
	a.t.Helper()
	a.do("POST", docsOfC, sized("1", kb, ""), keyA).is(201)
	return a
}

// filled adds n items of 1 KB.
func (a *api) filled(n int) *api {
	a.t.Helper()
	for i := range n {
		a.do("POST", docsOfC, sized(strconv.Itoa(i), 1, ""), keyA).is(201)
	}
	return a
}

// queried returns the sum of the charges of a query's pages.
func (a *api) queried(text string, rows, page int, headers ...string) (sum float64) {
	a.t.Helper()
	next, n := "", 0
	for {
		hs := append([]string{"x-ms-documentdb-isquery: True", "x-ms-documentdb-query-enablecrosspartition: True",
			"x-orrery-strict: none", fmt.Sprint("x-ms-max-item-count: ", page)}, headers...)
		if next != "" {
			hs = append(hs, "x-ms-continuation: "+next)
		}
		r := a.do("POST", docsOfC, `{"query":"`+text+`","parameters":[]}`, hs...).is(200)
		sum += r.charged()
		count, err := strconv.Atoi(r.h.Get("x-ms-item-count"))
		if err != nil {
			a.t.Fatal(err)
		}
		n += count
		if next = r.h.Get("x-ms-continuation"); next == "" {
			break
		}
	}
	if n != rows {
		a.t.Errorf("%s: %d rows, want %d", text, n, rows)
	}
	return sum
}

// TestChargeExamples: each row of the table of docs/request-units.md is what the server charges.
func TestChargeExamples(t *testing.T) {
	text, err := os.ReadFile("../docs/request-units.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Worked examples")
	said := map[string]string{}
	for _, line := range strings.Split(table, "\n") {
		if c := strings.Split(line, " | "); len(c) == 2 && !strings.Contains(line, "---") && c[0] != "| request" {
			said[strings.TrimPrefix(c[0], "| ")] = strings.TrimSuffix(c[1], " |")
		}
	}
	for name, do := range examples {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.do("POST", "/dbs", `{"id":"db"}`).is(201)
			a.do("POST", "/dbs/db/colls", collC).is(201)
			if got := string(rest.AppendCharge(nil, do(a))); said[name] != got {
				t.Errorf("the table says %q, the charge is %s", said[name], got)
			}
		})
		delete(said, name)
	}
	if len(said) > 0 {
		t.Errorf("the table has rows that aren't tested: %v", said)
	}
}
