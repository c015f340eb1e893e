package catalog_test

import (
	"context"
	"testing"

	"github.com/orrerydb/orrery/core/kv"
	"github.com/orrerydb/orrery/core/kv/memkv"
	"github.com/orrerydb/orrery/core/status"
)

// unsure applies a write, returns that the outcome is unknown, and then fails one read.
type unsure struct {
	kv.Engine
	armed, blind bool
}

func (e *unsure) Write(ctx context.Context, b *kv.Batch, pre []kv.Precondition) (kv.Commit, error) {
	c, err := e.Engine.Write(ctx, b, pre)
	if e.armed && err == nil {
		e.armed, e.blind = false, true
		return nil, kv.ErrUnknownOutcome
	}
	return c, err
}

func (e *unsure) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	if e.blind {
		e.blind = false
		return blindSnapshot{s}, err
	}
	return s, err
}

type blindSnapshot struct{ kv.Snapshot }

func (blindSnapshot) Get(dst, _ []byte) ([]byte, error) { return dst, kv.ErrUnavailable }

// A change with an unknown outcome isn't repeated: the repetition would find its own result and report a conflict.
func TestUnsureChangeIsMadeOnce(t *testing.T) {
	e := &unsure{Engine: memkv.New()}
	c := filled(t, e, 1)
	e.armed = true
	if _, err := c.CreateContainer(bg, "db", spec("new"), firstHead); !status.Is(err, status.UnknownOutcome) {
		t.Errorf("the change: %v", err)
	}
	create(t, c, "db", spec("next"))
	if n := len(list(t, c, "db")); n != 3 {
		t.Errorf("%d containers, want 3", n)
	}
}
