package store

import (
	"context"
	"errors"
	"strconv"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// logicalHeads rewrites the heads of the logical partitions that a part's changes touch. It refuses a partition that
// would grow above its limit. Where the partition key is the id there are no such heads.
func (d *draft) logicalHeads(ctx context.Context, p *part, apart bool) error {
	c := p.sl.c
	if c.def.Load().KeyIsID() {
		return nil
	}
	most := c.MaxLogical()
	for n, first := 0, 0; n < p.partitions; n++ {
		first = p.firstOf(n, first)
		id := &p.chs[first].id
		key := id.appendLogicalKey(d.mem.key[:0])
		known, err := p.logical(first)
		if err != nil {
			return err
		}
		h, err := c.logicalHead(ctx, known, key)
		if err != nil {
			return err
		}
		before, full := h.Bytes, false
		for i := first; i < len(p.chs); i++ {
			if p.chs[i].partition == n {
				was := h.Bytes
				h.add(&p.chs[i])
				full = full || apart && h.Bytes > most && h.Bytes > was
			}
		}
		for i := range p.evicted {
			if p.evicted[i].partition == n {
				h.add(&p.evicted[i])
			}
		}
		if full || h.Bytes > most && h.Bytes > before {
			return status.WithSub(status.Forbidden, status.SubPartitionKeyFull,
				"Partition key reached maximum size of %s. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk",
				sizeText(most))
		}
		h.LSN = p.h.LSN
		if h.Items == 0 {
			d.del(d.late, key)
		} else {
			d.mem.val = h.append(d.mem.val[:0])
			d.put(d.late, key, d.mem.val)
		}
	}
	return nil
}

// firstOf returns the first change of the n-th logical partition, which is from or behind it.
func (p *part) firstOf(n, from int) int {
	for p.chs[from].partition != n {
		from++
	}
	return from
}

// readLogical reads the heads of logical partitions that aren't known with one request. What is read under the latch
// is of the head in memory, or the commit fails.
func (d *draft) readLogical(ctx context.Context) error {
	var of []*change
	var at []int64
	var names [][]byte
	for i := range d.parts {
		p := &d.parts[i]
		if p.known != nil || p.sl.c.def.Load().KeyIsID() {
			continue
		}
		for n, first := 0, 0; n < p.partitions; n++ {
			first = p.firstOf(n, first)
			if ch := &p.chs[first]; !p.hasLogical(ch) {
				of, at, names = append(of, ch), append(at, p.sl.head.LSN), append(names, ch.id.logicalKey())
			}
		}
	}
	if len(names) < 2 {
		return nil
	}
	var v kv.Values
	if err := kv.GetNewest(ctx, d.c.st.eng, &v, names); err != nil {
		return translate(err)
	}
	for i, ch := range of {
		ch.logical, ch.logicalAt, ch.logicalRead = v.At(i), at[i], true
	}
	return nil
}

// hasLogical reports whether a change has read the head of its logical partition.
func (p *part) hasLogical(ch *change) bool { return ch.logicalRead && ch.logicalAt == p.sl.head.LSN }

// logical returns the head of the logical partition of a change, if it is known.
func (p *part) logical(i int) (*LogicalHead, error) {
	ch := &p.chs[i]
	if !p.hasLogical(ch) {
		return p.known, nil
	}
	h := new(LogicalHead)
	if ch.logical == nil {
		return h, nil
	}
	return h, h.decode(ch.logical)
}

// appendLogicalKey appends the key of the head of an item's logical partition.
func (id *identity) appendLogicalKey(dst []byte) []byte {
	return append(append(keys.AppendPrefix(dst, id.slot.key, keys.KindLogical), id.place...), id.tuple...)
}

func (id *identity) logicalKey() []byte { return id.appendLogicalKey(nil) }

// logicalHead reads the head under a key, unless it is known.
func (c *Container) logicalHead(ctx context.Context, known *LogicalHead, key []byte) (h LogicalHead, err error) {
	if known != nil {
		return *known, nil
	}
	b, err := c.st.eng.Get(ctx, nil, key)
	if errors.Is(err, kv.ErrNotFound) {
		return h, nil
	}
	if err == nil {
		err = h.decode(b)
	}
	return h, err
}

func (h *LogicalHead) add(ch *change) {
	items, bytes := ch.grows()
	h.Items += items
	h.Bytes += bytes
}

func sizeText(n int64) string {
	unit := []string{"bytes", "KB", "MB", "GB", "TB"}
	i := 0
	for n >= 1024 && n%1024 == 0 && i < len(unit)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + " " + unit[i]
}
