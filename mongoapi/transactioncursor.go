package mongoapi

import "github.com/orrerydb/orrery/mongoapi/merr"

// A cursor that a transaction opens belongs to it: only its getMores may read it, and it ends with the transaction. It
// is kept by the process that has the transaction, also if several share the store.

// shares reports whether other processes may go on with the cursors of the command.
func (r *request) shares() bool { return r.s.eng.Shared() && r.multi == nil && r.kept == nil }

// owns makes a cursor one of the command's transaction, if it has one. The transaction may have ended meanwhile.
func (r *request) owns(c *cursor) {
	t := r.multi
	if t == nil {
		return
	}
	t.mu.Lock()
	runs := t.state == transactionRuns
	if runs {
		t.cursors = append(t.cursors, c.id)
	}
	t.mu.Unlock()
	if !runs {
		r.s.cursors.drop([]int64{c.id})
	}
}

// drop removes cursors.
func (cs *cursors) drop(ids []int64) {
	if len(ids) == 0 {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, id := range ids {
		cs.remove(cs.m[id])
	}
}

// allowsIn refuses a getMore of another transaction than the one that has opened the cursor.
func (c *cursor) allowsIn(r *request) error {
	txn := int64(-1)
	if r.multi != nil {
		txn = r.txn
	}
	switch {
	case c.txn == txn:
		return nil
	case c.txn < 0:
		return merr.New(50739, "Cannot run getMore on cursor %d, which was not created in a transaction, in "+
			"transaction %d", c.id, txn)
	case txn < 0:
		return merr.New(50740, "Cannot run getMore on cursor %d, which was created in transaction %d, without a "+
			"txnNumber", c.id, c.txn)
	}
	return merr.New(50741, "Cannot run getMore on cursor %d, which was created in transaction %d, in transaction %d",
		c.id, c.txn, txn)
}
