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
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// rangeValues are the possible values of the fields in a profile's items, "" for none. Those with a $ are of kinds that
// JSON lacks.
var rangeValues = map[string][]string{
	"numbers": {"0", "1", "2", "3", "-1.5", "7"},
	"scalars": {"null", "true", "false", "1", "-2", "3.5", `"a"`, `"b"`, `"a\u0000"`, `""`},
	"missing": {"", "null", "false", "1", "2", `"a"`, `"b"`},
	"all":     {"", "null", "true", "1", "2", `"a"`, "[1]", `[2,"b"]`, "{}", `{"x":1}`},
	"long":    {`"` + strings.Repeat("l", 300) + `"`, `"` + strings.Repeat("l", 301) + `"`, `"l"`, `"m"`, "1"},
	"foreign": {"1", `"a"`, `{"$date":"2020-01-01T00:00:00Z"}`, `{"$oid":"0123456789abcdef01234567"}`, "null",
		`{"$numberDecimal":"1.5"}`, `{"$minKey":1}`},
}

// randomRanges returns a condition on one or two paths, and its exact meaning.
func randomRanges(t testing.TB, r *rand.Rand, vals, fields []string, depth int) (*access.Pred, func(doc.Doc) bool) {
	if depth > 0 {
		var ps []*access.Pred
		var fs []func(doc.Doc) bool
		and := r.IntN(3) == 0
		for range 2 + r.IntN(3) {
			p, f := randomRanges(t, r, vals, fields, r.IntN(depth))
			ps, fs = append(ps, p), append(fs, f)
		}
		holds := func(d doc.Doc) bool {
			return slices.ContainsFunc(fs, func(f func(doc.Doc) bool) bool { return f(d) != and }) != and
		}
		if and {
			return access.And(ps...), holds
		}
		return access.Or(ps...), holds
	}
	field := fields[r.IntN(len(fields))]
	path, elements := access.NewPath(field), r.IntN(6) == 0
	if elements {
		path = path.Element()
	}
	at := func(f func(v value.Value) bool) func(doc.Doc) bool {
		return func(d doc.Doc) bool {
			if v := doc.Get(d, field); !elements {
				return f(v)
			}
			return slices.ContainsFunc(reach(value.ObjectOf(d), path.Segs, nil), f)
		}
	}
	random := func() value.Value {
		text := vals[r.IntN(len(vals))]
		if text == "" {
			return value.Undef()
		}
		v, err := doc.ValueFromExtJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := random()
	switch k := r.IntN(5); {
	case k == 0 && !elements:
		return access.Eq(path, value.Undef()), at(func(v value.Value) bool { return !v.IsDefined() })
	case k == 1 || !v.IsDefined() || v.Kind() == value.Array || v.Kind() == value.Object:
		return access.Exists(path), at(func(v value.Value) bool { return v.IsDefined() })
	case k == 2:
		w := value.BoolOf(true)
		return access.In(path, v, w), at(func(x value.Value) bool {
			return value.EqualCosmos(x, v) || value.EqualCosmos(x, w)
		})
	default:
		b, up := &access.Bound{Value: v, Inclusive: r.IntN(2) == 0}, r.IntN(2) == 0
		p := access.Range(path, b, nil)
		if up {
			p = access.Range(path, nil, b)
		}
		return p, at(func(x value.Value) bool {
			c := value.CompareCosmos(x, v)
			return x.Class() == v.Class() && (c == 0 && b.Inclusive || c != 0 && (c < 0) == up)
		})
	}
}

// TestRangesAgainstSort runs random disjunctions on the paths of random orders. The rows must be those of a scan and a
// sort, in the same order including ties: for items of one class and of many, with missing, cut and array values, and
// such of kinds that JSON lacks, over indexes of one path and of two, in pages, with 1 slot and with 16.
func TestRangesAgainstSort(t *testing.T) {
	policies := map[string][]byte{"all": nil, "composite": compositePolicy([]string{"a", "-b"}),
		"exact": []byte(`{"includedPaths":[{"path":"/a/?"},{"path":"/b/?"}],"excludedPaths":[{"path":"/*"}]}`)}
	for n, profile := range slices.Sorted(maps.Keys(rangeValues)) {
		for m, policy := range slices.Sorted(maps.Keys(policies)) {
			slots := []int{1, 16}[(n+m)%2]
			t.Run(fmt.Sprintf("%s/%s/%d slots", profile, policy, slots), func(t *testing.T) {
				t.Parallel()
				e, err := core.Open(bg, kv.Checked(memkv.New()), core.Options{MinSlots: slots})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				c := newContainer(t, e, core.ContainerSpec{PartitionKey: keyDefs["V2"],
					IndexingPolicy: policies[policy]})
				r, vals := rand.New(rand.NewPCG(uint64(n), uint64(m))), rangeValues[profile]
				for i := range 200 {
					d := fmt.Sprintf(`{"_id":"i%03d","pk":"p%d"`, i, i%3)
					for _, f := range []string{"a", "b"} {
						if v := vals[r.IntN(len(vals))]; v != "" {
							d += fmt.Sprintf(`,%q:%s`, f, v)
						}
					}
					raw, err := doc.FromExtJSON(nil, []byte(d+"}"))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: raw}); err != nil {
						t.Fatal(err)
					}
				}
				taken := 0
				for i := range race.Fewer(80, 40) {
					order, fields := []string{"a"}, []string{"a"}
					if policy == "composite" && i%2 == 0 {
						order, fields = []string{"a", "b"}, []string{"a", "a", "b"}
					}
					pred, holds := randomRanges(t, r, vals, fields, 1+r.IntN(2))
					if r.IntN(5) == 0 { // one more condition, which the ranges don't have
						pk := value.StringOf(fmt.Sprintf("p%d", r.IntN(3)))
						f := holds
						holds = func(d doc.Doc) bool { return f(d) && value.EqualCosmos(doc.Get(d, "pk"), pk) }
						pred = access.And(pred, access.Exists(access.NewPath("pk")))
					}
					desc := r.IntN(2) == 0
					q := exec.Query{Pred: pred, PlanHash: uint64(i), Compare: value.CompareCosmos,
						Collation: access.JSONOrder, OrderBy: orderBy(desc, order...),
						Match: func(it *core.Item) (bool, error) { return holds(it.Doc), nil }}
					if len(order) == 2 {
						q.OrderBy[1].Desc = !desc
					}
					if i%3 == 0 { // rows of entries
						q.Needs = pathsOf([]access.Path{access.ID, access.NewPath("pk")}, pred)
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
					if plan.Kind == access.Ordered && (plan.Why == access.RangesAndOrder || plan.Leaf.Comp != nil &&
						plan.Leaf.Comp.Merged()) {
						taken++
					}
					for _, page := range []int{1, 7, 1000} {
						if page == 1 && i%10 != 0 {
							continue
						}
						if got := paged(t, c, q, page); !slices.Equal(got, want) {
							t.Fatalf("query %d, %s (%s), pages of %d:\n got %v\nwant %v", i, pred, plan.Explain(),
								page, got, want)
						}
					}
				}
				t.Log(taken)
				if (profile == "numbers" || profile == "scalars") && taken < race.Fewer(25, 10) ||
					profile == "missing" && taken < race.Fewer(10, 5) {
					t.Errorf("ranges were taken %d times", taken)
				}
				clean(t, e)
			})
		}
	}
}
