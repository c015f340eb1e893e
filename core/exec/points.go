package exec

import (
	"bytes"
	"slices"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/store"
)

// points gives the items and logical partitions that keys name, in the order of their suffixes. It waits for durability
// itself: an existing item tells the LSN of its commit, so points need not wait for the other commits of the slot.
type points struct {
	b    *builder
	list []point
	i    int
	from *position
	sub  *scan

	mem   store.Mem
	chunk store.Many // list[first:read]: items that were fetched with one read
	first int
	read  int
	size  int // of the next chunk
}

type point struct {
	span
	ident []byte // with an id
}

// pointID is the length that the ids of most items don't exceed in a key.
const pointID = 48

func (b *builder) points(_ *plan.Node, from *position) (source, error) {
	p := &points{b: b, from: from, list: make([]point, 0, len(b.tree.Access.Keys))}
	for _, k := range b.tree.Access.Keys {
		slot, place, tuple, _, err := b.view.Locate(store.PartitionKey(k.PK))
		if err != nil {
			return nil, err
		}
		pt := point{span: span{slot: slot, tuple: tuple, full: true}}
		mem := make([]byte, 0, 2*(len(place)+len(tuple)+pointID)) // lo and then hi
		mem = append(append(mem, place...), tuple...)
		pt.base = mem[:len(mem):len(mem)]
		if k.ID.IsDefined() {
			mem = keys.AppendExact(mem, k.ID)
			pt.ident = mem[len(place):len(mem):len(mem)]
			if len(pt.ident) > keys.MaxIdentity {
				continue
			}
		}
		n := len(mem)
		pt.lo = mem[:n:n]
		mem = keys.AppendAfter(mem, pt.lo)
		pt.hi = mem[n:len(mem):len(mem)]
		if b.inSpans(slot, place, tuple) {
			p.list = append(p.list, pt)
		}
	}
	p.sort()
	for from != nil && p.i < len(p.list) && p.passed(&p.list[p.i]) {
		p.i++
	}
	return p, nil
}

// passed reports whether all rows of a point have been given.
func (p *points) passed(pt *point) bool {
	if pt.ident != nil {
		return p.from.passed(pt.lo)
	}
	return bytes.Compare(pt.hi, p.from.key) <= 0
}

// inSpans reports whether a partition key lies in the parts that the query is restricted to.
func (b *builder) inSpans(slot *store.ViewSlot, place, tuple []byte) bool {
	for i := range b.spans {
		if s := &b.spans[i]; s.slot == slot && s.contains(place, tuple) {
			return b.inTexts(tuple)
		}
	}
	return false
}

// sort orders the points by suffix. It removes duplicates, and items inside a partition that is also a point.
func (p *points) sort() {
	slices.SortFunc(p.list, func(a, b point) int { return bytes.Compare(a.lo, b.lo) })
	out := p.list[:0]
	for _, pt := range p.list {
		if n := len(out); n > 0 && (bytes.Equal(out[n-1].lo, pt.lo) || out[n-1].ident == nil &&
			bytes.HasPrefix(pt.lo, out[n-1].lo)) {
			continue
		}
		out = append(out, pt)
	}
	p.list = out
}

func (p *points) next(r *row) (bool, error) {
	for p.i < len(p.list) {
		pt := &p.list[p.i]
		if pt.ident == nil {
			if p.sub == nil {
				if err := p.b.view.SettleSlot(p.b.rows.ctx, pt.slot); err != nil {
					return false, err
				}
				p.sub = newScan(p.b, []span{pt.span}, p.from)
			}
			if ok, err := p.sub.next(r); err != nil || ok {
				return ok, err
			}
			p.sub.close()
			p.sub = nil
			p.i++
			continue
		}
		r.slot, r.covered = pt.slot, false
		ok, err := p.take(r, pt)
		p.i++
		switch {
		case err != nil:
		case ok:
			err = p.b.view.Settle(p.b.rows.ctx, pt.slot, &r.item)
		default:
			err = p.b.view.SettleSlot(p.b.rows.ctx, pt.slot)
		}
		if err != nil {
			return false, err
		}
		if ok {
			r.pos = position{kind: posScan, number: r.item.Number, key: pt.lo}
			return true, nil
		}
	}
	return false, nil
}

// take reads the item of the current point into r.
func (p *points) take(r *row, pt *point) (bool, error) {
	if p.i >= p.read {
		n := p.together()
		if n == 1 {
			return p.b.fetch(r, pt.ident, &p.mem)
		}
		if err := p.fetch(n); err != nil {
			return false, err
		}
	}
	st := &p.b.rows.stats
	st.Items++
	ok, err := p.b.view.Take(&r.item, &p.chunk, p.i-p.first)
	if ok {
		st.Bytes += len(r.item.Doc)
	}
	return ok, err
}

// together returns how many of the next points are items that the reader will probably take. On an engine over a
// network it doubles with each chunk.
func (p *points) together() int {
	if p.size == 0 {
		p.size = p.b.firstChunk()
	} else if p.size = 1; p.b.view.Remote() {
		p.size = min(max(p.read-p.first, 1)*chunkGrowth, chunkMost)
	}
	n := 1
	for n < p.size && p.i+n < len(p.list) && p.list[p.i+n].ident != nil {
		n++
	}
	return n
}

// fetch reads the items of the next n points.
func (p *points) fetch(n int) error {
	p.chunk.Reset()
	for i := p.i; i < p.i+n; i++ {
		if err := p.b.view.Name(&p.chunk, p.list[i].slot, p.list[i].ident); err != nil {
			return err
		}
	}
	_, err := p.b.timed(func() (bool, error) {
		n, err := p.b.view.FetchMany(&p.chunk)
		p.first, p.read = p.i, p.i+n
		return true, err
	})
	return err
}

// follows reports whether something follows. It checks only the partition that the current row belongs to; further
// points are assumed to exist.
func (p *points) follows() (bool, error) {
	for p.i < len(p.list) {
		if p.sub == nil {
			return true, nil
		}
		if ok, err := p.sub.follows(); ok || err != nil {
			return ok, err
		}
		p.sub.close()
		p.sub = nil
		p.i++
	}
	return false, nil
}

func (p *points) close() {
	if p.sub != nil {
		p.sub.close()
		p.sub = nil
	}
}
