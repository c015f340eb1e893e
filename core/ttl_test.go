package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/value"
)

func TestExpiry(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	onEngines(t, core.Options{Clock: clk}, func(t *testing.T, e *core.Engine) {
		ttl := int32(100)
		c := newContainer(t, e, core.ContainerSpec{DefaultTTL: &ttl, UniqueKeys: [][]string{{"/u"}}})
		old := put(t, c, core.Create, `{"id":"1","pk":"a","u":1}`)
		put(t, c, core.Create, `{"id":"2","pk":"a","ttl":10,"u":2}`)
		put(t, c, core.Create, `{"id":"3","pk":"a","ttl":-1,"u":3}`)
		clk.Advance(11 * time.Second)
		_, err := c.Read(bg, pk("a"), value.StringOf("2"))
		wantCode(t, err, status.NotFound, 0)
		// the unique value of an expired item is free, the item removed
		put(t, c, core.Create, `{"id":"4","pk":"a","u":2}`)
		if counted(c) != 3 {
			t.Errorf("count is %d after an expired item lost its unique value", counted(c))
		}
		clk.Advance(95 * time.Second)
		if n := e.Reap(bg); n != 1 || counted(c) != 2 {
			t.Errorf("reaped %d, %d left", n, counted(c))
		}
		if p, err := e.Check(bg); err != nil || len(p) > 0 {
			t.Errorf("after reaping: %v %v", err, p)
		}
		_, err = c.Write(bg, core.Write{Kind: core.Create, Doc: mustDoc(t, `{"id":"5","pk":"a","u":2}`)})
		wantCode(t, err, status.Conflict, 0) // the value belongs to item 4 now
		clk.Advance(5 * time.Second)
		if got := ids(t, c, &exec.Query{PK: pk("a")}); !slices.Equal(got, []string{"3"}) {
			t.Errorf("alive: %v", got)
		}
		again := put(t, c, core.Create, `{"id":"1","pk":"a","u":1}`)
		if !again.Created || again.Item.Number == old.Item.Number {
			t.Errorf("an expired item was not created anew: %+v", again)
		}
	})
}
