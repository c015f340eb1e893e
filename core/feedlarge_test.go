package core_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/internal/race"
)

// Large items are read together too, as many as fit into the memory of a chunk. Single gets would put them into the
// cache of values, where they displace others.
func TestFeedReadsLargeItemsTogether(t *testing.T) {
	race.Alone(t)
	e, h := hooked(t, core.Options{})
	c := newContainer(t, e, core.ContainerSpec{IndexingPolicy: lean})
	const items = 60
	putMany(t, c, items, func(i int) string {
		size := []int{200_000, 50_000, 400_000, 10}[i%4]
		return fmt.Sprintf(`{"id":"%02d","pk":"%d","pad":%q}`, i, i%3, strings.Repeat("x", size))
	})
	var order []string
	for _, x := range []struct {
		name  string
		scope feed.Scope
		want  int
	}{{"all", feed.Scope{}, items}, {"a key", feed.Scope{PK: pk("1")}, items / 3}} {
		var gets, together atomic.Int64
		h.set(func(s *hookSet) {
			s.snapshot = func(take func() kv.Snapshot) kv.Snapshot { return separately{take(), &gets, &together} }
		})
		var ids []string
		for pos, more := feed.Start(), true; more; {
			page, err := c.Feed(bg, x.scope, pos, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range page.Items {
				ids = append(ids, it.ID().Str())
			}
			pos, more = page.Next, page.More
		}
		h.set(func(s *hookSet) { s.snapshot = nil })
		if x.scope.PK == nil {
			order = ids
		} else if want := inBoth(order, ids); !slices.Equal(ids, want) {
			t.Errorf("%s: %v, in the feed of all: %v", x.name, ids, want)
		}
		if len(ids) != x.want {
			t.Errorf("%s: %d items", x.name, len(ids))
		}
		if n := gets.Load(); n >= int64(x.want)/4 {
			t.Errorf("%s: %d single gets", x.name, n)
		}
		if n := together.Load(); n < int64(x.want) || n > 2*int64(x.want) {
			t.Errorf("%s: %d values were read for %d items", x.name, n, x.want)
		}
	}
}

// inBoth returns the texts of the first list that are in the second one, too.
func inBoth(list, other []string) (out []string) {
	for _, s := range list {
		if slices.Contains(other, s) {
			out = append(out, s)
		}
	}
	return out
}

// separately counts the values that are read one by one, and those that are read together.
type separately struct {
	kv.Snapshot
	gets, together *atomic.Int64
}

func (s separately) Get(dst, key []byte) ([]byte, error) {
	s.gets.Add(1)
	return s.Snapshot.Get(dst, key)
}

func (s separately) GetMany(v *kv.Values, keys [][]byte) error {
	err := s.Snapshot.GetMany(v, keys)
	s.together.Add(int64(v.Len()))
	return err
}
