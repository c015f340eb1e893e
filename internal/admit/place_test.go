package admit_test

import (
	"context"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/yield"
	"github.com/orrerydb/orrery/internal/admit"
)

var _ yield.Place = (*admit.Place)(nil)

// A place is given back once, however often Leave is called. A request that returns takes a place even if none is free.
func TestPlace(t *testing.T) {
	g := admit.New(admit.Options{Running: 1, Waiting: 1, Wait: time.Millisecond})
	var a, b, nobody admit.Place
	if nobody.Leave() || g.Running() != 0 {
		t.Error("the zero place was held")
	}
	for _, p := range []*admit.Place{&a, &b} {
		if err := p.Enter(context.Background(), g); err != nil {
			t.Fatal(err)
		}
		if p == &a && (!a.Leave() || a.Leave()) {
			t.Error("a place is not left once")
		}
	}
	if a.Return(); g.Running() != 2 {
		t.Errorf("%d run, both are under way", g.Running())
	}
	if !a.Leave() || !b.Leave() || a.Leave() || g.Running() != 0 {
		t.Errorf("%d run at the end", g.Running())
	}
	if err := a.Enter(context.Background(), nil); err != nil || !a.Leave() {
		t.Error("no gate lets nobody in")
	}
}
