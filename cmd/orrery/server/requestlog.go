package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/orrerydb/orrery/internal/observe"
)

// slowLines is how many slow requests have a line of their own in a second: when everything is slow, the log isn't
// what makes it worse.
const slowLines = 10

// requestLog writes lines about requests.
type requestLog struct {
	log  *slog.Logger
	all  bool          // each request has a line
	slow time.Duration // requests that take so long have one with their plan; 0: none

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

// mayWrite reports whether there is a line left in this second, and how many requests had none since the last line.
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

// attributes are what a line says of a request.
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
