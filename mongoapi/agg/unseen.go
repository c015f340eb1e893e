package agg

import "github.com/orrerydb/orrery/core/value"

// byOrder are the accumulators whose result depends on the order of the documents.
var byOrder = map[string]bool{
	"$first": true, "$last": true, "$firstN": true, "$lastN": true, "$push": true, "$addToSet": true,
	"$mergeObjects": true, "$accumulator": true,
}

// unseen reports whether a pipeline gives the same whatever order its first documents come in.
func unseen(specs []value.Value) bool {
	for _, s := range specs {
		it := s.Iter()
		if !it.Next() {
			return false
		}
		switch name := string(it.Key()); {
		case stages[name].order == perDocument:
		case name == "$group":
			return !ordered(it.Value())
		default:
			return stages[name].order == orderless
		}
	}
	return false
}

// ordered reports whether an accumulator of a $group depends on the order of the documents. So does the order of the
// groups themselves, of which nothing is promised.
func ordered(group value.Value) bool {
	for it := group.Iter(); it.Next(); {
		if string(it.Key()) == "_id" || it.Value().Kind() != value.Object {
			continue
		}
		for acc := it.Value().Iter(); acc.Next(); {
			if byOrder[string(acc.Key())] {
				return true
			}
		}
	}
	return false
}
