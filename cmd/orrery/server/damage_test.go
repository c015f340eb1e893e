package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/doc"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/value"
)

// wantItems are the documents of a store's items, by id.
type wantItems map[string]string

func (w wantItems) pk(id string) core.PartitionKey {
	return core.PartitionKey{value.StringOf("p" + id[len(id)-1:])}
}

// damagedStore makes a store with tables and a log, several containers, and overwritten and deleted versions. closed:
// the server was stopped; otherwise the files are as after a kill.
func damagedStore(t *testing.T, closed bool) (data string, want wantItems) {
	t.Helper()
	ctx := context.Background()
	data = t.TempDir()
	want = wantItems{}
	never := int32(-1)
	specs := []core.ContainerSpec{
		{ID: "plain", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}},
		{ID: "unique", PartitionKey: core.PartitionKeyDef{Paths: []string{"/pk"}}, UniqueKeys: [][]string{{"/u"}},
			DefaultTTL: &never},
	}
	for round := range 3 { // each start writes the log before it to tables
		e, err := pebblekv.Open(StoreDir(data),
			pebblekv.Options{MemTableMB: 1, CacheMB: 8, Scanned: core.OnlyScanned, Kept: core.GotSingly})
		if err != nil {
			t.Fatal(err)
		}
		eng, err := core.Open(ctx, e, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := eng.EnsureDatabase(ctx, "db"); err != nil {
			t.Fatal(err)
		}
		for _, s := range specs {
			if round == 0 {
				if _, err := eng.CreateContainer(ctx, "db", s); err != nil {
					t.Fatal(err)
				}
			}
			c, err := eng.Container("db", s.ID)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 150 {
				id := fmt.Sprintf("%s-%d", s.ID, i)
				switch {
				case round > 0 && i%3 != round:
					continue
				case round == 2 && i%6 == 2:
					delete(want, id)
					if _, err := c.Write(
						ctx, core.Write{Kind: core.Delete, PK: want.pk(id), ID: value.StringOf(id)}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				text := fmt.Sprintf(`{"id":%q,"pk":"p%s","u":%d,"round":%d,"ttl":100000,"text":%q,"list":[1,2,%d]}`, id,
					id[len(id)-1:], i, round,
					strings.Repeat(fmt.Sprintf("%d ", i*round), 60), i)
				d, err := doc.FromJSON(nil, []byte(text), doc.JSONOptions{Names: doc.NoSQL})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Write(ctx, core.Write{Kind: core.Upsert, Doc: d}); err != nil {
					t.Fatal(err)
				}
				want[id] = string(doc.AppendJSON(nil, value.ObjectOf(d)))
			}
		}
		if round == 2 && !closed {
			killed := t.TempDir()
			if err := os.CopyFS(killed, os.DirFS(data)); err != nil {
				t.Fatal(err)
			}
			defer func() { data = killed }()
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return data, want
}

// compare reads all items. It counts the unchanged ones, and returns those that are wrong or missing without an error,
// and those whose read fails.
func (w wantItems) compare(t *testing.T, eng *core.Engine) (right, silent, failed []string) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(w)) {
		name, _, _ := strings.Cut(id, "-")
		c, err := eng.Container("db", name)
		var it *core.Item
		if err == nil {
			it, err = c.Read(context.Background(), w.pk(id), value.StringOf(id))
		}
		switch {
		case err == nil && string(doc.AppendJSON(nil, value.ObjectOf(it.Doc))) == w[id]:
			right = append(right, id)
		case err != nil && !strings.Contains(err.Error(), "Not Found") && !strings.Contains(err.Error(), "not exist"):
			failed = append(failed, id)
		default:
			silent = append(silent, id)
		}
	}
	return right, silent, failed
}

// state returns everything visible of a directory's files.
func state(t *testing.T, dir string) string {
	t.Helper()
	var s strings.Builder
	err := filepath.Walk(dir, func(path string, i os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(&s, path, i.Mode(), i.Size(), i.ModTime().UnixNano())
		if i.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&s, "%x\n", sha256.Sum256(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.String()
}

// checked runs a check and returns its problems.
func checked(t *testing.T, data string) (problems []string) {
	t.Helper()
	report := func(p pebblekv.Problem) {
		if p.Level != pebblekv.Note {
			problems = append(problems, p.String())
		}
	}
	eng, err := Examine(context.Background(), data, pebblekv.Watch{Report: report})
	if err != nil {
		t.Fatal(err)
	}
	if eng == nil {
		return problems
	}
	err = eng.CheckWatched(context.Background(),
		core.CheckWatch{Problem: func(p string) { problems = append(problems, p) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	return problems
}

// damage is one way to change a file.
type damage struct {
	name string
	do   func(r *rand.Rand, b []byte) []byte // nil: the file is removed
}

var damages = []damage{
	{"delete", nil},
	{"empty", func(*rand.Rand, []byte) []byte { return nil }},
	{"cut", func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] }},
	{"flip", flip}, {"flip", flip}, {"flip", flip}, {"flip", flip},
	{"flip near the end", func(r *rand.Rand, b []byte) []byte {
		b[len(b)-1-r.IntN(min(len(b), 60))] ^= byte(1 + r.IntN(255))
		return b
	}},
	{"zero a page", func(r *rand.Rand, b []byte) []byte {
		at := r.IntN(len(b)) &^ 4095
		clear(b[at:min(len(b), at+4096)])
		return b
	}},
}

func flip(r *rand.Rand, b []byte) []byte {
	b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
	return b
}

// TestDamage damages each file of a store in all ways. A check must report a problem whenever an item isn't as before,
// and change nothing. A server must refuse the store, or fail on the damaged parts with an error. A repair must save
// everything else.
func TestDamage(t *testing.T) {
	for _, closed := range []bool{true, false} {
		name := "stopped"
		if !closed {
			name = "killed"
		}
		t.Run(name, func(t *testing.T) { testDamage(t, closed) })
	}
}

func testDamage(t *testing.T, closed bool) {
	whole, want := damagedStore(t, closed)
	if p := checked(t, whole); len(p) > 0 {
		t.Fatalf("undamaged: %q", p)
	}
	names, err := os.ReadDir(StoreDir(whole))
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(1)
	for _, n := range names {
		for _, d := range damages {
			seed++
			b, err := os.ReadFile(filepath.Join(StoreDir(whole), n.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if d.do != nil && len(b) == 0 {
				continue
			}
			if !closed && strings.HasSuffix(n.Name(), ".log") &&
				(d.name == "cut" || d.name == "empty" || d.name == "zero a page") {
				continue // a crash leaves this too
			}
			seed := seed
			t.Run(fmt.Sprintf("%s/%s %d", n.Name(), d.name, seed), func(t *testing.T) {
				t.Parallel()
				data := t.TempDir()
				if err := os.CopyFS(data, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(StoreDir(data), n.Name())
				var err error
				if d.do == nil {
					err = os.Remove(path)
				} else {
					err = os.WriteFile(path, d.do(rand.New(rand.NewPCG(seed, 1)), bytes.Clone(b)), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				examineDamaged(t, data, want)
			})
		}
	}
}

func examineDamaged(t *testing.T, data string, want wantItems) {
	before := state(t, data)
	problems := checked(t, data)
	if after := state(t, data); after != before {
		t.Fatalf("a check changed\n%s\nto\n%s", before, after)
	}
	to := filepath.Join(t.TempDir(), "new")
	var lost []core.Lost
	done, err := Repair(context.Background(), data, to, nil, func(l core.Lost) { lost = append(lost, l) })
	if err != nil {
		t.Fatalf("repair: %v", err)
	}
	if after := state(t, data); after != before {
		t.Fatalf("a repair changed\n%s\nto\n%s", before, after)
	}
	if p := checked(t, to); len(p) > 0 {
		t.Errorf("repaired: %q", p)
	}
	eng, err := OpenForReading(context.Background(), to)
	if err != nil {
		t.Fatal(err)
	}
	right, silent, failed := want.compare(t, eng)
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	if len(failed) > 0 || len(silent) > 0 && len(lost) == 0 || len(problems) == 0 && len(right) < len(want) {
		t.Errorf("repair saved %d of %d, %d wrong (%v), %d fail, losses: %v\nproblems: %q", len(right), len(want),
			len(silent), silent, len(failed), lost, problems)
	}
	if len(problems) == 0 && len(lost) > 0 {
		t.Errorf("losses of a store that is clean: %v", lost)
	}
	t.Logf("%d problems, %d losses, %d saved of %d", len(problems), len(lost), done.Items, len(want))
	serveDamaged(t, data, want, problems)
}

// serveDamaged opens a damaged store like a server does.
func serveDamaged(t *testing.T, data string, want wantItems, problems []string) {
	before := state(t, data)
	e, err := pebblekv.Open(StoreDir(data),
		pebblekv.Options{MemTableMB: 1, CacheMB: 8, Scanned: core.OnlyScanned, Kept: core.GotSingly,
			Upgrade: true, // without an identity the store looks like one of format 1
			Logger:  slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		if len(problems) == 0 {
			t.Errorf("a clean store is refused: %v", err)
		}
		if after := state(t, data); withoutLock(after) != withoutLock(before) {
			t.Errorf("a refused store was changed: \n%s\nto\n%s", before, after)
		}
		return
	}
	eng, err := core.Open(context.Background(), e, core.Options{})
	if err != nil {
		e.Close()
		return
	}
	defer eng.Close()
	if err := eng.Scrub(context.Background()); err != nil {
		t.Errorf("scrub: %v", err)
	}
	scrubbed := eng.ScrubStatus()
	_, silent, failed := want.compare(t, eng)
	if len(silent) > 0 {
		t.Errorf("served: %d items are wrong and nothing says so: %v\nproblems: %q", len(silent), silent, problems)
	}
	if len(failed) > 0 && len(problems) == 0 {
		t.Errorf("%d items fail in a store that is clean", len(failed))
	}
	if scrubbed.Found == 0 && len(failed) > 0 || scrubbed.Found > 0 && len(problems) == 0 || scrubbed.Rounds != 1 {
		t.Errorf("scrub: %+v\nproblems: %q", scrubbed, problems)
	}
	if len(failed) > 0 && eng.Health().Reason == "" {
		t.Errorf("%d items fail and the engine says that it is well", len(failed))
	}
}

// withoutLock removes what taking a lock changes: the times of its file and of the directory.
func withoutLock(s string) string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		if !strings.Contains(l, "/LOCK ") && !strings.Contains(l, "/opened ") && !strings.Contains(l, "/store ") {
			// their times
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}
