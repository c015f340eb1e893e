package geo

import "github.com/golang/geo/s1"

// Region is the places within a distance of a shape, on the earth or in a plane: what a condition asks an index for.
type Region struct {
	round *Geometry
	flat  *Flat
	dist  float64
}

// leastRadius is the least length in metres of one radian of the ellipsoid's surface, in any direction: that along the
// meridian at the equator. A shorter way on the ellipsoid is never a longer one on the sphere.
const leastRadius = semiMajor * (1 - flattening) * (1 - flattening)

// Near is the places at most metres from g; those at no distance are what meets g.
func Near(g *Geometry, metres float64) *Region { return &Region{round: g, dist: metres} }

// NearFlat is the places at most dist from f.
func NearFlat(f *Flat, dist float64) *Region { return &Region{flat: f, dist: dist} }

// Planar reports whether the region lies in a plane.
func (r *Region) Planar() bool { return r.flat != nil }

// regionWork bounds what covering a region costs: a third of a second. Beyond it the cover is coarser.
const regionWork = 3_000_000

// Cells returns at most MaxRegionCells that cover the region and some room around it: more than rounding, and more than
// what the functions take for touching. The box is that of a plane's index; on the earth it isn't looked at.
func (r *Region) Cells(b Box) []Cell {
	w := &Work{regionWork}
	if r.flat == nil {
		return r.round.cells(s1.Angle(max(0, r.dist)/leastRadius*(1+1e-6)+1e-9), MaxRegionCells, w)
	}
	d := max(0, r.dist)*(1+1e-9) + 10*r.flat.slack(b)
	if !(d <= maxFlat) {
		d = maxFlat * 16 // everything
	}
	return r.flat.cells(b, d, MaxRegionCells, w)
}
