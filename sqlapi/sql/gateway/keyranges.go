package gateway

import (
	"sort"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/sqlapi/sql/syntax"
)

// maxPoints bounds the partition keys that a plan lists. A plan for more keys covers the whole key space.
const maxPoints = 2000

var everything = []keyRange{{"", "FF"}}

// keyRange is a range of effective partition keys in the form that clients see: hexadecimal text, Min inclusive, Max
// exclusive. A single key has Min = Max, and then Max is inclusive.
type keyRange struct{ Min, Max string }

// keyRanges returns the ranges of effective partition keys to which WHERE restricts a query. They are sorted and don't
// overlap. Without a restriction it is the whole key space. For a query without FROM, and for a filter that no key
// satisfies, it is the single key "".
//
// Example with the partition key /city:
//
//	WHERE c.city IN ("a", "b")          two single keys
//	WHERE c.city = "a" AND c.n > 1      one single key
//	WHERE c.city = "a" OR c.n > 1       the whole key space
func keyRanges(q *syntax.Query, p *access.Pred, def core.PartitionKeyDef) []keyRange {
	if q.From == nil {
		return []keyRange{{"", ""}}
	}
	if p == nil {
		return everything
	}
	keys := make([]access.Path, len(def.Paths))
	for i, path := range def.Paths {
		segs, err := core.ParsePath(path)
		if err != nil {
			return everything
		}
		keys[i] = access.NewPath(segs...)
	}
	tuples, ok := keySets(p, keys)
	if !ok {
		return everything
	}
	if len(tuples) == 0 {
		return []keyRange{{"", ""}}
	}
	var out []keyRange
	for _, t := range tuples {
		n := 0
		for n < len(t) && t[n] != nil {
			n++
		}
		if n == 0 || n < len(t) && def.Kind != "MultiHash" {
			return everything
		}
		pk := make(core.PartitionKey, n)
		for i := range pk {
			pk[i] = *t[i]
		}
		if n == len(t) {
			epk := core.EPKText(def, pk)
			out = append(out, keyRange{epk, epk})
		} else {
			r := core.EPKRange(def, pk)
			out = append(out, keyRange{r.Min, r.Max})
		}
	}
	return mergeRanges(out)
}

// mergeRanges sorts ranges and joins overlapping ones.
func mergeRanges(rs []keyRange) []keyRange {
	sort.Slice(rs, func(i, j int) bool {
		return rs[i].Min < rs[j].Min || rs[i].Min == rs[j].Min && rs[i].Max > rs[j].Max
	})
	out := rs[:1]
	for _, r := range rs[1:] {
		last := &out[len(out)-1]
		if r.Min < last.Max || r.Min == last.Min {
			last.Max = max(last.Max, r.Max)
			continue
		}
		out = append(out, r)
	}
	return out
}

// keySets returns the partition keys that can satisfy a predicate, as tuples with one value for each path of the key.
// nil in a tuple means that any value is possible. ok is false when the predicate doesn't restrict the keys.
func keySets(p *access.Pred, keys []access.Path) (tuples [][]*value.Value, ok bool) {
	switch p.Op {
	case access.OpNone:
		return nil, true
	case access.OpIn:
		return keyLeaf(p, keys)
	case access.OpOr:
		for _, k := range p.Kids {
			t, ok := keySets(k, keys)
			if !ok || len(tuples)+len(t) > maxPoints {
				return nil, false
			}
			tuples = append(tuples, t...)
		}
		return tuples, true
	case access.OpAnd:
		for _, k := range p.Kids {
			t, bounded := keySets(k, keys)
			if !bounded {
				continue
			}
			if !ok {
				tuples, ok = t, true
				continue
			}
			if len(tuples)*len(t) > maxPoints {
				continue // the restriction is weaker without k, and still correct
			}
			tuples = combine(tuples, t)
		}
		return tuples, ok
	}
	return nil, false
}

func keyLeaf(p *access.Pred, keys []access.Path) (tuples [][]*value.Value, ok bool) {
	if p.Path.Elements || len(p.Vals) > maxPoints {
		return nil, false
	}
	for i, k := range keys {
		if strings.Join(k.Segs, "\x00") != strings.Join(p.Path.Segs, "\x00") {
			continue
		}
		for j := range p.Vals {
			if v := p.Vals[j]; v.Kind() == value.Array || v.Kind() == value.Object || !v.IsDefined() {
				return nil, false
			}
			t := make([]*value.Value, len(keys))
			t[i] = &p.Vals[j]
			tuples = append(tuples, t)
		}
		return tuples, true
	}
	return nil, false
}

// combine returns the tuples that agree with a tuple of a and a tuple of b.
func combine(a, b [][]*value.Value) [][]*value.Value {
	var out [][]*value.Value
	for _, x := range a {
	next:
		for _, y := range b {
			t := make([]*value.Value, len(x))
			for i := range x {
				switch {
				case x[i] == nil:
					t[i] = y[i]
				case y[i] == nil || value.EqualCosmos(*x[i], *y[i]):
					t[i] = x[i]
				default:
					continue next
				}
			}
			out = append(out, t)
		}
	}
	return out
}
