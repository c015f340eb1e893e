package core_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/epk"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/internal/race"
)

// logReaders are readers of the feed of all versions that together read one scope. got has what they have read of each
// item, in order.
type logReaders struct {
	scopes []feed.Scope
	at     []feed.Position
	got    map[string][]string
}

// logReader returns a reader of a scope from a position.
func logReader(sc feed.Scope, at feed.Position) *logReaders {
	return &logReaders{[]feed.Scope{sc}, []feed.Position{at}, map[string][]string{}}
}

// read reads a page of up to n changes with each of the readers. It returns whether there is more.
func (l *logReaders) read(t *testing.T, c *core.Container, n int) (more bool) {
	t.Helper()
	for i, sc := range l.scopes {
		page, err := inTurn(c).FeedVersions(bg, sc, l.at[i], n)
		if err != nil {
			t.Fatal(err)
		}
		for k, ch := range page.Changes {
			id := ch.Item().ID().Str()
			l.got[id] = append(l.got[id], told(page.Changes[k:k+1]))
		}
		if l.at[i], err = feed.Parse(page.Next.String()); err != nil {
			t.Fatal(err)
		}
		more = more || page.More || len(page.Changes) > 0
	}
	return more
}

// divide replaces each reader by one for each partition of its scope, as an SDK does.
func (l *logReaders) divide(t *testing.T, c *core.Container) {
	t.Helper()
	scopes, at := l.scopes, l.at
	l.scopes, l.at = nil, nil
	for i, sc := range scopes {
		for _, p := range partitionsOf(c) {
			if both, ok := (epk.Range{Min: p.Min, Max: p.Max}).Intersect(sc.Range); ok {
				l.scopes, l.at = append(l.scopes, feed.Scope{Range: both}), append(l.at, at[i])
			}
		}
	}
}

// clone returns readers that continue at the same positions.
func (l *logReaders) clone() *logReaders {
	other := &logReaders{slices.Clone(l.scopes), slices.Clone(l.at), map[string][]string{}}
	for id, all := range l.got {
		other.got[id] = slices.Clone(all)
	}
	return other
}

// logModel is what is known of a container with a log: of each item the field v and the second in which it expires, and
// what the log must have.
type logModel struct {
	v, ends map[string]int64
	want    map[string][]string
}

// expire notes that the item has expired by a second, if it has.
func (m *logModel) expire(id string, now int64) {
	if v, ok := m.v[id]; ok && m.ends[id] != 0 && m.ends[id] <= now {
		m.want[id] = append(m.want[id], fmt.Sprintf("delete %s %d>- expired", id, v))
		delete(m.v, id)
	}
}

// put notes that v is written; ends is 0 for an item that doesn't expire.
func (m *logModel) put(id string, v, ends int64) {
	change := fmt.Sprintf("create %s ->%d", id, v)
	if was, ok := m.v[id]; ok {
		change = fmt.Sprintf("replace %s %d>%d", id, was, v)
	}
	m.want[id] = append(m.want[id], change)
	m.v[id], m.ends[id] = v, ends
}

// A reader of all versions goes on while partitions split and merge: from positions of the container, of partitions
// that are no more, and of a key. So does one that comes back with a position of many splits and merges ago. Each
// change comes once, the changes of an item come in their order, and each has the version before. Deletes come too,
// those of items that have expired as well.
func TestVersionsOverPartitions(t *testing.T) {
	t.Parallel()
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	on(t, farEngines(), core.Options{Clock: clk, MinSlots: 8}, func(t *testing.T, e *core.Engine) {
		never := int32(-1)
		c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &never, LogMinutes: 600})
		now, err := c.FeedVersionsNow(bg, feed.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		readers := map[string]*logReaders{"the container": logReader(feed.Scope{}, now),
			"a key":      logReader(feed.Scope{PK: pk("p3")}, now),
			"partitions": logReader(feed.Scope{Range: epk.Full}, now)}
		s, rnd := shake(c, 3, 12), rand.New(rand.NewPCG(4, 1))
		m := logModel{map[string]int64{}, map[string]int64{}, map[string][]string{}}
		keyOf := func(n int) string { return fmt.Sprint("p", n%17) }
		for round := range race.Fewer(60, 40) {
			for k := range 5 {
				n, v := rnd.IntN(60), int64(round*5+k)
				id, at := fmt.Sprintf("i%02d", n), clk.Now().Unix()
				m.expire(id, at)
				switch was, there := m.v[id]; {
				case there && rnd.IntN(3) == 0:
					remove(t, inTurn(c), keyOf(n), id)
					m.want[id] = append(m.want[id], fmt.Sprintf("delete %s %d>-", id, was))
					delete(m.v, id)
				case rnd.IntN(3) == 0:
					put(t, c, core.Upsert, fmt.Sprintf(`{"id":%q,"pk":%q,"v":%d,"ttl":3}`, id, keyOf(n), v))
					m.put(id, v, at+3)
				default:
					put(t, c, core.Upsert, fmt.Sprintf(`{"id":%q,"pk":%q,"v":%d}`, id, keyOf(n), v))
					m.put(id, v, 0)
				}
			}
			clk.Advance(time.Second)
			if round%4 == 0 {
				e.Reap(bg)
			}
			s.change(t)
			readers["partitions"].divide(t, c)
			for name, l := range maps.Clone(readers) {
				if strings.Contains(name, ",") {
					continue
				}
				l.read(t, c, 4)
				if round%10 == 7 {
					readers[fmt.Sprintf("%s, from the position of round %d", name, round)] = l.clone()
				}
			}
		}
		clk.Advance(time.Minute)
		for range 1000 { // another process may be doing it
			if e.Reap(bg); int64(len(ids(t, c, &exec.Query{}))) == counted(c) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		ofKey := map[string][]string{}
		for n := range 60 {
			id := fmt.Sprintf("i%02d", n)
			if m.expire(id, clk.Now().Unix()); keyOf(n) == "p3" && m.want[id] != nil {
				ofKey[id] = m.want[id]
			}
		}
		for name, l := range readers {
			for l.read(t, c, 10) {
			}
			want := m.want
			if strings.HasPrefix(name, "a key") {
				want = ofKey
			}
			if !maps.EqualFunc(l.got, want, slices.Equal) {
				t.Errorf("the feed of %s has\n%v, want\n%v", name, l.got, want)
			}
		}
		if n := len(ofKey); n < 3 {
			t.Errorf("the key has %d items", n)
		}
	})
}
