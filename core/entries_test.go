package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// plainDocument is a document of 1 KB: 17 fields with single values, including a text of 570 bytes, and an array of
// three objects. It has the fields of the document that docs/decisions/0025-index-entries.md counts.
func plainDocument(i int) string {
	return fmt.Sprintf(`{"id":"o%08d","tenant":"t%06d","customer":"c%07d","status":"paid","total":512.34,`+
		`"created":"2023-11-14T22:13:20Z",`+
		`"p0":%d,"p1":417,"p2":1021.5714285714287,"p3":1293.0,"p4":true,"p5":false,"p6":"region-11","p7":"chan-3","p8":"00000000c0ffee11","p9":"EUR",`+
		`"lines":[{"sku":"sku-417","qty":1,"price":11.5},{"sku":"sku-2025","qty":2,"price":63.25},{"sku":"sku-4711","qty":3,"price":99.99}],"note":%q}`,
		i, i/100, i%1000, i, strings.Repeat("the quick brown fox jumps over the lazy dog; ", 13)[:570])
}

// written is the number and size of the keys of one kind that a commit puts or deletes.
type written struct{ keys, bytes int }

// writes counts the changes of one write, by kind. A key that only gets another value counts as put.
func writes(t *testing.T, raw kv.Engine, write func()) map[keys.Kind]written {
	t.Helper()
	state := func() map[string]string {
		m := map[string]string{}
		ks, vs := every(t, raw)
		for i := range ks {
			m[string(ks[i])] = string(vs[i])
		}
		return m
	}
	before := state()
	write()
	after, out := state(), map[keys.Kind]written{}
	add := func(key string, n int) {
		k := keys.Kind(key[keys.PrefixLen-1])
		out[k] = written{out[k].keys + 1, out[k].bytes + n}
	}
	for k, v := range after {
		if old, ok := before[k]; !ok || old != v {
			add(k, len(k)+len(v))
		}
	}
	for k := range before {
		if _, ok := after[k]; !ok {
			add(k, len(k))
		}
	}
	return out
}

// TestEntriesOfPlainDocument pins how many keys and bytes of the index an insert and the replacement of one field
// write.
func TestEntriesOfPlainDocument(t *testing.T) {
	for name, tc := range map[string]struct {
		key              core.PartitionKeyDef
		insert, oneField written
	}{
		"key is the tenant": {core.PartitionKeyDef{Paths: []string{"/tenant"}}, written{28, 1905}, written{4, 234}},
		"key is the id":     {keyIsID, written{28, 1541}, written{4, 182}},
	} {
		t.Run(name, func(t *testing.T) {
			raw := kv.Checked(memkv.New())
			clk := clock.Fake(time.Unix(1_700_000_000, 0))
			e, err := core.Open(bg, raw, core.Options{Clock: clk})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			c := newContainer(t, e, core.ContainerSpec{PartitionKey: tc.key})
			put(t, c, core.Create, plainDocument(1))
			insert := writes(t, raw, func() { put(t, c, core.Create, plainDocument(42)) })
			if got := insert[keys.KindIndex]; got != tc.insert {
				t.Errorf("an insert writes %d entries of %d bytes, want %d of %d", got.keys, got.bytes, tc.insert.keys,
					tc.insert.bytes)
			}
			clk.Advance(time.Minute)
			change := writes(t, raw, func() {
				put(t, c, core.Replace, strings.Replace(plainDocument(42), `"p0":42`, `"p0":43`, 1))
			})
			if got := change[keys.KindIndex]; got != tc.oneField {
				t.Errorf("a change of one field writes %d entries of %d bytes, want %d of %d", got.keys, got.bytes,
					tc.oneField.keys, tc.oneField.bytes)
			}
		})
	}
}

// BenchmarkInsertPlain inserts plain documents that are already BSON.
func BenchmarkInsertPlain(b *testing.B) {
	for name, def := range map[string]core.PartitionKeyDef{"tenant": {Paths: []string{"/tenant"}}, "id": keyIsID} {
		b.Run(name, func(b *testing.B) {
			e, _ := benchEngine(b, true)
			c := newContainer(b, e, core.ContainerSpec{PartitionKey: def})
			docs := make([]doc.Doc, b.N)
			for i := range docs {
				docs[i] = mustDoc(b, plainDocument(i))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for _, d := range docs {
				if _, err := c.Write(bg, core.Write{Kind: core.Create, Doc: d}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestChangesInsideObjects: a change inside objects and arrays writes only the entries of what has changed, not those
// of the containing values.
func TestChangesInsideObjects(t *testing.T) {
	raw := kv.Checked(memkv.New())
	e, err := core.Open(bg, raw, core.Options{Clock: clock.Fake(time.Unix(1_700_000_000, 0))})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := newContainer(t, e, core.ContainerSpec{})
	text := `{"id":"1","pk":"a","o":{"p":{"q":1,"r":[{"s":1},{"s":[[2]]}]}}}`
	put(t, c, core.Create, text)
	for from, to := range map[string]string{`"q":1`: `"q":2`, `{"s":1}`: `{"s":3}`, `[[2]]`: `[[4]]`} {
		next := strings.Replace(text, from, to, 1)
		got := writes(t, raw, func() { put(t, c, core.Replace, next) })[keys.KindIndex].keys
		if text = next; got != 2 {
			t.Errorf("%s for %s: %d entries, want 2: one goes and one comes", to, from, got)
		}
	}
	if p, err := e.Check(bg); err != nil || len(p) > 0 {
		t.Errorf("check: %v %v", err, p)
	}
}
