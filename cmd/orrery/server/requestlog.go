package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/orrerydb/orrery/internal/observe"
)

// slowLines is the largest number of log lines for slow requests in a second, so that logging doesn't make an overload
// worse.
const slowLines = 10

// requestLog logs requests.
type requestLog struct {
	log  *slog.Logger
	all  bool          // a line for each request
	slow time.Duration // requests that take this long get a line with their plan; 0 = none

	mu     sync.Mutex
	second int64 // of the last slow request
	lines  int   // in that second
	hidden int   // slow requests without a line since the last line
}

// done is called for each request.
func (l *requestLog) done(r *observe.Request) {
	if l.all {
		l.log.LogAttrs(context.Background(), slog.LevelInfo, "Request", attributes(r)...)
	}
	if l.slow > 0 && r.Duration >= l.slow {
		l.slowRequest(r)
	}
}

func (l *requestLog) slowRequest(r *observe.Request) {
	hidden, ok := l.mayWrite(wall.Now().Unix())
	if !ok {
		return
	}
	a := attributes(r)
	if hidden > 0 {
		a = append(a, slog.Int("not_shown", hidden))
	}
	if r.Explain != nil {
		a = append(a, slog.String("plan", r.Explain()))
	}
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "Slow request", a...)
}

// mayWrite reports whether another line is allowed in this second, and how many requests were omitted since the last
// line.
func (l *requestLog) mayWrite(second int64) (hidden int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second != l.second {
		l.second, l.lines = second, 0
	}
	if l.lines++; l.lines > slowLines {
		l.hidden++
		return 0, false
	}
	hidden, l.hidden = l.hidden, 0
	return hidden, true
}

// attributes returns the content of a request's log line.
func attributes(r *observe.Request) []slog.Attr {
	a := []slog.Attr{
		slog.String("api", r.API), slog.String("operation", r.Operation), slog.String("status", r.Status),
		slog.Float64("duration_ms", float64(r.Duration.Microseconds())/1000), slog.Float64("charge", r.Charge),
		slog.String("client", r.Client), slog.String("target", r.Target),
	}
	if r.Left {
		a = append(a, slog.Bool("left", true))
	}
	return a
}
