package store

import "github.com/orrerydb/orrery/core/keys"

// An item's number has 20 bits of its placement in front of a counter of 40 bits: so the numbers of a logical partition
// are a range. Where the partition key is the id a logical partition is one item, and a new item's number is the counter
// alone; items of stores of format 1 and 2 have the 20 bits there too, and keep them, because clients know an item's
// number as its _rid.

const counterBits = 40

// Counter returns the counter of a number: items of a container that were made later have greater ones.
func Counter(number uint64) uint64 { return number & (1<<counterBits - 1) }

// Order returns the part of an item's number by which index entries with equal values are ordered: the counter where the
// partition key is the id, and the whole number elsewhere.
func (c *Container) Order(number uint64) uint64 {
	return c.Entries().Order(number)
}

// Entries returns the layout of the container's index entries.
func (c *Container) Entries() keys.Entries { return keys.Entries{ByID: c.def.Load().KeyIsID()} }

// Numbered reports whether every item has its number entry: while a store of format 1 or 2 is upgraded they have not.
// Who reads over a view asks View.Numbered.
func (c *Container) Numbered() bool {
	for _, sl := range c.slots {
		if sl.flags.Load().bare {
			return false
		}
	}
	return true
}
