package exec

import (
	"errors"

	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/value"
)

// errPassed ends a walk that has passed over too many entries of other logical partitions.
var errPassed = errors.New("too many entries of other logical partitions")

// pass passes over an entry of another logical partition.
func (e *entries) pass() error {
	if e.most == nil {
		return nil
	}
	if *e.most--; *e.most < 0 {
		return errPassed
	}
	return nil
}

// passing is a walk inside one logical partition. When it ends with errPassed, the partition is read and sorted, and
// the rows behind the last one that the walk gave follow.
//
// Example: of a device's readings the walk gives those of this morning. Between them and the next, of last year, are
// 500,000 of other devices. After a part of these it is given up. The device's readings are read, and those before this
// morning are given, the latest first.
type passing struct {
	b     *builder
	below *plan.Node // of the partition's items
	walk  source     // nil: it was given up
	sort  *sorter
	most  int  // entries of others that may still be passed over
	price int  // how many of them a row costs that the filter refuses
	given bool // the walk has given a row:
	key   value.Value
	row   uint64 // its number
	hits  int    // rows that satisfied the filter before it
}

// passing makes the source of a walk.
func (b *builder) passing(m *plan.Node) (_ source, err error) {
	p := &passing{b: b, below: m.Kids[1], most: m.Count, price: plan.PassedRow}
	if m.Kids[0].Covered {
		p.price = 1
	}
	p.walk, err = b.mergeOf(m, &p.most)
	if errors.Is(err, errPassed) {
		p.walk = nil
		err = p.turn()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// turn gives the walk up.
func (p *passing) turn() (err error) {
	if p.walk != nil {
		p.walk.close()
		p.walk = nil
	}
	p.b.rows.stats.Sorted = true
	p.sort = newSorter(p.b, p.below)
	if p.given {
		p.sort.pos = &position{kind: posSort, keys: []value.Value{p.key}, number: p.row}
	}
	p.sort.src, err = p.sort.candidates()
	return err
}

func (p *passing) next(r *row) (bool, error) {
	if p.walk != nil {
		ok, err := p.walked(r)
		if !errors.Is(err, errPassed) {
			return ok, err
		}
		if err := p.turn(); err != nil {
			return false, err
		}
	}
	ok, err := p.sort.next(r)
	if ok {
		p.b.rows.stats.Turned++
	}
	return ok, err
}

// walked gives the next row of the walk.
func (p *passing) walked(r *row) (bool, error) {
	if p.refused() {
		if p.most -= p.price; p.most < 0 {
			return false, errPassed
		}
	}
	ok, err := p.walk.next(r)
	if ok {
		p.given, p.key, p.row = true, sortKey(&p.b.q.OrderBy[0], &r.item).Clone(), r.pos.number
		p.hits = p.b.rows.stats.Matched
	}
	return ok, err
}

// refused reports whether the filter has refused the last row.
func (p *passing) refused() bool {
	return p.given && p.b.q.Match != nil && p.b.rows.stats.Matched == p.hits
}

func (p *passing) follows() (bool, error) {
	if p.walk != nil {
		return p.walk.follows()
	}
	return p.sort.follows()
}

func (p *passing) close() {
	if p.walk != nil {
		p.walk.close()
	}
	if p.sort != nil {
		p.sort.close()
	}
}
