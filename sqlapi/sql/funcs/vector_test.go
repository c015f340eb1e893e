package funcs

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
)

// TestVectorDistance: for numbers of all kinds, arguments in any order, prepared or not, the distance is that of a
// plain loop.
func TestVectorDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int, bad bool) (v value.Value, x []float64) {
		var b doc.Builder
		b.BeginObject()
		b.BeginArrayField("v")
		for i := range n {
			f := r.NormFloat64()
			switch r.IntN(6) {
			case 0:
				f = float64(r.IntN(100))
				b.Elem(value.Int32Of(int32(f)))
			case 1:
				f = float64(r.IntN(1 << 40))
				b.Elem(value.Int64Of(int64(f)))
			default:
				b.Elem(value.DoubleOf(f))
			}
			if bad && i == n/2 {
				b.Elem(value.StringOf("x"))
			}
			x = append(x, f)
		}
		b.End()
		b.End()
		return doc.Get(append(doc.Doc(nil), b.Doc()...), "v"), x
	}
	fn := Lookup("VectorDistance")
	opts := map[string]value.Value{}
	for _, kind := range []string{"Cosine", "euclidean", "dotproduct", "manhattan"} {
		opts[kind], _ = doc.ValueFromJSON([]byte(`{"distanceFunction":"` + kind + `"}`))
	}
	unknown := [4]bool{}
	ready := fn.Prepare(make([]value.Value, 4), unknown[:])
	c := &Context{}
	for i := range 500 {
		n := r.IntN(40)
		a, x := random(n, i%17 == 0)
		b, y := random(n+r.IntN(6)/5, false)
		for kind, o := range opts {
			want := math.NaN()
			if len(x) == len(y) && !(i%17 == 0 && n > 0) {
				var dot, xx, yy, dd float64
				for j := range x {
					dot, xx, yy, dd = dot+x[j]*y[j], xx+x[j]*x[j], yy+y[j]*y[j], dd+(x[j]-y[j])*(x[j]-y[j])
				}
				want = map[string]float64{"Cosine": dot / (math.Sqrt(xx) * math.Sqrt(yy)), "euclidean": math.Sqrt(dd),
					"dotproduct": dot, "manhattan": math.NaN()}[kind]
			}
			args := []value.Value{a, b, value.BoolOf(true), o}
			left := fn.Prepare([]value.Value{a, {}, {}, o}, []bool{true, false, false, true})
			right := fn.Prepare([]value.Value{{}, b, {}, o}, []bool{false, true, false, true})
			for name, eval := range map[string]func(*Context, []value.Value) value.Value{
				"plain": fn.Eval, "prepared": ready, "again": ready, "left": left, "right": right} {
				got := eval(c, args)
				if !got.IsNumber() != math.IsNaN(want) || got.IsNumber() &&
					math.Abs(got.Float()-want) > 1e-9*math.Abs(want) {
					t.Fatalf("%s %s of %d and %d: %v, wanted %v", name, kind, len(x), len(y), got, want)
				}
			}
		}
	}
}
