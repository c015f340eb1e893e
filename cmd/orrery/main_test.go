package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/orrerydb/orrery/cmd/orrery/server"
)

func parse(t *testing.T, args ...string) (cli, error) {
	t.Helper()
	var c cli
	p, err := kong.New(&c, kong.DefaultEnvars("ORRERY"), kong.Vars{"key": server.WellKnownKey})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Parse(args)
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
	if cfg.TableAddr != "off" || cfg.NoSQLAddr != "off" || cfg.Auth || cfg.CacheMB != 256 || len(cfg.GremlinSources) != 2 ||
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
		got.MongoAddr != want.MongoAddr || got.AdminAddr != want.AdminAddr || got.Key != want.Key || got.Account != want.Account ||
		!got.Auth || got.CacheMB != want.CacheMB || c.Serve.Durability != want.Durability {
		t.Fatalf("flags %+v, server %+v", got, want)
	}
}

func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		args string
		code int
		text string // in either stream
	}{
		{"", 0, "serve"},
		{"--help", 0, "check"},
		{"version", 0, ""},
		{"serve --memory --data x", 2, "--data and --memory"},
		{"serve --durability maybe", 2, "durability"},
		{"serve --nope", 2, "--nope"},
		{"nope", 2, "nope"},
		{"serve --memory --auth=false --nosql-addr :0", 1, "--insecure"},
		{"serve --memory --mongo-addr 0.0.0.0:0", 1, "well-known key"},
		{"serve --memory --gremlin-source x", 1, "NAME=DATABASE/GRAPH"},
		{"serve --memory --strict nosql,none", 1, "none stands alone"},
		{"serve --memory --strict table", 1, "--strict"},
		{"serve --memory --public-host a/b", 1, "--public-host"},
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
