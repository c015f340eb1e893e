package num

import (
	"math"
	"testing"

	"github.com/orrerydb/orrery/core/value"
)

// TestSum: a sum has the kind of its widest number, and loses nothing that a double or decimal can hold. Two halves
// that are joined give the same.
func TestSum(t *testing.T) {
	l, d := value.Int64Of, value.DoubleOf
	inf := math.Inf(1)
	for _, x := range []struct {
		of   []value.Value
		want value.Value
	}{
		{nil, l(0)},
		{[]value.Value{l(math.MaxInt64), l(1), l(-1)}, l(math.MaxInt64)},
		{[]value.Value{l(math.MinInt64), l(math.MinInt64), l(math.MaxInt64), l(1)}, l(math.MinInt64)},
		{[]value.Value{l(math.MaxInt64), l(math.MaxInt64)}, d(math.MaxUint64)},
		{[]value.Value{d(0.1), d(0.2), d(0.3)}, d(0.6)},
		{[]value.Value{d(1e16), l(1), d(-1e16)}, d(1)},
		{[]value.Value{d(1e100), d(1), d(-1e100)}, d(1)},
		{[]value.Value{d(inf), l(1)}, d(inf)},
		{[]value.Value{d(inf), d(-inf)}, d(math.NaN())},
		{[]value.Value{dec128(t, "1.10"), l(2)}, dec128(t, "3.10")},
		{[]value.Value{dec128(t, "1"), d(0.1)}, dec128(t, "1.100000000000000005551115123125783")},
		{[]value.Value{dec128(t, "1"), d(inf)}, dec128(t, "Infinity")},
		{[]value.Value{l(math.MaxInt64), dec128(t, "0.5"), l(math.MaxInt64)}, dec128(t, "18446744073709551614.5")},
	} {
		for cut := range len(x.of) + 1 {
			var a, b Sum
			for i, v := range x.of {
				if i < cut {
					a.Add(v)
				} else {
					b.Add(v)
				}
			}
			if !a.Join(b.State()) {
				t.Fatal("a state can't be joined")
			}
			if got := a.Value(); got.Kind() != x.want.Kind() || value.CompareBSON(got, x.want) != 0 {
				t.Errorf("%v, cut at %d: %v, want %v", x.of, cut, got, x.want)
			}
		}
	}
}
