package mongoapi

import "time"

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

// look looks at each connection once and reports whether any of them was active since the last look.
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
