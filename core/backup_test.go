package core_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/backup"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/internal/histories"
	"github.com/orrerydb/orrery/internal/race"
)

// given holds the numbers that a store has assigned. None of them may be assigned a second time.
type given struct {
	db, container uint64
	version       string
	lsn           int64
	number        uint64
	resource      uint32
}

// giveAll makes one of everything that gets a number.
func giveAll(t *testing.T, e *core.Engine, name string) (g given) {
	t.Helper()
	d, err := e.CreateDatabase(bg, core.DatabaseSpec{ID: name})
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.CreateContainer(bg, name,
		core.ContainerSpec{ID: name, PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}})
	if err != nil {
		t.Fatal(err)
	}
	rid := c.RID()
	g.db, g.container, g.version = uint64(d.Num), uint64(binary.BigEndian.Uint32(rid[4:])), c.ETag()
	r, err := e.CreateResource(bg, name, core.Resource{Kind: core.User, ID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	g.resource = r.Num
	old, err := e.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	put(t, old, core.Create, fmt.Sprintf(`{"id":%q,"pk":"a"}`, name))
	it := read(t, old, name)
	g.lsn, g.number = it.LSN, it.Number&(1<<40-1)
	return g
}

func read(t *testing.T, c *core.Container, id string) *core.Item {
	t.Helper()
	pk, rid, err :=
		c.KeyOf(must(doc.FromJSON(nil, fmt.Appendf(nil, `{"id":%q,"pk":"a"}`, id), doc.JSONOptions{Names: doc.NoSQL})))
	if err != nil {
		t.Fatal(err)
	}
	it, err := c.Read(bg, pk, rid)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// A restored store assigns only numbers above all that were assigned after its backup and are lost. So a reader that
// has read the change feed beyond the backup misses no later change.
func TestRestoredStoreGivesNothingTwice(t *testing.T) {
	k := memkv.New()
	lived, err := core.Open(bg, k, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer lived.Close()
	c := newContainer(t, lived, core.ContainerSpec{ID: "c"})
	put(t, c, core.Create, `{"id":"kept","pk":"a"}`)
	newContainer(t, lived, core.ContainerSpec{ID: "never written to"})
	dir := filepath.Join(t.TempDir(), "copy")
	if err := lived.Checkpoint(bg, dir); err != nil {
		t.Fatal(err)
	}
	before := givenLSN(c)

	putMany(t, c, 5000, func(i int) string { return fmt.Sprintf(`{"id":"lost%d","pk":"a"}`, i) })
	lost := giveAll(t, lived, "lost")
	page, err := c.ChangeFeed(bg, "", feed.After(lost.lsn-1), 10)
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%d items, %v", len(page.Items), err)
	}
	other, err := lived.Container("db", "never written to")
	if err != nil {
		t.Fatal(err)
	}
	put(t, other, core.Create, `{"id":"1","pk":"a"}`)
	otherLSN := givenLSN(other)

	from, err := memkv.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Raise(bg, from); err != nil {
		t.Fatal(err)
	}
	e, err := core.Open(bg, from, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if c, err = e.Container("db", "c"); err != nil {
		t.Fatal(err)
	}
	if counted(c) != 1 || givenLSN(c) != before {
		t.Errorf("%d items, LSN %d: a token of the time that is lost would be taken", counted(c), givenLSN(c))
	}
	if page, err = c.ChangeFeed(bg, "", page.Next, 10); err != nil || len(page.Items) != 0 {
		t.Errorf("ahead of the store: %d items, %v", len(page.Items), err)
	}
	now := giveAll(t, e, "now")
	if now.db <= lost.db || now.container <= lost.container || now.version == lost.version ||
		now.resource <= lost.resource {
		t.Errorf("names: %+v after %+v", now, lost)
	}
	if now.lsn < lost.lsn+1<<35 || now.number < lost.number+1<<27 || now.lsn >= 1<<53 || now.number >= 1<<40 {
		t.Errorf("numbers: %+v after %+v", now, lost)
	}
	if page, err = c.ChangeFeed(bg, "", page.Next, 10); err != nil || len(page.Items) != 1 ||
		page.Items[0].ID().Str() != "now" {
		t.Errorf("who was ahead gets %d items, %v", len(page.Items), err)
	}
	if other, err = e.Container("db", "never written to"); err != nil {
		t.Fatal(err)
	}
	put(t, other, core.Create, `{"id":"1","pk":"a"}`)
	if givenLSN(other) <= otherLSN {
		t.Errorf("a container that had not been written to gives LSN %d again", givenLSN(other))
	}
	if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// After thousands of restores there are no numbers left: that is an error, and nothing is written.
func TestRaiseAtTheEndOfNumbers(t *testing.T) {
	k := memkv.New()
	e, err := core.Open(bg, k, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	newContainer(t, e, core.ContainerSpec{ID: "c"})
	n := 0
	for err = error(nil); err == nil; n++ {
		if n > 1<<13 {
			t.Fatal("numbers never end")
		}
		err = core.Raise(bg, k)
	}
	if !status.Is(err, status.BadRequest) || n < 1000 {
		t.Errorf("after %d restores: %v", n, err)
	}
	for gen := range uint32(3) {
		key := keys.AppendMeta(nil, keys.MetaCounter, gen, "")
		v, err := k.Get(context.Background(), nil, key)
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil || binary.BigEndian.Uint64(v[1:]) >= 1<<53 || binary.BigEndian.Uint64(v[9:]) >= 1<<40 {
			t.Errorf("%x, %v", v, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// A store in memory can't be backed up.
func TestNoBackupOfMemory(t *testing.T) {
	e, err := core.Open(bg, memkv.New(), core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Backup(bg, "/x", kv.BackupOptions{}); !errors.Is(err, core.ErrNoBackups) {
		t.Error(err)
	}
}

// A backup made while three containers are written to has everything that was acknowledged before, every transaction
// completely or not at all, and two containers as of the same moment.
func TestBackupOfAllContainers(t *testing.T) {
	dir := t.TempDir()
	open := func(at string, o pebblekv.Options) (*core.Engine, error) {
		o.MemTableMB = 1
		k, err := pebblekv.Open(filepath.Join(dir, at), o)
		if err != nil {
			return nil, err
		}
		return core.Open(bg, k, core.Options{ReadOnly: o.ReadOnly})
	}
	e, err := open("data/store", pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{"first", "second", "third"}
	cs := map[string]*core.Container{}
	for _, id := range ids {
		cs[id] = newContainer(t, e, core.ContainerSpec{ID: id})
	}
	const writers = 2
	acked := map[string]*[writers]atomic.Int64{"first": {}, "second": {}}
	ctx, stop := context.WithCancel(bg)
	var wg sync.WaitGroup
	for id, done := range acked {
		for w := range writers {
			wg.Go(func() {
				st := histories.State{}
				for n := 0; ctx.Err() == nil; n++ {
					if err := histories.Do(bg, cs[id], w, n, st); err != nil {
						t.Error(err)
						return
					}
					done[w].Add(1)
				}
			})
		}
	}
	wg.Go(func() { // the third container follows what the chain has written to the fourth
		fourth := newContainer(t, e, core.ContainerSpec{ID: "fourth"})
		for n := 0; ctx.Err() == nil; n++ {
			text := fmt.Sprintf(`{"id":"%d","pk":"%d"}`, n, n%7)
			put(t, fourth, core.Create, text)
			put(t, cs["third"], core.Create, text)
		}
	})
	for round := range race.Fewer(4, 2) {
		time.Sleep(100 * time.Millisecond)
		before := map[string][writers]int64{}
		for id, done := range acked {
			before[id] = [writers]int64{done[0].Load(), done[1].Load()}
		}
		taken := time.Unix(1700000000+int64(round), 0)
		o := kv.BackupOptions{Taken: taken, Name: backup.Name(taken, [4]byte{})}
		if _, err := e.Backup(bg, filepath.Join(dir, "to"), o); err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("r%d", round)
		restoreTo(t, filepath.Join(dir, "to"), filepath.Join(dir, at))
		r, err := open(at, pebblekv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := r.Check(bg); err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
		for id := range acked {
			found, err := histories.Found(bg, must(r.Container("db", id)), writers)
			if err != nil {
				t.Fatal(err)
			}
			for w, st := range found {
				if _, err := histories.Steps(w, st, int(before[id][w]), int(acked[id][w].Load())+1); err != nil {
					t.Error(err)
				}
			}
		}
		if c, err := r.Container("db", "fourth"); err == nil {
			n, m := counted(c), counted(must(r.Container("db", "third")))
			if n < m || n > m+1 {
				t.Errorf("%d items of the fourth container, %d of the third: not of one moment", n, m)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	stop()
	wg.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// restoreTo restores the newest backup, as orrery restore does.
func restoreTo(t *testing.T, from, dir string) {
	t.Helper()
	path, m, err := backup.Pick(backup.OS, from)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pebblekv.Restore(bg, path, m, dir, pebblekv.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := pebblekv.Open(dir, pebblekv.Options{Restoring: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(core.Raise(bg, k), k.Close(), r.Done()); err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
