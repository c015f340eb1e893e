package exec

import (
	"bytes"

	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/value"
)

// leaf is what the entries of one predicate have in common in all slots.
type leaf struct {
	pred *access.Pred
	path uint64
	ivs  []access.Interval
	ids  []uint64     // of an equality on the identity: hashes for the slots' id filters
	sets store.Values // of an equality: what the slots have at the path
	set  bool         // sets are known
	desc []bool       // of a composite index: which columns descend
	at   int          // index of its counter in Rows.walked
}

// newLeaf prepares a leaf; ok is false when the index can't answer it.
func newLeaf(b *builder, p *access.Pred) (l leaf, ok bool) {
	l = leaf{pred: p, path: p.PathID(b.Policy()), desc: directions(p), at: b.rows.walk(p)}
	l.ivs, _, ok = p.Intervals()
	if p.Op == access.OpIn && isID(p.Path) && len(p.Vals) <= maxFiltered && !(p.Foreign && b.KeysMayBeForeign()) {
		for _, v := range p.Vals {
			l.ids = append(l.ids, store.IDHash(v))
		}
	}
	if ok && p.Op == access.OpIn && l.ids == nil && !b.inOneKey() && len(p.Vals) <= maxFiltered {
		l.sets, l.set = b.view.Values(l.path)
	}
	return l, ok
}

// inOneKey reports whether the query reads one logical partition.
func (b *builder) inOneKey() bool { return len(b.spans) == 1 && b.spans[0].full }

// maxFiltered is the largest number of values that a leaf looks up in the slots' filters.
const maxFiltered = 16

// absent reports whether a slot's filters exclude all values of the leaf.
func (l *leaf) absent(v *store.View, slot *store.ViewSlot) bool {
	if l.set {
		for i := range l.ivs {
			if iv := &l.ivs[i]; iv.Touches(slot.Classes()) && !(iv.One && l.sets.Lacks(slot, iv.Lo)) {
				return false
			}
		}
		return true
	}
	for _, h := range l.ids {
		if v.MayHoldID(slot, h) {
			return false
		}
	}
	return l.ids != nil
}

// takes reports whether an entry with this flag and value, which lies in an interval, belongs to the leaf.
func (l *leaf) takes(flag byte, val []byte) bool {
	return flag&index.FlagElement == 0 || l.pred.Path.Elements || val[0] == value.ClassAny
}

// entries walks the index entries of one leaf in one slot, in the order of (value, number), or backwards. start begins
// another slot and reuses memory and iterator.
type entries struct {
	b       *builder
	leaf    *leaf
	sps     []span // parts of one slot
	desc    bool
	lead    int  // in a merge: bytes before the values that give the order
	flip    bool // entries of one value come in the opposite direction
	group   group
	beside  int       // in a merge: the number of streams
	once    bool      // one entry is enough for each known value
	most    *int      // entries of other logical partitions that may be passed over; nil: any number
	after   *position // the entries up to this value and number have been given
	prefix  []byte    // of the keys, including the path id
	classes uint32    // classes that the slot's index has ever held
	n20     []byte    // with a whole partition key: the first bytes of the numbers
	it      kv.Iterator
	i       int // interval
	open    bool
	lo, hi  []byte
	place   []byte
	cur     keys.IndexEntry
	flag    byte
	skip    bool   // once is set, and the slot's entries allow it
	given   bool   // the previous entry was given
	last    []byte // the key of the previous entry, up to its value
}

// entryMem is the initial memory for the keys of one entries. It is enough for most.
const entryMem = 32 + 2*96

// use gives e memory for its keys.
func (e *entries) use(mem []byte) {
	e.prefix, e.lo, e.hi = mem[0:0:32], mem[32:32:128], mem[128:128:entryMem]
}

// start begins the walk of a slot.
func (e *entries) start(sps []span, after *position) {
	slot := sps[0].slot
	e.sps, e.after, e.open, e.i, e.given = sps, after, false, 0, false
	e.skip = e.once && e.b.sharp(slot) && !e.leaf.many(e.b, slot)
	e.prefix = keys.AppendIndexPath(e.prefix[:0], slot.Key(), e.leaf.path)
	e.classes = slot.Classes()
	e.n20 = nil
	if s := &sps[0]; s.full {
		e.n20 = e.b.view.Container().NumberPrefix(s.base[:len(s.base)-len(s.tuple)])
	}
	if e.desc {
		e.i = len(e.leaf.ivs) - 1
	}
	if e.leaf.absent(e.b.view, slot) {
		e.i = len(e.leaf.ivs)
	}
}

// next moves to the next entry of the leaf that lies in the spans. e.cur is valid until the next call.
func (e *entries) next() (bool, error) {
	if e.flip {
		return e.nextFlipped()
	}
	if e.leaf.pred.Op == access.OpSpatial {
		return e.nextHop()
	}
	for {
		if !e.open {
			if e.i < 0 || e.i >= len(e.leaf.ivs) {
				return false, nil
			}
			ok := e.leaf.desc != nil || e.leaf.ivs[e.i].Touches(e.classes)
			if ok {
				var err error
				if ok, err = e.openInterval(); err != nil {
					return false, err
				}
			}
			if !ok {
				e.step()
				continue
			}
		} else if ok, err := e.moved(); !ok {
			if err != nil {
				return false, err
			}
			e.open = false
			e.step()
			continue
		}
		ok, err := e.accept()
		if e.given = ok; err != nil || ok {
			return ok, err
		}
	}
}

func (e *entries) step() {
	if e.desc {
		e.i--
	} else {
		e.i++
	}
}

// moved moves to the next entry of the interval. It returns false at the end of the interval.
func (e *entries) moved() (bool, error) {
	if e.move() {
		return true, nil
	}
	return false, e.it.Err()
}

func (e *entries) move() bool {
	if e.skip && e.given && index.FormKind(e.flag, e.cur.Value[0]) != value.Undefined {
		return e.moveValue()
	}
	if e.desc {
		return e.it.Prev()
	}
	return e.it.Next()
}

// fewSteps is the number of steps after which a seek costs less than further steps.
const fewSteps = 12

// moveValue moves to the next entry with another value: first in steps, then with a seek.
func (e *entries) moveValue() bool {
	e.last = append(append(e.last[:0], e.prefix...), e.cur.Value...)
	for range fewSteps {
		ok := e.desc && e.it.Prev() || !e.desc && e.it.Next()
		if !ok || !bytes.HasPrefix(e.it.Key(), e.last) {
			return ok
		}
	}
	if e.desc {
		return e.it.SeekLT(e.last)
	}
	return e.it.SeekGE(keys.After(e.last))
}

// openInterval moves the iterator to the first entry of interval i, or to the one after the resume position if that
// lies in the interval. It returns false when there is none.
func (e *entries) openInterval() (bool, error) {
	iv := &e.leaf.ivs[e.i]
	e.lo = append(append(e.lo[:0], e.prefix...), iv.Lo...)
	if e.n20 != nil && iv.One {
		e.lo = append(e.lo, e.n20...)
		e.hi = keys.AppendAfter(e.hi[:0], e.lo)
	} else {
		e.hi = append(append(e.hi[:0], e.prefix...), iv.Hi...)
	}
	if e.it == nil {
		var err error
		if e.it, err = e.b.iter(e.lo, e.hi); err != nil {
			return false, err
		}
	} else {
		e.it.Reset(e.lo, e.hi)
	}
	if e.b.view.Remote() {
		e.it.Ahead(e.b.wantedOf(e.beside))
	}
	var ok bool
	switch {
	case e.after != nil:
		at := e.b.layout.AppendNumber(append(append([]byte(nil), e.prefix...), e.after.value...), e.after.number)
		if e.desc {
			ok = e.it.SeekLT(at)
		} else {
			ok = e.it.SeekGE(keys.After(at))
		}
	case e.desc:
		ok = e.it.Last()
	default:
		ok = e.it.First()
	}
	if !ok {
		return false, e.it.Err()
	}
	e.open = true
	return true, nil
}

// accept parses the current entry. It returns false when the entry doesn't belong to the leaf or isn't in the spans.
func (e *entries) accept() (bool, error) {
	e.b.rows.stats.Entries++
	e.b.rows.walked[e.leaf.at]++
	if err := e.b.poll(); err != nil {
		return false, err
	}
	cur, err := e.parse(e.it.Key())
	if err != nil {
		return false, err
	}
	e.cur, e.flag = cur, index.FlagSet
	if v := e.it.Value(); len(v) > 0 {
		e.flag = v[0]
	}
	if !e.leaf.takes(e.flag, cur.Value) {
		return false, nil
	}
	if e.sps[0].whole() {
		return true, nil
	}
	if s := &e.sps[0]; s.full {
		if bytes.HasPrefix(cur.Name, s.tuple) {
			return true, nil
		}
		return false, e.pass()
	}
	if e.place, err = e.b.view.Container().AppendPlace(e.place[:0], cur.Name); err != nil {
		return false, err
	}
	for i := range e.sps {
		if e.sps[i].contains(e.place, cur.Name) {
			return e.b.inTexts(cur.Name), nil
		}
	}
	return false, nil
}

func (e *entries) close() {
	if e.it != nil {
		e.b.rest(e.it)
		e.it = nil
	}
}

// first returns the least value among the item's entries that the leaf takes, nil when there is none. If a path has
// array elements, an item has several entries. It is given only at the least one.
func (l *leaf) first(pol *index.Policy, t *index.Terms, it *store.Item) (least []byte) {
	pol.Collect(t, it.Doc, it.TS())
	t.Path(l.path, func(val []byte, flag byte) bool {
		if l.takes(flag, val) && access.Within(l.ivs, val) {
			least = val
		}
		return least == nil
	})
	return least
}
