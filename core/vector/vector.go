// Package vector computes distances and similarities of vectors. A stored vector is read from its bytes: an array of
// numbers, or a binary value of subtype 9, which has numbers of one size without names between them. Nothing of it is
// decoded into memory that outlives the call.
//
// Example: for the query [1, 0] and the stored vector [0, 1] the cosine is 0, the dot product 0, and the square of the
// Euclidean distance 2.
package vector

import (
	"math"

	"github.com/orrerydb/orrery/core/value"
)

// Metric is what is computed of two vectors.
type Metric uint8

// The metrics. Each bit of packed bits is a number, so Squared is the number of bits in which two vectors differ.
const (
	Cosine  Metric = iota
	Dot            // the dot product
	Squared        // the square of the Euclidean distance
)

// String returns the name of the metric as an order.
func (m Metric) String() string {
	switch m {
	case Dot:
		return "dotProduct"
	case Squared:
		return "euclidean"
	}
	return "cosine"
}

// Kind is the representation of a vector.
type Kind uint8

// The kinds. An array of numbers has the kind Floats, too.
const (
	Floats Kind = iota
	Bytes       // signed integers of 8 bits
	Bits        // packed bits
)

// Query is a vector with which stored ones are compared. It doesn't change, so several goroutines may use one.
type Query struct {
	kind Kind
	x    []float64
	norm float64 // the square of the length
}

// Read reads a vector: an array of numbers, or a binary vector. ok is false for everything else, also for an array with
// an element that is no number, and for a malformed binary vector. An empty array is a vector without dimensions.
func Read(v value.Value) (q *Query, ok bool) {
	s, ok := storedOf(v)
	if !ok {
		return nil, false
	}
	q = &Query{kind: s.kind}
	var buf [chunk]float64
	for {
		n, ok := s.next(buf[:])
		if !ok {
			return nil, false
		}
		if n == 0 {
			break
		}
		q.x = append(q.x, buf[:n]...)
	}
	for _, f := range q.x {
		q.norm += f * f
	}
	return q, true
}

// Dims returns the number of dimensions.
func (q *Query) Dims() int { return len(q.x) }

// Kind returns the representation.
func (q *Query) Kind() Kind { return q.kind }

// Zero reports whether all numbers are 0: then there is no cosine.
func (q *Query) Zero() bool { return q.norm == 0 }

// Finite reports whether all numbers are finite. If not, at is the place of the first one that isn't.
func (q *Query) Finite() (at int, ok bool) {
	for i, f := range q.x {
		if math.IsNaN(f - f) {
			return i, false
		}
	}
	return 0, true
}

// Compare returns the metric of the query and a stored vector. ok is false unless that is a vector with as many
// dimensions. The kinds may differ.
//
// The numbers are read in pieces of a few hundred bytes, so that one loop reads them and a plain one computes.
func (q *Query) Compare(v value.Value, m Metric) (f float64, ok bool) {
	s, ok := storedOf(v)
	if !ok || s.kind != Floats && s.dims != len(q.x) {
		return 0, false
	}
	var buf [chunk]float64
	var sum, norm float64
	x := q.x
	for {
		n, ok := s.next(buf[:])
		if !ok || n > len(x) {
			return 0, false
		}
		if n == 0 {
			break
		}
		switch m {
		case Cosine:
			d, l := dotNorm(x[:n], buf[:n])
			sum, norm = sum+d, norm+l
		case Dot:
			sum += dot(x[:n], buf[:n])
		case Squared:
			sum += squared(x[:n], buf[:n])
		}
		x = x[n:]
	}
	if len(x) > 0 {
		return 0, false
	}
	if m == Cosine {
		sum /= math.Sqrt(q.norm) * math.Sqrt(norm)
	}
	return sum, true
}

// The loops have four sums each, because an addition has to wait for the one before it.

func dot(x, y []float64) float64 {
	var a, b, c, d float64
	for len(x) >= 4 && len(y) >= 4 {
		a += x[0] * y[0]
		b += x[1] * y[1]
		c += x[2] * y[2]
		d += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i := range min(len(x), len(y)) {
		a += x[i] * y[i]
	}
	return a + b + (c + d)
}

// dotNorm returns the dot product and the square of y's length.
func dotNorm(x, y []float64) (sum, norm float64) {
	var a, b, m, n float64
	for len(x) >= 2 && len(y) >= 2 {
		a += x[0] * y[0]
		m += y[0] * y[0]
		b += x[1] * y[1]
		n += y[1] * y[1]
		x, y = x[2:], y[2:]
	}
	for i := range min(len(x), len(y)) {
		a += x[i] * y[i]
		m += y[i] * y[i]
	}
	return a + b, m + n
}

func squared(x, y []float64) float64 {
	var a, b, c, d float64
	for len(x) >= 4 && len(y) >= 4 {
		p, q, r, s := x[0]-y[0], x[1]-y[1], x[2]-y[2], x[3]-y[3]
		a += p * p
		b += q * q
		c += r * r
		d += s * s
		x, y = x[4:], y[4:]
	}
	for i := range min(len(x), len(y)) {
		p := x[i] - y[i]
		a += p * p
	}
	return a + b + (c + d)
}
