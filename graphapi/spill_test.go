package graphapi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/spill"
)

// vertices is the number of vertices of smallServer's graph.
const vertices = 3000

// smallServer serves a graph of vertices with a unique n and a text t. A request may hold share bytes.
func smallServer(t *testing.T, share int64) (*server, *spill.Space, *budget.Budget) {
	t.Helper()
	ctx := context.Background()
	files, err := spill.Open(filepath.Join(t.TempDir(), "spill"), spill.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := budget.New(64<<20, share)
	e, err := core.Open(ctx, memkv.New(), core.Options{MinSlots: 4, Budget: b, Spill: files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	graphs := Graphs(e)
	if _, err := graphs.OpenGraph(ctx, defaultGraph, true); err != nil {
		t.Fatal(err)
	}
	c, err := e.Container(defaultGraph.Database, defaultGraph.Graph)
	if err != nil {
		t.Fatal(err)
	}
	ws := make([]core.Write, vertices)
	for i := range ws {
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"_partitionKey":"%d","id":"%d","n":%d,"t":%q}`, i, i,
			i*7919%vertices, strings.Repeat("x", 100)), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		ws[i] = core.Write{Kind: core.Create, Doc: d}
	}
	for _, o := range c.WriteMany(ctx, ws, false) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	s := &server{Server: NewServer(graphs, Options{Clock: clock.New(), Budget: b,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})}
	s.http = httptest.NewServer(s.Server)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		s.Shutdown(ctx)
		s.http.Close()
		if files.Files() != 0 || files.Used() != 0 {
			t.Errorf("%d files with %d bytes are left", files.Files(), files.Used())
		}
	})
	return s, files, b
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// all returns the data of all messages of an answer.
func (c *client) all() string {
	c.t.Helper()
	for out := ""; ; {
		a := c.recv()
		if out += string(a.Result.Data); a.Status.Code != 206 {
			if a.Status.Code != 200 {
				c.t.Errorf("%d %s", a.Status.Code, a.Status.Message)
			}
			return out
		}
	}
}

// TestRepliesFromFiles: replies over a connection are the same, byte for byte, whether a request may hold little
// memory, and writes to files, or much. A map is read from a file while it is written.
func TestRepliesFromFiles(t *testing.T) {
	large, none, _ := smallServer(t, 0)
	small, files, b := smallServer(t, 700<<10)
	for _, script := range []string{
		"g.V().order().by('n').values('n')", "g.V().groupCount().by('n')", "g.V().group().by('n').by(label)",
		"g.V().groupCount().by('n').unfold().order().by(keys).limit(300)", "g.V().values('t', 'n').dedup()",
	} {
		var got [2]string
		for i, s := range []*server{large, small} {
			c := s.dial(t)
			c.eval(script)
			got[i] = c.all()
		}
		if got[0] != got[1] || len(got[0]) < 1000 {
			t.Errorf("%s: %d and %d bytes", script, len(got[0]), len(got[1]))
		}
	}
	if none.Written() != 0 || files.Written() == 0 {
		t.Errorf("%d and %d bytes were written", none.Written(), files.Written())
	}
	eventually(t, "memory is held", func() bool { return b.Used() == 0 })
}

// TestFilesEndWithTheRequest: the files of a request are removed when its client leaves, and when its time is over.
func TestFilesEndWithTheRequest(t *testing.T) {
	s, files, _ := smallServer(t, 300<<10)
	endless := "g.V().order().by('n').until(not(identity())).repeat(identity())"
	c := s.dial(t)
	c.eval(endless)
	eventually(t, "nothing was written", func() bool { return files.Files() > 0 })
	c.ws.Close()
	eventually(t, "files are left after the client", func() bool { return files.Files() == 0 && files.Used() == 0 })

	c = s.dial(t)
	before := files.Written()
	c.request(id1, "eval", "", fmt.Sprintf(`{"gremlin":%q,"evaluationTimeout":{"@type":"g:Int64","@value":700}}`,
		endless))
	c.want(598, id1, "timeout")
	if files.Written() == before {
		t.Error("nothing was written")
	}
	eventually(t, "files are left after the time", func() bool { return files.Files() == 0 && files.Used() == 0 })
}
