package aio

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Every sync of a file succeeds, or isn't taken, however many there are at once.
func TestSync(t *testing.T) {
	if !Available() {
		t.Log("not on this kernel")
	}
	var taken sync.Map
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			f, err := os.Create(filepath.Join(t.TempDir(), "f"))
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			for range 20 {
				f.WriteString("some text")
				done, err := Sync(f.Fd(), i%2 == 0)
				if err != nil {
					t.Error(err)
				}
				if done {
					taken.Store(i, true)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	taken.Range(func(any, any) bool { n++; return true })
	if Available() != (n > 0) || len(queues()) == 0 && Available() {
		t.Errorf("available: %v, writers with a sync: %d, free queues: %d", Available(), n, len(queues()))
	}
}

// What can't be synced isn't taken, and its queue is free again.
func TestNotTaken(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	free := len(queues())
	for name, fd := range map[string]uintptr{"pipe": w.Fd(), "closed": 1 << 20} {
		if done, err := Sync(fd, true); done || err != nil {
			t.Errorf("%s: %v, %v", name, done, err)
		}
	}
	if len(queues()) != free {
		t.Errorf("%d queues are free, %d were", len(queues()), free)
	}
}
