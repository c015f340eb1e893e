package core_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
)

// feedItems is the number of items of the feed benchmarks: ITEMS, or 20,000.
func feedItems() int {
	if n, err := strconv.Atoi(os.Getenv("ITEMS")); err == nil && n > 0 {
		return n
	}
	return 20_000
}

// feedContainer has items of 1 KB with random keys: each is a logical partition of its own.
func feedContainer(b *testing.B, logMinutes int64) *core.Container {
	b.Helper()
	e, _ := benchEngine(b, true)
	c := newContainer(b, e, core.ContainerSpec{PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}},
		LogMinutes: logMinutes, IndexingPolicy: []byte(`{"indexingMode":"none","automatic":false}`)})
	for i, n := 0, feedItems(); i < n; i += 1000 {
		putMany(b, c, min(1000, n-i), func(k int) string { return order(i + k) })
	}
	return c
}

// BenchmarkFeedOfRandomKeys reads the whole feed in pages of 1,000: the items are in another order than their keys.
func BenchmarkFeedOfRandomKeys(b *testing.B) {
	c := feedContainer(b, 0)
	b.ReportAllocs()
	seen := 0
	for b.Loop() {
		for pos, more := feed.Start(), true; more; {
			page, err := c.Feed(bg, feed.Scope{}, pos, 1000)
			if err != nil {
				b.Fatal(err)
			}
			pos, more, seen = page.Next, page.More, seen+len(page.Items)
		}
	}
	report(b, seen)
}

// BenchmarkFeedOfAllVersions does the same with the log.
func BenchmarkFeedOfAllVersions(b *testing.B) {
	c := feedContainer(b, 60)
	b.ReportAllocs()
	seen := 0
	for b.Loop() {
		for pos, more := feed.Start(), true; more; {
			page, err := c.FeedVersions(bg, feed.Scope{}, pos, 1000)
			if err != nil {
				b.Fatal(err)
			}
			pos, more, seen = page.Next, page.More, seen+len(page.Changes)
		}
	}
	report(b, seen)
}

func report(b *testing.B, changes int) {
	b.Helper()
	if changes != b.N*feedItems() {
		b.Fatal(fmt.Errorf("%d changes of %d", changes, b.N*feedItems()))
	}
	b.ReportMetric(float64(changes)/b.Elapsed().Seconds(), "changes/s")
}
