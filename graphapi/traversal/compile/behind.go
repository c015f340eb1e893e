package compile

import (
	"math"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// What a step may spare itself is told by the steps behind it.

// UpTo is the upper bound of a limit() or range() over traversers; ok is false for other steps, and without a bound.
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

// oneForOne are the steps that give one result for each traverser, with the modulators of those steps.
var oneForOne = map[string]bool{"as": true, "by": true, "elementMap": true, "id": true, "identity": true, "label": true,
	"propertyMap": true, "valueMap": true, "with": true}

// Taken is how many of the elements that V() or E() gives are taken at most, given the steps behind it; 0: all. Of the
// results of the whole traversal atEnd are.
//
// Example: of g.V().as('a').valueMap().limit(5) five are.
func Taken(rest []gvalue.Instruction, atEnd int) int {
	for _, in := range rest {
		if !oneForOne[in.Op] {
			n, _ := UpTo(in)
			return n
		}
	}
	return atEnd
}

// OnlyCounted reports whether all that is done with what V() or E() gives is to count it.
func OnlyCounted(rest []gvalue.Instruction) bool {
	return len(rest) > 0 && rest[0].Op == "count" && len(rest[0].Args) == 0
}

// stops are the steps behind which not all of what they are given is read, or its order doesn't count.
var stops = map[string]bool{"limit": true, "range": true, "timeLimit": true, "count": true, "sum": true, "min": true,
	"max": true, "mean": true, "order": true, "drop": true, "discard": true, "none": true}

// collects are the steps that read all that they are given, and keep its order.
var collects = map[string]bool{"fold": true, "aggregate": true, "group": true, "tree": true, "tail": true}

// handsOn are the steps whose nested traversals give what the step gives, to the last result; repeat() is another.
var handsOn = map[string]bool{"coalesce": true, "flatMap": true, "local": true, "optional": true, "union": true}

// HandsOn reports whether the nested traversals of a step give what the step gives, to the last result; repeat() does
// so too.
func HandsOn(op string) bool { return handsOn[op] }

// Order says of the steps behind a place whether the order of what they are given counts, and all of it is read.
type Order uint8

// What an Order may be.
const (
	AsAtEnd Order = iota // as of what the whole traversal gives
	Counts
	Ignored
)

// Orders returns the Order of each place of a traversal: of its steps from i on at i. It looks at each step once.
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
		case !local && stops[in.Op]:
			out[i] = Ignored
		default:
			out[i] = out[i+1]
		}
	}
	return out
}

// pathSteps are the steps that look back at where a traverser was.
var pathSteps = map[string]bool{
	"as": true, "path": true, "simplePath": true, "cyclicPath": true, "tree": true, "otherV": true,
	"match": true, "withPath": true, "subgraph": true,
}

// NeedsPaths reports whether a step, at any depth, asks for paths.
func NeedsPaths(ins []gvalue.Instruction) bool {
	for _, in := range ins {
		if pathSteps[in.Op] {
			return true
		}
		for _, a := range in.Args {
			switch v := a.(type) {
			case *gvalue.Bytecode:
				if NeedsPaths(v.Steps) {
					return true
				}
			case *gvalue.Map:
				for _, e := range v.Entries() {
					if b, ok := e.Value.(*gvalue.Bytecode); ok && NeedsPaths(b.Steps) {
						return true
					}
				}
			}
		}
	}
	return false
}
