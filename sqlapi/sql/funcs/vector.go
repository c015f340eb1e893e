package funcs

import (
	"math"
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/core/vector"
)

// VectorDistance computes the exact distance of two vectors. The options name the distance function; the default is
// cosine. A vector that is the same for all items is decoded once. The vector of an item is read directly from the
// bytes of its document.
//
// Example: VectorDistance([1, 0], [0, 1], false, {"distanceFunction": "euclidean"}) is the square root of 2.
//
// _VectorScore is greater for nearer vectors: a distance is negated. Query plans give it to clients.
func init() {
	plain := vectorDistance()
	score := *plain
	score.Name = "_VectorScore"
	score.Eval = func(c *Context, a []value.Value) value.Value { return nearness(plain.Eval(c, a), a) }
	score.Prepare = func(consts []value.Value, isConst []bool) func(*Context, []value.Value) value.Value {
		eval := plain.Prepare(consts, isConst)
		return func(c *Context, a []value.Value) value.Value { return nearness(eval(c, a), a) }
	}
	register(plain, &score)
}

// nearness negates a distance, and leaves a similarity as it is.
func nearness(v value.Value, a []value.Value) value.Value {
	if v.IsNumber() && distanceKind(a) == "euclidean" {
		return Num(-v.Float())
	}
	return v
}

func vectorDistance() *Func {
	return &Func{Name: "VectorDistance", Types: "aa?bo", Eval: func(_ *Context, a []value.Value) value.Value {
		q, _ := vector.Read(a[1])
		return distance(q, a[0], distanceKind(a))
	}, Prepare: func(consts []value.Value, isConst []bool) func(*Context, []value.Value) value.Value {
		site := new([2]byte)
		var ready [2]*vector.Query
		var known [2]bool
		for i := range ready {
			if known[i] = isConst[i] && consts[i].Kind() == value.Array; known[i] {
				ready[i], _ = vector.Read(consts[i])
			}
		}
		return func(c *Context, a []value.Value) value.Value {
			for i := range ready {
				if known[i] {
					return distance(ready[i], a[1-i], distanceKind(a))
				}
			}
			kind := distanceKind(a)
			for i := range site {
				if q, ok := recall[*vector.Query](c, &site[i], a[i]); ok {
					return distance(q, a[1-i], kind)
				}
			}
			q, _ := vector.Read(a[0])
			keep(c, &site[0], a[0], q)
			q, _ = vector.Read(a[1])
			return distance(keep(c, &site[1], a[1], q), a[0], kind)
		}
	}}
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

// distance returns the distance or similarity of two vectors. It returns Undefined unless both are arrays of numbers of
// the same length. q is nil if the first one isn't.
func distance(q *vector.Query, v value.Value, kind string) value.Value {
	metric := vector.Cosine
	switch kind {
	case "dotproduct":
		metric = vector.Dot
	case "euclidean":
		metric = vector.Squared
	case "":
		return value.Value{}
	}
	if q == nil {
		return value.Value{}
	}
	f, ok := q.Compare(v, metric)
	if !ok {
		return value.Value{}
	}
	if metric == vector.Squared {
		f = math.Sqrt(f)
	}
	return Num(f)
}
