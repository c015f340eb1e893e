package run_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/orrerydb/orrery/core/clock"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/spill"
	"github.com/orrerydb/orrery/core/status"
	"github.com/orrerydb/orrery/graphapi/graph"
	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/traversal/run"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

// modern is TinkerPop's example graph.
const modern = `
g.addV('person').property(id, 1).property('name', 'marko').property('age', 29);
g.addV('person').property(id, 2).property('name', 'vadas').property('age', 27);
g.addV('software').property(id, 3).property('name', 'lop').property('lang', 'java');
g.addV('person').property(id, 4).property('name', 'josh').property('age', 32);
g.addV('software').property(id, 5).property('name', 'ripple').property('lang', 'java');
g.addV('person').property(id, 6).property('name', 'peter').property('age', 35);
g.V(1).addE('knows').to(__.V(2)).property(id, 7).property('weight', 0.5);
g.V(1).addE('knows').to(__.V(4)).property(id, 8).property('weight', 1.0);
g.V(1).addE('created').to(__.V(3)).property(id, 9).property('weight', 0.4);
g.V(4).addE('created').to(__.V(5)).property(id, 10).property('weight', 1.0);
g.V(4).addE('created').to(__.V(3)).property(id, 11).property('weight', 0.4);
g.V(6).addE('created').to(__.V(3)).property(id, 12).property('weight', 0.2)`

// roads is a graph with a partition key: regions, cities, and the roads between them.
const roads = `
g.addV('city').property('id', 'Seattle').property('region', 'USA').property('population', 737015);
g.addV('city').property('id', 'Portland').property('region', 'USA').property('population', 652503);
g.addV('city').property('id', 'Vancouver').property('region', 'Canada').property('population', 662248);
g.addV('city').property('id', 'Calgary').property('region', 'Canada').property('population', 1306784);
g.V(['USA', 'Seattle']).addE('road').property('id', 'I5').to(g.V(['USA', 'Portland'])).property('miles', 174);
g.V(['USA', 'Seattle']).addE('road').property('id', 'I5N').to(g.V(['Canada', 'Vancouver'])).property('miles', 142);
g.V(['Canada', 'Vancouver']).addE('road').property('id', 'TC1').to(g.V(['Canada', 'Calgary'])).property('miles', 604)`

type world struct {
	t     *testing.T
	store *memStore
	g     *run.Graph
	space *spill.Space // steps write all that they keep to it; nil: nothing
}

var frozen = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

// script returns the script that loads a graph.
func (w *world) script(name string) string {
	s := map[string]string{"modern": modern, "byid": modern, "roads": roads}[name]
	if name == "byid" { // where the id is the partition key, ids are strings
		s = regexp.MustCompile(`property\(id, (\d+)\)`).ReplaceAllString(s, "property(id, '$1')")
	}
	return strings.TrimSpace(s)
}

func (w *world) load(name string) string {
	switch name {
	case "modern", "empty":
		w.store = newMemStore(graph.KeySystem, "")
	case "roads", "partitioned":
		w.store = newMemStore(graph.KeyProperty, "region")
	case "byid":
		w.store = newMemStore(graph.KeyID, "")
	}
	w.g = run.NewGraphOn(w.store, clock.Fake(frozen))
	if w.space != nil {
		w.g.SpillTo(w.space)
		w.g.SpillEarly()
	}
	if script := w.script(name); script != "" {
		if out := w.run(&message.Request{Script: script}, false); strings.Contains(out, "error") {
			w.t.Fatalf("load %s: %s", name, out)
		}
	}
	w.store.log = nil
	return ""
}

func (w *world) run(req *message.Request, sorted bool) string {
	var lines []string
	_, err := run.Run(context.Background(), w.g, req, func(v any, bulk int64) error {
		for range bulk {
			lines = append(lines, gvalue.Text(v))
		}
		return nil
	})
	if sorted {
		sort.Strings(lines)
	}
	if err != nil {
		lines = append(lines, errText(err))
	}
	if len(lines) == 0 {
		return "nothing\n"
	}
	return scrub(strings.Join(lines, "\n") + "\n")
}

var guid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// scrub replaces the ids that differ in each run.
func scrub(s string) string { return guid.ReplaceAllString(s, "GUID") }

var kindNames = map[run.Kind]string{run.Parse: "parse", run.Compile: "compile", run.Runtime: "runtime", run.Unsupported: "unsupported",
	run.Timeout: "timeout", run.Fail: "fail", run.Memory: "memory", run.ReadOnly: "readonly"}

func errText(err error) string {
	var se *run.Error
	var ce *status.Error
	switch {
	case errors.As(err, &se):
		return kindNames[se.Kind] + " error: " + se.Error()
	case errors.As(err, &ce):
		return fmt.Sprintf("core error %d: %s", ce.Code, ce.Msg)
	}
	return "unexpected error: " + err.Error()
}

// TestScripts runs testdata/*.txt. Commands: load GRAPH; run (script, results in order), runsorted (results sorted),
// plan (the look-ups in the store), put (a document of another API, as JSON), docs (stored documents, as JSON). Lines
// ":bind name = literal" before a script bind variables. tokens sets materializeProperties; cosmos sets the service's
// limits.
func TestScripts(t *testing.T) { runScripts(t, nil) }

// runScripts is TestScripts, with a space to which steps write all that they keep.
func runScripts(t *testing.T, space *spill.Space) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &world{t: t, space: space}
		w.load("modern")
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.t = t
			req := &message.Request{Script: d.Input, Service: d.HasArg("cosmos")}
			if d.HasArg("tokens") {
				req.Tokens = true
			}
			for strings.HasPrefix(req.Script, ":bind ") {
				line, rest, _ := strings.Cut(req.Script, "\n")
				name, val, _ := strings.Cut(strings.TrimPrefix(line, ":bind "), " = ")
				if req.Bindings == nil {
					req.Bindings = map[string]any{}
				}
				req.Bindings[name], req.Script = literal(t, w, val), rest
			}
			switch d.Cmd {
			case "load":
				return w.load(d.CmdArgs[0].Key)
			case "run":
				return w.run(req, false)
			case "runsorted":
				return w.run(req, true)
			case "plan":
				w.store.log = nil
				w.run(req, false)
				return scrub(strings.Join(w.store.log, "\n") + "\n")
			case "put":
				b, err := doc.FromJSON(nil, []byte(d.Input), doc.JSONOptions{Names: doc.NoSQL})
				if err != nil {
					return err.Error() + "\n"
				}
				w.store.docs[docKey(w.store.keyOf(b), doc.Value(b).Get("_id"))] = b
				return ""
			case "docs":
				var out []string
				for _, b := range w.store.docs {
					out = append(out, string(doc.AppendJSON(nil, doc.Value(b))))
				}
				sort.Strings(out)
				return scrub(strings.Join(out, "\n") + "\n")
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// literal reads the value of a binding as a literal of the language.
func literal(t *testing.T, w *world, s string) any {
	var out any
	n := 0
	_, err := run.Run(context.Background(), w.g, &message.Request{Script: "g.inject(" + s + ")"},
		func(v any, _ int64) error {
			out = v
			n++
			return nil
		})
	if err != nil || n != 1 {
		t.Fatalf("binding %s: %v", s, err)
	}
	return out
}
