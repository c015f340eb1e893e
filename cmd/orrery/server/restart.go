package server

import (
	"context"
	"net"
)

// reopened is a backend whose store may be read-only until its disk has room.
type reopened interface{ Room() <-chan struct{} }

// Room returns a channel that is closed when a restart would make the store writable: the disk was full when the store
// was opened, and has room again. It returns nil if the store is writable.
func (s *Server) Room() <-chan struct{} {
	if b, ok := s.store().(reopened); ok {
		return b.Room()
	}
	return nil
}

// Restart stops the server like Stop, and starts another one at the same addresses. Connections are closed.
func (s *Server) Restart(ctx context.Context) (*Server, error) {
	c := s.cfg
	for name, addr := range map[string]*string{
		NoSQL: &c.NoSQLAddr, Gremlin: &c.GremlinAddr, Table: &c.TableAddr, Mongo: &c.MongoAddr, Admin: &c.AdminAddr,
	} {
		if _, port, err := net.SplitHostPort(*addr); err == nil && port == "0" {
			*addr = s.Addr(name) // the port that was chosen at the first start
		}
	}
	if err := s.Stop(ctx); err != nil {
		return nil, err
	}
	return start(c, s.parts)
}
