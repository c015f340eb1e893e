package catalog

import (
	"context"
	"iter"

	"github.com/orrerydb/orrery/core/keys"
)

// Format returns the format that all containers have, at least: kv.Format, except in a store of an older one while its
// containers are being upgraded.
func (c *Catalog) Format() int { return c.cur.Load().account.Format }

// Upgraded remembers that all containers have a format.
func (c *Catalog) Upgraded(ctx context.Context, format int) error {
	return c.change(ctx, func(x *draft) error {
		if x.account.Format >= format {
			return nil
		}
		x.account.Format = format
		return x.write(keys.AppendMeta(nil, keys.MetaAccount, 0, ""), x.account)
	})
}

// All gives all containers, as they are now. It holds none of their definitions in memory.
func (c *Catalog) All() iter.Seq2[*Container, error] {
	return c.some(func(d *database) iter.Seq[*ref] { return d.numbers.all() })
}

// CountAll returns how many containers there are.
func (c *Catalog) CountAll() (n int) {
	for d := range c.cur.Load().byNum.all() {
		n += d.ids.len()
	}
	return n
}
