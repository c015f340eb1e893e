package model

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/orrerydb/orrery/conformance/harness"
)

// A key value in each API's form. id is the item's id too.
type keyCase struct {
	id      string
	json    string                // in an item of NoSQL; "" = missing
	pk      azcosmos.PartitionKey // nil = NoSQL has no name for it
	hasPK   bool
	bson    any    // absent = the field is missing
	table   string // the PartitionKey
	gremlin any    // nil = not addressable
}

type absent struct{}

// P2, P8: the partition key may be of any kind. Each API writes items with keys of the kinds that it has, and each API
// finds, changes and deletes all of them by key and id.
func TestP8KeysOfEveryKind(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	c := harness.Container(t, db, "c", 30000, "/k")
	coll, table := s.Mongo.Database(db.ID()).Collection("c"), s.Tables.NewClient(db.ID()+".c")
	g := s.Gremlin(t, db.ID(), "c")
	num := azcosmos.NewPartitionKeyNumber
	long := strings.Repeat("k", 2048)
	oid, at := bson.ObjectID{1}, bson.NewDateTimeFromTime(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	dec, err := bson.ParseDecimal128("1.10")
	ok(t, err)
	used := map[int]bool{}
	for i, x := range []keyCase{
		{"string", `"Seattle"`, str("Seattle"), true, "Seattle", "Seattle", "Seattle"},
		{"empty", `""`, str(""), true, "", "", ""},
		{"unicode", `"ключ é\ud83d\ude00"`, str("ключ é😀"), true, "ключ é😀", "ключ é😀", "ключ é😀"},
		{"quotes", `"a\"b'c\\/?#"`, str(`a"b'c\/?#`), true, `a"b'c\/?#`, `a"b'c\/?#`, `a"b'c\/?#`},
		{"long", `"` + long + `"`, str(long), true, long, long, long},
		{"one", `1`, num(1), true, int32(1), "1", int32(1)},
		{"half", `-2.5`, num(-2.5), true, -2.5, "-2.5", -2.5},
		{"huge", `1e308`, num(1e308), true, 1e308, "1e+308", 1e308},
		{"true", `true`, azcosmos.NewPartitionKeyBool(true), true, true, "true", true},
		{"null", `null`, azcosmos.NullPartitionKey, true, nil, "null", nil},
		{"missing", ``, all, true, absent{}, "", nil},
		{"nan", ``, all, false, math.NaN(), `{"$numberDouble":"NaN"}`, nil},
		{"inf", ``, all, false, math.Inf(-1), `{"$numberDouble":"-Infinity"}`, nil},
		{"decimal", ``, all, false, dec, `{"$numberDecimal":"1.1"}`, nil},
		{"oid", ``, all, false, oid, `{"$oid":"010000000000000000000000"}`, nil},
		{"date", ``, all, false, at, `{"$date":{"$numberLong":"1772323200000"}}`, nil},
		{"object", ``, all, false, bson.D{{Key: "a", Value: "b"}}, "", nil}, // counts as missing
	} {
		t.Run(x.id, func(t *testing.T) {
			ctx := bg
			if x.json == "" {
				ctx = policyHeader("x-ms-documentdb-partitionkey", "[{}]") // azcosmos has no name for it
			}
			filter := bson.D{{Key: "_id", Value: x.id}, {Key: "k", Value: x.bson}}
			if x.bson == (any)(absent{}) {
				filter[1].Value = bson.D{{Key: "$exists", Value: false}}
			}
			if x.hasPK {
				item := fmt.Sprintf(`{"id":%q,"k":%s}`, x.id, x.json)
				if x.json == "" {
					item = fmt.Sprintf(`{"id":%q}`, x.id)
				}
				_, err := c.CreateItem(ctx, x.pk, []byte(item), nil)
				ok(t, err)
				_, err = c.CreateItem(ctx, x.pk, []byte(item), nil)
				refused(t, err, 409)
				_, err = c.ReadItem(ctx, x.pk, x.id, nil)
				ok(t, err)
			} else {
				_, err := coll.InsertOne(bg, filter)
				ok(t, err)
				if _, err := coll.InsertOne(bg, filter); !mongo.IsDuplicateKeyError(err) {
					t.Errorf("again, by Mongo: %v", err)
				}
			}
			if n, err := coll.CountDocuments(bg, filter); n != 1 || err != nil {
				t.Errorf("by Mongo: %d %v", n, err)
			}
			u, err := coll.UpdateOne(bg, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "by", Value: "mongo"}}}})
			if err != nil || u.MatchedCount != 1 {
				t.Errorf("an update by Mongo: %+v %v", u, err)
			}
			if x.table != "" { // aztables asks for empty keys by filters only
				e, err := table.GetEntity(bg, x.table, x.id, nil)
				ok(t, err)
				if got := object(t, e.Value); got["PartitionKey"] != x.table || got["by"] != "mongo" {
					t.Errorf("by Table: %s", e.Value)
				}
			}
			pages := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: ptr(fmt.Sprintf(
				"PartitionKey eq '%s' and RowKey eq '%s'", strings.ReplaceAll(x.table, "'", "''"), x.id))})
			page, err := pages.NextPage(bg)
			ok(t, err)
			if len(page.Entities) != 1 {
				t.Errorf("a filter of Table finds %d entities", len(page.Entities))
			}
			if x.gremlin != nil {
				if vs, err := harness.Submit(g, "g.V([k, i]).values('by')", "k", x.gremlin, "i", x.id); err != nil ||
					fmt.Sprint(vs) != "[mongo]" {
					t.Errorf("by Gremlin: %v %v", vs, err)
				}
			}
			before := bars(t, s, db.ID(), "c")
			switch { // the APIs take turns at deleting it
			case x.hasPK && i%2 == 0:
				_, err = c.DeleteItem(ctx, x.pk, x.id, nil)
			case x.table != "":
				_, err = table.DeleteEntity(bg, x.table, x.id, nil)
			default:
				_, err = coll.DeleteOne(bg, filter)
			}
			ok(t, err)
			if n, err := coll.CountDocuments(bg, bson.D{}); n != 0 || err != nil {
				t.Errorf("after the delete there are %d: %v", n, err)
			}
			for p := range before {
				used[p] = used[p] || before[p].Items > 0
			}
		})
	}
	if len(used) != 3 || !used[0] || !used[1] || !used[2] {
		t.Errorf("physical partitions with one of these keys: %v of 3", used)
	}
}

// P8: keys that can't be are refused by each API in its form, and nothing is stored.
func TestP8BadKeys(t *testing.T) {
	s := harness.Start(t)
	db := s.Database(t)
	c := harness.Container(t, db, "c", 0, "/k")
	coll := s.Mongo.Database(db.ID()).Collection("c")
	g := s.Gremlin(t, db.ID(), "c")
	long := strings.Repeat("k", 4000)
	for _, item := range []string{`{"id":"x","k":{"a":1}}`, `{"id":"x","k":[1]}`} { // such a key is none
		_, err := c.CreateItem(bg, str("a"), []byte(item), nil)
		if re := refused(t, err, 400); re.RawResponse.Header.Get("x-ms-substatus") != "1001" {
			t.Errorf("%s: %v", item, err)
		}
		_, err = c.UpsertItem(bg, str("a"), []byte(item), nil)
		refused(t, err, 400)
		none := policyHeader("x-ms-documentdb-partitionkey", "[{}]")
		_, err = c.CreateItem(none, all, []byte(item), nil)
		ok(t, err)
		_, err = c.DeleteItem(none, all, "x", nil)
		ok(t, err)
	}
	_, err := c.CreateItem(bg, str(long), fmt.Appendf(nil, `{"id":"x","k":%q}`, long), nil)
	refused(t, err, 400)
	_, err = c.CreateItem(bg, str("a"), []byte(`{"id":"x","k":"b"}`), nil)
	refused(t, err, 400)
	create(t, c, "k", `{"id":"p","k":"a"}`)
	ops := azcosmos.PatchOperations{}
	ops.AppendSet("/k", "b")
	_, err = c.PatchItem(bg, str("a"), "p", ops, nil)
	refused(t, err, 400)
	_, err = coll.InsertOne(bg, bson.D{{Key: "_id", Value: "x"}, {Key: "k", Value: long}})
	var we mongo.WriteException
	if !errors.As(err, &we) || len(we.WriteErrors) != 1 || we.WriteErrors[0].Code != 2 {
		t.Errorf("a long key by Mongo: %v", err)
	}
	sharded := s.Mongo.Database(db.ID())
	ok(t, sharded.RunCommand(bg, bson.D{{Key: "customAction", Value: "CreateCollection"},
		{Key: "collection", Value: "sharded"}, {Key: "shardKey", Value: "k"}}).Err())
	for _, d := range []bson.D{{{Key: "_id", Value: "x"}},
		{{Key: "_id", Value: "x"}, {Key: "k", Value: bson.A{1}}}} {
		if _, err := sharded.Collection("sharded").InsertOne(bg, d); !errors.As(err, &we) ||
			we.WriteErrors[0].Code != 61 {
			t.Errorf("%v: %v", d, err)
		}
	}
	_, err = sharded.Collection("sharded").InsertOne(bg, bson.D{{Key: "_id", Value: "p"}, {Key: "k", Value: "a"}})
	ok(t, err)
	if _, err := sharded.Collection("sharded").UpdateOne(bg, bson.D{{Key: "_id", Value: "p"}}, bson.D{{Key: "$set",
		Value: bson.D{{Key: "k", Value: "b"}}}}); !errors.As(err, &we) || we.WriteErrors[0].Code != 66 {
		t.Errorf("another shard key: %v", err)
	}
	for _, script := range []string{
		"g.addV('v').property('id', 'x')", "g.addV('v').property('id', 'x').property('k', [1, 2])",
		"g.V(['a', 'p']).property('k', 'b')",
	} {
		if _, err := harness.Submit(g, script); err == nil {
			t.Errorf("%s was accepted", script)
		}
	}
	if _, err := harness.Submit(g, "g.addV('v').property('id', 'x').property('k', k)", "k", long); err == nil {
		t.Error("a long key was accepted by Gremlin")
	}
	table := s.Tables.NewClient("people")
	_, err = table.CreateTable(bg, nil)
	ok(t, err)
	for key, code := range map[string]string{`a/b`: "OutOfRangeInput", `a\\b`: "OutOfRangeInput",
		`a#b`: "OutOfRangeInput", `a?b`: "OutOfRangeInput", `a\nb`: "OutOfRangeInput",
		strings.Repeat("k", 513): "KeyValueTooLarge"} {
		_, err = table.AddEntity(bg, []byte(`{"PartitionKey":"`+key+`","RowKey":"x"}`), nil)
		if re := refused(t, err, 400); re.ErrorCode != code {
			t.Errorf("%.20q: %v", key, re.ErrorCode)
		}
	}
	same(t, harness.Query(t, c, all, "SELECT VALUE c.id FROM c"), `["p"]`)
	if n, err := sharded.Collection("sharded").CountDocuments(bg, bson.D{}); n != 1 || err != nil {
		t.Errorf("%d documents of Mongo: %v", n, err)
	}
}

func ptr[T any](v T) *T { return &v }
