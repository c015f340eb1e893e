package agg

import (
	"context"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/merr"
)

// hold accounts for the memory of a blocking stage. Two limits apply: memoryLimit for the stage, and the budget that
// all requests share. When one of them is reached, a stage that can use files writes its state to files; any other
// stage fails.
//
// Example: $sort calls add with the size of each document. At 100 MiB add calls the function that was set with spills.
// It writes the documents to a sorted run and calls forget, which sets the size to 0, and the stage continues.
type hold struct {
	what  string
	mem   *budget.Account
	size  int
	space *spill.Space // nil: no files may be used
	ctx   context.Context
	files bool   // the stage can write to files
	err   error  // error of writing to files
	close func() // removes files; may be nil
}

func (x *Exec) hold(what string) *hold {
	run := x.Env.Run
	return &hold{what: what, mem: run.Open(what), space: run.Space(), ctx: run.Context()}
}

// spills sets the function that writes the stage's state to files; it must call forget. spills returns false when no
// files may be used. The stage then fails when it holds too much.
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

// filled is called when the stage has read all of its documents. Its state isn't written to files after that.
func (h *hold) filled() {
	h.files = false
	h.mem.OnSpill(nil)
}

// closes sets the function that removes the stage's files.
func (h *hold) closes(f func()) { h.close = f }

// forget returns the memory of the state that was written to files.
func (h *hold) forget() {
	h.size = 0
	h.mem.Shrink(h.mem.Used())
}

// add charges n bytes, or returns -n bytes when n is negative.
func (h *hold) add(n int) error {
	if h.size += n; h.size > memoryLimit {
		if !h.files {
			return merr.New(merr.MemoryLimit, "%s exceeded memory limit of %d bytes, but didn't allow external "+
				"spilling", h.what, memoryLimit)
		}
		h.mem.Spill()
	}
	return h.take(n)
}

// take charges n bytes to the budget only and not to memoryLimit. It is for the stage's result.
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

// freeDoc is the size in bytes up to which a single held document isn't charged.
const freeDoc = 16 << 10

// one charges a document that replaces everything that was held before.
func (h *hold) one(d value.Value) error {
	h.release()
	if n := len(d.Bytes()); n > freeDoc {
		return h.take(n)
	}
	return nil
}

// release returns all memory and removes the files.
func (h *hold) release() {
	h.size = 0
	if h.close != nil {
		h.close()
	}
	h.mem.Close()
}
