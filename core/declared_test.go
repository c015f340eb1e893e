package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/collate"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/internal/race"
)

// declare replaces the declared indexes of container c.
func declare(e *core.Engine, to ...core.Declared) error {
	_, err := e.ChangeContainer(bg, "db", "c", func(s *core.ContainerSpec) error {
		s.Declared = to
		return nil
	})
	return err
}

// paths reads paths: "a b.c" are a and b.c.
func dotted(text string) (out [][]string) {
	for _, p := range strings.Fields(text) {
		out = append(out, strings.Split(p, "."))
	}
	return out
}

func uniqueIn(name, at string) core.Declared {
	return core.Declared{Name: name, Paths: dotted(at), Unique: true}
}

func exists(path string) *core.Condition {
	return &core.Condition{Op: catalog.OpExists, Path: strings.Split(path, ".")}
}

func greater(path string, n int32) *core.Condition {
	return &core.Condition{Op: catalog.OpGreater, Path: strings.Split(path, "."),
		Value: value.AppendTyped(nil, value.Int32Of(n))}
}

// Each case has an index and the fields of items that are created one after the other, in different partitions. "!"
// says that the item is refused, because another one has its values, and "?" that it can't be in the index.
func TestDeclaredUnique(t *testing.T) {
	sparse := uniqueIn("s", "a")
	sparse.Sparse = true
	sparsePair := uniqueIn("sp", "a b")
	sparsePair.Sparse = true
	partial := uniqueIn("p", "a")
	partial.Only = exists("b")
	collated := uniqueIn("c", "a")
	collated.Collation = &collate.Options{Locale: "en", Strength: 2}
	collated.Only = &core.Condition{Op: catalog.OpEqual, Path: []string{"b"},
		Value: value.AppendTyped(nil, value.StringOf("on"))}
	collatedToo := collated
	collatedToo.CollatedOnly = true
	either := uniqueIn("e", "a")
	either.Only = &core.Condition{Any: []core.Condition{*greater("n", 5), {All: []core.Condition{*exists("x"),
		*exists("y")}}}}
	for name, c := range map[string]struct {
		index core.Declared
		items string
	}{
		"one value": {uniqueIn("u", "a"),
			`"a":1; "a":2; !"a":1; !"a":1.0; "a":"1"; "a":true; "a":{"x":1}; !"a":{"x":1.0}`},
		"order of fields": {uniqueIn("u", "a"),
			`"a":{"x":1,"y":2}; "a":{"y":2,"x":1}`},
		"missing is null": {uniqueIn("u", "a"),
			`"b":1; !"b":2; !"a":null`},
		"nested": {uniqueIn("u", "a.b"),
			`"a":{"b":1}; !"a":{"b":1,"c":2}; "a":{"b":2}; "a":1; !"a":{}; !"c":1`},
		"pair": {uniqueIn("u", "a b"),
			`"a":1,"b":1; "a":1,"b":2; "a":2,"b":1; !"b":2,"a":1; "a":1; !"a":1,"b":null`},
		"elements": {uniqueIn("u", "a"),
			`"a":[1,2]; !"a":[2,3]; "a":[3,3]; !"a":3; "a":[]; !"a":[]; "b":1; "a":[[1,2]]`},
		"array of objects": {uniqueIn("u", "a.b"),
			`"a":[{"b":1},{"b":2}]; !"a":{"b":2}; !"a":[{"b":3},{"b":1}]; "a":[{"b":3}]`},
		"scalar element": {uniqueIn("u", "a.b"),
			`"a":[5]; !"b":1`},
		"position": {uniqueIn("u", "a.0"),
			`"a":[1,2]; !"a":[1,3]; "a":[2,1]`},
		"one array, two": {uniqueIn("u", "a.x a.y"),
			`"a":[{"x":1,"y":2},{"x":3,"y":4}]; "a":[{"x":1,"y":4}]; !"a":{"x":3,"y":4}`},
		"parallel arrays": {uniqueIn("u", "a b"),
			`"a":[1],"b":2; ?"a":[1],"b":[2]; !"a":1,"b":[2]`},
		"sparse": {sparse,
			`"b":1; "b":2; "a":null; !"a":null; "a":1; !"a":1`},
		"sparse pair": {sparsePair,
			`"c":1; "c":2; "a":1; !"a":1; "b":1; !"b":1`},
		"partial": {partial,
			`"a":1; "a":1; "a":1,"b":1; !"a":1,"b":2; "a":1`},
		"collation, partial": {collated,
			`"a":"x","b":"ON"; "a":"X","b":"on"; !"a":"x","b":"on"; "a":"x","b":"off"`},
		"collation, partial by it": {collatedToo,
			`"a":"x","b":"ON"; !"a":"X","b":"on"; "a":"y","b":"oN"; "a":"x","b":"off"; "a":"x","b":1`},
		"partial, either": {either,
			`"a":1,"n":5; "a":1,"n":6; !"a":1,"n":7; "a":1,"x":1; !"a":1,"x":1,"y":1; "a":1,"n":"9"`},
		"long values": {uniqueIn("u", "a"), fmt.Sprintf(`"a":"%[1]sx"; "a":"%[1]sy"; !"a":"%[1]sx"`,
			strings.Repeat("long", 100))},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
				k := newContainer(t, e, core.ContainerSpec{Declared: []core.Declared{c.index}})
				var kept []string
				for i, item := range strings.Split(c.items, "; ") {
					fields := strings.TrimLeft(item, "!?")
					text := fmt.Sprintf(`{"id":"%d","pk":"p%d",%s}`, i, i, fields)
					_, err := inTurn(k).Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, text)})
					var dup *core.Duplicate
					var arrays *core.ParallelArrays
					switch {
					case item[0] == '!' && (!status.Is(err, status.Conflict) || !errors.As(err, &dup)),
						item[0] == '?' && (!status.Is(err, status.BadRequest) || !errors.As(err, &arrays)),
						fields == item && err != nil:
						t.Errorf("%s: %v", item, err)
					case fields == item:
						kept = append(kept, text)
					}
				}
				// Another index of the same values is built over the items, and refuses the same ones.
				again := c.index
				again.Name = "again"
				if err := declare(e, again); err != nil {
					t.Fatal(err)
				}
				for _, text := range kept {
					text = strings.Replace(text, `"pk":"p`, `"pk":"q`, 1)
					_, err := k.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, text)})
					if n := keysIn(t, again, text); (n > 0) != status.Is(err, status.Conflict) {
						t.Errorf("%s again: %v", text, err)
					}
				}
			})
		})
	}
}

// keysIn returns the number of keys that a document has in a declared index.
func keysIn(t *testing.T, of core.Declared, text string) int {
	d, err := index.CompileDeclared(of)
	if err != nil {
		t.Fatal(err)
	}
	all, err := d.Keys(mustDoc(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Each case is a list of writes: "create 1 x" writes item 1 with the unique value x, "!" before it means that it is a
// conflict. Items a and b have the values a and b, and e, which has expired, has e. Each item has its own partition.
func TestDeclaredWrites(t *testing.T) {
	ttl := int32(-1)
	clk := clock.Fake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	onEngines(t, core.Options{Clock: clk}, func(t *testing.T, e *core.Engine) {
		for i, writes := range []string{
			"!create 1 a, create 1 x, !create 2 x",
			"delete a, create 1 a, !create a a",
			"replace a x, create 1 a, !create 2 x",
			"!replace a b, replace b x, replace a b",
			"replace a a, upsert a a, !upsert b a",
			"create 1 e, !create 2 e",
			"!upsert 1 b, upsert b c, upsert 1 b",
		} {
			for _, many := range []bool{false, true} {
				k := newContainer(t, e, core.ContainerSpec{ID: fmt.Sprint("c", i, many), DefaultTTL: &ttl,
					Declared: []core.Declared{uniqueIn("u", "u")}})
				put(t, k, core.Create, `{"id":"a","pk":"a","u":"a"}`)
				put(t, k, core.Create, `{"id":"b","pk":"b","u":"b"}`)
				put(t, k, core.Create, `{"id":"e","pk":"e","u":"e","ttl":1}`)
				clk.Advance(2 * time.Second)
				var ws []core.Write
				var want []bool
				for _, text := range strings.Split(writes, ", ") {
					rest, conflict := strings.CutPrefix(text, "!")
					ws, want = append(ws, ownPartition(t, rest)), append(want, conflict)
				}
				var errs []error
				if many {
					for _, o := range k.WriteMany(bg, ws, false) {
						errs = append(errs, o.Err)
					}
				} else {
					for _, w := range ws {
						_, err := inTurn(k).Write(bg, w)
						errs = append(errs, err)
					}
				}
				for j, err := range errs {
					if status.Is(err, status.Conflict) != want[j] {
						t.Errorf("%s, many %v: write %d: %v", writes, many, j+1, err)
					}
				}
			}
		}
	})
}

// ownPartition reads a write: kind, id, unique value. The partition is the id.
func ownPartition(t *testing.T, text string) core.Write {
	f := strings.Fields(text)
	if f[0] == "delete" {
		return core.Write{Kind: core.Delete, PK: pk(f[1]), ID: value.StringOf(f[1])}
	}
	kind := map[string]core.WriteKind{"create": core.Create, "replace": core.Replace, "upsert": core.Upsert}[f[0]]
	return core.Write{Kind: kind, Doc: mustDoc(t, fmt.Sprintf(`{"id":%q,"pk":%q,"u":%q}`, f[1], f[1], f[2]))}
}

// In a transaction two items of a partition can exchange their values, and a value of another partition is a conflict.
func TestDeclaredTx(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		k := newContainer(t, e, core.ContainerSpec{Declared: []core.Declared{uniqueIn("u", "u")}})
		for _, text := range []string{`{"id":"1","pk":"p","u":"a"}`, `{"id":"2","pk":"p","u":"b"}`,
			`{"id":"3","pk":"q","u":"c"}`} {
			put(t, k, core.Create, text)
		}
		for _, c := range []struct {
			docs     string
			conflict bool
		}{
			{`{"id":"1","pk":"p","u":"b"} {"id":"2","pk":"p","u":"a"}`, false},
			{`{"id":"1","pk":"p","u":"d"} {"id":"2","pk":"p","u":"d"}`, true},
			{`{"id":"1","pk":"p","u":"d"} {"id":"2","pk":"p","u":"c"}`, true},
			{`{"id":"1","pk":"p","u":"d"} {"id":"2","pk":"p","u":"b"}`, false},
		} {
			for _, eager := range []bool{false, true} {
				refused := false
				_, err := k.WithTx(bg, pk("p"), func(tx *core.Tx) error {
					if eager {
						tx.Eager()
					}
					for _, d := range strings.Fields(c.docs) {
						if _, err := tx.Write(&core.Write{Kind: core.Upsert, Doc: mustDoc(t, d)}); err != nil {
							refused = true
							return err
						}
					}
					return nil
				})
				if status.Is(err, status.Conflict) != c.conflict || refused != (eager && c.conflict) {
					t.Errorf("%s, eager %v: %v", c.docs, eager, err)
				}
			}
		}
	})
}

// Of writers that race for a value in different partitions and processes, one wins.
func TestDeclaredRaces(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		k := newContainer(t, e, core.ContainerSpec{Declared: []core.Declared{uniqueIn("u", "u")}})
		const values, writers = 30, 4
		var won [values][writers]bool
		var all sync.WaitGroup
		for w := range writers {
			c := inTurn(k)
			all.Go(func() {
				for v := range values {
					text := fmt.Sprintf(`{"id":"%d-%d","pk":"%d-%d","u":%d}`, w, v, w, v, v)
					_, err := c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, text)})
					if won[v][w] = err == nil; err != nil && !status.Is(err, status.Conflict) {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		for v := range values {
			n := 0
			for _, w := range won[v] {
				if w {
					n++
				}
			}
			if n != 1 {
				t.Errorf("value %d: %d winners", v, n)
			}
		}
		if n := counted(k); n != values {
			t.Errorf("%d items", n)
		}
	})
}

// An index is built while items are written, also into slots that are split. Then the items are those that the writers
// were told of, and each value is there once.
func TestDeclaredBuildRaces(t *testing.T) {
	onEngines(t, core.Options{}, func(t *testing.T, e *core.Engine) {
		k := newContainer(t, e, core.ContainerSpec{})
		for i := range 700 {
			put(t, k, core.Create, fmt.Sprintf(`{"id":"%d","pk":"%d","u":"old %d"}`, i, i, i))
		}
		var done sync.WaitGroup
		var made int64
		for w := range 2 {
			c := inTurn(k)
			done.Go(func() {
				for i := range 60 {
					text := fmt.Sprintf(`{"id":"w%d-%d","pk":"w%d-%d","u":"new %d"}`, w, i, w, i, i+60*w)
					if i%2 == 1 { // an item that may not have its entry yet
						text = fmt.Sprintf(`{"id":"%d","pk":"%d","u":"other %d %d"}`, i+100*w, i+100*w, w, i)
					}
					if _, err := c.Write(bg, core.Write{Kind: core.Upsert, Doc: mustDoc(t, text)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		if err := declare(e, uniqueIn("u", "u")); err != nil {
			t.Error(err)
		}
		done.Wait()
		if made = counted(k); made != 760 {
			t.Errorf("%d items", made)
		}
		for _, u := range []string{"old 699", "new 0", "other 1 1"} {
			_, err := k.Write(bg, core.Write{Kind: core.Create,
				Doc: mustDoc(t, fmt.Sprintf(`{"id":"x","pk":"x","u":%q}`, u))})
			if !status.Is(err, status.Conflict) {
				t.Errorf("%s is taken: %v", u, err)
			}
		}
	})
}

// An index of values that aren't unique isn't built, and nothing of it is left: neither in the definition, nor entries.
func TestDeclaredDuplicates(t *testing.T) {
	for name, open := range engines {
		eng := open(t)
		e, err := core.Open(bg, eng, core.Options{MinSlots: someSlots})
		if err != nil {
			t.Fatal(name, err)
		}
		defer e.Close()
		k := newContainer(t, e, core.ContainerSpec{Declared: []core.Declared{uniqueIn("v", "v")}})
		for i := range 20 {
			put(t, k, core.Create, fmt.Sprintf(`{"id":"%d","pk":"%d","u":%d,"v":%d}`, i, i, i%19, i))
		}
		err = declare(e, uniqueIn("v", "v"), uniqueIn("u", "u"))
		var dup *core.Duplicate
		if !status.Is(err, status.Conflict) || !errors.As(err, &dup) || dup.Index != "u" {
			t.Fatal(err)
		}
		if v := dup.Values[0]; v.Int() != 0 {
			t.Errorf("value %v", v)
		}
		if k, err = e.Container("db", "c"); err != nil || len(k.Spec().Declared) != 1 {
			t.Fatalf("%+v, %v", k.Spec().Declared, err)
		}
		if n := declaredEntries(t, eng); n != 20 {
			t.Errorf("%d entries", n)
		}
		put(t, k, core.Create, `{"id":"x","pk":"x","u":1,"v":"x"}`)
		if err := declare(e); err != nil {
			t.Fatal(err)
		}
		if n := declaredEntries(t, eng); n != 0 {
			t.Errorf("%d entries of dropped indexes", n)
		}
		put(t, k, core.Create, `{"id":"y","pk":"y","u":1,"v":"x"}`)
	}
}

// declaredEntries returns the number of entries of declared indexes.
func declaredEntries(t *testing.T, eng kv.Engine) int { return len(declaredKeys(t, eng)) }

// declaredKeys returns their keys and values.
func declaredKeys(t *testing.T, eng kv.Engine) (out [][2][]byte) {
	t.Helper()
	snap, err := eng.Snapshot(bg)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	it, err := snap.Iter(keys.DataBounds())
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if _, kind, ok := keys.ParseSlot(it.Key()); ok && kind == keys.KindDeclared {
			out = append(out, [2][]byte{bytes.Clone(it.Key()), bytes.Clone(it.Value())})
		}
	}
	return out
}

// A process that ends while it builds an index leaves no index: the next one removes what there is.
func TestDeclaredInterrupted(t *testing.T) {
	eng := memkv.New()
	stop := &dying{Engine: eng, over: make(chan bool)}
	stop.left.Store(math.MaxInt64)
	e, err := core.Open(bg, stop, core.Options{MinSlots: someSlots})
	if err != nil {
		t.Fatal(err)
	}
	k := newContainer(t, e, core.ContainerSpec{})
	for i := range 3000 {
		put(t, k, core.Create, fmt.Sprintf(`{"id":"%d","pk":"%d","u":%d}`, i, i, i))
	}
	for after := range 12 {
		stop.left.Store(int64(after))
		if err := declare(e, uniqueIn("u", "u")); err == nil {
			stop.left.Store(math.MaxInt64)
			break
		}
		stop.left.Store(math.MaxInt64)
		_ = e.Close()
		if e, err = core.Open(bg, stop, core.Options{MinSlots: someSlots}); err != nil {
			t.Fatal(err)
		}
		if k, err = e.Container("db", "c"); err != nil {
			t.Fatal(err)
		}
		e.Reap(bg)
		if n := declaredEntries(t, eng); n != 0 || len(must(e.Container("db", "c")).Spec().Declared) != 0 {
			t.Errorf("after %d commits: %d entries, %+v", after, n, k.Spec().Declared)
		}
	}
	if n := declaredEntries(t, eng); n != 3000 {
		t.Errorf("%d entries", n)
	}
	if problems, err := e.Check(bg); err != nil || len(problems) > 0 {
		t.Errorf("check: %v %v", problems, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// The check names items without entries, and entries without items.
func TestDeclaredCheck(t *testing.T) {
	eng := memkv.New()
	e, err := core.Open(bg, eng, core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := newContainer(t, e, core.ContainerSpec{Declared: []core.Declared{uniqueIn("u", "u")}})
	put(t, k, core.Create, `{"id":"1","pk":"1","u":1}`)
	put(t, k, core.Create, `{"id":"2","pk":"2","u":2}`)
	var b kv.Batch
	entry := declaredKeys(t, eng)[0]
	b.Delete(entry[0])
	b.Put(append(entry[0], 1), entry[1])
	if _, err := eng.Write(bg, &b, nil); err != nil {
		t.Fatal(err)
	}
	problems, err := e.Check(bg)
	text := strings.Join(problems, "\n")
	if err != nil || len(problems) != 2 || !strings.Contains(text, `has no entry of the index "u"`) ||
		!strings.Contains(text, `of the index "u" has no item`) {
		t.Errorf("%v %s", err, text)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// Items end their life at the earliest date of a field, if the index is for them. Others stay: without a date, or with
// one in the future.
func TestDeclaredTTL(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clk := clock.Fake(begin)
	onEngines(t, core.Options{Clock: clk}, func(t *testing.T, e *core.Engine) {
		begin := clk.Now()
		minute := int32(60)
		at := core.Declared{Name: "at", Paths: dotted("a.at"), After: &minute}
		late := core.Declared{Name: "late", Paths: dotted("late"), After: new(int32), Only: exists("x")}
		k := newContainer(t, e, core.ContainerSpec{})
		date := func(after time.Duration) value.Value { return value.DateOf(begin.Add(after).UnixMilli(), 0) }
		for id, fields := range map[string][]any{
			"old":      {"a", []any{"at", date(-2 * time.Minute)}},
			"new":      {"a", []any{"at", date(time.Minute)}},
			"earliest": {"a", []any{"at", value.MakeArray([]value.Value{date(time.Hour), date(-time.Hour)})}},
			"number":   {"a", []any{"at", value.Int64Of(begin.UnixMilli())}},
			"none":     {"b", value.Int32Of(1)},
			"partial":  {"late", date(0), "x", value.Int32Of(1)},
			"other":    {"late", date(0)},
		} {
			doc := object(append([]any{"_id", value.StringOf(id), "pk", value.StringOf(id)}, fields...)).Bytes()
			if _, err := k.Write(bg, core.Write{Kind: core.Create, Doc: doc}); err != nil {
				t.Fatal(err)
			}
		}
		if err := declare(e, at, late); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			after time.Duration
			want  string
		}{
			{0, "new none number other"},
			{2*time.Minute - time.Second, "new none number other"},
			{time.Second, "none number other"},
			{time.Hour, "none number other"},
		} {
			clk.Advance(c.after)
			e.Reap(bg)
			if got := sortedIDs(t, k); got != c.want {
				t.Errorf("after %v: %s, want %s", clk.Now().Sub(begin), got, c.want)
			}
		}
	})
}

// Entries of past dates whose items stay don't end the walk, though there are more than a step deletes. An item whose
// date has no entry, because it has too many terms or isn't in the index, ends its life like any other.
func TestDeclaredTTLBesideOthers(t *testing.T) {
	race.Alone(t)
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	date := func(after time.Duration) value.Value { return value.DateOf(begin.Add(after).UnixMilli(), 0) }
	list := func(of ...value.Value) value.Value { return value.MakeArray(of) }
	many := list(slices.Repeat([]value.Value{value.Int32Of(0)}, index.MaxTerms)...)
	const others = 1100 // more than a step of the reaper takes
	for _, c := range []struct {
		name         string
		stays, other []any // fields of one item that stays, and of many others
		goes         []any
	}{
		{"a date in an array of arrays", []any{"at", list(list(date(-2 * time.Hour)))},
			[]any{"at", list(list(date(-2 * time.Hour)))}, []any{"at", date(-time.Hour)}},
		{"a field twice", []any{"at", date(time.Hour), "at", date(-2 * time.Hour)},
			[]any{"at", date(time.Hour), "at", date(-2 * time.Hour)}, []any{"at", date(-time.Hour)}},
		{"many terms", []any{"many", many, "at", date(time.Hour)}, []any{"x", value.Int32Of(1)},
			[]any{"many", many, "at", date(-time.Hour)}},
		{"an item outside of the index", []any{"at", date(time.Hour)}, []any{"x", value.Int32Of(1)},
			[]any{"noIndex", value.Int32Of(1), "at", date(-time.Hour)}},
		{"beside an item outside of the index", []any{"noIndex", value.Int32Of(1), "at", date(time.Hour)},
			[]any{"x", value.Int32Of(1)}, []any{"at", date(-time.Hour)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := core.Options{Clock: clock.Fake(begin), MinSlots: 1}
			onEngines(t, o, func(t *testing.T, e *core.Engine) {
				k := newContainer(t, e, core.ContainerSpec{})
				var ws []core.Write
				put := func(id string, fields []any) {
					doc := object(append([]any{"_id", value.StringOf(id), "pk", value.StringOf(id)}, fields...)).Bytes()
					ws = append(ws, core.Write{Kind: core.Create, Doc: doc, NoIndex: fields[0] == "noIndex"})
				}
				put("stays", c.stays)
				put("goes", c.goes)
				for i := range others {
					put(strconv.Itoa(i), c.other)
				}
				for _, o := range k.WriteMany(bg, ws, false) {
					if o.Err != nil {
						t.Fatal(o.Err)
					}
				}
				if err := declare(e, core.Declared{Name: "at", Paths: dotted("at"), After: new(int32)}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(bg, 20*time.Second)
				defer cancel()
				if n := e.Reap(ctx); n != 1 || ctx.Err() != nil {
					t.Errorf("%d items were removed, want 1: %v", n, ctx.Err())
				}
				for id, want := range map[string]bool{"stays": true, "goes": false, "0": true} {
					_, err := k.Read(bg, core.PartitionKey{value.StringOf(id)}, value.StringOf(id))
					if got := err == nil; got != want {
						t.Errorf("%s is there: %v, want %v: %v", id, got, want, err)
					}
				}
			})
		})
	}
}

// An item whose id is a date ends its life at that date: the collections of MongoDB that are clustered do so.
func TestDeclaredTTLOfID(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clk := clock.Fake(begin)
	onEngines(t, core.Options{Clock: clk}, func(t *testing.T, e *core.Engine) {
		minute := int32(60)
		if _, err := e.EnsureDatabase(bg, "ttl"); err != nil {
			t.Fatal(err)
		}
		k, err := e.CreateContainer(bg, "ttl", core.ContainerSpec{ID: "c",
			PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}, Kind: "Hash", Version: 2},
			Declared:     []core.Declared{{Name: "id", Paths: dotted("_id"), After: &minute}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []value.Value{value.DateOf(clk.Now().Add(-2*time.Minute).UnixMilli(), 0),
			value.DateOf(clk.Now().UnixMilli(), 0), value.StringOf("no date")} {
			if _, err := k.Write(bg, core.Write{Kind: core.Create, Doc: object([]any{"_id", id}).Bytes()}); err != nil {
				t.Fatal(err)
			}
		}
		e.Reap(bg)
		if n, err := k.Count(bg); n != 2 || err != nil {
			t.Errorf("%d items, want 2: %v", n, err)
		}
	})
}

// object makes a document of names and values; a value may be a list of the same kind.
func object(fields []any) value.Value {
	at, b := bson.Begin(nil)
	for i := 0; i < len(fields); i += 2 {
		v, ok := fields[i+1].(value.Value)
		if !ok {
			v = object(fields[i+1].([]any))
		}
		b = value.AppendElement(b, fields[i].(string), v)
	}
	return value.ObjectOf(bson.End(b, at))
}

// sortedIDs returns the ids of all items.
func sortedIDs(t *testing.T, k *core.Container) string {
	all := ids(t, k, &exec.Query{PlanHash: 1})
	slices.Sort(all)
	return strings.Join(all, " ")
}
