package core_test

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
)

func TestFeed(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20000}})
		if len(c.Partitions()) != 2 {
			t.Fatalf("20,000 RU/s gave %d partitions", len(c.Partitions()))
		}
		for i := range 50 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","v":0}`, i, i))
		}
		for i := 0; i < 50; i += 2 {
			put(t, c, core.Replace, fmt.Sprintf(`{"id":"%d","pk":"p%d","v":1}`, i, i))
		}
		seen := map[string]int{}
		for _, p := range c.Partitions() {
			pos := feed.Start()
			for {
				page, err := c.ChangeFeed(bg, p.ID, pos, 7)
				if err != nil {
					t.Fatal(err)
				}
				for _, it := range page.Items {
					seen[it.ID().Str()]++
				}
				if pos, err = feed.Parse(page.Next.String()); err != nil {
					t.Fatal(err)
				}
				if !page.More {
					break
				}
			}
		}
		if len(seen) != 50 {
			t.Errorf("%d items in the feed", len(seen))
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("item %s came %d times", id, n)
			}
		}
	})
}
