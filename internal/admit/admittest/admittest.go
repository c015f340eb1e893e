// Package admittest helps to test what passes a gate.
package admittest

import (
	"net/http/httptest"

	"github.com/orrerydb/orrery/internal/admit"
)

// Watcher is a ResponseWriter that counts who is inside a gate whenever it is written to.
type Watcher struct {
	*httptest.ResponseRecorder
	Gate   *admit.Gate
	Inside []int
}

// Watch returns a Watcher of a gate.
func Watch(g *admit.Gate) *Watcher {
	return &Watcher{ResponseRecorder: httptest.NewRecorder(), Gate: g}
}

// Write implements http.ResponseWriter.
func (w *Watcher) Write(b []byte) (int, error) {
	w.Inside = append(w.Inside, w.Gate.Running())
	return w.ResponseRecorder.Write(b)
}
