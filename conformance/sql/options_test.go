package sql

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func ptr[T any](v T) *T { return &v }

func TestConnectionString(t *testing.T) {
	cl, err := azcosmos.NewClientFromConnectionString("AccountEndpoint="+endpoint+"/;AccountKey="+accountKey+";", nil)
	check(t, err)
	p := cl.NewQueryDatabasesPager("SELECT * FROM root r WHERE r.id = 'none'", nil)
	r, err := p.NextPage(ctx)
	check(t, err)
	if len(r.Databases) != 0 {
		t.Errorf("%v", r.Databases)
	}
}

// Every policy of a container is returned as it was given.
func TestPoliciesComeBack(t *testing.T) {
	db := database(t)
	p := byKey("c", "/pk")
	p.DefaultTimeToLive = ptr(int32(-1))
	p.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/a", "/b/c"}}}}
	p.ConflictResolutionPolicy = &azcosmos.ConflictResolutionPolicy{Mode: azcosmos.ConflictResolutionModeLastWriteWins, ResolutionPath: "/v"}
	p.VectorEmbeddingPolicy = &azcosmos.VectorEmbeddingPolicy{
		VectorEmbeddings: []azcosmos.VectorEmbedding{
			{Path: "/vec", DataType: azcosmos.VectorDataTypeFloat32,
				DistanceFunction: azcosmos.VectorDistanceFunctionCosine, Dimensions: 3}}}
	p.FullTextPolicy = &azcosmos.FullTextPolicy{DefaultLanguage: "en-US", FullTextPaths: []azcosmos.FullTextPath{{Path: "/text", Language: "en-US"}}}
	p.IndexingPolicy = &azcosmos.IndexingPolicy{
		Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent,
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
		ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/big/*"}},
		CompositeIndexes: [][]azcosmos.CompositeIndex{
			{{Path: "/a", Order: azcosmos.CompositeIndexAscending},
				{Path: "/b", Order: azcosmos.CompositeIndexDescending}}},
		SpatialIndexes: []azcosmos.SpatialIndex{
			{Path: "/loc/*", SpatialTypes: []azcosmos.SpatialType{
				azcosmos.SpatialTypePoint, azcosmos.SpatialTypePolygon}}},
		VectorIndexes:   []azcosmos.VectorIndex{{Path: "/vec", Type: azcosmos.VectorIndexTypeFlat}},
		FullTextIndexes: []azcosmos.FullTextIndex{{Path: "/text"}},
	}
	c := container(t, db, p, 0)
	r, err := c.Read(ctx, nil)
	check(t, err)
	got := r.ContainerProperties
	for name, same := range map[string]bool{
		"ttl":        got.DefaultTimeToLive != nil && *got.DefaultTimeToLive == -1,
		"unique":     slices.Equal(got.UniqueKeyPolicy.UniqueKeys[0].Paths, p.UniqueKeyPolicy.UniqueKeys[0].Paths),
		"conflicts":  got.ConflictResolutionPolicy.ResolutionPath == "/v",
		"vectors":    got.VectorEmbeddingPolicy.VectorEmbeddings[0] == p.VectorEmbeddingPolicy.VectorEmbeddings[0],
		"full text":  got.FullTextPolicy.FullTextPaths[0] == p.FullTextPolicy.FullTextPaths[0],
		"composites": slices.Equal(got.IndexingPolicy.CompositeIndexes[0], p.IndexingPolicy.CompositeIndexes[0]),
		"spatial":    got.IndexingPolicy.SpatialIndexes[0].Path == "/loc/*",
		"vector ix":  got.IndexingPolicy.VectorIndexes[0] == p.IndexingPolicy.VectorIndexes[0],
		"text ix":    got.IndexingPolicy.FullTextIndexes[0] == p.IndexingPolicy.FullTextIndexes[0],
	} {
		if !same {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// This client can't merge, so aggregates, groups and distinct rows over three physical partitions must be complete.
func TestGroupsOverPartitions(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 25100)
	for i := range 90 {
		_, err := c.CreateItem(ctx, str(fmt.Sprint("p", i%9)),
			text(t, item{"id": fmt.Sprint(i), "pk": fmt.Sprint("p", i%9), "n": i, "g": i % 4}), nil)
		check(t, err)
	}
	for q, want := range map[string][]string{
		"SELECT VALUE SUM(c.n) FROM c":                  {"4005"},
		"SELECT VALUE AVG(c.n) FROM c WHERE c.n < 3":    {"1"},
		"SELECT VALUE MIN(c.pk) FROM c":                 {`"p0"`},
		"SELECT COUNT(1) AS n, MAX(c.n) AS top1 FROM c": {`{"n":90,"top1":89}`},
		"SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g": {
			`{"g":0,"n":23}`, `{"g":1,"n":23}`, `{"g":2,"n":22}`, `{"g":3,"n":22}`},
		"SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g DESC":                   {"3", "2", "1", "0"},
		"SELECT VALUE c.n FROM c ORDER BY c.g DESC, c.n DESC OFFSET 1 LIMIT 2": {"83", "79"},
		"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.pk FROM c)":       {"9"},
	} {
		rows, _ := query(t, c, q, all, nil)
		if !strings.Contains(q, "ORDER") {
			slices.Sort(rows)
		}
		if !slices.Equal(rows, want) {
			t.Errorf("%s: %v, want %v", q, rows, want)
		}
	}
}

func TestVectorSearch(t *testing.T) {
	p := byKey("c", "/pk")
	p.VectorEmbeddingPolicy = &azcosmos.VectorEmbeddingPolicy{
		VectorEmbeddings: []azcosmos.VectorEmbedding{
			{Path: "/v", DataType: azcosmos.VectorDataTypeFloat32,
				DistanceFunction: azcosmos.VectorDistanceFunctionCosine, Dimensions: 2}}}
	c := container(t, database(t), p, 20000)
	for i := range 20 {
		pk := fmt.Sprint("p", i%5)
		_, err := c.CreateItem(ctx, str(pk),
			text(
				t, item{"id": fmt.Sprint(i), "pk": pk,
					"v": []float64{math.Cos(float64(i) / 10), math.Sin(float64(i) / 10)}}), nil)
		check(t, err)
	}
	rows, _ := query(t, c, "SELECT TOP 3 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @p)", all,
		&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{
			{Name: "@p", Value: []float64{math.Cos(1.02), math.Sin(1.02)}}}})
	if !slices.Equal(rows, []string{`"10"`, `"11"`, `"9"`}) {
		t.Error(rows)
	}
}

// feed reads a change feed to its end and returns the ids and the last continuation.
func feed(t *testing.T, c *azcosmos.ContainerClient, o azcosmos.ChangeFeedOptions) (ids []string, next string) {
	t.Helper()
	o.MaxItemCount = 7
	for range 200 {
		r, err := c.ReadChangeFeed(ctx, &o)
		check(t, err)
		next = r.ContinuationToken
		if r.Count == 0 {
			slices.Sort(ids)
			return ids, next
		}
		for _, it := range r.Items {
			ids = append(ids, object(t, it)["id"].(string))
		}
		o.Continuation, o.FeedRange = &next, nil
	}
	t.Fatal("the feed does not end")
	return nil, ""
}

func TestChangeFeedOfKeysAndTimes(t *testing.T) {
	c := numbered(t, 30)
	pk := str("p2")
	whole := azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}
	if ids, _ := feed(t, c, azcosmos.ChangeFeedOptions{FeedRange: &whole}); len(ids) != 30 {
		t.Errorf("%d items in the whole feed", len(ids))
	}
	if ids, _ := feed(t, c, azcosmos.ChangeFeedOptions{FeedRange: &whole, PartitionKey: &pk}); !slices.Equal(
		ids, []string{"i14", "i2", "i20", "i26", "i8"}) {
		t.Errorf("of one key: %v", ids)
	}
	time.Sleep(1100 * time.Millisecond)
	at := time.Now()
	time.Sleep(1100 * time.Millisecond)
	_, err := c.UpsertItem(ctx, str("p3"), []byte(`{"id":"i3","pk":"p3","n":-3}`), nil)
	check(t, err)
	if ids, _ := feed(t, c, azcosmos.ChangeFeedOptions{FeedRange: &whole, StartFrom: &at}); !slices.Equal(
		ids, []string{"i3"}) {
		t.Errorf("since a time: %v", ids)
	}
}

// A continuation of one container is refused by another.
func TestChangeFeedOfAnotherContainer(t *testing.T) {
	a, b := numbered(t, 5), numbered(t, 5)
	_, token := feed(t, a, azcosmos.ChangeFeedOptions{FeedRange: &azcosmos.FeedRange{MaxExclusive: "FF"}})
	if _, err := b.ReadChangeFeed(ctx, &azcosmos.ChangeFeedOptions{Continuation: &token}); err == nil {
		t.Error("a foreign continuation was taken")
	}
}

func TestItemOptions(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	body := []byte(`{"id":"1","pk":"a"}`)
	for _, o := range []*azcosmos.ItemOptions{
		{IndexingDirective: azcosmos.IndexingDirectiveExclude.ToPtr()},
		{IndexingDirective: azcosmos.IndexingDirectiveInclude.ToPtr()},
		{IndexingDirective: azcosmos.IndexingDirectiveDefault.ToPtr()},
		{PriorityLevel: ptr(azcosmos.PriorityLevelLow)}, {ThroughputBucket: ptr(int32(1))},
		{DedicatedGatewayRequestOptions: &azcosmos.DedicatedGatewayRequestOptions{
			MaxIntegratedCacheStaleness: ptr(time.Minute)}},
	} {
		_, err := c.UpsertItem(ctx, str("a"), body, o)
		check(t, err)
		_, err = c.ReadItem(ctx, str("a"), "1", o)
		check(t, err)
	}
	// A write with a trigger that can't run is refused, because it must not be done without the trigger.
	_, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"2","pk":"a"}`),
		&azcosmos.ItemOptions{PreTriggers: []string{"t"}})
	refused(t, err, 400, "BadRequest")
	_, err = c.ReadItem(ctx, str("a"), "2", nil)
	refused(t, err, 404, "NotFound")
}

func TestRefusedPatches(t *testing.T) {
	c := container(t, database(t), byKey("c", "/pk"), 0)
	made, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"1","pk":"a","n":1,"s":"x","list":[1]}`), nil)
	check(t, err)
	for name, add := range map[string]func(*azcosmos.PatchOperations){
		"absent":        func(p *azcosmos.PatchOperations) { p.AppendRemove("/none") },
		"replace":       func(p *azcosmos.PatchOperations) { p.AppendReplace("/none", 1) },
		"id":            func(p *azcosmos.PatchOperations) { p.AppendSet("/id", "2") },
		"partition key": func(p *azcosmos.PatchOperations) { p.AppendSet("/pk", "b") },
		"no number":     func(p *azcosmos.PatchOperations) { p.AppendIncrement("/s", 1) },
		"no index":      func(p *azcosmos.PatchOperations) { p.AppendAdd("/list/9", 1) },
		"bad path":      func(p *azcosmos.PatchOperations) { p.AppendSet("n", 1) },
		"none":          func(p *azcosmos.PatchOperations) {},
		"eleven": func(p *azcosmos.PatchOperations) {
			for range 11 {
				p.AppendIncrement("/n", 1)
			}
		},
		"the second": func(p *azcosmos.PatchOperations) { p.AppendSet("/n", 9); p.AppendRemove("/none") },
	} {
		p := azcosmos.PatchOperations{}
		add(&p)
		_, err := c.PatchItem(ctx, str("a"), "1", p, nil)
		if err == nil {
			t.Errorf("%s: it was done", name)
			continue
		}
		refused(t, err, 400, "BadRequest")
	}
	r, err := c.ReadItem(ctx, str("a"), "1", nil)
	check(t, err)
	if r.ETag != made.ETag {
		t.Error("a refused patch changed the item")
	}
}

func TestTimeToLive(t *testing.T) {
	p := byKey("c", "/pk")
	p.DefaultTimeToLive = ptr(int32(1))
	c := container(t, database(t), p, 0)
	for id, more := range map[string]string{"goes": "", "stays": `,"ttl":-1`, "later": `,"ttl":1000`} {
		_, err := c.CreateItem(ctx, str("a"), []byte(`{"id":"`+id+`","pk":"a"`+more+`}`), nil)
		check(t, err)
	}
	time.Sleep(2100 * time.Millisecond)
	rows, _ := query(t, c, "SELECT VALUE c.id FROM c ORDER BY c.id", str("a"), nil)
	if !slices.Equal(rows, []string{`"later"`, `"stays"`}) {
		t.Error(rows)
	}
	_, err := c.ReadItem(ctx, str("a"), "goes", nil)
	refused(t, err, 404, "NotFound")
	_, err = c.CreateItem(ctx, str("a"), []byte(`{"id":"goes","pk":"a"}`), nil)
	check(t, err)
}

// A prefix of a hierarchical key covers many logical partitions. Order, pages and limits work over all of them.
func TestHierarchicalPrefixes(t *testing.T) {
	c := container(t, database(t), byKey("c", "/tenant", "/user"), 25100)
	for i := range 60 {
		k := str(fmt.Sprint("t", i%2)).AppendNumber(float64(i % 6))
		_, err := c.CreateItem(
			ctx, k, text(t, item{"id": fmt.Sprint(i), "tenant": fmt.Sprint("t", i%2), "user": i % 6, "n": i}), nil)
		check(t, err)
	}
	rows, pages := query(t, c, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", str("t1"),
		&azcosmos.QueryOptions{PageSizeHint: 7})
	want := []int{}
	for i := 59; i > 0; i -= 2 {
		want = append(want, i)
	}
	if !slices.Equal(ints(t, rows), want) || pages < 5 {
		t.Errorf("%v in %d pages", rows, pages)
	}
	if rows, _ = query(t, c, "SELECT VALUE COUNT(1) FROM c", str("t0"), nil); !slices.Equal(rows, []string{"30"}) {
		t.Error(rows)
	}
	r, err := c.ReadManyItems(ctx, []azcosmos.ItemIdentity{
		{ID: "1", PartitionKey: str("t1").AppendNumber(1)}, {ID: "2", PartitionKey: str("t0").AppendNumber(2)},
		{ID: "2", PartitionKey: str("t0").AppendNumber(4)}}, nil)
	check(t, err)
	if len(r.Items) != 2 {
		t.Errorf("%d items", len(r.Items))
	}
}

// More identities than one query accepts: the client sends several queries.
func TestReadManyThousands(t *testing.T) {
	c := container(t, database(t), byKey("c", "/id"), 20000)
	var ids []azcosmos.ItemIdentity
	for i := range 2500 {
		id := fmt.Sprint("i", i)
		ids = append(ids, azcosmos.ItemIdentity{ID: id, PartitionKey: str(id)})
		if i%10 == 0 {
			_, err := c.CreateItem(ctx, str(id), []byte(`{"id":"`+id+`"}`), nil)
			check(t, err)
		}
	}
	r, err := c.ReadManyItems(ctx, ids, nil)
	check(t, err)
	if len(r.Items) != 250 {
		t.Errorf("%d of 250 items", len(r.Items))
	}
}

func TestAutoscaleChanges(t *testing.T) {
	db := database(t)
	auto := azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(4000, 10)
	_, err := db.CreateContainer(ctx, byKey("c", "/pk"), &azcosmos.CreateContainerOptions{ThroughputProperties: &auto})
	check(t, err)
	c, err := db.NewContainer("c")
	check(t, err)
	r, err := c.ReadThroughput(ctx, nil)
	check(t, err)
	if inc, ok := r.ThroughputProperties.AutoscaleIncrement(); !ok || inc != 10 {
		t.Errorf("increment %d %v", inc, ok)
	}
	if r.MinThroughput == nil || *r.MinThroughput < 400 || r.IsReplacePending {
		t.Errorf("least %v, pending %v", r.MinThroughput, r.IsReplacePending)
	}
	_, err = c.ReplaceThroughput(ctx, azcosmos.NewAutoscaleThroughputProperties(9000), nil)
	check(t, err)
	r, err = c.ReadThroughput(ctx, nil)
	check(t, err)
	if ru, ok := r.ThroughputProperties.AutoscaleMaxThroughput(); !ok || ru != 9000 {
		t.Errorf("%d %v", ru, ok)
	}
	_, err = c.ReplaceThroughput(ctx, azcosmos.NewAutoscaleThroughputProperties(50), nil)
	refused(t, err, 400, "BadRequest")
}
