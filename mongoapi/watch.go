package mongoapi

import (
	"sync"
	"time"

	"github.com/orrerydb/orrery/mongoapi/peer"
)

// A command that ends soon is never watched. Its cost is two locks of its connection's own mutex. Only a command that
// two looks find is watched and its time measured, so the time limits are as precise as the interval of the looks.
const (
	lookEvery = 20 * time.Millisecond
	// lookAgain is the number of looks without a command after which the watcher sleeps.
	lookAgain = 50
)

// rouse activates the watcher. It is called when a command begins.
func (s *Server) rouse() {
	if s.awake.Load() || !s.awake.CompareAndSwap(false, true) {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// watch looks at the connections while commands run.
func (s *Server) watch() {
	defer s.wg.Done()
	t := time.NewTicker(lookEvery)
	t.Stop()
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			// Running commands are watched until the connections are closed.
			s.finishWatch()
			return
		case <-s.wake:
		}
		t.Reset(lookEvery)
		for quiet := 0; quiet < lookAgain; {
			select {
			case <-s.stop:
				s.finishWatch()
				return
			case <-t.C:
			}
			if quiet++; s.look() {
				quiet = 0
			}
		}
		t.Stop()
		s.awake.Store(false)
		if s.look() { // a command that began meanwhile saw the watcher as active
			s.rouse()
		}
	}
}

// finishWatch continues to look while a shutdown lets commands end.
func (s *Server) finishWatch() {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for s.connections() > 0 {
		<-t.C
		s.look()
	}
}

// stirs are the connections that have to be looked at: those that aren't quiet (peer.Conn), each once. A thousand that
// wait for documents cost the watcher nothing.
type stirs struct {
	mu  sync.Mutex
	all []*peer.Conn
}

// add adds connections. The list is no longer the caller's.
func (w *stirs) add(cs ...*peer.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = cs
		return
	}
	w.all = append(w.all, cs...)
}

// take returns all and leaves none.
func (w *stirs) take() []*peer.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// look looks once at each connection that isn't quiet, and reports whether any of them was active since the last look.
func (s *Server) look() (active bool) {
	all := s.stirs.take()
	left := all[:0]
	for _, p := range all {
		was, again := p.Look(s.o.MaxTime)
		if active = active || was; again {
			left = append(left, p)
		}
	}
	clear(all[len(left):])
	s.stirs.add(left...)
	return active
}
