package journal

import (
	"context"
	"testing"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
)

// Commits pass the journal in any order, whatever their times are. A reader that waits for news between any two steps,
// and moves its position as it is told, is given every entry.
//
// Example: A gets the time 5 and B gets 6. B adds its entry, then A, then A is visible, then B. A reader that has come
// to 5 in between must be told of B.
func TestTopicsOfCommitsInAnyOrder(t *testing.T) {
	// Each step is of commit A or B: add the entry, or become visible.
	for _, steps := range []string{"abAB", "abBA", "baAB", "baBA", "aAbB", "bBaA"} {
		t.Run(steps, func(t *testing.T) {
			ctx := context.Background()
			eng := memkv.New()
			defer eng.Close()
			j, err := Open(ctx, eng, clock.New(), Settings{})
			if err != nil {
				t.Fatal(err)
			}
			tp := j.Watch(Namespace{DB: "db", Coll: "c"})
			defer tp.Leave()
			at, seen := After(j.Mark()), 0
			read := func() {
				mark, news := tp.News(at.Time)
				if !news {
					at = After(max(mark, at.Time))
					return
				}
				p, err := j.Read(ctx, at, 10, func(*Entry) bool { return true })
				if err != nil {
					t.Fatal(err)
				}
				at, seen = p.Next, seen+len(p.Entries)
			}
			tickets := [2]*Ticket{j.Begin(1, 100), j.Begin(1, 100)}
			var batches [2]kv.Batch
			for _, s := range []byte(steps) {
				switch s {
				case 'a', 'b':
					n := s - 'a'
					tickets[n].Put(&batches[n], &Entry{Op: Mark, DB: "db", Coll: "c"})
				case 'A', 'B':
					n := s - 'A'
					w, err := eng.Write(ctx, &batches[n], nil)
					if err != nil {
						t.Fatal(err)
					}
					tickets[n].End(w)
				}
				read()
			}
			if seen != 2 {
				t.Errorf("a reader was given %d of 2 entries", seen)
			}
		})
	}
}
