package pebblekv

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// disk is the engine's view of the disk: how much space is free, whether it responds, and which writes are refused.
type disk struct {
	dir     string
	fs      vfs.FS // without watch and ballast
	log     *slog.Logger
	fail    failure
	stall   stall
	spacing spacing
	space   space
	single  single

	copying copying

	refused atomic.Uint32 // bits, see refuseData
	running atomic.Bool   // the store is open: a failure of its log ends the process

	// readOnly is why the store is open for reading only; nil: it isn't.
	readOnly *kv.Refusal
	room     chan struct{} // see Engine.Room; nil unless readOnly is errFullAtOpen

	discard atomic.Bool   // nobody opens the store again, see Engine.Discard
	stop    chan struct{} // closed by rest
	minding sync.WaitGroup
	closed  chan struct{} // closed by close
}

// Bits of disk.refused: what is refused, and why. Normally none is set, and a write checks only that.
const (
	refuseData    = 1 << iota // there is space for deletes only
	refuseAll                 // there is space for flushes only
	refuseFlushes             // a flush has failed and none has succeeded since
	refuseReadOnly
	refuseStalled
)

var (
	errDataRefused = &kv.Refusal{Kind: kv.ErrFull,
		Sentence: "The server's disk is full: new data is refused, deletes and reads go on."}
	errAllRefused = &kv.Refusal{Kind: kv.ErrFull,
		Sentence: "The server's disk is full: all writes are refused, reads go on."}
	errFlushesFail = &kv.Refusal{Kind: kv.ErrUnavailable,
		Sentence: "The server can't write tables to its disk: all writes are refused, reads go on."}
	errStalled = &kv.Refusal{Kind: kv.ErrUnavailable,
		Sentence: "The server's disk does not answer: all writes are refused."}
	errFullAtOpen = &kv.Refusal{Kind: kv.ErrFull,
		Sentence: "The server's disk was full when it started: all writes are refused until it has more room and " +
			"opens the store again, reads go on."}
	errOpenedReadOnly = &kv.Refusal{Kind: kv.ErrUnavailable,
		Sentence: "The store is open for reading only."}
	errReadOnlyDisk = &kv.Refusal{Kind: kv.ErrUnavailable,
		Sentence: "The server's disk is read-only: all writes are refused, reads go on."}
)

// admit returns why a write is refused; nil if it isn't. frees: the batch frees space, so it is accepted longer.
func (d *disk) admit(frees bool) error {
	r := d.refused.Load()
	if r == 0 {
		return nil
	}
	if err := d.refusal(r); err != nil && (!frees || r != refuseData) {
		return err
	}
	return nil
}

// refusal returns the error for the most serious bit.
func (d *disk) refusal(bits uint32) error {
	switch {
	case bits&refuseStalled != 0:
		return errStalled
	case bits&refuseReadOnly != 0:
		return d.readOnly
	case bits&refuseAll != 0:
		return errAllRefused
	case bits&refuseFlushes != 0:
		return errFlushesFail
	case bits&refuseData != 0:
		return errDataRefused
	}
	return nil
}

var _ kv.Monitored = (*Engine)(nil)

// Health implements kv.Monitored.
func (e *Engine) Health() kv.Health {
	if h := e.disk.health(); h.State != kv.Well {
		return h
	}
	if reason, ok := e.damage(); ok {
		return kv.Health{State: kv.Damaged, Reason: reason}
	}
	return kv.Health{}
}

// Room returns a channel that is closed when a store that was opened for reading only, because its disk was full, could
// be opened for writing. It is nil for other stores.
func (e *Engine) Room() <-chan struct{} { return e.disk.room }

func (d *disk) health() kv.Health {
	switch r := d.refused.Load(); {
	case r&refuseStalled != 0:
		name, age := d.stall.oldest()
		return kv.Health{State: kv.Stalled,
			Reason: fmt.Sprintf("%s It has been busy with %s for %v.", errStalled.Sentence, name,
				age.Round(time.Millisecond))}
	case r&refuseReadOnly != 0:
		return kv.Health{State: kv.ReadOnly, Reason: strings.TrimSpace(d.readOnly.Sentence + " " + d.space.atOpen)}
	case r&refuseAll != 0:
		return kv.Health{State: kv.ReadOnly, Reason: errAllRefused.Sentence + " " + d.space.figures()}
	case r&refuseFlushes != 0:
		return kv.Health{State: kv.ReadOnly, Reason: errFlushesFail.Sentence}
	case r&refuseData != 0:
		return kv.Health{State: kv.Full, Reason: errDataRefused.Sentence + " " + d.space.figures()}
	}
	return kv.Health{}
}
