package server

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/internal/testlog"
)

// Every API reports its requests, and the plan of a slow query.
func TestEveryAPITellsOfItsRequests(t *testing.T) {
	var log testlog.Lines
	s, ctx := whole(t, func(c *Config) {
		c.LogRequests, c.Slow, c.Logger = true, time.Nanosecond, slog.New(slog.NewTextHandler(&log, nil))
	})
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	s.seen.requests.mu.Lock()
	s.seen.requests.lines = 0 // there were other slow requests in this second
	s.seen.requests.mu.Unlock()
	err := s.nosql(ctx, http.MethodPost, "docs", "dbs/shop/colls/orders", map[string]string{"Content-Type": "application/query+json",
		"x-ms-documentdb-isquery": "True", "x-ms-documentdb-query-enablecrosspartition": "True"},
		[]byte(`{"query":"SELECT * FROM c WHERE c.total > 3"}`))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		_, text = get(t, http.DefaultClient, "http://"+s.Addr(Admin)+"/metrics")
		if !strings.Contains(strings.ReplaceAll(text, "{api=\"admin\"} 1", ""),
			"orrery_requests_in_flight{api=\"gremlin\"} 1") {
			break
		}
	}
	for _, api := range []string{NoSQL, Table, Gremlin, Mongo} {
		if !strings.Contains(text, `orrery_request_duration_seconds_count{api="`+api+`",`) ||
			!strings.Contains(text, `orrery_requests_in_flight{api="`+api+`"} 0`) {
			t.Errorf("%s tells nothing, or of no end", api)
		}
		if !strings.Contains(log.String(), "msg=Request api="+api+" ") {
			t.Errorf("%s has no line in the log", api)
		}
	}
	if !strings.Contains(log.String(), "plan=") {
		t.Errorf("no plan: %s", log.String())
	}
}
