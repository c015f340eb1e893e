package graph

import (
	"strings"
	"testing"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
)

const cities = "/dbs/traffic/colls/cities"

func TestScripts(t *testing.T) {
	c := start(t).client(t, account, key)
	must(t, c, "g.addV('person').property(id, 1).property('name', 'marko').property('age', 29)")
	must(t, c, "g.addV('person').property(id, x).property('name', n)", map[string]any{"x": 2, "n": "vadas"})
	must(t, c, "g.V(1).addE('knows').to(g.V(2)).property('weight', 0.5)")
	for script, want := range map[string]string{
		"g.V().count()":                                                       "2",
		"g.V(1).values('name')":                                               "marko",
		"g.V(1).out('knows').values('name')":                                  "vadas",
		"g.V(2).in('knows').values('name')":                                   "marko",
		"g.V().has('name', within('marko', 'x')).id()":                        "1",
		"g.V().hasLabel('person').order().by('name').limit(1).values('name')": "marko",
		"g.inject(1, 2, 3)":                                                   "1 2 3",
		"g.V().nobody":                                                        "!",
		"g.V().values('name').fold().unfold()":                                "marko vadas",
		"g.V(1).project('n').by('name')":                                      "map[n:marko]",
		"g.V(99)":                                                             "",
	} {
		rs, err := submit(c, script)
		if want == "!" {
			if err == nil {
				t.Errorf("%s: no error", script)
			}
			continue
		}
		if got := strings.Join(texts(rs), " "); err != nil || got != want {
			t.Errorf("%s: got %s %v, want %s", script, got, err, want)
		}
	}
	if got := texts(must(t, c, "[x + x, 100 - x, n + x]", map[string]any{"x": 2, "n": "a"})); len(got) != 3 ||
		got[0] != "4" || got[1] != "98" || got[2] != "a2" {
		t.Errorf("sums of bindings: %v", got)
	}
}

// The examples of the service's documentation, run like by one of its applications.
func TestPartitionedGraph(t *testing.T) {
	c := start(t).client(t, cities, key)
	must(t, c, "g.addV('city').property('id', 'Seattle').property('region', 'USA').property('size', 3)")
	must(t, c, "g.addV('city').property('id', 'Portland').property('region', 'USA')")
	must(t, c, "g.addV('city').property('id', 'Seattle').property('region', 'Mars')")
	must(t, c, "g.V(['USA', 'Seattle']).addE('road').to(g.V(['USA', 'Portland'])).property('id', 'I5')")
	for script, want := range map[string]string{
		"g.V(['USA', 'Seattle']).values('size')":               "3",
		"g.V(['USA', 'Seattle'], ['Mars', 'Seattle']).count()": "2",
		"g.V(['DE', 'Seattle'])":                               "",
		"g.V('Seattle').count()":                               "2",
		"g.V('Seattle').has('region', 'USA').count()":          "1",
		"g.E(['USA', 'I5']).count()":                           "1",
		"g.E(['USA', 'I5']).outV().id()":                       "Seattle",
		"g.V(['USA', 'Seattle']).out('road').id()":             "Portland",
		"g.V(['USA', 'Portland']).in('road').id()":             "Seattle",
		"g.V(['Mars', 'Seattle']).outE().count()":              "0",
	} {
		rs, err := submit(c, script)
		if got := strings.Join(texts(rs), " "); err != nil || got != want {
			t.Errorf("%s: got %s %v, want %s", script, got, err, want)
		}
	}
	for script, want := range map[string]string{
		"g.addV('city').property('id', 'nowhere')":                                                 "Cannot add a vertex where the partition key property has value 'null'.",
		"g.addV('city').property('id', 'Seattle').property('region', 'USA')":                       "Resource with specified id or name already exists.",
		"g.V(['USA','Seattle']).addE('road').to(g.V(['Mars','Seattle'])).property('region', 'DE')": "the property value is different from that of the source vertex",
		"g.V().has(":       "Gremlin Query Compilation Error",
		"g.V().nonsense()": "GraphCompileException",
	} {
		if _, err := submit(c, script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", script, err, want)
		}
	}
}

// Logins that fail, each with the text of the reason.
func TestLogins(t *testing.T) {
	s := start(t)
	for name, x := range map[string]struct{ user, password, want string }{
		"wrong key":     {cities, "bm9wZQ==", "Unauthorized: Invalid credentials provided"},
		"wrong account": {"nobody", key, "Unauthorized: Invalid credentials provided"},
		"unknown graph": {"/dbs/traffic/colls/none", key, "Owner resource does not exist"},
	} {
		if _, err := submit(s.client(t, x.user, x.password), "g.V()"); err == nil ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %q", name, err, x.want)
		}
	}
	for _, user := range []string{account, cities} {
		if rs, err := submit(s.client(t, user, key), "g.V().count()"); err != nil || len(rs) != 1 {
			t.Errorf("%s: %v %v", user, rs, err)
		}
	}
}

func TestSession(t *testing.T) {
	s := start(t)
	c, err := gremlingo.NewClient(s.url, func(o *gremlingo.ClientSettings) {
		o.AuthInfo = gremlingo.BasicAuthInfo(account, key)
		o.Session = "4d8cbc3b-2d0b-4d22-9e5d-0c6b3f2b9e2a"
		o.LogVerbosity = gremlingo.Off
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if rs := must(t, c, "g.addV('s').count()"); len(rs) != 1 {
			t.Errorf("got %v", rs)
		}
	}
	c.Close()
	if got := texts(must(t, s.client(t, account, key), "g.V().count()")); got[0] != "3" {
		t.Errorf("got %v", got)
	}
}
