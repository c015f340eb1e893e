package catalog

import (
	"context"
	"iter"

	"github.com/orrerydb/orrery/core/keys"
)

// Format returns the least format of all containers: kv.Format, except in an older store while its containers are being
// upgraded.
func (c *Catalog) Format() int { return c.cur.Load().account.Format }

// Upgraded records that all containers have a format.
func (c *Catalog) Upgraded(ctx context.Context, format int) error {
	return c.change(ctx, func(x *draft) error {
		if x.account.Format >= format {
			return nil
		}
		x.account.Format = format
		return x.write(keys.AppendMeta(nil, keys.MetaAccount, 0, ""), x.account)
	})
}

// All gives all current containers. It doesn't hold their definitions in memory.
func (c *Catalog) All(ctx context.Context) iter.Seq2[*Container, error] {
	return c.some(ctx, func(d *database) iter.Seq[*ref] { return d.numbers.all() })
}

// Called returns the names, database/container, of the current containers whose generations these are. It reads no
// definition.
func (c *Catalog) Called(gens map[uint32]bool) map[uint32]string {
	names := map[uint32]string{}
	for d := range c.cur.Load().byNum.all() {
		for r := range d.numbers.all() {
			if gens[r.gen] {
				names[r.gen] = d.ID + "/" + r.id
			}
		}
	}
	return names
}

// CountAll returns the number of containers.
func (c *Catalog) CountAll() (n int) {
	for d := range c.cur.Load().byNum.all() {
		n += d.ids.len()
	}
	return n
}
