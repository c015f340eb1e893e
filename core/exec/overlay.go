package exec

import (
	"context"
	"slices"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// A query in a transaction reads the transaction's snapshot and what the transaction itself has written. The items of
// the snapshot come from any plan, without those that the transaction has written or deleted. The written ones are
// sorted in memory. Both are in one order, the query's or that of creation, and are merged. So a position means the
// same in both, and a continuation stays valid when the transaction writes more, and after its commit.
//
// Example: the snapshot has n = 1, 3, 5, and the transaction has changed 3 to 4 and added 2. ORDER BY c.n merges 1, 5
// with 2, 4.

// OpenIn starts a query on the logical partition of a transaction. The caller closes the Rows before the transaction
// ends. The transaction must not write while the Rows are open. For the rest it is like Open.
func OpenIn(ctx context.Context, tx *store.Tx, q *Query, bud *budget.Budget, space *spill.Space) (*Rows, error) {
	own := *q
	own.PK = tx.PK()
	if len(own.OrderBy) == 0 {
		own.Shown = Creation
	}
	return openIn(ctx, tx, &own, bud, space)
}

// OpenWithin starts a query on a container in a transaction. Without OrderBy the rows come in creation order, or the
// reverse if that is asked for; a query that is read whole gives the rows of the snapshot in any order, and then the
// transaction's own. The transaction may write while the Rows are open: they go on with what they began with. For the
// rest it is like OpenIn.
func OpenWithin(ctx context.Context, tx *store.Within, q *Query, bud *budget.Budget, space *spill.Space) (*Rows,
	error) {
	own := *q
	switch {
	case len(own.OrderBy) > 0, own.Shown == Newest:
	case own.Whole && own.Shown == AnyOrder:
		own.behind = true
	default:
		own.Shown = Oldest
	}
	return openIn(ctx, tx, &own, bud, space)
}

func openIn(ctx context.Context, tx store.Querying, own *Query, bud *budget.Budget, space *spill.Space) (*Rows, error) {
	if err := tx.Container().Alive(); err != nil {
		return nil, err
	}
	own.Whole, own.Repeat, own.Want, own.Limit = false, false, WantAll, 0
	own.tx = tx
	r := &Rows{ctx: ctx, of: tx.Container(), given: own, hash: queryHash(tx.Container(), own), bud: bud}
	r.walked = r.walkMem[:]
	if bud != nil && !own.NoFiles {
		r.space = space
	}
	if err := r.open(tx.Container(), own.Continuation); err != nil {
		return nil, err
	}
	return r, nil
}

// overlay merges the rows of the snapshot with the items that the transaction has written.
type overlay struct {
	b     *builder
	wrote map[string]bool // the items that the transaction has written or deleted, by identity
	base  source
	own   *sorter
	rows  [2]row // the next row of base and of own
	ready [2]bool
	ended [2]bool
	keys  [2][]value.Value
}

// overlaid makes the source of a query in a transaction. base is the source of the snapshot.
func (b *builder) overlaid(base source) source {
	items, wrote := b.q.tx.Own()
	own := &sorter{b: b, pos: b.from, src: &listed{b: b, items: items}}
	return &overlay{b: b, wrote: wrote, base: base, own: own}
}

func (o *overlay) next(r *row) (bool, error) {
	for i := range o.rows {
		if err := o.peek(i); err != nil {
			return false, err
		}
	}
	i := 0
	switch {
	case !o.ready[0] && !o.ready[1]:
		return false, nil
	case !o.ready[0], o.ready[1] && !o.b.q.behind && o.b.compare(o.sorted(1), o.sorted(0)) < 0:
		i = 1
	}
	*r = o.rows[i]
	o.ready[i] = false
	return true, nil
}

// peek reads the next row of a side that the query takes.
func (o *overlay) peek(i int) error {
	r := &o.rows[i]
	for !o.ready[i] && !o.ended[i] {
		r.matched, r.covered, r.more = false, false, 0
		var ok bool
		var err error
		if i == 0 {
			ok, err = o.b.rows.candidate(o.base, r)
		} else {
			ok, err = o.nextOwn(r)
		}
		if err == nil && ok && i == 0 {
			if o.wrote[string(r.item.Identity())] {
				continue
			}
			if !r.matched && o.b.q.Match != nil {
				if r.matched, err = o.b.rows.match(&r.item); err == nil && !r.matched {
					if err = o.b.poll(); err == nil {
						continue
					}
				}
			}
		}
		if err != nil {
			return err
		}
		o.ready[i], o.ended[i] = ok, !ok
	}
	return nil
}

// nextOwn gives the next item that the transaction has written.
func (o *overlay) nextOwn(r *row) (bool, error) {
	ok, err := o.own.next(r)
	if ok && len(o.b.q.OrderBy) == 0 {
		r.pos = position{kind: posCreation, number: store.Counter(r.item.Number)}
	}
	return ok, err
}

// sorted returns the sort keys of a side's next row.
func (o *overlay) sorted(i int) *sorted {
	it := &o.rows[i].item
	o.keys[i] = o.keys[i][:0]
	for k := range o.b.q.OrderBy {
		o.keys[i] = append(o.keys[i], sortKey(&o.b.q.OrderBy[k], it).Clone())
	}
	return &sorted{keys: o.keys[i], number: o.b.rank(it)}
}

func (o *overlay) follows() (bool, error) {
	if o.ready[0] || o.ready[1] {
		return true, nil
	}
	for i, src := range [...]source{o.base, o.own} {
		if o.ended[i] {
			continue
		}
		if ok, err := src.follows(); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (o *overlay) close() {
	o.base.close()
	o.own.close()
}

// listed gives the items of a list that the query's partition key and ranges select.
type listed struct {
	b     *builder
	items []*store.Item
	place []byte
}

func (l *listed) next(r *row) (bool, error) {
	for len(l.items) > 0 {
		it := l.items[0]
		l.items = l.items[1:]
		var err error
		if l.place, err = l.b.view.Container().AppendPlace(l.place[:0], it.Identity()); err != nil {
			return false, err
		}
		slot := l.b.view.At(l.place)
		in := slices.ContainsFunc(l.b.spans, func(s span) bool {
			return s.slot == slot && s.contains(l.place, it.Identity())
		})
		if in && l.b.inTexts(it.Identity()) {
			r.slot, r.item = slot, *it
			return true, nil
		}
	}
	return false, nil
}

func (l *listed) follows() (bool, error) { return len(l.items) > 0, nil }
func (l *listed) close()                 {}

// overlays reports whether the query is one of a transaction that has written. If the filter is never true, what the
// transaction has written isn't needed either.
func (b *builder) overlays() bool {
	return b.q.tx != nil && b.q.tx.Dirty() && len(b.spans) > 0 && b.tree.Root.Op != plan.Nothing
}
