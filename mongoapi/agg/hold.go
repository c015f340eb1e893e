package agg

import (
	"context"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// hold is what a stage holds that must see all of its documents: within MemoryLimit, and of the memory that all
// requests share. A stage that can write its state to files does so when either is used up.
type hold struct {
	what  string
	mem   *budget.Account
	size  int
	space *spill.Space // nil: nothing may be spilled
	ctx   context.Context
	files bool   // the stage can spill
	err   error  // of a spill
	close func() // removes files; may be nil
}

func (x *Exec) hold(what string) *hold {
	run := x.Env.Run
	return &hold{what: what, mem: run.Open(what), space: run.Space(), ctx: run.Context()}
}

// spills sets the function that writes all state to files and calls forget. It returns false where no files may be
// made: then the stage fails when it holds too much.
func (h *hold) spills(f func() error) bool {
	if h.space == nil {
		return false
	}
	h.files = true
	h.mem.Spills()
	h.mem.OnSpill(func() {
		if h.err == nil {
			h.err = f()
		}
	})
	return true
}

// filled says that the stage has seen all of its documents: what it holds from now on isn't spilled any more.
func (h *hold) filled() {
	h.files = false
	h.mem.OnSpill(nil)
}

// closes sets the function that removes the stage's files.
func (h *hold) closes(f func()) { h.close = f }

// forget gives back the memory of what was spilled.
func (h *hold) forget() {
	h.size = 0
	h.mem.Shrink(h.mem.Used())
}

// add counts n bytes more, or fewer.
func (h *hold) add(n int) error {
	if h.size += n; h.size > MemoryLimit {
		if !h.files {
			return merr.New(merr.MemoryLimit, "%s exceeded memory limit of %d bytes, but didn't allow external "+
				"spilling", h.what, MemoryLimit)
		}
		h.mem.Spill()
	}
	return h.take(n)
}

// take counts bytes that are no part of the stage's own limit: its result.
func (h *hold) take(n int) error {
	if n < 0 {
		h.mem.Shrink(int64(-n))
		return h.err
	}
	if err := h.mem.Grow(int64(n)); err != nil {
		return err
	}
	return h.err
}

// freeDoc is how long a document may be that a stage holds alone before the budget is asked.
const freeDoc = 16 << 10

// one counts a document that is held in place of all before it.
func (h *hold) one(d value.Value) error {
	h.release()
	if n := len(d.Bytes()); n > freeDoc {
		return h.take(n)
	}
	return nil
}

// release gives all back.
func (h *hold) release() {
	h.size = 0
	if h.close != nil {
		h.close()
	}
	h.mem.Close()
}
