package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/feed"
)

// The lag of a change feed's reader is the age of the youngest change of its page. An empty page has no lag.
func TestFeedLag(t *testing.T) {
	clk := clock.Fake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	onEngines(t, core.Options{Clock: clk}, func(t *testing.T, e *core.Engine) {
		var ages []time.Duration
		e.OnFeed(func(age time.Duration) { ages = append(ages, age) })
		c := newContainer(t, e, core.ContainerSpec{})
		var pos feed.Position
		for _, most := range []int{1, 10, 10} { // the last page is empty
			if most == 1 {
				for i := range 2 {
					put(t, c, core.Create, fmt.Sprintf(`{"id":"%d","pk":"a"}`, i))
					clk.Advance(90 * time.Second)
				}
			}
			page, err := c.ChangeFeed(bg, "", pos, most)
			if err != nil {
				t.Fatal(err)
			}
			pos = page.Next
		}
		if fmt.Sprint(ages) != "[3m0s 1m30s]" {
			t.Error(ages)
		}
	})
}
