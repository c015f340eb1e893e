package sql

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

const (
	earthIndex = `,"spatialIndexes":[{"path":"/loc/?","types":["Point"]},{"path":"/locs/*","types":["Point"]}]}`
	planeIndex = `,"spatialIndexes":[{"path":"/loc/?","types":["Point"],"boundingBox":{"xmin":-200,"ymin":-100,` +
		`"xmax":150,"ymax":80}},` +
		`{"path":"/locs/*","types":["Point"],"boundingBox":{"xmin":0,"ymin":0,"xmax":10,"ymax":10}}]}`
	noPaths = `{"includedPaths":[],"excludedPaths":[{"path":"/*"}]`
)

// spatialContainers returns one container without a spatial index and others with one.
func spatialContainers(t testing.TB, index string) (plain *core.Container, indexed map[string]*core.Container) {
	open := func(slots int, policy string) *core.Container {
		e, err := core.Open(context.Background(), memkv.New(), core.Options{MinSlots: slots})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if problems, err := e.Check(context.Background()); err != nil || len(problems) > 0 {
				t.Errorf("store check: %v %v", problems, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		if _, err := e.CreateDatabase(context.Background(), core.DatabaseSpec{ID: "d"}); err != nil {
			t.Fatal(err)
		}
		c, err := e.CreateContainer(context.Background(), "d",
			core.ContainerSpec{ID: "c", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}},
				IndexingPolicy: []byte(policy)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	return open(16, noPaths+"}"), map[string]*core.Container{
		"1 slot": open(1, noPaths+index), "16 slots": open(16, noPaths+index)}
}

// places generates GeoJSON on the whole earth; many places are near the poles and the antimeridian.
type places struct{ *rand.Rand }

func (p places) center() (x, y float64) {
	switch p.IntN(8) {
	case 0:
		return p.Float64()*360 - 180, 89.5 + p.Float64()/2
	case 1:
		return p.Float64()*360 - 180, -89.5 - p.Float64()/2
	case 2:
		return 179.5 + p.Float64()/2, p.Float64()*160 - 80
	case 3:
		return -179.5 - p.Float64()/2, p.Float64()*160 - 80
	}
	return p.Float64()*360 - 180, math.Asin(p.Float64()*2-1) * 180 / math.Pi
}

func position(x, y float64) string {
	if x > 180 {
		x -= 360
	} else if x < -180 {
		x += 360
	}
	return fmt.Sprintf("[%.7f,%.7f]", x, max(-90, min(90, y)))
}

func (p places) point() string {
	return `{"type":"Point","coordinates":` + position(p.center()) + `}`
}

// ring is about size degrees wide at any latitude.
func (p places) ring(x, y, size float64) string {
	n := 3 + p.IntN(9)
	var ps []string
	for i := range n {
		a := 2 * math.Pi * (float64(i) + p.Float64()*0.8) / float64(n)
		d := size * (0.3 + 0.7*p.Float64())
		ps = append(ps, position(x+d*math.Cos(a)/max(0.02, math.Cos(y*math.Pi/180)), y+d*math.Sin(a)))
	}
	return "[" + strings.Join(append(ps, ps[0]), ",") + "]"
}

// shape returns a geometry that is mostly valid.
func (p places) shape(size float64) string {
	x, y := p.center()
	switch p.IntN(6) {
	case 0:
		return p.point()
	case 1:
		ps := []string{position(x, y)}
		for range 1 + p.IntN(5) {
			ps = append(ps, position(x+size*(p.Float64()-0.5), y+size*(p.Float64()-0.5)))
		}
		return `{"type":"LineString","coordinates":[` + strings.Join(ps, ",") + `]}`
	case 2:
		return `{"type":"MultiPolygon","coordinates":[[` + p.ring(x, y, size/2) + `],[` +
			p.ring(x+size*2, y, size/2) + `]]}`
	case 3:
		return `{"type":"Polygon","coordinates":[` + p.ring(x, y, size) + `,` + p.ring(x, y, size/4) + `]}`
	case 4: // a cap around a pole
		var ps []string
		for a := 0; a < 360; a += 40 {
			ps = append(ps, position(float64(a), 90-size))
		}
		return `{"type":"Polygon","coordinates":[[` + strings.Join(append(ps, ps[0]), ",") + `]]}`
	}
	return `{"type":"Polygon","coordinates":[` + p.ring(x, y, size) + `]}`
}

// document returns an item with a place, or with something else there.
func (p places) document(i int) string {
	loc := p.point()
	switch {
	case i%25 == 0:
		loc = p.shape(math.Pow(10, p.Float64()*5-3))
	case i%25 == 1:
		loc = []string{`{"type":"Point","coordinates":[200,100]}`, `{"type":"Polygon","coordinates":[[[0,0],[1,1],` +
			`[0,1],[1,0],[0,0]]]}`, `{"type":"Point"}`, `"Point"`, "null", "[" + p.point() + "]",
			`{"type":"GeometryCollection","coordinates":[]}`, `[1,2]`}[p.IntN(8)]
	}
	d := fmt.Sprintf(`{"id":"i%d","pk":"p%d","n":%d,"loc":%s`, i, i%7, i%10, loc)
	if i%20 == 0 {
		d += `,"locs":[` + p.point() + `,{"at":` + p.shape(1) + `},` + p.point() + `]`
	}
	return d + "}"
}

// condition returns a filter on places; distances are of the given scale.
func (p places) condition(scale float64) string {
	size := math.Pow(10, p.Float64()*4-2.5)
	at, g := []string{"c.loc", "c.loc", "c.loc", "c.locs[0]", "c.locs[1].at"}[p.IntN(5)], p.shape(size)
	switch p.IntN(9) {
	case 0:
		return "ST_WITHIN(" + at + ", " + g + ")"
	case 1:
		return "ST_INTERSECTS(" + at + ", " + g + ")"
	case 2:
		return "ST_INTERSECTS(" + g + ", " + at + ")"
	case 3:
		return "ST_WITHIN(" + g + ", " + at + ")"
	case 4:
		return fmt.Sprintf("%v >= ST_DISTANCE(%s, %s)", scale*size, g, at)
	case 5:
		return fmt.Sprintf("NOT (ST_DISTANCE(%s, %s) > %v)", at, g, scale*size)
	case 6:
		return fmt.Sprintf("ST_DISTANCE(%s, %s) BETWEEN %v AND %v", at, p.point(), scale*size/2, scale*size)
	case 7:
		return "EXISTS(SELECT VALUE l FROM l IN c.locs WHERE ST_INTERSECTS(l, " + g + "))"
	}
	return fmt.Sprintf("ST_DISTANCE(%s, %s) < %v", at, g, scale*size)
}

func (p places) where(scale float64) string {
	a := p.condition(scale)
	switch p.IntN(6) {
	case 0:
		return a + " AND c.n < 5"
	case 1:
		return a + " OR " + p.condition(scale)
	case 2:
		return "(" + a + " OR " + p.condition(scale) + ") AND c.n != 3"
	}
	return a
}

// TestSpatialIndex: items on the earth, and in a plane whose box contains most of them, have the same results with and
// without a spatial index, in 1 slot and in 16, in one page and in several.
func TestSpatialIndex(t *testing.T) {
	for _, planar := range []bool{false, true} {
		t.Run(fmt.Sprintf("planar=%v", planar), func(t *testing.T) {
			t.Parallel()
			g := places{rand.New(rand.NewPCG(11, 12))}
			index, scale := earthIndex, 111e3
			if planar {
				index, scale = planeIndex, 1
			}
			plain, indexed := spatialContainers(t, index)
			for i := range 4000 {
				d, err := doc.FromJSON(nil, []byte(g.document(i)), doc.JSONOptions{Names: doc.NoSQL})
				if err != nil {
					t.Fatal(err)
				}
				insert(t, plain, d)
				for _, c := range indexed {
					insert(t, c, d)
				}
			}
			env := *testEnv
			env.Planar = planar
			used, answered := 0, 0
			for n := range 60 {
				text := "SELECT VALUE c.id FROM c WHERE " + g.where(scale)
				if n%5 == 0 {
					text += " ORDER BY c.n, c.id"
				}
				req := Request{Explain: true}
				if n%6 == 0 {
					req.PK = core.PartitionKey{value.StringOf("p3")}
				}
				want, _ := spatialRows(t, plain, text, &env, req)
				if len(want) > 0 {
					answered++
				}
				for name, c := range indexed {
					plan := ""
					for _, size := range []int{0, 7} {
						if req.PageSize = size; size > 0 && (len(want) > 200 || strings.HasPrefix(plan, "scan")) {
							continue
						}
						var got []string
						got, plan = spatialRows(t, c, text, &env, req)
						if !slices.Equal(got, want) {
							t.Fatalf("%s, pages of %d: %s\n%d rows, wanted %d (%s)", name, size, text, len(got),
								len(want), plan)
						}
						if strings.Contains(plan, "spatial") || strings.Contains(plan, "union") {
							used++
						}
					}
				}
			}
			if used < 100 || answered < 30 {
				t.Errorf("%d executions used the index, %d queries had rows", used, answered)
			}
		})
	}
}

func spatialRows(t *testing.T, c *core.Container, text string, env *Env, req Request) (rows []string, plan string) {
	t.Helper()
	for {
		pl, err := Compile(text, nil, env)
		if err != nil {
			t.Fatal(err)
		}
		out := &Page{}
		if err := pl.Execute(context.Background(), c, req, out); err != nil {
			t.Fatal(err)
		}
		if out.Count > 0 {
			rows = append(rows, splitRows(string(out.Body))...)
		}
		plan = out.Metrics.Explain
		if req.Continuation = out.Continuation; req.Continuation == "" {
			break
		}
	}
	if !strings.Contains(text, "ORDER BY") {
		slices.Sort(rows)
	}
	return rows, plan
}
