package run

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"strings"

	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Families of values in TinkerPop's order of types ("orderability").
const (
	famNull = iota
	famBool
	famNumber
	famDate
	famString
	famUUID
	famVertex
	famEdge
	famVertexProperty
	famProperty
	famPath
	famSet
	famList
	famMap
	famOther
)

//go:noinline // called from many places, see decision 41
func family(v any) int {
	switch v.(type) {
	case nil:
		return famNull
	case bool:
		return famBool
	case int8, int16, int32, int64, float32, float64, *big.Int, *gvalue.BigDecimal:
		return famNumber
	case gvalue.Date, gvalue.Timestamp, gvalue.OffsetDateTime, gvalue.ZonedDateTime, gvalue.Instant:
		return famDate
	case string, gvalue.Char:
		return famString
	case gvalue.UUID:
		return famUUID
	case *gvalue.Vertex:
		return famVertex
	case *gvalue.Edge:
		return famEdge
	case *gvalue.VertexProperty:
		return famVertexProperty
	case *gvalue.Property:
		return famProperty
	case *gvalue.Path:
		return famPath
	case *gvalue.Set:
		return famSet
	case []any, *gvalue.BulkSet:
		return famList
	case *gvalue.Map, *mapEntry:
		return famMap
	}
	return famOther
}

// compareAll is the total order of all values: by family, then by value. NaN is above all numbers.
func compareAll(a, b any) int {
	fa, fb := family(a), family(b)
	if fa != fb {
		return cmp.Compare(fa, fb)
	}
	switch fa {
	case famNull:
		return 0
	case famBool:
		return compareBool(a.(bool), b.(bool))
	case famNumber:
		return compareNumbers(a, b)
	case famDate:
		return gvalue.TimeOf(a).Compare(gvalue.TimeOf(b))
	case famString:
		return strings.Compare(text(a), text(b))
	case famUUID:
		x, y := a.(gvalue.UUID), b.(gvalue.UUID)
		return bytes.Compare(x[:], y[:])
	case famVertex, famEdge, famVertexProperty:
		return compareAll(elementID(a), elementID(b))
	case famProperty:
		x, y := a.(*gvalue.Property), b.(*gvalue.Property)
		if c := strings.Compare(x.Key, y.Key); c != 0 {
			return c
		}
		return compareAll(x.Value, y.Value)
	case famPath:
		return compareLists(a.(*gvalue.Path).Objects, b.(*gvalue.Path).Objects)
	case famSet:
		return compareLists(sorted(a.(*gvalue.Set).Items()), sorted(b.(*gvalue.Set).Items()))
	case famList:
		return compareLists(listOf(a), listOf(b))
	case famMap:
		return compareLists(mapPairs(a), mapPairs(b))
	}
	return strings.Compare(gvalue.Text(a), gvalue.Text(b))
}

// compareStored is compareAll for stored values.
func compareStored(a, b value.Value) int { return compareAll(graph.FromValue(a), graph.FromValue(b)) }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func compareLists(a, b []any) int {
	for i := range min(len(a), len(b)) {
		if c := compareAll(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func mapPairs(v any) []any {
	if e, ok := v.(*mapEntry); ok {
		return []any{[]any{e.k, e.v}}
	}
	var out []any
	for _, e := range v.(*gvalue.Map).Entries() {
		out = append(out, []any{e.Key, e.Value})
	}
	return sorted(out)
}

func text(v any) string {
	switch s := v.(type) {
	case string:
		return s
	case gvalue.Char:
		return string(rune(s))
	}
	return ""
}

// toFloat returns any number as a double.
func toFloat(v any) float64 {
	switch n := v.(type) {
	case float64:
		return n
	case float32:
		return float64(n)
	case *big.Int:
		f, _ := new(big.Float).SetInt(n).Float64()
		return f
	case *gvalue.BigDecimal:
		f, _ := ratOf(n).Float64()
		return f
	}
	i, _ := gvalue.Integer(v)
	return float64(i)
}

// ratOf returns the exact value of a finite number.
func ratOf(v any) *big.Rat {
	switch n := v.(type) {
	case *big.Int:
		return new(big.Rat).SetInt(n)
	case *gvalue.BigDecimal:
		r := new(big.Rat).SetInt(n.Unscaled)
		scale := min(max(n.Scale, -6200), 6200) // the range of decimal128
		p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil)
		if scale > 0 {
			return r.Quo(r, new(big.Rat).SetInt(p))
		}
		return r.Mul(r, new(big.Rat).SetInt(p))
	case float64, float32:
		f := toFloat(n)
		if math.IsInf(f, 0) || f != f {
			return new(big.Rat)
		}
		return new(big.Rat).SetFloat64(f)
	}
	i, _ := gvalue.Integer(v)
	return new(big.Rat).SetInt64(i)
}

func isBig(v any) bool {
	switch v.(type) {
	case *big.Int, *gvalue.BigDecimal:
		return true
	}
	return false
}

// compareNumbers compares exact values. NaN equals itself and is above all others.
func compareNumbers(a, b any) int {
	x, xi := gvalue.Integer(a)
	y, yi := gvalue.Integer(b)
	if xi && yi {
		return cmp.Compare(x, y)
	}
	fa, fb := toFloat(a), toFloat(b)
	switch {
	case fa != fa && fb != fb:
		return 0
	case fa != fa:
		return 1
	case fb != fb:
		return -1
	case !isBig(a) && math.IsInf(fa, 0), !isBig(b) && math.IsInf(fb, 0):
		// float64 of a big number may be infinite although the number isn't
		if isBig(a) {
			fa = 0
		} else if isBig(b) {
			fb = 0
		}
		return cmp.Compare(fa, fb)
	case isBig(a) || isBig(b) || xi && (x > 1<<53 || x < -1<<53) || yi && (y > 1<<53 || y < -1<<53):
		return ratOf(a).Cmp(ratOf(b))
	}
	return cmp.Compare(fa, fb)
}

func isNaN(v any) bool {
	switch n := v.(type) {
	case float64:
		return n != n
	case float32:
		return n != n
	}
	return false
}

// compareTyped compares values of one family, for gt() and similar predicates. ok is false if they aren't comparable.
func compareTyped(a, b any) (c int, ok bool) {
	fa := family(a)
	if fa != family(b) || fa == famOther || isNaN(a) || isNaN(b) {
		return 0, false
	}
	switch fa {
	case famList, famSet, famMap, famPath:
		return compareAll(a, b), true
	}
	return compareAll(a, b), true
}
