package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/orrerydb/orrery/internal/observe"
)

// quiet is a logger without output.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestMetricsOfRequests(t *testing.T) {
	f := &fakes{}
	f.ok.Store(true)
	s := f.start(t, nil)
	for _, r := range []observe.Request{
		{API: Mongo, Operation: "find", Status: "ok", Charge: 2.5, Duration: 3 * time.Millisecond},
		{API: Mongo, Operation: "find", Status: "ok", Charge: 1.5, Duration: 300 * time.Microsecond},
		{API: Mongo, Operation: "insert", Status: "8000", Failed: true, Duration: time.Second},
		{API: Mongo, Operation: "find", Status: "11601", Left: true, Duration: 2 * time.Minute},
	} {
		s.seen.Begin(r.API)
		s.seen.Done(&r)
	}
	s.seen.Begin(Mongo)
	get(t, http.DefaultClient, "http://"+s.Addr(Admin)+"/alive")
	_, text := get(t, http.DefaultClient, "http://"+s.Addr(Admin)+"/metrics")
	for _, want := range []string{
		"# TYPE orrery_request_duration_seconds histogram",
		`orrery_request_duration_seconds_count{api="mongo",operation="find",status="ok"} 2`,
		`orrery_request_duration_seconds_bucket{api="mongo",operation="find",status="ok",le="0.0005"} 1`,
		`orrery_request_duration_seconds_bucket{api="mongo",operation="find",status="11601",le="60"} 0`,
		`orrery_request_duration_seconds_count{api="admin",operation="/alive",status="200"} 1`,
		`orrery_request_units_total{api="mongo",operation="find"} 4`,
		"# TYPE orrery_requests_total counter",
		`orrery_requests_total{api="mongo"} 5`,
		`orrery_requests_total{api="admin"} 2`,
		"# TYPE orrery_requests_in_flight gauge",
		`orrery_requests_in_flight{api="mongo"} 1`,
		`orrery_requests_in_flight{api="admin"} 1`,
		`orrery_request_failures_total{api="mongo"} 1`,
		`orrery_requests_abandoned_total{api="mongo"} 1`,
		`orrery_requests_refused_total{api="mongo"} 0`,
		"# TYPE orrery_connections_open gauge",
		`orrery_connections_refused_total{api="nosql"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %q", want)
		}
	}
}

// Names end in their unit, names of counters in _total, and each metric has a help text.
func TestMetricsAreNamedWell(t *testing.T) {
	families, err := wholeRegistry(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "orrery_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// wholeRegistry is the registry of a server on disk after a request to every door.
func wholeRegistry(t *testing.T) *prometheus.Registry {
	t.Helper()
	s, _ := whole(t, func(c *Config) { c.Memory, c.Data = false, t.TempDir() })
	for api := range s.seen.apis {
		s.seen.Begin(api)
		s.seen.Done(&observe.Request{API: api, Operation: "o", Status: "s", Charge: 1, Duration: time.Millisecond})
	}
	return s.registry()
}

// The number of series is limited whatever names the doors use, and every request is counted.
func TestSeriesAreBounded(t *testing.T) {
	o := newObserver(quiet, false, 0)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range mostSeries {
				o.Begin(NoSQL)
				o.Done(&observe.Request{API: NoSQL, Operation: fmt.Sprint(g, i), Status: "200"})
			}
		})
	}
	wg.Wait()
	if n := len(*o.series.Load()); n != mostSeries+1 {
		t.Errorf("%d series", n)
	}
	count := uint64(0)
	for _, m := range gather(t, o.latency) {
		count += m
	}
	if count != 4*mostSeries || o.begun(NoSQL) != 4*mostSeries {
		t.Errorf("%d requests counted", count)
	}
}

// gather returns the counts of a histogram's series.
func gather(t *testing.T, c prometheus.Collector) (out []uint64) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out = append(out, m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

// Counting a request doesn't allocate.
func TestCountingAllocatesNothing(t *testing.T) {
	o := newObserver(quiet, false, time.Second)
	r := &observe.Request{API: NoSQL, Operation: "read item", Status: "200", Charge: 1, Duration: time.Millisecond}
	if n := testing.AllocsPerRun(1000, func() { o.Begin(NoSQL); o.Done(r) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkObserver(b *testing.B) {
	o := newObserver(quiet, false, time.Second)
	r := &observe.Request{API: NoSQL, Operation: "read item", Status: "200", Charge: 1, Duration: time.Millisecond}
	b.ReportAllocs()
	for range b.N {
		o.Begin(NoSQL)
		o.Done(r)
	}
}

// lines decodes a log of JSON lines.
func lines(t *testing.T, log []byte) (out []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(log) {
		m := map[string]any{}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func TestRequestLog(t *testing.T) {
	explained := 0
	req := &observe.Request{API: NoSQL, Operation: "query", Status: "200", Charge: 12.5,
		Duration: 1500 * time.Microsecond,
		Client:   "10.0.0.1:5", Target: "/dbs/d/colls/c/docs", Explain: func() string {
			explained++
			return "scan of items"
		}}
	var log bytes.Buffer
	json := slog.New(slog.NewJSONHandler(&log, nil))

	newObserver(json, false, time.Second).Done(req)
	if log.Len() > 0 {
		t.Errorf("logged unasked: %s", log.String())
	}
	newObserver(json, true, 0).Done(req)
	left := *req
	left.Left = true
	newObserver(json, true, time.Second).Done(&left)
	if explained > 0 {
		t.Error("explained where nobody wants it")
	}
	newObserver(json, false, 1500*time.Microsecond).Done(req)
	got := lines(t, log.Bytes())
	for i, want := range []map[string]any{
		{"level": "INFO", "msg": "Request", "api": "nosql", "operation": "query", "status": "200", "duration_ms": 1.5,
			"charge": 12.5,
			"client": "10.0.0.1:5", "target": "/dbs/d/colls/c/docs"},
		{"level": "INFO", "msg": "Request", "left": true},
		{"level": "WARN", "msg": "Slow request", "operation": "query", "plan": "scan of items"},
	} {
		if i >= len(got) {
			t.Fatalf("%d lines", len(got))
		}
		for name, value := range want {
			if got[i][name] != value {
				t.Errorf("line %d: %s is %v, want %v", i, name, got[i][name], value)
			}
		}
	}
}

// When everything is slow, the log says how many lines it omits.
func TestSlowLogIsBounded(t *testing.T) {
	l := &requestLog{}
	shown := 0
	for range 25 {
		if _, ok := l.mayWrite(100); ok {
			shown++
		}
	}
	hidden, ok := l.mayWrite(101)
	if shown != slowLines || !ok || hidden != 25-slowLines {
		t.Errorf("%d shown, then %d hidden, %v", shown, hidden, ok)
	}
	if hidden, ok := l.mayWrite(101); !ok || hidden != 0 {
		t.Error(hidden, ok)
	}
}
