package catalog

import (
	"context"
	"errors"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
)

// Amounts by which Raise raises the account's counters. Nothing that was created after a backup, and is lost, can have
// a number above: they allow for a million databases, containers or resources in that time, and for more versions than
// there can be.
const (
	raisedNames    = 1 << 20
	raisedVersions = 1 << 36
)

// maxName is the greatest number of a database, container or resource; the top bit of a container's says what it is.
const maxName = 1<<31 - 1

// maxVersion is the greatest version that every client represents exactly.
const maxVersion = 1<<53 - 1

// Raise puts the account's raised counters into b. Afterwards nothing new gets a number that was given out after the
// engine's state was copied. It returns the generations of all containers. It fails when the numbers are used up; then
// nothing was put into b.
func Raise(ctx context.Context, eng kv.Engine, b *kv.Batch) (gens []uint32, err error) {
	a := firstAccount
	raw, err := eng.Get(ctx, nil, keys.AppendMeta(nil, keys.MetaAccount, 0, ""))
	if err == nil {
		a.Format = 0
		err = decode(raw, &a)
	} else if errors.Is(err, kv.ErrNotFound) {
		err = nil
	}
	if err != nil {
		return nil, translate(err)
	}
	a.NextResource = max(a.NextResource, 1)
	for _, n := range []*uint32{&a.NextDB, &a.NextContainer, &a.NextGen, &a.NextResource} {
		if *n > maxName-2*raisedNames {
			return nil, atTheEnd("numbers of databases and containers")
		}
		*n += raisedNames
	}
	if a.NextVersion > maxVersion-2*raisedVersions {
		return nil, atTheEnd("version numbers")
	}
	a.NextVersion += raisedVersions
	snap, err := eng.Snapshot(ctx)
	if err != nil {
		return nil, translate(err)
	}
	defer snap.Close()
	if err := each(snap, keys.MetaContainer, func(_, raw []byte) error {
		f, err := decodeFront(raw)
		gens = append(gens, f.gen)
		return err
	}); err != nil {
		return nil, translate(err)
	}
	v, err := encode(a)
	if err == nil {
		b.Put(keys.AppendMeta(nil, keys.MetaAccount, 0, ""), v)
	}
	return gens, err
}

func atTheEnd(what string) error {
	return status.New(status.BadRequest, "The store has been restored too often: its %s are at their end.", what)
}
