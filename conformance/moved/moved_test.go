package moved

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/conformance/harness"
)

// holder is what one client holds across moves.
type holder interface {
	begin()     // once, at the first place
	goOn(n int) // at each further place; n is 1 at the second one
}

// The clients of a store go on after each of its moves: between directories, to a store that processes share, from one
// of these to another one, and back. A MongoDB cursor is of the former place, and ends with CursorNotFound.
func TestClientsGoOn(t *testing.T) {
	dir := t.TempDir()
	places := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b"), "one://main", "two://main",
		filepath.Join(dir, "c")}
	s := newSite(t, shared("one"), shared("two"))
	s.serve(places[0])
	all := []holder{&itemHolder{site: s}, &tableHolder{site: s}, &graphHolder{site: s}, &cursorHolder{site: s}}
	for _, h := range all {
		h.begin()
	}
	for i, p := range places[1:] {
		s.move(places[i], p)
		for _, h := range all {
			h.goOn(i + 1)
		}
		if t.Failed() {
			t.Fatalf("after the move from %s to %s", places[i], p)
		}
	}
}

// failed returns the HTTP status of an error.
func failed(err error) int {
	var re *azcore.ResponseError
	if errors.As(err, &re) {
		return re.StatusCode
	}
	return 0
}

// itemHolder holds the etag of an item, and the pager of a query, of the NoSQL API.
type itemHolder struct {
	*site
	c     *azcosmos.ContainerClient
	pages *runtime.Pager[azcosmos.QueryItemsResponse]
	etag  azcore.ETag
	stale azcore.ETag
	rid   string
	got   int
}

const items, perPage = 40, 6

var partition = azcosmos.NewPartitionKeyString("p")

func (h *itemHolder) begin() {
	_, err := h.sql.CreateDatabase(bg, azcosmos.DatabaseProperties{ID: "db"}, nil)
	ok(h.t, err)
	db, err := h.sql.NewDatabase("db")
	ok(h.t, err)
	h.c = harness.Container(h.t, db, "items", 0, "/pk")
	for i := range items {
		r, err := h.c.CreateItem(bg, partition, fmt.Appendf(nil, `{"id":"%02d","pk":"p","n":0}`, i), nil)
		ok(h.t, err)
		h.etag = r.ETag
	}
	h.stale = h.etag
	h.replace(0)
	r, err := h.c.Read(bg, nil)
	ok(h.t, err)
	h.rid = r.ContainerProperties.ResourceID
	h.pages = h.c.NewQueryItemsPager("SELECT * FROM c ORDER BY c.id", partition,
		&azcosmos.QueryOptions{PageSizeHint: perPage})
	h.page()
}

// replace replaces the last item if it has the etag that is held.
func (h *itemHolder) replace(n int) {
	h.t.Helper()
	id := fmt.Sprintf("%02d", items-1)
	body := fmt.Appendf(nil, `{"id":%q,"pk":"p","n":%d}`, id, n)
	r, err := h.c.ReplaceItem(bg, partition, id, body, &azcosmos.ItemOptions{IfMatchEtag: &h.etag})
	ok(h.t, err)
	h.etag = r.ETag
	_, err = h.c.ReplaceItem(bg, partition, id, body, &azcosmos.ItemOptions{IfMatchEtag: &h.stale})
	if failed(err) != 412 {
		h.t.Errorf("a replace with a former etag: %v", err)
	}
}

func (h *itemHolder) page() {
	h.t.Helper()
	p, err := h.pages.NextPage(bg)
	ok(h.t, err)
	for _, it := range p.Items {
		var d struct{ ID string }
		ok(h.t, json.Unmarshal(it, &d))
		if want := fmt.Sprintf("%02d", h.got); d.ID != want {
			h.t.Errorf("the query gives item %s, want %s", d.ID, want)
		}
		h.got++
	}
}

func (h *itemHolder) goOn(n int) {
	id := fmt.Sprintf("%02d", items-1)
	r, err := h.c.ReadItem(bg, partition, id, nil)
	ok(h.t, err)
	if r.ETag != h.etag {
		h.t.Errorf("etag %s, was %s", r.ETag, h.etag)
	}
	h.replace(n)
	def, err := h.c.Read(bg, nil)
	ok(h.t, err)
	if def.ContainerProperties.ResourceID != h.rid {
		h.t.Errorf("the container has _rid %s, had %s", def.ContainerProperties.ResourceID, h.rid)
	}
	if h.page(); h.got != (n+1)*perPage {
		h.t.Errorf("%d items in %d pages", h.got, n+1)
	}
}

// tableHolder holds the etag of an entity, and the pager of a list, of the Table API.
type tableHolder struct {
	*site
	c     *aztables.Client
	pages *runtime.Pager[aztables.ListEntitiesResponse]
	etag  azcore.ETag
	got   int
}

func (h *tableHolder) begin() {
	_, err := h.tables.CreateTable(bg, "entities", nil)
	ok(h.t, err)
	h.c = h.tables.NewClient("entities")
	for i := range items {
		r, err := h.c.AddEntity(bg, fmt.Appendf(nil, `{"PartitionKey":"p%d","RowKey":"%02d"}`, i/10, i), nil)
		ok(h.t, err)
		h.etag = r.ETag
	}
	size := int32(perPage)
	h.pages = h.c.NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: &size})
	h.page()
}

func (h *tableHolder) page() {
	h.t.Helper()
	p, err := h.pages.NextPage(bg)
	ok(h.t, err)
	for _, e := range p.Entities {
		var k struct{ PartitionKey, RowKey string }
		ok(h.t, json.Unmarshal(e, &k))
		if want := fmt.Sprintf("%02d", h.got); k.RowKey != want {
			h.t.Errorf("the list gives entity %s, want %s", k.RowKey, want)
		}
		h.got++
	}
}

func (h *tableHolder) goOn(n int) {
	former := h.etag
	e := fmt.Appendf(nil, `{"PartitionKey":"p3","RowKey":"39","n":%d}`, n)
	update := func(etag azcore.ETag) (aztables.UpdateEntityResponse, error) {
		return h.c.UpdateEntity(bg, e, &aztables.UpdateEntityOptions{IfMatch: &etag,
			UpdateMode: aztables.UpdateModeReplace})
	}
	r, err := update(former)
	ok(h.t, err)
	h.etag = r.ETag
	if _, err := update(former); failed(err) != 412 {
		h.t.Errorf("an update with a former etag: %v", err)
	}
	if h.page(); h.got != (n+1)*perPage {
		h.t.Errorf("%d entities in %d pages", h.got, n+1)
	}
}

// graphHolder holds the ids of a graph's vertices and edges.
type graphHolder struct {
	*site
	vertices, edges []string
}

// ids submits a script and returns its results as texts, in their order.
func (h *graphHolder) ids(script string) (out []string) {
	h.t.Helper()
	c := h.graph("graphs", "g")
	defer c.Close()
	all, err := harness.Submit(c, script)
	ok(h.t, err)
	for _, v := range all {
		out = append(out, fmt.Sprint(v))
	}
	slices.Sort(out)
	return out
}

// grow adds a vertex and an edge to the first vertex, whose ids the server gives.
func (h *graphHolder) grow() {
	h.vertices = append(h.vertices, h.ids("g.addV('v').id()")...)
	h.edges = append(h.edges, h.ids(fmt.Sprintf("g.V('%s').addE('to').to(__.V('%s')).id()", h.vertices[0],
		h.vertices[len(h.vertices)-1]))...)
}

func (h *graphHolder) begin() {
	for range 5 { // in the graph that each server has
		h.grow()
	}
}

func (h *graphHolder) goOn(int) {
	for script, want := range map[string][]string{"g.V().id()": h.vertices, "g.E().id()": h.edges,
		"g.V('" + h.vertices[0] + "').out('to').id()": h.vertices, "g.V().outE('to').id()": h.edges} {
		want = slices.Sorted(slices.Values(want))
		if got := h.ids(script); !slices.Equal(got, want) {
			h.t.Errorf("%s: %v, want %v", script, got, want)
		}
	}
	for i, e := range h.edges {
		if got := h.ids("g.E('" + e + "').inV().id()"); !slices.Equal(got, h.vertices[i:i+1]) {
			h.t.Errorf("edge %s leads to %v, led to %s", e, got, h.vertices[i])
		}
	}
	h.grow()
}

// cursorHolder holds an open cursor of the MongoDB API, and the documents in their natural order.
type cursorHolder struct {
	*site
	c      *mongo.Collection
	cursor *mongo.Cursor
	got    int
	docs   int
}

func (h *cursorHolder) begin() {
	h.c = h.mongo.Database("shop").Collection("things")
	for range items {
		h.insert()
	}
	h.open()
}

func (h *cursorHolder) insert() {
	h.t.Helper()
	_, err := h.c.InsertOne(bg, bson.D{{Key: "_id", Value: fmt.Sprint("x", h.docs*7%100)}, {Key: "n", Value: h.docs}})
	ok(h.t, err)
	h.docs++
}

// open opens a cursor and reads its first batch.
func (h *cursorHolder) open() {
	h.t.Helper()
	var err error
	h.cursor, err = h.c.Find(bg, bson.D{}, options.Find().SetSort(bson.D{{Key: "n", Value: 1}}).SetBatchSize(perPage))
	ok(h.t, err)
	h.got = 0
	for range perPage {
		h.next()
	}
}

// next reads one document.
func (h *cursorHolder) next() {
	h.t.Helper()
	if !h.cursor.Next(bg) {
		h.t.Fatalf("the cursor ends after %d documents: %v", h.got, h.cursor.Err())
	}
	if n := h.cursor.Current.Lookup("n").Int32(); int(n) != h.got {
		h.t.Errorf("document %d is %d", h.got, n)
	}
	h.got++
}

func (h *cursorHolder) goOn(int) {
	ok(h.t, h.reconnect())
	var e mongo.CommandError
	if h.cursor.Next(bg) || !errors.As(h.cursor.Err(), &e) || e.Code != 43 {
		h.t.Errorf("the cursor of the former place: %v", h.cursor.Err())
	}
	h.insert()
	c, err := h.c.Find(bg, bson.D{})
	ok(h.t, err)
	var all []struct{ N int }
	ok(h.t, c.All(bg, &all))
	for i, d := range all {
		if d.N != i {
			h.t.Fatalf("in natural order: %v", all)
		}
	}
	if len(all) != h.docs {
		h.t.Errorf("%d documents, want %d", len(all), h.docs)
	}
	h.open()
}

// reconnect has the driver find out that its connections have ended, which it does with the first request of each.
func (h *cursorHolder) reconnect() (err error) {
	for range 10 {
		if err = h.mongo.Ping(bg, nil); err == nil {
			return nil
		}
	}
	return err
}
