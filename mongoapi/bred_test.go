package mongoapi

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/internal/mtest"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/wire"
)

// seedBred gives a fuzz target of bred values something to begin with: each case, with a change.
func seedBred(f *testing.F) {
	for i := range 300 {
		f.Add([]byte{byte(i >> 8), byte(i), 1, byte(i), byte(7 * i), byte(11 * i), byte(13 * i)})
	}
}

// FuzzBredCommand: no command that is bred from those of testdata/commands panics, or takes long. Each works on a few
// documents, and what it leaves is checked at the end.
func FuzzBredCommand(f *testing.F) {
	known := func(v any) bool {
		d, ok := v.(bson.D)
		if ok && len(d) > 0 {
			_, ok = commands[d[0].Key]
		}
		return ok && len(d) > 0
	}
	p := mtest.NewPool(f, known, "testdata/commands/*")
	seedBred(f)
	s := newTestServer(f, Options{})
	before := []bson.D{
		{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{
			bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{1, bson.D{{Key: "b", Value: 2}}}}, {Key: "s", Value: "x"}},
			bson.D{{Key: "_id", Value: 2}, {Key: "v", Value: bson.A{1.0, 0.5}}, {Key: "n", Value: nil}}}}},
		{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key",
			Value: bson.D{{Key: "a", Value: 1}, {Key: "s", Value: -1}}}, {Key: "name", Value: "a_s"}}}}},
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, ok := p.Breed(b)
		if !ok {
			return
		}
		var d bson.D
		if bson.Unmarshal(v.Bytes(), &d) != nil || len(d) == 0 || waits(mtest.Text(v)) {
			return
		}
		c := newConn(t, s, true)
		run := func(d bson.D) bson.Raw {
			if !slices.ContainsFunc(d, func(e bson.E) bool { return e.Key == "$db" }) {
				d = append(d, bson.E{Key: "$db", Value: "db"})
			}
			body, err := bson.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			return answerRaw(t, c, wire.OpMsg, append([]byte{0, 0, 0, 0, 0}, body...))
		}
		for _, d := range before {
			run(d)
		}
		began := time.Now()
		r := run(d)
		if took := time.Since(began); took > 20*time.Second {
			t.Fatalf("%s took %s", mtest.Text(v), took)
		}
		if code, _ := r.Lookup("code").AsInt64OK(); code == int64(merr.InternalError) {
			t.Fatalf("%s: %s", mtest.Text(v), r)
		}
		for _, db := range []string{"db", "other", "admin"} {
			run(bson.D{{Key: "dropDatabase", Value: 1}, {Key: "$db", Value: db}})
		}
	})
}

// waits reports whether a command may wait for something that never happens here.
func waits(text string) bool {
	return slices.ContainsFunc([]string{`"topologyVersion"`, `"awaitData"`, `"$changeStream"`, `"maxAwaitTimeMS"`,
		`"exhaustAllowed"`, `"lock"`}, func(w string) bool { return strings.Contains(text, w) })
}

// FuzzIndexed: a pipeline, or a query, that is bred from the cases of the languages gives the same in a collection
// without any index, in one with the automatic index, and in one with declared indexes too, unless it fails in one.
func FuzzIndexed(f *testing.F) {
	p := mtest.NewPool(f, func(v any) bool {
		switch v := v.(type) {
		case bson.D:
			return len(v) > 0
		case bson.A:
			d, ok := append(v, nil)[0].(bson.D)
			return ok && len(d) == 1 && strings.HasPrefix(d[0].Key, "$")
		}
		return false
	}, "agg/testdata/*", "filter/testdata/*")
	seedBred(f)
	s := newTestServer(f, Options{})
	c := newConn(f, s, true)
	run := func(t testing.TB, d bson.D) bson.Raw {
		var m wire.Msg
		out, err := c.answer(nil, wire.Header{OpCode: wire.OpMsg}, opMsg(t, d), &m)
		if err != nil {
			t.Fatal(err)
		}
		return bson.Raw(out[wire.HeaderSize+5:])
	}
	if r := run(f, bson.D{{Key: "create", Value: "auto"}}); r.Lookup("ok").Double() != 1 {
		f.Fatal(r)
	}
	spec := newSpec("none", idPath)
	spec.IndexingPolicy = []byte(`{"indexingMode":"none","automatic":false}`)
	if _, err := s.eng.CreateContainer(context.Background(), "db", spec); err != nil {
		f.Fatal(err)
	}
	var indexes bson.A
	for _, keys := range []string{"n", "a", "a.b", "g n", "n g", "b", "b.c", "k v"} {
		key := bson.D{}
		for _, k := range strings.Fields(keys) {
			key = append(key, bson.E{Key: k, Value: 1})
		}
		indexes = append(indexes, bson.D{{Key: "key", Value: key}, {Key: "name", Value: keys}})
	}
	run(f, bson.D{{Key: "createIndexes", Value: "declared"}, {Key: "indexes", Value: indexes}})
	var docs bson.A
	for _, text := range []string{`{"_id":1,"v":[1,2],"a":[1,{"b":2},"x"],"n":5,"g":"x","b":{"c":null}}`, `{"_id":2}`,
		`{"_id":3,"n":1.5,"a":{"b":[1,null]},"g":"y","k":1}`, `{"_id":4,"n":{"$numberDecimal":"7"},"a":[],"g":[1]}`,
		`{"_id":"5","n":null,"g":"x","d":{"$date":"2025-12-31T23:59:59Z"},"b":{"c":2},"k":2}`,
		`{"_id":6,"a":1,"n":{"$numberDouble":"NaN"},"g":"x","b":[{"c":1},{"c":2}]}`,
		`{"_id":7,"a":"x","n":{"$numberLong":"9223372036854775807"},"g":{"x":1},"b":5}`,
		`{"_id":8,"a":[[1,2],[]],"n":[1,2,[3]],"g":null}`, `{"_id":9,"a":true,"n":{"$minKey":1},"k":1,"v":"one"}`} {
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
			f.Fatal(err)
		}
		docs = append(docs, d)
	}
	colls := []string{"none", "auto", "declared"}
	for _, coll := range colls {
		if r := run(f, bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: docs}}); r.Lookup("n").Int32() !=
			int32(len(docs)) {
			f.Fatal(r)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, ok := p.Breed(b)
		text := mtest.Text(v)
		if !ok || slices.ContainsFunc([]string{`"$out"`, `"$merge"`, `"$sample"`, `"$sampleRate"`, `"$rand"`, "$$NOW",
			`"$collStats"`, `"$currentOp"`, `"$indexStats"`, `"$text"`, "Near", `"$near"`, `Sessions"`, `"$meta"`,
			`"$changeStream"`}, func(w string) bool { return strings.Contains(text, w) }) {
			return
		}
		var want string
		for i, coll := range colls {
			cmd := bson.D{{Key: "find", Value: coll}, {Key: "filter", Value: bson.Raw(v.Bytes())}}
			if strings.HasPrefix(text, "[") {
				cmd = bson.D{{Key: "aggregate", Value: coll}, {Key: "pipeline",
					Value: bson.RawValue{Type: bson.TypeArray, Value: v.Bytes()}}, {Key: "cursor", Value: bson.D{}}}
			}
			r := run(t, cmd)
			if r.Lookup("ok").Double() != 1 {
				return // an index may save the evaluation that fails
			}
			got := r.Lookup("cursor", "firstBatch").String()
			if i == 0 {
				want = got
			} else if got != want {
				t.Fatalf("%s\n%s: %s\n%s: %s", text, colls[0], want, coll, got)
			}
		}
	})
}
