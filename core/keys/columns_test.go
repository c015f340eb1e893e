package keys

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/value"
)

// columnValues returns the values of the ladder, values that are cut in a column but not in a single entry, and values
// that are cut in both.
func columnValues(t testing.TB) []value.Value {
	var vs []value.Value
	for _, rung := range ladder(t) {
		vs = append(vs, rung...)
	}
	for _, n := range []int{62, 63, 64, 65, 127, 128, 129, 255, 256, 257, 600} {
		for _, c := range []string{"a", "\x00", "\xff"} {
			vs = append(vs, value.StringOf(strings.Repeat(c, n)), value.StringOf(strings.Repeat("a", n)+c))
		}
		vs = append(vs, value.BinaryOf(0, make([]byte, n)))
	}
	return vs
}

// Entries of composite indexes sort by their columns, each in its direction, unless a column is lossy. A lossy column
// doesn't change the order of the columns before it.
func TestColumnsOrder(t *testing.T) {
	vs := columnValues(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 60_000 {
		n := 1 + r.IntN(4)
		if r.IntN(10) == 0 {
			n = 8
		}
		cut := ColumnCut(n)
		var a, b []byte
		want, known := 0, true
		for range n {
			x, y, desc := vs[r.IntN(len(vs))], vs[r.IntN(len(vs))], r.IntN(2) == 0
			if r.IntN(2) == 0 {
				y = x
			}
			var lx, ly bool
			a, lx = AppendColumn(a, x, cut, desc)
			b, ly = AppendColumn(b, y, cut, desc)
			c := sign(value.CompareCosmos(x, y))
			if desc {
				c = -c
			}
			if want == 0 && c != 0 {
				want, known = c, known && (!lx && !ly || x.Class() != y.Class())
			}
		}
		if got := sign(bytes.Compare(a, b)); known && got != want {
			t.Fatalf("%x against %x: %d, want %d", a, b, got, want)
		}
	}
}

// No encoding of a column is a prefix of another, in either direction, so bytes after it don't change its order.
func TestColumnsDelimitThemselves(t *testing.T) {
	for _, v := range columnValues(t) {
		for _, cut := range []int{ColumnCut(1), ColumnCut(2), ColumnCut(8)} {
			for _, desc := range []bool{false, true} {
				b, lossy := AppendColumn(nil, v, cut, desc)
				rest, err := SkipColumn(append(bytes.Clone(b), "\xff\x00number"...), cut, desc)
				if err != nil || string(rest) != "\xff\x00number" {
					t.Errorf("%s: SkipColumn leaves %q (%v)", text(v), rest, err)
				}
				for n := range b {
					if _, err := SkipColumn(b[:n], cut, desc); err == nil {
						t.Errorf("%s: %d of %d bytes are accepted", text(v), n, len(b))
					}
				}
				if most := 30 + cut; len(b) > most {
					t.Errorf("%s: %d bytes, more than %d", text(v), len(b), most)
				}
				if floor, fl := AppendColumnFloor(nil, v, cut); !desc && (!bytes.HasPrefix(b, floor) || fl != lossy) {
					t.Errorf("%s: the floor %x is not the begin of %x", text(v), floor, b)
				}
			}
		}
	}
}

func TestColumnPrefix(t *testing.T) {
	for _, p := range []string{"", "a", "a\x00", strings.Repeat("a", 64), strings.Repeat("a", 300),
		strings.Repeat("\x00", 40)} {
		for _, cut := range []int{64, 256} {
			b, _ := AppendColumn(nil, value.StringOf(p+"tail"), cut, false)
			if !bytes.HasPrefix(b, AppendColumnPrefix(nil, []byte(p), cut)) {
				t.Errorf("the column of %.5q... doesn't begin with the bytes of its prefix", p)
			}
		}
	}
}

// FuzzSkipColumn: the parser doesn't panic on any bytes.
func FuzzSkipColumn(f *testing.F) {
	for _, v := range columnValues(f) {
		b, _ := AppendColumn(nil, v, 64, true)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, desc := range []bool{false, true} {
			if rest, err := SkipColumn(b, 64, desc); err == nil && len(rest) >= len(b) {
				t.Fatal("nothing was skipped")
			}
		}
	})
}
