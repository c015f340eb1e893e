package linearize

import (
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"
)

// kind is the kind of an operation.
type kind uint8

const (
	read    kind = iota
	found        // what a server finds at its start
	create       // if it is absent
	replace      // if its value is from
	remove
)

// result is the result of an operation as the client saw it.
type result uint8

const (
	done    result = iota
	absent         // NotFound
	exists         // Conflict
	differs        // PreconditionFailed: it exists with another value
	missed         // absent, or with another value: MongoDB doesn't distinguish them
	unknown        // no reply: it took effect, or never will
)

// input and output describe an operation on one item. Every write has a unique value, so values can be compared like
// etags. 0 is an absent item.
type input struct {
	item    string
	kind    kind
	v, from int
}

type output struct {
	result result
	v      int // the result of a read
}

// item is the model of one item.
var item = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{0} },
	Step: func(state, in, out any) []any { return step(state.(int), in.(input), out.(output)) },
	DescribeOperation: func(in, out any) string {
		i, o := in.(input), out.(output)
		what := [...]string{"read", "found", "create", "replace", "remove"}[i.kind]
		told := [...]string{"done", "absent", "exists", "differs", "missed", "unknown"}[o.result]
		return fmt.Sprintf("%s %d->%d: %s %d", what, i.from, i.v, told, o.v)
	},
}).ToModel()

// step returns the possible states of an item after an operation with this result. It returns none if the result is
// impossible in this state.
func step(state int, in input, out output) []any {
	next, told := state, done
	switch in.kind {
	case read:
		return when(state == out.v, state)
	case found:
		return []any{in.v}
	case create:
		if next = in.v; state != 0 {
			told = exists
		}
	case remove:
		if next = 0; state == 0 {
			told = absent
		}
	case replace:
		switch next = in.v; state {
		case in.from:
		case 0:
			told = absent
		default:
			told = differs
		}
	}
	switch {
	case told != done:
		return when(out.result == told || out.result == unknown || out.result == missed && in.kind == replace, state)
	case out.result == unknown:
		return []any{state, next}
	}
	return when(out.result == done, next)
}

func when(ok bool, state int) []any {
	if !ok {
		return nil
	}
	return []any{state}
}

// The model accepts all possible histories and no others.
func TestModel(t *testing.T) {
	op := func(call, ret int64, k kind, v, from int, r result, saw int) porcupine.Operation {
		return porcupine.Operation{Input: input{"i", k, v, from}, Call: call, Output: output{r, saw}, Return: ret}
	}
	cases := map[string]struct {
		history []porcupine.Operation
		ok      bool
	}{
		"one after the other": {[]porcupine.Operation{op(0, 1, create, 1, 0, done, 0), op(2, 3, replace, 2, 1, done, 0),
			op(4, 5, read, 0, 0, done, 2), op(6, 7, replace, 3, 1, differs, 0), op(8, 9, remove, 0, 0, done, 0),
			op(10, 11, replace, 3, 2, absent, 0), op(12, 13, replace, 3, 2, missed, 0)}, true},
		"an unknown create is seen": {
			[]porcupine.Operation{op(0, 1, create, 1, 0, unknown, 0), op(2, 3, read, 0, 0, done, 1)}, true},
		"an unknown create is not seen": {
			[]porcupine.Operation{op(0, 1, create, 1, 0, unknown, 0), op(2, 3, read, 0, 0, done, 0)}, true},
		"an unknown create is seen once, and gone": {
			[]porcupine.Operation{op(0, 1, create, 1, 0, unknown, 0), op(2, 3, read, 0, 0, done, 1),
				op(4, 5, read, 0, 0, done, 0)}, false},
		"an absence is taken back": {
			[]porcupine.Operation{op(0, 1, create, 1, 0, done, 0), op(2, 9, remove, 0, 0, unknown, 0),
				op(3, 4, read, 0, 0, done, 0), op(10, 11, read, 0, 0, done, 1)}, false},
		"a refusal is taken back": {
			[]porcupine.Operation{op(0, 9, create, 1, 0, unknown, 0), op(1, 2, create, 2, 0, exists, 0),
				op(10, 11, read, 0, 0, done, 0)}, false},
		"a lost update": {[]porcupine.Operation{op(0, 1, create, 1, 0, done, 0), op(2, 5, replace, 2, 1, done, 0),
			op(3, 6, replace, 3, 1, done, 0)}, false},
		"what is found at a start": {
			[]porcupine.Operation{op(0, 1, found, 7, 0, done, 0), op(2, 3, read, 0, 0, done, 7)}, true},
	}
	for name, c := range cases {
		if got := porcupine.CheckOperations(item, c.history); got != c.ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}
