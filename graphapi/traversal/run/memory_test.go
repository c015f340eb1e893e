package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// TestMemoryIsCharged: the memory that each step keeps counts in the budget of the request, is refused above the limit,
// and is released.
func TestMemoryIsCharged(t *testing.T) {
	w := &world{t: t}
	w.load("empty")
	text := strings.Repeat("x", 1000)
	for i := range 100 {
		w.run(
			&message.Request{
				Script: fmt.Sprintf(
					"g.addV('v').property(id, %d).property('n', %d).property('t', '%s').as('a').addE('e').to('a')",
					i,
					i,
					text,
				),
			},
			false,
		)
	}
	list := "[" + strings.Repeat("1, ", 80) + "1]"
	for _, script := range []string{
		"g.V().id().order().by(constant('" + text + "'))", "g.withSideEffect('x', []).V().store('x').by('t').cap('x')",
		"g.inject(1).repeat(union(identity(), identity()).barrier()).times(12).sample(4000)",
		"g.V().limit(45).id().asString().concat('" + text + "').barrier()",
		"g.inject(" + list + ").product(" + list + ")",
		"g.V().order().by('n')", "g.V().barrier()", "g.V().fold()", "g.V().values('t').fold().fold()",
		"g.V().group().by('n')", "g.V().groupCount().by(values('n', 't').fold())",
		"g.V().group('x').by('n').cap('x')", "g.V().group().by('n').by(out().fold())", "g.V().aggregate('x').cap('x')",
		"g.V().store('x').cap('x')", "g.V().tail(1000)",
		"g.V().sample(1000)", "g.V().out().tree().by(id).by('t')", "g.V().dedup().by(values('n', 't').fold())",
		"g.V().repeat(out()).times(2)", "g.V().repeat(out().order().by('n')).times(2)",
		"g.V().emit().repeat(out().simplePath()).order().by('n')",
		"g.V().union(fold(), order().by('n'))", "g.V().order().by('n').path()",
		"g.V().match(as('a').out().as('b')).fold()", "g.V().match(as('a').V().as('b'), as('b').has('n', 1)).limit(1)",
		"g.V().as('a').out().as('b').dedup('a', 'b').fold()",
		"g.V().values('t').fold([], addAll)", "g.withSideEffect('x', []).V().aggregate('x').by('t').cap('x')",
		"g.V().aggregate(local, 'x').by(values('n', 't').fold()).cap('x')", "g.V().groupCount('x').by('n').cap('x')",
		"g.V().out().tree('x').by('t').cap('x')",
		"g.V().local(out().order().by('n').fold()).fold()", "g.V().sideEffect(store('x')).cap('x')",
		"g.withSack([]).V().sack(addAll).by(values('n', 't').fold()).barrier()",
		"g.inject(1).repeat(identity()).emit().times(3000).fold()", "g.V().fold().product(constant([1, 2, 3])).fold()",
		"g.V().order().by(values('n').math('1000 - _')).limit(90)",
		"g.V().range(0, 100).order().tail(90)", "g.V().project('a').by('t').order().by(select('a'))",
	} {
		for _, small := range []bool{false, true} {
			b := budget.New(64<<20, 0)
			if small {
				b = budget.New(64<<20, 20_000)
			}
			w.g.ChargeTo(b)
			_, err := run.Run(
				context.Background(),
				w.g,
				&message.Request{Script: script},
				func(any, int64) error { return nil },
			)
			if status.Is(err, status.MemoryLimit) != small || err != nil && !small {
				t.Errorf("%.80s: small share %v: %v", script, small, err)
			}
			if b.Used() != 0 {
				t.Errorf("%.80s: %d bytes are not given back", script, b.Used())
			}
		}
	}
}

// TestMemoryIsGivenBackOnTheWay: memory that a traversal keeps only temporarily doesn't accumulate.
func TestMemoryIsGivenBackOnTheWay(t *testing.T) {
	w := &world{t: t}
	w.load("modern")
	for _, script := range []string{
		"g.inject(1).repeat(identity().order()).times(20000)", "g.inject(1).repeat(math('_ + 1')).times(20000)",
		"g.V(1).repeat(both().order().by('name').limit(3)).times(1000)",
		"g.V().repeat(both().simplePath()).until(loops().is(5)).count()",
		"g.inject(1).repeat(union(identity(), constant(1)).tail(5)).times(3000)",
	} {
		w.g.ChargeTo(budget.New(64<<20, 200_000))
		_, err := run.Run(
			context.Background(),
			w.g,
			&message.Request{Script: script},
			func(any, int64) error { return nil },
		)
		if err != nil {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// TestCancelled: a cancelled request and one whose time is over have different errors.
func TestCancelled(t *testing.T) {
	w := &world{t: t}
	w.load("modern")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	script := &message.Request{Script: "g.inject(1).repeat(identity())"}
	if _, err := run.Run(ctx, w.g, script, func(any, int64) error { return nil }); !status.Is(
		err,
		status.Unavailable,
	) {
		t.Errorf("cancelled: %v", err)
	}
	script.Timeout = 1
	_, err := run.Run(context.Background(), w.g, script, func(any, int64) error { return nil })
	if e := (*run.Error)(nil); !errors.As(err, &e) || e.Kind != run.Timeout {
		t.Errorf("out of time: %v", err)
	}
}

// fading is a context that is cancelled after a number of calls of Err.
type fading struct {
	context.Context
	asked, end int
}

func (f *fading) Err() error {
	if f.asked++; f.asked > f.end {
		return context.Canceled
	}
	return nil
}

// TestSortIsCancelled: a request can also be cancelled during a long sort.
func TestSortIsCancelled(t *testing.T) {
	w := &world{t: t}
	w.load("empty")
	list := make([]any, 50_000)
	for i := range list {
		list[i] = int64(i * 7919 % len(list))
	}
	req := &message.Request{Script: "g.inject(x).order(local)", Bindings: map[string]any{"x": list}}
	none := func(any, int64) error { return nil }
	if _, err := run.Run(&fading{Context: context.Background(), end: 1 << 30}, w.g, req, none); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Run(&fading{Context: context.Background(), end: 20}, w.g, req, none); !status.Is(
		err,
		status.Unavailable,
	) {
		t.Errorf("a cancelled sort: %v", err)
	}
}
