package sqlapi

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// writer is a minimal http.ResponseWriter, to measure a handler without the server around it.
type writer struct {
	h    http.Header
	code int
	n    int
}

func (w *writer) Header() http.Header         { return w.h }
func (w *writer) Write(b []byte) (int, error) { w.n += len(b); return len(b), nil }
func (w *writer) WriteHeader(code int)        { w.code = code }

type body struct{ *bytes.Reader }

func (body) Close() error { return nil }

// benchRequest returns a signed request that can be served repeatedly.
func benchRequest(b *testing.B, method, path, link string, headers map[string]string) *http.Request {
	b.Helper()
	date := testNow.Format(http.TimeFormat)
	u, err := url.ParseRequestURI(path)
	if err != nil {
		b.Fatal(err)
	}
	r := &http.Request{Method: method, URL: u, Host: "127.0.0.1:8081", Header: http.Header{}, Body: http.NoBody}
	r.Header.Set("x-ms-date", date)
	r.Header.Set("x-ms-version", "2018-12-31")
	r.Header.Set("authorization", sign(b, testKey, method, "docs", link, date))
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	return r
}

func benchItem(i int) string {
	return fmt.Sprintf(`{"id":"doc-%d","pk":"p1","status":"open","total":%d.5,"customer":"c%d","lines":[{"sku":"a",`+
		`"n":1},{"sku":"b","n":2}],"text":"%s"}`,
		i, i, i%100, bytes.Repeat([]byte("lorem ipsum "), 60))
}

func serve(b *testing.B, a *api, r *http.Request, want int) {
	b.Helper()
	b.ReportAllocs()
	w := &writer{h: http.Header{}}
	for b.Loop() {
		clear(w.h)
		if a.srv.ServeHTTP(w, r); w.code != want {
			b.Fatal(w.code)
		}
	}
}

func BenchmarkPointRead(b *testing.B) {
	a := withContainer(b)
	a.do("POST", docs, benchItem(1), key("p1")).is(201)
	serve(
		b, a, benchRequest(b, "GET", docs+"/doc-1", docs[1:]+"/doc-1",
			map[string]string{"x-ms-documentdb-partitionkey": `["p1"]`}), 200)
}

func BenchmarkCreate(b *testing.B) {
	a := withContainer(b)
	r := benchRequest(b, "POST", docs, "dbs/db/colls/c", map[string]string{"x-ms-documentdb-partitionkey": `["p1"]`})
	w := &writer{h: http.Header{}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		text := []byte(benchItem(i))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		clear(w.h)
		if a.srv.ServeHTTP(w, r); w.code != 201 {
			b.Fatal(w.code)
		}
	}
}

func BenchmarkQueryPartition(b *testing.B) {
	a := withContainer(b)
	for i := range 100 {
		a.do("POST", docs, benchItem(i), key("p1")).is(201)
	}
	text := []byte(`{"query":"SELECT TOP 20 * FROM c WHERE c.status = 'open'"}`)
	r := benchRequest(b, "POST", docs, "dbs/db/colls/c", map[string]string{"x-ms-documentdb-partitionkey": `["p1"]`, "x-ms-documentdb-isquery": "True"})
	w := &writer{h: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		r.Body, r.ContentLength = body{bytes.NewReader(text)}, int64(len(text))
		clear(w.h)
		if a.srv.ServeHTTP(w, r); w.code != 200 {
			b.Fatal(w.code)
		}
	}
}
