package core_test

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// dataKeys counts the keys of items and their entries in the whole store.
func dataKeys(t *testing.T, e kv.Engine) (n int) {
	t.Helper()
	s := kvtest.Snapshot(t, e)
	defer s.Close()
	lo, hi := keys.DataBounds()
	it, err := s.Iter(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n
}

// Between the commit that drops a container and the moment when its handles know it, a write finds no slot head. It
// asks the catalog for the container's present slots, and so it waits for the end of the drop.
func TestWriteMeetsDrop(t *testing.T) {
	e, h := hooked(t, core.Options{})
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"1","pk":"a"}`)
	errs, written := make(chan error, 2), make(chan bool, 2)
	h.set(func(s *hookSet) {
		s.visible = func() {
			h.set(func(s *hookSet) {
				s.visible = nil
				s.pre = func(*kv.Batch) { written <- true }
			})
			go func() {
				_, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)})
				errs <- err
				_, err = c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
					_, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"2","pk":"a"}`)})
					return err
				})
				errs <- err
			}()
			<-written // the first write has begun its commit
			h.set(func(s *hookSet) { s.pre = nil })
		}
	})
	if err := e.DropContainer(bg, "db", "c"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wantCode(t, <-errs, status.NotFound, status.SubOwnerNotFound)
	}
}

// After a drop all calls of a handle fail with NotFound and sub-status 1003.
func TestHandleAfterDrop(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"1","pk":"a"}`)
		if err := e.DropDatabase(bg, "db"); err != nil {
			t.Fatal(err)
		}
		_, err := c.Read(bg, pk("a"), value.StringOf("1"))
		wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
		_, err = c.Query(bg, &exec.Query{})
		wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
		_, err = c.ChangeFeed(bg, "", feed.Start(), 10)
		wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
		_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"2","pk":"a"}`)})
		wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	})
}

// A container that is dropped during an index rebuild stays dropped: the rebuild writes no key.
func TestDropMeetsRebuild(t *testing.T) {
	e, h := hooked(t, core.Options{MinSlots: 1})
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 300 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"a","v":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,`+
			`19,20]}`, i))
	}
	writes := 0
	h.set(func(s *hookSet) {
		s.pre = func(b *kv.Batch) {
			if writes++; writes == 3 { // 1 is the catalog's write, 2 that of the first chunk
				h.set(func(s *hookSet) { s.pre = nil })
				if err := e.DropContainer(bg, "db", "c"); err != nil {
					t.Error(err)
				}
				for dataKeys(t, h.Engine) > 0 { // the range is dropped in the background
				}
			}
		}
	})
	spec := c.Spec().Clone()
	spec.IndexingPolicy = []byte(`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/v/*"}]}`)
	c, err := e.ReplaceContainer(bg, "db", "c", spec)
	if err == nil {
		err = c.WaitIndex(bg)
	}
	wantCode(t, err, status.NotFound, status.SubOwnerNotFound)
	if n := dataKeys(t, h.Engine); writes < 3 || n > 0 {
		t.Errorf("%d keys in a dropped container (%d writes)", n, writes)
	}
}

// A rebuild that fails half-way continues by itself. Until it is complete queries use the previous policy.
func TestRebuildFailsHalfWay(t *testing.T) {
	t.Parallel()
	e, h := hooked(t, core.Options{MinSlots: 4})
	c := newContainer(t, e, core.ContainerSpec{})
	for i := range 100 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d,"b":%d}`, i, i, i%3, i%3))
	}
	writes, failed := 0, make(chan bool)
	h.set(func(s *hookSet) {
		s.fail = func() error {
			if writes++; writes == 4 {
				close(failed)
			}
			if writes >= 4 {
				return kv.ErrUnavailable
			}
			return nil
		}
	})
	spec := c.Spec().Clone()
	spec.IndexingPolicy = []byte(`{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}`)
	if _, err := e.ReplaceContainer(bg, "db", "c", spec); err != nil {
		t.Fatal(err)
	}
	<-failed
	if got, n := len(ids(t, c, eqQuery("b", 1))), c.IndexProgress(); got != 33 || n == 100 {
		t.Errorf("%d rows while the rebuild is half done, %d %%", got, n)
	}
	h.set(func(s *hookSet) { s.fail = nil })
	for i := range 100 {
		put(t, c, core.Upsert, fmt.Sprintf(`{"id":"%d","pk":"p%d","a":%d}`, i, i, (i+1)%3))
	}
	if err := c.WaitIndex(bg); err != nil {
		t.Fatal(err)
	}
	q := eqQuery("a", 1)
	if plan, err := c.Explain(bg, q); err != nil || plan.Leaf == nil {
		t.Errorf("plan is %s (%v)", plan.Explain(), err)
	}
	if got := len(ids(t, c, q)); got != 34 {
		t.Errorf("%d rows after the rebuild", got)
	}
}
