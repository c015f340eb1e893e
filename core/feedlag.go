package core

import (
	"time"

	"github.com/orrerydb/orrery/core/feed"
)

// OnFeed sets a function that is called for each page of a change feed with changes. It gets the age of the page's
// youngest change: the delay of its reader. Call OnFeed before the first request.
func (e *Engine) OnFeed(f func(age time.Duration)) { e.onFeed = f }

// fed calls the function of OnFeed for a page.
func (e *Engine) fed(p *feed.Page) {
	if e.onFeed == nil || len(p.Items) == 0 {
		return
	}
	youngest := p.Items[0].Ticks
	for _, it := range p.Items[1:] {
		youngest = max(youngest, it.Ticks)
	}
	const tick = 100 * time.Nanosecond
	e.onFeed(max(0, time.Duration(e.clk.Now().UnixNano())-time.Duration(youngest)*tick))
}
