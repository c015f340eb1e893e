package funcs

import (
	"math"
	"strings"

	"github.com/orrerydb/orrery/core/bson"
	"github.com/orrerydb/orrery/core/value"
)

// VectorDistance computes the exact distance of two vectors. The options name the distance function; the default is
// cosine. A vector that is the same for all items is decoded once. The vector of an item is read directly from the
// bytes of its document.
//
// Example: VectorDistance([1, 0], [0, 1], false, {"distanceFunction": "euclidean"}) is the square root of 2.
func init() {
	register(&Func{Name: "VectorDistance", Types: "aa?bo", Eval: func(_ *Context, a []value.Value) value.Value {
		v := readVector(a[1])
		return v.from(a[0], distanceKind(a))
	}, Prepare: func(consts []value.Value, isConst []bool) func(*Context, []value.Value) value.Value {
		site := new([2]byte)
		var ready [2]*vector
		for i := range ready {
			if isConst[i] && consts[i].Kind() == value.Array {
				ready[i] = readVector(consts[i])
			}
		}
		return func(c *Context, a []value.Value) value.Value {
			for i := range ready {
				if ready[i] != nil {
					return ready[i].from(a[1-i], distanceKind(a))
				}
			}
			kind := distanceKind(a)
			for i := range site {
				if v, ok := recall[*vector](c, &site[i], a[i]); ok {
					return v.from(a[1-i], kind)
				}
			}
			keep(c, &site[0], a[0], readVector(a[0]))
			return keep(c, &site[1], a[1], readVector(a[1])).from(a[0], kind)
		}
	}})
}

// distanceKind returns the name of the distance function in a call's options, in lower case. It is cosine when the
// options don't name one, and "" when the name is unknown.
func distanceKind(a []value.Value) string {
	if len(a) < 4 {
		return "cosine"
	}
	f := a[3].Get("distanceFunction")
	if f.Kind() != value.String {
		return "cosine"
	}
	for _, known := range [...]string{"cosine", "dotproduct", "euclidean"} {
		if strings.EqualFold(string(f.Bytes()), known) {
			return known
		}
	}
	return ""
}

// vector is an argument of VectorDistance: a decoded array of numbers, or another value.
type vector struct {
	x  []float64
	ok bool
}

func readVector(v value.Value) *vector {
	out := &vector{ok: true}
	for b := arrayBytes(v); out.ok && len(b) > 0; {
		var f float64
		f, b, out.ok = number(b)
		out.x = append(out.x, f)
	}
	return out
}

// from returns the distance or similarity of w and v. It returns Undefined unless both are arrays of numbers of the
// same length.
func (v *vector) from(w value.Value, kind string) value.Value {
	if !v.ok {
		return value.Value{}
	}
	var dot, vv, ww, dd float64
	b := arrayBytes(w)
	for _, p := range v.x {
		if len(b) == 0 {
			return value.Value{}
		}
		q, rest, ok := bson.CutDouble(b)
		if !ok {
			if q, rest, ok = number(b); !ok {
				return value.Value{}
			}
		}
		b = rest
		dot, vv, ww, dd = dot+p*q, vv+p*p, ww+q*q, dd+(p-q)*(p-q)
	}
	if len(b) > 0 {
		return value.Value{}
	}
	switch kind {
	case "cosine":
		return Num(dot / (math.Sqrt(vv) * math.Sqrt(ww)))
	case "dotproduct":
		return Num(dot)
	case "euclidean":
		return Num(math.Sqrt(dd))
	}
	return value.Value{}
}

// arrayBytes returns the elements of an array in their stored form.
func arrayBytes(v value.Value) []byte {
	b := v.Bytes()
	if v.Kind() != value.Array || len(b) < 5 {
		return nil
	}
	return b[4 : len(b)-1]
}

// number reads the first of an array's stored elements. ok is false when it is no number.
func number(b []byte) (f float64, rest []byte, ok bool) {
	if f, rest, ok = bson.CutDouble(b); ok { // the usual case
		return f, rest, true
	}
	_, v, rest, ok := value.ReadElement(b)
	return v.Float(), rest, ok && v.IsNumber()
}
