package sql

import (
	"reflect"
	"strings"

	"github.com/orrerydb/orrery/core/value"
	funcs "github.com/orrerydb/orrery/sqlapi/sql/func"
)

// aggregateFunc is one aggregate: how a value is added to a state and what a state gives. plan is its name in a query
// plan.
type aggregateFunc struct {
	name, plan string
	add        func(s *aggState, v value.Value)
	result     func(s *aggState) value.Value
	times      times
}

// times says what more rows with one value do to an aggregate.
type times uint8

const (
	timesAdd     times = iota // each counts like the first
	timesCount                // only their number counts
	timesNothing              // they change nothing
)

// addTimes adds a value that n rows have; n is 0 where the rows are counted with another value.
func (a *aggregateFunc) addTimes(s *aggState, v value.Value, n int64) {
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

// aggState is the state of one aggregate in one group.
type aggState struct {
	count int64
	sum   float64
	bad   bool // an argument of a wrong type: the result is undefined
	over  bool // a list has reached its limit
	best  value.Value
	list  funcs.Builder
	set   *distinctSet
	size  int
}

// stateSize is what a state takes beside what it points to, in bytes.
var stateSize = int(reflect.TypeFor[aggState]().Size())

// maxList bounds the bytes that one MAKELIST or MAKESET gathers; a query that needs more is refused.
const maxList = 4 << 20

// setCount makes a COUNT of n.
func (s *aggState) setCount(n int64) { s.count = n }

// full reports whether a list has reached its limit, so that the query is refused.
func (s *aggState) full() bool { return s.over }

// held is how many bytes the state keeps of the values that it has seen.
func (s *aggState) held() int { return s.size + len(s.best.Bytes()) }

var aggregates = map[string]*aggregateFunc{}

func init() {
	for _, a := range []*aggregateFunc{
		{name: "COUNT", plan: "Count", times: timesCount, add: func(s *aggState, v value.Value) {
			if v.IsDefined() {
				s.count++
			}
		}, result: func(s *aggState) value.Value { return value.IntOf(s.count) }},
		{name: "COUNTIF", plan: "CountIf", add: func(s *aggState, v value.Value) {
			if isTrue(v) {
				s.count++
			}
		}, result: func(s *aggState) value.Value { return value.IntOf(s.count) }},
		{name: "SUM", plan: "Sum", add: addNumber, result: func(s *aggState) value.Value {
			if s.bad {
				return value.Value{}
			}
			return funcs.Num(s.sum)
		}},
		{name: "AVG", plan: "Average", add: addNumber, result: func(s *aggState) value.Value {
			if s.bad || s.count == 0 {
				return value.Value{}
			}
			return funcs.Num(s.sum / float64(s.count))
		}},
		{name: "MIN", plan: "Min", times: timesNothing, add: func(s *aggState, v value.Value) {
			s.extreme(v, -1)
		}, result: (*aggState).extremeResult},
		{name: "MAX", plan: "Max", times: timesNothing, add: func(s *aggState, v value.Value) {
			s.extreme(v, 1)
		}, result: (*aggState).extremeResult},
		{name: "MAKELIST", plan: "MakeList", add: func(s *aggState, v value.Value) {
			if s.over = s.over || s.size+len(v.Bytes()) > maxList; s.over {
				return
			}
			s.size += len(v.Bytes()) + 16
			s.list.Elem(v)
		}, result: (*aggState).listResult},
		{name: "MAKESET", plan: "MakeSet", times: timesNothing, add: func(s *aggState, v value.Value) {
			if s.set == nil {
				s.set = newDistinctSet()
			}
			if s.over = s.over || s.size+len(v.Bytes()) > maxList; s.over || !v.IsDefined() || !s.set.add(v) {
				return
			}
			s.size += 2*len(v.Bytes()) + 64
			s.list.Elem(funcs.One(v))
		}, result: (*aggState).listResult},
	} {
		aggregates[a.name] = a
	}
}

func aggregateOf(name string) *aggregateFunc { return aggregates[strings.ToUpper(name)] }

// addNumber is SUM and AVG: undefined is skipped, any other non-number spoils the result.
func addNumber(s *aggState, v value.Value) {
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
func (s *aggState) extreme(v value.Value, sign int) {
	switch v.Kind() {
	case value.Undefined:
		return
	case value.Array, value.Object:
		s.bad = true
		return
	}
	if s.count == 0 || value.CompareCosmos(v, s.best)*sign > 0 {
		s.best = funcs.One(v).Clone()
	}
	s.count++
}

func (s *aggState) extremeResult() value.Value {
	if s.bad {
		return value.Value{}
	}
	return s.best
}

// listResult may be asked for more than once, so the list is kept as a value.
func (s *aggState) listResult() value.Value {
	if s.bad {
		return value.Value{}
	}
	if !s.best.IsDefined() {
		s.best = s.list.Array()
	}
	return s.best
}
