package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// holdUp delays one commit: after it got its LSN and before it is visible, or when it is visible and not yet durable.
// release continues it and waits for its acknowledgement.
func holdUp(t *testing.T, h *hooks, visible bool, write func()) (release func()) {
	t.Helper()
	there, goOn, done := make(chan bool), make(chan bool), make(chan bool)
	reached := sync.OnceFunc(func() { close(there) })
	h.set(func(s *hookSet) {
		if visible {
			s.wait = func() error { reached(); <-goOn; return nil } // the writer waits without the latch
			s.visible = func() { h.set(func(s *hookSet) { s.wait, s.visible = nil, nil }) }
		} else {
			s.pre = func(*kv.Batch) {
				h.set(func(s *hookSet) { s.pre = nil })
				reached()
				<-goOn
			}
		}
	})
	go func() {
		defer close(done)
		write()
	}()
	<-there
	return func() {
		close(goOn)
		<-done
	}
}

// What is acknowledged after a reader has asked for "now" is in its feed, even if its commit took a lower LSN before
// and was overtaken by others.
func TestFeedFromNowHasWhatWasInFlight(t *testing.T) {
	for _, visible := range []bool{false, true} {
		t.Run(fmt.Sprint("visible ", visible), func(t *testing.T) {
			e, h := hooked(t, core.Options{})
			c := newContainer(t, e, core.ContainerSpec{})
			keys := inSlots(t, c, 4)
			put(t, c, core.Create, fmt.Sprintf(`{"id":"old","pk":"%s"}`, keys[3]))
			release := holdUp(t, h, visible, func() {
				put(t, c, core.Create, fmt.Sprintf(`{"id":"slow","pk":"%s"}`, keys[2]))
			})
			put(t, c, core.Create, fmt.Sprintf(`{"id":"fast","pk":"%s"}`, keys[0]))
			now, err := c.FeedNow(bg, feed.Scope{})
			if err != nil {
				t.Fatal(err)
			}
			release()
			if ids, _ := drainFeed(t, c, feed.Scope{}, now, 10); !slices.Equal(ids, []string{"slow", "fast"}) {
				t.Errorf("from now: %v", ids)
			}
		})
	}
}

// No page shows an entry above a commit that isn't visible yet: the reader's position would skip that commit.
func TestFeedShowsNothingAboveWhatIsInFlight(t *testing.T) {
	e, h := hooked(t, core.Options{})
	c := newContainer(t, e, core.ContainerSpec{})
	keys := inSlots(t, c, 4)
	put(t, c, core.Create, fmt.Sprintf(`{"id":"old","pk":"%s"}`, keys[3]))
	release := holdUp(t, h, false, func() { put(t, c, core.Create, fmt.Sprintf(`{"id":"slow","pk":"%s"}`, keys[2])) })
	put(t, c, core.Create, fmt.Sprintf(`{"id":"fast","pk":"%s"}`, keys[0]))
	ids, pos := drainFeed(t, c, feed.Scope{}, feed.Start(), 10)
	if !slices.Equal(ids, []string{"old"}) || pos.String() != "1" {
		t.Errorf("%v up to %s while a commit is on its way", ids, pos)
	}
	release()
	if ids, _ = drainFeed(t, c, feed.Scope{}, pos, 1); !slices.Equal(ids, []string{"slow", "fast"}) {
		t.Errorf("%v after it", ids)
	}
}

// A reader that passes an entry which a commit has just removed waits until that commit is durable: after a crash the
// entry could exist again behind the reader's position.
func TestFeedWaitsForWhatHidesEntries(t *testing.T) {
	e, h := hooked(t, core.Options{})
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	release := holdUp(t, h, true, func() {
		if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("a"), ID: value.StringOf("1")}); err != nil {
			t.Error(err)
		}
	})
	read := make(chan string)
	go func() {
		page, err := c.Feed(bg, feed.Scope{}, feed.Start(), 10)
		if err != nil || len(page.Items) != 0 {
			t.Error(page.Items, err)
		}
		read <- page.Next.String()
	}()
	select {
	case pos := <-read:
		t.Errorf("the reader is at %s before the delete is durable", pos)
		release()
	case <-time.After(20 * time.Millisecond):
		release()
		if pos := <-read; pos != "2" {
			t.Errorf("the reader is at %s", pos)
		}
	}
}

// However a commit with an LSN ends, it is no longer in flight afterwards, and the feed continues.
func TestFeedGoesOnAfterEveryEndOfACommit(t *testing.T) {
	upsert := func(id, key string) core.Write {
		return core.Write{Kind: core.Upsert,
			Doc: mustDoc(t, fmt.Sprintf(`{"id":"%s","pk":"%s","u":"%s"}`, id, key, id))}
	}
	ways := map[string]func(c *core.Container, key string) error{
		"one": func(c *core.Container, key string) error {
			_, err := c.Write(bg, upsert("new", key))
			return err
		},
		"many": func(c *core.Container, key string) error {
			return c.WriteMany(bg, []core.Write{upsert("new", key), upsert("more", key)}, true)[0].Err
		},
		"transaction": func(c *core.Container, key string) error {
			_, err := c.WithTx(bg, pk(key), func(tx *core.Tx) error {
				w := upsert("new", key)
				_, err := tx.Write(&w)
				return err
			})
			return err
		},
	}
	fails := func(err error) func(*hookSet) {
		return func(s *hookSet) { s.fail = func() error { return err } }
	}
	ends := map[string]func(*hookSet){
		"full disk":       fails(kv.ErrFull),
		"unavailable":     fails(kv.ErrUnavailable),
		"too large":       fails(kv.ErrTooLarge),
		"refused head":    fails(&kv.PreconditionError{}),
		"unknown, not so": fails(kv.ErrUnknownOutcome),
		"cancelled":       fails(context.Canceled),
		"unknown, applied": func(s *hookSet) { // the store reads the outcome and writes the head again
			var once sync.Once
			s.unsure = func() (err error) {
				once.Do(func() { err = kv.ErrUnknownOutcome })
				return err
			}
		},
		"fault": func(s *hookSet) { s.pre = func(*kv.Batch) { panic("a fault of the engine") } },
	}
	for way, write := range ways {
		for end, set := range ends {
			t.Run(way+", "+end, func(t *testing.T) {
				e, h := hooked(t, core.Options{})
				c := newContainer(t, e, core.ContainerSpec{})
				keys := inSlots(t, c, 4)
				put(t, c, core.Create, fmt.Sprintf(`{"id":"old","pk":"%s"}`, keys[1]))
				h.set(set)
				func() {
					defer func() {
						if p := recover(); p != nil && end != "fault" {
							panic(p)
						}
					}()
					if err := write(c, keys[1]); err == nil {
						t.Error("the write is done")
					}
				}()
				h.set(func(s *hookSet) { *s = hookSet{} })
				feedGoesOn(t, c, keys[3])
			})
		}
	}
}

// feedGoesOn writes into a slot and finds the write in the feed up to now.
func feedGoesOn(t *testing.T, c *core.Container, key string) {
	t.Helper()
	r := put(t, c, core.Create, fmt.Sprintf(`{"id":"after","pk":"%s"}`, key))
	ids, pos := drainFeed(t, c, feed.Scope{}, feed.Start(), 10)
	if !slices.Contains(ids, "after") || pos.String() != strconv.FormatInt(r.LSN, 10) {
		t.Errorf("%v up to %s, want all up to %d", ids, pos, r.LSN)
	}
	if ids, _ = drainFeed(t, c, feed.Scope{}, pos, 10); len(ids) != 0 {
		t.Errorf("%v after the end", ids)
	}
}

// A refusal by the store itself, under the latch, ends a commit too.
func TestFeedGoesOnAfterRefusals(t *testing.T) {
	e, _ := hooked(t, core.Options{MaxLogicalPartition: 2000})
	c := newContainer(t, e, core.ContainerSpec{UniqueKeys: [][]string{{"/u"}}})
	keys := inSlots(t, c, 4)
	put(t, c, core.Create, fmt.Sprintf(`{"id":"old","pk":"%s","u":1}`, keys[1]))
	_, err :=
		c.Write(
			bg, core.Write{Kind: core.Create, Doc: mustDoc(t, fmt.Sprintf(`{"id":"new","pk":"%s","u":1}`, keys[1]))})
	wantCode(t, err, status.Conflict, 0)
	big := fmt.Sprintf(`{"id":"big","pk":"%s","u":2,"text":"%02000d"}`, keys[1], 0)
	_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, big)})
	wantCode(t, err, status.Forbidden, status.SubPartitionKeyFull)
	feedGoesOn(t, c, keys[3])
}

// Deletes of expired items take LSNs too.
func TestFeedGoesOnAfterTheReaper(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	e, h := hooked(t, core.Options{Clock: clk})
	ttl := int32(5)
	c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &ttl})
	keys := inSlots(t, c, 4)
	put(t, c, core.Create, fmt.Sprintf(`{"id":"old","pk":"%s"}`, keys[1]))
	clk.Advance(time.Minute)
	h.set(func(s *hookSet) { s.fail = func() error { return errors.New("no") } })
	e.Reap(bg)
	h.set(func(s *hookSet) { s.fail = nil })
	feedGoesOn(t, c, keys[3])
}

// While many writers run, readers that begin at any time see every change once, in LSN order, without gaps.
func TestFeedUnderWriters(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		const writers = 4
		writes := overNetwork(200, 30)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range writes {
					put(t, c, core.Create, fmt.Sprintf(`{"id":"%d-%d","pk":"%d"}`, w, i, w))
				}
			}()
		}
		readers := make(chan []int64, 3)
		for range cap(readers) {
			go func() {
				var lsns []int64
				defer func() { readers <- lsns }()
				for pos := feed.Start(); len(lsns) < writers*writes; {
					page, err := c.Feed(bg, feed.Scope{}, pos, 7)
					if err != nil {
						t.Error(err)
						return
					}
					for _, it := range page.Items {
						lsns = append(lsns, it.LSN)
					}
					pos = page.Next
				}
			}()
		}
		wg.Wait()
		for range cap(readers) {
			select {
			case lsns := <-readers:
				if len(lsns) != writers*writes || !slices.IsSorted(lsns) {
					t.Errorf("%d changes, in order %v", len(lsns), slices.IsSorted(lsns))
				}
			case <-time.After(20 * time.Second):
				t.Fatal("a reader misses changes")
			}
		}
	})
}
