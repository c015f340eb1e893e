package run

import (
	"math"
	"slices"

	"github.com/orrerydb/orrery/graphapi/gvalue"
)

// Values can share parts, so a few steps in a loop could build a value that is small in memory but extremely large when
// it is written or compared. So each new list, map and path is weighed: its parts are counted as often as they occur.
//
// Example: [x, x] of a list x, repeated 40 times, has 40 lists in memory, but 2^40 elements in its JSON. weigh refuses
// it.
const (
	maxWeight = 4_000_000
	maxText   = 16 << 20 // size of a computed string in bytes
)

// weigh returns an error for a value with too many parts.
func weigh(v any) error {
	budget := maxWeight
	if !fits(v, &budget) {
		return errf(Memory, "A value of the traversal exceeds the memory that one request may use")
	}
	return nil
}

// weigh is the function weigh for what a step has returned: a side effect that many traversers select is weighed once.
func (x *exec) weigh(v any) error {
	n := 0
	switch c := v.(type) {
	case *gvalue.Map:
		n = c.Len()
	case *gvalue.BulkSet:
		n = c.Len()
	}
	if n > 0 && x.weighed == v && x.weight == n {
		return nil
	}
	err := weigh(v)
	if err == nil && n > 0 {
		x.weighed, x.weight = v, n
	}
	return err
}

func fits(v any, budget *int) bool {
	switch c := v.(type) {
	case []any:
		*budget -= len(c)
		for i := 0; i < len(c) && *budget >= 0; i++ {
			fits(c[i], budget)
		}
	case *gvalue.Map:
		*budget -= 2 * c.Len()
		for _, e := range c.Entries() {
			if *budget < 0 {
				return false
			}
			fits(e.Key, budget)
			fits(e.Value, budget)
		}
	case *gvalue.Set:
		return fits(c.Items(), budget)
	case *gvalue.Path:
		return fits(c.Objects, budget)
	case *mapEntry:
		return fits(c.k, budget) && fits(c.v, budget)
	case *gvalue.BulkSet:
		for _, i := range c.Items() {
			if *budget--; *budget < 0 {
				return false
			}
			fits(i.Value, budget)
		}
	case string:
		*budget -= len(c) >> 8
	}
	return *budget >= 0
}

// notWithin returns an error if a value has a part that is being added to: a side effect that another step has
// selected. A value that contained itself could be neither compared nor written.
//
// Example: aggregate('x').select('x').aggregate('x').
func notWithin(v, part any) error {
	budget := maxWeight
	switch found := hasPart(v, part, &budget); {
	case found:
		return errf(Runtime, "A side effect can't contain itself")
	case budget < 0:
		return tooMuch()
	}
	return nil
}

func hasPart(v, part any, budget *int) bool {
	if *budget--; *budget < 0 {
		return false
	}
	switch c := v.(type) {
	case []any:
		return slices.ContainsFunc(c, func(e any) bool { return hasPart(e, part, budget) })
	case *gvalue.Set:
		return hasPart(c.Items(), part, budget)
	case *gvalue.Path:
		return hasPart(c.Objects, part, budget)
	case *gvalue.Map:
		return slices.ContainsFunc(c.Entries(), func(e gvalue.Entry) bool {
			return hasPart(e.Key, part, budget) || hasPart(e.Value, part, budget)
		})
	case *mapEntry:
		return hasPart(c.k, part, budget) || hasPart(c.v, part, budget)
	case *gvalue.BulkSet:
		return c == part || slices.ContainsFunc(c.Items(), func(i gvalue.BulkItem) bool {
			return hasPart(i.Value, part, budget)
		})
	case *gvalue.Tree:
		return c == part || slices.ContainsFunc(c.Entries, func(e gvalue.TreeEntry) bool {
			return hasPart(e.Key, part, budget) || hasPart(e.Child, part, budget)
		})
	}
	return false
}

// textOf returns the text of a value, which may have parts that occur often.
func textOf(v any) (string, error) {
	room := maxText
	if textFits(v, &room); room < 0 {
		return "", errf(Memory, "The string is too long")
	}
	return gvalue.Text(v), nil
}

// textFits subtracts about the length of a value's text from room, until that is used up.
func textFits(v any, room *int) {
	switch c := v.(type) {
	case string:
		*room -= len(c)
	case []any:
		for i := 0; i < len(c) && *room >= 0; i++ {
			*room -= len(", ")
			textFits(c[i], room)
		}
	case *gvalue.Set:
		textFits(c.Items(), room)
	case *gvalue.Path:
		textFits(c.Objects, room)
	case *gvalue.Map:
		for i := 0; i < c.Len() && *room >= 0; i++ {
			textFits(c.Entries()[i].Key, room)
			textFits(c.Entries()[i].Value, room)
		}
	case *mapEntry:
		textFits(c.k, room)
		textFits(c.v, room)
	case *gvalue.BulkSet:
		for i := 0; i < len(c.Items()) && *room >= 0; i++ {
			textFits(c.Items()[i].Value, room)
		}
	}
}

// addBulk adds counts. ok is false if the sum overflows a Long.
func addBulk(a, b int64) (sum int64, ok bool) {
	if a > math.MaxInt64-b {
		return math.MaxInt64, false
	}
	return a + b, true
}

// addCount is addBulk for counts in results.
func addCount(a, b int64) (int64, error) {
	n, ok := addBulk(a, b)
	if !ok {
		return 0, errOverflow()
	}
	return n, nil
}

// errOverflow returns the error for a result that overflows a Long, with the text of the language's arithmetic.
func errOverflow() error { return errf(Runtime, "long overflow") }

// isMergeable reports whether it pays to merge equal traversers with such a value: elements and scalars are cheap to
// compare, collections aren't.
func isMergeable(v any) bool {
	switch v.(type) {
	case []any, *gvalue.Map, *gvalue.Set, *gvalue.Path, *gvalue.BulkSet, *gvalue.Tree, *mapEntry:
		return false
	}
	return true
}
