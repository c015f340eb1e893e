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

// singles finds the paths of the filter and of ORDER BY that the policy doesn't index.
func (a *adviser) singles(q *exec.Query) {
	missing := func(p access.Path) {
		if len(p.Segs) == 0 || p.Segs[0] == "" || p.Segs[0][0] == 0 || a.c.Indexes(p) {
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
	if a.c.IndexesPlaces(p.Path, planar) || !a.use.single(&a.use.Potential, p.Path, a.pl) {
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
	var want []column
	switch {
	case len(order) > 1:
		if want = order; len(fixed) > 0 && a.has(append(fixed, order...)) {
			return
		}
	case len(order) == 1 && len(fixed) > 0 && a.use.Sorted:
		want = append(fixed, order...)
	case len(order) == 0 && len(fixed)+len(ranged) > 1 && len(fixed) > 0 && a.use.Access != access.Points.String():
		want = append(fixed, ranged[:min(1, len(ranged))]...)
	}
	if len(want) < 2 || len(want) > core.MaxCompositePaths || a.has(want) {
		return
	}
	spec := CompositeIndex{}
	text := make([]string, len(want))
	for i, w := range want {
		dir := " ASC"
		if w.desc {
			dir = " DESC"
		}
		spec.Specs = append(spec.Specs, w.path+dir)
		text[i] = w.path + strings.ToLower(dir)
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

// has reports whether the policy has a composite index that begins with these columns, in the same directions or all in
// the opposite directions.
func (a *adviser) has(want []column) bool {
	return slices.ContainsFunc(a.policy.Composite, func(fields []struct{ Path, Order string }) bool {
		if len(fields) < len(want) {
			return false
		}
		for i, w := range want {
			segs, err := core.ParsePath(strings.TrimSuffix(fields[i].Path, "/?"))
			down := strings.EqualFold(fields[i].Order, "descending")
			first := strings.EqualFold(fields[0].Order, "descending")
			if err != nil || pathText(segs) != w.path || (down == w.desc) != (first == want[0].desc) {
				return false
			}
		}
		return true
	})
}
