package indexes

import (
	"bytes"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/args"
	"github.com/orrerydb/orrery/mongoapi/expr"
	"github.com/orrerydb/orrery/mongoapi/filter"
	"github.com/orrerydb/orrery/mongoapi/merr"
	"github.com/orrerydb/orrery/mongoapi/order"
)

// A compound index refuses documents in which two of its paths lead through different arrays, because there would be
// an entry for each pair of their elements. Unique ones are the core's, which refuses such documents itself. The others
// need no entries here that could become so many: only MongoDB's API refuses these documents, as MongoDB does.
//
//	{a: [1, 2], b: 3}                 under {a: 1, b: 1}       allowed
//	{a: [1, 2], b: [3]}               under {a: 1, b: 1}       171
//	{a: [{x: 1, y: 2}, {x: 3}]}       under {a.x: 1, a.y: 1}   one array: allowed
//
// So that other collections don't pay for that check, the container's property compoundsProperty has the documents of
// these indexes: a BSON array.
const compoundsProperty = "mongo.compounds"

// isCompound reports whether an index is compound, and its entries are made by MongoDB API's rules alone.
func isCompound(spec value.Value) bool {
	key := spec.Get("key")
	if key.Len() < 2 || args.Flag(spec, "unique", false) {
		return false
	}
	for it := key.Iter(); it.Next(); {
		if !it.Value().IsNumber() || bytes.Contains(it.Key(), []byte("$**")) {
			return false // indexes on places have an entry for each pair, and those of texts and hashes refuse arrays
		}
	}
	return true
}

// setCompounds records the compound indexes of a container.
func setCompounds(s *core.ContainerSpec, specs []value.Value) {
	delete(s.Properties, compoundsProperty)
	var all []value.Value
	for _, d := range specs {
		if isCompound(d) {
			all = append(all, d)
		}
	}
	if all != nil {
		s.Properties[compoundsProperty] = value.MakeArray(all).Bytes()
	}
}

// checkCompounds refuses a document that a compound index can't have. It allocates nothing for a document in which at
// most one path of each index leads through an array.
func checkCompounds(s *core.ContainerSpec, d value.Value) error {
	all := s.Properties[compoundsProperty]
	if len(all) == 0 {
		return nil
	}
	for it := value.ArrayOf(all).Iter(); it.Next(); {
		spec := it.Value()
		arrays := 0
		for path := spec.Get("key").Iter(); path.Next(); {
			if order.ThroughArray(d, path.Key()) {
				arrays++
			}
		}
		if arrays < 2 {
			continue
		}
		if err := parallelIn(d, spec); err != nil {
			return err
		}
	}
	return nil
}

// parallelIn returns the error for a document with several arrays at the paths of an index, nil if the index can have
// it.
func parallelIn(d, spec value.Value) error {
	if only := spec.Get("partialFilterExpression"); only.IsDefined() {
		f, err := filter.Compile(only, filter.Options{})
		if err != nil {
			return err
		}
		if in, err := f.Match(&expr.Env{}, d); err != nil || !in {
			return err
		}
	}
	var paths [][]string
	for it := spec.Get("key").Iter(); it.Next(); {
		paths = append(paths, strings.Split(string(it.Key()), "."))
	}
	if a, b, bad := order.Parallel(d, paths); bad {
		return merr.New(merr.CannotIndexParallelArrays, "cannot index parallel arrays [%s] [%s]", b, a)
	}
	return nil
}
