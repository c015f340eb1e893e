package geo

import "github.com/golang/geo/s1"

// Region is the set of places within a distance of a shape, on the earth or in a plane. It is the spatial condition for
// which an index is read.
type Region struct {
	round *Geometry
	flat  *Flat
	dist  float64
	pairs bool
}

// leastRadius is the smallest length in metres of one radian on the ellipsoid's surface, over all places and
// directions: the length along the meridian at the equator. So places that are close on the ellipsoid are close on the
// sphere.
const leastRadius = semiMajor * (1 - flattening) * (1 - flattening)

// Near returns the region of places at most metres from g. With metres = 0 it contains the places that meet g.
func Near(g *Geometry, metres float64) *Region { return &Region{round: g, dist: metres} }

// NearFlat returns the region of places at most dist from f.
func NearFlat(f *Flat, dist float64) *Region { return &Region{flat: f, dist: dist} }

// Planar reports whether the region lies in a plane.
func (r *Region) Planar() bool { return r.flat != nil }

// Pairs reports whether the region is for an index over shapes (Shape).
func (r *Region) Pairs() bool { return r.pairs }

// regionWork limits the cost of covering a region to about a third of a second. Beyond it the cover is coarser.
const regionWork = 3_000_000

// Cells returns at most maxRegionCells cells that cover the region and a margin. The margin is larger than rounding
// errors and than the distance that counts as touching. b is the box of a plane's index; it isn't used on the earth.
func (r *Region) Cells(b Box) []Cell {
	w := &Work{regionWork}
	if r.flat == nil {
		return r.round.cells(s1.Angle(max(0, r.dist)/leastRadius*(1+1e-6)+1e-9), maxRegionCells, w)
	}
	d := max(0, r.dist)*(1+1e-9) + 10*r.flat.slack(b)
	if !(d <= maxFlat) {
		d = maxFlat * 16 // everything
	}
	return r.flat.cells(b, d, maxRegionCells, w)
}
