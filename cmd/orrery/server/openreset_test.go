package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/orrerydb/orrery/core/doc"
)

// A reset while a transaction, a change stream and a Gremlin session are open ends what they hold, answers at once, and
// leaves their connections usable.
func TestResetWithOpenWork(t *testing.T) {
	for _, kind := range []string{"memory", "directory"} {
		t.Run(kind, func(t *testing.T) {
			dir := ""
			if kind == "directory" {
				dir = t.TempDir()
			}
			s := testServer(t, dir)
			tx, stream := mongoTo(t, s), mongoTo(t, s)
			graph, err := s.dialGremlin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer graph.close()
			const lsid = `"lsid":{"id":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAQ==","subType":"04"}}},` +
				`"txnNumber":{"$numberLong":"1"},"autocommit":false,"$db":`
			must(t, tx, `{"insert":"c","documents":[{"_id":0}],"$db":"d"}`)
			must(t, tx, `{"insert":"c","documents":[{"_id":1}],"startTransaction":true,`+lsid+`"d"}`)
			cursor := doc.Get(must(t, stream, `{"aggregate":"c","pipeline":[{"$changeStream":{}}],`+
				`"cursor":{},"$db":"d"}`), "cursor", "id").Int()
			if err := graph.eval("graphs/g", "g.V().count()", nil); err != nil { // logs in
				t.Fatal(err)
			}
			gremlinSession(t, graph, "g.addV('person')")
			if text := gremlinSession(t, graph, "g.V().count()"); !strings.Contains(text, countIs(1)) {
				t.Fatalf("the session answers %s", text)
			}
			waiting := make(chan error, 1)
			go func() {
				_, err := stream.run(fmt.Sprintf(`{"getMore":{"$numberLong":"%d"},"collection":"c","maxTimeMS":60000,`+
					`"$db":"d"}`, cursor))
				waiting <- err
			}()
			time.Sleep(20 * time.Millisecond) // or the getMore comes after the reset: the outcome is the same
			began := time.Now()
			if err := s.Reset(""); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the reset took %v", took)
			}
			if err := <-waiting; err == nil || !strings.Contains(err.Error(), "CursorNotFound") {
				t.Errorf("the change stream after the reset: %v", err)
			}
			if _, err := tx.run(`{"commitTransaction":1,` + lsid + `"admin"}`); err == nil ||
				!strings.Contains(err.Error(), "NoSuchTransaction") {
				t.Errorf("the commit of a transaction from before the reset: %v", err)
			}
			for name, c := range map[string]*mongoConn{"the transaction": tx, "the stream": stream} {
				reply := must(t, c, `{"count":"c","query":{},"$db":"d"}`)
				if n := doc.Get(reply, "n").Int(); n != 0 {
					t.Errorf("%s sees %d documents after the reset", name, n)
				}
			}
			if text := gremlinSession(t, graph, "g.V().count()"); !strings.Contains(text, countIs(0)) {
				t.Errorf("the session sees %s after the reset", text)
			}
		})
	}
}

func mongoTo(t *testing.T, s *Server) *mongoConn {
	t.Helper()
	c, err := s.dialMongo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func must(t *testing.T, c *mongoConn, command string) doc.Doc {
	t.Helper()
	reply, err := c.run(command)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return reply
}

// countIs is a count in a reply of Gremlin.
func countIs(n int) string { return fmt.Sprintf(`"data":[%d]`, n) }

// gremlinSession runs a script in a session of a connection, and returns the text of the last message.
func gremlinSession(t *testing.T, c *gremlinConn, script string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"requestId": c.s.cfg.Clock.UUID().String(), "op": "eval",
		"processor": "session", "args": map[string]any{"session": "s", "gremlin": script,
			"language": "gremlin-groovy"}})
	if err != nil {
		t.Fatal(err)
	}
	const mime = "application/json"
	if err := c.ws.WriteMessage(websocket.BinaryMessage,
		append(append([]byte{byte(len(mime))}, mime...), body...)); err != nil {
		t.Fatal(err)
	}
	for {
		_, raw, err := c.ws.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		var reply struct{ Status struct{ Code int } }
		if err := json.Unmarshal(raw, &reply); err != nil {
			t.Fatal(err)
		}
		if reply.Status.Code != 206 {
			return string(raw)
		}
	}
}
