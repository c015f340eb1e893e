package gateway

import (
	"slices"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

func text(s string) value.Value { return value.StringOf(s) }

// The ranges of a plan are those that the filter allows for the partition key. If the filter says too little, they are
// everything.
func TestKeyRanges(t *testing.T) {
	one := core.PartitionKeyDef{Paths: []string{"/pk"}, Kind: "Hash", Version: 2}
	two := core.PartitionKeyDef{Paths: []string{"/pk", "/user"}, Kind: "MultiHash", Version: 2}
	pk, user, other := access.NewPath("pk"), access.NewPath("user"), access.NewPath("other")
	is := func(p access.Path, vs ...string) *access.Pred {
		var vals []value.Value
		for _, v := range vs {
			vals = append(vals, text(v))
		}
		return access.In(p, vals...)
	}
	point := func(def core.PartitionKeyDef, vs ...string) keyRange {
		var key core.PartitionKey
		for _, v := range vs {
			key = append(key, text(v))
		}
		epk := core.EPKText(def, key)
		return keyRange{epk, epk}
	}
	prefix := core.EPKRange(two, core.PartitionKey{text("a")})
	nothing := []keyRange{{"", ""}}
	for name, c := range map[string]struct {
		def  core.PartitionKeyDef
		pred *access.Pred
		want []keyRange
	}{
		"no filter":              {one, nil, everything},
		"another path":           {one, is(other, "a"), everything},
		"a key":                  {one, is(pk, "a"), []keyRange{point(one, "a")}},
		"two keys":               {one, is(pk, "a", "b"), []keyRange{point(one, "a"), point(one, "b")}},
		"a key twice":            {one, access.Or(is(pk, "a"), is(pk, "a")), []keyRange{point(one, "a")}},
		"a key and another path": {one, access.And(is(pk, "a"), is(other, "x")), []keyRange{point(one, "a")}},
		"a key or another path":  {one, access.Or(is(pk, "a"), is(other, "x")), everything},
		"keys that exclude":      {one, access.And(is(pk, "a"), is(pk, "b")), nothing},
		"no item":                {one, access.None(), nothing},
		"both parts":             {two, access.And(is(pk, "a"), is(user, "u")), []keyRange{point(two, "a", "u")}},
		"the first part":         {two, is(pk, "a"), []keyRange{{prefix.Min, prefix.Max}}},
		"the second part":        {two, is(user, "u"), everything},
		"an element":             {one, is(pk.Element(), "a"), everything},
	} {
		slices.SortFunc(c.want, func(a, b keyRange) int {
			if a.Min < b.Min {
				return -1
			}
			return 1
		})
		q := &syntax.Query{From: &syntax.From{}}
		if got := keyRanges(q, c.pred, c.def); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, wanted %v", name, got, c.want)
		}
	}
	if got := keyRanges(&syntax.Query{}, nil, one); !slices.Equal(got, nothing) {
		t.Errorf("without FROM: %v", got)
	}
}

// Overlapping ranges are merged.
func TestMergeRanges(t *testing.T) {
	for _, c := range []struct{ in, want []keyRange }{
		{[]keyRange{{"05", "0A"}, {"", "05"}}, []keyRange{{"", "05"}, {"05", "0A"}}},
		{[]keyRange{{"05", "0A"}, {"06", "0C"}}, []keyRange{{"05", "0C"}}},
		{[]keyRange{{"05", "0F"}, {"06", "07"}}, []keyRange{{"05", "0F"}}},
		{[]keyRange{{"05", "05"}, {"05", "05"}}, []keyRange{{"05", "05"}}},
	} {
		if got := mergeRanges(slices.Clone(c.in)); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, wanted %v", c.in, got, c.want)
		}
	}
}
