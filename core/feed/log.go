package feed

import (
	"context"

	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/core/store"
)

// ReadLog returns up to most changes of a scope that were committed after a position, and the next position: every
// version and every deletion, from the container's log. Positions and bounds are those of Read. A change that the log
// no longer has is never skipped: a position before the log's beginning is an error.
func ReadLog(ctx context.Context, c *store.Container, sc Scope, pos Position, most int) (Page, error) {
	if err := c.Alive(); err != nil {
		return Page{}, err
	}
	if !c.LogOn() {
		return Page{}, errNoLog()
	}
	return readPage(ctx, c, sc, pos, most, true)
}

// NowLog returns what Now returns, if the container has a log.
func NowLog(ctx context.Context, c *store.Container, sc Scope) (Position, error) {
	if err := c.Alive(); err != nil {
		return Position{}, err
	}
	if !c.LogOn() {
		return Position{}, errNoLog()
	}
	if err := c.BeginLogs(ctx); err != nil {
		return Position{}, err
	}
	return Now(ctx, c, sc)
}

func errNoLog() error {
	return status.New(status.BadRequest, "All versions and deletes can't be read: the container's changeFeedPolicy "+
		"has no retentionDuration.")
}

// ErrNotKept is the error for a reader whose next changes the log no longer has, or never had.
func ErrNotKept() error {
	return status.New(status.BadRequest, "The change feed can't be read from this position. You must read the change "+
		"feed from within the retention period.")
}

// kept returns an error when a log that begins at floor doesn't have everything after an LSN.
func kept(seen, floor int64) error {
	if floor == 0 || seen+1 < floor {
		return ErrNotKept()
	}
	return nil
}

// takeChange adds the change of a cursor's current entry to the page.
func (m *merge) takeChange(c *cursor) error {
	key, val := c.it.Key(), c.it.Value()
	mem := append(append(make([]byte, 0, len(key)+len(val)), key...), val...)
	e := &store.LogEntry{}
	if err := m.view.DecodeLog(e, mem[:len(key)], mem[len(key):]); err != nil {
		return err
	}
	m.page.Changes, m.page.bytes = append(m.page.Changes, e), m.page.bytes+e.Size()
	return nil
}
