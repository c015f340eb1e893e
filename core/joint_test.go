package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/feed"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// commits counts the writes of an engine, and stops them while it is asked to.
type commits struct {
	*kvtest.Process
	n    atomic.Int64
	stop atomic.Pointer[chan bool]
	seen chan bool // gets a token for each write that is stopped

	late  atomic.Pointer[func()] // called once, between a snapshot and its return
	slow  atomic.Int64           // nanoseconds that a write takes at least; 0: it leaves no snapshot to the next one
	after atomic.Int64           // how many snapshots were used that a commit has left
}

func (c *commits) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	s, err := c.Process.Snapshot(ctx)
	if late := c.late.Swap(nil); late != nil {
		(*late)()
	}
	return s, err
}

func (c *commits) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	c.n.Add(1)
	if stop := c.stop.Load(); stop != nil {
		c.seen <- true
		<-*stop
	}
	slow := time.Duration(c.slow.Load())
	time.Sleep(slow)
	w, err := c.Process.Write(ctx, b, pre)
	if f, ok := w.(kv.Follower); ok && slow > 0 {
		return countedFollower{f, c}, err
	} else if ok {
		return struct{ kv.Commit }{w}, err
	}
	return w, err
}

type countedFollower struct {
	kv.Follower
	of *commits
}

func (f countedFollower) After(ctx context.Context) (kv.Snapshot, time.Time) {
	f.of.after.Add(1)
	return f.Follower.After(ctx)
}

// jointContainer returns a container of a shared store, and its engine.
func jointContainer(t *testing.T, o core.Options) (*core.Container, *commits) {
	eng := &commits{Process: kvtest.NewShared(memkv.New(), 1).Engine(), seen: make(chan bool, 100)}
	e := opened(t, kv.Checked(eng), o)
	c := newContainer(t, e, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"first","pk":"p"}`) // numbers are reserved, heads are read
	return c, eng
}

// queue does writes at the same time, while another one commits, so that they queue behind it. It returns their
// outcomes when all are done. meanwhile, if not nil, is called before the other one goes on.
func queue(t *testing.T, c *core.Container, eng *commits, ws []core.Write, meanwhile func()) []core.Outcome {
	stop := make(chan bool)
	eng.stop.Store(&stop)
	var g sync.WaitGroup
	g.Go(func() { put(t, c, core.Upsert, `{"id":"first","pk":"p","again":true}`) })
	<-eng.seen
	out := make([]core.Outcome, len(ws))
	for i := range ws {
		g.Go(func() { out[i].Result, out[i].Err = c.Write(bg, ws[i]) })
	}
	for c.Waiting() < len(ws) {
		time.Sleep(100 * time.Microsecond)
	}
	if meanwhile != nil {
		meanwhile()
	}
	eng.stop.Store(nil)
	close(stop)
	g.Wait()
	return out
}

// Writers that wait share one commit, and each has an outcome of its own.
func TestJointCommit(t *testing.T) {
	c, eng := jointContainer(t, core.Options{})
	was := put(t, c, core.Create, `{"id":"there","pk":"p","n":1}`)
	put(t, c, core.Create, `{"id":"same","pk":"p"}`)
	put(t, c, core.Create, `{"id":"goes","pk":"q"}`)
	never := errors.New("the condition doesn't hold")
	writes := []struct {
		w    core.Write
		want func(core.Outcome) bool
	}{
		{core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"new","pk":"p"}`)},
			func(o core.Outcome) bool { return o.Err == nil && o.Result.Created }},
		{core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"there","pk":"p"}`)},
			func(o core.Outcome) bool { return status.Is(o.Err, status.Conflict) }},
		{core.Write{Kind: core.Replace, Doc: mustDoc(t, `{"id":"absent","pk":"p"}`)},
			func(o core.Outcome) bool { return status.Is(o.Err, status.NotFound) }},
		{core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"refused","pk":"p"}`),
			Check: func(*core.Item) error { return never }},
			func(o core.Outcome) bool { return errors.Is(o.Err, never) }},
		{core.Write{Kind: core.Update, PK: pk("p"), ID: value.StringOf("same"),
			Update: func(*core.Item) (core.Change, error) { return core.Change{Keep: true}, nil }},
			func(o core.Outcome) bool { return o.Err == nil && o.Result.Kept }},
		{core.Write{Kind: core.Delete, PK: pk("q"), ID: value.StringOf("goes")},
			func(o core.Outcome) bool { return o.Err == nil && o.Result.Deleted }},
		{core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"other","pk":"r"}`)},
			func(o core.Outcome) bool { return o.Err == nil && o.Result.Created }},
	}
	var ws []core.Write
	for _, w := range writes {
		ws = append(ws, w.w)
	}
	before := eng.n.Load()
	lsns := map[int64]bool{}
	for i, o := range queue(t, c, eng, ws, nil) {
		if !writes[i].want(o) {
			t.Errorf("write %d: %+v", i, o)
		}
		if o.Err == nil && !o.Result.Kept {
			if lsns[o.Result.LSN] || o.Result.LSN <= was.LSN {
				t.Errorf("write %d has LSN %d", i, o.Result.LSN)
			}
			lsns[o.Result.LSN] = true
		}
	}
	if got := eng.n.Load() - before; got != 2 {
		t.Errorf("%d commits, want that of the first writer and one for all others", got)
	}
	page, err := c.Feed(bg, feed.Scope{}, feed.Start(), 100)
	if err != nil || len(page.Items) != 5 {
		t.Errorf("the feed has %d items, %v", len(page.Items), err)
	}
}

// Writes of one item are in different commits, and follow one another.
func TestJointWritesOfOneItem(t *testing.T) {
	c, eng := jointContainer(t, core.Options{})
	put(t, c, core.Create, `{"id":"n","pk":"p","n":0}`)
	ws := make([]core.Write, 5)
	for i := range ws {
		ws[i] = core.Write{Kind: core.Update, PK: pk("p"), ID: value.StringOf("n"),
			Update: func(old *core.Item) (core.Change, error) {
				n := value.ObjectOf(old.Doc).Get("n").Int()
				return core.Change{Doc: mustDoc(t, fmt.Sprintf(`{"id":"n","pk":"p","n":%d}`, n+1))}, nil
			}}
	}
	for i, o := range queue(t, c, eng, ws, nil) {
		if o.Err != nil {
			t.Errorf("write %d: %v", i, o.Err)
		}
	}
	it, err := c.Read(bg, pk("p"), value.StringOf("n"))
	if err != nil || value.ObjectOf(it.Doc).Get("n").Int() != 5 {
		t.Errorf("%v, %v", it, err)
	}
}

// A writer that comes after the snapshot of a commit isn't refused for what was changed before it came, though the
// commit succeeds.
func TestJointWriterComesLate(t *testing.T) {
	c, eng := jointContainer(t, core.Options{})
	put(t, c, core.Create, `{"id":"z","pk":"p"}`)
	var came waiter
	late := func() {
		if _, err := c.WithTx(bg, pk("p"), func(tx *core.Tx) error {
			_, err := tx.Write(&core.Write{Kind: core.Delete, ID: value.StringOf("z")})
			return err
		}); err != nil {
			t.Error(err)
		}
		came.Go(func() { put(t, c, core.Create, `{"id":"z","pk":"p"}`) })
		for c.Waiting() == 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	eng.late.Store(&late)
	put(t, c, core.Create, `{"id":"x","pk":"p"}`)
	came.Wait()
}

// A logical partition that is full refuses its own writes only.
func TestJointFullPartition(t *testing.T) {
	c, eng := jointContainer(t, core.Options{MaxLogicalPartition: 2000})
	large := make([]byte, 1500)
	for i := range large {
		large[i] = 'x'
	}
	var ws []core.Write
	for i := range 3 {
		ws = append(ws,
			core.Write{Kind: core.Create, Doc: mustDoc(t, fmt.Sprintf(`{"id":"l%d","pk":"full","v":"%s"}`, i, large))},
			core.Write{Kind: core.Create, Doc: mustDoc(t, fmt.Sprintf(`{"id":"s%d","pk":"s"}`, i))})
	}
	fits := 0
	for i, o := range queue(t, c, eng, ws, nil) {
		switch {
		case o.Err == nil && i%2 == 0:
			fits++
		case i%2 == 0:
			wantCode(t, o.Err, status.Forbidden, status.SubPartitionKeyFull)
		case o.Err != nil:
			t.Errorf("write %d: %v", i, o.Err)
		}
	}
	if fits != 1 {
		t.Errorf("%d large items, want 1", fits)
	}
}

// A writer whose time ends in the queue leaves it, and nothing of it is written. Others go on.
func TestJointWriterLeaves(t *testing.T) {
	c, eng := jointContainer(t, core.Options{})
	short, cancel := context.WithCancel(bg)
	left := make(chan error, 1)
	go func() {
		for c.Waiting() == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		_, err := c.Write(short, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"gone","pk":"p"}`)})
		left <- err
	}()
	stays := []core.Write{{Kind: core.Create, Doc: mustDoc(t, `{"id":"stays","pk":"p"}`)}}
	out := queue(t, c, eng, stays, func() {
		for c.Waiting() < 2 {
			time.Sleep(100 * time.Microsecond)
		}
		cancel()
		wantCode(t, <-left, status.Timeout, 0)
	})
	if out[0].Err != nil {
		t.Error(out[0].Err)
	}
	_, err := c.Read(bg, pk("p"), value.StringOf("gone"))
	wantCode(t, err, status.NotFound, 0)
}

// A write whose function panics takes no other with it.
func TestJointPanic(t *testing.T) {
	c, eng := jointContainer(t, core.Options{})
	var ws []core.Write
	for i := range 4 {
		ws = append(ws, core.Write{Kind: core.Create, Doc: mustDoc(t, fmt.Sprintf(`{"id":"i%d","pk":"p"}`, i))})
	}
	var g sync.WaitGroup
	panics := func() {
		for range 3 { // of one item: the second and the third lead
			g.Go(func() {
				defer func() {
					if recover() == nil {
						t.Error("there was no panic")
					}
				}()
				_, _ = c.Write(bg, core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"x","pk":"p"}`),
					Check: func(*core.Item) error { panic("of a test") }})
			})
		}
		for c.Waiting() < len(ws)+3 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	for i, o := range queue(t, c, eng, ws, panics) {
		if o.Err != nil {
			t.Errorf("write %d: %v", i, o.Err)
		}
	}
	g.Wait()
}
