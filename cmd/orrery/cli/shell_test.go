package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
)

// remoteOf names a server.
func remoteOf(s *server.Server) remote {
	return remote{Endpoint: "http://" + s.Addr(server.NoSQL), MongoEndpoint: s.Addr(server.Mongo),
		GremlinEndpoint: "ws://" + s.Addr(server.Gremlin) + "/gremlin", AdminEndpoint: "http://" + s.Addr(server.Admin),
		Account: "localhost"}
}

// shellWith runs a shell whose input is lines.
func shellWith(t *testing.T, sh *shellCmd, lines string) (string, error) {
	t.Helper()
	in, err := os.Open(write(t, t.TempDir(), "lines", lines))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	err = sh.run(&streams{&out, &out}, in)
	return out.String(), err
}

// Lines that are piped in are run in the shell's language, and rows are JSON lines.
func TestShellOfLines(t *testing.T) {
	s := serverFor(t, nil)
	dir := t.TempDir()
	ran(t, 0, append([]string{"import", write(t, dir, "people.jsonl", `{"id":"1","name":"Ann","n":1}
{"id":"2","name":"Bob","n":2}
`), "--db", "d", "--partition-key", "/id", "--state", dir + "/state"}, endpoints(s)...)...)
	for _, c := range []struct {
		lang, lines, want string
		fails             string
	}{
		{"sql", ":use d/people\nSELECT VALUE c.name FROM c WHERE c.n = 2;\n\n-- nothing\n:quit\nnot run", "\"Bob\"\n",
			""},
		{"sql", ":use d/people\nSELECT VALUE c.name FROM\n c WHERE c.n >\n\n  1", "\"Bob\"\n", ""},
		{"sql", ":use d/people\nSELECT VALUE c.name FROM", "", "unexpected end-of-file"},
		{"sql", ":partitions d/people", "d/people: 1 physical partition, 400 RU/s", ""},
		{"sql", ":list d", "people\n", ""},
		{"sql", "SELECT 1", "", "which container?"},
		{"sql", ":use d/none", "", "has no container none: people"},
		{"sql", ":use d\nSELECT VALUE c.name FROM c WHERE c.n = 1;\n;", "\"Ann\"\n", ""}, // its only container
		{"sql", ":use none", "", "there is no database none: "},
		{"sql", ":use d\n:use none", "", "the database d has no container none: people"},
		{"sql", ":use d/people\nSELEKT", "", "the server refuses the query"},
		{"sql", ":nothing", "", "there is no command :nothing"},
		{"sql", ":lang mongo\nuse d\ndb.people.countDocuments()\n:lang sql\n:use d/people\n" +
			"SELECT VALUE COUNT(1) FROM c",
			"\"switched to db d\"\n2\n2\n", ""},
		{"gremlin", "g.V(1)\n  .values('name')", "", "Unexpected '.'"},
		{"gremlin", "g.addV('p').property('id', 'a').property('name', 'Ann').\n  values('name')\n// nothing\n" +
			"g.V().count()",
			"\"Ann\"\n1\n", ""},
		{"gremlin", "g.V().hasLabel('p').id()\ng.V().nothing()", "\"a\"\n", "nothing"},
		{"gremlin", ":use d/none", "", "has no container none: people"},
		{"mongo", "use d\ndb.people.find({n: 2},\n {name: 1, _id: 0})\n// a comment\ndb.people.countDocuments()",
			"\"switched to db d\"\n{\"name\":\"Bob\"}\n2\n", ""},
		{"mongo", "db.x.insertOne({_id: 1}); db.x.insertOne({_id: 1})", "", "E11000"},
		{"mongo", "print('a'); quit()\nprint('b')", "a\n", ""},
		{"mongo", "quit(7)", "", "exit code 7"},
		{"mongo", "db.people.find({", "", "SyntaxError: Unexpected end of input"},
		{"mongo", "db.people.finde({})", "", "TypeError: db.people.finde is not a function"},
		{"mongo", "db.nothing()", "", "TypeError: db.nothing is not a function"},
	} {
		sh := &shellCmd{remote: remoteOf(s), Lang: c.lang}
		out, err := shellWith(t, sh, c.lines)
		if strings.HasPrefix(c.lines, ":partitions") {
			out, _, _ = strings.Cut(out, "\n")
		}
		if out != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s %q: %q, %v", c.lang, c.lines, out, err)
		}
	}
}

// Shells complete the names of commands and flags, and the values of flags that have a few.
func TestCompletion(t *testing.T) {
	for _, c := range [][]string{
		{"exp", "export\t"}, {"serve", "--nosql-a", "--nosql-addr\t"}, {"import", "--format", "", "graphson\n"},
		{"shell", "--lang", "", "gremlin\n"}, {"serve", "--durability", "", "relaxed\n"},
		{"demo", "--strict", "", "none\n"}, {"cert", "t", "trust\t"},
	} {
		out, _ := ran(t, 0, append([]string{"__complete"}, c[:len(c)-1]...)...)
		if !strings.Contains(out, c[len(c)-1]) {
			t.Errorf("%q: %s", c, out)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, _ := ran(t, 0, "completion", shell); !strings.Contains(out, "__complete") {
			t.Errorf("%s: %.200s", shell, out)
		}
	}
}

// Each language explains: the plan, and what was read.
func TestShellExplains(t *testing.T) {
	s := serverFor(t, nil)
	fill := "db.c.insertMany([{_id: '1', n: 1}, {_id: '2', n: 2}])\ndb.c.createIndex({n: 1})\n"
	if out, err := shellWith(t, &shellCmd{remote: remoteOf(s), Lang: "mongo", DB: "d"}, fill); err != nil {
		t.Fatal(out, err)
	}
	for _, c := range []struct{ lang, line, want string }{
		{"sql", ":explain SELECT * FROM c WHERE c.n = 1", "charge"},
		{"mongo", ":explain db.c.find({n: 1})", "1 documents"},
		{"mongo", ":explain db.c.aggregate([{$match: {n: {$gt: 0}}}])", "2 documents"},
		{"gremlin", ":explain g.V().count()", "GetVertices"},
	} {
		out, err := shellWith(t, &shellCmd{remote: remoteOf(s), Lang: c.lang, DB: "d", Container: "c"}, c.line)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %q, %v", c.line, out, err)
		}
	}
	_, err := shellWith(t, &shellCmd{remote: remoteOf(s), Lang: "mongo"}, ":explain 1")
	if err == nil || !strings.Contains(err.Error(), "want a find") {
		t.Error(err)
	}
}

// --eval and files of the Mongo language print as MongoDB's shell does, and set the exit code.
func TestShellEval(t *testing.T) {
	s := serverFor(t, nil)
	dir := t.TempDir()
	lib := write(t, dir, "lib.js", "function twice(x) { return 2 * x }")
	file := write(t, dir, "fill.js", "load("+strconv.Quote(lib)+");\nfor (let i = 0; i < 25; i++) "+
		"db.c.insertOne({_id: i, n: twice(i)});\nprint('filled', db.getName());\ndb.c.find()")
	bad := write(t, dir, "bad.js", "print(1);\n\nthrow new Error('no')")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{file}, 0, "filled d\n"},
		{[]string{"--eval", "db.c.find({_id: 3})"}, 0, "[ { _id: 3, n: 6 } ]\n"},
		{[]string{"--eval", "db.c.find({_id: 3})", "--json"}, 0, "{\"_id\":3,\"n\":6}\n"},
		{[]string{"--eval", "let x = db.c.countDocuments(); x", "--eval", "'next'"}, 0, "25\nnext\n"},
		{[]string{"--eval", "quit(4)"}, 4, ""},
		{[]string{"--eval", "nothing()"}, 1, "orrery: ReferenceError: nothing is not defined\n"},
		{[]string{bad}, 1, "1\norrery: " + bad + ":3: Error: no\n"},
	} {
		args := append([]string{"shell", "--lang", "mongo", "--db", "d", "--mongo-endpoint", s.Addr(server.Mongo)},
			c.args...)
		out, errOut := ran(t, c.code, args...)
		if out+errOut != c.want {
			t.Errorf("%q: %q", c.args, out+errOut)
		}
	}
	if _, errOut := ran(t, 1, append([]string{"shell", file}, endpoints(s)...)...); !strings.Contains(errOut,
		"only --lang mongo runs files") {
		t.Error(errOut)
	}
	for _, lang := range []string{"sql", "gremlin"} {
		args := append([]string{"shell", "--lang", lang, "--container", "c", "--eval", "x"}, endpoints(s)...)
		if _, errOut := ran(t, 1, args...); errOut != "orrery: --container c: in which database? Give --db too\n" {
			t.Error(errOut)
		}
	}
}

// Vertices and edges are rows of a table, with their properties as columns.
func TestShellFlattensElements(t *testing.T) {
	for _, c := range [][2]string{
		{`{"id":"1","label":"p","type":"vertex","properties":{"name":[{"id":"x","value":"Ann"}],"tag":[{"id":"a",` +
			`"value":1},{"id":"b","value":2}]}}`, `{"id":"1","label":"p","name":"Ann","tag":[1,2]}`},
		{`{"id":"e","label":"k","type":"edge","inV":"2","outV":"1","inVLabel":"p","properties":{"w":1.5}}`,
			`{"id":"e","label":"k","outV":"1","inV":"2","w":1.5}`},
		{`{"id":"v","label":"p","type":"vertex"}`, `{"id":"v","label":"p"}`},
		{`{"labels":[[],["a"],[]],"objects":[{"id":"SEA","label":"airport","type":"vertex"},"x",7]}`,
			`{"path":"SEA → x → 7"}`},
		{`{"labels":[],"objects":[1]}`, `{"labels":[],"objects":[1]}`},
		{`5`, `5`}, {`{"id":1,"label":"x"}`, `{"id":1,"label":"x"}`}, {`["a"]`, `["a"]`},
	} {
		if got := string(flatElement([]byte(c[0]))); got != c[1] {
			t.Errorf("%s: %s", c[0], got)
		}
	}
}

// Tab completes commands, names and words of the language as far as they have no choice.
func TestShellCompletes(t *testing.T) {
	s := serverFor(t, nil)
	fill := "db.people.insertOne({_id: '1', name: 'Ann', address: {city: 'London'}})"
	if out, err := shellWith(t, &shellCmd{remote: remoteOf(s), Lang: "mongo", DB: "d"}, fill); err != nil {
		t.Fatal(out, err)
	}
	for lang, lines := range map[string]map[string]string{
		"sql": {":pa": ":partitions", ":use sh": ":use shop", ":use shop/o": ":use shop/order", "sel": "SELECT",
			":lang m": ":lang mongo", "SELECT * FROM c WHERE sta": "SELECT * FROM c WHERE STARTSWITH(", "xyz": "xyz",
			"": "", ":explain sel": ":explain SELECT", "SELECT c.addr": "SELECT c.address",
			"SELECT * FROM c WHERE c.address.ci":      "SELECT * FROM c WHERE c.address.city",
			"SELECT COUNT(1) FROM c WHERE LOWER(x.na": "SELECT COUNT(1) FROM c WHERE LOWER(x.name",
			"SELECT c._r": "SELECT c._r"},
		"gremlin": {"g.V().hasL": "g.V().hasLabel(", "g.add": "g.add", ":js": ":json"},
		"mongo": {"db.peo": "db.people", "db.people.countD": "db.people.countDocuments", "x = db.getCollectionN": "x = db.getCollectionNames", "db.c.find({ $exi": "db.c.find({ $exists", "use sh": "use shop",
			"rs.ini": "rs.initiate", "ISOD": "ISODate("},
	} {
		sh := &shellCmd{remote: remoteOf(s), Lang: lang, JSON: true, out: io.Discard}
		if lang == "sql" {
			sh.DB, sh.Container = "d", "people"
		}
		var err error
		if sh.srv, err = sh.server(); err == nil {
			err = sh.open()
		}
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := sh.session.(*mongoSession); ok {
			if err := m.run(context.Background(), "db.people.insertOne({})"); err != nil {
				t.Fatal(err)
			}
		}
		sh.names = map[string][]string{"shop": {"orders", "orderlines"}}
		for line, want := range lines {
			got, pos, ok := sh.complete(line, len(line), '\t')
			if got != want || pos != len(want) || !ok {
				t.Errorf("%s %q: %q, %d, %v", lang, line, got, pos, ok)
			}
		}
		if _, _, ok := sh.complete("x", 1, 'y'); ok {
			t.Error("a letter completes")
		}
		if err := sh.session.close(); err != nil {
			t.Error(err)
		}
	}
}

// The lines of earlier shells are there, but none with a secret; the file is its owner's.
func TestShellHistory(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	h := openHistory("mongo")
	for _, line := range []string{"db.a.find()", "db.a.find()", "db.createUser({user: 'u', pwd: 'canary'})", "", "it"} {
		h.Add(line)
	}
	if h.Len() != 3 || h.At(0) != "it" || h.At(2) != "db.a.find()" {
		t.Errorf("%q", h.lines)
	}
	if next := openHistory("mongo"); next.Len() != 2 || next.At(0) != "it" {
		t.Errorf("%q", next.lines)
	}
	if info, err := os.Stat(h.path); err != nil || !onlyOwner(info) {
		t.Error(info, err)
	}
	if other := openHistory("sql"); other.Len() != 0 {
		t.Errorf("%q", other.lines)
	}
}

// Tables fit the width, and control characters don't reach the terminal.
func TestRowTable(t *testing.T) {
	for _, width := range []int{0, 20, 200} {
		var out bytes.Buffer
		rows := &rowTable{out: &out, width: width}
		for _, row := range []string{`{"id":"1","name":"Ann Smith-Wesson","n":7,"_rid":"x"}`,
			`{"id":"2","name":"\u001b[31mred","n":[1,2]}`, `5`} {
			if _, err := rows.Write([]byte(row + "\n")); err != nil {
				t.Fatal(err)
			}
		}
		if err := rows.flush(2.5, 9*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsRune(out.String(), 0x1b) {
			t.Errorf("an escape sequence: %q", out.String())
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if !strings.HasPrefix(lines[0], "id") || lines[len(lines)-1] != "3 rows, 2.50 RU, 9.0 ms" ||
			strings.Contains(out.String(), "_rid") {
			t.Errorf("width %d: %q", width, out.String())
		}
		for _, l := range lines[:len(lines)-1] {
			if width > 0 && len([]rune(l)) > width && !strings.HasPrefix(l, "(") {
				t.Errorf("width %d: %q", width, l)
			}
		}
	}
}

// The arguments of MongoDB's shell mean what they mean there, also where the program has its name.
func TestMongosh(t *testing.T) {
	s := serverFor(t, func(c *server.Config) { c.MongoUser, c.MongoPassword = "root", "canary" })
	host, port, _ := strings.Cut(s.Addr(server.Mongo), ":")
	file := write(t, t.TempDir(), "a.js", "db.c.insertOne({_id: 1}); print(db.getName())")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"mongodb://root:canary@ADDR/shop?directConnection=true --quiet --eval db.getName()", 0, "shop\n"},
		{"ADDR/shop -u root -p canary --authenticationDatabase admin FILE", 0, "shop\n"},
		{"shop --host HOST --port PORT -u root -p canary --eval db.c.find()", 0, "[ { _id: 1 } ]\n"},
		{"--host HOST --port PORT -u root -p canary --json --eval db.getSiblingDB('shop').c.findOne()", 0,
			"{\"_id\":1}\n"},
		{"--host ADDR --username root --password canary --eval rs.initiate().ok --norc", 0, "1\n"},
		{"ADDR -u root -p canary --eval quit(3)", 3, ""},
		{"ADDR -u root -p wrong --eval 1+db.c.countDocuments()", 1, "Authentication failed"},
		{"mongodb://a,b/x --eval 1", 1, "isn't that of one server"},
		{"mongodb+srv://a/x --eval 1", 1, "isn't that of one server"},
	} {
		args := strings.Fields(strings.NewReplacer("ADDR", s.Addr(server.Mongo), "HOST", host, "PORT", port, "FILE",
			file).Replace("/usr/bin/mongosh " + c.args))
		out, errOut := ran(t, c.code, asMongosh(args)...)
		if c.code == 0 && out != c.want || !strings.Contains(out+errOut, c.want) ||
			strings.Contains(errOut, "canary") {
			t.Errorf("%s: %q %q", c.args, out, errOut)
		}
	}
	if args := asMongosh([]string{`C:\bin\orrery.exe`, "version"}); len(args) != 1 {
		t.Errorf("%q", args)
	}
}
