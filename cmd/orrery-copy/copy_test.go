package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// start starts a server in memory with an account key of its own.
func start(t *testing.T, key string, more ...func(*server.Config)) *server.Server {
	t.Helper()
	cfg := server.Ephemeral()
	cfg.Key, cfg.Strict, cfg.TestControls = key, nil, true
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, m := range more {
		m(&cfg)
	}
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

const (
	fromKey = "c291cmNlIHNvdXJjZSBzb3VyY2Ugc291cmNlIHNvdXJjZSBzb3VyY2Ugc291cmNlIHNvdXJjZSBzb3VyY2Ugc28="
	toKey   = "dGFyZ2V0IHRhcmdldCB0YXJnZXQgdGFyZ2V0IHRhcmdldCB0YXJnZXQgdGFyZ2V0IHRhcmdldCB0YXJnZXQgdGE="
)

// pair has two servers, and how places of theirs are written.
type pair struct {
	t        *testing.T
	from, to *server.Server
	dir      string
}

func newPair(t *testing.T) *pair {
	t.Setenv("FROM_KEY", fromKey)
	t.Setenv("TO_KEY", toKey)
	return &pair{t, start(t, fromKey), start(t, toKey), t.TempDir()}
}

func place2(api string, s *server.Server, name string) string {
	switch api {
	case "mongodb":
		return "mongodb://" + s.Addr(server.Mongo) + "/" + name
	case "gremlin":
		return "gremlin+ws://" + s.Addr(server.Gremlin) + "/" + name
	case "table":
		return "table+http://" + s.Addr(server.Table) + "/localhost/" + name
	}
	return "nosql+http://" + s.Addr(server.NoSQL) + "/" + name
}

// copy runs the command.
func (p *pair) copy(ctx context.Context, api, name string, more ...string) (string, error) {
	cmd := command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"--from", place2(api, p.from, name), "--from-key", "env:FROM_KEY", "--to",
		place2(api, p.to, name), "--to-key", "env:TO_KEY", "--from-account", "localhost", "--to-account", "localhost",
		"--state", filepath.Join(p.dir, "state")}, more...))
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// reach opens a place for the test.
func reach(t *testing.T, api string, s *server.Server, key, name string) client {
	t.Helper()
	pl := place{text: place2(api, s, name), key: "env:" + key, account: "localhost",
		lists: filepath.Join(t.TempDir(), "ids")}
	if err := pl.parse(); err != nil {
		t.Fatal(err)
	}
	c, err := pl.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// items are all items of a place, sorted.
func items(t *testing.T, c source) []string {
	t.Helper()
	var out []string
	err := c.changes(context.Background(), nil, false, func(batch []change, _ json.RawMessage) error {
		for _, b := range batch {
			if _, ok := c.(*mongodb); ok {
				out = append(out, bson.Raw(b.item).String())
			} else {
				out = append(out, string(b.item))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// fill writes n items from number from on.
func fill(t *testing.T, api string, c target, from, n int) {
	t.Helper()
	var batch []change
	for i := from; i < from+n; i++ {
		var item []byte
		switch api {
		case "mongodb":
			var id any = i
			if i%3 == 0 {
				id = fmt.Sprintf("text %d", i)
			}
			item, _ = bson.Marshal(bson.D{{Key: "_id", Value: id}, {Key: "n", Value: int64(i)}, {Key: "t",
				Value: bson.DateTime(i)}})
		case "table":
			item = fmt.Appendf(nil, `{"PartitionKey":"p%d","RowKey":"%d","N@odata.type":"Edm.Int64","N":"%d"}`, i%3, i,
				i)
		default:
			item = fmt.Appendf(nil, `{"id":"i%d","pk":"p%d","n":%d,"whole":1.0}`, i, i%7, i)
		}
		batch = append(batch, change{item: item})
	}
	if bad, err := c.apply(context.Background(), batch); err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
}

// A copy is equal item by item; it can be ended at any time, and the same command goes on.
func TestCopy(t *testing.T) {
	for _, api := range []string{"nosql", "mongodb", "table"} {
		t.Run(api, func(t *testing.T) {
			p := newPair(t)
			ctx := context.Background()
			name := "d/c"
			if api == "table" {
				name = "things"
			}
			from := reach(t, api, p.from, "FROM_KEY", name)
			prepareSource(t, api, p.from, from)
			const n = 2500
			fill(t, api, from, 0, n)
			for i := range 3 { // ended after so many positions
				short, stop := context.WithCancel(ctx)
				go func() {
					for range 500 {
						time.Sleep(2 * time.Millisecond)
						if _, err := os.Stat(filepath.Join(p.dir, "state")); err == nil {
							time.Sleep(time.Duration(i) * 10 * time.Millisecond)
							break
						}
					}
					stop()
				}()
				if _, err := p.copy(short, api, name); err == nil {
					break
				}
			}
			out, err := p.copy(ctx, api, name)
			if err != nil {
				t.Fatal(out, err)
			}
			got, want := items(t, reach(t, api, p.to, "TO_KEY", name)), items(t, from)
			if len(want) != n || !slices.Equal(got, want) {
				t.Errorf("%d items, want %d and the same", len(got), len(want))
			}
			if m, ok := from.(*mongodb); ok {
				want, err := m.define(ctx)
				if err != nil || len(want.(mongoIndexes).search) != 1 {
					t.Error(want, err)
				}
				got, err := reach(t, api, p.to, "TO_KEY", name).(*mongodb).define(ctx)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("indexes %v, want %v (%v)", got, want, err)
				}
			}
			for _, secret := range []string{fromKey, toKey} {
				if strings.Contains(out, secret) {
					t.Errorf("a key is shown: %s", out)
				}
			}
		})
	}
}

// --map gives fields other names.
func TestCopyRenames(t *testing.T) {
	for api, field := range map[string]string{"nosql": "n", "mongodb": "t"} {
		p := newPair(t)
		ctx := context.Background()
		from := reach(t, api, p.from, "FROM_KEY", "d/c")
		prepareSource(t, api, p.from, from)
		fill(t, api, from, 0, 3)
		if out, err := p.copy(ctx, api, "d/c", "--map", field+"=number"); err != nil {
			t.Fatal(out, err)
		}
		got := items(t, reach(t, api, p.to, "TO_KEY", "d/c"))
		if text := strings.Join(got, "\n"); len(got) != 3 || strings.Count(text, `"number"`) != 3 ||
			strings.Contains(text, `"`+field+`"`) {
			t.Errorf("%s: %s", api, text)
		}
		if _, err := p.copy(ctx, api, "d/c", "--map", "n"); err == nil || !strings.Contains(err.Error(), "OLD=NEW") {
			t.Error(err)
		}
	}
}

// prepareSource creates the container that is copied.
func prepareSource(t *testing.T, api string, s *server.Server, c target) {
	t.Helper()
	switch api {
	case "nosql":
		createNoSQL(t, c.(*nosql), "/pk")
	case "table":
		if err := c.prepare(context.Background(), nil, false); err != nil {
			t.Fatal(err)
		}
	case "mongodb":
		definition, err := bson.Marshal(bson.D{{Key: "fields", Value: bson.A{bson.D{{Key: "type", Value: "vector"},
			{Key: "path", Value: "v"}, {Key: "numDimensions", Value: 2}, {Key: "similarity", Value: "cosine"}}}}})
		if err == nil {
			err = c.prepare(context.Background(), mongoIndexes{
				declared: []bson.D{{{Key: "key", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "name", Value: "n_1"},
					{Key: "unique", Value: true}}},
				search: []searchIndex{{Name: "near", Type: "vectorSearch", Definition: definition}}}, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// With --follow a copy goes on: what is changed while it runs and afterwards arrives, with MongoDB deletions too.
func TestCopyFollows(t *testing.T) {
	for _, api := range []string{"nosql", "mongodb"} {
		t.Run(api, func(t *testing.T) {
			p := newPair(t)
			from := reach(t, api, p.from, "FROM_KEY", "d/c")
			prepareSource(t, api, p.from, from)
			fill(t, api, from, 0, 200)
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() {
				_, err := p.copy(ctx, api, "d/c", "--follow")
				ended <- err
			}()
			fill(t, api, from, 200, 100)
			time.Sleep(100 * time.Millisecond)
			fill(t, api, from, 300, 100)
			if m, ok := from.(*mongodb); ok {
				if _, err := m.c.DeleteOne(ctx, bson.D{{Key: "n", Value: 5}}); err != nil {
					t.Fatal(err)
				}
			}
			want := items(t, from)
			var got []string
			for range 100 {
				if got = itemsIfAny(t, api, p); slices.Equal(got, want) {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d items, want %d and the same", len(got), len(want))
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A copy doesn't wait for changes of a collection that is gone.
func TestCopyEndsWithItsSource(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, from *mongodb) error{
		"dropped": func(ctx context.Context, from *mongodb) error { return from.c.Drop(ctx) },
		"renamed": func(ctx context.Context, from *mongodb) error {
			return from.c.Database().Client().Database("admin").RunCommand(ctx,
				bson.D{{Key: "renameCollection", Value: "d.c"}, {Key: "to", Value: "d.other"}}).Err()
		},
		"without a database": func(ctx context.Context, from *mongodb) error { return from.c.Database().Drop(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			from := reach(t, "mongodb", p.from, "FROM_KEY", "d/c").(*mongodb)
			fill(t, "mongodb", from, 0, 3)
			ctx, stop := context.WithTimeout(context.Background(), time.Minute)
			defer stop()
			ended := make(chan error, 1)
			go func() {
				_, err := p.copy(ctx, "mongodb", "d/c", "--follow")
				ended <- err
			}()
			for ctx.Err() == nil && len(itemsIfAny(t, "mongodb", p)) < 3 {
				time.Sleep(10 * time.Millisecond)
			}
			if err := end(ctx, from); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "dropped or renamed") {
				t.Errorf("the copy ended with %v", err)
			}
			_, err := p.copy(ctx, "mongodb", "d/c", "--follow") // goes on behind the last change
			if err == nil || !strings.Contains(err.Error(), "dropped or renamed") {
				t.Errorf("the same command again ended with %v", err)
			}
		})
	}
}

func itemsIfAny(t *testing.T, api string, p *pair) (out []string) {
	c := reach(t, api, p.to, "TO_KEY", "d/c")
	if _, err := c.define(context.Background()); err != nil {
		return nil
	}
	return items(t, c)
}

// What is refused: keys on the command line, in URLs, places of two APIs, redirects.
func TestCopyRefuses(t *testing.T) {
	p := newPair(t)
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	moved := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--from-key", fromKey}, "a key on the command line is refused"},
		{[]string{"--from", "mongodb://u:" + toKey + "@h/d/c"}, "without a user, a key and parameters"},
		{[]string{"--from", "mongodb://h:1/d/c"}, "different APIs"},
		{[]string{"--from", "ftp://h/d/c"}, "the scheme ftp is not known"},
		{[]string{"--from", "nosql+http://h/d"}, "no database and container"},
		{[]string{"--from", "nosql+" + moved.URL + "/d/c"}, "refused"},
	} {
		ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
		out, err := p.copy(ctx, "nosql", "d/c", c.args...)
		stop()
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.args, err)
		}
		if err != nil && strings.Contains(out+err.Error(), fromKey) {
			t.Errorf("a key is shown: %s %v", out, err)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the other server got %d requests", asked.Load())
	}
}

// createNoSQL creates a container.
func createNoSQL(t *testing.T, n *nosql, path string) {
	t.Helper()
	err := n.prepare(context.Background(), &azcosmos.ContainerProperties{
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{path}, Version: 2,
			Kind: azcosmos.PartitionKeyKindHash}}, false)
	if err != nil {
		t.Fatal(err)
	}
}

// A server that is busy is asked again after the time that it says.
func TestCopyWaits(t *testing.T) {
	t.Setenv("FROM_KEY", fromKey)
	t.Setenv("TO_KEY", toKey)
	const pause = 1100 * time.Millisecond
	for _, api := range []string{"nosql", "mongodb", "table", "gremlin"} {
		t.Run(api, func(t *testing.T) {
			p := &pair{t, start(t, fromKey), start(t, toKey), t.TempDir()}
			name, door, n := "d/c", api, 20
			switch api {
			case "table":
				name = "things"
			case "mongodb":
				door = server.Mongo
			case "gremlin":
				name = "d/g"
				createGraph(t, p.from, "FROM_KEY", "/_partitionKey")
				createGraph(t, p.to, "TO_KEY", "/_partitionKey")
			}
			from := reach(t, api, p.from, "FROM_KEY", name)
			if api == "gremlin" {
				v := change{element: &element{id: "a", label: "x"}}
				if bad, err := from.apply(context.Background(), []change{v}); err != nil || len(bad) > 0 {
					t.Fatal(bad, err)
				}
				n = 1
			} else {
				prepareSource(t, api, p.from, from)
				fill(t, api, from, 0, n)
			}
			for _, s := range []*server.Server{p.from, p.to} {
				rule := fmt.Sprintf(`{"fault":"429","api":%q,"count":2,"retryAfterMs":%d}`, door, pause.Milliseconds())
				if api == "mongodb" {
					rule = strings.Replace(rule, "{", `{"operation":"update",`, 1)
				}
				q, err := http.NewRequest("POST", "http://"+s.Addr(server.Admin)+"/orrery/test/faults",
					strings.NewReader(rule))
				if err != nil {
					t.Fatal(err)
				}
				key := fromKey
				if s == p.to {
					key = toKey
				}
				q.SetBasicAuth("localhost", key)
				r, err := http.DefaultClient.Do(q)
				if err != nil || r.StatusCode != http.StatusOK {
					t.Fatal(r, err)
				}
				_ = r.Body.Close()
			}
			began := time.Now()
			out, err := p.copy(context.Background(), api, name)
			took, want := time.Since(began), fmt.Sprint(n, " items")
			if err != nil || took < pause || !strings.Contains(out, want) {
				t.Errorf("after %s: %s, %v", took, out, err)
			}
			if got := items(t, reach(t, api, p.to, "TO_KEY", name)); len(got) != n {
				t.Errorf("%d items, want %d", len(got), n)
			}
		})
	}
}

// Servers with --throttle refuse what is above the throughput of a container. A copy waits as long as they say, loses
// nothing and ends equal.
func TestCopyUnderThrottle(t *testing.T) {
	t.Setenv("FROM_KEY", fromKey)
	t.Setenv("TO_KEY", toKey)
	for _, api := range []string{"nosql", "mongodb"} {
		t.Run(api, func(t *testing.T) {
			p := &pair{t, start(t, fromKey), start(t, toKey, func(c *server.Config) { c.Throttle = true }), t.TempDir()}
			from := reach(t, api, p.from, "FROM_KEY", "d/c")
			prepareSource(t, api, p.from, from)
			fill(t, api, from, 0, 300)
			if out, err := p.copy(context.Background(), api, "d/c"); err != nil || !strings.Contains(out, "300 items") {
				t.Error(out, err)
			}
			if n := p.to.Engine().Throttled(); n == 0 {
				t.Error("the target has refused nothing: the test shows nothing")
			}
			got, want := items(t, reach(t, api, p.to, "TO_KEY", "d/c")), items(t, from)
			if len(got) != 300 || !slices.Equal(got, want) {
				t.Errorf("%d items, want the %d of the source", len(got), len(want))
			}
		})
	}
}
