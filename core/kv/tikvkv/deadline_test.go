package tikvkv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/pingcap/failpoint"
	"github.com/tikv/client-go/v2/tikvrpc"
)

// sick lets the client find each store unreachable when it asks for its health, as it does after a failed request.
func sick(t *testing.T) {
	t.Helper()
	if err := storesLive(); err != nil {
		t.Fatal(err)
	}
	const check = "tikvclient/injectLiveness" // the client's own switch for tests
	if err := failpoint.Enable(check, `return("unreachable")`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := failpoint.Enable(check, `return("reachable")`); err != nil {
			t.Error(err)
		}
	})
}

// A call whose deadline passes while a store takes its time is no failure of the store: the calls of others go on at
// once, and needn't wait until the store was asked for its health.
func TestDeadlinesAreNoFailures(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Engine) error{
		"get": func(ctx context.Context, e *Engine) error {
			_, err := e.Get(ctx, nil, []byte("k"))
			return err
		},
		"newest": func(ctx context.Context, e *Engine) error {
			return e.GetNewest(ctx, &kv.Values{}, [][]byte{[]byte("k"), []byte("z")})
		},
		"write": func(ctx context.Context, e *Engine) error {
			var b kv.Batch
			b.Put([]byte("other"), []byte("2"))
			_, err := e.Write(ctx, &b, nil)
			return err
		},
		"snapshot": func(ctx context.Context, e *Engine) error {
			s, err := e.Snapshot(ctx)
			if err != nil {
				return err
			}
			_, err = s.Get(nil, []byte("k"))
			return errors.Join(err, s.Close())
		},
		"presplit": func(ctx context.Context, e *Engine) error { return e.Presplit(ctx, [][]byte{[]byte("m")}) },
		"drop":     func(ctx context.Context, e *Engine) error { return e.DropRange(ctx, []byte("x"), []byte("y")) },
	} {
		t.Run(name, func(t *testing.T) {
			e, f := newMock(t).openFaulty(Options{})
			put(t, e, "k", "1")
			sick(t)
			f.set(func(context.Context, *tikvrpc.Request) outcome { return hangs })
			ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
			defer cancel()
			if err := call(ctx, e); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, kv.ErrUnknownOutcome) {
				t.Error(err)
			}
			f.set(nil)
			begun := time.Now()
			if v, err := e.Get(bg, nil, []byte("k")); string(v) != "1" || err != nil {
				t.Errorf("%q, %v", v, err)
			}
			if took := time.Since(begun); took > time.Second/2 {
				t.Errorf("the next call took %v", took)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
