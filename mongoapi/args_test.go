package mongoapi

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/orrerydb/orrery/mongoapi/args"
)

// samples are values of each type, by the names of the types in the server's messages.
var samples = map[string]any{
	"double": 1.5, "string": "x", "object": bson.D{{Key: "a", Value: int32(1)}}, "array": bson.A{bson.D{}},
	"binData": bson.Binary{Data: []byte{1}},
	"objectId": bson.ObjectID{
		1,
	}, "bool": true, "date": bson.DateTime(1), "null": nil, "regex": bson.Regex{Pattern: "a"},
	"javascript": bson.JavaScript("x"),
	"int": int32(
		1,
	), "timestamp": bson.Timestamp{T: 1}, "long": int64(1), "decimal": bson.NewDecimal128(0x3040000000000000, 1),
	"minKey": bson.MinKey{},
	"maxKey": bson.MaxKey{},
}

// takes says which types an argument of a kind may have, and the error code for other types.
var takes = map[args.Kind]struct {
	types []string
	code  int32
}{
	args.StrictBool:   {[]string{"bool", "null"}, 14},
	args.SafeBool:     {[]string{"bool", "int", "long", "double", "decimal", "null"}, 14},
	args.OptionalBool: {[]string{"bool", "int", "long", "double", "decimal"}, 14},
	args.Number:       {[]string{"int", "long", "double", "decimal", "null"}, 14},
	args.String:       {[]string{"string", "null"}, 14},
	args.Object:       {[]string{"object", "null"}, 14},
	args.Array:        {[]string{"array", "null"}, 14},
	args.Documents:    {[]string{"array", "null"}, 14},
	args.Hint:         {[]string{"string", "object", "null"}, 9},
}

// whole are commands that need more than their name.
var whole = map[string]bson.D{
	"aggregate": {
		{Key: "aggregate", Value: "c"},
		{Key: "pipeline", Value: bson.A{}},
		{Key: "cursor", Value: bson.D{}},
	},
	"distinct":    {{Key: "distinct", Value: "c"}, {Key: "key", Value: "a"}},
	"getMore":     {{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: "c"}},
	"killCursors": {{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{}}},
	"insert":      {{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "a", Value: 1}}}}},
	"update": {
		{Key: "update", Value: "c"},
		{
			Key: "updates",
			Value: bson.A{
				bson.D{
					{Key: "q", Value: bson.D{}},
					{Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "b", Value: 1}}}}},
				},
			},
		},
	},
	"delete": {
		{Key: "delete", Value: "c"},
		{Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 1}}}},
	},
	"findAndModify": {{Key: "findAndModify", Value: "c"}, {Key: "remove", Value: true}},
	"findandmodify": {{Key: "findandmodify", Value: "c"}, {Key: "remove", Value: true}},
	"explain":       {{Key: "explain", Value: bson.D{{Key: "find", Value: "c"}}}},
}

// set returns a command with one argument set.
func set(d bson.D, key string, v any) bson.D {
	out := slices.Clone(d)
	for i := range out {
		if out[i].Key == key {
			out[i].Value = v
			return out
		}
	}
	return append(out, bson.E{Key: key, Value: v})
}

type errorReply struct {
	OK       float64 `bson:"ok"`
	Code     int32   `bson:"code"`
	Errmsg   string  `bson:"errmsg"`
	CodeName string  `bson:"codeName"`
}

// ask runs a command on a new connection and returns its reply.
func ask(t *testing.T, c *conn, d bson.D) (bson.Raw, errorReply) {
	t.Helper()
	raw := answerRaw(t, c, 2013, opMsg(t, d)[16:])
	var e errorReply
	if err := bson.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	return raw, e
}

// TestArgumentTypes sets each argument of each command to a value of each type. What the server accepts is accepted;
// what it refuses is refused with its code and the argument's name.
func TestArgumentTypes(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		def := commands[name]
		base := whole[name]
		if base == nil {
			base = bson.D{{Key: name, Value: "c"}}
		}
		for _, arg := range slices.Sorted(maps.Keys(def.args)) {
			want, ok := takes[def.args[arg]]
			if !ok {
				continue // the code that uses it checks it
			}
			for typ, v := range samples {
				_, e := ask(t, c, set(base, arg, v))
				mistyped := e.Code == want.code && mentions(e.Errmsg, arg, typ)
				if good := slices.Contains(want.types, typ); good == mistyped {
					t.Errorf("%s.%s as %s: %d %s", name, arg, typ, e.Code, e.Errmsg)
				}
			}
		}
		_, e := ask(t, c, append(slices.Clone(base), bson.E{Key: "nope", Value: 1}))
		if unknown := e.Code == 40415 && e.Errmsg == "BSON field '"+name+".nope' is an unknown field."; unknown !=
			def.strict {
			t.Errorf("%s with an unknown argument: %d %s", name, e.Code, e.Errmsg)
		}
		for arg := range genericArgs {
			if _, e := ask(t, c, set(base, arg, int32(1))); e.Code == 40415 {
				t.Errorf("%s.%s: %s", name, arg, e.Errmsg)
			}
		}
	}
}

// mentions reports whether a message is about an argument's type.
func mentions(msg, arg, typ string) bool {
	switch msg {
	case "Hint must be a string or an object", "Field '" + arg + "' should be a boolean value, but found: " + typ:
		return true
	}
	return regexpQuote(
		`BSON field '[a-zA-Z]+\.`+"%s"+`' is the wrong type '%s', expected types? .*`,
		arg,
		typ,
	).MatchString(msg)
}

// TestStatementArguments is TestArgumentTypes for the statements of updates and deletes.
func TestStatementArguments(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	for _, x := range []struct {
		name, list string
		args       args.Set
		base       bson.D
	}{
		{"update", "updates", updateStatement,
			bson.D{{Key: "q", Value: bson.D{}},
				{Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "b", Value: 1}}}}}}},
		{"delete", "deletes", deleteStatement, bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 1}}},
	} {
		run := func(st bson.D) errorReply {
			_, e := ask(t, c, bson.D{{Key: x.name, Value: "c"}, {Key: x.list, Value: bson.A{st}}})
			return e
		}
		for arg, kind := range x.args {
			want, ok := takes[kind]
			if !ok {
				continue
			}
			for typ, v := range samples {
				e := run(set(x.base, arg, v))
				refused := e.Code == want.code &&
					(kind == args.Hint || kind == args.OptionalBool ||
						regexpQuote(`BSON field '%s\.%s\.%s' is the wrong type '%s', .*`, x.name, x.list, arg, typ).
							MatchString(e.Errmsg))
				if slices.Contains(want.types, typ) == refused {
					t.Errorf("%s.%s.%s as %s: %d %s", x.name, x.list, arg, typ, e.Code, e.Errmsg)
				}
			}
		}
		if e := run(set(x.base, "nope", 1)); e.Code != 40415 {
			t.Errorf("%s with an unknown field: %+v", x.name, e)
		}
	}
}

// TestArgumentsDoWhatTheySay: a number for a boolean is that boolean.
func TestArgumentsDoWhatTheySay(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	docs := bson.A{}
	for i := range 5 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}})
	}
	ask(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
	fam := func(new any) int32 {
		raw, e := ask(t, c, bson.D{
			{Key: "findAndModify", Value: "c"},
			{Key: "query", Value: bson.D{{Key: "_id", Value: 1}}},
			{Key: "update", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 10}}}}},
			{Key: "new", Value: new},
		})
		if e.OK != 1 {
			t.Fatal(e)
		}
		return raw.Lookup("value", "n").Int32()
	}
	for i, x := range []struct {
		new   any
		shown int32
	}{{int32(1), 11}, {1.0, 21}, {int64(2), 31}, {true, 41}, {int32(0), 41}, {false, 51}, {nil, 61}} {
		if got := fam(x.new); got != x.shown {
			t.Errorf("findAndModify %d with new: %v shows %d, want %d", i, x.new, got, x.shown)
		}
	}
	for _, x := range []struct {
		single any
		open   bool
	}{{int32(1), false}, {0.5, false}, {true, false}, {int32(0), true}, {false, true}} {
		raw, _ := ask(
			t,
			c,
			bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}, {Key: "singleBatch", Value: x.single}},
		)
		if id := raw.Lookup("cursor", "id").Int64(); (id != 0) != x.open {
			t.Errorf("find with singleBatch: %v has the cursor %d", x.single, id)
		}
	}
	for _, ordered := range []any{int32(0), int64(1), 0.0, "false"} {
		_, e := ask(t, c, bson.D{
			{Key: "insert", Value: "c"},
			{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 100}}}},
			{Key: "ordered", Value: ordered},
		})
		if e.Code != 14 {
			t.Errorf("insert with ordered: %v: %+v", ordered, e)
		}
	}
	raw, _ := ask(t, c, bson.D{
		{Key: "insert", Value: "c"},
		{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 0}}, bson.D{{Key: "_id", Value: 7}}}},
		{Key: "ordered", Value: false},
	})
	if n := raw.Lookup("n").Int32(); n != 1 {
		t.Errorf("unordered: %s", raw)
	}
}

func TestConcernsAndHints(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	ask(t, c, bson.D{
		{Key: "insert", Value: "c"},
		{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 1}}}},
	})
	ask(t, c, bson.D{
		{Key: "createIndexes", Value: "c"},
		{
			Key:   "indexes",
			Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "by a"}}},
		},
	})
	level := func(v any) bson.D { return bson.D{{Key: "level", Value: v}} }
	find := bson.D{{Key: "find", Value: "c"}}
	ins := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}}
	w := func(v any) bson.D { return bson.D{{Key: "w", Value: v}} }
	type row struct {
		base  bson.D
		arg   string
		v     any
		code  int32 // of the command
		unmet int32 // of its write concern
	}
	rows := []row{
		{find, "readConcern", level("local"), 0, 0},
		{find, "readConcern", level("majority"), 0, 0}, {find, "readConcern", level("linearizable"), 0, 0},
		{find, "readConcern", level("available"), 0, 0}, {find, "readConcern", bson.D{}, 0, 0},
		{find, "readConcern", bson.D{{Key: "afterClusterTime", Value: bson.Timestamp{T: 1}}}, 0, 0},
		{find, "readConcern", level("snapshot"), 0, 0},
		{find, "readConcern", level("nope"), 9, 0}, {find, "readConcern", level(1), 14, 0},
		{find, "readConcern", "local", 9, 0}, {find, "readConcern", bson.D{{Key: "lvl", Value: "local"}}, 72, 0},
		{ins, "writeConcern", w(1), 0, 0},
		{ins, "writeConcern", w("majority"), 0, 0}, {ins, "writeConcern", w(0), 0, 0},
		{ins, "writeConcern", bson.D{}, 0, 0},
		{
			ins,
			"writeConcern",
			bson.D{{Key: "w", Value: 1}, {Key: "j", Value: true}, {Key: "wtimeout", Value: 100}},
			0,
			0,
		},
		{ins, "writeConcern", w(50), 0, 100},
		{ins, "writeConcern", w(2), 0, 100}, {ins, "writeConcern", w("rack"), 0, 79},
		{ins, "writeConcern", w(bson.D{{Key: "dc", Value: 1}}), 0, 100},
		{ins, "writeConcern", w(51), 9, 0},
		{ins, "writeConcern", w(-1), 9, 0}, {ins, "writeConcern", w(true), 9, 0}, {ins, "writeConcern", 1, 14, 0},
		{
			ins,
			"writeConcern",
			bson.D{{Key: "j", Value: "x"}},
			14,
			0,
		}, {ins, "writeConcern", bson.D{{Key: "x", Value: 1}}, 40415, 0},
	}
	hinted := []bson.D{find, {{Key: "count", Value: "c"}}, whole["distinct"], whole["aggregate"],
		{
			{Key: "findAndModify", Value: "c"},
			{Key: "query", Value: bson.D{{Key: "_id", Value: 9}}},
			{Key: "remove", Value: 1},
		}}
	for _, base := range hinted {
		for _, ok := range []any{"by a", "_id_", bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "_id", Value: 1}}, bson.D{},
			bson.D{{Key: "$natural", Value: -1}}} {
			rows = append(rows, row{base, "hint", ok, 0, 0})
		}
		for _, bad := range []any{"nope", "", bson.D{{Key: "b", Value: 1}}, bson.D{{Key: "a", Value: -1}},
			bson.D{{Key: "$natural", Value: 2}}} {
			rows = append(rows, row{base, "hint", bad, 2, 0})
		}
		rows = append(rows, row{set(base, base[0].Key, "absent"), "hint", "nope", 0, 0}, row{base, "hint", 1, 9, 0})
	}
	for _, x := range rows {
		raw, e := ask(t, c, set(x.base, x.arg, x.v))
		unmet, _ := raw.Lookup("writeConcernError", "code").Int32OK()
		if e.Code != x.code || unmet != x.unmet || x.unmet != 0 && raw.Lookup("n").Int32() != 1 {
			t.Errorf("%s with %s %v: %s", x.base[0].Key, x.arg, x.v, raw)
		}
	}
	for _, x := range []struct{ cmd, list string }{{"update", "updates"}, {"delete", "deletes"}} {
		st := whole[x.cmd][1].Value.(bson.A)[0].(bson.D)
		raw, _ := ask(t, c, bson.D{{Key: x.cmd, Value: "c"}, {Key: x.list, Value: bson.A{set(st, "hint", "nope")}}})
		if code, _ := raw.Lookup("writeErrors", "0", "code").Int32OK(); code != 2 {
			t.Errorf("%s with a missing index as hint: %s", x.cmd, raw)
		}
	}
}

// TestArgumentsGivenTwice: a repeated argument is ambiguous and refused.
func TestArgumentsGivenTwice(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		base := whole[name]
		if base == nil {
			base = bson.D{{Key: name, Value: "c"}}
		}
		for _, arg := range append(slices.Sorted(maps.Keys(commands[name].args)), "comment", "$db", "maxTimeMS") {
			cmd := slices.DeleteFunc(slices.Clone(base), func(e bson.E) bool { return e.Key == arg })
			cmd = append(
				cmd,
				bson.E{Key: arg, Value: nil},
				bson.E{Key: "comment2", Value: nil},
				bson.E{Key: arg, Value: nil},
			)
			switch arg {
			case "$db":
				cmd[len(cmd)-3].Value, cmd[len(cmd)-1].Value = "db", "db"
			case "maxTimeMS":
				cmd[len(cmd)-3].Value, cmd[len(cmd)-1].Value = 100, 100
			}
			for i := range cmd {
				if k := commands[name].args[cmd[i].Key]; k == args.OptionalBool {
					cmd[i].Value = true
				}
			}
			if commands[name].strict {
				cmd = slices.DeleteFunc(cmd, func(e bson.E) bool { return e.Key == "comment2" })
			}
			_, e := ask(t, c, cmd)
			if want := "BSON field '" + name + "." + arg + "' is a duplicate field"; e.Code != 40413 ||
				e.Errmsg != want {
				t.Errorf("%s with two %s: %d %s", name, arg, e.Code, e.Errmsg)
			}
		}
	}
	for _, x := range []bson.D{
		{
			{Key: "update", Value: "c"},
			{
				Key: "updates", Value: bson.A{
					bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.D{}}, {Key: "q", Value: bson.D{}}}}}},
		{
			{Key: "delete", Value: "c"},
			{
				Key: "deletes", Value: bson.A{
					bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 1}, {Key: "limit", Value: 0}}}}},
	} {
		if _, e := ask(t, c, x); e.Code != 40413 {
			t.Errorf("a statement of %s: %+v", x[0].Key, e)
		}
	}
}

// TestDocumentSequences: a sequence replaces an argument with documents, and may occur once.
func TestDocumentSequences(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	doc, err := bson.Marshal(bson.D{{Key: "a", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	seq := func(name string) []byte {
		b := binary.LittleEndian.AppendUint32([]byte{1}, uint32(4+len(name)+1+len(doc)))
		return append(append(append(b, name...), 0), doc...)
	}
	find, ins := bson.D{{Key: "find", Value: "c"}}, bson.D{{Key: "insert", Value: "c"}}
	for _, x := range []struct {
		name string
		cmd  bson.D
		seqs []string
		code int32
	}{
		{"one", ins, []string{"documents"}, 0},
		{"twice", ins, []string{"documents", "documents"}, 40431},
		{"beside the argument", whole["insert"], []string{"documents"}, 40433},
		{"unknown", ins, []string{"documents", "docs"}, 40415},
		{"of what has no documents", find, []string{"filter"}, 40415},
		{"beside explain", bson.D{{Key: "explain", Value: find}}, []string{"updates"}, 40415},
		{"very many", ins, slices.Repeat([]string{"documents"}, 1000), 17},
	} {
		body := opMsg(t, x.cmd)[16:]
		for _, name := range x.seqs {
			body = append(body, seq(name)...)
		}
		var e errorReply
		if err := bson.Unmarshal(answerRaw(t, c, 2013, body), &e); err != nil || e.Code != x.code {
			t.Errorf("%s: %+v, want %d", x.name, e, x.code)
		}
	}
}

// TestExplainArguments: explain checks the arguments of the explained command like the command itself.
func TestExplainArguments(t *testing.T) {
	s := newTestServer(t, Options{})
	c := newConn(t, s, true)
	ask(t, c, whole["insert"])
	for name := range explains {
		base := whole[name]
		if base == nil {
			base = bson.D{{Key: name, Value: "c"}}
		}
		for arg, kind := range commands[name].args {
			want, ok := takes[kind]
			if !ok {
				continue
			}
			for typ, v := range samples {
				_, e := ask(t, c, bson.D{{Key: "explain", Value: set(base, arg, v)}})
				mistyped := e.Code == want.code && mentions(e.Errmsg, arg, typ)
				if slices.Contains(want.types, typ) == mistyped {
					t.Errorf("explain of %s.%s as %s: %d %s", name, arg, typ, e.Code, e.Errmsg)
				}
			}
		}
	}
	find := bson.D{{Key: "find", Value: "c"}}
	with := func(base bson.D, key string, v any) bson.D {
		return append(slices.Clone(base), bson.E{Key: key, Value: v})
	}
	variable := bson.D{{Key: "$expr", Value: bson.D{{Key: "$eq", Value: bson.A{"$a", "$$x"}}}}}
	for i, x := range []struct {
		inner     bson.D
		verbosity any
		code      int32
	}{
		{find, "queryPlanner", 0}, {find, "executionStats", 0}, {find, "allPlansExecution", 0}, {find, nil, 0},
		{find, "all", 2}, {find, "", 2}, {find, 1, 14},
		{with(find, "nope", 1), "queryPlanner", 40415}, {with(with(find, "skip", 1), "skip", 2), "queryPlanner", 40413},
		{bson.D{{Key: "find", Value: 5}}, "queryPlanner", 73}, {bson.D{{Key: "find", Value: ""}}, "queryPlanner", 73},
		{with(find, "hint", "nope"), "queryPlanner", 2}, {with(find, "hint", "_id_"), "queryPlanner", 0},
		{with(with(find, "filter", variable), "let", bson.D{{Key: "x", Value: 1}}), "queryPlanner", 0},
		{bson.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: bson.A{}}}, "queryPlanner", 0},
		{bson.D{{Key: "ping", Value: 1}}, "queryPlanner", 20}, {bson.D{{Key: "nope", Value: 1}}, "queryPlanner", 59},
		{bson.D{}, "queryPlanner", 9},
	} {
		if _, e :=
			ask(t, c, bson.D{{Key: "explain", Value: x.inner}, {Key: "verbosity", Value: x.verbosity}}); e.Code !=
			x.code {
			t.Errorf("%d: explain of %v, %v: %+v, want %d", i, x.inner, x.verbosity, e, x.code)
		}
	}
}
