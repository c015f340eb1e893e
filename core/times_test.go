package core_test

import (
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/value"
)

// No two versions under a key have the same time, not even if the first one was deleted before the second was created:
// a time is the etag of an entity. With a frozen clock all writes are made at the same time.
func TestTimesAreNotRepeated(t *testing.T) {
	clk := clock.Fake(time.Unix(1_700_000_000, 0))
	onEngines(t, core.Options{Clock: clk}, func(t *testing.T, e *core.Engine) {
		c := newContainer(t, e, core.ContainerSpec{})
		last := int64(0)
		for range 3 {
			for _, kind := range []core.WriteKind{core.Create, core.Replace} {
				r := put(t, c, kind, `{"id":"a","pk":"p"}`)
				if r.Item.Ticks <= last {
					t.Errorf("a version has the time %d, the one before it %d", r.Item.Ticks, last)
				}
				last = r.Item.Ticks
			}
			if _, err := c.Write(bg, core.Write{Kind: core.Delete, PK: pk("p"), ID: value.StringOf("a")}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
