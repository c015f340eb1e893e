package store

import "context"

// An index rebuild and a move never run at the same time, and there is one move at a time: both write the entries of
// items, and a move has one indexing policy. A rebuild is waited for as a whole. If both always have something to do
// they take turns.

// moveTurn says whose turn it is. Container.defMu guards it.
type moveTurn struct {
	moving bool // a move is running
	queued int  // number of moves that wait
	waits  bool // a rebuild waits for moves
	next   bool // that rebuild comes before the next move
}

// awaitMoves takes defMu when a rebuild may run: there is no move, and none waits that comes first. It also returns
// when ctx ends.
func (c *Container) awaitMoves(ctx context.Context) {
	for {
		c.defMu.Lock()
		t := &c.rb.moveTurn
		between := c.rb.to == 0 && !c.rb.filling // no slot is between two policies
		if t.waits = t.moving || t.queued > 0 && between && !t.next; !t.waits || ctx.Err() != nil {
			t.waits = false
			if t.next {
				t.next = false
				c.wake()
			}
			return
		}
		wake := c.rb.wake
		c.defMu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
		}
	}
}

// beginMove waits until no rebuild and no other move is in progress, and none comes first. The caller calls endMove.
func (c *Container) beginMove(ctx context.Context) (err error) {
	c.defMu.Lock()
	defer c.defMu.Unlock()
	t := &c.rb.moveTurn
	t.queued++
	defer func() {
		t.queued--
		if err != nil {
			c.wake()
		}
	}()
	for t.moving || t.next || c.rb.filling || c.rb.to != 0 {
		wake := c.rb.wake
		c.defMu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
		}
		c.defMu.Lock()
		if ctx.Err() != nil {
			return translate(ctx.Err())
		}
	}
	if err := c.Alive(); err != nil {
		return err
	}
	t.moving = true
	return nil
}

// endMove ends the turn of a move.
func (c *Container) endMove() {
	c.defMu.Lock()
	defer c.defMu.Unlock()
	c.rb.moving, c.rb.next = false, c.rb.waits
	c.wake()
}
