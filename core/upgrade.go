package core

import (
	"context"
	"sync"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/lease"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
	"github.com/orrerydb/orrery/core/work"
)

// UpgradeStatus is the progress of the upgrade of a store's containers to the current format.
type UpgradeStatus struct {
	Containers int    `json:"containers"`          // number of all containers
	Done       int    `json:"done"`                // containers that are known to have the current format
	Container  string `json:"container,omitempty"` // the one that is being upgraded: database/container
	Percent    int    `json:"percent,omitempty"`   // its progress
	Problem    string `json:"problem,omitempty"`   // the last one; a failed upgrade is tried again
}

// upgrade walks over the containers of a store that had an older format. A container with a request is upgraded from
// then on, concurrently with the walk.
type upgrade struct {
	mu      sync.Mutex
	under   bool
	st      UpgradeStatus
	present *store.Container
}

// Pace of the walk. An upgrade has its own pace. Containers that need no upgrade are passed in bursts.
const (
	upgradeBurst = 4 * time.Millisecond
	upgradeRest  = time.Second
	upgradeAgain = 10 * time.Second // from one walk to the next, if containers remain
)

// Upgrading returns the progress of the store's upgrade; false when the store has the current format.
func (e *Engine) Upgrading() (UpgradeStatus, bool) {
	u := &e.up
	u.mu.Lock()
	st, present, under := u.st, u.present, u.under
	u.mu.Unlock()
	if present != nil { // a shared store is read for that
		st.Container, st.Percent = present.Name(), present.UpgradeProgress(e.work.Context())
	}
	return st, under
}

// Older reports whether some containers may not have the current format. Then a check ignores index entries, because
// they will be made again.
func (e *Engine) Older() bool { return e.cat.Format() < kv.Format }

// startUpgrade upgrades the containers of a store in which some may not have the current format.
func (e *Engine) startUpgrade() {
	if !e.Older() {
		return
	}
	e.up.under, e.up.st.Containers = true, e.cat.CountAll()
	e.work.Go("upgrade of the store", func() {
		begun := e.clk.Now()
		e.log.Info("The store's containers are being upgraded to the present format, /status shows the progress",
			"containers", e.up.st.Containers, "format", kv.Format)
		for {
			var did, failed int
			err := e.work.Try("upgrade of the store", func() (err error) {
				did, failed, err = e.upgradeTurn(e.work.Context())
				return err
			})
			if err == nil && did == 0 {
				break
			}
			e.up.problem(err)
			if (err != nil || failed > 0) && !e.work.Sleep(upgradeAgain) || e.work.Context().Err() != nil {
				return
			}
		}
		e.up.mu.Lock()
		defer e.up.mu.Unlock()
		e.up.under = false
		e.log.Info("The store's containers have the present format", "containers", e.up.st.Containers,
			"format", kv.Format,
			"took", e.clk.Now().Sub(begun).Round(time.Millisecond).String())
	})
}

func (u *upgrade) problem(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		u.st.Problem = err.Error()
	}
}

// upgradeTurn is upgradeAll in the process that does it. The others wait until it has ended. Then they find that the
// store has the current format, or go on.
func (e *Engine) upgradeTurn(ctx context.Context) (did, failed int, err error) {
	l, err := e.leases().Acquire(ctx, lease.Name{Kind: lease.Upgrade})
	if err != nil {
		return 0, 0, kv.Status(err)
	}
	defer l.Release()
	if e.kv.Shared() {
		if _, err := e.cat.Refresh(l.Context()); err != nil || !e.Older() {
			return 0, 0, err
		}
	}
	return e.upgradeAll(l.Context())
}

// upgradeAll upgrades all containers in sequence. did is the number of containers that needed it, including those that
// failed. If there were none, the store is recorded as upgraded.
func (e *Engine) upgradeAll(ctx context.Context) (did, failed int, err error) {
	e.up.mu.Lock()
	e.up.st.Containers, e.up.st.Done = e.cat.CountAll(), 0
	e.up.mu.Unlock()
	burst := e.clk.Now()
	for def, err := range e.cat.All(ctx) {
		n := 1 // a container that can't be found may have been renamed in the meantime
		if err == nil {
			n, err = e.upgradeOne(ctx, def)
		}
		if ctx.Err() != nil {
			return did, failed, ctx.Err()
		}
		if did += n; err != nil && !status.Is(err, status.NotFound) {
			failed++
			e.up.problem(err)
			continue
		}
		e.up.mu.Lock()
		e.up.st.Done++
		e.up.mu.Unlock()
		if d := e.clk.Now().Sub(burst); d >= upgradeBurst {
			if !work.Sleep(ctx, min(d, upgradeRest)) {
				return did, failed, ctx.Err()
			}
			burst = e.clk.Now()
		}
	}
	if did == 0 {
		err = e.cat.Upgraded(ctx, kv.Format)
	}
	return did, failed, err
}

// upgradeOne upgrades a container. did is 1 when there was something to do, and the container wasn't dropped in the
// meantime.
func (e *Engine) upgradeOne(ctx context.Context, def *catalog.Container) (did int, err error) {
	defer func() {
		if status.Is(err, status.NotFound) {
			did = 0
		}
	}()
	ok, err := e.store.Current(ctx, def)
	if ok {
		return 0, nil
	}
	if err != nil {
		return 1, err
	}
	c, done, err := e.store.Visit(ctx, def)
	if err != nil {
		return 1, err
	}
	defer done()
	e.up.set(c)
	defer e.up.set(nil)
	return 1, c.Upgrade(ctx)
}

func (u *upgrade) set(c *store.Container) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.present = c
}
