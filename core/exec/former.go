package exec

import (
	"bytes"
	"math"

	"github.com/orrerydb/orrery/core/keys"
)

// Tokens of format 1. Where the partition key is the id, the version that gave them ordered rows that agree in value or
// sort keys by the whole item number, which began with bits of the key's hash. So there the number of such a position
// says nothing in today's order: a query goes on before all rows that agree with it, and leaves out those that stood
// before it by their whole numbers. It remembers that in its own tokens as long as rows agree.

// resume makes the number of a position of an earlier version one of today's order, or where there is none puts the
// position before all rows that agree with it: then it returns the position. desc says that the first sort key
// descends.
func (p *position) resume(l keys.Entries, desc bool) *position {
	switch {
	case p == nil || p.former == 0:
		return nil
	case !l.ByID, p.kind == posSort && p.cut: // a row of its own hash is looked for
		p.number, p.former = l.Order(p.former), 0
		return nil
	case p.number == 0 && p.kind == posSort && desc:
		p.number = l.Order(math.MaxUint64)
	}
	return p
}

// gaveBefore reports whether an earlier version has given the present row. The row's own position remembers what it
// goes by.
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

// agrees reports whether a row agrees with the position in all but the number.
func (r *Rows) agrees(row *row) bool {
	p := r.former
	switch p.kind {
	case posIndex:
		return row.pos.kind == posIndex && bytes.Equal(row.pos.slotMin, p.slotMin) &&
			bytes.Equal(row.pos.value, p.value)
	case posSort:
		for i := range p.keys {
			if r.q.Compare(sortKey(&r.q.OrderBy[i], &row.item), p.keys[i]) != 0 {
				return false
			}
		}
		return true
	}
	return false // posMixed: the scan knows
}
