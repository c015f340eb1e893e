package core_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// damageStore is a small store with a key of every kind. Its clock is frozen, so that all copies have the same keys.
func damageStore(t *testing.T) (*core.Engine, kv.Engine) {
	t.Helper()
	raw := memkv.New()
	e, err := core.Open(bg, raw, core.Options{MinSlots: 2, Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	never := int32(-1)
	c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &never, UniqueKeys: [][]string{{"/u"}},
		LogMinutes: 10})
	if _, err := e.ChangeContainer(bg, "db", "c", func(s *core.ContainerSpec) error {
		s.Declared = []core.Declared{{Name: "d", Unique: true, Paths: [][]string{{"u"}}}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"a","u":%d,"ttl":100,"v":[%d,%q]}`, i, i, i,
			strings.Repeat("x", 300)))
	}
	put(t, c, core.Replace, `{"id":"2","pk":"a","u":2,"ttl":100,"v":[7]}`)
	ids(t, c, &exec.Query{OrderBy: orderBy(false, "v"), Compare: value.CompareCosmos}) // makes facts
	return e, raw
}

// every returns the keys and values of all items and their entries.
func every(t testing.TB, e kv.Engine) (ks, vs [][]byte) {
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
		ks, vs = append(ks, bytes.Clone(it.Key())), append(vs, bytes.Clone(it.Value()))
	}
	return ks, vs
}

// TestCheckFindsDamage deletes, changes and adds keys of every kind directly in the engine. The checker must find it
// each time, and nothing may panic.
func TestCheckFindsDamage(t *testing.T) {
	race.Alone(t)
	_, raw := damageStore(t)
	ks, vs := every(t, raw)
	kinds := map[keys.Kind]int{}
	check := func(what string, i int, do func(b *kv.Batch)) {
		t.Helper()
		e, raw := damageStore(t)
		defer e.Close()
		clean(t, e)
		var b kv.Batch
		do(&b)
		if _, err := raw.Write(bg, &b, nil); err != nil {
			t.Fatal(err)
		}
		problems, err := e.Check(bg)
		if err == nil && len(problems) == 0 {
			t.Errorf("%s key %d (%x) was not found", what, i, ks[i])
		}
		c, err := e.Container("db", "c")
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Query(bg, eqQuery("u", 1)) // with any result, but without a panic
		if err == nil {
			for r.Next() {
			}
			r.Close()
		}
	}
	for i := range ks {
		kind := keys.Kind(ks[i][keys.PrefixLen-1])
		kinds[kind]++
		check("deleted", i, func(b *kv.Batch) { b.Delete(ks[i]) })
		check("cut", i, func(b *kv.Batch) { b.Put(ks[i], append(vs[i][:len(vs[i])/2:len(vs[i])/2], 0)) })
		check("added", i, func(b *kv.Batch) {
			b.Put(append(ks[i][:len(ks[i])-1:len(ks[i])-1], ks[i][len(ks[i])-1]+1), vs[i])
		})
		if kind == keys.KindHead && vs[i][24] == 0 {
			continue // the head of a slot without items may say that the slot once held anything
		}
		for n := 0; n < len(vs[i]); n++ {
			if kind == keys.KindHead && n >= 33 {
				break // index version, log floor and flags: only some errors are visible
			}
			if kind == keys.KindHead && (n < 17 && n > 0) || kind == keys.KindLogical && n >= 1 && n <= 8 {
				continue // LSN and time may be anything not below the last item's
			}
			check(fmt.Sprintf("flipped byte %d of", n), i, func(b *kv.Batch) {
				v := bytes.Clone(vs[i])
				v[n] ^= 0x41
				b.Put(ks[i], v)
			})
		}
	}
	for _, k := range []keys.Kind{keys.KindHead, keys.KindLogical, keys.KindFact, keys.KindItem, keys.KindNumber,
		keys.KindIndex, keys.KindUnique, keys.KindFeed, keys.KindLog, keys.KindTTL, keys.KindDeclared} {
		if kinds[k] == 0 {
			t.Errorf("no key of kind %x was damaged", k)
		}
	}
}

// A lost entry of the catalog is found by the open or by a check: its data would be in nobody's way, and its numbers
// would be given out again.
func TestLostCatalogEntriesAreFound(t *testing.T) {
	for _, kind := range []keys.MetaKind{keys.MetaAccount, keys.MetaDatabase, keys.MetaContainer} {
		e, was := damageStore(t)
		raw := was.(*memkv.Engine).Fork()
		e.Close()
		var b kv.Batch
		s := kvtest.Snapshot(t, raw)
		it, err := s.Iter(keys.MetaBounds(kind))
		if err != nil {
			t.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			b.Delete(it.Key())
		}
		_, _ = it.Close(), s.Close()
		if _, err := raw.Write(bg, &b, nil); err != nil {
			t.Fatal(err)
		}
		var problems []string
		if e, err = core.Open(bg, raw, core.Options{}); err == nil {
			problems, err = e.Check(bg)
			e.Close()
		}
		if err == nil && len(problems) == 0 {
			t.Errorf("a lost entry of kind %x was not found", kind)
		}
	}
}

// A head must cover what its items need, and its counters must not be below the items' numbers.
func TestCheckFindsForgetfulHead(t *testing.T) {
	_, raw := damageStore(t)
	ks, vs := every(t, raw)
	for i := range ks {
		if keys.Kind(ks[i][keys.PrefixLen-1]) != keys.KindHead || vs[i][24] == 0 {
			continue
		}
		for what, at := range map[string][2]int{
			"LSN": {1, 9}, "time": {9, 17}, "classes": {45, 49}, "paths with elements": {49, 81},
			"paths with cut values": {81, 113}} {
			e, raw := damageStore(t)
			v := bytes.Clone(vs[i])
			clear(v[at[0]:at[1]])
			var b kv.Batch
			b.Put(ks[i], v)
			if _, err := raw.Write(bg, &b, nil); err != nil {
				t.Fatal(err)
			}
			if problems, err := e.Check(bg); err == nil && len(problems) == 0 {
				t.Errorf("a head without %s was not found", what)
			}
			e.Close()
		}
	}
}

// A check that is stopped by its caller, or fails, releases everything that it holds.
func TestStoppedCheckHoldsNothing(t *testing.T) {
	raw := memkv.New()
	// kv.Checked finds iterators that are open longer than their snapshot
	e, err := core.Open(bg, kv.Checked(raw), core.Options{MinSlots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{})
	putMany(t, c, 2000, func(i int) string { return fmt.Sprintf(`{"id":"%d","pk":"p%d"}`, i, i%20) })
	ctx, cancel := context.WithCancel(bg)
	seen := int64(0)
	err = e.CheckWatched(ctx, core.CheckWatch{Progress: func(done, _ int64) {
		if seen = done; done == 1000 {
			cancel()
		}
	}})
	if !status.Is(err, status.Timeout) || seen < 1000 || seen == 2000 {
		t.Errorf("stopped after %d items: %v", seen, err)
	}
}
