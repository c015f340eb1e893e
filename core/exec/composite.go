package exec

import (
	"bytes"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
)

// directions says which columns of a composite index descend. It is nil for the leaf of a path.
func directions(p *access.Pred) []bool {
	if p.Comp == nil {
		return nil
	}
	return p.Comp.Index.Directions()
}

// parse splits an entry's key into its parts.
func (e *entries) parse(key []byte) (keys.IndexEntry, error) {
	if l := e.leaf; l.desc != nil {
		return e.b.layout.ParseColumns(key, l.pred.Comp.Index.Cut, l.desc)
	}
	return e.b.layout.Parse(key)
}

// stream is one of the walks in each slot whose entries are merged into an order.
type stream struct {
	leaf  leaf
	lead  int       // bytes before the values that give the order
	after *position // the entries up to this one have been given
}

// streams returns the walks of a leaf. There are several if a first column of a composite index may have one of several
// values.
func (b *builder) streams(l leaf) []stream {
	c := l.pred.Comp
	if c == nil {
		out := []stream{{leaf: l}}
		if b.from != nil {
			val, _ := keys.AppendIndex(nil, b.from.keys[0])
			out[0].after = &position{value: val, number: b.from.number}
		}
		return out
	}
	out := make([]stream, len(l.ivs))
	for i := range out {
		s := &out[i]
		s.leaf, s.lead = l, c.Lead(l.ivs[i].Lo)
		s.leaf.ivs = l.ivs[i : i+1]
		if b.from != nil {
			s.after = b.afterComposite(c, l.ivs[i].Lo[:s.lead:s.lead])
		}
	}
	return out
}

// afterComposite returns the entry after which a scan of a composite index continues. Its value consists of the values
// of the first columns and the sort keys of the position.
func (b *builder) afterComposite(c *access.Composite, val []byte) *position {
	n := len(c.Front)
	for i := range b.q.OrderBy {
		if c.Fixed(b.q.OrderBy[i].Path) {
			continue
		}
		v := b.from.keys[i]
		if b.q.Collation == access.BSONOrder && v.Kind() == value.Null {
			v = value.Undef() // the key of a missing value; an index that stores nulls doesn't give this order
		}
		val, _ = keys.AppendColumn(val, c.Index.Stored(v), c.Index.Cut, c.Index.Columns[n].Desc)
		n++
	}
	return &position{value: val, number: b.from.number}
}

// group is the state of a walk of flipped entries. Such a walk goes through the values in one direction, and through
// the entries of each value in the other. It looks one entry ahead. If that has the same value, it seeks to the other
// end of the group, walks back to the group's beginning, and then seeks to the entry after the group.
//
// Example: values descend and numbers (behind #) ascend. Entries are stored as 4#7, 5#1, 5#2, 5#3. The walk begins at
// 5#3 and sees that 5#2 has the same value. It seeks to 5#1, gives 5#1, 5#2 and 5#3, and seeks to 4#7.
type group struct {
	begun bool
	stand bool   // the iterator is on the first entry of a group that was not examined
	back  bool   // the walk is going back through a group
	key   []byte // prefix and value of the group
	lone  []byte // key of an entry that is the only one with its value
}

// nextFlipped does what next does, for entries whose groups come in the opposite direction. Such entries have one
// interval.
func (e *entries) nextFlipped() (bool, error) {
	g := &e.group
	if !g.begun {
		g.begun = true
		if err := e.beginFlipped(); err != nil {
			return false, err
		}
		if g.back { // the position is inside a group
			if ok, err := e.accept(); err != nil || ok {
				return ok, err
			}
		}
	}
	for {
		if g.back {
			if e.moveBack() && e.inGroup() {
				if ok, err := e.accept(); err != nil || ok {
					return ok, err
				}
				continue
			}
			if err := e.it.Err(); err != nil {
				return false, err
			}
			g.back, g.stand = false, e.seekBehind()
			continue
		}
		if !g.stand {
			if e.it == nil {
				return false, nil
			}
			return false, e.it.Err()
		}
		ok, err := e.accept()
		if err != nil {
			return false, err
		}
		g.lone = append(g.lone[:0], e.it.Key()...)
		g.key = append(append(g.key[:0], e.prefix...), e.cur.Value...)
		if g.stand = e.move(); g.stand && e.inGroup() {
			if g.stand, g.back = false, e.seekEnd(); !g.back {
				return false, e.it.Err()
			}
			if ok, err = e.accept(); err != nil || ok {
				return ok, err
			}
			continue
		}
		if err := e.it.Err(); err != nil {
			return false, err
		}
		if ok {
			e.cur, err = e.parse(g.lone)
			return true, err
		}
	}
}

// beginFlipped moves the iterator to the first entry, or to the one after the resume position.
func (e *entries) beginFlipped() error {
	g, after := &e.group, e.after
	if e.i != 0 || len(e.leaf.ivs) != 1 {
		return nil
	}
	e.after = nil
	ok, err := e.openInterval()
	if err != nil {
		return err
	}
	if g.stand = ok; !ok || after == nil {
		return nil
	}
	g.key = append(append(g.key[:0], e.prefix...), after.value...)
	at := e.b.layout.AppendNumber(bytes.Clone(g.key), after.number)
	if e.desc {
		ok = e.it.SeekGE(keys.After(at))
	} else {
		ok = e.it.SeekLT(at)
	}
	if ok && e.inGroup() {
		g.back, g.stand = true, false
		return nil
	}
	if err := e.it.Err(); err != nil {
		return err
	}
	g.stand = e.seekBehind()
	return e.it.Err()
}

func (e *entries) inGroup() bool { return bytes.HasPrefix(e.it.Key(), e.group.key) }

func (e *entries) moveBack() bool {
	if e.desc {
		return e.it.Next()
	}
	return e.it.Prev()
}

// seekEnd moves to the group's last entry in the direction of the values.
func (e *entries) seekEnd() bool {
	if e.desc {
		return e.it.SeekGE(e.group.key)
	}
	return e.it.SeekLT(keys.After(e.group.key))
}

// seekBehind moves to the first entry after the group.
func (e *entries) seekBehind() bool {
	if e.desc {
		return e.it.SeekLT(e.group.key)
	}
	return e.it.SeekGE(keys.After(e.group.key))
}
