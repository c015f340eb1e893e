//go:build unix

package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkNoSQL runs the most frequent requests of the NoSQL API over a loopback connection against the complete
// server: guard, routing, signature, core and store. It alternates with runs of 200 requests in which the same client
// gets a fixed document of 1 KB from plain net/http. x-floor is the ratio of the process's CPU times in the median
// runs, client included. allocs/op counts only the server, because the client doesn't allocate.
func BenchmarkNoSQL(b *testing.B) {
	s := benchServer(b)
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(s.nosql(b.Context(), "POST", "dbs", "", nil, []byte(`{"id":"db"}`)))
	must(s.nosql(b.Context(), "POST", "colls", "dbs/db", nil, []byte(`{"id":"c","partitionKey":{"paths":["/tenant"],`+
		`"kind":"Hash"}}`)))

	const coll = "dbs/db/colls/c"
	const key = "x-ms-documentdb-partitionkey: [\"t1\"]\r\n"
	const query = key + "x-ms-documentdb-isquery: True\r\nContent-Type: application/query+json\r\n"
	c := dialBench(b, s.Addr(NoSQL))
	for i := range 100 {
		c.do(b, s.benchHead("POST", "/"+coll+"/docs", coll, key), []byte(benchOrder(i, "t1")), 201)
	}
	n := 100
	for _, op := range []struct {
		name string
		head []byte
		body func() []byte
		want int
	}{
		{"Floor", nil, nil, 200},
		{"Read", s.benchHead("GET", "/"+coll+"/docs/o7", coll+"/docs/o7", key), nil, 200},
		{"Insert", s.benchHead("POST", "/"+coll+"/docs", coll, strings.Replace(key, "t1", "t2", 1)),
			func() []byte { n++; return []byte(benchOrder(n, "t2")) }, 201},
		{"Replace", s.benchHead("PUT", "/"+coll+"/docs/o7", coll+"/docs/o7", key),
			func() []byte {
				n++
				return []byte(strings.Replace(benchOrder(7, "t1"), `"total":7`, fmt.Sprintf(`"total":%d`, n), 1))
			}, 200},
		{"Query", s.benchHead("POST", "/"+coll+"/docs", coll, query),
			func() []byte { return []byte(`{"query":"SELECT TOP 20 * FROM c WHERE c.n < 100"}`) }, 200},
	} {
		b.Run(op.name, func(b *testing.B) { benchOp(b, s, NoSQL, op.head, op.body, op.want) })
	}
}

// BenchmarkTable is BenchmarkNoSQL for the point read of the Table API.
func BenchmarkTable(b *testing.B) {
	s := benchServer(b)
	if err := s.table(b.Context(), "POST", "/Tables", []byte(`{"TableName":"data"}`)); err != nil {
		b.Fatal(err)
	}
	for i := range 100 {
		e := fmt.Sprintf(`{"PartitionKey":"t1","RowKey":"o%d","customer":"c%07d","total":%d,"p1":%d.5,"p2":true,`+
			`"note":%q}`,
			i, i, i, i, strings.Repeat("the quick brown fox ", 40))
		if err := s.table(b.Context(), "POST", "/data", []byte(e)); err != nil {
			b.Fatal(err)
		}
	}
	path := "/data(PartitionKey='t1',RowKey='o7')"
	date := wall.Now().Format(http.TimeFormat)
	head := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nx-ms-version: 2019-02-02\r\nx-ms-date: %s\r\n"+
		"Accept: application/json;odata=nometadata\r\nauthorization: SharedKeyLite %s:%s\r\n",
		path, s.Addr(Table), date, s.cfg.Account, s.sign(date+"\n/"+s.cfg.Account+path))
	b.Run("Read", func(b *testing.B) { benchOp(b, s, Table, head, nil, 200) })
}

// benchServer is a server on disk with the NoSQL and the Table API.
func benchServer(b *testing.B) *Server {
	cfg := Ephemeral()
	cfg.Memory, cfg.Data, cfg.Durability, cfg.Strict = false, b.TempDir(), "relaxed", nil
	cfg.MongoAddr, cfg.GremlinAddr = Off, Off
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := Start(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stop(b, s, 5*time.Second) })
	if err := s.WaitReady(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s
}

// benchOp measures one request, in runs that alternate with runs of the floor.
func benchOp(b *testing.B, s *Server, api string, head []byte, body func() []byte, want int) {
	fixed := []byte(benchOrder(7, "t1"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	bare := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(fixed)
	})}
	go func() { _ = bare.Serve(l) }()
	defer bare.Close()
	floor := dialBench(b, l.Addr().String())
	get := s.benchHead("GET", "/dbs/db/colls/c/docs/o7", "dbs/db/colls/c/docs/o7", "x-ms-documentdb-partitionkey: "+
		"[\"t1\"]\r\n")
	c := floor
	if head != nil {
		c = dialBench(b, s.Addr(api))
	} else {
		head = get
	}

	const run = 200
	var ours, least []float64 // nanoseconds per request, of each run
	texts := make([][]byte, run)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += run {
		k := min(run, b.N-done)
		b.StopTimer()
		if body != nil {
			for i := range k {
				texts[i] = body()
			}
		}
		at := processTime()
		for range run {
			floor.do(b, get, nil, 200)
		}
		least = append(least, float64(processTime()-at)/run)
		b.StartTimer()
		at = processTime()
		for i := range k {
			c.do(b, head, texts[i], want)
		}
		ours = append(ours, float64(processTime()-at)/float64(k))
	}
	b.StopTimer()
	slices.Sort(ours)
	slices.Sort(least)
	cpu, floorCPU := ours[len(ours)/2], least[len(least)/2]
	b.ReportMetric(cpu/1000, "cpu-us/op")
	b.ReportMetric(cpu/floorCPU, "x-floor")
}

// benchOrder is a document of about 1 KB.
func benchOrder(i int, tenant string) string {
	return fmt.Sprintf(`{"id":"o%d","tenant":%q,"customer":"c%07d","status":"new","total":%d,`+
		`"created":"2026-01-01T00:00:00Z","n":%d,"p1":%d.5,"p2":true,"lines":[{"sku":"a","qty":1},{"sku":"b","qty":2}],"note":%q}`,
		i, tenant, i%1000, i, i, i, strings.Repeat("the quick brown fox ", 40))
}

// benchHead returns the signed head of a request, without the length of its body.
func (s *Server) benchHead(method, path, link, headers string) []byte {
	date := wall.Now().Format(http.TimeFormat)
	text := strings.ToLower(method) + "\ndocs\n" + link + "\n" + strings.ToLower(date) + "\n\n"
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nx-ms-version: 2018-12-31\r\nx-ms-date: %s\r\nAccept: "+
		"application/json\r\nauthorization: %s\r\n%s",
		method, path, s.Addr(NoSQL), date, url.QueryEscape("type=master&ver=1.0&sig="+s.sign(text)), headers)
}

// benchClient is a connection that sends prepared requests and discards the replies, without allocations.
type benchClient struct {
	net.Conn
	r   *bufio.Reader
	out []byte
}

func dialBench(b *testing.B, addr string) *benchClient {
	b.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return &benchClient{Conn: c, r: bufio.NewReaderSize(c, 64<<10)}
}

func (c *benchClient) do(b *testing.B, head, body []byte, want int) {
	o := append(c.out[:0], head...)
	if body != nil {
		o = append(o, "Content-Length: "...)
		o = strconv.AppendInt(o, int64(len(body)), 10)
		o = append(o, "\r\n"...)
	}
	o = append(o, "\r\n"...)
	c.out = append(o, body...)
	if _, err := c.Write(c.out); err != nil {
		b.Fatal(err)
	}
	code, length := 0, -1
	for first := true; ; first = false {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if first {
			code = number(line[9:12])
		} else if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length = number(v)
		}
	}
	if code != want || length < 0 {
		b.Fatalf("status %d, length %d", code, length)
	}
	if _, err := c.r.Discard(length); err != nil {
		b.Fatal(err)
	}
}

func number(text []byte) (n int) {
	for _, ch := range text {
		n = 10*n + int(ch-'0')
	}
	return n
}

// processTime is the CPU time of the process.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
