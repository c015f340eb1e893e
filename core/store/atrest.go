package store

// The head of a slot says more than what the slot holds: which process wrote it, which LSNs are reserved for the slot,
// and whether the slot is being copied to others. When a store is moved to another engine (core/move), no process has
// it open, and the processes of the other engine are others. So the moved head is the head at rest, without these
// fields.
//
// Example: slots A and B of a store in a cluster have the LSNs up to 40 and 16,390, and A has a block up to 16,384. The
// store is moved to a directory. There all slots count on one scale, from 32,768 on, and the position of a reader that
// has read everything is 32,770 for both slots. The store is moved back. If A still had its block, its next commit had
// LSN 41, and that reader would miss it.

// DecodeHead reads a stored head.
func DecodeHead(b []byte) (h Head, err error) {
	err = h.decode(b)
	return h, err
}

// AtRest returns the stored form of a head without what belongs to the processes that have the store open.
//
// Without its flag, records of removed items (keys.KindRemoved) mean nothing: they need not be moved.
func (h *Head) AtRest() []byte {
	rest := *h
	rest.Moving, rest.Move, rest.Held, rest.Block, rest.Writer, rest.Recorded = false, 0, false, 0, 0, 0
	return rest.append(nil)
}

// WrittenBy returns the stored form of a head that another process has written, and that is the same otherwise. Whoever
// has decided on the former head can't commit any more: see Head.Writer.
func (h *Head) WrittenBy(writer uint64) []byte {
	next := *h
	next.Writer = writer
	return next.append(nil)
}

// Bare reports whether the slot lacks index entries of its items, because it is from a store of an older format.
func (h *Head) Bare() bool { return h.bare() }
