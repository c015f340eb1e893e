package sql

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/exec"
	"github.com/orrerydb/orrery/core/plan/access"
)

// adviser finds indexes that a query could use but that the indexing policy lacks.
//
// Example: SELECT * FROM c WHERE c.a = 1 AND c.b > 2 with the default policy has no composite index. If it read items
// that the filter rejected, the advice names the composite index (/a ASC, /b ASC): first the path with a fixed value,
// then the path with a range.
type adviser struct {
	use    *IndexUse
	pl     *Plan
	c      *core.Container
	policy indexingPolicy
	helps  bool // items were read for nothing or sorted, so a better index would help
}

// indexingPolicy is the part of a policy that advice depends on.
type indexingPolicy struct {
	Mode      string                           `json:"indexingMode"`
	Excluded  []struct{ Path string }          `json:"excludedPaths"`
	Composite [][]struct{ Path, Order string } `json:"compositeIndexes"`
}

func parsePolicy(raw []byte) (p indexingPolicy) {
	_ = json.Unmarshal(raw, &p) // it was checked when it was stored; an empty policy is the default one
	return p
}

func (a *adviser) advise(line string) {
	if !slices.Contains(a.use.Advice, line) {
		a.use.Advice = append(a.use.Advice, line)
	}
}

// key finds the paths of the partition key that the request is restricted to.
func (a *adviser) key(q *exec.Query) {
	for i := range q.PK {
		a.utilized(access.Path{Segs: a.c.KeyPaths()[i]})
	}
}

// utilized adds an indexed path, unless a composite index that has it serves the query.
func (a *adviser) utilized(p access.Path) {
	text := pathText(p.Segs)
	if !slices.ContainsFunc(a.use.UtilizedComposite, func(c CompositeIndex) bool {
		return slices.Contains(c.Specs, text+" ASC") || slices.Contains(c.Specs, text+" DESC")
	}) {
		a.use.single(&a.use.Utilized, p, a.pl)
	}
}

// singles finds the paths of the filter and of ORDER BY that the policy indexes, and those that it doesn't.
func (a *adviser) singles(q *exec.Query) {
	missing := func(p access.Path) {
		if len(p.Segs) == 0 || p.Segs[0] == "" || p.Segs[0][0] == 0 {
			return
		}
		if a.c.Indexes(p) {
			a.utilized(p)
			return
		}
		if !a.use.single(&a.use.Potential, p, a.pl) {
			return
		}
		spec := indexSpec(p)
		switch {
		case strings.EqualFold(a.policy.Mode, "none"):
			a.advise("set indexingMode to consistent")
		case slices.ContainsFunc(a.policy.Excluded, func(e struct{ Path string }) bool { return e.Path == spec }):
			a.advise("remove " + spec + " from excludedPaths")
		case p.Elements:
			// an index on the elements alone isn't enough: other APIs also match a value at the path itself
			a.advise("add " + pathText(p.Segs) + "/* to includedPaths")
		default:
			a.advise("add " + spec + " to includedPaths")
		}
	}
	var walk func(p *access.Pred)
	walk = func(p *access.Pred) {
		if p == nil {
			return
		}
		if p.Op == access.OpSpatial {
			a.places(p)
		} else {
			missing(p.Path)
		}
		for _, k := range p.Kids {
			walk(k)
		}
	}
	walk(q.Pred)
	for _, o := range q.OrderBy {
		missing(o.Path)
	}
}

// places adds the spatial index that a condition on geometries could use.
func (a *adviser) places(p *access.Pred) {
	planar := p.Region.Planar()
	if a.c.IndexesPlaces(p.Path, planar) {
		a.utilized(p.Path)
		return
	}
	if !a.use.single(&a.use.Potential, p.Path, a.pl) {
		return
	}
	advice := "add " + pathText(p.Path.Segs) + "/* to spatialIndexes"
	if planar {
		advice += " with a boundingBox"
	}
	a.advise(advice)
}

// column is one path of a composite index.
type column struct {
	path string
	desc bool
}

// text returns the column as the service prints it, such as "/a ASC".
func (c column) text() string {
	if c.desc {
		return c.path + " DESC"
	}
	return c.path + " ASC"
}

// composites finds the composite index for ORDER BY, preceded by the paths that the filter fixes to one value, or the
// composite index for a filter of several conditions.
func (a *adviser) composites(q *exec.Query) {
	if strings.EqualFold(a.policy.Mode, "none") {
		return
	}
	fixed, ranged := a.conditions(q.Pred)
	var order []column
	for _, o := range q.OrderBy {
		if len(o.Path.Segs) == 0 || o.Path.Segs[0] == "" || o.Path.Segs[0][0] == 0 &&
			!slices.Equal(o.Path.Segs, access.TS.Segs) {
			return // not a path, so no index can have it
		}
		order = append(order, column{pathText(o.Path.Segs), o.Desc})
	}
	fixed = slices.DeleteFunc(fixed, func(f column) bool {
		return slices.ContainsFunc(order, func(o column) bool { return o.path == f.path })
	})
	switch {
	case len(order) > 1:
		if len(fixed) == 0 || !a.has(fixed, order) {
			a.composite(nil, order)
		}
	case len(order) == 1 && len(fixed) > 0 && a.use.Sorted:
		a.composite(fixed, order)
	case len(order) == 0 && len(fixed)+len(ranged) > 1 && len(fixed) > 0 && a.use.Access != access.Points.String():
		if len(ranged) == 0 {
			a.composite(fixed, nil)
		}
		for _, r := range ranged { // one index can serve only one of them
			a.composite(fixed, []column{r})
			a.helps = false // one index is advised
		}
	}
}

// composite adds the composite index that serves equalities on the paths fixed, and then an order or a range on rest.
// It is one of the policy, or one that would help.
func (a *adviser) composite(fixed, rest []column) {
	want := append(fixed[:len(fixed):len(fixed)], rest...)
	if len(want) < 2 || len(want) > core.MaxCompositePaths || a.has(fixed, rest) {
		return
	}
	spec := CompositeIndex{}
	text := make([]string, len(want))
	for i, w := range want {
		spec.Specs = append(spec.Specs, w.text())
		text[i] = w.path + strings.ToLower(w.text()[len(w.path):])
	}
	a.use.PotentialComposite = append(a.use.PotentialComposite, spec)
	if a.helps {
		a.advise("add composite [" + strings.Join(text, ",") + "] to compositeIndexes")
	}
}

// conditions returns the paths of a conjunction that are fixed to one value, and those that are restricted to a range.
func (a *adviser) conditions(p *access.Pred) (fixed, ranged []column) {
	if p == nil {
		return nil, nil
	}
	cs := []*access.Pred{p}
	if p.Op == access.OpAnd {
		cs = p.Kids
	}
	add := func(to *[]column, p access.Path) {
		if c := (column{path: pathText(p.Segs)}); !slices.Contains(*to, c) {
			*to = append(*to, c)
		}
	}
	for _, c := range cs {
		if c.Path.Elements || len(c.Path.Segs) == 0 || c.Path.Segs[0] == "" || c.Path.Segs[0][0] == 0 {
			continue
		}
		switch {
		case c.Op == access.OpIn && len(c.Vals) == 1:
			add(&fixed, c.Path)
		case c.Op == access.OpRange || c.Op == access.OpPrefix:
			add(&ranged, c.Path)
		}
	}
	return fixed, slices.DeleteFunc(ranged, func(r column) bool { return slices.Contains(fixed, r) })
}

// has reports whether the policy has a composite index that begins with the paths fixed, in any order and direction,
// and goes on with rest, in the same directions or all in the opposite ones. Such an index is utilized.
func (a *adviser) has(fixed, rest []column) bool {
	for _, fields := range a.policy.Composite {
		if len(fields) < len(fixed)+len(rest) {
			continue
		}
		cols := make([]column, len(fields))
		for i, f := range fields {
			segs, err := core.ParsePath(strings.TrimSuffix(f.Path, "/?"))
			if err != nil {
				cols = nil
				break
			}
			cols[i] = column{pathText(segs), strings.EqualFold(f.Order, "descending")}
		}
		if cols != nil && begins(cols, fixed, rest) {
			a.use.utilizes(cols)
			return true
		}
	}
	return false
}

// begins reports whether the columns of an index begin with fixed and go on with rest.
func begins(cols, fixed, rest []column) bool {
	for _, f := range fixed {
		if !slices.ContainsFunc(cols[:len(fixed)], func(c column) bool { return c.path == f.path }) {
			return false
		}
	}
	for i, r := range rest {
		c, first := cols[len(fixed)+i], cols[len(fixed)]
		if c.path != r.path || (c.desc == r.desc) != (first.desc == rest[0].desc) {
			return false
		}
	}
	return true
}

// utilizes adds a composite index of the policy, unless the list has it already.
func (u *IndexUse) utilizes(cols []column) {
	spec := CompositeIndex{make([]string, len(cols))}
	for i, c := range cols {
		spec.Specs[i] = c.text()
	}
	same := func(x CompositeIndex) bool { return slices.Equal(x.Specs, spec.Specs) }
	if !slices.ContainsFunc(u.UtilizedComposite, same) {
		u.UtilizedComposite = append(u.UtilizedComposite, spec)
	}
}
