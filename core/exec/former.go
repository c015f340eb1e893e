package exec

import (
	"bytes"
	"math"

	"github.com/orrerydb/orrery/core/keys"
)

// This file continues queries from tokens of format 1 where the partition key is the id. The earlier version ordered
// rows with equal values or sort keys by the whole item number, which began with bits of the key's hash. Today's order
// uses the counter alone, so the number of such a position has no meaning in it. The query therefore starts before all
// rows with equal keys and leaves out those that came before the position by their whole numbers. Its own tokens keep
// that whole number as long as rows have these equal keys.
//
// Example: rows with n = 5 have the whole numbers A:7, B:3 and C:9 (hash bits : counter). An old token stands after
// A:7. Today's order is 3, 7, 9. The query starts before 3 and gives B:3 and C:9, but not A:7.

// resume converts the number of a position of an earlier version into today's order. If that isn't possible, the number
// is one before all rows with equal keys, or where a later page of the same query stopped among them. Then resume
// returns the position, whose former field has the whole number. desc says that the first sort key descends.
func (p *position) resume(l keys.Entries, desc bool) *position {
	switch {
	case p == nil || p.former == 0:
		return nil
	case !l.ByID, p.kind == posSort && p.cut: // the cut position's own row is found by its hash
		p.number, p.former = l.Order(p.former), 0
		return nil
	case p.number == 0 && p.kind == posSort && desc:
		p.number = l.Order(math.MaxUint64)
	}
	return p
}

// gaveBefore reports whether an earlier version has given the current row. It copies the original number into the row's
// own position.
func (r *Rows) gaveBefore(row *row) bool {
	p := r.former
	if !r.agrees(row) {
		return false
	}
	row.pos.former = p.former
	if p.kind == posSort && r.q.OrderBy[0].Desc {
		return row.item.Number >= p.former
	}
	return row.item.Number <= p.former
}

// agrees reports whether a row equals the position in everything except the number.
func (r *Rows) agrees(row *row) bool {
	p := r.former
	switch p.kind {
	case posIndex:
		return row.pos.kind == posIndex && bytes.Equal(row.pos.unit.lo, p.unit.lo) &&
			bytes.Equal(row.pos.value, p.value)
	case posSort:
		for i := range p.keys {
			if r.q.Compare(sortKey(&r.q.OrderBy[i], &row.item), p.keys[i]) != 0 {
				return false
			}
		}
		return true
	}
	return false // posMixed: the scan itself compares
}
