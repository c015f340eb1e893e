package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// Steps with many traversers: their time doesn't grow with the square of the number, for which the timeout is much too
// short, and the number isn't cut.
func TestManyTraversers(t *testing.T) {
	w := &world{t: t}
	w.load("modern")
	const many = "inject(1..100000).unfold()"
	for script, want := range map[string]string{
		many + ".aggregate('x').where(within('x')).count()":                                                            "100000",
		many + ".aggregate('x').where(without('x')).count()":                                                           "0",
		many + ".aggregate(local, 'x').where(within('x')).count()":                                                     "100000",
		many + ".fold().as('l').unfold().where(within('l')).count()":                                                   "100000",
		many + ".groupCount('g').select('g').count(local).dedup()":                                                     "100000",
		many + ".aggregate('x').select('x').count()":                                                                   "100000",
		many + ".tree().by(count(local)).by().count(local)":                                                            "1",
		many + ".sample(50000).dedup().count()":                                                                        "50000",
		many + ".sample(50000).by(constant(2)).dedup().count()":                                                        "50000",
		many + ".is(lt(50000)).aggregate('y').cap('y').count(local)":                                                   "49999",
		"inject(1).repeat(union(identity(), identity()).barrier()).times(20).coin(1.0d).count()":                       "1048576",
		"inject(1).repeat(union(identity(), identity()).barrier()).times(20).coin(0.0d).count()":                       "0",
		"inject(1).repeat(union(identity(), identity()).barrier()).times(22).aggregate('x').cap('x').unfold().count()": "4194304",
	} {
		script = "g.withSideEffect('y', []).with('evaluationTimeout', 20000)." + script
		if got := strings.TrimSpace(w.run(&message.Request{Script: script}, false)); got != want {
			t.Errorf("%s gives %s, not %s", script, got, want)
		}
	}
}

// Tosses of a coin for equal traversers are drawn together. Their number is near its mean.
func TestCoinOfMany(t *testing.T) {
	w := &world{t: t}
	w.load("modern")
	for _, p := range []float64{0.0001, 0.3, 0.7, 0.99999} {
		const n = 1 << 24
		script := fmt.Sprintf(
			"g.inject(1).repeat(union(identity(), identity()).barrier()).times(24).coin(%v).count()", p)
		var got float64
		if _, err := fmt.Sscan(w.run(&message.Request{Script: script}, false), &got); err != nil {
			t.Fatal(err)
		}
		if mean, six := n*p, 6*4096*min(1, 2*p+0.01, 2*(1-p)+0.01); got < mean-six || got > mean+six {
			t.Errorf("coin(%v) of %d keeps %v", p, n, got)
		}
	}
}

// In a partitioned graph vertices of different partitions may have the same id.
func TestSideEffectsOfPartitionedGraphs(t *testing.T) {
	w := &world{t: t}
	w.load("partitioned")
	for _, r := range []string{"a", "b"} {
		w.run(&message.Request{Script: "g.addV('v').property('id', '1').property('region', '" + r + "')"}, false)
	}
	const script = "g.V().aggregate('x').cap('x').unfold().values('region')"
	if got := w.run(&message.Request{Script: script}, true); got != "a\nb\n" {
		t.Errorf("%s gives %s", script, got)
	}
	const found = "g.V().has('region', 'a').aggregate('x').V().where(without('x')).values('region')"
	if got := w.run(&message.Request{Script: found}, true); got != "b\n" {
		t.Errorf("%s gives %s", found, got)
	}
}

// An expression of math() may not be so long that it takes much memory to compute.
func TestLongMath(t *testing.T) {
	w := &world{t: t}
	w.load("modern")
	for n, want := range map[int]string{1000: "1001.0\n", 100_000: "compile error"} {
		binds := map[string]any{"e": "_" + strings.Repeat("+1", n)}
		req := &message.Request{Script: "g.inject(1).math(e)", Bindings: binds}
		if got := w.run(req, false); !strings.HasPrefix(got, want) {
			t.Errorf("%d additions give %.100s", n, got)
		}
	}
}

// A match of a regular expression ends with its request.
func TestLongMatchEnds(t *testing.T) {
	w := &world{t: t}
	w.load("modern")
	text := strings.Repeat("a", 200_000)
	for _, p := range []string{"TextP.regex", "TextP.notRegex"} {
		began := time.Now()
		got := w.run(&message.Request{Script: fmt.Sprintf(
			"g.with('evaluationTimeout', 50).inject('%s').is(%s('(a?){1000}b'))", text, p)}, false)
		if took := time.Since(began); took > 5*time.Second || !strings.Contains(got, "timeout error") {
			t.Errorf("%s: %.200s after %s", p, got, took)
		}
	}
}
