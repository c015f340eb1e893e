// Package histories is for crash tests: writers change a container in known steps, are stopped by force at any moment,
// and the test checks what is left.
//
// Each writer does the steps 0, 1, 2 and so on, always the same, and independently of other writers. So the expected
// state of its items follows from the number of steps done.
//
// Example: writer 3 is killed during step 8. Found returns the state of its items, and Steps says that this is the
// state after 8 or after 9 steps, or returns an error.
package histories

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

// State has the items of one writer: id -> value of field n, which is the number of the step that wrote it.
type State map[string]int

// PK returns the partition key of a writer's items, in a container with the path /pk. Two writers share each key, so
// their transactions conflict.
func PK(w int) core.PartitionKey { return core.PartitionKey{value.StringOf(partition(w))} }

func partition(w int) string { return fmt.Sprintf("p%d", w/2) }

// step is what a step does: one write or a transaction. If loose is set, it is an import, of which any part may be
// stored when the writer is stopped.
type step struct {
	w, n  int
	st    State // after the step
	ops   []core.Write
	loose bool
}

func (s *step) put(kind core.WriteKind, id string) {
	s.st[id] = s.n
	s.ops = append(s.ops, core.Write{Kind: kind, PK: PK(s.w), ID: value.StringOf(id)})
}

func (s *step) del(id string) {
	delete(s.st, id)
	s.ops = append(s.ops, core.Write{Kind: core.Delete, PK: PK(s.w), ID: value.StringOf(id)})
}

// stepOf returns step n of writer w, and changes st to the state after it.
func stepOf(w, n int, st State) *step {
	s := &step{w: w, n: n, st: st}
	id := func(prefix string, n int) string { return fmt.Sprintf("%s-%d-%d", prefix, w, n) }
	counter := fmt.Sprintf("counter-%d", w)
	switch n % 8 {
	case 0:
		s.put(core.Create, id("single", n))
	case 1: // insert a pair
		s.put(core.Create, id("left", n))
		s.put(core.Create, id("right", n))
	case 2:
		s.put(core.Upsert, counter)
	case 3: // change the pair and insert a third item
		s.put(core.Replace, id("left", n-2))
		s.put(core.Replace, id("right", n-2))
		s.put(core.Upsert, counter)
	case 4:
		s.put(core.Replace, id("single", n-4))
	case 5: // remove the pair, or the single item
		if n%16 == 5 {
			s.del(id("left", n-4))
			s.del(id("right", n-4))
		} else {
			s.del(id("single", n-5))
		}
	case 6: // a large transaction
		for i := range 20 {
			s.put(core.Upsert, id("large", i))
		}
	case 7: // an import
		for i := range 10 {
			s.put(core.Upsert, id("import", i))
		}
		s.loose = true
	}
	return s
}

// After returns a writer's state after its first n steps.
func After(w, n int) State {
	st := State{}
	for i := range n {
		stepOf(w, i, st)
	}
	return st
}

// Do does step n of writer w and changes st to the state after it.
func Do(ctx context.Context, c *core.Container, w, n int, st State) error {
	s := stepOf(w, n, st)
	for i := range s.ops {
		if op := &s.ops[i]; op.Kind != core.Delete {
			op.Doc = document(w, n, op.ID.Str())
		}
	}
	switch {
	case s.loose:
		return Import(ctx, c, s.ops)
	case len(s.ops) == 1:
		_, err := c.Write(ctx, s.ops[0])
		return err
	}
	for {
		_, err := c.WithTx(ctx, PK(w), func(tx *core.Tx) error {
			for i := range s.ops {
				if _, err := tx.Write(&s.ops[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if !status.Is(err, status.RetryWith) {
			// the transaction lost against the other writer of the partition, which is allowed
			return err
		}
	}
}

func document(w, n int, id string) doc.Doc {
	d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":%q,"pk":%q,"n":%d,"tags":["t%d","t%d"],"nested":{"w":%d},`+
		`"pad":%q}`,
		id, partition(w), n, n%7, n%11, w, strings.Repeat("x", n%97*20)), doc.JSONOptions{Names: doc.NoSQL})
	if err != nil {
		panic(err)
	}
	return d
}

// Import writes items and returns the first error.
func Import(ctx context.Context, c *core.Container, ops []core.Write) error {
	for _, o := range c.WriteMany(ctx, ops, false) {
		if o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// Found returns the state of each writer's items in a container. It fails if there is an item of no writer, or if the
// container's count differs from the number of items.
func Found(ctx context.Context, c *core.Container, writers int) ([]State, error) {
	found := make([]State, writers)
	for w := range found {
		found[w] = State{}
	}
	rows, err := c.Query(ctx, &exec.Query{})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	items := int64(0)
	for rows.Next() {
		id := rows.Item().ID().Str()
		var w int
		if _, err := fmt.Sscanf(id[strings.IndexByte(id, '-')+1:], "%d", &w); err != nil || w >= writers {
			return nil, fmt.Errorf("an item that nobody wrote: %q", id)
		}
		found[w][id] = int(doc.Get(rows.Item().Doc, "n").Int())
		items++
	}
	if rows.Err() != nil {
		return nil, rows.Err()
	}
	n, err := c.Count(ctx)
	if err != nil {
		return nil, err
	}
	if n != items {
		return found, fmt.Errorf("the container counts %d items, %d were found", n, items)
	}
	return found, nil
}

// Steps returns the number of steps of writer w that lead to the state got, between from and to. For an import that is
// stored in part it returns the number of steps before the import, which may be repeated. If no number of steps leads
// to got, the error describes the difference.
func Steps(w int, got State, from, to int) (int, error) {
	st := After(w, from)
	if maps.Equal(got, st) {
		return from, nil
	}
	for n := from; n < to; n++ {
		before := maps.Clone(st)
		s := stepOf(w, n, st)
		if maps.Equal(got, st) {
			return n + 1, nil
		}
		if s.loose && between(got, before, st) {
			return n, nil
		}
	}
	return 0, fmt.Errorf("writer %d, %d to %d steps: %v\nis none of the states from\n%v\nto\n%v", w, from, to, got,
		After(w, from), st)
}

// between reports whether each item is either as in before or as in after.
func between(got, before, after State) bool {
	for id, n := range after {
		g, ok := got[id]
		if b, was := before[id]; !(ok && g == n) && !(ok == was && g == b) {
			return false
		}
	}
	for id := range got {
		if _, ok := after[id]; !ok {
			return false
		}
	}
	return true
}
