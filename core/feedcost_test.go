package core_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/internal/race"
)

// A poll costs what has changed in its range, not what is there. A poll when nothing has changed reads nothing.
func TestFeedCostFollowsChanges(t *testing.T) {
	e, h := hooked(t, core.Options{})
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: lean, LogMinutes: 60,
		Throughput: core.Throughput{Manual: 20000}})
	parts := partitionsOf(c)
	keys := map[string]string{} // a key of each partition
	for i := 0; len(keys) < len(parts); i++ {
		p, err := c.PartitionOf(pk(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		keys[p.ID] = fmt.Sprint(i)
	}
	putMany(t, c, race.Fewer(20000, 2000), func(i int) string {
		return fmt.Sprintf(`{"id":"%d","pk":"%s"}`, i, keys[parts[i%2].ID])
	})
	scope := feed.Scope{}
	scope.Range.Min, scope.Range.Max = parts[0].Min, parts[0].Max
	for name, read := range map[string]func(pos feed.Position) (feed.Page, error){
		"latest version": func(pos feed.Position) (feed.Page, error) { return c.Feed(bg, scope, pos, 100) },
		"all versions":   func(pos feed.Position) (feed.Page, error) { return c.FeedVersions(bg, scope, pos, 100) },
	} {
		pos, err := c.FeedNow(bg, scope)
		if err != nil {
			t.Fatal(err)
		}
		var snapshots, gets, steps atomic.Int64
		poll := func(what string, changes int, mostSnapshots, mostGets, mostSteps int64) {
			t.Helper()
			snapshots.Store(0)
			gets.Store(0)
			steps.Store(0)
			h.set(func(s *hookSet) {
				s.snapshot = func(take func() kv.Snapshot) kv.Snapshot {
					snapshots.Add(1)
					return counting{take(), &gets, &steps}
				}
			})
			page, err := read(pos)
			h.set(func(s *hookSet) { s.snapshot = nil })
			if err != nil || len(page.Items)+len(page.Changes) != changes || page.More {
				t.Fatalf("%s, %s: %d items, %d changes, more %v (%v)", name, what, len(page.Items), len(page.Changes),
					page.More, err)
			}
			if snapshots.Load() > mostSnapshots || gets.Load() > mostGets || steps.Load() > mostSteps {
				t.Errorf("%s, %s: %d snapshots, %d gets, %d steps", name, what, snapshots.Load(), gets.Load(),
					steps.Load())
			}
			pos = page.Next
		}
		poll("at the end", 0, 0, 0, 0)
		for i := range 7 {
			put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%d","pk":"%s","again":true}`, 2*i, keys[parts[0].ID]))
		}
		const slots = 4 // of a partition
		poll("after 7 changes", 7, 1, 7+slots, 8)
		put(t, c, core.Upsert, fmt.Sprintf(`{"id":"1","pk":"%s","again":true}`, keys[parts[1].ID]))
		poll("after a change of another range", 0, 1, slots, 0)
		poll("at the end again", 0, 0, 0, 0)
	}
}
