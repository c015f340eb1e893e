package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/orrerydb/orrery/core/kv"
)

// A failure that the store can't survive ends the process with its reason, on whichever goroutine it happens. No writer
// is told that its write succeeded.
func TestFatal(t *testing.T) {
	for _, c := range []struct {
		name, op, part string
		relaxed        bool
	}{
		{"a write to the log", "write", ".log", false},
		{"a sync of the log", "sync", ".log", false},
		{"a log isn't made", "create", ".log", false},
		{"the directory isn't synced", "sync", "store", false},
		{"a write to the manifest", "write", "MANIFEST", false},
		{"a sync of the manifest", "sync", "MANIFEST", false},
		{"relaxed: a write to the log", "write", ".log", true},
		{"relaxed: a sync of the log", "sync", ".log", true},
		{"relaxed: a log isn't made", "create", ".log", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs, ended := &faultyFS{FS: vfs.NewMem()}, make(chan error, 1)
			e := mustOpen(t, "store", Options{FS: fs, Fatal: func(err error) { ended <- err }, Relaxed: c.relaxed,
				MemTableMB: 1})
			if err := put(e, "k", []byte("v")); err != nil {
				t.Fatal(err)
			}
			fs.set(failing(c.op, c.part, syscall.EIO))
			var acknowledged atomic.Int64
			// a store that has failed refuses writes at once, so the writer would use a processor during all later
			// tests
			var over atomic.Bool
			defer over.Store(true)
			go func() { // a writer whose panics are recovered, as a server does
				for !over.Load() {
					func() {
						defer func() { _ = recover() }()
						if err := put(e, "k", make([]byte, 10<<10)); err == nil {
							acknowledged.Add(1)
						}
					}()
				}
			}()
			select {
			case err := <-ended:
				if !strings.Contains(err.Error(), "input/output error") {
					t.Errorf("the reason is %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the process goes on")
			}
			if c.part == ".log" && !c.relaxed && c.op != "create" && acknowledged.Load() > 0 {
				t.Errorf("%d writes were acknowledged", acknowledged.Load())
			}
		})
	}
}

// The default ends the process with status 1 and says why.
func TestFatalEndsTheProcess(t *testing.T) {
	const dir = "PEBBLEKV_FATAL_TEST"
	if d := os.Getenv(dir); d != "" {
		fs := &faultyFS{FS: vfs.Default}
		e := mustOpen(t, d, Options{FS: fs})
		fs.set(failing("sync", ".log", syscall.EIO))
		defer func() { _ = recover() }()
		_ = put(e, "k", []byte("v"))
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFatalEndsTheProcess$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), dir+"="+filepath.Join(t.TempDir(), "store"))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v", err)
	}
	if s := string(out); !strings.Contains(s, "the process ends: a sync of ") || strings.Contains(s, "goroutine") {
		t.Errorf("it said:\n%s", s)
	}
}

// A store that fails during an open returns the error, and the process continues. When the operation succeeds again,
// the store opens with all of its content.
func TestFailsAtOpen(t *testing.T) {
	for _, keys := range []int{0, 50} { // a new store, and one with writes in its log
		for _, c := range []struct{ op, part string }{
			{"create", ".log"},
			{"create", ".dbtmp"},
			{"write", ".dbtmp"},
			{"sync", ".dbtmp"},
		} {
			t.Run(fmt.Sprintf("%s %s with %d keys", c.op, c.part, keys), func(t *testing.T) {
				fs := &faultyFS{FS: vfs.NewMem()}
				if keys > 0 {
					e := mustOpen(t, "store", Options{FS: fs})
					fill(t, e, 0, keys)
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
				}
				fs.set(failing(c.op, c.part, syscall.EIO))
				for range 2 {
					if _, err := Open("store", Options{FS: fs, Fatal: mustFail(t)}); !errors.Is(err, syscall.EIO) {
						t.Errorf("error is %v", err)
					}
				}
				fs.set(func(string, string) error { return nil })
				e := mustOpen(t, "store", Options{FS: fs, Fatal: mustFail(t)})
				if h := e.Health(); h.State != kv.Well {
					t.Error(h)
				}
				for i := range keys {
					if _, err := e.Get(context.Background(), nil, fmt.Appendf(nil, "key %06d", i)); err != nil {
						t.Fatalf("key %d: %v", i, err)
					}
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
