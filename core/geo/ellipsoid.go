package geo

import (
	"math"

	"github.com/golang/geo/s2"
)

// The WGS 84 ellipsoid, in metres.
const (
	semiMajor  = 6378137.0
	flattening = 1 / 298.257223563
	semiMinor  = semiMajor * (1 - flattening)
	meanRadius = (2*semiMajor + semiMinor) / 3
)

// metres returns the length in metres of the geodesic between two places, by Vincenty's inverse formula. Near the
// antipodes, where the formula doesn't converge, it returns the length on the sphere.
func metres(p, q s2.LatLng) float64 {
	u1, u2 := math.Atan((1-flattening)*math.Tan(p.Lat.Radians())), math.Atan((1-flattening)*math.Tan(q.Lat.Radians()))
	s1, c1 := math.Sincos(u1)
	sin2, c2 := math.Sincos(u2)
	l := q.Lng.Radians() - p.Lng.Radians()
	lambda := l
	for range 100 {
		sl, cl := math.Sincos(lambda)
		sinS := math.Hypot(c2*sl, c1*sin2-s1*c2*cl)
		if sinS == 0 {
			return 0
		}
		cosS := s1*sin2 + c1*c2*cl
		sigma := math.Atan2(sinS, cosS)
		sinA := c1 * c2 * sl / sinS
		cosA2 := 1 - sinA*sinA
		mid := 0.0
		if cosA2 > 0 {
			mid = cosS - 2*s1*sin2/cosA2
		}
		k := flattening / 16 * cosA2 * (4 + flattening*(4-3*cosA2))
		next := l + (1-k)*flattening*sinA*(sigma+k*sinS*(mid+k*cosS*(2*mid*mid-1)))
		if math.Abs(next-lambda) > 1e-13 {
			lambda = next
			continue
		}
		w := cosA2 * (semiMajor*semiMajor - semiMinor*semiMinor) / (semiMinor * semiMinor)
		a := 1 + w/16384*(4096+w*(-768+w*(320-175*w)))
		b := w / 1024 * (256 + w*(-128+w*(74-47*w)))
		delta := b * sinS * (mid + b/4*(cosS*(2*mid*mid-1)-b/6*mid*(4*sinS*sinS-3)*(4*mid*mid-3)))
		return semiMinor * a * (sigma - delta)
	}
	return meanRadius * p.Distance(q).Radians()
}

// Area returns the area in square metres; points and lines have area 0. It is the area on the sphere with the
// ellipsoid's area, after latitudes are moved to authalic latitudes, which keeps areas equal.
func (g *Geometry) Area() float64 {
	sum := 0.0
	for _, p := range g.polys {
		for i, ring := range p.rings {
			pts := make([]s2.Point, len(ring))
			for j, ll := range ring {
				pts[j] = s2.PointFromLatLng(
					s2.LatLngFromDegrees(authalic(ll.Lat.Radians())*180/math.Pi, ll.Lng.Degrees()))
			}
			loop := s2.LoopFromPoints(pts)
			if i > 0 {
				loop.Normalize()
				sum -= loop.Area()
			} else {
				sum += loop.Area()
			}
		}
	}
	return sum * authalicRadius2
}

// The eccentricity of the ellipsoid, the square of the radius of the sphere of equal area, and the authalic scale at
// the pole.
var (
	eccentricity    = math.Sqrt(flattening * (2 - flattening))
	atPole          = authalicQ(1)
	authalicRadius2 = semiMajor * semiMajor * atPole / 2
)

func authalicQ(sin float64) float64 {
	e := eccentricity
	return (1 - e*e) * (sin/(1-e*e*sin*sin) + math.Atanh(e*sin)/e)
}

// authalic returns the authalic latitude of a latitude on the ellipsoid.
func authalic(lat float64) float64 {
	return math.Asin(max(-1, min(1, authalicQ(math.Sin(lat))/atPole)))
}
