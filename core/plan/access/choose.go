package access

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// Kind is the kind of an access path.
type Kind uint8

// The access paths, cheapest first.
const (
	Nothing Kind = iota // the predicate can't be satisfied
	Points              // Plan.Keys name items and logical partitions
	Index               // scan of the index intervals of Plan.Leaf, or of all Plan.Union, fetching items
	Ordered             // as Index on one leaf, merged over the slots in the order of its values
	Scan                // all items of the ranges
)

// String names the access path as EXPLAIN shows it.
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
	Why   string
	// Covered: rows are made from the entries, items are fetched only where an entry doesn't tell its value. Missing:
	// items without an entry are rows too, empty ones.
	Covered, Missing bool
}

// The signatures of access paths without a leaf.
const (
	SigScan   = 1
	SigPoints = 2
)

// Signature identifies the access path: a continuation goes on with the one that it began with, whatever would be
// chosen now.
func (p *Plan) Signature() uint32 {
	switch p.Kind {
	case Points:
		return SigPoints
	case Index, Ordered:
		if p.Leaf != nil {
			return signature(p.Leaf)
		}
		if p.Both != nil {
			return SigBoth
		}
		return signature(p.Union...)
	}
	return SigScan
}

// signature tells the orders of index scans apart: path and intervals decide at which entry an item with several is
// given.
func signature(leaves ...*Pred) uint32 {
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

// Find returns the leaf of a filter whose index scan has this signature, nil when there is none.
func Find(p *Pred, sig uint32) *Pred {
	for _, c := range conjuncts(p) {
		if c.Op >= OpIn && signature(c) == sig {
			return c
		}
	}
	return nil
}

// Again returns the index scan with this signature, for a continuation that began with it; false when the index can't
// do it any more.
func Again(src Source, p *Pred, sig uint32) (Plan, bool) {
	if !src.IndexReady() {
		return Plan{}, false
	}
	const why = "the continuation began with it"
	if sig == SigBoth {
		return againBoth(src, conjuncts(p), why)
	}
	if c := Find(p, sig); c != nil && usable(src, c) {
		return Plan{Kind: Index, Leaf: c, Why: why}, true
	}
	for _, c := range conjuncts(p) {
		if c.Op != OpOr {
			continue
		}
		if u := unionOf(src, c); u != nil && signature(u...) == sig {
			return Plan{Kind: Index, Union: u, Why: why}, true
		}
	}
	return Plan{}, false
}

// Explain says in one line what the plan does.
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
	return p.Kind.String() + ": " + p.Why
}

// Source is what the choice asks of the container.
type Source interface {
	Policy() *index.Policy
	IndexReady() bool
	KeyPaths() [][]string
	// MayHoldElements reports whether a path may have array elements in any slot; MayHoldForeign whether any slot may
	// hold kinds that JSON lacks.
	MayHoldElements(p Path) bool
	MayHoldForeign() bool
	// MayHoldInColumn reports whether a column of a composite index may have held in any slot what an id of
	// index.Column stands for.
	MayHoldInColumn(id uint64) bool
	// InOrder reports whether the index entries at a path are in the order of the values, one an item, as far as they
	// are of one class. It may take a count of them: it is asked where the answer saves a sort.
	InOrder(p Path) bool
	// MayHoldGraphForm reports whether any slot may hold vertex properties (index.GraphForm).
	MayHoldGraphForm() bool
	// KeysMayBeForeign reports whether partition keys or ids may be of such kinds, whatever the policy indexes.
	KeysMayBeForeign() bool
	// EveryItemHas reports whether the index entries of the values at a path name every item, in an order that is the
	// order of every language: all of one class, none cut.
	EveryItemHas(p Path) bool
	// Share estimates the share of all items (0..1) that have an entry in a leaf's intervals.
	Share(p *Pred) float64
	CoverSource
}

// Request is what a query wants.
type Request struct {
	Pred  *Pred
	HasPK bool // the query is restricted to one logical partition already
	// the values of its key; without HasPK the first ones of a hierarchical key that it is restricted to
	PK      []value.Value
	OrderBy []Path // wanted order
	Desc    []bool // which of them descend
	Limit   int    // 0 = none
	Items   int64  // in the container, about
	// Collation says what is known of the order of values.
	Collation Collation
	Want      uint32 // SigScan: a continuation goes on in the order of keys; 0 = the best access path
	// Needs are the paths that the query looks at, nil = the whole item. Whole: it reads to the end and takes no
	// continuation.
	Needs []Path
	Whole bool
}

// maxKeys is how many points a query is turned into at most.
const maxKeys = 10000

// Choose picks the access path of a query.
func Choose(src Source, r Request) Plan {
	if r.Pred != nil && r.Pred.Op == OpNone {
		return Plan{Kind: Nothing, Why: "the filter is never true"}
	}
	if p, ok := cover(src, r); ok {
		return p
	}
	p := Cover(src, r, choose(src, r))
	if q, ok := byColumns(src, &r, p); ok {
		return q
	}
	return p
}

func choose(src Source, r Request) Plan {
	if !r.HasPK {
		if ks := pointKeys(src, r.Pred); ks != nil {
			return Plan{Kind: Points, Keys: ks, Why: "the filter names partition keys"}
		}
	}
	if !src.IndexReady() {
		return Plan{Kind: Scan, Why: "the index is being rebuilt"}
	}
	if r.Want == SigScan {
		return Plan{Kind: Scan, Why: "the continuation began with a scan"}
	}
	cs := conjuncts(r.Pred)
	if r.HasPK {
		if p, ok := compositeInPartition(src, &r, cs); ok {
			return p
		}
		return inPartition(src, &r, cs)
	}
	if len(r.PK) > 0 {
		if p, ok := compositeInPartition(src, &r, cs); ok && p.Kind == Ordered {
			return p
		}
	} else if p, ok := byComposite(src, &r, cs); ok {
		return p
	}
	if p, ok := ordered(src, r, cs); ok {
		return p
	}
	p := byIndex(src, cs, r.Items)
	if p.Kind != Scan || len(r.OrderBy) != 1 {
		return p
	}
	if leaf := every(r.OrderBy[0]); usable(src, leaf) && src.EveryItemHas(leaf.Path) {
		return Plan{Kind: Ordered, Leaf: leaf, Why: "every item has an entry on the path of the order"}
	}
	return p
}

// ordered returns a plan whose index order is the wanted order.
func ordered(src Source, r Request, cs []*Pred) (Plan, bool) {
	if len(r.OrderBy) != 1 {
		return Plan{}, false
	}
	for _, c := range cs {
		if !samePath(Path{Segs: c.Path.Segs}, Path{Segs: r.OrderBy[0].Segs}) || !usable(src, c) {
			continue
		}
		if c.Op != OpRange && c.Op != OpIn && c.Op != OpPrefix || c.Any || !oneClass(c) {
			continue
		}
		if c.Path.Elements && !src.InOrder(c.Path) || c.Foreign && src.MayHoldForeign() {
			continue
		}
		return Plan{Kind: Ordered, Leaf: c, Why: "range and order are on one path"}, true
	}
	return Plan{}, false
}

// oneClass reports whether a leaf's values are of one class: then byte order is the order of every language.
func oneClass(p *Pred) bool {
	if p.Op == OpRange {
		return p.Lo == nil || p.Hi == nil || keys.Class(p.Lo.Value) == keys.Class(p.Hi.Value)
	}
	for _, v := range p.Vals {
		if keys.Class(v) != keys.Class(p.Vals[0]) {
			return false
		}
	}
	return true
}

// missesGraphForm reports whether the leaf asks for what elements of graphs have no index entries for
// (index.GraphForm).
func (p *Pred) missesGraphForm() bool {
	n := len(p.Path.Segs)
	if n > 1 && slices.Contains(p.Path.Segs[1:], "id") || n == 1 && slices.Contains(index.EdgeCopies, p.Path.Segs[0]) {
		return true
	}
	for _, v := range p.Vals {
		if v.Kind() == value.Object {
			return true
		}
	}
	return p.Lo != nil && p.Lo.Value.Kind() == value.Object || p.Hi != nil && p.Hi.Value.Kind() == value.Object
}

func usable(src Source, p *Pred) bool {
	if p.Op < OpIn || p.Op == OpSpatial {
		return p.places != nil
	}
	if p.Comp != nil {
		return true
	}
	for _, v := range p.Vals {
		if !v.IsDefined() {
			return false
		}
	}
	if len(p.Path.Segs) == 1 && p.Path.Segs[0] == index.SystemTS {
		return true
	}
	if p.missesGraphForm() && src.MayHoldGraphForm() {
		return false
	}
	return len(p.Path.Segs) > 0 && src.Policy().Covers(p.Path.Segs, p.Path.Elements)
}

// scanShare is the share of the items above which fetching them one by one through the index costs more than a scan.
const scanShare = 0.15

// inPartition picks the leaf for a query inside one logical partition: an equality on something else than the partition
// key (which every item there satisfies), or a tuple path whose members are all demanded. Of several the one with the
// fewest entries there, or an intersection; one alone isn't counted.
func inPartition(src Source, r *Request, cs []*Pred) Plan {
	var eqs []*Pred
	for _, c := range cs {
		if c.Op == OpIn && len(c.Vals) <= fewValues && usable(src, c) && !isKeyPath(src, c.Path) {
			eqs = append(eqs, c)
		}
	}
	for _, c := range tuples(src, cs) {
		if len(c.Comp.Front) == len(c.Comp.Index.Columns) {
			eqs = append(eqs, c)
		}
	}
	switch {
	case len(eqs) == 1:
		return Plan{Kind: Index, Leaf: eqs[0], Why: "an equality inside one logical partition"}
	case len(eqs) > 1:
		leaves := make([]shared, len(eqs))
		for i, c := range eqs {
			leaves[i] = shared{c, src.Share(c)}
		}
		best := slices.MinFunc(leaves, func(a, b shared) int { return cmp.Compare(a.share, b.share) })
		if p, ok := intersection(leaves, r.Items); ok && best.leaf.Comp == nil {
			return p
		}
		return Plan{Kind: Index, Leaf: best.leaf, Why: "the most selective equality inside one logical partition"}
	}
	for _, c := range cs {
		if c.Op == OpSpatial && usable(src, c) {
			return Plan{Kind: Index, Leaf: c, Why: "few places inside one logical partition"}
		}
	}
	return Plan{Kind: Scan, Why: "items of one logical partition"}
}

// fewValues is how many values an equality may have inside one logical partition.
const fewValues = 16

func isKeyPath(src Source, p Path) bool {
	for _, segs := range src.KeyPaths() {
		if slices.Equal(segs, p.Segs) {
			return true
		}
	}
	return false
}

// byIndex picks the leaf, or the union of leaves, with the least share of the items.
func byIndex(src Source, cs []*Pred, items int64) Plan {
	var best Plan
	var leaves []shared
	least := 2.0
	cands := 0
	cs = append(cs[:len(cs):len(cs)], composites(src, cs, 2)...)
	for _, c := range cs {
		if usable(src, c) || c.Op == OpOr && unionOf(src, c) != nil {
			cands++
		}
	}
	for _, c := range cs {
		var p Plan
		var share float64
		switch {
		case usable(src, c):
			p = Plan{Kind: Index, Leaf: c, Why: "most selective condition"}
			if cands > 1 || c.Op != OpIn {
				share = src.Share(c)
				leaves = append(leaves, shared{c, share})
			}
		case c.Op == OpOr:
			u := unionOf(src, c)
			if u == nil {
				continue
			}
			p = Plan{Kind: Index, Union: u, Why: "every alternative is indexed"}
			for _, l := range u {
				share += src.Share(l)
			}
		default:
			continue
		}
		if share < least {
			best, least = p, share
		}
	}
	switch {
	case least > 1:
		return Plan{Kind: Scan, Why: "no condition that the index can answer"}
	case least > scanShare:
		return Plan{Kind: Scan, Why: "the conditions select too many items for look-ups one by one"}
	}
	if best.Leaf != nil && best.Leaf.Comp == nil {
		if p, ok := intersection(leaves, items); ok {
			return p
		}
	}
	return best
}

// unionOf returns the leaves of a disjunction when each alternative has one that the index can answer.
func unionOf(src Source, p *Pred) []*Pred {
	var out []*Pred
	for _, k := range p.Kids {
		var leaf *Pred
		for _, c := range conjuncts(k) {
			if usable(src, c) && (leaf == nil || c.Op < leaf.Op) {
				leaf = c
			}
		}
		if leaf == nil {
			return nil
		}
		out = append(out, leaf)
	}
	return out
}

// pointKeys returns the logical partitions, and items where the filter names ids, that a filter is restricted to; nil
// when it is not.
func pointKeys(src Source, p *Pred) []Key {
	if p == nil {
		return nil
	}
	if p.Op == OpOr {
		var out []Key
		for _, k := range p.Kids {
			ks := conjunctKeys(src, conjuncts(k))
			if ks == nil || len(out)+len(ks) > maxKeys {
				return nil
			}
			out = append(out, ks...)
		}
		return out
	}
	return conjunctKeys(src, conjuncts(p))
}

// Scalars reports whether all values are defined and neither arrays nor objects, whose equality differs between
// languages.
func Scalars(vs []value.Value) bool {
	for _, v := range vs {
		if !v.IsDefined() || v.Kind() == value.Array || v.Kind() == value.Object {
			return false
		}
	}
	return true
}

func conjunctKeys(src Source, cs []*Pred) []Key {
	use := func(c *Pred) bool {
		if !Scalars(c.Vals) {
			return false
		}
		if c.Foreign && src.KeysMayBeForeign() {
			return false
		}
		if c.Path.Elements && !(len(c.Path.Segs) == 1 && c.Path.Segs[0] == "_id") {
			return src.IndexReady() && src.Policy().Covers(c.Path.Segs, true) && !src.MayHoldElements(c.Path)
		}
		return true
	}
	out := []Key{{}}
	for _, segs := range src.KeyPaths() {
		vals := equalTo(cs, segs, use)
		if vals == nil || len(out)*len(vals) > maxKeys {
			return nil
		}
		next := make([]Key, 0, len(out)*len(vals))
		for _, k := range out {
			for _, v := range vals {
				next = append(next, Key{PK: append(k.PK[:len(k.PK):len(k.PK)], v)})
			}
		}
		out = next
	}
	ids := equalTo(cs, ID.Segs, use)
	if ids == nil || len(out)*len(ids) > maxKeys {
		return out
	}
	next := make([]Key, 0, len(out)*len(ids))
	onlyID := len(src.KeyPaths()) == 1 && len(src.KeyPaths()[0]) == 1 && src.KeyPaths()[0][0] == "_id"
	for _, k := range out {
		if onlyID { // the key is the id
			next = append(next, Key{PK: k.PK, ID: k.PK[0]})
			continue
		}
		for _, id := range ids {
			next = append(next, Key{PK: k.PK, ID: id})
		}
	}
	return next
}
