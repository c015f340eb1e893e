package agg

import (
	"math"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/vector"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/num"
)

// The service's API for MongoDB on vCores has a search for vectors as an operator of $search. Its options that tune an
// approximate search (nProbes, efSearch, lSearch, oversampling) have no effect here.
//
// Example: {$search: {cosmosSearch: {vector: [1, 0], path: "v", k: 2}, returnStoredSource: true}}.

// leadSearch compiles $search with cosmosSearch. Other operators are of full-text search.
func leadSearch(c *compiler, arg value.Value) (bool, error) {
	spec := arg.Get("cosmosSearch")
	l := &c.out.Lead
	if arg.Kind() != value.Object || !spec.IsDefined() || l.Filter != nil || l.Sort != nil || l.Skip != 0 ||
		l.Limit != 0 {
		return false, nil // the stage itself refuses it
	}
	switch {
	case c.o.Facet:
		return false, inFacet("$search")
	case c.o.Sub && !c.o.Union:
		return false, merr.New(51047, "$search is not allowed within a nested pipeline")
	}
	if spec.Kind() != value.Object {
		return false, merr.New(merr.TypeMismatch, "BSON field '$search.cosmosSearch' is the wrong type '%s', expected "+
			"type 'object'", expr.TypeName(spec))
	}
	for it := arg.Iter(); it.Next(); {
		switch string(it.Key()) {
		case "cosmosSearch", "returnStoredSource", "index", "count":
		default:
			return false, merr.New(merr.CommandNotFound, "Unrecognized $search option: %s", it.Key())
		}
	}
	q, err := cosmosArgs(spec)
	if err != nil {
		return false, err
	}
	var x *VectorIndex
	if c.o.Vectors != nil {
		if x, err = c.o.Vectors(c.o.Coll, "", q.path); err != nil {
			return false, err
		}
	}
	if x == nil {
		return false, merr.New(merr.BadValue, "Similarity index was not found for a vector similarity search query.")
	}
	f := x.Fields[0]
	if f.Dims != q.vector.Dims() {
		return false, merr.New(merr.BadValue, "expected %d dimensions, not %d", f.Dims, q.vector.Dims())
	}
	return true, c.nearest(q, x, f.Metric, cosmosScore(f.Metric))
}

// search is $search where it isn't a lead.
func search(c *compiler, arg value.Value) (stage, error) {
	if arg.Kind() == value.Object && arg.Get("cosmosSearch").IsDefined() {
		return notFirst("$search")(c, arg)
	}
	return atlasOnly("$search")(c, arg)
}

// cosmosArgs reads the arguments of cosmosSearch.
func cosmosArgs(spec value.Value) (q vectorQuery, err error) {
	refuse := func(text string) (vectorQuery, error) { return q, merr.New(merr.BadValue, "%s", text) }
	for it := spec.Iter(); it.Next(); {
		v, ok := it.Value(), false
		switch string(it.Key()) {
		case "path":
			if v.Kind() != value.String {
				return refuse("$path must be a text value")
			}
			if q.path = v.Str(); q.path == "" {
				return refuse("The parameter $path must not be left empty.")
			}
		case "vector":
			if q.vector, ok = vector.Read(v); !ok {
				return refuse("$vector must be an array of numbers.")
			}
			if _, ok = q.vector.Finite(); !ok {
				return refuse("$vector must be an array of numbers.")
			}
			if q.vector.Dims() == 0 {
				return refuse("$vector cannot be an empty array.")
			}
		case "k":
			if !v.IsNumber() {
				return refuse("The parameter $k should always hold a valid integer value.")
			}
			if q.limit, _ = num.ToInt64(v, true); q.limit < 1 || q.limit > math.MaxInt32 {
				return refuse("The $k should always be a positive integer value.")
			}
		case "filter":
			if q.filter = v; v.Kind() != value.Object {
				return refuse("$filter must be a document value.")
			}
		case "exact":
			if v.Kind() != value.Bool {
				return refuse("$exact must represent a valid boolean value.")
			}
		}
	}
	switch {
	case q.path == "":
		return refuse("$path is required field for using a vector index.")
	case q.vector == nil:
		return refuse("$vector is required field for using a vector index.")
	case q.limit == 0:
		return refuse("$k is required field for using a vector index.")
	}
	return q, nil
}

// cosmosScore returns the function from a metric to a score: the cosine, the dot product, or the Euclidean distance.
func cosmosScore(m vector.Metric) func(f float64) float64 {
	if m == vector.Squared {
		return math.Sqrt
	}
	return func(f float64) float64 { return f }
}
