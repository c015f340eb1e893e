package linearize

import (
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"
)

const (
	accounts = 6 // documents that hold an amount
	seats    = 3 // documents of which exactly one exists
	slots    = accounts + seats
)

// vector is the state in the model of transactions: the version of each document, 0 if it is absent. All documents
// change together, in single atomic steps. No two writes give the same version, so the versions say which state
// a transaction has seen.
//
// Example: a transfer reads documents 0 and 3 with the versions 7 and 4, and writes version 9 to both. That is possible
// only where the state has 7 and 4 there. If its commit wasn't answered, both have 9 then, or none has.
type vector [slots]int32

// change is what one step reads and writes, by document.
type change struct{ reads, writes map[int]int32 }

// vectors is the model of all documents.
var vectors = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{vector{}} },
	Step: func(state, in, out any) []any { return advance(state.(vector), in.(change), out.(bool)) },
	DescribeOperation: func(in, out any) string {
		c := in.(change)
		return fmt.Sprintf("read %v, write %v, unknown: %v", c.reads, c.writes, out)
	},
}).ToModel()

// advance returns the possible states after a change. unknown is true if it took effect or never will.
func advance(was vector, c change, unknown bool) (out []any) {
	if unknown {
		out = append(out, was)
	}
	next := was
	for n, v := range c.reads {
		if was[n] != v {
			return out
		}
	}
	for n, v := range c.writes {
		next[n] = v
	}
	return append(out, next)
}

// The model accepts all possible histories and no others.
func TestVectorModel(t *testing.T) {
	type m = map[int]int32
	op := func(call, ret int64, unknown bool, reads, writes m) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: ret, Input: change{reads, writes}, Output: unknown}
	}
	begin := op(0, 1, false, nil, m{0: 1, 1: 2, 2: 3})
	cases := map[string]struct {
		then []porcupine.Operation
		ok   bool
	}{
		"one after the other": {[]porcupine.Operation{op(2, 3, false, m{0: 1, 1: 2}, m{0: 4, 1: 4}),
			op(4, 5, false, m{0: 4, 1: 4, 2: 3}, nil)}, true},
		"an unknown one is seen": {[]porcupine.Operation{op(2, 3, true, m{0: 1, 1: 2}, m{0: 4, 1: 4}),
			op(4, 5, false, m{0: 4, 1: 4}, nil)}, true},
		"an unknown one is not seen": {[]porcupine.Operation{op(2, 3, true, m{0: 1, 1: 2}, m{0: 4, 1: 4}),
			op(4, 5, false, m{0: 1, 1: 2}, nil)}, true},
		"half of an unknown one is seen": {[]porcupine.Operation{op(2, 3, true, m{0: 1, 1: 2}, m{0: 4, 1: 4}),
			op(4, 5, false, m{0: 4, 1: 2}, nil)}, false},
		"half of one is seen while it runs": {[]porcupine.Operation{op(2, 9, false, m{0: 1, 1: 2}, m{0: 4, 1: 4}),
			op(4, 5, false, m{0: 4, 1: 2}, nil)}, false},
		"two from the same state": {[]porcupine.Operation{op(2, 9, false, m{0: 1, 1: 2}, m{0: 4, 1: 4}),
			op(2, 9, false, m{1: 2, 2: 3}, m{1: 5, 2: 5})}, false},
		"a snapshot that is too old": {[]porcupine.Operation{op(2, 3, false, m{0: 1, 1: 2}, m{0: 4, 1: 4}),
			op(4, 5, false, m{0: 1, 1: 2}, nil)}, false},
		"an aborted one is seen": {[]porcupine.Operation{op(4, 5, false, m{0: 4}, nil)}, false},
	}
	for name, c := range cases {
		if got := porcupine.CheckOperations(vectors, append([]porcupine.Operation{begin}, c.then...)); got != c.ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}
