// Package soak puts a complete server under load through all four doors for a long time, and checks values that must
// not grow: memory, the runs that a read must look in, and the time of reads. It runs for a few seconds, or for the
// time in ORRERY_SOAK, which `make soak` sets.
package soak

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
)

const (
	keys     = 5000            // items of each door; they are overwritten, so the store doesn't grow
	short    = 5 * time.Second // default duration; with ORRERY_SOAK=30m the test is longer and the figures are checked
	samples  = 60              // measurements of the server
	warm     = 5               // the first ones don't count, while caches fill
	maxRatio = 25              // limit of p99 / p50 of reads
	maxRuns  = 24              // limit of the median number of runs for a read
	maxGrown = 1.25            // limit of the growth of resident memory from the second third to the last
)

// histogram counts durations in buckets with the width of a quarter of a power of two. Safe for concurrent use.
type histogram struct{ n [256]atomic.Int64 }

func (h *histogram) add(d time.Duration) {
	us := uint64(max(d.Microseconds(), 4))
	e := bits.Len64(us) - 1
	h.n[min(e*4+int(us>>(e-2)&3), len(h.n)-1)].Add(1)
}

// quantile returns the lower bound of the bucket that contains the quantile q.
func (h *histogram) quantile(q float64) time.Duration {
	var all, seen int64
	for i := range h.n {
		all += h.n[i].Load()
	}
	for i := range h.n {
		if seen += h.n[i].Load(); seen > 0 && float64(seen) >= q*float64(all) {
			return time.Duration(uint64(4+i&3)<<(i/4)>>2) * time.Microsecond
		}
	}
	return 0
}

// worker is one client in a loop. The times of its reads are measured.
type worker struct {
	name string
	read bool
	step func(ctx context.Context, n int) error
	time histogram
	done atomic.Int64
}

func key(n int) string { return strconv.Itoa(n % keys) }

func text() string { return strings.Repeat(strconv.Itoa(rand.IntN(1e6))+" ", 60) }

// noSQL returns the clients of the NoSQL API: upserts, point reads, queries, and items that are created and expire.
func noSQL(t *testing.T, s *harness.Server) []*worker {
	db := s.Database(t)
	c := harness.Container(t, db, "soak", 0, "/pk")
	ttl := int32(2)
	if _, err := db.CreateContainer(t.Context(), azcosmos.ContainerProperties{ID: "short", DefaultTimeToLive: &ttl,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}}}, nil); err != nil {
		t.Fatal(err)
	}
	short, err := db.NewContainer("short")
	if err != nil {
		t.Fatal(err)
	}
	pk := func(n int) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(strconv.Itoa(n % keys % 50)) }
	upsert := func(ctx context.Context, n int) error {
		d, _ := json.Marshal(map[string]any{
			"id":   key(n),
			"pk":   strconv.Itoa(n % keys % 50),
			"n":    n,
			"text": text(),
			"tags": []int{n % 7, n % 11},
		})
		_, err := c.UpsertItem(ctx, pk(n), d, nil)
		return err
	}
	for n := range keys {
		if err := upsert(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	return []*worker{
		{name: "NoSQL upsert", step: upsert},
		{name: "NoSQL read", read: true, step: func(ctx context.Context, _ int) error {
			n := rand.IntN(keys)
			_, err := c.ReadItem(ctx, pk(n), key(n), nil)
			return err
		}},
		{name: "NoSQL query", step: func(ctx context.Context, n int) error {
			p := c.NewQueryItemsPager(
				"SELECT TOP 20 c.id, c.n FROM c WHERE ARRAY_CONTAINS(c.tags, 3) ORDER BY c.n DESC",
				pk(n),
				nil,
			)
			for p.More() {
				if _, err := p.NextPage(ctx); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "NoSQL item that expires", step: func(ctx context.Context, n int) error {
			id := fmt.Sprint("s", n)
			_, err := short.CreateItem(ctx, azcosmos.NewPartitionKeyString(id), fmt.Appendf(nil, `{"id":%q}`, id), nil)
			time.Sleep(time.Millisecond)
			return err
		}},
	}
}

// mongoDB returns the clients of the MongoDB API: updates, finds by _id, groups.
func mongoDB(t *testing.T, s *harness.Server) []*worker {
	c := s.Mongo.Database("soak").Collection("c")
	upsert := func(ctx context.Context, n int) error {
		_, err := c.UpdateOne(
			ctx,
			bson.D{{Key: "_id", Value: n % keys}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "k", Value: n % 100},
				{Key: "text", Value: text()}}}},
			options.UpdateOne().SetUpsert(true),
		)
		return err
	}
	for n := range keys {
		if err := upsert(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	return []*worker{
		{name: "Mongo update", step: upsert},
		{name: "Mongo find", read: true, step: func(ctx context.Context, _ int) error {
			return c.FindOne(ctx, bson.D{{Key: "_id", Value: rand.IntN(keys)}}).Err()
		}},
		{name: "Mongo group", step: func(ctx context.Context, n int) error {
			cur, err := c.Aggregate(
				ctx,
				bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "k", Value: bson.D{{Key: "$lt", Value: 10}}}}}},
					bson.D{
						{
							Key: "$group",
							Value: bson.D{
								{Key: "_id", Value: "$k"},
								{Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}},
							},
						},
					}},
			)
			if err == nil {
				err = cur.All(ctx, &[]bson.D{})
			}
			return err
		}},
	}
}

// table returns the clients of the Table API.
func table(t *testing.T, s *harness.Server) []*worker {
	if _, err := s.Tables.CreateTable(t.Context(), "soak", nil); err != nil {
		t.Fatal(err)
	}
	c := s.Tables.NewClient("soak")
	upsert := func(ctx context.Context, n int) error {
		e, _ := json.Marshal(
			aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: strconv.Itoa(n % keys % 50), RowKey: key(n)},
				Properties: map[string]any{"N": int32(n), "Text": text()}},
		)
		_, err := c.UpsertEntity(ctx, e, nil)
		return err
	}
	for n := range keys {
		if err := upsert(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	return []*worker{
		{name: "Table upsert", step: upsert},
		{name: "Table read", read: true, step: func(ctx context.Context, _ int) error {
			n := rand.IntN(keys)
			_, err := c.GetEntity(ctx, strconv.Itoa(n%50), key(n), nil)
			return err
		}},
	}
}

// gremlin returns the clients of the Gremlin API: vertices with an edge are created, traversed and removed.
func gremlin(t *testing.T, s *harness.Server) []*worker {
	db := s.Database(t)
	harness.Container(t, db, "g", 0, "/pk")
	c := s.Gremlin(t, db.ID(), "g")
	run := func(script string, bindings ...any) error {
		_, err := harness.Submit(c, script, bindings...)
		return err
	}
	for n := range 200 {
		if err := run("g.addV('v').property('id', i).property('pk', i)", "i", key(n)); err != nil {
			t.Fatal(err)
		}
	}
	return []*worker{
		{name: "Gremlin write", step: func(_ context.Context, n int) error {
			from, to := key(n%200), key((n+1)%200)
			if err := run("g.V(a).addE('e').to(g.V(b))", "a", from, "b", to); err != nil {
				return err
			}
			return run("g.V(a).outE('e').drop()", "a", from)
		}},
		{name: "Gremlin walk", read: true, step: func(_ context.Context, _ int) error {
			return run("g.V(a).out().limit(5).values('id')", "a", key(rand.IntN(200)))
		}},
	}
}

// busy reports whether the server refused a request because of its load; the client retries.
func busy(err error) bool {
	return strings.Contains(err.Error(), "429") || strings.Contains(err.Error(), "16500") ||
		strings.Contains(err.Error(), "TooManyRequests")
}

// look is one measurement of the server.
type look struct{ rss, runs float64 }

var runsLine = regexp.MustCompile(`(?m)^orrery_store_runs(?:\{[^}]*\})? ([0-9.e+]+)$`)

func observe(t *testing.T, s *harness.Server) (l look) {
	b, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		pages, _ := strconv.ParseFloat(strings.Fields(string(b))[1], 64)
		l.rss = pages * float64(os.Getpagesize())
	} else { // not Linux: the figure of the Go runtime
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		l.rss = float64(m.Sys - m.HeapReleased)
	}
	r, err := http.Get("http://" + s.Addr(server.Admin) + "/metrics")
	if err != nil {
		t.Error(err)
		return l
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	m := runsLine.FindSubmatch(text)
	if m == nil {
		t.Error("the metrics say nothing of the store's runs")
		return l
	}
	l.runs, _ = strconv.ParseFloat(string(m[1]), 64)
	return l
}

func median(ls []look, of func(look) float64) float64 {
	var x []float64
	for _, l := range ls {
		x = append(x, of(l))
	}
	slices.Sort(x)
	return x[len(x)/2]
}

func TestSoak(t *testing.T) {
	long, err := time.ParseDuration(cmp.Or(os.Getenv("ORRERY_SOAK"), short.String()))
	if err != nil {
		t.Fatal(err)
	}
	cfg := server.Ephemeral()
	cfg.Memory, cfg.Data, cfg.Strict = false, t.TempDir(), nil // with the default durability
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s := harness.StartWith(t, cfg) // at the end the check must find nothing
	var workers []*worker
	for _, door := range []func(*testing.T, *harness.Server) []*worker{noSQL, mongoDB, table, gremlin} {
		workers = append(workers, door(t, s)...)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				begun := time.Now()
				err := w.step(ctx, n)
				switch {
				case ctx.Err() != nil:
					return
				case err == nil:
					w.time.add(time.Since(begun))
					w.done.Add(1)
				case busy(err):
					time.Sleep(100 * time.Millisecond)
				default:
					t.Errorf("%s: %v", w.name, err)
					return
				}
			}
		})
	}
	var looks []look
	for range samples {
		time.Sleep(long / samples)
		looks = append(looks, observe(t, s))
	}
	for _, w := range workers {
		for begun := time.Now(); w.done.Load() == 0 && time.Since(begun) < time.Minute; { // on a busy machine
			time.Sleep(10 * time.Millisecond)
		}
		if w.done.Load() == 0 {
			t.Errorf("%s: nothing was done", w.name)
		}
	}
	cancel()
	wg.Wait()
	if long > short { // a few seconds say nothing about latency and memory
		judge(t, workers, looks[warm:], long)
	}
}

// judge checks the measurements.
func judge(t *testing.T, workers []*worker, looks []look, long time.Duration) {
	for _, w := range workers {
		p50, p99 := w.time.quantile(0.5), w.time.quantile(0.99)
		t.Logf("%-26s %9d done, p50 %8v, p99 %8v", w.name, w.done.Load(), p50, p99)
		if w.read && p99 > maxRatio*p50 {
			t.Errorf("%s: p99 is %v, %d times p50, which is %v", w.name, p99, p99/p50, p50)
		}
	}
	third := len(looks) / 3
	rss := func(l look) float64 { return l.rss }
	before, after := median(looks[third:2*third], rss), median(looks[2*third:], rss)
	runs := median(looks, func(l look) float64 { return l.runs })
	t.Logf("%v: resident memory %.0f MiB, then %.0f; runs %.0f", long, before/(1<<20), after/(1<<20), runs)
	if after > before*maxGrown+16<<20 {
		t.Errorf("resident memory grew from %.0f to %.0f MiB", before/(1<<20), after/(1<<20))
	}
	if runs > maxRuns {
		t.Errorf("a read goes through %.0f runs", runs)
	}
}

// The histogram's quantiles are those of the added durations, to within a bucket.
func TestHistogram(t *testing.T) {
	var h histogram
	for us := 1; us <= 10_000; us++ {
		h.add(time.Duration(us) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 5 * time.Millisecond, 0.99: 9900 * time.Microsecond} {
		if got := h.quantile(q); got > want || got < want*3/4 {
			t.Errorf("quantile %v is %v, want about %v", q, got, want)
		}
	}
}
