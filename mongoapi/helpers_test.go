package mongoapi

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/peer"
)

// newTestServer returns a server with an engine in memory. The end of the test checks the engine.
func newTestServer(t testing.TB, o Options) *Server { return newServerWithin(t, o, nil) }

// newServerWithin is newTestServer with a memory budget.
func newServerWithin(t testing.TB, o Options, b *budget.Budget) *Server {
	t.Helper()
	e, err := core.Open(context.Background(), memkv.New(), core.Options{Budget: b, MinSlots: 4})
	if err != nil {
		t.Fatal(err)
	}
	o.Account, o.Key = "localhost", "a2V5"
	s := New(e, o)
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if n := b.Used(); n != 0 {
			t.Errorf("%d bytes of the budget are left over", n)
		}
		if problems, err := e.Check(context.Background()); err != nil || len(problems) > 0 {
			t.Errorf("check: %v, %v", problems, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// regexpQuote makes a pattern for a complete text, in which each %s is replaced by a literal text.
func regexpQuote(pattern string, texts ...string) *regexp.Regexp {
	args := make([]any, len(texts))
	for i, s := range texts {
		args[i] = regexp.QuoteMeta(s)
	}
	return regexp.MustCompile("^" + fmt.Sprintf(pattern, args...) + "$")
}

func benchConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, home: s, nc: nc, p: peer.New(nc, peer.Defaults, nil), authed: true}
	beginBench(c)
	return c
}

func beginBench(c *conn) {
	ctx, _ := c.p.Begin(false)
	c.begin(ctx)
	c.s.rouse()
}

func endBench(c *conn) { c.ended(nil, 0, 0); c.p.End() }

// valueOf returns a document as the server reads it.
func valueOf(t testing.TB, d bson.D) value.Value {
	t.Helper()
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return value.ObjectOf(b)
}

// open returns the number of cursors.
func (cs *cursors) open() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.m)
}
