package store

import (
	"bytes"
	"container/heap"
	"context"

	"github.com/orrerydb/orrery/core/few"
	"github.com/orrerydb/orrery/core/keys"
)

// fixedSize is the most bytes of a logical partition of a container without a partition key.
const fixedSize = 10 << 30

// MaxLogical returns the limit of a logical partition in bytes.
func (c *Container) MaxLogical() int64 {
	if c.Def().PartitionKey.SystemKey {
		return min(c.st.lim.LogicalPartition, fixedSize)
	}
	return c.st.lim.LogicalPartition
}

// Logical describes a logical partition.
type Logical struct {
	PK           PartitionKey
	Place        []byte
	Items, Bytes int64
}

// Heaviest is what a look at the heads of logical partitions found.
type Heaviest struct {
	List  []Logical // the largest ones, by bytes
	Seen  int64     // logical partitions that were looked at
	Whole bool      // these are all that there are
}

// Heaviest returns the n largest of the container's logical partitions. It looks at up to most of them: if there are
// more, at an equal number of each slot. Where the partition key is the id it looks at none, because each item is a
// logical partition.
func (c *Container) Heaviest(ctx context.Context, n, most int) (out Heaviest, err error) {
	v, err := c.View(ctx)
	if err != nil {
		return out, err
	}
	defer v.Close()
	if c.Def().KeyIsID() {
		return out, nil
	}
	out.Whole = true
	h := &lightest{}
	for i := range v.slots {
		sl := &v.slots[i]
		left := max(1, most/len(v.slots))
		lo, hi := keys.KindBounds(sl.key, keys.KindLogical)
		if err := v.walk(lo, hi, func(key, val []byte) (bool, error) {
			if left--; left < 0 || ctx.Err() != nil {
				out.Whole = false
				return false, translate(ctx.Err())
			}
			out.Seen++
			var head LogicalHead
			if err := head.decode(val); err != nil {
				return false, err
			}
			if len(*h) == n && head.Bytes <= (*h)[0].bytes {
				return true, nil
			}
			heap.Push(h, weighed{bytes.Clone(key[keys.PrefixLen:]), head.Items, head.Bytes})
			if len(*h) > n {
				heap.Pop(h)
			}
			return true, nil
		}); err != nil {
			return out, err
		}
	}
	few.Sort(*h, func(a, b weighed) int { return int(b.bytes - a.bytes) })
	size := c.placeLen()
	for _, w := range *h {
		pk, err := c.DecodeKey(w.name[size:])
		if err != nil {
			return out, err
		}
		out.List = append(out.List, Logical{PK: pk, Place: w.name[:size], Items: w.items, Bytes: w.bytes})
	}
	return out, nil
}

// weighed is a logical partition: its placement and tuple.
type weighed struct {
	name         []byte
	items, bytes int64
}

// lightest is a heap of logical partitions, the smallest one first.
type lightest []weighed

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h lightest) Len() int           { return len(h) }
func (h lightest) Less(i, j int) bool { return h[i].bytes < h[j].bytes }
func (h lightest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *lightest) Push(x any)        { *h = append(*h, x.(weighed)) }
func (h *lightest) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
