package compile

import (
	"math"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// The steps after a step determine how much of its work is needed.

// UpTo returns the upper bound of a limit() or range() over traversers. ok is false for other steps, and without a
// bound.
func UpTo(in gvalue.Instruction) (n int, ok bool) {
	if in.Op != "limit" && in.Op != "range" || len(in.Args) == 0 {
		return 0, false
	}
	if _, local := in.Args[0].(gvalue.Scope); local {
		return 0, false
	}
	hi, ok := gvalue.Integer(in.Args[len(in.Args)-1])
	if !ok || hi < 1 || hi > math.MaxInt32 {
		return 0, false
	}
	return int(hi), true
}

// oneForOne are the steps with exactly one result for each traverser, and their modulators.
var oneForOne = map[string]bool{"as": true, "by": true, "elementMap": true, "id": true, "identity": true, "label": true,
	"propertyMap": true, "valueMap": true, "with": true}

// Taken returns how many elements of V() or E() are needed at most, given the steps after it; 0: all. atEnd is the
// number of results of the whole traversal that are needed.
//
// Example: for g.V().as('a').valueMap().limit(5) it returns 5.
func Taken(rest []gvalue.Instruction, atEnd int) int {
	for _, in := range rest {
		if !oneForOne[in.Op] {
			n, _ := UpTo(in)
			return n
		}
	}
	return atEnd
}

// Sorted is an order() of elements by a property, or by their ids, of which only the first ones are needed.
type Sorted struct {
	Key  string // "": by ids
	Desc bool
	N    int // how many are needed
	// Outer says that an element counts at the least of its values, or with Desc at the greatest: see EndOf.
	Outer bool
}

// FirstBy returns the order in which the elements of V() or E() are sorted by the steps after it. ok is false if there
// is another step, or if more than most elements are needed.
//
// Example: for g.V().order().by('age', desc).limit(10) it returns age, descending, 10.
func FirstBy(rest []gvalue.Instruction, most int) (s Sorted, ok bool) {
	for len(rest) > 0 && rest[0].Op == "as" {
		rest = rest[1:]
	}
	if len(rest) < 3 || rest[0].Op != "order" || len(rest[0].Args) > 0 || rest[1].Op != "by" {
		return s, false
	}
	by := rest[1].Args
	if len(by) == 2 {
		switch by[1] {
		case gvalue.Asc, gvalue.Incr:
		case gvalue.Desc, gvalue.Decr:
			s.Desc = true
		default:
			return s, false
		}
		by = by[:1]
	}
	if len(by) != 1 {
		return s, false
	}
	switch key, text := by[0].(string); {
	case by[0] == gvalue.TID, key == "id":
	case text && key != "":
		s.Key = key
	default:
		return s, false
	}
	s.N, ok = UpTo(rest[2])
	return s, ok && s.N <= most
}

// EndOf returns the order in which the first element of V() or E() has the value that the steps after it look for:
// values(key) and min() or max(). ok is false if there is another step.
//
// Example: for g.V().values('age').max() it returns age, descending, 1.
func EndOf(rest []gvalue.Instruction) (s Sorted, ok bool) {
	for len(rest) > 0 && rest[0].Op == "as" {
		rest = rest[1:]
	}
	if len(rest) < 2 || rest[0].Op != "values" || len(rest[0].Args) != 1 || len(rest[1].Args) > 0 {
		return s, false
	}
	switch s.Key, _ = rest[0].Args[0].(string); s.Key {
	case "", "id", "label": // the last two are no stored properties
		return s, false
	}
	s.Desc, s.N, s.Outer = rest[1].Op == "max", 1, true
	return s, s.Desc || rest[1].Op == "min"
}

// OnlyCounted reports whether the elements of V() or E() are only counted.
func OnlyCounted(rest []gvalue.Instruction) bool {
	return len(rest) > 0 && rest[0].Op == "count" && len(rest[0].Args) == 0
}

// OnlyLabels reports whether of the elements of V() or E() only the labels are looked at: groupCount().by(label)
// follows.
func OnlyLabels(rest []gvalue.Instruction) bool {
	if len(rest) < 2 || rest[0].Op != "groupCount" || len(rest[0].Args) > 0 {
		return false
	}
	by := rest[1]
	return by.Op == "by" && len(by.Args) == 1 && by.Args[0] == gvalue.TLabel
}

// ends are the steps that read all of their input and for which its order doesn't matter (Ignored), and those that
// don't read all of it (Partly).
var ends = map[string]Order{"limit": Partly, "range": Partly, "timeLimit": Partly, "count": Ignored, "sum": Ignored,
	"min": Ignored, "max": Ignored, "mean": Ignored, "order": Ignored, "drop": Ignored, "discard": Ignored,
	"none": Ignored}

// collects are the steps that read all of their input and keep its order.
var collects = map[string]bool{"fold": true, "aggregate": true, "group": true, "tree": true, "tail": true}

// handsOn are the steps whose results are all results of their nested traversals. repeat() is another one.
var handsOn = map[string]bool{"coalesce": true, "flatMap": true, "local": true, "optional": true, "union": true}

// HandsOn reports whether the results of a step are all results of its nested traversals. This is also true of
// repeat().
func HandsOn(op string) bool { return handsOn[op] }

// Order says, for the steps after a place in a traversal, whether they read all of their input and its order matters.
type Order uint8

// The values of Order.
const (
	AsAtEnd Order = iota // the same as for the results of the whole traversal
	Counts               // they read all, and its order matters
	Ignored              // they read all, in any order
	Partly               // they may read only the first ones
)

// Orders returns the Order of each place of a traversal: element i is for the steps from i on. It looks at each step
// once.
func Orders(ins []gvalue.Instruction) []Order {
	out := make([]Order, len(ins)+1)
	for i := len(ins) - 1; i >= 0; i-- {
		in := &ins[i]
		local := false
		if len(in.Args) > 0 {
			_, local = in.Args[0].(gvalue.Scope)
		}
		switch {
		case !local && collects[in.Op]:
			out[i] = Counts
		case !local && ends[in.Op] != AsAtEnd:
			out[i] = ends[in.Op]
		default:
			out[i] = out[i+1]
		}
	}
	return out
}

// pathSteps are the steps that use the history of a traverser.
var pathSteps = map[string]bool{
	"as": true, "path": true, "simplePath": true, "cyclicPath": true, "tree": true, "otherV": true,
	"match": true, "withPath": true, "subgraph": true,
}

// NeedsPaths reports whether a step, at any depth, uses paths.
func NeedsPaths(ins []gvalue.Instruction) bool {
	return anyStep(ins, func(op string) bool { return pathSteps[op] })
}

// NeedsWholePaths reports whether a step, at any depth, uses objects of paths that have no label.
func NeedsWholePaths(ins []gvalue.Instruction) bool {
	return anyStep(ins, func(op string) bool { return pathSteps[op] && op != "as" })
}

// anyStep reports whether a step, at any depth, satisfies is.
func anyStep(ins []gvalue.Instruction, is func(op string) bool) bool {
	for _, in := range ins {
		if is(in.Op) {
			return true
		}
		for _, a := range in.Args {
			switch v := a.(type) {
			case *gvalue.Bytecode:
				if anyStep(v.Steps, is) {
					return true
				}
			case *gvalue.Map:
				for _, e := range v.Entries() {
					if b, ok := e.Value.(*gvalue.Bytecode); ok && anyStep(b.Steps, is) {
						return true
					}
				}
			}
		}
	}
	return false
}
