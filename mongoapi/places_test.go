package mongoapi

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestPlacesUnderIndexes: conditions on places give the same documents without an index and under both kinds, and
// nearness gives the order that a naive sort gives.
func TestPlacesUnderIndexes(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	rnd := rand.New(rand.NewPCG(7, 11))
	pair := func() bson.A { return bson.A{rnd.Float64()*360 - 180, rnd.Float64()*180 - 90} }
	at := map[int][2]float64{}
	docs := bson.A{}
	for i := range 600 {
		p := pair()
		at[i] = [2]float64{p[0].(float64), p[1].(float64)}
		var loc any = p
		switch i % 3 {
		case 1:
			loc = bson.D{{Key: "lng", Value: p[0]}, {Key: "lat", Value: p[1]}}
		case 2:
			loc = bson.D{{Key: "type", Value: "Point"}, {Key: "coordinates", Value: p}}
		}
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "loc", Value: loc}})
	}
	must := func(d bson.D) bson.Raw {
		t.Helper()
		raw, e := c.ask(d)
		if e.OK != 1 {
			t.Fatalf("%v: %v", d, e)
		}
		return raw
	}
	for coll, kind := range map[string]string{"none": "", "round": "2dsphere", "flat": "2d"} {
		if kind != "" {
			must(bson.D{{Key: "createIndexes", Value: coll}, {Key: "indexes", Value: bson.A{bson.D{
				{Key: "key", Value: bson.D{{Key: "loc", Value: kind}}}, {Key: "name", Value: "l"}}}}})
		}
		must(bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: docs}})
	}
	ids := func(coll string, cond bson.D) (out []int) {
		t.Helper()
		raw := must(bson.D{{Key: "find", Value: coll}, {Key: "filter", Value: bson.D{{Key: "loc", Value: cond}}},
			{Key: "batchSize", Value: 1000}})
		vs, err := raw.Lookup("cursor", "firstBatch").Array().Values()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vs {
			out = append(out, int(v.Document().Lookup("_id").Int32()))
		}
		return out
	}
	for n := range 60 {
		p, size := pair(), math.Pow(10, rnd.Float64()*3-1)
		x, y := p[0].(float64), p[1].(float64)
		ring := bson.A{}
		for k := range 5 {
			a := float64(k) / 5 * 2 * math.Pi
			ring = append(ring, bson.A{min(180, max(-180, x+size*math.Cos(a))), min(90, max(-90, y+size*math.Sin(a)))})
		}
		polygon := bson.D{{Key: "type", Value: "Polygon"}, {Key: "coordinates", Value: bson.A{append(ring, ring[0])}}}
		shapes := []bson.D{
			{{Key: "$box", Value: bson.A{p, bson.A{x + size, y + size}}}},
			{{Key: "$polygon", Value: ring}},
			{{Key: "$center", Value: bson.A{p, size}}},
			{{Key: "$centerSphere", Value: bson.A{p, size / 57}}},
		}
		if size < 60 && math.Abs(y) < 80 && math.Abs(x) < 150 && size < 20 {
			shapes = append(shapes, bson.D{{Key: "$geometry", Value: polygon}})
		}
		for _, shape := range shapes {
			cond := bson.D{{Key: "$geoWithin", Value: shape}}
			want := ids("none", cond)
			slices.Sort(want)
			for _, coll := range []string{"round", "flat"} {
				got := ids(coll, cond)
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Fatalf("%d, %s: %v gives %v, want %v", n, coll, cond, got, want)
				}
			}
		}
		most := rnd.Float64() * math.Pi
		near := func(dist func(p [2]float64) float64, most float64) (out []int) {
			for i := range at {
				if dist(at[i]) <= most {
					out = append(out, i)
				}
			}
			slices.SortFunc(out, func(a, b int) int { return cmp.Compare(dist(at[a]), dist(at[b])) })
			return out
		}
		sphere := func(q [2]float64) float64 { return haversine(x, y, q[0], q[1]) }
		plane := func(q [2]float64) float64 { return math.Hypot(q[0]-x, q[1]-y) }
		for what, test := range map[string]struct {
			coll string
			cond bson.D
			want []int
		}{
			"metres": {"round", bson.D{{Key: "$near", Value: bson.D{{Key: "$geometry", Value: bson.D{
				{Key: "type", Value: "Point"}, {Key: "coordinates", Value: p}}},
				{Key: "$maxDistance", Value: most * 6378100}}}}, near(sphere, most)},
			"radians": {"round", bson.D{{Key: "$nearSphere", Value: p}, {Key: "$maxDistance", Value: most}},
				near(sphere, most)},
			"radians under 2d": {"flat", bson.D{{Key: "$nearSphere", Value: p}, {Key: "$maxDistance", Value: most}},
				near(sphere, most)},
			"plane": {"flat", bson.D{{Key: "$near", Value: p}, {Key: "$maxDistance", Value: most * 50}},
				near(plane, most*50)},
			"all": {"flat", bson.D{{Key: "$near", Value: p}}, near(plane, math.Inf(1))},
		} {
			if got := ids(test.coll, test.cond); !slices.Equal(got, test.want) {
				t.Fatalf("%d, %s: %v\ngives %v\nwant  %v", n, what, test.cond, got, test.want)
			}
		}
	}
	// the nearest few are found without a scan
	near := bson.D{{Key: "loc", Value: bson.D{{Key: "$nearSphere", Value: bson.A{1, 1}}}}}
	raw := must(bson.D{{Key: "explain", Value: bson.D{{Key: "find", Value: "round"}, {Key: "filter", Value: near},
		{Key: "limit", Value: 3}}}, {Key: "verbosity", Value: "executionStats"}})
	if n := raw.Lookup("executionStats", "totalDocsExamined").AsInt64(); n > 200 {
		t.Errorf("%d documents were read for the nearest 3: %s", n, raw.Lookup("queryPlanner", "winningPlan"))
	}
}

// haversine returns the angle between two places.
func haversine(lng1, lat1, lng2, lat2 float64) float64 {
	const deg = math.Pi / 180
	s, u := math.Sin((lat2-lat1)*deg/2), math.Sin((lng2-lng1)*deg/2)
	return 2 * math.Asin(math.Sqrt(s*s+math.Cos(lat1*deg)*math.Cos(lat2*deg)*u*u))
}

// TestShapesUnderAnIndex: intersections and containment of lines, polygons and collections are the same with and
// without an index.
func TestShapesUnderAnIndex(t *testing.T) {
	_, addr := serve(t, Options{}, nil)
	c := connect(t, addr)
	rnd := rand.New(rand.NewPCG(3, 5))
	shape := func(kind string, coords any) bson.D {
		return bson.D{{Key: "type", Value: kind}, {Key: "coordinates", Value: coords}}
	}
	around := func(n int) (ps bson.A) {
		x, y, size := rnd.Float64()*300-150, rnd.Float64()*140-70, math.Pow(10, rnd.Float64()*2-1)
		from := rnd.Float64()
		for k := range n {
			a := (from + float64(k)/float64(n)) * 2 * math.Pi
			ps = append(ps, bson.A{x + size*math.Cos(a), y + size*math.Sin(a)})
		}
		return ps
	}
	random := func() bson.D {
		ps := around(3 + rnd.IntN(5))
		ring := append(slices.Clone(ps), ps[0])
		switch rnd.IntN(6) {
		case 0:
			return shape("Point", ps[0])
		case 1:
			return shape("MultiPoint", ps)
		case 2:
			return shape("LineString", ps)
		case 3:
			return shape("MultiLineString", bson.A{ps, around(2)})
		case 4:
			return bson.D{{Key: "type", Value: "GeometryCollection"}, {Key: "geometries", Value: bson.A{
				shape("Point", around(1)[0]), shape("Polygon", bson.A{ring})}}}
		}
		return shape("Polygon", bson.A{ring})
	}
	docs := bson.A{}
	for i := range 400 {
		var loc any = random()
		if i%10 == 0 {
			loc = bson.A{random(), random()}
		}
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: bson.D{{Key: "loc", Value: loc}}}})
	}
	must := func(d bson.D) bson.Raw {
		t.Helper()
		raw, e := c.ask(d)
		if e.OK != 1 {
			t.Fatalf("%v: %v", d, e)
		}
		return raw
	}
	must(bson.D{{Key: "createIndexes", Value: "round"}, {Key: "indexes", Value: bson.A{bson.D{
		{Key: "key", Value: bson.D{{Key: "a.loc", Value: "2dsphere"}}}, {Key: "name", Value: "l"}}}}})
	for _, coll := range []string{"none", "round"} {
		must(bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: docs}})
	}
	found := 0
	for range 150 {
		g := random()
		op := "$geoIntersects"
		if g[0].Value == "Polygon" && rnd.IntN(2) == 0 {
			op = "$geoWithin"
		}
		var got [2]string
		for i, coll := range []string{"none", "round"} {
			raw := must(bson.D{{Key: "find", Value: coll}, {Key: "filter", Value: bson.D{{Key: "a.loc", Value: bson.D{
				{Key: op, Value: bson.D{{Key: "$geometry", Value: g}}}}}}}, {Key: "projection", Value: bson.D{
				{Key: "_id", Value: 1}}}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}})
			vs, _ := raw.Lookup("cursor", "firstBatch").Array().Values()
			found += len(vs)
			got[i] = fmt.Sprint(vs)
		}
		if got[0] != got[1] {
			t.Fatalf("%s %v\nwithout an index %s\nwith one         %s", op, g, got[0], got[1])
		}
	}
	if found < 100 {
		t.Fatalf("only %d documents were found in all", found)
	}
}
