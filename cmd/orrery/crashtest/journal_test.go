package crashtest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/journal"
)

const journalEnv = childEnv + "_JOURNAL" // set: the child records its changes

// A process whose changes are recorded is killed repeatedly. A reader of the journal goes on behind what it has read
// before: it gets every change exactly once, acknowledged ones and those whose answer the kill cut off, in the order in
// which they were made. So what it gets makes the contents of the store.
func TestKilledServerKeepsItsJournal(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	dir := t.TempDir()
	at, read := make([]int, writers), reader{docs: map[string][]byte{}}
	env := []string{journalEnv + "=1"}
	for kill := range kills(t) / 2 {
		acked := runChild(t, dir, at, env, time.Duration(20+r.IntN(150))*time.Millisecond, nil)
		at, _ = verify(t, dir, acked, acked)
		read.on(t, dir)
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	if read.entries < writers*kills(t) {
		t.Fatalf("only %d changes were read: the test tests nothing", read.entries)
	}
	t.Logf("%d changes read", read.entries)
}

// reader follows the journal.
type reader struct {
	pos     journal.Position
	docs    map[string][]byte // by key
	entries int
}

// on reads what was recorded since, and compares the result with the store.
func (r *reader) on(t *testing.T, dir string) {
	ctx := context.Background()
	eng, c, err := openStore(ctx, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}()
	since := eng.Journal().Since(journal.Namespace{})
	if since == 0 {
		t.Fatal("the journal doesn't know what it records")
	}
	if r.entries == 0 {
		r.pos = journal.After(since)
	}
	for more := true; more; {
		p, err := eng.Journal().Read(ctx, r.pos, 100, func(e *journal.Entry) bool {
			return e.Coll == coll && e.Op != journal.Change
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Entries {
			r.entries++
			key := string(e.Key)
			if _, there := r.docs[key]; there == (e.Op == journal.Create) {
				t.Fatalf("entry %d: operation %d, and the item is there: %v", e.Time, e.Op, there)
			}
			if delete(r.docs, key); e.Current != nil {
				r.docs[key] = e.Current
			}
		}
		r.pos, more = p.Next, p.More
	}
	rows, err := c.Query(ctx, &exec.Query{PlanHash: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		if !r.has(rows.Item()) {
			t.Errorf("item %s isn't what the journal says", rows.Item().Doc)
		}
	}
	if rows.Err() != nil || n != len(r.docs) {
		t.Errorf("the store has %d items, the journal %d (%v)", n, len(r.docs), rows.Err())
	}
}

func (r *reader) has(it *core.Item) bool {
	for _, d := range r.docs {
		if bytes.Equal(d, it.Doc) {
			return true
		}
	}
	return false
}
