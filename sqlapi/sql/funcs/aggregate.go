package funcs

import (
	"reflect"
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

// Aggregate is one aggregate function: how a value is added to a state, and the result of a state. Plan is its name in
// a query plan.
//
// Example: AVG adds 1, undefined and 3 to a state. Undefined is skipped, so the state is count 2 and sum 4, and the
// result is 2. If one of the values is "x", the result is undefined.
type Aggregate struct {
	Name, Plan string
	add        func(s *State, v value.Value)
	Result     func(s *State) value.Value
	join       func(s, t *State) // adds to s the stored state t of later rows
	times      times
}

// times tells how further rows with an equal value change an aggregate.
type times uint8

const (
	timesAdd     times = iota // each row counts like the first one
	timesCount                // only the number of rows counts
	timesNothing              // further rows change nothing
)

// AddTimes adds a value for n rows that share it. n is 0 when the rows are already counted with another value.
func (a *Aggregate) AddTimes(s *State, v value.Value, n int64) {
	switch {
	case a.times == timesNothing:
		a.add(s, v)
	case a.times == timesCount:
		if v.IsDefined() {
			s.count += n
		}
	default:
		for ; n > 0 && !s.over; n-- {
			a.add(s, v)
		}
	}
}

// State is the state of one aggregate in one group.
type State struct {
	count int64
	sum   float64
	bad   bool // an argument had a wrong type: the result is undefined
	over  bool // a list has reached its limit
	best  value.Value
	list  Builder
	// packed is the list in its stored form. It is only set while list is empty.
	packed value.Value
	set    *Set
	size   int
}

// StateSize is the size of a State in bytes, without the memory that it points to.
var StateSize = int(reflect.TypeFor[State]().Size())

// MaxList is the most bytes that one MAKELIST or MAKESET collects. A query that needs more is refused.
const MaxList = 4 << 20

// SetCount sets the state of a COUNT to n rows.
func (s *State) SetCount(n int64) { s.count = n }

// SetSum sets the state of a SUM.
func (s *State) SetSum(f float64) { s.sum = f }

// Full reports whether a list has reached MaxList. The query must be refused then.
func (s *State) Full() bool { return s.over }

// Held returns the number of bytes that the state keeps of its values.
func (s *State) Held() int { return s.size + len(s.best.Bytes()) }

var aggregates = map[string]*Aggregate{}

func init() {
	for _, a := range []*Aggregate{
		{Name: "COUNT", Plan: "Count", times: timesCount, join: joinCounts, add: func(s *State, v value.Value) {
			if v.IsDefined() {
				s.count++
			}
		}, Result: func(s *State) value.Value { return value.IntOf(s.count) }},
		{Name: "COUNTIF", Plan: "CountIf", join: joinCounts, add: func(s *State, v value.Value) {
			if IsTrue(v) {
				s.count++
			}
		}, Result: func(s *State) value.Value { return value.IntOf(s.count) }},
		{Name: "SUM", Plan: "Sum", add: addNumber, join: joinSums, Result: func(s *State) value.Value {
			if s.bad {
				return value.Value{}
			}
			return Num(s.sum)
		}},
		{Name: "AVG", Plan: "Average", add: addNumber, join: joinSums, Result: func(s *State) value.Value {
			if s.bad || s.count == 0 {
				return value.Value{}
			}
			return Num(s.sum / float64(s.count))
		}},
		{Name: "MIN", Plan: "Min", times: timesNothing, join: joinBest(-1), add: func(s *State, v value.Value) {
			s.extreme(v, -1)
		}, Result: (*State).extremeResult},
		{Name: "MAX", Plan: "Max", times: timesNothing, join: joinBest(1), add: func(s *State, v value.Value) {
			s.extreme(v, 1)
		}, Result: (*State).extremeResult},
		{Name: "MAKELIST", Plan: "MakeList", add: addToList, join: joinLists(addToList), Result: (*State).listResult},
		{Name: "MAKESET", Plan: "MakeSet", times: timesNothing, add: addToSet, join: joinLists(addToSet),
			Result: (*State).listResult},
	} {
		aggregates[a.Name] = a
	}
}

// AggregateOf returns the aggregate with a name, nil when there is none. Case is ignored.
func AggregateOf(name string) *Aggregate { return aggregates[strings.ToUpper(name)] }

// addToList adds a value for MAKELIST.
func addToList(s *State, v value.Value) {
	if s.over = s.over || s.size+len(v.Bytes()) > MaxList; s.over {
		return
	}
	s.size += len(v.Bytes()) + 16
	s.list.Elem(v)
}

// addToSet adds a value for MAKESET.
func addToSet(s *State, v value.Value) {
	if s.set == nil {
		s.set = NewSet()
	}
	if s.over = s.over || s.size+len(v.Bytes()) > MaxList; s.over || !v.IsDefined() || !s.set.Add(v) {
		return
	}
	s.size += 2*len(v.Bytes()) + 64
	s.list.Elem(One(v))
}

// addNumber adds a value for SUM and AVG. Undefined is skipped. Any other value that isn't a number makes the result
// undefined.
func addNumber(s *State, v value.Value) {
	switch {
	case !v.IsDefined():
	case !v.IsNumber():
		s.bad = true
	default:
		s.sum += v.Float()
		s.count++
	}
}

// extreme adds a value for MIN and MAX. Values of different types compare by the order of their types. Arrays and
// objects make the result undefined.
func (s *State) extreme(v value.Value, sign int) {
	switch v.Kind() {
	case value.Undefined:
		return
	case value.Array, value.Object:
		s.bad = true
		return
	}
	if s.count == 0 || value.CompareCosmos(v, s.best)*sign > 0 {
		s.best = One(v).Clone()
	}
	s.count++
}

func (s *State) extremeResult() value.Value {
	if s.bad {
		return value.Value{}
	}
	return s.best
}

// listResult returns the list. It keeps it as a value, because it can be called more than once.
func (s *State) listResult() value.Value {
	if s.bad {
		return value.Value{}
	}
	if s.packed.IsDefined() {
		return s.packed
	}
	if !s.best.IsDefined() {
		s.best = s.list.Array()
	}
	return s.best
}
