package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

func parse(t *testing.T, args ...string) (commands, error) {
	t.Helper()
	var c commands
	cmd, rest, err := c.root(&streams{io.Discard, io.Discard}).Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = fromVariables(cmd.Flags())
	}
	return c, err
}

func TestFlagsAndVariables(t *testing.T) {
	t.Setenv("ORRERY_TABLE_ADDR", "off")
	t.Setenv("ORRERY_CACHE_MB", "128")
	t.Setenv("ORRERY_AUTH", "false")
	t.Setenv("ORRERY_GREMLIN_SOURCE", "a=db/a,b=db/b")
	c, err := parse(t, "serve", "--memory", "--cache-mb", "256", "--nosql-addr=off", "--durability", "relaxed")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.Serve.config()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.TableAddr != "off" || cfg.NoSQLAddr != "off" || cfg.Auth || cfg.CacheMB != 256 ||
		len(cfg.GremlinSources) != 2 ||
		c.Serve.Durability != "relaxed" || !c.Serve.Memory || cfg.MongoAddr != "127.0.0.1:10255" {
		t.Fatalf("%+v %+v", cfg, c.Serve)
	}
}

func TestStrictness(t *testing.T) {
	for flag, want := range map[string]string{"": "[nosql]", "--strict=nosql": "[nosql]", "--strict=none": "[]", "--strict=NoSQL": "[nosql]", "--strict=nosql,nosql": "[nosql]", "--strict=none --strict none": "[]"} {
		c, err := parse(t, strings.Fields("serve --memory "+flag)...)
		if err != nil {
			t.Fatal(err)
		}
		if cfg, err := c.Serve.config(); err != nil || fmt.Sprint(cfg.Strict) != want {
			t.Errorf("%q: %v %v", flag, cfg.Strict, err)
		}
	}
	t.Setenv("ORRERY_STRICT", "none")
	if c, err := parse(t, "serve"); err != nil || fmt.Sprint(c.Serve.Strict) != "[none]" {
		t.Errorf("%v %v", c.Serve.Strict, err)
	}
}

func TestDefaultsAreTheServers(t *testing.T) {
	c, err := parse(t, "serve")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Serve.config()
	if err != nil {
		t.Fatal(err)
	}
	want := server.Default()
	if got.NoSQLAddr != want.NoSQLAddr || got.GremlinAddr != want.GremlinAddr || got.TableAddr != want.TableAddr ||
		got.MongoAddr != want.MongoAddr || got.AdminAddr != want.AdminAddr || got.Key != want.Key ||
		got.Account != want.Account ||
		got.MemoryMB != want.MemoryMB || got.MaxConnections != want.MaxConnections ||
		got.MaxRequests != want.MaxRequests ||
		got.MaxWaiting != want.MaxWaiting || got.MaxTime != want.MaxTime || got.Slow != want.Slow || got.LogRequests ||
		!got.Auth || got.ScriptMemory != want.ScriptMemory || got.ScriptTime != want.ScriptTime ||
		got.CacheMB != want.CacheMB || c.Serve.Durability != want.Durability {
		t.Fatalf("flags %+v, server %+v", got, want)
	}
}

func TestExitCodes(t *testing.T) {
	t.Setenv("ORRERY_TEST_KEY", "a2V5")
	for _, tc := range []struct {
		args string
		code int
		text string // on either stream
	}{
		{"", 0, "serve"},
		{"--help", 0, "check"},
		{"version", 0, "orrery "},
		{"--version", 0, "orrery "},
		{"help", 0, "serve"},
		{"help query", 0, "--explain"},
		{"help nope", 2, "nope"},
		{"serve --memory --data x", 2, "--data and --memory"},
		{"serve --memory --engine tikv://pd:2379/main", 2, "--engine and --memory"},
		{"serve --engine tikv://pd:2379/main", 1, "orrery-tikv"},
		{"serve --durability maybe", 2, "durability"},
		{"serve --nope", 2, "--nope"},
		{"nope", 2, "nope"},
		{"serve --memory --auth=false --nosql-addr :0", 1, "--insecure"},
		{"serve --memory --mongo-addr 0.0.0.0:0", 1, "well-known key"},
		{"serve --memory --gremlin-source x", 1, "NAME=DATABASE/GRAPH"},
		{"serve --memory --strict nosql,none", 1, "none can't be combined"},
		{"serve --memory --strict table", 1, "--strict"},
		{"serve --memory --public-host a/b", 1, "--public-host"},
		{"serve --memory --key-file /nonexistent", 1, "--key-file"},
		{"serve --memory --key a2V5", 1, "want env:NAME or file:PATH"},
		{"serve --memory --key env:ORRERY_TEST_KEY --key-file /nonexistent", 1, "can't be used together"},
		{"serve --memory --log-level loud", 2, "log-level"},
		{"serve --memory --log-format xml", 2, "log-format"},
		{"serve --memory --tls-cert x", 1, "--tls-cert and --tls-key"},
		{"serve --memory --tls-cert /nonexistent --tls-key /nonexistent --nosql-addr 127.0.0.1:0 --table-addr off " +
			"--gremlin-addr off --mongo-addr off --admin-addr off", 1, "/nonexistent"},
		{"serve --memory --memory-mb 150", 1, "--memory-mb 150: want at least 160"},
		{"serve --memory --max-connections 0", 1, "--max-connections"},
		{"serve --memory --max-time=-1s", 1, "--max-time"},
		{"serve --memory --partition-ru 99", 1, "--partition-ru: want at least 100"},
		{"serve --memory --partition-gb 0", 1, "--partition-gb 0: want"},
		{"serve --memory --logical-gb nan", 1, "--logical-gb NaN: want"},
		{"serve --memory --stream-mb 0", 1, "--stream-mb: want at least 1"},
		{"serve --memory --stream-age 1ms", 1, "--stream-age: want at least 1"},
		{"connect --data /nonexistent", 1, "no server serves /nonexistent"},
		{"check /nonexistent-directory", 2, "nonexistent"},
	} {
		var out, errOut bytes.Buffer
		if code := run(strings.Fields(tc.args), &out, &errOut); code != tc.code {
			t.Errorf("orrery %s: exit %d, want %d: %s", tc.args, code, tc.code, errOut.String())
		}
		if !strings.Contains(out.String()+errOut.String(), tc.text) {
			t.Errorf("orrery %s says %q %q, want %q", tc.args, out.String(), errOut.String(), tc.text)
		}
	}
}

func TestKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	for content, want := range map[string]string{"c2VjcmV0\n": "c2VjcmV0", " c2VjcmV0": "c2VjcmV0", " \n": ""} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := parse(t, "serve", "--key-file", file)
		if err != nil {
			t.Fatal(err)
		}
		if cfg, err := c.Serve.config(); cfg.Key != want && want != "" || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", content, cfg.Key, err)
		}
	}
}

func TestLogFlags(t *testing.T) {
	for _, tc := range []struct{ flags, want string }{
		{"", "level=WARN msg=w"},
		{"--log-level error", ""},
		{"--log-level debug", "level=DEBUG msg=d"},
		{"--log-format json", `"level":"WARN","msg":"w"}`},
	} {
		c, err := parse(t, strings.Fields("serve "+tc.flags)...)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		log, err := c.Serve.logger(&out)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("d")
		log.Warn("w")
		if got := out.String(); !strings.Contains(got, tc.want) || tc.want == "" && got != "" ||
			strings.Contains(got, "DEBUG") != strings.Contains(tc.flags, "debug") {
			t.Errorf("%q: %s", tc.flags, got)
		}
	}
}

// withStack is an error of a library whose long form has a stack.
type withStack struct{}

func (withStack) Error() string                 { return "short" }
func (withStack) Format(f fmt.State, verb rune) { _, _ = io.WriteString(f, "a long stack") }

func TestErrorsInTheLogAreOneSentence(t *testing.T) {
	for _, form := range []string{"text", "json"} {
		var out bytes.Buffer
		log, err := (&logging{LogLevel: "info", LogFormat: form}).logger(&out)
		if err != nil {
			t.Fatal(err)
		}
		log.Error("failed", "error", error(withStack{}))
		if got := out.String(); !strings.Contains(got, "short") || strings.Contains(got, "stack") {
			t.Errorf("%s: %s", form, got)
		}
	}
}

// With one of Go's processors a sync of the log would block everything else, unless the kernel does it.
func TestEnoughProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	one := 2
	if pebblekv.SyncsAside() {
		one = 1
	}
	for have, want := range map[int]int{1: one, 2: 2, 3: 3} {
		runtime.GOMAXPROCS(have)
		enoughProcessors()
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("%d became %d, want %d", have, got, want)
		}
	}
}
