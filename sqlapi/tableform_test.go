package sqlapi

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// withTable creates the table TablesDB/people and writes the given documents in their stored form, like the Table API
// and MongoDB do.
func withTable(t *testing.T, docs ...doc.Doc) *api {
	t.Helper()
	a := newAPI(t)
	ctx := context.Background()
	if _, err := a.srv.core.CreateDatabase(ctx, core.DatabaseSpec{ID: "TablesDB"}); err != nil {
		t.Fatal(err)
	}
	ct, err := a.srv.core.CreateContainer(ctx, "TablesDB", core.ContainerSpec{ID: "people", PartitionKey: core.PartitionKeyDef{Paths: []string{"/$pk"}}, Origin: "table"})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		pk, id, err := ct.KeyOf(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ct.Write(ctx, core.Write{Kind: core.Create, PK: pk, ID: id, Doc: d}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

const people = "/dbs/TablesDB/colls/people/docs"

// entity is a stored entity with one property of each Edm type.
func entity(id string, n int64) doc.Doc {
	var b doc.Builder
	b.BeginObject()
	b.Field("$pk", value.StringOf("Smith"))
	b.Field("_id", value.StringOf(id))
	b.Field("Text", value.StringOf(fmt.Sprint("t", n)))
	b.Field("Yes", value.BoolOf(n%2 == 0))
	b.Field("Small", value.Int32Of(int32(n)))
	b.Field("Large", value.Int64Of(n<<40))
	b.Field("Half", value.DoubleOf(float64(n)+0.5))
	b.Field("When", value.DateOf(1_709_528_767_123+n, uint16(4567*(n&1))))
	b.Field("Guid", value.UUIDOf(append(make([]byte, 15), byte(n))))
	b.Field("Bytes", value.BinaryOf(0, []byte{byte(n), 255}))
	b.Field("Null", value.NullValue())
	b.Field("Oid", value.ObjectIDOf(append(make([]byte, 11), byte(n))))
	b.End()
	return b.Doc()
}

const shownEntity = `{"$pk":"Smith","$id":"Ben","id":"Ben","Text":{"$t":2,"$v":"t3"},"Yes":{"$t":8,"$v":false},` +
	`"Small":{"$t":16,"$v":3},` +
	`"Large":{"$t":18,"$v":"00000003298534883328"},"Half":{"$t":1,"$v":3.5},"When":{"$t":9,"$v":"00638451255671264567"},` +
	`"Guid":{"$t":0,"$v":"00000000-0000-0000-0000-000000000003"},"Bytes":{"$t":5,"$v":"A/8="},"Null":null,"Oid":{"$oid":"000000000000000000000003"}`

func TestTableForm(t *testing.T) {
	d := entity("Ben", 3)
	form := tableForm(d)
	if got := "{" + string(doc.AppendJSONFields(nil, form, doc.NoSQL)); got != shownEntity {
		t.Errorf("the form is\n%s\nwant\n%s", got, shownEntity)
	}
	back, err := tableStored(form)
	if err != nil || !doc.Equal(back, d) {
		t.Errorf("%v: %s", err, doc.AppendJSON(nil, doc.Value(back)))
	}
	for _, n := range []int64{0, 1, -1, 1<<63 - 1, -1 << 63} {
		p := padded(n)
		if got, ok := readPadded(p.Str()); len(p.Bytes()) != 20 || !ok || got != n {
			t.Errorf("%d is %s, which reads as %d %v", n, p.Str(), got, ok)
		}
	}
}

// A document that isn't in the service's form is shown as it is stored.
func TestTableFormForeign(t *testing.T) {
	for _, v := range []string{`{"$t":2}`, `{"$t":2,"$v":3}`, `{"$t":99,"$v":3}`, `{"$t":"2","$v":"x"}`,
		`{"$t":9,"$v":"yesterday"}`, `{"$t":18,"$v":"1"}`,
		`{"$t":0,"$v":"x"}`, `{"$t":5,"$v":"?"}`, `{"$t":1,"$v":"1"}`, `{"$t":16,"$v":99999999999}`, `{"$v":1,"$t":2}`,
		`{"$t":2,"$v":"x","z":1}`, `{"$t":9,"$v":"99999999999999999999"}`, `[1]`, `null`} {
		d, err := doc.FromJSON(nil, []byte(`{"id":"1","$pk":"a","x":`+v+`}`), doc.JSONOptions{Names: doc.NoSQL})
		if err != nil {
			t.Fatal(err)
		}
		back, err := tableStored(d)
		if err != nil || !doc.Equal(back, d) {
			t.Errorf("%s: %v %s", v, err, doc.AppendJSON(nil, doc.Value(back)))
		}
	}
}

func TestTableItems(t *testing.T) {
	a := withTable(t, entity("Ben", 3))
	pk := key("Smith")
	a.do("GET", people+"/Ben", "", pk).is(200).has(shownEntity)
	a.do("GET", people, "").is(200).has(shownEntity)
	a.do("POST", people, `{"$pk":"Smith","$id":"Ann","id":"Ann","Age":{"$t":16,"$v":5},"Plain":true}`, pk).is(201).has(
		`"Age":{"$t":16,"$v":5},"Plain":{"$t":8,"$v":true}`)
	a.do("POST", people, `{"$pk":"Smith","$id":"other","id":"Kim"}`, pk).is(400)
	a.do("PATCH", people+"/Ben", `{"operations":[{"op":"incr","path":"/Small/$v","value":4},{"op":"set",`+
		`"path":"/New","value":{"$t":2,"$v":"n"}}],"condition":"from c where c.Small[\"$v\"] = 3"}`, pk).
		is(200).has(`"Small":{"$t":16,"$v":7}`).has(`"New":{"$t":2,"$v":"n"}`).has(
		`"When":{"$t":9,"$v":"00638451255671264567"}`)
	ct, err := a.srv.core.Container("TablesDB", "people")
	if err != nil {
		t.Fatal(err)
	}
	it, err := ct.Read(context.Background(), core.PartitionKey{value.StringOf("Smith")}, value.StringOf("Ben"))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := doc.Set(entity("Ben", 3), value.Int32Of(7), "Small")
	if want, _ = doc.Set(want, value.StringOf("n"), "New"); !doc.Equal(it.Doc, want) {
		t.Errorf("stored is %s", doc.AppendExtJSON(nil, doc.Value(it.Doc), false))
	}
}

// Every filter has the same result with and without the index: `(f) OR IS_DEFINED(c.never)` and a function of the
// filter can't use one.
func TestTableQueries(t *testing.T) {
	var docs []doc.Doc
	for i := int64(-20); i < 20; i++ {
		docs = append(docs, entity(fmt.Sprint("e", i+100), i))
	}
	a := withTable(t, docs...)
	count := func(filter string) string {
		body := `{"query":"SELECT VALUE c.id FROM c WHERE ` + strings.ReplaceAll(filter, `"`, `\"`) + ` ORDER BY c.id"}`
		r := a.do("POST", people, body, "x-ms-documentdb-isquery: true",
			"x-ms-documentdb-query-enablecrosspartition: true", "content-type: application/query+json").is(200)
		_, rows, _ := strings.Cut(r.body, `"Documents":`)
		return rows
	}
	for filter, n := range map[string]int{
		`c["$pk"] = "Smith"`:                                             40,
		`c["$id"] = "e103"`:                                              1,
		`c["$id"] > "e103"`:                                              16 + 20, // e104.. and e80..
		`c.id = "e103"`:                                                  1,
		`c.Text["$v"] = "t3"`:                                            1,
		`STARTSWITH(c.Text["$v"], "t1")`:                                 11,
		`c.Text["$t"] = 2`:                                               40,
		`c.Yes["$v"] = true`:                                             20,
		`c.Yes["$v"]`:                                                    20,
		`c.Small["$v"] = 3`:                                              1,
		`c.Small["$v"] >= 3 AND c.Small["$v"] < 5`:                       2,
		`c.Small["$v"] BETWEEN -3 AND -1`:                                3,
		`c.Small["$v"] IN (1, 2, 77)`:                                    2,
		`NOT (c.Small["$v"] = 3)`:                                        39,
		`c.Large["$v"] = "00000003298534883328"`:                         1,
		`c.Large["$v"] = 3298534883328`:                                  0,
		`c.Large["$v"] > "00000003298534883328"`:                         16,
		`c.Half["$v"] = 3.5`:                                             1,
		`c.When["$v"] = "00638451255671264567"`:                          1,
		`c.When["$v"] <= "00638451255671264567"`:                         24,
		`c.Guid["$v"] = "00000000-0000-0000-0000-000000000003"`:          1,
		`c.Bytes["$v"] = "A/8="`:                                         1,
		`c.Small = 3`:                                                    0,
		`c.Small = {"$t":16,"$v":3}`:                                     1,
		`IS_OBJECT(c.Small)`:                                             40,
		`IS_DEFINED(c.Small["$v"])`:                                      40,
		`IS_DEFINED(c.Null["$v"])`:                                       0,
		`IS_NULL(c.Null)`:                                                40,
		`c.Oid["$oid"] = "000000000000000000000003"`:                     1,
		`c.Small["$v"] = 3 OR c.When["$v"] = "00638451255671264567"`:     1,
		`ARRAY_CONTAINS([1, 2], c.Small["$v"])`:                          2,
		`c.Nothing["$v"] = 3`:                                            0,
		`EXISTS(SELECT VALUE 1 FROM x IN c.Nothing WHERE x["$v"] = "1")`: 0,
	} {
		with, without := count(filter), count(`((`+filter+`) ? 1 : 0) + LENGTH(c.id) - LENGTH(c.id) = 1`)
		if with != without {
			t.Errorf("%s:\nwith the index    %s\nwithout the index %s", filter, with, without)
		}
		if got := strings.Count(with, `"e`); got != n {
			t.Errorf("%s: %d rows, want %d", filter, got, n)
		}
	}
	body := `{"query":"SELECT TOP 3 VALUE c.Small[\"$v\"] FROM c ORDER BY c.Small[\"$v\"] DESC"}`
	a.do("POST", people, body, "x-ms-documentdb-isquery: true", "x-ms-documentdb-query-enablecrosspartition: true").is(
		200).has(`[19,18,17]`)
	body = `{"query":"SELECT * FROM c WHERE c.Small[\"$v\"] = 3"}`
	a.do("POST", people, body, "x-ms-documentdb-isquery: true", "x-ms-documentdb-query-enablecrosspartition: true").is(
		200).has(strings.ReplaceAll(shownEntity, "Ben", "e103"))
}

// In a container with Extended JSON, an item that is read and sent back keeps the kinds of all values.
func TestExtendedItemsComeBack(t *testing.T) {
	a := newAPI(t)
	ctx := context.Background()
	if _, err := a.srv.core.CreateDatabase(ctx, core.DatabaseSpec{ID: "db"}); err != nil {
		t.Fatal(err)
	}
	ct, err := a.srv.core.CreateContainer(ctx, "db", core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/$pk"}}, ExtendedJSON: true, Origin: "mongo"})
	if err != nil {
		t.Fatal(err)
	}
	d := entity("Ben", 3)
	if _, err := ct.Write(ctx, core.Write{Kind: core.Create, Doc: d}); err != nil {
		t.Fatal(err)
	}
	read := a.do("GET", docs+"/Ben", "", key("Smith")).is(200)
	a.do("PUT", docs+"/Ben", read.body, key("Smith")).is(200)
	it, err := ct.Read(ctx, core.PartitionKey{value.StringOf("Smith")}, value.StringOf("Ben"))
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := doc.Set(d, value.Int64Of(3<<40), "Large"); !doc.Equal(it.Doc, want) {
		t.Errorf("%s came back as %s", doc.AppendExtJSON(nil, doc.Value(want), false),
			doc.AppendExtJSON(nil, doc.Value(it.Doc), false))
	}
}
