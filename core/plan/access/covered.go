package access

import (
	"slices"

	"github.com/orrerydb/orrery/core/value"
)

// A covered query needs no item: what it looks at is in the index entries that it walks anyway. An entry tells the
// value at its path and the item's identity (id, partition key). Entries that don't tell their value (cut strings,
// arrays) name an item that is fetched, one by one.

// CoverSource is what the choice asks about covered answers.
type CoverSource interface {
	// Coverable reports whether entries tell which items there are: not where items can expire.
	Coverable() bool
	// InOneClass reports whether the entries of a path are of one class in all slots, one an item and none cut, so that
	// their order is the order of every language.
	InOneClass(p Path) bool
	// NamesEveryItem reports whether the index has exactly one entry of each item for the value at a path, or for its
	// absence.
	NamesEveryItem(p Path) bool
}

// cover makes a plan of one that is covered already, or makes it cheap to cover: it is asked before anything is
// counted.
func cover(src Source, r Request) (Plan, bool) {
	if !coverable(src, r) || r.Want == SigScan {
		return Plan{}, false
	}
	cs := conjuncts(r.Pred)
	if r.HasPK && len(r.OrderBy) > 0 { // an order beats entries that must be sorted
		if p, ok := compositeInPartition(src, &r, cs); ok && p.Kind == Ordered && covers(src, p.Leaf, r.Needs) {
			p.Covered = true
			return p, true
		}
	}
	if len(cs) == 0 && r.Whole && len(r.Needs) == 1 && !r.HasPK {
		leaf := Exists(r.Needs[0])
		if len(r.OrderBy) == 0 && covers(src, leaf, r.Needs) {
			return Plan{Kind: Index, Leaf: leaf, Covered: true, Missing: true, Why: "the entries and the number of " +
				"items tell all"}, true
		}
	}
	if r.Whole && len(r.OrderBy) == 0 && !r.HasPK {
		if leaf := rangesOf(r.Pred); leaf != nil && covers(src, leaf, r.Needs) {
			return Plan{Kind: Index, Leaf: leaf, Covered: true, Why: "the entries of all alternatives tell all that " +
				"is wanted"}, true
		}
	}
	if len(cs) != 1 || !covers(src, cs[0], r.Needs) {
		return Plan{}, false
	}
	c := cs[0]
	if !r.HasPK && c.Op == OpIn {
		for _, k := range pointKeys(src, r.Pred) {
			if k.ID.IsDefined() {
				return Plan{}, false
			}
		}
	}
	if p, ok := coveredOrder(src, r, cs); ok {
		return p, true
	}
	return Plan{Kind: Index, Leaf: c, Covered: true, Why: "the entries tell all that is wanted"}, true
}

// coveredOrder returns a covered plan whose index order is the wanted order.
func coveredOrder(src Source, r Request, cs []*Pred) (Plan, bool) {
	if r.HasPK {
		return Plan{}, false
	}
	if p, ok := ordered(src, r, cs); ok {
		p.Covered = covers(src, p.Leaf, r.Needs)
		return p, p.Covered
	}
	c := cs[0]
	if len(r.OrderBy) == 1 && c.Op == OpExists && slices.Equal(c.Path.Segs, r.OrderBy[0].Segs) &&
		src.InOneClass(c.Path) {
		return Plan{Kind: Ordered, Leaf: c, Covered: true, Why: "the entries tell all that is wanted, in its order"},
			true
	}
	return Plan{}, false
}

// Cover marks a plan whose entries tell all that is wanted, and replaces a scan by the walk of such entries.
func Cover(src Source, r Request, p Plan) Plan {
	if p.Covered || !coverable(src, r) {
		return p
	}
	switch p.Kind {
	case Index, Ordered:
		p.Covered = p.Leaf != nil && covers(src, p.Leaf, r.Needs)
	case Scan:
		if r.Want == SigScan || r.HasPK {
			return p
		}
		var leaf *Pred
		for _, c := range conjuncts(r.Pred) {
			if covers(src, c, r.Needs) && (leaf == nil || c.Op < leaf.Op) {
				leaf = c
			}
		}
		if leaf != nil {
			return Plan{Kind: Index, Leaf: leaf, Covered: true, Why: "the entries tell all that is wanted"}
		}
		if len(r.OrderBy) > 0 || r.Limit == 0 || r.Limit > fewRows {
			if leaf := coverAll(src, r.Needs); leaf != nil {
				return Plan{Kind: Index, Leaf: leaf, Covered: true, Why: "the entries name every item and tell all " +
					"that is wanted"}
			}
		}
	}
	return p
}

// fewRows is a limit up to which a query takes the first items there are rather than asking what the index knows of
// all.
const fewRows = 100

// coverAll returns a leaf of entries that name every item and tell the values at all paths, nil when there is none.
func coverAll(src Source, needs []Path) *Pred {
	for i := range needs {
		if leaf := every(needs[i]); covers(src, leaf, needs) && src.NamesEveryItem(leaf.Path) {
			return leaf
		}
	}
	return nil
}

// every is any index entry of a path.
func every(p Path) *Pred { return &Pred{Op: opEvery, Path: Path{Segs: p.Segs}} }

// Every reports whether a leaf takes any entry of its path, those of items without a value too.
func (p *Pred) Every() bool { return p.Op == opEvery }

// FindEvery returns the leaf of all entries of one of the paths whose scan has this signature, nil when there is none.
func FindEvery(needs []Path, sig uint32) *Pred {
	for i := range needs {
		if leaf := every(needs[i]); signature(leaf) == sig {
			return leaf
		}
	}
	return nil
}

// AgainEvery is Again for the scan of all entries of a path.
func AgainEvery(src Source, r *Request, sig uint32) (Plan, bool) {
	leaf := FindEvery(r.Needs, sig)
	if leaf == nil || !coverable(src, *r) || !covers(src, leaf, r.Needs) || !src.NamesEveryItem(leaf.Path) {
		return Plan{}, false
	}
	return Plan{Kind: Index, Leaf: leaf, Covered: true, Why: "the continuation began with it"}, true
}

func coverable(src Source, r Request) bool {
	return len(r.Needs) > 0 && src.IndexReady() && src.Coverable()
}

// covers reports whether the entries of a leaf tell the values at all of these paths.
func covers(src Source, leaf *Pred, needs []Path) bool {
	if leaf.Comp != nil {
		return leaf.Comp.tells(src, needs)
	}
	if leaf.Op == OpSpatial || !usable(src, leaf) || len(leaf.Path.Segs) == 0 {
		return false
	}
	for _, n := range needs {
		if !slices.Equal(n.Segs, leaf.Path.Segs) && (!inIdentity(src, n.Segs) || n.Segs[0] == leaf.Path.Segs[0]) {
			return false
		}
	}
	return true
}

// inIdentity reports whether a value is part of the identity that every entry holds: the id, or a partition key that
// shares no object with others.
func inIdentity(src Source, segs []string) bool {
	if len(segs) == 1 && segs[0] == ID.Segs[0] {
		return true
	}
	found := false
	for _, k := range src.KeyPaths() {
		if slices.Equal(k, segs) {
			found = true
		} else if k[0] == segs[0] {
			return false
		}
	}
	return found
}

// rangesOf returns a disjunction whose alternatives are all on one path as one leaf, nil when p is something else. No
// continuation knows it.
func rangesOf(p *Pred) *Pred {
	if p == nil || p.Op != OpOr {
		return nil
	}
	leaf := &Pred{Op: opRanges, Kids: p.Kids, Path: p.Kids[0].Path}
	for _, k := range p.Kids {
		if k.Op < OpIn || k.Op > OpExists || !samePath(k.Path, leaf.Path) {
			return nil
		}
		leaf.Foreign = leaf.Foreign || k.Foreign
		leaf.Vals = append(leaf.Vals, k.Vals...)
	}
	return leaf
}

// ranges returns the intervals of all kids.
func (p *Pred) ranges() (ivs []Interval, exact, ok bool) {
	for _, k := range p.Kids {
		of, _, ok := k.Intervals()
		if !ok {
			return nil, false, false
		}
		ivs = append(ivs, of...)
	}
	return normalise(ivs), false, true
}

// Demands reports whether only items with a value at a path satisfy p, as far as it says so.
func (p *Pred) Demands(path Path) bool {
	of := func(k *Pred) bool { return k.Demands(path) }
	switch {
	case p == nil:
		return false
	case p.Op == OpNone:
		return true
	case p.Op == OpAnd:
		return slices.ContainsFunc(p.Kids, of)
	case p.Op == OpOr:
		return !slices.ContainsFunc(p.Kids, func(k *Pred) bool { return !of(k) })
	}
	return p.Op >= OpIn && slices.Equal(p.Path.Segs, path.Segs)
}

// ByClass cuts the intervals of a leaf into the parts of each class, with the class.
func (p *Pred) ByClass() (parts []ClassInterval) {
	ivs, _, _ := p.Intervals()
	for _, iv := range ivs {
		for _, c := range classList {
			lo, hi := []byte{c}, []byte{c + 1}
			if string(iv.Lo) > string(lo) {
				lo = iv.Lo
			}
			if string(iv.Hi) < string(hi) {
				hi = iv.Hi
			}
			if string(lo) < string(hi) {
				parts = append(parts, ClassInterval{c, Interval{Lo: lo, Hi: hi, One: iv.One}})
			}
		}
	}
	return parts
}

// ClassInterval is a part of an interval whose values are all of one class.
type ClassInterval struct {
	Class byte
	Interval
}

var classList = [...]byte{value.ClassAny, value.ClassMinKey, value.ClassUndefined, value.ClassNull, value.ClassBool,
	value.ClassNumber,
	value.ClassString, value.ClassArray, value.ClassObject, value.ClassUUID, value.ClassBinary, value.ClassObjectID,
	value.ClassDate,
	value.ClassTimestamp, value.ClassRegex, value.ClassOther, value.ClassMaxKey}
