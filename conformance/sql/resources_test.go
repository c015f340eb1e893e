package sql

import (
	"errors"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestDatabases(t *testing.T) {
	id := unique("db")
	r, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: id}, nil)
	check(t, err)
	if r.RequestCharge <= 0 || r.ActivityID == "" || r.DatabaseProperties.ResourceID == "" ||
		r.DatabaseProperties.SelfLink == "" {
		t.Fatalf("%+v", r)
	}
	_, err = client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: id}, nil)
	refused(t, err, 409, "Conflict")
	db, err := client.NewDatabase(id)
	check(t, err)
	read, err := db.Read(ctx, nil)
	check(t, err)
	if read.DatabaseProperties.ID != id || read.ETag == "" {
		t.Fatalf("%+v", read.DatabaseProperties)
	}
	p := client.NewQueryDatabasesPager("SELECT * FROM root r WHERE r.id = @id", &azcosmos.QueryDatabasesOptions{
		QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: id}}})
	found := 0
	for p.More() {
		page, err := p.NextPage(ctx)
		check(t, err)
		found += len(page.Databases)
	}
	if found != 1 {
		t.Fatalf("%d databases", found)
	}
	_, err = db.Delete(ctx, nil)
	check(t, err)
	_, err = db.Read(ctx, nil)
	refused(t, err, 404, "NotFound")
}

func TestDatabaseThroughput(t *testing.T) {
	id := unique("db")
	tp := azcosmos.NewManualThroughputProperties(800)
	_, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: id}, &azcosmos.CreateDatabaseOptions{
		ThroughputProperties: &tp})
	check(t, err)
	db, err := client.NewDatabase(id)
	check(t, err)
	defer func() { _, _ = db.Delete(ctx, nil) }()
	r, err := db.ReadThroughput(ctx, nil)
	check(t, err)
	if ru, ok := r.ThroughputProperties.ManualThroughput(); !ok || ru != 800 {
		t.Fatalf("%d %v", ru, ok)
	}
	_, err = db.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(1000), nil)
	check(t, err)
	r, err = db.ReadThroughput(ctx, nil)
	check(t, err)
	if ru, _ := r.ThroughputProperties.ManualThroughput(); ru != 1000 {
		t.Fatal(ru)
	}
}

func TestContainerDefinition(t *testing.T) {
	db := database(t)
	ttl := int32(-1)
	p := byKey("c", "/tenant")
	p.DefaultTimeToLive = &ttl
	p.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/email"}}}}
	p.IndexingPolicy = &azcosmos.IndexingPolicy{Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent,
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
		ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/big/*"}},
		CompositeIndexes: [][]azcosmos.CompositeIndex{
			{{Path: "/a", Order: azcosmos.CompositeIndexAscending},
				{Path: "/b", Order: azcosmos.CompositeIndexDescending}}}}
	c := container(t, db, p, 0)
	r, err := c.Read(ctx, nil)
	check(t, err)
	g := r.ContainerProperties
	if g.PartitionKeyDefinition.Paths[0] != "/tenant" || g.PartitionKeyDefinition.Version != 2 ||
		*g.DefaultTimeToLive != -1 ||
		g.UniqueKeyPolicy.UniqueKeys[0].Paths[0] != "/email" || g.ConflictResolutionPolicy == nil ||
		g.ResourceID == "" {
		t.Fatalf("%+v", g)
	}
	if ix := g.IndexingPolicy; len(ix.ExcludedPaths) != 2 || len(ix.CompositeIndexes) != 1 ||
		ix.CompositeIndexes[0][1].Order != azcosmos.CompositeIndexDescending {
		t.Fatalf("%+v", ix)
	}

	seconds := int32(10)
	g.DefaultTimeToLive = &seconds
	r, err = c.Replace(ctx, *g, nil)
	check(t, err)
	if *r.ContainerProperties.DefaultTimeToLive != 10 {
		t.Fatal(*r.ContainerProperties.DefaultTimeToLive)
	}
	g.PartitionKeyDefinition.Paths = []string{"/other"}
	_, err = c.Replace(ctx, *g, nil)
	refused(t, err, 400, "BadRequest")

	_, err = db.CreateContainer(ctx, byKey("c", "/x"), nil)
	refused(t, err, 409, "Conflict")
	_, err = c.Delete(ctx, nil)
	check(t, err)
	_, err = c.Read(ctx, nil)
	refused(t, err, 404, "NotFound")
}

func TestContainerThroughput(t *testing.T) {
	db := database(t)
	c := container(t, db, byKey("manual", "/pk"), 500)
	r, err := c.ReadThroughput(ctx, nil)
	check(t, err)
	if ru, ok := r.ThroughputProperties.ManualThroughput(); !ok || ru != 500 {
		t.Fatalf("%d %v", ru, ok)
	}
	_, err = c.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(600), nil)
	check(t, err)
	r, err = c.ReadThroughput(ctx, nil)
	check(t, err)
	if ru, _ := r.ThroughputProperties.ManualThroughput(); ru != 600 {
		t.Fatal(ru)
	}
	_, err = c.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(50), nil)
	refused(t, err, 400, "BadRequest")

	auto := azcosmos.NewAutoscaleThroughputProperties(5000)
	_, err = db.CreateContainer(ctx, byKey("auto", "/pk"), &azcosmos.CreateContainerOptions{
		ThroughputProperties: &auto})
	check(t, err)
	a, err := db.NewContainer("auto")
	check(t, err)
	r, err = a.ReadThroughput(ctx, nil)
	check(t, err)
	if ru, ok := r.ThroughputProperties.AutoscaleMaxThroughput(); !ok || ru != 5000 {
		t.Fatalf("%d %v", ru, ok)
	}
}

func TestContainerQuery(t *testing.T) {
	db := database(t)
	for _, id := range []string{"a", "b", "c"} {
		container(t, db, byKey(id, "/pk"), 0)
	}
	for q, want := range map[string]int{"SELECT * FROM c": 3, "SELECT * FROM root r WHERE r.id = 'b'": 1,
		"SELECT * FROM c WHERE c.id = 'none'": 0} {
		p, n := db.NewQueryContainersPager(q, nil), 0
		for p.More() {
			page, err := p.NextPage(ctx)
			check(t, err)
			n += len(page.Containers)
		}
		if n != want {
			t.Errorf("%s: %d containers, want %d", q, n, want)
		}
	}
}

// Provisioned throughput decides the physical partitions, which are contiguous and stable (model P4).
func TestPartitionKeyRanges(t *testing.T) {
	db := database(t)
	for ru, want := range map[int32]int{400: 1, 10000: 1, 20000: 2, 25100: 3} {
		c := container(t, db, byKey(unique("c"), "/pk"), ru)
		fr, err := c.ReadFeedRanges(ctx, nil)
		check(t, err)
		if len(fr) != want || fr[0].MinInclusive != "" || fr[len(fr)-1].MaxExclusive != "FF" {
			t.Fatalf("%d RU/s: %+v, want %d ranges", ru, fr, want)
		}
		for i := 1; i < len(fr); i++ {
			if fr[i].MinInclusive != fr[i-1].MaxExclusive {
				t.Fatalf("gap: %+v", fr)
			}
		}
	}
}

// The account document is read once for many operations.
func TestAccountDocumentIsReadOnce(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	before := requests.Load()
	for range 20 {
		_, err := c.UpsertItem(ctx, str("a"), []byte(`{"id":"1","pk":"a"}`), nil)
		check(t, err)
	}
	if n := requests.Load() - before; n > 0 {
		t.Fatalf("%d reads of the account document for 20 writes", n)
	}
}

func TestWrongKey(t *testing.T) {
	cl, err := newClient("bm90IHRoZSBrZXk=")
	check(t, err)
	_, err = cl.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "x"}, nil)
	refused(t, err, 401, "Unauthorized")
}

func TestStrongerConsistencyRefused(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	strong, eventual := azcosmos.ConsistencyLevelStrong, azcosmos.ConsistencyLevelEventual
	_, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"1","pk":"a"}`), nil)
	check(t, err)
	_, err = c.ReadItem(ctx, str("a"), "1", &azcosmos.ItemOptions{ConsistencyLevel: &strong})
	refused(t, err, 400, "BadRequest")
	_, err = c.ReadItem(ctx, str("a"), "1", &azcosmos.ItemOptions{ConsistencyLevel: &eventual})
	check(t, err)
}

// A session token ahead of all commits is 404 with sub-status 1002. One from a write is accepted.
func TestSessionTokens(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 20000)
	w, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"1","pk":"a"}`), nil)
	check(t, err)
	if w.SessionToken == nil || !strings.Contains(*w.SessionToken, ":-1#") {
		t.Fatalf("%v", w.SessionToken)
	}
	_, err = c.ReadItem(ctx, str("a"), "1", &azcosmos.ItemOptions{SessionToken: w.SessionToken})
	check(t, err)
	far := "0:-1#900000000000"
	_, err = c.ReadItem(ctx, str("a"), "1", &azcosmos.ItemOptions{SessionToken: &far})
	refused(t, err, 404, "NotFound")
	var re *azcore.ResponseError
	if errors.As(err, &re); re.RawResponse.Header.Get("x-ms-substatus") != "1002" {
		t.Fatalf("sub-status %q", re.RawResponse.Header.Get("x-ms-substatus"))
	}
}
