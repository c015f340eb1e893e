package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/work"
)

// In a store that several processes share the outcome of a change may be unknown although everything works: a reply was
// lost, or the store stopped to answer for a while. So a change marks its version, and the entry of the account has the
// marks of the last changes. The process that has made it finds out:
//
//  1. If its version has its mark, it was made.
//  2. If its version has another mark, it was refused, and is repeated.
//  3. If the catalog doesn't have its version yet, it may still arrive. The process then makes a change of nothing, a
//     fence. It has the same precondition, so one of the two is refused.
//
// If its version has no mark any more, too many changes were made since, or one of a process that sets none. Then the
// outcome stays unknown.
//
// Example: a container is created as version 8, and the reply is lost. The stored version is 7. The fence becomes
// version 8 and is marked. The create is repeated as version 9. The first one arrives now, and is refused.

// mark is a random number that a change gives its version of the catalog.
type mark struct {
	Version uint64 `json:"v"`
	Number  uint64 `json:"n"`
}

// keptMarks is the number of changes whose marks are kept. Others may make as many before a process has found out
// what has become of its own.
const keptMarks = 16

// sign gives the version of a draft its mark.
func (x *draft) sign(number uint64) mark {
	m := mark{x.version, number}
	kept := x.account.Changes
	x.account.Changes = append([]mark{m}, kept[:min(len(kept), keptMarks-1)]...)
	return m
}

// made reports whether a change was made. known is false if the state doesn't tell.
func (s *state) made(m mark) (made, known bool) {
	for _, is := range s.account.Changes {
		if is.Version == m.Version {
			return is == m, true
		}
	}
	return false, false
}

const (
	// reloadTime is for how long the outcome of a change is looked for after the end of its request. The end may be why
	// it is unknown. Other changes wait meanwhile.
	reloadTime = time.Second
	reloadRest = 20 * time.Millisecond // between two looks
)

// errUndone says that a change of unknown outcome was not made, and won't be.
var errUndone = errors.New("catalog: a change of unknown outcome was not made")

// findOut finds out the outcome of a change, which is unknown because of cause, for as long as its request lasts. If it
// was made, its state is visible afterwards. The caller holds mu.
func (c *Catalog) findOut(ctx context.Context, m mark, cause error) error {
	ctx, cancel := work.AtLeast(ctx, reloadTime)
	defer cancel()
	c.unsure = true // until it was read again
	for {
		err := c.reload(ctx)
		if err == nil {
			st := c.cur.Load()
			made, known := st.made(m)
			switch {
			case made:
				return nil
			case known:
				return errUndone
			case st.version >= m.Version:
				return cause
			}
			fence := &draft{state: *st}
			fence.b.Frees = true // it adds nothing
			if _, err = c.write(ctx, fence); err == nil {
				c.show(&fence.state)
				return errUndone
			}
		}
		again := errors.Is(err, kv.ErrUnavailable) || errors.Is(err, kv.ErrConflict) ||
			errors.Is(err, kv.ErrUnknownOutcome)
		if !again || !work.Sleep(ctx, reloadRest) {
			return cause
		}
	}
}
