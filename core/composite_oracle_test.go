package core_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// compositeValues are the possible values of the fields in a profile's items, "" for none.
var compositeValues = map[string][]string{
	"inside":  {"0", "1", "2"},
	"numbers": {"0", "1", "2", "-1.5", "3"},
	"mixed":   {"", "null", "true", "false", "1", "-2", `"a"`, `"b"`, `"a\u0000"`},
	"partial": {"", "1", "2", `"x"`},
	"arrays":  {"1", "2", "[1]", "[1,2]", `{"x":1}`, ""},
	"long":    {`"` + strings.Repeat("l", 300) + `"`, `"` + strings.Repeat("l", 301) + `"`, `"l"`, `"m"`},
}

var compositeSets = [][]string{{"a", "-b"}, {"-b", "c"}, {"a", "b", "c"}, {"pk", "-a"}, {"pk", "b", "c"}, {"c", "-_ts"},
	{"n/x", "a"}, {"pk", "t", "-c"}, {"t", "-b"}}

// compositeQuery makes a random query whose filter and order a composite index may or may not serve.
func compositeQuery(t testing.TB, r *rand.Rand, c *core.Container, vals []string) (q exec.Query) {
	var preds []*access.Pred
	fields := []string{"a", "b", "c", "pk", "n.x"}
	pathOf := func(f string) access.Path {
		if f == "_ts" {
			return access.TS
		}
		return access.NewPath(strings.Split(f, ".")...)
	}
	for range r.IntN(4) {
		f := fields[r.IntN(len(fields))]
		path, text := pathOf(f), vals[r.IntN(len(vals))]
		if f == "pk" {
			text = fmt.Sprintf(`"p%d"`, r.IntN(3))
		}
		if text == "" || text[0] == '[' || text[0] == '{' {
			continue
		}
		v, _ := doc.ValueFromJSON([]byte(text))
		b := &access.Bound{Value: v, Inclusive: r.IntN(2) == 0}
		switch r.IntN(4) {
		case 0:
			preds = append(preds, access.Range(path, b, nil))
		case 1:
			preds = append(preds, access.Range(path, nil, b))
		case 2:
			if w, _ := doc.ValueFromJSON([]byte(vals[r.IntN(len(vals))])); f != "pk" &&
				access.Scalars([]value.Value{w}) {
				preds = append(preds, access.In(path, v, w))
				break
			}
			preds = append(preds, access.In(path, v, value.StringOf("p1")))
		default:
			preds = append(preds, access.Eq(path, v))
		}
	}
	q = exec.Query{Pred: access.And(preds...), Compare: value.CompareCosmos, Collation: access.JSONOrder}
	q.Match = func(it *core.Item) (bool, error) { return satisfies(q.Pred, it.Doc), nil }
	if r.IntN(2) == 0 { // sometimes only the first value of a hierarchical key
		q.PK = keyIn(c, mustDoc(t, fmt.Sprintf(`{"id":"","t":"t%d","pk":"p%d"}`, r.IntN(2), r.IntN(3))))
		q.PK = q.PK[:1+r.IntN(len(q.PK))]
	} else if r.IntN(4) == 0 {
		q.Ranges = []epk.Range{{Min: "", Max: fmt.Sprintf("%02X", r.IntN(0x3F))}, {Min: "20", Max: "FF"}}[r.IntN(2):]
	}
	if r.IntN(6) == 0 {
		return q
	}
	set := compositeSets[r.IntN(len(compositeSets))]
	cut, reverse := 0, r.IntN(2) == 0
	if r.IntN(2) == 0 {
		cut = 1
		if f := strings.TrimPrefix(set[0], "-"); r.IntN(2) == 0 && f != "pk" && f != "t" { // its values are merged
			in := access.In(pathOf(strings.ReplaceAll(f, "/", ".")), value.StringOf("none"))
			for range 3 {
				if v, err := doc.ValueFromJSON([]byte(vals[r.IntN(len(vals))])); err == nil &&
					access.Scalars([]value.Value{v}) {
					in.Vals = append(in.Vals, v)
				}
			}
			q.Pred = access.And(q.Pred, in)
		}
	}
	for _, f := range set[cut:] {
		name, desc := strings.CutPrefix(f, "-")
		name = strings.ReplaceAll(name, "/", ".")
		if r.IntN(12) == 0 {
			desc = !desc
		}
		q.OrderBy = append(q.OrderBy, exec.Order{
			Path: pathOf(name), Desc: desc != reverse, Key: func(it *core.Item) value.Value {
				if name == "_ts" {
					return value.IntOf(it.TS())
				}
				return doc.Get(it.Doc, pathOf(name).Segs...)
			}})
	}
	return q
}

// asBSON gives a query the semantics of MongoDB: array elements count, an array sorts by its least element, a missing
// value is null, and the classes have another order.
func asBSON(q *exec.Query) {
	q.Compare, q.Collation = value.CompareBSON, access.BSONOrder
	var read func(p *access.Pred) *access.Pred
	read = func(p *access.Pred) *access.Pred {
		out := *p
		out.Path = p.Path.Element()
		out.Kids = nil
		for _, k := range p.Kids {
			out.Kids = append(out.Kids, read(k))
		}
		return &out
	}
	pred := read(q.Pred)
	q.Pred = pred
	q.Match = func(it *core.Item) (bool, error) { return satisfies(pred, it.Doc), nil }
	for i := range q.OrderBy {
		o := &q.OrderBy[i]
		if o.Path.Segs[0] == access.TS.Segs[0] {
			continue
		}
		o.Path = o.Path.Element()
		segs := o.Path.Segs
		o.Key = func(it *core.Item) value.Value {
			least := value.Undef()
			for _, v := range reach(value.ObjectOf(it.Doc), segs, nil) {
				if !least.IsDefined() || value.CompareBSON(v, least) < 0 {
					least = v
				}
			}
			if !least.IsDefined() {
				return value.NullValue()
			}
			return least
		}
	}
}

func compositeDoc(r *rand.Rand, vals []string, id string) string {
	d := fmt.Sprintf(`{"id":%q,"pk":"p%d","t":"t%d"`, id, int(id[len(id)-1])%3, int(id[len(id)-2])%2)
	for _, f := range []string{"a", "b", "c"} {
		if v := vals[r.IntN(len(vals))]; v != "" {
			d += fmt.Sprintf(`,%q:%s`, f, v)
		}
	}
	if v := vals[r.IntN(len(vals))]; v != "" {
		if n := `{"x":` + v + `}`; (slices.Contains(vals, "[1]") || len(vals) == 3) && r.IntN(3) == 0 {
			d += `,"n":[` + n + `]`
		} else {
			d += `,"n":` + n
		}
	}
	return d + "}"
}

// TestCompositesAgainstSort runs random queries over containers with composite indexes. The rows must be those of a
// scan and a sort, in the same order including ties: for items of one class and of many, with missing, cut and array
// values, in pages, in the orders of two languages, with 1 slot and with 16.
func TestCompositesAgainstSort(t *testing.T) {
	for n, profile := range slices.Sorted(maps.Keys(compositeValues)) {
		for m, slots := range []int{1, 16} {
			kind := []string{"V2", "V1", "MultiHash", "key is id"}[(n+m)%4]
			t.Run(fmt.Sprintf("%s/%d slots/%s", profile, slots, kind), func(t *testing.T) {
				t.Parallel()
				e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: slots})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				def, ok := keyDefs[kind]
				if !ok {
					def = keyIsID
				}
				c := newContainer(t, e, core.ContainerSpec{
					PartitionKey: def, IndexingPolicy: compositePolicy(compositeSets...)})
				r, vals := rand.New(rand.NewPCG(uint64(n), uint64(slots))), compositeValues[profile]
				for i := range 450 {
					id := fmt.Sprintf("i%03d", r.IntN(300))
					d := compositeDoc(r, vals, id)
					put(t, c, core.Upsert, d)
					if i%9 == 3 {
						if _, err := c.Write(
							bg, core.Write{
								Kind: core.Delete, PK: keyIn(c, mustDoc(t, d)), ID: value.StringOf(id)}); err != nil {
							t.Fatal(err)
						}
					}
				}
				taken := map[string]int{}
				trusted := profile == "numbers" || profile == "mixed" || profile == "partial"
				queries := race.Fewer(150, 40) // most of them are sorted again for each page
				if trusted {
					queries = race.Fewer(300, 100)
				}
				for i := range queries {
					q := compositeQuery(t, r, c, vals)
					q.PlanHash = uint64(i)
					if r.IntN(4) == 0 {
						asBSON(&q)
					}
					if r.IntN(2) == 0 { // rows of columns
						q.Needs = pathsOf([]access.Path{access.ID}, q.Pred)
						for _, o := range q.OrderBy {
							q.Needs = pathsOf(q.Needs, access.Exists(o.Path))
						}
					}
					plain := q
					plain.Pred, plain.Needs, plain.Collation = nil, nil, access.AnyOrder
					want := ids(t, c, &plain)
					plan, err := c.Explain(bg, &q)
					if err != nil {
						t.Fatal(err)
					}
					if l := plan.Leaf; l != nil && l.Comp != nil {
						kind := plan.Kind.String()
						if plan.Kind == access.Ordered && l.Comp.Reverse != q.OrderBy[0].Desc {
							kind += " flipped"
						}
						taken[kind]++
						if plan.Covered {
							taken["covered"]++
						}
						if plan.Kind == access.Ordered && l.Comp.Merged() {
							taken["merged"]++
						}
						if len(q.PK) > 0 && len(q.PK) < len(c.KeyPaths()) {
							taken["part of a key"]++
						}
					}
					for _, page := range []int{1, 3, 1000} {
						if page == 1 && (i%10 != 0 || plan.Leaf == nil || plan.Leaf.Comp == nil) {
							continue
						}
						got := paged(t, c, q, page)
						if len(q.OrderBy) == 0 {
							slices.Sort(got)
							slices.Sort(want)
						}
						if !slices.Equal(got, want) {
							t.Fatalf("query %d (%s), pages of %d:\n got %v\nwant %v", i, plan.Explain(),
								page, got, want)
						}
					}
				}
				t.Log(taken)
				many, some := race.Fewer(15, 5), race.Fewer(2, 1)
				few := taken["ordered index"] < many || taken["ordered index flipped"] < some ||
					taken["merged"] <= some || taken["covered"] < many
				if trusted && (few || kind == "MultiHash" && taken["part of a key"] == 0) || len(taken) == 0 {
					t.Errorf("composite indexes were hardly used: %v", taken)
				}
				clean(t, e)
			})
		}
	}
}
