package store

import (
	"bytes"
	"sync/atomic"
	"time"
)

// A commit reads the version of the catalog together with its items. Over a store of several regions that is a second
// request, and all commits of all containers send it to the same key. So a commit leaves what it was shown to those
// that follow within trustTime, in the same slot and in others of its container. They trust it, and read only keys of
// their own slot.
//
// A request that looks its container up reads the version then. So what is trusted is never older than what such a
// request has read, if this process knows no newer catalog (Container.trusts). Others change the catalog only during
// the request. What its commit must know of such a change is in the slot's head, too:
//
//   - Other slots have replaced the slot, or the container was dropped: the head says Moved, or is gone. The look
//     begins again, and reads the version.
//   - Commits have to follow another definition: a unique index, the life of items, a policy, a log. The change isn't
//     answered before each head was replaced (fence, rebuild, followLog).
//
// So a commit that trusts counts only if the head is the one that the slot had in memory, of which the container's
// definition is known to be new enough. Then nothing of this has happened. Otherwise its members begin again, with the
// version. So do those that are refused: nothing checks at the end that what they have read was still true. After that
// the slot reads the version until a commit has found its head unchanged: several processes that write to one slot
// don't trust in vain.
//
// A dropped database is in the version only, until its containers are removed one after the other. A request that began
// before may still write to them. They are removed with what it has written.
//
// Example: slots 0 and 1 of a container. A commit of slot 0 reads version 12. Then the commits of both slots read their
// heads and items only. Another process changes the life of items, which is version 13, and replaces both heads. The
// next commit of slot 1 meets the new head, begins again, and reads version 13.
type trust struct{ last atomic.Pointer[shown] }

// shown is a version of the catalog that a commit has read.
type shown struct {
	version uint64
	until   time.Time // when it isn't trusted any more
}

// trustTime is how long the version that a commit was shown is trusted after the commit.
const trustTime = 100 * time.Millisecond

// trusts reports whether a look need not read the version of the catalog that the container follows.
func (c *Container) trusts(follows uint64, now time.Time) bool {
	s := c.trusted.last.Load()
	return s != nil && s.version == follows && now.Before(s.until) && c.st.cat.Version() == follows
}

// leave notes the version that the look of a commit was shown. A look that has trusted was shown none.
func (t *trust) leave(l *look) {
	if v, ok := l.version(); ok {
		t.last.Store(&shown{v, realTime.Now().Add(trustTime)})
	}
}

// calm notes whether a commit has found the head of its slot as the slot has it in memory, and reports it. The caller
// holds the latch.
func (g *jointCommit) calm() bool {
	calm := !g.sl.behind && bytes.Equal(g.basis, g.sl.headBytes)
	g.sl.calm.Store(calm)
	return calm
}
