package mongoapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/wire"
)

func vectorIndexOf(similarity string, dims int) bson.D {
	return bson.D{{Key: "createSearchIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{
		{Key: "name", Value: similarity}, {Key: "type", Value: "vectorSearch"},
		{Key: "definition", Value: bson.D{{Key: "fields", Value: bson.A{
			bson.D{{Key: "type", Value: "vector"}, {Key: "path", Value: "v"}, {Key: "numDimensions", Value: dims},
				{Key: "similarity", Value: similarity}},
			bson.D{{Key: "type", Value: "filter"}, {Key: "path", Value: "g"}}}}}}}}}}
}

func vectorSearchOf(similarity string, v []float64, limit int, filter bson.D, batch int) bson.D {
	return bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{
		bson.D{{Key: "$vectorSearch", Value: bson.D{{Key: "index", Value: similarity}, {Key: "path", Value: "v"},
			{Key: "queryVector", Value: v}, {Key: "exact", Value: true}, {Key: "limit", Value: limit},
			{Key: "filter", Value: filter}}}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "s", Value: bson.D{{Key: "$meta",
			Value: "vectorSearchScore"}}}}}}}},
		{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: batch}}}}
}

// TestVectorSearch: in batches of any size, with and without a filter, a search gives the documents of a plain sort by
// distance.
func TestVectorSearch(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []float64 {
		v := make([]float64, 12)
		for i := range v {
			v[i] = r.NormFloat64()
		}
		return v
	}
	const docs = 400
	vectors := make([][]float64, docs)
	var all bson.A
	for i := range docs {
		vectors[i] = random()
		var stored any = vectors[i]
		if i%2 == 1 {
			b := []byte{0x27, 0}
			for _, f := range vectors[i] {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(f)))
			}
			stored = bson.Binary{Subtype: 9, Data: b}
		}
		all = append(all, bson.D{{Key: "_id", Value: i}, {Key: "g", Value: i % 7}, {Key: "v", Value: stored}})
	}
	must(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: all}})
	for _, similarity := range []string{"cosine", "euclidean", "dotProduct"} {
		must(t, c, vectorIndexOf(similarity, 12))
		for _, filtered := range []bool{false, true} {
			for _, limit := range []int{1, 10, 150, 1000} {
				q := random()
				score := func(i int) float64 {
					var dot, xx, yy, dd float64
					for j, x := range q {
						y := vectors[i][j]
						dot, xx, yy, dd = dot+x*y, xx+x*x, yy+y*y, dd+(x-y)*(x-y)
					}
					return map[string]float64{"cosine": (1 + dot/math.Sqrt(xx*yy)) / 2, "euclidean": 1 / (1 + dd),
						"dotProduct": max(0, (1+dot)/2)}[similarity]
				}
				f, want := bson.D{}, []int(nil)
				if filtered {
					f = bson.D{{Key: "g", Value: 3}}
				}
				for i := range docs {
					if !filtered || i%7 == 3 {
						want = append(want, i)
					}
				}
				slices.SortStableFunc(want, func(a, b int) int {
					switch x, y := score(a), score(b); {
					case x > y:
						return -1
					case x < y:
						return 1
					}
					return 0
				})
				want = want[:min(limit, len(want))]
				for _, batch := range []int{1000, 37} {
					got := allOf(t, c, vectorSearchOf(similarity, q, limit, f, batch))
					if len(got) != len(want) {
						t.Fatalf("%s, limit %d: %d documents, wanted %d", similarity, limit, len(got), len(want))
					}
					for i, d := range got {
						s := d.Lookup("s").Double()
						if math.Abs(s-score(want[i])) > 1e-5 || int(d.Lookup("_id").Int32()) != want[i] && s > 0 &&
							math.Abs(score(int(d.Lookup("_id").Int32()))-score(want[i])) > 1e-5 {
							t.Fatalf("%s, limit %d, document %d: %v, wanted %d with %v", similarity, limit, i, d,
								want[i], score(want[i]))
						}
					}
				}
			}
		}
	}
}

// allOf returns all documents of a command's cursor.
func allOf(t *testing.T, c *conn, d bson.D) (out []bson.Raw) {
	r, batch := must(t, c, d), "firstBatch"
	for {
		docs, err := r.Lookup("cursor", batch).Array().Values()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			out = append(out, d.Document())
		}
		id := r.Lookup("cursor", "id").AsInt64()
		if id == 0 {
			return out
		}
		r, batch = must(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"},
			{Key: "batchSize", Value: 37}}), "nextBatch"
	}
}

// BenchmarkVectorSearch finds the ten nearest of 10,000 documents with vectors of 384 dimensions. The metric ns/vector
// is that of the whole command; core/vector has the one of the distance alone.
func BenchmarkVectorSearch(b *testing.B) {
	const docs, dims = 10_000, 384
	_, c := diskConn(b)
	var m wire.Msg
	raw := func(msg []byte) {
		beginBench(c)
		defer endBench(c)
		out, err := c.answer(nil, wire.Header{OpCode: wire.OpMsg}, msg, &m)
		if err != nil || !bytes.Contains(out, []byte("ok\x00\x00\x00\x00\x00\x00\x00\xf0?")) {
			b.Fatalf("%v: %q", err, out)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []float64 {
		v := make([]float64, dims)
		for i := range v {
			v[i] = r.NormFloat64()
		}
		return v
	}
	raw(opMsg(b, bson.D{{Key: "create", Value: "c"}}))
	raw(opMsg(b, vectorIndexOf("cosine", dims)))
	for i := 0; i < docs; i += 500 {
		var batch bson.A
		for j := range 500 {
			batch = append(batch, bson.D{{Key: "_id", Value: i + j}, {Key: "g", Value: strconv.Itoa(j % 10)},
				{Key: "v", Value: random()}})
		}
		raw(opMsg(b, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: batch}}))
	}
	for _, x := range []struct {
		name   string
		filter bson.D
		read   float64
	}{{"all", bson.D{}, docs}, {"filtered", bson.D{{Key: "g", Value: "3"}}, docs / 10}} {
		msg := opMsg(b, vectorSearchOf("cosine", random(), 10, x.filter, 10))
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				raw(msg)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/x.read, "ns/vector")
		})
	}
}

// TestVectorPathsAreNotIndexed: the vectors of an index have no entries, and conditions on them still find documents.
func TestVectorPathsAreNotIndexed(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	must(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{
		bson.D{{Key: "_id", Value: 1}, {Key: "v", Value: bson.A{1, 2}}, {Key: "g", Value: 1}},
		bson.D{{Key: "_id", Value: 2}, {Key: "g", Value: 1}}}}})
	policy := func() string {
		k, err := s.eng.Container("db", "c")
		if err == nil {
			err = k.WaitIndex(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(k.Spec().IndexingPolicy)
	}
	const excluded = `{"path":"/v/*"}`
	if p := policy(); strings.Contains(p, excluded) {
		t.Fatal(p)
	}
	must(t, c, vectorIndexOf("cosine", 2))
	if p := policy(); !strings.Contains(p, excluded) {
		t.Fatal(p)
	}
	for _, f := range []bson.D{{{Key: "v", Value: 2}}, {{Key: "v", Value: bson.A{1, 2}}},
		{{Key: "v", Value: bson.D{{Key: "$exists", Value: true}}}, {Key: "g", Value: 1}}} {
		got := allOf(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: f}})
		if len(got) != 1 || got[0].Lookup("_id").Int32() != 1 {
			t.Errorf("%v: %v", f, got)
		}
	}
	must(t, c, bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{
		bson.D{{Key: "key", Value: bson.D{{Key: "g", Value: 1}, {Key: "h", Value: 1}}}, {Key: "name", Value: "gh"}}}}})
	if p := policy(); !strings.Contains(p, excluded) {
		t.Fatal(p)
	}
	must(t, c, bson.D{{Key: "dropSearchIndex", Value: "c"}, {Key: "name", Value: "cosine"}})
	if p := policy(); strings.Contains(p, excluded) {
		t.Fatal(p)
	}
}
