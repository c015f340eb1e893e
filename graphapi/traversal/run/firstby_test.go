package run_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/value"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// ordered runs a script and returns its results as texts, and the statistics.
func ordered(t *testing.T, g *run.Graph, script string) (out []string, st run.Stats) {
	t.Helper()
	st, err := run.Run(context.Background(), g, &message.Request{Script: script}, func(v any, bulk int64) error {
		for range bulk {
			out = append(out, gvalue.Text(v))
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out, st
}

// The first elements in the order of a property are those that a sort of all gives, whatever the property holds. The
// index gives them while each vertex has plain values of one type.
func TestFirstByProperty(t *testing.T) {
	long := strings.Repeat("x", 300)
	scripts := map[string]func(rnd *rand.Rand) string{ // what sets the property of a new vertex
		"numbers": func(rnd *rand.Rand) string { return fmt.Sprintf(".property('p',%d)", rnd.IntN(1000)) },
		"doubles": func(rnd *rand.Rand) string { return fmt.Sprintf(".property('p',%v)", rnd.NormFloat64()) },
		"texts":   func(rnd *rand.Rand) string { return fmt.Sprintf(".property('p','t%d')", rnd.IntN(1000)) },
		"several": func(rnd *rand.Rand) (s string) {
			for range 1 + rnd.IntN(3) {
				s += fmt.Sprintf(".property(list,'p',%d)", rnd.IntN(100))
			}
			return s
		},
		"absent": func(rnd *rand.Rand) string {
			if rnd.IntN(3) == 0 {
				return ""
			}
			return fmt.Sprintf(".property('p',%d)", rnd.IntN(1000))
		},
		"types": func(rnd *rand.Rand) string {
			return []string{".property('p',5)", ".property('p','a')", ".property('p',true)", ".property('p',1.5)",
				".property('p',NaN)"}[rnd.IntN(5)]
		},
		"NaN": func(rnd *rand.Rand) string {
			return []string{".property('p',5)", ".property('p',-7.5)", ".property('p',NaN)"}[rnd.IntN(3)]
		},
		"cut texts": func(rnd *rand.Rand) string { return fmt.Sprintf(".property('p','%s%d')", long, rnd.IntN(1000)) },
	}
	byIndex := map[string]bool{"numbers": true, "doubles": true, "texts": true, "several": true, "absent": true}
	for _, kind := range []string{"empty", "partitioned"} {
		for name, set := range scripts {
			t.Run(kind+"/"+name, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(3, uint64(len(name))))
				_, g := coreGraph(t, kind)
				for i := range 400 {
					ordered(t, g, fmt.Sprintf("g.addV('l%d').property('id','v%d').property('region','r%d')%s", i%2, i,
						i%3, set(rnd)))
				}
				if ordered(t, g, "g.V('v1').addE('e').to(g.V('v2')).property('weight',1)"); kind == "empty" {
					compareFirst(t, g, "g.E()", "weight", false)
				}
				compareFirst(t, g, "g.V()", "p", byIndex[name])
				compareFirst(t, g, "g.V().hasLabel('l1')", "p", byIndex[name])
				compareFirst(t, g, "g.V().as('x')", "p", byIndex[name])
				compareFirst(t, g, "g.V().has('p')", "p", false)
				compareFirst(t, g, "g.V()", "region", false)
				compareFirst(t, g, "g.V()", "nothing", false)
				compareEnds(t, g, "g.V()", "p", byIndex[name])
				compareEnds(t, g, "g.V().hasLabel('l1').as('x')", "p", byIndex[name])
				compareEnds(t, g, "g.V().has('p', gt(50))", "p", false)
				compareEnds(t, g, "g.V().hasNot('q')", "p", false)
				compareEnds(t, g, "g.V()", "nothing", false)
				compareEnds(t, g, "g.V()", "region", false)
				compareEnds(t, g, "g.E()", "weight", false)
				if kind == "partitioned" {
					inside := byIndex[name] && name != "absent"
					compareFirst(t, g, "g.V().has('region','r1')", "p", inside)
					compareFirst(t, g, "g.V().has('region','r1').hasLabel('l1')", "p", false)
					compareEnds(t, g, "g.V().has('region','r1')", "p", inside)
					compareEnds(t, g, "g.V().has('region',within('r1','r2'))", "p", false)
				}
			})
		}
	}
}

// compareFirst compares the first elements in the order of a property with a sort of all elements. Elements of one key
// may be given in any order, so their keys are compared.
func compareFirst(t *testing.T, g *run.Graph, from, key string, byIndex bool) {
	t.Helper()
	for _, n := range []int{1, 7, 1000} {
		for _, order := range []string{"", ",desc"} {
			sorted := fmt.Sprintf(".order().by('%s'%s).limit(%d).map(values('%s').limit(1))", key, order, n, key)
			got, st := ordered(t, g, from+sorted)
			want, _ := ordered(t, g, from+".barrier()"+sorted)
			if !slices.Equal(got, want) {
				t.Errorf("%s%s gives\n%v, a sort of all\n%v", from, sorted, got, want)
			}
			if byIndex && n < 10 && st.Items > 60 {
				t.Errorf("%s%s reads %d elements", from, sorted, st.Items)
			}
		}
	}
}

// compareEnds compares min() and max() of a property with those of all elements.
func compareEnds(t *testing.T, g *run.Graph, from, key string, byIndex bool) {
	t.Helper()
	for _, op := range []string{"min", "max"} {
		end := fmt.Sprintf(".values('%s').%s()", key, op)
		answer := func(script string) (out string, st run.Stats) {
			st, err := run.Run(context.Background(), g, &message.Request{Script: script}, func(v any, _ int64) error {
				out += gvalue.Text(v)
				return nil
			})
			if err != nil {
				out += " error"
			}
			return out, st
		}
		got, st := answer(from + end)
		want, _ := answer(from + ".barrier()" + end)
		if got != want {
			t.Errorf("%s%s gives %s, of all elements %s", from, end, got, want)
		}
		if byIndex && st.Items > 60 {
			t.Errorf("%s%s reads %d elements", from, end, st.Items)
		}
	}
}

// Documents of other APIs are vertices too, and their fields may have other forms than properties that a graph stores.
func TestFirstByPropertyOfDocuments(t *testing.T) {
	for _, foreign := range []string{`"p":50`, `"p":[50,2]`, `"p":[[50]]`, `"p":[[]]`, `"p":[]`, `"p":{"a":1}`,
		`"p":[{"a":1}]`, `"p":[{"_value":50}]`, `"p":null`, `"p":[{"_value":[1],"id":"x"}]`, `"p":[null]`, `"q":1`} {
		t.Run(foreign, func(t *testing.T) {
			c, g := coreGraph(t, "partitioned")
			for i := range 50 {
				ordered(t, g, fmt.Sprintf("g.addV('l').property('id','v%d').property('region','r').property('p',%d)", i,
					2*i))
			}
			v, err := doc.ValueFromJSON([]byte(`{"_id":"d","region":"r",` + foreign + `}`))
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Write(context.Background(), core.Write{Kind: core.Create,
				PK: core.PartitionKey{value.StringOf("r")}, ID: value.StringOf("d"), Doc: v.Bytes()})
			if err != nil {
				t.Fatal(err)
			}
			compareFirst(t, g, "g.V()", "p", false)
			compareEnds(t, g, "g.V()", "p", false)
		})
	}
}

// BenchmarkFirstByProperty measures the first ten of 20,000 vertices in the order of a property: from the index, and by
// a sort of all.
func BenchmarkFirstByProperty(b *testing.B) {
	_, g := coreGraph(b, "empty")
	run1 := func(script string) {
		n := 0
		_, err := run.Run(context.Background(), g, &message.Request{Script: script}, func(any, int64) error {
			n++
			return nil
		})
		if err != nil || n == 0 {
			b.Fatalf("%s: %d results, %v", script, n, err)
		}
	}
	for i := range 20_000 {
		run1(fmt.Sprintf("g.addV('l').property('id','v%d').property('score',%d)", i, i*7919%20_000))
	}
	for name, from := range map[string]string{"index": "g.V()", "sort": "g.V().barrier()"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run1(from + ".order().by('score',desc).limit(10)")
			}
		})
	}
}
