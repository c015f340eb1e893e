// Package hostile sends malformed frames, bodies, headers and texts, as no regular client does. Each must get an error
// of its protocol or the end of its connection. It must not cause a 5xx of the HTTP APIs, a panic, a hang or a partly
// applied write, and other clients must still be served.
package hostile

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/conformance/harness"
	"github.com/orrerydb/orrery/internal/testlog"
)

// answerTime is the longest time for the reply to a hostile request.
const answerTime = 8 * time.Second

// target is a server under attack. It has the container `shop/items` (key /pk) with the item "a", and a table `people`.
type target struct {
	*harness.Server
	log *testlog.Lines
	sql *azcosmos.ContainerClient
}

func start(t *testing.T, auth bool) *target {
	t.Helper()
	return startWith(t, auth, func(*server.Config) {})
}

// startWith is start with a changed configuration.
func startWith(t *testing.T, auth bool, change func(*server.Config)) *target {
	t.Helper()
	g := &target{log: &testlog.Lines{}}
	cfg := server.Ephemeral()
	cfg.Auth = auth
	cfg.GremlinSources = map[string]string{"air": "graphs/air"}
	cfg.Logger = slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	change(&cfg)
	g.Server = harness.StartWith(t, cfg)
	t.Cleanup(g.checkLog(t))
	bg := context.Background()
	if _, err := g.SQL.CreateDatabase(bg, azcosmos.DatabaseProperties{ID: "shop"}, nil); err != nil {
		t.Fatal(err)
	}
	db, err := g.SQL.NewDatabase("shop")
	if err != nil {
		t.Fatal(err)
	}
	g.sql = harness.Container(t, db, "items", 0, "/pk")
	if _, err := g.sql.CreateItem(bg, azcosmos.NewPartitionKeyString("p"), []byte(`{"id":"a","pk":"p","n":1,`+
		`"tags":["x"]}`), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Tables.CreateTable(bg, "people", nil); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *target) checkLog(t *testing.T) func() {
	return func() {
		for line := range strings.Lines(g.log.String()) {
			if low := strings.ToLower(line); strings.Contains(low, "panic") || strings.Contains(low, "level=error") {
				t.Errorf("the server logged: %.2000s", line)
			}
		}
	}
}

// serves fails the test unless every API answers and the item is unchanged.
func (g *target) serves(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	res, err := g.sql.ReadItem(ctx, azcosmos.NewPartitionKeyString("p"), "a", nil)
	if err != nil || !bytes.Contains(res.Value, []byte(`"n":1`)) {
		t.Fatalf("the item: %s %v", res.Value, err)
	}
	var d bson.M
	if err := g.Mongo.Database("shop").Collection("items").FindOne(ctx, bson.M{"_id": "a"}).Decode(&d); err != nil {
		t.Fatalf("mongo: %v", err)
	}
	if _, err := g.Tables.NewListTablesPager(nil).NextPage(ctx); err != nil {
		t.Fatalf("tables: %v", err)
	}
	c := g.Gremlin(t, "graphs", "g")
	if _, err := harness.Submit(c, "g.inject(1)"); err != nil {
		t.Fatalf("gremlin: %v", err)
	}
}

// memory returns the bytes of the heap after a collection.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// dial opens a raw connection to a door. It has a deadline, and is closed at the end of the test.
func (g *target) dial(t *testing.T, door string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", g.Addr(door), answerTime)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(answerTime))
	return c
}

// exchange writes raw bytes to a door and returns the reply until the server closes the connection or sends nothing for
// wait.
func (g *target) exchange(t *testing.T, door string, raw []byte, wait time.Duration) []byte {
	t.Helper()
	c := g.dial(t, door)
	go func() { _, _ = c.Write(raw) }()
	_ = c.SetReadDeadline(time.Now().Add(wait))
	b, _ := io.ReadAll(c)
	_ = c.Close()
	return b
}

// do sends one HTTP request and returns status and body. If the connection ends, the status is 0.
func (g *target) do(t *testing.T, door, method, target, body string, headers ...string) (int, string) {
	t.Helper()
	c := g.dial(t, door)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n", method, target,
		g.Addr(door), len(body))
	for i := 0; i+1 < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	b.WriteString("\r\n")
	b.WriteString(body)
	go func() { _, _ = c.Write(b.Bytes()) }()
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Errorf("%s %s %s %.80q: no answer within %v", door, method, short(target), body, answerTime)
		}
		return 0, ""
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Errorf("%s %s %s %.80q: no end of the answer within %v", door, method, short(target), body, answerTime)
		}
	}
	return res.StatusCode, string(out)
}

func short(s string) string {
	if len(s) > 120 {
		return s[:120] + "..."
	}
	return s
}
