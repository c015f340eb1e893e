package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
)

// inWords are the flags whose default the documentation describes in words, because the server computes it at its
// start.
var inWords = map[string]string{"data": "./data", "key": "the emulator's", "min-free": "256MiB", "memory-mb": "cache and 112"}

var documentedFlag = regexp.MustCompile("`--([a-z-]+)[^`]*`")

// The table of flags in docs/operations.md has exactly the flags of serve, with their defaults.
func TestDocumentedFlags(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n| flag | default |")
	table, _, _ := strings.Cut(rest, "\n\n")
	documented := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range documentedFlag.FindAllStringSubmatch(cells[1], -1) {
			documented[m[1]] = strings.Trim(cells[2], " `")
		}
	}
	var c commands
	c.Serve.command(nil).Flags().VisitAll(func(f *pflag.Flag) {
		want := f.DefValue
		if d, err := time.ParseDuration(documented[f.Name]); err == nil && d.String() == want {
			want = documented[f.Name]
		}
		switch f.Value.Type() {
		case "bool":
			want = ""
		case "stringSlice":
			want = strings.Trim(want, "[]")
		}
		if words, ok := inWords[f.Name]; ok {
			want = words
		}
		got, ok := documented[f.Name]
		delete(documented, f.Name)
		if !ok || got != want {
			t.Errorf("--%s: documented %v with default %q, want %q", f.Name, ok, got, want)
		}
	})
	for name := range documented {
		t.Errorf("--%s is documented and no flag of serve", name)
	}
}

// The tests that the documents name exist.
func TestDocumentedTests(t *testing.T) {
	const root = "../../.."
	isTest := regexp.MustCompile(`(?m)^func (Test\w+|Benchmark\w+|Fuzz\w+)\(`)
	named := regexp.MustCompile("`(Test[A-Z]\\w+|Benchmark[A-Z]\\w+|Fuzz[A-Z]\\w+)`")
	there, told := map[string]bool{}, map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		var find *regexp.Regexp
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || name == "node_modules" || name == ".venv"):
			return filepath.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			find = isTest
		case strings.HasSuffix(name, ".md"):
			find = named
		default:
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range find.FindAllStringSubmatch(string(b), -1) {
			if find == isTest {
				there[m[1]] = true
			} else {
				told[m[1]] = path
			}
		}
		return err
	})
	if err != nil || len(told) < 50 {
		t.Fatalf("%d tests are named: %v", len(told), err)
	}
	for name, where := range told {
		if !there[name] {
			t.Errorf("%s names %s, which isn't there", where, name)
		}
	}
}

// fenced returns the text of the block of README.md that begins with this line.
func fenced(t *testing.T, first string) string {
	t.Helper()
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n"+first+"\n")
	block, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatalf("README.md has no block %s", first)
	}
	return block
}

// README.md shows the banner as the server prints it with the default addresses.
func TestREADMEShowsTheBanner(t *testing.T) {
	want := fenced(t, "```text banner")
	cfg := server.Ephemeral()
	cfg.Memory, cfg.Data = false, t.TempDir()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg.Version, _, _ = strings.Cut(strings.TrimPrefix(want, "Orrery "), "\n")
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var banner strings.Builder
	if err := errors.Join(s.Banner(&banner), s.Stop(context.Background())); err != nil {
		t.Fatal(err)
	}
	std := server.Default()
	got := strings.NewReplacer(s.Addr(server.NoSQL), std.NoSQLAddr, s.Addr(server.Table), std.TableAddr,
		s.Addr(server.Gremlin), std.GremlinAddr, s.Addr(server.Mongo), std.MongoAddr, s.Addr(server.Admin),
		std.AdminAddr,
		cfg.Data, "./data").Replace(banner.String())
	if got != want {
		t.Errorf("the banner is\n%s\nREADME.md has\n%s", got, want)
	}
}

// The query for a shell in README.md gives the answer that README.md shows.
func TestREADMEShellQuery(t *testing.T) {
	line := strings.TrimSpace(fenced(t, "```sh"))
	flags, query, _ := strings.Cut(strings.TrimPrefix(line, "bin/orrery "), ` "`)
	_, inserted, _ := strings.Cut(fenced(t, "```js"), "insertOne(")
	inserted, _, _ = strings.Cut(inserted, ")\n")
	cfg, ctx := server.Ephemeral(), context.Background()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := server.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(ctx) }()
	_, err = s.Engine().CreateDatabase(ctx, core.DatabaseSpec{ID: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	spec := core.ContainerSpec{ID: "people", PartitionKey: core.PartitionKeyDef{Paths: []string{"/id"}}}
	c, err := s.Engine().CreateContainer(ctx, "shop", spec)
	if err != nil {
		t.Fatal(err)
	}
	d, err := doc.FromJSON(nil, []byte(inserted), doc.JSONOptions{})
	if err == nil {
		_, err = c.Write(ctx, core.Write{Kind: core.Create, Doc: d})
	}
	if err != nil {
		t.Fatal(err)
	}
	args := append(strings.Fields(flags), "--endpoint", "http://"+s.Addr(server.NoSQL), strings.TrimSuffix(query, `"`))
	var out, errOut bytes.Buffer
	if code := run(args, &out, &errOut); code != 0 || out.String() != "\"Ben Smith\"\n" {
		t.Errorf("%q: exit %d: %s%s", args, code, out.String(), errOut.String())
	}
}
