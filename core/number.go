package core

import (
	"bytes"
	"context"

	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/value"
)

// KeyByNumber returns the partition key and id of the item with a number; ok is false when there is none. It costs a
// look-up for each slot.
func (c *Container) KeyByNumber(ctx context.Context, number uint64) (pk PartitionKey, id value.Value, ok bool,
	err error) {
	if c.rt.Numbered() {
		return c.rt.KeyByNumber(ctx, number)
	}
	rows, err := c.Query(ctx, &exec.Query{Match: func(it *Item) (bool, error) { return it.Number == number, nil }})
	if err != nil {
		return nil, id, false, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, id, false, rows.Err()
	}
	pk, id, err = c.KeyOf(bytes.Clone(rows.Item().Doc))
	return pk, id, err == nil, err
}
