package access

import (
	"github.com/orrerydb/orrery/core/geo"
	"github.com/orrerydb/orrery/core/index"
	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/value"
)

// Spatial is satisfied when the value at path is a geometry that meets the region. The region says whether this is on
// the earth or in a plane. Array elements along the path count, whatever the path says, because the index doesn't
// distinguish them.
func Spatial(path Path, r *geo.Region) *Pred { return &Pred{Op: OpSpatial, Path: path, Region: r} }

// Resolve returns p for an index under a policy: spatial predicates get the cells of the policy's spatial indexes. p
// itself isn't changed. An index can't answer a spatial predicate that isn't resolved.
func Resolve(p *Pred, pol *index.Policy) *Pred {
	if !hasSpatial(p) {
		return p
	}
	out := *p
	if p.Op == OpSpatial {
		out.places, out.pathID = pol.Spatial(p.Path.Segs, p.Region.Planar(), p.Region.Pairs())
		out.ivs = nil
		return &out
	}
	out.Kids = make([]*Pred, len(p.Kids))
	for i, k := range p.Kids {
		out.Kids[i] = Resolve(k, pol)
	}
	return &out
}

func hasSpatial(p *Pred) bool {
	if p == nil {
		return false
	}
	for _, k := range p.Kids {
		if hasSpatial(k) {
			return true
		}
	}
	return p.Op == OpSpatial
}

// Placed reports whether a spatial index can answer the leaf of a resolved predicate.
func (p *Pred) Placed() bool { return p.places != nil }

// PathID returns the id of the path whose index entries answer the leaf.
func (p *Pred) PathID(pol *index.Policy) uint64 {
	if p.Op == OpSpatial {
		return p.pathID
	}
	if p.Comp != nil {
		return p.Comp.Index.ID
	}
	return pol.PathID(p.Path.Segs)
}

// kind distinguishes spatial indexes from others in explained plans.
func (p *Pred) kind() string {
	if p.Op == OpSpatial {
		return " (spatial)"
	}
	return ""
}

// placeIntervals returns the intervals of a resolved spatial leaf. They are computed at the first call, because many
// queries use a better leaf. ok is false when no index has the path.
func (p *Pred) placeIntervals() (ivs []Interval, ok bool) {
	if p.places == nil {
		return nil, false
	}
	if p.ivs == nil {
		p.ivs = spatialIntervals(p.Region.Cells(p.places.Box))
	}
	return p.ivs, true
}

// spatialIntervals returns the entries of shapes that may meet a region with these cells: entries inside one of the
// cells, and entries of larger cells that contain one.
func spatialIntervals(cells []geo.Cell) []Interval {
	ivs := make([]Interval, 0, 2*len(cells)+maxAround)
	for i := 0; i < len(cells); i++ {
		lo, hi := cells[i].Range()
		for i+1 < len(cells) { // neighbours are one range: at most the number of a cell around them lies between two
			next, end := cells[i+1].Range()
			if next-hi > 2 {
				break
			}
			i, hi = i+1, end
		}
		for _, class := range [...]byte{value.ClassLeafCell, value.ClassCell} {
			ivs =
				append(
					ivs, Interval{Lo: keys.AppendCell(nil, class, uint64(lo)),
						Hi: keys.After(keys.AppendCell(nil, class, uint64(hi)))})
		}
	}
	for _, c := range geo.Around(cells) {
		e := keys.AppendCell(nil, value.ClassCell, uint64(c))
		ivs = append(ivs, Interval{Lo: e, Hi: keys.After(e)})
	}
	return normalise(append(ivs, classInterval(value.ClassAny)))
}

// maxAround is the usual upper limit of the number of cells that contain a cell of the region.
const maxAround = 48
