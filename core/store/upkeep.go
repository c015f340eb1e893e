package store

import (
	"github.com/orrerydb/orrery/core/catalog"
	"github.com/orrerydb/orrery/core/index"
)

// policies are compiled indexing policies by version: the present one and those before it that index entries may still
// follow.
type policies []policyAt

type policyAt struct {
	version uint32
	policy  *index.Policy
}

// compilePolicies compiles the policies that a definition knows.
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

// at returns the policy of a version, nil when it isn't known.
func (ps policies) at(version uint32) *index.Policy {
	for i := range ps {
		if ps[i].version == version {
			return ps[i].policy
		}
	}
	return nil
}

// upkeep names what the slot's index entries follow in one number.
func (h *Head) upkeep() uint64 {
	return uint64(h.Index)<<32 | uint64(h.Next)<<2 | uint64(h.Phase)
}

// upkeep is how a slot's index entries are kept: by one policy, and while a rebuild is under way by the two around it.
//
// An item's terms are made under an upkeep without the latch; the latch's holder compares state before he uses them.
type upkeep struct {
	state  uint64
	policy *index.Policy
	next   *index.Policy // nil = no rebuild
}

// upkeepOf returns how a slot's index entries are kept now.
func (c *Container) upkeepOf(sl *Slot) upkeep {
	for {
		state := sl.upkeep.Load()
		known := *c.known.Load()
		up := upkeep{state: state, policy: known.at(uint32(state >> 32))}
		next := uint32(state) >> 2
		if next != 0 {
			up.next = known.at(next)
		}
		if up.policy != nil && (next == 0) == (up.next == nil) {
			return up
		} // else a rebuild has ended since: its policy is forgotten after every slot has left it
	}
}

func (u upkeep) phase() Phase { return Phase(u.state & 3) }

// termsThere gives the terms that an item may have entries of.
func (u upkeep) termsThere(it *Item) *index.Terms {
	t, _ := collectBoth(u.policy, u.next, it)
	return t
}

// termsNeeded gives the terms that an item must have entries of now.
func (u upkeep) termsNeeded(it *Item) *index.Terms {
	switch u.phase() {
	case Removing:
		return collect(u.next, it)
	case Ready:
		return u.termsThere(it)
	}
	return collect(u.policy, it)
}

// termsToHave gives the terms that an item is to have entries of; extra says that the policy after the rebuild doesn't
// want them all.
func (u upkeep) termsToHave(it *Item) (t *index.Terms, extra bool) {
	if u.phase() == Removing {
		return collect(u.next, it), false
	}
	return collectBoth(u.policy, u.next, it)
}

// collectBoth gives the terms of an item under two policies together; next may be nil. extra says that next has other
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
