package graph

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
)

var (
	__     = gremlingo.T__
	gt     = gremlingo.P.Gt
	within = gremlingo.P.Within
	tid    = gremlingo.T.Id
	tlabel = gremlingo.T.Label
)

type trav = *gremlingo.GraphTraversal

// Traversals on TinkerPop's example graph, with the sorted texts of their results.
func TestBytecode(t *testing.T) {
	g := start(t).source(t, account, "gmodern")
	modern(t, g)
	o, card := gremlingo.Order, gremlingo.Cardinality
	for _, x := range []struct {
		name string
		q    trav
		want string
	}{
		{"V count", g.V().Count(), "6"},
		{"E count", g.E().Count(), "6"},
		{"V by int id", g.V(int32(1)).Values("name"), "marko"},
		{"V by string id", g.V("1").Values("name"), "marko"},
		{"V by two ids", g.V(1, 2).Values("name"), "marko vadas"},
		{"V by list of ids", g.V([]any{int32(1), int32(2)}).Values("name"), "marko vadas"},
		{"V of nobody", g.V(99), ""},
		{"rounds of order", g.V(1).Repeat(__.Both().Order().By("name")).Times(3).Count(), "17"},
		{"choose with folds", g.Inject(1).Choose(__.Is(1), __.Constant(10).Fold(), __.Count()), "[10]"},
		{"hasLabel", g.V().HasLabel("software").Values("name"), "lop ripple"},
		{"hasLabel of two", g.V().HasLabel("software", "person").Count(), "6"},
		{"has key value", g.V().Has("name", "josh").Values("age"), "32"},
		{"has label key value", g.V().Has("person", "name", "josh").Values("age"), "32"},
		{"has predicate", g.V().Has("age", gt(int32(29))).Values("name"), "josh peter"},
		{"has within", g.V().Has("age", within(27, 35)).Values("name"), "peter vadas"},
		{"has between", g.V().Has("age", gremlingo.P.Between(27, 32)).Values("name"), "marko vadas"},
		{"has and", g.V().Has("age", gt(27).And(gremlingo.P.Lt(32))).Values("name"), "marko"},
		{"has not", g.V().Has("name", gremlingo.P.Neq("lop")).Count(), "5"},
		{"has text", g.V().Has("name", gremlingo.TextP.StartingWith("m")).Values("name"), "marko"},
		{"has key", g.V().Has("age").Count(), "4"},
		{"hasNot", g.V().HasNot("age").Values("name"), "lop ripple"},
		{"hasId", g.V().HasId(int32(1)).Values("name"), "marko"},
		{"out", g.V(1).Out("knows").Values("name"), "josh vadas"},
		{"out of two labels", g.V(1).Out("knows", "created").Values("name"), "josh lop vadas"},
		{"in", g.V(3).In("created").Values("name"), "josh marko peter"},
		{"both", g.V(4).Both().Values("name"), "lop marko ripple"},
		{"outE", g.V(1).OutE("knows").Values("weight"), "0.5 1"},
		{"inE", g.V(3).InE().Count(), "3"},
		{"bothE", g.V(4).BothE().Count(), "3"},
		{"outE inV", g.V(1).OutE("knows").InV().Values("name"), "josh vadas"},
		{"inE outV", g.V(3).InE().OutV().Values("name"), "josh marko peter"},
		{"E bothV", g.E(int32(7)).BothV().Values("name"), "marko vadas"},
		{"otherV", g.V(2).BothE().OtherV().Values("name"), "marko"},
		{"two steps", g.V(1).Out().Out().Values("name"), "lop ripple"},
		{"edge has", g.V(1).OutE().Has("weight", gt(0.45)).InV().Values("name"), "josh vadas"},
		{"where traversal", g.V().Where(__.Out("created")).Values("name"), "josh marko peter"},
		{"where not", g.V().HasLabel("person").Not(__.Out("created")).Values("name"), "vadas"},
		{"and", g.V().And(__.Has("age"), __.Out("knows")).Values("name"), "marko"},
		{"or", g.V().Or(__.Has("lang"), __.Out("knows")).Values("name"), "lop marko ripple"},
		{"is", g.V().Values("age").Is(gremlingo.P.Gte(32)), "32 35"},
		{"where by label", g.V(1).As("a").Out("created").In("created").Where(gremlingo.P.Neq("a")).Values("name"),
			"josh peter"},
		{"id", g.V().Has("name", "lop").Id(), "3"},
		{"label", g.V(3).Label(), "software"},
		{"properties value", g.V(1).Properties("name").Value(), "marko"},
		{"properties key", g.V(1).Properties().Key(), "age name"},
		{"sum", g.V().Values("age").Sum(), "123"},
		{"min", g.V().Values("age").Min(), "27"},
		{"max", g.V().Values("age").Max(), "35"},
		{"mean", g.V().Values("age").Mean(), "30.75"},
		{"count of none", g.V(99).Count(), "0"},
		{"fold", g.V().Values("age").Order().Fold(), "[27 29 32 35]"},
		{"fold unfold", g.V().Values("age").Fold().Unfold().Count(), "4"},
		{"order limit", g.V().Order().By("name").Limit(2).Values("name"), "josh lop"},
		{"order desc", g.V().HasLabel("person").Order().By("age", o.Desc).Values("name").Limit(1), "peter"},
		{"range", g.V().Values("name").Order().Range(1, 3), "lop marko"},
		{"tail", g.V().Values("name").Order().Tail(1), "vadas"},
		{"dedup", g.V().Out("created").Dedup().Values("name"), "lop ripple"},
		{"select", g.V(1).As("a").Out("created").As("b").Select("a", "b").By("name"), "map[a:marko b:lop]"},
		{"select one", g.V(1).As("a").Out("created").Select("a").Values("name"), "marko"},
		{"project", g.V(1).Project("n", "c").By("name").By(__.Out().Count()), "map[c:3 n:marko]"},
		{"valueMap", g.V(1).ValueMap("name"), "map[name:[marko]]"},
		{"elementMap", g.V(3).ElementMap("name"), "map[id:3 label:software name:lop]"},
		{"path", g.V(1).Out("created").Path().By("name"), "path[marko, lop]"},
		{"repeat times", g.V(1).Repeat(__.Out()).Times(2).Values("name"), "lop ripple"},
		{"repeat emit", g.V(1).Repeat(__.Out()).Emit().Values("name"), "josh lop lop ripple vadas"},
		{"repeat until", g.V(1).Repeat(__.Out()).Until(__.Has("lang")).Values("name"), "lop lop ripple"},
		{"union", g.V(1).Union(__.Values("name"), __.Out("knows").Values("name")), "josh marko vadas"},
		{"coalesce", g.V(2).Coalesce(__.Out().Values("name"), __.Constant("none")), "none"},
		{"choose", g.V().HasLabel("person").Choose(__.Has("age", gt(30)), __.Constant("old"), __.Constant("young")),
			"old old young young"},
		{"optional", g.V(2).Optional(__.Out()).Values("name"), "vadas"},
		{"group", g.V().Group().By(tlabel).By(__.Count()), "map[person:4 software:2]"},
		{"groupCount", g.V().GroupCount().By(tlabel), "map[person:4 software:2]"},
		{"constant", g.V(1).Constant(7), "7"},
		{"inject", g.Inject("a", "b"), "a b"},
		{"inject values of all kinds", g.Inject(true, nil, 1.5, float32(0.25), int64(5)), "0.25 1.5 5 <nil> true"},
		{"sideEffect", g.V(1).SideEffect(__.Out()).Values("name"), "marko"},
		{"discard", g.V().Discard(), ""},
		{"set property", g.V(2).Property(card.Single, "age", int32(28)).Values("age"), "28"},
		{"drop property", g.V(2).Properties("age").Drop(), ""},
		{"dropped", g.V(2).Values("age"), ""},
		{"addV", g.AddV("thing").Property(tid, "x").Property("a", "b").Values("a"), "b"},
		{"drop vertex", g.V("x").Drop(), ""},
		{"V after drop", g.V("x"), ""},
		{"drop edge", g.E(12).Drop(), ""},
		{"edge gone", g.V(6).OutE().Count(), "0"},
	} {
		t.Run(x.name, func(t *testing.T) {
			rs, err := x.q.ToList()
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(texts(rs), " ")
			if got != x.want {
				t.Errorf("got %s, want %s", got, x.want)
			}
		})
	}
}

func TestElements(t *testing.T) {
	g := start(t).source(t, account, "gmodern")
	modern(t, g)
	r, err := g.V(1).Next()
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.GetVertex()
	if err != nil {
		t.Fatal(err)
	}
	props, _ := v.Properties.([]any)
	if v.Id != int32(1) || v.Label != "person" || len(props) != 2 {
		t.Errorf("got %v %v", v, props)
	}
	p, _ := props[0].(*gremlingo.VertexProperty)
	if p == nil || p.Label != "name" || p.Value != "marko" {
		t.Errorf("property %+v", p)
	}
	r, err = g.E(7).Next()
	if err != nil {
		t.Fatal(err)
	}
	e, err := r.GetEdge()
	if err != nil {
		t.Fatal(err)
	}
	if e.Label != "knows" || e.OutV.Id != int32(1) || e.InV.Id != int32(2) || e.OutV.Label != "person" ||
		len(e.Properties.([]any)) != 1 {
		t.Errorf("got %+v", e)
	}
	r, err = g.With("materializeProperties", "tokens").V(1).Next()
	if err != nil {
		t.Fatal(err)
	}
	v, _ = r.GetVertex()
	if props, _ := v.Properties.([]any); len(props) != 0 {
		t.Errorf("tokens: %v", v.Properties)
	}
}

// A result larger than one message, and several concurrent requests on one connection.
func TestChunksAndPipelining(t *testing.T) {
	g := start(t).source(t, account, "g")
	const n = 500
	vs := make([]any, n)
	for i := range vs {
		vs[i] = int32(i)
	}
	errs := make(chan error, 20)
	for range cap(errs) {
		go func() {
			rs, err := g.Inject(vs...).ToList()
			if err == nil && (len(rs) != n || rs[n-1].Data != int32(n-1)) {
				err = fmt.Errorf("%d results", len(rs))
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// A value that gremlin-go writes to a property is read back unchanged.
func TestPropertyKinds(t *testing.T) {
	g := start(t).source(t, account, "g")
	for i, v := range []any{"text ü", true, int32(7), int64(1) << 40, 1.5} {
		id := fmt.Sprint("k", i)
		if err := <-g.AddV("k").Property(tid, id).Property("v", v).Iterate(); err != nil {
			t.Fatal(err)
		}
		r, err := g.V(id).Values("v").Next()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(r.Data, v) {
			t.Errorf("%T %v came back as %T %v", v, v, r.Data, r.Data)
		}
	}
}

func TestBytecodeErrors(t *testing.T) {
	g := start(t).source(t, account, "g")
	for name, x := range map[string]struct {
		q    trav
		text string
	}{
		"sum of texts": {g.Inject("a").Sum(), ""},
		"lambda":       {g.Inject(1).Map(&gremlingo.Lambda{Script: "it.get()"}), ""},
		"timeout": {g.With("evaluationTimeout", 50).Inject(1).Repeat(__.Identity()).Until(
			__.Not(__.Identity())), "imeout"},
	} {
		_, err := x.q.ToList()
		if err == nil || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: got %v, want an error with %q", name, err, x.text)
		}
	}
	if r, err := g.Inject(1).Next(); err != nil || r.Data != int32(1) { // inject sends small numbers as Int
		t.Errorf("after the errors: %v %v", r, err)
	}
}
