package vector

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// array returns an array of numbers. With names the names of its elements are these, and not their places.
func array(x []float64, names func(i int) string) value.Value {
	at, b := bson.Begin(nil)
	for i, f := range x {
		name := strconv.Itoa(i)
		if names != nil {
			name = names(i)
		}
		switch {
		case f == math.Trunc(f) && i%3 == 1:
			b = bson.AppendInt32(b, name, int32(f))
		case f == math.Trunc(f) && i%3 == 2:
			b = bson.AppendInt64(b, name, int64(f))
		default:
			b = value.AppendElement(b, name, value.DoubleOf(f))
		}
	}
	return value.ArrayOf(bson.End(b, at))
}

// floats returns a binary vector of 32-bit numbers.
func floats(x []float64) value.Value {
	b := []byte{dtypeFloat32, 0}
	for _, f := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(f)))
	}
	return value.BinaryOf(SubtypeVector, b)
}

// bytesOf returns a binary vector of whole numbers of 8 bits.
func bytesOf(x []float64) value.Value {
	b := []byte{dtypeInt8, 0}
	for _, f := range x {
		b = append(b, byte(int8(f)))
	}
	return value.BinaryOf(SubtypeVector, b)
}

// bitsOf returns a binary vector of bits.
func bitsOf(x []float64) value.Value {
	b := make([]byte, 2+(len(x)+7)/8)
	b[0], b[1] = dtypePacked, byte(8*(len(b)-2)-len(x))
	for i, f := range x {
		if f != 0 {
			b[2+i/8] |= 0x80 >> (i % 8)
		}
	}
	return value.BinaryOf(SubtypeVector, b)
}

// TestCompare: of vectors of each representation and of many lengths, the metrics are those of a plain loop.
func TestCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	forms := map[string]func([]float64) value.Value{
		"array": func(x []float64) value.Value { return array(x, nil) }, "float32": floats, "int8": bytesOf,
		"bits": bitsOf,
		// names that aren't the places, some of the usual length and some not; a 0 in the number behind a short name is
		// no end of a name
		"odd names": func(x []float64) value.Value {
			return array(x, func(i int) string { return "abcdef"[:i%5] })
		},
		"constant names": func(x []float64) value.Value { return array(x, func(int) string { return "1" }) },
	}
	for n := 0; n < 1300; n += 1 + n/9 {
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = float64(r.IntN(2)), float64(r.IntN(2)) // numbers that all representations have
		}
		var dot, xx, yy, dd float64
		for i := range x {
			dot, xx, yy, dd = dot+x[i]*y[i], xx+x[i]*x[i], yy+y[i]*y[i], dd+(x[i]-y[i])*(x[i]-y[i])
		}
		for name, form := range forms {
			q, ok := Read(form(x))
			if !ok || q.Dims() != n || q.Zero() != (xx == 0) {
				t.Fatalf("%s of %d: %v, %v", name, n, q, ok)
			}
			for other, of := range forms {
				for m, want := range map[Metric]float64{Dot: dot, Squared: dd, Cosine: dot / math.Sqrt(xx*yy)} {
					got, ok := q.Compare(of(y), m)
					if !ok || math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
						t.Fatalf("%s and %s of %d, %d: %v, %v; wanted %v", name, other, n, m, got, ok, want)
					}
				}
				if _, ok := q.Compare(of(append([]float64{1}, y...)), Dot); ok {
					t.Fatalf("%s of %d and %s of %d are compared", name, n, other, n+1)
				}
			}
		}
	}
}

// TestReal: doubles and whole numbers of all kinds have the metrics of a plain loop.
func TestReal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 300 {
		x, y := make([]float64, n), make([]float64, n)
		var dot, dd float64
		for i := range x {
			x[i], y[i] = r.NormFloat64(), r.NormFloat64()
			if r.IntN(3) == 0 {
				y[i] = float64(r.IntN(2000) - 1000)
			}
			dot, dd = dot+x[i]*y[i], dd+(x[i]-y[i])*(x[i]-y[i])
		}
		q, _ := Read(array(x, nil))
		for m, want := range map[Metric]float64{Dot: dot, Squared: dd} {
			if got, ok := q.Compare(array(y, nil), m); !ok || math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
				t.Fatalf("%d, %d: %v, %v; wanted %v", n, m, got, ok, want)
			}
		}
	}
}

// TestRefused: what is no vector isn't read and not compared.
func TestRefused(t *testing.T) {
	q, _ := Read(array([]float64{1, 2}, nil))
	mixed := func(last value.Value) value.Value {
		at, b := bson.Begin(nil)
		b = value.AppendElement(b, "0", value.DoubleOf(1))
		return value.ArrayOf(bson.End(value.AppendElement(b, "1", last), at))
	}
	for name, v := range map[string]value.Value{
		"undefined": {}, "null": value.NullValue(), "string": value.StringOf("ab"),
		"object":             value.ObjectOf(bson.Empty),
		"string in an array": mixed(value.StringOf("x")), "array in an array": mixed(array([]float64{1}, nil)),
		"other binary":     value.BinaryOf(0, []byte{dtypeInt8, 0, 1, 2}),
		"no head":          value.BinaryOf(SubtypeVector, []byte{dtypeInt8}),
		"unknown kind":     value.BinaryOf(SubtypeVector, []byte{0x33, 0, 1, 2}),
		"padded numbers":   value.BinaryOf(SubtypeVector, []byte{dtypeInt8, 1, 1, 2}),
		"half a number":    value.BinaryOf(SubtypeVector, []byte{dtypeFloat32, 0, 1, 2, 3, 4, 5, 6}),
		"too much padding": value.BinaryOf(SubtypeVector, []byte{dtypePacked, 8, 0xC0}),
		"padding alone":    value.BinaryOf(SubtypeVector, []byte{dtypePacked, 3}),
	} {
		if _, ok := Read(v); ok {
			t.Errorf("%s: read", name)
		}
		if _, ok := q.Compare(v, Dot); ok {
			t.Errorf("%s: compared", name)
		}
	}
}

// FuzzStored: no bytes of an array or a binary value make the reader fail or read past their end.
func FuzzStored(f *testing.F) {
	f.Add(true, array([]float64{1, 2.5, 3}, nil).Bytes())
	f.Add(false, []byte{dtypePacked, 3, 0xAB, 0xC0})
	f.Fuzz(func(t *testing.T, arr bool, b []byte) {
		v := value.BinaryOf(SubtypeVector, b)
		if arr {
			if bson.Validate(b, 0) != "" {
				return
			}
			v = value.ArrayOf(b)
		}
		q, ok := Read(v)
		if !ok {
			return
		}
		if got, ok := q.Compare(v, Squared); !ok || got != 0 && !math.IsNaN(got) {
			t.Fatalf("%x: differs from itself by %v, %v", b, got, ok)
		}
	})
}

// BenchmarkCompare compares vectors of 384 dimensions. "bare" is the loop over numbers in memory that it can't be
// faster than.
func BenchmarkCompare(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float64, 384), make([]float64, 384)
	for i := range x {
		x[i], y[i] = r.NormFloat64(), r.NormFloat64()
	}
	var keep float64
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			keep, _ = dotNorm(x, y)
		}
	})
	for _, f := range []struct {
		name string
		form func([]float64) value.Value
	}{{"array", func(x []float64) value.Value { return array(x, nil) }}, {"float32", floats}, {"int8", bytesOf}} {
		q, _ := Read(f.form(x))
		v := f.form(y)
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				keep, _ = q.Compare(v, Cosine)
			}
		})
	}
	_ = keep
}
