package core_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// A unique value stays taken, and a free one free, after everything that rewrites a store or moves items in it.
func TestDeclaredStays(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, eng *memkv.Engine, e *core.Engine) *core.Engine{
		"restart": func(t *testing.T, eng *memkv.Engine, e *core.Engine) *core.Engine {
			return restarted(t, eng, e)
		},
		"splits and a join": func(t *testing.T, _ *memkv.Engine, e *core.Engine) *core.Engine {
			if n := moves(t, must(e.Container("db", "c"))); n != 3 {
				t.Fatalf("%d of 3 moves", n)
			}
			return e
		},
		"salvage": func(t *testing.T, eng *memkv.Engine, e *core.Engine) *core.Engine {
			fresh := memkv.New()
			_, err := core.Restore(bg, fresh, wholeStore{t, eng}, func(l core.Lost) { t.Errorf("lost %+v", l) })
			if err != nil {
				t.Fatal(err)
			}
			return restarted(t, fresh, e)
		},
		"rename": func(t *testing.T, _ *memkv.Engine, e *core.Engine) *core.Engine {
			for _, names := range [][2]string{{"c", "d"}, {"d", "c"}} {
				if _, err := e.RenameContainer(bg, "db", names[0], names[1], false); err != nil {
					t.Fatal(err)
				}
			}
			return e
		},
		"another policy": func(t *testing.T, _ *memkv.Engine, e *core.Engine) *core.Engine {
			s := must(e.Container("db", "c")).Spec()
			s.IndexingPolicy = []byte(`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/u/?"}]}`)
			if _, err := e.ReplaceContainer(bg, "db", "c", *s); err != nil {
				t.Fatal(err)
			}
			return e
		},
	} {
		t.Run(name, func(t *testing.T) {
			eng := memkv.New()
			e := must(core.Open(bg, notClosed{eng}, core.Options{MinSlots: 2}))
			k := newContainer(t, e, core.ContainerSpec{Declared: []core.Declared{uniqueIn("u", "u")}})
			for i := range 40 {
				put(t, k, core.Create, fmt.Sprintf(`{"id":"%d","pk":"%d","u":%d}`, i, i, i))
			}
			put(t, k, core.Replace, `{"id":"7","pk":"7","u":"other"}`)
			e = change(t, eng, e)
			defer func() {
				clean(t, e)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}()
			k = must(e.Container("db", "c"))
			for u, taken := range map[string]bool{"0": true, "39": true, `"other"`: true, "7": false} {
				_, err := k.Write(bg, core.Write{Kind: core.Create,
					Doc: mustDoc(t, fmt.Sprintf(`{"id":"new","pk":"new","u":%s}`, u))})
				if status.Is(err, status.Conflict) != taken || !taken && err != nil {
					t.Errorf("%s: %v, taken %v", u, err, taken)
				}
			}
		})
	}
}

// restarted closes e, and opens a store.
func restarted(t *testing.T, eng *memkv.Engine, e *core.Engine) *core.Engine {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return must(core.Open(bg, notClosed{eng}, core.Options{MinSlots: 2}))
}

// Slots are split and joined while an index is built, and while writers race for its values: one of them wins each.
func TestDeclaredSplits(t *testing.T) {
	t.Parallel()
	onEngines(t, core.Options{MinSlots: 2}, func(t *testing.T, e *core.Engine) {
		k := newContainer(t, e, core.ContainerSpec{})
		const old, values, writers = 300, 60, 2
		for i := range old {
			put(t, k, core.Create, fmt.Sprintf(`{"id":"%d","pk":"%d","u":"old %d"}`, i, i, i))
		}
		var all sync.WaitGroup
		all.Go(func() {
			if err := declare(e, uniqueIn("u", "u")); err != nil {
				t.Error(err)
			}
			for w := range writers {
				c := inTurn(k)
				all.Go(func() {
					for v := range values {
						text := fmt.Sprintf(`{"id":"%d-%d","pk":"%d-%d","u":%d}`, w, v, w, v, v)
						_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, text)})
						if err != nil && !status.Is(err, status.Conflict) {
							t.Error(err)
						}
					}
				})
			}
		})
		if n := moves(t, k); n != 3 {
			t.Errorf("%d of 3 moves", n)
		}
		all.Wait()
		if n := counted(k); n != old+values {
			t.Errorf("%d items, want %d", n, old+values)
		}
	})
}
