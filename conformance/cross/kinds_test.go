package cross

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// kind is a kind of value, with the forms in which each API writes and shows it.
type kind struct {
	name string

	// Writers. "" or nil if the API can't write the kind.
	json     string // NoSQL
	extended string // NoSQL, only in containers with Extended JSON
	bson     any
	edm      string // Table: the type, a blank, the JSON
	gremlin  any

	// Readers.
	nosql    string // in containers without Extended JSON
	relaxed  string // in containers with Extended JSON; "" = as nosql
	form     string // in tables; "" = as nosql
	mongo    string // canonical Extended JSON
	table    string
	traverse string // the result of values('v')

	// Finders by equality. "" or nil if the kind has none.
	where      string // SQL, on c.v
	whereTable string // SQL in tables; "" = as where
	filter     string // Table
	find       any    // Mongo; nil = the value of bson
	has        any    // Gremlin; nil = the value of gremlin
}

const (
	aUUID = "c9da6455-213d-42c9-9a79-3e9149a57833"
	anOID = "65e5580fabcdefabcdefabcd"
)

var (
	date100 = time.Date(2024, 3, 4, 5, 6, 7, 123456700, time.UTC)
	dateMS  = time.Date(2024, 3, 4, 5, 6, 7, 123000000, time.UTC)
	oid, _  = bson.ObjectIDFromHex(anOID)
	dec, _  = bson.ParseDecimal128("1.10")
	ticks   = append(leBytes(dateMS.UnixMilli(), 8), leBytes(4567, 2)...)
)

func leBytes(n int64, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	return b
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func uuidBytes(s string) []byte { u := uuid.MustParse(s); return u[:] }

var kinds = []kind{
	{name: "null", json: "null", bson: bson.Null{}, nosql: "null", mongo: "null", table: "absent", traverse: "<nil> <nil>", where: "IS_NULL(c.v)"},
	{name: "bool", json: "true", bson: true, edm: " true", gremlin: true,
		nosql: "true", form: `{"$t":8,"$v":true}`, mongo: "true", table: "true", traverse: "bool true",
		where: "c.v = true", whereTable: `c.v["$v"] = true`, filter: "v eq true"},
	{name: "string", json: `"blé ☃"`, bson: "blé ☃", edm: ` "blé ☃"`, gremlin: "blé ☃",
		nosql: `"blé ☃"`, form: `{"$t":2,"$v":"blé ☃"}`, mongo: `"blé ☃"`, table: `"blé ☃"`, traverse: "string blé ☃",
		where: `c.v = "blé ☃"`, whereTable: `c.v["$v"] = "blé ☃"`, filter: "v eq 'blé ☃'"},
	{name: "array", json: `[1,"a"]`, bson: bson.A{int32(1), "a"},
		nosql: `[1,"a"]`, mongo: `[{"$numberInt":"1"},"a"]`, table: `"[1,\"a\"]"`, traverse: "int32 1, string a",
		where: `ARRAY_CONTAINS(c.v, "a")`, has: "a", find: "a"},
	{name: "document", json: `{"a":1,"b":[true]}`,
		bson:  bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: bson.A{true}}},
		nosql: `{"a":1,"b":[true]}`, mongo: `{"a":{"$numberInt":"1"},"b":[true]}`, table: `"{\"a\":1,\"b\":[true]}"`,
		traverse: "map[interface {}]interface {} map[a:1 b:[true]]", where: `c.v.b[0] = true AND c.v.a = 1`},
	{name: "int32", json: "-7", bson: int32(-7), edm: " -7", gremlin: int32(-7),
		nosql: "-7", form: `{"$t":16,"$v":-7}`, mongo: `{"$numberInt":"-7"}`, table: "-7", traverse: "int32 -7",
		where: "c.v = -7", whereTable: `c.v["$v"] = -7`, filter: "v eq -7"},
	{name: "int64", json: "1099511627776", bson: int64(1 << 40), edm: `Edm.Int64 "1099511627776"`,
		gremlin: int64(1 << 40),
		nosql:   "1099511627776", form: `{"$t":18,"$v":"00000001099511627776"}`, mongo: `{"$numberLong":"1099511627776"}`,
		table: `Edm.Int64 "1099511627776"`, traverse: "int64 1099511627776",
		where: "c.v = 1099511627776", whereTable: `c.v["$v"] = "00000001099511627776"`, filter: "v eq 1099511627776L"},
	{name: "double", json: "2.5", bson: 2.5, edm: " 2.5", gremlin: 2.5,
		nosql: "2.5", form: `{"$t":1,"$v":2.5}`, mongo: `{"$numberDouble":"2.5"}`, table: "2.5", traverse: "float64 2.5",
		where: "c.v = 2.5", whereTable: `c.v["$v"] = 2.5`, filter: "v eq 2.5"},
	{name: "whole double", json: "3.0", bson: 3.0, edm: "Edm.Double 3", gremlin: 3.0,
		nosql: "3.0", form: `{"$t":1,"$v":3.0}`, mongo: `{"$numberDouble":"3.0"}`, table: "3", traverse: "float64 3",
		where: "c.v = 3", whereTable: `c.v["$v"] = 3`, filter: "v eq 3.0"},
	{name: "decimal128", extended: `{"$numberDecimal":"1.10"}`, bson: dec, gremlin: &gremlingo.BigDecimal{
		Scale: 2, UnscaledValue: big.NewInt(110)},
		nosql: `{"$numberDecimal":"1.10"}`, mongo: `{"$numberDecimal":"1.10"}`, table: `"1.10"`, traverse: "decimal 110 scale 2",
		where: `c.v["$numberDecimal"] = "1.10"`},
	{name: "date", extended: `{"$date":"2024-03-04T05:06:07.123Z"}`, bson: bson.NewDateTimeFromTime(dateMS),
		edm: `Edm.DateTime "2024-03-04T05:06:07.123Z"`, gremlin: dateMS,
		nosql: `"2024-03-04T05:06:07.123Z"`, relaxed: `{"$date":"2024-03-04T05:06:07.123Z"}`, form: `{"$t":9,"$v":"00638451255671230000"}`,
		mongo: `{"$date":{"$numberLong":"1709528767123"}}`, table: `Edm.DateTime "2024-03-04T05:06:07.123Z"`, traverse: "date 2024-03-04T05:06:07.123Z",
		where: `c.v = "2024-03-04T05:06:07.123Z"`, whereTable: `c.v["$v"] = "00638451255671230000"`, filter: "v eq datetime'2024-03-04T05:06:07.123Z'"},
	{name: "date of 100 ns", extended: `{"$date":"2024-03-04T05:06:07.1234567Z"}`,
		bson: bson.Binary{Subtype: 0xF1, Data: ticks}, edm: `Edm.DateTime "2024-03-04T05:06:07.1234567Z"`,
		gremlin: date100,
		nosql:   `"2024-03-04T05:06:07.1234567Z"`, relaxed: `{"$date":"2024-03-04T05:06:07.1234567Z"}`, form: `{"$t":9,"$v":"00638451255671234567"}`,
		mongo: fmt.Sprintf(`{"$binary":{"base64":%q,"subType":"f1"}}`, base64Of(ticks)), table: `Edm.DateTime "2024-03-04T05:06:07.1234567Z"`, traverse: "date 2024-03-04T05:06:07.1234567Z",
		where: `c.v = "2024-03-04T05:06:07.1234567Z"`, whereTable: `c.v["$v"] = "00638451255671234567"`, filter: "v eq datetime'2024-03-04T05:06:07.1234567Z'"},
	{name: "uuid", extended: fmt.Sprintf(`{"$uuid":%q}`, aUUID), bson: bson.Binary{Subtype: 4, Data: uuidBytes(aUUID)},
		edm: fmt.Sprintf("Edm.Guid %q", aUUID), gremlin: uuid.MustParse(aUUID),
		nosql: `"` + aUUID + `"`, relaxed: fmt.Sprintf(`{"$binary":{"base64":%q,"subType":"04"}}`,
			base64Of(uuidBytes(aUUID))), form: fmt.Sprintf(`{"$t":0,"$v":%q}`, aUUID),
		mongo: fmt.Sprintf(`{"$binary":{"base64":%q,"subType":"04"}}`, base64Of(uuidBytes(aUUID))),
		table: fmt.Sprintf("Edm.Guid %q", aUUID), traverse: "uuid " + aUUID,
		where: `c.v = "` + aUUID + `"`, whereTable: `c.v["$v"] = "` + aUUID + `"`, filter: "v eq guid'" + aUUID + "'"},
	{name: "binary", extended: `{"$binary":{"base64":"AP8=","subType":"00"}}`, bson: bson.Binary{Data: []byte{0, 255}}, edm: `Edm.Binary "AP8="`,
		nosql: `"AP8="`, relaxed: `{"$binary":{"base64":"AP8=","subType":"00"}}`, form: `{"$t":5,"$v":"AP8="}`,
		mongo: `{"$binary":{"base64":"AP8=","subType":"00"}}`, table: `Edm.Binary "AP8="`, traverse: "string AP8=",
		where: `c.v = "AP8="`, whereTable: `c.v["$v"] = "AP8="`, filter: "v eq X'00ff'"},
	{name: "ObjectId", extended: fmt.Sprintf(`{"$oid":%q}`, anOID), bson: oid,
		nosql: fmt.Sprintf(`{"$oid":%q}`, anOID), mongo: fmt.Sprintf(`{"$oid":%q}`, anOID), table: `"` + anOID + `"`,
		traverse: fmt.Sprintf(`string {"$oid":%q}`, anOID),
		where:    fmt.Sprintf(`c.v["$oid"] = %q`, anOID), has: fmt.Sprintf(`{"$oid":%q}`, anOID)},
	{name: "timestamp", extended: `{"$timestamp":{"t":5,"i":6}}`, bson: bson.Timestamp{T: 5, I: 6},
		nosql: `{"$timestamp":{"t":5,"i":6}}`, mongo: `{"$timestamp":{"t":5,"i":6}}`, table: `"{\"$timestamp\":{\"t\":5,\"i\":6}}"`, traverse: `string {"$timestamp":{"t":5,"i":6}}`,
		where: `c.v["$timestamp"].t = 5`, has: `{"$timestamp":{"t":5,"i":6}}`},
	{name: "regex", extended: `{"$regularExpression":{"pattern":"a.b","options":"i"}}`, bson: bson.Regex{Pattern: "a.b", Options: "i"},
		nosql: `{"$regularExpression":{"pattern":"a.b","options":"i"}}`, mongo: `{"$regularExpression":{"pattern":"a.b","options":"i"}}`,
		table: `"{\"$regularExpression\":{\"pattern\":\"a.b\",\"options\":\"i\"}}"`, traverse: `string {"$regularExpression":{"pattern":"a.b","options":"i"}}`,
		where: `c.v["$regularExpression"].pattern = "a.b"`, has: `{"$regularExpression":{"pattern":"a.b","options":"i"}}`},
}

// write writes the kind through one API. done is false if that API can't write it.
func (k *kind) write(p *place, by, id string) (done bool, err error) {
	switch by {
	case "nosql":
		v := k.json
		if v == "" && p.extended {
			v = k.extended
		}
		if v == "" && p.edm {
			v = k.form
		}
		if v == "" {
			return false, nil
		}
		return true, p.writeSQL(id, v)
	case "mongo":
		return true, p.writeMongo(id, k.bson)
	case "table":
		if k.edm == "" {
			return false, nil
		}
		edm, v := cutType(k.edm)
		return true, p.writeTable(id, edm, v)
	}
	return false, nil
}

func cutType(s string) (edm, v string) {
	for i := range s {
		if s[i] == ' ' {
			return s[:i], s[i+1:]
		}
	}
	return "", s
}

// TestKinds writes every kind through every API that can, into a container of every origin. It reads the item through
// all four APIs, and finds it through each API that can compare the kind.
func TestKinds(t *testing.T) {
	_, ps := places(t)
	cells := 0
	for _, origin := range origins {
		p := ps[origin]
		for i := range kinds {
			k := &kinds[i]
			for _, by := range []string{"nosql", "mongo", "table"} {
				id := fmt.Sprintf("%s-%d", by, i)
				done, err := k.write(p, by, id)
				if !done {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/by %s", origin, k.name, by), func(t *testing.T) {
					ok(t, err)
					cells += k.check(t, p, id)
				})
			}
		}
	}
	t.Logf("%d cells", cells)
}

// check reads and finds one item and returns the number of comparisons.
func (k *kind) check(t *testing.T, p *place, id string) int {
	same := func(api, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("read by %s: %s, want %s", api, got, want)
		}
	}
	nosql, where := k.nosql, k.where
	if p.extended && k.relaxed != "" {
		nosql = k.relaxed
	}
	if p.edm {
		if k.form != "" {
			nosql = k.form
		}
		if k.whereTable != "" {
			where = k.whereTable
		}
	}
	same("NoSQL", p.readSQL(t, id), nosql)
	same("Mongo", p.readMongo(t, id), k.mongo)
	same("Table", p.readTable(t, id), k.table)
	same("Gremlin", p.readGremlin(id), k.traverse)
	found := func(api string, ids []string) {
		t.Helper()
		if !slices.Contains(ids, id) {
			t.Errorf("found by %s: %q, without %s", api, ids, id)
		}
	}
	n := 5
	if where != "" {
		found("NoSQL "+where, p.findSQL(t, where))
		n++
	}
	find := k.find
	if find == nil {
		find = k.bson
	}
	found("Mongo", p.findMongo(t, bson.D{{Key: "v", Value: find}}))
	if k.filter != "" {
		found("Table "+k.filter, p.findTable(t, k.filter))
		n++
	}
	has := k.has
	if has == nil {
		has = k.gremlin
	}
	if has != nil {
		found(fmt.Sprintf("Gremlin has %v", has), p.findGremlin(t, has))
		n++
	}
	return n
}
