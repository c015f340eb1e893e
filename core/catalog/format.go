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
func (c *Catalog) All() iter.Seq2[*Container, error] {
	return c.some(func(d *database) iter.Seq[*ref] { return d.numbers.all() })
}

// CountAll returns the number of containers.
func (c *Catalog) CountAll() (n int) {
	for d := range c.cur.Load().byNum.all() {
		n += d.ids.len()
	}
	return n
}
