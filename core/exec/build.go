package exec

import (
	"github.com/cespare/xxhash/v2"

	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
)

// builder turns a query into a source. It restricts what is read, lets core/plan choose, and makes the sources of the
// resulting tree. It is the planner's Stats, see stats.go.
//
// Example: for WHERE n > 5 ORDER BY n, restrict cuts the container into one span for each slot, core/plan returns
// Filter over Merge over IndexScan, and run makes an ordered source of it, whose streams walk the entries of /n in the
// slots.
type builder struct {
	rows  *Rows
	view  *store.View
	q     *Query
	tree  *plan.Tree
	from  *position
	spans []span
	key   store.PartitionKey // that the query or its filter names; nil: none
	texts []epk.Range        // V1 boundaries inside a hash: an item's key must lie in one of these ranges
	polls int

	layout keys.Entries // layout of the index entries
	ident  []byte       // identity of the item that is being fetched

	asks  []access.Path // paths whose facts a slot doesn't know; they may lead to a better plan
	asked []uint64      // ids of paths whose facts were requested before

	*gathering

	classes map[uint64]map[*store.ViewSlot]classes // by path, see oneClass
}

// gathering is what the planner read to count it. The sources start with it, so that it isn't read twice.
type gathering struct {
	err       error     // error of a statistic
	stretches []stretch // of creation order
	names     *nameOrder
	tallies   []count   // by the number of the slot in the view
	idle      *gathered // has given its stretch, and is used again for the next one; nil: none
}

// poll returns Timeout when the query's context has ended, and an error when its view is much too old. Sources call it
// in loops that skip entries or items.
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
	if err := b.cut(); err != nil {
		return nil, err
	}
	if err := b.rows.visit(b.view.Container(), b.spans); err != nil {
		return nil, err
	}
	if err := b.checkFrom(); err != nil {
		return nil, err
	}
	var r plan.Request
	b.request(&r)
	b.tree = plan.Choose(&r, b)
	b.rows.stats.Plan, b.rows.stats.Tree, b.rows.stats.Partitions = &b.tree.Access, b.tree, len(b.spans)
	if b.err == nil && b.tree.Rest {
		b.err = b.takeRest()
	}
	if b.err != nil {
		b.discard()
		return nil, b.err
	}
	if b.tree.Access.Kind != access.Points || b.tree.Find(plan.PartitionScan) != nil {
		b.rows.spans = b.spans
	}
	src, err := b.run(b.tree.Root, b.from)
	if err == nil && b.overlays() {
		src = b.overlaid(src)
	}
	return src, err
}

// request makes the planner's request from the query.
func (b *builder) request(r *plan.Request) {
	q := b.q
	*r = plan.Request{Pred: q.Pred, HasPK: len(b.spans) == 1 && b.spans[0].full, PK: b.key, ByID: b.layout.ByID,
		WholeSlots: b.wholeSlots(), Shown: q.Shown, Collation: q.Collation, Limit: q.Limit, Page: q.Page,
		Filtered: q.Match != nil, Needs: q.Needs, Want: q.Want, Whole: q.Whole, Repeat: q.Repeat, From: b.resume(),
		Explain: q.Explain}
	r.Whole = q.Whole && r.WholeSlots
	n := len(q.OrderBy)
	if n > 0 {
		r.Near, r.OrderBy, r.Desc = q.OrderBy[0].Near, make([]access.Path, n), make([]bool, n)
	}
	for i, o := range q.OrderBy {
		r.OrderBy[i], r.Desc[i] = o.Path, o.Desc
		r.Computed = r.Computed || o.Key != nil
		r.Own, r.Beside = o.Own && n == 1, o.Beside
	}
}

// resume makes the planner's description of the position.
func (b *builder) resume() (f plan.Resume) {
	p := b.from
	if p == nil {
		return f
	}
	f.Cut = p.cut
	switch p.kind {
	case posScan:
		f.At = plan.AtItem
	case posIndex:
		f.At, f.Signature, f.Former = plan.AtEntry, p.sig, keys.FormerIndex(p.value)
	case posMixed:
		f.At = plan.AtRest
	case posCreation:
		f.At = plan.AtCreation
	case posSort:
		f.At, f.Texts, f.Dist = plan.AtKeys, plan.AllTexts(p.keys), -1
		if len(p.keys) > 0 && p.keys[0].IsNumber() {
			f.Dist = p.keys[0].Float()
		}
	}
	return f
}

// takeRest turns the position into one of a scan that gives the items which an index had not given.
func (b *builder) takeRest() error {
	if p := b.from; p.kind == posIndex {
		if len(p.value) > 0 && b.leafOf(p.sig) == nil {
			return errToken()
		}
		p.kind, p.key, p.cut = posMixed, nil, false
	}
	return nil
}

// leafOf returns the leaf of the index scan that a continuation began with, nil when the query has no such leaf.
func (b *builder) leafOf(sig uint32) *access.Pred { return plan.LeafOf(b.q.Pred, b.q.Needs, sig) }

// discard closes the sources that the planner opened.
func (b *builder) discard() {
	for i := range b.stretches {
		b.stretches[i].discard()
	}
}

// checkFrom checks that a position fits the query. If the position holds only the beginning of a key, checkFrom finds
// the whole key.
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

// run makes the source of a node, starting after a position. A sort handles the position itself: the source below it
// starts from the beginning.
func (b *builder) run(n *plan.Node, from *position) (source, error) { return sources[n.Op](b, n, from) }

// sources has the constructor of each node's source.
var sources [plan.Limit + 1]func(*builder, *plan.Node, *position) (source, error)

func init() {
	sources = [...]func(*builder, *plan.Node, *position) (source, error){
		plan.Nothing:       func(*builder, *plan.Node, *position) (source, error) { return nothing{}, nil },
		plan.Points:        (*builder).points,
		plan.PartitionScan: (*builder).scanItems,
		plan.Scan:          (*builder).scanItems,
		plan.IndexScan:     (*builder).scanIndex,
		plan.CompositeScan: (*builder).scanIndex,
		plan.SpatialScan:   (*builder).scanIndex,
		plan.EndsScan:      (*builder).scanEnds,
		plan.TallyScan:     (*builder).scanTally,
		plan.Union:         (*builder).union,
		plan.Intersect:     (*builder).intersection,
		plan.Merge:         (*builder).merge,
		plan.IDOrder:       (*builder).idOrder,
		plan.KeyOrder:      (*builder).keyOrderSampled,
		plan.NameOrder:     (*builder).nameOrder,
		plan.CreationOrder: (*builder).creation,
		plan.Missing:       (*builder).missing,
		plan.Sort:          (*builder).sort,
		plan.TopK:          (*builder).sort,
		plan.Rings:         (*builder).sort,
		// Rows does the filtering and counting itself.
		plan.Filter: (*builder).below,
		plan.Limit:  (*builder).below,
	}
}

func (b *builder) below(n *plan.Node, from *position) (source, error) { return b.run(n.Kids[0], from) }

func (b *builder) scanItems(_ *plan.Node, from *position) (source, error) {
	return newScan(b, b.spans, from), nil
}

func (b *builder) sort(n *plan.Node, _ *position) (source, error) {
	b.rows.stats.Sorted = true
	s := newSorter(b, n.Kids[0])
	s.window = n.Count
	if n.Op == plan.Rings {
		s.rings = &rings{b: b, leaf: n.Leaf, dist: b.tree.Ring}
	}
	var err error
	s.src, err = s.candidates()
	return s, err
}

type nothing struct{}

func (nothing) next(*row) (bool, error) { return false, nil }
func (nothing) close()                  {}
func (nothing) follows() (bool, error)  { return false, nil }

// inKey returns the number of items in the logical partition that the query reads.
func (b *builder) inKey() (int64, error) {
	s := &b.spans[0]
	return b.view.LogicalItems(s.slot, s.base[:len(s.base)-len(s.tuple)], s.tuple)
}
