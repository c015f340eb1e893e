package store

import "bytes"

// A commit of several writes trusts the version of the catalog, as requests that look something up do
// (core/catalog/trust.go). Without that it reads the version together with its items: over a store of several regions a
// second request. What is trusted is no older than the last change that was answered. But a change that comes between
// the look of a commit and its write must not meet a commit that doesn't know it. Such a change is in the slot's head,
// too:
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
// Example: version 12 is trusted, so commits of slots 0 and 1 read their heads and items only. Another process changes
// the life of items, which is version 13, and replaces both heads. The next commit of slot 1 meets the new head, begins
// again, and reads version 13.

// calm notes whether a commit has found the head of its slot as the slot has it in memory, and reports it. The caller
// holds the latch.
func (g *jointCommit) calm() bool {
	calm := !g.sl.behind && bytes.Equal(g.basis, g.sl.headBytes)
	g.sl.calm.Store(calm)
	return calm
}
