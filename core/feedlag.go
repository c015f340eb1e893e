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
	if e.onFeed == nil || len(p.Items)+len(p.Changes) == 0 {
		return
	}
	youngest := int64(0)
	for _, it := range p.Items {
		youngest = max(youngest, it.Ticks)
	}
	for _, ch := range p.Changes {
		youngest = max(youngest, ch.Ticks)
	}
	const tick = 100 * time.Nanosecond
	e.onFeed(max(0, time.Duration(e.clk.Now().UnixNano())-time.Duration(youngest)*tick))
}
