package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// together is an engine whose commits become durable when a given number of them waits, like a log that is synced for
// all.
type together struct {
	kv.Engine
	mu    sync.Mutex
	most  int // 0: immediately
	wait  int
	group chan struct{}
}

type commitTogether struct {
	kv.Commit
	t *together
}

func (t *together) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	c, err := t.Engine.Write(ctx, b, pre)
	return commitTogether{c, t}, err
}

func (c commitTogether) Wait() error {
	c.t.mu.Lock()
	if c.t.wait++; c.t.wait >= c.t.most {
		close(c.t.group)
		c.t.wait, c.t.group = 0, make(chan struct{})
		c.t.mu.Unlock()
		return nil
	}
	group := c.t.group
	c.t.mu.Unlock()
	select {
	case <-group:
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("nobody else wrote meanwhile")
	}
}

// A door that runs one request at a time lets others write while one waits for the disk, so that they share its sync.
func TestWritersShareASyncBehindTheGate(t *testing.T) {
	eng := &together{Engine: memkv.New(), group: make(chan struct{})}
	p := parts{doors: makeDoors, probes: probes, open: func(*Config) (backend, error) {
		e, err := core.Open(context.Background(), eng, core.Options{})
		return &backing{storage: storage{eng}, eng: e}, err
	}}
	cfg := Ephemeral()
	cfg.MaxRequests = 1
	s, err := start(cfg, p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer s.Stop(ctx)
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		s.nosql(ctx, http.MethodPost, "dbs", "", nil, []byte(`{"id":"d"}`)),
		s.nosql(ctx, http.MethodPost, "colls", "dbs/d", nil, []byte(`{"id":"c","partitionKey":{"paths":["/id"],`+
			`"kind":"Hash","version":2}}`)),
		s.table(ctx, http.MethodPost, "/Tables", []byte(`{"TableName":"things"}`)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const writers = 3
	var gremlin [writers]*gremlinConn
	var mongo [writers]*mongoConn
	for i := range writers {
		if gremlin[i], err = s.dialGremlin(ctx); err != nil {
			t.Fatal(err)
		}
		defer gremlin[i].close()
		if err = gremlin[i].eval("graphs/g", "g.addV('v')", nil); err != nil {
			// the login; the first login makes the graph
			t.Fatal(err)
		}
		if mongo[i], err = s.dialMongo(ctx); err != nil {
			t.Fatal(err)
		}
		defer mongo[i].Close()
	}
	for _, door := range []struct {
		api   string
		write func(conn, id int) error
	}{
		{NoSQL, func(_, i int) error {
			header := map[string]string{"x-ms-documentdb-partitionkey": fmt.Sprintf(`["%d"]`, i)}
			return s.nosql(ctx, http.MethodPost, "docs", "dbs/d/colls/c", header, fmt.Appendf(nil, `{"id":"%d"}`, i))
		}},
		{Table, func(_, i int) error {
			return s.table(ctx, http.MethodPost, "/things", fmt.Appendf(nil, `{"PartitionKey":"%d","RowKey":"r"}`, i))
		}},
		{Gremlin, func(i, _ int) error { return gremlin[i].eval("graphs/g", "g.addV('v')", nil) }},
		{Mongo, func(i, id int) error {
			_, err := mongo[i].run(fmt.Sprintf(`{"insert":"m","documents":[{"_id":%d}],"$db":"d"}`, id))
			return err
		}},
	} {
		t.Run(door.api, func(t *testing.T) {
			if err := door.write(0, writers); err != nil { // the first write reserves numbers, which also waits
				t.Fatal(err)
			}
			eng.mu.Lock()
			eng.most = writers
			eng.mu.Unlock()
			defer func() {
				eng.mu.Lock()
				defer eng.mu.Unlock()
				eng.most = 0
			}()
			var wg sync.WaitGroup
			for i := range writers {
				wg.Go(func() {
					if err := door.write(i, i); err != nil {
						t.Errorf("writer %d: %v", i, err)
					}
				})
			}
			wg.Wait()
		})
	}
}
