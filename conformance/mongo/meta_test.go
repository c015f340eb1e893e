package mongo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/filter"
)

// gen generates random documents and queries with few names and few values, so that queries often match.
type gen struct{ *rand.Rand }

func (g gen) pick(vs ...any) any { return vs[g.IntN(len(vs))] }

func (g gen) scalar() any {
	switch g.IntN(12) {
	case 0:
		return nil
	case 1:
		return g.IntN(2) == 0
	case 2:
		return int64(g.IntN(40))
	case 3:
		return float64(g.IntN(80)) / 2
	case 4:
		return g.pick(math.NaN(), math.Inf(1), math.Copysign(0, -1), int64(math.MaxInt64), int64(1<<53+1),
			float64(1<<53))
	case 5:
		return bson.DateTime(g.IntN(20) * 1000)
	case 6:
		return bson.ObjectID{11: byte(g.IntN(5))}
	case 7:
		d, _ := bson.ParseDecimal128(fmt.Sprintf("%d.5", g.IntN(20)))
		return d
	case 8:
		return g.pick(bson.MinKey{}, bson.MaxKey{}, bson.Timestamp{T: 1, I: uint32(g.IntN(3))},
			bson.Binary{Data: []byte{1, byte(g.IntN(3))}},
			bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.Regex{Pattern: "^ab"}, bson.Symbol("abc"))
	default:
		if g.IntN(2) == 0 {
			return g.pick("a", "ab", "abc", "b", "", "abd", "é", "ab\x01")
		}
		return int32(g.IntN(40))
	}
}

func (g gen) value(depth int) any {
	if depth > 0 {
		switch g.IntN(6) {
		case 0:
			var a bson.A
			for range g.IntN(4) {
				a = append(a, g.value(depth-1))
			}
			return append(bson.A{}, a...)
		case 1:
			return g.object(depth - 1)
		}
	}
	return g.scalar()
}

func (g gen) object(depth int) bson.D {
	d := bson.D{}
	for _, k := range []string{"a", "b", "c", "0"} {
		if g.IntN(2) == 0 {
			d = append(d, bson.E{Key: k, Value: g.value(depth)})
		}
	}
	return d
}

func (g gen) path() string {
	return g.pick("a", "b", "c", "a", "b", "a.b", "b.a", "c.c", "a.0", "a.b.c", "nope").(string)
}

func (g gen) condition(depth int) any {
	switch g.IntN(14) {
	case 0, 1, 2:
		return g.value(1)
	case 3, 4, 5:
		return bson.D{{Key: g.pick("$gt", "$gte", "$lt", "$lte").(string), Value: g.orderable()}}
	case 6:
		return bson.D{{Key: "$gte", Value: int32(g.IntN(20))}, {Key: "$lt", Value: int32(20 + g.IntN(20))}}
	case 7:
		in := bson.A{}
		for range g.IntN(4) {
			in = append(in, g.scalar())
		}
		return bson.D{{Key: g.pick("$in", "$nin").(string), Value: in}}
	case 8:
		return bson.D{{Key: "$exists", Value: g.IntN(2) == 0}}
	case 9:
		return bson.D{{Key: "$regex", Value: g.pick("^ab", "b", "^a.c", "^é", "^ab|c", "^(ab)", "^ab?").(string)}}
	case 10:
		if depth > 0 {
			if g.IntN(2) == 0 {
				return bson.D{
					{Key: "$elemMatch", Value: bson.D{
						{Key: "$gte", Value: int32(g.IntN(20))}, {Key: "$lt", Value: int32(20 + g.IntN(20))}}}}
			}
			return bson.D{{Key: "$elemMatch", Value: g.query(depth - 1)}}
		}
		return bson.D{{Key: "$size", Value: g.IntN(3)}}
	case 11:
		return bson.D{{Key: "$ne", Value: g.orderable()}}
	case 12:
		return bson.D{{Key: "$not", Value: bson.D{{Key: "$gt", Value: g.orderable()}}}}
	default:
		return bson.D{{Key: "$all", Value: bson.A{g.value(1), g.scalar()}}}
	}
}

// orderable returns a value that comparisons accept.
func (g gen) orderable() any {
	for {
		if v := g.value(1); !isRegex(v) {
			return v
		}
	}
}

func isRegex(v any) bool { _, ok := v.(bson.Regex); return ok }

func (g gen) query(depth int) bson.D {
	if depth > 0 && g.IntN(4) == 0 {
		var kids bson.A
		for range 1 + g.IntN(3) {
			kids = append(kids, g.query(depth-1))
		}
		return bson.D{{Key: g.pick("$and", "$or", "$or", "$nor").(string), Value: kids}}
	}
	q := bson.D{}
	for range 1 + g.IntN(2) {
		q = append(q, bson.E{Key: g.path(), Value: g.condition(depth)})
	}
	return q
}

// TestFiltersAgainstIndexes: with every access path a query returns the documents that its filter accepts, and a sorted
// query the same documents. mongoapi/filter tests the filter's own semantics.
func TestFiltersAgainstIndexes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := gen{rand.New(rand.NewPCG(seed, 1))}
	cl := start(t).client(t)
	must(t, cl.Database("admin").RunCommand(bg, doc(t, `{"shardCollection":"db.sharded","key":{"k":"hashed"}}`)).Err())
	const n = 400
	var ds []bson.D
	var raw []value.Value
	for i := range n {
		d := append(bson.D{{Key: "_id", Value: int32(i)}, {Key: "k", Value: int32(i % 10)}}, g.object(2)...)
		b, err := bson.Marshal(d)
		must(t, err)
		ds, raw = append(ds, d), append(raw, value.ObjectOf(b))
	}
	for _, name := range []string{"plain", "sharded"} {
		_, err := cl.Database("db").Collection(name).InsertMany(bg, ds)
		must(t, err)
	}
	for i := range 600 {
		q := g.query(2)
		if i%5 == 0 {
			q =
				append(
					q, bson.E{Key: g.pick("_id", "k").(string),
						Value: g.pick(int32(g.IntN(12)), float64(g.IntN(12)),
							bson.D{{Key: "$in", Value: bson.A{1, 2, 3}}}, bson.D{{Key: "$gt", Value: 390}})})
		}
		b, err := bson.Marshal(q)
		must(t, err)
		f, err := filter.Compile(value.ObjectOf(b), filter.Options{})
		var want []int32
		if err == nil {
			for i, d := range raw {
				if ok, _ := f.Match(nil, d); ok {
					want = append(want, int32(i))
				}
			}
		}
		for _, name := range []string{"plain", "sharded"} {
			for _, o := range []*options.FindOptionsBuilder{
				options.Find(), options.Find().SetSort(bson.D{{Key: g.path(), Value: 1 - 2*g.IntN(2)}}).
					SetBatchSize(30)} {
				cur, ferr := cl.Database("db").Collection(name).Find(
					bg, q, o.SetProjection(bson.D{{Key: "_id", Value: 1}}))
				if (ferr == nil) != (err == nil) {
					t.Fatalf("%s: %v, the compiler said %v", text(q), ferr, err)
				}
				if err != nil {
					continue
				}
				var got []int32
				for _, d := range all(t, cur, nil) {
					got = append(got, d[0].Value.(int32))
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("%s on %s\ngot  %v\nwant %v", text(q), name, got, want)
				}
			}
		}
	}
}
