package core_test

import (
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
)

// BenchmarkFeedPage reads pages of 100 items of 1 KB.
func BenchmarkFeedPage(b *testing.B) {
	c, _ := benchContainer(b)
	benchFeed(b, c, feed.Scope{}, feed.Start())
}

// BenchmarkFeedAtItsEnd reads at the end of the feed, where there is nothing new.
func BenchmarkFeedAtItsEnd(b *testing.B) {
	c, _ := benchContainer(b)
	benchFeed(b, c, feed.Scope{}, feed.After(lastLSN(c)))
}

// BenchmarkFeedOfAKey reads the feed of one of 100 logical partitions.
func BenchmarkFeedOfAKey(b *testing.B) {
	c, _ := benchContainer(b)
	benchFeed(b, c, feed.Scope{PK: pk("t000070")}, feed.Start())
}

// BenchmarkFeedSince begins at the time of the last item. A search finds its place.
func BenchmarkFeedSince(b *testing.B) {
	c, _ := benchContainer(b)
	page, err := c.Feed(bg, feed.Scope{}, feed.After(benchDocs-1), 1)
	if err != nil || len(page.Items) != 1 {
		b.Fatal(len(page.Items), err)
	}
	benchFeed(b, c, feed.Scope{Since: page.Items[0].TS()}, feed.Start())
}

// benchFeed reads the pages of a feed, and begins again at its end.
func benchFeed(b *testing.B, c *core.Container, sc feed.Scope, from feed.Position) {
	b.ReportAllocs()
	pos := from
	for b.Loop() {
		page, err := c.Feed(bg, sc, pos, 100)
		if err != nil {
			b.Fatal(err)
		}
		if pos = page.Next; !page.More {
			pos = from
		}
	}
}
