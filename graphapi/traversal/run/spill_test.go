package run_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/budget"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/gvalue/gvtest"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// files returns a space for temporary files in a directory of the test. At the end no file is left.
func files(t testing.TB) *spill.Space {
	t.Helper()
	s, err := spill.Open(filepath.Join(t.TempDir(), "spill"), spill.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.Files() != 0 || s.Used() != 0 {
			t.Errorf("%d files with %d bytes are left", s.Files(), s.Used())
		}
	})
	return s
}

// TestScriptsInFiles: the scripts of TestScripts have the same results when steps write all that they keep to files.
func TestScriptsInFiles(t *testing.T) {
	s := files(t)
	runScripts(t, s)
	if s.Written() == 0 {
		t.Error("nothing was written")
	}
}

// people loads a graph of n vertices. Each has a number of 0 to 96, a name that no other has, a text, and an edge to
// one of the first ten.
func people(t *testing.T, n int) *world {
	t.Helper()
	w := &world{t: t}
	_, w.g = coreGraph(t, "empty")
	text := strings.Repeat("x", 800)
	for i := range n {
		script := fmt.Sprintf("g.addV('v').property(id, %d).property('n', %d).property('name', 'name %d')"+
			".property('t', '%s').as('a').addE('e').to(__.V(%d)).property('w', %d)", i, i*7919%97, i, text, i%10, i%13)
		if out := w.run(&message.Request{Script: script}, false); strings.Contains(out, "error") {
			t.Fatal(out)
		}
	}
	return w
}

// unlike are the steps whose results differ from run to run, which write, or which show how a traversal ran.
var unlike = regexp.MustCompile(`sample|coin|shuffle|addV|addE|property|drop|merge|[pP]rofile`)

// TestRandomTraversalsInFiles: random traversals that collect have the same results in memory and in files. If one
// fails behind a dedup(), that may have given fewer results before.
func TestRandomTraversalsInFiles(t *testing.T) {
	s := files(t)
	var gs [2]*run.Graph
	for i := range gs {
		w := &world{t: t}
		w.load("modern")
		gs[i] = w.g
	}
	gs[1].SpillTo(s)
	gs[1].SpillEarly()
	ctx, compared := context.Background(), 0
	for seed := range int64(4000) {
		b := gvtest.Traversal(rand.New(rand.NewSource(seed)))
		b.Add([]string{"order", "group", "groupCount", "dedup"}[seed%4])
		if unlike.MatchString(gvalue.Text(b)) {
			continue
		}
		var got [2]string
		failed, late := false, false
		for i, g := range gs {
			n, req := int64(0), &message.Request{Bytecode: b, Timeout: time.Second}
			_, err := run.Run(ctx, g, req, func(v any, bulk int64) error {
				if n += bulk; n > 1000 {
					return errors.New("many results")
				}
				got[i] += strings.Repeat(gvalue.Text(v)+"\n", int(bulk))
				return nil
			})
			if failed = failed || err != nil; err != nil {
				got[i] += errText(err)
				late = late || strings.HasPrefix(errText(err), "timeout")
			}
		}
		if late { // how far it came depends on the machine
			continue
		}
		if compared++; got[0] != got[1] && !(failed && strings.Contains(gvalue.Text(b), "dedup()")) {
			t.Errorf("%s\n%.500s\nin files\n%.500s", gvalue.Text(b), got[0], got[1])
		}
	}
	if compared < 1000 || s.Written() == 0 {
		t.Errorf("%d were compared, %d bytes written", compared, s.Written())
	}
}

// results runs a script and returns its results and its error.
func results(ctx context.Context, w *world, script string, binds map[string]any) (out []string, err error) {
	req := &message.Request{Script: script, Bindings: binds, Lazy: true}
	_, err = run.Run(ctx, w.g, req, func(v any, bulk int64) error {
		if m, ok := v.(*gvalue.LazyMap); ok {
			all := gvalue.NewMap(m.Len)
			if err := m.Each(func(e gvalue.Entry) error { all.Append(e.Key, e.Value); return nil }); err != nil {
				return err
			}
			if v = all; all.Len() != m.Len {
				return fmt.Errorf("%d entries of %d", all.Len(), m.Len)
			}
		}
		text := gvalue.Text(v)
		if m, ok := v.(*gvalue.TraversalMetrics); ok {
			text = gvalue.Text(m.Metrics[len(m.Metrics)-1].Annotations)
		}
		for range bulk {
			out = append(out, text)
		}
		return nil
	})
	return out, err
}

// small is a budget for requests of which none may hold much.
func small() *budget.Budget { return budget.New(64<<20, 300<<10) }

// spilling are scripts whose steps need more memory than small gives. numbers is a list of 30,000 numbers.
var spilling = []string{
	"g.V().order().by('n')", "g.V().order().by('n', desc).by('name')", "g.V().order().by(out().values('name'))",
	"g.V().order()", "g.E().order().by('w', desc).by(outV().values('name'))",
	"g.V().as('a').out().order().by(select('a').by('name')).path()", "g.V().out().order().by(id).path().by('name')",
	"g.V().properties('t', 'n').order().by(value)", "g.V().valueMap(true).order().by(select('name'))",
	"g.withSack(1).V().sack(sum).by('n').order().by('n').sack()", "g.inject(numbers).unfold().order().by(desc)",
	"g.inject(numbers).unfold().math('_ / 7').order()",
	"g.V(0, 1, 2, 3, 4, 5, 6, 7, 8, 9).repeat(__.in().order().by('name')).times(1).path()",
	"g.V().order().by('n').valueMap().order().by(select('name'))",
	"g.V(0).as('a', 'b').V().as('c').order().by('n', desc).select('a', 'c').by('name')",
	"g.inject(numbers).unfold().as('x').union(identity(), constant('text')).order().select('x')",
	"g.V().order().by('n').range(300, 500)", "g.V().order().by('n').limit(400)",
	"g.inject(1, 2, 3).V().outE().properties('w').order()", "g.V().order().by('n').count()",
	"g.inject(numbers).unfold().groupCount()", "g.inject(numbers).unfold().group()",
	"g.inject(numbers).unfold().group().by(math('_ % 9000'))",
	"g.inject(numbers).unfold().group().by(math('_ % 9000')).by(math('_ / 3'))",
	"g.inject(numbers).unfold().group().by(math('_ % 9000')).by(count())",
	"g.inject(numbers).unfold().group().by(math('_ % 9000')).by(sum())",
	"g.inject(numbers).unfold().group().by(math('_ % 9000')).by(max())",
	"g.inject(numbers).unfold().group().by(math('_ % 9000')).by(mean())",
	"g.inject(numbers).unfold().group().by(math('_ % 9000')).by(fold())",
	"g.inject(numbers).unfold().group().by(math('_ % 9000')).by(is(gt(4)).fold())",
	"g.inject(numbers).unfold().group().by(math('_ % 9000')).by(is(gt(40)))",
	"g.inject(numbers).unfold().group().by(math('_ % 9000')).by(is(gt(40)).count())",
	"g.inject(numbers).unfold().groupCount().unfold()",
	"g.inject(numbers).unfold().group().by(math('_ % 9000')).unfold().select(keys)",
	"g.inject(numbers).unfold().groupCount().by(math('_ % 7000')).unfold()" +
		".order().by(values, desc).by(keys).range(5, 900)",
	"g.inject(numbers).unfold().groupCount().unfold().groupCount().by(values)",
	"g.inject(1, 2, 3, 4, 5, 6).V().groupCount().unfold()", "g.V().group().by('name').by('t').unfold()",
	"g.inject(1, 2, 3, 4).V().group().by('name').by(out().order().by('n').values('t')).unfold()",
	"g.inject(numbers).unfold().dedup()", "g.inject(numbers).unfold().math('_ % 20000').dedup()",
	"g.inject(numbers).unfold().dedup().by(math('_ % 20000'))", "g.inject(numbers).unfold().dedup().order().by(desc)",
	"g.inject(numbers).unfold().as('a').dedup().by(math('_ % 20000')).select('a')",
	"g.inject(numbers).unfold().as('a').math('_ % 20000').as('b').dedup('b').select('a', 'b')",
	"g.V().properties().dedup().by(project('a', 'b', 'c', 'd', 'e').by(id)).value()",
}

func numbers() map[string]any {
	list := make([]any, 30_000)
	for i := range list {
		list[i] = int64(i * 7919 % len(list))
	}
	return map[string]any{"numbers": list}
}

// TestSpillingStepsAreEqual: with little memory, steps write to files, give the same results as in memory, and leave
// neither files nor memory. Without a place for files they are refused.
func TestSpillingStepsAreEqual(t *testing.T) {
	w, ctx := people(t, 600), context.Background()
	for _, script := range spilling {
		w.g.ChargeTo(nil)
		w.g.SpillTo(nil)
		want, err := results(ctx, w, script, numbers())
		if err != nil || len(want) == 0 {
			t.Fatalf("%s: %d results, %v", script, len(want), err)
		}
		b, s := small(), files(t)
		w.g.ChargeTo(b)
		if _, err := results(ctx, w, script, numbers()); !status.Is(err, status.MemoryLimit) {
			t.Errorf("%s: without files: %v", script, err)
		}
		w.g.SpillTo(s)
		got, err := results(ctx, w, script, numbers())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d results, want %d, %v", script, len(got), len(want), err)
		}
		if s.Written() == 0 || s.Files() != 0 || b.Used() != 0 {
			t.Errorf("%s: %d bytes were written, %d files and %d bytes of memory are left", script, s.Written(),
				s.Files(), b.Used())
		}
	}
}

// TestFilesAreRemoved: however a request ends, its files are removed and its memory is returned.
func TestFilesAreRemoved(t *testing.T) {
	w := people(t, 600)
	b, s := small(), files(t)
	w.g.ChargeTo(b)
	w.g.SpillTo(s)
	gone := errors.New("the client has left")
	for _, script := range spilling {
		req := &message.Request{Script: script, Bindings: numbers(), Lazy: true}
		none := true
		_, err := run.Run(context.Background(), w.g, req, func(any, int64) error {
			if none = s.Files() == 0; none {
				return nil
			}
			return gone
		})
		if none != (err == nil) || err != nil && !errors.Is(err, gone) || s.Files() != 0 || b.Used() != 0 {
			t.Errorf("%s: a client left: %v, %d files, %d bytes of memory", script, err, s.Files(), b.Used())
		}
		if none && !strings.HasSuffix(script, ".count()") && !strings.HasSuffix(script, ".by(values)") {
			t.Errorf("%s: there was no file while it returned results", script)
		}
		for _, end := range []int{5, 30, 60, 100, 200} {
			_, err := run.Run(&fading{Context: context.Background(), end: end}, w.g, req,
				func(any, int64) error { return nil })
			if err != nil && !status.Is(err, status.Unavailable) || s.Files() != 0 || s.Used() != 0 || b.Used() != 0 {
				t.Errorf("%s: cancelled after %d: %v, %d files, %d bytes of memory", script, end, err, s.Files(),
					b.Used())
			}
		}
	}
}

// TestAFullDiskEndsTheRequest: what files may not hold is refused with the core's error.
func TestAFullDiskEndsTheRequest(t *testing.T) {
	w := people(t, 600)
	s, err := spill.Open(filepath.Join(t.TempDir(), "spill"), spill.Options{Limit: 100 << 10})
	if err != nil {
		t.Fatal(err)
	}
	b := small()
	w.g.ChargeTo(b)
	w.g.SpillTo(s)
	for _, script := range spilling {
		_, err := results(context.Background(), w, script, numbers())
		if !status.Is(err, status.StoreFull) || s.Files() != 0 || b.Used() != 0 {
			t.Errorf("%s: %v, %d files, %d bytes of memory", script, err, s.Files(), b.Used())
		}
	}
}

// TestWritersKeepElementsInMemory: in a traversal that changes elements, all that refer to an element see the change.
// So its steps write nothing to files, and are refused when they need too much memory.
func TestWritersKeepElementsInMemory(t *testing.T) {
	w := people(t, 600)
	s := files(t)
	w.g.SpillTo(s)
	w.g.SpillEarly()
	got, err := results(context.Background(), w,
		"g.V(5).as('a').out().order().by('n').select('a').property('n', 1).select('a').values('n')", nil)
	if err != nil || !slices.Equal(got, []string{"1"}) {
		t.Errorf("%v, %v", got, err)
	}
	w.g.ChargeTo(small())
	_, err = results(context.Background(), w, "g.V().order().by('n').property('m', 1)", nil)
	if !status.Is(err, status.MemoryLimit) || s.Written() != 0 {
		t.Errorf("%v, %d bytes were written", err, s.Written())
	}
}

// TestProfileShowsFiles: both profiles show what a step has written to files.
func TestProfileShowsFiles(t *testing.T) {
	w := people(t, 600)
	w.g.ChargeTo(small())
	w.g.SpillTo(files(t))
	for _, step := range []string{"profile", "executionProfile"} {
		got, err := results(context.Background(), w, "g.V().order().by('n')."+step+"()", nil)
		if err != nil || len(got) != 1 || !spillShown.MatchString(got[0]) {
			t.Errorf("%s: %s, %v", step, got, err)
		}
	}
}

var spillShown = regexp.MustCompile(`spilled=\{runs=[1-9], rows=600, bytes=\d{6}\}`)
