package core_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/value"
)

// beforeSnapshot is an engine that calls a function before the next snapshot.
type beforeSnapshot struct {
	kv.Engine
	do atomic.Pointer[func()]
}

func (e *beforeSnapshot) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if do := e.do.Swap(nil); do != nil {
		(*do)()
	}
	return e.Engine.Snapshot(ctx)
}

// A writer has read, and waits for the latch. Meanwhile another one of its process commits into the slot, so it looks
// again. Before that look another process replaces the slot. What is acknowledged then is in the slots that are read.
func TestSlotIsReplacedBeforeTheSecondLook(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	eng := &beforeSnapshot{Engine: store.Engine()}
	of, err := core.Open(bg, eng, core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	c := newContainer(t, of, core.ContainerSpec{})
	put(t, c, core.Create, `{"id":"y","pk":"q","n":0}`)
	put(t, c, core.Create, `{"id":"x","pk":"p","n":0}`)
	twin, err := core.Open(bg, store.Engine(), core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer twin.Close()
	other, err := twin.Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	at := byte(0x08)
	arm := func() { // what happens before the second look
		do := func() {
			if err := other.SplitSlot(bg, []byte{at}); err != nil {
				t.Error(err)
			}
			at += 8
		}
		eng.do.Store(&do)
	}
	replace := func(n int64) core.Write {
		return core.Write{Kind: core.Replace, Doc: mustDoc(t, `{"id":"x","pk":"p","n":`+string(rune('0'+n))+`}`)}
	}
	race := func() { // a commit of this process between the looks
		_, err := c.WithTx(bg, pk("q"), func(tx *core.Tx) error {
			_, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: mustDoc(t, `{"id":"y","pk":"q","n":1}`)})
			return err
		})
		if err != nil {
			t.Error(err)
		}
		arm()
	}
	for name, write := range map[string]func(n int64) error{
		"write": func(n int64) error {
			w := replace(n)
			w.Check = func(*core.Item) error { race(); return nil }
			_, err := c.Write(bg, w)
			return err
		},
		"transaction": func(n int64) error {
			_, err := c.WithTx(bg, pk("p"), func(tx *core.Tx) error {
				w := replace(n)
				if _, err := tx.Write(&w); err != nil {
					return err
				}
				race()
				return nil
			})
			return err
		},
	} {
		for n := range int64(4) {
			if err := write(n + 1); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for who, in := range map[string]*core.Container{"this process": c, "the other one": other} {
				it, err := in.Read(bg, pk("p"), value.StringOf("x"))
				if err != nil || doc.Get(it.Doc, "n").Int() != n+1 {
					t.Errorf("%s: %s reads %v (%v), want n = %d", name, who, it, err, n+1)
				}
			}
		}
	}
	clean(t, of)
}
