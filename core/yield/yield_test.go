package yield_test

import (
	"context"
	"errors"
	"testing"

	"github.com/orrerydb/orrery/core/yield"
)

// place counts running requests.
type place struct{ running int }

func (p *place) Leave() bool {
	if p.running == 0 {
		return false
	}
	p.running--
	return true
}

func (p *place) Return() { p.running++ }

func TestWhile(t *testing.T) {
	bad := errors.New("bad")
	for _, test := range []struct {
		name            string
		place           *place
		running, behind int // running requests while f runs, and after it
	}{
		{"one that runs", &place{1}, 0, 1},
		{"one that has left", &place{0}, 0, 0},
		{"none", nil, 0, 0},
	} {
		ctx, during := context.Background(), func() int { return 0 }
		if test.place != nil {
			ctx, during = yield.With(ctx, test.place), func() int { return test.place.running }
		}
		n := -1
		if err := yield.While(ctx, func() error { n = during(); return bad }); err != bad {
			t.Errorf("%s: error %v", test.name, err)
		}
		if n != test.running || during() != test.behind {
			t.Errorf("%s: %d run while it waits, %d behind it; want %d, %d", test.name, n, during(), test.running,
				test.behind)
		}
	}
}

// The place is taken back even if f panics: a caller recovers the panic and the request continues.
func TestWhilePanics(t *testing.T) {
	p := &place{1}
	func() {
		defer func() { _ = recover() }()
		_ = yield.While(yield.With(context.Background(), p), func() error { panic("x") })
	}()
	if p.running != 1 {
		t.Errorf("%d run", p.running)
	}
}
