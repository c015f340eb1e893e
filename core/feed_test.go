package core_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/race"
)

func TestFeed(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20000}})
		if len(partitionsOf(c)) != 2 {
			t.Fatalf("20,000 RU/s gave %d partitions", len(partitionsOf(c)))
		}
		for i := range 50 {
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","v":0}`, i, i))
		}
		for i := 0; i < 50; i += 2 {
			put(t, c, core.Replace, fmt.Sprintf(`{"id":"%d","pk":"p%d","v":1}`, i, i))
		}
		seen := map[string]int{}
		for _, p := range partitionsOf(c) {
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

// A position over several partitions is text with a checksum that belongs to a container. It consists of digits, as an
// LSN does. Any other text than these two is refused.
func TestFeedPositions(t *testing.T) {
	e, _ := hooked(t, core.Options{})
	two := core.Throughput{Manual: 20000}
	a, b := newContainer(t, e, core.ContainerSpec{ID: "a", Throughput: two}),
		newContainer(t, e, core.ContainerSpec{ID: "b", Throughput: two})
	put(t, a, core.Create, `{"id":"1","pk":"a"}`)
	put(t, a, core.Create, `{"id":"2","pk":"a"}`)
	page, err := a.ChangeFeed(bg, "", feed.Start(), 0)
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%d items (%v)", len(page.Items), err)
	}
	_, err = b.ChangeFeed(bg, "", page.Next, 10)
	wantCode(t, err, status.BadRequest, 0)
	text := page.Next.String()
	if _, err := strconv.ParseInt(text, 10, 64); !errors.Is(err, strconv.ErrRange) {
		t.Errorf("the position is %q, %v", text, err)
	}
	for n := range text {
		for _, bad := range []string{text[:n], text[:n] + "-" + text[n:], text[:n] + string(text[n]^1) + text[n+1:]} {
			_, no := strconv.ParseInt(bad, 10, 64)
			if p, err := feed.Parse(bad); err == nil && no != nil && p.String() != text {
				t.Errorf("%q is accepted", bad)
			}
		}
	}
	if page, err = a.ChangeFeed(bg, "", feed.After(lastLSN(a)), 10); err != nil || len(page.Items) != 0 {
		t.Errorf("%d items after the last LSN (%v)", len(page.Items), err)
	}
	_, err = a.ChangeFeed(bg, "17", feed.Start(), 10)
	wantCode(t, err, status.Gone, status.SubPartitionKeyRangeGone)
}

// FuzzFeedPosition: no bytes make a harmful position.
func FuzzFeedPosition(f *testing.F) {
	e, err := core.Open(bg, ownEngines["mem"](f), core.Options{})
	if err != nil {
		f.Fatal(err)
	}
	defer e.Close()
	c := newContainer(f, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20000}})
	put(f, c, core.Create, `{"id":"1","pk":"a"}`)
	put(f, c, core.Create, `{"id":"2","pk":"a"}`)
	page, _ := c.ChangeFeed(bg, "", feed.Start(), 1)
	next, _ := new(big.Int).SetString(page.Next.String(), 10)
	raw := next.Bytes()
	f.Add(raw[:len(raw)-4])
	f.Add(slotPosition(c, 5, 0, 7)) // the previous format
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := feed.Parse(base64.RawURLEncoding.EncodeToString(sealed(body)))
		if err != nil {
			return
		}
		if _, err := c.ChangeFeed(bg, "", p, 5); err != nil && !status.Is(err, status.BadRequest) {
			t.Fatal(err)
		}
	})
}

// A page of large items has fewer items than requested: a client may request any number.
func TestFeedOfLargeItems(t *testing.T) {
	race.Alone(t)
	e, _ := hooked(t, core.Options{})
	c := newContainer(t, e, core.ContainerSpec{})
	text := strings.Repeat("x", 1<<20)
	const items = 12
	for i := range items {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"a","text":"%s"}`, i, text))
	}
	seen, pages := 0, 0
	for pos, more := feed.Start(), true; more; pages++ {
		page, err := c.ChangeFeed(bg, "", pos, math.MaxInt32)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > items/2 {
			t.Errorf("%d MiB in one page", len(page.Items))
		}
		seen, pos, more = seen+len(page.Items), page.Next, page.More
	}
	if seen != items || pages < 2 {
		t.Errorf("%d items in %d pages", seen, pages)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err := c.ChangeFeed(ctx, "", feed.Start(), 10)
	wantCode(t, err, status.Timeout, 0)
}
