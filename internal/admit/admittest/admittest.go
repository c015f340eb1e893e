// Package admittest helps to test handlers behind a gate.
package admittest

import (
	"net/http/httptest"

	"github.com/orrerydb/orrery/internal/admit"
)

// Watcher is a ResponseWriter that records, at each write, how many requests are inside a gate.
type Watcher struct {
	*httptest.ResponseRecorder
	Gate   *admit.Gate
	Inside []int
}

// Watch returns a Watcher for a gate.
func Watch(g *admit.Gate) *Watcher {
	return &Watcher{ResponseRecorder: httptest.NewRecorder(), Gate: g}
}

// Write implements http.ResponseWriter.
func (w *Watcher) Write(b []byte) (int, error) {
	w.Inside = append(w.Inside, w.Gate.Running())
	return w.ResponseRecorder.Write(b)
}
