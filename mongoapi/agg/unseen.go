package agg

import "github.com/orrerydb/orrery/core/value"

// byOrder are the accumulators whose result depends on the order of the documents. Example: after $group with {$sum:
// "$a"} the order of the input can't be seen, so the store may read in any order; with {$first: "$a"} it can.
var byOrder = map[string]bool{
	"$first": true, "$last": true, "$firstN": true, "$lastN": true, "$push": true, "$addToSet": true,
	"$mergeObjects": true, "$accumulator": true,
}

// unseen reports whether the result of a pipeline is the same for each order of its input.
func unseen(specs []value.Value) bool {
	for _, s := range specs {
		it := s.Iter()
		if !it.Next() {
			return false
		}
		switch name := string(it.Key()); {
		case stages[name].order == perDocument:
		case stages[name].order == tied:
			if it.Value().Get("_id").IsDefined() { // no documents are equal
				return true
			}
		case name == "$group":
			return !ordered(it.Value())
		default:
			return stages[name].order == orderless
		}
	}
	return false
}

// ordered reports whether an accumulator of a $group depends on the order of the documents. The order of the groups
// depends on it too, but $group promises no order.
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
