package graphapi

import (
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// Two processes have one store. What the one counts after the other has written is right, or the request fails with
// Unavailable: it is never what was in memory before, whichever of its reads fail.
func TestCountsAreNotFromMemory(t *testing.T) {
	store := kvtest.NewShared(memkv.New(), 1)
	var graphs [2]*engineGraphs
	for i := range graphs {
		e, err := core.Open(t.Context(), store.Engine(), core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		graphs[i] = &engineGraphs{core: e, known: map[GraphName]*engineGraph{}}
	}
	g := GraphName{"db", "g"}
	if _, err := graphs[0].OpenGraph(t.Context(), g, true); err != nil {
		t.Fatal(err)
	}
	n := 0
	write := func() {
		n++
		if _, err := evaluate(t, graphs[1], g, message.Request{Script: "g.addV('x')"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, script := range []string{"g.V().count()", "g.V().hasLabel('x').count()", "g.V().groupCount().by(label)"} {
		right, refused := 0, 0
		store.Interrupt(kv.ErrUnavailable, true, write, func() {
			got, err := evaluate(t, graphs[0], g, message.Request{Script: script})
			want := fmt.Sprint([]int{n})
			if script == "g.V().groupCount().by(label)" {
				want = fmt.Sprintf("[{x=%d}]", n)
			}
			switch {
			case status.Is(err, status.Unavailable):
				refused++
			case err != nil || fmt.Sprint(got) != want:
				t.Errorf("%s: %v (%v), want %s", script, got, err, want)
			default:
				right++
			}
		})
		if right == 0 || refused == 0 {
			t.Errorf("%s: %d right answers, %d refusals", script, right, refused)
		}
	}
}
