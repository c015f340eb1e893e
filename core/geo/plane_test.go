package geo

import (
	"math"
	"math/rand/v2"
	"testing"
)

// samples returns places of a shape: its positions, places on its lines (also those nearest to the positions of another
// shape), and places inside its polygons.
func samples(r *rand.Rand, f, other *Flat) (out []pos) {
	for _, s := range f.segs {
		for _, o := range other.segs {
			out = append(out, s.point(s.along(o.a)), s.point(s.along(o.b)))
		}
		for range 6 {
			out = append(out, s.point(r.Float64()))
		}
		out = append(out, s.a, s.b)
	}
	for range 200 {
		p := pos{f.box.x0 + r.Float64()*(f.box.x1-f.box.x0), f.box.y0 + r.Float64()*(f.box.y1-f.box.y0)}
		if f.holds(p) {
			out = append(out, p)
		}
	}
	return out
}

// TestFlatAgainstSamples: the functions on two shapes in the plane agree with the results for single places of them.
func TestFlatAgainstSamples(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	within, apart, meets := 0, 0, 0
	for range 3000 {
		x, y := r.Float64()*20-10, r.Float64()*20-10
		a, _ := ParseFlat(valueOf(t, around(r, x, y, math.Pow(10, r.Float64()*2-1), false)))
		b, _ :=
			ParseFlat(valueOf(t, around(r, x+r.Float64()*4-2, y+r.Float64()*4-2, math.Pow(10, r.Float64()*2-1), false)))
		if a == nil || b == nil {
			continue
		}
		d := a.Distance(b)
		if e := b.Distance(a); math.Abs(d-e) > 1e-12 || a.Intersects(b) != (d == 0) {
			t.Fatalf("distances %v and %v", d, e)
		}
		in, least := true, math.Inf(1)
		for _, p := range samples(r, a, b) {
			q := flatPoint(p)
			e := q.Distance(b)
			least = min(least, e)
			in = in && e <= 1e-9
			if q.Within(b) != (e == 0) {
				t.Fatalf("a place %v away is within: %v", e, q.Within(b))
			}
		}
		if d > least+1e-12 {
			t.Fatalf("distance %v, but a place is %v away", d, least)
		}
		switch {
		case d > 0:
			apart++
		default:
			meets++
		}
		if a.Within(b) {
			if within++; !in || d > 0 || a.Area() > b.Area()*(1+1e-9) {
				t.Fatalf("within, but a place is outside, at distance %v", d)
			}
		}
		if d > 0 && least > d+1e-9 {
			t.Fatalf("distance %v, the nearest place of many is %v away", d, least)
		}
	}
	if within < 100 || apart < 300 || meets < 300 {
		t.Errorf("%d within, %d apart, %d meet", within, apart, meets)
	}
}
