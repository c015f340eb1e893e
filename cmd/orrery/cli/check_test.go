package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
)

// dataWith makes a data directory with a store. Most of its items are in an sstable, not in the log.
func dataWith(t *testing.T, items int) string {
	t.Helper()
	ctx, data := context.Background(), t.TempDir()
	for round := range 2 {
		e, err := pebblekv.Open(server.StoreDir(data),
			pebblekv.Options{CacheMB: 1, Relaxed: true, Scanned: core.OnlyScanned})
		if err != nil {
			t.Fatal(err)
		}
		eng, err := core.Open(ctx, e, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := eng.EnsureDatabase(ctx, "shop"); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			if _, err := eng.CreateContainer(
				ctx, "shop", core.ContainerSpec{
					ID: "orders", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}}); err != nil {
				t.Fatal(err)
			}
		}
		c, err := eng.Container("shop", "orders")
		if err != nil {
			t.Fatal(err)
		}
		for i := range items {
			if round == 1 && i > 3 {
				break
			}
			d, err := doc.FromJSON(nil, fmt.Appendf(nil, `{"id":"o%d","pk":"p%d","round":%d,"text":%q}`, i, i%5, round,
				strings.Repeat("x", 500)), doc.JSONOptions{Names: doc.NoSQL})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(ctx, core.Write{Kind: core.Upsert, Doc: d}); err != nil {
				t.Fatal(err)
			}
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

// command runs orrery and returns its exit code and output.
func command(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = run(args, &o, &e)
	return code, o.String(), e.String()
}

// The exit codes and messages of check and repair, for an intact store and for damaged ones.
func TestCheckAndRepair(t *testing.T) {
	const items = 200
	data := dataWith(t, items)
	if code, out, errOut := command("check", data); code != 0 ||
		out != fmt.Sprintf("%s: clean, 1 containers with %d items\n", data, items) || errOut != "" {
		t.Errorf("check: %d %q %q", code, out, errOut)
	}
	var r checkResult
	if code, out, _ := command("check", "--json", data); code != 0 || json.Unmarshal([]byte(out), &r) != nil ||
		!r.Clean || r.Items != items || len(r.Problems) > 0 {
		t.Errorf("check --json: %d %s", code, out)
	}
	if code, _, errOut := command("check", t.TempDir()); code != 1 || !strings.Contains(errOut, "holds no store") {
		t.Errorf("check of nothing: %d %q", code, errOut)
	}
	if code, _, errOut := command("repair", data, "--to", data); code != 1 ||
		!strings.Contains(errOut, "nothing is changed") {
		t.Errorf("repair into itself: %d %q", code, errOut)
	}

	t.Run("without the manifest's marker", func(t *testing.T) {
		data := copied(t, data)
		remove(t, data, "marker.manifest.*")
		code, out, errOut := command("check", data)
		if code != 1 || strings.Count(out, "\n") != 1 || !strings.Contains(out, "marker.manifest.*") ||
			!strings.Contains(errOut, "1 problem") {
			t.Errorf("check: %d %q %q", code, out, errOut)
		}
		code, out, errOut = command("repair", data, "--to", filepath.Join(t.TempDir(), "new"))
		if code != 0 || !strings.Contains(out, fmt.Sprintf("1 containers with %d items are saved", items)) ||
			!strings.Contains(out, "nothing is lost") {
			t.Errorf("repair: %d %q %q", code, out, errOut)
		}
	})
	t.Run("without a part of a table", func(t *testing.T) {
		data := copied(t, data)
		tables, err := filepath.Glob(filepath.Join(server.StoreDir(data), "*.sst"))
		if err != nil || len(tables) == 0 {
			t.Fatal(tables, err)
		}
		b, err := os.ReadFile(tables[0])
		if err != nil {
			t.Fatal(err)
		}
		b[200] ^= 0x55 // the first block contains the catalog and items of the first slot
		b[len(b)/4] ^= 0x55
		if err := os.WriteFile(tables[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		var r checkResult
		code, out, _ := command("check", "--json", data)
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 1 || r.Clean || len(r.Problems) == 0 ||
			r.Problems[0].File != filepath.Base(tables[0]) {
			t.Errorf("check: %d, %v: %s", code, err, out)
		}
		to := filepath.Join(t.TempDir(), "new")
		var rr repairResult
		code, out, errOut := command("repair", "--json", data, "--to", to)
		if err := json.Unmarshal([]byte(out), &rr); err != nil || code != 1 || len(rr.Lost) == 0 ||
			!strings.Contains(errOut, "loss") {
			t.Errorf("repair: %d, %v: %s %s", code, err, out, errOut)
		}
		if code, out, errOut := command("check", to); code != 0 {
			t.Errorf("check of the new store: %d %q %q", code, out, errOut)
		}
	})
}

// The store's directory inside a data directory is not itself a data directory: every command reports this, and creates
// nothing in it.
func TestStoreIsNoDataDirectory(t *testing.T) {
	data := dataWith(t, 3)
	inner := server.StoreDir(data)
	before, err := os.ReadDir(inner)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"serve", "--data", inner, "--nosql-addr", "127.0.0.1:0", "--gremlin-addr=off", "--table-addr=off",
			"--mongo-addr=off", "--admin-addr=off"},
		{"check", inner},
		{"repair", inner, "--to", filepath.Join(t.TempDir(), "new")},
		{"query", "--data", inner, "--db", "shop", "--container", "orders", "SELECT * FROM c"},
		{"connect", "--data", inner},
	} {
		code, out, errOut := command(args...)
		if want := fmt.Sprintf("%s is the store inside of a data directory: give %s\n", inner, data); code != 1 ||
			!strings.HasSuffix(errOut, want) {
			t.Errorf("%s: %d %q %q", args[0], code, out, errOut)
		}
		after, err := os.ReadDir(inner)
		if err != nil || len(after) != len(before) {
			t.Errorf("%s: %d files are %d now, %v", args[0], len(before), len(after), err)
		}
	}
}

func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func remove(t *testing.T, data, pattern string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(server.StoreDir(data), pattern))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, n := range names {
		if err := os.Remove(n); err != nil {
			t.Fatal(err)
		}
	}
}
