package cli

import (
	"bytes"
	"context"
	le "encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi"
)

// The same query through all four APIs has the same plan: the same steps on the same index, with the same estimates,
// counts and alternatives. The only difference is that paths of MongoDB and Gremlin include elements of arrays.
func TestExplainIsTheSameInAllLanguages(t *testing.T) {
	cfg := server.Ephemeral()
	cfg.Auth, cfg.TableAddr = false, server.Off
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	defer func() {
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.Engine().EnsureDatabase(ctx, "db"); err != nil {
		t.Fatal(err)
	}
	spec := core.ContainerSpec{ID: "c"}
	spec.PartitionKey.Paths = []string{"/pk"}
	c, err := s.Engine().CreateContainer(ctx, "db", spec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"%d","pk":"p%d","label":"l%d"}`, i, i%9, i%20),
			doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(ctx, core.Write{Kind: core.Create, Doc: d}); err != nil {
			t.Fatal(err)
		}
	}
	plans := map[string]string{
		"SQL":         ofSQL(t, s, `SELECT * FROM c WHERE c.label = "l3"`),
		"the command": ofCommand(t, s, `SELECT * FROM c WHERE c.label = "l3"`),
		"MongoDB":     ofMongo(t, s, `{"label":"l3"}`),
		"Gremlin":     ofGremlin(t, s, `g.V().hasLabel('l3').executionProfile()`),
		"TinkerPop":   ofGremlin(t, s, `g.V().hasLabel('l3').profile()`),
	}
	const want = `Filter [rows 20, cost 220, gave 20]
  CreationOrder [rows 20, cost 220, gave 20]: few items
    IndexScan (eq /label "l3") [rows 20, cost 220, gave 20, entries 20]: most selective condition
rejected Scan [rows 400, cost 660]
`
	for name, got := range plans {
		if got = strings.ReplaceAll(got, "/label/[]", "/label"); got != want {
			t.Errorf("%s:\n%swant\n%s", name, got, want)
		}
	}
}

func ofSQL(t *testing.T, s *server.Server, text string) string {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"query": text})
	r, err := http.NewRequest(http.MethodPost, "http://"+s.Addr(server.NoSQL)+"/dbs/db/colls/c/docs",
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]string{"Content-Type": "application/query+json", "x-ms-documentdb-isquery": "True",
		"x-ms-documentdb-query-enablecrosspartition": "True", "x-orrery-explain": "true", "x-ms-version": "2020-11-05"} {
		r.Header.Set(name, v)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var e sqlapi.Explanation
	if err := json.Unmarshal([]byte(res.Header.Get("x-orrery-explain")), &e); err != nil {
		t.Fatalf("%s: %v", res.Status, err)
	}
	return e.Tree.String()
}

func ofCommand(t *testing.T, s *server.Server, text string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run([]string{"query", "--db", "db", "--container", "c", "--endpoint", "http://" + s.Addr(server.NoSQL),
		"--explain", text}, &out, &errOut); code != 0 {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	var tree []string
	for line := range strings.Lines(errOut.String()) {
		if rest, ok := strings.CutPrefix(line, "        "); ok {
			tree = append(tree, rest)
		}
	}
	return strings.Join(tree, "")
}

func ofMongo(t *testing.T, s *server.Server, filter string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr(server.Mongo))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cmd, err := doc.FromExtJSON(nil, []byte(`{"explain":{"find":"c","filter":`+filter+
		`},"verbosity":"executionStats","$db":"db"}`))
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 21) // length, id, answer to, OP_MSG, flags, kind of section
	le.LittleEndian.PutUint32(head, uint32(len(head)+len(cmd)))
	le.LittleEndian.PutUint32(head[12:], 2013)
	if _, err := conn.Write(append(head, cmd...)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, head); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, int(le.LittleEndian.Uint32(head))-len(head))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	var e plan.Explanation
	shown := doc.AppendJSON(nil, value.ObjectOf(answer).Get("queryPlanner").Get("orrery"))
	if err := json.Unmarshal(shown, &e); err != nil {
		t.Fatalf("%v: %s", err, doc.AppendJSON(nil, value.ObjectOf(answer)))
	}
	return e.String()
}

func ofGremlin(t *testing.T, s *server.Server, script string) string {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"gremlin": script, "aliases": map[string]string{"g": "db/c"}})
	res, err := http.Post("http://"+s.Addr(server.Gremlin)+"/gremlin", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, quoted, found := strings.Cut(string(text), `"plan",`) // GraphSON writes a map as a list of keys and values
	var tree string
	if err := json.NewDecoder(strings.NewReader(quoted)).Decode(&tree); err != nil || !found {
		t.Fatalf("%v: %s", err, text)
	}
	return tree
}
