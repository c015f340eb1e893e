package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startWithFiles starts a server whose initial data are files, and waits until it is initialized or has failed.
func startWithFiles(t *testing.T, files map[string]string) *Server {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := Ephemeral()
	c.InitDir = dir
	s := start1(t, c)
	s.waitInitialized()
	return s
}

// waitInitialized waits until the initial data are applied or have failed.
func (s *Server) waitInitialized() {
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(2 * time.Millisecond) {
		s.init.mu.Lock()
		state := s.init.State
		s.init.mu.Unlock()
		if state != initRunning {
			break
		}
	}
}

func adminText(t *testing.T, s *Server, path string) (int, string) {
	t.Helper()
	res, err := http.Get("http://" + s.Addr(Admin) + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// Each kind of file is applied, in the order of the names, before the server is ready.
func TestInitDir(t *testing.T) {
	s := startWithFiles(t, map[string]string{
		"01-shop.yaml": "databases:\n- id: shop\n  containers:\n  - id: products\n    partitionKey: /category\n" +
			"  - id: orders\n    partitionKey: [/tenant, /user]\n    defaultTtl: 3600\ntables: [devices]\n",
		"02-shop.products.jsonl": "{\"id\":\"1\",\"category\":\"a\"}\n{\"id\":\"2\"}\n",
		"03-shop.orders.json":    `[{"id":"o","tenant":"t","user":"u"}]`,
		"04-shop.prices.csv":     "id,price:number,note\np1,1.5,cheap\np2,2,\n",
		"05-graphs.g.gremlin":    "// comment\ng.addV('a').property(id, 'x')\n\ng.addV('a').property(id, 'y')",
		"10-shop.products.jsonl": `{"id":"1","category":"a","again":true}`,
		"07-social.net.graphson": `{"id":"ann","label":"person","outE":{"knows":[{"id":"e","inV":"bob"}]}}` + "\n" +
			`{"id":"bob","label":"person"}` + "\n",
		".hidden.nonsense":            "",
		"06-new.friends.gremlin":      "g.addV('f').property(id, 'z')\n",
		"02-shop.products2.ndjson":    `{"id":"n"}`,
		"99-shop.products.empty.json": `[]`,
	})
	if code, text := adminText(t, s, "/ready"); code != 200 {
		t.Fatalf("/ready: %d %s", code, text)
	}
	_, results := adminText(t, s, InitPath)
	for _, want := range []string{`"state":"done"`, `"file":"02-shop.products.jsonl","written":2`,
		`"file":"04-shop.prices.csv","written":2`, `"file":"05-graphs.g.gremlin","written":2`} {
		if !strings.Contains(results, want) {
			t.Errorf("%s lacks %s:\n%s", InitPath, want, results)
		}
	}
	if i, j := strings.Index(results, "06-new"), strings.Index(results, "10-shop"); i < 0 || j < i {
		t.Errorf("the order is wrong:\n%s", results)
	}
	for name, want := range map[[2]string]int64{{"shop", "products"}: 2, {"shop", "orders"}: 1, {"shop", "prices"}: 2,
		{"graphs", "g"}: 2, {"new", "friends"}: 1, {"social", "net"}: 3} {
		c, err := s.Engine().Container(name[0], name[1])
		if err != nil {
			t.Errorf("%v: %v", name, err)
			continue
		}
		if n, err := c.Count(context.Background()); err != nil || n != want {
			t.Errorf("%v has %d items, %v, want %d", name, n, err, want)
		}
	}
	if c, err := s.Engine().Container("shop", "orders"); err == nil && len(c.Spec().PartitionKey.Paths) != 2 {
		t.Errorf("orders has the partition key %v", c.Spec().PartitionKey)
	}
}

// A file that fails keeps the server from being ready, and says why. Later files aren't applied.
func TestInitDirThatFails(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"02-shop.products.jsonl": {`{"id":"1"`, "item 1"},
		"02-nowhere.json":        {`[]`, "its name doesn't say"},
		"02-a.b.json":            {`{}`, "JSON array"},
		"02-a.yaml":              {"databases:\n- id: x\n  unknown: 1\n", "unknown"},
		"02-b.yaml":              {"databases:\n- id: x\n  containers: [{partitionKey: /a}]\n", "container"},
		"02-script.bin":          {"", "no such kind"},
		"02-graphs.g.gremlin":    {"g.addV('a'\n", "line 1"},
		"02-a.c.jsonl":           {`{"noid":1}`, "item 1"},
		"02-a.d.jsonl":           {`{"id":"1"}}` + "\n" + `{"id":"2"}`, "item 2"},
		"02-a.e.json":            {`[{"id":"1"},{"id":"2"}`, "item 3: the file ends within its array"},
		"02-a.f.json":            {`[{"id":"1"}],{"id":"2"}`, "item 2"},
		"02-a.g.json":            {`[{"id":"1"}}`, "item 2"},
		"02-a.h.JSON":            {`{"id":"1"}`, "JSON array"},
	} {
		s := startWithFiles(t, map[string]string{"01-a.yaml": "databases: [{id: first}]", name: tc.text,
			"03-a.yaml": "databases: [{id: never}]"})
		if code, text := adminText(t, s, "/ready"); code != 503 || !strings.Contains(text, name) ||
			!strings.Contains(text, tc.want) {
			t.Errorf("%s: /ready is %d %q, want %q", name, code, text, tc.want)
		}
		if code, _ := adminText(t, s, "/alive"); code != 200 {
			t.Errorf("%s: /alive is %d", name, code)
		}
		if got := databases(t, s); strings.Contains(got, "never") || !strings.Contains(got, "first") {
			t.Errorf("%s: there are %s", name, got)
		}
	}
}

// Only clients of private networks of the machine's interfaces are let in.
func TestOwnNetworks(t *testing.T) {
	var addrs []net.Addr
	for _, text := range []string{"127.0.0.1/8", "172.18.0.3/16", "203.0.113.7/24", "fd00::3/64", "2001:db8::1/64"} {
		ip, n, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, &net.IPNet{IP: ip, Mask: n.Mask})
	}
	o := &ownNetworks{networks: networksOf(addrs)}
	for client, want := range map[string]bool{"127.0.0.1": true, "::1": true, "172.18.0.1": true, "172.19.0.1": false,
		"192.168.1.20": false, "203.0.113.9": false, "8.8.8.8": false, "fd00::1": true, "fd01::1": false,
		"2001:db8::2": false, "::ffff:172.18.9.9": true, "::ffff:10.0.0.1": false} {
		if got := o.has(&net.TCPAddr{IP: net.ParseIP(client), Port: 1}); got != want {
			t.Errorf("%s: %v, want %v", client, got, want)
		}
	}
	for _, tc := range []struct {
		own  bool
		want string
	}{{false, "--insecure"}, {true, ""}} {
		c := Default()
		c.NoSQLAddr, c.OwnNetworks = "0.0.0.0:8081", tc.own
		err := c.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("own networks %v: %v", tc.own, err)
		}
	}
}

// Scripts of MongoDB's shell run in the order of the names, with a database, variables and files of the directory.
func TestInitScripts(t *testing.T) {
	t.Setenv("INIT_TEST_CITY", "Rome")
	s := startWithFiles(t, map[string]string{
		".twice": "function twice(x) { return 2 * x }",
		"01-fill.js": "load('.twice');\ndb = db.getSiblingDB('shop');\ndb.orders.insertMany([" +
			"{_id: 1, city: process.env.INIT_TEST_CITY}, {_id: 2, n: twice(4)}]);\nprint('filled');\n",
		"02-more.js": "db.getSiblingDB('shop').orders.updateOne({_id: 2}, {$inc: {n: 1}}); quit()",
	})
	if code, text := adminText(t, s, "/ready"); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	if _, text := adminText(t, s, InitPath); !strings.Contains(text, `"file":"01-fill.js","written":2`) {
		t.Error(text)
	}
	c, err := s.Engine().Container("shop", "orders")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Count(context.Background()); err != nil || n != 2 {
		t.Errorf("%d orders, %v", n, err)
	}
}

// A script that fails keeps the server from being ready, and the reason has file and line.
func TestInitScriptsThatFail(t *testing.T) {
	for file, want := range map[[2]string]string{
		{"a.js", "let x = 1;\n\nnothere();"}:                              "a.js: line 3: ReferenceError: nothere",
		{"b.js", "\ndb.c.insertOne({_id: 1}); db.c.insertOne({_id: 1});"}: "b.js: line 2: MongoServerError: E11000",
		{"c.js", "db.c.find({"}:                                           "c.js: line 1: SyntaxError: Unexpected end of input",
		{"d.js", "load('/etc/passwd')"}:                                   "only files of --init-dir",
		{"e.js", "load('../x.js')"}:                                       "only files of --init-dir",
		{"f.js", "connect('mongodb://other:27017')"}:                      "other:27017 is another server",
		{"g.js", "quit(3)"}:                                               "g.js: quit(3)",
		{"h.sh", "echo hello"}:                                            "h.sh: scripts of a command shell aren't run",
	} {
		s := startWithFiles(t, map[string]string{file[0]: file[1]})
		if code, text := adminText(t, s, "/ready"); code != 503 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", file[0], code, text)
		}
	}
}

// A store in a directory runs a script once.
func TestInitScriptsRunOnce(t *testing.T) {
	data, files := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "a.js"), []byte("db.c.insertOne({})"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		cfg := Ephemeral()
		cfg.Memory, cfg.Data, cfg.InitDir, cfg.InitDatabase = false, data, files, "mine"
		s, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.waitInitialized()
		c, err := s.Engine().Container("mine", "c")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Count(context.Background()); err != nil || n != 1 {
			t.Errorf("%d documents, %v", n, err)
		}
		if err := s.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// What a reset removed is there after the next start, and what a restore brought back isn't made twice.
func TestInitScriptsBelongToTheStore(t *testing.T) {
	data, files := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "a.js"), []byte("db.c.insertOne({})"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, then := range []func(s *Server) error{
		func(s *Server) error { return errors.Join(s.Snapshot("", "made"), s.Reset("")) },
		func(s *Server) error { return s.Restore("", "made") },
		func(s *Server) error { return errors.Join(s.Snapshot("", "again"), s.Restore("", "again")) },
		func(s *Server) error { return nil },
	} {
		cfg := Ephemeral()
		cfg.Memory, cfg.Data, cfg.InitDir, cfg.InitDatabase, cfg.TestControls = false, data, files, "mine", true
		cfg.Logger = quiet
		s, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.waitInitialized()
		c, err := s.Engine().Container("mine", "c")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Count(context.Background()); err != nil || n != 1 {
			t.Errorf("%d documents, %v", n, err)
		}
		if err := then(s); err != nil {
			t.Fatal(err)
		}
		stopNow(t, s)
	}
}

// A byte order mark, which editors write, is no part of a file's text.
func TestInitDirWithByteOrderMarks(t *testing.T) {
	const mark = "\ufeff"
	s := startWithFiles(t, map[string]string{
		"1.yaml":              mark + "databases: [{id: shop}]\n",
		"2-shop.a.jsonl":      mark + `{"id":"1"}` + "\n",
		"3-shop.a.json":       mark + `[{"id":"2"}]`,
		"4-shop.a.csv":        mark + "\"id\",\"n:number\"\n3,1\n",
		"5-graphs.g.gremlin":  mark + "// comment\ng.addV('a').property(id, 'x')\n",
		"6-graphs.g.graphson": mark + `{"id":"y","label":"a"}` + "\n",
		"7.js":                mark + `db.a.insertOne({_id: 1})` + "\n",
	})
	if code, text := adminText(t, s, "/ready"); code != 200 {
		t.Fatalf("/ready: %d %s", code, text)
	}
}
