package store

import (
	"context"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// An item's number has 20 bits of its placement followed by a counter of 40 bits. So the numbers of a logical partition
// are
// a range. Where the partition key is the id, a logical partition is one item, and the number of a new item is the
// counter alone. Items from stores of format 1 and 2 have the 20 bits there too. They keep them, because clients know
// an item's number as its _rid.
//
// Example: placement bits 0x12345 and counter 7 make the number 0x12345_0000000007.

const counterBits = 40

// Counter returns the counter of a number. In a container, items that were created later have greater counters.
func Counter(number uint64) uint64 { return number & (1<<counterBits - 1) }

// Order returns the part of an item's number that orders index entries of equal value: the counter where the partition
// key is the id, else the whole number.
func (c *Container) Order(number uint64) uint64 {
	return c.Entries().Order(number)
}

// Entries returns the layout of the container's index entries.
func (c *Container) Entries() keys.Entries { return keys.Entries{ByID: c.def.Load().KeyIsID()} }

// Numbered reports whether every item has its number entry. This isn't so while a store of format 1 or 2 is being
// upgraded. A reader with a view uses View.Numbered.
func (c *Container) Numbered() bool {
	for _, sl := range c.slotList() {
		if sl.flags.Load().bare {
			return false
		}
	}
	return true
}

// ItemOverhead returns the number of bytes that Bytes counts for an item beyond its document.
func (c *Container) ItemOverhead(it *Item) int64 {
	n := keys.PrefixLen + c.placeLen() + len(it.ident) + envFixed + envSum
	if it.TTL != 0 {
		n += 4
	}
	return int64(n)
}

// nextNumber returns the counter of a new item's number. If its commit takes that, it is 0.
func (c *Container) nextNumber(ctx context.Context) (uint64, error) {
	if c.inOrder() {
		return 0, nil
	}
	if c.st.others {
		return c.sharedNumber(ctx)
	}
	return c.counter.nextNumber(ctx)
}

// number makes the number of a new item with a placement.
func (c *Container) number(place []byte, counter uint64) uint64 {
	def := c.def.Load()
	if def.KeyIsID() {
		return Counter(counter)
	}
	return place20(def.PartitionKey.EPKKind(), place)<<counterBits | Counter(counter)
}

// mayNumber reports whether an item with a placement may have a number. Where the key is the id, items of an older
// version have placement bits in their numbers.
func (c *Container) mayNumber(place []byte, number uint64) bool {
	def := c.def.Load()
	lead := number >> counterBits
	return lead == place20(def.PartitionKey.EPKKind(), place) || lead == 0 && def.KeyIsID()
}

// KeyByNumber returns the partition key and id of the item with a number; ok is false when there is none.
func (c *Container) KeyByNumber(ctx context.Context, number uint64) (pk PartitionKey, id value.Value, ok bool,
	err error) {
	v, err := c.View(ctx)
	if err != nil {
		return nil, id, false, err
	}
	defer v.Close()
	for i := range v.slots {
		slot := &v.slots[i]
		suffix, err := v.ByNumber(slot, number)
		if err != nil {
			return nil, id, false, err
		}
		if suffix == nil {
			continue
		}
		var it Item
		var m Mem
		if ok, err = v.FetchSuffix(&it, slot, suffix, &m); err != nil {
			return nil, id, false, err
		}
		if ok && it.Number == number {
			return it.PK(), it.ID(), true, v.Settle(ctx, slot, &it)
		}
	}
	for i := range v.slots { // the answer that there is no item must be durable
		if err := v.SettleSlot(ctx, &v.slots[i]); err != nil {
			return nil, id, false, err
		}
	}
	return nil, id, false, nil
}
