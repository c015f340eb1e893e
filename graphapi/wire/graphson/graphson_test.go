package graphson

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/graphapi/gvalue"
	"github.com/orrerydb/orrery/graphapi/gvalue/gvtest"
	"github.com/orrerydb/orrery/graphapi/wire/message"
)

var (
	v1  = Codec{Version: 1}
	v2  = Codec{Version: 2}
	v3  = Codec{Version: 3}
	v2u = Codec{Version: 2, Untyped: true}
)

func write(t testing.TB, c Codec, v any) string {
	t.Helper()
	b, err := c.AppendItem(nil, v, 1, message.Options{})
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	if !json.Valid(b) {
		t.Errorf("%T: not JSON: %s", v, b)
	}
	return string(b)
}

func read(s string) (any, error) {
	tree, err := parseJSON([]byte(s))
	if err != nil {
		return nil, err
	}
	c := &converter{}
	v := c.value(tree)
	return v, c.err
}

// In version 3 values of all types read back as they were written.
func TestRoundTrip(t *testing.T) {
	all := append(gvtest.Scalars(), gvtest.Elements()...)
	all = append(all, gvtest.Collections()...)
	all = append(all, gvtest.Language()...)
	all = append(all, &gvalue.Tree{Entries: []gvalue.TreeEntry{{Key: "a", Child: &gvalue.Tree{}}}})
	for _, v := range all {
		s := write(t, v3, v)
		got, err := read(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if again := write(t, v3, got); again != s || gvalue.Text(got) != gvalue.Text(v) {
			t.Errorf("%s read back as %s", s, again)
		}
	}
}

// Every flavour writes valid JSON for every value.
func TestAlwaysJSON(t *testing.T) {
	metrics := &gvalue.Metrics{ID: "1", Name: "n", Duration: 1500000, Counts: gvalue.MapOf("traverserCount", int64(4)),
		Nested: []*gvalue.Metrics{{}}}
	all := append(gvtest.Scalars(), gvtest.Elements()...)
	all = append(all, gvtest.Collections()...)
	all = append(all, gvtest.Language()...)
	all = append(all, &gvalue.TraversalMetrics{Duration: 1, Metrics: []*gvalue.Metrics{metrics}}, "\xff bad \xc3",
		&gvalue.Graph{
			Vertices: []*gvalue.Vertex{{ID: "1", Label: "a"}, {ID: "2", Label: "a"}}, Edges: []*gvalue.Edge{{ID: "e"}}},
		&gvalue.Tree{
			Entries: []gvalue.TreeEntry{
				{Key: "a", Child: &gvalue.Tree{Entries: []gvalue.TreeEntry{{Key: int32(1), Child: &gvalue.Tree{}}}}}}})
	for _, c := range []Codec{v1, v2, v3, v2u, {Version: 3, Untyped: true}, {Version: 3, Strings: true}} {
		for _, v := range all {
			write(t, c, v)
		}
	}
}

// Texts derived by hand from the description of the format (v2, v3), and from captured replies of the service (v1).
func TestGolden(t *testing.T) {
	vertex := &gvalue.Vertex{ID: "1", Label: "person", Properties: []gvalue.VertexProperty{
		{ID: "p1", Label: "name", Value: "marko"},
		{ID: "p2", Label: "city", Value: "a", Properties: []gvalue.Property{{Key: "since", Value: int32(2)}}},
		{ID: "p3", Label: "city", Value: "b"}}}
	edge := &gvalue.Edge{ID: "e", Label: "knows", InV: "2", InVLabel: "person", OutV: "1", OutVLabel: "person",
		Properties: []gvalue.Property{{Key: "w", Value: 0.5}}}
	path := &gvalue.Path{Labels: [][]string{{"a"}, nil}, Objects: []any{"x", int32(1)}}
	tree := &gvalue.Tree{Entries: []gvalue.TreeEntry{{Key: &gvalue.Vertex{ID: "1", Label: "p"}, Child: &gvalue.Tree{}}}}
	bulk := &gvalue.BulkSet{}
	bulk.Add("x", 2)
	for _, c := range []struct {
		codec Codec
		v     any
		want  string
	}{
		{v3, int32(1), `{"@type":"g:Int32","@value":1}`},
		{v3, float64(1), `{"@type":"g:Double","@value":1.0}`},
		{v2, int64(-1), `{"@type":"g:Int64","@value":-1}`},
		{v1, float64(1.5), `1.5`},
		{v3, "a\"\\\n\x01é", `"a\"\\\n\u0001é"`},
		{v3, "\xff", "\"\ufffd\""},
		{v3, []any{true}, `{"@type":"g:List","@value":[true]}`},
		{v2, []any{true}, `[true]`},
		{v3, gvalue.MapOf("a", int32(1)), `{"@type":"g:Map","@value":["a",{"@type":"g:Int32","@value":1}]}`},
		{v2, gvalue.MapOf(gvalue.TID, "x", int32(1), nil), `{"id":"x","1":null}`},
		{v3, bulk, `{"@type":"g:BulkSet","@value":["x",{"@type":"g:Int64","@value":2}]}`},
		{v2, bulk, `["x","x"]`},
		{v3, gvalue.TLabel, `{"@type":"g:T","@value":"label"}`},
		{v1, gvalue.TLabel, `"label"`},
		{v3, gvalue.Date(5), `{"@type":"g:Date","@value":5}`},
		{v1, gvalue.Date(0), `"1970-01-01T00:00Z"`},
		{v3, &gvalue.BigDecimal{Unscaled: big.NewInt(15), Scale: 1}, `{"@type":"gx:BigDecimal","@value":1.5}`},
		{v1, vertex, `{"id":"1","label":"person","type":"vertex","properties":{"name":[{"id":"p1","value":"marko"}],` +
			`"city":[{"id":"p2","value":"a","properties":{"since":2}},{"id":"p3","value":"b"}]}}`},
		{v1, edge, `{"id":"e","label":"knows","type":"edge","inVLabel":"person","outVLabel":"person","inV":"2",` +
			`"outV":"1","properties":{"w":0.5}}`},
		{v1, &gvalue.Vertex{ID: "1", Label: "p"}, `{"id":"1","label":"p","type":"vertex"}`},
		{v1, &vertex.Properties[0], `{"id":"p1","value":"marko","label":"name"}`},
		{v1, path, `{"labels":[["a"],[]],"objects":["x",1]}`},
		{v1, tree, `{"1":{"key":{"id":"1","label":"p","type":"vertex"},"value":{}}}`},
		{v2, &gvalue.Vertex{ID: int32(1), Label: "p", Properties: vertex.Properties[:1]},
			`{"@type":"g:Vertex","@value":{"id":{"@type":"g:Int32","@value":1},` +
				`"label":"p","properties":{"name":[{"@type":"g:VertexProperty","@value":{"id":"p1","value":"marko","label":"name"}}]}}}`},
		{v2u, &gvalue.Vertex{ID: int32(1), Label: "p", Properties: vertex.Properties[:1]},
			`{"id":1,"label":"p","properties":{"name":[{"id":"p1","value":"marko","label":"name"}]}}`},
		{v3, edge, `{"@type":"g:Edge","@value":{"id":"e","label":"knows","inVLabel":"person","outVLabel":"person",` +
			`"inV":"2","outV":"1",` +
			`"properties":{"w":{"@type":"g:Property","@value":{"key":"w","value":{"@type":"g:Double","@value":0.5}}}}}}`},
		{v3, path, `{"@type":"g:Path","@value":{"labels":{"@type":"g:List","@value":[{"@type":"g:Set",` +
			`"@value":["a"]},{"@type":"g:Set","@value":[]}]},` +
			`"objects":{"@type":"g:List","@value":["x",{"@type":"g:Int32","@value":1}]}}}`},
		{v2, path, `{"@type":"g:Path","@value":{"labels":[["a"],[]],"objects":["x",{"@type":"g:Int32","@value":1}]}}`},
	} {
		if got := write(t, c.codec, c.v); got != c.want {
			t.Errorf("%+v %T:\n got %s\nwant %s", c.codec, c.v, got, c.want)
		}
	}
}

// The first request of npm gremlin over GraphSON, and forms of other clients.
func TestReadRequest(t *testing.T) {
	const id = "268ac1d4-20a4-4ab0-b379-d810dede3786"
	for _, s := range []string{
		`{"requestId":{"@type":"g:UUID","@value":"` + id +
			`"},"op":"eval","processor":"","args":{"gremlin":"g.V(x)","aliases":{"g":"g"},"bindings":{"x":1}}}`,
		`{"requestId":"` + id + `","op":"eval","processor":"","args":{"@type":"g:Map","@value":["gremlin","g.V(x)",` +
			`"aliases",{"@type":"g:Map","@value":["g","g"]},` +
			`"bindings",{"@type":"g:Map","@value":["x",{"@type":"g:Int32","@value":1}]}]}}`,
		`{"args":{"gremlin":"g.V(x)","gremlin":"g.V(x)","bindings":{"x":{"@value":1,"@type":"g:Int32"}}},` +
			`"op":"eval","requestId":"` + id + `"}`,
	} {
		r, err := v2.ReadRequest([]byte(s))
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		g, _ := r.String("gremlin")
		x, _ := r.Map("bindings").GetString("x")
		if r.ID.String() != id || r.Op != "eval" || g != "g.V(x)" || x != int32(1) {
			t.Errorf("%s: got %+v, x = %v", s, r, x)
		}
	}
}

// TestRepeatedNames checks that the last member with a name counts, in small and in large objects.
func TestRepeatedNames(t *testing.T) {
	for _, others := range []int{0, 3, 20, 100} {
		body := `{"a":1`
		for i := range others {
			body += fmt.Sprintf(`,"n%d":%d`, i, i)
		}
		m, err := ReadMap([]byte(body + `,"b":2,"a":3}`))
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := m.GetString("a"); a != int32(3) || m.Len() != others+2 {
			t.Errorf("beside %d others: a is %v among %d members", others, a, m.Len())
		}
	}
}

func TestReadBytecode(t *testing.T) {
	v, err :=
		read(
			`{"@type":"g:Bytecode","@value":{"source":[["withStrategies",{"@type":"g:ReadOnlyStrategy","@value":{}}]],"step":[["V",1],
		["has","age",{"@type":"g:P","@value":{"predicate":"and","value":[{"@type":"g:P","@value":{"predicate":"gt","value":3}},{"@type":"g:P","@value":{"predicate":"within","value":[1,2]}}]}}],
		["property",{"@type":"g:Bytecode","@value":{"source":[["CardinalityValueTraversal",{"@type":"g:Cardinality","@value":"single"},"x"]]}}]]}}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := gvalue.Text(v); got != "[withStrategies(ReadOnlyStrategy), V(1), has(age, and(gt(3), within(1, 2))), "+
		"property(single(x))]" {
		t.Errorf("got %s", got)
	}
}

func TestBareNumbers(t *testing.T) {
	for s, want := range map[string]any{"1": int32(1), "-2147483649": int64(-2147483649), "1.0": float64(1),
		"1e2": float64(100)} {
		if v, err := read(s); v != want || err != nil {
			t.Errorf("%s: got %T %v %v", s, v, v, err)
		}
	}
	if v, err := read("9223372036854775808"); err != nil || gvalue.Text(v) != "9223372036854775808" {
		t.Errorf("big: %T %v", v, err)
	}
}

func TestReadRequestRefuses(t *testing.T) {
	req := func(args string) string {
		return `{"requestId":"268ac1d4-20a4-4ab0-b379-d810dede3786","op":"eval","args":` + args + `}`
	}
	for _, c := range []struct {
		body, msg string
		hasID     bool
	}{
		{``, "a value expected", false},
		{`[]`, "a request is an object", false},
		{`{"requestId":"x"}`, "requestId is not a UUID", false},
		{`{"a":1,}`, "a name expected", false},
		{`{"a" 1}`, "':' expected", false},
		{`{"a":"x`, "has no end", false},
		{`{"a":"\`, "has no end", false},
		{`{"a":"\u12"}`, "four hex digits", false},
		{`{"a":"\x"}`, "escape sequence is unknown", false},
		{"{\"a\":\"\n\"}", "control character", false},
		{`{"a":01}`, "number is malformed", false},
		{`{"a":1.}`, "number is malformed", false},
		{`{"a":-}`, "number is malformed", false},
		{`{} x`, "unexpected text", false},
		{strings.Repeat("[", maxJSONDepth+1), "nested too deeply", false},
		{req(`[1]`), "args is not a map", true},
		{req(`{"a":{"@type":"g:Int32","@value":"x"}}`), "not an integer", true},
		{req(`{"a":{"@type":"g:Int32","@value":2147483648}}`), "not an integer of 32 bits", true},
		{req(`{"a":{"@type":"g:Nothing","@value":1}}`), "g:Nothing", true},
		{req(`{"a":{"@type":"g:T","@value":"ID"}}`), "T has no constant ID", true},
		{req(`{"a":{"@type":"g:Map","@value":["k"]}}`), "keys and values", true},
		{req(`{"a":{"@type":"g:UUID","@value":"1"}}`), "not a UUID", true},
		{req(`{"a":{"@type":"g:Bytecode","@value":{"step":[[]]}}}`), "an instruction is", true},
		{req(`{"a":{"@type":"gx:Duration","@value":"1 hour"}}`), "gx:Duration", true},
		{req(`{"a":{"@type":"gx:BigInteger","@value":"1` + strings.Repeat("0", maxNumberText) + `"}}`), "digits", true},
		{req(`{"a":1e999}`), "out of range", true},
	} {
		_, err := v3.ReadRequest([]byte(c.body))
		fe, ok := err.(*message.FormatError)
		if !ok || !strings.Contains(fe.Msg, c.msg) || fe.HasID != c.hasID || fe.Code != message.Malformed {
			t.Errorf("%.80s: got %+v, want %q, id %v", c.body, err, c.msg, c.hasID)
		}
	}
}

func TestSurrogates(t *testing.T) {
	for s, want := range map[string]string{`"\ud834\udd1e"`: "𝄞", `"\ud834x"`: "\ufffdx", `"\udd1e"`: "\ufffd", "\"\xff\"": "\ufffd", `"\ud834\u0041"`: "\ufffdA"} {
		if v, err := read(s); v != want || err != nil {
			t.Errorf("%s: got %q %v", s, v, err)
		}
	}
}

func TestAppendResponse(t *testing.T) {
	id, _ := parseUUID("41d2e28a-20a4-4ab0-b379-d810dede3786")
	r := &message.Response{ID: id, Code: 200, Attributes: []message.Attribute{{Key: "n", Value: int32(1)}}}
	items := func(c Codec, o message.Options) []byte {
		b, _ := c.AppendItem(nil, "x", 3, o)
		return b
	}
	for _, c := range []struct{ got, want string }{
		{string(v1.AppendResponse(nil, r, items(v1, message.Options{}), 1)),
			`{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","status":{"code":200,"attributes":{"n":1},"message":""},"result":{"data":["x"],"meta":{}}}`},
		{string(v3.AppendResponse(nil, r, items(v3, message.Options{Traversers: true}), 1)),
			`{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","status":{"code":200,"attributes":{"@type":"g:Map","@value":["n",{"@type":"g:Int32","@value":1}]},"message":""},` +
				`"result":{"data":{"@type":"g:List","@value":[{"@type":"g:Traverser","@value":{"bulk":{"@type":"g:Int64","@value":3},"value":"x"}}]},"meta":{"@type":"g:Map","@value":[]}}}`},
		{
			string(
				v2.AppendResponse(nil, &message.Response{NoID: true, Code: 498, Message: "no", NullData: true}, nil,
					0)),
			`{"requestId":null,"status":{"code":498,"attributes":{},"message":"no"},"result":{"data":null,"meta":{}}}`},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

func TestTokens(t *testing.T) {
	b, err := v3.AppendItem(nil, gvtest.Elements()[0], 1, message.Options{Tokens: true})
	if want := `{"@type":"g:Vertex","@value":{"id":{"@type":"g:Int32","@value":1},"label":"person"}}`; string(b) !=
		want || err != nil {
		t.Errorf("got %s %v", b, err)
	}
}

func TestRefusesToWrite(t *testing.T) {
	deep := any("x")
	for range message.MaxDepth + 1 {
		deep = []any{deep}
	}
	huge := &gvalue.BulkSet{}
	huge.Add("x", 1<<60)
	for _, v := range []any{deep, struct{}{}, huge} {
		if _, err := v2.AppendItem(nil, v, 1, message.Options{}); err == nil {
			t.Errorf("%T was written", v)
		}
	}
}

// FuzzReadRequest: no bytes cause a panic, and a request that can be read is written as JSON that reads back to the
// same.
func FuzzReadRequest(f *testing.F) {
	for _, l := range [][]any{gvtest.Scalars(), gvtest.Elements(), gvtest.Collections(), gvtest.Language()} {
		for _, v := range l {
			f.Add([]byte(`{"requestId":"268ac1d4-20a4-4ab0-b379-d810dede3786","op":"eval","processor":"",` +
				`"args":{"gremlin":` + write(f, v3, v) + `}}`))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := v3.ReadRequest(b)
		if err != nil {
			return
		}
		for _, e := range r.Args.Entries() {
			s, err := v3.AppendItem(nil, e.Value, 1, message.Options{})
			if err != nil {
				continue // nested more deeply than a result may be
			}
			again, err := read(string(s))
			if err != nil {
				t.Fatalf("%s: can't read what was written: %v", s, err)
			}
			if got := write(t, v3, again); got != string(s) {
				t.Fatalf("not stable:\n%s\n%s", s, got)
			}
		}
	})
}
