package tableapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/tableapi/edm"
	"github.com/orrerydb/orrery/tableapi/odata"
)

// do sends a request with a body and returns the recorded answer.
func do(s *Server, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	r.RequestURI, r.Host = target, "h"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// pages reads all pages of a query and returns "PartitionKey RowKey" of each row.
func pages(t *testing.T, s *Server, query url.Values) (keys []string, n int) {
	t.Helper()
	for {
		n++
		w := do(s, "GET", "/data?"+query.Encode(), "", "Accept", "application/json;odata=nometadata")
		if w.Code != 200 {
			t.Fatalf("%v: %d %s", query, w.Code, w.Body)
		}
		var page struct {
			Value []struct{ PartitionKey, RowKey string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Value {
			keys = append(keys, e.PartitionKey+" "+e.RowKey)
		}
		pk := w.Header().Get("x-ms-continuation-NextPartitionKey")
		if pk == "" {
			return keys, n
		}
		if n > 10_000 {
			t.Fatalf("%v: no end", query)
		}
		query.Set("NextPartitionKey", pk)
		query.Set("NextRowKey", w.Header().Get("x-ms-continuation-NextRowKey"))
	}
}

// TestQueryMetamorphic: for any access path of the core and any page size, a query returns exactly the entities that
// its filter accepts when it is evaluated on each entity; those of one PartitionKey in RowKey order.
func TestQueryMetamorphic(t *testing.T) {
	s, _ := newServer(t, false)
	if w := do(s, "POST", "/Tables", `{"TableName":"data"}`); w.Code != 201 {
		t.Fatal(w.Body)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	all := make([]edm.Entity, 600)
	for i := range all {
		body := randomEntity(rnd, i)
		if w := do(s, "POST", "/data", body, "Prefer", "return-no-content"); w.Code != 204 {
			t.Fatalf("%s: %s", body, w.Body)
		}
		if err := all[i].Parse([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		filter := randomFilter(rnd, 0)
		n, err := odata.Parse(filter)
		if err != nil {
			t.Fatalf("%s: %v", filter, err)
		}
		match := odata.Compile(n, entityField)
		var want []string
		for i := range all {
			if match(&all[i]) {
				want = append(want, all[i].PartitionKey+" "+all[i].RowKey)
			}
		}
		q := url.Values{"$filter": {filter}, "$top": {fmt.Sprint(1 + rnd.IntN(200))}}
		got, _ := pages(t, s, q)
		inPartition := map[string]string{}
		for _, k := range got {
			pk, rk, _ := strings.Cut(k, " ")
			if strings.Contains(filter, "PartitionKey eq") && !strings.Contains(filter, " or ") &&
				rk <= inPartition[pk] {
				t.Fatalf("%s: %s after %s", filter, rk, inPartition[pk])
			}
			inPartition[pk] = rk
		}
		byKeys := func(a, b string) int {
			apk, ark, _ := strings.Cut(a, " ")
			bpk, brk, _ := strings.Cut(b, " ")
			return cmp.Or(strings.Compare(apk, bpk), strings.Compare(ark, brk))
		}
		slices.SortFunc(want, byKeys)
		if !slices.Equal(got, want) {
			t.Fatalf("%s in pages of %s:\n got %v\nwant %v", filter, q.Get("$top"), got, want)
		}
	}
}

func entityField(prop string) func(*edm.Entity) value.Value {
	return func(e *edm.Entity) value.Value {
		switch prop {
		case edm.PartitionKey:
			return value.StringOf(e.PartitionKey)
		case edm.RowKey:
			return value.StringOf(e.RowKey)
		}
		for i := range e.Props {
			if string(e.Props[i].Name) == prop {
				return e.Props[i].Value
			}
		}
		return value.Undef()
	}
}

// randomEntity makes an entity with few properties, which have few different values of all types, so that filters match
// often.
func randomEntity(rnd *rand.Rand, i int) string {
	var b strings.Builder
	pk := rnd.IntN(4)
	if pk > 1 {
		pk = 1 // one partition is large enough for the core to use the index inside it
	}
	fmt.Fprintf(&b, `{"PartitionKey":"p%d","RowKey":"r%03d"`, pk, i)
	for _, name := range []string{"a", "b", "c"} {
		switch v := rnd.IntN(6); rnd.IntN(9) {
		case 0, 1:
			fmt.Fprintf(&b, `,"%s":%d`, name, v)
		case 2:
			fmt.Fprintf(&b, `,"%s":%d.5`, name, v)
		case 3:
			fmt.Fprintf(&b, `,"%s@odata.type":"Edm.Int64","%s":"%d"`, name, name, v)
		case 4:
			fmt.Fprintf(&b, `,"%s":"%d"`, name, v)
		case 5:
			fmt.Fprintf(&b, `,"%s":%v`, name, v > 2)
		case 6:
			fmt.Fprintf(&b, `,"%s@odata.type":"Edm.DateTime","%s":"2024-01-0%dT00:00:00.000000%dZ"`, name,
				name, 1+v%2, v)
		case 7:
			fmt.Fprintf(&b, `,"%s@odata.type":"Edm.Guid","%s":"00000000-0000-0000-0000-00000000000%d"`, name, name, v)
		}
	}
	return b.String() + "}"
}

func randomFilter(rnd *rand.Rand, depth int) string {
	switch k := rnd.IntN(10); {
	case depth < 3 && k < 2:
		return randomFilter(rnd, depth+1) + " and " + randomFilter(rnd, depth+1)
	case depth < 3 && k < 4:
		return "(" + randomFilter(rnd, depth+1) + " or " + randomFilter(rnd, depth+1) + ")"
	case depth < 3 && k == 4:
		return "not (" + randomFilter(rnd, depth+1) + ")"
	case k == 5:
		return fmt.Sprintf("PartitionKey eq 'p%d'", rnd.IntN(2))
	}
	op := []string{"eq", "ne", "gt", "ge", "lt", "le"}[rnd.IntN(6)]
	v := rnd.IntN(6)
	if rnd.IntN(5) == 0 {
		return fmt.Sprintf("RowKey %s 'r%d'", op, v)
	}
	prop := string("abc"[rnd.IntN(3)])
	switch rnd.IntN(7) {
	case 0, 1:
		return fmt.Sprintf("%s %s %d", prop, op, v)
	case 2:
		return fmt.Sprintf("%d.5 %s %s", v, op, prop)
	case 3:
		return fmt.Sprintf("%s %s %dL", prop, op, v)
	case 4:
		return fmt.Sprintf("%s %s '%d'", prop, op, v)
	case 5:
		return prop
	}
	return fmt.Sprintf("%s %s datetime'2024-01-0%dT00:00:00.0000002Z'", prop, op, 1+v%2)
}

func TestContinuationHalves(t *testing.T) {
	for _, token := range []string{"a", "ab", "some token with /+= and ä", strings.Repeat("x", 1024)} {
		pk, rk := splitToken(token)
		got, err := joinToken(pk, rk)
		if err != nil || got != token {
			t.Errorf("%q: %q, %v", token, got, err)
		}
	}
	for _, bad := range []string{"x", "1!", "1!5!", "1!4!?!!!", "1!3!AAAA", "1!!AAAA", "2!4!AAAA"} {
		if _, err := joinToken(bad, ""); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestLimits(t *testing.T) {
	s, _ := newServer(t, false)
	do(s, "POST", "/Tables", `{"TableName":"data"}`)
	// 60 properties of 32,000 characters: below the body's limit, 1.9 MB stored
	big := `{"PartitionKey":"p","RowKey":"r"`
	for i := range 60 {
		big += fmt.Sprintf(`,"p%d":"%s"`, i, strings.Repeat("x", 32000))
	}
	more := `{"q":"` + strings.Repeat("x", 32000) + `","r":"` + strings.Repeat("x", 32000) + `","s":"` +
		strings.Repeat("x", 32000) +
		`","t":"` + strings.Repeat("x", 32000) + `","u":"` + strings.Repeat("x", 32000) + `","v":"` +
		strings.Repeat("x", 32000) + `"}`
	for _, c := range []struct {
		name, method, target, body string
		status                     int
		code                       string
	}{
		{"body of 4 MiB and a byte", "POST", "/data", strings.Repeat(" ", maxBody+1), 413, "RequestBodyTooLarge"},
		{"nearly 2 MiB", "PUT", "/data(PartitionKey='p',RowKey='r')", big + "}", 204, ""},
		{"merged over 2 MiB", "MERGE", "/data(PartitionKey='p',RowKey='r')", more, 400, "EntityTooLarge"},
		{"bad escape", "GET", "/data(PartitionKey='%zz',RowKey='')", "", 400, "InvalidUri"},
		{"not UTF-8", "PUT", "/data(PartitionKey='%ff',RowKey='')", "{}", 400, "OutOfRangeInput"},
		{"deep filter", "GET", "/data?$filter=" + strings.Repeat("(", 50_000), "", 400, "InvalidInput"},
	} {
		w := do(s, c.method, c.target, c.body)
		if got := w.Header().Get("x-ms-error-code"); w.Code != c.status || got != c.code {
			t.Errorf("%s: got %d %s, want %d %s", c.name, w.Code, got, c.status, c.code)
		}
	}
}

// FuzzServer: no request makes the server panic or reply with 500.
func FuzzServer(f *testing.F) {
	for _, m := range []string{"GET", "POST", "PUT", "MERGE", "DELETE"} {
		f.Add(m, "/data(PartitionKey='p',RowKey='r')", "*", `{"a":1}`)
		f.Add(m, "/data?$filter=a%20eq%201&$select=a&$top=3", "", `{"PartitionKey":"p","RowKey":"r","a":1}`)
		f.Add(m, "/shop.orders(PartitionKey='1',RowKey='{}')", `W/"x"`, `{"PartitionKey":"[1]"}`)
		f.Add(m, "/localhost/$batch", "multipart/mixed; boundary=b",
			"--b\r\nContent-Type: application/http\r\n\r\nGET /data HTTP/1.1\r\n\r\n--b--")
		f.Add(m, "/Tables('data')?comp=x", "", "")
	}
	s, _ := newServer(f, false)
	do(s, "POST", "/Tables", `{"TableName":"data"}`)
	f.Fuzz(func(t *testing.T, method, target, header, body string) {
		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Method, r.RequestURI = method, target
		r.Header["If-Match"], r.Header["Content-Type"], r.Header["Accept"] = []string{header}, []string{header},
			[]string{header}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code == 500 {
			t.Fatalf("%s %s: %s", method, target, w.Body)
		}
	})
}
