package mongoapi

import (
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/agg"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/indexes"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// selection compiles the query of count and distinct on a collection, nil if it doesn't exist.
func (r *request) selection(k *coll) (*filter.Filter, error) {
	if err := r.collate(k, args.Given(r.body, "collation")); err != nil {
		return nil, err
	}
	scope, err := r.scope(r.body)
	if err != nil {
		return nil, err
	}
	return filter.Compile(args.Given(r.body, "query"), r.filterOptions(scope))
}

func count(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	k, v, err := r.openRead(r.db, name)
	if err != nil {
		return dst, err
	}
	if r.hasOplog(r.db, name) {
		v = oplogView
	}
	if v != nil {
		return r.countOnView(dst, v)
	}
	f, err := r.selection(k)
	if err != nil {
		return dst, err
	}
	a, err := r.findArgs()
	if err != nil {
		return dst, err
	}
	if k == nil {
		return bson.AppendInt32(dst, "n", 0), nil
	}
	if err := checkHint(k, args.Given(r.body, "hint")); err != nil {
		return dst, err
	}
	n, err := r.count(k, f, a.skip, a.limit)
	return value.AppendElement(dst, "n", value.IntOf(n)), err
}

// count counts the documents of a filter after skip, up to limit (0: all).
func (r *request) count(k *coll, f *filter.Filter, skip, limit int64) (int64, error) {
	if f.All() && !k.HasTTL() && k.tx == nil {
		charge, err := k.SpendCount(feed.Scope{})
		if err != nil {
			return 0, err
		}
		r.charge += charge
		n, err := k.Count(r.ctx)
		if err != nil {
			return 0, err
		}
		n = max(0, n-skip)
		if limit > 0 {
			n = min(n, limit)
		}
		return n, k.Settle()
	}
	src := newSource(k, f, nil, exec.AnyOrder, skip, limit, r.exprEnv())
	coverCount(src.q, f)
	n, err := src.count()
	r.charge += src.charge
	return n, err
}

// valueOverhead is the approximate size in bytes of a value in a set without its own bytes.
const valueOverhead = 128

func distinct(r *request, dst []byte) ([]byte, error) {
	name, err := r.collection()
	if err != nil {
		return dst, err
	}
	key := args.Given(r.body, "key")
	if !key.IsDefined() {
		return dst, merr.New(merr.MissingField, "BSON field 'distinct.key' is missing but a required field")
	}
	if len(key.Bytes()) == 0 {
		return dst, merr.New(40352, "FieldPath cannot be constructed with empty string")
	}
	k, v, err := r.openRead(r.db, name)
	if err != nil {
		return dst, err
	}
	if r.hasOplog(r.db, name) {
		v = oplogView
	}
	docs := agg.Iter(agg.NewSlice(nil))
	if v != nil {
		c, _, err := r.readView(v, "distinct")
		if err != nil {
			return dst, err
		}
		docs = c.src
	} else if err := checkHint(k, args.Given(r.body, "hint")); err != nil {
		return dst, err
	}
	if v == nil {
		f, err := r.selection(k)
		if err != nil {
			return dst, err
		}
		if k != nil {
			shown, err := r.distinctOrder(k, f, key.Str())
			if err != nil {
				return dst, err
			}
			src := newSource(k, f, nil, shown, 0, 0, r.exprEnv())
			if shown == exec.AnyOrder {
				coverDistinct(src.q, f, key.Str())
			}
			docs = src
			defer func() { r.charge += src.charge }()
		}
	}
	defer docs.Close()
	return r.distinctValues(dst, docs, key.Str())
}

// distinctOrder returns the order in which a distinct reads its documents. Of equal values, such as 1 and 1.0, or "a"
// and "A" under a collation, MongoDB shows the one that it meets first. So a collection whose documents come in the
// order of insertion is read in that order, if no index has what the command looks at. Otherwise it is AnyOrder, so
// that only index entries are read.
func (r *request) distinctOrder(k *coll, f *filter.Filter, key string) (exec.Shown, error) {
	if k.distinctIndex(f, key) {
		return exec.AnyOrder, nil
	}
	if n, err := k.Count(r.ctx); err != nil || n > plan.MaxCreation {
		return exec.AnyOrder, err
	}
	return exec.Creation, nil
}

// distinctIndex reports whether MongoDB would read the values at a key from an index: one that has every document,
// begins with the key and has all paths of a filter.
func (k *coll) distinctIndex(f *filter.Filter, key string) bool {
	paths, ok := f.Reads()
	if !ok {
		return false
	}
	for _, s := range append([]value.Value{indexes.OnID()}, k.indexSpecs()...) {
		keys := s.Get("key")
		has := func(p access.Path) bool { return keys.Get(strings.Join(p.Segs, ".")).IsDefined() }
		it := keys.Iter()
		if it.Next() && string(it.Key()) == key && it.Value().IsNumber() && !s.Get("hidden").IsDefined() &&
			!s.Get("sparse").Bool() && !s.Get("partialFilterExpression").IsDefined() &&
			!slices.ContainsFunc(paths, func(p access.Path) bool { return !has(p) }) {
			return true
		}
	}
	return false
}

// distinctValues appends the different values at a path of documents in their order, as MongoDB does since it collects
// them in an ordered set.
func (r *request) distinctValues(dst []byte, docs agg.Iter, key string) ([]byte, error) {
	set := expr.NewSet(r.exprEnv().Run.Collation())
	size := 0
	mem := r.s.eng.Budget().Open("distinct")
	defer mem.Close()
	for {
		d, ok, err := docs.Next()
		if err != nil {
			return dst, err
		}
		if !ok {
			break
		}
		before, had := set.Len(), size
		filter.Visit(d, key, false, func(v value.Value) {
			if size <= maxBatch && !set.Has(v) {
				set.Add(v.Clone())
				size += len(v.Bytes()) + 16
			}
		})
		if size > maxBatch {
			return dst, merr.New(17217, "distinct too big, 16mb cap")
		}
		if err := mem.Grow(int64(size - had + valueOverhead*(set.Len()-before))); err != nil {
			return dst, err
		}
	}
	if err := r.c.room(r.ctx, len(dst)+size, true); err != nil {
		return dst, err
	}
	vs := set.Values()
	slices.SortFunc(vs, order.Comparer(r.exprEnv().Run.Collation()))
	return r.appendAt(value.AppendElement(dst, "values", value.MakeArray(vs))), nil
}
