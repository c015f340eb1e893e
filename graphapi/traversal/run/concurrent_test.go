package run_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// TestConcurrentRequests: many concurrent requests use one Graph, and so the same parsed scripts.
func TestConcurrentRequests(t *testing.T) {
	_, g := coreGraph(t, "modern")
	w := &world{t: t, g: g}
	w.run(&message.Request{Script: w.script("modern")}, false)
	scripts := map[string]string{
		"g.V().has('name', within({'marko', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'})).values('age')":        "29\n",
		"g.inject({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).intersect({10}).unfold()":                                     "10\n",
		"g.V(x).repeat(out()).times(2).values('name').order()":                                                   "lop\nripple\n",
		"g.withStrategies(PartitionStrategy(partitionKey: 'lang', readPartitions: ['java'])).V().count()":        "2\n",
		"g.V().match(__.as('a').out('knows').as('b')).select('b').by('name').order()":                            "josh\nvadas\n",
		"g.inject([a: 1, b: [c: 2]]).select('b').select('c')":                                                    "2\n",
		"g.V(x).valueMap('name', 'age').select('name').unfold()":                                                 "marko\n",
		"g.V().hasLabel('person').order().by('age', desc).limit(2).values('name')":                               "peter\njosh\n",
		"g.V().group().by(label).by(count()).select('person')":                                                   "4\n",
		"g.V(x).property('hits', 1).values('hits')":                                                              "1\n",
		"g.addV('t').property('a', 1).sideEffect(properties('a').drop()).sideEffect(__.drop()).constant('gone')": "gone\n",
	}
	var wg sync.WaitGroup
	errs := make(chan string, 100)
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 10 {
				for s, want := range scripts {
					own := &world{t: t, g: g}
					if got := own.run(&message.Request{Script: s, Bindings: map[string]any{"x": int32(1)}},
						false); got != want {
						select {
						case errs <- fmt.Sprintf("%s\ngot  %s\nwant %s", s, got, want):
						default:
						}
					}
				}
			}
		}()
	}
	wg.Wait()
	close(errs)
	for e := range errs {
		t.Error(e)
	}
}

// TestOrderForgets: order() before limit() keeps only what it needs, and gives the same result as a full sort.
func TestOrderForgets(t *testing.T) {
	_, g := coreGraph(t, "empty")
	var b strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&b, ",%d", i*7919%6000)
	}
	got := (&world{t: t, g: g}).run(&message.Request{
		Script: "g.inject([" + b.String()[1:] + "]).unfold().order().by(desc).limit(3)"}, false)
	if got != "5999\n5998\n5997\n" {
		t.Errorf("got %s", got)
	}
}

// TestLimits: a request that exceeds a limit ends soon with the error of that limit.
func TestLimits(t *testing.T) {
	w := &world{t: t}
	w.load("modern")
	for _, c := range []struct{ script, want string }{
		{"g.V().repeat(both())", "timeout"},
		{"g.V(1).repeat(identity()).until(constant(1).is(2))", "timeout"},
		{"g.inject('a').repeat(concat(identity())).times(60)", "memory"},
		{"g.inject('a').repeat(replace('a', 'aaaaaaaaaaaaaaaa')).times(60)", "memory"},
		{"g.inject(1).repeat(project('a', 'b').by().by()).times(60)", "memory"},
		{"g.V().repeat(both()).emit().fold()", "memory"},
		{"g.V().repeat(both()).times(40)", "timeout"},
		{"g.inject([1, 2]).repeat(combine([1, 2, 3])).until(constant(1).is(2))", "timeout"},
		{"g" + strings.Repeat(".V()", 30_000), "compile"},
		{"g.V(" + strings.Repeat(" ", 2<<20) + ")", "parse"},
	} {
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		_, err := run.Run(ctx, w.g, &message.Request{Script: c.script, Timeout: 500 * time.Millisecond},
			func(any, int64) error { return nil })
		cancel()
		if err == nil || !strings.HasPrefix(errText(err), c.want) &&
			!(c.want == "memory" && strings.HasPrefix(errText(err), "timeout")) {
			t.Errorf("%.60s: got %v, want a %s error", c.script, err, c.want)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%.60s: it took %v", c.script, d)
		}
	}
}

// TestTokens: elements are sent without properties if the request asks for tokens.
func TestTokens(t *testing.T) {
	w := &world{t: t}
	w.load("modern")
	for _, tokens := range []bool{true, false} {
		script := "g.V(1).fold()"
		if !tokens {
			script = "g.with('materializeProperties', 'tokens').V(1).fold()"
		}
		_, err := run.Run(context.Background(), w.g, &message.Request{Script: script, Tokens: tokens},
			func(v any, _ int64) error {
				if p := v.([]any)[0].(*gvalue.Vertex).Props(); len(p) != 0 {
					t.Errorf("%s gives %d properties", script, len(p))
				}
				return nil
			})
		if err != nil {
			t.Error(err)
		}
	}
}
