package run_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// topGraph is a graph whose elements have random keys.
type topGraph struct {
	t *testing.T
	w *world
	r *rand.Rand
	c *core.Container
}

func newTopGraph(t *testing.T, kind string, seed uint64) *topGraph {
	g := &topGraph{t: t, w: &world{t: t}, r: rand.New(rand.NewPCG(seed, 0))}
	g.c, g.w.g = coreGraph(t, kind)
	return g
}

func (g *topGraph) run(script string) string {
	g.t.Helper()
	out := g.w.run(&message.Request{Script: script}, false)
	if strings.Contains(out, "error") {
		g.t.Fatalf("%s: %s", script, out)
	}
	return out
}

// profile returns the text of the plans of a traversal.
func (g *topGraph) profile(script string) string { return g.run(script + ".executionProfile()") }

// value returns a random value, of one of the first kinds of values.
func (g *topGraph) value(kinds int) string {
	switch g.r.IntN(kinds) {
	case 0, 1:
		return fmt.Sprint(g.r.IntN(40) - 20)
	case 2:
		return fmt.Sprintf("%d.5", g.r.IntN(20))
	case 3:
		return fmt.Sprintf("'%c%d'", 'a'+rune(g.r.IntN(3)), g.r.IntN(9))
	case 4:
		return fmt.Sprint(g.r.IntN(2) == 0)
	case 5:
		return fmt.Sprintf("%dL", g.r.IntN(1<<40))
	case 6:
		return "'" + strings.Repeat("x", 255+g.r.IntN(3)) + fmt.Sprint(g.r.IntN(9)) + "'"
	case 7:
		return "NaN"
	case 8:
		return "[1, 2]"
	}
	return "datetime('2020-01-0" + fmt.Sprint(1+g.r.IntN(9)) + "')"
}

// put writes a document as another API does.
func (g *topGraph) put(id, fields string) {
	g.t.Helper()
	g.putAll([]core.Write{g.write(id, fields)})
}

func (g *topGraph) write(id, fields string) core.Write {
	d, err := doc.FromExtJSON(nil, []byte(fmt.Sprintf(`{"_id":"%s","_partitionKey":"%[1]s",%s}`, id, fields)))
	if err != nil {
		g.t.Fatal(err)
	}
	return core.Write{Kind: core.Create, PK: core.PartitionKey{value.ObjectOf(d).Get(g.c.KeyPaths()[0][0])},
		ID: value.StringOf(id), Doc: d}
}

func (g *topGraph) putAll(ws []core.Write) {
	g.t.Helper()
	for _, o := range g.c.WriteMany(context.Background(), ws, false) {
		if o.Err != nil {
			g.t.Fatal(o.Err)
		}
	}
}

// TestTopIsThatOfTheSort compares order().by(..).limit(n), which an index may answer, with the same traversal behind a
// step that keeps the index away, over graphs of random shapes. Elements with equal keys may come in any order.
func TestTopIsThatOfTheSort(t *testing.T) {
	walks := 0
	for seed := range uint64(12) {
		kind := []string{"modern", "roads", "byid"}[seed%3]
		g := newTopGraph(t, kind, seed)
		kinds := []int{3, 6, 3, 7, 4, 8, 9, 10}[seed%8]
		for i := range 60 {
			var b strings.Builder
			fmt.Fprintf(&b, "g.addV('%c').property('id','v%d').property('region','p%d')", 'a'+rune(g.r.IntN(2)), i, i%3)
			if g.r.IntN(8) > 0 {
				fmt.Fprintf(&b, ".property('n',%s)", g.value(kinds))
			}
			if seed%4 == 1 && g.r.IntN(8) == 0 {
				fmt.Fprintf(&b, ".property(list,'n',%s)", g.value(kinds))
			}
			g.run(b.String())
			if i > 0 {
				w := []string{"", ".property('w'," + g.value(kinds) + ")"}[min(1, g.r.IntN(6))]
				g.run(fmt.Sprintf("g.V('v%d').addE('e').to(g.V('v%d')).property('id','e%d')%s", i, g.r.IntN(i), i, w))
			}
		}
		if seed%6 == 5 { // of another API
			list := []string{`5`, `[5, 1]`, `[{"x": 1}]`, `[[7]]`, `{"_value": 3}`, `[]`}
			for i, n := range list[:1+seed%4*5/3] {
				g.put(fmt.Sprintf("w%d", i), fmt.Sprintf(`"region":"p1","n":%s`, n))
			}
		}
		for _, source := range []string{"V()", "V().hasLabel('a')", "V().has('n',gt(3))", "V().has('n',lt('b1'))",
			"E()", "E().hasLabel('e')", "E().has('w',gte(2))", "V().has('n')", "V().as('x')"} {
			by := "'n'"
			if source[0] == 'E' {
				by = "'w'"
			}
			for _, by := range []string{by, by + ",desc", "id", "T.id,desc"} {
				for _, n := range []string{"limit(1)", "limit(7)", "range(3,20)", "limit(100)"} {
					top := "g." + source + ".order().by(" + by + ")." + n
					sort := "g." + source + ".identity().order().by(" + by + ")." + n
					keys := ".id()"
					if by[0] == '\'' {
						keys = ".map(values(" + by[:3] + ").limit(1))"
					}
					got, want := g.run(top+keys), g.run(sort+keys)
					if got != want {
						t.Fatalf("seed %d, %s:\n%s\nsorted:\n%s\n%s", seed, top, got, want, g.profile(top))
					}
				}
				if strings.Contains(g.profile("g."+source+".order().by("+by+").limit(3)"), "Merge") {
					walks++
				}
			}
		}
	}
	if walks < 50 {
		t.Errorf("the index has answered %d of the traversals", walks)
	}
}

// TestTopReadsFew checks that the first elements are read alone, however many there are.
func TestTopReadsFew(t *testing.T) {
	g := newTopGraph(t, "modern", 1)
	const all = 30_000
	var ws []core.Write
	for i := range all {
		ws = append(ws, g.write(fmt.Sprintf("v%d", i), fmt.Sprintf(`"label":"%s","n":[{"_value":%d,"id":"p%[2]d"}]`,
			[]string{"rare", "often"}[min(1, i%5000)], i*7919%all)))
		if len(ws) == 100 {
			g.putAll(ws)
			ws = ws[:0]
		}
	}
	for script, most := range map[string]int64{
		"V().order().by('n').limit(10)":                                12,
		"V().order().by('n',desc).limit(10).values('n')":               12,
		"V().hasLabel('often').order().by('n').limit(10)":              12,
		"V().hasLabel('rare').order().by('n').limit(10)":               25,
		"V().has('n',lt(15000)).order().by('n').limit(10)":             12,
		"V().has('n',gt(29900)).order().by('n',desc).limit(10)":        12,
		"V().has('n',gt(29900)).order().by('n').limit(10)":             102,
		"V().order().by(id).limit(10)":                                 12,
		"V().order().by('n').range(20,30).id()":                        32,
		"V().as('x').order().by('n').limit(5).select('x').values('n')": 7,
	} {
		st, err := run.Run(context.Background(), g.w.g, &message.Request{Script: "g." + script},
			func(any, int64) error { return nil })
		if err != nil || st.Items > most {
			t.Errorf("%s: %d documents were read, %v", script, st.Items, err)
		}
	}
}
