package memkv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
)

func open(*testing.T) kv.Engine { return New() }

func TestContract(t *testing.T) { kvtest.Run(t, open) }

// So does the engine of one of several processes.
func TestContractOfASharedStore(t *testing.T) {
	kvtest.Run(t, func(*testing.T) kv.Engine { return kvtest.NewShared(New(), 1).Engine() })
}

// The test engine that simulates a network fulfils the contract too.
func TestContractOverANetwork(t *testing.T) {
	kvtest.Run(t, func(*testing.T) kv.Engine { return &kvtest.Slow{Engine: New(), Far: true} })
}

func TestCheckpoint(t *testing.T) {
	kvtest.RunCheckpoint(t, open, func(t *testing.T, dir string) kv.Engine {
		e, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
}

func TestDamagedCheckpointIsRefused(t *testing.T) {
	e := New()
	var b kv.Batch
	b.Put([]byte("key"), []byte("value"))
	if _, err := e.Write(context.Background(), &b, nil); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "c")
	if err := e.Checkpoint(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, checkpointName)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		bad := append([]byte(nil), whole...)
		bad[i] ^= 1
		if err := os.WriteFile(name, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); !errors.Is(err, kv.ErrCorruption) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
	}
}
