package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// away is a store of several processes that stops to answer with a write, for a time. Its calls fail after callTime.
type away struct {
	kv.Engine
	armed int                      // with the write after so many
	lasts time.Duration            // how long
	meets func(apply func() error) // what happens to the write; apply makes it
	over  time.Time                // when it answers again
}

const callTime = 10 * time.Second

func (a *away) answer(ctx context.Context) error {
	if !time.Now().Before(a.over) {
		return nil
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, ctx.Err())
	case <-time.After(callTime):
		return kv.ErrUnavailable
	}
}

func (a *away) Get(ctx context.Context, dst, key []byte) ([]byte, error) {
	if err := a.answer(ctx); err != nil {
		return dst, err
	}
	return a.Engine.Get(ctx, dst, key)
}

func (a *away) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if err := a.answer(ctx); err != nil {
		return nil, err
	}
	return a.Engine.Snapshot(ctx)
}

func (a *away) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	if a.armed--; a.armed == 0 {
		own, held := new(kv.Batch), slices.Clone(pre)
		own.Append(b)
		for i := range held {
			held[i].Key, held[i].Value = bytes.Clone(pre[i].Key), bytes.Clone(pre[i].Value)
		}
		a.over = time.Now().Add(a.lasts)
		a.meets(func() error {
			_, err := a.Engine.Write(bg, own, held)
			return err
		})
		_ = a.answer(ctx)
		return nil, kv.ErrUnknownOutcome
	}
	if a.answer(ctx) != nil {
		return nil, kv.ErrUnknownOutcome
	}
	return a.Engine.Write(ctx, b, pre)
}

// A change whose outcome is unknown is answered when the store answers again, if its request lasts as long. Whether it
// was made, was refused, or is still on its way: it is made once.
func TestOutcomeOfAChange(t *testing.T) {
	for _, tc := range []struct {
		name  string
		meets func(t *testing.T, b *catalog.Catalog, apply func() error)
		armed int
		long  time.Duration // the request; 0: without end
		want  status.Code   // 0: it is made
	}{
		{"made", func(t *testing.T, _ *catalog.Catalog, apply func() error) { must(t, apply()) }, 1, 0, 0},
		{"lost", func(*testing.T, *catalog.Catalog, func() error) {}, 1, 0, 0},
		{"refused", func(t *testing.T, b *catalog.Catalog, apply func() error) {
			createDatabase(t, b, "more")
			refuse(t, apply)
		}, 1, 0, 0},
		{"another one was faster", func(t *testing.T, b *catalog.Catalog, apply func() error) {
			create(t, b, "db", spec("new"))
			refuse(t, apply)
		}, 1, 0, status.Conflict},
		{"made, and others since", func(t *testing.T, b *catalog.Catalog, apply func() error) {
			must(t, apply())
			for i := range 10 {
				createDatabase(t, b, fmt.Sprint("more", i))
			}
		}, 1, 0, 0},
		{"made, and too many others since", func(t *testing.T, b *catalog.Catalog, apply func() error) {
			must(t, apply())
			for i := range 30 {
				createDatabase(t, b, fmt.Sprint("more", i))
			}
		}, 1, 0, status.UnknownOutcome},
		{"late", func(t *testing.T, _ *catalog.Catalog, apply func() error) {
			go func() {
				time.Sleep(time.Minute)
				refuse(t, apply)
			}()
		}, 1, 0, 0},
		{"made, and its request ends", func(t *testing.T, _ *catalog.Catalog, apply func() error) { must(t, apply()) },
			1, 5 * time.Second, status.UnknownOutcome},
		{"made, and its request lasts", func(t *testing.T, _ *catalog.Catalog, apply func() error) { must(t, apply()) },
			1, time.Minute, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				below := memkv.New()
				eng := &away{Engine: kvtest.NewShared(below, 1).Engine(), lasts: 35 * time.Second}
				a, b := filled(t, eng, 1), open(t, kvtest.NewShared(below, 2).Engine())
				if _, err := b.Refresh(bg); err != nil {
					t.Fatal(err)
				}
				eng.meets = func(apply func() error) { tc.meets(t, b, apply) }
				eng.armed = tc.armed
				ctx, cancel, most := bg, context.CancelFunc(func() {}), eng.lasts+callTime+100*time.Millisecond
				if tc.long > 0 {
					ctx, cancel = context.WithTimeout(bg, tc.long)
					most = min(most, tc.long+1100*time.Millisecond)
				}
				begun := time.Now()
				k, err := a.CreateContainer(ctx, "db", spec("new"), firstHead)
				if took := time.Since(begun); took > most {
					t.Errorf("it took %v", took)
				}
				cancel()
				if got := status.CodeOf(err); err != nil && got != tc.want || (err == nil) != (tc.want == 0) {
					t.Errorf("%v", err)
				}
				time.Sleep(2 * time.Minute)
				if _, err := b.Refresh(bg); err != nil {
					t.Fatal(err)
				}
				stored, berr := b.Container(bg, "db", "new")
				if berr != nil || err == nil && (stored.RID() != k.RID() || stored.Gen != k.Gen) {
					t.Errorf("stored is %+v, answered was %+v; %v", stored, k, berr)
				}
				create(t, a, "db", spec("next"))
				if n := len(list(t, a, "db")); n != 3 {
					t.Errorf("%d containers, want 3", n)
				}
			})
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func refuse(t *testing.T, apply func() error) {
	t.Helper()
	if err := apply(); !errors.Is(err, kv.ErrConflict) {
		t.Errorf("a late write: %v", err)
	}
}

// A process that notices a change of another one reads the catalog in few round trips, however many containers there
// are: its version, a timestamp, all parts at once, and the state of the journal.
func TestRoundTripsOfAChangedCatalog(t *testing.T) {
	for _, tc := range []struct{ containers, trips int }{{1, 4}, {100, 4}, {400, 4}} {
		synctest.Test(t, func(t *testing.T) {
			const trip = time.Millisecond
			below := memkv.New()
			a := filled(t, kvtest.NewShared(below, 1).Engine(), tc.containers)
			eng := &kvtest.Slow{Engine: kvtest.NewShared(below, 2).Engine(), Far: true, Trip: trip}
			b := open(t, eng)
			createDatabase(t, a, "more")
			begun := time.Now()
			if changed, err := b.Refresh(bg); !changed || err != nil {
				t.Fatal(changed, err)
			}
			if got := int(time.Since(begun) / trip); got > tc.trips {
				t.Errorf("%d containers: %d round trips one after the other, want %d", tc.containers, got, tc.trips)
			}
			if n := len(b.Databases()); n != 2 {
				t.Errorf("%d databases", n)
			}
		})
	}
}
