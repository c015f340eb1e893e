package lease_test

import (
	"errors"
	"testing"

	"github.com/orrerydb/orrery/core/keys"
	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/lease"
)

// The end of all processes removes leases and signs of life. It leaves the records of APIs: who repeats a write after a
// move that was abandoned still gets the first result, and there may be more records than a batch holds.
func TestEndOfProcesses(t *testing.T) {
	ctx, e := bg, memkv.New()
	t.Cleanup(func() { _ = e.Close() })
	goes := [][]byte{keys.AppendLease(nil, byte(lease.Drops), 0), keys.AppendLease(nil, 0xFF, 1<<32-1),
		keys.AppendProcess(nil, [keys.ProcessLen]byte{}), keys.AppendProcess(nil, [keys.ProcessLen]byte{0: 0xFF})}
	stays := [][]byte{keys.AppendRecord(nil, 0, nil), keys.AppendRecord(nil, 2, []byte("session")),
		keys.AppendRecordPart(nil, 2, []byte("session"), 1<<32-1)}
	var b kv.Batch
	for _, k := range append(append([][]byte(nil), goes...), stays...) {
		b.Put(k, []byte("value"))
	}
	if _, err := e.Write(ctx, &b, nil); err != nil {
		t.Fatal(err)
	}
	end := kv.Batch{}
	pre, err := lease.PutEnd(ctx, e, &end)
	if err != nil || len(pre) != len(goes) {
		t.Fatalf("%d preconditions, %v", len(pre), err)
	}
	if _, err := e.Write(ctx, &end, pre); err != nil {
		t.Fatal(err)
	}
	for _, k := range goes {
		if _, err := e.Get(ctx, nil, k); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("%x is left: %v", k, err)
		}
	}
	for _, k := range stays {
		if _, err := e.Get(ctx, nil, k); err != nil {
			t.Errorf("%x: %v", k, err)
		}
	}
}
