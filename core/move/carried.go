package move

import (
	"bytes"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/store"
)

// What a store of one process and a store that several share keep is the same, except for this:
//
//	leases and signs of life       of processes over the source: not copied
//	records of APIs                open cursors, and what a client may repeat within minutes: not copied
//	records of removed items       of a copy of a slot that was interrupted: not copied, and the head doesn't name the
//	                               copy. The slots that the copy has made have notes: the target removes them
//	writer of a head               a process over the source: 0
//	block of LSNs in a head        the slot's next commit reserves one: see store.Head.AtRest
//	the record of the move         each store has its own
//
// Counters stay: what processes have reserved and not used is lost, as at the end of any process. So the target gives
// out greater LSNs and numbers than the source ever did. Facts that were being counted are counted again. An index
// rebuild goes on where it was, because the heads say where that is.

var moveKey = catalog.MoveKey()

// carried returns the value that a key of the source has in the target. ok is false if the target doesn't have the key.
func carried(key, val []byte) (_ []byte, ok bool, err error) {
	if !counts(key) {
		return nil, false, nil
	}
	switch _, kind, data := keys.ParseSlot(key); {
	case !data:
	case kind == keys.KindRemoved:
		return nil, false, nil
	case kind == keys.KindHead:
		h, err := store.DecodeHead(val)
		if err != nil {
			return nil, false, err
		}
		return h.AtRest(), true, nil
	}
	return val, true, nil
}

// counts reports whether a key belongs to the contents of a store, whatever its engine.
func counts(key []byte) bool { return !keys.IsJob(key) && !bytes.Equal(key, moveKey) }

// isItem reports whether a key is that of an item.
func isItem(key []byte) bool {
	_, kind, ok := keys.ParseSlot(key)
	return ok && kind == keys.KindItem
}
