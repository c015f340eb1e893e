package server

import "github.com/orrerydb/orrery/core/kv"

// unready is why the server isn't ready, "" when it is: every API has answered a request, and the store is well. A
// store that only takes reads, or only deletes, is not well: who balances load should send writes elsewhere, and who
// looks after the server should know.
func (s *Server) unready() string {
	if !s.Ready() {
		return "not every API answers"
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

// health is what the store says of itself.
func (s *Server) health() kv.Health {
	if b, ok := s.back.(*backing); ok {
		return b.eng.Health()
	}
	return kv.Health{}
}

// Hangs reports whether the store is what a Stop waits for: it is being closed, or its disk doesn't answer.
func (s *Server) Hangs() bool { return s.closing.Load() || s.health().State == kv.Stalled }
