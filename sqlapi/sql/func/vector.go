package funcs

import (
	"math"
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

// VectorDistance is computed exactly; the options name the distance function (cosine when absent).
func init() {
	register(&Func{Name: "VectorDistance", Types: "aa?bo", Eval: func(_ *Context, a []value.Value) value.Value {
		kind := "cosine"
		if len(a) == 4 {
			if f := a[3].Get("distanceFunction"); f.Kind() == value.String {
				kind = strings.ToLower(f.Str())
			}
		}
		return vectorDistance(a[0], a[1], kind)
	}})
}

func vectorDistance(x, y value.Value, kind string) value.Value {
	var dot, xx, yy, dd float64
	i, j := x.Iter(), y.Iter()
	for {
		a, b := i.Next(), j.Next()
		if a != b {
			return value.Value{}
		}
		if !a {
			break
		}
		if !i.Value().IsNumber() || !j.Value().IsNumber() {
			return value.Value{}
		}
		p, q := i.Value().Float(), j.Value().Float()
		dot, xx, yy, dd = dot+p*q, xx+p*p, yy+q*q, dd+(p-q)*(p-q)
	}
	switch kind {
	case "cosine":
		return Num(dot / (math.Sqrt(xx) * math.Sqrt(yy)))
	case "dotproduct":
		return Num(dot)
	case "euclidean":
		return Num(math.Sqrt(dd))
	}
	return value.Value{}
}
