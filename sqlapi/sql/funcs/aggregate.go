package funcs

import (
	"reflect"
	"strings"

	"github.com/orrerydb/orrery/core/value"
)

// Aggregate is one aggregate: how a value is added to a state and what a state gives. plan is its name in a query
// plan.
type Aggregate struct {
	Name, Plan string
	add        func(s *State, v value.Value)
	Result     func(s *State) value.Value
	join       func(s, t *State) // adds to s the state t of later rows, which was stored
	times      times
}

// times says what more rows with one value do to an aggregate.
type times uint8

const (
	timesAdd     times = iota // each counts like the first
	timesCount                // only their number counts
	timesNothing              // they change nothing
)

// AddTimes adds a value that n rows have; n is 0 where the rows are counted with another value.
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
	bad   bool // an argument of a wrong type: the result is undefined
	over  bool // a list has reached its limit
	best  value.Value
	list  Builder
	// list as it was stored, when it is empty itself
	packed value.Value
	set    *Set
	size   int
}

// StateSize is what a state takes beside what it points to, in bytes.
var StateSize = int(reflect.TypeFor[State]().Size())

// MaxList bounds the bytes that one MAKELIST or MAKESET gathers; a query that needs more is refused.
const MaxList = 4 << 20

// SetCount makes a COUNT of n.
func (s *State) SetCount(n int64) { s.count = n }

// Full reports whether a list has reached its limit, so that the query is refused.
func (s *State) Full() bool { return s.over }

// Held is how many bytes the state keeps of the values that it has seen.
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

// AggregateOf returns the aggregate of a name, case-insensitive; nil when there is none.
func AggregateOf(name string) *Aggregate { return aggregates[strings.ToUpper(name)] }

// addToList is MAKELIST.
func addToList(s *State, v value.Value) {
	if s.over = s.over || s.size+len(v.Bytes()) > MaxList; s.over {
		return
	}
	s.size += len(v.Bytes()) + 16
	s.list.Elem(v)
}

// addToSet is MAKESET.
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

// addNumber is SUM and AVG: undefined is skipped, any other non-number spoils the result.
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

// extreme is MIN and MAX: the type order decides between types; arrays and objects spoil the result.
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

// listResult may be asked for more than once, so the list is kept as a value.
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
