// Package recentlog keeps the last records of a log in memory, for clients that ask the server for them.
//
// Example: a server logs through slog.New(l.Handler(h)). Its records go to h as before, and l.Records returns the last
// thousand of them.
package recentlog

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// kept is how many records are kept, as by MongoDB.
const kept = 1024

// Log has the last records of a log. The zero Log is empty. Safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	recs  []slog.Record // a ring: record number n is at n % kept
	total int
}

// Records returns the number of records that there were, and the last ones in their order.
func (l *Log) Records() (total int, last []slog.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total <= kept {
		return l.total, slices.Clone(l.recs)
	}
	at := l.total % kept
	return l.total, slices.Concat(l.recs[at:], l.recs[:at])
}

func (l *Log) add(r slog.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.recs) < kept {
		l.recs = append(l.recs, r)
	} else {
		l.recs[l.total%kept] = r
	}
	l.total++
}

// Handler returns a handler that keeps what next is given.
func (l *Log) Handler(next slog.Handler) slog.Handler { return &handler{Handler: next, log: l} }

type handler struct {
	slog.Handler
	log   *Log
	attrs []slog.Attr // of With
	group string      // "" or "name."
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	own := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	own.AddAttrs(h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		own.AddAttrs(h.named(a))
		return true
	})
	h.log.add(own)
	return h.Handler.Handle(ctx, r)
}

// named returns an attribute with its group as a part of its name, and its value as it is now: what may change, or is
// large, isn't kept.
func (h *handler) named(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	if k := v.Kind(); k == slog.KindAny || k == slog.KindGroup {
		v = slog.StringValue(v.String())
	}
	return slog.Attr{Key: h.group + a.Key, Value: v}
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	n.Handler, n.attrs = h.Handler.WithAttrs(attrs), slices.Clip(h.attrs)
	for _, a := range attrs {
		n.attrs = append(n.attrs, h.named(a))
	}
	return &n
}

func (h *handler) WithGroup(name string) slog.Handler {
	n := *h
	if n.Handler = h.Handler.WithGroup(name); name != "" {
		n.group += name + "."
	}
	return &n
}
