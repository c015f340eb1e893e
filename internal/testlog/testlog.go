// Package testlog is for tests: a log that can be read while it is written.
package testlog

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// Lines keeps what is written to it. Its zero value is empty. Safe for concurrent use.
type Lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what was written so far.
func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Count is how often what was written has a text in it.
func (l *Lines) Count(text string) int { return strings.Count(l.String(), text) }

// Logger returns a logger that writes lines of text to it.
func (l *Lines) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
