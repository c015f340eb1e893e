package crashtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/orrerydb/orrery/cmd/orrery/server"
	"github.com/orrerydb/orrery/core"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/pebblekv"
	"github.com/orrerydb/orrery/core/kv/pebblekv/backup"
	"github.com/orrerydb/orrery/internal/histories"
)

const restoreEnv = "ORRERY_CRASH_RESTORE" // set: this process does a restore, and will be killed

// backupKills returns how often a backup and a restore are killed.
func backupKills(t *testing.T) int {
	if os.Getenv("ORRERY_KILLS") == "" {
		return fewKills / 2
	}
	return kills(t)
}

// makeBackups makes backups until ctx ends. It calls begun before each one.
func makeBackups(ctx context.Context, eng *core.Engine, to string, begun func(name string)) {
	for {
		var random [4]byte
		eng.Clock().Random(random[:])
		o := kv.BackupOptions{Taken: eng.Clock().Now()}
		o.Name = backup.Name(o.Taken, random)
		begun(o.Name)
		if _, err := eng.Backup(ctx, to, o); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
}

// A server that makes backups during writes is killed repeatedly. After each kill the store is intact, and the newest
// complete backup contains everything that was acknowledged before it began.
func TestKilledServerLeavesWholeBackups(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	store, to := filepath.Join(dir, "data", "store"), filepath.Join(dir, "backups")
	at := make([]int, writers)
	begun := map[string][]int{} // by name: the number of acknowledged steps of each writer
	whole, unfinished := map[string]bool{}, 0
	many := backupKills(t)
	for kill := 0; kill < many || unfinished == 0 && kill < 10*many; kill++ { // a backup may take a few milliseconds
		env := []string{childEnv + "_BACKUP=" + to}
		acked := runChild(t, store, at, env, time.Duration(20+r.IntN(200))*time.Millisecond, func(words []string) {
			for _, w := range words[1:] {
				n, err := strconv.Atoi(w)
				if err != nil {
					t.Fatal(words, err)
				}
				begun[words[0]] = append(begun[words[0]], n)
			}
		})
		at, _ = verify(t, store, acked, acked)
		all, err := backup.List(backup.OS, to)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		var newest backup.Entry
		for _, e := range all {
			switch {
			case errors.Is(e.Err, backup.ErrNoBackup):
				unfinished++
			case e.Err != nil:
				t.Error(e.Err)
			default:
				newest = e
			}
		}
		if newest.Name != "" && !whole[newest.Name] {
			whole[newest.Name] = true
			verifyBackup(t, newest.Path, filepath.Join(dir, "restored"), begun[newest.Name], at)
		}
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
		for _, e := range all[:max(0, len(all)-3)] { // as an operator would
			if e.Err == nil {
				if err := os.RemoveAll(e.Path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if len(whole) == 0 || unfinished == 0 {
		t.Errorf("%d whole backups, %d kills in the middle of one: the test tests nothing", len(whole), unfinished)
	}
	t.Logf("%d whole backups, %d kills in the middle of one", len(whole), unfinished)
}

// verifyBackup restores a backup and compares it with the writers' histories.
func verifyBackup(t *testing.T, path, data string, from, to []int) {
	t.Helper()
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Restore(context.Background(), path, data, quiet{}); err != nil { // this also checks the store
		t.Fatal(err)
	}
	eng, c, err := openStore(context.Background(), server.StoreDir(data), false)
	if err != nil {
		t.Fatal(err)
	}
	found, err := histories.Found(context.Background(), c, writers)
	if err != nil {
		t.Fatal(err)
	}
	for w, got := range found {
		if _, err := histories.Steps(w, got, from[w], to[w]); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
}

type quiet struct{}

func (quiet) Task(string, bool) {}
func (quiet) Set(int64, int64)  {}

// restoreChild restores a backup; the directory is "backup:data".
func restoreChild(dirs string) error {
	from, data, _ := strings.Cut(dirs, ":")
	_, err := server.Restore(context.Background(), from, data, quiet{})
	return err
}

// A restore is killed repeatedly. Until a restore is complete, a server doesn't open what is there. The next restore
// starts again.
func TestKilledRestoreIsBegunAgain(t *testing.T) {
	dir := t.TempDir()
	to, data := filepath.Join(dir, "backups"), filepath.Join(dir, "restored")
	at := backedUp(t, filepath.Join(dir, "data", "store"), to)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	longest := 200 * time.Millisecond
	refused, done := 0, 0
	many := backupKills(t)
	for kill := 0; kill < many || done == 0 || refused == 0 && kill < 10*many; kill++ {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), restoreEnv+"="+to+":"+data)
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(r.Int64N(int64(longest))), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			longest = time.Since(began)
		} else if cmd.ProcessState.Exited() {
			t.Fatalf("the restore fails after %d kills", kill)
		}
		e, oerr := pebblekv.Open(server.StoreDir(data), pebblekv.Options{Scanned: core.OnlyScanned, ReadOnly: true})
		switch {
		case errors.Is(oerr, pebblekv.ErrNotWhole) && err != nil:
			refused++
			continue
		case errors.Is(oerr, pebblekv.ErrNoStore) && err != nil:
			continue
		case oerr != nil:
			t.Fatalf("after kill %d: %v, %v", kill, oerr, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		done++
		verifyRestored(t, data, at)
		if err := os.RemoveAll(data); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("no kill came in the middle of a restore")
	}
	t.Logf("%d kills in the middle, %d restores done", refused, done)
}

// backedUp makes a store and a backup of it. It returns the number of steps of each writer.
func backedUp(t *testing.T, store, to string) []int {
	t.Helper()
	eng, c, err := openStore(context.Background(), store, false)
	if err != nil {
		t.Fatal(err)
	}
	at := make([]int, writers)
	for w := range at {
		st := histories.State{}
		for ; at[w] < 40; at[w]++ {
			if err := histories.Do(context.Background(), c, w, at[w], st); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := kv.BackupOptions{Taken: eng.Clock().Now()}
	o.Name = backup.Name(o.Taken, [4]byte{})
	_, err = eng.Backup(context.Background(), to, o)
	if err := errors.Join(err, eng.Close()); err != nil {
		t.Fatal(err)
	}
	return at
}

func verifyRestored(t *testing.T, data string, at []int) {
	t.Helper()
	ctx := context.Background()
	eng, c, err := openStore(ctx, server.StoreDir(data), false)
	if err != nil {
		t.Fatal(err)
	}
	found, err := histories.Found(ctx, c, writers)
	if err != nil {
		t.Fatal(err)
	}
	for w, got := range found {
		if _, err := histories.Steps(w, got, at[w], at[w]); err != nil {
			t.Error(err)
		}
	}
	if problems, err := eng.Check(ctx); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if err := histories.Do(ctx, c, 0, at[0], histories.After(0, at[0])); err != nil {
		t.Error(err)
	}
	if lsn, err := c.GivenLSN(ctx); lsn < 1<<36 || err != nil {
		t.Errorf("LSN %d (%v): the store isn't raised", lsn, err)
	}
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
}
