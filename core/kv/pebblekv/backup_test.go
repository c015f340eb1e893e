package pebblekv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/backup"
	"github.com/orrerydb/orrery/core/kv/pebblekv/files"
	"github.com/orrerydb/orrery/internal/race"
)

// The cost of a backup is the change since the previous one, on every kind of file system.
func TestBackupSharesTables(t *testing.T) {
	for _, c := range []struct {
		name                 string
		hook                 func(op, name string) error
		disk                 func(string) string
		links, shares, keeps bool // tables of the store, of the previous backup, of an unfinished one
	}{
		{"one disk", nothing, nil, true, true, true},
		{"two disks", nothing, twoDisks, false, true, true},
		{"no hard links", noLinks, nil, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := &hookFS{FS: vfs.NewMem(), hook: c.hook, disk: c.disk}
			e := mustOpen(t, storeDir, Options{FS: fs, MemTableMB: 1})
			defer e.Close()
			table := func(from int) int64 {
				random(t, e, from, 2000)
				if err := e.db.Flush(); err != nil {
					t.Fatal(err)
				}
				var n int64
				for _, l := range must(e.db.SSTables()) {
					for i := range l {
						n += int64(l[i].Size)
					}
				}
				return n
			}
			before := table(0)
			const rest = 64 << 10 // log, manifest, options
			first := mustBackUp(t, e)
			if c.links != (first.Linked == before) || c.links != (first.Copied < rest) || first.Shared != 0 {
				t.Errorf("the first backup of %d bytes in tables: %+v", before, first)
			}
			now := table(2000)
			second := mustBackUp(t, e)
			if c.shares != (second.Shared == before) || second.Linked+second.Copied+second.Shared != second.Bytes {
				t.Errorf("the second one, %d bytes later: %+v", now-before, second)
			}
			if c.shares && !c.links && second.Copied > now-before+rest {
				t.Errorf("it copies %d bytes, and %d are new", second.Copied, now-before)
			}

			table(4000)
			cutOff(t, e)
			third := mustBackUp(t, e)
			if third.Shared <= second.Shared || len(only(t, fs)) != 3 {
				t.Errorf("after one that was cut off: %+v, %v", third, only(t, fs))
			}

			wantWhole(t, fs)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			r := restored(t, fs, "r")
			defer r.Close()
			for i := 0; i < 6000; i += 100 {
				if _, err := r.Get(context.Background(), nil, fmt.Appendf(nil, "key %06d", i)); err != nil {
					t.Fatal(i, err)
				}
			}
		})
	}
}

// random writes the keys of fill with values that don't compress.
func random(t *testing.T, e *Engine, from, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(from), 1))
	val := make([]byte, 200)
	for i := range n {
		for j := range val {
			val[j] = byte(r.Uint32())
		}
		if err := put(e, fmt.Sprintf("key %06d", from+i), val); err != nil {
			t.Fatal(err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// cutOff begins a backup and cancels it before its last file.
func cutOff(t *testing.T, e *Engine) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := backUp(ctx, e, func(done, total int64) {
		if done > total/2 {
			cancel()
		}
	})
	var r *kv.Refusal
	if !errors.As(err, &r) || !strings.Contains(r.Sentence, "cancelled") {
		t.Fatalf("a backup that was cut off: %v", err)
	}
}

// A backup made while everything is written to has everything that was acknowledged before, each batch completely or
// not at all, and no batch without the earlier ones. That holds for every durability.
func TestBackupUnderLoad(t *testing.T) {
	for _, relaxed := range []bool{false, true} {
		t.Run(fmt.Sprintf("relaxed %v", relaxed), func(t *testing.T) {
			fs := vfs.NewMem()
			e := mustOpen(t, storeDir, Options{FS: fs, MemTableMB: 1, Relaxed: relaxed})
			var written atomic.Int64
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					writePair(t, e, i)
					written.Store(int64(i) + 1)
				}
			})
			for i := range race.Fewer(3, 2) {
				eventually(t, "more is written", func() bool { return written.Load() > int64(i+1)*500 })
				before := written.Load()
				mustBackUp(t, e)
				wantWhole(t, fs)
				r := restored(t, fs, fmt.Sprintf("r%d", i))
				if err := del(r, raisedKey); err != nil {
					t.Fatal(err)
				}
				if got := int64(pairs(t, r)); got < before || got > written.Load() {
					t.Errorf("%d batches, of which %d had been acknowledged before the backup and %d now", got, before,
						written.Load())
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			close(stop)
			wg.Wait()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// If any operation of a backup fails, the backup either fails with a sentence or is complete. The store continues, and
// the next backup succeeds. If the disk is full, nothing of the backup is left.
func TestBackupSurvivesFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		disk func(string) string
	}{
		{"errors of one disk", errors.New("input/output error"), nil},
		{"errors of two disks", errors.New("input/output error"), twoDisks},
		{"full disk", syscall.ENOSPC, twoDisks},
	} {
		t.Run(c.name, func(t *testing.T) {
			var countdown atomic.Int64
			countdown.Store(-1)
			fs := &hookFS{FS: vfs.NewMem(), disk: c.disk, hook: func(op, name string) error {
				if ofBackup(name) && countdown.Add(-1) == 0 {
					return fmt.Errorf("%s %s: %w", op, name, c.err)
				}
				return nil
			}}
			e := mustOpen(t, storeDir, Options{FS: fs, MemTableMB: 1, Fatal: mustFail(t)})
			defer e.Close()
			n, failed := 0, 0
			for key := 0; ; key += 20 {
				fill(t, e, key, 20)
				if n += race.Fewer(1, 5); n > 500 {
					t.Fatal("a backup never ends")
				}
				whole := len(only(t, mkdir(fs)))
				countdown.Store(int64(n))
				_, err := backUp(context.Background(), e, nil)
				reached := countdown.Swap(-1) <= 0
				if !reached {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				var r *kv.Refusal
				switch {
				case err == nil: // the failure didn't matter
					wantWhole(t, fs)
					continue
				case !errors.As(err, &r) || r.Sentence == "":
					t.Fatalf("operation %d: %v", n, err)
				case errors.Is(c.err, syscall.ENOSPC) && len(only(t, fs)) > whole:
					t.Fatalf("operation %d: %v is left", n, only(t, fs))
				}
				failed++
			}
			if failed < race.Fewer(15, 3) {
				t.Errorf("only %d of %d operations made a backup fail", failed, n)
			}
			wantWhole(t, fs)
			t.Logf("%d operations, %d failures", n, failed)
		})
	}
}

// mkdir makes the directory of backups.
func mkdir(fs vfs.FS) vfs.FS {
	_ = fs.MkdirAll(toDir, 0o755)
	return fs
}

// Whenever the power is cut during a backup, the store is whole, and so is the newest complete backup: the previous one
// or this one. The next backup succeeds.
func TestCutsInBackup(t *testing.T) {
	race.Alone(t)
	mem := vfs.NewCrashableMem()
	p := &power{fs: mem, rnd: rand.New(rand.NewPCG(5, 6))}
	fs := &hookFS{FS: mem, disk: twoDisks, hook: func(op, name string) error {
		if ofBackup(name) && op != "write" {
			p.cut(op, name)
		}
		return nil
	}}
	e := mustOpen(t, storeDir, Options{FS: fs, MemTableMB: 1})
	fill(t, e, 0, 500)
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	mustBackUp(t, e)
	fill(t, e, 500, 500)
	p.cuts = nil
	mustBackUp(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range p.cuts {
		wantWhole(t, c.fs)
		e := mustOpen(t, storeDir, Options{FS: c.fs, MemTableMB: 1, CacheMB: 1})
		if _, err := c.fs.Stat(storeDir + "/" + stageName); !files.IsMissing(err) {
			t.Errorf("cut before %s: what is left of the checkpoint is there: %v", c.before, err)
		}
		mustBackUp(t, e)
		wantWhole(t, c.fs)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		r := restored(t, c.fs, "r")
		if _, err := r.Get(context.Background(), nil, []byte("key 000999")); err != nil {
			t.Errorf("cut before %s: %v", c.before, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d cuts", len(p.cuts))
	if len(p.cuts) < 200 {
		t.Error("too few to say something")
	}
}

// Whenever the power is cut during a restore, the directory is either no store, or the restored store with everything
// that the restore has written to it. The restore can be started again.
func TestCutsInRestore(t *testing.T) {
	race.Alone(t)
	t.Parallel()
	mem := vfs.NewCrashableMem()
	p := &power{fs: mem, rnd: rand.New(rand.NewPCG(5, 6))}
	e := mustOpen(t, storeDir, Options{FS: mem, MemTableMB: 1})
	fill(t, e, 0, 300)
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	fill(t, e, 300, 100)
	mustBackUp(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	fs := &hookFS{FS: mem, hook: func(op, name string) error {
		p.cut(op, name)
		return nil
	}}
	if err := restore(fs, "r"); err != nil {
		t.Fatal(err)
	}
	refused, done := 0, 0
	for _, c := range p.cuts {
		e, err := Open("r", Options{FS: c.fs, ReadOnly: true})
		switch {
		case errors.Is(err, ErrNoStore): // the restore had not begun, or nothing of it was kept
		case errors.Is(err, ErrNotWhole) && strings.Contains(err.Error(), "restore"):
			refused++
		case err != nil:
			t.Fatalf("cut before %s: %v", c.before, err)
		default:
			done++
			if _, err := e.Get(context.Background(), nil, []byte(raisedKey)); err != nil {
				t.Errorf("cut before %s: a store that isn't raised: %v", c.before, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		r := restored(t, c.fs, "r")
		for _, key := range []string{"key 000000", "key 000399", raisedKey} {
			if _, err := r.Get(context.Background(), nil, []byte(key)); err != nil {
				t.Errorf("cut before %s, and restored again: %s: %v", c.before, key, err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	whole := mustOpen(t, "r", Options{FS: mem})
	if _, err := whole.Get(context.Background(), nil, []byte(raisedKey)); err != nil {
		t.Errorf("at the end: %v", err)
	}
	if err := whole.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d cuts: %d refused, %d done", len(p.cuts), refused, done)
	if refused < 200 {
		t.Error("too few to say something")
	}
}

// A restore needs an empty directory. Two restores can't use one directory at the same time.
func TestRestoreWantsAnEmptyDirectory(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, storeDir, Options{FS: fs})
	mustBackUp(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := restore(fs, storeDir); err == nil || !strings.Contains(err.Error(), "isn't empty") {
		t.Errorf("into a store: %v", err)
	}
	from, m, err := backup.Pick(fs, toDir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Restore(context.Background(), from, m, "r", Options{FS: fs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := restore(fs, "r"); err == nil || !strings.Contains(err.Error(), "another restore") {
		t.Errorf("a second one: %v", err)
	}
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	if err := restore(fs, "r"); err != nil {
		t.Errorf("after the first one: %v", err)
	}
}

// Requests with errors are refused, and nothing is written.
func TestBackupsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "data", "store")
	e := mustOpen(t, store, Options{})
	defer e.Close()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "data"), link); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign")
	if err := os.MkdirAll(filepath.Join(foreign, "photos"), 0o755); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{
		"backups":                           "not absolute",
		store:                               "may contain the other",
		filepath.Join(dir, "data"):          "may contain the other",
		filepath.Join(dir, "data", "x"):     "may contain the other",
		filepath.Join(link, "x", "y"):       "may contain the other",
		dir:                                 "may contain the other",
		foreign:                             "photos",
		filepath.Join(store, "LOCK", "sub"): "may contain the other",
	} {
		_, err := e.Backup(context.Background(), to, kv.BackupOptions{Name: "20260101T000000Z-00000000"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", to, err, want)
		}
	}
	if names, err := os.ReadDir(foreign); err != nil || len(names) != 1 {
		t.Errorf("%v %v", names, err)
	}
	if n, err := e.Backup(context.Background(), dir+"-other",
		kv.BackupOptions{Name: "20260101T000000Z-00000000"}); err != nil {
		t.Errorf("beside it: %v %v", n, err)
	}
	_ = os.RemoveAll(dir + "-other")

	e.disk.copying.one.Lock()
	if _, err := e.Backup(context.Background(), dir+"-other", kv.BackupOptions{}); !errors.Is(err, errBackupRuns) {
		t.Errorf("a second backup: %v", err)
	}
	e.disk.copying.one.Unlock()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Backup(context.Background(), dir+"-other", kv.BackupOptions{}); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("of a closed store: %v", err)
	}
	r := mustOpen(t, store, Options{ReadOnly: true})
	defer r.Close()
	if _, err := r.Backup(context.Background(), dir+"-other", kv.BackupOptions{}); !errors.Is(err, errOpenedReadOnly) {
		t.Errorf("of a store open for reading: %v", err)
	}
}

// A backup that would use the store's reserved space isn't begun.
func TestBackupLeavesTheStoreItsRoom(t *testing.T) {
	fs := newSmallFS(64 << 20)
	e := mustOpen(t, storeDir, Options{FS: fs, MemTableMB: 1, Fatal: mustFail(t)})
	defer e.Close()
	if _, err := fillUp(e, 500); err != nil {
		t.Fatal(err)
	}
	fs.take(1 << 20)
	if err := e.disk.ask(); err != nil {
		t.Fatal(err)
	}
	_, err := backUp(context.Background(), e, nil)
	var r *kv.Refusal
	if !errors.As(err, &r) || !errors.Is(err, kv.ErrFull) {
		t.Errorf("%v", err)
	}
	fs.give()
	eventually(t, "there is room again", is(e, kv.Well))
	mustBackUp(t, e)
	wantWhole(t, fs)
}

// A damaged backup isn't restored, and the error names its file. An older backup isn't used in its place.
func TestDamagedBackupIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string, m *backup.Manifest)
		want   string
	}{
		{"a flipped byte", func(t *testing.T, dir string, m *backup.Manifest) { flip(t, dir, m.Files[0].Name) }, "000"},
		{"a shorter file", func(t *testing.T, dir string, m *backup.Manifest) {
			if err := os.Truncate(filepath.Join(dir, "store", m.Files[0].Name), 10); err != nil {
				t.Fatal(err)
			}
		}, "has 10 bytes"},
		{"a missing file", func(t *testing.T, dir string, m *backup.Manifest) {
			if err := os.Remove(filepath.Join(dir, "store", m.Files[len(m.Files)-1].Name)); err != nil {
				t.Fatal(err)
			}
		}, "marker.manifest"},
		{"a damaged manifest", func(t *testing.T, dir string, m *backup.Manifest) { flip(t, dir, "../backup.json") },
			"backup.json is damaged"},
		{"a newer format", func(t *testing.T, dir string, m *backup.Manifest) {
			rewrite(t, dir, func(m map[string]any) { m["format"] = 9 })
		}, "backup.json is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			e := mustOpen(t, filepath.Join(dir, "data", "store"), Options{})
			fill(t, e, 0, 100)
			if err := e.db.Flush(); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(dir, "to")
			for _, name := range []string{"20260101T000000Z-00000000", "20260102T000000Z-00000000"} {
				fill(t, e, 100, 10)
				if _, err := e.Backup(context.Background(), to, kv.BackupOptions{Name: name}); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			newest, m, err := backup.Pick(vfs.Default, to)
			if err != nil || !strings.HasSuffix(newest, "20260102T000000Z-00000000") {
				t.Fatal(newest, err)
			}
			c.damage(t, newest, m)
			problems := 0
			if m, err = backup.ReadManifest(vfs.Default, newest); err == nil {
				err = backup.Verify(context.Background(), backup.Work{FS: vfs.Default}, newest, m,
					func(string, string) { problems++ })
			}
			if problems != 1 && err == nil {
				t.Errorf("%d problems", problems)
			}
			newest, m, err = backup.Pick(vfs.Default, to)
			if err == nil {
				_, err = Restore(context.Background(), newest, m, filepath.Join(dir, "r"), Options{}, nil)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if _, err := Open(filepath.Join(dir, "r"), Options{ReadOnly: true}); err == nil {
				t.Error("what was restored is opened")
			}
		})
	}
}

func flip(t *testing.T, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, "store", name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func rewrite(t *testing.T, dir string, change func(map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, "backup.json")
	var m map[string]any
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	if b, err = json.Marshal(m); err == nil {
		err = os.WriteFile(path, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Backups of another store are kept apart. A restored store has another identity, whose format is that of the backup.
func TestBackupsOfOneStore(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, storeDir, Options{FS: fs})
	defer e.Close()
	mustBackUp(t, e)
	other := mustOpen(t, "other", Options{FS: fs})
	defer other.Close()
	if _, err := backUp(context.Background(), other, nil); err == nil ||
		!strings.Contains(err.Error(), "another store") {
		t.Errorf("a second store's backup in the same directory: %v", err)
	}
	r := restored(t, fs, "r")
	defer r.Close()
	if a, b := e.Identity(), r.Identity(); a.ID == b.ID || b.ID == "" || b.Format != kv.Format {
		t.Errorf("restored %+v from %+v", b, a)
	}
	mustBackUp(t, e)

	path, _, err := backup.Pick(fs, toDir)
	if err != nil {
		t.Fatal(err)
	}
	i := identityFile{Identity: e.Identity()}
	i.Format++
	i.Sum = i.sum()
	text := must(json.Marshal(i))
	if err := files.Replace(fs, fs.PathJoin(path, backup.StoreName, identityName), tempEnd, text); err != nil {
		t.Fatal(err)
	}
	m := &backup.Manifest{}
	for _, name := range must(fs.List(fs.PathJoin(path, backup.StoreName))) {
		size, sum, err := sized(fs, fs.PathJoin(path, backup.StoreName, name), true)
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, backup.File{Name: name, Size: size, Sum: sum})
	}
	_, err = Restore(context.Background(), path, m, "newer", Options{FS: fs}, nil)
	if !errors.Is(err, ErrNewer) {
		t.Errorf("a backup of a newer format: %v", err)
	}
}

// A backup rests as long as it works. A rest ends when the caller cancels.
func TestBackupRests(t *testing.T) {
	rest := halfTheTime()
	time.Sleep(20 * time.Millisecond)
	begun := time.Now()
	if err := rest(context.Background()); err != nil || time.Since(begun) < 20*time.Millisecond {
		t.Errorf("after 20 ms of work it rested for %v, %v", time.Since(begun), err)
	}
	time.Sleep(20 * time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := rest(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	fs := vfs.NewMem()
	f := must(fs.Create("from", vfs.WriteCategoryUnspecified))
	must(f.Write(make([]byte, 5<<20)))
	rests := 0
	m := &backup.Manifest{Files: []backup.File{{Name: "from"}}}
	w := backup.Work{FS: fs, Pause: func(context.Context) error { rests++; return nil }}
	if _ = fs.MkdirAll("b/"+backup.StoreName, 0o755); fs.Link("from", "b/"+backup.StoreName+"/from") != nil {
		t.Fatal()
	}
	if err := backup.Verify(context.Background(), w, "b", m, func(string, string) {}); err != nil || rests != 5 {
		t.Errorf("%d rests in 5 MiB, %v", rests, err)
	}
}
