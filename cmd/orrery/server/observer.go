package server

import (
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/orrerydb/orrery/internal/observe"
)

// durations are the bounds of the latency histograms, in seconds. A point read takes tens of microseconds.
var durations = []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5,
	10, 30, 60}

// lags are the bounds of the histogram of feed lags, in seconds.
var lags = []float64{.1, .5, 1, 5, 10, 60, 600, 3600, 86400}

// mostSeries limits the number of series by operation and status. All others are counted under the operation "other".
// The doors have far fewer, from a fixed set.
const mostSeries = 2000

// observer counts the requests of all doors and logs them. A request costs two additions and a look-up of its series.
type observer struct {
	requests *requestLog
	watch    watch
	apis     map[string]*apiCounts // a fixed set, not changed after newObserver

	latency *prometheus.HistogramVec
	charge  *prometheus.CounterVec
	feedLag prometheus.Histogram

	mu     sync.Mutex // for adding a series
	series atomic.Pointer[map[seriesKey]*series]
}

var _ observe.Observer = (*observer)(nil)

// apiCounts are the counts of one API.
type apiCounts struct{ begun, done, failed, left, waiting atomic.Int64 }

// seriesKey is api, operation, status.
type seriesKey struct{ api, operation, status string }

type series struct {
	latency prometheus.Observer
	charge  prometheus.Counter
}

func newObserver(log *slog.Logger, all bool, slow time.Duration) *observer {
	o := &observer{
		requests: &requestLog{log: log, all: all, slow: slow},
		apis:     map[string]*apiCounts{},
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "orrery_request_duration_seconds",
			Help: "Time from the head of a request to the end of its answer.", Buckets: durations},
			[]string{"api", "operation", "status"}),
		charge: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "orrery_request_units_total",
			Help: "Request units charged."}, []string{"api", "operation"}),
		feedLag: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "orrery_feed_lag_seconds", Buckets: lags,
			Help: "Age of the youngest change of a page of a change feed when it is read."}),
	}
	for _, api := range []string{NoSQL, Table, Gremlin, Mongo, Admin} {
		o.apis[api] = &apiCounts{}
	}
	o.series.Store(&map[seriesKey]*series{})
	return o
}

// Begin implements observe.Observer.
func (o *observer) Begin(api string) {
	if a := o.apis[api]; a != nil {
		a.begun.Add(1)
	}
}

// Waits implements observe.Observer.
func (o *observer) Waits(api string, n int) {
	if a := o.apis[api]; a != nil {
		a.waiting.Add(int64(n))
	}
}

// inFlight returns the number of requests that are being answered. Those that only wait aren't.
func (a *apiCounts) inFlight() int64 {
	waiting, done := a.waiting.Load(), a.done.Load() // read before begun
	return max(0, a.begun.Load()-done-waiting)
}

// Done implements observe.Observer.
func (o *observer) Done(r *observe.Request) {
	if a := o.apis[r.API]; a != nil {
		a.done.Add(1)
		if r.Failed {
			a.failed.Add(1)
		}
		if r.Left {
			a.left.Add(1)
		}
	}
	s := (*o.series.Load())[seriesKey{r.API, r.Operation, r.Status}]
	if s == nil {
		s = o.newSeries(seriesKey{r.API, r.Operation, r.Status})
	}
	s.latency.Observe(r.Duration.Seconds())
	if r.Charge > 0 {
		s.charge.Add(r.Charge)
	}
	o.requests.done(r)
	if o.watch.on.Load() {
		o.watch.done(r)
	}
}

// newSeries adds a series by replacing the map. Readers continue with the old map.
func (o *observer) newSeries(k seriesKey) *series {
	o.mu.Lock()
	defer o.mu.Unlock()
	old := *o.series.Load()
	if len(old) >= mostSeries {
		k.operation, k.status = "other", "other"
	}
	if s := old[k]; s != nil {
		return s
	}
	s := &series{o.latency.WithLabelValues(k.api, k.operation, k.status), o.charge.WithLabelValues(k.api, k.operation)}
	all := maps.Clone(old)
	all[k] = s
	o.series.Store(&all)
	return s
}

// begun returns how many requests of an API have begun.
func (o *observer) begun(api string) int64 { return o.apis[api].begun.Load() }
