package geo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/golang/geo/s2"
)

// TestLeastRadius: the distance of two places in metres is never less than their angle times leastRadius, which the
// cells of a region rely on, and never more than their angle times the largest radius.
func TestLeastRadius(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	lat := func() float64 {
		switch r.IntN(4) {
		case 0:
			return 0
		case 1:
			return r.Float64()*1e-3 - 5e-4
		}
		return math.Asin(r.Float64()*2-1) * 180 / math.Pi
	}
	for i := range 60_000 {
		p := s2.LatLngFromDegrees(lat(), r.Float64()*360-180)
		q := s2.LatLngFromDegrees(lat(), r.Float64()*360-180)
		switch i % 4 {
		case 0: // nearly antipodal
			size := math.Pow(10, -r.Float64()*8)
			q = s2.LatLngFromDegrees(max(-90, min(90, -p.Lat.Degrees()+size*(r.Float64()-0.5))), p.Lng.Degrees()+180+
				size*(r.Float64()-0.5))
		case 1: // near
			size := math.Pow(10, -r.Float64()*8)
			q = s2.LatLngFromDegrees(max(-90, min(90, p.Lat.Degrees()+size*(r.Float64()-0.5))), p.Lng.Degrees()+
				size*(r.Float64()-0.5))
		}
		a, b := s2.PointFromLatLng(p), s2.PointFromLatLng(q)
		angle, m := a.Distance(b).Radians(), metres(s2.LatLngFromPoint(a), s2.LatLngFromPoint(b))
		if m < angle*leastRadius*(1-1e-6)-1e-3 || m > angle*6399594*(1+1e-6)+1e-3 {
			t.Fatalf("%v and %v: %v metres at %v radians, %v a radian", p, q, m, angle, m/angle)
		}
	}
}
