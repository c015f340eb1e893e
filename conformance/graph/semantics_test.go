package graph

import (
	"strings"
	"testing"
)

// toy is TinkerPop's example graph with its own ids.
const toy = `
g.addV('person').property(id, 1).property('name', 'marko').property('age', 29).as('a').
  addV('person').property(id, 2).property('name', 'vadas').property('age', 27).as('b').
  addV('software').property(id, 3).property('name', 'lop').property('lang', 'java').as('c').
  addV('person').property(id, 4).property('name', 'josh').property('age', 32).as('d').
  addV('software').property(id, 5).property('name', 'ripple').property('lang', 'java').as('e').
  addV('person').property(id, 6).property('name', 'peter').property('age', 35).as('f').
  addE('knows').from('a').to('b').property(id, 7).property('weight', 0.5).
  addE('knows').from('a').to('d').property(id, 8).property('weight', 1.0).
  addE('created').from('a').to('c').property(id, 9).property('weight', 0.4).
  addE('created').from('d').to('e').property(id, 10).property('weight', 1.0).
  addE('created').from('d').to('c').property(id, 11).property('weight', 0.4).
  addE('created').from('f').to('c').property(id, 12).property('weight', 0.2)`

// TestSemantics compares results with those of TinkerPop's own graph. A result that begins with ! is a part of an
// error's text.
func TestSemantics(t *testing.T) {
	c := start(t).client(t, account, key)
	must(t, c, toy)
	for _, x := range [][2]string{
		{"g.V(1).repeat(both().order().by('name')).times(3).count()", "17"},
		{"g.V(1).repeat(both().order().by('name')).times(3).limit(1).values('name')", "josh"},
		{"g.V(1).repeat(groupCount('m').by(loops()).out()).times(3).cap('m')", "map[0:1 1:3 2:2]"},
		{"g.V(1).repeat(both().aggregate('x')).times(3).cap('x').unfold().count()", "27"},
		{"g.V(1).repeat(both().tail(2)).times(3).count()", "2"},
		{"g.V().repeat(both()).times(60).count()", "!long overflow"},
		{"g.inject(1).choose(is(1), constant(10).fold(), fold())", "[10]"},
		{"g.inject(2).choose(is(1), constant(10).fold(), count())", "1"},
		{"g.V(1).addE('self').to(__.V(2)).property(id, 1).id()", "1"},
		{"g.V(2).addE('self').to(__.V(1)).property(id, 1)", "!Resource with specified id or name already exists."},
		{"g.V(2).addE('self').to(__.V(1)).property(id, 7)", "!Resource with specified id or name already exists."},
		{"g.V(1).outE('self').inV().id()", "2"},
		{"g.E(1).outV().values('name')", "marko"},
		{"g.mergeV([(T.label): null, name: 'x'])", "!does not allow null Map values"},
		{"g.mergeV(['~label': 'x'])", "!Property key can not be a hidden key: ~label"},
		{"g.V(1).mergeE(null).count()", "7"},
		{"g.V(1).mergeE([(T.label): 'none'])", "!Out Vertex not specified"},
		{"g.V().sack(assign).by('age').sack().order()", "27 29 32 35"},
		{"g.addV('x').property('k', 1).property('k', 2).values('k')", "1 2"},
		{"g.inject('a').concat(inject('b'))", "aa"},
		{"g.inject(null).asBool()", "!Can't parse null as Boolean."},
		{"g.V().count()", "7"},
		{"g.E().count()", "7"},
	} {
		rs, err := submit(c, x[0])
		if part, refused := strings.CutPrefix(x[1], "!"); refused {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v %v, want the error %s", x[0], texts(rs), err, part)
			}
			continue
		}
		if got := strings.Join(texts(rs), " "); err != nil || got != x[1] {
			t.Errorf("%s: got %s %v, want %s", x[0], got, err, x[1])
		}
	}
}
