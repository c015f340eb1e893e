package exec

import (
	"slices"

	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/ru"
	"github.com/orrerydb/orrery/core/store"
)

// owed is a part of what was read that the page isn't charged with. A page in creation order may read more than it
// gives, to put rows in order that later pages give, or that earlier pages gave. Each entry and item is charged once:
// with the page in whose part of the order it stands. So the charges of the pages add up to that of the whole, however
// each page finds its rows.
//
// Example: 400 items in pages of 100. Each page reads all 400 and sorts them, and is charged with its own 100.
type owed struct{ entries, items, bytes int }

// itemOf is what one item of so many bytes adds: itself, and the entry that names it.
func itemOf(bytes int) owed { return owed{1, 1, bytes} }

func (o owed) plus(p owed) owed {
	return owed{o.entries + p.entries, o.items + p.items, o.bytes + p.bytes}
}

// less subtracts p, but nothing gets below zero: rows that index entries cover have been charged with no item.
func (o owed) less(p owed) owed {
	return owed{max(0, o.entries-p.entries), max(0, o.items-p.items), max(0, o.bytes-p.bytes)}
}

func (o owed) atMost(p owed) owed {
	return owed{min(o.entries, p.entries), min(o.items, p.items), min(o.bytes, p.bytes)}
}

// read is all that was read so far, charged or not.
func (s *Stats) read() owed { return owed{s.Entries, s.Items, s.Bytes} }

// pay charges what was owed.
func (s *Stats) pay(o owed) { s.owed = s.owed.less(o) }

// Charge returns the cost of the page in request units: a fixed charge for each physical partition in which the query
// begins, and what was read. The pages after the first one have only what they read, so the charges of the pages add up
// to that of the whole.
func (s *Stats) Charge() float64 {
	charged := s.read().less(s.owed)
	return ru.Query(s.Begun, charged.entries, charged.items, charged.bytes)
}

// account is what a sort in creation order has read and not yet charged. All that it reads is owed at first. An item is
// paid when the sort gives it. One that doesn't match is paid when the sort gives the next one that does.
type account struct {
	on     bool      // else nothing is owed
	newest bool      // the order is reversed
	from   *position // the sort gives what is behind it; nil: everything
	begun  owed      // what was read before the sort began to read
	found  owed      // the candidates that it has read
	rest   []skipped // what doesn't match and is behind from, at last in the sort's order
	over   owed      // what doesn't match beyond rest: it is charged with this page
	at     int       // those of rest before it are paid
}

// skipped is an item that doesn't match.
type skipped struct {
	number uint64 // the counter of its number
	bytes  int
}

// mostSkipped bounds the memory of an account. Stretches that are sorted as a whole have no more items.
const mostSkipped = plan.MaxCreation

// begin notes what was read before the sort reads its candidates, of which it gives those behind a position.
func (a *account) begin(s *Stats, from *position) {
	a.from, a.begun, a.found, a.rest, a.at = from, s.read(), owed{}, a.rest[:0], 0
}

// before reports whether one item stands before another one in the order.
func (a *account) before(number, other uint64) bool {
	if a.newest {
		return number > other
	}
	return number < other
}

// candidate notes an item that the sort has read.
func (a *account) candidate(it *store.Item) {
	if a.on {
		a.found = a.found.plus(itemOf(len(it.Doc)))
	}
}

// skip notes a candidate that doesn't match. Those before the position are paid already.
func (a *account) skip(it *store.Item) {
	n := store.Counter(it.Number)
	switch {
	case !a.on, a.from != nil && !a.before(a.from.number, n):
	case len(a.rest) < mostSkipped:
		a.rest = append(a.rest, skipped{n, len(it.Doc)})
	default:
		a.over = a.over.plus(itemOf(len(it.Doc)))
	}
}

// end takes what was read out of the page's charge. A sort that begins after a position owes all of it. One that begins
// at the start is charged at once with what belongs to no candidate.
func (a *account) end(s *Stats) {
	if !a.on {
		return
	}
	d := s.read().less(a.begun)
	if a.from == nil {
		d = d.atMost(a.found)
	}
	s.owed = s.owed.plus(d.less(a.over))
	slices.SortFunc(a.rest, func(x, y skipped) int {
		if a.before(x.number, y.number) {
			return -1
		}
		return 1 // no two have the same number
	})
}

// give charges an item that the sort gives, and what stands before it in the order.
func (a *account) give(s *Stats, number uint64, bytes int) {
	if !a.on {
		return
	}
	n := a.at
	for n < len(a.rest) && a.before(a.rest[n].number, number) {
		n++
	}
	a.pass(s, n)
	s.pay(itemOf(bytes))
}

// settle charges what stands behind the last row.
func (a *account) settle(s *Stats) { a.pass(s, len(a.rest)) }

// pass charges the items of rest before the n-th.
func (a *account) pass(s *Stats, n int) {
	for ; a.at < n; a.at++ {
		s.pay(itemOf(a.rest[a.at].bytes))
	}
}

// counted notes index entries that the planner has counted to choose a plan. They aren't charged: each page has its own
// plan, and the page's size is among its reasons.
func (r *Rows) counted(n int) {
	r.stats.Counted += n
	r.stats.owed.entries += n
}
