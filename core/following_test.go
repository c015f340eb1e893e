package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// A single writer that writes again at once uses the snapshot that its last commit has asked for. It is answered as if
// it had taken one of its own, whatever another process does between the two.
func TestWriterFollowsItsCommit(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	eng := &commits{Process: store.Engine(), seen: make(chan bool, 100)}
	mine := newContainer(t, opened(t, kv.Checked(eng), core.Options{MinSlots: 1}), core.ContainerSpec{})
	other, err := opened(t, kv.Checked(store.Engine()), core.Options{MinSlots: 1}).Container("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	item := func(id string) string { return fmt.Sprintf(`{"id":%q,"pk":"p"}`, id) }
	made := func(id string) { put(t, other, core.Create, item(id)) }
	removed := func(id string) { del(t, other, "p", id) }
	beside := func(id string) { made("beside " + id) }
	for name, tc := range map[string]struct {
		before, between func(id string) // by the other process
		kind            core.WriteKind
		code            status.Code // 0: it succeeds
	}{
		"create":           {nil, nil, core.Create, 0},
		"replace nothing":  {nil, nil, core.Replace, status.NotFound},
		"create it twice":  {made, nil, core.Create, status.Conflict},
		"create, made":     {nil, made, core.Create, status.Conflict},
		"replace, made":    {nil, made, core.Replace, 0},
		"create, removed":  {made, removed, core.Create, 0},
		"replace, removed": {made, removed, core.Replace, status.NotFound},
		"create, beside":   {nil, beside, core.Create, 0},
	} {
		t.Run(name, func(t *testing.T) {
			eng.slow.Store(int64(20 * time.Millisecond)) // what it leaves is used for as long again
			for n, used := 0, eng.after.Load(); eng.after.Load() == used; n++ {
				if n == 50 {
					t.Fatal("what a commit has left was never used")
				}
				id := fmt.Sprint(name, " ", n)
				if tc.before != nil {
					tc.before(id)
				}
				put(t, mine, core.Create, item("first "+id))
				if tc.between != nil {
					tc.between(id)
				}
				_, err := mine.Write(bg, core.Write{Kind: tc.kind, Doc: mustDoc(t, item(id))})
				if tc.code != 0 {
					wantCode(t, err, tc.code, 0)
				} else if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
