package kvtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
)

// testTables ingests sorted tables, if the engine takes them.
func testTables(t *testing.T, e kv.Engine) {
	begin := func() kv.Tables { return kv.BeginTables(ctx, e) }
	first := begin()
	if first == nil {
		return
	}
	defer first.Close()
	add := func(t *testing.T, to kv.Tables, pairs ...string) {
		t.Helper()
		for i := 0; i < len(pairs); i += 2 {
			if err := to.Add(b(pairs[i]), b(pairs[i+1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(t, e, "a=1", "z=1")
	add(t, first, "m1", "1", "m2", "2")
	if first.Size() != 6 {
		t.Errorf("size %d", first.Size())
	}
	before := Snapshot(t, e)
	defer before.Close()
	wantScan(t, e, "a", "zz", "a=1 z=1") // nothing is visible yet
	second := begin()
	defer second.Close()
	add(t, second, "k1", "1")
	if err := first.Ingest([]kv.Precondition{{Key: b("a"), Expect: kv.Present}}); err != nil {
		t.Fatal(err)
	}
	wantScan(t, e, "a", "zz", "a=1 m1=1 m2=2 z=1")
	for _, k := range []string{"m1", "m2"} {
		if ok, err := before.Has(b(k)); ok || err != nil {
			t.Errorf("a snapshot from before has %s, %v", k, err)
		}
	}
	// What is written later replaces what was ingested, and the same tables go on behind their last key.
	put(t, e, "m1=new", "m2")
	add(t, first, "m3", "3")
	if err := errors.Join(first.Ingest(nil), first.Ingest(nil), second.Ingest(nil)); err != nil {
		t.Fatal(err)
	}
	wantScan(t, e, "a", "zz", "a=1 k1=1 m1=new m3=3 z=1")

	// Nothing of tables is applied whose precondition fails, whose ctx ends, or that are only closed.
	ending, end := context.WithCancel(ctx)
	defer end()
	for name, f := range map[string]func(kv.Tables) error{
		"conflict": func(to kv.Tables) error {
			return to.Ingest([]kv.Precondition{{Key: b("a"), Expect: kv.Present}, {Key: b("b"), Expect: kv.Present}})
		},
		"cancelled": func(to kv.Tables) error {
			end()
			return to.Ingest(nil)
		},
		"closed": func(kv.Tables) error { return nil },
	} {
		of := ctx
		if name == "cancelled" {
			of = ending
		}
		to := kv.BeginTables(of, e)
		add(t, to, "n1", "1")
		err := f(to)
		var at *kv.PreconditionError
		if name == "conflict" && (!errors.As(err, &at) || at.Index != 1) ||
			name == "cancelled" && !errors.Is(err, kv.ErrUnavailable) || name == "closed" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		to.Close()
	}
	wantScan(t, e, "n", "nz", "")

	// Many keys, and a range of them is dropped.
	many := begin()
	defer many.Close()
	for i := range 3000 {
		add(t, many, fmt.Sprintf("p%04d", i), fmt.Sprintf("%01000d", i))
	}
	if err := many.Ingest(nil); err != nil {
		t.Fatal(err)
	}
	if err := e.DropRange(ctx, b("p0001"), b("p2999")); err != nil {
		t.Fatal(err)
	}
	wantScan(t, e, "p", "q", fmt.Sprintf("p0000=%01000d p2999=%01000d", 0, 2999))
}
