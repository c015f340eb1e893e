package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// bodies are traversals that process all traversers of a round together. end shows the remaining state.
var bodies = []struct{ body, end string }{
	{"both().order().by('name')", "values('name')"},
	{"both().order().by('name', desc).limit(4)", "values('name')"},
	{"both().order().by('name').range(1, 5)", "values('name')"},
	{"both().order().by('name').skip(1)", "values('name')"},
	{"both().order().by('name').tail(3)", "values('name')"},
	{"both().tail(1000)", "count()"},
	{"both().barrier()", "count()"},
	{"both().barrier(2)", "count()"},
	{"both().sample(1000)", "count()"},
	{"both().aggregate('x').by('name')", "cap('x').order(local)"},
	{"aggregate('x').by('name').both()", "cap('x').order(local)"},
	{"both().groupCount('m').by('name')", "cap('m').order(local).by(keys)"},
	{"groupCount('m').by('name').both()", "cap('m').order(local).by(keys)"},
	{"both().group('m').by(label).by(values('name').count())", "cap('m')"},
	{"out().tree('t').by('name')", "cap('t').count(local)"},
	{"union(both('knows').order().by('name'), both('created').order().by('name').limit(3))", "values('name').order()"},
	{"union(both().tail(2), out().count().constant(1).limit(0))", "count()"},
	{
		"choose(hasLabel('person'), out().order().by('name').tail(2), __.in().order().by('name').limit(1))",
		"values('name').order()",
	},
	{"both().local(order().by('name').tail(1))", "count()"},
	{"both().repeat(both().order().by('name')).times(2).limit(5)", "values('name')"},
	{"fold().unfold().both()", "count()"},
	{"fold()", "count(local)"},
	{"values('age').sum().as('s').constant(1).V().has('age')", "values('age').order()"},
	{"count().V().hasLabel('person')", "count()"},
	{"out().where(count().is(gt(0))).order().by('name')", "values('name')"},
}

// TestRepeatIsItsBodyManyTimes: repeat(body).times(n) gives the same as n copies of the body.
func TestRepeatIsItsBodyManyTimes(t *testing.T) {
	w := &world{t: t}
	w.load("modern")
	results := 0
	for _, b := range bodies {
		for _, start := range []string{"g.V(1)", "g.V()", "g.V(1, 4)"} {
			for n := 1; n <= 4; n++ {
				got := w.run(
					&message.Request{Script: fmt.Sprintf("%s.repeat(%s).times(%d).%s", start, b.body, n, b.end)},
					false,
				)
				want := w.run(
					&message.Request{
						Script: fmt.Sprintf(
							"%s.%s.%s",
							start,
							strings.TrimSuffix(strings.Repeat(b.body+".", n), "."),
							b.end,
						),
					},
					false,
				)
				if got != want {
					t.Errorf("%s.repeat(%s).times(%d).%s\ngot  %swant %s", start, b.body, n, b.end, got, want)
				}
				if want != "nothing\n" && !strings.Contains(want, "error") {
					results++
				}
			}
		}
	}
	if results < len(bodies)*6 {
		t.Errorf("only %d of the traversals gave anything", results)
	}
}
