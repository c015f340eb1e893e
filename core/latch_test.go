package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

// slowMaker is an engine that prepares large batches slowly: each signals its beginning and waits for permission to
// continue.
type slowMaker struct {
	kv.Engine
	begun, goOn chan struct{} // nil: not slow
	large       atomic.Int32  // number of prepared large batches
	late        atomic.Int32  // operations that the last of them got under its latches
}

// largeBatch is a number of operations that no single write has.
const largeBatch = 300

func (s *slowMaker) Prepare(b *kv.Batch, room int) (kv.Prepared, error) {
	p, err := kv.Prepare(s.Engine, b, room)
	if b.Len() < largeBatch || s.begun == nil {
		return p, err
	}
	s.large.Add(1)
	select {
	case s.begun <- struct{}{}:
	default: // it is prepared again
	}
	<-s.goOn
	return &lateCounter{p, s}, err
}

type lateCounter struct {
	kv.Prepared
	s *slowMaker
}

func (l *lateCounter) Write(ctx context.Context, late *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	l.s.late.Store(int32(late.Len()))
	return l.Prepared.Write(ctx, late, pre)
}

// batchOf returns creates of n items with 20 index terms each. partition returns the partition key.
func batchOf(t *testing.T, n int, name string, partition func(i int) string) (ws []core.Write) {
	for i := range n {
		fields := ""
		for f := range 20 {
			fields += fmt.Sprintf(`,"f%d":%d`, f, i*f)
		}
		ws =
			append(
				ws,
				core.Write{Kind: core.Create,
					Doc: mustDoc(t, fmt.Sprintf(`{"id":"%s%d","pk":%q%s}`, name, i, partition(i), fields))})
	}
	return ws
}

// largeWrites are the ways to write many items. Each returns when they are written.
func largeWrites(t *testing.T, c *core.Container, n int) map[string]func(name string) {
	many := func(name string, ordered bool) {
		pk := func(i int) string { return fmt.Sprint("p", i%7) }
		for i, o := range c.WriteMany(bg, batchOf(t, n, name, pk), ordered) {
			if o.Err != nil {
				t.Errorf("%s: write %d: %v", name, i, o.Err)
			}
		}
	}
	return map[string]func(string){
		"transaction": func(name string) {
			ws := batchOf(t, n, name, func(int) string { return "batch" })
			_, err := c.WithTx(bg, pk("batch"), func(tx *core.Tx) error {
				for i := range ws {
					if _, err := tx.Write(&ws[i]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		},
		"many, ordered":   func(name string) { many(name, true) },
		"many, unordered": func(name string) { many(name, false) },
	}
}

// No latch is held while a large batch is prepared: another writer of its slot isn't delayed. The prepared batch is
// still committed. Under the latches it gets little more than a feed entry for each item.
func TestLatchIsFreeWhileABatchIsMade(t *testing.T) {
	const n = 60
	s := &slowMaker{Engine: kv.Checked(memkv.New())}
	e, err := core.Open(bg, s, core.Options{MinSlots: 1, Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	defer clean(t, e)
	c := newContainer(t, e, core.ContainerSpec{})
	others := 0
	for name, write := range largeWrites(t, c, n) {
		t.Run(name, func(t *testing.T) {
			s.begun, s.goOn = make(chan struct{}, 1), make(chan struct{})
			s.large.Store(0)
			done := make(chan struct{})
			go func() {
				write(name)
				close(done)
			}()
			<-s.begun
			through := make(chan struct{})
			others++
			go func() {
				defer close(through)
				put(t, c, core.Upsert, fmt.Sprintf(`{"id":"other%d","pk":"p1"}`, others))
			}()
			select {
			case <-through:
			case <-time.After(10 * time.Second):
				t.Error("a writer of the slot waits for a batch that is being made")
			}
			close(s.goOn)
			<-done
			<-through
			if got := s.large.Load(); got != 1 {
				t.Errorf("the batch was made %d times", got)
			}
			if got := s.late.Load(); got < n || got > n+8 {
				t.Errorf("%d operations were made under the latches, for %d items", got, n)
			}
			s.begun = nil
		})
	}
	if got, want := counted(c), int64(3*n+3); got != want {
		t.Errorf("%d items, want %d", got, want)
	}
}

// Other commits overtake a batch while it is prepared. The batch and its index entries then get the time of the last of
// them: times in a slot never fall.
func TestOvertakenBatchMovesUpInTime(t *testing.T) {
	const n = 60
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	s := &slowMaker{Engine: kv.Checked(memkv.New())}
	e, err := core.Open(bg, s, core.Options{MinSlots: 1, Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	defer clean(t, e) // checks the entries of _ts too
	c := newContainer(t, e, core.ContainerSpec{})
	for name, write := range largeWrites(t, c, n) {
		t.Run(name, func(t *testing.T) {
			s.begun, s.goOn = make(chan struct{}, 1), make(chan struct{})
			done := make(chan struct{})
			go func() {
				write(name)
				close(done)
			}()
			<-s.begun
			clk.Advance(3 * time.Second)
			other := put(t, c, core.Upsert, `{"id":"other","pk":"p1"}`).Item
			close(s.goOn)
			<-done
			s.begun = nil
			key := "batch"
			if name != "transaction" {
				key = "p0"
			}
			it, err := c.Read(bg, pk(key), value.StringOf(name+"0"))
			if err != nil {
				t.Fatal(err)
			}
			if it.LSN <= other.LSN || it.Ticks < other.Ticks || it.TS() != other.TS() {
				t.Errorf("LSN %d at %d behind LSN %d at %d", it.LSN, it.Ticks, other.LSN, other.Ticks)
			}
		})
	}
}
