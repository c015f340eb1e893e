package kv

import (
	"bytes"
	"context"
)

// Tables implements Ingester.
func (c *checked) Tables(ctx context.Context) Tables {
	t := BeginTables(ctx, c.Engine)
	if t == nil {
		return nil
	}
	c.open.Add(1)
	return &checkedTables{c: c, t: t, ctx: ctx}
}

// checkedTables counts as open until it is closed.
type checkedTables struct {
	c    *checked
	t    Tables
	ctx  context.Context
	last []byte // key that was added
	// of the keys that aren't ingested; nil: there are none
	first  []byte
	failed bool
	closed bool
}

func (t *checkedTables) live(op string) {
	if t.failed || t.closed {
		broken("%s of tables that have failed, or were closed", op)
	}
}

// Add hands over copies, which it overwrites then.
func (t *checkedTables) Add(key, value []byte) error {
	t.live("Add")
	if len(key) == 0 || len(value) == 0 || bytes.Compare(key, t.last) <= 0 {
		broken("Add of key %x with %d bytes behind key %x", key, len(value), t.last)
	}
	t.last = bytes.Clone(key)
	if t.first == nil {
		t.first = t.last
	}
	k, v := bytes.Clone(key), bytes.Clone(value)
	err := checkErr("Tables.Add", t.t.Add(k, v))
	for _, b := range [][]byte{k, v} {
		for i := range b {
			b[i] = 0xcc
		}
	}
	t.failed = err != nil
	return err
}

func (t *checkedTables) Size() int {
	t.live("Size")
	return t.t.Size()
}

func (t *checkedTables) Ingest(pre []Precondition) error {
	t.live("Ingest")
	checkPre(pre)
	if t.first != nil {
		t.checkNew()
	}
	err := checkErr("Tables.Ingest", t.t.Ingest(pre))
	if t.failed = err != nil; err == nil && t.t.Size() != 0 {
		broken("tables have %d bytes behind Ingest", t.t.Size())
	}
	t.first = nil
	return err
}

// checkNew checks that nothing is in the range of the keys yet.
func (t *checkedTables) checkNew() {
	s, err := t.c.Engine.Snapshot(t.ctx)
	if err != nil {
		return
	}
	defer s.Close()
	it, err := s.Iter(t.first, append(bytes.Clone(t.last), 0))
	if err != nil {
		return
	}
	defer it.Close()
	if it.First() {
		broken("Ingest of keys from %x to %x, and there is key %x", t.first, t.last, it.Key())
	}
}

func (t *checkedTables) Close() {
	if t.closed {
		broken("tables closed twice")
	}
	t.closed = true
	t.c.open.Add(-1)
	t.t.Close()
}
