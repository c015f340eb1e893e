package core

import (
	"time"

	"github.com/orrerydb/orrery/core/feed"
)

// OnFeed sets what is told of each page of a change feed that has changes: the age of its youngest one, which is how
// far its reader is behind. Call it before the first request.
func (e *Engine) OnFeed(f func(age time.Duration)) { e.onFeed = f }

// fed tells of a page.
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
