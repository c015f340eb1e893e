package core_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/status"
)

// slotPosition is the body of a position in the previous format: an LSN for each slot, whose ids begin with 1.
func slotPosition(c *core.Container, lsns ...int64) []byte {
	rid := c.RID()
	b := append([]byte{1}, rid[:]...)
	b = binary.AppendVarint(b, 0)
	b = binary.AppendUvarint(b, uint64(len(lsns)))
	for slot, lsn := range lsns {
		b = binary.AppendVarint(binary.AppendUvarint(b, uint64(slot+1)), lsn)
	}
	return b
}

// inSlots returns a partition key in each of the first n slots of a container.
func inSlots(t testing.TB, c *core.Container, n int) []string {
	t.Helper()
	keys := make([]string, n)
	for i, left := 0, n; left > 0; i++ {
		k := "p" + strconv.Itoa(i)
		slot, err := c.SlotOf(pk(k))
		if err != nil {
			t.Fatal(err)
		}
		if s := int(slot.ID() - 1); s < n && keys[s] == "" { // the ids of a new container's slots are 1, 2, ..
			keys[s] = k
			left--
		}
		if i > 1000*n {
			t.Fatalf("the container has fewer than %d slots", n)
		}
	}
	return keys
}

// drainFeed reads a feed to its end, converts each position to text and back, and returns the ids in order.
func drainFeed(t testing.TB, c *core.Container, sc feed.Scope, pos feed.Position, most int) (
	ids []string, end feed.Position) {
	t.Helper()
	for pages := 0; pages < 1000; pages++ {
		page, err := c.Feed(bg, sc, pos, most)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range page.Items {
			ids = append(ids, it.ID().Str())
		}
		if pos, err = feed.Parse(page.Next.String()); err != nil {
			t.Fatal(err)
		}
		if !page.More {
			return ids, pos
		}
	}
	t.Fatal("the feed does not end")
	return nil, pos
}

// The position of a physical partition, or of a part of it, is an LSN as a number, which clients expect of an etag. It
// is valid for every part of the partition.
func TestFeedPositionOfAPartitionIsANumber(t *testing.T) {
	e, _ := hooked(t, core.Options{})
	c := newContainer(t, e, core.ContainerSpec{Throughput: core.Throughput{Manual: 20000}})
	putMany(t, c, 40, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i) })
	last := lastLSN(c)
	first := partitionsOf(c)[0]
	scopes := map[string]feed.Scope{
		"partition":         {Range: epk.Range{Min: first.Min, Max: first.Max}},
		"part of partition": {Range: epk.Range{Min: "05", Max: "0A"}},
		"key":               {PK: pk("p3")},
		"key and range":     {PK: pk("p3"), Range: epk.Range{Min: "", Max: "FF"}},
	}
	for name, sc := range scopes {
		page, err := c.Feed(bg, sc, feed.Start(), 100)
		if err != nil || page.More || page.Next.String() != strconv.FormatInt(last, 10) {
			t.Errorf("%s: the position after everything is %s (%v), want %d", name, page.Next, err, last)
		}
		now, err := c.FeedNow(bg, sc)
		if err != nil || now.String() != strconv.FormatInt(last, 10) {
			t.Errorf("%s: now is %s (%v), want %d", name, now, err, last)
		}
	}
	page, err := c.Feed(bg, feed.Scope{}, feed.Start(), 20)
	if _, numeric := strconv.Atoi(page.Next.String()); err != nil || numeric == nil {
		t.Errorf("the position over partitions is %s (%v)", page.Next, err)
	}
	// At the end it is a number again: the Python client reads over partitions and can continue only from a number.
	page, err = c.Feed(bg, feed.Scope{}, page.Next, 100)
	if err != nil || page.More || page.Next.String() != strconv.FormatInt(last, 10) {
		t.Errorf("the position at the end is %s (%v), want %d", page.Next, err, last)
	}
	for _, p := range partitionsOf(c) { // it is valid for each of them
		ids, _ := drainFeed(t, c, feed.Scope{Range: epk.Range{Min: p.Min, Max: p.Max}}, page.Next, 10)
		if len(ids) != 0 {
			t.Errorf("partition %s has %v after everything", p.ID, ids)
		}
	}
	if ids, _ := drainFeed(t, c, feed.Scope{}, feed.After(last-3), 2); len(ids) != 3 { // and for the container
		t.Errorf("%v after all but three", ids)
	}
}

// A number above all LSNs of the container belongs to another container, or to an earlier one of this name. Waiting for
// it would skip changes, so it is refused.
func TestFeedPositionAheadIsRefused(t *testing.T) {
	e, _ := hooked(t, core.Options{})
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	for _, text := range []string{"9223372036854775807", "1000000000"} {
		pos, err := feed.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Feed(bg, feed.Scope{}, pos, 10)
		wantCode(t, err, status.BadRequest, 0)
	}
	for _, text := range []string{"-1", "+1", "1.0", "9223372036854775808", "0x10"} {
		if _, err := feed.Parse(text); !status.Is(err, status.BadRequest) {
			t.Errorf("%s is accepted", text)
		}
	}
}

// A position in the previous format, with a different LSN in each slot, continues without losing or repeating a change.
// At the end of the feed it becomes a number.
func TestFeedPositionOfTheFormatBefore(t *testing.T) {
	const n = 8 // slots
	e, _ := hooked(t, core.Options{MinSlots: n})
	for _, spec := range []core.ContainerSpec{{ID: "one"}, {ID: "two", Throughput: core.Throughput{Manual: 20000}}} {
		c := newContainer(t, e, spec)
		keys := inSlots(t, c, n)
		for i := range 10 * n { // LSNs 1, 2, .., one slot after the other
			put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"%s"}`, i+1, keys[i%n]))
		}
		lsns := make([]int64, n)
		for i := range lsns {
			lsns[i] = int64(i * 7 % 40)
		}
		var want []string
		for i := range 10 * n {
			if int64(i+1) > lsns[i%n] {
				want = append(want, strconv.Itoa(i+1))
			}
		}
		pos, err := feed.Parse(base64.RawURLEncoding.EncodeToString(sealed(slotPosition(c, lsns...))))
		if err != nil {
			t.Fatal(err)
		}
		got, end := drainFeed(t, c, feed.Scope{}, pos, 3)
		if slices.Sort(want); !slices.Equal(sortedCopy(got), want) {
			t.Errorf("%s: got %v, want %v", c.ID(), got, want)
		}
		if end.String() != strconv.FormatInt(lastLSN(c), 10) {
			t.Errorf("%s: the end is %s", c.ID(), end)
		}
	}
}

func sortedCopy(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}
