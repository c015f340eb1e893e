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

// Charge returns the cost of the page in request units: a fixed charge for each physical partition in which the query
// begins, and what was read. The pages after the first one have only what they read, so the charges of the pages add up
// to that of the whole.
func (s *Stats) Charge() float64 {
	o := &s.owed
	return ru.Query(s.Begun, max(0, s.Entries-o.entries), max(0, s.Items-o.items), max(0, s.Bytes-o.bytes))
}

// skipped is an item that a sort in creation order has read and not kept, because it doesn't match.
type skipped struct {
	number uint64
	bytes  int
}

// account is what a sort in creation order has read and not yet charged.
type account struct {
	on    bool
	read  owed // the candidates of this reading
	begun Stats
	rest  []skipped // what doesn't match, in creation order after order; at most mostSkipped
	over  owed      // what doesn't match beyond that: it is charged with this page
	at    int       // those before are charged
}

// mostSkipped bounds the memory of an account. Stretches that are sorted as a whole have no more items.
const mostSkipped = plan.MaxCreation

// begin notes what was read before the sort reads its candidates.
func (a *account) begin(s *Stats) {
	a.begun, a.read, a.rest, a.at = *s, owed{}, a.rest[:0], 0
}

// candidate notes an item that the sort has read.
func (a *account) candidate(it *store.Item) {
	a.read.items++
	a.read.bytes += len(it.Doc)
}

// skip notes an item that doesn't match.
func (a *account) skip(number uint64, bytes int) {
	if len(a.rest) < mostSkipped {
		a.rest = append(a.rest, skipped{number, bytes})
		return
	}
	a.over.items++
	a.over.bytes += bytes
}

// end takes what was read out of the page's charge. A sort that begins after a position owes all of it. One that begins
// at the start is charged at once with what belongs to no item.
func (a *account) end(s *Stats, continues bool) {
	d := owed{s.Entries - a.begun.Entries, s.Items - a.begun.Items, s.Bytes - a.begun.Bytes}
	if !continues {
		d = owed{min(d.entries, a.read.items), min(d.items, a.read.items), min(d.bytes, a.read.bytes)}
	}
	s.owed.entries += max(0, d.entries-a.over.items)
	s.owed.items += max(0, d.items-a.over.items)
	s.owed.bytes += max(0, d.bytes-a.over.bytes)
}

// order sorts what doesn't match.
func (a *account) order(newest bool) {
	slices.SortFunc(a.rest, func(x, y skipped) int {
		if (x.number < y.number) == newest {
			return 1
		}
		return -1
	})
}

// give charges an item that the sort gives, and what stands before it in the order.
func (a *account) give(s *Stats, number uint64, bytes int, newest bool) {
	for a.at < len(a.rest) && (a.rest[a.at].number < number) != newest {
		s.pay(a.rest[a.at].bytes)
		a.at++
	}
	s.pay(bytes)
}

// settle charges what stands behind the last row.
func (a *account) settle(s *Stats) {
	for ; a.at < len(a.rest); a.at++ {
		s.pay(a.rest[a.at].bytes)
	}
}

// pay charges an item that was owed.
func (s *Stats) pay(bytes int) {
	s.owed.items = max(0, s.owed.items-1)
	s.owed.entries = max(0, s.owed.entries-1)
	s.owed.bytes = max(0, s.owed.bytes-bytes)
}

// counted notes index entries that the planner has counted to choose a plan. They aren't charged: each page has its own
// plan, and the page's size is among its reasons.
func (r *Rows) counted(n int) {
	r.stats.Counted += n
	r.stats.owed.entries += n
}
