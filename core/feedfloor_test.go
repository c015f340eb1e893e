package core_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// seenFrom is a snapshot that records where readers of the feed begin.
type seenFrom struct {
	kv.Snapshot
	least *[]byte
}

func (s seenFrom) Iter(lo, hi []byte) (kv.Iterator, error) {
	if _, kind, ok := keys.ParseSlot(lo); ok && kind == keys.KindFeed {
		*s.least = bytes.Clone(lo)
	}
	return s.Snapshot.Iter(lo, hi)
}

// A reader of a queue's feed, from the beginning or from a time, doesn't walk over all removed entries.
func TestFeedOfAQueueBeginsAtItsFront(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	write := func(i int) {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p"}`, i))
		if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("p"), ID: value.StringOf(fmt.Sprint(i))}); err !=
			nil {
			t.Fatal(err)
		}
	}
	const items = 20_000
	for i := range items {
		write(i)
	}
	var from []byte
	h.set(func(on *hookSet) {
		on.snapshot = func(take func() kv.Snapshot) kv.Snapshot { return seenFrom{take(), &from} }
	})
	for name, sc := range map[string]feed.Scope{"beginning": {}, "time": {Since: 1}} {
		var passed int64
		for end := time.Now().Add(10 * time.Second); ; { // the floor is raised in the background
			write(items)
			put(t, c, core.Create, `{"id":"stays","pk":"p"}`)
			p, err := c.Feed(bg, sc, feed.Start(), 10)
			if err != nil || len(p.Items) != 1 {
				t.Fatal(len(p.Items), err)
			}
			lsn, _, _ := keys.Feed(from)
			if passed = p.Items[0].LSN - int64(lsn); passed < 4096 || time.Now().After(end) {
				break
			}
			if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("p"), ID: value.StringOf("stays")}); err !=
				nil {
				t.Fatal(err)
			}
		}
		if passed >= 4096 {
			t.Errorf("from the %s: a reader walks over %d removed entries", name, passed)
		}
		if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("p"), ID: value.StringOf("stays")}); err != nil {
			t.Fatal(err)
		}
	}
}
