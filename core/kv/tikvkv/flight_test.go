package tikvkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// narrow is a connection whose store takes some time, and refuses what is more than it takes at the same time. The
// commit of a key counts as much as its value.
type narrow struct {
	tikv.Client
	takes int
	sizes sync.Map // of values, by key
	mu    sync.Mutex
	now   int // bytes of writes that are under way
	most  int
	full  int // requests that were refused
}

func (n *narrow) SendRequest(ctx context.Context, addr string, req *tikvrpc.Request, d time.Duration) (
	*tikvrpc.Response, error) {
	size := 0
	switch req.Type {
	case tikvrpc.CmdPrewrite:
		for _, m := range req.Prewrite().Mutations {
			size += len(m.Key) + len(m.Value)
			n.sizes.Store(string(m.Key), len(m.Value))
		}
	case tikvrpc.CmdCommit:
		for _, key := range req.Commit().Keys {
			if of, ok := n.sizes.Load(string(key)); ok {
				size += of.(int)
			}
		}
	default:
		return n.Client.SendRequest(ctx, addr, req, d)
	}
	n.mu.Lock()
	n.now += size
	n.most = max(n.most, n.now)
	refuse := n.now > n.takes
	if refuse {
		n.full++
	}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.now -= size
		n.mu.Unlock()
	}()
	time.Sleep(time.Millisecond)
	if refuse {
		e := &errorpb.Error{RaftEntryTooLarge: &errorpb.RaftEntryTooLarge{EntrySize: uint64(size)}}
		if req.Type == tikvrpc.CmdCommit {
			return &tikvrpc.Response{Resp: &kvrpcpb.CommitResponse{RegionError: e}}, nil
		}
		return &tikvrpc.Response{Resp: &kvrpcpb.PrewriteResponse{RegionError: e}}, nil
	}
	return n.Client.SendRequest(ctx, addr, req, d)
}

// Large batches of several writers are sent in portions, and a store that can't take even these gets them again.
func TestLargeBatchesInPortions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		takes  int
		values []int
	}{
		{"parts", flightBytes + 128*smallBytes, []int{16 << 20}},
		{"values without parts", flightBytes + 128*smallBytes, []int{maxInline, maxInline, maxInline, maxInline}},
		{"a narrow store", 3 * partSize, []int{2 << 20, 3 << 20}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := &narrow{takes: tc.takes}
			e, err := Use(bg, newMock(t).Store(func(c tikv.Client) tikv.Client {
				n.Client = c
				return n
			}), "main", Options{})
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for w := range 4 {
				all.Go(func() {
					var b kv.Batch
					for i, size := range tc.values {
						b.Put(fmt.Appendf(nil, "%d-%d", w, i), bytes.Repeat([]byte{byte('a' + w)}, size))
					}
					if _, err := e.Write(bg, &b, nil); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for w := range 4 {
				for i, size := range tc.values {
					v, err := e.Get(bg, nil, fmt.Appendf(nil, "%d-%d", w, i))
					if err != nil || !bytes.Equal(v, bytes.Repeat([]byte{byte('a' + w)}, size)) {
						t.Errorf("writer %d: %d bytes of %d: %v", w, len(v), size, err)
					}
				}
			}
			if n.most > flightBytes+128*smallBytes || n.full > 0 != (tc.takes < flightBytes) {
				t.Errorf("%d bytes at the same time, %d refused", n.most, n.full)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A batch whose turn doesn't come ends with its ctx, and isn't applied.
func TestLargeBatchEndsWhileItWaits(t *testing.T) {
	e, f := newMock(t).openFaulty(Options{TwoPhase: true})
	f.set(func(_ context.Context, req *tikvrpc.Request) outcome {
		if req.Type == tikvrpc.CmdPrewrite && len(req.Prewrite().Mutations[0].Value) > largeValue {
			return hangs
		}
		return arrives
	})
	ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
	defer cancel()
	var b kv.Batch
	b.Put([]byte("k"), make([]byte, 16<<20))
	if _, err := e.Write(ctx, &b, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	f.set(nil)
	if _, err := e.Get(bg, nil, []byte("k")); !errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
