package mongoapi

import "time"

// A command that ends soon is never watched: it costs two locks of its connection's own mutex. Only what a look finds
// twice has its client watched and its time measured, so these bounds are as fine as looks are frequent.
const (
	lookEvery = 20 * time.Millisecond
	// lookAgain is how many looks find nothing before the watcher sleeps.
	lookAgain = 50
)

// rouse makes sure that the watcher looks. It is called when a command begins.
func (s *Server) rouse() {
	if s.awake.Load() || !s.awake.CompareAndSwap(false, true) {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// watch looks at the connections as long as commands run.
func (s *Server) watch() {
	defer s.wg.Done()
	t := time.NewTicker(lookEvery)
	t.Stop()
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			// Commands that run are still watched until the connections are closed.
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
		if s.look() { // a command that began meanwhile has found it awake
			s.rouse()
		}
	}
}

// finishWatch goes on looking while a shutdown lets commands end.
func (s *Server) finishWatch() {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for s.connections() > 0 {
		<-t.C
		s.look()
	}
}

// look looks at each connection once and reports whether any has worked since the last time.
func (s *Server) look() (active bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.p.Look(s.o.MaxTime) {
			active = true
		}
	}
	return active
}
