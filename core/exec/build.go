package exec

import (
	"bytes"
	"slices"

	"github.com/orrerydb/orrery/core/access"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// span is a part of one slot: items with a suffix in [lo, hi); nil ends are the slot's.
type span struct {
	slot   int
	lo, hi []byte
	tuple  []byte // with a whole or partial partition key: what the item's tuple must begin with
}

// whole reports whether the span is the slot.
func (s *span) whole() bool { return s.lo == nil && s.hi == nil && s.tuple == nil }

// contains reports whether an identity with this placement lies in the span.
func (s *span) contains(place, ident []byte) bool {
	if s.tuple != nil && !bytes.HasPrefix(ident, s.tuple) {
		return false
	}
	if s.lo != nil && bytes.Compare(place, s.lo) < 0 && !bytes.HasPrefix(s.lo, place) {
		return false
	}
	return s.hi == nil || bytes.Compare(place, s.hi) < 0
}

// builder turns a query into a source.
type builder struct {
	rows  *Rows
	view  *store.View
	q     *Query
	from  *position
	spans []span
	// baseLen is the length of place and tuple, with a whole partition key.
	baseLen int
}

func (b *builder) build() (source, error) {
	if err := b.restrict(); err != nil {
		return nil, err
	}
	q := b.q
	var order []access.Path
	for _, o := range q.OrderBy {
		order = append(order, o.Path)
	}
	full := q.PK != nil && len(q.PK) == len(b.view.Container().Def().KeyPaths())
	req := access.Request{Pred: q.Pred, HasPK: full, OrderBy: order, Limit: q.Limit}
	if b.from != nil {
		req.Want = b.from.sig
	}
	plan := access.Choose(b, req)
	if full {
		var err error
		if plan, err = b.inPartition(plan, req.Want); err != nil {
			return nil, err
		}
	}
	if b.from != nil && plan.Kind != access.Nothing && b.from.kind != posSort && plan.Signature() != req.Want {
		return nil, errToken()
	}
	if full && plan.Kind == access.Scan {
		b.narrow(q.Pred)
	}
	if full && plan.Kind == access.Scan && (b.from == nil || b.from.kind == posScan) && b.natural(q.OrderBy) {
		plain := *q
		plain.OrderBy = nil
		b.q = &plain
		q = b.q
	}
	b.rows.stats.Plan = plan
	b.rows.stats.Partitions = len(b.spans)
	src, err := b.source(plan)
	if err != nil || len(q.OrderBy) == 0 || plan.Kind == access.Ordered || plan.Kind == access.Nothing {
		return src, err
	}
	b.rows.stats.Sorted = true
	return newSort(b, src)
}

// source makes the source of a plan, without its sort.
func (b *builder) source(plan access.Plan) (source, error) {
	from := b.from
	if len(b.q.OrderBy) > 0 && plan.Kind != access.Ordered {
		from = nil // the sort resumes, what is below it starts over
	}
	switch plan.Kind {
	case access.Nothing:
		return nothing{}, nil
	case access.Points:
		return b.points(plan.Keys, from)
	case access.Ordered:
		return b.ordered(plan.Leaf, from)
	case access.Index:
		if from != nil && from.kind != posIndex {
			return nil, errToken()
		}
		leaves := plan.Union
		if plan.Leaf != nil {
			leaves = []*access.Pred{plan.Leaf}
		}
		return newIndexScan(b, leaves, from)
	}
	if from != nil && from.kind != posScan {
		return nil, errToken()
	}
	return newScan(b, b.spans, from), nil
}

type nothing struct{}

func (nothing) next(*row) (bool, error) { return false, nil }
func (nothing) close()                  {}
func (nothing) empty() bool             { return true }

// restrict computes the spans that the partition key and the ranges leave.
func (b *builder) restrict() error {
	c := b.view.Container()
	if b.q.PK != nil {
		slot, place, tuple, full, err := c.Locate(b.q.PK)
		if err != nil {
			return err
		}
		if full {
			lo := append(append([]byte(nil), place...), tuple...)
			b.spans = []span{{slot: slot, lo: lo, hi: keys.After(lo), tuple: tuple}}
			return nil
		}
		b.cover(place, keys.After(place), tuple)
		return nil
	}
	if b.q.Ranges == nil {
		for i := range b.view.Slots() {
			b.spans = append(b.spans, span{slot: i})
		}
		return nil
	}
	kind := c.Def().PartitionKey.EPKKind()
	for _, r := range sortedRanges(b.q.Ranges) {
		lo, err := epk.ParseBoundary(kind, r.Min)
		if err != nil {
			return err
		}
		hi, err := epk.ParseBoundary(kind, r.Max)
		if err != nil {
			return err
		}
		b.cover(lo, hi, nil)
	}
	return nil
}

// sortedRanges returns the ranges in order; those that are empty are left out.
func sortedRanges(rs []epk.Range) []epk.Range {
	out := make([]epk.Range, 0, len(rs))
	for _, r := range rs {
		if !r.IsEmpty() {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b epk.Range) int { return epk.CompareText(a.Min, b.Min) })
	return out
}

// cover adds the spans of the placements [lo, hi); nil ends are open.
func (b *builder) cover(lo, hi, tuple []byte) {
	def := b.view.Container().Def()
	for i := range def.Slots {
		s := span{slot: i, tuple: tuple}
		min := def.Slots[i].Min
		var max []byte
		if i+1 < len(def.Slots) {
			max = def.Slots[i+1].Min
		}
		if hi != nil && bytes.Compare(min, hi) >= 0 || max != nil && bytes.Compare(max, lo) <= 0 {
			continue
		}
		if bytes.Compare(lo, min) > 0 {
			s.lo = lo
		}
		if hi != nil && (max == nil || bytes.Compare(hi, max) < 0) {
			s.hi = hi
		}
		b.spans = append(b.spans, s)
	}
}

// smallPartition is how many items of a logical partition are read rather than looked up one by one.
const smallPartition = 48

// inPartition adjusts a plan to a query inside one logical partition: a point read when the id is known, else the index
// when it has an equality and the partition is large, else the partition's items in order.
func (b *builder) inPartition(plan access.Plan, want uint32) (access.Plan, error) {
	if plan.Kind == access.Nothing {
		return plan, nil
	}
	ids := idsOf(b, b.q.Pred)
	if ids != nil {
		ks := make([]access.Key, len(ids))
		for i, id := range ids {
			ks[i] = access.Key{PK: b.q.PK, ID: id}
		}
		return access.Plan{Kind: access.Points, Keys: ks, Why: "the filter names ids in one logical partition"}, nil
	}
	if want != 0 && plan.Signature() == want {
		return plan, nil
	}
	s := &b.spans[0]
	place := s.lo[:len(s.lo)-len(s.tuple)]
	n, err := b.view.LogicalItems(s.slot, place, s.tuple)
	if err != nil {
		return plan, err
	}
	if plan.Kind == access.Index && plan.Leaf != nil && plan.Leaf.Op == access.OpIn && len(plan.Leaf.Vals) <= 16 && n > smallPartition {
		return plan, nil
	}
	return access.Plan{Kind: access.Scan, Why: "items of one logical partition"}, nil
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
		if c.Op != access.OpIn || len(c.Path.Segs) != 1 || c.Path.Segs[0] != "_id" || c.Foreign && b.MayHoldForeign() {
			continue
		}
		for _, v := range c.Vals {
			if !v.IsDefined() {
				return nil
			}
		}
		return c.Vals
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

// MayHoldElements implements access.Source.
func (b *builder) MayHoldElements(path uint64) bool {
	if !b.view.Indexed() {
		return true
	}
	for i := range b.view.Slots() {
		if b.view.HasElements(i, path) {
			return true
		}
	}
	return false
}

// MayHoldForeign implements access.Source.
func (b *builder) MayHoldForeign() bool {
	if !b.view.Indexed() {
		return true
	}
	for i := range b.view.Slots() {
		if b.view.Classes(i)&access.ForeignKinds != 0 {
			return true
		}
	}
	return false
}

// EveryItemHas implements access.Source. The first question about a path makes the slots count it.
func (b *builder) EveryItemHas(p access.Path) bool {
	id := b.Policy().PathID(p.Segs)
	if b.cutValues(&access.Pred{Path: p}) {
		return false
	}
	var class byte
	for i := range b.spans {
		slot := b.spans[i].slot
		complete, tracked, err := b.view.Complete(slot, id)
		if err != nil {
			return false
		}
		if !tracked {
			_ = b.view.Container().Track(b.rows.ctx, id) // for the next query; this one's view is older
			return false
		}
		if !complete || !b.oneClass(slot, id, &class) {
			return false
		}
	}
	return true
}

// oneClass reports whether all entries of a path in a slot have one class, the same as in the slots before.
func (b *builder) oneClass(slot int, path uint64, class *byte) bool {
	lo := keys.AppendIndexPath(nil, b.view.SlotKey(slot), path)
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

// Share counts at most a sixth of a slot's items, between these bounds: enough to see that a condition is not selective.
const minProbe, maxProbe = 128, 2048

// Share implements access.Source: it counts entries in the first slot of the query that has items.
func (b *builder) Share(p *access.Pred) float64 {
	ivs, _, ok := p.Intervals()
	if !ok {
		return 1
	}
	for i := range b.spans {
		slot := b.spans[i].slot
		_, items, _ := b.view.Container().SlotStats(slot, slot+1)
		if items == 0 {
			continue
		}
		limit := int(min(maxProbe, max(minProbe, items/6)))
		n := b.countEntries(slot, p, ivs, limit)
		if n >= limit && int64(n) < items {
			return 1
		}
		return min(1, float64(n)/float64(items))
	}
	return 0
}

func (b *builder) countEntries(slot int, p *access.Pred, ivs []access.Interval, limit int) (n int) {
	prefix := keys.AppendIndexPath(nil, b.view.SlotKey(slot), b.Policy().PathID(p.Path.Segs))
	for _, iv := range access.Held(ivs, b.view.Classes(slot)) {
		it, err := b.view.Iter(append(bytes.Clone(prefix), iv.Lo...), append(bytes.Clone(prefix), iv.Hi...))
		if err != nil {
			return n
		}
		for ok := it.First(); ok && n < limit; ok = it.Next() {
			n++
		}
		_ = it.Close()
	}
	b.rows.stats.Entries += n
	return n
}
