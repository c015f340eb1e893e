package core_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

func TestTxIsAllOrNothing(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"1","pk":"a","n":1}`)
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			if _, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"2","pk":"a"}`)}); err != nil {
				return err
			}
			if _, err := tx.Read(value.StringOf("2")); err != nil {
				return fmt.Errorf("own write: %w", err)
			}
			_, err := tx.Write(&core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"1","pk":"a"}`)})
			return err
		})
		wantCode(t, err, status.Conflict, 0)
		_, err = c.Read(bg, pk("a"), value.StringOf("2"))
		wantCode(t, err, status.NotFound, 0)

		var made [3]*core.Item
		cm, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			for i := range made {
				r, err := tx.Write(&core.Write{
					Kind: core.Upsert, Doc: mustDoc(t, fmt.Sprintf(`{"id":"%d","pk":"a","tx":true}`, i))})
				if err != nil {
					return err
				}
				made[i] = r.Item
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, it := range made {
			if it.LSN != cm.LSN || int(it.Pos) != i {
				t.Errorf("item %d of the transaction has LSN %d position %d, want %d", i, it.LSN, it.Pos, cm.LSN)
			}
		}
	})
}

// TestTxConflictRunsAgain writes to the logical partition while a transaction runs. The function must see the new
// state.
func TestTxConflictRunsAgain(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"sum","pk":"a","n":0}`)
		runs := 0
		_, err := c.WithTx(bg, pk("a"), func(tx *core.Tx) error {
			runs++
			it, err := tx.Read(value.StringOf("sum"))
			if err != nil {
				return err
			}
			n := doc.Get(it.Doc, "n").Int()
			if runs == 1 {
				put(t, c, core.Upsert, `{"id":"sum","pk":"a","n":10}`)
			}
			_, err = tx.Write(&core.Write{
				Kind: core.Replace, Doc: mustDoc(t, fmt.Sprintf(`{"id":"sum","pk":"a","n":%d}`, n+1))})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		it, err := c.Read(bg, pk("a"), value.StringOf("sum"))
		if err != nil {
			t.Fatal(err)
		}
		if runs != 2 || doc.Get(it.Doc, "n").Int() != 11 {
			t.Errorf("%d runs, %s", runs, json(it))
		}
	})
}

// TestUpdateRaces increments one counter from many goroutines. No increment may be lost.
func TestUpdateRaces(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		put(t, c, core.Create, `{"id":"1","pk":"a","n":0}`)
		const workers, times = 8, 50
		var wg sync.WaitGroup
		for range workers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range times {
					_, err := c.Write(bg,
						core.Write{Kind: core.Update, PK: pk("a"), ID: value.StringOf("1"),
							Update: func(old *core.Item) (core.Change, error) {
								return core.Change{
									Doc: mustDoc(
										t,
										fmt.Sprintf(`{"id":"1","pk":"a","n":%d}`, doc.Get(old.Doc, "n").Int()+1))}, nil
							}})
					if err != nil {
						t.Error(err)
					}
				}
			}()
		}
		wg.Wait()
		it, err := c.Read(bg, pk("a"), value.StringOf("1"))
		if err != nil || doc.Get(it.Doc, "n").Int() != workers*times {
			t.Errorf("%v %v", err, it)
		}
	})
}
