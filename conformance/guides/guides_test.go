// Package guides runs the examples in README.md and in the guides of docs unchanged, with official clients.
//
// The info string of a fenced block says what the block is. The rows or results that it must give are in the "json
// result" block after it.
//
//	json container=c pk=/a[,/b]   documents, one a line, created in the container (created if absent)
//	sql container=c [key=k]       a query, of one partition key value or of all
//	gremlin container=c           a script on the container as a graph
//	js                            lines of mongosh: insertOne or find with JSON as arguments
//	odata                         a GET of the Table API
//	javascript container=c program=sprocs|triggers|udfs [trigger=pre]   a program, stored as the name of its function
//	execute container=c key=k procedure=p   runs a procedure, an argument a line; a failure gives its status
//	create container=c key=k trigger=t      creates documents, one a line, with a pre-trigger; gives the statuses
//	pkranges container=c pk=/a throughput=n   the number of physical partitions of a new container
//	go example=e [container=c]              the code of the example e (examples_test.go), which runs and prints lines
//
// Programs that are saved as a file (file=NAME) and commands (sh) are run by conformance/clients/docs.
//
// A container may have throughput=n where it is created. A line after a block, or after its result, that begins with a
// number of request units ("2.34 RU") is the charge of the block. In the guides of charged each block has one.
package guides

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// block is a fenced block of a guide.
type block struct {
	line int
	kind string
	args map[string]string
	text string
	ru   string // the charge that the guide names, "" = none
}

// charged has the guides in which each block has a charge.
var charged = map[string]bool{"modelling": true, "partitioning": true}

var chargeLine = regexp.MustCompile(`^([0-9]+\.[0-9]+) RU\b`)

func blocks(t *testing.T, file string) (out []block) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in *block
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		switch {
		case in == nil && strings.HasPrefix(line, "```"):
			words := strings.Fields(strings.TrimPrefix(line, "```"))
			in = &block{line: n, kind: words[0], args: map[string]string{}}
			for _, w := range words[1:] {
				k, v, _ := strings.Cut(w, "=")
				in.args[k] = v
			}
		case in != nil && line == "```":
			out = append(out, *in)
			in = nil
		case in != nil:
			in.text += line + "\n"
		case chargeLine.MatchString(line) && len(out) > 0:
			out[len(out)-1].ru = chargeLine.FindStringSubmatch(line)[1]
		}
	}
	return out
}

func TestGuides(t *testing.T) {
	strict := server.Ephemeral()
	srv := start(t, strict)
	ran := run(t, srv, "shop", blocks(t, "../../README.md"))
	if ran != 4 {
		t.Errorf("README.md: %d examples were found", ran)
	}
	tolerant := server.Ephemeral()
	tolerant.Strict = nil // as in the guides: the Go client doesn't merge partitions
	srv = start(t, tolerant)
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		bs := blocks(t, f)
		if len(bs) == 0 {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(f), ".md")
		t.Run(name, func(t *testing.T) { ran += run(t, srv, name, bs) })
	}
	if ran < 15 {
		t.Errorf("only %d examples were found", ran)
	}
}

// run runs the blocks of one guide in a new database.
func run(t *testing.T, srv *server.Server, name string, bs []block) (n int) {
	g := guide{t: t, srv: srv, name: name}
	g.client, g.db = database(t, srv, name)
	for i, b := range bs {
		rows, ran := g.run(b)
		if !ran {
			continue
		}
		if rows != nil {
			n++
			if i+1 == len(bs) || bs[i+1].kind != "json" || bs[i+1].args["container"] != "" {
				t.Fatalf("line %d: no result behind the example", b.line)
			}
			var want []any
			if err := json.Unmarshal([]byte(bs[i+1].text), &want); err != nil {
				t.Fatalf("line %d: %v", bs[i+1].line, err)
			}
			if !reflect.DeepEqual(rows, want) {
				t.Errorf("line %d: %s gives %v, the guide says %v", b.line, b.text, rows, want)
			}
			b.ru = bs[i+1].ru
		}
		if got := strconv.FormatFloat(math.Round(g.charge*1000)/1000, 'f', -1, 64); b.ru == "" && charged[name] &&
			g.charge > 0 || b.ru != "" && !sameNumber(got, b.ru) {
			t.Errorf("line %d: %s costs %s RU, the guide says %q", b.line, b.kind, got, b.ru)
		}
	}
	return n
}

func sameNumber(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// run runs a block. rows are nil for one that has no result. ran is false for a block that isn't an example. g.charge
// is what it costs, 0 where that isn't known.
func (g *guide) run(b block) (rows []any, ran bool) {
	g.charge = 0
	if b.args["file"] != "" {
		return nil, false
	}
	switch b.kind {
	case "json":
		if b.args["container"] == "" {
			return nil, false // a result
		}
		g.insert(b)
		return nil, true
	case "javascript":
		g.program(b)
		return nil, true
	case "execute":
		rows = g.execute(b)
	case "create":
		rows = g.create(b)
	case "sql":
		rows = g.query(b)
	case "gremlin":
		rows = g.traverse(b)
	case "js":
		rows = g.shell(b)
	case "odata":
		rows = g.entities(b)
	case "go":
		rows = g.example(b)
	case "pkranges":
		if want, _ := strconv.Atoi(strings.TrimSpace(b.text)); g.partitions(b) != want {
			g.t.Errorf("line %d: not %d partitions", b.line, want)
		}
		return nil, true
	default:
		return nil, false
	}
	if rows == nil {
		rows = []any{}
	}
	return rows, true
}

type guide struct {
	t    *testing.T
	srv  *server.Server
	name string

	client *azcosmos.Client
	db     *azcosmos.DatabaseClient
	charge float64 // of the block that runs, in request units
}

func (g *guide) container(b block) *azcosmos.ContainerClient {
	g.t.Helper()
	id := b.args["container"]
	if pk := b.args["pk"]; pk != "" {
		def := azcosmos.PartitionKeyDefinition{Paths: strings.Split(pk, ","), Version: 2}
		if len(def.Paths) > 1 {
			def.Kind = azcosmos.PartitionKeyKindMultiHash
		}
		o := &azcosmos.CreateContainerOptions{}
		if ru, err := strconv.Atoi(b.args["throughput"]); err == nil {
			tp := azcosmos.NewManualThroughputProperties(int32(ru))
			o.ThroughputProperties = &tp
		}
		if _, err := g.db.CreateContainer(ctx, azcosmos.ContainerProperties{ID: id, PartitionKeyDefinition: def},
			o); err != nil {
			g.t.Fatalf("line %d: %v", b.line, err)
		}
	}
	c, err := g.db.NewContainer(id)
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

var ctx = context.Background()

func (g *guide) insert(b block) {
	c := g.container(b)
	for _, line := range strings.Split(strings.TrimSpace(b.text), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			g.t.Fatalf("line %d: %v", b.line, err)
		}
		pk := azcosmos.NewPartitionKey()
		for _, p := range strings.Split(b.args["pk"], ",") {
			pk = pk.AppendString(m[p[1:]].(string))
		}
		r, err := c.CreateItem(ctx, pk, []byte(line), nil)
		if err != nil {
			g.t.Fatalf("line %d: %v", b.line, err)
		}
		g.charge += float64(r.RequestCharge)
	}
}

func (g *guide) query(b block) (rows []any) {
	pk := azcosmos.NewPartitionKey()
	if key := b.args["key"]; key != "" {
		pk = azcosmos.NewPartitionKeyString(key)
	}
	pager := g.container(b).NewQueryItemsPager(strings.TrimSpace(b.text), pk, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			g.t.Fatalf("line %d: %v", b.line, err)
		}
		g.charge += float64(page.RequestCharge)
		for _, it := range page.Items {
			var v any
			if err := json.Unmarshal(it, &v); err != nil {
				g.t.Fatal(err)
			}
			rows = append(rows, v)
		}
	}
	return rows
}

func (g *guide) partitions(b block) int {
	g.container(b)
	c, err := g.srv.Engine().Container(g.name, b.args["container"])
	if err != nil {
		g.t.Fatal(err)
	}
	return len(c.Known())
}

func (g *guide) traverse(b block) (rows []any) {
	client, err := gremlingo.NewClient(fmt.Sprintf("ws://%s/gremlin", g.srv.Addr(server.Gremlin)),
		func(s *gremlingo.ClientSettings) {
			s.AuthInfo = gremlingo.BasicAuthInfo(fmt.Sprintf("/dbs/%s/colls/%s", g.name, b.args["container"]),
				server.WellKnownKey)
			s.LogVerbosity = gremlingo.Off
		})
	if err != nil {
		g.t.Fatal(err)
	}
	defer client.Close()
	rs, err := client.Submit(strings.TrimSpace(b.text))
	if err != nil {
		g.t.Fatalf("line %d: %v", b.line, err)
	}
	all, err := rs.All()
	if err != nil {
		g.t.Fatalf("line %d: %v", b.line, err)
	}
	for _, r := range all {
		rows = append(rows, r.GetInterface())
	}
	return rows
}

var shellLine = regexp.MustCompile(`^db\.(\w+)\.(insertOne|find)\((.*)\)$`)

// shell runs lines of mongosh and returns the documents that its finds return.
func (g *guide) shell(b block) (rows []any) {
	uri := fmt.Sprintf("mongodb://%s@%s/?directConnection=true",
		url.UserPassword(g.srv.Account(), g.srv.Key()), g.srv.Addr(server.Mongo))
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(ctx) }()
	for line := range strings.Lines(b.text) {
		m := shellLine.FindStringSubmatch(strings.TrimSpace(line))
		var args []map[string]any
		if m == nil || json.Unmarshal([]byte("["+m[3]+"]"), &args) != nil || len(args) == 0 {
			g.t.Fatalf("line %d: can't read %s", b.line, line)
		}
		coll := client.Database(g.name).Collection(m[1])
		if m[2] == "insertOne" {
			_, err = coll.InsertOne(ctx, args[0])
		} else {
			o := options.Find()
			if len(args) > 1 {
				o.SetProjection(args[1])
			}
			var found []map[string]any
			var cur *mongo.Cursor
			if cur, err = coll.Find(ctx, args[0], o); err == nil {
				err = cur.All(ctx, &found)
			}
			for _, d := range found {
				rows = append(rows, d)
			}
		}
		if err != nil {
			g.t.Fatalf("line %d: %v", b.line, err)
		}
	}
	return rows
}

var tableGet = regexp.MustCompile(`^GET /([\w.]+)\(\)\?\$filter=(.*)&\$select=(.*)$`)

// entities queries a table and returns the selected properties.
func (g *guide) entities(b block) (rows []any) {
	m := tableGet.FindStringSubmatch(strings.TrimSpace(b.text))
	if m == nil {
		g.t.Fatalf("line %d: can't read %s", b.line, b.text)
	}
	cred, err := aztables.NewSharedKeyCredential(g.srv.Account(), g.srv.Key())
	if err != nil {
		g.t.Fatal(err)
	}
	tables, err := aztables.NewServiceClientWithSharedKey("http://"+g.srv.Addr(server.Table), cred, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	pager := tables.NewClient(m[1]).NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &m[2], Select: &m[3]})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			g.t.Fatalf("line %d: %v", b.line, err)
		}
		for _, e := range page.Entities {
			var all, row map[string]any
			if err := json.Unmarshal(e, &all); err != nil {
				g.t.Fatal(err)
			}
			row = map[string]any{}
			for _, name := range strings.Split(m[3], ",") {
				row[name] = all[name]
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func start(t *testing.T, cfg server.Config) *server.Server {
	srv, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Stop(context.Background()) })
	return srv
}

func database(t *testing.T, srv *server.Server, name string) (*azcosmos.Client, *azcosmos.DatabaseClient) {
	cred, err := azcosmos.NewKeyCredential(server.WellKnownKey)
	if err != nil {
		t.Fatal(err)
	}
	o := &azcosmos.ClientOptions{}
	o.Retry = policy.RetryOptions{MaxRetries: -1}
	client, err := azcosmos.NewClientWithKey("http://"+srv.Addr(server.NoSQL), cred, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: name}, nil); err != nil {
		t.Fatal(err)
	}
	db, err := client.NewDatabase(name)
	if err != nil {
		t.Fatal(err)
	}
	return client, db
}
