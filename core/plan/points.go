package plan

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// maxKeys is the largest number of points that a query is turned into.
const maxKeys = 10000

// pointKeys returns the logical partitions that a filter is restricted to, or items where the filter names ids too. It
// returns nil when the filter isn't restricted to keys.
//
// Example: pk IN ("a", "b") AND id = 1 names two items. (pk = "a") OR (pk = "b" AND id = 1) names a logical partition
// and an item. Neither needs the index.
func (x *chooser) pointKeys(p *access.Pred) []access.Key {
	if p == nil {
		return nil
	}
	if p.Op == access.OpOr {
		var out []access.Key
		for _, k := range p.Kids {
			ks := x.conjunctKeys(k.Conjuncts())
			if ks == nil || len(out)+len(ks) > maxKeys {
				return nil
			}
			out = append(out, ks...)
		}
		return out
	}
	return x.conjunctKeys(p.Conjuncts())
}

func (x *chooser) conjunctKeys(cs []*access.Pred) []access.Key {
	paths := x.KeyPaths()
	if x.equalTo(cs, paths[0]) == nil {
		return nil
	}
	out := []access.Key{{}}
	for _, segs := range paths {
		vals := x.equalTo(cs, segs)
		if vals == nil || len(out)*len(vals) > maxKeys {
			return nil
		}
		next := make([]access.Key, 0, len(out)*len(vals))
		for _, k := range out {
			for _, v := range vals {
				next = append(next, access.Key{PK: append(k.PK[:len(k.PK):len(k.PK)], v)})
			}
		}
		out = next
	}
	ids := x.equalTo(cs, access.ID.Segs)
	if ids == nil || len(out)*len(ids) > maxKeys {
		return out
	}
	next := make([]access.Key, 0, len(out)*len(ids))
	onlyID := len(x.KeyPaths()) == 1 && isID(x.KeyPaths()[0])
	for _, k := range out {
		if onlyID { // the key is the id
			next = append(next, access.Key{PK: k.PK, ID: k.PK[0]})
			continue
		}
		for _, id := range ids {
			next = append(next, access.Key{PK: k.PK, ID: id})
		}
	}
	return next
}

// KeysNamed returns the partition keys that a filter is restricted to, each with the values of all paths of the key or
// of the first ones. It returns nil when the filter isn't restricted, or is restricted to more than most keys.
//
// Example: with the paths tenant and user, tenant = "a" AND user IN (1, 2) names the keys (a, 1) and (a, 2), and
// tenant = "a" names the keys that begin with a.
func KeysNamed(st Stats, p *access.Pred, most int) [][]value.Value {
	x := chooser{Stats: st}
	switch {
	case p == nil:
		return nil
	case p.Op != access.OpOr:
		return x.keysNamed(p.Conjuncts(), most)
	}
	var out [][]value.Value
	for _, k := range p.Kids {
		ks := x.keysNamed(k.Conjuncts(), most)
		if out = append(out, ks...); ks == nil || len(out) > most {
			return nil
		}
	}
	return out
}

// keysNamed is KeysNamed for a conjunction.
func (x *chooser) keysNamed(cs []*access.Pred, most int) (out [][]value.Value) {
	for _, segs := range x.KeyPaths() {
		vals := x.equalTo(cs, segs)
		if vals == nil || max(1, len(out))*len(vals) > most {
			break // what the paths before demand is a weaker restriction, and right
		}
		if out == nil {
			out = [][]value.Value{nil}
		}
		next := make([][]value.Value, 0, len(out)*len(vals))
		for _, k := range out {
			for _, v := range vals {
				next = append(next, append(k[:len(k):len(k)], v))
			}
		}
		out = next
	}
	return out
}

// equalTo returns the values that a conjunction demands at a path of the identity, nil when it demands none.
func (x *chooser) equalTo(cs []*access.Pred, segs []string) []value.Value {
	for _, c := range cs {
		if c.Op == access.OpIn && slices.Equal(c.Path.Segs, segs) && x.namesKey(c) {
			return c.Vals
		}
	}
	return nil
}

// namesKey reports whether every item that satisfies an equality has one of the equality's values as its key. It
// refuses arrays, objects and missing values, values of another kind that a language reads as equal to these, and
// elements of an array.
func (x *chooser) namesKey(c *access.Pred) bool {
	if !access.Scalars(c.Vals) || c.Foreign && x.KeysMayBeForeign() {
		return false
	}
	if c.Path.Elements && !isID(c.Path.Segs) {
		return x.IndexReady() && x.Policy().Covers(c.Path.Segs, true) && !x.MayHoldElements(c.Path)
	}
	return true
}

// idKeys returns the items that a filter names inside one logical partition, nil when it names none.
//
// Example: with partition key "p", id IN (1, 2) names two items, whatever else the filter demands.
func (x *chooser) idKeys() []access.Key {
	if !x.r.HasPK {
		return nil
	}
	for _, c := range x.cs {
		if c.Op == access.OpIn && isID(c.Path.Segs) && !(c.Foreign && x.KeysMayBeForeign()) && access.Scalars(c.Vals) {
			ks := make([]access.Key, len(c.Vals))
			for i, id := range c.Vals {
				ks[i] = access.Key{PK: x.r.PK, ID: id}
			}
			return ks
		}
	}
	return nil
}

func isID(segs []string) bool { return len(segs) == 1 && segs[0] == access.ID.Segs[0] }
