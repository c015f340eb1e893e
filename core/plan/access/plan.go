package access

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/value"
)

// Kind is the kind of an access path.
type Kind uint8

// Access paths, from the least to the highest cost.
const (
	Nothing Kind = iota // the predicate can't be satisfied
	Points              // Plan.Keys name items and logical partitions
	Index               // scan of the index intervals of Plan.Leaf, or of all Plan.Union, fetching items
	Ordered             // as Index on one leaf, merged over the slots in the order of its values
	Scan                // all items of the ranges
)

// String returns the name of the access path in EXPLAIN.
func (k Kind) String() string {
	return [...]string{"nothing", "points", "index", "ordered index", "scan"}[k]
}

// Key names an item, or with an Undefined ID all items of a logical partition.
type Key struct {
	PK []value.Value
	ID value.Value
}

// Plan is the chosen access path.
type Plan struct {
	Kind  Kind
	Keys  []Key   // Points
	Leaf  *Pred   // Index, Ordered
	Union []*Pred // Index: leaves whose entries together hold every answer
	Both  []*Pred // Index: leaves each of which names every answer
	Why   Reason
	// Covered says that rows are made of the entries; items are fetched only where an entry doesn't hold its whole
	// value. Missing says that items without an entry are rows too, empty ones.
	Covered, Missing bool
}

// Signatures of access paths without a leaf.
const (
	SigScan   = 1
	SigPoints = 2
	SigBoth   = 3 // every intersection
)

// Signature identifies the access path in a continuation. The continuation keeps that path, even if another one would
// be chosen now.
func (p *Plan) Signature() uint32 {
	switch p.Kind {
	case Points:
		return SigPoints
	case Index, Ordered:
		if p.Leaf != nil {
			return Signature(p.Leaf)
		}
		if p.Both != nil {
			return SigBoth
		}
		return Signature(p.Union...)
	}
	return SigScan
}

// Signature distinguishes the orders of index scans. Path and intervals decide at which entry an item with several
// entries is given.
func Signature(leaves ...*Pred) uint32 {
	d := xxhash.New()
	for _, l := range leaves {
		_, _ = d.WriteString(l.Path.String())
		if l.Comp != nil {
			_, _ = d.WriteString(l.Comp.String())
		}
		_, _ = d.Write([]byte{0, byte(l.Op)})
		ivs, _, _ := l.Intervals()
		for i := range ivs {
			_, _ = d.Write(ivs[i].Lo)
			_, _ = d.Write(ivs[i].Hi)
		}
	}
	return uint32(d.Sum64()) | 1<<31
}

// Explain describes the plan in one line.
func (p *Plan) Explain() string {
	if p.Covered {
		if p.Leaf.Comp != nil {
			return fmt.Sprintf("covered %s on composite %s: %s", p.Kind, p.Leaf.Comp, p.Why)
		}
		return fmt.Sprintf("covered %s on %s: %s", p.Kind, p.Leaf.Path, p.Why)
	}
	switch p.Kind {
	case Points:
		return fmt.Sprintf("%s of %d keys: %s", p.Kind, len(p.Keys), p.Why)
	case Index, Ordered:
		if p.Leaf != nil && p.Leaf.Comp != nil {
			return fmt.Sprintf("%s on composite %s: %s", p.Kind, p.Leaf.Comp, p.Why)
		}
		if p.Leaf != nil {
			return fmt.Sprintf("%s on %s%s: %s", p.Kind, p.Leaf.Path, p.Leaf.kind(), p.Why)
		}
		if p.Both != nil {
			return fmt.Sprintf("%s intersection of %d: %s", p.Kind, len(p.Both), p.Why)
		}
		return fmt.Sprintf("%s union of %d: %s", p.Kind, len(p.Union), p.Why)
	}
	return p.Kind.String() + ": " + p.Why.String()
}

// Scalars reports whether all values are defined and none is an array or object. The equality of arrays and objects
// differs between languages.
func Scalars(vs []value.Value) bool {
	for _, v := range vs {
		if !v.IsDefined() || v.Kind() == value.Array || v.Kind() == value.Object {
			return false
		}
	}
	return true
}
