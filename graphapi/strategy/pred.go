// Package strategy rewrites a traversal's instructions before they are compiled: decorations that a source asks for
// (PartitionStrategy, SubgraphStrategy, ReadOnlyStrategy), the infix forms of and() and or(), and the folding of
// V().hasLabel(..).has(..) into one look-up that an index can answer.
package strategy

import "github.com/orrerydb/orrery/core/value"

// Op is the kind of a Pred.
type Op uint8

// The kinds of predicate.
const (
	All    Op = iota // everything
	None             // nothing
	And              // all of Subs
	Or               // any of Subs
	Eq               // the path has a value equal to Values[0]
	In               // .. to any of Values
	Range            // .. within Lo and Hi
	Prefix           // .. a string that starts with Values[0]
)

// Bound is an end of a Range.
type Bound struct {
	Value     value.Value
	Inclusive bool
}

// Pred is what an index may be asked for: a superset of what the steps accept, which they check again. Path is over
// stored names; with Element, elements of an array at its first segment count too.
type Pred struct {
	Op      Op
	Path    []string
	Element bool
	Values  []value.Value
	Lo, Hi  *Bound
	Subs    []*Pred
}

// AndOf joins predicates, dropping nil and All ones; nil means All.
func AndOf(ps ...*Pred) *Pred {
	var keep []*Pred
	for _, p := range ps {
		switch {
		case p == nil || p.Op == All:
		case p.Op == None:
			return p
		case p.Op == And:
			keep = append(keep, p.Subs...)
		default:
			keep = append(keep, p)
		}
	}
	switch len(keep) {
	case 0:
		return nil
	case 1:
		return keep[0]
	}
	return &Pred{Op: And, Subs: keep}
}

// OrOf joins alternatives; one that is All makes the whole All (nil).
func OrOf(ps ...*Pred) *Pred {
	var keep []*Pred
	for _, p := range ps {
		switch {
		case p == nil || p.Op == All:
			return nil
		case p.Op == None:
		case p.Op == Or:
			keep = append(keep, p.Subs...)
		default:
			keep = append(keep, p)
		}
	}
	switch len(keep) {
	case 0:
		return &Pred{Op: None}
	case 1:
		return keep[0]
	}
	return &Pred{Op: Or, Subs: keep}
}

// EqOf is equality of a path with a value.
func EqOf(v value.Value, path ...string) *Pred {
	return &Pred{Op: Eq, Path: path, Values: []value.Value{v}}
}

// InOf is membership: None for no values, Eq for one.
func InOf(vs []value.Value, path ...string) *Pred {
	switch len(vs) {
	case 0:
		return &Pred{Op: None}
	case 1:
		return EqOf(vs[0], path...)
	}
	return &Pred{Op: In, Path: path, Values: vs}
}
