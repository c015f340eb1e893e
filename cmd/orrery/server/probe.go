package server

import (
	"context"
	"net/http"
	"time"
)

// A probe is one real request in an API's protocol, with credentials, that reaches the core. The server is ready when
// each enabled API has answered its probe.
type probe func(ctx context.Context, s *Server) error

var probes = map[string]probe{
	NoSQL: func(ctx context.Context, s *Server) error { return s.nosql(ctx, http.MethodGet, "dbs", "", nil, nil) },
	Table: func(ctx context.Context, s *Server) error { return s.table(ctx, http.MethodGet, "/Tables", nil) },
	Gremlin: func(ctx context.Context, s *Server) error {
		c, err := s.dialGremlin(ctx)
		if err != nil {
			return err
		}
		defer c.close()
		return c.eval("graphs/g", "g.V().limit(1)", nil) // this graph always exists
	},
	Mongo: func(ctx context.Context, s *Server) error {
		c, err := s.dialMongo(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.run(`{"listDatabases":1,"nameOnly":true,"$db":"admin"}`)
		return err
	},
}

const (
	probeTimeout = 5 * time.Second
	probePause   = 20 * time.Millisecond
)

// probeUntilReady sends probes until all have succeeded, then sets ready. It stops when ctx ends. Another account of a
// server with test controls is ready at once: the APIs of its server have answered, and a probe would be a request that
// the test's faults hit.
func (s *Server) probeUntilReady(ctx context.Context) {
	if s.cfg.parent != nil {
		s.ready.Store(true)
		return
	}
	for _, b := range s.bound {
		p := s.parts.probes[b.name]
		if p == nil {
			continue
		}
		last := ""
		for {
			one, cancel := context.WithTimeout(ctx, probeTimeout)
			err := p(one, s)
			cancel()
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			if err.Error() != last {
				last = err.Error()
				s.log.Warn("An API does not answer yet", "api", b.name, "error", err)
			}
			t := time.NewTimer(probePause)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return
			}
		}
	}
	s.ready.Store(true)
	s.log.Info("Every API answers", "took", wall.Now().Sub(s.began).Round(time.Millisecond))
}
