package tikvkv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	tikverr "github.com/tikv/client-go/v2/error"
	"github.com/tikv/client-go/v2/tikv"
)

// layoutVersion is the version of what layout.go describes. docs/formats.md names it.
const layoutVersion = 1

// ErrNewer is the error for a keyspace with a store of a newer format. Nothing in it is changed.
var ErrNewer = fmt.Errorf("%w: the store is of a newer version", kv.ErrUnavailable)

// identity is the record of a keyspace's store.
type identity struct {
	kv.Identity
	Layout int `json:"layout"`
}

// claim reads the identity of the keyspace's store. An empty keyspace gets one; nothing else is changed.
func (e *Engine) claim(ctx context.Context, keyspace string) error {
	within, cancel := e.bound(ctx)
	defer cancel()
	for {
		ts, err := e.timestamp(within)
		if err != nil {
			return e.fail(ctx, err)
		}
		record, err := e.store.GetSnapshot(ts).Get(within, e.identity())
		if err == nil {
			return e.recognize(record, keyspace)
		}
		if !tikverr.IsErrNotFound(err) {
			return e.fail(ctx, err)
		}
		lo, hi := e.all()
		pairs, _, err := e.scan(ctx, ts, lo, hi, 1, false, true)
		if err != nil {
			return err
		}
		if len(pairs) > 0 {
			return refused("The keyspace %s has keys, but no store: another program has written them.", keyspace)
		}
		if e.readOnly {
			return refused("The keyspace %s holds no store.", keyspace)
		}
		err = e.found(within, ts)
		if err == nil {
			return nil
		}
		// Another process may have done it at the same time. The outcome may also be unknown. Both are found out by
		// reading again.
		if !conflicts(err) && !tikverr.IsErrorUndetermined(err) || !pause(within, time.Millisecond) {
			return e.fail(ctx, err)
		}
	}
}

// recognize accepts the identity that is stored in the keyspace, or says why not.
func (e *Engine) recognize(record []byte, keyspace string) error {
	var i identity
	if json.Unmarshal(record, &i) != nil || i.Format < 1 || i.Layout < 1 || i.ID == "" {
		return refused("The keyspace %s holds the store of another program, or its identity is damaged.", keyspace)
	}
	if i.Format > kv.Format || i.Layout > layoutVersion {
		return fmt.Errorf("%w: the store in keyspace %s has format %d.%d, this server knows formats up to %d.%d; "+
			"start a newer version of the server", ErrNewer, keyspace, i.Format, i.Layout, kv.Format, layoutVersion)
	}
	if i.Format < kv.Format && !e.older {
		return refused("The store in keyspace %s has format %d, and this server writes format %d: stop all servers of "+
			"the store, and start one of this version with --upgrade.", keyspace, i.Format, kv.Format)
	}
	e.stored = i
	return nil
}

// found writes the identity of a new store, unless somebody else has written it since ts.
func (e *Engine) found(ctx context.Context, ts uint64) error {
	clk := clock.New()
	i := identity{kv.Identity{Format: kv.Format, ID: clk.UUID().String(),
		Created: clk.Now().UTC().Truncate(time.Second)}, layoutVersion}
	return e.write(ctx, ts, i)
}

// write writes an identity, unless somebody else has written one since ts.
func (e *Engine) write(ctx context.Context, ts uint64, i identity) error {
	record, err := json.Marshal(i)
	if err != nil {
		return err
	}
	tx, err := e.store.Begin(tikv.WithStartTS(ts))
	if err != nil {
		return err
	}
	if err := tx.Set(e.identity(), record); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	e.stored = i
	return nil
}

// Upgrade implements kv.Upgradable.
func (e *Engine) Upgrade(ctx context.Context) error {
	if err := e.open(ctx); err != nil {
		return err
	}
	within, cancel := e.bound(ctx)
	defer cancel()
	ts, err := e.timestamp(within)
	if err != nil {
		return e.fail(ctx, err)
	}
	record, err := e.store.GetSnapshot(ts).Get(within, e.identity())
	if err != nil {
		return e.fail(ctx, err)
	}
	var i identity
	if err := json.Unmarshal(record, &i); err != nil || i != e.stored {
		return refused("Another process has changed the identity of the store.")
	}
	i.Format = kv.Format
	if err := e.write(within, ts, i); err != nil {
		return e.fail(ctx, err)
	}
	return nil
}
