package mongoapi

import (
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// prepare gives a filter the indexes that it needs, and the environment the textScore. It fails when there are none.
func (k *coll) prepare(f *filter.Filter, e *expr.Env) error {
	if n := f.Near(); n != nil {
		return k.hasPlaces(n)
	}
	t := f.Text()
	if t == nil {
		return nil
	}
	for _, s := range k.indexSpecs() {
		j := indexes.Words(s)
		if len(j) == 0 || s.Get("hidden").IsDefined() {
			continue
		}
		x := &filter.TextIndex{Words: j[0].Compile()}
		if x.Words == nil {
			continue
		}
		for it := s.Get("weights").Iter(); it.Next(); {
			if w := num.ToFloat(it.Value()); string(it.Key()) == indexes.AllTexts {
				x.Other = w
			} else {
				x.Weights = append(x.Weights, w)
			}
		}
		if k.stable {
			return merr.New(merr.NoQueryPlans, "error processing query: ns=%s: planner returned error :: caused by :: "+
				"failed to use text index to satisfy $text query (if text index is compound, are equality predicates "+
				"given for all prefix fields?)", k.namespace())
		}
		t.Bind(x)
		e.Score = t.Score
		return nil
	}
	return merr.New(merr.IndexNotFound, "text index required for $text query")
}

// hasPlaces returns the error of a nearness that needs an index which the collection doesn't have.
func (k *coll) hasPlaces(n *filter.Near) error {
	kinds := []string{"2dsphere"}
	switch {
	case n.Flat:
		kinds = []string{"2d"}
	case n.Either:
		kinds = append(kinds, "2d")
	}
	for _, s := range k.indexSpecs() {
		for _, p := range indexes.Places(s, kinds...) {
			if p == n.Path && !s.Get("hidden").IsDefined() {
				return nil
			}
		}
	}
	return merr.New(merr.NoQueryPlans, "error processing query: ns=%s Tree: GEONEAR  field=%s\nSort: {}\nProj: {}\n "+
		"planner returned error :: caused by :: unable to find index for $geoNear query", k.namespace(), n.Path)
}

// nearOrder is the order of the distances from a place. The condition is exact, so each document has a distance.
func nearOrder(n *filter.Near) exec.Order {
	o := n.Order()
	return exec.Order{Path: o.Path, Near: o, Key: func(it *core.Item) value.Value {
		d, _, ok := n.Distance(value.ObjectOf(it.Doc))
		if !ok {
			return value.NullValue()
		}
		return value.DoubleOf(d)
	}}
}

// placeIndex returns the path of a collection's only index on places. If it has 2d indexes, those count.
func (r *request) placeIndex(name string) (string, error) {
	k, err := r.open(r.db, name)
	if err != nil {
		return "", err
	}
	if k != nil {
		for _, kind := range []string{"2d", "2dsphere"} {
			var all []string
			for _, s := range k.indexSpecs() {
				if !s.Get("hidden").IsDefined() {
					all = append(all, indexes.Places(s, kind)...)
				}
			}
			switch len(all) {
			case 0:
			case 1:
				return all[0], nil
			default:
				return "", merr.New(merr.IndexNotFound, "There is more than one %s index on %s; unsure which to use "+
					"for $geoNear", kind, k.namespace())
			}
		}
	}
	return "", merr.New(merr.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
}
