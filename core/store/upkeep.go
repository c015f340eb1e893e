package store

import (
	"context"
	"slices"

	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/index"
)

// policies has compiled indexing policies by version: the current one and earlier ones that index entries may still
// follow.
type policies []policyAt

type policyAt struct {
	version uint32
	policy  *index.Policy
}

// compilePolicies compiles the policies in a definition.
func compilePolicies(def *catalog.Container) (policies, error) {
	pol, err := index.Compile(def.IndexingPolicy, uint64(def.Gen))
	if err != nil {
		return nil, err
	}
	ps := policies{{def.IndexVersion, pol}}
	for _, f := range def.Former {
		if pol, err = index.Compile(f.Policy, uint64(def.Gen)); err != nil {
			return nil, err
		}
		ps = append(ps, policyAt{f.Version, pol})
	}
	return ps, nil
}

// with returns the policies of both.
func (ps policies) with(more policies) policies {
	out := slices.Clone(ps)
	for _, p := range more {
		if ps.at(p.version) == nil {
			out = append(out, p)
		}
	}
	return out
}

// keptPolicies is how many versions of the indexing policy a process still knows after no slot follows them: a snapshot
// may be older than what it knows of the slots.
const keptPolicies = 64

// since returns the policies that aren't much older than a version.
func (ps policies) since(version uint32) policies {
	return slices.DeleteFunc(slices.Clone(ps), func(p policyAt) bool { return p.version+keptPolicies < version })
}

// oldestPolicy returns the oldest version that slots follow as this process knows them. def is the newest definition.
func (c *Container) oldestPolicy(def *catalog.Container) uint32 {
	oldest := def.IndexVersion
	for _, sl := range c.slotList() {
		oldest = min(oldest, uint32(sl.upkeep.Load()>>32))
	}
	return oldest
}

// at returns the policy of a version, nil when it is unknown.
func (ps policies) at(version uint32) *index.Policy {
	for i := range ps {
		if ps[i].version == version {
			return ps[i].policy
		}
	}
	return nil
}

// of returns the version of a policy, 0 when it is unknown.
func (ps policies) of(p *index.Policy) uint32 {
	for i := range ps {
		if ps[i].policy == p {
			return ps[i].version
		}
	}
	return 0
}

// upkeep encodes in one number which policies the slot's index entries follow.
func (h *Head) upkeep() uint64 {
	return uint64(h.Index)<<32 | uint64(h.Next)<<2 | uint64(h.Phase)
}

// upkeep says which policies a slot's index entries follow: one, or during a rebuild the old and the new one.
//
// An item's terms are made under an upkeep without the latch. The holder of the latch compares state before it uses
// them.
type upkeep struct {
	state  uint64
	policy *index.Policy
	next   *index.Policy // nil = no rebuild
	lost   bool          // the policies aren't known: no slot has this state, so no commit is made with it
}

// upkeepOf returns the current upkeep of a slot. With a shared engine it may have to read the catalog, which ends with
// ctx. The upkeep is lost if that fails, or if what this process knows of the slot is older than the catalog.
func (c *Container) upkeepOf(ctx context.Context, sl *Slot) upkeep {
	var learned bool
	for was := sl.upkeep.Load(); ; {
		state := sl.upkeep.Load()
		learned, was = learned && state == was, state
		known := *c.known.Load()
		up := upkeep{state: state, policy: known.at(uint32(state >> 32))}
		next := uint32(state) >> 2
		if next != 0 {
			up.next = known.at(next)
		}
		if up.policy != nil && (next == 0) == (up.next == nil) {
			return up
		} // else a rebuild has ended since: its policy is dropped after every slot has left it
		if !c.Slots().has(sl) { // its upkeep stays as it is, and no commit into it follows
			return upkeep{state: state, policy: c.pol.Load()}
		}
		if c.st.others { // another process has begun a rebuild, or has ended it
			if learned || c.learn(ctx) != nil {
				return upkeep{state: ^state, policy: c.pol.Load(), lost: true}
			}
			learned = true
		}
	}
}

func (u upkeep) phase() Phase { return Phase(u.state & 3) }

// termsThere returns the terms of which an item may have entries.
func (u upkeep) termsThere(it *Item) *index.Terms {
	t, _ := collectBoth(u.policy, u.next, it)
	return t
}

// termsNeeded returns the terms of which an item must have entries now.
func (u upkeep) termsNeeded(it *Item) *index.Terms {
	switch u.phase() {
	case Removing:
		return collect(u.next, it)
	case Ready:
		return u.termsThere(it)
	}
	return collect(u.policy, it)
}

// termsToHave returns the terms of which a written item gets entries. extra says that the policy after the rebuild
// doesn't have all of them.
func (u upkeep) termsToHave(it *Item) (t *index.Terms, extra bool) {
	if u.phase() == Removing {
		return collect(u.next, it), false
	}
	return collectBoth(u.policy, u.next, it)
}

// collectBoth returns the terms of an item under two policies together. next may be nil. extra says that next has other
// terms.
func collectBoth(pol, next *index.Policy, it *Item) (t *index.Terms, extra bool) {
	t = collect(pol, it)
	if next == nil {
		return t, false
	}
	n := collect(next, it)
	defer termsPool.Put(n)
	t.Merge(n)
	return t, !t.Same(n)
}
