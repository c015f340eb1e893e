package tableapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// discard is a ResponseWriter that keeps only the status.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

// benchEntity is an entity of about 1 KB with 18 properties of mixed types.
func benchEntity(pk, rk int) string {
	return fmt.Sprintf(`{"PartitionKey":"p%03d","RowKey":"r%06d","customer":"c%d","status":"open","total":%d.25,`+
		`"created@odata.type":"Edm.DateTime","created":"2024-03-04T05:06:07.123Z","p0":%d,"p1":2,"p2":3.5,"p3":4.5,"p4":true,"p5":false,`+
		`"p6":"six","p7":"seven","p8":"eight","p9":"nine","note":"%s"}`, pk, rk, rk%50, rk, rk%7,
		strings.Repeat("n", 600))
}

// benchServer returns a server with a table of 10,000 entities in 100 partitions, with signatures checked.
func benchServer(b *testing.B) *Server {
	s, _ := newServer(b, false)
	do(s, "POST", "/Tables", `{"TableName":"data"}`)
	for i := range 10_000 {
		if w := do(s, "POST", "/data", benchEntity(i/100, i), "Prefer", "return-no-content"); w.Code != 204 {
			b.Fatal(w.Body)
		}
	}
	s.o.Auth = true
	return s
}

// serve runs one signed request per iteration; target and body may depend on it.
func serve(b *testing.B, s *Server, method string, want int, header map[string]string,
	request func(i int) (target, body string)) {
	b.ReportAllocs()
	w := &discard{}
	for i := 0; b.Loop(); i++ {
		target, body := request(i)
		r := httptest.NewRequest(method, "/", strings.NewReader(body))
		path, _, _ := strings.Cut(target, "?")
		r.RequestURI = target
		r.Header = http.Header{"X-Ms-Version": {"2019-02-02"}, "Accept": {"application/json;odata=minimalmetadata"},
			"X-Ms-Date":     {now},
			"Authorization": {"SharedKeyLite localhost:" + signature(now+"\n/localhost"+path)}}
		for k, v := range header {
			r.Header.Set(k, v)
		}
		w.header = http.Header{}
		if s.ServeHTTP(w, r); w.status != want {
			b.Fatalf("%s %s: %d", method, target, w.status)
		}
	}
}

// The figures include making the request and the client's signature.
func BenchmarkPointRead(b *testing.B) {
	serve(b, benchServer(b), "GET", 200, nil, func(i int) (string, string) {
		i %= 10_000
		return fmt.Sprintf("/data(PartitionKey='p%03d',RowKey='r%06d')", i/100, i), ""
	})
}

func BenchmarkInsert(b *testing.B) {
	serve(b, benchServer(b), "POST", 204, map[string]string{"Prefer": "return-no-content"},
		func(i int) (string, string) {
			return "/data", benchEntity(i%100, 10_000+i)
		})
}

func BenchmarkQuery(b *testing.B) {
	s := benchServer(b)
	for name, q := range map[string]string{
		"partition": "$filter=" + url.QueryEscape("PartitionKey eq 'p007' and p0 eq 3"),
		"equality":  "$filter=" + url.QueryEscape("customer eq 'c7'") + "&$top=10",
		"range":     "$filter=" + url.QueryEscape("total ge 5000.5") + "&$top=20",
		"page":      "$select=RowKey",
	} {
		b.Run(name, func(b *testing.B) {
			serve(b, s, "GET", 200, nil, func(int) (string, string) { return "/data?" + q, "" })
		})
	}
}
