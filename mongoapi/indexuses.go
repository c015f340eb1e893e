package mongoapi

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/orrerydb/orrery/core/plan"
	"github.com/orrerydb/orrery/core/plan/access"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/mongoapi/stages"
)

// indexUses counts the queries of a collection that have used each of its indexes, for $indexStats. The store indexes
// every path, so there may be uses of an index that isn't declared.
//
// Example: with the declared index {a: 1, b: 1} a query {a: 5} walks the entries of the path a, and MongoDB would walk
// those of the declared index. The use counts for it, unless {a: 1} is declared too.
type indexUses struct {
	byID atomic.Int64 // uses of the index of _id
	mu   sync.RWMutex
	m    map[indexKey]*indexUse
}

// indexKey is the path of an index of one path, or else the number of a composite one.
type indexKey struct {
	path string
	comp uint64
}

type indexUse struct {
	n        atomic.Int64
	names    []string
	descends []bool
}

// maxPaths limits the indexes of a collection whose uses are kept: clients choose the paths that they ask for. Beyond
// it the one with the fewest uses is forgotten.
const maxPaths = 256

// maxUses limits the collections whose uses are kept, because dropped ones stay among them. Beyond it any is
// forgotten.
const maxUses = 10_000

// allUses are the uses of all collections, by the number of the container. They begin with the server.
type allUses struct {
	mu sync.RWMutex
	m  map[uint32]*indexUses
}

// of returns the uses of a collection.
func (a *allUses) of(num uint32) *indexUses {
	a.mu.RLock()
	u := a.m[num]
	a.mu.RUnlock()
	if u != nil {
		return u
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if u = a.m[num]; u == nil {
		if a.m == nil {
			a.m = map[uint32]*indexUses{}
		}
		for other := range a.m {
			if len(a.m) < maxUses {
				break
			}
			delete(a.m, other)
		}
		u = &indexUses{m: map[indexKey]*indexUse{}}
		a.m[num] = u
	}
	return u
}

// point counts a look-up by _id.
func (u *indexUses) point() {
	if u != nil {
		u.byID.Add(1)
	}
}

// query counts the indexes of a plan, each once.
func (u *indexUses) query(t *plan.Tree) {
	if u != nil && t != nil && t.Root != nil {
		u.node(t.Root)
	}
}

func (u *indexUses) node(n *plan.Node) {
	switch {
	case n.Op == plan.Points:
		u.point()
		return
	case n.Op == plan.Scan || n.Op == plan.PartitionScan:
		return
	case n.Leaf != nil:
		u.leaf(n.Leaf)
		return
	}
	for _, k := range n.Kids {
		u.node(k)
	}
}

func (u *indexUses) leaf(l *access.Pred) {
	var key indexKey
	if l.Comp != nil {
		key.comp = l.Comp.Index.ID
	} else {
		key.path = strings.Join(l.Path.Segs, ".")
	}
	u.mu.RLock()
	use := u.m[key]
	u.mu.RUnlock()
	if use == nil {
		use = u.begin(key, l)
	}
	use.n.Add(1)
}

// begin returns the uses of an index that isn't among the kept ones. The texts of a leaf may be those of the command.
func (u *indexUses) begin(key indexKey, l *access.Pred) *indexUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	if use := u.m[key]; use != nil {
		return use
	}
	for len(u.m) >= maxPaths {
		var least indexKey
		fewest := int64(-1)
		for k, use := range u.m {
			if n := use.n.Load(); fewest < 0 || n < fewest {
				least, fewest = k, n
			}
		}
		delete(u.m, least)
	}
	use := &indexUse{}
	use.names, use.descends = stages.Columns(l)
	for i, name := range use.names {
		use.names[i] = strings.Clone(name)
	}
	key.path = strings.Clone(key.path)
	u.m[key] = use
	return use
}

// count returns the uses of a declared index, which is one of all.
func (u *indexUses) count(spec value.Value, all []value.Value) (n int64) {
	names, descends := columnsIn(spec)
	if len(names) == 1 && names[0] == "_id" {
		n = u.byID.Load()
	}
	u.mu.RLock()
	defer u.mu.RUnlock()
	for _, use := range u.m {
		switch {
		case slices.Equal(use.names, names) && (len(names) == 1 || slices.Equal(use.descends, descends)):
			n += use.n.Load()
		case len(use.names) == 1 && len(names) > 1 && use.names[0] == names[0] && firstWith(all, names[0], spec):
			n += use.n.Load()
		}
	}
	return n
}

// firstWith reports whether spec is the first of the indexes that begin with a path, and none has only that path.
func firstWith(all []value.Value, path string, spec value.Value) bool {
	var first value.Value
	for _, s := range all {
		switch names, _ := columnsIn(s); {
		case names[0] != path:
		case len(names) == 1:
			return false
		case !first.IsDefined():
			first = s
		}
	}
	return first.Get("name").Str() == spec.Get("name").Str()
}

// columnsIn returns the paths of a declared index, and which descend.
func columnsIn(spec value.Value) (names []string, descends []bool) {
	for it := spec.Get("key").Iter(); it.Next(); {
		names = append(names, string(it.Key()))
		descends = append(descends, it.Value().IsNumber() && it.Value().Int() < 0)
	}
	return names, descends
}
