package compile

import "github.com/orrerydb/orrery/graphapi/gvalue"

// farSteps are the steps that lead from an edge to the vertex at its other end, after those that follow edges.
var farSteps = map[string][2]string{"outE": {"inV", "otherV"}, "inE": {"outV", "otherV"}, "bothE": {"otherV", "otherV"}}

// FarIDs returns the ids to which the steps after a step over edges restrict the vertices at their other ends. ok is
// false if they don't.
//
// Example: it returns 'b' for out('knows').hasId('b'), for outE('knows').where(inV().hasId('b')), with which scripts
// look for an edge before they add it, and for outE('knows').inV().hasId('b').
func FarIDs(op string, rest []gvalue.Instruction) (ids []any, ok bool) {
	for len(rest) > 0 && rest[0].Op == "as" {
		rest = rest[1:]
	}
	far, overEdges := farSteps[op]
	switch {
	case op == "out", op == "in", op == "both":
		return idsAt(rest)
	case !overEdges:
		return nil, false
	}
	if len(rest) > 0 && (rest[0].Op == "where" || rest[0].Op == "filter") && len(rest[0].Args) == 1 {
		b, isTraversal := rest[0].Args[0].(*gvalue.Bytecode)
		if !isTraversal {
			return nil, false
		}
		rest = b.Steps
	}
	if len(rest) == 0 || rest[0].Op != far[0] && rest[0].Op != far[1] {
		return nil, false
	}
	return idsAt(rest[1:])
}

// idsAt returns the ids of a hasId(..), or has(id, ..), that is the first step.
func idsAt(ins []gvalue.Instruction) ([]any, bool) {
	switch {
	case len(ins) == 0:
	case ins[0].Op == "hasId":
		return idsOf(ins[0].Args)
	case ins[0].Op == "has" && len(ins[0].Args) == 2 && (ins[0].Args[0] == gvalue.TID || ins[0].Args[0] == "id"):
		if _, isTraversal := ins[0].Args[1].(*gvalue.Bytecode); !isTraversal {
			return idsOf(ins[0].Args[1:])
		}
	}
	return nil, false
}
