package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// keyDefs are the kinds of partition keys.
var keyDefs = map[string]core.PartitionKeyDef{
	"V1":        {Paths: []string{"/pk"}, Kind: "Hash", Version: 1},
	"V2":        {Paths: []string{"/pk"}, Kind: "Hash", Version: 2},
	"MultiHash": {Paths: []string{"/t", "/pk"}, Kind: "MultiHash", Version: 2},
}

// keyIsID defines the id as the partition key.
var keyIsID = core.PartitionKeyDef{Paths: []string{"/id"}, Kind: "Hash", Version: 2}

// TestRanges divides the space of effective partition keys at slot boundaries, at keys and between them. Each item is
// in exactly one part, by its published key, by scan and by index, also over pages.
func TestRanges(t *testing.T) {
	for name, def := range keyDefs {
		t.Run(name, func(t *testing.T) {
			e, _ := hooked(t, core.Options{MinSlots: 4})
			c := newContainer(t, e, core.ContainerSpec{PartitionKey: def, Throughput: core.Throughput{Manual: 20000}})
			texts := map[string]string{} // id -> effective partition key
			for i := range 120 {
				d := mustDoc(t, fmt.Sprintf(`{"id":"%03d","t":"t%d","pk":"p%d","n":%d}`, i, i%3, i%40, i%2))
				r, err := c.Write(bg, core.Write{Kind: core.Create, Doc: d})
				if err != nil {
					t.Fatal(err)
				}
				texts[r.Item.ID().Str()] = core.EPKText(def, r.Item.PK())
			}
			some := slices.Sorted(func(yield func(string) bool) {
				for _, s := range texts {
					if !yield(s) {
						return
					}
				}
			})
			cuts := []string{partitionsOf(c)[0].Max, some[10], some[11] + "00", some[40] + "01", some[70], some[100]}
			slices.SortFunc(cuts, epk.CompareText)
			min := ""
			for _, max := range append(cuts, "FF") {
				rs := []epk.Range{{Min: min, Max: strings.ToLower(max)}}
				checkRange(t, c, rs, texts)
				min = max
			}
			for _, rs := range [][]epk.Range{
				{epk.Full},
				{{Min: "", Max: "FF"}, {Min: cuts[1], Max: cuts[3]}},         // overlap
				{{Min: cuts[3], Max: cuts[4]}, {Min: cuts[0], Max: cuts[1]}}, // out of order, two parts of a slot
				{{Min: cuts[0], Max: cuts[1]}, {Min: cuts[1], Max: cuts[2]}}, // touch
				{{Min: "FF", Max: "FFFF"}}, {{Min: "FF", Max: "FF"}}, {},     // nothing
				{{Min: cuts[2], Max: cuts[1]}}, {{Min: some[5], Max: some[5] + "FF"}}, // empty, one key
			} {
				checkRange(t, c, rs, texts)
			}
			_, err := c.Query(bg, &exec.Query{Ranges: []epk.Range{{Min: "zz", Max: "zzzz"}, {Min: "0g", Max: "FF"}}})
			wantCode(t, err, status.BadRequest, 0)
		})
	}
}

// checkRange compares queries over ranges with the items' published keys, for all access paths and page sizes.
func checkRange(t *testing.T, c *core.Container, rs []epk.Range, texts map[string]string) {
	t.Helper()
	var want []string
	for id, text := range texts {
		if slices.ContainsFunc(rs, func(r epk.Range) bool {
			r.Min, r.Max = strings.ToUpper(r.Min), strings.ToUpper(r.Max)
			return epk.CompareText(r.Min, "FF") < 0 && r.Contains(text)
		}) {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	n := access.NewPath("n")
	for name, q := range map[string]exec.Query{
		"scan":  {},
		"index": {Pred: access.In(n, value.Int32Of(0), value.Int32Of(1))},
		"union": {
			Pred: access.Or(access.Eq(n, value.Int32Of(0)),
				access.Range(n, &access.Bound{Value: value.Int32Of(1), Inclusive: true}, nil))},
		"ordered": {Pred: access.In(n, value.Int32Of(0), value.Int32Of(1)),
			OrderBy: []exec.Order{{Path: n, Desc: true}}, Compare: value.CompareCosmos},
	} {
		q.Ranges = rs
		for _, page := range []int{3, 1000} {
			got := paged(t, c, q, page)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%s, %v, pages of %d:\n got %v\nwant %v", name, rs, page, got, want)
			}
		}
	}
}

// A partition key and ranges restrict a query together.
func TestRangeAndKey(t *testing.T) {
	for name, def := range keyDefs {
		t.Run(name, func(t *testing.T) {
			e, _ := hooked(t, core.Options{})
			c := newContainer(t, e, core.ContainerSpec{PartitionKey: def})
			var keys []core.PartitionKey
			for i := range 30 {
				r := put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","t":"t","pk":"p%d"}`, i, i))
				keys = append(keys, r.Item.PK())
			}
			one := core.EPKRange(def, keys[3])
			if got := ids(t, c, &exec.Query{PK: keys[3], Ranges: []epk.Range{one}}); !slices.Equal(got, []string{"3"}) {
				t.Errorf("a key in its own range: %v", got)
			}
			if got := ids(t, c, &exec.Query{PK: keys[4], Ranges: []epk.Range{one}}); len(got) != 0 {
				t.Errorf("a key in the range of another: %v", got)
			}
			if len(def.Paths) > 1 {
				if got := ids(t, c, &exec.Query{PK: keys[0][:1], Ranges: []epk.Range{one}}); !slices.Equal(
					got, []string{"3"}) {
					t.Errorf("a prefix in the range of a key: %v", got)
				}
			}
			_, err := c.Query(bg, &exec.Query{PK: append(keys[0][:len(keys[0]):len(keys[0])], value.StringOf("more"))})
			wantCode(t, err, status.BadRequest, status.SubPartitionKeyMismatch)
		})
	}
}
