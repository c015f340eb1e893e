package server

import (
	"context"
	"net"
)

// reopened is a backend whose store may be open for reading only, until its disk has room.
type reopened interface{ Room() <-chan struct{} }

// Room is closed when the server could write if it were restarted: its disk was full when it opened the store, and now
// has room. It is nil for a server that can write.
func (s *Server) Room() <-chan struct{} {
	if b, ok := s.back.(reopened); ok {
		return b.Room()
	}
	return nil
}

// Restart stops the server, as Stop does, and starts another one at the same addresses. Its connections are closed.
func (s *Server) Restart(ctx context.Context) (*Server, error) {
	c := s.cfg
	for name, addr := range map[string]*string{
		NoSQL: &c.NoSQLAddr, Gremlin: &c.GremlinAddr, Table: &c.TableAddr, Mongo: &c.MongoAddr, Admin: &c.AdminAddr,
	} {
		if _, port, err := net.SplitHostPort(*addr); err == nil && port == "0" {
			*addr = s.Addr(name) // the port that was chosen
		}
	}
	if err := s.Stop(ctx); err != nil {
		return nil, err
	}
	return start(c, s.parts)
}
