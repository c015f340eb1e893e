package pebblekv

import (
	"context"
	"fmt"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/kvtest"
)

// onlyScanned stands for index entries: keys with an even last byte.
func onlyScanned(key []byte) bool { return len(key) > 0 && key[len(key)-1]&1 == 0 }

// TestContractWithKeysOutsideTheFilter shows that a filter without some keys never hides them from a Get.
func TestContractWithKeysOutsideTheFilter(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Engine {
		return mustOpen(t, t.TempDir(), Options{MemTableMB: 1, CacheMB: 1, BlockKB: 1, Scanned: onlyScanned})
	})
}

// TestFilterPolicyMayChange opens tables under another policy than the one they were written under: every key is found.
func TestFilterPolicyMayChange(t *testing.T) {
	dir := t.TempDir()
	policies := []func([]byte) bool{nil, onlyScanned, nil, func([]byte) bool { return true }}
	for round, p := range policies {
		e := mustOpen(t, dir, Options{Scanned: p})
		var b kv.Batch
		for i := range 200 {
			b.Put([]byte(fmt.Sprintf("%d/%03d", round, i)), []byte("v"))
		}
		if _, err := e.Write(context.Background(), &b, nil); err != nil {
			t.Fatal(err)
		}
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
		s := kvtest.Snapshot(t, e)
		for r := range round + 1 {
			for i := range 200 {
				key := []byte(fmt.Sprintf("%d/%03d", r, i))
				if ok, err := s.Has(key); err != nil || !ok {
					t.Fatalf("round %d: Has(%s) = %v, %v", round, key, ok, err)
				}
				if ok, err := s.Has(append(key, 'x')); err != nil || ok {
					t.Fatalf("round %d: Has(%sx) = %v, %v", round, key, ok, err)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
