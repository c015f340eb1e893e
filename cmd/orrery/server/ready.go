package server

import "github.com/orrerydb/orrery/core/kv"

// unready returns why the server isn't ready, "" if it is. Ready means that every API has answered a request and the
// store is healthy. A store that only accepts reads, or only deletes, isn't healthy: a load balancer should send writes
// elsewhere, and the operator should know.
func (s *Server) unready() string {
	if !s.Ready() {
		return "not every API answers"
	}
	if reason := s.init.waits(); reason != "" {
		return reason
	}
	h := s.health()
	switch {
	case h.State == kv.Well:
		return ""
	case h.Reason == "":
		return "the store is " + healthNames[h.State]
	}
	return h.Reason
}

// health returns the state that the store reports.
func (s *Server) health() kv.Health {
	if b := s.backing(); b != nil {
		return b.eng.Health()
	}
	return kv.Health{}
}

// Hangs reports whether Stop waits for the store: it is being closed, or its disk doesn't respond.
func (s *Server) Hangs() bool { return s.closing.Load() || s.health().State == kv.Stalled }
