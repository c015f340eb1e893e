package exec

import (
	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// builder turns a query into a source.
type builder struct {
	rows  *Rows
	view  *store.View
	q     *Query
	from  *position
	spans []span
	texts []epk.Range // with V1 boundaries inside a hash: an item's key must lie in one of them
	polls int

	layout keys.Entries // of the index entries
	ident  []byte       // of the item that is fetched

	asks  []access.Path // whose facts some slot doesn't know: with them the plan may be better
	asked []uint64      // ids of paths that were asked for before
}

// poll returns Timeout when the query's context has ended, and an error when its view is far too old; sources call it
// where they pass over entries and items.
func (b *builder) poll() error {
	if b.polls++; b.polls&1023 != 0 {
		return nil
	}
	if _, gone := b.view.Old(); gone {
		return b.view.ErrOld()
	}
	return b.rows.expired()
}

func (b *builder) build() (source, error) {
	if err := b.restrict(); err != nil {
		return nil, err
	}
	if err := b.checkFrom(); err != nil {
		return nil, err
	}
	plan, err := b.plan()
	if err != nil {
		return nil, err
	}
	b.rows.stats.Plan = plan
	if err := b.slotsOfKeys(&plan); err != nil {
		return nil, err
	}
	b.rows.stats.Partitions = len(b.spans)
	if one, err := b.oneKey(&plan); err != nil {
		return nil, err
	} else if one {
		plan = access.Plan{Kind: access.Scan, Why: plan.Why}
	}
	if plan.Kind != access.Points {
		b.rows.spans = b.spans
	}
	if plan.Kind == access.Nothing || len(b.spans) == 0 {
		return nothing{}, nil
	}
	scanned := plan.Kind == access.Scan && b.spans[0].full
	if scanned {
		b.narrow(b.q.Pred)
	}
	if src, err := b.creation(plan); src != nil || err != nil {
		return src, err
	}
	if len(b.q.OrderBy) == 0 {
		return b.source(plan, b.from)
	}
	if scanned && b.natural(b.q.OrderBy) {
		if src, ok := b.inIDOrder(); ok {
			return src, nil
		}
	}
	if src, err := b.keyOrder(&plan); src != nil || err != nil {
		return src, err
	}
	if plan.Kind == access.Ordered && !b.unordered(plan.Leaf) && b.merges(plan.Leaf) && (b.from == nil || !b.from.cut) {
		return b.ordered(&plan)
	}
	b.rows.stats.Sorted = true
	s := newSorter(b, plan)
	if s.rings = b.rings(&plan, s); s.rings != nil {
		b.rows.stats.Plan = plan
	}
	s.src, err = s.candidates() // the sort resumes, what is below it starts over
	return s, err
}

// plan chooses the access path. A query without order must go on in the order in which it began.
func (b *builder) plan() (access.Plan, error) {
	full := len(b.spans) == 1 && b.spans[0].full
	if full && b.layout.ByID && len(b.q.OrderBy) == 0 && b.from == nil {
		return b.oneItem(), nil
	}
	req := access.Request{Pred: b.q.Pred, HasPK: full, Limit: b.q.Limit, Items: b.view.Container().Items(),
		Collation: b.q.Collation,
		Needs:     b.q.Needs, Whole: b.q.Whole && b.wholeSlots()}
	req.PK = b.q.PK
	if full && b.q.Pred != nil && b.q.Pred.Op == access.OpAnd {
		var err error
		if req.Items, err = b.inKey(); err != nil {
			return access.Plan{}, err
		}
	}
	for _, o := range b.q.OrderBy {
		req.OrderBy, req.Desc = append(req.OrderBy, o.Path), append(req.Desc, o.Desc)
	}
	if b.from != nil && len(b.q.OrderBy) == 0 {
		switch b.from.kind {
		case posIndex:
			if p, ok := b.again(req); ok {
				return p, nil
			}
			if len(b.from.value) > 0 && b.leafOf(b.from.sig) == nil {
				return access.Plan{}, errToken()
			}
			b.from.kind, b.from.key, b.from.cut = posMixed, nil, false
			fallthrough
		case posMixed:
			return access.Plan{Kind: access.Scan, Why: "the index that the query began with can't be used any more"},
				nil
		case posScan:
			req.Want = access.SigScan
		}
	}
	plan := access.Choose(b, req)
	if full {
		return b.inPartition(plan, req.Want)
	}
	return plan, nil
}

// again returns the index scan that a continuation began with; false when the index can't do it any more.
func (b *builder) again(req access.Request) (access.Plan, bool) {
	if keys.FormerIndex(b.from.value) { // no index has that order
		return access.Plan{}, false
	}
	if p, ok := access.Again(b, b.q.Pred, b.from.sig); ok {
		return access.Cover(b, req, p), true
	}
	if p, ok := access.AgainComposite(b, &req, b.from.sig); ok {
		return p, true
	}
	return access.AgainEvery(b, &req, b.from.sig)
}

// leafOf returns the leaf of the index scan that a continuation began with, nil when the query has no such leaf.
func (b *builder) leafOf(sig uint32) *access.Pred {
	if p := access.Find(b.q.Pred, sig); p != nil {
		return p
	}
	return access.FindEvery(b.q.Needs, sig)
}

// checkFrom checks that a position fits the query and finds the whole of a key that was cut.
func (b *builder) checkFrom() error {
	p := b.from
	if p == nil {
		return nil
	}
	if (p.kind == posSort) != (len(b.q.OrderBy) > 0) {
		return errToken()
	}
	if p.kind == posCreation {
		return nil
	}
	if p.kind == posSort {
		if n := len(b.q.OrderBy); len(p.keys) > n || !p.cut && len(p.keys) < n {
			return errToken()
		}
		return nil
	}
	size := b.view.Container().PlaceLen()
	if !p.cut || len(p.key) < size {
		return nil
	}
	whole, err := b.view.ByNumber(b.view.At(p.key[:size]), p.keyNumber)
	if err == nil && xxhash.Sum64(whole) == p.hash {
		p.key, p.cut = whole, false
	}
	return err
}

// source makes the source of a plan, without its order.
func (b *builder) source(plan access.Plan, from *position) (source, error) {
	switch plan.Kind {
	case access.Points:
		return b.points(plan.Keys, from)
	case access.Index, access.Ordered:
		if plan.Both != nil {
			return newIntersection(b, plan.Both, from)
		}
		leaves := plan.Union
		if plan.Leaf != nil {
			leaves = []*access.Pred{plan.Leaf}
		}
		return b.indexSource(&plan, leaves, from)
	}
	return newScan(b, b.spans, from), nil
}

type nothing struct{}

func (nothing) next(*row) (bool, error) { return false, nil }
func (nothing) close()                  {}
func (nothing) empty() bool             { return true }

// smallPartition is how many items of a logical partition are read rather than looked up one by one.
const smallPartition = 48

// inPartition adjusts a plan to a query inside one logical partition: a point read when the id is known, else the index
// when it has an equality and the partition is large, else the partition's items in order.
func (b *builder) inPartition(plan access.Plan, want uint32) (access.Plan, error) {
	if plan.Kind == access.Nothing {
		return plan, nil
	}
	if ids := idsOf(b, b.q.Pred); ids != nil {
		ks := make([]access.Key, len(ids))
		for i, id := range ids {
			ks[i] = access.Key{PK: b.q.PK, ID: id}
		}
		return access.Plan{Kind: access.Points, Keys: ks, Why: "the filter names ids in one logical partition"}, nil
	}
	if ok, err := b.coveredInPartition(&plan); ok || err != nil {
		return plan, err
	}
	if plan.Leaf != nil && plan.Leaf.Comp != nil && want == 0 {
		if ok, err := b.worthComposite(plan); err != nil || ok {
			return plan, err
		}
	} else if plan.Kind == access.Index && want == 0 &&
		(plan.Both != nil || plan.Leaf != nil && plan.Leaf.Op == access.OpIn) {
		n, err := b.inKey()
		if err != nil || n > smallPartition {
			return plan, err
		}
	}
	if few, err := b.fewPlaces(&plan, want); few || err != nil {
		return plan, err
	}
	return access.Plan{Kind: access.Scan, Why: "items of one logical partition"}, nil
}

// oneItem is the plan of a query that is about the single item of a logical partition.
func (b *builder) oneItem() access.Plan {
	if b.q.Pred != nil && b.q.Pred.Op == access.OpNone {
		return access.Plan{Kind: access.Nothing, Why: "the filter is never true"}
	}
	return access.Plan{Kind: access.Scan, Why: "the item of a logical partition"}
}

// inKey returns how many items the logical partition has that the query is about.
func (b *builder) inKey() (int64, error) {
	s := &b.spans[0]
	return b.view.LogicalItems(s.slot, s.base[:len(s.base)-len(s.tuple)], s.tuple)
}

// fewPlaces reports whether a spatial index has fewer entries in the whole slot than would make it dearer than reading
// the logical partition.
func (b *builder) fewPlaces(plan *access.Plan, want uint32) (bool, error) {
	if plan.Kind != access.Index || want != 0 || plan.Leaf == nil || plan.Leaf.Op != access.OpSpatial {
		return false, nil
	}
	s := &b.spans[0]
	n, err := b.inKey()
	if err != nil || n <= smallPartition {
		return false, err
	}
	ivs, _, _ := plan.Leaf.Intervals()
	limit := int(min(maxProbe, n/6))
	return b.countEntries(s.slot, plan.Leaf, ivs, limit) < limit, nil
}

// idsOf returns the ids that a filter demands.
func idsOf(b *builder, p *access.Pred) []value.Value {
	if p == nil {
		return nil
	}
	cs := []*access.Pred{p}
	if p.Op == access.OpAnd {
		cs = p.Kids
	}
	for _, c := range cs {
		if c.Op != access.OpIn || len(c.Path.Segs) != 1 || c.Path.Segs[0] != "_id" || c.Foreign &&
			b.KeysMayBeForeign() {
			continue
		}
		if access.Scalars(c.Vals) {
			return c.Vals
		}
	}
	return nil
}

// The builder is the access.Source of its query.

// Policy implements access.Source.
func (b *builder) Policy() *index.Policy { return b.view.Policy() }

// IndexReady implements access.Source.
func (b *builder) IndexReady() bool { return b.view.Indexed() }

// KeyPaths implements access.Source.
func (b *builder) KeyPaths() [][]string { return b.view.Container().Def().KeyPaths() }

// MayHoldForeign implements access.Source.
func (b *builder) MayHoldForeign() bool {
	if !b.view.Indexed() {
		return true
	}
	return b.KeysMayBeForeign()
}

// KeysMayBeForeign implements access.Source.
func (b *builder) KeysMayBeForeign() bool {
	return b.anyClass(access.ForeignKinds)
}

// MayHoldGraphForm implements access.Source.
func (b *builder) MayHoldGraphForm() bool {
	return b.anyClass(index.GraphForm)
}

// anyClass reports whether a slot of the container has ever held one of these classes.
func (b *builder) anyClass(bits uint32) bool {
	slots := b.view.Slots()
	for i := range slots {
		if slots[i].Classes()&bits != 0 {
			return true
		}
	}
	return false
}

// unordered reports whether the index order of a path can't be trusted: cut values, the "any value" entries of items
// with too many terms, items with several entries. Of a composite index access has asked for each column.
func (b *builder) unordered(leaf *access.Pred) bool { return leaf.Comp == nil && !b.InOrder(leaf.Path) }

// oneClass reports whether all entries of a path in a slot have one class, the same as in the slots before.
func (b *builder) oneClass(slot *store.ViewSlot, path uint64, class *byte) bool {
	lo := keys.AppendIndexPath(nil, slot.Key(), path)
	it, err := b.view.Iter(lo, keys.After(lo))
	if err != nil {
		return false
	}
	defer it.Close()
	for _, move := range []func() bool{it.First, it.Last} {
		if !move() {
			return it.Err() == nil // no entries, no items
		}
		c := it.Key()[len(lo)]
		if *class != 0 && *class != c {
			return false
		}
		*class = c
	}
	return true
}
